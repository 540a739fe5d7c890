defmodule Skillbook.CLI.Session do
  @moduledoc false
  # Starts the book of one command line, waits until its vaults are indexed, calls the
  # subcommand, and stops the book.

  alias Skillbook.Book.Builtins
  alias Skillbook.Catalog.ProblemLog
  alias Skillbook.CLI.{Accounts, Servers, Targets, Terminal}
  alias Skillbook.MCP.Client
  alias Skillbook.SQL.{Location, SQLite}
  alias Skillbook.Support.PrivateFile
  alias Skillbook.{Book, Connections, Embedding, Native, Part, Vault}

  @name :skillbook_cli
  @database ".skillbook/skillbook.db"
  # Milliseconds for a query of a single command, which prefers a late answer to another one.
  @embedder_timeout 30_000

  @doc """
  Starts the book, calls the function with its name, and stops the book.

  Returns the function's result, or the exit status 3 if the book cannot start.

  Before, it prints the number of offers of MCP servers that wait for an approval (`:offers`), and
  for commands that are about all skills the first problems in them (`:problems`). `shown` chooses
  among them.

  The mode is

    * `:read` - creates no database and opens no vaults, but has their commands
    * `:write` - commands may run, so a missing database is created
    * `:converse` - as `:write`, and changed files are reloaded
    * `{:decide, agent}` - as `:write`, for `approvals`; prose runs with the agent's options, if
      they are not `nil`
    * `:runs` - as `:read`, with durable runs, of which the book continues none by itself
    * `{:continue, agent}` - as `:runs`, but commands may run, with the agent's options
    * `:web` - as `:converse`, and every id is a profile: without visibility labels, except
      that of the options
    * `{:show, agent}` - as `:web`, with a model for the page's conversations
    * `{:web, agent}` - as `:web`, and scheduled skills run as in `{:serve, agent}`
    * `{:serve, agent}` - as `:converse`, and scheduled skills run; prose runs with the agent's
      options, if they are not `nil`
  """
  def with_book(options, mode, fun, shown \\ [:offers]) do
    trapping = Process.flag(:trap_exit, true)

    try do
      with {:ok, store} <- store(options.db, mode),
           {:ok, accounts} <- Accounts.read(),
           options = %{options | connections: accounts},
           {:ok, book} <- book(options),
           vaults = if(mode in [:read, :runs], do: [], else: vaults(options)),
           book = Keyword.merge(book, store: store, vaults: vaults),
           {:ok, pid} <- start(book, options, mode) do
        try do
          Client.await(@name)
          unless options.flags[:diagnostics], do: summarize(Skillbook.diagnostics(@name), shown)
          with :ok <- index(vaults), :ok <- embed(options.embedder, mode, vaults), do: fun.(@name)
        after
          stop(pid)
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

  @doc """
  Stops the book, if it still runs: what runs has the time of its option `:drain`.
  """
  @spec stop(pid() | atom()) :: :ok
  def stop(book), do: if(GenServer.whereis(book), do: stop_running(book), else: :ok)

  defp stop_running(book) do
    GenServer.stop(book)
  catch
    # It has just ended.
    :exit, {reason, _call} when reason in [:noproc, :shutdown] -> :ok
  end

  @doc "The name of the book of a command line."
  def name, do: @name

  @doc """
  The modules of the applications whose project `mix skillbook` runs in; `bin/skillbook` has none.
  """
  @spec modules() :: [Skillbook.Source.item()]
  def modules, do: for(app <- Application.get_env(:skillbook, :modules, []), do: {:modules, app})

  @doc "The person at the command line, for records of decisions."
  @spec user() :: String.t()
  def user, do: System.get_env("USER") || System.get_env("USERNAME") || "the command line"

  @doc "The view of `profile/1`."
  def view(book, options), do: Skillbook.view(book, profile(options))

  @doc "The view of `--profile` or `--grant`, or without them of everything."
  def given_view(book, options),
    do: if(options.profile_given, do: view(book, options), else: Skillbook.View.all(book))

  @doc "The profile of `--profile` and `--grant`."
  def profile(options) do
    %Skillbook.Profile{id: options.profile, grants: options.grants, skills: :all, tools: :all}
  end

  @doc """
  The sources and vaults of a command line, as options of a book. Every book of a command line has
  these, so an option counts in each subcommand.
  """
  @spec book(Skillbook.CLI.Arguments.t()) :: {:ok, keyword()} | {:error, Exception.t()}
  def book(options) do
    with {:ok, builtins} <- builtins(options) do
      sources = Targets.others(builtins, options.tested)
      sources = sources ++ modules() ++ folders(options) ++ options.servers
      {:ok, [sources: sources, builtins: false, vaults: vaults(options)]}
    end
  end

  # The folder is the user's own, so commands may use all files in it.
  defp vaults(options), do: for(path <- options.vaults, do: [path: path, files: true])

  @doc "The built-in sources of a command line."
  @spec builtins(Skillbook.CLI.Arguments.t()) ::
          {:ok, [Skillbook.Source.t()]} | {:error, Exception.t()}
  def builtins(options) do
    accounts = [connections: options.connections]

    book = %Book{name: @name, of_parts: %{vaults: options.vaults}}

    with {:ok, book} <- Connections.Part.read(book, accounts) do
      Builtins.sources(
        [builtins: options.builtins],
        Part.flat(Part.installed(), :builtins, [book])
      )
    end
  end

  defp start(book, options, mode) do
    # `index/1` and `embed/2` show the progress, and the errors.
    Logger.put_module_level(Vault.Indexer, :warning)
    if waits?(mode), do: Logger.put_module_level(Embedding.Indexer, :none)

    more = [
      name: @name,
      connections: options.connections,
      preflight: if(options.flags[:preflight], do: []),
      watch: not waits?(mode),
      embedder: options.embedder,
      write_to: if(options.named, do: List.last(options.dirs), else: "skills")
    ]

    # `summarize/1` shows the problems of the start.
    Logger.put_module_level(ProblemLog, :none)

    try do
      more = more ++ timeout(mode) ++ durable(mode, book[:store])
      Skillbook.start_link(book ++ more ++ schedules(mode, options))
    after
      Logger.delete_module_level(ProblemLog)
    end
  end

  defp timeout(mode), do: if(waits?(mode), do: [embedder_timeout: @embedder_timeout], else: [])

  defp durable(_mode, nil), do: []
  defp durable(:runs, _store), do: [durable: [continue: false]]
  defp durable({:continue, _agent}, _store), do: [durable: [continue: false]]
  defp durable(_mode, _store), do: []

  # A call that waits for an approval runs as a profile of the book.
  defp profiles(options), do: [[id: options.profile, grants: options.grants]]

  defp schedules({:serve, agent}, options),
    do: [profiles: profiles(options), schedules: runs(options), agent: agent]

  defp schedules({:web, agent}, options) do
    web = Keyword.delete(schedules(:web, options), :scheduler)
    web ++ [agent: agent]
  end

  defp schedules({:show, agent}, options), do: schedules(:web, options) ++ [agent: agent]

  defp schedules({how, agent}, options) when how in [:decide, :continue],
    do: [agent: agent] ++ schedules(:read, options)

  # Tokens are made for profiles that this command line does not name.
  defp schedules(:web, options),
    do: [
      profiles: profiles(options) ++ [fn id -> {:ok, [id: id]} end],
      scheduler: false,
      schedules: runs(options)
    ]

  # Its lists say as whom the commands that run schedules would run them.
  defp schedules(_mode, options),
    do: [profiles: profiles(options), scheduler: false, schedules: runs(options)]

  # An empty id is an error of the profile.
  defp runs(%{profile: profile, flags: flags}) do
    run_as = if profile != "", do: profile
    [run_as: run_as, builtins: Keyword.get_values(flags, :enable)]
  end

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
  defp embed(embedder, mode, vaults) do
    if embedder != nil and waits?(mode) do
      {texts, result} = embedded(vaults)
      Terminal.clear_progress()

      with {:error, error} <- result do
        Terminal.complain(["the #{texts} cannot be embedded: ", reason(error)])
        3
      end
    else
      :ok
    end
  end

  defp embedded([]) do
    view = Skillbook.View.all(@name)
    {"skills", Embedding.Entries.await(view, &progress("skills embedded", &1))}
  end

  defp embedded(_vaults),
    do: {"texts", Embedding.Indexer.await(@name, &progress("texts embedded", &1))}

  defp waits?({how, _agent}), do: how in [:decide, :continue]
  defp waits?(mode), do: mode in [:read, :write, :runs]

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

  # Two folders may be one, through a link.
  defp folders(options) do
    options.dirs
    |> Enum.uniq_by(&(Targets.identity(&1) || Path.expand(&1)))
    |> Enum.map(&folder(&1, options.named))
  end

  # Installed skills named with --dir have no visibility labels, but keep their low trust. Folders
  # that nobody named may be part of a project of other people.
  defp folder(folder, named?) do
    path = Path.expand(folder)

    cond do
      not named? and path in Enum.map([".claude/skills", ".agents/skills"], &Path.expand/1) ->
        {:installed, folder, name: Path.basename(Path.dirname(path)), labels: []}

      Targets.installed?(folder) ->
        {:installed, folder, name: Path.basename(path), labels: []}

      true ->
        folder
    end
  end

  # Reading creates no database in the current folder.
  defp store(nil, mode) when mode in [:read, :runs],
    do: {:ok, if(File.exists?(@database), do: @database)}

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
    case PrivateFile.mkdir_p(Path.dirname(path)) do
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

  # The offers of one server may be hundreds.
  defp summarize(diagnostics, shown) do
    {offers, problems} = Enum.split_with(diagnostics, &(&1.code == :server_entry_unapproved))
    if :problems in shown, do: problems(problems)
    if :offers in shown, do: offers(length(offers))
    :ok
  end

  defp offers(0), do: :ok

  defp offers(1),
    do: Terminal.complain("1 tool or skill of an MCP server is not approved; `servers` shows it")

  defp offers(count) do
    Terminal.complain(
      "#{count} tools and skills of MCP servers are not approved; `servers` shows them"
    )
  end

  defp problems(diagnostics) do
    with text when text != nil <- Native.report_problems(Enum.map(diagnostics, &named_here/1)),
         do: IO.write(:stderr, text)
  end

  # The message names options of Elixir; here a variable has the token, in place of a sign-in.
  defp named_here(%{code: :server_unavailable, path: "mcp:" <> label} = diagnostic) do
    variable = "the variable #{Servers.variable(label)}"

    message =
      diagnostic.message
      |> String.replace("the option :token, :headers or :oauth", variable)
      |> String.replace(~r/ connect #{label}[^`]*`/, "\\0, or set #{variable}")

    %{diagnostic | message: message}
  end

  defp named_here(diagnostic), do: diagnostic
end
