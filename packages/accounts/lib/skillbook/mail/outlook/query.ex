defmodule Skillbook.Mail.Outlook.Query do
  @moduledoc false
  # The query of a search. Graph takes a filter, which is exact, or a search of words, and not
  # both: https://learn.microsoft.com/graph/search-query-parameter. With words, the other
  # conditions are checked in what the search found.
  #
  # The language of searches (KQL) has no escape within quotes, so each value is in quotes,
  # without quotes and stars of its own.

  alias Skillbook.Connections.Graph
  alias Skillbook.Mail

  @typedoc "A label that is no folder: a mark, or a category."
  @type mark :: :unread | :starred | :important | {:category, String.t()}

  @doc """
  The parameters of a search for messages with these marks, and the check of what it finds;
  `:none` if nothing can be found.

      iex> query = %{text: [with: "Q1 report", without: "draft"], from: "bob@co.com", to: nil}
      iex> query = Map.merge(query, %{subject: nil, unread: nil, before: nil, after: nil})
      iex> {parameters, _keep} = Skillbook.Mail.Outlook.Query.parameters(query, [])
      iex> parameters
      ["$search": ~S("\\"Q1 report\\" AND NOT \\"draft\\" AND from:\\"bob@co.com\\"")]
      iex> query = %{query | text: [], from: nil, after: ~U[2026-02-01 00:00:00Z]}
      iex> {parameters, _keep} = Skillbook.Mail.Outlook.Query.parameters(query, [:unread])
      iex> parameters
      ["$filter": "receivedDateTime ge 2026-02-01T00:00:00Z and isRead eq false",
       "$orderby": "receivedDateTime desc"]
  """
  @spec parameters(Mail.query(), [mark()]) :: {keyword(), (map() -> boolean())} | :none
  def parameters(query, marks) do
    marks = if query.unread, do: [:unread | marks], else: marks
    texts = for({kind, text} <- query.text, do: {kind, phrase(text)})
    wanted = for({:with, text} <- texts, do: text) ++ fields(query)

    cond do
      "\"\"" in wanted -> :none
      texts == [] and fields(query) == [] -> {filter(query, marks), fn _message -> true end}
      true -> {search(query, texts), &keep?(&1, query, marks)}
    end
  end

  defp fields(query),
    do: for(text <- [query.from, query.to, query.subject], text != nil, do: phrase(text))

  # Words

  defp search(query, texts) do
    conditions =
      for({:with, text} <- texts, do: text) ++
        for({:without, text} <- texts, text != "\"\"", do: "NOT " <> text) ++
        [
          query.from && "from:" <> phrase(query.from),
          query.to && "(to:#{phrase(query.to)} OR cc:#{phrase(query.to)})",
          query.subject && "subject:" <> phrase(query.subject),
          # Only days, of an unknown time zone.
          query.after && "received>=#{day(query.after, -1)}",
          query.before && "received<=#{day(query.before, 1)}"
        ]

    text = conditions |> Enum.filter(& &1) |> Enum.join(" AND ")
    ["$search": "\"" <> String.replace(text, "\"", "\\\"") <> "\""]
  end

  defp day(time, days), do: time |> DateTime.to_date() |> Date.add(days) |> Date.to_iso8601()

  defp phrase(text) do
    words = text |> String.replace(~r/["\\*\p{Cc}\p{Cf}\p{Z}]+/u, " ") |> String.trim()
    if words =~ ~r/[\p{L}\p{N}]/u, do: "\"" <> words <> "\"", else: "\"\""
  end

  defp keep?(message, query, marks) do
    received = time(message["receivedDateTime"])

    Enum.all?(marks, &mark?(message, &1)) and
      (query.unread != false or message["isRead"] == true) and
      (query.after == nil or (received != nil and not earlier?(received, query.after))) and
      (query.before == nil or (received != nil and earlier?(received, query.before)))
  end

  defp earlier?(one, other), do: DateTime.compare(one, other) == :lt

  defp mark?(message, :unread), do: message["isRead"] == false
  defp mark?(message, :starred), do: match?(%{"flag" => %{"flagStatus" => "flagged"}}, message)
  defp mark?(message, :important), do: message["importance"] == "high"

  defp mark?(message, {:category, name}),
    do: is_list(message["categories"]) and name in message["categories"]

  defp time(text) do
    with text when is_binary(text) <- text,
         {:ok, time, _offset} <- DateTime.from_iso8601(text),
         do: time,
         else: (_ -> nil)
  end

  # Filters

  # A property of the order must be the first one of the filter.
  defp filter(query, marks) do
    conditions =
      [
        "receivedDateTime ge " <> iso(query.after || ~U[1900-01-01 00:00:00Z]),
        query.before && "receivedDateTime lt " <> iso(query.before),
        query.unread == false && "isRead eq true"
      ] ++ Enum.map(marks, &condition/1)

    ["$filter": conditions |> Enum.filter(& &1) |> Enum.join(" and ")] ++
      ["$orderby": "receivedDateTime desc"]
  end

  defp iso(time), do: time |> DateTime.truncate(:second) |> DateTime.to_iso8601()

  defp condition(:unread), do: "isRead eq false"
  defp condition(:starred), do: "flag/flagStatus eq 'flagged'"
  defp condition(:important), do: "importance eq 'high'"
  defp condition({:category, name}), do: category(name)

  @doc "The filter for messages of a category."
  @spec category(String.t()) :: String.t()
  def category(name), do: "categories/any(c:c eq #{Graph.quoted(name)})"
end
