defmodule Skillbook.Book do
  @moduledoc false
  # A running instance: a catalog, and a supervisor over its database and the tasks of its handlers. What readers need of
  # it stands in `:persistent_term`, written once when it starts, so that reading takes no lock and no process; what
  # changes stands behind references in there.

  use Supervisor

  alias Skillbook.Agent.Settings

  alias Skillbook.Catalog.Watcher
  alias Skillbook.Reply.StoredResults
  alias Skillbook.Run.{CircuitBreaker, ConcurrencyLimit, Worker}
  alias Skillbook.Store.Follower
  alias Skillbook.Support.Options
  alias Skillbook.{Catalog, OptionError, Profile, Request, Source, Telemetry, Vault}

  alias Skillbook.SQL.{Migrations, SQLite}
  alias Skillbook.Search.Backfill
  alias Skillbook.Usage.{Counter, Writer}

  @breaker [failures: 5, cooldown: 30_000]
  @usage [flush: 5_000, keep: 365, most: 10_000]
  @schedules [
    run_as: nil,
    timeout: 300_000,
    max_running: 10,
    lease: 60_000,
    missed: :skip,
    interrupted: :fail,
    keep: 90,
    min_interval: 300,
    max_per_profile: 50,
    dispatch: nil,
    clock: nil
  ]

  @type t :: %__MODULE__{
          name: atom(),
          sources: [Source.t()],
          catalog: Catalog.t() | nil,
          store: {module(), keyword()} | nil,
          store_poll: pos_integer(),
          revision: :atomics.atomics_ref() | nil,
          profiles: %{String.t() => Profile.t()},
          write_to: Path.t() | nil,
          timeout: pos_integer(),
          ask: Request.ask() | nil,
          max_running: pos_integer() | :infinity,
          max_running_per_skill: pos_integer() | :infinity,
          max_agents: pos_integer() | :infinity,
          max_wait: pos_integer(),
          max_result: pos_integer() | :infinity,
          breaker: [failures: pos_integer(), cooldown: pos_integer()] | false,
          usage: [flush: pos_integer(), keep: pos_integer(), most: pos_integer()] | false,
          scheduler: {module(), term()} | false,
          schedules: keyword(),
          agent: keyword() | nil,
          telemetry_flags: boolean(),
          watch: boolean() | [poll: pos_integer()],
          vaults: [Vault.Config.t()]
        }

  @enforce_keys [:name]
  defstruct [
    :name,
    :catalog,
    :store,
    :revision,
    :write_to,
    :ask,
    :agent,
    store_poll: 500,
    sources: [],
    profiles: %{},
    timeout: 30_000,
    max_running: :infinity,
    max_running_per_skill: :infinity,
    max_agents: 8,
    max_wait: 30_000,
    max_result: 30_000,
    breaker: @breaker,
    usage: @usage,
    scheduler: false,
    schedules: @schedules,
    telemetry_flags: false,
    watch: true,
    vaults: []
  ]

  @typedoc "What works with books, and so is not known to them: what runs schedules, and the engine that it has by default."
  @type schedulers :: {server :: module(), engine :: module()}

  @spec start_link(keyword(), schedulers()) :: Supervisor.on_start() | {:error, Exception.t()}
  def start_link(options, {server, engine}) do
    Telemetry.load()

    with {:ok, book} <- new(options, engine),
         # Before the supervisor, which keeps it: whatever it starts again goes on with the same generations.
         {:ok, catalog} <- Catalog.load(book.sources) do
      case Supervisor.start_link(__MODULE__, {%{book | catalog: catalog}, server}, name: book.name) do
        {:error, {:shutdown, {:failed_to_start_child, _child, error}}} when is_exception(error) ->
          {:error, error}

        started ->
          started
      end
    end
  end

  @doc "The running book of a name."
  @spec fetch!(atom()) :: t()
  def fetch!(name) when is_atom(name) do
    find(name) ||
      raise ArgumentError, "expected the name of a running book, got: #{inspect(name)}"
  end

  @doc "As `fetch!/1`, or nil; also for nil, which names none."
  @spec find(atom()) :: t() | nil
  def find(name), do: :persistent_term.get({__MODULE__, name}, nil)

  @doc "The handle of its database, or nil."
  @spec sql(t()) :: Skillbook.SQL.t() | nil
  def sql(%__MODULE__{store: nil}), do: nil
  def sql(%__MODULE__{store: {module, options}}), do: module.handle(options[:name])

  @spec profile(t(), String.t() | Profile.t()) :: Profile.t()
  def profile(_book, %Profile{} = profile), do: profile

  def profile(book, id) do
    case book.profiles do
      %{^id => profile} ->
        profile

      profiles ->
        known = profiles |> Map.keys() |> Enum.map_join(", ", &inspect/1)

        raise ArgumentError,
              "expected a profile of the book #{inspect(book.name)} (#{known}), got: #{inspect(id)}"
    end
  end

  @impl true
  def init({book, server}) do
    store = if book.store, do: [book.store, {__MODULE__.Migration, book}], else: []

    follower =
      if book.store,
        do: [%{id: Follower, start: {__MODULE__, :start_follower, [book.name]}}],
        else: []

    children =
      store ++
        usage(book) ++
        [
          Watcher.subscribers(book.name),
          {StoredResults, book.name},
          {CircuitBreaker, book},
          {ConcurrencyLimit, book},
          {__MODULE__.Registration, book},
          {Task.Supervisor, name: Worker.supervisor(book.name)},
          %{id: Watcher, start: {__MODULE__, :start_watcher, [book.name]}}
        ] ++ follower ++ vaults(book) ++ if(book.scheduler, do: server.children(book), else: [])

    # What comes later in the list works with what comes earlier.
    Supervisor.init(children, strategy: :rest_for_one)
  end

  defp usage(%{store: store, usage: usage}) when store == nil or usage == false, do: []

  defp usage(book) do
    Counter.new(book.name, book.usage[:most])
    [{Writer, %{book: book.name, usage: book.usage, sql: fn -> sql(book) end}}]
  end

  # Each by itself: one that cannot be indexed stops nothing else.
  defp vaults(%{vaults: vaults} = book) do
    indexers =
      for %{producer: {_, _}} = vault <- vaults do
        vault = %{vault | watch: vault.watch and book.watch != false}
        {Vault.Indexer, {book.name, vault, fn -> sql(book) end}}
      end

    if indexers == [],
      do: [],
      else: [{Registry, keys: :unique, name: Vault.Indexer.registry(book.name)} | indexers]
  end

  @doc false
  def start_watcher(name), do: Watcher.start_link(fetch!(name))

  @doc false
  def start_follower(name), do: Follower.start_link(fetch!(name))

  # Options

  @plain [
    :store_poll,
    :timeout,
    :ask,
    :agent,
    :max_running,
    :max_running_per_skill,
    :max_agents,
    :max_wait,
    :max_result,
    :breaker,
    :usage,
    :telemetry_flags,
    :watch
  ]

  defp new(options, engine) do
    with :ok <- Options.validate(options, "a book", schema()),
         :ok <- Options.validate(options[:schedules] || [], "a book's :schedules", schedules()),
         {:ok, name} <- fetch_name(options),
         :ok <- Settings.validate_book(options[:agent]),
         {:ok, roles} <- Profile.roles(options[:roles] || []),
         {:ok, profiles} <- profiles(options[:profiles] || [], roles),
         {:ok, sources} <- sources(options),
         {:ok, scheduler} <- scheduler(options[:scheduler], options[:store], engine),
         {:ok, vaults} <- vaults(options[:vaults] || [], options[:store]) do
      book = %__MODULE__{
        name: name,
        profiles: profiles,
        sources: sources,
        scheduler: scheduler,
        schedules: Keyword.merge(@schedules, options[:schedules] || []),
        vaults: vaults,
        write_to: expand(options[:write_to])
      }

      book = with_store(book, store(options[:store], name))
      options = Keyword.replace_lazy(options, :breaker, &(&1 && Keyword.merge(@breaker, &1)))
      options = Keyword.replace_lazy(options, :usage, &(&1 && Keyword.merge(@usage, &1)))
      {:ok, struct!(book, Keyword.take(options, @plain))}
    end
  end

  defp fetch_name(options) do
    with :error <- Keyword.fetch(options, :name),
         do: {:error, %OptionError{subject: "a book", option: :name, problem: :missing}}
  end

  # A profile for who has not thought about profiles: it sees what nobody restricted.
  defp profiles(profiles, roles) do
    result = Options.each([[id: "default"] | profiles], &Profile.new(&1, roles))
    with {:ok, profiles} <- result, do: {:ok, Map.new(profiles, &{&1.id, &1})}
  end

  defp sources(options) do
    builtins =
      if Keyword.get(options, :builtins, true), do: builtins(options[:vaults] || []), else: []

    with {:ok, sources} <- Source.list(builtins ++ (options[:sources] || [])) do
      {:ok, sources ++ written(expand(options[:write_to]), sources)}
    end
  end

  # Where there are no vaults, commands for them would only take room in the prompt.
  defp builtins([]), do: [Source.builtin()]
  defp builtins(_vaults), do: [Source.builtin(), Source.builtin(:vaults)]

  # What commands write must be read, and the folder may not be there before the first of them.
  defp written(nil, _sources), do: []

  defp written(folder, sources) do
    if Enum.any?(sources, &(Path.expand(&1.path) == folder)),
      do: [],
      else: [%Source{path: folder, name: Path.basename(folder), optional: true}]
  end

  # Each firing is claimed in the database.
  defp scheduler(scheduler, nil, _engine) when scheduler in [nil, false], do: {:ok, false}
  defp scheduler(false, _store, _engine), do: {:ok, false}
  defp scheduler(nil, _store, engine), do: {:ok, {engine, nil}}

  defp scheduler(scheduler, nil, _engine) do
    problem = {:invalid, "false, for the book has no :store to claim firings in,", scheduler}
    {:error, %OptionError{subject: "a book", option: :scheduler, problem: problem}}
  end

  defp scheduler(module, _store, _engine) when is_atom(module), do: {:ok, {module, nil}}
  defp scheduler(scheduler, _store, _engine), do: {:ok, scheduler}

  defp expand(nil), do: nil
  defp expand(path), do: Path.expand(path)

  # Their index is in the database.
  defp vaults([], _store), do: {:ok, []}

  defp vaults(_vaults, nil),
    do: {:error, %OptionError{subject: "a book with :vaults", option: :store, problem: :missing}}

  defp vaults(vaults, _store), do: Vault.Config.list(vaults)

  # What people and agents write goes before files, those that commands write too.
  defp with_store(book, nil), do: book

  defp with_store(book, store),
    do: %{
      book
      | store: store,
        sources: book.sources ++ [Source.stored()],
        revision: :atomics.new(1, [])
    }

  defp store(nil, _name), do: nil
  defp store(path, name) when is_binary(path), do: store({SQLite, path: path}, name)

  defp store({module, options}, name),
    do: {module, Keyword.put_new(options, :name, Module.concat(name, Store))}

  defp schema do
    [
      name: {"an atom", &(is_atom(&1) and &1 not in [nil, true, false])},
      sources: {"a list of sources", &is_list/1},
      builtins: {"a boolean", &is_boolean/1},
      store: {"a path or {module, options}", &store?/1},
      store_poll: {"a number of milliseconds", &Options.milliseconds?/1},
      profiles: {"a list of profiles", &is_list/1},
      roles: {"a list of roles", &is_list/1},
      write_to: {"a folder or nil", &(is_nil(&1) or Options.text?(&1))},
      timeout: {"a number of milliseconds", &Options.milliseconds?/1},
      ask: {"a function of one argument, {module, function} or nil", &ask?/1},
      agent: {"a keyword list or nil", &(is_nil(&1) or Keyword.keyword?(&1))},
      max_running: {"a number or :infinity", &limit?/1},
      max_running_per_skill: {"a number or :infinity", &limit?/1},
      max_agents: {"a number or :infinity", &limit?/1},
      max_wait: {"a number of milliseconds", &Options.milliseconds?/1},
      max_result: {"a number of characters or :infinity", &limit?/1},
      breaker: {"[failures: number, cooldown: milliseconds] or false", &breaker?/1},
      usage: {"[flush: milliseconds, keep: days, most: number] or false", &usage?/1},
      scheduler: {"a module, {module, argument} or false", &scheduler?/1},
      schedules: {"a keyword list", &Keyword.keyword?/1},
      telemetry_flags: {"a boolean", &is_boolean/1},
      watch: {"a boolean or [poll: milliseconds]", &watch?/1},
      vaults: {"a list of vaults", &is_list/1}
    ]
  end

  @doc "Whether it may be an `:ask` callback; a module may be loaded later."
  @spec ask?(term()) :: boolean()
  def ask?({module, function}), do: is_atom(module) and is_atom(function)
  def ask?(ask), do: is_nil(ask) or is_function(ask, 1)

  @doc "Whether it bounds something: a number from 1, or :infinity."
  @spec limit?(term()) :: boolean()
  def limit?(value), do: value == :infinity or Options.positive?(value)

  defp scheduler?({module, _argument}), do: is_atom(module)
  defp scheduler?(module), do: is_atom(module) and module not in [nil, true]

  defp schedules do
    [
      run_as: {"the id of a profile or nil", &(is_nil(&1) or Options.text?(&1))},
      timeout: {"a number of milliseconds", &Options.milliseconds?/1},
      max_running: {"a whole number from 1", &Options.positive?/1},
      lease: {"a number of milliseconds", &Options.milliseconds?/1},
      missed: {":skip or :run_once", &(&1 in [:skip, :run_once])},
      interrupted: {":fail or :run", &(&1 in [:fail, :run])},
      keep: {"a number of days from 1", &Options.positive?/1},
      min_interval: {"a number of seconds from 1", &Options.positive?/1},
      max_per_profile: {"a whole number from 1", &Options.positive?/1},
      dispatch: {"{module, function} or nil", &called?/1},
      clock:
        {"a function without arguments, {module, function} or nil",
         &(is_function(&1, 0) or called?(&1))}
    ]
  end

  defp called?({module, function}), do: is_atom(module) and is_atom(function)
  defp called?(value), do: is_nil(value)

  defp breaker?(false), do: true

  defp breaker?(options) do
    Keyword.keyword?(options) and
      Enum.all?(options, fn
        {:failures, failures} -> Options.positive?(failures)
        {:cooldown, cooldown} -> Options.milliseconds?(cooldown)
        _ -> false
      end)
  end

  defp usage?(false), do: true

  defp usage?(options) do
    Keyword.keyword?(options) and
      Enum.all?(options, fn {name, value} ->
        Keyword.has_key?(@usage, name) and Options.positive?(value)
      end)
  end

  defp watch?(poll: interval), do: Options.milliseconds?(interval)
  defp watch?(value), do: is_boolean(value)

  defp store?(nil), do: true
  defp store?({module, options}), do: is_atom(module) and Keyword.keyword?(options)
  defp store?(path), do: Options.text?(path)

  defmodule Migration do
    @moduledoc false
    # Not a process: a step between the database's start and that of what works with it. The catalog has what the database
    # holds before anybody can find the book.

    def child_spec(book), do: %{id: __MODULE__, start: {__MODULE__, :start_link, [book]}}

    def start_link(book) do
      with :ok <- Migrations.prepare(Skillbook.Book.sql(book)),
           :ok <- Backfill.index(Skillbook.Book.sql(book)),
           {:ok, _revision} <- Follower.load(book),
           do: :ignore
    end
  end

  defmodule Registration do
    @moduledoc false
    # Makes the book known, for as long as this process lives.

    use GenServer

    def start_link(book), do: GenServer.start_link(__MODULE__, book)

    @impl true
    def init(book) do
      Process.flag(:trap_exit, true)
      :persistent_term.put({Skillbook.Book, book.name}, book)
      {:ok, book.name}
    end

    @impl true
    def terminate(_reason, name), do: :persistent_term.erase({Skillbook.Book, name})
  end
end
