defmodule Skillbook.Vault do
  @moduledoc """
  Indexes folders of notes, and documents from elsewhere, for full-text search.

  A book takes vaults as `vaults: [...]`, each a path or options. Their documents are indexed in
  the book's database when it starts, and the index follows later changes. See
  [Vaults](vaults.md).

  ## Options of a vault

    * `:path` - a folder of notes, such as an Obsidian vault; short for
      `producer: {Skillbook.Vault.Folder, path: path}`
    * `:name` - letters, digits, blanks, `.`, `_` and `-`, at most 100 characters. Default: the
      folder's name
    * `:labels` - visibility labels of all its documents. A profile that does not hold all of them
      does not see the vault
    * `:producer` - `{module, options}` with the behaviour `Skillbook.Vault.Producer`, instead of
      `:path`
    * `:drive` - `[profile: id, folder: id]`, a folder in the drive of a profile's connection,
      instead of `:path`; see `Skillbook.Drive.Folder`. `:labels` is required with it
    * `:watch` - whether the index follows changes: `true` (the default), `false`, or
      `[poll: milliseconds]`

    * `:files` - whether commands may save files of any type in the folder and send those that are
      there: `true`, `[max_bytes: number]` with the largest file, or `false` (the default). `true`
      is 25 MiB. Files have the labels of the vault alone, so leave it out if some readers of the
      vault may not have all files in its folder

  A vault with neither path nor producer holds the documents that the application puts into it
  with `put/3`.

  ## Access

  A document has the labels of its vault and those of `visibility_labels` in its frontmatter.
  Documents with a label that the profile does not hold behave as if they did not exist: they are
  not in results, counts, suggestions or snippets, and do not influence the order. Scores are
  computed from the visible documents only.

  ## Examples

      iex> options = [name: VaultExample, store: ":memory:", vaults: [[name: "drive"]]]
      iex> {:ok, _} = Skillbook.start_link(options)
      iex> document = %{id: "1", path: "Plan.md", content: "# Plan\\n\\nSow the beans. #garden"}
      iex> :ok = Skillbook.Vault.put(VaultExample, "drive", document)
      iex> view = Skillbook.view(VaultExample)
      iex> {:ok, %{hits: [hit]}} = Skillbook.Vault.search(view, "bean", tags: ["garden"])
      iex> {hit.vault, hit.path, hit.title}
      {"drive", "Plan.md", "Plan"}
  """

  alias Skillbook.{Book, View}
  alias Skillbook.Support.Options
  alias Skillbook.Vault.File, as: Files
  alias Skillbook.Vault.{Config, Hit, Indexer, Search, Write}

  @doc "The largest `:limit` of a search."
  @spec max_limit() :: pos_integer()
  defdelegate max_limit(), to: Search

  @doc false
  @deprecated "Use Skillbook.Vault.max_limit/0"
  def most, do: max_limit()

  @doc "The names of the vaults that a view's profile sees."
  @spec names(Skillbook.view_or_book(), Skillbook.options()) :: [String.t()]
  def names(view_or_book, options \\ []),
    do: view_or_book |> View.only_from(options, "Skillbook.Vault.names/2") |> Search.names()

  @doc """
  Searches documents: `{:ok, %{hits: hits, total: count, match: match}}`, the best hits first.

  A query consists of words, `"phrases"` and prefixes such as `strat*`. `OR` between two of them
  means either, and `-` before one leaves out the documents that have it. No other character is an
  operator. A query without words, or only with words to leave out, has no hits. English function
  words ("the") count only in phrases, or if there are no other words. Words match in all their
  English forms, in any case and without accents. Prefixes match the beginning of words as they
  are written. Without a query (`nil`), all documents that pass the filters are returned, ordered
  by path.

  `match` is `:all` if the hits match the whole query. If no document does, `match` is `:any` and
  the hits match a part of it.

  If the book has an `:embedder`, documents are sorted by meaning as well, and documents of a
  similar meaning are found even if they have none of the words; then `match` is `:meaning`. A
  query with quotes, `OR` or a prefix finds only documents that match it, and excluded words
  always leave documents out. While vectors are missing or the embedder fails, words decide alone.

  ## Options

    * `:tags` - tags that the document has, all of them; `project` also matches `project/alpha`
    * `:folder` - the folder of the document, or one above it
    * `:fields` - pairs of a frontmatter field and a value, all of them; for a list one equal item
      is enough
    * `:vault` - the name of a vault
    * `:limit` - the largest number of hits, from 1 to 100. Default: 10
    * `:after` - without a query, lists the documents after this one: the last hit of the page
      before, or the `:next` that a result with further hits has

  ## Examples

      iex> options = [name: SearchExample, store: ":memory:", vaults: [[name: "drive"]]]
      iex> {:ok, _} = Skillbook.start_link(options)
      iex> plan = %{id: "1", path: "Plan.md", content: "For the next quarter. #work"}
      iex> may = %{id: "2", path: "May.md", content: "Planning the quarter was slow."}
      iex> for document <- [plan, may], do: Skillbook.Vault.put(SearchExample, "drive", document)
      iex> view = Skillbook.view(SearchExample)
      iex> {:ok, found} = Skillbook.Vault.search(view, "quarterly plans")
      iex> {found.total, found.match}
      {2, :all}
      iex> for hit <- found.hits, do: {hit.path, Skillbook.Vault.Hit.marked(hit, "[", "]")}
      [
        {"Plan.md", "For the next [quarter]. #work"},
        {"May.md", "[Planning] the [quarter] was slow."}
      ]
      iex> {:ok, found} = Skillbook.Vault.search(view, ~s("next quarter" slow), tags: ["work"])
      iex> {found.match, for(hit <- found.hits, do: hit.path)}
      {:any, ["Plan.md"]}
      iex> {:ok, found} = Skillbook.Vault.search(view, nil)
      iex> for hit <- found.hits, do: {hit.path, hit.title, hit.tags, hit.word_count}
      [{"May.md", "May", [], 5}, {"Plan.md", "Plan", ["work"], 5}]
      iex> {:ok, %{next: next}} = Skillbook.Vault.search(view, nil, limit: 1)
      iex> {:ok, found} = Skillbook.Vault.search(view, nil, limit: 1, after: next)
      iex> {next, for(hit <- found.hits, do: hit.path), found[:next]}
      {"drive/May.md", ["Plan.md"], nil}
  """
  @spec search(Skillbook.view_or_book(), String.t() | nil, Skillbook.options()) ::
          {:ok,
           %{
             required(:hits) => [Hit.t()],
             required(:total) => non_neg_integer(),
             required(:match) => :all | :any | :meaning,
             optional(:next) => String.t()
           }}
          | {:error, Exception.t()}
  def search(view_or_book, query, options \\ []) do
    type = [query: {{:or_nil, :text}, query}]
    {view, options} = View.from(view_or_book, options, "Skillbook.Vault.search/3", type)
    Search.search(view, query, options)
  end

  @doc """
  Writes a note as a new file of a vault: `{:ok, %{vault: name, path: path}}`.

  The next search finds it. An existing file is never overwritten: if the profile sees a note with
  that path, the error is `:exists`; any other file of that name moves the new note to the next
  free name, such as `Plan 2.md`.

  ## Fields

    * `:title` - the title; the file's name is derived from it. Required
    * `:content` - the text in Markdown. Required
    * `:folder` - the folder in the vault; it is created if it does not exist
    * `:tags`, `:labels` - lists of texts for the frontmatter; the profile's own labels are added
    * `:fields` - pairs of a name and a text for the frontmatter
    * `:vault` - the vault's name, if there are several

  ## Examples

      iex> folder = Path.join(System.tmp_dir!(), "skillbook_create_#{System.pid()}")
      iex> File.mkdir_p!(folder)
      iex> vault = [path: folder, name: "notes"]
      iex> options = [name: CreateNoteExample, store: ":memory:", vaults: [vault], watch: false]
      iex> {:ok, _} = Skillbook.start_link(options)
      iex> view = Skillbook.view(CreateNoteExample)
      iex> fields = %{title: "Plan: May", folder: "work", content: "Sow the beans.\\n"}
      iex> Skillbook.Vault.create(view, Map.put(fields, :tags, ["garden"]))
      {:ok, %{vault: "notes", path: "work/Plan May.md"}}
      iex> File.read!(Path.join(folder, "work/Plan May.md"))
      "---\\ntitle: 'Plan: May'\\ntags:\\n- garden\\n---\\nSow the beans.\\n"
      iex> {:error, error} = Skillbook.Vault.create(view, fields)
      iex> error.kind
      :exists
      iex> {:ok, _} = File.rm_rf(folder)
  """
  @spec create(Skillbook.view_or_book(), Skillbook.options(), Skillbook.options()) ::
          {:ok, %{vault: String.t(), path: String.t()}} | {:error, Exception.t()}
  def create(view_or_book, fields, options \\ []) do
    type = [fields: {:fields, fields}]
    view = View.only_from(view_or_book, options, "Skillbook.Vault.create/3", type)
    Write.create(view, Map.new(fields))
  end

  @doc """
  Reads the current text of a note: `{:ok, %{vault: name, path: path, title: title, tags: tags,
  content: text, external: boolean}}`.

  The note is named by its path, its file's name, its title or an alias. The content has no
  frontmatter. Documents that the application has put into a vault have no text to read.
  `:external` is true for documents of a drive, which others wrote.

  ## Options

    * `:vault` - the name of a vault

  ## Examples

      iex> folder = Path.join(System.tmp_dir!(), "skillbook_read_#{System.pid()}")
      iex> File.mkdir_p!(folder)
      iex> vault = [path: folder, name: "notes"]
      iex> options = [name: ReadNoteExample, store: ":memory:", vaults: [vault], watch: false]
      iex> {:ok, _} = Skillbook.start_link(options)
      iex> view = Skillbook.view(ReadNoteExample)
      iex> {:ok, _} = Skillbook.Vault.create(view, %{title: "Plan", content: "Sow the beans.\\n"})
      iex> {:ok, note} = Skillbook.Vault.read(view, "plan")
      iex> {note.path, note.title, note.content}
      {"Plan.md", "Plan", "Sow the beans.\\n"}
      iex> {:ok, _} = File.rm_rf(folder)
  """
  @spec read(Skillbook.view_or_book(), String.t(), Skillbook.options()) ::
          {:ok,
           %{
             vault: String.t(),
             path: String.t(),
             title: String.t(),
             tags: [String.t()],
             content: String.t(),
             external: boolean()
           }}
          | {:error, Exception.t()}
  def read(view_or_book, name, options \\ []) do
    {view, options} = from_note(view_or_book, name, options, "read/3")
    Write.read(view, name, options)
  end

  @doc """
  Changes the text of a note by an edit of `Skillbook.Store.update/4`.

  Returns `{:ok, %{vault: name, path: path, changed: boolean}}`. The note is named by its path,
  its file's name, its title or an alias. Its frontmatter does not change.

  ## Options

    * `:vault` - the name of a vault

  ## Examples

      iex> folder = Path.join(System.tmp_dir!(), "skillbook_edit_#{System.pid()}")
      iex> File.mkdir_p!(folder)
      iex> vault = [path: folder, name: "notes"]
      iex> options = [name: EditNoteExample, store: ":memory:", vaults: [vault], watch: false]
      iex> {:ok, _} = Skillbook.start_link(options)
      iex> view = Skillbook.view(EditNoteExample)
      iex> {:ok, _} = Skillbook.Vault.create(view, %{title: "Plan", content: "Sow the beans.\\n"})
      iex> Skillbook.Vault.edit(view, "plan", {:append, "Water them.\\n"})
      {:ok, %{vault: "notes", path: "Plan.md", changed: true}}
      iex> {:ok, %{hits: [hit]}} = Skillbook.Vault.search(view, "water")
      iex> hit.snippet
      "Sow the beans. Water them."
      iex> {:ok, _} = File.rm_rf(folder)
  """
  @spec edit(Skillbook.view_or_book(), String.t(), Skillbook.Store.edit(), Skillbook.options()) ::
          {:ok, %{vault: String.t(), path: String.t(), changed: boolean()}}
          | {:error, Exception.t()}
  def edit(view_or_book, name, edit, options \\ []) do
    {view, options} = from_note(view_or_book, name, options, "edit/4")
    Write.edit(view, name, edit, options)
  end

  @doc """
  Opens a file of a vault with `:files`, and returns the value of the function.

  A file has the address `vault:NAME/PATH`. The function gets `%{vault: name, path: path, size:
  bytes, device: device}`, whose device is read with functions of `:file` in the same process.

  Notes are hidden from profiles that lack their labels. Other files have the labels of the vault.
  Symbolic links are not followed.

  ## Options

    * `:max_bytes` - the largest file; a larger one is an error. Default: that of the vault, which
      is the most in any case

  ## Examples

      iex> folder = Path.join(System.tmp_dir!(), "skillbook_file_#{System.pid()}")
      iex> File.mkdir_p!(folder)
      iex> vault = [path: folder, name: "work", files: true]
      iex> options = [name: VaultFileExample, store: ":memory:", vaults: [vault], watch: false]
      iex> {:ok, _} = Skillbook.start_link(options)
      iex> view = Skillbook.view(VaultFileExample)
      iex> write = fn device, _max -> :file.write(device, <<1, 2, 3>>) end
      iex> Skillbook.Vault.save_file(view, "vault:work/data/a.bin", write)
      {:ok, %{vault: "work", path: "data/a.bin", size: 3}}
      iex> read = fn file -> :file.read(file.device, file.size) end
      iex> Skillbook.Vault.open_file(view, "vault:work/data/a.bin", read)
      {:ok, <<1, 2, 3>>}
      iex> {:error, error} = Skillbook.Vault.open_file(view, "vault:work/data/b.bin", read)
      iex> Exception.message(error)
      ~s(there is no file "vault:work/data/b.bin"; did you mean "vault:work/data/a.bin"?)
      iex> {:ok, _} = File.rm_rf(folder)
  """
  @spec open_file(
          Skillbook.view_or_book(),
          String.t(),
          (Skillbook.Vault.File.opened() -> value),
          Skillbook.options()
        ) :: value | {:error, Exception.t()}
        when value: term()
  def open_file(view_or_book, address, fun, options \\ []) do
    function = "open_file/4"
    schema = [max_bytes: {"a number of bytes", &Options.positive?/1}]
    {view, options} = from_address(view_or_book, address, options, function, schema)
    Files.open(view, address, options[:max_bytes], fun)
  end

  @doc """
  Saves a file in a vault with `:files`: `{:ok, %{vault: name, path: path, size: bytes}}`.

  The function gets an open file and the most bytes that it may write. It writes them with
  `:file.write/2` and returns `:ok`, or an error, which is then the result and leaves no file. The
  file appears under its name in one step. Folders are made.

  Names that end in `.md` and `.markdown` are refused: use `create/3` for notes.

  ## Options

    * `:replace` - whether an existing file is replaced; else it is an error. Default: `false`
  """
  @spec save_file(
          Skillbook.view_or_book(),
          String.t(),
          (:file.io_device(), pos_integer() -> :ok | {:error, Exception.t()}),
          Skillbook.options()
        ) ::
          {:ok, %{vault: String.t(), path: String.t(), size: non_neg_integer()}}
          | {:error, Exception.t()}
  def save_file(view_or_book, address, fun, options \\ []) do
    function = "save_file/4"
    schema = [replace: {"true or false", &is_boolean/1}]
    {view, options} = from_address(view_or_book, address, options, function, schema)
    Files.save(view, address, options, fun)
  end

  defp from_address(view_or_book, address, options, function, schema) do
    function = "Skillbook.Vault." <> function
    {view, options} = View.from(view_or_book, options, function, address: {:text, address})
    with {:error, error} <- Options.validate(options, function, schema), do: raise(error)
    {view, options}
  end

  defp from_note(view_or_book, name, options, function) do
    function = "Skillbook.Vault." <> function
    {view, options} = View.from(view_or_book, options, function, name: {:text, name})
    schema = [vault: {"text or nil", &(is_nil(&1) or Options.text?(&1))}]
    with {:error, error} <- Options.validate(options, function, schema), do: raise(error)
    {view, options}
  end

  @doc """
  Puts a document into a vault of a running book, or replaces the one with its id.

  For trusted code: there is no check of access.

  ## Fields

    * `:id` - the application's id of the document, at most 2,000 bytes. Required
    * `:content` - the whole text with its frontmatter, at most 2 MiB. Required
    * `:path` - the path that readers see, at most 2,000 bytes. Default: the id
    * `:labels` - visibility labels, in addition to those of the frontmatter and the vault
  """
  @spec put(Skillbook.book(), String.t(), Skillbook.options()) :: :ok | {:error, Exception.t()}
  def put(book, vault, document), do: Write.put(book, vault, Map.new(document))

  @doc "Removes a document that `put/3` added. A missing document is not an error."
  @spec delete(Skillbook.book(), String.t(), String.t()) :: :ok | {:error, Exception.t()}
  defdelegate delete(book, vault, id), to: Write

  @doc """
  Updates the index of a vault to match its producer, and returns when it is done.

  Returns `{:ok, counts}` with the number of documents that were

    * `:indexed` and `:removed`
    * `:unchanged`
    * `:skipped` - they cannot be indexed
    * `:failed` - they could not be read; the index keeps their last state and retries later
  """
  @spec sync(Skillbook.book(), String.t()) :: {:ok, map()} | {:error, term()}
  def sync(book, vault) do
    case Config.find(Book.fetch!(book).of_parts.vaults, vault) do
      {:ok, %{producer: nil}} -> {:ok, Indexer.counts()}
      {:ok, vault} -> Indexer.sync(book, vault.name)
      error -> error
    end
  end

  @doc """
  Sends the calling process messages about indexing.

    * `{:skillbook_vault, book, vault, counts}` after a vault or a change in it was indexed, with
      the counts of `sync/2`
    * `{:skillbook_vault_progress, book, vault, %{done: count, total: count}}` after each batch of
      a larger update
  """
  @spec subscribe(Skillbook.book()) :: :ok
  defdelegate subscribe(book), to: Indexer
end
