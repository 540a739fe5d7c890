defmodule Skillbook.Book.Cache do
  @moduledoc false
  # Results that a book keeps in ETS tables, which its supervisor owns. A row depends on nothing
  # but its key, or says itself of which state it is, so rows are removed only when a table is
  # full:
  #
  #   * `PreflightCache` - the picks for recent requests. A key is a hash of everything that the
  #     picks depend on: the texts, what the profile sees, and the settings
  #   * `PromptShown` - the last prompts that the page showed of a profile
  #   * `SkillDigests` - the digests of skills' files, by their paths, with the state of the file
  #   * `EntryLists` - lists that were made from a view (`keep/3`): the entries that the page
  #     showed, as names, and the pages of tools, skills and diagnostics
  #   * `PageChats` - the conversations of the page, limited by `Skillbook.Web.Page.Chats`
  #   * `PublishedSkills` - the rows of `Skillbook.Web.Published.Cache`, which limits them itself

  @tables [
    {PreflightCache, 1_000},
    {PromptShown, 64},
    {SkillDigests, 20_000},
    {EntryLists, 1_000},
    {PageChats, :infinity},
    {PublishedSkills, :infinity}
  ]

  @wait 20
  # Bytes of one list, and of all.
  @max_list 8 * 1024 * 1024
  @max_lists 64 * 1024 * 1024

  @type table :: PreflightCache | PromptShown | SkillDigests | PageChats

  @spec new(atom()) :: :ok
  def new(book) do
    for {table, _max} <- @tables,
        do: :ets.new(name(book, table), [:named_table, :public, read_concurrency: true])

    :ok
  end

  @doc "A hash of a term, for a key."
  @spec key(term()) :: binary()
  def key(term), do: :crypto.hash(:sha256, :erlang.term_to_binary(term))

  @spec fetch(atom() | nil, table(), term()) :: {:ok, term()} | :error
  def fetch(nil, _table, _key), do: :error

  def fetch(book, table, key) do
    case :ets.lookup(name(book, table), key) do
      [{_key, value}] -> {:ok, value}
      [] -> :error
    end
  rescue
    # The book has stopped since.
    ArgumentError -> :error
  end

  @spec put(atom() | nil, table(), term(), term()) :: :ok
  def put(nil, _table, _key, _value), do: :ok

  def put(book, table, key, value) do
    ets = name(book, table)
    if :ets.info(ets, :size) >= @tables[table], do: :ets.delete_all_objects(ets)
    :ets.insert(ets, {key, value})
    :ok
  rescue
    ArgumentError -> :ok
  end

  @doc """
  Returns the list of a key, and makes it if it is missing. The key has everything that the list
  depends on, such as `Skillbook.View.state/1`. Its large parts are best binaries, which are not
  copied when they are read.

  A list that depends on the time, too, is made anew if `valid?` says so.

  Of several processes that need a list at once, one makes it. A list that is too large is not
  kept; then each process makes its own.
  """
  @spec keep(atom() | nil, term(), (() -> value), (value -> boolean())) :: value
        when value: term()
  def keep(book, key, make, valid? \\ fn _list -> true end)
  def keep(nil, _key, make, _valid?), do: make.()

  def keep(book, key, make, valid?) do
    key = key(key)
    found = fn -> fetch_list(book, key, valid?) end

    # Another process may have made it since the last look.
    again = fn ->
      with {:ok, list} <- found.(), do: list, else: (:error -> make(book, key, make))
    end

    list =
      with :error <- found.(),
           do: {:ok, once(name(book, EntryLists), key, found, again)}

    case list do
      {:ok, :too_large} -> make.()
      {:ok, list} -> list
    end
  end

  @doc "The same for a function that returns `{:ok, list}` or an error, which is not kept."
  @spec keep_ok(atom() | nil, term(), (() -> result)) :: result
        when result: {:ok, term()} | {:error, Exception.t()}
  def keep_ok(book, key, make) do
    list = fn -> with {:error, _error} = error <- make.(), do: throw({__MODULE__, error}) end
    keep(book, key, list)
  catch
    {__MODULE__, error} -> error
  end

  defp make(book, key, make) do
    list = make.()
    size = :erlang.external_size(list)
    kept = if size <= @max_list, do: {key, list, size}, else: {key, :too_large, 0}
    put_list(name(book, EntryLists), kept)
    list
  end

  defp fetch_list(book, key, valid?) do
    case :ets.lookup(name(book, EntryLists), key) do
      [{_key, :too_large, _size}] -> {:ok, :too_large}
      [{_key, list, _size}] -> if valid?.(list), do: {:ok, list}, else: :error
      [] -> :error
    end
  rescue
    # The book has stopped since.
    ArgumentError -> :error
  end

  defp put_list(ets, {_key, _list, size} = row) do
    sizes = :ets.select(ets, [{{:_, :_, :"$1"}, [], [:"$1"]}])

    if length(sizes) >= @tables[EntryLists] or Enum.sum(sizes) + size > @max_lists,
      do: :ets.delete_all_objects(ets)

    :ets.insert(ets, row)
  rescue
    ArgumentError -> true
  end

  @doc """
  Calls `make`, which keeps its result under a key. Of several processes that need it at once, one
  makes it; the others wait, and take what `found` returns then.
  """
  @spec once(:ets.table(), term(), (() -> {:ok, value} | :error), (() -> value)) :: value
        when value: term()
  def once(ets, key, found, make) do
    if begin(ets, key) do
      try do
        make.()
      after
        finish(ets, key)
      end
    else
      wait(ets, key)
      with {:ok, value} <- found.(), do: value, else: (:error -> once(ets, key, found, make))
    end
  end

  defp begin(ets, key) do
    :ets.insert_new(ets, {{:making, key}, self()})
  rescue
    # The book has stopped since.
    ArgumentError -> true
  end

  defp finish(ets, key) do
    :ets.delete_object(ets, {{:making, key}, self()})
  rescue
    ArgumentError -> true
  end

  # The process that makes it may be killed, with its connection.
  defp wait(ets, key) do
    with [{_, pid} = row] <- :ets.lookup(ets, {:making, key}) do
      if Process.alive?(pid), do: Process.sleep(@wait), else: :ets.delete_object(ets, row)
      wait(ets, key)
    end
  rescue
    ArgumentError -> :stopped
  end

  @doc "The name of a table."
  @spec name(atom(), table() | EntryLists | PublishedSkills) :: atom()
  def name(book, table), do: Module.concat(book, table)
end
