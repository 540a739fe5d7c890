defmodule Skillbook.HTTP.Native do
  @moduledoc """
  The default HTTP client: reqwest in the native library of HTTP, with rustls for TLS.

  Connections are pooled per server and settings and shared by all processes: up to 64 idle ones
  per server, for 50 seconds each. HTTP/2 requests share one connection. If the server closes a
  pooled connection just as a request is sent, the request is repeated once, provided that the
  server never saw it or that its method is idempotent (`GET`, `HEAD`, `PUT`, `DELETE`,
  `OPTIONS`).

  Waiting blocks no scheduler. Parts of the response arrive as messages, one for each that was
  asked for. If the calling process dies, the request is cancelled and its connection closed.

  Host names must be ASCII (`xn--…` for others). The adapter has no options of its own.
  """

  @behaviour Skillbook.HTTP.Adapter

  alias Skillbook.HTTP.{Error, Library}

  @impl true
  def stream(request, settings, _options, acc, fun) do
    reference = make_ref()

    with {:ok, client} <- client(settings),
         {:ok, stream} <- send_request(client, reference, request, settings) do
      try do
        parts({stream, reference}, settings, acc, fun)
      after
        Library.http_leave(stream)
      end
    else
      {:error, kind, text} -> {:error, error(kind, text, settings), acc}
    end
  end

  defp client(settings) do
    settings
    |> Map.take([:protocol, :connect_timeout, :cacertfile])
    |> Map.merge(proxies(settings.proxy))
    |> Library.http_client()
  end

  defp send_request(client, reference, request, settings) do
    method = request.method |> to_string() |> String.upcase()
    body = request.body && IO.iodata_to_binary(request.body)
    limits = Map.take(settings, [:idle_timeout, :timeout])

    Library.http_request(
      client,
      reference,
      method,
      to_string(request.url),
      request.headers.(),
      body,
      limits
    )
  end

  # Every question is answered by one message; the request itself asks for the head.
  defp parts({stream, reference} = from, settings, acc, fun) do
    receive do
      {^reference, :done} ->
        {:ok, acc}

      {^reference, {:last, data}} ->
        {next, acc} = fun.({:data, data}, acc)
        {if(next == :cont, do: :ok, else: :halted), acc}

      {^reference, {:error, kind, text}} ->
        {:error, error(kind, text, settings), acc}

      {^reference, part} ->
        case fun.(part, acc) do
          {:cont, acc} ->
            Library.http_next(stream, reference)
            parts(from, settings, acc, fun)

          {:halt, acc} ->
            {:halted, acc}
        end
    end
  end

  defp error(:connect_timeout, _text, settings),
    do: %Error{
      kind: :connect_timeout,
      reason: "nobody answers within #{Error.seconds(settings.connect_timeout)}"
    }

  defp error(kind, text, _settings), do: %Error{kind: kind, reason: text}

  # Proxies

  # Never reached through a proxy of the environment.
  @local "localhost,127.0.0.0/8,::1"

  defp proxies(:env) do
    all = environment("all_proxy")
    # A CGI program gets the request's header `Proxy` in this variable.
    http =
      if System.get_env("REQUEST_METHOD"),
        do: System.get_env("http_proxy"),
        else: environment("http_proxy")

    except = Enum.join([environment("no_proxy") || "", @local], ",")
    %{http_proxy: http || all, https_proxy: environment("https_proxy") || all, no_proxy: except}
  end

  defp proxies(function) when is_function(function, 0), do: proxies(function.())
  defp proxies(url), do: %{http_proxy: url, https_proxy: url, no_proxy: nil}

  defp environment(name) do
    Enum.find_value([name, String.upcase(name)], fn name ->
      case System.get_env(name) do
        empty when empty in [nil, ""] -> nil
        value -> value
      end
    end)
  end
end
