defmodule Skillbook.Connections.TokensTest do
  # Renewal of tokens: before they expire, once however many callers, by every answer of the token
  # endpoint.
  use ExUnit.Case, async: true

  import ExUnit.CaptureLog
  import Skillbook.Eventually
  import Skillbook.Test.Connections

  alias Skillbook.{Book, ConnectionError, Connections, SQL}
  alias Skillbook.Test.{HTTPServer, Services}

  defp connected(world, options \\ []) do
    book = book([google: account(world)], options)
    {:ok, _connection} = connect(book, :google, for: ["email.search"])
    book
  end

  defp sql(book), do: Book.sql(Book.fetch!(book))

  defp column(book, name) do
    [[value]] = SQL.query!(sql(book), "select #{name} from skillbook_connections").rows
    value
  end

  defp message({:error, error}), do: Exception.message(error)

  describe "a token" do
    test "is used until a part of its life is left, then renewed once" do
      world = world()
      book = connected(world)
      first = token(mail(book))
      for _ <- 1..10, do: assert(token(mail(book)) == first)
      assert asked(world) == 0

      # In the background, while it is still used.
      expire(book, 100_000)
      assert token(mail(book)) == first
      eventually(fn -> token(mail(book)) != first end)
      assert asked(world) == 1

      # Callers wait for it.
      second = token(mail(book))
      expire(book, 10_000)
      third = token(mail(book))
      assert third not in [first, second]
      assert asked(world) == 2
      assert call(mail(book)) == :ok
    end

    test "is renewed after the vendor refused it, once for all callers" do
      world = world()
      book = connected(world)
      account = mail(book)
      assert call(account) == :ok
      Services.advance(world, 7_200)
      calls = for _ <- 1..50, do: Task.async(fn -> call(account) end)
      assert calls |> Task.await_many(:infinity) |> Enum.uniq() == [:ok]
      assert asked(world) == 1

      # A token that was replaced since is not refused again.
      {:ok, old} = Connections.token(account, [])
      assert Connections.refused(account, fn -> "another" end) == :ok
      assert token(account) == old.()
      assert asked(world) == 1
    end

    test "is not asked for again and again if the vendor refuses each" do
      world = world()
      book = connected(world)
      account = mail(book)

      for _ <- 1..20 do
        {:ok, token} = Connections.token(account, [])
        Connections.refused(account, token)
      end

      assert token(account) =~ "ya29."
      assert asked(world) == 1
    end

    test "needs one of the scopes" do
      world = world()
      book = connected(world)
      account = %{mail(book) | command: "email.send"}
      assert token(account, [scope("gmail.modify"), scope("gmail.readonly")]) =~ "ya29."
      assert token(account, []) =~ "ya29."

      assert message(Connections.token(account, [scope("gmail.send"), scope("gmail.modify")])) ==
               "the connection google of the profile default lacks the scope " <>
                 "https://www.googleapis.com/auth/gmail.send; a person can grant it with " <>
                 "`bin/skillbook connect google --for email.send`"
    end
  end

  test "a thousand callers, and a token that expires in the middle: one renewal, no failure" do
    world = world()
    book = connected(world)
    account = mail(book, "default", timeout: 60_000)
    assert call(account) == :ok

    # The vendor's clock moves on while the calls run, so that only its answers tell.
    calls =
      for n <- 1..1_000 do
        Task.async(fn ->
          if n == 500, do: Services.advance(world, 3_601)
          Process.sleep(div(n, 10))
          call(account)
        end)
      end

    assert calls |> Task.await_many(:infinity) |> Enum.uniq() == [:ok]
    assert asked(world) == 1
    used = for %{"method" => "oauth.userinfo", "token" => token} <- Services.log(world), do: token
    # One of the sign-in, and one that was renewed.
    assert length(Enum.uniq(used)) == 2
  end

  test "a thousand callers wait for one renewal before the token expires" do
    world = world()
    book = connected(world)
    account = mail(book, "default", timeout: 60_000)
    Services.fault(world, method: "oauth.token", delay: 0.5, applied: true)
    expire(book, 500)
    calls = for _ <- 1..1_000, do: Task.async(fn -> token(account) end)
    assert [token] = calls |> Task.await_many(:infinity) |> Enum.uniq()
    assert is_binary(token)
    assert asked(world) == 1
  end

  describe "the token endpoint" do
    @unavailable "the sign-in of the account google does not work at the moment: "

    # Errors of the network have words of their own.
    defp assert_reason(message, {:with, part}),
      do: assert(message =~ @unavailable and message =~ part)

    defp assert_reason(message, reason), do: assert(message == @unavailable <> reason)

    test "fails for a while: it is asked again, and the kept token is used" do
      world = world()
      book = connected(world)
      first = token(mail(book))
      Services.fault(world, method: "oauth.token", status: 503, times: 2)
      expire(book, 100)
      assert token(mail(book)) not in [first, nil]
      assert asked(world) == 3
    end

    for {name, fault, reason} <- [
          {"500", [status: 500, reason: "internal_failure"],
           ~s(status 500, internal_failure: "fault")},
          {"503", [status: 503], ~s(status 503, temporarily_unavailable: "fault")},
          {"429", [status: 429, reason: "rate_limited", retry_after: 60],
           ~s(status 429, rate_limited: "fault")},
          {"HTML", [body: "<html>Sorry</html>", status: 502], "status 502"},
          {"HTML with 200", [body: "<html>Welcome to the hotel</html>"],
           "it answered with something else than a token"},
          {"HTML with 404", [body: "<html>", status: 404], "status 404"},
          {"an empty answer", [body: ""], "it answered with something else than a token"},
          {"no answer", [cut: 0], {:with, "127.0.0.1"}},
          {"half an answer", [cut: 40], {:with, "127.0.0.1"}}
        ] do
      @fault fault
      @reason reason

      test "answers #{name}: a token that still works is used, and no other" do
        world = world()
        book = connected(world)
        first = token(mail(book))
        Services.fault(world, [method: "oauth.token", times: nil] ++ @fault)

        expire(book, 15_000)
        assert token(mail(book)) == first

        expire(book, 0)
        eventually(fn -> match?({:error, _error}, token(mail(book))) end)
        assert {:error, %ConnectionError{kind: :unavailable} = error} = token(mail(book))
        assert_reason(Exception.message(error), @reason)

        # It works again.
        Services.clear_faults(world)
        eventually(fn -> is_binary(token(mail(book))) end)
        assert column(book, "holder") == nil
        assert column(book, "status") == "connected"
      end
    end

    test "says invalid_grant: the connection is withdrawn, and says how to renew it" do
      world = world()
      book = connected(world)
      account = mail(book)
      :telemetry.listen(book)
      {:ok, _} = Skillbook.HTTP.request(revoke(world, token(account)))
      expire(book, 0)

      expected =
        "the connection google of the profile default was withdrawn; a person can renew it " <>
          "with " <>
          "`bin/skillbook connect google`"

      log = capture_log(fn -> assert message(Connections.token(account, [])) == expected end)
      assert log =~ "the connection google of the profile \"default\" was withdrawn"

      assert_receive {[:skillbook, :connection, :changed], %{system_time: _},
                      %{book: ^book, profile: "default", account: :google, status: :revoked}}

      # It is not asked for again, and its dead tokens are gone.
      eventually(fn -> match?({:ok, [%{status: :revoked}]}, Connections.list(book)) end)
      assert message(Connections.token(account, [])) == expected
      assert asked(world) == 1

      # Its commands stay, to say so; a new sign-in mends it.
      assert Connections.services(book, "default") == ["mail"]
      {:ok, %{status: :connected}} = connect(book, :google, for: ["email.search"])
      assert call(mail(book)) == :ok
    end

    defp revoke(world, token) do
      body = URI.encode_query(token: token)
      headers = [{"content-type", "application/x-www-form-urlencoded"}]
      [method: :post, url: world.url <> "/revoke", headers: headers, body: body]
    end

    test "refuses the client: the connection stays, and the operator reads the reason" do
      world = world()
      book = connected(world)
      fault = [method: "oauth.token", times: nil, status: 401, reason: "invalid_client"]
      Services.fault(world, fault ++ [message: "The OAuth client was deleted."])
      expire(book, 0)

      assert message(Connections.token(mail(book), [])) ==
               "the sign-in of the account google refused the request: status 401, " <>
                 ~s(invalid_client: "The OAuth client was deleted.")

      assert column(book, "status") == "connected"
    end

    test "repeats a secret in its error: the error does not have it" do
      text = fn request ->
        form = URI.decode_query(request.body)
        description = "the token #{form["refresh_token"]} of #{form["client_secret"]}\e[31m\n| x"
        body = Skillbook.Support.JSON.encode(%{error: "odd", error_description: description})
        send(self(), :asked)
        {:instead, [{:head, 400, [{"content-length", "#{byte_size(body)}"}]}, {:raw, body}]}
      end

      {_pid, url} = HTTPServer.start([[], []], check: text)
      world = world()
      book = connected(world)
      expire(book, 0)
      account = %{mail(book) | url: url}
      {:error, error} = Connections.token(account, [])

      assert error.reason == ~s(status 400, odd: "the token [secret] of [secret] [31m | x")
    end

    test "never answers: callers wait until their deadlines, and no longer" do
      world = world()
      book = connected(world)
      Services.fault(world, method: "oauth.token", times: nil, silent: true)
      expire(book, 0)
      started = System.monotonic_time(:millisecond)

      calls =
        for limit <- [200, 500, 1_000], _ <- 1..10 do
          Task.async(fn ->
            account = mail(book, "default", timeout: limit)
            {:error, %ConnectionError{kind: kind}} = Connections.token(account, [])
            {limit, kind, System.monotonic_time(:millisecond) - started}
          end)
        end

      for {limit, kind, took} <- Task.await_many(calls, :infinity) do
        assert kind == :timeout
        assert took < limit + 1_000
      end

      account = mail(book, "default", timeout: 1)
      Process.sleep(5)

      assert message(Connections.token(account, [])) ==
               "the connection google of the profile default had no token in time; try again"
    end

    test "gives a new refresh token each time: it is stored before the token is used" do
      world = world(rotate: true)
      book = connected(world)

      for _ <- 1..4 do
        before = column(book, "version")
        expire(book, 0)
        assert call(mail(book)) == :ok
        assert column(book, "version") == before + 1
      end

      assert asked(world) == 4
    end
  end

  describe "a service account" do
    defp delegated(world, more) do
      key = Skillbook.Support.JSON.encode(world.service_account)
      account = [vendor: Skillbook.Test.Connections.Vendor, url: world.url]
      account = account ++ [service_account: fn -> key end] ++ more
      book([google: account], profiles: [[id: "ann"], [id: "bob"]], store: nil)
    end

    test "acts for the person of each profile" do
      world = world()
      book = delegated(world, subject: &(&1 <> "@example.com"))
      assert Connections.services(book, "ann") == ["calendar", "drive", "mail"]
      scopes = [scope("gmail.readonly"), scope("userinfo.email")]
      ann = token(mail(book, "ann"), scopes)
      assert token(mail(book, "ann"), scopes) == ann
      assert token(mail(book, "bob"), scopes) != ann
      assert asked(world, "urn:ietf:params:oauth:grant-type:jwt-bearer") == 2

      {:ok, token} = Connections.token(mail(book, "bob"), [scope("userinfo.email")])
      headers = [{"authorization", "Bearer " <> token.()}]
      {:ok, response} = Skillbook.HTTP.request(url: world.url <> "/v1/userinfo", headers: headers)
      assert response.body =~ "bob@example.com"
    end

    test "uses a greater scope if the domain has not delegated the least" do
      world = world(delegated: [scope("gmail.modify")])
      book = delegated(world, subject: "ann@example.com")
      scopes = [scope("gmail.readonly"), scope("gmail.modify")]
      assert token(mail(book, "ann"), scopes) =~ "ya29."

      assert message(Connections.token(mail(book, "ann"), [scope("gmail.send")])) =~
               "the sign-in of the account google refused the request: status 401, " <>
                 "unauthorized_client: \"Client is unauthorized"
    end

    test "is renewed once for all callers, and after a refusal" do
      world = world()
      book = delegated(world, subject: "ann@example.com")
      account = mail(book, "ann")
      scopes = [scope("userinfo.email")]
      calls = fn -> for _ <- 1..50, do: Task.async(fn -> call(account, scopes) end) end
      assert calls.() |> Task.await_many(:infinity) |> Enum.uniq() == [:ok]
      grant = "urn:ietf:params:oauth:grant-type:jwt-bearer"
      assert asked(world, grant) == 1
      {:ok, token} = Connections.token(account, scopes)
      Connections.refused(account, token)
      assert calls.() |> Task.await_many(:infinity) |> Enum.uniq() == [:ok]
      assert asked(world, grant) == 2
    end

    test "says what is wrong with its key or its person" do
      world = world()
      form = "expected the JSON of a service account's key, with client_email and private_key"

      for {key, reason} <- [
            {fn -> "no JSON" end, form},
            {fn -> ~s({"client_email": "a"}) end, form},
            {fn -> ~s({"client_email": "a", "private_key": "-----BEGIN PRIVATE KEY-----"}) end,
             form},
            {fn ->
               ~s({"client_email": "a", "private_key": "-----BEGIN PRIVATE KEY-----\\nAAAA\\n) <>
                 ~s(-----END PRIVATE KEY-----\\n"})
             end, form},
            {{:env, "SKILLBOOK_TEST_MISSING"},
             "the environment variable SKILLBOOK_TEST_MISSING is not set, or empty"}
          ] do
        account = [vendor: :google, url: world.url, service_account: key]
        book = book([google: account], store: nil)

        assert message(Connections.token(mail(book), [scope("gmail.send")])) ==
                 "the account google cannot be used: the option :service_account: #{reason}"
      end

      book = delegated(world, subject: fn _profile -> nil end)

      assert message(Connections.token(mail(book, "ann"), [scope("gmail.send")])) ==
               "the account google cannot be used: the option :subject: its function did not " <>
                 "return text"
    end
  end

  describe "the key" do
    test "can be replaced: the first encrypts, all decrypt, rotate/1 encrypts again" do
      world = world()
      folder = Path.join(System.tmp_dir!(), "skillbook_keys_#{System.unique_integer()}")
      File.mkdir_p!(folder)
      on_exit(fn -> File.rm_rf!(folder) end)
      store = Path.join(folder, "a.db")
      [old, new] = for _ <- 1..2, do: Connections.generate_key()

      with_keys = fn keys, fun ->
        keys = for key <- keys, do: fn -> key end
        book = book([key: keys, google: account(world)], store: store)
        result = fun.(book)
        :ok = ExUnit.Callbacks.stop_supervised(book)
        result
      end

      with_keys.([old], fn book -> {:ok, _} = connect(book, :google, for: ["email.search"]) end)

      # Without the old key the tokens cannot be read, and nothing crashes.
      with_keys.([new], fn book ->
        assert {:ok, [%{status: :connected}]} = Connections.list(book)
        assert {:error, %ConnectionError{kind: :key} = error} = Connections.token(mail(book), [])

        ids = ~r/[0-9a-f]{8}/

        assert Regex.replace(ids, Exception.message(error), "ID") ==
                 "the connection google of the profile default cannot be read: it was " <>
                   "encrypted " <>
                   "with the key ID, and the option :key has ID; add the former key to the " <>
                   "list, " <>
                   "or connect again"

        assert {:error, %ConnectionError{kind: :key}} = Connections.rotate(book)
      end)

      with_keys.(["abc"], fn book ->
        assert {:error, error} = Connections.rotate(book)

        assert Exception.message(error) ==
                 "the book's connections cannot be read: key 1 of the option :key: expected " <>
                   "32 bytes in base64, got another text"
      end)

      with_keys.([new, old], fn book ->
        assert call(mail(book)) == :ok
        assert Connections.rotate(book) == {:ok, 1}
        assert Connections.rotate(book) == {:ok, 0}
      end)

      with_keys.([new], fn book -> assert call(mail(book)) == :ok end)

      # A renewal encrypts with the first key too.
      with_keys.([old, new], fn book ->
        expire(book, 0)
        assert call(mail(book)) == :ok
      end)

      with_keys.([old], fn book ->
        assert call(mail(book)) == :ok
        assert {:ok, %{revoked: true}} = Connections.disconnect(book, :google)
      end)
    end

    test "that is no key is an error, and no crash" do
      world = world()

      for {key, reason} <- [
            {fn -> "short" end,
             "key 1 of the option :key: expected 32 bytes in base64, got another text"},
            {[fn -> key() end, fn -> Base.encode64("short") end],
             "key 2 of the option :key: expected 32 bytes in base64, got another text"},
            {{:env, "SKILLBOOK_TEST_MISSING"},
             "key 1 of the option :key: the environment variable SKILLBOOK_TEST_MISSING is " <>
               "not " <>
               "set, or empty"},
            {fn -> nil end, "key 1 of the option :key: its function did not return text"}
          ] do
        book = book(key: key, google: account(world))

        assert message(connect(book, :google, for: ["email.search"])) ==
                 "the connection google of the profile default cannot be read: #{reason}"

        assert Connections.services(book, "default") == []
      end
    end

    test "of a row belongs to its profile and account: a copied row does not decrypt" do
      world = world()
      accounts = [google: account(world), work: account(world)]
      book = book(accounts, profiles: [[id: "ann"], [id: "eve"]])
      {:ok, _} = connect(book, :google, profile: "ann", for: ["email.search"])

      columns =
        "status, identity, scopes, key_id, secret, expires_at, version, revision, " <>
          "connected_at, renewed_at"

      for {profile, account} <- [{"eve", "google"}, {"ann", "work"}] do
        SQL.query!(
          sql(book),
          "insert into skillbook_connections (profile, account, #{columns}) " <>
            "select $1, $2, #{columns} from skillbook_connections where account = 'google' " <>
            "and profile = 'ann'",
          [profile, account]
        )
      end

      :ok = Connections.Tokens.changed(Book.fetch!(book))
      eve = mail(book, "eve")

      assert message(Connections.token(eve, [])) ==
               "the connection google of the profile eve cannot be read: its row was " <>
                 "changed, or " <>
                 "copied from another one; connect again"

      work = %{mail(book, "ann") | name: :work}
      assert {:error, %ConnectionError{kind: :key}} = Connections.token(work, [])
      assert call(mail(book, "ann")) == :ok

      # Each byte of a row counts.
      SQL.query!(sql(book), "delete from skillbook_connections where profile = 'eve'")
      secret = column_of(book, "ann")

      for position <- [0, 1, 12, 13, 28, 29, byte_size(secret) - 1] do
        {head, <<byte, rest::binary>>} = :erlang.split_binary(secret, position)
        changed = {:blob, <<head::binary, Bitwise.bxor(byte, 1), rest::binary>>}
        put_secret(book, changed)
        assert {:error, %ConnectionError{kind: :key}} = Connections.token(mail(book, "ann"), [])
      end

      put_secret(book, {:blob, ""})
      assert {:error, %ConnectionError{kind: :key}} = Connections.token(mail(book, "ann"), [])
      put_secret(book, {:blob, secret})
      eventually(fn -> call(mail(book, "ann")) == :ok end)
    end

    defp column_of(book, profile) do
      query = "select secret from skillbook_connections where profile = $1 and account = 'google'"
      [[secret]] = SQL.query!(sql(book), query, [profile]).rows
      secret
    end

    defp put_secret(book, secret) do
      update = "update skillbook_connections set secret = $1 where account = 'google'"
      SQL.query!(sql(book), update, [secret])
      forget(book)
      # Failures are remembered for a second.
      :sys.replace_state(Module.concat(book, "Connections"), &%{&1 | failed: %{}})
    end
  end

  test "a crash of the process loses no connection and no caller" do
    world = world()
    book = connected(world)
    account = mail(book)
    expire(book, 0)
    Services.fault(world, method: "oauth.token", delay: 0.5, applied: true)
    calls = for _ <- 1..20, do: Task.async(fn -> token(account) end)
    Process.sleep(200)
    Process.exit(Process.whereis(Module.concat(book, "Connections")), :kill)
    assert [token] = calls |> Task.await_many(:infinity) |> Enum.uniq()
    assert token =~ "ya29."
    assert asked(world) == 1
    assert Connections.services(book, "default") == ["mail"]
  end
end
