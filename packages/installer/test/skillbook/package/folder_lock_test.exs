defmodule Skillbook.Package.FolderLockTest do
  use Skillbook.SkillsCase, async: true

  import Skillbook.Test.Packages

  alias Skillbook.Package

  @moduletag :tmp_dir

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
      &Package.install(from, [to: to, names: ["s#{&1}"], lock_timeout: 60_000] ++ accept_all()),
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
             Package.install(from, [to: to, names: ["s1"], lock_timeout: 0] ++ accept_all())
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
end
