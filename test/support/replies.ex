defmodule Skillbook.Replies do
  @moduledoc false
  # Reads fixtures/replies, in the format that its README.md describes, and writes the outcome of
  # a reply in the same format.

  alias Skillbook.{Command, Extractor, Report, Result}

  @folder Path.expand("fixtures/replies", __DIR__)
  # How much of a long value is shown.
  @shown 160

  @doc "The files, one a class of faults."
  def files, do: @folder |> Path.join("*.txt") |> Path.wildcard() |> Enum.sort()

  @doc "The cases of a file."
  def cases(file) do
    [_about | cases] = file |> File.read!() |> String.split(~r/^==== /m)

    for {text, number} <- Enum.with_index(cases, 1) do
      [head, rest] = String.split(text, "\n", parts: 2)
      [what, style, outcome] = head |> String.split("|") |> Enum.map(&String.trim/1)
      [reply, expected] = String.split(rest, ~r/^---- commands$\n/m)

      %{
        class: Path.basename(file, ".txt"),
        number: number,
        what: what,
        style: style,
        outcome: outcome,
        reply: reply |> String.replace_suffix("\n", "") |> read(),
        expected: String.trim(expected)
      }
    end
  end

  @doc "The outcome of a reply: each command as parsed with its answer, the commands held, " <>
         "the notes, and the text for the user."
  def show(%Report{} = report) do
    results = Enum.map(report.results, &result/1)
    held = Enum.map(report.incomplete, &"held: #{first_line(&1)}")
    notes = for note <- report.notes, line <- block(note), do: "note: #{first_line(line)}"

    Enum.join(results ++ held ++ notes ++ ["---- text"] ++ visible_lines(report.text), "\n")
    |> String.trim()
  end

  @doc "The kind of outcome."
  def outcome(%Report{results: results, incomplete: incomplete} = report) do
    cond do
      Enum.any?(results, &(&1.status == :error)) -> "mends"
      incomplete != [] -> "held"
      results != [] -> "runs"
      report.notes != [] -> "noted"
      true -> "text"
    end
  end

  @doc "The extraction of a reply that comes in chunks of a size."
  def stream(reply, size) do
    {chunks, state} = Enum.map_reduce(chunks(reply, size), Extractor.new(), &feed/2)
    {last, _state} = Extractor.finish(state)
    events = Enum.concat(chunks ++ [last])

    case Keyword.fetch(events, :error) do
      {:ok, error} -> {:error, error}
      :error -> {:ok, gather(events)}
    end
  end

  # The commands in the note, its only variable part.
  defp block(note) do
    for "  " <> command <- String.split(note, "\n"), do: command
  end

  defp feed(chunk, state), do: Extractor.feed(state, chunk)

  defp chunks(reply, size) when byte_size(reply) < size, do: [reply]

  defp chunks(reply, size) do
    {chunk, rest} = :erlang.split_binary(reply, size)
    [chunk | chunks(rest, size)]
  end

  defp gather(events) do
    start = %{commands: [], text: "", incomplete: []}

    {found, []} =
      Enum.reduce(events, {start, []}, fn
        {:text, text}, {found, open} ->
          {%{found | text: found.text <> text}, open}

        {:command, command}, {found, open} ->
          {found, open ++ [command]}

        {:block, :closed}, {found, open} ->
          {%{found | commands: found.commands ++ open}, []}

        {:block, :incomplete}, {found, open} ->
          {%{found | incomplete: open}, []}

        {:hidden, place}, {found, open} ->
          {Map.update(found, :hidden, [place], &(&1 ++ [place])), open}
      end)

    found
  end

  # ⟦U+00A0⟧ is a character, ⟦FF⟧ a byte, ⟦text*9⟧ a text nine times.
  defp read(text) do
    Regex.replace(~r/⟦(?:U\+([0-9A-F]{4,6})|([0-9A-F]{2})|([^⟧]*)\*(\d+))⟧/u, text, fn
      _, point, "", "", "" -> <<String.to_integer(point, 16)::utf8>>
      _, "", byte, "", "" -> <<String.to_integer(byte, 16)>>
      _, "", "", text, times -> String.duplicate(text, String.to_integer(times))
    end)
  end

  defp result(%Result{} = result) do
    answer =
      case result.status do
        :error -> result.content |> visible_lines() |> Enum.map(&("! " <> &1))
        _ -> ["= " <> first_line(result.content)]
      end

    Enum.join(["> " <> command(result) | answer], "\n")
  end

  defp command(%Result{command: nil}), do: "(the whole reply)"
  defp command(%Result{name: nil, command: raw}), do: first_line(raw)

  defp command(%Result{name: name, command: raw}) do
    %Command{args: args, flags: flags} = Command.parse!(raw)
    flags = for {name, value} <- Enum.sort(flags), do: "--#{visible(name)}#{flag(value)}"
    Enum.join([name | Enum.map(args, &value/1)] ++ flags, " ")
  end

  defp flag(true), do: ""

  defp flag(values) when is_list(values) do
    if Enum.all?(values, &is_binary/1),
      do: " " <> Enum.map_join(values, " ", &value/1),
      else: " " <> value(values)
  end

  defp flag(value), do: " " <> value(value)

  defp value(text) when is_binary(text) do
    shown = String.slice(text, 0, @shown)
    more = String.length(text) - String.length(shown)
    more = if more > 0, do: "… and #{more} characters", else: ""
    visible(inspect(shown, binaries: :as_strings, printable_limit: :infinity)) <> more
  end

  # A value of a JSON object.
  defp value(other), do: "(#{inspect(other)})"

  defp first_line(text) do
    line = text |> String.split("\n", parts: 2) |> hd()
    shown = String.slice(line, 0, @shown)
    visible(shown) <> if(shown == text, do: "", else: " …")
  end

  defp visible_lines(""), do: []
  defp visible_lines(text), do: text |> String.split("\n") |> Enum.map(&first_line/1)

  # Characters that are invisible or ambiguous in the fixtures. Newer versions of Elixir escape
  # some of them in `inspect/1`.
  defp visible(text) do
    text =
      Regex.replace(~r/\\u([0-9A-F]{4})/, text, fn _, point ->
        <<String.to_integer(point, 16)::utf8>>
      end)

    Regex.replace(
      ~r/[\p{C}\x{A0}\x{AD}\x{2000}-\x{200F}\x{2028}-\x{202F}\x{2060}\x{3000}\x{FEFF}]/u,
      text,
      fn char ->
        <<point::utf8>> = char
        "⟦U+#{point |> Integer.to_string(16) |> String.pad_leading(4, "0")}⟧"
      end
    )
  end
end
