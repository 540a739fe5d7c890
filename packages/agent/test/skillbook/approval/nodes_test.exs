defmodule Skillbook.Approval.NodesTest do
  # Calls that wait while their node is killed, and decisions on two nodes at the same moment.
  use Skillbook.SkillsCase, async: true

  import Skillbook.Eventually

  alias Skillbook.{ApprovalRows, ApprovalError, Peers, PostgresCase, SQL}

  @moduletag :tmp_dir
  @moduletag timeout: 600_000

  @count 300

  defp options(folder, :sqlite), do: options(folder, store: Path.join(folder, "book.db"))

  defp options(folder, :postgres),
    do: options(folder, store: {SQL.Postgres, url: PostgresCase.database(), pool_size: 5})

  defp options(folder, more) do
    skills = Path.join(folder, "skills")
    fields = [handler: inspect(ApprovalRows), approval: "required"]
    write(skills, %{"x/run.md" => page("x.run", fields)})

    more ++
      [
        name: :waiting,
        builtins: false,
        usage: false,
        watch: false,
        scheduler: false,
        sources: [skills],
        profiles: [[id: "ann"]],
        approvals: [lease: 2_000, max_waiting: 1_000]
      ]
  end

  defp start(options) do
    peer = Peers.start(name: :approvals)
    Peers.start_book(peer, options)
    peer
  end

  defp table(peer) do
    :ok = Peers.call(peer, ApprovalRows, :create, [:waiting])
    peer
  end

  defp kill(peer) do
    {_, 0} = System.cmd("kill", ["-KILL", Peers.call(peer, System, :pid, [])])
  end

  for database <- [:sqlite, :postgres] do
    test "a call is approved after its node was killed, in #{database}", %{tmp_dir: folder} do
      options = options(folder, unquote(database))
      first = options |> start() |> table()
      [ref] = Peers.call(first, ApprovalRows, :ask, [:waiting, ["x.run --name a"]])
      kill(first)

      second = start(options)
      assert {:ok, [%{ref: ^ref}]} = Peers.call(second, Skillbook, :approvals, [:waiting])
      {status, run, text} = Peers.call(second, ApprovalRows, :resume, [:waiting, ref])
      assert {status, run} == {:done, :done}
      assert text =~ "The result of the call that waited for #{ref}:"
      assert text =~ "[1] x.run --name a\nok\n  Ran a."
      assert Peers.call(second, ApprovalRows, :ran, [:waiting]) == ["a"]
    end

    test "a call whose node is killed while it runs is interrupted, in #{database}", context do
      options = options(context.tmp_dir, unquote(database))
      first = options |> start() |> table()
      second = start(options)
      [ref] = Peers.call(first, ApprovalRows, :ask, [:waiting, ["x.run --name a --hang"]])
      :ok = Peers.call(first, ApprovalRows, :approve_later, [:waiting, ref])
      assert eventually(fn -> Peers.call(second, ApprovalRows, :ran, [:waiting]) == ["a"] end)
      # Longer than the lease, which the node renews while it lives.
      Process.sleep(3_000)
      decide = fn -> Peers.call(second, Skillbook, :approve, [:waiting, ref, [by: "Eve"]]) end
      assert {:error, %ApprovalError{kind: :decided, status: :running}} = decide.()
      kill(first)

      assert eventually(fn ->
               {:error, error} = decide.()
               error.status == :interrupted
             end)

      {:error, error} = decide.()

      assert Exception.message(error) =~
               "and interrupted while it ran; a part of its work may be done, so it does not " <>
                 "run again"

      assert {:ok, [%{status: :interrupted, by: "Bob", result: nil}]} =
               Peers.call(second, Skillbook, :approvals, [:waiting, [status: :interrupted]])

      assert Peers.call(second, ApprovalRows, :ran, [:waiting]) == ["a"]
    end

    test "approved on two nodes at the same moment, it runs once, in #{database}", context do
      options = options(context.tmp_dir, unquote(database))
      [_first, second] = peers = [options |> start() |> table(), start(options)]

      # Each of them is approved on both nodes, which begin at once. On a busy machine one of the
      # nodes may be first with all of them; then another round follows.
      rounds =
        1..10
        |> Stream.map(&contest(peers, &1))
        |> Enum.reduce_while([], fn {one, two}, rounds ->
          {if(one == [] or two == [], do: :cont, else: :halt), [{one, two} | rounds]}
        end)

      assert [{[_ | _], [_ | _]} | _] = rounds
      names = for round <- 1..length(rounds), n <- 1..@count, do: "n#{round}-#{n}"
      assert Peers.call(second, ApprovalRows, :ran, [:waiting]) == Enum.sort(names)

      {:ok, decided} =
        Peers.call(second, Skillbook, :approvals, [:waiting, [status: :done, limit: 1_000]])

      assert decided |> Enum.filter(&(&1.by == "Bob")) |> Enum.map(& &1.ref) |> Enum.sort() ==
               rounds |> Enum.flat_map(&elem(&1, 0)) |> Enum.sort()
    end
  end

  # The calls that each of two nodes has run.
  defp contest([first, _second] = peers, round) do
    lines = for n <- 1..@count, do: "x.run --name n#{round}-#{n}"
    refs = Peers.call(first, ApprovalRows, :ask, [:waiting, lines])
    assert length(refs) == @count

    # Calls of other nodes take a while to begin.
    at = System.system_time(:millisecond) + 2_000

    [one, two] =
      for {peer, by} <- Enum.zip(peers, ["Bob", "Eve"]) do
        arguments = [:waiting, refs, by, at]
        Task.async(fn -> Peers.call(peer, ApprovalRows, :approve_all, arguments) end)
      end
      |> Task.await_many(:infinity)

    assert Enum.sort(one ++ two) == Enum.sort(refs)
    {one, two}
  end
end
