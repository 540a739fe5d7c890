defmodule Skillbook.Mounts do
  @moduledoc "Whether this system lets the tests mount file systems."

  @doc "Mounts a file system in memory, and takes it away again."
  @spec allowed? :: boolean()
  def allowed? do
    folder = Path.join(System.tmp_dir!(), "skillbook-mount-#{System.unique_integer([:positive])}")
    File.mkdir!(folder)
    mounted = command("mount", ["-t", "tmpfs", "tmpfs", folder])
    if mounted, do: true = command("umount", [folder])
    File.rmdir!(folder)
    mounted
  end

  defp command(name, arguments) do
    System.find_executable(name) != nil and
      match?({_, 0}, System.cmd(name, arguments, stderr_to_stdout: true))
  end
end
