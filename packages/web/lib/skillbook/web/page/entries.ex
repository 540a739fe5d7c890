defmodule Skillbook.Web.Page.Entries do
  @moduledoc false
  # The entries that a view shows, with those of the store that are disabled, as rows of a list:
  # searched, filtered and counted.
  #
  # All of them are gone through once for each state of the view and of the store. The book keeps
  # the result as names, so that another page, or the same one for another caller with the same
  # rights, reads only its own entries.

  alias Skillbook.Book.Cache
  alias Skillbook.Embedding.Entries, as: Embedded
  alias Skillbook.Store.{Read, Table}
  alias Skillbook.Support.Number
  alias Skillbook.{Entry, Store, View}

  @facets [
    {:kind, "Kind"},
    {:source, "Source"},
    {:domain, "Domain"},
    {:tag, "Tag"},
    {:label, "Label"},
    {:by, "Written by"},
    {:author, "Author"},
    {:enabled, "State"}
  ]
  @keys for {key, _label} <- @facets, do: {key, Atom.to_string(key)}
  @most_hits 1_000
  @most_query 500
  @builtin "builtin"

  @doc "The facets: their keys and labels."
  def facets, do: @facets

  @doc """
  Reads a page, of `size` rows, of the list of a query: `:rows`, the best first; `:total`, how
  many match; `:page` and `:pages`; `:counts`, for each facet its values with how many rows they
  would leave; `:chosen`, the values that are set; `:query`.

  Built-in entries are left out, unless the query has `builtin=1` or a text, or nothing else
  matches its filters; `:builtin` is how many they are, and `:builtin?` whether they are shown.
  They come last, except in a search.
  """
  @spec read(View.t(), map(), pos_integer()) :: map()
  def read(view, query, size) do
    text = query |> Map.get("q", "") |> text() |> String.trim() |> String.slice(0, @most_query)
    chosen = for {key, name} <- @keys, value = chosen(query[name]), into: %{}, do: {key, value}
    all? = query["builtin"] == "1" or text != ""
    # Before the rows: those may be newer than their key, but never older.
    revision = revision(view)
    kept = kept(view, revision, text, chosen, all?, size)
    pages = max(1, length(kept.pages))
    at = page_number(query["page"], pages)

    rows = kept.pages |> Enum.slice(at - 1, 1) |> Enum.flat_map(&rows_of(&1, view, revision))

    %{
      query: text,
      chosen: chosen,
      rows: rows,
      total: kept.total,
      builtin: kept.builtin,
      builtin?: kept.builtin?,
      page: at,
      pages: pages,
      counts: :erlang.binary_to_term(kept.counts)
    }
  end

  defp page_number(text, pages) do
    case is_binary(text) && Number.integer(text) do
      {number, ""} -> number |> max(1) |> min(pages)
      _other -> 1
    end
  end

  # Vectors, which a search reads too, are made in the background.
  defp kept(view, revision, text, chosen, all?, size) do
    make = fn -> make(view, revision, text, chosen, all?, size) end
    vectors = if text != "", do: Embedded.progress(view)

    with {:ok, number} <- revision,
         key = {:entries, View.state(view), number, vectors, text, chosen, all?, size},
         do: Cache.keep(view.book, key, make),
         else: ({:error, _database} -> make.())
  end

  defp make(view, revision, text, chosen, all?, size) do
    found = view |> all(revision) |> search(view, text)
    {builtin, own} = Enum.split_with(found, &(&1.source == @builtin))
    {rows, counts} = filter(own, chosen)
    others = Enum.filter(builtin, &(excluding(&1, chosen) == []))
    all? = all? or (rows == [] and chosen != %{})
    # The order of a search is that of its hits.
    found = if text == "", do: own ++ builtin, else: found
    {rows, counts} = if all? and builtin != [], do: filter(found, chosen), else: {rows, counts}

    pages =
      rows
      |> Enum.chunk_every(size)
      |> Enum.map(&(&1 |> Enum.map(fn row -> pack(row) end) |> :erlang.term_to_binary()))

    %{
      total: length(rows),
      builtin: length(others),
      builtin?: all?,
      pages: pages,
      counts: :erlang.term_to_binary(counts)
    }
  end

  # Each write to the store raises its revision, also one to a disabled entry, which the view does
  # not have.
  defp revision(view) do
    case Read.database(view) do
      {:ok, _book, sql} -> Table.revision(sql)
      {:error, _no_store} -> {:ok, nil}
    end
  end

  # What is read of the store for a profile's rights, once for each of its revisions.
  defp of_store(_view, {:ok, nil}, _what, _read), do: %{}
  defp of_store(_view, _revision, [], _read), do: %{}

  defp of_store(view, revision, what, read) do
    with {:ok, number} <- revision,
         key = {what, view |> View.state() |> Tuple.delete_at(0), number},
         {:ok, found} <- Cache.keep_ok(view.book, key, read),
         do: found,
         else: ({:error, _database} -> %{})
  end

  # A page has the names of its entries, and reads only these again.
  defp pack(%{enabled: false} = row), do: row
  defp pack(row), do: {row.name, row.stored?, row.snippet}

  defp rows_of(page, view, revision) do
    items = :erlang.binary_to_term(page)
    names = for {name, true, _snippet} <- items, do: name
    stored = of_store(view, revision, names, fn -> Read.named_one_of(view, names) end)
    for item <- items, row = unpack(item, view, stored), do: put_switch(row, view)
  end

  defp unpack({name, _stored?, snippet}, view, stored) do
    with %Entry{} = entry <- View.find(view, name),
         do: %{(entry |> row(nil) |> put_stored(stored[name])) | snippet: snippet}
  end

  defp unpack(row, _view, _stored), do: row

  defp put_stored(%{stored?: true} = row, %{enabled: true} = stored) do
    author = {stored.source, stored.author}
    %{put_author(row, author) | updated_at: stored.updated_at, version: stored.version}
  end

  defp put_stored(row, _stored), do: row

  defp put_author(row, {by, author}), do: %{row | by: by, author: author}
  defp put_author(row, nil), do: row

  # Not kept with the list: profiles with the same rights may have other labels of their own.
  defp put_switch(row, view) do
    {tenant, row} = Map.pop!(row, :tenant)
    entry = %{name: row.name, labels: row.labels, tenant: tenant}
    %{row | switch?: row.by != nil and Store.check_owned(view, entry) == :ok}
  end

  defp text(text) when is_binary(text), do: text
  defp text(_list), do: ""

  defp chosen(value) when is_binary(value) and value != "", do: value
  defp chosen(_value), do: nil

  # The rows that match, and the counts. A count is the number of rows after a click on its value,
  # so a row that only one facet excludes counts for that facet.
  defp filter(found, chosen) do
    by_excluding = Enum.group_by(found, &excluding(&1, chosen))
    rows = Map.get(by_excluding, [], [])

    counts =
      for {key, _name} <- @keys, into: %{} do
        others = Map.get(by_excluding, [key], [])
        counts = count(rows, key, count(others, key, %{}))
        {key, Enum.sort_by(counts, fn {value, count} -> {-count, value} end)}
      end

    {rows, counts}
  end

  defp excluding(_row, chosen) when chosen == %{}, do: []

  defp excluding(row, chosen),
    do: for({key, value} <- chosen, value not in values(row, key), do: key)

  defp count(rows, key, counts), do: Enum.reduce(rows, counts, &add(&1, key, &2))
  defp add(row, key, counts), do: row |> values(key) |> Enum.reduce(counts, &increment/2)

  defp increment(value, found), do: Map.update(found, value, 1, &(&1 + 1))

  defp values(row, :kind), do: [Atom.to_string(row.kind)]
  defp values(row, :source), do: [row.source]
  defp values(row, :domain), do: List.wrap(row.domain)
  defp values(row, :tag), do: Enum.uniq(row.tags)
  defp values(row, :label), do: Enum.uniq(row.labels)
  defp values(row, :by), do: if(row.by, do: [Atom.to_string(row.by)], else: [])
  defp values(row, :author), do: List.wrap(row.author)
  defp values(row, :enabled), do: [if(row.enabled, do: "enabled", else: "disabled")]

  # Rows

  defp all(view, revision) do
    authors = of_store(view, revision, :authors, fn -> Read.authors(view) end)
    # Some at a time, since all of them with their texts are much larger than their rows.
    entries = view |> View.stream() |> Enum.map(&row(&1, authors))
    disabled = disabled(view)
    # The view's are sorted.
    if disabled == [],
      do: entries,
      else: Enum.sort_by(entries ++ disabled, &{&1.name, not &1.enabled})
  end

  # Those that are not behind an enabled one of the same name.
  defp disabled(view) do
    with {:ok, disabled} <- Read.disabled(view),
         names = disabled |> Enum.map(& &1.name) |> Enum.uniq(),
         {:ok, stored} <- Read.named_one_of(view, names) do
      for {_name, %{enabled: false} = one} <- stored, do: row(one)
    else
      {:error, _no_store} -> []
    end
  end

  defp row(%Entry{source: "store"} = entry, %{} = authors),
    do: entry |> row(nil) |> put_author(authors[entry.name])

  defp row(%Entry{} = entry, _authors) do
    %{
      name: entry.name,
      title: entry.title,
      description: entry.description,
      kind: entry.kind,
      domain: entry.domain,
      source: entry.source,
      trust: entry.trust,
      tags: entry.tags,
      labels: entry.labels,
      author: author(entry),
      by: nil,
      schedule: entry.schedule,
      enabled: true,
      tenant: Entry.tenant(entry),
      switch?: false,
      stored?: entry.source == "store",
      version: nil,
      updated_at: nil,
      snippet: nil
    }
  end

  @doc "The author in the frontmatter of an entry, or nil."
  @spec author(Entry.t()) :: String.t() | nil
  def author(entry) do
    Enum.find([entry.data["author"], entry.metadata["author"]], &(is_binary(&1) and &1 != ""))
  end

  # A disabled entry of the store.
  defp row(stored) do
    %{
      name: stored.name,
      title: stored.title,
      description: stored.description,
      kind: stored.kind,
      domain: nil,
      source: "store",
      trust: if(stored.source == :import, do: :low, else: :medium),
      tags: stored.tags,
      labels: stored.labels,
      author: stored.author,
      by: stored.source,
      schedule: stored.schedule,
      enabled: false,
      tenant: stored.tenant,
      switch?: false,
      stored?: true,
      version: stored.version,
      updated_at: stored.updated_at,
      snippet: nil
    }
  end

  # Search

  # The index finds whole words and misspelt ones. Words that are still being typed are looked for
  # as parts of names, titles, descriptions and tags.
  defp search(rows, _view, ""), do: rows

  defp search(rows, view, text) do
    hits = Skillbook.search(view, text, limit: @most_hits)
    ranks = hits |> Enum.with_index() |> Map.new(fn {hit, at} -> {hit.name, {at, hit}} end)
    words = text |> String.downcase() |> String.split()

    rows
    |> Enum.flat_map(&found(&1, ranks, words))
    |> Enum.sort_by(fn {rank, row} -> {rank, row.name} end)
    |> Enum.map(&elem(&1, 1))
  end

  defp found(%{enabled: true} = row, ranks, words) when is_map_key(ranks, row.name) do
    {rank, hit} = ranks[row.name]
    # A name that begins with the text is meant, whatever its rank.
    rank =
      if String.starts_with?(String.downcase(row.name), Enum.join(words, " ")), do: -1, else: rank

    [{rank, %{row | snippet: {hit.snippet, hit.highlights}}}]
  end

  defp found(row, _ranks, words) do
    text =
      [row.name, row.title || "", row.description | row.tags]
      |> Enum.join("\n")
      |> String.downcase()

    if Enum.all?(words, &String.contains?(text, &1)),
      do: [{if(String.contains?(row.name, words), do: 0, else: @most_hits), row}],
      else: []
  end
end
