defmodule Skillbook.Catalog.WatcherTest do
  # Each waits for the message that a change is in, and for nothing else.
  use ExUnit.Case, async: true
  use Skillbook.SkillsCase

  import ExUnit.CaptureLog

  alias Skillbook.{Change, OptionError, View}

  @moduletag :tmp_dir

  # Notifications are slow on a busy machine.
  @patience 60_000

  # A book with the entries `x.a` and `x.b`, whose folder is being watched.
  defp followed(folder, options \\ []) do
    write(folder, %{"x/a.md" => page("x.a", [], "one"), "x/b.md" => page("x.b", [], "one")})
    book = book([sources: [folder], builtins: false] ++ options)
    follow(book, folder)
    book
  end

  # After the first notification the folders are watched, so all changes are reported.
  defp follow(book, folder) do
    :ok = Skillbook.subscribe(book)
    write(folder, %{"follow.md" => page("is.followed", [], "#{System.unique_integer()}")})
    await(book, fn -> match?({:ok, _}, View.fetch(View.all(book), "is.followed")) end)
    File.rm!(Path.join(folder, "follow.md"))
    await(book, fn -> match?({:error, _}, View.fetch(View.all(book), "is.followed")) end)
  end

  # Waits for changes until the condition is true, and returns all of them. A generation can be
  # read before its notification arrives, so also waits for the notification.
  defp await(book, so?, told \\ []) do
    if so?.() and generation(book) == Process.get(:told, 1) do
      told
    else
      assert_receive {:skillbook, ^book, %Change{} = change}, @patience
      Process.put(:told, change.generation)
      await(book, so?, [change | told])
    end
  end

  # The number of a view does not count generations.
  defp generation(book), do: Skillbook.Catalog.generation(Skillbook.Book.fetch!(book).catalog)
  defp names(book), do: for(entry <- View.entries(View.all(book)), do: entry.name)
  defp body(book, name), do: View.fetch!(View.all(book), name).body

  # Returns the names in all changes until the book has these entries.
  defp told_of(book, names, kind) do
    book
    |> await(fn -> names(book) == names end)
    |> Enum.flat_map(&Map.fetch!(&1, kind))
    |> Enum.uniq()
    |> Enum.sort()
  end

  for {mode, options} <- [events: [], polling: [watch: [poll: 20]]] do
    describe "files, by #{mode}:" do
      @describetag options: options

      test "a new one", %{tmp_dir: folder, options: options} do
        book = followed(folder, options)
        write(folder, %{"x/c.md" => page("x.c")})
        assert told_of(book, ["x.a", "x.b", "x.c"], :added) == ["x.c"]
      end

      test "a changed one; existing views do not change", %{tmp_dir: folder, options: options} do
        book = followed(folder, options)
        view = Skillbook.view(book)
        write(folder, %{"x/a.md" => page("x.a", [], "two")})
        changes = await(book, fn -> body(book, "x.a") == "two" end)
        assert Enum.any?(changes, &(&1.changed == ["x.a"]))
        assert View.fetch!(view, "x.a").body == "one"
        assert generation(book) == hd(changes).generation
      end

      test "a deleted one", %{tmp_dir: folder, options: options} do
        book = followed(folder, options)
        File.rm!(Path.join(folder, "x/b.md"))
        assert told_of(book, ["x.a"], :removed) == ["x.b"]
      end

      test "a renamed one", %{tmp_dir: folder, options: options} do
        book = followed(folder, options)
        write(folder, %{"x/c.md" => page("x.c")})
        await(book, fn -> "x.c" in names(book) end)
        File.rename!(Path.join(folder, "x/c.md"), Path.join(folder, "x/moved.txt"))
        assert told_of(book, ["x.a", "x.b"], :removed) == ["x.c"]
        File.rename!(Path.join(folder, "x/moved.txt"), Path.join(folder, "x/c.md"))
        assert told_of(book, ["x.a", "x.b", "x.c"], :added) == ["x.c"]
      end

      test "one saved by a rename, older than the file that it replaces", %{
        tmp_dir: folder,
        options: options
      } do
        book = followed(folder, options)
        write(folder, %{"x/.a.tmp" => page("x.a", [], "two")})
        File.touch!(Path.join(folder, "x/.a.tmp"), 1_000_000_000)
        File.rename!(Path.join(folder, "x/.a.tmp"), Path.join(folder, "x/a.md"))
        await(book, fn -> body(book, "x.a") == "two" end)
      end

      test "one saved again after its backup was renamed", %{tmp_dir: folder, options: options} do
        book = followed(folder, options)
        File.rename!(Path.join(folder, "x/a.md"), Path.join(folder, "x/a.md~"))
        write(folder, %{"x/a.md" => page("x.a", [], "two")})
        await(book, fn -> "x.a" in names(book) and body(book, "x.a") == "two" end)
      end

      test "a folder moved in, changed and moved out", %{tmp_dir: tmp, options: options} do
        {folder, out} = {Path.join(tmp, "in"), Path.join(tmp, "out")}
        book = followed(folder, options)
        write(out, %{"deep/er/c.md" => page("y.c", [], "one"), "d.md" => page("y.d")})
        File.rename!(out, Path.join(folder, "y"))
        assert told_of(book, ["x.a", "x.b", "y.c", "y.d"], :added) == ["y.c", "y.d"]
        write(folder, %{"y/deep/er/c.md" => page("y.c", [], "two")})
        await(book, fn -> body(book, "y.c") == "two" end)
        File.rename!(Path.join(folder, "y"), out)
        assert told_of(book, ["x.a", "x.b"], :removed) == ["y.c", "y.d"]
      end

      test "new folders in new folders", %{tmp_dir: folder, options: options} do
        book = followed(folder, options)

        for n <- 1..20,
            do: write(folder, %{"n#{n}/a/b/c/page.md" => page("n#{n}.page", [], "one")})

        await(book, fn -> length(names(book)) == 22 end)

        for n <- 1..20,
            do: write(folder, %{"n#{n}/a/b/c/page.md" => page("n#{n}.page", [], "two")})

        await(book, fn -> Enum.all?(1..20, &(body(book, "n#{&1}.page") == "two")) end)
      end

      test "a root that is missing, created, deleted and created again", %{
        tmp_dir: tmp,
        options: options
      } do
        root = Path.join(tmp, "to/come")
        sources = [[path: root, optional: true], [path: Path.join(tmp, "never"), optional: true]]
        book = book([sources: sources, builtins: false] ++ options)
        :ok = Skillbook.subscribe(book)
        assert names(book) == []

        for text <- ["one", "two"] do
          write(root, %{"x/a.md" => page("x.a", [], text)})
          await(book, fn -> names(book) == ["x.a"] and body(book, "x.a") == text end)
          write(root, %{"x/b.md" => page("x.b")})
          await(book, fn -> names(book) == ["x.a", "x.b"] end)
          File.rm_rf!(Path.join(tmp, "to"))
          await(book, fn -> names(book) == [] end)
        end
      end

      test "a root that is a link, turned to another folder", %{tmp_dir: tmp, options: options} do
        write(tmp, %{"1/a.md" => page("x.one"), "2/a.md" => page("x.two")})
        root = Path.join(tmp, "current")
        File.ln_s!("1", root)
        book = book([sources: [root], builtins: false] ++ options)
        follow(book, Path.join(tmp, "1"))
        File.ln_s!("2", Path.join(tmp, "next"))
        File.rename!(Path.join(tmp, "next"), root)
        await(book, fn -> names(book) == ["x.two"] end)
        write(tmp, %{"2/b.md" => page("x.three")})
        await(book, fn -> names(book) == ["x.three", "x.two"] end)
      end

      test "a root that is replaced by what is no folder, and comes back", context do
        %{tmp_dir: tmp, options: options} = context
        root = Path.join(tmp, "root")
        write(root, %{"a.md" => page("x.a")})
        book = book([sources: [[path: root, optional: true]], builtins: false] ++ options)
        follow(book, root)

        for {make, number} <-
              Enum.with_index([
                fn -> :ok end,
                fn -> File.write!(root, page("x.file")) end,
                fn -> {_, 0} = System.cmd("mkfifo", [root]) end,
                fn -> File.ln_s!("/dev/zero", root) end,
                fn -> File.ln_s!("root", root) end
              ]) do
          File.rm_rf!(root)
          make.()
          await(book, fn -> names(book) == [] end)
          File.rm_rf!(root)
          write(root, %{"b.md" => page("x.b#{number}")})
          await(book, fn -> names(book) == ["x.b#{number}"] end)
          write(root, %{"c.md" => page("x.c")})
          await(book, fn -> "x.c" in names(book) end)
        end
      end

      # A container may refuse it.
      if Skillbook.Mounts.allowed?() do
        test "a file system that is mounted over a root, and below one", context do
          %{tmp_dir: tmp, options: options} = context
          root = Path.join(tmp, "a root")
          below = Path.join(root, "y")
          write(root, %{"x/a.md" => page("x.a"), "y/b.md" => page("y.b")})
          book = book([sources: [root], builtins: false] ++ options)
          follow(book, root)

          on_exit(fn ->
            for folder <- [below, root],
                do: System.cmd("umount", ["-l", folder], stderr_to_stdout: true)
          end)

          for {folder, file, before, during} <- [
                {root, "x/c.md", ["x.a", "y.b"], ["x.c"]},
                {below, "d.md", ["x.a", "y.b"], ["x.a", "y.d"]}
              ] do
            assert {_, 0} = System.cmd("mount", ["-t", "tmpfs", "tmpfs", folder])
            await(book, fn -> names(book) == during -- ["x.c", "y.d"] end)
            write(folder, %{file => page(hd(during -- ["x.a"]))})
            await(book, fn -> names(book) == during end)
            assert {_, 0} = System.cmd("umount", ["-l", folder])
            await(book, fn -> names(book) == before end)
          end
        end
      end

      test "hundreds at once, as on a change of branches", %{tmp_dir: folder, options: options} do
        files = fn text ->
          for n <- 1..300, do: {"d#{rem(n, 30)}/f#{n}.md", page("d#{rem(n, 30)}.f#{n}", [], text)}
        end

        write(folder, files.("one"))
        book = followed(folder, options)
        git!(folder, ~w(init --quiet --initial-branch=one))
        git!(folder, ~w(add .))
        git!(folder, ~w(commit --quiet --message=one))
        git!(folder, ~w(checkout --quiet -b two))
        write(folder, files.("two"))
        write(folder, for(n <- 1..30, do: {"new#{n}/g.md", page("new#{n}.g")}))
        git!(folder, ~w(add .))
        git!(folder, ~w(commit --quiet --message=two))

        for {branch, count} <- [{"one", 302}, {"two", 332}, {"one", 302}] do
          git!(folder, ["checkout", "--quiet", branch])

          await(book, fn ->
            entries = View.entries(View.all(book))
            bodies = for %{domain: "d" <> _} = entry <- entries, do: entry.body
            length(entries) == count and Enum.frequencies(bodies) == %{branch => 300}
          end)
        end
      end
    end
  end

  defp git!(folder, arguments) do
    settings = ~w(-c user.name=a -c user.email=a@b.c -c core.hooksPath=/dev/null)

    assert {_, 0} =
             System.cmd("git", ["-C", folder] ++ settings ++ arguments, stderr_to_stdout: true)
  end

  test "watches two paths to one folder, and nested folders", %{tmp_dir: tmp} do
    write(tmp, %{"real/in/a.md" => page("x.a", [], "one")})
    File.ln_s!("real", Path.join(tmp, "link"))
    paths = Enum.map(["real", "link", "real/in"], &Path.join(tmp, &1))

    for path <- paths do
      book = book(sources: paths -- [path], builtins: false)
      follow(book, Path.join(tmp, "real/in"))
      text = "#{System.unique_integer()}"
      write(tmp, %{"real/in/a.md" => page("x.a", [], text)})
      await(book, fn -> body(book, "x.a") == text end)
    end
  end

  test "ignored files make no generation", %{tmp_dir: folder} do
    book = followed(folder)
    before = generation(book)

    files = [
      ".git/index",
      "node_modules/p/README.md",
      "x/.a.md.swp",
      "x/a.md~",
      "x/#a.md#",
      ".hidden/b.md"
    ]

    write(folder, Map.new(files, &{&1, page("x.hidden")}))
    # The next one that counts is the next one there is.
    write(folder, %{"x/c.md" => page("x.c")})

    assert [%Change{generation: generation, added: ["x.c"]}] =
             await(book, fn -> "x.c" in names(book) end)

    assert generation == before + 1
  end

  describe "subscribers" do
    test "are notified of every reload once, also without watching", %{tmp_dir: folder} do
      write(folder, %{"x/a.md" => page("x.a")})
      book = book(sources: [folder], builtins: false, watch: false)
      assert [Skillbook.subscribe(book), Skillbook.subscribe(book)] == [:ok, :ok]
      write(folder, %{"x/b.md" => page("x.b")})
      assert Skillbook.reload(book) == :ok

      assert_receive {:skillbook, ^book,
                      %Change{generation: 2, added: ["x.b"], changed: [], removed: []}}

      assert Skillbook.reload(book) == :ok

      assert_receive {:skillbook, ^book,
                      %Change{generation: 3, added: [], changed: [], removed: []}}

      refute_received {:skillbook, _, _}
    end

    test "are notified in the order of generations" do
      book = book(watch: false)
      :ok = Skillbook.subscribe(book)

      1..50
      |> Task.async_stream(fn _ -> Skillbook.reload(book) end, max_concurrency: 8)
      |> Stream.run()

      for n <- 2..51, do: assert_receive({:skillbook, ^book, %Change{generation: ^n}})
    end

    test "may unsubscribe or exit" do
      book = book(watch: false)
      :ok = Skillbook.subscribe(book)
      assert Task.await(Task.async(fn -> Skillbook.subscribe(book) end), :infinity) == :ok
      assert Skillbook.unsubscribe(book) == :ok
      assert Skillbook.reload(book) == :ok
      refute_received {:skillbook, _, _}
    end

    test "outlive the book", %{tmp_dir: folder} do
      book = book(sources: [folder])
      :ok = Skillbook.subscribe(book)
      assert stop_supervised(book) == :ok
      assert Skillbook.unsubscribe(book) == :ok
      assert_raise ArgumentError, fn -> Skillbook.unsubscribe(book) end
    end

    @tag :capture_log
    test "outlast a crash of the book and of each of its processes", %{tmp_dir: folder} do
      book = book(sources: [folder], watch: false, store: ":memory:")
      :ok = Skillbook.subscribe(book)
      write(folder, %{"x/a.md" => page("x.a")})

      for process <- [book, Module.concat(book, Store), Module.concat(book, Watcher)] do
        pid = GenServer.whereis(process)
        Process.exit(pid, :kill)
        assert_receive {:skillbook_started, ^book, _generation}, 60_000
        assert GenServer.whereis(process) != pid
        Skillbook.reload(book)
        assert_receive {:skillbook, ^book, %Change{}}
      end
    end

    test "need a book" do
      for fun <- [&Skillbook.subscribe/1, &Skillbook.unsubscribe/1, &Skillbook.reload/1] do
        assert_raise ArgumentError, "expected the name of a running book, got: :nobody", fn ->
          fun.(:nobody)
        end
      end
    end
  end

  test "a restarted registration keeps the catalog and reports changes", %{
    tmp_dir: folder
  } do
    book = followed(folder)
    before = generation(book)
    # It cannot see the change, being asleep until its supervisor ends it.
    :sys.suspend(GenServer.whereis(Module.concat(book, Watcher)))
    write(folder, %{"x/a.md" => page("x.a", [], "two")})
    children = Supervisor.which_children(GenServer.whereis(book))
    {_, parts, _, _} = List.keyfind(children, :parts, 0)
    children = Supervisor.which_children(parts)
    {_, registration, _, _} = List.keyfind(children, Skillbook.Book.Registration, 0)
    Process.exit(registration, :kill)
    changes = await(book, fn -> body(book, "x.a") == "two" end)
    assert Enum.any?(changes, &(&1.changed == ["x.a"] and &1.generation == before + 1))
  end

  describe "the watcher" do
    test "restarts and reads all sources again, and the book stays", %{tmp_dir: folder} do
      book = followed(folder)

      {supervisor, watcher} =
        {GenServer.whereis(book), GenServer.whereis(Module.concat(book, Watcher))}

      # It cannot see this, being asleep when it is killed.
      :sys.suspend(watcher)
      write(folder, %{"x/a.md" => page("x.a", [], "two")})
      Process.exit(watcher, :kill)
      await(book, fn -> body(book, "x.a") == "two" end)
      write(folder, %{"x/a.md" => page("x.a", [], "three")})
      await(book, fn -> body(book, "x.a") == "three" end)
      assert GenServer.whereis(book) == supervisor
      assert GenServer.whereis(Module.concat(book, Watcher)) != watcher
    end

    test "restarts when its thread ends", %{tmp_dir: folder} do
      book = followed(folder)
      watcher = GenServer.whereis(Module.concat(book, Watcher))
      monitor = monitor(watcher)

      capture_log(fn ->
        send(watcher, :skillbook_watch_ended)
        assert_receive {:DOWN, ^monitor, :process, ^watcher, :watch_ended}, @patience
      end)

      write(folder, %{"x/c.md" => page("x.c")})
      await(book, fn -> "x.c" in names(book) end)
    end

    test "logs that it polls instead", %{tmp_dir: folder} do
      book = book(sources: [folder], watch: false)
      watcher = GenServer.whereis(Module.concat(book, Watcher))

      log =
        capture_log(fn ->
          send(watcher, {:skillbook_polling, "/srv/notes: NFS does not report changes"})
          :sys.get_state(watcher)
        end)

      assert log =~
               "the book #{inspect(book)} gets no notifications of changed files " <>
                 "and polls its folders instead: " <>
                 "/srv/notes: NFS does not report changes"
    end

    test "does nothing with watch: false", %{tmp_dir: folder} do
      book = book(sources: [folder], watch: false)
      assert :sys.get_state(Module.concat(book, Watcher)).watch == nil
    end
  end

  test "checks the option" do
    for bad <- [nil, :poll, [], [poll: 0], [poll: 1.5], [pol: 10], [poll: 10, poll: 20]] do
      assert {:error, %OptionError{} = error} = Skillbook.start_link(name: :unwatched, watch: bad)

      assert Exception.message(error) ==
               "expected a boolean or [poll: milliseconds] as the option :watch of a book, " <>
                 "got: #{inspect(bad)}"
    end
  end
end

defmodule Skillbook.WatchThreadsTest do
  # Not async: books of other tests have threads too.
  use ExUnit.Case, async: false
  use Skillbook.SkillsCase

  @moduletag :tmp_dir

  @tasks "/proc/#{System.pid()}/task"

  test "stopped books leave no threads behind", %{tmp_dir: folder} do
    for n <- 1..20 do
      book = book(sources: [folder], watch: if(rem(n, 2) == 0, do: true, else: [poll: 60_000]))
      :ok = Skillbook.subscribe(book)
      if File.dir?(@tasks), do: assert(becomes?(&(&1 != [])))
      :ok = stop_supervised(book)
    end

    assert becomes?(&(&1 == []))
  end

  # Threads start and end unseen: there is no message to wait for.
  defp becomes?(so?),
    do: Enum.any?(1..2_000, fn _ -> so?.(threads()) or :timer.sleep(10) != :ok end)

  defp threads do
    for task <- Path.wildcard(@tasks <> "/*/comm"),
        {:ok, name} <- [File.read(task)],
        name =~ ~r/^(skillbook watch|notify)/,
        do: name
  end
end
