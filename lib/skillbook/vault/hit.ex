defmodule Skillbook.Vault.Hit do
  @moduledoc """
  A note that `Skillbook.Vault.search/3` found.

  ## Fields

    * `:vault` - the name of its vault
    * `:id` - what its producer calls it; for a folder its path
    * `:path` - where it stands in the vault
    * `:title` - of its frontmatter, else its first heading, else its file's name
    * `:tags` - of its frontmatter and in its text
    * `:links` - the targets of its wiki links
    * `:frontmatter` - as a map
    * `:word_count` - how many words its text has
    * `:score` - how well it matches; only comparable within one answer
    * `:snippet` - the part of its text that shows why, on one line, with `…` where it goes on
    * `:highlights` - where words that match stand in the snippet: start and length, in bytes
  """

  @type t :: %__MODULE__{
          vault: String.t(),
          id: String.t(),
          path: String.t(),
          title: String.t(),
          tags: [String.t()],
          links: [String.t()],
          frontmatter: map(),
          word_count: non_neg_integer(),
          score: float(),
          snippet: String.t(),
          highlights: [{non_neg_integer(), pos_integer()}]
        }

  defstruct [
    :vault,
    :id,
    :path,
    :title,
    :word_count,
    :score,
    :snippet,
    tags: [],
    links: [],
    frontmatter: %{},
    highlights: []
  ]

  @doc ~S"""
  The snippet with its highlights between two marks.

      iex> hit = %Skillbook.Vault.Hit{snippet: "the first quarter", highlights: [{4, 5}]}
      iex> Skillbook.Vault.Hit.marked(hit, "**", "**")
      "the **first** quarter"
  """
  @spec marked(t(), String.t(), String.t()) :: String.t()
  def marked(%__MODULE__{snippet: snippet, highlights: highlights}, open, close) do
    {parts, at} =
      Enum.map_reduce(highlights, 0, fn {start, length}, at ->
        {[binary_part(snippet, at, start - at), open, binary_part(snippet, start, length), close],
         start + length}
      end)

    IO.iodata_to_binary([parts, binary_part(snippet, at, byte_size(snippet) - at)])
  end
end
