defmodule Skillbook.Vault.Indexer do
  @moduledoc false
  # Keeps the index of a vault in sync with its producer: all documents at the start, then those
  # that the producer reports as changed.
  #
  # Several nodes may index the same vault without coordination. They write the same rows, and a
  # row is only written if it differs, so the second node has nothing to do.

  use GenServer

  alias Skillbook.Catalog.Watcher
  alias Skillbook.SQL.Values
  alias Skillbook.Vault.{Note, Table}
  alias Skillbook.{Book, Telemetry}

  require Logger

  # The documents and bytes of one transaction. Other writers wait for it.
  @batch_documents 1_000
  @batch_bytes 8_000_000
  # Batches that are read and prepared at the same time.
  @max_prepared 2
  # Milliseconds until the next attempt after an error of the database or the producer. Each
  # further failure doubles them, up to a minute: a service may be down for hours.
  @retry_after 5_000
  @max_retry_after 60_000
  # Seconds. File systems have times of whole seconds, and a file may change twice within one. So
  # a file that was indexed right after its last change is read again.
  @mtime_precision 2

  @doc "The child specification for a vault of a running book."
  def child_spec({book, vault}),
    do: %{id: {__MODULE__, vault.name}, start: {__MODULE__, :start_link, [book, vault]}}

  def start_link(book, vault),
    do: GenServer.start_link(__MODULE__, {book, vault}, name: name(book, vault.name))

  @doc "Updates the index to match the producer, and returns when it is done."
  @spec sync(atom(), String.t()) :: {:ok, map()} | {:error, term()}
  def sync(book, vault), do: GenServer.call(name(book, vault), :sync, :infinity)

  @spec subscribe(atom()) :: :ok
  def subscribe(book), do: Watcher.subscribe(book, :vaults)

  # Registered by name, because the name of a vault must not become an atom.
  defp name(book, vault), do: {:via, Registry, {registry(book), vault}}

  @doc "The name of the registry of a book's indexers."
  def registry(book), do: Module.concat(book, Vaults)

  @impl true
  def init({book, vault}) do
    {module, options} = vault.producer

    watches? =
      vault.watch and Code.ensure_loaded?(module) and function_exported?(module, :watch, 1)

    watch = if watches?, do: module.watch(options)
    # The result of `watch/1` stays in the state: it may be a resource that ends with its last
    # reference.
    {:ok, %{book: book, vault: vault, watch: watch, retry: nil, failures: 0}, {:continue, :first}}
  end

  @impl true
  def handle_continue(:first, state), do: {:noreply, refresh(state, :all, false)}

  @impl true
  def handle_call(:sync, _from, state) do
    result = index(state, "", false)
    {:reply, result, report(state, result)}
  end

  @impl true
  def handle_info(:retry, state), do: {:noreply, refresh(%{state | retry: nil}, :all, false)}

  def handle_info(message, state) do
    case changed(state.vault, message) do
      :ignore -> {:noreply, state}
      changed -> {:noreply, refresh(state, add_queued(state.vault, changed), true)}
    end
  end

  defp changed(%{producer: {module, options}}, message) do
    if function_exported?(module, :changed, 2),
      do: module.changed(options, message),
      else: :ignore
  end

  # Changes that are already in the mailbox are indexed together.
  defp add_queued(vault, changed) do
    receive do
      {:skillbook_paths, _} = message ->
        case changed(vault, message) do
          :ignore ->
            add_queued(vault, changed)

          more when is_list(more) and is_list(changed) ->
            add_queued(vault, Enum.uniq(more ++ changed))

          _ ->
            add_queued(vault, :all)
        end
    after
      0 -> changed
    end
  end

  defp refresh(state, :all, _reported), do: report(state, index(state, "", false))

  defp refresh(state, ids, reported) do
    Enum.reduce(ids, {:ok, counts()}, fn id, total ->
      with {:ok, total} <- total,
           {:ok, more} <- index(state, id, reported),
           do: {:ok, add(total, more)}
    end)
    |> then(&report(state, &1))
  end

  defp report(state, {:ok, counts}) do
    if counts.indexed + counts.removed > 0 do
      metadata = %{book: state.book, vault: state.vault.name}

      Telemetry.event(
        [:skillbook, :vault, :indexed],
        Map.take(counts, [:indexed, :removed, :unchanged, :skipped]),
        metadata
      )

      Book.embed(state.book, :documents)
    end

    notify(state, {:skillbook_vault, state.book, state.vault.name, counts})

    if counts.failed > 0,
      do: retry(state, "#{counts.failed} of its documents could not be read"),
      else: %{state | failures: 0}
  end

  defp report(state, {:error, reason}),
    do: retry(state, "it could not be indexed: #{reason(reason)}")

  defp retry(%{retry: nil} = state, why) do
    Logger.warning("the vault #{state.vault.name} is indexed again later, because #{why}")
    after_failures = min(@retry_after * 2 ** min(state.failures, 10), @max_retry_after)
    timer = Process.send_after(self(), :retry, after_failures)
    %{state | retry: timer, failures: state.failures + 1}
  end

  defp retry(state, _why), do: state

  defp notify(state, message), do: Watcher.publish(state.book, message, :vaults)

  @doc "The reason of a producer's error, in words."
  @spec reason(term()) :: String.t()
  def reason(error) when is_exception(error), do: Exception.message(error)
  def reason(reason) when is_atom(reason), do: reason |> :file.format_error() |> posix(reason)
  def reason(reason) when is_binary(reason), do: reason
  def reason(reason), do: inspect(reason)

  # Not every atom is an error of a file.
  defp posix(~c"unknown POSIX error" ++ _, reason), do: to_string(reason)
  defp posix(text, _reason), do: to_string(text)

  defp index(state, under, reported) do
    %{vault: %{producer: {module, options}} = vault} = state
    sql = state.book |> Book.fetch!() |> Book.sql()

    with {:ok, references, skipped} <- list(module, options, under),
         references = Enum.uniq_by(references, & &1.id),
         {:ok, known} <- Table.references(sql, vault.name, under),
         for(reason <- skipped, do: warn(vault, reason)),
         missing = Map.keys(known) -- Enum.map(references, & &1.id),
         {:ok, removed} <- Table.remove(sql, vault.name, missing),
         {same, to_read} =
           Enum.split_with(references, &(not reported and unchanged?(&1, known[&1.id]))) do
      start = %{counts() | removed: removed, unchanged: length(same), skipped: length(skipped)}
      batches(state, sql, to_read, start)
    end
  end

  defp list(module, options, under) do
    with {:ok, references} <- guard(fn -> module.list(options, under) end),
         do: {:ok, references, []}
  end

  # A producer that raises is treated like one that returns an error: the index keeps its
  # documents and the vault is indexed again later.
  defp guard(fun) do
    fun.()
  rescue
    error -> {:error, error}
  catch
    :exit, reason -> {:error, Exception.format_exit(reason)}
    value -> {:error, {:throw, value}}
  end

  @doc "The counts of an update that did nothing."
  def counts, do: %{indexed: 0, removed: 0, unchanged: 0, skipped: 0, failed: 0}

  defp add(one, other), do: Map.merge(one, other, fn _, a, b -> a + b end)

  defp unchanged?(_reference, nil), do: false
  defp unchanged?(%{mtime: nil}, _known), do: false

  defp unchanged?(%{size: size, mtime: mtime}, {size, mtime, indexed_at}) do
    mtime + @mtime_precision < DateTime.to_unix(Values.time(indexed_at))
  end

  defp unchanged?(_reference, _known), do: false

  defp batches(state, sql, references, counts) do
    total = length(references)

    references
    |> Enum.sort_by(& &1.id)
    |> Enum.chunk_while({[], 0}, &add_to_batch/2, &last_batch/1)
    |> Task.async_stream(&{length(&1), prepare(state.vault, sql, &1)},
      max_concurrency: @max_prepared,
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

  defp add_to_batch(reference, {batch, bytes}) do
    size = reference.size || 0

    if batch != [] and (length(batch) == @batch_documents or bytes + size > @batch_bytes),
      do: {:cont, Enum.reverse(batch), {[reference], size}},
      else: {:cont, {[reference | batch], bytes + size}}
  end

  defp last_batch({[], _bytes}), do: {:cont, nil}
  defp last_batch({batch, _bytes}), do: {:cont, Enum.reverse(batch), nil}

  # Small updates report no progress.
  defp progress(_state, _before, _done, total) when total <= @batch_documents, do: :ok

  defp progress(state, before, done, total) do
    metadata = %{book: state.book, vault: state.vault.name}
    Telemetry.event([:skillbook, :vault, :progress], %{done: done, total: total}, metadata)

    counts = %{done: done, total: total}
    notify(state, {:skillbook_vault_progress, state.book, state.vault.name, counts})

    # Ten log lines per update, however large the vault is.
    if div(done * 10, total) > div(before * 10, total),
      do: Logger.info("the vault #{state.vault.name}: #{done} of #{total} notes indexed")
  end

  # Documents are read once and in any order. A change during the read is reported again.
  defp prepare(vault, sql, references) do
    read =
      references
      |> Task.async_stream(&{&1, read(vault, &1)}, timeout: :infinity, ordered: false)
      |> Enum.map(fn {:ok, read} -> read end)

    notes = for {_, {:ok, note}} <- read, do: note
    missing = for {reference, result} <- read, result in [:missing, :skipped], do: reference.id

    [skipped, failed] =
      for kind <- [:skipped, :failed], do: Enum.count(read, &match?({_, ^kind}, &1))

    with {:ok, prepared} <- Table.prepare(sql, vault.name, notes),
         do: {:ok, {prepared, missing, %{counts() | skipped: skipped, failed: failed}}}
  end

  defp write(vault, sql, {{notes, _} = prepared, missing, counts}) do
    with {:ok, put} <- Table.put(sql, vault.name, producer(vault), prepared, DateTime.utc_now()),
         {:ok, removed} <- Table.remove(sql, vault.name, missing),
         do: {:ok, %{counts | indexed: put, removed: removed, unchanged: length(notes) - put}}
  end

  @doc "Indexes notes in the calling process: those that a write or an application adds."
  @spec put(atom(), Skillbook.Vault.Config.t(), [Note.t()]) ::
          {:ok, non_neg_integer()} | {:error, Exception.t()}
  def put(book, vault, notes) do
    sql = book |> Book.fetch!() |> Book.sql()

    with {:ok, prepared} <- Table.prepare(sql, vault.name, notes),
         {:ok, put} <-
           Table.put(sql, vault.name, producer(vault), prepared, DateTime.utc_now()) do
      Book.embed(book, :documents)
      {:ok, put}
    end
  end

  defp producer(%{producer: nil}), do: "put"
  defp producer(%{producer: {Skillbook.Vault.Folder, _}}), do: "folder"
  defp producer(%{producer: {module, _}}), do: inspect(module)

  defp read(%{producer: {module, options}} = vault, reference) do
    with {:ok, document} <-
           log_failure(vault, guard(fn -> module.read(options, reference.id) end), reference.id),
         {:ok, note, warning} <-
           Note.read(
             reference.id,
             Map.get(document, :path) || reference.path,
             document.content,
             Map.get(document, :labels, [])
           ) do
      if warning, do: warn(vault, "#{note.path}: #{warning}")
      {:ok, %{note | size: reference.size, mtime: reference.mtime}}
    else
      result when result in [:missing, :failed] ->
        result

      {_skip, reason} ->
        warn(vault, "#{reference.id} is not indexed: #{reason(reason)}")
        :skipped
    end
  end

  defp log_failure(vault, {:error, reason}, id) do
    warn(vault, "#{id} could not be read: #{reason(reason)}")
    :failed
  end

  defp log_failure(_vault, result, _id), do: result

  defp warn(vault, reason), do: Logger.warning("the vault #{vault.name}: #{reason}")
end
