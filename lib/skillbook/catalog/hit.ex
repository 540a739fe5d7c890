defmodule Skillbook.Hit do
  @moduledoc """
  An entry that `Skillbook.search/3` found.

  ## Fields

    * `:name` - the entry's name
    * `:kind` - `:command`, `:skill` or `:note`
    * `:title` - the title or `nil`
    * `:description` - what it is for; `""` for a note without one
    * `:score` - how well it matches; only comparable within one answer
    * `:snippet` - the part of the description or the body that matches best, on one line, with `…` where it goes on
    * `:highlights` - where words that match stand in the snippet: start and length, in bytes
  """

  @type t :: %__MODULE__{
          name: String.t(),
          kind: :command | :skill | :note,
          title: String.t() | nil,
          description: String.t(),
          score: float(),
          snippet: String.t(),
          highlights: [{non_neg_integer(), pos_integer()}]
        }

  @enforce_keys [:name, :kind, :description, :score, :snippet, :highlights]
  defstruct [:name, :kind, :title, :description, :score, :snippet, :highlights]
end
