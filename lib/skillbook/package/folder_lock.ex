defmodule Skillbook.Package.FolderLock do
  @moduledoc false
  # One at a time in a folder, among processes of the operating system and of this virtual machine.
  #
  # Whoever comes writes a file of a name that nobody else has, then looks who else is there. If there is somebody alive he
  # takes his own away and tries again later; the files of the dead he takes away. Of two that come at once the second to
  # write sees the first, so never do both go on; and no file of a living one is ever taken for a dead one's, since names
  # do not come again.

  alias Skillbook.PackageError

  @prefix ".skillbook-turn-"
  @pause 50

  @doc "Calls the function while nobody else does it in the folder; waits for up to `patience` milliseconds."
  @spec take(Path.t(), non_neg_integer(), (() -> result)) :: result | {:error, PackageError.t()}
        when result: term()
  def take(folder, patience, fun) do
    with {:ok, mine} <- wait(folder, System.monotonic_time(:millisecond) + patience) do
      try do
        fun.()
      after
        File.rm(Path.join(folder, mine))
      end
    end
  end

  defp wait(folder, deadline) do
    name =
      "#{@prefix}#{System.pid()}-#{started(System.pid())}-#{pid(self())}-#{System.unique_integer([:positive])}"

    with :ok <- File.write(Path.join(folder, name), "", [:exclusive]) do
      case others(folder, name) do
        [] ->
          {:ok, name}

        [other | _] ->
          File.rm(Path.join(folder, name))

          if System.monotonic_time(:millisecond) > deadline do
            PackageError.new(
              :busy,
              folder,
              "is being changed by process #{other}",
              "wait until it is done"
            )
          else
            Process.sleep(@pause + :rand.uniform(@pause))
            wait(folder, deadline)
          end
      end
    else
      {:error, reason} -> PackageError.io(folder, reason)
    end
  end

  # The processes that are there too; the files of those that are not any more are taken away.
  defp others(folder, mine) do
    for name <- ls(folder),
        String.starts_with?(name, @prefix),
        name != mine,
        other = alive(folder, name),
        do: other
  end

  defp ls(folder) do
    case File.ls(folder) do
      {:ok, names} -> names
      {:error, _} -> []
    end
  end

  defp alive(folder, name) do
    with [os, start, erlang, _] <-
           name |> String.replace_prefix(@prefix, "") |> String.split("-"),
         true <-
           os =~ ~r/\A\d+\z/ and started(os) == start and (os != System.pid() or alive?(erlang)) do
      os
    else
      _ ->
        File.rm(Path.join(folder, name))
        nil
    end
  end

  defp pid(pid),
    do:
      pid
      |> :erlang.pid_to_list()
      |> to_string()
      |> String.trim_leading("<")
      |> String.trim_trailing(">")

  defp alive?(text) do
    Process.alive?(:erlang.list_to_pid(~c"<" ++ to_charlist(text) ++ ~c">"))
  rescue
    ArgumentError -> false
  end

  # Process ids come again; with the time of the start they do not. `nil` of one that is not there.
  defp started(os) do
    case File.read("/proc/#{os}/stat") do
      # The program's name, in parentheses, may hold anything.
      {:ok, text} -> text |> String.split(")") |> List.last() |> String.split() |> Enum.at(19)
      {:error, _} -> if(File.exists?("/proc/self/stat"), do: nil, else: ps(os))
    end
  end

  defp ps(os) do
    case System.cmd("ps", ["-o", "lstart=", "-p", os], stderr_to_stdout: true) do
      {time, 0} -> time |> String.split() |> Enum.join("_") |> String.replace(":", "_")
      _ -> nil
    end
  end
end
