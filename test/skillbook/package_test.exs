defmodule Skillbook.PackageTest do
  use Skillbook.SkillsCase, async: true

  doctest Skillbook.Package
  doctest Skillbook.PackageError

  alias Skillbook.{Catalog, Lint, Package, View}

  @moduletag :tmp_dir

  @yes [accept: &__MODULE__.yes/1]
  def yes(_question), do: true

  defp skill(name, body \\ "# Page\n"),
    do: "---\nname: #{name}\ndescription: Does #{name} well\n---\n#{body}"

  defp git!(folder, args) do
    settings = [
      "-c",
      "user.name=a",
      "-c",
      "user.email=a@example.com",
      "-c",
      "commit.gpgsign=false"
    ]

    {output, 0} = System.cmd("git", settings ++ args, cd: folder, stderr_to_stdout: true)
    String.trim(output)
  end

  # A repository with two skills, and a folder to install to.
  defp repository(folder) do
    root = Path.join(folder, "origin.git")

    write(root, %{
      "skills/one/SKILL.md" => skill("one"),
      "skills/one/run.sh" => "echo 1\n",
      ".claude/skills/two/SKILL.md" => skill("two")
    })

    # A copy of a skill, for another program.
    write(root, %{".agents/long/skills/two/SKILL.md" => skill("two")})
    git!(root, ["init", "-q", "-b", "main"])
    {root, commit(root), Path.join(folder, "to")}
  end

  defp commit(root) do
    git!(root, ["add", "-A"])
    git!(root, ["commit", "-q", "-m", "x"])
    git!(root, ["rev-parse", "HEAD"])
  end

  defp actions({:ok, outcomes}), do: for(outcome <- outcomes, do: {outcome.name, outcome.action})
  defp actions({:error, error}), do: Exception.message(error)

  defp messages({:ok, outcomes}),
    do: for(%{error: error} <- outcomes, error, do: Exception.message(error))

  test "installs, updates, restores and removes the skills of a git repository",
       %{tmp_dir: folder} do
    {root, first, to} = repository(folder)
    to_it = [to: to] ++ @yes

    assert {:ok, [two, one]} = Package.find(root)
    assert %{name: "two", path: ".claude/skills/two"} = two
    assert %{name: "one", path: "skills/one"} = one

    assert actions(Package.install(root, to_it)) =~
             "has 2 skills; name those that you want, or take all of them with --all: one, two"

    assert actions(Package.install(root, to_it ++ [names: ["oen"]])) =~
             ~s(has no skill "oen"; it has one, two)

    assert actions(Package.install(root, to_it ++ [names: :all])) == [
             {"one", :installed},
             {"two", :installed}
           ]

    assert {:ok, %{"one" => %{"commit" => ^first, "path" => "skills/one"}}} =
             Package.installed(to)

    assert actions(Package.install(root, to_it ++ [names: ["one"]])) == [{"one", :unchanged}]
    assert actions(Package.outdated([], to: to)) == [{"one", :current}, {"two", :current}]

    git!(root, ["tag", "-a", "v1", "-m", "x"])
    write(root, %{"skills/one/SKILL.md" => skill("one", "Call https://new.io\n")})
    second = commit(root)
    assert actions(Package.outdated([], to: to)) == [{"one", :outdated}, {"two", :outdated}]

    # The new host was not accepted, so the installed copy stays.
    assert {:ok, [one, %{name: "two", action: :unchanged, commit: ^second}]} =
             Package.update([], to: to)

    assert Exception.message(one.error) ==
             "one can do more than was accepted; review the findings, then accept it with --yes"

    assert [%{kind: :host, what: "new.io"}] = one.question.grown

    assert one.question.diffs == [
             {"SKILL.md",
              [
                "@@ -2,4 +2,4 @@",
                " name: one",
                " description: Does one well",
                " ---",
                "-# Page",
                "+Call https://new.io"
              ]}
           ]

    assert File.read!(Path.join(to, "one/SKILL.md")) == skill("one")

    assert actions(Package.update(["one"], to_it)) == [{"one", :updated}]
    assert File.read!(Path.join(to, "one/SKILL.md")) =~ "new.io"

    by_hand =
      "one was changed by hand (mine.md added); keep a copy of it, then replace it with --force"

    write(to, %{"one/mine.md" => "mine"})

    for change <- [&Package.update/2, &Package.remove/2, &Package.restore/2],
        do: assert(messages(change.(["one"], to_it)) == [by_hand])

    assert File.read!(Path.join(to, "one/mine.md")) == "mine"
    assert actions(Package.restore(["one"], to_it ++ [force: true])) == [{"one", :restored}]
    refute File.exists?(Path.join(to, "one/mine.md"))

    # An older revision, by tag and by commit
    assert actions(Package.install(root, to_it ++ [names: ["one"], tag: "v1"])) == [
             {"one", :updated}
           ]

    assert {:ok, %{"one" => %{"commit" => ^first, "tag" => "v1"}}} = Package.installed(to)

    assert actions(Package.install(root, to_it ++ [names: ["one"], commit: second])) == [
             {"one", :updated}
           ]

    assert actions(Package.outdated(["one"], to: to)) == [{"one", :pinned}]

    File.rm_rf!(Path.join(to, "one"))
    assert actions(Package.restore([], to: to)) == [{"one", :restored}, {"two", :unchanged}]

    assert actions(Package.remove(["one", "two"], to: to)) == [
             {"one", :removed},
             {"two", :removed}
           ]

    assert File.ls!(to) == ["skills.lock.json"]

    assert actions(Package.remove(["one"], to: to)) ==
             "one is not installed in #{to}; no skill is installed there"
  end

  test "rejects revisions that git would read as options, and unsupported protocols",
       %{tmp_dir: folder} do
    {root, _, to} = repository(folder)

    for {source, options, text} <- [
          {root, [branch: "--upload-pack=x"], "is not the name of a branch"},
          {root, [tag: "a..b"], "is not the name of a tag"},
          {root, [commit: "main"], "is not a commit; write all its 40 hexadecimal digits"},
          {root, [branch: "main", tag: "v1"],
           "has several revisions: --branch and --tag; write one of them"},
          {root, [branch: "none"], "has no branch none"},
          {"ext::sh -c id", [], "is not a supported address"},
          {"http://example.com/a.git", [], "is not a supported address"},
          {"-u@host:path", [], "is not the address of a git repository"},
          {"u@-oProxyCommand=x:path", [], "is not a supported address"},
          {Path.join(folder, "nothing"), [], "does not exist; name a folder"},
          {"mix.exs", [], "is neither a folder nor a supported archive"},
          {"lib", [tag: "x"], "could not be fetched: git says: fatal"}
        ] do
      assert {:error, error} = Package.install(source, [to: to] ++ options ++ @yes)
      assert Exception.message(error) =~ text
    end
  end

  test "ignores hooks, filters, links and submodules of a repository", %{tmp_dir: folder} do
    {root, _, to} = repository(folder)
    marker = Path.join(folder, "ran")

    for hook <- ["post-checkout", "post-merge", "reference-transaction"],
        do: write(root, %{".git/hooks/#{hook}" => "#!/bin/sh\ntouch #{marker}\n"})

    for hook <- File.ls!(Path.join(root, ".git/hooks")),
        do: File.chmod!(Path.join(root, ".git/hooks/#{hook}"), 0o755)

    write(root, %{
      ".gitattributes" => "* filter=bad export-ignore\n",
      ".gitmodules" => "[submodule \"x\"]\npath = x\nurl = ext::sh -c id\n"
    })

    File.rm(marker)
    File.ln_s!("/etc", Path.join(root, "skills/one/etc"))
    commit(root)
    File.rm(marker)

    assert messages(Package.install(root, [to: to, names: ["one"]] ++ @yes)) == [
             "skills/one/etc is a link, and links are not installed; " <>
               "ask its author for a copy of the file"
           ]

    assert actions(Package.install(root, [to: to, names: ["two"]] ++ @yes)) == [
             {"two", :installed}
           ]

    refute File.exists?(marker)
  end

  test "does not replace a folder that was not installed, or a skill of another source", %{
    tmp_dir: folder
  } do
    from = write(Path.join(folder, "from"), %{"one/SKILL.md" => skill("one")})
    to = write(Path.join(folder, "to"), %{"one/own.md" => "own"})
    assert [message] = messages(Package.install(from, [to: to] ++ @yes))

    assert message ==
             "#{to}/one already exists and was not installed; " <>
               "move it away, or replace it with --force"

    assert actions(Package.install(from, [to: to, force: true] ++ @yes)) == [{"one", :installed}]
    assert File.ls!(Path.join(to, "one")) == ["SKILL.md"]

    other = write(Path.join(folder, "other"), %{"one/SKILL.md" => skill("one", "other")})

    assert messages(Package.install(other, [to: to] ++ @yes)) == [
             "one is installed from #{from}; remove that first, or replace it with --force"
           ]
  end

  test "restores only the content that was installed", %{tmp_dir: folder} do
    from = write(Path.join(folder, "from"), %{"one/SKILL.md" => skill("one")})
    to = Path.join(folder, "to")
    {:ok, _} = Package.install(from, [to: to] ++ @yes)
    write(from, %{"one/SKILL.md" => skill("one", "other")})
    File.rm_rf!(Path.join(to, "one"))
    assert [message] = messages(Package.restore([], to: to))

    assert message =~ ~r/^one is not the content that was installed: /
    assert message =~ ~r/; review the change and accept it with `update`$/

    refute File.exists?(Path.join(to, "one"))
  end

  test "refuses broken skills, skills that fail the strict check, and skills not accepted", %{
    tmp_dir: folder
  } do
    from =
      write(Path.join(folder, "from"), %{
        "bare/SKILL.md" => "# No fields\n",
        "Odd Name/SKILL.md" => skill("Odd Name"),
        "fine/SKILL.md" => skill("fine")
      })

    to = Path.join(folder, "to")

    assert messages(Package.install(from, to: to, names: ["fine"])) == [
             "fine was not accepted; review the findings, then accept it with --yes"
           ]

    assert {:ok, outcomes} = Package.install(from, [to: to, names: :all, strict: true] ++ @yes)

    assert Enum.map(outcomes, &{&1.name, &1.action}) == [
             {"bare", :failed},
             {"fine", :installed},
             {"odd-name", :failed}
           ]

    assert hd(messages({:ok, outcomes})) == "bare has no description in its SKILL.md"

    assert actions(Package.install(from, [to: to, names: ["odd-name"]] ++ @yes)) == [
             {"odd-name", :installed}
           ]

    assert Enum.sort(File.ls!(to)) == ["fine", "odd-name", "skills.lock.json"]
  end

  test "refuses a lock file that is not valid", %{tmp_dir: to} do
    for {text, reason} <- [
          {"{", "line 1"},
          {"[]", "expected an object with `version` and `skills`"},
          {~s({"version": 2, "skills": {}}), "expected version 1, got: 2"},
          {~s({"version": 1, "skills": {"../a": {}}}), ~s(the entry "../a" is not valid)}
        ] do
      write(to, %{"skills.lock.json" => text})
      assert {:error, %{kind: :lock} = error} = Package.outdated([], to: to)
      assert Exception.message(error) =~ reason
    end
  end

  test "reads installed skills with low trust and a label", %{tmp_dir: folder} do
    from = write(Path.join(folder, "from"), %{"one/SKILL.md" => skill("one")})
    to = Path.join(folder, "to")
    {:ok, _} = Package.install(from, [to: to] ++ @yes)
    {:ok, catalog} = Catalog.load([{:installed, to}])

    assert %{trust: :low, labels: ["imported"], source: "installed"} =
             View.fetch!(View.all(catalog), "one")

    {:ok, view} = View.new(catalog, id: "guest")
    assert View.count(view) == 0
    {:ok, catalog} = Catalog.load([{:installed, to, name: "vendor", labels: []}])
    assert %{trust: :low, labels: [], source: "vendor"} = View.fetch!(View.all(catalog), "one")
  end

  test "exports valid skills, and replaces other content only with force", %{tmp_dir: folder} do
    {:ok, catalog} =
      Catalog.load([
        "test/support/fixtures/skills",
        [path: "test/support/fixtures/notes", kind: :notes]
      ])

    view = View.all(catalog)

    for name <- ["pdf-processing", "email.send", "shopping", "family/dinner"] do
      {:ok, path} = Package.export(view, name, folder)

      assert for(
               one <- Lint.run([path], strict: true),
               one.code == :spec_violation,
               do: one.message
             ) == []

      assert {:ok, ^path} = Package.export(view, name, folder)
      File.write!(Path.join(path, "more.md"), "more")
      assert {:error, %{kind: :exists}} = Package.export(view, name, folder)
      assert {:ok, ^path} = Package.export(view, name, folder, force: true)
      refute File.exists?(Path.join(path, "more.md"))
    end

    assert {:error, %Skillbook.UnknownSkillError{}} = Package.export(view, "nothing", folder)

    assert Enum.sort(File.ls!(folder)) == [
             "email-send",
             "family-dinner",
             "pdf-processing",
             "shopping"
           ]
  end

  test "exports and imports a schedule, which does not run", %{tmp_dir: folder} do
    view = Skillbook.view(book(store: ":memory:", builtins: false))

    digest = %{
      title: "Digest",
      description: "Sums up",
      content: "Sum up.",
      timezone: "Europe/Berlin"
    }

    {:ok, entry} = Skillbook.Store.create(view, Map.put(digest, :schedule, "0 8 * * 1"))
    {:ok, path} = Package.export(Skillbook.view(view.book), entry.name, folder)

    assert for(
             one <- Lint.run([path], strict: true),
             one.code == :spec_violation,
             do: one.message
           ) == []

    other = book(store: ":memory:", builtins: false)

    for {schedule, expected} <- [
          {"0 8 * * 1", {"0 8 * * 1", "Europe/Berlin"}},
          # A schedule that would run too often is stored but never runs; an invalid one is left
          # out.
          {"* * * * *", {"* * * * *", "Europe/Berlin"}},
          {"daily", {nil, nil}}
        ] do
      page = Path.join(path, "SKILL.md")

      text =
        page |> File.read!() |> String.replace(~r/schedule: .*/, "schedule: #{inspect(schedule)}")

      File.write!(page, text)

      {:ok, [_]} =
        Package.into_store(Skillbook.view(other), path, [labels: [], force: true] ++ @yes)

      {:ok, imported} = Skillbook.Store.fetch(Skillbook.view(other), "digest")
      assert {imported.schedule, imported.timezone} == expected
      assert Skillbook.Scheduler.registered(other) == %{}
    end
  end

  test "locks the folder, and ignores the lock of a dead process", %{tmp_dir: folder} do
    from =
      write(
        Path.join(folder, "from"),
        for(n <- 1..6, into: %{}, do: {"s#{n}/SKILL.md", skill("s#{n}")})
      )

    to =
      write(Path.join(folder, "to"), %{
        ".skillbook-turn-999999999-1-0.1.0-1" => "",
        ".skillbook-stage-9-9/new/a" => "x"
      })

    1..6
    |> Task.async_stream(
      &Package.install(from, [to: to, names: ["s#{&1}"], lock_timeout: 60_000] ++ @yes),
      max_concurrency: 6,
      timeout: 120_000
    )
    |> Enum.each(fn {:ok, result} -> assert [{_, :installed}] = actions(result) end)

    {:ok, entries} = Package.installed(to)
    assert map_size(entries) == 6
    assert Enum.reject(File.ls!(to), &String.starts_with?(&1, "s")) == []

    # The lock of a living process blocks.
    erlang =
      self() |> :erlang.pid_to_list() |> to_string() |> String.trim("<") |> String.trim(">")

    own = "#{System.pid()}-#{start()}-#{erlang}-1"
    write(to, %{".skillbook-turn-#{own}" => ""})

    assert {:error, %{kind: :busy}} =
             Package.install(from, [to: to, names: ["s1"], lock_timeout: 0] ++ @yes)
  end

  test "still takes :patience, the old name of :lock_timeout", %{tmp_dir: folder} do
    warning =
      ExUnit.CaptureIO.capture_io(:stderr, fn ->
        assert Package.outdated([], to: folder, patience: 1) == {:ok, []}
      end)

    assert warning =~ ":patience of Skillbook.Package is deprecated; write :lock_timeout"
  end

  defp start do
    case File.read("/proc/self/stat") do
      {:ok, _} ->
        "/proc/#{System.pid()}/stat"
        |> File.read!()
        |> String.split(")")
        |> List.last()
        |> String.split()
        |> Enum.at(19)

      _ ->
        System.cmd("ps", ["-o", "lstart=", "-p", System.pid()])
        |> elem(0)
        |> String.split()
        |> Enum.join("_")
        |> String.replace(":", "_")
    end
  end

  @tag timeout: 600_000
  test "a killed process leaves the old or the new skill", %{tmp_dir: folder} do
    files = fn version ->
      for(n <- 1..30, into: %{"SKILL.md" => skill("one", version)}, do: {"f#{n}.md", version})
    end

    for version <- ["a", "b"],
        {path, text} <- files.(version),
        do: write(Path.join(folder, version), %{"one/#{path}" => text})

    to = Path.join(folder, "to")

    script = """
    for _ <- Stream.cycle([1]), from <- ["a", "b"] do
      options = [to: #{inspect(to)}, force: true, accept: fn _ -> true end]
      {:ok, [%{action: action}]} =
        Skillbook.Package.install(Path.join(#{inspect(folder)}, from), options)
      IO.puts(action)
    end
    """

    paths =
      for path <- :code.get_path(),
          String.contains?(to_string(path), "skillbook"),
          do: ["-pa", to_string(path)]

    for round <- 1..6 do
      port =
        Port.open({:spawn_executable, System.find_executable("elixir")}, [
          :binary,
          :exit_status,
          args: List.flatten(paths) ++ ["-e", script]
        ])

      {:os_pid, pid} = Port.info(port, :os_pid)
      # Kill it at some point of its second or a later round.
      for _ <- 1..rem(round, 3)//1, do: assert_receive({^port, {:data, _}}, 120_000)
      assert_receive {^port, {:data, _}}, 120_000
      spin(round * 7_001)
      System.cmd("kill", ["-9", to_string(pid)])
      assert_receive {^port, {:exit_status, _}}, 30_000

      # The next call finishes or undoes the interrupted work.
      {:ok, outcomes} = Package.outdated([], to: to)
      assert Enum.all?(outcomes, &(&1.action in [:current, :outdated]))
      assert Enum.sort(File.ls!(to)) in [["one", "skills.lock.json"], []]

      texts =
        for path <- Path.wildcard(Path.join(to, "one/f*.md")), uniq: true, do: File.read!(path)

      assert texts in [["a"], ["b"]]
      assert length(Path.wildcard(Path.join(to, "one/*"))) == 31
    end
  end

  # Waits for a time that differs from round to round, without a timer.
  defp spin(n), do: Enum.reduce(1..n, 0, &rem(&1 * 31 + &2, 1009))
end
