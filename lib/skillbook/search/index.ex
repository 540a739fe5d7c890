defmodule Skillbook.Search.Index do
  @moduledoc false
  # The full-text index in the database, for notes of vaults, tasks and memories. It works the
  # same on all databases. For the entries of a catalog see `Skillbook.Catalog.Search`.
  #
  # A *segment* holds documents that the same readers see: of one tenant (or common), one kind,
  # one scope (the vault or the owner) and the same labels. A search reads only the segments that
  # its reader sees, so scores, order and counts reveal nothing about other documents.
  #
  # A *run* holds documents of a segment that were indexed together, in rows that never change. A
  # removed document is marked in its run. Runs are merged into larger ones, without the removed
  # documents. `native/skillbook_core/src/search/rows` describes the packed format.
  #
  # A run also has the digests of the texts by which its documents are embedded
  # (`Skillbook.Embedding.Documents`). So a search by meaning compares the documents of the runs
  # that it reads, each by its current text.
  #
  # ## Adding a kind of document
  #
  # 1. Choose a key, `{kind, scope, labels, tenant}`, so that all documents of a segment have
  #    the same readers.
  # 2. In the transaction that writes a document, call `join/3` and `put/3`, and `remove/3` for
  #    the previous version. Search with `find/5` over the segments that the reader sees.
  # 3. Write `searched/2` and add a line to `Skillbook.Search.Backfill`, for migrations that
  #    change the index.

  alias Skillbook.SQL.{Tenants, Values}
  alias Skillbook.Search.Query
  alias Skillbook.Support.{JSON, UntilError}
  alias Skillbook.{Native, Profile, SQL}

  # Runs within one of these size classes (in bytes) are merged when there are `@merge_count` of
  # them, into a run of at most `@max_merged` bytes. A larger merge would block other writers for
  # too long.
  @size_classes [{0, 64_000}, {64_000, 512_000}, {512_000, 4_000_000}]
  @max_merged 4_000_000
  @merge_count 8

  @runs "select id, size, documents, left_over from skillbook_search_runs " <>
          "where segment_id = $1 order by size, id"

  @typedoc "The kind, scope, labels and tenant of a segment."
  @type key :: {String.t(), String.t(), [String.t()], String.t() | nil}

  @typedoc "A document: texts with the weight of a title, its text, and its fields (`field/2`)."
  @type document :: {[String.t()], String.t(), [String.t()]}

  @typedoc "A packed run."
  @opaque packed :: tuple()

  @typedoc "How the hits of a search match."
  @type match :: :all | :any | :meaning

  @type segment :: %{
          id: pos_integer(),
          scope: String.t(),
          labels: [String.t()],
          tenant: String.t() | nil,
          documents: pos_integer()
        }

  @doc """
  The statement that creates a segment if needed, adds to its number of documents, and returns its
  id. The labels of the key are JSON.
  """
  @spec join({String.t(), String.t(), String.t(), String.t() | nil}, non_neg_integer()) ::
          {String.t(), [SQL.param()]}
  def join({kind, scope, labels, tenant}, more) do
    {"""
     insert into skillbook_search_segments as s (kind, scope, labels, documents, tenant)
     values ($1, $2, $3, $4, $5)
     on conflict (tenant, kind, scope, labels)
       do update set documents = s.documents + excluded.documents
     returning id
     """, [kind, scope, labels, more, tenant || ""]}
  end

  @doc "The id of a key's segment (`join/2`). Called in the transaction that puts the documents."
  @spec join(SQL.t(), key(), non_neg_integer()) :: {:ok, pos_integer()} | {:error, SQL.Error.t()}
  def join(sql, {kind, scope, labels, tenant}, more) do
    {statement, params} = join({kind, scope, JSON.encode(labels), tenant}, more)
    with {:ok, %{rows: [[id]]}} <- SQL.query(sql, statement, params), do: {:ok, id}
  end

  @doc "The segments of a kind in some scopes that a profile sees, also empty ones."
  @spec segments(SQL.t(), String.t(), [String.t()], Profile.t()) ::
          {:ok, [segment()]} | {:error, SQL.Error.t()}
  def segments(sql, kind, scopes, profile) do
    {these, params} = Values.texts(sql, "scope", scopes, 2)
    {readable, tenants} = Tenants.readable(profile, "tenant", 2 + length(params))

    query =
      "select id, scope, labels, tenant, documents from skillbook_search_segments " <>
        "where kind = $1 and #{these} and #{readable} order by id"

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, [kind | params ++ tenants]) do
      {:ok,
       for [id, scope, labels, tenant, documents] <- rows,
           {:ok, labels} = JSON.decode(labels),
           Profile.foreign(profile, labels) == [] do
         tenant = Tenants.from_column(tenant)
         %{id: id, scope: scope, labels: labels, tenant: tenant, documents: documents}
       end}
    end
  end

  # The prefix of field terms: see `native/skillbook_core/src/search/rows`.
  @field "\u{E001}"
  @max_term_bytes 1_000

  @doc "The term for a value of a field. No word has the same term."
  @spec field(String.t(), String.t()) :: String.t()
  def field(name, value) do
    term = @field <> name <> @field <> value

    # Databases limit the length of keys. The doubled prefix keeps digests apart from other terms.
    if byte_size(term) <= @max_term_bytes,
      do: term,
      else: @field <> @field <> Base.encode16(:crypto.hash(:sha256, term))
  end

  @doc "Packs documents into a run. This is the slow part of indexing, and needs no database."
  @spec pack([{pos_integer(), document()}]) :: packed()
  def pack(documents), do: Native.search_pack(documents)

  @doc "Replaces the ids of a packed run, which were positions in a list from 0 on."
  @spec number(packed(), [pos_integer()]) :: packed()
  def number({places, digests, _, _, _, _, blocks}, ids) do
    blocks = for {_first, documents, places} <- blocks, do: {documents, places}
    Native.search_merge([{places, digests, "", blocks, ids}])
  end

  @doc "Stores a run of new documents. Called in a transaction, after `join/2`."
  @spec put(SQL.t(), pos_integer(), packed()) :: :ok | {:error, SQL.Error.t()}
  def put(sql, segment, run) do
    with {:ok, results} <- SQL.query_all(sql, run(segment, run) ++ [{@runs, [segment]}]),
         do: merge_some(sql, segment, List.last(results).rows)
  end

  # The blocks refer to the run as the newest one of its segment.
  defp run(segment, {ids, digests, first, last, count, size, blocks}) do
    run = """
    insert into skillbook_search_runs
      (segment_id, size, first_document, last_document, documents, left_over, ids, gone, digests)
    values ($1, $2, $3, $4, $5, $5, $6, $7, $8)
    """

    into = "skillbook_search_blocks (run_id, first, documents, places)"
    newest = "(select max(id) from skillbook_search_runs where segment_id = $1)"

    rows =
      for {first, documents, places} <- blocks, do: [first, {:blob, documents}, {:blob, places}]

    [
      {run, [segment, size, first, last, count, {:blob, ids}, {:blob, ""}, {:blob, digests}]}
      | Values.inserts(into, rows, {newest, [segment]})
    ]
  end

  defp count(sql, segment, more) do
    query = "update skillbook_search_segments set documents = documents + $2 where id = $1"
    with {:ok, _} <- SQL.query(sql, query, [segment, more]), do: :ok
  end

  @doc "Removes documents from the index, and ignores missing ones. Called in a transaction."
  @spec remove(SQL.t(), pos_integer(), [pos_integer()]) :: :ok | {:error, SQL.Error.t()}
  def remove(_sql, _segment, []), do: :ok

  def remove(sql, segment, ids) do
    query = """
    select id, ids, gone, left_over from skillbook_search_runs
    where segment_id = $1 and first_document <= $2 and last_document >= $3
    """

    with {:ok, %{rows: runs}} <- SQL.query(sql, query, [segment, Enum.max(ids), Enum.min(ids)]),
         {:ok, counts} <- UntilError.map(runs, &remove_from_run(sql, &1, ids)),
         :ok <- count(sql, segment, -Enum.sum(counts)),
         {:ok, %{rows: runs}} <- SQL.query(sql, @runs, [segment]),
         do: merge_some(sql, segment, runs)
  end

  defp remove_from_run(sql, [run, packed, removed, left], ids) do
    {removed, count} = Native.search_without(packed, removed, ids)
    update = "update skillbook_search_runs set gone = $2, left_over = $3 where id = $1"

    result =
      cond do
        count == 0 -> {:ok, nil}
        count == left -> SQL.query(sql, "delete from skillbook_search_runs where id = $1", [run])
        true -> SQL.query(sql, update, [run, {:blob, removed}, left - count])
      end

    with {:ok, _} <- result, do: {:ok, count}
  end

  # At most one merge per write, to keep it short. The next write does the next merge.
  defp merge_some(sql, segment, runs) do
    with [_ | _] = these <- mergeable(runs), do: merge(sql, segment, these), else: ([] -> :ok)
  end

  defp mergeable(runs) do
    sparse = for [id, _size, documents, left] <- runs, left * 2 < documents, do: id
    with [] <- Enum.take(sparse, 1), do: Enum.find_value(@size_classes, [], &small(runs, &1))
  end

  # The smallest runs of a size class that fit into one merge, if the class has enough of them.
  defp small(runs, {min, max}) do
    class = for [_id, bytes | _] = run <- runs, bytes >= min and bytes < max, do: run

    if length(class) >= @merge_count do
      {these, _} =
        Enum.flat_map_reduce(class, 0, fn [id, bytes | _], sum ->
          if sum + bytes <= @max_merged, do: {[id], sum + bytes}, else: {:halt, sum}
        end)

      if length(these) > 1, do: these
    end
  end

  defp merge(sql, segment, runs) do
    {these, params} = Values.ids(sql, "id", runs, 1)
    {in_these, _} = Values.ids(sql, "run_id", runs, 1)

    runs = "select id, ids, digests, gone from skillbook_search_runs where #{these}"

    blocks =
      "select run_id, documents, places from skillbook_search_blocks " <>
        "where #{in_these} order by run_id, first"

    with {:ok, %{rows: runs}} <- SQL.query(sql, runs, params),
         {:ok, %{rows: blocks}} <- SQL.query(sql, blocks, params),
         {:ok, _} <- SQL.query(sql, "delete from skillbook_search_runs where #{these}", params) do
      blocks =
        Enum.group_by(blocks, &hd/1, fn [_run, documents, places] -> {documents, places} end)

      parts =
        for [id, ids, digests, removed] <- runs,
            do: {ids, digests, removed, Map.get(blocks, id, []), []}

      with {:ok, _} <- SQL.query_all(sql, run(segment, Native.search_merge(parts))), do: :ok
    end
  end

  @doc """
  The runs of a kind after an id, in some scopes or in `:all`: each its id, and the ids, removed
  ids and digests of its documents.
  """
  @spec runs(SQL.t(), String.t(), [String.t()] | :all, integer()) ::
          {:ok, [{pos_integer(), {binary(), binary(), binary()}}]} | {:error, SQL.Error.t()}
  def runs(sql, kind, scopes, after_id) do
    {these, params} = if scopes == :all, do: {"1 = 1", []}, else: in_scopes(sql, scopes)

    query = """
    select r.id, r.ids, r.gone, r.digests from skillbook_search_runs r
    join skillbook_search_segments s on s.id = r.segment_id
    where r.id > $1 and s.kind = $2 and #{these} order by r.id
    """

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, [after_id, kind | params]),
         do: {:ok, for([id | run] <- rows, do: {id, List.to_tuple(run)})}
  end

  defp in_scopes(sql, scopes), do: Values.texts(sql, "s.scope", scopes, 3)

  @typedoc """
  A query by meaning: vectors of documents, the vector of the query, whether documents that do not
  match the clauses are found too, or only sorted, and a function that reads vectors of these
  digests into memory.
  """
  @type meaning ::
          {reference(), Skillbook.Embedder.vector(), boolean(), ([binary()] -> :ok)}

  @doc """
  Finds documents in segments: `{:ok, {match, total, hits}}`, with hits as `{id, score}`, the best
  first.

  Hits match all clauses of the query and pass the filters. If no document does, they match some
  clauses. Documents that a clause leaves out are never hits. Without clauses, all documents that
  pass the filters are hits. A filter is a field (`field/2`). With a meaning, documents of similar
  meaning may be hits too.

  The match is `:all` or `:any` of the clauses, or `:meaning` if some hits match by meaning only.
  Without hits it is `:all`.

  The limit is `{:level, count}`, which adds all documents with the score of the last hit, or
  `{:newest, count}`, which prefers higher ids among equal scores.
  """
  @spec find(
          SQL.t(),
          [segment()],
          [Query.clause()],
          [String.t()],
          meaning() | nil,
          {:level | :newest, pos_integer()}
        ) ::
          {:ok, {match(), non_neg_integer(), [{pos_integer(), non_neg_integer()}]}}
          | {:error, SQL.Error.t()}
  def find(sql, segments, clauses, filters, meaning, limit) do
    clauses = Enum.map(clauses, &Query.ranges/1)
    filters = Enum.map(filters, &Query.term/1)
    documents = segments |> Enum.map(& &1.documents) |> Enum.sum()

    with {:ok, rows} <- blocks(sql, Enum.map(segments, & &1.id), clauses, filters, meaning) do
      meaning = read_vectors(meaning, rows)

      {all?, by_meaning, total, hits} =
        Native.search_rank(clauses, filters, rows, documents, meaning, limit)

      {:ok, {match(all? or total == 0, by_meaning), total, hits}}
    end
  end

  defp read_vectors(nil, _rows), do: nil

  defp read_vectors({vectors, vector, extends?, read}, rows) do
    with [_ | _] = absent <- Native.search_absent(vectors, rows), do: :ok = read.(absent)
    {vectors, vector, extends?}
  end

  defp match(_all?, by_meaning) when by_meaning > 0, do: :meaning
  defp match(true, 0), do: :all
  defp match(false, 0), do: :any

  # A single statement, because a merge between two reads would lose blocks.
  defp blocks(sql, segments, clauses, filters, meaning) do
    alternatives = Enum.flat_map(clauses, fn {_kind, alternatives} -> alternatives end)
    ranges = Enum.concat(alternatives) ++ filters

    # With a meaning there are rows of three columns more.
    places =
      cond do
        Enum.any?(alternatives, &match?([_, _ | _], &1)) -> ", b.places"
        meaning -> ", ''"
        true -> ""
      end

    digests = if meaning, do: &digests/1, else: fn _within -> "" end

    with [_ | _] <- segments,
         [_ | _] <- ranges,
         ranges = for({{first, last}, at} <- Enum.with_index(ranges), do: [at, first, last]),
         {within, params} = Values.ids(sql, "r.segment_id", segments, 2),
         query = query(SQL.dialect(sql), places, within) <> digests.(within),
         {:ok, %{rows: rows}} <- SQL.query(sql, query, [JSON.encode(ranges) | params]) do
      {:ok, rows}
    else
      [] -> {:ok, []}
      error -> error
    end
  end

  defp digests(within) do
    " union all select -1, r.gone, r.ids, r.digests from skillbook_search_runs r where #{within}"
  end

  # The first block of a range is the last block that starts at or before the range's first term.
  @from """
  coalesce((select m.first from skillbook_search_blocks m
    where m.run_id = r.id and m.first <= q.lowest
    order by m.first desc limit 1), '')
  """

  defp query(:sqlite, places, within) do
    """
    select q.place, r.gone, b.documents#{places}
    from (select json_extract(value, '$[0]') as place, json_extract(value, '$[1]') as lowest,
      json_extract(value, '$[2]') as highest from json_each($1)) q
    cross join skillbook_search_runs r
    cross join skillbook_search_blocks b
      on b.run_id = r.id and b.first >= #{@from} and b.first <= q.highest
    where #{within}
    """
  end

  # The offset makes PostgreSQL look up blocks per run and range, instead of joining all blocks.
  defp query(:postgres, places, within) do
    """
    select q.place, r.gone, b.documents#{places}
    from (select cast(value ->> 0 as bigint) as place, (value ->> 1) collate "C" as lowest,
      (value ->> 2) collate "C" as highest
      from json_array_elements(cast(cast($1 as text) as json))) q
    cross join skillbook_search_runs r
    join lateral (select documents, places from skillbook_search_blocks
      where run_id = r.id and first >= #{@from} and first <= q.highest offset 0) b on true
    where #{within}
    """
  end
end
