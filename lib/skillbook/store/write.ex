defmodule Skillbook.Store.Write do
  @moduledoc false
  # Writes entries: creates, updates, deletes, enables, disables and restores them.
  #
  # Each write is one transaction: resolve the name, change the fields, check the rules, store the
  # row and its version. A dry run is rolled back, and so is a write that changes nothing, which
  # makes no version. After the commit the catalog of the caller's book is brought up to date.
  #
  # `write` is a map with the write's options, the database, the book, the view, the writer to be
  # stored, its number in the transaction and, as `:named`, the entries of the name that it begins
  # with.
  #
  # Writers of the tenant, and those of common entries, wait for each other, so later reads see
  # everything that earlier ones committed. Reads in a transaction must go through
  # `Read.visible/2`, so that hidden entries affect no write. A new operation also needs rows in
  # `test/support/store_conformance.ex` and calls in the two `random_call` functions, from which
  # the properties about hidden entries draw.

  alias Skillbook.SQL.{GroupCommit, Tenants}
  alias Skillbook.Store.{Authors, Edit, Fields, Follower, Read, ScheduleRules, Table}
  alias Skillbook.Support.Options
  alias Skillbook.{Entry, Native, Profile, SQL, StoreError, Stored, View}

  # The most trusted first. An entry has the least trusted source of all its versions.
  @sources [:user, :agent, :import]

  def create(%View{} = view, fields, options \\ []) when is_map(fields) do
    with {:ok, options} <- read_options(options, [:by, :now, :dry_run]),
         {:ok, fields} <- Fields.create(fields) do
      created =
        transact(view, options, fields.name, fn write ->
          with :ok <- check_name_free(write), do: insert(write, fields)
        end)

      with {:ok, {:added, entry}} <- created, do: {:ok, entry}
    end
  end

  def update(%View{} = view, name, changes, options \\ [])
      when is_binary(name) and is_map(changes) do
    with {:ok, options} <- read_options(options),
         {:ok, changes} <- Fields.update(changes) do
      change(view, name, :update, options, &apply_changes(view, &1, changes))
    end
  end

  defp apply_changes(view, before, changes) do
    {edit, fields} = Map.pop(changes, :edit)

    with {:ok, content} <- apply_edit(edit, before),
         :ok <- check_own_labels_listed(view, fields) do
      {:ok, struct!(before, Map.put(fields, :content, content))}
    end
  end

  defp apply_edit(nil, before), do: {:ok, before.content}

  defp apply_edit(edit, before) do
    with {:ok, content} <- Edit.apply(edit, before.content, before.name),
         do: Fields.content(content)
  end

  defp check_own_labels_listed(view, %{labels: labels}) do
    case Enum.reject(view.profile.labels, &(&1 in labels)) do
      [] -> :ok
      missing -> {:error, %StoreError{kind: :own_labels, labels: missing}}
    end
  end

  defp check_own_labels_listed(_view, _fields), do: :ok

  def delete(%View{} = view, name, options \\ []) when is_binary(name) do
    with {:ok, options} <- read_options(options),
         {:ok, deleted} <-
           change(view, name, :delete, options, &{:ok, %{&1 | deleted_at: options.now}}),
         do: {:ok, deleted.before}
  end

  def enable(%View{} = view, name, options \\ []),
    do: set_enabled(view, name, :enable, true, options)

  def disable(%View{} = view, name, options \\ []),
    do: set_enabled(view, name, :disable, false, options)

  defp set_enabled(view, name, action, enabled, options) when is_binary(name) do
    with {:ok, options} <- read_options(options),
         {:ok, changed} <- change(view, name, action, options, &{:ok, %{&1 | enabled: enabled}}),
         do: {:ok, changed.entry}
  end

  def restore(%View{} = view, name, number, options \\ []) when is_binary(name) do
    with {:ok, options} <- read_options(options) do
      restored =
        Read.spelled(view, name, fn name ->
          transact(view, options, name, fn write ->
            with {:ok, before} <- Read.resolve_any(write, name),
                 :ok <- check_change(write, before),
                 {:ok, version} <- Read.find_version(write, before, number),
                 current = Map.take(before, [:version, :enabled, :author, :updated_at]),
                 entry = struct!(version.entry, Map.put(current, :deleted_at, nil)),
                 {:ok, entry} <- put(write, :restore, before, entry),
                 do: {:ok, {before, entry}}
          end)
        end)

      with {:ok, {_before, entry}} <- restored, do: {:ok, entry}
    end
  end

  def put_note(%View{} = view, title, content, options \\ []) do
    with {:ok, options} <-
           read_options(options, [:by, :now, :expected_version, :dry_run, :fields]),
         {:ok, title} <- Fields.title(title),
         {:ok, content} <- Fields.content(content),
         {:ok, fields} <- Fields.update(Map.new(options.fields)) do
      result =
        transact(view, options, title, fn write ->
          with {:ok, before} <- Read.find(write, title),
               do: put_note_in(write, before, title, Map.put(fields, :edit, {:replace, content}))
        end)

      with {:error, _} = error <- both(result), do: explain_missing(view, error)
    end
  end

  def put_all(%View{} = view, entries, options \\ []) when is_list(entries) do
    with {:ok, options} <- read_options(options, [:by, :now, :dry_run, :existing]) do
      checked = Enum.map(entries, &Fields.create(Map.new(&1)))
      writes = for {:ok, fields} <- checked, do: {fields.name, &put_in_place(&1, fields)}

      with {:ok, written} <- transact_all(view, options, writes),
           do: {:ok, merge(checked, written)}
    end
  end

  defp put_in_place(%{existing: :refuse} = write, fields),
    do: with(:ok <- check_name_free(write), do: insert(write, fields))

  defp put_in_place(write, fields) do
    with {:ok, before} <- Read.find_named(write, fields.name) do
      if before,
        do:
          change_entry(
            write,
            before,
            :update,
            &apply_changes(write.view, &1, changes(write, fields))
          ),
        else: insert(write, fields)
    end
  end

  defp changes(write, fields) do
    {content, changes} = fields |> Map.drop([:name, :kind]) |> Map.pop!(:content)
    changes = Map.put(changes, :edit, {:replace, content})

    if is_map_key(changes, :labels),
      do: Map.update!(changes, :labels, &Enum.uniq(&1 ++ write.view.profile.labels)),
      else: changes
  end

  # The results of the writes, and the errors of those that were not tried, in order.
  defp merge([{:ok, _fields} | checked], [result | written]),
    do: [both(result) | merge(checked, written)]

  defp merge([error | checked], written), do: [error | merge(checked, written)]
  defp merge([], []), do: []

  defp both({:ok, {:added, entry}}), do: {:ok, %{entry: entry, before: nil}}
  defp both({:ok, {before, entry}}), do: {:ok, %{entry: entry, before: before}}
  defp both(error), do: error

  defp explain_missing(view, error) do
    with {:ok, _book, sql} <- Read.database(view),
         do: Read.explain_missing(error, %{sql: sql, view: view})
  end

  defp put_note_in(%{expected_version: nil} = write, nil, title, fields) do
    {{:replace, content}, fields} = Map.pop(fields, :edit)
    fields = Map.merge(%{title: title}, fields)

    with {:ok, name} <- free_name(write, title),
         do: insert(write, Map.merge(fields, %{name: name, kind: :note, content: content}))
  end

  defp put_note_in(_write, nil, title, _fields), do: {:error, {:not_found, title}}

  defp put_note_in(write, before, _title, changes),
    do: change_entry(write, before, :update, &apply_changes(write.view, &1, changes))

  # Options

  defp read_options(options, allowed \\ [:by, :now, :expected_version, :dry_run]) do
    schema = Keyword.take(options_schema(), allowed)

    with :ok <- Options.validate(options, "a write to the store", schema) do
      defaults = %{
        by: :user,
        expected_version: nil,
        dry_run: false,
        fields: %{},
        existing: :change
      }

      options = Map.merge(defaults, Map.new(options))
      now = options |> Map.get_lazy(:now, &DateTime.utc_now/0) |> DateTime.shift_zone!("Etc/UTC")
      {:ok, Map.put(options, :now, DateTime.truncate(now, :second))}
    end
  end

  defp options_schema do
    [
      by: {":user, :agent or :import", &(&1 in @sources)},
      now: {"a DateTime", &is_struct(&1, DateTime)},
      expected_version: Options.positive_or_nil(),
      dry_run: {"a boolean", &is_boolean/1},
      existing: {":change or :refuse", &(&1 in [:change, :refuse])},
      fields: {"a map or a keyword list", &(is_map(&1) or Keyword.keyword?(&1))}
    ]
  end

  # The transaction

  @doc "Starts the process that runs the writes of a book."
  def start_link(book) do
    committed = fn [{_written, revision} | _] = writes ->
      Follower.written(book, revision, for({{_before, entry}, _revision} <- writes, do: entry))
    end

    GroupCommit.start_link(name(book), committed, fn sql, writes ->
      with {:ok, revision} <- Table.commit(sql, for({_written, number} <- writes, do: number)),
           do: {:ok, for({written, _number} <- writes, do: {written, revision})}
    end)
  end

  defp name(book), do: Module.concat(book, Write)

  defp transact(view, options, name, fun) do
    with {:ok, [result]} <- transact_all(view, options, [{name, fun}]), do: result
  end

  # Each function returns the entry before and after, or `:added` and a new entry; or
  # `{:error, {:not_found, name}}`. The name is the one that it looks up first.
  defp transact_all(view, options, writes) do
    with {:ok, book, sql} <- Read.database(view),
         :ok <- check_no_transaction(sql),
         {:ok, writer} <- Authors.writer(view.profile, book) do
      at = Map.merge(options, %{book: book, view: view, writer: writer})
      transactions = for {name, fun} <- writes, do: transaction(at, name, fun)
      parts = [Tenants.part(view.profile)]
      results = GroupCommit.run(name(view.book), sql, transactions, parts)
      revisions = for {:ok, {_written, revision}} <- results, do: revision
      if revisions != [], do: Follower.sync(view.book, Enum.max(revisions))
      {:ok, Enum.map(results, &written/1)}
    end
  end

  defp transaction(at, name, fun) do
    name = if Read.storable?(name), do: String.normalize(name, :nfc)

    Table.transaction(at.view.profile, name, fn sql, number, {live, deleted} ->
      named = %{name: name, live: live, deleted: deleted}

      case fun.(Map.merge(at, %{sql: sql, number: number, named: named})) do
        {:ok, {same, same}} -> {:error, {:unchanged, same}}
        {:ok, written} when at.dry_run -> {:error, {:dry_run, written}}
        {:ok, written} -> {:ok, {written, number}}
        error -> error
      end
    end)
  end

  defp written({:ok, {written, _revision}}), do: {:ok, written}
  defp written({:error, {:unchanged, entry}}), do: {:ok, {entry, entry}}
  defp written({:error, {:dry_run, written}}), do: {:ok, written}
  defp written(error), do: error

  # Inside the caller's transaction the write would be invisible to the follower, and waiting for
  # the catalog to show it would never end.
  defp check_no_transaction(sql) do
    if SQL.in_transaction?(sql), do: {:error, %StoreError{kind: :in_transaction}}, else: :ok
  end

  defp change(view, name, action, options, fun) do
    changed =
      Read.spelled(view, name, fn name ->
        transact(view, options, name, fn write ->
          with {:ok, before} <- Read.resolve(write, name),
               do: change_entry(write, before, action, fun)
        end)
      end)

    with {:ok, {before, entry}} <- changed, do: {:ok, %{entry: entry, before: before}}
  end

  defp change_entry(write, before, action, fun) do
    with :ok <- check_change(write, before),
         {:ok, entry} <- fun.(before),
         {:ok, entry} <- put(write, action, before, entry),
         do: {:ok, {before, entry}}
  end

  defp insert(write, fields) do
    labels = Enum.sort(Enum.uniq(Map.get(fields, :labels, []) ++ write.view.profile.labels))
    tenant = Profile.home(write.view.profile)
    empty = %Stored{kind: :skill, source: :user, created_at: write.now, version: 0}
    entry = struct!(%{empty | tenant: tenant}, Map.put(fields, :labels, labels))
    with {:ok, entry} <- put(write, :create, nil, entry), do: {:ok, {:added, entry}}
  end

  defp put(write, action, before, entry) do
    with {:ok, entry} <- Fields.resolve(entry),
         {:ok, entry} <- normalize_schedule(entry) do
      if entry == before, do: {:ok, before}, else: put_changed(write, action, before, entry)
    end
  end

  defp normalize_schedule(%Stored{schedule: nil, timezone: nil} = entry), do: {:ok, entry}
  defp normalize_schedule(entry), do: ScheduleRules.normalize(entry)

  defp put_changed(write, action, before, entry) do
    with :ok <- check_held_labels(write.view, entry.labels),
         :ok <- check_own_labels(write.view, entry),
         :ok <- check_schedule(write, before, entry),
         {:ok, entry} <- continue_versions(write, before, entry),
         entry = stamp(write, action, before, entry),
         :ok <- check_visible(write.view, entry),
         do: store(write, action, entry)
  end

  # A client may remember a version number, and it must not come to mean another entry of the same
  # name. So a new or restored entry continues the numbers of deleted ones. Entries that others
  # cannot see are ignored, since the gap would reveal them.
  defp continue_versions(_write, %Stored{deleted_at: nil}, entry), do: {:ok, entry}

  defp continue_versions(write, _before, entry) do
    with {:ok, %{deleted: deleted}} <- Read.named(write, entry.name) do
      versions =
        for one <- deleted,
            one.version > entry.version,
            visible_wherever?(one, entry),
            do: one.version

      {:ok, %{entry | version: Enum.max(versions, fn -> entry.version end)}}
    end
  end

  # Whether every profile that sees `entry` also sees `other`.
  defp visible_wherever?(other, entry) do
    Enum.all?(["" | other.excluded_for], fn id ->
      Native.stored_visible([id], entry.tenant, entry.labels, [], [entry, other]) !=
        [true, false]
    end)
  end

  defp stamp(write, action, before, entry) do
    profile = write.view.profile

    source =
      Enum.max_by([entry.source, write.by], fn source ->
        Enum.find_index(@sources, &(&1 == source))
      end)

    %{
      entry
      | version: entry.version + 1,
        source: source,
        author: profile.id,
        writers: Authors.add(entry, before, action, write.writer.id),
        updated_at: write.now,
        hash: Entry.digest(entry.content)
    }
  end

  # The unique index covers name, kind, labels and exclusions. An entry that conflicts in all of
  # them is visible to this profile, so the error reveals nothing.
  defp store(write, action, entry) do
    with {:error, %SQL.Error{constraint: :unique}} <-
           Table.put(write.sql, entry, action, write.by, write.number),
         do: name_taken(entry.name)
  end

  # Rules

  defp check_change(write, before) do
    with :ok <- check_owned(write.view, before), do: check_version(write, before)
  end

  @doc """
  Whether the view's profile may change an entry: it belongs to the profile's tenant, and has all
  labels of the profile.
  """
  def check_owned(view, entry) do
    if Profile.writes?(view.profile, tenant(entry)),
      do: check_own_labels(view, entry),
      else: {:error, %StoreError{kind: :common, name: entry.name}}
  end

  defp tenant(%Entry{} = entry), do: Entry.tenant(entry)
  defp tenant(%{tenant: tenant}), do: tenant

  defp check_own_labels(view, entry) do
    case Enum.reject(view.profile.labels, &(&1 in entry.labels)) do
      [] -> :ok
      missing -> {:error, %StoreError{kind: :own_labels, name: entry.name, labels: missing}}
    end
  end

  @doc "Whether the view's profile may set these labels: it holds all of them."
  def check_held_labels(_view, []), do: :ok

  def check_held_labels(view, labels) do
    case Profile.foreign(view.profile, labels) do
      [] -> :ok
      labels -> {:error, %StoreError{kind: :label_not_held, labels: labels}}
    end
  end

  defp check_version(%{expected_version: expected}, before)
       when expected == nil or expected == before.version,
       do: :ok

  defp check_version(write, before) do
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

  defp check_schedule(_write, _before, %Stored{schedule: nil}), do: :ok
  defp check_schedule(write, before, entry), do: ScheduleRules.check(write, before, entry)

  defp check_visible(view, entry) do
    if Read.visible([entry], view) == [],
      do: {:error, %StoreError{kind: :not_visible, name: entry.name}},
      else: :ok
  end

  # Names

  defp check_name_free(%{named: %{live: []}}), do: :ok

  defp check_name_free(%{named: named, view: view}),
    do: if(Read.visible(named.live, view) == [], do: :ok, else: name_taken(named.name))

  defp name_taken(name), do: {:error, %StoreError{kind: :exists, name: name}}

  # A note must not replace another entry by accident, so its name gets a number if it is taken.
  defp free_name(write, title) do
    slug = Fields.slug(title)

    with {:ok, %{live: entries}} <- Read.named(write, slug) do
      if Read.visible(entries, write.view) == [] and not hides_file?(write.view, slug, title),
        do: {:ok, slug},
        else: numbered_name(write, slug, title)
    end
  end

  defp numbered_name(write, slug, title) do
    stem = Fields.stem(slug)

    with {:ok, entries} <- Table.starting_with(write.sql, write.view.profile, stem) do
      taken = entries |> Read.visible(write.view) |> MapSet.new(& &1.name)
      names = 2 |> Stream.iterate(&(&1 + 1)) |> Stream.map(&Fields.numbered(slug, &1))
      {:ok, Enum.find(names, &(&1 not in taken and not hides_file?(write.view, &1, title)))}
    end
  end

  # A note with the name or title of a file's entry replaces that entry on purpose.
  defp hides_file?(view, name, title) do
    case Read.file_entry(view, name) do
      nil -> false
      entry -> title not in [entry.name, entry.title]
    end
  end
end
