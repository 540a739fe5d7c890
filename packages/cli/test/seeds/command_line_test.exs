defmodule Skillbook.Seeds.CommandLineTest do
  # Rows of the documents about the format (001) and about skills in Markdown (002) that run
  # command lines of `bin/skillbook`. Not async: the command line has one book.
  use Skillbook.SeedsCase,
    async: false,
    names: %{
      "001, 8" => ~w(export import test not),
      "002, 4" => ~w(run create_skill),
      "002, 8" => ~w(--vault run get prompt tools list explain route),
      "002, 12" => ~w(schedule pause)
    }

  import Skillbook.Test.CommandLine

  alias Skillbook.Lint

  @moduletag :tmp_dir

  @calendar """
  ---
  name: calendar-management
  description: Plans meetings and appointments, and looks for times that are free.
  examples:
    - Plan meetings of next week
    - not: Switch the lamps on
  ---

  # Calendar

  Confirm before you book.
  """

  defp skills(%{tmp_dir: folder}) do
    write(Path.join(folder, "skills"), %{"calendar-management/SKILL.md" => @calendar})
  end

  row "001, 8", "test runs the examples", context do
    root = skills(context)
    {output, 0, _} = run_cli(["test", root, "--dir", root, "--no-builtins", "--db", ":memory:"])
    assert output =~ "first 100% (1)" and output =~ "1 request after `not`: 0 picked"
  end

  row "001, 8", "export and import keep a skill", context do
    root = skills(context)
    db = Path.join(context.tmp_dir, "x.db")
    out = Path.join(context.tmp_dir, "out")
    {_, 0, _} = run_cli(["export", "calendar-management", "--dir", root, "--to", out])
    path = Path.join(out, "calendar-management/SKILL.md")

    assert for(d <- Lint.run([Path.dirname(path)]), d.severity == :error, do: d) == []

    {_, 0, _} = run_cli(["import", Path.dirname(path), "--yes", "--db", db, "--dir", out])
    options = ["--db", db, "--dir", Path.join(context.tmp_dir, "none"), "--grant", "imported"]
    File.mkdir_p!(Path.join(context.tmp_dir, "none"))
    {text, 0, _} = run_cli(["run", "-c", "load_skill calendar-management"] ++ options)
    assert text =~ "Confirm before you book."
    {text, 0, _} = run_cli(["run", "-c", "skills.list"] ++ options)
    assert text =~ "calendar-management"
  end

  row "001, 8", "what was imported is listed, or its label is told at once", context do
    root = skills(context)
    db = Path.join(context.tmp_dir, "x.db")
    source = Path.join(root, "calendar-management")
    none = Path.join(context.tmp_dir, "none")
    File.mkdir_p!(none)
    {text, 0, errors} = run_cli(["import", source, "--yes", "--db", db, "--dir", none])
    {list, 0, _} = run_cli(["run", "-c", "skills.list", "--db", db, "--dir", none])
    assert list =~ "calendar-management" or text <> errors =~ "--grant imported"
  end

  row "002, 8", "--vault counts in each command that reads", context do
    notes = write(Path.join(context.tmp_dir, "notes"), %{"a.md" => "Tea.\n"})
    dir = skills(context)
    db = Path.join(context.tmp_dir, "x.db")
    options = ["--vault", notes, "--dir", dir, "--db", db]

    for {args, expected} <- [
          {["run", "-c", "markdown.search tea"], "a.md"},
          {["get", "markdown.search"], "# markdown.search"},
          {["prompt"], "markdown"},
          {["tools"], "search_markdown"},
          {["list", "markdown"], "markdown.search"},
          {["explain", "markdown.search"], "markdown"},
          {["route", "Find my notes about Rome in the vault"], "markdown.search"}
        ] do
      {output, status, errors} = run_cli(args ++ options)
      assert {args, status, errors} == {args, 0, errors}
      assert output =~ expected, "#{inspect(args)}\n#{output}"
      refute output =~ "no file has this name"
    end
  end

  row "002, 12", "the agenda has no firing of an entry that is off", context do
    page = page("own.daily", schedule: "'0 8 * * *'", run_as: "default")
    dir = write(Path.join(context.tmp_dir, "s"), %{"own/daily.md" => page})
    options = ["--dir", dir, "--db", Path.join(context.tmp_dir, "x.db")]
    {_, 0, _} = run_cli(["schedule", "pause", "own.daily"] ++ options)
    {output, 0, _} = run_cli(["schedule"] ++ options)

    # One is paused, and the built-in one is off unless the application names it.
    for line <- String.split(output, "\n"), line =~ ~r/own.daily|daily_digest/ do
      refute line =~ ~r/\d{4}-\d\d-\d\d/, output
    end
  end

  row "002, 4", "a model's reply in a file is recorded as an agent's", context do
    db = Path.join(context.tmp_dir, "x.db")
    dir = skills(context)
    file = Path.join(context.tmp_dir, "reply.md")

    File.write!(file, """
    ```cmd
    create_skill --name tea --title Tea --description "Brews tea" --content Boil.
    ```
    """)

    {_, 0, _} = run_cli(["run", file, "--db", db, "--dir", dir])
    {output, 0, _} = run_cli(["run", "-c", "read_skill tea", "--db", db, "--dir", dir])
    assert output =~ "source: agent"
  end
end
