defmodule Skillbook.CLI.LintTest do
  use Skillbook.SkillsCase, async: false

  import Skillbook.Test.CommandLine

  import ExUnit.CaptureIO

  alias Skillbook.CLI
  alias Skillbook.Native
  alias Skillbook.Support.JSON

  @moduletag :tmp_dir

  @page "---\nname: mail.send\ndescription: Sends: a message to people\n---\n" <>
          "## Usage\n\nmail.sned --to <a>\n"

  # Standard output and the exit status. Standard error is a message, for `errors/0`.
  defp lint(args) do
    {output, status, errors} = run_cli(["--no-builtins", "lint" | args])
    send(self(), {:errors, errors})
    {output, status}
  end

  defp errors do
    assert_receive {:errors, errors}
    errors
  end

  # The log of a folder, with atoms as the keys of everything in its run.
  defp sarif(found, folder) do
    terminal = %{color: false, width: nil}
    {json, nil, _failed?} = Native.report_lint(found, folder, :sarif, terminal)
    {:ok, %{"runs" => runs} = log} = JSON.decode(json)
    %{log | "runs" => atoms(runs)}
  end

  defp atoms(%{} = map), do: Map.new(map, fn {key, one} -> {String.to_atom(key), atoms(one)} end)
  defp atoms(list) when is_list(list), do: Enum.map(list, &atoms/1)
  defp atoms(other), do: other

  test "text shows the line, a caret, the hint and a count", %{tmp_dir: folder} do
    write(folder, %{"mail/send.md" => @page})
    path = Path.relative_to_cwd(Path.join(folder, "mail/send.md"))

    assert lint([folder]) ==
             {"""
              #{path}:3:14: warning: an unquoted value may not contain a colon \
              followed by a space; read as: description: "Sends: a message to people" \
              [frontmatter_repaired]
                3 | description: Sends: a message to people
                  |              ^
                hint: write the line like this
                --fix corrects this

              #{path}:7:1: warning: there is no command `mail.sned` [example_unknown]
                7 | mail.sned --to <a>
                  | ^
                hint: did you mean `mail.send`?

              2 warnings
              """, 1}
  end

  test "the exit status is 0 for hints and without diagnostics", %{tmp_dir: folder} do
    assert {"No problems found.\n", 0} = lint([folder])

    assert errors() ==
             "skillbook: no Markdown file in #{Path.relative_to_cwd(folder)}\n"

    assert {"No problems found.\n", 0} = lint(["mix.exs"])
    assert errors() == "skillbook: no Markdown file in mix.exs\n"
    write(folder, %{"a.md" => "---\nname: a\ndescription: Short\n---\nx"})
    assert {output, 0} = lint([folder])
    assert output =~ "\n1 info\n"
    assert errors() == ""
  end

  test "without a path, a folder of skills must exist", %{tmp_dir: folder} do
    File.cd!(folder, fn -> assert {"", 2} = lint([]) end)

    assert errors() ==
             "skillbook: `lint` expects folders or files; ./skills does not exist, " <>
               "and --dir is missing\nSee: skillbook lint --help\n"
  end

  test "checks a file together with the files of its folder", %{tmp_dir: folder} do
    write(folder, %{
      "mail/send.md" => @page,
      "mail/read.md" =>
        "---\nname: mail.read\ndescription: Reads a whole message\n---\n" <>
          "## Usage\n\nmail.read\nmail.send\n"
    })

    assert {"No problems found.\n", 0} = lint([Path.join(folder, "mail/read.md")])
    assert {_, 1} = lint([Path.join(folder, "mail/send.md")])
  end

  test "--fix corrects files and lists them", %{tmp_dir: folder} do
    write(folder, %{"mail/send.md" => @page})
    assert {output, 1} = lint([folder, "--fix"])
    refute output =~ "frontmatter_repaired"

    assert errors() ==
             "fixed 1 place in #{Path.relative_to_cwd(Path.join(folder, "mail/send.md"))}\n"

    assert File.read!(Path.join(folder, "mail/send.md")) =~
             ~s(description: "Sends: a message to people"\n)
  end

  test "--profile checks only pages that the profile can see", %{tmp_dir: folder} do
    page = fn name, more, usage ->
      "---\nname: mail.#{name}\ndescription: About messages to people\n#{more}---\n" <>
        "## Usage\n\nmail.#{name}\n#{usage}\n"
    end

    write(folder, %{
      "mail/send.md" => page.("send", "", "mail.send"),
      "mail/secret.md" => page.("secret", "visibility_labels: [boss]\n", "mail.secrt"),
      "mail/read.md" => page.("read", "", "mail.secret")
    })

    found = fn args ->
      {output, _} = lint([folder | args])
      Regex.scan(~r/(\w+)\.md:\S* warning: (.*) \[/, output, capture: :all_but_first)
    end

    unknown = ["read", "there is no command `mail.secret`"]
    slip = ["secret", "there is no command `mail.secrt`"]
    assert found.([]) == [slip]
    assert found.(["--profile", "default"]) == [unknown]
    assert found.(["--grant", "boss"]) == [slip]
  end

  test "without a path, checks the folders of --dir", %{tmp_dir: folder} do
    write(folder, %{"mail/send.md" => @page})
    assert {output, 1} = lint(["--dir", folder])
    assert output == elem(lint([folder]), 0)
  end

  test "checks a path below --dir as part of that folder", %{tmp_dir: folder} do
    write(folder, %{
      "mail/send.md" =>
        "---\nname: post.send\ndescription: Sends a message to people\n---\n" <>
          "## Usage\n\npost.send\nread\n",
      "read.md" =>
        "---\nname: read\ndescription: Reads a message of people\n---\n```cmd\npost.send\n```\n"
    })

    read = Path.join(folder, "read.md")
    mail = Path.join(folder, "mail")
    assert {"No problems found.\n", 0} = lint([read, "--dir", folder])
    assert {output, 1} = lint([mail, "--dir", folder])
    assert output =~ "hint: write name: mail.send, or move the file to `post/send.md`\n"
    assert output =~ "\n1 warning\n"
    # The folders of --dir only provide commands.
    write(folder, %{
      "other/x.md" =>
        "---\nname: x\ndescription: Tells of other commands\n---\n```cmd\npost.send\n```\n"
    })

    other = Path.join(folder, "other")
    assert {_, 1} = lint([other])
    assert {"No problems found.\n", 0} = lint([other, "--dir", mail, "--dir", folder])
  end

  test "--strict runs the validator of the format", %{tmp_dir: folder} do
    write(folder, %{
      "pdf/SKILL.md" =>
        "---\nname: pdf\ndescription: Reads all kinds of forms\nversion: 1\n---\nx"
    })

    assert {_, 0} = lint([folder])
    assert {output, 1} = lint([folder, "--strict"])
    assert output =~ "error: the format has no field `version` [spec_violation]"
  end

  test "prints JSON as an array of objects", %{tmp_dir: folder} do
    write(folder, %{"mail/send.md" => @page})
    assert {json, 1} = lint([folder, "--format", "json"])

    assert json =~
             ~S("fix":{"length":39,"offset":20,) <>
               ~S("text":"description: \"Sends: a message to people\""})

    assert json =~ ~S("code":"example_unknown","column":1,"fix":null,)
    write(folder, %{"mail/send.md" => "text"})
    assert {"[" <> _, 0} = lint([folder, "--format", "json"])
  end

  # Requirements of the format: properties, values and minima of its schema, and the rules for
  # URIs, columns and fixes in its text.
  test "SARIF meets the requirements of the format", %{tmp_dir: folder} do
    write(folder, %{
      "a b/mäil.md" => "\uFEFF" <> @page,
      "crlf.md" =>
        "---\r\ndescription: 😀 a: b\r\ntags: a, b\r\n---\r\n```cmd\r\nno.such 😀\r\n```\r\n",
      "odd.md" => "---\nname: odd\n---\n",
      "wide.md" =>
        "---\nname: wide\ndescription: Shows wide letters well\n---\n" <>
          "```cmd\nwide --x '😀' | b\n```\n"
    })

    log = [folder] |> Skillbook.Lint.run() |> sarif(folder)
    assert Enum.sort(Map.keys(log)) == ["$schema", "runs", "version"]
    assert %{"version" => "2.1.0", "$schema" => "https://" <> _, "runs" => [run]} = log
    assert Enum.sort(Map.keys(run)) == [:columnKind, :results, :tool]

    assert %{
             tool: %{driver: %{name: "skillbook", version: version, rules: rules}},
             results: results
           } = run

    assert is_binary(version)
    assert run.columnKind == "utf16CodeUnits"
    assert Enum.uniq_by(rules, & &1.id) == rules

    for rule <- rules do
      assert %{shortDescription: %{text: _}, fullDescription: %{text: full}} = rule
      assert %{help: %{text: help, markdown: markdown}, helpUri: "urn:skillbook:" <> _} = rule
      assert String.starts_with?(help, full)
      assert markdown =~ "\n\n**Solution:** "
      refute help =~ ~r/[`\[\]]/
    end

    prints = Enum.map(results, & &1.partialFingerprints.primaryLocationLineHash)
    assert Enum.all?(prints, &(&1 =~ ~r/\A[0-9a-f]{16}:[1-9]\d*\z/))
    assert Enum.uniq(prints) == prints
    assert results != []

    for result <- results do
      assert %{message: %{text: text}, ruleId: id, ruleIndex: index, level: level} = result
      assert is_binary(text) and Enum.at(rules, index).id == id
      assert level in ["error", "warning", "note"]

      assert [%{physicalLocation: %{artifactLocation: %{uri: uri}, region: region}}] =
               result.locations

      assert uri in ["a%20b/m%C3%A4il.md", "crlf.md", "odd.md", "wide.md"]
      assert Enum.sort(Map.keys(region)) == [:endColumn, :endLine, :startColumn, :startLine]
      assert region.startLine >= 1 and region.startColumn >= 1
      assert region.endLine == region.startLine and region.endColumn >= region.startColumn

      for fix <- Map.get(result, :fixes, []) do
        assert %{description: %{text: _}, artifactChanges: [change]} = fix
        assert %{artifactLocation: %{uri: ^uri}, replacements: [replacement]} = change
        assert %{deletedRegion: deleted, insertedContent: %{text: _}} = replacement
        assert Enum.sort(Map.keys(deleted)) == [:endColumn, :endLine, :startColumn, :startLine]

        assert deleted.startLine >= 1 and deleted.startColumn >= 1
        assert {deleted.endLine, deleted.endColumn} >= {deleted.startLine, deleted.startColumn}
      end
    end

    # A character outside the Basic Multilingual Plane is two code units.
    places =
      for %{ruleId: "example_unparsable", locations: [%{physicalLocation: place}]} <- results,
          do: place.region

    assert places == [%{startLine: 6, startColumn: 15, endLine: 6, endColumn: 18}]
    assert {"{" <> _, 1} = lint([folder, "--format", "sarif"])
  end

  test "SARIF recognises a finding whose line has moved", %{tmp_dir: folder} do
    page = &"---\nname: mail.send\ndescription: Sends messages to people\n---\n#{&1}"
    block = "```cmd\nno.such 'x\n```\n"

    fingerprints = fn text ->
      write(folder, %{"mail/send.md" => page.(text)})
      %{"runs" => [run]} = [folder] |> Skillbook.Lint.run() |> sarif(folder)

      for %{ruleId: "example_unparsable"} = result <- run.results,
          do: result.partialFingerprints.primaryLocationLineHash
    end

    assert [one] = fingerprints.(block)
    assert fingerprints.("More text.\n\n" <> block) == [one]
    assert [^one, two] = fingerprints.(block <> "\n" <> block)
    assert String.replace(two, ":2", ":1") == one
    assert fingerprints.("```cmd\nno.such 'y\n```\n") != [one]
  end

  test "SARIF has a text for every code" do
    for code <- Skillbook.Diagnostic.codes() do
      assert {:ok, {problem, solution}} = Skillbook.Diagnostic.explain(code)
      assert problem != "" and solution != ""
    end
  end

  test "SARIF has an absolute URI for files outside the folder", %{tmp_dir: folder} do
    write(folder, %{"odd.md" => "---\nname: odd\n---\n"})

    assert %{"runs" => [run]} =
             [folder] |> Skillbook.Lint.run() |> sarif(Path.join(folder, "other"))

    assert [%{locations: [%{physicalLocation: %{artifactLocation: %{uri: uri}}}]}] = run.results
    assert uri == "file://" <> URI.encode(Path.join(Path.expand(folder), "odd.md"))
  end

  test "applying the replacements of SARIF equals --fix", %{tmp_dir: folder} do
    texts = %{
      "bom.md" => "\uFEFF---\ndescription: Sends: a message\n---\nText\n",
      "crlf.md" => "---\r\nname: crlf\r\ndescription: 😀 a: b 😀\r\ntags: a, b\r\n---\r\nText\r\n",
      "many.md" =>
        "---\nname: many\ndescription: é: x\n  more\nversion: 1\ntitle: 12\n---\nText\n"
    }

    write(folder, texts)
    found = Skillbook.Lint.run([folder])
    assert %{"runs" => [%{results: results}]} = sarif(found, folder)

    replaced =
      for {file, text} <- texts, into: %{} do
        replacements =
          for %{
                fixes: [
                  %{artifactChanges: [%{artifactLocation: %{uri: ^file}, replacements: all}]}
                ]
              } <-
                results,
              replacement <- all,
              do: replacement

        assert replacements != []
        {file, replace(text, replacements)}
      end

    Skillbook.Lint.apply_fixes(found)

    assert replaced ==
             Map.new(texts, fn {file, _} -> {file, File.read!(Path.join(folder, file))} end)
  end

  # From the last region to the first, so that no offset moves.
  defp replace(text, replacements) do
    replacements
    |> Enum.sort_by(
      fn %{deletedRegion: r} -> {r.startLine, r.startColumn, r.endLine, r.endColumn} end,
      :desc
    )
    |> Enum.reduce(text, fn %{deletedRegion: region, insertedContent: %{text: new}}, text ->
      from = offset(text, region.startLine, region.startColumn)
      to = offset(text, region.endLine, region.endColumn)
      binary_part(text, 0, from) <> new <> binary_part(text, to, byte_size(text) - to)
    end)
  end

  defp offset(text, line, column) do
    {before, [rest | _]} = text |> String.split("\n") |> Enum.split(line - 1)
    mark = if line == 1 and String.starts_with?(rest, "\uFEFF"), do: 3, else: 0
    rest = binary_part(rest, mark, byte_size(rest) - mark)

    units = :unicode.characters_to_binary(rest, :utf8, :utf16)

    within =
      units
      |> binary_part(0, (column - 1) * 2)
      |> :unicode.characters_to_binary(:utf16, :utf8)
      |> byte_size()

    before |> Enum.map(&(byte_size(&1) + 1)) |> Enum.sum() |> Kernel.+(mark + within)
  end

  test "explain shows the file of a name", %{tmp_dir: folder} do
    write(folder, %{"mail/send.md" => @page})

    explain = fn args ->
      capture_io(fn ->
        send(self(), CLI.run(["--dir", folder, "--no-builtins", "explain" | args]))
      end)
    end

    capture_io(:stderr, fn ->
      assert explain.(["send"]) == """
             #{folder}/mail/send.md
               from the source `#{Path.basename(folder)}`
               used as `mail.send`
               in the prompt of `default`: in the section `quick_reference`
               3:14: warning: an unquoted value may not contain a colon \
             followed by a space; read as: description: "Sends: a message to people" \
             [frontmatter_repaired]
             """

      assert_receive 0
      assert explain.(["mail/send.md"]) == explain.(["send"])

      assert explain.([Path.relative_to_cwd(Path.join(folder, "mail/send.md"))]) ==
               explain.(["send"])

      for _ <- 1..4, do: assert_receive(0)

      assert explain.(["send", "--max-tokens", "10"]) =~
               "in the prompt of `default`: left out of the section `quick_reference` " <>
                 "for lack of space\n"

      assert_receive 0

      # Of several entries, those that are near to a message stay.
      for name <- ["harp", "lute", "viol"] do
        text =
          "---\nname: #{name}\ndescription: #{String.duplicate("Play the #{name}. ", 9)}\n---\n"

        write(folder, %{"#{name}.md" => text})
      end

      limit = ["--section", "skills", "--max-chars", "450"]
      assert explain.(["viol" | limit]) =~ "left out of the section `skills` for lack of space\n"
      near = ["--message", "hello", "--message", "a viol, please"]
      assert explain.(["viol" | limit ++ near]) =~ "in the section `skills`\n"
      for _ <- 1..2, do: assert_receive(0)

      assert explain.(["mail.sned"]) ==
               "mail.sned: no file has this name; similar names: mail.send, mail\n"

      assert_receive 1
    end)
  end
end
