defmodule Skillbook.Web.SessionTest do
  # Browsers: the one-time link, the form that takes a token, the cookie, forms, and the end.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Book, SQL}
  alias Skillbook.Test.Requests
  alias Skillbook.Web.{Secrets, Sessions, Tokens}

  setup do
    name = book(store: ":memory:", profiles: [[id: "default"], [id: "ann"]])
    sql = name |> Book.fetch!() |> Book.sql()
    %{book: name, web: Requests.web(name, authenticate: :tokens), sql: sql}
  end

  defp link(book, profile \\ "default", operator? \\ true) do
    {:ok, link} = Tokens.link(book, profile: profile, operator: operator?, url: "http://a")
    "http://a" <> path = link.()
    path
  end

  defp token(book, options \\ []) do
    {:ok, token} = Tokens.create(book, Keyword.merge([scopes: [:page], profile: "ann"], options))
    token
  end

  # The cookie of a response, as a browser would send it back.
  defp cookie(response) do
    [pair | _attributes] = response |> Requests.header("set-cookie") |> String.split("; ")
    [{"cookie", pair}]
  end

  defp secret([{"cookie", pair}]), do: pair |> String.split("=", parts: 2) |> List.last()
  defp csrf(cookie), do: cookie |> secret() |> Secrets.csrf()

  defp signed_in(web, book), do: cookie(Requests.call(web, "GET", link(book)))

  defp login(web, token, options \\ []) do
    fields = %{"token" => token.secret.(), "to" => options[:to] || ""}
    Requests.call(web, "POST", "/login", [form: fields] ++ Keyword.drop(options, [:to]))
  end

  # A page that needs a caller, and does not exist; so 404 means signed in.
  @page "/no/such/page"

  defp signed_in?(web, cookie) do
    case Requests.call(web, "GET", @page, headers: cookie).status do
      303 -> false
      404 -> true
    end
  end

  describe "the one-time link" do
    test "signs one browser in, once", %{book: book, web: web} do
      link = link(book)
      response = Requests.call(web, "GET", link)
      assert response.status == 200
      assert response.body =~ ~s(<meta http-equiv="refresh" content="0;url=/">)
      assert signed_in?(web, cookie(response))

      again = Requests.call(web, "GET", link)
      assert again.status == 410
      assert again.body =~ "This link does not work any more"
      assert again.body =~ "press Enter where <code>skillbook serve</code> runs"
      assert Requests.header(again, "set-cookie") == nil
      # The browser that has used it may open it again.
      assert Requests.call(web, "GET", link, headers: cookie(response)).status == 303
    end

    test "ends after five minutes", %{book: book, web: web, sql: sql} do
      link = link(book)
      query = "select expires_at - created_at from skillbook_sessions"
      assert SQL.query!(sql, query).rows == [[300]]
      # Not the last second, which may end before the request.
      SQL.query!(sql, "update skillbook_sessions set expires_at = expires_at - 290")
      assert Requests.call(web, "GET", link).status == 200
      link = link(book)
      SQL.query!(sql, "update skillbook_sessions set expires_at = expires_at - 300")
      assert Requests.call(web, "GET", link).status == 410
    end

    test "is not used up by a look at it", %{book: book, web: web} do
      link = link(book)
      assert Requests.call(web, "HEAD", link).status == 405

      for header <- [{"sec-purpose", "prefetch;prerender"}, {"purpose", "prefetch"}],
          do: assert(Requests.call(web, "GET", link, headers: [header]).status == 503)

      assert Requests.call(web, "POST", link).status == 405
      assert Requests.call(web, "GET", link).status == 200
    end

    test "opens in a window alone: other websites send no wrong ones", %{book: book, web: web} do
      from = {127, 0, 0, 7}

      for dest <- ~w(image iframe script empty object), _time <- 1..10 do
        headers = [{"sec-fetch-dest", dest}, {"sec-fetch-site", "cross-site"}]
        response = Requests.call(web, "GET", "/open/wrong", headers: headers, peer: from)

        assert {response.status, response.body} ==
                 {403, "Open this link in a window of its own.\n"}
      end

      link = link(book)
      frame = [headers: [{"sec-fetch-dest", "iframe"}], peer: from]
      window = [headers: [{"sec-fetch-dest", "document"}], peer: from]
      assert Requests.call(web, "GET", link, frame).status == 403
      assert Requests.call(web, "GET", link, window).status == 200
    end

    test "is used by one of many that open it at once", %{book: book, web: web} do
      link = link(book)

      statuses =
        1..20
        |> Enum.map(fn _ ->
          Task.async(fn -> Requests.call(web, "GET", link, peer: :unix).status end)
        end)
        |> Task.await_many(:infinity)

      assert Enum.count(statuses, &(&1 == 200)) == 1
      assert Enum.count(statuses, &(&1 == 410)) == 19
    end

    test "its secret is no session, and the secret of a session no link", context do
      %{book: book, web: web} = context
      "/open/" <> secret = link(book)
      refute signed_in?(web, [{"cookie", "skillbook-4004=" <> secret}])
      session = secret(signed_in(web, book))
      assert Requests.call(web, "GET", "/open/" <> session).status == 410
    end

    test "of a profile that is gone begins no session", %{book: book, web: web, sql: sql} do
      link = link(book)
      SQL.query!(sql, "update skillbook_sessions set profile = 'gone'")
      assert Requests.call(web, "GET", link).status == 401
      {:error, error} = Tokens.link(book, profile: "gone")

      assert Exception.message(error) ==
               ~s(expected one of the profiles ann, default as the option :profile of a link, ) <>
                 ~s(got: "gone")
    end
  end

  describe "the form" do
    test "takes a token with the scope page, and goes on to the page", context do
      %{book: book, web: web} = context
      response = Requests.call(web, "GET", "/skills?q=%C3%A9")
      assert response.status == 303
      to = "/login?to=%2Fskills%3Fq%3D%25C3%25A9"
      assert Requests.header(response, "location") == to
      form = Requests.call(web, "GET", to)
      assert form.status == 200
      assert form.body =~ ~s(name="to" value="/skills?q=%C3%A9")
      assert form.body =~ ~s(<label for="field-token">)

      response = login(web, token(book), to: "/skills?q=%C3%A9")
      assert {response.status, Requests.header(response, "location")} == {303, "/skills?q=%C3%A9"}
      assert signed_in?(web, cookie(response))
    end

    test "refuses other tokens, and says why", %{book: book, web: web} do
      response = login(web, token(book, scopes: [:api, :mcp]))
      assert response.status == 403
      assert response.body =~ "This token does not open the page: it has no scope page."
      assert Requests.header(response, "set-cookie") == nil

      response = login(web, %{secret: Secrets.token()})
      assert response.status == 401
      assert response.body =~ "This token is not valid. It may be mistyped, removed or expired."

      response = Requests.call(web, "POST", "/login", body: "token=x")
      assert response.status == 401
      response = Requests.call(web, "POST", "/login", body: String.duplicate("x", 16_385))
      assert {response.status, response.body} == {413, "The form is too long.\n"}
    end

    for {to, location} <- [
          {"/skills", "/skills"},
          {"https://evil.example/", "/"},
          {"//evil.example/", "/"},
          {"/\\evil.example", "/"},
          {"/\0", "/"},
          {"/\x01", "/"},
          {"/skills\x7F", "/"},
          {"/a b", "/"},
          {"/a\nset-cookie: x", "/"},
          {"javascript:alert(1)", "/"},
          {"", "/"}
        ] do
      test "goes from #{inspect(to)} to #{location}", %{book: book, web: web} do
        response = login(web, token(book), to: unquote(to))
        assert Requests.header(response, "location") == unquote(location)
      end
    end

    test "below a base goes only to pages below it", %{book: book, web: web} do
      for {to, location} <- [{"/admin/skills", "/admin/skills"}, {"/other", "/admin/"}] do
        response = login(web, token(book), to: to, base: "/admin")
        assert Requests.header(response, "location") == location
      end
    end

    test "of another website is refused", %{book: book, web: web} do
      response = login(web, token(book), headers: [{"origin", "https://evil.example"}])

      assert {response.status, response.body} ==
               {403, "This request comes from another website.\n"}
    end
  end

  describe "the cookie" do
    test "is of this host and port, and not for scripts or other websites", context do
      %{book: book, web: web} = context

      for {options, url, expected} <- [
            {[], nil,
             ~r/\Askillbook-4004=[\w-]{43}; Path=.; Max-Age=604800; HttpOnly; SameSite=Strict\z/},
            {[scheme: :https], nil,
             ~r/\A__Host-skillbook-4004=.*; HttpOnly; SameSite=Strict; Secure\z/},
            {[host: "s.example"], "https://s.example",
             ~r/\A__Host-skillbook=.*; HttpOnly; SameSite=Strict; Secure\z/},
            {[], "https://s.example", ~r/\Askillbook-4004=.*SameSite=Strict\z/}
          ] do
        response = Requests.call(%{web | url: url}, "GET", link(book), options)
        assert Requests.header(response, "set-cookie") =~ expected
      end
    end

    test "opens the page and nothing else", %{book: book, web: web} do
      cookie = signed_in(web, book)
      assert signed_in?(web, cookie)

      for target <- ["/api/skills", "/mcp", "/.well-known/agent-skills/index.json"],
          do: assert(Requests.call(web, "GET", target, headers: cookie).status == 401, target)
    end

    test "gets a new secret at every sign-in, and the old one ends", %{book: book, web: web} do
      old = signed_in(web, book)
      response = login(web, token(book), headers: old)
      new = cookie(response)
      assert secret(new) != secret(old)
      assert signed_in?(web, new)
      refute signed_in?(web, old)
      # A secret that somebody else has chosen is not taken over.
      chosen = [{"cookie", "skillbook-4004=" <> String.duplicate("a", 43)}]
      response = Requests.call(web, "GET", link(book), headers: chosen)
      assert secret(cookie(response)) != secret(chosen)
      refute signed_in?(web, chosen)
    end

    test "its secret is stored nowhere", %{book: book, web: web, sql: sql} do
      secret = secret(signed_in(web, book))
      {:ok, %{rows: rows}} = SQL.query(sql, "select * from skillbook_sessions")
      assert inspect(rows) =~ Secrets.hash(secret)
      refute inspect(rows) =~ secret
    end
  end

  describe "a session ends" do
    for {what, column, seconds, lasts?} <- [
          {"43,199 seconds after its last request", "used_at", 43_199 - 10, true},
          {"43,200 seconds after its last request", "used_at", 43_200, false},
          {"before its end", "expires_at", 604_700, true},
          {"at its end", "expires_at", 604_800, false}
        ] do
      test "#{what}: #{not lasts?}", %{book: book, web: web, sql: sql} do
        cookie = signed_in(web, book)
        column = unquote(column)
        seconds = unquote(seconds)
        SQL.query!(sql, "update skillbook_sessions set #{column} = #{column} - #{seconds}")
        assert signed_in?(web, cookie) == unquote(lasts?)
      end
    end

    test "with its token, whether revoked or expired", %{book: book, web: web, sql: sql} do
      token = token(book)
      cookie = cookie(login(web, token))
      assert signed_in?(web, cookie)
      :ok = Tokens.revoke(book, token.id)
      refute signed_in?(web, cookie)

      cookie = cookie(login(web, token(book, expires_in: 600)))
      assert signed_in?(web, cookie)
      SQL.query!(sql, "update skillbook_tokens set expires_at = 1")
      refute signed_in?(web, cookie)
    end

    test "when its token has no scope page any more", %{book: book, web: web, sql: sql} do
      cookie = cookie(login(web, token(book)))
      SQL.query!(sql, "update skillbook_tokens set scopes = 'api'")
      assert Requests.call(web, "GET", @page, headers: cookie).status == 403
    end

    test "by signing out, with the token of the form", %{book: book, web: web} do
      cookie = signed_in(web, book)

      response = Requests.call(web, "POST", "/logout", headers: cookie)
      assert response.status == 403
      assert signed_in?(web, cookie)

      form = %{"_csrf" => csrf(cookie)}
      response = Requests.call(web, "POST", "/logout", headers: cookie, form: form)
      assert {response.status, Requests.header(response, "location")} == {303, "/login"}
      assert Requests.header(response, "set-cookie") =~ "skillbook-4004=; Path=/; Max-Age=0;"
      refute signed_in?(web, cookie)
      assert Requests.call(web, "GET", "/logout", headers: cookie).status == 405
    end

    test "as the oldest of 100 of a profile", %{book: book, web: web, sql: sql} do
      first = signed_in(web, book)
      SQL.query!(sql, "update skillbook_sessions set used_at = used_at - 10")
      for _time <- 1..99, do: Sessions.start(Book.fetch!(book), session(), 600)
      refute_in_database = fn -> signed_in?(web, first) end
      assert refute_in_database.()

      SQL.query!(sql, "update skillbook_sessions set used_at = used_at - 20 where hash = $1", [
        Secrets.hash(secret(first))
      ])

      Sessions.start(Book.fetch!(book), session(), 600)
      refute signed_in?(web, first)
      assert [[100]] = SQL.query!(sql, "select count(*) from skillbook_sessions").rows
    end
  end

  test "a session of a profile that is gone leads to the form, which is shown", context do
    %{book: book, web: web, sql: sql} = context
    cookie = signed_in(web, book)
    SQL.query!(sql, "update skillbook_sessions set profile = 'gone'")
    response = Requests.call(web, "GET", "/skills", headers: cookie)

    assert {response.status, Requests.header(response, "location")} ==
             {303, "/login?to=%2Fskills"}

    assert Requests.call(web, "GET", "/login", headers: cookie).status == 200
    # Signed in, there is no form.
    cookie = signed_in(web, book)
    response = Requests.call(web, "GET", "/login?to=%2Fnew", headers: cookie)
    assert {response.status, Requests.header(response, "location")} == {303, "/new"}
  end

  test "wrong tokens in the form and wrong links count, and are refused after 20", context do
    %{book: book, web: web} = context
    link = link(book)

    for {method, target, options, status} <- [
          {"POST", "/login", [form: %{"token" => "sb_x"}], 401},
          {"GET", "/open/x", [], 410}
        ] do
      peer = {10, :rand.uniform(255), :rand.uniform(255), :rand.uniform(255)}
      call = fn -> Requests.call(web, method, target, [peer: peer] ++ options).status end
      # The minute may end in between.
      statuses = for _time <- 1..45, do: call.()
      assert Enum.take(statuses, 20) == List.duplicate(status, 20)
      assert List.last(statuses) == 429
      assert Requests.call(web, "GET", link, peer: peer).status == 429
      # Those who are signed in are not asked.
      assert signed_in?(web, signed_in(web, book))
    end

    # The link was not used up.
    assert Requests.call(web, "GET", link).status == 200
  end

  defp session, do: %{profile: "default", operator?: false, token: nil, scopes: :all}

  # {what a form sends, whether it is taken}
  describe "a change by a session" do
    @forms [
      {"the token of the form", &__MODULE__.field/1, true},
      {"the token in a part of multipart", &__MODULE__.multipart/1, true},
      {"the token in a header", &__MODULE__.header/1, true},
      {"nothing", &__MODULE__.nothing/1, false},
      {"another token", &__MODULE__.other/1, false},
      {"the token in the query", &__MODULE__.query/1, false},
      {"the token twice, the last wrong", &__MODULE__.twice/1, false},
      {"a list", &__MODULE__.list/1, false},
      {"the token as JSON", &__MODULE__.json/1, false}
    ]

    for {what, make, taken?} <- @forms, method <- ~w(POST PUT PATCH DELETE) do
      test "#{method} with #{what} is #{if(taken?, do: "taken", else: "refused")}", context do
        %{book: book, web: web} = context
        cookie = signed_in(web, book)
        {query, options} = unquote(make).(csrf(cookie))
        options = Keyword.update(options, :headers, cookie, &(&1 ++ cookie))
        response = Requests.call(web, unquote(method), @page <> query, options)

        if unquote(taken?) do
          assert response.status == 404
        else
          assert {response.status, response.body} ==
                   {403, "The form is too old. Go back, reload the page and try again.\n"}
        end
      end
    end

    test "with the token of another session is refused", %{book: book, web: web} do
      {one, other} = {signed_in(web, book), signed_in(web, book)}
      form = %{"_csrf" => csrf(other)}
      assert Requests.call(web, "POST", @page, headers: one, form: form).status == 403
    end

    test "from another website is refused, also with the token", %{book: book, web: web} do
      cookie = signed_in(web, book)
      headers = cookie ++ [{"sec-fetch-site", "cross-site"}]
      form = %{"_csrf" => csrf(cookie)}
      assert Requests.call(web, "POST", @page, headers: headers, form: form).status == 403
    end
  end

  def field(csrf), do: {"", form: %{"_csrf" => csrf}}
  def header(csrf), do: {"", headers: [{"x-csrf-token", csrf}]}
  def nothing(_csrf), do: {"", []}
  def other(csrf), do: {"", form: %{"_csrf" => String.reverse(csrf)}}
  def query(csrf), do: {"?_csrf=" <> csrf, []}
  def twice(csrf), do: {"", form: [{"_csrf", csrf}, {"_csrf", "x"}]}
  def list(csrf), do: {"", form: [{"_csrf[]", csrf}]}
  def json(csrf), do: {"", json: %{"_csrf" => csrf}}

  def multipart(csrf) do
    body = "--b\r\ncontent-disposition: form-data; name=\"_csrf\"\r\n\r\n#{csrf}\r\n--b--\r\n"
    {"", body: body, headers: [{"content-type", "multipart/form-data; boundary=b"}]}
  end

  test "a session of a profile sees what the profile sees, also as an operator", context do
    %{book: book, web: web} = context
    parent = self()

    for {profile, operator?} <- [{"ann", false}, {"default", true}] do
      cookie = cookie(Requests.call(web, "GET", link(book, profile, operator?)))
      request = Requests.request("GET", "/", headers: cookie)
      {:ok, caller} = Skillbook.Web.Authentication.caller(request, :page, web)
      send(parent, caller)
      assert {caller.profile.id, caller.operator?, caller.via} == {profile, operator?, :session}
      assert caller.csrf == csrf(cookie)
    end
  end

  test "an application that authenticates itself has no links and no form", %{book: book} do
    web = Requests.web(book, authenticate: fn _ -> {:ok, "ann"} end)

    for {method, target} <- [{"GET", link(book)}, {"GET", "/login"}, {"POST", "/logout"}],
        do: assert(Requests.call(web, method, target).status == 404)
  end
end
