defmodule Skillbook.Search.Query do
  @moduledoc false
  # Parses a query into clauses for `Skillbook.Search.Index`: words, prefixes and phrases that a
  # document must have, alternatives (`OR`), and those that leave a document out (`-`). All other
  # characters separate words, so any text with a word is a query.

  alias Skillbook.Native

  # Quoted texts, and what is between blanks.
  @pieces ~r/-?"[^"]*"|[^\s"]+/u
  @max_words 32
  @max_bytes 4096
  # The prefix of unstemmed words: see `native/skillbook_core/src/search/rows`.
  @form "\u{E000}"

  @typedoc "A word by its stem, the beginning of a word, or consecutive stems."
  @type unit :: {:word, String.t()} | {:prefix, String.t()} | {:phrase, [String.t()]}

  @typedoc "Units, of which a document must have one, or may have none."
  @type clause :: {:with | :without, [unit()]}

  @typedoc "The first and the last term of a range."
  @type range :: {String.t(), String.t()}

  @doc """
  Parses a query into unique clauses: `{:ok, clauses}`, or `:error` if there are too many words or
  none that a document must have, or if the text is too long.

  With `:begun`, the last word may be the beginning of a word. Function words do not count, unless
  the query has no other words.

      iex> Skillbook.Search.Query.parse(~s(the plans OR budget -draft "for may" strat*))
      {:ok,
       [
         {:with, [{:word, "plan"}, {:word, "budget"}]},
         {:without, [{:word, "draft"}]},
         {:with, [{:phrase, ["for", "may"]}]},
         {:with, [{:prefix, "strat"}]}
       ]}
      iex> Skillbook.Search.Query.parse("what is the lau", :begun)
      {:ok, [{:with, [{:word, "lau"}, {:prefix, "lau"}]}]}
      iex> Skillbook.Search.Query.parse("-draft")
      :error
  """
  @spec parse(String.t(), :whole | :begun) :: {:ok, [clause()]} | :error
  def parse(text, last \\ :whole)
  def parse(text, _last) when byte_size(text) > @max_bytes, do: :error

  def parse(text, last) do
    items = if String.valid?(text), do: items(text, last), else: []
    needed = Enum.filter(items, &(&1.kind != :without))

    if needed != [] and count(items) <= @max_words,
      do: {:ok, items |> groups(needed) |> Enum.flat_map(&clauses/1) |> Enum.uniq()},
      else: :error
  end

  @doc """
  The subject of a query, for a search by meaning: `{sentence, exact?}`.

  The sentence is the text without its excluded parts and without operators. With quotes, `OR` or
  a prefix the query is exact: documents that do not match it must not be found.

      iex> Skillbook.Search.Query.meaning("what did Ann say? -draft")
      {"what did Ann say?", false}
      iex> Skillbook.Search.Query.meaning(~s(plans OR "the budget"))
      {"plans the budget", true}
  """
  @spec meaning(String.t()) :: {String.t(), boolean()}
  def meaning(text) do
    items = for [piece] <- Regex.scan(@pieces, text), do: item(piece)
    given = Enum.filter(items, &(&1.kind == :with))
    exact? = Enum.any?(items, &(&1.kind == :or or (&1.kind == :with and exact?(&1.form))))
    {Enum.map_join(given, " ", &String.replace(&1.text, ["\"", "*"], "")), exact?}
  end

  defp exact?(form), do: form in [:quoted, :prefix]

  @doc "The largest query, in bytes."
  def max_bytes, do: @max_bytes

  @doc "The expected query, for error messages."
  def expected,
    do:
      "text with at least one word that is not excluded by -, at most #{@max_words} words, " <>
        "and at most #{@max_bytes} bytes"

  @doc """
  The words of a text: as written without case and accents, their stems, and whether they are
  function words of its language.
  """
  @spec words(String.t()) :: [{String.t(), String.t(), boolean()}]
  def words(text), do: hd(Native.search_words([text]))

  # The words and quoted texts of a query.
  defp items(text, last) do
    items = for [piece] <- Regex.scan(@pieces, text), do: item(piece)
    words = items |> Enum.map(& &1.text) |> Native.search_words()
    items = for {item, words} <- Enum.zip(items, words), do: %{item | words: words(item, words)}
    items = Enum.reject(items, &(&1.words == []))
    if last == :begun, do: List.update_at(items, -1, &begun/1), else: items
  end

  defp item(piece) do
    cond do
      piece == "OR" ->
        item(:or, :word, piece)

      String.starts_with?(piece, ~s(")) ->
        item(:with, :quoted, piece)

      String.starts_with?(piece, ~s(-")) ->
        item(:without, :quoted, piece)

      # A second dash, or a dash alone, is punctuation.
      Regex.match?(~r/\A-[\p{L}\p{N}]/u, piece) ->
        item(:without, :word, piece)

      true ->
        item(:with, :word, piece)
    end
  end

  defp item(kind, :quoted, piece), do: %{kind: kind, form: :quoted, text: piece, words: []}

  defp item(kind, :word, piece) do
    # "Ann's" and "what's" have one word, not two.
    text = Regex.replace(~r/(?<=\p{L})['’](s|m|d|ll|re|ve)(?![\p{L}\p{N}])/iu, piece, "")

    form =
      cond do
        Regex.match?(~r/[\p{L}\p{N}\p{M}]\*\z/u, text) -> :prefix
        Regex.match?(~r/\A\P{L}*\p{L}+n['’]t\P{L}*\z/iu, text) -> :negation
        true -> :plain
      end

    %{kind: kind, form: form, text: text, words: []}
  end

  # The core returns nothing for a word that is longer than any in the index. No document has it.
  defp words(%{text: text}, []) do
    for [word] <- Regex.scan(~r/[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/u, text), do: {word, word, false}
  end

  defp words(_item, words), do: words

  defp begun(%{kind: :with, form: :plain} = item), do: %{item | form: :begun}
  defp begun(item), do: item

  defp count(items) do
    items |> Enum.uniq_by(&{&1.kind, &1.words}) |> Enum.map(&count_words/1) |> Enum.sum()
  end

  defp count_words(%{kind: :or}), do: 0
  defp count_words(%{words: words}), do: length(words)

  # An `OR` that joins nothing is a function word. Function words are dropped if there are others.
  defp groups(items, needed) do
    if Enum.all?(needed, &function?/1) do
      join(items)
    else
      items = Enum.reject(items, &(&1.kind == :with and function?(&1)))
      items |> join() |> Enum.reject(&match?({:with, [%{kind: :or}]}, &1))
    end
  end

  # A word of a compound ("to-do") counts.
  defp function?(%{form: :negation}), do: true
  defp function?(%{kind: :or}), do: true

  defp function?(%{form: form, words: [{_form, _stem, function?}]})
       when form in [:plain, :begun],
       do: function?

  defp function?(_item), do: false

  # The items on both sides of an `OR` are alternatives.
  defp join([]), do: []

  defp join([%{kind: :with} = item | items]) do
    {others, items} = alternatives(items, [])
    [{:with, [item | others]} | join(items)]
  end

  defp join([%{kind: :without} = item | items]), do: [{:without, [item]} | join(items)]
  defp join([item | items]), do: [{:with, [item]} | join(items)]

  defp alternatives([%{kind: :or}, %{kind: :with} = item | items], others),
    do: alternatives(items, [item | others])

  defp alternatives(items, others), do: {Enum.reverse(others), items}

  defp clauses({:with, [%{form: form, words: [_, _ | _] = words} = item]}) when form != :quoted do
    {first, last} = Enum.split(words, -1)

    for({_form, stem, _function?} <- first, do: {:with, [{:word, stem}]}) ++
      [{:with, units(%{item | words: last})}]
  end

  defp clauses({kind, items}), do: [{kind, items |> Enum.flat_map(&units/1) |> Enum.uniq()}]

  defp units(%{form: :prefix, words: [{form, _, _}]}), do: [prefix: form]
  defp units(%{form: :begun, words: [{form, stem, _}]}), do: [word: stem, prefix: form]
  defp units(%{words: [{_form, stem, _}]}), do: [word: stem]
  defp units(%{words: words}), do: [phrase: for({_, stem, _} <- words, do: stem)]

  @doc "The ranges of terms of a clause, for `Skillbook.Native.search_rank/6`."
  @spec ranges(clause()) :: {:with | :without, [[range()]]}
  def ranges({kind, units}), do: {kind, Enum.map(units, &unit_ranges/1)}

  defp unit_ranges({:word, stem}), do: [term(stem)]
  defp unit_ranges({:prefix, form}), do: [forms(form)]
  defp unit_ranges({:phrase, stems}), do: Enum.map(stems, &term/1)

  @doc "The range of one term."
  @spec term(String.t()) :: range()
  def term(term), do: {term, term}

  defp forms(beginning), do: {@form <> beginning, @form <> beginning <> "\u{10FFFF}"}

  @doc "The stems and prefixes to highlight in a text."
  @spec marks([clause()]) :: {[String.t()], [String.t()]}
  def marks(clauses) do
    units = for {:with, units} <- clauses, unit <- units, do: unit
    stems = for {kind, words} <- units, kind != :prefix, stem <- List.wrap(words), do: stem
    {Enum.uniq(stems), for({:prefix, prefix} <- units, do: prefix)}
  end
end
