defmodule Skillbook.Declaration do
  @moduledoc """
  What a command takes, as the Flags and Usage sections of its page say. `Skillbook.View.flags/2` gives it.

  Only what is plainly written counts; `docs/skills.md` says what that is. The same declaration is behind the checks of
  strict commands, tool definitions, grammars and lint.

  ## Fields

    * `:flags` - a list of `Skillbook.Flag`, in the page's order
    * `:choices` - flags that exclude each other, as `(--body <text> | --file <path>)` in Usage: a list of maps with their
      `:names` and whether one of them is `:required`
    * `:words` - whether Usage shows words that stand without a flag
  """

  alias Skillbook.Flag

  @type t :: %__MODULE__{
          flags: [Flag.t()],
          choices: [%{names: [String.t()], required: boolean()}],
          words: boolean()
        }

  defstruct flags: [], choices: [], words: false
end
