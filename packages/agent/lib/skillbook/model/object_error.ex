defmodule Skillbook.ObjectError do
  @moduledoc """
  Returned when a model's answer is not the object that was asked for.

  ## Fields

    * `:path` - the place in the answer, such as `skills[0].name`; `""` for the whole answer
    * `:expected` - the expected value
    * `:got` - the value in the answer, shortened
    * `:text` - the answer

  ## Examples

      iex> error = %Skillbook.ObjectError{path: "skills[0].name", expected: "text", got: "3"}
      iex> Exception.message(error)
      "the model's answer, at skills[0].name: expected text, got: 3"
  """

  @type t :: %__MODULE__{
          path: String.t(),
          expected: String.t(),
          got: String.t(),
          text: String.t()
        }

  @enforce_keys [:expected, :got]
  defexception [:expected, :got, path: "", text: ""]

  @impl true
  def message(%{path: "", expected: expected, got: got}),
    do: "the model's answer: expected #{expected}, got: #{got}"

  def message(%{path: path, expected: expected, got: got}),
    do: "the model's answer, at #{path}: expected #{expected}, got: #{got}"
end
