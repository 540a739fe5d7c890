# Simulates several nodes in one machine: virtual machines without distribution, each with a book
# on the same PostgreSQL, that write for many tenants at once:
#
#     bin/postgres-for-tests run bin/bench nodes [NODES] [ACTIVE] [WRITES] [TENANTS]
#
# The default is 20 nodes, 4,000 writes of 2,000 active tenants, and 100,000 tenants in all, each
# with a few entries before.
#
# A tenant's writes come from the node that rendezvous hashing gives it, as docs/scaling.md
# spreads them. All nodes share the processors of this machine, so more nodes are not faster here:
# the bench shows that nothing is lost or doubled, and how soon a write is seen on every node.

Code.require_file("measure.exs", __DIR__)

{:module, worker, binary, _} =
  defmodule Bench.Nodes.Worker do
    @moduledoc false
    # Runs on a node, which has no other code of this bench.

    alias Skillbook.{Catalog, Profile, Store, View}

    @writers 4

    def start(url) do
      caller = self()
      store = {Skillbook.SQL.Postgres, url: url, ssl: false, pool_size: 3, queue_timeout: 60_000}

      options = [name: :nodes, store: store, builtins: false, watch: false, usage: false]

      # The process of a call ends with it.
      spawn(fn ->
        send(caller, {:started, Skillbook.start_link(options)})
        Process.sleep(:infinity)
      end)

      receive do: ({:started, {:ok, _pid}} -> :ok)
    end

    def view(tenant),
      do: Skillbook.view(:nodes, Profile.new!(id: "user-#{tenant}", tenant: "tenant-#{tenant}"))

    # The milliseconds of each write.
    def write(tenants, round, count) do
      tenants
      |> Stream.cycle()
      |> Enum.take(count)
      |> Enum.with_index()
      |> Task.async_stream(
        fn {tenant, number} ->
          name = "round-#{round}-#{number}"
          {time, {:ok, _}} = :timer.tc(fn -> Store.put_note(view(tenant), name, content()) end)
          time / 1000
        end,
        max_concurrency: @writers,
        timeout: :infinity
      )
      |> Enum.map(fn {:ok, time} -> time end)
    end

    def note(tenant, name) do
      {:ok, _} = Store.put_note(view(tenant), name, content())
      System.os_time(:microsecond)
    end

    # When the note of that name is there, by the clock that all nodes share.
    def seen(tenant, name) do
      case View.fetch(view(tenant), name) do
        {:ok, _entry} ->
          System.os_time(:microsecond)

        {:error, _error} ->
          Process.sleep(1)
          seen(tenant, name)
      end
    end

    # The entries that its tenants see, and how many it has in memory.
    def counts(tenants) do
      shown = for tenant <- tenants, do: View.count(view(tenant))
      {Enum.sum(shown), Catalog.size(Skillbook.Book.fetch!(:nodes).catalog)}
    end

    def revision, do: :atomics.get(Skillbook.Book.fetch!(:nodes).revision, 1)

    def memory do
      {:ok, status} = File.read("/proc/self/status")
      [_, kilobytes] = Regex.run(~r/^VmRSS:\s+(\d+) kB$/m, status)
      div(String.to_integer(kilobytes), 1024)
    end

    defp content, do: String.duplicate("Some words of a note. ", 40)
  end

defmodule Bench.Nodes do
  @moduledoc false

  alias Bench.Nodes.Worker
  alias Skillbook.SQL
  alias Skillbook.SQL.Postgres

  @samples 50
  @timeout 600_000
  # The entries of each tenant before.
  @own 3

  def run(count, active, writes, tenants, url, code) do
    {:ok, _pid} = Postgres.start_link(name: __MODULE__, url: url, ssl: false)
    sql = Postgres.handle(__MODULE__)
    {:ok, _} = SQL.Migrations.run(sql)
    clear(sql)
    fill(sql, tenants)
    {started, peers} = :timer.tc(fn -> for at <- 1..count, do: {at, start(code, url)} end)
    IO.puts("started one after the other, each in #{round(started / count / 1000)} ms")

    try do
      measure(peers, active, writes, sql)
    after
      for {_number, peer} <- peers, do: :peer.stop(peer)
      clear(sql)
    end
  end

  defp clear(sql) do
    for table <- ["skillbook_entry_versions", "skillbook_entries"],
        do: SQL.query!(sql, "delete from #{table}")
  end

  defp fill(sql, tenants) do
    columns = ~w(name scope kind title title_spelling description content tags labels
      include_in_prompt proactive_for excluded_for source author version enabled created_at
      updated_at hash attachments revision tenant writers)

    [content, now] = [String.duplicate("Some words of a note. ", 40), "2026-01-01T00:00:00Z"]

    SQL.query!(
      sql,
      """
      insert into skillbook_entries (#{Enum.join(columns, ", ")})
      select 'note-' || t || '-' || n, 'x', 'note', 'Note', 'note', '', $1, '[]', '[]', 1, '[]',
        '[]', 'user', 'user', 1, 1, $2, $2, '', '[]', 1, 'tenant-' || t, '["user"]'
      from generate_series(1, #{tenants}) t, generate_series(1, #{@own}) n
      """,
      [content, now]
    )

    SQL.query!(sql, "update skillbook_settings set value = '1' where key = 'revision'")
    SQL.execute_batch(sql, "analyze skillbook_entries")
  end

  defp start({module, binary}, url) do
    paths = Enum.flat_map(:code.get_path(), &[~c"-pa", &1])
    {:ok, peer, _node} = :peer.start(%{connection: :standard_io, args: paths, wait_boot: 120_000})
    {:ok, _} = call(peer, :application, :ensure_all_started, [:skillbook])
    {:module, ^module} = call(peer, :code, :load_binary, [module, ~c"nodes.exs", binary])
    :ok = call(peer, Worker, :start, [url])
    peer
  end

  defp call(peer, module, function, arguments),
    do: :peer.call(peer, module, function, arguments, @timeout)

  defp measure(peers, tenants, writes, sql) do
    each = div(writes, length(peers))

    of_node =
      Enum.group_by(1..tenants, fn tenant ->
        {number, _peer} =
          Enum.max_by(peers, fn {number, _} -> :erlang.phash2({tenant, number}) end)

        number
      end)

    {time, times} =
      :timer.tc(fn ->
        all(peers, fn {number, peer} ->
          call(peer, Worker, :write, [of_node[number], number, each])
        end)
      end)

    times = times |> Enum.concat() |> Enum.sort()
    total = each * length(peers)

    IO.puts(
      "#{length(peers)} nodes, #{tenants} active tenants: #{total} writes at once, " <>
        "#{round(total * 1_000_000 / time)} a second; a write takes #{at(times, 0.5)} ms " <>
        "(median), #{at(times, 0.99)} ms (99 of 100)"
    )

    spread = of_node |> Map.values() |> Enum.map(&length/1) |> Enum.min_max()
    IO.puts("tenants of a node: #{elem(spread, 0)} to #{elem(spread, 1)}")
    settled(peers, sql)
    counts = all(peers, fn {at, peer} -> call(peer, Worker, :counts, [of_node[at]]) end)
    {shown, names} = Enum.unzip(counts)
    expected = total + tenants * @own
    ^expected = Enum.sum(shown)
    IO.puts("names in memory of a node: #{Enum.min(names)} to #{Enum.max(names)}")
    seen(peers, tenants)

    query =
      "select count(*), count(distinct (tenant, name)) from skillbook_entries " <>
        "where revision > 1"

    expected = total + @samples
    [[^expected, ^expected]] = SQL.query!(sql, query).rows
    memory = all(peers, fn {_, peer} -> call(peer, Worker, :memory, []) end)
    IO.puts("memory of a node: #{Enum.max(memory)} MB; nothing lost, nothing doubled")
  end

  # Until all nodes have followed all writes.
  defp settled(peers, sql) do
    query = "select cast(value as bigint) from skillbook_settings where key = 'revision'"
    [[last]] = SQL.query!(sql, query).rows
    revisions = all(peers, fn {_, peer} -> call(peer, Worker, :revision, []) end)
    if Enum.min(revisions) >= last, do: :ok, else: settled(peers, sql)
  end

  # One write at a time, until the last node sees it.
  defp seen(peers, tenants) do
    times =
      for sample <- 1..@samples do
        {_, writer} = Enum.random(peers)
        tenant = :rand.uniform(tenants)
        written = call(writer, Worker, :note, [tenant, "sample-#{sample}"])

        seen =
          all(peers, fn {_, peer} -> call(peer, Worker, :seen, [tenant, "sample-#{sample}"]) end)

        (Enum.max(seen) - written) / 1000
      end

    times = Enum.sort(times)

    IO.puts(
      "a write is seen on all nodes after #{at(times, 0.5)} ms (median), #{at(times, 1.0)} ms " <>
        "(the longest of #{@samples})"
    )
  end

  defp all(peers, fun) do
    peers
    |> Task.async_stream(fun, max_concurrency: length(peers), timeout: :infinity)
    |> Enum.map(fn {:ok, result} -> result end)
  end

  defp at(sorted, part),
    do: sorted |> Enum.at(min(trunc(length(sorted) * part), length(sorted) - 1)) |> Float.round(1)
end

[nodes, active, writes, tenants] =
  System.argv()
  |> Enum.map(&String.to_integer/1)
  |> then(&(&1 ++ Enum.drop([20, 2_000, 4_000, 100_000], length(&1))))

case System.get_env("SKILLBOOK_POSTGRES", "") do
  "" ->
    IO.puts(
      :stderr,
      "expected a server in SKILLBOOK_POSTGRES: bin/postgres-for-tests run bin/bench nodes"
    )

    System.halt(2)

  url ->
    Bench.Nodes.run(nodes, active, writes, max(tenants, active), url, {worker, binary})
end
