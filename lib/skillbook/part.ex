defmodule Skillbook.Part do
  @moduledoc ~S"""
  Adds abilities to books: options, processes, sources, built-in skills, and answers that the
  core asks for, such as the text of a page that is kept elsewhere.

  The core knows this behaviour and none of its modules. A package names its parts as the module
  of its application, and they belong to every book:

      def application, do: [mod: {Skillbook.Part, [MyPackage.Part]}]

  An application adds its own to one book:

      {Skillbook, name: MyApp.Skills, parts: [MyApp.Audit]}

  All callbacks are optional.

  ## Examples

      iex> defmodule Audit do
      ...>   use Skillbook.Part
      ...>
      ...>   @impl true
      ...>   def children(book) do
      ...>     [{Agent, fn -> book.name end}]
      ...>   end
      ...> end
      iex> {:ok, pid} = Skillbook.start_link(name: :part_example, parts: [Audit], builtins: false)
      iex> Supervisor.stop(pid)
      :ok

      iex> {:error, error} = Skillbook.start_link(name: :part_example, parts: [String])
      iex> Exception.message(error)
      "expected a list of modules that use Skillbook.Part as the option :parts of a book, " <>
        "got: [String]"
  """

  use Application

  alias Skillbook.{Approval, Book, Command, Context, Diagnostic, Entry, Profile, RoutedCommand}
  alias Skillbook.Catalog.Listing
  alias Skillbook.Run.Operations
  alias Skillbook.{Source, Usage, View}
  alias Skillbook.Support.Operation

  @typedoc "A source of built-in skills. `:domains` are its domains, of which a book gets `:of`."
  @type pack :: %{
          source: Source.t(),
          of: [String.t()] | :all,
          domains: [String.t()] | :all,
          names: %{String.t() => [String.t()]}
        }

  @doc """
  Returns the options of a book that it reads: `name: {expected, check}`. `expected` completes
  "expected … as the option", and `check` is a function of the value.
  """
  @callback options() :: keyword({String.t(), (term() -> boolean())})

  @typedoc "A running book. Parts read `:name` and `:of_parts`."
  @type book :: struct()

  @typedoc "An operation, which the API, the page and the command line offer."
  @type operation :: struct()

  @doc "Puts the checked options into the book, which is not running yet."
  @callback read(book(), keyword()) :: {:ok, book()} | {:error, Exception.t()}

  @doc "Checks its options in those of a profile or a role."
  @callback check_profile(keyword(), subject :: String.t()) :: :ok | {:error, Exception.t()}

  @doc "Returns the built-in skills that it brings."
  @callback builtins(book()) :: [pack()]

  @doc "Returns the processes that all books of a node share."
  @callback shared() :: [Supervisor.child_spec() | {module(), term()} | module()]

  @doc "Makes the tables of a book, which its supervisor owns."
  @callback init(book()) :: term()

  @doc "Reads from the database, after its migration and before anybody finds the book."
  @callback load(book()) :: :ok | {:error, Exception.t()}

  @doc "Returns the processes that the catalog needs, which start before it."
  @callback before_catalog(book()) :: [Supervisor.child_spec() | {module(), term()}]

  @doc "Returns the processes that need the catalog."
  @callback children(book()) :: [Supervisor.child_spec() | {module(), term()}]

  @doc "Returns the keys of `skillbook_settings` that rise when other nodes change its tables."
  @callback settings() :: [String.t()]

  @doc "Says that the value of one of its settings is another one than before."
  @callback changed(book() | map(), setting :: String.t()) :: term()

  @doc "Reads from its own sources all that has changed there, and returns when searches find it."
  @callback sync(book :: atom()) :: term()

  @doc "Says that somebody has paused, resumed or started a schedule of the book."
  @callback schedules_changed(book :: atom()) :: term()

  @doc "Reads an item of the option `:sources`; `:other` if it is not one of its own."
  @callback source(item :: term()) :: {:ok, [Source.t()]} | {:error, Exception.t()} | :other

  @doc "Returns the pages and functions of a source that `c:source/1` returned."
  @callback pages(Source.t()) :: {[tuple()], map()} | :other

  @doc "Returns the services that pages may name as their `connection`."
  @callback services() :: [String.t()]

  @doc "Returns those that a profile of a book is connected to."
  @callback services(book(), Profile.t()) :: [String.t()]

  @typedoc """
  A server at which a person signs in by OAuth, and which tells where.

    * `:name` - the name of the sign-in, beside those of the accounts
    * `:profile` - the id of the profile whose connection it uses, or `:caller` for that of each
      profile that calls it
    * `:sees?` - a function that returns whether a profile sees the server
    * `:url` - the address of the server
    * `:http` - options of the HTTP client
    * `:options` - `:client_id`, `:client_secret`, `:issuer` and `:client_metadata`, if given
    * `:challenge` - a function that returns what the server asks of the profile of an id: the
      address of its metadata and scopes, each `nil` if it does not say
  """
  @type sign_in :: %{
          name: String.t(),
          profile: String.t() | :caller,
          sees?: (Profile.t() -> boolean()),
          url: String.t(),
          http: keyword(),
          options: keyword(),
          challenge: (profile :: String.t() -> {:ok, challenge()} | {:error, Exception.t()})
        }

  @type challenge :: %{metadata: String.t() | nil, scopes: [String.t()] | nil}

  @typedoc "Why the last token did not suffice: the server refused it, or it lacks scopes."
  @type refusal :: {:refused, token()} | {:scopes, [String.t()], token()}

  @type token :: (() -> String.t())

  @doc "Returns the servers at which people sign in."
  @callback sign_ins(book()) :: [sign_in()]

  @doc """
  Returns the token of a profile for a server of `c:sign_ins/1`; `:other` if it keeps no tokens. A
  calling profile without a connection of its own gets an error, and the profile of an id
  `{:ok, nil}` as long as nobody has signed in. With a refusal another token, or an error.
  `deadline` is in milliseconds of monotonic time.
  """
  @callback token(
              book :: atom(),
              name :: String.t(),
              profile :: Profile.t() | String.t(),
              refusal() | nil,
              deadline :: integer()
            ) :: {:ok, token() | nil} | {:error, Exception.t()} | :other

  @doc "Reads the text of a path whose page is kept elsewhere; `:other` for any other path."
  @callback text(View.t(), path :: String.t()) ::
              {:ok, String.t()} | {:error, Exception.t()} | :other

  @doc "Says why a call cannot succeed, before anybody is asked whether it may run."
  @callback check_call(Context.t()) :: :ok | {:error, Exception.t()}

  @doc "Stores a call that waits for an approval, under a reference."
  @callback store_call(RoutedCommand.t(), Context.t(), written :: Command.t(), String.t()) ::
              {:ok, Approval.t()} | {:error, Exception.t()} | :other

  @doc "Checks its fields in the frontmatter of a page that a module defines."
  @callback check_page(Entry.t()) :: :ok | {:error, Exception.t()}

  @doc "Reads the options of a vault; `:other` if they name no producer of its own."
  @callback producer(keyword(), book :: atom(), poll :: keyword()) ::
              {:ok, {module(), keyword()}} | {:error, Exception.t()} | :other

  @doc """
  Returns the documents in the database that have a full-text index, by their kind: the module of
  their table, with `searched/2`, and those of the index's scopes that the book shows.
  """
  @callback documents(book()) :: %{String.t() => {module(), scopes :: [String.t()] | :all}}

  @doc "Returns the operations that it adds to books, also those behind functions of `Skillbook`."
  @callback operations() :: [operation()]

  @typedoc "The name of a rule, the days for which rows stay, and a function that deletes some."
  @type age :: {atom(), days :: pos_integer() | :infinity, function()}

  @doc "Returns the rules by which old rows of its tables are deleted."
  @callback ages(book()) :: [age()]

  @doc "Returns findings beside those of documents, for trusted code."
  @callback diagnostics(book()) :: [Diagnostic.t()]

  @optional_callbacks options: 0,
                      read: 2,
                      check_profile: 2,
                      builtins: 1,
                      shared: 0,
                      init: 1,
                      load: 1,
                      before_catalog: 1,
                      children: 1,
                      settings: 0,
                      changed: 2,
                      schedules_changed: 1,
                      source: 1,
                      pages: 1,
                      services: 0,
                      services: 2,
                      sign_ins: 1,
                      token: 5,
                      text: 2,
                      check_call: 1,
                      store_call: 4,
                      check_page: 1,
                      producer: 3,
                      sync: 1,
                      documents: 1,
                      operations: 0,
                      ages: 1,
                      diagnostics: 1

  defmacro __using__(_options) do
    quote do
      @behaviour Skillbook.Part
      @doc false
      def __skillbook_part__, do: true
    end
  end

  @impl Application
  @doc false
  # Runs the processes that all books of a node share.
  def start(_type, parts) do
    refresh()
    Supervisor.start_link(flat(parts, :shared), strategy: :one_for_one)
  end

  @doc false
  # The parts of the loaded applications, each after those that its application stands on.
  @spec installed() :: [module()]
  def installed, do: :persistent_term.get(__MODULE__, nil) || refresh()

  @doc false
  # Applications may be loaded after this one.
  @spec refresh() :: [module()]
  def refresh do
    parts =
      for {application, _, _} <- Application.loaded_applications(),
          {__MODULE__, parts} <- [Application.spec(application, :mod)],
          do: {application, parts}

    parts =
      parts
      |> Enum.sort_by(fn {application, _parts} -> {height(application), application} end)
      |> Enum.flat_map(fn {_application, parts} -> parts end)
      |> Enum.uniq()

    if parts != :persistent_term.get(__MODULE__, nil), do: :persistent_term.put(__MODULE__, parts)
    parts
  end

  # How many applications with parts are below one, at most.
  defp height(application) do
    used = Application.spec(application, :applications) || []
    below = for used <- used, match?({__MODULE__, _}, Application.spec(used, :mod)), do: used
    Enum.reduce(below, 0, &max(height(&1) + 1, &2))
  end

  @doc false
  # The parts of a running book, and those of a catalog without one.
  @spec of(atom() | nil) :: [module()]
  def of(book) do
    case Book.find(book) do
      nil -> installed()
      %Book{parts: parts} -> parts
    end
  end

  # The packages beside the core, with the functions, options and sources that each brings.
  @packages [
    skillbook_vault: [:vaults],
    skillbook_agent:
      [:agent, :preflight, :conversations, :durable] ++
        [:approvals, :approve, :deny, :carry_out] ++
        [:scheduler, :schedules, :schedule, :pause_schedule, :resume_schedule, :run_schedule],
    skillbook_accounts: [:connections],
    skillbook_mcp: [:mcp],
    skillbook_ecto: [Skillbook.SQL.Ecto]
  ]

  @doc false
  # The package that brings a function, an option of a book or a kind of source.
  @spec package(atom()) :: atom() | nil
  def package(name),
    do: Enum.find_value(@packages, fn {package, names} -> if name in names, do: package end)

  @doc false
  # Calls a function of `Skillbook` that a package brings.
  @spec call(atom(), [term()]) :: term()
  def call(name, arguments), do: apply(operation(name).run, arguments)

  @doc false
  # The operation of a name: of the core, or of a package that is there.
  @spec operation(atom()) :: operation()
  def operation(name),
    do: Enum.find(operations(), &(&1.name == name)) || raise(ArgumentError, missing(name))

  @doc false
  @spec operations() :: [operation()]
  def operations, do: flat([Listing, Operations, Usage | installed()], :operations)

  @doc false
  # The result of an operation as maps for JSON.
  @spec json(atom(), term()) :: term()
  def json(name, result), do: Operation.json(operation(name).output, result)

  defp missing(name) do
    "Skillbook.#{name} needs the package #{package(name)}: add it to the deps in mix.exs"
  end

  @doc false
  @spec part?(term()) :: boolean()
  def part?(module) do
    is_atom(module) and Code.ensure_loaded?(module) and
      function_exported?(module, :__skillbook_part__, 0)
  end

  @doc false
  # The answers of the parts that have the callback, in their order.
  @spec all([module()], atom(), [term()]) :: [term()]
  def all(parts, callback, arguments \\ []) do
    for part <- parts,
        callback?(part, callback, length(arguments)),
        do: apply(part, callback, arguments)
  end

  @doc false
  @spec flat([module()], atom(), [term()]) :: [term()]
  def flat(parts, callback, arguments \\ []),
    do: parts |> all(callback, arguments) |> Enum.concat()

  @doc false
  # The answers, which are maps, as one.
  @spec merged([module()], atom(), [term()], map()) :: map()
  def merged(parts, callback, arguments, first),
    do: parts |> all(callback, arguments) |> Enum.reduce(first, &Map.merge(&2, &1))

  @doc false
  # The first answer that is not `:other`.
  @spec first([module()], atom(), [term()]) :: term()
  def first(parts, callback, arguments), do: until(parts, callback, arguments, :other)

  @doc false
  # `:ok`, or the first error.
  @spec check([module()], atom(), [term()]) :: :ok | {:error, Exception.t()}
  def check(parts, callback, arguments), do: until(parts, callback, arguments, :ok)

  # The first answer that is not the one to go on with, or that one. No later part is called.
  defp until(parts, callback, arguments, go_on) do
    Enum.find_value(parts, go_on, fn part ->
      if callback?(part, callback, length(arguments)) do
        with ^go_on <- apply(part, callback, arguments), do: nil
      end
    end)
  end

  defp callback?(part, callback, arity),
    do: Code.ensure_loaded?(part) and function_exported?(part, callback, arity)
end
