defmodule Skillbook.Web.NginxTest do
  # The server behind nginx, with the configuration of docs/web.md, with buffering and without, by
  # a port and by a unix socket. curl is the client.
  use Skillbook.SkillsCase, async: true

  import Skillbook.Eventually

  alias Skillbook.Test.Certificates
  alias Skillbook.Web.{Response, Server, Tokens}

  @moduletag :capture_log
  @moduletag timeout: 300_000

  @url "https://skills.example.com"
  @limit 32 * 1024 * 1024
  @unbuffered "proxy_buffering off; proxy_request_buffering off;"

  # The path of a unix socket has to be short.
  setup do
    number = System.unique_integer([:positive])
    folder = Path.join(System.tmp_dir!(), "skillbook-nginx-#{System.pid()}-#{number}")
    File.mkdir_p!(folder)
    on_exit(fn -> File.rm_rf!(folder) end)
    %{folder: folder}
  end

  # nginx in front of a server, until the test ends. Returns what curl needs.
  defp nginx(folder, upstream, location \\ "") do
    program =
      System.get_env("SKILLBOOK_NGINX") ||
        raise "SKILLBOOK_NGINX is not set. To install nginx and set it: " <>
                "bin/nginx-for-tests run mix test"

    [_all, config] =
      Regex.run(~r/^```nginx\n(.*?)^```$/ms, Skillbook.Test.Checkout.read!("docs/web.md"))

    authority = certificate(folder)
    {user, 0} = System.cmd("id", ["-un"])

    config =
      for {old, new} <- [
            {"127.0.0.1:4004", upstream},
            {"/etc/nginx/skills.example.com", Path.join(folder, "server")},
            {"location / {", "location / { #{location}"}
          ],
          reduce: config do
        config ->
          assert config =~ old
          String.replace(config, old, new)
      end

    # As root, nginx has other users for its workers.
    user = if String.trim(user) == "root", do: "user root;", else: ""

    places =
      for place <- ~w(client_body proxy fastcgi uwsgi scgi),
          do: "#{place}_temp_path #{folder}/#{place};\n"

    write = fn port ->
      text = """
      #{user}
      daemon off;
      worker_processes 1;
      pid #{folder}/nginx.pid;
      error_log #{folder}/error.log;
      events { worker_connections 512; }
      http {
      access_log off;
      #{places}
      #{String.replace(config, "listen 443", "listen 127.0.0.1:#{port}")}
      }
      """

      File.write!(Path.join(folder, "nginx.conf"), text)
    end

    port = start(program, folder, write, 10)
    %{port: port, authority: authority}
  end

  # Another program may take a free port before nginx does.
  defp start(program, folder, write, tries) do
    {:ok, socket} = :gen_tcp.listen(0, ip: {127, 0, 0, 1})
    {:ok, number} = :inet.port(socket)
    :gen_tcp.close(socket)
    write.(number)

    # It ends with this process, which closes its input.
    command = ~S("$@" & read -r _; kill $!; wait $!)
    arguments = ["-c", Path.join(folder, "nginx.conf"), "-p", folder]
    arguments = ["-c", command, "sh", program | arguments]
    options = [:binary, :exit_status, :stderr_to_stdout, args: arguments]
    port = Port.open({:spawn_executable, "/bin/sh"}, options)

    case await(port, Path.join(folder, "nginx.pid")) do
      :ok ->
        number

      # It says on its standard error why it does not start.
      text ->
        assert text =~ "Address already in use" and tries > 1, text
        Port.close(port)
        start(program, folder, write, tries - 1)
    end
  end

  defp await(port, pid) do
    receive do
      # From 1.25.1 on, which has a directive `http2`.
      {^port, {:data, text}} ->
        if text =~ ~r/"listen ... http2" directive is deprecated/ and not (text =~ "[emerg]"),
          do: await(port, pid),
          else: text
    after
      20 ->
        if match?({:ok, <<_, _::binary>>}, File.read(pid)), do: :ok, else: await(port, pid)
    end
  end

  defp certificate(folder) do
    {options, authority} = Certificates.make(["skills.example.com"], key: {:rsa, 2048, 65_537})
    {kind, key} = options[:key]

    chain =
      for der <- [options[:cert] | options[:cacerts]], do: {:Certificate, der, :not_encrypted}

    File.write!(Path.join(folder, "server.pem"), :public_key.pem_encode(chain))
    entry = {kind, key, :not_encrypted}
    File.write!(Path.join(folder, "server.key"), :public_key.pem_encode([entry]))
    authority
  end

  defp arguments(nginx, path, more) do
    to = "skills.example.com:443:127.0.0.1:#{nginx.port}"
    # An address of its own, to tell the client from nginx.
    ["-sS", "--cacert", nginx.authority, "--connect-to", to, "--interface", "127.0.0.9"] ++
      more ++ [@url <> path]
  end

  # The status, the version of HTTP, the headers and the body.
  defp curl(nginx, path, more \\ []) do
    format = "\n%{http_version} %{http_code}"
    arguments = arguments(nginx, path, ["-D", "-", "-w", format | more])
    {output, code} = System.cmd("curl", arguments, stderr_to_stdout: true)
    assert code == 0, output
    [_all, output, version, status] = Regex.run(~r/\A(.*)\n(\S+) (\d+)\z/s, output)
    [head, body] = output |> String.split("\r\n\r\n") |> Enum.take(-2)
    %{status: String.to_integer(status), version: version, head: head, body: body}
  end

  # A stream's lines come as messages of the port.
  defp follow(nginx, path, more) do
    options = [:binary, :exit_status, line: 10_000, args: arguments(nginx, path, ["-N" | more])]
    Port.open({:spawn_executable, System.find_executable("curl")}, options)
  end

  defp server(folder, kind, options) do
    server = start_supervised!({Server, place(folder, kind) ++ options}, id: :server)
    {server, upstream(Server.info(server).url)}
  end

  defp place(folder, "unix"), do: [socket: Path.join(folder, "web.sock")]
  defp place(_folder, "port"), do: [port: 0]

  defp upstream("http://" <> authority), do: authority
  defp upstream(unix), do: unix

  for kind <- ["port", "unix"], {name, location} <- [{"on", ""}, {"off", @unbuffered}] do
    @tag kind: kind, location: location
    test "a book by a #{kind}, with buffering #{name}", %{folder: folder} = context do
      skills = Path.join(folder, "skills")
      page = &"---\nname: tea\ndescription: Makes tea\n---\n#{&1}\n"
      write(skills, %{"tea/SKILL.md" => page.("One")})

      name = book(sources: [skills], store: ":memory:", profiles: [[id: "default"]], watch: false)

      :telemetry.listen(name)
      options = [book: name, url: @url, trusted_proxies: ["127.0.0.1", :unix]]
      {_server, upstream} = server(folder, context.kind, options)
      nginx = nginx(folder, upstream, context.location)
      {:ok, token} = Tokens.create(name, scopes: [:page, :api, :mcp])
      bearer = ["-H", "authorization: Bearer " <> token.secret.()]

      # The client, whatever it says itself, and https.
      spoofed = ["-H", "x-forwarded-for: 9.9.9.9", "-H", "forwarded: for=8.8.8.8;host=evil"]
      listed = curl(nginx, "/api/skills", bearer ++ spoofed ++ ["--http2"])
      assert {listed.status, listed.version} == {200, "2"}
      assert listed.body =~ "tea"
      assert listed.head =~ "strict-transport-security: max-age=31536000"
      assert_receive {[:skillbook, :web, :request, :stop], _, %{client: client}}
      assert client == "127.0.0.9"
      assert curl(nginx, "/api/skills", bearer ++ ["--http1.1"]).version == "1.1"

      assert %{status: 421} = curl(nginx, "/api/skills", ["-H", "host: evil.example"])

      # Each event goes out at once.
      stream = follow(nginx, "/events", bearer)
      assert_receive {^stream, {:data, {:eol, "event: ready"}}}
      write(skills, %{"tea/SKILL.md" => page.("Two")})
      :ok = Skillbook.reload(name)
      assert_receive {^stream, {:data, {:eol, "event: skills"}}}

      # Wrong tokens count for the client, not for nginx. The count begins anew each minute.
      number = rem(System.unique_integer([:positive]), 250)

      wrong = fn last ->
        address = "127.9.#{number}.#{last}"
        wrong = ["-H", "authorization: Bearer sb_wrong", "--interface", address]
        curl(nginx, "/api/skills", wrong).status
      end

      assert Enum.any?(1..60, fn _ -> wrong.(1) == 429 end)
      # Two clients may share a place where they are counted.
      assert Enum.any?(2..5, fn last -> wrong.(last) == 401 end)
      Port.close(stream)
    end
  end

  # Tells the test about requests that wait.
  defp answers(test) do
    fn request ->
      case request.path do
        ["length"] ->
          Response.text(200, to_string(byte_size(request.body)))

        ["wait"] ->
          send(test, {:waiting, self()})
          receive do: (:answer -> Response.text(200, "answered"))

        ["large"] ->
          Response.text(200, :binary.copy("x", 8 * 1024 * 1024))
      end
    end
  end

  for kind <- ["port", "unix"], {name, location} <- [{"on", ""}, {"off", @unbuffered}] do
    @tag kind: kind, location: location
    test "bodies by a #{kind}, with buffering #{name}", %{folder: folder} = context do
      {server, upstream} = server(folder, context.kind, handler: answers(self()))
      nginx = nginx(folder, upstream, context.location)
      file = Path.join(folder, "body")

      for {size, status, body} <- [{@limit, 200, "#{@limit}"}, {@limit + 1, 413, nil}],
          version <- ["--http1.1", "--http2"],
          # With a length, and in chunks.
          sent <- [
            ["--data-binary", "@" <> file],
            ["-X", "POST", "-T", file, "-H", "transfer-encoding: chunked"]
          ],
          hd(sent) == "--data-binary" or version == "--http1.1" do
        File.write!(file, :binary.copy("x", size))
        got = curl(nginx, "/length", [version, "-H", "expect:" | sent])
        assert {size, version, sent, got.status} == {size, version, sent, status}
        assert body == nil or got.body == body
      end

      assert byte_size(curl(nginx, "/large").body) == 8 * 1024 * 1024

      # One connection for requests that follow each other.
      for _ <- 1..20, do: assert(curl(nginx, "/length").status == 200)
      assert Server.info(server).connections <= 2
      assert Server.info(server).connections >= 1
    end
  end

  for kind <- ["port", "unix"] do
    @tag kind: kind
    test "a server by a #{kind} that stops answers what has begun",
         %{folder: folder} = context do
      options = [handler: answers(self()), drain: 60_000]
      {:ok, server} = Server.start_link(place(folder, context.kind) ++ options)
      %{url: url} = Server.info(server)
      nginx = nginx(folder, upstream(url))

      # Connections that nginx keeps.
      for _ <- 1..3, do: assert(curl(nginx, "/length").status == 200)
      asked = for _ <- 1..20, do: Task.async(fn -> curl(nginx, "/wait") end)

      waiting =
        for _ <- asked do
          assert_receive {:waiting, pid}, 60_000
          pid
        end

      stopping = Task.async(fn -> GenServer.stop(server, :normal, :infinity) end)
      assert eventually(fn -> not listens?(url) end)
      assert curl(nginx, "/length").status == 502
      for pid <- waiting, do: send(pid, :answer)

      for task <- asked do
        answer = Task.await(task, :infinity)
        assert {answer.status, answer.body} == {200, "answered"}
      end

      assert Task.await(stopping, :infinity) == :ok
    end
  end

  defp listens?("unix:" <> path), do: File.exists?(path)

  defp listens?(url) do
    port = URI.parse(url).port

    with {:ok, socket} <- :gen_tcp.connect({127, 0, 0, 1}, port, []),
         do: :gen_tcp.close(socket) == :ok,
         else: ({:error, _refused} -> false)
  end
end
