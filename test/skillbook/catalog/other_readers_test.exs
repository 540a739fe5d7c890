defmodule Skillbook.Catalog.OtherReadersTest do
  # The cases that the tests of two other readers of Agent Skills try: skills-ref, the reference
  # library, and the loader of pi's coding agent. Where we differ on purpose, docs/agent-skills.md
  # says why ("Where other readers differ").
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Catalog, View}

  @moduletag :tmp_dir

  defp matter(lines), do: "---\n#{lines}\n---\nDo it so.\n"
  defp skill(name, more \\ ""), do: matter("name: #{name}\ndescription: What it does" <> more)

  # The names of the entries and the codes of the diagnostics.
  defp read(root, files) do
    root = Path.join(root, "#{System.unique_integer([:positive])}")
    write(root, files)
    {:ok, catalog} = Catalog.load([root])
    names = for entry <- View.entries(View.all(catalog)), do: entry.name
    {names, for(found <- Catalog.diagnostics(catalog), do: found.code)}
  end

  # Each row has the other reader, the case, the files, our names and codes, and the decision of
  # the others: `:same`, or a description.
  defp cases do
    long = String.duplicate("a", 70)

    [
      {"both", "a valid skill", %{"mail/SKILL.md" => skill("mail")}, ["mail"], [], :same},
      {"both", "no frontmatter", %{"mail/SKILL.md" => "# Mail\n"}, [], [:description_missing],
       :same},
      {"skills-ref", "never closed", %{"mail/SKILL.md" => "---\nname: mail\ndescription: d\n"},
       [], [:frontmatter_unclosed], :same},
      {"both", "a list that never closes",
       %{"mail/SKILL.md" => matter("name: [mail\ndescription: d")}, [], [:frontmatter_invalid],
       :same},
      {"pi", "a description that never closes",
       %{"mail/SKILL.md" => matter("name: mail\ndescription: [d")}, [], [:frontmatter_invalid],
       :same},
      {"skills-ref", "a list as frontmatter", %{"mail/SKILL.md" => matter("- one\n- two")}, [],
       [:frontmatter_invalid], :same},
      {"both", "no description", %{"mail/SKILL.md" => matter("name: mail")}, [],
       [:description_missing], :same},
      {"skills-ref", "no name", %{"mail/SKILL.md" => matter("description: d")}, ["mail"],
       [:name_missing], "skills-ref refuses it, pi takes the folder's name in silence"},
      {"both", "another name than the folder's", %{"mail/SKILL.md" => skill("post")}, ["post"],
       [:name_differs], "skills-ref refuses it, pi warns"},
      {"both", "capitals", %{"Mail/SKILL.md" => skill("Mail")}, ["Mail"], [:name_characters],
       "skills-ref refuses it, pi warns"},
      {"both", "blanks, as in `Home Automation`",
       %{"home-automation/SKILL.md" => skill("Home Automation")}, ["Home Automation"], [],
       "skills-ref refuses it, pi warns"},
      {"both", "an underscore", %{"my_mail/SKILL.md" => skill("my_mail")}, ["my_mail"],
       [:name_characters], "skills-ref refuses it, pi warns"},
      {"both", "a long name", %{"#{long}/SKILL.md" => skill(long)}, [long], [:name_too_long],
       "skills-ref refuses it, pi warns"},
      {"both", "two hyphens", %{"my--mail/SKILL.md" => skill("my--mail")}, ["my--mail"],
       [:name_characters], "skills-ref refuses it, pi warns"},
      {"skills-ref", "a hyphen in front", %{"-mail/SKILL.md" => skill("-mail")}, ["-mail"],
       [:name_characters], "skills-ref refuses it, pi warns"},
      {"skills-ref", "other scripts", %{"почта/SKILL.md" => skill("почта")}, ["почта"],
       [:name_characters], "skills-ref takes lowercase letters of all scripts, pi warns"},
      {"skills-ref", "the same name composed otherwise",
       %{"caf\u00E9/SKILL.md" => skill("cafe\u0301")}, ["cafe\u0301"],
       [:name_differs, :name_characters], "skills-ref compares after Unicode's NFKC"},
      {"both", "a long description",
       %{"mail/SKILL.md" => matter("name: mail\ndescription: #{String.duplicate("x", 1100)}")},
       ["mail"], [:description_too_long], "skills-ref refuses it, pi warns"},
      {"skills-ref", "a long compatibility",
       %{"mail/SKILL.md" => skill("mail", "\ncompatibility: #{String.duplicate("x", 550)}")},
       ["mail"], [:compatibility_too_long], "skills-ref refuses it"},
      {"both", "fields that nobody knows", %{"mail/SKILL.md" => skill("mail", "\nmood: good")},
       ["mail"], [], "skills-ref's validation refuses it, pi does not mind"},
      {"pi", "a skill in a folder of folders", %{"a/b/mail/SKILL.md" => skill("mail")}, ["mail"],
       [], :same},
      {"pi", "a skill below a skill",
       %{"mail/SKILL.md" => skill("mail"), "mail/inner/SKILL.md" => skill("inner")},
       ["inner", "mail"], [], "pi looks no further below a skill"},
      {"pi", "a source that is a skill's folder itself",
       %{"SKILL.md" => matter("name: mail\ndescription: d")}, ["mail"], [:name_differs], :same},
      {"skills-ref", "the file's name in small letters", %{"mail/skill.md" => skill("mail")},
       ["mail"], [:name_differs],
       "skills-ref takes it for SKILL.md; here it is a skill of one file, without a folder"},
      {"skills-ref", "both spellings of the file's name",
       %{"mail/SKILL.md" => skill("mail"), "mail/skill.md" => "anything"}, ["mail"], [], :same},
      {"skills-ref", "a folder without the file", %{"mail/notes.txt" => ""}, [], [],
       "skills-ref refuses the folder; to a catalog it is any folder"}
    ]
  end

  test "each case has the expected outcome", %{tmp_dir: root} do
    for {_who, what, files, names, codes, _others} <- cases() do
      assert {what, read(root, files)} == {what, {names, codes}}
    end
  end

  test "each difference is explained in the manual" do
    manual = File.read!("docs/agent-skills.md")
    [_, section] = String.split(manual, "## Where other readers differ\n")

    rows =
      for {_who, what, _files, _names, _codes, others} <- cases(), is_binary(others), do: what

    listed =
      for [_, what] <- Regex.scan(~r/^\| ([^|]+?) +\| [^|]+ \| [^|]+ \|$/m, section), do: what

    assert Enum.sort(listed -- ["case", "---"]) == Enum.sort(rows)
  end

  test "reads the same fields of a skill as the others", %{tmp_dir: root} do
    fields = """
    license: MIT
    allowed-tools: Bash(jq:*) Bash(git:*)
    disable-model-invocation: true
    metadata:
      author: Ann
      version: 1.0
    """

    write(root, %{
      "mail/SKILL.md" => skill("mail", "\n" <> String.trim(fields)),
      "list/SKILL.md" => matter("name: list\ndescription: |\n  First line.\n  Second line.")
    })

    view = view(root)
    mail = View.fetch!(view, "mail")
    assert {mail.description, mail.body} == {"What it does", "Do it so.\n"}
    assert {mail.license, mail.allowed_tools} == {"MIT", ["Bash(jq:*)", "Bash(git:*)"]}
    assert mail.hidden_from_model
    assert View.diagnostics(view) == []
    assert mail.metadata == %{"author" => "Ann", "version" => "1.0"}
    assert View.fetch!(view, "list").description == "First line.\nSecond line."
    refute View.fetch!(view, "list").hidden_from_model
  end

  test "uses the later of two sources; pi keeps the first", %{tmp_dir: root} do
    for place <- ["first", "second"] do
      write(Path.join(root, place), %{
        "calendar/SKILL.md" => skill("calendar", "\ntitle: #{place}")
      })
    end

    {:ok, catalog} = Catalog.load([Path.join(root, "first"), Path.join(root, "second")])
    assert View.fetch!(View.all(catalog), "calendar").title == "second"
    assert [%{code: :shadowed}] = Catalog.diagnostics(catalog)
  end
end
