defmodule Skillbook.House.PathsTest do
  # Limits how many modules of the library each data path crosses, how often it switches between
  # them, and how many native calls it makes. The limits are the current figures. A change that
  # needs more says why; one that needs less lowers them.
  #
  # `Skillbook.View` reads the first argument and the options of all functions, a view or a book.
  # `Skillbook.Support.UntilError` goes through sources, flags and values, one module for all.
  #
  # Alone, because it traces all processes.
  use ExUnit.Case, async: false

  alias Skillbook.{Catalog, Paths}

  @moduletag :tmp_dir

  # No background work during the trace.
  @quiet [watch: false, store_poll: 60_000]
  @haiku "---\nname: haiku\ndescription: Writes a haiku\n---\nThree lines.\n"

  setup %{tmp_dir: folder} do
    File.write!(Path.join(folder, "haiku.md"), @haiku)
    :ok
  end

  test "load", %{tmp_dir: folder} do
    load = fn _ -> {:ok, _} = Catalog.load([folder]) end
    within(load, modules: 8, switches: 8, native: 4)
  end

  test "start", %{tmp_dir: folder} do
    # Without the earlier books, whose processes look at their databases now and then.
    earlier = fn _ -> stop_supervised({Skillbook, :paths}) end
    # Each part is a module, and puts its options into the book. Each migration of an empty
    # database is a module and a native call. Databases have a native library of their own, which
    # is a module too, here and below. Entries of earlier versions are looked for once. Servers at
    # which people sign in are asked for by each step that needs a connection. Writes that commit
    # together have a process. Entries of the store are counted, and fetched by three calls, and
    # subscribers hear that the book has started.
    within(fn _ -> start(folder) end, [modules: 85, switches: 457, native: 62], earlier)
  end

  test "prompt, the second of a view", %{tmp_dir: folder} do
    start(folder)
    view = Skillbook.view(:paths)
    prompt = Skillbook.prompt(view)
    within(fn _ -> ^prompt = Skillbook.prompt(view) end, modules: 8, switches: 9, native: 1)
  end

  test "run", %{tmp_dir: folder} do
    start(folder)
    view = Skillbook.view(:paths)
    save = fn n -> "Saved" <> _ = run(view, "memory.save --content #{n}") end
    # One of the calls makes hidden characters of the result visible.
    within(save, modules: 39, switches: 78, native: 7)
  end

  # `Skillbook.Store` delegates to one module that reads and one that writes. The process that
  # commits writes together is a module, and has callers. Each group has a process of its own, and
  # its entries get their revision at its end.
  test "write", %{tmp_dir: folder} do
    start(folder)
    view = Skillbook.view(:paths)
    more = "--description Brews --content Boil"

    create = fn n ->
      "Created" <> _ = run(view, "skills.create --name tea#{n} --title Tea #{more}")
    end

    within(create, modules: 54, switches: 131, native: 14)
  end

  defp start(folder) do
    options = [name: :paths, sources: [folder], builtins: true, store: ":memory:"]
    start_supervised!({Skillbook, options ++ @quiet})
  end

  defp run(view, line) do
    %{results: [result]} = Skillbook.run(view, "```cmd\n#{line}\n```")
    result.content
  end

  # A process that is at work on something else only adds to it, such as the look of a database at
  # its file each second, so the shortest of some runs counts.
  @runs 12

  defp within(work, limits, prepare \\ & &1) do
    path =
      Enum.reduce_while(1..@runs, nil, fn n, shortest ->
        prepare.(n)
        {_result, path} = Paths.trace(fn -> work.(n) end)
        path = Enum.min_by([path | List.wrap(shortest)], &size/1)
        {if(over(path, limits) == [], do: :halt, else: :cont), path}
      end)

    figures = figures(path)
    if System.get_env("PATHS"), do: IO.puts("\n#{inspect(figures)} #{inspect(path.modules)}")
    assert Skillbook.Native in path.modules

    over = over(path, limits)
    assert over == [], "more than #{inspect(limits)}: #{inspect(over)}\n#{inspect(path.modules)}"
  end

  defp over(path, limits),
    do: for({name, figure} <- figures(path), figure > limits[name], do: {name, figure})

  defp figures(path),
    do: [modules: length(path.modules), switches: path.switches, native: path.native]

  defp size(path), do: path |> figures() |> Keyword.values() |> Enum.sum()
end
