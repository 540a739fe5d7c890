defmodule Skillbook.CommandError do
  @moduledoc ~S"""
  Returned when a reply or a command cannot be parsed. It has the position of the mistake and a
  hint.

  ## Fields

    * `:kind` - an atom: `:unclosed_quote`, `:unescaped_quote`, `:unclosed_heredoc`,
      `:unclosed_json`, `:invalid_json`, `:unsupported_operator`, `:several_commands`,
      `:missing_name`, `:empty_command`, `:command_too_large`, `:too_many_words`,
      `:too_many_commands`, `:text_too_large` or `:invalid_utf8`
    * `:problem` - a description of the mistake
    * `:hint` - a correction
    * `:offset`, `:length` - the position in bytes of the command, or of the reply if the error is
      about the reply
    * `:line`, `:column` - the same position, both from 1, the column in characters
    * `:message` - the text for the model: the problem, the line with a caret below the position,
      and the hint

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
  Returned when a placeholder such as `{1}` or `{last}` has no value.

  ## Fields

    * `:kind` - `:failed` (the command that it refers to failed), `:skipped` (that command was not
      run), `:pending` (that command waits for an approval), `:none` (no earlier command has that
      number) or `:too_large`
    * `:reference` - the number of a command of the reply, or `:last`; in a workflow, the name in
      the braces
    * `:number` - for `:failed`, `:skipped` and `:pending`, the number of the command without a
      result; for `:none`, the number of the command with the placeholder
    * `:most` - for `:too_large`, the limit in bytes for all values of a command

  ## Examples

      iex> error = %Skillbook.PlaceholderError{kind: :failed, reference: :last, number: 2}
      iex> Exception.message(error)
      "`{last}` has no value: command 2 failed. Correct that command, and write this one after it"

      iex> error = %Skillbook.PlaceholderError{kind: :none, reference: 3, number: 2}
      iex> error |> Exception.message() |> String.split([": this", ". ", "; "], parts: 4)
      [
        "`{3}` has no value",
        " is command 2 of the reply, and only those before it have a result",
        "Name one of them, or write the value itself",
        "to write it as plain text, put it in quotes: \\"{3}\\""
      ]
  """

  @type t :: %__MODULE__{
          kind: :failed | :skipped | :pending | :none | :too_large,
          reference: non_neg_integer() | :last | String.t(),
          number: pos_integer() | nil,
          most: pos_integer() | nil
        }

  @enforce_keys [:kind, :reference]
  defexception [:kind, :reference, :number, :most]

  @impl true
  def message(%{kind: :failed} = error) do
    "`{#{error.reference}}` has no value: command #{error.number} failed. " <>
      "Correct that command, and write this one after it"
  end

  def message(%{kind: :skipped} = error) do
    "`{#{error.reference}}` has no value: command #{error.number} was not run. " <>
      "Write that command again if you still want it, and this one after it"
  end

  def message(%{kind: :pending} = error) do
    "`{#{error.reference}}` has no value: command #{error.number} waits for an approval. " <>
      "Write this one again when that command has run"
  end

  def message(%{kind: :none, number: 1} = error) do
    "`{#{error.reference}}` has no value: this is the first command of the reply, " <>
      "and placeholders refer to results of the same reply. " <>
      "Write the value itself; #{as_text(error)}"
  end

  def message(%{kind: :none} = error) do
    counted = if error.reference == 0, do: ", counted from 1"

    "`{#{error.reference}}` has no value: this is command #{error.number} of the reply, " <>
      "and only those before it have a result#{counted}. " <>
      "Name one of them, or write the value itself; #{as_text(error)}"
  end

  def message(%{kind: :too_large} = error) do
    "`{#{error.reference}}` is too long: " <>
      "the values of a command's placeholders may have #{error.most} bytes in total. " <>
      "Ask for less in the command that it refers to"
  end

  defp as_text(error), do: "to write it as plain text, put it in quotes: \"{#{error.reference}}\""
end

defmodule Skillbook.ToolCallError do
  @moduledoc """
  Returned when a tool call cannot be parsed, or names a tool that the view does not have.

  ## Fields

    * `:kind` - `:unknown` (no such tool), `:arguments` (not a JSON object), `:call` (no name); in
      a run of `Skillbook.Agent`, `:too_many` (the reply has more calls than a reply may have),
      `:cut_off` (the reply reached its limit of tokens in this call) or `:withheld` (the server
      withheld the rest of the reply)
    * `:name` - the name as written in the call, or `nil`
    * `:reason` - for `:arguments`, the mistake
    * `:example` - valid arguments as JSON
    * `:suggestions` - up to three names of tools, the closest first
    * `:most` - for `:too_many`, how many calls a reply may have

  ## Examples

      iex> error = %Skillbook.ToolCallError{kind: :unknown, name: "email__sned"}
      iex> %{error | suggestions: ["email__send"]} |> Exception.message() |> String.split("? ")
      [
        ~s(unknown tool "email__sned"; did you mean email__send),
        "To list all skills, call get_skill without arguments"
      ]

      iex> error = %Skillbook.ToolCallError{kind: :arguments, name: "email__send"}
      iex> Exception.message(%{error | reason: "not JSON", example: ~s({"to": "VALUE"})})
      ~s(the arguments of email__send: not JSON. Write for example: {"to": "VALUE"})

      iex> %Skillbook.ToolCallError{kind: :call} |> Exception.message() |> String.split(". ")
      [
        "expected a tool call with a name and arguments",
        "Call for example get_skill without arguments"
      ]

      iex> Exception.message(%Skillbook.ToolCallError{kind: :withheld})
      "not run: the server withheld the rest of your reply"
  """

  @type t :: %__MODULE__{
          kind: :unknown | :arguments | :call | :too_many | :cut_off | :withheld,
          name: String.t() | nil,
          reason: String.t() | nil,
          example: String.t(),
          suggestions: [String.t()],
          most: pos_integer() | nil
        }

  @enforce_keys [:kind]
  defexception [:kind, :name, :reason, :most, example: "{}", suggestions: []]

  # A malformed call may have its whole text as a name.
  @max_name_length 100

  @impl true
  def message(%{kind: :unknown} = error) do
    "unknown tool #{inspect(shorten(error.name))}#{offer(error.suggestions)} " <>
      "To list all skills, call get_skill without arguments"
  end

  def message(%{kind: :arguments} = error),
    do:
      "the arguments of #{shorten(error.name)}: #{error.reason}. " <>
        "Write for example: #{error.example}"

  def message(%{kind: :call}),
    do:
      "expected a tool call with a name and arguments. " <>
        "Call for example get_skill without arguments"

  def message(%{kind: :too_many, most: most}),
    do:
      "not run: a reply may have #{most} calls, and this one has more. If it is still wanted, " <>
        "call it in your next reply"

  def message(%{kind: :cut_off}),
    do:
      "not run: your reply reached its limit of tokens in this call. If it is still wanted, " <>
        "call it again, with shorter arguments"

  def message(%{kind: :withheld}), do: "not run: the server withheld the rest of your reply"

  defp shorten(name), do: String.slice(name, 0, @max_name_length)

  defp offer([]), do: "."
  defp offer(names), do: "; did you mean #{Enum.join(names, " or ")}?"
end
