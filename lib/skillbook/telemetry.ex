defmodule Skillbook.Telemetry do
  @moduledoc false
  # Tells `:telemetry` what happens, if the application has it; docs/telemetry.md lists the events. Events carry ids, names,
  # counts and times, never what a flag holds. A book that counts its usage counts the same events.

  alias Skillbook.Usage.Counter

  @type name :: [atom(), ...]

  @doc "Looks for `:telemetry`: once at a start, since looking for what is not there takes long."
  @spec load() :: :ok
  def load do
    Code.ensure_loaded(:telemetry)
    :ok
  end

  @spec event(name(), map(), map()) :: :ok
  def event([:skillbook | _] = name, measurements, metadata) do
    if :erlang.function_exported(:telemetry, :execute, 3),
      do: apply(:telemetry, :execute, [name, measurements, metadata])

    with [:skillbook, :command, how] when how in [:stop, :exception] <- name,
         do: Counter.count(how, measurements, metadata)

    :ok
  end

  @doc """
  Events around a work: `:start`, then `:stop` or `:exception`, as the function says, with more metadata. If it raises,
  throws or exits, that is an `:exception` with `:kind`, and goes on.
  """
  @spec span(name(), map(), (() -> {:stop | :exception, value, map()})) :: value
        when value: term()
  def span(name, metadata, fun) do
    began = System.monotonic_time()
    event(name ++ [:start], %{monotonic_time: began, system_time: System.system_time()}, metadata)

    try do
      fun.()
    catch
      kind, reason ->
        stop(name, :exception, began, Map.put(metadata, :kind, kind))
        :erlang.raise(kind, reason, __STACKTRACE__)
    else
      {how, value, more} when how in [:stop, :exception] ->
        stop(name, how, began, Map.merge(metadata, more))
        value
    end
  end

  defp stop(name, how, began, metadata) do
    ended = System.monotonic_time()
    event(name ++ [how], %{duration: ended - began, monotonic_time: ended}, metadata)
  end
end
