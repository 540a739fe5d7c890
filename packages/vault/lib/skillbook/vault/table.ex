defmodule Skillbook.Vault.Table do
  @moduledoc false
  # Reads and writes the documents of vaults in the database. Reads stay within a scope: the
  # segments that a profile sees, and filters.

  alias Skillbook.SQL
  alias Skillbook.SQL.Values
  alias Skillbook.Search.Index
  alias Skillbook.Support.{JSON, UntilError}
  alias Skillbook.Vault.Note

  # External ids of one statement.
  @max_ids 1_000

  @columns ~w(segment_id vault producer external_id path folder name title aliases tags links
              frontmatter word_count hash size mtime indexed_at)

  @type scope :: %{segments: [Index.segment()], filters: [String.t()]}

  # Writing

  @typedoc "Notes, and by their labels the packed index of those that differ from the database."
  @type prepared :: {[Note.t()], %{[String.t()] => {[String.t()], Index.packed()}}}

  @doc "Packs notes for `put/5`. This is the slow part, so it runs before the transaction."
  @spec prepare(SQL.t(), String.t(), [Note.t()]) :: {:ok, prepared()} | {:error, SQL.Error.t()}
  def prepare(sql, vault, notes) do
    with {:ok, known} <- known(sql, vault, Enum.map(notes, & &1.id)) do
      {:ok,
       {notes,
        notes
        |> Enum.reject(&same?(&1, known[&1.id]))
        |> Enum.group_by(& &1.labels)
        |> Map.new(fn {labels, notes} -> {labels, pack(notes)} end)}}
    end
  end

  defp pack(notes),
    do: {Enum.map(notes, & &1.id), notes |> Enum.with_index(&{&2, document(&1)}) |> Index.pack()}

  @doc """
  Inserts or replaces documents of a vault by their external ids: `{:ok, count}`, the number of
  documents that were new or different.

  Safe when several nodes index the same vault: the second finds no differences.
  """
  @spec put(SQL.t(), String.t(), String.t(), prepared(), DateTime.t()) ::
          {:ok, non_neg_integer()} | {:error, SQL.Error.t()}
  def put(_sql, _vault, _producer, {[], _packed}, _now), do: {:ok, 0}

  def put(sql, vault, producer, {notes, packed}, now) do
    sql
    |> SQL.of_parts([{:vault, vault}])
    |> SQL.transaction(fn sql ->
      with {:ok, known} <- known(sql, vault, Enum.map(notes, & &1.id)),
           {same, new} = Enum.split_with(notes, &same?(&1, known[&1.id])),
           :ok <- UntilError.each(same, &touch(sql, vault, &1, now)),
           :ok <- forget(sql, for(note <- new, found = known[note.id], do: found)),
           :ok <-
             new
             |> Enum.group_by(& &1.labels)
             |> UntilError.each(fn {labels, notes} ->
               insert(sql, {"vault", vault, labels, nil}, producer, notes, packed[labels], now)
             end) do
        {:ok, length(new)}
      end
    end)
  end

  defp same?(_note, nil), do: false

  defp same?(note, {_id, _segment, as}),
    do: as == {note.path, note.hash, JSON.encode(note.labels)}

  defp known(sql, vault, ids) do
    {these, params} = Values.texts(sql, "d.external_id", ids, 2)

    query = """
    select d.external_id, d.id, d.segment_id, d.path, d.hash, s.labels
    from skillbook_documents d join skillbook_search_segments s on s.id = d.segment_id
    where d.vault = $1 and #{these}
    """

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, [vault | params]) do
      {:ok,
       Map.new(rows, fn [external_id, id, segment, path, hash, labels] ->
         {external_id, {id, segment, {path, hash, labels}}}
       end)}
    end
  end

  defp touch(sql, vault, note, now) do
    SQL.query(
      sql,
      "update skillbook_documents set size = $3, mtime = $4, indexed_at = $5 " <>
        "where vault = $1 and external_id = $2",
      [vault, note.id, note.size, note.mtime, now]
    )
  end

  @new_text " on conflict (document_id) do update set content = excluded.content"

  # A replaced document keeps its id. The vault, and not its segments, says to which tenant its
  # documents belong: the application may change that.
  defp insert(sql, {_, vault, _, _} = key, producer, notes, packed, now) do
    replaced = for column <- @columns, do: "#{column} = excluded.#{column}"

    rest =
      " on conflict (vault, external_id) do update set #{Enum.join(replaced, ", ")} " <>
        "returning external_id, id"

    with {:ok, segment} <- Index.join(sql, key, length(notes)),
         rows = for(note <- notes, do: row(segment, vault, producer, note, now)),
         {:ok, ids} <-
           Values.insert(sql, "skillbook_documents (#{Enum.join(@columns, ", ")})", rows, rest),
         ids = Map.new(ids, &List.to_tuple/1),
         texts = for(note <- notes, do: [ids[note.id], note.content]),
         into = "skillbook_document_texts (document_id, content)",
         {:ok, _} <- Values.insert(sql, into, texts, @new_text) do
      {external_ids, run} = packed(packed, notes)
      Index.put(sql, segment, Index.number(run, Enum.map(external_ids, &ids[&1])))
    end
  end

  # Another process may have put some of the notes since they were packed.
  defp packed({external_ids, _run} = packed, notes) do
    if external_ids == Enum.map(notes, & &1.id), do: packed, else: pack(notes)
  end

  defp packed(nil, notes), do: pack(notes)

  # The name, the title and the aliases all have the weight of a title.
  defp document(note) do
    fields = for {field, value} <- Note.fields(note), do: Index.field(field, value)
    folders = for folder <- folders(note.folder), do: folder(folder)
    {[note.name, note.title | note.aliases], note.content, fields ++ folders}
  end

  defp folders(""), do: []
  defp folders(folder), do: folder |> String.split("/") |> Enum.scan(&(&2 <> "/" <> &1))

  @doc "The filter for documents in a folder or below it."
  @spec folder(String.t()) :: String.t()
  def folder(folder), do: Index.field("/", folder)

  @doc "The filter for documents that have a value in a field."
  @spec field(String.t(), String.t()) :: String.t()
  def field(field, value), do: Index.field(Note.key(field), Note.key(value))

  @doc "For `Skillbook.Search.Backfill`: segment key, id and document for each id."
  @spec searched(SQL.t(), [pos_integer()]) ::
          {:ok, [{Index.key(), pos_integer(), Index.document()}]} | {:error, SQL.Error.t()}
  def searched(sql, ids) do
    {these, params} = Values.ids(sql, "t.id", ids, 1)

    query = """
    select t.id, s.scope, s.labels, t.path, t.folder, t.name, t.title, t.aliases, t.tags,
      t.frontmatter, x.content
    from skillbook_documents t join skillbook_search_segments s on s.id = t.segment_id
    join skillbook_document_texts x on x.document_id = t.id where #{these}
    """

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, params) do
      {:ok,
       for [id, vault, labels, path, folder, name, title, aliases, tags, frontmatter, content] <-
             rows do
         {:ok, frontmatter} = JSON.decode(frontmatter)

         note = %{
           path: path,
           folder: folder,
           name: name,
           title: title,
           aliases: texts(aliases),
           tags: texts(tags),
           frontmatter: frontmatter,
           content: content
         }

         {{"vault", vault, texts(labels), nil}, id, document(note)}
       end}
    end
  end

  defp row(segment, vault, producer, note, now) do
    [
      segment,
      vault,
      producer,
      note.id,
      note.path,
      note.folder,
      note.name,
      note.title,
      JSON.encode(note.aliases),
      JSON.encode(note.tags),
      JSON.encode(note.links),
      JSON.encode(note.frontmatter),
      note.word_count,
      note.hash,
      note.size,
      note.mtime,
      now
    ]
  end

  @doc "Removes documents of a vault: `{:ok, count}`."
  @spec remove(SQL.t(), String.t(), [String.t()]) ::
          {:ok, non_neg_integer()} | {:error, SQL.Error.t()}
  def remove(_sql, _vault, []), do: {:ok, 0}

  def remove(sql, vault, external_ids) do
    sql
    |> SQL.of_parts([{:vault, vault}])
    |> SQL.transaction(fn sql ->
      external_ids
      |> Enum.chunk_every(@max_ids)
      |> UntilError.reduce(0, fn external_ids, count ->
        with {:ok, known} <- known(sql, vault, external_ids),
             :ok <- forget(sql, Map.values(known)),
             {condition, params} =
               Values.ids(sql, "id", for({_, {id, _, _}} <- known, do: id), 1),
             {:ok, _} <-
               SQL.query(sql, "delete from skillbook_documents where #{condition}", params),
             do: {:ok, count + map_size(known)}
      end)
    end)
  end

  # Removes documents from the index but not their rows.
  defp forget(sql, known) do
    known
    |> Enum.group_by(&elem(&1, 1), &elem(&1, 0))
    |> UntilError.each(fn {segment, ids} -> Index.remove(sql, segment, ids) end)
  end

  @doc """
  The stored state of a vault's documents: `%{external_id => {size, mtime, indexed_at}}`.

  `under` limits it to one document and those in the folder of that name; `""` is all.
  """
  @spec references(SQL.t(), String.t(), String.t()) :: {:ok, map()} | {:error, SQL.Error.t()}
  def references(sql, vault, under) do
    {condition, params} =
      if under == "", do: {"", []}, else: {" and " <> under("external_id", 2), below(under)}

    with {:ok, %{rows: rows}} <-
           SQL.query(
             sql,
             "select external_id, size, mtime, indexed_at from skillbook_documents " <>
               "where vault = $1" <>
               condition,
             [vault | params]
           ) do
      {:ok, Map.new(rows, fn [id, size, mtime, at] -> {id, {size, mtime, at}} end)}
    end
  end

  # The document of a name, or those in a folder of that name. Both conditions use the index.
  defp under(column, number),
    do: "(#{column} = $#{number} or (#{column} >= $#{number + 1} and #{column} < $#{number + 2}))"

  # `0` is the character after `/`, so the range is all names that begin with `name/`.
  defp below(name), do: [name, name <> "/", name <> "0"]

  # Reading

  @doc "The documents with these ids within a scope, by id, with the fields of a hit."
  @spec fetch(SQL.t(), scope(), [pos_integer()]) ::
          {:ok, %{pos_integer() => map()}} | {:error, SQL.Error.t()}
  def fetch(_sql, _scope, []), do: {:ok, %{}}

  # Checks the scope again: the document's labels may have changed since the search.
  def fetch(sql, scope, ids) do
    {these, params} = Values.ids(sql, "t.id", ids, 1)
    {within, segments} = Values.ids(sql, "t.segment_id", Enum.map(scope.segments, & &1.id), 2)

    query = """
    select t.id, t.vault, t.external_id, t.path, t.title, t.tags, t.links, t.frontmatter,
      x.content, t.word_count
    from skillbook_documents t join skillbook_document_texts x on x.document_id = t.id
    where #{these} and #{within}
    """

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, params ++ segments) do
      {:ok,
       Map.new(rows, fn [
                          id,
                          vault,
                          external_id,
                          path,
                          title,
                          tags,
                          links,
                          frontmatter,
                          content,
                          words
                        ] ->
         {:ok, frontmatter} = JSON.decode(frontmatter)

         {id,
          %{
            vault: vault,
            id: external_id,
            path: path,
            title: title,
            tags: texts(tags),
            links: texts(links),
            frontmatter: frontmatter,
            content: content,
            word_count: words
          }}
       end)}
    end
  end

  @typedoc "A vault and a path, with an id if several documents of the path may follow."
  @type place :: {String.t(), String.t(), String.t() | nil}

  @doc """
  The number of documents within a scope, and the ids of the first by vault and path, after a
  place.
  """
  @spec first(SQL.t(), scope(), pos_integer(), place() | nil) ::
          {:ok, non_neg_integer(), [pos_integer()]} | {:error, SQL.Error.t()}
  def first(sql, scope, limit, place \\ nil)

  def first(sql, %{filters: []} = scope, limit, place) do
    {where, params} = within(sql, scope)

    with {:ok, ids} <- ordered(sql, where, params, limit, place),
         do: {:ok, scope.segments |> Enum.map(& &1.documents) |> Enum.sum(), ids}
  end

  def first(sql, scope, limit, place) do
    with {:ok, {_all, total, hits}} <-
           Index.find(sql, scope.segments, [], scope.filters, nil, {:level, limit}),
         {:ok, ids} <- first_of(sql, Enum.map(hits, &elem(&1, 0)), limit, place),
         do: {:ok, total, ids}
  end

  @doc "The first of these ids by vault and path, after a place if there is one."
  @spec first_of(SQL.t(), [pos_integer()], pos_integer(), place() | nil) ::
          {:ok, [pos_integer()]} | {:error, SQL.Error.t()}
  def first_of(sql, ids, limit, place \\ nil) do
    {these, params} = Values.ids(sql, "t.id", ids, 1)
    ordered(sql, these, params, limit, place)
  end

  defp ordered(sql, where, params, limit, place) do
    {place, values} = after_place(place)

    query =
      "select t.id from skillbook_documents t where #{where}#{place} " <>
        "order by t.vault, t.path, t.external_id limit #{limit}"

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, params ++ values),
         do: {:ok, Enum.map(rows, &hd/1)}
  end

  # The ids of a scope are the first parameter.
  defp after_place(nil), do: {"", []}

  defp after_place({vault, path, nil}),
    do: {" and t.vault >= $2 and (t.vault > $2 or t.path > $3)", [vault, path]}

  defp after_place({vault, path, id}) do
    {" and t.vault >= $2 and (t.vault > $2 or t.path > $3 or (t.path = $3 and " <>
       "t.external_id > $4))", [vault, path, id]}
  end

  @doc "The titles in the segments of a scope, ignoring its filters, for suggestions."
  @spec titles(SQL.t(), scope()) :: {:ok, [String.t()]} | {:error, SQL.Error.t()}
  def titles(sql, scope) do
    {where, params} = within(sql, scope)
    query = "select distinct t.title from skillbook_documents t where #{where}"

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, params),
         do: {:ok, rows |> Enum.map(&hd/1) |> Enum.sort()}
  end

  defp within(sql, scope),
    do: Values.ids(sql, "t.segment_id", Enum.map(scope.segments, & &1.id), 1)

  defp texts(json) do
    {:ok, texts} = JSON.decode(json)
    texts
  end
end
