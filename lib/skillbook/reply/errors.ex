defmodule Skillbook.CommandError do
  @moduledoc ~S"""
  A reply or a command that cannot be read, with the place and what to write instead.

  ## Fields

    * `:kind` - an atom: `:unclosed_quote`, `:unescaped_quote`, `:unclosed_heredoc`, `:unclosed_json`, `:invalid_json`,
      `:unsupported_operator`, `:several_commands`, `:missing_name`, `:empty_command`, `:command_too_large`, `:too_many_words`, `:too_many_commands`,
      `:text_too_large` or `:invalid_utf8`
    * `:problem` - what is wrong, in plain words
    * `:hint` - what to write instead
    * `:offset`, `:length` - the place, in bytes of the command (of the reply, if it is about the reply)
    * `:line`, `:column` - the same place, both from 1, the column in characters
    * `:message` - all of it as text for the model: the problem, the line with a caret under the place, the hint

  ## Examples

      iex> {:error, error} = Skillbook.Command.parse("tasks.search | sort")
      iex> {error.kind, error.offset, error.length}
      {:unsupported_operator, 13, 1}
      iex> error |> Exception.message() |> String.split("\n") |> Enum.take(3)
      [
        "`|` is not supported: this is not a shell",
        "  tasks.search | sort",
        "               ^"
      ]
  """

  @type t :: %__MODULE__{
          kind: atom(),
          problem: String.t(),
          hint: String.t(),
          offset: non_neg_integer(),
          length: non_neg_integer(),
          line: pos_integer(),
          column: pos_integer(),
          message: String.t()
        }

  defexception [:kind, :problem, :hint, :offset, :length, :line, :column, :message]
end

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
