defmodule Skillbook.CLI.Terminal do
  @moduledoc false
  # Writes to standard output and standard error: colours, progress and usage errors.
  #
  # Text of documents, models and commands is shown with `safe/1` or `foreign/1`, so that it can
  # neither drive the terminal nor add a line that looks like one of ours.

  alias Skillbook.Support.{Hidden, JSON, Number}

  defstruct color: false, width: nil

  @type t :: %__MODULE__{color: boolean(), width: pos_integer() | nil}

  @doc "Describes standard output: its `width` in columns, `nil` if it is not a terminal."
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

  # bin/skillbook checks whether output is a terminal and sets SKILLBOOK_COLUMNS. The virtual
  # machine checks its input instead, which is wrong if only output is redirected.
  defp width do
    case System.get_env("SKILLBOOK_COLUMNS") do
      nil ->
        with {:ok, columns} <- :io.columns(:standard_io),
             do: or_default(columns),
             else: (_ -> nil)

      "" ->
        nil

      columns ->
        with {columns, ""} <- Number.integer(columns), do: or_default(columns), else: (_ -> 80)
    end
  end

  # A terminal may report a width of 0.
  defp or_default(columns) when columns > 0, do: columns
  defp or_default(_columns), do: 80

  @doc "Writes a text and a line break to standard output."
  def put(text), do: write([text, "\n"])

  @doc "Writes to standard output; see `Skillbook.CLI.Output.write/1` for errors."
  defdelegate write(text), to: Skillbook.CLI.Output

  @doc "Writes a value as JSON to standard output."
  def put_json(value), do: value |> json() |> put()

  @doc "A value as JSON, in which hidden characters are escaped."
  def json(value), do: value |> JSON.encode() |> Hidden.json()

  @doc "Writes the result of a report of the native library; returns the exit status."
  @spec printed({String.t(), String.t() | nil, boolean()}) :: 0 | 1
  def printed({output, complaint, failed?}) do
    if output != "", do: write(output)
    if complaint, do: complain(complaint)
    if failed?, do: 1, else: 0
  end

  # Messages of the library name options of Elixir.
  @store ~r/(Start the book with|set) the option `?:?store:?`?, for example store: "skillbook.db"/

  @doc "Writes a message about the run itself to standard error, in the words of a command line."
  def complain(text) do
    text = text |> IO.iodata_to_binary() |> String.replace(@store, "add --db FILE")
    note(["skillbook: ", text])
  end

  @doc "Writes an error, a text or an exception; returns its exit status, 1."
  def failed(error) do
    complain(if is_exception(error), do: Exception.message(error), else: error)
    1
  end

  @doc "Writes lines without a style to standard error."
  def note(text), do: IO.puts(:stderr, safe(text))

  @doc """
  Writes a message about wrong usage, with the arguments that print the help about it.

  Returns 2, the exit status of wrong usage.
  """
  def usage_error(message, help) do
    complain([message, "\nSee: skillbook ", help])
    2
  end

  @doc "Replaces the progress line on standard error, if that is a terminal."
  def progress(text),
    do: if(progress?(), do: IO.write(:stderr, ["\r\e[K", safe(text)]), else: :ok)

  @doc "Clears the progress line."
  def clear_progress, do: if(progress?(), do: IO.write(:stderr, "\r\e[K"), else: :ok)

  @doc "Whether a person sees standard error."
  # Set by bin/skillbook, because the virtual machine cannot check it.
  def progress?, do: System.get_env("SKILLBOOK_PROGRESS") == "1"

  @doc "Asks a person; returns the line, or an empty text without one."
  @spec ask(String.t()) :: String.t()
  def ask(question) do
    write("#{question}> ")
    line = IO.read(:stdio, :line)
    if is_binary(line), do: line, else: ""
  end

  @doc """
  Whether a person can answer a question: both input and output are a terminal.

  bin/skillbook checks it and sets SKILLBOOK_PERSON. Under mix, the virtual machine does.
  """
  @spec person?() :: boolean()
  def person? do
    case System.get_env("SKILLBOOK_PERSON") do
      nil -> width() != nil
      checked -> checked == "1"
    end
  end

  @doc "Adds a style of `IO.ANSI`, for example `:red` or `:bright`, if colours are on."
  def style(%{color: true}, style, text), do: [apply(IO.ANSI, style, []), text, IO.ANSI.reset()]
  def style(%{color: false}, _style, text), do: text

  @doc "A heading that divides the output."
  def heading(terminal, title) do
    dashes =
      String.duplicate("─", max(min(terminal.width || 72, 72) - String.length(title) - 4, 3))

    style(terminal, :faint, ["── ", title, " ", dashes])
  end

  @doc "Replaces hidden characters with their codes, also if output is not a terminal."
  def safe(text), do: text |> IO.iodata_to_binary() |> utf8() |> Hidden.visible()

  @doc "The same on one line."
  def line(text), do: text |> safe() |> String.replace(["\r\n", "\n"], "\\n")

  @doc "A time, to the minute."
  @spec time(DateTime.t()) :: String.t()
  def time(time), do: Calendar.strftime(time, "%Y-%m-%d %H:%M UTC")

  @doc """
  Indents the lines of a text, for output that has lines of ours too.

      iex> Skillbook.CLI.Terminal.foreign("one\\n\\n── two ──")
      "  one\\n\\n  ── two ──"
  """
  def foreign(text), do: String.replace(safe(text), ~r/^(?=[^\n])/m, "  ")

  # File names may have other bytes.
  defp utf8(text) do
    case :unicode.characters_to_binary(text) do
      text when is_binary(text) -> text
      {_, good, _bad} -> good <> "\uFFFD"
    end
  end
end
