defmodule Skillbook.Vault.Query do
  @moduledoc false
  # What somebody looks for: words, "phrases" and prefixes*. All else that they type separates words.

  alias Skillbook.Native

  @most 32

  @typedoc "A word by its stem, the beginning of a word, or stems that follow each other."
  @type unit :: {:word, String.t()} | {:prefix, String.t()} | {:phrase, [String.t()]}

  @doc "The units of a query, once each: `{:ok, units}`, or `:error` if there are none or too many."
  @spec parse(String.t()) :: {:ok, [unit()]} | :error
  def parse(text) do
    pieces = if String.valid?(text), do: Regex.scan(~r/"([^"]*)"|[^\s"]+/u, text), else: []
    words = pieces |> Enum.map(&List.last/1) |> Native.vault_words()
    units = pieces |> Enum.zip(words) |> Enum.flat_map(&units/1) |> Enum.uniq()
    count = for unit <- units, word <- unit |> elem(1) |> List.wrap(), do: word
    if length(count) in 1..@most, do: {:ok, units}, else: :error
  end

  @doc "What a text for `parse/1` must be, for error messages."
  def expected, do: "text with at least one and at most #{@most} words"

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
end
