defmodule Skillbook.Store do
  @moduledoc """
  Skills and notes that people and agents write while a book runs.

  They live in the database that the book's option `:store` names, and are read as all other entries are: by views,
  prompts, `get_skill` and searches. An entry of the store goes before one of a file that has its name or its title;
  deleting it brings the file's back. What was written is in the next view that the writer makes.

  Every function takes a view of a running book, and works on behalf of its profile. A name may be an entry's name or,
  if no entry has that name, its title, exactly. See [the store](store.md) for the whole.

  ## Who may do what

  What a profile does not see does not exist for it: it is not found, it is not suggested, and its name is free. Of
  entries that share a name, each profile works with the oldest that it sees.

    * Nobody sets a label that they do not hold, and so nobody removes one
    * What a profile writes it must see itself
    * What a profile writes carries its `:labels` (`Skillbook.Profile`). It can neither leave them out nor change an entry that
      lacks one of them

  ## Options of all that write

    * `:by` - on whose word: `:user` (the default), `:agent` or `:import`
    * `:now` - a `DateTime`; the present by default
    * `:expected_version` - a number: if the entry is at another version, nothing is done and the error is a
      `:version_conflict`. Not for `create/3`

  ## Errors

  What a rule does not allow is a `Skillbook.StoreError`, options that there are not a `Skillbook.OptionError`, a database that
  cannot do it a `Skillbook.SQL.Error`. After an error nothing has changed. What was acknowledged is committed.

  A write inside a `fun` of `Skillbook.SQL.transaction/2` is an error: it is acknowledged only when all can see it, which is
  after that.

  ## Examples

      iex> {:ok, _} = Skillbook.start_link(name: StoreExample, store: ":memory:")
      iex> view = Skillbook.view(StoreExample, "default")
      iex> {:ok, milk} = Skillbook.Store.create(view, %{title: "Milk", kind: :note, content: "Two bottles."})
      iex> {milk.name, milk.version}
      {"milk", 1}
      iex> {:ok, %{entry: milk}} = Skillbook.Store.update(view, "milk", %{edit: {:find_replace, "Two", "Three", all?: false}})
      iex> {milk.content, milk.version}
      {"Three bottles.", 2}
      iex> {:ok, diff} = Skillbook.Store.diff(view, "milk", 1, 2)
      iex> diff.content
      "@@ -1 +1 @@\\n-Two bottles.\\n\\\\ No newline at end of file\\n+Three bottles.\\n\\\\ No newline at end of file\\n"
      iex> {:error, error} = Skillbook.Store.delete(view, "milc")
      iex> Exception.message(error)
      ~s(the store has no entry "milc"; did you mean milk?)
  """

  alias Skillbook.Support.{Closest, Diff, Options}

  alias Skillbook.{
    Book,
    Entry,
    Native,
    OptionError,
    Profile,
    SQL,
    Schedule,
    ScheduleError,
    StoreError,
    Stored,
    View
  }

  alias Skillbook.Store.{Authors, Edit, Fields, Follower, ScheduleRules, Table, Version}

  @type error :: StoreError.t() | ScheduleError.t() | OptionError.t() | SQL.Error.t()

  # The less it is trusted, the further behind.
  @sources [:user, :agent, :import]

  @compared ~w(kind title description tags labels include_in_prompt proactive_for excluded_for attachments schedule timezone
             enabled)a

  @doc """
  Adds an entry.

  ## Fields

    * `:title` - one line of 1 to 200 characters. Required
    * `:content` - the text, at most 1 MiB. Required; it may be empty
    * `:name` - small letters, digits and single dashes between them, at most 64 characters; made of the title by default
    * `:kind` - `:skill` (the default) or `:note`. A note whose content has frontmatter with a name and a description is a skill
    * `:description` - at most 1,024 characters. A skill needs one, here or in the frontmatter of its content
    * `:tags` - at most 32 of 64 characters
    * `:labels` - visibility labels, at most 64 of 128 characters; those of the profile come with them
    * `:include_in_prompt` - whether it belongs into prompts; `true` by default
    * `:proactive_for`, `:excluded_for` - ids of profiles, at most 64 of 128 characters
    * `:attachments` - at most 64 texts of 256 characters
    * `:schedule` - a cron expression, by which it runs by itself on behalf of the profile, as [Schedules](schedules.md#entries-of-the-store)
      has it
    * `:timezone` - the time zone of the schedule; UTC by default

  A field that is `nil` is left out.

      iex> {:ok, _} = Skillbook.start_link(name: CreateExample, store: ":memory:")
      iex> view = Skillbook.view(CreateExample, "default")
      iex> fields = %{title: "Weekly Report", description: "How the report is built", content: "# Steps", tags: ["finance"]}
      iex> {:ok, entry} = Skillbook.Store.create(view, fields, by: :agent)
      iex> {entry.name, entry.kind, entry.source, entry.version}
      {"weekly-report", :skill, :agent, 1}
      iex> {:error, error} = Skillbook.Store.create(view, fields)
      iex> Exception.message(error)
      ~s(the store has an entry "weekly-report" already. Update it, or take another name)
  """
  @spec create(View.t(), map(), keyword()) :: {:ok, Stored.t()} | {:error, error()}
  def create(%View{} = view, fields, options \\ []) when is_map(fields) do
    with {:ok, options} <- read_options(options, [:by, :now]),
         {:ok, fields} <- Fields.create(fields) do
      written =
        write(view, options, fields.name, &with(:ok <- free(&1), do: insert(&1, :added, fields)))

      with {:ok, {:added, stored}} <- written, do: {:ok, stored}
    end
  end

  @doc """
  Changes an entry: fields as `create/3` has them, except `:name`, `:kind` and `:content`, and the content by an `:edit`. An
  empty text as `:schedule` takes that and its time zone away.

    * `{:replace, text}` - the text is the new content
    * `{:find_replace, find, with, all?: boolean}` - puts `with` in the place of the text `find`, where it occurs first or wherever
    * `{:append, text}`, `{:prepend, text}` - puts the text behind, or before, the content
    * `{:delete, text}` - takes the text out, where it occurs first

  Edits apply to the content as it is when they are made, and what is not named stays. A text that is looked for and not there is
  an error. Gives the entry and what it was before; if nothing would differ, both are the same and there is no new version.

      iex> {:ok, _} = Skillbook.start_link(name: UpdateExample, store: ":memory:")
      iex> view = Skillbook.view(UpdateExample, "default")
      iex> {:ok, :added, _} = Skillbook.Store.put_note(view, "Milk", "Two bottles.\\n")
      iex> {:ok, changed} = Skillbook.Store.update(view, "Milk", %{tags: ["shopping"], edit: {:append, "And cream.\\n"}})
      iex> {changed.entry.content, changed.entry.tags, changed.before.version, changed.entry.version}
      {"Two bottles.\\nAnd cream.\\n", ["shopping"], 1, 2}
      iex> {:error, error} = Skillbook.Store.update(view, "milk", %{edit: {:delete, "And creme."}})
      iex> Exception.message(error)
      ~s(the text "And creme." is not in "milk"; the nearest line is line 2: "And cream.". Write the text exactly as it stands there)
      iex> {:error, error} = Skillbook.Store.update(view, "milk", %{tags: []}, expected_version: 1, now: ~U[2026-03-01 09:30:00Z])
      iex> {error.kind, error.actual}
      {:version_conflict, 2}
  """
  @spec update(View.t(), String.t(), map(), keyword()) ::
          {:ok, %{entry: Stored.t(), before: Stored.t()}} | {:error, error()}
  def update(%View{} = view, name, changes, options \\ [])
      when is_binary(name) and is_map(changes) do
    with {:ok, options} <- read_options(options),
         {:ok, changes} <- Fields.update(changes) do
      change(view, name, :update, options, &edit(view, &1, changes))
    end
  end

  defp edit(view, before, changes) do
    {edit, fields} = Map.pop(changes, :edit)

    with {:ok, content} <- edited(edit, before),
         :ok <- keeps_own(view, fields) do
      {:ok, struct!(before, Map.put(fields, :content, content))}
    end
  end

  defp edited(nil, before), do: {:ok, before.content}

  defp edited(edit, before) do
    with {:ok, content} <- Edit.apply(edit, before.content, before.name),
         do: Fields.content(content)
  end

  defp keeps_own(view, %{labels: labels}) do
    case Enum.reject(view.profile.labels, &(&1 in labels)) do
      [] -> :ok
      missing -> {:error, %StoreError{kind: :own_labels, labels: missing}}
    end
  end

  defp keeps_own(_view, _fields), do: :ok

  @doc """
  Deletes an entry and gives it as it was. Its versions stay, and `restore/4` brings it back.

      iex> {:ok, _} = Skillbook.start_link(name: DeleteExample, store: ":memory:")
      iex> view = Skillbook.view(DeleteExample, "default")
      iex> {:ok, :added, _} = Skillbook.Store.put_note(view, "Milk", "Two bottles.")
      iex> {:ok, milk} = Skillbook.Store.delete(view, "milk", now: ~U[2026-03-01 09:30:00Z])
      iex> milk.content
      "Two bottles."
      iex> {:error, error} = Skillbook.Store.fetch(view, "milk")
      iex> Exception.message(error)
      ~s(the entry "milk" was deleted at 2026-03-01T09:30:00Z. Restore one of its versions, or create it anew)
      iex> {:ok, milk} = Skillbook.Store.restore(view, "milk", 1)
      iex> {milk.content, milk.version}
      {"Two bottles.", 3}
  """
  @spec delete(View.t(), String.t(), keyword()) :: {:ok, Stored.t()} | {:error, error()}
  def delete(%View{} = view, name, options \\ []) when is_binary(name) do
    with {:ok, options} <- read_options(options),
         {:ok, deleted} <-
           change(view, name, :delete, options, &{:ok, %{&1 | deleted_at: options.now}}),
         do: {:ok, deleted.before}
  end

  @doc """
  Puts an entry into the catalog that was disabled. One that is enabled stays as it is.

      iex> {:ok, _} = Skillbook.start_link(name: EnableExample, store: ":memory:")
      iex> view = Skillbook.view(EnableExample, "default")
      iex> {:ok, :added, _} = Skillbook.Store.put_note(view, "Milk", "Two bottles.")
      iex> {:ok, milk} = Skillbook.Store.disable(view, "milk")
      iex> {milk.enabled, milk.version}
      {false, 2}
      iex> {:ok, milk} = Skillbook.Store.enable(view, "milk")
      iex> {milk.enabled, milk.version}
      {true, 3}
  """
  @spec enable(View.t(), String.t(), keyword()) :: {:ok, Stored.t()} | {:error, error()}
  def enable(%View{} = view, name, options \\ []), do: switch(view, name, :enable, true, options)

  @doc "Takes an entry out of the catalog, until it is enabled. One that is disabled stays as it is."
  @spec disable(View.t(), String.t(), keyword()) :: {:ok, Stored.t()} | {:error, error()}
  def disable(%View{} = view, name, options \\ []),
    do: switch(view, name, :disable, false, options)

  defp switch(view, name, action, enabled, options) when is_binary(name) do
    with {:ok, options} <- read_options(options),
         {:ok, changed} <- change(view, name, action, options, &{:ok, %{&1 | enabled: enabled}}),
         do: {:ok, changed.entry}
  end

  @doc """
  Makes a version of an entry the newest: a new version with its content and all of its fields, but whether it is enabled. A deleted
  entry is there again.

      iex> {:ok, _} = Skillbook.start_link(name: RestoreExample, store: ":memory:")
      iex> view = Skillbook.view(RestoreExample, "default")
      iex> {:ok, :added, _} = Skillbook.Store.put_note(view, "Milk", "Two bottles.")
      iex> {:ok, :updated, _} = Skillbook.Store.put_note(view, "Milk", "Three bottles.")
      iex> {:ok, milk} = Skillbook.Store.restore(view, "milk", 1)
      iex> {milk.content, milk.version}
      {"Two bottles.", 3}
  """
  @spec restore(View.t(), String.t(), pos_integer(), keyword()) ::
          {:ok, Stored.t()} | {:error, error()}
  def restore(%View{} = view, name, number, options \\ []) when is_binary(name) do
    with {:ok, options} <- read_options(options) do
      restored =
        write(view, options, name, fn write ->
          with {:ok, before} <- resolve_any(write, name),
               :ok <- may_change(write, before),
               {:ok, version} <- find_version(write.sql, view, before, number),
               kept = Map.take(before, [:version, :enabled, :author, :updated_at]),
               restored = struct!(version.entry, Map.put(kept, :deleted_at, nil)),
               {:ok, stored} <- put(write, :restore, before, restored),
               do: {:ok, {before, stored}}
        end)

      with {:ok, {_before, stored}} <- restored, do: {:ok, stored}
    end
  end

  @doc """
  Writes a note: over the content of the entry of that name or title if there is one, else a new note with a name made of the
  title.

  Takes, besides the options of all that write, `:fields`: a map of those of `update/4`.

      iex> {:ok, _} = Skillbook.start_link(name: NoteExample, store: ":memory:")
      iex> view = Skillbook.view(NoteExample, "default")
      iex> {:ok, :added, note} = Skillbook.Store.put_note(view, "What we eat", "Vegetables.", fields: %{tags: ["family"]})
      iex> {note.name, note.tags}
      {"what-we-eat", ["family"]}
      iex> {:ok, :updated, note} = Skillbook.Store.put_note(view, "What we eat", "Vegetables, on weekdays.")
      iex> {note.version, note.tags}
      {2, ["family"]}
      iex> {:ok, :unchanged, note} = Skillbook.Store.put_note(view, "What we eat", "Vegetables, on weekdays.")
      iex> note.version
      2
  """
  @spec put_note(View.t(), String.t(), String.t(), keyword()) ::
          {:ok, :added | :updated | :unchanged, Stored.t()} | {:error, error()}
  def put_note(%View{} = view, title, content, options \\ []) do
    with {:ok, options} <- read_options(options, [:by, :now, :expected_version, :fields]),
         {:ok, title} <- Fields.title(title),
         {:ok, content} <- Fields.content(content),
         {:ok, fields} <- Fields.update(options.fields) do
      written =
        write(view, options, title, fn write ->
          with {:ok, before} <- find(write, title),
               do: write_note(write, before, title, Map.put(fields, :edit, {:replace, content}))
        end)

      case written do
        {:ok, {:added, stored}} -> {:ok, :added, stored}
        {:ok, {stored, stored}} -> {:ok, :unchanged, stored}
        {:ok, {_before, stored}} -> {:ok, :updated, stored}
        {:error, error} -> {:error, error}
      end
    end
  end

  defp write_note(%{expected_version: nil} = write, nil, title, fields) do
    {{:replace, content}, fields} = Map.pop(fields, :edit)
    fields = Map.merge(%{title: title}, fields)

    with {:ok, name} <- free_name(write, title),
         do:
           insert(write, :added, Map.merge(fields, %{name: name, kind: :note, content: content}))
  end

  defp write_note(_write, nil, title, _fields), do: {:error, {:not_found, title}}

  defp write_note(write, before, _title, changes),
    do: change(write, before, :update, &edit(write.view, &1, changes))

  @doc """
  An entry, enabled or not.

      iex> {:ok, _} = Skillbook.start_link(name: FetchExample, store: ":memory:")
      iex> view = Skillbook.view(FetchExample, "default")
      iex> {:ok, :added, _} = Skillbook.Store.put_note(view, "Milk", "Two bottles.")
      iex> {:ok, milk} = Skillbook.Store.fetch(view, "milk")
      iex> milk.content
      "Two bottles."
  """
  @spec fetch(View.t(), String.t()) :: {:ok, Stored.t()} | {:error, error()}
  def fetch(%View{} = view, name) when is_binary(name) do
    read(view, &resolve(&1, name))
  end

  @doc """
  The entries in the order of their names, without their contents.

  ## Options

    * `:kind` - `:skill` or `:note`
    * `:tag` - only those that have this tag, in any case
    * `:source` - `:user`, `:agent` or `:import`
    * `:include_disabled` - also those that are disabled; `false` by default

  ## Examples

      iex> {:ok, _} = Skillbook.start_link(name: ListExample, store: ":memory:")
      iex> view = Skillbook.view(ListExample, "default")
      iex> {:ok, :added, _} = Skillbook.Store.put_note(view, "Milk", "Two bottles.", fields: %{tags: ["Shopping"]})
      iex> {:ok, :added, _} = Skillbook.Store.put_note(view, "Car", "Blue.")
      iex> {:ok, entries} = Skillbook.Store.list(view)
      iex> Enum.map(entries, & &1.name)
      ["car", "milk"]
      iex> {:ok, entries} = Skillbook.Store.list(view, tag: "shopping")
      iex> Enum.map(entries, & &1.name)
      ["milk"]
  """
  @spec list(View.t(), keyword()) :: {:ok, [Stored.t()]} | {:error, error()}
  def list(%View{} = view, options \\ []) do
    with :ok <- Options.validate(options, "a list of the store", list_schema()),
         {:ok, sql} <- database(view),
         {:ok, rows} <- Table.list(sql) do
      entries =
        rows
        |> Enum.filter(&listed?(&1, options))
        |> visible(view)
        |> Enum.sort_by(&{&1.name, &1.id})

      {:ok, entries}
    end
  end

  defp listed?(stored, options) do
    tag = options[:tag] && String.downcase(options[:tag])

    (stored.enabled or Keyword.get(options, :include_disabled, false)) and
      options[:kind] in [nil, stored.kind] and options[:source] in [nil, stored.source] and
      (is_nil(tag) or Enum.any?(stored.tags, &(String.downcase(&1) == tag)))
  end

  defp list_schema do
    [
      kind: {":skill, :note or nil", &(&1 in [nil, :skill, :note])},
      tag: {"text or nil", &(is_nil(&1) or Options.text?(&1))},
      source: {":user, :agent, :import or nil", &(&1 in [nil | @sources])},
      include_disabled: {"a boolean", &is_boolean/1}
    ]
  end

  @doc """
  The versions of an entry, the newest first, without their contents; also of an entry that was deleted.

  A version that had labels which the profile does not hold is left out.

      iex> {:ok, _} = Skillbook.start_link(name: HistoryExample, store: ":memory:")
      iex> view = Skillbook.view(HistoryExample, "default")
      iex> {:ok, :added, _} = Skillbook.Store.put_note(view, "Milk", "Two bottles.")
      iex> {:ok, _} = Skillbook.Store.disable(view, "milk", by: :agent)
      iex> {:ok, versions} = Skillbook.Store.history(view, "milk")
      iex> Enum.map(versions, &{&1.version, &1.action, &1.by})
      [{2, :disable, :agent}, {1, :create, :user}]
  """
  @spec history(View.t(), String.t()) :: {:ok, [Version.t()]} | {:error, error()}
  def history(%View{} = view, name) when is_binary(name) do
    read(view, fn %{sql: sql} = read ->
      with {:ok, stored} <- resolve_any(read, name),
           {:ok, versions} <- Table.versions(sql, stored),
           do: {:ok, visible_versions(versions, view)}
    end)
  end

  @doc """
  One version of an entry; also of an entry that was deleted.

      iex> {:ok, _} = Skillbook.start_link(name: VersionExample, store: ":memory:")
      iex> view = Skillbook.view(VersionExample, "default")
      iex> {:ok, :added, _} = Skillbook.Store.put_note(view, "Milk", "Two bottles.")
      iex> {:ok, :updated, _} = Skillbook.Store.put_note(view, "Milk", "Three bottles.")
      iex> {:ok, version} = Skillbook.Store.version(view, "milk", 1)
      iex> version.entry.content
      "Two bottles."
      iex> {:error, error} = Skillbook.Store.version(view, "milk", 9)
      iex> Exception.message(error)
      ~s("milk" has no version 9 that can be read here; its last one is 2)
  """
  @spec version(View.t(), String.t(), pos_integer()) :: {:ok, Version.t()} | {:error, error()}
  def version(%View{} = view, name, number) when is_binary(name) do
    read(view, fn read ->
      with {:ok, stored} <- resolve_any(read, name),
           do: find_version(read.sql, view, stored, number)
    end)
  end

  @doc """
  What two versions of an entry differ in: of the contents a unified diff, `""` if they are the same, and the other fields that
  differ with both values.

      iex> {:ok, _} = Skillbook.start_link(name: DiffExample, store: ":memory:")
      iex> view = Skillbook.view(DiffExample, "default")
      iex> {:ok, :added, _} = Skillbook.Store.put_note(view, "Milk", "Two bottles.\\n")
      iex> {:ok, :updated, _} = Skillbook.Store.put_note(view, "Milk", "Three bottles.\\n", fields: %{tags: ["shopping"]})
      iex> {:ok, diff} = Skillbook.Store.diff(view, "milk", 1, 2)
      iex> diff
      %{content: "@@ -1 +1 @@\\n-Two bottles.\\n+Three bottles.\\n", fields: [{:tags, [], ["shopping"]}]}
  """
  @spec diff(View.t(), String.t(), pos_integer(), pos_integer()) ::
          {:ok, %{content: String.t(), fields: [{atom(), term(), term()}]}} | {:error, error()}
  def diff(%View{} = view, name, from, to) when is_binary(name) do
    read(view, fn %{sql: sql} = read ->
      with {:ok, stored} <- resolve_any(read, name),
           {:ok, %{entry: from}} <- find_version(sql, view, stored, from),
           {:ok, %{entry: to}} <- find_version(sql, view, stored, to) do
        pairs =
          for field <- @compared, do: {field, Map.fetch!(from, field), Map.fetch!(to, field)}

        fields = Enum.reject(pairs, fn {_field, old, new} -> old == new end)
        {:ok, %{content: Diff.unified(from.content, to.content), fields: fields}}
      end
    end)
  end

  # Writing

  defp read_options(options, known \\ [:by, :now, :expected_version]) do
    with :ok <-
           Options.validate(options, "a write to the store", Keyword.take(write_schema(), known)) do
      given = Map.merge(%{by: :user, expected_version: nil, fields: %{}}, Map.new(options))
      now = given |> Map.get_lazy(:now, &DateTime.utc_now/0) |> DateTime.shift_zone!("Etc/UTC")
      {:ok, Map.put(given, :now, DateTime.truncate(now, :second))}
    end
  end

  defp write_schema do
    [
      by: {":user, :agent or :import", &(&1 in @sources)},
      now: {"a DateTime", &is_struct(&1, DateTime)},
      expected_version: {"a whole number from 1 or nil", &(is_nil(&1) or Options.positive?(&1))},
      fields: {"a map", &is_map/1}
    ]
  end

  # `fun` looks for an entry of this name, and gives it as it was and as it is now, or `:added` and
  # a new one. If nothing differs there is no revision.
  defp write(view, options, name, fun) do
    with {:ok, sql} <- database(view), :ok <- outside(sql) do
      name = if askable?(name), do: String.normalize(name, :nfc)

      result =
        Table.write(sql, name, fn sql, revision, {live, deleted} ->
          named = %{name: name, live: live, deleted: deleted}
          write = Map.merge(options, %{sql: sql, view: view, revision: revision, named: named})

          with {:ok, {before, stored}} <- fun.(write) do
            if before == stored,
              do: {:error, {:unchanged, stored}},
              else: {:ok, {{before, stored}, revision}}
          end
        end)

      case result do
        {:ok, {{_before, stored} = written, revision}} ->
          Follower.sync(view.book, revision, stored)
          {:ok, written}

        {:error, {:unchanged, same}} ->
          {:ok, {same, same}}

        {:error, error} ->
          told({:error, error}, sql, view)
      end
    end
  end

  # Nobody else would see what was written, and whoever waits for the catalog to show it would do so for ever.
  defp outside(sql) do
    if SQL.in_transaction?(sql), do: {:error, %StoreError{kind: :in_transaction}}, else: :ok
  end

  defp change(view, name, action, options, fun) do
    changed =
      write(view, options, name, fn write ->
        with {:ok, before} <- resolve(write, name), do: change(write, before, action, fun)
      end)

    with {:ok, {before, stored}} <- changed, do: {:ok, %{entry: stored, before: before}}
  end

  defp change(write, before, action, fun) do
    with :ok <- may_change(write, before),
         {:ok, stored} <- fun.(before),
         {:ok, stored} <- put(write, action, before, stored),
         do: {:ok, {before, stored}}
  end

  defp insert(write, how, fields) do
    labels = Enum.sort(Enum.uniq(Map.get(fields, :labels, []) ++ write.view.profile.labels))
    first = %Stored{kind: :skill, source: :user, created_at: write.now, version: 0}

    with {:ok, stored} <-
           put(write, :create, nil, struct!(first, Map.put(fields, :labels, labels))),
         do: {:ok, {how, stored}}
  end

  defp put(write, action, before, stored) do
    with {:ok, stored} <- Fields.settle(stored),
         {:ok, stored} <- timing(stored) do
      if stored == before, do: {:ok, before}, else: differs(write, action, before, stored)
    end
  end

  defp timing(%Stored{schedule: nil, timezone: nil} = stored), do: {:ok, stored}
  defp timing(stored), do: ScheduleRules.settle(stored)

  defp differs(write, action, before, stored) do
    with :ok <- held(write.view, stored.labels),
         :ok <- own(write.view, stored),
         :ok <- timed(write, before, stored),
         {:ok, stored} <- numbered(write, before, stored),
         stored = stamp(write, action, before, stored),
         :ok <- sees_itself(write.view, stored),
         do: store(write, action, stored)
  end

  defp may_change(write, before) do
    with :ok <- own(write.view, before), do: expected(write, before)
  end

  @doc false
  # Whether the profile of a view may change what has this name and these labels.
  @spec own(View.t(), %{:name => String.t(), :labels => [String.t()], optional(atom()) => term()}) ::
          :ok | {:error, StoreError.t()}
  def own(view, stored) do
    case Enum.reject(view.profile.labels, &(&1 in stored.labels)) do
      [] -> :ok
      missing -> {:error, %StoreError{kind: :own_labels, name: stored.name, labels: missing}}
    end
  end

  defp expected(%{expected_version: expected}, before)
       when expected == nil or expected == before.version,
       do: :ok

  defp expected(write, before) do
    {:error,
     %StoreError{
       kind: :version_conflict,
       name: before.name,
       expected: write.expected_version,
       actual: before.version,
       author: before.author,
       at: before.updated_at
     }}
  end

  @doc false
  # Whether there is a profile that an entry could run as by its schedule.
  @spec runs?(View.t(), Stored.t()) :: boolean()
  def runs?(view, stored) do
    %{profiles: profiles, schedules: schedules} = book(view)
    match?({:ok, _, _}, Authors.profile(stored.writers, profiles, schedules[:run_as]))
  end

  @doc false
  # Whether the profile of a view may set these labels.
  @spec held(View.t(), [String.t()]) :: :ok | {:error, StoreError.t()}
  def held(_view, []), do: :ok

  def held(view, labels) do
    case Profile.foreign(view.profile, labels) do
      [] -> :ok
      labels -> {:error, %StoreError{kind: :label_not_held, labels: labels}}
    end
  end

  # What had this schedule already keeps it, whatever the book allows by now.
  defp timed(_write, _before, %Stored{schedule: nil}), do: :ok
  # It never runs.
  defp timed(%{by: by}, _before, %Stored{source: source}) when :import in [by, source], do: :ok

  defp timed(_write, %Stored{deleted_at: nil, schedule: schedule, timezone: timezone}, %Stored{
         schedule: schedule,
         timezone: timezone
       }),
       do: :ok

  defp timed(%{view: view} = write, before, stored) do
    limits = book(view).schedules

    with :ok <- runner(view.profile, book(view)),
         schedule = Schedule.parse!(stored.schedule, stored.timezone || "UTC"),
         :ok <- ScheduleRules.apart(schedule, limits[:min_interval], write.now),
         do: if(scheduled?(before), do: :ok, else: few(write, stored, limits[:max_per_profile]))
  end

  defp scheduled?(before),
    do: before != nil and before.deleted_at == nil and before.schedule != nil

  defp runner(profile, book) do
    id = Authors.writer(profile, book.profiles)
    as = if id == "", do: book.schedules[:run_as], else: id

    if Map.has_key?(book.profiles, as),
      do: :ok,
      else: {:error, %StoreError{kind: :no_runner, value: profile.id}}
  end

  # Of those that the profile sees: others are not there for it.
  defp few(write, stored, most) do
    with {:ok, rows} <- Table.scheduled(write.sql) do
      creator = List.first(stored.writers, write.view.profile.id)

      count =
        rows
        |> visible(write.view)
        |> Enum.count(&(&1.source != :import and List.first(&1.writers) == creator))

      if count < most, do: :ok, else: {:error, %StoreError{kind: :too_many, expected: most}}
    end
  end

  # A number that somebody has read is not to become that of another entry of the name: so those of an entry that comes to life
  # go on where a deleted one ended. But only of one that everybody sees who sees this: others would learn of it.
  defp numbered(_write, %Stored{deleted_at: nil}, stored), do: {:ok, stored}

  defp numbered(write, _before, stored) do
    with {:ok, %{deleted: deleted}} <- named(write, stored.name) do
      numbers =
        for one <- deleted,
            one.version > stored.version,
            as_visible?(one, stored),
            do: one.version

      {:ok, %{stored | version: Enum.max(numbers, fn -> stored.version end)}}
    end
  end

  defp as_visible?(one, stored) do
    Enum.all?(["" | one.excluded_for], fn id ->
      Native.stored_visible([id], stored.labels, [], [stored, one]) != [true, false]
    end)
  end

  defp stamp(write, action, before, stored) do
    profile = write.view.profile

    source =
      Enum.max_by([stored.source, write.by], fn source ->
        Enum.find_index(@sources, &(&1 == source))
      end)

    %{
      stored
      | version: stored.version + 1,
        source: source,
        author: profile.id,
        writers: Authors.add(stored, before, action, profile, book(write.view).profiles),
        updated_at: write.now,
        hash: Entry.digest(stored.content)
    }
  end

  defp sees_itself(view, stored) do
    if visible([stored], view) == [],
      do: {:error, %StoreError{kind: :not_visible, name: stored.name}},
      else: :ok
  end

  # A name that is taken among the entries of the same kind, labels and exclusions is taken by one that the profile sees,
  # since it sees this one.
  defp store(write, action, stored) do
    with {:error, %SQL.Error{constraint: :unique}} <-
           Table.put(write.sql, stored, action, write.by, write.revision),
         do: exists(stored.name)
  end

  defp free(%{named: named, view: view}),
    do: if(visible(named.live, view) == [], do: :ok, else: exists(named.name))

  defp exists(name), do: {:error, %StoreError{kind: :exists, name: name}}

  # A note that happens to have the name of something else does not replace it: its name gets a number.
  defp free_name(write, title) do
    slug = Fields.slug(title)

    with {:ok, %{live: rows}} <- named(write, slug) do
      if visible(rows, write.view) == [] and not others?(write.view, slug, title),
        do: {:ok, slug},
        else: numbered_name(write, slug, title)
    end
  end

  defp numbered_name(write, slug, title) do
    with {:ok, rows} <- Table.beginning(write.sql, Fields.stem(slug)) do
      taken = rows |> visible(write.view) |> MapSet.new(& &1.name)
      names = 2 |> Stream.iterate(&(&1 + 1)) |> Stream.map(&Fields.numbered(slug, &1))
      {:ok, Enum.find(names, &(&1 not in taken and not others?(write.view, &1, title)))}
    end
  end

  defp others?(view, name, title) do
    case View.fetch(view, name) do
      {:ok, entry} -> not stored?(entry) and title not in [entry.name, entry.title]
      {:error, _} -> false
    end
  end

  # Finding

  defp read(view, fun) do
    with {:ok, sql} <- database(view), do: %{sql: sql, view: view} |> fun.() |> told(sql, view)
  end

  defp database(%View{book: nil}), do: {:error, %StoreError{kind: :no_store}}

  defp database(%View{book: book}) do
    case Book.sql(Book.fetch!(book)) do
      nil -> {:error, %StoreError{kind: :no_store}}
      sql -> {:ok, sql}
    end
  end

  defp book(view), do: Book.fetch!(view.book)

  defp visible([], _view), do: []

  defp visible(rows, %{ref: ref}),
    do: for({row, true} <- Enum.zip(rows, Native.view_sees(ref, rows)), do: row)

  # Each version by itself: the labels may have been others.
  defp visible_versions(versions, view) do
    seen = versions |> Enum.map(& &1.entry) |> visible(view) |> MapSet.new(& &1.version)
    Enum.filter(versions, &(&1.version in seen))
  end

  # Below, `at` has the database and the view; in a write also the entries of the name that it began
  # with.

  defp resolve(at, name) do
    with {:ok, nil} <- find(at, name), do: {:error, {:not_found, name}}
  end

  # Also one that was deleted.
  defp resolve_any(at, name) do
    with {:ok, nil} <- find(at, name),
         {:ok, nil} <- find_deleted(at.sql, at.view, name),
         do: {:error, {:not_found, name}}
  end

  defp find(at, name) do
    with true <- askable?(name),
         {:ok, %{live: rows}} <- named(at, String.normalize(name, :nfc)),
         {:ok, nil} <- first({:ok, rows}, at.view),
         {:ok, nil} <- first(Table.titled(at.sql, name), at.view) do
      {:ok, nil}
    else
      false -> {:ok, nil}
      found -> found
    end
  end

  defp named(%{named: %{name: name} = named}, name), do: {:ok, named}

  defp named(at, name) do
    with {:ok, {live, deleted}} <- Table.named(at.sql, name),
         do: {:ok, %{live: live, deleted: deleted}}
  end

  defp find_deleted(sql, view, name) do
    if askable?(name), do: first(Table.deleted(sql, name), view), else: {:ok, nil}
  end

  # What a database may be asked for.
  defp askable?(name), do: String.valid?(name) and not String.contains?(name, "\0")

  defp first({:ok, rows}, view), do: {:ok, rows |> visible(view) |> List.first()}
  defp first({:error, error}, _view), do: {:error, error}

  defp find_version(sql, view, stored, number) when is_integer(number) do
    with {:ok, versions} <- Table.version(sql, stored, number) do
      case visible_versions(versions, view) do
        [version] -> {:ok, version}
        [] -> no_version(stored, number)
      end
    end
  end

  defp find_version(_sql, _view, stored, number), do: no_version(stored, number)

  defp no_version(stored, number),
    do:
      {:error,
       %StoreError{kind: :no_version, name: stored.name, value: number, actual: stored.version}}

  # Outside of the transaction: no writer has to wait while all entries are looked through for names that are close.
  defp told({:error, {:not_found, name}}, sql, view), do: not_found(sql, view, name)
  defp told(result, _sql, _view), do: result

  defp not_found(sql, view, name) do
    with :not_file <- file(view, name),
         {:ok, deleted} <- find_deleted(sql, view, name),
         {:ok, rows} <- Table.list(sql) do
      names = rows |> visible(view) |> Enum.map(& &1.name) |> Enum.uniq()
      suggestions = if askable?(name), do: Closest.several(name, names, 3), else: []
      deleted_at = deleted && deleted.deleted_at

      {:error,
       %StoreError{kind: :not_found, name: name, suggestions: suggestions, deleted_at: deleted_at}}
    end
  end

  defp file(view, name) do
    with true <- String.valid?(name),
         {:ok, entry} <- View.fetch(view, name),
         false <- stored?(entry) do
      {:error, %StoreError{kind: :is_file, name: name}}
    else
      _ -> :not_file
    end
  end

  # A view may be older than what the store has.
  defp stored?(%Entry{source: source}), do: source == "store"
end
