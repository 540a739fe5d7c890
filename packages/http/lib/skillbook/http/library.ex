defmodule Skillbook.HTTP.Library do
  @moduledoc false
  # The native library of HTTP (native/skillbook_http): the client of `Skillbook.HTTP.Native` and
  # the server of `Skillbook.Web.Server`, which share most of it.

  use Skillbook.Support.NativeLibrary,
    app: :skillbook_http,
    crate: "skillbook_http",
    twins: [
      http_client(settings)
    ],
    functions: [
      http_request(client, reference, method, url, headers, body, limits),
      http_next(stream, reference),
      http_leave(stream),
      web_start(settings),
      web_stop(server, reference, drain_ms),
      web_info(server),
      web_take(exchange),
      web_respond(exchange, status, headers, body),
      web_stream(exchange, status, headers, length, is_endless),
      web_write(exchange, reference, data),
      web_finish(exchange)
    ]
end
