defmodule Skillbook.Support.PrivateFile do
  @moduledoc false
  # Files that only their owner may read, whatever the umask is: databases, transcripts, accounts,
  # histories. Names the files that others may read.

  import Bitwise

  @doc "Creates a folder and its missing parents, each for its owner alone."
  @spec mkdir_p(Path.t()) :: :ok | {:error, File.posix()}
  def mkdir_p(folder) do
    if File.dir?(folder) do
      :ok
    else
      with :ok <- mkdir_p(Path.dirname(folder)) do
        case File.mkdir(folder) do
          :ok -> File.chmod(folder, 0o700)
          # Another process was quicker.
          {:error, :eexist} -> if File.dir?(folder), do: :ok, else: {:error, :enotdir}
          error -> error
        end
      end
    end
  end

  @doc """
  Creates an empty file for its owner alone. One that is there stays as it is.

  Write to it afterwards: its content must never be in a file that others may read.
  """
  @spec touch(Path.t()) :: :ok | {:error, File.posix()}
  def touch(path) do
    case File.open(path, [:write, :exclusive]) do
      {:ok, file} -> with :ok <- File.close(file), do: File.chmod(path, 0o600)
      {:error, :eexist} -> :ok
      error -> error
    end
  end

  @doc "Replaces a file by one with this content, for its owner alone."
  @spec replace(Path.t(), iodata()) :: :ok | {:error, File.posix()}
  def replace(path, content) do
    temporary = "#{path}.#{System.pid()}"
    File.rm(temporary)

    with :ok <- touch(temporary),
         :ok <- File.write(temporary, content),
         do: File.rename(temporary, path)
  end

  @doc """
  The files of a SQLite database that others may read, each with its mode; also the folder, if it
  is `.skillbook`.
  """
  @spec exposed(Path.t()) :: [{Path.t(), non_neg_integer()}]
  def exposed(database) do
    folder = Path.dirname(Path.expand(database))
    own = if Path.basename(folder) == ".skillbook", do: [folder], else: []

    for path <- own ++ Enum.map(["", "-wal", "-shm"], &(Path.expand(database) <> &1)),
        {:ok, %{mode: mode}} <- [File.stat(path)],
        (mode &&& 0o077) != 0,
        do: {path, mode &&& 0o777}
  end

  @doc """
  Says which files others may read, and how to change that; `nil` if there are none.

      iex> Skillbook.Support.PrivateFile.advice([{"/srv/skillbook.db", 0o644}])
      "other users of this machine may read /srv/skillbook.db (mode 644); run: " <>
        "chmod go= /srv/skillbook.db"
  """
  @spec advice([{Path.t(), non_neg_integer()}]) :: String.t() | nil
  def advice([]), do: nil

  def advice(exposed) do
    named =
      Enum.map_join(exposed, ", ", fn {path, mode} ->
        "#{path} (mode #{Integer.to_string(mode, 8)})"
      end)

    paths = Enum.map_join(exposed, " ", &elem(&1, 0))
    "other users of this machine may read #{named}; run: chmod go= #{paths}"
  end
end
