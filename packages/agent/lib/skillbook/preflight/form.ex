defmodule Skillbook.Preflight.Form do
  @moduledoc false
  # Whether a message asks or orders something, by its form: "Is the door locked?" and "Lock the
  # door" are likelier requests than "The door was locked". Few words say so in any language: a
  # question mark, and a sentence that does not begin with a function word. The lists of further
  # words are English, but for "please".

  alias Skillbook.Native

  # A search ignores the rest as well.
  @max_bytes 2048
  @max_sentences 16

  # Words that begin a question, also without a question mark.
  @questions ~w(what when where which who whom whose why how can could will would do does did is
    are am was were has have had should may shall)

  # "What a day" is no question.
  @exclamations ~w(what how)

  # A sentence with one of these as its second word, or with a form of "be" or "should" soon after
  # its first, is a statement: "Meetings are long", "Peter never answers". Most prepositions are
  # not among them, for "Turn on the lights" and "Search for it".
  @after_subjects ~w(is are was were am be has have had do does did can could will would should
    may might must isn't aren't wasn't weren't hasn't haven't doesn't don't didn't can't never
    always often sometimes still already and or of)
  @be ~w(is are was were makes should would must)

  # Words that begin remarks, and are no function words.
  @openings MapSet.new(
              ~w(thanks thank thx ta cheers hello hi hey howdy morning good great nice fine
    lovely wonderful excellent brilliant perfect interesting funny sorry yes yeah yep no nope ok
    okay alright right sure well wow oh ah ha haha lol hmm maybe happy sad poor lucky everybody
    everyone everything nobody nothing somebody someone something people many most some all both
    one two three yesterday today tomorrow tonight last every honestly bye goodbye welcome
    congratulations never always sometimes once guess imagine believe let let's hardly only
    another)
            )

  @doc "Whether a text asks something, and whether it orders something or asks for it politely."
  @spec of(String.t()) :: {asks :: boolean(), orders :: boolean()}
  def of(text) do
    text = text |> head() |> String.downcase() |> String.replace("’", "'")
    sentences = sentences(text)
    {asks?(text, sentences), wants?(text) or orders?(text, sentences)}
  end

  @doc "The beginning of a text, which alone counts."
  @spec head(String.t()) :: String.t()
  def head(text) when byte_size(text) <= @max_bytes, do: text

  def head(text) do
    case :unicode.characters_to_binary(binary_part(text, 0, @max_bytes)) do
      {_error, valid, _rest} -> valid
      whole -> whole
    end
  end

  # The first words of each sentence. A clause with a polite request counts as one.
  defp sentences(text) do
    text
    |> String.split(~r/[.!?。！？؟\n;:…]+(\s|\z)|,\s+(?=(can|could|please)\s)/u)
    |> Enum.take(@max_sentences)
    |> Enum.map(&(Regex.scan(~r/[\p{L}\p{N}][\p{L}\p{N}\p{M}']*/u, &1) |> Enum.take(4)))
    |> Enum.map(&Enum.concat/1)
    |> Enum.reject(&(&1 == []))
  end

  defp asks?(text, sentences) do
    # Not the one of an address with a query.
    Regex.match?(~r/\?(?![\p{L}\p{N}])|[？؟]/u, text) or Enum.any?(sentences, &question?/1)
  end

  defp question?([first, article | _]) when first in @exclamations and article in ~w(a an),
    do: false

  defp question?([first]) when first in @exclamations, do: false
  defp question?([first | _]), do: first in @questions

  defp wants?(text) do
    text =~ ~r/(?<!\p{L})(please|pls|help me|i'm looking for|i am looking for)(?!\p{L})/u or
      text =~ ~r/(?<!\p{L})(i|we)( need| want| would like|'d like|'d love)(?!\p{L})/u or
      text =~ ~r/(?<!\p{L})(bitte|por favor|per favore|alsjeblieft|пожалуйста)(?!\p{L})/u or
      text =~ ~r/(?<!\p{L})s'il (vous|te) pla[iî]t(?!\p{L})/u
  end

  defp orders?(text, sentences) do
    [words | firsts] = Native.search_words([text | Enum.map(sentences, &hd/1)])
    functions = MapSet.new(for {form, _stem, true} <- words, do: form)

    Enum.zip(sentences, firsts)
    |> Enum.any?(fn {sentence, first} ->
      match?([_], first) and elem(hd(first), 0) not in functions and order?(sentence)
    end)
  end

  defp order?([first]), do: not opening?(first)

  defp order?([first, second | _] = words) do
    not opening?(first) and second not in @after_subjects and
      not Enum.any?(tl(words), &(&1 in @be))
  end

  # "Cooking calms me", but not "Bring me".
  defp opening?(word) do
    String.contains?(word, "'") or MapSet.member?(@openings, word) or
      Regex.match?(~r/[aeiouy].*ing\z/, word)
  end
end
