defmodule Skillbook.ModelConformance do
  @moduledoc """
  Tests for the module of a vendor, which `Skillbook.Model.Client` makes a model: the same
  answers,
  faults and conversations against a server that checks requests by the vendor's types
  (`Skillbook.Test.Vendors`), and `Skillbook.ServiceConformance`.

      use Skillbook.ModelConformance, vendor: "gemini", own: […], urls: […], interface: %{…}

  ## Options

    * `:vendor` - its name
    * `:own`, `:urls` - as for `Skillbook.ServiceConformance`
    * `:interface` - a map of what differs:
      * `:fields` - the fields of a request with `temperature: 0.5`, `max_tokens: 50` and
        `stop: ["END"]`; `nil` for those that it must not have
      * `:extra` - `:extra` of a model, options of a call, and the fields of the request
      * `:wrong` - a field with a value of a wrong type
      * `:tool_choice` - the path of the field, and its values
      * `:schema` - the path of a schema in a request, and its `minimum`, which was 0
      * `:fault` - an event with the error `Overloaded`, and the place behind the text `some` in a
        stream, counted in events
      * `:overloaded` - an error of the vendor, if its types need more than a message
      * `:error` - text of a request with the result of a call that failed
      * `:answers` - further variants of answers with calls, of `Skillbook.Test.Vendors`
      * `:written` - the count of tokens stored in the cache, if the vendor has none
      * `:data` - false for an interface without data of the vendor
  """

  defmacro __using__(options) do
    quote location: :keep do
      use Skillbook.ServiceConformance,
        client: Skillbook.Test.Vendors.module(unquote(options[:vendor])),
        subject: "a model",
        whose: "the model",
        call: &Skillbook.Model.chat(&1, [%{role: :user, content: "Hello"}], [], fn _ -> :ok end),
        own: unquote(options[:own]),
        urls: unquote(options[:urls])

      alias Skillbook.Support.JSON
      alias Skillbook.Test.Vendors
      alias Skillbook.{Model, ModelError, Tools}

      @vendor unquote(options[:vendor])
      @hello [%{role: :system, content: "Be brief."}, %{role: :user, content: "Hello"}]
      @key "sk-test-0123456789abcdef"

      defp module, do: Vendors.module(@vendor)
      defp interface, do: unquote(options[:interface])

      # The result, the texts, the pieces of calls, the delays before retries, and the server's
      # record.
      defp ask(answers, options \\ [], call \\ []) do
        {fields, options} = Keyword.split(options, [:keeps, :messages, :script_key])
        script_fields = for {:script_key, key} <- fields, do: {:key, key}
        script = Vendors.start(@vendor, List.wrap(answers), script_fields)
        test = self()
        sleep = &send(test, {:slept, &1})
        model = Vendors.model(script, [sleep: sleep, idle_timeout: 60_000] ++ options)
        call = Keyword.put_new(call, :on_tool_call, &send(test, {:piece, &1}))
        messages = Keyword.get(fields, :messages, @hello)
        result = Model.chat(model, messages, call, &send(test, {:text, &1}))

        %{
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
        do: flunk("#{inspect(asked.result)} #{inspect(asked.record["refused"])}")

      defp error!(%{result: {:error, %ModelError{} = error}}), do: error
      defp error!(asked), do: flunk("#{inspect(asked.result)}")

      # The bodies of requests that were answered.
      defp requests(answers, options \\ [], call \\ []) do
        asked = ask(answers, options, call)
        answer!(asked)
        asked.record["requests"]
      end

      describe "answers" do
        test "are streamed, and their tokens counted" do
          counts = %{prompt: 100, completion: 7, cached: 60, written: 5}
          parts = %{text: ["Hel", "lo ", "wörld"]}

          for extra <- [[], [whole: true], [piece: 1], [unknown: true]] do
            asked = ask(Vendors.answer(parts, [usage: counts] ++ extra))

            assert {extra, answer!(asked)} ==
                     {extra,
                      %{
                        text: "Hello wörld",
                        tool_calls: [],
                        usage: %{
                          prompt_tokens: 100,
                          completion_tokens: 7,
                          cached_tokens: 60,
                          cache_write_tokens: Map.get(interface(), :written, 5)
                        },
                        finish_reason: :stop,
                        opaque: nil,
                        model: "model-of-the-server"
                      }}

            if extra == [whole: true],
              do: assert(Enum.join(asked.texts) == "Hello wörld"),
              else: assert({extra, asked.texts} == {extra, parts.text})
          end
        end

        test "have calls, whose arguments come in pieces" do
          calls = [
            %{call: %{id: "id1", name: "one", pieces: ["{\"a\"", ": \"é", "\"}"]}},
            %{call: %{id: "id2", name: "two", pieces: ["{", "\"b\": [1,", " 2]}"]}},
            %{call: %{id: "id3", name: "one", pieces: []}}
          ]

          for extra <- [[], [whole: true], [piece: 1]] ++ Map.get(interface(), :answers, []),
              text <- [[], ["Wait."]] do
            asked = ask(Vendors.answer(text ++ calls, extra))
            answer = answer!(asked)

            assert {answer.finish_reason, answer.text} == {:tool_calls, Enum.join(text)}

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

        test "end for the reasons of the vendor" do
          for extra <- [[], [whole: true]] do
            said = fn parts, fields -> answer!(ask(Vendors.answer(parts, fields ++ extra))) end

            assert %{text: "cut", finish_reason: :length} = said.("cut", finish: "length")

            assert %{text: "I cannot.", finish_reason: :filtered, tool_calls: []} =
                     said.(%{refusal: ["I ", "cannot."]}, finish: "filtered")

            assert %{text: "", finish_reason: :stop, tool_calls: []} = said.([], [])
          end
        end

        test "may have long lines, comments and bytes of their own" do
          long = String.duplicate("wörd ", 200_000)
          answer = Vendors.answer(%{text: ["a", long]}, insert: [[1, ": ping\n\n"], [2, ":\n"]])
          assert answer!(ask(answer)).text == "a" <> long
        end
      end

      describe "faults" do
        test "of an overloaded server are repeated before the first word" do
          failure = %{status: 529, error: Map.get(interface(), :overloaded, %{message: "oh"})}
          asked = ask([failure, Vendors.answer("fine")])
          assert {answer!(asked).text, length(asked.slept)} == {"fine", 1}
        end

        test "of the key return their kind at once" do
          for options <- [
                [script_key: @key, key: fn -> "sk-wrong" end],
                [script_key: @key]
              ] do
            error = error!(ask(Vendors.answer("a"), options))
            assert error.kind == :refused

            assert error |> Exception.message() |> String.replace(~r"http://\S+: ", "URL: ") ==
                     "the model's server refused the request (401): URL: wrong key"
          end

          assert answer!(ask(Vendors.answer("a"), script_key: @key, key: fn -> @key end)).text ==
                   "a"
        end

        test "in the stream are retried before the first word only" do
          {event, place} = interface().fault

          failing = fn place ->
            Vendors.answer(%{text: ["some", "more"]}, insert: [[place, event]])
          end

          asked = ask([failing.(0), Vendors.answer("fine")])
          assert {answer!(asked).text, length(asked.slept)} == {"fine", 1}

          error = error!(ask([failing.(place)]))
          assert {error.kind, error.text} == {:server, "some"}
          assert Exception.message(error) == "the model's server failed: Overloaded"
        end

        test "of bytes that are no text end the answer" do
          for {bytes, problem} <- [
                {"data: {\"a\": \"\xFF\xFE\"}\n\n", "one of its events is not JSON"},
                {"data: {\"a\": \n\n", "one of its events is not JSON"},
                {"data: [1]\n\n", "one of its events is not an object"},
                {"data: {}\n\n", "one of its events has no"}
              ] do
            text = for <<byte <- bytes>>, into: "", do: <<byte::utf8>>
            error = error!(ask(Vendors.answer("some", insert: [[0, text]])))
            assert error.kind == :bad_answer
            assert error.reason =~ problem
          end
        end

        # An answer with thoughts, text and a call.
        @parts [
          %{thought: "Let me see.", signature: "c2lnbmVk"},
          %{text: ["Grüße, ", "Ann"]},
          %{call: %{id: "id1", name: "one", pieces: ["{\"a\": ", "1}"]}}
        ]

        test "a stream that is cut off anywhere gives a part of the text, or is asked for" do
          whole = ask(Vendors.answer(@parts))
          %{tool_calls: [_]} = answer!(whole)
          [size] = whole.record["sent"]

          for cut <- Enum.uniq([0, 1, size - 1] ++ Enum.to_list(0..(size - 1)//17)) do
            asked = ask([Vendors.answer(@parts, cut: cut), Vendors.answer("again")])
            label = "cut after #{cut} of #{size}"
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

        # The events of a stream with thoughts, text and calls, as the server sends them.
        defp events do
          script = Vendors.start(@vendor, [Vendors.answer(@parts)])
          model = Vendors.model(script)

          request = [
            method: :post,
            url: model.url,
            headers:
              [{"content-type", "application/json"}, {"accept", "text/event-stream"}] ++
                model.__struct__.headers(model, nil, ""),
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
              Map.put(
                map,
                name,
                Enum.random([nil, 1, -1, 1.5, "x", "", [], %{}, true, [1], [%{}]])
              )

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

          {model, events} = events()

          for _ <- 1..1_000 do
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

                assert Enum.all?(
                         answer.tool_calls,
                         &(is_binary(&1.id) and is_binary(&1.arguments))
                       )

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
          error = error!(ask(Vendors.answer("some", cut: 1, silent: true), idle_timeout: 300))
          assert error.kind == :timeout
        end
      end

      describe "the server for tests" do
        test "refuses requests that the vendor refuses" do
          call = %{id: "id1", name: "one", arguments: "{}"}
          calling = %{role: :assistant, content: "", tool_calls: [call]}
          result = %{role: :tool, id: "id1", name: "one", content: "ok", error: false}

          for {messages, extra, reason} <- [
                {@hello, %{"zz_unknown" => 1}, ~r/zz_unknown/},
                {@hello ++ [calling, %{role: :user, content: "And?"}], %{}, ~r/call/},
                {@hello ++ [%{result | name: "two"}], %{}, ~r/call|result/},
                {@hello, interface().wrong, ~r/ould be a|nput should be|expected/}
              ] do
            asked = ask(Vendors.answer("a"), [messages: messages], extra: extra)
            assert [refused] = asked.record["refused"]
            assert refused =~ reason
            assert {error!(asked).kind, error!(asked).status} == {:refused, 400}
          end
        end
      end

      describe "requests" do
        test "have the options of a chat" do
          call = [temperature: 0.5, max_tokens: 50, stop: ["END"]]
          call = Keyword.drop(call, module().missing_options())
          [body] = requests(Vendors.answer("a"), [], call)
          fields = interface().fields
          assert Map.new(fields, fn {name, _} -> {name, body[name]} end) == fields
        end

        test "with an option that the interface does not have are refused" do
          for option <- module().missing_options() do
            value = Map.fetch!(%{stop: ["a"], grammar: "root ::= \"a\""}, option)
            asked = ask(Vendors.answer("a"), [], [{option, value}])
            assert asked.record["bodies"] == []

            assert Exception.message(error!(asked)) ==
                     "the model's server refused the request: the interface of " <>
                       "#{inspect(module())} has no #{inspect(option)}; leave the option out"
          end
        end

        test "have fields of their model and of the call, which are merged" do
          {own, call, merged} = interface().extra
          [body] = requests(Vendors.answer("a"), [extra: own], call)
          assert Map.new(merged, fn {name, _} -> {name, body[name]} end) == merged
        end

        test "have the tools of all built-in commands, as the vendor accepts them" do
          {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
          tools = catalog |> Skillbook.View.all() |> Tools.list([])
          assert length(tools) > 20
          {path, names} = interface().tool_choice

          for choice <- [nil, :auto, :none, :required] do
            call = [tools: tools] ++ if choice, do: [tool_choice: choice], else: []
            [body] = requests(Vendors.answer("a"), [], call)
            assert get_in(body, path) == names[choice]
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

          [body] = requests(Vendors.answer("a"), messages: messages)
          text = JSON.encode(body)
          # The arguments are objects, even if the model wrote none.
          assert text =~ "INVALID_JSON"
          # Errors are in the vendor's form where it has one.
          assert text =~ Map.get(interface(), :error, "")
        end

        test "have the schema of an object in the vendor's way" do
          schema = %{
            "type" => "object",
            "properties" => %{
              "city" => %{"type" => "string", "maxLength" => 80},
              "count" => %{"type" => "integer", "minimum" => 0}
            },
            "required" => ["city", "count"]
          }

          {path, minimum} = interface().schema

          for structured <- [:json_schema, :prompt] do
            script = Vendors.start(@vendor, [Vendors.answer(~s({"city": "Oslo", "count": 1}))])
            model = Vendors.model(script, structured: structured)

            assert {:ok, %{object: %{"city" => "Oslo", "count" => 1}}} =
                     Model.complete_object(model, [%{role: :user, content: "City?"}], schema)

            %{"requests" => [body], "refused" => []} = Vendors.record(script)
            sent = get_in(body, path)

            if structured == :prompt do
              assert sent == nil
            else
              assert %{"type" => "object", "additionalProperties" => false} = sent
              assert sent["required"] == ["city", "count"]
              assert sent["properties"]["count"]["minimum"] == minimum
            end
          end
        end
      end

      describe "the vendor's data" do
        @thinking [
          %{thought: "Let me see.", signature: "c2lnbmVk"},
          %{text: ["I look."]},
          %{call: %{id: "id1", name: "one", pieces: ["{}"]}}
        ]

        defp second_request(change, options \\ []) do
          script =
            Vendors.start(@vendor, [Vendors.answer(@thinking), Vendors.answer("ok")], options)

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
          # As a transcript in JSON has it.
          stored = fn reply ->
            {:ok, opaque} = reply.opaque |> JSON.encode() |> JSON.decode()
            %{reply | opaque: opaque}
          end

          {first, answer, record} = second_request(stored, keeps: true)

          if Map.get(interface(), :data, true),
            do: assert(first.opaque["vendor"] == @vendor),
            else: assert(first.opaque == nil)

          assert {:ok, %{text: "ok"}} = answer
          assert record["refused"] == []
        end

        test "of an answer whose text was changed, or of another model, stays here" do
          opaque = fn reply, name, value ->
            %{reply | opaque: Map.put(reply.opaque || %{}, name, value)}
          end

          for change <- [
                &%{&1 | content: "(removed)"},
                &%{&1 | content: ""},
                &opaque.(&1, "model", "other"),
                &opaque.(&1, "vendor", "other"),
                &opaque.(&1, "parts", [%{"text" => -1}]),
                &opaque.(&1, "parts", [%{"text" => 7}, %{"call" => 0}, %{"call" => 1}]),
                &%{&1 | opaque: %{"parts" => 1}},
                &%{&1 | opaque: nil}
              ] do
            {_first, answer, record} = second_request(change)
            assert {:ok, %{text: "ok"}} = answer
            [_, second] = record["bodies"]
            refute second =~ "Let me see"
            refute second =~ "c2lnbmVk"
          end
        end
      end
    end
  end
end
