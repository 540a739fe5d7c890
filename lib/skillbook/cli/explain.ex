defmodule Skillbook.CLI.Explain do
  @moduledoc false
  @behaviour Skillbook.CLI.Command

  alias Skillbook.CLI.{Book, Prompt, Terminal}
  alias Skillbook.OptionError

  @impl true
  defdelegate switches, to: Prompt

  @impl true
  def args([name]), do: {:ok, [name]}
  def args([]), do: {:error, "`explain` expects a name"}
  def args([_, arg | _]), do: {:error, "`explain` takes one name, got also: #{arg}"}

  @impl true
  def summary, do: "tell what became of a name"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] explain NAME [--format FORMAT | --section SECTION …] [--max-tokens N] [--max-chars N]

    Tells what became of a name: which files could be meant, which one is used, why the profile does not see it, and where it
    stands in the profile's prompt. NAME is an entry's name, an alias, or the name of a file or folder. It also tells of
    what the profile may not see, so nothing of it is for a model.

    Exit status: 0 a file was found, 1 none was, 2 wrong usage.

    Examples:
      skillbook explain tasks.create
      skillbook --dir skills --profile anna --grant private explain diary
      skillbook explain tasks.create --max-tokens 500
    """
  end

  @impl true
  def run(%{args: [name]} = options) do
    Book.with_book(options, :read, fn book ->
      explanation = Skillbook.explain(book, name, Book.profile(options), Prompt.of_flags(options.flags))
      Terminal.put(Terminal.safe(Terminal.new(options.color), to_string(explanation)))
      if explanation.files == [], do: 1, else: 0
    end)
  rescue
    error in OptionError ->
      Terminal.complain([Exception.message(error), "\nSee: skillbook explain --help"])
      2
  end
end
