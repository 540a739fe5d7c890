defmodule Skillbook.MCP.Client.HTTP do
  @moduledoc false
  # The streamable HTTP transport: each message is a POST, whose answer is one JSON object or a
  # stream of events with the response at its end. A stream of an older session that ends before
  # it is resumed after its last event; the request itself is never sent again. Redirects are not
  # followed, since they would carry a token to another place.

  alias Skillbook.Support.Secret
  alias Skillbook.HTTP, as: Client
  alias Skillbook.HTTP.Response
  alias Skillbook.MCP.Client.{Auth, Elicitation, Error, Session, Settings, State}
  alias Skillbook.Model.SSE
  alias Skillbook.Support.JSON

  # Events of one answer, without comments.
  @max_events 10_000
  @unknown_method -32_601
  # Milliseconds for the end of a session.
  @leave 1_000
  # How often the stream of an answer is resumed, and how often in a row without success; the
  # pause before it in milliseconds if the server names none, and the shortest.
  @max_resumes 100
  @max_failures 3
  @pause 1_000
  @min_pause 100

  @doc "Sends a request and returns its result. `answer` answers requests of the server."
  @spec request(Settings.t(), Session.t(), map(), (map() -> map()), keyword()) :: Session.answer()
  def request(settings, session, message, answer, options) do
    Auth.attempt(settings, options[:deadline], fn token ->
      send_request(settings, session, message, answer, [{:token, token} | options])
    end)
  end

  defp send_request(settings, session, message, answer, options) do
    with {:ok, headers} <- headers(settings, session, message, options) do
      state = %{
        settings: settings,
        session: session,
        id: message["id"],
        answer: answer,
        options: options,
        max: options[:max] || settings.max_message,
        status: nil,
        headers: %{},
        body: nil,
        size: 0,
        events: 0,
        found: nil,
        resumes: 0,
        failures: 0
      }

      send = [method: :post, url: url(settings), headers: headers, body: JSON.encode(message)]

      send
      |> Client.stream(limits(settings, options), state, &part/2)
      |> resume()
      |> finish(settings, session, message, options)
    end
  end

  @doc "Sends a notification, or the response to a request of the server."
  @spec notify(Settings.t(), Session.t(), map(), keyword()) :: :ok | {:error, Error.t()}
  def notify(settings, session, message, options) do
    Auth.attempt(settings, options[:deadline], fn token ->
      send_notification(settings, session, message, [{:token, token} | options])
    end)
  end

  defp send_notification(settings, session, message, options) do
    with {:ok, headers} <- headers(settings, session, message, options) do
      send = [method: :post, url: url(settings), headers: headers, body: JSON.encode(message)]

      case Client.request(send, limits(settings, options) ++ [max_body: 65_536]) do
        {:ok, %{status: status}} when status in 200..299 -> :ok
        {:ok, %{status: status} = response} -> status_error(settings, status, response.headers)
        {:error, error} -> failed(settings, error)
      end
    end
  end

  @doc "What the server asks of a request without a token (RFC 9728, 5.1)."
  @spec challenge(Settings.t()) :: {:ok, Auth.challenge()} | {:error, Error.t()}
  def challenge(settings) do
    session = %Session{revision: hd(Skillbook.MCP.revisions())}
    message = settings |> Session.message(session, "server/discover", %{}) |> Map.put("id", 1)

    with {:ok, headers} <- headers(settings, session, message, []) do
      send = [method: :post, url: url(settings), headers: headers, body: JSON.encode(message)]

      # Only the head is read.
      read = fn {:head, status, headers}, nil -> {:halt, {status, headers}} end

      case Client.stream(send, limits(settings, []), nil, read) do
        {:halted, {401, headers}} -> {:ok, Auth.challenge(headers)}
        {:error, error, _none} -> failed(settings, error)
        _other -> {:ok, Auth.challenge(%{})}
      end
    end
  end

  @doc """
  Listens until the stream ends: the answer to `subscriptions/listen`, or the stream of an older
  session. Calls `notified` with the method of each notification, and, if it listened before, with
  that of a changed list at once.
  """
  @spec listen(Settings.t(), Session.t(), boolean(), (String.t() -> any())) ::
          :ended | {:error, Error.t()}
  def listen(settings, session, again?, notified) do
    Auth.attempt(settings, nil, &listen(settings, session, again?, notified, &1))
  end

  defp listen(settings, session, again?, notified, token) do
    lists = ~w(toolsListChanged promptsListChanged resourcesListChanged)
    filter = Map.new(lists, &{&1, true})

    message =
      settings
      |> Session.message(session, "subscriptions/listen", %{"notifications" => filter})
      |> Map.put("id", System.unique_integer([:positive]))

    with {:ok, headers} <- headers(settings, session, message, token: token) do
      send =
        if Session.modern?(session),
          do: [method: :post, url: url(settings), headers: headers, body: JSON.encode(message)],
          else: [method: :get, url: url(settings), headers: without_body(headers)]

      # A stream is opened again from time to time, however quiet it is.
      hour = 3_600_000
      options = settings.http ++ [idle_timeout: hour, timeout: hour, compressed: false]

      outcome =
        Client.stream(send, options, nil, fn
          {:head, status, headers}, nil ->
            if status == 200 and event_stream?(headers) do
              # Nobody was told of the changes between two streams.
              if again?, do: notified.("notifications/tools/list_changed")
              {:cont, SSE.new()}
            else
              {:halt, {:status, status, headers}}
            end

          {:data, data}, sse ->
            case SSE.feed(sse, data) do
              {:ok, events, sse} ->
                Enum.each(events, &heard(settings, session, &1, notified))
                {:cont, sse}

              :error ->
                {:halt, :too_large}
            end
        end)

      case outcome do
        {:ok, _sse} -> :ended
        {:halted, {:status, status, headers}} -> status_error(settings, status, headers)
        {:halted, :too_large} -> too_large(settings)
        {:error, error, _sse} -> failed(settings, error)
      end
    end
  end

  defp without_body(headers),
    do: fn -> List.keydelete(headers.(), "content-type", 0) end

  # Only older servers ask here.
  defp heard(settings, session, %{data: data}, notified) do
    case JSON.decode(data) do
      {:ok, %{"method" => method, "id" => id} = message} when is_binary(method) ->
        if not Session.modern?(session) do
          answer = Elicitation.answer(settings, message)
          response = Map.merge(%{"jsonrpc" => "2.0", "id" => id}, answer)
          notify(settings, session, response, deadline: Session.deadline(settings))
        end

      {:ok, %{"method" => method}} when is_binary(method) ->
        notified.(method)

      _other ->
        :ok
    end
  end

  # The answer, part by part

  defp part({:head, status, headers}, state) do
    body = if status == 200 and event_stream?(headers), do: SSE.new(), else: []
    {:cont, %{state | status: status, headers: headers, body: body}}
  end

  defp part({:data, data}, state) do
    size = state.size + byte_size(data)
    state = %{state | size: size}

    cond do
      size > state.max -> {:halt, %{state | found: too_large(state.settings)}}
      is_list(state.body) -> {:cont, %{state | body: [state.body, data]}}
      true -> events(state, SSE.feed(state.body, data))
    end
  end

  # Only the stream of a GET can resume another one.
  defp resumed_part({:head, status, headers}, state) do
    if status == 200 and event_stream?(headers),
      do: {:cont, %{state | body: SSE.resumed(state.body), failures: 0}},
      else: {:halt, state}
  end

  defp resumed_part(data, state), do: part(data, state)

  # Without an id there is nothing to resume. Answers that failed stay as they are.
  defp resume({_ended, %{found: nil, body: %SSE{last_id: id}} = state} = outcome)
       when id != nil,
       do: resume(outcome, state)

  defp resume({:error, %{kind: kind}, %{found: nil, body: %SSE{last_id: id}} = state} = outcome)
       when id != nil and kind not in [:timeout, :too_large],
       do: resume(outcome, state)

  defp resume(outcome), do: outcome

  defp resume(outcome, %{settings: settings, session: session, body: sse} = state) do
    pause = max(sse.retry || @pause, @min_pause)
    deadline = state.options[:deadline] || Session.deadline(settings)
    left? = state.resumes < @max_resumes and state.failures < @max_failures

    if session.id != nil and left? and now() + pause < deadline do
      Process.sleep(pause)
      state = %{state | resumes: state.resumes + 1, failures: state.failures + 1}

      # The first failure stays the reason, as long as nothing else comes.
      case Auth.attempt(settings, deadline, &follow(state, deadline, &1)) do
        {:ok, {:error, _error, %{failures: failures} = state}} when failures > 0 ->
          resume(outcome, state)

        {:ok, {:halted, %{found: nil}}} ->
          outcome

        {:ok, next} ->
          resume(next)

        {:error, _error} ->
          outcome
      end
    else
      outcome
    end
  end

  defp follow(%{settings: settings, session: session, body: sse} = state, deadline, token) do
    with {:ok, headers} <- headers(settings, session, %{}, token: token) do
      headers = fn -> [{"last-event-id", sse.last_id} | without_body(headers).()] end
      options = limits(settings, deadline: deadline)
      send = [method: :get, url: url(settings), headers: headers]
      {:ok, Client.stream(send, options, state, &resumed_part/2)}
    end
  end

  defp events(state, :error), do: {:halt, %{state | found: too_large(state.settings)}}

  defp events(state, {:ok, events, sse}) do
    state = Enum.reduce(events, %{state | body: sse}, &event/2)
    if state.found, do: {:halt, state}, else: {:cont, state}
  end

  defp event(_event, %{found: found} = state) when found != nil, do: state

  defp event(_event, %{events: events} = state) when events >= @max_events do
    reason = "expected at most #{@max_events} events in an answer, got more"
    %{state | found: Session.error(state.settings, :limit, reason)}
  end

  defp event(%{data: data}, %{id: id, settings: settings} = state) do
    state = %{state | events: state.events + 1}

    case JSON.decode(data) do
      {:ok, %{"id" => ^id, "method" => _} = message} ->
        reply(state, message)

      {:ok, %{"id" => ^id} = message} ->
        %{state | found: Session.response(settings, message)}

      {:ok, %{"id" => _, "method" => method} = message} when is_binary(method) ->
        reply(state, message)

      {:ok, %{"method" => method}} when is_binary(method) ->
        Skillbook.MCP.Client.notified(settings, method)
        state

      _other ->
        if data == "",
          do: state,
          else: %{state | found: malformed(settings)}
    end
  end

  # Only older servers may ask on the stream of an answer.
  defp reply(%{session: session} = state, message) do
    if Session.modern?(session) do
      reason = "it sent a request, which its revision does not allow"
      %{state | found: Session.error(state.settings, :malformed, reason)}
    else
      response = Map.merge(%{"jsonrpc" => "2.0", "id" => message["id"]}, state.answer.(message))
      notify(state.settings, session, response, Keyword.take(state.options, [:deadline]))
      state
    end
  end

  defp finish({:error, error, _state}, settings, session, message, _options) do
    # The server may go on with a request whose answer nobody reads.
    if error.kind == :timeout and not Session.modern?(session) and session.id != nil,
      do: cancel(settings, session, message)

    failed(settings, error)
  end

  defp finish({_ended, %{found: found} = state}, _settings, _session, _message, options)
       when found != nil do
    with {:ok, result} <- found, do: {:ok, with_session(result, state, options)}
  end

  defp finish({_ended, %{status: 200, body: body} = state}, settings, _session, message, options)
       when is_list(body) do
    id = message["id"]

    case JSON.decode(IO.iodata_to_binary(body)) do
      {:ok, %{"id" => ^id} = response} ->
        with {:ok, result} <- Session.response(settings, response),
             do: {:ok, with_session(result, state, options)}

      _other ->
        malformed(settings)
    end
  end

  defp finish({_ended, %{status: 200}}, settings, _session, _message, _options),
    do: Session.error(settings, :closed, "its stream ended without the response")

  defp finish({_ended, state}, settings, session, _message, _options) do
    # Errors of the protocol come with a status too. In a session, 404 says that it is lost.
    body = if is_list(state.body), do: IO.iodata_to_binary(state.body), else: ""
    lost? = state.status == 404 and session.id != nil

    case JSON.decode(body) do
      {:ok, %{"error" => %{"code" => code}} = response}
      when state.status in [400, 404] and code not in [-32_000, -32_001] and
             (not lost? or code == @unknown_method) ->
        Session.response(settings, response)

      _other ->
        status_error(settings, state.status, state.headers)
    end
  end

  defp with_session(result, state, options) do
    if options[:handshake], do: put_session(result, state), else: result
  end

  defp put_session(result, state) do
    case Response.header(state.headers, "mcp-session-id") do
      id when is_binary(id) and byte_size(id) <= 1_024 -> Map.put(result, :session_id, id)
      _ -> result
    end
  end

  defp cancel(settings, session, message) do
    params = %{"requestId" => message["id"], "reason" => "timeout"}
    deadline = System.monotonic_time(:millisecond) + 2_000
    Session.notify(settings, session, "notifications/cancelled", params, deadline: deadline)
  end

  defp event_stream?(headers) do
    type = Response.header(headers, "content-type") || ""
    type |> String.downcase() |> String.starts_with?("text/event-stream")
  end

  # Errors

  defp malformed(settings),
    do: Session.error(settings, :malformed, "expected a response of JSON-RPC to the request")

  defp too_large(settings),
    do: Session.error(settings, :too_large, "its answer is larger than expected")

  defp status_error(%{oauth: oauth} = settings, status, headers)
       when oauth != nil and status in [401, 403] do
    reason = "it answered with #{status}: it does not accept the token of its sign-in for this"
    Session.error(settings, :auth, reason, code: status, data: Auth.challenge(headers))
  end

  defp status_error(settings, status, _headers), do: status_error(settings, status)

  defp status_error(settings, 401) do
    reason =
      "it answered with 401: expected a token that it accepts; set the option :token, " <>
        ":headers or :oauth"

    Session.error(settings, :auth, reason, code: 401)
  end

  defp status_error(settings, 403) do
    reason = "it answered with 403: the token does not have the rights for this"
    Session.error(settings, :auth, reason, code: 403)
  end

  defp status_error(settings, status) when status in 300..399 do
    reason = "it answered with a redirect (#{status}); write the address that it redirects to"
    Session.error(settings, :status, reason, code: status)
  end

  defp status_error(settings, status),
    do: Session.error(settings, :status, "it answered with the status #{status}", code: status)

  defp failed(settings, %{kind: :timeout} = error),
    do: Session.error(settings, :timeout, Exception.message(error))

  defp failed(settings, %{kind: :too_large}), do: too_large(settings)

  defp failed(settings, error),
    do: Session.error(settings, :connection, Exception.message(error))

  # The request

  defp url(%{place: {:url, url}}), do: url

  defp limits(settings, options) do
    left = max((options[:deadline] || Session.deadline(settings)) - now(), 1)

    Keyword.merge(settings.http,
      redirects: 0,
      timeout: left,
      idle_timeout: left,
      connect_timeout: min(left, 10_000)
    )
  end

  defp now, do: System.monotonic_time(:millisecond)

  defp headers(settings, session, message, options) do
    with {:ok, own} <- secrets(settings, options[:token]) do
      method = message["method"]

      protocol =
        cond do
          options[:handshake] -> []
          Session.modern?(session) -> modern(session, method, message["params"])
          true -> [{"mcp-protocol-version", session.revision}] ++ session_id(session)
        end

      accept = [
        {"content-type", "application/json"},
        {"accept", "application/json, text/event-stream"}
      ]

      more = options[:headers] || []
      {:ok, fn -> accept ++ protocol ++ more ++ own.() end}
    end
  end

  defp session_id(%{id: nil}), do: []
  defp session_id(%{id: id}), do: [{"mcp-session-id", id}]

  defp modern(session, method, params) do
    name = if is_map(params), do: params["name"] || params["uri"]
    names? = method in ["tools/call", "resources/read", "prompts/get"]
    version = {"mcp-protocol-version", session.revision}

    [version | if(method, do: [{"mcp-method", method}], else: [])] ++
      if(names? and is_binary(name), do: [{"mcp-name", header_value(name)}], else: [])
  end

  @doc """
  A value for a header: as it is, or in Base64 if it has other characters than visible ASCII.

      iex> Skillbook.MCP.Client.HTTP.header_value("us-west1")
      "us-west1"
      iex> Skillbook.MCP.Client.HTTP.header_value(" padded ")
      "=?base64?IHBhZGRlZCA=?="
  """
  @spec header_value(String.t()) :: String.t()
  def header_value(value) do
    plain? = value =~ ~r/\A[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?\z/
    marked? = String.starts_with?(value, "=?base64?") and String.ends_with?(value, "?=")

    if plain? and not marked?,
      do: value,
      else: "=?base64?" <> Base.encode64(value) <> "?="
  end

  # Secrets are read for each request, and stay in functions.
  defp secrets(settings, token) do
    with {:ok, token} <- token(settings, token),
         {:ok, headers} <- own(settings),
         do: {:ok, fn -> token.() ++ headers.() end}
  end

  defp token(_settings, signed_in) when signed_in != nil, do: {:ok, bearer(signed_in)}
  defp token(%{token: nil}, nil), do: {:ok, fn -> [] end}

  defp token(%{token: token} = settings, nil) do
    case Secret.read(token, nil) do
      {:ok, value} -> {:ok, bearer(value)}
      {:error, reason} -> secret(settings, "the token cannot be read: #{reason}")
    end
  end

  defp bearer(token), do: fn -> [{"authorization", "Bearer " <> token.()}] end

  defp own(%{headers: nil}), do: {:ok, fn -> [] end}

  defp own(%{headers: function} = settings) when is_function(function) do
    headers = function.()
    {:ok, fn -> headers end}
  rescue
    # Its message may quote a secret.
    error -> secret(settings, "the function :headers raised #{inspect(error.__struct__)}")
  end

  defp own(%{headers: headers} = settings) do
    Enum.reduce_while(headers, {:ok, fn -> [] end}, fn {name, secret}, {:ok, before} ->
      case Secret.read(secret, nil) do
        {:ok, value} ->
          {:cont, {:ok, fn -> before.() ++ [{String.downcase(name), value.()}] end}}

        {:error, reason} ->
          {:halt, secret(settings, "the header #{name} cannot be read: #{reason}")}
      end
    end)
  end

  defp secret(settings, reason), do: Session.error(settings, :secret, reason)

  @doc "Ends the session of an older server."
  @spec leave(Settings.t()) :: :ok
  def leave(settings) do
    with %{id: id} = session when id != nil <- State.session(settings) do
      Auth.attempt(settings, now() + @leave, fn token ->
        with {:ok, headers} <- headers(settings, session, %{}, token: token) do
          send = [method: :delete, url: url(settings), headers: without_body(headers)]
          times = [timeout: @leave, connect_timeout: @leave]
          Client.request(send, Keyword.merge(settings.http, times))
        end
      end)
    end

    :ok
  end
end
