defmodule Skillbook.Paths do
  @moduledoc false
  # Traces which modules of the library a piece of work passes through.

  # Work is over when no module of the library was called for this long, and at the latest after
  # the second time, in milliseconds.
  @idle 100
  @longest 10_000

  @doc """
  Runs `fun`, and waits for the work that it leaves to other processes, so that the figures do not
  depend on how far these are when it returns. Returns its result and, over all processes:

    * `:modules` - the modules of the library that were called
    * `:switches` - how often the calls of a process moved from one module to another
    * `:native` - how many calls went to the native libraries

  Nothing else may run meanwhile: tests that use it are not `async`.
  """
  def trace(fun) do
    modules = modules()
    Enum.each(modules, &Code.ensure_loaded!/1)
    tracer = spawn_link(fn -> collect([]) end)
    :erlang.trace(:all, true, [:call, {:tracer, tracer}])
    for module <- modules, do: :erlang.trace_pattern({module, :_, :_}, true, [:global])

    result =
      try do
        result = fun.()
        wait(tracer, nil, div(@longest, @idle))
        result
      after
        :erlang.trace_pattern({:_, :_, :_}, false, [:global])
        :erlang.trace(:all, false, [:call])
      end

    {result, tracer |> calls() |> count()}
  end

  # Helpers of tests are modules of the application as well.
  defp modules do
    for module <- Skillbook.Test.Checkout.modules(),
        source = module.module_info(:compile)[:source],
        not (source |> to_string() |> String.contains?("/test/support/")),
        do: module
  end

  defp calls(tracer) do
    delivered = :erlang.trace_delivered(:all)

    receive do
      {:trace_delivered, :all, ^delivered} -> send(tracer, {:calls, self()})
    end

    receive do
      {:calls, calls} -> calls
    end
  end

  defp wait(_tracer, _calls, 0), do: :ok

  defp wait(tracer, calls, left) do
    Process.sleep(@idle)
    now = calls(tracer)
    if now != calls, do: wait(tracer, now, left - 1)
  end

  defp collect(calls) do
    receive do
      {:trace, pid, :call, {module, _name, _arguments}} ->
        collect([{pid, module} | calls])

      {:calls, to} ->
        send(to, {:calls, Enum.reverse(calls)})
        collect(calls)
    end
  end

  defp count(calls) do
    processes = calls |> Enum.group_by(&elem(&1, 0), &elem(&1, 1)) |> Map.values()
    modules = Enum.map(calls, &elem(&1, 1))

    %{
      modules: modules |> Enum.uniq() |> Enum.sort(),
      switches: processes |> Enum.map(&(length(Enum.dedup(&1)) - 1)) |> Enum.sum(),
      native: Enum.count(modules, &(&1 in [Skillbook.Native, Skillbook.SQL.Native]))
    }
  end
end
