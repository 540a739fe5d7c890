defmodule Skillbook.MCP.ResourcesTest do
  # Entries and files as resources: which URIs lead where, and what they answer.
  use Skillbook.MCPCase, async: true

  alias Skillbook.MCP.Resources

  @moduletag :tmp_dir

  @png <<137, 80, 78, 71, 0>>

  # Outside the source, and with a name that a path could lead to.
  defp folder(%{tmp_dir: folder}) do
    write(folder, %{"outside.txt" => "outside", "other/SKILL.md" => page("other")})
    source = Path.join(folder, "source")

    write(source, %{
      "a/SKILL.md" => page("a", title: "The A"),
      "a/text.md" => "Text\n",
      "a/sub/deep/b c.json" => "{}",
      "a/sub/ü.txt" => "ü",
      "a/logo.png" => @png,
      "a/bom.csv" => "\uFEFFa,b\n",
      "a/turned.sh" => "echo \u202E\n",
      "a/latin.txt" => <<"caf", 233>>,
      "a/Makefile" => "all:\n",
      "a/empty" => "",
      "a/.hidden" => "hidden",
      "a/.git/config" => "hidden",
      "a/per%cent.md" => "percent",
      "a/back\\slash.md" => "backslash",
      "b/SKILL.md" => page("b"),
      "b/own.md" => "b's",
      "notes/meeting notes.md" =>
        "---\ntitle: Meeting notes\ninclude_in_prompt: true\n---\nOn Monday.\n"
    })

    File.ln_s!("text.md", Path.join(source, "a/link.md"))
    File.ln_s!("../../../outside.txt", Path.join(source, "a/out.txt"))
    File.ln_s!("sub", Path.join(source, "a/linked"))
    {_, 0} = System.cmd("mkfifo", [Path.join(source, "a/pipe")])
    source
  end

  describe "resources/read" do
    test "returns texts as text and other bytes as they are", context do
      context = context(folder(context))

      # {path, type, field, content}
      for {uri, type, field, content} <- [
            {"skill://a/SKILL.md", "text/markdown", "text", page("a", title: "The A")},
            {"skill://a/text.md", "text/markdown", "text", "Text\n"},
            {"skill://a/sub/deep/b%20c.json", "application/json", "text", "{}"},
            {"skill://a/sub/%C3%BC.txt", "text/plain", "text", "ü"},
            {"skill://a/logo.png", "image/png", "blob", Base.encode64(@png)},
            {"skill://a/latin.txt", "text/plain", "blob", Base.encode64(<<"caf", 233>>)},
            {"skill://a/turned.sh", "text/x-shellscript", "blob", Base.encode64("echo \u202E\n")},
            {"skill://a/Makefile", "text/plain", "text", "all:\n"},
            {"skill://a/empty", "text/plain", "text", ""},
            {"skill://a/per%25cent.md", "text/markdown", "text", "percent"},
            {"skill://b/own.md", "text/markdown", "text", "b's"}
          ] do
        assert at!(context, "resources/read", uri) == %{
                 "contents" => [%{"uri" => uri, "mimeType" => type, field => content}]
               }
      end
    end

    test "answers one URI for each file, however a client writes it", context do
      context = context(folder(context))

      for uri <- ["skill://a/sub/deep/b c.json", "skill://a/s%75b/deep/b%20c.json"] do
        assert %{"contents" => [%{"uri" => "skill://a/sub/deep/b%20c.json"}]} =
                 at!(context, "resources/read", uri)
      end
    end

    test "leads nowhere else", context do
      context = context(folder(context))

      for uri <- [
            "skill://a",
            "skill://a/",
            "skill://a/sub",
            "skill://a/sub/",
            "skill://a//text.md",
            "skill://a/./text.md",
            "skill://a/sub/../text.md",
            "skill://a/..",
            "skill://a/../b/own.md",
            "skill://a/../../outside.txt",
            "skill://a/%2e%2e/%2e%2e/outside.txt",
            "skill://a/..%2f..%2foutside.txt",
            "skill://a/..%5c..%5coutside.txt",
            "skill://a/sub%2Fdeep%2Fb%20c.json",
            "skill://a/sub%2F%C3%BC.txt",
            "skill://a%2Ftext.md",
            "skill://a%2F..%2Fb/own.md",
            "skill://a/%2Fetc%2Fpasswd",
            "skill:///a/text.md",
            "skill:////etc/passwd",
            "skill://a/text.md%00",
            "skill://a/text.md%0A",
            "skill://a/text.md?",
            "skill://a/text.md?raw",
            "skill://a/text.md#x",
            "skill://a/TEXT.MD",
            "skill://a/text.md/",
            "skill://a/text.md/x",
            "skill://a/%text.md",
            "skill://a/%FF",
            "skill://a/per%cent.md",
            "skill://a/back%5Cslash.md",
            "skill://a/.hidden",
            "skill://a/.git/config",
            "skill://a/link.md",
            "skill://a/out.txt",
            "skill://a/linked/%C3%BC.txt",
            "skill://a/pipe",
            "skill://a/own.md",
            "skill://b/text.md",
            "skill://a/missing.md",
            "skill://missing/SKILL.md",
            "skill://A/SKILL.md",
            "Skill://a/SKILL.md",
            "skill:a/SKILL.md",
            "skill://user@a/SKILL.md",
            "skill://a:80/SKILL.md",
            "note://a",
            "note://a/text.md",
            "file:///etc/passwd",
            "file://a/text.md",
            "/etc/passwd",
            "https://example.com/",
            ""
          ] do
        message = "no resource is served at #{Skillbook.MCP.Error.quoted(uri)}"
        assert error_at(context, "resources/read", uri) == {-32_602, message}

        assert {:error, %{data: %{"uri" => ^uri}}} =
                 ask(context, "resources/read", %{"uri" => uri})
      end
    end

    test "has the code of its revision for a resource that does not exist", context do
      folder = folder(context)

      for {revision, code} <- [
            {"2026-07-28", -32_602},
            {"2025-11-25", -32_002},
            {"2025-06-18", -32_002}
          ] do
        context = context(folder, [grants: :all], revision)
        assert {^code, _} = error_at(context, "resources/read", "skill://missing/SKILL.md")
      end
    end

    test "refuses a file of more than 16 MiB", context do
      folder = folder(context)
      File.write!(Path.join(folder, "b/large.bin"), :binary.copy("x", 16 * 1024 * 1024 + 1))
      File.write!(Path.join(folder, "b/fits.bin"), :binary.copy(<<0>>, 16 * 1024 * 1024))
      context = context(folder)

      assert error_at(context, "resources/read", "skill://b/large.bin") ==
               {-32_602, "the file at \"skill://b/large.bin\" has more than 16777216 bytes"}

      assert byte_size(bytes(at!(context, "resources/read", "skill://b/fits.bin"))) ==
               16 * 1024 * 1024
    end

    test "refuses a file that became a link or is gone since the catalog was made", context do
      folder = folder(context)
      context = context(folder)
      path = Path.join(folder, "a/text.md")

      for change <- [
            fn -> File.ln_s!("../../outside.txt", path) end,
            fn -> File.mkdir!(path) end,
            fn -> :ok end
          ] do
        File.rm_rf!(path)
        change.()
        assert {-32_602, _} = error_at(context, "resources/read", "skill://a/text.md")
      end

      # A folder on the way became a link.
      File.rename!(Path.join(folder, "a/sub"), Path.join(folder, "../moved"))
      File.ln_s!("../../moved", Path.join(folder, "a/sub"))
      assert {-32_602, _} = error_at(context, "resources/read", "skill://a/sub/%C3%BC.txt")
    end

    test "has notes, whose hidden characters are shown", context do
      folder = folder(context)

      write(folder, %{
        "notes/odd.md" => "---\ntitle: Odd\ninclude_in_prompt: true\n---\na\u202Eb\n"
      })

      notes = [path: Path.join(folder, "notes"), kind: :notes]
      {:ok, catalog} = Skillbook.Catalog.load([notes])
      view = Skillbook.View.all(catalog)
      context = %{context(folder) | view: view}
      rows = all(context, "resources/list", "resources")
      notes = for %{"uri" => "note://" <> _ = uri} = row <- rows, do: {uri, row["title"]}
      assert [{_, _}, {_, _}] = notes

      for {uri, _title} <- notes do
        assert %{"contents" => [%{"mimeType" => "text/markdown", "text" => text}]} =
                 at!(context, "resources/read", uri)

        assert text =~ "On Monday." or text =~ "a\\u{202E}b"
        assert {-32_602, _} = error_at(context, "skills/get", uri)
        assert {-32_602, _} = error_at(context, "resources/directory/read", uri)
      end
    end
  end

  describe "resources/list" do
    test "has every page and every file that can be read, with its type and size", context do
      context = context(folder(context))
      rows = all(context, "resources/list", "resources")
      uris = Enum.map(rows, & &1["uri"])

      assert Enum.filter(uris, &String.starts_with?(&1, "skill://a/")) == [
               "skill://a/SKILL.md",
               "skill://a/Makefile",
               "skill://a/bom.csv",
               "skill://a/empty",
               "skill://a/latin.txt",
               "skill://a/logo.png",
               "skill://a/per%25cent.md",
               "skill://a/sub/deep/b%20c.json",
               "skill://a/sub/%C3%BC.txt",
               "skill://a/text.md",
               "skill://a/turned.sh"
             ]

      for %{"uri" => uri, "size" => size} <- rows,
          do: assert(byte_size(bytes(at!(context, "resources/read", uri))) == size)

      assert hd(rows) == %{
               "uri" => "skill://a/SKILL.md",
               "name" => "a",
               "title" => "The A",
               "description" => "Does a",
               "mimeType" => "text/markdown",
               "size" => byte_size(page("a", title: "The A")),
               "annotations" => %{"audience" => ["user", "assistant"], "priority" => 0.8}
             }

      file = Enum.find(rows, &(&1["uri"] == "skill://a/sub/deep/b%20c.json"))

      assert %{
               "name" => "b c.json",
               "title" => "a/sub/deep/b c.json",
               "mimeType" => "application/json",
               "size" => 2,
               "annotations" => %{
                 "audience" => ["user", "assistant"],
                 "priority" => 0.3,
                 "lastModified" => time
               }
             } = file

      assert {:ok, time, 0} = DateTime.from_iso8601(time)
      assert DateTime.diff(DateTime.utc_now(), time) in 0..600

      # An unknown extension has no type in a list, where the content is not known.
      refute is_map_key(Enum.find(rows, &(&1["name"] == "Makefile")), "mimeType")
    end

    test "shortens a title without end", %{tmp_dir: folder} do
      write(folder, %{"a/SKILL.md" => page("a", title: String.duplicate("ü", 100_000))})
      assert [%{"title" => title}] = all(context(folder), "resources/list", "resources")
      assert title == String.duplicate("ü", 1_024)
    end

    test "says for whom an entry is, and how important", %{tmp_dir: folder} do
      write(folder, %{
        "a/SKILL.md" => page("a", "user-invocable": false),
        "b/SKILL.md" => page("b", include_in_prompt: false),
        "c/SKILL.md" => page("c", "disable-model-invocation": true)
      })

      context = context(folder)

      assert for(row <- all(context, "resources/list", "resources"), do: row["annotations"]) == [
               %{"audience" => ["assistant"], "priority" => 0.8},
               %{"audience" => ["user", "assistant"], "priority" => 0.5}
             ]

      assert [%{"annotations" => %{"audience" => ["user"]}}] =
               at!(context, "resources/directory/read", "skill://c")["resources"]
    end

    test "has pages of 200 rows, also within one skill", %{tmp_dir: folder} do
      write(folder, Map.new(1..450, &{"big/f#{&1}.txt", "#{&1}"}))
      write(folder, %{"big/SKILL.md" => page("big"), "z/SKILL.md" => page("z")})
      context = context(folder)
      pages = pages(context, "resources/list")
      assert Enum.map(pages, &length(&1["resources"])) == [200, 200, 52]
      uris = for %{"resources" => rows} <- pages, row <- rows, do: row["uri"]
      assert length(Enum.uniq(uris)) == 452
      assert List.first(uris) == "skill://big/SKILL.md"
      assert List.last(uris) == "skill://z/SKILL.md"

      [%{"nextCursor" => cursor} | _] = pages

      for forged <- ["", "[]", "[1,2]", "{}", "[\"big\"]"],
          cursor = Base.url_encode64("resources\n" <> forged),
          do: assert({:error, _} = ask(context, "resources/list", %{"cursor" => cursor}))

      # The entry is gone when its second page is asked for.
      File.rm_rf!(Path.join(folder, "big"))

      assert {:ok, %{"resources" => [%{"uri" => "skill://z/SKILL.md"}]}} =
               ask(context(folder), "resources/list", %{"cursor" => cursor})
    end

    test "ends a page that is full where the list ends", %{tmp_dir: folder} do
      write(folder, Map.new(1..199, &{"big/f#{&1}.txt", "#{&1}"}))
      write(folder, %{"big/SKILL.md" => page("big")})
      assert {:ok, result} = ask(context(folder), "resources/list")
      assert length(result["resources"]) == 200
      refute is_map_key(result, "nextCursor")
    end
  end

  test "resources/templates/list has the template of files, whose skills are completed",
       context do
    context = context(folder(context))

    assert {:ok, %{"resourceTemplates" => [%{"uriTemplate" => template}]}} =
             ask(context, "resources/templates/list")

    assert template == "skill://{+skill}/{+file}"
    assert Resources.complete(template, "skill", "", context) == {:ok, ["a", "b"]}
    assert Resources.complete(template, "skill", "b", context) == {:ok, ["b"]}
    assert Resources.complete(template, "file", "S", context) == {:ok, ["SKILL.md"]}
    assert Resources.complete(template, "other", "", context) == :error
    assert Resources.complete("skill://{x}", "skill", "", context) == :error
  end

  describe "resources/directory/read" do
    test "has what is directly in a folder", context do
      context = context(folder(context))
      list = fn uri -> at!(context, "resources/directory/read", uri)["resources"] end
      names = fn uri -> for row <- list.(uri), do: {row["name"], row["mimeType"]} end

      assert names.("skill://a/sub") == [
               {"ü.txt", "text/plain"},
               {"deep", "inode/directory"}
             ]

      assert [%{"uri" => "skill://a/sub/deep/b%20c.json"}] = list.("skill://a/sub/deep")

      assert for(row <- list.("skill://a"), do: row["uri"]) == [
               "skill://a/Makefile",
               "skill://a/SKILL.md",
               "skill://a/bom.csv",
               "skill://a/empty",
               "skill://a/latin.txt",
               "skill://a/logo.png",
               "skill://a/per%25cent.md",
               "skill://a/sub",
               "skill://a/text.md",
               "skill://a/turned.sh"
             ]

      # Rows of files are those of the list.
      rows = all(context, "resources/list", "resources")
      for row <- list.("skill://a"), row["name"] != "sub", do: assert(row in rows)
    end

    test "has the folder in front of a name that the format does not allow", %{tmp_dir: folder} do
      write(folder, %{"run/it.md" => page("run.it"), "Odd/SKILL.md" => page("Odd One")})
      context = context(folder)

      for {prefix, name} <- [{"skill://run.it", "run-it"}, {"skill://Odd%20One", "odd-one"}] do
        uri = prefix <> "/" <> name

        assert at!(context, "resources/directory/read", prefix) == %{
                 "resources" => [
                   %{"uri" => uri, "name" => name, "mimeType" => "inode/directory"}
                 ]
               }

        assert [%{"uri" => page}] = at!(context, "resources/directory/read", uri)["resources"]
        assert page == uri <> "/SKILL.md"
      end
    end

    test "refuses files, and folders that are none", context do
      context = context(folder(context))

      for {uri, message} <- [
            {"skill://a/SKILL.md", "\"skill://a/SKILL.md\" is a file, and not a directory"},
            {"skill://a/text.md", "\"skill://a/text.md\" is a file, and not a directory"},
            {"skill://a/su", "no directory is served at \"skill://a/su\""},
            {"skill://a/sub/", "no directory is served at \"skill://a/sub/\""},
            {"skill://a/.git", "no directory is served at \"skill://a/.git\""},
            {"skill://missing", "no directory is served at \"skill://missing\""},
            {"skill://", "no directory is served at \"skill://\""}
          ] do
        assert error_at(context, "resources/directory/read", uri) == {-32_602, message}
      end
    end

    test "has pages of 200 rows", %{tmp_dir: folder} do
      write(folder, Map.new(1..450, &{"big/in/f#{&1}.txt", "#{&1}"}))
      write(folder, %{"big/SKILL.md" => page("big")})
      context = context(folder)
      pages = pages(context, "resources/directory/read", %{"uri" => "skill://big/in"})
      assert Enum.map(pages, &length(&1["resources"])) == [200, 200, 50]
      uris = for %{"resources" => rows} <- pages, row <- rows, do: row["uri"]
      assert length(Enum.uniq(uris)) == 450
    end
  end

  test "changes/4 tells what differs for one caller", %{tmp_dir: folder} do
    profile = [id: "guest"]

    write(folder, %{
      "a/SKILL.md" => page("a"),
      "a/f.txt" => "f",
      "b/SKILL.md" => page("b"),
      "s/SKILL.md" => page("s", visibility_labels: "[secret]")
    })

    old = context(folder, profile)

    watched = [
      "skill://a/SKILL.md",
      "skill://a/f.txt",
      "skill://b/SKILL.md",
      "skill://s/SKILL.md"
    ]

    # {change, names of the change, list, updated}
    rows = [
      {fn -> :ok end, ["a", "b", "s"], false, []},
      {fn -> write(folder, %{"a/SKILL.md" => page("a", [], "New text\n")}) end, ["a"], false,
       ["skill://a/SKILL.md", "skill://a/f.txt"]},
      {fn -> write(folder, %{"b/SKILL.md" => page("b", description: "New")}) end, ["b"], true,
       ["skill://a/SKILL.md", "skill://a/f.txt", "skill://b/SKILL.md"]},
      {fn -> write(folder, %{"s/SKILL.md" => page("s", visibility_labels: "[secret, b]")}) end,
       ["s"], false, ["skill://a/SKILL.md", "skill://a/f.txt", "skill://b/SKILL.md"]},
      {fn -> File.rm!(Path.join(folder, "a/f.txt")) end, ["a"], true,
       ["skill://a/SKILL.md", "skill://a/f.txt", "skill://b/SKILL.md"]},
      {fn -> write(folder, %{"c/SKILL.md" => page("c")}) end, ["c"], true,
       ["skill://a/SKILL.md", "skill://a/f.txt", "skill://b/SKILL.md"]},
      {fn -> write(folder, %{"s/SKILL.md" => page("s")}) end, ["s"], true, watched}
    ]

    for {change, names, list, updated} <- rows do
      change.()
      new = context(folder, profile)
      assert Resources.changes(old, new, names, watched) == %{list: list, updated: updated}
    end
  end
end
