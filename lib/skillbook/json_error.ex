defmodule Skillbook.JSONError do
  @moduledoc """
  A text that is no JSON.

  ## Fields

    * `:reason` - what is wrong with it
    * `:line`, `:column` - where, both from 1

  ## Examples

      iex> Exception.message(%Skillbook.JSONError{reason: "trailing comma", line: 4, column: 1})
      "line 4, column 1: trailing comma"
  """

  @type t :: %__MODULE__{reason: String.t(), line: pos_integer(), column: pos_integer()}

  @enforce_keys [:reason, :line, :column]
  defexception [:reason, :line, :column]

  @impl true
  def message(error), do: "line #{error.line}, column #{error.column}: #{error.reason}"
end
