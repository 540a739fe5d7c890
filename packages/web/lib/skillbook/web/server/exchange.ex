defmodule Skillbook.Web.Server.Exchange do
  @moduledoc false
  # Answers one request, in a process of its own. The native library has read all of it, and tells
  # the server to kill this process when the client of a stream, or of a request that changes
  # nothing, has gone.

  alias Skillbook.HTTP.Library
  alias Skillbook.Support.Number
  alias Skillbook.Web.{Request, Response}

  require Logger

  @typedoc "The handle of the native library."
  @opaque t :: reference()

  # Bytes for one call of the native library, which copies them.
  @part 64 * 1024

  @doc "Answers a request with the response of `handler`."
  @spec run(t(), (Request.t() -> Response.t())) :: :ok
  def run(exchange, handler) do
    with {:ok, head, body} <- Library.web_take(exchange),
         do: answer(exchange, head, body, handler)

    :ok
  end

  @doc "Answers a request that gets no process."
  @spec unavailable(t()) :: :ok
  def unavailable(exchange) do
    headers = [{"content-type", "text/plain; charset=utf-8"}, {"retry-after", "1"}]
    _ = Library.web_respond(exchange, 503, headers, "Service Unavailable\n")
    :ok
  end

  # A report of the process would show its arguments, and with them cookies and tokens.
  defp answer(exchange, head, body, handler) do
    case segments(head.path) do
      {:ok, path} ->
        request = struct!(Request, %{head | path: path} |> Map.put(:body, body))
        respond(exchange, request.method, handler.(request))

      :error ->
        respond(exchange, head.method, Response.text(400, "The path is not valid.\n"))
    end
  catch
    kind, reason ->
      stacktrace = Enum.map(__STACKTRACE__, &without_arguments/1)

      Logger.error([
        "a request failed: #{head.method}\n",
        Exception.format(kind, reason, stacktrace)
      ])

      # Nobody gets it if the response has begun; the end of this process breaks it off.
      headers = [{"content-type", "text/plain; charset=utf-8"}]
      Library.web_respond(exchange, 500, headers, "Internal Server Error\n")
  end

  defp without_arguments({module, name, arguments, place}) when is_list(arguments),
    do: {module, name, length(arguments), place}

  defp without_arguments(entry), do: entry

  defp segments(path) do
    # `URI.decode/1` keeps a percent sign that encodes nothing.
    encoded? = not (path =~ ~r/%(?![0-9A-Fa-f]{2})/)
    segments = for segment <- String.split(path, "/"), segment != "", do: URI.decode(segment)
    valid? = Enum.all?(segments, &(String.valid?(&1) and not String.contains?(&1, <<0>>)))
    if encoded? and valid?, do: {:ok, segments}, else: :error
  end

  # The length is that of GET's body. `Skillbook.Web.call/2` has taken the body off, and left the
  # length in the headers, unless it was a stream.
  defp respond(exchange, "HEAD", %Response{} = response) do
    length =
      case {List.keyfind(response.headers, "content-length", 0), response.body} do
        {{_name, length}, _body} -> Number.integer!(length)
        {nil, none} when none == "" or is_tuple(none) -> nil
        {nil, body} -> IO.iodata_length(body)
      end

    headers = List.keydelete(response.headers, "content-length", 0)

    with :ok <- begin(exchange, %{response | headers: headers}, length, false),
         do: Library.web_finish(exchange)
  end

  defp respond(exchange, method, %Response{body: {:stream, fun}} = response) do
    endless? = method == "GET" and events?(response.headers)

    case begin(exchange, response, nil, endless?) do
      :ok ->
        fun.(&write(exchange, IO.iodata_to_binary(&1)))
        Library.web_finish(exchange)

      :busy ->
        unavailable(exchange)

      :closed ->
        :ok
    end
  end

  defp respond(exchange, _method, %Response{} = response) do
    body = IO.iodata_to_binary(response.body)

    if byte_size(body) <= @part do
      checked(Library.web_respond(exchange, response.status, response.headers, body))
    else
      with :ok <- begin(exchange, response, byte_size(body), false) do
        write(exchange, body)
        Library.web_finish(exchange)
      end
    end
  end

  defp events?(headers) do
    Enum.any?(headers, fn {name, value} ->
      name == "content-type" and String.starts_with?(value, "text/event-stream")
    end)
  end

  defp begin(exchange, response, length, endless?) do
    checked(Library.web_stream(exchange, response.status, response.headers, length, endless?))
  end

  defp checked({:error, text}), do: raise(ArgumentError, text)
  defp checked(outcome), do: outcome

  defp write(_exchange, ""), do: :ok

  defp write(exchange, <<part::binary-size(@part), rest::binary>>) when rest != "" do
    with :ok <- write_part(exchange, part), do: write(exchange, rest)
  end

  defp write(exchange, part), do: write_part(exchange, part)

  defp write_part(exchange, part) do
    reference = make_ref()

    case Library.web_write(exchange, reference, part) do
      :ok ->
        # The library always sends it, when the client has taken the part or has gone.
        receive do
          {^reference, outcome} -> outcome
        end

      :closed ->
        {:error, :closed}
    end
  end
end
