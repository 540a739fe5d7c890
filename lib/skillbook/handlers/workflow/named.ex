defmodule Skillbook.Handlers.Workflow.Named do
  @moduledoc false
  # The workflow that a command names.

  alias Skillbook.{Entry, FlagError, UnknownSkillError, View}

  @doc "The entry that `--name` names, if it is a workflow."
  @spec fetch(View.t(), String.t()) ::
          {:ok, Entry.t()} | {:error, UnknownSkillError.t() | FlagError.t()}
  def fetch(view, name) do
    with {:ok, entry} <- View.fetch(view, name), do: check(entry)
  end

  defp check(%Entry{kind: :command, handler: nil} = entry), do: {:ok, entry}

  defp check(%Entry{name: name}) do
    expected = "the name of a workflow, as `workflow.list` shows them"

    {:error,
     %FlagError{
       kind: :invalid,
       flag: "name",
       value: name,
       expected: expected,
       example: "workflows.report"
     }}
  end
end
