defmodule Skillbook.Book.Config do
  @moduledoc false
  # Reads and checks the options of a book. `Skillbook` documents them; their defaults are those
  # of the struct `Skillbook.Book`.

  alias Skillbook.Book.{Builtins, Profiles}
  alias Skillbook.Prompt.Sections
  alias Skillbook.SQL.Location
  alias Skillbook.Support.{Options, UntilError}
  alias Skillbook.{Book, Embedder, Hook, OptionError, Part, Profile, Source}

  @max_bytes 1_099_511_627_776

  # Options that become fields of the same name without further work.
  @plain_fields [
    :store_poll,
    :store_memory,
    :timeout,
    :drain,
    :ask,
    :ask_timeout,
    :max_running,
    :max_running_per_skill,
    :max_agents,
    :max_wait,
    :max_result,
    :breaker,
    :usage,
    :keep,
    :telemetry_flags,
    :hooks,
    :watch,
    :embedder,
    :embedder_timeout
  ]

  # Options that have options, beside those of parts.
  @nested [:breaker, :usage, :keep, :watch]

  @doc "Returns a book, not yet started, or the first invalid option."
  @spec read(Skillbook.options(), Book.test() | nil) :: {:ok, Book.t()} | {:error, Exception.t()}
  def read(options, test \\ nil) do
    parts = parts(options)
    theirs = Part.flat(parts, :options)
    options = Options.keywords(options, @nested ++ Keyword.keys(theirs))

    with :ok <- validate(options, schema() ++ theirs),
         {:ok, name} <- fetch_name(options),
         {:ok, book} <- read_parts(parts, options, %Book{name: name, parts: parts, test: test}),
         {:ok, sections} <- Sections.read(options[:sections] || [], "a book"),
         {:ok, roles} <- Profile.roles(options[:roles] || []),
         {:ok, {profiles, function}} <- Profiles.read(options[:profiles] || [], roles),
         {:ok, sources} <- sources(options, Part.flat(parts, :builtins, [book])),
         {:ok, store} <- store(options[:store], name) do
      defaults = %Book{name: name}

      book = %{
        book
        | profiles: profiles,
          fetch_profile: function,
          roles: roles,
          sources: sources,
          sections: sections,
          assigns: Profile.assigns(options[:assigns] || %{}),
          write_to: expand(options[:write_to])
      }

      book = with_store(book, store)
      merge = fn options, key -> options && Keyword.merge(Map.fetch!(defaults, key), options) end
      options = Keyword.replace_lazy(options, :breaker, &merge.(&1, :breaker))
      options = Keyword.replace_lazy(options, :usage, &merge.(&1, :usage))
      options = Keyword.replace_lazy(options, :keep, &merge.(&1, :keep))
      {:ok, struct!(book, Keyword.take(options, @plain_fields))}
    end
  end

  # An option of a package that is not there is no mistake in its spelling.
  defp validate(options, schema) do
    with {:error, %{problem: :unknown} = error} <- Options.validate(options, "a book", schema) do
      package = Part.package(error.option)
      {:error, if(package, do: %{error | problem: {:package, package}}, else: error)}
    end
  end

  # Those of all installed packages, and the book's own.
  defp parts(options) do
    own = if Options.options?(options), do: Options.keywords(options, [:parts])[:parts]
    Enum.uniq(Part.refresh() ++ if(parts?(own), do: own, else: []))
  end

  defp parts?(parts), do: is_list(parts) and Enum.all?(parts, &Part.part?/1)

  defp read_parts(parts, options, book) do
    UntilError.reduce(parts, book, fn part, book ->
      with :other <- Part.first([part], :read, [book, options]), do: {:ok, book}
    end)
  end

  defp fetch_name(options) do
    with :error <- Keyword.fetch(options, :name),
         do: {:error, %OptionError{subject: "a book", option: :name, problem: :missing}}
  end

  defp sources(options, packs) do
    sources = options[:sources] || []

    # They may be listed too, in another place of the order.
    with {:ok, builtins} <- Builtins.sources(options, packs),
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

  defp expand(nil), do: nil
  defp expand(path), do: Path.expand(path)

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

  defp store({module, options}, name) do
    cond do
      Code.ensure_loaded?(module) ->
        {:ok, {module, Keyword.put_new(options, :name, Module.concat(name, Store))}}

      package = Part.package(module) ->
        {:error, %OptionError{subject: "a book", option: :store, problem: {:package, package}}}

      true ->
        {:error, store_error("{module, options} with a module that exists", module)}
    end
  end

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
      store_memory: {"a number of bytes", &(is_integer(&1) and &1 in 1..@max_bytes)},
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
      max_running: {"a number or :infinity", &limit?/1},
      max_running_per_skill: {"a number or :infinity", &limit?/1},
      max_agents: {"a number or :infinity", &limit?/1},
      max_wait: {"a number of milliseconds", &Options.milliseconds?/1},
      max_result: {"a number of characters or :infinity", &limit?/1},
      breaker: {"[failures: number, cooldown: milliseconds] or false", &breaker?/1},
      usage: {"[flush: milliseconds, keep: days, most: number] or false", &usage?/1},
      keep: {"[versions: days, deleted: days, runs: days], each or :infinity", &keep?/1},
      sections: {"a list of sections", &is_list/1},
      telemetry_flags: {"a boolean", &is_boolean/1},
      hooks: {"a list of modules with callbacks of Skillbook.Hook", &hooks?/1},
      watch: {"a boolean or [poll: milliseconds]", &watch?/1},
      embedder: {"an embedder or nil", &(is_nil(&1) or Embedder.embedder?(&1))},
      embedder_timeout: {"a number of milliseconds", &Options.milliseconds?/1},
      parts: {"a list of modules that use Skillbook.Part", &parts?/1}
    ]
  end

  defp hooks?([]), do: true
  defp hooks?(hooks), do: Hook.valid?(hooks)

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
        name in [:flush, :keep, :most] and Options.positive?(value)
      end)
  end

  defp keep?(options) do
    Keyword.keyword?(options) and
      Enum.all?(options, fn {name, days} ->
        name in [:versions, :deleted, :runs] and limit?(days)
      end)
  end

  defp watch?(poll: interval), do: Options.milliseconds?(interval)
  defp watch?(value), do: is_boolean(value)

  defp store?(nil), do: true
  defp store?({module, options}), do: is_atom(module) and Keyword.keyword?(options)
  defp store?(text), do: Options.text?(text) or is_function(text, 0)
end
