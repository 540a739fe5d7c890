defmodule Skillbook.Vault.Table do
  @moduledoc false
  # The documents in the database. What is read is within a scope: the segments that somebody sees, and filters.

  alias Skillbook.{JSON, Native, SQL}
  alias Skillbook.Vault.{Note, Postings}

  # Rows written by one statement. SQLite looks for each parameter among those before it.
  @rows 50
  # A segment takes more documents until it has so many.
  @full 1_000

  @columns ~w(segment_id vault producer external_id path folder name title aliases tags links frontmatter word_count hash
              size mtime indexed_at)

  @type segment :: %{id: pos_integer(), vault: String.t(), labels: [String.t()], documents: pos_integer()}

  @typedoc "`within` are the documents that pass the filters, or nil where there are no filters; `within/2` puts them there."
  @type scope :: %{
          segments: [pos_integer()],
          documents: non_neg_integer(),
          within: [pos_integer()] | nil,
          folder: String.t() | nil,
          tags: [String.t()],
          fields: [{String.t(), String.t()}]
        }

  # Writing

  @doc """
  Puts documents of a vault in the place of those with their external ids: `{:ok, count}`, how many were other than before.

  Whoever else indexes the same vault meanwhile does the same, and finds nothing left to do.
  """
  @spec put(SQL.t(), String.t(), String.t(), [Note.t()], DateTime.t()) ::
          {:ok, non_neg_integer()} | {:error, SQL.Error.t()}
  def put(_sql, _vault, _producer, [], _now), do: {:ok, 0}

  def put(sql, vault, producer, notes, now) do
    SQL.transaction(sql, fn sql ->
      with {:ok, known} <- known(sql, vault, Enum.map(notes, & &1.id)),
           {same, new} = Enum.split_with(notes, &same?(&1, known[&1.id])),
           :ok <- each(same, &touch(sql, vault, &1, now)),
           :ok <- forget(sql, for(note <- new, {id, _} <- [known[note.id]], do: id)),
           :ok <-
             new
             |> Enum.group_by(& &1.labels)
             |> each(fn {labels, notes} -> insert(sql, vault, labels, producer, notes, now) end) do
        {:ok, length(new)}
      end
    end)
  end

  defp same?(_note, nil), do: false
  defp same?(note, {_id, as}), do: as == {note.path, note.hash, json(note.labels)}

  defp known(sql, vault, ids) do
    {these, params} = any_of(sql, "d.external_id", "text", ids, 2)

    query = """
    select d.external_id, d.id, d.path, d.hash, s.labels
    from skillbook_documents d join skillbook_document_segments s on s.id = d.segment_id
    where d.vault = $1 and #{these}
    """

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, [vault | params]) do
      {:ok,
       Map.new(rows, fn [external_id, id, path, hash, labels] -> {external_id, {id, {path, hash, labels}}} end)}
    end
  end

  defp touch(sql, vault, note, now) do
    SQL.query(
      sql,
      "update skillbook_documents set size = $3, mtime = $4, indexed_at = $5 where vault = $1 and external_id = $2",
      [vault, note.id, note.size, note.mtime, now]
    )
  end

  @new_text " on conflict (document_id) do update set content = excluded.content"

  # A document that was there keeps its id.
  defp insert(sql, vault, labels, producer, notes, now) do
    replaced = for column <- @columns, do: "#{column} = excluded.#{column}"

    rest =
      " on conflict (vault, external_id) do update set #{Enum.join(replaced, ", ")} returning external_id, id"

    with {:ok, segment} <- segment(sql, vault, json(labels)),
         rows = for(note <- notes, do: row(segment, vault, producer, note, now)),
         {:ok, ids} <- insert_rows(sql, "skillbook_documents (#{Enum.join(@columns, ", ")})", rows, rest),
         ids = Map.new(ids, &List.to_tuple/1),
         texts = for(note <- notes, do: [ids[note.id], note.content]),
         {:ok, _} <- insert_rows(sql, "skillbook_document_texts (document_id, content)", texts, @new_text),
         fields = for(note <- notes, {field, value} <- Note.fields(note), do: [field, value, ids[note.id]]),
         {:ok, _} <- insert_rows(sql, "skillbook_document_fields (field, value, document_id)", fields, ""),
         :ok <- add_terms(sql, segment, for(note <- notes, do: {ids[note.id], titles(note), note.content})) do
      counted(sql, [{segment, length(notes)}])
    end
  end

  # What of a note is searched as its title is.
  defp titles(note), do: [note.name, note.title | note.aliases]

  # The one of these labels that takes more.
  defp segment(sql, vault, labels) do
    query =
      "select id from skillbook_document_segments where vault = $1 and labels = $2 and documents < #{@full} order by id limit 1"

    create =
      "insert into skillbook_document_segments (vault, labels, documents) values ($1, $2, 0) returning id"

    with {:ok, %{rows: []}} <- SQL.query(sql, query, [vault, labels]),
         {:ok, %{rows: [[id]]}} <- SQL.query(sql, create, [vault, labels]) do
      {:ok, id}
    else
      {:ok, %{rows: [[id]]}} -> {:ok, id}
      error -> error
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
      json(note.aliases),
      json(note.tags),
      json(note.links),
      json(note.frontmatter),
      note.word_count,
      note.hash,
      note.size,
      note.mtime,
      now
    ]
  end

  defp json(value), do: value |> JSON.encode()

  defp add_terms(sql, segment, documents) do
    joined = for column <- ~w(documents places), do: "#{column} = #{joined(SQL.dialect(sql), column)}"

    put_terms(sql, segment, Native.vault_postings(documents), joined)
  end

  # To SQLite what is joined is text, also if both parts are bytes.
  defp joined(:sqlite, column),
    do: "cast(skillbook_document_terms.#{column} || excluded.#{column} as blob)"

  defp joined(:postgres, column), do: "skillbook_document_terms.#{column} || excluded.#{column}"

  # All of them by one statement of few parameters, which neither database likes to have in thousands: the terms with where
  # theirs is in all documents, and in all places.
  defp put_terms(_sql, _segment, [], _set), do: :ok

  defp put_terms(sql, segment, postings, set) do
    {terms, _} =
      Enum.map_reduce(postings, {1, 1}, fn {term, documents, places}, {document, place} ->
        sizes = {byte_size(documents), byte_size(places)}
        next = {document + elem(sizes, 0), place + elem(sizes, 1)}
        {[term, document, elem(sizes, 0), place, elem(sizes, 1)], next}
      end)

    statement = """
    insert into skillbook_document_terms (segment_id, term, documents, places) #{unpacked(SQL.dialect(sql))}
    on conflict (segment_id, term) do update set #{Enum.join(set, ", ")}
    """

    documents = for {_, documents, _} <- postings, into: "", do: documents
    places = for {_, _, places} <- postings, into: "", do: places

    with {:ok, _} <- SQL.query(sql, statement, [segment, json(terms), {:blob, documents}, {:blob, places}]),
         do: :ok
  end

  defp unpacked(:sqlite) do
    at = &"json_extract(j.value, '$[#{&1}]')"

    "select $1, #{at.(0)}, substr($3, #{at.(1)}, #{at.(2)}), substr($4, #{at.(3)}, #{at.(4)}) from json_each($2) j where true"
  end

  defp unpacked(:postgres) do
    at = &"cast(j.value ->> #{&1} as integer)"

    "select cast($1 as bigint), j.value ->> 0, substring(cast($3 as bytea) from #{at.(1)} for #{at.(2)}), " <>
      "substring(cast($4 as bytea) from #{at.(3)} for #{at.(4)}) from json_array_elements(cast(cast($2 as text) as json)) j"
  end

  defp counted(sql, segments) do
    each(segments, fn {segment, more} ->
      SQL.query(sql, "update skillbook_document_segments set documents = documents + $2 where id = $1", [
        segment,
        more
      ])
    end)
  end

  defp insert_rows(_sql, _into, [], _rest), do: {:ok, []}

  defp insert_rows(sql, into, [first | _] = rows, rest) do
    width = length(first)

    rows
    |> Enum.chunk_every(@rows)
    |> Skillbook.Options.each(fn rows ->
      values =
        Enum.map_join(0..(length(rows) - 1), ", ", fn row ->
          "(#{Enum.map_join(1..width, ", ", &"$#{row * width + &1}")})"
        end)

      with {:ok, %{rows: given}} <-
             SQL.query(sql, "insert into #{into} values #{values}#{rest}", Enum.concat(rows)),
           do: {:ok, given}
    end)
    |> then(fn result -> with {:ok, given} <- result, do: {:ok, Enum.concat(given)} end)
  end

  @doc "Takes documents of a vault away: `{:ok, count}`."
  @spec remove(SQL.t(), String.t(), [String.t()]) :: {:ok, non_neg_integer()} | {:error, SQL.Error.t()}
  def remove(_sql, _vault, []), do: {:ok, 0}

  def remove(sql, vault, external_ids) do
    SQL.transaction(sql, fn sql ->
      external_ids
      |> Enum.chunk_every(@full)
      |> Enum.reduce_while({:ok, 0}, fn external_ids, {:ok, count} ->
        with {:ok, known} <- known(sql, vault, external_ids),
             ids = for({_, {id, _}} <- known, do: id),
             :ok <- forget(sql, ids),
             {condition, params} = ids(sql, "id", ids, 1),
             {:ok, _} <- SQL.query(sql, "delete from skillbook_documents where #{condition}", params),
             {:ok, _} <- SQL.query(sql, "delete from skillbook_document_segments where documents = 0") do
          {:cont, {:ok, count + length(ids)}}
        else
          error -> {:halt, error}
        end
      end)
    end)
  end

  # Takes what is searched of documents away, and leaves their rows.
  defp forget(_sql, []), do: :ok

  defp forget(sql, ids) do
    {condition, params} = ids(sql, "t.id", ids, 1)

    query = """
    select t.segment_id, t.id, t.name, t.title, t.aliases, x.content
    from skillbook_documents t join skillbook_document_texts x on x.document_id = t.id where #{condition}
    """

    {of_fields, _} = ids(sql, "document_id", ids, 1)

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, params),
         {:ok, _} <- SQL.query(sql, "delete from skillbook_document_fields where #{of_fields}", params),
         segments = Enum.group_by(rows, &hd/1, &tl/1),
         :ok <- each(segments, fn {segment, rows} -> forget_terms(sql, segment, rows) end) do
      counted(sql, for({segment, rows} <- segments, do: {segment, -length(rows)}))
    end
  end

  defp forget_terms(sql, segment, rows) do
    gone = MapSet.new(rows, &hd/1)

    for([id, name, title, aliases, content] <- rows, do: {id, [name, title | texts(aliases)], content})
    |> Native.vault_postings()
    |> Enum.map(&elem(&1, 0))
    |> then(&forget_terms(sql, segment, &1, gone))
  end

  defp forget_terms(sql, segment, terms, gone) do
    {these, params} = any_of(sql, "term", "text", terms, 2)
    these = "from skillbook_document_terms where segment_id = $1 and #{these}"

    with {:ok, %{rows: rows}} <-
           SQL.query(sql, "select term, documents, places #{these}", [segment | params]),
         {:ok, _} <- SQL.query(sql, "delete #{these}", [segment | params]) do
      left =
        for [term, documents, places] <- rows,
            documents = Postings.without(documents, gone),
            documents != "",
            do: {term, documents, Postings.without_places(places, gone)}

      put_terms(sql, segment, left, ["documents = excluded.documents"])
    end
  end

  @doc "What is known of a vault's documents, or of one and those below it: `%{external_id => {size, mtime, indexed_at}}`."
  @spec references(SQL.t(), String.t(), String.t()) :: {:ok, map()} | {:error, SQL.Error.t()}
  def references(sql, vault, under) do
    {condition, params} =
      if under == "", do: {"", []}, else: {" and " <> under("external_id", 2), below(under)}

    with {:ok, %{rows: rows}} <-
           SQL.query(
             sql,
             "select external_id, size, mtime, indexed_at from skillbook_documents where vault = $1" <>
               condition,
             [vault | params]
           ) do
      {:ok, Map.new(rows, fn [id, size, mtime, at] -> {id, {size, mtime, at}} end)}
    end
  end

  # What is called so, or is in the folder of that name: an index finds both.
  defp under(column, number),
    do: "(#{column} = $#{number} or (#{column} >= $#{number + 1} and #{column} < $#{number + 2}))"

  # `0` is what follows `/`.
  defp below(name), do: [name, name <> "/", name <> "0"]

  # Reading

  @doc "The segments of these vaults."
  @spec segments(SQL.t(), [String.t()]) :: {:ok, [segment()]} | {:error, SQL.Error.t()}
  def segments(sql, vaults) do
    {these, params} = any_of(sql, "vault", "text", vaults, 1)

    query =
      "select id, vault, labels, documents from skillbook_document_segments where #{these} and documents > 0"

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, params) do
      {:ok,
       for [id, vault, labels, documents] <- rows do
         %{id: id, vault: vault, labels: texts(labels), documents: documents}
       end}
    end
  end

  @doc "A scope with the documents that pass its filters, and how many they are."
  @spec within(SQL.t(), scope()) :: {:ok, scope()} | {:error, SQL.Error.t()}
  def within(_sql, %{folder: nil, tags: [], fields: []} = scope), do: {:ok, scope}

  def within(sql, scope) do
    {where, params} = where(sql, scope, 1)

    with {:ok, %{rows: rows}} <-
           SQL.query(sql, "select t.id from skillbook_documents t where #{where}", params) do
      {:ok, %{scope | within: Enum.concat(rows), documents: length(rows)}}
    end
  end

  @doc "The rows of the index within a scope that have a unit of a query, as `Skillbook.Native.vault_rank/4` takes them."
  @spec rows(SQL.t(), scope(), Skillbook.Vault.Query.unit()) ::
          {:ok, {:any, [binary()]} | {:phrase, [[{binary(), binary()}]]}} | {:error, SQL.Error.t()}
  def rows(sql, scope, {:word, stem}) do
    with {:ok, rows} <- terms(sql, scope, "documents", "term = $1", [stem]),
         do: {:ok, {:any, Enum.concat(rows)}}
  end

  def rows(sql, scope, {:prefix, form}) do
    with {:ok, rows} <-
           terms(sql, scope, "documents", "term >= $1 and term <= $2", Postings.forms(form)),
         do: {:ok, {:any, Enum.concat(rows)}}
  end

  def rows(sql, scope, {:phrase, stems}) do
    with {:ok, words} <-
           Skillbook.Options.each(stems, &terms(sql, scope, "documents, places", "term = $1", [&1])),
         do: {:ok, {:phrase, for(rows <- words, do: Enum.map(rows, fn row -> List.to_tuple(row) end))}}
  end

  defp terms(sql, scope, columns, condition, params) do
    {within, ids} = ids(sql, "segment_id", scope.segments, length(params) + 1)
    query = "select #{columns} from skillbook_document_terms where #{within} and #{condition}"
    with {:ok, %{rows: rows}} <- SQL.query(sql, query, params ++ ids), do: {:ok, rows}
  end

  @doc "The documents of these ids within a scope, by id: what hits show."
  @spec fetch(SQL.t(), scope(), [pos_integer()]) :: {:ok, %{pos_integer() => map()}} | {:error, SQL.Error.t()}
  def fetch(_sql, _scope, []), do: {:ok, %{}}

  # A document may have been given other labels since its id was found.
  def fetch(sql, scope, ids) do
    {these, params} = ids(sql, "t.id", ids, 1)
    {within, segments} = ids(sql, "t.segment_id", scope.segments, 2)

    query = """
    select t.id, t.vault, t.external_id, t.path, t.title, t.tags, t.links, t.frontmatter, x.content, t.word_count
    from skillbook_documents t join skillbook_document_texts x on x.document_id = t.id where #{these} and #{within}
    """

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, params ++ segments) do
      {:ok,
       Map.new(rows, fn [id, vault, external_id, path, title, tags, links, frontmatter, content, words] ->
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

  @doc "The ids of the first documents within a scope, by vault and path."
  @spec first(SQL.t(), scope(), pos_integer()) :: {:ok, [pos_integer()]} | {:error, SQL.Error.t()}
  def first(sql, scope, limit) do
    {where, params} = where(sql, scope, 1)
    ordered(sql, where, params, limit)
  end

  @doc "Of these ids the first, by vault and path."
  @spec first_of(SQL.t(), [pos_integer()], pos_integer()) :: {:ok, [pos_integer()]} | {:error, SQL.Error.t()}
  def first_of(sql, ids, limit) do
    {these, params} = ids(sql, "t.id", ids, 1)
    ordered(sql, these, params, limit)
  end

  defp ordered(sql, where, params, limit) do
    query =
      "select t.id from skillbook_documents t where #{where} order by t.vault, t.path, t.external_id limit #{limit}"

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, params), do: {:ok, Enum.map(rows, &hd/1)}
  end

  @doc "The titles within a scope, for suggestions."
  @spec titles(SQL.t(), scope()) :: {:ok, [String.t()]} | {:error, SQL.Error.t()}
  def titles(sql, scope) do
    {where, params} = where(sql, scope, 1)
    query = "select distinct t.title from skillbook_documents t where #{where}"

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, params),
         do: {:ok, rows |> Enum.map(&hd/1) |> Enum.sort()}
  end

  # The condition of a scope over `skillbook_documents t`, with placeholders from a number on.
  defp where(sql, scope, number) do
    {segments, segment_params} = ids(sql, "t.segment_id", scope.segments, number)
    number = number + 1

    {folder, folder_params} =
      if scope.folder,
        do: {[under("t.folder", number)], below(scope.folder)},
        else: {[], []}

    number = number + length(folder_params)
    pairs = Enum.map(scope.tags, &{"tags", &1}) ++ scope.fields

    fields =
      for {_pair, at} <- Enum.with_index(pairs) do
        "t.id in (select document_id from skillbook_document_fields " <>
          "where field = $#{number + 2 * at} and value = $#{number + 2 * at + 1})"
      end

    field_params = for {field, value} <- pairs, text <- [field, value], do: Note.key(text)
    {Enum.join([segments | folder ++ fields], " and "), segment_params ++ folder_params ++ field_params}
  end

  defp ids(sql, column, ids, number), do: any_of(sql, column, "bigint", ids, number)

  # Any number of values is one parameter, so the statement stays the same.
  defp any_of(sql, column, type, values, number) do
    case SQL.dialect(sql) do
      :sqlite ->
        {"#{column} in (select value from json_each($#{number}))", [json(values)]}

      :postgres ->
        list = "json_array_elements_text(cast(cast($#{number} as text) as json))"
        {"#{column} = any(array(select cast(#{list} as #{type})))", [json(values)]}
    end
  end

  defp texts(json) do
    {:ok, texts} = JSON.decode(json)
    texts
  end

  defp each(items, fun) do
    Enum.reduce_while(items, :ok, fn item, :ok ->
      case fun.(item) do
        {:error, _} = error -> {:halt, error}
        _ -> {:cont, :ok}
      end
    end)
  end
end
