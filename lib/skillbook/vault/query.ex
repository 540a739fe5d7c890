defmodule Skillbook.Vault.Query do
  @moduledoc false
  # What somebody looks for: words, "phrases" and prefixes*. All else that they type separates words.

  alias Skillbook.Vault.{Stem, Words}

  @most 32

  @typedoc "A word by its stem, the beginning of a word, or stems that follow each other."
  @type unit :: {:word, String.t()} | {:prefix, String.t()} | {:phrase, [String.t()]}

  @doc "The units of a query, once each: `{:ok, units}`, or `:error` if there are none or too many."
  @spec parse(String.t()) :: {:ok, [unit()]} | :error
  def parse(text) do
    units = ~r/"([^"]*)"|[^\s"]+/u |> Regex.scan(text) |> Enum.flat_map(&units/1) |> Enum.uniq()
    words = for unit <- units, word <- unit |> elem(1) |> List.wrap(), do: word
    if length(words) in 1..@most, do: {:ok, units}, else: :error
  end

  @doc "What a text for `parse/1` must be, for error messages."
  def expected, do: "text with at least one and at most #{@most} words"

  defp units([_, phrase]) do
    case phrase |> Words.list() |> Enum.map(&Stem.of/1) do
      [] -> []
      [word] -> [{:word, word}]
      words -> [{:phrase, words}]
    end
  end

  defp units([text]) do
    words = Words.list(text)

    if Regex.match?(~r/[\p{L}\p{N}\p{M}]\*\z/u, text) do
      {last, words} = List.pop_at(words, -1)
      Enum.map(words, &{:word, Stem.of(&1)}) ++ [{:prefix, last}]
    else
      Enum.map(words, &{:word, Stem.of(&1)})
    end
  end
end
