defmodule Skillbook.CLI.Subcommand do
  @moduledoc false
  # The behaviour of a subcommand, for example `list`. To add one, write a module, list it in
  # `Skillbook.CLI.Arguments`, and describe it in native/skillbook_cli/help: in `overview.txt`,
  # and in a file of its own with usage, purpose, options, exit status and examples.

  @doc """
  The subcommand's switches, in addition to the global ones.

  Types are those of the `:strict` option of `OptionParser`, and

    * `{:one_of, atoms}` - one of these values
    * `{:some_of, atoms}` - one of these values, repeatable
    * `{:number, min, max}` - a whole number; `nil` for no maximum

  Those of operations (`Skillbook.Support.Operation`) are from `Arguments.inputs/1`.
  """
  @callback switches() :: keyword()

  @doc "Checks the arguments after the subcommand's name; an error is wrong usage."
  @callback args([String.t()]) :: {:ok, [String.t()]} | {:error, String.t()}

  @doc """
  Runs the subcommand; returns the exit status, `:ok` for 0, or an error for 1, whose text or
  message is written to standard error.
  """
  @callback run(Skillbook.CLI.Arguments.t()) :: :ok | 0..3 | {:error, Exception.t() | iodata()}
end
