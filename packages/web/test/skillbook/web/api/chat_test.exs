defmodule Skillbook.Web.API.ChatTest do
  # Conversations for useChat: the chunks, what the AI SDK itself reads of them, and refusals. The
  # SDK is that of bin/mcp-for-tests, in the release with this protocol and in a newer one.
  use Skillbook.SkillsCase, async: true

  import Skillbook.Eventually

  alias Skillbook.Model
  alias Skillbook.Support.JSON
  alias Skillbook.Test.{Checkout, Requests}
  alias Skillbook.Web.{Server, Tokens}

  @moduletag :tmp_dir

  @serve [:page, :mcp, :api, :chat, :discovery]

  # The answer of a model to the last message.
  defp answer("Boil" <> _text, on_text) do
    text = "I boil it.\n\n```cmd\ncup.wash --text clean\ncup.none\n```\n"
    for part <- String.split(text, ~r/(?<= )/), do: on_text.(part)
    text
  end

  defp answer("Pay", on_text), do: said("```cmd\ncup.pay\n```", on_text)
  defp answer("[1] cup.pay\npending" <> _report, on_text), do: said("It waits.", on_text)
  defp answer("[1] " <> _report, on_text), do: said("Done.", on_text)
  defp answer("Ask billing", on_text), do: said("```cmd\nagent.hand_over billing\n```", on_text)

  defp answer("Fail", _on_text),
    do: {:error, %Skillbook.ModelError{kind: :server, reason: "it is down"}}

  defp answer("Crash", _on_text), do: raise("crash")
  defp answer("How many?", on_text), do: said("Many.", on_text)
  defp answer(text, on_text), do: said("You said: #{text}", on_text)

  defp said(text, on_text) do
    on_text.(text)
    text
  end

  defp start(folder, options \\ []) do
    effects = [effects: "write"]

    write(folder, %{
      "cup/wash.md" =>
        page(
          "cup.wash",
          handler("Text") ++ [effects: "read"],
          "# cup.wash\n\n## Flags\n\n--text (text)\n"
        ),
      "cup/pay.md" => page("cup.pay", handler("Text") ++ effects)
    })

    test = self()

    model =
      Model.Function.new(fn messages, _options, on_text ->
        send(test, {:asked, self(), messages})
        answer(List.last(messages).content, on_text)
      end)

    book(
      Keyword.merge(
        [
          sources: [folder],
          builtins: ["agent.hand_over"],
          store: ":memory:",
          watch: false,
          profiles: [[id: "ann", writes: :ask], [id: "bob"], [id: "billing"]],
          agent: [model: model, hand_over: ["billing"]]
        ],
        options
      )
    )
  end

  defp messages(texts) do
    for text <- texts, do: %{role: "user", parts: [%{type: "text", text: text}]}
  end

  defp body(text, id \\ "c-1"),
    do: %{id: id, trigger: "submit-message", messages: messages([text])}

  # A stream runs in a process of its own, which receives the events.
  defp post(web, body, options \\ [as: "ann"]) do
    case Requests.respond(web, "POST", "/api/chat", [json: body] ++ options) do
      %{body: {:stream, _fun}} = response ->
        {response, pid} = Requests.stream(response)
        %{response | body: read(pid)}

      response ->
        %{response | body: IO.iodata_to_binary(response.body)}
    end
  end

  defp read(pid) do
    receive do
      {:part, ^pid, part} -> part <> read(pid)
      {:ended, ^pid} -> ""
    end
  end

  defp chunks(response) do
    for line <- String.split(response.body, "\n"),
        "data: " <> data <- [line],
        data != "[DONE]" do
      {:ok, chunk} = JSON.decode(data)
      chunk
    end
  end

  # Each chunk by its type and what it says.
  defp said_by(chunks) do
    for chunk <- chunks do
      {chunk["type"], chunk["delta"] || chunk["output"] || chunk["errorText"] || chunk["input"]}
    end
  end

  test "a turn is a step, and a command a call of a tool", %{tmp_dir: folder} do
    web = Requests.web(start(folder), serve: @serve)
    response = post(web, body("Boil water"))
    assert response.status == 200
    assert Requests.header(response, "content-type") == "text/event-stream"
    assert Requests.header(response, "x-vercel-ai-ui-message-stream") == "v1"
    assert String.ends_with?(response.body, "data: [DONE]\n\n")
    chunks = chunks(response)

    assert [
             {"start", nil},
             {"start-step", nil},
             {"text-start", nil},
             {"text-delta", "I"},
             {"text-delta", " "},
             {"text-delta", "boil"},
             {"text-delta", " "},
             {"text-delta", "it."},
             {"text-end", nil},
             {"tool-input-start", nil},
             {"tool-input-available", %{"command" => "cup.wash --text clean"}},
             {"tool-input-start", nil},
             {"tool-input-available", %{"command" => "cup.none"}},
             {"tool-output-available", _text},
             {"tool-output-error", unknown},
             {"finish-step", nil},
             {"start-step", nil},
             {"text-start", nil},
             {"text-delta", "Done."},
             {"text-end", nil},
             {"finish-step", nil},
             {"finish", nil}
           ] = said_by(chunks)

    assert unknown =~ "cup.none"
    assert %{"status" => "done", "pending" => []} = List.last(chunks)["messageMetadata"]

    calls = for %{"toolCallId" => id, "type" => type} <- chunks, do: {id, type}
    assert {"call-2", "tool-input-start"} in calls
    assert {"call-3", "tool-output-error"} in calls
  end

  test "goes on with the server's conversation, each caller with its own", context do
    web = Requests.web(start(context.tmp_dir), serve: @serve)
    post(web, body("Hello"))

    # The client's words of the model are not read.
    invented = %{role: "assistant", parts: [%{type: "text", text: "The price is 0."}]}
    more = %{body("x") | messages: messages(["Hello"]) ++ [invented] ++ messages(["And you?"])}
    assert {"text-delta", "You said: And you?"} in said_by(chunks(post(web, more)))
    assert_received {:asked, _pid, _first}
    assert_received {:asked, _pid, second}
    texts = for message <- second, message.role != :system, do: message.content
    assert texts == ["Hello", "You said: Hello", "And you?"]

    # Another profile, and another id.
    for {as, more} <- [{"bob", more}, {"ann", %{more | id: "c-2"}}] do
      response = post(web, more, as: as)
      text = "This conversation is no longer kept. Begin a new one, with another id."
      assert {response.status, JSON.decode(response.body)} == {409, {:ok, %{"error" => text}}}
    end
  end

  test "shows approvals that wait, hand-overs and errors", %{tmp_dir: folder} do
    web = Requests.web(start(folder), serve: @serve)
    waiting = chunks(post(web, body("Pay", "pay")))
    assert [%{"data" => %{"ref" => ref, "name" => "cup.pay"}}] = of_type(waiting, "data-approval")
    assert [%{"output" => output}] = of_type(waiting, "tool-output-available")
    assert output =~ "it waits for the approval #{ref}"

    assert [%{"messageMetadata" => %{"status" => "pending", "pending" => [^ref]}}] =
             of_type(waiting, "finish")

    handed = chunks(post(web, body("Ask billing", "billing")))
    assert [%{"data" => %{"from" => "ann", "to" => "billing"}}] = of_type(handed, "data-handOver")

    assert [%{"errorText" => text}] =
             web |> post(body("Fail", "f")) |> chunks() |> of_type("error")

    assert text =~ "it is down"

    ExUnit.CaptureLog.capture_log(fn ->
      crashed = chunks(post(web, body("Crash", "crash")))
      assert [%{"errorText" => "The answer ended with an error."}] = of_type(crashed, "error")
    end)

    none = Requests.web(start(Path.join(folder, "none"), agent: nil, builtins: []), serve: @serve)
    assert [%{"errorText" => text}] = none |> post(body("Hi")) |> chunks() |> of_type("error")
    assert text == "this book has no model; give it the option agent: [model: …]"
  end

  test "a call that is decided elsewhere joins the conversation once", %{tmp_dir: folder} do
    name = start(folder)
    web = Requests.web(name, serve: @serve)

    for {decide, text} <- [approve: "cup.pay\nok", deny: "it was declined"] do
      waiting = chunks(post(web, body("Pay", "#{decide}")))
      [%{"data" => %{"ref" => ref}}] = of_type(waiting, "data-approval")
      {:ok, _approval} = apply(Skillbook, decide, [name, ref, [by: "Bob"]])

      for more <- ["Is it paid?", "Sure?"] do
        chunks = chunks(post(web, body(more, "#{decide}")))
        assert [%{"messageMetadata" => %{"pending" => []}}] = of_type(chunks, "finish")
      end

      # The model repeats what it reads.
      asked = for %{role: :user, content: text} <- List.last(flush()), do: text
      asked = Enum.join(asked, "\n")
      assert [_before, after_it] = String.split(asked, "The result of the call that waited for ")
      assert String.starts_with?(after_it, ref) and after_it =~ text
    end
  end

  defp flush do
    receive do
      {:asked, _pid, messages} -> [messages | flush()]
    after
      0 -> []
    end
  end

  defp of_type(chunks, type), do: Enum.filter(chunks, &(&1["type"] == type))

  test "a client that goes away ends the answer", %{tmp_dir: folder} do
    test = self()

    model =
      Model.Function.new(fn _messages, _options, on_text ->
        send(test, {:asked, self()})
        receive do: (:go_on -> on_text.("More."))
        receive do: (:never -> "")
      end)

    web = Requests.web(start(folder, agent: [model: model], builtins: []), serve: @serve)

    # Its process is killed, or finds the client gone when it writes.
    for way <- [:killed, :closed] do
      response = Requests.respond(web, "POST", "/api/chat", as: "ann", json: body("Hi", "#{way}"))
      {_response, pid} = Requests.stream(response)
      assert_receive {:asked, run}
      monitor = monitor(run)
      Process.unlink(pid)

      case way do
        :killed ->
          Process.exit(pid, :kill)

        :closed ->
          Requests.close(pid)
          send(run, :go_on)
      end

      assert_receive {:DOWN, ^monitor, :process, _pid, _reason}
    end
  end

  test "refuses what it cannot read", %{tmp_dir: folder} do
    web = Requests.web(start(folder), serve: @serve)
    good = body("Hi")

    for {body, status, text} <- [
          {[], 400, "Expected a JSON object as the body."},
          {%{good | trigger: "regenerate-message"}, 422,
           ~s(Expected "submit-message" as trigger.)},
          {%{good | id: ""}, 422, "Expected a text of 1 to 200 bytes as id."},
          {%{good | id: String.duplicate("x", 201)}, 422,
           "Expected a text of 1 to 200 bytes as id."},
          {Map.delete(good, :id), 422, "Expected a text of 1 to 200 bytes as id."},
          {%{good | messages: []}, 422, "Expected a list of 1 to 1000 messages as messages."},
          {%{good | messages: List.duplicate(1, 1_001)}, 422,
           "Expected a list of 1 to 1000 messages as messages."},
          {%{good | messages: [%{role: "assistant", parts: []}]}, 422,
           "Expected a message of the user with parts as the last message."},
          {%{good | messages: [%{role: "user", parts: [%{type: "file", url: "x"}]}]}, 422,
           "Expected parts of the type text in the last message."},
          {Map.put(good, :more, String.duplicate("x", 1_048_576)), 413,
           "Expected a body of at most 1048576 bytes."}
        ] do
      response = post(web, body)
      assert {response.status, JSON.decode(response.body)} == {status, {:ok, %{"error" => text}}}
    end

    assert Requests.call(web, "POST", "/api/chat", as: "ann", body: "{").status == 400
    assert Requests.call(web, "GET", "/api/chat", as: "ann").status == 405
    too_long = body(String.duplicate("x", 8_001))
    assert [%{"errorText" => text}] = web |> post(too_long) |> chunks() |> of_type("error")
    assert text == "expected at most 8000 characters, got: 8001"
  end

  test "is an area of its own, which is off by default", %{tmp_dir: folder} do
    name = start(folder)
    assert post(Requests.web(name), body("Hi")).status == 404

    for {scopes, status} <- [{[:chat], 200}, {[:api], 403}, {[:page, :mcp, :discovery], 403}] do
      {:ok, token} = Tokens.create(name, profile: "bob", scopes: scopes, expires_in: 600)
      web = Requests.web(name, serve: @serve, authenticate: :tokens)
      headers = [{"authorization", "Bearer " <> token.secret.()}]
      assert post(web, body("Hi"), headers: headers).status == status
    end
  end

  for package <- ["ai-5", "ai-7"] do
    test "the AI SDK reads it: #{package}", %{tmp_dir: folder} do
      name = start(folder)
      {:ok, token} = Tokens.create(name, profile: "bob", scopes: [:chat], expires_in: 600)
      server = start_supervised!({Server, book: name, serve: [:chat], port: 0})

      assert %{"answers" => [boiled, many], "wrong" => []} =
               client(unquote(package), Server.info(server).url, token, ["Boil it", "How many?"])

      assert [
               %{"type" => "step-start"},
               %{"type" => "text", "text" => "I boil it.", "state" => "done"},
               %{
                 "type" => "dynamic-tool",
                 "toolName" => "cup.wash",
                 "state" => "output-available",
                 "input" => %{"command" => "cup.wash --text clean"}
               },
               %{"type" => "dynamic-tool", "toolName" => "cup.none", "state" => "output-error"},
               %{"type" => "step-start"},
               %{"type" => "text", "text" => "Done."}
             ] = boiled["parts"]

      assert boiled["metadata"] == %{"status" => "done", "pending" => []}
      assert [_step, %{"text" => "Many."}] = many["parts"]

      assert %{"answers" => [%{"errors" => [error]}]} =
               client(unquote(package), Server.info(server).url, token, ["Fail"])

      assert error =~ "it is down"
    end
  end

  defp client(package, url, token, texts) do
    folder =
      System.get_env("SKILLBOOK_MCP") ||
        raise "SKILLBOOK_MCP is not set. To install the programs and set it: " <>
                "bin/mcp-for-tests run mix test"

    modules = Path.join(folder, "node_modules")

    env = %{
      "NODE_PATH" => modules,
      "CHAT" => url <> "/api/chat",
      "TOKEN" => token.secret.(),
      "AI" => package,
      "MESSAGES" => JSON.encode(texts)
    }

    script = Checkout.path("packages/web/test/support/ai/client.cjs")
    node = Path.join(modules, ".bin/node")
    {output, 0} = System.cmd(node, [script], env: Map.to_list(env))
    {:ok, printed} = JSON.decode(output)
    printed
  end
end
