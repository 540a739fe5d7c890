defmodule Skillbook.MCP.ClientResumeTest do
  # Streams of calls that end or break before the response, and what their resumption gives.
  use ExUnit.Case, async: true

  alias Skillbook.MCP.Client
  alias Skillbook.Support.JSON
  alias Skillbook.View

  @moduletag :capture_log
  @server "https://203.0.113.5/mcp"
  @closed "its stream ended without the response"
  @primed "id: 1\nretry: 1\ndata: \n\n"

  defmodule World do
    # A server whose calls and GETs have scripted streams: a text with RESPONSE in place of the
    # response, a status, or `:break` after a text.
    @behaviour Skillbook.HTTP.Adapter

    alias Skillbook.HTTP.Error
    alias Skillbook.Support.JSON

    @impl true
    def stream(request, _settings, [script: script], acc, fun) do
      headers = Map.new(request.headers.())

      if request.method == :get,
        do: get(script, headers, acc, fun),
        else: post(script, headers, request, acc, fun)
    end

    # The stream of changes has no id of an event.
    defp get(script, headers, acc, fun) do
      case headers do
        %{"last-event-id" => id} -> play(next(script, id), script, acc, fun)
        _none -> send_all(405, [], "", acc, fun)
      end
    end

    defp post(script, _headers, request, acc, fun) do
      {:ok, message} = JSON.decode(IO.iodata_to_binary(request.body))
      %{revision: revision, session: session} = Agent.get(script, & &1)

      case message do
        %{"method" => "tools/call", "id" => id} ->
          Agent.update(script, &%{&1 | id: id, calls: &1.calls + 1})
          play(next(script, nil), script, acc, fun)

        %{"method" => "server/discover"} when revision == nil ->
          send_all(404, [], "", acc, fun)

        %{"method" => method, "id" => id} ->
          reply = %{jsonrpc: "2.0", id: id, result: result(method, revision)}
          id = if session, do: [{"mcp-session-id", "s"}], else: []
          json = [{"content-type", "application/json"}] ++ id
          send_all(200, json, JSON.encode(reply), acc, fun)

        _notification ->
          send_all(202, [], "", acc, fun)
      end
    end

    defp result("tools/list", _revision),
      do: %{tools: [%{name: "search", inputSchema: %{type: "object"}}], resultType: "complete"}

    defp result(_discover, nil),
      do: %{protocolVersion: "2025-11-25", capabilities: %{tools: %{}}}

    defp result(_discover, revision) do
      versions = [revision]
      %{supportedVersions: versions, capabilities: %{tools: %{}}, resultType: "complete"}
    end

    # The last one is for all that follow.
    defp next(script, id) do
      Agent.get_and_update(script, fn %{streams: [stream | rest]} = state ->
        streams = if rest == [], do: [stream], else: rest
        asked = if id, do: [id | state.asked], else: state.asked
        {stream, %{state | streams: streams, asked: asked}}
      end)
    end

    defp play({text, :break}, script, acc, fun) do
      with {:ok, acc} <- play(text, script, acc, fun),
           do: {:error, %Error{kind: :closed, reason: "it has gone"}, acc}
    end

    defp play(:break, _script, acc, _fun),
      do: {:error, %Error{kind: :connection, reason: "it has gone"}, acc}

    defp play(status, _script, acc, fun) when is_integer(status),
      do: send_all(status, [], "", acc, fun)

    defp play(text, script, acc, fun) do
      id = Agent.get(script, & &1.id)
      content = [%{type: "text", text: "done"}]
      response = %{jsonrpc: "2.0", id: id, result: %{content: content, resultType: "complete"}}
      text = String.replace(text, "RESPONSE", JSON.encode(response))
      send_all(200, [{"content-type", "text/event-stream"}], text, acc, fun)
    end

    defp send_all(status, headers, body, acc, fun) do
      with {:cont, acc} <- fun.({:head, status, headers}, acc),
           {:cont, acc} <- fun.({:data, body}, acc),
           do: {:ok, acc},
           else: ({:halt, acc} -> {:halted, acc})
    end
  end

  defp call(streams, options) do
    {revision, session} = {options[:revision], Keyword.get(options, :session, true)}

    state = %{
      streams: streams,
      revision: revision,
      session: session,
      asked: [],
      calls: 0,
      id: nil
    }

    script = start_supervised!({Agent, fn -> state end}, id: make_ref())
    name = :"mcp_resume_#{System.unique_integer([:positive])}"

    source =
      {:mcp, @server,
       label: "docs",
       approve: :all,
       timeout: options[:timeout] || 20_000,
       http: [adapter: {World, script: script}]}

    start_supervised!({Skillbook, name: name, watch: false, builtins: false, sources: [source]},
      id: name
    )

    :ok = Client.await(name)
    [result] = Skillbook.run(View.all(name), "```cmd\ndocs.search\n```").results
    %{asked: asked, calls: calls} = Agent.get(script, & &1)
    {result.content, Enum.reverse(asked), calls}
  end

  @rows [
    {"a stream that ends", [@primed, "data: RESPONSE\n\n"], "| done", ["1"]},
    {"a stream that breaks", [{@primed, :break}, "data: RESPONSE\n\n"], "| done", ["1"]},
    {"a stream that breaks within an event", [{@primed <> "id: 2\ndata: {", :break}, @primed],
     @closed, :many},
    {"several streams", [@primed, "id: 2\n\n", "id: 3\n\n", "data: RESPONSE\n\n"], "| done",
     ["1", "2", "3"]},
    {"an id that stays", [@primed, ": nothing\n\n", "data: RESPONSE\n\n"], "| done", ["1", "1"]},
    {"notifications before the end", [@primed, ~s(data: {"method":"a"}\n\ndata: RESPONSE\n\n)],
     "| done", ["1"]},
    {"a server that is away for a moment", [@primed, :break, :break, "data: RESPONSE\n\n"],
     "| done", ["1", "1", "1"]},
    {"a server that stays away", [@primed, :break], @closed, ["1", "1", "1"]},
    {"a server that has gone", [{@primed, :break}, :break], "it has gone", ["1", "1", "1"]},
    {"a server without such streams", [@primed, 405], @closed, ["1"]},
    {"a lost session", [@primed, 404], @closed, ["1"]},
    {"no id", ["retry: 1\ndata: \n\n"], @closed, []},
    {"an id that was taken back", [@primed <> "id\ndata: \n\n"], @closed, []},
    {"an id of an event that is not whole", ["id: 1\ndata: "], @closed, []},
    {"a pause that is too long", ["id: 1\nretry: 100000\n\n"], @closed, []},
    {"streams that never answer", [@primed], @closed, :many},
    {"nonsense", [@primed, "data: x\n\n"], "expected a response of JSON-RPC", ["1"]}
  ]

  for {name, streams, text, asked} <- @rows do
    test "#{name}: the call is sent once" do
      timeout = if unquote(asked) == :many, do: 1_000
      {content, asked, calls} = call(unquote(Macro.escape(streams)), timeout: timeout)
      assert content =~ unquote(text)
      assert calls == 1

      case unquote(asked) do
        :many -> assert Enum.uniq(asked) == ["1"] and length(asked) in 1..10
        expected -> assert asked == expected
      end
    end
  end

  test "a server without sessions, and one of 2026-07-28, is not asked" do
    for options <- [[session: false], [revision: "2026-07-28"]] do
      assert {content, [], 1} = call([@primed, "data: RESPONSE\n\n"], options)
      assert content =~ @closed
    end
  end
end
