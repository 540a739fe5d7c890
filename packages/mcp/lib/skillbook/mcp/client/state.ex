defmodule Skillbook.MCP.Client.State do
  @moduledoc false
  # The state of a book's MCP servers, in one table: readers wait for no process. The table
  # belongs to the supervisor of the book, so the last good entries survive a crash of a client.
  #
  #   * `{:entries, label}` - the pages, tools (with prompts) and skills in use
  #   * `{:findings, label}` - the diagnostics
  #   * `{:offers, label}` - all tools, prompts and skills of the last listing, each with its
  #     status
  #   * `{:session, label, caller}` - revision, capabilities and id of the session with the server
  #   * `{:scopes, label, caller}` - the scopes that the token lacked in the last call that needed
  #     more
  #   * `{:client, label}`, `{:stdio, label}` - the client, and the owner of the server's program
  #   * `{:file, label, caller, digest}` - a verified file, its size, and when it was read last
  #
  # `caller` is the id of the profile for a server with a sign-in of each caller, otherwise `nil`:
  # a session belongs to the token with which it began, and a file to those who may read it.

  alias Skillbook.Diagnostic
  alias Skillbook.MCP.Client.{Session, Settings, Skills, Tools}

  @type entries :: %{
          pages: [Skillbook.Source.Code.page()],
          tools: %{String.t() => Tools.t()},
          skills: %{String.t() => Skills.t()}
        }

  @none %{pages: [], tools: %{}, skills: %{}}

  # Sessions and scopes of callers that are kept of a server. A session that went is begun again.
  @max_callers 1_000

  @doc "Makes the table of a book. The calling process owns it."
  @spec new(atom()) :: :ok
  def new(book) do
    options = [:named_table, :public, read_concurrency: true, write_concurrency: true]
    :ets.new(name(book), options)
    :ok
  end

  @spec entries(Settings.t()) :: entries()
  def entries(%{book: nil}), do: @none
  def entries(settings), do: get(settings, :entries, @none)

  @spec put_entries(Settings.t(), entries()) :: :ok
  def put_entries(settings, entries), do: put(settings, :entries, entries)

  @spec findings(Settings.t()) :: [Diagnostic.t()]
  def findings(settings), do: get(settings, :findings, [])

  @spec put_findings(Settings.t(), [Diagnostic.t()]) :: :ok
  def put_findings(settings, findings), do: put(settings, :findings, findings)

  def offers(settings), do: get(settings, :offers, [])
  def put_offers(settings, offers), do: put(settings, :offers, offers)

  @spec session(Settings.t()) :: Session.t() | nil
  def session(settings), do: own(settings, :session, nil)

  @spec put_session(Settings.t(), Session.t() | nil) :: :ok
  def put_session(settings, session), do: put_own(settings, :session, session)

  @doc "The scopes that a server has asked for in addition."
  @spec scopes(Settings.t()) :: [String.t()]
  def scopes(settings), do: own(settings, :scopes, [])

  @spec put_scopes(Settings.t(), [String.t()]) :: :ok
  def put_scopes(settings, scopes), do: put_own(settings, :scopes, scopes)

  @spec stdio(Settings.t()) :: pid() | nil
  def stdio(settings), do: get(settings, :stdio, nil)

  @spec put_stdio(Settings.t(), pid()) :: :ok
  def put_stdio(settings, pid), do: put(settings, :stdio, pid)

  @spec client(Settings.t()) :: pid() | nil
  def client(settings), do: get(settings, :client, nil)

  @spec put_client(Settings.t(), pid()) :: :ok
  def put_client(settings, pid), do: put(settings, :client, pid)

  # Files

  @spec file(Settings.t(), String.t()) :: binary() | nil
  def file(settings, digest) do
    key = {:file, settings.label, caller(settings), digest}

    case lookup(settings, key) do
      [{_key, bytes, _size, _read}] ->
        :ets.update_element(name(settings.book), key, {4, System.monotonic_time()})
        bytes

      [] ->
        nil
    end
  end

  @doc "Keeps a verified file. The files that were not read for the longest time make room."
  @spec put_file(Settings.t(), String.t(), binary()) :: :ok
  def put_file(%{max_cache: max}, _digest, bytes) when byte_size(bytes) > max, do: :ok

  def put_file(settings, digest, bytes) do
    table = name(settings.book)
    key = {:file, settings.label, caller(settings), digest}
    :ets.insert(table, {key, bytes, byte_size(bytes), System.monotonic_time()})

    files =
      :ets.select(table, [
        {{{:file, settings.label, :"$1", :"$2"}, :_, :"$3", :"$4"}, [], [:"$$"]}
      ])

    files
    |> Enum.sort_by(fn [_caller, _digest, _size, read] -> -read end)
    |> Enum.reduce(0, fn [caller, digest, size, _read], sum ->
      if sum + size > settings.max_cache,
        do: :ets.delete(table, {:file, settings.label, caller, digest})

      sum + size
    end)

    :ok
  rescue
    # The book has stopped.
    ArgumentError -> :ok
  end

  defp caller(%{caller: nil}), do: nil
  defp caller(%{caller: profile}), do: profile.id

  defp own(settings, kind, default) do
    case lookup(settings, {kind, settings.label, caller(settings)}) do
      [{_key, value, _at}] -> value
      [] -> default
    end
  end

  defp put_own(settings, kind, value) do
    table = name(settings.book)
    key = {kind, settings.label, caller(settings)}
    :ets.insert(table, {key, value, System.monotonic_time()})
    callers = {{kind, settings.label, :"$1"}, :_, :"$2"}
    kept = :ets.select(table, [{callers, [{:"/=", :"$1", nil}], [{{:"$2", :"$1"}}]}])
    over = length(kept) - @max_callers

    if over > 0 do
      for {_at, caller} <- kept |> Enum.sort() |> Enum.take(over),
          do: :ets.delete(table, {kind, settings.label, caller})
    end

    :ok
  rescue
    ArgumentError -> :ok
  end

  defp get(settings, kind, default) do
    case lookup(settings, {kind, settings.label}) do
      [{_key, value}] -> value
      [] -> default
    end
  end

  defp lookup(settings, key) do
    :ets.lookup(name(settings.book), key)
  rescue
    # The book has not started, or has stopped.
    ArgumentError -> []
  end

  defp put(settings, kind, value) do
    :ets.insert(name(settings.book), {{kind, settings.label}, value})
    :ok
  rescue
    ArgumentError -> :ok
  end

  defp name(book), do: Module.concat(book, MCPClients)
end
