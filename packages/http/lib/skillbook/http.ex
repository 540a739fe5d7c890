defmodule Skillbook.HTTP do
  @moduledoc """
  The HTTP client for models and for skills installed from an address. Applications may use it
  too.

  Requests are sent by an adapter: by default the native library, or the application's own Finch,
  Req or [another client](#module-adapters). Redirects, gzip and limits are handled here.

  `request/2` returns the whole response, `stream/4` its parts as they arrive:

      {:ok, response} = Skillbook.HTTP.request("https://example.com/skills.json", redirects: 3)
      response.status
      #=> 200

      Skillbook.HTTP.stream(
        [method: :post, url: "https://example.com/v1/chat", body: body],
        [idle_timeout: 120_000],
        "",
        fn
          {:head, 200, _headers}, text -> {:cont, text}
          {:head, status, _headers}, _text -> {:halt, {:refused, status}}
          {:data, data}, text -> {:cont, text <> data}
        end
      )

  Both run in the calling process. The next part is read when the function returns, so a slow
  reader slows the server down and no messages pile up. To cancel a request, return `{:halt, acc}`
  or end the calling process; an exception in the function cancels it too.

  ## Options

    * `:adapter` - the client, a module or `{module, options}`. Default: `Skillbook.HTTP.Native`,
      which needs no dependency. See also `Skillbook.HTTP.Finch` and `Skillbook.HTTP.Req`
    * `:connect_timeout` - milliseconds to open a connection, TLS included. Default: 10,000
    * `:idle_timeout` - milliseconds to wait for the head, and then for each part. Default: 60,000
    * `:timeout` - milliseconds for the whole request: redirects, the body, and the time spent in
      the function. Endless responses end here. Default: 300,000
    * `:redirects` - how many redirects to follow; one more is an error. Default: 0, which returns
      the redirect itself
    * `:addresses` - with `:public`, hosts of a private network are an error, also those that a
      public name leads to; with `:public_redirects`, only redirects from a public host to them
      are. Names are looked up on this machine, also with a proxy. Default: `:any`
    * `:max_body` - the largest body that `request/2` accepts, in bytes after unpacking gzip.
      Default: 8 MiB
    * `:compressed` - whether to ask for gzip. Gzip is always unpacked. Default: true
    * `:cacertfile` - a PEM file of certificate authorities to trust instead of the system's
    * `:protocol` - `:auto` (HTTP/2 if the server offers it over TLS, else HTTP/1.1), `:http1`, or
      `:http2` without asking the server first. Default: `:auto`
    * `:proxy` - `:env`, `nil` for none, a URL such as
      `"http://user:password@proxy.example:3128"`, or a function that returns one. Default: `:env`

  The head of a response is limited to 64 KiB. Unknown options raise `Skillbook.OptionError`.

  ## Proxies

  With `proxy: :env`, the environment variables `HTTPS_PROXY` and `HTTP_PROXY` name the proxies,
  and `ALL_PROXY` is the fallback of both. `NO_PROXY` lists the exceptions, separated by commas:
  domains (with their subdomains), addresses, networks such as `10.0.0.0/8`, or `*`. Lower-case
  names of the variables take precedence. Local servers (`localhost`, `127.0.0.0/8`, `::1`) are
  never reached through a proxy of the environment. In a CGI program (`REQUEST_METHOD` is set),
  upper-case `HTTP_PROXY` is ignored, since a header of the incoming request can set it.

  ## Redirects

  A redirect to another scheme, host or port drops the headers `authorization`, `cookie` and
  `proxy-authorization`. A redirect from `https` to `http` is an error. After a 303, and after a
  301 or 302 to a `POST`, the next request is a `GET` without a body.

  ## Secrets

  Errors contain no headers or bodies, and of a URL only host and port. Pass the headers as a
  function to keep them out of crash reports too.

  ## Adapters

  To use another client, implement `Skillbook.HTTP.Adapter`. Redirects, gzip, size limits and
  `:timeout` are the same for every adapter.
  """

  alias Skillbook.HTTP.{Addresses, Error, Gzip, Request, Response}
  alias Skillbook.OptionError
  alias Skillbook.Support.Options

  @typedoc "A URL, or a keyword list with the fields of `Skillbook.HTTP.Request`."
  @type request :: String.t() | keyword() | Request.t()

  @typedoc "Names are lower-case."
  @type headers :: %{optional(String.t()) => [String.t()]}

  @type part :: {:head, status :: 100..999, headers()} | {:data, binary()}

  @defaults %{
    adapter: {Skillbook.HTTP.Native, []},
    connect_timeout: 10_000,
    idle_timeout: 60_000,
    timeout: 300_000,
    redirects: 0,
    addresses: :any,
    max_body: 8 * 1024 * 1024,
    compressed: true,
    cacertfile: nil,
    protocol: :auto,
    proxy: :env
  }

  @head_limit 64 * 1024

  @doc """
  Makes a request and returns the whole response, whatever its status.

  ## Examples

      iex> {:error, error} = Skillbook.HTTP.request("ftp://example.com")
      iex> Exception.message(error)
      ~s(expected a URL such as "https://example.com/path", without a user name before its host)
  """
  @spec request(request(), keyword()) :: {:ok, Response.t()} | {:error, Error.t()}
  def request(request, options \\ []) do
    options = Options.keywords(options)
    limit = Keyword.get(options, :max_body, @defaults.max_body)

    collect = fn
      {:head, status, headers}, _ ->
        {:cont, {status, headers, [], 0}}

      {:data, data}, {status, headers, body, size} ->
        case size + byte_size(data) do
          size when size > limit ->
            {:stop, :too_large,
             "the response has more than #{limit} " <>
               "bytes"}

          size ->
            {:cont, {status, headers, [body, data], size}}
        end
    end

    case stream(request, options, nil, collect) do
      {:ok, {status, headers, body, _size}} ->
        {:ok, %Response{status: status, headers: headers, body: IO.iodata_to_binary(body)}}

      {:error, error, _} ->
        {:error, error}
    end
  end

  @doc """
  Makes a request and calls `fun` with each part of the response.

  The first part is `{:head, status, headers}`; `{:data, binary}` follows as often as data
  arrives. Return `{:cont, acc}` to go on, or `{:halt, acc}` to cancel the request. An error comes
  with the accumulator so far.
  """
  @spec stream(request(), keyword(), acc, (part(), acc -> {:cont, acc} | {:halt, acc})) ::
          {:ok, acc} | {:halted, acc} | {:error, Error.t(), acc}
        when acc: term()
  def stream(request, options \\ [], acc, fun) do
    options = options!(options)
    deadline = System.monotonic_time(:millisecond) + options.timeout

    case Request.new(request, options.compressed) do
      {:ok, request} ->
        call = %{options: options, deadline: deadline, fun: fun, host: host(request)}
        allowed(request, options.redirects, call, acc)

      {:error, error} ->
        {:error, error, acc}
    end
  end

  defp host(%Request{url: %URI{host: host}}), do: String.downcase(host)

  defp allowed(request, redirects, call, acc) do
    case check_address(host(request), call) do
      :ok -> follow(request, redirects, call, acc)
      {:error, reason} -> {:error, placed(%Error{kind: :private, reason: reason}, request), acc}
    end
  end

  defp check_address(_host, %{options: %{addresses: :any}}), do: :ok
  defp check_address(host, %{options: %{addresses: :public_redirects}, host: host}), do: :ok

  defp check_address(host, %{options: options} = call) do
    if options.addresses == :public_redirects and Addresses.inside?(call.host),
      do: :ok,
      else: Addresses.check_public(host, options.connect_timeout)
  end

  defp follow(request, redirects, call, acc) do
    {adapter, adapter_options} = call.options.adapter

    settings =
      Map.take(call.options, [:connect_timeout, :idle_timeout, :cacertfile, :protocol, :proxy])

    settings =
      Map.put(settings, :timeout, max(call.deadline - System.monotonic_time(:millisecond), 0))

    state = %{acc: acc, call: call, follows: call.options.redirects > 0, gzip: nil, ended: nil}
    outcome = adapter.stream(request, settings, adapter_options, state, &part/2)

    case {outcome, elem(outcome, tuple_size(outcome) - 1)} do
      {{:ok, _}, %{gzip: gzip} = state} when gzip != nil ->
        check_gzip_end(request, state)

      {{:ok, _}, state} ->
        {:ok, state.acc}

      {{:halted, _}, %{ended: nil} = state} ->
        {:halted, state.acc}

      {{:halted, _}, %{ended: {:redirect, status, to}} = state} ->
        redirect(request, status, to, redirects, call, state)

      {{:halted, _}, %{ended: {kind, reason}} = state} ->
        failed(request, kind, reason, state)

      {{:error, error, _}, state} ->
        {:error, placed(error, request), state.acc}
    end
  end

  defp check_gzip_end(request, state) do
    if Gzip.ended?(state.gzip),
      do: {:ok, state.acc},
      else: failed(request, :closed, "its gzip data ends too early", state)
  end

  defp failed(request, kind, reason, state),
    do: {:error, placed(%Error{kind: kind, reason: reason}, request), state.acc}

  defp placed(error, request), do: %{error | place: Request.place(request)}

  defp redirect(request, _status, _to, 0, call, state),
    do:
      failed(request, :redirect, "there are more than #{call.options.redirects} redirects", state)

  defp redirect(request, status, to, redirects, call, state) do
    case Request.redirect(request, status, to) do
      {:ok, request} -> allowed(request, redirects - 1, call, state.acc)
      {:error, reason} -> failed(request, :redirect, reason, state)
    end
  end

  # The response, part by part

  @redirects [301, 302, 303, 307, 308]

  defp part({:head, status, list}, state) do
    headers = Enum.group_by(list, fn {name, _} -> String.downcase(name) end, &elem(&1, 1))

    size =
      for {name, value} <- list,
          reduce: 0,
          do: (size -> size + byte_size(name) + byte_size(value) + 4)

    cond do
      size > @head_limit ->
        stop(state, :too_large, "its header is too long")

      state.follows and status in @redirects and headers["location"] != nil ->
        {:halt, %{state | ended: {:redirect, status, hd(headers["location"])}}}

      Response.header(headers, "content-encoding") in ["gzip", "x-gzip"] ->
        headers = Map.drop(headers, ["content-encoding", "content-length"])
        hand_out(%{state | gzip: Gzip.new()}, {:head, status, headers})

      true ->
        hand_out(state, {:head, status, headers})
    end
  end

  defp part({:data, data}, %{gzip: nil} = state), do: in_time(state, &hand_out(&1, {:data, data}))

  defp part({:data, data}, %{gzip: gzip} = state),
    do: in_time(state, &unpacked(Gzip.feed(gzip, data), &1))

  # Unpacked data comes in pieces of some kilobytes, however well it was packed.
  defp unpacked(:error, state), do: stop(state, :malformed, "its gzip data is broken")
  defp unpacked({:more, gzip}, state), do: {:cont, %{state | gzip: gzip}}

  defp unpacked({:data, data, rest}, state) do
    with {:cont, state} <- hand_out(state, {:data, data}),
         do: in_time(state, &unpacked(rest.(), &1))
  end

  defp hand_out(state, part) do
    case state.call.fun.(part, state.acc) do
      {:stop, kind, reason} -> stop(state, kind, reason)
      {next, acc} -> {next, %{state | acc: acc}}
    end
  end

  # For adapters without a time limit of their own, and for endless gzip.
  defp in_time(state, next) do
    if System.monotonic_time(:millisecond) >= state.call.deadline,
      do: stop(state, :timeout, "the time limit for the whole response has passed"),
      else: next.(state)
  end

  defp stop(state, kind, reason), do: {:halt, %{state | ended: {kind, reason}}}

  # Options

  defp options!(options) do
    options = Options.keywords(options)

    case Options.validate(options, "an HTTP request", schema()) do
      :ok -> Map.merge(@defaults, Map.new(options)) |> Map.update!(:adapter, &adapter/1)
      {:error, error} -> raise without_password(error)
    end
  end

  defp adapter(module) when is_atom(module), do: {module, []}
  defp adapter(adapter), do: adapter

  defp without_password(%OptionError{option: :proxy, problem: {:invalid, expected, _}} = error),
    do: %{error | problem: {:invalid, expected, :hidden}}

  defp without_password(error), do: error

  @doc false
  @spec adapter?(term()) :: boolean()
  def adapter?({module, options}),
    do: is_atom(module) and module != nil and Keyword.keyword?(options)

  def adapter?(module), do: is_atom(module) and module not in [nil, true, false]

  @doc false
  @spec adapter_expected() :: String.t()
  def adapter_expected, do: "an adapter of Skillbook.HTTP, a module or {module, options}"

  defp schema do
    milliseconds = {"a number of milliseconds", &Options.milliseconds?/1}

    [
      adapter: {adapter_expected(), &adapter?/1},
      connect_timeout: milliseconds,
      idle_timeout: milliseconds,
      timeout: milliseconds,
      redirects: {"a whole number from 0 to 20", &(&1 in 0..20)},
      addresses: {
        ":any, :public or :public_redirects",
        &(&1 in [:any, :public, :public_redirects])
      },
      max_body: {"a number of bytes", &Options.positive?/1},
      compressed: {"true or false", &is_boolean/1},
      cacertfile: {"a path or nil", &(is_nil(&1) or Options.text?(&1))},
      protocol: {":auto, :http1 or :http2", &(&1 in [:auto, :http1, :http2])},
      proxy: {":env, nil, a URL or a function that returns one", &proxy?/1}
    ]
  end

  @doc false
  @spec proxy?(term()) :: boolean()
  def proxy?(proxy), do: proxy in [:env, nil] or Options.text?(proxy) or is_function(proxy, 0)
end
