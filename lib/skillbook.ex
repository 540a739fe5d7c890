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
    * `:sources` - where skills come from: folders, options of `Skillbook.Source`, or what else
      `Skillbook.Source.list/1` takes. A later one's entry replaces an earlier one's of the same name
    * `:builtins` - whether the skills that come with Skillbook are there, before all others, those of `markdown` only with
      `:vaults`; `true` by default
    * `:store` - the database of skills that keep something: the path of a SQLite file, `":memory:"`, or
      `{Skillbook.SQL.SQLite, options}`, for several nodes `{Skillbook.SQL.Postgres, options}`, or the application's own
      repo by `{Skillbook.SQL.Ecto, options}`. Without it those skills say that they need it. What people and agents write
      into it is the source `"store"`, the last one: it is read before the book is there, and again whenever it changes, whoever
      writes it. While the database cannot be read the book goes on with what it has
    * `:store_poll` - how often the database is asked for changes that nobody told of, in milliseconds; 500 by default.
      Books of connected nodes that share a database, and databases that tell by themselves, need no asking
    * `:profiles` - on whose behalf skills may be read and run: options of `Skillbook.Profile`. There is always one of
      the id `"default"`, which may see everything that has no visibility labels, unless you define it otherwise
    * `:roles` - what several profiles have in common: lists of `:id`, which profiles name as their `:role`, and of the
      options `:grants`, `:skills`, `:tools`, `:writes` and `:labels` of `Skillbook.Profile`
    * `:write_to` - the folder into which commands may write skills; it is a source too, the last one if you do not list it
    * `:timeout` - how long a handler may take, in milliseconds; 30,000 by default. A page's own `timeout` goes before it
    * `:max_running`, `:max_running_per_skill` - how many handlers run at a time, in all and of one skill; `:infinity` by
      default. A page's own `max_running` goes before the second
    * `:max_agents` - how many agents `agent.dispatch` may run at a time; 8 by default, or `:infinity`
    * `:max_wait` - how long a command waits for its turn then, in milliseconds; 30,000 by default
    * `:breaker` - after how many failures in a row a handler is left alone, and for how many milliseconds:
      `[failures: 5, cooldown: 30_000]` by default, or `false`
    * `:usage` - what becomes of the counts of `usage/2`, which a book with a `:store` keeps: every how many milliseconds they
      are written down, how many days they are kept, and how many different ones fit into memory meanwhile:
      `[flush: 5_000, keep: 365, most: 10_000]` by default, or `false`
    * `:ask` - who is asked whether a command that changes something may run, for profiles with `writes: :ask`: a function
      of one argument or `{module, function}`, as `t:Skillbook.Request.ask/0`
    * `:max_result` - how many characters of a result the model gets at once; 30,000 by default, or `:infinity`
    * `:scheduler` - what runs entries by their `schedule`: `Skillbook.Scheduler.Local`, the default with a `:store`,
      `{Skillbook.Scheduler.Quantum, MyApp.Quantum}`, or `false`, which is all there is without a `:store`
    * `:schedules` - how they are run, as [schedules](docs/schedules.md) says: `[run_as: nil, timeout: 300_000, max_running: 10,
      lease: 60_000, missed: :skip, interrupted: :fail, keep: 90, min_interval: 300, max_per_profile: 50, dispatch: nil,
      clock: nil]` by default
    * `:agent` - the agent that carries out [workflows of prose](docs/skills.md#workflows) where no conversation is under way, by a
      schedule or by `carry_out/3`: of the options of `Skillbook.Agent.run/3` `:model`, which it needs, `:system`, `:chat`,
      `:grammar`, `:max_turns`, `:max_time`, `:max_tokens`, `:max_repeats`, `:max_context` and `:max_depth`. `nil` (the default) for
      none
    * `:vaults` - folders of notes, and other documents, that `markdown.search` finds: paths, or options of `Skillbook.Vault`. They
      need a `:store`; none (`[]`) by default
    * `:telemetry_flags` - whether events carry the flags of commands; `false` by default
    * `:watch` - whether changed files are read again by themselves; `true` by default. `[poll: 1_000]` looks through the
      folders every so many milliseconds, where the system reports no changes. That it does not is found out by itself on
      network file systems and where the system's watches are used up

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

  The limits are described in [running commands](docs/running.md).

  `Skillbook.Agent.run/3` does this with a model, turn by turn, until it has answered.

  A view holds one generation of the catalog, however often the book is reloaded meanwhile: make one for each turn.
  """

  alias Skillbook.Catalog.{Search, Watcher}
  alias Skillbook.Reply.Pipeline
  alias Skillbook.Run.CircuitBreaker

  alias Skillbook.{
    Book,
    Catalog,
    Change,
    Diagnostic,
    Explanation,
    Help,
    Hit,
    OptionError,
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
  def start_link(options),
    do: Book.start_link(options, {Skillbook.Scheduler.Server, Skillbook.Scheduler.Local})

  @doc false
  def child_spec(options) do
    %{
      id: {__MODULE__, options[:name]},
      start: {__MODULE__, :start_link, [options]},
      type: :supervisor
    }
  end

  @doc """
  The current generation of a book as a profile may see it: the id of one of its profiles, or a profile.

  Raises `ArgumentError` if there is no such book or profile.
  """
  @spec view(book(), String.t() | Profile.t()) :: View.t()
  def view(book, profile \\ "default"), do: View.of(book, profile)

  @doc """
  The part of a system prompt that says how commands are written and what there is.

  Takes the options of `Skillbook.Prompt.text/2`.
  """
  @spec prompt(View.t(), keyword()) :: String.t()
  defdelegate prompt(view, options \\ []), to: Prompt, as: :text

  @doc """
  What is new between two views of one profile, for a model whose prompt was made from the older one and is kept.

  It names what was added or can be seen now, what changed, and what is gone or can no longer be seen: twenty at most of
  each, and how many more. A domain is named if the description or the text of its index changed. The text is empty if
  nothing changed that the model is told of. Raises `ArgumentError` if the profiles, the books or, without books, the
  catalogs differ.

      iex> {:ok, catalog} = Skillbook.Catalog.load(["test/support/fixtures/skills"])
      iex> old = Skillbook.View.all(catalog)
      iex> {:ok, 2} = Skillbook.Catalog.reload(catalog)
      iex> Skillbook.changes(old, Skillbook.View.all(catalog))
      ""
  """
  @spec changes(View.t(), View.t()) :: String.t()
  defdelegate changes(old, new), to: Prompt

  @doc """
  Runs the commands of a model's reply, one after the other.

  A command that fails does not keep the next from running, unless `:on_error` says so. `to_string/1` of the report is what goes back to the model.

  ## Options

    * `:assigns` - a map that handlers find in their context
    * `:now` - the time of the turn, UTC; the clock's if it is left out
    * `:by` - who wrote the commands: `:agent` (default), a model, or `:user`, a person; skills and notes that they write are
      marked so
    * `:timeout` - how long each handler may take, in milliseconds; its page's or the book's if it is left out
    * `:ask` - who is asked about commands that change something; the book's if it is left out
    * `:max_result` - how many characters of each result the model gets, or `:infinity`; the book's if it is left out
    * `:on_error` - `:continue` (default), or `:halt`: once one fails, those after it are results of the status `:skipped`
    * `:on_result` - a function that gets each result as soon as it is there
    * `:unclosed` - `:hold` (default) does not run a block that the reply's end cut off; `:run` does, for callers that
      stop the model at the closing fence
  """
  @spec run(View.t(), binary(), keyword()) :: Report.t()
  defdelegate run(view, text, options \\ []), to: Pipeline

  @doc """
  Runs one command and, if its page is prose for a model to follow, has an agent follow it. It is what a schedule does.

  The agent is told what the page says, works with the commands that the view shows, as the view's profile, and nobody answers
  it. The result is `:ok` with what it reported in the end, or an `:error` whose content says how it ended and what it did until
  then. It may take as long as `:timeout` or, if that is left out, the page's `timeout` says, its commands and its agent together,
  and the agent no longer than its `:max_time`; 10 minutes if there is none of them. A book with a database keeps the run, as that of other workflows.

  A page of low trust is not followed, and neither is a note. Without an agent, the result has the status `:template`, and the text.

  ## Options

  Those of `run/3` but `:by`, `:unclosed`, `:on_error` and `:on_result`, and

    * `:agent` - the agent, as the option `:agent` of the book, which is used if it is left out

  ## Examples

      iex> folder = Path.join(System.tmp_dir!(), "skillbook_carry_out")
      iex> page = "---\\nname: home.tea\\ndescription: Sees to the tea\\n---\\n## Behavior\\n\\nRemember that Bob likes tea.\\n"
      iex> File.mkdir_p!(Path.join(folder, "home"))
      iex> File.write!(Path.join(folder, "home/tea.md"), page)
      iex> model = Skillbook.Model.Function.new(fn messages, _options ->
      ...>   if List.last(messages).content =~ "Carry out this page.",
      ...>     do: "```cmd\\nmemory.save --content \\"Bob likes tea\\"\\n```",
      ...>     else: "I have written it down."
      ...> end)
      iex> {:ok, _pid} = Skillbook.start_link(name: :carried_out, sources: [folder], store: ":memory:", agent: [model: model])
      iex> result = Skillbook.carry_out(Skillbook.view(:carried_out), "home.tea")
      iex> {result.status, result.content, result.effects}
      {:ok, "I have written it down.", [:memory_saved]}
  """
  @spec carry_out(View.t(), String.t(), keyword()) :: Skillbook.Result.t()
  defdelegate carry_out(view, line, options \\ []), to: Skillbook.Workflow.Prose

  @doc """
  What `get_skill: PATH` answers; without a path, the list of all domains and skills.

      iex> {:ok, catalog} = Skillbook.Catalog.load(["test/support/fixtures/skills"])
      iex> Skillbook.get(Skillbook.View.all(catalog), "haiku")
      {:ok, "Write three lines of five, seven and five syllables."}
  """
  @spec get(View.t(), String.t() | nil) :: Help.answer()
  defdelegate get(view, path \\ nil), to: Help

  @doc """
  The entries that match a query, the best first.

  The words of the query need not all match, the last may be the beginning of a word, and small slips are forgiven. An
  entry whose name or alias is the query comes first. Case, accents and plural endings do not matter. Of the query, the
  first 256 bytes and 16 words count. Entries with `disable-model-invocation` are not found.

  ## Options

    * `:limit` - how many hits there may be, 1 to 1,000; 10 by default
    * `:kind` - only entries of this kind: `:command`, `:skill` or `:note`
    * `:domain` - only the commands of this domain
    * `:tags` - only entries that have all of these tags

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load(["test/support/fixtures/skills"])
      iex> view = Skillbook.View.all(catalog)
      iex> Enum.map(Skillbook.search(view, "emial.send", limit: 2), & &1.name)
      ["email.send", "email.search"]
      iex> [hit] = Skillbook.search(view, "sylables", kind: :skill)
      iex> {hit.name, hit.snippet}
      {"haiku", "Write three lines of five, seven and five syllables."}
      iex> for {start, length} <- hit.highlights, do: binary_part(hit.snippet, start, length)
      ["syllables"]
  """
  @spec search(View.t(), String.t(), keyword()) :: [Hit.t()]
  defdelegate search(view, query, options \\ []), to: Search

  @doc """
  Reads the sources of a book again. Views that were made before stay as they are.
  """
  @spec reload(book()) :: :ok
  def reload(book) do
    %Change{} = Watcher.reload(Book.fetch!(book).name)
    :ok
  end

  @doc """
  Sends the calling process `{:skillbook, book, %Skillbook.Change{}}` after every new generation of a book.

  Once is enough, and it ends with the process or the book. Changes name entries of all labels, so this is for trusted
  code.

      iex> {:ok, _pid} = Skillbook.start_link(name: :watched, sources: ["test/support/fixtures/skills"], watch: false)
      iex> Skillbook.subscribe(:watched)
      :ok
      iex> Skillbook.reload(:watched)
      iex> receive do: ({:skillbook, :watched, change} -> {change.generation, change.changed})
      {2, []}
  """
  @spec subscribe(book()) :: :ok
  def subscribe(book), do: Watcher.subscribe(Book.fetch!(book).name)

  @doc "Ends what `subscribe/1` began; messages that were sent already stay in the mailbox."
  @spec unsubscribe(book()) :: :ok
  def unsubscribe(book), do: Watcher.unsubscribe(Book.fetch!(book).name)

  @doc """
  What was found out about the files of a book's sources: what was skipped, mended or shadowed, and why; and at the end
  which skills are out of service because their handlers failed.
  """
  @spec diagnostics(book()) :: [Diagnostic.t()]
  def diagnostics(book) do
    book = Book.fetch!(book)
    view = View.all(book.catalog)
    Catalog.diagnostics(book.catalog) ++ CircuitBreaker.diagnostics(book, &View.fetch(view, &1))
  end

  @doc """
  How often the skills of a running book were read, run, and failed, as a view may see it; `Skillbook.Usage` says more.

  The options are those of `Skillbook.Usage.report/2`.
  """
  @spec usage(View.t(), keyword()) ::
          {:ok, Skillbook.Usage.t()}
          | {:error, Skillbook.OptionError.t() | Skillbook.SQL.Error.t()}
  defdelegate usage(view, options \\ []), to: Skillbook.Usage, as: :report

  @doc """
  What runs by its schedule next, and what became of what ran, as a view may see it; `Skillbook.Agenda` says more.

  The options are those of `Skillbook.Agenda.new/2`.
  """
  @spec schedule(View.t(), keyword()) ::
          {:ok, Skillbook.Agenda.t()} | {:error, OptionError.t() | Skillbook.SQL.Error.t()}
  defdelegate schedule(view, options \\ []), to: Skillbook.Agenda, as: :new

  @doc """
  What became of a name for a profile: which files could be meant, which one is used, why it is hidden, and where it stands
  in the profile's prompt.

  The profile is the id of one of the book's, a profile, or options of `Skillbook.Profile`. The answer also tells of what
  the profile may not see: it is for trusted code, never for a model. The options are those of `prompt/2`, for the prompt
  that is meant.
  """
  @spec explain(book() | Catalog.t(), String.t(), String.t() | Profile.t() | keyword(), keyword()) ::
          Explanation.t()
  def explain(book_or_catalog, name, profile, prompt \\ []),
    do: Explanation.new(book_or_catalog, name, profile, prompt)
end
