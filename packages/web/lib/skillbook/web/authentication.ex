defmodule Skillbook.Web.Authentication do
  @moduledoc false
  # Finds the caller of a request: by a token, by the function of the application, by the session
  # of a browser, or, where nothing is asked, the profile of the options.
  #
  # A wrong token is refused, and nothing else is tried then. Of those who read what is published
  # for everyone nobody is asked: what they send is not looked at.

  alias Skillbook.{Book, SQL}
  alias Skillbook.Web.{Attempts, Caller, Cookie, Request, Response, Secrets, Sessions, Tokens}

  @doc "Returns the caller of a request for an area."
  @spec caller(Request.t(), Skillbook.Web.area(), Skillbook.Web.t()) ::
          {:ok, Caller.t()} | {:refused, Response.t()}
  def caller(request, :discovery, %{publish: profile} = web)
      when profile != nil and request.method != "PUT",
      do: published(request, web)

  def caller(request, area, web) do
    case identify(request, area, web) do
      {:ok, caller} -> {:ok, caller}
      {:refused, response} -> {:refused, response}
      none when none in [:none, :wrong] -> {:refused, unauthorized(request, area, web)}
      {:redirect, url} -> {:refused, sign_in(request, area, url, web)}
    end
  end

  defp identify(request, area, web) do
    bearer = bearer(request)

    cond do
      bearer != nil and Secrets.prefixed?(bearer) -> by_token(request, bearer, web)
      web.authenticate == :none -> open(web)
      web.authenticate != :tokens -> by_application(request, area, web)
      bearer != nil -> :wrong
      area == :page -> by_session(request, web)
      true -> :none
    end
  end

  defp bearer(request) do
    with value when is_binary(value) <- Request.header(request, "authorization"),
         [_all, token] <- Regex.run(~r/\Abearer +(\S+) *\z/i, value),
         do: token,
         else: (_other -> nil)
  end

  defp by_token(request, text, web) do
    with {:ok, token} <- verify(request, text, web) do
      fields = [
        via: :token,
        token: token.id,
        scopes: token.scopes,
        operator?: token.operator?
      ]

      with :error <- Caller.new(web.book, token.profile, fields), do: :wrong
    else
      :error -> :wrong
      {:refused, response} -> {:refused, response}
    end
  end

  @doc "Returns the token of a text, and counts a wrong one."
  @spec verify(Request.t(), String.t(), Skillbook.Web.t()) ::
          {:ok, Skillbook.Web.Token.t()} | :error | {:refused, Response.t()}
  def verify(request, text, web) do
    attempt(request, Attempts.right?(text), fn ->
      with {:ok, token} <- Tokens.verify(Book.fetch!(web.book), text) do
        Attempts.right(text)
        {:ok, token}
      end
    end)
  end

  @doc "Returns the session that a one-time link begins, and counts a wrong one."
  @spec redeem(Request.t(), String.t(), Skillbook.Web.t()) ::
          {:ok, Sessions.session()} | :error | {:refused, Response.t()}
  def redeem(request, secret, web),
    do: attempt(request, false, fn -> Sessions.redeem(Book.fetch!(web.book), secret) end)

  defp attempt(request, right?, verify) do
    wait = Attempts.wait(request.peer)

    if wait > 0 and not right? do
      text = "Too many wrong tokens came from this address. Try again in #{wait} seconds."
      {:refused, retry(request, 429, text, wait)}
    else
      case verify.() do
        {:ok, found} ->
          {:ok, found}

        :error ->
          Attempts.failed(request.peer)
          :error

        {:error, error} ->
          {:refused, no_database(request, error)}
      end
    end
  end

  # The caller learns nothing about the database.
  defp no_database(request, %SQL.Error{}),
    do: retry(request, 503, "The database of tokens does not answer.", 5)

  defp retry(request, status, text, seconds) do
    request
    |> Response.error(status, text)
    |> Response.put_header("retry-after", to_string(seconds))
  end

  # A server that asks nothing lets everyone who reaches it do everything.
  defp open(web) do
    with :error <- Caller.new(web.book, web.profile, via: :open, operator?: true), do: :none
  end

  defp by_session(request, web) do
    with secret when is_binary(secret) <- Cookie.get(request, web),
         {:ok, session} <- Sessions.fetch(Book.fetch!(web.book), secret, web.sessions[:idle]) do
      fields = [
        via: :session,
        token: session.token,
        scopes: session.scopes,
        operator?: session.operator?,
        csrf: Secrets.csrf(secret)
      ]

      with :error <- Caller.new(web.book, session.profile, fields), do: :none
    else
      {:error, error} -> {:refused, no_database(request, error)}
      _none -> :none
    end
  end

  @doc """
  Whether the caller of a stream's request is still the one that it was, with the same rights. It
  is no use of a session: a page that is only left open does not keep it. An application is asked
  again. A database that does not answer ends nothing.
  """
  @spec holds?(Request.t(), Skillbook.Web.t()) :: boolean()
  def holds?(%Request{caller: caller} = request, web) do
    with %Book{} = book <- Book.find(web.book),
         {:ok, now} <- again(caller.via, request, book, web),
         do: rights(now) == rights(caller),
         else: (_none -> false)
  end

  defp again(:application, request, _book, web), do: by_application(request, :page, web)

  defp again(via, %Request{caller: caller} = request, book, web) do
    with result when result != :error <- held(via, request, book, web),
         do: Caller.new(web.book, caller.profile.id, via: via, operator?: caller.operator?)
  end

  # Functions in a profile may be new ones each time that it is fetched.
  defp rights(%Caller{profile: profile, operator?: operator?}),
    do: {operator?, Map.drop(profile, [:assigns, :preflight])}

  defp held(:token, request, book, _web), do: Tokens.find(book, request.caller.token)

  defp held(:session, request, book, web) do
    with secret when is_binary(secret) <- Cookie.get(request, web),
         do: Sessions.find(book, secret, web.sessions[:idle]),
         else: (nil -> :error)
  end

  defp by_application(request, area, %{authenticate: authenticate, book: book} = web) do
    answer =
      case authenticate do
        {module, function} -> apply(module, function, [request])
        function -> function.(request)
      end

    case answer do
      {:ok, profile} -> application(book, profile, false)
      {:ok, profile, [operator: operator?]} -> application(book, profile, operator? == true)
      {:redirect, url} when is_binary(url) -> {:redirect, url}
      {:forbidden, scope} -> {:refused, forbidden(request, area, web, scope)}
      none when none in [:error, nil] -> :none
      _other -> raise ArgumentError, expected(authenticate)
    end
  end

  # Without the value, which may be secret.
  defp expected(authenticate) do
    "expected {:ok, profile}, {:ok, profile, operator: boolean}, {:redirect, url}, " <>
      "{:forbidden, scope} or :error from the :authenticate of Skillbook.Web, " <>
      "#{inspect(authenticate)}, got another term"
  end

  defp application(book, profile, operator?) do
    with :error <- Caller.new(book, profile, via: :application, operator?: operator?), do: :none
  end

  defp published(request, web) do
    case Caller.new(web.book, web.publish, via: :open, scopes: [:discovery]) do
      {:ok, caller} -> {:ok, caller}
      :error -> {:refused, Response.error(request, 404, "Not found.")}
    end
  end

  defp unauthorized(request, area, %{authenticate: :tokens} = web) do
    if area == :page and Request.header(request, "authorization") == nil,
      do: sign_in(request, area, Request.path(request, ["login"], to(request)), web),
      else: refuse(request, area, web)
  end

  defp unauthorized(request, area, web), do: refuse(request, area, web)

  # The page to go to after the sign-in, below the base.
  defp to(%{path: []}), do: []
  defp to(request), do: [to: Request.path(request, request.path) <> query(request.query)]
  defp query(""), do: ""
  defp query(query), do: "?" <> query

  defp sign_in(request, area, url, web) do
    if browses?(request, area),
      do: Response.redirect(303, url),
      else: refuse(request, area, web)
  end

  defp browses?(request, area) do
    area == :page and request.method in ["GET", "HEAD"] and request.path != ["events"] and
      not Request.wants_json?(request)
  end

  @doc """
  Refuses a token that is right, but lacks a scope of OAuth, which the client then asks for
  (RFC 6750, 3.1).
  """
  @spec forbidden(Request.t(), Skillbook.Web.area(), Skillbook.Web.t(), String.t()) ::
          Response.t()
  def forbidden(request, area, web, scope) do
    unless is_binary(scope) and scope =~ ~r/\A[\x21\x23-\x5b\x5d-\x7e ]+\z/ do
      raise ArgumentError,
            "expected the scope of {:forbidden, scope}, from the :authenticate of " <>
              "Skillbook.Web, to be words of ASCII without quotes, got: #{inspect(scope)}"
    end

    scopes = ~s(error="insufficient_scope", scope="#{scope}")

    value =
      case challenge(request, area, web) do
        "Bearer" -> "Bearer " <> scopes
        "Bearer " <> more -> "Bearer #{scopes}, #{more}"
      end

    request
    |> Response.error(403, "The token is not for this part of the server.")
    |> Response.put_header("www-authenticate", value)
  end

  defp refuse(request, area, web) do
    request
    |> Response.error(401, "Sign in, or send a token: authorization: Bearer sb_….")
    |> Response.put_header("www-authenticate", challenge(request, area, web))
  end

  # RFC 9728, 5.1: a client of MCP reads where to get a token.
  defp challenge(request, :mcp, %{authorization_servers: [_ | _]} = web) do
    url = Request.url(request, web, [".well-known", "oauth-protected-resource", "mcp"])
    ~s(Bearer resource_metadata="#{url}")
  end

  defp challenge(_request, _area, _web), do: "Bearer"
end
