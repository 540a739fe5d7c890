defmodule Skillbook.Document do
  @moduledoc """
  Reads and writes the files of skills below a folder.

  `root` is the folder, and `path` a file below it: names joined by `/`, without a leading dot.
  Nothing outside `root` is read or written, and symbolic links below it are not followed. `root`
  itself may be a link. Missing folders are created. The names of new files and folders follow the
  same rules as those of [installed packages](docs/packages.md).

  Writes are atomic: the content is written to a temporary file in the same folder, synced, and
  renamed. A reader, or the next start after a power failure, sees the old file or the new one.

  ## Examples

      iex> root = Path.join(System.tmp_dir!(), "document-\#{System.unique_integer([:positive])}")
      iex> {:ok, file} = Skillbook.Document.create(root, "finance/report.md", "# Report")
      iex> Path.relative_to(file, root)
      "finance/report.md"
      iex> {:error, e} = Skillbook.Document.create(root, "finance/report.md", "# Another")
      iex> e.kind
      :exists
      iex> {:ok, _} = Skillbook.Document.replace(root, "finance/report.md", "# Better")
      iex> Skillbook.Document.read(root, "finance/report.md")
      {:ok, "# Better"}
      iex> File.rm_rf!(root)
      iex> :ok
      :ok
  """

  alias Skillbook.DocumentError
  alias Skillbook.Support.{FileName, ReadFile, UntilError}

  @typedoc "The result of a function of this module."
  @type result(value) :: {:ok, value} | {:error, DocumentError.t()}

  @typedoc "Data, or a function that writes it to a file."
  @type content :: iodata() | (:file.io_device() -> :ok | {:error, Exception.t() | atom()})

  @max_name 255

  @doc """
  Writes a new file, and returns its full path.

  An existing file is an error. Of several processes that create the same file, one succeeds. The
  content is data, or a function that writes it to an open file, part by part, and returns `:ok`
  or an error, which is then the result.
  """
  @spec create(Path.t(), String.t(), content()) :: result(Path.t())
  def create(root, path, content) do
    # Unlike a rename, a hard link fails if the name exists, which decides between two writers.
    put(root, path, content, &:file.make_link/2)
  end

  @doc """
  Writes a file, replacing an existing one, and returns its full path.

  The mode of an existing file is preserved. The content is that of `create/3`.
  """
  @spec replace(Path.t(), String.t(), content()) :: result(Path.t())
  def replace(root, path, content) do
    put(root, path, content, fn temporary, target ->
      with {:ok, %{mode: mode}} <- File.stat(target), do: File.chmod(temporary, mode)
      :file.rename(temporary, target)
    end)
  end

  # Bytes; as many as an archive of skills may have.
  @max_read 64 * 1024 * 1024

  @doc "Reads a file of at most 64 MiB. A pipe or a device, which may never end, is an error."
  @spec read(Path.t(), String.t()) :: result(binary())
  def read(root, path) do
    with {:ok, names} <- names(path),
         :ok <- each_part(root, names, &no_link/2) do
      file = Path.join(root, path)

      case File.lstat(file) do
        {:ok, %{type: type}} when type in [:device, :other] -> explain({:error, :einval}, path)
        _file -> file |> ReadFile.read(@max_read) |> explain(path)
      end
    end
  end

  @doc """
  Opens a file for reading, and calls the function with it and its size in bytes.

  The function's value is the result. A pipe or a device is an error.
  """
  @spec open(Path.t(), String.t(), (:file.io_device(), non_neg_integer() -> value)) ::
          value | {:error, DocumentError.t()}
        when value: term()
  def open(root, path, fun) do
    with {:ok, :regular, size} <- stat(root, path),
         {:ok, device} <- root |> Path.join(path) |> :file.open([:read, :raw, :binary]) do
      try do
        fun.(device, size)
      after
        :file.close(device)
      end
    else
      {:ok, _type, _size} -> explain({:error, :einval}, path)
      {:error, reason} when is_atom(reason) -> explain({:error, reason}, path)
      error -> error
    end
  end

  @doc false
  # The type and size of what has the path.
  @spec stat(Path.t(), String.t()) ::
          {:ok, atom(), non_neg_integer()} | {:error, DocumentError.t()}
  def stat(root, path) do
    with {:ok, names} <- names(path),
         :ok <- each_part(root, names, &no_link/2),
         {:ok, %{type: type, size: size}} <- root |> Path.join(path) |> File.lstat() do
      {:ok, type, size}
    else
      {:error, reason} when is_atom(reason) -> explain({:error, reason}, path)
      error -> error
    end
  end

  @trash ".trash"

  @doc """
  Moves a file to `.trash`, which no source reads, and returns its new path below `root`.

  The new path has the time and the old path, with a number if that file exists.

      iex> root = Path.join(System.tmp_dir!(), "document-\#{System.unique_integer([:positive])}")
      iex> {:ok, _} = Skillbook.Document.create(root, "finance/report.md", "# Report")
      iex> Skillbook.Document.discard(root, "finance/report.md", ~U[2026-03-01 08:00:00Z])
      {:ok, ".trash/20260301T080000Z/finance/report.md"}
      iex> File.read(Path.join(root, ".trash/20260301T080000Z/finance/report.md"))
      {:ok, "# Report"}
      iex> {:error, e} = Skillbook.Document.discard(root, "finance/report.md", DateTime.utc_now())
      iex> e.kind
      :missing
      iex> File.rm_rf!(root)
      iex> :ok
      :ok
  """
  @spec discard(Path.t(), String.t(), DateTime.t()) :: result(String.t())
  def discard(root, path, now) do
    source = Path.join(root, path)
    # A counter instead of the time would reveal how many files were discarded.
    time = now |> DateTime.truncate(:second) |> DateTime.to_iso8601(:basic)

    with {:ok, names} <- names(path),
         :ok <- each_part(root, names, &no_link/2),
         {:ok, _} <- File.lstat(source) |> explain(path),
         :ok <- each_part(root, [@trash, time | Enum.drop(names, -1)], &folder/2),
         {:ok, trashed} <- move_to_trash(root, source, Path.join([@trash, time, path]), 1),
         :ok <- File.rm(source) |> explain(path) do
      sync_folder(Path.dirname(source))
      {:ok, trashed}
    end
  end

  # A hard link fails if the name exists, so no discarded file is lost. `discard/3` deletes the
  # source.
  defp move_to_trash(root, source, path, number) do
    trashed =
      if number == 1, do: path, else: "#{Path.rootname(path)}.#{number}#{Path.extname(path)}"

    target = Path.join(root, trashed)

    case :file.make_link(source, target) do
      :ok ->
        sync_folder(Path.dirname(target))
        {:ok, trashed}

      {:error, :eexist} ->
        move_to_trash(root, source, path, number + 1)

      error ->
        explain(error, trashed)
    end
  end

  defp put(root, path, content, place) do
    target = Path.join(root, path)

    with {:ok, names} <- names(path),
         :ok <- File.mkdir_p(root) |> explain(root),
         :ok <- new_names(target, names, path),
         :ok <- each_part(root, Enum.drop(names, -1), &folder/2),
         :ok <- no_link(target, path),
         :ok <- write(target, content, place) |> explain(path) do
      {:ok, target}
    end
  end

  defp names(path) do
    names = String.split(path, "/")
    if Enum.all?(names, &name?/1), do: {:ok, names}, else: error(:path, path)
  end

  defp name?(name) do
    String.valid?(name) and byte_size(name) in 1..@max_name and
      not Regex.match?(~r/\A[.]|[\x{0}-\x{1F}\x{7F}\\]/u, name)
  end

  # A file that exists keeps its name.
  defp new_names(target, names, path) do
    with false <- File.exists?(target),
         {:error, reason} <- Enum.find_value(names, :ok, &refused/1) do
      {:error, %DocumentError{kind: :name, path: path, reason: reason}}
    else
      _ -> :ok
    end
  end

  defp refused(name), do: with(:ok <- FileName.check(name), do: nil)

  defp each_part(root, names, check) do
    names
    |> Enum.scan(&Path.join(&2, &1))
    |> UntilError.each(fn part -> check.(Path.join(root, part), part) end)
  end

  defp no_link(path, part) do
    case File.lstat(path) do
      {:ok, %{type: :symlink}} -> error(:link, part)
      _ -> :ok
    end
  end

  defp folder(path, part) do
    with :ok <- no_link(path, part) do
      case File.mkdir(path) do
        {:error, :eexist} -> if File.dir?(path), do: :ok, else: explain({:error, :enotdir}, part)
        other -> explain(other, part)
      end
    end
  end

  @doc false
  # Whether a name is that of a file that a process was writing. If the process has been killed,
  # nobody deletes it.
  @spec temporary?(String.t()) :: boolean()
  def temporary?(name), do: name =~ ~r/\A\.\d+-\d+\.tmp\z/

  defp write(target, content, place) do
    # The leading dot hides it from every source if this process dies before it deletes the file.
    unique = System.unique_integer([:positive])
    temporary = Path.join(Path.dirname(target), ".#{System.pid()}-#{unique}.tmp")

    try do
      with :ok <- write_synced(temporary, content),
           :ok <- place.(temporary, target) do
        sync_folder(Path.dirname(target))
      end
    after
      File.rm(temporary)
    end
  end

  defp write_synced(path, content) do
    with {:ok, file} <- :file.open(path, [:write, :exclusive, :raw]) do
      result = with :ok <- write_to(file, content), do: :file.sync(file)
      closed = :file.close(file)
      if result == :ok, do: closed, else: result
    end
  end

  defp write_to(file, write) when is_function(write, 1), do: write.(file)
  defp write_to(file, content), do: :file.write(file, content)

  @doc false
  # Makes a new name durable. Some file systems cannot sync a folder; the content is synced
  # anyway.
  def sync_folder(folder) do
    with {:ok, file} <- :file.open(folder, [:read, :raw, :directory]) do
      :file.sync(file)
      :file.close(file)
    end

    :ok
  end

  defp explain({:error, :eexist}, path), do: error(:exists, path)
  defp explain({:error, :enoent}, path), do: error(:missing, path)

  # Of the function that writes the content.
  defp explain({:error, error}, _path) when is_exception(error), do: {:error, error}

  defp explain({:error, reason}, path),
    do: {:error, %DocumentError{kind: :io, path: path, reason: reason}}

  defp explain(ok, _), do: ok

  defp error(kind, path), do: {:error, %DocumentError{kind: kind, path: path}}
end
