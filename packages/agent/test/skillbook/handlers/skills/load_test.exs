defmodule Skillbook.Handlers.Skills.LoadTest do
  # notes.get and skills.load, over files.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Catalog, Entry, NotFoundError, Source, Tools, View}

  @moduletag :tmp_dir

  setup %{tmp_dir: folder} do
    write(folder, %{
      "notes/school.md" => "# School Schedule\n\nMonday: Math\n",
      "notes/dinner plans.md" => "---\ntitle: Dinner\n---\n\n  Soup on Friday.\n\n",
      "notes/shared.md" => "---\ntitle: dinner\n---\nAnother.\n",
      "notes/tax.md" => "---\ntitle: Tax Records\nvisibility_labels: [red]\n---\nSecret.\n",
      "notes/kept.md" =>
        "---\ntitle: Kept\nexclude_from_prompt_profile_ids: [guest]\n---\nKept.\n",
      "skills/weekly-report/SKILL.md" =>
        "---\nname: weekly-report\ntitle: Weekly Report\ndescription: Writes it\n" <>
          "aliases: [weekly]\n---\nWrite it.\n",
      "skills/pdf/SKILL.md" => "---\nname: pdf\ndescription: Reads PDF\n---\nRead it.\n",
      "skills/pdf/forms.md" => "Forms.",
      "skills/secret/SKILL.md" =>
        "---\nname: secret\ndescription: Hidden\nvisibility_labels: [red]\n---\nSecret.\n",
      "skills/private.md" =>
        "---\nname: private\ndescription: For others\nexclude_from_prompt_profile_ids: " <>
          "[guest]\n---\nPrivate.\n",
      "skills/quiet.md" =>
        "---\nname: quiet\ndescription: Untold\ndisable-model-invocation: true\n---\nQuiet.\n",
      "skills/x/act.md" => page("x.act")
    })

    notes = Path.join(folder, "notes")

    {:ok, catalog} =
      Catalog.load([Source.builtin(), Path.join(folder, "skills"), [path: notes, kind: :notes]])

    {:ok, guest} = View.new(catalog, id: "guest")
    {:ok, view: guest, catalog: catalog}
  end

  defp result(view, line), do: hd(Skillbook.run(view, "```cmd\n#{line}\n```").results)

  defp answer(view, line) do
    case result(view, line) do
      %{status: :ok, content: content} -> content
      %{status: :error, content: content} -> "error: " <> content
    end
  end

  @notes "Available notes: Dinner, Kept, pdf, School Schedule, dinner, Weekly Report"

  test "notes.get", %{view: view} do
    rows = [
      {~s(notes.get --title "School Schedule"), "# School Schedule\n\nMonday: Math"},
      {"notes.get School Schedule", "# School Schedule\n\nMonday: Math"},
      {~s(get_note "School Schedule"), "# School Schedule\n\nMonday: Math"},
      {~s(get_note {"title": "school schedule"}), "# School Schedule\n\nMonday: Math"},
      {"notes.get school", "# School Schedule\n\nMonday: Math"},
      {"notes.get Dinner", "# Dinner\n\nSoup on Friday."},
      {"notes.get dinner", "# dinner\n\nAnother."},
      {~s(notes.get "dinner plans"), "# Dinner\n\nSoup on Friday."},
      # More than one title fits.
      {"notes.get DINNER",
       ~s(error: "DINNER" can mean dinner plans or shared. Write one of these names)},
      {"notes.get Kept", "# Kept\n\nKept."},
      {"notes.get Weekly Report", "# Weekly Report\n\nWrite it."},
      {"notes.get weekly-report", "# Weekly Report\n\nWrite it."},
      {"notes.get weekly", "# Weekly Report\n\nWrite it."},
      {"notes.get quiet", "# quiet\n\nQuiet."},
      {"notes.get x.act", "error: Note 'x.act' not found. #{@notes}"},
      {"notes.get private", "error: Note 'private' not found. #{@notes}"},
      {~s(notes.get "Tax Records"), "error: Note 'Tax Records' not found. #{@notes}"},
      {~s(notes.get "Tax Rexords"), "error: Note 'Tax Rexords' not found. #{@notes}"},
      {"notes.get", "error: --title is required and missing. Add it as: --title VALUE"},
      {"notes.get --titel x",
       "error: unknown flag --titel; did you mean --title? Known flags: --title"},
      {~s(notes.get "a\nb"),
       ~S(error: --title must be one line of text, not empty, got "a\nb". Write for example: ) <>
         ~S(--title "some text")}
    ]

    for {line, text} <- rows, do: assert({line, answer(view, line)} == {line, text})
  end

  test "skills.load", %{view: view} do
    available = "Available: pdf, weekly-report"

    rows = [
      {"skills.load --skill-id weekly-report", "# weekly-report\n\nWrite it."},
      {"skills.load weekly-report", "# weekly-report\n\nWrite it."},
      {"skills.load weekly", "# weekly-report\n\nWrite it."},
      {"skills.load Weekly Report", "# weekly-report\n\nWrite it."},
      {~s(load_skill {"skill_id": "weekly-report"}), "# weekly-report\n\nWrite it."},
      {"skills.load pdf",
       "# pdf\n\n  Read it.\n\n## Files\n\nRead one with `get_skill: pdf/<file>`:\n\n- forms.md"},
      {"skills.load quiet", "# quiet\n\nQuiet."},
      {"skills.load School Schedule", "error: Skill 'School Schedule' not found. #{available}"},
      {"skills.load x.act", "error: Skill 'x.act' not found. #{available}"},
      {"skills.load private", "error: Skill 'private' not found. #{available}"},
      {"skills.load secret", "error: Skill 'secret' not found. #{available}"},
      {"skills.load sexret", "error: Skill 'sexret' not found. #{available}"},
      {"skills.load", "error: --skill-id is required and missing. Add it as: --skill-id VALUE"}
    ]

    for {line, text} <- rows, do: assert({line, answer(view, line)} == {line, text})
  end

  test "as tools", %{view: view} do
    assert [_, note, skill] =
             Tools.definitions(view, shape: :mcp, names: ["notes.get", "skills.load"])

    assert {note["name"], note["annotations"]} == {"get_note", %{"readOnlyHint" => true}}

    assert %{"required" => ["title"], "properties" => %{"title" => %{"type" => "string"}}} =
             note["inputSchema"]

    assert skill["name"] == "load_skill"

    assert %{"required" => ["skill_id"], "properties" => %{"skill_id" => %{"type" => "string"}}} =
             skill["inputSchema"]

    assert {%{content: "# Dinner\n\nSoup on Friday."}, %{"isError" => false}} =
             Tools.call(view, %{"name" => "get_note", "arguments" => %{"title" => "Dinner"}})

    assert {%{content: "# weekly-report\n\nWrite it."}, %{"isError" => false}} =
             Tools.call(view, %{
               "name" => "load_skill",
               "arguments" => %{"skill_id" => "weekly-report"}
             })

    assert {%{error: %NotFoundError{kind: "note", id: "no"}}, %{"isError" => true}} =
             Tools.call(view, %{"name" => "get_note", "arguments" => %{"title" => "no"}})
  end

  test "results name the entry of their text", %{view: view} do
    for {line, name} <- [
          {"notes.get Dinner", "dinner plans"},
          {"skills.load weekly", "weekly-report"}
        ] do
      entry = View.fetch!(view, name)
      result = result(view, line)
      assert result.metadata == %{activates: [Entry.activation(entry)]}
      assert result.data == Map.take(entry, [:name, :title, :kind])
    end

    assert result(view, "notes.get no").metadata == %{}
  end

  test "errors list at most twenty names", %{tmp_dir: folder, view: view} do
    {:ok, catalog} = Catalog.load([Source.builtin()])
    none = View.all(catalog)
    assert answer(none, "notes.get x") == "error: Note 'x' not found. Available notes: none"
    assert answer(none, "skills.load x") == "error: Skill 'x' not found. Available: none"

    for number <- 10..34,
        do: write(folder, %{"many/#{number}.md" => "---\ntitle: T#{number}\n---\nx\n"})

    {:ok, catalog} =
      Catalog.load([Source.builtin(), [path: Path.join(folder, "many"), kind: :notes]])

    titles = Enum.map_join(10..29, ", ", &"T#{&1}")

    assert answer(View.all(catalog), "notes.get x") ==
             "error: Note 'x' not found. Available notes: #{titles}"

    long = String.duplicate("y", 200)

    assert answer(view, "notes.get #{long}") =~
             "error: Note '#{String.duplicate("y", 100)}' not found."
  end
end
