defmodule Skillbook.Package.Installed do
  @moduledoc false
  # The folders of installed skills: put there, taken away, and compared with what the lock file says.
  #
  # A new folder is made whole beside the others, under a name with a dot that no reader looks at, and takes its place by a
  # rename. What was there is moved aside before. What is to happen stands in a file of its own from before the first
  # rename on, so that whoever comes next ends or undoes what a process left that was killed in between.

  alias Skillbook.Package.{Item, LockFile}
  alias Skillbook.Support.JSON
  alias Skillbook.{Document, PackageError}

  @stage ".skillbook-stage-"
  @plan "plan.json"

  # What running a skill leaves in its folder.
  @ignored ["__pycache__", "node_modules", ".DS_Store"]

  @doc """
  Puts a skill in its place, in that of an older one of that name if there is one, and into the lock file; nothing of it is
  executable. With `:no_entry` it is not installed but our own: it keeps its modes, and the lock file is left alone.
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
      plan!(folder, stage, %{"name" => name, "entry" => entry})
      aside!(folder, stage, name)
      rename!(new, Path.join(folder, name))
      Document.sync_folder(folder)
      finish(folder, stage, name, entry)
    end)
  end

  @doc "Takes a skill away, and out of the lock file."
  @spec delete(Path.t(), String.t()) :: :ok | {:error, PackageError.t()}
  def delete(folder, name) do
    staged(folder, fn stage ->
      plan!(folder, stage, %{"name" => name, "entry" => nil})
      aside!(folder, stage, name)
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

  @doc "Ends or undoes what a process left that was killed; nobody else may be at work in the folder."
  def recover(folder) do
    with {:ok, names} <- File.ls(folder) do
      for @stage <> _ = name <- names, do: settle(folder, Path.join(folder, name))
    end

    :ok
  end

  defp settle(folder, stage) do
    new = Path.join(stage, "new")
    old = Path.join(stage, "old")

    with {:ok, text} <- File.read(Path.join(stage, @plan)),
         {:ok, %{"name" => name} = plan} <- JSON.decode(text) do
      place = Path.join(folder, name)

      cond do
        # Not put in its place: what was there goes back.
        exists?(new) ->
          if exists?(old) and not exists?(place), do: :file.rename(old, place)
          File.rm(Path.join(stage, @plan))
          Document.sync_folder(stage)

        # A removal that had not begun.
        plan["entry"] == nil and not exists?(old) and exists?(place) ->
          :ok

        true ->
          record(folder, name, plan["entry"])
      end
    end

    File.rm_rf(stage)
  end

  defp exists?(path), do: match?({:ok, _}, File.lstat(path))

  defp plan!(folder, stage, plan) do
    case Document.create(stage, @plan, JSON.encode(plan)) do
      {:ok, _} -> Document.sync_folder(folder)
      {:error, error} -> throw({:failed, error.path, error.reason || :eio})
    end
  end

  defp aside!(folder, stage, name) do
    place = Path.join(folder, name)
    if exists?(place), do: rename!(place, Path.join(stage, "old"))
  end

  defp rename!(from, to) do
    with {:error, reason} <- :file.rename(from, to), do: throw({:failed, to, reason})
  end

  defp write!(path, bytes, mode) do
    with :ok <- File.mkdir_p(Path.dirname(path)),
         {:ok, file} <- :file.open(path, [:write, :exclusive, :raw]),
         :ok <- written(file, bytes),
         :ok <- File.chmod(path, mode) do
      :ok
    else
      {:error, reason} -> throw({:failed, path, reason})
    end
  end

  defp written(file, bytes) do
    result = with :ok <- :file.write(file, bytes), do: :file.sync(file)
    closed = :file.close(file)
    if result == :ok, do: closed, else: result
  end

  # Those of the files, each once.
  defp folders(files),
    do: files |> Enum.flat_map(fn {item, _} -> above(item.path) end) |> Enum.uniq()

  defp above("."), do: []
  defp above(path), do: [Path.dirname(path) | above(Path.dirname(path))]

  @doc """
  How a skill's folder differs from its entry: `:same`, `:missing`, or the paths that were added, changed and removed by hand.
  Modes do not count: whoever installed a script may have made it executable.
  """
  @spec compare(Path.t(), String.t(), LockFile.entry()) ::
          :same | :missing | {:changed, [{:added | :changed | :removed, String.t()}]}
  def compare(folder, name, entry) do
    place = Path.join(folder, name)

    case File.lstat(place) do
      {:error, _} ->
        :missing

      {:ok, %{type: :directory}} ->
        there = place |> list("") |> Map.new()
        locked = entry["files"]

        changes =
          for(path <- Map.keys(there), not Map.has_key?(locked, path), do: {:added, path}) ++
            for {path, hash} <- locked, there[path] != hash do
              {if(Map.has_key?(there, path), do: :changed, else: :removed), path}
            end

        if changes == [], do: :same, else: {:changed, Enum.sort_by(changes, &elem(&1, 1))}

      {:ok, _} ->
        {:changed, [{:changed, name}]}
    end
  end

  defp list(root, below) do
    case File.ls(Path.join(root, below)) do
      {:ok, names} ->
        names |> Enum.reject(&(&1 in @ignored)) |> Enum.flat_map(&one(root, Path.join(below, &1)))

      {:error, reason} ->
        [{below, reason}]
    end
  end

  defp one(root, path) do
    whole = Path.join(root, path)

    case File.lstat(whole) do
      {:ok, %{type: :directory}} ->
        list(root, path)

      {:ok, %{type: :regular, size: size}} ->
        [{path, if(size <= Item.largest(), do: hash(whole))}]

      {:ok, %{type: type}} ->
        [{path, type}]

      {:error, reason} ->
        [{path, reason}]
    end
  end

  defp hash(path) do
    with {:ok, bytes} <- File.read(path), do: digest(bytes), else: ({:error, reason} -> reason)
  end

  @doc "A file's own hash in the lock file."
  def digest(bytes), do: :sha256 |> :crypto.hash(bytes) |> Base.encode16(case: :lower)

  @doc "The text of an installed file, or `nil`."
  def text(folder, name, path) do
    with {:ok, bytes} <- File.read(Path.join([folder, name, path])),
         true <- String.valid?(bytes),
         do: bytes,
         else: (_ -> nil)
  end
end
