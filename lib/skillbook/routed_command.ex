defmodule Skillbook.RoutedCommand do
  @moduledoc """
  A command and the entry that it calls.

  ## Fields

    * `:name` - the entry's name, also where the command used an alias
    * `:entry` - the `Skillbook.Entry`
    * `:declaration` - the `Skillbook.Declaration` by which its flags are read before it runs, or
      `nil`: its page declares none, or has neither a handler nor `strict: true`
    * `:command` - the `Skillbook.Command` as it was parsed
  """

  @type t :: %__MODULE__{
          name: String.t(),
          entry: Skillbook.Entry.t(),
          declaration: Skillbook.Declaration.t() | nil,
          command: Skillbook.Command.t()
        }

  @enforce_keys [:name, :entry, :command]
  defstruct [:name, :entry, :declaration, :command]
end
