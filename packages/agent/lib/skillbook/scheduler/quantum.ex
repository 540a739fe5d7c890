defmodule Skillbook.Scheduler.Quantum do
  @moduledoc """
  An engine that uses the application's [Quantum](https://hexdocs.pm/quantum) scheduler.

      {Skillbook,
       name: MyApp.Skills,
       store: "skills.db",
       scheduler: {Skillbook.Scheduler.Quantum, MyApp.Quantum}}

  `MyApp.Quantum` is the module with `use Quantum`. Start it before the book. Each entry with a
  schedule becomes a Quantum job whose name is a reference; the application's own jobs are not
  touched. Quantum decides when to fire, and the book claims and runs the firing as with its own
  engine.

  Tried with Quantum 3.5. Skillbook does not depend on it.
  """

  @behaviour Skillbook.Scheduler

  alias Skillbook.Scheduler
  alias Skillbook.Support.UntilError

  # Not dependencies; attributes hide the modules from the compiler's checks.
  @job Quantum.Job
  @parser Crontab.CronExpression.Parser

  @impl true
  def children(_book, _quantum), do: []

  @impl true
  def clear(book, quantum) do
    for {name, %{task: {Scheduler, :fire, [^book, _key]}}} <- quantum.jobs(),
        do: quantum.delete_job(name)

    :ok
  end

  @impl true
  def put(book, quantum, job, _now) do
    with {:ok, expressions} <- expressions(job.schedule) do
      {:ok, Enum.map(expressions, &add(quantum, &1, book, job))}
    end
  end

  @impl true
  def delete(_book, quantum, names) do
    Enum.each(names, &quantum.delete_job/1)
  end

  defp add(quantum, expression, book, %{key: key, schedule: schedule}) do
    reference = make_ref()

    [
      set_name: [reference],
      set_schedule: [expression],
      set_timezone: [timezone(schedule.timezone)],
      set_task: [{Scheduler, :fire, [book, key]}],
      # The book prevents overlaps.
      set_overlap: [true]
    ]
    |> Enum.reduce(quantum.new_job(), fn {function, arguments}, job ->
      apply(@job, function, [job | arguments])
    end)
    |> quantum.add_job()

    reference
  end

  defp timezone("UTC"), do: :utc
  defp timezone(name), do: name

  defp expressions(schedule) do
    schedule.expression
    |> alternatives()
    |> UntilError.map(fn text ->
      with {:error, reason} <- apply(@parser, :parse, [text, length(String.split(text)) == 6]),
           do: {:error, "Quantum cannot read #{inspect(text)}: #{reason}"}
    end)
  end

  # If day of month and day of week are both set, cron fires on either, Quantum only on both. So
  # such an expression becomes two jobs.
  defp alternatives(expression) do
    case expression |> String.split() |> Enum.reverse() do
      [weekday, month, day | rest] when rest != [] ->
        if either?(weekday) and either?(day),
          do: for([w, d] <- [[weekday, "*"], ["*", day]], do: join([w, month, d | rest])),
          else: [expression]

      _ ->
        [expression]
    end
  end

  defp either?(field), do: not String.starts_with?(field, ["*", "?"])
  defp join(fields), do: fields |> Enum.reverse() |> Enum.join(" ")
end
