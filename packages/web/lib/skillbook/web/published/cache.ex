defmodule Skillbook.Web.Published.Cache do
  @moduledoc false
  # Keeps the indexes of published skills, and archives, in a table of `Skillbook.Book.Cache`. The
  # key of an index is a hash of all that it depends on, apart from the other files of skills,
  # which no generation counts. Those are compared by size, time and mode, at most once a second.
  #
  # Archives are kept by their digests. If a limit is reached, all indexes or all archives go.

  alias Skillbook.Book
  alias Skillbook.Package.Publish

  # A book that changes all the time leaves old indexes behind.
  @max_indexes 8
  @max_archives 64 * 1024 * 1024
  @recheck 1_000

  @typedoc "The result of `make`: the text of an index, its skills, and their other files."
  @type made :: %{
          text: binary(),
          etag: String.t(),
          skills: [Publish.skill()],
          files: [Path.t()]
        }

  @doc """
  Returns the text and the etag of the index of a key. Calls `make` if it is missing or a file has
  changed since.

  Of several processes that need it at once, one makes it.
  """
  @spec index(atom(), binary(), (() -> made())) :: {binary(), String.t()}
  def index(book, key, make) do
    table = name(book)

    case :ets.lookup(table, {:index, key}) do
      [{_, text, etag, checked}] ->
        cond do
          checked + @recheck > now() -> {text, etag}
          same_files?(table, key) -> checked(table, key, {text, etag})
          true -> make(table, key, make)
        end

      [] ->
        make(table, key, make)
    end
  end

  @doc "Returns the skill of the same index whose artifact has a path, or `:error`."
  @spec skill(atom(), binary(), String.t(), (() -> made())) :: {:ok, Publish.skill()} | :error
  def skill(book, key, path, make) do
    # Another process may remove the index between the two steps, to make it anew.
    with :error <- find_skill(book, key, path, make), do: find_skill(book, key, path, make)
  end

  defp find_skill(book, key, path, make) do
    index(book, key, make)

    case :ets.lookup(name(book), {:skill, key, path}) do
      [{_, skill}] -> {:ok, skill}
      [] -> :error
    end
  end

  @doc "Removes an index whose files turned out to have changed."
  @spec forget(atom(), binary()) :: :ok
  def forget(book, key), do: forget_in(name(book), key)

  defp forget_in(table, key) do
    :ets.delete(table, {:index, key})
    :ets.delete(table, {:files, key})
    :ets.match_delete(table, {{:skill, key, :_}, :_})
    :ok
  end

  defp same_files?(table, key) do
    case :ets.lookup(table, {:files, key}) do
      [{_, files, seen}] -> seen == stamps(files)
      [] -> false
    end
  end

  defp checked(table, key, index) do
    :ets.update_element(table, {:index, key}, {4, now()})
    index
  end

  defp make(table, key, make) do
    found = fn ->
      case :ets.lookup(table, {:index, key}) do
        [{_, text, etag, _}] -> {:ok, {text, etag}}
        [] -> :error
      end
    end

    Book.Cache.once(table, key, found, fn -> make_and_put(table, key, make) end)
  end

  defp make_and_put(table, key, make) do
    index = make.()
    keys = :ets.select(table, [{{{:index, :"$1"}, :_, :_, :_}, [], [:"$1"]}])
    if length(keys) >= @max_indexes, do: Enum.each(keys, &forget_in(table, &1))
    forget_in(table, key)

    # The index comes last, since its row says that the others are there. Files that change from
    # here on are noticed by the next check.
    :ets.insert(table, for(skill <- index.skills, do: {{:skill, key, skill.path}, skill}))
    :ets.insert(table, {{:files, key}, index.files, stamps(index.files)})
    :ets.insert(table, {{:index, key}, index.text, index.etag, now()})
    {index.text, index.etag}
  end

  defp stamps(files) do
    for file <- files do
      case File.stat(file, time: :posix) do
        {:ok, stat} -> {stat.inode, stat.size, stat.mtime, stat.mode}
        {:error, reason} -> reason
      end
    end
  end

  @doc "Returns the archive of a digest, or `:error`."
  @spec archive(atom(), String.t()) :: {:ok, binary()} | :error
  def archive(book, digest) do
    case :ets.lookup(name(book), {:archive, digest}) do
      [{_, bytes, _}] -> {:ok, bytes}
      [] -> :error
    end
  end

  @doc "Keeps an archive."
  @spec put_archive(atom(), String.t(), binary()) :: :ok
  def put_archive(book, digest, bytes) do
    table = name(book)
    kept = Enum.sum(:ets.select(table, [{{{:archive, :_}, :_, :"$1"}, [], [:"$1"]}]))

    if kept + byte_size(bytes) > @max_archives,
      do: :ets.match_delete(table, {{:archive, :_}, :_, :_})

    if byte_size(bytes) <= @max_archives,
      do: :ets.insert(table, {{:archive, digest}, bytes, byte_size(bytes)})

    :ok
  end

  defp now, do: System.monotonic_time(:millisecond)
  defp name(book), do: Book.Cache.name(book, PublishedSkills)
end
