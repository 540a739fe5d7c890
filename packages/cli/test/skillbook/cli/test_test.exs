defmodule Skillbook.CLI.TestTest do
  use Skillbook.SkillsCase, async: false

  import Skillbook.Test.CommandLine

  import ExUnit.CaptureIO

  alias Skillbook.CLI
  alias Skillbook.Support.JSON

  @moduletag :tmp_dir

  # Standard output with the numbers of scores as N, and the exit status. Standard error is
  # checked to be empty.
  defp run(args, options \\ ["--no-builtins"]) do
    {output, status, errors} = run_cli(options ++ ["test" | args])
    {String.replace(output, ~r/\d+\.\d+/, "N"), status, errors}
  end

  defp skill(name, description, examples) do
    lines = Enum.map_join(examples, &"  - #{&1}\n")
    keywords = if examples != [], do: "trigger_keywords: [sure#{name}]\n"
    fields = "name: #{name}\ndescription: #{description}\nexamples:\n#{lines}#{keywords}"
    {"#{name}/SKILL.md", "---\n#{fields}---\nText.\n"}
  end

  defp weather(folder, more \\ []) do
    rows = [
      skill("rain", "Forecasts rain, wind", ["rain zoo", "not: surerain"]),
      skill("snow", "Forecasts snow, ice", ["wind forecasts zoo", "not: zoo"]),
      skill("verse", "Writes verse, songs", ["zoo zebra"])
    ]

    write(folder, Map.new(rows ++ more))
  end

  test "prints what leads elsewhere, and why", %{tmp_dir: folder} do
    assert run([weather(folder)]) ==
             {"""
              rain
                not: surerain  picked
                  1  rain  N  surerain N

              snow
                wind forecasts zoo  in place 2
                  1  rain  N  wind N, forecasts N
                  2  snow  N  forecasts N

              verse
                zoo zebra  not found

              Skills that compete
                rain and snow
                  1 example of snow leads to rain before it

              3 of 3 skills with examples
              3 requests: first 33% (1), among the first three 67% (2), picked 33% (1)
              2 requests after `not`: 1 picked
              """, 1, ""}
  end

  @nothing "skillbook: nothing was tested: expected `examples` in the frontmatter of skills, " <>
             "or evaluations beside them\nSee: skillbook test --help\n"

  test "a folder of skills without examples shows the pairs, and fails", %{tmp_dir: folder} do
    rows = [a: "Sends long letters", b: "Sends long letters to aunts", c: "Cuts hair", d: "Sings"]
    write(folder, Map.new(rows, fn {name, description} -> skill(name, description, []) end))

    assert run([folder]) ==
             {"""
              Skills that compete
                a and b
                  alike by N: sends, long, letters

              None of 4 skills has examples.
              """, 2, @nothing}

    assert {"None of 4 skills has examples.\n", 2, @nothing} = run([folder, "--pairs", "0"])
    # Nothing was measured, so a limit is not kept.
    assert {_, 2, @nothing} = run([folder, "--min-hit1", "1"])
  end

  test "tests the paths, and all skills compete", %{tmp_dir: folder} do
    weather(folder)
    one = Path.join(folder, "snow")

    for path <- [one, Path.join(one, "SKILL.md")] do
      {output, 0, ""} = run([path], ["--no-builtins", "--dir", folder])
      assert output =~ "in place 2\n    1  rain"
      assert output =~ "1 of 1 skill with examples\n1 request: first 0% (0), among"
    end

    # Without --dir the folder is all there is.
    assert {output, 0, ""} = run([one])
    assert output =~ "1 request: first 100% (1)"
  end

  test "the status follows the limits", %{tmp_dir: folder} do
    write(folder, %{"hidden.md" => page("hidden", examples: "[zoo]", labels: "[own]")})

    weather(folder, [skill("rain", "Forecasts rain, wind", ["rain"])])

    for {flags, status} <- [
          {[], 1},
          {["--min-hit1", "25"], 0},
          {["--min-hit1", "26"], 1},
          {["--min-hit3", "50"], 0},
          {["--min-hit3", "51"], 1},
          {["--min-hit1", "0", "--min-hit3", "100"], 1}
        ] do
      assert {_output, ^status, ""} = run([folder | flags]), inspect(flags)
    end

    # A profile has its own skills: the one that finds nothing is not among them.
    assert {output, 1, ""} = run([folder, "--profile", "guest"])
    assert output =~ "3 of 3 skills"
    assert {output, 1, ""} = run([folder, "--grant", "own"])
    assert output =~ "4 of 4 skills"
  end

  test "--preflight fails for what the router does not pick", %{tmp_dir: folder} do
    rows = [
      skill("rain", "Forecasts rain, wind", ["surerain zoo", "not: zoo"]),
      skill("snow", "Forecasts snow, ice", ["The zebra has snow", "zoo suresnow"]),
      skill("verse", "Writes verse, songs", ["zoo zebra", "The zebra has rain"])
    ]

    write(folder, Map.new(rows))

    assert {text, 1, ""} = run([folder, "--preflight"])

    assert text == """
           snow
             The zebra has snow  first, not picked

           verse
             zoo zebra  not found
             The zebra has rain  not found
               1  rain  N  rain N

           Skills that compete
             rain and verse
               1 example of verse leads to rain before it

           3 of 3 skills with examples
           5 requests: first 60% (3), among the first three 60% (3), picked 40% (2)
           1 request after `not`: 0 picked
           """

    for {flags, status} <- [
          {["--min-picked", "40"], 0},
          {["--min-picked", "41"], 1},
          {["--preflight", "--min-picked", "40"], 0},
          {["--min-picked", "40", "--min-hit3", "61"], 1}
        ] do
      assert {_output, ^status, ""} = run([folder | flags]), inspect(flags)
    end

    json =
      capture_io(fn -> CLI.run(["--no-builtins", "test", folder, "--json", "--preflight"]) end)

    {:ok, test} = JSON.decode(json)
    assert %{"router" => true, "picked" => 0.4} = test

    assert Enum.map(test["results"], &{&1["name"], &1["rank"], &1["picked"], &1["passed"]}) == [
             {"rain", 1, true, true},
             {"rain", nil, false, true},
             {"snow", 1, false, false},
             {"snow", 1, true, true},
             {"verse", nil, false, false},
             {"verse", nil, false, false}
           ]
  end

  test "prints JSON", %{tmp_dir: folder} do
    json = fn ->
      capture_io(fn -> CLI.run(["--no-builtins", "test", weather(folder), "--json"]) end)
    end

    {:ok, test} = JSON.decode(json.())
    assert %{"entries" => 3, "unlisted" => [], "vectors" => false, "router" => false} = test
    assert test["hit1"] == 1 / 3

    assert Enum.map(test["results"], &{&1["name"], &1["rank"], &1["passed"], &1["not"]}) == [
             {"rain", 1, true, false},
             {"rain", 1, false, true},
             {"snow", 2, true, false},
             {"snow", nil, true, true},
             {"verse", nil, false, false}
           ]

    assert [%{"rank" => 1, "name" => "rain", "similarity" => nil, "words" => [word | _]}, _] =
             Enum.at(test["results"], 2)["ranking"]

    assert %{"word" => "wind", "part" => part} = word
    assert part > 0
    assert [%{"names" => ["rain", "snow"], "taken" => [0, 1]}] = test["pairs"]
  end

  test "says what is wrong", %{tmp_dir: folder} do
    missing = Path.join(folder, "no")

    assert run([missing]) ==
             {"", 2,
              "skillbook: `test` expects folders or files, got: #{missing}, which does not " <>
                "exist\nSee: skillbook test --help\n"}

    assert run([folder, "--min-hit1", "101"]) ==
             {"", 2,
              "skillbook: --min-hit1 expects a whole number from 0 to 100, got: 101\n" <>
                "See: skillbook test --help\n"}
  end

  test "many failures are cut", %{tmp_dir: folder} do
    files = for n <- 1..6, do: skill("s#{n}", "About #{n}", for(m <- 1..20, do: "zoo#{n} #{m}z"))
    {output, 1, ""} = run([write(folder, Map.new(files))])
    assert output =~ "\n20 more requests lead elsewhere; --json has all of them\n\n"
    assert length(String.split(output, "not found")) == 101
  end
end
