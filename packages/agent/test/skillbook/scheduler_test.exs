defmodule Skillbook.SchedulerTest do
  use Skillbook.SkillsCase, async: true

  import ExUnit.CaptureLog
  import Skillbook.Eventually

  alias Skillbook.{
    Book,
    FakeSQL,
    Firing,
    OptionError,
    PostgresCase,
    Profile,
    SQL,
    Schedule,
    Scheduler,
    View
  }

  alias Skillbook.Book.Pruner
  alias Skillbook.Scheduler.{Firings, Local, Queue, Server}

  doctest Skillbook.Firing
  doctest Skillbook.Agenda

  @start ~U[2026-03-01 07:59:30Z]

  defmodule Fire do
    @behaviour Skillbook.Handler
    # Tells the test process of the book about the call, and returns its answer.
    @impl true
    def execute(_flags, context) do
      send(:persistent_term.get({__MODULE__, context.book}), {:fired, self(), context})

      receive do
        {:answer, answer} -> answer
      end
    end
  end

  defmodule Quick do
    @behaviour Skillbook.Handler
    @impl true
    def execute(_flags, _context), do: {:ok, "done"}
  end

  defmodule Queues do
    # Queues of an application: dispatched firings are sent to the test.
    def hand(firing) do
      send(:persistent_term.get({Fire, firing.book}), {:handed, firing})
      :ok
    end

    def full(_firing), do: {:error, "the queue is full"}
    def odd(_firing), do: :later
    def crash(_firing), do: raise("no queue")
  end

  @moduletag :tmp_dir

  defp clock, do: :atomics.new(1, []) |> tap(&set(&1, @start))
  defp set(clock, time), do: :atomics.put(clock, 1, DateTime.to_unix(time))
  defp read(clock), do: clock |> :atomics.get(1) |> DateTime.from_unix!()

  # A book whose clock the test sets, over a folder and a database that outlive it.
  defp scheduled(folder, clock, options \\ []) do
    {schedules, options} = Keyword.pop(options, :schedules, [])

    defaults = [
      sources: [folder],
      builtins: false,
      watch: false,
      store: Path.join(folder, "skills.db"),
      schedules: Keyword.merge([clock: fn -> read(clock) end], schedules)
    ]

    book = defaults |> Keyword.merge(options) |> book()
    :persistent_term.put({Fire, book}, self())
    # Waits until jobs are registered and missed firings are queued.
    _ = Scheduler.registered(book)
    book
  end

  defp at(book, clock, time) do
    set(clock, time)
    Local.tick(book)
  end

  defp job(name, fields), do: page(name, [handler: inspect(Fire), run_as: "default"] ++ fields)

  defp rows(book) do
    {:ok, rows} =
      Firings.list(Book.sql(Book.fetch!(book)), Skillbook.Profile.unrestricted(), 1_000, nil)

    for row <- Enum.reverse(rows), do: {row.name, DateTime.to_iso8601(row.at), row.status}
  end

  defp fired(answer \\ {:ok, "done"}) do
    assert_receive {:fired, pid, context}
    send(pid, {:answer, answer})
    context
  end

  describe "registration" do
    test "follows the folder, and entries without a profile are logged", %{tmp_dir: folder} do
      write(folder, %{
        "a/SKILL.md" => job("a", schedule: "0 8 * * *"),
        "b/SKILL.md" => job("b", []),
        "c/SKILL.md" => page("c", handler: inspect(Fire), schedule: "'@hourly'"),
        "d/SKILL.md" => page("d", handler: inspect(Fire), schedule: "'@hourly'", run_as: "nobody")
      })

      clock = clock()

      log =
        capture_log(fn ->
          book = scheduled(folder, clock)
          assert Map.keys(Scheduler.registered(book)) == ["a"]
          send(self(), book)
        end)

      assert_receive book

      assert log =~
               "c does not run by its schedule: expected the id of a profile as `run_as` in " <>
                 "its frontmatter, got nothing; write `run_as: default`, or give the book " <>
                 "the option schedules: [run_as: \"default\"]"

      assert log =~
               "d does not run by its schedule: expected one of the profiles default as " <>
                 "`run_as`, got \"nobody\""

      write(folder, %{
        "a/SKILL.md" => job("a", schedule: "0 9 * * *"),
        "b/SKILL.md" => job("b", schedule: "0 8 * * *", timezone: "Europe/Berlin"),
        "c/SKILL.md" => job("c", schedule: "'@daily'")
      })

      Skillbook.reload(book)

      assert %{"a" => %Schedule{expression: "0 9 * * *"}, "b" => berlin, "c" => _} =
               Scheduler.registered(book)

      assert berlin.timezone == "Europe/Berlin"

      File.rm_rf!(Path.join(folder, "a"))
      write(folder, %{"c/SKILL.md" => job("c", [])})
      Skillbook.reload(book)
      assert Map.keys(Scheduler.registered(book)) == ["b"]

      # Eight o'clock in Berlin was before the clock began, and the others are gone.
      at(book, clock, ~U[2026-03-01 09:00:00Z])
      Scheduler.await(book)
      assert rows(book) == []
      at(book, clock, ~U[2026-03-02 07:00:00Z])
      fired()
      Scheduler.await(book)
      assert rows(book) == [{"b", "2026-03-02T07:00:00Z", :ok}]
    end

    test "ends while an entry of the store replaces the file", %{
      tmp_dir: folder
    } do
      write(folder, %{"a/SKILL.md" => job("a", schedule: "0 8 * * *")})
      book = scheduled(folder, clock())
      assert Map.keys(Scheduler.registered(book)) == ["a"]
      view = Skillbook.view(book)

      {:ok, _} =
        Skillbook.Store.create(view, %{title: "a", description: "Another", content: "text"})

      assert Scheduler.registered(book) == %{}
      {:ok, _} = Skillbook.Store.delete(Skillbook.view(book), "a")
      assert Map.keys(Scheduler.registered(book)) == ["a"]
    end

    test "looks at the entries of changed names only", %{tmp_dir: folder} do
      work = fn count ->
        folder = Path.join(folder, "#{count}")
        pages = for n <- 1..count, do: {"j#{n}/SKILL.md", job("j#{n}", schedule: "0 8 * * *")}
        write(folder, pages)
        book = scheduled(folder, clock())
        assert map_size(Scheduler.registered(book)) == count
        # The least of three: the reports of the folder's own changes may come meanwhile.
        Enum.min(for number <- 1..3, do: reductions_of_write(book, number))
      end

      assert work.(500) < 2 * work.(10)
    end

    defp reductions_of_write(book, number) do
      server = Process.whereis(Module.concat(book, "Scheduler"))
      Scheduler.await(book)
      {:reductions, before} = Process.info(server, :reductions)
      fields = %{title: "Milk #{number}", description: "About milk", content: "text"}
      {:ok, _} = Skillbook.Store.create(Skillbook.view(book), fields)
      Scheduler.await(book)
      {:reductions, now} = Process.info(server, :reductions)
      now - before
    end
  end

  describe "a firing" do
    test "runs as the page's profile, and its result is stored", %{tmp_dir: folder} do
      write(folder, %{
        "a/SKILL.md" =>
          job("a", schedule: "0 8 * * *") |> String.replace("run_as: default", "run_as: nightly")
      })

      clock = clock()
      book = scheduled(folder, clock, profiles: [[id: "nightly", grants: ["x"]]])
      at(book, clock, ~U[2026-03-01 07:59:59Z])
      Scheduler.await(book)
      assert rows(book) == []
      at(book, clock, ~U[2026-03-01 08:00:00Z])
      context = fired({:ok, String.duplicate("é", 10_001)})
      assert context.profile.id == "nightly"
      assert context.now == ~U[2026-03-01 08:00:00Z]
      assert context.assigns.scheduled == %{at: ~U[2026-03-01 08:00:00Z], node: "nonode@nohost"}
      Scheduler.await(book)

      {:ok, [row]} =
        Firings.list(Book.sql(Book.fetch!(book)), Skillbook.Profile.new!(id: "nightly"), 10, nil)

      assert %{status: :ok, node: "nonode@nohost", attempts: 1} = row
      assert String.length(row.text) == 10_000
      assert is_float(row.duration)
      # The same time comes to nothing more.
      at(book, clock, ~U[2026-03-01 08:00:20Z])
      Scheduler.fire(book, "a")
      Scheduler.fire(book, "unknown")
      Scheduler.await(book)
      refute_received {:fired, _, _}
      assert length(rows(book)) == 1
    end

    test "that fails, is stopped or crashes is stored as failed", %{tmp_dir: folder} do
      write(folder, %{
        "a/SKILL.md" => job("a", schedule: "0 8 * * *"),
        "b/SKILL.md" => job("b", schedule: "0 8 * * *", timeout: "1ms"),
        "c/SKILL.md" => page("c", schedule: "0 8 * * *", run_as: "default"),
        "d/SKILL.md" => job("d", schedule: "0 8 * * *")
      })

      clock = clock()
      book = scheduled(folder, clock, schedules: [timeout: 1])

      capture_log(fn ->
        at(book, clock, ~U[2026-03-01 08:00:00Z])
        Scheduler.await(book)
      end)

      {:ok, rows} =
        Firings.list(Book.sql(Book.fetch!(book)), Skillbook.Profile.unrestricted(), 10, nil)

      assert Enum.map(rows, &{&1.name, &1.status}) == [
               {"a", :failed},
               {"b", :failed},
               {"c", :template},
               {"d", :failed}
             ]

      assert hd(rows).text =~ "took longer than"
      assert Enum.at(rows, 2).text =~ "The page of c."
    end

    test "does not overlap the one before", %{tmp_dir: folder} do
      write(folder, %{"a/SKILL.md" => job("a", schedule: "* * * * *")})
      clock = clock()
      book = scheduled(folder, clock)
      at(book, clock, ~U[2026-03-01 08:00:00Z])
      assert_receive {:fired, pid, _}
      at(book, clock, ~U[2026-03-01 08:01:00Z])
      # The second is refused while the first waits for its answer.
      assert eventually(fn ->
               rows(book) == [
                 {"a", "2026-03-01T08:00:00Z", :running},
                 {"a", "2026-03-01T08:01:00Z", :skipped}
               ]
             end)

      send(pid, {:answer, {:ok, "at last"}})
      Scheduler.await(book)
      at(book, clock, ~U[2026-03-01 08:02:00Z])
      fired()
      Scheduler.await(book)
      assert Enum.map(rows(book), &elem(&1, 2)) == [:ok, :skipped, :ok]
    end

    test "has no more rights than its author", %{tmp_dir: folder} do
      profiles = [
        [id: "nightly", grants: ["mail", "money"], writes: :run],
        [id: "maria", grants: ["mail"], writes: :deny],
        [id: "bob", grants: []],
        [id: "labels", grants: ["secret"], labels: ["secret"]]
      ]

      page = fn name, fields ->
        page(name, [handler: inspect(Fire), schedule: "0 8 * * *", run_as: "nightly"] ++ fields)
      end

      write(folder, %{
        "own/SKILL.md" => page.("own", visibility_labels: "[mail]", effects: "read"),
        "marias/SKILL.md" =>
          page.("marias", visibility_labels: "[mail]", author: "maria", effects: "read"),
        "marias_write/SKILL.md" =>
          page.("marias_write", visibility_labels: "[mail]", author: "maria", effects: "write"),
        "bobs/SKILL.md" =>
          page.("bobs", visibility_labels: "[mail]", author: "bob", effects: "read"),
        "strange/SKILL.md" =>
          page.("strange", visibility_labels: "[mail]", author: "Jane Doe", effects: "read"),
        "labels/SKILL.md" =>
          page("labels",
            handler: inspect(Fire),
            schedule: "0 8 * * *",
            run_as: "labels",
            author: "bob",
            effects: "read"
          )
      })

      clock = clock()

      log =
        capture_log(fn ->
          book = scheduled(folder, clock, profiles: profiles)
          at(book, clock, ~U[2026-03-01 08:00:00Z])

          grants =
            for _ <- 1..3,
                context = fired(),
                into: %{},
                do: {context.entry.name, context.profile.grants}

          assert grants == %{
                   "own" => ["mail", "money"],
                   "marias" => ["mail"],
                   "strange" => ["mail", "money"]
                 }

          Scheduler.await(book)

          assert Enum.map(rows(book), &{elem(&1, 0), elem(&1, 2)}) |> Enum.sort() == [
                   {"bobs", :failed},
                   {"marias", :ok},
                   {"marias_write", :failed},
                   {"own", :ok},
                   {"strange", :ok}
                 ]
        end)

      assert log =~
               "labels does not run by its schedule: expected its author bob to see the " <>
                 "entries that labels writes; write `run_as` with a profile whose labels bob " <>
                 "is granted"
    end

    test "is refused if it needs approval", %{tmp_dir: folder} do
      write(folder, %{"a/SKILL.md" => job("a", schedule: "0 8 * * *", effects: "write")})
      clock = clock()
      ask = fn _request -> :allow end
      book = scheduled(folder, clock, profiles: [[id: "default", writes: :ask]], ask: ask)
      at(book, clock, ~U[2026-03-01 08:00:00Z])
      Scheduler.await(book)

      {:ok, [row]} =
        Firings.list(Book.sql(Book.fetch!(book)), Skillbook.Profile.unrestricted(), 10, nil)

      assert row.status == :failed
      assert row.text =~ "No user is present to approve it, since it runs on a schedule"
    end
  end

  describe "a page with approval: required" do
    test "waits for an approval, and the firing says so", %{tmp_dir: folder} do
      fields = [schedule: "0 8 * * *", approval: "required"]
      steps = "## Behavior\n\n```cmd\na\n```\n"
      prose = [schedule: "0 8 * * *", run_as: "default", approval: "required"]

      write(folder, %{
        "a/SKILL.md" => job("a", fields),
        "x/steps.md" => page("x.steps", [schedule: "0 8 * * *", run_as: "default"], steps),
        "p/SKILL.md" => page("p", prose, "Look around.\n")
      })

      clock = clock()
      ask = fn _request -> flunk("nobody is there") end
      book = scheduled(folder, clock, profiles: [[id: "default"]], ask: ask)
      at(book, clock, ~U[2026-03-01 08:00:00Z])
      Scheduler.await(book)

      {:ok, rows} =
        Firings.list(Book.sql(Book.fetch!(book)), Skillbook.Profile.unrestricted(), 10, nil)

      assert Enum.map(rows, &{&1.name, &1.status}) ==
               [{"a", :pending}, {"p", :pending}, {"x.steps", :pending}]

      assert hd(rows).text =~ "`a` has not run yet: it waits for the approval A-"
      {:ok, agenda} = Skillbook.schedule(Skillbook.View.all(book))
      assert [:pending, :pending, :pending] = Enum.map(agenda.last, & &1.status)

      {:ok, waiting} = Skillbook.approvals(book)
      assert Enum.sort(Enum.map(waiting, & &1.name)) == ["a", "a", "p"]
      [first, _second] = Enum.filter(waiting, &(&1.name == "a"))
      task = Task.async(fn -> Skillbook.approve(book, first.ref, by: "Bob") end)
      context = fired({:ok, "done"})
      assert %{scheduled: %{at: ~U[2026-03-01 08:00:00Z]}} = context.assigns
      assert {:ok, %{status: :done}} = Task.await(task, :infinity)
    end
  end

  describe "missed firings" do
    for {missed, late, expected} <- [
          # Down for an hour and a half of a schedule of every half hour.
          {:skip, ~U[2026-03-01 09:35:00Z],
           [{"2026-03-01T08:00:00Z", :ok}, {"2026-03-01T09:30:00Z", :missed}]},
          {:run_once, ~U[2026-03-01 09:35:00Z],
           [
             {"2026-03-01T08:00:00Z", :ok},
             {"2026-03-01T08:30:00Z", :missed},
             {"2026-03-01T09:30:00Z", :ok}
           ]},
          # Within a minute it is only late.
          {:skip, ~U[2026-03-01 08:30:50Z],
           [{"2026-03-01T08:00:00Z", :ok}, {"2026-03-01T08:30:00Z", :ok}]},
          {:run_once, ~U[2026-03-01 08:29:50Z], [{"2026-03-01T08:00:00Z", :ok}]}
        ] do
      @tag missed: missed, late: late, expected: expected
      test "while down until #{late} with #{missed}", %{tmp_dir: folder} = context do
        write(folder, %{
          "a/SKILL.md" =>
            page("a", handler: inspect(Quick), schedule: "*/30 * * * *", run_as: "default")
        })

        clock = clock()
        book = scheduled(folder, clock)
        at(book, clock, ~U[2026-03-01 08:00:00Z])
        Scheduler.await(book)
        stop_supervised!(book)

        set(clock, context.late)
        book = scheduled(folder, clock, schedules: [missed: context.missed])
        Scheduler.await(book)
        assert for({"a", at, status} <- rows(book), do: {at, status}) == context.expected
      end
    end

    test "after the clock jumped forward", %{tmp_dir: folder} do
      write(folder, %{
        "a/SKILL.md" =>
          page("a", handler: inspect(Quick), schedule: "*/30 * * * *", run_as: "default")
      })

      clock = clock()
      book = scheduled(folder, clock)
      at(book, clock, ~U[2026-03-01 09:35:00Z])
      at(book, clock, ~U[2026-03-01 10:00:00Z])
      Scheduler.await(book)

      assert rows(book) == [
               {"a", "2026-03-01T09:30:00Z", :missed},
               {"a", "2026-03-01T10:00:00Z", :ok}
             ]

      {:ok, [_, row]} =
        Firings.list(Book.sql(Book.fetch!(book)), Skillbook.Profile.unrestricted(), 10, nil)

      assert row.text ==
               "No node could run it in time. Others were missed since 2026-03-01 08:00:00Z."
    end

    test "after the clock was years ahead, later firings run", %{
      tmp_dir: folder
    } do
      write(folder, %{
        "a/SKILL.md" =>
          page("a", handler: inspect(Quick), schedule: "*/30 * * * *", run_as: "default")
      })

      clock = clock()
      book = scheduled(folder, clock)

      times = [
        ~U[2026-03-01 08:00:00Z],
        ~U[2031-01-01 00:00:00Z],
        ~U[2026-03-01 08:00:10Z],
        ~U[2026-03-01 09:00:00Z]
      ]

      for time <- times do
        at(book, clock, time)
        Scheduler.await(book)
      end

      assert for({"a", at, :ok} <- rows(book), do: at) ==
               ["2026-03-01T08:00:00Z", "2026-03-01T09:00:00Z", "2031-01-01T00:00:00Z"]
    end
  end

  test "NUL in a result is stored in PostgreSQL by its code", %{
    tmp_dir: folder
  } do
    write(folder, %{"a/SKILL.md" => job("a", schedule: "* * * * *")})
    clock = clock()
    book = scheduled(folder, clock, store: {SQL.Postgres, url: PostgresCase.database()})
    at(book, clock, ~U[2026-03-01 08:00:00Z])
    assert_receive {:fired, pid, _}
    send(pid, {:answer, {:ok, "a\0b"}})
    Scheduler.await(book)

    assert {:ok, [%{status: :ok, text: "a\\u{0}b"}]} =
             Firings.list(Book.sql(Book.fetch!(book)), Skillbook.Profile.unrestricted(), 10, nil)
  end

  test "pruning leaves the last firing of each entry", %{tmp_dir: folder} do
    book = scheduled(folder, clock())
    sql = Book.sql(Book.fetch!(book))
    by = %{holder: "one", node: "a@here", lease: 1_000, attempts: 1}

    for {name, year} <- [{"a", 2024}, {"a", 2025}, {"b", 2025}, {"b", 2026}, {"c", 2025}] do
      firing = Firing.new(book, name, %{@start | year: year})
      {:ok, true} = Firings.missed(sql, firing, by, @start, "")
    end

    # Each is a place after which the list goes on.
    all = Skillbook.Profile.unrestricted()
    {:ok, [_, _, _, _, _] = listed} = Firings.list(sql, all, 10, nil)

    for {firing, at} <- Enum.with_index(listed, 1) do
      assert Firings.list(sql, all, 10, firing) == {:ok, Enum.drop(listed, at)}
      assert Firings.list(sql, all, 1, firing) == {:ok, Enum.slice(listed, at, 1)}
    end

    assert {:ok, 2, nil} = Firings.prune(sql, ~U[2025-12-01 00:00:00Z], nil)

    assert for({name, at, _} <- rows(book), do: {name, String.slice(at, 0, 4)}) |> Enum.sort() ==
             [
               {"a", "2025"},
               {"b", "2026"},
               {"c", "2025"}
             ]
  end

  test "an engine may fire a moment early", %{tmp_dir: folder} do
    write(folder, %{"a/SKILL.md" => job("a", schedule: "* * * * *")})
    book = scheduled(folder, clock(), schedules: [clock: fn -> ~U[2026-03-01 07:59:59.400Z] end])
    :ok = Scheduler.fire(book, "a")

    assert_receive {:fired, pid, %{assigns: %{scheduled: %{at: ~U[2026-03-01 08:00:00Z]}}}}

    send(pid, {:answer, {:ok, ""}})
    Scheduler.await(book)
  end

  describe "a lease" do
    setup %{tmp_dir: folder} do
      write(folder, %{"a/SKILL.md" => job("a", schedule: "* * * * *")})
      clock = clock()
      book = scheduled(folder, clock, watch: false, drain: 100)

      %{
        book: book,
        clock: clock,
        sql: Book.sql(Book.fetch!(book)),
        firing: Firing.new(book, "a", @start)
      }
    end

    @by %{holder: "another", node: "b@there", lease: 60_000, attempts: 1}

    test "that has expired makes the firing fail", %{
      book: book,
      clock: clock,
      sql: sql,
      firing: firing
    } do
      assert Firings.claim(sql, firing, :new, @by, @start) == :ok

      assert Firings.claim(sql, firing, :new, %{@by | holder: "third"}, @start) ==
               {:error, :taken}

      set(clock, DateTime.add(@start, 60, :second))
      :ok = Server.heartbeat(book)
      assert [{"a", _, :running}] = rows(book)
      set(clock, DateTime.add(@start, 61, :second))
      capture_log(fn -> :ok = Server.heartbeat(book) end)
      assert [{"a", _, :failed}] = rows(book)
      result = %{status: :ok, text: "", duration: 1}
      assert Firings.finish(sql, firing, @by, @start, result) == {:ok, false}
    end

    test "of a clock that is ahead ends if nobody renews it", context do
      %{book: book, clock: clock, sql: sql, firing: firing} = context
      day = 86_400
      ahead = DateTime.add(@start, day)
      assert Firings.claim(sql, firing, :new, @by, ahead) == :ok
      server = Process.whereis(Module.concat(book, "Scheduler"))

      pass = fn leases ->
        earlier = fn at -> at - leases * 60_000 - 1 end
        update = &Map.new(&1, fn {lease, at} -> {lease, earlier.(at)} end)
        :sys.replace_state(server, &Map.update!(&1, :ahead, update))
        capture_log(fn -> :ok = Server.heartbeat(book) end)
      end

      :ok = Server.heartbeat(book)
      pass.(2)
      # Its holder lives.
      {:ok, :renewed} = Firings.renew(sql, firing, @by, DateTime.add(ahead, 20))
      pass.(2)
      assert [{"a", _, :running}] = rows(book)
      # Nor is a clock that is put back a reason.
      set(clock, DateTime.add(@start, -day))
      pass.(2)
      assert [{"a", _, :running}] = rows(book)
      pass.(1)
      assert [{"a", _, :failed}] = rows(book)
    end

    test "that has expired does not block the next firing", %{
      book: book,
      clock: clock,
      sql: sql,
      firing: firing
    } do
      assert Firings.claim(sql, firing, :new, @by, @start) == :ok
      at(book, clock, ~U[2026-03-01 08:01:00Z])
      fired()
      Scheduler.await(book)
      assert [:failed, :missed, :ok] == rows(book) |> Enum.map(&elem(&1, 2)) |> Enum.sort()
    end

    test "is renewed while the firing runs", %{book: book, clock: clock, sql: sql} do
      at(book, clock, ~U[2026-03-01 08:00:00Z])
      assert_receive {:fired, pid, _}
      set(clock, ~U[2026-03-01 08:00:50Z])
      :ok = Server.heartbeat(book)
      assert {:ok, 0} = Firings.expire(sql, @by, ~U[2026-03-01 08:01:40Z])
      send(pid, {:answer, {:ok, ""}})
      Scheduler.await(book)
      assert [{"a", "2026-03-01T08:00:00Z", :ok}] = rows(book)
    end

    test "that is lost stops the firing", %{book: book, clock: clock, sql: sql} do
      for {taken, status} <- [{"holder = 'another'", :running}, {"lease_until = 0", :failed}] do
        now = DateTime.add(read(clock), 60, :second) |> Map.put(:second, 0)
        at(book, clock, now)
        assert_receive {:fired, pid, _}
        ref = monitor(pid)
        SQL.query!(sql, "update skillbook_firings set #{taken} where status = 'running'")
        if status == :failed, do: {:ok, 1} = Firings.expire(sql, @by, now)
        log = capture_log(fn -> :ok = Server.heartbeat(book) end)

        assert log =~
                 "a, due at #{now}, is stopped: its lease was lost to another node, or it " <>
                   "was stored as failed"

        assert_receive {:DOWN, ^ref, :process, ^pid, _}
        Scheduler.await(book)
        assert {"a", DateTime.to_iso8601(now), status} == List.last(rows(book))
        SQL.query!(sql, "update skillbook_firings set status = 'ok'")
      end
    end

    test "that cannot be renewed stops the firing before it expires", %{tmp_dir: folder} do
      name = :"fenced_#{System.unique_integer([:positive])}"
      clock = clock()
      # A third of the lease goes by until the next try.
      store = {FakeSQL, name: name, path: Path.join(folder, "fenced.db")}
      book = scheduled(folder, clock, store: store, schedules: [lease: 3_600_000])
      at(book, clock, ~U[2026-03-01 08:00:00Z])
      assert_receive {:fired, pid, _}
      ref = monitor(pid)
      server = Process.whereis(Module.concat(book, "Scheduler"))

      since = fn ms ->
        :sys.replace_state(server, &%{&1 | renewed: System.monotonic_time(:millisecond) - ms})
      end

      FakeSQL.away(name, true)

      log = fn ms ->
        since.(ms)
        capture_log(fn -> :ok = Server.heartbeat(book) end)
      end

      stops = "stops its scheduled runs: it could not renew their leases"
      refute log.(2_000_000) =~ stops
      assert log.(2_400_000) =~ stops
      assert_receive {:DOWN, ^ref, :process, ^pid, _}
      FakeSQL.away(name, false)
    end

    test "that could not be claimed is caught up when the database is back", %{tmp_dir: folder} do
      name = :"back_#{System.unique_integer([:positive])}"
      clock = clock()

      book =
        scheduled(folder, clock, store: {FakeSQL, name: name, path: Path.join(folder, "back.db")})

      at(book, clock, ~U[2026-03-01 08:00:00Z])
      fired()
      Scheduler.await(book)
      server = Process.whereis(Module.concat(book, "Scheduler"))

      capture_log(fn ->
        FakeSQL.away(name, true)
        at(book, clock, ~U[2026-03-01 08:01:00Z])
        # Waiting processes give up in the end.
        for {_ref, %{task: task}} <- :sys.get_state(server).running,
            do: Process.exit(task.pid, :kill)

        Scheduler.await(book)
        :ok = Server.heartbeat(book)
        FakeSQL.away(name, false)
        :ok = Server.heartbeat(book)
        assert fired().assigns.scheduled.at == ~U[2026-03-01 08:01:00Z]
        Scheduler.await(book)
      end)

      assert [{"a", _, :ok}, {"a", "2026-03-01T08:01:00Z", :ok}] = rows(book)
    end

    test "ends with the book, and running firings fail", %{
      tmp_dir: folder,
      book: book,
      clock: clock
    } do
      at(book, clock, ~U[2026-03-01 08:00:00Z])
      assert_receive {:fired, pid, _}
      ref = monitor(pid)
      stop_supervised!(book)
      assert_receive {:DOWN, ^ref, :process, ^pid, _}
      assert [{"a", "2026-03-01T08:00:00Z", :interrupted}] = rows(scheduled(folder, clock))
    end
  end

  test "interrupted firings run again, at most three times", %{
    tmp_dir: folder
  } do
    write(folder, %{"a/SKILL.md" => job("a", schedule: "0 8 * * *")})
    clock = clock()
    book = scheduled(folder, clock, schedules: [interrupted: :run])
    sql = Book.sql(Book.fetch!(book))
    gone = %{holder: "another", node: "b@there", lease: 1_000, attempts: 3}
    firing = Firing.new(book, "a", @start)
    :ok = Firings.claim(sql, firing, :new, gone, @start)
    set(clock, DateTime.add(@start, 2, :second))
    :ok = Server.heartbeat(book)
    assert fired().assigns.scheduled.at == @start
    Scheduler.await(book)
    assert [{"a", _, :ok}] = rows(book)

    SQL.query!(
      sql,
      "update skillbook_firings set status = 'running', lease_until = 0, attempts = 3"
    )

    capture_log(fn -> :ok = Server.heartbeat(book) end)
    assert [{"a", _, :failed}] = rows(book)
  end

  describe "another queue" do
    test "gets the firing once, and runs it once", %{tmp_dir: folder} do
      write(folder, %{"a/SKILL.md" => job("a", schedule: "0 8 * * *")})
      clock = clock()
      book = scheduled(folder, clock, schedules: [dispatch: {Queues, :hand}])
      at(book, clock, ~U[2026-03-01 08:00:00Z])
      assert_receive {:handed, firing}
      Scheduler.await(book)
      assert firing == Firing.new(book, "a", "2026-03-01T08:00:00Z")
      assert rows(book) == [{"a", "2026-03-01T08:00:00Z", :queued}]

      task = Task.async(fn -> Scheduler.run(firing) end)
      assert fired().assigns.scheduled.at == firing.at
      assert {:ok, %{status: :ok, text: "done"}} = Task.await(task, :infinity)
      assert Scheduler.run(firing) == {:error, :taken}
      assert Scheduler.run(Firing.new(book, "a", "2026-03-02T08:00:00Z")) == {:error, :taken}
      assert rows(book) == [{"a", "2026-03-01T08:00:00Z", :ok}]
    end

    test "gets the record of an entry of the store", %{tmp_dir: folder} do
      clock = clock()
      book = scheduled(folder, clock, schedules: [dispatch: {Queues, :hand}])
      note = %{title: "Milk", kind: :note, content: "Two bottles.", schedule: "0 8 * * *"}
      {:ok, _} = Skillbook.Store.create(Skillbook.view(book), note)
      assert [{"milk", record} = key] = Map.keys(Scheduler.registered(book))
      at(book, clock, ~U[2026-03-01 08:00:00Z])
      assert_receive {:handed, firing}
      Scheduler.await(book)
      assert firing == Firing.new(book, "milk", "2026-03-01T08:00:00Z", record)
      assert Scheduler.run(Firing.new(book, "milk", "2026-03-01T08:00:00Z")) == {:error, :taken}
      assert {:ok, %{status: :template, text: "Two bottles."}} = Scheduler.run(firing)
      assert rows(book) == [{"milk", "2026-03-01T08:00:00Z", :template}]
      # Firing a deleted key has no effect.
      {:ok, _} = Skillbook.Store.delete(Skillbook.view(book), "milk")
      set(clock, ~U[2026-03-02 08:00:00Z])
      Scheduler.fire(book, key)
      Scheduler.await(book)
      assert length(rows(book)) == 1
    end

    test "whose job exits leaves a failed firing", %{tmp_dir: folder} do
      write(folder, %{"a/SKILL.md" => job("a", schedule: "0 8 * * *")})
      clock = clock()
      book = scheduled(folder, clock, schedules: [dispatch: {Queues, :hand}])
      at(book, clock, ~U[2026-03-01 08:00:00Z])
      assert_receive {:handed, firing}
      caller = spawn(fn -> Scheduler.run(firing) end)
      assert_receive {:fired, pid, _}
      ref = monitor(pid)
      Process.exit(caller, :kill)
      assert_receive {:DOWN, ^ref, :process, ^pid, _}
      Scheduler.await(book)
      assert rows(book) == [{"a", "2026-03-01T08:00:00Z", :failed}]
    end

    test "that refuses a firing makes it fail", %{tmp_dir: folder} do
      for {function, text} <- [
            {:full, "It was not dispatched: the queue is full"},
            {:crash, "It was not dispatched: ** (RuntimeError) no queue"},
            {:odd,
             "It was not dispatched: expected Skillbook.SchedulerTest.Queues.odd/1 to return " <>
               ":ok or {:error, text}, got: :later"}
          ] do
        folder = Path.join(folder, "#{function}")
        write(folder, %{"a/SKILL.md" => job("a", schedule: "0 8 * * *")})
        clock = clock()
        book = scheduled(folder, clock, schedules: [dispatch: {Queues, function}])
        at(book, clock, ~U[2026-03-01 08:00:00Z])
        Scheduler.await(book)

        {:ok, [row]} =
          Firings.list(Book.sql(Book.fetch!(book)), Skillbook.Profile.unrestricted(), 10, nil)

        assert {row.status, row.text} == {:failed, text}
      end
    end
  end

  test "a failed run is logged with its entry, time, profile and reason", %{tmp_dir: folder} do
    flow = "## Behavior\n\n```cmd\nmemory.save --secret sesame\n```\n"

    write(folder, %{
      "a/SKILL.md" => job("a", schedule: "0 8 * * *"),
      "w/flow.md" => page("w.flow", [schedule: "0 9 * * *", run_as: "default"], flow)
    })

    clock = clock()
    book = scheduled(folder, clock, builtins: true)

    rows = [
      {~U[2026-03-01 08:00:00Z], {:error, "the disk\nis full"}, "the disk"},
      {~U[2026-03-02 08:00:00Z], {:error, :not_found}, "not found"},
      {~U[2026-03-03 08:00:00Z], {:ok, "done"}, nil}
    ]

    for {time, answer, reason} <- rows do
      log =
        capture_log(fn ->
          at(book, clock, time)
          fired(answer)
          Scheduler.await(book)
        end)

      line = ~s([error] a, due at #{time}, failed as "default": #{reason}\n)
      if reason, do: assert(log =~ line), else: refute(log =~ "a, due at")
    end

    # The results of steps may hold secrets, so only the first line is logged.
    log =
      capture_log(fn ->
        at(book, clock, ~U[2026-03-03 09:00:00Z])
        Scheduler.await(book)
      end)

    assert log =~
             ~s([error] w.flow, due at 2026-03-03 09:00:00Z, failed as "default": w.flow ) <>
               "stopped at step 1 of 1, which failed.\n"

    refute log =~ "sesame"
  end

  test "an entry that needs flags does not run by its schedule", %{tmp_dir: folder} do
    usage = "## Usage\n\nw.a --to <name>\n\n## Flags\n\n--to  Who (required)\n"
    fields = [handler: inspect(Quick), schedule: "'@daily'", run_as: "default"]

    write(folder, %{
      "w/a.md" => page("w.a", fields, usage),
      "w/b.md" => page("w.b", fields, String.replace(usage, "(required)", "(default: ann)")),
      "w/c.md" =>
        page("w.c", fields, "## Usage\n\nw.c (--x <a> | --y <b>)\n\n## Flags\n\n--x  X\n--y  Y\n")
    })

    clock = clock()

    log =
      capture_log(fn ->
        assert Map.keys(Scheduler.registered(scheduled(folder, clock))) == ["w.b"]
      end)

    for {name, flags} <- [{"w.a", "--to"}, {"w.c", "--x or --y"}] do
      assert log =~
               "#{name} does not run by its schedule: expected a command that runs without " <>
                 "flags, got one that requires #{flags}; give each flag a default, or make it " <>
                 "optional"
    end
  end

  test "many schedules cost a book that waits no more than few", %{tmp_dir: folder} do
    [few, many] =
      for count <- [10, 1_000] do
        folder = Path.join(folder, "#{count}")
        page = &job("job-#{&1}", schedule: "0 8 1 1 *")
        write(folder, for(n <- 1..count, into: %{}, do: {"j#{n}/SKILL.md", page.(n)}))
        book = scheduled(folder, clock())
        assert map_size(Scheduler.registered(book)) == count

        for work <- [fn -> Local.tick(book) end, fn -> Server.heartbeat(book) end] do
          work.()
          before = reductions(book)
          for _time <- 1..5, do: work.()
          reductions(book) - before
        end
      end

    for {few, many} <- Enum.zip(few, many), do: assert(many < 2 * few)
  end

  defp reductions(book) do
    for process <- ["Scheduler", "Scheduler.Local", "Scheduler.Write"] do
      pid = book |> Module.concat(process) |> Process.whereis()
      {:reductions, count} = Process.info(pid, :reductions)
      count
    end
    |> Enum.sum()
  end

  test "built-in schedules are off until the book names them", %{tmp_dir: folder} do
    digest = "workflows.daily_digest"

    rows = [
      {[], []},
      {[run_as: "default"], []},
      {[run_as: "default", builtins: ["workflows.*"]], [digest]},
      {[run_as: "default", builtins: [digest]], [digest]},
      {[run_as: "default", builtins: ["tasks.*"]], []},
      {[builtins: ["*"]], []}
    ]

    for {{schedules, expected}, index} <- Enum.with_index(rows) do
      clock = clock()
      store = Path.join(folder, "#{index}.db")

      {book, log} =
        with_log(fn ->
          scheduled(folder, clock, builtins: true, store: store, schedules: schedules)
        end)

      assert Map.keys(Scheduler.registered(book)) == expected
      {:ok, agenda} = Skillbook.schedule(View.all(book))
      runs_as = if expected == [], do: nil, else: "default"
      off = schedules[:builtins] in [nil, ["tasks.*"]]
      assert [%{name: ^digest, run_as: ^runs_as, off: ^off, at: at, local: local}] = agenda.next
      # It does not run, so there is no time at which it would.
      assert {length(at), length(local)} == if(off, do: {0, 0}, else: {1, 1})
      # Only a book that enables it needs to know that it does not run.
      warned = log =~ "#{digest} does not run by its schedule"
      assert warned == (schedules == [builtins: ["*"]])

      list = hd(Skillbook.run(Skillbook.view(book), "```cmd\nworkflow.list\n```").results).content
      on = expected != [] or schedules == [builtins: ["*"]]

      assert list =~
               if(on, do: "#{digest} [0 8 * * 1-5, next 20", else: "#{digest} [0 8 * * 1-5, off]")

      stop_supervised!(book)
    end

    assert {:error, %OptionError{option: :builtins}} =
             Skillbook.start_link(
               name: :odd_glob,
               store: ":memory:",
               schedules: [builtins: ["["]]
             )
  end

  describe "the agenda" do
    test "shows the profile of the option to it and to unrestricted views", %{tmp_dir: folder} do
      write(folder, %{
        "a/SKILL.md" => page("a", handler: inspect(Quick), schedule: "'@daily'"),
        "b/SKILL.md" => page("b", handler: inspect(Quick), schedule: "'@daily'", run_as: "ann")
      })

      profiles = [[id: "ann"], [id: "bob"]]
      options = [profiles: profiles, schedules: [run_as: "bob"]]
      book = scheduled(folder, clock(), options)

      as = fn view ->
        {:ok, agenda} = Skillbook.schedule(view)
        for row <- agenda.next, do: {row.name, row.run_as}
      end

      assert as.(View.all(book)) == [{"a", "bob"}, {"b", "ann"}]
      assert as.(Skillbook.view(book, "bob")) == [{"a", "bob"}, {"b", "ann"}]
      assert as.(Skillbook.view(book, "ann")) == [{"a", nil}, {"b", "ann"}]
    end

    test "lists the view's entries, and each profile's own results", %{tmp_dir: folder} do
      write(folder, %{
        "a/SKILL.md" =>
          page("a", handler: inspect(Quick), schedule: "0 8 * * *", run_as: "default"),
        "b/SKILL.md" =>
          page("b",
            handler: inspect(Quick),
            schedule: "0 9 * * *",
            run_as: "boss",
            visibility_labels: "[secret]"
          ),
        "c/SKILL.md" => page("c", handler: inspect(Quick), schedule: "0 10 * * *", run_as: "boss")
      })

      clock = clock()

      book =
        scheduled(folder, clock, profiles: [[id: "default"], [id: "boss", grants: ["secret"]]])

      for hour <- 8..10 do
        at(book, clock, DateTime.new!(~D[2026-03-01], Time.new!(hour, 0, 0)))
        Scheduler.await(book)
      end

      shown = fn view ->
        {:ok, agenda} = Skillbook.schedule(view)
        {Enum.map(agenda.next, & &1.name), Enum.map(agenda.last, & &1.name)}
      end

      assert shown.(View.all(book)) == {["a", "b", "c"], ["c", "b", "a"]}
      assert shown.(Skillbook.view(book, "boss")) == {["a", "b", "c"], ["c", "b"]}
      assert shown.(Skillbook.view(book)) == {["a", "c"], ["a"]}

      {:ok, agenda} = Skillbook.schedule(View.all(book), names: ["a"], times: 2, last: 1)

      assert [%{name: "a", at: [~U[2026-03-02 08:00:00Z], ~U[2026-03-03 08:00:00Z]]}] =
               agenda.next

      assert [%{name: "a", status: :ok, text: "done"}] = agenda.last

      # The next times are kept until the first has come.
      for {hour, minute, first} <- [{8, 30, 9}, {8, 59, 9}, {9, 0, 10}, {7, 0, 8}, {11, 0, 8}] do
        now = DateTime.new!(~D[2026-03-01], Time.new!(hour, minute, 0))
        {:ok, %{next: [next | _]}} = Skillbook.schedule(View.all(book), now: now)
        assert {hour, minute, hd(next.at).hour} == {hour, minute, first}
      end

      {:error, error} = Skillbook.schedule(View.all(book), last: 0)

      assert Exception.message(error) ==
               "expected a number from 1 to 1000 as the option :last of an agenda, got: 0"
    end
  end

  describe "the queue of times" do
    test "returns times in order across daylight saving changes" do
      berlin = Schedule.parse!("30 2 * * *", "Europe/Berlin")
      queue = Queue.new() |> Queue.put("night", berlin, ~U[2026-03-28 12:00:00Z])
      assert Queue.next(queue) == ~U[2026-03-29 01:00:00Z]
      assert {[{"night", first, first}], queue} = Queue.due(queue, ~U[2026-03-29 01:00:10Z])
      assert Queue.next(queue) == ~U[2026-03-30 00:30:00Z]

      queue = Queue.put(queue, "night", berlin, ~U[2026-10-24 12:00:00Z])
      assert {[{"night", first, first}], queue} = Queue.due(queue, ~U[2026-10-25 02:00:00Z])
      assert first == ~U[2026-10-25 00:30:00Z]
      assert Queue.next(queue) == ~U[2026-10-26 01:30:00Z]
    end

    test "returns the first and last of several due times" do
      minutely = Schedule.parse!("* * * * *")

      queue =
        Queue.new()
        |> Queue.put("a", minutely, @start)
        |> Queue.put("b", Schedule.parse!("@yearly"), @start)

      {due, queue} = Queue.due(queue, ~U[2026-05-01 12:00:30Z])
      assert due == [{"a", ~U[2026-03-01 08:00:00Z], ~U[2026-05-01 12:00:00Z]}]
      assert Queue.due(queue, ~U[2026-05-01 12:00:59Z]) |> elem(0) == []
      assert queue |> Queue.delete("a") |> Queue.next() == ~U[2027-01-01 00:00:00Z]
      assert Queue.new() |> Queue.next() == nil
    end

    test "covers a year of a thousand schedules" do
      zones = ~w(UTC Europe/Berlin America/New_York Asia/Kolkata)

      schedules =
        for n <- 1..1_000,
            do:
              {"job-#{n}",
               Schedule.parse!("#{rem(n, 60)} #{rem(n, 24)} * * *", Enum.at(zones, rem(n, 4)))}

      begin = ~U[2026-01-01 00:00:00Z]
      until = ~U[2027-01-01 00:00:00Z]

      queue =
        Enum.reduce(schedules, Queue.new(), fn {name, s}, queue ->
          Queue.put(queue, name, s, begin)
        end)

      counts = year(queue, until, %{})

      expected =
        Map.new(schedules, fn {name, schedule} ->
          times =
            schedule
            |> Schedule.upcoming(begin, 400)
            |> Enum.count(&(DateTime.compare(&1, until) == :lt))

          {name, times}
        end)

      assert counts == expected
    end
  end

  defp year(queue, until, counts) do
    next = Queue.next(queue)

    if DateTime.compare(next, until) == :lt do
      {due, queue} = Queue.due(queue, next)

      year(
        queue,
        until,
        Enum.reduce(due, counts, fn {name, at, at}, counts ->
          Map.update(counts, name, 1, &(&1 + 1))
        end)
      )
    else
      counts
    end
  end

  test "a book runs all firings of a year", %{tmp_dir: folder} do
    pages =
      for {name, schedule} <- [
            weekly: "0 9 * * MON",
            monthly: "0 0 1 * *",
            daily: "30 2 * * *",
            twice: "0 8,20 * * *"
          ],
          into: %{},
          do:
            {"#{name}/SKILL.md",
             page(name,
               handler: inspect(Quick),
               schedule: "'#{schedule}'",
               timezone: "Europe/Berlin",
               run_as: "default"
             )}

    write(folder, pages)
    clock = clock()
    set(clock, ~U[2026-01-01 00:00:00Z])
    book = scheduled(folder, clock, store: ":memory:", usage: false, schedules: [keep: 1_000])
    schedules = Scheduler.registered(book)

    times =
      schedules
      |> Enum.flat_map(fn {_name, schedule} ->
        Schedule.upcoming(schedule, ~U[2026-01-01 00:00:00Z], 800)
      end)
      |> Enum.filter(&(&1.year == 2026))
      |> Enum.uniq()
      |> Enum.sort(DateTime)

    for time <- times do
      at(book, clock, time)
      Scheduler.await(book)
    end

    %{rows: rows} =
      SQL.query!(
        Book.sql(Book.fetch!(book)),
        "select name, status, count(*) from skillbook_firings group by name, status order by name"
      )

    assert rows == [
             ["daily", "ok", 365],
             ["monthly", "ok", 12],
             ["twice", "ok", 730],
             ["weekly", "ok", 52]
           ]
  end

  test "results are deleted after :keep days", %{tmp_dir: folder} do
    write(folder, %{
      "a/SKILL.md" => page("a", handler: inspect(Quick), schedule: "0 8 * * *", run_as: "default")
    })

    clock = clock()
    book = scheduled(folder, clock, schedules: [keep: 2])

    for day <- 1..5 do
      at(book, clock, DateTime.new!(Date.new!(2026, 3, day), ~T[08:00:00]))
      Scheduler.await(book)
    end

    assert {:ok, %{firings: 2}} = Pruner.run(Book.fetch!(book), ~U[2026-03-05 08:00:00Z])
    assert Enum.map(rows(book), &elem(&1, 1)) == for(day <- 3..5, do: "2026-03-0#{day}T08:00:00Z")
  end

  test "invalid options are refused" do
    {:error, error} = Skillbook.start_link(name: :no_store, scheduler: Skillbook.Scheduler.Local)
    assert %OptionError{option: :scheduler} = error

    assert Exception.message(error) ==
             "expected false, for the book has no :store to claim firings in, as the option " <>
               ":scheduler of a book, got: Skillbook.Scheduler.Local"

    for {schedules, option} <- [
          {[lease: 0], :lease},
          {[missed: :all], :missed},
          {[dispatch: "x"], :dispatch},
          {[every: 1], :every},
          {[clock: 1], :clock},
          {:off, :schedules}
        ] do
      assert {:error, %OptionError{option: ^option}} =
               Skillbook.start_link(name: :no_store, schedules: schedules)
    end
  end

  test "the intersection of two profiles' rights" do
    {:ok, all} = Profile.new(id: "all", grants: :all)

    {:ok, few} =
      Profile.new(
        id: "few",
        grants: ["a"],
        skills: ["x.*"],
        tools: ["Read", "Write"],
        writes: :ask
      )

    {:ok, other} = Profile.new(id: "other", grants: ["a", "b"], tools: ["Read"], writes: :deny)

    for {one, two, grants, within, tools, writes} <- [
          {all, few, ["a"], [["x.*"]], ["Read", "Write"], :ask},
          {few, all, ["a"], [], ["Read", "Write"], :ask},
          {few, other, ["a"], [], ["Read"], :deny},
          {other, few, ["a"], [["x.*"]], ["Read"], :deny}
        ] do
      assert {:ok, both} = Profile.meet(one, two)

      assert {both.id, both.grants, both.within, both.tools, both.writes} ==
               {one.id, grants, within, tools, writes}

      assert both.skills == one.skills
      # Entries that exclude one profile are excluded for both.
      assert both.others == [two.id]
    end
  end
end
