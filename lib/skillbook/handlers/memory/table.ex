defmodule Skillbook.Handlers.Memory.Table do
  @moduledoc false
  # Stores memories in the database and searches them. Each belongs to the profile `owner`, within
  # its tenant. Ids
  # shown to people and models count the memories of one owner, so they reveal nothing about
  # others; the ids of rows are used only in the index.

  alias Skillbook.Handlers.Memory.Memory
  alias Skillbook.SQL.{Tenants, Values}
  alias Skillbook.Search.Index
  alias Skillbook.{NotFoundError, Profile, SQL}

  @columns "t.id, t.number, t.content, t.category, t.tags, t.created_at"
  @select "select #{@columns} from skillbook_memories t"

  @doc "Inserts a memory and returns it with the next `id` of its owner."
  def insert(sql, %Profile{id: owner} = profile, %Memory{} = memory) do
    # Tags contain no commas.
    values = [
      memory.content,
      memory.category,
      Enum.join(memory.tags, ","),
      owner,
      memory.created_at,
      Tenants.home(profile)
    ]

    query = """
    insert into skillbook_memories (number, content, category, tags, owner, created_at, tenant)
    select coalesce(max(number), 0) + 1, $1, $2, $3, $4, $5, $6
    from skillbook_memories where owner = $4
    returning id, number
    """

    # Numbers and the index are those of an owner, whatever the tenant.
    sql
    |> SQL.of_parts([{:memories, owner}])
    |> SQL.transaction([{query, values}, join(owner, profile)], fn
      sql, [%{rows: [[id, number]]}, %{rows: [[segment]]}] ->
        with :ok <- Index.put(sql, segment, Index.pack([{id, document(memory)}])),
             do: {:ok, %{memory | id: number}}
    end)
  end

  defp join(owner, profile), do: Index.join({"memory", owner, "[]", Profile.home(profile)}, 1)

  # The content is indexed as a title, which counts more than the text with category and tags.
  defp document(memory) do
    text = Enum.join([memory.category | memory.tags], " ")
    {[memory.content], text, [Index.field("category", memory.category)]}
  end

  @doc "For `Skillbook.Search.Backfill`: the segment's key, the id and the document of each id."
  def searched(sql, ids) do
    {condition, params} = Values.ids(sql, "t.id", ids, 1)
    query = "select t.owner, t.tenant, #{@columns} from skillbook_memories t where #{condition}"

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, params) do
      documents =
        for [owner, tenant, id | memory] <- rows do
          key = {"memory", owner, [], Tenants.from_column(tenant)}
          {key, id, document(memory(memory))}
        end

      {:ok, documents}
    end
  end

  @doc """
  Lists the newest memories of a profile in a category, or in all for `nil`; with the id of one,
  those that come after it.

  Returns `{:ok, memories, total, :all}`, with `nil` as the total after a memory.
  """
  def newest(sql, %Profile{id: owner} = profile, category, limit, last) do
    {readable, tenants} = Tenants.readable(profile, "t.tenant", 3)
    where = "where t.owner = $1 and ($2 = '' or t.category = $2) and #{readable}"
    params = [owner, category || "" | tenants]
    order = "order by t.created_at desc, t.number desc limit #{limit}"

    with {:ok, place, values} <- place(sql, profile, last, length(params)),
         {:ok, total} <- total(sql, where, params, last),
         {:ok, %{rows: rows}} <-
           SQL.query(sql, "#{@select} #{where}#{place} #{order}", params ++ values) do
      {:ok, for([_id | memory] <- rows, do: memory(memory)), total, :all}
    end
  end

  defp total(sql, where, params, nil) do
    with {:ok, %{rows: [[total]]}} <-
           SQL.query(sql, "select count(*) from skillbook_memories t #{where}", params),
         do: {:ok, total}
  end

  defp total(_sql, _where, _params, _last), do: {:ok, nil}

  defp place(_sql, _profile, nil, _count), do: {:ok, "", []}

  defp place(sql, %{id: owner} = profile, number, count) do
    {readable, tenants} = Tenants.readable(profile, "t.tenant", 3)
    query = "#{@select} where t.owner = $1 and t.number = $2 and #{readable}"

    case SQL.query(sql, query, [owner, number | tenants]) do
      {:ok, %{rows: [row]}} ->
        [time, last] = ["$#{count + 1}", "$#{count + 2}"]
        later = "t.created_at = #{time} and t.number >= #{last}"
        {:ok, " and t.created_at <= #{time} and not (#{later})", [List.last(row), number]}

      {:ok, %{rows: []}} ->
        {:error, %NotFoundError{kind: "memory", id: "M-#{number}", find: "memory.search"}}

      error ->
        error
    end
  end

  @doc """
  Searches the memories of a profile in a category, or in all for `nil`, by the clauses and the
  meaning of a query.

  Returns `{:ok, memories, total, match}`, the best match first; `match` is as in
  `Skillbook.Search.Index.find/6`.
  """
  def search(sql, %Profile{id: owner} = profile, {clauses, meaning}, category, limit) do
    filters = if category, do: [Index.field("category", category)], else: []

    with {:ok, segments} <- Index.segments(sql, "memory", [owner], profile),
         {:ok, {match, total, hits}} <-
           Index.find(sql, segments, clauses, filters, meaning, {:newest, limit}),
         {condition, params} = Values.ids(sql, "t.id", Enum.map(hits, &elem(&1, 0)), 1),
         {:ok, %{rows: rows}} <- SQL.query(sql, "#{@select} where #{condition}", params) do
      memories = Map.new(rows, fn [id | memory] -> {id, memory(memory)} end)
      {:ok, for({id, _} <- hits, memory = memories[id], do: memory), total, match}
    end
  end

  defp memory([number, content, category, tags, created_at]) do
    created_at = Values.time(created_at)
    tags = String.split(tags, ",", trim: true)
    %Memory{id: number, content: content, category: category, tags: tags, created_at: created_at}
  end
end
