defmodule Skillbook.Embedding.Indexer do
  @moduledoc false
  # Embeds the texts of a book in the background: all that have no vector when the book starts,
  # then those of each new generation and of documents that are written. Vectors come from the
  # database if they are there, else from the embedder in batches, and each batch is stored before
  # the next. So nothing is embedded twice but the batch that a crash interrupts.
  #
  # The work runs in a task, so this process always answers, and a failure of the embedder or the
  # database is a pause. Nothing waits for it: reads use the vectors that are there.
  #
  # Several nodes may embed the same texts at the same time. They write the same rows.
  #
  # ## Adding a kind of text
  #
  # Implement `Skillbook.Embedding.Texts`, add it to the list below, and call `refresh/2` when
  # texts have changed.

  use GenServer

  alias Skillbook.Catalog.Watcher
  alias Skillbook.Embedding.{Documents, Entries, Table, Vectors}
  alias Skillbook.Support.UntilError
  alias Skillbook.{Book, Change, Embedder, EmbedderError, SQL, Telemetry}

  require Logger

  @sources [Entries, Documents]

  # Texts per call of the embedder, and digests per query of the database.
  @batch 64
  @max_read 500
  # Milliseconds until the next attempt after a failure: the first, and the limit of its doubling.
  @pause 1_000
  @max_pause 300_000
  # The kinds of errors that may come from one text.
  @refusals [:refused, :bad_answer, :failed]
  # Milliseconds between two messages about progress.
  @interval 200
  # Milliseconds between the starts of two tasks, since each looks at all texts in memory.
  @least 100
  # Milliseconds between two tasks if nothing changes: texts that nobody reads leave memory.
  @rest 300_000

  @typedoc "How many texts have a vector, of how many, and the error that embedding waits after."
  @type progress :: %{
          done: non_neg_integer(),
          total: non_neg_integer(),
          error: Exception.t() | nil
        }

  @doc "Starts the process of a running book."
  def start_link(book), do: GenServer.start_link(__MODULE__, book, name: name(book.name))

  @doc """
  Returns the progress of a book; `nil` if it has no embedder. It counts texts of all labels, so
  it is for trusted code.
  """
  @spec progress(atom()) :: progress() | nil
  def progress(book) do
    if Book.fetch!(book).embedder, do: GenServer.call(name(book), :progress)
  end

  @doc """
  Waits until all texts of a book have a vector, except those that the embedder refuses. Documents
  that were written before the call are among them.

  Returns the error of the embedder or the database if one fails. Meanwhile the function gets the
  progress. The book has an embedder.
  """
  @spec await(atom(), (progress() -> term())) :: :ok | {:error, Exception.t()}
  def await(book, fun) do
    # In a process of its own, since the caller may have subscribed too.
    Task.await(
      Task.async(fn ->
        :ok = Watcher.subscribe(book)
        %{ref: ref} = Task.async(fn -> GenServer.call(name(book), :await, :infinity) end)
        await_answer(ref, fun)
      end),
      :infinity
    )
  end

  defp await_answer(ref, fun) do
    receive do
      {^ref, result} ->
        result

      {:skillbook_embedding, _book, progress} ->
        fun.(progress)
        await_answer(ref, fun)
    end
  end

  @doc """
  Looks at all texts again, because a search found none of a vector that the database should have.
  The model has vectors of this size.
  """
  @spec lost(atom(), pos_integer()) :: :ok
  def lost(book, size), do: GenServer.cast(name(book), {:lost, size})

  @doc "Looks for texts of a kind without a vector."
  @spec refresh(atom(), module()) :: :ok
  def refresh(book, source), do: GenServer.cast(name(book), {:refresh, source})

  defp name(book), do: Module.concat(book, Embedding)

  @impl true
  def init(book) do
    # A task that crashes is a failure like others.
    Process.flag(:trap_exit, true)
    :ok = Watcher.subscribe(book.name)

    state = %{
      book: book,
      # The size of the model's vectors, once it is known.
      size: Embedder.info(book.embedder).size,
      # The task that embeds, when it began, and the kinds of texts that have changed since.
      task: nil,
      began: nil,
      changed: @sources,
      # Whether the next one begins soon.
      soon?: false,
      # How far the texts of each kind were looked at; `nil` if the next task looks at all.
      places: nil,
      # Callers of `await/2`: for the end of this task, and for that of the next one.
      waiting: [],
      later: [],
      # The pause after the last failure.
      pause: nil,
      # Digests of texts that the embedder refuses.
      refused: MapSet.new(),
      # The day on which the rows in the database were marked.
      tidied: nil,
      progress: %{done: 0, total: 0, error: nil}
    }

    Process.send_after(self(), :rest, @rest)
    {:ok, state, {:continue, :first}}
  end

  @impl true
  def handle_continue(:first, state), do: {:noreply, begin(state)}

  @impl true
  def handle_call(:progress, _from, state), do: {:reply, state.progress, state}

  def handle_call(:await, from, %{task: nil, pause: nil} = state),
    do: {:noreply, begin(anew(%{state | waiting: [from]}))}

  # The task may have looked for texts before they were written.
  def handle_call(:await, from, %{pause: nil} = state),
    do: {:noreply, anew(%{state | later: [from | state.later]})}

  def handle_call(:await, _from, state), do: {:reply, {:error, state.progress.error}, state}

  @impl true
  def handle_cast({:refresh, source}, state), do: {:noreply, changed(state, source)}
  def handle_cast({:lost, size}, state), do: {:noreply, changed(anew(%{state | size: size}))}

  @impl true
  def handle_info({:skillbook, _book, %Change{}}, state), do: {:noreply, changed(state, Entries)}
  def handle_info(:retry, state), do: {:noreply, begin(anew(state))}
  def handle_info(:soon, state), do: {:noreply, changed(%{state | soon?: false})}

  def handle_info(:rest, state) do
    Process.send_after(self(), :rest, @rest)

    for source <- @sources,
        not source.in_memory?(),
        do: Vectors.forget(source.vectors(state.book), 0)

    {:noreply, changed(anew(state))}
  end

  # Reports of the task.
  def handle_info({pid, :progress, done, total}, %{task: %{pid: pid}} = state),
    do: {:noreply, publish(%{state | progress: %{state.progress | done: done, total: total}})}

  def handle_info({pid, :refused, digests, error}, %{task: %{pid: pid}} = state) do
    # Logged once.
    if digests != [] and Enum.empty?(state.refused) do
      Logger.warning(
        "the book #{inspect(state.book.name)} leaves out texts that its embedder refuses, " <>
          "until it is restarted; searches use their words: #{Exception.message(error)}"
      )
    end

    {:noreply, %{state | refused: Enum.into(digests, state.refused)}}
  end

  def handle_info({pid, :size, size}, %{task: %{pid: pid}} = state),
    do: {:noreply, %{state | size: size}}

  def handle_info({pid, :places, places}, %{task: %{pid: pid}} = state),
    do: {:noreply, %{state | places: state.places && Map.merge(state.places, places)}}

  def handle_info({pid, :tidied, day}, %{task: %{pid: pid}} = state),
    do: {:noreply, %{state | tidied: day}}

  def handle_info({ref, result}, %{task: %{ref: ref}} = state) do
    Process.demonitor(ref, [:flush])
    {:noreply, ended(%{state | task: nil}, result)}
  end

  def handle_info({:DOWN, ref, :process, _pid, reason}, %{task: %{ref: ref}} = state) do
    error = %EmbedderError{kind: :failed, reason: "embedding ended with #{crash(reason)}"}
    {:noreply, ended(%{state | task: nil}, {:error, error})}
  end

  def handle_info({:EXIT, pid, reason}, state) do
    # The task of `:DOWN`, or the supervisor.
    if match?(%{pid: ^pid}, state.task) or reason == :normal,
      do: {:noreply, state},
      else: {:stop, reason, state}
  end

  def handle_info(_message, state), do: {:noreply, state}

  defp changed(state, source),
    do: changed(%{state | changed: Enum.uniq([source | state.changed])})

  defp changed(%{task: nil, pause: nil, soon?: false} = state) do
    wait = state.began + @least - System.monotonic_time(:millisecond)

    if wait > 0 do
      Process.send_after(self(), :soon, wait)
      %{state | soon?: true}
    else
      begin(state)
    end
  end

  # During a pause nothing is tried: the next attempt finds all changes.
  defp changed(state), do: state

  # The next task looks at all texts.
  defp anew(state), do: %{state | changed: @sources, places: nil}

  defp begin(%{task: nil} = state) do
    state = %{state | places: state.places || %{}}

    context =
      state
      |> Map.take([:book, :size, :refused, :tidied, :places])
      |> Map.merge(%{to: self(), sources: state.changed, sent: 0, resized: false})

    began = System.monotonic_time(:millisecond)
    %{state | task: Task.async(fn -> work(context) end), began: began, changed: []}
  end

  defp begin(state), do: state

  defp ended(state, :ok) do
    state = if state.pause, do: recovered(state), else: state
    for from <- state.waiting, do: GenServer.reply(from, :ok)
    state = %{state | waiting: state.later, later: []}

    cond do
      state.waiting != [] -> begin(state)
      state.changed != [] -> changed(state)
      true -> state
    end
  end

  # The pause lasts until an attempt succeeds as a whole, so a server that answers every other
  # call is logged once.
  defp ended(state, {:error, error}) do
    pause = if state.pause, do: min(2 * state.pause, @max_pause), else: @pause
    wait = min(max(pause, Map.get(error, :retry_after) || 0), @max_pause)

    unless state.pause do
      Logger.warning(
        "the book #{inspect(state.book.name)} cannot embed texts and tries again; searches " <>
          "use words where vectors are missing: #{Exception.message(error)}"
      )
    end

    metadata = %{book: state.book.name, kind: error.kind}
    measurements = %{delay: System.convert_time_unit(wait, :millisecond, :native)}
    Telemetry.event([:skillbook, :embedding, :retry], measurements, metadata)
    Process.send_after(self(), :retry, wait)
    for from <- state.waiting ++ state.later, do: GenServer.reply(from, {:error, error})
    state = %{state | waiting: [], later: []}
    publish(%{state | pause: pause, progress: %{state.progress | error: error}})
  end

  defp recovered(state) do
    Logger.info("the book #{inspect(state.book.name)} embeds texts again")
    publish(%{state | pause: nil, progress: %{state.progress | error: nil}})
  end

  defp publish(state) do
    Watcher.publish(state.book.name, {:skillbook_embedding, state.book.name, state.progress})

    Telemetry.event(
      [:skillbook, :embedding, :progress],
      Map.take(state.progress, [:done, :total]),
      %{book: state.book.name}
    )

    state
  end

  # Without arguments, which may have the texts.
  defp crash({%{__exception__: true} = error, _stack}), do: Exception.message(error)
  defp crash({reason, stack}) when is_list(stack), do: crash(reason)
  defp crash(reason), do: inspect(reason, limit: 5, printable_limit: 100)

  # The task

  defp work(context) do
    for source <- context.sources, do: know(source, context)

    followed =
      for source <- context.sources,
          do: {source, source.follow(context.book, context.places[source])}

    found = for {source, {missing, _place}} <- followed, do: {source, left(missing, context)}
    done = context |> vectors() |> Enum.map(&Vectors.count/1) |> Enum.sum()
    more = found |> Enum.map(fn {_source, missing} -> length(missing) end) |> Enum.sum()
    context = context |> Map.merge(%{done: done, total: done + more}) |> report(:now)

    with {:ok, context} <- embed_all(found, context) do
      places = for {source, {_missing, place}} <- followed, into: %{}, do: {source, place}
      send(context.to, {self(), :places, places})
      # Without texts that were removed or refused meanwhile.
      context = report(%{context | total: context.done}, :now)
      tidy(context)
    else
      {:resized, expected, size} -> resize(expected, size, context)
      error -> error
    end
  catch
    {:error, error} ->
      {:error, error}

    # The database is restarting, or the book is stopping.
    :exit, _reason ->
      {:error, SQL.Error.closed()}
  end

  # All vectors in the database, before the first look. Those of no text are forgotten by it.
  defp know(source, context) do
    vectors = source.vectors(context.book)
    sql = sql(context)
    # A book without such texts has no vectors later either.
    first? = context.tidied == nil and context.places[source] == nil

    if sql != nil and first? and not source.in_memory?() and Vectors.count(vectors) == 0 do
      know = &Vectors.know(vectors, &1)

      with {:error, error} <- Table.each(sql, model(context), context.size, know),
           do: throw({:error, error})
    end
  end

  defp left(missing, context),
    do: Enum.reject(missing, fn {digest, _} -> MapSet.member?(context.refused, digest) end)

  defp embed_all(found, context) do
    UntilError.reduce(found, context, fn {source, missing}, context ->
      with {:ok, missing, context} <- read(source, missing, context),
           do: embed(source, missing, context)
    end)
  end

  # The model has vectors of another size than those in the database, which are of no use.
  defp resize(expected, size, %{resized: true}) do
    reason = "expected vectors of #{expected} numbers as in the last answer, got #{size}"
    {:error, %EmbedderError{kind: :bad_answer, reason: reason}}
  end

  defp resize(expected, size, context) do
    Logger.warning(
      "the book #{inspect(context.book.name)} embeds all texts again: the model " <>
        "#{inspect(model(context))} has vectors of #{size} numbers now, not of #{expected}"
    )

    for vectors <- vectors(context), do: :ok = Vectors.clear(vectors)
    context = sized(context, size)
    work(Map.merge(context, %{sources: @sources, places: %{}, resized: true}))
  end

  # The vectors in the database. Returns the texts without one.
  defp read(source, missing, context) do
    case sql(context) do
      nil -> {:ok, missing, context}
      sql -> read(sql, source, Enum.chunk_every(missing, @max_read), [], context)
    end
  end

  defp read(_sql, _source, [], missing, context),
    do: {:ok, missing |> Enum.reverse() |> Enum.concat(), context}

  defp read(sql, source, [some | rest], missing, context) do
    digests = Enum.map(some, &elem(&1, 0))

    with {:ok, found} <- find(sql, source, digests, context) do
      found = MapSet.new(found)
      left = Enum.reject(some, fn {digest, _} -> MapSet.member?(found, digest) end)
      context = report(%{context | done: context.done + MapSet.size(found)}, :seldom)
      read(sql, source, rest, [left | missing], context)
    end
  end

  # The texts among these that have a vector in the database.
  defp find(sql, source, digests, context) do
    vectors = source.vectors(context.book)
    {model, size} = {model(context), context.size}

    if source.in_memory?() do
      Vectors.put_stored(vectors, sql, model, size, digests)
    else
      with {:ok, found} <- Table.known(sql, model, size, digests, Date.utc_today()),
           :ok <- Vectors.know(vectors, found),
           do: {:ok, found}
    end
  end

  defp embed(source, missing, context) do
    missing
    |> Enum.chunk_every(@batch)
    |> UntilError.reduce(context, fn some, context ->
      embed_batch(source, source.texts(context.book, some), context)
    end)
  end

  # All of these texts were removed since.
  defp embed_batch(_source, [], context), do: {:ok, context}

  defp embed_batch(source, texts, context) do
    began = System.monotonic_time()
    result = vectors(texts, context)
    measurements = %{duration: System.monotonic_time() - began, texts: length(texts)}
    kind = with {:error, error} <- result, do: error.kind, else: (_ -> nil)
    metadata = %{book: context.book.name, kind: kind}
    Telemetry.event([:skillbook, :embedding, :batch], measurements, metadata)

    with {:ok, rows} <- result,
         :ok <- write(rows, context),
         {:ok, context} <- put(source, rows, context) do
      {:ok, report(%{context | done: context.done + length(rows)}, :seldom)}
    end
  end

  # A text that the embedder refuses must not stop the others, so they are tried one by one. If it
  # refuses all of them, it is not the texts.
  defp vectors(texts, context) do
    case call(texts, context) do
      {:error, %{kind: kind} = error} when kind in @refusals and length(texts) > 1 ->
        one_by_one(texts, error, context)

      result ->
        result
    end
  end

  defp one_by_one(texts, first, context) do
    texts
    |> Enum.reduce_while({:ok, [], []}, fn {digest, _} = text, {:ok, rows, refused} ->
      case call([text], context) do
        {:ok, [row]} ->
          {:cont, {:ok, [row | rows], refused}}

        {:error, %{kind: kind}} when kind in @refusals ->
          {:cont, {:ok, rows, [digest | refused]}}

        error ->
          {:halt, error}
      end
    end)
    |> case do
      {:ok, [], _refused} ->
        {:error, first}

      {:ok, rows, refused} ->
        send(context.to, {self(), :refused, refused, first})
        {:ok, rows}

      error ->
        error
    end
  end

  defp call(texts, context) do
    {digests, texts} = Enum.unzip(texts)

    with {:ok, vectors} <- Embedder.embed(context.book.embedder, texts),
         do: {:ok, Enum.zip(digests, vectors)}
  end

  defp write(rows, context) do
    case sql(context) do
      nil -> :ok
      sql -> Table.write(sql, model(context), rows, Date.utc_today())
    end
  end

  defp put(source, [{_digest, vector} | _] = rows, %{size: expected} = context) do
    vectors = source.vectors(context.book)
    size = div(byte_size(vector), 4)

    cond do
      expected not in [nil, size] ->
        {:resized, expected, size}

      source.in_memory?() ->
        case Vectors.put(vectors, rows) do
          :ok -> {:ok, sized(context, size)}
          {:error, {expected, _got}} -> {:resized, expected, size}
        end

      true ->
        :ok = Vectors.know(vectors, Enum.map(rows, &elem(&1, 0)))
        {:ok, sized(context, size)}
    end
  end

  defp sized(%{size: size} = context, size), do: context

  defp sized(context, size) do
    send(context.to, {self(), :size, size})
    %{context | size: size}
  end

  # Once a day.
  defp tidy(%{tidied: tidied} = context) do
    today = Date.utc_today()
    sql = sql(context)

    if sql == nil or tidied == today do
      :ok
    else
      needed = fn digests ->
        context |> vectors() |> Enum.flat_map(&Vectors.having(&1, digests)) |> Enum.uniq()
      end

      with :ok <- Table.tidy(sql, model(context), needed, today) do
        send(context.to, {self(), :tidied, today})
        :ok
      end
    end
  end

  defp report(context, how_often) do
    now = System.monotonic_time(:millisecond)

    if how_often == :now or now - context.sent > @interval do
      send(context.to, {self(), :progress, context.done, context.total})
      %{context | sent: now}
    else
      context
    end
  end

  defp vectors(context), do: for(source <- @sources, do: source.vectors(context.book))

  # While the database restarts, there is no handle.
  defp sql(context) do
    Book.sql(context.book)
  rescue
    ArgumentError -> exit(:closed)
  end

  defp model(context), do: Embedder.info(context.book.embedder).model
end
