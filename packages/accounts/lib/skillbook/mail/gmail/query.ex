defmodule Skillbook.Mail.Gmail.Query do
  @moduledoc false
  # Writes a query in Gmail's query language. Labels are passed by their ids instead.
  #
  # The language has no escape: between quotes, everything but a quote is text. So each value is
  # in quotes and without quotes of its own, except for a single plain word, which Gmail then also
  # finds with other endings.

  alias Skillbook.Mail

  @operators ~w(OR AND AROUND)

  @doc """
  Returns the text of a query, empty without conditions.

      iex> query = %{text: [with: "Q1 report", without: "draft"], from: "bob@co.com", to: nil}
      iex> query = Map.merge(query, %{subject: nil, unread: nil, before: nil})
      iex> query = Map.put(query, :after, ~U[2026-02-01 00:00:00Z])
      iex> Skillbook.Mail.Gmail.Query.text(query)
      ~s("Q1 report" -draft from:"bob@co.com" after:1769904000)
      iex> Skillbook.Mail.Gmail.Query.text(%{query | text: [with: ~s(a" from:"eve)]})
      ~s("a from: eve" from:"bob@co.com" after:1769904000)
  """
  @spec text(Mail.query()) :: String.t()
  def text(query) do
    texts =
      for {kind, text} <- query.text,
          do: if(kind == :without, do: "-", else: "") <> word(text)

    conditions = [
      query.from && "from:" <> phrase(query.from),
      query.to && "{to:#{phrase(query.to)} cc:#{phrase(query.to)}}",
      query.subject && "subject:" <> phrase(query.subject),
      query.unread == false && "is:read",
      # Dates would be days in California; seconds are exact.
      query.after && "after:#{DateTime.to_unix(query.after)}",
      query.before && "before:#{DateTime.to_unix(query.before)}"
    ]

    Enum.join(texts ++ Enum.filter(conditions, & &1), " ")
  end

  defp word(text) do
    if text =~ ~r/\A[\p{L}\p{N}]+\z/u and text not in @operators, do: text, else: phrase(text)
  end

  defp phrase(text) do
    words = text |> String.replace(~r/["\p{Cc}\p{Cf}\p{Z}]+/u, " ") |> String.trim()
    "\"" <> words <> "\""
  end
end
