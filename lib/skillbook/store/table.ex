defmodule Skillbook.Store.Table do
  @moduledoc false
  # The entries and their versions in the database. Every function takes the handle for `Skillbook.SQL`; none of them
  # knows who may see what.

  alias Skillbook.{SQL, Stored}
  alias Skillbook.Store.Version

  @columns Stored.columns()
  @all Enum.map_join(@columns, ", ", &"e.#{&1}")
  # A list does not read the contents.
  @light Enum.map_join(@columns, ", ", &if(&1 == :content, do: "null", else: "e.#{&1}"))

  # What a version has of an entry.
  @kept ~w(kind title description content tags labels include_in_prompt proactive_for excluded_for source enabled hash
           attachments schedule timezone writers)a
  @written @columns -- [:id, :name, :created_at]

  @doc "The live entries of a name, the oldest first."
  def named(sql, name),
    do: select(sql, @all, "where e.name = $1 and e.deleted_at is null order by e.id", [name])

  @doc "The live entries of a title, the oldest first."
  def titled(sql, title),
    do: select(sql, @all, "where e.title = $1 and e.deleted_at is null order by e.id", [title])

  @doc "The deleted entries of a name or a title, the one that was deleted last first."
  def deleted(sql, name) do
    where = "where (e.name = $1 or e.title = $1) and e.deleted_at is not null order by e.revision desc"
    select(sql, @all, where, [name])
  end

  @doc "The deleted entries of a name, the highest version first, without their contents."
  def deleted_named(sql, name) do
    where = "where e.name = $1 and e.deleted_at is not null order by e.version desc, e.id"
    select(sql, @light, where, [name])
  end

  @doc "All live entries, without their contents."
  def list(sql), do: select(sql, @light, "where e.deleted_at is null order by e.id", [])

  @doc "The live entries with a schedule, without their contents."
  def scheduled(sql),
    do: select(sql, @light, "where e.schedule is not null and e.deleted_at is null order by e.id", [])

  @doc "The live entries whose name begins so, without their contents."
  def beginning(sql, stem) do
    select(sql, @light, "where e.name like $1 and e.deleted_at is null order by e.id", [stem <> "%"])
  end

  defp select(sql, columns, rest, params) do
    with {:ok, %{rows: rows}} <- SQL.query(sql, "select #{columns} from skillbook_entries e #{rest}", params),
         do: {:ok, Enum.map(rows, &Stored.from_row/1)}
  end

  @doc """
  Raises the revision, which is the first thing that a write does: whoever writes next waits here until this one is over,
  and sees what it did.
  """
  def next_revision(sql) do
    query =
      "update skillbook_settings set value = cast(cast(value as bigint) + 1 as text) " <>
        "where key = 'revision' returning value"

    with {:ok, %{rows: [[revision]]}} <- SQL.query(sql, query), do: {:ok, String.to_integer(revision)}
  end

  @doc "Adds an entry; its `id` is given by the database."
  def insert(sql, %Stored{} = stored, revision) do
    columns = [:name, :created_at | @written]
    values = Enum.map(columns, &Stored.to_column(&1, Map.fetch!(stored, &1))) ++ [scope(stored), revision]

    query =
      "insert into skillbook_entries (#{Enum.join(columns, ", ")}, scope, revision) " <>
        "values (#{places(values)}) returning id"

    with {:ok, %{rows: [[id]]}} <- SQL.query(sql, query, values), do: {:ok, %{stored | id: id}}
  end

  @doc "Writes the entry's fields over those in the database."
  def update(sql, %Stored{} = stored, revision) do
    values =
      Enum.map(@written, &Stored.to_column(&1, Map.fetch!(stored, &1))) ++
        [scope(stored), revision, stored.id]

    columns = @written ++ [:scope, :revision]

    set =
      columns
      |> Enum.with_index(1)
      |> Enum.map_join(", ", fn {column, number} -> "#{column} = $#{number}" end)

    query = "update skillbook_entries set #{set} where id = $#{length(values)}"

    with {:ok, _} <- SQL.query(sql, query, values), do: {:ok, stored}
  end

  # Who sees an entry depends on these. Of JSON none has a line end in it.
  defp scope(stored) do
    parts =
      for field <- [:kind, :labels, :excluded_for], do: Stored.to_column(field, Map.fetch!(stored, field))

    :sha256 |> :crypto.hash(Enum.join(parts, "\n")) |> Base.encode16(case: :lower)
  end

  @doc "Adds the version that the entry is at now."
  def insert_version(sql, %Stored{} = stored, action, by) do
    kept = Enum.map(@kept, &Stored.to_column(&1, Map.fetch!(stored, &1)))

    head = [
      stored.id,
      stored.version,
      Atom.to_string(action),
      Atom.to_string(by),
      stored.author,
      stored.updated_at
    ]

    values = head ++ kept

    query =
      "insert into skillbook_entry_versions (entry_id, version, action, made_by, author, at, #{Enum.join(@kept, ", ")}) " <>
        "values (#{places(values)})"

    with {:ok, _} <- SQL.query(sql, query, values), do: :ok
  end

  @doc "The versions of an entry, the newest first, without their contents."
  def versions(sql, %Stored{} = stored) do
    columns = Enum.map_join(@kept, ", ", &if(&1 == :content, do: "null", else: "v.#{&1}"))
    versions(sql, stored, columns, "order by v.version desc", [])
  end

  @doc "One version of an entry, in a list, or an empty one."
  def version(sql, %Stored{} = stored, number) do
    versions(sql, stored, Enum.map_join(@kept, ", ", &"v.#{&1}"), "and v.version = $2", [number])
  end

  defp versions(sql, stored, columns, rest, params) do
    query =
      "select v.version, v.action, v.made_by, v.author, v.at, #{columns} " <>
        "from skillbook_entry_versions v where v.entry_id = $1 #{rest}"

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, [stored.id | params]),
         do: {:ok, Enum.map(rows, &from_row(stored, &1))}
  end

  defp from_row(stored, [number, action, by, author, at | kept]) do
    at = Stored.from_column(:updated_at, at)

    fields =
      @kept |> Enum.zip(kept) |> Enum.map(fn {field, value} -> {field, Stored.from_column(field, value)} end)

    entry = struct!(stored, fields)
    deleted_at = if action == "delete", do: at

    %Version{
      version: number,
      action: action(action),
      by: Stored.from_column(:source, by),
      author: author,
      at: at,
      entry: %{entry | version: number, author: author, updated_at: at, deleted_at: deleted_at}
    }
  end

  for action <- ~w(create update enable disable delete restore)a do
    defp action(unquote(Atom.to_string(action))), do: unquote(action)
  end

  defp places(values), do: Enum.map_join(1..length(values), ", ", &"$#{&1}")
end
