defmodule Skillbook.Scheduler.Queue do
  @moduledoc false
  # A priority queue of schedules by their next times. It reads no clock.

  alias Skillbook.Schedule

  @typedoc "The caller's key of a schedule."
  @type key :: term()

  @opaque t :: %__MODULE__{}
  defstruct times: :gb_sets.new(), jobs: %{}

  @spec new() :: t()
  def new, do: %__MODULE__{}

  @doc "Adds or replaces the schedule of a key, with its first time after `later_than`."
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
        times = :gb_sets.del_element({DateTime.to_unix(at), key}, queue.times)
        %{queue | times: times, jobs: jobs}
    end
  end

  @doc "Resets every schedule to its first time after `later_than`."
  @spec reset(t(), DateTime.t()) :: t()
  def reset(queue, later_than) do
    Enum.reduce(queue.jobs, queue, fn {key, {schedule, _at}}, queue ->
      put(queue, key, schedule, later_than)
    end)
  end

  @doc "The earliest time."
  @spec next(t()) :: DateTime.t() | nil
  def next(queue) do
    if :gb_sets.is_empty(queue.times),
      do: nil,
      else: queue.times |> :gb_sets.smallest() |> elem(0) |> DateTime.from_unix!()
  end

  @doc "Removes the keys that are due at `now`, in order, with the first and last of their times."
  @spec due(t(), DateTime.t()) :: {[{key(), DateTime.t(), DateTime.t()}], t()}
  def due(queue, now), do: due(queue, now, DateTime.to_unix(now), [])

  defp due(queue, now, unix, done) do
    with false <- :gb_sets.is_empty(queue.times),
         {at, key} when at <= unix <- :gb_sets.smallest(queue.times) do
      {schedule, first} = queue.jobs[key]
      queue = put(queue, key, schedule, first)
      {last, queue} = last(queue, key, schedule, first, now, unix)
      due(queue, now, unix, [{key, first, last} | done])
    else
      _ -> {Enum.reverse(done), queue}
    end
  end

  # Usually `first`: later times are due too only if the clock jumped forward.
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
