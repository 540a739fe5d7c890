defmodule Skillbook.Change do
  @moduledoc """
  What differs between a book's new generation and the one before.

  Processes that called `Skillbook.subscribe/1` get one after every new generation. It names all entries, whatever their
  labels, so it is for trusted code. What a profile may know of a change is what `Skillbook.changes/2` tells of two
  of its views.

  ## Fields

    * `:generation` - the number of the new generation
    * `:added` - the names of the entries that were not there before
    * `:changed` - the names of those that are not what they were: text, labels, files or source; also of those of which
      only an entry differs that another one of the name replaces, for a profile that does not see that one uses it
    * `:removed` - the names of those that are gone

  The names are sorted. All three lists are empty if only diagnostics differ, or if everything was read again and nothing
  differs.

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load(["test/support/fixtures/skills"])
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
