defmodule Skillbook.Web.Access do
  @moduledoc false
  # Decides, apart from the caller, which requests are answered: by the header `host` (a website
  # whose name resolves to this machine sends its own: DNS rebinding), by `origin` and
  # `sec-fetch-site` (requests that other websites make in a browser), and by the token in forms.
  # Without authentication it only answers on loopback and on unix sockets.

  alias Skillbook.Book.Profiles
  alias Skillbook.{Book, OptionError}
  alias Skillbook.Web.{Caller, CORS, Request, Response, Secrets}

  @loopback ["localhost", "127.0.0.1", "[::1]"]
  @safe ["GET", "HEAD"]

  @doc "Whether a text is a URL of this server: no user, no query."
  @spec url?(term()) :: boolean()
  def url?(text) when is_binary(text) do
    case URI.new(text) do
      {:ok, %URI{scheme: scheme, host: host, userinfo: nil, query: nil, fragment: nil}} ->
        scheme in ["http", "https"] and host not in [nil, ""]

      _other ->
        false
    end
  end

  def url?(_other), do: false

  @doc "Whether a text can be a value of the header `host`."
  @spec host?(term()) :: boolean()
  def host?(text),
    do: is_binary(text) and text =~ ~r/\A(\[[0-9a-fA-F:.]+\]|[\w.-]+)(:\d{1,5})?\z/

  @doc "Checks that nothing is open to other machines without authentication."
  @spec check_listener(Skillbook.Web.t(), Skillbook.Web.listener()) ::
          :ok | {:error, OptionError.t()}
  def check_listener(web, listener) do
    cond do
      web.authenticate == :none and not local?(listener) ->
        expected =
          ":tokens or a function, since #{place(listener)} can be reached from other " <>
            "machines; listen on 127.0.0.1 for :none,"

        invalid(:authenticate, expected, :none)

      web.authenticate == :none and web.trusted_proxies != [] ->
        expected = ":tokens or a function, since other machines reach :trusted_proxies,"
        invalid(:authenticate, expected, :none)

      listener == :unix and :unix in web.trusted_proxies and web.url == nil and web.hosts == [] ->
        {:error, %OptionError{subject: "Skillbook.Web", option: :url, problem: :missing}}

      listener == :plug and web.url == nil and web.hosts == [] ->
        {:error, %OptionError{subject: "Skillbook.Web.Plug", option: :url, problem: :missing}}

      web.authenticate == :tokens and match?(%{store: nil}, Book.find(web.book)) ->
        invalid(:authenticate, "a function or :none for a book without a :store,", :tokens)

      true ->
        check_profiles(web, Book.find(web.book))
    end
  end

  # Before the first request, which could only be refused. The book may start later.
  defp check_profiles(_web, nil), do: :ok

  defp check_profiles(web, book) do
    open = if web.authenticate == :none, do: [profile: web.profile], else: []
    published = if web.publish, do: [publish: web.publish], else: []

    Enum.find_value(open ++ published, :ok, fn {option, id} ->
      if Profiles.fetch(book, id) == :error, do: invalid(option, Profiles.names(book), id)
    end)
  end

  defp invalid(option, expected, value) do
    problem = {:invalid, expected, value}
    {:error, %OptionError{subject: "Skillbook.Web", option: option, problem: problem}}
  end

  defp local?(:unix), do: true
  defp local?({:tcp, ip, _port}), do: loopback?(ip)
  defp local?(_other), do: false

  @doc "Whether an address is one of this machine alone."
  @spec loopback?(:inet.ip_address()) :: boolean()
  def loopback?({127, _, _, _}), do: true
  def loopback?({0, 0, 0, 0, 0, 0, 0, 1}), do: true
  def loopback?(_other), do: false

  defp place({:tcp, ip, port}), do: authority(ip, port)
  defp place(:plug), do: "an application"
  defp place(nil), do: "a server without an address"

  defp authority(ip, port) do
    text = ip |> :inet.ntoa() |> to_string()
    if tuple_size(ip) == 8, do: "[#{text}]:#{port}", else: "#{text}:#{port}"
  end

  @doc "Refuses a request for a host that is not this server's."
  @spec check_host(Request.t(), Skillbook.Web.t()) :: :ok | {:refused, Response.t()}
  def check_host(request, web) do
    cond do
      # No browser reaches a unix socket, unless by a proxy.
      web.listener == :unix and :unix not in web.trusted_proxies -> :ok
      request.host == nil -> refuse(request, 400, "The header host is missing.")
      normal(request.host, request.scheme) in hosts(web, request.scheme) -> :ok
      true -> refuse(request, 421, wrong_host(request, web))
    end
  end

  defp wrong_host(request, web) do
    host = inspect(request.host, printable_limit: 100)

    "This server does not answer for the host #{host}. Open #{address(web)}, or add the host " <>
      "to the server: the option hosts: or url: of Skillbook.Web, --url on the command line."
  end

  defp address(%{url: url}) when url != nil, do: url
  defp address(%{listener: {:tcp, _ip, port}}), do: "http://127.0.0.1:#{port}"
  defp address(_web), do: "its own address"

  # The hosts with their ports.
  defp hosts(web, scheme) do
    given = Enum.map(web.hosts, &normal(&1, scheme))
    of_url(web.url) ++ given ++ of_listener(web.listener)
  end

  defp of_url(nil), do: []

  defp of_url(url) do
    %URI{host: host, port: port} = URI.parse(url)
    host = if String.contains?(host, ":"), do: "[#{host}]", else: host
    # Behind a proxy that takes TLS off, the port of `https` is left out of a request by `http`.
    for port <- if(port == 443, do: [443, 80], else: [port]),
        do: "#{String.downcase(host)}:#{port}"
  end

  defp of_listener({:tcp, ip, port}),
    do: [authority(ip, port) | Enum.map(@loopback, &"#{&1}:#{port}")]

  defp of_listener(_other), do: []

  defp normal(host, scheme) do
    host = String.downcase(host)
    if host =~ ~r/:\d+\z/, do: host, else: "#{host}:#{default_port(scheme)}"
  end

  defp default_port(:http), do: 80
  defp default_port(:https), do: 443

  @doc "Whether the browser reaches the server by TLS, which a proxy may take off."
  @spec secure?(Request.t(), Skillbook.Web.t()) :: boolean()
  def secure?(%Request{scheme: :https}, _web), do: true
  def secure?(_request, %{url: nil}), do: false

  def secure?(request, web),
    do: String.starts_with?(web.url, "https:") and (request.host == nil or at_url?(request, web))

  @doc "Whether the browser uses the option `:url` or, without one, any address of the server."
  @spec at_url?(Request.t(), Skillbook.Web.t()) :: boolean()
  def at_url?(%Request{host: nil}, _web), do: false
  def at_url?(_request, %{url: nil}), do: true
  def at_url?(request, web), do: normal(request.host, request.scheme) in of_url(web.url)

  # Seconds for which a browser uses `https` alone.
  @https_only 31_536_000

  @doc """
  The header by which browsers use `https` alone for the host of `url` (RFC 6797). It holds for
  all ports of the host, so it is not sent if `url` has a port of its own, for `localhost`, or in
  an application, which decides it for its host.
  """
  @spec https_only(Request.t(), Skillbook.Web.t()) :: [{String.t(), String.t()}]
  def https_only(request, %{url: "https:" <> _ = url, listener: listener} = web)
      when listener != :plug do
    %URI{host: host, port: port} = URI.parse(url)
    here? = request.host != nil and normal(request.host, request.scheme) in of_url(url)

    if here? and port == 443 and String.downcase(host) != "localhost" and secure?(request, web),
      do: [{"strict-transport-security", "max-age=#{@https_only}"}],
      else: []
  end

  def https_only(_request, _web), do: []

  @doc """
  Refuses a request that another website makes in a browser, if it can change something or is to
  be answered to this server's own pages alone. The option `origins` has exceptions.
  """
  @spec check_origin(Request.t(), atom(), Skillbook.Web.t()) :: :ok | {:refused, Response.t()}
  def check_origin(request, route, web) do
    own? = request.method not in @safe or route in [:mcp, :events]

    if own? and cross?(request, web) and not CORS.allowed?(request, route, web),
      do: refuse(request, 403, "This request comes from another website."),
      else: :ok
  end

  @doc "Whether another website makes the request in a browser."
  @spec cross?(Request.t(), Skillbook.Web.t()) :: boolean()
  def cross?(request, web), do: site(request, web) == :cross

  # `origin: null` comes with forms of pages without a referrer; then `sec-fetch-site` decides.
  defp site(request, web) do
    origin = Request.header(request, "origin")
    fetch = Request.header(request, "sec-fetch-site")

    cond do
      origin not in [nil, "null"] and origin not in origins(request, web) -> :cross
      fetch in ["same-origin", "none"] -> :same
      fetch != nil or origin == "null" -> :cross
      origin == nil -> :unknown
      true -> :same
    end
  end

  # The host has been checked. A proxy may have taken TLS off.
  defp origins(request, web) do
    own = for scheme <- Enum.uniq([to_string(request.scheme), "https"]), do: scheme
    host = String.downcase(request.host || "")
    hosts = for scheme <- own, host != "", do: "#{scheme}://#{host}"
    if web.url, do: [origin(web.url) | hosts], else: hosts
  end

  @doc "The origin of a URL, as browsers send it."
  @spec origin(String.t()) :: String.t()
  def origin(url) do
    uri = %URI{URI.parse(url) | path: nil}
    port = if uri.port == URI.default_port(uri.scheme), do: nil, else: uri.port
    host = if String.contains?(uri.host, ":"), do: "[#{uri.host}]", else: uri.host
    String.downcase("#{uri.scheme}://#{host}#{port && ":#{port}"}")
  end

  @doc """
  Refuses a change that a website could have made with the cookies of the browser: a session needs
  the token of its forms, and an application's cookie a browser that says where the request comes
  from.
  """
  @spec check_forgery(Request.t(), Caller.t()) :: :ok | {:refused, Response.t()}
  def check_forgery(%Request{method: method}, _caller) when method in @safe, do: :ok

  def check_forgery(request, %Caller{via: :session, csrf: csrf}), do: check_csrf(request, csrf)

  def check_forgery(request, %Caller{via: :application}) do
    if Request.header(request, "cookie") != nil and
         Request.header(request, "origin") == nil and
         Request.header(request, "sec-fetch-site") == nil,
       do: refuse(request, 403, "A change needs the header origin or sec-fetch-site."),
       else: :ok
  end

  def check_forgery(_request, _caller), do: :ok

  @doc "Refuses a request without the token of the forms of its session."
  @spec check_csrf(Request.t(), String.t()) :: :ok | {:refused, Response.t()}
  def check_csrf(request, csrf) do
    given = Request.header(request, "x-csrf-token") || field(request)

    if is_binary(given) and Secrets.same?(given, csrf),
      do: :ok,
      else: refuse(request, 403, "The form is too old. Go back, reload the page and try again.")
  end

  defp field(request) do
    with {:ok, %{"_csrf" => csrf}} <- Request.form(request), do: csrf, else: (_other -> nil)
  end

  defp refuse(request, status, text), do: {:refused, Response.error(request, status, text)}
end
