defmodule Skillbook.Web.Server do
  @moduledoc """
  An HTTP server for a book, or for a function of requests.

      children = [
        {Skillbook, name: MyApp.Skills, sources: ["priv/skills"]},
        {Skillbook.Web.Server, book: MyApp.Skills, port: 4004}
      ]

  It speaks HTTP/1.1 and HTTP/2 (over TLS, and without it to clients that know), by hyper in the
  native library. Connections are tasks of that library: an idle one, or one whose client sends or
  reads slowly, has no process. Each request has a process of its own. It is killed when the
  client of a stream, or of a request that changes nothing (`GET`), has gone.

  ## Options

  All options of `Skillbook.Web`, and:

    * `:port` (integer) - defaults to `4004`; `0` takes any that is free, see `info/1`
    * `:ip` (address) - such as `{0, 0, 0, 0}` or `{0, 0, 0, 0, 0, 0, 0, 0}` for other machines.
      Defaults to `{127, 0, 0, 1}`
    * `:socket` (path) - a unix socket in place of a port, for this user only (mode 0600)
    * `:tls` (keyword list) - `:certfile` and `:keyfile`, paths of PEM files. They are read again
      when they change
    * `:http2` (boolean) - defaults to `true`
    * `:drain` (ms) - how long requests may go on when the server stops. Event streams end at
      once. Defaults to `5_000`
    * `:name` - the name of the process, as of `GenServer.start_link/3`
    * `:handler` - a function of a `Skillbook.Web.Request` that returns a
      `Skillbook.Web.Response`, in place of a book

  Limits:

  | option | default | | beyond it |
  |---|---|---|---|
  | `:max_head` | 32 KiB | size of a request line and its headers | 431 |
  | `:max_headers` | 100 | headers | 431 |
  | `:max_target` | 8 KiB | path and query | 414 |
  | `:max_body` | 32 MiB | size of a body | 413 |
  | `:max_bodies` | 256 MiB | size of all bodies that are held | 503 |
  | `:head_timeout` | 10 s | from the first byte of a head to its last | 408 |
  | `:idle_timeout` | 60 s | without a request | closed |
  | `:body_timeout` | 10 s | for a body, and a second more for each `:body_rate` bytes | 408 |
  | `:body_rate` | 8 KiB | bytes | |
  | `:write_timeout` | 30 s | in which a client takes nothing | closed |
  | `:request_timeout` | 60 s | until the response begins | 503 |
  | `:max_connections` | 10,000 | connections | 503 |
  | `:max_connections_per_address` | 1,000 | of one IPv4 address or IPv6 /64 network | 503 |
  | `:max_requests` | 200 | requests at once, without streams | wait |
  | `:max_queue` | 1,000 | requests that wait | 503 |
  | `:queue_timeout` | 10 s | how long they wait | 503 |
  | `:max_streams` | 5,000 | streams at once | 503 |
  | `:max_streams_per_caller` | 100 | event streams of one caller, see `Skillbook.Web` | 429 |
  | `:max_http2_streams` | 100 | requests at once of a connection in HTTP/2 | refused |

  Times are milliseconds, sizes bytes. A status 503 or 429 has the header `retry-after`.
  Connections of `:trusted_proxies` have only the limit `:max_connections`.

  ## Examples

      iex> handler = fn request -> Skillbook.Web.Response.text(200, "Hello " <> request.query) end
      iex> {:ok, server} = Skillbook.Web.Server.start_link(handler: handler, port: 0)
      iex> %{url: url} = Skillbook.Web.Server.info(server)
      iex> {:ok, response} = Skillbook.HTTP.request(url: url <> "/?you", method: :get)
      iex> response.body
      "Hello you"
  """

  use GenServer

  alias Skillbook.Support.Options
  alias Skillbook.Web.{CORS, Proxies}
  alias Skillbook.Web.Server.{Error, Exchange}
  alias Skillbook.HTTP.Library
  alias Skillbook.{OptionError, Web}

  require Logger

  @type option :: {atom(), term()}

  @typedoc """
  A running server: its port (`nil` for a unix socket), the beginning of its URLs, and the numbers
  of open connections, requests with a process, requests that wait, and streams.
  """
  @type info :: %{
          port: :inet.port_number() | nil,
          url: String.t(),
          connections: non_neg_integer(),
          requests: non_neg_integer(),
          waiting: non_neg_integer(),
          streams: non_neg_integer()
        }

  @subject "Skillbook.Web.Server"
  # Milliseconds that the supervisor waits beyond `:drain`.
  @margin 5_000

  @kib 1024
  @mib 1024 * 1024

  # The option, the name of the native library, and the default.
  @limits [
    {:max_head, :head_bytes, 32 * @kib},
    {:max_headers, :head_count, 100},
    {:max_target, :target_bytes, 8 * @kib},
    {:max_body, :body_bytes, 32 * @mib},
    {:max_bodies, :bodies_bytes, 256 * @mib},
    {:head_timeout, :head_time, 10_000},
    {:idle_timeout, :idle_time, 60_000},
    {:body_timeout, :body_time, 10_000},
    {:body_rate, :body_rate, 8 * @kib},
    {:write_timeout, :write_time, 30_000},
    {:request_timeout, :request_time, 60_000},
    {:max_connections, :connections, 10_000},
    {:max_connections_per_address, :connections_per_address, 1_000},
    {:max_requests, :requests, 200},
    {:max_queue, :queue, 1_000},
    {:queue_timeout, :queue_time, 10_000},
    {:max_streams, :streams, 5_000},
    {:max_http2_streams, :http2_streams, 100}
  ]

  @doc "The child of a supervisor. See the options above."
  @spec child_spec(Skillbook.options()) :: Supervisor.child_spec()
  def child_spec(options) do
    keywords = Options.keywords(options, [:tls])
    given = if Keyword.keyword?(keywords), do: keywords, else: []
    place = given[:name] || given[:socket] || {given[:ip], given[:port]}

    %{
      id: {__MODULE__, place},
      start: {__MODULE__, :start_link, [options]},
      shutdown: drain(given[:drain]) + @margin
    }
  end

  defp drain(given), do: if(Options.milliseconds?(given), do: given, else: 5_000)

  @doc """
  Starts a server that is linked to the calling process.

      iex> {:error, error} = Skillbook.Web.Server.start_link(handler: & &1, prot: 4004)
      iex> error |> Exception.message() |> String.split(" The options") |> hd()
      "unknown option :prot for Skillbook.Web.Server, did you mean :port?"
  """
  @spec start_link(Skillbook.options()) ::
          {:ok, pid()} | {:error, OptionError.t() | Error.t()}
  def start_link(options) do
    options = Options.keywords(options, [:tls])

    with :ok <- Options.validate(options, @subject, schema()),
         :ok <- Options.validate(options[:tls] || [], "the :tls of a server", tls()),
         :ok <- complete(options),
         {:ok, answers} <- answers(options) do
      name = Keyword.take(options, [:name])
      # A function, so that no report shows the options.
      with {:error, {:shutdown, error}} <-
             GenServer.start_link(__MODULE__, fn -> {options, answers} end, name),
           do: {:error, error}
    end
  end

  defp complete(options) do
    tls = options[:tls]

    cond do
      not Keyword.has_key?(options, :handler) and not Keyword.has_key?(options, :book) ->
        {:error, %OptionError{subject: @subject, option: :book, problem: :missing}}

      tls && options[:socket] ->
        {:error, invalid(:tls, "no TLS with a unix :socket", tls)}

      tls && not (Keyword.has_key?(tls, :certfile) and Keyword.has_key?(tls, :keyfile)) ->
        {:error, invalid(:tls, "both :certfile and :keyfile", tls)}

      true ->
        :ok
    end
  end

  defp answers(options) do
    web = Keyword.take(options, Web.options())

    cond do
      not Keyword.has_key?(options, :handler) -> Web.new(web)
      web == [] -> {:ok, options[:handler]}
      true -> {:error, invalid(:handler, "no :handler beside a book", options[:handler])}
    end
  end

  # The port counts once it is known; before, nothing must be open that may not be.
  defp listen(%Web{} = web, options, port) do
    listener = if options[:socket], do: :unix, else: {:tcp, ip(options), port}
    Web.listen(web, listener)
  end

  defp listen(handler, _options, _port), do: {:ok, handler}

  defp invalid(option, expected, value) do
    %OptionError{subject: @subject, option: option, problem: {:invalid, expected, value}}
  end

  defp schema do
    [
      port: {"a port from 0 to 65535", &(&1 in 0..65_535)},
      ip: {"an address such as {127, 0, 0, 1}", &:inet.is_ip_address/1},
      socket: {"the path of a unix socket", &Options.path?/1},
      tls: {"a keyword list with :certfile and :keyfile", &Keyword.keyword?/1},
      http2: {"a boolean", &is_boolean/1},
      drain: {"a number of milliseconds", &Options.milliseconds?/1},
      name: {Options.process_name(), &Options.process_name?/1},
      handler: {"a function of a request", &is_function(&1, 1)}
    ] ++
      for({option, _field, _default} <- @limits, do: {option, limit(option)}) ++
      for(option <- Web.options(), do: {option, {"an option of Skillbook.Web", &any?/1}})
  end

  defp tls, do: for(file <- [:certfile, :keyfile], do: {file, {"a path", &Options.path?/1}})

  defp limit(option) do
    if String.ends_with?(Atom.to_string(option), "_timeout"),
      do: {"a number of milliseconds", &Options.milliseconds?/1},
      else: {"a number from 1 on", &(Options.positive?(&1) and &1 < 4_294_967_296)}
  end

  # `Skillbook.Web.new/1` checks it.
  defp any?(_value), do: true

  @doc """
  Returns the port, the URL and the figures of a running server.

      iex> {:ok, server} = Skillbook.Web.Server.start_link(handler: & &1, port: 0)
      iex> %{port: port, url: url, connections: 0} = Skillbook.Web.Server.info(server)
      iex> url == "http://127.0.0.1:\#{port}"
      true
  """
  @spec info(GenServer.server()) :: info()
  def info(server), do: GenServer.call(server, :info)

  @impl true
  def init(options) do
    Process.flag(:trap_exit, true)
    {options, answers} = options.()

    with {:ok, _web} <- listen(answers, options, port(options)),
         {:ok, native, port} <- Library.web_start(settings(options, answers)),
         {:ok, answers} <- listen(answers, options, port) do
      {:ok, tasks} = Task.Supervisor.start_link()

      {:ok,
       %{
         native: native,
         tasks: tasks,
         handler: if(is_function(answers), do: answers, else: &Web.call(&1, answers)),
         port: if(options[:socket], do: nil, else: port),
         url: url(options, port),
         drain: options[:drain] || 5_000
       }}
    else
      {:error, kind, reason} ->
        fail(%Error{kind: kind, address: address(options), reason: reason})

      {:error, error} ->
        fail(error)
    end
  end

  # The caller gets the error as a result, and no signal.
  defp fail(error) do
    unlink(hd(Process.get(:"$ancestors")))
    {:stop, {:shutdown, error}}
  end

  defp unlink(name) when is_atom(name), do: name |> Process.whereis() |> unlink()
  defp unlink(pid), do: Process.unlink(pid)

  defp settings(options, answers) do
    limits = for {option, field, default} <- @limits, do: {field, options[option] || default}

    %{
      ip: to_string(:inet.ntoa(ip(options))),
      port: port(options),
      socket: options[:socket],
      certfile: options[:tls][:certfile],
      keyfile: options[:tls][:keyfile],
      http2: Keyword.get(options, :http2, true),
      limits: Map.new(limits)
    }
    |> Map.merge(rules(answers))
  end

  defp rules(%Web{} = web) do
    %{paths: paths, headers: headers} = CORS.shared()

    %{
      proxies: Proxies.texts(web.trusted_proxies),
      origins: web.origins,
      shared_paths: paths,
      shared_headers: headers
    }
  end

  defp rules(_handler), do: %{proxies: [], origins: [], shared_paths: [], shared_headers: []}

  defp ip(options), do: options[:ip] || {127, 0, 0, 1}
  defp port(options), do: options[:port] || 4004

  defp address(options), do: options[:socket] || "#{host(ip(options))}:#{port(options)}"

  defp url(options, port) do
    case {options[:socket], options[:tls]} do
      {nil, nil} -> "http://#{reachable(ip(options))}:#{port}"
      {nil, _tls} -> "https://#{reachable(ip(options))}:#{port}"
      {path, _tls} -> "unix:#{path}"
    end
  end

  # All addresses of this machine.
  defp reachable({0, 0, 0, 0}), do: "localhost"
  defp reachable({0, 0, 0, 0, 0, 0, 0, 0}), do: "localhost"
  defp reachable(ip), do: host(ip)

  defp host(ip) when tuple_size(ip) == 8, do: "[#{:inet.ntoa(ip)}]"
  defp host(ip), do: to_string(:inet.ntoa(ip))

  @impl true
  def handle_call(:info, _from, state) do
    {connections, requests, waiting, streams, _bytes} = Library.web_info(state.native)
    figures = %{connections: connections, requests: requests, waiting: waiting, streams: streams}
    {:reply, Map.merge(Map.take(state, [:port, :url]), figures), state}
  end

  @impl true
  def handle_info({:skillbook_request, exchange}, state) do
    arguments = [exchange, state.handler]
    # No time to end: a client that has gone needs nothing more.
    options = [restart: :temporary, shutdown: :brutal_kill]
    start = fn -> Task.Supervisor.start_child(state.tasks, Exchange, :run, arguments, options) end
    with nil <- supervised(start), do: Exchange.unavailable(exchange)
    {:noreply, state}
  end

  def handle_info({:skillbook_gone, pid}, state) do
    supervised(fn -> Task.Supervisor.terminate_child(state.tasks, pid) end)
    {:noreply, state}
  end

  def handle_info({:skillbook_certificate, :ok}, state) do
    Logger.info("#{state.url} has a new certificate")
    {:noreply, state}
  end

  def handle_info({:skillbook_certificate, reason}, state) do
    Logger.error("#{state.url} keeps its certificate: #{reason}")
    {:noreply, state}
  end

  def handle_info({:EXIT, tasks, reason}, %{tasks: tasks} = state), do: {:stop, reason, state}
  def handle_info({:EXIT, _other, _reason}, state), do: {:noreply, state}
  def handle_info(_other, state), do: {:noreply, state}

  # The supervisor may have ended, which ends the server; `nil` then.
  defp supervised(call) do
    call.()
  catch
    :exit, _reason -> nil
  end

  @impl true
  def terminate(_reason, state) do
    reference = make_ref()
    Library.web_stop(state.native, reference, state.drain)
    drain(reference, state)
  end

  # Requests that were sent before the server stopped are answered.
  defp drain(reference, state) do
    receive do
      {^reference, :ok} ->
        :ok

      message ->
        _ = handle_info(message, state)
        drain(reference, state)
    end
  end

  @impl true
  # The options of an application may be secret.
  def format_status(_reason, [_dictionary, _state]), do: [data: [{~c"State", :hidden}]]
end
