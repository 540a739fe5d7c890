defmodule Skillbook.WorkflowError do
  @moduledoc """
  Returned when a workflow cannot run, be built or be deleted, or stopped before its end.

  ## Fields

    * `:kind` - the reason:
      * `:page` - the page cannot run
      * `:build` - the page was not written, since it could not run
      * `:value` - a placeholder has no value
      * `:depth` - too many workflows are nested
      * `:stopped` - a step failed
      * `:steps`, `:time` - this limit was reached
      * `:agent` - the agent that followed the page did not finish
      * `:elsewhere` - the page to delete is not in the folder for workflows
      * `:not_built` - the page to delete was built by another profile
    * `:name` - the name of the workflow
    * `:step` - the number of the step concerned, or `nil`
    * `:text` - a description; for `:stopped`, `:steps`, `:time` and `:agent` the report of the
      run

  ## Examples

      iex> text = "step 2 cannot use {2}: only earlier steps have a result"
      iex> error = %Skillbook.WorkflowError{kind: :page, name: "mail.digest", step: 2, text: text}
      iex> Exception.message(error)
      "`mail.digest` was not run: step 2 cannot use {2}: only earlier steps have a result"
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
    "`#{name}` was not deleted: #{text}, and commands delete only pages in the folder for " <>
      "workflows (the book's `write_to:`)"
  end

  def message(%{kind: :not_built, name: name}) do
    "`#{name}` was not deleted: another profile built it, and only that profile, or one that " <>
      "may see everything, can delete it"
  end

  def message(%{kind: :build, name: name, text: text}), do: "`#{name}` was not built: #{text}"

  def message(%{kind: kind, text: text}) when kind in [:stopped, :steps, :time, :agent], do: text
  def message(%{name: name, text: text}), do: "`#{name}` was not run: #{text}"
end
