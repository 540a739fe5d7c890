defmodule Skillbook.CLI do
  @moduledoc """
  Runs the command line of `bin/skillbook` and `mix skillbook`.

  An application can run it too, for example from a release:

      status = Skillbook.CLI.run(["--dir", "skills", "list", "--json"])

  `run/1` returns the exit status:

    * `0` - success
    * `1` - a command failed, the requested entry does not exist, or standard output cannot be
      written; a closed pipe, as in `skillbook list | head`, is not an error
    * `2` - wrong usage: an unknown command or option, or a wrong value
    * `3` - the book could not be started

  Results go to standard output. Diagnostics, progress and errors go to standard error.
  """

  alias Skillbook.CLI.{Arguments, Help, Libraries, Output, Terminal}

  @doc "Runs the arguments, then ends the virtual machine with the exit status."
  @spec main([String.t()]) :: no_return()
  def main(argv) do
    log_to_standard_error()
    Skillbook.Catalog.Handlers.standalone()
    {:ok, _} = Application.ensure_all_started(:skillbook_cli)
    System.halt(run(argv))
  end

  @doc "Runs the arguments and returns the exit status."
  @spec run([String.t()]) :: 0..3
  def run(argv) do
    # Output is UTF-8 in every locale.
    for device <- [:standard_io, :standard_error], do: :io.setopts(device, encoding: :unicode)

    case Output.report_errors(fn -> dispatch(argv) end) do
      {:ok, status} ->
        status

      {:error, :epipe} ->
        0

      {:error, reason} ->
        Terminal.complain("cannot write standard output: #{:file.format_error(reason)}")
        1
    end
  end

  defp dispatch(argv) do
    case Arguments.parse(argv) do
      {:ok, options} -> with(:ok <- Libraries.load(options), do: options.command.run(options))
      {:help, topic} -> Terminal.put(Help.text(topic))
      {:version, version} -> Terminal.put(["skillbook ", version])
      {:error, message, help} -> Terminal.usage_error(message, help)
    end
    |> case do
      :ok -> 0
      {:error, error} -> Terminal.failed(error)
      status -> status
    end
  end

  # Logger writes to standard output by default. It reads these settings at its start, and
  # `elixir` has started it already. The first is for Elixir up to 1.14, the second for 1.15 and
  # later.
  defp log_to_standard_error do
    _ = Application.stop(:logger)
    Application.put_env(:logger, :console, device: :standard_error)
    Application.put_env(:logger, :default_handler, config: [type: :standard_error])
    {:ok, _} = Application.ensure_all_started(:logger)
    :ok = :logger.add_primary_filter(__MODULE__, {&closed_pipe/2, nil})
  end

  # A closed standard output is not an error, but from OTP 28 the terminal driver logs one.
  defp closed_pipe(%{msg: {~c"Writer crashed (~p)", [:epipe]}}, _), do: :stop
  defp closed_pipe(_event, _), do: :ignore
end
