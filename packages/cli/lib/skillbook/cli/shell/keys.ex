defmodule Skillbook.CLI.Shell.Keys do
  @moduledoc false
  # Decodes the bytes of a terminal into keys. Returns an incomplete key as the rest.

  @type key :: {:text, String.t()} | atom()

  # The control keys of readline.
  @controls %{
    1 => :home,
    2 => :left,
    3 => :interrupt,
    4 => :end_of_input,
    5 => :end,
    6 => :right,
    8 => :backspace,
    9 => :tab,
    10 => :enter,
    11 => :kill_right,
    12 => :clear,
    13 => :enter,
    14 => :down,
    16 => :up,
    21 => :kill_left,
    23 => :kill_word,
    127 => :backspace
  }

  @sequences %{
    "[A" => :up,
    "[B" => :down,
    "[C" => :right,
    "[D" => :left,
    "OA" => :up,
    "OB" => :down,
    "OC" => :right,
    "OD" => :left,
    "[H" => :home,
    "[F" => :end,
    "OH" => :home,
    "OF" => :end,
    "[1~" => :home,
    "[4~" => :end,
    "[7~" => :home,
    "[8~" => :end,
    "[3~" => :delete,
    "[1;5C" => :word_right,
    "[1;5D" => :word_left,
    "[1;3C" => :word_right,
    "[1;3D" => :word_left,
    "[200~" => :paste_start,
    "[201~" => :paste_end,
    "b" => :word_left,
    "f" => :word_right,
    "d" => :kill_word_right,
    "\d" => :kill_word
  }

  @spec decode(binary()) :: {[key()], binary()}
  def decode(bytes), do: decode(bytes, [])

  defp decode("", keys), do: {Enum.reverse(keys), ""}

  defp decode("\e" <> rest = bytes, keys) do
    case sequence(rest) do
      :more -> {Enum.reverse(keys), bytes}
      {sequence, rest} -> decode(rest, add(@sequences[sequence], keys))
    end
  end

  defp decode(<<code, rest::binary>>, keys) when code < 32 or code == 127,
    do: decode(rest, add(@controls[code], keys))

  defp decode(<<char::utf8, rest::binary>>, keys),
    do: decode(rest, add({:text, <<char::utf8>>}, keys))

  # An incomplete character is returned as the rest; other bytes that are not UTF-8 are dropped.
  defp decode(<<lead, rest::binary>> = bytes, keys) do
    case :unicode.characters_to_binary(bytes) do
      {:incomplete, "", _} -> {Enum.reverse(keys), bytes}
      _ when lead >= 128 -> decode(rest, keys)
    end
  end

  defp add(nil, keys), do: keys
  defp add(key, keys), do: [key | keys]

  defp sequence(""), do: :more
  defp sequence("[" <> rest), do: final(rest, "[")
  defp sequence("O"), do: :more
  defp sequence(<<"O", letter, rest::binary>>), do: {<<"O", letter>>, rest}
  defp sequence(<<letter, rest::binary>>), do: {<<letter>>, rest}

  # ECMA-48: parameters are 0x30-0x3F, the final byte is 0x40-0x7E.
  defp final(<<byte, rest::binary>>, taken) when byte in 0x20..0x3F,
    do: final(rest, <<taken::binary, byte>>)

  defp final(<<byte, rest::binary>>, taken), do: {<<taken::binary, byte>>, rest}
  defp final("", _taken), do: :more
end
