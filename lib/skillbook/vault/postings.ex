defmodule Skillbook.Vault.Postings do
  @moduledoc false
  # The rows of the table of terms, as `native/skillbook_core/src/vault/postings.rs` packs them.

  @form "\u{E000}"

  @doc "The first and the last term of the words, as written, that begin so."
  @spec forms(String.t()) :: [String.t()]
  def forms(beginning), do: [@form <> beginning, @form <> beginning <> "\u{10FFFF}"]

  @doc "What is left of packed documents without some."
  @spec without(binary(), MapSet.t(pos_integer())) :: binary()
  def without(documents, gone) do
    for <<id::40, counts::16 <- documents>>, id not in gone, into: "", do: <<id::40, counts::16>>
  end

  @doc "What is left of packed places without those of some documents."
  @spec without_places(binary(), MapSet.t(pos_integer())) :: binary()
  def without_places(places, gone), do: places |> left(gone) |> IO.iodata_to_binary()

  defp left("", _gone), do: []

  defp left(<<id::40, count::16, places::binary-size(count)-unit(16), rest::binary>>, gone) do
    if id in gone, do: left(rest, gone), else: [<<id::40, count::16>>, places | left(rest, gone)]
  end
end
