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
      {:ok, Show.written(head, object, record, Pipelines.labels_by_id(call), effect(object))}
    end
  end

  defp something(object, flags) do
    own = Enum.map(object.flags, &elem(&1, 0))
    pipeline = if object.one == "deal", do: ["stage", "pipeline"], else: []
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

  defp effect(%{one: "contact"}), do: :contact_updated
  defp effect(%{one: "company"}), do: :company_updated
  defp effect(%{one: "deal"}), do: :deal_updated
  defp effect(%{one: "note"}), do: :note_updated
  defp effect(%{one: "task"}), do: :task_updated
end
