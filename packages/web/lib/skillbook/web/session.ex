defmodule Skillbook.Web.Session do
  @moduledoc false
  # Signs browsers in and out.
  #
  # | request | |
  # |---|---|
  # | `GET /open/SECRET` | a one-time link: begins a session |
  # | `GET /login`, `POST /login` | a form that takes a token, and begins a session |
  # | `POST /logout` | ends the session |
  #
  # A session always gets a new secret, so that nobody can have prepared one for a browser.

  import Skillbook.Web.Html, only: [tag: 2, tag: 3]

  alias Skillbook.Book
  alias Skillbook.Web.{Access, Authentication, Caller, Cookie, Request, Response}
  alias Skillbook.Web.Page.{Layout, Parts}
  alias Skillbook.Web.{Secrets, Sessions}

  # Bytes of a form that signs in.
  @max_body 16_384

  @doc false
  @spec handle(Request.t(), Skillbook.Web.t()) :: Response.t()
  def handle(request, %{authenticate: authenticate}) when authenticate != :tokens,
    do: Response.error(request, 404, "Not found.")

  def handle(%Request{method: "GET", path: ["open", secret]} = request, web),
    do: open(request, secret, web)

  def handle(%Request{method: "GET", path: ["login"]} = request, web), do: form(request, web, 200)
  def handle(%Request{method: "POST", path: ["login"]} = request, web), do: log_in(request, web)
  def handle(%Request{method: "POST", path: ["logout"]} = request, web), do: log_out(request, web)

  def handle(request, _web) do
    allowed = if request.path == ["logout"], do: "POST", else: "GET, POST"

    request
    |> Response.error(405, "This method is not served.")
    |> Response.put_header("allow", allowed)
  end

  # The one-time link

  defp open(request, secret, web) do
    cond do
      prefetched?(request) ->
        Response.error(request, 503, "This link is not prefetched.")

      not window?(request) ->
        Response.error(request, 403, "Open this link in a window of its own.")

      signed_in?(request, web) ->
        Response.redirect(303, Request.path(request, []))

      true ->
        case Authentication.redeem(request, secret, web) do
          {:ok, session} -> start(request, session, web, &forward/1)
          {:refused, response} -> response
          :error -> used(request)
        end
    end
  end

  # A browser that looks ahead must not use the link up.
  defp prefetched?(request) do
    (Request.header(request, "sec-purpose") || Request.header(request, "purpose") || "") =~
      "prefetch"
  end

  # Another website could send wrong links as images or frames, until its user's browser is
  # refused for too many of them.
  defp window?(request), do: Request.header(request, "sec-fetch-dest") in [nil, "document"]

  # As the page decides it: a session that it refuses must lead to the form, not back to the page.
  defp signed_in?(request, web) do
    with {:ok, caller} <- Authentication.caller(request, :page, web),
         do: Caller.allows?(caller, :page),
         else: (_refused -> false)
  end

  defp forward(request),
    do: Layout.forward(request, "Signed in", Request.path(request, []), "Go on to Skillbook")

  defp used(request) do
    minutes = div(Sessions.link_seconds(), 60)

    Layout.plain(request, 410, "This link does not work any more", [
      tag(:p, [], [
        "A link signs in one browser, within #{minutes} minutes. For a new one, press Enter ",
        "where ",
        tag(:code, [], "skillbook serve"),
        " runs, or run ",
        tag(:code, [], "skillbook token link"),
        "."
      ]),
      tag(:p, [], tag(:a, [href: Request.path(request, ["login"])], "Sign in with a token"))
    ])
  end

  # The form

  defp form(request, web, status, error \\ nil) do
    if status == 200 and signed_in?(request, web) do
      Response.redirect(303, target(request, Request.query(request)["to"]))
    else
      Layout.plain(request, status, "Sign in", [
        tag(:form, [method: "post", action: Request.path(request, ["login"])], [
          tag(:input, type: "hidden", name: "to", value: to(request)),
          Parts.field(
            "token",
            "Token",
            [required: true, help: help(), error: error],
            fn attributes ->
              tag(:input, [type: "password", autocomplete: "current-password"] ++ attributes)
            end
          ),
          tag(:p, [], tag(:button, [type: "submit", class: "primary"], "Sign in"))
        ])
      ])
    end
  end

  defp help do
    [
      "It begins with sb_ and has the scope page. ",
      tag(:code, [], "skillbook token add --scope page"),
      " makes one."
    ]
  end

  defp to(%Request{method: "GET"} = request), do: text(Request.query(request)["to"])

  defp to(request) do
    case Request.form(request) do
      {:ok, %{"to" => to}} -> text(to)
      _other -> ""
    end
  end

  defp text(text) when is_binary(text), do: text
  defp text(_other), do: ""

  defp log_in(%Request{body: body} = request, _web) when byte_size(body) > @max_body,
    do: Response.error(request, 413, "The form is too long.")

  defp log_in(request, web) do
    with {:ok, %{"token" => token} = fields} when is_binary(token) <- Request.form(request),
         {:ok, token} <- Authentication.verify(request, String.trim(token), web) do
      if :page in token.scopes do
        session = %{profile: token.profile, operator?: token.operator?, token: token.id}
        target = target(request, fields["to"])
        start(request, session, web, fn _request -> Response.redirect(303, target) end)
      else
        form(request, web, 403, "This token does not open the page: it has no scope page.")
      end
    else
      {:refused, response} ->
        response

      _wrong ->
        form(
          request,
          web,
          401,
          "This token is not valid. It may be mistyped, removed or expired."
        )
    end
  end

  # Only pages of this server, below the base.
  defp target(request, to) do
    root = Request.path(request, [])

    if is_binary(to) and String.starts_with?(to, root) and
         to =~ ~r{\A/(?![/\\])[^\s\\[:cntrl:]]*\z},
       do: to,
       else: root
  end

  defp start(request, session, web, respond) do
    book = Book.fetch!(web.book)
    seconds = web.sessions[:expire]
    if old = Cookie.get(request, web), do: Sessions.stop(book, old)

    # The profile may be gone.
    with {:ok, _caller} <- Caller.new(web.book, session.profile, via: :session),
         {:ok, secret} <- Sessions.start(book, session, seconds) do
      request |> respond.() |> Cookie.put(request, web, secret.(), seconds)
    else
      :error -> form(request, web, 401, "The profile of this token does not exist any more.")
      {:error, _error} -> Response.error(request, 503, "The database does not answer.")
    end
  end

  defp log_out(request, web) do
    with secret when is_binary(secret) <- Cookie.get(request, web),
         :ok <- Access.check_csrf(request, Secrets.csrf(secret)) do
      Sessions.stop(Book.fetch!(web.book), secret)
      after_log_out(request, web)
    else
      nil -> after_log_out(request, web)
      {:refused, response} -> response
    end
  end

  defp after_log_out(request, web) do
    303
    |> Response.redirect(Request.path(request, ["login"]))
    |> Cookie.delete(request, web)
  end
end
