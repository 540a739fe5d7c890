defmodule Skillbook.Web.Page.SignInTest do
  # Accounts that people connect on the page, against a server that keeps the rules of OAuth: each
  # answer of the vendor, and each wrong one.
  use ExUnit.Case, async: true

  import Skillbook.Test.Connections

  alias Skillbook.{Book, Connections, SQL}
  alias Skillbook.Test.{HtmlChecker, Requests, Services, SignInWorld}
  alias Skillbook.Web.Tokens

  @moduletag :capture_log
  @host "http://127.0.0.1:4004"

  setup do
    world = world()

    book =
      book([google: account(world), office: account(world)],
        builtins: ["email", "calendar"],
        profiles: [[id: "ann", writes: :run], [id: "eve", writes: :run]]
      )

    %{world: world, book: book, web: Requests.web(book, authenticate: :tokens)}
  end

  # A browser: it keeps cookies, and sends them unless the request comes from another website.

  defp browser(context, profile \\ "ann") do
    {:ok, jar} = Agent.start_link(fn -> %{} end)
    browser = %{jar: jar, web: context.web}
    {:ok, link} = Tokens.link(context.book, profile: profile, url: "http://a")
    "http://a" <> path = link.()
    assert send(browser, "GET", path, from: :elsewhere).status == 200
    browser
  end

  defp send(browser, method, target, options \\ []) do
    pairs = for {name, value} <- Agent.get(browser.jar, & &1), do: "#{name}=#{value}"
    cookies = if options[:from] == :elsewhere, do: [], else: [{"cookie", Enum.join(pairs, "; ")}]
    type = [{"content-type", "application/x-www-form-urlencoded"}]
    options = [headers: type ++ cookies, body: options[:body] || ""]
    response = Requests.call(browser.web, method, target, options)
    with text when text != nil <- Requests.header(response, "set-cookie"), do: keep(browser, text)
    response
  end

  defp keep(browser, text) do
    assert text =~ ~r/; HttpOnly; SameSite=Strict\z/
    [_all, name, value, seconds] = Regex.run(~r/\A([^=]+)=([^;]*); Path=\/; Max-Age=(\d+)/, text)

    Agent.update(
      browser.jar,
      &if(seconds == "0", do: Map.delete(&1, name), else: Map.put(&1, name, value))
    )
  end

  defp forget(browser, name), do: Agent.update(browser.jar, &Map.delete(&1, name))

  defp get(browser, target) do
    response = send(browser, "GET", target)
    assert HtmlChecker.page(response.body) == []
    response
  end

  defp post(browser, target, fields) do
    page = get(browser, "/connections").body
    [_all, csrf] = Regex.run(~r/name="_csrf" value="([^"]+)"/, page)
    send(browser, "POST", target, body: URI.encode_query([{"_csrf", csrf} | fields]))
  end

  # The address to which a page leads.
  defp leads_to(response) do
    assert {response.status, HtmlChecker.page(response.body)} == {200, []}

    [refresh, link] =
      for {name, attributes, _content} <- HtmlChecker.elements(response.body),
          value = attributes[if(name == "meta", do: "content", else: "href")],
          (name == "meta" and attributes["http-equiv"] == "refresh") or name == "a",
          do: value

    assert refresh == "0;url=" <> link
    link
  end

  # Presses Connect, and signs in at the vendor. Returns the address of the vendor's redirect.
  defp begin(browser, commands \\ ["email.search"], account \\ "google") do
    fields = for command <- commands, do: {"for[]", command}
    url = browser |> post("/connections/#{account}/connect", fields) |> leads_to()
    {302, @host <> location} = Services.open(url)
    location
  end

  defp callback(browser, location) do
    response = send(browser, "GET", location, from: :elsewhere)
    assert Requests.header(response, "referrer-policy") == "no-referrer"
    assert Requests.header(response, "cache-control") == "no-store"
    leads_to(response)
  end

  defp finish(browser, location), do: send(browser, "GET", callback(browser, location))

  defp query(location, fun) do
    [path, query] = String.split(location, "?")
    path <> "?" <> (query |> URI.decode_query() |> fun.() |> URI.encode_query())
  end

  defp text(response) do
    assert HtmlChecker.page(response.body) == []

    response.body
    |> String.replace(~r/<[^>]*>/, " ")
    |> String.replace(~r/\s+/, " ")
    |> String.replace("&#39;", "'")
    |> String.replace("&quot;", ~s("))
  end

  defp connected(book), do: for({:ok, all} <- [Connections.list(book)], one <- all, do: one)

  @state "This sign-in cannot be used. It was used before, it began more than 10 minutes ago, " <>
           "or it began in another browser or session. Nothing was changed. Press Connect to " <>
           "begin again."

  test "an account is connected, shown, given more scopes, and connected again", context do
    %{book: book, world: world} = context
    browser = browser(context)
    page = text(get(browser, "/connections"))
    assert page =~ "Redirect #{@host}/connections/google/callback"
    assert page =~ "Redirect #{@host}/connections/office/callback"
    assert page =~ "Status not connected Services mail, calendar, drive Redirect"

    location = begin(browser)
    assert location =~ ~r"\A/connections/google/callback\?"
    response = finish(browser, location)

    assert {response.status, Requests.header(response, "location")} ==
             {303, "/connections?connected=google"}

    assert [%{account: :google, profile: "ann", identity: "ann@example.com"}] = connected(book)
    page = text(get(browser, "/connections?connected=google"))

    assert page =~
             "google is connected as ann@example.com. These commands lack a scope: " <>
               "calendar.list, email.archive, email.send. To allow it, tick them and press " <>
               "Allow more."

    assert page =~ "Address ann@example.com Services mail Scopes"
    assert page =~ scope("gmail.readonly")
    assert page =~ "Allow more google"

    # Only the other commands can be ticked, and none is.
    assert boxes(get(browser, "/connections"), "google") ==
             [{"calendar.list", false}, {"email.archive", false}, {"email.send", false}]

    assert finish(browser, begin(browser, ["email.send", "calendar.list"])).status == 303
    assert [%{scopes: scopes}] = connected(book)

    for name <- ~w(gmail.readonly gmail.send calendar.readonly),
        do: assert(scope(name) in scopes)

    # With the other account nothing is connected.
    refute text(get(browser, "/connections?connected=office")) =~ "is connected"

    # The person withdraws it at the vendor; the next renewal finds out.
    expire(book)
    fault = [method: "oauth.token", status: 400, reason: "invalid_grant"]
    Services.fault(world, fault)
    assert {:error, %{kind: :revoked}} = Connections.token(mail(book, "ann"), [])
    page = get(browser, "/connections")
    assert text(page) =~ "Status withdrawn"
    assert text(page) =~ "Connect again google"
    assert Enum.all?(boxes(page, "google"), fn {_command, ticked?} -> ticked? end)
    assert finish(browser, begin(browser)).status == 303
    assert [%{status: :connected}] = connected(book)
  end

  defp boxes(response, account) do
    for {"input", %{"type" => "checkbox", "id" => id} = attributes, _} <-
          HtmlChecker.elements(response.body),
        String.starts_with?(id, account <> "-"),
        do: {attributes["value"], Map.has_key?(attributes, "checked")}
  end

  # Each row changes one thing between the vendor's redirect and the request of the session:
  # a name, a function of the browser and the redirect's location, the status and the text.
  @denied "The connection google of the profile ann was not made: "
  @again " Nothing was changed. To connect the account, press Connect, and allow the access " <>
           "there."
  @answers [
    {"as it is", &__MODULE__.same/2, 303, nil},
    {"without the state", &__MODULE__.without_state/2, 400, @state},
    {"with an unknown state", &__MODULE__.unknown_state/2, 400, @state},
    {"with two states", &__MODULE__.two_states/2, 400, @state},
    {"without a query", &__MODULE__.nothing/2, 400, @state},
    {"at the address of another account", &__MODULE__.other_account/2, 400, @state},
    {"in another browser of the session", &__MODULE__.without_browser/2, 400, @state},
    {"after 10 minutes", &__MODULE__.expired/2, 400, @state},
    {"a second time", &__MODULE__.used/2, 400, @state},
    {"without the code", &__MODULE__.without_code/2, 403,
     @denied <> "the answer has neither code nor error." <> @again},
    {"access_denied", &__MODULE__.denied/2, 403,
     @denied <> "the person has not allowed it." <> @again},
    {"server_error", &__MODULE__.server_error/2, 403,
     @denied <> "the vendor answered server_error." <> @again},
    {"markup as the error", &__MODULE__.markup/2, 403,
     @denied <> "the vendor answered an unknown error." <> @again}
  ]

  def same(_browser, location), do: location
  def without_state(_browser, location), do: query(location, &Map.delete(&1, "state"))
  def unknown_state(_browser, location), do: query(location, &Map.put(&1, "state", "unknown"))
  def two_states(_browser, location), do: location <> "&state=b"
  def nothing(_browser, location), do: location |> String.split("?") |> hd()
  def other_account(_browser, location), do: String.replace(location, "/google/", "/office/")
  def without_code(_browser, location), do: query(location, &Map.delete(&1, "code"))
  def denied(_browser, location), do: error(location, "access_denied")
  def server_error(_browser, location), do: error(location, "server_error")
  def markup(_browser, location), do: error(location, "<b>\e[1m")

  def without_browser(browser, location) do
    forget(browser, "skillbook-browser-4004")
    location
  end

  def expired(browser, location) do
    sql = browser.web.book |> Book.fetch!() |> Book.sql()
    SQL.query!(sql, "update skillbook_sign_ins set expires_at = expires_at - 600001")
    location
  end

  def used(browser, location) do
    assert finish(browser, location).status == 303
    {:ok, _} = Connections.disconnect(browser.web.book, :google, profile: "ann")
    location
  end

  defp error(location, code),
    do: query(location, &(&1 |> Map.delete("code") |> Map.put("error", code)))

  for {name, _change, _status, _text} <- @answers do
    test "an answer #{name}", context do
      {_name, change, status, text} = List.keyfind!(@answers, unquote(name), 0)
      browser = browser(context)
      response = finish(browser, change.(browser, begin(browser)))
      assert response.status == status
      if text, do: assert(text(response) =~ text)
      assert length(connected(context.book)) == if(status == 303, do: 1, else: 0)
      # The answer is not kept.
      refute Map.has_key?(Agent.get(browser.jar, & &1), "skillbook-answer-4004")
    end
  end

  test "a token endpoint that refuses or fails leaves everything as it was", context do
    for {fault, status, text} <- [
          {[status: 401, reason: "invalid_client", message: "no <b>client</b>"], 502,
           "The sign-in of the account google refused the request: status 401, " <>
             ~s(invalid_client: "no &lt;b&gt;client&lt;/b&gt;". Nothing was changed. An ) <>
             "operator has to compare the client's id and secret, and the redirect address " <>
             "below, with those at the vendor."},
          {[status: 503], 502,
           "The sign-in of the account google does not work at the moment: status 503, " <>
             ~s(temporarily_unavailable: "fault". ) <>
             "Nothing was changed. Press Connect " <>
             "to try again in a few minutes."}
        ] do
      browser = browser(context)
      location = begin(browser)
      Services.fault(context.world, [method: "oauth.token"] ++ fault)
      response = finish(browser, location)
      assert {response.status, connected(context.book)} == {status, []}
      assert text(response) =~ text
      # The page is that of the connections, where the person can go on.
      assert text(response) =~ "Connect google"
    end
  end

  test "a person who allows only a part learns which commands lack a scope", context do
    browser = browser(context)
    Services.browser(context.world, answer: ["openid", "email", scope("calendar.readonly")])
    response = finish(browser, begin(browser, ["email.search", "calendar.list"]))
    page = get(browser, Requests.header(response, "location"))

    assert text(page) =~
             "google is connected as ann@example.com. These commands lack a scope: " <>
               "email.archive, email.search, email.send. To allow it"
  end

  test "an answer counts only in the session that began, which nobody else ends", context do
    [own, other, eve] = [browser(context), browser(context), browser(context, "eve")]
    location = begin(own)

    for stranger <- [other, eve] do
      # Eve may know the other browser's cookie, but not its session.
      %{"skillbook-browser-4004" => secret} = Agent.get(own.jar, & &1)
      Agent.update(stranger.jar, &Map.put(&1, "skillbook-browser-4004", secret))
      response = finish(stranger, location)
      assert {response.status, connected(context.book)} == {400, []}
      assert text(response) =~ @state
    end

    assert finish(own, location).status == 303
    assert [%{profile: "ann"}] = connected(context.book)
  end

  test "two sign-ins at once end both, in any order", context do
    browser = browser(context)
    [first, second] = [begin(browser), begin(browser, ["calendar.list"], "office")]
    for location <- [second, first], do: assert(finish(browser, location).status == 303)

    assert context.book |> connected() |> Enum.map(& &1.account) |> Enum.sort() == [
             :google,
             :office
           ]
  end

  test "a session that has ended leads to the form, without the answer", context do
    browser = browser(context)
    location = begin(browser)
    forget(browser, "skillbook-4004")
    response = finish(browser, location)

    assert {response.status, Requests.header(response, "location")} ==
             {303, "/login?to=%2Fconnections%2Fgoogle%2Ffinish"}

    assert connected(context.book) == []
  end

  test "the answer of an application's user counts in one browser alone", context do
    web = Requests.web(context.book, authenticate: fn _request -> {:ok, "ann"} end)
    [one, other] = for _ <- 1..2, do: %{jar: elem(Agent.start_link(fn -> %{} end), 1), web: web}
    origin = [headers: [{"sec-fetch-site", "same-origin"}]]
    form = [form: %{"for[]" => "email.search"}]

    begun =
      for browser <- [one, other] do
        response = Requests.call(web, "POST", "/connections/google/connect", origin ++ form)
        keep(browser, Requests.header(response, "set-cookie"))
        {302, @host <> location} = response |> leads_to() |> Services.open()
        location
      end

    assert finish(other, hd(begun)).status == 400
    assert connected(context.book) == []
    assert finish(one, hd(begun)).status == 303
  end

  test "only a profile that may change something connects an account", %{world: world} do
    profiles = for writes <- [:run, :ask, :delegate, :deny], do: [id: "#{writes}", writes: writes]

    book = book([google: account(world)], builtins: ["email"], profiles: profiles)
    web = Requests.web(book)

    for {profile, operator, allowed?} <- [
          {"run", false, true},
          {"ask", false, false},
          {"ask", true, true},
          {"delegate", true, false},
          {"deny", true, false}
        ] do
      as = [profile: profile, operator: operator]
      page = Requests.call(web, "GET", "/connections", as: as).body
      form = %{"for[]" => "email.search"}
      begun = Requests.call(web, "POST", "/connections/google/connect", as: as, form: form)
      ended = Requests.call(web, "GET", "/connections/google/finish", as: as)

      assert {profile, page =~ "/connect\"", begun.status, ended.status} ==
               {profile, allowed?, if(allowed?, do: 200, else: 403),
                if(allowed?, do: 400, else: 403)}
    end

    # Seen as another profile, nothing begins or ends.
    as = [profile: "run", operator: true]
    page = Requests.call(web, "GET", "/connections?as=run", as: as).body
    refute page =~ "/connections/google/connect"
    assert Requests.call(web, "GET", "/connections/google/finish?as=run", as: as).status == 403

    assert Requests.call(web, "POST", "/connections/google/connect?as=run",
             as: as,
             form: %{"for[]" => "email.search"}
           ).status == 403
  end

  test "an account of others, one with a secret and a missing one are the same", context do
    book =
      book(
        [closed: account(context.world, profiles: ["eve"]), crm: [vendor: :hubspot] ++ token()],
        builtins: ["email"],
        profiles: [[id: "ann", writes: :run], [id: "eve", writes: :run]]
      )

    web = Requests.web(book)
    page = Requests.call(web, "GET", "/connections?connected=closed", as: "ann").body
    for text <- ["account-", "is connected", "closed"], do: refute(page =~ text)

    answers =
      for name <- ~w(closed crm nobody) do
        for {method, path} <- [{"POST", "connect"}, {"GET", "finish"}, {"GET", "callback"}] do
          target = "/connections/#{name}/#{path}?state=a&code=b"

          response =
            Requests.call(web, method, target, as: "ann", form: %{"for[]" => "email.send"})

          {response.status, response.headers, String.replace(response.body, name, "NAME")}
        end
      end

    assert [_one] = Enum.uniq(answers)
    assert [[{404, _, _}, {404, _, _}, {200, _, _}] | _] = answers
  end

  defp token, do: [token: fn -> "t" end]

  test "commands that the profile cannot see are not connected for", %{world: world} do
    book =
      book([google: account(world)],
        builtins: ["email"],
        profiles: [[id: "ann", skills: ["email.search"], writes: :run]]
      )

    web = Requests.web(book)
    {:ok, %{"accounts" => [one]}} = json(web, "/connections?format=json")
    assert one["commands"] == ["email.search"]

    assert one["missing"] == [
             %{"command" => "email.search", "scope" => scope("gmail.readonly")}
           ]

    answers =
      for command <- ["email.send", "email.nothing", ""] do
        form = %{"for[]" => command}
        Requests.call(web, "POST", "/connections/google/connect", as: "ann", form: form)
      end

    assert [%{status: 400, body: body}] = Enum.uniq(answers)
    assert body =~ "Go back, and tick the commands that the connection is for."
    assert Services.log(world) == []
  end

  defp json(web, target) do
    response = Requests.call(web, "GET", target, as: "ann")
    Skillbook.Support.JSON.decode(response.body)
  end

  test "the redirect is that of the address of the server", %{book: book} do
    for {options, host, base, expected} <- [
          {[], "127.0.0.1:4004", "", "http://127.0.0.1:4004"},
          {[], "localhost:4004", "", "http://localhost:4004"},
          {[], "localhost:4004", "/admin", "http://localhost:4004/admin"},
          {[url: "https://skills.example.com"], "skills.example.com", "",
           "https://skills.example.com"},
          {[url: "https://skills.example.com/"], "skills.example.com", "/admin",
           "https://skills.example.com/admin"},
          {[url: "https://skills.example.com"], "127.0.0.1:4004", "", nil}
        ] do
      web = Requests.web(book, options)
      options = [as: "ann", host: host, base: base]
      response = Requests.call(web, "GET", "/connections?format=json", options)
      {:ok, %{"accounts" => [one, _office]}} = Skillbook.Support.JSON.decode(response.body)
      redirect = expected && expected <> "/connections/google/callback"
      assert {host, one["redirect"]} == {host, redirect}

      if expected == nil do
        text =
          "A sign-in leads back to https://skills.example.com. Open this page there to " <>
            "connect an account."

        assert one["problem"] == text
        assert Requests.call(web, "GET", "/connections", options).body =~ text
        form = [form: %{"for[]" => "email.search"}]
        begun = Requests.call(web, "POST", "/connections/google/connect", options ++ form)
        assert {begun.status, begun.body =~ text} == {400, true}
      end
    end
  end

  test "cookies of a server with TLS belong to its host", %{book: book} do
    web = Requests.web(book, url: "https://skills.example.com")
    options = [as: "ann", host: "skills.example.com", form: %{"for[]" => "email.search"}]
    response = Requests.call(web, "POST", "/connections/google/connect", options)

    cookie = Requests.header(response, "set-cookie")
    [_all, attributes] = Regex.run(~r/\A__Host-skillbook-browser=[\w-]{43}; (.*)\z/, cookie)
    assert attributes == "Path=/; Max-Age=600; HttpOnly; SameSite=Strict; Secure"
  end

  test "an answer that no cookie holds is refused", %{web: web} do
    target = "/connections/google/callback?state=a&code=" <> String.duplicate("c", 3_900)
    response = Requests.call(web, "GET", target)
    assert response.status == 400
    assert text(response) =~ "The vendor's answer has more than 3900 bytes. Nothing was changed."
    assert Requests.header(response, "set-cookie") == nil
  end

  test "no state, code or token is in a page, an address, an event or a log", context do
    test = self()
    id = {__MODULE__, context.test}
    events = [[:skillbook, :web, :request, :stop], [:skillbook, :connection, :changed]]

    :telemetry.attach_many(
      id,
      events,
      fn name, _values, metadata, _config -> send(test, {:event, name, metadata}) end,
      nil
    )

    on_exit(fn -> :telemetry.detach(id) end)
    browser = browser(context)
    level = Logger.level()

    {responses, log} =
      ExUnit.CaptureLog.with_log([level: :debug], fn ->
        location = begin(browser)
        finished = finish(browser, location)
        [finished, get(browser, Requests.header(finished, "location")), finish(browser, location)]
      end)

    assert Logger.level() == level
    secrets = Enum.filter(Services.secrets(context.world), &(byte_size(&1) > 20))
    assert length(secrets) > 3
    assert_received {:event, [:skillbook, :web, :request, :stop], %{route: :callback}}
    assert_received {:event, [:skillbook, :connection, :changed], _metadata}
    {:messages, messages} = Process.info(test, :messages)

    seen =
      IO.iodata_to_binary([
        log,
        inspect(messages, limit: :infinity, printable_limit: :infinity),
        for(one <- responses, do: [one.body, inspect(one.headers)])
      ])

    for secret <- secrets, do: refute(seen =~ secret)
  end

  test "an MCP server is connected by the profile whose connection it uses" do
    advertised = %{"authorization_response_iss_parameter_supported" => true}
    metadata = "GET #{SignInWorld.issuer()}/.well-known/oauth-authorization-server"
    world = SignInWorld.start(%{metadata => {200, SignInWorld.metadata(advertised)}})
    http = [adapter: {SignInWorld, world: world}]
    source = {:mcp, SignInWorld.server(), label: "docs", oauth: [profile: "ann"], http: http}

    book =
      book([],
        sources: [source],
        profiles: [[id: "ann", writes: :run], [id: "eve", writes: :run]]
      )

    :ok = Skillbook.MCP.Client.await(book)
    context = %{book: book, web: Requests.web(book, authenticate: :tokens)}
    browser = browser(context)
    page = text(get(browser, "/connections"))
    assert page =~ "Status not connected Server #{SignInWorld.server()} Redirect"
    refute page =~ "Commands that need a scope"
    refute text(get(browser(context, "eve"), "/connections")) =~ "docs"

    # The answer of the authorization server names it.
    answer = fn more ->
      url = browser |> post("/connections/docs/connect", []) |> leads_to()
      asked = url |> URI.parse() |> Map.fetch!(:query) |> URI.decode_query()
      assert asked["redirect_uri"] == @host <> "/connections/docs/callback"
      answer = Map.merge(%{"state" => asked["state"], "code" => asked["scope"]}, more)
      "/connections/docs/callback?" <> URI.encode_query(answer)
    end

    refused = finish(browser, answer.(%{"iss" => "https://a.example"}))
    assert refused.status == 502

    assert text(refused) =~
             "The sign-in of the MCP server docs cannot be used: expected the issuer " <>
               "#{SignInWorld.issuer()} in the answer, got: \"https://a.example\". Nothing " <>
               "was changed. The operator of the server has to mend this."

    assert connected(book) == []
    assert finish(browser, answer.(%{"iss" => SignInWorld.issuer()})).status == 303
    assert [%{account: "docs", profile: "ann", scopes: ["read"]}] = connected(book)
    page = text(get(browser, "/connections?connected=docs"))
    assert page =~ "docs is connected. Its commands can run."
    assert page =~ "Connect again docs"
    assert post(browser, "/connections/docs", profile: "ann").status == 303
    assert connected(book) == []
  end
end
