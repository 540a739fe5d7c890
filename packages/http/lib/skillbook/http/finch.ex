defmodule Skillbook.HTTP.Finch do
  @moduledoc """
  Requests through the application's own Finch, with its pools and its telemetry.

      Skillbook.HTTP.request(url, adapter: {Skillbook.HTTP.Finch, name: MyApp.Finch})

  Tried with Finch 0.21 over Mint 1.7; needs Finch 0.20 or later. Skillbook does not depend on it.

  ## Options

    * `:name` - the name of the running Finch. Required

  Of the options of `Skillbook.HTTP`, `:connect_timeout` limits the wait for a connection of the
  pool. `:cacertfile`, `:protocol` and `:proxy` are ignored: configure the pools instead
  (`:conn_opts`, `:protocols`). Finch takes an interim response, such as `100 Continue`, for the
  final one.
  """

  @behaviour Skillbook.HTTP.Adapter
  # Not a dependency.
  @compile {:no_warn_undefined, Finch}

  alias Skillbook.HTTP.Error

  @impl true
  def stream(request, settings, options, acc, fun) do
    name = Keyword.fetch!(options, :name)
    limits = [pool_timeout: settings.connect_timeout, receive_timeout: settings.idle_timeout]

    built =
      Finch.build(method(request), URI.to_string(request.url), request.headers.(), request.body)

    case stream_while(built, name, {:cont, nil, acc}, &part(&1, &2, fun), limits) do
      {:ok, {:halt, _status, acc}} -> {:halted, acc}
      {:ok, {:cont, _status, acc}} -> {:ok, acc}
      {:error, exception, {_, _status, acc}} -> {:error, error(exception, settings), acc}
    end
  end

  @doc false
  # Finch knows the methods of WebDAV as texts only.
  @spec method(Skillbook.HTTP.Request.t()) :: atom() | String.t()
  def method(%{method: :propfind}), do: "PROPFIND"
  def method(%{method: :report}), do: "REPORT"
  def method(%{method: method}), do: method

  defp stream_while(request, name, state, fun, limits) do
    Finch.stream_while(request, name, state, fun, limits)
  rescue
    # The pool is exhausted.
    exception in RuntimeError ->
      if exception.message =~ "Finch was unable to provide a connection",
        do: {:error, %{reason: :pool}, state},
        else: reraise(exception, __STACKTRACE__)
  end

  defp part({:status, status}, {next, _status, acc}, _fun), do: {:cont, {next, status, acc}}
  defp part({:headers, list}, state, fun), do: hand_out({:head, elem(state, 1), list}, state, fun)
  defp part({:data, data}, state, fun), do: hand_out({:data, data}, state, fun)
  defp part({:trailers, _}, state, _fun), do: {:cont, state}

  defp hand_out(part, {_, status, acc}, fun) do
    {next, acc} = fun.(part, acc)
    {next, {next, status, acc}}
  end

  # The errors of Mint, Finch and Req have a reason, which may contain bytes of the response.
  @doc false
  @spec error(Exception.t() | map(), Skillbook.HTTP.Adapter.settings()) :: Error.t()
  def error(%{reason: reason} = exception, settings) do
    case reason do
      :timeout ->
        new(:idle_timeout, "no data came for #{Error.seconds(settings.idle_timeout)}")

      :request_timeout ->
        new(:timeout, "the time limit for the whole response has passed")

      :pool ->
        new(
          :connect_timeout,
          "the pool had no connection within #{Error.seconds(settings.connect_timeout)}"
        )

      closed when closed in [:closed, :econnreset, :epipe] ->
        new(:closed, "the connection broke")

      {:tls_alert, {alert, _text}} ->
        new(:certificate, "TLS: #{alert}")

      {tag, _} when is_atom(tag) ->
        new(:malformed, "invalid HTTP: #{tag}")

      tag when is_atom(tag) ->
        posix(exception, tag)

      _ ->
        new(:malformed, "invalid HTTP")
    end
  end

  def error(_exception, _settings), do: new(:malformed, "invalid HTTP")

  defp posix(%{__struct__: module}, tag) do
    if module |> Module.split() |> List.last() == "TransportError",
      do: new(:connect, tag |> :inet.format_error() |> to_string()),
      else: new(:malformed, "invalid HTTP: #{tag}")
  end

  defp new(kind, reason), do: %Error{kind: kind, reason: reason}
end
