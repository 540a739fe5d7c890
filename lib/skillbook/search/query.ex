defmodule Skillbook.Search.Query do
  @moduledoc false
  # Parses a query into units for `Skillbook.Search.Index`: words, prefixes and phrases. All other
  # characters separate words, so a query cannot contain an operator by accident.

  alias Skillbook.Native

  @max_words 32
  @max_bytes 4096
  # The prefix of unstemmed words: see `native/skillbook_core/src/search/rows`.
  @form "\u{E000}"

  @typedoc """
  A word by its stem, the beginning of a word, either of them (for the last word that is being
  typed), or consecutive stems.
  """
  @type unit ::
          {:word, String.t()}
          | {:prefix, String.t()}
          | {:last, String.t(), String.t()}
          | {:phrase, [String.t()]}

  @typedoc "The first and the last term of a range."
  @type range :: {String.t(), String.t()}

  @doc """
  Parses words, "phrases" and prefixes* into unique units: `{:ok, units}`, or `:error` if there
  are no words or too many, or if the text is too long.
  """
  @spec parse(String.t()) :: {:ok, [unit()]} | :error
  def parse(text) when byte_size(text) > @max_bytes, do: :error

  def parse(text) do
    pieces = if String.valid?(text), do: Regex.scan(~r/"([^"]*)"|[^\s"]+/u, text), else: []
    words = pieces |> Enum.map(&List.last/1) |> Native.search_words()
    units = pieces |> Enum.zip(words) |> Enum.flat_map(&units/1) |> Enum.uniq()
    count = for unit <- units, word <- unit |> elem(1) |> List.wrap(), do: word
    if length(count) in 1..@max_words, do: {:ok, units}, else: :error
  end

  @doc """
  Parses plain words, the last of which may be the beginning of a word. Returns like `parse/1`.

      iex> Skillbook.Search.Query.words("plans (for) the lau")
      {:ok, [{:word, "plan"}, {:word, "for"}, {:word, "the"}, {:last, "lau", "lau"}]}
      iex> Skillbook.Search.Query.words("?!")
      :error
  """
  @spec words(String.t()) :: {:ok, [unit()]} | :error
  def words(text) when byte_size(text) > @max_bytes, do: :error

  def words(text) do
    case List.flatten(Regex.scan(~r/[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/u, text)) do
      words when length(words) in 1..@max_words ->
        {first, [{form, stem}]} = words |> Enum.flat_map(&forms_of/1) |> Enum.split(-1)
        {:ok, Enum.uniq(for({_form, stem} <- first, do: {:word, stem}) ++ [{:last, stem, form}])}

      _ ->
        :error
    end
  end

  # The core returns nothing for a word that is longer than any in the index.
  defp forms_of(word) do
    with [[]] <- Native.search_words([word]), do: [{word, word}], else: ([words] -> words)
  end

  @doc "The largest query, in bytes."
  def max_bytes, do: @max_bytes

  @doc "The expected query, for error messages."
  def expected,
    do: "text with at least one and at most #{@max_words} words, and at most #{@max_bytes} bytes"

  defp units({_piece, []}), do: []
  defp units({[_, _phrase], [{_form, stem}]}), do: [{:word, stem}]
  defp units({[_, _phrase], words}), do: [{:phrase, stems(words)}]

  defp units({[text], words}) do
    if Regex.match?(~r/[\p{L}\p{N}\p{M}]\*\z/u, text) do
      {{form, _stem}, words} = List.pop_at(words, -1)
      Enum.map(stems(words), &{:word, &1}) ++ [{:prefix, form}]
    else
      Enum.map(stems(words), &{:word, &1})
    end
  end

  defp stems(words), do: Enum.map(words, fn {_form, stem} -> stem end)

  @doc "The ranges of terms of a unit, for `Skillbook.Native.search_rank/5`."
  @spec ranges(unit()) :: {:any | :phrase, [range()]}
  def ranges({:word, stem}), do: {:any, [term(stem)]}
  def ranges({:prefix, form}), do: {:any, [forms(form)]}
  def ranges({:last, stem, form}), do: {:any, [term(stem), forms(form)]}
  def ranges({:phrase, stems}), do: {:phrase, Enum.map(stems, &term/1)}

  @doc "The range of one term."
  @spec term(String.t()) :: range()
  def term(term), do: {term, term}

  defp forms(beginning), do: {@form <> beginning, @form <> beginning <> "\u{10FFFF}"}

  @doc "The stems and prefixes to highlight in a text."
  @spec marks([unit()]) :: {[String.t()], [String.t()]}
  def marks(units) do
    stems = for {kind, words} <- units, kind != :prefix, stem <- List.wrap(words), do: stem
    {Enum.uniq(stems), for({:prefix, prefix} <- units, do: prefix)}
  end
end
