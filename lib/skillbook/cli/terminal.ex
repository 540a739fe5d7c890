defmodule Skillbook.CLI.Terminal do
  @moduledoc false
  # Output: colours only where they are wanted, and nothing that a document could use to drive a terminal.

  defstruct color: false, width: nil

  @type t :: %__MODULE__{color: boolean(), width: pos_integer() | nil}

  @doc "Standard output as it is: `width` in columns, `nil` where it is no terminal."
  def new(color) do
    width = width()
    %__MODULE__{width: width, color: color?(color, width)}
  end

  @doc false
  def color?(:always, _width), do: true
  def color?(:never, _width), do: false

  def color?(:auto, width) do
    width != nil and System.get_env("NO_COLOR", "") == "" and System.get_env("TERM") != "dumb"
  end

  # bin/skillbook has seen whether output is a terminal. The virtual machine goes by its input, which is also wrong where
  # keys are handed over.
  defp width do
    case System.get_env("SKILLBOOK_COLUMNS") do
      nil ->
        with {:ok, columns} <- :io.columns(:standard_io), do: known(columns), else: (_ -> nil)

      "" ->
        nil

      columns ->
        with {columns, ""} <- Integer.parse(columns), do: known(columns), else: (_ -> 80)
    end
  end

  # A terminal may not know its size.
  defp known(columns) when columns > 0, do: columns
  defp known(_columns), do: 80

  @doc "Writes a text and a line break to standard output."
  def put(text), do: write([text, "\n"])

  @doc "Writes to standard output; throws `:closed` if nobody reads it any more."
  def write(text) do
    IO.write(text)
  rescue
    error in ErlangError ->
      if error.original in [:terminated, :epipe],
        do: throw(:closed),
        else: reraise(error, __STACKTRACE__)
  end

  @doc "Writes a message about the run itself to standard error."
  def complain(text), do: IO.puts(:stderr, ["skillbook: ", text])

  @doc "Writes how far something is, over what was written so before, where standard error is a terminal."
  def progress(text), do: if(progress?(), do: IO.write(:stderr, ["\r\e[K", text]), else: :ok)

  @doc "Takes away what `progress/1` wrote."
  def progress_over, do: if(progress?(), do: IO.write(:stderr, "\r\e[K"), else: :ok)

  # Only bin/skillbook knows.
  defp progress?, do: System.get_env("SKILLBOOK_PROGRESS") == "1"

  @doc "The text in a style of `IO.ANSI` (`:red`, `:bright`, …) if colours are on."
  def style(%{color: true}, style, text), do: [apply(IO.ANSI, style, []), text, IO.ANSI.reset()]
  def style(%{color: false}, _style, text), do: text

  @doc "A heading that divides the output."
  def heading(terminal, title) do
    dashes =
      String.duplicate("─", max(min(terminal.width || 72, 72) - String.length(title) - 4, 3))

    style(terminal, :faint, ["── ", title, " ", dashes])
  end

  @doc "A document's text as a terminal may get it: control characters are shown, not obeyed."
  def safe(%{width: nil}, text), do: text

  def safe(_terminal, text) do
    Regex.replace(~r/[\x{00}-\x{08}\x{0B}-\x{1F}\x{7F}-\x{9F}]/u, text, fn
      <<code>> when code < 32 -> <<0x2400 + code::utf8>>
      _ -> "\u2421"
    end)
  end
end
