defmodule Skillbook.ConfigError do
  @moduledoc """
  A configuration file that cannot be read, or says something that means nothing.

  ## Fields

    * `:path` - the file
    * `:line`, `:column` - where in the file, both from 1, the column in characters; `nil` if the file cannot be read
    * `:at` - which of its values is meant, such as `"skills[1].available[0]"`; `nil` for the whole, and where the text is
      no JSON
    * `:reason` - what was expected and what came

  ## Examples

      iex> Exception.message(%Skillbook.ConfigError{path: "agents.json", line: 3, column: 7, reason: "expected `:`"})
      "agents.json:3:7: expected `:`"

      iex> Exception.message(%Skillbook.ConfigError{path: "agents.json", line: 4, column: 14, at: "skills[1].root", reason: "expected a path, got: 3"})
      "agents.json:4:14: skills[1].root: expected a path, got: 3"
  """

  @type t :: %__MODULE__{
          path: Path.t(),
          line: pos_integer() | nil,
          column: pos_integer() | nil,
          at: String.t() | nil,
          reason: String.t()
        }

  @enforce_keys [:path, :reason]
  defexception [:path, :line, :column, :at, :reason]

  @impl true
  def message(error) do
    place = [error.path, error.line, error.column] |> Enum.reject(&is_nil/1) |> Enum.join(":")
    [place, error.at, error.reason] |> Enum.reject(&is_nil/1) |> Enum.join(": ")
  end
end
