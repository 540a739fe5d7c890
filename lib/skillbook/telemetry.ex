defmodule Skillbook.Telemetry do
  @moduledoc false
  # Sends events to `:telemetry`, if the application has it, and to the usage counter of the book.
  # docs/telemetry.md lists the events. They have ids, names, counts and times, and no values of
  # flags unless the book has `telemetry_flags: true`.

  alias Skillbook.Usage.Counter

  @type name :: [atom(), ...]

  @doc "Loads `:telemetry`, once at the start: searching for a missing module is slow."
  @spec load() :: :ok
  def load do
    Code.ensure_loaded(:telemetry)
    :ok
  end

  @doc "Sends an event."
  @spec event(name(), map(), map()) :: :ok
  def event([:skillbook | _] = name, measurements, metadata) do
    if :erlang.function_exported(:telemetry, :execute, 3),
      do: apply(:telemetry, :execute, [name, measurements, metadata])

    with [:skillbook, :command, how] when how in [:stop, :exception] <- name,
         do: Counter.count(how, measurements, metadata)

    :ok
  end

  @doc """
  Sends `:start` before a function and `:stop` or `:exception` after it.

  The function returns the kind of the last event, the result, and more metadata. If it raises,
  throws or exits, the event is an `:exception` with a `:kind`, and the error is raised again.
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
