defmodule Skillbook.ManyConversations.Scripts do
  @moduledoc false
  # The model of a book with many conversations: that of the one which the system prompt names.

  @behaviour Skillbook.Model

  @enforce_keys [:models]
  defstruct [:models]

  @impl true
  def chat(%{models: models}, messages, options, on_text) do
    system = Enum.find_value(messages, &(&1.role == :system && &1.content))
    [_, number] = Regex.run(~r/This is conversation (\d+)\./, system)
    %module{} = model = elem(models, String.to_integer(number) - 1)
    module.chat(model, messages, options, on_text)
  end

  @impl true
  def tools?(_model), do: true
end

defmodule Skillbook.ManyConversations do
  @moduledoc false
  # Conversations of many turns on scripts of the vendors' server, whose commands write rows. They
  # run on several virtual machines that share a database, and any of them may be killed: a
  # conversation, a book, a machine. Another one goes on. Some calls wait for an approval, which
  # each of the machines decides at random times, also while it is killed.
  #
  # The answers depend on the largest step in a request, so that a request which is made again has
  # the same answer. A command has the step of the answer that follows it in its name.

  @behaviour Skillbook.Handler

  alias Skillbook.{Approval, Conversation, Eventually, SQL}
  alias Skillbook.ManyConversations.Scripts
  alias Skillbook.Test.Vendors

  @book :many_conversations
  @supervisor Module.concat(__MODULE__, Supervisor)
  @registry Module.concat(__MODULE__, Registry)

  # Results, and the texts for the model of commands whose end is unknown, which wait, which did
  # not run, since the book or its database was just restarting, or whose handler crashed, also
  # because of that.
  @told "(Ran|whether it was done is unknown|waits for the approval|was not run: [^.,:]{1,60}" <>
          "|may have done part of its work)"

  # A profile keeps 1,000 approvals.
  @profiles 20

  # The script

  @doc "The first step of a turn."
  def step(turn), do: 3 * (turn - 1)

  @doc "The answers of a conversation of so many turns, three for each, and one for the last."
  def answers(number, turns) do
    Enum.flat_map(1..turns, &turn_answers(number, &1)) ++ [done(turns + 1)]
  end

  defp turn_answers(number, turn) do
    step = step(turn)
    thought = %{thought: "I should look.", signature: Base.encode64("signed #{step}")}
    read = call("x__get", "c#{number}-get-#{step}")
    written = call("x__add", added(number, step + 1))
    twice = call("x__twice", "c#{number}-twice-#{step}")

    [
      Vendors.answer([thought, %{text: ["I look."]}, read, read, written]),
      Vendors.answer([twice | asks(number, turn)] ++ [call("x__add", added(number, step + 2))]),
      done(turn)
    ]
  end

  defp done(turn), do: Vendors.answer([%{text: ["Turn #{turn} ", "is done."]}])

  # In every other turn a call waits.
  defp asks(number, turn),
    do: for(0 <- [rem(turn, 2)], do: call("x__ask", asked_for(number, step(turn))))

  defp call(tool, name), do: {tool, ["{\"na", "me\": ", "\"#{name}\"}"]}
  defp added(number, step), do: "c#{number}-step-#{step}"
  defp asked_for(number, step), do: "c#{number}-ask-#{step}"

  @doc "The names of the commands of a conversation that are to run once."
  def names(number, turns),
    do: for(turn <- 1..turns, n <- 1..2, do: added(number, step(turn) + n))

  @doc "Those of the commands that wait for an approval."
  def asked(number, turns),
    do: for(turn <- 1..turns, rem(turn, 2) == 0, do: asked_for(number, step(turn)))

  @doc "The fields of a script for `Skillbook.Test.Vendors.start/3`."
  def fields(faults),
    do: [
      place: "step-([0-9]+)",
      found: "(c[0-9]+-(?:step|ask)-[0-9]+).* => (?s:.*)" <> @told,
      told: "The result of the call that waited for ([A-Za-z0-9._:-]+):",
      faults: faults
    ]

  @doc "A fault of a vendor, or nil for about four of five requests."
  def fault(vendor) do
    case :rand.uniform(40) do
      1 -> failure(429, "slow down", [["retry-after", "0"]])
      2 -> failure(500, "oh no")
      3 -> failure(529, "Overloaded")
      4 -> %{cut: :rand.uniform(1_500)}
      5 -> %{insert: [overloaded(vendor)]}
      6 -> %{piece: 200, pause: 0.01}
      7 -> %{parts: malformed(vendor), finish: "tool_calls"}
      8 -> %{piece: 3}
      _ -> nil
    end
  end

  defp failure(status, message, headers \\ []),
    do: %{status: status, error: %{message: message}, headers: headers}

  # In the middle of the stream.
  defp overloaded("anthropic") do
    error = ~s({"type": "error", "error": {"type": "overloaded_error", "message": "Full"}})
    [4, "event: error\ndata: #{error}\n\n"]
  end

  defp overloaded("openai"),
    do: [2, ~s(data: {"error": {"message": "Full", "type": "server_error"}}\n\n)]

  defp overloaded("responses") do
    error = ~s({"type": "error", "code": "server_error", "message": "Full", "sequence_number": 3})
    [4, "event: error\ndata: #{error}\n\n"]
  end

  defp overloaded("gemini") do
    error = ~s({"error": {"code": 503, "message": "Full", "status": "UNAVAILABLE"}})
    [1, "data: #{error}\n\n"]
  end

  # Gemini's arguments are no text.
  defp malformed(vendor) do
    pieces = if vendor == "gemini", do: ["{\"nam\": 7}"], else: ["{\"name\": \"half"]
    {name, pieces} = Enum.random([{"x__add", pieces}, {"x__none", ["{}"]}])
    thought = %{thought: "Well.", signature: Base.encode64("signed")}
    [thought, %{call: %{id: "bad_#{:rand.uniform(1_000_000_000)}", name: name, pieces: pieces}}]
  end

  # The commands

  @doc "The pages, with this module as their handler."
  def pages do
    kinds = [
      {"add", ""},
      {"twice", "idempotent: true\n"},
      {"get", "effects: read\n"},
      {"ask", "approval: required\n"}
    ]

    for {name, more} <- kinds, into: %{} do
      fields = "name: x.#{name}\ndescription: Does it\nhandler: #{inspect(__MODULE__)}\n#{more}"
      {"x/#{name}.md", "---\n#{fields}---\n# Does it\n\n    x.#{name} --name NAME\n"}
    end
  end

  @impl Skillbook.Handler
  def execute(%{"name" => name}, context) do
    SQL.query!(context.sql, "insert into rows_written (name) values ($1)", [name])

    case fate(name) do
      :crash -> raise "oh"
      :slow -> Process.sleep(60)
      :well -> :ok
    end

    {:ok, "Ran #{name}. " <> String.duplicate("It is done. ", 20)}
  end

  def execute(_flags, _context), do: {:error, "expected a name"}

  @doc "What the handler does after its row is written."
  def fate(name), do: Enum.at([:crash, :slow], :erlang.phash2(name, 12), :well)

  @doc "How often each command that writes has run."
  def ran(sql) do
    names = "select name from rows_written where name like '%step%' or name like '%ask%'"
    sql |> SQL.query!(names) |> Map.fetch!(:rows) |> Enum.map(&hd/1) |> Enum.frequencies()
  end

  @doc "The approvals: their references, the names of their commands, and their status."
  def approvals(sql) do
    %{rows: rows} = SQL.query!(sql, "select ref, words, status from skillbook_approvals")

    for [ref, words, status] <- rows do
      [name] = Regex.run(~r/c[0-9]+-ask-[0-9]+/, words)
      {ref, name, status}
    end
  end

  @doc "Creates the table of the rows."
  def create(sql),
    do: SQL.query!(sql, "create table rows_written (name text not null)")

  # A virtual machine

  @doc "Starts a book and a supervisor of conversations, which stay."
  def hold(options, models) do
    caller = self()
    profiles = for n <- 1..@profiles, do: [id: "p#{n}"]
    book = [name: @book, agent: [model: %Scripts{models: models}], profiles: profiles] ++ options

    children = [
      {Registry, keys: :unique, name: @registry},
      {DynamicSupervisor, name: @supervisor, strategy: :one_for_one, max_restarts: 100_000},
      Supervisor.child_spec({Skillbook, book}, id: :book),
      {Task, &decide/0}
    ]

    pid =
      spawn(fn ->
        Process.flag(:trap_exit, true)
        # Of crashes there are many.
        Logger.configure(level: :none)
        send(caller, {self(), Supervisor.start_link(children, restarts())})
        Process.sleep(:infinity)
      end)

    receive do
      {^pid, {:ok, _supervisor}} -> :ok
      {^pid, error} -> error
    end
  end

  defp restarts, do: [strategy: :one_for_one, max_restarts: 100_000, name: __MODULE__]

  @doc "Runs a turn of a conversation, unless it was run before its machine was killed."
  def turn(number, turn) do
    input = "Turn #{turn}, step-#{step(turn)}."
    conversation = {:via, Registry, {@registry, number}}
    start(number, conversation)

    if heard?(conversation, turn),
      do: {:ok, last(conversation)},
      else: asked(Conversation.ask(conversation, input))
  catch
    kind, reason -> {:error, {kind, reason}}
  end

  defp asked({:ok, %{status: :done, text: text}}), do: {:ok, text}

  # The reply after a call that waits may have had a fault.
  defp asked({:ok, %{status: :pending, text: text}}),
    do: if(text =~ "is done.", do: {:ok, text}, else: {:error, text})

  defp asked({:ok, %{status: status}}), do: {:error, status}
  defp asked({:error, error}), do: {:error, Exception.message(error)}

  defp start(number, name) do
    options = [
      book: @book,
      id: "conversation-#{number}",
      name: name,
      idle: :infinity,
      profile: "p#{rem(number, @profiles) + 1}",
      run: [system: "This is conversation #{number}.", protocol: :tools, max_context: 4_000]
    ]

    case DynamicSupervisor.start_child(@supervisor, {Conversation, options}) do
      {:ok, _pid} -> :ok
      {:error, {:already_started, _pid}} -> :ok
    end
  end

  # Of an interrupted turn, the end is awaited.
  defp heard?(conversation, turn) do
    true = Eventually.eventually(fn -> Conversation.info(conversation).status == :idle end)
    last(conversation) =~ "Turn #{turn} is done."
  end

  defp last(conversation) do
    case Conversation.transcript(conversation) do
      nil -> ""
      %{messages: messages} -> List.last(messages).content
    end
  end

  @doc "Kills the book."
  def kill_book do
    {:book, pid, _, _} = List.keyfind(Supervisor.which_children(__MODULE__), :book, 0)
    if is_pid(pid), do: Process.exit(pid, :kill)
    :ok
  end

  @doc "Kills one of the conversations, if there is one."
  def kill_conversation do
    pids =
      for {_, pid, _, _} <- DynamicSupervisor.which_children(@supervisor), is_pid(pid), do: pid

    if pids != [], do: Process.exit(Enum.random(pids), :kill)
    :ok
  end

  # Approvals

  defp decide do
    Process.sleep(:rand.uniform(300))

    for %{ref: ref} = one <- waiting(),
        :rand.uniform(3) == 1,
        do: spawn(fn -> decide(one, ref) end)

    decide()
  end

  # Without the conversation, as a page does, or as its next turn.
  defp decide(%Approval{flags: %{"name" => name}}, ref) do
    [_, number] = Regex.run(~r/c([0-9]+)/, name)

    case {:rand.uniform(6), Registry.lookup(@registry, String.to_integer(number))} do
      {1, _pids} -> Skillbook.deny(@book, ref, by: "boss", reason: "No.")
      {n, [{pid, _value}]} when n > 2 -> Conversation.approve(pid, ref, by: "boss")
      _alone -> Skillbook.approve(@book, ref, by: "boss")
    end
  catch
    # One of the processes that are killed at random.
    _kind, _reason -> :ok
  end

  defp waiting do
    case Skillbook.approvals(@book, limit: 1_000) do
      {:ok, waiting} -> waiting
      {:error, _closed} -> []
    end
  rescue
    # The book was killed.
    ArgumentError -> []
  catch
    :exit, _reason -> []
  end

  @doc "Approves calls that wait, in processes of their own."
  def approve(count) do
    for %{ref: ref} <- Enum.take_random(waiting(), count),
        do: spawn(fn -> Skillbook.approve(@book, ref, by: "boss") end)
  end

  @doc "Kills processes in the middle of `Skillbook.approve/3`."
  def kill_approve do
    for pid <- approve(5) do
      Process.sleep(:rand.uniform(40))
      Process.exit(pid, :kill)
    end

    :ok
  end
end
