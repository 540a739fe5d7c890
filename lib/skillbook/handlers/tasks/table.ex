defmodule Skillbook.Handlers.Tasks.Table do
  @moduledoc false
  # The tasks in the database. Every function takes the handle for `Skillbook.SQL`; times come in as arguments.
  # Callers that write put what belongs together into a transaction.

  alias Skillbook.Handlers.Tasks.Task
  alias Skillbook.SQL.Values
  alias Skillbook.Search.Index
  alias Skillbook.{FlagError, NotFoundError, SQL}

  @columns ~w(id title description status priority assignee due_date parent_id created_by created_at updated_at archived_at)a
  # The database gives the id.
  @written @columns -- [:id]
  @changing @written -- [:created_by, :created_at]
  @select Enum.map_join(@columns, ", ", &"t.#{&1}")

  @priority_order "case t.priority when 'critical' then 0 when 'high' then 1 when 'medium' then 2 else 3 end"
  @due_order "t.due_date is null, t.due_date"
  @orders %{
    "due_date" => "#{@due_order}, #{@priority_order}, t.id",
    "priority" => "#{@priority_order}, #{@due_order}, t.id",
    "created_at" => "t.created_at desc, t.id desc",
    "updated_at" => "t.updated_at desc, t.id desc"
  }

  @doc "The names by which `search/2` sorts, besides `relevance`."
  def orders, do: ~w(due_date priority created_at updated_at)

  @doc "Tags as they are kept: each once, whatever its case, in one order."
  def tidy(tags), do: tags |> Enum.uniq_by(&key/1) |> Enum.sort_by(&key/1)

  @doc "Tags without those in `others`, whatever their case."
  def without(tags, others),
    do: Enum.reject(tags, &(key(&1) in Enum.map(others, fn tag -> key(tag) end)))

  @doc "Adds a task, whose tags are tidy; its `id` is given by the database."
  def insert(sql, %Task{} = task) do
    query =
      "insert into skillbook_tasks (#{Enum.join(@written, ", ")}) values (#{places(@written)}) returning id"

    with {:ok, %{rows: [[id]]}} <- SQL.query(sql, query, values(task, @written)),
         :ok <- insert_tags(sql, id, task.tags),
         :ok <- index(sql, %{task | id: id}),
         do: {:ok, %{task | id: id}}
  end

  # All tasks are seen by everybody.
  @key {"task", "", []}

  # Those that are deleted are not searched.
  defp index(_sql, %{archived_at: %DateTime{}}), do: :ok

  defp index(sql, task) do
    with {:ok, segment} <- Index.join(sql, @key, 1),
         do: Index.put(sql, segment, Index.pack([{task.id, document(task)}]))
  end

  # That it is open is a field, since nearly every search asks for those.
  defp document(task) do
    fields = if Task.open?(task), do: [Index.field("state", "open")], else: []
    {[task.title], task.description || "", fields}
  end

  @doc "For `Skillbook.Search.Backfill`: of ids, the key of the segment, the id and the document."
  def searched(sql, ids) do
    {these, params} = Values.ids(sql, "t.id", ids, 1)

    with {:ok, tasks} <- select(sql, "where #{these} and t.archived_at is null", params),
         do: {:ok, for(task <- tasks, do: {@key, task.id, document(task)})}
  end

  @doc "The task with this id, deleted or not."
  def fetch(sql, id) do
    with {:ok, tasks} <- select(sql, "where t.id = $1", [id]) do
      case tasks do
        [task] -> {:ok, task}
        [] -> {:error, %NotFoundError{kind: "task", id: Task.reference(id), find: "tasks.search"}}
      end
    end
  end

  @doc "The tasks directly below a task that are not deleted."
  def children(sql, id) do
    select(sql, "where t.parent_id = $1 and t.archived_at is null order by t.id", [id])
  end

  # Whether the task `id` is `other` or somewhere below it.
  defp below?(sql, id, other) do
    # `union` drops repetitions, so that even a circle in the table would end.
    query = """
    with recursive above (id) as (
      select t.id from skillbook_tasks t where t.id = $1
      union
      select t.parent_id from skillbook_tasks t join above a on t.id = a.id where t.parent_id is not null
    )
    select count(*) from above where id = $2
    """

    with {:ok, %{rows: [[count]]}} <- SQL.query(sql, query, [id, other]), do: {:ok, count > 0}
  end

  @doc """
  Checks that the task `id` (`nil` for one yet to be made) may be put below `parent`: it exists, is not deleted, and
  is not the task itself or below it.
  """
  def check_parent(_sql, _id, nil), do: :ok

  def check_parent(sql, id, parent) do
    with {:ok, task} <- fetch(sql, parent),
         {:ok, circle?} <- if(id, do: below?(sql, parent, id), else: {:ok, false}) do
      cond do
        task.archived_at -> wrong_parent(parent, "a task that is not deleted")
        parent == id -> wrong_parent(parent, "another task than the one it is the parent of")
        circle? -> wrong_parent(parent, "a task that is not itself below #{Task.reference(id)}")
        true -> :ok
      end
    end
  end

  defp wrong_parent(parent, expected) do
    {:error,
     %FlagError{kind: :invalid, flag: "parent", value: Task.reference(parent), expected: expected}}
  end

  @doc "A line about the open tasks directly below one that is finished or deleted; empty if there are none."
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

  @doc "Writes the task's fields and tidy tags over those in the database."
  def update(sql, %Task{} = task) do
    set =
      @changing
      |> Enum.with_index(2)
      |> Enum.map_join(", ", fn {column, number} -> "#{column} = $#{number}" end)

    with {:ok, before} <- fetch(sql, task.id),
         {:ok, _} <-
           SQL.query(sql, "update skillbook_tasks set #{set} where id = $1", [
             task.id | values(task, @changing)
           ]),
         :ok <- index_anew(sql, before, task),
         {:ok, _} <-
           SQL.query(sql, "delete from skillbook_task_tags where task_id = $1", [task.id]),
         :ok <- insert_tags(sql, task.id, task.tags),
         do: {:ok, task}
  end

  defp index_anew(sql, before, task) do
    if document(before) == document(task) and before.archived_at == task.archived_at do
      :ok
    else
      with {:ok, segment} <- Index.join(sql, @key, 0),
           :ok <- Index.remove(sql, segment, [task.id]),
           do: index(sql, task)
    end
  end

  @doc """
  The tasks that pass the filters, with the number there are in all: `{:ok, tasks, total}`.

  Filters: `:units` of a query, `:statuses` (may hold `"overdue"`), `:priorities`, `:tags`, `:assignee`, `:mine` (a profile's
  id), `:overdue`, `:due_before`, `:due_after`, each `nil` for none; then `:today`, `:sort` and `:limit`.
  """
  def search(sql, %{units: [_ | _] = units, sort: "relevance"} = filters) do
    if only_open?(filters), do: best(sql, units, filters.limit), else: filtered(sql, filters)
  end

  def search(sql, filters), do: filtered(sql, filters)

  defp only_open?(filters) do
    others = Map.drop(filters, [:query, :units, :sort, :limit, :today, :statuses])

    filters.statuses == Task.open_statuses() and
      Enum.all?(Map.values(others), &(&1 in [nil, false]))
  end

  # The index has all that is asked, so the database is asked for those alone that are shown.
  defp best(sql, units, limit) do
    with {:ok, ids, total} <- find(sql, units, [Index.field("state", "open")], limit),
         shown = Enum.take(ids, limit),
         {these, params} = Values.ids(sql, "t.id", shown, 1),
         {:ok, tasks} <- select(sql, "where #{these} and t.archived_at is null", params) do
      tasks = Map.new(tasks, &{&1.id, &1})
      {:ok, for(id <- shown, task = tasks[id], do: task), total}
    end
  end

  defp filtered(sql, filters) do
    with {:ok, found} <- match(sql, filters.units) do
      conditions =
        Enum.filter(
          [
            {"t.archived_at is null", []},
            filters.statuses && statuses(filters.statuses, filters.today),
            filters.priorities && within("t.priority", filters.priorities),
            filters.assignee && {"lower(t.assignee) = lower(?)", [filters.assignee]},
            filters.mine &&
              {"(t.assignee = ? or t.assignee is null and t.created_by = ?)",
               [filters.mine, filters.mine]},
            filters.overdue && {"t.due_date < ?", [filters.today]},
            filters.due_before && {"t.due_date <= ?", [filters.due_before]},
            filters.due_after && {"t.due_date >= ?", [filters.due_after]}
            | Enum.map(filters.tags || [], &tagged/1)
          ],
          & &1
        )

      # The ids that were found are the last of the parameters.
      {where, params} = number(conditions)
      from = if found, do: "#{Values.ordered(sql, length(params) + 1)} cross join "
      joined = if found, do: " and j.id = t.id"
      order = if filters.sort == "relevance", do: "j.place", else: @orders[filters.sort]

      source = "from #{from}skillbook_tasks t where #{where}#{joined}"
      query = "select #{@select} #{source} order by #{order} limit #{filters.limit}"
      params = params ++ List.wrap(found)

      # Two statements: to count in the second, a database would sort all rows with all they hold.
      with {:ok, %{rows: [[total]]}} <- SQL.query(sql, "select count(*) #{source}", params),
           {:ok, %{rows: rows}} <- SQL.query(sql, query, params),
           {:ok, tasks} <- rows |> Enum.map(&task/1) |> with_tags(sql),
           do: {:ok, tasks, total}
    end
  end

  # More than there are: which tasks pass the filters, the database says.
  @all 1_000_000_000

  defp match(_sql, nil), do: {:ok, nil}

  defp match(sql, units) do
    with {:ok, ids, _total} <- find(sql, units, [], @all), do: {:ok, Values.list(sql, ids)}
  end

  # The ids of the tasks that have all units, the best first, and how many they are.
  defp find(sql, units, fields, limit) do
    {kind, scope, _labels} = @key

    with {:ok, segments} <- Index.segments(sql, kind, [scope]),
         {:ok, {all?, total, hits}} <- Index.find(sql, segments, units, fields, {:level, limit}) do
      if all?, do: {:ok, Enum.map(hits, &elem(&1, 0)), total}, else: {:ok, [], 0}
    end
  end

  defp statuses(statuses, today) do
    {overdue, plain} = Enum.split_with(statuses, &(&1 == "overdue"))

    conditions =
      Enum.map(overdue, fn _ ->
        {open, values} = within("t.status", Task.open_statuses())
        {"(#{open} and t.due_date < ?)", values ++ [today]}
      end) ++ if(plain == [], do: [], else: [within("t.status", plain)])

    {"(" <> Enum.map_join(conditions, " or ", &elem(&1, 0)) <> ")",
     Enum.flat_map(conditions, &elem(&1, 1))}
  end

  defp within(column, values),
    do: {"#{column} in (#{Enum.map_join(values, ", ", fn _ -> "?" end)})", values}

  defp tagged(tag) do
    {"t.id in (select g.task_id from skillbook_task_tags g where g.key = ?)", [key(tag)]}
  end

  # Conditions are written with `?`; the places get their numbers once all conditions are together.
  defp number(conditions) do
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
      "select task_id, tag from skillbook_task_tags where task_id in (#{places(ids)}) order by key"

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

  defp places(values), do: Enum.map_join(1..length(values), ", ", &"$#{&1}")

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
