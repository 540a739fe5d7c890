defmodule Skillbook.Agent.RunsTest do
  # Durable runs whose process is killed at each point, and those whose book or node ends.
  use Skillbook.SkillsCase, async: true

  import Skillbook.Eventually

  alias Skillbook.Agent.Runs
  alias Skillbook.{Agent, DurableRows, PostgresCase, SQL}

  doctest Skillbook.Agent.Runs
  doctest Skillbook.RunError

  @moduletag :tmp_dir

  @unknown "had begun when the run was interrupted, and whether it was done is unknown. It was " <>
             "not run again: check before you call it again, or tell the user."

  defp store(:sqlite, folder), do: Path.join(folder, "book.db")
  defp store(:postgres, _folder), do: {SQL.Postgres, url: PostgresCase.database(), pool_size: 4}

  defp durable_book(folder, options) do
    skills = Path.join(folder, "skills")
    write(skills, DurableRows.pages())

    book(
      Keyword.merge(
        [
          sources: [skills],
          store: store(:sqlite, folder),
          builtins: false,
          usage: false,
          watch: false,
          scheduler: false,
          durable: true,
          profiles: [[id: "ann"], [id: "bob", tenant: "b"]]
        ],
        options
      )
    )
  end

  # A run in a process of its own, which may be killed.
  defp run(book, name, points, options \\ []) do
    assigns = if points, do: %{points: points}, else: %{}
    on_event = fn _event -> DurableRows.point(points, self()) end
    options = Keyword.merge([profile: "ann", assigns: assigns, on_event: on_event], options)
    pid = spawn(fn -> Agent.run(book, "Go #{name}.", options) end)
    monitor = Process.monitor(pid)

    receive do
      {:DOWN, ^monitor, :process, _pid, reason} -> reason
    end
  end

  defp named(book, name) do
    {:ok, runs} = Runs.list(book, limit: 1_000)
    Enum.find(runs, &(&1.title == "Go #{name}."))
  end

  defp ended(book, name) do
    assert eventually(fn -> named(book, name).status not in [:running, :interrupted] end)
    named(book, name)
  end

  # The last request has the result of each command, or that its end is unknown.
  defp assert_told(name, ran, protocol) do
    text = last_asked(name)
    told = for one <- ~w(a b c d e f), text =~ "Ran #{name}#{one}.", do: one
    unknown = length(String.split(text, "`x.add` #{@unknown}")) - 1
    assert length(told) + unknown == 6, text
    assert told -- Map.keys(ran) == []
    if protocol == :blocks, do: assert(text =~ "[1] x.add --name #{name}a\n")
  end

  defp last_asked(name) do
    receive do
      {:asked, ^name, text} -> last_asked(name, text)
    after
      0 -> flunk("the model was not asked for the end of #{name}")
    end
  end

  defp last_asked(name, text) do
    receive do
      {:asked, ^name, later} -> last_asked(name, later)
    after
      0 -> text
    end
  end

  for database <- [:sqlite, :postgres], protocol <- [:blocks, :tools] do
    @tag database: database, protocol: protocol
    test "killed at any point, it ends the same: #{database}, #{protocol}", context do
      %{database: database, protocol: protocol, tmp_dir: folder} = context
      points = DurableRows.points(:"points_#{System.unique_integer([:positive])}", 0)
      model = DurableRows.model(points, protocol: protocol, tell: self())
      agent = [model: model, protocol: protocol]
      book = durable_book(folder, store: store(database, folder), agent: agent)
      DurableRows.create(book)

      assert run(book, "k0", points) == :normal
      assert %{status: :done, text: "All done, k0.", turns: 3, continued: 0} = named(book, "k0")
      once = Map.new(~w(a b c d e f), &{&1, 1})
      assert DurableRows.ran(book, "k0") == once
      count = DurableRows.count(points)
      assert count > 40

      counts =
        for at <- 1..count do
          name = "k#{at}"
          DurableRows.reset(points, at)
          assert run(book, name, points) == :killed

          if named(book, name) do
            # The process is gone, and its book continues the run at once.
            ended = ended(book, name)
            assert {ended.status, ended.text, ended.turns} == {:done, "All done, #{name}.", 3}
            assert ended.continued in 0..1
            ran = DurableRows.ran(book, name)
            for once <- ~w(a c), do: assert(Map.get(ran, once, 0) in 0..1, "#{at}: #{once}")
            for again <- ~w(b d e f), do: assert(ran[again] in 1..2, "#{at}: #{again}")
            assert_told(name, ran, protocol)
            Enum.count(~w(a c), &(not is_map_key(ran, &1)))
          else
            # Nobody has the run, since it had not begun.
            assert DurableRows.ran(book, name) == %{}
            :not_begun
          end
        end

      # Each of the two is killed once before it has done anything, after its beginning is stored.
      assert Enum.sum(Enum.reject(counts, &(&1 == :not_begun))) == 2
      assert Enum.count(counts, &(&1 == :not_begun)) < 5
    end
  end
end
