defmodule Skillbook.MCP.StdioTest do
  use ExUnit.Case, async: true

  import Skillbook.Eventually
  import Skillbook.MCPCase, only: [letters: 1, subscribers: 1]

  alias Skillbook.MCP.{Protocol, Server, Session, Stdio}
  alias Skillbook.Support.JSON

  @meta %{
    "io.modelcontextprotocol/protocolVersion" => "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities" => %{}
  }

  setup do
    %{book: letters(profiles: [[id: "ann", writes: :ask]])}
  end

  # A server whose input are the messages `{:input, line}`, and whose output comes to the test.
  defp serve(book, options \\ []) do
    test = self()

    read = fn ->
      receive do
        {:input, input} -> input
      end
    end

    write = fn line ->
      send(test, {:output, IO.iodata_to_binary(line)})
      :ok
    end

    pid =
      spawn_link(fn -> send(test, {:served, Stdio.serve(book, "ann", options, read, write)}) end)

    pid
  end

  defp put(server, line) when is_binary(line), do: send(server, {:input, {:line, line}})
  defp put(server, map), do: put(server, JSON.encode(Map.put(map, "jsonrpc", "2.0")) <> "\n")

  defp request(server, id, method, params \\ %{}, meta \\ @meta) do
    params = if meta, do: Map.put(params, "_meta", meta), else: params
    put(server, %{"id" => id, "method" => method, "params" => params})
  end

  defp output(timeout \\ 5_000) do
    assert_receive {:output, line}, timeout
    assert String.ends_with?(line, "\n")
    assert [_one, ""] = String.split(line, "\n")
    {:ok, json} = JSON.decode(line)
    json
  end

  defp initialize(server, capabilities \\ %{}) do
    params = %{"protocolVersion" => "2025-11-25", "capabilities" => capabilities}
    request(server, "i", "initialize", params, nil)
    assert %{"id" => "i", "result" => %{"protocolVersion" => "2025-11-25"}} = output()
    put(server, %{"method" => "notifications/initialized"})
  end

  test "both kinds of revisions are answered, and the end of the input ends it", %{book: book} do
    server = serve(book)
    request(server, 1, "server/discover")
    assert %{"id" => 1, "result" => %{"supportedVersions" => versions}} = output()
    assert versions == Protocol.revisions()

    request(server, 2, "ping", %{}, nil)
    assert %{"id" => 2, "error" => %{"code" => -32_602}} = output()

    initialize(server)
    request(server, 3, "ping", %{}, nil)
    assert output() == %{"jsonrpc" => "2.0", "id" => 3, "result" => %{}}
    # A request that says everything does not depend on earlier ones.
    request(server, 4, "ping")
    assert %{"id" => 4, "error" => %{"code" => -32_601}} = output()
    request(server, 5, "tools/list")
    assert %{"id" => 5, "result" => %{"resultType" => "complete"}} = output()
    request(server, 6, "tools/list", %{}, nil)
    assert %{"id" => 6, "result" => result} = output()
    assert Map.keys(result) == ["tools"]

    send(server, {:input, :eof})
    assert_receive {:served, :ok}
    refute_received {:output, _}
  end

  test "the user is asked while the call waits, and other requests go on", %{book: book} do
    server = serve(book)
    initialize(server, %{"elicitation" => %{}})
    call = %{"name" => "letters__send", "arguments" => %{"to" => "bob"}}
    request(server, 1, "tools/call", call, nil)
    assert %{"id" => id, "method" => "elicitation/create"} = output()
    request(server, 2, "ping", %{}, nil)
    assert %{"id" => 2} = output()
    put(server, %{"id" => "ask-7", "result" => %{"action" => "accept"}})
    put(server, %{"id" => id, "result" => %{"action" => "accept"}})
    assert %{"id" => 1, "result" => %{"content" => [%{"text" => "Sent to bob."}]}} = output()
  end

  test "a call is cancelled with its handler, and its id used again", %{book: book} do
    server = serve(book)
    request(server, 1, "tools/call", %{"name" => "clock__wait"})
    assert_receive {:waits, handler}
    monitor = monitor(handler)
    request(server, 1, "tools/list")
    assert %{"id" => 1, "error" => %{"message" => text}} = output()
    assert text == "expected an `id` of no other request that still runs"

    put(server, %{"method" => "notifications/cancelled", "params" => %{"requestId" => 1}})
    assert_receive {:DOWN, ^monitor, :process, _, :killed}
    request(server, 2, "tools/list")
    assert %{"id" => 2, "result" => _} = output()
  end

  test "the end of the input stops what still runs", %{book: book} do
    server = serve(book)
    request(server, 1, "tools/call", %{"name" => "clock__wait"})
    assert_receive {:waits, handler}
    monitor = monitor(handler)
    send(server, {:input, :eof})
    assert_receive {:DOWN, ^monitor, :process, _, :killed}
    assert_receive {:served, :ok}
  end

  test "changes are told to a stream and to a session", %{book: book} do
    before = subscribers(book)
    server = serve(book)
    listen = %{"notifications" => %{"promptsListChanged" => true}}
    request(server, "s", "subscriptions/listen", listen)
    assert %{"method" => "notifications/subscriptions/acknowledged"} = output()
    initialize(server)
    assert eventually(fn -> subscribers(book) == before + 2 end)

    fields = [name: "tea", title: "Tea", description: "Makes tea", content: "Boil."]
    {:ok, _} = Skillbook.Store.create(Skillbook.view(book, "ann"), fields)
    got = for _ <- 1..4, do: output()
    tagged = %{"_meta" => %{"io.modelcontextprotocol/subscriptionId" => "s"}}

    assert Enum.sort(for message <- got, do: {message["method"], message["params"]}) == [
             {"notifications/prompts/list_changed", nil},
             {"notifications/prompts/list_changed", tagged},
             {"notifications/resources/list_changed", nil},
             {"notifications/tools/list_changed", nil}
           ]

    put(server, %{"method" => "notifications/cancelled", "params" => %{"requestId" => "s"}})
    assert eventually(fn -> subscribers(book) == before + 1 end)
    {:ok, _} = Skillbook.Store.delete(Skillbook.view(book, "ann"), "tea")
    assert for(_ <- 1..3, do: output()["method"]) |> Enum.uniq() |> length() == 3
    refute_receive {:output, _}, 50
  end

  test "more requests at once than the limit are refused", %{book: book} do
    server = serve(book)
    for id <- 1..64, do: request(server, id, "tools/call", %{"name" => "clock__wait"})
    for _ <- 1..64, do: assert_receive({:waits, _})
    request(server, 65, "tools/list")
    assert %{"id" => 65, "error" => %{"code" => 429, "message" => text}} = output()
    assert text == "expected at most 64 requests at once"

    for id <- 1..64,
        do:
          put(server, %{"method" => "notifications/cancelled", "params" => %{"requestId" => id}})

    send(server, {:input, :eof})
    assert_receive {:served, :ok}
  end

  test "a busy session is named, and not the limit", %{book: book} do
    server = serve(book)
    initialize(server)
    request(server, 1, "ping", %{}, nil)
    assert %{"id" => 1, "result" => %{}} = output()
    {:links, links} = Process.info(server, :links)
    kind = &(is_pid(&1) and :proc_lib.translate_initial_call(&1) == {Session, :init, 1})
    [session] = Enum.filter(links, kind)
    :ok = :sys.suspend(session)

    busy = %{
      "code" => -32_603,
      "message" => "the session did not answer within 5 s; send it again"
    }

    # One knows what the client declared, the others ask for it.
    request(server, 2, "tools/list")
    assert %{"id" => 2, "error" => ^busy} = output(20_000)
    request(server, 3, "tools/list", %{}, nil)
    assert %{"id" => 3, "error" => ^busy} = output(20_000)
    params = %{"protocolVersion" => "2025-11-25", "capabilities" => %{}}
    request(server, 4, "initialize", params, nil)
    assert %{"id" => 4, "error" => ^busy} = output(20_000)

    :ok = :sys.resume(session)
    request(server, 2, "tools/list")
    assert %{"id" => 2, "result" => _} = output()
  end

  test "64 requests run beside the stream of changes of a session", %{book: book} do
    before = subscribers(book)
    server = serve(book)
    initialize(server)
    assert eventually(fn -> subscribers(book) == before + 1 end)
    call = %{"name" => "clock__wait"}
    for id <- 1..64, do: request(server, id, "tools/call", call)
    for _ <- 1..64, do: assert_receive({:waits, _})
    request(server, 65, "tools/list")
    assert %{"id" => 65, "error" => %{"code" => 429}} = output()
  end

  test "any line is answered with its id, or not at all, and none ends it", %{book: book} do
    :rand.seed(:exsss, {25, 11, 25})
    server = serve(book)
    initialize(server)
    methods = for({method, _} <- Server.methods(), do: method) ++ ["initialize", "x", 1, nil]
    methods = methods -- ["subscriptions/listen"]

    for number <- 1..1_500 do
      case rem(number, 3) do
        0 ->
          put(server, :crypto.strong_rand_bytes(:rand.uniform(30)) |> String.replace("\n", ""))
          flush()

        _ ->
          params = if :rand.uniform(4) == 1, do: value(2), else: params()
          message = %{"id" => number, "method" => Enum.random(methods), "params" => params}
          put(server, message)
          assert answer(number)
      end
    end

    request(server, "last", "tools/list")
    assert answer("last")["result"]["tools"]
  end

  defp answer(id) do
    case output() do
      %{"id" => ^id} = answer -> answer
      %{"method" => _notification} -> answer(id)
      %{"error" => _} = answer when not is_map_key(answer, "id") -> answer(id)
    end
  end

  defp flush do
    receive do
      {:output, _} -> flush()
    after
      0 -> :ok
    end
  end

  defp params do
    keys =
      ~w(name uri arguments cursor ref argument context inputResponses requestState) ++
        ~w(protocolVersion capabilities notifications)

    params = Map.new(Enum.take_random(keys, 3), &{&1, value(2)})

    case :rand.uniform(3) do
      1 -> Map.put(params, "_meta", @meta)
      2 -> Map.put(params, "_meta", %{Enum.random(Map.keys(@meta)) => value(1)})
      3 -> params
    end
  end

  defp value(0),
    do: Enum.random([nil, true, 1, -1.5, "", "get_skill", "letters__send", "é\u202e"])

  defp value(depth) do
    case :rand.uniform(4) do
      1 -> for(_ <- 1..2, do: value(depth - 1))
      2 -> %{"type" => value(0), "name" => value(depth - 1), "value" => value(0)}
      _ -> value(0)
    end
  end

  test "lines of a port are joined and split, and long ones left out" do
    # A port is only compared with the sender of messages.
    port = make_ref()
    read = Stdio.port_lines(port)
    for bytes <- ["a\nb", "c", "\n\nd"], do: send(self(), {port, {:data, bytes}})
    assert for(_ <- 1..3, do: read.()) == [{:line, "a"}, {:line, "bc"}, {:line, ""}]
    half = String.duplicate("x", div(Protocol.max_bytes(), 2) + 1)
    for bytes <- [half, half, half, "end\nnext\nrest"], do: send(self(), {port, {:data, bytes}})
    assert read.() == :too_long
    assert read.() == {:line, "next"}
    send(self(), {port, :eof})
    assert for(_ <- 1..2, do: read.()) == [:eof, :eof]
  end
end
