defmodule Skillbook.WorkflowError do
  @moduledoc """
  A workflow that cannot be run, or that stopped.

  ## Fields

    * `:kind` - `:page` (its page cannot be run), `:build` (its page was not written, for it could not be run), `:value` (a placeholder has no value), `:depth` (too many workflows are inside
      of each other), `:stopped` (a step gave an error), `:steps` or `:time` (a limit was reached), `:elsewhere` (its page is not
      in the folder that workflows are written to), `:not_built` (somebody else built it), `:agent` (the agent that carried it out was not done)
    * `:name` - the workflow
    * `:step` - the number of the step that it is about, or `nil`
    * `:text` - what is wrong; for `:stopped`, `:steps`, `:time` and `:agent` what was done, step by step

  ## Examples

      iex> text = "step 2 cannot use {2}, for only steps before it have a result"
      iex> Exception.message(%Skillbook.WorkflowError{kind: :page, name: "workflows.digest", step: 2, text: text})
      "`workflows.digest` was not run: step 2 cannot use {2}, for only steps before it have a result"
  """

  @type t :: %__MODULE__{
          kind:
            :page
            | :build
            | :value
            | :depth
            | :stopped
            | :steps
            | :time
            | :elsewhere
            | :not_built
            | :agent,
          name: String.t(),
          step: pos_integer() | nil,
          text: String.t()
        }

  @enforce_keys [:kind, :name, :text]
  defexception [:kind, :name, :step, :text]

  @impl true
  def message(%{kind: :elsewhere, name: name, text: text}) do
    "`#{name}` was not deleted: #{text}, and only pages in the folder that workflows are written to (the book's `write_to:`) are " <>
      "deleted by command"
  end

  def message(%{kind: :not_built, name: name}) do
    "`#{name}` was not deleted: it was built by somebody else, and only who built a workflow, or may see everything, deletes it"
  end

  def message(%{kind: :build, name: name, text: text}), do: "`#{name}` was not built: #{text}"

  def message(%{kind: kind, text: text}) when kind in [:stopped, :steps, :time, :agent], do: text
  def message(%{name: name, text: text}), do: "`#{name}` was not run: #{text}"
end
