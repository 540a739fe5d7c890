defmodule Skillbook.Ordinals do
  @moduledoc false
  # Tasks and runs have random numbers. Tests name them by their order in the database instead:
  # `T-1` is the first task, and `R-2` the second run.

  alias Skillbook.Handlers.Tasks.Task
  alias Skillbook.{Result, SQL}

  @tables %{"T" => "skillbook_tasks", "R" => "skillbook_runs"}

  @doc "Replaces the ordinals of tasks in flags by numbers."
  def to_numbers(flags, nil), do: flags

  def to_numbers(flags, sql) do
    tasks = numbers(sql, "T")

    Map.new(flags, fn
      {name, id} when name in ["id", "parent"] -> {name, number(id, tasks)}
      {"after", text} when is_binary(text) -> {"after", fill(text, sql)}
      flag -> flag
    end)
  end

  defp number(id, tasks) when is_integer(id) and id > 0, do: Enum.at(tasks, id - 1, id)

  defp number(id, tasks) when is_binary(id) do
    case Regex.run(~r/\A(\s*(?:T-?|#)?0*)([1-9]\d*)(\s*)\z/i, id) do
      [_, before, digits, rest] -> "#{before}#{number(String.to_integer(digits), tasks)}#{rest}"
      nil -> id
    end
  end

  defp number(id, _tasks), do: id

  @doc "Replaces the ordinals `T-1` and `R-1` in a text by numbers."
  def fill(text, sql) do
    translate(text, sql, fn numbers ->
      for {number, ordinal} <- Enum.with_index(numbers, 1), into: %{}, do: {ordinal, number}
    end)
  end

  @doc "Runs a command with ordinals in a book, and returns its result with ordinals."
  def run(book, line, fun) do
    sql = book |> Skillbook.Book.fetch!() |> Skillbook.Book.sql()
    {:ok, result} = from_numbers({:ok, line |> fill(sql) |> fun.()}, sql)
    result
  end

  @doc "Replaces the numbers in a result, an error or a text by ordinals."
  def from_numbers(term, nil), do: term
  def from_numbers(text, sql) when is_binary(text), do: translate(text, sql, &ordinals/1)

  def from_numbers({:ok, %Result{} = result}, sql) do
    maps = for letter <- ["T", "R"], do: sql |> numbers(letter) |> ordinals()
    content = from_numbers(result.content, sql)
    {:ok, %{result | content: content, data: data(result.data, maps)}}
  end

  def from_numbers({:error, %{__exception__: true} = error}, sql) do
    {:error,
     Map.new(Map.from_struct(error), fn
       {field, value} when is_binary(value) -> {field, from_numbers(value, sql)}
       field -> field
     end)
     |> Map.put(:__struct__, error.__struct__)}
  end

  def from_numbers(other, _sql), do: other

  defp data(%Task{} = task, [tasks, _runs]) do
    [id, parent] = for id <- [task.id, task.parent_id], do: Map.get(tasks, id, id)
    %{task | id: id, parent_id: parent}
  end

  defp data(%{id: id, started_at: _} = run, [_tasks, runs]),
    do: %{run | id: Map.get(runs, id, id)}

  defp data(%{run: id} = run, [_tasks, runs]), do: %{run | run: Map.get(runs, id, id)}
  defp data(data, maps) when is_list(data), do: Enum.map(data, &data(&1, maps))

  defp data(data, maps) when is_map(data) and not is_struct(data),
    do: Map.new(data, fn {key, value} -> {key, data(value, maps)} end)

  defp data(data, _maps), do: data

  defp translate(text, sql, map) do
    if text =~ ~r/\b[TR]-\d/ do
      maps = Map.new(@tables, fn {letter, _} -> {letter, sql |> numbers(letter) |> map.()} end)

      Regex.replace(~r/\b([TR])-(\d+)\b/, text, fn _, letter, digits ->
        id = String.to_integer(digits)
        "#{letter}-#{Map.get(maps[letter], id, id)}"
      end)
    else
      text
    end
  end

  defp ordinals(numbers), do: numbers |> Enum.with_index(1) |> Map.new()

  # A test may have dropped the table.
  defp numbers(sql, letter) do
    case SQL.query(sql, "select number from #{@tables[letter]} order by id") do
      {:ok, %{rows: rows}} -> Enum.map(rows, &hd/1)
      {:error, _} -> []
    end
  end
end
