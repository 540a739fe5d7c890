defmodule Skillbook.Vault.Search do
  @moduledoc false
  # Searches the vaults that a view's profile sees, and resolves names of notes.
  #
  # Every read goes through a scope (`scope/3`): the segments of the index that the profile sees,
  # and the filters. `Skillbook.Vault.Table` reads nothing outside of it.

  alias Skillbook.{Book, Embedding, Native, Profile, VaultError, View}
  alias Skillbook.Search.{Index, Query}
  alias Skillbook.Support.{Closest, Options}
  alias Skillbook.Vault.{Config, Hit, Table}

  @default_limit 10
  @max_limit 100

  def max_limit, do: @max_limit

  def names(%View{} = view), do: view |> visible_vaults() |> Enum.map(& &1.name)

  def search(%View{} = view, query, options \\ []) do
    with {:error, error} <- Options.validate(options, "a search of vaults", schema()),
         do: raise(error)

    with {:ok, sql} <- fetch_sql(view),
         {:ok, scope} <- scope(sql, view, options),
         :ok <- check_place(query, options[:after]) do
      limit = options[:limit] || @default_limit

      if query,
        do: ranked(sql, view, scope, query, limit),
        else: listed(sql, view, scope, limit, place(options[:after]))
    end
  end

  # A rank changes with each write, so no page could begin after one.
  defp check_place(query, place) when query == nil or place == nil, do: :ok
  defp check_place(_query, _place), do: {:error, %VaultError{kind: :place}}

  defp place(%Hit{} = hit), do: {hit.vault, hit.path, hit.id}

  # Of a path that several documents share, the rest has the id as well.
  defp place(text) when is_binary(text) do
    [vault, path] = String.split(text, "/", parts: 2)

    case String.split(path, "//", parts: 2) do
      [path, id] -> {vault, path, id}
      [path] -> {vault, path, nil}
    end
  end

  defp place(nil), do: nil

  defp next(_hits, []), do: %{}

  defp next(hits, [following | _]) do
    last = List.last(hits)
    id = if following.path == last.path, do: "//" <> last.id, else: ""
    %{next: "#{last.vault}/#{last.path}#{id}"}
  end

  @longest_place 4_000

  @doc "Whether a value may be the option `:after` of a search."
  def place?(%Hit{}), do: true

  def place?(text) do
    is_binary(text) and byte_size(text) <= @longest_place and String.valid?(text) and
      text =~ ~r"\A[^/\0]+/[^\0]+\z"
  end

  defp schema do
    [
      tags: {"a list of texts", &Options.texts?/1},
      folder: {"text or nil", &(is_nil(&1) or Options.text?(&1))},
      fields:
        {"a list of pairs of texts",
         &(is_list(&1) and Enum.all?(&1, fn pair -> match?({_, _}, pair) end))},
      vault: {"text or nil", &(is_nil(&1) or Options.text?(&1))},
      after: {"a hit, the `:next` of a result or nil", &(is_nil(&1) or place?(&1))},
      limit: {"an integer from 1 to #{@max_limit}", &(is_integer(&1) and &1 in 1..@max_limit)}
    ]
  end

  defp listed(sql, view, scope, limit, place) do
    with {:ok, total, ids} <- Table.first(sql, scope, limit + 1, place),
         {:ok, hits} <- hits(sql, scope, Enum.map(ids, &{&1, 0}), []) do
      {hits, more} = Enum.split(hits, limit)
      {:ok, Map.merge(%{hits: marked(hits, view), total: total, match: :all}, next(hits, more))}
    end
  end

  defp ranked(sql, view, scope, query, limit) do
    with true <- byte_size(query) <= Query.max_bytes(),
         {:ok, clauses} <- Query.parse(query),
         meaning = Embedding.QueryVectors.meaning(Book.find(view.book), query),
         {:ok, {match, total, scored}} <-
           Index.find(sql, scope.segments, clauses, scope.filters, meaning, {:level, limit}),
         {:ok, scored} <- cut(sql, scored, limit),
         {:ok, hits} <- hits(sql, scope, scored, clauses) do
      {:ok, %{hits: marked(hits, view), total: total, match: match}}
    else
      false -> {:error, %VaultError{kind: :query}}
      # The query has no words.
      :error -> {:ok, %{hits: [], total: 0, match: :all}}
      error -> error
    end
  end

  defp marked(hits, view) do
    external = for %{external: true, name: name} <- visible_vaults(view), do: name
    for hit <- hits, do: %{hit | external: hit.vault in external}
  end

  # Among documents that share the score of the last hit, the first by vault and path are taken.
  defp cut(_sql, scored, limit) when length(scored) <= limit, do: {:ok, scored}

  defp cut(sql, scored, limit) do
    {_, score} = List.last(scored)
    {above, level} = Enum.split_while(scored, &(elem(&1, 1) > score))
    ids = Enum.map(level, &elem(&1, 0))

    with {:ok, ids} <- Table.first_of(sql, ids, limit - length(above)),
         do: {:ok, above ++ Enum.map(ids, &{&1, score})}
  end

  # The index computes scores as integers, so that equal ones are equal on every machine.
  @score_unit 10_000

  defp hits(sql, scope, scored, clauses) do
    with {:ok, documents} <- Table.fetch(sql, scope, Enum.map(scored, &elem(&1, 0))) do
      found = for {id, score} <- scored, document = documents[id], do: {score, document}
      snippets = found |> Enum.map(fn {_, document} -> document.content end) |> snippets(clauses)

      {:ok,
       for {{score, document}, {snippet, highlights}} <- Enum.zip(found, snippets) do
         found = %{score: score / @score_unit, snippet: snippet, highlights: highlights}
         struct!(Hit, document |> Map.delete(:content) |> Map.merge(found))
       end
       |> Enum.sort_by(&{-&1.score, &1.vault, &1.path, &1.id})}
    end
  end

  defp snippets(texts, clauses) do
    {stems, prefixes} = Query.marks(clauses)
    Native.search_snippets(texts, stems, prefixes)
  end

  # Scopes

  @doc "The segments that the view's profile sees, and the filters of the options of a search."
  def scope(sql, view, options) do
    with {:ok, vaults} <- visible_vaults(view, options[:vault]),
         {:ok, segments} <-
           Index.segments(sql, "vault", Enum.map(vaults, & &1.name), view.profile) do
      folder = folder(options[:folder] || "")

      tags =
        for tag <- Keyword.get(options, :tags, []),
            do: {"tags", tag |> String.trim_leading("#") |> String.trim("/")}

      fields = tags ++ Keyword.get(options, :fields, [])

      {:ok,
       %{
         segments: segments,
         filters:
           if(folder in ["", "."], do: [], else: [Table.folder(folder)]) ++
             Enum.map(fields, fn {field, value} -> Table.field(field, value) end)
       }}
    end
  end

  # PostgreSQL cannot store a zero byte, and no folder has one in its name.
  defp folder(folder), do: folder |> String.replace(<<0>>, "\u{FFFD}") |> String.trim("/")

  @doc "The vaults that the view's profile sees, or the one of a name."
  def visible_vaults(view, name) do
    case {visible_vaults(view), name} do
      {[], _name} -> {:error, %VaultError{kind: :no_vaults}}
      {vaults, nil} -> {:ok, vaults}
      {vaults, name} -> with {:ok, vault} <- Config.find(vaults, name), do: {:ok, [vault]}
    end
  end

  defp visible_vaults(%View{book: book, profile: profile}) do
    book = Book.find(book)

    for vault <- (book && book.of_parts.vaults) || [],
        Profile.reads?(profile, vault.tenant),
        Profile.foreign(profile, vault.labels) == [],
        do: vault
  end

  @doc "The handle of the database of a view's book."
  def fetch_sql(%View{book: book}) do
    case book && Book.find(book) do
      %Book{store: {_, _}} = book -> {:ok, Book.sql(book)}
      _ -> {:error, %VaultError{kind: :no_vaults}}
    end
  end

  # Names of notes

  # Comparing with more titles takes longer than a suggestion is worth.
  @max_compared_titles 5_000

  @doc "The document with a path, a file's name, a title or an alias; a path goes first."
  def resolve(sql, view, name, vault) do
    with {:ok, scope} <- scope(sql, view, vault: vault, fields: [{"*", name}]),
         {:ok, _total, ids} <- Table.first(sql, scope, 6),
         {:ok, documents} <- Table.fetch(sql, scope, ids) do
      found = for id <- ids, document = documents[id], do: document
      exact = Enum.filter(found, &(name in [&1.path, Path.rootname(&1.path)]))

      case if(exact == [], do: found, else: exact) do
        [document] ->
          {:ok, document}

        [] ->
          with {:ok, titles} <- Table.titles(sql, scope),
               do: not_found(name, suggestions(name, titles))

        several ->
          paths = Enum.map(several, &"#{&1.path} in #{&1.vault}")
          {:error, %VaultError{kind: :ambiguous, name: name, available: paths}}
      end
    end
  end

  defp suggestions(name, titles),
    do: Closest.several(name, Enum.take(titles, @max_compared_titles), 3)

  @doc "The error of a missing note."
  def not_found(name, suggestions \\ []),
    do: {:error, %VaultError{kind: :not_found, name: name, available: suggestions}}
end
