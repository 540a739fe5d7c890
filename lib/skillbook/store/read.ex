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

  alias Skillbook.{Book, Entry, Native, Profile, StoreError, View}
  alias Skillbook.Store.Table
  alias Skillbook.Support.{Closest, Diff, Options}

  @sources [:user, :agent, :import]

  @compared_fields ~w(kind title description tags labels include_in_prompt proactive_for
                      excluded_for attachments schedule timezone enabled)a

  def fetch(%View{} = view, name) when is_binary(name), do: read(view, name, &resolve/2)

  def list(%View{} = view, options \\ []) do
    with :ok <- Options.validate(options, "a list of the store", list_schema()),
         {:ok, _book, sql} <- database(view),
         {:ok, rows} <- Table.list(sql, view.profile) do
      entries =
        rows
        |> Enum.filter(&selected?(&1, options))
        |> visible(view)
        |> Enum.sort_by(&{&1.name, &1.id})

      {:ok, entries}
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
      include_disabled: {"a boolean", &is_boolean/1}
    ]
  end

  def history(%View{} = view, name) when is_binary(name) do
    read(view, name, fn at, name ->
      with {:ok, entry} <- resolve_any(at, name),
           {:ok, versions} <- Table.versions(at.sql, entry),
           do: {:ok, visible_versions(versions, view)}
    end)
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
      spelled(view, name, &(at |> fun.(&1) |> explain_missing(at)))
    end
  end

  @doc """
  Calls the function with a name. If the store has no such entry, calls it again with the name of
  the only live entry whose name or title this is in another spelling.
  """
  def spelled(view, name, fun) do
    with {:error, %StoreError{kind: :not_found, deleted_at: nil} = error} <- fun.(name) do
      case spellings(view, name) do
        {:ok, []} -> {:error, error}
        {:ok, [other]} -> fun.(other)
        {:ok, names} -> {:error, %{error | kind: :ambiguous, suggestions: names}}
        {:error, error} -> {:error, error}
      end
    end
  end

  defp spellings(view, name) do
    with true <- storable?(name),
         {:ok, _book, sql} <- database(view),
         {:ok, rows} <- Table.list(sql, view.profile) do
      entries = visible(rows, view)
      named = Native.same_spelling(name, Enum.map(entries, & &1.name))
      titled = Native.same_spelling(name, Enum.map(entries, & &1.title))

      names =
        for {entry, same} <- Enum.zip(entries, Enum.zip_with(named, titled, &(&1 or &2))),
            same,
            do: entry.name

      {:ok, names |> Enum.uniq() |> Enum.sort()}
    else
      false -> {:ok, []}
      error -> error
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
         {:ok, %{live: entries}} <- named(at, String.normalize(name, :nfc)),
         {:ok, nil} <- first_visible({:ok, entries}, at.view),
         {:ok, nil} <- first_visible(Table.titled(at.sql, at.view.profile, name), at.view) do
      {:ok, nil}
    else
      false -> {:ok, nil}
      found_or_error -> found_or_error
    end
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

  Call it after the transaction: writers must not wait while all names are compared.
  """
  def explain_missing({:error, {:not_found, name}}, at), do: not_found(at, name)
  def explain_missing(result, _at), do: result

  defp not_found(at, name) do
    with :ok <- check_file(at.view, name),
         {:ok, deleted} <- find_deleted(at, name),
         {:ok, entries} <- Table.list(at.sql, at.view.profile) do
      names = entries |> visible(at.view) |> Enum.map(& &1.name) |> Enum.uniq()
      suggestions = if storable?(name), do: Closest.several(name, names, 3), else: []
      error = %StoreError{kind: :not_found, name: name, suggestions: suggestions}
      {:error, %{error | deleted_at: deleted && deleted.deleted_at}}
    end
  end

  defp check_file(view, name) do
    with true <- String.valid?(name), %Entry{} <- file_entry(view, name) do
      {:error, %StoreError{kind: :is_file, name: name}}
    else
      _ -> :ok
    end
  end

  @doc "The entry of a file with that name, or nil. A view may still have deleted store entries."
  def file_entry(view, name) do
    case View.fetch(view, name) do
      {:ok, %Entry{source: "store"}} -> nil
      {:ok, entry} -> entry
      {:error, _error} -> nil
    end
  end
end
