defmodule Skillbook.Connections.SignInTest do
  # Sign-ins against a server that keeps the rules of RFC 6749, 7636 and 8252.
  use ExUnit.Case, async: true

  import Skillbook.Test.Connections

  alias Skillbook.{Book, ConnectionError, Connections, OptionError, SQL}
  alias Skillbook.Connections.OAuth
  alias Skillbook.Test.Services

  doctest OAuth
  doctest Connections

  defp parameters(book, options) do
    {:ok, %{url: url}} = Connections.authorize(book, :google, [redirect: redirect()] ++ options)
    url |> URI.parse() |> Map.fetch!(:query) |> URI.decode_query()
  end

  defp scopes(book, options),
    do: parameters(book, options)["scope"] |> String.split() |> Enum.sort()

  defp message({:error, error}), do: Exception.message(error)

  describe "PKCE" do
    test "is that of RFC 7636, appendix B" do
      octets = <<116, 24, 223, 180, 151, 153, 224, 37, 79, 250, 96, 125, 216, 173, 187, 186>>
      octets = octets <> <<22, 212, 37, 77, 105, 214, 191, 240, 91, 88, 5, 88, 83, 132, 141, 121>>
      verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
      assert OAuth.base64url(octets) == verifier
      assert OAuth.challenge(verifier) == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    end

    test "has a new verifier of 43 unreserved characters each time" do
      verifiers = for _ <- 1..1_000, do: OAuth.verifier()
      assert length(Enum.uniq(verifiers)) == 1_000
      assert Enum.all?(verifiers, &(&1 =~ ~r/\A[A-Za-z0-9._~-]{43,128}\z/))
    end
  end

  describe "authorize/3" do
    test "asks for the least scopes of the commands, and for the person's address" do
      world = world()
      book = book(google: account(world))

      for {commands, expected} <- [
            {["email.search"], ["gmail.readonly"]},
            {["email.send"], ["gmail.send"]},
            {["email.search", "email.send"], ["gmail.readonly", "gmail.send"]},
            # One scope that covers the others.
            {["email.archive", "email.search", "email.send"], ["gmail.modify"]},
            {["calendar.list", "email.search"], ["calendar.readonly", "gmail.readonly"]}
          ] do
        wanted = ["email", "openid"] ++ Enum.map(expected, &scope/1)
        assert scopes(book, for: commands) == Enum.sort(wanted)
      end
    end

    test "asks for those of the commands that the profile may use" do
      world = world()
      folder = Path.join(System.tmp_dir!(), "skillbook_sign_in_#{System.unique_integer()}")

      for name <- ~w(email.search email.archive calendar.list) do
        [domain, action] = String.split(name, ".")
        File.mkdir_p!(Path.join(folder, domain))
        page = "---\nname: #{name}\ndescription: Does it\n---\n"
        File.write!(Path.join([folder, domain, action <> ".md"]), page)
      end

      on_exit(fn -> File.rm_rf!(folder) end)

      book =
        book([google: account(world)],
          sources: [folder],
          profiles: [
            [id: "all"],
            [id: "reader", skills: ["email.search"]],
            [id: "none", skills: []]
          ]
        )

      own = ["email", "openid"]
      all = Enum.sort(own ++ [scope("calendar.readonly"), scope("gmail.modify")])
      assert scopes(book, profile: "all") == all
      assert scopes(book, profile: "reader") == Enum.sort(own ++ [scope("gmail.readonly")])

      none = [redirect: redirect(), profile: "none"]

      assert message(Connections.authorize(book, :google, none)) ==
               "the profile none has no command that uses the account google; name the " <>
                 "commands " <>
                 "that the connection is for"
    end

    test "adds scopes to those of the connection, and asks for consent only without a token" do
      world = world()
      book = book(google: account(world))

      assert %{"prompt" => "consent", "access_type" => "offline"} =
               parameters(book, for: ["email.search"])

      {:ok, _} = connect(book, :google, for: ["email.search"])
      second = parameters(book, for: ["email.send"])
      assert second["include_granted_scopes"] == "true"
      assert second["login_hint"] == "ann@example.com"
      refute Map.has_key?(second, "prompt")

      # A covered scope needs nothing more.
      own = ["email", "openid", scope("gmail.readonly")]
      assert scopes(book, for: ["email.search"]) == Enum.sort(own)
      assert scopes(book, for: ["email.send"]) == Enum.sort([scope("gmail.send") | own])

      {:ok, connection} = connect(book, :google, for: ["email.send"])
      assert connection.scopes == Enum.sort([scope("gmail.send") | own])
      assert Connections.services(book, "default") == ["mail"]
      assert token(mail(book), [scope("gmail.send")]) =~ "ya29."
    end

    test "says what is wrong" do
      world = world()
      hubspot = [token: fn -> "t" end]
      limited = account(world, profiles: ["ann"])

      book =
        book([google: account(world), team: limited, hubspot: hubspot], profiles: [[id: "bob"]])

      no_store = book([google: account(world)], store: nil)
      no_key = book(key: [], google: account(world))
      redirect = [redirect: redirect(), profile: "bob"]

      for {book, account, options, expected} <- [
            {book, :googel, redirect,
             "expected the name of an account of the book's :connections (google, team, " <>
               "hubspot), " <>
               "got: googel"},
            {book, "nothing", redirect,
             "expected the name of an account of the book's :connections (google, team, " <>
               "hubspot), " <>
               "got: nothing"},
            {book, :hubspot, redirect,
             "the account hubspot has its secret in the book's :connections; nobody signs in " <>
               "to it"},
            {book, :team, redirect, "the profile bob may not use the account team"},
            {book, :google, [redirect: redirect(), profile: "eve"],
             "the profile eve may not use the account google"},
            {book, :google, redirect ++ [for: ["email.serch"]],
             "expected a command that uses the account google (did you mean email.search?), " <>
               "got: " <>
               "email.serch"},
            {book, :google, [profile: "bob"], "a sign-in needs the option :redirect"},
            {book, :google, [profile: "bob", redirect: "myapp:/x"],
             ~s(expected a URL such as "https://example.com/callback" as the option :redirect ) <>
               ~s(of a connection, got: "myapp:/x")},
            {no_store, :google, [redirect: redirect(), for: ["email.send"]],
             "the account google needs a book with a database, which keeps its tokens; set " <>
               "the " <>
               "option `store`, for example store: \"skillbook.db\""},
            {no_key, :google, [redirect: redirect(), for: ["email.send"]],
             "the connection google of the profile default cannot be read: the option :key of " <>
               "the book's :connections is missing; it takes 32 random bytes in base64, which " <>
               "Skillbook.Connections.generate_key/0 makes"}
          ] do
        assert message(Connections.authorize(book, account, options)) == expected
      end
    end
  end

  describe "complete/3" do
    test "stores the tokens with the address and the scopes that were granted" do
      world = world()
      book = book(google: account(world))
      assert Connections.services(book, "default") == []

      {:ok, connection} = connect(book, :google, for: ["email.search", "calendar.list"])
      assert connection.account == :google
      assert connection.identity == "ann@example.com"
      assert connection.status == :connected
      assert connection.services == [:mail, :calendar]
      assert Connections.services(book, "default") == ["calendar", "mail"]
      assert Connections.list(book) == {:ok, [connection]}
      assert mail(book).identity == "ann@example.com"
      assert call(mail(book)) == :ok
      assert asked(world) == 0
    end

    test "has only the services whose scopes the person granted" do
      world = world()
      Services.browser(world, answer: ["openid", "email", scope("calendar.readonly")])
      book = book(google: account(world))
      {:ok, connection} = connect(book, :google, for: ["email.search", "calendar.list"])
      assert connection.services == [:calendar]
      assert Connections.services(book, "default") == ["calendar"]
      assert {:error, error} = Connections.account(context(book), :mail)

      assert Exception.message(error) ==
               "the profile default has no connection for mail; a person can make it with " <>
                 "`bin/skillbook connect google`"
    end

    test "does not begin with a client whose secret cannot be read" do
      world = world()
      account = Keyword.put(account(world), :client_secret, {:env, "SKILLBOOK_TEST_NONE"})
      options = [redirect: "http://127.0.0.1/", for: ["email.search"]]

      assert message(Connections.authorize(book(google: account), :google, options)) ==
               "the account google cannot be used: the option :client_secret: the environment " <>
                 "variable SKILLBOOK_TEST_NONE is not set, or empty"

      assert Services.log(world) == []
    end

    test "takes a state once" do
      world = world()
      book = book(google: account(world))
      {:ok, parameters} = answer(book, :google, for: ["email.search"])
      answers = for _ <- 1..8, do: Task.async(fn -> Connections.complete(book, parameters) end)

      {won, lost} =
        answers |> Task.await_many(:infinity) |> Enum.split_with(&match?({:ok, _}, &1))

      assert {length(won), length(lost)} == {1, 7}

      assert lost |> Enum.map(&message/1) |> Enum.uniq() == [
               "expected the answer to a sign-in that was begun in the last 10 minutes, and " <>
                 "the " <>
                 "first one; begin again"
             ]

      assert message(Connections.complete(book, parameters)) =~ "begin again"
    end

    test "takes a state only from its profile, which still has it" do
      world = world()
      profiles = [[id: "ann"], [id: "eve"]]
      book = book([google: account(world)], profiles: profiles)
      {:ok, parameters} = answer(book, :google, profile: "ann", for: ["email.search"])

      assert {:error, %ConnectionError{kind: :state}} =
               Connections.complete(book, parameters, profile: "eve")

      assert Connections.list(book) == {:ok, []}
      assert {:ok, %{profile: "ann"}} = Connections.complete(book, parameters, profile: "ann")
      assert Connections.services(book, "eve") == []
    end

    test "takes a state only from the session that began, and at its redirect" do
      world = world()
      book = book(google: account(world))
      began = [for: ["email.search"], session: "a secret"]
      {:ok, parameters} = answer(book, :google, began)

      # Another session does not use it up.
      for options <- [[], [session: "another"], [session: <<255>>]] do
        assert {:error, %ConnectionError{kind: :state}} =
                 Connections.complete(book, parameters, options)
      end

      options = [session: "a secret", redirect: redirect()]
      assert {:ok, _connection} = Connections.complete(book, parameters, options)

      # The address of another account does.
      {:ok, parameters} = answer(book, :google, began)
      elsewhere = [session: "a secret", redirect: redirect() <> "/other"]

      for options <- [elsewhere, options] do
        assert {:error, %ConnectionError{kind: :state}} =
                 Connections.complete(book, parameters, options)
      end

      # One that began without a session does not end with one.
      {:ok, parameters} = answer(book, :google, for: ["email.search"])

      assert {:error, %ConnectionError{kind: :state}} =
               Connections.complete(book, parameters, session: "a secret")

      assert message(Connections.complete(book, parameters, session: "")) ==
               ~s(expected a text as the option :session of a connection, got: "")
    end

    test "refuses a state after 10 minutes" do
      world = world()
      book = book(google: account(world))
      {:ok, parameters} = answer(book, :google, for: ["email.search"])
      sql = Book.sql(Book.fetch!(book))
      SQL.query!(sql, "update skillbook_sign_ins set expires_at = expires_at - 540000")
      {:ok, other} = answer(book, :google, for: ["email.search"])
      assert {:ok, _} = Connections.complete(book, parameters)
      SQL.query!(sql, "update skillbook_sign_ins set expires_at = expires_at - 600001")
      assert {:error, %ConnectionError{kind: :state}} = Connections.complete(book, other)
    end

    test "refuses parameters that are not a vendor's answer" do
      world = world()
      book = book(google: account(world))

      for parameters <- [
            %{},
            %{"state" => ""},
            %{"state" => nil, "code" => "a"},
            %{"state" => "unknown", "code" => "a"},
            %{"state" => ["a"], "code" => "a"},
            %{"state" => String.duplicate("a", 201), "code" => "a"},
            %{"state" => <<255>>, "code" => "a"}
          ] do
        assert {:error, %ConnectionError{kind: :state}} = Connections.complete(book, parameters)
      end

      for {change, reason} <- [
            {&Map.delete(&1, "code"), "the answer has neither code nor error"},
            {&Map.put(&1, "code", ""), "the answer has neither code nor error"},
            {&Map.put(&1, "code", String.duplicate("a", 4_097)),
             "the answer has neither code nor error"},
            {&(&1 |> Map.delete("code") |> Map.put("error", "access_denied")),
             "the person has not allowed it"},
            {&(&1 |> Map.delete("code") |> Map.put("error", "server_error")),
             "the vendor answered server_error"},
            {&(&1 |> Map.delete("code") |> Map.put("error", "\e[31m<b>")),
             "the vendor answered an unknown error"}
          ] do
        {:ok, parameters} = answer(book, :google, for: ["email.search"])

        assert message(Connections.complete(book, change.(parameters))) ==
                 "the connection google of the profile default was not made: #{reason}"
      end
    end

    test "says that the person has not allowed it" do
      world = world(browser: %{answer: "deny"})
      book = book(google: account(world))

      assert message(connect(book, :google, for: ["email.search"])) ==
               "the connection google of the profile default was not made: the person has not " <>
                 "allowed it"
    end

    test "does not take the token of one person with the address of another" do
      world = world()
      book = book(google: account(world))
      {:ok, _} = connect(book, :google, for: ["email.search"])
      Services.browser(world, user: "bob@example.com")
      {:ok, connection} = connect(book, :google, for: ["email.send"])
      assert connection.identity == "bob@example.com"
      assert mail(book).identity == "bob@example.com"

      # Google gives no second refresh token, and that of another person does not help.
      Services.browser(world, user: "ann@example.com")

      assert message(connect(book, :google, for: ["email.send"])) ==
               "the connection google of the profile default was not made: the vendor gave no " <>
                 "token to renew it with; withdraw the access of this application in the " <>
                 "settings of the vendor's account, and connect again"

      assert mail(book).identity == "bob@example.com"
    end

    test "does not take the token of one person for another one, if both hide their address" do
      world = world()
      book = book([google: account(world)], profiles: [[id: "default"], [id: "bob"]])
      Services.browser(world, answer: ["openid", scope("gmail.readonly")])
      {:ok, %{identity: nil}} = connect(book, :google, for: ["email.search"])
      {:ok, [before]} = Connections.list(book, profile: "default")

      answer = ["openid", scope("gmail.readonly")]
      Services.browser(world, user: "bob@example.com", answer: answer)

      # Bob's first consent, for which Google gives the token that renews.
      {:ok, _} = connect(book, :google, for: ["email.search"], profile: "bob")
      {:ok, url} = without_consent(book)
      {302, location} = Services.open(url)
      query = location |> URI.parse() |> Map.fetch!(:query) |> URI.decode_query()

      assert message(Connections.complete(book, query)) ==
               "the connection google of the profile default was not made: the vendor gave no " <>
                 "token to renew it with; withdraw the access of this application in the " <>
                 "settings of the vendor's account, and connect again"

      assert Connections.list(book, profile: "default") == {:ok, [before]}

      # So Google is asked for a new token, which it gives only after a consent.
      assert parameters(book, for: ["email.search"])["prompt"] == "consent"
    end

    defp without_consent(book) do
      options = [redirect: redirect(), for: ["email.search"]]

      with {:ok, %{url: url}} <- Connections.authorize(book, :google, options),
           do: {:ok, String.replace(url, "&prompt=consent", "")}
    end

    test "keeps at most 20 sign-ins of a profile" do
      world = world()
      book = book([google: account(world)], profiles: [[id: "a"], [id: "b"]])
      for _ <- 1..25, do: parameters(book, profile: "a", for: ["email.search"])
      parameters(book, profile: "b", for: ["email.search"])
      sql = Book.sql(Book.fetch!(book))
      query = "select profile, count(*) from skillbook_sign_ins group by profile order by profile"
      assert SQL.query!(sql, query).rows == [["a", 20], ["b", 1]]
    end
  end

  describe "disconnect/3" do
    test "revokes at the vendor, and deletes" do
      world = world()
      book = book(google: account(world))
      {:ok, _} = connect(book, :google, for: ["email.search"])
      account = mail(book)
      token = token(account)
      assert Connections.disconnect(book, :google) == {:ok, %{revoked: true, reason: nil}}
      assert Connections.list(book) == {:ok, []}
      assert Connections.services(book, "default") == []
      assert {:error, %ConnectionError{kind: :none}} = Connections.token(account, [])
      assert "oauth.revoke" in Services.methods(world)

      url = world.url <> "/v1/userinfo"
      headers = [{"authorization", "Bearer " <> token}]
      assert {:ok, %{status: 401}} = Skillbook.HTTP.request(url: url, headers: headers)
      assert {:error, %ConnectionError{kind: :none}} = Connections.disconnect(book, :google)
    end

    test "deletes even if the vendor is down, and says so" do
      for {fault, reason} <- [
            {[status: 503], ~s(status 503, temporarily_unavailable: "fault")},
            {[cut: 0], ~r/: closed before an answer\z|: the connection broke\z/}
          ] do
        world = world()
        book = book(google: account(world))
        {:ok, _} = connect(book, :google, for: ["email.search"])
        Services.fault(world, [method: "oauth.revoke", times: nil] ++ fault)
        assert {:ok, %{revoked: false, reason: got}} = Connections.disconnect(book, :google)
        if is_binary(reason), do: assert(got == reason), else: assert(got =~ reason)
        assert Connections.list(book) == {:ok, []}
        assert Connections.services(book, "default") == []
      end
    end
  end

  test "options are checked" do
    book = book(hubspot: [token: fn -> "t" end])
    assert {:error, %OptionError{option: :profil}} = Connections.list(book, profil: "a")
    assert_raise ArgumentError, fn -> Connections.list(:no_book) end
  end
end
