defmodule Skillbook.Package.SiteTest do
  use Skillbook.SkillsCase, async: true

  import Skillbook.Test.Packages

  alias Skillbook.Package
  alias Skillbook.Package.Archive.Pack
  alias Skillbook.Package.Item
  alias Skillbook.Support.JSON

  @moduletag :tmp_dir

  @site "https://example.com"
  @root "https://example.com/.well-known/agent-skills/"

  defp archive(files) do
    files
    |> Enum.map(fn {path, text} -> {%Item{path: path, type: :file}, text} end)
    |> Pack.tar_gz()
  end

  # Installs from a network; returns the actions or the message.
  defp install(addresses, to, options \\ []) do
    {source, options} = Keyword.pop(options, :source, @site)

    case Package.install(source, network(addresses, [to: to] ++ accept_all() ++ options)) do
      {:ok, outcomes} ->
        for outcome <- outcomes,
            do:
              if(outcome.error,
                do: Exception.message(outcome.error),
                else: {outcome.name, outcome.action}
              )

      {:error, error} ->
        Exception.message(error)
    end
  end

  test "installs one skill or all of a website, and updates by the digests of its index", %{
    tmp_dir: to
  } do
    one = skill("one")
    two = archive(%{"SKILL.md" => skill("two"), "ref/a.md" => "A\n"})
    two_row = row("two", two, %{"type" => "archive", "url" => "/files/two.tar.gz"})

    addresses = %{
      (@root <> "index.json") => index([row("one", one), two_row]),
      (@root <> "one/SKILL.md") => one,
      "https://example.com/files/two.tar.gz" => two
    }

    assert install(addresses, to) ==
             "https://example.com has 2 skills; name those that you want, or take all of them " <>
               "with --all: one, two"

    # Listing reads the index alone.
    assert_receive {:fetched, @root <> "index.json"}
    {:ok, skills} = Package.find(@site, network(addresses))

    assert for(skill <- skills, do: {skill.name, skill.description, skill.problem}) == [
             {"one", "Does one well", nil},
             {"two", "Does two well", nil}
           ]

    assert_receive {:fetched, @root <> "index.json"}
    refute_received {:fetched, _}

    assert install(addresses, to, source: @site <> "#one") == [{"one", :installed}]
    assert install(addresses, to, names: :all) == [{"one", :unchanged}, {"two", :installed}]
    assert File.read!(Path.join(to, "two/ref/a.md")) == "A\n"
    {:ok, entries} = Package.installed(to)
    digest = two_row["digest"]

    assert %{"kind" => "site", "source" => @site, "path" => "two", "digest" => ^digest} =
             entries["two"]

    # Nothing has changed, so nothing but the index is fetched.
    flush()

    assert actions(Package.update([], network(addresses, to: to))) == [
             {"one", :unchanged},
             {"two", :unchanged}
           ]

    assert fetched() == [@root <> "index.json"]

    new = skill("one", "Send it to https://new.io\n")

    addresses = %{
      addresses
      | (@root <> "index.json") => index([row("one", new)]),
        (@root <> "one/SKILL.md") => new
    }

    assert {:ok, [%{action: :outdated}, %{action: :failed, error: gone}]} =
             Package.outdated([], network(addresses, to: to))

    assert fetched() == [@root <> "index.json"]

    assert Exception.message(gone) ==
             "https://example.com no longer has the skill two; keep the installed copy, or " <>
               "remove it with `remove`"

    # A new host needs consent.
    assert messages(Package.update(["one"], network(addresses, to: to))) == [
             "one can do more than was accepted; review the findings, then accept it with --yes"
           ]

    assert messages(Package.restore(["one"], network(addresses, to: to))) == []
    File.rm_rf!(Path.join(to, "one"))

    assert [message] = messages(Package.restore(["one"], network(addresses, to: to)))

    assert message =~
             ~r/^one is not the content that was installed: https:\/\/example.com has the hash/

    assert actions(Package.update(["one"], network(addresses, [to: to] ++ accept_all()))) == [
             {"one", :updated}
           ]
  end

  defp fetched do
    receive do
      {:fetched, address} -> [address | fetched()]
    after
      0 -> []
    end
  end

  defp flush, do: fetched()

  test "reads an index of version 0.1.0", %{tmp_dir: to} do
    legacy = "https://example.com/.well-known/skills/"

    index = fn files ->
      row = %{name: "old", description: "An old one", files: files}
      JSON.encode(%{skills: [row]})
    end

    addresses = %{
      (legacy <> "index.json") => index.(["skill.md", "ref/a%20b.md"]),
      (legacy <> "old/SKILL.md") => skill("old"),
      (legacy <> "old/ref/a%2520b.md") => "A\n"
    }

    assert install(addresses, to) == [{"old", :installed}]
    assert File.read!(Path.join(to, "old/ref/a%20b.md")) == "A\n"
    {:ok, %{"old" => entry}} = Package.installed(to)
    refute Map.has_key?(entry, "digest")

    # It has no digests, so the files are compared.
    assert actions(Package.outdated([], network(addresses, to: to))) == [{"old", :current}]
    addresses = %{addresses | (legacy <> "old/SKILL.md") => skill("old", "more")}
    assert actions(Package.outdated([], network(addresses, to: to))) == [{"old", :outdated}]

    rows = [
      {["ref/a.md"], "old has no SKILL.md among its files in the index"},
      {["SKILL.md", "../../x"], "old has a file in the index whose path leads out of the skill"},
      {["SKILL.md", "/etc/passwd"],
       "old has a file in the index whose path leads out of the skill"},
      {["SKILL.md", 7], "old has a file in the index whose path leads out of the skill"},
      {["SKILL.md", "a.md", "A.md"],
       "old has a file in the index that is refused: A.md differs from a.md only in case or " <>
         "in the form of its characters, and nothing is installed"},
      {List.duplicate("SKILL.md", 1001), "old has 1001 files in the index, and may have 1000"},
      {[], "old has no list of files in the index"},
      {"SKILL.md", "old has no list of files in the index"},
      {["SKILL.md", "missing.md"],
       legacy <> "old/missing.md could not be fetched: the server returned the status 404"}
    ]

    for {files, message} <- rows do
      addresses = %{addresses | (legacy <> "index.json") => index.(files)}
      assert install(addresses, Path.join(to, "new")) == [message]
    end
  end

  test "a lie of an index is an error of its skill", %{tmp_dir: to} do
    page = skill("one")
    other = skill("two")
    at = fn fields, addresses -> {row("one", page, fields), addresses} end
    tar = archive(%{"SKILL.md" => page})
    nested = archive(%{"one/SKILL.md" => page})

    packed = fn bytes, fields ->
      row("one", bytes, Map.merge(%{"type" => "archive", "url" => "one.tar.gz"}, fields))
    end

    rows = [
      # names
      {at.(%{"name" => "One"}, %{}),
       ~s("One" has a name in the index that is not of small letters, digits and hyphens)},
      {at.(%{"name" => "../one"}, %{}),
       ~s("../one" has a name in the index that is not of small letters, digits and hyphens)},
      {at.(%{"name" => "a--b"}, %{}),
       ~s("a--b" has a name in the index that is not of small letters, digits and hyphens)},
      {at.(%{"name" => 1}, %{}), "? has no name in the index"},
      # descriptions
      {at.(%{"description" => ""}, %{}), "one has no description in the index"},
      {at.(%{"description" => ["a"]}, %{}), "one has no description in the index"},
      {at.(%{"description" => String.duplicate("a", 1025)}, %{}),
       "one has a description of more than 1024 characters in the index"},
      # types
      {at.(%{"type" => "zip"}, %{}),
       ~s(one has the type "zip" in the index; expected "skill-md" or "archive")},
      {at.(%{"type" => nil}, %{}),
       ~s(one has the type nil in the index; expected "skill-md" or "archive")},
      # digests
      {at.(%{"digest" => String.duplicate("0", 64)}, %{}),
       "one has no valid digest in the index; expected sha256: and 64 hexadecimal digits"},
      {at.(%{"digest" => "sha256:" <> String.duplicate("A", 64)}, %{}),
       "one has no valid digest in the index; expected sha256: and 64 hexadecimal digits"},
      {at.(%{"digest" => nil}, %{}),
       "one has no valid digest in the index; expected sha256: and 64 hexadecimal digits"},
      {at.(%{}, %{(@root <> "one/SKILL.md") => page <> "x"}),
       "one is not the content that the index names: expected #{row("one", page)["digest"]}, " <>
         "got #{row("one", page <> "x")["digest"]} from #{@root}one/SKILL.md; try again " <>
         "later; if it stays, tell the publisher"},
      # addresses
      {at.(%{"url" => nil}, %{}), "one has no address in the index"},
      {at.(%{"url" => ""}, %{}), "one has no address in the index"},
      {at.(%{"url" => "http://example.com/one"}, %{}),
       "one has an address in the index that is not https"},
      {at.(%{"url" => "http://127.0.0.1/one"}, %{}),
       "one has an address in the index that is not https"},
      {at.(%{"url" => "file:///etc/passwd"}, %{}),
       "one has an address in the index that cannot be used"},
      {at.(%{"url" => "ftp://example.com/one"}, %{}),
       "one has an address in the index that is not https"},
      {at.(%{"url" => "https://user:secret@example.com/one"}, %{}),
       "one has an address in the index that cannot be used"},
      {at.(%{"url" => "https://exa mple.com/one"}, %{}),
       "one has an address in the index that cannot be used"},
      {at.(%{"url" => "one/missing.md"}, %{}),
       @root <> "one/missing.md could not be fetched: the server returned the status 404"},
      # content
      {{row("one", other), %{(@root <> "one/SKILL.md") => other}},
       ~s(one has another name in its SKILL.md, "two"; tell its publisher)},
      {{row("one", "# No fields\n"), %{(@root <> "one/SKILL.md") => "# No fields\n"}},
       "one has no description in its SKILL.md"},
      {{packed.(nested, %{}), %{(@root <> "one.tar.gz") => nested}},
       @root <> "one.tar.gz has no SKILL.md at its top"},
      {{packed.(tar, %{"url" => "one.rar"}), %{(@root <> "one.rar") => tar}},
       @root <> "one.rar is neither a .tar.gz nor a .zip archive"},
      {{packed.(tar, %{}),
        %{(@root <> "one.tar.gz") => {200, [{"content-type", "application/zip"}], tar}}},
       @root <> "one.tar.gz is not a complete zip archive in one part; zip64 is not supported"}
    ]

    for {{row, addresses}, message} <- rows do
      addresses =
        %{(@root <> "index.json") => index([row]), (@root <> "one/SKILL.md") => page}
        |> Map.merge(addresses)

      assert install(addresses, to) == [message]
      assert File.ls!(to) == []
    end

    # All rows of a name are refused, so that no order of rows decides.
    addresses = %{
      (@root <> "index.json") => index([row("one", page), row("one", other)]),
      (@root <> "one/SKILL.md") => page
    }

    assert install(addresses, to, names: ["one"]) == ["one is in the index 2 times"]

    # A broken row leaves the others usable.
    addresses = %{addresses | (@root <> "index.json") => index([7, row("one", page)])}
    assert install(addresses, to, names: ["one"]) == [{"one", :installed}]
  end

  # Whether a site of the public internet may name the host, and one of a private network may.
  for {host, public?} <- [
        {"cdn.example.com", true},
        {"8.8.8.8", true},
        {"100.63.0.1", true},
        {"172.32.0.1", true},
        {"[2606:4700::1111]", true},
        {"[64:ff9b::808:808]", true},
        {"localhost", false},
        {"a.localhost", false},
        {"LOCALHOST.", false},
        {"router", false},
        {"printer.local", false},
        {"metadata.google.internal", false},
        {"127.0.0.1", false},
        {"127.1", false},
        {"2130706433", false},
        {"0x7f.0.0.1", false},
        {"0177.0.0.1", false},
        {"0.0.0.0", false},
        {"10.1.2.3", false},
        {"100.64.0.1", false},
        {"169.254.169.254", false},
        {"172.16.0.1", false},
        {"172.31.255.255", false},
        {"192.168.1.1", false},
        {"198.18.0.1", false},
        {"224.0.0.1", false},
        {"255.255.255.255", false},
        {"[::1]", false},
        {"[::]", false},
        {"[::ffff:10.0.0.1]", false},
        {"[64:ff9b::a00:1]", false},
        {"[2002:a00:1::1]", false},
        {"[fd00::1]", false},
        {"[fe80::1]", false},
        {"[ff02::1]", false}
      ] do
    test "a site #{if(public?, do: "may", else: "must not")} name #{host}", %{tmp_dir: to} do
      url = "https://#{unquote(host)}/one"
      page = skill("one")
      reason = "has an address in the index that is in a private network"
      named = %{(@root <> "index.json") => index([row("one", page, %{"url" => url})])}
      moved = %{named | (@root <> "index.json") => index([row("one", page, %{"url" => "/one"})])}
      moved = Map.put(moved, "https://example.com/one", {302, [{"location", url}], ""})

      if unquote(public?) do
        for addresses <- [named, moved],
            do: refute(inspect(install(addresses, to)) =~ "private network")
      else
        assert install(named, to, names: ["one"]) == ["one " <> reason]

        assert install(moved, to, names: ["one"]) ==
                 ["https://example.com/one redirects to an address in a private network"]
      end
    end
  end

  test "a skill may be on another host, over https", %{tmp_dir: to} do
    page = skill("one")
    moved = fn to -> {302, [{"location", to}], ""} end
    installed = [{"one", :installed}]

    refused = " redirects to an address that is not https or cannot be used"

    rows = [
      {"one/SKILL.md", %{(@root <> "one/SKILL.md") => page}, installed},
      {"./one/../one/SKILL.md", %{(@root <> "one/SKILL.md") => page}, installed},
      {"/a/b", %{"https://example.com/a/b" => page}, installed},
      {"//cdn.example.com/one", %{"https://cdn.example.com/one" => page}, installed},
      {"https://cdn.example.com/one?v=1", %{"https://cdn.example.com/one?v=1" => page},
       installed},
      {"/one#part", %{"https://example.com/one" => page}, installed},
      {"/one",
       %{
         "https://example.com/one" => moved.("https://cdn.example.com/one"),
         "https://cdn.example.com/one" => page
       }, installed},
      {"/one", %{"https://example.com/one" => moved.("http://example.com/one")},
       ["https://example.com/one" <> refused]},
      {"/one", %{"https://example.com/one" => moved.("http://127.0.0.1/one")},
       ["https://example.com/one" <> refused]},
      {"/one", %{"https://example.com/one" => moved.("file:///etc/passwd")},
       ["https://example.com/one" <> refused]},
      {"/one", %{"https://example.com/one" => moved.("/one")},
       ["https://example.com/one could not be fetched: there are more than 5 redirects"]}
    ]

    for {{url, addresses, expected}, number} <- Enum.with_index(rows) do
      addresses =
        Map.put(addresses, @root <> "index.json", index([row("one", page, %{"url" => url})]))

      assert install(addresses, Path.join(to, "#{number}")) == expected
    end
  end

  test "an archive is as safe as any other", %{tmp_dir: to} do
    page = {%Item{path: "SKILL.md", type: :file}, skill("one")}

    rows = [
      {[{%Item{path: "../x", type: :file}, "x"}],
       "../x leads out of the archive, and nothing is installed"},
      {[{%Item{path: "/etc/x", type: :file}, "x"}],
       "/etc/x has an absolute name, and nothing is installed"},
      {[{%Item{path: "a/.git/config", type: :file}, "x"}],
       "one/a/.git/config belongs to a git repository, and nothing is installed"},
      {for(n <- 1..1000, do: {%Item{path: "#{n}.md", type: :file}, ""}),
       "one has 1001 files, and may have 1000"}
    ]

    for {files, message} <- rows do
      bytes = Pack.tar_gz([page | files])

      addresses = %{
        (@root <> "index.json") =>
          index([row("one", bytes, %{"type" => "archive", "url" => "one.tgz"})]),
        (@root <> "one.tgz") => bytes
      }

      assert [got] = install(addresses, to)
      assert got == message
      assert File.ls!(to) == []
    end
  end

  test "a site without a readable index is an error", %{tmp_dir: to} do
    url = @root <> "index.json"
    schema = "https://schemas.agentskills.io/discovery/9.0.0/schema.json"
    many = JSON.encode(%{skills: List.duplicate(%{}, 50_001)})
    moved = fn to -> {301, [{"location", to}], ""} end

    rows = [
      {%{},
       "https://example.com publishes no skills: it has no " <>
         "/.well-known/agent-skills/index.json; for a git repository write its whole " <>
         "address, for example https://example.com/skills.git"},
      {%{url => {500, [], "broken"}},
       url <> " could not be fetched: the server returned the status 500"},
      {%{url => {401, [], "{}"}},
       url <>
         " could not be fetched: the server returned the status 401, since it answers only " <>
         "those that it knows; a book answers everyone with `skillbook serve --publish PROFILE`"},
      {%{url => {200, [{"content-type", "text/html"}], "<!doctype html><p>Hello"}},
       url <> " is not an index of skills: expected JSON, got a page of HTML"},
      {%{url => "{"},
       url <>
         " is not an index of skills: line 1, column 1: EOF while parsing an object"},
      {%{url => "[]"},
       url <> " is not an index of skills: expected an object with a list `skills`"},
      {%{url => ~s({"skills": {}})},
       url <> " is not an index of skills: expected an object with a list `skills`"},
      {%{url => ~s({"$schema": "#{schema}", "skills": []})},
       url <>
         " has an unknown format: expected the schema " <>
         "https://schemas.agentskills.io/discovery/0.2.0/schema.json, got: \"#{schema}\""},
      {%{url => ~s({"$schema": null, "skills": []})},
       url <>
         " has an unknown format: expected the schema " <>
         "https://schemas.agentskills.io/discovery/0.2.0/schema.json, got: nil"},
      {%{url => many}, url <> " has 50001 skills, and may have 50000"},
      {%{url => fn -> {200, [], :binary.copy(" ", 33 * 1024 * 1024)} end},
       url <>
         " could not be fetched: example.com:443: the response has more than 33554432 bytes"},
      {%{url => index([])},
       "https://example.com has no skill: a folder with a SKILL.md; name the folder below it " <>
         "that has them with --path"},
      # redirects of an index stay on its host
      {%{url => moved.("https://www.example.com/index.json")},
       url <>
         " redirects to another host, www.example.com; if you trust that host, install from " <>
         "https://www.example.com"},
      {%{url => moved.("https://example.com:8443/index.json")},
       url <>
         " redirects to another host, example.com:8443; if you trust that host, install from " <>
         "https://example.com:8443"},
      {%{url => moved.("http://example.com/index.json")},
       url <> " redirects to an address that is not https or cannot be used"},
      {%{url => moved.(url)}, url <> " could not be fetched: there are more than 5 redirects"},
      {%{
         url => moved.("/a.json"),
         "https://example.com/a.json" => index([row("one", skill("one"))]),
         "https://example.com/one/SKILL.md" => skill("one")
       }, [{"one", :installed}]}
    ]

    for {addresses, expected} <- rows, do: assert(install(addresses, to) == expected)
  end

  test "tells a website from other sources", %{tmp_dir: to} do
    page = skill("one")

    addresses =
      for base <- ["https://example.com", "https://example.com/docs", "http://127.0.0.1:4004"],
          {path, body} <- [{"index.json", index([row("one", page)])}, {"one/SKILL.md", page}],
          into: %{},
          do: {base <> "/.well-known/agent-skills/" <> path, body}

    rows = [
      {"https://example.com", "https://example.com"},
      {"https://EXAMPLE.com/", "https://example.com"},
      {"https://example.com:443", "https://example.com"},
      {"https://example.com/.well-known/agent-skills",
       "https://example.com/.well-known/agent-skills"},
      {"https://example.com/docs/.well-known/agent-skills/index.json",
       "https://example.com/docs/.well-known/agent-skills"},
      {"http://127.0.0.1:4004", "http://127.0.0.1:4004"}
    ]

    for {{source, place}, number} <- Enum.with_index(rows) do
      to = Path.join(to, "#{number}")
      assert install(addresses, to, source: source) == [{"one", :installed}]
      assert {:ok, %{"one" => %{"source" => ^place}}} = Package.installed(to)
    end

    refused = [
      {"http://example.com",
       "http://example.com is not an https address; write " <>
         "https://example.com"},
      {"https://ann:secret@example.com",
       "https://example.com is given with a user name or a query; leave them out"},
      {"https://example.com?token=secret",
       "https://example.com is given with a user name or a query; leave them out"}
    ]

    for {source, message} <- refused,
        do: assert(install(addresses, to, source: source) == message)

    assert install(addresses, to, source: "https://example.com#one", names: ["one"]) ==
             "https://example.com is given with a name after # and with other names"

    assert install(addresses, to, source: "https://example.com#two") ==
             "https://example.com has no skill \"two\"; it has one"
  end

  test "searches the skills of several websites, and tells which cannot be read" do
    rows = fn names ->
      index(for {name, text} <- names, do: row("#{name}", text, %{"description" => text}))
    end

    addresses = %{
      "https://a.com/.well-known/agent-skills/index.json" =>
        rows.(
          "git-workflow": "Commit and branch as the team does",
          tea: "Boil water",
          "bad--name": "Commit badly"
        ),
      "https://b.com/.well-known/agent-skills/index.json" =>
        rows.(git: "Write commits", rebase: "Move commits of a branch"),
      "https://c.com/.well-known/agent-skills/index.json" => "<html>"
    }

    sources = for host <- ~w(a b c), do: "https://#{host}.com"
    {found, errors} = Package.search(sources, "commit branch", network(addresses))

    assert found |> Enum.map(fn {source, skill} -> {source, skill.name} end) |> Enum.sort() == [
             {"https://a.com", "git-workflow"},
             {"https://b.com", "git"},
             {"https://b.com", "rebase"}
           ]

    assert Enum.map(errors, &Exception.message/1) == [
             "https://c.com/.well-known/agent-skills/index.json is not an index of skills: " <>
               "expected JSON, got a page of HTML"
           ]

    assert {[{"https://b.com", %{name: "git"}}], []} =
             Package.search(["https://b.com"], "git", network(addresses, limit: 1))

    assert {[], []} = Package.search(["https://b.com"], "tea", network(addresses))
    assert {[], []} = Package.search([], "tea", network(addresses))

    for options <- [[limit: 0], [limit: 1_001], [limit: "1"], [colour: 1]],
        do: assert_raise(Skillbook.OptionError, fn -> Package.search([], "tea", options) end)

    assert_raise Skillbook.OptionError, fn -> Package.search([1], "tea") end
    assert_raise ArgumentError, fn -> Package.search("https://b.com", "tea") end
  end

  test "an index of any bytes, and any changes of a valid one, are read or refused", %{
    tmp_dir: to
  } do
    page = skill("one")
    tar = archive(%{"SKILL.md" => page, "a.md" => "A"})

    valid =
      index([
        row("one", page),
        row("two", tar, %{"type" => "archive", "url" => "/two.tar.gz"})
      ])

    values =
      [nil, true, 0, -1, 1.0e300, "", "a", "../a", [], [1], %{}, %{"a" => []}] ++
        ["https://", "//x.com/a", "?", "#", "http:a", "%", "//", ":", "https://[::1"]

    for seed <- 1..400 do
      :rand.seed(:exsss, {seed, 5, 6})

      text =
        case Enum.random(1..3) do
          1 -> :rand.bytes(Enum.random(0..200))
          2 -> flip(valid)
          3 -> valid |> JSON.decode() |> elem(1) |> change(values) |> JSON.encode()
        end

      answers = fn
        @root <> "index.json" -> text
        address -> Enum.random([page, tar, {404, [], ""}, {302, [{"location", address}], ""}])
      end

      options = network(answers, [to: to, names: :all] ++ accept_all())

      case Package.install(@site, options) do
        {:ok, outcomes} ->
          for %{error: error} <- outcomes,
              error != nil,
              do: assert(%Skillbook.PackageError{} = error)

        {:error, error} ->
          assert %Skillbook.PackageError{} = error
          assert Exception.message(error) |> String.valid?()
      end

      assert File.ls!(to) -- ["one", "two", "skills.lock.json"] == [], "seed #{seed}"
      refute_received {:fetched, "http://" <> _}
    end
  end

  defp flip(text) do
    at = Enum.random(0..(byte_size(text) - 1))
    {before, <<_, rest::binary>>} = :erlang.split_binary(text, at)
    before <> <<Enum.random(0..255)>> <> rest
  end

  # Replaces one value somewhere.
  defp change(%{} = map, values) when map_size(map) > 0 do
    key = map |> Map.keys() |> Enum.random()

    if Enum.random(1..3) == 1,
      do: Map.put(map, key, Enum.random(values)),
      else: Map.update!(map, key, &change(&1, values))
  end

  defp change([_ | _] = list, values) do
    at = Enum.random(0..(length(list) - 1))
    List.update_at(list, at, &change(&1, values))
  end

  defp change(_value, values), do: Enum.random(values)
end
