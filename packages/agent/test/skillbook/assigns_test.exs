defmodule Skillbook.AssignsTest do
  # The assigns of a book, a profile and a call, in every way of running.
  use Skillbook.SkillsCase, async: true

  import ExUnit.CaptureLog

  alias Skillbook.{Agent, Executor, Model, Profile, Router, Scheduler, Tools, View}

  @moduletag :tmp_dir
  @secret "xyzzy"

  defmodule Show do
    @moduledoc false
    @behaviour Skillbook.Handler

    @impl true
    def execute(%{"crash" => "key"}, context), do: {:ok, context.assigns.missing}
    def execute(%{"crash" => "match"}, context), do: {:ok, match(context)}

    def execute(_flags, context) do
      send(context.assigns.test, {:assigns, context.assigns, context.call_assigns})
      {:ok, "shown"}
    end

    defp match(%{now: nil}), do: "never"
  end

  defp start(folder, options \\ []) do
    write(folder, %{
      "x/show.md" => page("x.show", handler: inspect(Show), schedule: "0 8 * * 1", run_as: "ann"),
      "x/change.md" => page("x.change", handler: inspect(Show), effects: "write"),
      "x/steps.md" => page("x.steps", [], "## Behavior\n\n```cmd\nx.show\n```\n"),
      "x/prose.md" => page("x.prose", [], "## Behavior\n\nShow what you have.\n")
    })

    book(
      Keyword.merge(
        [
          sources: [folder],
          store: ":memory:",
          watch: false,
          assigns: %{test: self(), a: :book, b: :book, c: :book},
          profiles: [
            [id: "ann", assigns: [b: :profile, c: :profile]],
            [id: "bob", writes: :ask, assigns: fn -> %{b: :profile, c: :profile} end]
          ]
        ],
        options
      )
    )
  end

  # A model that writes these lines once, then answers.
  defp model(lines) do
    Model.Function.new(fn messages, _options ->
      if Enum.any?(messages, &(&1.role == :assistant)),
        do: "Done.",
        else: "```cmd\n#{lines}\n```"
    end)
  end

  test "reach the handler in every way of running", %{tmp_dir: folder} do
    at = ~U[2026-03-02 08:00:00Z]
    clock = [clock: fn -> DateTime.add(at, 5) end]
    book = start(folder, agent: [model: model("x.show")], schedules: clock)
    call = [profile: "ann", assigns: %{c: :call}]
    reply = "```cmd\nx.show\n```"
    dispatch = "agent.dispatch --mission Do. --skills x.show"

    nested =
      Model.Function.new(fn messages, _options ->
        text = Enum.map_join(messages, & &1.content)

        cond do
          text =~ "one mission" and text =~ "shown" -> "Shown."
          text =~ "one mission" -> reply
          text =~ "It ran" -> "Done."
          true -> "```cmd\n#{dispatch}\n```"
        end
      end)

    allow = fn request ->
      send(request.context.assigns.test, {:asked, request.context.assigns})
      :allow
    end

    bob = Keyword.put(call, :profile, "bob")

    for {way, run} <- [
          run: fn -> Skillbook.run(book, reply, call) end,
          view: fn -> Skillbook.run(Skillbook.view(book, "ann"), reply, tl(call)) end,
          keywords: fn -> Skillbook.run(book, reply, profile: "ann", assigns: [c: :call]) end,
          tool: fn -> Tools.call(book, %{"name" => "x__show"}, call) end,
          workflow: fn -> Skillbook.run(book, "```cmd\nx.steps\n```", call) end,
          workflow_run: fn -> Skillbook.run(book, "```cmd\nworkflow.run x.steps\n```", call) end,
          carry_out: fn -> Skillbook.carry_out(book, "x.show", call) end,
          prose: fn -> Skillbook.carry_out(book, "x.prose", call) end,
          agent: fn -> Agent.run(book, "Go.", call) end,
          agent_commands: fn ->
            Agent.run(book, "Go.", profile: "ann", commands: [assigns: %{c: :call}])
          end,
          dispatch: fn -> Agent.run(book, "Go.", [model: nested] ++ call) end,
          asked: fn -> Skillbook.run(book, "```cmd\nx.change\n```", [ask: allow] ++ bob) end,
          asked_agent: fn ->
            Agent.run(book, "Go.", [ask: allow, model: model("x.change")] ++ bob)
          end,
          executor: fn ->
            view = Skillbook.view(book, "ann")
            {:ok, routed} = Router.route(view, "x.show")
            Executor.execute(routed, Executor.context(view, routed, assigns: %{c: :call}))
          end,
          schedule: fn ->
            :ok = Scheduler.fire(book, "x.show", at, at)
            Scheduler.await(book)
          end
        ] do
      answer = run.()

      own =
        if way == :schedule,
          do: %{scheduled: %{at: at, node: to_string(node())}},
          else: %{c: :call}

      all = Map.merge(%{test: self(), a: :book, b: :profile, c: :profile}, own)
      assert_receive {:assigns, shown, ^own}, 60_000, "#{way}: #{inspect(answer)}"
      assert {way, shown} == {way, all}
      if way in [:asked, :asked_agent], do: assert_receive({:asked, ^all})
      refute_received {:assigns, _, _}
    end
  end

  test "reach the sections of the prompt", %{tmp_dir: folder} do
    text = fn context -> inspect(Map.delete(context.assigns, :test)) end
    book = start(folder, agent: [model: model("x.show")], sections: [{"Assigns", text}])
    shown = inspect(%{a: :book, b: :profile, c: :call})
    call = [profile: "ann", assigns: %{c: :call}]
    assert Skillbook.Prompt.Sections.text(book, call) =~ shown
    {:ok, result} = Agent.run(book, "Go.", call)
    assert Enum.any?(result.transcript.messages, &(&1.kind == :context and &1.content =~ shown))
  end

  test "are those of the book for other profiles", %{tmp_dir: folder} do
    book = start(folder)

    for {first, options, all} <- [
          {View.all(book), [], %{a: :book, b: :book, c: :book}},
          {book, [profile: Profile.new!(id: "eve")], %{a: :book, b: :book, c: :book}},
          {book, [profile: Profile.new!(id: "eve", assigns: %{b: 1})],
           %{a: :book, b: 1, c: :book}},
          {book, [profile: "ann"], %{a: :book, b: :profile, c: :profile}}
        ] do
      Skillbook.run(first, "```cmd\nx.show\n```", options)
      assert_receive {:assigns, shown, %{}}
      assert shown == Map.put(all, :test, self())
    end
  end

  test "are checked", %{tmp_dir: folder} do
    book = start(folder)
    {:error, error} = Skillbook.start_link(name: :assigned, assigns: "text")

    assert Exception.message(error) ==
             "expected a map or a function without arguments as the option :assigns of a " <>
               ~s(book, got: "text")

    {:error, error} = Profile.new(id: "a", assigns: [1])

    assert Exception.message(error) ==
             "expected a map or a function without arguments as the option :assigns of a " <>
               "profile, got: [1]"

    message = "expected a map or a keyword list as the option :assigns of run, got: 1"

    assert_raise Skillbook.OptionError, message, fn ->
      Skillbook.run(book, "", profile: "ann", assigns: 1)
    end

    assert {:error, %{option: :assigns}} =
             Skillbook.start_link(name: :assigned, roles: [[id: "r", assigns: %{}]])
  end

  describe "secret assigns" do
    test "are in no log, no report and no inspected value", %{tmp_dir: folder} do
      Process.flag(:trap_exit, true)
      secret = %{token: @secret}
      options = [assigns: secret, profiles: [[id: "ann", assigns: secret]]]

      log =
        capture_log(fn ->
          book = start(folder, options)

          for crash <- ["key", "match"] do
            line = "```cmd\nx.show --crash #{crash}\n```"
            report = Skillbook.run(book, line, profile: "ann", assigns: secret)
            refute to_string(report) =~ @secret
          end

          view = Skillbook.view(book, "ann")
          {:ok, routed} = Router.route(view, "x.show")
          context = Executor.context(view, routed, assigns: secret)
          assert inspect(context) =~ "assigns: [:token]"
          texts = [context, view, view.profile, Skillbook.Book.fetch!(book)]
          for value <- texts, do: refute(inspect(value, limit: :infinity) =~ @secret)

          # The supervisor reports its children with their arguments.
          child = {Skillbook, [name: :assigned, sources: ["no/such/folder"]] ++ options}
          {:error, reason} = Supervisor.start_link([child], strategy: :one_for_one)
          refute inspect(reason, limit: :infinity) =~ @secret
          refute Exception.format_exit(reason) =~ @secret

          crashing = Process.whereis(book)
          Process.exit(crashing, :kill)
          Process.sleep(50)
        end)

      assert log =~ "key :missing not found in the assigns, whose keys are [:token]"
      refute log =~ @secret
    end

    test "do not count as rights", %{tmp_dir: folder} do
      book = start(folder, agent: [model: model("x.show")])
      one = Profile.new!(id: "ann", assigns: %{test: self(), at: 1})
      two = Profile.new!(id: "ann", assigns: %{test: self(), at: 2})
      assert Profile.same?(one, two)
      refute Profile.same?(one, %{two | writes: :deny})
      {:ok, first} = Agent.run(book, "Go.", profile: one)
      {:ok, next} = Agent.run(book, "Go.", profile: two, transcript: first.transcript)
      assert List.starts_with?(next.transcript.messages, first.transcript.messages)
      refute Skillbook.Transcript.to_json(next.transcript) =~ "profile, c"
    end

    test "are not handed to what another profile has written", %{tmp_dir: folder} do
      book = start(folder)
      fields = %{title: "Tea", description: "d", content: "c", schedule: "@daily"}
      {:ok, _} = Skillbook.Store.create(book, fields, profile: "ann")
      job = fn -> Skillbook.Scheduler.Job.fetch(Skillbook.Book.fetch!(book), "tea", 1) end
      assert {:ok, %{profile: %{id: "ann", assigns: %{b: :profile}}}} = job.()
      {:ok, _} = Skillbook.Store.update(book, "tea", %{description: "e"}, profile: "bob")
      assert {:ok, %{profile: %{id: "ann ∧ bob", assigns: assigns}}} = job.()
      assert assigns == %{}
    end
  end
end
