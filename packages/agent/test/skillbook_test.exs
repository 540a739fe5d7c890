defmodule SkillbookTest do
  use Skillbook.SkillsCase, async: true

  import ExUnit.CaptureLog

  alias Skillbook.{CommandError, HandlerError, OptionError, UnknownSkillError, View}

  @moduletag :tmp_dir

  doctest Skillbook

  @callback_type "a function of one argument, {module, function} or nil"

  defp reply(commands),
    do: "Sure.\n\n```cmd\n#{Enum.join(List.wrap(commands), "\n")}\n```\n\nDone."

  describe "start_link/1" do
    test "rejects unknown and invalid options" do
      for {options, message} <- [
            {[], "a book needs the option :name"},
            {[name: :x, sorces: []],
             "unknown option :sorces for a book, did you mean :sources? The options are " <>
               ":name, :sources, :builtins, " <>
               ":store, :store_poll, :store_memory, :profiles, :roles, :assigns, :write_to, " <>
               ":timeout, :drain, :ask, :ask_timeout, " <>
               ":max_running, :max_running_per_skill, :max_agents, :max_wait, " <>
               ":max_result, :breaker, :usage, :keep, " <>
               ":sections, :telemetry_flags, :hooks, :watch, :embedder, " <>
               ":embedder_timeout, :parts, :approvals, :prices, :budget, :agent, " <>
               ":preflight, :conversations, :durable, " <>
               ":scheduler, :schedules"},
            {[name: "x"], "expected an atom as the option :name of a book, got: \"x\""},
            {[name: {:via, Registry, {R, "x"}}],
             "expected an atom as the option :name of a book, got: {:via, Registry, {R, \"x\"}}"},
            {[name: {:global, "x"}],
             "expected an atom as the option :name of a book, got: {:global, \"x\"}"},
            {[name: :x, timeout: 0],
             "expected a number of milliseconds as the option :timeout of a book, got: 0"},
            {[name: :x, timeout: 10_000_000_000],
             "expected a number of milliseconds as the option :timeout of a book, got: " <>
               "10000000000"},
            {[name: :x, store_memory: 1_099_511_627_777],
             "expected a number of bytes as the option :store_memory of a book, got: " <>
               "1099511627777"},
            {[name: :x, breaker: [cooldown: 10_000_000_000]],
             "expected [failures: number, cooldown: milliseconds] or false as the option " <>
               ":breaker of a book, got: [cooldown: 10000000000]"},
            {[name: :x, ask: &(&1 + &2)],
             ~r/^expected #{@callback_type} as the option :ask of a book, got: /},
            {[name: :x, schedules: [tiemout: 1]],
             "unknown option :tiemout for a book's :schedules, did you mean :timeout? The " <>
               "options are :run_as, :builtins, :timeout, " <>
               ":max_running, :lease, :missed, :interrupted, :keep, :min_interval, " <>
               ":max_per_profile, :dispatch, :clock"},
            {[name: :x, schedules: [missed: :run]],
             "expected :skip or :run_once as the option :missed of a book's :schedules, got: " <>
               ":run"},
            {[name: :x, schedules: [clock: "now"]],
             "expected a function without arguments, {module, function} or nil as the option " <>
               ":clock of a book's :schedules, got: \"now\""},
            {[name: :x, schedules: true],
             "expected a keyword list as the option :schedules of a book, got: true"},
            {[name: :x, agent: []], "a book's :agent needs the option :model"},
            {[name: :x, agent: :on],
             "expected a keyword list or nil as the option :agent of a book, got: :on"},
            {[name: :x, agent: [model: "gpt"]],
             "expected a model as the option :model of a book's :agent, got: \"gpt\""},
            {[name: :x, agent: [max_turn: 1]],
             "unknown option :max_turn for a book's :agent, did you mean :max_turns? The " <>
               "options are :model, :system, :chat, " <>
               ":grammar, :protocol, :tools, :leader, :hand_over, :max_turns, " <>
               ":max_time, :max_tokens, :max_cost, :max_repeats, :max_context, " <>
               ":summary, :max_depth"},
            {[name: :x, agent: [max_turns: 0]],
             "expected a whole number from 1 as the option :max_turns of a book's :agent, " <>
               "got: 0"},
            {[name: :x, agent: [chat: [temperature: -1]]],
             "expected a number from 0 as the option :temperature of a model's answer, got: -1"},
            {[name: :x, max_running: 0],
             "expected a number or :infinity as the option :max_running of a book, got: 0"},
            {[name: :x, max_running_per_skill: 1.5],
             "expected a number or :infinity as the option :max_running_per_skill of a book, " <>
               "got: 1.5"},
            {[name: :x, max_wait: :infinity],
             "expected a number of milliseconds as the option :max_wait of a book, got: " <>
               ":infinity"},
            {[name: :x, max_result: nil],
             "expected a number of characters or :infinity as the option :max_result of a " <>
               "book, got: nil"},
            {[name: :x, breaker: true],
             "expected [failures: number, cooldown: milliseconds] or false as the option " <>
               ":breaker of a book, got: true"},
            {[name: :x, breaker: [failure: 5]],
             "expected [failures: number, cooldown: milliseconds] or false as the option " <>
               ":breaker of a book, got: [failure: 5]"},
            {[name: :x, telemetry_flags: 1],
             "expected a boolean as the option :telemetry_flags of a book, got: 1"},
            {[name: :x, profiles: [[id: "p", writes: :always]]],
             "expected :run, :delegate, :ask or :deny as the option :writes of a profile, " <>
               "got: :always"},
            {[name: :x, sources: [[path: "a", knd: :notes]]],
             "unknown option :knd for a source, did you mean :kind? The options are :path, " <>
               ":name, :kind, :labels, :tenant, :optional, :trust, :available, :inline"},
            {[name: :x, profiles: [[grants: []]]], "a profile needs the option :id"},
            {[name: :x, roles: [[grants: []]]], "a role needs the option :id"},
            {[name: :x, roles: [[id: "a", role: "b"]]],
             "unknown option :role for a role. The options are :id, :others, :grants, " <>
               ":skills, :within, :tools, :writes, :approved, :labels, :preflight, :hooks"},
            {[name: :x, profiles: [[id: "p", labels: "a"]]],
             "expected a list of texts as the option :labels of a profile, got: \"a\""},
            {[name: :x, profiles: [[id: "p", grants: ["a"], labels: ["a", "a", "b"]]]],
             "expected labels that are among its :grants as the option :labels of a profile, " <>
               "got: [\"b\"]"},
            {[
               name: :x,
               roles: [[id: "r", grants: ["a"], labels: ["a"]]],
               profiles: [[id: "p", role: "r", grants: []]]
             ],
             "expected labels that are among its :grants as the option :labels of a profile, " <>
               "got: [\"a\"]"},
            {[name: :x, profiles: [%Skillbook.Profile{id: "p", labels: ["a"]}]],
             "expected labels that are among its :grants as the option :labels of a profile, " <>
               "got: [\"a\"]"},
            {[name: :x, roles: [[id: "a"], [id: "b"]], profiles: [[id: "p", role: "c"]]],
             "expected one of the roles \"a\", \"b\" as the option :role of a profile, got: " <>
               "\"c\""},
            {[name: :x, profiles: [[id: "p"], [id: "q"], [id: "p", writes: :deny]]],
             "expected profiles with different ids as the option :profiles of a book, " <>
               "got: \"p\""},
            {[name: :x, profiles: [[id: "p"], %Skillbook.Profile{id: "p"}]],
             "expected profiles with different ids as the option :profiles of a book, " <>
               "got: \"p\""},
            {[name: :x, roles: [[id: "a"], [id: "a", writes: :deny]]],
             "expected roles with different ids as the option :roles of a book, got: \"a\""},
            {[name: :x, profiles: [[id: "p", role: "c"]]],
             "expected nil, for the book has no :roles, as the option :role of a profile, " <>
               "got: \"c\""}
          ] do
        assert {:error, %OptionError{} = error} = Skillbook.start_link(options)

        if is_binary(message),
          do: assert(Exception.message(error) == message),
          else: assert(Exception.message(error) =~ message)
      end
    end

    test "returns an error if the database cannot be opened", %{tmp_dir: folder} do
      Process.flag(:trap_exit, true)

      assert {:error, %Skillbook.SQL.Error{kind: :cannot_open} = error} =
               Skillbook.start_link(name: :no_db, store: folder)

      assert Exception.message(error) =~ folder
    end

    test "a stopped book is unregistered and its name is free", %{tmp_dir: folder} do
      options = [name: :gone_book, sources: [folder], store: ":memory:"]
      {:ok, pid} = Skillbook.start_link(options)
      Supervisor.stop(pid)

      assert_raise ArgumentError, ~r/expected the name of a running book, got: :gone_book/, fn ->
        Skillbook.view(:gone_book)
      end

      assert {:ok, pid} = Skillbook.start_link(options)
      Supervisor.stop(pid)
    end

    test "under a supervisor prints the message of an error", %{tmp_dir: folder} do
      Process.flag(:trap_exit, true)
      nowhere = Path.join(folder, "nowhere")

      rows = [
        {[name: :printed, sorces: []],
         "unknown option :sorces for a book, did you mean :sources?"},
        {[name: :printed, profiles: [[grants: []]]], "a profile needs the option :id"},
        {[name: :printed, sources: [nowhere]],
         ~s(the source "nowhere" cannot be read: #{nowhere}: )},
        {%{"name" => :printed},
         "expected a keyword list or a map with atoms as keys for a book, got: %{\"name\" =>"}
      ]

      for {options, message} <- rows do
        {:error, reason} = Supervisor.start_link([{Skillbook, options}], strategy: :one_for_one)
        text = Exception.format_exit(reason)
        assert text =~ message
        refute text =~ "%Skillbook."
        refute text =~ "known:"
      end
    end

    test "refuses a source that is missing, unless it is optional", %{tmp_dir: folder} do
      [nowhere, file, later] =
        for name <- ["nowhere", "file", "later"], do: Path.join(folder, name)

      File.write!(file, "")

      remedy =
        &(". Correct the path or create the folder, or let it be missing with the options " <>
            "[path: #{inspect(&1)}, optional: true]")

      missing = ~s(the source "nowhere" cannot be read: #{nowhere}: the folder does not exist)
      not_a_folder = ~s(the source "file" cannot be read: #{file}: expected a folder, got a file)

      rows = [
        {[nowhere], missing <> remedy.(nowhere)},
        {[[path: nowhere, name: "docs"]],
         String.replace(missing, "nowhere\"", "docs\"") <> remedy.(nowhere)},
        {[folder, file], not_a_folder <> remedy.(file)},
        {[[path: nowhere, optional: true]], [:source_missing]},
        {[[path: nowhere, trust: :none]], missing <> remedy.(nowhere)},
        {[folder], []}
      ]

      for {sources, expected} <- rows do
        options = [name: :required, sources: sources, write_to: later, builtins: false]

        case Skillbook.start_link(options) do
          {:ok, pid} ->
            assert Enum.map(Skillbook.diagnostics(:required), & &1.code) == expected
            Supervisor.stop(pid)

          {:error, error} ->
            assert Exception.message(error) == expected
        end
      end
    end
  end

  describe "a profile with a role" do
    test "gets the options that it does not set", %{tmp_dir: folder} do
      role = [id: "reader", grants: ["family"], skills: ["a*"], tools: ["Read"], writes: :deny]

      rows = [
        {[], {["family"], ["a*"], ["Read"]}},
        {[grants: []], {[], ["a*"], ["Read"]}},
        {[skills: :all], {["family"], :all, ["Read"]}},
        {[writes: :run], {["family"], ["a*"], ["Read"]}},
        {[tools: ["Write"]], {["family"], ["a*"], ["Write"]}}
      ]

      for {own, expected} <- rows do
        profile = Keyword.merge([id: "ann", role: "reader"], own)
        book = book(sources: [folder], builtins: false, roles: [role], profiles: [profile])
        profile = Skillbook.view(book, "ann").profile
        assert {profile.grants, profile.skills, profile.tools} == expected
        assert {profile.id, profile.role} == {"ann", "reader"}
        assert profile.writes == Keyword.get(own, :writes, :deny)
      end
    end

    test "may get its grants or its labels from the role", %{tmp_dir: folder} do
      for {role, own} <- [
            {[grants: ["a"]], [labels: ["a"]]},
            {[labels: ["a"]], [grants: ["a"]]},
            {[labels: ["a"], grants: []], [grants: :all]}
          ] do
        options = [roles: [[id: "r"] ++ role], profiles: [[id: "ann", role: "r"] ++ own]]
        book = book([sources: [folder], builtins: false] ++ options)
        assert Skillbook.view(book, "ann").profile.labels == ["a"]
      end
    end

    test "ignores the role if it is a struct", %{tmp_dir: folder} do
      profile = %Skillbook.Profile{id: "ann", role: "reader"}
      options = [sources: [folder], builtins: false, roles: [[id: "reader", grants: :all]]]
      assert Skillbook.view(book(options ++ [profiles: [profile]]), "ann").profile == profile
    end
  end

  describe "changes/2" do
    test "lists changes that the profile sees", %{tmp_dir: folder} do
      write(folder, %{"a.md" => "---\nname: a\ndescription: Old\n---\n"})
      book = book(sources: [folder], builtins: false)
      old = Skillbook.view(book)
      assert Skillbook.changes(old, old) == ""

      write(folder, %{
        "a.md" => "---\nname: a\ndescription: New text\n---\n",
        "b.md" => "---\nname: b\ndescription: Hidden\nvisibility_labels: [x]\n---\n",
        "c.md" => "---\nname: c\ndescription: Another\n---\n"
      })

      Skillbook.reload(book)
      new = Skillbook.view(book)
      heading = "# Changes in the list of `get_skill`\n\n"

      assert Skillbook.changes(old, new) ==
               heading <> "New:\n\n- c: Another\n\nChanged:\n\n- a: New text\n"

      assert_raise ArgumentError, ~r/^expected two views of one profile, got views of /, fn ->
        Skillbook.changes(old, Skillbook.View.all(book))
      end
    end

    test "lists changed indexes of domains", %{tmp_dir: folder} do
      index = fn description -> "---\ndomain: x\ndescription: #{description}\n---\n" end
      write(folder, %{"x/run.md" => page("x.run"), "x/SKILL.md" => index.("Old")})
      book = book(sources: [folder], builtins: false)
      old = Skillbook.view(book)
      write(folder, %{"x/SKILL.md" => index.("New")})
      Skillbook.reload(book)
      new = Skillbook.view(book)
      assert Skillbook.prompt(old) =~ "  x  Old\n" and Skillbook.prompt(new) =~ "  x  New\n"

      assert Skillbook.changes(old, new) ==
               "# Changes in the list of `get_skill`\n\nChanged:\n\n- x: New\n"
    end

    test "needs views of one book or one catalog", %{tmp_dir: folder} do
      write(folder, %{"a.md" => page("a")})
      options = [sources: [folder], builtins: false]
      {one, two} = {book(options), book(options)}
      assert Skillbook.view(one).profile == Skillbook.view(two).profile

      error =
        assert_raise ArgumentError, fn ->
          Skillbook.changes(Skillbook.view(one), Skillbook.view(two))
        end

      assert error.message ==
               "expected two views of one book, got views of #{inspect(one)} and #{inspect(two)}"

      [first, second] =
        for _ <- 1..2 do
          {:ok, catalog} = Skillbook.Catalog.load([folder])
          catalog
        end

      error =
        assert_raise ArgumentError, fn ->
          Skillbook.changes(Skillbook.View.all(first), Skillbook.View.all(second))
        end

      assert error.message == "expected two views of one catalog, got views of two catalogs"
      assert Skillbook.changes(Skillbook.View.all(first), Skillbook.View.all(first)) == ""
    end

    test "accepts views from before a restart of the book", %{tmp_dir: folder} do
      write(folder, %{"a.md" => page("a")})
      options = [sources: [folder], builtins: false]
      book = book(options)
      old = Skillbook.view(book)
      :ok = stop_supervised(book)
      write(folder, %{"b.md" => page("b")})
      start_supervised!({Skillbook, [name: book] ++ options}, id: book)
      assert Skillbook.changes(old, Skillbook.view(book)) =~ "New:\n\n- b: Does b\n"
    end
  end

  describe "run/3" do
    test "runs a block of a reply through extractor, router and handler",
         %{
           tmp_dir: folder
         } do
      write(folder, %{"x/run.md" => page("x.run", handler("Text"))})
      view = Skillbook.view(book(sources: [folder]))
      report = Skillbook.run(view, reply("x.run --a b"))
      assert report.text == "Sure.\n\nDone."

      assert [
               %{
                 status: :ok,
                 name: "x.run",
                 command: "x.run --a b",
                 content: "flags: %{\"a\" => \"b\"}"
               }
             ] = report.results

      assert is_integer(hd(report.results).duration)
    end

    test "runs several commands in order and returns all results", %{tmp_dir: folder} do
      write(folder, %{"x/run.md" => page("x.run", handler("Text"))})
      view = Skillbook.view(book(sources: [folder]))

      report =
        Skillbook.run(view, reply(["x.run --n 1", "x.rnu --n 2", "x.run --n 3 |", "x.run --n 4"]))

      assert [
               %{status: :ok},
               %{error: %UnknownSkillError{}},
               %{error: %CommandError{}},
               %{status: :ok}
             ] = report.results

      assert Enum.map(report.results, & &1.command) == [
               "x.run --n 1",
               "x.rnu --n 2",
               "x.run --n 3 |",
               "x.run --n 4"
             ]

      assert to_string(report) =~
               "[2] x.rnu --n 2\nerror\n  unknown skill \"x.rnu\"; did you mean x.run?"
    end

    test "does not run a block that was cut off", %{tmp_dir: folder} do
      write(folder, %{"x/run.md" => page("x.run", handler("Text"))})
      view = Skillbook.view(book(sources: [folder]))
      report = Skillbook.run(view, "Sure.\n```cmd\nx.run --a")
      assert %{text: "Sure.", results: [], incomplete: ["x.run --a"]} = report
      assert to_string(report) =~ "not run"
      assert [%{status: :ok}] = Skillbook.run(view, "```cmd\nx.run --a", unclosed: :run).results
    end

    test "keeps a reply that is not UTF-8 as text", %{tmp_dir: folder} do
      report =
        Skillbook.run(Skillbook.view(book(sources: [folder])), <<"Grüße ", 0xFF, " b", 0xC3>>)

      assert report.text == "Grüße � b�"
      assert [%{status: :error, error: %CommandError{kind: :invalid_utf8}}] = report.results

      assert to_string(report) =~
               "[1] (the whole reply)\nerror\n  the text is not valid UTF-8: byte 8 does not " <>
                 "begin a character"
    end

    test "passes the context of the call to handlers", %{tmp_dir: folder} do
      write(folder, %{"x/run.md" => page("x.run", handler("Tell"))})

      book =
        book(
          sources: [folder],
          store: ":memory:",
          write_to: folder,
          roles: [[id: "boss"]],
          profiles: [[id: "ann", role: "boss"]]
        )

      view = Skillbook.view(book, "ann")
      now = ~U[2026-02-17 12:00:00Z]
      test = self()

      task =
        Task.async(fn ->
          Skillbook.run(view, reply("x.run --a b"), now: now, assigns: %{tell: test})
        end)

      assert_receive {:handler, pid, context}, 60_000

      assert %{book: ^book, view: ^view, now: ^now, write_to: write_to, assigns: %{tell: ^test}} =
               context

      assert {context.profile.role, context.entry.name, context.command.raw} ==
               {"boss", "x.run", "x.run --a b"}

      assert write_to == Path.expand(folder)
      assert Skillbook.SQL.query!(context.sql, "select 1").rows == [[1]]
      send(pid, :go_on)
      assert [%{content: "went on"}] = Task.await(task, :infinity).results
    end

    test "survives handlers that crash, hang or return nonsense", %{tmp_dir: folder} do
      names = ~w(Raise Exit Kill Hang Nonsense Text)

      write(
        folder,
        Map.new(
          names,
          &{"x/#{String.downcase(&1)}.md", page("x.#{String.downcase(&1)}", handler(&1))}
        )
      )

      # Long enough for a crash on a busy machine.
      book = book(sources: [folder], timeout: 3_000)
      supervisor = GenServer.whereis(book)

      capture_log(fn ->
        report =
          Skillbook.run(Skillbook.view(book), reply(Enum.map(names, &"x.#{String.downcase(&1)}")))

        assert Enum.map(report.results, &(&1.error && &1.error.kind)) ==
                 [:crash, :crash, :crash, :timeout, :bad_return, nil]

        refute to_string(report) =~ "secret"
        assert %HandlerError{} = hd(report.results).error
      end)

      assert GenServer.whereis(book) == supervisor
      assert [%{status: :ok}] = Skillbook.run(Skillbook.view(book), reply("x.text")).results
    end

    test "options are checked" do
      view = Skillbook.view(book([]))

      assert_raise OptionError, ~r/unknown option :asigns for run, did you mean :assigns/, fn ->
        Skillbook.run(view, "", asigns: %{})
      end

      assert_raise OptionError, ~r/expected a map or a keyword list as the option :assigns/, fn ->
        Skillbook.run(view, "", assigns: [1])
      end
    end
  end

  describe "views" do
    test "profiles see what their grants allow", %{tmp_dir: folder} do
      write(folder, %{
        "x/open.md" => page("x.open"),
        "x/secret.md" => page("x.secret", visibility_labels: "[private]")
      })

      profiles = [[id: "default"], [id: "ann", grants: ["private"]]]
      book = book(sources: [folder], builtins: false, profiles: profiles)
      names = fn view -> Enum.map(View.entries(view), & &1.name) end
      assert names.(Skillbook.view(book)) == ["x.open"]
      assert names.(Skillbook.view(book, "ann")) == ["x.open", "x.secret"]
      assert names.(View.all(book)) == ["x.open", "x.secret"]

      assert [%{error: %UnknownSkillError{suggestions: []}}] =
               Skillbook.run(Skillbook.view(book), reply("x.secret")).results
               |> Enum.map(&%{&1 | error: %{&1.error | suggestions: []}})

      refute Skillbook.prompt(Skillbook.view(book)) =~ "secret"

      assert_raise ArgumentError,
                   ~s(expected a profile of the book #{inspect(book)} \("ann", "default"\), ) <>
                     ~s(got: "bob"),
                   fn -> Skillbook.view(book, "bob") end
    end

    test "the profile \"default\" exists only in a book that declares it or none" do
      rows = [
        {[], ["default"], []},
        {[profiles: []], ["default"], []},
        {[profiles: [[id: "default", writes: :deny]]], ["default"], []},
        {[profiles: [[id: "ann"]]], ["ann"], ["default"]},
        {[profiles: [[id: "ann"], [id: "default"]]], ["ann", "default"], ["bob"]}
      ]

      for {options, known, unknown} <- rows do
        book = book([builtins: false] ++ options)
        for id <- known, do: assert(Skillbook.view(book, id).profile.id == id)
        ids = Enum.map_join(known, ", ", &inspect/1)

        for id <- unknown do
          error = assert_raise ArgumentError, fn -> Skillbook.view(book, id) end

          assert error.message ==
                   "expected a profile of the book #{inspect(book)} (#{ids}), got: " <>
                     inspect(id)
        end

        if "default" not in known, do: assert_raise(ArgumentError, fn -> Skillbook.view(book) end)
      end
    end

    test "a misspelt :profile is named, with and without the profile \"default\"" do
      options = [profil: true, profiles: true, porfile: true, preflight: false]

      for profiles <- [[[id: "ann"]], [[id: "ann"], [id: "default"]]],
          {option, misspelt?} <- options do
        book = book(builtins: false, profiles: profiles)
        run = fn -> Skillbook.Agent.run(book, "Hi", [{option, "ann"}]) end
        error = catch_error(run.())

        told =
          "unknown option #{inspect(option)} for Skillbook.Agent.run/3, did you mean :profile?"

        assert {option, Exception.message(error) == told} == {option, misspelt?}
      end
    end

    test "fetch_view/2 returns errors" do
      book = book(builtins: false, profiles: [[id: "ann"]])
      assert {:ok, view} = Skillbook.fetch_view(book, "ann")
      assert view.profile == Skillbook.view(book, "ann").profile
      profile = %{view.profile | id: "eve"}
      assert {:ok, %{profile: %{id: "eve"}}} = Skillbook.fetch_view(book, profile)
      assert {:error, %Skillbook.ProfileError{kind: :unknown}} = Skillbook.fetch_view(book)
      assert {:error, %Skillbook.ProfileError{}} = Skillbook.fetch_view(book, nil)

      for name <- [:no_book, "text", nil] do
        message = "expected the name of a running book, got: #{inspect(name)}"
        assert Skillbook.fetch_view(name, "ann") == {:error, %ArgumentError{message: message}}
      end
    end

    test "a view keeps its generation; a new view sees the reload", %{tmp_dir: folder} do
      write(folder, %{"x/run.md" => page("x.run", [], "old")})
      book = book(sources: [folder])
      view = Skillbook.view(book)
      write(folder, %{"x/run.md" => page("x.run", [], "new"), "x/more.md" => page("x.more")})
      assert Skillbook.reload(book) == :ok
      assert View.fetch!(view, "x.run").body == "old"
      assert {:error, _} = View.fetch(view, "x.more")
      assert View.fetch!(Skillbook.view(book), "x.run").body == "new"
      assert {:ok, _} = View.fetch(Skillbook.view(book), "x.more")
    end

    # The readers keep all schedulers busy; of low priority, they leave the writer its turns and
    # read while it waits.
    for watch <- [false, true] do
      @tag timeout: 600_000, watch: watch
      test "readers see complete generations during a thousand reloads, watch: #{watch}",
           %{tmp_dir: folder, watch: watch} do
        # Both pages contain the same number three times, or a reader saw a partial reload. The
        # watcher may reload between the two writes, so then only each file must be consistent.
        put = fn n ->
          for name <- ["a", "b"] do
            text = page("x.#{name}", [title: n], "#{n}\n#{String.duplicate("text ", 500)}\n#{n}")
            write(folder, %{"x/.#{name}" => text})
            File.rename!(Path.join(folder, "x/.#{name}"), Path.join(folder, "x/#{name}.md"))
          end
        end

        number = fn view, name ->
          entry = View.fetch!(view, name)
          lines = String.split(entry.body, "\n")
          assert [hd(lines), List.last(lines)] == [entry.title, entry.title]
          entry.title
        end

        put.(0)
        book = book(sources: [folder], builtins: false, watch: watch)
        stop = :atomics.new(1, [])

        readers =
          for _ <- 1..2 do
            Task.async(fn ->
              Process.flag(:priority, :low)

              Stream.repeatedly(fn ->
                view = Skillbook.view(book)
                {number.(view, "x.a"), number.(view, "x.b")}
              end)
              |> Stream.take_while(fn _ -> :atomics.get(stop, 1) == 0 end)
              |> Enum.reduce(0, fn {a, b}, count ->
                assert a == b or watch
                count + 1
              end)
            end)
          end

        for n <- 1..1_000 do
          put.(n)
          :ok = Skillbook.reload(book)
        end

        :atomics.put(stop, 1, 1)
        assert Enum.all?(Task.await_many(readers, :infinity), &(&1 > 0))
        assert number.(Skillbook.view(book), "x.a") == "1000"
      end
    end
  end

  @tag :corpus
  test "every document of a corpus of 529 is loaded or reported" do
    {:ok, catalog} = Skillbook.Catalog.load([Application.fetch_env!(:skillbook, :corpus)])
    assert Skillbook.Catalog.count(catalog) == 527
    diagnostics = Skillbook.Catalog.diagnostics(catalog)

    # The links lead to files that this corpus leaves out.
    assert Enum.frequencies_by(diagnostics, & &1.code) == %{
             duplicate_name: 2,
             name_differs: 19,
             reference_missing: 113
           }

    assert Enum.filter(diagnostics, &(&1.severity == :error)) == []
  end
end
