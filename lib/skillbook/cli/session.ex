defmodule Skillbook.CLI.Session do
  @moduledoc false
  # Starts the book of one command line, waits until its vaults are indexed, calls the
  # subcommand, and stops the book.

  alias Skillbook.Catalog.ErrorLog
  alias Skillbook.CLI.Terminal
  alias Skillbook.SQL.{Location, SQLite}
  alias Skillbook.{Embedding, Vault}

  @name :skillbook_cli
  @database ".skillbook/skillbook.db"
  @max_listed 3
  # Milliseconds for a query of a single command, which prefers a late answer to another one.
  @embedder_timeout 30_000

  @doc """
  Starts the book, calls the function with its name, and stops the book.

  Returns the function's result, or the exit status 3 if the book cannot start.

  The mode is

    * `:read` - creates no database and opens no vaults
    * `:write` - commands may run, so a missing database is created
    * `:converse` - as `:write`, and changed files are reloaded
    * `{:serve, agent}` - as `:converse`, and scheduled skills run; prose runs with the agent's
      options, if they are not `nil`
  """
  def with_book(options, mode, fun) do
    trapping = Process.flag(:trap_exit, true)

    try do
      with {:ok, store} <- store(options.db, mode),
           vaults = if(mode == :read, do: [], else: options.vaults),
           {:ok, pid} <- start(options, store, vaults, mode) do
        try do
          unless options.flags[:diagnostics], do: summarize(Skillbook.diagnostics(@name))
          with :ok <- index(vaults), :ok <- embed(options.embedder, mode), do: fun.(@name)
        after
          GenServer.stop(pid)
        end
      else
        {:error, reason} ->
          Terminal.complain(["cannot start: ", reason(reason)])
          3
      end
    after
      Logger.delete_module_level(Embedding.Indexer)
      Process.flag(:trap_exit, trapping)
    end
  end

  @doc "The name of the book of a command line."
  def name, do: @name

  @doc "The view of `profile/1`."
  def view(book, options), do: Skillbook.view(book, profile(options))

  @doc "The profile of `--profile` and `--grant`."
  def profile(options) do
    %Skillbook.Profile{id: options.profile, grants: options.grants, skills: :all, tools: :all}
  end

  defp start(options, store, vaults, mode) do
    # `index/1` and `embed/2` show the progress, and the errors.
    Logger.put_module_level(Vault.Indexer, :warning)
    if waits?(mode), do: Logger.put_module_level(Embedding.Indexer, :none)

    book = [
      name: @name,
      sources: options.dirs |> Enum.uniq_by(&Path.expand/1) |> Enum.map(&source/1),
      builtins: options.builtins,
      store: store,
      vaults: vaults,
      preflight: if(options.flags[:preflight], do: []),
      watch: not waits?(mode),
      embedder: options.embedder,
      write_to: List.last(options.dirs) || "skills"
    ]

    # `summarize/1` shows the errors of the start.
    Logger.put_module_level(ErrorLog, :none)

    try do
      Skillbook.start_link(book ++ timeout(mode) ++ schedules(mode, options))
    after
      Logger.delete_module_level(ErrorLog)
    end
  end

  defp timeout(mode), do: if(waits?(mode), do: [embedder_timeout: @embedder_timeout], else: [])

  defp schedules({:serve, agent}, options) do
    profiles = [[id: options.profile, grants: options.grants]]
    builtins = Keyword.get_values(options.flags, :enable)
    schedules = [run_as: options.profile, builtins: builtins]
    [profiles: profiles, schedules: schedules, agent: agent]
  end

  defp schedules(_mode, _options), do: [scheduler: false]

  # Waits until all notes are indexed, so that a search is complete.
  defp index([]), do: :ok

  defp index(_vaults) do
    :ok = Vault.subscribe(@name)

    @name
    |> Skillbook.View.all()
    |> Vault.names()
    |> Enum.find_value(:ok, fn name ->
      with {:error, reason} <- wait(name, Task.async(fn -> Vault.sync(@name, name) end)) do
        Terminal.complain(["the vault #{name} cannot be indexed: ", reason(reason)])
        3
      else
        {:ok, _counts} -> nil
      end
    end)
  end

  # A single command waits for the vectors, so that it always has the same result. In a
  # conversation searches use those that are there.
  defp embed(embedder, mode) do
    if embedder != nil and waits?(mode) do
      view = Skillbook.View.all(@name)
      result = Embedding.Entries.await(view, &progress("skills embedded", &1))
      Terminal.clear_progress()

      with {:error, error} <- result do
        Terminal.complain(["the skills cannot be embedded: ", reason(error)])
        3
      end
    else
      :ok
    end
  end

  defp waits?(mode), do: mode in [:read, :write]

  @doc "Shows how much of some work is done."
  @spec progress(String.t(), %{done: non_neg_integer(), total: non_neg_integer()}) :: :ok
  def progress(what, %{done: done, total: total}),
    do: Terminal.progress("#{done} of #{total} #{what}")

  defp wait(name, %Task{ref: ref} = task) do
    receive do
      {^ref, result} ->
        Process.demonitor(ref, [:flush])
        Terminal.clear_progress()
        result

      {:skillbook_vault_progress, @name, ^name, %{done: done, total: total}} ->
        Terminal.progress("the vault #{name}: #{done} of #{total} notes indexed")
        wait(name, task)
    end
  end

  # Installed skills named with --dir have no visibility labels, but keep their low trust.
  defp source(folder) do
    if File.exists?(Path.join(folder, "skills.lock.json")),
      do: {:installed, folder, name: Path.basename(Path.expand(folder)), labels: []},
      else: folder
  end

  # Reading creates no database in the current folder.
  defp store(nil, :read), do: {:ok, if(File.exists?(@database), do: @database)}
  defp store(nil, mode), do: store(@database, mode)
  defp store(":memory:", _mode), do: {:ok, ":memory:"}

  defp store(text, _mode) do
    case Location.read(text) do
      {:ok, {SQLite, path: path}} ->
        file(path)

      {:ok, connection} ->
        {:ok, connection}

      {:error, expected} ->
        {:error, "expected #{expected} as --db, got: #{Location.redact(text)}"}
    end
  end

  defp file(path) do
    case File.mkdir_p(Path.dirname(path)) do
      :ok ->
        {:ok, path}

      {:error, reason} ->
        {:error, "the database's folder #{Path.dirname(path)}: #{:file.format_error(reason)}"}
    end
  end

  defp reason(text) when is_binary(text), do: text
  defp reason(%{__exception__: true} = error), do: Exception.message(error)
  defp reason({:shutdown, reason}), do: reason(reason)
  defp reason({:failed_to_start_child, _child, reason}), do: reason(reason)

  defp reason({%{__exception__: true} = error, stack}) when is_list(stack),
    do: Exception.message(error)

  defp reason(other), do: Exception.format_exit(other)

  defp summarize(diagnostics) do
    case Enum.reject(diagnostics, &(&1.severity == :info)) do
      [] ->
        :ok

      problems ->
        first = problems |> Enum.sort_by(&(&1.severity != :error)) |> Enum.take(@max_listed)
        count = if match?([_], problems), do: "1 problem", else: "#{length(problems)} problems"
        Terminal.complain("#{count} in the skills; `list --diagnostics` shows them all")
        for diagnostic <- first, do: Terminal.note(["  ", first_line(diagnostic)])
        :ok
    end
  end

  defp first_line(diagnostic),
    do: diagnostic |> to_string() |> String.split("\n", parts: 2) |> hd()
end
