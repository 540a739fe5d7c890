defmodule Skillbook.Scheduler.Queue do
  @moduledoc false
  # Which of many schedules fires next. It reads no clock.

  alias Skillbook.Schedule

  @typedoc "What a schedule is known by."
  @type key :: term()

  @opaque t :: %__MODULE__{}
  defstruct times: :gb_sets.new(), jobs: %{}

  @spec new() :: t()
  def new, do: %__MODULE__{}

  @doc "Adds a schedule under a key, or puts it in the place of that key's: its times after another."
  @spec put(t(), key(), Schedule.t(), DateTime.t()) :: t()
  def put(queue, key, schedule, later_than) do
    queue = delete(queue, key)

    case Schedule.next(schedule, later_than) do
      nil ->
        queue

      at ->
        times = :gb_sets.add({DateTime.to_unix(at), key}, queue.times)
        %{queue | times: times, jobs: Map.put(queue.jobs, key, {schedule, at})}
    end
  end

  @spec delete(t(), key()) :: t()
  def delete(queue, key) do
    case Map.pop(queue.jobs, key) do
      {nil, _jobs} ->
        queue

      {{_schedule, at}, jobs} ->
        %{
          queue
          | times: :gb_sets.del_element({DateTime.to_unix(at), key}, queue.times),
            jobs: jobs
        }
    end
  end

  @doc "The same schedules, each with its first time after another."
  @spec again(t(), DateTime.t()) :: t()
  def again(queue, later_than) do
    Enum.reduce(queue.jobs, queue, fn {key, {schedule, _at}}, queue ->
      put(queue, key, schedule, later_than)
    end)
  end

  @doc "The time that comes first."
  @spec next(t()) :: DateTime.t() | nil
  def next(queue) do
    if :gb_sets.is_empty(queue.times),
      do: nil,
      else: queue.times |> :gb_sets.smallest() |> elem(0) |> DateTime.from_unix!()
  end

  @doc "What has come until a time, in its order: each key with the first and the last of its times."
  @spec due(t(), DateTime.t()) :: {[{key(), DateTime.t(), DateTime.t()}], t()}
  def due(queue, now), do: due(queue, now, DateTime.to_unix(now), [])

  defp due(queue, now, unix, done) do
    with false <- :gb_sets.is_empty(queue.times),
         {at, key} when at <= unix <- :gb_sets.smallest(queue.times) do
      {schedule, first} = queue.jobs[key]
      queue = put(queue, key, schedule, first)
      # All but a clock that was put forward find nothing more.
      {last, queue} = last(queue, key, schedule, first, now, unix)
      due(queue, now, unix, [{key, first, last} | done])
    else
      _ -> {Enum.reverse(done), queue}
    end
  end

  defp last(queue, key, schedule, first, now, unix) do
    case queue.jobs do
      %{^key => {_schedule, next}} ->
        if DateTime.to_unix(next) <= unix,
          do: {Schedule.previous(schedule, now) || next, put(queue, key, schedule, now)},
          else: {first, queue}

      _ ->
        {first, queue}
    end
  end
end
