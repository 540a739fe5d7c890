defmodule Skillbook.HookDocTest do
  use ExUnit.Case, async: true

  doctest Skillbook.Hook
end

defmodule Skillbook.HookTest do
  use Skillbook.SkillsCase, async: true

  import ExUnit.CaptureLog

  alias Skillbook.{Agent, Model, OptionError, PolicyError}

  @moduletag :tmp_dir
  @failed "A check of the application failed, so this was not done. Tell the user."
  @unanswered "I cannot answer: a check of the application failed. Please try again later."
  @withheld "(A check of the application failed, so this text is withheld.)"

  # Answers with the function of a callback in its options, or tells the test and goes on.
  defmodule Any do
    use Skillbook.Hook

    for callback <-
          [:before_turn, :after_turn, :before_model, :after_model] ++
            [:before_command, :after_command] do
      @impl true
      def unquote(callback)(event, options) do
        if options[:test], do: send(options[:test], {options[:name], unquote(callback), event})
        if fun = options[unquote(callback)], do: fun.(event), else: :cont
      end
    end
  end

  defmodule Commands do
    use Skillbook.Hook

    @impl true
    def before_command(_event, _options), do: {:refuse, "not on Sundays"}
  end

  setup %{tmp_dir: folder} do
    flags =
      "## Usage\n\nx.pay --amount <n>\n\n## Flags\n\n--amount <number>  How much (required)\n"

    write(folder, %{
      "x/pay.md" => page("x.pay", handler("Text"), flags),
      "x/list.md" => page("x.list", handler("Text")),
      "x/fail.md" => page("x.fail", handler("ErrorText")),
      "x/steps.md" => page("x.steps", [], "## Behavior\n\n```cmd\nx.list\n```\n")
    })

    :ok
  end

  defp start(folder, hooks, options \\ []) do
    book([sources: [folder], builtins: false, watch: false, hooks: hooks] ++ options)
  end

  defp script(replies) do
    test = self()
    {:ok, left} = Elixir.Agent.start_link(fn -> replies end)

    Model.Function.new(fn messages, _options ->
      send(test, {:asked, messages})
      Elixir.Agent.get_and_update(left, fn [reply | more] -> {reply, more} end)
    end)
  end

  defp run(book, replies, options \\ []) do
    test = self()
    options = [model: script(replies), on_event: &send(test, {:event, &1})] ++ options
    {:ok, result} = Agent.run(book, "Hello", options)
    result
  end

  defp cmd(line), do: "```cmd\n#{line}\n```"

  defp content(book, line),
    do: Skillbook.run(book, cmd(line)) |> Map.fetch!(:results) |> hd() |> Map.fetch!(:content)

  test "run in order before, and in the opposite order after", %{tmp_dir: folder} do
    hooks = for name <- [:one, :two], do: {Any, test: self(), name: name}
    profiles = [[id: "default", hooks: [{Any, test: self(), name: :own}]]]
    book = start(folder, hooks, profiles: profiles)
    assert run(book, [cmd("x.list"), "Done."]).status == :done

    order = fn callback ->
      for {name, ^callback, _} <- elem(Process.info(self(), :messages), 1), do: name
    end

    for callback <- [:before_turn, :before_command],
        do: assert(order.(callback) == [:one, :two, :own])

    assert order.(:before_model) == [:one, :two, :own, :one, :two, :own]

    for callback <- [:after_turn, :after_command],
        do: assert(order.(callback) == [:own, :two, :one])

    assert Enum.take(order.(:after_model), 3) == [:own, :two, :one]

    assert_received {:one, :before_turn, %{input: "Hello", book: ^book, depth: 0, turn: 0}}
    assert_received {:one, :before_model, %{turn: 1, messages: [_, %{content: "Hello"}]}}
    assert_received {:one, :before_command, %{entry: %{name: "x.list"}, flags: flags}}
    assert flags == %{}
    assert_received {:one, :after_turn, %{result: %{status: :done}, text: "Done."}}
  end

  test "a turn is changed and refused", %{tmp_dir: folder} do
    louder = &{:cont, String.upcase(&1.input)}

    book =
      start(folder, [{Any, before_turn: louder}, {Any, before_turn: &{:cont, &1.input <> "!"}}])

    result = run(book, ["Hi."])
    assert %{kind: :input, content: "HELLO!"} = Enum.at(result.transcript.messages, -2)

    book = start(folder, [{Any, before_turn: fn _ -> {:refuse, "No."} end}])
    assert %{status: :refused, text: "No.", turns: 0, transcript: %{messages: []}} = run(book, [])

    book = start(folder, [{Any, after_turn: &{:cont, &1.text <> " Bye."}}])
    assert run(book, ["Hi."]).text == "Hi. Bye."
  end

  test "a call of the model is changed and refused", %{tmp_dir: folder} do
    hide = fn event ->
      {:cont, Enum.map(event.messages, &%{&1 | content: String.replace(&1.content, "ello", "i")})}
    end

    book = start(folder, [{Any, before_model: hide}])
    result = run(book, ["Hi."])
    assert_received {:asked, [_, %{content: "Hi"}]}
    assert Enum.at(result.transcript.messages, -2).content == "Hello"

    stop = fn event -> if event.turn > 1, do: {:refuse, "Enough."}, else: :cont end
    book = start(folder, [{Any, before_model: stop}])
    assert %{status: :refused, text: "Enough.", turns: 1} = run(book, [cmd("x.list")])
  end

  test "a reply is checked before anybody reads it, and before its commands run", context do
    hide = &{:cont, String.replace(&1.text, "x.pay --amount 1", "x.list")}
    book = start(context.tmp_dir, [{Any, after_model: hide}])
    reply = "Look:\n\n" <> cmd("x.pay --amount 1") <> "\n\nSo x.pay --amount 1."
    result = run(book, [reply, "Done."])
    assert Enum.at(result.transcript.messages, 2).content =~ "So x.list."
    events = for {:event, event} <- elem(Process.info(self(), :messages), 1), do: event
    assert for({:command, line} <- events, do: line) == ["x.list"]
    refute inspect(for {:text, text} <- events, do: text) =~ "pay"
    assert for({:text, text} <- events, do: text) |> Enum.join() =~ "So x.list."
  end

  test "a command is changed, refused and asked about", %{tmp_dir: folder} do
    for {answer, expected} <- [
          {:cont, ~s(flags: %{"amount" => 7})},
          {{:cont, %{"amount" => 8}}, ~s(flags: %{"amount" => 8})},
          {{:cont, %{"amount" => "9"}}, ~s(flags: %{"amount" => 9})},
          {{:cont, %{"amount" => "much"}}, "--amount"},
          {{:cont, %{}}, "--amount"},
          {{:refuse, "too late"}, "`x.pay` was not run: too late"}
        ] do
      book = start(folder, [{Any, before_command: fn _ -> answer end}])
      assert content(book, "x.pay --amount 7") =~ expected
    end

    test = self()

    ask = fn request ->
      send(test, {:request, request.command.flags, request.approval})
      :deny
    end

    hooks = [{Any, before_command: fn _ -> :ask end}, {Any, before_command: fn _ -> :cont end}]
    book = start(folder, hooks, ask: ask)
    assert content(book, "x.list") =~ "`x.list` was not run: it needs an approval, and the user"
    assert_received {:request, %{}, true}
    assert content(book, "x.steps") =~ "not run"

    # A profile that changes nothing stays so.
    profiles = [[id: "default", writes: :deny]]
    book = start(folder, [{Any, before_command: fn _ -> :cont end}], profiles: profiles)
    assert content(book, "x.pay --amount 7") =~ "only commands that read may run here"
  end

  test "a question of a hook may wait, and is checked again", %{tmp_dir: folder} do
    most = :counters.new(1, [])
    :counters.put(most, 1, 10)

    limit = fn %{flags: flags} ->
      cond do
        flags["amount"] > :counters.get(most, 1) -> {:refuse, "too much"}
        flags["amount"] > 5 -> :ask
        true -> :cont
      end
    end

    options = [store: ":memory:", ask: fn _request -> :pending end]
    book = start(folder, [{Any, before_command: limit}], options)

    waits = fn ->
      Skillbook.run(book, cmd("x.pay --amount 7")).results |> hd() |> Map.get(:data)
    end

    assert content(book, "x.pay --amount 5") =~ "flags"
    first = waits.()
    assert {:ok, %{status: :done}} = Skillbook.approve(book, first.ref, by: "Bob")
    second = waits.()
    :counters.put(most, 1, 6)
    assert {:error, %PolicyError{kind: :hook}} = Skillbook.approve(book, second.ref, by: "Bob")
    assert {:ok, [%{ref: ref}]} = Skillbook.approvals(book)
    assert ref == second.ref
  end

  test "a result and an error are changed", %{tmp_dir: folder} do
    book = start(folder, [{Any, after_command: &{:cont, "Seen: " <> &1.text}}])
    assert content(book, "x.list") == "Seen: flags: %{}"

    assert [%{status: :error, content: "Seen: " <> _}] =
             Skillbook.run(book, cmd("x.fail")).results

    assert [%{content: text}] = Skillbook.run(book, cmd("x.steps")).results
    assert text =~ "Seen: flags"
  end

  test "a hook that fails refuses, unless it is to be ignored", %{tmp_dir: folder} do
    for {failure, told} <- [
          {fn _ -> raise "secret" end, "crashed: RuntimeError"},
          {fn _ -> exit(:secret) end, "crashed: it exited"},
          {fn _ -> Process.sleep(:infinity) end, "took longer than its time limit"},
          {fn _ -> {:secret, "secret"} end, "returned {:secret, a text}"},
          {fn _ -> {:cont, :secret} end, "returned {:cont, :secret}"}
        ],
        how <- [:refuse, :ignore] do
      options = [timeout: 100, on_error: how]

      log =
        capture_log(fn ->
          for callback <-
                [:before_command, :after_command, :before_turn, :before_model] ++
                  [:after_model, :after_turn] do
            book = start(folder, [{Any, [{callback, failure} | options]}])

            text =
              if callback in [:before_command, :after_command],
                do: content(book, "x.list"),
                else: run(book, ["Hi."]).text

            expected =
              case {how, callback} do
                {:ignore, :before_command} -> "flags: %{}"
                {:ignore, :after_command} -> "flags: %{}"
                {:ignore, _} -> "Hi."
                {_, :before_command} -> "`x.list` was not run: " <> @failed
                {_, callback} when callback in [:before_turn, :before_model] -> @unanswered
                _ -> @withheld
              end

            assert {callback, how, text} == {callback, how, expected}
          end
        end)

      assert log =~ "the hook Skillbook.HookTest.Any.before_turn/2 #{told}"
      refute log =~ ~s("secret")
    end
  end

  test "of a profile stay with it", %{tmp_dir: folder} do
    book = start(folder, [], profiles: [[id: "ann", hooks: [Commands]], [id: "default"]])
    assert content(book, "x.list") == "flags: %{}"
    view = Skillbook.view(book, "ann")
    refused = "`x.list` was not run: not on Sundays"
    assert content(view, "x.list") == refused
    narrow = Skillbook.Profile.narrow(view.profile, ["x.*"])
    assert content(Skillbook.view(book, narrow), "x.list") == refused
    {:ok, both} = Skillbook.Profile.meet(Skillbook.view(book).profile, view.profile)
    assert both.hooks == [Commands]
    assert %PolicyError{kind: :hook} = hd(Skillbook.run(view, cmd("x.list")).results).error
  end

  test "are modules with a callback" do
    wrong = [Any, [String], [:nothing], [{Any, timeout: 0}], [{Any, on_error: :stop}], ["a"]]

    for hooks <- wrong do
      assert {:error, %OptionError{} = error} =
               Skillbook.start_link(name: :hooks_options, hooks: hooks)

      assert Exception.message(error) =~
               "expected a list of modules with callbacks of Skillbook.Hook as the option " <>
                 ":hooks of a book, got: "

      assert {:error, %OptionError{option: :hooks}} =
               Skillbook.Profile.new(id: "ann", hooks: hooks)
    end
  end
end
