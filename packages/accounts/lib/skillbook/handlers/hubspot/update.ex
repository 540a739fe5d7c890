defmodule Skillbook.Handlers.HubSpot.Update do
  @moduledoc false
  # `hubspot.update_contact` and so on: changes properties of a record, and adds associations.

  @behaviour Skillbook.Handler

  alias Skillbook.FlagError
  alias Skillbook.Handlers.HubSpot.{API, Associations, Object, Pipelines, Show, Values}
  alias Skillbook.Support.UntilError

  @impl true
  def execute(flags, context) do
    with {:ok, object} <- Object.of(context),
         :ok <- Object.ids(object, [flags["id"]]),
         :ok <- something(object, flags),
         {:ok, pairs} <- Values.pairs(flags),
         {:ok, call} <- API.call(context, object),
         {:ok, properties} <- Values.read(call, flags, pairs),
         {:ok, pipeline} <- Pipelines.properties(call, flags, flags["id"]),
         {:ok, associations} <- Associations.read(call, flags["associate"]),
         # The answer has the properties that were set, and the name only if it was one of them.
         {:ok, record} <- API.update(call, flags["id"], Map.merge(properties, pipeline)),
         :ok <- associate(call, record["id"], associations) do
      head = "Changed #{object.one} #{record["id"]} at HubSpot"
      effect = Object.effect(object, :updated)
      {:ok, Show.written(head, object, record, Pipelines.labels_by_id(call), effect)}
    end
  end

  defp something(object, flags) do
    own = object.flags |> Enum.map(&elem(&1, 0)) |> Enum.uniq()
    pipeline = if object.pipeline, do: ["stage", "pipeline"], else: []
    names = own ++ pipeline ++ ~w(owner set clear associate)

    if Enum.any?(names, &Map.has_key?(flags, &1)),
      do: :ok,
      else: {:error, %FlagError{kind: :missing_any, flags: names}}
  end

  # Associating twice is harmless, so the whole command may be repeated.
  defp associate(call, id, associations) do
    UntilError.each(associations, fn %{to: to} = one ->
      with {:error, error} <- API.associate(call, id, to, one.id, one.types) do
        {:error,
         "the properties of #{call.object.one} #{id} are set, but it is not associated with " <>
           "#{to.one} #{one.id}: #{Exception.message(error)}"}
      end
    end)
  end
end
