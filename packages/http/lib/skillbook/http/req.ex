defmodule Skillbook.HTTP.Req do
  @moduledoc """
  Requests through the application's own Req, with its steps, its pool and its telemetry.

      request = Req.new(auth: {:netrc, path})
      Skillbook.HTTP.request(url, adapter: {Skillbook.HTTP.Req, request: request})

  Tried with Req 0.5.17 over Finch 0.21. Skillbook does not depend on it.

  ## Options

    * `:request` - a `Req.Request` to start from. Default: `Req.new()`

  Req's retries, redirects and decompression are turned off, since `Skillbook.HTTP` has its own.
  `:protocol` and `:proxy` of `Skillbook.HTTP` are ignored: set `:connect_options` of the request,
  or its `:finch`, which also overrides `:connect_timeout` and `:cacertfile`. Req delivers the
  head with the first data, and of several headers with one name only the last.
  """

  @behaviour Skillbook.HTTP.Adapter
  # Not a dependency.
  @compile {:no_warn_undefined, [Req, Req.Request]}

  alias Skillbook.HTTP.Finch

  @impl true
  def stream(request, settings, options, acc, fun) do
    # After an error Req returns nothing of the response, so the accumulator is kept here.
    key = {__MODULE__, make_ref()}
    Process.put(key, {:waits, acc})
    given = options[:request] || Req.new()
    made = given |> Req.merge(options(request, settings, key, fun)) |> connecting(settings)

    try do
      {_request, response} = Req.Request.run_request(made)
      outcome(response, Process.get(key), settings, fun)
    after
      Process.delete(key)
    end
  end

  defp options(request, settings, key, fun) do
    [
      method: Finch.method(request),
      url: request.url,
      headers: request.headers.(),
      body: request.body,
      retry: false,
      redirect: false,
      compressed: false,
      raw: true,
      receive_timeout: settings.idle_timeout,
      pool_timeout: settings.connect_timeout,
      into: fn {:data, data}, {request, response} ->
        {next, acc} = data(Process.get(key), data, response, fun)
        Process.put(key, {next, acc})
        {next, {request, response}}
      end
    ]
  end

  # Req refuses options of connections beside a pool.
  defp connecting(%{options: %{finch: _}} = request, _settings), do: request

  defp connecting(request, settings) do
    trusted =
      if settings.cacertfile, do: [transport_opts: [cacertfile: settings.cacertfile]], else: []

    own = Keyword.put(trusted, :timeout, settings.connect_timeout)
    given = Map.get(request.options, :connect_options, [])
    Req.merge(request, connect_options: Keyword.merge(own, given))
  end

  defp data({:waits, acc}, data, response, fun) do
    with {:cont, acc} <- fun.(head(response), acc), do: fun.({:data, data}, acc)
  end

  defp data({:cont, acc}, data, _response, fun), do: fun.({:data, data}, acc)

  defp outcome(%{__exception__: true} = exception, {_, acc}, settings, _fun),
    do: {:error, Finch.error(exception, settings), acc}

  defp outcome(_response, {:halt, acc}, _settings, _fun), do: {:halted, acc}
  defp outcome(_response, {:cont, acc}, _settings, _fun), do: {:ok, acc}

  defp outcome(response, {:waits, acc}, _settings, fun) do
    with {:cont, acc} <- fun.(head(response), acc),
         do: {:ok, acc},
         else: ({:halt, acc} -> {:halted, acc})
  end

  defp head(%{status: status, headers: headers}),
    do:
      {:head, status,
       for({name, values} <- headers, value <- List.wrap(values), do: {name, value})}
end
