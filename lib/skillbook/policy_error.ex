defmodule Skillbook.PolicyError do
  @moduledoc """
  A command that changes something, and that the profile's `:writes` did not let run. Nothing was done.

  ## Fields

    * `:kind` - `:delegate` (it is to be handed to an agent), `:deny` (the profile runs no such commands), `:denied` (who was
      asked said no) or `:unanswered` (nobody could be asked, or the answer could not be had)
    * `:name` - the skill's name
    * `:dispatch` - for `:delegate`, whether the profile sees `agent.dispatch`
    * `:text` - for `:denied`, what was said with it, or `nil`

  ## Examples

      iex> Exception.message(%Skillbook.PolicyError{kind: :delegate, name: "email.send", dispatch: true})
      "`email.send` was not run: it changes something, and such commands are handed to an agent. Write: agent.dispatch --mission \\"WHAT IS TO BE DONE\\" --skills email.send"
  """

  @type t :: %__MODULE__{
          kind: :delegate | :deny | :denied | :unanswered,
          name: String.t(),
          dispatch: boolean(),
          text: String.t() | nil
        }

  defexception [:kind, :name, :text, dispatch: false]

  @impl true
  def message(%{name: name} = error), do: "`#{name}` was not run: #{why(error)}"

  defp why(%{kind: :delegate, dispatch: true} = error) do
    "it changes something, and such commands are handed to an agent. " <>
      "Write: agent.dispatch --mission \"WHAT IS TO BE DONE\" --skills #{error.name}"
  end

  defp why(%{kind: :delegate}) do
    "it changes something, and such commands are handed to an agent, but there is none here. " <>
      "Tell the user what is to be done."
  end

  defp why(%{kind: :deny}) do
    "it changes something, and only commands that read may run here. " <>
      "Do not try again; tell the user what you would have done."
  end

  defp why(%{kind: :denied, text: nil}) do
    "it changes something, and whoever was asked did not allow it. Do not try again without being told to."
  end

  defp why(%{kind: :denied, text: text}) do
    "it changes something, and whoever was asked did not allow it: #{text}"
  end

  defp why(%{kind: :unanswered}) do
    "it changes something, and nobody could be asked whether it may. Tell the user what you would have done."
  end
end
