defmodule Skillbook.MCP.Client.Session do
  @moduledoc false
  # Requests to an MCP server: finds out which revision it speaks, adds the metadata that the
  # revision wants, follows pages, and answers the server's own questions.
  #
  # All of it runs in the calling process, so a slow server delays nobody else. Of the client's
  # features a server may use only elicitation, and that only if the application gave a function.

  alias Skillbook.MCP.Client.{Elicitation, Error, HTTP, Settings, State, Stdio}
  alias Skillbook.MCP.Protocol
  alias Skillbook.Support.External

  @modern "2026-07-28"
  @legacy ["2025-11-25", "2025-06-18"]
  @skills "io.modelcontextprotocol/skills"
  @meta "io.modelcontextprotocol/"

  # Error codes of the revision 2026-07-28.
  @unsupported_version -32_022
  @modern_errors [-32_020, -32_021, -32_022]

  # Bytes of all pages of a list, and how many times the limit of one request they may take.
  @max_list 67_108_864
  @list_times 4

  # How often a server may ask for more input before it answers one request.
  @max_rounds 5

  @type t :: %__MODULE__{
          revision: String.t(),
          id: String.t() | nil,
          capabilities: map()
        }

  # The id of a session lets its holder act as the client.
  @derive {Inspect, only: [:revision]}
  @enforce_keys [:revision]
  defstruct [:revision, :id, capabilities: %{}]

  @type answer :: {:ok, map()} | {:error, Error.t()}

  @doc "Whether the session is of the revision without a handshake."
  @spec modern?(t()) :: boolean()
  def modern?(%__MODULE__{revision: revision}), do: revision == @modern

  @doc "Whether the server says that it has this feature."
  @spec has?(t(), :tools | :prompts | :skills) :: boolean()
  def has?(%{capabilities: %{"tools" => %{}}}, :tools), do: true
  def has?(%{capabilities: %{"prompts" => %{}}}, :prompts), do: true
  def has?(%{capabilities: %{"extensions" => %{@skills => %{}}}}, :skills), do: true
  def has?(_session, _feature), do: false

  @doc """
  Makes a request, in the session of the server or a new one.

  ## Options

    * `:deadline` - the end of the time for it, in milliseconds of monotonic time
    * `:max` - the most bytes of the answer
    * `:headers` - further headers, for HTTP
  """
  @spec request(Settings.t(), String.t(), map(), keyword()) :: answer()
  def request(settings, method, params, options \\ []) do
    options = Keyword.put_new_lazy(options, :deadline, fn -> deadline(settings) end)

    with {:ok, session} <- session(settings, options) do
      case rounds(settings, session, method, params, options, @max_rounds) do
        # The server has forgotten the session or speaks another revision now, and has not run
        # the request.
        {:error, %Error{kind: kind, code: code}}
        when (kind == :status and code == 404 and session.id != nil) or
               (kind == :rpc and code == @unsupported_version) ->
          State.put_session(settings, nil)

          with {:ok, session} <- session(settings, options),
               do: rounds(settings, session, method, params, options, @max_rounds)

        answer ->
          answer
      end
    end
  end

  @doc "The end of the time for one request."
  def deadline(settings), do: System.monotonic_time(:millisecond) + settings.timeout

  @doc """
  Returns all items of a list method, up to `max`, with the session.

  A list that does not end is an error: pages, items and bytes are counted.
  """
  @spec list(Settings.t(), String.t(), String.t(), pos_integer()) ::
          {:ok, [map()]} | {:error, Error.t()}
  def list(settings, method, key, max) do
    deadline = System.monotonic_time(:millisecond) + @list_times * settings.timeout
    call = %{method: method, key: key, max: max, deadline: deadline}
    pages(settings, call, nil, %{items: [], count: 0, bytes: 0, pages: 0, seen: []})
  end

  defp pages(settings, call, cursor, read) do
    params = if cursor, do: %{"cursor" => cursor}, else: %{}
    deadline = min(call.deadline, deadline(settings))

    with :ok <- limits(settings, call, read),
         {:ok, result} <- request(settings, call.method, params, deadline: deadline),
         {:ok, page} <- items(settings, result, call.method, call.key) do
      read = %{
        read
        | items: [page | read.items],
          count: read.count + length(page),
          bytes: read.bytes + :erlang.external_size(page),
          pages: read.pages + 1
      }

      next = result["nextCursor"]

      cond do
        read.count > call.max ->
          error(settings, :limit, "expected at most #{call.max} #{call.key}, got more")

        next in [nil, ""] ->
          {:ok, read.items |> Enum.reverse() |> Enum.concat()}

        not is_binary(next) or next in read.seen ->
          error(settings, :malformed, "the pages of #{call.method} come again and again")

        true ->
          pages(settings, call, next, %{read | seen: [next | read.seen]})
      end
    end
  end

  defp limits(settings, call, read) do
    cond do
      read.pages >= settings.max_pages ->
        text = "expected at most #{settings.max_pages} pages of #{call.method}, got more"
        error(settings, :limit, text)

      read.bytes > @max_list ->
        text = "expected a list of at most #{@max_list} bytes for #{call.method}, got more"
        error(settings, :limit, text)

      true ->
        :ok
    end
  end

  defp items(settings, result, method, key) do
    case result[key] do
      list when is_list(list) -> {:ok, list}
      _ -> error(settings, :malformed, "expected a list #{key} in the answer to #{method}")
    end
  end

  # Negotiation

  @doc "The session of the server; makes one if there is none."
  @spec session(Settings.t(), keyword()) :: {:ok, t()} | {:error, Error.t()}
  def session(settings, options \\ []) do
    case State.session(settings) do
      nil ->
        options = Keyword.put_new_lazy(options, :deadline, fn -> deadline(settings) end)
        connect(settings, Keyword.take(options, [:deadline]))

      session ->
        {:ok, session}
    end
  end

  defp connect(settings, options) do
    with {:ok, session} <- discover(settings, options, 1) do
      State.put_session(settings, session)
      {:ok, session}
    end
  end

  # `left` is how often the server may refuse a revision that it says to support.
  defp discover(settings, options, left) do
    probe = %__MODULE__{revision: @modern}

    case single(settings, probe, "server/discover", %{}, probe_time(settings, options)) do
      {:ok, %{"supportedVersions" => versions} = result} when is_list(versions) ->
        if @modern in versions,
          do: {:ok, with_result(probe, result)},
          else: older(settings, versions, options)

      {:error, %Error{kind: :rpc, code: @unsupported_version, data: data}} ->
        versions = supported(data)

        if @modern in versions and left > 0,
          do: discover(settings, options, left - 1),
          else: older(settings, versions, options)

      {:error, %Error{kind: :rpc, code: code} = error} when code in @modern_errors ->
        {:error, error}

      {:error, %Error{kind: kind} = error}
      when kind in [:connection, :auth, :secret, :too_large, :stopped, :limit] ->
        {:error, error}

      # An error that older servers answer to a method that they do not know, or no answer.
      {:error, error} ->
        initialize(settings, hd(@legacy), options, error)

      {:ok, _other} ->
        initialize(settings, hd(@legacy), options, nil)
    end
  end

  # An older program may not answer an unknown method at all.
  defp probe_time(%{place: {:command, _}}, options) do
    now = System.monotonic_time(:millisecond)
    [deadline: min(options[:deadline], now + max(div(options[:deadline] - now, 3), 1))]
  end

  defp probe_time(_settings, options), do: options

  defp supported(%{"supported" => versions}) when is_list(versions), do: versions
  defp supported(_data), do: []

  defp older(settings, versions, options) do
    case Enum.find(@legacy, &(&1 in versions)) do
      nil -> revision(settings, Enum.filter(versions, &is_binary/1))
      revision -> initialize(settings, revision, options, nil)
    end
  end

  defp revision(settings, versions) do
    theirs = versions |> Enum.take(5) |> Enum.map_join(", ", &String.slice(&1, 0, 20))

    error(
      settings,
      :revision,
      "expected one of the revisions #{Enum.join([@modern | @legacy], ", ")}, got: " <>
        if(theirs == "", do: "none", else: inspect(theirs))
    )
  end

  defp initialize(settings, revision, options, probe_error) do
    params = %{
      "protocolVersion" => revision,
      "capabilities" => capabilities(settings),
      "clientInfo" => Protocol.info()
    }

    handshake = %__MODULE__{revision: revision}

    case single(settings, handshake, "initialize", params, options ++ [handshake: true]) do
      {:ok, %{"protocolVersion" => chosen} = result} when chosen in @legacy ->
        session = with_result(%{handshake | revision: chosen}, result)

        with :ok <- notify(settings, session, "notifications/initialized", %{}, options),
             do: {:ok, session}

      {:ok, %{"protocolVersion" => other}} when is_binary(other) ->
        revision(settings, [other])

      {:ok, _other} ->
        error(settings, :malformed, "expected a protocolVersion in the answer to initialize")

      {:error, error} ->
        {:error, if(probe_error && error.kind in [:rpc, :status], do: probe_error, else: error)}
    end
  end

  defp with_result(session, result) do
    capabilities = with %{} = map <- result["capabilities"], do: map, else: (_ -> %{})
    # The transport puts the id of the session here.
    %{session | capabilities: capabilities, id: result[:session_id]}
  end

  defp capabilities(%{elicit: nil}), do: %{"extensions" => %{@skills => %{}}}

  defp capabilities(_settings),
    do: %{"extensions" => %{@skills => %{}}, "elicitation" => %{"form" => %{}}}

  # Requests that need more input

  defp rounds(settings, session, method, params, options, left) do
    with {:ok, result} <- single(settings, session, method, params, options) do
      case result do
        %{"resultType" => "input_required"} when left > 0 ->
          with {:ok, params} <- Elicitation.inputs(settings, params, result),
               do: rounds(settings, session, method, params, options, left - 1)

        %{"resultType" => "input_required"} ->
          error(settings, :declined, "it asked for more input #{@max_rounds} times")

        %{"resultType" => type} when type != "complete" ->
          error(settings, :malformed, "expected the resultType \"complete\"")

        result ->
          {:ok, result}
      end
    end
  end

  defp single(settings, session, method, params, options) do
    id = System.unique_integer([:positive])
    message = message(settings, session, method, params) |> Map.put("id", id)
    answer = fn message -> Elicitation.answer(settings, message) end
    transport(settings).request(settings, session, message, answer, options)
  end

  @doc "Sends a notification."
  @spec notify(Settings.t(), t(), String.t(), map(), keyword()) :: :ok | {:error, Error.t()}
  def notify(settings, session, method, params, options \\ []) do
    options = Keyword.put_new_lazy(options, :deadline, fn -> deadline(settings) end)
    message = message(settings, session, method, params)
    transport(settings).notify(settings, session, message, options)
  end

  @doc "A message of the session's revision, without an id."
  def message(settings, session, method, params) do
    params =
      if modern?(session) do
        meta = %{
          (@meta <> "protocolVersion") => session.revision,
          (@meta <> "clientInfo") => Protocol.info(),
          (@meta <> "clientCapabilities") => capabilities(settings)
        }

        Map.update(params, "_meta", meta, &Map.merge(&1, meta))
      else
        params
      end

    %{"jsonrpc" => "2.0", "method" => method, "params" => params}
  end

  defp transport(%{place: {:url, _}}), do: HTTP
  defp transport(%{place: {:command, _}}), do: Stdio

  @doc false
  def error(settings, kind, reason, fields \\ []),
    do: {:error, struct!(Error, [kind: kind, server: settings.label, reason: reason] ++ fields)}

  @doc """
  Reads the response to a request out of a message: the result, or the server's error.
  """
  @spec response(Settings.t(), map()) :: answer()
  def response(settings, %{"error" => %{"code" => code, "message" => text} = given})
      when is_integer(code) and is_binary(text) do
    reason = "it answered with the error #{code}: #{External.line(text, 200)}"
    error(settings, :rpc, reason, code: code, data: given["data"])
  end

  def response(_settings, %{"result" => %{} = result}), do: {:ok, result}

  def response(settings, _other),
    do: error(settings, :malformed, "expected an object as `result` or an `error`")
end
