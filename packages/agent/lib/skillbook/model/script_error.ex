defmodule Skillbook.ScriptError do
  @moduledoc """
  Raised by `Skillbook.Model.Script`: it has too few answers for a test, or too many.

  ## Fields

    * `:answers` - how many answers the script has
    * `:calls` - how often the model was called
    * `:message` - the last message of a call without an answer, or `nil`
    * `:next` - the first answer that is left, or `nil`

  ## Examples

      iex> error = %Skillbook.ScriptError{answers: 1, calls: 2, message: "[1] tasks.get T-1"}
      iex> error |> Exception.message() |> String.split("\\n")
      [
        "expected at most 1 call of a model with a script of 1 answer, got call 2, whose last " <>
          "message is:",
        "  [1] tasks.get T-1"
      ]

      iex> error = %Skillbook.ScriptError{answers: 3, calls: 2, next: "Done."}
      iex> Exception.message(error)
      "expected 3 calls of a model with a script of 3 answers, got 2; the next answer is " <>
        "\\"Done.\\""
  """

  alias Skillbook.Support.{Count, Hidden}

  @type t :: %__MODULE__{
          answers: non_neg_integer(),
          calls: non_neg_integer(),
          message: String.t() | nil,
          next: term()
        }

  # Of a message
  @max_lines 20

  defexception [:answers, :calls, :message, :next]

  @impl true
  def message(%{answers: answers, calls: calls} = error) when calls > answers do
    {lines, rest} = (error.message || "") |> String.split("\n") |> Enum.split(@max_lines)
    more = if rest == [], do: [], else: ["  … #{length(rest)} more lines"]

    headline =
      "expected at most #{Count.text(answers, "call")} of a model with a script of " <>
        "#{Count.text(answers, "answer")}, got call #{calls}, whose last message is:"

    Hidden.visible(Enum.join([headline | Enum.map(lines, &("  " <> &1))] ++ more, "\n"))
  end

  def message(%{answers: answers, calls: calls} = error) do
    "expected #{Count.text(answers, "call")} of a model with a script of " <>
      "#{Count.text(answers, "answer")}, got #{calls}; " <>
      "the next answer is #{inspect(error.next, limit: 5, printable_limit: 200)}"
  end
end
