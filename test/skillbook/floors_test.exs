defmodule Skillbook.FloorsTest do
  # The floors of the code: a file uses files of its own floor and of those below. Parts of a book
  # (`Skillbook.Part`) and pages that name handlers lead up without naming a module.
  use ExUnit.Case, async: false

  import ExUnit.CaptureIO

  # From the lowest. A name is a file or a folder of `lib/skillbook`; what is not listed is of the
  # first floor.
  @floors [
    library: [],
    agent:
      ~w(agent approval grammar model preflight scheduler oban test tools transcript) ++
        ~w(handlers/agent handlers/workflow),
    accounts:
      ~w(connections mail calendar drive) ++
        ~w(handlers/email handlers/calendar handlers/drive handlers/hubspot),
    packages: ~w(package),
    mcp: ~w(mcp),
    # Sign-ins of an application with Plug are answered as the server's own.
    web: ~w(web connections/plug),
    command_line: ~w(cli)
  ]

  test "no file uses a higher floor" do
    edges = for {file, used} <- edges(), level(file) < level(used), do: "#{file} -> #{used}"
    assert edges == []
  end

  test "each name of the table is there" do
    for {_floor, names} <- @floors, name <- names do
      path = Path.join("lib/skillbook", name)
      assert File.dir?(path) or File.exists?(path <> ".ex"), "nothing is at #{path}"
    end
  end

  # The facade and the tasks of Mix name all floors.
  defp edges do
    graph = capture_io(fn -> Mix.Task.rerun("xref", ["graph", "--format", "plain"]) end)

    graph
    |> String.split("\n", trim: true)
    |> Enum.reduce({nil, []}, fn
      <<"|-- ", line::binary>>, {file, edges} -> {file, [{file, name(line)} | edges]}
      <<"`-- ", line::binary>>, {file, edges} -> {file, [{file, name(line)} | edges]}
      line, {_file, edges} -> {name(line), edges}
    end)
    |> elem(1)
    |> Enum.filter(fn {file, used} -> inside?(file) and inside?(used) end)
  end

  # A line may end with the kind of the edge.
  defp name(line), do: line |> String.split(" ") |> hd()
  defp inside?(file), do: String.starts_with?(file, "lib/skillbook/")

  # The longest name that fits decides.
  defp level(file) do
    path = file |> Path.relative_to("lib/skillbook") |> Path.rootname()

    @floors
    |> Enum.with_index()
    |> Enum.flat_map(fn {{_floor, names}, number} -> for name <- names, do: {name, number} end)
    |> Enum.filter(fn {name, _} -> path == name or String.starts_with?(path, name <> "/") end)
    |> Enum.max_by(fn {name, _} -> byte_size(name) end, fn -> {"", 0} end)
    |> elem(1)
  end
end
