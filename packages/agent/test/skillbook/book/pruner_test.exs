defmodule Skillbook.Book.PrunerTest do
  # Old rows are deleted in small steps, and nothing that must stay: not even if the process is
  # killed again and again.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Book.Pruner
  alias Skillbook.{Book, OptionError, PostgresCase, SQL}
  alias Skillbook.SQL.Values

  @moduletag :tmp_dir

  @now ~U[2026-11-28 12:00:00Z]
  @rows 900

  defp start(context, options \\ []) do
    folder = Path.join(context.tmp_dir, "skills")
    File.mkdir_p!(folder)
    store = context[:store] || Path.join(context.tmp_dir, "store.db")

    book =
      book([sources: [folder], store: store, scheduler: false, usage: [keep: 300]] ++ options)

    book = Book.fetch!(book)
    {book, Book.sql(book)}
  end

  defp days_ago(days), do: DateTime.add(@now, -days * 86_400)
  defp text(time), do: DateTime.to_iso8601(time)

  # About half of the times are older than a table keeps its rows.
  defp random(keep), do: days_ago(:rand.uniform(2 * keep) - 1)

  defp insert(sql, table, columns, rows) do
    {:ok, _} =
      SQL.transaction(sql, fn sql ->
        Values.insert(sql, "skillbook_#{table} (#{columns})", rows)
      end)

    rows
  end

  defp all(sql, table, columns),
    do:
      sql
      |> SQL.query!("select #{columns} from skillbook_#{table}")
      |> Map.fetch!(:rows)
      |> Enum.sort()

  # Each fills a table, and returns what must stay of it as `all/3` reads it.

  defp runs(sql) do
    rows =
      for number <- 1..@rows do
        started = random(90)
        status = Enum.random(["done", "stopped", "running"])
        deadline = Enum.random([DateTime.add(started, 60), DateTime.add(@now, 60)])

        [
          number,
          "x.run",
          "ann",
          "user",
          "x.run",
          status,
          1,
          text(started),
          DateTime.to_unix(deadline, :millisecond)
        ]
      end

    insert(
      sql,
      "runs",
      "number, name, profile, made_by, command, status, steps, started_at, deadline",
      rows
    )

    before = days_ago(90)

    steps = for [id] <- all(sql, "runs", "id"), do: [id, 1, "x", "ok", "", 1]
    insert(sql, "run_steps", "run_id, number, command, status, content, duration", steps)

    stay =
      for [number, _, _, _, _, status, _, started, deadline] <- rows,
          started >= text(before) or
            (status == "running" and deadline >= DateTime.to_unix(before, :millisecond)),
          do: [number]

    {"runs", "number", stay}
  end

  defp firings(sql) do
    rows =
      for number <- 1..@rows do
        status = if rem(number, 60) == 0, do: "running", else: "done"
        at = days_ago(rem(number, 180))

        [
          "x.#{rem(number, 59)}#{if status == "running", do: number}",
          0,
          text(at),
          status,
          "ann",
          "n",
          "h",
          1,
          text(at),
          "#{number}"
        ]
      end

    rows = Enum.uniq_by(rows, &Enum.take(&1, 3))

    insert(
      sql,
      "firings",
      "name, record, fire_at, status, profile, node, holder, attempts, started_at, text",
      rows
    )

    last =
      Enum.group_by(rows, &hd/1, &Enum.at(&1, 2))
      |> Map.new(fn {name, times} -> {name, Enum.max(times)} end)

    stay =
      for [name, _, at, status | _] = row <- rows,
          at >= text(days_ago(90)) or status == "running" or last[name] == at,
          do: [List.last(row)]

    {"firings", "text", stay}
  end

  defp approvals(sql) do
    rows =
      for number <- 1..@rows do
        status = Enum.random(~w(pending running done denied expired))
        at = text(random(90))
        ["A-#{number}", "ann", "x", "h", "{}", "{}", "{}", "user", status, at, at]
      end

    insert(
      sql,
      "approvals",
      "ref, profile, skill, hash, words, rights, assigns, made_by, status, asked_at, expires_at",
      rows
    )

    stay =
      for [ref, _, _, _, _, _, _, _, status, _, at] <- rows,
          at >= text(days_ago(90)) or status in ["pending", "running"],
          do: [ref]

    {"approvals", "ref", stay}
  end

  defp conversations(sql) do
    rows = for number <- 1..60, do: ["r#{number}", "ann", 0, "t", "done", 1, text(random(30))]
    insert(sql, "conversations", "run, profile, depth, title, status, turns, started_at", rows)

    parts =
      for [run | _] <- rows,
          part <- 1..Enum.random([1, 5, 450]),
          do: [run, "message", text(@now), "#{part}"]

    insert(sql, "conversation_parts", "run, kind, at, content", parts)
    stay = for [run | _] = row <- rows, List.last(row) >= text(days_ago(30)), do: run
    stay = for [run, _, _, content] <- parts, run in stay, do: [run, content]
    {"conversation_parts", "run, content", stay}
  end

  defp agent_runs(sql) do
    rows =
      for number <- 1..@rows do
        status = Enum.random(~w(running done failed))
        lease = Enum.random([0, DateTime.to_unix(@now, :millisecond)])
        at = text(random(7))
        ["R-#{number}", "r", "ann", "", "t", "{}", "{}", "{}", status, 1, 0, lease, at]
      end

    insert(
      sql,
      "agent_runs",
      "ref, run, profile, tenant, title, rights, assigns, options, status, turns, continued, " <>
        "lease_until, started_at",
      rows
    )

    # Those whose node is gone are old too.
    stay =
      for [ref, _, _, _, _, _, _, _, status, _, _, lease, at] <- rows,
          at >= text(days_ago(7)) or (status == "running" and lease > 0),
          do: [ref]

    {"agent_runs", "ref", stay}
  end

  # By day, since old hours are combined.
  defp usage(sql) do
    rows =
      for number <- 1..@rows do
        bucket = 300 |> random() |> text() |> binary_part(0, Enum.random([10, 13]))
        ["", bucket, "x#{number}", "ann", "run", number, 1]
      end

    insert(sql, "usage", "tenant, bucket, name, profile, event, count, duration", rows)
    first = 300 |> days_ago() |> DateTime.to_date() |> Date.to_iso8601()

    stay =
      for [_, bucket, name, _, _, count, _] <- rows,
          bucket >= first,
          do: [binary_part(bucket, 0, 10), name, count]

    {"usage", "substr(bucket, 1, 10), name, count", stay}
  end

  # Live entries, entries deleted at some time, and the versions of all.
  defp versions(sql) do
    entries =
      for number <- 1..60 do
        deleted = Enum.random([nil, nil, text(random(365))])
        [number, "e#{number}", "s#{number}", deleted, :rand.uniform(450), number]
      end

    # The last write is a deletion long ago.
    entries = List.replace_at(entries, -1, [60, "e60", "s60", text(days_ago(400)), 30, 9_999])

    rows =
      for [_id, name, scope, deleted, version, revision] <- entries,
          do: [
            name,
            scope,
            "note",
            "T",
            "",
            "",
            "[]",
            "[]",
            1,
            "[]",
            "[]",
            "user",
            "ann",
            version,
            1,
            text(@now),
            text(@now),
            deleted,
            "",
            "[]",
            revision
          ]

    columns =
      "name, scope, kind, title, description, content, tags, labels, include_in_prompt, " <>
        "proactive_for, excluded_for, source, author, version, enabled, created_at, " <>
        "updated_at, deleted_at, hash, attachments, revision"

    insert(sql, "entries", columns, rows)
    ids = Map.new(all(sql, "entries", "name, id"), &List.to_tuple/1)

    versions =
      for [_, name, _, _, last, _] <- entries,
          version <- 1..last,
          do: [
            ids[name],
            version,
            "update",
            "user",
            "ann",
            text(days_ago(2 * (last - version))),
            "note",
            "T",
            "",
            "",
            "[]",
            "[]",
            1,
            "[]",
            "[]",
            "user",
            1,
            "",
            "[]"
          ]

    columns =
      "entry_id, version, action, made_by, author, at, kind, title, description, content, " <>
        "tags, labels, include_in_prompt, proactive_for, excluded_for, source, enabled, hash, " <>
        "attachments"

    insert(sql, "entry_versions", columns, versions)
    entries = for [_, name | entry] <- entries, into: %{}, do: {ids[name], entry}
    old = text(days_ago(365))

    stay =
      for [id, version, _, _, _, at | _] <- versions,
          [_scope, deleted, last, revision] = entries[id],
          deleted == nil or deleted >= old or revision == 9_999,
          at >= old or version > last - 20,
          do: [id, version]

    {"entry_versions", "entry_id, version", stay}
  end

  @fill [:runs, :firings, :approvals, :conversations, :agent_runs, :usage, :versions]

  defp fill(sql) do
    for fill <- @fill do
      {table, columns, stay} =
        case fill do
          :runs -> runs(sql)
          :firings -> firings(sql)
          :approvals -> approvals(sql)
          :conversations -> conversations(sql)
          :agent_runs -> agent_runs(sql)
          :usage -> usage(sql)
          :versions -> versions(sql)
        end

      # Otherwise the test would show nothing.
      assert stay != [] and length(all(sql, table, columns)) > length(stay)
      {table, columns, Enum.sort(stay)}
    end
  end

  for database <- [:sqlite, :postgres] do
    describe "on #{database}" do
      if database == :postgres do
        setup do
          {:ok, store: {Skillbook.SQL.Postgres, url: PostgresCase.database(), ssl: false}}
        end
      end

      @tag timeout: 300_000
      test "a process that is killed deletes nothing that must stay", context do
        :rand.seed(:exsss, {1, 2, 3})
        {book, sql} = start(context)
        tables = fill(sql)

        for kill <- 1..25 do
          {pid, monitor} = spawn_monitor(fn -> Pruner.run(book, @now) end)
          Process.sleep(:rand.uniform(4 * kill))
          Process.exit(pid, :kill)
          assert_receive {:DOWN, ^monitor, :process, ^pid, _reason}, 60_000

          for {table, columns, stay} <- tables,
              do: assert({table, stay -- all(sql, table, columns)} == {table, []})
        end

        assert {:ok, _counts} = Pruner.run(book, @now)

        for {table, columns, stay} <- tables,
            do: assert({table, all(sql, table, columns)} == {table, stay})

        assert {:ok, counts} = Pruner.run(book, @now)
        assert Enum.uniq(Map.values(counts)) == [0]
        refute [] == all(sql, "entries", "name")
        assert all(sql, "run_steps", "run_id") == all(sql, "runs", "id")
      end

      test "no step deletes many rows", context do
        :rand.seed(:exsss, {1, 2, 3})
        {book, sql} = start(context)
        fill(sql)

        for {name, days, step} <- Pruner.rules(book) do
          counts = steps(step, sql, days_ago(days), nil)
          assert {name, Enum.max(counts) <= 200, length(counts) > 1} == {name, true, true}
        end
      end
    end
  end

  defp steps(step, sql, before, place) do
    counted = count(sql)
    {:ok, _, next} = step.(sql, before, place)
    # The rows that one entry or conversation takes with it count too.
    deleted = counted - count(sql)
    [deleted | if(next, do: steps(step, sql, before, next), else: [])]
  end

  defp count(sql) do
    tables = ~w(runs firings approvals conversations conversation_parts agent_runs usage entries
         entry_versions)

    tables |> Enum.map(&hd(hd(all(sql, &1, "count(*)")))) |> Enum.sum()
  end

  test "days of the book decide, and :infinity keeps all", context do
    {book, sql} = start(context, keep: [versions: :infinity, runs: 10, deleted: :infinity])

    assert Enum.sort(for {name, _, _} <- Pruner.rules(book), do: name) == [
             :agent_runs,
             :approvals,
             :conversations,
             :firings,
             :runs,
             :usage,
             :usage_hours
           ]

    rows =
      for days <- [9, 11], do: [days, "x", "ann", "user", "x", "done", 1, text(days_ago(days))]

    insert(
      sql,
      "runs",
      "number, name, profile, made_by, command, status, steps, started_at",
      rows
    )

    assert {:ok, %{runs: 1}} = Pruner.run(book, @now)
    assert all(sql, "runs", "number") == [[9]]
  end

  test "other options are refused" do
    for keep <- [5, [runs: 0], [all: 3], [versions: nil]] do
      assert {:error, %OptionError{option: :keep} = error} =
               Skillbook.start_link(name: :never_keeps, keep: keep)

      assert Exception.message(error) =~
               "expected [versions: days, deleted: days, runs: days], each or :infinity"
    end
  end
end
