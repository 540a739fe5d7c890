defmodule Skillbook do
  @moduledoc """
  Runs the skills of a language-model assistant.

  A skill is a Markdown document. The model sees a list of skills in its system prompt, reads a
  page with `get_skill`, and acts by writing commands in `cmd` blocks. Skillbook extracts the
  commands from the reply, runs their handlers and returns a report for the model.

  ## Example

  A running instance is called a book. This one has two built-in skills, those of the domain
  `memory`, and a database in memory:

      iex> options = [name: :example, builtins: ["memory"], store: ":memory:"]
      iex> {:ok, _pid} = Skillbook.start_link(options)
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

  Functions that read or run take a view, or the name of a book with the option `:profile`, which
  makes a new view: `Skillbook.run(MyApp.Skills, reply, profile: "guest")`. Options are keyword
  lists, or maps with atoms as keys.

  ## Options

  ### Skills

    * `:name` (atom) - the name of the book, and no `{:via, module, term}`; see [one book for all
      tenants](docs/tenants.md#one-book-for-all-tenants). Required
    * `:sources` (list) - folders, options of `Skillbook.Source`, or other items of
      `Skillbook.Source.list/1`, such as `{:priv, :my_app, "skills"}`. A folder must exist, unless
      its source is `optional: true`. If two sources have an entry of the same name, the later
      source wins. Defaults to `[]`
    * `:builtins` (boolean, or list of domains and globs) - which built-in skills are loaded, as
      the first source: none, all, or for example `["tasks", "memory.*"]`. Each command is one
      more tool, or a line in the prompt, so name those that the assistant needs. Those of
      `markdown` need `:vaults`. Those of `email`, `calendar`, `drive` and `hubspot` are for
      `:connections`; `:google` and `:microsoft` mean the first three, and `true` and `"*"` only
      those of the services that are connected. `:assistant` adds [skills of
      instructions](skills.md#begin-with-the-assistant-pack), as in `["tasks", :assistant]`, which
      `true` and `"*"` do not. Defaults to `false`
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
      available. If the database is unreachable later, the book keeps the entries that it has:
      all, or in a large store those of tenants that were read lately
      ([scaling](docs/scaling.md#what-grows-with-what)).
      Without a database (`nil`, the default) commands that need one return an error
    * `:store_poll` (milliseconds) - how often the database is checked for changes by other books.
      Connected nodes and databases with notifications report changes without it. Defaults to
      `500`
    * `:store_memory` (bytes) - how much memory the stored skills and notes take that profiles
      read at the moment, and how much the vectors of memories and notes of vaults take; see
      [scaling](docs/scaling.md#limits-in-the-order-in-which-they-come). Others are packed, or in
      the database alone. Defaults to `134_217_728`, 128 MiB
    * `:vaults` (list) - folders of notes and other documents that `markdown.search` searches:
      paths or options of `Skillbook.Vault`. Needs a `:store`. Defaults to `[]`

  ### Connections

    * `:connections` (keyword list, or a function without arguments that returns one) - accounts
      at other vendors for mail, calendars, files and customers, and the `:key` that encrypts
      their tokens in the `:store`; see `Skillbook.Connections`. Defaults to `[]`

  ### Search by meaning

    * `:embedder` (embedder or `nil`) - the model whose vectors `search/3` uses beside words, such
      as a `Skillbook.Embedder.OpenAI`; see `Skillbook.Embedder`. The name, title, description,
      tags and trigger keywords of all entries are embedded in the background, except of those
      with `disable-model-invocation`, and so are the notes of vaults, memories, and the queries
      of searches. All of them are sent to the embedder, whatever their labels; in a store with
      more than 10,000 entries, those of a tenant once somebody reads as this tenant. Vectors are
      kept in the `:store`, so that a restart embeds nothing again; without a store they are kept
      in memory. `subscribe/1` tells the progress. Defaults to `nil`
    * `:embedder_timeout` (milliseconds) - how long a search waits for the vector of its query
      before it goes by words alone. Defaults to `300`

  ### Access

    * `:profiles` (list, function of one argument or `{module, function}`) - the identities that
      read and run skills, as options of `Skillbook.Profile`, each with its own `:id`. A function
      gets an id and returns `{:ok, profile}`, `nil` or `:error` if it has none, or
      `{:error, exception}`; see [profiles](docs/profiles.md). It may stand in the list too, after
      profiles that are always there. A book without profiles has the profile `"default"`, which
      sees all entries without visibility labels and may write. A book with profiles has only
      those. Defaults to `[]`
    * `:assigns` (map, or a function without arguments that returns one) - values for all
      handlers, which read them from `context.assigns`; see `Skillbook.Context`. Defaults to `%{}`
    * `:roles` (list of keyword lists) - options that profiles share. A role has an `:id`, which
      profiles name as their `:role`, and any of `:grants`, `:skills`, `:tools`, `:writes`,
      `:labels` and `:preflight`. Defaults to `[]`
    * `:ask` (function of one argument, `{module, function}` or `nil`) - decides whether a command
      with side effects may run, for profiles with `writes: :ask`, and whether a command of a page
      with `approval: required` may, for all profiles; see `Skillbook.Request`. Defaults to `nil`
    * `:ask_timeout` (milliseconds or `:infinity`) - how long the callback may take. Without an
      answer the command does not run. Defaults to `600_000`
    * `:approvals` (keyword list) - the calls that [wait for an
      approval](docs/approvals.md#wait-for-an-approval), in the `:store`: they `:expire` after
      this number of seconds; a profile may have `:max_waiting` of them; decided ones are deleted
      `:keep` days after they would have expired; a call that runs is held for `:lease`
      milliseconds at a time, and is interrupted if its node dies. Defaults to
      `[expire: 604_800, max_waiting: 100, keep: 90, lease: 60_000]`

  ### Limits

    * `:timeout` (milliseconds) - the time limit of a handler. The `timeout` of a page takes
      precedence. Defaults to `30_000`
    * `:drain` (milliseconds) - how long what runs may go on when the book stops; see
      [Stop a book](docs/running.md#stop-a-book). Defaults to `15_000`
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
      prose](docs/workflows.md) outside of conversations, from a schedule or by
      `carry_out/3`; its options are also the defaults of `Skillbook.Agent.run/3`. It takes these
      of them: `:model` (required), `:system`, `:chat`, `:grammar`, `:protocol`, `:tools`,
      `:leader`, `:hand_over`, `:max_turns`, `:max_time`, `:max_tokens`, `:max_cost`,
      `:max_repeats`, `:max_context`, `:summary` and `:max_depth`. Defaults to `nil`

    * `:hooks` (list) - modules of the application that check, change, refuse or record turns,
      calls of models and commands; see [hooks](docs/hooks.md). Profiles may have more. Defaults
      to `[]`

    * `:prices` (map) - what a million tokens of models cost, by their names:
      `%{"gpt-5" => [input: 1.25, output: 10, cached: 0.125]}`; see
      [usage](docs/usage.md#count-costs). Defaults to `%{}`

    * `:budget` (keyword list) - what runs of agents may cost in a day: `:day` for all of them,
      `:tenant_day`, `:profile_day`, `:skill_day` for each tenant, profile and skill; see
      [usage](docs/usage.md#count-costs). Needs `:prices` and a database. Defaults to `[]`, no
      limits

    * `:preflight` (keyword list, `false` or `nil`) - loads the skills that match a message before
      the model reads it: options of `Skillbook.Preflight.run/3`, for example `[]`. Profiles may
      have their own. Defaults to `nil`, none

    * `:parts` (list) - modules that use `Skillbook.Part`, beside those of the installed packages.
      Defaults to `[]`

    * `:sections` (list) - sections that the application adds to conversations: the open tasks,
      memories that fit, who the user is. See `Skillbook.Prompt.Sections`. Defaults to `[]`

  ### Monitoring

    * `:usage` (keyword list or `false`) - the counts that `usage/2` reports, for books with a
      `:store`: written every `:flush` milliseconds, kept for `:keep` days, with at most `:most`
      different counts in memory between two writes. Defaults to
      `[flush: 5_000, keep: 365, most: 10_000]`
    * `:conversations` (keyword list or `false`) - whether the [page](docs/page.md) shows the
      conversations of `Skillbook.Agent` to operators, with each message and command, and so all
      that was said: stored in the `:store` for `:keep` days, at most `:max` of each profile. `[]`
      means `[keep: 30, max: 200]`. Defaults to `false`
    * `:durable` (boolean or keyword list) - whether runs of agents are journalled in the
      `:store`, and continued after their process or node has ended; see `Skillbook.Agent.Runs`.
      The list has `:lease`, the milliseconds after which another node continues the runs of one
      that died; `:max_continued`, how often a run is continued, at most `:max_running` at a
      time, or none with `continue: false`; and for how many days to `:keep` it. `true` means
      `[lease: 60_000, max_continued: 3, max_running: 5, continue: true, keep: 7]`. Defaults to
      `false`
    * `:keep` (keyword list) - for how many days the `:store` keeps `:versions` of entries that
      are not among the newest 20 of their entry, `:deleted` entries with their versions, and
      `:runs` of workflows; each a number or `:infinity`. [What a database
      keeps](docs/production.md#what-a-database-keeps) has the other limits. Defaults to
      `[versions: 365, deleted: 365, runs: 90]`
    * `:telemetry_flags` (boolean) - whether telemetry events carry the flags of commands, which
      may be secret. Defaults to `false`
  """

  alias Skillbook.Catalog.{Search, Watcher}
  alias Skillbook.Reply.Pipeline
  alias Skillbook.Run.CircuitBreaker
  alias Skillbook.SQL.Location
  alias Skillbook.Support.{Arguments, Options}

  alias Skillbook.{
    Approval,
    Book,
    Catalog,
    Change,
    Diagnostic,
    Explanation,
    Firing,
    Help,
    Hit,
    OptionError,
    Part,
    Profile,
    Prompt,
    Report,
    View
  }

  @typedoc "The name of a running book."
  @type book :: atom()

  @typedoc """
  The first argument of functions that read or run: a view, or the name of a book.

  With a book, the option `:profile` has the id of one of its profiles, or a `Skillbook.Profile`.
  It defaults to `"default"`.
  """
  @type view_or_book :: View.t() | book()

  @typedoc "Options: a keyword list, or a map with atoms as keys."
  @type options :: keyword() | %{optional(atom()) => term()}

  @doc """
  Starts a book with the [options](#module-options) above.

  Returns `{:error, exception}` if an option is invalid, the folder of a source is missing and not
  optional, a configuration file of a source cannot be read, or the database cannot be opened.
  Errors in documents do not stop the start. They are logged, as warnings are, and `diagnostics/1`
  returns them.

      iex> {:error, error} = Skillbook.start_link(name: :typo, sorces: ["priv/skills"])
      iex> error.option
      :sorces
  """
  @spec start_link(options()) :: Supervisor.on_start() | {:error, Exception.t()}
  defdelegate start_link(options), to: Book

  @doc false
  def child_spec(options) do
    # Other terms are an error of the start.
    options = Options.keywords(options)
    keyword? = Keyword.keyword?(options)

    %{
      id: {__MODULE__, if(keyword?, do: options[:name])},
      start: {Book, :start_child, [if(keyword?, do: hide(options), else: options)]},
      type: :supervisor
    }
  end

  # Functions keep the password of a URL, assigns and secrets out of supervisor reports.
  defp hide(options) do
    options
    |> Keyword.replace_lazy(:store, fn store ->
      if Location.url?(store), do: fn -> store end, else: store
    end)
    |> hide_assigns()
    |> Keyword.replace_lazy(:connections, &hide_connections/1)
    |> Keyword.replace_lazy(:profiles, fn profiles ->
      if is_list(profiles), do: Enum.map(profiles, &hide_assigns/1), else: profiles
    end)
  end

  defp hide_connections(connections) when is_function(connections), do: connections
  defp hide_connections(connections), do: fn -> connections end

  defp hide_assigns(options) do
    options = Options.keywords(options)

    with true <- Keyword.keyword?(options),
         {:ok, assigns} when not is_function(assigns) <- Keyword.fetch(options, :assigns) do
      Keyword.put(options, :assigns, fn -> assigns end)
    else
      _ -> options
    end
  end

  @doc """
  Returns the current catalog of a book as a profile may see it.

  The profile is the id of one of the book's profiles, or a `Skillbook.Profile`. Raises
  `ArgumentError` if the book or the profile does not exist; `"default"` exists in a book without
  `:profiles`, and in one that declares it. In a book with a large store it may have to read the
  entries of the profile's tenant, and raises the database's `Skillbook.SQL.Error`.
  """
  @spec view(book(), String.t() | Profile.t()) :: View.t()
  def view(book, profile \\ "default"), do: View.of(book, profile)

  @doc ~S"""
  As `view/2`, but returns `{:ok, view}` or `{:error, exception}`.

  The error is a `Skillbook.ProfileError` if the book has no such profile, or could not read it,
  an `ArgumentError` if the book does not run, and a `Skillbook.SQL.Error` if the database cannot
  be read.

      iex> {:ok, _pid} = Skillbook.start_link(name: :fetch_view_example, profiles: [[id: "ann"]])
      iex> {:ok, view} = Skillbook.fetch_view(:fetch_view_example, "ann")
      iex> view.profile.id
      "ann"
      iex> {:error, error} = Skillbook.fetch_view(:fetch_view_example, "bob")
      iex> {error.kind, Exception.message(error)}
      {:unknown, "the book :fetch_view_example has no profile \"bob\""}
  """
  @spec fetch_view(book(), String.t() | Profile.t()) ::
          {:ok, View.t()} | {:error, Exception.t()}
  def fetch_view(book, profile \\ "default"), do: View.fetch_of(book, profile)

  @doc """
  Returns the part of the system prompt that explains commands and lists the skills of a view.

  Takes the options of `Skillbook.Prompt.text/2`.
  """
  @spec prompt(view_or_book(), options()) :: String.t()
  def prompt(view_or_book, options \\ []) do
    {view, options} = View.from(view_or_book, options, "Skillbook.prompt/2")
    Prompt.text(view, options)
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

    * `:assigns` (map) - values for handlers, which read them from `context.assigns`. They replace
      those of the profile and of the book, name by name. Defaults to `%{}`
    * `:now` (`DateTime` in UTC) - the time that handlers see. Defaults to the system's clock
    * `:by` (`:agent` or `:user`) - the author of the commands, a model or a person. It is
      recorded on skills and notes that the commands write. Defaults to `:agent`
    * `:timeout` (milliseconds) - the time limit of each handler. Defaults to the limit of the
      page, or of the book
    * `:ask` (function of one argument or `{module, function}`) - decides about commands with side
      effects; see `t:Skillbook.Request.ask/0`. Defaults to the callback of the book
    * `:ask_timeout` (milliseconds or `:infinity`) - how long it may take. Defaults to the limit
      of the book
    * `:max_result` (characters or `:infinity`) - how much of each result the model gets. Defaults
      to the limit of the book
    * `:on_error` (`:continue` or `:halt`) - with `:halt`, the commands after one that failed or
      waits for an approval are not run and get the status `:skipped`. Defaults to `:continue`
    * `:on_result` (function of one argument) - called with each result as soon as it is ready
    * `:unclosed` (`:hold` or `:run`) - whether to run a `cmd` block that the end of the reply cut
      off. Use `:run` if you stop the model at the closing fence. Defaults to `:hold`
  """
  @spec run(view_or_book(), binary(), options()) :: Report.t()
  def run(view_or_book, text, options \\ []) do
    {view, options} = View.from(view_or_book, options, "Skillbook.run/3", text: {:text, text})
    Pipeline.run(view, text, options)
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
      ...>     builtins: ["memory"],
      ...>     store: ":memory:",
      ...>     agent: [model: model]
      ...>   )
      iex> result = Skillbook.carry_out(:carried_out, "home.tea")
      iex> {result.status, result.content, result.effects}
      {:ok, "I have written it down.", [:memory_saved]}
  """
  @spec carry_out(view_or_book(), String.t(), options()) :: Skillbook.Result.t()
  def carry_out(view_or_book, line, options \\ []),
    do: operate(:carry_out, view_or_book, line, options)

  @doc """
  Lists the calls that wait for an approval, or had one, the newest first.

  With a view, those of its profile, as far as the view shows their skills. With the name of a
  book, those of all profiles, for trusted code; with the option `:profile` too, those of that
  profile as its view shows them.

  ## Options

    * `:status` (status or list of them) - see `Skillbook.Approval`. Defaults to `[:pending]`
    * `:limit` (1 to 1,000) - the maximum number. Defaults to `100`
    * `:after` (text) - only those after this one in the list, by its `ref`: that of the last one
      of a page, for the next page
    * `:profile` (text or `Skillbook.Profile`) - with the name of a book
    * `:now` (`DateTime` in UTC) - the time by which calls expire. Defaults to the system's clock

  ## Examples

      iex> {:ok, _pid} = Skillbook.start_link(name: :approvals_example, store: ":memory:")
      iex> Skillbook.approvals(:approvals_example)
      {:ok, []}
  """
  @spec approvals(View.t() | book(), keyword() | map()) ::
          {:ok, [Approval.t()]} | {:error, Exception.t()}
  def approvals(view_or_book, options \\ [])

  def approvals(view_or_book, options) do
    Arguments.check!("Skillbook.approvals/2",
      view_or_book: {:view_or_book, view_or_book},
      options: {:options, options}
    )

    options = Options.keywords(options)

    if is_atom(view_or_book) and not Keyword.has_key?(options, :profile) do
      Part.call(:approvals, [Book.fetch!(view_or_book).name, options])
    else
      {view, options} = View.from(view_or_book, options)
      Part.call(:approvals, [view, options])
    end
  end

  @doc """
  Approves a call that waits, runs it, and returns the approval with its `:result`.

  It runs in the calling process as the profile that made it, with the rights that both the call
  had and the profile has now. It runs once, however many nodes approve it at the same moment. If
  the page is prose, the book's `:agent` follows it, as in `carry_out/3`.

  Returns `{:error, exception}` if it has not run: a `Skillbook.ApprovalError` if it cannot be
  approved, or the error of a check, such as a `Skillbook.BusyError`, after which it waits again.
  A command that ran and failed has the status `:failed`.

  Only trusted code may call this function; no command does.

  ## Options

    * `:by` (text) - who approves it. It is stored. Required
    * `:reason` (text or `nil`) - stored too. Defaults to `nil`
    * `:force` (boolean) - whether it runs although the page has changed since the call. Defaults
      to `false`
    * `:resume` (boolean or keyword list) - whether the conversation in which the call was made
      goes on with the result, with the book's `:agent` and these options of
      `Skillbook.Agent.run/3`. The field `:run` has the result. Defaults to `false`
    * `:now` (`DateTime` in UTC) - the time of the decision. Defaults to the system's clock
  """
  @spec approve(book(), String.t(), keyword() | map()) ::
          {:ok, Approval.t()} | {:error, Exception.t()}
  def approve(book, ref, options), do: decide(:approve, book, ref, options)

  @doc """
  Denies a call that waits. It never runs.

  Takes the options of `approve/3` except `:force`. With `:resume`, the conversation goes on with
  the text that the call was declined, and the reason.
  """
  @spec deny(book(), String.t(), keyword() | map()) ::
          {:ok, Approval.t()} | {:error, Exception.t()}
  def deny(book, ref, options), do: decide(:deny, book, ref, options)

  defp decide(name, book, ref, options) do
    Arguments.check!("Skillbook.#{name}/3",
      book: {:book, book},
      ref: {:text, ref},
      options: {:options, options}
    )

    Part.call(name, [Book.fetch!(book).name, ref, Options.keywords(options)])
  end

  @doc """
  Returns the answer to `get_skill: PATH`; without a path, the list of all domains and skills.

  `Skillbook.Help.get/3` lists the kinds of paths.

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> {:ok, page} = Skillbook.get(Skillbook.View.all(catalog), "tasks.get")
      iex> page =~ "# tasks.get"
      true
  """
  @spec get(view_or_book(), String.t() | nil, options()) :: Help.answer()
  def get(view_or_book, path \\ nil, options \\ []) do
    path_type = [path: {{:or_nil, :text}, path}]
    view = View.only_from(view_or_book, options, "Skillbook.get/3", path_type)
    Help.get(view, path)
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
  @spec search(view_or_book(), String.t(), options()) :: [Hit.t()]
  def search(view_or_book, query, options \\ []) do
    {view, options} =
      View.from(view_or_book, options, "Skillbook.search/3", query: {:text, query})

    Search.search(view, query, options)
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
  twice has no effect. Changes name entries of all labels, so this function is for trusted code.
  Entries of tenants that a node does not have in memory are among the changed ones, also if they
  are new or gone.

  The subscription ends with the process, and outlasts a restart of the book or of one of its
  processes. `{:skillbook_started, book, generation}` follows it: messages from before may be
  missing.

  While a book with an `:embedder` embeds its texts, it also receives
  `{:skillbook_embedding, book, %{done: done, total: total, error: error}}`, several times a
  second: how many of all texts have a vector, and the error after which embedding waits, or
  `nil`.

  It also receives `{:skillbook_approval, book, %Skillbook.Approval{}}` when a call begins to wait
  for an approval, has run, is denied, expires or is interrupted, on the node where this happens
  or is noticed: an expired call by the next one that waits, is listed or decided. A decision on
  another node sends nothing here. A call in a run of an agent is told when its conversation is
  stored, or the run has died.

  When a run of a workflow has begun or ended on this node, and when a firing of a schedule has
  ended, it receives `{:skillbook_run, book, %{name: name, profile: profile, tenant: tenant}}`
  with the name of the entry and the id of the profile with its tenant. The profile is `nil` when
  somebody has paused, resumed or run a schedule, or reset a circuit breaker, on any node.

  Two messages are about changes without a generation. `{:skillbook_files, book, files}` has the
  names of skills beside whose pages files have changed, each with the path; it is `:all` after
  the system has lost reports. `{:skillbook_disabled, book, :changed}` comes when disabled entries
  of the store have changed.

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
  def unsubscribe(book) do
    # The book may have stopped since.
    if Watcher.unsubscribe(book) == :not_joined, do: Book.fetch!(book)
    :ok
  end

  @doc """
  Returns the diagnostics of a book: files that were skipped, repaired or shadowed, and why.

  Those of MCP servers and skills that the circuit breaker has taken out of service come last.
  """
  @spec diagnostics(book()) :: [Diagnostic.t()]
  def diagnostics(book) do
    book = Book.fetch!(book)

    Catalog.diagnostics(book.catalog) ++
      Part.flat(book.parts, :diagnostics, [book]) ++
      CircuitBreaker.diagnostics(book, :all)
  end

  @doc """
  Reports how often the skills that a view shows were read, run and failed.

  Takes the options of `Skillbook.Usage.report/2`; `Skillbook.Usage` describes the counts.
  """
  @spec usage(view_or_book(), options()) ::
          {:ok, Skillbook.Usage.t()}
          | {:error, OptionError.t() | Skillbook.SQL.Error.t()}
  def usage(view_or_book, options \\ []) do
    {view, options} = Skillbook.Usage.from(view_or_book, options, "Skillbook.usage/2")
    Skillbook.Usage.report(view, options)
  end

  @doc """
  Reports the next scheduled runs and the results of earlier ones, as far as a view shows their
  entries.

  Takes the options of `Skillbook.Agenda.report/2`; `Skillbook.Agenda` describes the report.
  """
  @spec schedule(view_or_book(), options()) ::
          {:ok, Skillbook.Agenda.t()} | {:error, OptionError.t() | Skillbook.SQL.Error.t()}
  def schedule(view_or_book, options \\ []) do
    {view, options} = View.from(view_or_book, options, "Skillbook.schedule/2")
    Part.call(:schedule, [view, options])
  end

  @doc """
  Pauses the schedule of a skill on all nodes of the book, until `resume_schedule/3`.

  The pause is in the database, so it also holds after a restart. Firings that have begun, or were
  handed to a job queue, go on. Times that come meanwhile are missed; the option `:missed` of
  `:schedules` decides about them when the schedule is resumed. `run_schedule/3` runs it anyway.

  Returns the pause: `:at`, `:by` and `:reason`. A schedule that is paused already stays so, with
  the pause that it has.

  Returns `{:error, exception}` if the view does not show the skill
  (`Skillbook.UnknownSkillError`), and a `Skillbook.OperationError` if the skill has no schedule,
  the book has no database, or the skill runs as another profile than that of the view. An
  unrestricted view may pause all schedules. Only trusted code may call this function; no command
  does.

  ## Options

    * `:by` (text) - who pauses it. It is stored. Required
    * `:reason` (text or `nil`) - stored too. Defaults to `nil`
    * `:operator` (boolean) - whether an operator asks, who may pause all schedules that the view
      shows, of any profile. Defaults to `false`

  ## Examples

      iex> folder = Path.join(System.tmp_dir!(), "pause_example")
      iex> File.mkdir_p!(folder)
      iex> page = "---\\nname: digest\\ndescription: Digest\\nschedule: 0 8 * * 1\\n---\\n"
      iex> File.write!(Path.join(folder, "digest.md"), page)
      iex> options = [name: :pause_example, sources: [folder], store: ":memory:"]
      iex> {:ok, _pid} = Skillbook.start_link(options)
      iex> view = Skillbook.View.all(:pause_example)
      iex> {:ok, pause} = Skillbook.pause_schedule(view, "digest", by: "Bob")
      iex> {:ok, %{next: [%{paused: ^pause}]}} = Skillbook.schedule(view, names: ["d*"])
      iex> {:ok, ^pause} = Skillbook.resume_schedule(view, "digest", by: "Bob")
      iex> {pause.by, Skillbook.resume_schedule(view, "digest", by: "Bob")}
      {"Bob", {:ok, nil}}
  """
  @spec pause_schedule(view_or_book(), String.t(), options()) ::
          {:ok, %{at: DateTime.t(), by: String.t(), reason: String.t() | nil}}
          | {:error, Exception.t()}
  def pause_schedule(view_or_book, name, options),
    do: operate(:pause_schedule, view_or_book, name, options)

  @doc """
  Resumes a schedule that `pause_schedule/3` has paused.

  Returns the pause that ended, or `nil` if the schedule was not paused. Nodes notice it like a
  write to the store, at the latest after their `:lease`. If a time came during the pause, it is
  treated as missed; see [Schedules](schedules.md#handle-missed-and-interrupted-runs).

  Takes the options of `pause_schedule/3`, and returns its errors.
  """
  @spec resume_schedule(view_or_book(), String.t(), options()) ::
          {:ok, %{at: DateTime.t(), by: String.t(), reason: String.t() | nil} | nil}
          | {:error, Exception.t()}
  def resume_schedule(view_or_book, name, options),
    do: operate(:resume_schedule, view_or_book, name, options)

  @doc """
  Runs a skill with a schedule now, as its schedule would: as its profile, once, on one of the
  nodes that run schedules. It also runs while the schedule is paused.

  Returns the `Skillbook.Firing` at once. `schedule/2` lists its result. A run that no node has
  begun within a minute is a missed firing, and lapses after a day.

  Takes the options of `pause_schedule/3`, and returns its errors. If the book itself runs
  schedules, it also checks that this one can run.
  """
  @spec run_schedule(view_or_book(), String.t(), options()) ::
          {:ok, Firing.t()} | {:error, Exception.t()}
  def run_schedule(view_or_book, name, options),
    do: operate(:run_schedule, view_or_book, name, options)

  @doc """
  Resets the [circuit breaker](running.md#when-a-handler-keeps-failing) of a skill: its failures
  are forgotten, and it is in service again.

  With an unrestricted view or `operator: true`, for all profiles, or those of the view's tenant
  if it has one; otherwise for the view's own. A book with a database does the same on all its
  nodes, within moments. Without one, it is reset in this book only.

  Returns the failures that this node has forgotten, a map for each profile: `:name`, `:profile`,
  `:state` (`:closed`, `:open`, `:half_open` or `:trial`), `:failures`, `:since` and `:retry_at`.

  Takes the options of `pause_schedule/3`. Returns `{:error, exception}` if the view does not show
  the skill (`Skillbook.UnknownSkillError`), or the skill has no handler
  (`Skillbook.OperationError`).
  """
  @spec reset_breaker(view_or_book(), String.t(), options()) ::
          {:ok, [map()]} | {:error, Exception.t()}
  def reset_breaker(view_or_book, name, options),
    do: operate(:reset_breaker, view_or_book, name, options)

  defp operate(name, view_or_book, subject, options) do
    argument = {Part.operation(name).subject, {:text, subject}}
    {view, options} = View.from(view_or_book, options, "Skillbook.#{name}/3", [argument])
    Part.call(name, [view, subject, options])
  end

  @doc """
  Explains which file a name resolves to for a profile, why it is hidden, and its place in the
  prompt.

  The explanation includes files that the profile may not see: use it in trusted code, never in an
  answer to a model.

  ## Options

  The options of `prompt/2`, which select the prompt, and:

    * `:profile` - the id of one of the book's profiles, a `Skillbook.Profile`, or its options.
      Defaults to `"default"`; required for a catalog
    * `:tenant` (text, `nil` or `:all`) - leaves out the files of tenants that a profile with this
      `:tenant` does not see. Defaults to `:all`

  An id or a `Skillbook.Profile` instead of the options is short for `profile:`.
  """
  @spec explain(book() | Catalog.t(), String.t(), options() | String.t() | Profile.t()) ::
          Explanation.t()
  def explain(book_or_catalog, name, options \\ [])

  def explain(book_or_catalog, name, profile)
      when is_binary(profile) or is_struct(profile, Profile),
      do: explain(book_or_catalog, name, profile: profile)

  def explain(book_or_catalog, name, options) do
    Arguments.check!("Skillbook.explain/3", name: {:text, name}, options: {:options, options})
    Explanation.new(book_or_catalog, name, Options.keywords(options))
  end
end
