defmodule Skillbook.ConversationDocTest do
  use ExUnit.Case, async: true

  doctest Skillbook.Conversation
  doctest Skillbook.ConversationError
end

defmodule Skillbook.ConversationTest do
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Book, Conversation, ConversationError, Eventually, Model, ModelError}
  alias Skillbook.{OptionError, RunError, SQL, Transcript}

  @saved "select 1 from skillbook_memories"

  setup do
    profiles = [[id: "ann", writes: :ask]]
    options = [store: ":memory:", watch: false, profiles: profiles]
    {:ok, book: book(options ++ [ask: fn _request -> :pending end])}
  end

  # A model that tells the test what it was asked, and answers when the test says so.
  defp held do
    test = self()

    Model.Function.new(fn messages, _options, on_text ->
      send(test, {:asked, self(), List.last(messages).content})

      receive do
        {:answer, text} ->
          on_text.(text)
          text
      end
    end)
  end

  defp answer(text) do
    assert_receive {:asked, pid, input}
    send(pid, {:answer, text})
    input
  end

  defp start(book, options) do
    options =
      Keyword.merge([book: book, id: "c-1", profile: "ann", run: [model: held()]], options)

    pid = start_supervised!({Conversation, options})
    :ok = Conversation.subscribe(pid)
    pid
  end

  defmacrop receives(event) do
    quote do: assert_receive({:skillbook_conversation, "c-1", unquote(event)})
  end

  test "turns run one at a time, in their order, on one transcript", %{book: book} do
    pid = start(book, [])
    {:ok, one} = Conversation.say(pid, "One")
    {:ok, two} = Conversation.say(pid, "Two")
    receives({:queued, ^one, "One"})
    receives({:started, ^one, "One"})
    receives({:queued, ^two, "Two"})
    assert %{status: :running, queue: 1} = Conversation.info(pid)
    assert answer("First.") == "One"
    receives({:event, ^one, {:text, "First."}})
    receives({:ended, ^one, {:ok, %{text: "First.", status: :done}}})
    receives({:started, ^two, "Two"})
    assert answer("Second.") == "Two"
    receives({:ended, ^two, {:ok, %{text: "Second."}}})
    assert %{status: :idle, queue: 0} = Conversation.info(pid)
    texts = for m <- Conversation.transcript(pid).messages, m.kind != :prompt, do: m.content
    assert texts == ["One", "First.", "Two", "Second."]
  end

  test "the queue has a limit", %{book: book} do
    pid = start(book, max_queue: 2)
    for text <- ~w(one two three), do: assert({:ok, _} = Conversation.say(pid, text))
    error = %ConversationError{kind: :full, id: "c-1", max: 2}
    assert Conversation.say(pid, "four") == {:error, error}
    assert Conversation.ask(pid, "four") == {:error, error}
  end

  test "ask/3 waits for its turn", %{book: book} do
    pid = start(book, [])
    task = Task.async(fn -> Conversation.ask(pid, "One") end)
    answer("First.")
    assert {:ok, %{text: "First."}} = Task.await(task, :infinity)
  end

  test "a turn is stopped, and the queue goes on", %{book: book} do
    pid = start(book, [])
    task = Task.async(fn -> Conversation.ask(pid, "One") end)
    assert_receive {:asked, asked, "One"}
    monitor = Eventually.monitor(asked)
    {:ok, two} = Conversation.say(pid, "Two")
    :ok = Conversation.stop(pid)
    assert_receive {:DOWN, ^monitor, :process, _, _}
    assert {:error, %ConversationError{kind: :stopped}} = Task.await(task, :infinity)
    receives({:stopped, _one})
    assert %{status: :stopped, queue: 1} = Conversation.info(pid)
    assert Conversation.transcript(pid) == nil
    :ok = Conversation.continue(pid)
    receives(:continued)
    answer("Second.")
    receives({:ended, ^two, {:ok, %{text: "Second."}}})
    assert %{status: :idle} = Conversation.info(pid)
  end

  test "its turn ends with it, however it ends", %{book: book} do
    Process.flag(:trap_exit, true)

    for reason <- [:kill, :shutdown] do
      {:ok, pid} = Conversation.start_link(book: book, profile: "ann", run: [model: held()])
      {:ok, _turn} = Conversation.say(pid, "One")
      assert_receive {:asked, asked, "One"}
      monitor = Eventually.monitor(asked)
      Process.exit(pid, reason)
      assert_receive {:DOWN, ^monitor, :process, _, _}
    end
  end

  test "a failure ends a turn, and not the conversation", %{book: book} do
    error = {:error, %ModelError{kind: :refused, reason: "no"}}
    crash = Model.Function.new(fn _messages, _options -> raise "oh" end)
    failing = Model.Function.new(fn _messages, _options -> error end)

    for {model, check} <- [
          {failing, &match?({:error, %Skillbook.AgentError{}}, &1)},
          {crash, &match?({:error, %ConversationError{kind: :crashed}}, &1)}
        ] do
      pid =
        start_supervised!({Conversation, book: book, profile: "ann", run: [model: model]},
          id: model
        )

      ExUnit.CaptureLog.capture_log(fn ->
        assert check.(Conversation.ask(pid, "One"))
      end)

      assert %{status: :idle} = Conversation.info(pid)
    end
  end

  test "calls that wait are decided in it", %{book: book} do
    for {decide, text} <- [approve: "ok", deny: "it was declined"] do
      pid = start(book, [])
      Conversation.say(pid, "Remember tea")
      answer("```cmd\nmemory.save --content tea\n```")
      answer("It waits.")
      receives({:ended, _turn, {:ok, %{status: :pending, pending: [%{ref: ref}]}}})
      assert %{pending: [%{ref: ^ref, resumable: true}]} = Conversation.info(pid)

      # The user goes on meanwhile.
      Conversation.say(pid, "And milk?")
      answer("Milk too.")
      receives({:ended, _turn, {:ok, %{text: "Milk too."}}})

      {:ok, turn} = apply(Conversation, decide, [pid, ref, [by: "Bob"]])
      assert answer("Done.") =~ text
      receives({:approval, %{ref: ^ref}})
      receives({:ended, ^turn, {:ok, %{run: %{text: "Done."}}}})
      assert %{pending: []} = Conversation.info(pid)

      texts =
        for %{kind: :input, content: text} <- Conversation.transcript(pid).messages, do: text

      assert texts == ["Remember tea", "And milk?"]
      :ok = stop_supervised({Conversation, "c-1"})
    end
  end

  # Kills a book, and returns when it runs again.
  defp restart(book) do
    Task.await(
      Task.async(fn ->
        :ok = Skillbook.subscribe(book)
        Process.exit(GenServer.whereis(book), :kill)
        assert_receive {:skillbook_started, ^book, _generation}, 60_000
      end),
      :infinity
    )
  end

  @tag :tmp_dir
  @tag :capture_log
  test "it hears of calls that are decided after its book has crashed", %{tmp_dir: folder} do
    book =
      book(
        store: Path.join(folder, "book.db"),
        watch: false,
        profiles: [[id: "ann", writes: :ask]],
        ask: fn _request -> :pending end
      )

    pid = start(book, [])
    Conversation.say(pid, "Remember tea and milk")
    answer("```cmd\nmemory.save --content tea\nmemory.save --content milk\n```")
    answer("They wait.")
    receives({:ended, _turn, {:ok, %{pending: [%{ref: tea}, %{ref: milk}]}}})

    restart(book)
    {:ok, _approval} = Skillbook.approve(book, tea, by: "Bob")
    receives({:approval, %{ref: ^tea, status: :done}})
    assert %{pending: [%{ref: ^milk}]} = Conversation.info(pid)

    # Decided without a message, as by another node.
    hears_nothing_of(pid, book, milk)
    {:ok, _approval} = Skillbook.deny(book, milk, by: "Bob")
    send(pid, {:skillbook_started, book, 1})
    receives({:approval, %{ref: ^milk, status: :denied}})
    assert %{pending: []} = Conversation.info(pid)
    assert answer("One is saved.") =~ ~r/#{tea}.*#{milk}/s
  end

  # As of decisions on another node. It listens only after it has told that its turn has ended.
  defp hears_nothing_of(pid, book, ref) do
    group = {book, {:approval, ref}}
    leave = fn -> :pg.leave(Skillbook.Subscribers, group, pid) == :ok end
    assert Eventually.eventually(leave)
  end

  defp results(messages, ref) do
    for %{kind: :report, content: "The result of the call that waited for " <> text} <- messages,
        String.starts_with?(text, ref),
        do: text
  end

  test "calls that are decided elsewhere join it once, at its next turn", %{book: book} do
    # In this process, in one that starts again, and in one that has the transcript as JSON.
    for how <- [:same, :again, :json],
        {decide, options, text} <- [
          {:approve, [], "[1] memory.save --content tea\nok"},
          {:deny, [reason: "no"], "it was declined: no"},
          {:approve, [resume: [model: Model.Function.new(fn _, _ -> "Saved." end)]], "\nok"},
          {:expire, [], "expired on"}
        ] do
      pid = start(book, [])
      Conversation.say(pid, "Remember tea")
      answer("```cmd\nmemory.save --content tea\nmemory.save --content milk\n```")
      answer("It waits.")
      receives({:ended, _turn, {:ok, %{pending: [%{ref: ref}, %{ref: other}]}}})
      for ref <- [ref, other], do: hears_nothing_of(pid, book, ref)

      if decide == :expire do
        options = [now: DateTime.add(DateTime.utc_now(), 40, :day)]
        {:ok, []} = Skillbook.approvals(book, options)
      else
        {:ok, _} = apply(Skillbook, decide, [book, ref, [by: "Bob"] ++ options])
      end

      left = if decide == :expire, do: [], else: [other]
      assert left == for(approval <- Conversation.info(pid).pending, do: approval.ref)
      receives({:approval, %{ref: ^ref}})

      pid =
        if how == :same do
          pid
        else
          transcript = Conversation.transcript(pid)
          {:ok, read} = transcript |> Transcript.to_json() |> Transcript.from_json()
          :ok = stop_supervised({Conversation, "c-1"})
          start(book, transcript: if(how == :json, do: read, else: transcript))
        end

      assert left == for(approval <- Conversation.info(pid).pending, do: approval.ref)
      # One that starts tells the model at once.
      if how == :same, do: Conversation.say(pid, "Is it done?")
      asked = if how == :same, do: "Is it done\\?$", else: ""
      assert answer("Yes.") =~ ~r/#{ref}.*#{Regex.escape(text)}.*#{asked}/s
      receives({:ended, _turn, {:ok, %{text: "Yes."}}})

      if left != [] do
        {:ok, _turn} = Conversation.approve(pid, other, by: "Bob")
        answer("Both.")
        receives({:ended, _turn, {:ok, %{run: %{text: "Both."}}}})
      end

      Conversation.say(pid, "And now?")
      answer("All is done.")
      receives({:ended, _turn, {:ok, %{text: "All is done.", transcript: transcript}}})
      assert transcript.waiting == []
      for ref <- [ref, other], do: assert([_once] = results(transcript.messages, ref))
      :ok = stop_supervised({Conversation, "c-1"})
    end
  end

  # Kills the process of a turn, or that of its conversation, once, at a point of a decision:
  # while the call runs, when it has ended, when its result has joined, or when the model is
  # asked.
  defp killing(book, point, who, once) do
    kill = fn at ->
      if at == point and :counters.get(once, 1) == 0 do
        :counters.add(once, 1, 1)
        killed = if who == :turn, do: self(), else: GenServer.whereis({:global, book})
        Process.exit(killed, :kill)
        Process.sleep(:infinity)
      end
    end

    handle = fn [:skillbook, kind | _], _measurements, metadata, _config ->
      case {kind, metadata} do
        {:command, %{book: ^book, skill: "memory.save"}} -> kill.(:call)
        {_approval, %{book: ^book, status: :pending}} -> :ok
        {:approval, %{book: ^book}} -> kill.(:ended)
        _another -> :ok
      end
    end

    events = [[:skillbook, :command, :start], [:skillbook, :approval, :changed]]
    :telemetry.attach_many("killing #{inspect(book)}", events, handle, nil)
    on_exit(fn -> :telemetry.detach("killing #{inspect(book)}") end)

    fn
      {:message, %{kind: :report, content: "The result of the call" <> _}} -> kill.(:joined)
      {:turn, _number} -> kill.(:asked)
      _event -> :ok
    end
  end

  @tag :capture_log
  test "the result of a decision is told, whatever process is killed when" do
    for durable <- [true, false],
        who <- [:conversation, :turn],
        {decide, points} <- [approve: [:call, :ended, :joined, :asked], deny: [:ended, :joined]],
        point <- points do
      at = {durable, who, decide, point}

      book =
        book(
          store: ":memory:",
          watch: false,
          durable: durable,
          approvals: [lease: 1_000],
          profiles: [[id: "ann", writes: :ask]],
          ask: fn _request -> :pending end
        )

      {:ok, saved} = Agent.start_link(fn -> nil end)
      {:ok, armed} = Agent.start_link(fn -> nil end)

      on_event = fn event ->
        with kill when kill != nil <- Agent.get(armed, & &1), do: kill.(event)
      end

      options = [name: {:global, book}, run: [model: held(), on_event: on_event]]

      options =
        if durable,
          do: options,
          else:
            [
              transcript: fn -> Agent.get(saved, & &1) end,
              save: &Agent.update(saved, fn _before -> &1 end)
            ] ++ options

      start(book, options)
      Conversation.say({:global, book}, "Remember tea")
      answer("```cmd\nmemory.save --content tea\n```")
      answer("It waits.")
      receives({:ended, _turn, {:ok, %{pending: [%{ref: ref}]}}})

      once = :counters.new(1, [])
      kill = killing(book, point, who, once)
      Agent.update(armed, fn nil -> kill end)
      {:ok, _turn} = apply(Conversation, decide, [{:global, book}, ref, [by: "Bob"]])
      text = text(decide, point)
      assert_receive {:asked, model, asked}, 60_000, inspect(at)
      assert asked =~ ~r/#{ref}.*#{text}/s, inspect(at)
      send(model, {:answer, "I tell it."})
      # The subscription is that of before.
      receives({:ended, _turn, {:ok, %{text: "I tell it.", transcript: transcript}}})
      assert transcript.waiting == []
      assert [_once] = results(transcript.messages, ref)
      assert {at, :counters.get(once, 1)} == {at, 1}
      info = Conversation.info({:global, book})
      assert {at, info.status, info.pending} == {at, :idle, []}
      {:ok, %{rows: rows}} = SQL.query(Book.sql(Book.fetch!(book)), @saved, [])
      assert {at, length(rows)} == {at, if(text == "ok", do: 1, else: 0)}
      :ok = stop_supervised({Conversation, "c-1"})
      :telemetry.detach("killing #{inspect(book)}")
    end
  end

  defp text(:deny, _point), do: "it was declined"
  defp text(:approve, :call), do: "interrupted while it ran"
  defp text(:approve, _point), do: "ok"

  @tag :tmp_dir
  test "an answer that was given elsewhere is in a durable conversation", %{tmp_dir: folder} do
    book =
      book(
        store: Path.join(folder, "book.db"),
        watch: false,
        durable: true,
        profiles: [[id: "ann", writes: :ask]],
        ask: fn _request -> :pending end
      )

    for {decide, text} <- [approve: "ok", deny: "it was declined"], again? <- [false, true] do
      id = "c-#{decide}-#{again?}"
      pid = start_supervised!({Conversation, start_options(book, id)})
      :ok = Conversation.subscribe(pid)
      Conversation.say(pid, "Remember tea")
      answer("```cmd\nmemory.save --content tea\n```")
      answer("It waits.")
      assert_receive {:skillbook_conversation, ^id, {:ended, _turn, {:ok, %{pending: [one]}}}}

      resume = [model: Model.Function.new(fn _, _ -> "It is told." end)]
      options = [by: "Bob", resume: resume]
      {:ok, %{run: %{text: "It is told."}}} = apply(Skillbook, decide, [book, one.ref, options])

      if again?, do: :ok = stop_supervised({Conversation, id})
      pid = if again?, do: start_supervised!({Conversation, start_options(book, id)}), else: pid
      Conversation.say(pid, "And now?")
      assert answer("Well.") == "And now?"
      assert_receive {:skillbook_conversation, ^id, {:ended, _, {:ok, %{text: "Well."} = result}}}
      texts = for m <- result.transcript.messages, m.kind == :reply, do: m.content
      assert ["It waits.", "It is told.", "Well."] = Enum.take(texts, -3)
      assert [report] = results(result.transcript.messages, one.ref)
      assert report =~ text
      :ok = stop_supervised({Conversation, id})
    end
  end

  @tag :tmp_dir
  test "while it has a turn, it gets the result and no answer of elsewhere", context do
    book =
      book(
        store: Path.join(context.tmp_dir, "book.db"),
        watch: false,
        durable: true,
        profiles: [[id: "ann", writes: :ask]],
        ask: fn _request -> :pending end
      )

    pid = start(book, [])
    Conversation.say(pid, "Remember tea")
    answer("```cmd\nmemory.save --content tea\n```")
    answer("It waits.")
    receives({:ended, _turn, {:ok, %{pending: [%{ref: ref}]}}})
    Conversation.say(pid, "How long?")
    assert_receive {:asked, model, "How long?"}
    resume = [model: Model.Function.new(fn _, _ -> "Saved." end)]
    {:ok, approved} = Skillbook.approve(book, ref, by: "Bob", resume: resume)
    assert %{status: :done, run: %{status: :error, error: %RunError{kind: :busy}}} = approved
    send(model, {:answer, "A day."})
    receives({:ended, _turn, {:ok, %{text: "A day.", transcript: %{waiting: [^ref]}}}})
    Conversation.say(pid, "Is it saved?")
    assert answer("Yes.") =~ ref
    receives({:ended, _turn, {:ok, %{text: "Yes.", transcript: transcript}}})
    assert [_once] = results(transcript.messages, ref)
    refute Enum.any?(transcript.messages, &(&1.content == "Saved."))
  end

  @tag :tmp_dir
  test "a turn that another process has taken over is none of its own, however it ends here",
       %{tmp_dir: folder} do
    for how <- [:answers, :crashes] do
      book =
        book(
          store: Path.join(folder, "#{how}.db"),
          watch: false,
          durable: true,
          profiles: [[id: "ann"]]
        )

      pid = start(book, [])
      {:ok, turn} = Conversation.say(pid, "Remember tea")
      answer("```cmd\nmemory.save --content tea\n```")
      assert_receive {:asked, model, "[1] memory.save" <> _}

      # As the node does that has the run after its lease has passed, and ends it.
      sql = Book.sql(Book.fetch!(book))
      query = "select transcript from skillbook_agent_runs where conversation = 'c-1'"
      {:ok, %{rows: [[json]]}} = SQL.query(sql, query, [])
      {:ok, transcript} = Transcript.open_from_json(json)
      {messages, [_reply]} = Enum.split(transcript.messages, -1)
      at = List.last(messages).at
      reply = %Transcript.Message{kind: :reply, content: "Elsewhere.", at: at}
      json = Transcript.to_json(%{transcript | messages: messages ++ [reply]})

      update =
        "update skillbook_agent_runs set holder = 'another', status = 'done', transcript = $1"

      {:ok, %{num_rows: 1}} = SQL.query(sql, update, [json])
      if how == :answers, do: send(model, {:answer, "Late."}), else: Process.exit(model, :kill)
      receives({:ended, ^turn, {:error, ended}})

      if how == :answers,
        do: assert(%{error: %RunError{kind: :lost}} = ended),
        else: assert(ended == :killed)

      Conversation.say(pid, "And now?")
      answer("Well.")
      receives({:ended, _turn, {:ok, %{text: "Well.", transcript: transcript}}})
      texts = for m <- transcript.messages, m.kind != :prompt, do: m.content
      assert {how, texts} == {how, ["Remember tea", "Elsewhere.", "And now?", "Well."]}
      :ok = stop_supervised({Conversation, "c-1"})
    end
  end

  defp start_options(book, id),
    do: [book: book, id: id, profile: "ann", run: [model: held()]]

  test "only the conversation of a call wakes up for it", %{book: book} do
    [one, other, idle] =
      for id <- ~w(one other idle) do
        pid = start_supervised!({Conversation, start_options(book, id)})
        {:ok, _turn} = Conversation.say(pid, "Remember #{id}")
        pid
      end

    for text <- ["```cmd\nmemory.save --content a\n```", "It waits."],
        _pid <- 1..3,
        do: answer(text)

    [%{ref: ref}] = pending(one)
    for pid <- [other, idle], do: pending(pid)
    for pid <- [one, other, idle], do: :erlang.trace(pid, true, [:receive])
    {:ok, _} = Skillbook.approve(book, ref, by: "Bob")

    for pid <- [one, other, idle] do
      delivered = :erlang.trace_delivered(pid)
      assert_receive {:trace_delivered, ^pid, ^delivered}
    end

    assert_received {:trace, ^one, :receive, {:skillbook_approval, ^book, %{ref: ^ref}}}
    for pid <- [other, idle], do: refute_received({:trace, ^pid, :receive, _message})
    assert %{pending: []} = Conversation.info(one)
    for pid <- [other, idle], do: assert(%{pending: [_]} = Conversation.info(pid))
  end

  defp pending(pid) do
    assert Eventually.eventually(fn -> Conversation.info(pid).status == :idle end)
    Conversation.info(pid).pending
  end

  test "subscribers of one profile's conversation get no events of another's", %{book: book} do
    eve = Skillbook.Profile.new!(id: "eve")
    pid = start(book, [])

    other =
      start_supervised!({Conversation, [profile: eve] ++ start_options(book, "c-1")}, id: :eve)

    Conversation.say(other, "Secret")
    answer("Hidden.")
    assert Eventually.eventually(fn -> Conversation.info(other).status == :idle end)
    {:ok, turn} = Conversation.say(pid, "Hi")
    answer("Hello.")
    receives({:queued, ^turn, "Hi"})
    refute_received {:skillbook_conversation, _id, {:queued, _turn, "Secret"}}
  end

  test "a turn that is stopped loses no result", %{book: book} do
    pid = start(book, [])
    Conversation.say(pid, "Remember tea")
    answer("```cmd\nmemory.save --content tea\n```")
    answer("It waits.")
    receives({:ended, _turn, {:ok, %{pending: [%{ref: ref}]}}})
    {:ok, _} = Skillbook.approve(book, ref, by: "Bob")
    Conversation.say(pid, "Stop")
    assert_receive {:asked, _model, _input}
    :ok = Conversation.stop(pid)
    :ok = Conversation.continue(pid)
    Conversation.say(pid, "Now?")
    assert answer("Yes.") =~ ref
    receives({:ended, _turn, {:ok, %{text: "Yes.", transcript: transcript}}})
    assert [_once] = results(transcript.messages, ref)
  end

  test "a transcript asks for no call of another profile", %{book: book} do
    pid = start(book, [])
    Conversation.say(pid, "Remember tea")
    answer("```cmd\nmemory.save --content secret\n```")
    answer("It waits.")
    receives({:ended, _turn, {:ok, %{pending: [%{ref: ref}]}}})
    {:ok, _} = Skillbook.approve(book, ref, by: "Bob")
    model = Model.Function.new(fn messages, _ -> List.last(messages).content end)
    transcript = %{Transcript.new("eve") | waiting: [ref]}
    options = [model: model, transcript: transcript, profile: Skillbook.Profile.new!(id: "eve")]
    assert {:ok, %{text: "Hi"}} = Skillbook.Agent.run(book, "Hi", options)
  end

  test "calls that wait are known to the process that goes on", %{book: book} do
    pid = start(book, [])
    Conversation.say(pid, "Remember tea")
    answer("```cmd\nmemory.save --content tea\n```")
    answer("It waits.")
    receives({:ended, _turn, {:ok, %{pending: [%{ref: ref}]}}})
    transcript = Conversation.transcript(pid)
    :ok = stop_supervised({Conversation, "c-1"})

    pid = start(book, transcript: transcript)
    assert %{pending: [%{ref: ^ref, resumable: true}]} = Conversation.info(pid)
    {:ok, turn} = Conversation.approve(pid, ref, by: "Bob")
    assert answer("Done.") =~ "ok"
    receives({:ended, ^turn, {:ok, %{run: %{text: "Done."}}}})
    assert %{pending: []} = Conversation.info(pid)
  end

  test "the transcript is saved, and continued", %{book: book} do
    test = self()
    pid = start(book, save: &send(test, {:saved, &1}))
    Conversation.say(pid, "One")
    answer("First.")
    assert_receive {:saved, %Transcript{} = transcript}
    :ok = stop_supervised({Conversation, "c-1"})

    for given <- [transcript, fn -> transcript end] do
      pid = start(book, transcript: given)
      {:ok, two} = Conversation.say(pid, "Two")
      answer("Second.")
      receives({:ended, ^two, {:ok, %{transcript: %{messages: messages}}}})
      assert Enum.map(messages, & &1.kind) == [:prompt, :input, :reply, :input, :reply]
      :ok = stop_supervised({Conversation, "c-1"})
    end
  end

  test "it ends when nobody says anything", %{book: book} do
    pid = start(book, idle: 1)
    receives(:idle)
    monitor = Eventually.monitor(pid)
    # It may be gone before it is watched.
    assert_receive {:DOWN, ^monitor, :process, ^pid, reason}
    assert reason in [:normal, :noproc]
  end

  test "it does not end while a turn runs, and has a name", %{book: book} do
    name = {:global, {__MODULE__, make_ref()}}
    pid = start(book, name: name, idle: 200)
    Conversation.say(name, "One")
    assert_receive {:asked, asked, "One"}
    send(pid, {:idle, elem(:sys.get_state(pid).timer, 1)})
    assert %{status: :running} = Conversation.info(name)
    send(asked, {:answer, "First."})
    receives({:ended, _turn, {:ok, _result}})
    receives(:idle)
  end

  test "each name of a process finds it", %{book: book} do
    registry = :"registry_#{System.unique_integer([:positive])}"
    start_supervised!({Registry, keys: :unique, name: registry})
    local = :"conversation_#{System.unique_integer([:positive])}"

    for name <- [local, {:global, {__MODULE__, local}}, {:via, Registry, {registry, "c-1"}}] do
      {:ok, pid} = Conversation.start_link(book: book, id: inspect(name), name: name)
      assert {name, GenServer.whereis(name)} == {name, pid}
      assert Conversation.info(name).id == inspect(name)
      assert {:error, {:already_started, ^pid}} = Conversation.start_link(book: book, name: name)
    end
  end

  test "an input that is held back outlives the time to idle", %{book: book} do
    pid = start(book, [])
    :ok = Conversation.stop(pid)
    {:ok, one} = Conversation.say(pid, "One")
    send(pid, {:idle, elem(:sys.get_state(pid).timer, 1)})
    assert %{status: :stopped, queue: 1} = Conversation.info(pid)
    :ok = Conversation.continue(pid)
    answer("First.")
    receives({:ended, ^one, {:ok, _result}})
  end

  test "the end of the book ends turns, and not the conversation" do
    options = [name: :conversation_stops, builtins: false, drain: 0]
    {:ok, supervisor} = Skillbook.start_link(options)
    pid = start_supervised!({Conversation, book: :conversation_stops, run: [model: held()]})
    {:ok, _turn} = Conversation.say(pid, "Zero")
    assert_receive {:asked, _model, "Zero"}
    # It cannot know of the end when it is asked to stop.
    :sys.suspend(pid)
    stopping = Task.async(fn -> Conversation.stop(pid) end)
    Supervisor.stop(supervisor)
    :sys.resume(pid)
    assert Task.await(stopping, :infinity) == :ok
    assert Conversation.continue(pid) == :ok
    assert {:error, %ConversationError{kind: :crashed} = error} = Conversation.ask(pid, "One")
    assert error.reason == %Skillbook.StoppedError{book: :conversation_stops}
  end

  test "options are checked", %{book: book} do
    for {options, message} <- [
          {[], "a conversation needs the option :book"},
          {[book: book, queue: 1], "unknown option :queue for a conversation"},
          {[book: book, idle: 0],
           "expected a number of milliseconds or :infinity as the option :idle of a " <>
             "conversation"},
          {[book: book, name: {:local, :c}],
           "expected an atom, {:global, term} or {:via, module, term} as the option :name of " <>
             "a conversation, got: {:local, :c}"},
          {[book: book, name: {:via, "Registry", :c}], "expected an atom, {:global, term} or"}
        ] do
      assert {:error, %OptionError{} = error} = Conversation.start_link(options)
      assert String.starts_with?(Exception.message(error), message)
    end
  end
end
