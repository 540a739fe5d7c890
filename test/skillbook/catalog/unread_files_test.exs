defmodule Skillbook.Catalog.UnreadFilesTest do
  # Files that are not read again, and files that cannot be read for a moment. Both look at the
  # whole virtual machine, so nothing else may run beside them.
  use Skillbook.SkillsCase, async: false

  alias Skillbook.{Catalog, Change, View}

  # How many bytes this process has read of files and pipes.
  defp bytes_read do
    [_, count] = Regex.run(~r/^rchar: (\d+)$/m, File.read!("/proc/self/io"))
    String.to_integer(count)
  end

  defp read_by(fun) do
    before = bytes_read()
    fun.()
    bytes_read() - before
  end

  test "does not read a file again if its size and times are unchanged" do
    # These are older than the time for which a file's times say too little.
    folder = Application.app_dir(:skillbook, "priv/skills")

    size =
      for(path <- Path.wildcard(folder <> "/**/*.md"), do: File.stat!(path).size) |> Enum.sum()

    {:ok, catalog} = Catalog.load([folder])
    assert read_by(fn -> Catalog.load([folder]) end) >= size
    assert read_by(fn -> Catalog.reload(catalog) end) < div(size, 2)

    # A path in the list of changed paths is always read.
    path = Path.join(folder, "memory/save.md")
    named = File.stat!(path).size
    assert read_by(fn -> Catalog.refresh(catalog, [path]) end) in named..div(size, 2)
  end

  @tag :tmp_dir
  test "keeps an entry while its file cannot be read", %{tmp_dir: root} do
    write(root, %{"a.md" => page("a", title: "One"), "b.md" => page("b")})
    path = Path.join(root, "a.md")
    {:ok, catalog} = Catalog.load([root])
    title = fn -> View.fetch!(View.all(catalog), "a").title end

    codes = fn ->
      for found <- Catalog.diagnostics(catalog), do: {found.code, found.path, found.message}
    end

    # All code that is needed below is loaded now.
    assert {Catalog.refresh(catalog, [path]).changed, title.(), codes.()} == {[], "One", []}

    write(root, %{"a.md" => page("a", title: "Two")})
    change = without_files(fn -> Catalog.refresh(catalog, [path]) end)
    assert change == %Change{generation: 2}
    assert title.() == "One"

    assert Enum.sort(codes.()) == [
             {:kept_last_good, path,
              "the version before this edit stays in use, because this one cannot be used"},
             {:unreadable, path, "cannot be read: Too many open files (os error 24)"}
           ]

    assert Catalog.refresh(catalog, :all) == %Change{generation: 3, changed: ["a"]}
    assert {title.(), codes.()} == {"Two", []}
  end

  # While `fun` runs, this process may open no file. Another one sets and lifts the limit, for
  # that needs files too.
  defp without_files(fun) do
    script = """
    limit=$(prlimit --pid "$1" --nofile --output SOFT --noheadings) || exit
    read -r _ && prlimit --pid "$1" --nofile=1: && echo set
    read -r _ && prlimit --pid "$1" --nofile="$limit:" && echo lifted
    """

    arguments = ["-c", script, "sh", System.pid()]

    port =
      Port.open({:spawn_executable, System.find_executable("sh")}, [:binary, args: arguments])

    step = fn answer ->
      Port.command(port, "\n")
      assert_receive {^port, {:data, ^answer}}
    end

    step.("set\n")

    try do
      fun.()
    after
      step.("lifted\n")
    end
  end
end
