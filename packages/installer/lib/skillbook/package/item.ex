defmodule Skillbook.Package.Item do
  @moduledoc false
  # A file of a source, and the rules for files that may be installed: their kinds, names,
  # number and sizes. The same rules hold for folders, archives and git repositories.

  alias Skillbook.PackageError
  alias Skillbook.Support.FileName

  @type t :: %__MODULE__{
          path: String.t(),
          type: :file | :link | :special,
          executable: boolean(),
          size: non_neg_integer(),
          content: term()
        }

  @enforce_keys [:path, :type]
  defstruct [:path, :type, :content, executable: false, size: 0]

  # For one skill
  @max_files 1_000
  @max_file_size 16 * 1024 * 1024
  @max_size 64 * 1024 * 1024
  @max_path 1_000
  @max_depth 32

  # For a source, which may have several skills
  @max_source_size 4 * @max_size
  @max_source_entries 50_000

  @doc "The maximum size of a file, in bytes."
  def max_file_size, do: @max_file_size

  @doc "The maximum size of a source once unpacked, in bytes."
  def max_source_size, do: @max_source_size

  @doc "The maximum number of files and folders of a source."
  def max_source_entries, do: @max_source_entries

  @doc "Checks the files of one skill: their kinds, names, number and sizes."
  @spec check([t()]) :: :ok | {:error, PackageError.t()}
  def check(items) do
    with :ok <- each(items, &kind/1),
         :ok <- each(items, &name/1),
         :ok <- each(items, &size/1),
         :ok <- limits(items),
         do: collisions(items)
  end

  @doc "Checks that a path stays inside its archive. One bad path rejects the whole archive."
  @spec inside(String.t()) :: :ok | {:error, PackageError.t()}
  def inside(path) do
    cond do
      not String.valid?(path) or String.contains?(path, <<0>>) ->
        name_error(path, "has a name that is not UTF-8")

      String.starts_with?(path, ["/", "\\"]) or path =~ ~r/\A[A-Za-z]:/ ->
        name_error(path, "has an absolute name")

      ".." in String.split(path, ["/", "\\"]) ->
        name_error(path, "leads out of the archive")

      byte_size(path) > @max_path ->
        name_error(String.slice(path, 0, 60) <> "…", "has a name of more than #{@max_path} bytes")

      true ->
        :ok
    end
  end

  defp each(items, fun) do
    Enum.find_value(items, :ok, fn item ->
      with :ok <- fun.(item), do: nil
    end)
  end

  defp kind(%{type: :file}), do: :ok

  defp kind(%{type: :link, path: path}),
    do:
      PackageError.new(
        :special,
        path,
        "is a link, and links are not installed",
        "ask its author for a copy of the file"
      )

  defp kind(%{path: path}),
    do: PackageError.new(:special, path, "is neither a file nor a folder, and is not installed")

  defp name(%{path: path}) do
    parts = String.split(path, "/")

    cond do
      not String.valid?(path) ->
        name_error(path, "has a name that is not UTF-8")

      byte_size(path) > @max_path ->
        name_error(path, "has a name of more than #{@max_path} bytes")

      length(parts) > @max_depth ->
        name_error(path, "is more than #{@max_depth} folders deep")

      true ->
        each(parts, &part(&1, path))
    end
  end

  defp part(part, path) do
    with {:error, reason} <- FileName.check(part), do: name_error(path, reason)
  end

  defp size(%{size: size, path: path}) when size > @max_file_size,
    do: PackageError.new(:limit, path, "has #{size} bytes, and a file may have #{@max_file_size}")

  defp size(_item), do: :ok

  defp limits(items) do
    total = items |> Enum.map(& &1.size) |> Enum.sum()

    cond do
      length(items) > @max_files ->
        PackageError.new(
          :limit,
          "the skill",
          "has #{length(items)} files, and may have #{@max_files}"
        )

      total > @max_size ->
        PackageError.new(
          :limit,
          "the skill",
          "has #{total} bytes in all, and may have #{@max_size}"
        )

      true ->
        :ok
    end
  end

  # A file system may treat two spellings as one name, so one file would silently replace another.
  defp collisions(items) do
    files = Enum.map(items, & &1.path)
    folders = files |> Enum.flat_map(&folders/1) |> Enum.uniq()

    (files ++ folders)
    |> Enum.reduce_while(%{}, fn path, seen ->
      case Map.fetch(seen, fold(path)) do
        {:ok, other} -> {:halt, {path, other}}
        :error -> {:cont, Map.put(seen, fold(path), path)}
      end
    end)
    |> case do
      {path, path} ->
        name_error(path, "occurs twice")

      {path, other} ->
        name_error(path, "differs from #{other} only in case or in the form of its characters")

      %{} ->
        :ok
    end
  end

  defp folders(path) do
    case Path.dirname(path) do
      "." -> []
      folder -> [folder | folders(folder)]
    end
  end

  defp fold(path), do: path |> String.normalize(:nfkc) |> String.upcase() |> String.downcase()

  defp name_error(path, reason),
    do: PackageError.new(:name, path, reason <> ", and nothing is installed")

  @doc """
  The hash of a skill's files: SHA-256 in hexadecimal, over the files sorted by path.

  Each file adds its path, a zero byte, its mode (`755` if executable, else `644`), a zero byte,
  its size in decimal digits, a zero byte, and its content.
  """
  @spec hash([{t(), binary()}]) :: String.t()
  def hash(files) do
    files
    |> Enum.sort_by(fn {item, _} -> item.path end)
    |> Enum.reduce(:crypto.hash_init(:sha256), fn {item, bytes}, state ->
      mode = if item.executable, do: "755", else: "644"

      :crypto.hash_update(state, [
        item.path,
        0,
        mode,
        0,
        Integer.to_string(byte_size(bytes)),
        0,
        bytes
      ])
    end)
    |> :crypto.hash_final()
    |> Base.encode16(case: :lower)
  end
end
