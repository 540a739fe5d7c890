defmodule Skillbook.Vault.Snippet do
  @moduledoc false
  # The part of a text that shows why it was found.

  alias Skillbook.Vault.{Stem, Words}

  # In bytes: how much of a text is looked at, how long a snippet is, and how much of it stands before the first match.
  @looked_at 100_000
  @length 200
  @before 40

  @doc "The snippet on one line, and where words that match stand in it: start and length, in bytes."
  @spec of(String.t(), [Skillbook.Vault.Query.unit()]) :: {String.t(), [{non_neg_integer(), pos_integer()}]}
  def of(text, units) do
    text = cut(text, @looked_at)
    words = places(text)
    matching = matching(units)

    found =
      for {start, length} <- words,
          key = matching.(binary_part(text, start, length)),
          do: {start, length, key}

    {from, to} = window(words, best(found), byte_size(text))

    line(
      text,
      from,
      to,
      for({start, length, _} <- found, start >= from, start + length <= to, do: {start, length})
    )
  end

  defp cut(text, most) when byte_size(text) <= most, do: text

  defp cut(text, most) do
    <<beginning::binary-size(most), _::binary>> = text
    if String.valid?(beginning), do: beginning, else: cut(text, most - 1)
  end

  defp places(text), do: ~r/[\p{L}\p{N}\p{M}]+/u |> Regex.scan(text, return: :index) |> Enum.map(&hd/1)

  # Which word or prefix of the query a word of the text matches, or nil.
  defp matching(units) do
    stems =
      for unit <- units,
          elem(unit, 0) != :prefix,
          stem <- unit |> elem(1) |> List.wrap(),
          into: MapSet.new(),
          do: stem

    prefixes = for {:prefix, prefix} <- units, do: prefix

    fn word ->
      folded = Words.fold(word)
      stem = Stem.of(folded)
      if stem in stems, do: stem, else: Enum.find(prefixes, &String.starts_with?(folded, &1))
    end
  end

  # The first place from which on most of the query stands within one snippet.
  defp best([]), do: 0

  defp best(found) do
    found
    |> Stream.unfold(fn
      [] -> nil
      [{start, _, _} | rest] = left -> {{start, within(left, start + @length - @before)}, rest}
    end)
    |> Enum.max_by(&elem(&1, 1))
    |> elem(0)
  end

  defp within(found, limit) do
    found
    |> Enum.take_while(fn {start, length, _} -> start + length <= limit end)
    |> Enum.take(50)
    |> MapSet.new(&elem(&1, 2))
    |> MapSet.size()
  end

  # From the beginning of a word to the end of one.
  defp window(_words, _at, size) when size <= @length, do: {0, size}

  defp window(words, at, size) do
    from = if at <= @before, do: 0, else: first(words, at)

    last =
      words
      |> Enum.filter(fn {start, length} -> start >= from and start + length <= from + @length end)
      |> List.last()

    to =
      cond do
        from + @length >= size -> size
        last -> elem(last, 0) + elem(last, 1)
        true -> from
      end

    {from, to}
  end

  defp first(words, at) do
    case Enum.find(words, fn {start, _} -> start >= at - @before end) do
      {start, _} -> min(start, at)
      nil -> at
    end
  end

  # White space becomes single blanks, and places move with it.
  defp line(text, from, to, highlights) do
    start = if from > 0, do: "… ", else: ""
    {line, moved, at} = pieces(text, from, highlights, start, [])
    line = line <> squeeze(binary_part(text, at, to - at), line)
    line = String.trim_trailing(line)
    {if(to < byte_size(text), do: line <> " …", else: line), Enum.reverse(moved)}
  end

  defp pieces(_text, at, [], line, moved), do: {line, moved, at}

  defp pieces(text, at, [{start, length} | rest], line, moved) do
    line = line <> squeeze(binary_part(text, at, start - at), line)
    place = {byte_size(line), length}
    pieces(text, start + length, rest, line <> binary_part(text, start, length), [place | moved])
  end

  defp squeeze(text, before) do
    text = Regex.replace(~r/\s+/u, text, " ")
    if before == "" or String.ends_with?(before, " "), do: String.trim_leading(text), else: text
  end
end
