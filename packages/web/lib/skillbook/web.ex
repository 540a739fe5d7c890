defmodule Skillbook.Web do
  @moduledoc """
  Serves a book over HTTP: a page for people, MCP, a read-only API and the discovery of skills.

  `call/2` is a function from a request to a response. Two adapters call it:

    * `Skillbook.Web.Server`, a server of its own, which `bin/skillbook serve` starts
    * `Skillbook.Web.Plug`, for applications with Plug, such as those of Phoenix

  | path | area | |
  |---|---|---|
  | `/mcp` | `:mcp` | the Model Context Protocol |
  | `/api` | `:api` | skills as JSON, read-only |
  | `/api/chat` | `:chat` | conversations with the book's model, for Vercel's AI SDK |
  | `/.well-known/agent-skills` | `:discovery` | skills for other books to install |
  | all others | `:page` | the page |

  Each request has one profile, and sees the skills of the profile's view. See
  [the web](docs/web.md) for tokens, sessions and what is refused.

  ## Options

    * `:book` (name) - the book. Required
    * `:authenticate` - how a request gets its profile. Defaults to `:tokens`
      * `:tokens` - by tokens of `Skillbook.Web.Tokens`, and by sessions of browsers, which begin
        with a token or a one-time link. The book needs a `:store`
      * a function of the `Skillbook.Web.Request`, or `{module, function}` - the application
        decides. It returns `{:ok, profile}` with an id or a `Skillbook.Profile`,
        `{:ok, profile, operator: true}`, `:error`, `{:redirect, url}` with the page to sign in
        at, or `{:forbidden, scope}` if a token of OAuth is right but lacks this scope. Tokens
        work too
      * `:none` - every request has the profile of `:profile`. Only for a server that other
        machines cannot reach
    * `:profile` (text) - the id of the profile for one-time links and for `authenticate: :none`.
      Defaults to `"default"`
    * `:publish` (text or `nil`) - the id of a profile whose skills everyone may see below
      `/.well-known/agent-skills`, without authentication; a token that is sent is ignored.
      Defaults to `nil`
    * `:url` (URL or `nil`) - the address as browsers see it, such as
      `"https://skills.example.com"`. Sign-ins to accounts lead back to it. Required behind a
      proxy, and with `Skillbook.Web.Plug`
    * `:hosts` (list of texts) - further values of the header `host` to answer. Defaults to `[]`
    * `:origins` (list of texts) - other websites, such as `"https://inspector.example.com"`,
      whose pages may use `/mcp` and `/api` in a browser, with a token. Defaults to `[]`
    * `:trusted_proxies` (list) - proxies in front, whose headers `x-forwarded-for`, `-proto`,
      `-host` or `forwarded` say where a request comes from: addresses, networks such as
      `"10.0.0.0/8"`, and `:unix` for those that connect to a unix socket. Defaults to `[]`: the
      headers are ignored. Not for `Skillbook.Web.Plug`
    * `:serve` (list) - the areas above. Defaults to all but `:chat`, whose callers run commands
    * `:sessions` (keyword list) - how long a session of a browser lasts, in seconds: `:idle`
      without a request, and `:expire` at most. Defaults to `[idle: 43_200, expire: 604_800]`
    * `:max_streams_per_caller` (from 1) - how many event streams a token, a session of a browser,
      an address without either, or a profile of the application at one address may have at once
      on a node. Beyond it they are refused with 429 and `retry-after`. Defaults to `100`
    * `:authorization_servers` (list of URLs) - the servers of OAuth whose tokens the function of
      `:authenticate` takes, for clients of MCP. Defaults to `[]`
    * `:mcp` (keyword list) - options of `Skillbook.MCP`. Defaults to `[]`

  ## Examples

      iex> {:ok, _pid} = Skillbook.start_link(name: :web_example)
      iex> web = Skillbook.Web.new!(book: :web_example, url: "http://example.com",
      ...>   authenticate: fn _request -> {:ok, "default"} end)
      iex> request = %Skillbook.Web.Request{host: "example.com", path: ["api", "skills"]}
      iex> Skillbook.Web.call(request, web).status
      200
      iex> Skillbook.Web.call(%{request | host: "other.example"}, web).status
      421
  """

  alias Skillbook.Support.Options
  alias Skillbook.Web.{Access, Authentication, Caller, CORS, Proxies, Request, Response, Streams}
  alias Skillbook.{Book, OptionError, Telemetry}

  @type area :: :page | :mcp | :api | :chat | :discovery

  @typedoc "Where a server listens; `nil` before it does."
  @type listener :: {:tcp, :inet.ip_address(), :inet.port_number()} | :unix | :plug | nil

  @type authenticate ::
          :tokens
          | :none
          | {module(), atom()}
          | (Request.t() ->
               {:ok, String.t() | Skillbook.Profile.t()}
               | {:ok, String.t() | Skillbook.Profile.t(), [operator: boolean()]}
               | :error
               | {:redirect, String.t()}
               | {:forbidden, String.t()})

  @type t :: %__MODULE__{
          book: atom(),
          profile: String.t(),
          authenticate: authenticate(),
          publish: String.t() | nil,
          url: String.t() | nil,
          hosts: [String.t()],
          origins: [String.t()],
          trusted_proxies: [{non_neg_integer(), non_neg_integer(), 32 | 128} | :unix],
          serve: [area()],
          sessions: [idle: pos_integer(), expire: pos_integer()],
          max_streams_per_caller: pos_integer(),
          authorization_servers: [String.t()],
          mcp: Skillbook.MCP.options(),
          listener: listener()
        }

  @areas [:page, :mcp, :api, :chat, :discovery]
  @sessions [idle: 43_200, expire: 604_800]

  @enforce_keys [:book]
  defstruct [
    :book,
    :publish,
    :url,
    :listener,
    profile: "default",
    authenticate: :tokens,
    hosts: [],
    origins: [],
    trusted_proxies: [],
    serve: @areas -- [:chat],
    sessions: @sessions,
    max_streams_per_caller: 100,
    authorization_servers: [],
    mcp: []
  ]

  @subject "Skillbook.Web"
  @methods ~w(GET HEAD POST PUT PATCH DELETE)
  # Bytes of a query.
  @max_query 8_192

  @doc """
  Checks the options, and raises `Skillbook.OptionError` for a wrong one.

      iex> Skillbook.Web.new!(book: MyApp.Skills).serve
      [:page, :mcp, :api, :discovery]
  """
  @spec new!(Skillbook.options()) :: t()
  def new!(options) do
    case new(options) do
      {:ok, web} -> web
      {:error, error} -> raise error
    end
  end

  @doc """
  Like `new!/1`, but returns the error.

      iex> {:error, error} = Skillbook.Web.new(book: MyApp.Skills, serve: [:pages])
      iex> error.option
      :serve
  """
  @spec new(Skillbook.options()) :: {:ok, t()} | {:error, OptionError.t()}
  def new(options) do
    options = Options.keywords(options, [:sessions, :mcp])

    with :ok <- Options.validate(options, @subject, schema()),
         :ok <- Options.validate(options[:sessions] || [], "the :sessions of a web", times()),
         :ok <- Skillbook.MCP.check(options[:mcp] || []) do
      if Keyword.has_key?(options, :book),
        do: {:ok, struct!(__MODULE__, read(options))},
        else: {:error, %OptionError{subject: @subject, option: :book, problem: :missing}}
    end
  end

  defp read(options) do
    Keyword.new(options, fn
      {:sessions, given} -> {:sessions, Keyword.merge(@sessions, given)}
      {:origins, given} -> {:origins, Enum.map(given, &Access.origin/1)}
      {:trusted_proxies, given} -> {:trusted_proxies, Enum.map(given, &network!/1)}
      option -> option
    end)
  end

  defp network!(given) do
    {:ok, network} = Proxies.network(given)
    network
  end

  @doc false
  # The options of `new/1`, for adapters that take them beside their own.
  @spec options() :: [atom()]
  def options, do: Keyword.keys(schema())

  defp schema do
    area = "a list of #{Enum.map_join(@areas, ", ", &inspect/1)}"
    url = ~s(a URL such as "https://skills.example.com")

    [
      book: {"the name of a book", &(is_atom(&1) and &1 not in [nil, true, false])},
      authenticate: {":tokens, :none, a function of the request or {module, function}", &auth?/1},
      profile: {"the id of a profile", &Options.text?/1},
      publish: {"the id of a profile or nil", &(is_nil(&1) or Options.text?(&1))},
      url: {url <> " or nil", &(is_nil(&1) or Access.url?(&1))},
      hosts: {~s(a list of hosts such as "skills.example.com:4004"), &hosts?/1},
      origins: {~s(a list of origins such as "https://inspector.example.com"), &origins?/1},
      trusted_proxies:
        {~s(a list of addresses, networks such as "10.0.0.0/8" and :unix), &proxies?/1},
      serve: {area, &(is_list(&1) and &1 != [] and Enum.all?(&1, fn area -> area in @areas end))},
      sessions: {"a keyword list", &Keyword.keyword?/1},
      mcp: {"a keyword list", &Keyword.keyword?/1},
      max_streams_per_caller: {"a number from 1 on", &Options.positive?/1},
      authorization_servers:
        {"a list of URLs",
         &(is_list(&1) and
             Enum.all?(&1, fn url ->
               Access.url?(url)
             end))}
    ]
  end

  defp times, do: [idle: seconds(), expire: seconds()]
  defp seconds, do: {"a number of seconds", &Options.positive?/1}

  defp auth?(way) when way in [:tokens, :none], do: true

  defp auth?({module, function}), do: is_atom(module) and is_atom(function)
  defp auth?(function), do: is_function(function, 1)

  defp hosts?(hosts), do: is_list(hosts) and Enum.all?(hosts, &Access.host?/1)
  defp origins?(origins), do: is_list(origins) and Enum.all?(origins, &CORS.origin?/1)

  defp proxies?(proxies),
    do: is_list(proxies) and Enum.all?(proxies, &(Proxies.network(&1) != :error))

  @doc """
  Binds it to a listener. An adapter calls this once it knows its port, before the first request.

  Returns an error if requests from other machines would be answered without authentication, or
  tokens are to be kept in a book without a database.

      iex> web = Skillbook.Web.new!(book: MyApp.Skills, authenticate: :none)
      iex> {:ok, _web} = Skillbook.Web.listen(web, {:tcp, {127, 0, 0, 1}, 4004})
      iex> {:error, error} = Skillbook.Web.listen(web, {:tcp, {0, 0, 0, 0}, 4004})
      iex> error.option
      :authenticate
  """
  @spec listen(t(), listener()) :: {:ok, t()} | {:error, OptionError.t()}
  def listen(%__MODULE__{} = web, listener) do
    with :ok <- Access.check_listener(web, listener), do: {:ok, %{web | listener: listener}}
  end

  @doc """
  Answers a request.

  A response to `HEAD` has no body. Errors of a handler are raised.
  """
  @spec call(Request.t(), t()) :: Response.t()
  def call(%Request{} = request, %__MODULE__{} = web) do
    began = System.monotonic_time()
    route = route(request.path)
    {request, caller, response} = received(request, route, web)
    duration = System.monotonic_time() - began

    Telemetry.event([:skillbook, :web, :request, :stop], %{duration: duration}, %{
      book: web.book,
      profile: caller && caller.profile.id,
      route: route,
      method: if(request.method in @methods, do: request.method, else: "other"),
      status: response.status,
      client: client(request.peer)
    })

    finish(response, request, route, web)
  end

  defp client(peer) when is_tuple(peer), do: peer |> :inet.ntoa() |> to_string()
  defp client(:unix), do: "unix"
  defp client(nil), do: nil

  # All else sees the request as the client sent it to the first proxy.
  defp received(request, route, web) do
    case Proxies.client(request, web.trusted_proxies) do
      {:ok, request} ->
        {caller, response} = answer(request, route, web)
        {request, caller, response}

      {:refused, response} ->
        {request, nil, response}
    end
  end

  # The routes that tell a request apart before its caller is known, and the areas that they are
  # a part of.
  @routes [
    mcp: :mcp,
    metadata: :mcp,
    api: :api,
    chat: :chat,
    discovery: :discovery,
    session: :page,
    callback: :page,
    assets: :page,
    events: :page,
    page: :page
  ]

  defp route(["mcp"]), do: :mcp
  defp route([".well-known", "oauth-protected-resource" | _]), do: :metadata
  defp route(["api", "chat"]), do: :chat
  defp route(["api" | _]), do: :api
  defp route([".well-known", "agent-skills" | _]), do: :discovery
  defp route([".well-known" | _]), do: :none
  defp route(["open", _link]), do: :session
  defp route([name]) when name in ["login", "logout"], do: :session
  defp route(["connections", _account, "callback"]), do: :callback
  defp route(["assets" | _]), do: :assets
  defp route(["events"]), do: :events
  defp route(_path), do: :page

  defp answer(request, route, web) do
    with :ok <- well_formed(request, route, web),
         :ok <- Access.check_host(request, web),
         :ok <- served(request, route, web),
         :ok <- Access.check_origin(request, route, web),
         :ok <- CORS.preflight(request, route, web),
         :ok <- running(request, web),
         {:ok, caller} <- caller(request, route, web) do
      handled = %{request | caller: caller, method: handled(request.method)}

      response =
        route
        |> handle(handled, web)
        |> Response.conditional(handled)
        |> end_with_caller(handled, web)

      {caller, Streams.limit(response, %{handled | method: request.method}, web)}
    else
      {kind, response} when kind in [:refused, :preflight] -> {nil, response}
    end
  end

  # Handlers answer GET, and `finish/4` drops the body.
  defp handled("HEAD"), do: "GET"
  defp handled(method), do: method

  defp well_formed(request, route, web) do
    method? = request.method in @methods or CORS.preflight?(request, route, web)

    cond do
      # A look at a one-time link would use it up.
      not method? or (request.method == "HEAD" and route == :session) ->
        response = Response.error(request, 405, "This method is not served.")
        {:refused, Response.put_header(response, "allow", Enum.join(@methods, ", "))}

      byte_size(request.query) > @max_query ->
        refuse(%{request | query: ""}, 414, "The query is longer than #{@max_query} bytes.")

      Skillbook.Web.Form.urlencoded(request.query) == :error ->
        refuse(request, 400, "The query cannot be read.")

      not Enum.all?(request.path, &segment?/1) ->
        refuse(request, 400, "The path cannot be read.")

      true ->
        :ok
    end
  end

  # Names with `.` or `..` alone are read by some clients and proxies as folders.
  defp segment?(segment) do
    segment not in [".", ".."] and String.valid?(segment) and
      not String.contains?(segment, <<0>>)
  end

  defp served(request, route, web) do
    if @routes[route] in web.serve, do: :ok, else: refuse(request, 404, "Not found.")
  end

  defp running(request, web) do
    if Book.find(web.book), do: :ok, else: refuse(request, 503, "The book is not running.")
  end

  # Everyone may sign in, and a page to sign in at has a style. The metadata of OAuth says where
  # to get a token. A vendor sends the browser back from another website, without its cookie.
  defp caller(_request, route, _web) when route in [:session, :callback, :assets, :metadata],
    do: {:ok, nil}

  defp caller(request, route, web) do
    area = @routes[route]

    with {:ok, caller} <- Authentication.caller(request, area, web),
         :ok <- allowed(request, caller, area, web),
         :ok <- CORS.check_cookie(request, route, caller, web),
         :ok <- Access.check_forgery(request, caller),
         do: {:ok, caller}
  end

  defp allowed(request, caller, area, web) do
    if Caller.allows?(caller, area),
      do: :ok,
      else: {:refused, Authentication.forbidden(request, area, web, to_string(area))}
  end

  defp refuse(request, status, text), do: {:refused, Response.error(request, status, text)}

  @handlers [
    mcp: Skillbook.Web.MCP,
    metadata: Skillbook.Web.MCP,
    api: Skillbook.Web.API,
    chat: Skillbook.Web.API.Chat,
    discovery: Skillbook.Web.Published,
    session: Skillbook.Web.Session,
    callback: Skillbook.Web.Page,
    assets: Skillbook.Web.Page,
    events: Skillbook.Web.Page,
    page: Skillbook.Web.Page
  ]

  defp handle(route, request, web), do: @handlers[route].handle(request, web)

  # Milliseconds after which a stream looks whether its caller still holds.
  @recheck 60_000

  # A stream may be open for days. It ends when its token is revoked, its session has ended, or
  # its profile has other rights.
  defp end_with_caller(%{body: {:stream, fun}} = response, %{caller: %{via: via}} = request, web)
       when via in [:token, :session, :application] do
    guarded = fn write ->
      checked = :atomics.new(1, [])
      :atomics.put(checked, 1, now())

      fun.(fn data ->
        if holds?(checked, request, web), do: write.(data), else: {:error, :closed}
      end)
    end

    %{response | body: {:stream, guarded}}
  end

  defp end_with_caller(response, _request, _web), do: response

  defp holds?(checked, request, web) do
    if now() - :atomics.get(checked, 1) < @recheck do
      true
    else
      :atomics.put(checked, 1, now())
      Authentication.holds?(request, web)
    end
  end

  defp now, do: System.monotonic_time(:millisecond)

  # Scripts, styles and forms of this server alone, and nobody's frame.
  @policy "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; " <>
            "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

  # With `no-referrer` browsers send `origin: null` with forms, which could not be told from a
  # stranger's.
  @headers [
    {"content-security-policy", @policy},
    {"x-content-type-options", "nosniff"},
    {"referrer-policy", "same-origin"},
    {"cross-origin-resource-policy", "same-origin"},
    {"cross-origin-opener-policy", "same-origin"},
    {"cache-control", "no-store"}
  ]

  defp finish(response, request, route, web) do
    headers = @headers ++ Access.https_only(request, web) ++ CORS.headers(request, route, web)

    response = Enum.reduce(headers, response, &put_default/2)
    if request.method == "HEAD", do: without_body(response), else: response
  end

  defp put_default({"vary", names}, response), do: Response.vary(response, names)

  defp put_default({name, value}, %{headers: headers} = response) do
    if List.keymember?(headers, name, 0),
      do: response,
      else: %{response | headers: headers ++ [{name, value}]}
  end

  # The length would be that of 200, which nobody has counted.
  defp without_body(%{status: 304} = response), do: response
  defp without_body(%{body: {:stream, _fun}} = response), do: %{response | body: ""}

  defp without_body(response) do
    length = response.body |> IO.iodata_length() |> to_string()
    %{Response.put_header(response, "content-length", length) | body: ""}
  end
end
