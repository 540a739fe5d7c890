defmodule Skillbook.Scheduler.Quantum do
  @moduledoc """
  The engine for applications that have a scheduler of [Quantum](https://hexdocs.pm/quantum) 3.5: each entry becomes a job of it.

      {Skillbook, name: MyApp.Skills, store: "skills.db", scheduler: {Skillbook.Scheduler.Quantum, MyApp.Quantum}}

  `MyApp.Quantum` is the module that says `use Quantum`, and is started before the book. Jobs are added and removed by its
  public functions, under references as names; no job of the application's own is touched. Quantum says when a time has come, and
  the book claims and runs the firing as with its own engine.
  """

  @behaviour Skillbook.Scheduler

  alias Skillbook.Scheduler

  # Quantum is none of our dependencies: its modules are there when the application has it.
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
      # The book itself keeps firings apart.
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
    |> Enum.reduce_while({:ok, []}, fn text, {:ok, done} ->
      case apply(@parser, :parse, [text, length(String.split(text)) == 6]) do
        {:ok, expression} -> {:cont, {:ok, [expression | done]}}
        {:error, reason} -> {:halt, {:error, "Quantum cannot read #{inspect(text)}: #{reason}"}}
      end
    end)
  end

  # Of a day of the month and a day of the week cron means either, and Quantum both.
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
