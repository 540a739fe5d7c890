defmodule Skillbook.Package.FolderLock do
  @moduledoc false
  # An exclusive lock on a folder, among operating system processes and processes of this virtual
  # machine.
  #
  # A process creates a lock file with a unique name, then lists the others. If another owner is
  # alive, it deletes its own file and retries later. Files of dead owners are deleted. Of two
  # processes that start at once, the second to create its file sees the first, so both never
  # proceed. Names hold the owner's start time, so a reused process id is not mistaken for it.

  alias Skillbook.PackageError

  @prefix ".skillbook-turn-"
  @retry_after 50

  @doc "Calls the function with the lock held; waits up to `timeout` milliseconds for the lock."
  @spec run(Path.t(), non_neg_integer(), (() -> result)) :: result | {:error, PackageError.t()}
        when result: term()
  def run(folder, timeout, fun) do
    with {:ok, name} <- acquire(folder, System.monotonic_time(:millisecond) + timeout) do
      try do
        fun.()
      after
        File.rm(Path.join(folder, name))
      end
    end
  end

  defp acquire(folder, deadline) do
    os = System.pid()
    number = System.unique_integer([:positive])
    name = "#{@prefix}#{os}-#{start_time(os)}-#{pid(self())}-#{number}"

    with :ok <- File.write(Path.join(folder, name), "", [:exclusive]) do
      case other_owners(folder, name) do
        [] ->
          {:ok, name}

        [other | _] ->
          File.rm(Path.join(folder, name))

          if System.monotonic_time(:millisecond) > deadline do
            PackageError.new(
              :busy,
              folder,
              "is locked by process #{other}",
              "wait until that process is done"
            )
          else
            Process.sleep(@retry_after + :rand.uniform(@retry_after))
            acquire(folder, deadline)
          end
      end
    else
      {:error, reason} -> PackageError.io(folder, reason)
    end
  end

  # Deletes the files of dead owners.
  defp other_owners(folder, own) do
    for name <- ls(folder),
        String.starts_with?(name, @prefix),
        name != own,
        owner = owner(folder, name),
        do: owner
  end

  defp ls(folder) do
    case File.ls(folder) do
      {:ok, names} -> names
      {:error, _} -> []
    end
  end

  defp owner(folder, name) do
    with [os, start, erlang, _] <-
           name |> String.replace_prefix(@prefix, "") |> String.split("-"),
         true <-
           os =~ ~r/\A\d+\z/ and start_time(os) == start and
             (os != System.pid() or alive?(erlang)) do
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

  # `nil` for a process that does not exist.
  defp start_time(os) do
    case File.read("/proc/#{os}/stat") do
      # The program's name, in parentheses, may hold spaces.
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
