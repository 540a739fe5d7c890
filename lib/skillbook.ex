defmodule Skillbook do
  @moduledoc """
  Gives a language-model assistant its skills.

  A skill is a Markdown document. The model sees a catalog of them in its prompt, reads what it needs with `get_skill`,
  and acts by writing commands in `cmd` blocks, which Skillbook takes out of its reply and runs.

  ## A book

  A running instance is a book, a child of a supervisor:

      children = [
        {Skillbook, name: MyApp.Skills, sources: ["priv/skills"], store: "skills.db", write_to: "skills"}
      ]

  Its options:

    * `:name` - the atom by which it is known. Required
    * `:sources` - the folders that skills come from: paths or options of `Skillbook.Source`. A later one's entry
      replaces an earlier one's of the same name
    * `:builtins` - whether the skills that come with Skillbook are there, before all others; `true` by default
    * `:store` - the database of skills that keep something: the path of a SQLite file, `":memory:"`, or
      `{Skillbook.SQL.SQLite, options}`. Without it those skills say that they need it
    * `:profiles` - on whose behalf skills may be read and run: options of `Skillbook.Profile`. There is always one of
      the id `"default"`, which may see everything that has no visibility labels, unless you define it otherwise
    * `:write_to` - the folder into which commands may write skills; it is a source too, the last one if you do not list it
    * `:timeout` - how long a handler may take, in milliseconds; 30,000 by default

  ## A turn of a conversation

      iex> {:ok, _pid} = Skillbook.start_link(name: :example, sources: ["test/support/fixtures/skills"], store: ":memory:")
      iex> view = Skillbook.view(:example, "default")
      iex> Skillbook.prompt(view) =~ "memory.save --content"
      true
      iex> report = Skillbook.run(view, "On it.\\n\\n```cmd\\nmemory.save --content \\"Bob likes tea\\"\\nmemory.search --query tea\\n```")
      iex> report.text
      "On it."
      iex> Enum.map(report.results, & &1.status)
      [:ok, :ok]
      iex> to_string(report) =~ "[2] memory.search --query tea\\nok\\n"
      true

  A view holds one generation of the catalog, however often the book is reloaded meanwhile: make one for each turn.
  """

  alias Skillbook.{
    Book,
    Catalog,
    Diagnostic,
    Explanation,
    Help,
    OptionError,
    Pipeline,
    Profile,
    Prompt,
    Report,
    View
  }

  @type book :: atom()

  @doc """
  Starts a book. The options are those listed above.
  """
  @spec start_link(keyword()) :: Supervisor.on_start() | {:error, Exception.t()}
  def start_link(options), do: Book.start_link(options)

  @doc false
  def child_spec(options) do
    %{id: {__MODULE__, options[:name]}, start: {__MODULE__, :start_link, [options]}, type: :supervisor}
  end

  @doc """
  The current generation of a book as a profile may see it: the id of one of its profiles, or a profile.

  Raises `ArgumentError` if there is no such book or profile.
  """
  @spec view(book(), String.t() | Profile.t()) :: View.t()
  def view(book, profile \\ "default") do
    book = Book.fetch!(book)

    case View.new(book.catalog, Book.profile(book, profile)) do
      {:ok, view} -> %{view | book: book.name}
      {:error, %OptionError{} = error} -> raise error
    end
  end

  @doc """
  The part of a system prompt that says how commands are written and what there is.

  Takes the options of `Skillbook.Prompt.text/2`.
  """
  @spec prompt(View.t(), keyword()) :: String.t()
  defdelegate prompt(view, options \\ []), to: Prompt, as: :text

  @doc """
  Runs the commands of a model's reply, one after the other.

  A command that fails does not keep the next from running. `to_string/1` of the report is what goes back to the model.

  ## Options

    * `:assigns` - a map that handlers find in their context
    * `:now` - the time of the turn, UTC; the clock's if it is left out
    * `:timeout` - how long each handler may take, in milliseconds; the book's if it is left out
    * `:unclosed` - `:hold` (default) does not run a block that the reply's end cut off; `:run` does, for callers that
      stop the model at the closing fence
  """
  @spec run(View.t(), binary(), keyword()) :: Report.t()
  defdelegate run(view, text, options \\ []), to: Pipeline

  @doc """
  What `get_skill: PATH` answers; without a path, the list of all domains and skills.

      iex> {:ok, catalog} = Skillbook.Catalog.load(["test/support/fixtures/skills"])
      iex> Skillbook.get(Skillbook.View.all(catalog), "haiku")
      {:ok, "Write three lines of five, seven and five syllables."}
  """
  @spec get(View.t(), String.t() | nil) :: Help.answer()
  defdelegate get(view, path \\ nil), to: Help

  @doc """
  Reads the sources of a book again. Views that were made before stay as they are.
  """
  @spec reload(book()) :: :ok
  def reload(book) do
    {:ok, _generation} = Catalog.reload(Book.fetch!(book).catalog)
    :ok
  end

  @doc """
  What was found out about the files of a book's sources: what was skipped, mended or shadowed, and why.
  """
  @spec diagnostics(book()) :: [Diagnostic.t()]
  def diagnostics(book), do: Catalog.diagnostics(Book.fetch!(book).catalog)

  @doc """
  What became of a name for a profile: which files could be meant, which one is used, why it is hidden, and where it stands
  in the profile's prompt.

  The profile is the id of one of the book's, a profile, or options of `Skillbook.Profile`. The answer also tells of what
  the profile may not see: it is for trusted code, never for a model.
  """
  @spec explain(book() | Catalog.t(), String.t(), String.t() | Profile.t() | keyword()) :: Explanation.t()
  def explain(book_or_catalog, name, profile), do: Explanation.new(book_or_catalog, name, profile)
end
