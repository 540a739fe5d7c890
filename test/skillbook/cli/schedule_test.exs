defmodule Skillbook.CLI.ScheduleTest do
  use Skillbook.SkillsCase, async: true

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
    write(folder, %{"skills/a/SKILL.md" => page("a", schedule: "'@daily'", run_as: "default")})
    skills = Path.join(folder, "skills")

    run = fn arguments ->
      ExUnit.CaptureIO.capture_io(fn ->
        assert Skillbook.CLI.run(
                 ["--no-builtins", "--dir", skills, "--db", ":memory:", "schedule"] ++ arguments
               ) == 0
      end)
    end

    assert run.(["--profile", "default"]) =~
             ~r/^a +\d{4}-\d\d-\d\d 00:00 \+00:00  default  at 00:00 every day, UTC$/m

    {:ok, json} = run.(["--json", "--times", "3"]) |> Skillbook.Support.JSON.decode()
    assert %{"next" => [%{"name" => "a", "at" => [_, _, _]}], "last" => []} = json
    assert run.(["b*"]) =~ "No skill has a schedule."
    assert File.ls!(folder) == ["skills"]
  end
end
