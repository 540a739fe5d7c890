defmodule Skillbook.NamesTest do
  # Entries are found by their title and in other spellings, if only one can be meant.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Store, StoreError}

  @moduletag :tmp_dir

  setup %{tmp_dir: folder} do
    skills =
      write(Path.join(folder, "skills"), %{
        "mail/SKILL.md" => "---\ndomain: mail\ndescription: Mail\n---\nAll about mail.\n",
        "mail/send.md" => page("mail.send", [], "Sends mail.\n"),
        "home/SKILL.md" =>
          "---\nname: Home Automation\ndescription: Lights\n---\nSwitches lights.\n",
        "one/SKILL.md" => "---\nname: Skilled One\ndescription: One\n---\nThe skilled one.\n",
        "secret/SKILL.md" =>
          "---\nname: skilled-one\ndescription: One\nvisibility_labels: [secret]\n---\nHidden.\n",
        "twin/SKILL.md" => "---\nname: left_twin\ndescription: One\n---\nUnderscore.\n",
        "twin-2/SKILL.md" => "---\nname: left-twin\ndescription: One\n---\nDash.\n",
        "quiet/SKILL.md" =>
          "---\nname: quiet\ntitle: Quiet Skill\ndescription: Q\n" <>
            "disable-model-invocation: true\n---\nQuiet.\n",
        "meeting/SKILL.md" => "---\nname: meeting\ndescription: Meet\n---\nHow to meet.\n"
      })

    notes =
      write(Path.join(folder, "notes"), %{
        "mn.md" => "---\ntitle: Meeting Notes\n---\nWe met.\n",
        "react.md" => "---\ntitle: React\n---\nHooks.\n",
        "ü.md" => "---\ntitle: Über uns\n---\nWir.\n"
      })

    sources = [skills, [path: notes, kind: :notes]]

    book =
      book(
        sources: sources,
        store: ":memory:",
        profiles: [[id: "default"], [id: "all", grants: ["secret"]]]
      )

    {:ok, book: book}
  end

  defp run(book, line, profile \\ "default") do
    [result] = Skillbook.run(Skillbook.view(book, profile), "```cmd\n#{line}\n```").results
    result
  end

  test "get_skill takes titles with blanks, other cases and other separators", %{book: book} do
    for {path, text} <- [
          {"Meeting Notes", "We met."},
          {~s("meeting notes"), "We met."},
          {"meeting-notes", "We met."},
          {~s("MEETING NOTES"), "We met."},
          {"REACT", "Hooks."},
          {"über uns", "Wir."},
          {"ÜBER-UNS", "Wir."},
          {"Home Automation", "Switches lights."},
          {"home-automation", "Switches lights."},
          {"HOME_AUTOMATION", "Switches lights."},
          {"skilled one", "The skilled one."},
          {"skilled-one", "The skilled one."},
          {"MAIL", "All about mail."},
          {"Mail.Send", "Sends mail."},
          {"mail send", "Sends mail."},
          # An exact name wins.
          {"left_twin", "Underscore."},
          {"left-twin", "Dash."},
          # Each word is a path, so they are two paths.
          {"meeting mail", "How to meet.\n\n---\n\nAll about mail."},
          {"meeting notes", "How to meet.\n\n---\n\n# Notes\n"}
        ] do
      result = run(book, "get_skill: #{path}")
      assert {path, result.status} == {path, :help}
      assert result.content =~ text, "#{path}: #{result.content}"
    end
  end

  test "a text that means several entries lists those that the profile sees", %{book: book} do
    message = ~s("Left Twin" can mean left-twin or left_twin. Write one of these names)

    for line <- ["get_skill: Left Twin", "get_skill: \"Left Twin\"", "load_skill Left Twin"],
        do: assert(%{status: :error, content: ^message} = run(book, line))

    # `skilled-one` is hidden, so it does not compete; who sees it, gets it by its exact name.
    assert run(book, "load_skill skilled-one").content =~ "The skilled one."
    assert run(book, "load_skill skilled-one", "all").content =~ "Hidden."

    assert run(book, "get_skill: SKILLED ONE", "all").content ==
             ~s("SKILLED ONE" can mean Skilled One or skilled-one. Write one of these names)
  end

  test "what is not listed for models has only its exact names", %{book: book} do
    assert run(book, "get_skill: quiet").content =~ "Quiet."
    for path <- ["Quiet", "Quiet Skill"], do: assert(run(book, "get_skill: #{path}").error)
  end

  test "load_skill and get_note take titles without quotes, in any spelling", %{book: book} do
    for {line, text} <- [
          {"load_skill home-automation", "Switches lights."},
          {"load_skill Home Automation", "Switches lights."},
          {"load_skill skilled-one", "The skilled one."},
          {~s(get_note "REACT"), "Hooks."},
          {"get_note Meeting Notes", "We met."},
          {"get_note meeting_notes", "We met."},
          {"notes.get Über Uns", "Wir."}
        ] do
      result = run(book, line)
      assert {line, result.status} == {line, :ok}
      assert result.content =~ text
    end

    # A command is not a skill, in any spelling.
    assert run(book, "load_skill Mail Send").content =~ "Skill 'Mail Send' not found."
  end

  test "the store finds entries by other spellings, also disabled ones", %{book: book} do
    view = Skillbook.view(book)
    fields = %{title: "Weekly Report", description: "W", content: "Sum up."}
    {:ok, _} = Store.create(view, fields)
    view = Skillbook.view(book)

    for name <- ["weekly-report", "Weekly Report", "WEEKLY REPORT", "weekly_report"] do
      assert {:ok, %{name: "weekly-report"}} = Store.fetch(view, name)
      assert {:ok, [_ | _]} = Store.history(view, name)
      assert {:ok, %{entry: %{name: "weekly-report"}}} = Store.update(view, name, %{tags: [name]})
      assert {:ok, %{enabled: false}} = Store.disable(view, name)
      assert {:ok, %{enabled: true}} = Store.enable(view, name)
      assert {:ok, %{name: "weekly-report"}} = Store.restore(view, name, 1)
    end

    assert run(book, "skills.read Weekly report").content =~ "Sum up."
    assert run(book, "skills.history WEEKLY REPORT").content =~ "Versions of weekly-report"

    {:ok, _} = Store.create(view, %{fields | title: "weekly report!"} |> Map.put(:name, "other"))

    message =
      ~s("WEEKLY REPORT" can mean several entries: other, weekly-report. ) <>
        "Write one of these names"

    assert {:error, %StoreError{kind: :ambiguous} = error} = Store.delete(view, "WEEKLY REPORT")
    assert Exception.message(error) == message
    assert {:ok, %{name: "weekly-report"}} = Store.delete(view, "weekly-report")
    # A deleted entry is still named exactly.
    assert {:error, %StoreError{kind: :not_found, deleted_at: %DateTime{}}} =
             Store.delete(view, "weekly-report")

    # Titles stay unique: a note of another spelling is a new one.
    assert {:ok, _} = Store.put_note(view, "Milk", "One.")
    assert {:ok, _} = Store.put_note(view, "MILK!", "Two.")
  end
end
