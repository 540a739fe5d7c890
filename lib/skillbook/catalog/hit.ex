defmodule Skillbook.Hit do
  @moduledoc """
  A search result of `Skillbook.search/3`.

  ## Fields

    * `:name` - the name of the entry
    * `:kind` - `:command`, `:skill` or `:note`
    * `:title` - the title or `nil`
    * `:description` - the description; `""` for a note without one
    * `:score` - the relevance, only comparable within one search
    * `:snippet` - the part of the description or the body that matches best, on one line, with
      `…` at omissions
    * `:highlights` - the matching words of the snippet, as start and length in bytes

  ## Examples

      iex> {:ok, catalog} = Skillbook.Catalog.load([Skillbook.Source.builtin()])
      iex> [hit] = Skillbook.search(Skillbook.View.all(catalog), "delete task", limit: 1)
      iex> for {start, length} <- hit.highlights, do: binary_part(hit.snippet, start, length)
      ["Delete", "task"]
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
