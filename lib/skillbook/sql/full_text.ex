defmodule Skillbook.SQL.FullText do
  @moduledoc false
  # Full-text search over columns of a table with an `id`: FTS5 in SQLite, `tsvector` in PostgreSQL. Both stem English
  # words and leave others as they are.
  #
  # What a user types is data: it is cut into words of letters and digits before the database sees it, so that no
  # operator of either query language can be written by accident.

  @most_words 32

  @doc """
  The statements that make `columns` of `table` searchable, a list of `{column, weight}`.

  FTS5 weighs with any number; PostgreSQL knows four classes, given out by falling weight.
  """
  def create(:sqlite, table, columns) do
    names = Enum.map_join(columns, ", ", &elem(&1, 0))
    weights = Enum.map_join(columns, ", ", &elem(&1, 1))
    fts = index(table)
    values = fn row -> Enum.map_join(columns, ", ", fn {name, _} -> "#{row}.#{name}" end) end
    insert = "insert into #{fts} (rowid, #{names}) values (new.id, #{values.("new")});"
    delete = "insert into #{fts} (#{fts}, rowid, #{names}) values ('delete', old.id, #{values.("old")});"

    [
      "create virtual table #{fts} using fts5 " <>
        "(#{names}, content = '#{table}', content_rowid = 'id', tokenize = 'porter unicode61 remove_diacritics 2')",
      "insert into #{fts} (#{fts}, rank) values ('rank', 'bm25(#{weights})')",
      "create trigger #{table}_insert after insert on #{table} begin #{insert} end",
      "create trigger #{table}_delete after delete on #{table} begin #{delete} end",
      "create trigger #{table}_update after update on #{table} begin #{delete} #{insert} end"
    ]
  end

  def create(:postgres, table, columns) do
    vectors =
      columns
      |> Enum.sort_by(fn {_, weight} -> -weight end)
      |> Enum.zip(~w(A B C D))
      |> Enum.map_join(" || ", fn {{name, _}, class} ->
        "setweight(to_tsvector('english', coalesce(#{name}, '')), '#{class}')"
      end)

    [
      "alter table #{table} add column search tsvector generated always as (#{vectors}) stored",
      "create index #{table}_search_index on #{table} using gin (search)"
    ]
  end

  @doc "What is left of it when the table is gone: the index of SQLite is a table of its own."
  def drop(:sqlite, table), do: ["drop table #{index(table)}"]
  def drop(:postgres, _table), do: []

  @doc """
  The parts of a query over `table t` whose text matches the parameter `place`: what to join, the condition, and
  what to order by for the best match first.
  """
  def match(:sqlite, table, place) do
    fts = index(table)
    %{join: "join #{fts} f on f.rowid = t.id", where: "f.#{fts} match #{place}", order: "f.rank"}
  end

  def match(:postgres, _table, place) do
    query = "to_tsquery('english', #{place})"
    %{join: "", where: "t.search @@ #{query}", order: "ts_rank(t.search, #{query}) desc"}
  end

  @doc "The words of a text as a user wrote it: `{:ok, words}`, or `:error` if there are none or too many."
  @spec words(String.t()) :: {:ok, [String.t()]} | :error
  def words(text) do
    case Regex.scan(~r/[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/u, text) do
      words when length(words) in 1..@most_words -> {:ok, List.flatten(words)}
      _ -> :error
    end
  end

  @doc "What a text for `words/1` must be, for error messages."
  def expected, do: "text with at least one and at most #{@most_words} words"

  @doc "The parameter for `match/3`: all of the words, or any of them; the last one may be the beginning of a word."
  @spec pattern(:sqlite | :postgres, [String.t()], :all | :any) :: String.t()
  def pattern(dialect, words, how) do
    {last, first} = List.pop_at(words, -1)
    Enum.map_join(first ++ [{:prefix, last}], joint(dialect, how), &term(dialect, &1))
  end

  defp term(:sqlite, {:prefix, word}), do: ~s("#{word}"*)
  defp term(:sqlite, word), do: ~s("#{word}")
  defp term(:postgres, {:prefix, word}), do: "#{word}:*"
  defp term(:postgres, word), do: word

  defp joint(:sqlite, :all), do: " AND "
  defp joint(:sqlite, :any), do: " OR "
  defp joint(:postgres, :all), do: " & "
  defp joint(:postgres, :any), do: " | "

  defp index(table), do: "#{table}_fts"
end
