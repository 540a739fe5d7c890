# Changes, deletes and restores the page of `clock.tick`, and checks the jobs of Quantum and the
# runs.

page = "skills/clock/tick.md"
text = File.read!(page)
jobs = fn -> for {_name, job} <- MyApp.Quantum.jobs(), do: job.schedule end

last = fn ->
  {:ok, agenda} =
    Skillbook.schedule(Skillbook.View.all(MyApp.Skills), names: ["clock.tick"], last: 1_000)

  agenda.last
end

# Waits until the change is read and Quantum has handled its cast.
await = fn await, event, fun, left ->
  cond do
    fun.() -> IO.puts("ok: #{event}")
    left == 0 -> raise "timeout: #{event}"
    true -> Process.sleep(100) && await.(await, event, fun, left - 1)
  end
end

try do
  await.(await, "one job", fn -> length(jobs.()) == 1 end, 50)
  await.(await, "five runs", fn -> length(last.()) >= 5 end, 150)

  File.write!(page, String.replace(text, "description: It is", "description: Now it is"))
  count = length(last.())
  await.(await, "runs continue with the new text", fn -> length(last.()) >= count + 2 end, 100)

  [before] = jobs.()
  File.write!(page, String.replace(text, ~s("* * * * * *"), ~s("*/2 * * * * *")))
  await.(await, "a new schedule", fn -> length(jobs.()) == 1 and jobs.() != [before] end, 50)
  changed = DateTime.utc_now()
  later = fn -> Enum.filter(last.(), &(DateTime.diff(&1.at, changed) >= 1)) end
  await.(await, "three more runs", fn -> length(later.()) >= 3 end, 150)
  true = Enum.all?(later.(), &(rem(&1.at.second, 2) == 0))
  IO.puts("ok: all of them at an even second")

  File.rm!(page)
  await.(await, "no job", fn -> jobs.() == [] end, 50)
  Skillbook.Scheduler.await(MyApp.Skills)
  count = length(last.())
  Process.sleep(3_000)
  ^count = length(last.())
  IO.puts("ok: no more runs")

  File.write!(page, text)
  await.(await, "one job again", fn -> length(jobs.()) == 1 end, 50)

  await.(
    await,
    "it runs again",
    fn -> match?([%{status: :ok} | _], last.()) and length(last.()) > count end,
    100
  )

  rows = last.()
  true = rows |> Enum.uniq_by(& &1.at) |> length() == length(rows)

  statuses = Enum.frequencies_by(rows, & &1.status)
  IO.puts("ok: #{length(rows)} runs at different times: #{inspect(statuses)}")
after
  File.write!(page, text)
end
