defmodule Skillbook.Reply.PipelineTest do
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Reply.Pipeline
  alias Skillbook.{Book, Entry, HandlerError, OptionError, SQL, View}

  @moduletag :tmp_dir

  test "handlers get the author of the command, by default a model", %{
    tmp_dir: folder
  } do
    write(folder, %{"x/call.md" => page("x.call", handler("Call"))})
    view = view(folder)
    assigns = %{call: fn _, context -> {:ok, "#{context.by}"} end}
    rows = [{[], "agent"}, {[by: :agent], "agent"}, {[by: :user], "user"}]

    for {options, by} <- rows do
      options = [assigns: assigns] ++ options
      assert [%{content: ^by}] = Skillbook.run(view, "```cmd\nx.call\n```", options).results
      assert {%{content: ^by}, _} = Skillbook.Tools.call(view, %{"name" => "x.call"}, options)
    end

    message = "expected :agent or :user as the option :by of run, got: :import"
    assert_raise Skillbook.OptionError, message, fn -> Skillbook.run(view, "", by: :import) end
  end

  test "on_error decides whether commands run after a failed one", %{tmp_dir: folder} do
    write(folder, %{
      "x/run.md" => page("x.run", handler("Text")),
      "x/fail.md" => page("x.fail", handler("ErrorText")),
      "x/say.md" => page("x.say", handler("ErrorResult"))
    })

    view = view(folder)

    rows = [
      {["x.run", "x.run"], [:ok, :ok], [:ok, :ok]},
      {["x.fail", "x.run", "x.run"], [:error, :ok, :ok], [:error, :skipped, :skipped]},
      {["x.say", "x.run"], [:error, :ok], [:error, :skipped]},
      {["x.run", "x.nothing", "x.run"], [:ok, :error, :ok], [:ok, :error, :skipped]},
      {["x.run '", "x.run"], [:error, :ok], [:error, :skipped]},
      {["x.run --help", "x.run"], [:help, :ok], [:help, :ok]},
      {["x.run", "x.fail"], [:ok, :error], [:ok, :error]},
      {[], [], []}
    ]

    for {lines, continued, halted} <- rows do
      statuses = fn options ->
        view |> Pipeline.commands(lines, options) |> Enum.map(& &1.status)
      end

      assert {lines, statuses.([])} == {lines, continued}
      assert {lines, statuses.(on_error: :continue)} == {lines, continued}
      assert {lines, statuses.(on_error: :halt)} == {lines, halted}
    end

    report = Skillbook.run(view, "```cmd\nx.fail\nx.run --a b\n```", on_error: :halt)

    assert to_string(report) ==
             "[1] x.fail\nerror\n  no room on Monday\n\n[2] x.run --a b\nskipped\n" <>
               "  Not run, because a command before it failed. If it is still wanted, write " <>
               "it again."
  end

  @tag :capture_log
  test "reports earlier results if the book stops in the middle of a reply", %{tmp_dir: folder} do
    write(folder, %{
      "x/tell.md" => page("x.tell", handler("Tell")),
      "x/page.md" => page("x.page", [], String.duplicate("long ", 10_000))
    })

    book = book(sources: [folder], max_running: 1, drain: 0)
    view = Skillbook.view(book)
    test = self()
    lines = ["x.tell", "x.tell", "get_skill: x.page"]
    task = Task.async(fn -> Pipeline.commands(view, lines, assigns: %{tell: test}) end)
    assert_receive {:handler, _, _}, 60_000
    stop_supervised!(book)
    assert [killed, late, long] = Task.await(task, :infinity)
    assert %{error: %Skillbook.HandlerError{kind: :interrupted}} = killed

    assert late.error.kind == :stopped

    assert late.content ==
             "`x.tell` was not run: the skills have just been shut down. Tell the user."

    # Reading goes on with the view, whether or not there is still somebody to keep the rest.
    assert %{status: :help, metadata: %{cut: %{to: 30_000}}} = long
  end

  test "errors of the caller's callback are raised", %{tmp_dir: folder} do
    write(folder, %{"x/run.md" => page("x.run", handler("Text"))})
    view = Skillbook.view(book(sources: [folder]))
    agent = fn -> raise ArgumentError, "oops" end
    assert_raise ArgumentError, "oops", fn -> Pipeline.commands(view, ["x.run"], agent: agent) end
  end

  @tag :capture_log
  test "reports an error while the database restarts", %{tmp_dir: folder} do
    write(folder, %{"x/run.md" => page("x.run", handler("Text"))})
    book = book(sources: [folder], store: ":memory:")
    view = Skillbook.view(book)
    {SQL.SQLite, options} = Book.fetch!(book).store
    name = options[:name]
    handle = SQL.SQLite.handle(name)
    :persistent_term.erase({SQL.SQLite, name})
    assert [%{status: :error, error: error}] = Pipeline.commands(view, ["x.run"])
    assert %HandlerError{kind: :database, name: "x.run", reason: %ArgumentError{}} = error
    :persistent_term.put({SQL.SQLite, name}, handle)
    assert [%{status: :ok}] = Pipeline.commands(view, ["x.run"])
  end

  test "commands/3 takes the options of run/3 except :unclosed", %{tmp_dir: folder} do
    view = view(folder)

    for {options, message} <- [
          {[on_error: :stop],
           "expected :continue or :halt as the option :on_error of run, got: :stop"},
          {[unclosed: :run], ~r/^unknown option :unclosed for run/}
        ] do
      assert_raise OptionError, message, fn -> Pipeline.commands(view, [], options) end
    end
  end

  test "results name the entries whose texts they hold", %{tmp_dir: folder} do
    write(folder, %{
      "x/SKILL.md" => "---\ndomain: x\ndescription: Things\n---\nAbout x\n",
      "x/one.md" => page("x.one", [aliases: "[first]"], "One\n"),
      "x/two.md" => page("x.two", handler("Text"), "Two\n"),
      "x/hidden.md" => page("x.hidden", [{:"disable-model-invocation", true}], "Hidden\n"),
      "skill/SKILL.md" => page("skill", [], "Skill\n"),
      "skill/more.md" => "More\n"
    })

    view = view(folder)

    rows = [
      {"x.one", ["x.one"]},
      {"first --a", ["x.one"]},
      {"get_skill: x.two", ["x.two"]},
      {"get_skill: first", ["x.one"]},
      {"x.two --help", ["x.two"]},
      {"get_skill: x.hidden", ["x.hidden"]},
      {"get_skill: x.all", ["x.one", "x.two"]},
      {"get_skill x.one skill x.one", ["x.one", "skill"]},
      {"get_skill: skill", ["skill"]},
      {"get_skill: skill/more.md", nil},
      {"get_skill: x", nil},
      {"get_skill", nil},
      {"x.two", nil},
      {"get_skill: nothing", nil}
    ]

    for {line, names} <- rows do
      [result] = Pipeline.commands(view, [line])
      activates = result.metadata[:activates]
      assert {line, activates && Enum.map(activates, & &1.name)} == {line, names}

      for %{name: name} = one <- activates || [],
          do: assert(one == Entry.activation(View.fetch!(view, name)))
    end

    # The beginning of `printf Skill | sha256sum`.
    assert Entry.activation(View.fetch!(view, "skill")) == %{
             name: "skill",
             hash: "6df1bb18a59ab97d"
           }
  end
end
