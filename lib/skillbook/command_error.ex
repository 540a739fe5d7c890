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
