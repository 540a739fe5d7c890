defmodule Skillbook.CLI.Explain do
  @moduledoc false
  # `skillbook explain`: prints the result of `Skillbook.explain/3`.

  @behaviour Skillbook.CLI.Subcommand

  alias Skillbook.Book
  alias Skillbook.CLI.{Prompt, Session, Terminal}

  @impl true
  defdelegate switches, to: Prompt

  @impl true
  def args([name]) when name != "", do: {:ok, [name]}
  def args([_, arg | _]), do: {:error, "`explain` takes one name, got also: #{arg}"}
  def args(_), do: {:error, "`explain` expects a name or a path"}

  @impl true
  def run(%{args: [name]} = options) do
    Prompt.with_flags(options, "explain", fn flags ->
      Session.with_book(options, :read, fn book ->
        # Of the catalog: a book's hint is for an application's options.
        options = [profile: Session.profile(options)] ++ flags
        explanation = Skillbook.explain(Book.fetch!(book).catalog, path(name), options)

        Terminal.put(Terminal.safe(to_string(explanation)))
        if explanation.files == [], do: 1, else: 0
      end)
    end)
  end

  # An existing path with a slash is a path; anything else is a name.
  defp path(name), do: if(name =~ "/" and File.exists?(name), do: Path.expand(name), else: name)
end
