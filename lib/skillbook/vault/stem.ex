defmodule Skillbook.Vault.Stem do
  @moduledoc false
  # Porter's algorithm of 1980 for English: what the forms of a word have in common. Words with other letters than a to z, and
  # those of one or two letters, stay as they are.
  #
  # Letters are handled last first, for all that happens, happens at the end.

  @spec of(String.t()) :: String.t()
  def of(word) when byte_size(word) < 3, do: word

  def of(word) do
    if letters?(word) do
      word
      |> String.to_charlist()
      |> Enum.reverse()
      |> plural()
      |> past()
      |> y()
      |> longest(second(), 0)
      |> longest(third(), 0)
      |> fourth()
      |> e()
      |> ll()
      |> Enum.reverse()
      |> List.to_string()
    else
      word
    end
  end

  defp letters?(<<letter, rest::binary>>) when letter in ?a..?z, do: letters?(rest)
  defp letters?(rest), do: rest == ""

  defp plural('sess' ++ rest), do: 'ss' ++ rest
  defp plural('sei' ++ rest), do: 'i' ++ rest
  defp plural('ss' ++ _ = word), do: word
  defp plural('s' ++ rest), do: rest
  defp plural(word), do: word

  defp past('dee' ++ rest = word), do: if(measure(rest) > 0, do: 'ee' ++ rest, else: word)
  defp past('de' ++ rest = word), do: if(vowel?(rest), do: mend(rest), else: word)
  defp past('gni' ++ rest = word), do: if(vowel?(rest), do: mend(rest), else: word)
  defp past(word), do: word

  defp mend('ta' ++ _ = word), do: [?e | word]
  defp mend('lb' ++ _ = word), do: [?e | word]
  defp mend('zi' ++ _ = word), do: [?e | word]

  defp mend([last, last | rest] = word) when last not in 'lsz' do
    if consonant?([last | rest]), do: [last | rest], else: word
  end

  defp mend(word), do: if(measure(word) == 1 and cvc?(word), do: [?e | word], else: word)

  defp y([?y | rest] = word), do: if(vowel?(rest), do: [?i | rest], else: word)
  defp y(word), do: word

  for {name, pairs} <- [
        second:
          ~w(ational/ate tional/tion enci/ence anci/ance izer/ize bli/ble alli/al entli/ent eli/e ousli/ous ization/ize
             ation/ate ator/ate alism/al iveness/ive fulness/ful ousness/ous aliti/al iviti/ive biliti/ble logi/log),
        third: ~w(icate/ic ative/ alize/al iciti/ic ical/ic ful/ ness/),
        endings:
          ~w(ement/ ance/ ence/ able/ ible/ ment/ ant/ ent/ ism/ ate/ iti/ ous/ ive/ ize/ al/ er/ ic/ ou/)
      ] do
    table =
      for pair <- pairs do
        [from, to] = String.split(pair, "/")
        {from |> String.reverse() |> String.to_charlist(), to |> String.reverse() |> String.to_charlist()}
      end

    defp unquote(name)(), do: unquote(table)
  end

  # Of the endings that fit the longest counts, also if it then may not go; they stand with the longer before the shorter
  # wherever one ends in another.
  defp longest(word, table, least) do
    Enum.find_value(table, word, fn {from, to} ->
      case strip(word, from) do
        nil -> nil
        rest -> if measure(rest) > least, do: to ++ rest, else: word
      end
    end)
  end

  defp fourth('noi' ++ [letter | _] = word) when letter in 'st' do
    'noi' ++ rest = word
    if measure(rest) > 1, do: rest, else: word
  end

  defp fourth(word), do: longest(word, endings(), 1)

  defp e([?e | rest] = word) do
    case measure(rest) do
      0 -> word
      1 -> if cvc?(rest), do: word, else: rest
      _ -> rest
    end
  end

  defp e(word), do: word

  defp ll('ll' ++ rest = word), do: if(measure([?l | rest]) > 1, do: [?l | rest], else: word)
  defp ll(word), do: word

  defp strip(word, []), do: word
  defp strip([letter | word], [letter | ending]), do: strip(word, ending)
  defp strip(_word, _ending), do: nil

  # How often a consonant follows a vowel.
  defp measure(word) do
    {count, _} =
      word
      |> kinds()
      |> Enum.reduce({0, :consonant}, fn
        :consonant, {count, :vowel} -> {count + 1, :consonant}
        kind, {count, _} -> {count, kind}
      end)

    count
  end

  defp vowel?(word), do: :vowel in kinds(word)
  defp consonant?(word), do: word |> kinds() |> List.last() == :consonant

  defp cvc?([last, middle, first | rest]) do
    last not in 'wxy' and
      Enum.map([[last, middle, first | rest], [middle, first | rest], [first | rest]], &consonant?/1) == [
        true,
        false,
        true
      ]
  end

  defp cvc?(_word), do: false

  # From the first letter on.
  defp kinds(word) do
    {kinds, _} =
      word
      |> Enum.reverse()
      |> Enum.map_reduce(:vowel, fn
        letter, _ when letter in 'aeiou' -> {:vowel, :vowel}
        ?y, :consonant -> {:vowel, :vowel}
        _, _ -> {:consonant, :consonant}
      end)

    kinds
  end
end
