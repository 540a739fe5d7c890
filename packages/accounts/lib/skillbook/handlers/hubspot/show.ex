defmodule Skillbook.Handlers.HubSpot.Show do
  @moduledoc false
  # Records as text. All their values are texts from outside.

  alias Skillbook.Handlers.HubSpot.{Object, Text}
  alias Skillbook.Result
  alias Skillbook.Support.{Count, External}

  # Characters of a value in a list, of a value of a record alone, and of its body.
  @short 80
  @long 500
  @body 10_000

  @doc "A list of records, with how many there are."
  @spec list(Object.t(), [map()], non_neg_integer(), [String.t()], map()) :: Result.t()
  def list(object, [], _total, _properties, _labels),
    do: Result.ok("No #{object.many} found at HubSpot.", data: %{records: [], total: 0})

  def list(object, records, total, properties, labels) do
    shown = length(records)
    count = Count.text(total, object.one, object.many)
    count = if total > shown, do: "#{shown} of #{count}", else: count
    names = Enum.uniq(object.line ++ properties)
    lines = Enum.map_join(records, "\n", &line(object, &1, names, labels))
    text = External.block("#{count} at HubSpot", lines, max: 40_000)

    text = Enum.join([text | Count.more(total - shown, 100)], "\n")
    ok(text, %{records: records, total: total})
  end

  @doc "A record alone, with all that is known about it."
  @spec one(Object.t(), [map()], [String.t()], map(), [String.t()]) :: Result.t()
  def one(object, records, properties, labels, missing) do
    blocks = Enum.map(records, &whole(object, &1, properties, labels))

    gone =
      if missing == [],
        do: [],
        else: ["HubSpot has no #{object.many} with these ids: #{Enum.join(missing, ", ")}"]

    ok(Enum.join(blocks ++ gone, "\n\n"), %{records: records, total: length(records)})
  end

  @doc "The record that a command wrote."
  @spec written(String.t(), Object.t(), map(), map(), atom()) :: Result.t()
  def written(head, object, record, labels, effect) do
    line = line(object, record, object.line, labels)

    Result.ok(External.block(head, line),
      data: record,
      effects: [effect],
      metadata: %{external: true}
    )
  end

  defp ok(text, data), do: Result.ok(text, data: data, metadata: %{external: true})

  defp line(object, record, names, labels) do
    values = for name <- names, text = value(record, name, labels), do: "#{name} #{text}"
    title = title(object, record)
    Enum.join(["#{record["id"]} #{title}" | values], ", ")
  end

  defp title(object, record) do
    texts = for name <- object.title, text = property(record, name), do: text

    case Enum.join(texts, " ") do
      "" -> "(no name)"
      text -> text |> plain(object) |> External.line(@short)
    end
  end

  defp plain(text, %{body: body, title: [body]}), do: Text.plain(text)
  defp plain(text, _object), do: text

  defp value(record, name, labels) do
    case property(record, name) do
      nil -> nil
      text -> External.line(Map.get(labels, {name, text}, text), @short)
    end
  end

  defp whole(object, record, properties, labels) do
    names = Enum.uniq(Object.shown(object, :one) ++ properties) -- List.wrap(object.body)

    values =
      for name <- names, text = property(record, name) do
        "#{name}: #{External.line(Map.get(labels, {name, text}, text), @long)}"
      end

    body = if object.body, do: body(property(record, object.body)), else: []
    lines = values ++ associated(record) ++ body
    External.block("#{object.one} #{record["id"]} at HubSpot", Enum.join(lines, "\n"), max: @body)
  end

  defp body(nil), do: []
  defp body(html), do: ["", Text.plain(html)]

  defp associated(record) do
    for {name, %{"results" => [_ | _] = results}} <- Enum.sort(record["associations"] || %{}) do
      ids = results |> Enum.map(&to_string(&1["id"])) |> Enum.uniq()
      rest = if length(ids) > 20, do: " and #{length(ids) - 20} more", else: ""
      "#{name}: #{ids |> Enum.take(20) |> Enum.join(", ")}#{rest}"
    end
  end

  defp property(record, name) do
    case record["properties"] do
      %{^name => text} when is_binary(text) and text != "" -> text
      _ -> nil
    end
  end
end
