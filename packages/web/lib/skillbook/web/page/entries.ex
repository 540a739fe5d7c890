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
  alias Skillbook.{Entry, Profile, Store, View}

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
  # Fields of a row that are not in its entry.
  @own_fields [:author, :by, :version, :updated_at, :stored?, :snippet]

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
    kept = kept(view, text, chosen, all?, size)
    pages = max(1, length(kept.pages))
    at = page_number(query["page"], pages)

    rows =
      for page <- Enum.slice(kept.pages, at - 1, 1),
          item <- :erlang.binary_to_term(page),
          row = unpack(item, view),
          do: row

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

  defp kept(view, text, chosen, all?, size) do
    make = fn -> make(view, text, chosen, all?, size) end

    # Before the rows: those may be newer than their key, but never older.
    with {:ok, key} <- key(view, text, chosen, all?, size),
         do: Cache.keep(view.book, key, make),
         else: ({:error, _database} -> make.())
  end

  defp make(view, text, chosen, all?, size) do
    found = view |> all() |> search(view, text)
    {builtin, own} = Enum.split_with(found, &(&1.source == @builtin))
    {rows, counts} = filter(own, chosen)
    others = if builtin == [], do: [], else: builtin |> filter(chosen) |> elem(0)
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

  # Vectors, which a search reads too, are made in the background.
  defp key(view, text, chosen, all?, size) do
    vectors = if text != "", do: Embedded.progress(view)

    with {:ok, revision} <- revision(view),
         do: {:ok, {:entries, View.state(view), revision, vectors, text, chosen, all?, size}}
  end

  # Each write to the store raises its revision, also one to a disabled entry, which the view does
  # not have.
  defp revision(view) do
    case Read.database(view) do
      {:ok, _book, sql} -> Table.revision(sql)
      {:error, _no_store} -> {:ok, nil}
    end
  end

  defp pack(%{enabled: false} = row), do: row

  defp pack(%{stored?: stored?, snippet: snippet, name: name} = row) do
    if stored? or snippet, do: {name, Map.take(row, @own_fields)}, else: {name, %{}}
  end

  defp unpack({name, fields}, view) do
    with %Entry{} = entry <- View.find(view, name),
         do: entry |> row(nil) |> Map.merge(fields) |> put_switch(view)
  end

  defp unpack(row, view), do: put_switch(row, view)

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
    none = Map.new(@keys, fn {key, _name} -> {key, %{}} end)

    {rows, counts} =
      Enum.reduce(found, {[], none}, fn row, {rows, counts} ->
        case for {key, value} <- chosen, value not in values(row, key), do: key do
          [] -> {[row | rows], Enum.reduce(@keys, counts, &add(&2, elem(&1, 0), row))}
          [key] -> {rows, add(counts, key, row)}
          _more -> {rows, counts}
        end
      end)

    counts =
      Map.new(counts, fn {key, values} ->
        {key, Enum.sort_by(values, &{-elem(&1, 1), elem(&1, 0)})}
      end)

    {Enum.reverse(rows), counts}
  end

  defp add(counts, key, row) do
    case values(row, key) do
      [] -> counts
      values -> Map.update!(counts, key, fn found -> Enum.reduce(values, found, &increment/2) end)
    end
  end

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

  defp all(view) do
    stored = stored(view)
    by_name = Map.new(stored, &{&1.name, &1})
    entries = for entry <- View.entries(view), do: row(entry, by_name[entry.name])
    disabled = for one <- stored, not one.enabled, do: row(one)
    # The view's are sorted.
    if disabled == [],
      do: entries,
      else: Enum.sort_by(entries ++ disabled, &{&1.name, not &1.enabled})
  end

  # Of several with one name the one that a write changes: the tenant's own, then the oldest.
  defp stored(view) do
    home = Profile.home(view.profile)

    case Store.list(view, include_disabled: true) do
      {:ok, entries} ->
        entries |> Enum.sort_by(&{&1.name, &1.tenant != home}) |> Enum.uniq_by(& &1.name)

      {:error, _no_store} ->
        []
    end
  end

  defp row(%Entry{source: "store"} = entry, %{enabled: true} = stored) do
    %{
      row(entry, nil)
      | author: stored.author,
        updated_at: stored.updated_at,
        version: stored.version,
        by: stored.source,
        stored?: true
    }
  end

  defp row(%Entry{} = entry, _stored) do
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
