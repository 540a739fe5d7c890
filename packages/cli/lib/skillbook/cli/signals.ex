defmodule Skillbook.CLI.Signals do
  @moduledoc false
  # Takes the signal SIGTERM in place of the virtual machine, which would end at once. The calling
  # process gets the message `:stop_signal`, and a second signal ends the virtual machine.
  # `bin/skillbook` turns Ctrl-C into this signal.

  @behaviour :gen_event

  @default {:erl_signal_handler, []}

  @doc "Calls the function; while it runs, the signal is a message."
  @spec trap((() -> value)) :: value when value: term()
  def trap(fun) do
    handler = {__MODULE__, {:first, self()}}
    :ok = :gen_event.swap_handler(:erl_signal_server, @default, handler)

    try do
      fun.()
    after
      :gen_event.swap_handler(:erl_signal_server, {__MODULE__, []}, @default)
    end
  end

  @impl true
  def init({state, _default}), do: {:ok, state}

  @impl true
  def handle_event(:sigterm, {:first, pid}) do
    send(pid, :stop_signal)
    {:ok, :second}
  end

  # The status of a program that the signal has ended.
  def handle_event(:sigterm, :second), do: :erlang.halt(143, flush: false)
  def handle_event(_signal, state), do: {:ok, state}

  @impl true
  def handle_call(_request, state), do: {:ok, :ok, state}

  @impl true
  def terminate(_reason, _state), do: :ok
end
