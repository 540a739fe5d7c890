defmodule Skillbook.House.DocsTest do
  # The pages of the project: their links, the folders and files that they name, and the README's
  # example.
  use ExUnit.Case, async: true

  import ExUnit.CaptureIO

  alias Skillbook.Test.Checkout

  @pages ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"] ++
           Checkout.wildcard(["docs/*.md", "packages/*/*.md", "examples/*/*.md"])

  test "every link between pages leads to a file and a heading" do
    for page <- @pages, target <- links(uncoded(Checkout.read!(page))) do
      assert {page, target, :ok} == {page, target, resolve(target, page)}
    end
  end

  test "every link from the docs of a module leads to a page and a heading" do
    for file <- Checkout.sources(),
        target <- links(Checkout.read!(file)),
        target =~ ".md" and not String.starts_with?(target, "http") do
      page = "docs/" <> String.replace_prefix(target, "docs/", "")
      assert {file, target, :ok} == {file, target, resolve(page, "README.md")}
    end
  end

  test "every page of docs/ is linked from the README" do
    targets = links(Checkout.read!("README.md"))
    for page <- Checkout.wildcard("docs/*.md"), do: assert(page in targets)
  end

  test "lines of prose end by column 100" do
    for page <- @pages,
        line <- String.split(prose(Checkout.read!(page)), "\n"),
        not String.starts_with?(line, "|") do
      assert String.length(line) <= 100, "#{page}: #{line}"
    end
  end

  describe "ARCHITECTURE.md" do
    setup do
      page = Checkout.read!("ARCHITECTURE.md")
      [_, folders] = String.split(page, "\n## Floors\n")
      [_, paths] = String.split(Checkout.read!("docs/development.md"), "\n## Data paths\n")
      {:ok, page: page, folders: folders, paths: paths}
    end

    test "fits on a few screens, and so does the README", %{page: page} do
      for {text, limit} <- [{page, 120}, {Checkout.read!("README.md"), 150}],
          do: assert(length(String.split(text, "\n", trim: true)) <= limit)
    end

    test "shows every folder of the library", %{folders: folders} do
      folders = for [name] <- Regex.scan(~r/\w+/, folders), do: name

      for root <- ["lib/skillbook", "packages", "native/skillbook_core/src"],
          path <- Checkout.wildcard(root <> "/*/"),
          File.dir?(Checkout.path(path)),
          do: assert(Path.basename(path) in folders, path)
    end

    test "names files that exist on the data paths", %{paths: paths} do
      [paths, _] = String.split(paths, "\n## ")
      rust = Checkout.wildcard("native/skillbook_*/src/**/*.rs")

      for [_, path] <- Regex.scan(~r/`([\w\/]+\.ex)`/, paths) do
        assert code?(path) or beside?(path, paths), path
      end

      for [_, path] <- Regex.scan(~r/`(?:nif\/)?([\w\/]+\.rs)`/, paths) do
        assert Enum.any?(rust, &String.ends_with?(&1, "/" <> path)), path
      end
    end
  end

  @tag :tmp_dir
  test "the README's skill, application and command run as shown", %{tmp_dir: folder} do
    readme = Checkout.read!("README.md")
    [_, skill] = Regex.run(~r/^````markdown\n(.*?)^````$/ms, readme)
    File.mkdir_p!(Path.join(folder, "skills/reports"))
    File.write!(Path.join(folder, "skills/reports/board.md"), skill)

    [_, code] = Regex.run(~r/^```elixir\n(children = .*?)^```$/ms, readme)

    code =
      code
      |> String.replace(~s("skills"), inspect(Path.join(folder, "skills")))
      |> String.replace(~s("skillbook.db"), inspect(Path.join(folder, "skillbook.db")))
      |> String.replace("MyApp.Skills", inspect(__MODULE__))

    {_, binding} = Code.eval_string(code)
    assert binding[:report].text == "On it."
    assert to_string(binding[:report]) =~ ~r/\A\[1\] reports.board --tag q4\nok\n  /
    assert binding[:system_prompt] =~ "reports.board"
    Supervisor.stop(binding[:_pid])

    options = ["--dir", Path.join(folder, "skills"), "--db", ":memory:"]
    create = ~s(tasks.create --title "Send the Q4 report to the board" --tags board Q4)

    shown =
      capture_io(fn ->
        assert Skillbook.CLI.run(options ++ ["run", "-c", create]) == 0
        assert Skillbook.CLI.run(options ++ ["run", "-c", "reports.board"]) == 0
      end)

    assert shown =~ "reports.board ran its step."
  end

  test "the README's commands of the pack print what it shows" do
    [_, section] = String.split(Checkout.read!("README.md"), "\n## Find a skill\n")
    [_, shown] = Regex.run(~r/^```text\n(.*?)^```$/ms, section)
    shape = &String.replace(&1, ~r/\d+\.\d+/, "0.0")

    for part <- String.split(shown, "$ bin/skillbook ", trim: true) do
      [line | output] = String.split(part, "\n", trim: true)
      args = OptionParser.split("--db :memory: " <> line)
      printed = capture_io(fn -> assert {line, Skillbook.CLI.run(args)} == {line, 0} end)
      lines = printed |> shape.() |> String.split("\n")
      for text <- output, text != "…", do: assert({line, shape.(text) in lines} == {line, true})
    end
  end

  @tag :tmp_dir
  test "lint prints the output that the page of the command line shows", %{tmp_dir: folder} do
    page = Checkout.read!("docs/command-line.md")
    [_, skill] = Regex.run(~r/^```markdown\n(.*?)^```$/ms, page)
    [_, shown] = Regex.run(~r/prints:\n\n```text\n(.*?)^```$/ms, page)

    domain = Path.join(folder, "skills/greetings")
    File.mkdir_p!(domain)
    File.write!(Path.join(domain, "bye.md"), skill)
    index = "---\ndomain: greetings\ndescription: Greetings and goodbyes\n---\n"
    File.write!(Path.join(domain, "SKILL.md"), index)

    printed = capture_io(fn -> Skillbook.CLI.run(["lint", Path.join(folder, "skills")]) end)
    assert String.replace(printed, ~r/\S+(?=skills\/)/, "") == shown
  end

  @tag :tmp_dir
  test "the test of descriptions prints what the page shows", %{tmp_dir: folder} do
    page = Checkout.read!("docs/skills.md")
    [_, section] = String.split(page, "\n## Test descriptions\n")
    [_, fields] = Regex.run(~r/^```yaml\n(.*?)^```$/ms, section)
    [_, shown] = Regex.run(~r/^```text\n(.*?)^```$/ms, section)

    others = [
      "name: alerts\ndescription: Warnings of rain and storms, today and tomorrow\n",
      "name: poems\ndescription: Writes a poem about anything\nexamples: [A poem for Ann]\n"
    ]

    for fields <- [fields | others] do
      [_, name] = Regex.run(~r/name: (\w+)/, fields)
      File.mkdir_p!(Path.join([folder, "skills", name]))
      file = Path.join([folder, "skills", name, "SKILL.md"])
      File.write!(file, "---\n#{fields}---\nText of #{name}.\n")
    end

    options = ["--no-builtins", "test", Path.join(folder, "skills")]
    printed = capture_io(fn -> send(self(), Skillbook.CLI.run(options)) end)
    numberless = &String.replace(&1, ~r/\d\.\d+/, "N")
    assert numberless.(printed) == numberless.(shown)
    assert_receive 0
  end

  test "the page of the command language shows a real error" do
    page = Checkout.read!("docs/commands.md")
    [_, shown] = Regex.run(~r/^```text\n(`\|`.*?)\n```$/ms, page)
    {:error, error} = Skillbook.Command.parse("tasks.search --status todo | head")
    assert Exception.message(error) == shown

    assert {error.kind, error.hint, error.offset, error.length, error.line, error.column} ==
             {:unsupported_operator, shown |> String.split("hint: ") |> List.last(), 27, 1, 1, 28}
  end

  # A file named without its folder, beside one that was named with it.
  defp beside?(path, paths) do
    Regex.scan(~r/`(\w+)\/\w+\.ex`/, paths)
    |> Enum.any?(fn [_, folder] -> code?(Path.join(folder, path)) end)
  end

  defp code?(path), do: Checkout.sources("skillbook/#{path}") != []

  defp links(text), do: for([_, target] <- Regex.scan(~r/\]\(([^()\s]+)\)/, text), do: target)

  defp uncoded(text), do: text |> prose() |> String.replace(~r/`[^`]*`/, "")

  # Without fenced and indented code.
  defp prose(text) do
    {lines, _fence} =
      text
      |> String.split("\n")
      |> Enum.map_reduce(nil, fn line, fence ->
        case {fence, Regex.run(~r/^\s*(`{3,}|~{3,})/, line)} do
          {nil, nil} -> {line, nil}
          {nil, [_, open]} -> {"", open}
          {open, [_, open]} -> {"", nil}
          _ -> {"", fence}
        end
      end)

    lines
    |> Enum.reject(&String.starts_with?(&1, "    "))
    |> Enum.join("\n")
  end

  defp resolve("http" <> _, _page), do: :ok

  defp resolve(target, page) do
    {path, anchor} =
      case String.split(target, "#") do
        ["", anchor] -> {page, anchor}
        [path] -> {Path.join(Path.dirname(page), path), nil}
        [path, anchor] -> {Path.join(Path.dirname(page), path), anchor}
      end

    cond do
      not File.exists?(Checkout.path(path)) -> :no_file
      anchor && anchor not in anchors(path) -> :no_heading
      true -> :ok
    end
  end

  # As GitHub makes them.
  defp anchors(path) do
    for [_, heading] <- Regex.scan(~r/^#+ (.*)$/m, prose(Checkout.read!(path))) do
      heading
      |> String.downcase()
      |> String.replace(~r/[^\p{L}\p{N} _-]/u, "")
      |> String.replace(" ", "-")
    end
  end
end
