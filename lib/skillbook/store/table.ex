defmodule Skillbook.Store.Table do
  @moduledoc false
  # The entries and their versions in the database. Every function takes the handle for `Skillbook.SQL`; none of them
  # knows who may see what.

  alias Skillbook.Store.Version
  alias Skillbook.Support.JSON
  alias Skillbook.{SQL, Stored}

  # The fields of an entry are the columns of `skillbook_entries`.
  @columns for %{field: field} <- Stored.__info__(:struct), do: field
  @all Enum.map_join(@columns, ", ", &"e.#{&1}")
  # A list does not read the contents.
  @light Enum.map_join(@columns, ", ", &if(&1 == :content, do: "null", else: "e.#{&1}"))
  # Of what was deleted none is read either.
  @live Enum.map_join(
          @columns,
          ", ",
          &if(&1 == :content,
            do: "case when e.deleted_at is null then e.content end",
            else: "e.#{&1}"
          )
        )

  # What a version has of an entry.
  @kept @columns -- [:id, :name, :author, :version, :created_at, :updated_at, :deleted_at]
  # What the database makes is not written.
  @inserted (@columns -- [:id]) ++ [:scope, :revision]
  @updated @inserted -- [:name, :created_at]

  places = fn columns -> Enum.map_join(1..length(columns), ", ", &"$#{&1}") end

  @next_revision "update skillbook_settings set value = cast(cast(value as bigint) + 1 as text) " <>
                   "where key = 'revision' returning value"

  @insert "insert into skillbook_entries (#{Enum.join(@inserted, ", ")}) values (#{places.(@inserted)}) returning id"

  @update "update skillbook_entries set " <>
            (@updated
             |> Enum.with_index(1)
             |> Enum.map_join(", ", fn {column, at} -> "#{column} = $#{at}" end)) <>
            " where id = $#{length(@updated) + 1}"

  # The row that this write made is the only one with its revision.
  @version "insert into skillbook_entry_versions (entry_id, version, action, made_by, author, at, " <>
             "#{Enum.join(@kept, ", ")}) select id, version, $1, $2, author, updated_at, #{Enum.join(@kept, ", ")} " <>
             "from skillbook_entries where revision = $3"

  # Told to the nodes that listen, by the database itself and only if the transaction is committed.
  @notify "select pg_notify('skillbook', $1)"

  @named "select #{@live} from skillbook_entries e where e.name = $1 order by e.id"

  @typedoc "The entries of a name: the live ones, the oldest first, and the deleted ones, without their contents."
  @type named :: {live :: [Stored.t()], deleted :: [Stored.t()]}

  @doc """
  Runs `fun` in a transaction that raises the revision, which is the first thing that a write does:
  whoever writes next waits there until this one is over, and sees what it did. `fun` gets the
  handle, the revision and the entries of a name, of which there are none for `nil`.
  """
  def write(sql, name, fun) do
    named = if name, do: [{@named, [name]}], else: []

    SQL.transaction(sql, [{@next_revision, []} | named], fn sql,
                                                            [%{rows: [[revision]]} | named] ->
      fun.(sql, String.to_integer(revision), named |> Enum.flat_map(& &1.rows) |> split())
    end)
  end

  @doc "The entries of a name."
  def named(sql, name) do
    with {:ok, %{rows: rows}} <- SQL.query(sql, @named, [name]), do: {:ok, split(rows)}
  end

  defp split(rows), do: rows |> Enum.map(&from_row/1) |> Enum.split_with(&is_nil(&1.deleted_at))

  @doc "The live entries of a title, the oldest first."
  def titled(sql, title),
    do: select(sql, @all, "where e.title = $1 and e.deleted_at is null order by e.id", [title])

  @doc "The deleted entries of a name or a title, the one that was deleted last first."
  def deleted(sql, name) do
    where =
      "where (e.name = $1 or e.title = $1) and e.deleted_at is not null order by e.revision desc"

    select(sql, @all, where, [name])
  end

  @doc "All live entries, without their contents."
  def list(sql), do: select(sql, @light, "where e.deleted_at is null order by e.id", [])

  @doc "The live entries with a schedule, without their contents."
  def scheduled(sql),
    do:
      select(
        sql,
        @light,
        "where e.schedule is not null and e.deleted_at is null order by e.id",
        []
      )

  @doc "The live entries whose name begins so, without their contents."
  def beginning(sql, stem) do
    select(sql, @light, "where e.name like $1 and e.deleted_at is null order by e.id", [
      stem <> "%"
    ])
  end

  defp select(sql, columns, rest, params) do
    with {:ok, %{rows: rows}} <-
           SQL.query(sql, "select #{columns} from skillbook_entries e #{rest}", params),
         do: {:ok, Enum.map(rows, &from_row/1)}
  end

  @doc """
  Writes an entry at a revision, with the version that it is at now. One without an `id` is added,
  and gets its own from the database.
  """
  def put(sql, %Stored{} = stored, action, by, revision) do
    version = {@version, [Atom.to_string(action), Atom.to_string(by), revision]}

    notice =
      if SQL.dialect(sql) == :postgres, do: [{@notify, [Integer.to_string(revision)]}], else: []

    with {:ok, [%{rows: rows} | _]} <-
           SQL.query_all(sql, [entry(stored, revision), version | notice]) do
      case rows do
        [[id]] -> {:ok, %{stored | id: id}}
        [] -> {:ok, stored}
      end
    end
  end

  defp entry(%{id: nil} = stored, revision), do: {@insert, values(stored, @inserted, revision)}
  defp entry(stored, revision), do: {@update, values(stored, @updated, revision) ++ [stored.id]}

  defp values(stored, columns, revision) do
    row =
      for {field, value} <- Map.from_struct(stored),
          into: %{},
          do: {field, to_column(field, value)}

    row = Map.merge(row, %{scope: scope(row), revision: revision})
    Enum.map(columns, &Map.fetch!(row, &1))
  end

  # Who sees an entry depends on these. Of JSON none has a line end in it.
  defp scope(%{kind: kind, labels: labels, excluded_for: excluded_for}) do
    :sha256
    |> :crypto.hash(Enum.join([kind, labels, excluded_for], "\n"))
    |> Base.encode16(case: :lower)
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
         do: {:ok, Enum.map(rows, &version_from_row(stored, &1))}
  end

  defp version_from_row(stored, [number, action, by, author, at | kept]) do
    at = from_column(:updated_at, at)

    fields =
      @kept
      |> Enum.zip(kept)
      |> Enum.map(fn {field, value} -> {field, from_column(field, value)} end)

    entry = struct!(stored, fields)
    deleted_at = if action == "delete", do: at

    %Version{
      version: number,
      action: action(action),
      by: from_column(:source, by),
      author: author,
      at: at,
      entry: %{entry | version: number, author: author, updated_at: at, deleted_at: deleted_at}
    }
  end

  for action <- ~w(create update enable disable delete restore)a do
    defp action(unquote(Atom.to_string(action))), do: unquote(action)
  end

  @doc "The columns that an entry is made of, in the order in which it is read of them."
  @spec columns() :: [atom()]
  def columns, do: @columns

  @doc "An entry as the catalog takes rows; of its values none is made a column's."
  @spec row(Stored.t()) :: %{columns: [String.t()], rows: [[term()]]}
  def row(%Stored{} = stored) do
    %{
      columns: Enum.map(@columns, &Atom.to_string/1),
      rows: [Enum.map(@columns, &Map.fetch!(stored, &1))]
    }
  end

  @doc "The entry of a row."
  @spec from_row([term()]) :: Stored.t()
  def from_row(row), do: from_row(@columns, row, __struct__: Stored)

  defp from_row([], [], fields), do: Map.new(fields)

  defp from_row([column | columns], [value | row], fields),
    do: from_row(columns, row, [{column, from_column(column, value)} | fields])

  @doc "A field's value as it stands in its column."
  @spec to_column(atom(), term()) :: SQL.param()
  def to_column(field, list) when field in [:labels, :proactive_for, :excluded_for],
    do: list |> Enum.uniq() |> Enum.sort() |> JSON.encode()

  def to_column(_field, list) when is_list(list), do: JSON.encode(list)
  def to_column(_field, value) when is_boolean(value) or is_nil(value), do: value
  def to_column(_field, value) when is_atom(value), do: Atom.to_string(value)
  def to_column(_field, value), do: value

  defp from_column(_field, nil), do: nil
  defp from_column(field, value) when field in [:include_in_prompt, :enabled], do: value == 1
  defp from_column(:kind, "skill"), do: :skill
  defp from_column(:kind, "note"), do: :note
  defp from_column(:source, "user"), do: :user
  defp from_column(:source, "agent"), do: :agent
  defp from_column(:source, "import"), do: :import

  defp from_column(field, json)
       when field in [:tags, :labels, :proactive_for, :excluded_for, :attachments, :writers],
       do: texts(json)

  defp from_column(field, text) when field in [:created_at, :updated_at, :deleted_at] do
    {:ok, time, 0} = DateTime.from_iso8601(text)
    time
  end

  defp from_column(_field, value), do: value

  # Most are empty.
  defp texts("[]"), do: []

  defp texts(json) do
    {:ok, list} = JSON.decode(json)
    list
  end
end
