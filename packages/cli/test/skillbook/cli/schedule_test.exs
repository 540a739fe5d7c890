defmodule Skillbook.CLI.ScheduleTest do
  # Not async: the command line has one book, and tests change the current folder.
  use Skillbook.SkillsCase, async: false

  import Skillbook.Test.CommandLine

  alias Skillbook.Agenda
  alias Skillbook.CLI.{Schedule, Terminal}

  @now ~U[2026-03-01 08:00:00Z]

  defp text(agenda, width \\ nil),
    do: agenda |> Schedule.lines(%Terminal{width: width}) |> IO.iodata_to_binary()

  @agenda %Agenda{
    now: @now,
    next: [
      %{
        name: "workflows.digest",
        schedule: "0 9 * * MON",
        timezone: "Europe/Berlin",
        means: "at 09:00 on Mondays, Europe/Berlin",
        run_as: "maria",
        at: [~U[2026-03-02 08:00:00Z], ~U[2026-03-09 08:00:00Z]],
        local: ["2026-03-02 09:00 +01:00", "2026-03-09 09:00 +01:00"]
      },
      %{
        name: "z",
        schedule: "@yearly",
        timezone: "UTC",
        means: "once a year",
        run_as: nil,
        at: [],
        local: []
      }
    ],
    last: [
      %{
        name: "workflows.digest",
        at: ~U[2026-02-23 08:00:00Z],
        status: :failed,
        profile: "maria",
        node: "a@b",
        attempts: 1,
        started_at: ~U[2026-02-23 08:00:00Z],
        finished_at: ~U[2026-02-23 08:00:12Z],
        duration: 12_345.0,
        text: "The server did not answer at all.\nSecond line"
      }
    ]
  }

  test "shows two tables that fit the terminal" do
    assert text(@agenda) == """
           name              next                     as     schedule
           workflows.digest  2026-03-02 09:00 +01:00  maria  at 09:00 on Mondays, Europe/B…
                             2026-03-09 09:00 +01:00
           z                 never                    -      once a year

           name              time (UTC)           status  took  result
           workflows.digest  2026-02-23 08:00:00  failed  12 s  The server did not answer …\
           """

    off = %{hd(@agenda.next) | at: [], local: []} |> Map.put(:off, true)
    assert text(%{@agenda | next: [off]}) =~ ~r/^workflows\.digest  off   maria  at 09:00 on/m

    for width <- [74, 100, 200], line <- String.split(text(@agenda, width), "\n") do
      assert String.length(line) <= width
    end

    assert text(@agenda, 200) =~ "at 09:00 on Mondays, Europe/Berlin\n"
  end

  test "without a schedule, suggests how to add one" do
    assert text(%Agenda{now: @now, next: [], last: []}) ==
             "No skill has a schedule.\nAdd `schedule: \"0 9 * * MON-FRI\"` and " <>
               "`run_as: default` to its frontmatter, or use workflow.build --schedule " <>
               "or skills.create --schedule."

    assert text(%{@agenda | last: []}) =~ "\n\nNo scheduled skill has run yet."
    assert text(%{@agenda | next: []}) =~ "No skill has a schedule now.\n\nname "
  end

  @tag :tmp_dir
  test "the command runs nothing and creates no database", %{tmp_dir: folder} do
    write(folder, %{
      "skills/a/SKILL.md" => page("a", schedule: "'@daily'", run_as: "default"),
      # As the profile of the command.
      "skills/c/SKILL.md" => page("c", schedule: "'@daily'")
    })

    skills = Path.join(folder, "skills")

    run = fn arguments ->
      ExUnit.CaptureIO.capture_io(fn ->
        assert Skillbook.CLI.run(
                 ["--no-builtins", "--dir", skills, "--db", ":memory:", "schedule"] ++ arguments
               ) == 0
      end)
    end

    assert run.(["--profile", "default"]) =~
             ~r/^a +\d{4}-\d\d-\d\d 00:00 \+00:00  default  at 00:00 every day, UTC\nc .+default/m

    {:ok, json} = run.(["--json", "--times", "3"]) |> Skillbook.Support.JSON.decode()
    assert %{"next" => [%{"name" => "a", "at" => [_, _, _]}, %{"name" => "c"}]} = json
    assert json["last"] == []
    assert run.(["b*"]) =~ "No skill has a schedule."
    assert File.ls!(folder) == ["skills"]
  end

  describe "pause, resume and run" do
    setup %{tmp_dir: folder} do
      write(folder, %{
        "skills/a/SKILL.md" => page("a", schedule: "'@daily'", run_as: "ann"),
        "skills/b/SKILL.md" => page("b", handler("Text"))
      })

      cli = ["--no-builtins", "--dir", Path.join(folder, "skills")]
      {:ok, cli: cli ++ ["--db", Path.join(folder, "s.db")], folder: folder}
    end

    @describetag :tmp_dir

    test "change the database, which says who and why", %{cli: cli} do
      run = &run_cli(cli ++ ["schedule" | &1])
      assert {"a was not paused\n", 0, ""} = run.(~w(resume a))
      assert {output, 0, ""} = run.(~w(pause a --by Bob --reason Mail))
      assert output =~ ~r/\Aa is paused since [\d :-]+ UTC, by Bob\n\z/
      # The first one stays.
      assert {^output, 0, ""} = run.(~w(pause a --by Eve))
      assert {list, 0, ""} = run.([])
      assert list =~ ~r/^a +paused +ann +at 00:00 every day, UTC$/m
      assert {json, 0, ""} = run.(~w(--json))
      {:ok, %{"next" => [row]}} = Skillbook.Support.JSON.decode(json)
      assert %{"paused" => %{"by" => "Bob", "reason" => "Mail"}, "at" => [_]} = row
      assert {output, 0, ""} = run.(~w(run a))
      assert output =~ ~r/\Aa runs in the next process that runs schedules, for [\d :-]+ UTC\n/
      assert {output, 0, ""} = run.(~w(resume a))
      assert output =~ ~r/\Aa was paused since [\d :-]+ UTC, and runs again\n\z/
      # As the profile that it runs as.
      assert {"a is paused" <> _, 0, ""} =
               run_cli(["--profile", "ann" | cli] ++ ~w(schedule pause a))
    end

    test "wrong usage is refused", %{cli: cli, folder: folder} do
      no_database = Enum.drop(cli, -2)

      for {args, status, message} <- [
            {~w(schedule pause), 2, "`schedule pause` needs a NAME"},
            {~w(schedule run a b), 2, "`schedule run` takes one NAME, got: b"},
            {~w(schedule pause a --json), 2, "--json does not go with `schedule pause`"},
            {~w(schedule --by Bob), 2,
             "--by and --reason need `schedule pause`, `resume` or `run`"},
            {~w(schedule pause b), 1,
             "expected a skill with a schedule, got `b`, which has none; `skillbook schedule` " <>
               "and Skillbook.schedule/2 list those that have one"},
            {~w(schedule pause c), 1,
             "unknown skill \"c\". To list all skills, write: get_skill"},
            {~w(--profile bob schedule pause a), 1,
             "expected the view of the profile that `a` runs as, or an unrestricted one; an " <>
               "operator can do it with operator: true"},
            {~w(breaker), 2, "`breaker` needs an action: breaker reset NAME"},
            {~w(breaker reset), 2, "`breaker reset` needs a NAME"},
            {~w(breaker reset a b), 2, "`breaker reset` takes one NAME, got: b"},
            {~w(breaker open a), 2, "expected breaker reset NAME, got: open"},
            {~w(breaker reset a), 1,
             "expected a skill with a handler, got `a`, which has none, and so no circuit " <>
               "breaker; Skillbook.diagnostics/1 lists the skills that are out of service"}
          ] do
        assert {"", ^status, text} = run_cli(cli ++ args)

        assert {args, String.starts_with?(text, "skillbook: " <> message), text} ==
                 {args, true, text}
      end

      File.cd!(folder, fn ->
        assert {"", 1, "skillbook: expected a book with a database, without which `a`" <> _} =
                 run_cli(no_database ++ ~w(schedule pause a))

        assert run_cli(no_database ++ ~w(breaker reset b)) ==
                 {"", 1,
                  "skillbook: expected the database of the books that run the skill; write " <>
                    "--db PATH or URL\n"}
      end)
    end

    test "breaker reset reaches a book with the database", %{cli: cli, folder: folder} do
      alias Skillbook.Reply.Pipeline
      sources = [Path.join(folder, "skills")]
      store = Path.join(folder, "s.db")
      breaker = [failures: 1, cooldown: 600_000]
      options = [builtins: false, watch: false, store: store, breaker: breaker]
      write(folder, %{"skills/c/SKILL.md" => page("c", handler("Raise"))})
      book = book([sources: sources] ++ options)
      run = fn -> hd(Pipeline.commands(Skillbook.view(book), ["c"], [])).error.__struct__ end

      ExUnit.CaptureLog.capture_log(fn ->
        run.()
        assert run.() == Skillbook.OutOfServiceError

        assert run_cli(cli ++ ~w(breaker reset c)) ==
                 {"c is in service again in all processes with this database\n", 0, ""}

        assert Skillbook.Eventually.eventually(fn -> run.() != Skillbook.OutOfServiceError end)
      end)
    end
  end
end
