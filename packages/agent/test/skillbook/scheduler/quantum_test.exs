defmodule Skillbook.Scheduler.QuantumTest do
  # Quantum's part is played by what its documentation has (test/support/quantum.ex);
  # examples/quantum is run with itself.
  use Skillbook.SkillsCase, async: false

  import ExUnit.CaptureLog
  import Skillbook.Eventually

  alias Skillbook.Scheduler.Firings
  alias Skillbook.{Book, FakeQuantum, Scheduler}

  defmodule Quick do
    @behaviour Skillbook.Handler
    @impl true
    def execute(_flags, _context), do: {:ok, "done"}
  end

  @moduletag :tmp_dir

  setup do
    start_supervised!(FakeQuantum)
    FakeQuantum.add_job(%Quantum.Job{name: :own, task: {IO, :puts, ["own"]}})
    :ok
  end

  defp job(name, fields), do: page(name, [handler: inspect(Quick), run_as: "default"] ++ fields)

  defp scheduled(folder, clock, options \\ []) do
    book =
      book(
        options ++
          [
            sources: [folder],
            builtins: false,
            watch: false,
            store: ":memory:",
            scheduler: {Skillbook.Scheduler.Quantum, FakeQuantum},
            schedules: [clock: fn -> clock |> :atomics.get(1) |> DateTime.from_unix!() end]
          ]
      )

    _ = Scheduler.registered(book)
    book
  end

  defp clock(time), do: :atomics.new(1, []) |> tap(&:atomics.put(&1, 1, DateTime.to_unix(time)))

  defp jobs(book) do
    for {name, %{task: {Scheduler, :fire, [^book, entry]}} = job} when is_reference(name) <-
          FakeQuantum.jobs() do
      true = job.overlap
      {entry, job.schedule.text, job.schedule.extended, job.timezone}
    end
    |> Enum.sort()
  end

  test "each entry is a job while it exists", %{tmp_dir: folder} do
    write(folder, %{
      "a/SKILL.md" => job("a", schedule: "0 8 * * *"),
      "b/SKILL.md" => job("b", schedule: "'*/5 0 8 * * *'", timezone: "Europe/Berlin"),
      # Either day in cron, both in Quantum.
      "c/SKILL.md" => job("c", schedule: "0 0 13 * FRI"),
      "d/SKILL.md" => job("d", schedule: "0 0 */10 * MON"),
      "e/SKILL.md" => job("e", schedule: "'@daily'"),
      "f/SKILL.md" => job("f", schedule: "0 8 L * *")
    })

    clock = clock(~U[2026-03-01 07:59:30Z])

    log =
      capture_log(fn ->
        book = scheduled(folder, clock)

        assert jobs(book) == [
                 {"a", "0 8 * * *", false, :utc},
                 {"b", "*/5 0 8 * * *", true, "Europe/Berlin"},
                 {"c", "0 0 * * FRI", false, :utc},
                 {"c", "0 0 13 * *", false, :utc},
                 {"d", "0 0 */10 * MON", false, :utc},
                 {"e", "@daily", false, :utc}
               ]

        write(folder, %{"a/SKILL.md" => job("a", schedule: "0 9 * * *")})
        for name <- ~w(b c d e), do: File.rm_rf!(Path.join(folder, name))
        Skillbook.reload(book)
        assert Scheduler.registered(book) |> Map.keys() == ["a"]
        assert jobs(book) == [{"a", "0 9 * * *", false, :utc}]

        # Jobs of a crashed process are not duplicated.
        Process.exit(Process.whereis(Module.concat(book, "Scheduler")), :kill)
        assert eventually(fn -> jobs(book) == [{"a", "0 9 * * *", false, :utc}] end)
        stop_supervised!(book)
        assert [{:own, _}] = FakeQuantum.jobs()
      end)

    assert log =~
             "f does not run by its schedule: Quantum cannot read \"0 8 L * *\": Can't parse " <>
               "L as day."
  end

  test "entries of the store with one name are separate jobs", %{tmp_dir: folder} do
    clock = clock(~U[2026-03-01 07:59:30Z])
    profiles = [[id: "ann", grants: ["a"]], [id: "bob", grants: ["b"]]]
    book = scheduled(folder, clock, profiles: profiles)

    for {id, label} <- [{"ann", "a"}, {"bob", "b"}] do
      fields = %{
        title: "Milk",
        kind: :note,
        content: "Of #{id}.",
        labels: [label],
        schedule: "0 8 * * *"
      }

      {:ok, _} = Skillbook.Store.create(Skillbook.view(book, id), fields)
    end

    assert map_size(Scheduler.registered(book)) == 2

    assert [
             {{"milk", one}, "0 8 * * *", false, :utc},
             {{"milk", other}, "0 8 * * *", false, :utc}
           ] = jobs(book)

    assert one != other
    :atomics.put(clock, 1, DateTime.to_unix(~U[2026-03-01 08:00:00Z]))

    for {_, %{task: {module, function, [^book, _] = arguments}}} <- FakeQuantum.jobs(),
        do: apply(module, function, arguments)

    Scheduler.await(book)

    for id <- ["ann", "bob"] do
      {:ok, agenda} = Skillbook.schedule(Skillbook.view(book, id))
      assert for(row <- agenda.last, do: {row.name, row.text}) == [{"milk", "Of #{id}."}]
    end
  end

  test "a firing of Quantum runs once, for the right time", %{tmp_dir: folder} do
    write(folder, %{"a/SKILL.md" => job("a", schedule: "0 8 * * *")})
    clock = clock(~U[2026-03-01 07:59:30Z])
    book = scheduled(folder, clock)

    [{module, function, arguments}] =
      for {_, %{task: {_, :fire, [^book, _]} = task}} <- FakeQuantum.jobs(), do: task

    for {time, expected} <- [
          # Too early, on time, on another node, and too late.
          {~U[2026-03-01 07:59:59Z], []},
          {~U[2026-03-01 08:00:00Z], [~U[2026-03-01 08:00:00Z]]},
          {~U[2026-03-01 08:00:02Z], [~U[2026-03-01 08:00:00Z]]},
          {~U[2026-03-02 08:01:01Z], [~U[2026-03-01 08:00:00Z]]},
          {~U[2026-03-03 08:01:00Z], [~U[2026-03-03 08:00:00Z], ~U[2026-03-01 08:00:00Z]]}
        ] do
      :atomics.put(clock, 1, DateTime.to_unix(time))
      :ok = apply(module, function, arguments)
      Scheduler.await(book)

      {:ok, rows} =
        Firings.list(Book.sql(Book.fetch!(book)), Skillbook.Profile.unrestricted(), 10, nil)

      assert Enum.map(rows, & &1.at) == expected
      assert Enum.all?(rows, &(&1.status == :ok))
    end
  end
end
