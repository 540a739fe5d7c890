defmodule Skillbook.Change do
  @moduledoc """
  What a reload changed.

  ## Fields

    * `:generation` - the number of the generation after it
    * `:added`, `:changed`, `:removed` - the names of the entries that are new, differ, or are gone, each list in order
  """

  @type t :: %__MODULE__{
          generation: pos_integer(),
          added: [String.t()],
          changed: [String.t()],
          removed: [String.t()]
        }

  @enforce_keys [:generation]
  defstruct [:generation, added: [], changed: [], removed: []]
end
