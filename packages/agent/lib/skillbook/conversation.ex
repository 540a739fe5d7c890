defmodule Skillbook.Conversation do
  @moduledoc """
  A conversation as a process: runs one turn of its user after the other and keeps the transcript.

  `Skillbook.Agent.run/3` is the function below it, and needs no process. A conversation adds a
  queue, subscribers, and an end when nobody has said anything for a while.

      iex> {:ok, _pid} = Skillbook.start_link(name: :conversation_example, store: ":memory:")
      iex> model = Skillbook.Model.Function.new(fn messages, _options ->
      ...>   "You said: " <> List.last(messages).content
      ...> end)
      iex> alias Skillbook.Conversation
      iex> {:ok, pid} =
      ...>   Conversation.start_link(book: :conversation_example, id: "c-17", run: [model: model])
      iex> {:ok, result} = Conversation.ask(pid, "Hello")
      iex> result.text
      "You said: Hello"
      iex> Conversation.info(pid)
      %{id: "c-17", status: :idle, queue: 0, pending: [], leader: "default"}

  ## Supervision

  Start conversations under a `DynamicSupervisor`, and find them in a `Registry`:

      name = {:via, Registry, {MyApp.Registry, "c-17"}}

      DynamicSupervisor.start_child(
        MyApp.Chats,
        {Skillbook.Conversation, book: MyApp.Skills, id: "c-17", name: name, profile: "ann"}
      )

  A conversation that ends by itself is not restarted. One that crashed is, with the `:transcript`
  of its options; pass it as a function that reads the one that `:save` has stored.

  A turn ends with the process of its conversation, even if that is killed: so do its request and
  its commands.

  In a book with the option `:durable`, a conversation with an `:id` needs neither. When it
  starts, on any node, it has the transcript of its last turn, and first goes on with a turn that
  was interrupted; see `Skillbook.Agent.Runs`. A conversation has one turn at a time, also if it
  has two processes: a turn waits until the one before it has ended, or continues it, and has its
  transcript. Inputs that waited in the queue of a process that ends are lost.

  It outlasts a restart of its book, which ends its turn. With `:durable` it then goes on with
  the turn, and it tells of the calls that were decided meanwhile.

  The result of a call that was decided elsewhere, as by `Skillbook.approve/3` on another node,
  joins the conversation at its next turn. With `resume:` the model has answered there: in a book
  with `:durable` that is a turn of the conversation, and otherwise its answer is not part of it.

  No result is lost with a process. A conversation that starts, or outlasts its book or the
  process of a decision, has a turn without an input for the calls that were decided and that no
  turn has told, once a call that was running has ended or is interrupted.

  ## Events

  Subscribers receive `{:skillbook_conversation, id, event}`:

    * `{:queued, turn, input}` - an input waits for its turn, whose reference is `turn`
    * `{:started, turn, input}` - its turn begins. For an interrupted turn that goes on, `input`
      is the `:ref` of its run, and for calls that no turn has told, that of the first of them
    * `{:event, turn, event}` - an event of `Skillbook.Agent`, such as `{:text, text}`
    * `{:ended, turn, outcome}` - the turn is over: what `Skillbook.Agent.run/3` returned, or
      `{:error, reason}` if its process crashed
    * `{:stopped, turn}` - the turn was stopped
    * `{:approval, approval}` - the status of a call that waits in this conversation has changed
    * `:continued` - the queue goes on
    * `:idle` - nobody has said anything for `:idle` milliseconds; the process ends
  """

  use GenServer, restart: :transient

  alias Skillbook.Agent.{Journal, Loop, Result, Run, Runs, Settings, State}
  alias Skillbook.Approval.{Notice, SuspendedRun}
  alias Skillbook.Catalog.Watcher
  alias Skillbook.Model.Content
  alias Skillbook.Run.Worker
  alias Skillbook.Support.Options

  alias Skillbook.{
    Agent,
    AgentError,
    Approval,
    Book,
    ConversationError,
    Model,
    OptionError,
    Profile,
    RunError
  }

  alias Skillbook.{StoppedError, Transcript, View}

  # How often a turn that another process runs is looked at, in milliseconds.
  @look 50
  @max_queue 10
  @idle 900_000

  @type conversation :: GenServer.server()
  @type turn :: reference()

  defstruct [
    :book,
    :id,
    :run,
    :transcript,
    :save,
    # That of the options, before the first turn.
    :leader,
    :max_queue,
    :idle,
    # The turn that runs: `%{turn:, what:, callers:, task:, durable:}`, with the transcript
    # `:before` it.
    :current,
    :timer,
    queue: :queue.new(),
    stopped: false,
    # Whether calls may have been decided that no turn will tell.
    untold: false,
    pending: []
  ]

  @doc """
  Starts a conversation, linked to the calling process.

  ## Options

    * `:book` - the name of the book. Required
    * `:id` (text) - of the conversation, in its events, and for its profile the name of its
      durable runs. Defaults to a random one
    * `:name` - the name of the process, as of `GenServer.start_link/3`
    * `:profile` - as of `Skillbook.Agent.run/3`. Defaults to `"default"`
    * `:run` (keyword list) - other options of `Skillbook.Agent.run/3` for each turn
    * `:transcript` - a `Skillbook.Transcript` to continue, or a function that returns one or
      `nil`
    * `:save` (function of one argument) - gets the transcript after each turn, in the turn's
      process
    * `:max_queue` (integer) - the most inputs that wait. Defaults to `#{@max_queue}`
    * `:idle` (milliseconds or `:infinity`) - after which the process ends. Defaults to
      `900_000`
  """
  @spec start_link(Skillbook.options()) :: GenServer.on_start() | {:error, OptionError.t()}
  def start_link(options) do
    options = Options.keywords(options, [:run])

    with :ok <- Options.validate(options, "a conversation", schema()),
         :ok <- required(options) do
      GenServer.start_link(__MODULE__, options, Keyword.take(options, [:name]))
    end
  end

  @doc false
  def child_spec(options) do
    id = Options.keywords(options)[:id] || make_ref()
    %{id: {__MODULE__, id}, start: {__MODULE__, :start_link, [options]}, restart: :transient}
  end

  defp required(options) do
    if Keyword.has_key?(options, :book),
      do: :ok,
      else: {:error, %OptionError{subject: "a conversation", option: :book, problem: :missing}}
  end

  defp schema do
    [
      book: {"the name of a book", &(is_atom(&1) and &1 not in [nil, true, false])},
      id: {"text", &Options.text?/1},
      name: {Options.process_name(), &Options.process_name?/1},
      profile: {"the id of a profile or a profile", &(Options.text?(&1) or is_map(&1))},
      run: {"a keyword list", &Keyword.keyword?/1},
      transcript:
        {"a transcript, a function without arguments or nil",
         &(is_nil(&1) or is_struct(&1, Transcript) or is_function(&1, 0))},
      save: {"a function of one argument", &is_function(&1, 1)},
      max_queue: {"a whole number from 1", &Options.positive?/1},
      idle:
        {"a number of milliseconds or :infinity", &(&1 == :infinity or Options.milliseconds?(&1))}
    ]
  end

  @doc """
  Says something, text or a list of texts and `Skillbook.Model.Media`: its turn runs at once, or
  after those before it.

  Returns the reference of the turn, or a `Skillbook.ConversationError` if too many inputs wait.
  """
  @spec say(conversation(), Model.content()) :: {:ok, turn()} | {:error, ConversationError.t()}
  def say(conversation, input) do
    Content.check!("Skillbook.Conversation.say/2", :input, input)
    GenServer.call(conversation, {:say, input})
  end

  @doc """
  Says something, and waits for the end of its turn.

  Returns what `Skillbook.Agent.run/3` returns; or a `Skillbook.ConversationError` if too many
  inputs wait, the turn was stopped, or its process crashed.
  """
  @spec ask(conversation(), Model.content(), timeout()) ::
          {:ok, Agent.Result.t()} | {:error, AgentError.t() | ConversationError.t()}
  def ask(conversation, input, timeout \\ :infinity) do
    Content.check!("Skillbook.Conversation.ask/3", :input, input)
    GenServer.call(conversation, {:ask, input}, timeout)
  end

  @doc """
  Approves a call that waits in the conversation. Its result is the next turn.

  Takes the options of `Skillbook.approve/3` except `:resume`, and returns the reference of the
  turn. The `outcome` of the turn is the `Skillbook.Approval`, with the run in `:run`.
  """
  @spec approve(conversation(), String.t(), keyword()) ::
          {:ok, turn()} | {:error, ConversationError.t()}
  def approve(conversation, ref, options),
    do: GenServer.call(conversation, {:decide, :approve, ref, options})

  @doc "Denies a call that waits in the conversation, as `approve/3`."
  @spec deny(conversation(), String.t(), keyword()) ::
          {:ok, turn()} | {:error, ConversationError.t()}
  def deny(conversation, ref, options),
    do: GenServer.call(conversation, {:decide, :deny, ref, options})

  @doc """
  Stops the turn that runs, with its request and its commands, and holds the queue back.

  The transcript keeps the exchanges that were complete.
  """
  @spec stop(conversation()) :: :ok
  def stop(conversation), do: GenServer.call(conversation, :stop)

  @doc "Goes on with the queue after `stop/1`."
  @spec continue(conversation()) :: :ok
  def continue(conversation), do: GenServer.call(conversation, :continue)

  @doc """
  Sends the events of the conversation to the calling process, until that ends.

  The subscription outlasts the process of the conversation: it is to the profile's conversation
  with this `:id`, on each node.
  """
  @spec subscribe(conversation()) :: :ok
  def subscribe(conversation) do
    {book, group} = GenServer.call(conversation, :group)
    :ok = Watcher.subscribe(book, group)
    subscribed(conversation)
  end

  # The node of the conversation may learn of it a moment later.
  defp subscribed(conversation) do
    unless GenServer.call(conversation, {:subscribed?, self()}) do
      Process.sleep(@look)
      subscribed(conversation)
    end

    :ok
  end

  @doc "Returns the transcript, up to the last complete exchange, or `nil` before the first turn."
  @spec transcript(conversation()) :: Transcript.t() | nil
  def transcript(conversation), do: GenServer.call(conversation, :transcript)

  @doc """
  Describes the conversation: its `:id`; its `:status`, `:idle`, `:running` or `:stopped`; how
  many inputs wait as `:queue`; the `Skillbook.Approval`s for which calls wait as `:pending`; and
  the id of the profile that leads it as `:leader`.
  """
  @spec info(conversation()) :: %{
          id: String.t(),
          status: :idle | :running | :stopped,
          queue: non_neg_integer(),
          pending: [Approval.t()],
          leader: String.t()
        }
  def info(conversation), do: GenServer.call(conversation, :info)

  # The process

  @impl true
  def init(options) do
    transcript = options[:transcript]
    # One that waits is not to wake up for the runs and approvals of others.
    :ok = Watcher.subscribe(Book.fetch!(options[:book]).name, :starts)

    run = Keyword.merge(options[:run] || [], Keyword.take(options, [:profile]))

    state = %__MODULE__{
      book: options[:book],
      id: options[:id] || State.new_id(),
      run: run,
      leader: Settings.with_book(run, Book.fetch!(options[:book]))[:leader],
      transcript: if(is_function(transcript), do: transcript.(), else: transcript),
      save: options[:save] || fn _transcript -> :ok end,
      max_queue: options[:max_queue] || @max_queue,
      idle: options[:idle] || @idle
    }

    {:ok, wait(state), {:continue, :resume}}
  end

  @impl true
  def handle_continue(:resume, state) do
    options = [conversation: state.id, transcript: state.transcript] ++ state.run
    {run, transcript} = newest(Book.find(state.book), options)
    state = look(%{state | transcript: transcript, untold: true})
    rest(if unended?(run), do: go_on(state, run.ref), else: next(state))
  end

  # The newest run of the conversation, or `nil`, and its transcript. Another process may have had
  # it since: one of another node, or the book, which continues a run whose process has ended.
  defp newest(book, options) do
    run =
      if book && Journal.durable?(book, options),
        do: Runs.of_conversation(book, options[:conversation], profile_id(%{run: options}))

    case run do
      {%Run{} = run, transcript} -> {run, later(transcript, options[:transcript])}
      _none -> {nil, options[:transcript]}
    end
  end

  defp unended?(run), do: run != nil and run.status in [:running, :interrupted]

  defp go_on(state, ref),
    do: start(state, %{turn: make_ref(), what: {:continue, ref}, callers: []})

  # The calls that wait in the transcript, and those of a result, as they are now: a call may be
  # decided without a message, by another node or process of the operating system. It is read
  # after it is subscribed to, so that no change is missed.
  defp look(state, more \\ []) do
    refs = for approval <- more, do: approval.ref
    known = Enum.reject(state.pending, &(&1.ref in refs)) ++ more
    for ref <- waiting(state), do: Notice.subscribe(state.book, ref)
    {open, decided} = SuspendedRun.waiting(state.book, state.transcript)
    new = Enum.reject(open, fn one -> Enum.any?(known, &(&1.ref == one.ref)) end)
    found = open ++ for {_ref, %Approval{} = approval, _result} <- decided, do: approval
    state = Enum.reduce(found, %{state | pending: known ++ new}, &decided(&2, &1))
    for {ref, _approval, _result} <- decided, do: Notice.unsubscribe(state.book, ref)
    state
  end

  defp waiting(%{transcript: nil}), do: []
  defp waiting(%{transcript: %{waiting: refs}}), do: refs

  defp decided(%{pending: pending} = state, %Approval{ref: ref, status: status} = approval) do
    case Enum.find_index(pending, &(&1.ref == ref and &1.status != status)) do
      nil ->
        state

      _changed when status not in [:pending, :running] ->
        tell(state, {:approval, approval})
        Notice.unsubscribe(state.book, ref)
        %{state | pending: Enum.reject(pending, &(&1.ref == ref))}

      place ->
        tell(state, {:approval, approval})
        %{state | pending: List.replace_at(pending, place, approval)}
    end
  end

  # The book may have stopped.
  defp durable?(%{book: book, run: run}) do
    book = Book.find(book)
    book != nil and Journal.durable?(book, run)
  end

  defp profile_id(%{run: run}) do
    case Keyword.get(run, :profile, "default") do
      %Profile{id: id} -> id
      id -> id
    end
  end

  defp leader(%{transcript: %Transcript{messages: [_ | _]} = transcript} = state),
    do: transcript.leader || profile_id(state)

  defp leader(state), do: state.leader || profile_id(state)

  # That of `:transcript` is older if its messages are.
  defp later(nil, given), do: given
  defp later(stored, nil), do: stored

  defp later(stored, given),
    do: if(DateTime.compare(last(given), last(stored)) == :lt, do: stored, else: given)

  defp last(%{messages: []}), do: ~U[0000-01-01 00:00:00Z]
  defp last(%{messages: messages}), do: List.last(messages).at

  @impl true
  def handle_call({:say, input}, _from, state), do: add(state, {:input, input}, [], nil)
  def handle_call({:ask, input}, from, state), do: add(state, {:input, input}, [from], from)

  def handle_call({:decide, how, ref, options}, _from, state),
    do: add(state, {how, ref, options}, [], nil)

  def handle_call(:stop, _from, %{current: nil} = state),
    do: {:reply, :ok, %{state | stopped: true}}

  def handle_call(:stop, _from, %{current: current} = state) do
    # Before its process ends, since the book would continue it; and after, since it may have
    # begun meanwhile.
    stop_run(state)
    Task.shutdown(current.task, :brutal_kill)
    stop_run(state)
    tell(state, {:stopped, current.turn})
    error = {:error, %ConversationError{kind: :stopped, id: state.id}}
    for from <- current.callers, do: GenServer.reply(from, error)
    {:reply, :ok, wait(%{state | current: nil, stopped: true})}
  end

  def handle_call(:continue, _from, state) do
    if state.stopped, do: tell(state, :continued)
    {:reply, :ok, next(%{state | stopped: false})}
  end

  def handle_call(:group, _from, state), do: {:reply, {state.book, group(state)}, state}

  def handle_call({:subscribed?, pid}, _from, state),
    do: {:reply, pid in Watcher.everywhere(state.book, group(state)), state}

  def handle_call(:transcript, _from, state), do: {:reply, state.transcript, state}

  def handle_call(:info, _from, state) do
    state = look(state)

    info = %{
      id: state.id,
      status: status(state),
      queue: :queue.len(state.queue),
      pending: state.pending,
      leader: leader(state)
    }

    {:reply, info, state}
  end

  defp stop_run(state) do
    if durable?(state), do: Runs.stop_conversation(state.book, state.id, profile_id(state))
  end

  defp status(%{current: %{}}), do: :running
  defp status(%{stopped: true}), do: :stopped
  defp status(_state), do: :idle

  @impl true
  def handle_info({:turn, turn, event}, %{current: %{turn: turn}} = state) do
    tell(state, {:event, turn, event})

    case event do
      {:transcript, transcript} -> {:noreply, %{state | transcript: transcript}}
      _other -> {:noreply, state}
    end
  end

  # Of a turn that was stopped.
  def handle_info({:turn, _turn, _event}, state), do: {:noreply, state}

  def handle_info({ref, outcome}, %{current: %{task: %{ref: ref}}} = state) do
    Process.demonitor(ref, [:flush])

    state =
      case busy(outcome) do
        nil -> ended(state, outcome, outcome)
        run -> after_run(state, run, outcome)
      end

    rest(state)
  end

  def handle_info({:DOWN, ref, :process, _, reason}, %{current: %{task: %{ref: ref}}} = state) do
    error = %ConversationError{kind: :crashed, id: state.id, reason: reason}
    # The call of a decision may have run.
    with {how, _ref, _options} when how in [:approve, :deny] <- state.current.what,
         do: send(self(), :resume)

    rest(ended(state, {:error, reason}, {:error, error}))
  end

  def handle_info({:skillbook_approval, _book, %Approval{} = approval}, state),
    do: rest(decided(state, approval))

  # Messages are missing, and the turn that ended with the book may go on.
  def handle_info({:skillbook_started, book, _generation}, %{book: book} = state),
    do: handle_info(:resume, state)

  def handle_info(:resume, %{current: nil, stopped: false} = state),
    do: {:noreply, state, {:continue, :resume}}

  def handle_info(:resume, state), do: {:noreply, look(%{state | untold: true})}

  def handle_info({:idle, timer}, %{timer: {_reference, timer}, current: nil} = state) do
    # Inputs that wait are not forgotten.
    if :queue.is_empty(state.queue) do
      tell(state, :idle)
      {:stop, :normal, state}
    else
      {:noreply, wait(state)}
    end
  end

  def handle_info(_message, state), do: {:noreply, state}

  # Without the garbage of its turn, one that waits has little more than its transcript.
  defp rest(%{current: nil} = state), do: {:noreply, state, :hibernate}
  defp rest(state), do: {:noreply, state}

  # The queue

  defp add(state, what, callers, from) do
    if :queue.len(state.queue) >= state.max_queue do
      error = %ConversationError{kind: :full, id: state.id, max: state.max_queue}
      {:reply, {:error, error}, state}
    else
      turn = make_ref()
      tell(state, {:queued, turn, input(what)})
      queue = :queue.in(%{turn: turn, what: what, callers: callers}, state.queue)
      state = next(%{state | queue: queue})
      if from, do: {:noreply, state}, else: {:reply, {:ok, turn}, state}
    end
  end

  # The text of a user, or the reference of a run or of a call.
  defp input({_how, input}), do: input
  defp input({_how, ref, _options}), do: ref

  defp next(%{current: nil, stopped: false} = state) do
    case :queue.out(state.queue) do
      {:empty, _queue} -> state |> wait() |> tell_decided()
      {{:value, item}, queue} -> start(%{state | queue: queue}, item)
    end
  end

  defp next(state), do: state

  # A call may have ended without its turn, in a process that was killed. Turns with an input tell
  # the model too.
  defp tell_decided(%{untold: true} = state) do
    case SuspendedRun.waiting(state.book, state.transcript) do
      {_open, [{ref, _approval, _result} | _]} ->
        start(state, %{turn: make_ref(), what: {:decided, ref}, callers: []})

      {open, []} ->
        if Enum.any?(open, &(&1.status == :running)), do: resume_later(state.book)
        %{state | untold: false}
    end
  end

  defp tell_decided(state), do: state

  # A call whose process was killed is interrupted when its lease has passed.
  defp resume_later(book) do
    with %Book{of_parts: parts} <- Book.find(book),
         do: Process.send_after(self(), :resume, parts.approvals[:lease])
  end

  defp start(state, %{turn: turn, what: what} = item) do
    # One that goes on may have begun before a call was decided.
    state = look(%{state | untold: state.untold and match?({:continue, _ref}, what)})
    tell(state, {:started, turn, input(what)})
    server = self()
    %{book: book, save: save, run: run, transcript: transcript} = state
    given = State.event_function(run[:on_event])

    on_event = fn event ->
      send(server, {:turn, turn, event})
      given.(event)
    end

    options = Keyword.merge(run, on_event: on_event, transcript: transcript)
    options = Keyword.put(options, :conversation, state.id)
    current = Map.merge(item, %{task: nil, before: transcript, durable: durable?(state)})

    case begin(book, fn ->
           outcome = take_turn(book, what, options)
           with %Transcript{} = transcript <- own_transcript(outcome), do: save.(transcript)
           outcome
         end) do
      {:ok, task} ->
        %{state | current: %{current | task: task}}

      {:error, reason} ->
        error = %ConversationError{kind: :crashed, id: state.id, reason: reason}
        ended(%{state | current: current}, {:error, reason}, {:error, error})
    end
  end

  # Its process is not linked, since its crash is no crash of the conversation; but it ends with
  # the conversation, as a run does with its caller.
  defp begin(book, fun) do
    server = self()

    task =
      Task.Supervisor.async_nolink(Worker.supervisor(book), fn ->
        Worker.exit_with(server)
        fun.()
      end)

    {:ok, task}
  catch
    :exit, _reason -> {:error, %StoppedError{book: book}}
  end

  defp take_turn(book, {:continue, ref}, options), do: continue(book, ref, options)

  defp take_turn(book, what, options) do
    {run, transcript} = newest(Book.fetch!(book), options)

    if unended?(run),
      do: {:error, %RunError{kind: :busy, ref: run.ref}},
      else: work(book, what, Keyword.put(options, :transcript, transcript))
  end

  defp work(book, {:input, input}, options), do: Agent.run(book, input, options)

  # Another process of the conversation may have told it.
  defp work(book, {:decided, ref}, options) do
    case SuspendedRun.waiting(book, options[:transcript]) do
      {_open, []} ->
        ended_elsewhere(Book.fetch!(book), options, %RunError{kind: :ended, ref: ref})

      _untold ->
        {view, rest} = View.from(book, options, "a conversation")
        rest = Settings.with_book(rest, Book.fetch!(book))
        Loop.tell(view, Keyword.get(options, :profile, "default"), rest)
    end
  end

  defp work(book, {:approve, ref, decision}, options),
    do: Skillbook.approve(book, ref, decision ++ [resume: Keyword.drop(options, [:profile])])

  defp work(book, {:deny, ref, decision}, options),
    do: Skillbook.deny(book, ref, decision ++ [resume: Keyword.drop(options, [:profile])])

  # Another process may be at it: that of a turn which is about to end, or the book.
  defp continue(book, ref, options) do
    own = Keyword.drop(options, [:profile, :transcript, :durable, :conversation])

    case Runs.continue(book, ref, own) do
      {:error, %RunError{kind: :running}} ->
        Process.sleep(@look)
        continue(book, ref, options)

      {:error, %RunError{kind: :ended} = error} ->
        ended_elsewhere(Book.fetch!(book), options, error)

      outcome ->
        outcome
    end
  end

  # Its events went to another process.
  defp ended_elsewhere(book, options, error) do
    id = profile_id(%{run: options})

    with {%{text: text} = run, %Transcript{} = transcript} when text != nil <-
           Runs.of_conversation(book, options[:conversation], id) do
      usage = %{prompt_tokens: 0, completion_tokens: 0, cached_tokens: 0, cache_write_tokens: 0}
      usage = Map.put(usage, :estimated, true)
      fields = Map.take(run, [:status, :text, :turns])
      leader = transcript.leader || id
      more = %{transcript: transcript, usage: usage, leader: leader}
      {:ok, struct!(Result, Map.merge(fields, more))}
    else
      _stopped -> {:error, error}
    end
  end

  defp busy({:error, %RunError{kind: :busy, ref: ref}}), do: ref
  defp busy({:error, %AgentError{error: %RunError{kind: :busy, ref: ref}}}), do: ref
  defp busy(_outcome), do: nil

  # The turn that runs comes after that run. One that waits for it in vain ends.
  defp after_run(%{current: %{after: run}} = state, run, outcome),
    do: ended(state, outcome, outcome)

  defp after_run(%{current: current} = state, run, _outcome) do
    tell(state, {:queued, current.turn, input(current.what)})
    queue = :queue.in_r(Map.put(current, :after, run), state.queue)
    go_on(%{state | current: nil, queue: queue}, run)
  end

  defp ended(%{current: current} = state, outcome, reply) do
    tell(state, {:ended, current.turn, outcome})
    for from <- current.callers, do: GenServer.reply(from, reply)

    result = result(outcome)

    cond do
      # The stored run has its additions, and goes on.
      result == nil and current.durable ->
        next(%{state | current: nil, transcript: current.before})

      result == nil ->
        next(%{state | current: nil})

      # The result of a call is still to be told.
      foreign?(result) ->
        next(%{state | current: nil, transcript: current.before, untold: true})

      # Calls of earlier turns may still wait.
      true ->
        next(look(%{state | current: nil, transcript: result.transcript}, result.pending))
    end
  end

  defp own_transcript(outcome) do
    result = result(outcome)
    unless result == nil or foreign?(result), do: result.transcript
  end

  # Another process has the conversation, so what this one added is no part of it.
  defp foreign?(%{error: %RunError{kind: kind}}), do: kind in [:lost, :busy]
  defp foreign?(_result), do: false

  defp result({:ok, %Agent.Result{} = result}), do: result
  defp result({:ok, %Approval{run: run}}), do: run
  defp result({:error, %AgentError{result: result}}), do: result
  defp result(_error), do: nil

  # The time to idle begins anew.
  defp wait(state) do
    with {reference, _timer} when reference != nil <- state.timer,
         do: Process.cancel_timer(reference)

    timer = make_ref()

    reference =
      if state.idle != :infinity, do: Process.send_after(self(), {:idle, timer}, state.idle)

    %{state | timer: {reference, timer}}
  end

  # `:pg` keeps them while this process restarts. Those of another profile's conversation with the
  # same id are others.
  defp group(state), do: {:conversation, profile_id(state), state.id}

  defp tell(state, event) do
    for pid <- Watcher.everywhere(state.book, group(state)),
        do: send(pid, {:skillbook_conversation, state.id, event})

    :ok
  end
end
