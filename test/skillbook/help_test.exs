defmodule Skillbook.HelpTest do
  use ExUnit.Case, async: true

  doctest Skillbook.Help
  doctest Skillbook.Prompt

  alias Skillbook.{Catalog, Help, Prompt, UnknownSkillError, View}

  @fixtures "test/support/fixtures/skills"

  setup_all do
    {:ok, catalog} = Catalog.load([@fixtures])
    %{view: View.all(catalog), catalog: catalog}
  end

  test "answers on each level", %{view: view} do
    assert {:ok, "Domains:\n\n  email  Send, find and draft mail\n" <> _} = Help.top_level(view)
    assert {:ok, "# Email\n\n| Skill" <> _} = Help.domain(view, "email")
    assert {:ok, "# tasks\n\n| Skill" <> _ = tasks} = Help.domain(view, "tasks")
    assert tasks =~ "| tasks.search | Find tasks \\| by any field |"
    assert {:ok, "# email.send\n\nSends at once." <> _} = Help.skill(view, "email.send")
    assert {:ok, all} = Help.domain_all(view, "email")

    assert String.split(all, "\n\n---\n\n") |> Enum.map(&hd(String.split(&1, "\n"))) == [
             "# email.draft",
             "# email.search",
             "# email.send"
           ]
  end

  test "does not return entries of another level", %{view: view} do
    for {answer, name} <- [
          {&Help.domain/2, "haiku"},
          {&Help.skill/2, "email"},
          {&Help.domain_all/2, "email.send"}
        ] do
      assert {:error, %UnknownSkillError{name: ^name}} = answer.(view, name)
    end
  end

  test "accepts any binary as a path", %{view: view} do
    for path <- [<<0xFF>>, "a\0", String.duplicate("a/", 10_000)] do
      assert {:error, %UnknownSkillError{}} = Help.get(view, path)
    end
  end

  describe "a skill's files" do
    @describetag :tmp_dir

    test "are read on request", %{view: view} do
      assert {:ok, text} = Help.get(view, "pdf-processing/references/forms.md")
      assert text == File.read!(@fixtures <> "/pdf-processing/references/forms.md")

      assert Help.get(view, "pdf-processing/logo.png") ==
               {:ok, "`logo.png` is a binary file of 6 bytes, not text."}
    end

    test "are described if they cannot be shown", %{tmp_dir: root} do
      folder = Path.join(root, "s/a")
      File.mkdir_p!(folder)
      File.write!(Path.join(folder, "SKILL.md"), "---\nname: a\ndescription: d\n---\n")

      File.write!(Path.join(folder, "fits"), String.duplicate("x", 262_144))
      File.write!(Path.join(folder, "bytes"), <<0xFF, 0xFE>>)
      for file <- ["gone", "moved"], do: File.write!(Path.join(folder, file), "")
      File.write!(Path.join(root, "s/secret"), "secret")

      {:ok, catalog} = Catalog.load([Path.join(root, "s")])
      File.rm!(Path.join(folder, "gone"))
      # After the load the file became a link to a file outside of the skill.
      File.rm!(Path.join(folder, "moved"))
      File.ln_s!(Path.join(root, "s/secret"), Path.join(folder, "moved"))
      view = View.all(catalog)

      rows = [
        {"a/fits", String.duplicate("x", 262_144)},
        {"a/bytes", "`bytes` is a binary file of 2 bytes, not text."},
        {"a/gone", "`gone` cannot be read: No such file or directory (os error 2)."},
        {"a/moved", "`moved` leads out of the skill's folder and is not shown."}
      ]

      for {path, text} <- rows, do: assert(Help.get(view, path) == {:ok, text})

      for path <- ["a/../secret", "a/./fits", "a//fits", "a/#{folder}/fits", "a/unknown"] do
        assert {:error, %UnknownSkillError{}} = Help.get(view, path)
      end
    end
  end

  describe "the prompt" do
    test "has all sections, with the same bytes each time", %{view: view} do
      text = Prompt.text(view)

      assert text ==
               Prompt.text(view,
                 sections: [:other, :notes, :quick_reference, :skills, :domains, :rules]
               )

      assert text == Prompt.text(view, format: :default)
      assert text == Prompt.text(view, preloaded: ["nothing"])

      assert text == Prompt.text(view)
      headings = for "#" <> _ = line <- String.split(text, "\n"), do: line

      assert headings == [
               "# Commands",
               "## Domains",
               "## Skills",
               "## Quick reference",
               "## Also available"
             ]

      assert text =~ "\n- diary: My diary\n"
      refute text =~ "email.draft"
    end

    test "shows a profile only visible entries", %{catalog: catalog} do
      {:ok, guest} = View.new(catalog, id: "guest")
      for hidden <- ["diary", "email.send"], do: refute(Prompt.text(guest) =~ hidden)
      {:ok, nobody} = View.new(catalog, id: "nobody", skills: [])
      assert Prompt.text(nobody) == ""
    end

    test "has other formats", %{view: view} do
      for {format, start} <- [
            xml: "<available_skills>\n  <skill>\n    <name>",
            notes: "## Available Skills\n",
            list: "## Available Skills\n- "
          ] do
        assert String.starts_with?(Prompt.text(view, format: format), start)
      end

      assert Prompt.text(view, format: :list, preloaded: ["haiku"]) =~
               "\n## Pre-loaded Skills\n### haiku\n  Write three lines"
    end

    test "respects a limit", %{view: view} do
      whole = Prompt.text(view)

      for {option, most} <- [max_chars: 1_300, max_tokens: 330] do
        text = Prompt.text(view, [{option, most}])
        assert String.length(text) < min(String.length(whole), 1_321)
        assert text =~ ~r/\n\nLeft out for lack of space: .*\n\z/
      end

      assert Prompt.text(view, max_chars: 0) == ""
      assert Prompt.text(view, max_chars: 1_000_000, max_tokens: nil) == whole
    end

    test "keeps the entries nearest to the messages within a limit" do
      folder = Path.join(System.tmp_dir!(), "skills-#{System.unique_integer([:positive])}")
      on_exit(fn -> File.rm_rf!(folder) end)
      names = ~w(alarm bakery calendar dentist)

      for name <- names, {file, labels} <- [{name, ""}, {"secret-" <> name, "[inner]"}] do
        Skillbook.Document.create(folder, file <> ".md", """
        ---
        name: #{file}
        description: All about #{name}s and other things with a long description of their own
        visibility_labels: #{if labels == "", do: "[]", else: labels}
        ---
        """)
      end

      {:ok, catalog} = Catalog.load([folder])
      {:ok, view} = View.new(catalog, id: "guest")
      user = &%{role: :user, content: &1}
      text = &Prompt.text(view, [sections: [:skill_list]] ++ &1)
      shown = fn text -> for [_, name] <- Regex.scan(~r/^- ([\w-]+):/m, text), do: name end

      rows = [
        {[], ["alarm", "bakery"]},
        {[messages: []], ["alarm", "bakery"]},
        {[messages: [user.("When does the bakery open?")]], ["alarm", "bakery"]},
        {[messages: [user.("A dentist, please")]], ["alarm", "dentist"]},
        {[messages: [user.("dentist"), user.("calendar")]], ["calendar", "dentist"]},
        # Only the last four messages of the user count, and of each the first 2,000 characters.
        {[messages: [user.("dentist") | List.duplicate(user.("calendar"), 4)]],
         ["alarm", "calendar"]},
        {[messages: [user.(String.duplicate(" ", 2_000) <> "dentist")]], ["alarm", "bakery"]},
        {[messages: [%{role: :assistant, content: "dentist"}, user.("calendar")]],
         ["alarm", "calendar"]},
        {[messages: [user.("\xff dentist")]], ["alarm", "bakery"]},
        {[nearest: ["dentist", "secret-alarm", "calendar"]], ["calendar", "dentist"]}
      ]

      for {options, expected} <- rows do
        cut = text.([max_chars: 330] ++ options)
        assert {options, shown.(cut)} == {options, expected}
        assert cut =~ "Left out for lack of space: 2 skills. "
        assert cut == text.([max_chars: 330] ++ options)
        assert text.([max_chars: 1_000] ++ options) == text.([])
        assert text.(options) == text.([])
      end

      # The place of an entry says so too.
      place = fn options ->
        options = [sections: [:skill_list], max_chars: 330] ++ options
        [file] = Skillbook.explain(catalog, "dentist", [profile: [id: "guest"]] ++ options).files
        file.prompt
      end

      assert place.([]) == "left out of the section `skill_list` for lack of space"
      assert place.(messages: [user.("A dentist")]) == "in the section `skill_list`"

      # With an additional line of rules.
      {:ok, careful} = View.new(catalog, id: "guest", writes: :delegate)
      options = [sections: [:rules, :skill_list], messages: [user.("dentist")]]
      rules = String.length(Prompt.text(careful, sections: [:rules]))
      cut = Prompt.text(careful, [max_chars: rules + 331] ++ options)
      assert {shown.(cut), cut =~ "Commands that change"} == {["alarm", "dentist"], true}
    end

    test "rejects invalid options", %{view: view} do
      for {options, message} <- [
            {[sections: [:rule]],
             "expected a list of :rules, :tool_rules, :domains, :commands, :skills, " <>
               ":skill_list, :available_skills, :quick_reference, " <>
               ":inline_skills, :notes, :notes_list, :skill_catalog, :preloaded_skills, " <>
               ":other, :other_notes " <>
               "as the option :sections of the prompt, got: [:rule]"},
            {[format: :xlm],
             "expected one of :default, :tools, :xml, :notes, :list as the option :format of " <>
               "the prompt, got: :xlm"},
            {[format: :xml, sections: [:rules]],
             "expected a format or sections, not both as the option :format of the prompt, " <>
               "got: :xml"},
            {[max_chars: -1],
             "expected a number or nil as the option :max_chars of the prompt, got: -1"},
            {[max_tokens: "9"],
             "expected a number or nil as the option :max_tokens of the prompt, got: \"9\""},
            {[preloaded: "a"],
             "expected a list of texts as the option :preloaded of the prompt, got: \"a\""},
            {[nearest: [1]],
             "expected a list of texts as the option :nearest of the prompt, got: [1]"},
            # Releases of Elixir order the fields of a map differently.
            {[messages: [%{role: :robot, content: "a"}]],
             "expected a list of messages with :role and :content as the option :messages of " <>
               "the prompt, got: #{inspect([%{role: :robot, content: "a"}])}"},
            {[nearest: ["a"], messages: []],
             "expected names or :messages, not both as the option :nearest of the prompt, " <>
               "got: [\"a\"]"}
          ] do
        assert_raise Skillbook.OptionError, message, fn -> Prompt.text(view, options) end
      end
    end
  end
end
