defmodule Skillbook.Web.CORS do
  @moduledoc false
  # Lets pages of other websites, such as clients of MCP in a browser, use MCP and the API: those
  # of the option `origins`, with a token. Never the page, and never with the browser's cookies:
  # the header that would allow them is not sent (Fetch, 3.3).

  alias Skillbook.Web.{Access, Caller, Request, Response}

  # The methods of each route.
  @routes %{
    mcp: "GET, POST, DELETE",
    api: "GET, HEAD",
    chat: "POST",
    metadata: "GET, HEAD"
  }

  # Headers of requests that browsers ask about. MCP: the session and the version, those of the
  # revision without sessions, and the one that clients of older revisions send after a broken
  # stream. The API: the etag of an answer.
  @headers "authorization, content-type, mcp-session-id, mcp-protocol-version, mcp-method, " <>
             "mcp-name, last-event-id, if-none-match"

  # Headers of responses that scripts may read.
  @exposed "mcp-session-id, www-authenticate, retry-after, etag, allow"

  # Seconds for which a browser remembers the answer to a preflight; Chromium's most.
  @max_age 7_200

  @doc "Whether a text is an origin: a scheme, a host and maybe a port."
  @spec origin?(term()) :: boolean()
  def origin?(text),
    do: Access.url?(text) and text =~ ~r{\A[a-z]+://[\w.:\[\]-]+\z}i

  @doc "Whether a page of this other website may send the request."
  @spec allowed?(Request.t(), atom(), Skillbook.Web.t()) :: boolean()
  def allowed?(_request, _route, %{origins: []}), do: false

  def allowed?(request, route, web),
    do: is_map_key(@routes, route) and Request.header(request, "origin") in web.origins

  @doc "Whether a browser asks if it may send a request of a page of another website."
  @spec preflight?(Request.t(), atom(), Skillbook.Web.t()) :: boolean()
  def preflight?(%Request{method: "OPTIONS"} = request, route, web) do
    web.origins != [] and is_map_key(@routes, route) and
      Request.header(request, "origin") != nil and
      Request.header(request, "access-control-request-method") != nil
  end

  def preflight?(_request, _route, _web), do: false

  @doc "Answers that question, for a website that has been found to be allowed."
  @spec preflight(Request.t(), atom(), Skillbook.Web.t()) :: :ok | {:preflight, Response.t()}
  def preflight(request, route, web) do
    if preflight?(request, route, web) do
      headers = [
        {"access-control-allow-methods", @routes[route]},
        {"access-control-allow-headers", @headers},
        {"access-control-max-age", to_string(@max_age)}
      ]

      {:preflight, %Response{status: 204, headers: headers}}
    else
      :ok
    end
  end

  @doc """
  Refuses a request of another website with a cookie of the application: its pages are to send a
  token.
  """
  @spec check_cookie(Request.t(), atom(), Caller.t(), Skillbook.Web.t()) ::
          :ok | {:refused, Response.t()}
  def check_cookie(request, route, %Caller{via: :application}, web) do
    if Request.header(request, "cookie") != nil and allowed?(request, route, web) and
         Access.cross?(request, web),
       do: {:refused, Response.error(request, 403, "Send a token, and no cookie.")},
       else: :ok
  end

  def check_cookie(_request, _route, _caller, _web), do: :ok

  @doc "The headers by which a browser shows a response to the page that asked."
  @spec headers(Request.t(), atom(), Skillbook.Web.t()) :: [{String.t(), String.t()}]
  def headers(_request, _route, %{origins: []}), do: []

  def headers(request, route, web) do
    cond do
      allowed?(request, route, web) -> of_origin(Request.header(request, "origin"))
      is_map_key(@routes, route) -> [{"vary", "origin"}]
      true -> []
    end
  end

  @shared [{"access-control-expose-headers", @exposed}, {"vary", "origin"}]

  defp of_origin(origin), do: [{"access-control-allow-origin", origin} | @shared]

  @doc """
  The paths below which errors of the server itself, such as for a body that is too large, have
  the headers, and those beside the origin.
  """
  @spec shared() :: %{paths: [String.t()], headers: [{String.t(), String.t()}]}
  def shared,
    do: %{paths: ["/mcp", "/api", "/.well-known/oauth-protected-resource"], headers: @shared}
end
