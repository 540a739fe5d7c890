defmodule Skillbook.Run.OperationsTest do
  # Schedules that operators pause, resume and run, and breakers that they reset.
  use Skillbook.SkillsCase, async: true

  import Skillbook.Eventually

  alias Skillbook.Reply.Pipeline
  alias Skillbook.Run.{CircuitBreaker, Operations}
  alias Skillbook.Scheduler.{Firings, Local, Server}
  alias Skillbook.{Book, OutOfServiceError, Peers, PostgresCase, SQL, ScheduledRows, Scheduler}
  alias Skillbook.View

  doctest Skillbook.OperationError

  @moduletag :tmp_dir
  @moduletag :capture_log
  @start ~U[2026-03-01 07:59:30Z]

  defp clock, do: :atomics.new(1, []) |> tap(&set(&1, @start))
  defp set(clock, time), do: :atomics.put(clock, 1, DateTime.to_unix(time))

  # A schedule of each half hour, in a book whose clock the test sets.
  defp scheduled(context, clock, options \\ []) do
    write(context.tmp_dir, %{
      "a/SKILL.md" =>
        page("a", handler("Text") ++ [schedule: "'*/30 * * * *'", run_as: "default"])
    })

    {schedules, options} = Keyword.pop(options, :schedules, [])
    now = fn -> clock |> :atomics.get(1) |> DateTime.from_unix!() end

    book =
      [
        sources: [context.tmp_dir],
        builtins: false,
        watch: false,
        store: Map.get_lazy(context, :store, fn -> Path.join(context.tmp_dir, "skills.db") end),
        schedules: Keyword.merge([clock: now], schedules)
      ]
      |> Keyword.merge(options)
      |> book()

    if Book.fetch!(book).of_parts.scheduler, do: Scheduler.registered(book)
    book
  end

  # The engine and the scheduler look at the clock and the database, and do what is due.
  defp at(book, clock, time) do
    set(clock, time)
    Local.tick(book)
    settle(book)
  end

  # The follower of the database tells the scheduler first.
  defp settle(book) do
    :sys.get_state(Module.concat(book, Follower))
    Server.heartbeat(book)
    Scheduler.await(book)
  end

  defp sql(book), do: Book.sql(Book.fetch!(book))

  defp rows(book) do
    {:ok, rows} = Firings.list(sql(book), Skillbook.Profile.unrestricted(), 1_000, nil)
    for row <- Enum.reverse(rows), do: {DateTime.to_iso8601(row.at), row.status}
  end

  defp text(book) do
    {:ok, rows} = Firings.list(sql(book), Skillbook.Profile.unrestricted(), 1_000, nil)
    for(%{status: :missed} = row <- rows, do: row.text) |> List.first()
  end

  defp pause(book, options \\ []),
    do: Skillbook.pause_schedule(book, "a", Keyword.merge([by: "Bob"], options))

  defp resume(book, options \\ []),
    do: Skillbook.resume_schedule(book, "a", [by: "Ann"] ++ options)

  # One of the two databases; the book's clock stays at @start.
  defp with_store(context, :sqlite), do: context

  defp with_store(context, :postgres),
    do: Map.put(context, :store, {SQL.Postgres, url: PostgresCase.database()})

  describe "a paused schedule" do
    # The option :missed, the time before the pause, the times at which the engine looks, the end
    # of the pause, and the firings.
    for {missed, before, during, resumed, expected} <- [
          # One that has never fired has missed what came after the beginning of the pause.
          {:skip, nil, [~U[2026-03-01 08:00:00Z], ~U[2026-03-01 08:30:00Z]],
           ~U[2026-03-01 09:35:00Z], [{"2026-03-01T09:30:00Z", :missed}]},
          {:run_once, nil, [~U[2026-03-01 08:00:00Z], ~U[2026-03-01 08:30:00Z]],
           ~U[2026-03-01 09:35:00Z],
           [{"2026-03-01T08:00:00Z", :missed}, {"2026-03-01T09:30:00Z", :ok}]},
          # Within a minute it is only late.
          {:skip, nil, [~U[2026-03-01 08:00:00Z]], ~U[2026-03-01 08:00:50Z],
           [{"2026-03-01T08:00:00Z", :ok}]},
          {:run_once, nil, [~U[2026-03-01 08:00:00Z]], ~U[2026-03-01 08:10:00Z],
           [{"2026-03-01T08:00:00Z", :ok}]},
          {:skip, nil, [], ~U[2026-03-01 07:59:50Z], []},
          {:skip, ~U[2026-03-01 08:00:00Z], [~U[2026-03-01 08:30:00Z]], ~U[2026-03-01 08:40:00Z],
           [{"2026-03-01T08:00:00Z", :ok}, {"2026-03-01T08:30:00Z", :missed}]}
        ],
        {dialect, restart?} <- [sqlite: false, sqlite: true, postgres: false] do
      @tag row: {missed, before, during, resumed, expected}
      test "until #{resumed}, #{missed}, after #{inspect(before)}, #{dialect}, " <>
             "restart: #{restart?}",
           context do
        {missed, before, during, resumed, expected} = context.row
        context = with_store(context, unquote(dialect))
        clock = clock()
        options = [schedules: [missed: missed]]
        book = scheduled(context, clock, options)
        if before, do: at(book, clock, before)
        {:ok, %{by: "Bob", reason: "Why"}} = pause(book, reason: "Why")
        fired = rows(book)
        for time <- during ++ [resumed], do: at(book, clock, time)
        assert rows(book) == fired

        book =
          if unquote(restart?) do
            stop_supervised!(book)
            scheduled(context, clock, options) |> tap(&Scheduler.await/1)
          else
            book
          end

        # Still paused, with and without a look at the time.
        assert {rows(book), for(pause <- pauses(book), do: {pause.by, pause.reason})} ==
                 {fired, [{"Bob", "Why"}]}

        assert {:ok, %{by: "Bob"}} = resume(book)
        settle(book)
        assert rows(book) == expected
        assert pauses(book) == [nil]
        # It goes on.
        next = if resumed.hour == 9, do: ~U[2026-03-01 10:00:00Z], else: ~U[2026-03-01 09:00:00Z]
        for minutes <- [-30, 0], do: at(book, clock, DateTime.add(next, minutes * 60))
        assert List.last(rows(book)) == {DateTime.to_iso8601(next), :ok}
      end
    end

    defp pauses(book) do
      {:ok, %{next: next}} = book |> View.all() |> Skillbook.schedule()
      Enum.map(next, & &1.paused)
    end

    test "says why its times did not run", context do
      clock = clock()
      book = scheduled(context, clock)
      {:ok, _} = pause(book)
      set(clock, ~U[2026-03-01 09:35:00Z])
      {:ok, _} = resume(book)
      settle(book)

      assert text(book) ==
               "The schedule was paused. Others were missed since 2026-03-01 08:00:00Z."
    end

    test "is seen by a node that was told neither of its begin nor of its end", context do
      clock = clock()
      book = scheduled(context, clock, store_poll: 600_000)
      # As by another node whose notice is lost: without the setting that followers read.
      insert = """
      insert into skillbook_operations (revision, action, skill, record, at, made_by, active)
      values (7, 'pause', 'a', 0, '2026-03-01T07:59:40Z', 'Bob', 1)
      """

      SQL.query!(sql(book), insert)
      set(clock, ~U[2026-03-01 08:00:00Z])
      Local.tick(book)
      Scheduler.await(book)
      assert rows(book) == []
      SQL.query!(sql(book), "update skillbook_operations set active = 0")
      settle(book)
      assert rows(book) == [{"2026-03-01T08:00:00Z", :ok}]
    end

    test "stays paused by the first, and resuming twice changes nothing", context do
      book = scheduled(context, clock())
      {:ok, pause} = pause(book)
      assert Skillbook.pause_schedule(book, "a", by: "Eve", reason: "no") == {:ok, pause}
      assert resume(book) == {:ok, pause}
      assert resume(book) == {:ok, nil}
      {:ok, rows} = Operations.list(sql(book), Skillbook.Profile.unrestricted(), 10)
      assert for(row <- rows, do: {row.action, row.by}) == [{"resume", "Ann"}, {"pause", "Bob"}]
    end

    test "does not run again what a dead node began", context do
      # The attempts of a firing, whether its schedule is paused, and how it ends.
      for {attempts, paused?, failed, taken} <- [
            {1, false, 1, 0},
            {3, false, 0, 1},
            {3, true, 1, 0}
          ] do
        book = scheduled(context, clock(), store: ":memory:", scheduler: false)
        firing = Skillbook.Firing.new(book, "a", @start)
        by = &%{holder: &1, node: "n", lease: 1_000, attempts: attempts}
        :ok = Firings.claim(sql(book), firing, :new, by.("dead"), @start)
        if paused?, do: {:ok, _} = pause(book)
        now = DateTime.add(@start, 60)
        assert Firings.expire(sql(book), by.("b"), now) == {:ok, failed}
        {:ok, firings} = Firings.take_over(sql(book), book, by.("b"), now, 9)
        assert length(firings) == taken
      end
    end
  end

  describe "a run now" do
    for dialect <- [:sqlite, :postgres] do
      test "is one firing, also of a paused schedule, #{dialect}", context do
        clock = clock()
        book = scheduled(with_store(context, unquote(dialect)), clock)
        {:ok, _} = pause(book)
        assert {:ok, firing} = Skillbook.run_schedule(book, "a", by: "Bob")
        assert {firing.name, firing.record, firing.at} == {"a", nil, @start}
        # A second one in the same second is the same firing.
        {:ok, ^firing} = Skillbook.run_schedule(book, "a", by: "Bob")
        settle(book)
        assert rows(book) == [{"2026-03-01T07:59:30Z", :ok}]
        {:ok, %{last: [%{profile: "default"}]}} = Skillbook.schedule(book)
        # It is not a time of the schedule, which goes on after it.
        {:ok, _} = resume(book)
        at(book, clock, ~U[2026-03-01 08:00:00Z])

        assert rows(book) == [{"2026-03-01T07:59:30Z", :ok}, {"2026-03-01T08:00:00Z", :ok}]
      end
    end

    test "of a book without an engine is done by another one of the database", context do
      clock = clock()
      other = scheduled(context, clock, scheduler: false)
      {:ok, _firing} = Skillbook.run_schedule(other, "a", by: "Bob")
      book = scheduled(context, clock, [])
      # Without a look at the database by hand: the followers tell.
      assert eventually(fn -> rows(book) == [{"2026-03-01T07:59:30Z", :ok}] end)
      set(clock, ~U[2026-03-01 07:59:40Z])
      {:ok, _firing} = Skillbook.run_schedule(other, "a", by: "Bob")

      assert eventually(fn ->
               rows(book) == [{"2026-03-01T07:59:30Z", :ok}, {"2026-03-01T07:59:40Z", :ok}]
             end)
    end

    # How long nobody began it, the option :missed, and the firings.
    for {late, missed, expected} <- [
          {60, :skip, [{"2026-03-01T07:59:30Z", :ok}]},
          {61, :skip, [{"2026-03-01T07:59:30Z", :missed}]},
          {61, :run_once, [{"2026-03-01T07:59:30Z", :ok}]},
          {86_399, :run_once, [{"2026-03-01T07:59:30Z", :ok}]},
          {86_400, :run_once, []}
        ] do
      @tag row: {late, missed, expected}
      test "that nobody began for #{late} s, #{missed}", context do
        {late, missed, expected} = context.row
        clock = clock()
        other = scheduled(context, clock, scheduler: false)
        {:ok, _firing} = Skillbook.run_schedule(other, "a", by: "Bob")
        set(clock, DateTime.add(@start, late))
        book = scheduled(context, clock, schedules: [missed: missed])
        settle(book)
        assert for({"2026-03-01T07:59:30Z", _} = row <- rows(book), do: row) == expected
      end
    end
  end

  test "wrong arguments are refused, and change nothing", context do
    write(context.tmp_dir, %{
      "b/SKILL.md" => page("b"),
      "nobody/SKILL.md" => page("nobody", schedule: "'@hourly'", run_as: "gone"),
      "hidden/SKILL.md" =>
        page("hidden", schedule: "'@hourly'", run_as: "bob", visibility_labels: "[staff]")
    })

    profiles = [[id: "default", grants: :all], [id: "ann"], [id: "bob", grants: ["staff"]]]
    book = scheduled(context, clock(), profiles: profiles, schedules: [run_as: "default"])
    none = scheduled(Map.put(context, :store, nil), clock(), profiles: profiles, scheduler: false)

    schedules = [
      &Skillbook.pause_schedule/3,
      &Skillbook.resume_schedule/3,
      &Skillbook.run_schedule/3
    ]

    all = [(&Skillbook.reset_breaker/3) | schedules]
    ann = Skillbook.view(book, "ann")
    by = [by: "Bob"]

    no_schedule =
      "expected a skill with a schedule, got `b`, which has none; `skillbook schedule` and " <>
        "Skillbook.schedule/2 list those that have one"

    for {functions, view, name, options, message} <- [
          {schedules, book, "b", by, no_schedule},
          {schedules, none, "a", by,
           "expected a book with a database, without which `a` does not run by its schedule; " <>
             "set the option `store`, for example store: \"skillbook.db\""},
          {schedules, ann, "a", by,
           "expected the view of the profile that `a` runs as, or an unrestricted one; an " <>
             "operator can do it with operator: true"},
          {[&Skillbook.run_schedule/3], book, "nobody", by,
           "`nobody` does not run by its schedule in this book: expected one of " <>
             "the profiles ann, bob, default as `run_as`, got \"gone\""},
          {[&Skillbook.run_schedule/3], ann, "nobody", [operator: true] ++ by,
           "`nobody` does not run by its schedule in this book; the book's log has the reason"},
          {[&Skillbook.reset_breaker/3], book, "b", by,
           "expected a skill with a handler, got `b`, which has none, and so no circuit " <>
             "breaker; Skillbook.diagnostics/1 lists the skills that are out of service"},
          {all, book, "a", [], "an operation needs the option :by"},
          {all, book, "a", [by: ""],
           "expected text of 1 to 1000 characters as the option :by of an operation, got: \"\""},
          {all, book, "a", [operator: 1] ++ by,
           "expected a boolean as the option :operator of an operation, got: 1"},
          {all, book, "a", [because: "x"] ++ by,
           "unknown option :because for an operation. The options are :by, :reason, :operator"}
        ],
        function <- functions do
      assert {:error, error} = function.(view, name, options)
      assert {function, Exception.message(error)} == {function, message}
    end

    # In a transaction other nodes could be told too early.
    for function <- all do
      assert {:error, error} = SQL.transaction(sql(book), fn _sql -> function.(book, "a", by) end)

      assert Exception.message(error) ==
               "nothing was done to `a`: the calling process is in a transaction of the " <>
                 "book's database; do it after the transaction"
    end

    assert Operations.list(sql(book), Skillbook.Profile.unrestricted(), 10) == {:ok, []}
    # An operator, and the profile that it runs as.
    assert {:ok, _} = Skillbook.pause_schedule(ann, "a", [operator: true] ++ by)
    assert {:ok, _} = Skillbook.pause_schedule(book, "hidden", [profile: "bob"] ++ by)
  end

  test "a hidden skill is like a missing one, also in the agenda", context do
    secret = handler("Text") ++ [schedule: "'@hourly'", run_as: "staff", visibility_labels: "[s]"]
    write(context.tmp_dir, %{"zebra/SKILL.md" => page("zebra", secret)})
    profiles = [[id: "default"], [id: "staff", grants: ["s"]]]
    book = scheduled(context, clock(), profiles: profiles)
    guest = Skillbook.view(book, "default")
    {:ok, _} = Skillbook.pause_schedule(book, "zebra", profile: "staff", by: "Eve")

    for function <- [
          &Skillbook.pause_schedule/3,
          &Skillbook.resume_schedule/3,
          &Skillbook.run_schedule/3,
          &Skillbook.reset_breaker/3
        ],
        options <- [[by: "Bob"], [by: "Bob", operator: true]] do
      {:error, hidden} = function.(guest, "zebra", options)
      {:error, missing} = function.(guest, "qqqqq", options)
      text = &Exception.message/1
      assert String.replace(text.(hidden), "zebra", "qqqqq") == text.(missing)
    end

    {:ok, %{next: [%{name: "a", paused: nil}]}} = Skillbook.schedule(guest)
    # Only unrestricted views see the author of a pause.
    {:ok, _} = Skillbook.pause_schedule(guest, "a", by: "Bob", reason: "Secret")
    {:ok, %{next: [%{paused: pause}]}} = Skillbook.schedule(guest)
    assert pause == %{at: @start, by: nil, reason: nil}
    {:ok, %{next: next}} = Skillbook.schedule(View.all(book), names: ["a"])
    assert [%{paused: %{by: "Bob", reason: "Secret"}}] = next
  end

  test "operations are kept with their authors, for as long as results", context do
    clock = clock()
    book = scheduled(context, clock, scheduler: false, schedules: [keep: 2])
    {:ok, _} = pause(book, by: "Bob\0", reason: "Mail")
    {:ok, _} = Skillbook.run_schedule(book, "a", by: "Ann")

    {:ok, []} =
      Skillbook.reset_breaker(book, "a", by: "Ann", profile: %Skillbook.Profile{id: "x"})

    {:ok, rows} = Operations.list(sql(book), Skillbook.Profile.unrestricted(), 10)

    kept = for row <- rows, do: {row.action, row.name, row.profile, row.at, row.by, row.reason}

    assert kept ==
             [
               {"reset", "a", "x", @start, "Ann", nil},
               {"run", "a", nil, @start, "Ann", nil},
               {"pause", "a", nil, @start, "Bob\uFFFD", "Mail"}
             ]

    # The pause still holds, so it stays.
    set(clock, DateTime.add(@start, 3, :day))
    {:ok, []} = Skillbook.reset_breaker(book, "a", by: "Eve")
    {:ok, rows} = Operations.list(sql(book), Skillbook.Profile.unrestricted(), 10)

    assert for(row <- rows, do: {row.action, row.by}) == [
             {"reset", "Eve"},
             {"pause", "Bob\uFFFD"}
           ]
  end

  test "a limited number of schedules is paused", context do
    book = scheduled(context, clock(), store: ":memory:", scheduler: false)

    SQL.query!(sql(book), """
    with recursive n(i) as (select -1 union all select i - 1 from n where i > -10000)
    insert into skillbook_operations (revision, action, skill, record, at, made_by, active)
    select i, 'pause', 'x' || i, 0, '2026-03-01T07:00:00Z', 'Eve', 1 from n
    """)

    assert {:error, error} = pause(book)

    assert Exception.message(error) ==
             "`a` was not paused: too many schedules of this database are paused; resume or " <>
               "delete some of them"
  end

  describe "a reset breaker" do
    defp breaker(context, options \\ []) do
      write(context.tmp_dir, %{"x/run.md" => page("x.run", handler("Call"))})

      [sources: [context.tmp_dir], builtins: false, watch: false, store: context[:store]]
      |> Keyword.merge(breaker: [failures: 1, cooldown: 600_000])
      |> Keyword.merge(options)
      |> book()
      |> tap(&:telemetry.listen/1)
    end

    defp call(book, profile, answer) do
      view = Skillbook.view(book, %Skillbook.Profile{id: profile})
      call = if answer == :fail, do: fn _, _ -> raise "oops" end, else: fn _, _ -> {:ok, "ok"} end
      [result] = Pipeline.commands(view, ["x.run"], assigns: %{call: call})
      result
    end

    defp serves?(book, profile),
      do: not match?(%OutOfServiceError{}, call(book, profile, :answer).error)

    # As whom it is reset, and the profiles that it serves afterwards.
    for {profile, options, served} <- [
          {nil, [], ["ann", "bob"]},
          {"ann", [], ["ann"]},
          {"ann", [operator: true], ["ann", "bob"]},
          {"eve", [], []}
        ],
        store <- [nil, ":memory:"] do
      @tag row: {profile, options, served}, store: store
      test "as #{profile || "the application"} #{inspect(options)}, store: #{store}", context do
        {profile, options, served} = context.row
        book = breaker(context)
        for id <- ["ann", "bob"], do: call(book, id, :fail)
        profile = profile && [profile: %Skillbook.Profile{id: profile}]
        view = if profile, do: book, else: View.all(book)
        options = [by: "Bob"] ++ options ++ (profile || [])
        assert {:ok, rows} = Skillbook.reset_breaker(view, "x.run", options)
        assert Enum.map(rows, &{&1.profile, &1.state}) == Enum.map(served, &{&1, :open})
        # The name of another skill, and of nothing, reset nothing.
        assert {:error, _} = Skillbook.reset_breaker(view, "x.none", options)
        assert Enum.filter(["ann", "bob"], &serves?(book, &1)) == served

        for id <- served do
          assert_received {[:skillbook, :breaker, :reset], %{failures: 1},
                           %{book: ^book, skill: "x.run", profile: ^id}}
        end

        assert_received {[:skillbook, :operation, :done], %{system_time: _},
                         %{book: ^book, skill: "x.run", action: "reset"}}
      end
    end

    test "is one of all books of the database", context do
      context = Map.put(context, :store, Path.join(context.tmp_dir, "skills.db"))
      [one, other] = for _ <- 1..2, do: breaker(context, scheduler: false)
      for id <- ["ann", "bob"], do: call(other, id, :fail)
      ann = Skillbook.view(one, %Skillbook.Profile{id: "ann"})
      # This node has none to forget, and tells the other one.
      assert Skillbook.reset_breaker(ann, "x.run", by: "Bob") == {:ok, []}
      assert eventually(fn -> serves?(other, "ann") end)
      refute serves?(other, "bob")
      {:ok, []} = Skillbook.reset_breaker(View.all(one), "x.run", by: "Bob")
      assert eventually(fn -> serves?(other, "bob") end)
    end

    test "that opens again is not closed by its earlier time", context do
      book = breaker(context)
      call(book, "ann", :fail)
      table = Module.concat(book, "CircuitBreaker")
      [{key, fingerprint, :open, 1, _since, retry_at}] = :ets.tab2list(table)
      {:ok, [_]} = Skillbook.reset_breaker(View.all(book), "x.run", by: "Bob")
      call(book, "ann", :fail)
      assert [{_, _, :open, 1, _, later}] = :ets.tab2list(table)
      send(table, {:cooled, key, fingerprint, retry_at})
      :sys.get_state(table)
      refute serves?(book, "ann")
      send(table, {:cooled, key, fingerprint, later})
      :sys.get_state(table)
      assert serves?(book, "ann")
    end

    test "counts the trial that ran meanwhile as any other call", context do
      book = breaker(context, breaker: [failures: 2, cooldown: 1])
      for _ <- 1..2, do: call(book, "ann", :fail)
      test = self()

      view = Skillbook.view(book, %Skillbook.Profile{id: "ann"})

      call = fn _, _ ->
        send(test, {:trial, self()})
        receive(do: (:fail -> raise("oops")))
      end

      assert eventually(fn ->
               CircuitBreaker.list(Book.fetch!(book), view) |> hd() |> Map.get(:state) ==
                 :half_open
             end)

      trial = Task.async(fn -> Pipeline.commands(view, ["x.run"], assigns: %{call: call}) end)
      assert_receive {:trial, pid}
      {:ok, [%{state: :trial}]} = Skillbook.reset_breaker(view, "x.run", by: "Bob")
      assert serves?(book, "ann")
      send(pid, :fail)
      Task.await(trial, :infinity)
      assert [%{state: :closed, failures: 1}] = CircuitBreaker.list(Book.fetch!(book), view)
    end
  end

  # Two virtual machines that share nothing but the database.
  test "an operation on one node holds on the other", context do
    fields = [schedule: "'@yearly'", run_as: "default"]

    write(context.tmp_dir, %{
      "job/SKILL.md" => page("job", [handler: inspect(ScheduledRows)] ++ fields),
      "fails/SKILL.md" => page("fails", handler("Raise"))
    })

    url = PostgresCase.database()
    sql = PostgresCase.start(url: url)
    SQL.query!(sql, "create table ran (name text not null)")
    [a, b] = peers = for _ <- 1..2, do: Peers.start()

    for peer <- peers do
      Peers.start_book(peer,
        name: :two,
        builtins: false,
        watch: false,
        breaker: [failures: 1, cooldown: 600_000],
        sources: [context.tmp_dir],
        store: {SQL.Postgres, url: url}
      )
    end

    call = fn peer, function, name ->
      {:ok, outcome} = Peers.call(peer, Skillbook, function, [:two, name, [by: "Bob"]])
      outcome
    end

    # In the past, so that a run of now is another second.
    now = DateTime.utc_now() |> DateTime.add(-10) |> DateTime.truncate(:second)

    fire = fn peer, seconds ->
      :ok = Peers.call(peer, ScheduledRows, :fire, [:two, ["job"], DateTime.add(now, seconds)])
      :ok = Peers.call(peer, Scheduler, :await, [:two])
    end

    fired = fn ->
      query = "select fire_at, status from skillbook_firings order by fire_at"

      for [at, status] <- SQL.query!(sql, query).rows,
          do: {at |> DateTime.from_iso8601() |> elem(1) |> DateTime.diff(now), status}
    end

    fire.(b, 0)
    call.(a, :pause_schedule, "job")
    for peer <- peers, do: fire.(peer, 1)
    assert fired.() == [{0, "ok"}]
    call.(b, :resume_schedule, "job")
    # The other node looks at the database.
    :ok = Peers.call(a, Server, :heartbeat, [:two])
    fire.(a, 2)
    assert {2, "ok"} in fired.()
    call.(a, :run_schedule, "job")
    assert eventually(fn -> SQL.query!(sql, "select count(*) from ran").rows == [[3]] end)

    run = fn -> Peers.call(b, Skillbook, :run, [:two, "```cmd\nfails\n```"]).results |> hd() end
    refute match?(%OutOfServiceError{}, run.().error)
    assert %OutOfServiceError{} = run.().error
    call.(a, :reset_breaker, "fails")
    assert eventually(fn -> not match?(%OutOfServiceError{}, run.().error) end)
  end
end
