defmodule Skillbook.SQL.PostgresServerTest do
  # Each test starts, stops and restarts its own server.
  use ExUnit.Case, async: true

  import Skillbook.PostgresCase

  alias Skillbook.SQL
  alias Skillbook.SQL.{Error, Postgres}

  test "during a restart of the server calls fail, and work afterwards" do
    {folder, url} = server()
    sql = start(url: url, name: :restarted_postgres, queue_timeout: 300)
    SQL.query!(sql, "create table t (id int)")
    Postgres.listen(:restarted_postgres, "notes")

    stop_server(folder)
    uri = URI.parse(url)

    message =
      "cannot open the database 127.0.0.1:#{uri.port}/postgres: Connection refused (os error 111)"

    refused = {:error, %Error{kind: :cannot_open, message: message}}
    assert SQL.query(sql, "select 1") == refused
    assert SQL.query(sql, "insert into t values (1)") == refused
    assert SQL.transaction(sql, fn _ -> flunk("begun") end) == refused

    ^url = start_server(folder)
    assert_receive {:skillbook_notify_lost, "notes"}
    wait(fn -> match?({:ok, _}, SQL.query(sql, "insert into t values (2)")) end)
    assert SQL.query!(sql, "select id from t").rows == [[2]]
    SQL.query!(sql, "select pg_notify('notes', 'back')")
    assert_receive {:skillbook_notify, "notes", "back"}
  end

  test "if the server dies, a write is lost and a transaction is closed" do
    {folder, url} = server(["fsync=on", "synchronous_commit=on"])
    sql = start(url: url, name: :dying_postgres)
    SQL.query!(sql, "create table t (id int)")
    test = self()

    write =
      Task.async(fn ->
        send(test, :writes)
        SQL.query(sql, "insert into t select 1 from pg_sleep(60)")
      end)

    assert_receive :writes

    wait(fn ->
      SQL.query!(sql, "select 1 from pg_stat_activity where wait_event = 'PgSleep'").rows == [[1]]
    end)

    stop_server(folder, "immediate")
    assert {:error, %Error{kind: kind} = error} = Task.await(write, :infinity)
    # The server may announce its end, or just end.
    assert kind in [:closed, :lost]

    assert Exception.message(error) =~
             ~r/^(terminating connection|the connection was lost after the statement was sent)/

    ^url = start_server(folder)
    wait(fn -> match?({:ok, _}, SQL.query(sql, "select 1")) end)

    assert {:error, %Error{kind: :closed}} =
             SQL.transaction(sql, fn sql ->
               SQL.query!(sql, "insert into t values (2)")
               stop_server(folder, "immediate")
               ^url = start_server(folder)
               assert {:error, %Error{kind: :closed}} = SQL.query(sql, "select 1")
               {:ok, :unaware}
             end)

    wait(fn -> match?({:ok, _}, SQL.query(sql, "select 1")) end)
    assert SQL.query!(sql, "select id from t").rows == []
  end

  test "a server that became a standby refuses writes, and is left for the one after it" do
    {folder, url} = server(["wal_level=replica"])
    primary = url |> URI.parse() |> Map.put(:path, "/postgres") |> URI.to_string()
    sql = start(url: primary, name: :standby_postgres, queue_timeout: 300, pool_size: 1)
    SQL.query!(sql, "create table t (id int)")
    stop_server(folder)
    signal = Path.join([folder, "data", "standby.signal"])
    File.write!(signal, "")
    %{uid: uid} = File.stat!(Path.join(folder, "data"))
    File.chown!(signal, uid)
    ^url = start_server(folder)
    wait(fn -> match?({:ok, _}, SQL.query(sql, "select 1")) end)
    backend = fn -> SQL.query!(sql, "select pg_backend_pid()").rows end

    message = "cannot set transaction read-write mode during recovery"

    for write <- [
          fn -> SQL.query(sql, "insert into t values (1)") end,
          fn -> SQL.execute_batch(sql, "insert into t values (1)") end,
          fn -> SQL.transaction(sql, fn _ -> flunk("begun") end) end
        ] do
      before = backend.()
      assert {:error, %Error{kind: :readonly} = error} = write.()
      assert Exception.message(error) =~ message
      # The address may be another server's by now.
      assert backend.() != before
    end

    assert SQL.query!(sql, "select count(*) from t").rows == [[0]]
    psql!(url, "select pg_promote()")
    assert {:ok, _} = SQL.query(sql, "insert into t values (2)")
    assert SQL.query!(sql, "select id from t").rows == [[2]]
  end

  test "a transaction whose client is silent gives the writers' lock back" do
    proxy = start_supervised!({Skillbook.DatabaseProxy, database()})
    url = Skillbook.DatabaseProxy.url(proxy)
    limits = [timeout: 300, queue_timeout: 100]
    silent = start([url: url, name: :silent_postgres] ++ limits)
    %{path: path} = URI.parse(url)
    direct = %{URI.parse(Skillbook.PostgresCase.url()) | path: path} |> URI.to_string()
    other = start([url: direct, name: :other_postgres] ++ limits)
    SQL.query!(other, "create table t (id int)")
    test = self()

    spawn_link(fn ->
      done =
        SQL.transaction(silent, fn sql ->
          SQL.query!(sql, "insert into t values (1)")
          Skillbook.DatabaseProxy.fault(proxy, :hang)
          send(test, :silent)
          SQL.query(sql, "insert into t values (2)")
        end)

      send(test, {:done, done})
    end)

    assert_receive :silent
    assert {:error, %Error{kind: :busy}} = SQL.query(other, "insert into t values (3)")
    wait(fn -> match?({:ok, _}, SQL.query(other, "insert into t values (4)")) end)
    assert_receive {:done, {:error, %Error{kind: kind}}} when kind in [:closed, :lost]
    assert SQL.query!(other, "select id from t").rows == [[4]]
  end

  test "too many connections are an error only if none becomes free" do
    url = database()
    name = String.replace_leading(URI.parse(url).path, "/", "")
    psql!(url, "create role #{name} login password 'secret' connection limit 2")
    on_exit(fn -> psql!(Skillbook.PostgresCase.url(), "drop role #{name}") end)
    user = %{URI.parse(url) | userinfo: "#{name}:secret"} |> URI.to_string()
    sql = start(url: user, name: :full_postgres, pool_size: 8)
    pool = sql.pool

    answers =
      1..40
      |> Task.async_stream(fn n -> SQL.query(sql, "select $1::int", [n]) end, max_concurrency: 40)
      |> Enum.map(fn {:ok, {:ok, %{rows: [[n]]}}} -> n end)

    assert answers == Enum.to_list(1..40)
    # The end of a pause comes after another attempt has succeeded.
    send(pool, :reconnect)
    assert {:ok, _} = SQL.query(sql, "select 1")
    assert Postgres.handle(:full_postgres).pool == pool
  end

  test "TLS modes behave as in libpq" do
    folder = Path.join(System.tmp_dir!(), "skillbook_tls_#{System.unique_integer([:positive])}")
    File.mkdir_p!(folder)
    on_exit(fn -> File.rm_rf!(folder) end)
    authority = certificates(folder, "localhost")
    stranger = certificates(Path.join(folder, "stranger"), "localhost")
    key = Path.join(folder, "server.key")
    certificate = Path.join(folder, "server.pem")

    {_folder, plain} = server()
    {tls_folder, _url} = server()
    stop_server(tls_folder)
    # The server only reads a key file of its user.
    for file <- [key, certificate], do: install(file, tls_folder)
    data = Path.join(tls_folder, "data")

    settings = [
      "ssl=on",
      "ssl_cert_file=#{Path.join(data, "server.pem")}",
      "ssl_key_file=#{Path.join(data, "server.key")}"
    ]

    tls = start_server(tls_folder, settings)
    used = "select case when ssl then 1 else 0 end from pg_stat_ssl where pid = pg_backend_pid()"
    by_name = fn url -> String.replace(url, "127.0.0.1", "localhost") end
    # Also if a foreign authority has the same name.
    unknown = "TLS: the authority of its certificate is not trusted"
    not_found = "server does not support TLS"

    for {url, options, expected} <- [
          {plain, [ssl: "disable"], 0},
          {plain, [ssl: "prefer"], 0},
          {plain, [], 0},
          {plain, [ssl: "require"], not_found},
          {plain, [ssl: true, ssl_ca_file: authority], not_found},
          {tls, [ssl: "disable"], 0},
          {tls, [], 1},
          {tls, [ssl: "require"], 1},
          {tls, [ssl: "require", ssl_ca_file: authority], 1},
          {tls, [ssl: "require", ssl_ca_file: stranger], unknown},
          {tls, [ssl: "verify-ca"], unknown},
          {tls, [ssl: "verify-ca", ssl_ca_file: authority], 1},
          {tls, [ssl: "verify-ca", ssl_ca_file: stranger], unknown},
          {by_name.(tls), [ssl: true, ssl_ca_file: authority], 1},
          {by_name.(tls), [ssl: true], unknown},
          {tls <> "?sslmode=verify-full&sslrootcert=" <> authority, [],
           "TLS: its certificate is for another host"}
        ] do
      id = :"tls_#{System.unique_integer([:positive])}"

      case Postgres.start_link([url: url, name: id] ++ options) do
        {:ok, pid} ->
          assert {options, SQL.query!(Postgres.handle(id), used).rows} == {options, [[expected]]}
          Supervisor.stop(pid)

        {:error, %Error{kind: :cannot_open} = error} ->
          assert is_binary(expected), "#{inspect(options)}: #{Exception.message(error)}"
          assert Exception.message(error) =~ expected
      end
    end

    for {file, reason} <- [
          {Path.join(folder, "none.pem"), "No such file"},
          {key, "it contains none"}
        ] do
      assert {:error, %Error{kind: :cannot_open} = error} =
               Postgres.start_link(url: tls, name: :never, ssl: true, ssl_ca_file: file)

      assert Exception.message(error) =~ ": expected certificates in PEM in the file #{file}: "
      assert Exception.message(error) =~ reason
    end
  end

  # An authority's certificate, and beside it a server's with its key.
  defp certificates(folder, host) do
    File.mkdir_p!(folder)
    name = {:Extension, {2, 5, 29, 17}, false, [dNSName: to_charlist(host)]}
    # rustls refuses OTP's keys for other elliptic curves, and for RSA from OTP 28.
    strong = [key: {:namedCurve, :ed25519}]

    %{server_config: server, client_config: client} =
      :public_key.pkix_test_data(%{
        server_chain: %{root: strong, intermediates: [], peer: [extensions: [name]] ++ strong},
        client_chain: %{root: strong, intermediates: [], peer: strong}
      })

    {kind, key} = server[:key]
    # OpenSSL reads such a key only in PKCS #8.
    key = :public_key.pem_entry_encode(:PrivateKeyInfo, :public_key.der_decode(kind, key))
    pem = fn entries -> :public_key.pem_encode(entries) end

    File.write!(
      Path.join(folder, "server.pem"),
      pem.([{:Certificate, server[:cert], :not_encrypted}])
    )

    File.write!(Path.join(folder, "server.key"), pem.([key]))
    # A client trusts the authority of its server.
    authority = Path.join(folder, "authority.pem")

    File.write!(
      authority,
      pem.(for(der <- client[:cacerts], do: {:Certificate, der, :not_encrypted}))
    )

    authority
  end

  defp install(file, folder) do
    target = Path.join([folder, "data", Path.basename(file)])
    File.cp!(file, target)
    %{uid: uid} = File.stat!(Path.join(folder, "data"))
    File.chmod!(target, 0o600)
    if File.stat!(target).uid != uid, do: File.chown!(target, uid)
  end

  defp wait(fun), do: fun.() || (Process.sleep(20) && wait(fun))
end
