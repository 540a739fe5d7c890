defmodule Bench.Peer do
  @moduledoc false
  # What one would write in Elixir alone: a regex for the blocks, a walk over the characters for the words, a best-effort
  # reading of flags, and ETS for the lookup. It knows far fewer rules than Skillbook does; it is here to be beaten in time.

  @blocks ~r/```cmd\n(.*?)\n```/s

  def extract(text) do
    commands =
      for [_, block] <- Regex.scan(@blocks, text),
          line <- String.split(block, "\n", trim: true),
          do: String.trim(line)

    %{commands: commands, text: @blocks |> Regex.replace(text, "") |> String.trim()}
  end

  def tokenize(line), do: words(String.trim(line), [], [], nil)

  defp words(<<>>, [], words, nil), do: Enum.reverse(words)
  defp words(<<>>, word, words, _quote), do: words(<<>>, [], [finish(word) | words], nil)

  defp words(<<char, rest::binary>>, word, words, char) when char in [?", ?'],
    do: words(rest, ["" | word], words, nil)

  defp words(<<char, rest::binary>>, [], words, nil) when char in [?", ?'], do: words(rest, [""], words, char)
  defp words(<<?\s, rest::binary>>, [], words, nil), do: words(rest, [], words, nil)
  defp words(<<?\s, rest::binary>>, word, words, nil), do: words(rest, [], [finish(word) | words], nil)
  defp words(<<char, rest::binary>>, word, words, quote), do: words(rest, [char | word], words, quote)

  defp finish(word), do: word |> Enum.reverse() |> IO.iodata_to_binary()

  def flags(words, flags \\ %{})
  def flags([], flags), do: flags

  def flags(["--" <> name | rest], flags) do
    case Enum.split_while(rest, &(not String.starts_with?(&1, "--"))) do
      {[], rest} -> flags(rest, Map.put(flags, name, true))
      {[value], rest} -> flags(rest, Map.put(flags, name, value))
      {values, rest} -> flags(rest, Map.put(flags, name, values))
    end
  end

  def flags([_word | rest], flags), do: flags(rest, flags)

  def route(table, line) do
    [name | rest] = tokenize(line)

    case :ets.lookup(table, name) do
      [{^name, entry}] -> {:ok, %{name: name, entry: entry, flags: flags(rest), raw: line}}
      [] -> {:error, {:unknown_skill, name}}
    end
  end
end
