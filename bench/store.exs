# Writes and reads a second through Skillbook.SQL, against prepared statements of the same drivers in Rust alone, in
# the same run and on the same databases:
#
#     MIX_ENV=prod bin/postgres-for-tests run mix run bench/store.exs
#
# That server is not durable (fsync is off), so what is seen of its writes is the way there and back. SQLite is durable.

alias Skillbook.SQL
alias Skillbook.SQL.{Postgres, SQLite}

defmodule Bench.Store do
  @writes 1000
  @reads 5000

  def run(label, sql, database) do
    SQL.query!(sql, "drop table if exists bench")
    SQL.query!(sql, "create table bench (id bigint primary key, title text not null)")

    {output, 0} =
      System.cmd(
        "cargo",
        ~w(run --quiet --release -p skillbook_sql --example peer -- #{database} #{@writes} #{@reads})
      )

    [peer_writes, peer_reads] = output |> String.split() |> Enum.map(&String.to_float/1)
    SQL.query!(sql, "delete from bench")

    writes =
      seconds(fn ->
        for id <- 1..@writes,
            do: SQL.query!(sql, "insert into bench (id, title) values ($1, $2)", [id, "title number #{id}"])
      end)

    read = fn at ->
      id = rem(at, @writes) + 1
      [[^id, _]] = SQL.query!(sql, "select id, title from bench where id = $1", [id]).rows
    end

    reads = seconds(fn -> for at <- 1..@reads, do: read.(at) end)

    at_once =
      seconds(fn ->
        1..@reads |> Task.async_stream(read, max_concurrency: 8, ordered: false) |> Stream.run()
      end)

    row("#{label}, writes", @writes / writes, @writes / peer_writes)
    row("#{label}, reads", @reads / reads, @reads / peer_reads)
    row("#{label}, reads of 8 processes", @reads / at_once, @reads / peer_reads)
  end

  defp seconds(fun) do
    {time, _} = :timer.tc(fun)
    time / 1_000_000
  end

  defp row(label, ours, peer) do
    ratio = :erlang.float_to_binary(ours / peer, decimals: 2)
    IO.puts("#{String.pad_trailing(label, 36)} #{rate(ours)}   alone #{rate(peer)}   ratio #{ratio}")
  end

  defp rate(value), do: String.pad_leading("#{round(value)}/s", 10)
end

path = Path.join(System.tmp_dir!(), "skillbook_bench_#{System.pid()}.db")
{:ok, _} = SQLite.start_link(path: path, name: :bench_sqlite)
Bench.Store.run("SQLite", SQLite.handle(:bench_sqlite), path)
for file <- Path.wildcard(path <> "*"), do: File.rm!(file)

url = System.get_env("SKILLBOOK_POSTGRES") || raise "expected SKILLBOOK_POSTGRES; see the top of this file"
{:ok, _} = Postgres.start_link(url: url, name: :bench_postgres, ssl: false)
Bench.Store.run("PostgreSQL", Postgres.handle(:bench_postgres), url)
