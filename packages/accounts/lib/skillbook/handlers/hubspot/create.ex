defmodule Skillbook.Handlers.HubSpot.Create do
  @moduledoc false
  # `hubspot.create_contact` and so on: adds a record, together with its associations.

  @behaviour Skillbook.Handler

  alias Skillbook.{FlagError, ServiceError}
  alias Skillbook.Handlers.HubSpot.{API, Associations, Object, Pipelines, Show, Values}

  @impl true
  def execute(flags, context) do
    with {:ok, object} <- Object.of(context),
         {:ok, pairs} <- Values.pairs(flags),
         {:ok, call} <- API.call(context, object),
         {:ok, properties} <- Values.read(call, flags, pairs),
         :ok <- named(object, properties),
         {:ok, pipeline} <- Pipelines.properties(call, flags, nil),
         {:ok, associations} <- Associations.read(call, flags["associate"]),
         properties = properties |> Map.merge(pipeline) |> with_time(call),
         links = Associations.for_create(call, associations),
         {:ok, record} <- call |> API.create(properties, links) |> look(call, properties) do
      head = "Created #{object.one} #{record["id"]} at HubSpot"
      effect = Object.effect(object, :created)
      {:ok, Show.written(head, object, record, Pipelines.labels_by_id(call), effect)}
    end
  end

  # One of these is the name of a record in lists.
  @names %{"contact" => ~w(email firstname lastname), "company" => ~w(name domain)}

  defp named(object, properties) do
    names = Map.get(@names, object.one, [])

    if names == [] or Enum.any?(names, &(Map.get(properties, &1, "") != "")),
      do: :ok,
      else: {:error, %FlagError{kind: :missing_any, flags: names}}
  end

  # An address belongs to one contact. So if it is not known whether the contact was added, one
  # with this address and these values that is just as old is it. The minute is for clocks that
  # differ.
  defp look(
         {:error, %ServiceError{unclear: true}} = failed,
         call,
         %{"email" => email} = properties
       )
       when call.object.one == "contact" do
    since = DateTime.add(call.now, -60)

    with {:ok, %{"properties" => found} = record} <-
           API.get(call, email, ["createdate" | Map.keys(properties)]),
         true <- Map.take(found, Map.keys(properties)) == properties,
         {:ok, created, _} <- DateTime.from_iso8601(to_string(found["createdate"])),
         :gt <- DateTime.compare(created, since) do
      {:ok, record}
    else
      _ -> failed
    end
  end

  defp look(result, _call, _properties), do: result

  # Notes, tasks, calls and meetings need a time.
  defp with_time(properties, %{object: object, now: now}) do
    if Enum.any?(object.flags, &(elem(&1, 1) == "hs_timestamp")) do
      now = now |> DateTime.truncate(:second) |> DateTime.to_iso8601()
      Map.put_new(properties, "hs_timestamp", now)
    else
      properties
    end
  end
end
