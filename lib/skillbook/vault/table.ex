defmodule Skillbook.Vault.Table do
  @moduledoc false
  # The documents in the database. What is read is within a scope: the vaults and the labels that somebody sees, and filters.

  alias Skillbook.{JSON, SQL}
  alias Skillbook.Vault.{Note, Words}

  # Rows written by one statement: each has up to 20 parameters, and SQLite takes 32,766.
  @rows 500

  @columns ~w(vault producer external_id path folder name title aliases tags links frontmatter content word_count labels
              hash size mtime indexed_at)

  # As many positions of a term as PostgreSQL keeps.
  @positions 255
  # What PostgreSQL's own ranking divides by: so much is the sum of 1/n² without end.
  @sum 1.64493406685
  @content_weight 0.4
  # So that no phrase goes from one part of a document into the next.
  @gap 10

  @type scope :: %{
          vaults: [String.t()],
          labels: [String.t()],
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
           {same, new} =
             Enum.split_with(
               notes,
               &(known[&1.id] == {&1.hash, JSON.encode(&1.labels) |> IO.iodata_to_binary()})
             ),
           :ok <- each(same, &touch(sql, vault, &1, now)),
           {:ok, _} <- remove(sql, vault, new |> Enum.map(& &1.id) |> Enum.filter(&is_map_key(known, &1))),
           :ok <- new |> Enum.chunk_every(@rows) |> each(&insert(sql, vault, producer, &1, now)) do
        {:ok, length(new)}
      end
    end)
  end

  defp known(sql, vault, ids) do
    {list, params} = list(ids, 2)

    with {:ok, %{rows: rows}} <-
           SQL.query(
             sql,
             "select external_id, hash, labels from skillbook_documents where vault = $1 and external_id in (#{list})",
             [vault | params]
           ) do
      {:ok, Map.new(rows, fn [id, hash, labels] -> {id, {hash, labels}} end)}
    end
  end

  defp touch(sql, vault, note, now) do
    SQL.query(
      sql,
      "update skillbook_documents set size = $3, mtime = $4, indexed_at = $5 where vault = $1 and external_id = $2",
      [vault, note.id, note.size, note.mtime, now]
    )
  end

  defp insert(sql, vault, producer, notes, now) do
    dialect = SQL.dialect(sql)
    search = if dialect == :postgres, do: [&"cast(cast($#{&1} as text) as tsvector)"], else: []
    columns = @columns ++ if(dialect == :postgres, do: ["search"], else: [])

    rows =
      for note <- notes do
        vector = if dialect == :postgres, do: [vector(note.words)], else: []
        row(vault, producer, note, now) ++ vector
      end

    statement = "insert into skillbook_documents (#{Enum.join(columns, ", ")}) values "

    with {:ok, %{rows: ids}} <- insert_rows(sql, statement, rows, search, " returning external_id, id") do
      ids = Map.new(ids, &List.to_tuple/1)

      with :ok <- insert_terms(sql, dialect, for(note <- notes, do: {ids[note.id], note.words})) do
        for(note <- notes, {field, value} <- Note.fields(note), do: [ids[note.id], field, value])
        |> Enum.chunk_every(@rows * 10)
        |> each(fn rows ->
          insert_rows(
            sql,
            "insert into skillbook_document_fields (document_id, field, value) values ",
            rows,
            [],
            ""
          )
        end)
      end
    end
  end

  defp insert_terms(_sql, :postgres, _terms), do: :ok

  defp insert_terms(sql, :sqlite, terms) do
    rows = for {id, parts} <- terms, do: [id | Enum.map(parts, &Enum.join(&1.stems ++ &1.forms, " "))]
    statement = "insert into skillbook_documents_fts (rowid, name, title, content) values "
    with {:ok, _} <- insert_rows(sql, statement, rows, [], ""), do: :ok
  end

  # The last placeholders of a row may be written in other ways.
  defp insert_rows(sql, statement, [first | _] = rows, last, returning) do
    width = length(first)
    plain = width - length(last)

    values =
      Enum.map_join(0..(length(rows) - 1), ", ", fn row ->
        places = for column <- 1..plain, do: "$#{row * width + column}"
        others = for {write, at} <- Enum.with_index(last, plain + 1), do: write.(row * width + at)
        "(#{Enum.join(places ++ others, ", ")})"
      end)

    SQL.query(sql, statement <> values <> returning, Enum.concat(rows))
  end

  defp row(vault, producer, note, now) do
    [
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
      note.content,
      note.word_count,
      json(note.labels),
      note.hash,
      note.size,
      note.mtime,
      now
    ]
  end

  defp json(value), do: value |> JSON.encode() |> IO.iodata_to_binary()

  # The terms with their places and weights, as PostgreSQL writes them: name and title A, content B.
  defp vector(parts) do
    {places, _} =
      parts
      |> Enum.zip(~w(A A B))
      |> Enum.flat_map_reduce(1, fn {%{stems: stems, forms: forms}, weight}, at ->
        terms = stems ++ forms

        {terms |> Enum.with_index(at) |> Enum.map(fn {term, at} -> {term, {at, weight}} end),
         at + length(terms) + @gap}
      end)

    places
    |> Enum.group_by(&elem(&1, 0), &elem(&1, 1))
    |> Enum.map_join(" ", fn {term, places} ->
      places =
        places
        |> Enum.take(@positions)
        |> Enum.map_join(",", fn {at, weight} -> "#{min(at, 16_383)}#{weight}" end)

      "'#{term}':#{places}"
    end)
  end

  @doc "Takes documents of a vault away: `{:ok, count}`."
  @spec remove(SQL.t(), String.t(), [String.t()]) :: {:ok, non_neg_integer()} | {:error, SQL.Error.t()}
  def remove(_sql, _vault, []), do: {:ok, 0}

  def remove(sql, vault, ids) do
    SQL.transaction(sql, fn sql ->
      ids
      |> Enum.chunk_every(@rows)
      |> Enum.reduce_while({:ok, 0}, fn ids, {:ok, count} ->
        case remove_some(sql, vault, ids) do
          {:ok, %{num_rows: removed}} -> {:cont, {:ok, count + removed}}
          error -> {:halt, error}
        end
      end)
    end)
  end

  defp remove_some(sql, vault, ids) do
    {list, params} = list(ids, 2)
    which = "vault = $1 and external_id in (#{list})"

    with :ok <- remove_terms(sql, SQL.dialect(sql), which, [vault | params]),
         do: SQL.query(sql, "delete from skillbook_documents where #{which}", [vault | params])
  end

  defp remove_terms(_sql, :postgres, _which, _params), do: :ok

  defp remove_terms(sql, :sqlite, which, params) do
    statement =
      "delete from skillbook_documents_fts where rowid in (select id from skillbook_documents where #{which})"

    with {:ok, _} <- SQL.query(sql, statement, params), do: :ok
  end

  @doc "What is known of a vault's documents, or of one and those below it: `%{external_id => {size, mtime, indexed_at}}`."
  @spec references(SQL.t(), String.t(), String.t()) :: {:ok, map()} | {:error, SQL.Error.t()}
  def references(sql, vault, under) do
    {condition, params} =
      if under == "", do: {"", []}, else: {" and " <> under("external_id", 2), [under, under <> "/"]}

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

  defp under(column, number),
    do: "(#{column} = $#{number} or substr(#{column}, 1, length($#{number + 1})) = $#{number + 1})"

  # Reading

  @doc "The sets of labels that documents of these vaults have."
  @spec label_sets(SQL.t(), [String.t()]) :: {:ok, [[String.t()]]} | {:error, SQL.Error.t()}
  def label_sets(sql, vaults) do
    {list, params} = list(vaults, 1)

    with {:ok, %{rows: rows}} <-
           SQL.query(sql, "select distinct labels from skillbook_documents where vault in (#{list})", params) do
      {:ok, Enum.map(rows, fn [labels] -> texts(labels) end)}
    end
  end

  @doc "How many documents there are within a scope."
  @spec count(SQL.t(), scope()) :: {:ok, non_neg_integer()} | {:error, SQL.Error.t()}
  def count(sql, scope) do
    {where, params} = where(scope, 1)

    with {:ok, %{rows: [[count]]}} <-
           SQL.query(sql, "select count(*) from skillbook_documents t where #{where}", params),
         do: {:ok, count}
  end

  @doc """
  The documents within a scope that match a unit of a query: `{:ok, %{id => {rank, {vault, path, external_id}}}}`.

  The rank depends on the document alone, by the formula of PostgreSQL's `ts_rank` with 1 for name and title and 0.4 for
  content; a phrase has the mean of its words'.
  """
  @spec matches(SQL.t(), scope(), Skillbook.Vault.Query.unit()) :: {:ok, map()} | {:error, SQL.Error.t()}
  def matches(sql, scope, {:phrase, words}) do
    with {:ok, ids} <- phrase(sql, SQL.dialect(sql), scope, words),
         {:ok, of_words} <- each_ok(words, &matches(sql, scope, {:word, &1})) do
      {:ok,
       for id <- ids, into: %{} do
         found = for matches <- of_words, match = matches[id], do: match
         {_, place} = hd(found)
         {id, {(found |> Enum.map(&elem(&1, 0)) |> Enum.sum()) / length(words), place}}
       end}
    end
  end

  def matches(sql, scope, unit), do: matches(sql, SQL.dialect(sql), scope, unit)

  defp matches(sql, :sqlite, scope, unit) do
    {condition, term} =
      case unit do
        {:word, stem} ->
          {"v.term = $1 and v.term <= $2", [stem, stem]}

        {:prefix, word} ->
          {"v.term >= $1 and v.term <= $2", [Words.form(word), Words.form(word) <> "\u{10FFFF}"]}
      end

    {where, params} = where(scope, 3)

    query = """
    select t.id, t.vault, t.path, t.external_id, sum(v.col <> 'content'), sum(v.col = 'content')
    from skillbook_documents_terms v join skillbook_documents t on t.id = v.doc
    where #{condition} and #{where} group by t.id, v.term
    """

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, term ++ params) do
      {:ok,
       Enum.reduce(rows, %{}, fn [id, vault, path, external_id, titles, contents], found ->
         rank = rank(titles, contents)

         Map.update(found, id, {rank, {vault, path, external_id}}, fn {more, place} ->
           {more + rank, place}
         end)
       end)}
    end
  end

  defp matches(sql, :postgres, scope, unit) do
    term =
      case unit do
        {:word, stem} -> "'#{stem}'"
        {:prefix, word} -> "'#{Words.form(word)}':*"
      end

    {where, params} = where(scope, 2)

    query = """
    select t.id, t.vault, t.path, t.external_id,
      cast(ts_rank(cast('{0, 0, #{@content_weight}, 1}' as real[]), t.search, cast(cast($1 as text) as tsquery)) as double precision)
    from skillbook_documents t where t.search @@ cast(cast($1 as text) as tsquery) and #{where}
    """

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, [term | params]),
         do:
           {:ok,
            Map.new(rows, fn [id, vault, path, external_id, rank] ->
              {id, {rank, {vault, path, external_id}}}
            end)}
  end

  defp rank(titles, contents) do
    titles = min(titles, @positions)
    (squares(1, titles) + @content_weight * squares(titles + 1, min(titles + contents, @positions))) / @sum
  end

  defp squares(from, to) when from > to, do: 0.0
  defp squares(from, to), do: Enum.reduce(to..from//-1, 0.0, &(&2 + 1 / (&1 * &1)))

  defp phrase(sql, dialect, scope, words) do
    {where, params} = where(scope, 2)

    {from, condition, text} =
      case dialect do
        :sqlite ->
          {"skillbook_documents_fts f join skillbook_documents t on t.id = f.rowid",
           "skillbook_documents_fts match $1", ~s("#{Enum.join(words, " ")}")}

        :postgres ->
          {"skillbook_documents t", "t.search @@ cast(cast($1 as text) as tsquery)",
           Enum.map_join(words, " <-> ", &"'#{&1}'")}
      end

    with {:ok, %{rows: rows}} <-
           SQL.query(sql, "select t.id from #{from} where #{condition} and #{where}", [text | params]),
         do: {:ok, Enum.map(rows, &hd/1)}
  end

  @doc "The documents of these ids, by id: what hits show."
  @spec fetch(SQL.t(), [pos_integer()]) :: {:ok, %{pos_integer() => map()}} | {:error, SQL.Error.t()}
  def fetch(_sql, []), do: {:ok, %{}}

  def fetch(sql, ids) do
    {list, params} = list(ids, 1)

    query =
      "select id, vault, external_id, path, title, tags, links, frontmatter, content, word_count, labels " <>
        "from skillbook_documents where id in (#{list})"

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, params) do
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
                          words,
                          labels
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
            word_count: words,
            labels: texts(labels)
          }}
       end)}
    end
  end

  @doc "The ids of the first documents within a scope, by vault and path."
  @spec first(SQL.t(), scope(), pos_integer()) :: {:ok, [pos_integer()]} | {:error, SQL.Error.t()}
  def first(sql, scope, limit) do
    {where, params} = where(scope, 1)
    order = "t.vault, t.path, t.external_id"

    order =
      if SQL.dialect(sql) == :postgres,
        do: ~s(t.vault collate "C", t.path collate "C", t.external_id collate "C"),
        else: order

    query = "select t.id from skillbook_documents t where #{where} order by #{order} limit #{limit}"
    with {:ok, %{rows: rows}} <- SQL.query(sql, query, params), do: {:ok, Enum.map(rows, &hd/1)}
  end

  @doc "The titles within a scope, for suggestions."
  @spec titles(SQL.t(), scope()) :: {:ok, [String.t()]} | {:error, SQL.Error.t()}
  def titles(sql, scope) do
    {where, params} = where(scope, 1)
    query = "select distinct t.title from skillbook_documents t where #{where}"

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, params),
         do: {:ok, rows |> Enum.map(&hd/1) |> Enum.sort()}
  end

  # The condition of a scope over `skillbook_documents t`, with placeholders from a number on.
  defp where(scope, number) do
    {vaults, vault_params} = list(scope.vaults, number)
    number = number + length(vault_params)
    {labels, label_params} = scope.labels |> Enum.map(&json/1) |> list(number)
    number = number + length(label_params)

    {folder, folder_params} =
      if scope.folder,
        do: {[under("t.folder", number)], [scope.folder, scope.folder <> "/"]},
        else: {[], []}

    number = number + length(folder_params)
    pairs = Enum.map(scope.tags, &{"tags", &1}) ++ scope.fields

    fields =
      for {_pair, at} <- Enum.with_index(pairs) do
        "exists (select 1 from skillbook_document_fields x where x.document_id = t.id " <>
          "and x.field = $#{number + 2 * at} and x.value = $#{number + 2 * at + 1})"
      end

    field_params = for {field, value} <- pairs, text <- [field, value], do: Note.key(text)

    {Enum.join(["t.vault in (#{vaults})", "t.labels in (#{labels})"] ++ folder ++ fields, " and "),
     vault_params ++ label_params ++ folder_params ++ field_params}
  end

  # No list is empty in SQL; one that is matches nothing.
  defp list([], _number), do: {"null", []}

  defp list(values, number),
    do: {Enum.map_join(number..(number + length(values) - 1), ", ", &"$#{&1}"), values}

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

  defp each_ok(items, fun), do: Skillbook.Options.each(items, fun)
end
