defmodule Skillbook.MCP.SkillsTest do
  # The methods of the extension `io.modelcontextprotocol/skills`.
  use Skillbook.MCPCase, async: true

  alias Skillbook.MCP.{Server, SkillURI}
  alias Skillbook.Support.JSON

  doctest Skillbook.MCP.SkillURI

  @moduletag :tmp_dir

  defp digest(bytes), do: "sha256:" <> Base.encode16(:crypto.hash(:sha256, bytes), case: :lower)

  defp get(context, uri), do: at!(context, "skills/get", uri)["skill"]

  describe "skills/list" do
    test "has each skill with its frontmatter and all its files", %{tmp_dir: folder} do
      text =
        "---\nname: pdf\ndescription: Work with PDF\nlicense: MIT\nx-own: [1, 2.5, null, yes]" <>
          "\nmetadata:\n  version: \"2.0\"\nvisibility_labels: []\n---\n# PDF\r\n"

      png = <<137, 80, 78, 71, 13, 10, 26, 10, 0>>

      write(folder, %{
        "pdf/SKILL.md" => text,
        "pdf/references/forms.md" => "Forms\n",
        "pdf/scripts/a b.py" => "print(1)\n",
        "pdf/logo.png" => png,
        "notes.md" => "Not a skill\n"
      })

      assert {:ok, %{"skills" => [skill]} = result} = ask(context(folder), "skills/list")
      assert Map.keys(result) == ["skills"]
      assert skill["uri"] == "skill://pdf/SKILL.md"

      assert skill["frontmatter"] == %{
               "name" => "pdf",
               "description" => "Work with PDF",
               "license" => "MIT",
               "x-own" => [1, 2.5, nil, "yes"],
               "metadata" => %{"version" => "2.0"},
               "visibility_labels" => []
             }

      assert skill["resources"] ==
               for(
                 {uri, bytes} <- [
                   {"skill://pdf/SKILL.md", text},
                   {"skill://pdf/logo.png", png},
                   {"skill://pdf/references/forms.md", "Forms\n"},
                   {"skill://pdf/scripts/a%20b.py", "print(1)\n"}
                 ],
                 do: %{"uri" => uri, "digest" => digest(bytes), "size" => byte_size(bytes)}
               )

      for %{"uri" => uri, "digest" => digest} <- skill["resources"] do
        assert digest(bytes(at!(context(folder), "resources/read", uri))) == digest
      end
    end

    test "leaves out what a model is not offered, which can still be asked for", context do
      folder = context.tmp_dir

      write(folder, %{
        "a/SKILL.md" => page("a"),
        "b/SKILL.md" => page("b", "disable-model-invocation": true),
        "run/it.md" => page("run.it", handler: "No.Such.Module")
      })

      context = context(folder)

      assert for(s <- all(context, "skills/list", "skills"), do: s["frontmatter"]["name"]) == [
               "a"
             ]

      assert get(context, "skill://b/SKILL.md")["frontmatter"]["name"] == "b"
      assert get(context, "skill://run.it/run-it/SKILL.md")["frontmatter"]["name"] == "run-it"
    end

    test "has pages of at most 50 skills, each skill once", %{tmp_dir: folder} do
      names = for n <- 1..120, do: "skill-#{n}"
      write(folder, Map.new(names, &{"#{&1}/SKILL.md", page(&1)}))
      context = context(folder)
      pages = pages(context, "skills/list")
      assert Enum.map(pages, &length(&1["skills"])) == [50, 50, 20]
      listed = for %{"skills" => skills} <- pages, s <- skills, do: s["frontmatter"]["name"]
      assert listed == Enum.sort(names)
    end

    test "ends a page after many files, or after much frontmatter", %{tmp_dir: folder} do
      files = for s <- ~w(a b c), n <- 1..300, into: %{}, do: {"#{s}/f#{n}.txt", "#{n}"}
      large = String.duplicate("x", 600_000)

      write(folder, files)
      write(folder, Map.new(~w(a b c), &{"#{&1}/SKILL.md", page(&1)}))
      write(folder, Map.new(~w(l m n), &{"#{&1}/SKILL.md", page(&1, more: large)}))

      names =
        for %{"skills" => skills} <- pages(context(folder), "skills/list"),
            do: Enum.map(skills, & &1["frontmatter"]["name"])

      assert names == [["a", "b"], ["c", "l"], ["m"], ["n"]]
    end

    test "ends a page after many bytes of files", %{tmp_dir: folder} do
      bytes = :binary.copy("x", 9 * 1024 * 1024)
      for name <- ~w(a b c d e), do: write(folder, %{"#{name}/SKILL.md" => page(name)})
      for name <- ~w(a b c d e), do: write(folder, %{"#{name}/large.txt" => bytes})
      pages = pages(context(folder), "skills/list")
      assert Enum.map(pages, &length(&1["skills"])) == [2, 2, 1]
    end

    test "goes on where a page has ended, also after a change", %{tmp_dir: folder} do
      write(folder, Map.new(100..159, &{"s#{&1}/SKILL.md", page("s#{&1}")}))
      [first, _] = pages(context(folder), "skills/list")
      write(folder, %{"s1/SKILL.md" => page("s1"), "s150a/SKILL.md" => page("s150a")})
      File.rm_rf!(Path.join(folder, "s149"))

      rest = all(context(folder), "skills/list", "skills", %{"cursor" => first["nextCursor"]})

      assert for(s <- rest, do: s["frontmatter"]["name"]) ==
               Enum.sort(["s150a" | Enum.map(150..159, &"s#{&1}")])
    end

    test "refuses cursors that it has not made", %{tmp_dir: folder} do
      write(folder, Map.new(1..60, &{"s#{&1}/SKILL.md", page("s#{&1}")}))
      context = context(folder)
      [%{"nextCursor" => cursor}, _] = pages(context, "skills/list")
      assert {:ok, _} = ask(context, "skills/list", %{"cursor" => cursor})

      for wrong <- [
            "",
            "s5",
            "%%%",
            5,
            nil,
            %{},
            [cursor],
            cursor <> "!",
            Base.encode64("tools\ns"),
            Base.url_encode64("skills\n" <> <<255>>),
            String.duplicate("A", 16_385)
          ] do
        assert {:error, error} = ask(context, "skills/list", %{"cursor" => wrong})

        assert {error.code, error.message} ==
                 {-32_602, "expected a `cursor` that this list has returned as `nextCursor`"}

        assert {:error, ^error} = ask(context, "resources/list", %{"cursor" => wrong})
      end

      # A cursor of another list.
      assert {:error, _} = ask(context, "resources/list", %{"cursor" => cursor})
    end
  end

  describe "skills/get" do
    test "answers as the list does", %{tmp_dir: folder} do
      write(folder, %{
        "a/SKILL.md" => page("a"),
        "a/b.txt" => "b",
        "run/it.md" => page("run.it"),
        "Odd Name/SKILL.md" => page("Odd Name")
      })

      context = context(folder)
      skills = all(context, "skills/list", "skills")
      assert length(skills) == 3
      for skill <- skills, do: assert(get(context, skill["uri"]) == skill)
    end

    test "refuses every other URI with one text", %{tmp_dir: folder} do
      write(folder, %{
        "a/SKILL.md" => page("a", aliases: "[other]"),
        "a/b.md" => "b",
        "a/sub/SKILL.txt" => "c",
        "secret/SKILL.md" => page("secret", visibility_labels: "[secret]"),
        "note.md" => "---\ninclude_in_prompt: true\ntitle: Note\n---\nA note\n"
      })

      context = context(folder, id: "guest")

      for uri <- [
            "skill://missing/SKILL.md",
            "skill://secret/SKILL.md",
            "skill://other/SKILL.md",
            "skill://a",
            "skill://a/",
            "skill://a/b.md",
            "skill://a/skill.md",
            "skill://A/SKILL.md",
            "skill://a/SKILL.md/",
            "skill://a//SKILL.md",
            "skill://a/./SKILL.md",
            "skill://a/sub/../SKILL.md",
            "skill://a/SKILL.md?x=1",
            "skill://a/SKILL.md#top",
            "skill://a/x/SKILL.md",
            "SKILL://a/SKILL.md",
            "file:///a/SKILL.md",
            "note://Note",
            "skill://Note/note/SKILL.md",
            "skill://",
            "a",
            ""
          ] do
        message = "no skill is served at #{inspect(uri)}"
        assert error_at(context, "skills/get", uri) == {-32_602, message}
        assert {:error, %{data: %{"uri" => ^uri}}} = ask(context, "skills/get", %{"uri" => uri})
      end

      for params <- [
            %{},
            %{"uri" => nil},
            %{"uri" => 1},
            %{"uri" => String.duplicate("a", 4_097)}
          ] do
        assert {:error, error} = ask(context, "skills/get", params)

        assert {error.code, error.message} ==
                 {-32_602, "expected a URI of at most 4,096 bytes as `uri`"}
      end

      assert get(context, "skill://a/SKILL.md")["frontmatter"]["name"] == "a"
    end

    test "serves no skill beyond the limits of the extension", %{tmp_dir: folder} do
      text = page("s")
      mib = 1024 * 1024

      rows = [
        # {files of one byte, bytes of one more file, error}
        {510, 1, nil},
        {511, 1, "skill://s/SKILL.md has more than 512 files"},
        {0, 16 * mib - byte_size(text), nil},
        {0, 16 * mib - byte_size(text) + 1,
         "skill://s/SKILL.md and its files have more than 16777216 bytes"}
      ]

      for {{count, size, problem}, at} <- Enum.with_index(rows) do
        folder = Path.join(folder, "#{at}")
        write(folder, %{"s/SKILL.md" => text, "s/z.bin" => String.duplicate("z", size)})
        for n <- 1..count//1, do: File.write!(Path.join(folder, "s/#{n}.txt"), "1")
        context = context(folder)

        if problem do
          assert error_at(context, "skills/get", "skill://s/SKILL.md") ==
                   {-32_602, problem <> "; a skill with more is not served"}

          assert all(context, "skills/list", "skills") == []
          # Its text can still be read.
          assert bytes(at!(context, "resources/read", "skill://s/SKILL.md")) == text
        else
          assert length(get(context, "skill://s/SKILL.md")["resources"]) == count + 2
          assert [_] = all(context, "skills/list", "skills")
        end
      end
    end
  end

  describe "the SKILL.md" do
    test "is as its author wrote it, or is written in the format", %{tmp_dir: folder} do
      # {file, text, URI, frontmatter; nil: the text is as written}
      rows = [
        {"ok/SKILL.md", page("ok", "x-more": "1"), "skill://ok/SKILL.md", nil},
        {"crlf/SKILL.md", "---\r\nname: crlf\r\ndescription: d\r\n---\r\nText\r\n",
         "skill://crlf/SKILL.md", nil},
        {"other-folder/SKILL.md", page("named"), "skill://named/SKILL.md", nil},
        {"Odd Name/SKILL.md", page("Odd Name"), "skill://Odd%20Name/odd-name/SKILL.md",
         %{
           "name" => "odd-name",
           "description" => "Does Odd Name",
           "metadata" => %{"skillbook-name" => "Odd Name"}
         }},
        {"run/it.md", page("run.it"), "skill://run.it/run-it/SKILL.md",
         %{
           "name" => "run-it",
           "description" => "Does run.it",
           "metadata" => %{"skillbook-command" => "run.it"}
         }},
        {"repaired/SKILL.md", "---\nname: repaired\ndescription: Note: short\n---\nText\n",
         "skill://repaired/SKILL.md", %{"name" => "repaired", "description" => "Note: short"}},
        {"twice/SKILL.md", "---\nname: twice\ndescription: a\ndescription: b\n---\nText\n",
         "skill://twice/SKILL.md", %{"name" => "twice", "description" => "b"}},
        {"nameless/SKILL.md", "---\ndescription: No name\n---\nText\n",
         "skill://nameless/SKILL.md", %{"name" => "nameless", "description" => "No name"}},
        {"bom/SKILL.md", "\uFEFF---\nname: bom\ndescription: d\n---\nText\n",
         "skill://bom/SKILL.md", %{"name" => "bom", "description" => "d"}},
        {"types/SKILL.md",
         "---\nname: types\ndescription: d\nlicense: 2\ncompatibility: [a]\n" <>
           "allowed-tools: [Read, Bash(git add:*)]\nmetadata:\n  version: 1.10\n  n: ~\n" <>
           "  list: [a, 1]\n---\nText\n", "skill://types/SKILL.md",
         %{
           "name" => "types",
           "description" => "d",
           "license" => "2",
           "allowed-tools" => "Read Bash(git add:*)",
           "metadata" => %{"version" => "1.10", "n" => "", "list" => "[\"a\",\"1\"]"}
         }},
        {"long/SKILL.md", page("long", description: String.duplicate("x", 1_025)),
         "skill://long/SKILL.md",
         %{"name" => "long", "description" => String.duplicate("x", 1_023) <> "…"}},
        {"hidden/SKILL.md",
         "---\nname: hidden\ndescription: \"a\u202Eb\"\nx: [\"\u200B\"]\n---\nc\u200Bd\n",
         "skill://hidden/SKILL.md",
         %{"name" => "hidden", "description" => "a\\u{202E}b", "x" => ["\\u{200B}"]}}
      ]

      write(folder, Map.new(rows, fn {file, text, _, _} -> {file, text} end))
      context = context(folder)
      assert length(all(context, "skills/list", "skills")) == length(rows)

      for {_file, text, uri, frontmatter} <- rows do
        skill = get(context, uri)
        served = bytes(at!(context, "resources/read", uri))
        [%{"uri" => ^uri, "digest" => digest, "size" => size} | _] = skill["resources"]
        assert {digest, size} == {digest(served), byte_size(served)}

        # Clients compare the frontmatter of the text with that of the entry.
        {:ok, parsed} = Skillbook.Frontmatter.parse(served)
        assert parsed.data == skill["frontmatter"]
        assert parsed.diagnostics == []
        refute Skillbook.Support.Hidden.any?(served)

        if frontmatter,
          do: assert(skill["frontmatter"] == frontmatter),
          else: assert(served == text)

        # The last part of the path is the name, in the letters of the format.
        name = skill["frontmatter"]["name"]
        assert uri |> String.split("/") |> Enum.at(-2) == name
        assert name =~ ~r/\A[a-z0-9]+(-[a-z0-9]+)*\z/
      end
    end

    test "is one for entries whose names differ only in what the format drops", context do
      folder = context.tmp_dir
      names = ["a b", "A-B", "a.b", "a-b", "a--b", "日本", "ß", "a/b"]

      write(
        folder,
        for({name, at} <- Enum.with_index(names), into: %{}) do
          {"#{at}/SKILL.md", "---\nname: #{name}\ndescription: d#{at}\n---\nText #{at}\n"}
        end
      )

      context = context(folder)
      skills = all(context, "skills/list", "skills")
      assert length(skills) == length(names)
      assert skills |> Enum.map(& &1["uri"]) |> Enum.uniq() |> length() == length(names)

      for %{"uri" => uri, "frontmatter" => frontmatter} <- skills do
        number = String.replace_prefix(frontmatter["description"], "d", "")
        assert bytes(at!(context, "resources/read", uri)) =~ "Text #{number}\n"
      end
    end
  end

  describe "URIs" do
    @characters ["a", "b-c", ".", "..", "/", "%", "%2F", "ü", "?", "#", " ", "A", "-", "\0"]

    defp random(count), do: Enum.map_join(0..count, fn _ -> Enum.random(@characters) end)

    test "of any names are read back, and no two are the same" do
      :rand.seed(:exsss, {1, 2, 3})

      pairs =
        for _ <- 1..2_000 do
          file = random(:rand.uniform(3)) |> String.replace(["/", "\0"], "x")
          {random(:rand.uniform(4)), if(file in [".", ".."], do: "x", else: file)}
        end

      uris =
        for {name, file} <- Enum.uniq(pairs) do
          uri = SkillURI.of(name, "in/" <> file)
          assert SkillURI.parse(uri) == {:ok, {:skill, name, ["in", file]}}
          assert SkillURI.parse(SkillURI.note(name)) == {:ok, {:note, name}}
          assert uri =~ ~r"\Askill://([A-Za-z0-9._~-]|%[0-9A-F]{2}|/)+\z"
          uri
        end

      assert Enum.uniq(uris) == uris
    end

    test "of any kind are answered", %{tmp_dir: folder} do
      :rand.seed(:exsss, {1, 2, 3})
      write(folder, %{"a/SKILL.md" => page("a"), "a/b" => "b", "run/it.md" => page("run.it")})
      context = context(folder)

      starts = [
        "skill://",
        "skill://a",
        "skill://a/",
        "skill://run.it/run-it",
        "note://",
        "",
        "x:"
      ]

      for _ <- 1..2_000, method <- ["skills/get", "resources/read", "resources/directory/read"] do
        uri = Enum.random(starts) <> random(:rand.uniform(4))
        assert {kind, _} = ask(context, method, %{"uri" => uri})
        assert kind in [:ok, :error]
      end
    end
  end

  describe "digests" do
    test "follow the files, without a new generation", %{tmp_dir: folder} do
      write(folder, %{"a/SKILL.md" => page("a"), "a/f.txt" => "1111"})
      book = :"book_#{System.unique_integer([:positive])}"
      start_supervised!({Skillbook, name: book, sources: [folder], watch: false})
      view = Skillbook.View.all(book)
      context = %{context(folder) | view: view}
      path = Path.join(folder, "a/f.txt")
      file = fn -> get(context, "skill://a/SKILL.md")["resources"] |> List.last() end

      # Changes of the same size within one second.
      for bytes <- ["1111", "2222", "3333", "44", ""] do
        File.write!(path, bytes)
        assert %{"digest" => digest, "size" => size} = file.()
        assert {digest, size} == {digest(bytes), byte_size(bytes)}
      end

      File.rm!(path)
      assert [%{"uri" => "skill://a/SKILL.md"}] = get(context, "skill://a/SKILL.md")["resources"]
    end

    test "are kept for a limited number of files", %{tmp_dir: folder} do
      alias Skillbook.Book.Cache
      alias Skillbook.MCP.Digests

      book = :"book_#{System.unique_integer([:positive])}"
      Cache.new(book)
      table = Module.concat(book, SkillDigests)
      write(folder, %{"a/SKILL.md" => page("a"), "a/f.txt" => "1"})
      entry = Skillbook.View.fetch!(context(folder).view, "a")

      # The time of a change of the file cannot be set, so the test waits for it to pass.
      Process.sleep(4_000)
      assert Digests.fetch(book, entry, "f.txt", 100) == {:ok, digest("1"), 1}
      assert :ets.info(table, :size) == 1
      assert Digests.fetch(book, entry, "f.txt", 0) == {:error, :efbig}
      :ets.insert(table, for(n <- 2..20_000, do: {n, nil}))
      other = %{entry | path: Path.join(folder, "a/./SKILL.md")}
      assert Digests.fetch(book, other, "f.txt", 100) == {:ok, digest("1"), 1}
      assert :ets.info(table, :size) == 1
    end
  end

  test "a hidden skill is as none in every answer", %{tmp_dir: folder} do
    shown = %{"a/SKILL.md" => page("a"), "a/f.txt" => "f", "run/it.md" => page("run.it")}
    label = [visibility_labels: "[secret]"]

    hidden = %{
      "s/SKILL.md" => page("s", label),
      "s/f.txt" => "secret",
      "s/sub/g.txt" => "secret",
      "a/nested/SKILL.md" => page("nested", label),
      "a/nested/f.txt" => "secret",
      "run/hidden.md" => page("run.hidden", label),
      "Odd/SKILL.md" => page("Odd", label)
    }

    [with_hidden, without] = for at <- ["with", "without"], do: Path.join(folder, at)
    write(with_hidden, Map.merge(shown, hidden))
    write(without, shown)
    [one, other] = for at <- [with_hidden, without], do: context(at, id: "guest")
    everything = context(with_hidden)

    uris =
      for %{"uri" => uri} <- all(everything, "resources/list", "resources"),
          uri <- [uri, uri |> String.split("/") |> Enum.drop(-1) |> Enum.join("/")],
          uniq: true,
          do: uri

    assert "skill://s/sub/g.txt" in uris and "skill://nested" in uris

    for method <- ["skills/list", "resources/list", "resources/templates/list"] do
      # The files have times.
      strip = fn {:ok, result} ->
        String.replace(JSON.encode(result), ~r/"20\d\d-[^"]*Z"/, "T")
      end

      assert strip.(ask(one, method)) == strip.(ask(other, method))
    end

    for uri <- uris, method <- ["skills/get", "resources/read", "resources/directory/read"] do
      of = fn context -> ask(context, method, %{"uri" => uri}) end

      if match?({:error, _}, of.(other)),
        do: assert(of.(one) === of.(other)),
        else: assert(match?({:ok, _}, of.(one)))
    end
  end

  test "the server declares the extension in every revision, and serves its methods" do
    for {method, revisions} <- Server.methods(),
        method in ["skills/list", "skills/get", "resources/directory/read"],
        do: assert(length(revisions) == 3)

    {:ok, discovered} = Server.handle("server/discover", %{}, nil)

    initialized =
      for revision <- ["2025-11-25", "2025-06-18"] do
        params = %{"protocolVersion" => revision, "capabilities" => %{}}
        {:ok, result, _fields} = Server.initialize(params)
        assert result["protocolVersion"] == revision
        result
      end

    extensions = %{"io.modelcontextprotocol/skills" => %{"directoryRead" => true}}

    for result <- [discovered | initialized],
        do: assert(result["capabilities"]["extensions"] == extensions)
  end
end
