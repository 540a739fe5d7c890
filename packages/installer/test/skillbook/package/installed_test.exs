defmodule Skillbook.Package.InstalledTest do
  use Skillbook.SkillsCase, async: true

  import Skillbook.Test.Packages

  alias Skillbook.Package

  @moduletag :tmp_dir

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
      assert_receive {^port, {:exit_status, _}}, 120_000

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

  test "the next call deletes the lock file that a killed process was writing", %{
    tmp_dir: folder
  } do
    from = write(Path.join(folder, "from"), %{"one/SKILL.md" => skill("one")})
    to = Path.join(folder, "to")
    {:ok, _} = Package.install(from, [to: to] ++ accept_all())
    write(to, %{".4573-146.tmp" => "{", ".own.tmp" => "own"})
    assert actions(Package.outdated([], to: to)) == [{"one", :current}]
    assert Enum.sort(File.ls!(to)) == [".own.tmp", "one", "skills.lock.json"]
  end

  # Waits for a time that differs from round to round, without a timer.
  defp spin(n), do: Enum.reduce(1..n, 0, &rem(&1 * 31 + &2, 1009))
end
