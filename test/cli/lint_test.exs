defmodule Skillbook.CLI.LintTest do
  use Skillbook.SkillsCase, async: false

  import ExUnit.CaptureIO

  alias Skillbook.CLI
  alias Skillbook.CLI.Sarif

  @moduletag :tmp_dir

  @page "---\nname: mail.send\ndescription: Sends: a message to people\n---\n## Usage\n\nmail.sned --to <a>\n"

  # Standard output and the status; standard error goes to the process' mailbox.
  defp lint(args) do
    output =
      capture_io(fn ->
        errors =
          capture_io(:stderr, fn -> send(self(), {:status, CLI.run(["--no-builtins", "lint" | args])}) end)

        send(self(), {:errors, errors})
      end)

    assert_received {:status, status}
    {output, status}
  end

  defp errors do
    assert_received {:errors, errors}
    errors
  end

  test "text shows the line, a caret, the hint and a count", %{tmp_dir: folder} do
    write(folder, %{"mail/send.md" => @page})
    path = Path.relative_to_cwd(Path.join(folder, "mail/send.md"))

    assert lint([folder]) ==
             {"""
              #{path}:3:14: warning: an unquoted value may not contain a colon before a blank; read as: description: "Sends: a message to people" [frontmatter_repaired]
                3 | description: Sends: a message to people
                  |              ^
                hint: write the line like this
                --fix mends this

              #{path}:7:1: warning: there is no command `mail.sned` [example_unknown]
                7 | mail.sned --to <a>
                  | ^
                hint: did you mean `mail.send`?

              2 warnings
              """, 1}
  end

  test "the status is 0 for hints alone and for nothing", %{tmp_dir: folder} do
    assert {"Nothing is wrong.\n", 0} = lint([folder])
    write(folder, %{"a.md" => "---\nname: a\ndescription: Short\n---\nx"})
    assert {output, 0} = lint([folder])
    assert output =~ "\n1 info\n"
  end

  test "a file alone is looked at with the files around it", %{tmp_dir: folder} do
    write(folder, %{
      "mail/send.md" => @page,
      "mail/read.md" =>
        "---\nname: mail.read\ndescription: Reads a whole message\n---\n## Usage\n\nmail.send\n"
    })

    assert {"Nothing is wrong.\n", 0} = lint([Path.join(folder, "mail/read.md")])
    assert {_, 1} = lint([Path.join(folder, "mail/send.md")])
  end

  test "--fix mends and says so", %{tmp_dir: folder} do
    write(folder, %{"mail/send.md" => @page})
    assert {output, 1} = lint([folder, "--fix"])
    refute output =~ "frontmatter_repaired"
    assert errors() == "fixed 1 place in #{Path.relative_to_cwd(Path.join(folder, "mail/send.md"))}\n"
    assert File.read!(Path.join(folder, "mail/send.md")) =~ ~s(description: "Sends: a message to people"\n)
  end

  test "--strict takes the format's verdict", %{tmp_dir: folder} do
    write(folder, %{
      "pdf/SKILL.md" => "---\nname: pdf\ndescription: Reads all kinds of forms\nversion: 1\n---\nx"
    })

    assert {_, 0} = lint([folder])
    assert {output, 1} = lint([folder, "--strict"])
    assert output =~ "error: the format has no field `version` [spec_violation]"
  end

  test "json is an array of objects", %{tmp_dir: folder} do
    write(folder, %{"mail/send.md" => @page})
    assert {json, 1} = lint([folder, "--format", "json"])
    assert json =~ ~S("fix":{"length":39,"offset":20,"text":"description: \"Sends: a message to people\""})
    assert json =~ ~S("code":"example_unknown","column":1,"fix":null,)
    write(folder, %{"mail/send.md" => "text"})
    assert {"[" <> _, 0} = lint([folder, "--format", "json"])
  end

  test "a wrong format is wrong usage", %{tmp_dir: folder} do
    assert {"", 2} = lint([folder, "--format", "xml"])
    assert errors() =~ "skillbook: --format expects one of text, json, sarif, got: xml\n"
  end

  # The required properties and the values of SARIF 2.1.0's schema, for what we write of it.
  test "sarif has what the format requires", %{tmp_dir: folder} do
    write(folder, %{"a b/mail.md" => @page, "odd.md" => "---\nname: odd\n---\n"})

    log =
      [folder]
      |> Skillbook.Lint.run()
      |> Enum.map(&%{&1 | path: Path.relative_to(&1.path, folder)})
      |> Sarif.log()

    assert %{"version" => "2.1.0", "$schema" => _, "runs" => [run]} = log
    assert %{tool: %{driver: %{name: "skillbook", version: _, rules: rules}}, results: results} = run
    assert run.columnKind in ["utf16CodeUnits", "unicodeCodePoints"]
    assert Enum.uniq_by(rules, & &1.id) == rules
    assert length(results) == 4

    for result <- results do
      assert %{message: %{text: text}, ruleId: id, ruleIndex: index, level: level} = result
      assert is_binary(text) and Enum.at(rules, index).id == id
      assert level in [:error, :warning, "note"]
      assert [%{physicalLocation: %{artifactLocation: %{uri: uri}, region: region}}] = result.locations
      assert uri in ["a%20b/mail.md", "odd.md"]
      assert region.startLine >= 1 and Map.get(region, :startColumn, 1) >= 1

      for fix <- Map.get(result, :fixes, []) do
        assert %{artifactChanges: [%{artifactLocation: %{uri: ^uri}, replacements: [replacement]}]} = fix
        assert %{deletedRegion: %{byteOffset: 20, byteLength: 39}, insertedContent: %{text: _}} = replacement
      end
    end

    assert {"{" <> _, 1} = lint([folder, "--format", "sarif"])
  end

  test "explain tells what became of a name", %{tmp_dir: folder} do
    write(folder, %{"mail/send.md" => @page})

    explain = fn args ->
      capture_io(fn -> send(self(), CLI.run(["--dir", folder, "--no-builtins", "explain" | args])) end)
    end

    capture_io(:stderr, fn ->
      assert explain.(["send"]) == """
             #{folder}/mail/send.md
               from the source `#{Path.basename(folder)}`
               used as `mail.send`
               in the prompt of `default`: in the section `quick_reference`
               3:14: warning: an unquoted value may not contain a colon before a blank; read as: description: "Sends: a message to people" [frontmatter_repaired]
             """

      assert_received 0

      assert explain.(["send", "--max-tokens", "10"]) =~
               "in the prompt of `default`: left out for lack of room, from the section `quick_reference`\n"

      assert_received 0
      assert explain.(["mail.sned"]) == "mail.sned: no file gives this name; close to it: mail.send, mail\n"
      assert_received 1
    end)
  end
end
