defmodule Skillbook.Handlers.Email.Search do
  @moduledoc false
  # `email.search`: finds mails.

  @behaviour Skillbook.Handler

  alias Skillbook.Calendar.{TimeZones, Words}
  alias Skillbook.Support.Count
  alias Skillbook.{Connections, Flags, Mail, Result}
  alias Skillbook.Handlers.Email.Show

  @max_words 32

  @impl true
  def execute(flags, context) do
    with {:ok, flags} <- Flags.cast(flags, "query", expected(), ~s("some text"), &terms/1),
         {:ok, zone} <- zone(context.assigns),
         query = query(flags, zone),
         {:ok, account} <- Connections.account(context, :mail),
         {:ok, found} <- Mail.search(account, query) do
      {:ok, Result.ok(text(found, query, flags), data: found, metadata: %{external: true})}
    end
  end

  # Days are those of the user, as for `calendar.*`.
  defp zone(%{timezone: name}) when is_binary(name) do
    with {:error, error} <- TimeZones.fetch(name) do
      {:error, "the user's time zone (:timezone of the assigns): #{Exception.message(error)}"}
    end
  end

  defp zone(_assigns), do: {:ok, "UTC"}

  defp query(flags, zone) do
    %{
      text: flags["query"] || [],
      from: flags["from"],
      to: flags["to"],
      subject: flags["subject"],
      after: midnight(flags["after"], zone),
      before: midnight(flags["before"], zone),
      unread: flags["unread"],
      label: flags["label"],
      limit: flags["limit"]
    }
  end

  defp midnight(nil, _zone), do: nil
  defp midnight(day, zone), do: day |> Words.midnight(zone) |> DateTime.shift_zone!("Etc/UTC")

  # Words and quoted phrases; those after a dash must be absent.
  defp terms(text) do
    terms =
      for [piece] <- Regex.scan(~r/-?"[^"]*"|[^\s"]+/u, text),
          term = term(piece),
          elem(term, 1) =~ ~r/[\p{L}\p{N}]/u,
          do: term

    if length(terms) in 1..@max_words, do: {:ok, terms}, else: :error
  end

  defp term("-" <> text), do: {:without, String.trim(text, "\"")}
  defp term(text), do: {:with, String.trim(text, "\"")}

  defp expected, do: "text with 1 to #{@max_words} words or phrases"

  defp text(%{messages: []}, query, flags), do: "No mails found: #{describe(query, flags)}"

  defp text(%{messages: messages, more: more}, query, flags) do
    count = Count.text(length(messages), "mail")
    more? = if more, do: ["There are more; narrow the search, or raise --limit (at most 100)."]
    head = "#{count}, the latest first: #{describe(query, flags)}"
    lines = [head] ++ Enum.map(messages, &Show.summary/1) ++ (more? || []) ++ [Show.note()]
    Enum.join(lines, "\n")
  end

  defp describe(query, flags) do
    words =
      for {kind, text} <- query.text,
          do: if(kind == :without, do: "without ", else: "") <> shown(text)

    conditions =
      [
        query.from && "from #{shown(query.from)}",
        query.to && "to #{shown(query.to)}",
        query.subject && "subject #{shown(query.subject)}",
        flags["after"] && "since #{flags["after"]}",
        flags["before"] && "before #{flags["before"]}",
        query.unread == true && "unread",
        query.unread == false && "read",
        query.label && "label #{shown(query.label)}"
      ]
      |> Enum.filter(& &1)

    case words ++ conditions do
      [] -> "all of them"
      all -> Enum.join(all, ", ")
    end
  end

  defp shown(text), do: inspect(text, printable_limit: 80)
end
