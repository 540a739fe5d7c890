defmodule Skillbook.CLI.ConnectionsTest do
  # Not async: the command line has one book.
  use Skillbook.SkillsCase, async: false

  import Skillbook.Test.CommandLine

  alias Skillbook.CLI
  alias Skillbook.Support.JSON
  alias Skillbook.Test.{Connections, MCPJudges, Services}

  @moduletag :tmp_dir

  # Standard input whose lines come from the test.
  defmodule Input do
    def start(test), do: spawn_link(fn -> loop(test, []) end)

    # A terminal writes while a reader waits.
    defp loop(test, readers) do
      receive do
        {:io_request, from, ref, {:get_line, _encoding, _prompt}} ->
          loop(test, readers ++ [{from, ref}])

        {:line, line} when readers != [] ->
          [{from, ref} | readers] = readers
          send(from, {:io_reply, ref, line})
          loop(test, readers)

        {:io_request, from, ref, {:put_chars, _encoding, text}} ->
          send(test, {:output, IO.iodata_to_binary(text)})
          send(from, {:io_reply, ref, :ok})
          loop(test, readers)

        {:io_request, from, ref, _other} ->
          send(from, {:io_reply, ref, :ok})
          loop(test, readers)
      end
    end
  end

  setup %{tmp_dir: folder} do
    accounts = Path.join(folder, "accounts/connections.json")
    System.put_env("SKILLBOOK_CONNECTIONS", accounts)
    on_exit(fn -> System.delete_env("SKILLBOOK_CONNECTIONS") end)
    db = Path.join(folder, "book.db")
    cli = ["--no-builtins", "--db", db]
    %{accounts: accounts, cli: cli, folder: Path.dirname(accounts), db: db}
  end

  defp write_accounts(context, fields) do
    File.mkdir_p!(context.folder)
    File.write!(context.accounts, JSON.encode(fields))
  end

  # The file of Google's console, and the account with the world's address.
  defp google(context, world) do
    client = %{client_id: world.client["id"], client_secret: world.client["secret"]}
    write_accounts(context, %{google: %{url: world.url}})
    path = Path.join(context.folder, "client.json")
    File.write!(path, JSON.encode(%{installed: client}))
    path
  end

  # The address that is shown on standard error while the command runs.
  defp address do
    {_, text} = StringIO.contents(Process.whereis(:standard_error))

    case Regex.run(~r{^  (http://\S+)$}m, text) do
      [_, url] -> url
      nil -> Process.sleep(10) && address()
    end
  rescue
    # Not captured yet, or no more.
    _error in [ArgumentError, FunctionClauseError] -> Process.sleep(10) && address()
  end

  defp browser(fun) do
    Task.async(fn ->
      Process.sleep(300)
      fun.(address())
    end)
  end

  defp mode(path), do: Bitwise.band(File.stat!(path).mode, 0o777)

  test "connects by the redirect to this machine, lists, and disconnects", context do
    world = Connections.world()
    client = google(context, world)

    visit =
      browser(fn url ->
        {302, back} = Services.open(url)
        %URI{host: "127.0.0.1", port: port} = URI.parse(back)
        here = "http://127.0.0.1:#{port}"

        # Strangers on this machine and on websites end nothing.
        for wrong <- [
              "/",
              "/?state=a&code=b",
              "/?state%5B%5D=a",
              "/favicon.ico",
              "/?%zz",
              "/x?" <> URI.parse(back).query
            ],
            do: {:ok, %{status: 404}} = Skillbook.HTTP.request(here <> wrong)

        rebound = [url: back, headers: [{"host", "evil.example.com"}]]
        {:ok, %{status: 404}} = Skillbook.HTTP.request(rebound)
        {:ok, silent} = :gen_tcp.connect({127, 0, 0, 1}, port, [])
        {:ok, response} = Skillbook.HTTP.request(back)
        :gen_tcp.close(silent)
        response
      end)

    connect = ["connect", "google", "--client-secret-file", client, "--for", "email.search"]
    assert {output, 0, errors} = run_cli(context.cli ++ connect)
    response = Task.await(visit, :infinity)
    assert response.status == 200
    assert response.body =~ "google is connected as ann@example.com. You can close this page."
    assert response.headers["content-security-policy"] == ["default-src 'none'"]
    assert output == "Connected google as ann@example.com, for the profile default: mail\n"
    key = Path.join(context.folder, "connections.key")
    assert errors =~ "Made the key #{key}; without it no token can be read."
    assert {mode(key), mode(context.db)} == {0o600, mode(context.db)}

    # The client is remembered, without its secret.
    assert {:ok, %{"google" => %{"client_secret" => %{"file" => ^client}}}} =
             context.accounts |> File.read!() |> JSON.decode()

    refute File.read!(context.accounts) =~ world.client["secret"]

    {json, 0, ""} = run_cli(context.cli ++ ["connections", "--json"])

    assert {:ok,
            [
              %{
                "account" => "google",
                "identity" => "ann@example.com",
                "profile" => "default",
                "services" => ["mail"],
                "status" => "connected"
              }
            ]} = JSON.decode(json)

    page = ["connections", "--limit", "1", "--after", "google default", "--json"]
    assert run_cli(context.cli ++ page) == {"[]\n", 0, ""}

    {text, 0, ""} = run_cli(context.cli ++ ["connections"])

    assert text =~
             ~r/\Agoogle as ann@example.com\n  connected on \S+ \S+ UTC, for the profile default/

    assert text =~ ~r/\n  for mail\n  scopes: .*gmail.readonly.*\n\z/

    {"No connections." <> _, 0, ""} =
      run_cli(["--profile", "bob"] ++ context.cli ++ ["connections"])

    before = File.read!(key)

    assert {"Encrypted the tokens of 1 connection again\n", 0, ""} =
             run_cli(context.cli ++ ["connections", "rotate"])

    assert File.read!(key) != before
    assert mode(key) == 0o600
    assert length(String.split(File.read!(key))) == 1

    assert {"Disconnected google, for the profile default\n", 0, ""} =
             run_cli(context.cli ++ ["disconnect", "google"])

    assert "oauth.revoke" in Services.methods(world)

    assert {"", 1,
            "skillbook: the profile default has no connection for google; a person can " <> _} =
             run_cli(context.cli ++ ["disconnect", "google"])
  end

  test "signs in to an MCP server, and uses its token", context do
    url = MCPJudges.start("python", [MCPJudges.path("oauth_server.py")])
    cli = ["--mcp", "docs=#{url}" | context.cli]
    {"", 1, errors} = run_cli(cli ++ ["servers"])
    command = "`bin/skillbook --mcp 'docs=#{url}' connect docs`"
    assert errors =~ "a person can make it with #{command}, or set the variable"

    visit =
      browser(fn url ->
        {:ok, %{status: 302} = response} = Skillbook.HTTP.request(url)
        Skillbook.HTTP.request(hd(response.headers["location"]))
      end)

    assert {output, 0, errors} = run_cli(cli ++ ["connect", "docs", "--scope", "docs:write"])
    assert {:ok, %{status: 200}} = Task.await(visit, :infinity)
    assert output == "Connected docs, for the profile default\n"
    assert errors =~ "Made the key "

    {output, 0, ""} = run_cli(cli ++ ["servers"])
    assert output =~ "docs.search  tool  new"

    {output, 0, _errors} = run_cli(cli ++ ["connections"])
    assert output =~ "scopes: docs:read, docs:write"

    # Another profile has no part in it.
    {"", 1, errors} = run_cli(["--profile", "ann"] ++ cli ++ ["servers"])
    assert errors =~ "the profile ann has no connection for docs"

    assert {"Disconnected docs, for the profile default\n", 0, _errors} =
             run_cli(cli ++ ["disconnect", "docs"])

    # Without the server, there is no such account.
    assert {"", 1, errors} = run_cli(context.cli ++ ["disconnect", "docs"])
    assert errors =~ ~s(there is no account "docs")
  end

  test "connects with an address that is pasted, on a machine without a browser", context do
    world = Connections.world()
    client = google(context, world)
    test = self()

    task =
      Task.async(fn ->
        Process.group_leader(self(), Input.start(test))
        args = ["connect", "google", "--no-browser", "--client-secret-file", client]
        CLI.run(["--profile", "ann"] ++ context.cli ++ args ++ ["--for", "calendar.list"])
      end)

    leader = leader(task.pid)

    errors =
      ExUnit.CaptureIO.capture_io(:stderr, fn ->
        {302, back} = Services.open(address())

        for line <- ["", "hello", "http://127.0.0.1/?a=b"],
            do: send(leader, {:line, line <> "\n"})

        send(leader, {:line, " #{back} \n"})
        assert Task.await(task, :infinity) == 0
      end)

    assert errors =~ "Then paste the address to which the browser was sent, and press Enter."
    assert errors =~ "skillbook: expected the whole address to which the browser was sent, with"

    assert_receive {:output,
                    "Connected google as ann@example.com, for the profile ann: calendar\n"}
  end

  test "connects an account of Microsoft, whose client has no secret", context do
    client = %{id: "app", redirects: ["http://127.0.0.1/"]}
    world = Services.world(clients: [client])

    write_accounts(context, %{
      microsoft: %{client_id: "app", tenant: "contoso.com", url: world.url}
    })

    test = self()

    task =
      Task.async(fn ->
        Process.group_leader(self(), Input.start(test))
        args = ["connect", "microsoft", "--no-browser", "--for", "email.search"]
        CLI.run(["--profile", "ann"] ++ context.cli ++ args)
      end)

    leader = leader(task.pid)

    ExUnit.CaptureIO.capture_io(:stderr, fn ->
      {302, back} = Services.open(address())
      send(leader, {:line, "#{back}\n"})
      assert Task.await(task, :infinity) == 0
    end)

    assert_receive {:output,
                    "Connected microsoft as ann@example.com, for the profile ann: mail\n"}

    assert Enum.uniq(for entry <- Services.log(world), do: entry["tenant"]) == ["contoso.com"]
  end

  defp leader(pid) do
    case Process.info(pid, :group_leader) do
      {:group_leader, leader} when leader != pid ->
        if leader == Process.group_leader(), do: leader(pid), else: leader
    end
  end

  test "says that the person declined, allowed less, or did not come", context do
    world = Connections.world()
    client = google(context, world)
    connect = context.cli ++ ["connect", "google", "--client-secret-file", client]

    Services.browser(world, answer: "deny")
    visit = browser(fn url -> url |> Services.open() |> elem(1) |> Skillbook.HTTP.request() end)
    assert {"", 1, errors} = run_cli(connect ++ ["--for", "email.send"])

    assert errors =~
             "skillbook: the connection google of the profile default was not made: the " <>
               "person has not allowed it\n"

    {:ok, response} = Task.await(visit, :infinity)
    assert response.status == 400
    assert response.body =~ "The account was not connected. The command line says why."

    Services.browser(world, answer: ["openid", "email"])
    visit = browser(fn url -> url |> Services.open() |> elem(1) |> Skillbook.HTTP.request() end)
    assert {output, 1, errors} = run_cli(connect ++ ["--for", "email.send"])
    assert output == "Connected google as ann@example.com, for the profile default\n"
    assert errors =~ "skillbook: you have not allowed what email.send needs\n"
    Task.await(visit, :infinity)

    assert {"", 1, errors} = run_cli(connect ++ ["--for", "email.send", "--wait", "1"])
    assert errors =~ "skillbook: nobody signed in within 1 seconds\n"
  end

  test "wrong accounts are an error that names them, and shows no secret", context do
    for {fields, message} <- [
          {%{google: %{client_id: "a", client_secret: "s3cret"}},
           ~s(the account "google": client_secret: expected {"env": NAME} or {"file": PATH}; ) <>
             "a secret has no place in this file"},
          {%{google: %{client_id: "a", client_secret: %{file: "none"}}},
           "the account \"google\": client_secret: the file #{context.folder}/none does not " <>
             "exist"},
          {%{google: %{clientid: "a"}},
           ~s(the account "google": unknown option "clientid"; its options are client_id)},
          {%{google: "a"}, ~s(the account "google": expected an object with its options)},
          {%{Google: %{}},
           ~s(the account "Google": expected a name of lower-case letters, digits and _, ) <>
             "other than key"},
          {%{mail: %{}},
           ~s(the account "mail": expected one of google, microsoft, hubspot, imap, caldav as ) <>
             ~s(its vendor, got: "mail")},
          {[1], "expected an object with at most 100 accounts"}
        ] do
      write_accounts(context, fields)
      assert {"", 3, errors} = run_cli(context.cli ++ ["connections"])
      assert errors =~ "skillbook: cannot start: #{context.accounts}: " <> message
      refute errors =~ "s3cret"
    end

    File.write!(context.accounts, "{")
    assert {"", 3, errors} = run_cli(context.cli ++ ["connections"])
    assert errors =~ "skillbook: cannot start: #{context.accounts}: line 1, column 1: "

    write_accounts(context, %{hubspot: %{token: %{env: "SKILLBOOK_TEST_NONE"}}})
    key = Path.join(context.folder, "connections.key")
    File.write!(key, "a")
    File.chmod!(key, 0o644)
    assert {"", 3, errors} = run_cli(context.cli ++ ["connections"])
    assert errors =~ "#{key}: others can read the key; run: chmod 600 #{key}"

    File.chmod!(key, 0o600)

    for text <- ["", "s3cret"] do
      File.write!(key, text)

      assert run_cli(context.cli ++ ["connections"]) ==
               {"", 3,
                "skillbook: cannot start: #{key}: expected a key of 32 bytes in base64; " <>
                  "restore the file, or remove it and connect again\n"}
    end
  end

  test "accounts of other vendors, and of the environment", context do
    write_accounts(context, %{
      post: %{
        vendor: "imap",
        host: "mail.example.com",
        username: "ann",
        tls: "starttls",
        password: %{env: "SKILLBOOK_TEST_NONE"},
        smtp: %{host: "smtp.example.com", tls: "implicit", port: 465},
        profiles: ["ann"]
      },
      days: %{
        vendor: "caldav",
        url: "http://127.0.0.1:1/dav",
        username: "ann",
        password: %{env: "SKILLBOOK_TEST_NONE"},
        services: ["calendar"]
      }
    })

    System.put_env("SKILLBOOK_HUBSPOT_TOKEN", "pat-s3cret")
    on_exit(fn -> System.delete_env("SKILLBOOK_HUBSPOT_TOKEN") end)
    assert {output, 0, ""} = run_cli(["--profile", "bob"] ++ context.cli ++ ["connections"])

    assert output == """
           days as ann
             with a secret of the application, for the profile bob
             for calendar
           hubspot
             with a secret of the application, for the profile bob
             for hubspot
           """

    assert {output, 0, ""} = run_cli(context.cli ++ ["connections"])
    assert output =~ "post as ann\n  with a secret of the application\n  for mail\n"
    refute output =~ "s3cret"

    assert {"", 1, errors} = run_cli(context.cli ++ ["connect", "hubspot"])

    assert errors =~
             "skillbook: the account hubspot has its secret in the book's :connections; " <>
               "nobody signs in to it\n"
  end

  test "a first connection names the file that is missing, or wrong, and stores nothing",
       context do
    console =
      "the first time, give the file of Google's console: " <>
        "`skillbook connect google --client-secret-file FILE`"

    for {argv, message} <- [
          {["connect", "google"], ~s(there is no account "google"; ) <> console},
          {["disconnect", "google"], ~s(there is no account "google"; ) <> console},
          {["connect", "hubspot"],
           ~s(there is no account "hubspot"; set SKILLBOOK_HUBSPOT_TOKEN, or add it to ) <>
             context.accounts},
          {["connect", "post"],
           ~s(there is no account "post"; add it to #{context.accounts}; ) <>
             "`skillbook connect --help` shows how"}
        ] do
      assert {argv, run_cli(context.cli ++ argv)} == {argv, {"", 1, "skillbook: #{message}\n"}}
    end

    for {text, message} <- [
          {nil, "no such file or directory"},
          {"s3cret", "it has only a secret; add --client-id ID"},
          {~s({"a": "s3cret"}),
           ~s(expected the JSON file of Google's console, which begins with {"installed":)},
          {~s({"installed": {"client_id": "a"}}),
           ~s(expected the JSON file of Google's console, which begins with {"installed":)},
          {~s({"web": {"client_id": "a", "client_secret": "s3cret"}}),
           "it is a client of the type Web application; make one of the type Desktop app"},
          {~s({"type": "service_account"}),
           "it is the key of a service account, to which nobody signs in; add " <>
             ~s({"service_account": {"file": PATH}, "subject": ADDRESS} to the account in ) <>
             context.accounts}
        ] do
      file = Path.join(context.tmp_dir, "client.json")
      if text, do: File.write!(file, text)
      argv = context.cli ++ ["connect", "google", "--client-secret-file", file]
      expected = "skillbook: --client-secret-file #{file}: #{message}\n"
      assert {text, run_cli(argv)} == {text, {"", 1, expected}}
    end

    refute File.exists?(context.folder)

    write_accounts(context, %{google: %{url: "http://127.0.0.1:1"}})
    assert {"", 1, errors} = run_cli(context.cli ++ ["connect", "google"])
    assert errors == ~s(skillbook: the account "google" has no client yet; ) <> console <> "\n"
    assert {"", 1, errors} = run_cli(context.cli ++ ["connect", "gogle"])
    assert errors =~ ~s|there is no account "gogle" (there is google); add it|
  end

  test "wrong usage names the command's help" do
    for {argv, message} <- [
          {["connect"], "`connect` needs an ACCOUNT, such as google"},
          {["connect", "a", "b"], "`connect` takes one ACCOUNT, got also: b"},
          {["disconnect"], "`disconnect` needs an ACCOUNT; `connections` lists them"},
          {["connections", "lst"], "expected list or rotate, got: lst"},
          {["connect", "a", "--wait", "0"],
           "--wait expects a whole number from 1 to 3600, got: 0"}
        ] do
      expected = "skillbook: #{message}\nSee: skillbook #{hd(argv)} --help\n"
      assert run_cli(argv) == {"", 2, expected}
    end
  end
end
