defmodule Skillbook.Vault.Indexer do
  @moduledoc false
  # Keeps what the database has of a vault as its producer has it: all of it at the start, then what it says has changed.
  #
  # Several nodes may index the same vault: what they write is the same, a row is only written if it is other than what is
  # there, and so the second of them finds nothing to do. None waits for another, and none has to be found out to be dead.

  use GenServer

  alias Skillbook.Vault.{Note, Table}
  alias Skillbook.{SQL, Telemetry}

  require Logger

  # So many documents, or bytes, are written at once; other writers wait as long. So many such batches are prepared at once.
  @batch 1_000
  @bytes 8_000_000
  @prepared 2
  # After an error of the database or the producer.
  @again 5_000
  # File systems have times of whole seconds, and a file may change twice in one.
  @settled 2

  @doc "The child of a book for a vault; `sql` gives the handle of the book's database."
  def child_spec({book, vault, sql}),
    do: %{id: {__MODULE__, vault.name}, start: {__MODULE__, :start_link, [book, vault, sql]}}

  def start_link(book, vault, sql),
    do: GenServer.start_link(__MODULE__, {book, vault, sql}, name: name(book, vault.name))

  @doc "Brings the index to what the producer has; it is so when this returns."
  @spec sync(atom(), String.t()) :: {:ok, map()} | {:error, term()}
  def sync(book, vault), do: GenServer.call(name(book, vault), :sync, :infinity)

  @spec subscribe(atom()) :: :ok
  def subscribe(book) do
    if self() in :pg.get_local_members(scope(book), :vaults),
      do: :ok,
      else: :pg.join(scope(book), :vaults, self())
  end

  defp scope(book), do: Module.concat(book, Subscribers)

  # The name of a vault becomes no atom.
  defp name(book, vault), do: {:via, Registry, {registry(book), vault}}

  @doc "What knows the indexers of a book by their vaults."
  def registry(book), do: Module.concat(book, Vaults)

  @impl true
  def init({book, vault, sql}) do
    {module, options} = vault.producer

    watches? =
      vault.watch and Code.ensure_loaded?(module) and function_exported?(module, :watch, 1)

    watch = if watches?, do: module.watch(options)
    {:ok, %{book: book, vault: vault, sql: sql, watch: watch, again: nil}, {:continue, :first}}
  end

  @impl true
  def handle_continue(:first, state), do: {:noreply, refresh(state, :all, false)}

  @impl true
  def handle_call(:sync, _from, state) do
    result = index(state, "", false)
    {:reply, result, told(state, result)}
  end

  @impl true
  def handle_info(:again, state), do: {:noreply, refresh(%{state | again: nil}, :all, false)}

  def handle_info(message, state) do
    case changed(state.vault, message) do
      :ignore -> {:noreply, state}
      changed -> {:noreply, refresh(state, waiting(state.vault, changed), true)}
    end
  end

  defp changed(%{producer: {module, options}}, message) do
    if function_exported?(module, :changed, 2),
      do: module.changed(options, message),
      else: :ignore
  end

  # What was told of meanwhile is one work more, not many. Each message is one that its producer has to read.
  defp waiting(vault, changed) do
    receive do
      {:skillbook_paths, _} = message ->
        case changed(vault, message) do
          :ignore ->
            waiting(vault, changed)

          more when is_list(more) and is_list(changed) ->
            waiting(vault, Enum.uniq(more ++ changed))

          _ ->
            waiting(vault, :all)
        end
    after
      0 -> changed
    end
  end

  defp refresh(state, :all, _reported), do: told(state, index(state, "", false))

  defp refresh(state, ids, reported) do
    Enum.reduce(ids, {:ok, counts()}, fn id, total ->
      with {:ok, total} <- total,
           {:ok, more} <- index(state, id, reported),
           do: {:ok, add(total, more)}
    end)
    |> then(&told(state, &1))
  end

  defp told(state, {:ok, counts}) do
    if counts.indexed + counts.removed > 0 do
      metadata = %{book: state.book, vault: state.vault.name}

      Telemetry.event(
        [:skillbook, :vault, :indexed],
        Map.take(counts, [:indexed, :removed, :unchanged, :skipped]),
        metadata
      )
    end

    tell(state, {:skillbook_vault, state.book, state.vault.name, counts})

    if counts.failed > 0,
      do: again(state, "#{counts.failed} of its documents could not be read"),
      else: state
  end

  defp told(state, {:error, reason}),
    do: again(state, "it could not be indexed: #{reason(reason)}")

  defp again(%{again: nil} = state, why) do
    Logger.warning("the vault #{state.vault.name} will be tried again, for #{why}")
    %{state | again: Process.send_after(self(), :again, @again)}
  end

  defp again(state, _why), do: state

  defp tell(state, message),
    do: for(pid <- :pg.get_local_members(scope(state.book), :vaults), do: send(pid, message))

  defp reason(error) when is_exception(error), do: Exception.message(error)
  defp reason(reason) when is_atom(reason), do: reason |> :file.format_error() |> known(reason)
  defp reason(reason) when is_binary(reason), do: reason
  defp reason(reason), do: inspect(reason)

  # Not all reasons are those of files.
  defp known(~c"unknown POSIX error" ++ _, reason), do: to_string(reason)
  defp known(text, _reason), do: to_string(text)

  defp index(state, under, reported) do
    %{vault: %{producer: {module, options}} = vault} = state
    sql = state.sql.()

    with {:ok, references, skipped} <- list(module, options, under),
         references = Enum.uniq_by(references, & &1.id),
         {:ok, known} <- Table.references(sql, vault.name, under),
         for(reason <- skipped, do: warn(vault, reason)),
         gone = Map.keys(known) -- Enum.map(references, & &1.id),
         {:ok, removed} <- Table.remove(sql, vault.name, gone),
         {same, open} =
           Enum.split_with(references, &(not reported and unchanged?(&1, known[&1.id]))),
         start = %{counts() | removed: removed, unchanged: length(same), skipped: length(skipped)},
         {:ok, counts} <- batches(state, sql, open, start) do
      {:ok, counts}
    end
  end

  defp list(module, options, under) do
    with {:ok, references} <- guard(fn -> module.list(options, under) end),
         do: {:ok, references, []}
  end

  # A producer that raises has an error like another: what is known stays, and it is tried again.
  defp guard(fun) do
    fun.()
  rescue
    error -> {:error, error}
  catch
    :exit, reason -> {:error, Exception.format_exit(reason)}
    value -> {:error, {:throw, value}}
  end

  defp counts, do: %{indexed: 0, removed: 0, unchanged: 0, skipped: 0, failed: 0}
  defp add(one, other), do: Map.merge(one, other, fn _, a, b -> a + b end)

  defp unchanged?(_reference, nil), do: false
  defp unchanged?(%{mtime: nil}, _known), do: false

  defp unchanged?(%{size: size, mtime: mtime}, {size, mtime, indexed_at}) do
    {:ok, at, 0} = DateTime.from_iso8601(indexed_at)
    mtime + @settled < DateTime.to_unix(at)
  end

  defp unchanged?(_reference, _known), do: false

  defp batches(state, sql, references, counts) do
    total = length(references)

    references
    |> Enum.sort_by(& &1.id)
    |> Enum.chunk_while({[], 0}, &gather/2, &gathered/1)
    |> Task.async_stream(&{length(&1), prepare(state.vault, sql, &1)},
      max_concurrency: @prepared,
      timeout: :infinity
    )
    |> Enum.reduce_while({:ok, counts, 0}, fn {:ok, {count, prepared}}, {:ok, counts, done} ->
      with {:ok, prepared} <- prepared, {:ok, more} <- write(state.vault, sql, prepared) do
        progress(state, done, done + count, total)
        {:cont, {:ok, add(counts, more), done + count}}
      else
        error -> {:halt, error}
      end
    end)
    |> then(fn result -> with {:ok, counts, _done} <- result, do: {:ok, counts} end)
  end

  defp gather(reference, {batch, bytes}) do
    more = bytes + (reference.size || 0)

    if batch != [] and (length(batch) == @batch or more > @bytes),
      do: {:cont, Enum.reverse(batch), {[reference], more - bytes}},
      else: {:cont, {[reference | batch], more}}
  end

  defp gathered({[], _bytes}), do: {:cont, nil}
  defp gathered({batch, _bytes}), do: {:cont, Enum.reverse(batch), nil}

  # A change of a few notes is no progress to tell of.
  defp progress(_state, _before, _done, total) when total <= @batch, do: :ok

  defp progress(state, before, done, total) do
    metadata = %{book: state.book, vault: state.vault.name}
    Telemetry.event([:skillbook, :vault, :progress], %{done: done, total: total}, metadata)

    tell(
      state,
      {:skillbook_vault_progress, state.book, state.vault.name, %{done: done, total: total}}
    )

    # A line at each tenth, so that a large vault fills no log.
    if div(done * 10, total) > div(before * 10, total),
      do: Logger.info("the vault #{state.vault.name}: #{done} of #{total} notes indexed")
  end

  # What changes while it is read is told of again, so it is read once, by whoever has room.
  defp prepare(vault, sql, references) do
    read =
      references
      |> Task.async_stream(&{&1, read(vault, &1)}, timeout: :infinity, ordered: false)
      |> Enum.map(fn {:ok, read} -> read end)

    notes = for {_, {:ok, note}} <- read, do: note
    gone = for {reference, result} <- read, result in [:missing, :skipped], do: reference.id

    [skipped, failed] =
      for kind <- [:skipped, :failed], do: Enum.count(read, &match?({_, ^kind}, &1))

    with {:ok, prepared} <- Table.prepare(sql, vault.name, notes),
         do: {:ok, {prepared, gone, %{counts() | skipped: skipped, failed: failed}}}
  end

  defp write(vault, sql, {{notes, _} = prepared, gone, counts}) do
    with {:ok, put} <- Table.put(sql, vault.name, producer(vault), prepared, DateTime.utc_now()),
         {:ok, removed} <- Table.remove(sql, vault.name, gone),
         do: {:ok, %{counts | indexed: put, removed: removed, unchanged: length(notes) - put}}
  end

  @doc false
  # Also for what is written or pushed by other processes than the indexer.
  @spec put(SQL.t(), Skillbook.Vault.Config.t(), [Note.t()]) ::
          {:ok, non_neg_integer()} | {:error, Exception.t()}
  def put(sql, vault, notes) do
    with {:ok, prepared} <- Table.prepare(sql, vault.name, notes),
         do: Table.put(sql, vault.name, producer(vault), prepared, DateTime.utc_now())
  end

  defp producer(%{producer: nil}), do: "put"
  defp producer(%{producer: {Skillbook.Vault.Folder, _}}), do: "folder"
  defp producer(%{producer: {module, _}}), do: inspect(module)

  defp read(%{producer: {module, options}} = vault, reference) do
    with {:ok, document} <-
           produced(vault, guard(fn -> module.read(options, reference.id) end), reference.id),
         {:ok, note, warning} <-
           Note.read(
             reference.id,
             document.path,
             document.content,
             Map.get(document, :labels, [])
           ) do
      if warning, do: warn(vault, "#{note.path}: #{warning}")
      {:ok, %{note | size: reference.size, mtime: reference.mtime}}
    else
      none when none in [:missing, :failed] ->
        none

      {_skip, reason} ->
        warn(vault, "#{reference.id} is not indexed: #{reason(reason)}")
        :skipped
    end
  end

  defp produced(vault, {:error, reason}, id) do
    warn(vault, "#{id} could not be read: #{reason(reason)}")
    :failed
  end

  defp produced(_vault, read, _id), do: read

  defp warn(vault, reason), do: Logger.warning("the vault #{vault.name}: #{reason}")
end
