defmodule Skillbook.Agent.RunNodesTest do
  # Durable runs whose node dies in the middle of a command.
  use Skillbook.SkillsCase, async: true

  import Skillbook.Eventually

  alias Skillbook.{Agent, DurableRows, Peers, PostgresCase, SQL}

  @moduletag :tmp_dir
  @moduletag timeout: 600_000

  defp store(:sqlite, folder), do: Path.join(folder, "book.db")
  defp store(:postgres, _folder), do: {SQL.Postgres, url: PostgresCase.database(), pool_size: 5}

  defp start(options) do
    peer = Peers.start()
    Peers.start_book(peer, options)
    peer
  end

  for database <- [:sqlite, :postgres] do
    test "one of the other nodes continues it, in #{database}", %{tmp_dir: folder} do
      skills = Path.join(folder, "skills")
      write(skills, DurableRows.pages())

      options = [
        name: :durable,
        builtins: false,
        usage: false,
        watch: false,
        scheduler: false,
        sources: [skills],
        store: store(unquote(database), folder),
        profiles: [[id: "ann"]],
        agent: [model: DurableRows.model(nil, flags: %{"halt" => true})],
        durable: [lease: 1_000]
      ]

      first = start(options)
      :ok = Peers.call(first, DurableRows, :create, [:durable])
      others = [start(options), start(options)]
      :ok = Peers.call(first, DurableRows, :run_later, [:durable, "Go n."])

      # The first node is gone with the third command, whose row is there.
      [second, third] = others
      runs = fn peer -> Peers.call(peer, Agent.Runs, :list, [:durable]) end

      assert eventually(fn ->
               match?({:ok, [%{status: status}]} when status != :running, runs.(second))
             end)

      assert eventually(fn -> match?({:ok, [%{status: :done}]}, runs.(third)) end)
      {:ok, [run]} = runs.(second)
      assert {run.text, run.turns, run.continued} == {"All done, n.", 3, 1}
      once = Map.new(~w(a b c d e f), &{&1, 1})
      assert Peers.call(second, DurableRows, :ran, [:durable, "n"]) == once
    end
  end
end
