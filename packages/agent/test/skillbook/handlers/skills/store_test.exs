defmodule Skillbook.Handlers.Skills.StoreTest do
  # The commands over the store, as a model reads their answers, and the same as tools.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Context, Profile, StoreError, Tools, View}

  @moduletag :tmp_dir
  @now ~U[2026-02-17 12:00:00Z]
  @later ~U[2026-02-18 08:30:00Z]

  setup %{tmp_dir: folder} do
    write(folder, %{
      "pdf/SKILL.md" => "---\nname: pdf\ndescription: Reads PDF\ntags: [files]\n---\nRead it.\n",
      "notes/school.md" => "---\ntitle: School\n---\nMonday: Math\n"
    })

    profiles = [
      [id: "default"],
      [id: "bob", grants: ["red"]],
      [id: "mail", grants: ["outside"], labels: ["outside"]],
      [id: "reader", writes: :deny]
    ]

    sources = [Path.join(folder, "pdf"), [path: Path.join(folder, "notes"), kind: :notes]]
    {:ok, book: book(store: ":memory:", sources: sources, profiles: profiles, watch: false)}
  end

  defp result(book, line, options \\ []) do
    {profile, options} = Keyword.pop(options, :profile, "default")
    view = Skillbook.view(book, profile)

    [result] =
      Skillbook.run(view, "````cmd\n#{line}\n````", Keyword.merge([now: @now], options)).results

    result
  end

  defp answer(book, line, options \\ []) do
    case result(book, line, options) do
      %{status: :ok, content: content} -> content
      %{status: :error, content: content} -> "error: " <> content
    end
  end

  defp check(book, rows) do
    for row <- rows do
      {line, options, text} = with {line, text} <- row, do: {line, [], text}
      assert {line, answer(book, line, options)} == {line, text}
    end
  end

  # Each command over the store, with the first example of its page.
  defp examples(view) do
    for %{domain: domain, name: name, body: body} <- View.entries(view),
        domain in ["skills", "notes"] do
      [_, examples] = String.split(body, "## Examples\n\n")
      {name, examples |> String.split("\n") |> hd()}
    end
  end

  @dates ~s(skills.create --name iso-dates --title "ISO dates" --description "How dates are ) <>
           ~s(written" --content "Use ISO." --tags reports dates)

  describe "skills.create" do
    test "says that it continues the versions of a deleted entry", %{book: book} do
      check(book, [
        {@dates, "Created the skill iso-dates, version 1. `get_skill: iso-dates` reads it."},
        {"skills.delete iso-dates",
         "Deleted the skill iso-dates; `skills.restore iso-dates --version 1` restores it."},
        {@dates,
         "Created the skill iso-dates, version 3. `get_skill: iso-dates` reads it. " <>
           "A deleted entry of this name had the versions up to 2; this one continues its " <>
           "numbers with version 3."},
        {"notes.add --title Milk --content Two", ~s(Added the note "Milk" (milk\).)},
        {"notes.delete --title Milk",
         "Deleted the note milk; `skills.restore milk --version 1` restores it."},
        {"notes.add --title Milk --content Three",
         ~s(Added the note "Milk" (milk\). ) <>
           "A deleted entry of this name had the versions up to 2; this one continues its " <>
           "numbers with version 3."}
      ])
    end

    test "creates a skill or returns an error", %{book: book} do
      check(book, [
        {@dates, "Created the skill iso-dates, version 1. `get_skill: iso-dates` reads it."},
        {@dates,
         ~s(error: the store already has an entry "iso-dates". Update it, or choose another ) <>
           ~s(name)},
        {~s(skills.create close-month --title Close --description Steps --content <<EOF\n) <>
           ~s(1. Export\n2. Compare\nEOF),
         "Created the skill close-month, version 1. `get_skill: close-month` reads it."},
        {~s(create_skill {"name": "json", "title": "J", "description": "D", "content": "C", ) <>
           ~s("tags": ["a", "b"]}),
         "Created the skill json, version 1. `get_skill: json` reads it."},
        {~s(skills.create --name pdf --title PDF --description "Reads PDF" --content "Read."),
         "Created the skill pdf, version 1. `get_skill: pdf` reads it.\n" <>
           "It replaces the skill pdf of a file; `skills.delete pdf` restores that."},
        {~s(skills.create --name timetable --title School --description "Hours" --content "x"),
         "Created the skill timetable, version 1. `get_skill: timetable` reads it.\n" <>
           "It replaces the note school of a file; `skills.delete timetable` restores that."},
        {"skills.create --name x",
         "error: --title, --description and --content are required and missing. " <>
           "Add them as: --title VALUE --description VALUE --content VALUE"},
        {~s(skills.create --name "A b" --title x --description x --content x),
         "error: expected lowercase letters, digits and single dashes between them, at most " <>
           "64 characters, as the name " <>
           ~s(of an entry, got: "A b". Write for example: a-b)},
        {~s(skills.create --name x --title x --description x --content x --labels red),
         ~s(error: expected labels that this profile holds, got: "red". Leave them out)},
        {~s(skills.create --name x --title x --description x --content x --excluded-for default),
         ~s(error: expected an entry that this profile can see, got "x", which is not among ) <>
           ~s(its skills or ) <>
           "excludes it. Choose another name, or leave the profile out of excluded_for"},
        {~s(skills.create --name x --title x --description x --content x --label red),
         "error: unknown flag --label; did you mean --labels? Known flags: --name, --title, " <>
           "--description, --content, --tags, --tag, --labels, --include-in-prompt, " <>
           "--proactive-for, --excluded-for, --attachments, --schedule, --timezone"}
      ])

      assert %{data: %{name: "y", version: 1}, effects: [:skill_created]} =
               result(book, "skills.create --name y --title Y --description D --content C")
    end

    test "stores the author and all fields", %{book: book} do
      line =
        "skills.create --name secret --title Secret --description D --content C --labels red " <>
          "--include-in-prompt false --proactive-for default --excluded-for mail reader " <>
          "--attachments a1 a2"

      assert answer(book, line, by: :user, profile: "bob") =~ "Created"

      assert answer(book, "skills.read secret", profile: "bob") == """
             secret: Secret
             description: D
             labels: red
             in the prompt: no
             always in the prompt of: default
             never for: mail, reader
             attachments: a1, a2
             source: user
             version: 1, written for "bob" at 2026-02-17T12:00:00Z

             C\
             """

      assert answer(book, "skills.read secret") == ~s(error: the store has no entry "secret")
    end
  end

  describe "skills.update" do
    setup %{book: book} do
      assert answer(book, @dates) =~ "Created"
      :ok
    end

    test "edits the text, the fields, or both", %{book: book} do
      check(book, [
        {~s(skills.update iso-dates --operation append --content "Always."),
         "Updated iso-dates to version 2.\n  content: 8 -> 16 characters"},
        {~s(skills.update iso-dates --operation prepend --content "Dates:"),
         "Updated iso-dates to version 3.\n  content: 16 -> 23 characters"},
        {~s(skills.update "ISO dates" --operation find_replace --find "s" --replace ""),
         "Updated iso-dates to version 4.\n  content: 23 -> 22 characters"},
        {~s(skills.update iso-dates --operation find_replace --find "e" --replace "E" ) <>
           ~s(--replace-all), "Updated iso-dates to version 5.\n  content: 22 -> 22 characters"},
        {~s(skills.update iso-dates --operation delete --content "\nAlways."),
         "Updated iso-dates to version 6.\n  content: 22 -> 14 characters"},
        {~s(skills.update iso-dates --title "ISO dates!" --tags reports --include-in-prompt no),
         "Updated iso-dates to version 7.\n  title: ISO dates -> ISO dates!\n" <>
           "  tags: reports, dates -> reports\n  include_in_prompt: true -> false"},
        {~s(skills.update iso-dates --clear tags),
         "Updated iso-dates to version 8.\n  tags: reports -> none"},
        {~s(skills.update iso-dates --title "ISO dates!"),
         "Nothing changed: iso-dates is at version 8."},
        {~s(update_skill {"name": "iso-dates", "operation": "find_replace", "find": "E", ) <>
           ~s("replace": "e", "replace_all": true, "title": "Dates"}),
         "Updated iso-dates to version 9.\n  title: ISO dates! -> Dates\n" <>
           "  content: 14 -> 14 characters"}
      ])

      assert %{data: %{content: "Date:\nUse ISO.", tags: [], version: 9}} =
               result(book, "skills.read iso-dates")

      assert %{data: %{name: "iso-dates", version: 10}, effects: [:skill_updated]} =
               result(book, "skills.update iso-dates --operation replace --content Other")

      assert %{data: %{name: "iso-dates", version: 10}, effects: []} =
               result(book, "skills.update iso-dates --operation replace --content Other")
    end

    test "returns errors", %{book: book} do
      check(book, [
        {"skills.update", "error: --name is required and missing. Add it as: --name VALUE"},
        {"skills.update iso-dates",
         "error: one of --operation, --content, --clear, --find, --replace, --replace-all, " <>
           "--title, --description, --include-in-prompt, --tags, --labels, --proactive-for, " <>
           "--excluded-for, --attachments, --schedule or --timezone is required. Add for " <>
           "example: --operation VALUE"},
        {"skills.update iso-dates --content x",
         "error: --operation is required and missing. Write for example: --operation replace"},
        {"skills.update iso-dates --operation append",
         "error: --content is required and missing. Add it as: --content VALUE"},
        {"skills.update iso-dates --operation find_replace --find x",
         "error: --replace is required and missing. Add it as: --replace VALUE"},
        {"skills.update iso-dates --operation find_replace --find x --replace y --content z",
         "error: --operation and --content contradict each other: --content is for the other " <>
           "operations"},
        {"skills.update iso-dates --operation append --content x --replace-all",
         "error: --operation and --replace-all contradict each other: it is for the " <>
           "operation find_replace"},
        {"skills.update iso-dates --operation insert --content x",
         ~s(error: --operation must be one of replace, find_replace, append, prepend, ) <>
           ~s(delete, got "insert". ) <>
           "Write for example: --operation replace"},
        {"skills.update iso-dates --tags a --clear tags",
         "error: --tags and --clear contradict each other: a field is either set or cleared, " <>
           "not both"},
        {"skills.update iso-dates --clear title",
         "error: --clear must be one of description, schedule, timezone, tags, labels, " <>
           "proactive-for, excluded-for, attachments, " <>
           ~s(got "title". Write for example: --clear description)},
        {~s(skills.update iso-dates --operation delete --content "Use ISI."),
         ~s(error: the text "Use ISI." does not occur in "iso-dates"; the closest line is ) <>
           ~s(line 1: "Use ISO.". ) <>
           "Copy the text exactly"},
        {"skills.update iso-datse --title x",
         ~s(error: the store has no entry "iso-datse"; did you mean iso-dates?)},
        {"skills.update pdf --title x",
         ~s(error: "pdf" comes from a file: the store cannot change it and has no versions ) <>
           ~s(of it. ) <>
           "Create an entry with this name to replace it"}
      ])

      assert %{data: %{version: 1}} = result(book, "skills.read iso-dates")
    end

    test "names the replaced version of another author", %{book: book} do
      replace = "skills.update iso-dates --operation replace --content"

      check(book, [
        {"#{replace} A", "Updated iso-dates to version 2.\n  content: 8 -> 1 characters"},
        {"#{replace} BB", [by: :user],
         "Updated iso-dates to version 3.\n  content: 1 -> 2 characters\n" <>
           ~s(It replaced version 2, written by agent "default" at 2026-02-17T12:00:00Z; ) <>
           "`skills.restore iso-dates --version 2` restores it."},
        {"#{replace} CCC", [profile: "bob", by: :user, now: @later],
         "Updated iso-dates to version 4.\n  content: 2 -> 3 characters\n" <>
           ~s(It replaced version 3, written by user "default" at 2026-02-17T12:00:00Z; ) <>
           "`skills.restore iso-dates --version 3` restores it."},
        {"#{replace} DDDD --expected-version 4",
         "Updated iso-dates to version 5.\n  content: 3 -> 4 characters"},
        {"skills.update iso-dates --operation append --content E", [profile: "bob"],
         "Updated iso-dates to version 6.\n  content: 4 -> 6 characters"},
        {"#{replace} x --expected-version 4", [now: @later],
         ~s(error: "iso-dates" is at version 6, which "bob" wrote at 2026-02-17T12:00:00Z, ) <>
           ~s(not at the expected ) <>
           "version 4. Read it again and repeat the change"},
        {"skills.restore iso-dates --version 3", "Restored version 3 of iso-dates as version 7."}
      ])

      assert %{data: %{content: "BB", version: 7}} = result(book, "skills.read iso-dates")
    end

    test "labels follow the store's rules", %{book: book} do
      check(book, [
        {"skills.update iso-dates --labels red", [profile: "bob"],
         "Updated iso-dates to version 2.\n  labels: none -> red"},
        {"skills.update iso-dates --title x", ~s(error: the store has no entry "iso-dates")},
        {"skills.read iso-dates", ~s(error: the store has no entry "iso-dates")},
        {"skills.list", "No skills in the store. `get_skill` lists everything, including files."},
        {"skills.update iso-dates --clear labels", [profile: "bob"],
         "Updated iso-dates to version 3.\n  labels: red -> none"},
        {"skills.update iso-dates --title x", [profile: "mail"],
         ~s(error: "iso-dates" lacks "outside", which this profile must set on every entry, ) <>
           ~s(so the profile cannot change it. ) <>
           "Create an entry with another name"}
      ])
    end
  end

  describe "skills.delete, enable, disable and restore" do
    setup %{book: book} do
      assert answer(book, @dates) =~ "Created"
      :ok
    end

    test "hide, remove and restore", %{book: book} do
      check(book, [
        {"skills.disable iso-dates",
         "Disabled iso-dates: only `skills.read` and `skills.list --include-disabled` find " <>
           "it. `skills.enable iso-dates` enables it again."},
        {"skills.list", "No skills in the store. `get_skill` lists everything, including files."},
        {"skills.list --include-disabled",
         "1 skill in the store:\n- iso-dates: ISO dates - How dates are written [reports, " <>
           "dates] (source: agent, version 2, disabled)"},
        {"skills.restore iso-dates --version 1",
         "Restored version 1 of iso-dates as version 2.\n" <>
           "It is disabled; `skills.enable iso-dates` enables it."},
        {"skills.enable iso-dates", "Enabled iso-dates: it can be found and read again."},
        {"skills.delete iso-dates --expected-version 1",
         ~s(error: "iso-dates" is at version 3, which "default" wrote at ) <>
           ~s(2026-02-17T12:00:00Z, not at the expected ) <>
           "version 1. Read it again and repeat the change"},
        {"skills.delete iso-dates",
         "Deleted the skill iso-dates; `skills.restore iso-dates --version 3` restores it."},
        {"skills.delete iso-dates",
         ~s(error: the entry "iso-dates" was deleted at 2026-02-17T12:00:00Z. ) <>
           "Restore one of its versions, or create a new entry"},
        {"skills.restore iso-dates --version 3", "Restored version 3 of iso-dates as version 5."},
        {"skills.restore iso-dates --version 9",
         ~s(error: "iso-dates" has no version 9 that this profile can read; its last version ) <>
           ~s(is 5)},
        {"skills.restore iso-dates",
         "error: --version is required and missing. Add it as: --version VALUE"}
      ])

      rows = [
        {"skills.disable iso-dates", %{name: "iso-dates", enabled: false}, [:skill_disabled]},
        {"skills.enable iso-dates", %{name: "iso-dates", enabled: true}, [:skill_enabled]},
        {"skills.delete iso-dates", %{deleted: true}, [:skill_deleted]},
        {"skills.restore iso-dates --version 1", %{name: "iso-dates", version: 9},
         [:skill_restored]}
      ]

      for {line, data, effects} <- rows do
        result = result(book, line)
        assert {line, result.data, result.effects} == {line, data, effects}
      end
    end

    test "history and diff", %{book: book} do
      assert answer(
               book,
               "skills.update iso-dates --operation append --content \"\nMore.\" --tags dates",
               by: :user,
               now: @later
             ) =~ "version 2"

      check(book, [
        {"skills.history iso-dates",
         "Versions of iso-dates, the newest first:\n" <>
           ~s(- version 2: update by user "default" at 2026-02-18T08:30:00Z\n) <>
           ~s(- version 1: create by agent "default" at 2026-02-17T12:00:00Z)},
        {"skills.diff iso-dates",
         """
         iso-dates: from version 1 to version 2
           tags: reports, dates -> dates
         @@ -1 +1,2 @@
         -Use ISO.
         \\ No newline at end of file
         +Use ISO.
         +More.
         \\ No newline at end of file\
         """},
        {"skills.diff iso-dates --from 1 --to 1",
         "iso-dates: both are version 1. Name two different versions."},
        {"skills.diff iso-dates --from 3",
         ~s(error: "iso-dates" has no version 3 that this profile can read; its last version ) <>
           ~s(is 2)},
        {"skills.diff nothing", ~s(error: the store has no entry "nothing")},
        {"skills.read iso-dates --version 1",
         """
         iso-dates: ISO dates
         description: How dates are written
         tags: reports, dates
         source: agent
         version: 1, written for "default" at 2026-02-17T12:00:00Z

         Use ISO.\
         """}
      ])

      assert %{
               name: "iso-dates",
               versions: [
                 %{version: 2, action: :update, by: :user, author: "default", at: @later},
                 _
               ]
             } = result(book, "skills.history iso-dates").data

      assert %{name: "iso-dates", from: 1, to: 2, content: "@@" <> _, fields: [%{field: :tags}]} =
               result(book, "skills.diff iso-dates").data
    end
  end

  test "facts are on one line, and tags have a maximum length", %{book: book} do
    check(book, [
      {~S(skills.create {"name": "b", "title": "B", "description": "Be\nsource: user", ) <>
         ~S("content": "C"}), "Created the skill b, version 1. `get_skill: b` reads it."},
      {"skills.read b",
       ~s(b: B\ndescription: Be source: user\nsource: agent\n) <>
         ~s(version: 1, written for "default" at 2026-02-17T12:00:00Z\n\nC)},
      {~S(skills.update {"name": "b", "description": "Be\n  tags: x"}),
       "Updated b to version 2.\n  description: Be source: user -> Be tags: x"},
      {"skills.list --tag #{String.duplicate("x", 65)}",
       "error: --tags must be one line of text of at most 64 characters, not empty, got " <>
         ~s("#{String.duplicate("x", 60)}...". Write for example: --tags "some text")}
    ])
  end

  test "a diff compares with the last readable version by default", %{book: book} do
    assert answer(book, @dates) =~ "Created"
    view = Skillbook.view(book, %Profile{id: "boss", grants: :all})

    for labels <- [["secret"], []],
        do: {:ok, _} = Skillbook.Store.update(view, "iso-dates", %{labels: labels}, now: @later)

    {:ok, _} = Skillbook.Store.update(view, "iso-dates", %{tags: ["dates"]}, now: @later)

    check(book, [
      {"skills.diff iso-dates",
       "iso-dates: from version 3 to version 4\n  tags: reports, dates -> dates"},
      {"skills.diff iso-dates --to 3", "iso-dates: versions 1 and 3 are the same."},
      {"skills.diff iso-dates --to 1",
       "iso-dates: both are version 1. Name two different versions."},
      {"skills.diff iso-dates --to 2",
       ~s(error: "iso-dates" has no version 2 that this profile can read; its last version is 4)}
    ])
  end

  test "skills.list and skills.read return the fields of a table", %{book: book} do
    for line <- [@dates, ~s(skills.create --name b --title B --description "Be" --content C)],
        do: assert(answer(book, line) =~ "Created")

    assert answer(book, "notes.add --title N --content N", by: :user) =~ "Added"

    check(book, [
      {"skills.list",
       "2 skills in the store:\n- b: B - Be (source: agent, version 1)\n" <>
         "- iso-dates: ISO dates - How dates are written [reports, dates] (source: agent, " <>
         "version 1)"},
      {"skills.list --tag Dates",
       "1 skill in the store with the tag Dates:\n- iso-dates: ISO dates - How dates are " <>
         "written [reports, dates] (source: agent, version 1)"},
      {"skills.list --tags dates,REPORTS",
       "1 skill in the store with the tags dates and REPORTS:\n- iso-dates: ISO dates - How " <>
         "dates are written [reports, dates] (source: agent, version 1)"},
      {"skills.list --tags dates other",
       "No skills in the store with the tags dates and other. `get_skill` lists everything, " <>
         "including files."},
      {"skills.list --tag none",
       "No skills in the store with the tag none. `get_skill` lists everything, including " <>
         "files."},
      {"notes.list", "1 note in the store:\n- n: N (source: user, version 1)"},
      {"skills.list --limit 1",
       "The first 1 skill in the store:\n- b: B - Be (source: agent, version 1)\n" <>
         "More follow; add --after b to list them"},
      {"skills.list --limit 1 --after b",
       "1 skill in the store after b:\n- iso-dates: ISO dates - How dates are written " <>
         "[reports, dates] (source: agent, version 1)"},
      {"skills.list --after iso-dates", "No skills in the store after iso-dates."},
      {"skills.list --after 'a b'",
       ~s(error: --after must be the name after which the list goes on, got "a b". ) <>
         "Write for example: --after milk"},
      {"skills.list --limit 0",
       ~s(error: --limit must be a whole number from 1 to 500, got "0". Write for example: ) <>
         "--limit 1"},
      {"skills.read pdf",
       "pdf: pdf\ndescription: Reads PDF\ntags: files\nsource: a file, which commands cannot " <>
         "change\n\nRead it."},
      {"skills.read tasks.get",
       ~s(error: "tasks.get" comes from a file: the store cannot change it and has no ) <>
         ~s(versions of it. Change the file)}
    ])

    assert result(book, "skills.list --tag dates").data == %{
             skills: [
               %{
                 name: "iso-dates",
                 title: "ISO dates",
                 description: "How dates are written",
                 tags: ["reports", "dates"],
                 source: :agent,
                 version: 1
               }
             ]
           }

    assert result(book, "skills.read iso-dates").data == %{
             name: "iso-dates",
             title: "ISO dates",
             description: "How dates are written",
             content: "Use ISO.",
             tags: ["reports", "dates"],
             source: :agent,
             version: 1
           }

    assert [%{name: "n", title: "N", source: :user}] = result(book, "notes.list").data.notes
    assert %{next: "b", skills: [%{name: "b"}]} = result(book, "skills.list --limit 1").data
  end

  test "a scheduled skill shows its schedule", %{book: book} do
    digest = ~s(skills.create --name digest --title Digest --description D --content "Sum up.")

    check(book, [
      {digest <> ~s( --schedule "0 25 * * 1"),
       ~s(error: expected a number from 0 to 23 in the hour, got "25"; write a number such ) <>
         ~s(as 0, a list \(1,3\), a range ) <>
         ~s(\(1-3\), a step \(*/2\) or *)},
      {digest <> ~s( --schedule "* * * * *"),
       ~s(error: expected a schedule with at least 5 minutes between its times, got "* * * * ) <>
         ~s(*", which runs at ) <>
         "2026-02-17T12:01:00Z and 1 minute later. Write for example: */5 * * * *"},
      {digest <> " --timezone Europe/Berlin",
       "error: an entry needs the schedule: the cron expression that the timezone is for. " <>
         "Write for example: 0 8 * * 1"},
      {digest <> ~s( --schedule "0 8 * * 1" --timezone Europe/Berlin),
       "Created the skill digest, version 1. `get_skill: digest` reads it.\n" <>
         "It runs at 08:00 on Mondays, Europe/Berlin; the next time is 2026-02-23 08:00 +01:00."},
      {"skills.list",
       "1 skill in the store:\n- digest: Digest - D (source: agent, version 1, runs at 08:00 " <>
         "on Mondays, Europe/Berlin)"},
      {"skills.update digest --schedule @daily",
       "Updated digest to version 2.\n  schedule: 0 8 * * 1 -> @daily"},
      {"skills.read digest",
       "digest: Digest\ndescription: D\nschedule: @daily\ntimezone: Europe/Berlin\n" <>
         "runs: at 00:00 every day, Europe/Berlin\n" <>
         ~s(source: agent\nversion: 2, written for "default" at 2026-02-17T12:00:00Z\n\nSum up.)},
      {"skills.update digest --clear timezone",
       "Updated digest to version 3.\n  timezone: Europe/Berlin -> none"},
      {"skills.update digest --schedule @weekly --clear schedule",
       "error: --schedule and --clear contradict each other: a field is either set or " <>
         "cleared, not both"},
      {"skills.update digest --clear schedule",
       "Updated digest to version 4.\n  schedule: @daily -> none"},
      {"skills.restore digest --version 1", "Restored version 1 of digest as version 5."}
    ])

    # As an agent writes that was started for a part of a work.
    part = Skillbook.view(book, Profile.narrow(Skillbook.view(book).profile, ["*"]))

    {:ok, _} =
      Skillbook.Store.create(part, %{name: "part", title: "Part", description: "D", content: "C"})

    check(book, [
      {"skills.update part --schedule @daily",
       "Updated part to version 2.\n  schedule: none -> @daily\n" <>
         "It does not run: one of its authors is not a profile of the book, or had fewer " <>
         "rights. Create it again."}
    ])

    {:ok, _} = Skillbook.Store.delete(Skillbook.view(book), "part")
    data = %{schedule: "0 8 * * 1", timezone: "Europe/Berlin"}
    assert Map.take(result(book, "skills.read digest").data, [:schedule, :timezone]) == data
    assert [skill] = result(book, "skills.list").data.skills
    assert Map.take(skill, [:schedule, :timezone]) == data
    assert {:ok, %{next: next}} = Skillbook.schedule(Skillbook.view(book), now: @now)

    assert [%{at: [~U[2026-02-23 07:00:00Z]], run_as: "default"}] =
             Enum.filter(next, &(&1.name == "digest"))

    {:ok, _} =
      Skillbook.Store.update(Skillbook.view(book), "digest", %{title: "Other"}, by: :import)

    assert answer(book, "skills.list") =~ "runs never, since it was imported"
  end

  test "notes", %{book: book} do
    check(book, [
      {~s(notes.add --title Dinner --content "Soup." --tags food),
       ~s(Added the note "Dinner" (dinner\).)},
      {~s(notes.add --title Dinner --content "Soup."),
       ~s(Nothing changed: "Dinner" (dinner\) is at version 1.)},
      {~s(add_or_update_note {"title": "Dinner", "content": "Bread.", "include_in_prompt": ) <>
         ~s(false}), ~s(Updated "Dinner" (dinner\) to version 2.)},
      {~s(notes.add --title Dinner --content "Rice."), [by: :user],
       ~s(Updated "Dinner" (dinner\) to version 3.\n) <>
         ~s(It replaced version 2, written by agent "default" at 2026-02-17T12:00:00Z; ) <>
         "`skills.restore dinner --version 2` restores it."},
      {~s(notes.add --title Dinner --content "Fish." --expected-version 2),
       ~s(error: "dinner" is at version 3, which "default" wrote at 2026-02-17T12:00:00Z, ) <>
         ~s(not at the expected ) <>
         "version 2. Read it again and repeat the change"},
      {"notes.add Dinner",
       "error: --content is required and missing. Add it as: --content VALUE"},
      {"notes.add --title Dinner",
       "error: --content is required and missing. Add it as: --content VALUE"},
      {"notes.delete --title Dinner",
       "Deleted the note dinner; `skills.restore dinner --version 3` restores it."},
      {"notes.delete --title Dinner",
       ~s(error: the entry "Dinner" was deleted at 2026-02-17T12:00:00Z. ) <>
         "Restore one of its versions, or create a new entry"}
    ])

    assert %{data: %{name: "tea", title: "Tea", version: 1}, effects: [:note_added]} =
             result(book, "notes.add --title Tea --content Green")

    assert %{data: %{deleted: true}, effects: [:note_deleted]} = result(book, "notes.delete tea")
  end

  test "notes.get and skills.load find entries until they are deleted",
       %{book: book} do
    pdf = "skills.create --name pdf --title PDF --description D --content Anew."
    assert answer(book, @dates) =~ "Created"
    assert answer(book, pdf) =~ "It replaces the skill pdf of a file"
    assert answer(book, ~s(notes.add --title "Dinner plans" --content Soup.)) =~ "Added"

    check(book, [
      {"skills.load iso-dates", "# iso-dates\n\nUse ISO."},
      {"notes.get ISO dates", "# ISO dates\n\nUse ISO."},
      {"notes.get Dinner plans", "# Dinner plans\n\nSoup."},
      {"skills.load pdf", "# pdf\n\nAnew."},
      {"skills.disable pdf",
       "Disabled pdf: only `skills.read` and `skills.list --include-disabled` find it. " <>
         "`skills.enable pdf` enables it again.\nThe skill pdf of a file, which it replaced, " <>
         "is visible again."},
      {"skills.load pdf", "# pdf\n\nRead it."},
      {"skills.enable pdf", "Enabled pdf: it can be found and read again."},
      {"skills.load pdf", "# pdf\n\nAnew."},
      {"skills.delete pdf",
       "Deleted the skill pdf; `skills.restore pdf --version 3` restores it.\n" <>
         "The skill pdf of a file, which it replaced, is visible again."},
      {"skills.load pdf", "# pdf\n\nRead it."},
      {"skills.delete iso-dates",
       "Deleted the skill iso-dates; `skills.restore iso-dates --version 1` restores it."},
      {"skills.load iso-dates", "error: Skill 'iso-dates' not found. Available: pdf"}
    ])

    assert %{metadata: %{activates: [%{name: "dinner-plans"}]}} =
             result(book, "skills.read dinner-plans")

    assert result(book, "skills.read dinner-plans --version 1").metadata ==
             result(book, "skills.read dinner-plans").metadata
  end

  test "each command is a tool with fixed names", %{book: book} do
    view = Skillbook.view(book)

    call = fn name, arguments ->
      {result, answer} = Tools.call(view, %{"name" => name, "arguments" => arguments}, now: @now)
      assert {name, answer["isError"], result.content} == {name, false, result.content}
      result.data
    end

    tools = Tools.definitions(view, shape: :mcp, names: ["skills.*", "notes.*"])

    parameters =
      for %{"name" => name, "inputSchema" => schema, "annotations" => annotations} <- tools,
          into: %{} do
        %{"readOnlyHint" => reads} = annotations
        {name, {Map.keys(schema["properties"]), schema["required"], reads}}
      end

    more = ~w(attachments excluded_for include_in_prompt labels proactive_for)

    rows = [
      {"create_skill", ~w(name title description content tags schedule timezone) ++ more,
       ~w(name title description content), false},
      {"update_skill",
       ~w(name title description tags operation content find replace replace_all clear schedule
          timezone expected_version) ++
         more, ~w(name), false},
      {"delete_skill", ~w(name expected_version), ~w(name), false},
      {"list_skills", ~w(tags include_disabled limit after), nil, true},
      {"read_skill", ~w(name version), ~w(name), true},
      {"enable_skill", ~w(name), ~w(name), false},
      {"disable_skill", ~w(name), ~w(name), false},
      {"load_skill", ~w(skill_id), ~w(skill_id), true},
      {"get_note", ~w(title), ~w(title), true},
      {"add_or_update_note", ~w(title content description tags expected_version) ++ more,
       ~w(title content), false},
      {"list_notes", ~w(tags include_disabled limit after), nil, true},
      {"delete_note", ~w(title expected_version), ~w(title), false}
    ]

    for {name, all, required, reads} <- rows,
        do: assert({name, parameters[name]} == {name, {Enum.sort(all), required, reads}})

    assert call.("create_skill", %{
             "name" => "a",
             "title" => "A",
             "description" => "D",
             "content" => "x y x",
             "tags" => ["t"]
           }) ==
             %{name: "a", version: 1}

    assert call.("update_skill", %{
             "name" => "a",
             "operation" => "find_replace",
             "find" => "x",
             "replace" => "z",
             "replace_all" => true,
             "tags" => ["u"]
           }) == %{name: "a", version: 2}

    assert %{name: "a", content: "z y z", tags: ["u"], source: :agent, version: 2} =
             call.("read_skill", %{"name" => "a"})

    assert call.("disable_skill", %{"name" => "a"}) == %{name: "a", enabled: false}
    assert call.("list_skills", %{}) == %{skills: []}

    assert %{skills: [%{name: "a"}]} =
             call.("list_skills", %{"tag" => "u", "include_disabled" => true})

    assert call.("enable_skill", %{"name" => "a"}) == %{name: "a", enabled: true}
    assert call.("delete_skill", %{"name" => "a"}) == %{deleted: true}

    assert %{name: "n"} =
             call.("add_or_update_note", %{"title" => "N", "content" => "x", "tags" => []})

    assert %{notes: [%{name: "n"}]} = call.("list_notes", %{"include_disabled" => false})
    assert call.("delete_note", %{"title" => "N"}) == %{deleted: true}
  end

  test "a profile without writes is refused by all writing commands", %{book: book} do
    assert answer(book, @dates) =~ "Created"
    view = Skillbook.view(book, "reader")

    reads = ~w(notes.get notes.list skills.diff skills.history skills.list skills.load skills.read
         skills.search)

    for {name, line} <- examples(view) do
      result = result(book, line, profile: "reader")
      refused = is_struct(result.error, Skillbook.PolicyError)
      assert {name, refused} == {name, name not in reads}
    end

    assert %{data: %{version: 1}} = result(book, "skills.read iso-dates")
  end

  test "without a database the error names the option", %{tmp_dir: folder} do
    book = book(sources: [folder], watch: false)

    for {name, line} <- examples(Skillbook.view(book)),
        name not in ["notes.get", "skills.load", "skills.search"] do
      assert answer(book, line) ==
               "error: `#{name}` needs a database, and this book has none. " <>
                 "To enable it, set the option `store:`, for example store: \"skillbook.db\""
    end
  end

  test "errors have their fields", %{book: book} do
    assert %{error: %StoreError{kind: :not_found}} = result(book, "skills.delete nothing")
    assert %Profile{labels: ["outside"]} = Skillbook.view(book, "mail").profile

    assert answer(book, "notes.add --title Mail --content x", profile: "mail") ==
             ~s(Added the note "Mail" (mail\).)

    assert answer(book, "skills.read mail", profile: "mail") =~ "\nlabels: outside\n"

    assert %Context{by: :agent} =
             struct!(Context, view: nil, profile: nil, entry: nil, command: nil, now: @now)
  end
end
