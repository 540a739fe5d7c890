defmodule Skillbook.Handlers.Workflow.List do
  @moduledoc false
  @behaviour Skillbook.Handler

  alias Skillbook.{Flags, Result, View}

  @impl true
  def execute(flags, context) do
    with {:ok, flags} <- Flags.known(flags, ["domain"]),
         {:ok, flags} <- Flags.cast_args(flags, context.command.args, []),
         {:ok, flags} <- Flags.cast_text(flags, "domain", line: true) do
      # A command without a handler is a page to follow, which is what a workflow is, whatever its domain.
      workflows =
        for entry <- View.entries(context.view, kind: :command),
            entry.handler == nil,
            flags["domain"] in [nil, entry.domain],
            do: Map.take(entry, [:name, :description, :schedule, :timezone])

      {:ok, Result.ok(text(workflows, flags["domain"]), data: workflows)}
    end
  end

  defp text(workflows, domain) do
    scope = if domain, do: " in the domain #{domain}", else: ""

    case length(workflows) do
      0 -> "No workflows#{scope}; `workflow.build` writes one"
      1 -> Enum.join(["1 workflow#{scope}:" | Enum.map(workflows, &line/1)], "\n")
      n -> Enum.join(["#{n} workflows#{scope}:" | Enum.map(workflows, &line/1)], "\n")
    end
  end

  defp line(%{schedule: nil} = workflow), do: "#{workflow.name} - #{workflow.description}"

  defp line(workflow) do
    schedule = [workflow.schedule, workflow.timezone] |> Enum.filter(& &1) |> Enum.join(" ")
    "#{workflow.name} [#{schedule}] - #{workflow.description}"
  end
end
