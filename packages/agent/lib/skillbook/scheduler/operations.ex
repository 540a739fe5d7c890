defmodule Skillbook.Scheduler.Operations do
  @moduledoc false
  # Pauses, resumes and runs a schedule, see `Skillbook.pause_schedule/3` and its neighbors. They
  # are operations of the book (`Skillbook.Run.Operations`).

  alias Skillbook.Run.Operations
  alias Skillbook.SQL.Values
  alias Skillbook.Scheduler.Job
  alias Skillbook.Support.Operation
  alias Skillbook.{Agenda, Book, Firing, OperationError, Profile, SQL, View}

  # Pauses that may hold at once.
  @max_paused 10_000
  # Runs of one query that nobody has started yet.
  @max_asked 1_000

  @paused "action = 'pause' and active = 1"
  @this "skill = $1 and record = $2"

  @pause [time: [:at], text?: ~w(by reason)a]
  @next [text: ~w(name schedule timezone means)a, text?: [:run_as], boolean: [:off]] ++
          [times: [:at], texts: [:local], object?: [paused: @pause]]
  @firing [text: ~w(name status profile)a, text?: ~w(node text)a, number: [:attempts]] ++
            [time: [:at], time?: ~w(started_at finished_at)a, number?: [:duration]]

  def operations do
    [
      %Operation{
        name: :schedule,
        doc: "Lists the next scheduled runs and the last results.",
        input: [
          times: {{:number, 1, 100}, "next times of each skill, 1 by default"},
          limit: {{:number, 1, 100_000}, "the most next skills, all by default"},
          last: {{:number, 1, 1_000}, "results, 20 by default"},
          after: {{:text, 300}, "the `at` and the `name` of the last result of the page before"}
        ],
        output: [time: [:now], objects: [next: [@next], last: [@firing]]],
        run: &Agenda.report/2
      },
      Operations.operation(:pause_schedule, "Pauses a schedule.", &pause/3, {:pause, @pause}),
      Operations.operation(:resume_schedule, "Resumes a schedule.", &resume/3, {:pause, @pause}),
      Operations.operation(:run_schedule, "Runs a skill now, as scheduled.", &run/3, time: [:at])
    ]
  end

  @doc "As `Skillbook.pause_schedule/3`."
  @spec pause(View.t(), String.t(), keyword()) ::
          {:ok, Operations.pause()} | {:error, Exception.t()}
  def pause(view, name, options) do
    with {:ok, target} <- scheduled(view, name, options) do
      paused =
        Operations.change(target, "pause", fn sql ->
          with {:ok, nil} <- pause_of(sql, target),
               :ok <- check_room(sql, target.name),
               do: {:ok, Map.take(target, [:at, :by, :reason])}
        end)

      with {:error, {:paused, pause}} <- paused, do: {:ok, pause}
    end
  end

  @doc "As `Skillbook.resume_schedule/3`."
  @spec resume(View.t(), String.t(), keyword()) ::
          {:ok, Operations.pause() | nil} | {:error, Exception.t()}
  def resume(view, name, options) do
    with {:ok, target} <- scheduled(view, name, options) do
      end_pause = "update skillbook_operations set active = 0 where #{@this} and #{@paused}"

      resumed =
        Operations.change(target, "resume", fn sql ->
          with {:error, {:paused, pause}} <- pause_of(sql, target),
               {:ok, _} <- SQL.query(sql, end_pause, Operations.key(target)) do
            {:ok, pause}
          else
            {:ok, nil} -> {:error, :not_paused}
            error -> error
          end
        end)

      with {:error, :not_paused} <- resumed, do: {:ok, nil}
    end
  end

  @doc "As `Skillbook.run_schedule/3`."
  @spec run(View.t(), String.t(), keyword()) :: {:ok, Firing.t()} | {:error, Exception.t()}
  def run(view, name, options) do
    with {:ok, target} <- scheduled(view, name, options),
         :ok <- check_runs(view, target) do
      firing = Firing.new(target.book.name, target.name, target.at, target.record)
      Operations.change(target, "run", fn _sql -> {:ok, firing} end)
    end
  end

  # The entry of a view with a schedule, and the arguments of an operation on it.
  defp scheduled(view, name, options) do
    with :ok <- Operations.validate(options),
         {:ok, entry} <- View.fetch(view, name) do
      book = Book.of!(view)
      target = Operations.target(book, view, entry.name, View.record(view, entry.name), options)

      cond do
        entry.schedule == nil ->
          {:error, %OperationError{kind: :no_schedule, name: target.name}}

        book.store == nil ->
          {:error, %OperationError{kind: :store, name: target.name}}

        owner?(view, target) ->
          {:ok, target}

        not Operations.operator?(view, options) ->
          {:error, %OperationError{kind: :not_owner, name: target.name}}

        Profile.writes?(view.profile, target.tenant) ->
          {:ok, target}

        true ->
          {:error, %OperationError{kind: :common, name: target.name}}
      end
    end
  end

  defp owner?(view, %{book: book} = target) do
    owner = view.profile.id
    match?({:ok, %Job{owner: ^owner}}, Job.fetch(book, target.name, target.record))
  end

  # A book without an engine cannot know: its database may belong to other nodes, which have other
  # profiles.
  defp check_runs(_view, %{book: %{of_parts: %{scheduler: false}}}), do: :ok

  defp check_runs(view, %{book: book, name: name} = target) do
    case Job.fetch(book, name, target.record) do
      {:ok, _job} ->
        :ok

      {:error, text} ->
        text = if Profile.unrestricted?(view.profile), do: text
        {:error, %OperationError{kind: :no_job, name: name, text: text}}

      :none ->
        {:error, %OperationError{kind: :no_job, name: name}}
    end
  end

  @doc "The pauses that hold, by the keys of jobs."
  @spec pauses(SQL.t()) :: {:ok, %{Job.key() => Operations.pause()}} | {:error, SQL.Error.t()}
  def pauses(sql) do
    query = """
    select skill, record, at, made_by, reason from skillbook_operations where #{@paused}
    """

    with {:ok, %{rows: rows}} <- SQL.query(sql, query) do
      {:ok,
       for(
         [name, record | row] <- rows,
         into: %{},
         do: {job(name, record), Operations.pause(row)}
       )}
    end
  end

  @doc "The runs of the last day that somebody asked for and no node has begun."
  @spec asked(SQL.t(), DateTime.t()) ::
          {:ok, [{Job.key(), DateTime.t()}]} | {:error, SQL.Error.t()}
  def asked(sql, now) do
    # Results of a day are always kept. Without them, an old run would begin again.
    query = """
    select skill, record, at from skillbook_operations o
    where action = 'run' and at > $1 and not exists
      (select 1 from skillbook_firings f
       where f.name = o.skill and f.record = o.record and f.fire_at = o.at)
    order by revision limit #{@max_asked}
    """

    since = now |> DateTime.add(-1, :day) |> DateTime.truncate(:second)

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, [since]),
         do: {:ok, for([name, record, at] <- rows, do: {job(name, record), Values.time(at)})}
  end

  @doc "A condition of SQL: the schedule of an entry, named by two columns, is paused."
  @spec paused(String.t(), String.t()) :: String.t()
  def paused(name, record) do
    "exists (select 1 from skillbook_operations p where p.skill = #{name} and " <>
      "p.record = #{record} and p.action = 'pause' and p.active = 1)"
  end

  defp pause_of(sql, target) do
    query = "select at, made_by, reason from skillbook_operations where #{@this} and #{@paused}"

    case SQL.query(sql, query, Operations.key(target)) do
      {:ok, %{rows: []}} -> {:ok, nil}
      {:ok, %{rows: [row | _]}} -> {:error, {:paused, Operations.pause(row)}}
      error -> error
    end
  end

  defp check_room(sql, name) do
    case SQL.query(sql, "select count(*) from skillbook_operations where #{@paused}") do
      {:ok, %{rows: [[count]]}} when count < @max_paused -> :ok
      {:ok, _full} -> {:error, %OperationError{kind: :full, name: name}}
      error -> error
    end
  end

  defp job(name, 0), do: name
  defp job(name, record), do: Job.key(name, record)
end
