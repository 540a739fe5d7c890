defmodule Skillbook.MCP.Server do
  @moduledoc false
  # Answers the messages of a client. Pure but for the commands that it runs: it has no process
  # and no transport of its own. `handle/2` runs in the process of the request, which the
  # transport kills when the client has gone or has cancelled it.
  #
  # Methods are rows of one table. A handler gets the parameters and the context, and returns
  # `{:ok, result}` or `{:error, %Skillbook.MCP.Error{}}`; the fields that a revision wants in
  # every result are added here. A method that answers about entries needs a row in the library's
  # `test/support/web_routes.ex`, and one of some revisions an edit of the lists in the test of
  # this module.

  require Logger

  alias Skillbook.MCP.{
    Completion,
    Context,
    Error,
    Prompts,
    Protocol,
    Resources,
    Skills,
    Subscriptions,
    Tools
  }

  alias Skillbook.Telemetry

  @stateless "2026-07-28"
  @sessions ["2025-11-25", "2025-06-18"]
  @all [@stateless | @sessions]

  # Milliseconds for which a client may keep a list. Notifications tell it of changes before.
  @ttl 30_000

  # {method, revisions, module, :cached if the result has fields for caches}
  @table [
    {"server/discover", [@stateless], __MODULE__, :cached},
    {"ping", @sessions, __MODULE__, nil},
    {"tools/list", @all, Tools, :cached},
    {"tools/call", @all, Tools, nil},
    {"prompts/list", @all, Prompts, :cached},
    {"prompts/get", @all, Prompts, nil},
    {"completion/complete", @all, Completion, nil},
    {"resources/list", @all, Resources, :cached},
    {"resources/templates/list", @all, Resources, :cached},
    {"resources/read", @all, Resources, :cached},
    {"resources/directory/read", @all, Skills, :cached},
    {"skills/list", @all, Skills, :cached},
    {"skills/get", @all, Skills, :cached},
    {"resources/subscribe", @sessions, Subscriptions, nil},
    {"resources/unsubscribe", @sessions, Subscriptions, nil}
  ]
  @methods Map.new(@table, fn {method, revisions, module, cached} ->
             {method, {revisions, module, cached}}
           end)

  @doc "All methods but those that a transport answers itself: `{method, revisions}`."
  @spec methods() :: [{String.t(), [String.t()]}]
  def methods, do: for({method, revisions, _module, _cached} <- @table, do: {method, revisions})

  @doc """
  Answers a message.

    * `{:reply, message}` - the answer to a request
    * `{:listen, id, filter}` - the answer is a stream (`Skillbook.MCP.Call`)
    * `:accepted` - a notification or a response, which have no answer
  """
  @spec handle(Protocol.message(), Context.t()) ::
          {:reply, map()} | {:listen, Protocol.id(), map()} | :accepted
  def handle({:request, id, "subscriptions/listen", params}, %Context{revision: @stateless}) do
    case Subscriptions.filter(params) do
      {:ok, filter} -> {:listen, id, filter}
      {:error, error} -> {:reply, Protocol.error(id, error)}
    end
  end

  def handle({:request, id, method, params}, %Context{} = context) do
    began = System.monotonic_time()

    answer =
      case @methods do
        %{^method => {revisions, module, cached}} ->
          if context.revision in revisions,
            do: method |> call(module, params, context) |> complete(context, cached),
            else: {:error, Error.method(method, context.revision)}

        _ ->
          {:error, Error.method(method, context.revision)}
      end

    report(method, context, answer, System.monotonic_time() - began)

    case answer do
      {:ok, result} -> {:reply, Protocol.result(id, result)}
      {:error, error} -> {:reply, Protocol.error(id, error)}
    end
  end

  def handle(_notification_or_response, _context), do: :accepted

  # An error in our own code is no reason to end a client's session. Its text is for the operator.
  defp call(method, module, params, context) do
    module.handle(method, params, context)
  rescue
    error ->
      Logger.error("mcp #{method}: " <> Exception.format(:error, error, __STACKTRACE__))
      {:error, Error.internal("an error in the server; its operator finds it in the log")}
  end

  # Names of methods come from the client.
  defp report(method, context, answer, duration) do
    Telemetry.event([:skillbook, :mcp, :request, :stop], %{duration: duration}, %{
      book: context.view.book,
      profile: context.profile.id,
      method: if(is_map_key(@methods, method), do: method, else: "other"),
      revision: context.revision,
      status: with({:error, error} <- answer, do: error.code, else: (_ -> :ok))
    })
  end

  defp complete({:ok, result}, %Context{revision: @stateless}, cached) do
    result
    |> Map.put_new("resultType", "complete")
    |> cache(cached)
    |> Map.update("_meta", Protocol.server_meta(), &Map.merge(Protocol.server_meta(), &1))
    |> then(&{:ok, &1})
  end

  defp complete({:ok, result}, _context, _cached), do: {:ok, result}
  defp complete({:error, %Error{} = error}, _context, _cached), do: {:error, error}

  # A view belongs to its profile, so no result is for caches that several callers share.
  defp cache(%{"resultType" => "complete"} = result, :cached),
    do: Map.merge(%{"ttlMs" => @ttl, "cacheScope" => "private"}, result)

  defp cache(result, _cached), do: result

  @doc false
  @spec handle(String.t(), map(), Context.t()) :: {:ok, map()}
  def handle("ping", _params, _context), do: {:ok, %{}}

  def handle("server/discover", _params, _context) do
    {:ok,
     %{
       "supportedVersions" => Protocol.revisions(),
       "capabilities" => capabilities(),
       "instructions" => instructions()
     }}
  end

  @doc """
  Answers `initialize`, which begins a session of an older revision.

  Returns the result, and the fields of `Skillbook.MCP.Context` that hold for the session. A
  revision that is not served is answered with the newest one of these, as they ask for.
  """
  @spec initialize(map()) :: {:ok, map(), map()} | {:error, Error.t()}
  def initialize(params) do
    case params do
      %{"protocolVersion" => requested, "capabilities" => %{} = capabilities}
      when is_binary(requested) ->
        revision = if requested in @sessions, do: requested, else: hd(@sessions)

        result = %{
          "protocolVersion" => revision,
          "capabilities" => capabilities(),
          "serverInfo" => Protocol.info(),
          "instructions" => instructions()
        }

        fields = %{
          revision: revision,
          capabilities: Map.take(capabilities, ["elicitation"]),
          client: client(params["clientInfo"])
        }

        {:ok, result, fields}

      _ ->
        {:error,
         Error.params("expected `protocolVersion` as text and `capabilities` as an object")}
    end
  end

  @doc "Reads the fields of a request that says everything itself."
  @spec fields(map()) :: {:ok, map()} | {:error, Error.t()}
  def fields(params) do
    meta = Map.get(params, "_meta", %{})

    {version, capabilities} =
      {Protocol.meta("protocolVersion"), Protocol.meta("clientCapabilities")}

    case meta do
      %{^version => @stateless, ^capabilities => %{} = declared} ->
        {:ok,
         %{
           revision: @stateless,
           capabilities: declared,
           client: client(meta[Protocol.meta("clientInfo")])
         }}

      %{^version => @stateless} ->
        {:error, Error.meta("expected an object as `_meta[\"#{capabilities}\"]`")}

      %{^version => other} when is_binary(other) ->
        {:error, Error.version(other, Protocol.revisions())}

      _ ->
        {:error,
         Error.meta(
           "expected `_meta[\"#{version}\"]` as in the revision #{@stateless}, or a session " <>
             "that began with `initialize`, as in #{Enum.join(@sessions, " and ")}"
         )}
    end
  end

  @doc "Whether the parameters are those of a request that says everything itself."
  @spec says_everything?(map()) :: boolean()
  def says_everything?(%{"_meta" => %{} = meta}),
    do: is_map_key(meta, Protocol.meta("protocolVersion"))

  def says_everything?(_params), do: false

  # The name is only shown to people, and not trusted.
  defp client(%{"name" => name}) when is_binary(name) do
    name = name |> String.slice(0, 60) |> Skillbook.Support.Hidden.visible()
    if String.trim(name) == "", do: nil, else: name
  end

  defp client(_info), do: nil

  defp capabilities do
    %{
      "tools" => %{"listChanged" => true},
      "prompts" => %{"listChanged" => true},
      "resources" => %{"listChanged" => true, "subscribe" => true},
      "completions" => %{},
      "extensions" => Skills.capabilities()
    }
  end

  defp instructions do
    "The tools run commands and return the instructions of skills. The tool get_skill reads " <>
      "the page of a command, a skill, a note or a file of a skill; without a path it lists " <>
      "them all. Read the page of a command before its first call."
  end
end
