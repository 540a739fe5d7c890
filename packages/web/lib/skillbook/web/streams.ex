defmodule Skillbook.Web.Streams do
  @moduledoc false
  # Limits the event streams of one caller on a node, so that nobody holds all that a server has.
  # A caller is a token, a session of a browser, or an address; for an application, a profile at
  # an address.

  alias Skillbook.Book.Cache
  alias Skillbook.MCP.Sessions
  alias Skillbook.Web.{Attempts, Caller, Request, Response}

  # Seconds after which a refused client may try again.
  @retry 10

  @doc "Returns the response, or an error in place of a stream that is over the limit."
  @spec limit(Response.t(), Request.t(), Skillbook.Web.t()) :: Response.t()
  def limit(
        %{body: {:stream, _fun}} = response,
        %{method: "GET", caller: %Caller{}} = request,
        web
      ) do
    if {"content-type", "text/event-stream"} in response.headers,
      do: counted(response, request, web),
      else: response
  end

  def limit(response, _request, _web), do: response

  defp counted(%{body: {:stream, fun}} = response, request, web) do
    max = web.max_streams_per_caller
    group = {:event_streams, web.book, Cache.key(who(request))}

    case Sessions.join(group, max) do
      :ok ->
        # An adapter may use its process for the next request too.
        joined = self()
        %{response | body: {:stream, &left(fun, &1, group, joined)}}

      :full ->
        text = "This caller has #{max} event streams, the most at once. Close some of them."
        request |> Response.error(429, text) |> Response.put_header("retry-after", "#{@retry}")
    end
  end

  defp left(fun, write, group, joined) do
    fun.(write)
  after
    Sessions.leave(group, joined)
  end

  defp who(%{caller: %{via: :token, token: id}}), do: {:token, id}
  defp who(%{caller: %{via: :session, csrf: csrf}}), do: {:session, csrf}

  defp who(%{caller: %{via: :application, profile: profile}, peer: peer}),
    do: {:application, profile.id, Attempts.network(peer)}

  defp who(%{peer: peer}), do: {:address, Attempts.network(peer)}
end
