defmodule Skillbook.Search.Candidates do
  @moduledoc false
  # Finds the entries of a view that may help with a request, for the router and the prompt. It
  # searches as `Skillbook.search/3` does, and also returns the parts of each score.

  alias Skillbook.Catalog.Search
  alias Skillbook.{Native, View}

  @typedoc """
  An entry that may help.

    * `:score` - the relevance, by which candidates are sorted; only comparable within one search
    * `:words` - the score of the words alone
    * `:similarity` - the cosine of the request and the entry, from -1.0 to 1.0; `nil` if the
      book has no embedder, if it failed, or if the entry has no vector yet
  """
  @type t :: %{name: String.t(), score: float(), words: float(), similarity: float() | nil}

  @doc "Returns at most `limit` candidates for a request, best first."
  @spec find(View.t(), String.t(), pos_integer()) :: [t()]
  def find(%View{} = view, text, limit)
      when is_binary(text) and is_integer(limit) and limit > 0 do
    if String.valid?(text), do: find(view, text, limit, Search.meaning(view, text)), else: []
  end

  @doc "The same with the vectors of `Skillbook.Catalog.Search.meaning/2`, or `nil`."
  @spec find(View.t(), String.t(), pos_integer(), {reference(), binary()} | nil) :: [t()]
  def find(%View{ref: ref}, text, limit, meaning) do
    for {name, score, words, similarity} <- Native.view_candidates(ref, text, limit, meaning),
        do: %{name: name, score: score, words: words, similarity: similarity}
  end
end
