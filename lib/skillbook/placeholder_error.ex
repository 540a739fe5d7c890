defmodule Skillbook.PlaceholderError do
  @moduledoc """
  A placeholder in a command that stands for no result.

  ## Fields

    * `:kind` - `:failed` (the command gave an error), `:skipped` (it was not run), `:none` (no command before this one has that
      number, or there is none before it), or `:too_large`
    * `:reference` - what it stands for: the number of a command of the reply, or `:last`; in a workflow, the name in its braces
    * `:number` - for `:failed` and `:skipped`, the number of the command that has no result; for `:none`, that of the command
      which has the placeholder
    * `:most` - for `:too_large`, how many bytes all values of a command may have

  ## Examples

      iex> Exception.message(%Skillbook.PlaceholderError{kind: :failed, reference: :last, number: 2})
      "`{last}` has no value: command 2 gave an error. Write that command again as it should be, and this one behind it"
      iex> Exception.message(%Skillbook.PlaceholderError{kind: :none, reference: 3, number: 2})
      "`{3}` has no value: this is command 2 of the reply, and only those before it have a result. Name one of them, or write the value itself; as plain text it stands in quotes: \\"{3}\\""
  """

  @type t :: %__MODULE__{
          kind: :failed | :skipped | :none | :too_large,
          reference: non_neg_integer() | :last | String.t(),
          number: pos_integer() | nil,
          most: pos_integer() | nil
        }

  @enforce_keys [:kind, :reference]
  defexception [:kind, :reference, :number, :most]

  @impl true
  def message(%{kind: :failed} = error) do
    "`{#{error.reference}}` has no value: command #{error.number} gave an error. " <>
      "Write that command again as it should be, and this one behind it"
  end

  def message(%{kind: :skipped} = error) do
    "`{#{error.reference}}` has no value: command #{error.number} was not run. " <>
      "Write that command again if it is still wanted, and this one behind it"
  end

  def message(%{kind: :none, number: 1} = error) do
    "`{#{error.reference}}` has no value: this is the first command of the reply, and placeholders stand for results of " <>
      "the same reply. Write the value itself; #{as_text(error)}"
  end

  def message(%{kind: :none} = error) do
    "`{#{error.reference}}` has no value: this is command #{error.number} of the reply, and only those before it have a " <>
      "result#{if error.reference == 0, do: ", counted from 1"}. Name one of them, or write the value itself; #{as_text(error)}"
  end

  def message(%{kind: :too_large} = error) do
    "`{#{error.reference}}` is too long: all that placeholders of a command stand for may have #{error.most} bytes. " <>
      "Ask for less in the command that it stands for"
  end

  defp as_text(error), do: "as plain text it stands in quotes: \"{#{error.reference}}\""
end
