defmodule Skillbook.CLI.Loopback do
  @moduledoc false
  # Receives the redirect of a sign-in on this machine (RFC 8252, 7.3): a server on 127.0.0.1 and
  # a free port, for as long as the command line waits.
  #
  # Only a request with the state of the sign-in counts. Others, such as those of other programs
  # and of websites, are refused and end nothing.

  alias Skillbook.Web.{Request, Response, Server}

  @type t :: %__MODULE__{server: pid(), port: pos_integer(), state: :ets.table()}

  defstruct [:server, :port, :state]

  # Milliseconds for the answer of the caller.
  @answer 60_000
  @limits [
    request_timeout: @answer + 5_000,
    head_timeout: 5_000,
    idle_timeout: 5_000,
    drain: 1_000,
    max_head: 16 * 1024,
    max_target: 12 * 1024,
    max_connections: 32,
    max_body: 1,
    http2: false
  ]

  @doc "Opens the server, which refuses all requests until `serve/2`."
  @spec listen() :: {:ok, t()} | {:error, String.t()}
  def listen do
    owner = self()
    state = :ets.new(__MODULE__, [:protected])
    handler = &handle(&1, state, owner)

    case Server.start_link([handler: handler, port: 0] ++ @limits) do
      {:ok, server} ->
        {:ok, %__MODULE__{server: server, port: Server.info(server).port, state: state}}

      {:error, error} ->
        {:error, Exception.message(error)}
    end
  end

  @doc "The address of the redirect."
  @spec redirect(t()) :: String.t()
  def redirect(%__MODULE__{port: port}), do: "http://127.0.0.1:#{port}/"

  @doc """
  Waits for requests with a state. For each the calling process gets
  `{:redirected, parameters, reply}`; `reply` takes `{:ok, text}` or `{:error, text}`, which the
  browser shows.
  """
  @spec serve(t(), String.t()) :: :ok
  def serve(%__MODULE__{} = loopback, state) do
    :ets.insert(loopback.state, {:expected, "127.0.0.1:#{loopback.port}", state})
    :ok
  end

  @doc "Closes the server, after the answers that are on their way."
  @spec close(t()) :: :ok
  def close(%__MODULE__{server: server}), do: GenServer.stop(server)

  # Another host is a page that a website has opened (DNS rebinding).
  defp handle(%Request{method: "GET", path: [], host: host} = request, table, owner) do
    with [{:expected, ^host, state}] <- :ets.lookup(table, :expected),
         %{"state" => given} = parameters <- Request.query(request),
         # Not lists, as of `code[]=`.
         true <- Enum.all?(parameters, fn {_name, value} -> is_binary(value) end),
         true <- same?(given, state) do
      answer(parameters, owner)
    else
      _other -> unknown()
    end
  end

  defp handle(_request, _table, _owner), do: unknown()

  defp unknown, do: page(404, "This address is for one sign-in.")

  defp same?(given, state) do
    byte_size(given) == byte_size(state) and :crypto.hash_equals(given, state)
  end

  defp answer(parameters, owner) do
    handler = self()
    ref = make_ref()
    send(owner, {:redirected, parameters, fn outcome -> send(handler, {ref, outcome}) end})

    receive do
      {^ref, {:ok, text}} -> page(200, text)
      {^ref, {:error, text}} -> page(400, text)
    after
      @answer -> page(504, "The command line did not answer.")
    end
  end

  defp page(status, text) do
    body = """
    <!doctype html>
    <meta charset="utf-8">
    <title>Skillbook</title>
    <p>#{escape(text)}</p>
    """

    headers = [
      {"content-type", "text/html; charset=utf-8"},
      {"content-security-policy", "default-src 'none'"},
      {"referrer-policy", "no-referrer"},
      {"cache-control", "no-store"}
    ]

    %Response{status: status, headers: headers, body: body}
  end

  defp escape(text) do
    String.replace(text, ["&", "<", ">", "\""], fn
      "&" -> "&amp;"
      "<" -> "&lt;"
      ">" -> "&gt;"
      "\"" -> "&quot;"
    end)
  end
end
