defmodule Skillbook.Vault.Postings do
  @moduledoc false
  # Which documents have a term, how often and where, as `native/skillbook_core/src/vault/postings.rs` packs it: seven bytes a
  # document for its id and how often the term is in its titles and its text; and, for each, the places.

  # So much is the sum of 1/n² without end: no document has a rank above 1.
  @sum 1.64493406685
  @content_weight 0.4
  # Counts end at this, which is also what PostgreSQL's own ranking looks at.
  @most 255
  # The sum of 1/n² up to each count.
  @squares Enum.scan([0.0 | Enum.map(1..@most, &(1 / (&1 * &1)))], &+/2) |> List.to_tuple()

  @form "\u{E000}"

  @doc "The rank of a document by how often it has a term: occurrences count 1, 1/4, 1/9 and so on, those in titles first."
  @spec rank(non_neg_integer(), non_neg_integer()) :: float()
  def rank(titles, contents) do
    in_titles = elem(@squares, min(titles, @most))
    (in_titles + @content_weight * (elem(@squares, min(titles + contents, @most)) - in_titles)) / @sum
  end

  @doc "The first and the last term of the words, as written, that begin so."
  @spec forms(String.t()) :: [String.t()]
  def forms(beginning), do: [@form <> beginning, @form <> beginning <> "\u{10FFFF}"]

  @doc "The documents of one term, each with its rank."
  @spec ranks([binary()]) :: [{pos_integer(), float()}]
  def ranks(packed) do
    for documents <- packed, <<id::40, titles, contents <- documents>>, do: {id, rank(titles, contents)}
  end

  @doc "The documents of several terms, which count as one."
  @spec summed_ranks([binary()]) :: [{pos_integer(), float()}]
  def summed_ranks(packed) do
    packed
    |> Enum.reduce(%{}, fn documents, counts ->
      for <<id::40, titles, contents <- documents>>, reduce: counts do
        %{^id => {in_titles, in_contents}} = counts ->
          %{counts | id => {in_titles + titles, in_contents + contents}}

        counts ->
          Map.put(counts, id, {titles, contents})
      end
    end)
    |> Enum.map(fn {id, {titles, contents}} -> {id, rank(titles, contents)} end)
  end

  @doc """
  The documents in which terms follow each other, each with the mean of their ranks.

  A term is given as its rows of documents and places.
  """
  @spec phrase([[[binary()]]]) :: [{pos_integer(), float()}]
  def phrase(terms) do
    words =
      for rows <- terms do
        ranks = rows |> Enum.map(&hd/1) |> ranks()
        {Map.new(ranks), rows |> Enum.flat_map(fn [_, places] -> unpack(places) end) |> Map.new()}
      end

    {fewest, _} = Enum.min_by(words, fn {ranks, _} -> map_size(ranks) end)

    for {id, _} <- fewest,
        Enum.all?(words, fn {ranks, _} -> is_map_key(ranks, id) end),
        follow?(for({_, places} <- words, do: places[id])) do
      {id, (words |> Enum.map(fn {ranks, _} -> ranks[id] end) |> Enum.sum()) / length(words)}
    end
  end

  defp follow?([first | rest]) do
    rest
    |> Enum.with_index(1)
    |> Enum.reduce(places(first, 0), fn {places, at}, begins ->
      if begins == [], do: [], else: :ordsets.intersection(begins, places(places, at))
    end) != []
  end

  defp places(packed, at), do: for(<<place::16 <- packed>>, do: place - at)

  defp unpack(<<id::40, count::16, places::binary-size(count)-unit(16), rest::binary>>),
    do: [{id, places} | unpack(rest)]

  defp unpack(""), do: []

  @doc "What is left of packed documents without some."
  @spec without(binary(), MapSet.t(pos_integer())) :: binary()
  def without(documents, gone) do
    for <<id::40, counts::16 <- documents>>, id not in gone, into: "", do: <<id::40, counts::16>>
  end

  @doc "What is left of packed places without those of some documents."
  @spec without_places(binary(), MapSet.t(pos_integer())) :: binary()
  def without_places(places, gone) do
    for {id, places} <- unpack(places), id not in gone, into: "" do
      <<id::40, div(byte_size(places), 2)::16, places::binary>>
    end
  end
end
