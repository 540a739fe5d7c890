defmodule Skillbook.Package.Diff do
  @moduledoc false
  # What changed in a text, line by line, with a little of what is around it.

  @around 3
  # Comparing takes the product of what differs; nobody reads more at a terminal.
  @most 3_000

  @doc "Lines that begin with `+`, `-` or a blank, with `@@` between parts that are apart; `nil` if the texts are too long."
  @spec lines(String.t(), String.t()) :: [String.t()] | nil
  def lines(old, new) do
    {old, new} = {String.split(old, "\n"), String.split(new, "\n")}

    if length(old) <= @most and length(new) <= @most do
      old
      |> List.myers_difference(new)
      |> Enum.with_index()
      |> then(fn parts -> Enum.flat_map(parts, &part(&1, length(parts) - 1)) end)
    end
  end

  defp part({{:del, lines}, _}, _last), do: Enum.map(lines, &("-" <> &1))
  defp part({{:ins, lines}, _}, _last), do: Enum.map(lines, &("+" <> &1))
  defp part({{:eq, _lines}, 0}, 0), do: []

  defp part({{:eq, lines}, 0}, _last),
    do: cut(lines, ["@@"], Enum.take(lines, -@around), length(lines) > @around)

  defp part({{:eq, lines}, last}, last), do: lines |> Enum.take(@around) |> Enum.map(&(" " <> &1))

  defp part({{:eq, lines}, _}, _last) when length(lines) > 2 * @around do
    Enum.map(Enum.take(lines, @around), &(" " <> &1)) ++
      ["@@"] ++ Enum.map(Enum.take(lines, -@around), &(" " <> &1))
  end

  defp part({{:eq, lines}, _}, _last), do: Enum.map(lines, &(" " <> &1))

  defp cut(_all, mark, kept, true), do: mark ++ Enum.map(kept, &(" " <> &1))
  defp cut(_all, _mark, kept, false), do: Enum.map(kept, &(" " <> &1))
end
