defmodule Skillbook.CLI do
  @moduledoc """
  The command line: what `bin/skillbook` and `mix skillbook` run.

  `run/1` takes the arguments and gives the exit status:

    * `0` - all good
    * `1` - a command failed, or what was asked for does not exist
    * `2` - wrong usage: an unknown command or option, a wrong value
    * `3` - the book could not be started

  Answers go to standard output, everything about them (diagnostics, errors of usage) to standard error.
  """

  alias Skillbook.CLI.{Arguments, Help, Terminal}

  @doc "Runs the arguments, then ends the virtual machine with the exit status."
  @spec main([String.t()]) :: no_return()
  def main(argv) do
    log_to_standard_error()
    {:ok, _} = Application.ensure_all_started(:skillbook)
    System.halt(run(argv))
  end

  @doc "Runs the arguments and returns the exit status."
  @spec run([String.t()]) :: 0..3
  def run(argv) do
    # What is written is UTF-8, whatever the locale says.
    for device <- [:standard_io, :standard_error], do: :io.setopts(device, encoding: :unicode)

    case Arguments.parse(argv) do
      {:ok, options} -> options.command.run(options)
      {:help, topic} -> Terminal.put(Help.text(topic))
      {:version, version} -> Terminal.put(["skillbook ", version])
      {:error, message, help} -> usage_error(message, help)
    end
    |> case do
      :ok -> 0
      status -> status
    end
  catch
    # The reader has gone (`skillbook list | head`): there is no one to tell.
    :throw, :closed -> 0
  end

  defp usage_error(message, help) do
    Terminal.complain([message, "\nSee: skillbook ", help])
    2
  end

  # Logger writes to standard output by default, where only answers belong. It reads these when it starts, and `elixir` has
  # started it already. The first is for Elixir up to 1.14, the second from 1.15.
  defp log_to_standard_error do
    _ = Application.stop(:logger)
    Application.put_env(:logger, :console, device: :standard_error)
    Application.put_env(:logger, :default_handler, config: [type: :standard_error])
    {:ok, _} = Application.ensure_all_started(:logger)
    :ok = :logger.add_primary_filter(__MODULE__, {&closed_pipe/2, nil})
  end

  # A reader that leaves is no error, but from OTP 28 the terminal driver logs one.
  defp closed_pipe(%{msg: {~c"Writer crashed (~p)", [:epipe]}}, _), do: :stop
  defp closed_pipe(_event, _), do: :ignore
end
