defmodule Skillbook.Handlers.Workflow.ShowTest do
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Profile, SQL}

  @moduletag :tmp_dir

  @flow """
  # x.flow

  ## Behavior

  ```cmd
  # name: all
  tasks.search
  memory.search --query "a\\nb {all}"
  x.fail
  tasks.get T-9
  ```
  """

  setup %{tmp_dir: folder} do
    write(folder, %{
      "x/prose.md" => page("x.prose", [], "# x.prose\n\n## Behavior\n\nSay it.\n"),
      "x/fail.md" => page("x.fail", handler("ErrorText")),
      "x/tell.md" => page("x.tell", handler("Tell")),
      "x/slow.md" =>
        page(
          "x.slow",
          [timeout: "1h"],
          "# x.slow\n\n## Behavior\n\n```cmd\ntasks.search\nx.tell\n```\n"
        ),
      "x/flow.md" => page("x.flow", [schedule: ~s("0 8 * * *"), timezone: "Europe/Berlin"], @flow)
    })

    profiles = [
      [id: "ann"],
      [id: "bob"],
      [id: "narrow", skills: ["x.flow", "workflow.*", "memory.*"]]
    ]

    options = [sources: [folder], store: ":memory:", profiles: profiles]
    {:ok, book: book(options)}
  end

  defp run(book, line, profile \\ "ann") do
    view =
      if profile == :all,
        do: Skillbook.view(book, Profile.unrestricted()),
        else: Skillbook.view(book, profile)

    Skillbook.Ordinals.run(book, line, fn line ->
      [result] =
        Skillbook.run(view, "```cmd\n#{line}\n```", now: ~U[2026-03-01 08:00:00Z]).results

      result
    end)
  end

  # How long something took is not the same twice.
  defp text(result), do: String.replace(result.content, ~r/\d+ ms/, "0 ms")

  @head """
  x.flow - Does x.flow
  Schedule: 0 8 * * * Europe/Berlin
  Steps:
  1 all: tasks.search
  2: memory.search --query "a\\nb {all}"
  3: x.fail
  4: tasks.get T-9
  """

  test "shows steps and runs, each profile its own", %{book: book} do
    assert run(book, "workflow.show x.flow").content == @head <> "No runs."
    assert %{status: :error, data: %{run: 1, ended: :stopped}} = run(book, "x.flow")
    assert %{data: %{run: 2}} = run(book, "x.flow", "bob")
    assert %{data: %{run: 3}} = run(book, "x.flow")

    line =
      &("R-#{&1}  2026-03-01T08:00:00Z  stopped by an error, 3 of 4 steps, 0 ms  (agent " <>
          "#{inspect(&2)})")

    assert text(run(book, "workflow.show x.flow")) ==
             @head <> Enum.join(["Last runs:", line.(3, "ann"), line.(1, "ann")], "\n")

    assert text(run(book, "workflow.show x.flow --runs 1", "bob")) ==
             @head <> Enum.join(["Last runs:", line.(2, "bob")], "\n")

    assert [%{id: 3}, %{id: 2}, %{id: 1}] = run(book, "workflow.show x.flow", :all).data
  end

  test "shows a run with the result of each step", %{book: book} do
    run(book, "x.flow")
    result = run(book, "workflow.show x.flow --run R-1")
    assert [all, memory, failed] = result.data.results

    assert %{number: 1, name: "all", skill: "tasks.search", status: "ok"} = all
    assert all.command == "tasks.search"

    assert %{number: 2, name: nil, command: "memory.search --query \"a\\nb " <> _, status: "ok"} =
             memory

    assert %{number: 3, command: "x.fail", status: "error", content: "no room on Monday"} = failed

    assert String.starts_with?(
             text(result),
             "x.flow\n" <>
               "R-1  2026-03-01T08:00:00Z  stopped by an error, 3 of 4 steps, 0 ms  " <>
               "(agent \"ann\")\n\n[1] tasks.search\nok\n"
           )

    assert String.ends_with?(result.content, "\n\n[3] x.fail\nerror\n  no room on Monday")

    for {line, profile} <- [
          {"workflow.show x.flow --run R-1", "bob"},
          {"workflow.show x.flow --run r-2", "ann"}
        ] do
      assert run(book, line, profile).content ==
               "there is no run #{line |> String.split() |> List.last() |> String.upcase()}; " <>
                 "`workflow.show x.flow` lists the runs with their ids"
    end

    assert run(book, "workflow.show x.flow --run 1").content ==
             "--run must be a run such as R-1, got \"1\". Write for example: --run R-1"
  end

  test "results that may no longer be seen are hidden", %{book: book} do
    sql = Skillbook.Book.sql(Skillbook.Book.fetch!(book))
    run(book, "x.flow")
    SQL.query!(sql, "update skillbook_runs set profile = 'narrow'")
    text = run(book, "workflow.show x.flow --run R-1", "narrow").content
    assert text =~ "[1] (not shown)\nok\n\n[2] memory.search"
    refute text =~ "Monday"
    assert run(book, "workflow.show x.prose", "narrow").content =~ "unknown skill"
  end

  test "a run whose process was killed is interrupted after its time", %{book: book} do
    view = Skillbook.view(book, "ann")
    options = [now: ~U[2026-03-01 08:00:00Z], assigns: %{tell: self()}]
    {:ok, runner} = Task.start(fn -> Skillbook.run(view, "```cmd\nx.slow\n```", options) end)
    assert_receive {:handler, _pid, _context}
    Process.exit(runner, :kill)

    for {now, status} <- [
          {~U[2026-03-01 09:00:59Z], "running"},
          {~U[2026-03-01 09:01:01Z], "interrupted"}
        ],
        line <- ["workflow.show x.slow", "workflow.show x.slow --run R-1"] do
      result =
        Skillbook.Ordinals.run(book, line, fn line ->
          hd(Skillbook.run(view, "```cmd\n#{line}\n```", now: now).results)
        end)

      assert result.content =~
               "R-1  2026-03-01T08:00:00Z  #{status}, 1 of 2 steps  (agent \"ann\")"
    end
  end

  test "a page to follow has no steps", %{book: book} do
    assert run(book, "workflow.show x.prose").content ==
             "x.prose - Does x.prose\nIt is a page to follow: get_skill x.prose\nNo runs."
  end

  test "the last hundred runs of a workflow and a profile are stored", %{book: book} do
    sql = Skillbook.Book.sql(Skillbook.Book.fetch!(book))

    SQL.query!(
      sql,
      "with recursive n (i) as (select 1 union all select i + 1 from n where i < 150) insert " <>
        "into skillbook_runs (name, profile, made_by, command, status, steps, started_at, " <>
        "number) select case when i = 1 then 'x.other' else 'x.flow' end, " <>
        "case when i < 6 then 'bob' else 'ann' end, 'user', 'x', 'done', 1, 't', i from n"
    )

    run(book, "x.flow")

    assert SQL.query!(
             sql,
             "select name, profile, count(*) from skillbook_runs group by name, profile " <>
               "order by name, profile"
           ).rows ==
             [["x.flow", "ann", 100], ["x.flow", "bob", 4], ["x.other", "bob", 1]]
  end

  test "a database error does not stop a run", %{book: book} do
    sql = Skillbook.Book.sql(Skillbook.Book.fetch!(book))
    SQL.query!(sql, "drop table skillbook_run_steps")
    SQL.query!(sql, "drop table skillbook_runs")

    log =
      ExUnit.CaptureLog.capture_log(fn ->
        assert %{data: %{run: nil, steps: [_, _, _]}} = run(book, "x.flow")
      end)

    assert log =~ "the workflow x.flow was not stored: "
  end
end
