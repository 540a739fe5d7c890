defmodule Skillbook.Web.ProxiesTest do
  # Requests through proxies: which headers count, from whom, and for what.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Test.{RawHTTP, Requests}
  alias Skillbook.{OptionError, Web}
  alias Skillbook.Web.{Proxies, Server, Tokens}

  @proxies ["127.0.0.1", "10.0.0.0/8", "2001:db8:ff::/48", :unix]

  defp networks(given) do
    for one <- given do
      {:ok, network} = Proxies.network(one)
      network
    end
  end

  # The address, scheme and host of the client, or the status and text of the refusal.
  defp client(peer, headers, proxies \\ @proxies) do
    request = Requests.request("GET", "/x", peer: peer, headers: headers, host: "inner:4004")

    case Proxies.client(request, networks(proxies)) do
      {:ok, found} -> {address(found.peer), found.scheme, found.host}
      {:refused, response} -> {response.status, IO.iodata_to_binary(response.body)}
    end
  end

  defp address(peer) when is_tuple(peer), do: peer |> :inet.ntoa() |> to_string()
  defp address(peer), do: peer

  @hops 20
  @near {127, 0, 0, 1}
  @chain "forwarded or x-forwarded-for"
  @expected "an address such as 203.0.113.7 or [2001:db8::7]:443"

  defp unreadable(header, expected, text) do
    {400,
     "The header #{header} of a proxy cannot be read: expected #{expected}, got: " <>
       "#{inspect(text)}\n"}
  end

  # {x-forwarded-for, the client's address, or the entry that is refused}
  @chains [
    {"203.0.113.7", "203.0.113.7"},
    # Texts of the client, left of its own address.
    {"198.51.100.1, 203.0.113.7", "203.0.113.7"},
    {"127.0.0.1, 203.0.113.7", "203.0.113.7"},
    {"<script>, 203.0.113.7", "203.0.113.7"},
    {String.duplicate("10.0.0.1,", 500) <> "203.0.113.7", "203.0.113.7"},
    # Through several proxies.
    {"198.51.100.1, 203.0.113.7, 10.1.2.3", "203.0.113.7"},
    {"203.0.113.7,10.1.2.3 , \t10.255.255.255", "203.0.113.7"},
    {"203.0.113.7, 11.0.0.0", "11.0.0.0"},
    {"203.0.113.7, 9.255.255.255", "9.255.255.255"},
    {"203.0.113.7, 2001:db8:ff::9", "203.0.113.7"},
    {"203.0.113.7, [2001:DB8:FF::9]:80", "203.0.113.7"},
    {"203.0.113.7, 2001:db8:fe::9", "2001:db8:fe::9"},
    # IPv4 in IPv6 is IPv4.
    {"203.0.113.7, ::ffff:10.1.2.3", "203.0.113.7"},
    {"::ffff:203.0.113.7", "203.0.113.7"},
    # Only proxies: one of them asks.
    {"10.1.2.3", "10.1.2.3"},
    {"10.1.2.3, 10.4.5.6", "10.1.2.3"},
    # Ports.
    {"203.0.113.7:1234", "203.0.113.7"},
    {"[2001:db8::7]:1234", "2001:db8::7"},
    {"[2001:db8::7]", "2001:db8::7"},
    {"2001:db8::7", "2001:db8::7"},
    {"203.0.113.7:123456", :error},
    {"203.0.113.7:", :error},
    {"[203.0.113.7]:80", :error},
    # A proxy that does not say it.
    {"unknown", "127.0.0.1"},
    {"203.0.113.7, unknown", "127.0.0.1"},
    {"203.0.113.7, unknown, 10.1.2.3", "10.1.2.3"},
    {"_hidden", "127.0.0.1"},
    # Empty elements of a list mean nothing.
    {"", "127.0.0.1"},
    {", 203.0.113.7,,", "203.0.113.7"},
    # Not an address.
    {"203.0.113", :error},
    {"203.0.113.256", :error},
    {"203.0.113.07", :error},
    {"0xcb.0.113.7", :error},
    {"3405803783", :error},
    {"::ffff:203.0.113.07", :error},
    {"fe80::1%eth0", :error},
    {"2001:db8::7::1", :error},
    {"localhost", :error},
    {"203.0.113.7 203.0.113.8", :error},
    {"\"203.0.113.7\"", :error},
    {"\xFF", :error}
  ]

  test "x-forwarded-for" do
    for {value, expected} <- @chains do
      got = client(@near, [{"x-forwarded-for", value}])

      if expected == :error do
        assert got == unreadable(@chain, @expected, value)
      else
        assert {value, got} == {value, {expected, :http, "inner:4004"}}
      end
    end
  end

  test "a header that is there twice is one chain" do
    headers = [{"x-forwarded-for", "198.51.100.1"}, {"x-forwarded-for", "203.0.113.7"}]
    assert client(@near, headers) == {"203.0.113.7", :http, "inner:4004"}
  end

  # {forwarded, what is found or refused}
  @standard [
    {"for=203.0.113.7", {"203.0.113.7", :http, "inner:4004"}},
    {"For=203.0.113.7;Proto=HTTPS;Host=S.example", {"203.0.113.7", :https, "s.example"}},
    {~s(for="[2001:db8::7]:47011";proto=http), {"2001:db8::7", :http, "inner:4004"}},
    {~s(for="203\\.0.113.7"), {"203.0.113.7", :http, "inner:4004"}},
    # The proxy that saw the client says how it was reached; the others are inside.
    {"for=203.0.113.7;proto=https;host=s.example, for=10.1.2.3;proto=http;host=inner",
     {"203.0.113.7", :https, "s.example"}},
    # Texts of the client.
    {"for=198.51.100.1;proto=https;host=evil.example, for=203.0.113.7",
     {"203.0.113.7", :http, "inner:4004"}},
    {"for=127.0.0.1;host=evil.example,for=203.0.113.7;host=s.example",
     {"203.0.113.7", :http, "s.example"}},
    {"for=unknown;proto=https", {"127.0.0.1", :https, "inner:4004"}},
    {"for=_gazonk", {"127.0.0.1", :http, "inner:4004"}},
    {"for=\"_gazonk:_port\"", {"127.0.0.1", :http, "inner:4004"}},
    {"by=203.0.113.43", {"127.0.0.1", :http, "inner:4004"}},
    {"for=203.0.113.7;;by=x, ,", {"203.0.113.7", :http, "inner:4004"}},
    {"", {"127.0.0.1", :http, "inner:4004"}},
    # A quote that would swallow the proxy's element.
    {~s(for="x, for=203.0.113.7), {:pairs, ~s(for="x, for=203.0.113.7)}},
    {~s(for="x, for="[2001:db8::7]"), {:pairs, ~s(for="x, for="[2001:db8::7]")}},
    {"for=203.0.113.7;for=198.51.100.1", {:pairs, "for=198.51.100.1"}},
    {"for=203.0.113.7 proto=https", {:pairs, "for=203.0.113.7 proto=https"}},
    {"203.0.113.7", {:pairs, "203.0.113.7"}},
    {"for=", {:pairs, "for="}},
    {"=203.0.113.7", {:pairs, "=203.0.113.7"}}
  ]

  test "forwarded" do
    for {value, expected} <- @standard do
      expected =
        with {:pairs, text} <- expected,
             do: unreadable("forwarded", "pairs such as for=203.0.113.7", text)

      assert {value, client(@near, [{"forwarded", value}])} == {value, expected}
    end

    assert client(@near, [{"forwarded", "for=a"}]) == unreadable(@chain, @expected, "a")
  end

  @several " has several values. The proxy has to set it.\n"

  # {header, value, the scheme and host, or the refusal}
  @values [
    {"proto", "https", {:https, "inner:4004"}},
    {"proto", "HTTP", {:http, "inner:4004"}},
    {"proto", "https, https", {:https, "inner:4004"}},
    {"proto", "https, http", {400, "The header x-forwarded-proto" <> @several}},
    {"proto", "ftp", {:error, "http or https"}},
    {"host", "S.example", {:http, "s.example"}},
    {"host", "s.example:8443", {:http, "s.example:8443"}},
    {"host", "[::1]:80", {:http, "[::1]:80"}},
    {"host", "s.example, s.example", {:http, "s.example"}},
    {"host", "evil.example, s.example", {400, "The header x-forwarded-host" <> @several}},
    {"host", "a b", {:error, "a host such as skills.example.com"}},
    {"host", "s.example/x", {:error, "a host such as skills.example.com"}},
    {"host", "u@s.example", {:error, "a host such as skills.example.com"}}
  ]

  test "x-forwarded-proto and x-forwarded-host" do
    for {name, value, expected} <- @values do
      expected =
        case expected do
          {:error, what} -> unreadable("forwarded or x-forwarded-#{name}", what, value)
          {status, text} when is_integer(status) -> {status, text}
          {scheme, host} -> {"203.0.113.7", scheme, host}
        end

      headers = [{"x-forwarded-for", "203.0.113.7"}, {"x-forwarded-" <> name, value}]
      assert {value, client(@near, headers)} == {value, expected}
    end

    # Without an address the proxy itself is the client.
    assert client(@near, [{"x-forwarded-proto", "https"}]) ==
             {"127.0.0.1", :https, "inner:4004"}
  end

  test "two kinds of headers have to say the same" do
    refused =
      "The headers forwarded and x-forwarded-for, -proto and -host differ. The proxy " <>
        "has to set one kind, and to remove the other.\n"

    for {x, forwarded, expected} <- [
          {[{"for", "203.0.113.7"}], "for=203.0.113.7", {"203.0.113.7", :http, "inner:4004"}},
          {[{"for", "9.9.9.9, 203.0.113.7"}, {"proto", "https"}, {"host", "s.example"}],
           "for=203.0.113.7;proto=https;host=s.example", {"203.0.113.7", :https, "s.example"}},
          {[{"for", "203.0.113.7"}], "for=198.51.100.1", {400, refused}},
          {[{"for", "203.0.113.7"}], "for=203.0.113.7;proto=https", {400, refused}},
          {[{"for", "203.0.113.7"}], "for=203.0.113.7;host=evil.example", {400, refused}},
          {[{"host", "evil.example"}], "for=203.0.113.7", {400, refused}}
        ] do
      headers = for {name, value} <- x, do: {"x-forwarded-" <> name, value}
      assert client(@near, headers ++ [{"forwarded", forwarded}]) == expected
    end
  end

  test "only a trusted proxy is believed" do
    headers = [
      {"x-forwarded-for", "203.0.113.7"},
      {"x-forwarded-proto", "https"},
      {"x-forwarded-host", "s.example"}
    ]

    for {peer, proxies, trusted?} <- [
          {{127, 0, 0, 1}, [], false},
          {{127, 0, 0, 1}, ["127.0.0.1"], true},
          {{127, 0, 0, 2}, ["127.0.0.1"], false},
          {{127, 0, 0, 2}, ["127.0.0.0/8"], true},
          # The bits beyond the network do not count.
          {{127, 0, 0, 2}, ["127.0.0.1/8"], true},
          {{10, 127, 255, 255}, ["10.0.0.0/9"], true},
          {{10, 128, 0, 0}, ["10.0.0.0/9"], false},
          {{0, 0, 0, 0, 0, 0xFFFF, 0x7F00, 1}, ["127.0.0.1"], true},
          {{127, 0, 0, 1}, ["::ffff:127.0.0.0/104"], true},
          {{0, 0, 0, 0, 0, 0, 0, 1}, ["::1"], true},
          {{0, 0, 0, 0, 0, 0, 0, 1}, ["127.0.0.1"], false},
          # Numbers of the same size in the other kind of network.
          {{0, 0, 0, 1}, ["::1"], false},
          {{0, 0, 0, 0, 0, 0, 0x7F00, 1}, ["127.0.0.1"], false},
          {{0xFD00, 0, 0, 0, 0, 0, 0, 9}, ["fd00::/8"], true},
          {{0xFE00, 0, 0, 0, 0, 0, 0, 9}, ["fd00::/8"], false},
          {:unix, [:unix], true},
          {:unix, ["127.0.0.1"], false},
          {{127, 0, 0, 1}, [:unix], false},
          {nil, @proxies, false}
        ] do
      expected =
        if trusted?,
          do: {"203.0.113.7", :https, "s.example"},
          else: {address(peer), :http, "inner:4004"}

      assert {peer, client(peer, headers, proxies)} == {peer, expected}
      # From others, a wrong header is as good as none.
      wrong = client(peer, [{"x-forwarded-for", "<"}], proxies)
      assert match?({400, _}, wrong) == trusted?
    end
  end

  test "a chain of too many trusted proxies is refused" do
    chain = fn count ->
      hops = for n <- 1..count, do: "10.0.0.#{n}"
      client(@near, [{"x-forwarded-for", Enum.join(["203.0.113.7" | hops], ", ")}])
    end

    assert chain.(@hops - 1) == {"203.0.113.7", :http, "inner:4004"}

    assert chain.(@hops) == {400, "The request came through more than 20 trusted proxies.\n"}
  end

  describe "the option" do
    for {value, right?} <- [
          {[], true},
          {["10.0.0.0/8", "::1", :unix], true},
          {["2001:db8::/32"], true},
          {"127.0.0.1", false},
          {["localhost"], false},
          {["unix"], false},
          {[{127, 0, 0, 1}], false},
          {["10.0.0.0/33"], false},
          {["10.0.0.0/"], false},
          {["10.0.0.0/-1"], false},
          {["10.0.0/8"], false},
          {["::ffff:10.0.0.0/8"], false},
          # Then each client could say that it is any other.
          {["0.0.0.0/0"], false},
          {["::/0"], false}
        ] do
      test "#{inspect(value)} is #{if(right?, do: "taken", else: "refused")}" do
        value = unquote(Macro.escape(value))

        case Web.new(book: :b, trusted_proxies: value) do
          {:ok, _web} ->
            assert unquote(right?)

          {:error, error} ->
            refute unquote(right?)

            assert Exception.message(error) ==
                     ~s(expected a list of addresses, networks such as "10.0.0.0/8" and :unix ) <>
                       "as the option :trusted_proxies of Skillbook.Web, got: " <>
                       inspect(value)
        end
      end
    end

    test "without authentication it is refused" do
      web = Web.new!(book: :b, authenticate: :none, trusted_proxies: ["127.0.0.1"])
      {:error, error} = Web.listen(web, {:tcp, {127, 0, 0, 1}, 4004})

      assert Exception.message(error) ==
               "expected :tokens or a function, since other machines reach :trusted_proxies, " <>
                 "as the option :authenticate of Skillbook.Web, got: :none"
    end

    test "with :unix a unix socket checks the host, and needs one" do
      options = [book: book(sources: []), authenticate: fn _ -> {:ok, "default"} end]
      bare = Web.new!(options ++ [trusted_proxies: [:unix]])
      assert {:error, %OptionError{option: :url, problem: :missing}} = Web.listen(bare, :unix)

      for {trusted, host, status} <- [
            {[:unix], "s.example", 200},
            {[:unix], "evil.example", 421},
            {[:unix], nil, 400},
            {[], "evil.example", 200},
            {["127.0.0.1"], "evil.example", 200}
          ] do
        web = Web.new!(options ++ [trusted_proxies: trusted, url: "https://s.example"])
        {:ok, web} = Web.listen(web, :unix)
        call = Requests.call(web, "GET", "/api/skills", host: host, peer: :unix)
        assert {trusted, host, call.status} == {trusted, host, status}
      end
    end
  end

  defp through(address, more \\ []), do: [{"x-forwarded-for", address} | more]

  test "the host of the client is checked" do
    options = [trusted_proxies: ["127.0.0.1"], url: "https://s.example"]
    web = Requests.web(book(sources: []), options)
    host = fn host -> through("203.0.113.7", [{"x-forwarded-host", host}]) end

    for {headers, host, status} <- [
          {host.("s.example"), "inner:9", 200},
          {host.("s.example"), "evil.example", 200},
          {host.("evil.example"), "s.example", 421},
          {through("203.0.113.7"), "s.example", 200},
          {through("203.0.113.7"), "inner:9", 421}
        ] do
      call = Requests.call(web, "GET", "/api/skills", as: "default", headers: headers, host: host)
      assert {headers, call.status} == {headers, status}
    end
  end

  test "wrong tokens count for the client" do
    options = [authenticate: :tokens, trusted_proxies: ["127.0.0.1"]]
    web = Requests.web(book(sources: [], store: ":memory:"), options)
    {:ok, %{secret: right}} = Tokens.create(web.book, scopes: [:api])
    # Addresses that no other test has.
    [one, other] = for last <- [1, 2], do: "198.18.77.#{last}"

    ask = fn token, headers, peer ->
      headers = [{"authorization", "Bearer " <> token} | headers]
      Requests.call(web, "GET", "/api/skills", headers: headers, peer: peer)
    end

    # The count begins anew each minute. A spoofed address at the left changes nothing.
    refused =
      Enum.find_value(1..60, fn n ->
        response = ask.("sb_wrong", through("10.9.8.#{n}, " <> one), @near)
        assert response.status in [401, 429]
        if response.status == 429, do: response
      end)

    assert Requests.header(refused, "retry-after") =~ ~r/\A\d+\z/
    assert ask.("sb_wrong", through(other), @near).status == 401
    assert ask.(right.(), through(other), @near).status == 200

    # Not from a trusted proxy: the peer itself counts, whatever it says.
    peer = {198, 18, 77, 3}
    spoofs = fn n -> ask.("sb_wrong", through("10.9.8.#{n}"), peer).status == 429 end
    assert Enum.any?(1..60, spoofs)
  end

  test "connections of a trusted proxy are those of many clients" do
    for {trusted, open?} <- [
          {["127.0.0.1"], true},
          {["127.0.0.0/8", "::1"], true},
          {["127.0.0.2", "10.0.0.0/8", "::/1", :unix], false},
          {[], false}
        ] do
      options = [
        book: book(sources: [], store: ":memory:"),
        port: 0,
        max_connections_per_address: 2,
        trusted_proxies: trusted
      ]

      server = start_supervised!({Server, options}, id: make_ref())
      %{url: url, port: port} = Server.info(server)

      sockets =
        for _ <- 1..2 do
          socket = RawHTTP.connect(url)
          RawHTTP.put(socket, "GET /login HTTP/1.1\r\nhost: localhost:#{port}\r\n\r\n")
          assert {200, _headers, _body} = RawHTTP.response(socket, time: 60_000)
          socket
        end

      third = RawHTTP.connect(url)
      # One that is refused gets its answer without a request, and may be reset by one.
      if open?,
        do: RawHTTP.put(third, "GET /login HTTP/1.1\r\nhost: localhost:#{port}\r\n\r\n")

      {status, _headers, _body} = RawHTTP.response(third, time: 60_000)
      assert {trusted, status} == {trusted, if(open?, do: 200, else: 503)}
      for socket <- [third | sockets], do: RawHTTP.close(socket)
    end
  end

  test "the event of a request has the address of the client" do
    for {trusted, peer, client} <- [
          {["127.0.0.1"], @near, "203.0.113.7"},
          {[], @near, "127.0.0.1"},
          {["127.0.0.1"], {0x2001, 0xDB8, 0, 0, 0, 0, 0, 7}, "2001:db8::7"},
          {[], :unix, "unix"},
          {[], nil, nil}
        ] do
      name = book(sources: [])
      :telemetry.listen(name)
      web = Requests.web(name, trusted_proxies: trusted)
      Requests.call(web, "GET", "/api/skills", headers: through("203.0.113.7"), peer: peer)
      assert_receive {[:skillbook, :web, :request, :stop], _measured, metadata}
      assert metadata.client == client
    end
  end

  # {options, scheme, x-forwarded-proto, host, whether cookies are secure, the header of HSTS}
  @year "max-age=31536000"
  @https [
    {[url: "https://s.example"], :http, "https", "s.example", true, @year},
    {[url: "https://s.example"], :http, nil, "s.example", true, @year},
    {[url: "https://s.example"], :https, nil, "s.example", true, @year},
    {[url: "https://s.example"], :http, nil, "127.0.0.1:4004", false, nil},
    {[url: "https://s.example"], :https, nil, "127.0.0.1:4004", true, nil},
    {[url: "https://s.example:8443"], :https, nil, "s.example:8443", true, nil},
    {[url: "https://localhost"], :https, nil, "localhost", true, nil},
    {[url: "http://s.example"], :http, nil, "s.example", false, nil},
    {[hosts: ["s.example"]], :http, "https", "s.example", true, nil},
    {[hosts: ["s.example"]], :http, "http", "s.example", false, nil},
    {[hosts: ["s.example"]], :http, nil, "s.example", false, nil}
  ]

  for {options, scheme, proto, host, secure?, hsts} <- @https do
    test "#{inspect(options)}, #{scheme} forwarded as #{inspect(proto)} for #{host}" do
      name = book(sources: [], store: ":memory:", profiles: [[id: "default"]])
      options = [authenticate: :tokens, trusted_proxies: ["127.0.0.1"]] ++ unquote(options)
      web = Requests.web(name, options)
      {:ok, token} = Tokens.create(name, scopes: [:page])
      proto = if unquote(proto), do: [{"x-forwarded-proto", unquote(proto)}], else: []

      response =
        Requests.call(web, "POST", "/login",
          form: %{"token" => token.secret.()},
          headers: proto,
          host: unquote(host),
          scheme: unquote(scheme)
        )

      assert response.status == 303
      cookie = Requests.header(response, "set-cookie")
      assert String.contains?(cookie, "; Secure") == unquote(secure?)
      assert String.starts_with?(cookie, "__Host-") == unquote(secure?)
      assert Requests.header(response, "strict-transport-security") == unquote(hsts)
    end
  end

  test "an application decides for its host which browsers use https alone" do
    web =
      Web.new!(
        book: book(sources: []),
        url: "https://s.example",
        authenticate: fn _ -> :error end
      )

    {:ok, web} = Web.listen(web, :plug)
    response = Requests.call(web, "GET", "/", host: "s.example", scheme: :https)
    assert Requests.header(response, "strict-transport-security") == nil
  end

  test "links name the host of the client, or the option :url" do
    for {options, link} <- [
          {[hosts: ["s.example"]], "https://s.example/.well-known/oauth-protected-resource/mcp"},
          {[url: "https://p.example/x", hosts: ["s.example"]],
           "https://p.example/x/.well-known/oauth-protected-resource/mcp"}
        ] do
      options =
        [trusted_proxies: ["127.0.0.1"], authorization_servers: ["https://auth.example"]] ++
          options

      web = Requests.web(book(sources: []), options)
      headers = [{"x-forwarded-proto", "https"}, {"x-forwarded-host", "s.example"}]
      response = Requests.call(web, "POST", "/mcp", headers: headers, host: "inner")
      assert response.status == 401

      assert Requests.header(response, "www-authenticate") ==
               ~s(Bearer resource_metadata="#{link}")
    end
  end
end
