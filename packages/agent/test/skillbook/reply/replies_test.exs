defmodule Skillbook.Reply.RepliesTest do
  # Replies of language models with their expected outcomes.
  #
  #     REPLIES=table mix test test/skillbook/reply/replies_test.exs
  #
  # prints the number, class, style and outcome of each.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Extractor, Replies, Report, Result}

  @now ~U[2026-02-17 12:00:00Z]

  # The skills that the replies use.
  @before """
  ```cmd
  tasks.create --title "Call Bob" --due 2026-02-10 --priority high
  tasks.create --title "Q1 report" --tags q1
  memory.save --content "Prefers short answers" --category preference
  ```
  """

  @moduletag :tmp_dir

  for file <- Replies.files() do
    test "#{Path.basename(file, ".txt")}", %{tmp_dir: folder} do
      problems =
        for reply <- Replies.cases(unquote(file)),
            problem = problem(reply, folder),
            do: "\n#{reply.class} #{reply.number}, #{reply.what}\n#{problem}"

      if problems != [], do: flunk(Enum.join(problems, "\n"))
    end
  end

  test "the numbers of replies and outcomes are as expected" do
    replies = Enum.flat_map(Replies.files(), &Replies.cases/1)
    if System.get_env("REPLIES") == "table", do: table(replies)

    assert length(replies) >= 200

    assert replies |> Enum.map(& &1.outcome) |> Enum.uniq() |> Enum.sort() ==
             ~w(held mends noted runs text)

    # All replies are different.
    assert replies -- Enum.uniq_by(replies, & &1.reply) == []
  end

  # A model may repeat a report, from any line, with or without its indentation. What it says in
  # an answer to a call is on its own.
  defp repeated(reply, report) do
    content = if String.valid?(reply), do: reply, else: inspect(reply)
    result = %Result{status: :template, command: "notes.read", content: content}
    shown = Enum.map([%Report{results: [result, result]}, report], &to_string/1)

    Enum.find_value([Report.answer(result) | shown], fn text ->
      lines = String.split(text, "\n")

      for from <- 0..length(lines),
          change <- [& &1, &String.trim_leading/1, &("- " <> &1), &("    " <> &1)],
          text = lines |> Enum.drop(from) |> Enum.map_join("\n", change),
          {:ok, %{commands: [_ | _] = commands}} <- [Extractor.extract(text, unclosed: :run)] do
        commands
      end
      |> List.first()
    end)
  end

  defp problem(reply, folder) do
    report = run(reply.reply, folder)
    actual = Replies.show(report)

    cond do
      actual != reply.expected ->
        diff(reply.expected, actual)

      Replies.outcome(report) != reply.outcome ->
        "expected the outcome #{reply.outcome}, got: #{Replies.outcome(report)}"

      size = Enum.find(chunks(reply.reply), &(not same?(reply.reply, &1))) ->
        "in chunks of #{size} bytes it reads otherwise"

      commands = repeated(reply.reply, report) ->
        "its report, or a result with its text, has commands when a model repeats it: " <>
          inspect(commands)

      true ->
        nil
    end
  end

  @doc false
  def run(reply, folder) do
    write_to = Path.join(folder, "#{System.unique_integer([:positive])}")
    sources = [Skillbook.Test.Checkout.path("test/support/fixtures/reply_skills")]
    options = [sources: sources, write_to: write_to, profiles: [[id: "alice"]], watch: false]
    book = book([store: ":memory:"] ++ options)
    view = Skillbook.view(book, "alice")
    %{results: [_, _, _]} = Skillbook.run(view, @before, now: @now)
    sql = Skillbook.Book.sql(Skillbook.Book.fetch!(book))
    # Replies name the tasks of before as T-1 and T-2.
    Skillbook.SQL.query!(sql, "update skillbook_tasks set number = id")
    report = Skillbook.run(view, reply, now: @now)
    results = Enum.map(report.results, &ordinals(&1, sql))
    :ok = stop_supervised(book)
    %{report | results: results}
  end

  defp ordinals(result, sql) do
    {:ok, result} = Skillbook.Ordinals.from_numbers({:ok, result}, sql)
    %{result | command: Skillbook.Ordinals.from_numbers(result.command, sql)}
  end

  # A megabyte byte by byte is the work of minutes, and shows nothing that a short text does not.
  defp chunks(reply),
    do: if(byte_size(reply) < 20_000, do: [1, 2, 3, 7, 64], else: [1_000, 4_096])

  defp same?(reply, size) do
    case {Extractor.extract(reply), Replies.stream(reply, size)} do
      {{:ok, whole}, {:ok, found}} -> whole == found
      {{:error, whole}, {:error, error}} -> whole.kind == error.kind
      _ -> false
    end
  end

  defp diff(expected, actual) do
    List.myers_difference(String.split(expected, "\n"), String.split(actual, "\n"))
    |> Enum.flat_map(fn
      {:eq, lines} -> Enum.map(lines, &("      " <> &1))
      {:del, lines} -> Enum.map(lines, &("want  " <> &1))
      {:ins, lines} -> Enum.map(lines, &("got   " <> &1))
    end)
    |> Enum.join("\n")
  end

  defp table(replies) do
    names = %{
      "runs" => "ran as meant",
      "mends" => "error that names the mend",
      "held" => "held as cut off",
      "noted" => "note that it did not run",
      "text" => "text for the user"
    }

    rows =
      for {reply, number} <- Enum.with_index(replies, 1),
          do: [
            Integer.to_string(number),
            reply.class,
            reply.style,
            names[reply.outcome],
            reply.what
          ]

    rows = [~w(number class style outcome what) | rows]

    widths =
      Enum.zip_with(rows, fn column -> column |> Enum.map(&String.length/1) |> Enum.max() end)

    for row <- rows do
      row
      |> Enum.zip_with(widths, &String.pad_trailing/2)
      |> Enum.join("  ")
      |> String.trim_trailing()
      |> IO.puts()
    end

    counts = Enum.frequencies_by(replies, & &1.outcome)

    IO.puts(
      "\n#{length(replies)} replies: " <>
        Enum.map_join(counts, ", ", fn {k, n} -> "#{names[k]} #{n}" end)
    )
  end
end
