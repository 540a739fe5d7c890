defmodule Skillbook.Handlers.Workflows.DailyDigest do
  @moduledoc false
  # `workflows.daily_digest`: the day in one text, from the commands that the profile has. Each
  # part is a call of a command, with its own checks; one that fails is left out, with the reason.

  @behaviour Skillbook.Handler

  alias Skillbook.Reply.Pipeline
  alias Skillbook.{Command, Result, View}

  # Below the limit of `email.send`.
  @max_body 40_000

  @impl true
  def execute(flags, context) do
    {read, left_out} = flags |> parts(context) |> Enum.map(&read(&1, context)) |> split()
    digest = text(read, left_out)
    {notes, results} = context |> send_to(flags["recipient"], digest) |> sent()
    wishes = wishes(context)

    {:ok,
     Result.ok(Enum.join([digest | notes] ++ wishes, "\n\n"),
       data: %{parts: Map.new(read, &{&1.title, &1.text}), left_out: Map.new(left_out)},
       effects: for(%{status: :ok} <- results, do: :mail_sent),
       metadata: metadata(Enum.map(read, & &1.metadata) ++ Enum.map(results, & &1.metadata))
     )}
  end

  defp parts(flags, context) do
    today = context.now |> DateTime.to_date() |> Date.to_iso8601()
    tasks = %{"assignee" => "me", "sort" => "priority"}
    due = Map.merge(tasks, %{"due-after" => today, "due-before" => today})

    coming = %{
      "assignee" => "me",
      "sort" => "due_date",
      "due-after" => "tomorrow",
      "due-before" => to_string(flags["until"])
    }

    mail = %{"unread" => true, "after" => "yesterday", "label" => "important", "limit" => "5"}

    [
      {"Late", "tasks.search", Map.put(tasks, "overdue", true)},
      {"Today", "tasks.search", due},
      {"Coming", "tasks.search", coming},
      {"Calendar", "calendar.list", %{"date" => "today"}},
      {"Mail", "email.search", mail}
    ] ++ if(flags["include-weather"], do: [{"Weather", "weather.today", %{}}], else: [])
  end

  # A hidden command is one that does not exist.
  defp read({title, name, flags}, context) do
    case call(name, flags, context) do
      %Result{status: :ok, content: text, metadata: metadata} ->
        %{title: title, text: text, metadata: metadata}

      %Result{content: text} ->
        {title, text}

      nil ->
        {title, "there is no command `#{name}`"}
    end
  end

  defp split(parts), do: Enum.split_with(parts, &is_map/1)

  defp call(name, flags, context) do
    with {:ok, %{name: ^name, kind: :command}} <- View.fetch(context.view, name) do
      line = Command.line(%Command{name: name, raw: name, flags: flags})

      options =
        Map.take(context, [:now, :by, :agent, :workflow, :ask])
        |> Map.to_list()
        |> Keyword.merge(assigns: context.call_assigns, max_result: :infinity)

      {result, _whole} = Pipeline.command(context.view, line, &{:ok, &1}, options)
      result
    else
      _ -> nil
    end
  end

  defp text(read, left_out) do
    parts = for part <- read, do: "#{part.title}:\n#{indented(part.text)}"
    parts = if parts == [], do: ["There is nothing to tell."], else: parts

    # The three parts of tasks have the same reason.
    reasons =
      left_out
      |> Enum.group_by(&elem(&1, 1), &elem(&1, 0))
      |> Enum.sort_by(fn {_reason, titles} ->
        Enum.find_index(left_out, &(elem(&1, 0) == hd(titles)))
      end)

    left_out =
      if reasons == [],
        do: [],
        else: [
          "Left out:\n" <>
            Enum.map_join(reasons, "\n", fn {reason, titles} ->
              "  #{Enum.join(titles, ", ")}: #{reason |> indented() |> String.trim_leading()}"
            end)
        ]

    Enum.join(parts ++ left_out, "\n\n")
  end

  defp indented(text), do: "  " <> String.replace(String.trim(text), "\n", "\n  ")

  defp send_to(_context, nil, _digest), do: :not_asked

  defp send_to(context, recipient, digest) do
    day = context.now |> DateTime.to_date() |> Date.to_iso8601()
    body = String.slice(digest, 0, @max_body)
    flags = %{"to" => [recipient], "subject" => "Daily digest, #{day}", "body" => body}
    call("email.send", flags, context)
  end

  defp sent(:not_asked), do: {[], []}
  defp sent(nil), do: {["Not sent: there is no command `email.send`"], []}
  defp sent(%Result{status: :ok} = result), do: {[result.content], [result]}
  defp sent(%Result{} = result), do: {["Not sent: #{result.content}"], [result]}

  # Wishes of the user for the digest, which are not for the recipient of the mail.
  defp wishes(context) do
    flags = %{"query" => "daily digest", "category" => "preference", "limit" => "3"}

    case call("memory.search", flags, context) do
      %Result{status: :ok, data: %{memories: [_ | _]}, content: text} ->
        ["Wishes of the user for the digest:\n#{indented(text)}"]

      _ ->
        []
    end
  end

  # Texts of strangers stay marked, and calls that wait are reported.
  defp metadata(parts) do
    external = if Enum.any?(parts, & &1[:external]), do: %{external: true}, else: %{}

    case Enum.flat_map(parts, &List.wrap(&1[:pending])) do
      [] -> external
      pending -> Map.put(external, :pending, pending)
    end
  end
end
