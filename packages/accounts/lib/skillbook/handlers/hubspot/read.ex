defmodule Skillbook.Handlers.HubSpot.Read do
  @moduledoc false
  # `hubspot.contacts`, `hubspot.deals` and so on: finds records, or shows some of them.

  @behaviour Skillbook.Handler

  alias Skillbook.Handlers.HubSpot.{API, Object, Pipelines, Properties, Show}
  alias Skillbook.FlagError

  # Flags of words that a property has.
  @words ~w(status priority direction outcome)
  @searching ~w(query where sort contact company deal stage pipeline) ++ @words

  @impl true
  def execute(flags, context) do
    with {:ok, object} <- Object.of(context),
         :ok <- check(flags),
         :ok <- Object.ids(object, flags["id"] || []),
         {:ok, conditions} <- Properties.conditions(flags["where"] || []),
         {:ok, call} <- API.call(context, object),
         {:ok, definitions} <- definitions(call, flags),
         names = Enum.map(flags["properties"] || [], &Properties.norm/1),
         :ok <- Properties.known(names, definitions, "properties", call) do
      if flags["id"],
        do: show(call, flags["id"], names),
        else: search(call, flags, conditions, names, definitions)
    end
  end

  defp check(%{"id" => _ids} = flags) do
    case Enum.filter(@searching, &Map.has_key?(flags, &1)) do
      [] ->
        :ok

      [first | _] ->
        text = "--id shows records that are known, and the others search"
        FlagError.conflict(["id", first], text)
    end
  end

  defp check(_flags), do: :ok

  # Only those that the command names itself are looked up.
  defp definitions(call, flags) do
    if flags["where"] || flags["properties"] || flags["sort"],
      do: Properties.definitions(call),
      else: {:ok, %{}}
  end

  defp show(call, [id], names) do
    with {:ok, record} <- API.get(call, id, Object.shown(call.object, :one) ++ names),
         do: {:ok, Show.one(call.object, [record], names, Pipelines.labels_by_id(call), [])}
  end

  defp show(call, ids, names) do
    {addresses, ids} = Enum.split_with(ids, &String.contains?(&1, "@"))

    case addresses do
      [] ->
        with {:ok, records} <- API.get_all(call, ids, Object.shown(call.object, :one) ++ names) do
          missing = ids -- Enum.map(records, & &1["id"])
          {:ok, Show.one(call.object, records, names, Pipelines.labels_by_id(call), missing)}
        end

      [address | _] ->
        FlagError.invalid("id", address, "one address alone, or several ids", "101 102")
    end
  end

  defp search(call, flags, conditions, names, definitions) do
    with {:ok, sorts} <- sorts(call, flags, definitions),
         {:ok, filters} <- Properties.filters(conditions, definitions, call),
         {:ok, stages} <- Pipelines.filters(call, flags),
         filters = filters ++ stages ++ associated(flags) ++ words(call.object, flags),
         :ok <- few(filters),
         body = body(flags, filters, sorts, Object.shown(call.object, :list) ++ names),
         {:ok, records, total} <- API.search(call, body) do
      labels = if records == [], do: %{}, else: Pipelines.labels_by_id(call)
      {:ok, Show.list(call.object, records, total, names, labels)}
    end
  end

  defp sorts(_call, %{"query" => _words} = flags, _definitions)
       when not is_map_key(flags, "sort"),
       do: {:ok, []}

  defp sorts(call, flags, definitions) do
    case flags["sort"] do
      nil ->
        {:ok, [call.object.sort]}

      text ->
        {minus, name} =
          case text do
            "-" <> name -> {"-", name}
            name -> {"", name}
          end

        with :ok <- Properties.known([name], definitions, "sort", call),
             do: {:ok, [minus <> Properties.norm(name)]}
    end
  end

  defp associated(flags) do
    for name <- ~w(contact company deal), id = flags[name] do
      %{propertyName: "associations.#{name}", operator: "EQ", value: to_string(id)}
    end
  end

  defp words(object, flags) do
    for {flag, property, :upper} <- object.flags, flag in @words, words = flags[flag] do
      %{propertyName: property, operator: "IN", values: Enum.map(words, &String.upcase/1)}
    end
  end

  # A group of filters has at most six: they all have to be true.
  defp few(filters) when length(filters) <= 6, do: :ok

  defp few(_filters),
    do: {:error, "HubSpot takes at most 6 conditions in one search; leave some out"}

  defp body(flags, filters, sorts, properties) do
    body = %{limit: flags["limit"], properties: properties, sorts: sorts}
    body = if filters == [], do: body, else: Map.put(body, :filterGroups, [%{filters: filters}])
    if query = flags["query"], do: Map.put(body, :query, query), else: body
  end
end
