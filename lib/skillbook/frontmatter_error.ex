defmodule Skillbook.FrontmatterError do
  @moduledoc """
  Frontmatter that could not be read.

  ## Fields

    * `:kind` - one of
      * `:encoding` - the text is not UTF-8
      * `:unclosed` - the opening `---` has no closing one
      * `:invalid` - the block is not YAML, and what was meant is not plain
      * `:not_mapping` - the block is YAML, but no mapping
      * `:too_large` - the block is longer than 1 MiB, or its aliases make it larger than 2 MiB
      * `:too_deep` - values nest more than 64 deep
    * `:reason` - what was expected and what came
    * `:line`, `:column` - the place, both from 1, the column in characters
    * `:offset` - the same place in bytes, from 0
    * `:source` - the line itself; `""` where it is not UTF-8, or longer than 64 KiB
    * `:hint` - what to write instead, or `nil`

  `message/1` shows the line with a mark below the place:

      iex> {:error, error} = Skillbook.Frontmatter.parse("---\\nname: a\\n description: b\\n---\\n")
      iex> error |> Exception.message() |> String.split("\\n")
      ["frontmatter: a `key: value` is not allowed here",
       "  3 |  description: b",
       "    |             ^",
       "hint: check how this line and the one before it are indented"]
  """

  @type kind :: :encoding | :unclosed | :invalid | :not_mapping | :too_large | :too_deep
  @type t :: %__MODULE__{
          kind: kind(),
          reason: String.t(),
          line: pos_integer(),
          column: pos_integer(),
          offset: non_neg_integer(),
          source: String.t(),
          hint: String.t() | nil
        }

  defexception [:kind, :reason, :line, :column, :offset, :source, :hint]

  @longest_line 64 * 1024

  @doc false
  def new({kind, reason, line, column, offset, hint}, text) do
    %__MODULE__{
      kind: kind,
      reason: reason,
      line: line,
      column: column,
      offset: offset,
      source: source(text, offset),
      hint: hint
    }
  end

  defp source(text, offset) do
    ahead = min(byte_size(text) - offset, @longest_line)

    with start when is_integer(start) <- line_start(text, offset, @longest_line),
         stop when is_integer(stop) <- line_end(text, offset, ahead),
         line = text |> binary_part(start, stop - start) |> String.trim_trailing("\r"),
         true <- String.valid?(line) do
      # Without the copy the error would keep the whole document in memory.
      :binary.copy(line)
    else
      _ -> ""
    end
  end

  defp line_start(_text, 0, _left), do: 0
  defp line_start(_text, _offset, 0), do: nil

  defp line_start(text, offset, left) do
    if :binary.at(text, offset - 1) == ?\n,
      do: offset,
      else: line_start(text, offset - 1, left - 1)
  end

  defp line_end(text, offset, ahead) do
    case :binary.match(text, "\n", scope: {offset, ahead}) do
      {at, 1} -> at
      :nomatch when offset + ahead == byte_size(text) -> offset + ahead
      :nomatch -> nil
    end
  end

  @impl true
  def message(%__MODULE__{} = error) do
    number = Integer.to_string(error.line)
    hint = if error.hint, do: "\nhint: #{error.hint}", else: ""
    "frontmatter: #{error.reason}\n#{excerpt(error, number)}#{hint}"
  end

  defp excerpt(%{source: ""}, number), do: "  at line #{number}"

  defp excerpt(error, number) do
    {line, caret} = Skillbook.Diagnostic.excerpt(error.source, error.column)
    "  #{number} | #{line}\n  #{String.duplicate(" ", String.length(number))} | #{caret}"
  end
end
