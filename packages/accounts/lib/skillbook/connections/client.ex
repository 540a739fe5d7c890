defmodule Skillbook.Connections.Client do
  @moduledoc false
  # Requests to the service of an account: the token, repeats by the vendor's rules, its quotas,
  # pages and batches. Every adapter of a service uses it.
  #
  # A call returns before the account's deadline, whatever the server does: waits, repeats and
  # requests are bounded by it. A request that may have been carried out is only repeated if
  # that is harmless (GET, PUT, DELETE, or `repeat: true`).

  alias Skillbook.Connections
  alias Skillbook.Connections.Account
  alias Skillbook.Connections.Client.{Multipart, Quota, Rules}
  alias Skillbook.HTTP
  alias Skillbook.HTTP.{Addresses, Failure, Service}
  alias Skillbook.{ConnectionError, ServiceError, Telemetry}
  alias Skillbook.Support.JSON

  @typedoc """
  `:method` (default `:get`), `:url` with the vendor's own host, `:query`, `:headers`, and a body
  as `:json` or as `body: {content_type, iodata}`. `:authorization` is a function that makes the
  header of this name from the token; by default it is a bearer token.
  """
  @type request :: keyword()

  @type answer :: %{status: 200..399, headers: HTTP.headers(), body: term()}

  @reads [:get, :head, :options, :propfind, :report]
  @idempotent [:put, :delete | @reads]
  @max_pages 100
  # Milliseconds.
  @default_time 30_000

  @doc """
  Sends a request and returns its answer, or an error that a model can act on.

  If the account has an `url`, it replaces scheme, host and port, and its path comes before that
  of the request.

  ## Options

    * `:scopes` - any one of them suffices for the request. Default: `[]`
    * `:method` - the vendor's name of the method for telemetry, such as
      `"gmail.users.labels.list"`. Default: the HTTP method and the host
    * `:decode` - `:json`, which gives `nil` for an empty body, or `:raw`. Default: `:json`
    * `:answers` - statuses outside of 200 to 299 that are answers, too. Default: `[]`
    * `:max_body` - the largest answer in bytes. Default: 8 MiB
    * `:into` - an open file that takes the body of a success, which is then `""`. An attempt that
      fails is repeated from the file's beginning
    * `:redirects` - how many redirects to public hosts are followed. Another host gets no token.
      Default: 0
    * `:signed` - the address is one of the vendor's answers that lets in all who know it, on any
      public host. It gets no token. Default: false
    * `:repeat` - whether it may be repeated after a failure that leaves open whether it was
      carried out. Default: true for GET, PUT and DELETE
    * `:changes` - whether it may change something, so that an error says if that is left open.
      Default: false for GET
    * `:cost` - units of the vendor's quota. Default: the vendor's
    * `:fields` - the parts of the answer to ask for, as the vendor writes them
    * `:retries` - how often it is repeated. Default: that of the account's options, or 4
    * `:backoff` - milliseconds before the first repeat, twice as many before each further one, a
      random part of them taken off. Default: 500
  """
  @spec request(Account.t(), request(), keyword()) ::
          {:ok, answer()} | {:error, Exception.t()}
  def request(account, request, options \\ []) do
    rules = Rules.of(account.vendor)
    began = System.monotonic_time()
    # The requests that were sent, and those that may have been carried out though they failed.
    sent = :counters.new(2, [])

    result =
      with {:ok, url} <- url(account, rules, request, options) do
        call = %{
          account: account,
          rules: rules,
          url: url,
          request: request,
          options: options,
          repeat: Keyword.get(options, :repeat, method(request) in @idempotent),
          changes: Keyword.get(options, :changes, method(request) not in @reads),
          deadline: account.deadline || System.monotonic_time(:millisecond) + @default_time,
          sent: sent
        }

        pace = %{
          retries: options[:retries] || setting(account, :retries, 4),
          backoff: options[:backoff] || 500,
          sleep: options[:sleep] || (&Process.sleep/1)
        }

        Service.attempt(pace, call.deadline, fn _ -> :ok end, fn -> attempt(call) end)
      end

    result = counted(result, :counters.get(sent, 1), :counters.get(sent, 2) > 0)
    tell(account, request, options, result, began, :counters.get(sent, 1))
    result
  end

  defp setting(account, name, default) do
    case account.options do
      %{^name => value} when value != nil -> value
      _ -> default
    end
  end

  defp method(request), do: Keyword.get(request, :method, :get)

  defp counted({:error, %ServiceError{} = error}, sent, unclear),
    do: {:error, %{error | attempts: sent, unclear: error.unclear or unclear}}

  defp counted(result, _sent, _unclear), do: result

  defp tell(account, request, options, result, began, sent) do
    {status, kind} =
      case result do
        {:ok, %{status: status}} -> {status, nil}
        {:error, %ServiceError{status: status, kind: kind}} -> {status, kind}
        {:error, _connection} -> {nil, :account}
      end

    metadata = %{
      book: account.book,
      profile: account.profile,
      account: account.name,
      method: options[:method] || method_name(request),
      status: status,
      kind: kind,
      attempts: sent
    }

    measurements = %{duration: System.monotonic_time() - began}
    Telemetry.event([:skillbook, :connection, :request], measurements, metadata)
  end

  # Paths have ids.
  defp method_name(request) do
    host = URI.parse(to_string(request[:url])).host
    String.upcase(to_string(method(request))) <> " " <> to_string(host)
  end

  # The address

  defp url(account, rules, request, options) do
    url = with_fields(request, rules, options)

    cond do
      options[:signed] && (url.scheme == "https" or account.url != nil) -> {:ok, url}
      account.url != nil -> {:ok, elsewhere(url, account)}
      url.scheme == "https" and rules.host?(url.host || "") -> {:ok, url}
      true -> {:error, error(account, rules, url, :invalid, hint: "it names another server")}
    end
  end

  defp with_fields(request, rules, options) do
    query = Enum.map(request[:query] || [], fn {name, value} -> {to_string(name), value} end)
    query = if fields = options[:fields], do: query ++ rules.fields(fields), else: query
    request[:url] |> URI.parse() |> with_query(query)
  end

  defp with_query(url, []), do: url

  defp with_query(url, query) do
    query = URI.encode_query(query)
    %{url | query: if(url.query in [nil, ""], do: query, else: url.query <> "&" <> query)}
  end

  # A server that stands in for the vendor may answer with an address of its own.
  defp elsewhere(url, account) do
    text = URI.to_string(url)

    if String.starts_with?(text, String.trim_trailing(account.url, "/") <> "/"),
      do: url,
      else: account |> Account.url(text) |> URI.parse()
  end

  # One attempt, and a second one with another token

  defp attempt(call) do
    # A server that got no token says nothing of it.
    with {:ok, token} <- token(call), do: attempt(call, token, !call.options[:signed])
  end

  defp token(%{account: account, options: options}),
    do: Connections.token(account, Keyword.get(options, :scopes, []))

  defp attempt(call, token, first) do
    with :ok <- take(call) do
      case send_request(call, token) do
        {:ok, %{status: 401}} = refused when first -> renewed(call, token, refused)
        response -> result(response, call, token)
      end
    end
  end

  defp renewed(call, token, refused) do
    :ok = Connections.refused(call.account, token)

    with {:ok, next} <- token(call) do
      if next.() == token.(),
        do: result(refused, call, token),
        else: attempt(call, next, false)
    end
  end

  defp take(%{account: account, rules: rules, options: options} = call) do
    own = setting(account, :quota, [])

    # Quotas are of the vendor's service, so the address of a server in its place does not matter.
    call.request[:url]
    |> URI.parse()
    |> rules.quotas()
    |> Enum.find_value(:ok, fn {name, published, cost} ->
      key = {account.book, account.name, account.profile, name}
      quota = Keyword.get(own, name, published)

      with false <- quota == :infinity,
           {:error, wait} <- Quota.take(key, options[:cost] || cost, quota, call.deadline) do
        more = [
          retry_after: wait,
          hint: "this application keeps within the quota; ask again later"
        ]

        {:error, error(account, rules, named(call), :rate_limited, more)}
      else
        _ -> nil
      end
    end)
  end

  defp send_request(call, token) do
    left = call.deadline - System.monotonic_time(:millisecond)

    if left <= 0 do
      {:late, nil}
    else
      :counters.add(call.sent, 1, 1)
      {type, body} = body(call.request)
      headers = fn -> headers(call, type, token) end

      request = [
        method: method(call.request),
        url: URI.to_string(call.url),
        headers: headers,
        body: body
      ]

      case call.options[:into] do
        nil -> HTTP.request(request, limits(call, left))
        device -> download(request, limits(call, left), device)
      end
    end
  end

  # The body of a refusal is kept, since it says why.
  defp download(request, limits, device) do
    {max, limits} = Keyword.pop!(limits, :max_body)
    empty = %HTTP.Response{status: nil, headers: %{}, body: ""}

    with {:ok, _} <- :file.position(device, 0),
         :ok <- :file.truncate(device) do
      take = fn
        {:head, status, headers}, _none ->
          {:cont, {%{empty | status: status, headers: headers}, 0}}

        {:data, data}, {_response, size} when size + byte_size(data) > max ->
          {:stop, :too_large, "the response has more than #{max} bytes"}

        {:data, data}, {%{status: status} = response, size} when status in 200..299 ->
          case :file.write(device, data) do
            :ok -> {:cont, {response, size + byte_size(data)}}
            error -> {:halt, error}
          end

        {:data, data}, {response, size} ->
          {:cont, {%{response | body: response.body <> data}, size + byte_size(data)}}
      end

      case HTTP.stream(request, limits, nil, take) do
        {:ok, {response, _size}} -> {:ok, response}
        {:halted, {:error, reason}} -> {:file, reason}
        {:error, error, _response} -> {:error, error}
      end
    else
      {:error, reason} -> {:file, reason}
    end
  end

  defp limits(call, left) do
    limits = [
      timeout: min(left, 300_000),
      connect_timeout: min(left, 10_000),
      idle_timeout: min(left, 60_000),
      max_body: call.options[:max_body] || 8 * 1024 * 1024
    ]

    [{:adapter, call.account.http} | limits ++ addresses(call)]
  end

  defp addresses(%{options: options, account: account}) do
    cond do
      redirects = options[:redirects] ->
        [redirects: redirects, addresses: :public_redirects]

      options[:signed] ->
        # A server in the vendor's place may be a private one, and have others beside it.
        inside? = account.url != nil and Addresses.inside?(URI.parse(account.url).host || "")
        [addresses: if(inside?, do: :any, else: :public)]

      true ->
        []
    end
  end

  defp body(request) do
    case {request[:body], Keyword.fetch(request, :json)} do
      {{type, body}, _} -> {type, body}
      {nil, {:ok, json}} -> {"application/json", JSON.encode(json)}
      {nil, :error} -> {nil, nil}
    end
  end

  defp headers(%{request: request, options: options}, type, token) do
    type = if type, do: [{"content-type", type}], else: []
    authorization = Keyword.get(request, :authorization, &("Bearer " <> &1))
    own = if options[:signed], do: [], else: [{"authorization", authorization.(token.())}]
    own ++ type ++ (request[:headers] || [])
  end

  # Answers

  defp result({:late, nil}, call, _token),
    do: {:error, error(call.account, call.rules, named(call), :timeout, [])}

  defp result({:ok, %{status: status} = response}, call, token) do
    if status in 200..299 or status in Keyword.get(call.options, :answers, []) do
      with {:ok, body} <- decode(response.body, call),
           do: {:ok, %{status: status, headers: response.headers, body: body}}
    else
      refused(response, call, token)
    end
  end

  # The disk is full, say.
  defp result({:file, reason}, _call, _token),
    do: {:error, %File.Error{reason: reason, action: "write", path: "the file"}}

  # A connection that was never opened has sent nothing.
  defp result({:error, %HTTP.Error{} = failure}, call, _token) do
    {kind, text} = Failure.kind(failure)

    {kind, again} =
      cond do
        failure.kind in [:connect, :connect_timeout] -> {:connection, :always}
        failure.kind == :request -> {:invalid, :never}
        kind == :settings -> {:connection, :never}
        failure.kind == :too_large -> {:too_large, :never}
        failure.kind in [:redirect, :private] -> {:bad_answer, :never}
        kind == :bad_answer -> {:bad_answer, :idempotent}
        true -> {kind, :idempotent}
      end

    if failure.kind == :too_large, do: left_open(call)

    hint =
      case kind do
        :connection -> "try again later (#{text})"
        :invalid -> text
        _ when failure.kind == :private -> text
        _ -> nil
      end

    again(again, error(call.account, call.rules, named(call), kind, hint: hint), call)
  end

  defp refused(%{status: status} = response, call, token) do
    json = with {:ok, json} <- JSON.decode(response.body), do: json
    json = if is_map(json) and not is_struct(json), do: json, else: nil
    failure = call.rules.failure(status, response.headers, json, response.body)

    error =
      error(call.account, call.rules, named(call), failure.kind,
        status: status,
        code: failure.code,
        reason: failure.text,
        hint: failure.hint || hint(failure.kind, call.account),
        retry_after: failure.retry_after
      )

    # A server may repeat the token.
    failure.again |> again(error, call) |> hide(token)
  end

  # The service is named by the vendor's address, not by that of a server in its place.
  defp named(%{request: request}), do: URI.parse(to_string(request[:url]))
  defp named(%{url: url}), do: url

  defp again(:always, error, _call), do: {:retry, error}
  defp again(:never, error, _call), do: {:error, error}

  defp again(:idempotent, error, call) do
    left_open(call)
    if call.repeat, do: {:retry, error}, else: {:error, %{error | unclear: true}}
  end

  # A part of a batch has no count.
  defp left_open(%{changes: true, sent: sent}), do: :counters.add(sent, 2, 1)
  defp left_open(_call), do: :ok

  defp decode(body, %{options: options} = call) do
    case Keyword.get(options, :decode, :json) do
      :raw -> {:ok, body}
      :json -> json(body, call)
    end
  end

  defp json(body, call) do
    if String.trim(body) == "" do
      {:ok, nil}
    else
      with {:error, error} <- JSON.decode(body) do
        left_open(call)
        hint = "it should be JSON: #{Exception.message(error)}"
        {:error, error(call.account, call.rules, named(call), :bad_answer, hint: hint)}
      end
    end
  end

  defp error(account, rules, url, kind, more) do
    fields = [kind: kind, service: service(rules, url), account: account.name]
    struct!(ServiceError, fields ++ more)
  end

  defp service(rules, url), do: rules.service(url)

  # The next step depends on how the account signs in.
  defp hint(kind, account) when kind in [:unauthorized, :scope] do
    case {account.vendor.auth(account.options), kind} do
      {:oauth, :unauthorized} ->
        "a person can renew the connection with #{connect(account)}"

      {:oauth, :scope} ->
        "a person can grant it with #{connect(account)}"

      {:service_account, :unauthorized} ->
        "the operator has to check the service account #{account.name}"

      {:service_account, :scope} ->
        "the operator has to allow it in the delegation of the domain"

      {{:secret, option}, :unauthorized} ->
        "the operator has to replace the option #{inspect(option)} of the account #{account.name}"

      {{:secret, _option}, :scope} ->
        nil
    end
  end

  defp hint(_kind, _account), do: nil

  defp connect(account) do
    ConnectionError.connect(%{
      account: account.name,
      profile: account.profile,
      command: account.command
    })
  end

  defp hide({_how, %{reason: nil}} = result, _token), do: result
  defp hide(result, token), do: Failure.hide_key(result, token)

  # Pages

  @doc """
  Reads pages until there are `:limit` items, and says whether there are more.

  `:items` is the name of the list in an answer. The options of `request/3` apply to each page.
  `:keep` is a function that says which items count; by default all do. `:last` of the result is
  the body of the last page. A server that goes round in a circle, or has
  more than 100 pages, does not keep the caller.
  """
  @spec pages(Account.t(), request(), keyword()) ::
          {:ok, %{items: [term()], more: boolean(), last: term()}} | {:error, Exception.t()}
  def pages(account, request, options) do
    {own, options} = Keyword.split(options, [:items, :limit, :max_pages, :keep])

    state = %{
      name: Keyword.fetch!(own, :items),
      limit: Keyword.get(own, :limit, 100),
      pages: Keyword.get(own, :max_pages, @max_pages),
      keep: Keyword.get(own, :keep, fn _item -> true end),
      rules: Rules.of(account.vendor),
      seen: MapSet.new(),
      items: [],
      count: 0
    }

    page(account, request, options, state)
  end

  defp page(account, request, options, state) do
    with {:ok, %{body: body}} <- request(account, request, options),
         {:ok, items, token} <- items(body, state, account, request) do
      state = %{
        state
        | items: Enum.reverse(items, state.items),
          count: state.count + length(items),
          pages: state.pages - 1
      }

      cond do
        token == nil or token in state.seen -> read(state, false, body)
        state.count >= state.limit or state.pages <= 0 -> read(state, true, body)
        true -> next(account, request, options, state, token)
      end
    end
  end

  defp next(account, request, options, state, token) do
    state = %{state | seen: MapSet.put(state.seen, token)}
    page(account, state.rules.page(request, token), options, state)
  end

  # Vendors leave an empty list out.
  defp items(body, state, account, request) do
    body = body || %{}

    case is_map(body) && Map.get(body, state.name, []) do
      items when is_list(items) ->
        {:ok, Enum.filter(items, state.keep), state.rules.next(body)}

      _ ->
        hint = "its list `#{state.name}` is missing"
        url = URI.parse(request[:url])
        {:error, error(account, state.rules, url, :bad_answer, hint: hint)}
    end
  end

  defp read(state, more, last) do
    items = Enum.reverse(state.items)
    {items, rest} = Enum.split(items, state.limit)
    {:ok, %{items: items, more: more or rest != [], last: last}}
  end

  # Batches

  @doc """
  Sends requests together where the vendor can, and returns their results in order. The requests
  are of one service. Without a batch of the vendor they are sent one after another.

  A part that fails for now is sent again alone. If that fails as well because of a limit or the
  time, the rest is not tried either.
  """
  @spec batch(Account.t(), [request()], keyword()) :: [{:ok, answer()} | {:error, Exception.t()}]
  def batch(_account, [], _options), do: []

  def batch(account, [first | _] = requests, options) do
    rules = Rules.of(account.vendor)

    case rules.batch(URI.parse(first[:url])) do
      nil ->
        requests |> Enum.map(&{&1, :unsent}) |> alone(account, options, nil)

      {url, size} ->
        requests
        |> Enum.chunk_every(size)
        |> Enum.flat_map(&chunk(account, rules, url, &1, options))
        |> alone(account, options, nil)
    end
  end

  # A request that HTTP does not allow, such as one with a line break in a header, would become
  # several in a batch. Alone it is refused.
  defp chunk(account, rules, url, requests, options) do
    if Enum.all?(requests, &valid?(&1, rules, options)),
      do: together(account, rules, url, requests, options),
      else: Enum.map(requests, &{&1, :unsent})
  end

  defp valid?(request, rules, options) do
    url = request |> with_fields(rules, options) |> URI.to_string()
    fields = [method: method(request), url: url, headers: request[:headers] || []]
    match?({:ok, _}, HTTP.Request.new(fields, false))
  end

  # Each request with its result, or `:unsent`.
  defp together(account, rules, url, requests, options) do
    parts = for request <- requests, do: part(request, rules, options)
    {type, body} = Multipart.encode(parts)
    safe = Enum.all?(requests, &(method(&1) in @idempotent))
    cost = batch_cost(rules, requests, options)

    whole =
      options
      |> Keyword.drop([:fields])
      |> Keyword.merge(decode: :raw, repeat: Keyword.get(options, :repeat, safe), cost: cost)
      |> Keyword.put_new(:changes, not Enum.all?(requests, &(method(&1) in @reads)))

    results =
      with {:ok, response} <-
             request(account, [method: :post, url: url, body: {type, body}], whole),
           :error <- Multipart.decode(response.headers, response.body, length(requests)) do
        hint = "its parts cannot be read"
        {:error, error(account, rules, URI.parse(url), :bad_answer, hint: hint)}
      end

    case results do
      {:ok, responses} ->
        call = %{account: account, rules: rules, options: options, token: nil}

        # Only to hide it, in case that a part repeats it.
        call = with {:ok, token} <- token(call), do: %{call | token: token}

        for {request, response} <- Enum.zip(requests, responses),
            do: {request, of_part(call, request, response)}

      # A missing address of batches says nothing about the things that the requests name.
      {:error, %ServiceError{kind: :not_found} = error} ->
        Enum.map(requests, &{&1, {:error, %{error | kind: :bad_answer}}})

      {:error, error} ->
        Enum.map(requests, &{&1, {:error, error}})
    end
  end

  defp part(request, rules, options) do
    url =
      request |> with_fields(rules, options) |> Map.merge(%{scheme: nil, host: nil, port: nil})

    {type, body} = body(request)
    headers = if type, do: [{"content-type", type}], else: []

    %{
      method: method(request),
      path: URI.to_string(%{url | authority: nil, userinfo: nil}),
      headers: headers ++ (request[:headers] || []),
      body: body
    }
  end

  defp batch_cost(rules, requests, options) do
    each = with nil <- options[:cost], do: default_cost(rules, hd(requests))
    each * length(requests)
  end

  defp default_cost(rules, request) do
    case request[:url] |> URI.parse() |> rules.quotas() do
      [{_name, _quota, cost} | _] -> cost
      [] -> 1
    end
  end

  # A part that the server did not answer is sent alone, if that is harmless.
  defp of_part(call, request, nil) do
    if Keyword.get(call.options, :repeat, method(request) in @idempotent),
      do: :unsent,
      else: {:error, %{part_error(call, request, :bad_answer) | unclear: true}}
  end

  # A token that expired in the meantime is renewed for a request of its own.
  defp of_part(_call, _request, %{status: 401}), do: :unsent

  defp of_part(call, request, response) do
    call =
      Map.merge(call, %{
        url: URI.parse(request[:url]),
        repeat: Keyword.get(call.options, :repeat, method(request) in @idempotent)
      })

    case result({:ok, response}, call, call.token) do
      {:retry, _error} -> :unsent
      other -> other
    end
  end

  defp part_error(call, request, kind),
    do: error(call.account, call.rules, URI.parse(request[:url]), kind, [])

  defp alone(results, account, options, failed) do
    {results, _failed} =
      Enum.map_reduce(results, failed, fn
        {_request, :unsent}, %{} = failed ->
          {{:error, failed}, failed}

        {request, :unsent}, nil ->
          result = request(account, request, options)
          {result, lasting(result)}

        {_request, result}, failed ->
          {result, failed}
      end)

    results
  end

  defp lasting({:error, %ServiceError{kind: kind} = error})
       when kind in [:rate_limited, :quota, :timeout, :connection, :unauthorized],
       do: error

  defp lasting({:error, %ServiceError{}}), do: nil
  defp lasting({:error, error}), do: error
  defp lasting(_ok), do: nil
end
