# Measures the HTTP server: first byte and rate of answers, delivery of events to 1,000 clients
# while skills change, and the memory of idle connections. The peer is nginx in the same run,
# which serves files of the same size. Needs nginx and wrk (Debian: nginx-light, wrk):
#
#     bin/bench web [ENTRIES, default 10000] [STREAMS, default 1000] [PART]
#
# With PART, a regular expression, only answers whose label it matches are measured.
#
# The clients of streams and idle connections are one Python process, whose time for reading is in
# the times of delivery.

Code.require_file("measure.exs", __DIR__)

defmodule Bench.Web do
  @moduledoc false

  import Bench.Measure, only: [resident: 0]

  alias Skillbook.Web.{Response, Server}

  @clients Path.expand("../packages/web/test/support/web_clients.py", __DIR__)
  @idle 5_000
  # Requests for the first byte, and their longest time in milliseconds.
  @firsts 500
  @longest 10_000
  @changes 10
  # Changes before the first requests that follow one, for each answer.
  @fresh 5

  def run(entries, streams, part) do
    Logger.configure(level: :error)
    [nginx, wrk, python] = Enum.map(["nginx", "wrk", "python3"], &program/1)
    root = Path.join(System.tmp_dir!(), "skillbook_bench_web_#{System.pid()}")
    pages = Path.join(root, "pages")

    try do
      generate(pages, entries)

      {:ok, _book} = Skillbook.start_link(name: __MODULE__, sources: [pages], watch: false)

      {:ok, server} =
        Server.start_link(
          book: __MODULE__,
          authenticate: :none,
          port: 0,
          max_connections_per_address: 10_000,
          max_streams_per_caller: max(streams, 1)
        )

      {:ok, plain} =
        Server.start_link(
          handler: fn _request -> Response.text(200, :binary.copy("x", 4_096)) end,
          port: 0,
          max_connections_per_address: 10_000
        )

      paths = [
        {"4 KiB by a function", plain, "/"},
        {"list of the API", server, "/api/skills"},
        {"search of the API", server, "/api/skills?q=note+number"},
        {"page of all skills", server, "/skills"},
        {"page of a search", server, "/skills?q=note+number"},
        {"page of one skill", server, "/skills/notes.n1"},
        {"MCP tools/list", server, {:mcp, "tools/list"}},
        {"MCP skills/list", server, {:mcp, "skills/list"}},
        {"page to try a command", server, "/try"},
        {"page of runs", server, "/runs"},
        {"page of diagnostics", server, "/diagnostics"},
        {"page of the status", server, "/status"}
      ]

      paths =
        Enum.filter(paths, fn {label, _server, _request} -> label =~ Regex.compile!(part) end)

      files = Path.join(root, "files")
      File.mkdir_p!(files)

      paths =
        for {{label, server, request}, n} <- Enum.with_index(paths) do
          body = fetch(Server.info(server).url, request)
          File.write!(Path.join(files, "#{n}.html"), body)
          {label, Server.info(server).url, request, "/#{n}.html", byte_size(body)}
        end

      certificate = certificate(root)

      {:ok, encrypted} =
        Server.start_link(
          handler: fn _request -> Response.text(200, "x") end,
          port: 0,
          tls: certificate,
          max_connections_per_address: 10_000
        )

      with_nginx(nginx, root, certificate, fn url, encrypted_url, workers ->
        IO.puts("#{System.schedulers_online()} schedulers, #{entries} entries\n")

        if part == "" do
          # First, while the memory of this process is quiet.
          idle(python, "fresh", Server.info(plain).url, url, workers)
          idle(python, "used", Server.info(plain).url, url, workers)
          ours = Server.info(encrypted).url
          http2 = [{'TLS', '1'}, {'HTTP2', '1'}]
          idle(python, "fresh", ours, encrypted_url, workers, "TLS", [{'TLS', '1'}])
          idle(python, "fresh", ours, encrypted_url, workers, "TLS and HTTP/2", http2)
          IO.puts("")
        end

        head()
        for row <- paths, do: answers(row, url, wrk, pages)
        IO.puts("")
        if part == "", do: deliver(python, Server.info(server).url, streams, pages)
      end)
    after
      File.rm_rf!(root)
    end
  end

  defp program(name), do: System.find_executable(name) || raise("#{name} is not installed")

  defp generate(folder, entries) do
    File.mkdir_p!(Path.join(folder, "notes"))
    for n <- 1..entries, do: write(folder, n, "The text of note number #{n}.")
  end

  defp write(folder, n, text) do
    File.write!(Path.join(folder, "notes/n#{n}.md"), """
    ---
    name: notes.n#{n}
    description: Shows note number #{n} of the bench
    ---
    #{text}
    """)
  end

  # A request is the path of a GET, or a method of MCP.
  defp fetch(url, request) do
    {method, path, headers, body} = parts(request)
    request = [method: method, url: url <> path, headers: headers, body: body]
    {:ok, %{status: 200, body: body}} = Skillbook.HTTP.request(request)
    body
  end

  defp parts({:mcp, method}) do
    meta = %{
      "io.modelcontextprotocol/protocolVersion" => "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities" => %{}
    }

    params = %{"_meta" => meta}
    message = %{"jsonrpc" => "2.0", "id" => 1, "method" => method, "params" => params}

    headers = [
      {"content-type", "application/json"},
      {"accept", "application/json, text/event-stream"},
      {"mcp-protocol-version", "2026-07-28"},
      {"mcp-method", method}
    ]

    {:post, "/mcp", headers, Skillbook.Support.JSON.encode(message)}
  end

  defp parts(path), do: {:get, path, [], ""}

  defp certificate(root) do
    files = [certfile: Path.join(root, "cert.pem"), keyfile: Path.join(root, "key.pem")]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    out = ["-subj", "/CN=localhost", "-out", files[:certfile], "-keyout", files[:keyfile]]
    {_, 0} = System.cmd("openssl", ["req", "-x509"] ++ curve ++ out, stderr_to_stdout: true)
    files
  end

  # Open at the same time, so that they differ.
  defp free_ports(count) do
    sockets = for _ <- 1..count, do: elem({:ok, _} = :gen_tcp.listen(0, []), 1)
    ports = for socket <- sockets, do: elem({:ok, _} = :inet.port(socket), 1)
    Enum.each(sockets, &:gen_tcp.close/1)
    ports
  end

  defp with_nginx(nginx, root, certificate, fun) do
    [port, encrypted] = free_ports(2)
    conf = Path.join(root, "nginx.conf")

    File.write!(conf, """
    worker_processes 2;
    pid #{root}/nginx.pid;
    error_log #{root}/error.log;
    user root;
    events { worker_connections 10000; }
    http {
      access_log off;
      sendfile on;
      tcp_nopush on;
      keepalive_requests 100000000;
      keepalive_timeout 600s;
      default_type text/html;
      server { listen 127.0.0.1:#{port}; root #{root}/files; }
      server {
        listen 127.0.0.1:#{encrypted} ssl http2;
        root #{root}/files;
        ssl_certificate #{certificate[:certfile]};
        ssl_certificate_key #{certificate[:keyfile]};
      }
    }
    """)

    {_, 0} = System.cmd(nginx, ["-c", conf, "-p", root], stderr_to_stdout: true)

    try do
      master = Path.join(root, "nginx.pid") |> wait_for_file() |> String.trim()
      [plain, encrypted] = ["http://127.0.0.1:#{port}", "https://127.0.0.1:#{encrypted}"]
      fun.(plain, encrypted, workers(master))
    after
      System.cmd(nginx, ["-c", conf, "-p", root, "-s", "stop"], stderr_to_stdout: true)
    end
  end

  # On a busy machine they begin after the file is there.
  defp workers(master) do
    case System.cmd("pgrep", ["-P", master]) do
      {workers, 0} -> String.split(workers)
      _none_yet -> Process.sleep(20) && workers(master)
    end
  end

  defp wait_for_file(path) do
    case File.read(path) do
      {:ok, text} when text != "" -> text
      _other -> Process.sleep(20) && wait_for_file(path)
    end
  end

  # Answers

  @columns ["answer", "KB", "after a change", "first byte, median", "p99"] ++
             ["a second, 50 clients", "p99"]

  defp head do
    nginx = ["nginx: median", "p99", "a second", "p99", "ratio of medians", "of rates"]
    IO.puts(row(@columns ++ nginx))
  end

  defp row([first | cells]) do
    String.pad_trailing(first, 24) <> Enum.map_join(cells, &String.pad_leading(&1, 22))
  end

  defp answers({label, url, request, file, size}, nginx, wrk, pages) do
    fresh = after_change(url, request, pages)
    {median, _p99, rate, _loaded} = ours = measure(url, request, wrk)
    {their_median, _p99, their_rate, _loaded} = theirs = measure(nginx, file, wrk)
    ratios = [ratio(median / their_median), ratio(number(their_rate) / number(rate))]
    cells = [label, "#{Float.round(size / 1000, 1)}", micro(fresh)]
    IO.puts(row(cells ++ cells(ours) ++ cells(theirs) ++ ratios))
  end

  defp measure(url, request, wrk) do
    {median, p99} = first_byte(url, request)
    {rate, loaded} = load(wrk, url, request)
    {median, p99, rate, loaded}
  end

  defp cells({median, p99, rate, loaded}), do: [micro(median), micro(p99), rate, loaded]
  defp ratio(number), do: "#{Float.round(number, 1)}"

  defp number(rate) do
    {number, _errors} = Float.parse(rate)
    max(number, 0.01)
  end

  # The median time of the first request after a change of one page.
  defp after_change(url, request, pages) do
    times =
      for n <- 1..@fresh do
        write(pages, n, "Changed at #{System.os_time(:nanosecond)}.")
        Skillbook.reload(__MODULE__)
        {:ok, socket, text} = open(url, request)
        time = ask(socket, text)
        :gen_tcp.close(socket)
        time
      end

    times |> Enum.sort() |> percentile(50)
  end

  defp micro(microseconds), do: "#{microseconds} us"

  # A connection, and the request as it is sent.
  defp open(url, request) do
    %URI{port: port, authority: authority} = URI.parse(url)
    {:ok, socket} = :gen_tcp.connect('127.0.0.1', port, [:binary, active: false, nodelay: true])
    {method, path, headers, body} = parts(request)
    method = method |> Atom.to_string() |> String.upcase()
    headers = [{"host", authority}, {"content-length", "#{byte_size(body)}"} | headers]
    lines = for {name, value} <- headers, do: [name, ": ", value, "\r\n"]
    {:ok, socket, [method, " ", path, " HTTP/1.1\r\n", lines, "\r\n", body]}
  end

  defp first_byte(url, request) do
    {:ok, socket, request} = open(url, request)
    for _ <- 1..20, do: ask(socket, request)
    times = socket |> asked(request, now() + @longest, @firsts) |> Enum.sort()
    :gen_tcp.close(socket)
    {percentile(times, 50), percentile(times, 99)}
  end

  defp asked(socket, request, deadline, left) do
    if left > 0 and now() < deadline,
      do: [ask(socket, request) | asked(socket, request, deadline, left - 1)],
      else: []
  end

  defp now, do: System.monotonic_time(:millisecond)

  defp ask(socket, request) do
    began = System.monotonic_time()
    :ok = :gen_tcp.send(socket, request)
    {:ok, first} = :gen_tcp.recv(socket, 0, 30_000)
    time = System.monotonic_time() - began
    rest(socket, first)
    System.convert_time_unit(time, :native, :microsecond)
  end

  defp rest(socket, got) do
    with [head, body] <- String.split(got, "\r\n\r\n", parts: 2),
         [_, length] = Regex.run(~r/content-length: (\d+)/i, head),
         left when left > 0 <- String.to_integer(length) - byte_size(body) do
      {:ok, _body} = :gen_tcp.recv(socket, left, 30_000)
    else
      0 ->
        :ok

      [_part] ->
        {:ok, more} = :gen_tcp.recv(socket, 0, 30_000)
        rest(socket, got <> more)
    end
  end

  defp percentile(sorted, percent),
    do: Enum.at(sorted, min(div(length(sorted) * percent, 100), length(sorted) - 1))

  defp load(wrk, url, request) do
    {method, path, headers, body} = parts(request)
    script = Path.join(System.tmp_dir!(), "skillbook_bench_web_#{System.pid()}.lua")

    lines =
      for {name, value} <- headers, do: "wrk.headers[#{inspect(name)}] = #{inspect(value)}\n"

    method = method |> Atom.to_string() |> String.upcase()
    body = if body == "", do: "", else: "wrk.body = #{inspect(body)}\n"
    File.write!(script, ["wrk.method = \"#{method}\"\n", body, lines])

    {output, 0} = System.cmd(wrk, ["-t1", "-c50", "-d5s", "--latency", "-s", script, url <> path])

    File.rm!(script)
    [_, rate] = Regex.run(~r/Requests\/sec:\s+([\d.]+)/, output)
    [_, p99] = Regex.run(~r/99%\s+(\S+)/, output)
    bad = if output =~ "Non-2xx", do: " (errors)", else: ""
    {rate <> bad, p99}
  end

  # Memory

  defp idle(python, mode, ours, theirs, workers, label \\ nil, env \\ []) do
    label = label || if mode == "fresh", do: "no request yet", else: "one request each"
    path = fn file -> if mode == "fresh", do: [], else: [file] end
    own = added(python, ours, [mode | path.("/")], env, &resident/0)
    nginx = added(python, theirs, [mode | path.("/0.html")], env, fn -> resident(workers) end)

    IO.puts(
      "memory of #{@idle} idle connections, #{label}: #{own} bytes each; nginx: #{nginx} bytes"
    )
  end

  defp added(python, url, arguments, env, resident) do
    :erlang.garbage_collect()
    before = resident.()
    [mode | path] = arguments
    clients = clients(python, url, [to_string(@idle), mode | path], env)
    # The server frees buffers of connections that are idle for half a second.
    Process.sleep(2_000)
    bytes = div(resident.() - before, @idle)
    Port.close(clients)
    Process.sleep(1_000)
    bytes
  end

  defp resident(pids) do
    Enum.sum(
      for pid <- pids do
        [_, kilobytes] = Regex.run(~r/^VmRSS:\s+(\d+) kB$/m, File.read!("/proc/#{pid}/status"))
        String.to_integer(kilobytes) * 1024
      end
    )
  end

  defp clients(python, url, arguments, env \\ []) do
    port = URI.parse(url).port |> to_string()

    clients =
      Port.open({:spawn_executable, python}, [
        :binary,
        :exit_status,
        env: env,
        line: 1_000_000,
        args: [@clients, port | arguments]
      ])

    "ready" = line(clients)
    clients
  end

  defp line(clients) do
    receive do
      {^clients, {:data, {:eol, line}}} -> line
      {^clients, {:exit_status, status}} -> raise "the clients ended with #{status}"
    end
  end

  # Delivery

  defp deliver(python, url, streams, pages) do
    before = resident()
    clients = clients(python, url, [to_string(streams), "streams", "/events"])
    Process.sleep(2_000)
    each = div(resident() - before, streams)

    # The time of all cores in this program: for the reload, and for all streams.
    {used, _} = :erlang.statistics(:runtime)

    times =
      for n <- 1..@changes do
        since = System.os_time(:nanosecond)
        write(pages, n, "Changed at #{since}.")
        Skillbook.reload(__MODULE__)
        Port.command(clients, "since #{since}\n")
        times = clients |> line() |> String.split() |> Enum.map(&String.to_integer/1)
        # Further events of the same change.
        Process.sleep(500)
        times
      end

    {used_since, _} = :erlang.statistics(:runtime)
    processor = div(used_since - used, @changes)
    all = times |> List.flatten() |> Enum.sort()
    [median, p99, most] = for percent <- [50, 99, 100], do: div(percentile(all, percent), 1000)

    IO.puts(
      "#{streams} event streams, #{@changes} changes of a page with reload: " <>
        "median #{median} ms, p99 #{p99} ms, last #{most} ms from before the write; " <>
        "#{each} bytes for each stream; #{processor} ms of processor time for each change"
    )

    Port.close(clients)
  end
end

{entries, streams, part} =
  case System.argv() do
    [] -> {10_000, 1_000, ""}
    [entries] -> {String.to_integer(entries), 1_000, ""}
    [entries, streams] -> {String.to_integer(entries), String.to_integer(streams), ""}
    [entries, streams, part] -> {String.to_integer(entries), String.to_integer(streams), part}
  end

Bench.Web.run(entries, streams, part)
