defmodule Skillbook.Handlers.Workflow.Index do
  @moduledoc false
  # The table of commands in a domain's index. Everything around the table belongs to whoever wrote the file, and stays
  # byte for byte.

  @heading ~r/\A {0,3}##[ \t]+Available Skills[ \t]*#*\s*\z/i
  @next_section ~r/\A {0,3}\#{1,2}[ \t]/
  @fence ~r/\A {0,3}(`{3,}|~{3,})/

  @doc """
  The text of an index with its table replaced by one of `rows`, a list of `{name, description}`.

  The table is the first one under the heading "Available Skills". Without a table it is put under the heading,
  without the heading both are put at the end.
  """
  @spec refresh(String.t(), [{String.t(), String.t()}]) :: String.t()
  def refresh(text, rows) do
    eol = if String.contains?(text, "\r\n"), do: "\r\n", else: "\n"
    lines = String.split(text, ~r/(?<=\n)/)
    table = rows |> table() |> Enum.map(&(&1 <> eol))
    code = code_lines(lines)

    case Enum.find_index(Enum.with_index(lines), &heading?(&1, code)) do
      nil -> append(text, ["## Available Skills" <> eol, eol | table], eol)
      at -> lines |> Enum.split(at + 1) |> replace(table, code, at + 1, eol) |> IO.iodata_to_binary()
    end
  end

  defp heading?({line, number}, code), do: number not in code and line =~ @heading

  defp append(text, lines, eol) do
    text = String.trim_trailing(text)
    IO.iodata_to_binary([text, if(text == "", do: [], else: [eol, eol]), lines])
  end

  defp replace({before, rest}, table, code, offset, eol) do
    numbered = Enum.with_index(rest, offset)

    {section, other} =
      Enum.split_while(numbered, fn {line, n} -> n in code or not (line =~ @next_section) end)

    {above, from} = Enum.split_while(section, fn {line, n} -> n in code or not row?(line) end)
    {_old, below} = Enum.split_while(from, fn {line, _} -> row?(line) end)
    other = Enum.map(other, &elem(&1, 0))

    case {from, Enum.map(above, &elem(&1, 0)), Enum.map(below, &elem(&1, 0))} do
      {[], above, []} -> [end_line(before, eol), eol, table, gap(above, eol), above, other]
      {_, above, below} -> [before, above, table, below, other]
    end
  end

  # A heading that is the last thing in the file may have no line end yet.
  defp end_line(lines, eol) do
    if lines |> List.last() |> String.ends_with?("\n"), do: lines, else: [lines, eol]
  end

  defp gap([first | _], eol), do: if(String.trim(first) == "", do: [], else: eol)
  defp gap([], _), do: []

  defp row?(line), do: line |> String.trim_leading() |> String.starts_with?("|")

  # The numbers of the lines inside fenced code, fences included.
  defp code_lines(lines) do
    {inside, _} =
      lines
      |> Enum.with_index()
      |> Enum.reduce({[], nil}, fn {line, number}, {inside, open} ->
        case {open, Regex.run(@fence, line, capture: :all_but_first)} do
          {nil, nil} -> {inside, nil}
          {nil, [fence]} -> {[number | inside], fence}
          {open, nil} -> {[number | inside], open}
          {open, [fence]} -> {[number | inside], if(closes?(line, fence, open), do: nil, else: open)}
        end
      end)

    MapSet.new(inside)
  end

  defp closes?(line, fence, open) do
    String.first(fence) == String.first(open) and byte_size(fence) >= byte_size(open) and
      String.trim(line) == fence
  end

  defp table(rows) do
    ["| Skill | Description |", "|-------|-------------|"] ++
      for {name, description} <- Enum.sort(rows), do: "| #{cell(name)} | #{cell(description)} |"
  end

  defp cell(text) do
    text
    |> String.replace(~r/\s+/u, " ")
    |> String.trim()
    |> String.replace("\\", "\\\\")
    |> String.replace("|", "\\|")
  end
end
