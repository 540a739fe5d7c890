defmodule Skillbook.CLI.Explain do
  @moduledoc false
  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Prompt, Session, Terminal}

  @impl true
  defdelegate switches, to: Prompt

  @impl true
  def args([name]) when name != "", do: {:ok, [name]}
  def args([_, arg | _]), do: {:error, "`explain` takes one name, got also: #{arg}"}
  def args(_), do: {:error, "`explain` expects a name or a path"}

  @impl true
  def summary, do: "tell what became of a name"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] explain NAME [--format FORMAT | --section SECTION …] [--max-tokens N] [--max-chars N]

    Tells what became of a name: which files could be meant, which one is used, why the profile does not see it, and where it
    stands in the profile's prompt. NAME is an entry's name, an alias, or the name or path of a file or of a skill's folder.
    It also tells of what the profile may not see, so nothing of it is for a model.

    Exit status: 0 a file was found, 1 none was, 2 wrong usage.

    Examples:
      skillbook explain tasks.create
      skillbook explain skills/email/send.md
      skillbook --dir skills --profile anna --grant private explain diary
      skillbook explain tasks.create --max-tokens 500
    """
  end

  @impl true
  def run(%{args: [name]} = options) do
    Prompt.with_flags(options, "explain", fn flags ->
      Session.with_book(options, :read, fn book ->
        explanation = Skillbook.explain(book, path(name), Session.profile(options), flags)
        Terminal.put(Terminal.safe(Terminal.new(options.color), to_string(explanation)))
        if explanation.files == [], do: 1, else: 0
      end)
    end)
  end

  # A path as it is written from the current folder; one without a slash is rather a name.
  defp path(name), do: if(name =~ "/" and File.exists?(name), do: Path.expand(name), else: name)
end
