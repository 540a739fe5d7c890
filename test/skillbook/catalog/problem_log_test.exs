defmodule Skillbook.Catalog.ProblemLogTest do
  # The log of warnings; `Skillbook.HandlersTest` has that of errors.
  use Skillbook.SkillsCase, async: true

  import ExUnit.CaptureLog
  import Skillbook.StoredRows

  @moduletag :tmp_dir

  # Of a book: other tests log at the same time.
  defp warnings(log, book) do
    for line <- String.split(log, "\n"),
        [_, text] <- [Regex.run(~r/\[warning\] (.*)\z/, line)],
        String.starts_with?(text, "the book #{inspect(book)}: "),
        do: text
  end

  defp start(sources, options \\ []) do
    given = [sources: sources, builtins: false, watch: false] ++ options
    {book, log} = with_log(fn -> book(given) end)
    {book, warnings(log, book)}
  end

  defp reload(book), do: warnings(capture_log(fn -> Skillbook.reload(book) end), book)

  test "has a mismatch, a collision, an overlap and a missing optional root", %{tmp_dir: root} do
    skill = fn name -> "---\nname: #{name}\ndescription: Does it\n---\nText.\n" end
    write(Path.join(root, "one"), %{"a/SKILL.md" => skill.("b"), "twin.md" => skill.("twin")})
    write(Path.join(root, "one"), %{"z/twin.md" => skill.("twin") <> "More.\n"})
    two = write(Path.join(root, "two"), %{"both.md" => skill.("both")})
    one = Path.join(root, "one")
    gone = Path.join(root, "gone")

    sources = [
      one,
      [path: two, available: ["*"], inline: ["both"]],
      [path: gone, optional: true]
    ]

    {book, lines} = start(sources)

    assert Enum.map(lines, &String.replace_prefix(&1, "the book #{inspect(book)}: ", "")) == [
             "#{gone}: warning: the folder does not exist, so this optional source is empty " <>
               "[source_missing]; create the folder, or correct the path",
             "#{one}/a/SKILL.md:2:1: warning: the name `b` differs from its folder's, `a`; " <>
               "the name is used [name_differs]; write name: a, or rename the folder to `b`",
             "#{one}/z/twin.md: warning: `twin`: the name is already taken by " <>
               "#{one}/twin.md, which is used [duplicate_name]; give one of them another name",
             "#{two}/both.md: warning: `both` matches globs of both `available` and `inline` " <>
               "of the source `two`; `inline` wins [inline_wins]; let only one of them match it"
           ]
  end

  test "folders that nobody named may be missing", %{tmp_dir: root} do
    conventional = {:conventional, home: root, project: root, trusted: true}
    assert {_book, []} = start([conventional], write_to: Path.join(root, "written"))
  end

  test "has each once for a document, also if its line changes", %{tmp_dir: root} do
    page = fn name, more -> "---\n#{more}name: #{name}\ndescription: Does it\n---\nText.\n" end
    write(root, %{"a.md" => page.("b", "")})
    {book, [_]} = start([root])
    assert reload(book) == []
    # The name is in another line now, and then it is another one.
    write(root, %{"a.md" => page.("b", "title: B\n")})
    assert reload(book) == []
    write(root, %{"a.md" => page.("c", "title: B\n")})
    assert reload(book) == []
    # Another cause
    write(root, %{"a.md" => page.("c", "title: 1\n")})
    assert [line] = reload(book)
    assert line =~ ~s(a.md:2:1: warning: expected text for `title`, got the number 1; read as "1")
    # A corrected page that breaks again is new again.
    write(root, %{"a.md" => page.("a", "")})
    assert reload(book) == []
    write(root, %{"a.md" => page.("c", "")})
    assert [line] = reload(book)
    assert line =~ "the name `c` differs from its file's, `a`"
  end

  test "a flood ends in one line, and hides no other code", %{tmp_dir: root} do
    page = &"---\nname: #{&1}\ndescription: Does it\n---\nText.\n"
    write(root, for(n <- 10..39, into: %{}, do: {"n#{n}.md", page.("other#{n}")}))
    write(root, %{"z/Odd.md" => page.("Odd"), "zz.md" => "---\nname: zz\ndescription: d\n---\n"})
    {book, lines} = start([root])
    assert length(lines) == 11
    assert Enum.count(lines, &(&1 =~ "[name_differs]")) == 9
    assert Enum.at(lines, 9) =~ "z/Odd.md:2:1: warning: expected lowercase letters"

    assert List.last(lines) ==
             "the book #{inspect(book)}: 21 more warnings; " <>
               "Skillbook.diagnostics(#{inspect(book)}) returns all"

    assert reload(book) == []
  end

  test "a page without a text is an error when it is loaded", %{tmp_dir: root} do
    write(root, %{"a.md" => "---\nname: a\ndescription: Does it\n---\n"})
    log = capture_log(fn -> book(sources: [root], builtins: false, watch: false) end)

    assert log =~
             "[error] the book :book_"

    assert log =~
             "#{root}/a.md: error: expected text after the frontmatter, got none " <>
               "[body_missing]; write the instructions below the frontmatter"
  end

  test "has records of the store once somebody reads them", %{tmp_dir: root} do
    store = Path.join(root, "store.db")
    page = fn text -> "---\nrequires: [nowhere]\n---\n#{text}\n" end
    write(root, %{"skills/a.md" => "---\nname: b\ndescription: Does it\n---\nText.\n"})
    {first, _lines} = start([Path.join(root, "skills")], store: store)
    sql = Skillbook.Book.sql(Skillbook.Book.fetch!(first))

    for tenant <- ["acme", "globex"],
        do: write_rows(sql, [stored(tenant, tenant: tenant, content: page.("Text."))])

    stop_supervised!(first)
    {book, [line]} = start([Path.join(root, "skills")], store: store)
    assert line =~ "a.md"

    look = fn ->
      log =
        capture_log(fn ->
          watcher = Module.concat(book, Watcher)
          send(watcher, :look)
          :sys.get_state(watcher)
        end)

      for line <- warnings(log, book), do: line |> String.split(" ") |> Enum.at(3)
    end

    assert look.() == []
    reader = fn tenant -> Skillbook.Profile.new!(id: "reader", tenant: tenant) end
    Skillbook.view(book, reader.("acme"))
    assert [path] = look.()
    assert path =~ "acme.md"
    assert look.() == []
    # One that nobody reads is not opened for a change of it, and one that somebody reads is.
    sql = Skillbook.Book.sql(Skillbook.Book.fetch!(book))
    more = page.("More.")

    revision =
      write_rows(sql, [
        stored("globex", id: 2, tenant: "globex", content: more),
        stored("acme-two", tenant: "acme", content: more)
      ])

    log =
      capture_log(fn ->
        :ok = Skillbook.Store.Follower.sync(book, revision)
        assert [path] = look.()
        assert path =~ "acme-two.md"
        Skillbook.view(book, reader.("globex"))
        assert [path] = look.()
        assert path =~ "globex.md"
      end)

    assert length(warnings(log, book)) == 2
  end

  test "the books of evaluations log no warnings", %{tmp_dir: root} do
    write(root, %{"a.md" => "---\nname: b\ndescription: Does it\n---\nText.\n"})
    hooks = %{stubs: %{}, observe: fn _routed, _context, _answer -> :ok end, clock: nil}

    log =
      capture_log(fn ->
        options = [name: :problem_log_hooks, sources: [root], builtins: false, watch: false]
        {:ok, pid} = Skillbook.Book.start_link(options, hooks)
        Supervisor.stop(pid)
      end)

    refute log =~ ":problem_log_hooks"
  end
end
