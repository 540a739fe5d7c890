defmodule Skillbook.Handlers.Tasks.Table do
  @moduledoc false
  # Stores tasks and their tags in the database, and searches them. Times are arguments. Callers
  # use a transaction for several writes.

  alias Skillbook.Handlers.Tasks.Task
  alias Skillbook.SQL.Values
  alias Skillbook.Search.Index
  alias Skillbook.{FlagError, NotFoundError, SQL}

  @columns ~w(id title description status priority assignee due_date parent_id)a ++
             ~w(created_by created_at updated_at archived_at)a
  # The database chooses the id.
  @inserted @columns -- [:id]
  @updated @inserted -- [:created_by, :created_at]
  @select Enum.map_join(@columns, ", ", &"t.#{&1}")

  @priority_order "case t.priority when 'critical' then 0 when 'high' then 1 " <>
                    "when 'medium' then 2 else 3 end"
  @due_order "t.due_date is null, t.due_date"
  @orders %{
    "due_date" => "#{@due_order}, #{@priority_order}, t.id",
    "priority" => "#{@priority_order}, #{@due_order}, t.id",
    "created_at" => "t.created_at desc, t.id desc",
    "updated_at" => "t.updated_at desc, t.id desc"
  }

  @doc "The values of `:sort` in `search/2`, besides `relevance`."
  def orders, do: ~w(due_date priority created_at updated_at)

  @doc "Sorts tags and removes duplicates, ignoring case."
  def normalize_tags(tags), do: tags |> Enum.uniq_by(&key/1) |> Enum.sort_by(&key/1)

  @doc "Removes the tags in `others`, ignoring case."
  def reject_tags(tags, others),
    do: Enum.reject(tags, &(key(&1) in Enum.map(others, fn tag -> key(tag) end)))

  @doc "Inserts a task with normalized tags, and returns it with its `id`."
  def insert(sql, %Task{} = task) do
    query =
      "insert into skillbook_tasks (#{Enum.join(@inserted, ", ")}) " <>
        "values (#{placeholders(@inserted)}) returning id"

    with {:ok, %{rows: [[id]]}} <- SQL.query(sql, query, values(task, @inserted)),
         :ok <- insert_tags(sql, id, task.tags),
         :ok <- index(sql, %{task | id: id}),
         do: {:ok, %{task | id: id}}
  end

  # The segment of the index. All profiles see all tasks.
  @key {"task", "", []}

  # Deleted tasks are not searched.
  defp index(_sql, %{archived_at: %DateTime{}}), do: :ok

  defp index(sql, task) do
    with {:ok, segment} <- Index.join(sql, @key, 1),
         do: Index.put(sql, segment, Index.pack([{task.id, document(task)}]))
  end

  # Nearly every search is for open tasks, so that is a field of the index.
  defp document(task) do
    fields = if Task.open?(task), do: [Index.field("state", "open")], else: []
    {[task.title], task.description || "", fields}
  end

  @doc "For `Skillbook.Search.Backfill`: the segment's key, the id and the document of each id."
  def searched(sql, ids) do
    {condition, params} = Values.ids(sql, "t.id", ids, 1)

    with {:ok, tasks} <- select(sql, "where #{condition} and t.archived_at is null", params),
         do: {:ok, for(task <- tasks, do: {@key, task.id, document(task)})}
  end

  @doc "Fetches a task by its id, even if it is deleted."
  def fetch(sql, id) do
    with {:ok, tasks} <- select(sql, "where t.id = $1", [id]) do
      case tasks do
        [task] -> {:ok, task}
        [] -> {:error, %NotFoundError{kind: "task", id: Task.reference(id), find: "tasks.search"}}
      end
    end
  end

  @doc "Lists the direct children of a task, without deleted ones."
  def children(sql, id) do
    select(sql, "where t.parent_id = $1 and t.archived_at is null order by t.id", [id])
  end

  # Whether the task `id` is `ancestor` or one of its descendants.
  defp descendant?(sql, id, ancestor) do
    # `union` removes duplicates, so the query ends even on a cycle in the table.
    query = """
    with recursive above (id) as (
      select t.id from skillbook_tasks t where t.id = $1
      union
      select t.parent_id from skillbook_tasks t join above a on t.id = a.id
      where t.parent_id is not null
    )
    select count(*) from above where id = $2
    """

    with {:ok, %{rows: [[count]]}} <- SQL.query(sql, query, [id, ancestor]), do: {:ok, count > 0}
  end

  @doc """
  Checks that `parent` can be the parent of the task `id`, or of a new task for `nil`.

  The parent must exist, must not be deleted, and must not be the task or one of its descendants.
  """
  def check_parent(_sql, _id, nil), do: :ok

  def check_parent(sql, id, parent) do
    with {:ok, task} <- fetch(sql, parent),
         {:ok, cycle?} <- if(id, do: descendant?(sql, parent, id), else: {:ok, false}) do
      cond do
        task.archived_at -> invalid_parent(parent, "a task that is not deleted")
        parent == id -> invalid_parent(parent, "another task than the one it is the parent of")
        cycle? -> invalid_parent(parent, "a task that is not itself below #{Task.reference(id)}")
        true -> :ok
      end
    end
  end

  defp invalid_parent(parent, expected) do
    value = Task.reference(parent)
    {:error, %FlagError{kind: :invalid, flag: "parent", value: value, expected: expected}}
  end

  @doc "A line that lists the open children of a finished or deleted task, or empty text."
  def open_children_note(sql, task) do
    with {:ok, children} <- children(sql, task.id) do
      case Enum.filter(children, &Task.open?/1) do
        [] ->
          {:ok, ""}

        open ->
          ids = Enum.map_join(open, ", ", &Task.reference/1)
          {:ok, "\nStill open below it: #{ids}"}
      end
    end
  end

  @doc "Updates the fields of a task and its normalized tags."
  def update(sql, %Task{} = task) do
    set =
      @updated
      |> Enum.with_index(2)
      |> Enum.map_join(", ", fn {column, number} -> "#{column} = $#{number}" end)

    with {:ok, before} <- fetch(sql, task.id),
         {:ok, _} <-
           SQL.query(sql, "update skillbook_tasks set #{set} where id = $1", [
             task.id | values(task, @updated)
           ]),
         :ok <- reindex(sql, before, task),
         {:ok, _} <-
           SQL.query(sql, "delete from skillbook_task_tags where task_id = $1", [task.id]),
         :ok <- insert_tags(sql, task.id, task.tags),
         do: {:ok, task}
  end

  defp reindex(sql, before, task) do
    if document(before) == document(task) and before.archived_at == task.archived_at do
      :ok
    else
      with {:ok, segment} <- Index.join(sql, @key, 0),
           :ok <- Index.remove(sql, segment, [task.id]),
           do: index(sql, task)
    end
  end

  @doc """
  Searches tasks: `{:ok, tasks, total}`, where `total` counts all matches.

  The filters are `:units` of a query, `:statuses` (which may include `"overdue"`), `:priorities`,
  `:tags`, `:assignee`, `:mine` (a profile's id), `:overdue`, `:due_before` and `:due_after`, each
  `nil` for none. `:today`, `:sort` and `:limit` are required.
  """
  def search(sql, %{units: [_ | _] = units, sort: "relevance"} = filters) do
    if only_open?(filters),
      do: search_index(sql, units, filters.limit),
      else: search_database(sql, filters)
  end

  def search(sql, filters), do: search_database(sql, filters)

  defp only_open?(filters) do
    others = Map.drop(filters, [:query, :units, :sort, :limit, :today, :statuses])

    filters.statuses == Task.open_statuses() and
      Enum.all?(Map.values(others), &(&1 in [nil, false]))
  end

  # The index alone can filter and rank, so only the listed tasks are read from the database.
  defp search_index(sql, units, limit) do
    with {:ok, ids, total} <- find(sql, units, [Index.field("state", "open")], limit),
         ids = Enum.take(ids, limit),
         {condition, params} = Values.ids(sql, "t.id", ids, 1),
         {:ok, tasks} <- select(sql, "where #{condition} and t.archived_at is null", params) do
      tasks = Map.new(tasks, &{&1.id, &1})
      {:ok, for(id <- ids, task = tasks[id], do: task), total}
    end
  end

  defp search_database(sql, filters) do
    with {:ok, matches} <- match(sql, filters.units) do
      conditions =
        Enum.filter(
          [
            {"t.archived_at is null", []},
            filters.statuses && status_condition(filters.statuses, filters.today),
            filters.priorities && one_of("t.priority", filters.priorities),
            filters.assignee && {"lower(t.assignee) = lower(?)", [filters.assignee]},
            filters.mine &&
              {"(t.assignee = ? or t.assignee is null and t.created_by = ?)",
               [filters.mine, filters.mine]},
            filters.overdue && {"t.due_date < ?", [filters.today]},
            filters.due_before && {"t.due_date <= ?", [filters.due_before]},
            filters.due_after && {"t.due_date >= ?", [filters.due_after]}
            | Enum.map(filters.tags || [], &tag_condition/1)
          ],
          & &1
        )

      # The ids of matches are the last parameters.
      {where, params} = number_params(conditions)
      from = if matches, do: "#{Values.ordered(sql, length(params) + 1)} cross join "
      joined = if matches, do: " and j.id = t.id"
      order = if filters.sort == "relevance", do: "j.place", else: @orders[filters.sort]

      source = "from #{from}skillbook_tasks t where #{where}#{joined}"
      query = "select #{@select} #{source} order by #{order} limit #{filters.limit}"
      params = params ++ List.wrap(matches)

      # Counting in the second query would make the database sort all columns of all rows.
      with {:ok, %{rows: [[total]]}} <- SQL.query(sql, "select count(*) #{source}", params),
           {:ok, %{rows: rows}} <- SQL.query(sql, query, params),
           {:ok, tasks} <- rows |> Enum.map(&task/1) |> with_tags(sql),
           do: {:ok, tasks, total}
    end
  end

  # No limit here: the database filters the matches afterwards.
  @unlimited 1_000_000_000

  defp match(_sql, nil), do: {:ok, nil}

  defp match(sql, units) do
    with {:ok, ids, _total} <- find(sql, units, [], @unlimited), do: {:ok, Values.list(sql, ids)}
  end

  # The ids of the tasks that have all units, the best first, and their number.
  defp find(sql, units, fields, limit) do
    {kind, scope, _labels} = @key

    with {:ok, segments} <- Index.segments(sql, kind, [scope]),
         {:ok, {all?, total, hits}} <-
           Index.find(sql, segments, units, fields, {:level, limit}) do
      if all?, do: {:ok, Enum.map(hits, &elem(&1, 0)), total}, else: {:ok, [], 0}
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

  # Replaces `?` in the joined conditions by `$1`, `$2`, …
  defp number_params(conditions) do
    [head | parts] = conditions |> Enum.map_join(" and ", &elem(&1, 0)) |> String.split("?")

    numbered =
      parts |> Enum.with_index(1) |> Enum.map_join(fn {part, number} -> "$#{number}#{part}" end)

    {head <> numbered, Enum.flat_map(conditions, &elem(&1, 1))}
  end

  defp select(sql, rest, params) do
    with {:ok, %{rows: rows}} <-
           SQL.query(sql, "select #{@select} from skillbook_tasks t #{rest}", params) do
      rows |> Enum.map(&task/1) |> with_tags(sql)
    end
  end

  defp with_tags([], _sql), do: {:ok, []}

  defp with_tags(tasks, sql) do
    ids = Enum.map(tasks, & &1.id)

    query =
      "select task_id, tag from skillbook_task_tags " <>
        "where task_id in (#{placeholders(ids)}) order by key"

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, ids) do
      tags = Enum.group_by(rows, &hd/1, &List.last/1)
      {:ok, Enum.map(tasks, &%{&1 | tags: Map.get(tags, &1.id, [])})}
    end
  end

  defp insert_tags(sql, id, tags) do
    Enum.reduce_while(tags, :ok, fn tag, :ok ->
      query = "insert into skillbook_task_tags (task_id, key, tag) values ($1, $2, $3)"

      case SQL.query(sql, query, [id, key(tag), tag]) do
        {:ok, _} -> {:cont, :ok}
        error -> {:halt, error}
      end
    end)
  end

  defp key(tag), do: String.downcase(tag)

  defp values(task, columns), do: Enum.map(columns, &Map.fetch!(task, &1))

  defp placeholders(values), do: Enum.map_join(1..length(values), ", ", &"$#{&1}")

  defp task(row) do
    fields = @columns |> Enum.zip(row) |> Map.new()

    times =
      for column <- [:created_at, :updated_at, :archived_at],
          into: %{},
          do: {column, time(fields[column])}

    due = fields.due_date && Date.from_iso8601!(fields.due_date)
    struct!(Task, fields |> Map.merge(times) |> Map.put(:due_date, due))
  end

  defp time(nil), do: nil

  defp time(text) do
    {:ok, time, 0} = DateTime.from_iso8601(text)
    time
  end
end
