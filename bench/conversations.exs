# Measures conversations as processes: the memory of idle ones, the time of a turn that is not the
# model's, and the processes that are left at the end:
#
#     bin/bench conversations [IDLE, default 2000] [RUNNING, default 200] [PYTHON]
#
# The model answers each input after 50 ms with a call of a command, and then with text. PYTHON is
# the python of an environment with pydantic-ai-slim, whose agent does the same
# (bench/conversations_peer.py), one or as many at once.
#
# The last rows are of durable runs, on SQLite and on the PostgreSQL of SKILLBOOK_POSTGRES: a turn
# of a run with a call and an answer, and its end alone, beside the same run without a journal.

Code.require_file("measure.exs", __DIR__)

defmodule Bench.Conversations do
  @moduledoc false

  import Bench.Measure

  alias Skillbook.{Agent, Conversation, Model, SQL}

  @behaviour Skillbook.Handler

  # Milliseconds of an answer of the model.
  @wait 50
  @turns 10
  @book __MODULE__.Book

  @impl true
  def execute(flags, _context), do: {:ok, "Added #{flags["name"]}."}

  def run(idle, running, python) do
    head()
    folder = Path.join(System.tmp_dir!(), "skillbook_bench_#{System.pid()}")
    File.mkdir_p!(Path.join(folder, "x"))
    handler = "handler: #{inspect(__MODULE__)}"
    page = "---\nname: x.add\ndescription: Adds a name\n#{handler}\n---\n# Add\n"
    File.write!(Path.join(folder, "x/add.md"), page)
    peers = for count <- [running, 1], python, into: %{}, do: {count, peer(python, count)}

    try do
      for durable <- [false, true] do
        store = Path.join(folder, "durable-#{durable}.db")
        options = [name: @book, sources: [folder], store: store, builtins: false, watch: false]
        {:ok, supervisor} = Skillbook.start_link(options ++ [durable: durable])
        kind = if durable, do: ", durable", else: ""
        idle(idle, kind)
        for count <- [running, 1], do: running(count, kind, peers[count])
        Supervisor.stop(supervisor)
      end

      durable("SQLite", Path.join(folder, "runs.db"), folder, running)

      if url = System.get_env("SKILLBOOK_POSTGRES"),
        do: durable("PostgreSQL", {SQL.Postgres, url: url, ssl: false}, folder, running)
    after
      File.rm_rf!(folder)
    end
  end

  # Conversations that wait after a turn

  defp idle(count, kind) do
    used("warm", 1, 0, 3, fn _pids, _times, _busy -> :ok end)
    before = length(Process.list())

    used("idle", count, 0, 1, fn pids, _times, _busy ->
      # The last of their messages is handled.
      for pid <- pids, do: :sys.get_state(pid)
      Process.sleep(1_000)
      sizes = for pid <- pids, {:memory, bytes} <- [Process.info(pid, :memory)], do: bytes
      texts = for pid <- pids, do: :erts_debug.flat_size(Conversation.transcript(pid)) * 8
      [ours, theirs] = for bytes <- [sizes, texts], do: Enum.sum(bytes) / count
      [a, b] = for bytes <- [ours, theirs], do: "#{Float.round(bytes / 1_000, 1)} kB"
      ratio = "#{Float.round(ours / theirs, 2)}x"
      IO.puts(row(["memory of each of #{count} idle#{kind}", a, b, ratio, "its transcript"]))
    end)

    Process.sleep(1_000)
    left = length(Process.list()) - before
    IO.puts(row(["processes left of them", "#{left}", "", "", ""]))
  end

  # Conversations that all have turns

  defp running(count, kind, peer) do
    before = length(Process.list())

    used("running", count, @wait, @turns, fn _pids, times, busy ->
      for {share, name} <- [{0.5, "median"}, {0.99, "99 of 100 within"}] do
        peer = peer && at(peer, share)
        name = "our time of a turn, #{count} at once#{kind}: #{name}"
        print(name, peer && "Pydantic AI", [at(times, share) | List.wrap(peer)])
      end

      print("processor time of a turn, #{count} at once#{kind}", nil, [busy / length(times)])
    end)

    Process.sleep(1_000)
    left = length(Process.list()) - before
    IO.puts(row(["processes left of them", "#{left}", "", "", ""]))
  end

  defp at(times, share), do: times |> Enum.sort() |> Enum.at(round(share * (length(times) - 1)))

  # Starts conversations, which have some turns at the same time, and stops them. The function
  # gets the nanoseconds of each turn without those of the model, and those of all processors,
  # which other programs do not change.
  defp used(name, count, wait, turns, fun) do
    conversations =
      for number <- 1..count do
        id = "#{name}-#{number}-#{System.unique_integer([:positive])}"
        waited = :counters.new(1, [])
        run = [model: model(wait, waited), protocol: :tools]
        {:ok, pid} = Conversation.start_link(book: @book, id: id, run: run)
        {pid, waited}
      end

    {before, _since} = :erlang.statistics(:runtime)

    times =
      conversations
      |> Task.async_stream(&turns(&1, turns), max_concurrency: 200, timeout: :infinity)
      |> Enum.flat_map(fn {:ok, times} -> times end)

    {now, _since} = :erlang.statistics(:runtime)
    fun.(for({pid, _waited} <- conversations, do: pid), times, (now - before) * 1_000_000)
    for {pid, _waited} <- conversations, do: GenServer.stop(pid)
  end

  defp turns({pid, waited}, turns) do
    for turn <- 1..turns do
      :counters.put(waited, 1, 0)
      ask = fn -> Conversation.ask(pid, "Add tea #{turn}.") end
      {time, {:ok, %{status: :done}}} = :timer.tc(ask)
      (time - :counters.get(waited, 1)) * 1_000
    end
  end

  defp model(wait, waited) do
    Model.Function.new(fn messages, _options ->
      {time, answer} = :timer.tc(fn -> answer(messages, wait) end)
      :counters.add(waited, 1, time)
      answer
    end)
  end

  defp answer(messages, wait) do
    if wait > 0, do: Process.sleep(wait)

    case List.last(messages) do
      %{role: :tool} -> "It is added."
      %{content: text} -> %{tool_calls: [%{name: "x__add", arguments: %{name: text}}]}
    end
  end

  # Durable runs

  defp durable(label, store, folder, most) do
    options = [name: @book, sources: [folder], store: store, builtins: false, watch: false]
    {:ok, supervisor} = Skillbook.start_link(options ++ [durable: true])

    for count <- [1, most] do
      # They alternate, so that other load affects both.
      rounds =
        for _ <- 1..@turns, durable? <- [true, false], do: {durable?, runs(count, durable?)}

      for {part, at} <- [{"a run of a call and an answer", 0}, {"the end of a run", 1}] do
        [ours, plain] =
          for kind <- [true, false] do
            times = for {^kind, times} <- rounds, one <- times, do: elem(one, at)
            at(times, 0.5)
          end

        name = "#{label}: #{part}, #{count} at once: median"
        print(name, "the same without a journal", [ours, plain])
      end
    end

    Supervisor.stop(supervisor)
  end

  # The nanoseconds of runs, and of what follows their last answer.
  defp runs(count, durable?) do
    1..max(count, 10)
    |> Task.async_stream(fn _ -> one(durable?) end, max_concurrency: count, timeout: :infinity)
    |> Enum.map(fn {:ok, times} -> times end)
  end

  defp one(durable?) do
    answered = :atomics.new(1, [])

    model =
      Model.Function.new(fn messages, _options ->
        answer = answer(messages, 0)
        :atomics.put(answered, 1, System.monotonic_time())
        answer
      end)

    options = [model: model, protocol: :tools, durable: durable?]
    began = System.monotonic_time()
    {:ok, %{status: :done}} = Agent.run(@book, "Add tea.", options)
    ended = System.monotonic_time()
    {ns(ended - began), ns(ended - :atomics.get(answered, 1))}
  end

  defp ns(time), do: System.convert_time_unit(time, :native, :nanosecond)

  # The nanoseconds of turns of the peer, one after the other in each of so many conversations.
  defp peer(python, count) do
    script = Path.join(__DIR__, "conversations_peer.py")
    arguments = [script, "#{count}", "#{@turns}", "#{@wait}"]
    {output, 0} = System.cmd(python, arguments)
    for line <- String.split(output), do: String.to_integer(line)
  end
end

{numbers, others} = Enum.split_with(System.argv(), &(&1 =~ ~r/\A\d+\z/))

[idle, running] =
  for {n, at} <- [{2_000, 0}, {200, 1}], do: String.to_integer(Enum.at(numbers, at, "#{n}"))

Bench.Conversations.run(idle, running, List.first(others))
