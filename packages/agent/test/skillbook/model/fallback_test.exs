defmodule Skillbook.Model.FallbackTest do
  use ExUnit.Case, async: true

  alias Skillbook.Model.{Fallback, Function}
  alias Skillbook.Support.JSON
  alias Skillbook.Test.Vendors
  alias Skillbook.{Model, ModelError}

  doctest Skillbook.Model.Fallback

  @hello [%{role: :user, content: "Hello"}]

  # A model that tells the test that it was asked, and answers with what the test has set.
  defp model(name, answer) do
    test = self()
    {:ok, agent} = Agent.start_link(fn -> answer end)

    function =
      Function.new(fn _messages, options, on_text ->
        send(test, {:asked, name, options[:timeout]})
        Agent.get(agent, & &1) |> said(on_text)
      end)

    {function, &Agent.update(agent, fn _ -> &1 end)}
  end

  defp said({text, error}, on_text) when is_binary(text) do
    on_text.(text)
    {:error, error}
  end

  defp said(answer, _on_text), do: answer

  defp error(kind, fields \\ []),
    do: {:error, struct!(ModelError, [kind: kind, reason: "oh"] ++ fields)}

  defp ask(model, options \\ []) do
    test = self()
    options = Keyword.put(options, :on_retry, &send(test, {:retry, &1}))
    Model.chat(model, @hello, options, &send(test, {:text, &1}))
  end

  defp asked do
    receive do
      {:asked, name, _timeout} -> [name | asked()]
    after
      0 -> []
    end
  end

  test "the next model is asked after some failures, and not after others" do
    {:error, spoken} = error(:server, text: "some")
    {:error, silent} = error(:server)

    for {failure, next?} <- [
          {error(:connection), true},
          {error(:timeout), true},
          {error(:rate_limited, status: 429, retry_after: 90_000), true},
          {error(:server, status: 529), true},
          {error(:cut_off), true},
          {error(:cut_off, text: "some"), false},
          {{:error, spoken}, false},
          # Text that was passed on, even if the error does not have it.
          {{"some", silent}, false},
          {error(:key), false},
          {error(:refused, status: 401), false},
          {error(:bad_answer), false}
        ] do
      {one, _} = model(:one, failure)
      {two, _} = model(:two, "two")
      result = ask(Fallback.new!([one, two]))

      if next? do
        assert {^failure, {:ok, %{text: "two"}}} = {failure, result}
        assert_receive {:retry, %{attempt: 2, delay: 0, error: %ModelError{}}}
        assert asked() == [:one, :two]
      else
        assert {^failure, {:error, %ModelError{}}} = {failure, result}
        assert asked() == [:one]
      end
    end
  end

  test "a model that failed is asked last for a while" do
    {:ok, time} = Agent.start_link(fn -> -5_000 end)
    clock = fn -> Agent.get(time, & &1) end
    pass = fn milliseconds -> Agent.update(time, &(&1 + milliseconds)) end
    {one, set_one} = model(:one, error(:server))
    {two, set_two} = model(:two, "two")
    {three, _} = model(:three, "three")
    model = Fallback.new!([one, two, three], pause: 1_000, clock: clock)
    other_process = fn -> Task.await(Task.async(fn -> ask(model) end), :infinity) end

    assert {:ok, %{text: "two"}} = ask(model)
    assert asked() == [:one, :two]
    set_one.("one")
    assert {:ok, %{text: "two"}} = other_process.()
    assert asked() == [:two]
    # A server that asks for more time gets it.
    set_two.(error(:rate_limited, retry_after: 5_000))
    assert {:ok, %{text: "three"}} = ask(model)
    assert asked() == [:two, :three]
    pass.(999)
    assert {:ok, %{text: "three"}} = ask(model)
    pass.(1)
    assert {:ok, %{text: "one"}} = ask(model)
    pass.(3_999)
    set_one.(error(:connection))
    assert {:ok, %{text: "three"}} = ask(model)
    assert asked() == [:three, :one, :one, :three]
    pass.(1)
    set_two.("two")
    assert {:ok, %{text: "two"}} = ask(model)
    assert asked() == [:two]
  end

  test "the last error is returned, and all models are asked again the next time" do
    {one, set_one} = model(:one, error(:server, status: 500))
    {two, _} = model(:two, error(:server, status: 503))
    model = Fallback.new!([one, two])
    assert {:error, %{status: 503}} = ask(model)
    set_one.("fine")
    assert {:ok, %{text: "fine"}} = ask(model)
    assert asked() == [:one, :two, :one]
  end

  test "the time limit is one for all models" do
    {:ok, time} = Agent.start_link(fn -> 0 end)
    clock = fn -> Agent.get(time, & &1) end
    test = self()

    slow = fn name ->
      Function.new(fn _messages, options ->
        send(test, {:asked, name, options[:timeout]})
        Agent.update(time, &(&1 + 400))
        error(:timeout)
      end)
    end

    models = Enum.map([:one, :two, :three, :four], slow)
    model = Fallback.new!(models, clock: clock)
    assert {:error, %{kind: :timeout}} = ask(model, timeout: 1_000)
    assert_receive {:asked, :one, 1_000}
    assert_receive {:asked, :two, 600}
    assert_receive {:asked, :three, 200}
    refute_received {:asked, :four, _}
  end

  test "servers of different vendors take turns in a conversation with calls" do
    thinking = [
      %{thought: "Let me see.", signature: "c2lnbmVk"},
      %{call: %{id: "id1", name: "one", pieces: ["{}"]}}
    ]

    overloaded = %{status: 503, error: %{message: "Overloaded"}}

    for first <- Vendors.all(), second <- Vendors.all(), first != second do
      one = Vendors.start(first, [Vendors.answer(thinking), overloaded, Vendors.answer("back")])
      two = Vendors.start(second, [Vendors.answer("other")])
      {:ok, time} = Agent.start_link(fn -> 0 end)
      models = [Vendors.model(one, retries: 0, model: "one"), Vendors.model(two, model: "two")]
      model = Fallback.new!(models, pause: 1_000, clock: fn -> Agent.get(time, & &1) end)
      {:ok, answer} = ask(model)
      assert {first, answer.finish_reason} == {first, :tool_calls}

      reply = %{
        role: :assistant,
        content: answer.text,
        tool_calls: answer.tool_calls,
        opaque: answer.opaque
      }

      result = %{role: :tool, id: "id1", name: "one", content: "found", error: false}
      messages = @hello ++ [reply, result]
      {:ok, answer} = Model.chat(model, messages, [], fn _ -> :ok end)
      assert {answer.text, answer.model} == {"other", "model-of-the-server"}
      # The thoughts stay with their vendor.
      assert %{"refused" => [], "bodies" => [body]} = Vendors.record(two)
      refute body =~ "Let me see"

      Agent.update(time, fn _ -> 1_000 end)
      reply = %{role: :assistant, content: answer.text, opaque: answer.opaque}
      messages = messages ++ [reply, %{role: :user, content: "And?"}]
      assert {:ok, %{text: "back"}} = Model.chat(model, messages, [], fn _ -> :ok end)
      assert %{"refused" => [], "bodies" => [_, _, body]} = Vendors.record(one)
      if first != "openai", do: assert({first, body} == {first, body} and body =~ "c2lnbmVk")
    end
  end

  @tag :tmp_dir
  test "a run with calls goes on with the next vendor, and back", %{tmp_dir: folder} do
    page = "---\nname: tea\ndescription: Tea\n---\nSteep it."
    File.write!(Path.join(folder, "tea.md"), page)
    options = [sources: [folder], builtins: false, watch: false, name: :skillbook_fallback_run]
    start_supervised!({Skillbook, options})
    thought = %{thought: "Let me see.", signature: "c2lnbmVk"}
    call = {"get_skill", ["{\"pa", "th\": \"tea\"}"]}
    overloaded = %{status: 503, error: %{message: "Overloaded"}}

    for first <- Vendors.all(), second <- Vendors.all(), first != second do
      # A call of the first, whose next turn the second takes over with two calls and its answer.
      answers = [Vendors.answer([thought, "I look.", call]), overloaded, Vendors.answer("Back.")]
      one = Vendors.start(first, answers)

      two =
        Vendors.start(second, [
          Vendors.answer(["Again.", call, {"tea", "{}"}]),
          Vendors.answer("Steeped.")
        ])

      {:ok, time} = Agent.start_link(fn -> 0 end)
      models = [Vendors.model(one, retries: 0, model: "one"), Vendors.model(two, model: "two")]
      model = Fallback.new!(models, pause: 1_000, clock: fn -> Agent.get(time, & &1) end)
      test = self()

      run = fn input, transcript ->
        options = [model: model, transcript: transcript, protocol: :tools]
        options = [on_event: &send(test, {:event, &1})] ++ options
        {:ok, result} = Skillbook.Agent.run(:skillbook_fallback_run, input, options)
        result
      end

      result = run.("How do I make tea?", nil)
      assert {first, second, result.status, result.text} == {first, second, :done, "Steeped."}

      assert Enum.map(result.transcript.messages, & &1.kind) ==
               ~w(prompt input reply result reply result result reply)a

      assert_receive {:event, {:retry, %{delay: 0}}}
      Agent.update(time, fn _ -> 1_000 end)
      assert run.("And now?", result.transcript).text == "Back."

      for {script, count} <- [{one, 3}, {two, 2}] do
        record = Vendors.record(script)
        assert {first, second, record["refused"]} == {first, second, []}
        assert length(record["requests"]) == count
      end

      # The thoughts stay with their vendor, which gets them back.
      refute Enum.any?(Vendors.record(two)["bodies"], &(&1 =~ "c2lnbmVk"))
      last = List.last(Vendors.record(one)["bodies"])
      if first != "openai", do: assert({first, last =~ "c2lnbmVk"} == {first, true})
    end
  end

  test "wrong options are errors" do
    {one, _} = model(:one, "a")

    for {models, options, message} <- [
          {[], [], "expected a list of models as the option :models of a fallback, got: []"},
          {[1], [], "expected a list of models as the option :models of a fallback, got: [1]"},
          {[one], [pause: 0],
           "expected a number of milliseconds as the option :pause of a fallback, got: 0"},
          {[one], [puase: 1],
           "unknown option :puase for a fallback, did you mean :pause? The options are " <>
             ":models, :pause, :clock"}
        ] do
      assert {:error, error} = Fallback.new(models, options)
      assert Exception.message(error) == message
      assert_raise Skillbook.OptionError, message, fn -> Fallback.new!(models, options) end
    end
  end

  test "it takes tools if all of its models do, and shows no keys" do
    {function, _} = model(:one, "a")
    claude = Model.Anthropic.new!(model: "m", key: {:env, "SECRET_NAME"})
    assert Model.tools?(Fallback.new!([claude, claude]))
    refute Model.tools?(Fallback.new!([claude, function]))
    refute inspect(Fallback.new!([claude])) =~ "SECRET_NAME"
    assert {:ok, _} = JSON.decode(JSON.encode(%{a: inspect(Fallback.new!([claude]))}))
  end
end
