defmodule Skillbook.Vault.Words do
  @moduledoc false
  # Text to the terms of the index, the same for both databases: letters, digits and their marks in small letters, without
  # accents, as stems. Prefixes are looked for among the words as they are written, which stand in the index too, with a mark
  # that no word of a text has.

  alias Skillbook.Vault.Stem

  # PostgreSQL counts positions up to 16,383 and takes so much of one document.
  @most_words 16_000
  @most_bytes 400_000
  @longest_word 48

  @form "\u{E000}"
  @between for byte <- 0..127, byte not in ?0..?9, byte not in ?a..?z, byte not in ?A..?Z, do: <<byte>>

  @typedoc "The terms of a text: the stems in their order, and the words as written, once each."
  @type t :: %{stems: [String.t()], forms: [String.t()]}

  @doc "The words of a text, folded."
  @spec list(String.t()) :: [String.t()]
  def list(text) do
    if ascii?(text) do
      text |> String.downcase(:ascii) |> String.split(@between, trim: true)
    else
      ~r/[^\p{L}\p{N}\p{M}]+/u |> Regex.split(fold(text), trim: true)
    end
  end

  @doc "A text in small letters and without accents."
  @spec fold(String.t()) :: String.t()
  def fold(text) do
    if ascii?(text) do
      String.downcase(text, :ascii)
    else
      folded = text |> String.downcase() |> String.normalize(:nfd)
      Regex.replace(~r/[\x{300}-\x{36F}]/u, folded, "")
    end
  end

  @doc "The terms of several texts that are one document: no more of it than both databases take."
  @spec terms([String.t()]) :: [t()]
  def terms(texts) do
    {terms, _left} =
      Enum.map_reduce(texts, {@most_words, @most_bytes}, fn text, {count, bytes} ->
        words = text |> list() |> Enum.filter(&(byte_size(&1) <= @longest_word)) |> Enum.take(count)
        {stems, bytes} = stems(words, bytes)
        words = Enum.take(words, length(stems))
        {%{stems: stems, forms: words |> Enum.uniq() |> Enum.map(&form/1)}, {count - length(words), bytes}}
      end)

    terms
  end

  defp stems(words, bytes) do
    {stems, {_known, left}} =
      Enum.flat_map_reduce(words, {%{}, bytes}, fn word, {known, left} ->
        case known do
          %{^word => stem} ->
            {[stem], {known, left}}

          _ when byte_size(word) > left ->
            {:halt, {known, left}}

          _ ->
            stem = Stem.of(word)
            {[stem], {Map.put(known, word, stem), left - byte_size(word)}}
        end
      end)

    {stems, left}
  end

  @doc "The term of a word as it is written."
  @spec form(String.t()) :: String.t()
  def form(word), do: @form <> word

  defp ascii?(text), do: not Regex.match?(~r/[^\x00-\x7F]/, text)
end
