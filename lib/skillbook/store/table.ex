defmodule Skillbook.Store.Table do
  @moduledoc false
  # Reads and writes entries and their versions in the database.
  #
  # All functions take a handle of `Skillbook.SQL`. Those that take a profile read only the
  # entries of its tenant and common ones, so entries of others cost no time. None of them checks
  # access: that is the work of `Skillbook.Store.Read`.

  alias Skillbook.SQL.{OldRows, Tenants, Values}
  alias Skillbook.Store.Version
  alias Skillbook.Support.{JSON, Number}
  alias Skillbook.{Native, SQL, Stored}

  # The fields of an entry are the columns of `skillbook_entries`.
  @columns for %{field: field} <- Stored.__info__(:struct), do: field
  @all Enum.map_join(@columns, ", ", &"e.#{&1}")
  @without_content Enum.map_join(
                     @columns,
                     ", ",
                     &if(&1 == :content, do: "null as content", else: "e.#{&1}")
                   )
  # Deleted entries are read without their contents.
  @with_live_content Enum.map_join(
                       @columns,
                       ", ",
                       &if(&1 == :content,
                         do: "case when e.deleted_at is null then e.content end",
                         else: "e.#{&1}"
                       )
                     )

  # The versions of an entry belong to its tenant.
  @version_columns @columns --
                     [
                       :id,
                       :name,
                       :tenant,
                       :author,
                       :version,
                       :created_at,
                       :updated_at,
                       :deleted_at
                     ]
  # The database assigns the id.
  @inserted (@columns -- [:id]) ++ [:scope, :title_spelling, :revision]
  @updated @inserted -- [:name, :created_at]

  places = fn columns -> Enum.map_join(1..length(columns), ", ", &"$#{&1}") end

  @next_revision Values.raise_setting("revision")
  @last_revision "(select cast(value as bigint) from skillbook_settings where key = 'revision')"

  @insert "insert into skillbook_entries (#{Enum.join(@inserted, ", ")}) " <>
            "values (#{places.(@inserted)}) returning id"

  @update "update skillbook_entries set " <>
            (@updated
             |> Enum.with_index(1)
             |> Enum.map_join(", ", fn {column, at} -> "#{column} = $#{at}" end)) <>
            " where id = $#{length(@updated) + 1}"

  # Until the end of its transaction each write has its own number, which selects its row.
  @version "insert into skillbook_entry_versions (entry_id, version, action, made_by, " <>
             "author, at, #{Enum.join(@version_columns, ", ")}) select id, version, $1, $2, " <>
             "author, updated_at, #{Enum.join(@version_columns, ", ")} " <>
             "from skillbook_entries where revision = $3"

  # PostgreSQL sends it to all listening nodes when the transaction commits.
  @notify "select pg_notify('skillbook', value) from skillbook_settings where key = 'revision'"

  @typedoc "The entries of a name, the oldest first; the deleted ones without their contents."
  @type named :: {live :: [Stored.t()], deleted :: [Stored.t()]}

  @doc """
  The arguments of `Skillbook.SQL.transaction/3` for a transaction that writes an entry.

  `fun` gets the handle, the number of the write and the entries of `name` as `named/3` (none for
  `nil`). The transaction ends with `commit/2`.
  """
  def transaction(profile, name, fun) do
    named = if name, do: [named_query(profile, name)], else: []
    # No revision is negative.
    number = -System.unique_integer([:positive])
    {named, fn sql, named -> fun.(sql, number, named |> Enum.flat_map(& &1.rows) |> split()) end}
  end

  @doc """
  Commits the writes of these numbers with the next revision, and returns it.

  Its row is locked until the commit, so transactions commit in the order of their revisions: a
  reader that has seen one has missed none before it.
  """
  @spec commit(SQL.t(), [neg_integer()]) :: {:ok, pos_integer()} | {:error, SQL.Error.t()}
  def commit(sql, numbers) do
    {these, params} = Values.ids(sql, "revision", numbers, 1)
    stamp = "update skillbook_entries set revision = #{@last_revision} where #{these}"
    notice = if SQL.dialect(sql) == :postgres, do: [{@notify, []}], else: []

    with {:ok, [%{rows: [[revision]]} | _]} <-
           SQL.commit(sql, [@next_revision, {stamp, params} | notice]),
         do: {:ok, Number.integer!(revision)}
  end

  @doc "The entries of a name, live and deleted."
  def named(sql, profile, name) do
    {query, params} = named_query(profile, name)
    with {:ok, %{rows: rows}} <- SQL.query(sql, query, params), do: {:ok, split(rows)}
  end

  defp named_query(profile, name),
    do: query(@with_live_content, profile, "e.name = $1 order by e.id", [name])

  defp split(rows), do: rows |> Enum.map(&from_row/1) |> Enum.split_with(&is_nil(&1.deleted_at))

  # Live entries, without the indexes of live entries alone: they begin with the tenant, and
  # before PostgreSQL has statistics of the table, it would read all entries of a tenant in one.
  @live "(e.deleted_at is null) is true"

  @doc "The live entries with a title, the oldest first."
  def titled(sql, profile, title),
    do: select(sql, @all, profile, "e.title = $1 and #{@live} order by e.id", [title])

  @doc "The deleted entries with a name or a title, the last deleted first."
  def deleted(sql, profile, name) do
    rest = "e.deleted_at is not null order by e.revision desc, e.id desc"
    select_either(sql, @all, profile, [{"name", name}, {"title", name}], rest)
  end

  @doc "The live entries of which a text is the name or the title in another spelling."
  def spelled(sql, profile, text) do
    case Native.spelling(text) do
      "" ->
        {:ok, []}

      spelling ->
        # A name has small letters and single dashes, so it is the only one of its spelling.
        either = [{"name", String.replace(spelling, " ", "-")}, {"title_spelling", spelling}]
        rest = "e.deleted_at is null order by e.id"
        select_either(sql, @without_content, profile, either, rest)
    end
  end

  # The condition of the tenant is only in the selects of the ids. With `or`, or with the
  # condition outside of them, SQLite would read all entries of the tenant.
  defp select_either(sql, columns, profile, [{one, value}, {other, other_value}], rest) do
    {readable, tenants} = Tenants.readable(profile, "tenant", 3)
    ids = &"select id from skillbook_entries where #{&1} = $#{&2} and #{readable}"

    query =
      "select #{columns} from skillbook_entries e where e.id in " <>
        "(#{ids.(one, 1)} union all #{ids.(other, 2)}) and #{rest}"

    run(sql, query, [value, other_value | tenants])
  end

  @doc "The live entries with one of these names, without their contents."
  def named_one_of(sql, profile, names) do
    {readable, tenants} = Tenants.readable(profile, "e.tenant", 2)
    {these, params} = Values.texts(sql, "e.name", names, 1)

    # PostgreSQL looks up the names one by one. A list of them is no reason for it to use the
    # index of names, as long as it expects few entries of a tenant.
    from =
      if SQL.dialect(sql) == :sqlite,
        do: "skillbook_entries e where #{readable} and #{these} and e.deleted_at is null",
        else:
          "(select distinct * from (#{Values.text_rows(sql, 1)}) n) n (name) cross join " <>
            "lateral (select * from skillbook_entries e where #{readable} and " <>
            "e.name = n.name and #{@live} offset 0) e"

    query = "select #{@without_content} from #{from} order by e.id"
    run(sql, query, params ++ tenants)
  end

  @doc "The name, the kind of the author and the author of each live entry that is enabled."
  def authors(sql, profile) do
    where = "e.enabled = 1 and e.deleted_at is null order by e.id"
    {query, params} = query("e.name, e.source, e.author", profile, where, [])

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, params) do
      {:ok, for([name, by, author] <- rows, do: {name, from_column(:source, by), author})}
    end
  end

  @doc "The revision, which each write raises."
  def revision(sql) do
    statement = "select value from skillbook_settings where key = 'revision'"
    with {:ok, %{rows: [[revision]]}} <- SQL.query(sql, statement), do: {:ok, revision}
  end

  @doc """
  The next live entries in the order of `{name, id}`, at most `limit`, without their contents.

  Their names come after `after_name`, if it is not `nil`. The filters are `:kind`, `:source` and
  `:enabled`, each `nil` for any. Most entries with labels that the profile lacks are left out.
  """
  def page(sql, profile, after_name, filters, limit) do
    with {:ok, sets} <- sets_of_labels(sql, profile),
         do: page(sql, profile, sets, after_name, filters, limit)
  end

  defp page(_sql, _profile, [], _after_name, _filters, _limit), do: {:ok, []}

  defp page(sql, profile, sets, after_name, filters, limit) do
    name = in_byte_order(sql, "e.name")

    conditions =
      for {column, value} <- [
            kind: filters[:kind],
            source: filters[:source],
            enabled: filters[:enabled]
          ],
          value != nil,
          do: {"e.#{column} = ", to_column(column, value)}

    conditions = if after_name, do: [{"#{name} > ", after_name} | conditions], else: conditions

    {conditions, params} =
      conditions
      |> Enum.with_index(1)
      |> Enum.map_reduce([], fn {{condition, value}, at}, params ->
        {condition <> "$#{at}", params ++ [value]}
      end)

    # Each tenant and set of labels is read in the order of the index; over several at once the
    # database would sort.
    {owners, params} = owners(sql, profile, sets, params)
    from = from_list(SQL.dialect(sql), profile.tenant, sets)

    parts =
      for {owner, at} <- Enum.with_index(owners) do
        where = Enum.join([owner, "e.deleted_at is null" | conditions], " and ")

        "select * from (select #{@without_content}, #{name} as ordered from #{from} " <>
          "where #{where} order by #{name}, e.id limit #{limit}) as part#{at}"
      end

    query = Enum.join(parts, " union all ") <> " order by ordered, id limit #{limit}"

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, params),
         do: {:ok, Enum.map(rows, &(&1 |> Enum.drop(-1) |> from_row()))}
  end

  defp owners(_sql, profile, nil, params), do: Tenants.each(profile, "e.tenant", params)

  defp owners(sql, _profile, sets, params) do
    labels = in_byte_order(sql, "e.labels")

    Enum.map_reduce(sets, params, fn {tenant, set}, params ->
      at = length(params)
      {"e.tenant = $#{at + 1} and #{labels} = $#{at + 2}", params ++ [tenant, set]}
    end)
  end

  defp in_byte_order(sql, column),
    do: if(SQL.dialect(sql) == :postgres, do: ~s(#{column} collate "C"), else: column)

  # Of two indexes in this order, SQLite would take the one with deleted entries.
  defp from_list(:sqlite, :all, _sets),
    do: "skillbook_entries e indexed by skillbook_entries_name_index"

  defp from_list(:sqlite, _one, nil),
    do: "skillbook_entries e indexed by skillbook_entries_list_index"

  defp from_list(:sqlite, _one, _sets),
    do: "skillbook_entries e indexed by skillbook_entries_labels_index"

  defp from_list(:postgres, _tenant, _sets), do: "skillbook_entries e"

  # Grants that are looked up, and sets that a page reads one by one.
  @max_grants 100
  @max_sets 40

  # The tenants and sets of labels of the live entries whose labels the profile holds; `nil` for
  # any, also if there are so many that a page of all entries has enough of them.
  #
  # A set is stored as JSON in the order of the labels, so sets that begin alike are neighbours in
  # the index. Each beginning that an entry has is continued by the labels that may come next.
  defp sets_of_labels(_sql, %{grants: grants, tenant: tenant})
       when grants == :all or tenant == :all or length(grants) > @max_grants,
       do: {:ok, nil}

  defp sets_of_labels(sql, profile) do
    labels = in_byte_order(sql, "e.labels")
    entry = "select 1 from skillbook_entries e where e.deleted_at is null and e.tenant ="
    next = "begun.labels || case begun.number when 0 then '' else ',' end || granted.label"
    tenants = Enum.uniq(["", Tenants.home(profile)])

    grants =
      profile.grants
      |> Enum.uniq()
      |> Enum.sort()
      |> Enum.map(&JSON.encode/1)
      |> Enum.with_index(1)

    {granted, params} =
      Enum.map_reduce(grants, tenants, fn {label, number}, params ->
        {"(#{number}, cast($#{length(params) + 1} as text))", params ++ [label]}
      end)

    granted =
      if granted == [],
        do: "select 1, '' where 1 = 0",
        else: "values " <> Enum.join(granted, ", ")

    owners =
      for {_tenant, at} <- Enum.with_index(tenants, 1), do: "(cast($#{at} as text), 0, '[')"

    # A label is followed by a comma or by the end, which is "]".
    query = """
    with recursive granted (number, label) as (#{granted}),
    begun (tenant, number, labels) as (
      select * from (values #{Enum.join(owners, ", ")}) as owners
      union all
      select begun.tenant, granted.number, #{next}
      from begun join granted on granted.number > begun.number
      where exists (#{entry} begun.tenant and #{labels} > #{next} and #{labels} < #{next} || '^')
    )
    select tenant, labels || ']' from begun
    where exists (#{entry} begun.tenant and #{labels} = begun.labels || ']')
    limit #{@max_sets + 1}
    """

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, params) do
      sets = for [tenant, labels] <- rows, do: {tenant, labels}
      {:ok, if(length(sets) <= @max_sets, do: sets)}
    end
  end

  @doc """
  The next enabled entries of a tenant, at most `limit`, as columns and rows. They come after the
  row `last`, if it is not `nil`.

  With `:all` they are those of all tenants, one tenant after the other, and with `:scheduled`
  those with a schedule, by their ids. `:common` is `nil` for a table with few others: it is read
  in its order, which is quicker than that of an index.
  """
  def enabled(sql, tenant, last, limit) do
    {these, params} =
      case tenant do
        :all -> {"1 = 1", []}
        :scheduled -> {"e.schedule is not null", []}
        # The `||` keeps the database from using the index.
        :common -> {"e.tenant || '' = ''", []}
        one -> {"e.tenant = $1", [Tenants.to_column(one)]}
      end

    order =
      if tenant in [:common, :scheduled],
        do: [id: "e.id"],
        else: [tenant: "e.tenant", name: in_byte_order(sql, "e.name"), id: "e.id"]

    columns = order |> Keyword.values() |> Enum.join(", ")
    place = if last, do: for({column, _} <- order, do: Enum.at(last, column_at(column))), else: []
    places = Enum.map_join(1..length(order), ", ", &"$#{length(params) + &1}")
    rest = if last, do: " and (#{columns}) > (#{places})", else: ""

    query =
      "select #{@all} from skillbook_entries e where #{these} and e.enabled = 1 and " <>
        "e.deleted_at is null#{rest} order by #{columns} limit #{limit}"

    SQL.query(sql, query, params ++ place)
  end

  @doc "The number of live entries, and of those that are common to all tenants."
  def counts(sql) do
    count = "select count(*) from skillbook_entries where deleted_at is null"

    with {:ok, %{rows: [[all, common]]}} <-
           SQL.query(sql, "select (#{count}), (#{count} and tenant = '')"),
         do: {:ok, {all, common}}
  end

  defp column_at(column), do: Enum.find_index(@columns, &(&1 == column))

  @doc "The live entries that are disabled, without their contents."
  def disabled(sql, profile) do
    where = "e.enabled = 0 and e.deleted_at is null order by e.id"
    select(sql, @without_content, profile, where, [])
  end

  @doc "The live entries with a schedule, without their contents."
  def scheduled(sql, profile) do
    where = "e.schedule is not null and e.deleted_at is null order by e.id"
    select(sql, @without_content, profile, where, [])
  end

  @doc "The live entries whose name starts with a stem, without their contents."
  def starting_with(sql, profile, stem) do
    name = in_byte_order(sql, "e.name")
    where = "#{name} >= $1 and #{name} < $2 and e.deleted_at is null order by e.id"
    select(sql, @without_content, profile, where, [stem, stem <> "\u{10FFFF}"])
  end

  defp select(sql, columns, profile, where, params) do
    {query, params} = query(columns, profile, where, params)
    run(sql, query, params)
  end

  defp run(sql, query, params) do
    with {:ok, %{rows: rows}} <- SQL.query(sql, query, params),
         do: {:ok, Enum.map(rows, &from_row/1)}
  end

  defp query(columns, profile, where, params) do
    {readable, tenants} = Tenants.readable(profile, "e.tenant", length(params) + 1)
    query = "select #{columns} from skillbook_entries e where #{readable} and #{where}"
    {query, params ++ tenants}
  end

  @doc """
  Inserts or updates an entry and adds its version. An entry without an `id` is inserted, and
  returned with the id that the database assigned.
  """
  def put(sql, %Stored{} = stored, action, by, number) do
    version = {@version, [Atom.to_string(action), Atom.to_string(by), number]}

    with {:ok, [%{rows: rows} | _]} <- SQL.query_all(sql, [entry(stored, number), version]) do
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

    more = %{title_spelling: Native.spelling(row.title), scope: scope(row), revision: revision}
    row = Map.merge(row, more)
    Enum.map(columns, &Map.fetch!(row, &1))
  end

  @doc "A digest of what access to an entry depends on. No other live one of its name has it."
  @spec scope_of(Stored.t()) :: String.t()
  def scope_of(%Stored{} = stored) do
    stored
    |> Map.take([:kind, :labels, :excluded_for, :tenant])
    |> Map.new(fn {field, value} -> {field, to_column(field, value)} end)
    |> scope()
  end

  # Access to an entry depends on these four. The lists are JSON, so they contain no line breaks,
  # and the tenant is last, since it may have some.
  defp scope(%{kind: kind, labels: labels, excluded_for: excluded_for, tenant: tenant}) do
    tenant = if tenant == "", do: [], else: [tenant]

    :sha256
    |> :crypto.hash(Enum.join([kind, labels, excluded_for | tenant], "\n"))
    |> Base.encode16(case: :lower)
  end

  # Of each entry as many of the newest versions stay, however old they are.
  @kept_versions 20

  @doc "For `Skillbook.Book.Pruner`: deletes old versions of entries, which are not the newest."
  def prune_versions(sql, before, place) do
    OldRows.walk(sql, before, place,
      table: "skillbook_entry_versions",
      key: ["entry_id", "version"],
      delete:
        "at < $1 and version <= (select e.version - #{@kept_versions} " <>
          "from skillbook_entries e where e.id = skillbook_entry_versions.entry_id)"
    )
  end

  @doc "For `Skillbook.Book.Pruner`: deletes entries that were deleted, with their versions."
  def prune_deleted(sql, before, _place) do
    # The last write stays: nodes recognize by it that the database is the same one.
    oldest =
      "select id from skillbook_entries where deleted_at < $1 and revision < " <>
        "(select max(revision) from skillbook_entries) order by deleted_at, id limit 1"

    # An entry may have any number of versions, so they are deleted before it, the oldest first.
    versions =
      "delete from skillbook_entry_versions where entry_id = $1 and version in " <>
        "(select version from skillbook_entry_versions where entry_id = $1 order by version " <>
        "limit #{OldRows.limit()})"

    deleted =
      SQL.transaction(sql, fn sql ->
        with {:ok, %{rows: [[id]]}} <- SQL.query(sql, oldest, [before]),
             {:ok, %{num_rows: count}} <- SQL.query(sql, versions, [id]) do
          if count == OldRows.limit(), do: {:ok, 0}, else: delete_row(sql, id)
        else
          {:ok, %{rows: []}} -> {:ok, nil}
          error -> error
        end
      end)

    case deleted do
      {:ok, nil} -> {:ok, 0, nil}
      {:ok, count} -> {:ok, count, :next}
      error -> error
    end
  end

  defp delete_row(sql, id) do
    with {:ok, _} <- SQL.query(sql, "delete from skillbook_entries where id = $1", [id]),
         do: {:ok, 1}
  end

  # Rows of one transaction, so that no writer waits long.
  @spelled_at_once 500

  @doc "Fills the spellings of titles of entries of an earlier version."
  @spec spell(SQL.t()) :: :ok | {:error, SQL.Error.t()}
  def spell(sql) do
    unspelled =
      "select id, title from skillbook_entries where title_spelling is null " <>
        "order by id limit #{@spelled_at_once}"

    with {:ok, %{rows: [_ | _] = rows}} <- SQL.query(sql, unspelled),
         updates = Enum.map(rows, &spell_row/1),
         {:ok, _} <- SQL.transaction(sql, &SQL.query_all(&1, updates)) do
      spell(sql)
    else
      {:ok, _none} -> :ok
      error -> error
    end
  end

  defp spell_row([id, title]) do
    {"update skillbook_entries set title_spelling = $1 where id = $2",
     [Native.spelling(title), id]}
  end

  @doc """
  The versions of an entry, the newest first, without their contents: at most `limit`, or all for
  `nil`, and those before the version `last`, unless it is `nil`.
  """
  def versions(sql, %Stored{} = stored, limit, last) do
    columns =
      Enum.map_join(@version_columns, ", ", &if(&1 == :content, do: "null", else: "v.#{&1}"))

    before = if last, do: "and v.version < $2 ", else: ""
    rest = "order by v.version desc" <> if(limit, do: " limit #{limit}", else: "")
    versions(sql, stored, columns, before <> rest, List.wrap(last))
  end

  @doc "A list with the version of that number, or an empty list."
  def version(sql, %Stored{} = stored, number) do
    columns = Enum.map_join(@version_columns, ", ", &"v.#{&1}")
    versions(sql, stored, columns, "and v.version = $2", [number])
  end

  defp versions(sql, stored, columns, rest, params) do
    query =
      "select v.version, v.action, v.made_by, v.author, v.at, #{columns} " <>
        "from skillbook_entry_versions v where v.entry_id = $1 #{rest}"

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, [stored.id | params]),
         do: {:ok, Enum.map(rows, &version_from_row(stored, &1))}
  end

  defp version_from_row(stored, [number, action, by, author, at | values]) do
    at = from_column(:updated_at, at)

    fields =
      for {field, value} <- Enum.zip(@version_columns, values),
          do: {field, from_column(field, value)}

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

  @doc "The columns of an entry, in the order of `from_row/1`."
  @spec columns() :: [atom()]
  def columns, do: @columns

  @doc "Entries as rows for the catalog, which takes field values as they are."
  @spec rows([Stored.t()]) :: %{columns: [String.t()], rows: [[term()]]}
  def rows(entries) do
    %{
      columns: Enum.map(@columns, &Atom.to_string/1),
      rows: for(%Stored{} = stored <- entries, do: Enum.map(@columns, &Map.fetch!(stored, &1)))
    }
  end

  @doc "The entry of a row."
  @spec from_row([term()]) :: Stored.t()
  def from_row(row), do: from_row(@columns, row, __struct__: Stored)

  defp from_row([], [], fields), do: Map.new(fields)

  defp from_row([column | columns], [value | row], fields),
    do: from_row(columns, row, [{column, from_column(column, value)} | fields])

  @doc "A field's value as its column stores it."
  @spec to_column(atom(), term()) :: SQL.param()
  def to_column(field, list) when field in [:labels, :proactive_for, :excluded_for],
    do: list |> Enum.uniq() |> Enum.sort() |> JSON.encode()

  def to_column(:tenant, tenant), do: Tenants.to_column(tenant)
  def to_column(_field, list) when is_list(list), do: JSON.encode(list)
  def to_column(_field, value) when is_boolean(value) or is_nil(value), do: value
  def to_column(_field, value) when is_atom(value), do: Atom.to_string(value)
  def to_column(_field, value), do: value

  defp from_column(_field, nil), do: nil
  defp from_column(field, value) when field in [:include_in_prompt, :enabled], do: value == 1
  defp from_column(:tenant, tenant), do: Tenants.from_column(tenant)
  defp from_column(:kind, "skill"), do: :skill
  defp from_column(:kind, "note"), do: :note
  defp from_column(:source, "user"), do: :user
  defp from_column(:source, "agent"), do: :agent
  defp from_column(:source, "import"), do: :import

  defp from_column(field, json)
       when field in [:tags, :labels, :proactive_for, :excluded_for, :attachments, :writers],
       do: texts(json)

  defp from_column(field, text) when field in [:created_at, :updated_at, :deleted_at],
    do: Values.time(text)

  defp from_column(_field, value), do: value

  # Most lists are empty.
  defp texts("[]"), do: []

  defp texts(json) do
    {:ok, list} = JSON.decode(json)
    list
  end
end
