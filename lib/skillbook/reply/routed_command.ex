defmodule Skillbook.RoutedCommand do
  @moduledoc """
  A parsed command with the entry that it calls.

  `Skillbook.Router.route/2` returns it, and `Skillbook.Executor.execute/3` runs it.

  ## Fields

    * `:name` - the name of the entry, also if the command used an alias
    * `:entry` - the `Skillbook.Entry`
    * `:declaration` - the `Skillbook.Declaration` that converts the flags before the handler
      runs; `nil` if the page declares no flags, or has neither a handler nor `strict: true`
    * `:command` - the parsed `Skillbook.Command`
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
