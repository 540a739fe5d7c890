defmodule Skillbook.MCP.Client.State do
  @moduledoc false
  # The state of a book's MCP servers, in one table: readers wait for no process. The table
  # belongs to the supervisor of the book, so the last good entries survive a crash of a client.
  #
  #   * `{:entries, label}` - the pages, tools (with prompts) and skills in use
  #   * `{:findings, label}` - the diagnostics
  #   * `{:offers, label}` - all tools, prompts and skills of the last listing, each with its status
  #   * `{:session, label}` - revision, capabilities and id of the session with the server
  #   * `{:scopes, label}` - the scopes that the token lacked in the last call that needed more
  #   * `{:client, label}`, `{:stdio, label}` - the client, and the owner of the server's program
  #   * `{:file, digest}` - a verified file, its size, and when it was read last

  alias Skillbook.Diagnostic
  alias Skillbook.MCP.Client.{Session, Settings, Skills, Tools}

  @type entries :: %{
          pages: [Skillbook.Source.Code.page()],
          tools: %{String.t() => Tools.t()},
          skills: %{String.t() => Skills.t()}
        }

  @none %{pages: [], tools: %{}, skills: %{}}

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
  def session(settings), do: get(settings, :session, nil)

  @spec put_session(Settings.t(), Session.t() | nil) :: :ok
  def put_session(settings, session), do: put(settings, :session, session)

  @doc "The scopes that a server has asked for in addition."
  @spec scopes(Settings.t()) :: [String.t()]
  def scopes(settings), do: get(settings, :scopes, [])

  @spec put_scopes(Settings.t(), [String.t()]) :: :ok
  def put_scopes(settings, scopes), do: put(settings, :scopes, scopes)

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
    key = {:file, settings.label, digest}

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
    row = {{:file, settings.label, digest}, bytes, byte_size(bytes), System.monotonic_time()}
    :ets.insert(table, row)

    files =
      :ets.select(table, [{{{:file, settings.label, :"$1"}, :_, :"$2", :"$3"}, [], [:"$$"]}])

    files
    |> Enum.sort_by(fn [_digest, _size, read] -> -read end)
    |> Enum.reduce(0, fn [digest, size, _read], sum ->
      if sum + size > settings.max_cache,
        do: :ets.delete(table, {:file, settings.label, digest})

      sum + size
    end)

    :ok
  rescue
    # The book has stopped.
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
