defmodule Skillbook.CLI.Session do
  @moduledoc false
  # The book that one run of the command line works with.

  alias Skillbook.CLI.Terminal
  alias Skillbook.SQL.Postgres
  alias Skillbook.Vault

  @name :skillbook_cli
  @database ".skillbook/skillbook.db"
  @shown 3

  @doc """
  Starts the book, calls the function with its name, and stops it. Returns what the function returns, or 3.

  `:write` says that commands may run, which is when a database is created that is not there yet. `:converse` is the same
  for a book that lives on, so that it follows changes of its files, and so is `{:serve, agent}`, which runs what has a schedule
  besides, prose by the agent if there is one. A book that is only read has no vaults.
  """
  def with_book(options, mode, fun) do
    trapping = Process.flag(:trap_exit, true)

    try do
      with {:ok, store} <- store(options.db, mode),
           vaults = if(mode == :read, do: [], else: options.vaults),
           {:ok, pid} <- start(options, store, vaults, mode) do
        try do
          unless options.flags[:diagnostics], do: summarize(Skillbook.diagnostics(@name))
          with :ok <- index(vaults), do: fun.(@name)
        after
          GenServer.stop(pid)
        end
      else
        {:error, reason} ->
          Terminal.complain(["cannot start: ", reason(reason)])
          3
      end
    after
      Process.flag(:trap_exit, trapping)
    end
  end

  @doc "The view of the profile that the options name."
  def view(book, options), do: Skillbook.view(book, profile(options))

  @doc "The profile that the options name."
  def profile(options) do
    %Skillbook.Profile{id: options.profile, grants: options.grants, skills: :all, tools: :all}
  end

  defp start(options, store, vaults, mode) do
    # What is told of indexing here is told by `index/1`.
    Logger.put_module_level(Vault.Indexer, :warning)

    Skillbook.start_link(
      [
        name: @name,
        sources: Enum.map(options.dirs, &source/1),
        builtins: options.builtins,
        store: store,
        vaults: vaults,
        watch: mode not in [:read, :write],
        write_to: List.last(options.dirs) || "skills"
      ] ++ schedules(mode, options)
    )
  end

  defp schedules({:serve, agent}, options) do
    profiles = [[id: options.profile, grants: options.grants]]
    [profiles: profiles, schedules: [run_as: options.profile], agent: agent]
  end

  defp schedules(_mode, _options), do: [scheduler: false]

  # What is asked of a vault is asked of all of it.
  defp index([]), do: :ok

  defp index(_vaults) do
    :ok = Vault.subscribe(@name)

    @name
    |> Skillbook.View.all()
    |> Vault.names()
    |> Enum.find_value(:ok, fn name ->
      with {:error, reason} <- wait(name, Task.async(fn -> Vault.sync(@name, name) end)) do
        Terminal.complain(["the vault #{name} could not be indexed: ", reason(reason)])
        3
      else
        {:ok, _counts} -> nil
      end
    end)
  end

  defp wait(name, %Task{ref: ref} = task) do
    receive do
      {^ref, result} ->
        Process.demonitor(ref, [:flush])
        Terminal.progress_over()
        result

      {:skillbook_vault_progress, @name, ^name, %{done: done, total: total}} ->
        Terminal.progress("the vault #{name}: #{done} of #{total} notes indexed")
        wait(name, task)
    end
  end

  # Whoever names the folder of installed skills may see them; they are somebody else's all the same.
  defp source(folder) do
    if File.exists?(Path.join(folder, "skills.lock.json")),
      do: {:installed, folder, name: Path.basename(Path.expand(folder)), labels: []},
      else: folder
  end

  # What is only read needs no database, and leaves none behind in the folder it was asked from.
  defp store(nil, :read), do: {:ok, if(File.exists?(@database), do: @database)}
  defp store(nil, mode), do: store(@database, mode)
  defp store(":memory:", _mode), do: {:ok, ":memory:"}

  defp store(text, _mode) do
    # As a function, the URL and the password in it are in no report of a supervisor.
    if text =~ ~r{\Apostgres(ql)?://},
      do: {:ok, {Postgres, url: fn -> text end}},
      else: file(text)
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

      found ->
        shown = found |> Enum.sort_by(&(&1.severity != :error)) |> Enum.take(@shown)
        count = if length(found) == 1, do: "1 problem", else: "#{length(found)} problems"
        Terminal.complain("#{count} in the skills; `list --diagnostics` shows them all")
        for diagnostic <- shown, do: IO.puts(:stderr, ["  ", first_line(diagnostic)])
        :ok
    end
  end

  defp first_line(diagnostic),
    do: diagnostic |> to_string() |> String.split("\n", parts: 2) |> hd()
end
