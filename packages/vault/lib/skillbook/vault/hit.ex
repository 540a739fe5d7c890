defmodule Skillbook.Vault.Hit do
  @moduledoc """
  A document found by `Skillbook.Vault.search/3`.

  ## Fields

    * `:vault` - the name of its vault
    * `:id` - the producer's id; for a folder the path
    * `:path` - the path in the vault
    * `:title` - from its frontmatter, else its first heading, else its file's name
    * `:tags` - from its frontmatter and its text
    * `:links` - the targets of its wiki links
    * `:frontmatter` - a map
    * `:word_count` - the number of words of its text
    * `:score` - a relevance score, comparable within one result only
    * `:snippet` - the best matching part of its text, on one line, with `…` where it is cut
    * `:external` - whether its vault is a drive, so that path, title, tags and texts are those of
      strangers
    * `:highlights` - `{start, length}` of matching words in the snippet, in bytes
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
          highlights: [{non_neg_integer(), pos_integer()}],
          external: boolean()
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
    highlights: [],
    external: false
  ]

  @doc ~S"""
  Returns the snippet with each highlight between two marks.

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
