defmodule Skillbook.CLI.Shell.Completion do
  @moduledoc false
  # Tab completion: names at the start of a line and after get_skill, then the command's flags.

  @doc "The text to insert at the cursor, and the choices if several words match."
  @spec complete(String.t(), %{names: [String.t()], flags: (String.t() -> [String.t()])}) ::
          {insert :: String.t(), choices :: [String.t()]}
  def complete(left, completions) do
    word = ~r/\S*\z/ |> Regex.run(left) |> hd()
    before = left |> String.slice(0, String.length(left) - String.length(word)) |> String.split()

    case Enum.filter(words(before, word, completions), &String.starts_with?(&1, word)) do
      [] -> {"", []}
      [only] -> {rest(only, word) <> " ", []}
      several -> {several |> common() |> rest(word), several}
    end
  end

  @doc "Formats the words in as many columns as fit into the width."
  @spec columns([String.t()], pos_integer()) :: String.t()
  def columns(words, width) do
    column = (words |> Enum.map(&String.length/1) |> Enum.max()) + 2

    words
    |> Enum.chunk_every(max(div(width, column), 1))
    |> Enum.map_join("\n", fn row ->
      row |> Enum.map_join(&String.pad_trailing(&1, column)) |> String.trim_trailing()
    end)
  end

  defp words([], _word, completions), do: completions.names

  defp words([get], _word, completions) when get in ["get_skill", "get_skill:"],
    do: completions.names -- ["get_skill"]

  defp words([command | _], "-" <> _, completions), do: completions.flags.(command)
  defp words(_before, _word, _completions), do: []

  defp rest(word, prefix),
    do: binary_part(word, byte_size(prefix), byte_size(word) - byte_size(prefix))

  defp common(words) do
    shortest = Enum.min_by(words, &String.length/1)

    String.length(shortest)..0//-1
    |> Enum.map(&String.slice(shortest, 0, &1))
    |> Enum.find(fn prefix -> Enum.all?(words, &String.starts_with?(&1, prefix)) end)
  end
end
