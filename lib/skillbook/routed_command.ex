defmodule Skillbook.RoutedCommand do
  @moduledoc """
  A command and the entry that it calls.

  ## Fields

    * `:name` - the entry's name, also where the command used an alias
    * `:entry` - the `Skillbook.Entry`
    * `:command` - the `Skillbook.Command` as it was parsed
  """

  @type t :: %__MODULE__{name: String.t(), entry: Skillbook.Entry.t(), command: Skillbook.Command.t()}

  @enforce_keys [:name, :entry, :command]
  defstruct [:name, :entry, :command]
end
