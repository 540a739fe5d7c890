defmodule Skillbook.Change do
  @moduledoc """
  The difference between two generations of a book's catalog.

  Processes that called `Skillbook.subscribe/1` receive one after every new generation. It names
  entries of all labels, so it is for trusted code; use `Skillbook.changes/2` for the changes that
  one profile may see.

  ## Fields

    * `:generation` - the number of the new generation
    * `:added` - the names of new entries
    * `:changed` - the names of entries with a changed text, label, file or source; also names
      whose shadowed entry changed, since another profile may use it
    * `:removed` - the names of removed entries

  The names are sorted. All three lists are empty if only diagnostics differ, or if nothing
  differs after a reload.

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> Skillbook.Catalog.refresh(catalog, :all)
      %Skillbook.Change{generation: 2, added: [], changed: [], removed: []}
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
