defmodule Skillbook.PathsTest do
  # Limits how many modules of the library each data path crosses, how often it switches between
  # them, and how many native calls it makes. The limits are the current figures. A change that
  # needs more says why; one that needs less lowers them.
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
    within(load, modules: 5, switches: 5, native: 4)
  end

  test "start", %{tmp_dir: folder} do
    # Without the earlier books, whose processes look at their databases now and then.
    earlier = fn _ -> stop_supervised({Skillbook, :paths}) end
    within(fn _ -> start(folder) end, [modules: 50, switches: 208, native: 40], earlier)
  end

  test "prompt, the second of a view", %{tmp_dir: folder} do
    start(folder)
    view = Skillbook.view(:paths)
    prompt = Skillbook.prompt(view)
    within(fn _ -> ^prompt = Skillbook.prompt(view) end, modules: 3, switches: 2, native: 1)
  end

  test "run", %{tmp_dir: folder} do
    start(folder)
    view = Skillbook.view(:paths)
    save = fn n -> "Saved" <> _ = run(view, "memory.save --content #{n}") end
    # One of the calls makes hidden characters of the result visible.
    within(save, modules: 29, switches: 50, native: 7)
  end

  # `Skillbook.Store` delegates to one module that reads and one that writes.
  test "write", %{tmp_dir: folder} do
    start(folder)
    view = Skillbook.view(:paths)
    more = "--description Brews --content Boil"

    create = fn n ->
      "Created" <> _ = run(view, "skills.create --name tea#{n} --title Tea #{more}")
    end

    within(create, modules: 41, switches: 79, native: 13)
  end

  defp start(folder) do
    start_supervised!({Skillbook, [name: :paths, sources: [folder], store: ":memory:"] ++ @quiet})
  end

  defp run(view, line) do
    %{results: [result]} = Skillbook.run(view, "```cmd\n#{line}\n```")
    result.content
  end

  # A process that is at work on something else only adds to it, so the shortest of some runs
  # counts.
  defp within(work, limits, prepare \\ & &1) do
    paths =
      for n <- 1..4 do
        prepare.(n)
        {_result, path} = Paths.trace(fn -> work.(n) end)
        path
      end

    path = Enum.min_by(paths, &size/1)

    figures = figures(path)
    if System.get_env("PATHS"), do: IO.puts("\n#{inspect(figures)} #{inspect(path.modules)}")
    assert Skillbook.Native in path.modules

    over = for {name, figure} <- figures, figure > limits[name], do: {name, figure}
    assert over == [], "more than #{inspect(limits)}: #{inspect(over)}\n#{inspect(path.modules)}"
  end

  defp figures(path),
    do: [modules: length(path.modules), switches: path.switches, native: path.native]

  defp size(path), do: path |> figures() |> Keyword.values() |> Enum.sum()
end
