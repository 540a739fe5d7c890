defmodule Skillbook.Catalog.FaultsTest do
  # Every class of fault that files of strangers have, in one tree: each Markdown file is an
  # entry, or a diagnostic names it, or the rules say that it is passed over.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Catalog, View}

  @moduletag :tmp_dir

  @mebibyte 1024 * 1024

  defp matter(lines, body \\ "Body\n"), do: "---\n#{lines}\n---\n#{body}"
  defp skill(name, more \\ ""), do: matter("name: #{name}\ndescription: About it\n" <> more)

  # A list of ten references to a list of ten references, nine times over: a thousand million
  # values.
  defp bomb do
    levels = for n <- 1..9, do: "l#{n}: &l#{n} [#{String.duplicate("*l#{n - 1},", 10)}]\n"
    matter(["name: bomb\ndescription: d\nl0: &l0 x\n", levels])
  end

  # For each file: the name of its entry or nil, and the codes of its diagnostics.
  defp rows do
    deep = Enum.map_join(1..17, "/", &"d#{&1}")
    long = String.duplicate("long-", 13) <> "name"

    [
      {"fine/SKILL.md", skill("fine"), "fine", []},
      {"bom/SKILL.md", "\uFEFF" <> skill("bom"), "bom", []},
      {"crlf/SKILL.md", String.replace(skill("crlf"), "\n", "\r\n"), "crlf", []},
      {"unclosed/SKILL.md", "---\nname: unclosed\ndescription: d\n", nil,
       [:frontmatter_unclosed]},
      {"colon/SKILL.md", matter("name: colon\ndescription: Use it: always"), "colon",
       [:frontmatter_repaired]},
      {"brackets/SKILL.md", matter("name: brackets\ndescription: d\nhint: [a] [b]"), "brackets",
       [:frontmatter_repaired]},
      {"control/SKILL.md", matter("name: control\ndescription: a\x01b"), "control",
       [:frontmatter_repaired]},
      {"comma/SKILL.md", matter("name: comma\ndescription: , and so on"), "comma",
       [:frontmatter_repaired]},
      {"dot/SKILL.md", matter("name: dot\ndescription: .NET things"), "dot", []},
      {"bracket/SKILL.md", matter("name: bracket\ndescription: [open"), nil,
       [:frontmatter_invalid]},
      {"list/SKILL.md", matter("- a\n- b"), nil, [:frontmatter_invalid]},
      {"bare/SKILL.md", "# No frontmatter\n", nil, [:description_missing]},
      {"empty/SKILL.md", "", nil, [:description_missing]},
      {"nameless/SKILL.md", matter("description: d"), "nameless", [:name_missing]},
      {"wordless/SKILL.md", matter("name: wordless"), nil, [:description_missing]},
      {"blank/SKILL.md", matter("name: blank\ndescription: ' '"), nil, [:description_missing]},
      {"folder/SKILL.md", skill("other-name"), "other-name", [:name_differs]},
      {long <> "/SKILL.md", skill(long), long, [:name_too_long]},
      {"Odd_Name/SKILL.md", skill("Odd_Name"), "Odd_Name", [:name_characters]},
      {"two--hyphens/SKILL.md", skill("two--hyphens"), "two--hyphens", [:name_characters]},
      {"wordy/SKILL.md", matter("name: wordy\ndescription: #{String.duplicate("x", 1025)}"),
       "wordy", [:description_too_long]},
      {"demanding/SKILL.md", skill("demanding", "compatibility: #{String.duplicate("x", 501)}"),
       "demanding", [:compatibility_too_long]},
      {"same/1/SKILL.md", skill("same"), "same", [:name_differs]},
      {"same/2/SKILL.md", skill("same"), nil, [:duplicate_name, :name_differs]},
      {"same/3/SKILL.md", skill("same", "tags: [x]"), nil, [:duplicate_name, :name_differs]},
      {"replaced/SKILL.md", skill("replaced"), nil, [:shadowed]},
      {"latin/SKILL.md", matter("name: latin\ndescription: caf" <> <<0xE9>>), nil,
       [:invalid_utf8]},
      {"binary/SKILL.md", <<0xFF, 0xFE, 0, 0>>, nil, [:invalid_utf8]},
      {"large/SKILL.md", String.pad_trailing(skill("large"), @mebibyte + 1), nil,
       [:file_too_large]},
      {"bomb/SKILL.md", bomb(), nil, [:frontmatter_invalid]},
      {"nested/SKILL.md",
       matter("name: nested\ndescription: d\nx: " <> String.duplicate("[", 5000)), nil,
       [:frontmatter_invalid]},
      {"nested-well/SKILL.md",
       matter(
         "name: nested-well\ndescription: d\nx: " <>
           String.duplicate("[", 5000) <> String.duplicate("]", 5000)
       ), nil, [:frontmatter_invalid]},
      {"labels/SKILL.md", skill("labels", "visibility_labels: {a: b}"), nil, [:labels_invalid]},
      {"with blanks/SKILL.md", skill("with-blanks"), "with-blanks", [:name_differs]},
      {"naïve-café/SKILL.md", skill("naïve-café"), "naïve-café", [:name_characters]},
      {"技能/SKILL.md", skill("技能"), "技能", [:name_characters]},
      {"metadata/SKILL.md", skill("metadata", "metadata: {a: [b]}"), "metadata", []},
      {"links/SKILL.md", skill("links") <> "[gone](gone.md)\n", "links", [:reference_missing]},
      {"needs/SKILL.md", skill("needs", "requires: [nothing]"), "needs", [:requires_missing]},
      {"README.md", "# For people\n", nil, [:not_a_skill]},
      {"loose.md", "# A text\n", nil, [:not_a_skill]},
      {"mail/all.md", skill("mail.all"), nil, [:name_reserved]},
      {"tagged/SKILL.md", matter("name: !x tagged\ndescription: d"), "tagged",
       [:frontmatter_tag]},
      {"twice/SKILL.md", matter("name: a\nname: twice\ndescription: d"), "twice",
       [:duplicate_key]},
      # Of these the rules say that they are passed over, or parts of a skill.
      {"fine/references/more.md", "# More\n", nil, []},
      {".hidden/SKILL.md", skill("hidden"), nil, []},
      {"fine-too/.draft.md", skill("draft"), nil, []},
      {"node_modules/package/SKILL.md", skill("package"), nil, []},
      {deep <> "/SKILL.md", skill("deep"), nil, []}
    ]
  end

  @passed_over [
    "fine/references/more.md",
    ".hidden/SKILL.md",
    "fine-too/.draft.md",
    "node_modules/package/SKILL.md"
  ]

  setup %{tmp_dir: root} do
    first = Path.join(root, "first")
    write(first, Map.new(rows(), fn {path, bytes, _name, _codes} -> {path, bytes} end))
    write(Path.join(root, "later"), %{"replaced/SKILL.md" => skill("replaced", "title: Later")})

    # Files that are not regular or not readable.
    File.mkdir_p!(Path.join(first, "a-folder/SKILL.md"))
    File.mkdir_p!(Path.join(first, "a-pipe"))
    {_, 0} = System.cmd("mkfifo", [Path.join(first, "a-pipe/SKILL.md")])
    link(first, "nowhere", "broken/SKILL.md")
    link(first, "circle/SKILL.md", "circle/SKILL.md")
    link(first, "pair/two.md", "pair/one.md")
    link(first, "pair/one.md", "pair/two.md")
    link(first, "../later/replaced", "escaping")
    link(first, "..", "fine/up")
    sparse(Path.join(first, "huge/SKILL.md"))
    {:ok, first: first, later: Path.join(root, "later")}
  end

  defp link(root, target, name) do
    path = Path.join(root, name)
    File.mkdir_p!(Path.dirname(path))
    target = if target =~ "..", do: target, else: Path.join(root, target)
    File.ln_s!(target, path)
  end

  # 1 GiB that needs no place on the disk.
  defp sparse(path) do
    File.mkdir_p!(Path.dirname(path))
    {:ok, file} = :file.open(path, [:write, :raw])
    {:ok, _} = :file.position(file, 1024 * @mebibyte)
    :ok = :file.truncate(file)
    :ok = :file.close(file)
  end

  test "each file has the expected entry and diagnostics", %{first: first, later: later} do
    {:ok, catalog} = Catalog.load([first, later])

    entries =
      Map.new(View.entries(View.all(catalog)), &{Path.relative_to(&1.path, first), &1.name})

    diagnostics = Catalog.diagnostics(catalog)
    found = Enum.group_by(diagnostics, &Path.relative_to(&1.path, first), & &1.code)

    for {path, _bytes, name, codes} <- rows() do
      assert {path, entries[path], Enum.sort(found[path] || [])} == {path, name, codes}
    end

    others = %{
      "a-pipe/SKILL.md" => [:unreadable],
      "broken/SKILL.md" => [:broken_link],
      "circle/SKILL.md" => [:broken_link],
      "pair/one.md" => [:broken_link],
      "pair/two.md" => [:broken_link],
      "escaping" => [:escaping_link],
      "fine/up" => [:broken_link],
      "huge/SKILL.md" => [:file_too_large],
      Enum.map_join(1..16, "/", &"d#{&1}") => [:too_deep]
    }

    assert Map.drop(found, for({path, _, _, _} <- rows(), do: path)) == others

    # The counts add up: no file is lost, and no diagnostic has a file that does not exist.
    assert map_size(entries) == Catalog.count(catalog)
    assert Catalog.count(catalog) == Enum.count(rows(), fn {_, _, name, _} -> name end) + 1
    assert Enum.sum(for {_, codes} <- found, do: length(codes)) == length(diagnostics)

    written =
      for path <- Path.wildcard(first <> "/**/*.md", match_dot: true),
          do: Path.relative_to(path, first)

    told = fn path ->
      Enum.any?(Map.keys(found), &(path == &1 or String.starts_with?(path, &1 <> "/")))
    end

    lost = Enum.reject(written, &(is_map_key(entries, &1) or told.(&1) or &1 in @passed_over))
    # A folder is never a document, whatever its name.
    assert lost == ["a-folder/SKILL.md"]
  end

  test "shows a repaired line and both files of a duplicate", %{first: first, later: later} do
    {:ok, catalog} = Catalog.load([first, later])

    messages =
      for found <- Catalog.diagnostics(catalog),
          do: {Path.relative_to(found.path, first), found.code, found.message}

    rows = [
      {"colon/SKILL.md", :frontmatter_repaired, ~s(description: "Use it: always")},
      {"brackets/SKILL.md", :frontmatter_repaired, ~s(hint: "[a] [b]")},
      {"comma/SKILL.md", :frontmatter_repaired, ~s(description: ", and so on")},
      {"same/2/SKILL.md", :duplicate_name, "#{first}/same/1/SKILL.md"},
      {"same/3/SKILL.md", :duplicate_name, "#{first}/same/1/SKILL.md"},
      {"replaced/SKILL.md", :shadowed, "#{later}/replaced/SKILL.md"}
    ]

    for {path, code, part} <- rows do
      assert [message] = for({^path, ^code, message} <- messages, do: message)
      assert message =~ part
    end
  end

  test "lists the entries of two sources with globs in the XML prompt", %{
    first: first,
    later: later
  } do
    {:ok, catalog} =
      Catalog.load([[path: first, available: ["replaced"]], [path: later, available: ["*"]]])

    assert [found] =
             for(found <- Catalog.diagnostics(catalog), found.code == :shadowed, do: found)

    assert {found.severity, found.path} == {:warning, Path.join(first, "replaced/SKILL.md")}
    prompt = Skillbook.prompt(View.all(catalog), format: :xml)

    for folder <- [first, later],
        do: assert(prompt =~ "<location>#{folder}/replaced/SKILL.md</location>")
  end

  test "each diagnostic names a file, and errors say what was expected", %{first: first} do
    {:ok, catalog} = Catalog.load([first])

    for found <- Catalog.diagnostics(catalog) do
      assert String.starts_with?(found.path, first)
      assert String.valid?(found.message) and String.length(found.message) in 10..500
      refute found.message =~ ~r/\n|Error\(|Some\(|None/
    end
  end
end
