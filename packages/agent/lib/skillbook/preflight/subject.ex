defmodule Skillbook.Preflight.Subject do
  @moduledoc false
  # The entries among which the router chooses: those of a view, or the profiles that its profile
  # may use, which are entries of a catalog of their own. The stages do not tell them apart.

  alias Skillbook.Catalog.Search
  alias Skillbook.Embedding.Entries
  alias Skillbook.View

  @type t :: %__MODULE__{
          among: :skills | :profiles,
          view: View.t(),
          book: atom() | nil,
          profile: String.t(),
          meaning: (String.t() -> {reference(), Skillbook.Embedder.vector()} | nil),
          vectors: %{done: non_neg_integer(), total: non_neg_integer()} | nil,
          key: term()
        }

  @enforce_keys [:among, :view, :book, :profile, :meaning, :vectors, :key]
  defstruct @enforce_keys

  @doc "The skills and commands of a view."
  @spec skills(View.t()) :: t()
  def skills(view) do
    %__MODULE__{
      among: :skills,
      view: view,
      book: view.book,
      profile: view.profile.id,
      meaning: &Search.meaning(view, &1),
      # They are made in the background.
      vectors: Entries.progress(view),
      key: View.state(view)
    }
  end
end
