defmodule Skillbook.Handlers.Skills.Search do
  @moduledoc false
  # `skills.search`: finds the entries that a model is offered, for prompts that leave some out.

  @behaviour Skillbook.Handler

  alias Skillbook.Result

  @kinds %{"command" => :command, "skill" => :skill, "note" => :note}

  @impl true
  def execute(%{"query" => query, "limit" => limit} = flags, %{view: view}) do
    hits = Skillbook.search(view, query, limit: limit, kind: @kinds[flags["kind"]])
    entries = Enum.map(hits, &Map.take(&1, [:name, :kind, :title, :description]))
    {:ok, Result.ok(text(hits, query), data: %{entries: entries})}
  end

  defp text([], query) do
    "No entries found: #{inspect(query, printable_limit: 80)}. `get_skill` lists everything."
  end

  defp text(hits, _query) do
    lines = for hit <- hits, do: "- #{hit.name} (#{hit.kind})#{about(hit)}"
    Enum.join(lines ++ ["`get_skill: NAME` shows one in full."], "\n")
  end

  defp about(%{description: "", title: title, name: name}) when title in [nil, name], do: ""
  defp about(%{description: "", title: title}), do: ": #{line(title)}"
  defp about(%{description: description}), do: ": #{line(description)}"

  defp line(text), do: text |> String.split() |> Enum.join(" ")
end
