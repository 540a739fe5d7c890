defmodule Skillbook.CLI.Signals do
  @moduledoc false
  # Takes the signal SIGTERM in place of the virtual machine, which would end at once. The calling
  # process gets the message `:stop_signal`. `bin/skillbook` turns Ctrl-C into this signal.

  @behaviour :gen_event

  @default {:erl_signal_handler, []}

  @doc "Calls the function; while it runs, the signal is a message."
  @spec trap((() -> value)) :: value when value: term()
  def trap(fun) do
    :ok = :gen_event.swap_handler(:erl_signal_server, @default, {__MODULE__, self()})

    try do
      fun.()
    after
      :gen_event.swap_handler(:erl_signal_server, {__MODULE__, []}, @default)
    end
  end

  @impl true
  def init({pid, _state}), do: {:ok, pid}

  @impl true
  def handle_event(:sigterm, pid) do
    send(pid, :stop_signal)
    {:ok, pid}
  end

  def handle_event(_signal, pid), do: {:ok, pid}

  @impl true
  def handle_call(_request, pid), do: {:ok, :ok, pid}

  @impl true
  def terminate(_reason, _pid), do: :ok
end
