defmodule Skillbook.Web.Page.Chats do
  @moduledoc false
  # The conversations that people have with the book's model on the page, and that clients of the
  # API have. Each is run by a process of the book. One of the page goes on when its page is
  # closed; an answer that a client reads as it comes ends with its reader. They are kept in the
  # memory of the node: the newest of the book, each up to a size.
  #
  # A conversation belongs to the profile with the rights and the token that began it, so a
  # profile with other rights never reads the texts of before. A change is told to the streams of
  # events of its owner.

  alias Skillbook.Book.Cache
  alias Skillbook.Catalog.Watcher
  alias Skillbook.Run.Worker
  alias Skillbook.Web.Caller
  alias Skillbook.{Agent, AgentError, Book, Profile, Tools, Transcript, View}

  @max_chats 100
  # Answers that are awaited at once.
  @max_running 8
  @max_own 2
  # Bytes of a conversation that may go on, characters of a text, and of a text that is streamed.
  @max_json 1024 * 1024
  @max_input 8_000
  @max_live 100_000
  # Of one answer.
  @max_turns 10
  @max_time 120_000
  # Milliseconds between two messages about streamed text.
  @pause 150

  @typedoc """
  A conversation: its owner, its process, the transcript as JSON, what the answer that is awaited
  has had so far, and what the model got.
  """
  @type chat :: %{
          id: String.t(),
          owner: binary(),
          at: integer(),
          title: String.t(),
          input: String.t() | nil,
          pid: pid() | nil,
          status: atom(),
          json: binary() | nil,
          pending: [String.t()],
          picks: [map()],
          tools: %{count: non_neg_integer(), tokens: non_neg_integer()},
          usage: map() | nil,
          error: String.t() | nil,
          live: [map()]
        }

  @doc "The group of the messages about an owner's conversations."
  @spec group(Caller.t()) :: term()
  def group(caller), do: {:chats, owner(caller)}

  defp owner(%Caller{profile: profile} = caller) do
    Cache.key(
      {Profile.ids(profile), profile.tenant, profile.grants, Profile.globs(profile),
       profile.writes, caller.token}
    )
  end

  @doc "The longest text that may be sent, in characters."
  def max_input, do: @max_input

  @doc "The model of the book, or nil."
  @spec model(Book.t()) :: struct() | nil
  def model(%Book{of_parts: %{agent: agent}}), do: agent[:model]
  def model(_book), do: nil

  @doc "The conversations of a caller, the newest first."
  @spec list(Caller.t()) :: [chat()]
  def list(%Caller{view: %{book: book}} = caller) do
    owner = owner(caller)

    book
    |> all()
    |> Enum.filter(&(&1.owner == owner))
    |> Enum.sort_by(& &1.at, :desc)
    |> Enum.map(&checked(book, &1))
  end

  @doc "One of them."
  @spec fetch(Caller.t(), String.t()) :: {:ok, chat()} | :error
  def fetch(%Caller{view: %{book: book}} = caller, id) do
    with {:ok, chat} <- Cache.fetch(book, PageChats, id),
         true <- chat.owner == owner(caller),
         do: {:ok, checked(book, chat)},
         else: (_none -> :error)
  end

  # A process puts the answer before it ends, so it has crashed only if nothing has come by now.
  defp checked(book, %{status: :running, pid: pid} = chat) do
    with false <- Process.alive?(pid),
         {:ok, %{status: :running, pid: ^pid} = now} <- Cache.fetch(book, PageChats, chat.id) do
      %{now | status: :crashed, pid: nil}
    else
      true -> chat
      {:ok, now} -> checked(book, now)
      :error -> %{chat | status: :crashed, pid: nil}
    end
  end

  defp checked(_book, chat), do: chat

  @doc "Begins a conversation with a text."
  @spec begin(Caller.t(), String.t()) :: {:ok, chat()} | {:error, String.t()}
  def begin(caller, input) do
    id = 16 |> :crypto.strong_rand_bytes() |> Base.url_encode64(padding: false)
    say(caller, input, new(owner(caller), id))
  end

  @doc "The conversation that a caller has by this name; a new one has the status `:new`."
  @spec open(Caller.t(), String.t()) :: chat()
  def open(caller, name) do
    owner = owner(caller)
    id = :sha256 |> :crypto.hash([owner, name]) |> Base.url_encode64(padding: false)
    with :error <- fetch(caller, id), do: new(owner, id), else: ({:ok, chat} -> chat)
  end

  defp new(owner, id) do
    %{
      id: id,
      owner: owner,
      at: System.monotonic_time(),
      title: "",
      input: nil,
      pid: nil,
      status: :new,
      json: nil,
      pending: [],
      picks: [],
      tools: %{count: 0, tokens: 0},
      usage: nil,
      error: nil,
      live: []
    }
  end

  @doc """
  Says something in a conversation, whose answer then comes.

  A process that reads it gets `{:skillbook_chat_event, pid, event}` of the process of the answer:
  the events of `Skillbook.Agent`, and `{:ended, chat}`. The answer ends with it.
  """
  @spec say(Caller.t(), String.t(), chat(), pid() | nil) :: {:ok, chat()} | {:error, String.t()}
  def say(caller, input, chat, reader \\ nil) do
    input = String.trim(input)

    cond do
      input == "" ->
        {:error, "expected a text, got nothing"}

      not String.valid?(input) or String.contains?(input, <<0>>) ->
        {:error, "expected text in UTF-8 without NUL"}

      String.length(input) > @max_input ->
        {:error, "expected at most #{@max_input} characters, got: #{String.length(input)}"}

      true ->
        title = if chat.title == "", do: String.slice(input, 0, 80), else: chat.title
        ask = &Agent.run(&1, input, &2)
        run(caller, %{chat | input: input, title: title}, ask, reader)
    end
  end

  @doc """
  Goes on with a conversation after a decision. `decide` gets the options with which the agent
  resumes, and returns the approval.
  """
  @spec decide(Caller.t(), chat(), String.t(), (keyword() -> {:ok, map()} | {:error, term()})) ::
          {:ok, chat()} | {:error, String.t()}
  def decide(caller, chat, ref, decide) do
    run(caller, chat, fn _view, options ->
      case decide.(options) do
        {:ok, %{run: %Agent.Result{} = result}} -> {:ok, result}
        {:ok, _without_agent} -> {:decided, ref}
        {:error, error} -> {:error, error}
      end
    end)
  end

  @doc "Stops the answer that is awaited."
  @spec stop(Caller.t(), chat()) :: :ok
  def stop(%Caller{view: %{book: book}}, %{status: :running, pid: pid} = chat) do
    monitor = Process.monitor(pid)
    Process.exit(pid, :kill)

    receive do
      {:DOWN, ^monitor, _process, _pid, _reason} ->
        with %{status: :crashed} = stopped <- checked(book, chat),
             do: put(book, %{stopped | status: :stopped}),
             else: (_ended -> :ok)
    end
  end

  def stop(_caller, _chat), do: :ok

  defp run(%Caller{view: view} = caller, chat, ask, reader \\ nil) do
    book = Book.fetch!(view.book)

    running =
      for %{status: :running} = one <- Enum.map(all(view.book), &checked(view.book, &1)), do: one

    cond do
      model(book) == nil ->
        {:error, "this book has no model; give it the option agent: [model: …]"}

      chat.status == :running ->
        {:error, "the model is still answering"}

      byte_size(chat.json || "") > @max_json ->
        {:error, "the conversation is too long; begin a new one"}

      length(running) >= @max_running or
          Enum.count(running, &(&1.owner == chat.owner)) >= @max_own ->
        {:error, "too many answers are awaited; try again in a minute"}

      true ->
        {:ok, start(caller, book, chat, ask, reader)}
    end
  end

  defp start(caller, book, chat, ask, reader) do
    chat = %{chat | status: :running, error: nil, live: [], at: System.monotonic_time()}
    parent = self()

    supervisor = Worker.supervisor(book.name)

    {:ok, pid} =
      Task.Supervisor.start_child(supervisor, fn ->
        receive do
          {^parent, :begin, chat} ->
            if reader, do: Worker.exit_with(reader)
            answer(caller, book, chat, ask, reader)
        end
      end)

    # A process that crashes or is killed cannot say so.
    {:ok, _watcher} =
      Task.Supervisor.start_child(supervisor, fn ->
        monitor = Process.monitor(pid)

        receive do
          {:DOWN, ^monitor, _process, _pid, reason} ->
            if reason != :normal, do: changed(book.name, chat)
        end
      end)

    chat = %{chat | pid: pid}
    drop_oldest(book.name, chat.id)
    put(book.name, chat)
    send(pid, {parent, :begin, chat})
    chat
  end

  # In the process of the conversation

  defp answer(%Caller{view: %{profile: profile}}, book, chat, ask, reader) do
    Process.put(__MODULE__, chat)
    view = View.of(book.name, profile)
    result = ask.(view, options(book, chat, reader))
    chat = ended(%{Process.get(__MODULE__) | pid: nil, live: []}, result)
    put(book.name, chat)
    tell(reader, {:ended, chat})
  end

  defp tell(nil, _event), do: :ok
  defp tell(reader, event), do: send(reader, {:skillbook_chat_event, self(), event})

  defp ended(chat, {:ok, %Agent.Result{} = result}) do
    chat = with_transcript(chat, result.transcript)
    pending = result.transcript.waiting
    %{chat | status: result.status, pending: pending, usage: result.usage, input: nil}
  end

  defp ended(chat, {:error, %AgentError{result: result} = error}),
    do: %{ended(chat, {:ok, result}) | error: Exception.message(error)}

  defp ended(chat, {:error, error}),
    do: %{chat | status: :error, error: Exception.message(error)}

  defp ended(chat, {:decided, ref}),
    do: %{chat | status: :done, pending: List.delete(chat.pending, ref)}

  defp options(book, chat, reader) do
    process = self()
    agent = book.of_parts.agent
    transcript = with {:ok, transcript} <- from_json(chat.json), do: transcript, else: (_ -> nil)

    [
      transcript: transcript,
      max_turns: min(agent[:max_turns] || @max_turns, @max_turns),
      max_time: min(agent[:max_time] || @max_time, @max_time),
      # Events of dispatched agents come from other processes.
      on_event: fn event ->
        if self() == process do
          event(book.name, event)
          tell(reader, event)
        end
      end
    ] ++ ask(book)
  end

  # A person is there, so a call may wait for the decision.
  defp ask(%{ask: nil, store: store}) when store != nil, do: [ask: fn _request -> :pending end]
  defp ask(_book), do: []

  defp from_json(nil), do: {:ok, nil}
  defp from_json(json), do: Transcript.from_json(json)

  @doc "The messages of a conversation."
  @spec messages(chat()) :: [Transcript.Message.t()]
  def messages(%{json: nil}), do: []

  def messages(%{json: json}) do
    {:ok, transcript} = Transcript.from_json(json)
    transcript.messages
  end

  defp event(book, {:transcript, transcript}),
    do: change(book, &%{with_transcript(&1, transcript) | live: [], input: nil})

  defp event(book, {:preloaded, %{picks: picks}}) do
    picks = for pick <- picks, do: Map.take(pick, [:name, :confidence, :stage, :reason])
    change(book, &%{&1 | picks: picks})
  end

  defp event(book, {:text, text}),
    do: change(book, &%{&1 | live: add_text(&1.live, text)}, @pause)

  defp event(book, {:result, result}) do
    line = %{command: result.command || "", status: result.status}
    change(book, &%{&1 | live: [line | &1.live]})
  end

  defp event(_book, _other), do: :ok

  # The newest part comes first.
  defp add_text([%{text: before} | rest], text),
    do: [%{text: String.slice(before <> text, 0, @max_live)} | rest]

  defp add_text(live, text), do: [%{text: text} | live]

  defp with_transcript(chat, transcript) do
    tools = transcript.tools || []

    tools =
      if tools == [], do: chat.tools, else: %{count: length(tools), tokens: Tools.tokens(tools)}

    %{chat | json: Transcript.to_json(transcript), tools: tools}
  end

  # Text comes in small pieces, which are shown together.
  defp change(book, fun, pause \\ 0) do
    chat = fun.(Process.get(__MODULE__))
    Process.put(__MODULE__, chat)
    now = System.monotonic_time(:millisecond)

    if now - (Process.get({__MODULE__, :told}) || now - pause) >= pause do
      Process.put({__MODULE__, :told}, now)
      put(book, chat)
    else
      :ok
    end
  end

  # The table

  defp all(book), do: for({_id, chat} <- :ets.tab2list(Cache.name(book, PageChats)), do: chat)

  defp put(book, chat) do
    :ok = Cache.put(book, PageChats, chat.id, chat)
    changed(book, chat)
  end

  defp changed(book, chat),
    do: Watcher.publish(book, {:skillbook_chat, book, chat.id}, {:chats, chat.owner})

  defp drop_oldest(book, id) do
    chats = for chat <- all(book), chat.id != id, do: checked(book, chat)
    idle = for %{status: status} = chat <- chats, status != :running, do: chat

    for chat <- idle |> Enum.sort_by(& &1.at) |> Enum.take(length(chats) - @max_chats + 1),
        length(chats) >= @max_chats,
        do: :ets.delete(Cache.name(book, PageChats), chat.id)
  end
end
