defmodule Skillbook.Document do
  @moduledoc """
  Reads and writes the files of skills below one folder.

  `path` is relative to `root`: names joined by `/`, none of which begins with a dot. Nothing outside `root` is
  ever touched, and no symbolic link below it is followed; `root` itself may be one, since whoever configured it
  chose it. Missing folders are made.

  A write is atomic: the content goes to a temporary file in the same folder, is synced, and takes the file's
  place in one step. A reader sees the old file or the new one, and so does the next start after a power cut.

  ## Examples

      iex> root = Path.join(System.tmp_dir!(), "skillbook-doc-\#{System.unique_integer([:positive])}")
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

  @type result(value) :: {:ok, value} | {:error, DocumentError.t()}

  @longest_name 255

  @doc "Writes a new file and gives its whole path; an existing file is an error, also when two write at once."
  @spec create(Path.t(), String.t(), iodata()) :: result(Path.t())
  def create(root, path, content) do
    # Unlike a rename, a link to a name that is taken fails, which decides between two writers.
    put(root, path, content, &:file.make_link/2)
  end

  @doc "Writes a file, in place of the one that may be there, and gives its whole path."
  @spec replace(Path.t(), String.t(), iodata()) :: result(Path.t())
  def replace(root, path, content) do
    put(root, path, content, fn temporary, target ->
      with {:ok, %{mode: mode}} <- File.stat(target), do: File.chmod(temporary, mode)
      :file.rename(temporary, target)
    end)
  end

  @doc "Reads a file."
  @spec read(Path.t(), String.t()) :: result(binary())
  def read(root, path) do
    with {:ok, names} <- names(path),
         :ok <- each_part(root, names, &no_link/2) do
      root |> Path.join(path) |> File.read() |> explain(path)
    end
  end

  @trash ".trash"

  @doc """
  Takes a file out of the folder, so that no source reads it any more, and gives the path below `root` where it is kept: in
  `.trash`, in a folder of the time, and there under the path that it had, with a number if there is such a file already.

      iex> root = Path.join(System.tmp_dir!(), "skillbook-doc-\#{System.unique_integer([:positive])}")
      iex> {:ok, _} = Skillbook.Document.create(root, "finance/report.md", "# Report")
      iex> Skillbook.Document.discard(root, "finance/report.md", ~U[2026-03-01 08:00:00Z])
      {:ok, ".trash/20260301T080000Z/finance/report.md"}
      iex> File.read(Path.join(root, ".trash/20260301T080000Z/finance/report.md"))
      {:ok, "# Report"}
      iex> {:error, e} = Skillbook.Document.discard(root, "finance/report.md", ~U[2026-03-01 08:00:00Z])
      iex> e.kind
      :missing
      iex> File.rm_rf!(root)
      iex> :ok
      :ok
  """
  @spec discard(Path.t(), String.t(), DateTime.t()) :: result(String.t())
  def discard(root, path, now) do
    source = Path.join(root, path)
    # By its time, so that a name says nothing of what else was taken out.
    time = now |> DateTime.truncate(:second) |> DateTime.to_iso8601(:basic)

    with {:ok, names} <- names(path),
         :ok <- each_part(root, names, &no_link/2),
         {:ok, _} <- File.lstat(source) |> explain(path),
         :ok <- each_part(root, [@trash, time | Enum.drop(names, -1)], &folder/2),
         {:ok, kept} <- keep(root, source, Path.join([@trash, time, path]), 1),
         :ok <- File.rm(source) |> explain(path) do
      sync_folder(Path.dirname(source))
      {:ok, kept}
    end
  end

  # A link to a name that is taken fails, so nothing that is kept is lost.
  defp keep(root, source, path, number) do
    kept = if number == 1, do: path, else: "#{Path.rootname(path)}.#{number}#{Path.extname(path)}"
    target = Path.join(root, kept)

    case :file.make_link(source, target) do
      :ok ->
        sync_folder(Path.dirname(target))
        {:ok, kept}

      {:error, :eexist} ->
        keep(root, source, path, number + 1)

      error ->
        explain(error, kept)
    end
  end

  defp put(root, path, content, place) do
    target = Path.join(root, path)

    with {:ok, names} <- names(path),
         :ok <- File.mkdir_p(root) |> explain(root),
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
    String.valid?(name) and byte_size(name) in 1..@longest_name and
      not Regex.match?(~r/\A[.]|[\x{0}-\x{1F}\x{7F}\\]/u, name)
  end

  defp each_part(root, names, check) do
    names
    |> Enum.scan(&Path.join(&2, &1))
    |> Enum.reduce_while(:ok, fn part, :ok ->
      case check.(Path.join(root, part), part) do
        :ok -> {:cont, :ok}
        error -> {:halt, error}
      end
    end)
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

  defp write(target, content, place) do
    # The leading dot keeps it out of every listing, should this process die before it can take it away.
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
      result = with :ok <- :file.write(file, content), do: :file.sync(file)
      closed = :file.close(file)
      if result == :ok, do: closed, else: result
    end
  end

  @doc false
  # Makes a new name durable. Some file systems cannot; the file itself is safe then all the same.
  def sync_folder(folder) do
    with {:ok, file} <- :file.open(folder, [:read, :raw, :directory]) do
      :file.sync(file)
      :file.close(file)
    end

    :ok
  end

  defp explain({:error, :eexist}, path), do: error(:exists, path)
  defp explain({:error, :enoent}, path), do: error(:missing, path)

  defp explain({:error, reason}, path),
    do: {:error, %DocumentError{kind: :io, path: path, reason: reason}}

  defp explain(fine, _), do: fine

  defp error(kind, path), do: {:error, %DocumentError{kind: kind, path: path}}
end
