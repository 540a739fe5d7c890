defmodule Skillbook.Support.Redact do
  @moduledoc false
  # Removes secrets from texts of servers, which may repeat what they were sent: as it is, within
  # a form, an address or a header of Basic authentication, or a part of it.

  # The length of the shortest part that is removed. Shorter secrets are removed as a whole.
  @part 8

  @doc """
  Replaces secrets, and parts of them of at least 8 characters, by a mark.

      iex> alias Skillbook.Support.Redact
      iex> Redact.secrets("no token 1//abcdefgh", ["1//abcdefgh"], "[key]")
      "no token [key]"
      iex> Redact.secrets("no token=1%2f%2fabcdefgh&", ["1//abcdefgh"], "[key]")
      "no token=[key]&"
      iex> Redact.secrets("no token 1//abcdef…", ["1//abcdefgh"], "[key]")
      "no token [key]…"
  """
  @spec secrets(String.t(), [String.t()], String.t()) :: String.t()
  def secrets(text, secrets, mark) do
    case Enum.flat_map(secrets, &forms/1) do
      [] -> text
      forms -> text |> String.codepoints() |> hide(parts(forms), mark)
    end
  end

  # The codepoints of each form, in lower case, since %2F is also written %2f.
  defp forms(""), do: []

  defp forms(secret) do
    encoded =
      for before <- 0..2, text = base64(secret, before), byte_size(text) >= @part, do: text

    url_safe = Enum.map(encoded, &(&1 |> String.replace("+", "-") |> String.replace("/", "_")))

    [secret, URI.encode_www_form(secret), URI.encode(secret, &URI.char_unreserved?/1)]
    |> Enum.concat(encoded ++ url_safe)
    |> Enum.uniq()
    |> Enum.map(&(&1 |> String.downcase(:ascii) |> String.codepoints()))
  end

  # In base64 with other bytes before it, without the characters that depend on its neighbours.
  defp base64(secret, before) do
    encoded = Base.encode64(:binary.copy(<<0>>, before) <> secret, padding: false)
    first = Enum.at([0, 2, 3], before)
    last = if rem(before + byte_size(secret), 3) == 0, do: 0, else: 1
    String.slice(encoded, first, max(String.length(encoded) - first - last, 0))
  end

  # The parts to look for, by their length.
  defp parts(forms) do
    for {length, forms} <- Enum.group_by(forms, &min(length(&1), @part)),
        do: {length, forms |> Enum.flat_map(&windows(&1, length)) |> MapSet.new()}
  end

  defp windows(characters, length), do: Enum.chunk_every(characters, length, 1, :discard)

  defp hide(characters, parts, mark) do
    lower = Enum.map(characters, &String.downcase(&1, :ascii))

    hidden =
      for {length, parts} <- parts,
          {window, at} <- lower |> windows(length) |> Enum.with_index(),
          window in parts,
          place <- at..(at + length - 1),
          into: MapSet.new(),
          do: place

    characters
    |> Enum.with_index()
    |> Enum.chunk_by(fn {_character, at} -> at in hidden end)
    |> Enum.map_join(fn [{_character, at} | _] = run ->
      if at in hidden, do: mark, else: Enum.map_join(run, &elem(&1, 0))
    end)
  end
end
