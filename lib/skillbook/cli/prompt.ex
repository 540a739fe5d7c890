defmodule Skillbook.CLI.Prompt do
  @moduledoc false
  @behaviour Skillbook.CLI.Command

  alias Skillbook.CLI.{Book, Terminal}
  alias Skillbook.{OptionError, Prompt}

  @impl true
  def switches, do: [format: :string, section: :keep, max_tokens: :integer, max_chars: :integer]

  @impl true
  def args([]), do: {:ok, []}
  def args([arg | _]), do: {:error, "`prompt` takes no argument, got: #{arg}"}

  @impl true
  def summary, do: "print what goes into the model's system prompt"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] prompt [--format FORMAT | --section SECTION …] [--max-tokens N] [--max-chars N]

    Prints the sections of the system prompt that tell a model which skills there are and how to use them, as the
    profile may see them.

      --format FORMAT    #{list(Prompt.formats())}
      --section SECTION  only this section; may be given several times. The sections are
                         #{list(Prompt.sections(), "\n                         ")}
      --max-tokens N     at most so many tokens, by an estimate; what is left out is counted in the last line
      --max-chars N      at most so many characters

    Examples:
      skillbook prompt
      skillbook --dir skills --grant internal prompt
      skillbook prompt --format xml --max-tokens 2000
      skillbook prompt --section rules --section domains
    """
  end

  @impl true
  def run(options) do
    Book.with_book(options, :read, fn book ->
      terminal = Terminal.new(options.color)

      Terminal.put(
        Terminal.safe(terminal, Skillbook.prompt(Book.view(book, options), of_flags(options.flags)))
      )
    end)
  rescue
    error in OptionError ->
      Terminal.complain([Exception.message(error), "\nSee: skillbook prompt --help"])
      2
  end

  @doc "The options of `Skillbook.prompt/2` that the flags of `switches/0` mean."
  def of_flags(flags) do
    flags = Enum.map(flags, &known/1)
    sections = Keyword.get_values(flags, :section)
    given = Keyword.delete(flags, :section)
    if sections == [], do: given, else: [{:sections, sections} | given]
  end

  # A name that is none stays a text, which the prompt refuses.
  defp known({:format, name}), do: {:format, named(name, Prompt.formats())}
  defp known({:section, name}), do: {:section, named(name, Prompt.sections())}
  defp known(flag), do: flag

  defp named(name, known), do: Enum.find(known, name, &(to_string(&1) == name))

  defp list(names, separator \\ " "),
    do: names |> Enum.chunk_every(5) |> Enum.map_join(separator, &Enum.join(&1, ", "))
end
