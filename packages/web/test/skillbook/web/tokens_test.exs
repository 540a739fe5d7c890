defmodule Skillbook.Web.TokensTest do
  # Tokens: how they are made, kept, used, limited to areas, and how they end.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Book, OptionError, SQL, TokenError}
  alias Skillbook.Test.Requests
  alias Skillbook.Web.{Attempts, Secrets, Token, Tokens}

  doctest Skillbook.Web.Tokens
  doctest Skillbook.TokenError

  # The API has its errors as JSON.
  defp error("/api" <> _, text), do: ~s({"error":"#{text}"})
  defp error(_target, text), do: text <> "\n"

  setup do
    name =
      book(
        store: ":memory:",
        profiles: [[id: "default"], [id: "ann", grants: ["a"]], [id: "bob"]]
      )

    %{book: name, web: Requests.web(name, authenticate: :tokens), sql: sql(name)}
  end

  defp sql(name), do: name |> Book.fetch!() |> Book.sql()

  defp bearer(%Token{secret: secret}), do: bearer(secret.())
  defp bearer(text), do: [headers: [{"authorization", "Bearer " <> text}]]

  defp create!(book, options) do
    {:ok, token} = Tokens.create(book, options)
    token
  end

  test "the text of a token has 256 random bits and a checksum, and is stored nowhere", context do
    token = create!(context.book, profile: "ann", label: "laptop", scopes: [:api, :page])
    text = token.secret.()
    assert text =~ ~r/\Asb_[0-9A-Za-z]{49}\z/
    assert text != create!(context.book, profile: "ann").secret.()

    {:ok, %{rows: rows}} = SQL.query(context.sql, "select * from skillbook_tokens")
    assert length(rows) == 2
    refute inspect(rows, limit: :infinity) =~ text
    assert inspect(rows) =~ Secrets.hash(text)
    refute inspect(token) =~ text

    # Two wrong characters, or one in another place, do not pass the checksum.
    for place <- [3, 20, 50] do
      {before, <<character, rest::binary>>} = :erlang.split_binary(text, place)
      wrong = if character == ?0, do: ?1, else: ?0
      assert Secrets.token?(text)
      refute Secrets.token?(<<before::binary, wrong, rest::binary>>)
    end
  end

  for {options, message} <- [
        {[profile: "eve"],
         ~s(expected one of the profiles ann, bob, default as the option :profile of a token, ) <>
           ~s(got: "eve")},
        {[scopes: []],
         "expected a list of :page, :mcp, :api, :chat, :discovery as the option :scopes of a " <>
           "token, got: []"},
        {[scopes: [:admin]],
         "expected a list of :page, :mcp, :api, :chat, :discovery as the option :scopes of a " <>
           "token, got: [:admin]"},
        {[expires_in: 0],
         "expected a number of seconds up to 315360000 or nil as the option :expires_in of a " <>
           "token, got: 0"},
        {[expires: 5],
         "unknown option :expires for a token, did you mean :expires_in? The options are " <>
           ":profile, :scopes, :operator, :label, :expires_in"}
      ] do
    test "create with #{inspect(options)}", %{book: book} do
      {:error, %OptionError{} = error} = Tokens.create(book, unquote(options))
      assert Exception.message(error) == unquote(message)
    end
  end

  test "a book without a database has no tokens" do
    name = book(sources: [])
    message = "expected a book with a database, which stores tokens; set the option `store`, "

    for call <- [
          fn -> Tokens.create(name) end,
          fn -> Tokens.list(name) end,
          fn -> Tokens.revoke(name, "t-1") end
        ] do
      {:error, %TokenError{kind: :store} = error} = call.()
      assert Exception.message(error) == message <> "for example store: \"skillbook.db\""
    end

    web = Skillbook.Web.new!(book: name)
    {:error, error} = Skillbook.Web.listen(web, {:tcp, {127, 0, 0, 1}, 1})

    assert Exception.message(error) ==
             "expected a function or :none for a book without a :store, as the option " <>
               ":authenticate of Skillbook.Web, got: :tokens"
  end

  test "list has all tokens or those of a profile, without secrets; revoke ends one", context do
    %{book: book, web: web} = context
    one = create!(book, profile: "ann", label: "one")
    two = create!(book, profile: "bob", scopes: [:api], operator: true, expires_in: 60)

    {:ok, all} = Tokens.list(book)
    assert Enum.sort(Enum.map(all, & &1.id)) == Enum.sort([one.id, two.id])
    {:ok, [bob]} = Tokens.list(book, profile: "bob")
    assert bob == %{two | secret: nil}
    assert {bob.operator?, bob.scopes} == {true, [:api]}
    assert DateTime.diff(bob.expires_at, bob.created_at) == 60

    assert Requests.call(web, "GET", "/api/skills", bearer(one)).status == 200
    assert Tokens.revoke(book, one.id) == :ok
    assert Requests.call(web, "GET", "/api/skills", bearer(one)).status == 401
    {:error, error} = Tokens.revoke(book, one.id)

    assert Exception.message(error) ==
             "no token has the id #{one.id}; Skillbook.Web.Tokens.list/2 and " <>
               "`skillbook token list` list them"
  end

  # A header, and whether it makes a caller.
  for {name, make, status} <- [
        {"a token", &__MODULE__.itself/1, 200},
        {"another case of the scheme", &__MODULE__.lower/1, 200},
        {"nothing", &__MODULE__.nothing/1, 401},
        {"a token without a scheme", &__MODULE__.bare/1, 401},
        {"a token of Basic", &__MODULE__.basic/1, 401},
        {"a token with another end", &__MODULE__.longer/1, 401},
        {"a text of the same form", &__MODULE__.other/1, 401},
        {"a foreign token", &__MODULE__.foreign/1, 401},
        {"two tokens", &__MODULE__.two/1, 401},
        {"its hash", &__MODULE__.hash/1, 401},
        {"a token in the query", &__MODULE__.query/1, 400}
      ] do
    test "#{name} answers #{status}", %{book: book, web: web} do
      {target, headers} = unquote(make).(create!(book, scopes: [:api]).secret.())
      response = Requests.call(web, "GET", target, headers: headers)
      assert response.status == unquote(status)

      if response.status == 401,
        do: assert(Requests.header(response, "www-authenticate") == "Bearer")
    end
  end

  def itself(text), do: authorization("Bearer " <> text)
  def lower(text), do: authorization("bearer " <> text)
  def nothing(_text), do: {"/api/skills", []}
  def bare(text), do: authorization(text)
  def basic(text), do: authorization("Basic " <> Base.encode64("a:" <> text))
  def longer(text), do: authorization("Bearer " <> text <> "0")
  def other(_text), do: authorization("Bearer " <> Secrets.token().())
  def foreign(_text), do: authorization("Bearer eyJhbGciOiJIUzI1NiJ9.e30.x")
  def two(text), do: authorization("Bearer #{text}, Bearer #{text}")
  def hash(text), do: authorization("Bearer " <> Secrets.hash(text))

  def query(text),
    do: {"/api/skills?access_token=" <> text, [{"authorization", "Bearer " <> text}]}

  defp authorization(value), do: {"/api/skills", [{"authorization", value}]}

  test "a token ends when it expires, and its last use is noted once a minute", context do
    %{book: book, web: web, sql: sql} = context
    token = create!(book, expires_in: 600)
    call = fn -> Requests.call(web, "GET", "/api/skills", bearer(token)).status end
    used = fn -> SQL.query!(sql, "select used_at from skillbook_tokens").rows end
    assert call.() == 200
    [[first]] = used.()
    assert is_integer(first)

    SQL.query!(sql, "update skillbook_tokens set used_at = $1", [first - 30])
    assert {call.(), used.()} == {200, [[first - 30]]}
    SQL.query!(sql, "update skillbook_tokens set used_at = $1", [first - 61])
    assert call.() == 200
    assert [[again]] = used.()
    assert again >= first

    SQL.query!(sql, "update skillbook_tokens set expires_at = $1", [first - 1])
    assert call.() == 401
    # The next token of the profile deletes it.
    create!(book, [])
    {:ok, tokens} = Tokens.list(book)
    refute token.id in Enum.map(tokens, & &1.id)
  end

  test "a token of a profile that is gone is refused", %{book: book, web: web, sql: sql} do
    token = create!(book, profile: "ann")
    SQL.query!(sql, "update skillbook_tokens set profile = 'gone'")
    assert Requests.call(web, "GET", "/api/skills", bearer(token)).status == 401
  end

  test "a profile has at most 1,000 tokens", %{book: book, sql: sql} do
    create!(book, profile: "ann")

    SQL.query!(sql, """
    insert into skillbook_tokens (id, hash, profile, operator, scopes, created_at)
    with recursive n(i) as (select 1 union all select i + 1 from n where i < 999)
    select 'x' || i, 'x' || i, 'ann', 0, 'api', 1 from n
    """)

    {:error, error} = Tokens.create(book, profile: "ann")

    assert Exception.message(error) ==
             "the profile ann has 1000 tokens, the maximum; revoke those that are not needed"

    assert {:ok, _token} = Tokens.create(book, profile: "bob")
  end

  test "a database that does not answer is told from a wrong token", %{book: book, web: web} do
    token = create!(book, scopes: [:api])
    SQL.query!(sql(book), "alter table skillbook_tokens rename to away")
    response = Requests.call(web, "GET", "/api/skills", bearer(token))
    text = error("/api", "The database of tokens does not answer.")
    assert {response.status, response.body} == {503, text}
    assert Requests.header(response, "retry-after") == "5"
  end

  test "an application's own authentication takes tokens too, and refuses wrong ones", context do
    web = Requests.web(context.book, authenticate: fn _request -> {:ok, "ann"} end)
    token = create!(context.book, profile: "bob", scopes: [:api])
    assert Requests.call(web, "GET", "/api/skills", bearer(token)).status == 200
    # With the rights of the token, not with those of the application's profile.
    assert Requests.call(web, "GET", "/skills", bearer(token)).status == 403
    wrong = Secrets.token().()
    assert Requests.call(web, "GET", "/api/skills", bearer(wrong)).status == 401
    # Tokens of others are the application's.
    assert Requests.call(web, "GET", "/api/skills", bearer("eyJhbGci")).status == 200
  end

  describe "what is published" do
    @index "/.well-known/agent-skills/index.json"

    # What the request has, and the statuses of the index, of a skill and of one that the profile
    # does not see: where they are published, and where they are not.
    for {given, published, not_published} <- [
          {"no token", {200, 200, 404}, {401, 401, 401}},
          {"a token of the published profile", {200, 200, 404}, {200, 200, 404}},
          {"a token of a profile that sees more", {200, 200, 404}, {200, 200, 200}},
          {"a token of another tenant", {200, 200, 404}, {200, 200, 404}},
          {"a token for other areas", {200, 200, 404}, {403, 403, 403}},
          {"a revoked token", {200, 200, 404}, {401, 401, 401}},
          {"a wrong token", {200, 200, 404}, {401, 401, 401}},
          {"a token of others", {200, 200, 404}, {401, 401, 401}},
          {"another scheme", {200, 200, 404}, {401, 401, 401}}
        ] do
      @tag :tmp_dir
      test "is the same for everyone, also with #{given}", %{tmp_dir: folder} do
        label = "visibility_labels: [a]\n"

        write(folder, %{
          "one/SKILL.md" => "---\nname: one\ndescription: One\n---\nOne.\n",
          "two/SKILL.md" => "---\nname: two\ndescription: Two\n#{label}---\nTwo.\n"
        })

        profiles = [[id: "ann", grants: ["a"]], [id: "bob"], [id: "far", tenant: "far"]]
        options = [sources: [folder], builtins: false, store: ":memory:", profiles: profiles]
        book = book(options)
        headers = headers(unquote(given), book)
        peer = {10, :rand.uniform(255), :rand.uniform(255), :rand.uniform(255)}
        plain = published(Requests.web(book, authenticate: :tokens, publish: "bob"), [], peer)

        for authenticate <- [:tokens, fn _ -> :error end, fn _ -> {:redirect, "/sign-in"} end] do
          web = Requests.web(book, authenticate: authenticate, publish: "bob")
          got = published(web, headers, peer)
          assert statuses(got) == unquote(Macro.escape(published))
          # All bytes and headers, for caches.
          assert got == plain
          # Nothing else is open by that.
          assert Requests.call(web, "GET", "/api/skills").status == 401
          assert Requests.call(web, "PUT", @index).status == 401
        end

        # Nobody has counted a wrong one.
        for _ <- 1..50, do: published(Requests.web(book, publish: "bob"), headers, peer)
        assert Attempts.wait(peer) == 0

        private = Requests.web(book, authenticate: :tokens)
        expected = unquote(Macro.escape(not_published))
        assert statuses(published(private, headers, :unix)) == expected
      end
    end

    defp headers("no token", _book), do: []
    defp headers("a token of others", _book), do: bearer("eyJhbGci")[:headers]
    defp headers("another scheme", _book), do: [{"authorization", "Basic YTpi"}]
    defp headers("a wrong token", _book), do: bearer(Secrets.token().())[:headers]

    defp headers("a revoked token", book) do
      token = create!(book, profile: "ann")
      :ok = Tokens.revoke(book, token.id)
      bearer(token)[:headers]
    end

    defp headers("a token for other areas", book),
      do: bearer(create!(book, profile: "ann", scopes: [:api]))[:headers]

    defp headers(given, book) do
      profile = %{"published" => "bob", "more" => "ann", "tenant" => "far"}
      {_word, id} = Enum.find(profile, fn {word, _id} -> given =~ word end)
      bearer(create!(book, profile: id))[:headers]
    end

    defp published(web, headers, peer) do
      for target <- [@index, "/.well-known/agent-skills/one/SKILL.md"] ++ two(),
          do: Requests.call(web, "GET", target, headers: headers, peer: peer)
    end

    defp two, do: ["/.well-known/agent-skills/two/SKILL.md"]
    defp statuses(responses), do: responses |> Enum.map(& &1.status) |> List.to_tuple()
  end

  describe "wrong tokens of one address" do
    test "are refused after 20 in a minute, but not right ones", context do
      %{book: book, web: web} = context
      peer = {10, :rand.uniform(255), :rand.uniform(255), :rand.uniform(255)}
      {known, new} = {create!(book, []), create!(book, [])}

      call = fn token, peer ->
        Requests.call(web, "GET", "/api/skills", bearer(token) ++ [peer: peer])
      end

      wrong = fn -> call.(Secrets.token().(), peer).status end
      assert call.(known, peer).status == 200
      # The minute may end in between.
      statuses = for _time <- 1..45, do: wrong.()
      assert Enum.take(statuses, 20) == List.duplicate(401, 20)
      response = call.(Secrets.token().(), peer)
      assert response.status == 429
      seconds = Requests.header(response, "retry-after")
      assert String.to_integer(seconds) in 1..60

      assert response.body ==
               error(
                 "/api",
                 "Too many wrong tokens came from this address. Try again in #{seconds} seconds."
               )

      # A token that was right lately is looked up; another one waits.
      assert call.(known, peer).status == 200
      assert call.(new, peer).status == 429
      other = put_elem(peer, 3, rem(elem(peer, 3) + 1, 256))
      assert call.(new, other).status == 200
      # No limit for a unix socket.
      assert for(_time <- 1..30, uniq: true, do: call.(Secrets.token().(), :unix).status) == [401]
      assert :ok = Tokens.revoke(book, known.id)
      assert call.(known, peer).status == 401
    end
  end

  # Every route, with every method, for tokens of each scope: a token of one area opens nothing
  # else.
  @areas [
    {:page, "/"},
    {:page, "/skills"},
    {:page, "/skills/email.send"},
    {:page, "/events"},
    {:page, "/anything/else"},
    {:mcp, "/mcp"},
    {:api, "/api/skills"},
    {:api, "/api/skills/email.send"},
    {:api, "/api"},
    {:discovery, "/.well-known/agent-skills/index.json"},
    {:discovery, "/.well-known/agent-skills/x/SKILL.md"}
  ]

  test "a token opens the areas of its scopes, and nothing else", %{book: book, web: web} do
    for scopes <- [[:page], [:mcp], [:api], [:discovery], [:api, :mcp]],
        token = create!(book, scopes: scopes),
        {area, target} <- @areas,
        method <- ~w(GET HEAD POST PUT PATCH DELETE) do
      response = Requests.respond(web, method, target, bearer(token))
      label = "#{method} #{target} with #{inspect(scopes)}: #{response.status}"
      text = error(target, "The token is not for this part of the server.")

      if area in scopes do
        # The route may have its own rules.
        refute response.status == 401, label
        refute text(response.body) == text, label
      else
        assert response.status == 403, label
        if method != "HEAD", do: assert(text(response.body) == text)
      end
    end
  end

  defp text({:stream, _fun}), do: ""
  defp text(body), do: IO.iodata_to_binary(body)
end
