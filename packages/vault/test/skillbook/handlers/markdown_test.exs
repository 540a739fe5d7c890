defmodule Skillbook.Handlers.MarkdownTest do
  use ExUnit.Case, async: true
  use Skillbook.SkillsCase

  alias Skillbook.{Frontmatter, Profile, Vault}

  @moduletag :tmp_dir

  # As results show it. `inspect` of newer releases of Elixir escapes it already.
  @deep Enum.map_join(?a..?p, "/", &<<&1>>)
  @invisible Skillbook.Support.Hidden.visible(String.trim(inspect("a\u200Bb"), "\""))

  defp start(%{tmp_dir: folder}, options \\ []) do
    notes = Path.join(folder, "notes")

    write(notes, %{
      "Plan.md" => "---\ntags: [work]\nstatus: open\n---\n# The plan\n\nWe meet in March.\n",
      "other/Plan.md" => "---\naliases: [Plan B]\n---\nNo meeting.\n",
      "secret.md" =>
        "---\nvisibility_labels: [board]\ntags: [hush]\n---\nThe plan of the board.\n"
    })

    book = book([store: ":memory:", vaults: [notes], watch: false] ++ options)
    {:ok, _} = Vault.sync(book, "notes")
    {book, notes}
  end

  defp answer(book, line, profile \\ %Profile{id: "anna"}) do
    view = Skillbook.view(book, profile)
    [result] = Skillbook.run(view, "```cmd\n#{line}\n```").results

    with %{status: :error, content: text} <- result,
         do: "error: " <> text,
         else: (result -> result.content)
  end

  defp check(book, rows) do
    for {line, text} <- rows, do: assert({line, answer(book, line)} == {line, text})
  end

  describe "read: files" do
    @png <<137, "PNG\r\n", 26, 10, 0>>

    setup context do
      {book, notes} = start(context)
      folder = Path.join(context.tmp_dir, "files")

      write(folder, %{
        "cat.png" => @png,
        "odd name.png" => "%PDF-1.7",
        "song.mp3" => <<"ID3", 4>>,
        "empty.gif" => "",
        "table.csv" => "a,b",
        "Plan.md" => "Its text."
      })

      {:ok, large} = File.open(Path.join(folder, "large.png"), [:write])
      {:ok, _} = :file.position(large, 5 * 1024 * 1024 + 1)
      :ok = :file.truncate(large)
      :ok = File.close(large)
      vaults = [notes, [path: folder, name: "work", labels: ["ann"], files: true]]
      book = book(store: ":memory:", vaults: vaults, watch: false, name: :"#{book}_files")
      {:ok, _} = Vault.sync(book, "work")
      %{book: book, ann: %Profile{id: "ann", grants: ["ann"]}}
    end

    defp read(book, address, profile) do
      view = Skillbook.view(book, profile)
      call = "```cmd\nmarkdown.read #{inspect(address)}\n```"
      [result] = Skillbook.run(view, call).results
      result
    end

    test "are shown as what their bytes are", %{book: book, ann: ann} do
      result = read(book, "vault:work/cat.png", ann)
      assert result.metadata == %{external: true, media: [%{type: "image/png", data: @png}]}
      assert result.content =~ ~s("cat.png" in the vault work)
      assert result.content =~ "A file: image/png, 9 bytes."
      assert result.data == %{vault: "work", path: "cat.png", size: 9, type: "image/png"}

      assert [%{type: "application/pdf", uri: "vault:work/odd%20name.png"}] =
               read(book, "vault:work/odd name.png", ann).metadata.media

      assert [%{type: "audio/mpeg"}] = read(book, "vault:work/song.mp3", ann).metadata.media
      assert read(book, "vault:work/Plan.md", ann).content =~ "Its text."
    end

    test "that are none, are too large or hidden are errors", %{book: book, ann: ann} do
      kinds = "cannot be shown: expected a picture (PNG, JPEG, GIF, WebP), a PDF file or a sound"

      for {address, profile, text} <- [
            {"vault:work/table.csv", ann, "\"vault:work/table.csv\" " <> kinds},
            {"vault:work/empty.gif", ann, kinds},
            {"vault:work/large.png", ann, "is too large: at most 5 MB are allowed"},
            {"vault:work/cat.pn", ann, "did you mean \"vault:work/cat.png\"?"},
            {"vault:work/../cat.png", ann, ".."},
            {"vault:notes/cat.png", ann, "commands may not use the files of the vault"},
            {"vault:work/cat.png", %Profile{id: "bob"}, "there is no vault \"work\""}
          ] do
        result = read(book, address, profile)
        assert {address, result.status, result.metadata[:media]} == {address, :error, nil}
        assert result.content =~ text
      end
    end
  end

  test "search: pages hold each note once, whatever is written between them", context do
    {book, _} = start(context)
    view = Skillbook.view(book)
    {:ok, %{hits: all, total: total}} = Vault.search(view, nil, limit: 100)

    for {place, number} <- [{& &1, 1}, {& &1, 2}, {&List.last(&1.hits), 1}] do
      pages =
        Stream.unfold([], fn
          nil ->
            nil

          after_place ->
            {:ok, page} = Vault.search(view, nil, [limit: number] ++ after_place)
            title = "Between #{System.unique_integer([:positive])}"

            {:ok, _} =
              Vault.create(view, title: title, content: "New.", vault: hd(page.hits).vault)

            next = if is_map_key(page, :next), do: place.(page)
            next = if is_map(next) and is_map_key(next, :next), do: next.next, else: next
            {page.hits, next && [after: next]}
        end)

      ids = fn hits -> for hit <- hits, do: {hit.vault, hit.id} end
      paged = pages |> Enum.concat() |> ids.()
      assert Enum.filter(paged, &(&1 in ids.(all))) == ids.(all)
      assert length(paged) >= total
    end
  end

  test "search: documents of one path are on pages too, and a query has none" do
    book = book(store: ":memory:", vaults: [[name: "drive"]])
    view = Skillbook.view(book)

    for id <- ~w(a b c), path <- ["One path.md"] ++ if(id == "c", do: ["Two.md"], else: []) do
      document = %{id: id <> path, path: path, content: "Text."}
      :ok = Vault.put(book, "drive", document)
    end

    options = [vault: "drive", limit: 1]
    {:ok, %{next: next, hits: [hit]}} = Vault.search(view, nil, options)
    assert next == "drive/One path.md//aOne path.md"
    {:ok, %{next: next}} = Vault.search(view, nil, [after: hit] ++ options)
    assert next == "drive/One path.md//bOne path.md"
    {:ok, %{next: next}} = Vault.search(view, nil, [after: next] ++ options)
    assert next == "drive/One path.md"
    {:ok, found} = Vault.search(view, nil, [after: next] ++ options)
    assert {[%{path: "Two.md"}], false} = {found.hits, is_map_key(found, :next)}
    assert {:error, error} = Vault.search(view, "text", after: hit)

    assert Exception.message(error) ==
             "expected :after without a query, since ranks change with each write, got both. " <>
               "Take a larger :limit, or filters"

    check(book, [
      {"markdown.search --vault drive --limit 1",
       "4 notes: vault drive\n- One path.md: One path (1 word)\n  Text.\n" <>
         "3 more; narrow the search, or add --after \"drive/One path.md//aOne path.md\" to " <>
         "list them"},
      {~s(markdown.search --vault drive --after "drive/One path.md"),
       "4 notes: vault drive\n- Two.md: Two (1 word)\n  Text."},
      {"markdown.search text --after drive/Two.md",
       "error: --after and --query contradict each other: only a list without --query has pages"},
      {"markdown.search --vault drive --after Two.md",
       "error: --after must be a vault and a path, as VAULT/PATH, got \"Two.md\". Write for " <>
         "example: --after notes/Plan.md"}
    ])
  end

  test "search: results and errors", context do
    {book, _} = start(context)

    check(book, [
      {"markdown.search meeting",
       "2 notes: text \"meeting\"\n- Plan.md: The plan (7 words) #work\n" <>
         "  # The plan We **meet** in March.\n- other/Plan.md: Plan (2 words)\n" <>
         "  No **meeting**."},
      {"markdown.search --tag work --folder other", "No notes found: tagged work; in other"},
      {"markdown.search --field status=open",
       "1 note: status is open\n- Plan.md: The plan (7 words) #work\n" <>
         "  # The plan We meet in March."},
      {"markdown.search --query \"meet nowhere\" --limit 1",
       "2 notes: text \"meet nowhere\", none has all of it and these have some\n" <>
         "- Plan.md: The plan (7 words) #work\n  # The plan We **meet** in March.\n" <>
         "1 more; narrow the search, or raise --limit (at most 100)"},
      {"markdown.search board", "No notes found: text \"board\""},
      {"markdown.search --tag hush", "No notes found: tagged hush"},
      {"markdown.search",
       "error: one of --query, --tags, --folder, --field or --vault is required. Add for " <>
         "example: --query VALUE"},
      {"markdown.search --query \"?!\"",
       "error: --query must be text with at least one word that is not excluded by -, " <>
         "at most 32 words, and at most 4096 bytes, got \"?!\". Write for example: " <>
         "--query \"some text\""},
      {"markdown.search --query \"meeting -march\"",
       "1 note: text \"meeting -march\"\n- other/Plan.md: Plan (2 words)\n  No **meeting**."},
      {"markdown.search --field open",
       "error: --field must be a field and its value as name=value, got \"open\". Write for " <>
         "example: --field status=open"},
      {"markdown.search x --vault other",
       "error: there is no vault \"other\"; the vaults are notes"},
      {"markdown.search x --limit 101",
       "error: --limit must be a whole number from 1 to 100, got \"101\". Write for example: " <>
         "--limit 1"}
    ])

    assert answer(book, "search_markdown board", %Profile{id: "b", grants: ["board"]}) =~
             "1 note: text \"board\"\n- secret.md: secret (5 words) #hush\n" <>
               "  The plan of the **board**."
  end

  test "create: a new file is found at once, and none is overwritten", context do
    {book, notes} = start(context)

    check(book, [
      {~s(markdown.create --title "Call: Ann/Bob" --folder calls/2026 --content "She ) <>
         ~s(agreed.\\n" --tags call "#phone"),
       "Created calls/2026/Call Ann Bob.md in the vault notes."},
      {"markdown.search agreed",
       "1 note: text \"agreed\"\n- calls/2026/Call Ann Bob.md: Call: Ann/Bob (2 words) #call " <>
         "#phone\n  She **agreed**."},
      {~s(markdown.create "Call: Ann/Bob" --folder calls/2026/ --content Again),
       "error: the note \"calls/2026/Call Ann Bob.md\" already exists, and is not " <>
         "overwritten. Change it with `markdown.edit`, or choose another title"},
      {~s(markdown.create --title Plain --content "# Only text"),
       "Created Plain.md in the vault notes."},
      {~s(markdown.create --title ../../up --content x), name_error("../../up")},
      {~s(markdown.create --title ok --folder ../up --content x), name_error("../up")},
      {~s(markdown.create --title ok --folder a/.hidden --content x), name_error("a/.hidden")},
      {~s(markdown.create --title ok --folder "a//b" --content x), name_error("a//b")},
      {~s(markdown.create --title ok --folder #{@deep}/q --content x),
       name_error(@deep <> "/q", "is deeper than 16 folders")},
      {~s(markdown.create --title deep --folder #{@deep} --content x),
       "Created #{@deep}/deep.md in the vault notes."},
      {~s(markdown.create --title "???" --content x), name_error("???")},
      {~s(markdown.create --title CON --content x),
       name_error("CON", "has the name of a Windows device")},
      {~s(markdown.create --title ok --folder aux/x --content x), name_error("aux/x")},
      {~s(markdown.create --title "a\u200Bb" --content x),
       name_error(@invisible, "has invisible characters in its name")},
      {~s(markdown.create --title "می\u200Cخواهم 👩\u200D💻" --content x),
       "Created میخواهم 👩💻.md in the vault notes."},
      {~s(markdown.create --title ok --content x --labels board),
       "error: expected labels that this profile holds, got: \"board\". Leave them out"},
      {~s(markdown.create --title ok),
       "error: --content is required and missing. Add it as: --content VALUE"},
      # A note that is not seen does not tell of itself.
      {~s(markdown.create --title secret --content Mine),
       "Created secret 2.md in the vault notes."}
    ])

    assert File.read!(Path.join(notes, "Plain.md")) == "# Only text"
    assert File.read!(Path.join(notes, "secret.md")) =~ "board"

    {:ok, document} =
      notes |> Path.join("calls/2026/Call Ann Bob.md") |> File.read!() |> Frontmatter.parse()

    assert {document.data, document.body} ==
             {%{"title" => "Call: Ann/Bob", "tags" => ["call", "phone"]}, "She agreed.\n"}

    refute File.exists?(Path.join(context.tmp_dir, "up"))
    # The indexer finds it as it was indexed.
    assert {:ok, %{indexed: 0, removed: 0}} = Vault.sync(book, "notes")
  end

  test "create: adds the profile's labels and follows no links",
       context do
    {book, notes} = start(context)
    profile = %Profile{id: "b", grants: ["board", "ann"], labels: ["board"]}

    assert answer(book, "markdown.create New --content text --labels ann", profile) ==
             "Created New.md in the vault notes."

    assert {:ok, %{data: %{"visibility_labels" => ["ann", "board"]}}} =
             Frontmatter.parse(File.read!(Path.join(notes, "New.md")))

    assert answer(book, "markdown.search --query text") == "No notes found: text \"text\""
    File.ln_s!(context.tmp_dir, Path.join(notes, "link"))

    assert answer(book, "markdown.create New --folder link --content text") ==
             "error: link is a symbolic link, and links are not followed here: name a folder " <>
               "or file in its place"

    assert answer(book, "markdown.edit Plan.md --operation append --content x", profile) =~
             ~s(error: "Plan.md" lacks "board", which this profile must set on every entry)
  end

  test "read: the text of the file, by every name, for those who see it", context do
    {book, notes} = start(context)
    plan = "Plan.md in the vault notes: The plan #work\n\n# The plan\n"

    for name <- ["Plan.md", ~s("The plan"), ~s("the plan"), "--note Plan.md --vault notes"],
        do: assert(String.starts_with?(answer(book, "markdown.read #{name}"), plan))

    # The frontmatter is left out, and a change that is not indexed yet is there.
    File.write!(Path.join(notes, "Plan.md"), "---\ntags: [new]\n---\nNow \u202Ethis.\n")

    assert answer(book, "markdown.read Plan.md") ==
             "Plan.md in the vault notes: Plan #new\n\nNow \\u{202E}this.\n"

    # A note that the profile does not see is one that is not there.
    File.write!(Path.join(notes, "Secret.md"), "---\nvisibility_labels: [board]\n---\nHidden.\n")
    {:ok, _} = Vault.sync(book, "notes")
    missing = answer(book, "markdown.read Missing.md")
    assert answer(book, "markdown.read Secret.md") == String.replace(missing, "Missing", "Secret")
    profile = %Profile{id: "b", grants: ["board"]}
    assert answer(book, "markdown.read Secret.md", profile) =~ "Hidden."

    # Labels that the file got since count too.
    File.write!(Path.join(notes, "Plan.md"), "---\nvisibility_labels: [board]\n---\nHidden.\n")
    assert answer(book, "markdown.read Plan.md") == String.replace(missing, "Missing", "Plan")

    long = String.duplicate("A line of a long note.\n", 2_000)
    File.write!(Path.join(notes, "Long.md"), long)
    {:ok, _} = Vault.sync(book, "notes")
    assert answer(book, "markdown.read Long.md") =~ "[Cut: these are the characters 1 to "
  end

  test "edit: all operations and errors", context do
    {book, notes} = start(context)
    read = fn -> File.read!(Path.join(notes, "Plan.md")) end
    head = "---\ntags: [work]\nstatus: open\n---\n"

    check(book, [
      {~s(markdown.edit "the plan" --operation append --content "\\nAdded."),
       "Edited Plan.md in the vault notes."}
    ])

    assert read.() == head <> "# The plan\n\nWe meet in March.\n\nAdded."

    check(book, [
      {~s(markdown.edit Plan.md --operation find_replace --find "in March" --replace "in April"),
       "Edited Plan.md in the vault notes."},
      {~s(markdown.edit other/Plan --operation prepend --content "First. "),
       "Edited other/Plan.md in the vault notes."},
      {~s(markdown.edit "plan b" --operation replace --content "Dropped."),
       "Edited other/Plan.md in the vault notes."},
      {~s(markdown.edit "plan b" --operation replace --content "Dropped."),
       "Nothing changed: other/Plan.md in the vault notes."},
      {~s(markdown.search --query "april dropped"),
       "2 notes: text \"april dropped\", none has all of it and these have some\n" <>
         "- Plan.md: The plan (8 words) #work\n  # The plan We meet in **April**. Added.\n" <>
         "- other/Plan.md: Plan (1 word)\n  **Dropped**."},
      # A path goes before the names of notes.
      {~s(markdown.edit Plan --operation append --content ""),
       "Nothing changed: Plan.md in the vault notes."},
      {~s(markdown.edit Plan.md --operation find_replace --find "in May" --replace x),
       "error: the text \"in May\" does not occur in \"Plan.md\"; the closest line is line " <>
         "3: \"We meet in April.\". Copy the text exactly"},
      {~s(markdown.edit Plan.md --operation find_replace --find x --content y --replace z),
       "error: --operation and --content contradict each other: --content is for the other " <>
         "operations"},
      {~s(markdown.edit "The plam" --operation append --content x),
       "error: there is no note \"The plam\"; did you mean \"The plan\"?"},
      {~s(markdown.edit secret.md --operation append --content x),
       "error: there is no note \"secret.md\"; `markdown.search` finds notes by their content"},
      {~s(markdown.edit unwritten.md --operation append --content x),
       "error: there is no note \"unwritten.md\"; `markdown.search` finds notes by their content"}
    ])

    assert answer(book, "markdown.edit secret --operation append --content \" More.\"", %Profile{
             id: "b",
             grants: ["board"]
           }) ==
             "Edited secret.md in the vault notes."
  end

  test "edit: notes hidden since indexing are missing, and frontmatter is refused",
       context do
    {book, notes} = start(context)
    File.write!(Path.join(notes, "Plan.md"), "---\nvisibility_labels: [board]\n---\nSecret.")

    assert answer(book, ~s(markdown.edit "the plan" --operation append --content x)) ==
             "error: there is no note \"Plan.md\"; `markdown.search` finds notes by their content"

    File.write!(Path.join(notes, "bare.md"), "Text.")
    {:ok, _} = Vault.sync(book, "notes")

    assert answer(
             book,
             ~s(markdown.edit bare --operation prepend --content "---\\n) <>
               ~s(visibility_labels: [x]\\n---\\n")
           ) ==
             "error: the edit would change the frontmatter of \"bare.md\", and only its text " <>
               "can be edited. Do not begin the text with ---"

    assert File.read!(Path.join(notes, "bare.md")) == "Text."
  end

  test "several vaults, some of them hidden", %{tmp_dir: folder} do
    for name <- ~w(one two), do: write(Path.join(folder, name), %{"a.md" => "A plan of #{name}."})

    vaults = [
      Path.join(folder, "one"),
      [path: Path.join(folder, "two"), labels: ["two"]],
      [name: "drive", labels: ["two"]]
    ]

    book = book(store: ":memory:", vaults: vaults, watch: false)
    for name <- ~w(one two), do: {:ok, _} = Vault.sync(book, name)
    both = %Profile{id: "both", grants: ["two"]}

    for {profile, line, text} <- [
          {both, "markdown.search plan",
           "2 notes: text \"plan\"\n- a.md in one: a (4 words)\n  A **plan** of one.\n" <>
             "- a.md in two: a (4 words)\n  A **plan** of two."},
          {%Profile{id: "one"}, "markdown.search plan",
           "1 note: text \"plan\"\n- a.md: a (4 words)\n  A **plan** of one."},
          {%Profile{id: "one"}, "markdown.search plan --vault two",
           "error: there is no vault \"two\"; the vaults are one"},
          {both, "markdown.search plan --vault tow",
           "error: there is no vault \"tow\"; the vaults are one, two, drive"},
          {both, "markdown.create b --content x",
           "error: expected a vault to write into, one of one, two, got none. Write for " <>
             "example: --vault one"},
          {both, "markdown.create b --content x --vault drive",
           "error: the vault \"drive\" is not a folder, so its notes cannot be written"},
          {%Profile{id: "one"}, "markdown.create b --content x",
           "Created b.md in the vault one."},
          {both, "markdown.edit a --operation append --content x",
           "error: several notes are called \"a\": a.md in one, a.md in two. Write the path " <>
             "of one, and --vault if several vaults have that path"}
        ] do
      assert {line, answer(book, line, profile)} == {line, text}
    end
  end

  test "a book without vaults has no markdown commands" do
    book = book(store: ":memory:")
    refute Skillbook.prompt(Skillbook.view(book)) =~ "markdown"

    assert answer(book, "markdown.search x") =~
             ~s(error: unknown skill "markdown.search"; did you mean)
  end

  test "without vaults the commands return an error" do
    book = book(store: ":memory:", sources: [Skillbook.Source.builtin(:vaults)])

    for line <- [
          "markdown.search x",
          "markdown.create x --content y",
          "markdown.edit x --operation append --content y"
        ] do
      assert answer(book, line) ==
               ~s(error: there are no vaults. Start the book with the option vaults:, for ) <>
                 ~s(example vaults: ["notes"])
    end
  end

  defp name_error(name, reason) do
    "error: " <> rest = name_error(name)
    "error: " <> String.replace(rest, ": write", ": it #{reason}. Write")
  end

  defp name_error(name) do
    "error: \"#{name}\" cannot be a file name: write letters, digits, blanks and " <>
      "dashes, at most 100 characters, without a leading dot"
  end
end
