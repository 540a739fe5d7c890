defmodule Skillbook.Book do
  @moduledoc false
  # A running instance: starts and supervises the processes of a book, and finds a book by its
  # name.
  #
  # Readers need no lock and no process. The struct is stored in `:persistent_term` once, at
  # start; values that change are behind references in it (`:catalog`, `:revision`).
  # `Skillbook.Book.Config` reads the options; those of parts, as each has read its own, are in
  # `:of_parts`.

  use Supervisor

  alias Skillbook.Book.{Cache, Config, Profiles, Pruner}
  alias Skillbook.Catalog.Watcher
  alias Skillbook.Prompt.Sections
  alias Skillbook.Reply.StoredResults
  alias Skillbook.Run.{CircuitBreaker, ConcurrencyLimit, Drain, Worker}
  alias Skillbook.Search.Backfill
  alias Skillbook.SQL.Migrations
  alias Skillbook.Store.{Follower, Write}
  alias Skillbook.Usage.{Counter, MostRun, Writer}
  alias Skillbook.{Catalog, Embedder, Embedding, Part, Profile, ProfileError, Request, Source}
  alias Skillbook.{Telemetry, View}

  @type t :: %__MODULE__{
          name: atom(),
          sources: [Source.t()],
          catalog: Catalog.t() | nil,
          store: {module(), keyword()} | nil,
          store_poll: pos_integer(),
          store_memory: pos_integer(),
          revision: :atomics.atomics_ref() | nil,
          profiles: %{String.t() => Profile.t()},
          fetch_profile: Profiles.fetch() | nil,
          roles: Profile.roles(),
          write_to: Path.t() | nil,
          timeout: pos_integer(),
          drain: non_neg_integer(),
          ask: Request.ask() | nil,
          assigns: map(),
          ask_timeout: timeout(),
          max_running: pos_integer() | :infinity,
          max_running_per_skill: pos_integer() | :infinity,
          max_agents: pos_integer() | :infinity,
          max_wait: pos_integer(),
          max_result: pos_integer() | :infinity,
          breaker: [failures: pos_integer(), cooldown: pos_integer()] | false,
          usage: [flush: pos_integer(), keep: pos_integer(), most: pos_integer()] | false,
          keep: [{:versions | :deleted | :runs, pos_integer() | :infinity}],
          schedules: keyword(),
          telemetry_flags: boolean(),
          hooks: [module() | {module(), keyword()}],
          sections: [Sections.t()],
          watch: boolean() | [poll: pos_integer()],
          embedder: Embedder.t() | nil,
          embedder_timeout: pos_integer(),
          vectors: reference() | nil,
          document_vectors: reference() | nil,
          parts: [module()],
          of_parts: map(),
          test: test() | nil
        }

  # The hooks of `Skillbook.Test`: handlers in place of those of entries, a function that gets
  # each call with its answer, and the clock of calls.
  @type test :: %{
          stubs: %{String.t() => term()},
          handler: module(),
          observe: (Skillbook.RoutedCommand.t(), Skillbook.Context.t(), term() -> term()),
          clock: (() -> DateTime.t())
        }

  # Reports of supervisors show the struct.
  @derive {Inspect, only: [:name]}
  @enforce_keys [:name]
  defstruct [
    :name,
    :catalog,
    :store,
    :revision,
    :write_to,
    :ask,
    :embedder,
    :vectors,
    :document_vectors,
    :fetch_profile,
    :test,
    store_poll: 500,
    store_memory: 134_217_728,
    sources: [],
    profiles: %{},
    roles: %{},
    assigns: %{},
    timeout: 30_000,
    drain: 15_000,
    ask_timeout: 600_000,
    max_running: :infinity,
    max_running_per_skill: :infinity,
    max_agents: 8,
    max_wait: 30_000,
    max_result: 30_000,
    breaker: [failures: 5, cooldown: 30_000],
    usage: [flush: 5_000, keep: 365, most: 10_000],
    keep: [versions: 365, deleted: 365, runs: 90],
    # The store's rules of schedules, to which their engine adds its own.
    schedules: [run_as: nil, min_interval: 300, max_per_profile: 50, keep: 90, clock: nil],
    telemetry_flags: false,
    hooks: [],
    sections: [],
    watch: true,
    parts: [],
    of_parts: %{},
    embedder_timeout: 300
  ]

  @spec start_link(keyword(), test() | nil) :: Supervisor.on_start() | {:error, Exception.t()}
  def start_link(options, test \\ nil) do
    Telemetry.load()

    with {:ok, book} <- Config.read(options, test),
         # The supervisor keeps the catalog and the vectors, so processes that it restarts use the
         # same ones.
         {:ok, catalog} <- Catalog.load(book.sources),
         :ok <- Source.check_required(book.sources, Catalog.errors(catalog)) do
      catalog = Follower.fetching(catalog, book)
      vectors = book.embedder && Embedding.Vectors.new()
      documents = book.embedder && Embedding.Vectors.new()
      book = %{book | catalog: catalog, vectors: vectors, document_vectors: documents}

      with {:error, reason} <- Supervisor.start_link(__MODULE__, book, name: book.name),
           do: {:error, failure(reason)}
    end
  end

  # The error of a child, which may be below supervisors of its own.
  defp failure(reason), do: failure(reason, reason)
  defp failure({:shutdown, {:failed_to_start_child, _, reason}}, all), do: failure(reason, all)
  defp failure(error, _all) when is_exception(error), do: error
  defp failure(_reason, all), do: all

  @doc """
  Starts a book under a supervisor. In this form of the error, an application that cannot start
  prints the message of the exception and not its fields.
  """
  @spec start_child(keyword()) :: Supervisor.on_start()
  def start_child(options) do
    with {:error, error} when is_exception(error) <- start_link(options),
         do: {:error, {error, [{Skillbook, :start_link, 1, []}]}}
  end

  @doc "Returns the running book of a name, or raises `ArgumentError`."
  @spec fetch!(atom()) :: t()
  def fetch!(name) do
    case fetch(name) do
      {:ok, book} -> book
      {:error, error} -> raise error
    end
  end

  @doc "Returns the running book of a name, or an error."
  @spec fetch(atom()) :: {:ok, t()} | {:error, Exception.t()}
  def fetch(name) do
    if book = is_atom(name) && find(name) do
      {:ok, book}
    else
      text = "expected the name of a running book, got: #{inspect(name, limit: 5)}"
      {:error, %ArgumentError{message: text}}
    end
  end

  @doc "Returns the running book of a view, or raises `ArgumentError`."
  @spec of!(View.t()) :: t()
  def of!(%View{book: nil}),
    do: raise(ArgumentError, "expected the view of a running book, got one of a catalog alone")

  def of!(%View{book: name}), do: fetch!(name)

  @doc "Returns the running book of a name, or `nil`."
  @spec find(atom()) :: t() | nil
  def find(name), do: :persistent_term.get({__MODULE__, name}, nil)

  @doc "Adds the values of a part's options, for `c:Skillbook.Part.read/2`."
  @spec put(t(), keyword()) :: t()
  def put(book, values), do: %{book | of_parts: Enum.into(values, book.of_parts)}

  @doc "Returns the time of a call: the system's, or that of a test."
  @spec now(t() | nil) :: DateTime.t()
  def now(%__MODULE__{test: %{clock: clock}}), do: clock.()
  def now(_book), do: DateTime.utc_now()

  @doc "Returns the handle of the book's database, or `nil`."
  @spec sql(t()) :: Skillbook.SQL.t() | nil
  def sql(%__MODULE__{store: nil}), do: nil
  def sql(%__MODULE__{store: {module, options}}), do: module.handle(options[:name])

  @doc "Lets a book with an embedder look for texts of a kind without a vector."
  @spec embed(atom() | nil, :entries | :documents) :: :ok
  def embed(name, kind) do
    source = if kind == :entries, do: Embedding.Entries, else: Embedding.Documents

    case name && find(name) do
      %__MODULE__{embedder: embedder} when embedder != nil ->
        Embedding.Indexer.refresh(name, source)

      _ ->
        :ok
    end
  end

  @doc """
  Returns the profile of an id. Raises `ArgumentError` if there is none, and
  `Skillbook.ProfileError` if the function of the application fails.
  """
  @spec profile(t(), String.t() | Profile.t()) :: Profile.t()
  def profile(_book, %Profile{} = profile), do: profile

  def profile(book, id) do
    case Profiles.fetch(book, id) do
      {:ok, profile} ->
        profile

      :error ->
        raise ArgumentError,
              "expected a profile of the book #{inspect(book.name)}#{known(book)}, " <>
                "got: #{inspect(id)}"

      {:error, error} ->
        raise error
    end
  end

  @doc "As `profile/2`, but returns errors: a `Skillbook.ProfileError` if there is none."
  @spec fetch_profile(t(), String.t() | Profile.t()) ::
          {:ok, Profile.t()} | {:error, ProfileError.t()}
  def fetch_profile(_book, %Profile{} = profile), do: {:ok, profile}

  def fetch_profile(book, id) do
    with :error <- Profiles.fetch(book, id),
         do: {:error, %ProfileError{book: book.name, id: id, kind: :unknown}}
  end

  # The ids of an application's own profiles are nobody else's business.
  defp known(%{fetch_profile: nil, profiles: profiles}),
    do: " (#{profiles |> Map.keys() |> Enum.map_join(", ", &inspect/1)})"

  defp known(_book), do: ""

  # The supervision tree. A stop of the book first waits for what runs, and then ends all parts.
  # Parts that have failed too often end the book.

  @impl true
  def init(%__MODULE__{} = book) do
    Cache.new(book.name)
    Drain.new(book.name)
    Part.all(book.parts, :init, [book])

    parts = %{
      id: :parts,
      start: {Supervisor, :start_link, [__MODULE__, {:parts, book}]},
      type: :supervisor
    }

    Supervisor.init([parts, {Drain, book}], strategy: :one_for_all, max_restarts: 0)
  end

  # Each part uses those before it, so a crash restarts those after it. Workers therefore end with
  # the concurrency limit, which counts from zero when it is restarted, and the follower restarts
  # with the watcher, through which it changes the catalog.
  def init({:parts, book}) do
    children =
      database(book) ++
        usage(book) ++
        [
          {StoredResults, book.name},
          {CircuitBreaker, book},
          {ConcurrencyLimit, book},
          {__MODULE__.Registration, book},
          {Task.Supervisor, name: Worker.supervisor(book.name)}
        ] ++
        Part.flat(book.parts, :before_catalog, [book]) ++
        [
          %{id: Watcher, start: {__MODULE__, :start_watcher, [book.name]}}
        ] ++
        follower(book) ++
        Part.flat(book.parts, :children, [book]) ++
        embedding(book) ++ [{__MODULE__.Started, book}]

    Supervisor.init(children, strategy: :rest_for_one)
  end

  defp database(%{store: nil}), do: []
  defp database(%{store: store} = book), do: [store, {__MODULE__.Migration, book}]

  defp follower(%{store: nil}), do: []

  defp follower(book),
    do: [
      %{id: Follower, start: {__MODULE__, :start_follower, [book.name]}},
      %{id: Write, start: {Write, :start_link, [book.name]}},
      {Pruner, book}
    ]

  defp usage(%{store: store, usage: usage}) when store == nil or usage == false, do: []

  defp usage(book) do
    Counter.new(book.name, book.usage[:most])
    MostRun.new(book.name)
    [{Writer, book}]
  end

  # Nothing depends on it.
  defp embedding(%{embedder: nil}), do: []

  defp embedding(book) do
    Embedding.QueryVectors.new(book.name)
    [{Embedding.Indexer, book}]
  end

  @doc false
  def start_watcher(name), do: Watcher.start_link(fetch!(name))

  @doc false
  def start_follower(name), do: Follower.start_link(fetch!(name))

  defmodule Migration do
    @moduledoc false
    # A start-up step, not a process: migrates the database and loads its skills and notes into
    # the catalog, before the book is registered.

    def child_spec(book), do: %{id: __MODULE__, start: {__MODULE__, :start_link, [book]}}

    def start_link(book) do
      with :ok <- Migrations.prepare(Skillbook.Book.sql(book)),
           :ok <- Skillbook.Store.Table.spell(Skillbook.Book.sql(book)),
           :ok <- Backfill.index(book),
           {:ok, _revision} <- Follower.load(book),
           :ok <- Part.check(book.parts, :load, [book]),
           do: :ignore
    end
  end

  defmodule Started do
    @moduledoc false
    # The last step of a start, also of one after a crash: tells those who have subscribed before.

    def child_spec(book), do: %{id: __MODULE__, start: {__MODULE__, :start_link, [book]}}

    def start_link(%{name: name, catalog: catalog}) do
      message = {:skillbook_started, name, Catalog.generation(catalog)}
      for group <- [:changes, :starts], do: Watcher.publish(name, message, group)
      :ignore
    end
  end

  defmodule Registration do
    @moduledoc false
    # Registers the book under its name, for as long as this process lives.

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
