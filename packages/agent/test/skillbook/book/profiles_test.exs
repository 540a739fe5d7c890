defmodule Skillbook.Book.ProfilesTest do
  # Profiles that a function of the application returns when they are needed.
  use Skillbook.SkillsCase, async: true

  import ExUnit.CaptureLog
  import Skillbook.Eventually

  alias Skillbook.{Agent, AgentError, Book, Model, Profile, ProfileError, Scheduler, Store}
  alias Skillbook.{StoreError, View}

  doctest Skillbook.ProfileError

  @moduletag :tmp_dir

  defmodule Tenants do
    @moduledoc false
    def fetch("ann"), do: {:ok, [grants: ["mail"], assigns: %{tenant: 1}]}
    def fetch(_id), do: nil
  end

  defp start(folder, profiles, options \\ []) do
    write(folder, %{
      "x/open.md" => page("x.open", [handler: "Skillbook.TestHandlers.Call"], "# Open\n"),
      "x/mail.md" => page("x.mail", handler("Call") ++ [visibility_labels: "[mail]"]),
      "x/write.md" => page("x.write", handler("Call") ++ [effects: "write"])
    })

    defaults = [sources: [folder], store: ":memory:", watch: false, builtins: false]
    book(Keyword.merge(defaults, [profiles: profiles] ++ options))
  end

  defp names(book, id), do: Enum.map(View.entries(Skillbook.view(book, id)), & &1.name)

  # A function whose answers the test changes, and that counts its calls.
  defp tenants(answers) do
    {:ok, agent} = Elixir.Agent.start_link(fn -> {answers, []} end)

    fun = fn id ->
      Elixir.Agent.get_and_update(agent, fn {answers, calls} ->
        {answers[id], {answers, [id | calls]}}
      end)
    end

    set = fn id, answer ->
      Elixir.Agent.update(agent, fn {all, calls} -> {Map.put(all, id, answer), calls} end)
    end

    calls = fn ->
      Elixir.Agent.get_and_update(agent, fn {all, calls} -> {Enum.reverse(calls), {all, []}} end)
    end

    {fun, set, calls}
  end

  describe "a function of profiles" do
    test "may be given in each of these ways", %{tmp_dir: folder} do
      listed = [id: "cron", grants: ["mail"]]
      all = ["x.mail", "x.open", "x.write"]

      for {profiles, seen} <- [
            {{Tenants, :fetch}, %{"ann" => all}},
            {&Tenants.fetch/1, %{"ann" => all}},
            {[{Tenants, :fetch}], %{"ann" => all}},
            {[listed, {Tenants, :fetch}], %{"ann" => all, "cron" => all}},
            {[Profile.new!(id: "ann"), &Tenants.fetch/1], %{"ann" => ["x.open", "x.write"]}}
          ] do
        book = start(folder, profiles)
        for {id, names} <- seen, do: assert({profiles, names(book, id)} == {profiles, names})

        for id <- ["eve", "default", "", nil, 1, <<255>>] do
          message = "expected a profile of the book #{inspect(book)}, got: #{inspect(id)}"
          assert_raise ArgumentError, message, fn -> Skillbook.view(book, id) end
        end
      end
    end

    test "is refused if it is another value", %{tmp_dir: _} do
      expected =
        "expected a list of profiles, a function of one argument or {module, function} as the " <>
          "option :profiles of a book, got: "

      for {profiles, message} <- [
            {"ann", expected <> ~s("ann")},
            {fn -> nil end, nil},
            {[{Tenants, :fetch}, {Tenants, :other}],
             "expected at most one function as the option :profiles of a book, got: " <>
               inspect({Tenants, :other})}
          ] do
        assert {:error, error} = Skillbook.start_link(name: :no_tenants, profiles: profiles)
        if message, do: assert(Exception.message(error) == message)
      end
    end

    @closed "the function in :profiles "
    @answer ", expected {:ok, profile}, :error, nil or {:error, exception}, where the profile " <>
              "has this id or none"

    test "gives a profile, or nothing at all", %{tmp_dir: folder} do
      roles = [[id: "reader", grants: ["mail"], writes: :deny]]

      for {answer, expected} <- [
            {{:ok, [grants: ["mail"]]}, {:ok, ["mail"], :run}},
            {{:ok, %{grants: ["mail"], writes: :ask}}, {:ok, ["mail"], :ask}},
            {{:ok, [id: "ann", grants: []]}, {:ok, [], :run}},
            {{:ok, Profile.new!(id: "ann", grants: ["mail"])}, {:ok, ["mail"], :run}},
            {{:ok, [role: "reader"]}, {:ok, ["mail"], :deny}},
            {{:ok, [role: "reader", grants: []]}, {:ok, [], :deny}},
            {nil, :unknown},
            {:error, :unknown},
            {{:error, RuntimeError.exception("no database")},
             @closed <> "returned an error: no database"},
            {fn -> raise "oh" end, @closed <> "crashed: ** (RuntimeError) oh"},
            {fn -> throw(:oh) end, @closed <> "crashed"},
            {fn -> exit(:oh) end, @closed <> "crashed"},
            {{:ok, [id: "bob"]}, @closed <> ~s(returned a profile with the id "bob") <> @answer},
            {{:ok, [grant: []]},
             @closed <>
               "returned an error: unknown option :grant for a profile, did you mean :grants? " <>
               "The options are :id, :tenant, :others, :grants, :skills, :within, :tools, " <>
               ":writes, " <>
               ":approved, " <>
               ":labels, :preflight, :hooks, :description, :assigns, :role"},
            {{:ok, [role: "none"]},
             @closed <>
               ~s(returned an error: expected one of the roles "reader" as the option ) <>
               ~s(:role of a profile, got: "none")},
            {{:ok, nil},
             @closed <>
               "returned an error: expected a keyword list or a map with atoms as keys for a " <>
               "profile, got: nil"},
            {{:error, :enoent}, @closed <> "returned {:error, :enoent}" <> @answer},
            {:ok, @closed <> "returned :ok" <> @answer},
            {%{secret: "xyzzy"}, @closed <> "returned a map" <> @answer},
            {[id: "ann", assigns: %{secret: "xyzzy"}], @closed <> "returned a list" <> @answer},
            {Profile.new!(id: "ann"), @closed <> "returned a Skillbook.Profile" <> @answer}
          ] do
        fetch = fn
          "ann" when is_function(answer, 0) -> answer.()
          "ann" -> answer
        end

        book = start(folder, fetch, roles: roles)

        case expected do
          {:ok, grants, writes} ->
            profile = Skillbook.view(book, "ann").profile

            assert {answer, profile.id, profile.grants, profile.writes} ==
                     {answer, "ann", grants, writes}

          :unknown ->
            assert_raise ArgumentError, fn -> Skillbook.view(book, "ann") end

          text ->
            error = catch_error(Skillbook.run(book, "", profile: "ann"))
            assert %ProfileError{book: ^book, id: "ann"} = error
            place = ~s(the profile "ann" of the book #{inspect(book)} cannot be read: )
            assert Exception.message(error) == place <> text
        end
      end
    end

    test "that is slow is stopped", %{tmp_dir: folder} do
      test = self()

      fetch = fn "ann" ->
        send(test, {:asked, self()})
        Process.sleep(:infinity)
      end

      book = start(folder, fetch)
      {time, error} = :timer.tc(fn -> catch_error(Skillbook.view(book, "ann")) end)
      assert %ProfileError{kind: :timeout} = error
      assert time in 4_900_000..9_000_000
      assert_receive {:asked, process}
      eventually(fn -> not Process.alive?(process) end)
    end

    test "is called for each view and kept nowhere", %{tmp_dir: folder} do
      {fun, set, calls} = tenants(%{"ann" => {:ok, []}})
      book = start(folder, fun)
      assert calls.() == []
      assert names(book, "ann") == ["x.open", "x.write"]
      view = Skillbook.view(book, "ann")
      set.("ann", {:ok, [grants: ["mail"]]})
      assert length(View.entries(view)) == 2
      assert names(book, "ann") == ["x.mail", "x.open", "x.write"]
      set.("ann", nil)
      assert_raise ArgumentError, fn -> Skillbook.view(book, "ann") end
      assert calls.() == List.duplicate("ann", 4)
    end
  end

  describe "the rights of such a profile" do
    test "are read again for each turn of an agent", %{tmp_dir: folder} do
      {fun, set, calls} = tenants(%{"ann" => {:ok, [grants: ["mail"]]}})
      secret = "Only for those who read mail."
      book = start(folder, fun)

      write(folder, %{
        "x/mail.md" => page("x.mail", [visibility_labels: "[mail]"], secret <> "\n")
      })

      Skillbook.reload(book)
      turns = :counters.new(1, [])

      model =
        Model.Function.new(fn messages, _options ->
          :counters.add(turns, 1, 1)
          text = Enum.map_join(messages, "\n", & &1.content)

          case :counters.get(turns, 1) do
            1 ->
              "```cmd\nx.mail\n```"

            2 ->
              assert text =~ secret
              set.("ann", {:ok, []})
              "```cmd\nget_skill: x.mail\n```"

            # The command of the second turn had the rights of that turn.
            3 ->
              refute text =~ secret
              refute text =~ "Does x.mail"
              "```cmd\nx.mail\n```"

            4 ->
              assert text =~ ~s(unknown skill "x.mail")
              "Done."
          end
        end)

      assert {:ok, %{text: "Done."}} = Agent.run(book, "Go.", model: model, profile: "ann")
      assert calls.() == List.duplicate("ann", 4)
    end

    test "end a run that loses its profile", %{tmp_dir: folder} do
      for {lost, kind} <- [{nil, :unknown}, {{:error, RuntimeError.exception("down")}, :error}] do
        {fun, set, _calls} = tenants(%{"ann" => {:ok, []}})
        book = start(folder, fun)

        model =
          Model.Function.new(fn _messages, _options ->
            set.("ann", lost)
            "```cmd\nget_skill: x.open\n```"
          end)

        assert {:error, %AgentError{error: %ProfileError{kind: ^kind} = error} = failed} =
                 Agent.run(book, "Go.", model: model, profile: "ann")

        assert failed.result.turns == 1

        assert Enum.map(failed.result.transcript.messages, & &1.kind) ==
                 [:prompt, :input, :reply, :report]

        if kind == :unknown do
          assert Exception.message(error) ==
                   ~s(the book #{inspect(book)} has no profile "ann")
        end
      end
    end

    test "count when it writes", %{tmp_dir: folder} do
      {fun, set, calls} = tenants(%{"ann" => {:ok, []}, "bob" => {:ok, []}})
      book = start(folder, fun, schedules: [run_as: "ann"])
      fields = %{title: "Tea", description: "d", content: "c", schedule: "0 8 * * 1"}
      {:ok, tea} = Store.create(book, fields, profile: "ann")
      assert tea.author == "ann"
      # Once for the view, and once for the writer.
      assert calls.() == ["ann", "ann"]
      view = Skillbook.view(book, "ann")
      set.("ann", {:error, RuntimeError.exception("down")})
      assert {:error, %ProfileError{}} = Store.update(view, "tea", %{tags: ["t"]})
      set.("ann", nil)
      fields = %{fields | title: "Milk"}
      assert {:error, %StoreError{kind: :no_runner}} = Store.create(view, fields)
    end
  end

  describe "a schedule" do
    @at ~U[2026-03-02 08:00:00Z]

    defp scheduled(folder, fun, options \\ []) do
      write(folder, %{
        "y/tick.md" => page("y.tick", handler("Call") ++ [schedule: "0 8 * * 1", run_as: "ann"])
      })

      schedules = [clock: fn -> DateTime.add(@at, 5) end]
      start(folder, fun, [schedules: schedules] ++ options)
    end

    test "runs as the profile of that time", %{tmp_dir: folder} do
      test = self()

      call = fn _flags, context ->
        send(test, {:ran, context})
        :ok
      end

      assigns = %{call: call, tenant: 7}
      {fun, _set, calls} = tenants(%{"ann" => {:ok, [assigns: assigns]}})
      book = scheduled(folder, fun)
      assert Map.keys(Scheduler.registered(book)) == ["y.tick"]
      # Registering calls nothing, however many profiles have schedules.
      assert calls.() == []
      :ok = Scheduler.fire(book, "y.tick", @at, @at)
      :ok = Scheduler.await(book)
      assert_receive {:ran, %{profile: %{id: "ann"}, assigns: %{tenant: 7}}}
      assert "ann" in calls.()
    end

    test "of a profile that is gone or cannot be read fails", %{tmp_dir: folder} do
      for {answer, text} <- [
            {nil, "expected a profile of the book as `run_as`, got \"ann\""},
            {{:error, RuntimeError.exception("down")}, "returned an error: down"}
          ] do
        {fun, _set, _calls} = tenants(%{"ann" => answer})
        book = scheduled(folder, fun)

        log =
          capture_log(fn ->
            :ok = Scheduler.fire(book, "y.tick", @at, @at)
            :ok = Scheduler.await(book)
          end)

        assert log =~ text
        {:ok, %{last: [row]}} = Skillbook.schedule(View.all(book))
        assert {row.name, row.status} == {"y.tick", :failed}
        assert row.text =~ text
      end
    end

    test "of the store runs as its creator", %{tmp_dir: folder} do
      {fun, set, _calls} = tenants(%{"ann" => {:ok, []}})
      book = start(folder, fun, schedules: [clock: fn -> DateTime.add(@at, 5) end])
      fields = %{title: "Tea", description: "d", content: "c", schedule: "0 8 * * 1"}
      {:ok, _} = Store.create(book, fields, profile: "ann", now: DateTime.add(@at, -60))
      fetch = fn -> Scheduler.Job.fetch(Book.fetch!(book), "tea", 1) end
      assert {:ok, %{profile: %{id: "ann"}, owner: "ann"}} = fetch.()
      assert [{_, {:ok, %{profile: nil, owner: "ann"}}}] = Scheduler.Job.all(Book.fetch!(book))
      set.("ann", nil)

      assert fetch.() ==
               {:error,
                "expected the entry to be created by a profile of the book, got: \"ann\"; add " <>
                  "that profile to the book, or create the entry again"}
    end
  end

  describe "ten thousand profiles" do
    @count 10_000

    test "cost nothing until they are used, and a bounded amount after", %{tmp_dir: folder} do
      fetch = fn "tenant-" <> number -> {:ok, [grants: ["l#{number}"], assigns: %{n: number}]} end
      calls = %{call: fn _flags, _context -> {:error, "no"} end}
      options = [assigns: calls, breaker: [failures: 1, cooldown: 60_000]]

      capture_log(fn ->
        book = start(folder, fetch, options)
        term = fn -> :erts_debug.flat_size(Book.fetch!(book)) end
        before = term.()

        for number <- 1..@count do
          view = Skillbook.view(book, "tenant-#{number}")
          if rem(number, 10) == 0, do: Skillbook.run(view, "```cmd\nx.open\n```")
          if rem(number, 100) == 0, do: Skillbook.prompt(view)
        end

        assert term.() == before
        size = fn table -> :ets.info(Module.concat(book, table), :size) end
        assert size.(CircuitBreaker) <= 10_000
        assert size.(PreflightCache) <= 1_000
        assert size.(StoredResults) == 0
      end)
    end
  end
end
