# Measures many schedules: how fast those fire that are due in the same minute, on two books with
# one database, and how much work a book does that waits for them:
#
#     bin/postgres-for-tests run bin/bench schedules [DUE, default 10000] [IDLE, default 100000]
#
# Both books are in one machine, so a firing has the processor time of two nodes.

Code.require_file("measure.exs", __DIR__)

defmodule Bench.Schedules do
  @moduledoc false

  import Bench.Measure

  alias Skillbook.{Book, SQL, Scheduler}
  alias Skillbook.SQL.{Postgres, SQLite}

  @before ~U[2026-03-02 07:59:30Z]
  @due ~U[2026-03-02 08:00:00Z]
  @idle_ms 10_000

  def run(due, idle, url) do
    head()
    folder = Path.join(System.tmp_dir!(), "skillbook_bench_#{System.pid()}")

    try do
      databases = [{"SQLite", {SQLite, path: Path.join(folder, "due.db")}}]
      databases = if url, do: databases ++ [{"PostgreSQL", {Postgres, url: url}}], else: databases
      write(folder, due, "0 8 * * *")
      for {label, store} <- databases, do: due(label, store, folder, due)
      File.rm_rf!(folder)
      write(folder, idle, "0 8 * * *")
      idle({SQLite, path: Path.join(folder, "idle.db")}, folder, idle)
    after
      File.rm_rf!(folder)
    end
  end

  defp write(folder, count, schedule) do
    File.mkdir_p!(Path.join(folder, "skills"))

    for number <- 1..count do
      page =
        "---\nname: job-#{number}\ndescription: Job #{number}\nschedule: #{schedule}\n" <>
          "run_as: default\n---\nDo it.\n"

      File.write!(Path.join([folder, "skills", "job-#{number}.md"]), page)
    end
  end

  defp start(name, store, folder, clock) do
    options = [
      name: name,
      sources: [Path.join(folder, "skills")],
      builtins: false,
      watch: false,
      store: store,
      usage: false,
      schedules: [clock: fn -> Agent.get(clock, & &1) end]
    ]

    {:ok, pid} = Skillbook.start_link(options)
    Scheduler.await(name)
    pid
  end

  defp due(label, store, folder, count) do
    {:ok, clock} = Agent.start_link(fn -> @before end)
    books = for name <- [:due_a, :due_b], do: {name, start(name, store, folder, clock)}
    Agent.update(clock, fn _time -> @due end)
    reductions = reductions()

    {time, _} =
      :timer.tc(fn ->
        for {name, _pid} <- books, do: Scheduler.Local.tick(name)
        for {name, _pid} <- books, do: Scheduler.await(name)
      end)

    sql = Book.sql(Book.fetch!(:due_a))
    query = "select status, count(*), count(distinct name) from skillbook_firings group by status"
    rows = SQL.query!(sql, query).rows
    work = div(reductions() - reductions, count)

    IO.puts(
      "#{label}: #{count} due in one minute on two books, #{seconds(time)} s, " <>
        "#{round(count * 1_000_000 / time)} a second, #{work} reductions each; " <>
        "stored: #{inspect(rows)}"
    )

    SQL.query!(sql, "delete from skillbook_firings")
    [["template", ^count, ^count]] = rows
    for {_name, pid} <- books, do: Supervisor.stop(pid)
  end

  defp idle(store, folder, count) do
    {:ok, clock} = Agent.start_link(fn -> @before end)
    {time, pid} = :timer.tc(fn -> start(:idle, store, folder, clock) end)
    IO.puts("#{count} schedules: a book starts and registers them in #{seconds(time)} s")
    :erlang.garbage_collect()
    Process.sleep(2_000)
    {reductions, runtime} = {reductions(), runtime()}
    Process.sleep(@idle_ms)

    seconds = div(@idle_ms, 1000)
    work = div(reductions() - reductions, seconds)
    time = Float.round((runtime() - runtime) / seconds, 2)

    IO.puts(
      "#{count} schedules: #{work} reductions, #{time} ms of processor time in a second of " <>
        "waiting"
    )

    Supervisor.stop(pid)
  end

  defp reductions, do: :erlang.statistics(:exact_reductions) |> elem(0)
  defp runtime, do: :erlang.statistics(:runtime) |> elem(0)
  defp seconds(microseconds), do: Float.round(microseconds / 1_000_000, 2)
end

[due, idle] =
  case Enum.map(System.argv(), &String.to_integer/1) do
    [due, idle] -> [due, idle]
    [due] -> [due, 100_000]
    [] -> [10_000, 100_000]
  end

Bench.Schedules.run(due, idle, System.get_env("SKILLBOOK_POSTGRES"))
