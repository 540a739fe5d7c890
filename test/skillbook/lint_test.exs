defmodule Skillbook.LintTest do
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Diagnostic, Explanation, Lint}

  doctest Lint
  doctest Explanation

  @moduletag :tmp_dir

  defp lint(sources, options \\ []) do
    for diagnostic <- Lint.run(sources, options),
        do: {Path.basename(diagnostic.path), diagnostic.line, diagnostic.column, diagnostic.code}
  end

  test "returns the diagnostics of loading and of the pages", %{tmp_dir: folder} do
    write(folder, %{
      "mail/send.md" =>
        "---\nname: mail.send\ndescription: Sends: a message to people\n---\n" <>
          "## Usage\n\nmail.sned --to <a>\n",
      "pdf/SKILL.md" =>
        "---\nname: pdf\ndescription: Reads all kinds of forms\nversion: 1\n---\n" <>
          "```cmd\ntasks.list\n```\n"
    })

    pages = [{"send.md", 3, 14, :frontmatter_repaired}, {"send.md", 7, 1, :example_unknown}]
    assert lint([folder]) == pages ++ [{"SKILL.md", 7, 1, :example_unknown}]

    assert lint([folder], strict: true) ==
             pages ++ [{"SKILL.md", 4, 1, :spec_violation}, {"SKILL.md", 7, 1, :example_unknown}]

    write(folder, %{
      "pdf/SKILL.md" =>
        "---\nname: pdf\ndescription: Reads all kinds of forms\n---\n```cmd\ntasks.search\n```\n"
    })

    assert lint([folder]) == pages ++ [{"SKILL.md", 6, 1, :example_unknown}]
    assert lint([folder], context: [Skillbook.Source.builtin()]) == pages
  end

  test "strict validates every SKILL.md, even if it is not a skill", %{tmp_dir: folder} do
    write(folder, %{
      "a/SKILL.md" => "---\nname: a\ndescription: Does what it is there for\n---\nx",
      "b/deep/SKILL.md" => "no frontmatter",
      "c/skill.md" => "---\nname: c\n---\n",
      ".hidden/SKILL.md" => "x",
      "node_modules/SKILL.md" => "x"
    })

    violations = for one <- Lint.run([folder], strict: true), one.code == :spec_violation, do: one

    assert Enum.map(violations, &Path.relative_to(&1.path, folder)) == [
             "b/deep/SKILL.md",
             "c/skill.md"
           ]
  end

  test "fixes files until no fix is left, and returns the fixes", %{tmp_dir: folder} do
    write(folder, %{
      "mail/send.md" =>
        "---\r\ndescription: Sends: a message to people\r\ntags: a, b\r\n---\r\nBody\r\n",
      "mail/SKILL.md" => "---\ndomain: mail\ndescription: About mail\n---\n",
      "clean.md" => "---\nname: clean\ndescription: Does what it is there for\n---\nBody\n"
    })

    path = Path.join(folder, "mail/send.md")
    assert {[{^path, {:ok, 3}}], left} = Lint.fix([folder])

    assert [:usage_missing] = for(one <- left, do: one.code)
    refute Enum.any?(left, & &1.fix)

    assert File.read!(path) ==
             "---\r\nname: mail.send\r\ndescription: \"Sends: a message to people\"\r\n" <>
               "tags:\r\n- a\r\n- b\r\n---\r\nBody\r\n"

    assert {[], _} = Lint.fix([folder])
  end

  test "previews the fixes of one file without writing it", %{tmp_dir: folder} do
    text = "---\nname: mail\ndescription: Sends: mail to people\n---\nBody\n"
    write(folder, %{"a.md" => text, "b.md" => text})
    path = Path.join(folder, "a.md")
    diagnostics = Lint.run([folder])
    assert {:ok, ^text, fixed, 1} = Lint.preview(path, diagnostics)
    assert fixed == String.replace(text, "Sends: mail to people", "\"Sends: mail to people\"")
    assert File.read!(path) == text
    assert {:ok, ^text, ^text, 0} = Lint.preview(path, [])
    assert {:error, %Skillbook.DocumentError{}} = Lint.preview(Path.join(folder, "c.md"), [])
  end

  test "returns the error of a file that cannot be written", %{tmp_dir: folder} do
    write(folder, %{
      ".real/mail.md" => "---\nname: mail\ndescription: Sends: a message to people\n---\nBody\n"
    })

    File.ln_s!(".real/mail.md", Path.join(folder, "mail.md"))
    path = Path.join(folder, "mail.md")

    assert {[{^path, {:error, %Skillbook.DocumentError{kind: :link}}}], [_ | _]} =
             Lint.fix([folder])
  end

  test "raises for unknown options" do
    assert_raise Skillbook.OptionError,
                 ~r/unknown option :strickt for lint, did you mean :strict\?/,
                 fn ->
                   Lint.run([], strickt: true)
                 end
  end

  test "docs/diagnostics.md has every code" do
    page = File.read!("docs/diagnostics.md")
    for code <- Diagnostic.codes(), do: assert(page =~ "| `#{code}` |")
  end
end
