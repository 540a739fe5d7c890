defmodule Skillbook.Search.Index do
  @moduledoc false
  # The full-text index in a database: notes of vaults, tasks and memories, with the same results
  # on every database.
  #
  # A *segment* has the documents that the same readers see. Its key is their kind, a scope (the
  # vault, the owner) and labels. A search reads only the segments of its reader, so neither
  # scores, order nor counts reveal other documents.
  #
  # A *run* has the documents of a segment that were indexed together, in rows that never change.
  # To remove a document, its run is marked. Runs are merged into larger ones without removed
  # documents. `native/skillbook_core/src/search/rows` defines the format of the rows.
  #
  # ## Adding a kind of document
  #
  # 1. Choose a key, `{kind, scope, labels}`, so that all documents of a segment have the same
  #    readers.
  # 2. In the transaction that writes a document, call `join/3` and `put/3`, and `remove/3` for
  #    the previous version. Search with `find/5` over the segments that the reader sees.
  # 3. Write `searched/2` and add a line to `Skillbook.Search.Backfill`, for migrations that
  #    change the index.

  alias Skillbook.SQL.Values
  alias Skillbook.Search.Query
  alias Skillbook.Support.JSON
  alias Skillbook.{Native, SQL}

  # When a segment has `@many` runs in one of these ranges of bytes, they are merged, into runs of
  # up to `@most` bytes: a larger merge would block other writers for too long.
  @sizes [{0, 64_000}, {64_000, 512_000}, {512_000, 4_000_000}]
  @most 4_000_000
  @many 8

  @runs "select id, size, documents, left_over from skillbook_search_runs " <>
          "where segment_id = $1 order by size, id"

  @typedoc "Kind, scope and labels of documents."
  @type key :: {String.t(), String.t(), [String.t()]}

  @typedoc "A document: texts that count as titles, its text, and its fields (`field/2`)."
  @type document :: {[String.t()], String.t(), [String.t()]}

  @typedoc "Documents as they are kept, before their ids are known."
  @opaque packed :: tuple()

  @type segment :: %{
          id: pos_integer(),
          scope: String.t(),
          labels: [String.t()],
          documents: pos_integer()
        }

  @doc """
  The statement that returns the id of a key's segment and creates it if needed. `more` is the
  number of documents that will be put into it; `labels` is the key's list as JSON.
  """
  @spec join({String.t(), String.t(), String.t()}, non_neg_integer()) ::
          {String.t(), [SQL.param()]}
  def join({kind, scope, labels}, more) do
    {"""
     insert into skillbook_search_segments as s (kind, scope, labels, documents)
     values ($1, $2, $3, $4)
     on conflict (kind, scope, labels) do update set documents = s.documents + excluded.documents
     returning id
     """, [kind, scope, labels, more]}
  end

  @doc """
  The segment of a key, as in `join/2`. Call it in the transaction that puts the documents.
  """
  @spec join(SQL.t(), key(), non_neg_integer()) :: {:ok, pos_integer()} | {:error, SQL.Error.t()}
  def join(sql, {kind, scope, labels}, more) do
    {statement, params} = join({kind, scope, JSON.encode(labels)}, more)
    with {:ok, %{rows: [[id]]}} <- SQL.query(sql, statement, params), do: {:ok, id}
  end

  @doc "The segments of a kind and some scopes, without empty ones."
  @spec segments(SQL.t(), String.t(), [String.t()]) ::
          {:ok, [segment()]} | {:error, SQL.Error.t()}
  def segments(sql, kind, scopes) do
    {these, params} = Values.texts(sql, "scope", scopes, 2)

    query =
      "select id, scope, labels, documents from skillbook_search_segments " <>
        "where kind = $1 and #{these} and documents > 0"

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, [kind | params]) do
      {:ok,
       for [id, scope, labels, documents] <- rows do
         {:ok, labels} = JSON.decode(labels)
         %{id: id, scope: scope, labels: labels, documents: documents}
       end}
    end
  end

  # Marks fields: see `native/skillbook_core/src/search/rows`.
  @field "\u{E001}"
  @longest_field 1_000

  @doc "The term for a value of a field. It is never equal to a word."
  @spec field(String.t(), String.t()) :: String.t()
  def field(name, value) do
    term = @field <> name <> @field <> value

    # Databases limit the length of indexed values. The doubled mark keeps a digest apart from
    # fields.
    if byte_size(term) <= @longest_field,
      do: term,
      else: @field <> @field <> Base.encode16(:crypto.hash(:sha256, term))
  end

  @doc "Packs documents into a run. This is the slowest part of indexing, and needs no database."
  @spec pack([{pos_integer(), document()}]) :: packed()
  def pack(documents), do: Native.search_pack(documents)

  @doc "Replaces the positions in a list, from 0, by which documents were packed, with their ids."
  @spec number(packed(), [pos_integer()]) :: packed()
  def number({places, _, _, _, _, blocks}, ids) do
    blocks = for {_first, documents, places} <- blocks, do: {documents, places}
    Native.search_merge([{places, "", blocks, ids}])
  end

  @doc "Adds documents that are not in the index. Call it in a transaction, after `join/2`."
  @spec put(SQL.t(), pos_integer(), packed()) :: :ok | {:error, SQL.Error.t()}
  def put(sql, segment, run) do
    with {:ok, results} <- SQL.query_all(sql, run(segment, run) ++ [{@runs, [segment]}]),
         do: tidy(sql, segment, List.last(results).rows)
  end

  # The blocks refer to the run as the newest of the segment.
  defp run(segment, {ids, first, last, count, size, blocks}) do
    run = """
    insert into skillbook_search_runs
      (segment_id, size, first_document, last_document, documents, left_over, ids, gone)
    values ($1, $2, $3, $4, $5, $5, $6, $7)
    """

    into = "skillbook_search_blocks (run_id, first, documents, places)"
    newest = "(select max(id) from skillbook_search_runs where segment_id = $1)"

    rows =
      for {first, documents, places} <- blocks, do: [first, {:blob, documents}, {:blob, places}]

    [
      {run, [segment, size, first, last, count, {:blob, ids}, {:blob, ""}]}
      | Values.inserts(into, rows, {newest, [segment]})
    ]
  end

  defp count(sql, segment, more) do
    query = "update skillbook_search_segments set documents = documents + $2 where id = $1"
    with {:ok, _} <- SQL.query(sql, query, [segment, more]), do: :ok
  end

  @doc "Removes documents; unknown ids are ignored. Call it in a transaction."
  @spec remove(SQL.t(), pos_integer(), [pos_integer()]) :: :ok | {:error, SQL.Error.t()}
  def remove(_sql, _segment, []), do: :ok

  def remove(sql, segment, ids) do
    query = """
    select id, ids, gone, left_over from skillbook_search_runs
    where segment_id = $1 and first_document <= $2 and last_document >= $3
    """

    with {:ok, %{rows: runs}} <- SQL.query(sql, query, [segment, Enum.max(ids), Enum.min(ids)]),
         {:ok, counts} <- Skillbook.Support.Options.each(runs, &mark(sql, &1, ids)),
         :ok <- count(sql, segment, -Enum.sum(counts)),
         {:ok, %{rows: runs}} <- SQL.query(sql, @runs, [segment]),
         do: tidy(sql, segment, runs)
  end

  defp mark(sql, [run, packed, gone, left], ids) do
    {gone, count} = Native.search_without(packed, gone, ids)
    mark = "update skillbook_search_runs set gone = $2, left_over = $3 where id = $1"

    written =
      cond do
        count == 0 -> {:ok, nil}
        count == left -> SQL.query(sql, "delete from skillbook_search_runs where id = $1", [run])
        true -> SQL.query(sql, mark, [run, {:blob, gone}, left - count])
      end

    with {:ok, _} <- written, do: {:ok, count}
  end

  # One merge per write; the next write continues.
  defp tidy(sql, segment, runs) do
    with [_ | _] = these <- mergeable(runs), do: merge(sql, segment, these), else: ([] -> :ok)
  end

  defp mergeable(runs) do
    mostly_gone = for [id, _size, documents, left] <- runs, left * 2 < documents, do: id
    with [] <- Enum.take(mostly_gone, 1), do: Enum.find_value(@sizes, [], &many(runs, &1))
  end

  # The smallest runs in a range of sizes that together are not too large.
  defp many(runs, {least, most}) do
    alike = for [_id, bytes | _] = run <- runs, bytes >= least and bytes < most, do: run

    if length(alike) >= @many do
      {these, _} =
        Enum.flat_map_reduce(alike, 0, fn [id, bytes | _], sum ->
          if sum + bytes <= @most, do: {[id], sum + bytes}, else: {:halt, sum}
        end)

      if length(these) > 1, do: these
    end
  end

  defp merge(sql, segment, runs) do
    {these, params} = Values.ids(sql, "id", runs, 1)
    {of_these, _} = Values.ids(sql, "run_id", runs, 1)

    blocks =
      "select run_id, documents, places from skillbook_search_blocks " <>
        "where #{of_these} order by run_id, first"

    with {:ok, %{rows: kept}} <-
           SQL.query(
             sql,
             "select id, ids, gone from skillbook_search_runs where #{these}",
             params
           ),
         {:ok, %{rows: blocks}} <- SQL.query(sql, blocks, params),
         {:ok, _} <- SQL.query(sql, "delete from skillbook_search_runs where #{these}", params) do
      blocks =
        Enum.group_by(blocks, &hd/1, fn [_run, documents, places] -> {documents, places} end)

      run =
        Native.search_merge(
          for [id, ids, gone] <- kept, do: {ids, gone, Map.get(blocks, id, []), []}
        )

      with {:ok, _} <- SQL.query_all(sql, run(segment, run)), do: :ok
    end
  end

  @doc """
  Finds the documents of some segments that match all units of a query and all filters:
  `{:ok, {all?, total, hits}}`, with pairs of id and score, best first. If no document matches all
  units, it finds those that match some, and `all?` is false.

  The limit is `{:level, count}`, which includes every document with the score of the last one, or
  `{:newest, count}`, which orders documents of one score by descending id. A filter is a field
  (`field/2`). Without units all documents that pass the filters are found.
  """
  @spec find(
          SQL.t(),
          [segment()],
          [Query.unit()],
          [String.t()],
          {:level | :newest, pos_integer()}
        ) ::
          {:ok, {boolean(), non_neg_integer(), [{pos_integer(), non_neg_integer()}]}}
          | {:error, SQL.Error.t()}
  def find(sql, segments, units, filters, limit) do
    units = Enum.map(units, &Query.ranges/1)
    filters = Enum.map(filters, &Query.term/1)
    documents = segments |> Enum.map(& &1.documents) |> Enum.sum()

    with {:ok, rows} <- blocks(sql, Enum.map(segments, & &1.id), units, filters),
         do: {:ok, Native.search_rank(units, filters, rows, documents, limit)}
  end

  # A single statement, so that no merge happens between the reads of two terms.
  defp blocks(sql, segments, units, filters) do
    ranges = Enum.flat_map(units, &elem(&1, 1)) ++ filters
    places = if Enum.any?(units, &match?({:phrase, _}, &1)), do: ", b.places", else: ""

    with [_ | _] <- segments,
         [_ | _] <- ranges,
         ranges = for({{first, last}, at} <- Enum.with_index(ranges), do: [at, first, last]),
         {within, params} = Values.ids(sql, "r.segment_id", segments, 2),
         query = query(SQL.dialect(sql), places, within),
         {:ok, %{rows: rows}} <- SQL.query(sql, query, [JSON.encode(ranges) | params]) do
      {:ok, rows}
    else
      [] -> {:ok, []}
      error -> error
    end
  end

  # The first block of a range is the last one that begins at or before its first term.
  @from """
  coalesce((select m.first from skillbook_search_blocks m
    where m.run_id = r.id and m.first <= q.lowest order by m.first desc limit 1), '')
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

  # The offset makes PostgreSQL look up the blocks of each run and range, instead of joining all.
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
