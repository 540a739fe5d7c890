defmodule Skillbook.Workflow.Runs do
  @moduledoc false
  # Stores runs of workflows and their steps in the book's database, and lists them. A database
  # error is logged and does not stop the run.
  #
  # A run has a random number as its id, and the newest runs of each profile are kept. So neither
  # the ids nor the list tell a profile of the runs of others.

  require Logger

  alias Skillbook.Catalog.Watcher
  alias Skillbook.SQL.{Numbers, OldRows, Tenants, Values}
  alias Skillbook.{Context, Entry, Profile, Result, SQL}

  # Runs stored of each workflow and profile, and characters of each result.
  @max_runs 100
  @max_content 100_000
  # How far the clocks of two nodes may differ, in milliseconds.
  @clock_skew 60_000

  @type run :: Skillbook.Workflow.run()
  @type step :: %{
          number: pos_integer(),
          name: String.t() | nil,
          skill: String.t() | nil,
          command: String.t(),
          status: String.t(),
          content: String.t(),
          duration: non_neg_integer()
        }

  @doc """
  Stores the start of a run and returns its id, or `nil` if it could not be stored.

  `steps` is `nil` if the number of steps is unknown. `time` is the most milliseconds that the run
  may take.
  """
  @spec start(Entry.t(), Context.t(), non_neg_integer() | nil, non_neg_integer()) ::
          pos_integer() | nil
  def start(_entry, %Context{sql: nil}, _steps, _time), do: nil

  def start(entry, %Context{sql: sql} = context, steps, time) do
    insert = """
    insert into skillbook_runs
      (name, profile, made_by, command, status, steps, started_at, deadline, tenant, number)
    values ($1, $2, $3, $4, 'running', $5, $6, $7, $8, $9)
    on conflict (number) do nothing returning id
    """

    values = [
      entry.name,
      context.profile.id,
      "#{context.by}",
      Values.storable(context.command.raw),
      steps || 0,
      context.now,
      DateTime.to_unix(context.now, :millisecond) + time,
      Tenants.home(context.profile)
    ]

    delete_old = """
    delete from skillbook_runs where name = $1 and profile = $2 and tenant = $3 and id not in
      (select id from skillbook_runs where name = $1 and profile = $2 and tenant = $3
      order by id desc limit #{@max_runs})
    """

    with {:ok, _row, number} <- Numbers.insert(sql, &{insert, values ++ [&1]}),
         {:ok, _} <- SQL.query(sql, delete_old, own(entry, context)) do
      notify(context.book, entry.name, owner(context))
      number
    else
      {:error, error} -> log(entry.name, error)
    end
  end

  @doc "For `Skillbook.Book.Pruner`: deletes runs that are over. Their steps go with them."
  def prune(sql, before, place) do
    OldRows.walk(sql, before, place,
      table: "skillbook_runs",
      key: ["started_at", "id"],
      old: "started_at",
      # One whose virtual machine ended stays `running` after its deadline.
      delete: "(status <> 'running' or deadline < #{DateTime.to_unix(before, :millisecond)})"
    )
  end

  defp owner(%{profile: profile}), do: {profile.id, Profile.home(profile)}

  defp own(entry, %{profile: profile}), do: [entry.name, profile.id, Tenants.home(profile)]

  @doc "Stores a step and its result."
  @spec add_step(Context.t(), pos_integer() | nil, map(), Result.t()) :: :ok
  def add_step(_context, nil, _step, _result), do: :ok

  def add_step(%Context{sql: sql}, id, step, result) do
    insert = """
    insert into skillbook_run_steps
      (run_id, number, name, skill, command, status, content, duration)
    select r.id, $2, $3, $4, $5, $6, $7, $8 from skillbook_runs r where r.number = $1
    """

    values = [
      id,
      step.number,
      step.name,
      result.name,
      Values.storable(result.command),
      "#{result.status}",
      content(result.content),
      div(result.duration, 1000)
    ]

    with {:error, error} <- SQL.query(sql, insert, values), do: log("run #{id}", error)
    :ok
  end

  @doc "Stores the end of a run, its duration in milliseconds, and an agent's report."
  @spec finish(Context.t(), pos_integer() | nil, atom(), non_neg_integer(), String.t() | nil) ::
          :ok
  def finish(context, id, status, duration, report \\ nil)
  def finish(_context, nil, _status, _duration, _report), do: :ok

  def finish(%Context{sql: sql} = context, id, status, duration, report) do
    update = "update skillbook_runs set status = $2, duration = $3, report = $4 where number = $1"
    values = [id, "#{status}", duration, report && content(report)]

    with {:error, error} <- SQL.query(sql, update, values), do: log("run #{id}", error)
    notify(context.book, context.entry.name, owner(context))
  end

  @doc "Tells the subscribers of a book that a run, or a firing, has begun or ended."
  @spec notify(atom(), String.t(), {String.t() | nil, tenant :: String.t() | nil} | nil) :: :ok
  def notify(book, name, owner) do
    {profile, tenant} = owner || {nil, nil}
    run = %{name: name, profile: profile, tenant: tenant}
    Watcher.publish(book, {:skillbook_run, book, run})
  rescue
    # The book has stopped since.
    ArgumentError -> :ok
  end

  defp content(text), do: text |> String.slice(0, @max_content) |> Values.storable()

  defp log(subject, error) do
    Logger.warning("the workflow #{subject} was not stored: #{Exception.message(error)}")
    nil
  end

  @doc """
  Lists the newest runs of a workflow: those of the profile, or all if it is unrestricted.

  A run whose deadline has passed at `now` without an end has the status `"interrupted"`: its
  process was killed.
  """
  @spec list(SQL.t(), Profile.t(), String.t(), pos_integer(), DateTime.t()) ::
          {:ok, [run()]} | {:error, Exception.t()}
  def list(sql, profile, name, limit, now),
    do: select(sql, profile, now, "and r.name = $4 order by r.id desc limit #{limit}", [name])

  @doc """
  Lists the newest runs of all workflows as in `list/5`; those before the run of a number, unless
  it is `nil`.
  """
  @spec recent(SQL.t(), Profile.t(), pos_integer(), pos_integer() | nil, DateTime.t()) ::
          {:ok, [run()]} | {:error, Exception.t()}
  def recent(sql, profile, limit, nil, now),
    do: select(sql, profile, now, "order by r.id desc limit $4", [limit])

  def recent(sql, profile, limit, number, now) do
    before = "(select b.id from skillbook_runs b where b.number = $5)"
    rest = "and r.id < #{before} order by r.id desc limit $4"
    select(sql, profile, now, rest, [limit, number])
  end

  @doc "Fetches a run of a workflow as in `list/5`, with its steps."
  @spec fetch(SQL.t(), Profile.t(), String.t(), pos_integer(), DateTime.t()) ::
          {:ok, run(), [step()]} | {:ok, nil} | {:error, Exception.t()}
  def fetch(sql, profile, name, id, now) do
    case fetch(sql, profile, id, now) do
      {:ok, %{name: ^name}, _steps} = found -> found
      {:ok, _other, _steps} -> {:ok, nil}
      none_or_error -> none_or_error
    end
  end

  @doc "Fetches a run of any workflow."
  @spec fetch(SQL.t(), Profile.t(), pos_integer(), DateTime.t()) ::
          {:ok, run(), [step()]} | {:ok, nil} | {:error, Exception.t()}
  def fetch(sql, profile, id, now) do
    steps = """
    select number, name, skill, command, status, content, duration
    from skillbook_run_steps
    where run_id = (select r.id from skillbook_runs r where r.number = $1) order by number
    """

    with {:ok, [run]} <- select(sql, profile, now, "and r.number = $4", [id]),
         {:ok, %{rows: rows}} <- SQL.query(sql, steps, [id]) do
      keys = [:number, :name, :skill, :command, :status, :content, :duration]
      {:ok, run, Enum.map(rows, &Map.new(Enum.zip(keys, &1)))}
    else
      {:ok, []} -> {:ok, nil}
      error -> error
    end
  end

  @columns [
    :id,
    :name,
    :profile,
    :by,
    :command,
    :status,
    :steps,
    :ran,
    :started_at,
    :duration,
    :report
  ]

  # `rest` has the parameters from $4 on.
  defp select(sql, profile, now, rest, values) do
    {readable, tenants} = Tenants.readable(profile, "r.tenant", 4 + length(values))
    all = if Profile.unrestricted?(profile), do: 1, else: 0

    # With `or`, the database would not use an index of profiles.
    own = if all == 1, do: "($1 = '' or 1 = 1) and $2 = 1", else: "r.profile = $1 and $2 = 0"

    query = """
    select r.number, r.name, r.profile, r.made_by, r.command,
      case when r.status = 'running' and coalesce(r.deadline, 0) < $3
        then 'interrupted' else r.status end,
      r.steps, (select count(*) from skillbook_run_steps s where s.run_id = r.id),
      r.started_at, r.duration, r.report
    from skillbook_runs r where #{own} and #{readable} #{rest}
    """

    overdue = DateTime.to_unix(now, :millisecond) - @clock_skew

    with {:ok, %{rows: rows}} <-
           SQL.query(sql, query, [profile.id, all, overdue] ++ values ++ tenants),
         do: {:ok, Enum.map(rows, &Map.new(Enum.zip(@columns, &1)))}
  end
end
