defmodule Skillbook.Model.VendorsTest do
  # The same faults and conversations through each model of a vendor, against a server that checks
  # requests by the vendor's types.
  use ExUnit.Case, async: true

  import ExUnit.CaptureLog

  alias Skillbook.Support.JSON
  alias Skillbook.Test.Vendors
  alias Skillbook.{Model, ModelError, Tool, Tools}

  doctest Skillbook.Model.Anthropic
  doctest Skillbook.Model.Gemini
  doctest Skillbook.Model.Messages
  doctest Skillbook.Model.Responses

  @hello [%{role: :system, content: "Be brief."}, %{role: :user, content: "Hello"}]
  @key "sk-test-0123456789abcdef"

  # The result, the texts, the pieces of calls, the delays before retries, and the server's
  # record.
  defp ask(vendor, answers, options \\ [], call \\ []) do
    {fields, options} = Keyword.split(options, [:keeps, :messages, :script_key])
    script_fields = for {:script_key, key} <- fields, do: {:key, key}
    script = Vendors.start(vendor, List.wrap(answers), script_fields)
    test = self()
    sleep = &send(test, {:slept, &1})
    model = Vendors.model(script, [sleep: sleep, idle_timeout: 60_000] ++ options)
    call = Keyword.put_new(call, :on_tool_call, &send(test, {:piece, &1}))
    messages = Keyword.get(fields, :messages, @hello)
    result = Model.chat(model, messages, call, &send(test, {:text, &1}))

    %{
      vendor: vendor,
      result: result,
      texts: received(:text),
      pieces: received(:piece),
      slept: received(:slept),
      record: Vendors.record(script)
    }
  end

  defp received(tag) do
    receive do
      {^tag, value} -> [value | received(tag)]
    after
      0 -> []
    end
  end

  defp answer!(%{result: {:ok, answer}, record: %{"refused" => []}}), do: answer

  defp answer!(asked),
    do: flunk("#{asked.vendor}: #{inspect(asked.result)} #{inspect(asked.record["refused"])}")

  defp error!(%{result: {:error, %ModelError{} = error}}), do: error
  defp error!(asked), do: flunk("#{asked.vendor}: #{inspect(asked.result)}")

  describe "answers" do
    test "are streamed, and their tokens counted" do
      counts = %{prompt: 100, completion: 7, cached: 60, written: 5}
      parts = %{text: ["Hel", "lo ", "wörld"]}

      for vendor <- Vendors.all(), extra <- [[], [whole: true], [piece: 1], [unknown: true]] do
        asked = ask(vendor, Vendors.answer(parts, [usage: counts] ++ extra))
        answer = answer!(asked)
        label = {vendor, extra}

        assert {label, answer} ==
                 {label,
                  %{
                    text: "Hello wörld",
                    tool_calls: [],
                    usage: %{
                      prompt_tokens: 100,
                      completion_tokens: 7,
                      cached_tokens: 60,
                      # Gemini does not say.
                      cache_write_tokens: if(vendor == "gemini", do: 0, else: 5)
                    },
                    finish_reason: :stop,
                    opaque: nil,
                    model: "model-of-the-server"
                  }}

        if extra == [whole: true],
          do: assert(Enum.join(asked.texts) == "Hello wörld"),
          else: assert({label, asked.texts} == {label, parts.text})
      end
    end

    test "have calls, whose arguments come in pieces" do
      calls = [
        %{call: %{id: "id1", name: "one", pieces: ["{\"a\"", ": \"é", "\"}"]}},
        %{call: %{id: "id2", name: "two", pieces: ["{", "\"b\": [1,", " 2]}"]}},
        %{call: %{id: "id3", name: "one", pieces: []}}
      ]

      for vendor <- Vendors.all(),
          extra <-
            [[], [whole: true], [piece: 1]] ++
              if(vendor == "openai", do: [[mixed: true]], else: []),
          text <- [[], ["Wait."]] do
        asked = ask(vendor, Vendors.answer(text ++ calls, extra))
        answer = answer!(asked)

        assert {vendor, answer.finish_reason, answer.text} ==
                 {vendor, :tool_calls, Enum.join(text)}

        assert [
                 {"id1", "one", %{"a" => "é"}},
                 {"id2", "two", %{"b" => [1, 2]}},
                 {"id3", "one", %{}}
               ] ==
                 for(
                   c <- answer.tool_calls,
                   do: {c.id, c.name, elem(JSON.decode(c.arguments), 1)}
                 )

        # The pieces are those of the answer, each with its call.
        for {call, index} <- Enum.with_index(answer.tool_calls) do
          pieces = Enum.filter(asked.pieces, &(&1.index == index))
          assert Enum.all?(pieces, &(&1.id == call.id and &1.name == call.name))
          joined = Enum.map_join(pieces, & &1.arguments)
          assert joined == call.arguments or {joined, call.arguments} == {"", "{}"}
        end
      end
    end

    test "end for the reasons of the vendors" do
      for vendor <- Vendors.all(), extra <- [[], [whole: true]] do
        said = fn parts, fields ->
          answer!(ask(vendor, Vendors.answer(parts, fields ++ extra)))
        end

        assert {vendor, %{text: "cut", finish_reason: :length}} =
                 {vendor, Map.take(said.("cut", finish: "length"), [:text, :finish_reason])}

        refusal = said.(%{refusal: ["I ", "cannot."]}, finish: "filtered")

        assert {vendor, refusal.text, refusal.finish_reason, refusal.tool_calls} ==
                 {vendor, "I cannot.", :filtered, []}

        assert %{text: "", finish_reason: :stop, tool_calls: []} = said.([], [])
      end

      for reason <- ~w(SAFETY RECITATION PROHIBITED_CONTENT) do
        answer = answer!(ask("gemini", Vendors.answer("a", reason: reason)))
        assert %{text: "a", finish_reason: :filtered} = answer
      end
    end

    test "with a call that the model could not write are asked for again" do
      broken = Vendors.answer([], reason: "MALFORMED_FUNCTION_CALL")
      asked = ask("gemini", [broken, Vendors.answer("fine")])
      assert answer!(asked).text == "fine"
      assert [_] = asked.slept
      error = error!(ask("gemini", Vendors.answer("some", reason: "MALFORMED_FUNCTION_CALL")))

      assert {error.kind, error.text, error.reason} ==
               {:server, "some", "it ended with MALFORMED_FUNCTION_CALL"}
    end

    test "may have long lines, comments and bytes of their own" do
      long = String.duplicate("wörd ", 200_000)

      for vendor <- Vendors.all() do
        answer = Vendors.answer(%{text: ["a", long]}, insert: [[1, ": ping\n\n"], [2, ":\n"]])
        assert answer!(ask(vendor, answer)).text == "a" <> long
      end
    end
  end

  describe "faults" do
    test "before the first word are retried" do
      overloaded = %{type: "overloaded_error", message: "Overloaded"}

      for vendor <- Vendors.all(),
          {status, error, headers, delays} <- [
            {529, overloaded, [], 0..1},
            {503, %{message: "down"}, [["retry-after", "7"]], 7_000..7_000},
            {429, %{message: "slow"}, [["retry-after", "2"]], 2_000..2_000},
            {429, %{message: "slow"}, [["retry-after-ms", "350.5"], ["retry-after", "9"]],
             351..351},
            {408, %{message: "slow"}, [], 0..1},
            {409, %{message: "again"}, [], 0..1},
            {400, %{message: "again"}, [["x-should-retry", "true"]], 0..1}
          ] do
        error = if vendor == "anthropic", do: error, else: Map.delete(error, :type)
        failure = %{status: status, error: error, headers: headers}
        asked = ask(vendor, [failure, Vendors.answer("fine")])
        assert {vendor, status, answer!(asked).text} == {vendor, status, "fine"}
        assert [delay] = asked.slept
        assert delay in delays, "#{vendor} #{status}: #{delay}"
      end
    end

    test "with a delay in Google's error wait for it" do
      failure = %{status: 429, error: %{message: "quota", delay: "3.5s"}}
      asked = ask("gemini", [failure, Vendors.answer("fine")])
      assert {answer!(asked).text, asked.slept} == {"fine", [3_500]}
    end

    test "that cannot be helped return their kind at once" do
      for vendor <- Vendors.all(),
          {failure, options, kind, message} <- [
            {%{
               status: 429,
               error: %{message: "no money"},
               headers: [["x-should-retry", "false"]]
             }, [], :rate_limited,
             "the model's server accepts no more requests for now (429): no money"},
            {%{status: 429, error: %{message: "later"}, headers: [["retry-after", "3600"]]}, [],
             :rate_limited,
             "the model's server accepts no more requests for now (429), again in 3600 s: later"},
            {%{status: 403, error: %{message: "no"}}, [], :refused,
             "the model's server refused the request (403): URL: no"},
            {Vendors.answer("a"), [script_key: @key, key: fn -> "sk-wrong" end], :refused,
             "the model's server refused the request (401): URL: wrong key"},
            {Vendors.answer("a"), [script_key: @key], :refused,
             "the model's server refused the request (401): URL: wrong key"},
            {Vendors.answer("a"), [key: {:env, "SKILLBOOK_NO_SUCH_KEY"}], :key,
             "no key for the model's server: the environment variable " <>
               "SKILLBOOK_NO_SUCH_KEY is not set, or empty"}
          ] do
        error = error!(ask(vendor, failure, options))
        assert {vendor, error.kind} == {vendor, kind}

        assert error |> Exception.message() |> String.replace(~r"http://\S+: ", "URL: ") ==
                 message
      end
    end

    @insertions %{
      "openai" => ~s(data: {"error": {"message": "Overloaded", "type": "server_error"}}\n\n),
      "responses" =>
        ~s(event: error\ndata: {"type": "error", "code": "server_error", ) <>
          ~s("message": "Overloaded", "sequence_number": 3}\n\n),
      "anthropic" =>
        ~s(event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", ) <>
          ~s("message": "Overloaded"}}\n\n),
      "gemini" =>
        ~s(data: {"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}}\n\n)
    }

    test "in the stream are retried before the first word only" do
      for vendor <- Vendors.all() do
        failing = fn place ->
          Vendors.answer(%{text: ["some", "more"]}, insert: [[place, @insertions[vendor]]])
        end

        asked = ask(vendor, [failing.(0), Vendors.answer("fine")])
        assert {vendor, answer!(asked).text, length(asked.slept)} == {vendor, "fine", 1}

        # Behind the first text.
        place = Enum.find_index(stream_events(vendor), &(&1 =~ "some")) + 1
        error = error!(ask(vendor, [failing.(place)]))
        assert {vendor, error.kind, error.text} == {vendor, :server, "some"}
        assert Exception.message(error) == "the model's server failed: Overloaded"
      end
    end

    # Where events with their types are in the stream of an answer, counted as the server does.
    defp stream_events("openai"), do: ["role", "some", "more"]
    defp stream_events("responses"), do: ["created", "in_progress", "added", "some", "more"]
    defp stream_events("anthropic"), do: ["start", "ping", "block", "some", "more"]
    defp stream_events("gemini"), do: ["some", "more"]

    test "of the request in the stream are not retried" do
      for {vendor, error, kind} <- [
            {"responses", %{code: "rate_limit_exceeded", message: "slow"}, :rate_limited},
            {"responses", %{code: "server_error", message: "oh"}, :server},
            {"responses", %{code: "invalid_prompt", message: "bad"}, :refused}
          ] do
        asked = ask(vendor, [Vendors.answer([], failed: error), Vendors.answer("fine")])

        if kind == :refused do
          assert error!(asked).kind == :refused
          assert asked.slept == []
        else
          assert answer!(asked).text == "fine"
          assert [_] = asked.slept
        end
      end
    end

    test "of bytes that are no text end the answer" do
      for vendor <- Vendors.all(),
          {bytes, problem} <- [
            {"data: {\"a\": \"\xFF\xFE\"}\n\n", "one of its events is not JSON"},
            {"data: {\"a\": \n\n", "one of its events is not JSON"},
            {"data: [1]\n\n", "one of its events is not an object"},
            {"data: {}\n\n", "one of its events has no"}
          ] do
        text = for <<byte <- bytes>>, into: "", do: <<byte::utf8>>
        error = error!(ask(vendor, Vendors.answer("some", insert: [[0, text]])))
        assert {vendor, error.kind} == {vendor, :bad_answer}
        assert error.reason =~ problem
      end
    end

    test "a stream that is cut off anywhere gives a part of the text, or is asked for again" do
      parts = [
        %{thought: "Let me see.", signature: "c2lnbmVk"},
        %{text: ["Grüße, ", "Ann"]},
        %{call: %{id: "id1", name: "one", pieces: ["{\"a\": ", "1}"]}}
      ]

      for vendor <- Vendors.all() do
        whole = ask(vendor, Vendors.answer(parts))
        %{tool_calls: [_]} = answer!(whole)
        [size] = whole.record["sent"]

        for cut <- Enum.uniq([0, 1, size - 1] ++ Enum.to_list(0..(size - 1)//17)) do
          asked = ask(vendor, [Vendors.answer(parts, cut: cut), Vendors.answer("again")])
          label = "#{vendor} cut after #{cut} of #{size}"
          text = Enum.join(asked.texts)

          case asked.result do
            {:ok, %{text: "again"}} ->
              assert {asked.texts, length(asked.slept)} == {["again"], 1}, label

            {:ok, answer} ->
              assert {answer.text, answer.tool_calls} ==
                       {"Grüße, Ann", answer!(whole).tool_calls},
                     label

            {:error, error} ->
              assert error.kind == :cut_off and error.text == text, label
              assert text != "" and String.starts_with?("Grüße, Ann", text), label
              assert asked.slept == [], label
          end
        end
      end
    end

    # The events of a stream with thoughts, text and calls, as the server sends them.
    defp events(vendor) do
      parts = [
        %{thought: "Let me see.", signature: "c2lnbmVk"},
        %{text: ["Grüße, ", "Ann"]},
        %{call: %{id: "id1", name: "one", pieces: ["{\"a\": ", "1}"]}}
      ]

      script = Vendors.start(vendor, [Vendors.answer(parts)])
      model = Vendors.model(script)

      request = [
        method: :post,
        url: model.url,
        headers:
          [{"content-type", "application/json"}, {"accept", "text/event-stream"}] ++
            model.__struct__.headers(model, nil),
        body: Model.Client.encode(model, @hello, [])
      ]

      {:ok, %{status: 200, body: body}} = Skillbook.HTTP.request(request)
      data = for "data: " <> data <- String.split(body, "\n"), do: data

      {model,
       for(
         data <- data,
         do: with({:ok, event} <- JSON.decode(data), do: event, else: (_ -> data))
       )}
    end

    # Another value somewhere in an event, of any type, or none.
    defp change(%{} = map, random) when map != %{} do
      {name, value} = Enum.random(map)

      case random do
        0 ->
          Map.delete(map, name)

        1 ->
          Map.put(map, name, Enum.random([nil, 1, -1, 1.5, "x", "", [], %{}, true, [1], [%{}]]))

        _ ->
          Map.put(map, name, change(value, random - 1))
      end
    end

    defp change([_ | _] = list, random) do
      case random do
        0 -> tl(list)
        1 -> [Enum.random([nil, 1, "x", [], %{}]) | list]
        _ -> List.update_at(list, Enum.random(0..(length(list) - 1)), &change(&1, random - 1))
      end
    end

    defp change(_value, _random), do: Enum.random([nil, 1, "x", [], %{}])

    test "events with any other values are an answer or an error, and never a crash" do
      :rand.seed(:exsss, {1, 2, 3})

      for vendor <- Vendors.all(), {model, events} = events(vendor), _ <- 1..1_000 do
        events =
          for event <- events do
            if is_map(event) and :rand.uniform(6) == 1,
              do: change(event, :rand.uniform(5)),
              else: event
          end

        data =
          for event <- events,
              do: "data: #{if is_map(event), do: JSON.encode(event), else: event}\n\n"

        test = self()
        answer = Model.Answer.new(model, &send(test, {:text, &1}), &send(test, {:piece, &1}))
        head = %{"content-type" => ["text/event-stream"]}
        {:cont, answer} = Model.Answer.part({:head, 200, head}, answer)
        {_, answer} = Model.Answer.part({:data, IO.iodata_to_binary(data)}, answer)
        text = Enum.join(received(:text))
        received(:piece)

        case Model.Answer.result({:ok, answer}, model.url) do
          {:ok, answer} ->
            assert answer.text == text
            assert Enum.all?(answer.tool_calls, &(is_binary(&1.id) and is_binary(&1.arguments)))
            # It can be given back.
            reply = Map.take(answer, [:tool_calls, :opaque])
            reply = Map.merge(reply, %{role: :assistant, content: answer.text})
            assert is_binary(Model.Client.encode(model, @hello ++ [reply], []))

          {how, %ModelError{} = error} when how in [:error, :retry] ->
            assert error.text == text and is_binary(Exception.message(error))
        end
      end
    end

    test "a stream that says no more ends at its time limit" do
      for vendor <- Vendors.all() do
        answer = Vendors.answer("some", cut: 1, silent: true)
        error = error!(ask(vendor, answer, idle_timeout: 300))
        assert {vendor, error.kind} == {vendor, :timeout}
      end
    end
  end

  describe "the server for tests" do
    test "refuses requests that the vendors refuse" do
      call = %{id: "id1", name: "one", arguments: "{}"}
      calling = %{role: :assistant, content: "", tool_calls: [call]}
      result = %{role: :tool, id: "id1", name: "one", content: "ok", error: false}

      for vendor <- Vendors.all(),
          {messages, extra, reason} <- [
            {@hello, %{"zz_unknown" => 1}, ~r/zz_unknown/},
            {@hello ++ [calling, %{role: :user, content: "And?"}], %{}, ~r/call/},
            {@hello ++ [%{result | name: "two"}], %{}, ~r/call|result/},
            {@hello, wrong_type(vendor), ~r/ould be a|nput should be|expected/}
          ] do
        asked = ask(vendor, Vendors.answer("a"), [messages: messages], extra: extra)
        assert [refused] = asked.record["refused"], vendor
        assert {vendor, refused} == {vendor, Regex.match?(reason, refused) && refused}
        assert {vendor, error!(asked).kind, error!(asked).status} == {vendor, :refused, 400}
      end
    end

    defp wrong_type("openai"), do: %{"n" => "two"}
    defp wrong_type("responses"), do: %{"max_output_tokens" => "two"}
    defp wrong_type("anthropic"), do: %{"max_tokens" => "two"}
    defp wrong_type("gemini"), do: %{"generationConfig" => %{"candidateCount" => "two"}}
  end

  describe "requests" do
    test "have the options of a chat" do
      call = [temperature: 0.5, max_tokens: 50, stop: ["END"]]

      expected = %{
        "openai" => %{"temperature" => 0.5, "max_tokens" => 50, "stop" => ["END"]},
        "responses" => %{"temperature" => 0.5, "max_output_tokens" => 50, "store" => false},
        "anthropic" => %{"max_tokens" => 50, "stop_sequences" => ["END"]},
        "gemini" => %{
          "generationConfig" => %{
            "temperature" => 0.5,
            "maxOutputTokens" => 50,
            "stopSequences" => ["END"]
          }
        }
      }

      for vendor <- Vendors.all() do
        call = if vendor == "responses", do: Keyword.delete(call, :stop), else: call
        asked = ask(vendor, Vendors.answer("a"), [], call)
        answer!(asked)
        [body] = asked.record["requests"]
        assert {vendor, Map.take(body, Map.keys(expected[vendor]))} == {vendor, expected[vendor]}
        refute vendor == "anthropic" and Map.has_key?(body, "temperature")
      end
    end

    test "with an option that an interface does not have are refused" do
      for {vendor, option, name} <- [
            {"responses", [stop: ["a"]], ":stop"},
            {"responses", [grammar: "root ::= \"a\""], ":grammar"},
            {"anthropic", [grammar: "root ::= \"a\""], ":grammar"},
            {"gemini", [grammar: "root ::= \"a\""], ":grammar"}
          ] do
        asked = ask(vendor, Vendors.answer("a"), [], option)
        assert asked.record["bodies"] == []
        module = vendor |> Vendors.start([]) |> Vendors.model() |> Map.fetch!(:__struct__)

        assert Exception.message(error!(asked)) ==
                 "the model's server refused the request: the interface of #{inspect(module)} " <>
                   "has no #{name}; leave the option out"
      end
    end

    test "have fields of their model and of the call, which are merged" do
      extra = %{"metadata" => %{"a" => "1"}}

      for vendor <- ["openai", "responses"] do
        call = [extra: %{"metadata" => %{"b" => "2"}, "user" => "u", "stream" => true}]
        asked = ask(vendor, Vendors.answer("a"), [extra: extra], call)
        answer!(asked)

        assert [%{"metadata" => %{"a" => "1", "b" => "2"}, "user" => "u"}] =
                 asked.record["requests"]
      end

      thinking = %{"generationConfig" => %{"thinkingConfig" => %{"thinkingLevel" => "LOW"}}}
      asked = ask("gemini", Vendors.answer("a"), [extra: thinking], max_tokens: 5)
      answer!(asked)

      assert [%{"generationConfig" => %{"maxOutputTokens" => 5, "thinkingConfig" => _}}] =
               asked.record["requests"]
    end

    test "have the tools of all built-in commands, as the vendors accept them" do
      {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      tools = catalog |> Skillbook.View.all() |> Tools.list([])
      assert length(tools) > 20

      for vendor <- Vendors.all(), choice <- [nil, :auto, :none, :required] do
        call = [tools: tools] ++ if choice, do: [tool_choice: choice], else: []
        asked = ask(vendor, Vendors.answer("a"), [], call)
        answer!(asked)
        [body] = asked.record["requests"]

        choices = %{
          "openai" => {["tool_choice"], &to_string/1},
          "responses" => {["tool_choice"], &to_string/1},
          "anthropic" =>
            {["tool_choice", "type"], &if(&1 == :required, do: "any", else: "#{&1}")},
          "gemini" =>
            {["toolConfig", "functionCallingConfig", "mode"],
             &Map.get(%{auto: "AUTO", none: "NONE", required: "ANY"}, &1)}
        }

        {path, name} = choices[vendor]
        assert get_in(body, path) == if(choice, do: name.(choice))
      end
    end

    test "have calls and results whatever model they come from" do
      messages = [
        %{role: :system, content: "S"},
        %{role: :user, content: "Go."},
        %{
          role: :assistant,
          content: "",
          tool_calls: [
            %{id: "functions.one:0", name: "one", arguments: ~S({"b":1,"a":2})},
            %{id: String.duplicate("x", 90), name: "no such tool!", arguments: ~S({"broken)},
            %{id: "id3", name: "one", arguments: ""},
            %{id: "id4", name: "", arguments: "[1]"}
          ]
        },
        %{role: :tool, id: "functions.one:0", name: "one", content: "fine", error: false},
        %{
          role: :tool,
          id: String.duplicate("x", 90),
          name: "no such tool!",
          content: "no",
          error: true
        },
        %{role: :tool, id: "id3", name: "one", content: "", error: false},
        %{role: :tool, id: "id4", name: "", content: "no", error: true},
        %{role: :user, content: "News"},
        %{role: :assistant, content: "Done."},
        %{role: :user, content: "Thanks."}
      ]

      for vendor <- Vendors.all() do
        asked = ask(vendor, Vendors.answer("a"), messages: messages)
        answer!(asked)
        [body] = asked.record["requests"]
        text = JSON.encode(body)
        # The arguments are objects, even if the model wrote none.
        assert text =~ "INVALID_JSON"
        # Errors are in the vendor's form where it has one.
        case vendor do
          "anthropic" -> assert text =~ ~s("is_error":true)
          "gemini" -> assert text =~ ~s("response":{"error":"no"})
          _ -> :ok
        end
      end
    end

    test "leave out messages without content" do
      messages = [
        %{role: :user, content: "Hi"},
        %{role: :assistant, content: " \n"},
        %{role: :user, content: "Still there?"}
      ]

      asked = ask("anthropic", Vendors.answer("a"), messages: messages)
      answer!(asked)
      assert [%{"messages" => [%{"content" => [_, _]}]} = body] = asked.record["requests"]
      refute Map.has_key?(body, "system")
    end
  end

  describe "the vendor's data" do
    @thinking [
      %{thought: "Let me see.", signature: "c2lnbmVk"},
      %{text: ["I look."]},
      %{call: %{id: "id1", name: "one", pieces: ["{}"]}}
    ]

    defp second_request(vendor, change, options \\ []) do
      script = Vendors.start(vendor, [Vendors.answer(@thinking), Vendors.answer("ok")], options)
      model = Vendors.model(script)
      {:ok, first} = Model.chat(model, @hello, [], fn _ -> :ok end)

      reply =
        change.(%{
          role: :assistant,
          content: first.text,
          tool_calls: first.tool_calls,
          opaque: first.opaque
        })

      result = %{role: :tool, id: "id1", name: "one", content: "found", error: false}
      answer = Model.chat(model, @hello ++ [reply, result], [], fn _ -> :ok end)
      {first, answer, Vendors.record(script)}
    end

    test "is given back unchanged and in its place" do
      for vendor <- Vendors.all() -- ["openai"] do
        # As a transcript in JSON has it.
        stored = fn reply ->
          {:ok, opaque} = reply.opaque |> JSON.encode() |> JSON.decode()
          %{reply | opaque: opaque}
        end

        {first, answer, record} = second_request(vendor, stored, keeps: true)
        assert first.opaque["vendor"] == vendor
        assert {^vendor, {:ok, %{text: "ok"}}} = {vendor, answer}
        assert record["refused"] == []
      end
    end

    test "of an answer whose text was changed, or of another model, stays here" do
      for vendor <- Vendors.all() -- ["openai"],
          change <- [
            &%{&1 | content: "(removed)"},
            &%{&1 | content: ""},
            &put_in(&1.opaque["model"], "other"),
            &put_in(&1.opaque["vendor"], "other"),
            &put_in(&1.opaque["parts"], [%{"text" => -1}]),
            &put_in(&1.opaque["parts"], [%{"text" => 7}, %{"call" => 0}, %{"call" => 1}]),
            &%{&1 | opaque: %{"parts" => 1}},
            &%{&1 | opaque: nil}
          ] do
        {_first, answer, record} = second_request(vendor, change)
        assert {^vendor, {:ok, %{text: "ok"}}} = {vendor, answer}
        [_, second] = record["bodies"]
        refute second =~ "Let me see", vendor
        refute second =~ "c2lnbmVk", vendor
      end
    end
  end

  test "calls without a signature are marked for Gemini 3 and later" do
    call = %{id: "id1", name: "one", arguments: "{}"}
    calling = %{role: :assistant, content: "", tool_calls: [call]}

    for {name, marked?} <- [
          {"gemini-3-pro", true},
          {"gemini-10-pro", true},
          {"other", true},
          {"gemini-2.5-flash", false},
          {"gemini-2", false}
        ] do
      model = Model.Gemini.new!(model: name)
      body = Model.Client.encode(model, @hello ++ [calling], [])
      assert {name, body =~ "skip_thought_signature_validator"} == {name, marked?}
    end
  end

  describe "the cache" do
    @tools [
      %Tool{name: "one", description: "One", schema: %{"type" => "object", "properties" => %{}}},
      %Tool{name: "two", description: "Two", schema: %{"type" => "object", "properties" => %{}}}
    ]

    defp marks(value, path \\ [])

    defp marks(%{} = map, path) do
      own = if mark = map["cache_control"], do: [{Enum.reverse(path), mark}], else: []
      own ++ Enum.flat_map(map, fn {name, value} -> marks(value, [name | path]) end)
    end

    defp marks(list, path) when is_list(list),
      do: list |> Enum.with_index() |> Enum.flat_map(fn {v, i} -> marks(v, [i | path]) end)

    defp marks(_value, _path), do: []

    test "of Anthropic gets marks at the tools, the system prompt and the last two turns" do
      long =
        for n <- 1..5,
            m <- [%{role: :user, content: "Q#{n}"}, %{role: :assistant, content: "A#{n}"}],
            do: m

      messages = [%{role: :system, content: "S"}] ++ long ++ [%{role: :user, content: "Q6"}]

      for {cache, mark} <- [
            {true, %{"type" => "ephemeral"}},
            {[], %{"type" => "ephemeral"}},
            {[ttl: "1h"], %{"type" => "ephemeral", "ttl" => "1h"}}
          ] do
        asked =
          ask("anthropic", Vendors.answer("a"), [messages: messages, cache: cache], tools: @tools)

        answer!(asked)
        [body] = asked.record["requests"]

        assert Enum.sort(marks(body)) ==
                 Enum.sort([
                   {["tools", 1], mark},
                   {["system", 0], mark},
                   {["messages", 8, "content", 0], mark},
                   {["messages", 10, "content", 0], mark}
                 ])
      end

      asked =
        ask("anthropic", Vendors.answer("a"), [messages: messages, cache: false], tools: @tools)

      answer!(asked)
      assert asked.record["requests"] |> hd() |> marks() == []
    end

    test "of OpenAI gets a key that depends on the tools and the system prompt only" do
      key = fn model, messages, tools ->
        Model.Client.encode(model, messages, tools: tools)
        |> JSON.decode()
        |> elem(1)
        |> Map.get("prompt_cache_key")
      end

      for module <- [Model.OpenAI, Model.Responses] do
        model = module.new!(url: "https://api.openai.com/v1", model: "m")
        one = key.(model, @hello, @tools)
        assert one =~ ~r/\Askillbook-[0-9a-f]{32}\z/
        assert key.(model, @hello ++ [%{role: :user, content: "More"}], @tools) == one
        refute key.(model, @hello, tl(@tools)) == one
        refute key.(model, [%{role: :system, content: "Other"}], @tools) == one

        assert key.(
                 module.new!(url: "https://api.openai.com/v1", model: "m", cache: false),
                 @hello,
                 @tools
               ) == nil

        assert key.(module.new!(url: "http://localhost", model: "m"), @hello, @tools) == nil
        own = [url: "http://localhost", model: "m", cache: [key: "own", ttl: "30m"]]
        assert key.(module.new!(own), @hello, @tools) == "own"
      end

      for vendor <- ["openai", "responses"] do
        asked = ask(vendor, Vendors.answer("a"), [cache: [key: "own", ttl: "30m"]], tools: @tools)
        answer!(asked)

        assert [%{"prompt_cache_key" => "own", "prompt_cache_options" => %{"ttl" => "30m"}}] =
                 asked.record["requests"]
      end
    end

    test "wrong options are errors" do
      for {module, cache, expected} <- [
            {Model.Anthropic, [ttl: "2h"], ~s(true, false or [ttl: "5m"] or [ttl: "1h"])},
            {Model.Anthropic, [key: "a"], ~s(true, false or [ttl: "5m"] or [ttl: "1h"])},
            {Model.OpenAI, [ttl: "12h"], ~s(true, false or [ttl: "30m"] or [key: "…"])},
            {Model.Responses, 1, ~s(true, false or [ttl: "30m"] or [ttl: "12h"] or [key: "…"])},
            {Model.Gemini, [ttl: "1h"], "true or false"}
          ] do
        {:error, error} = module.new(url: "http://a", model: "m", cache: cache)

        assert Exception.message(error) ==
                 "expected #{expected} as the option :cache of a model, got: #{inspect(cache)}"
      end
    end
  end

  test "objects are requested in the vendor's way" do
    schema = %{
      "type" => "object",
      "properties" => %{
        "city" => %{"type" => "string", "maxLength" => 80},
        "count" => %{"type" => "integer", "minimum" => 0}
      },
      "required" => ["city", "count"]
    }

    paths = %{
      "openai" => ["response_format", "json_schema", "schema"],
      "responses" => ["text", "format", "schema"],
      "anthropic" => ["output_config", "format", "schema"],
      "gemini" => ["generationConfig", "responseJsonSchema"]
    }

    for vendor <- Vendors.all(), structured <- [:json_schema, :prompt] do
      script = Vendors.start(vendor, [Vendors.answer(~s({"city": "Oslo", "count": 1}))])
      model = Vendors.model(script, structured: structured)

      assert {:ok, %{object: %{"city" => "Oslo", "count" => 1}}} =
               Model.complete_object(model, [%{role: :user, content: "City?"}], schema)

      %{"requests" => [body], "refused" => []} = Vendors.record(script)
      sent = get_in(body, paths[vendor])

      if structured == :prompt do
        assert sent == nil
      else
        assert %{"type" => "object", "additionalProperties" => false} = sent
        assert sent["required"] == ["city", "count"]
        # Anthropic refuses limits, OpenAI and Gemini those of texts.
        kept = sent["properties"]["count"]["minimum"]
        assert {vendor, kept} == {vendor, if(vendor != "anthropic", do: 0)}
      end
    end
  end

  describe "the key" do
    test "is in no error, log, telemetry event or crash report" do
      for vendor <- Vendors.all() do
        script = Vendors.start(vendor, [Vendors.answer("a")], key: "another")
        model = Vendors.model(script, key: fn -> @key end)
        refute inspect(model, structs: false, limit: :infinity) =~ @key

        log =
          capture_log(fn ->
            {:error, error} = Model.chat(model, @hello, [], fn _ -> :ok end)
            assert {vendor, error.status} == {vendor, 401}
            refute inspect(error, limit: :infinity) =~ @key
          end)

        refute log =~ @key

        script = Vendors.start(vendor, [Vendors.answer("a")], key: @key)
        model = Vendors.model(script, key: fn -> @key end)

        log =
          capture_log(fn ->
            {:ok, pid} =
              Task.start(fn ->
                receive do: (:go -> Model.chat(model, @hello, [], fn _ -> raise "oh" end))
              end)

            monitor = Process.monitor(pid)
            send(pid, :go)
            assert_receive {:DOWN, ^monitor, _, ^pid, {%RuntimeError{}, _} = reason}, 5_000
            refute inspect(reason, limit: :infinity) =~ @key
            Logger.flush()
          end)

        assert log =~ "oh"
        refute log =~ @key
      end
    end

    test "comes from the vendor's variable by default" do
      for {module, options, variable} <- [
            {Model.OpenAI, [url: "https://api.openai.com/v1"], "OPENAI_API_KEY"},
            {Model.Responses, [], "OPENAI_API_KEY"},
            {Model.Anthropic, [], "ANTHROPIC_API_KEY"},
            {Model.Gemini, [], "GEMINI_API_KEY"}
          ] do
        model = module.new!([model: "m"] ++ options)
        assert model.key == {:env, variable}
        refute inspect(model) =~ variable
        assert %{key: nil} = module.new!([model: "m", key: nil] ++ options)
        assert module.new!([model: "m", key: {:env, "X"}] ++ options).key == {:env, "X"}
      end

      assert Model.OpenAI.new!(url: "http://localhost:8080", model: "m").key == nil
    end
  end

  test "URLs" do
    for {module, url, endpoint} <- [
          {Model.Anthropic, "https://a", "https://a/v1/messages"},
          {Model.Anthropic, "https://a/x/v1", "https://a/x/v1/messages"},
          {Model.Responses, "https://a/v1", "https://a/v1/responses"},
          {Model.Gemini, "https://a", "https://a/v1beta/models/m:streamGenerateContent?alt=sse"},
          {Model.Gemini, "https://a/v1/publishers/google?b=c",
           "https://a/v1/publishers/google/models/m:streamGenerateContent?b=c&alt=sse"}
        ] do
      assert to_string(module.new!(url: url, model: "m").url) == endpoint
    end

    assert Model.Gemini.new!(model: "tunedModels/a b").url.path ==
             "/v1beta/tunedModels/a%20b:streamGenerateContent"
  end

  test "wrong options are errors, for lists of options and other values" do
    for module <- [Model.Responses, Model.Anthropic, Model.Gemini] do
      assert {:error, error} = module.new([])
      assert Exception.message(error) == "a model needs the option :model"
      assert {:error, error} = module.new(model: "m", key: @key)
      refute Exception.message(error) =~ @key
      assert {:error, %{option: :modle}} = module.new(modle: "m")
      assert {:error, _} = module.new(:m)
      assert_raise Skillbook.OptionError, fn -> module.new!([]) end
    end
  end
end
