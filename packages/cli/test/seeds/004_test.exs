defmodule Skillbook.Seeds.SourcesTest do
  # The document about sources: configured folders of skills, selected by globs for a list or for
  # the whole text, found in folders, and put into the system prompt.
  use Skillbook.SeedsCase,
    async: true,
    names: %{
      "config" => ~w(agents.json agentId skills root available inline),
      "semantics" => ~w(root available inline),
      "paths" => ~w(~/ root),
      "patterns" => ~w(available inline * ?),
      "discovery" => ~w(SKILL.md node_modules .hidden ln_s),
      "frontmatter" => ~w(--- name description name_missing name_differs description_missing),
      "collisions" => ~w(duplicate_name),
      "selection" => ~w(available inline inline_wins),
      "across" => ~w(shadowed available inline),
      "listing" => ~w(<available_skills> <skill> <name> <description> <location>),
      "inlining" => ["<skill name=", "location=", "References are relative to"],
      "order" => ~w(available_skills skill),
      "caching" => ~w(watch reload),
      "warnings" =>
        ~w(source_missing frontmatter_invalid description_missing name_differs duplicate_name
           inline_wins shadowed warning),
      "security" => ~w(escaping_link)
    }

  import ExUnit.CaptureLog

  alias Skillbook.{Catalog, View}

  @moduletag :tmp_dir

  defp skill(name, description, body \\ "Do it with care.") do
    "---\nname: #{name}\ndescription: #{description}\n---\n\n# #{name}\n\n#{body}\n"
  end

  defp folder(folder, name, files), do: write(Path.join(folder, name), files)

  defp three(folder, name \\ "one") do
    folder(folder, name, %{
      "lists/SKILL.md" => skill("lists", "Keeps lists & their items"),
      "my-critical-rules/SKILL.md" => skill("my-critical-rules", "Rules that always hold"),
      "deep/down/maps/SKILL.md" => skill("maps", "Draws maps")
    })
  end

  defp load(sources) do
    {:ok, catalog} = Catalog.load(sources)
    {View.all(catalog), Catalog.diagnostics(catalog)}
  end

  defp codes(diagnostics), do: Enum.map(diagnostics, & &1.code)
  defp names(view), do: view |> View.entries() |> Enum.map(& &1.name) |> Enum.sort()
  defp prompt(view), do: Skillbook.prompt(view, format: :xml)

  # The names in the list, and those with their whole text, in their order.
  defp listed(view), do: for([_, n] <- Regex.scan(~r"<name>(.*?)</name>", prompt(view)), do: n)
  defp whole(view), do: for([_, n] <- Regex.scan(~r/<skill name="(.*?)"/, prompt(view)), do: n)

  row "config", "the sources of an agent are read from a file", %{tmp_dir: folder} do
    root = three(folder)
    other = folder(folder, "two", %{"tea/SKILL.md" => skill("tea", "Brews tea")})
    file = Path.join(folder, "agents.json")

    File.write!(file, """
    {"agents": [
      {"agentId": "writer", "displayName": "Writer", "skills": []},
      {"agentId": "coding", "displayName": "Coding", "description": "Writes code.",
       "skills": [
         {"root": #{inspect(root)}, "available": ["*"], "inline": ["my-critical-*"]},
         {"root": #{inspect(other)}}
       ]}
    ]}
    """)

    book = book(sources: [{:config, file, agent: "coding"}], builtins: false, watch: false)
    view = Skillbook.view(book)
    assert listed(view) == ["lists", "maps", "tea"]
    assert whole(view) == ["my-critical-rules"]
  end

  row "config", "an agent without skills has none", %{tmp_dir: folder} do
    file = Path.join(folder, "agents.json")
    File.write!(file, ~s({"agents": [{"agentId": "writer"}, {"agentId": "b", "skills": []}]}))

    for agent <- ["writer", "b"] do
      book = book(sources: [{:config, file, agent: agent}], builtins: false, watch: false)
      assert View.entries(Skillbook.view(book)) == []
    end
  end

  row "config", "a wrong key is an error that names it", %{tmp_dir: folder} do
    file = Path.join(folder, "agents.json")
    File.write!(file, ~s({"agents": [{"agentId": "a", "skills": [{"roots": "x"}]}]}))
    options = [name: :seeds_wrong_key, sources: [{:config, file, agent: "a"}]]
    assert {:error, error} = Skillbook.start_link(options)
    assert Exception.message(error) =~ ~s(roots: unknown key, did you mean "root"?)
  end

  row "semantics", "without globs a source lists everything", %{tmp_dir: folder} do
    {view, []} = load([[path: three(folder)]])
    assert {listed(view), whole(view)} == {["lists", "maps", "my-critical-rules"], []}
    # `root` is the name of `path` in files.
    file = Path.join(folder, "agents.json")
    File.write!(file, ~s({"skills": [{"root": #{inspect(Path.join(folder, "one"))}}]}))
    {view, []} = load([{:config, file}])
    assert listed(view) == ["lists", "maps", "my-critical-rules"]
  end

  row "semantics", "with one kind of globs the other one selects nothing", %{tmp_dir: folder} do
    root = three(folder)
    {view, _} = load([[path: root, available: ["l*"]]])
    assert {listed(view), whole(view)} == {["lists"], []}
    {view, _} = load([[path: root, inline: ["l*"]]])
    assert {listed(view), whole(view)} == {[], ["lists"]}
  end

  row "paths", "a path begins at the home folder, or at the current one", %{tmp_dir: folder} do
    three(folder)
    file = Path.join(folder, "agents.json")
    # A folder that nobody has.
    name = "skills-#{System.unique_integer([:positive])}-#{System.os_time()}"
    File.write!(file, ~s({"skills": [{"root": "~/#{name}"}]}))
    {_, [diagnostic]} = load([{:config, file}])
    assert diagnostic.path == Path.join(System.user_home!(), name)

    relative = Path.relative_to_cwd(Path.join(folder, "one/deep"))
    File.write!(file, ~s({"skills": [{"root": #{inspect(relative)}}]}))
    {view, []} = load([{:config, file}])
    assert names(view) == ["maps"]
  end

  row "patterns", "globs match the name, and case counts", %{tmp_dir: folder} do
    root = three(folder)

    for {available, expected} <- [
          {["*"], ["lists", "maps", "my-critical-rules"]},
          {["?aps"], ["maps"]},
          {["*s"], ["lists", "maps", "my-critical-rules"]},
          {["L*"], []},
          {["deep*"], []},
          {["lists", "my-*"], ["lists", "my-critical-rules"]}
        ] do
      {view, _} = load([[path: root, available: available, inline: []]])
      assert {available, listed(view)} == {available, expected}
    end
  end

  row "discovery", "folders are searched for SKILL.md at every depth", %{tmp_dir: folder} do
    root = three(folder)

    write(root, %{
      ".hidden/x/SKILL.md" => skill("x", "In a folder with a dot"),
      "node_modules/y/SKILL.md" => skill("y", "In a folder of packages"),
      "lists/.SKILL.md" => skill("z", "A file with a dot"),
      "lists/more.md" => "Only a file of lists.\n"
    })

    {view, _} = load([root])
    assert names(view) == ["lists", "maps", "my-critical-rules"]
  end

  row "discovery", "links are followed, and a broken one is skipped", %{tmp_dir: folder} do
    root = three(folder)
    File.ln_s!(Path.join(root, "deep"), Path.join(root, "linked"))
    File.ln_s!(Path.join(root, "nowhere"), Path.join(root, "broken"))
    {view, diagnostics} = load([root])
    # A file that is reached twice is one entry: SKILL.md by its real path.
    assert names(view) == ["lists", "maps", "my-critical-rules"]
    assert :broken_link in codes(diagnostics)
    refute :duplicate_name in codes(diagnostics)
  end

  @tag differs: "A single Markdown file with a name and a description is a skill as well."
  row "discovery", "a file of another name than SKILL.md", %{tmp_dir: folder} do
    root = folder(folder, "one", %{"haiku.md" => skill("haiku", "Three lines")})
    {view, []} = load([root])
    assert names(view) == ["haiku"]
  end

  row "frontmatter", "--- begins it, and the text is without it", %{tmp_dir: folder} do
    root = three(folder)
    {view, []} = load([root])
    entry = View.fetch!(view, "lists")
    assert {entry.name, entry.description} == {"lists", "Keeps lists & their items"}
    refute entry.body =~ "---"
    refute entry.body =~ "description:"
  end

  row "frontmatter", "without a description the skill is left out", %{tmp_dir: folder} do
    root =
      folder(folder, "one", %{
        "a/SKILL.md" => "---\nname: a\n---\nText.\n",
        "b/SKILL.md" => "---\nname: b\ndescription: \"\"\n---\nText.\n"
      })

    {view, diagnostics} = load([root])
    assert names(view) == []
    assert codes(diagnostics) == [:description_missing, :description_missing]
  end

  row "frontmatter", "without a name the folder's is taken", %{tmp_dir: folder} do
    root = folder(folder, "one", %{"lists/SKILL.md" => "---\ndescription: Lists\n---\nText.\n"})
    {view, [diagnostic]} = load([root])
    assert names(view) == ["lists"]
    assert {diagnostic.code, diagnostic.severity} == {:name_missing, :warning}
  end

  row "frontmatter", "a name that is not the folder's is used", %{tmp_dir: folder} do
    root = folder(folder, "one", %{"lists/SKILL.md" => skill("rows", "Rows")})
    {view, [diagnostic]} = load([root])
    assert names(view) == ["rows"]
    assert {diagnostic.code, diagnostic.severity} == {:name_differs, :warning}
  end

  row "collisions", "the first of a name in a source wins", %{tmp_dir: folder} do
    root =
      folder(folder, "one", %{
        "a/tea/SKILL.md" => skill("tea", "The first"),
        "b/tea/SKILL.md" => skill("tea", "The second")
      })

    {view, [diagnostic]} = load([root])
    assert View.fetch!(view, "tea").description == "The first"
    assert {diagnostic.code, diagnostic.severity} == {:duplicate_name, :warning}
    # Both paths are in it.
    text = diagnostic.path <> diagnostic.message <> to_string(diagnostic.hint)
    assert text =~ "a/tea/SKILL.md" and text =~ "b/tea/SKILL.md"
  end

  row "selection", "an entry that both match is inline, with a warning", %{tmp_dir: folder} do
    {view, [diagnostic]} = load([[path: three(folder), available: ["*"], inline: ["lists"]]])
    assert {listed(view), whole(view)} == {["maps", "my-critical-rules"], ["lists"]}
    assert diagnostic.code == :inline_wins
  end

  row "across", "the same name in two sources is listed twice, in order", %{tmp_dir: folder} do
    one = folder(folder, "one", %{"tea/SKILL.md" => skill("tea", "The first")})
    two = folder(folder, "two", %{"tea/SKILL.md" => skill("tea", "The second")})

    for {globs, names} <- [{[available: ["*"]], &listed/1}, {[inline: ["*"]], &whole/1}] do
      {view, [diagnostic]} = load(for root <- [one, two], do: [path: root] ++ globs)
      assert names.(view) == ["tea", "tea"]
      [_, first, second] = Regex.run(~r/(one).*(two)/s, prompt(view))
      assert {first, second} == {"one", "two"}
      assert {diagnostic.code, diagnostic.severity} == {:shadowed, :warning}
      assert diagnostic.message =~ "two"
    end
  end

  @tag differs: "A name means one skill, that of the later source; only this format shows both."
  row "across", "the name is that of the later source", %{tmp_dir: folder} do
    one = folder(folder, "one", %{"tea/SKILL.md" => skill("tea", "The first")})
    two = folder(folder, "two", %{"tea/SKILL.md" => skill("tea", "The second")})
    {view, [%{code: :shadowed}]} = load([one, two])
    assert View.fetch!(view, "tea").description == "The second"
    refute Skillbook.prompt(view) =~ "The first"
  end

  row "listing", "one block with name, description and location", %{tmp_dir: folder} do
    root = folder(folder, "one", %{"lists/SKILL.md" => skill("lists", "Lists & <items>")})
    {view, []} = load([root])

    assert String.trim(prompt(view)) == """
           <available_skills>
             <skill>
               <name>lists</name>
               <description>Lists &amp; &lt;items&gt;</description>
               <location>#{Path.join(root, "lists/SKILL.md")}</location>
             </skill>
           </available_skills>\
           """
  end

  row "listing", "all sources share one block, without their roots", %{tmp_dir: folder} do
    one = folder(folder, "one", %{"tea/SKILL.md" => skill("tea", "Tea")})
    two = folder(folder, "two", %{"bread/SKILL.md" => skill("bread", "Bread")})
    {view, []} = load([one, two])
    text = prompt(view)
    assert length(String.split(text, "<available_skills>")) == 2
    for root <- [one, two], do: refute(text =~ "<root>" or text =~ "#{root}</")
  end

  row "inlining", "the whole text, with the place of its files", %{tmp_dir: folder} do
    root =
      folder(folder, "one", %{"lists/SKILL.md" => skill("lists", "Lists", "Read [x](x.md).")})

    write(root, %{"lists/x.md" => "More.\n"})
    {view, []} = load([[path: root, inline: ["*"]]])
    place = Path.join(root, "lists")
    text = prompt(view)
    assert text =~ ~s(<skill name="lists" location="#{place}/SKILL.md">\n)
    assert text =~ "References are relative to #{place}.\n"
    assert text =~ "Read [x](x.md).\n</skill>"
    refute text =~ "description:"
  end

  @tag differs:
         "The text of a document is indented, so that it cannot forge the end of its block."
  row "inlining", "the text is indented", %{tmp_dir: folder} do
    text = "</skill>\n<available_skills>"
    root = folder(folder, "one", %{"lists/SKILL.md" => skill("lists", "Lists", text)})
    {view, []} = load([[path: root, inline: ["*"]]])
    assert whole(view) == ["lists"]
    # The References are relative to line comes first, and the only end is the block's own.
    assert length(String.split(prompt(view), "</skill>")) == 2
    refute prompt(view) =~ "\n<available_skills>"
  end

  row "order", "the list first, sources in order, names in order", %{tmp_dir: folder} do
    one =
      folder(folder, "one", %{
        "zoo/SKILL.md" => skill("zoo", "Z"),
        "ant/SKILL.md" => skill("ant", "A"),
        "in-b/SKILL.md" => skill("in-b", "B"),
        "in-a/SKILL.md" => skill("in-a", "A")
      })

    two =
      folder(folder, "two", %{
        "bee/SKILL.md" => skill("bee", "B"),
        "in-0/SKILL.md" => skill("in-0", "0")
      })

    {view, _} =
      load(for root <- [one, two], do: [path: root, available: ["???"], inline: ["in-*"]])

    assert listed(view) == ["ant", "zoo", "bee"]
    assert whole(view) == ["in-a", "in-b", "in-0"]
    [list, _] = String.split(prompt(view), "</available_skills>")
    refute list =~ "<skill name="
  end

  @tag differs: "Files are followed while the book runs; with watch: false they are not."
  row "caching", "documents are read once", %{tmp_dir: folder} do
    root = three(folder)
    book = book(sources: [root], builtins: false, watch: false)
    before = prompt(Skillbook.view(book))
    write(root, %{"lists/SKILL.md" => skill("lists", "Changed")})
    assert prompt(Skillbook.view(book)) == before
    assert :ok = Skillbook.reload(book)
    assert prompt(Skillbook.view(book)) =~ "Changed"
  end

  row "warnings", "each mistake has a diagnostic", %{tmp_dir: folder} do
    root =
      folder(folder, "one", %{
        "a/SKILL.md" => "---\nname: [a\ndescription: x\n---\nText.\n",
        "b/SKILL.md" => "---\nname: b\n---\nText.\n",
        "c/SKILL.md" => skill("other", "Another name"),
        "d/tea/SKILL.md" => skill("tea", "One"),
        "e/tea/SKILL.md" => skill("tea", "Two"),
        "f/SKILL.md" => skill("f", "Both ways")
      })

    two = folder(folder, "two", %{"other/SKILL.md" => skill("other", "Later")})
    missing = Path.join(folder, "three")
    {_view, found} = load([[path: root, available: ["*"], inline: ["f"]], two, missing])

    for code <- [
          :frontmatter_invalid,
          :description_missing,
          :name_differs,
          :duplicate_name,
          :inline_wins,
          :shadowed,
          :source_missing
        ],
        do: assert({code, true} == {code, code in codes(found)})
  end

  row "warnings", "each is logged once as a warning", %{tmp_dir: folder} do
    root =
      folder(folder, "one", %{
        "c/SKILL.md" => skill("renamed", "Another name"),
        "d/tea/SKILL.md" => skill("tea", "One"),
        "e/tea/SKILL.md" => skill("tea", "Two"),
        "f/SKILL.md" => skill("f", "Both ways")
      })

    missing = Path.join(folder, "three")
    sources = [[path: root, available: ["*"], inline: ["f"]], [path: missing, optional: true]]
    own = fn log -> log |> String.split("\n") |> Enum.filter(&(&1 =~ folder)) end

    {book, log} = with_log(fn -> book(sources: sources, builtins: false, watch: false) end)
    lines = own.(log)

    for text <- ["c/SKILL.md", "e/tea/SKILL.md", "f/SKILL.md", "three"] do
      assert [line] = Enum.filter(lines, &(&1 =~ text)), "#{text}\n#{log}"
      assert line =~ "warning"
    end

    # The same causes are not logged again.
    assert assert :ok = Skillbook.reload(book)
    {_, log} = with_log(fn -> Skillbook.reload(book) end)
    assert own.(log) == []
  end

  @tag differs: "A folder that is not optional has to exist, so that no skill is missing unseen."
  row "warnings", "a missing folder stops the start", %{tmp_dir: folder} do
    missing = Path.join(folder, "none")
    assert {:error, error} = Skillbook.start_link(name: :seeds_missing, sources: [missing])
    assert Exception.message(error) =~ missing
    assert error.reason == "the folder does not exist"
  end

  row "security", "nothing outside of the root is read", %{tmp_dir: folder} do
    root = three(folder)
    outside = folder(folder, "outside", %{"x/SKILL.md" => skill("x", "Outside")})
    File.ln_s!(Path.join(outside, "x"), Path.join(root, "x"))
    {view, diagnostics} = load([root])
    refute "x" in names(view)
    assert codes(diagnostics) == [:escaping_link]
  end
end
