defmodule Skillbook.Handlers.Memory.Table do
  @moduledoc false
  # The memories in the database, each belonging to the profile `owner`.

  alias Skillbook.Handlers.Memory.Memory
  alias Skillbook.SQL
  alias Skillbook.SQL.FullText

  @doc "Adds a memory; its `id` is given by the database."
  def insert(sql, owner, %Memory{} = memory) do
    # Tags cannot hold a comma, which separates them where they are written.
    values = [memory.content, memory.category, Enum.join(memory.tags, ","), owner, memory.created_at]

    query =
      "insert into skillbook_memories (content, category, tags, owner, created_at) " <>
        "values ($1, $2, $3, $4, $5) returning id"

    with {:ok, %{rows: [[id]]}} <- SQL.query(sql, query, values), do: {:ok, %{memory | id: id}}
  end

  @doc """
  The memories of `owner` in a category, or in any if it is `nil`: `{:ok, memories, total}`.

  With words the best match comes first; without, the newest.
  """
  def search(sql, owner, words, how, category, limit) do
    {from, order, pattern} = source(sql, words, how)

    query =
      "select t.id, t.content, t.category, t.tags, t.created_at, count(*) over () from skillbook_memories t " <>
        "#{from} t.owner = $1 and ($2 = '' or t.category = $2) order by #{order} limit #{limit}"

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, [owner, category || ""] ++ pattern) do
      {:ok, Enum.map(rows, &memory/1), rows |> List.first([0]) |> List.last()}
    end
  end

  defp source(_sql, nil, _how), do: {"where", "t.created_at desc, t.id desc", []}

  defp source(sql, words, how) do
    dialect = SQL.dialect(sql)
    match = FullText.match(dialect, "skillbook_memories", "$3")

    {"#{match.join} where #{match.where} and", "#{match.order}, t.id desc",
     [FullText.pattern(dialect, words, how)]}
  end

  defp memory([id, content, category, tags, created_at | _]) do
    {:ok, created_at, 0} = DateTime.from_iso8601(created_at)
    tags = String.split(tags, ",", trim: true)
    %Memory{id: id, content: content, category: category, tags: tags, created_at: created_at}
  end
end
