defmodule Skillbook.Cost do
  @moduledoc false
  # Measures calls: how long one takes, and how long it stays on a normal scheduler at once.

  @doc "The shortest time of some calls in microseconds, each in a process of its own."
  @spec time((() -> term()), pos_integer()) :: non_neg_integer()
  def time(call, count),
    do: Enum.min(for _ <- 1..count, do: in_process(fn -> elem(:timer.tc(call), 0) end))

  @doc """
  The processor time of a call in microseconds, the mean of as many calls as take `while`
  milliseconds.

  It counts all threads of the virtual machine, but nothing of other programs. Its resolution is a
  millisecond.
  """
  @spec cpu((() -> term()), pos_integer()) :: float()
  def cpu(call, while \\ 10), do: in_process(fn -> cpu(call, while, runtime(), 0) end)

  defp cpu(call, while, began, count) do
    call.()
    spent = runtime() - began
    if spent >= while, do: spent * 1000 / (count + 1), else: cpu(call, while, began, count + 1)
  end

  defp runtime, do: elem(:erlang.statistics(:runtime), 0)

  # A new process with a large heap: neither the garbage of an earlier call nor the growing of the
  # heap is measured, which makes steps.
  defp in_process(measure) do
    me = self()
    options = [:link, min_heap_size: 1_000_000]
    Process.spawn(fn -> send(me, {:measured, measure.()}) end, options)
    receive do: ({:measured, result} -> result)
  end

  @doc """
  The longest time in microseconds that a call stays on a normal scheduler at once, in its process
  or one that it starts.

  The scheduler ends a slice after 4,000 reductions, which take less than a millisecond; a longer
  one is a native function or a built-in one that does not count its work.
  """
  @spec slice((() -> term())) :: non_neg_integer()
  def slice(call) do
    me = self()

    pid =
      spawn_link(fn ->
        receive do: (:go -> :ok)
        call.()
        send(me, {:done, self()})
        receive do: (:stop -> :ok)
      end)

    flags = [:running, :scheduler_id, :monotonic_timestamp]
    :erlang.trace(pid, true, flags)
    send(pid, :go)
    receive do: ({:done, ^pid} -> :ok)
    :erlang.trace(:all, false, [:running])
    send(pid, :stop)
    ref = :erlang.trace_delivered(:all)
    receive do: ({:trace_delivered, :all, ^ref} -> :ok)
    longest(%{}, 0)
  end

  defp longest(entered, most) do
    receive do
      {:trace_ts, pid, :in, _place, scheduler, at} ->
        longest(Map.put(entered, pid, {scheduler, at}), most)

      {:trace_ts, pid, :out, _place, _scheduler, at} ->
        {entered_at, entered} = Map.pop(entered, pid)
        longest(entered, max(most, spent(entered_at, at)))

      other when elem(other, 0) == :trace_ts ->
        longest(entered, most)
    after
      0 -> System.convert_time_unit(most, :native, :microsecond)
    end
  end

  # Dirty schedulers have higher numbers.
  defp spent({scheduler, at}, until) do
    if scheduler in 1..:erlang.system_info(:schedulers), do: until - at, else: 0
  end

  defp spent(nil, _until), do: 0
end
