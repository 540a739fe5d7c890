defmodule Skillbook.CLI.Shell.Editor do
  @moduledoc false
  # A line editor without IO: a key changes the editor or ends the line, and `draw/4` returns the
  # bytes for the terminal.

  # `left` and `right` are the graphemes on both sides of the cursor; `left` is reversed.
  # `older` and `newer` are the history on both sides of the current entry; the typed line is
  # last in `newer`.
  defstruct left: [], right: [], older: [], newer: [], pasting: false

  @type t :: %__MODULE__{}

  @spec new([String.t()]) :: t()
  def new(history), do: %__MODULE__{older: history}

  @spec text(t()) :: String.t()
  def text(editor), do: left(editor) <> Enum.join(editor.right)

  @doc "The text left of the cursor."
  def left(editor), do: editor.left |> Enum.reverse() |> Enum.join()

  @doc "Applies a key: returns the changed editor, or an action for the shell."
  @spec key(t(), Skillbook.CLI.Shell.Keys.key()) ::
          {:edit, t()} | {:enter, String.t()} | :interrupt | :end_of_input
  def key(editor, :enter), do: {:enter, text(editor)}
  def key(_editor, :interrupt), do: :interrupt
  def key(%{left: [], right: []}, :end_of_input), do: :end_of_input
  def key(editor, :end_of_input), do: key(editor, :delete)
  def key(editor, {:text, text}), do: {:edit, insert(editor, text)}
  def key(editor, key), do: {:edit, move(editor, key)}

  @doc "Inserts a text at the cursor."
  def insert(editor, text) do
    # The text may combine with the last grapheme, for example an accent with its letter.
    {last, rest} = Enum.split(editor.left, 1)
    %{editor | left: (Enum.join(last) <> text) |> String.graphemes() |> Enum.reverse(rest)}
  end

  defp move(%{left: [char | left]} = e, :left), do: %{e | left: left, right: [char | e.right]}
  defp move(%{right: [char | right]} = e, :right), do: %{e | left: [char | e.left], right: right}
  defp move(e, :home), do: %{e | left: [], right: Enum.reverse(e.left, e.right)}
  defp move(e, :end), do: %{e | left: Enum.reverse(e.right, e.left), right: []}
  defp move(%{left: [_ | left]} = e, :backspace), do: %{e | left: left}
  defp move(%{right: [_ | right]} = e, :delete), do: %{e | right: right}
  defp move(e, :kill_left), do: %{e | left: []}
  defp move(e, :kill_right), do: %{e | right: []}
  defp move(e, :kill_word), do: %{e | left: skip_word(e.left)}
  defp move(e, :kill_word_right), do: %{e | right: skip_word(e.right)}

  defp move(e, :word_left) do
    left = skip_word(e.left)
    skipped = Enum.take(e.left, length(e.left) - length(left))
    %{e | left: left, right: Enum.reverse(skipped, e.right)}
  end

  defp move(e, :word_right) do
    right = skip_word(e.right)
    skipped = Enum.take(e.right, length(e.right) - length(right))
    %{e | left: Enum.reverse(skipped, e.left), right: right}
  end

  defp move(%{older: [line | older]} = e, :up),
    do: replace(%{e | older: older, newer: [text(e) | e.newer]}, line)

  defp move(%{newer: [line | newer]} = e, :down),
    do: replace(%{e | newer: newer, older: [text(e) | e.older]}, line)

  defp move(e, _key), do: e

  defp replace(editor, line),
    do: %{editor | left: line |> String.graphemes() |> Enum.reverse(), right: []}

  defp skip_word(graphemes) do
    graphemes |> Enum.drop_while(&(&1 == " ")) |> Enum.drop_while(&(&1 != " "))
  end

  @doc """
  Draws the prompt and the line. Returns the bytes and the row of the cursor.

  `row` is the cursor's row in the previous drawing. Rows are counted because the terminal wraps
  long lines.
  """
  @spec draw(t(), String.t(), pos_integer(), non_neg_integer()) :: {iodata(), non_neg_integer()}
  def draw(editor, prompt, columns, row) do
    start = place(String.graphemes(prompt), {0, 0}, columns)
    {cursor_row, cursor_column} = cursor = place(Enum.reverse(editor.left), start, columns)
    {last_row, last_column} = place(editor.right, cursor, columns)

    # A terminal wraps only at the next character, so a row that is exactly full needs a line
    # break.
    wrap = if last_column == 0 and last_row > 0, do: "\n", else: ""

    {[
       [up(row), "\r\e[J", prompt, without_tabs(text(editor)), wrap],
       [
         up(last_row - cursor_row),
         "\r",
         if(cursor_column > 0, do: "\e[#{cursor_column}C", else: "")
       ]
     ], cursor_row}
  end

  defp up(0), do: ""
  defp up(rows), do: "\e[#{rows}A"

  defp without_tabs(text), do: String.replace(text, "\t", " ")

  defp place(graphemes, from, columns) do
    Enum.reduce(graphemes, from, fn grapheme, {row, column} ->
      case column + width(grapheme) do
        next when next < columns -> {row, next}
        next when next == columns -> {row + 1, 0}
        _ -> {row + 1, width(grapheme)}
      end
    end)
  end

  # Two columns for East Asian wide characters and emoji (Unicode Standard Annex 11), else one.
  defp width(<<code::utf8, _::binary>>)
       when code in 0x1100..0x115F or code in 0x2E80..0xA4CF or code in 0xAC00..0xD7A3 or
              code in 0xF900..0xFAFF or
              code in 0xFE30..0xFE6F or code in 0xFF00..0xFF60 or code in 0xFFE0..0xFFE6 or
              code in 0x1F300..0x1F64F or
              code in 0x1F680..0x1F6FF or code in 0x1F900..0x1F9FF or code in 0x20000..0x3FFFD,
       do: 2

  defp width(_), do: 1
end
