defmodule Skillbook.Agent.ManyConversationsTest do
  # Conversations of many turns with all faults of models and handlers, and with calls that are
  # approved at random times, while approvals, conversations, books and nodes are killed.
  # SKILLBOOK_CONVERSATIONS=200x40 runs so many of so many turns.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{ManyConversations, Peers, PostgresCase, SQL}
  alias Skillbook.Test.Vendors

  @moduletag :tmp_dir
  @moduletag timeout: 7_200_000

  setup %{tmp_dir: folder} do
    [count, turns] =
      System.get_env("SKILLBOOK_CONVERSATIONS", "5x8")
      |> String.split("x")
      |> Enum.map(&String.to_integer/1)

    write(folder, ManyConversations.pages())
    url = PostgresCase.database()
    sql = PostgresCase.start(url: url)
    ManyConversations.create(sql)
    # The same faults each time.
    :rand.seed(:exsss, {count, turns, 33})

    options = [
      sources: [folder],
      store: {SQL.Postgres, url: url, pool_size: 4},
      builtins: false,
      usage: false,
      watch: false,
      scheduler: false,
      durable: [lease: max(3_000, 50 * count), max_continued: 1_000],
      approvals: [lease: max(3_000, 50 * count), max_waiting: 1_000]
    ]

    {:ok, count: count, turns: turns, sql: sql, options: options}
  end

  defp scripts(count, turns) do
    for number <- 1..count do
      vendor = Enum.at(Vendors.all(), rem(number, 4))
      faults = for _request <- 1..(8 * turns), do: ManyConversations.fault(vendor)
      fields = ManyConversations.fields(faults)
      Vendors.start(vendor, ManyConversations.answers(number, turns), fields)
    end
  end

  defp start(options, scripts) do
    models = for script <- scripts, do: Vendors.model(script)
    peer = Peers.start()
    :ok = Peers.call(peer, ManyConversations, :hold, [options, List.to_tuple(models)])
    peer
  end

  # A conversation: its turns, each on one of the first two machines that live, until it has
  # succeeded.
  defp converse(number, turns, peers, test) do
    Enum.reduce(1..turns, 0, fn turn, tries ->
      tries = tries + take_turn(number, turn, peers, 1)
      send(test, :turn)
      tries
    end)
  end

  defp take_turn(number, turn, peers, try) when try < 50 do
    peer = Agent.get(peers, &Enum.at(&1, rem(number, 2)))

    case call(peer, number, turn) do
      {:ok, text} ->
        assert text =~ "Turn #{turn} is done."
        try

      {:error, reason} ->
        if System.get_env("SKILLBOOK_FIGURES"),
          do: IO.inspect({number, turn, reason}, printable_limit: 3_000)

        Process.sleep(50)
        take_turn(number, turn, peers, try + 1)
    end
  end

  defp call(peer, number, turn) do
    :peer.call(peer, ManyConversations, :turn, [number, turn], :infinity)
  catch
    :exit, _reason -> {:error, :gone}
  end

  # Kills after these numbers of turns of all conversations.
  defp kill(0, _done, _context, _kills), do: :ok

  defp kill(left, done, context, kills) do
    receive do
      :turn -> :ok
      {:DOWN, _, :process, _, reason} when reason != :normal -> flunk(inspect(reason))
    end

    for {what, every} <- kills, rem(done, every) == div(every, 2), do: kill(what, context)
    kill(left - 1, done + 1, context, kills)
  end

  # In the middle of approvals.
  defp kill(:node, %{peers: peers}) do
    peer = Agent.get(peers, &hd/1)
    pid = Peers.call(peer, System, :pid, [])
    Peers.call(peer, ManyConversations, :approve, [10])
    Process.sleep(:rand.uniform(40))
    {_, 0} = System.cmd("kill", ["-9", pid])
    Agent.update(peers, &tl/1)
  end

  defp kill(what, %{peers: peers}) do
    peer = Agent.get(peers, &Enum.random(Enum.take(&1, 2)))
    if what == :book, do: Peers.call(peer, ManyConversations, :approve, [5])
    :ok = Peers.call(peer, ManyConversations, :"kill_#{what}", [])
  end

  # The approvals after all of them are decided.
  defp approvals(%{sql: sql, peers: peers} = context) do
    Peers.call(Agent.get(peers, &hd/1), ManyConversations, :approve, [1_000])
    approvals = ManyConversations.approvals(sql)

    if Enum.all?(approvals, fn {_ref, _name, status} -> status not in ~w(pending running) end) do
      approvals
    else
      Process.sleep(500)
      approvals(context)
    end
  end

  defp kind({"Ran", _name}), do: :ran
  defp kind({"waits" <> _, _name}), do: :waits
  defp kind({"was not run" <> _, _name}), do: :refused
  defp kind({"may have" <> _, _name}), do: :crashed
  defp kind({_unknown, _name}), do: :unknown

  defp decided?("done", times), do: times == 1
  defp decided?("failed", times), do: times == 1
  defp decided?("denied", times), do: times == nil
  defp decided?("interrupted", _times), do: true
  defp decided?(_other, _times), do: false

  test "no call is made twice, and no result is lost", context do
    %{count: count, turns: turns, sql: sql, options: options} = context
    scripts = scripts(count, turns)
    all = count * turns

    kills = [
      node: max(div(all, 4), 40),
      book: max(div(all, 12), 15),
      conversation: 10,
      approve: 7
    ]

    # Two are used; after one is killed, the next one.
    killed = div(all + div(kills[:node], 2), kills[:node])
    machines = for _ <- 1..(killed + 2), do: start(options, scripts)
    {:ok, peers} = Agent.start_link(fn -> machines end)
    context = Map.put(context, :peers, peers)
    test = self()
    began = System.monotonic_time(:millisecond)
    tasks = for n <- 1..count, do: Task.async(fn -> converse(n, turns, peers, test) end)

    kill(all, 0, context, kills)
    tries = tasks |> Task.await_many(:infinity) |> Enum.sum()
    seconds = div(System.monotonic_time(:millisecond) - began, 1_000)

    # Each conversation goes on once more, after all calls are decided.
    approvals = approvals(context)
    for n <- 1..count, do: take_turn(n, turns + 1, peers, 1)

    records = for script <- scripts, do: Vendors.record(script)
    assert for(record <- records, reason <- record["refused"], do: reason) == []

    # Each command that writes has run; twice, none has.
    expected = for n <- 1..count, name <- ManyConversations.names(n, turns), do: name
    asked = for n <- 1..count, name <- ManyConversations.asked(n, turns), do: name
    ran = ManyConversations.ran(sql)
    assert Map.filter(ran, fn {_name, times} -> times > 1 end) == %{}
    assert Map.keys(ran) -- (expected ++ asked) == []

    # The model has each result, or was told that a command did not run, that its handler crashed,
    # or that it had begun and its end is unknown.
    told = for record <- records, [name, told] <- record["found"], do: {told, name}
    reasons = for {"was not run" <> reason, _name} <- told, do: reason
    told = Enum.group_by(told, &kind/1, &elem(&1, 1))

    [results, waited, unknown, refused, crashed] =
      for kind <- ~w(ran waits unknown refused crashed)a, do: told[kind] || []

    failed = unknown ++ refused ++ crashed
    assert (expected -- Map.keys(ran)) -- failed == []
    assert expected -- (results ++ failed) == []
    # It may have run after an answer that was lost with its process.
    told_only = refused -- (results ++ waited ++ unknown ++ crashed)
    assert Map.take(ran, told_only) == %{}

    # Each call that waited has one approval. It has run if somebody approved it, and its node
    # lived; otherwise it may have.
    names = for {_ref, name, _status} <- approvals, do: name
    assert names -- Enum.uniq(names) == []
    assert asked -- (names ++ unknown ++ refused) == []
    assert asked -- (waited ++ unknown ++ refused) == []

    undecided = for {_ref, name, status} <- approvals, not decided?(status, ran[name]), do: name
    assert undecided == []

    # The model has the result of each, also if it was told while nobody went on.
    told = for record <- records, ref <- record["told"], do: ref
    assert for({ref, _name, _status} <- approvals, do: ref) -- told == []

    # A prompt differs from the one before only where the conversation was compacted, to half.
    sum = fn key -> records |> Enum.map(& &1[key]) |> Enum.sum() end
    compacted = Enum.flat_map(records, & &1["low"])
    assert compacted != []
    assert for([_same, length] <- compacted, length > 0.8, do: length) == []

    if System.get_env("SKILLBOOK_FIGURES") do
      IO.puts("""
      #{count} conversations of #{turns} turns in #{seconds} s, #{tries - all} turns tried again
      #{sum.("played")} requests; #{length(expected)} commands that write, #{length(unknown)} \
      of which the end was unknown, #{length(refused)} that did not run, #{length(crashed)} \
      that crashed
      #{inspect(Enum.frequencies(reasons))}
      #{length(approvals)} approvals: \
      #{inspect(Enum.frequencies_by(approvals, &elem(&1, 2)))}
      #{Float.round(100 * sum.("same") / sum.("bytes"), 2)} % of each prompt was the same in the \
      next one; #{length(compacted)} compactions
      """)
    end
  end
end
