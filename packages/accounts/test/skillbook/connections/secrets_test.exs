defmodule Skillbook.Connections.SecretsTest do
  # No secret of a connection anywhere that somebody reads: logs of all levels, events, errors,
  # inspected structs and processes, crash reports, prompts, transcripts, the database, and the
  # pages and lines of sign-ins.
  #
  # Not async: the log of all levels is collected.
  use ExUnit.Case, async: false

  import ExUnit.CaptureLog
  import Skillbook.Test.Connections

  alias Skillbook.{Agent, Book, Connections, Model, SQL, Transcript}
  alias Skillbook.Connections.{Account, Renewal}
  alias Skillbook.Support.JSON
  alias Skillbook.Test.Services

  @hubspot "pat-s3cret-of-hubspot-0001"
  @password "s3cret-of-the-mail-server-0002"
  # 32 bytes.
  @key "0123456789-s3cret-key-of-tests-!"

  defmodule Raising do
    @moduledoc false
    # An adapter of HTTP that crashes with the request in its hands.
    def stream(request, _settings, _options, _acc, _fun) do
      headers = request.headers.()
      raise "the request #{inspect(headers)} with the body #{request.body}"
    end
  end

  defmodule Crashing do
    @moduledoc false
    # Handlers that crash with an account and a token in their hands.
    @behaviour Skillbook.Handler

    @impl true
    def execute(flags, context) do
      {:ok, account} = Connections.account(context, :mail)
      {:ok, token} = Connections.token(account, [])
      crash(flags["how"], account, token)
    end

    defp crash("raise", account, token), do: raise("oops #{inspect([account, token])}")
    defp crash("arguments", account, token), do: apply(__MODULE__, :missing, [account, token])
    defp crash("match", account, token), do: :error = Enum.random([{account, token}])
    defp crash("exit", account, token), do: exit({account, token})
    defp crash("throw", account, token), do: throw({account, token})

    defp crash("task", account, token) do
      Task.await(Task.async(fn -> raise(ArgumentError, inspect({account, token})) end), :infinity)
    end
  end

  # Everything that a reader could see of a value.
  defp seen(value) do
    [
      inspect(value, limit: :infinity, printable_limit: :infinity, structs: true),
      :io_lib.format("~p", [value])
    ]
  end

  defp start(world) do
    folder = Path.join(System.tmp_dir!(), "skillbook_secrets_#{System.unique_integer()}")
    File.mkdir_p!(Path.join(folder, "x"))
    on_exit(fn -> File.rm_rf!(folder) end)

    File.write!(Path.join(folder, "x/crash.md"), """
    ---
    name: x.crash
    description: Crashes
    handler: #{inspect(Crashing)}
    flags:
      how: {type: string}
    effects: read
    ---
    """)

    {:ok, secret} = Map.fetch(world.client, "secret")

    accounts = [
      key: fn -> Base.encode64(@key) end,
      google: [
        vendor: :google,
        url: world.url,
        client_id: world.client["id"],
        client_secret: fn -> secret end
      ],
      hubspot: [token: fn -> @hubspot end, url: world.url],
      post: [vendor: :imap, host: "127.0.0.1", username: "ann", password: fn -> @password end]
    ]

    {book(accounts,
       sources: [folder],
       builtins: ["email", "tasks"],
       breaker: false,
       # A store that other tests do not share.
       store: Path.join(folder, "book.db")
     ), folder}
  end

  # The tokens in the database, as only the key reads them.
  defp tokens(book) do
    keys = [fn -> Base.encode64(@key) end]
    {:ok, keys} = Connections.Cipher.keys(keys)
    {:ok, rows} = Connections.Table.list(Book.sql(Book.fetch!(book)), nil)

    for row <- rows, {:ok, tokens} <- [Renewal.open(keys, row)] do
      %{access: access, refresh: refresh} = tokens.()
      [access, refresh]
    end
    |> List.flatten()
    |> Enum.reject(&(&1 in [nil, ""]))
  end

  defp converse(book, how) do
    lines = ["email.search --query tea", "x.crash --how #{how}", "tasks.search --query a"]
    call = "```cmd\n#{Enum.join(lines, "\n")}\n```"

    model =
      Model.Function.new(fn messages, _ ->
        if match?(%{role: :user, content: "Go."}, List.last(messages)), do: call, else: "Done."
      end)

    Agent.run(book, "Go.", model: model, max_turns: 3)
  end

  defp processes(book) do
    [{:parts, parts, _, _}] =
      for {:parts, _, _, _} = parts <- Supervisor.which_children(book), do: parts

    Enum.flat_map([Process.whereis(book), parts], &processes_of/1)
  end

  defp processes_of(supervisor) do
    children =
      for {_id, pid, _type, _modules} <- Supervisor.which_children(supervisor),
          is_pid(pid),
          do: pid

    status =
      for pid <- [supervisor | children] do
        try do
          [:sys.get_status(pid, 1_000), Process.info(pid)]
        catch
          :exit, _reason -> []
        end
      end

    specs = :supervisor.which_children(supervisor)
    [status, specs, for({id, _, _, _} <- specs, do: :supervisor.get_childspec(supervisor, id))]
  end

  defp tables(book) do
    for table <- :ets.all(),
        name = inspect(:ets.info(table, :name)),
        String.contains?(name, Atom.to_string(book)),
        do: :ets.tab2list(table)
  end

  defp dump(folder) do
    for path <- Path.wildcard(Path.join(folder, "book.db*")), do: File.read!(path)
  end

  # The text, and the forms in which it is often written.
  defp forms(secret) do
    [
      secret,
      Base.encode64(secret, padding: false),
      Base.url_encode64(secret, padding: false),
      Base.encode16(secret),
      Base.encode16(secret, case: :lower),
      URI.encode_www_form(secret)
    ]
    |> Enum.uniq()
  end

  test "are nowhere" do
    world = world()
    test = self()
    {book, folder} = start(world)
    :telemetry.listen(book)

    see = fn place, value ->
      Process.put(:seen, [{place, seen(value)} | Process.get(:seen, [])])
      value
    end

    know = &Process.put(:secrets, &1 ++ Process.get(:secrets, []))
    know.([@hubspot, @password, @key, Base.encode64(@key), world.client["secret"]])

    log =
      capture_log([level: :debug], fn ->
        # A sign-in, and its faults.
        {:ok, begun} =
          Connections.authorize(book, :google, redirect: redirect(), for: ["email.search"])

        {302, location} = Services.open(begun.url)
        %URI{query: query} = URI.parse(location)
        parameters = URI.decode_query(query)
        know.([parameters["code"], begun.state])
        {:ok, connection} = Connections.complete(book, parameters)
        see.(:connection, connection)
        see.(:error, Connections.complete(book, parameters))
        know.(tokens(book))
        see.(:list, Connections.list(book))

        # Its structs.
        context = see.(:context, context(book))
        {:ok, account} = Connections.account(context, :mail)
        see.(:account, account)
        see.(:token, Connections.token(account, []))
        see.(:book, Book.fetch!(book))
        see.(:specification, Skillbook.child_spec(name: :x, connections: [a: [token: @hubspot]]))
        {:ok, post} = Connections.account(%{context | profile: context.profile}, :mail)
        see.(:post, Connections.token(%{post | name: :post}, []))

        # Conversations whose handlers crash with tokens in their hands.
        for how <- ~w(raise arguments match exit throw task) do
          run = converse(book, how)
          see.(:run, run)
          {:ok, run} = run
          see.(:transcript, run.transcript)
          see.(:stored, Transcript.to_json(run.transcript))
        end

        view = Skillbook.view(book)
        see.(:prompt, Skillbook.prompt(view))
        see.(:tools, Skillbook.Tools.definitions(view))
        see.(:help, Skillbook.get(view, "email.search"))

        # Renewals: refused, withdrawn, an adapter that crashes, processes that are killed.
        expire(book)
        assert call(account) == :ok
        know.(tokens(book))
        raising = %{account | http: Raising}
        expire(book)
        see.(:crash, Connections.token(raising, []))
        Process.sleep(1_100)
        Services.fault(world, method: "oauth.token", status: 400, reason: "odd")
        see.(:odd, Connections.token(account, []))
        Process.sleep(1_100)
        {:ok, _} = Connections.token(account, [])
        know.(tokens(book))

        for name <- ["Connections", "Follower"] do
          process = Process.whereis(Module.concat(book, name))
          # A report with the state of the process.
          send(process, {make_ref(), :surprise})
          GenServer.cast(process, :unknown)
          Process.sleep(200)
        end

        see.(:processes, processes(book))
        see.(:tables, tables(book))
        see.(:dump, dump(folder))
        see.(:vendor, Connections.disconnect(book, :google))
        see.(:dump, dump(folder))
        send(test, :done)
      end)

    assert_receive :done
    see.(:log, log)
    see.(:events, Process.info(self(), :messages))
    {secrets, all} = {Process.get(:secrets), Process.get(:seen)}
    assert length(secrets) >= 11

    found =
      for {place, texts} <- all,
          text = IO.iodata_to_binary(texts),
          secret <- Enum.uniq(secrets),
          form <- forms(secret),
          :binary.match(text, form) != :nomatch,
          do: {place, String.slice(form, 0, 12)}

    assert found == []
    # The test looked at something.
    assert log =~ "skill x.crash crashed"
    assert IO.iodata_to_binary(for({:events, texts} <- all, do: texts)) =~ "connection"
    assert Account.url?(world.url)
    assert {:ok, _json} = JSON.decode("{}")
    assert SQL.query!(Book.sql(Book.fetch!(book)), "select 1").rows == [[1]]
  end
end
