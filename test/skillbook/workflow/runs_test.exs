defmodule Skillbook.Workflow.RunsTest do
  use Skillbook.HandlerCase, async: true

  alias Skillbook.Workflow.Runs
  alias Skillbook.{Command, Entry, Profile, Result}

  @moduletag :tmp_dir

  for dialect <- [:sqlite, :postgres] do
    test "runs and their steps in #{dialect}", %{tmp_dir: folder} do
      sql = database(folder, unquote(dialect))
      ann = %Profile{id: "ann"}

      entry = %Entry{
        name: "x.flow",
        kind: :command,
        description: "",
        body: "",
        path: "",
        source: ""
      }

      command = %Command{name: "x.flow", raw: "x.flow --to \"é\0\""}
      context = context(sql: sql, entry: entry, profile: ann, command: command, by: :user)

      id = Runs.start(entry, context, 2, 1_000)
      now = context.now

      assert {:ok, [%{id: ^id, status: "running", ran: 0, duration: nil}]} =
               Runs.list(sql, ann, "x.flow", 5, now)

      long = String.duplicate("é", 100_001)

      first = %Result{
        status: :ok,
        content: long,
        name: "x.say",
        command: "x.say {",
        duration: 1999
      }

      # PostgreSQL stores no NUL.
      second = %Result{status: :error, content: "n\0o", command: "x.gone \0", duration: 0}
      assert :ok = Runs.add_step(context, id, %{number: 1, name: "late"}, first)
      assert :ok = Runs.add_step(context, id, %{number: 2, name: nil}, second)
      assert :ok = Runs.finish(context, id, :stopped, 7)

      run = %{
        id: id,
        name: "x.flow",
        profile: "ann",
        by: "user",
        command: "x.flow --to \"é\uFFFD\"",
        status: "stopped",
        steps: 2,
        ran: 2,
        started_at: "2026-02-17T12:00:00Z",
        duration: 7,
        report: nil
      }

      # Nobody ended it, and its time is over.
      later = &DateTime.add(now, &1)
      left = Runs.start(entry, context, nil, 1_000)

      assert {:ok, %{status: "running", steps: 0}, []} =
               Runs.fetch(sql, ann, "x.flow", left, later.(60))

      assert {:ok, %{status: "interrupted", duration: nil}, []} =
               Runs.fetch(sql, ann, "x.flow", left, later.(62))

      assert {:ok, [%{status: "interrupted"}, %{status: "stopped"}]} =
               Runs.list(sql, ann, "x.flow", 5, later.(62))

      assert :ok = Runs.finish(context, left, :max_turns, 3, "Half of it.")

      assert {:ok, %{status: "max_turns", report: "Half of it."}, []} =
               Runs.fetch(sql, ann, "x.flow", left, later.(62))

      Skillbook.SQL.query!(sql, "delete from skillbook_runs where number = $1", [left])

      kept = binary_part(long, 0, 200_000)

      steps = [
        %{
          number: 1,
          name: "late",
          skill: "x.say",
          command: "x.say {",
          status: "ok",
          content: kept,
          duration: 1
        },
        %{
          number: 2,
          name: nil,
          skill: nil,
          command: "x.gone \uFFFD",
          status: "error",
          content: "n\uFFFDo",
          duration: 0
        }
      ]

      assert Runs.fetch(sql, ann, "x.flow", id, now) == {:ok, run, steps}
      assert Runs.list(sql, Profile.unrestricted(), "x.flow", 5, now) == {:ok, [run]}
      assert Runs.list(sql, %Profile{id: "bob"}, "x.flow", 5, now) == {:ok, []}
      assert Runs.fetch(sql, %Profile{id: "bob"}, "x.flow", id, now) == {:ok, nil}
      assert Runs.fetch(sql, ann, "x.other", id, now) == {:ok, nil}

      # The runs of another profile remove none of these.
      bob = %{context | profile: %Profile{id: "bob"}}
      for _ <- 1..101, do: assert(Runs.start(entry, bob, 0, 0) in 10_000_000..99_999_999)
      assert {:ok, [%{id: ^id}]} = Runs.list(sql, ann, "x.flow", 200, now)

      for _ <- 1..100, do: assert(is_integer(Runs.start(entry, context, 0, 0)))
      assert {:ok, runs} = Runs.list(sql, ann, "x.flow", 200, now)
      assert length(runs) == 100
      assert Runs.fetch(sql, ann, "x.flow", id, now) == {:ok, nil}
    end
  end
end
