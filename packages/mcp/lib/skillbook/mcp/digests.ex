defmodule Skillbook.MCP.Digests do
  @moduledoc false
  # The digests of skills' files. A book keeps them, so that a file is read again only when it has
  # changed.

  alias Skillbook.Book.Cache
  alias Skillbook.Catalog.SkillFile
  alias Skillbook.Entry
  alias Skillbook.Package.Publish

  # Seconds after a change in which a file is not kept: the times of a file are whole seconds, and
  # a second change may leave them and the size as they are.
  @settled 3

  @doc """
  Returns the digest and the size of a file of the entry; `:error` if it cannot be read, and
  `{:error, :efbig}` if it has more than `max` bytes.
  """
  @spec fetch(atom() | nil, Entry.t(), String.t(), non_neg_integer()) ::
          {:ok, String.t(), non_neg_integer()} | :error | {:error, :efbig}
  def fetch(book, entry, file, max) do
    with {:ok, stat} <- SkillFile.stat(entry, file) do
      key = {entry.path, file}

      case Cache.fetch(book, SkillDigests, key) do
        {:ok, {^stat, digest}} when stat.size <= max -> {:ok, digest, stat.size}
        _ when stat.size > max -> {:error, :efbig}
        _ -> read(book, key, stat, entry, max)
      end
    end
  end

  defp read(book, {_path, file} = key, stat, entry, max) do
    with {:ok, bytes} <- SkillFile.read(entry, file, max) do
      digest = Publish.digest(bytes)
      size = byte_size(bytes)

      if size == stat.size and System.os_time(:second) - stat.changed >= @settled,
        do: Cache.put(book, SkillDigests, key, {stat, digest})

      {:ok, digest, size}
    end
  end
end
