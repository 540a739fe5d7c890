defmodule Skillbook.Agent.Runs do
  @moduledoc ~S"""
  Durable runs of agents: lists, continues and stops them.

  A book with the options `:durable` and `:store` journals the runs of `Skillbook.Agent.run/3` and
  of `Skillbook.Conversation`. If their process or node ends, another one continues them:

      children = [
        {Skillbook,
         name: MyApp.Skills,
         store: {Skillbook.SQL.Postgres, url: url},
         agent: [model: model],
         durable: true}
      ]

  The journal has the conversation with each answer of the model, stored before its commands run,
  and each command, stored before its handler begins and again with its result. A continued run
  handles the last answer once more:

    * A command whose result is known does not run again; the model gets this result.
    * A command that had begun, and is not known to have ended, does not run again either. The
      model reads that its end is unknown. Only commands whose page has `effects: read` or
      `idempotent: true` run once more.
    * The others run, with the rights that the profile has now.

  A call of the model whose answer was not stored is made again. `agent.dispatch` and workflows
  are commands: one that had begun is not run again as a whole. Runs inside of handlers, scheduled
  runs and `Skillbook.carry_out/3` have no journal.

      iex> {:ok, _pid} =
      ...>   Skillbook.start_link(name: :runs_example, store: ":memory:", durable: true)
      iex> alias Skillbook.{Agent, Model}
      iex> model = Model.Function.new(fn _messages, _options -> "Hello." end)
      iex> {:ok, _result} = Agent.run(:runs_example, "Hi", model: model)
      iex> {:ok, [run]} = Agent.Runs.list(:runs_example)
      iex> {run.title, run.status, run.text}
      {"Hi", :done, "Hello."}

  ## Who continues a run

  Each run has a lease of its node, `:lease` of the book's `:durable`, which the node renews. Runs
  whose lease has passed are continued by exactly one of the nodes of the database, with the
  options of its book's `:agent`; those of a book that stops at once. A book without `:agent`
  continues none by itself; `continue/3` does. The same is true if only the process of a run
  ends, as that of a request: `stop/3` ends such a run.

  A run whose nodes or processes end again and again is given up after `:max_continued`, with the
  status `:failed`. Its journal stays, so that `continue/3` can go on with it.

  ## Events

  A continued run emits the events of `Skillbook.Agent` from where it goes on, and not those of
  the answer and the results that it knows. Its telemetry is another `[:skillbook, :agent]` span,
  with `:continued` in the metadata. The subscribers of the book (`Skillbook.subscribe/1`) get
  `{:skillbook_agent_run, book, run}` with a `Skillbook.Agent.Run` when a run begins, is
  continued and ends.
  """

  alias Skillbook.Agent.{Journal, Loop, Run, Settings}
  alias Skillbook.Agent.Runs.{Server, Table}
  alias Skillbook.Approval.{Assigns, Rights}
  alias Skillbook.Book.Profiles
  alias Skillbook.Catalog.Watcher
  alias Skillbook.SQL.Tenants
  alias Skillbook.Support.{Operation, Options}

  alias Skillbook.{
    AgentError,
    Book,
    OptionError,
    Profile,
    ProfileError,
    RunError,
    SQL,
    Transcript,
    View
  }

  require Logger

  # How often a row is written if the database fails, and the milliseconds between two attempts.
  @attempts 5
  @pause 200

  @default_limit 100
  @max_limit 1_000

  @fields [text: ~w(ref book profile run title status)a, text?: ~w(tenant conversation)a] ++
            [text?: ~w(text reason)a, number: ~w(turns continued)a] ++
            [time: [:started_at], time?: [:ended_at]]

  @doc false
  def operations do
    limit = {{:number, 1, @max_limit}, "the most of them, #{@default_limit} by default"}
    last = {{:text, 100}, "the `ref` of the last one of the page before"}

    [
      %Operation{
        name: :durable_runs,
        doc: "Lists durable runs of agents, the newest first.",
        input: [limit: limit, after: last],
        output: [@fields],
        run: &list/2
      }
    ]
  end

  @doc """
  Lists the durable runs of a view's profile, or of all profiles of a book, the newest first.

  ## Options

    * `:limit` - the most of them, up to #{@max_limit}. Defaults to `#{@default_limit}`
    * `:after` - the `:ref` of the last one of the page before
    * `:tenant` - only runs of this tenant and those without one, for a book
  """
  @spec list(Skillbook.view_or_book(), Skillbook.options()) ::
          {:ok, [Run.t()]} | {:error, RunError.t() | OptionError.t() | SQL.Error.t()}
  def list(view_or_book, options \\ []) do
    options = Options.keywords(options)
    {book, readable} = readable(view_or_book, options)

    with :ok <- Options.validate(options, "a list of runs", list_schema()),
         {:ok, book, sql} <- available(book),
         :ok <- known(sql, book, options[:after], readable) do
      limit = Keyword.get(options, :limit, @default_limit)
      Table.list(sql, book.name, readable, limit, options[:after], times(book))
    end
  end

  @doc """
  Returns a durable run of a view's profile, or of any profile of a book.

  The option `:tenant` is that of `list/2`.
  """
  @spec fetch(Skillbook.view_or_book(), String.t(), Skillbook.options()) ::
          {:ok, Run.t()} | {:error, RunError.t() | OptionError.t() | SQL.Error.t()}
  def fetch(view_or_book, ref, options \\ []) do
    options = Options.keywords(options)
    {book, readable} = readable(view_or_book, options)

    with :ok <- Options.validate(options, "a run", Keyword.take(list_schema(), [:tenant])),
         {:ok, book, sql} <- available(book),
         do: fetch(sql, book, ref, readable)
  end

  defp fetch(sql, book, ref, readable) do
    with {:error, :unknown} <- Table.fetch(sql, book.name, ref, readable, times(book)),
         do: {:error, %RunError{kind: :unknown, ref: ref}}
  end

  # Of a run that the caller cannot list, there is no page.
  defp known(_sql, _book, nil, _readable), do: :ok

  defp known(sql, book, ref, readable),
    do: with({:ok, _run} <- fetch(sql, book, ref, readable), do: :ok)

  defp readable(%View{book: book, profile: profile}, _options) do
    {tenants, values} = Tenants.readable(profile, "tenant", 2)
    {book, {"profile = $1 and #{tenants}", [profile.id | values]}}
  end

  defp readable(book, options) do
    all = %{Profile.unrestricted() | tenant: Keyword.get(options, :tenant, :all)}
    {book, Tenants.readable(all, "tenant", 1)}
  end

  defp list_schema do
    [
      limit:
        {"a whole number from 1 to #{@max_limit}", &(is_integer(&1) and &1 in 1..@max_limit)},
      after: {"the ref of a run or nil", &(is_nil(&1) or Options.text?(&1))},
      tenant: {"text, nil or :all", &(&1 in [nil, :all] or Profile.name?(&1))}
    ]
  end

  @doc """
  Continues an interrupted or failed run in the calling process, and returns what
  `Skillbook.Agent.run/3` returns.

  Options are those of `Skillbook.Agent.run/3` except `:profile`, `:transcript`, `:durable` and
  `:conversation`. The options of the run itself that are texts, numbers, booleans and atoms are
  stored with it; the others, such as `:model`, are those given here or in the book's `:agent`.

  A run that another process runs, or that has ended, is a `Skillbook.RunError`.
  """
  @spec continue(atom(), String.t(), Skillbook.options()) ::
          {:ok, Skillbook.Agent.Result.t()}
          | {:error, AgentError.t() | RunError.t() | OptionError.t() | Exception.t()}
  def continue(book, ref, options \\ []) do
    with {:ok, book, _sql} <- available(book), do: take(book, ref, options, :any)
  end

  @doc """
  Ends a run: it calls no more commands and is not continued.

  A command that runs at this moment is not interrupted, unless the book itself has continued the
  run. Returns `:ok`, or a `Skillbook.RunError` for a run that has ended.
  """
  @spec stop(atom(), String.t(), Skillbook.options()) ::
          :ok | {:error, RunError.t() | SQL.Error.t()}
  def stop(book, ref, _options \\ []) do
    with {:ok, book, sql} <- available(book) do
      case Table.stop(sql, ref, now(book)) do
        :ok ->
          Server.stopped(book, ref)
          publish(book, ref)

        {:error, :ended} ->
          {:error, ended(sql, book, ref)}

        error ->
          error
      end
    end
  end

  @doc false
  # Stops the run of a conversation, which is about to be killed.
  @spec stop_conversation(atom(), String.t(), String.t()) :: :ok
  def stop_conversation(book, id, profile) do
    with {:ok, book, sql} <- available(book),
         do: Table.stop_conversation(sql, id, profile, now(book))

    :ok
  end

  @doc false
  @spec check(atom()) :: :ok | {:error, RunError.t()}
  def check(book), do: with({:ok, _book, _sql} <- available(book), do: :ok)

  defp available(name) do
    book = Book.fetch!(name)

    if book.of_parts.durable == false,
      do: {:error, %RunError{kind: :off, ref: nil}},
      else: {:ok, book, Book.sql(book)}
  end

  @doc false
  # As `continue/3`; with `:interrupted` only a run whose process or node is gone, a few times.
  @spec take(Book.t(), String.t(), Skillbook.options(), :any | :interrupted) ::
          {:ok, Skillbook.Agent.Result.t()} | {:error, Exception.t()}
  def take(book, ref, options, which \\ :interrupted) do
    options = Settings.options(options)
    defaults = Settings.with_book([], book)

    with :ok <- own(options),
         :ok <- model(options[:model] || defaults[:model], ref),
         {:ok, holder} <- claim(book, ref, which) do
      try do
        goes_on(book, ref, holder, options, defaults, which)
      catch
        kind, reason ->
          release(book, ref, holder, :gone)
          :erlang.raise(kind, reason, __STACKTRACE__)
      end
    end
  end

  defp own(options) do
    case Enum.find(
           [:profile, :transcript, :durable, :conversation],
           &Keyword.has_key?(options, &1)
         ) do
      nil ->
        :ok

      option ->
        problem = {:invalid, "no value, since the run has its own,", options[option]}
        {:error, %OptionError{subject: "a continued run", option: option, problem: problem}}
    end
  end

  defp model(nil, ref), do: {:error, %RunError{kind: :model, ref: ref}}
  defp model(_model, _ref), do: :ok

  defp claim(book, ref, which) do
    with {:ok, lease} <- Server.enter(book, ref),
         :ok <- once(book, &Table.claim(&1, ref, lease, times(book), which)) do
      {:ok, lease.holder}
    else
      {:error, :running} ->
        {:error, %RunError{kind: :running, ref: ref}}

      {:error, reason} ->
        Server.leave(book, ref)
        {:error, if(reason == :lost, do: ended(Book.sql(book), book, ref), else: reason)}
    end
  end

  defp ended(sql, book, ref) do
    case Table.fetch(sql, book.name, ref, {"1 = 1", []}, times(book)) do
      {:ok, %{status: status}} when status in [:running, :interrupted] ->
        %RunError{kind: :running, ref: ref}

      {:ok, %{status: status}} ->
        %RunError{kind: :ended, ref: ref, status: status}

      {:error, :unknown} ->
        %RunError{kind: :unknown, ref: ref}

      {:error, error} ->
        error
    end
  end

  defp goes_on(book, ref, holder, options, defaults, which) do
    sql = Book.sql(book)

    with {:ok, stored} <- Table.load(sql, ref),
         :ok <- attempts(book, ref, stored, which),
         {:ok, state, transcript, assigns, own} <- read(stored, ref),
         {:ok, profile, view} <- profile(book, stored, own, ref),
         {:ok, calls} <- Table.calls(sql, ref, state.turns) do
      publish(book, ref)

      commands =
        Keyword.merge(
          Keyword.merge(Map.to_list(own.commands), assigns: assigns),
          options[:commands] || []
        )

      options = defaults |> Keyword.merge(Map.to_list(own.options)) |> Keyword.merge(options)

      options =
        Keyword.merge(options,
          transcript: transcript,
          commands: commands,
          durable: true,
          conversation: stored.conversation
        )

      journal = %Journal{
        book: book,
        ref: ref,
        values: Map.put(stored, :again, Map.get(own, :again, false)),
        holder: holder,
        known: calls
      }

      Loop.continue(view, profile, journal, state, options)
    else
      {:error, %RunError{} = error} ->
        fail(book, ref, holder, error)
        {:error, error}

      {:error, error} ->
        release(book, ref, holder, :gone)
        {:error, error}
    end
  end

  defp attempts(book, ref, %{continued: count}, :interrupted) do
    max = book.of_parts.durable[:max_continued]
    if count > max, do: {:error, %RunError{kind: :attempts, ref: ref, max: max}}, else: :ok
  end

  defp attempts(_book, _ref, _stored, :any), do: :ok

  # Atoms of another release, for example.
  defp read(stored, ref) do
    with {:ok, %{turns: _} = state} <- Journal.decode(stored.state),
         {:ok, assigns} <- Assigns.decode(stored.assigns),
         {:ok, own} <- Journal.decode(stored.options),
         {:ok, transcript} <- Transcript.open_from_json(stored.transcript || "") do
      {:ok, state, transcript, assigns, own}
    else
      _unreadable -> {:error, %RunError{kind: :unreadable, ref: ref}}
    end
  end

  # The rights are those of now: of the profile of the id, or those that remain of the rights that
  # the run was given.
  defp profile(book, %{profile: id} = stored, own, ref) do
    found =
      if own.by_id, do: Profiles.fetch(book, id), else: Rights.restore(book, id, stored.rights)

    case found do
      {:ok, profile} ->
        {:ok, if(own.by_id, do: id, else: profile), View.of(book.name, profile)}

      :error ->
        {:error, %RunError{kind: :profile, ref: ref, profile: id}}

      {:error, %ProfileError{}} = error ->
        error
    end
  end

  @doc false
  # The newest run of a conversation and its transcript, as far as it is complete; `nil` without
  # one.
  @spec of_conversation(Book.t(), String.t(), String.t()) ::
          {Run.t(), Transcript.t() | nil} | nil | {:error, SQL.Error.t()}
  def of_conversation(book, id, profile) do
    with {:ok, {run, json}} <-
           once(book, &Table.of_conversation(&1, book.name, id, profile, times(book))) do
      {run, json && complete(run, Transcript.open_from_json(json))}
    else
      {:ok, nil} -> nil
      error -> error
    end
  end

  @doc false
  # The conversation that a run of a profile is a turn of, with its transcript; `nil` for others.
  @spec conversation_of(Book.t(), String.t(), String.t()) ::
          {String.t(), Transcript.t() | nil} | nil | {:error, SQL.Error.t()}
  def conversation_of(book, run, profile) do
    with {:ok, id} when id != nil <- once(book, &Table.conversation(&1, run, profile)),
         {_newest, transcript} <- of_conversation(book, id, profile) do
      {id, transcript}
    else
      {:ok, nil} -> nil
      none -> none
    end
  end

  # An answer that nobody has handled is no part of it.
  defp complete(%{status: status}, {:ok, transcript})
       when status in [:running, :interrupted, :stopped, :failed] do
    case List.last(transcript.messages) do
      %{kind: :reply} -> Map.update!(transcript, :messages, &Enum.drop(&1, -1))
      _other -> transcript
    end
  end

  defp complete(_run, {:ok, transcript}), do: transcript
  defp complete(_run, {:error, _unreadable}), do: nil

  # Of the process of a run

  @doc false
  # Calls a function with the handle of a book's database, and again if the database fails: one
  # that restarts is there again after a moment.
  @spec store(Book.t(), (SQL.t() -> result), pos_integer()) :: result when result: term()
  def store(book, fun, attempts \\ @attempts) do
    case once(book, fun) do
      {:error, %SQL.Error{}} when attempts > 1 ->
        Process.sleep(@pause)
        store(book, fun, attempts - 1)

      result ->
        result
    end
  end

  @doc false
  # The same, once. While the database restarts there is no handle, and its processes may end
  # during a call.
  @spec once(Book.t(), (SQL.t() -> result)) :: result when result: term()
  def once(book, fun) do
    fun.(Book.sql(book))
  rescue
    ArgumentError -> {:error, SQL.Error.closed()}
  catch
    :exit, _reason -> {:error, SQL.Error.closed()}
  end

  @doc false
  # Gives a run of the calling process back: `:stopping` with its book, `:gone` with its process.
  @spec release(Book.t(), String.t(), String.t(), :stopping | :gone) :: :ok
  def release(book, ref, holder, why) do
    store(book, &Table.release(&1, [holder], why))
    Server.leave(book, ref)
    Server.look(book)
  end

  @doc false
  # Gives a run of the calling process up.
  @spec fail(Book.t(), String.t(), String.t(), Exception.t()) :: :ok
  def fail(book, ref, holder, error) do
    close(book, ref, &Table.fail(&1, ref, holder, now(book), Exception.message(error)))
  end

  @doc false
  # Stores how a run of the calling process ended.
  @spec finish(Book.t(), String.t(), String.t(), map()) :: :ok
  def finish(book, ref, holder, result) do
    ended = Map.put(result, :at, now(book))
    close(book, ref, &Table.finish(&1, ref, holder, ended))
  end

  # The lease is renewed until it is stored.
  defp close(book, ref, fun) do
    with {:error, reason} <- store(book, fun) do
      text = if is_exception(reason), do: Exception.message(reason), else: "it belongs to another"
      Logger.warning("the end of the durable run #{ref} was not stored: #{text}")
    end

    Server.leave(book, ref)
    publish(book, ref)
  end

  @doc false
  # When a lease has passed, and when one was given by a clock that was ahead.
  @spec times(Book.t()) :: {integer(), integer()}
  def times(book) do
    now = System.os_time(:millisecond)
    {now, now + 2 * book.of_parts.durable[:lease]}
  end

  @doc false
  # Tells the subscribers of a book.
  @spec publish(Book.t(), String.t()) :: :ok
  def publish(%{name: name} = book, ref) do
    with {:ok, run} <- Table.fetch(Book.sql(book), name, ref, {"1 = 1", []}, times(book)),
         do: Watcher.publish(name, {:skillbook_agent_run, name, run})

    :ok
  rescue
    # The book has stopped since.
    ArgumentError -> :ok
  catch
    :exit, _reason -> :ok
  end

  defp now(book), do: DateTime.truncate(Book.now(book), :second)
end
