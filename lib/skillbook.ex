defmodule Skillbook do
  @moduledoc """
  Runs the skills of a language-model assistant.

  A skill is a Markdown document. The model sees a list of skills in its system prompt, reads a
  page with `get_skill`, and acts by writing commands in `cmd` blocks. Skillbook extracts the
  commands from the reply, runs their handlers and returns a report for the model.

  ## Example

  A running instance is called a book. This one has the built-in skills and a database in memory:

      iex> {:ok, _pid} = Skillbook.start_link(name: :example, store: ":memory:")
      iex> view = Skillbook.view(:example)
      iex> Skillbook.prompt(view) =~ "memory.save --content"
      true
      iex> reply = \"\"\"
      ...> On it.
      ...>
      ...> ```cmd
      ...> memory.save --content "Bob likes tea"
      ...> memory.search --query tea
      ...> ```
      ...> \"\"\"
      iex> report = Skillbook.run(view, reply)
      iex> report.text
      "On it."
      iex> Enum.map(report.results, & &1.status)
      [:ok, :ok]
      iex> to_string(report) =~ "[2] memory.search --query tea\\nok\\n"
      true

  `to_string(report)` is the next message to the model. `Skillbook.Agent.run/3` runs this loop
  with a model until it has answered. [Running commands](docs/running.md) describes all limits.

  ## Usage

  Start a book under a supervisor:

      children = [
        {Skillbook,
         name: MyApp.Skills,
         sources: [{:priv, :my_app, "skills"}],
         store: "skills.db",
         write_to: "skills",
         profiles: [[id: "guest", writes: :deny]]}
      ]

  Make a new view for each turn of a conversation. A view is the catalog as one profile may see
  it. It keeps its generation of the catalog, also when files change or the book is reloaded.

  ## Options

  ### Skills

    * `:name` (atom) - the name of the book. Required
    * `:sources` (list) - folders, options of `Skillbook.Source`, or other items of
      `Skillbook.Source.list/1`, such as `{:priv, :my_app, "skills"}`. A folder must exist, unless
      its source is `optional: true`. If two sources have an entry of the same name, the later
      source wins. Defaults to `[]`
    * `:builtins` (boolean) - whether the built-in skills are loaded, as the first source. Those
      of the domain `markdown` are only loaded with `:vaults`. Defaults to `true`
    * `:write_to` (path or `nil`) - the folder that commands may write skills to. It is added as
      the last source if `:sources` does not list it. Defaults to `nil`
    * `:watch` (boolean or `[poll: milliseconds]`) - whether changed files are read again
      automatically. `[poll: 1_000]` compares the folders at this interval instead of using the
      system's notifications. On network file systems, and when the system has no watches left,
      the book switches to polling automatically. Defaults to `true`

  ### Database

    * `:store` (text, function, `{module, options}` or `nil`) - the database for tasks, memories,
      stored skills and notes, schedules and usage counts: the path of a SQLite file,
      `":memory:"`, a URL (`postgres://user:password@host/database` or
      `sqlite:///folder/file.db`), a function without arguments that returns one of these,
      `{Skillbook.SQL.SQLite, options}`, `{Skillbook.SQL.Postgres, options}` (for several nodes)
      or `{Skillbook.SQL.Ecto, options}` (the application's repo). Other URLs are refused. Skills
      and notes in it are the source `"store"`, which comes last and is loaded before the book is
      available. If the database is unreachable later, the book keeps the entries that it has.
      Without a database (`nil`, the default) commands that need one return an error
    * `:store_poll` (milliseconds) - how often the database is checked for changes by other books.
      Connected nodes and databases with notifications report changes without it. Defaults to
      `500`
    * `:vaults` (list) - folders of notes and other documents that `markdown.search` searches:
      paths or options of `Skillbook.Vault`. Needs a `:store`. Defaults to `[]`

  ### Search by meaning

    * `:embedder` (embedder or `nil`) - the model whose vectors `search/3` uses beside words, such
      as a `Skillbook.Embedder.OpenAI`; see `Skillbook.Embedder`. The name, title, description,
      tags and trigger keywords of all entries are embedded in the background, except of those
      with `disable-model-invocation`, and so are the queries of searches. All of them are sent to
      the embedder, whatever their labels. Vectors are kept in the `:store`, so that a restart
      embeds nothing again; without a store they are kept in memory. `subscribe/1` tells the
      progress. Defaults to `nil`
    * `:embedder_timeout` (milliseconds) - how long a search waits for the vector of its query
      before it goes by words alone. Defaults to `300`

  ### Access

    * `:profiles` (list) - the identities that read and run skills, as options of
      `Skillbook.Profile`, each with its own `:id`. A book without profiles has the profile
      `"default"`, which sees all entries without visibility labels and may write. A book with
      profiles has only those. Defaults to `[]`
    * `:roles` (list of keyword lists) - options that profiles share. A role has an `:id`, which
      profiles name as their `:role`, and any of `:grants`, `:skills`, `:tools`, `:writes`,
      `:labels` and `:preflight`. Defaults to `[]`
    * `:ask` (function of one argument, `{module, function}` or `nil`) - decides whether a command
      with side effects may run, for profiles with `writes: :ask`; see
      `t:Skillbook.Request.ask/0`. Defaults to `nil`

  ### Limits

    * `:timeout` (milliseconds) - the time limit of a handler. The `timeout` of a page takes
      precedence. Defaults to `30_000`
    * `:max_running` (number or `:infinity`) - how many handlers run at once. Defaults to
      `:infinity`
    * `:max_running_per_skill` (number or `:infinity`) - how many handlers of one skill run at
      once. The `max_running` of a page takes precedence. Defaults to `:infinity`
    * `:max_agents` (number or `:infinity`) - how many agents `agent.dispatch` runs at once.
      Defaults to `8`
    * `:max_wait` (milliseconds) - how long a command queues when one of these limits is reached.
      Defaults to `30_000`
    * `:max_result` (characters or `:infinity`) - how much of a result the model gets at once.
      Defaults to `30_000`
    * `:breaker` (keyword list or `false`) - the circuit breaker: after `:failures` failures in a
      row for a profile, a skill is out of service for that profile for `:cooldown` milliseconds.
      Defaults to `[failures: 5, cooldown: 30_000]`

  ### Schedules and agents

    * `:scheduler` (module, `{module, argument}` or `false`) - the engine that runs entries with a
      `schedule`: `Skillbook.Scheduler.Local` (the default with a `:store`),
      `{Skillbook.Scheduler.Quantum, MyApp.Quantum}`, or `false` (the only choice without a
      `:store`)
    * `:schedules` (keyword list) - how scheduled entries run; see [schedules](docs/schedules.md).
      Defaults to `[run_as: nil, builtins: [], timeout: 300_000, max_running: 10, lease: 60_000,
      missed: :skip, interrupted: :fail, keep: 90, min_interval: 300, max_per_profile: 50,
      dispatch: nil, clock: nil]`
    * `:agent` (keyword list or `nil`) - the agent that runs [workflows of
      prose](docs/skills.md#build-a-workflow) outside of conversations, from a schedule or by
      `carry_out/3`. It takes these options of `Skillbook.Agent.run/3`: `:model` (required),
      `:system`, `:chat`, `:grammar`, `:max_turns`, `:max_time`, `:max_tokens`, `:max_repeats`,
      `:max_context` and `:max_depth`. Defaults to `nil`

    * `:preflight` (keyword list, `false` or `nil`) - loads the skills that match a message before
      the model reads it: options of `Skillbook.Preflight.run/3`, for example `[]`. Profiles may
      have their own. Defaults to `nil`, none

  ### Monitoring

    * `:usage` (keyword list or `false`) - the counts that `usage/2` reports, for books with a
      `:store`: written every `:flush` milliseconds, kept for `:keep` days, with at most `:most`
      different counts in memory between two writes. Defaults to
      `[flush: 5_000, keep: 365, most: 10_000]`
    * `:telemetry_flags` (boolean) - whether telemetry events carry the flags of commands, which
      may be secret. Defaults to `false`
  """

  alias Skillbook.Catalog.{Search, Watcher}
  alias Skillbook.Reply.Pipeline
  alias Skillbook.Run.CircuitBreaker
  alias Skillbook.SQL.Location
  alias Skillbook.Support.Arguments

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

  @typedoc "The name of a running book."
  @type book :: atom()

  @doc """
  Starts a book with the [options](#module-options) above.

  Returns `{:error, exception}` if an option is invalid, the folder of a source is missing and not
  optional, a configuration file of a source cannot be read, or the database cannot be opened.
  Errors in documents do not stop the start. They are logged, and `diagnostics/1` returns them.

      iex> {:error, error} = Skillbook.start_link(name: :typo, sorces: ["priv/skills"])
      iex> error.option
      :sorces
  """
  @spec start_link(keyword()) :: Supervisor.on_start() | {:error, Exception.t()}
  defdelegate start_link(options), to: Book

  @doc false
  def child_spec(options) do
    # Other terms are an error of the start.
    keyword? = Keyword.keyword?(options)

    %{
      id: {__MODULE__, if(keyword?, do: options[:name])},
      start: {Book, :start_child, [if(keyword?, do: hide_url(options), else: options)]},
      type: :supervisor
    }
  end

  # A function keeps the password of a URL out of supervisor reports.
  defp hide_url(options) do
    Keyword.replace_lazy(options, :store, fn store ->
      if Location.url?(store), do: fn -> store end, else: store
    end)
  end

  @doc """
  Returns the current catalog of a book as a profile may see it.

  The profile is the id of one of the book's profiles, or a `Skillbook.Profile`. Raises
  `ArgumentError` if the book or the profile does not exist; `"default"` exists in a book without
  `:profiles`, and in one that declares it.
  """
  @spec view(book(), String.t() | Profile.t()) :: View.t()
  def view(book, profile \\ "default"), do: View.of(book, profile)

  @doc """
  Returns the part of the system prompt that explains commands and lists the skills of a view.

  Takes the options of `Skillbook.Prompt.text/2`.
  """
  @spec prompt(View.t(), keyword()) :: String.t()
  def prompt(view, options \\ [])

  def prompt(%View{} = view, options) when is_list(options),
    do: Prompt.text(view, options)

  def prompt(view, options) do
    Arguments.check!("Skillbook.prompt/2", view: {:view, view}, options: {:keyword, options})
  end

  @doc """
  Describes the difference between two views of one profile as a text for the model.

  Send it to a model whose prompt was made from the older view, instead of a new prompt. The text
  lists entries that were added or became visible, changed, and were removed or became hidden: at
  most twenty of each, then the number of the others. A domain is listed if the description or the
  text of its index changed. The text is empty if nothing that the model sees has changed.

  Raises `ArgumentError` if the views differ in their profile or their book (without books, in
  their catalog).

      iex> folder = Path.join(System.tmp_dir!(), "skillbook_changes")
      iex> _ = File.rm_rf!(folder)
      iex> File.mkdir_p!(folder)
      iex> {:ok, catalog} = Skillbook.Catalog.load([folder])
      iex> old = Skillbook.View.all(catalog)
      iex> page = "---\\nname: tea\\ndescription: Brews tea\\n---\\nBoil water.\\n"
      iex> File.write!(Path.join(folder, "tea.md"), page)
      iex> {:ok, 2} = Skillbook.Catalog.reload(catalog)
      iex> Skillbook.changes(old, Skillbook.View.all(catalog)) =~ "tea: Brews tea"
      true
  """
  @spec changes(View.t(), View.t()) :: String.t()
  def changes(%View{} = old, %View{} = new),
    do: Prompt.changes(old, new)

  def changes(old, new) do
    Arguments.check!("Skillbook.changes/2", old: {:view, old}, new: {:view, new})
  end

  @doc """
  Runs the commands of a model's reply, one after the other.

  Send `to_string/1` of the report back to the model. A command that fails does not stop the next
  one, unless `:on_error` is `:halt`.

  ## Options

    * `:assigns` (map) - values for handlers, which read them from `context.assigns`. Defaults to
      `%{}`
    * `:now` (`DateTime` in UTC) - the time that handlers see. Defaults to the system's clock
    * `:by` (`:agent` or `:user`) - the author of the commands, a model or a person. It is
      recorded on skills and notes that the commands write. Defaults to `:agent`
    * `:timeout` (milliseconds) - the time limit of each handler. Defaults to the limit of the
      page, or of the book
    * `:ask` (function of one argument or `{module, function}`) - decides about commands with side
      effects; see `t:Skillbook.Request.ask/0`. Defaults to the callback of the book
    * `:max_result` (characters or `:infinity`) - how much of each result the model gets. Defaults
      to the limit of the book
    * `:on_error` (`:continue` or `:halt`) - with `:halt`, the commands after a failed one are not
      run and get the status `:skipped`. Defaults to `:continue`
    * `:on_result` (function of one argument) - called with each result as soon as it is ready
    * `:unclosed` (`:hold` or `:run`) - whether to run a `cmd` block that the end of the reply cut
      off. Use `:run` if you stop the model at the closing fence. Defaults to `:hold`
  """
  @spec run(View.t(), binary(), keyword()) :: Report.t()
  def run(view, text, options \\ [])

  def run(%View{} = view, text, options) when is_binary(text) and is_list(options),
    do: Pipeline.run(view, text, options)

  def run(view, text, options) do
    Arguments.check!("Skillbook.run/3",
      view: {:view, view},
      text: {:text, text},
      options: {:keyword, options}
    )
  end

  @doc """
  Runs one command; if its page is prose, an agent follows it. Schedules use the same function.

  The agent gets the text of the page, works with the commands of the view as the view's profile,
  and cannot ask anyone. The result is `:ok` with the agent's report, or an `:error` that says why
  the run ended and which commands it ran. A book with a database records the run like other
  workflows.

  Pages of low trust and notes are not followed. Without an agent the result is the text of the
  page, with the status `:template`.

  The command and its agent share one time limit: `:timeout`, or the `timeout` of the page, or 10
  minutes. The agent also stops at its own `:max_time`.

  ## Options

  The options of `run/3` except `:by`, `:unclosed`, `:on_error` and `:on_result`, and:

    * `:agent` (keyword list) - the agent, with the options of the book's `:agent`. Defaults to
      the agent of the book

  ## Examples

      iex> folder = Path.join(System.tmp_dir!(), "skillbook_carry_out")
      iex> File.mkdir_p!(Path.join(folder, "home"))
      iex> File.write!(Path.join(folder, "home/tea.md"), \"\"\"
      ...> ---
      ...> name: home.tea
      ...> description: Keeps track of who likes tea
      ...> ---
      ...> ## Behavior
      ...>
      ...> Remember that Bob likes tea.
      ...> \"\"\")
      iex> model = Skillbook.Model.Function.new(fn messages, _options ->
      ...>   if List.last(messages).content =~ "Remember that Bob likes tea.",
      ...>     do: "```cmd\\nmemory.save --content \\"Bob likes tea\\"\\n```",
      ...>     else: "I have written it down."
      ...> end)
      iex> {:ok, _pid} =
      ...>   Skillbook.start_link(
      ...>     name: :carried_out,
      ...>     sources: [folder],
      ...>     store: ":memory:",
      ...>     agent: [model: model]
      ...>   )
      iex> result = Skillbook.carry_out(Skillbook.view(:carried_out), "home.tea")
      iex> {result.status, result.content, result.effects}
      {:ok, "I have written it down.", [:memory_saved]}
  """
  @spec carry_out(View.t(), String.t(), keyword()) :: Skillbook.Result.t()
  def carry_out(view, line, options \\ [])

  def carry_out(%View{} = view, line, options) when is_binary(line) and is_list(options),
    do: Skillbook.Workflow.Prose.carry_out(view, line, options)

  def carry_out(view, line, options) do
    Arguments.check!("Skillbook.carry_out/3",
      view: {:view, view},
      line: {:text, line},
      options: {:keyword, options}
    )
  end

  @doc """
  Returns the answer to `get_skill: PATH`; without a path, the list of all domains and skills.

  `Skillbook.Help.get/2` lists the kinds of paths.

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> {:ok, page} = Skillbook.get(Skillbook.View.all(catalog), "tasks.get")
      iex> page =~ "# tasks.get"
      true
  """
  @spec get(View.t(), String.t() | nil) :: Help.answer()
  def get(view, path \\ nil)

  def get(%View{} = view, path) when is_nil(path) or is_binary(path),
    do: Help.get(view, path)

  def get(view, path) do
    Arguments.check!("Skillbook.get/2", view: {:view, view}, path: {{:or_nil, :text}, path})
  end

  @doc """
  Searches the entries of a view; the best match comes first.

  The query may be a few words or a whole sentence. Not all words need to match, function words
  such as "the" hardly count, the last word may be a prefix, and small typing errors are
  corrected. An entry whose name or alias equals the query comes first. Case, accents and endings
  of words are ignored. Only the first 2,048 bytes and 32 different words of the query count.
  Entries with `disable-model-invocation` are never found.

  With the option `:embedder` of the book, entries of a similar meaning are found too, and scores
  are a mix of both; a name in a query of up to three words still comes first. Entries without a
  vector yet are ranked by their words, and if the query gets no vector within
  `:embedder_timeout`, all are. A view without a book (`Skillbook.View.new/2`) searches by words.

  ## Options

    * `:limit` (1 to 1,000) - the maximum number of hits. Defaults to `10`
    * `:kind` (`:command`, `:skill` or `:note`) - only entries of this kind
    * `:domain` (text) - only the commands of this domain
    * `:tags` (list of texts) - only entries with all of these tags

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> view = Skillbook.View.all(catalog)
      iex> Enum.map(Skillbook.search(view, "taks.create", limit: 1), & &1.name)
      ["tasks.create"]
      iex> [hit] = Skillbook.search(view, "remember facts", domain: "memory", limit: 1)
      iex> hit.name
      "memory.save"
  """
  @spec search(View.t(), String.t(), keyword()) :: [Hit.t()]
  def search(view, query, options \\ [])

  def search(%View{} = view, query, options) when is_binary(query) and is_list(options),
    do: Search.search(view, query, options)

  def search(view, query, options) do
    Arguments.check!("Skillbook.search/3",
      view: {:view, view},
      query: {:text, query},
      options: {:keyword, options}
    )
  end

  @doc """
  Reads all sources of a book again and returns when the new generation is in use.

  Existing views keep their generation.
  """
  @spec reload(book()) :: :ok
  def reload(book) do
    %Change{} = Watcher.reload(Book.fetch!(book).name)
    :ok
  end

  @doc """
  Subscribes the calling process to changes of a book.

  After every new generation it receives `{:skillbook, book, %Skillbook.Change{}}`. Subscribing
  twice has no effect; the subscription ends with the process or the book. Changes name entries of
  all labels, so this function is for trusted code.

  While a book with an `:embedder` embeds its texts, it also receives
  `{:skillbook_embedding, book, %{done: done, total: total, error: error}}`, several times a
  second: how many of all texts have a vector, and the error after which embedding waits, or
  `nil`.

      iex> {:ok, _pid} = Skillbook.start_link(name: :watched, watch: false)
      iex> Skillbook.subscribe(:watched)
      :ok
      iex> Skillbook.reload(:watched)
      iex> receive do: ({:skillbook, :watched, change} -> {change.generation, change.changed})
      {2, []}
  """
  @spec subscribe(book()) :: :ok
  def subscribe(book), do: Watcher.subscribe(Book.fetch!(book).name)

  @doc """
  Ends a subscription of `subscribe/1`. Messages that were already sent stay in the mailbox.
  """
  @spec unsubscribe(book()) :: :ok
  def unsubscribe(book), do: Watcher.unsubscribe(Book.fetch!(book).name)

  @doc """
  Returns the diagnostics of a book: files that were skipped, repaired or shadowed, and why.

  Skills that the circuit breaker has taken out of service come last.
  """
  @spec diagnostics(book()) :: [Diagnostic.t()]
  def diagnostics(book) do
    book = Book.fetch!(book)
    Catalog.diagnostics(book.catalog) ++ CircuitBreaker.diagnostics(book)
  end

  @doc """
  Reports how often the skills that a view shows were read, run and failed.

  Takes the options of `Skillbook.Usage.report/2`; `Skillbook.Usage` describes the counts.
  """
  @spec usage(View.t(), keyword()) ::
          {:ok, Skillbook.Usage.t()}
          | {:error, OptionError.t() | Skillbook.SQL.Error.t()}
  def usage(view, options \\ [])

  def usage(%View{} = view, options),
    do: Skillbook.Usage.report(view, options)

  def usage(view, _options) do
    Arguments.check!("Skillbook.usage/2", view: {:view, view})
  end

  @doc """
  Reports the next scheduled runs and the results of earlier ones, as far as a view shows their
  entries.

  Takes the options of `Skillbook.Agenda.new/2`; `Skillbook.Agenda` describes the report.
  """
  @spec schedule(View.t(), keyword()) ::
          {:ok, Skillbook.Agenda.t()} | {:error, OptionError.t() | Skillbook.SQL.Error.t()}
  def schedule(view, options \\ [])

  def schedule(%View{} = view, options),
    do: Skillbook.Agenda.new(view, options)

  def schedule(view, _options) do
    Arguments.check!("Skillbook.schedule/2", view: {:view, view})
  end

  @doc """
  Explains which file a name resolves to for a profile, why it is hidden, and its place in the
  prompt.

  The profile is the id of one of the book's profiles, a `Skillbook.Profile`, or its options. The
  last argument takes the options of `prompt/2` and selects the prompt. The explanation includes
  files that the profile may not see: use it in trusted code, never in an answer to a model.
  """
  @spec explain(
          book() | Catalog.t(),
          String.t(),
          String.t() | Profile.t() | keyword(),
          keyword()
        ) :: Explanation.t()
  def explain(book_or_catalog, name, profile, prompt \\ [])

  def explain(book_or_catalog, name, profile, prompt) when is_binary(name) and is_list(prompt),
    do: Explanation.new(book_or_catalog, name, profile, prompt)

  def explain(_book_or_catalog, name, _profile, prompt) do
    Arguments.check!("Skillbook.explain/4", name: {:text, name}, prompt: {:keyword, prompt})
  end
end
