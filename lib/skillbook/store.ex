defmodule Skillbook.Store do
  @moduledoc """
  Stores the skills and notes that people and agents write while a book runs.

  They live in the database that the book's option `:store` names. Views, prompts, `get_skill` and
  searches read them like all other entries. An entry of the store hides an entry of a file that
  has its name or its title; deleting it makes the file's entry visible again. A write is in the
  next view that the writer makes.

  Every function takes a view of a running book and acts for the view's profile. A name may be an
  entry's name or, if no entry has that name, its exact title. [The store](store.md) describes
  commands, files and databases.

  ## Examples

      iex> {:ok, _} = Skillbook.start_link(name: StoreExample, store: ":memory:")
      iex> view = Skillbook.view(StoreExample, "default")
      iex> fields = %{title: "Milk", kind: :note, content: "Two bottles."}
      iex> {:ok, milk} = Skillbook.Store.create(view, fields)
      iex> {milk.name, milk.version}
      {"milk", 1}
      iex> edit = {:find_replace, "Two", "Three", all?: false}
      iex> {:ok, %{entry: milk}} = Skillbook.Store.update(view, "milk", %{edit: edit})
      iex> {milk.content, milk.version}
      {"Three bottles.", 2}
      iex> {:error, error} = Skillbook.Store.delete(view, "milc")
      iex> Exception.message(error)
      ~s(the store has no entry "milc"; did you mean milk?)

  ## Access

  Entries that a profile may not see behave as if they did not exist: they are not found, not
  suggested, and their names are free. If several visible entries share a name, the oldest one is
  used.

    * A profile cannot set a label that it does not hold, so it cannot remove one either
    * A profile must be able to see each entry that it writes
    * An entry that a profile writes gets the profile's `:labels` (`Skillbook.Profile`). The
      profile cannot leave them out, and it cannot change an entry that lacks one of them

  ## Options of all functions that write

    * `:by` - the kind of author: `:user` (the default), `:agent` or `:import`
    * `:now` - the time of the write, a `DateTime`; by default the current time
    * `:expected_version` - a version number: if the entry is at another version, nothing is
      written and the error is a `:version_conflict`. Not for `create/3`
    * `:dry_run` - whether nothing is written: all rules are checked, and the result is that of
      the write. Defaults to `false`

  ## Errors

  A broken rule is a `Skillbook.StoreError`, an unknown or invalid option a
  `Skillbook.OptionError`, and a failure of the database a `Skillbook.SQL.Error`. After an error
  nothing has changed, with one exception: an SQL error of the kind `:lost` does not say whether
  the write was made, wholly or not at all. After `{:ok, _}` the write is committed.

  A write inside a transaction of the same database (`Skillbook.SQL.transaction/2`) is an error,
  because other readers could not see it before that transaction commits.
  """

  alias Skillbook.{OptionError, SQL, ScheduleError, StoreError, Stored, View}
  alias Skillbook.Store.{Read, ScheduleRules, Version, Write}
  alias Skillbook.Support.Arguments

  @typedoc "A change of a text: the first place that equals a text, or all with `all?: true`."
  @type edit ::
          {:replace, String.t()}
          | {:find_replace, find :: String.t(), with :: String.t(), all?: boolean()}
          | {:append, String.t()}
          | {:prepend, String.t()}
          | {:delete, String.t()}

  @type error :: StoreError.t() | ScheduleError.t() | OptionError.t() | SQL.Error.t()

  @doc """
  Adds an entry.

  ## Fields

    * `:title` - one line of 1 to 200 characters. Required
    * `:content` - the text, at most 1 MiB. Required; it may be empty
    * `:name` - lowercase letters, digits and single dashes between them, at most 64 characters;
      by default derived from the title
    * `:kind` - `:skill` (the default) or `:note`. A note whose content has frontmatter with a
      name and a description becomes a skill
    * `:description` - at most 1,024 characters. A skill needs one, here or in its frontmatter
    * `:tags` - at most 32 of 64 characters
    * `:labels` - visibility labels, at most 64 of 128 characters; the profile's own and those
      in the content's frontmatter are added
    * `:include_in_prompt` - whether prompts list the entry; `true` by default
    * `:proactive_for`, `:excluded_for` - profile ids, at most 64 of 128 characters: always, or
      never, in the prompts of these profiles. Profiles that the content's frontmatter excludes
      are added
    * `:attachments` - at most 64 texts of 256 characters
    * `:schedule` - a cron expression. The entry then runs automatically for the profile that
      wrote it; see [Schedules](schedules.md#schedule-an-entry-of-the-store)
    * `:timezone` - the time zone of the schedule; UTC by default

  The entry begins at version 1, or after the last version of a deleted entry of its name, which
  an `:expected_version` may still mean.

  A field that is `nil` counts as missing. Other fields of the content's frontmatter, such as
  `allowed-tools`, have an effect as in a file. Content with a mistake in a
  [restriction](tenants.md#mistakes-in-a-restriction) is an error of the kind `:restriction`.

  ## Examples

      iex> {:ok, _} = Skillbook.start_link(name: CreateExample, store: ":memory:")
      iex> view = Skillbook.view(CreateExample, "default")
      iex> fields = %{
      ...>   title: "Weekly Report",
      ...>   description: "How the report is built",
      ...>   content: "# Steps",
      ...>   tags: ["finance"]
      ...> }
      iex> {:ok, entry} = Skillbook.Store.create(view, fields, by: :agent)
      iex> {entry.name, entry.kind, entry.source, entry.version}
      {"weekly-report", :skill, :agent, 1}
      iex> {:error, error} = Skillbook.Store.create(view, fields)
      iex> Exception.message(error)
      ~s(the store already has an entry "weekly-report". Update it, or choose another name)
  """
  @spec create(Skillbook.view_or_book(), Skillbook.options(), Skillbook.options()) ::
          {:ok, Stored.t()} | {:error, error()}
  def create(view_or_book, fields, options \\ []) do
    {view, options} = from(view_or_book, options, "create/3", fields: {:fields, fields})
    Write.create(view, Map.new(fields), options)
  end

  @doc """
  Changes fields and content of an entry; returns the entry and its previous state.

  `changes` takes the fields of `create/3` except `:name`, `:kind` and `:content`. An empty
  `:schedule` removes the schedule and its time zone. The content changes by an `:edit`:

    * `{:replace, text}` - replaces the whole content
    * `{:find_replace, find, with, all?: boolean}` - replaces the first occurrence of a text, or
      all of them
    * `{:append, text}`, `{:prepend, text}` - adds a text at the end, or at the beginning, on
      lines of its own
    * `{:delete, text}` - removes the first occurrence of a text

  An edit applies to the content at the time of the write. A text that does not occur is an error.
  If nothing changes, there is no new version, and `:entry` equals `:before`.

  ## Examples

      iex> {:ok, _} = Skillbook.start_link(name: UpdateExample, store: ":memory:")
      iex> view = Skillbook.view(UpdateExample, "default")
      iex> {:ok, _} = Skillbook.Store.put_note(view, "Milk", "Two bottles.")
      iex> changes = %{tags: ["shopping"], edit: {:append, "And cream."}}
      iex> {:ok, changed} = Skillbook.Store.update(view, "Milk", changes)
      iex> {changed.entry.content, changed.before.version, changed.entry.version}
      {"Two bottles.\\nAnd cream.", 1, 2}
      iex> changes = %{edit: {:delete, "And creme."}}
      iex> {:error, error} = Skillbook.Store.update(view, "milk", changes)
      iex> Exception.message(error)
      ~s(the text "And creme." does not occur in "milk"; the closest line is line 2: ) <>
        ~s("And cream.". Copy the text exactly)
      iex> options = [expected_version: 1]
      iex> {:error, error} = Skillbook.Store.update(view, "milk", %{tags: []}, options)
      iex> {error.kind, error.actual}
      {:version_conflict, 2}
  """
  @spec update(Skillbook.view_or_book(), String.t(), Skillbook.options(), Skillbook.options()) ::
          {:ok, %{entry: Stored.t(), before: Stored.t()}} | {:error, error()}
  def update(view_or_book, name, changes, options \\ []) do
    types = [name: {:text, name}, changes: {:fields, changes}]
    {view, options} = from(view_or_book, options, "update/4", types)
    Write.update(view, name, Map.new(changes), options)
  end

  @doc """
  Deletes an entry and returns its last state. Its versions stay for a year, see the
  option `:keep` of a book; `restore/4` brings it back.

      iex> {:ok, _} = Skillbook.start_link(name: DeleteExample, store: ":memory:")
      iex> view = Skillbook.view(DeleteExample, "default")
      iex> {:ok, _} = Skillbook.Store.put_note(view, "Milk", "Two bottles.")
      iex> {:ok, milk} = Skillbook.Store.delete(view, "milk", now: ~U[2026-03-01 09:30:00Z])
      iex> milk.content
      "Two bottles."
      iex> {:error, error} = Skillbook.Store.fetch(view, "milk")
      iex> Exception.message(error)
      ~s(the entry "milk" was deleted at 2026-03-01T09:30:00Z. ) <>
        ~s(Restore one of its versions, or create a new entry)
      iex> {:ok, milk} = Skillbook.Store.restore(view, "milk", 1)
      iex> {milk.content, milk.version}
      {"Two bottles.", 3}
  """
  @spec delete(Skillbook.view_or_book(), String.t(), Skillbook.options()) ::
          {:ok, Stored.t()} | {:error, error()}
  def delete(view_or_book, name, options \\ []) do
    {view, options} = from(view_or_book, options, "delete/3", name: {:text, name})
    Write.delete(view, name, options)
  end

  @doc """
  Adds a disabled entry to the catalog again. An enabled entry does not change.

      iex> {:ok, _} = Skillbook.start_link(name: EnableExample, store: ":memory:")
      iex> view = Skillbook.view(EnableExample, "default")
      iex> {:ok, _} = Skillbook.Store.put_note(view, "Milk", "Two bottles.")
      iex> {:ok, milk} = Skillbook.Store.disable(view, "milk")
      iex> {milk.enabled, milk.version}
      {false, 2}
      iex> {:ok, milk} = Skillbook.Store.enable(view, "milk")
      iex> {milk.enabled, milk.version}
      {true, 3}
  """
  @spec enable(Skillbook.view_or_book(), String.t(), Skillbook.options()) ::
          {:ok, Stored.t()} | {:error, error()}
  def enable(view_or_book, name, options \\ []) do
    {view, options} = from(view_or_book, options, "enable/3", name: {:text, name})
    Write.enable(view, name, options)
  end

  @doc "Removes an entry from the catalog until `enable/3`. A disabled entry does not change."
  @spec disable(Skillbook.view_or_book(), String.t(), Skillbook.options()) ::
          {:ok, Stored.t()} | {:error, error()}
  def disable(view_or_book, name, options \\ []) do
    {view, options} = from(view_or_book, options, "disable/3", name: {:text, name})
    Write.disable(view, name, options)
  end

  @doc """
  Writes an earlier version of an entry as its newest version.

  Content and fields come from the earlier version, except whether the entry is enabled. A deleted
  entry exists again.

      iex> {:ok, _} = Skillbook.start_link(name: RestoreExample, store: ":memory:")
      iex> view = Skillbook.view(RestoreExample, "default")
      iex> {:ok, _} = Skillbook.Store.put_note(view, "Milk", "Two bottles.")
      iex> {:ok, _} = Skillbook.Store.put_note(view, "Milk", "Three bottles.")
      iex> {:ok, milk} = Skillbook.Store.restore(view, "milk", 1)
      iex> {milk.content, milk.version}
      {"Two bottles.", 3}
  """
  @spec restore(Skillbook.view_or_book(), String.t(), pos_integer(), Skillbook.options()) ::
          {:ok, Stored.t()} | {:error, error()}
  def restore(view_or_book, name, number, options \\ []) do
    {view, options} = from(view_or_book, options, "restore/4", name: {:text, name})
    Write.restore(view, name, number, options)
  end

  @doc """
  Writes a note: replaces the content of the entry with that name or title, or adds a new note
  whose name is derived from the title.

  Returns the entry and its previous state as `update/4` does; `:before` of a new note is `nil`.

  Besides the options of all functions that write, `:fields` is a map of the fields of `update/4`.

      iex> {:ok, _} = Skillbook.start_link(name: NoteExample, store: ":memory:")
      iex> view = Skillbook.view(NoteExample, "default")
      iex> options = [fields: %{tags: ["family"]}]
      iex> {:ok, added} = Skillbook.Store.put_note(view, "Meal plan", "Soup.", options)
      iex> {added.entry.name, added.entry.tags, added.before}
      {"meal-plan", ["family"], nil}
      iex> {:ok, changed} = Skillbook.Store.put_note(view, "Meal plan", "Rice.")
      iex> {changed.before.version, changed.entry.version, changed.entry.tags}
      {1, 2, ["family"]}
      iex> {:ok, same} = Skillbook.Store.put_note(view, "Meal plan", "Rice.")
      iex> same.entry == same.before
      true
  """
  @spec put_note(Skillbook.view_or_book(), String.t(), String.t(), Skillbook.options()) ::
          {:ok, %{entry: Stored.t(), before: Stored.t() | nil}} | {:error, error()}
  def put_note(view_or_book, title, content, options \\ []) do
    {view, options} = from(view_or_book, options, "put_note/4")
    Write.put_note(view, title, content, options)
  end

  @doc """
  Adds or changes many entries, such as those of an import, in few transactions.

  Each item has the fields of `create/3`. If the profile sees an entry of the store with its name,
  the item changes that entry as `update/4` does, with the item's content; the kind stays.
  Otherwise it is added.

  Returns a result for each item, in their order: `{:ok, %{entry: entry, before: before}}` as
  `put_note/4`, or `{:error, error}`. An error concerns its item only; the other items are
  written. It takes the options `:by`, `:now` and `:dry_run` of all functions that write. With
  `existing: :refuse`, an item whose name is taken is an error of the kind `:exists`.

  ## Examples

      iex> {:ok, _} = Skillbook.start_link(name: PutAllExample, store: ":memory:")
      iex> view = Skillbook.view(PutAllExample, "default")
      iex> notes = for name <- ["Milk", "Bread"], do: %{title: name, kind: :note, content: "Two."}
      iex> {:ok, [{:ok, milk}, {:ok, _bread}]} = Skillbook.Store.put_all(view, notes)
      iex> {milk.entry.name, milk.before}
      {"milk", nil}
      iex> notes = [%{title: "Milk", content: "Three."}, %{title: "Rye"}]
      iex> {:ok, [{:ok, milk}, {:error, error}]} = Skillbook.Store.put_all(view, notes)
      iex> {milk.before.content, milk.entry.content, Exception.message(error)}
      {"Two.", "Three.", "an entry needs the content: the text"}
  """
  @spec put_all(Skillbook.view_or_book(), [Skillbook.options()], Skillbook.options()) ::
          {:ok, [{:ok, %{entry: Stored.t(), before: Stored.t() | nil}} | {:error, error()}]}
          | {:error, error()}
  def put_all(view_or_book, entries, options \\ []) do
    {view, options} = from(view_or_book, options, "put_all/3", entries: {:list, entries})
    for entry <- entries, do: check!("put_all/3", entries: {:fields, entry})
    Write.put_all(view, entries, options)
  end

  @doc """
  Returns an entry, enabled or disabled.

      iex> {:ok, _} = Skillbook.start_link(name: FetchExample, store: ":memory:")
      iex> view = Skillbook.view(FetchExample, "default")
      iex> {:ok, _} = Skillbook.Store.put_note(view, "Milk", "Two bottles.")
      iex> {:ok, milk} = Skillbook.Store.fetch(view, "milk")
      iex> milk.content
      "Two bottles."
  """
  @spec fetch(Skillbook.view_or_book(), String.t(), Skillbook.options()) ::
          {:ok, Stored.t()} | {:error, error()}
  def fetch(view_or_book, name, options \\ []) do
    view = only_from(view_or_book, options, "fetch/3", name: {:text, name})
    Read.fetch(view, name)
  end

  @doc """
  Lists entries by name, without their contents.

  ## Options

    * `:kind` - `:skill` or `:note`
    * `:tags` - only entries with all of these tags, in any case; `:tag` takes one of them
    * `:source` - `:user`, `:agent` or `:import`
    * `:include_disabled` - also lists disabled entries; `false` by default
    * `:limit` - the largest number of entries; all by default
    * `:after` - lists the entries after this one: the last entry of the page before, or its name.
      Whatever was written since, no other entry is skipped or listed twice

  A page costs as much as its entries, however many the store has. For a profile with `:skills`,
  with more than 100 `:grants` or with entries of more than 40 sets of labels, it also reads those
  between them that the profile does not see. Without `:limit` the list costs as much as all.

  ## Examples

      iex> {:ok, _} = Skillbook.start_link(name: ListExample, store: ":memory:")
      iex> view = Skillbook.view(ListExample, "default")
      iex> fields = %{tags: ["Shopping"]}
      iex> {:ok, _} = Skillbook.Store.put_note(view, "Milk", "Two.", fields: fields)
      iex> {:ok, _} = Skillbook.Store.put_note(view, "Car", "Blue.")
      iex> {:ok, entries} = Skillbook.Store.list(view)
      iex> Enum.map(entries, & &1.name)
      ["car", "milk"]
      iex> {:ok, entries} = Skillbook.Store.list(view, tags: ["shopping"])
      iex> Enum.map(entries, & &1.name)
      ["milk"]
      iex> {:ok, ^entries} = Skillbook.Store.list(view, tag: "shopping")
      iex> {:ok, [car]} = Skillbook.Store.list(view, limit: 1)
      iex> {:ok, [milk]} = Skillbook.Store.list(view, limit: 1, after: car)
      iex> {milk.name, Skillbook.Store.list(view, limit: 1, after: milk)}
      {"milk", {:ok, []}}
  """
  @spec list(Skillbook.view_or_book(), Skillbook.options()) ::
          {:ok, [Stored.t()]} | {:error, error()}
  def list(view_or_book, options \\ []) do
    {view, options} = from(view_or_book, options, "list/2")
    Read.list(view, options)
  end

  @doc """
  Lists the versions of an entry, the newest first, without their contents. Deleted entries keep
  their versions until the option `:keep` of the book ends them.

  Versions with labels that the profile does not hold are left out.

  ## Options

    * `:limit` - the largest number of versions; all by default
    * `:after` - lists the versions before this one: the last version of the page before, or its
      number

  ## Examples

      iex> {:ok, _} = Skillbook.start_link(name: HistoryExample, store: ":memory:")
      iex> view = Skillbook.view(HistoryExample, "default")
      iex> {:ok, _} = Skillbook.Store.put_note(view, "Milk", "Two bottles.")
      iex> {:ok, _} = Skillbook.Store.disable(view, "milk", by: :agent)
      iex> {:ok, versions} = Skillbook.Store.history(view, "milk")
      iex> Enum.map(versions, &{&1.version, &1.action, &1.by})
      [{2, :disable, :agent}, {1, :create, :user}]
      iex> {:ok, [second]} = Skillbook.Store.history(view, "milk", limit: 1)
      iex> {:ok, [first]} = Skillbook.Store.history(view, "milk", limit: 1, after: second)
      iex> {first.version, Skillbook.Store.history(view, "milk", after: first)}
      {1, {:ok, []}}
  """
  @spec history(Skillbook.view_or_book(), String.t(), Skillbook.options()) ::
          {:ok, [Version.t()]} | {:error, error()}
  def history(view_or_book, name, options \\ []) do
    {view, options} = from(view_or_book, options, "history/3", name: {:text, name})
    Read.history(view, name, options)
  end

  @doc """
  Returns one version of an entry with its content, also of a deleted entry.

      iex> {:ok, _} = Skillbook.start_link(name: VersionExample, store: ":memory:")
      iex> view = Skillbook.view(VersionExample, "default")
      iex> {:ok, _} = Skillbook.Store.put_note(view, "Milk", "Two bottles.")
      iex> {:ok, _} = Skillbook.Store.put_note(view, "Milk", "Three bottles.")
      iex> {:ok, version} = Skillbook.Store.version(view, "milk", 1)
      iex> version.entry.content
      "Two bottles."
      iex> {:error, error} = Skillbook.Store.version(view, "milk", 9)
      iex> Exception.message(error)
      ~s("milk" has no version 9 that this profile can read; its last version is 2)
  """
  @spec version(Skillbook.view_or_book(), String.t(), pos_integer(), Skillbook.options()) ::
          {:ok, Version.t()} | {:error, error()}
  def version(view_or_book, name, number, options \\ []) do
    view = only_from(view_or_book, options, "version/4", name: {:text, name})
    Read.version(view, name, number)
  end

  @doc """
  Compares two versions of an entry.

  Returns a unified diff of the contents, `""` if they are equal, and the other fields that
  differ, each with its value `:from` the one version and `:to` the other.

      iex> {:ok, _} = Skillbook.start_link(name: DiffExample, store: ":memory:")
      iex> view = Skillbook.view(DiffExample, "default")
      iex> {:ok, _} = Skillbook.Store.put_note(view, "Milk", "Two bottles.\\n")
      iex> changes = %{edit: {:replace, "Three bottles.\\n"}, tags: ["shopping"]}
      iex> {:ok, _} = Skillbook.Store.update(view, "milk", changes)
      iex> {:ok, diff} = Skillbook.Store.diff(view, "milk", 1, 2)
      iex> diff.content
      "@@ -1 +1 @@\\n-Two bottles.\\n+Three bottles.\\n"
      iex> diff.fields
      [%{field: :tags, from: [], to: ["shopping"]}]
  """
  @spec diff(
          Skillbook.view_or_book(),
          String.t(),
          pos_integer(),
          pos_integer(),
          Skillbook.options()
        ) ::
          {:ok, %{content: String.t(), fields: [%{field: atom(), from: term(), to: term()}]}}
          | {:error, error()}
  def diff(view_or_book, name, from, to, options \\ []) do
    view = only_from(view_or_book, options, "diff/5", name: {:text, name})
    Read.diff(view, name, from, to)
  end

  @doc false
  # As `list/2`; also returns the value of `:after` for the next page, `nil` after the last one.
  @spec page(View.t(), keyword()) ::
          {:ok, [Stored.t()], next :: String.t() | nil} | {:error, error()}
  defdelegate page(view, options), to: Read

  defp from(view_or_book, options, function, arguments \\ []),
    do: View.from(view_or_book, options, "Skillbook.Store." <> function, arguments)

  defp check!(function, arguments),
    do: Arguments.check!("Skillbook.Store." <> function, arguments)

  defp only_from(view_or_book, options, function, arguments),
    do: View.only_from(view_or_book, options, "Skillbook.Store." <> function, arguments)

  @doc false
  # Whether the view's profile may change an entry with this name and these labels.
  @spec check_owned(View.t(), Stored.t() | Skillbook.Entry.t() | map()) ::
          :ok | {:error, StoreError.t()}
  defdelegate check_owned(view, entry), to: Write

  @doc false
  # Whether the view's profile may set these labels.
  @spec check_held_labels(View.t(), [String.t()]) :: :ok | {:error, StoreError.t()}
  defdelegate check_held_labels(view, labels), to: Write

  @doc false
  # Whether the book has a profile that can run an entry by its schedule.
  @spec runs?(View.t(), Stored.t()) :: boolean()
  defdelegate runs?(view, entry), to: ScheduleRules
end
