defmodule Skillbook.Catalog.SkillFile do
  @moduledoc false
  # Reads the files beside a skill's `SKILL.md`.
  #
  # A file is one of the entry's `files`, which the catalog has listed. No part of its path below
  # the skill's folder may be a link, which could lead to any file of the machine. Only regular
  # files are opened, because a pipe would block.

  require Record

  alias Skillbook.Entry
  alias Skillbook.Support.ReadFile

  Record.defrecordp(
    :info,
    :file_info,
    Record.extract(:file_info, from_lib: "kernel/include/file.hrl")
  )

  @typedoc """
  The state of a file: two equal ones are of the same content, if `changed` is a few seconds in
  the past. `changed` is the later one of its two times, in seconds since 1970.
  """
  @type stat :: %{
          size: non_neg_integer(),
          modified: integer(),
          changed: integer(),
          inode: integer()
        }

  @doc "Returns the state of a file of the entry."
  @spec stat(Entry.t(), String.t()) :: {:ok, stat()} | :error
  def stat(%Entry{path: path}, file) do
    folder = Path.dirname(path)
    names = String.split(file, "/")

    if Enum.all?(names, &(&1 not in ["", ".", ".."])),
      do: walk(folder, names),
      else: :error
  end

  defp walk(folder, [name]) do
    case state(folder, name) do
      {:ok, info(type: :regular, size: size, mtime: modified, ctime: changed, inode: inode)} ->
        changed = max(modified, changed)
        {:ok, %{size: size, modified: modified, changed: changed, inode: inode}}

      _ ->
        :error
    end
  end

  defp walk(folder, [name | names]) do
    case state(folder, name) do
      {:ok, info(type: :directory)} -> walk(Path.join(folder, name), names)
      _ -> :error
    end
  end

  # Without the file server, which would serve one caller at a time.
  defp state(folder, name),
    do: :file.read_link_info(Path.join(folder, name), [:raw, time: :posix])

  @doc """
  Returns the content of a file of the entry.

  `:error` means that it is none of the entry's files, or cannot be read; `{:error, :efbig}` that
  it has more than `max` bytes.
  """
  @spec read(Entry.t(), String.t(), non_neg_integer()) ::
          {:ok, binary()} | :error | {:error, :efbig}
  def read(%Entry{files: files, path: path} = entry, file, max) do
    with true <- file in files,
         {:ok, _} <- stat(entry, file),
         {:ok, bytes} <- ReadFile.read(Path.join(Path.dirname(path), file), max) do
      {:ok, bytes}
    else
      {:error, :efbig} -> {:error, :efbig}
      _ -> :error
    end
  end
end
