defmodule Skillbook.CLI.Prompt do
  @moduledoc false
  # `skillbook prompt`: prints the result of `Skillbook.prompt/2`.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Session, Terminal}
  alias Skillbook.Prompt

  @impl true
  def switches do
    [
      format: {:one_of, Prompt.formats()},
      section: {:some_of, Prompt.sections()},
      max_tokens: {:number, 0, nil},
      max_chars: {:number, 0, nil}
    ]
  end

  @impl true
  def args([]), do: {:ok, []}
  def args([arg | _]), do: {:error, "`prompt` takes no argument, got: #{arg}"}

  @impl true
  def summary, do: "print the system prompt for a model"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] prompt [--format FORMAT | --section SECTION ...]
           [--max-tokens N] [--max-chars N]

    Prints the sections of the system prompt that list the skills of the profile and explain their
    use.

    Options:
      --format FORMAT   #{list(Prompt.formats())}
      --section NAME    print only this section; repeatable. The sections are
                        #{list(Prompt.sections(), ",\n                    ")}
      --max-tokens N    maximum tokens, estimated; the last line counts the entries left out
      --max-chars N     maximum characters

    Examples:
      skillbook prompt
      skillbook --dir skills --grant internal prompt
      skillbook prompt --format xml --max-tokens 2000
      skillbook prompt --section rules --section domains
    """
  end

  @impl true
  def run(options) do
    with_flags(options, "prompt", fn flags ->
      Session.with_book(options, :read, fn book ->
        text = Skillbook.prompt(Session.view(book, options), flags)
        Terminal.put(Terminal.safe(text))
      end)
    end)
  end

  @doc "Calls the function with the options of `Skillbook.prompt/2` for the subcommand's flags."
  def with_flags(%{flags: flags}, command, fun) do
    sections = Keyword.get_values(flags, :section)
    limits = Keyword.take(flags, [:max_tokens, :max_chars])

    case {flags[:format], sections} do
      {nil, []} ->
        fun.(limits)

      {format, []} ->
        fun.([{:format, format} | limits])

      {nil, sections} ->
        fun.([{:sections, sections} | limits])

      _both ->
        Terminal.usage_error("--section and --format exclude each other", "#{command} --help")
    end
  end

  defp list(names, separator \\ ", "),
    do: names |> Enum.chunk_every(5) |> Enum.map_join(separator, &Enum.join(&1, ", "))
end
