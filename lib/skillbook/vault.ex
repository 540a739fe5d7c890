defmodule Skillbook.Vault do
  @moduledoc """
  Folders of notes, and documents from elsewhere, that can be searched by what they say.

  A book takes them as `vaults: [...]`, each a path or options. Their documents are indexed in the book's database when it
  starts, and kept current from then on. [Vaults](docs/vaults.md) has the whole of it.

  ## Options

    * `:path` - a folder of notes, Obsidian's among them; short for `producer: {Skillbook.Vault.Folder, path: path}`
    * `:name` - what it is called, letters, digits, `_` and `-`; the folder's name unless told
    * `:labels` - visibility labels of all that is in it: who does not hold them all does not know of the vault
    * `:producer` - `{module, options}` with the behaviour `Skillbook.Vault.Producer`, instead of `:path`
    * `:watch` - whether changes are followed: `true` (the default), `false`, or `[poll: milliseconds]`

  A vault with neither path nor producer has what `put/3` puts into it.

  ## Who sees what

  A document carries the labels of its vault and its own, of `visibility_labels` in its frontmatter. What a profile does not hold
  does not exist for it: not in results, not in counts, suggestions and snippets, and not in the order. Scores come of the
  documents that the profile sees and of nothing else.
  """

  alias Skillbook.Support.{Closest, Options}

  alias Skillbook.{
    Book,
    Document,
    Frontmatter,
    Native,
    Profile,
    SQL,
    Store,
    StoreError,
    VaultError,
    View
  }

  alias Skillbook.Search.{Index, Query}
  alias Skillbook.Store.Edit
  alias Skillbook.Vault.{Folder, Hit, Indexer, Note, Table}

  @limit 10
  @most 100
  @suggested_from 5_000

  @doc "The largest `:limit` of a search."
  def most, do: @most

  # Reading

  @doc """
  The names of the vaults that a view's profile sees.
  """
  @spec names(View.t()) :: [String.t()]
  def names(%View{} = view), do: view |> seen() |> Enum.map(& &1.name)

  @doc """
  Finds documents: `{:ok, %{hits: [hit], total: count, match: how}}`, the best first.

  A query is words, `"phrases"` and prefixes such as `strat*`; no other character has a meaning. `match` is `:all`, or
  `:any` where no document has all that was asked for and those are given that have some. Words match in all their forms
  (English), in any case and without accents; prefixes match the beginning of words as they are written. Without a query
  (`nil`) the documents that pass the filters come in the order of their paths.

  ## Options

    * `:tags` - tags that it has, all of them; `project` finds `project/alpha` too
    * `:folder` - the folder that it is in or below
    * `:fields` - pairs of a field of the frontmatter and a value, all of them; one of a list's values is enough
    * `:vault` - the name of a vault
    * `:limit` - how many hits, 10 unless told, at most 100

  ## Examples

      iex> {:ok, _} = Skillbook.start_link(name: :vault_search, builtins: false, store: ":memory:", vaults: [[name: "drive"]])
      iex> :ok = Skillbook.Vault.put(:vault_search, "drive", %{id: "1", path: "Plan.md", content: "For the next quarter. #work"})
      iex> :ok = Skillbook.Vault.put(:vault_search, "drive", %{id: "2", path: "May.md", content: "Planning the quarter was slow."})
      iex> view = Skillbook.view(:vault_search)
      iex> {:ok, found} = Skillbook.Vault.search(view, "quarterly plans")
      iex> {found.total, found.match, for(hit <- found.hits, do: {hit.path, Skillbook.Vault.Hit.marked(hit, "[", "]")})}
      {2, :all, [{"Plan.md", "For the next [quarter]. #work"}, {"May.md", "[Planning] the [quarter] was slow."}]}
      iex> {:ok, found} = Skillbook.Vault.search(view, ~s("next quarter" slow), tags: ["work"])
      iex> {found.match, for(hit <- found.hits, do: hit.path)}
      {:any, ["Plan.md"]}
      iex> {:ok, found} = Skillbook.Vault.search(view, nil)
      iex> for hit <- found.hits, do: {hit.path, hit.title, hit.tags, hit.word_count}
      [{"May.md", "May", [], 5}, {"Plan.md", "Plan", ["work"], 5}]
  """
  @spec search(View.t(), String.t() | nil, keyword()) ::
          {:ok, %{hits: [Hit.t()], total: non_neg_integer(), match: :all | :any}}
          | {:error, Exception.t()}
  def search(%View{} = view, query, options \\ []) do
    with {:error, error} <- Options.validate(options, "a search of vaults", search_schema()),
         do: raise(error)

    with {:ok, sql} <- fetch_sql(view),
         {:ok, scope} <- scope(sql, view, options) do
      find(sql, scope, query, options[:limit] || @limit)
    end
  end

  defp search_schema do
    [
      tags: {"a list of texts", &Options.texts?/1},
      folder: {"text or nil", &(is_nil(&1) or Options.text?(&1))},
      fields:
        {"a list of pairs of texts",
         &(is_list(&1) and Enum.all?(&1, fn pair -> match?({_, _}, pair) end))},
      vault: {"text or nil", &(is_nil(&1) or Options.text?(&1))},
      limit: {"an integer from 1 to #{@most}", &(is_integer(&1) and &1 in 1..@most)}
    ]
  end

  defp find(sql, scope, nil, limit) do
    with {:ok, total, ids} <- Table.first(sql, scope, limit),
         {:ok, hits} <- hits(sql, scope, Enum.map(ids, &{&1, 0}), []) do
      {:ok, %{hits: hits, total: total, match: :all}}
    end
  end

  # A text without words is in no document.
  defp find(sql, scope, query, limit) do
    with {:ok, units} <- Query.parse(query),
         {:ok, {all, total, found}} <-
           Index.find(sql, scope.segments, units, scope.filters, {:level, limit}),
         {:ok, top} <- first(sql, found, limit),
         {:ok, hits} <- hits(sql, scope, top, units) do
      {:ok, %{hits: hits, total: total, match: if(all or total == 0, do: :all, else: :any)}}
    else
      :error -> {:ok, %{hits: [], total: 0, match: :all}}
      error -> error
    end
  end

  # Where several documents have the last score that is shown, their places decide.
  defp first(_sql, found, limit) when length(found) <= limit, do: {:ok, found}

  defp first(sql, found, limit) do
    {_, score} = List.last(found)
    {above, level} = Enum.split_while(found, &(elem(&1, 1) > score))

    with {:ok, level} <-
           Table.first_of(sql, Enum.map(level, &elem(&1, 0)), limit - length(above)),
         do: {:ok, above ++ Enum.map(level, &{&1, score})}
  end

  # Of whole numbers, as scores are compared.
  @parts 10_000

  defp hits(sql, scope, top, units) do
    with {:ok, documents} <- Table.fetch(sql, scope, Enum.map(top, &elem(&1, 0))) do
      found = for {id, score} <- top, document = documents[id], do: {score, document}
      snippets = found |> Enum.map(fn {_, document} -> document.content end) |> snippets(units)

      {:ok,
       for {{score, document}, {snippet, highlights}} <- Enum.zip(found, snippets) do
         fields =
           Map.merge(document, %{score: score / @parts, snippet: snippet, highlights: highlights})

         struct!(Hit, Map.delete(fields, :content))
       end
       |> Enum.sort_by(&{-&1.score, &1.vault, &1.path, &1.id})}
    end
  end

  defp snippets(texts, units) do
    {stems, prefixes} = Query.marks(units)
    Native.search_snippets(texts, stems, prefixes)
  end

  # What the profile sees of the vaults, and the filters.
  defp scope(sql, view, options) do
    with {:ok, vaults} <- named(view, options[:vault]),
         {:ok, segments} <- Index.segments(sql, "vault", Enum.map(vaults, & &1.name)) do
      folder = folder(options[:folder] || "")

      tags =
        for tag <- Keyword.get(options, :tags, []),
            do: tag |> String.trim_leading("#") |> String.trim("/")

      fields = Enum.map(tags, &{"tags", &1}) ++ Keyword.get(options, :fields, [])

      {:ok,
       %{
         segments: Enum.filter(segments, &(Profile.foreign(view.profile, &1.labels) == [])),
         filters:
           if(folder in ["", "."], do: [], else: [Table.folder(folder)]) ++
             Enum.map(fields, fn {field, value} -> Table.field(field, value) end)
       }}
    end
  end

  # No folder has a zero byte in its name, and no text of PostgreSQL one.
  defp folder(folder), do: folder |> String.replace(<<0>>, "\u{FFFD}") |> String.trim("/")

  defp named(view, name) do
    case {seen(view), name} do
      {[], _} ->
        {:error, %VaultError{kind: :no_vaults}}

      {vaults, nil} ->
        {:ok, vaults}

      {vaults, name} ->
        case Enum.filter(vaults, &(&1.name == name)) do
          [] ->
            {:error,
             %VaultError{kind: :unknown_vault, name: name, available: Enum.map(vaults, & &1.name)}}

          vaults ->
            {:ok, vaults}
        end
    end
  end

  defp seen(view),
    do: for(vault <- vaults(view), Profile.foreign(view.profile, vault.labels) == [], do: vault)

  defp vaults(%View{book: book}) do
    case Book.find(book) do
      nil -> []
      book -> book.vaults
    end
  end

  defp fetch_sql(%View{book: book}) do
    case book && Book.find(book) do
      %Book{store: {_, _}} = book -> {:ok, Book.sql(book)}
      _ -> {:error, %VaultError{kind: :no_vaults}}
    end
  end

  # Writing

  @doc """
  Writes a note as a new file of a vault: `{:ok, %{vault: name, path: path}}`. It is found by the next search.

  ## Fields

    * `:title` - its title, which is also its file's name where that can be. Required
    * `:content` - its text in Markdown. Required
    * `:folder` - the folder of the vault, made if it is not there
    * `:tags`, `:labels` - lists of texts for its frontmatter; the labels come with those that all the profile writes carries
    * `:fields` - pairs of a name and a text for its frontmatter
    * `:vault` - the vault's name, if there are several

  Nothing is written over what is there. A file of the name that the profile does not see, a note or not, moves the new one to the
  next free name: `Plan 2.md`.

      iex> folder = Path.join(System.tmp_dir!(), "skillbook_create_#{System.pid()}")
      iex> File.mkdir_p!(folder)
      iex> vault = [path: folder, name: "notes"]
      iex> {:ok, _} = Skillbook.start_link(name: :vault_create, builtins: false, store: ":memory:", vaults: [vault], watch: false)
      iex> view = Skillbook.view(:vault_create)
      iex> fields = %{title: "Plan: May", folder: "work", content: "Sow the beans.\\n", tags: ["garden"]}
      iex> Skillbook.Vault.create(view, fields)
      {:ok, %{vault: "notes", path: "work/Plan May.md"}}
      iex> File.read!(Path.join(folder, "work/Plan May.md"))
      "---\\ntitle: 'Plan: May'\\ntags:\\n- garden\\n---\\nSow the beans.\\n"
      iex> {:error, error} = Skillbook.Vault.create(view, fields)
      iex> error.kind
      :exists
      iex> {:ok, _} = File.rm_rf(folder)
  """
  @spec create(View.t(), map()) ::
          {:ok, %{vault: String.t(), path: String.t()}} | {:error, Exception.t()}
  def create(%View{} = view, fields) do
    labels = (Map.get(fields, :labels, []) ++ view.profile.labels) |> Enum.uniq() |> Enum.sort()

    with {:ok, sql} <- fetch_sql(view),
         {:ok, vault, root} <- writable(view, fields[:vault]),
         :ok <- Store.held(view, labels),
         {:ok, name} <- file_name(fields.title),
         {:ok, folder} <- folder_name(fields[:folder]) do
      text = fields |> frontmatter(labels, name) |> write(fields.content)
      path = if folder == "", do: name, else: folder <> "/" <> name
      place(sql, view, vault, root, path, text, 1)
    end
  end

  defp write([], content), do: content
  defp write(pairs, content), do: Frontmatter.write(pairs, content)

  defp frontmatter(fields, labels, name) do
    title = if fields.title == name, do: [], else: [{"title", fields.title}]

    tags =
      for tags <- [Map.get(fields, :tags, [])],
          tags != [],
          do: {"tags", Enum.map(tags, &String.trim_leading(&1, "#"))}

    labels = if labels == [], do: [], else: [{"visibility_labels", labels}]
    title ++ tags ++ labels ++ Map.get(fields, :fields, [])
  end

  @most_tries 1_000

  defp place(sql, view, vault, root, path, text, number) do
    id = if number == 1, do: path <> ".md", else: "#{path} #{number}.md"

    case Document.create(root, id, text) do
      {:ok, _file} ->
        with :ok <- take_in(sql, vault, id, text), do: {:ok, %{vault: vault.name, path: id}}

      {:error, %{kind: :exists}} when number < @most_tries ->
        case visible(sql, view, vault, id) do
          {:ok, true} -> {:error, %VaultError{kind: :exists, name: id}}
          {:ok, false} -> place(sql, view, vault, root, path, text, number + 1)
          error -> error
        end

      {:error, error} ->
        {:error, error}
    end
  end

  defp visible(sql, view, vault, id) do
    with {:ok, scope} <- scope(sql, view, vault: vault.name, fields: [{"*", id}]),
         {:ok, total, _ids} <- Table.first(sql, scope, 1),
         do: {:ok, total > 0}
  end

  # The indexer hears of it too, and finds it done.
  defp take_in(sql, vault, id, text), do: take_in(sql, vault, id, id, text, [])

  defp take_in(sql, vault, id, path, text, labels) do
    with {:ok, note, _warning} <- Note.read(id, path, text, labels),
         {:ok, _} <- Indexer.put(sql, vault, [%{note | size: byte_size(text)}]) do
      :ok
    else
      {:error, reason} when is_binary(reason) ->
        {:error, %VaultError{kind: :unreadable, name: path, reason: reason}}

      error ->
        error
    end
  end

  @doc """
  Changes the text of a note by one of the edits of `Skillbook.Store.update/4`; its frontmatter stays as it is.

  The note is named by its path, its file's name, its title or an alias: `{:ok, %{vault: name, path: path, changed: boolean}}`.

      iex> folder = Path.join(System.tmp_dir!(), "skillbook_edit_#{System.pid()}")
      iex> File.mkdir_p!(folder)
      iex> vault = [path: folder, name: "notes"]
      iex> {:ok, _} = Skillbook.start_link(name: :vault_edit, builtins: false, store: ":memory:", vaults: [vault], watch: false)
      iex> view = Skillbook.view(:vault_edit)
      iex> {:ok, _} = Skillbook.Vault.create(view, %{title: "Plan", content: "Sow the beans.\\n"})
      iex> Skillbook.Vault.edit(view, "plan", {:append, "Water them.\\n"})
      {:ok, %{vault: "notes", path: "Plan.md", changed: true}}
      iex> {:ok, %{hits: [hit]}} = Skillbook.Vault.search(view, "water")
      iex> hit.snippet
      "Sow the beans. Water them."
      iex> {:ok, _} = File.rm_rf(folder)
  """
  @spec edit(View.t(), String.t(), Edit.t(), keyword()) ::
          {:ok, %{vault: String.t(), path: String.t(), changed: boolean()}}
          | {:error, Exception.t()}
  def edit(%View{} = view, name, edit, options \\ []) do
    with {:ok, sql} <- fetch_sql(view),
         {:ok, document} <- resolve(sql, view, name, options[:vault]),
         {:ok, vault, root} <- writable(view, document.vault) do
      # One at a time, so that none is made to a text that another is about to replace.
      :global.trans(
        {{__MODULE__, root, document.id}, self()},
        fn -> change(sql, view, vault, root, document, edit) end,
        [node()]
      )
    end
  end

  defp change(sql, view, vault, root, document, edit) do
    with {:ok, text} <- read(view, root, document),
         {:ok, before} <- note(document, text),
         :ok <- readable(view, document, before),
         :ok <- owned(view, vault, document, before),
         {:ok, body} <- Edit.apply(edit, before.content, document.path),
         kept = binary_part(text, 0, byte_size(text) - byte_size(before.content)),
         changed = kept <> body,
         {:ok, edited} <- note(document, changed),
         :ok <- same_frontmatter(document, before, edited),
         {:ok, _} <-
           if(changed == text, do: {:ok, text}, else: Document.replace(root, document.id, changed)),
         :ok <- take_in(sql, vault, document.id, changed) do
      {:ok, %{vault: vault.name, path: document.path, changed: changed != text}}
    end
  end

  defp read(_view, root, document) do
    with {:error, %{kind: :missing}} <- Document.read(root, document.id),
         do: not_found(document.path, [])
  end

  defp note(document, text) do
    case Note.read(document.id, document.path, text) do
      {:ok, note, _warning} ->
        {:ok, note}

      {:error, reason} ->
        {:error, %VaultError{kind: :unreadable, name: document.path, reason: reason}}
    end
  end

  # The file may have been given labels since it was indexed.
  defp readable(view, document, note) do
    if Profile.foreign(view.profile, note.labels) == [],
      do: :ok,
      else: not_found(document.path, [])
  end

  defp owned(view, vault, document, note) do
    case view.profile.labels -- (note.labels ++ vault.labels) do
      [] -> :ok
      missing -> {:error, %StoreError{kind: :own_labels, name: document.path, labels: missing}}
    end
  end

  defp same_frontmatter(document, before, edited) do
    if before.frontmatter == edited.frontmatter,
      do: :ok,
      else: {:error, %VaultError{kind: :frontmatter, name: document.path}}
  end

  defp resolve(sql, view, name, vault) do
    with {:ok, scope} <- scope(sql, view, vault: vault, fields: [{"*", name}]),
         {:ok, _total, ids} <- Table.first(sql, scope, 6),
         {:ok, documents} <- Table.fetch(sql, scope, ids) do
      found = for id <- ids, document = documents[id], do: document
      exact = Enum.filter(found, &(name in [&1.path, Path.rootname(&1.path)]))

      case if(exact == [], do: found, else: exact) do
        [document] ->
          {:ok, document}

        [] ->
          with {:ok, titles} <- Table.titles(sql, scope), do: not_found(name, close(name, titles))

        several ->
          {:error,
           %VaultError{
             kind: :ambiguous,
             name: name,
             available: Enum.map(several, &"#{&1.path} in #{&1.vault}")
           }}
      end
    end
  end

  # Comparing with all of very many takes longer than it helps.
  defp close(name, titles), do: Closest.several(name, Enum.take(titles, @suggested_from), 3)

  defp not_found(name, close),
    do: {:error, %VaultError{kind: :not_found, name: name, available: close}}

  defp writable(view, name) do
    with {:ok, vaults} <- named(view, name) do
      case {vaults, Enum.filter(vaults, &folder?/1)} do
        {[vault], []} ->
          {:error, %VaultError{kind: :no_folder, name: vault.name}}

        {_, [%{producer: {Folder, options}} = vault]} ->
          {:ok, vault, options[:path]}

        {_, []} ->
          {:error, %VaultError{kind: :no_vaults}}

        {_, several} ->
          {:error, %VaultError{kind: :which, available: Enum.map(several, & &1.name)}}
      end
    end
  end

  defp folder?(%{producer: {Folder, _}}), do: true
  defp folder?(_vault), do: false

  # Other systems and Obsidian's links take fewer characters than this one.
  defp file_name(title) do
    name =
      title
      |> String.replace(~r/[\/\\:*?"<>|#^\[\]\x00-\x1f\x7f]+/u, " ")
      |> String.split()
      |> Enum.join(" ")

    name = name |> String.slice(0, 100) |> String.trim() |> String.trim_trailing(".")

    if name == "" or String.starts_with?(name, ".") or byte_size(name) > 240,
      do: {:error, %VaultError{kind: :name, name: title}},
      else: {:ok, name}
  end

  defp folder_name(nil), do: {:ok, ""}

  defp folder_name(folder) do
    names = folder |> String.trim("/") |> String.split("/")

    cond do
      folder in ["", "/"] ->
        {:ok, ""}

      Enum.all?(names, &match?({:ok, ^&1}, file_name(&1))) and "node_modules" not in names ->
        {:ok, Enum.join(names, "/")}

      true ->
        {:error, %VaultError{kind: :name, name: folder}}
    end
  end

  # For applications

  @doc """
  Puts a document into a vault, in place of the one of its id. Trusted code calls it, with the name of a running book.

  ## Fields

    * `:id` - what the application calls it. Required
    * `:content` - the whole text, with its frontmatter. Required
    * `:path` - where it stands for its readers; the id unless told
    * `:labels` - visibility labels beside those of the frontmatter and the vault
  """
  @spec put(atom(), String.t(), map()) :: :ok | {:error, Exception.t()}
  def put(book, vault, %{id: id, content: content} = document) do
    path = Map.get(document, :path, id)

    with {:ok, vault} <- known(book, vault),
         do: take_in(sql(book), vault, id, path, content, Map.get(document, :labels, []))
  end

  @doc "Takes a document of an application out of a vault; one that is not there is fine."
  @spec delete(atom(), String.t(), String.t()) :: :ok | {:error, Exception.t()}
  def delete(book, vault, id) do
    with {:ok, vault} <- known(book, vault),
         {:ok, _} <- Table.remove(sql(book), vault.name, [id]),
         do: :ok
  end

  @doc """
  Brings the index of a vault to what its producer has, and returns when it is so: `{:ok, counts}` with how many documents were
  `:indexed`, `:removed`, `:unchanged`, `:skipped` because they cannot be indexed, and `:failed`, which could not be read now, stay
  as they were and are tried again.
  """
  @spec sync(atom(), String.t()) :: {:ok, map()} | {:error, term()}
  def sync(book, vault) do
    with {:ok, %{producer: {_, _}} = vault} <- known(book, vault) do
      Indexer.sync(book, vault.name)
    else
      {:ok, _put} -> {:ok, %{indexed: 0, removed: 0, unchanged: 0, skipped: 0, failed: 0}}
      error -> error
    end
  end

  @doc """
  Sends the calling process `{:skillbook_vault, book, vault, counts}` after each time that a vault was indexed, all of it or what
  had changed; the counts are those of `sync/2`. While much is indexed, it also sends
  `{:skillbook_vault_progress, book, vault, %{done: count, total: count}}` after each batch.
  """
  @spec subscribe(atom()) :: :ok
  defdelegate subscribe(book), to: Indexer

  defp known(book, name) do
    vaults = Book.fetch!(book).vaults

    with nil <- Enum.find(vaults, &(&1.name == name)) do
      if vaults == [],
        do: {:error, %VaultError{kind: :no_vaults}},
        else:
          {:error,
           %VaultError{kind: :unknown_vault, name: name, available: Enum.map(vaults, & &1.name)}}
    else
      vault -> {:ok, vault}
    end
  end

  @spec sql(atom()) :: SQL.t()
  defp sql(book), do: book |> Book.fetch!() |> Book.sql()
end
