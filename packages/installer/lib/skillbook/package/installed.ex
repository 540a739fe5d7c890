defmodule Skillbook.Package.Installed do
  @moduledoc false
  # The folder of installed skills: reads its entries, locks it, writes and deletes skills, and
  # compares them with the lock file.
  #
  # Writes are atomic, as far as the file system allows. A skill is written to a staging folder
  # first, whose name begins with a dot so that no source reads it. The old skill is moved into
  # the staging folder, and the new one is renamed into its place. A journal, `plan.json`, is
  # written before the first rename; `recover/1` uses it to finish or undo the work of a killed
  # process.

  alias Skillbook.Package.{FolderLock, Item, LockFile}
  alias Skillbook.Support.{JSON, ReadFile}
  alias Skillbook.{Document, PackageError}

  @stage ".skillbook-stage-"
  @journal "plan.json"
  @max_listed_changes 5

  # Files that running a skill, or looking at its folder, leaves behind.
  @ignored ["__pycache__", "node_modules", ".DS_Store"]

  @doc "Recovers the folder, creating it if needed, and returns the lock file's entries by name."
  @spec entries(keyword()) ::
          {:ok, %{String.t() => LockFile.entry()}} | {:error, PackageError.t()}
  def entries(options) do
    to = options[:to]

    with :ok <- create(to),
         :ok <- FolderLock.run(to, options[:lock_timeout], fn -> recover(to) end),
         do: LockFile.read(to)
  end

  defp create(folder) do
    with {:error, reason} <- File.mkdir_p(folder), do: PackageError.io(folder, reason)
  end

  @doc "The entries of the named skills, or all for `[]`, sorted by name. Creates no folder."
  @spec select([String.t()], keyword()) ::
          {:ok, [{String.t(), LockFile.entry()}]} | {:error, PackageError.t()}
  def select(names, options) do
    to = options[:to]

    with {:ok, entries} <- if(File.dir?(to), do: entries(options), else: {:ok, %{}}) do
      case {names, Enum.find(names, &(not Map.has_key?(entries, &1)))} do
        {[], nil} ->
          {:ok, Enum.sort(entries)}

        {names, nil} ->
          {:ok, entries |> Map.take(names) |> Enum.sort()}

        {_, name} ->
          PackageError.new(:unknown, name, "is not installed in #{to}", installed(entries))
      end
    end
  end

  defp installed(entries) when entries == %{}, do: "no skill is installed there"

  defp installed(entries),
    do: "installed skills: #{entries |> Map.keys() |> Enum.sort() |> Enum.join(", ")}"

  @doc """
  Calls the function under the folder's lock, if the skill's entry is still `entry`.

  Otherwise another process has changed the skill since `entry` was read, which is an error.
  """
  @spec change(String.t(), LockFile.entry() | nil, keyword(), (() -> result)) ::
          result | {:error, PackageError.t()}
        when result: term()
  def change(name, entry, options, fun) do
    FolderLock.run(options[:to], options[:lock_timeout], fn ->
      with {:ok, entries} <- LockFile.read(options[:to]) do
        if entries[name] == entry,
          do: fun.(),
          else:
            PackageError.new(
              :busy,
              name,
              "was changed by another process in the meantime",
              "check it, then run this again"
            )
      end
    end)
  end

  @doc "Returns an error if the skill was changed by hand, unless `:force` is set."
  @spec check_unchanged(String.t(), LockFile.entry() | nil, keyword()) ::
          :ok | {:error, PackageError.t()}
  def check_unchanged(_name, nil, _options), do: :ok

  def check_unchanged(name, entry, options) do
    case options[:force] || compare(options[:to], name, entry) do
      {:changed, changes} ->
        listed =
          changes
          |> Enum.take(@max_listed_changes)
          |> Enum.map_join(", ", fn {how, path} -> "#{path} #{how}" end)

        left = length(changes) - @max_listed_changes
        more = if left > 0, do: " and #{left} more", else: ""

        PackageError.new(
          :changed,
          name,
          "was changed by hand (#{listed}#{more})",
          "keep a copy of it, then replace it with --force"
        )

      _ ->
        :ok
    end
  end

  @doc """
  Writes a skill's folder, replacing an existing one, and its lock file entry.

  No file is executable. `:no_entry` writes an exported skill instead: its files keep their modes,
  and the lock file is not changed.
  """
  @spec put(Path.t(), String.t(), [{Item.t(), binary()}], LockFile.entry() | :no_entry) ::
          :ok | {:error, PackageError.t()}
  def put(folder, name, files, entry) do
    staged(folder, fn stage ->
      new = Path.join(stage, "new")

      for {item, bytes} <- files do
        mode = if entry == :no_entry and item.executable, do: 0o755, else: 0o644
        write!(Path.join(new, item.path), bytes, mode)
      end

      for path <- folders(files), do: Document.sync_folder(Path.join(new, path))
      write_journal!(folder, stage, %{"name" => name, "entry" => entry})
      move_aside!(folder, stage, name)
      rename!(new, Path.join(folder, name))
      Document.sync_folder(folder)
      finish(folder, stage, name, entry)
    end)
  end

  @doc "Deletes a skill's folder and its lock file entry."
  @spec delete(Path.t(), String.t()) :: :ok | {:error, PackageError.t()}
  def delete(folder, name) do
    staged(folder, fn stage ->
      write_journal!(folder, stage, %{"name" => name, "entry" => nil})
      move_aside!(folder, stage, name)
      Document.sync_folder(folder)
      finish(folder, stage, name, nil)
    end)
  end

  defp finish(folder, stage, name, entry) do
    with :ok <- record(folder, name, entry) do
      File.rm_rf(stage)
      :ok
    end
  end

  defp record(_folder, _name, entry) when entry in [:no_entry, "no_entry"], do: :ok
  defp record(folder, name, entry), do: LockFile.put(folder, name, entry)

  defp staged(folder, fun) do
    stage = Path.join(folder, "#{@stage}#{System.pid()}-#{System.unique_integer([:positive])}")

    try do
      case File.mkdir(stage) do
        :ok -> fun.(stage)
        {:error, reason} -> PackageError.io(stage, reason)
      end
    catch
      {:failed, path, reason} -> PackageError.io(path, reason)
    after
      recover(folder)
    end
  end

  @doc "Finishes or undoes the work of killed processes. The caller must hold the folder's lock."
  def recover(folder) do
    with {:ok, names} <- File.ls(folder) do
      for @stage <> _ = name <- names, do: recover_stage(folder, Path.join(folder, name))
      # A lock file that was being written.
      for name <- names, Document.temporary?(name), do: File.rm(Path.join(folder, name))
    end

    :ok
  end

  defp recover_stage(folder, stage) do
    new = Path.join(stage, "new")
    old = Path.join(stage, "old")

    with {:ok, text} <- File.read(Path.join(stage, @journal)),
         {:ok, %{"name" => name} = plan} <- JSON.decode(text) do
      place = Path.join(folder, name)

      cond do
        # The new folder was not renamed into its place: the old one is moved back.
        exists?(new) ->
          if exists?(old) and not exists?(place), do: :file.rename(old, place)
          File.rm(Path.join(stage, @journal))
          Document.sync_folder(stage)

        # A deletion that had not begun.
        plan["entry"] == nil and not exists?(old) and exists?(place) ->
          :ok

        true ->
          record(folder, name, plan["entry"])
      end
    end

    File.rm_rf(stage)
  end

  defp exists?(path), do: match?({:ok, _}, File.lstat(path))

  defp write_journal!(folder, stage, plan) do
    case Document.create(stage, @journal, JSON.encode(plan)) do
      {:ok, _} -> Document.sync_folder(folder)
      {:error, error} -> throw({:failed, error.path, error.reason || :eio})
    end
  end

  defp move_aside!(folder, stage, name) do
    place = Path.join(folder, name)
    if exists?(place), do: rename!(place, Path.join(stage, "old"))
  end

  defp rename!(from, to) do
    with {:error, reason} <- :file.rename(from, to), do: throw({:failed, to, reason})
  end

  defp write!(path, bytes, mode) do
    with :ok <- File.mkdir_p(Path.dirname(path)),
         {:ok, file} <- :file.open(path, [:write, :exclusive, :raw]),
         :ok <- write_synced(file, bytes),
         :ok <- File.chmod(path, mode) do
      :ok
    else
      {:error, reason} -> throw({:failed, path, reason})
    end
  end

  defp write_synced(file, bytes) do
    result = with :ok <- :file.write(file, bytes), do: :file.sync(file)
    closed = :file.close(file)
    if result == :ok, do: closed, else: result
  end

  defp folders(files),
    do: files |> Enum.flat_map(fn {item, _} -> parents(item.path) end) |> Enum.uniq()

  defp parents("."), do: []
  defp parents(path), do: [Path.dirname(path) | parents(Path.dirname(path))]

  @doc """
  Compares a skill's folder with its entry.

  Returns `:same`, `:missing`, or the paths that were added, changed or removed by hand. Modes are
  not compared, because a user may make an installed script executable.
  """
  @spec compare(Path.t(), String.t(), LockFile.entry()) ::
          :same | :missing | {:changed, [{:added | :changed | :removed, String.t()}]}
  def compare(folder, name, entry) do
    place = Path.join(folder, name)

    case File.lstat(place) do
      {:error, _} ->
        :missing

      {:ok, %{type: :directory}} ->
        present = place |> list("") |> Map.new()
        locked = entry["files"]

        changes =
          for(path <- Map.keys(present), not Map.has_key?(locked, path), do: {:added, path}) ++
            for {path, hash} <- locked, present[path] != hash do
              {if(Map.has_key?(present, path), do: :changed, else: :removed), path}
            end

        if changes == [], do: :same, else: {:changed, Enum.sort_by(changes, &elem(&1, 1))}

      {:ok, _} ->
        {:changed, [{:changed, name}]}
    end
  end

  defp list(root, below) do
    case File.ls(Path.join(root, below)) do
      {:ok, names} ->
        names
        |> Enum.reject(&(&1 in @ignored))
        |> Enum.flat_map(&list_one(root, Path.join(below, &1)))

      {:error, reason} ->
        [{below, reason}]
    end
  end

  defp list_one(root, path) do
    full = Path.join(root, path)

    case File.lstat(full) do
      {:ok, %{type: :directory}} ->
        list(root, path)

      {:ok, %{type: :regular, size: size}} ->
        [{path, if(size <= Item.max_file_size(), do: hash(full))}]

      {:ok, %{type: type}} ->
        [{path, type}]

      {:error, reason} ->
        [{path, reason}]
    end
  end

  defp hash(path) do
    with {:ok, bytes} <- ReadFile.regular(path, Item.max_file_size()),
         do: digest(bytes),
         else: ({:error, reason} -> reason)
  end

  @doc "The hash of a file in the lock file: SHA-256 in hexadecimal."
  def digest(bytes), do: :sha256 |> :crypto.hash(bytes) |> Base.encode16(case: :lower)

  @doc "The content of an installed file, `nil` if it cannot be read or is not UTF-8."
  def text(folder, name, path) do
    with {:ok, bytes} <- ReadFile.regular(Path.join([folder, name, path]), Item.max_file_size()),
         true <- String.valid?(bytes),
         do: bytes,
         else: (_ -> nil)
  end
end
