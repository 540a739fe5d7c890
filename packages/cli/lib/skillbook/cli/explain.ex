defmodule Skillbook.CLI.Explain do
  @moduledoc false
  # `skillbook explain`: prints the result of `Skillbook.explain/4`.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.CLI.{Prompt, Session, Terminal}

  @impl true
  defdelegate switches, to: Prompt

  @impl true
  def args([name]) when name != "", do: {:ok, [name]}
  def args([_, arg | _]), do: {:error, "`explain` takes one name, got also: #{arg}"}
  def args(_), do: {:error, "`explain` expects a name or a path"}

  @impl true
  def summary, do: "show which file a name resolves to, and why"

  @impl true
  def help do
    """
    Usage: skillbook [OPTIONS] explain NAME [--format FORMAT | --section SECTION ...]
           [--max-tokens N] [--max-chars N] [--message TEXT]

    Shows the files that a name can mean, the file that is used, the reason why the profile cannot
    see it, and its place in the profile's prompt. NAME is the name or alias of an entry, or the
    name or path of a file or of a skill's folder.

    The output also describes entries that the profile cannot see, so do not give it to a model.

    Options: --format, --section, --max-tokens, --max-chars and --message select the prompt, as
    for `prompt`.

    Exit status: 0 a file was found, 1 no file was found, 2 wrong usage.

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
        explanation =
          Skillbook.explain(book, path(name), [profile: Session.profile(options)] ++ flags)

        Terminal.put(Terminal.safe(to_string(explanation)))
        if explanation.files == [], do: 1, else: 0
      end)
    end)
  end

  # An existing path with a slash is a path; anything else is a name.
  defp path(name), do: if(name =~ "/" and File.exists?(name), do: Path.expand(name), else: name)
end
