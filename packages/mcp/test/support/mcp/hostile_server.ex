defmodule Skillbook.Test.HostileServer do
  @moduledoc false
  # Runs test/support/mcp/hostile.py, an MCP server that tells one lie for each path.

  import ExUnit.Callbacks, only: [on_exit: 1]

  alias Skillbook.Support.JSON

  @script Path.expand("hostile.py", __DIR__)

  @doc "Starts the server; returns its address. It ends with the test process."
  @spec start() :: String.t()
  def start do
    python = System.find_executable("python3") || raise "python3 is needed"
    # Its input closes with the port, and then it ends.
    port = Port.open({:spawn_executable, python}, [:binary, :use_stdio, args: [@script]])

    receive do
      {^port, {:data, number}} -> "http://127.0.0.1:#{String.trim(number)}"
    after
      20_000 -> raise "the hostile server does not start"
    end
  end

  @doc "The command of a server that speaks over standard input and output."
  @spec command(String.t()) :: [String.t()]
  def command(lie), do: [System.find_executable("python3"), @script, "stdio", lie]

  @doc "The methods that were called at a path, each with its URI or name."
  @spec log(String.t(), String.t()) :: [[term()]]
  def log(address, lie) do
    {:ok, %{status: 200, body: body}} = Skillbook.HTTP.request("#{address}/log/#{lie}")
    {:ok, log} = JSON.decode(body)
    log
  end

  @doc "Changes what a path serves."
  @spec set(String.t(), String.t(), map()) :: :ok
  def set(address, lie, state) do
    request = [method: :post, url: "#{address}/set/#{lie}", body: JSON.encode(state)]
    {:ok, %{status: 200}} = Skillbook.HTTP.request(request)
    :ok
  end

  @doc "Starts a book with a server, waits for its listing, and returns its name."
  @spec book(String.t() | [String.t()], keyword(), keyword()) :: atom()
  def book(place, options \\ [], more \\ []) do
    name = :"mcp_client_#{System.unique_integer([:positive])}"
    source = {:mcp, place, Keyword.merge([label: "docs", timeout: 5_000], options)}
    sources = Keyword.get(more, :before, []) ++ [source] ++ Keyword.get(more, :after, [])
    more = more |> Keyword.drop([:before, :after]) |> Keyword.put_new(:builtins, true)

    {:ok, pid} = Skillbook.start_link([name: name, watch: false, sources: sources] ++ more)
    on_exit(fn -> stop(pid) end)
    :ok = Skillbook.MCP.Client.await(name)
    name
  end

  defp stop(pid) do
    if Process.alive?(pid), do: Supervisor.stop(pid)
  catch
    :exit, _reason -> :ok
  end
end
