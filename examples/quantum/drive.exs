# Lets the page of `clock.tick` tick, changes it, removes it and puts it back, and looks at what Quantum has and what ran.

page = "skills/clock/tick.md"
text = File.read!(page)
jobs = fn -> for {_name, job} <- MyApp.Quantum.jobs(), do: job.schedule end

last = fn ->
  {:ok, agenda} =
    Skillbook.schedule(Skillbook.View.all(MyApp.Skills), names: ["clock.tick"], last: 1_000)

  agenda.last
end

# Waits for the change to be read, and for Quantum, which is told by a cast.
await = fn await, what, fun, left ->
  cond do
    fun.() -> IO.puts("ok: #{what}")
    left == 0 -> raise "not seen: #{what}"
    true -> Process.sleep(100) && await.(await, what, fun, left - 1)
  end
end

try do
  await.(await, "one job", fn -> length(jobs.()) == 1 end, 50)
  await.(await, "five firings", fn -> length(last.()) >= 5 end, 150)

  File.write!(page, String.replace(text, "description: It is", "description: Now it is"))
  count = length(last.())
  await.(await, "it goes on with another text", fn -> length(last.()) >= count + 2 end, 100)

  [before] = jobs.()
  File.write!(page, String.replace(text, ~s("* * * * * *"), ~s("*/2 * * * * *")))
  await.(await, "another schedule", fn -> length(jobs.()) == 1 and jobs.() != [before] end, 50)
  changed = DateTime.utc_now()
  later = fn -> Enum.filter(last.(), &(DateTime.diff(&1.at, changed) >= 1)) end
  await.(await, "three more firings", fn -> length(later.()) >= 3 end, 150)
  true = Enum.all?(later.(), &(rem(&1.at.second, 2) == 0))
  IO.puts("ok: each of them in an even second")

  File.rm!(page)
  await.(await, "no job", fn -> jobs.() == [] end, 50)
  Skillbook.Scheduler.await(MyApp.Skills)
  count = length(last.())
  Process.sleep(3_000)
  ^count = length(last.())
  IO.puts("ok: nothing more fires")

  File.write!(page, text)
  await.(await, "one job again", fn -> length(jobs.()) == 1 end, 50)

  await.(
    await,
    "it fires again",
    fn -> match?([%{status: :ok} | _], last.()) and length(last.()) > count end,
    100
  )

  rows = last.()
  true = rows |> Enum.uniq_by(& &1.at) |> length() == length(rows)

  IO.puts(
    "ok: #{length(rows)} firings, each at a time of its own: #{inspect(Enum.frequencies_by(rows, & &1.status))}"
  )
after
  File.write!(page, text)
end
