defmodule Skillbook.Book.Config do
  @moduledoc false
  # Reads and checks the options of a book. `Skillbook` documents them; their defaults are those
  # of the struct `Skillbook.Book`.

  alias Skillbook.Agent.Settings
  alias Skillbook.Book.{Builtins, Profiles}
  alias Skillbook.Prompt.Sections
  alias Skillbook.Scheduler.Local
  alias Skillbook.SQL.Location
  alias Skillbook.Support.Options
  alias Skillbook.{Book, Connections, Embedder, Native, OptionError}
  alias Skillbook.{Preflight, Profile, Source, Vault}

  # Options that become fields of the same name without further work.
  @plain_fields [
    :store_poll,
    :timeout,
    :drain,
    :ask,
    :ask_timeout,
    :approvals,
    :preflight,
    :max_running,
    :max_running_per_skill,
    :max_agents,
    :max_wait,
    :max_result,
    :breaker,
    :usage,
    :conversations,
    :telemetry_flags,
    :watch,
    :embedder,
    :embedder_timeout
  ]

  # Those of stored conversations, which are off by default.
  @conversations [keep: 30, max: 200]

  # Options that have options.
  @nested [:agent, :breaker, :conversations, :preflight, :schedules, :usage, :watch]

  @doc "Returns a book, not yet started, or the first invalid option."
  @spec read(Skillbook.options()) :: {:ok, Book.t()} | {:error, Exception.t()}
  def read(options) do
    options = Options.keywords(options, @nested)

    with :ok <- Options.validate(options, "a book", schema()),
         :ok <- Options.validate(options[:schedules] || [], "a book's :schedules", schedules()),
         :ok <- Options.validate(options[:approvals] || [], "a book's :approvals", approvals()),
         {:ok, name} <- fetch_name(options),
         {:ok, agent} <- Settings.read_book(options[:agent]),
         :ok <- Preflight.Settings.validate(options[:preflight], "a book's :preflight"),
         {:ok, sections} <- Sections.read(options[:sections] || [], "a book"),
         {:ok, roles} <- Profile.roles(options[:roles] || []),
         {:ok, {profiles, function}} <- Profiles.read(options[:profiles] || [], roles),
         {:ok, connections} <- connections(options[:connections], name),
         {:ok, sources} <- sources(options, connections),
         {:ok, scheduler} <- scheduler(options[:scheduler], options[:store]),
         scheduler = if(run_schedules?(name), do: scheduler, else: false),
         {:ok, vaults} <- vaults(options[:vaults] || [], options[:store], name),
         {:ok, store} <- store(options[:store], name) do
      defaults = %Book{name: name}

      book = %{
        defaults
        | profiles: profiles,
          fetch_profile: function,
          roles: roles,
          sources: sources,
          scheduler: scheduler,
          schedules: Keyword.merge(defaults.schedules, options[:schedules] || []),
          vaults: vaults,
          connections: connections,
          sections: sections,
          assigns: Profile.assigns(options[:assigns] || %{}),
          write_to: expand(options[:write_to])
      }

      book = with_store(book, store)
      merge = fn options, key -> options && Keyword.merge(Map.fetch!(defaults, key), options) end
      options = Keyword.replace_lazy(options, :breaker, &merge.(&1, :breaker))
      options = Keyword.replace_lazy(options, :usage, &merge.(&1, :usage))
      options = Keyword.replace_lazy(options, :approvals, &merge.(&1, :approvals))
      keep = fn given -> given && Keyword.merge(@conversations, given) end
      options = Keyword.replace_lazy(options, :conversations, keep)
      {:ok, struct!(%{book | agent: agent}, Keyword.take(options, @plain_fields))}
    end
  end

  defp fetch_name(options) do
    with :error <- Keyword.fetch(options, :name),
         do: {:error, %OptionError{subject: "a book", option: :name, problem: :missing}}
  end

  defp sources(options, connections) do
    sources = options[:sources] || []

    # They may be listed too, in another place of the order.
    with {:ok, builtins} <- Builtins.sources(options, connections),
         {:ok, sources} <- Source.list((builtins -- sources) ++ sources) do
      {:ok, sources |> write_to(expand(options[:write_to])) |> Source.of_book(options[:name])}
    end
  end

  # The folder is a source too. It may be missing until a command writes the first skill.
  defp write_to(sources, nil), do: sources

  defp write_to(sources, folder) do
    if Enum.any?(sources, &(&1.path == folder)),
      do: Enum.map(sources, &if(&1.path == folder, do: implied(&1), else: &1)),
      else: sources ++ [implied(%Source{path: folder, name: Path.basename(folder)})]
  end

  defp implied(source), do: %{source | optional: true, implied: true}

  # Schedules need the database: each firing is claimed in it.
  defp scheduler(scheduler, nil) when scheduler in [nil, false], do: {:ok, false}
  defp scheduler(false, _store), do: {:ok, false}
  defp scheduler(nil, _store), do: {:ok, {Local, nil}}

  defp scheduler(scheduler, nil) do
    problem = {:invalid, "false, for the book has no :store to claim firings in,", scheduler}
    {:error, %OptionError{subject: "a book", option: :scheduler, problem: problem}}
  end

  defp scheduler(module, _store) when is_atom(module), do: {:ok, {module, nil}}
  defp scheduler(scheduler, _store), do: {:ok, scheduler}

  # `config :skillbook, run_schedules: false`, or the names of the only books that run theirs.
  defp run_schedules?(name) do
    case Application.get_env(:skillbook, :run_schedules, true) do
      names when is_list(names) -> name in names
      run? -> run? == true
    end
  end

  defp expand(nil), do: nil
  defp expand(path), do: Path.expand(path)

  defp connections(nil, _name), do: {:ok, nil}
  defp connections(options, name), do: Connections.Config.read(options, name)

  # The index of a vault is in the database.
  defp vaults([], _store, _name), do: {:ok, []}

  defp vaults(_vaults, nil, _name),
    do: {:error, %OptionError{subject: "a book with :vaults", option: :store, problem: :missing}}

  defp vaults(vaults, _store, name), do: Vault.Config.list(vaults, name)

  # The last source wins, so stored entries replace files, even those that commands write.
  defp with_store(book, nil), do: book

  defp with_store(book, store),
    do: %{
      book
      | store: store,
        sources: book.sources ++ [Source.stored()],
        revision: :atomics.new(2, [])
    }

  defp store(nil, _name), do: {:ok, nil}
  defp store(text, name) when is_function(text, 0), do: store(text.(), name)

  defp store(text, name) when is_binary(text) do
    with {:error, expected} <- Location.read(text) do
      {:error, store_error(expected, Location.redact(text))}
    else
      {:ok, connection} -> store(connection, name)
    end
  end

  defp store({module, options}, name),
    do: {:ok, {module, Keyword.put_new(options, :name, Module.concat(name, Store))}}

  defp store(other, _name),
    do: {:error, store_error("a function that returns a path or a URL", other)}

  defp store_error(expected, value),
    do: %OptionError{subject: "a book", option: :store, problem: {:invalid, expected, value}}

  defp schema do
    [
      name: {"an atom", &(is_atom(&1) and &1 not in [nil, true, false])},
      sources: {"a list of sources", &is_list/1},
      builtins: {"a boolean or a list of domains and globs", &Builtins.valid?/1},
      store: {"a path, a URL, {module, options} or a function that returns a text", &store?/1},
      store_poll: {"a number of milliseconds", &Options.milliseconds?/1},
      profiles:
        {"a list of profiles, a function of one argument or {module, function}",
         &(is_list(&1) or Profiles.function?(&1))},
      roles: {"a list of roles", &is_list/1},
      assigns:
        {"a map or a function without arguments", &(Options.assigns?(&1) or is_function(&1, 0))},
      write_to: {"a folder or nil", &(is_nil(&1) or Options.path?(&1))},
      timeout: {"a number of milliseconds", &Options.milliseconds?/1},
      drain: {"a number of milliseconds or 0", &(&1 == 0 or Options.milliseconds?(&1))},
      ask: {"a function of one argument, {module, function} or nil", &ask?/1},
      ask_timeout: {"a number of milliseconds or :infinity", &ask_timeout?/1},
      approvals: {"a keyword list", &Keyword.keyword?/1},
      agent: {"a keyword list or nil", &(is_nil(&1) or Keyword.keyword?(&1))},
      preflight: {"a keyword list, false or nil", &(&1 in [nil, false] or Keyword.keyword?(&1))},
      max_running: {"a number or :infinity", &limit?/1},
      max_running_per_skill: {"a number or :infinity", &limit?/1},
      max_agents: {"a number or :infinity", &limit?/1},
      max_wait: {"a number of milliseconds", &Options.milliseconds?/1},
      max_result: {"a number of characters or :infinity", &limit?/1},
      breaker: {"[failures: number, cooldown: milliseconds] or false", &breaker?/1},
      usage: {"[flush: milliseconds, keep: days, most: number] or false", &usage?/1},
      conversations: {"[keep: days, max: number] or false", &conversations?/1},
      scheduler: {"a module, {module, argument} or false", &scheduler?/1},
      schedules: {"a keyword list", &Keyword.keyword?/1},
      sections: {"a list of sections", &is_list/1},
      telemetry_flags: {"a boolean", &is_boolean/1},
      watch: {"a boolean or [poll: milliseconds]", &watch?/1},
      vaults: {"a list of vaults", &is_list/1},
      # Its values may be secret, so it is checked where errors do not show them.
      connections: {"a keyword list of accounts", fn _options -> true end},
      embedder: {"an embedder or nil", &(is_nil(&1) or Embedder.embedder?(&1))},
      embedder_timeout: {"a number of milliseconds", &Options.milliseconds?/1}
    ]
  end

  @doc "Whether a value can be an `:ask` callback. Its module need not be loaded yet."
  @spec ask?(term()) :: boolean()
  def ask?({module, function}), do: is_atom(module) and is_atom(function)
  def ask?(ask), do: is_nil(ask) or is_function(ask, 1)

  @doc "Whether a value can be an `:ask_timeout`."
  @spec ask_timeout?(term()) :: boolean()
  def ask_timeout?(value), do: value == :infinity or Options.milliseconds?(value)

  @doc "Whether a value is a limit: a positive integer or `:infinity`."
  @spec limit?(term()) :: boolean()
  def limit?(value), do: value == :infinity or Options.positive?(value)

  defp scheduler?({module, _argument}), do: is_atom(module)
  defp scheduler?(module), do: is_atom(module) and module not in [nil, true]

  defp schedules do
    [
      run_as: {"the id of a profile or nil", &(is_nil(&1) or Options.text?(&1))},
      builtins: {"a list of globs", &globs?/1},
      timeout: {"a number of milliseconds", &Options.milliseconds?/1},
      max_running: {"a whole number from 1", &Options.positive?/1},
      lease: {"a number of milliseconds", &Options.milliseconds?/1},
      missed: {":skip or :run_once", &(&1 in [:skip, :run_once])},
      interrupted: {":fail or :run", &(&1 in [:fail, :run])},
      keep: {"a number of days from 1", &Options.positive?/1},
      min_interval: {"a number of seconds from 1", &Options.positive?/1},
      max_per_profile: {"a whole number from 1", &Options.positive?/1},
      dispatch: {"{module, function} or nil", &callback?/1},
      clock:
        {"a function without arguments, {module, function} or nil",
         &(is_function(&1, 0) or callback?(&1))}
    ]
  end

  defp approvals do
    [
      expire: {"a number of seconds from 1", &Options.positive?/1},
      keep: {"a number of days from 1", &Options.positive?/1},
      max_waiting: {"a whole number from 1", &Options.positive?/1},
      lease: {"a number of milliseconds", &Options.milliseconds?/1}
    ]
  end

  defp globs?(globs), do: Options.texts?(globs) and Native.globs_check(globs) == :ok

  defp callback?({module, function}), do: is_atom(module) and is_atom(function)
  defp callback?(value), do: is_nil(value)

  defp breaker?(false), do: true

  defp breaker?(options) do
    Keyword.keyword?(options) and
      Enum.all?(options, fn
        {:failures, failures} -> Options.positive?(failures)
        {:cooldown, cooldown} -> Options.milliseconds?(cooldown)
        _ -> false
      end)
  end

  defp conversations?(false), do: true

  defp conversations?(options) do
    Keyword.keyword?(options) and
      Enum.all?(options, fn {key, value} -> key in [:keep, :max] and Options.positive?(value) end)
  end

  defp usage?(false), do: true

  defp usage?(options) do
    Keyword.keyword?(options) and
      Enum.all?(options, fn {name, value} ->
        name in [:flush, :keep, :most] and Options.positive?(value)
      end)
  end

  defp watch?(poll: interval), do: Options.milliseconds?(interval)
  defp watch?(value), do: is_boolean(value)

  defp store?(nil), do: true
  defp store?({module, options}), do: is_atom(module) and Keyword.keyword?(options)
  defp store?(text), do: Options.text?(text) or is_function(text, 0)
end
