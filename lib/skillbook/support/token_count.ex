defmodule Skillbook.Support.TokenCount do
  @moduledoc false
  # Estimates the tokens of a text: one for four ASCII characters, or for one other character.

  @spec estimate(String.t()) :: non_neg_integer()
  def estimate(text), do: estimate(text, 0, 0)

  defp estimate(<<byte, rest::binary>>, ascii, others) when byte < 0x80,
    do: estimate(rest, ascii + 1, others)

  defp estimate(<<byte, rest::binary>>, ascii, others) when byte >= 0xC0,
    do: estimate(rest, ascii, others + 1)

  defp estimate(<<_, rest::binary>>, ascii, others), do: estimate(rest, ascii, others)
  defp estimate("", ascii, others), do: div(ascii + 3, 4) + others
end
