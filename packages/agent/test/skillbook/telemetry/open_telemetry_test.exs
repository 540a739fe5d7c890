defmodule Skillbook.Telemetry.OpenTelemetryTest do
  # With a substitute for the API (`test/support/open_telemetry.ex`).
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Agent, Model, ModelError, Telemetry, TelemetryError}

  @moduletag :tmp_dir
  @moduletag :capture_log

  setup %{tmp_dir: folder} do
    write(folder, %{
      "x/run.md" => page("x.run", handler("Text")),
      "x/crash.md" => page("x.crash", handler("Raise")),
      "x/list.md" => page("x.list", handler("ErrorText")),
      "x/flow.md" => page("x.flow", [], "# x.flow\n\n## Behavior\n\n```cmd\nx.run\nx.run\n```\n")
    })

    book = book(sources: [folder], watch: false, profiles: [[id: "ann"]])
    :telemetry.listen(book)
    :ok = Telemetry.attach_open_telemetry(books: [book])
    on_exit(&Telemetry.detach_open_telemetry/0)
    {:ok, book: book}
  end

  defp spans(seen \\ []) do
    receive do
      {:span, span} -> spans([span | seen])
      _ -> spans(seen)
    after
      0 -> seen
    end
  end

  # {name, kind, status, children}, in the order of their ends.
  defp tree(spans, parent \\ nil) do
    for span <- Enum.reverse(spans),
        span.parent == parent,
        do: {span.name, span.kind, span.status, tree(spans, span.id)}
  end

  defp answer(lines), do: "```cmd\n#{lines}\n```"

  test "runs, calls of models and commands are one trace", %{book: book} do
    model =
      Model.Function.new(fn messages, _options ->
        text = messages |> List.last() |> Map.fetch!(:content)

        cond do
          text == "Ask another." -> answer("agent.dispatch --mission Nested --skills x.run")
          text == "Nested" -> answer("x.run --a hunter2")
          text == "Go." -> answer("x.run --a hunter2\nx.crash\nx.list\nx.flow\nget_skill: x.run")
          true -> "Done."
        end
      end)

    assert {:ok, %{status: :done}} = Agent.run(book, "Go.", model: model, profile: "ann")
    spans = spans()
    run = {"execute_tool x.run", :internal, :unset, []}
    name = inspect(book)
    chat = {"chat", :client, :unset, []}

    assert tree(spans) == [
             {"invoke_agent #{name}", :internal, :unset,
              [
                chat,
                run,
                {"execute_tool x.crash", :internal, :error, []},
                {"execute_tool x.list", :internal, :error, []},
                {"execute_tool x.flow", :internal, :unset,
                 [{"invoke_workflow x.flow", :internal, :unset, [run, run]}]},
                chat
              ]}
           ]

    refute inspect(spans, limit: :infinity) =~ "hunter2"

    # The dispatched agent runs in the process of the command.
    assert {:ok, %{status: :done}} = Agent.run(book, "Ask another.", model: model, profile: "ann")

    assert [{_, _, _, [_chat, {"execute_tool agent.dispatch", _, _, [nested]}, _last]}] =
             tree(spans())

    assert nested == {"invoke_agent #{name}", :internal, :unset, [chat, run, chat]}
  end

  test "a failed model is an error, and nothing stays behind", %{book: book} do
    model = Model.Function.new(fn _, _ -> {:error, %ModelError{kind: :server, reason: "oh"}} end)

    {:error, _} = Agent.run(book, "Go.", model: model, profile: "ann")
    [run, chat] = spans()
    assert {chat.status, chat.attributes["error.type"]} == {:error, "server"}
    assert {run.status, run.attributes["error.type"]} == {:error, "_OTHER"}
    assert :otel_ctx.get_current() == %{}
    assert for({{Telemetry.OpenTelemetry, _}, _} = left <- Process.get(), do: left) == []
  end

  test "attributes by the conventions" do
    about = %{book: MyApp.Skills, profile: "ann"}
    own = %{"skillbook.book" => "MyApp.Skills", "skillbook.profile" => "ann"}
    tool = %{"gen_ai.tool.name" => "x.run", "gen_ai.tool.type" => "function"}
    usage = %{prompt_tokens: 9, completion_tokens: 2, cached_tokens: 7, cache_write_tokens: 1}

    rows = [
      {[:skillbook, :agent, :start], %{provider: "openai", model: "gpt-5", depth: 0},
       "invoke_agent MyApp.Skills", :internal,
       %{
         "gen_ai.operation.name" => "invoke_agent",
         "gen_ai.agent.name" => "MyApp.Skills",
         "gen_ai.provider.name" => "openai",
         "gen_ai.request.model" => "gpt-5"
       }},
      {[:skillbook, :model, :stop],
       %{
         provider: "openai",
         model: "gpt-5",
         turn: 1,
         usage: usage,
         finish_reason: :tool_calls,
         answered_by: "gpt-5-1"
       }, "chat gpt-5", :client,
       %{
         "gen_ai.operation.name" => "chat",
         "gen_ai.provider.name" => "openai",
         "gen_ai.request.model" => "gpt-5",
         "gen_ai.request.stream" => true,
         "gen_ai.response.model" => "gpt-5-1",
         "gen_ai.response.finish_reasons" => ["tool_calls"],
         "gen_ai.usage.input_tokens" => 9,
         "gen_ai.usage.output_tokens" => 2,
         "gen_ai.usage.cache_read.input_tokens" => 7,
         "gen_ai.usage.cache_creation.input_tokens" => 1
       }},
      {[:skillbook, :model, :stop],
       %{provider: "X", model: nil, finish_reason: :filtered, usage: nil}, "chat", :client,
       %{
         "gen_ai.operation.name" => "chat",
         "gen_ai.provider.name" => "X",
         "gen_ai.request.stream" => true,
         "gen_ai.response.finish_reasons" => ["content_filter"]
       }},
      {[:skillbook, :command, :stop], %{skill: "x.run", status: :ok}, "execute_tool x.run",
       :internal, Map.put(tool, "gen_ai.operation.name", "execute_tool")},
      {[:skillbook, :command, :stop], %{skill: "x.run", status: :error, flags: %{"a" => "b"}},
       "execute_tool x.run", :internal,
       Map.merge(tool, %{
         "gen_ai.operation.name" => "execute_tool",
         "gen_ai.tool.call.arguments" => ~S({"a":"b"}),
         "error.type" => "_OTHER"
       })},
      {[:skillbook, :command, :exception], %{skill: "x.run", status: :error, kind: :timeout},
       "execute_tool x.run", :internal,
       Map.merge(tool, %{"gen_ai.operation.name" => "execute_tool", "error.type" => "timeout"})},
      {[:skillbook, :workflow, :start], %{skill: "x.flow"}, "invoke_workflow x.flow", :internal,
       %{"gen_ai.operation.name" => "invoke_workflow", "gen_ai.workflow.name" => "x.flow"}}
    ]

    for {event, metadata, name, kind, attributes} <- rows do
      assert Telemetry.gen_ai(event, Map.merge(about, metadata)) ==
               %{name: name, kind: kind, attributes: Map.merge(own, attributes)}
    end

    for {event, metadata} <- [
          {[:skillbook, :command, :stop], %{skill: nil, status: :error}},
          {[:skillbook, :model, :retry], %{provider: "X", model: nil}},
          {[:skillbook, :store, :away], %{}}
        ],
        do: assert(Telemetry.gen_ai(event, Map.merge(about, metadata)) == nil)
  end

  test "a second handler is an error" do
    assert {:error, %TelemetryError{kind: :attached} = error} = Telemetry.attach_open_telemetry()

    assert Exception.message(error) ==
             "expected Skillbook.Telemetry.attach_open_telemetry/1 to be called once, got: " <>
               "another call; call detach_open_telemetry/0 first to change its options"
  end
end
