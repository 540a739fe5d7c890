defmodule Skillbook.UsageDocTest do
  use ExUnit.Case, async: true

  doctest Skillbook.Usage
end

defmodule Skillbook.UsageTest do
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Usage.{Counter, Writer}
  alias Skillbook.{OptionError, SQL, Usage, View}

  @moduletag :tmp_dir
  @moduletag :capture_log

  @hour_ms 3_600_000

  setup %{tmp_dir: folder} do
    skills = Path.join(folder, "skills")

    write(skills, %{
      "x/run.md" => page("x.run", handler("Text") ++ [aliases: "[start]"]),
      "x/list.md" => page("x.list", handler("ErrorText")),
      "x/crash.md" => page("x.crash", handler("Raise")),
      "x/gone.md" => page("x.gone", handler: "Nowhere"),
      "x/page.md" => page("x.page"),
      "y/secret.md" => page("y.secret", handler("Text") ++ [visibility_labels: "[private]"])
    })

    {:ok, skills: skills, db: Path.join(folder, "usage.db")}
  end

  @profiles [[id: "ann"], [id: "bob", grants: ["private"]], [id: "strict", writes: :deny]]

  defp start(context, options \\ []) do
    # No timed writes during a test.
    defaults = [
      sources: [context.skills],
      builtins: false,
      watch: false,
      profiles: @profiles,
      store: context.db,
      usage: [flush: @hour_ms]
    ]

    book(Keyword.merge(defaults, options))
  end

  defp run(book, profile, lines) do
    Skillbook.run(
      Skillbook.view(book, profile),
      "```cmd\n#{Enum.join(List.wrap(lines), "\n")}\n```"
    )
  end

  defp counts(view, options \\ []) do
    {:ok, report} = Skillbook.usage(view, options)
    for row <- report.rows, do: {row.key, row.read, row.run, row.failed}
  end

  test "commands are counted under their entry's name", context do
    for {line, expected} <- [
          {"x.run --a secret", [{"x.run", 0, 1, 0}]},
          {"start", [{"x.run", 0, 1, 0}]},
          {"x.list", [{"x.list", 0, 0, 1}]},
          {"x.crash", [{"x.crash", 0, 0, 1}]},
          {"x.gone", [{"x.gone", 0, 0, 1}]},
          {"x.page", [{"x.page", 1, 0, 0}]},
          {"x.run --help", [{"x.run", 1, 0, 0}]},
          {"get_skill: x.page", [{"x.page", 1, 0, 0}]},
          # A command whose handler does not exist is not listed.
          {"get_skill: x.all", for(name <- ~w(crash list page run), do: {"x.#{name}", 1, 0, 0})},
          {"get_skill: x", []},
          {"get_skill: nothing", []},
          {"x.rum", []},
          {"password=secret", []}
        ] do
      book = start(context, store: ":memory:")
      run(book, "ann", line)
      assert {line, counts(View.all(book))} == {line, expected}
    end
  end

  test "a refused command counts as failed", context do
    book = start(context)
    run(book, "strict", "x.run")
    assert counts(View.all(book)) == [{"x.run", 0, 0, 1}]
  end

  test "nothing is counted without a database or with usage: false", context do
    for options <- [[store: nil], [usage: false]] do
      book = start(context, options)
      run(book, "ann", "x.run")

      assert {:ok, %{rows: [], total: %{count: 0, duration: nil}, unnamed: 0}} =
               Skillbook.usage(View.all(book))
    end
  end

  test "concurrent counts add up exactly while they are stored",
       context do
    book = start(context)
    view = Skillbook.view(book, "ann")

    1..20
    |> Task.async_stream(fn n ->
      for _ <- 1..50, do: Skillbook.run(view, "```cmd\nx.page\n```")
      if rem(n, 5) == 0, do: :ok = Writer.flush(book)
    end)
    |> Stream.run()

    assert counts(View.all(book)) == [{"x.page", 1000, 0, 0}]
    assert counts(View.all(book)) == [{"x.page", 1000, 0, 0}]
  end

  test "the counts of several books on one database add up", context do
    [one, two] = for _ <- 1..2, do: start(context)
    run(one, "ann", ["x.run", "x.run"])
    run(two, "bob", ["x.run", "x.list"])
    :ok = Writer.flush(one)
    assert counts(View.all(two)) == [{"x.run", 0, 3, 0}, {"x.list", 0, 0, 1}]

    run(one, "ann", "x.run")
    for book <- [one, two], do: :ok = stop_supervised(book)
    assert counts(View.all(start(context))) == [{"x.run", 0, 4, 0}, {"x.list", 0, 0, 1}]
  end

  test "counts that cannot be stored are stored once, later", context do
    book = start(context)
    sql = Skillbook.Book.sql(Skillbook.Book.fetch!(book))
    run(book, "ann", ["x.run", "x.list"])

    # The first row of the flush is stored, the second is not.
    SQL.query!(sql, """
    create trigger broken before insert on skillbook_usage when new.name = 'x.run'
    begin select raise(abort, 'no'); end
    """)

    assert {:error, %SQL.Error{kind: :constraint}} = Writer.flush(book)
    assert {:error, %SQL.Error{}} = Skillbook.usage(View.all(book))
    assert SQL.query!(sql, "select count(*) from skillbook_usage").rows == [[0]]

    run(book, "ann", "x.run")
    SQL.query!(sql, "drop trigger broken")
    assert counts(View.all(book)) == [{"x.run", 0, 2, 0}, {"x.list", 0, 0, 1}]
  end

  test "a crash of the writer loses nothing", context do
    book = start(context)
    run(book, "ann", "x.run")
    monitor = monitor(Module.concat(book, UsageWriter))
    Process.exit(Process.whereis(Module.concat(book, UsageWriter)), :kill)
    assert_receive {:DOWN, ^monitor, :process, _, :killed}

    # The supervisor then restarts the registration.
    writer = Module.concat(book, UsageWriter)
    await(fn -> Skillbook.Book.find(book) && Process.whereis(writer) end)

    assert counts(View.all(book)) == [{"x.run", 0, 1, 0}]
  end

  defp await(fun), do: fun.() || (Process.sleep(1) && await(fun))

  test "counts over the memory limit have no name", context do
    book = start(context, usage: [flush: @hour_ms, most: 2])
    run(book, "ann", ["x.run", "x.list", "x.page", "x.crash", "x.run", "get_skill: x.page"])

    assert counts(View.all(book)) == [{"x.run", 0, 2, 0}, {"x.list", 0, 0, 1}]
    assert {:ok, %{unnamed: 3, total: %{count: 3}}} = Skillbook.usage(View.all(book))
    assert {:ok, %{unnamed: 0}} = Skillbook.usage(Skillbook.view(book, "ann"), profiles: :all)
  end

  describe "a report" do
    test "shows a profile its own counts, and all counts to trusted code only", context do
      book = start(context)
      run(book, "ann", "x.run")
      run(book, "bob", ["x.run", "y.secret"])
      {ann, bob, all} = {Skillbook.view(book, "ann"), Skillbook.view(book, "bob"), View.all(book)}

      for {view, options, expected} <- [
            {ann, [], [{"x.run", 0, 1, 0}]},
            {ann, [profiles: :own], [{"x.run", 0, 1, 0}]},
            {ann, [profiles: :all], [{"x.run", 0, 2, 0}]},
            {bob, [], [{"x.run", 0, 1, 0}, {"y.secret", 0, 1, 0}]},
            {all, [], [{"x.run", 0, 2, 0}, {"y.secret", 0, 1, 0}]},
            {all, [profiles: :own], []},
            {all, [by: :profile], [{"bob", 0, 2, 0}, {"ann", 0, 1, 0}]},
            {ann, [by: :profile, profiles: :all], [{"ann", 0, 1, 0}, {"bob", 0, 1, 0}]},
            {all, [by: :event], [{"run", 0, 3, 0}]},
            {all, [names: ["y.*"]], [{"y.secret", 0, 1, 0}]},
            {ann, [names: ["y.*"], profiles: :all], []},
            {ann, [names: [], profiles: :all], []}
          ] do
        assert {view.profile.id, options, counts(view, options)} ==
                 {view.profile.id, options, expected}
      end

      {:ok, report} = Skillbook.usage(ann, profiles: :all)
      assert report.total.count == 2

      # The name of a book means everybody.
      for {options, expected} <- [
            {[], 3},
            {[profiles: :all], 3},
            {%{profiles: :all}, 3},
            {[profile: "ann"], 1},
            {[profile: "ann", profiles: :all], 2}
          ] do
        {:ok, report} = Skillbook.usage(book, options)
        assert {options, report.total.count} == {options, expected}
      end

      assert {:error, %OptionError{option: :profil}} = Skillbook.usage(book, profil: "ann")
    end

    test "leaves out names that are hidden or deleted", context do
      [with_secret, without] =
        for {lines, n} <- [{["y.secret", "x.run", "x.page"], 1}, {["x.run", "x.page"], 2}] do
          book = start(context, store: "#{context.db}_#{n}")
          run(book, "bob", lines)
          File.rm(Path.join(context.skills, "x/page.md"))
          Skillbook.reload(book)
          write(context.skills, %{"x/page.md" => page("x.page")})

          for options <- [[], [by: :profile], [by: :event]] do
            {:ok, report} =
              Skillbook.usage(Skillbook.view(book, "ann"), [profiles: :all] ++ options)

            {for(row <- report.rows, do: {row.key, row.count}), report.total.count,
             report.unnamed}
          end
        end

      assert with_secret == without
      assert [{[{"x.run", 1}], 1, 0} | _] = with_secret
    end

    test "covers the given period", context do
      book = start(context)
      sql = Skillbook.Book.sql(Skillbook.Book.fetch!(book))
      hour = fn time -> div(DateTime.to_unix(time), 3600) end

      # Old hours are combined once a day, at the first write.
      :ok = Writer.flush(book)

      for time <- [~U[2026-03-01 09:10:00Z], ~U[2026-03-01 10:00:00Z], ~U[2026-03-02 00:00:00Z]],
          do: :ok = Writer.store(sql, [{{hour.(time), "", "x.run", "ann", "run"}, 1, 1500}])

      for {since, until, keys} <- [
            {~U[2026-03-01 09:59:59Z], ~U[2026-03-01 10:00:00Z],
             ["2026-03-01T09", "2026-03-01T10"]},
            {~U[2026-03-01 10:00:00Z], ~U[2026-03-01 23:59:59Z], ["2026-03-01T10"]},
            {~U[2026-03-01 11:00:00Z], ~U[2026-03-01 23:59:59Z], []},
            {~U[2026-03-01 00:00:00Z], ~U[2026-03-02 00:00:00Z],
             ["2026-03-01T09", "2026-03-01T10", "2026-03-02T00"]}
          ] do
        {:ok, report} = Skillbook.usage(View.all(book), since: since, until: until, by: :time)
        assert {since, Enum.map(report.rows, & &1.key)} == {since, keys}
      end

      {:ok, report} = Skillbook.usage(View.all(book), since: ~U[2026-03-01 00:00:00Z])
      assert [%{run: 3, duration: 1.5}] = report.rows
    end

    test "groups by several keys, in the order of the list", context do
      book = start(context)
      run(book, "ann", ["x.run", "x.run", "x.list"])
      run(book, "bob", ["x.run", "y.secret"])

      for size <- 1..3, by <- [:name, [:profile, :name]] do
        {:ok, %{rows: rows, total: total}} = Skillbook.usage(View.all(book), by: by)

        pages =
          Stream.unfold(nil, fn last ->
            {:ok, page} = Skillbook.usage(View.all(book), by: by, limit: size, after: last)
            assert page.total == total
            if page.rows != [], do: {page.rows, List.last(page.rows).key}
          end)

        assert Enum.concat(pages) == rows
      end

      assert counts(View.all(book), by: [:profile, :name]) |> Enum.sort() == [
               {["ann", "x.list"], 0, 0, 1},
               {["ann", "x.run"], 0, 2, 0},
               {["bob", "x.run"], 0, 1, 0},
               {["bob", "y.secret"], 0, 1, 0}
             ]

      # Hours are in order, and a view has no rows of hidden names.
      {:ok, report} =
        Skillbook.usage(Skillbook.view(book, "ann"), by: [:time, :name], profiles: :all)

      assert [{[hour, "x.list"], 1}, {[hour, "x.run"], 3}] =
               for(r <- report.rows, do: {r.key, r.count})

      assert hour =~ ~r/\A\d{4}-\d\d-\d\dT\d\d\z/
    end

    test "validates its options and its view", context do
      view = View.all(start(context))

      for {options, message} <- [
            {[by: :day],
             "expected :name, :profile, :event or :time, or a list of them as the option :by " <>
               "of a report of usage, got: :day"},
            {[by: [:name, :name]],
             "expected :name, :profile, :event or :time, or a list of them as the option :by " <>
               "of a report of usage, got: [:name, :name]"},
            {[since: "7d"],
             "expected a DateTime as the option :since of a report of usage, got: \"7d\""}
          ] do
        assert {:error, error} = Usage.report(view, options)
        assert Exception.message(error) == message
      end

      message = "expected the view of a running book, got one of a catalog alone"
      assert_raise ArgumentError, message, fn -> Usage.report(view(context.skills)) end
    end
  end

  test "old hours become days once, and old days are deleted", context do
    book = start(context)
    sql = Skillbook.Book.sql(Skillbook.Book.fetch!(book))
    hour = fn time -> div(DateTime.to_unix(time), 3600) end

    rows =
      for {time, profile} <- [
            {~U[2026-01-31 23:00:00Z], "ann"},
            {~U[2026-02-01 00:00:00Z], "ann"},
            {~U[2026-02-01 23:00:00Z], "ann"},
            {~U[2026-02-01 23:00:00Z], "bob"},
            {~U[2026-03-01 23:00:00Z], "ann"},
            {~U[2026-03-02 00:00:00Z], "ann"}
          ],
          do: {{hour.(time), "", "x.run", profile, "run"}, 2, 10}

    :ok = Writer.store(sql, rows)

    stored = fn ->
      SQL.query!(
        sql,
        "select bucket, profile, count, duration from skillbook_usage order by 1, 2"
      ).rows
    end

    days = [
      ["2026-02-01", "ann", 4, 20],
      ["2026-02-01", "bob", 2, 10],
      ["2026-03-01", "ann", 2, 10],
      ["2026-03-02T00", "ann", 2, 10]
    ]

    thin = fn ->
      assert {:ok, _, nil} = Writer.prune(sql, ~U[2026-02-01 12:00:00Z], nil)
      assert {:ok, _, nil} = Writer.combine(sql, ~U[2026-03-02 12:00:00Z], nil)
    end

    for _ <- 1..2 do
      thin.()
      assert stored.() == days
    end

    # Late counts are added to an existing day.
    :ok =
      Writer.store(sql, [{{hour.(~U[2026-02-01 12:00:00Z]), "", "x.run", "bob", "run"}, 1, 5}])

    thin.()
    assert stored.() == List.replace_at(days, 1, ["2026-02-01", "bob", 3, 15])
  end

  test "unknown options are refused", context do
    for usage <- [true, [flush: 0], [keep: -1], [most: :all], [every: 1], 5] do
      assert {:error, error} =
               Skillbook.start_link(name: :never_counts, sources: [context.skills], usage: usage)

      assert Exception.message(error) ==
               "expected [flush: milliseconds, keep: days, most: number] or false as the " <>
                 "option :usage of a book, got: #{inspect(usage)}"
    end
  end

  test "counts that are put back are unchanged" do
    book = :"counter_#{System.unique_integer([:positive])}"
    Counter.new(book, 10)
    rows = [{{1, "", "a", "ann", "run"}, 3, 100}, {{2, "", "a", "ann", "run"}, 1, 50}]
    Counter.put_back(book, rows)
    Counter.put_back(book, rows)

    assert Enum.sort(Counter.take(book)) == [
             {{1, "", "a", "ann", "run"}, 6, 200},
             {{2, "", "a", "ann", "run"}, 2, 100}
           ]

    assert Counter.take(book) == []
  end
end
