defmodule Skillbook.Web.PublishedTest do
  use Skillbook.SkillsCase, async: true

  import Skillbook.Test.Packages
  import Skillbook.Test.Requests, except: [request: 3]

  alias Skillbook.Package
  alias Skillbook.Package.Archive.{Pack, Tar}
  alias Skillbook.Package.Item
  alias Skillbook.Support.JSON

  @moduletag :tmp_dir

  @root "/.well-known/agent-skills/"

  defp start(folder, files, options) do
    write(folder, files)
    {profiles, options} = Keyword.pop(options, :profiles, [[id: "default", grants: []]])
    book = book(sources: [folder], builtins: false, watch: false, profiles: profiles)
    {book, web(book, options)}
  end

  defp get(web, path, options \\ []), do: call(web, "GET", @root <> path, options)

  defp rows(web, options \\ []) do
    assert %{status: 200, body: body} = get(web, "index.json", options)
    assert {:ok, %{"$schema" => schema, "skills" => rows}} = JSON.decode(body)
    assert schema == "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
    rows
  end

  defp names(web, options), do: for(row <- rows(web, options), do: row["name"])

  test "publishes an index with a page or an archive for each entry", %{tmp_dir: folder} do
    {_book, web} =
      start(
        folder,
        %{
          "one/SKILL.md" => skill("one"),
          "two/SKILL.md" => skill("two"),
          "two/scripts/run.sh" => "ls\n",
          "w/late.md" => page("w.late", title: "Late")
        },
        publish: "default"
      )

    index = get(web, "index.json")
    assert header(index, "content-type") == "application/json"
    assert {:ok, %{"skills" => [one, two, late]}} = JSON.decode(index.body)

    assert %{
             "name" => "one",
             "type" => "skill-md",
             "description" => "Does one well",
             "url" => "one/SKILL.md"
           } = one

    assert %{"name" => "two", "type" => "archive", "url" => "two.tar.gz"} = two
    assert %{"name" => "w-late", "type" => "skill-md", "description" => "Does w.late"} = late

    for row <- [one, two, late] do
      artifact = get(web, row["url"])
      hash = :sha256 |> :crypto.hash(artifact.body) |> Base.encode16(case: :lower)
      assert row["digest"] == "sha256:" <> hash
      assert header(artifact, "etag") == ~s("sha256:#{hash}")
    end

    assert header(get(web, "one/SKILL.md"), "content-type") == "text/markdown; charset=utf-8"
    archive = get(web, "two.tar.gz")
    assert header(archive, "content-type") == "application/gzip"
    assert {:ok, items} = Tar.read(archive.body, "two.tar.gz")
    assert Enum.map(items, & &1.path) == ["SKILL.md", "scripts/run.sh"]

    # Pages and archives exist under one address each.
    for path <-
          ~w(two/SKILL.md one.tar.gz two/scripts/run.sh one one/ two.zip late/SKILL.md) ++
            ["", "index.JSON", "one%2FSKILL.md", "w.late/SKILL.md", "one/skill.md"] do
      assert %{status: 404, body: "Not found.\n"} = get(web, path)
    end
  end

  test "answers GET, HEAD and conditional requests", %{tmp_dir: folder} do
    {_book, web} = start(folder, %{"one/SKILL.md" => skill("one")}, publish: "default")

    for path <- ["index.json", "one/SKILL.md"] do
      full = get(web, path)
      etag = header(full, "etag")
      head = call(web, "HEAD", @root <> path)
      assert {head.status, head.body} == {200, ""}
      assert header(head, "content-length") == to_string(byte_size(full.body))
      assert header(head, "etag") == etag

      for {given, status} <- [
            {etag, 304},
            {"W/" <> etag, 304},
            {~s("a", #{etag}), 304},
            {"*", 304},
            {~s("a"), 200},
            {String.trim(etag, "\""), 200}
          ] do
        assert %{status: ^status} = got = get(web, path, headers: [{"if-none-match", given}])
        assert header(got, "etag") == etag
        assert got.body == if(status == 304, do: "", else: full.body)
      end

      for method <- ~w(POST PATCH DELETE) do
        got = call(web, method, @root <> path)
        assert {got.status, header(got, "allow")} == {405, "GET, HEAD, PUT"}
      end

      assert call(web, "PUT", @root <> path).status == 401
    end
  end

  test "what everyone reads is for caches and other websites, what a caller reads is not", %{
    tmp_dir: folder
  } do
    {book, public} = start(folder, %{"one/SKILL.md" => skill("one")}, publish: "default")
    private = web(book)
    open = web(book, authenticate: :none, profile: "default")

    headers = ["cache-control", "access-control-allow-origin", "cross-origin-resource-policy"]
    seen = fn response -> Enum.map(headers, &header(response, &1)) end

    for path <- ["index.json", "one/SKILL.md", "missing"] do
      kept = if path == "missing", do: "no-store", else: "private, no-cache"

      for response <- [get(public, path), get(public, path, as: "default")] do
        assert seen.(response) == ["public, max-age=60", "*", "cross-origin"]
        assert header(response, "vary") == nil
      end

      # Without authentication, a page of another website must not read a server on loopback.
      for response <- [get(private, path, as: "default"), get(open, path)] do
        assert seen.(response) == [kept, nil, "same-origin"]
        if path != "missing", do: assert(header(response, "vary") == "authorization, cookie")
      end

      assert get(private, path).status == 401
    end
  end

  test "shows the entries that the profile sees, and nothing of the others", %{tmp_dir: folder} do
    files = %{
      "one/SKILL.md" => skill("one"),
      "secret/SKILL.md" =>
        String.replace(skill("secret"), "---\n#", "visibility_labels: [board]\n---\n#"),
      "secret/notes.md" => "Secret\n",
      "team/SKILL.md" => skill("team")
    }

    profiles = [
      [id: "default", grants: []],
      [id: "board", grants: ["board"]],
      [id: "team", grants: :all, skills: ["team"]]
    ]

    {book, public} = start(folder, files, publish: "default", profiles: profiles)
    web = web(book)
    assert names(public, []) == ["one", "team"]
    assert names(web, as: "default") == ["one", "team"]
    assert names(web, as: "board") == ["one", "secret", "team"]
    assert names(web, as: "team") == ["team"]
    assert get(web, "secret.tar.gz", as: "board").status == 200

    for path <- ["secret.tar.gz", "secret/SKILL.md", "secret/notes.md"] do
      missing = String.replace(path, "secret", "absent")
      assert get(public, path) == get(public, missing)

      for options <- [[as: "default"], [as: "team"]],
          do: assert(get(web, path, options) == get(web, missing, options))
    end

    # The hidden entry changes nothing for those who do not see it.
    without = Map.drop(files, ["secret/SKILL.md", "secret/notes.md"])
    {_book, other} = start(folder <> "-2", without, publish: "default", profiles: profiles)
    assert get(other, "index.json") == get(public, "index.json")
  end

  test "the index follows the catalog and the files of skills", %{tmp_dir: folder} do
    files = %{"one/SKILL.md" => skill("one"), "one/a.txt" => "1"}
    {book, web} = start(folder, files, publish: "default")
    [one] = rows(web)
    assert rows(web) == [one]
    write(folder, %{"one/SKILL.md" => skill("one", "More\n"), "two/SKILL.md" => skill("two")})
    :ok = Skillbook.reload(book)
    assert [new, %{"name" => "two"}] = rows(web)
    assert new["digest"] != one["digest"]

    # No generation counts the content of other files.
    write(folder, %{"one/a.txt" => "22"})
    Process.sleep(1_100)
    assert [newest, _two] = rows(web)
    assert newest["digest"] != new["digest"]
    {:ok, items} = Tar.read(get(web, "one.tar.gz").body, "one.tar.gz")
    assert List.last(items).content == "22"

    # A skill that could not be installed is left out.
    write(folder, %{"one/a.txt" => "1", "two/a:b.txt" => "1"})
    :ok = Skillbook.reload(book)
    log = ExUnit.CaptureLog.capture_log(fn -> assert names(web, []) == ["one"] end)

    assert log =~
             "two is not published: a:b.txt has a name that Windows does not allow, so the " <>
               "skill could not be installed"

    File.rm!(Path.join(folder, "two/a:b.txt"))
    :ok = Skillbook.reload(book)

    # A file that cannot be read leaves its skill out, and the others in.
    File.rm!(Path.join(folder, "one/a.txt"))
    File.ln_s!("/etc/passwd", Path.join(folder, "one/a.txt"))
    Process.sleep(1_100)

    log = ExUnit.CaptureLog.capture_log(fn -> assert names(web, []) == ["two"] end)
    assert log =~ "one is not published: "
    assert get(web, "one.tar.gz").status == 404
  end

  test "a file that becomes a link, a pipe, a folder or huge leaves its skill out, at once", %{
    tmp_dir: folder
  } do
    file = Path.join(folder, "one/a.txt")

    huge = fn ->
      {:ok, io} = :file.open(file, [:write, :raw])
      {:ok, _} = :file.position(io, 1_000_000_000_000)
      :ok = :file.truncate(io)
      :file.close(io)
    end

    for {change, reason} <- [
          {fn -> {_, 0} = System.cmd("mkfifo", [file]) end, "a.txt: invalid argument"},
          {fn -> File.ln_s!("/etc/passwd", file) end, "a.txt is a symbolic link"},
          {fn -> File.ln_s!("/dev/zero", file) end, "a.txt is a symbolic link"},
          {fn -> File.mkdir!(file) end, "a.txt: illegal operation on a directory"},
          {huge, "a.txt: file too large"}
        ] do
      File.rm_rf!(folder)

      files = %{
        "one/SKILL.md" => skill("one"),
        "one/a.txt" => "1",
        "two/SKILL.md" => skill("two")
      }

      {_book, web} = start(folder, files, publish: "default")
      File.rm!(file)
      change.()

      {time, log} =
        :timer.tc(fn ->
          ExUnit.CaptureLog.capture_log(fn -> assert names(web, []) == ["two"] end)
        end)

      assert log =~ "one is not published: " <> reason
      assert get(web, "one.tar.gz").status == 404
      assert time < 5_000_000
    end
  end

  test "conditions and ranges tell nothing of hidden entries", %{tmp_dir: folder} do
    files = %{
      "one/SKILL.md" => skill("one"),
      "secret/SKILL.md" =>
        String.replace(skill("secret"), "---\n#", "visibility_labels: [board]\n---\n#")
    }

    {book, web} =
      start(folder, files,
        publish: "default",
        profiles: [[id: "default", grants: []], [id: "board", grants: ["board"]]]
      )

    etag = header(get(web(book), "secret/SKILL.md", as: "board"), "etag")
    index = header(get(web(book), "index.json", as: "board"), "etag")

    for {name, value} <- [
          {"if-none-match", etag},
          {"if-none-match", "*"},
          {"if-match", etag},
          {"if-range", etag},
          {"range", "bytes=0-9"},
          {"host", "evil.example"},
          {"x-forwarded-host", "evil.example"},
          {"x-original-url", @root <> "one/SKILL.md"},
          {"x-http-method-override", "PUT"}
        ] do
      options = [headers: [{name, value}]]
      assert get(web, "secret/SKILL.md", options) == get(web, "absent/SKILL.md", options)
      shown = get(web, "one/SKILL.md", options)
      # Ranges are not served, so the whole page comes.
      if name == "range", do: assert({shown.status, shown.body} == {200, files["one/SKILL.md"]})
    end

    assert get(web, "index.json", headers: [{"if-none-match", index}]).status == 200

    for path <- [
          "one/../one/SKILL.md",
          "one/./SKILL.md",
          "..%2Fskills",
          "%2e%2e/skills",
          "one%00/SKILL.md",
          "one/SKILL.md;a",
          "one\\SKILL.md",
          "one/SKILL.md%20"
        ] do
      assert {path, get(web, path).status in [400, 404]} == {path, true}
    end
  end

  test "requests at once make one index", %{tmp_dir: folder} do
    {_book, web} = start(folder, %{"one/SKILL.md" => skill("one")}, publish: "default")

    assert 1..50
           |> Enum.map(fn _ -> Task.async(fn -> get(web, "index.json").body end) end)
           |> Task.await_many(:infinity)
           |> Enum.uniq()
           |> length() == 1
  end

  test "names are those of the format, and each entry has one", %{tmp_dir: folder} do
    rows = [
      {["email.send"], ["email-send"]},
      {["email.send", "email-send"], ["email-send", "email-send-baf96db4164b"]},
      {["a.b-c", "a-b.c"], ["a-b-c-ab8bb2e3578f", "a-b-c-fb187eed737a"]}
    ]

    for {entries, expected} <- rows do
      root = Path.join(folder, Enum.join(entries, "+"))

      files =
        for name <- entries, into: %{} do
          if name =~ ".",
            do: {"#{name}/x.md", page(name)},
            else: {"#{name}/SKILL.md", skill(name)}
        end

      {_book, web} = start(root, files, publish: "default")
      assert names(web, []) == expected
    end
  end

  test "an archive's bytes depend on its files alone" do
    files = [
      {%Item{path: "SKILL.md", type: :file}, skill("one")},
      {%Item{path: "scripts/run.sh", type: :file, executable: true}, "ls\n"},
      {%Item{path: String.duplicate("long/", 30) <> "name.md", type: :file}, ""},
      {%Item{path: String.duplicate("é", 120) <> ".md", type: :file},
       String.duplicate("x", 70_000)}
    ]

    bytes = Pack.tar_gz(files)
    assert Pack.tar_gz(Enum.reverse(files)) == bytes
    assert Pack.tar_gz(for {item, text} <- files, do: {%{item | size: 7}, text}) == bytes

    assert :sha256 |> :crypto.hash(bytes) |> Base.encode16(case: :lower) ==
             "c5edc2aa89788d14f1133ab7179b988d76f7e06dc011e4aa745b90719e174453"

    assert {:ok, items} = Tar.read(bytes, "a.tar.gz")

    assert for(item <- items, do: {item.path, item.executable, item.content}) ==
             files
             |> Enum.map(fn {item, text} -> {item.path, item.executable, text} end)
             |> Enum.sort()

    assert :zlib.gunzip(bytes) |> byte_size() |> rem(512) == 0
  end

  test "any files come back from their archive" do
    for seed <- 1..200 do
      :rand.seed(:exsss, {seed, 3, 4})

      files =
        for _ <- 1..Enum.random(1..6), uniq: true do
          part = fn ->
            Enum.random(["a", "é", "文書", "SKILL.md"]) |> String.duplicate(Enum.random(1..40))
          end

          path = Enum.map_join(1..Enum.random(1..4), "/", fn _ -> part.() end)

          size =
            Enum.random([0, 1, 511, 512, 513, 65_535, 65_536, 131_070, Enum.random(0..9_000)])

          executable = Enum.random([true, false])
          {%Item{path: path, type: :file, executable: executable}, :rand.bytes(size)}
        end
        |> Enum.uniq_by(fn {item, _} -> item.path end)

      bytes = Pack.tar_gz(Enum.shuffle(files))
      assert bytes == Pack.tar_gz(Enum.shuffle(files))
      assert {:ok, items} = Tar.read(bytes, "a.tar.gz")

      assert for(item <- items, do: {item.path, item.executable, item.content}) ==
               files
               |> Enum.map(fn {item, text} -> {item.path, item.executable, text} end)
               |> Enum.sort(),
             "seed #{seed}"
    end
  end

  test "other programs unpack an archive", %{tmp_dir: folder} do
    long = String.duplicate("long/", 60) <> "name.md"

    files = [
      {%Item{path: "SKILL.md", type: :file}, skill("one")},
      {%Item{path: "scripts/run.sh", type: :file, executable: true}, "ls\n"},
      {%Item{path: long, type: :file}, "Long\n"}
    ]

    File.write!(Path.join(folder, "a.tar.gz"), Pack.tar_gz(files))
    {"", 0} = System.cmd("tar", ["xzf", "a.tar.gz"], cd: folder, stderr_to_stdout: true)
    assert File.read!(Path.join(folder, long)) == "Long\n"
    assert File.read!(Path.join(folder, "SKILL.md")) == skill("one")
    assert Bitwise.band(File.stat!(Path.join(folder, "scripts/run.sh")).mode, 0o111) != 0
  end

  test "a folder on any web server has the same bytes", %{tmp_dir: folder} do
    files = %{"one/SKILL.md" => skill("one"), "two/SKILL.md" => skill("two"), "two/a.md" => "A"}
    {book, web} = start(Path.join(folder, "skills"), files, publish: "default")
    out = Path.join(folder, "out")
    publish = fn options -> Package.publish(book, out, [profile: "default"] ++ options) end

    assert actions(publish.([])) == [{"one", :published}, {"two", :published}]
    assert actions(publish.([])) == [{"one", :unchanged}, {"two", :unchanged}]

    for path <- ["index.json", "one/SKILL.md", "two.tar.gz"],
        do: assert(File.read!(Path.join(out, @root <> path)) == get(web, path).body)

    # Files of the last index are replaced and deleted; others are left alone.
    write(out, %{".well-known/agent-skills/own.txt" => "own"})
    assert actions(publish.(names: ["one"])) == [{"one", :unchanged}, {"two", :removed}]
    assert Enum.sort(File.ls!(Path.join(out, @root))) == ["index.json", "one", "own.txt"]
    write(out, %{".well-known/agent-skills/two.tar.gz" => "own"})

    assert messages(publish.([])) == [
             Path.join(out, @root) <>
               "/two.tar.gz already exists with other content; publish into another folder, " <>
               "or replace it with --force"
           ]

    assert actions(publish.(force: true)) == [{"one", :unchanged}, {"two", :published}]
    write(out, %{".well-known/agent-skills/index.json" => "{}"})

    assert actions(publish.([])) ==
             Path.join(out, @root) <>
               "/index.json is not an index that was written by `publish`; publish into " <>
               "another folder, or replace it with --force"

    assert actions(publish.(names: ["nothing"])) =~ ~s("nothing")
  end

  # Others may write to the folder of a web server.
  test "publishing into a folder deletes and reads nothing beside it", %{tmp_dir: folder} do
    source = Path.join(folder, "source")
    target = Path.join(folder, "target")
    root = Path.join(target, ".well-known/agent-skills")
    elsewhere = Path.join(folder, "elsewhere")
    write(source, %{"one/SKILL.md" => skill("one"), "two/SKILL.md" => skill("two")})
    write(elsewhere, %{"SKILL.md" => "mine"})
    assert {:ok, [_one, _two]} = Package.publish(view(source), target)

    # The skill is gone from the source, and its folder is a link.
    File.rm_rf!(Path.join(source, "two"))
    File.rm_rf!(Path.join(root, "two"))
    File.ln_s!(elsewhere, Path.join(root, "two"))
    # The other one is a pipe.
    File.rm!(Path.join(root, "one/SKILL.md"))
    {_, 0} = System.cmd("mkfifo", [Path.join(root, "one/SKILL.md")])
    publish = Task.async(fn -> Package.publish(view(source), target) end)
    assert {:ok, outcomes} = Task.await(publish, :infinity)
    assert [%{name: "one"}, %{name: "two", action: :removed}] = outcomes
    assert File.read!(Path.join(elsewhere, "SKILL.md")) == "mine"
    assert File.read!(Path.join(root, "one/SKILL.md")) == skill("one")
  end

  test "installs from a running book", %{tmp_dir: folder} do
    files = %{
      "one/SKILL.md" => skill("one"),
      "two/SKILL.md" => skill("two"),
      "two/a.md" => String.duplicate("A large file.\n", 100_000),
      "secret/SKILL.md" =>
        String.replace(skill("secret"), "---\n#", "visibility_labels: [board]\n---\n#")
    }

    source = write(Path.join(folder, "skills"), files)
    profiles = [[id: "public"], [id: "board", grants: ["board"]]]
    book = book(sources: [source], builtins: false, profiles: profiles)
    options = [book: book, publish: "public", port: 0, authenticate: fn _request -> :error end]
    server = start_supervised!({Skillbook.Web.Server, options})
    %{url: url} = Skillbook.Web.Server.info(server)
    to = Path.join(folder, "to")

    assert actions(Package.install(url, [to: to, names: :all] ++ accept_all())) == [
             {"one", :installed},
             {"two", :installed}
           ]

    assert File.read!(Path.join(to, "two/a.md")) == files["two/a.md"]

    # A request for the head alone has the headers of the whole.
    for path <- ["index.json", "one/SKILL.md", "two.tar.gz"] do
      [full, head] =
        for method <- [:get, :head] do
          request = [method: method, url: url <> @root <> path]
          {:ok, response} = Skillbook.HTTP.request(request, compressed: false)
          response
        end

      request = [
        url: url <> @root <> path,
        headers: [{"if-none-match", hd(full.headers["etag"])}]
      ]

      assert {:ok, %{status: 304, body: ""}} = Skillbook.HTTP.request(request)
      assert {head.status, head.body} == {200, ""}
      assert Map.delete(head.headers, "date") == Map.delete(full.headers, "date")
      assert head.headers["content-length"] == [to_string(byte_size(full.body))]
    end

    assert actions(Package.outdated([], to: to)) == [{"one", :current}, {"two", :current}]
    write(source, %{"one/SKILL.md" => skill("one", "More\n")})
    :ok = Skillbook.reload(book)
    assert actions(Package.outdated([], to: to)) == [{"one", :outdated}, {"two", :current}]
    assert actions(Package.update([], to: to)) == [{"one", :updated}, {"two", :unchanged}]

    assert actions(Package.install(url <> "#secret", [to: to] ++ accept_all())) ==
             "#{url} has no skill \"secret\"; it has one, two"
  end

  # The program `skills`, a peer that reads the same format.
  defp skills!(args, folder) do
    programs =
      System.get_env("SKILLBOOK_MCP") ||
        raise "SKILLBOOK_MCP is not set. To install the programs and set it: " <>
                "bin/mcp-for-tests run mix test"

    node = Path.join(programs, "node_modules/.bin/node")
    program = Path.join(programs, "node_modules/skills/bin/cli.mjs")
    env = [{"HOME", folder}, {"DO_NOT_TRACK", "1"}, {"DISABLE_TELEMETRY", "1"}]
    options = [cd: folder, env: env, stderr_to_stdout: true]
    assert {_output, 0} = System.cmd(node, [program | args], options)
  end

  test "another program installs from a running book, and updates", %{tmp_dir: folder} do
    long = String.duplicate("a-folder-with-a-rather-long-name/", 4) <> "name.md"

    files = %{
      "one/SKILL.md" => skill("one"),
      "two/SKILL.md" => skill("two"),
      "two/ref/a.md" => "A\n",
      "two/#{long}" => "Long\n",
      "two/image.png" => <<0, 255, 13, 10>>,
      "w/late.md" => page("w.late")
    }

    source = write(Path.join(folder, "skills"), files)
    book = book(sources: [source], builtins: false, profiles: [[id: "public"]])
    options = [book: book, publish: "public", port: 0, authenticate: fn _request -> :error end]
    server = start_supervised!({Skillbook.Web.Server, options})
    %{url: url} = Skillbook.Web.Server.info(server)
    home = write(Path.join(folder, "home"), %{"a.txt" => ""})
    there = Path.join(home, ".claude/skills")

    skills!(["add", url, "--skill", "*", "--agent", "claude-code", "--yes"], home)
    assert Enum.sort(File.ls!(there)) == ["one", "two", "w-late"]

    for path <- ["two/ref/a.md", "two/#{long}", "two/image.png"],
        do: assert(File.read!(Path.join(there, path)) == files[path])

    {:ok, exported} = Package.export(book, "w.late", Path.join(folder, "out"), profile: "public")
    page = File.read!(Path.join(exported, "SKILL.md"))
    assert File.read!(Path.join(there, "w-late/SKILL.md")) == page

    # It records the digests of the index.
    {:ok, %{"skills" => locked}} =
      home |> Path.join("skills-lock.json") |> File.read!() |> JSON.decode()

    {:ok, %{body: index}} = Skillbook.HTTP.request(url <> @root <> "index.json")
    {:ok, %{"skills" => rows}} = JSON.decode(index)

    for row <- rows, do: assert(locked[row["name"]]["wellKnownDigest"] == row["digest"])

    write(source, %{"one/SKILL.md" => skill("one", "More\n")})
    :ok = Skillbook.reload(book)
    skills!(["update", "--yes"], home)
    assert File.read!(Path.join(there, "one/SKILL.md")) =~ "More"
  end
end
