defmodule Skillbook.Store.Read do
  @moduledoc false
  # Reads entries and their versions for a view, and resolves names for reads and writes.
  #
  # `Skillbook.Store.Table` returns all rows of the tenants that the view's profile reads. This
  # module drops those that the profile may not see, before any result, count or suggestion
  # depends on them.
  #
  # `at` is a map with the database (`:sql`) and the view. In a write it also has `:named`, the
  # entries of one name that the transaction has already read.

  alias Skillbook.{Book, Entry, Native, Profile, StoreError, Stored, View}
  alias Skillbook.Store.{Slips, Table, Version}
  alias Skillbook.Support.{Closest, Diff, Options}

  @sources [:user, :agent, :import]

  # Names that an error suggests.
  @suggested 3

  @compared_fields ~w(kind title description tags labels include_in_prompt proactive_for
                      excluded_for attachments schedule timezone enabled)a

  def fetch(%View{} = view, name) when is_binary(name), do: read(view, name, &resolve/2)

  def list(%View{} = view, options \\ []) do
    with {:ok, entries, _next} <- page(view, options), do: {:ok, entries}
  end

  # Rows that are read at once, at least and at most. Of these only some may be visible.
  @few 50
  @many 1_000

  @doc """
  The entries of a list, and with `:limit` the value of `:after` for those that follow, or `nil`.

  That is the name of the last entry or, if another one of its name follows, `NAME~DIGEST`. The id
  would reveal how many others there are.
  """
  def page(view, options) do
    with :ok <- Options.validate(options, "a list of the store", list_schema()),
         {:ok, _book, sql} <- database(view) do
      at = %{sql: sql, view: view}
      limit = options[:limit]

      with {:ok, name, first} <- start(at, options[:after], options),
           {:ok, entries} <- more(at, name, first, options, limit && limit + 1),
           do: cut(entries, limit)
    end
  end

  defp cut(entries, limit) do
    case limit && Enum.split(entries, limit) do
      {entries, [next | _]} -> {:ok, entries, key(List.last(entries), next)}
      _all -> {:ok, entries, nil}
    end
  end

  defp key(%{name: name} = last, %{name: name}), do: name <> "~" <> digest(last)
  defp key(last, _next), do: last.name

  defp digest(entry), do: entry |> Table.scope_of() |> binary_part(0, 12)

  # The name after which the rest of the list begins, and the entries of that name that come
  # first.
  defp start(_at, nil, _options), do: {:ok, nil, []}

  defp start(at, %Stored{} = last, options),
    do: start(at, last.name <> "~" <> digest(last), options)

  defp start(at, cursor, options) do
    case String.split(cursor, "~") do
      [name] ->
        {:ok, name, []}

      [name, digest] ->
        with {:ok, %{live: live, deleted: deleted}} <- named(at, name) do
          all = (live ++ deleted) |> visible(at.view) |> Enum.sort_by(& &1.id)
          # Without the entry, which may have other labels now, those of its name are repeated.
          last = Enum.find(all, %{id: 0}, &(digest(&1) == digest))
          rest = for %{deleted_at: nil} = entry <- all, entry.id > last.id, do: entry
          rest = Enum.filter(rest, &selected?(&1, options))
          {:ok, name, Enum.map(rest, &%{&1 | content: nil})}
        end
    end
  end

  # Reads rows until there are as many visible ones as wanted; with `nil`, all.
  defp more(at, name, entries, options, wanted) do
    missing = if wanted, do: wanted - length(entries), else: @many

    if missing <= 0 do
      {:ok, entries}
    else
      read = missing |> max(@few) |> min(@many)
      filters = Keyword.take(options, [:kind, :source])
      filters = if options[:include_disabled], do: filters, else: [enabled: true] ++ filters

      with {:ok, rows} <- Table.page(at.sql, at.view.profile, name, filters, read),
           {:ok, rows, last} <- whole_names(at, rows, read) do
        found = rows |> Enum.filter(&selected?(&1, options)) |> visible(at.view)
        entries = entries ++ found
        if last, do: more(at, last, entries, options, wanted), else: {:ok, entries}
      end
    end
  end

  # A page of rows may end among several of one name, which the next one then begins with.
  defp whole_names(_at, rows, read) when length(rows) < read, do: {:ok, rows, nil}

  defp whole_names(at, rows, _read) do
    %{name: last} = List.last(rows)

    case Enum.split_while(rows, &(&1.name != last)) do
      {[], _rows} ->
        with {:ok, %{live: rows}} <- named(at, last),
             do: {:ok, Enum.map(rows, &%{&1 | content: nil}), last}

      {whole, _} ->
        {:ok, whole, List.last(whole).name}
    end
  end

  @doc """
  The kind of the author and the author of the enabled entries of the store, by name. It reads
  only these columns, so it has names of hidden entries too: look up names that the view shows.
  """
  def authors(%View{} = view) do
    with {:ok, _book, sql} <- database(view),
         {:ok, rows} <- Table.authors(sql, view.profile) do
      {authors, several} =
        Enum.reduce(rows, {%{}, []}, fn {name, by, author}, {authors, several} ->
          several = if is_map_key(authors, name), do: [name | several], else: several
          {Map.put(authors, name, {by, author}), several}
        end)

      # Of several with one name some may be hidden.
      with {:ok, seen} <- named_one_of(view, Enum.uniq(several)) do
        seen = for {name, one} <- seen, into: %{}, do: {name, {one.source, one.author}}
        {:ok, authors |> Map.drop(several) |> Map.merge(seen)}
      end
    end
  end

  @doc """
  The entries of these names that the view's profile may see, by name, without their contents. Of
  several with one name it is the one that a write changes: the tenant's own, then the oldest.
  """
  def named_one_of(_view, []), do: {:ok, %{}}

  def named_one_of(%View{} = view, names) do
    home = Profile.home(view.profile)

    with {:ok, _book, sql} <- database(view),
         {:ok, rows} <- Table.named_one_of(sql, view.profile, names) do
      rows = rows |> visible(view) |> Enum.sort_by(&(&1.tenant != home))
      {:ok, rows |> Enum.reverse() |> Map.new(&{&1.name, &1})}
    end
  end

  @doc "The disabled entries that the view's profile may see, without their contents."
  def disabled(%View{} = view) do
    with {:ok, _book, sql} <- database(view),
         {:ok, rows} <- Table.disabled(sql, view.profile),
         do: {:ok, visible(rows, view)}
  end

  defp selected?(entry, options) do
    wanted = Enum.map(List.wrap(options[:tag]) ++ (options[:tags] || []), &String.downcase/1)

    (entry.enabled or Keyword.get(options, :include_disabled, false)) and
      options[:kind] in [nil, entry.kind] and options[:source] in [nil, entry.source] and
      wanted -- Enum.map(entry.tags, &String.downcase/1) == []
  end

  defp list_schema do
    [
      kind: {":skill, :note or nil", &(&1 in [nil, :skill, :note])},
      tags: {"a list of texts or nil", &(is_nil(&1) or Options.texts?(&1))},
      tag: {"text or nil", &(is_nil(&1) or Options.text?(&1))},
      source: {":user, :agent, :import or nil", &(&1 in [nil | @sources])},
      include_disabled: {"a boolean", &is_boolean/1},
      limit: Options.positive_or_nil(),
      after: {"an entry of the list, the `next` of a page or nil", &(is_nil(&1) or place?(&1))}
    ]
  end

  # No name is longer; `~` is in none.
  @longest_place 400

  @doc "Whether a value may be the option `:after` of a list."
  def place?(%Stored{name: name}), do: is_binary(name)

  def place?(text) do
    is_binary(text) and text != "" and byte_size(text) <= @longest_place and storable?(text) and
      text =~ ~r/\A[^~\s]+(~[0-9a-f]{12})?\z/u
  end

  def history(%View{} = view, name, options \\ []) when is_binary(name) do
    with :ok <- Options.validate(options, "a history", history_schema()) do
      read(view, name, fn at, name ->
        with {:ok, entry} <- resolve_any(at, name),
             do: versions(at, entry, options[:limit], number(options[:after]))
      end)
    end
  end

  # Reads versions until there are as many visible ones as wanted; with `nil`, all.
  defp versions(at, entry, wanted, last) do
    read = wanted && max(wanted, @few)

    with {:ok, versions} <- Table.versions(at.sql, entry, read, last) do
      found = visible_versions(versions, at.view)

      cond do
        wanted == nil or length(versions) < read ->
          {:ok, if(wanted, do: Enum.take(found, wanted), else: found)}

        length(found) >= wanted ->
          {:ok, Enum.take(found, wanted)}

        true ->
          last = List.last(versions).version

          with {:ok, more} <- versions(at, entry, wanted - length(found), last),
               do: {:ok, found ++ more}
      end
    end
  end

  defp number(%Version{version: number}), do: number
  defp number(number), do: number

  defp history_schema do
    [
      limit: Options.positive_or_nil(),
      after:
        {"a version of the history, its number or nil",
         &(is_nil(&1) or is_struct(&1, Version) or Options.positive?(&1))}
    ]
  end

  def version(%View{} = view, name, number) when is_binary(name) do
    read(view, name, fn at, name ->
      with {:ok, entry} <- resolve_any(at, name), do: find_version(at, entry, number)
    end)
  end

  def diff(%View{} = view, name, from, to) when is_binary(name) do
    read(view, name, fn at, name ->
      with {:ok, entry} <- resolve_any(at, name),
           {:ok, %{entry: from}} <- find_version(at, entry, from),
           {:ok, %{entry: to}} <- find_version(at, entry, to) do
        fields =
          for field <- @compared_fields,
              {old, new} = {Map.fetch!(from, field), Map.fetch!(to, field)},
              old != new,
              do: %{field: field, from: old, to: new}

        {:ok, %{content: Diff.unified(from.content, to.content), fields: fields}}
      end
    end)
  end

  defp read(view, name, fun) do
    with {:ok, _book, sql} <- database(view) do
      at = %{sql: sql, view: view}
      spelled(view, name, &fun.(at, &1))
    end
  end

  @doc """
  Calls the function with a name. If the store has no such entry, calls it again with the name of
  the only live entry whose name or title this is in another spelling.

  The function returns `{:error, {:not_found, name}}` without an entry.
  """
  def spelled(view, name, fun) do
    with {:error, {:not_found, _name}} <- fun.(name),
         {:ok, _book, sql} <- database(view),
         at = %{sql: sql, view: view},
         :ok <- explain_known(at, name),
         {:ok, others} <- spellings(at, name) do
      case others do
        [] -> not_found(at, name)
        [other] -> other |> fun.() |> explain_missing(at)
        names -> {:error, %StoreError{kind: :ambiguous, name: name, suggestions: names}}
      end
    end
  end

  defp spellings(at, name) do
    if storable?(name) do
      with {:ok, rows} <- Table.spelled(at.sql, at.view.profile, name),
           do:
             {:ok, rows |> visible(at.view) |> Enum.map(& &1.name) |> Enum.uniq() |> Enum.sort()}
    else
      {:ok, []}
    end
  end

  @doc "The running book of a view, and the handle of its database."
  def database(%View{book: nil}), do: {:error, %StoreError{kind: :no_store}}

  def database(%View{book: name}) do
    book = Book.fetch!(name)

    case Book.sql(book) do
      nil -> {:error, %StoreError{kind: :no_store}}
      sql -> {:ok, book, sql}
    end
  end

  @doc "The entries that the view's profile may see."
  def visible([], _view), do: []

  def visible(entries, %{ref: ref}),
    do: for({entry, true} <- Enum.zip(entries, Native.view_sees(ref, entries)), do: entry)

  # Each version is checked with the labels that it had.
  defp visible_versions(versions, view) do
    numbers = versions |> Enum.map(& &1.entry) |> visible(view) |> MapSet.new(& &1.version)
    Enum.filter(versions, &(&1.version in numbers))
  end

  # Names

  @doc "The live entry with a name or a title; `{:error, {:not_found, name}}` without one."
  def resolve(at, name) do
    with {:ok, nil} <- find(at, name), do: {:error, {:not_found, name}}
  end

  @doc "The same, but falls back to a deleted entry."
  def resolve_any(at, name) do
    with {:ok, nil} <- find(at, name),
         {:ok, nil} <- find_deleted(at, name),
         do: {:error, {:not_found, name}}
  end

  @doc "The live entry with a name or a title, or nil."
  def find(at, name) do
    with true <- storable?(name),
         {:ok, nil} <- find_named(at, String.normalize(name, :nfc)),
         {:ok, nil} <- first_visible(Table.titled(at.sql, at.view.profile, name), at.view) do
      {:ok, nil}
    else
      false -> {:ok, nil}
      found_or_error -> found_or_error
    end
  end

  @doc "The live entry with a name, or nil."
  def find_named(at, name) do
    with {:ok, %{live: entries}} <- named(at, name), do: first_visible({:ok, entries}, at.view)
  end

  @doc "All entries of a name in the view's tenants, live and deleted, visible or not."
  def named(%{named: %{name: name} = named}, name), do: {:ok, named}

  def named(at, name) do
    with {:ok, {live, deleted}} <- Table.named(at.sql, at.view.profile, name),
         do: {:ok, %{live: live, deleted: deleted}}
  end

  @doc "Whether a database can store this text; others are not asked for."
  def storable?(text), do: String.valid?(text) and not String.contains?(text, "\0")

  defp find_deleted(at, name) do
    if storable?(name),
      do: first_visible(Table.deleted(at.sql, at.view.profile, name), at.view),
      else: {:ok, nil}
  end

  # As in the catalog, a tenant's own entry comes before a common one of its name, and for views
  # of several tenants the common one comes first.
  defp first_visible({:ok, entries}, %{profile: profile} = view) do
    home = Profile.home(profile)
    found = visible(entries, view)
    {:ok, Enum.find(found, List.first(found), &(&1.tenant == home))}
  end

  defp first_visible({:error, error}, _view), do: {:error, error}

  @doc "One version of an entry."
  def find_version(at, entry, number) when is_integer(number) do
    with {:ok, versions} <- Table.version(at.sql, entry, number) do
      case visible_versions(versions, at.view) do
        [version] -> {:ok, version}
        [] -> no_version(entry, number)
      end
    end
  end

  def find_version(_at, entry, number), do: no_version(entry, number)

  defp no_version(entry, number) do
    {:error,
     %StoreError{kind: :no_version, name: entry.name, value: number, actual: entry.version}}
  end

  @doc """
  Turns `{:error, {:not_found, name}}` into an error with suggestions.

  Call it after the transaction: writers must not wait while names are compared.
  """
  def explain_missing({:error, {:not_found, name}}, at) do
    with :ok <- explain_known(at, name), do: not_found(at, name)
  end

  def explain_missing(result, _at), do: result

  # A name of a file's entry or of a deleted one needs no suggestions.
  defp explain_known(at, name) do
    with :ok <- check_file(at.view, name),
         {:ok, deleted} when deleted != nil <- find_deleted(at, name) do
      {:error, %StoreError{kind: :not_found, name: name, deleted_at: deleted.deleted_at}}
    else
      {:ok, nil} -> :ok
      error -> error
    end
  end

  # The view knows enabled entries and compares them quickly. Disabled ones, and those that are
  # newer than the view, are looked up by the names that are one slip away, so that no number of
  # hidden entries changes the result or its time.
  defp not_found(at, name) do
    with true <- storable?(name),
         {:ok, rows} <- Table.named_one_of(at.sql, at.view.profile, Slips.of(name)) do
      names = rows |> visible(at.view) |> Enum.map(& &1.name)
      names = Enum.uniq(names ++ View.suggest_stored(at.view, name))
      suggestions = Closest.several(name, names, @suggested)
      {:error, %StoreError{kind: :not_found, name: name, suggestions: suggestions}}
    else
      false -> {:error, %StoreError{kind: :not_found, name: name}}
      error -> error
    end
  end

  defp check_file(view, name) do
    if String.valid?(name) and file_entry(view, name) != nil,
      do: {:error, %StoreError{kind: :is_file, name: name}},
      else: :ok
  end

  @doc "The entry of a file with that name, or nil. A view may still have deleted store entries."
  def file_entry(view, name) do
    case View.find(view, name) do
      %Entry{source: "store"} -> nil
      entry_or_nil -> entry_or_nil
    end
  end
end
