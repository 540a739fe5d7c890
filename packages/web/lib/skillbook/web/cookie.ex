defmodule Skillbook.Web.Cookie do
  @moduledoc false
  # The cookies of a session and of sign-ins to accounts. Scripts cannot read them, and other
  # websites cannot send them (`SameSite=Strict`). With TLS their names begin with `__Host-`, so
  # that no other host sets them (RFC 6265bis, 4.1.3.2). Cookies do not know ports, so the names
  # have the port: several servers on one machine keep their sessions apart.

  alias Skillbook.Web.{Access, Request, Response}

  @typedoc """
  The session; the browser in which sign-ins to accounts begin; and the answer of a vendor, on its
  way from the vendor's redirect to the session.
  """
  @type kind :: :session | :browser | :answer

  @names %{session: "skillbook", browser: "skillbook-browser", answer: "skillbook-answer"}

  @doc "The value of a cookie of a request, or `nil`."
  @spec get(Request.t(), Skillbook.Web.t(), kind()) :: String.t() | nil
  def get(request, web, kind \\ :session), do: Request.cookie(request, name(request, web, kind))

  @doc "Sets a cookie for a number of seconds."
  @spec put(response, Request.t(), Skillbook.Web.t(), String.t(), non_neg_integer(), kind()) ::
          response
        when response: Response.t()
  def put(response, request, web, value, seconds, kind \\ :session) do
    secure = if Access.secure?(request, web), do: "; Secure", else: ""

    Response.put_header(
      response,
      "set-cookie",
      "#{name(request, web, kind)}=#{value}; Path=/; Max-Age=#{seconds}; HttpOnly; " <>
        "SameSite=Strict" <> secure
    )
  end

  @doc "Removes a cookie."
  @spec delete(Response.t(), Request.t(), Skillbook.Web.t(), kind()) :: Response.t()
  def delete(response, request, web, kind \\ :session),
    do: put(response, request, web, "", 0, kind)

  defp name(request, web, kind) do
    prefix = if Access.secure?(request, web), do: "__Host-", else: ""

    case Regex.run(~r/:(\d+)\z/, request.host || "") do
      [_all, port] -> "#{prefix}#{@names[kind]}-#{port}"
      nil -> prefix <> @names[kind]
    end
  end
end
