defmodule Skillbook.Workflow.Runs do
  @moduledoc false
  # The runs of workflows in the book's database. What cannot be written down is logged and keeps no run from going on.

  require Logger

  alias Skillbook.{Context, Entry, Profile, Result, SQL}

  # How many runs of a workflow are kept, and how much of a step's result.
  @kept 100
  @content 100_000
  # By how much the clocks of nodes may differ, in milliseconds.
  @late 60_000

  @type run :: %{
          id: pos_integer(),
          name: String.t(),
          profile: String.t(),
          by: String.t(),
          command: String.t(),
          status: String.t(),
          steps: non_neg_integer(),
          ran: non_neg_integer(),
          started_at: String.t(),
          duration: non_neg_integer() | nil,
          report: String.t() | nil
        }
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
  A run begins, of so many steps, or `nil` if that is not known, which is over in so many milliseconds at the latest: its id, or
  `nil` if it is not written down.
  """
  @spec begin(Entry.t(), Context.t(), non_neg_integer() | nil, non_neg_integer()) ::
          pos_integer() | nil
  def begin(_entry, %Context{sql: nil}, _steps, _time), do: nil

  def begin(entry, %Context{sql: sql} = context, steps, time) do
    insert =
      "insert into skillbook_runs (name, profile, made_by, command, status, steps, started_at, deadline) " <>
        "values ($1, $2, $3, $4, 'running', $5, $6, $7) returning id"

    values =
      [
        entry.name,
        context.profile.id,
        "#{context.by}",
        storable(context.command.raw),
        steps || 0,
        context.now
      ] ++
        [DateTime.to_unix(context.now, :millisecond) + time]

    forget =
      "delete from skillbook_runs where name = $1 and id not in " <>
        "(select id from skillbook_runs where name = $1 order by id desc limit #{@kept})"

    with {:ok, %{rows: [[id]]}} <- SQL.query(sql, insert, values),
         {:ok, _} <- SQL.query(sql, forget, [entry.name]) do
      id
    else
      {:error, error} -> lost(entry.name, error)
    end
  end

  @doc "A step of it was run."
  @spec step(Context.t(), pos_integer() | nil, map(), Result.t()) :: :ok
  def step(_context, nil, _step, _result), do: :ok

  def step(%Context{sql: sql}, id, step, result) do
    insert =
      "insert into skillbook_run_steps (run_id, number, name, skill, command, status, content, duration) " <>
        "values ($1, $2, $3, $4, $5, $6, $7, $8)"

    content = result.content |> String.slice(0, @content) |> storable()

    values =
      [id, step.number, step.name, result.name, storable(result.command)] ++
        ["#{result.status}", content, div(result.duration, 1000)]

    with {:error, error} <- SQL.query(sql, insert, values), do: lost("run #{id}", error)
    :ok
  end

  @doc "It ended, with what an agent reported."
  @spec finish(Context.t(), pos_integer() | nil, atom(), non_neg_integer(), String.t() | nil) ::
          :ok
  def finish(context, id, status, duration, report \\ nil)
  def finish(_context, nil, _status, _duration, _report), do: :ok

  def finish(%Context{sql: sql}, id, status, duration, report) do
    update = "update skillbook_runs set status = $2, duration = $3, report = $4 where id = $1"

    values = [
      id,
      "#{status}",
      duration,
      report && report |> String.slice(0, @content) |> storable()
    ]

    with {:error, error} <- SQL.query(sql, update, values), do: lost("run #{id}", error)
    :ok
  end

  # PostgreSQL has no NUL in texts; what models and commands write may hold any character.
  defp storable(text), do: String.replace(text, "\0", "\uFFFD")

  defp lost(what, error) do
    Logger.warning("the workflow #{what} was not written down: #{Exception.message(error)}")
    nil
  end

  @doc """
  The newest runs of a workflow that a profile may see: its own, or all if it is not restricted.

  One that is not over though its time was, at `now`, is `interrupted`: whoever ran it ended before it did.
  """
  @spec list(SQL.t(), Profile.t(), String.t(), pos_integer(), DateTime.t()) ::
          {:ok, [run()]} | {:error, Exception.t()}
  def list(sql, profile, name, limit, now),
    do: select(sql, profile, name, now, "order by r.id desc limit #{limit}", [])

  @doc "A run with its steps, as `list/5` shows it."
  @spec fetch(SQL.t(), Profile.t(), String.t(), pos_integer(), DateTime.t()) ::
          {:ok, run(), [step()]} | {:ok, nil} | {:error, Exception.t()}
  def fetch(sql, profile, name, id, now) do
    steps =
      "select number, name, skill, command, status, content, duration from skillbook_run_steps " <>
        "where run_id = $1 order by number"

    with {:ok, [run]} <- select(sql, profile, name, now, "and r.id = $5", [id]),
         {:ok, %{rows: rows}} <- SQL.query(sql, steps, [id]) do
      keys = [:number, :name, :skill, :command, :status, :content, :duration]
      {:ok, run, Enum.map(rows, &Map.new(Enum.zip(keys, &1)))}
    else
      {:ok, []} -> {:ok, nil}
      error -> error
    end
  end

  defp select(sql, profile, name, now, rest, values) do
    status =
      "case when r.status = 'running' and coalesce(r.deadline, 0) < $4 then 'interrupted' else r.status end"

    query =
      "select r.id, r.name, r.profile, r.made_by, r.command, #{status}, r.steps, " <>
        "(select count(*) from skillbook_run_steps s where s.run_id = r.id), r.started_at, r.duration, r.report " <>
        "from skillbook_runs r where r.name = $1 and (r.profile = $2 or $3 = 1) #{rest}"

    all = if Profile.unrestricted?(profile), do: 1, else: 0
    over = DateTime.to_unix(now, :millisecond) - @late

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, [name, profile.id, all, over] ++ values) do
      keys = [
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

      {:ok, Enum.map(rows, &Map.new(Enum.zip(keys, &1)))}
    end
  end
end
