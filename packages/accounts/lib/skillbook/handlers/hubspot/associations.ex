defmodule Skillbook.Handlers.HubSpot.Associations do
  @moduledoc false
  # Associations by the names of kinds and labels: `company:55`, `contact:101:Decision maker`.

  alias Skillbook.FlagError
  alias Skillbook.Handlers.HubSpot.{API, Object}
  alias Skillbook.Support.{External, UntilError}

  @type t :: %{to: Object.t(), id: String.t(), types: [map()]}

  @doc "Reads the values of `--associate`, and finds the types of their labels."
  @spec read(API.call(), [String.t()] | nil) :: {:ok, [t()]} | {:error, Exception.t()}
  def read(_call, nil), do: {:ok, []}

  def read(call, texts) do
    UntilError.map(texts, fn text ->
      with {:ok, to, id, label} <- parse(call, text),
           {:ok, types} <- types(call, to, label),
           do: {:ok, %{to: to, id: id, types: types}}
    end)
  end

  defp parse(call, text) do
    allowed = Object.associated(call.object)

    with [_, kind, id, label] <-
           Regex.run(~r/\A\s*(\w+):(\d{1,20})(?::(.{1,100}))?()\z/su, text) |> four(),
         kind = String.downcase(kind),
         name when name != nil <- Enum.find(allowed, &(kind in [&1, Object.fetch!(&1).many])) do
      {:ok, Object.fetch!(name), id, label}
    else
      _ ->
        kinds = Enum.join(allowed, ", ")
        expected = "KIND:ID or KIND:ID:LABEL, with one of the kinds #{kinds}"
        FlagError.invalid("associate", text, expected, "#{hd(allowed)}:101")
    end
  end

  defp four([all, kind, id, "", _end]), do: [all, kind, id, nil]
  defp four([all, kind, id, label, _end]), do: [all, kind, id, String.trim(label)]
  defp four(nil), do: nil

  defp types(_call, _to, nil), do: {:ok, []}

  defp types(call, to, label) do
    with {:ok, labels} <- API.labels(call, to) do
      named = for %{"label" => text} = one when is_binary(text) <- labels, do: one

      case Enum.find(named, &(String.downcase(&1["label"]) == String.downcase(label))) do
        nil -> FlagError.invalid("associate", label, expected(call, to, named))
        one -> {:ok, [type(one["category"], one["typeId"])]}
      end
    end
  end

  defp expected(call, to, []),
    do: "KIND:ID: associations of a #{call.object.one} with a #{to.one} have no labels at HubSpot"

  defp expected(_call, _to, named) do
    labels = named |> Enum.take(20) |> Enum.map_join(", ", &External.line(&1["label"], 60))
    "KIND:ID:LABEL with one of the labels #{labels}"
  end

  defp type(category, id), do: %{associationCategory: category, associationTypeId: id}

  @doc "The associations of a new record, as a request has them."
  @spec for_create(API.call(), [t()]) :: [map()]
  def for_create(call, associations) do
    for %{to: to, id: id, types: types} <- associations do
      default = type("HUBSPOT_DEFINED", Object.association(call.object, to))
      %{to: %{id: id}, types: if(types == [], do: [default], else: types)}
    end
  end
end
