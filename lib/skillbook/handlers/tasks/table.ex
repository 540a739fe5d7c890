defmodule Skillbook.Handlers.Tasks.Table do
  @moduledoc false
  # Stores tasks and their tags in the database, and searches them. Times are arguments. Callers
  # use a transaction for several writes.
  #
  # Every read stays within a scope (`scope/2`): the segments of the index that a profile sees. A
  # hidden task behaves as if it did not exist, also as a parent or a child of a visible one.

  alias Skillbook.Handlers.Tasks.Task
  alias Skillbook.SQL.{Numbers, Tenants, Values}
  alias Skillbook.Search.Index
  alias Skillbook.Support.{JSON, UntilError}
  alias Skillbook.{FlagError, NotFoundError, Profile, SQL}

  # Columns of a row that are fields of a task under the same name.
  @fields ~w(title description status priority assignee due_date created_by created_at)a ++
            ~w(updated_at archived_at)a
  @updated @fields -- [:created_by, :created_at]
  @select "t.id, t.number, t.parent_id, s.labels, t.tenant, " <>
            Enum.map_join(@fields, ", ", &"t.#{&1}")
  @from "skillbook_tasks t join skillbook_search_segments s on s.id = t.segment_id"
  # The id of the row with a number.
  @row "(select n.id from skillbook_tasks n where n.number = ?)"

  @typedoc "The tasks that a profile sees."
  @type scope :: %{profile: Profile.t(), segments: [Index.segment()]}

  @priority_order "case t.priority when 'critical' then 0 when 'high' then 1 " <>
                    "when 'medium' then 2 else 3 end"
  @due_order "t.due_date is null, t.due_date"
  @orders %{
    "due_date" => "#{@due_order}, #{@priority_order}, t.id",
    "priority" => "#{@priority_order}, #{@due_order}, t.id",
    "created_at" => "t.created_at desc, t.id desc",
    "updated_at" => "t.updated_at desc, t.id desc"
  }

  @last_row 9_223_372_036_854_775_807

  @doc "The values of `:sort` in `search/2`, besides `relevance`."
  def orders, do: ~w(due_date priority created_at updated_at)

  @doc "Sorts tags and removes duplicates, ignoring case."
  def normalize_tags(tags), do: tags |> Enum.uniq_by(&key/1) |> Enum.sort_by(&key/1)

  @doc "Removes the tags in `others`, ignoring case."
  def reject_tags(tags, others),
    do: Enum.reject(tags, &(key(&1) in Enum.map(others, fn tag -> key(tag) end)))

  # The kind and the scope of the index's segments, of which each tenant has one for each list of
  # labels.
  @kind "task"
  @scope ""

  @doc "The scope of a profile. All functions that read or change tasks take it."
  @spec scope(SQL.t(), Profile.t()) :: {:ok, scope()} | {:error, SQL.Error.t()}
  def scope(sql, profile) do
    with {:ok, segments} <- Index.segments(sql, @kind, [@scope], profile),
         do: {:ok, %{profile: profile, segments: segments}}
  end

  # The condition that a scope has a task. A deleted task exists only for the profile that created
  # it, and for trusted code.
  defp visible(sql, scope, table \\ "t") do
    {within, params} = ids(sql, "#{table}.segment_id", Enum.map(scope.segments, & &1.id))

    if Profile.unrestricted?(scope.profile) do
      {within, params}
    else
      {"#{within} and (#{table}.archived_at is null or #{table}.created_by = ?)",
       params ++ [scope.profile.id]}
    end
  end

  defp ids(sql, column, ids) do
    {condition, params} = Values.ids(sql, column, ids, 1)
    {String.replace(condition, "$1", "?"), params}
  end

  @doc "Inserts a task with normalized tags and labels, and returns it with its `id`."
  def insert(sql, %Task{} = task) do
    columns = [:number, :segment_id, :tenant, :parent_id | @fields]
    fields = Enum.map_join(@fields, ", ", fn _ -> "?" end)

    with {:ok, segment} <- Index.join(sql, {@kind, @scope, task.labels, task.tenant}, 1),
         {:ok, row, number} <-
           Numbers.insert(sql, fn number ->
             number_params([
               {"insert into skillbook_tasks (#{Enum.join(columns, ", ")}) " <>
                  "values (?, ?, ?, #{@row}, #{fields}) " <>
                  "on conflict (number) do nothing returning id",
                [number, segment, Tenants.to_column(task.tenant), task.parent_id] ++
                  values(task, @fields)}
             ])
           end),
         :ok <- insert_tags(sql, row, task.tags),
         :ok <- index(sql, segment, row, task),
         do: {:ok, %{task | id: number}}
  end

  # Deleted tasks are not searched.
  defp index(_sql, _segment, _row, %{archived_at: %DateTime{}}), do: :ok

  defp index(sql, segment, row, task),
    do: Index.put(sql, segment, Index.pack([{row, document(task)}]))

  # Nearly every search is for open tasks, so that is a field of the index.
  defp document(task) do
    fields = if Task.open?(task), do: [Index.field("state", "open")], else: []
    {[task.title], task.description || "", fields}
  end

  @doc "For `Skillbook.Search.Backfill`: the segment's key, the id and the document of each id."
  def searched(sql, ids) do
    {condition, params} = Values.ids(sql, "t.id", ids, 1)
    query = "select #{@select} from #{@from} where #{condition} and t.archived_at is null"

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, params) do
      tasks = for row <- rows, do: task(row)

      {:ok,
       for {row, _parent, task} <- tasks do
         {{@kind, @scope, task.labels, task.tenant}, row, document(task)}
       end}
    end
  end

  @doc "Fetches a task of a scope by its id."
  def fetch(sql, scope, id) do
    with {:ok, {_row, task}} <- fetch_row(sql, scope, id), do: {:ok, task}
  end

  defp fetch_row(sql, scope, id) do
    with {:ok, found} <- select(sql, scope, [{"t.number = ?", [id]}], "") do
      case found do
        [found] -> {:ok, found}
        [] -> {:error, %NotFoundError{kind: "task", id: Task.reference(id), find: "tasks.search"}}
      end
    end
  end

  @doc "Lists the direct children of a task, without deleted ones."
  def children(sql, scope, id) do
    conditions = [{"t.parent_id = #{@row}", [id]}, {"t.archived_at is null", []}]

    with {:ok, found} <- select(sql, scope, conditions, "order by t.id"),
         do: {:ok, Enum.map(found, &elem(&1, 1))}
  end

  # Whether the task `id` is `ancestor` or one of its descendants, as far as the scope shows. Via
  # hidden tasks there may be a cycle: an error would tell of them, and all queries end on one.
  defp descendant?(sql, scope, id, ancestor) do
    {visible, params} = visible(sql, scope, "p")

    # `union` removes duplicates, so the query ends even on a cycle in the table.
    query = """
    with recursive above (id) as (
      select n.id from skillbook_tasks n where n.number = ?
      union
      select p.id from skillbook_tasks t join above a on t.id = a.id
      join skillbook_tasks p on p.id = t.parent_id
      where #{visible}
    )
    select count(*) from above where id = #{@row}
    """

    {query, params} = number_params([{query, [id] ++ params ++ [ancestor]}])
    with {:ok, %{rows: [[count]]}} <- SQL.query(sql, query, params), do: {:ok, count > 0}
  end

  @doc """
  Checks that `parent` can be the parent of the task `id`, or of a new task for `nil`.

  The parent must exist, must not be deleted, and must not be the task or one of its descendants.
  """
  def check_parent(_sql, _scope, _id, nil), do: :ok

  def check_parent(sql, scope, id, parent) do
    with {:ok, task} <- fetch(sql, scope, parent),
         {:ok, cycle?} <- if(id, do: descendant?(sql, scope, parent, id), else: {:ok, false}) do
      cond do
        task.archived_at -> invalid_parent(parent, "a task that is not deleted")
        parent == id -> invalid_parent(parent, "another task than the one it is the parent of")
        cycle? -> invalid_parent(parent, "a task that is not itself below #{Task.reference(id)}")
        true -> :ok
      end
    end
  end

  defp invalid_parent(parent, expected),
    do: FlagError.invalid("parent", Task.reference(parent), expected)

  @doc "A line that lists the open children of a finished or deleted task, or empty text."
  def open_children_note(sql, scope, task) do
    with {:ok, children} <- children(sql, scope, task.id) do
      case Enum.filter(children, &Task.open?/1) do
        [] ->
          {:ok, ""}

        open ->
          ids = Enum.map_join(open, ", ", &Task.reference/1)
          {:ok, "\nStill open below it: #{ids}"}
      end
    end
  end

  @doc "Updates the fields of a task and its normalized tags. Its labels stay."
  def update(sql, scope, %Task{} = task) do
    with {:ok, {row, before}} <- fetch_row(sql, scope, task.id),
         {statement, params} = statement(row, before, task),
         {:ok, _} <- SQL.query(sql, statement, params),
         :ok <- reindex(sql, row, before, task),
         {:ok, _} <- SQL.query(sql, "delete from skillbook_task_tags where task_id = $1", [row]),
         :ok <- insert_tags(sql, row, task.tags),
         do: {:ok, task}
  end

  defp statement(row, before, task) do
    set = for column <- @updated, do: {"#{column} = ?", [Map.fetch!(task, column)]}

    # A hidden parent is shown as none, and stays unless the task gets another one.
    parent =
      if task.parent_id == before.parent_id,
        do: [],
        else: [{"parent_id = #{@row}", [task.parent_id]}]

    {set, params} = number_params(set ++ parent, ", ")
    {"update skillbook_tasks set #{set} where id = $#{length(params) + 1}", params ++ [row]}
  end

  defp reindex(sql, row, before, task) do
    if document(before) == document(task) and before.archived_at == task.archived_at do
      :ok
    else
      more = if task.archived_at, do: 0, else: 1

      with {:ok, segment} <- Index.join(sql, {@kind, @scope, task.labels, task.tenant}, more),
           :ok <- Index.remove(sql, segment, [row]),
           do: index(sql, segment, row, task)
    end
  end

  @doc """
  Searches tasks: `{:ok, tasks, total, next}`, where `total` counts all matches.

  `next` is the place after which more of a sorted list follow, or `nil`. With a place in `:after`
  the list begins there, and `total` is `nil`.

  The filters are `:clauses` of a query, `:statuses` (which may include `"overdue"`),
  `:priorities`, `:tags`, `:assignee`, `:mine` (a profile's id), `:overdue`, `:due_before` and
  `:due_after`, each `nil` for none. `:today`, `:sort` and `:limit` are required.
  """
  def search(sql, scope, %{clauses: [_ | _] = clauses, sort: "relevance"} = filters) do
    if only_open?(filters),
      do: search_index(sql, scope, clauses, filters.limit),
      else: search_database(sql, scope, filters)
  end

  def search(sql, scope, filters), do: search_database(sql, scope, filters)

  defp only_open?(filters) do
    others = Map.drop(filters, [:query, :clauses, :sort, :limit, :today, :statuses])

    filters.statuses == Task.open_statuses() and
      Enum.all?(Map.values(others), &(&1 in [nil, false]))
  end

  # The index alone can filter and rank, so only the listed tasks are read from the database.
  defp search_index(sql, scope, clauses, limit) do
    with {:ok, rows, total} <- find(sql, scope, clauses, [Index.field("state", "open")], limit),
         rows = Enum.take(rows, limit),
         conditions = [ids(sql, "t.id", rows), {"t.archived_at is null", []}],
         {:ok, found} <- select(sql, scope, conditions, "") do
      tasks = Map.new(found)
      {:ok, for(row <- rows, task = tasks[row], do: task), total, nil}
    end
  end

  defp search_database(sql, scope, filters) do
    with {:ok, matches} <- match(sql, scope, filters.clauses) do
      conditions =
        Enum.filter(
          [
            visible(sql, scope),
            {"t.archived_at is null", []},
            filters.statuses && status_condition(filters.statuses, filters.today),
            filters.priorities && one_of("t.priority", filters.priorities),
            filters.assignee && {"lower(t.assignee) = lower(?)", [filters.assignee]},
            filters.mine &&
              {"(t.assignee = ? or t.assignee is null and t.created_by = ?)",
               [filters.mine, filters.mine]},
            filters.overdue && {"t.due_date < ?", [filters.today]},
            filters.due_before && {"t.due_date <= ?", [filters.due_before]},
            filters.due_after && {"t.due_date >= ?", [filters.due_after]},
            filters.after && after_place(sql, scope, filters.sort, filters.after)
            | Enum.map(filters.tags || [], &tag_condition/1)
          ],
          & &1
        )

      # The ids of matches are the last parameters.
      {where, params} = number_params(conditions, " and ")
      from = if matches, do: "#{Values.ordered(sql, length(params) + 1)} cross join "
      joined = if matches, do: " and j.id = t.id"
      order = if filters.sort == "relevance", do: "j.place", else: @orders[filters.sort]

      source = "from #{from}#{@from} where #{where}#{joined}"
      query = "select #{@select} #{source} order by #{order} limit #{filters.limit + 1}"
      params = params ++ List.wrap(matches)

      # Counting in the second query would make the database sort all columns of all rows.
      with {:ok, total} <- total(sql, source, params, filters.after),
           {:ok, %{rows: rows}} <- SQL.query(sql, query, params),
           {rows, more} = Enum.split(rows, filters.limit),
           {:ok, found} <- complete(sql, scope, rows) do
        tasks = Enum.map(found, &elem(&1, 1))
        {:ok, tasks, total, if(more != [], do: next(tasks, filters.sort))}
      end
    end
  end

  defp total(sql, source, params, nil) do
    with {:ok, %{rows: [[total]]}} <- SQL.query(sql, "select count(*) #{source}", params),
         do: {:ok, total}
  end

  defp total(_sql, _source, _params, _place), do: {:ok, nil}

  defp next(_tasks, "relevance"), do: nil
  defp next(tasks, order), do: tasks |> List.last() |> Task.to_place(order)

  # The tasks that an order has after a place. Those with its values are in the order of their
  # rows; if the scope no longer has its task, they are listed again.
  defp after_place(sql, scope, order, {keys, number}) do
    {visible, params} = visible(sql, scope, "n")
    row = "(select n.id from skillbook_tasks n where n.number = ? and #{visible})"
    params = [number | params]

    case {order, keys} do
      {"due_date", [due, priority]} ->
        due_after(due, priority_after(priority, {"t.id > coalesce(#{row}, 0)", params}))

      {"priority", [due, priority]} ->
        priority_after(priority, due_after(due, {"t.id > coalesce(#{row}, 0)", params}))

      {column, [time]} ->
        {"(t.#{column} < ? or (t.#{column} = ? and t.id < coalesce(#{row}, #{@last_row})))",
         [time, time | params]}
    end
  end

  defp due_after(nil, {rest, params}), do: {"(t.due_date is null and #{rest})", params}

  defp due_after(due, {rest, params}) do
    {"(t.due_date is null or t.due_date > ? or (t.due_date = ? and #{rest}))",
     [due, due | params]}
  end

  defp priority_after(priority, {rest, params}) do
    rank = Enum.find_index(Task.priorities(), &(&1 == priority))
    {"(#{@priority_order} > #{rank} or (#{@priority_order} = #{rank} and #{rest}))", params}
  end

  # No limit here: the database filters the matches afterwards.
  @unlimited 1_000_000_000

  defp match(_sql, _scope, nil), do: {:ok, nil}

  defp match(sql, scope, clauses) do
    with {:ok, rows, _total} <- find(sql, scope, clauses, [], @unlimited),
         do: {:ok, Values.list(sql, rows)}
  end

  # The rows of the tasks that match all clauses, the best first, and their number. Only the
  # scope's segments count, so neither order nor number depend on hidden tasks.
  defp find(sql, scope, clauses, fields, limit) do
    with {:ok, {match, total, hits}} <-
           Index.find(sql, scope.segments, clauses, fields, nil, {:level, limit}) do
      if match == :all, do: {:ok, Enum.map(hits, &elem(&1, 0)), total}, else: {:ok, [], 0}
    end
  end

  defp status_condition(statuses, today) do
    {overdue, plain} = Enum.split_with(statuses, &(&1 == "overdue"))

    conditions =
      Enum.map(overdue, fn _ ->
        {open, values} = one_of("t.status", Task.open_statuses())
        {"(#{open} and t.due_date < ?)", values ++ [today]}
      end) ++ if(plain == [], do: [], else: [one_of("t.status", plain)])

    {"(" <> Enum.map_join(conditions, " or ", &elem(&1, 0)) <> ")",
     Enum.flat_map(conditions, &elem(&1, 1))}
  end

  defp one_of(column, values),
    do: {"#{column} in (#{Enum.map_join(values, ", ", fn _ -> "?" end)})", values}

  defp tag_condition(tag) do
    {"t.id in (select g.task_id from skillbook_task_tags g where g.key = ?)", [key(tag)]}
  end

  # Joins texts with their parameters, and replaces each `?` by `$1`, `$2`, …
  defp number_params(conditions, between \\ "") do
    [head | parts] = conditions |> Enum.map_join(between, &elem(&1, 0)) |> String.split("?")

    numbered =
      parts |> Enum.with_index(1) |> Enum.map_join(fn {part, number} -> "$#{number}#{part}" end)

    {head <> numbered, Enum.flat_map(conditions, &elem(&1, 1))}
  end

  # The tasks of a scope that meet conditions, each with the id of its row.
  defp select(sql, scope, conditions, order) do
    {where, params} = number_params([visible(sql, scope) | conditions], " and ")

    with {:ok, %{rows: rows}} <-
           SQL.query(sql, "select #{@select} from #{@from} where #{where} #{order}", params),
         do: complete(sql, scope, rows)
  end

  # Adds tags, and the numbers of the parents that the scope has.
  defp complete(_sql, _scope, []), do: {:ok, []}

  defp complete(sql, scope, rows) do
    found = Enum.map(rows, &task/1)

    with {:ok, tags} <- tags(sql, Enum.map(found, &elem(&1, 0))),
         parents = for({_row, parent, _task} <- found, parent, do: parent),
         {:ok, numbers} <- numbers(sql, scope, parents) do
      {:ok,
       for {row, parent, task} <- found do
         {row, %{task | tags: Map.get(tags, row, []), parent_id: numbers[parent]}}
       end}
    end
  end

  defp tags(sql, rows) do
    {these, params} = Values.ids(sql, "task_id", rows, 1)
    query = "select task_id, tag from skillbook_task_tags where #{these} order by key"

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, params),
         do: {:ok, Enum.group_by(rows, &hd/1, &List.last/1)}
  end

  defp numbers(_sql, _scope, []), do: {:ok, %{}}

  defp numbers(sql, scope, rows) do
    {where, params} = number_params([visible(sql, scope), ids(sql, "t.id", rows)], " and ")

    with {:ok, %{rows: rows}} <-
           SQL.query(sql, "select t.id, t.number from skillbook_tasks t where #{where}", params),
         do: {:ok, Map.new(rows, &List.to_tuple/1)}
  end

  defp insert_tags(sql, id, tags) do
    query = "insert into skillbook_task_tags (task_id, key, tag) values ($1, $2, $3)"
    UntilError.each(tags, fn tag -> SQL.query(sql, query, [id, key(tag), tag]) end)
  end

  defp key(tag), do: String.downcase(tag)

  defp values(task, columns), do: Enum.map(columns, &Map.fetch!(task, &1))

  # The id of the row, that of its parent's, and the task without tags and parent.
  defp task([row, number, parent, labels, tenant | fields]) do
    fields = @fields |> Enum.zip(fields) |> Map.new()
    {:ok, labels} = JSON.decode(labels)

    times =
      for column <- [:created_at, :updated_at, :archived_at],
          into: %{},
          do: {column, Values.time(fields[column])}

    due = fields.due_date && Date.from_iso8601!(fields.due_date)
    tenant = Tenants.from_column(tenant)
    own = %{id: number, labels: labels, tenant: tenant, due_date: due}
    {row, parent, struct!(Task, fields |> Map.merge(times) |> Map.merge(own))}
  end
end
