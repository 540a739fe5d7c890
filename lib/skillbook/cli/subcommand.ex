defmodule Skillbook.CLI.Subcommand do
  @moduledoc false
  # A command of the command line. Modules of this behaviour are listed in `Skillbook.CLI.Arguments`.

  @doc """
  Its own switches, beside the global ones: as for `OptionParser`'s `:strict`, or `{:one_of, atoms}`, the same repeated
  `{:some_of, atoms}`, or `{:number, least, most}` with `nil` for no most.
  """
  @callback switches() :: keyword()

  @doc "Checks the arguments after the command's name."
  @callback args([String.t()]) :: {:ok, [String.t()]} | {:error, String.t()}

  @doc "One line for the list of commands."
  @callback summary() :: String.t()

  @doc "The text of `skillbook COMMAND --help`, without the global options."
  @callback help() :: String.t()

  @callback run(Skillbook.CLI.Arguments.t()) :: :ok | 0..3
end
