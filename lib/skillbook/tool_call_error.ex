defmodule Skillbook.ToolCallError do
  @moduledoc """
  A tool call that cannot be read, or calls a tool that the view does not have.

  ## Fields

    * `:kind` - `:unknown`, no such tool; `:arguments`, they are no JSON object; `:call`, it has no name
    * `:name` - the tool's name as it was called, or `nil`
    * `:reason` - what is wrong with the arguments
    * `:example` - arguments to write instead, as JSON
    * `:suggestions` - up to three tools' names, the closest first

  ## Examples

      iex> Exception.message(%Skillbook.ToolCallError{kind: :unknown, name: "email__sned", suggestions: ["email__send"]})
      ~s(unknown tool "email__sned"; did you mean email__send? To list what there is, call get_skill without arguments)

      iex> error = %Skillbook.ToolCallError{kind: :arguments, name: "email__send", reason: "expected one JSON object, got a list"}
      iex> Exception.message(%{error | example: ~s({"to": "VALUE"})})
      ~s(the arguments of email__send: expected one JSON object, got a list. Write for example: {"to": "VALUE"})

      iex> Exception.message(%Skillbook.ToolCallError{kind: :call})
      "expected a tool call with a name and arguments. Call for example get_skill without arguments"
  """

  @type t :: %__MODULE__{
          kind: :unknown | :arguments | :call,
          name: String.t() | nil,
          reason: String.t() | nil,
          example: String.t(),
          suggestions: [String.t()]
        }

  @enforce_keys [:kind]
  defexception [:kind, :name, :reason, example: "{}", suggestions: []]

  # A name can be as long as a whole call that went wrong.
  @shown 100

  @impl true
  def message(%{kind: :unknown} = error) do
    "unknown tool #{inspect(shown(error.name))}#{offer(error.suggestions)} To list what there is, " <>
      "call get_skill without arguments"
  end

  def message(%{kind: :arguments} = error),
    do:
      "the arguments of #{shown(error.name)}: #{error.reason}. Write for example: #{error.example}"

  def message(%{kind: :call}),
    do:
      "expected a tool call with a name and arguments. Call for example get_skill without arguments"

  defp shown(name), do: String.slice(name, 0, @shown)

  defp offer([]), do: "."
  defp offer(names), do: "; did you mean #{Enum.join(names, " or ")}?"
end
