defmodule Skillbook.Diff do
  @moduledoc false
  # Two texts as a unified diff: what `diff -u` prints after the names of the files.

  @context 3

  # Comparing takes the square of how many lines differ; above this, what lies between the first and the last line that
  # differ is taken out and put in as a whole.
  @compared 800

  @doc "The hunks, with three lines around each change; `\"\"` for equal texts."
  @spec unified(String.t(), String.t()) :: String.t()
  def unified(text, text), do: ""

  def unified(from, to) do
    changes(lines(from), lines(to))
    |> Enum.flat_map(fn {sign, lines} -> Enum.map(lines, &{sign, &1}) end)
    |> number(1, 1, [])
    |> hunks()
    |> Enum.map_join(&hunk/1)
  end

  # Each with its line end, if it has one.
  defp lines(text), do: text |> String.split(~r/(?<=\n)/) |> Enum.reject(&(&1 == ""))

  defp changes(from, to) do
    {first, from, to} = common(from, to, [])
    {last, from, to} = common(Enum.reverse(from), Enum.reverse(to), [])
    {from, to} = {Enum.reverse(from), Enum.reverse(to)}

    between =
      if length(from) + length(to) > @compared,
        do: [del: from, ins: to],
        else: List.myers_difference(from, to)

    [{:eq, Enum.reverse(first)}] ++ between ++ [{:eq, last}]
  end

  defp common([line | from], [line | to], done), do: common(from, to, [line | done])
  defp common(from, to, done), do: {done, from, to}

  defp number([], _old, _new, done), do: Enum.reverse(done)

  defp number([{sign, line} | rest], old, new, done) do
    {next_old, next_new} =
      {if(sign == :ins, do: old, else: old + 1), if(sign == :del, do: new, else: new + 1)}

    number(rest, next_old, next_new, [{sign, line, old, new} | done])
  end

  # Changes with at most twice the context between them share a hunk.
  defp hunks(lines) do
    {_last, hunks} =
      lines
      |> Enum.with_index()
      |> Enum.reject(fn {{sign, _, _, _}, _index} -> sign == :eq end)
      |> Enum.reduce({nil, []}, fn
        {_, index}, {last, [{from, _to} | hunks]} when index - last <= 2 * @context + 1 ->
          {index, [{from, index} | hunks]}

        {_, index}, {_last, hunks} ->
          {index, [{index, index} | hunks]}
      end)

    table = List.to_tuple(lines)

    for {from, to} <- Enum.reverse(hunks) do
      for index <- max(from - @context, 0)..min(to + @context, tuple_size(table) - 1), do: elem(table, index)
    end
  end

  defp hunk([{_, _, old, new} | _] = lines) do
    olds = Enum.count(lines, fn {sign, _, _, _} -> sign != :ins end)
    news = Enum.count(lines, fn {sign, _, _, _} -> sign != :del end)
    body = Enum.map_join(lines, fn {sign, line, _, _} -> mark(sign) <> ended(line) end)
    "@@ -#{range(old, olds)} +#{range(new, news)} @@\n" <> body
  end

  defp range(from, 1), do: "#{from}"
  defp range(from, 0), do: "#{from - 1},0"
  defp range(from, count), do: "#{from},#{count}"

  defp mark(:eq), do: " "
  defp mark(:del), do: "-"
  defp mark(:ins), do: "+"

  defp ended(line) do
    if String.ends_with?(line, "\n"), do: line, else: line <> "\n\\ No newline at end of file\n"
  end
end
