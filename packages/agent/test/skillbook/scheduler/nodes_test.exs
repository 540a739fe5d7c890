defmodule Skillbook.Scheduler.NodesTest do
  # Two virtual machines with one database, both of which are told of each time.
  use Skillbook.SkillsCase, async: true

  import Skillbook.Eventually

  alias Skillbook.{Peers, PostgresCase, SQL, ScheduledRows}

  @moduletag :tmp_dir
  @moduletag timeout: 600_000

  @count 1_000

  for interrupted <- [:fail, :run] do
    @tag interrupted: interrupted
    test "each of many firings runs once or fails if a node is killed, with #{interrupted}",
         context do
      names = for n <- 1..@count, do: "job-#{n}"

      fields = [handler: inspect(ScheduledRows), schedule: "'@yearly'", run_as: "default"]
      pages = for name <- names, into: %{}, do: {"#{name}/SKILL.md", page(name, fields)}
      write(context.tmp_dir, pages)

      url = PostgresCase.database()
      sql = PostgresCase.start(url: url)
      SQL.query!(sql, "create table ran (name text not null)")
      [a, b] = peers = for name <- [:a, :b], do: Peers.start(name: name)

      for peer <- peers do
        Peers.start_book(peer,
          name: :clock,
          builtins: false,
          usage: false,
          watch: false,
          sources: [context.tmp_dir],
          store: {Skillbook.SQL.Postgres, url: url},
          schedules: [
            lease: 5_000,
            max_running: 5,
            interrupted: context.interrupted
          ]
        )
      end

      pid = Peers.call(a, System, :pid, [])
      at = DateTime.truncate(DateTime.utc_now(), :second)
      for peer <- peers, do: :ok = Peers.call(peer, ScheduledRows, :fire, [:clock, names, at])
      # In the middle.
      assert eventually(fn -> Peers.call(b, ScheduledRows, :over, [:clock]) >= div(@count, 3) end)
      {_, 0} = System.cmd("kill", ["-KILL", pid])

      assert eventually(fn -> Peers.call(b, ScheduledRows, :over, [:clock]) == @count end)
      :ok = Peers.call(b, Skillbook.Scheduler, :await, [:clock])

      rows = SQL.query!(sql, "select name, status, node, attempts from skillbook_firings").rows
      ran = SQL.query!(sql, "select name from ran").rows |> Enum.frequencies_by(&hd/1)
      assert Enum.sort(names) == rows |> Enum.map(&hd/1) |> Enum.sort()
      # Both took their part.
      assert rows |> Enum.map(&Enum.at(&1, 2)) |> Enum.uniq() |> length() == 2
      {ok, other} = Enum.split_with(rows, fn [_, status, _, _] -> status == "ok" end)

      case context.interrupted do
        :fail ->
          for [name, "ok", _, 1] <- ok, do: assert(ran[name] == 1)
          assert length(ok) + length(other) == @count

          for [name, status, _, 1] <- other,
              do: assert({status, ran[name]} in [{"failed", nil}, {"failed", 1}])

          # The firings that one node runs at once.
          assert length(other) <= 5

        :run ->
          assert other == []
          {once, again} = Enum.split_with(ok, fn [_, _, _, attempts] -> attempts == 1 end)
          for [name | _] <- once, do: assert(ran[name] == 1)
          assert length(again) <= 5
          for [name, _, _, 2] <- again, do: assert(ran[name] in [1, 2])
      end
    end
  end
end
