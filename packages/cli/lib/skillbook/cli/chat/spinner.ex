defmodule Skillbook.CLI.Chat.Spinner do
  @moduledoc false
  # Shows a person that the model is at work, on a line that the first output replaces. A process
  # of its own draws it. `nil` stands for no spinner.

  alias Skillbook.CLI.Terminal

  @frames {"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}
  @interval 100
  # Milliseconds before the first frame, so that a quick answer does not flicker.
  @delay 300

  @doc "Starts a spinner that is not shown yet, linked to the calling process."
  @spec start() :: pid()
  def start, do: spawn_link(&idle/0)

  @doc "Shows the spinner until `clear/1`."
  @spec wait(pid() | nil) :: :ok
  def wait(nil), do: :ok

  def wait(spinner) do
    send(spinner, {__MODULE__, :wait})
    :ok
  end

  @doc "Clears the spinner, and returns when its line is empty."
  @spec clear(pid() | nil) :: :ok
  def clear(nil), do: :ok

  def clear(spinner) do
    monitor = Process.monitor(spinner)
    send(spinner, {__MODULE__, :clear, self(), monitor})

    receive do
      {^monitor, :cleared} -> Process.demonitor(monitor, [:flush])
      {:DOWN, ^monitor, :process, _pid, _reason} -> true
    end

    :ok
  end

  @doc "Clears and ends the spinner."
  @spec stop(pid() | nil) :: :ok
  def stop(nil), do: :ok

  def stop(spinner) do
    clear(spinner)
    Process.unlink(spinner)
    Process.exit(spinner, :kill)
    :ok
  end

  defp idle do
    receive do
      {__MODULE__, :wait} -> spin(System.monotonic_time(:millisecond), 0, @delay)
      {__MODULE__, :clear, from, monitor} -> cleared(from, monitor)
    end
  end

  defp spin(began, count, delay) do
    receive do
      {__MODULE__, :wait} ->
        spin(began, count, delay)

      {__MODULE__, :clear, from, monitor} ->
        if count > 0, do: Terminal.write("\r\e[K")
        cleared(from, monitor)
    after
      delay ->
        seconds = div(System.monotonic_time(:millisecond) - began, 1000)
        frame = elem(@frames, rem(count, tuple_size(@frames)))
        Terminal.write(["\r\e[K", frame, " ", Integer.to_string(seconds), " s"])
        spin(began, count + 1, @interval)
    end
  end

  defp cleared(from, monitor) do
    send(from, {monitor, :cleared})
    idle()
  end
end
