defmodule Skillbook.Handlers.HubSpot.Pipelines do
  @moduledoc false
  # Pipelines and stages of deals and tickets by their labels, which people see; HubSpot itself
  # takes ids.

  alias Skillbook.FlagError
  alias Skillbook.Handlers.HubSpot.API
  alias Skillbook.Support.External

  @max 20

  @doc """
  The properties for `--pipeline` and `--stage` of a new record, or of the record `id`. Without a
  pipeline a stage is one of the record's own, or else of the first pipeline.
  """
  @spec properties(API.call(), map(), String.t() | nil) :: {:ok, map()} | {:error, Exception.t()}
  def properties(%{object: %{pipeline: {in_pipeline, in_stage}}} = call, flags, id)
      when is_map_key(flags, "stage") or is_map_key(flags, "pipeline") or id == nil do
    with {:ok, pipelines} <- sorted(call),
         {:ok, own} <- own(call, flags, id),
         {:ok, pipeline} <- pipeline(call, pipelines, flags["pipeline"] || own),
         {:ok, stage} <- stage(pipeline, flags["stage"]) do
      {:ok, %{in_pipeline => pipeline["id"], in_stage => stage["id"]}}
    end
  end

  def properties(_call, _flags, _id), do: {:ok, %{}}

  defp sorted(call) do
    with {:ok, pipelines} <- API.pipelines(call),
         do: {:ok, Enum.sort_by(pipelines, &{&1["displayOrder"], &1["id"]})}
  end

  defp own(_call, %{"pipeline" => _named}, _id), do: {:ok, nil}
  defp own(_call, _flags, nil), do: {:ok, nil}

  defp own(%{object: %{pipeline: {property, _stage}}} = call, _flags, id) do
    with {:ok, record} <- API.get(call, id, [property]),
         do: {:ok, record["properties"][property]}
  end

  defp pipeline(call, [], nil),
    do: {:error, "HubSpot has no pipeline for #{call.object.many}"}

  defp pipeline(_call, [first | _], nil), do: {:ok, first}
  defp pipeline(_call, pipelines, name), do: find(pipelines, name, "pipeline", "a pipeline")

  defp stage(pipeline, nil), do: pipeline |> stages() |> hd_or("a stage")

  defp stage(pipeline, name) do
    where = "a stage of the pipeline #{External.line(pipeline["label"], 60)}"
    find(stages(pipeline), name, "stage", where)
  end

  defp hd_or([first | _], _name), do: {:ok, first}
  defp hd_or([], name), do: {:error, "the pipeline at HubSpot does not have #{name}"}

  defp stages(pipeline),
    do: Enum.sort_by(pipeline["stages"] || [], &{&1["displayOrder"], &1["id"]})

  defp find(list, name, flag, expected) do
    case matching(list, name) do
      [found | _] -> {:ok, found}
      [] -> FlagError.invalid(flag, name, "#{expected}: #{labels(list)}")
    end
  end

  # The id first, since a label may be that of another one.
  defp matching(list, name) do
    Enum.filter(list, &(&1["id"] == name)) ++
      Enum.filter(list, &(key(to_string(&1["label"])) == key(name)))
  end

  defp key(text), do: text |> String.downcase() |> String.replace(~r/[\s_-]+/u, " ")

  defp labels(list) do
    more = if length(list) > @max, do: ", …", else: ""
    Enum.map_join(Enum.take(list, @max), ", ", &External.line(&1["label"], 60)) <> more
  end

  @doc "The filters of a search for `--pipeline` and `--stage`."
  @spec filters(API.call(), map()) :: {:ok, [map()]} | {:error, Exception.t()}
  def filters(call, flags)
      when is_map_key(flags, "stage") or is_map_key(flags, "pipeline") do
    with {:ok, pipelines} <- sorted(call),
         {:ok, pipelines} <- narrowed(call, pipelines, flags["pipeline"]),
         {:ok, stages} <- all_stages(call, pipelines, flags["stage"]) do
      one =
        if flags["pipeline"],
          do: [
            %{
              propertyName: elem(call.object.pipeline, 0),
              operator: "EQ",
              value: hd(pipelines)["id"]
            }
          ],
          else: []

      {:ok, one ++ stages}
    end
  end

  def filters(_call, _flags), do: {:ok, []}

  defp narrowed(_call, pipelines, nil), do: {:ok, pipelines}

  defp narrowed(call, pipelines, name),
    do: with({:ok, pipeline} <- pipeline(call, pipelines, name), do: {:ok, [pipeline]})

  defp all_stages(_call, _pipelines, nil), do: {:ok, []}

  # Several pipelines may have a stage of this name.
  defp all_stages(call, pipelines, name) do
    stages = Enum.flat_map(pipelines, &stages/1)

    case matching(stages, name) do
      [] ->
        FlagError.invalid("stage", name, "a stage of a pipeline: #{labels(stages)}")

      found ->
        ids = found |> Enum.map(& &1["id"]) |> Enum.uniq()
        {:ok, [%{propertyName: elem(call.object.pipeline, 1), operator: "IN", values: ids}]}
    end
  end

  @doc "The labels of pipelines and stages by their ids, for answers; empty if they are not read."
  @spec labels_by_id(API.call()) :: %{optional({String.t(), String.t()}) => String.t()}
  def labels_by_id(%{object: %{pipeline: {in_pipeline, in_stage}}} = call) do
    case API.pipelines(call) do
      {:ok, pipelines} ->
        for pipeline <- pipelines,
            {name, one} <- [
              {in_pipeline, pipeline} | Enum.map(stages(pipeline), &{in_stage, &1})
            ],
            into: %{},
            do: {{name, one["id"]}, to_string(one["label"])}

      {:error, _error} ->
        %{}
    end
  end

  def labels_by_id(_call), do: %{}
end
