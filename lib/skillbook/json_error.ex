defmodule Skillbook.JSONError do
  @moduledoc """
  A text that is no JSON.

  ## Fields

    * `:reason` - what is wrong with it
    * `:line`, `:column` - where, both from 1
    * `:path` - the keys and the numbers, from 0, that lead to the value; empty for the text as a whole

  ## Examples

      iex> Exception.message(%Skillbook.JSONError{reason: "trailing comma", line: 4, column: 1})
      "line 4, column 1: trailing comma"
  """

  @type t :: %__MODULE__{
          reason: String.t(),
          line: pos_integer(),
          column: pos_integer(),
          path: [String.t() | non_neg_integer()]
        }

  @enforce_keys [:reason, :line, :column]
  defexception [:reason, :line, :column, path: []]

  @impl true
  def message(error), do: "line #{error.line}, column #{error.column}: #{error.reason}"
end
