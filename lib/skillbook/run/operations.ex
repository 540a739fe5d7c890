defmodule Skillbook.Run.Operations do
  @moduledoc false
  # Operations on a running book: a circuit breaker is reset, or, by
  # `Skillbook.Scheduler.Operations`, a schedule is paused, resumed or run now.
  #
  # Each is a row with its author, which raises the setting `operations`. The followers of all
  # nodes see that and call `follow/2`. A pause holds as long as its row is active, and every
  # claim of a firing looks for it, so no node has to be told before the next time comes.
  #
  # Without a database there are no schedules, and a breaker is reset on this node only.

  alias Skillbook.Run.CircuitBreaker
  alias Skillbook.Schedule.Clock
  alias Skillbook.SQL.{Tenants, Values}
  alias Skillbook.Store.Follower
  alias Skillbook.Support.{Number, Operation, Options}
  alias Skillbook.Workflow.Runs

  alias Skillbook.{
    Book,
    Entry,
    OperationError,
    OptionError,
    Part,
    Profile,
    SQL,
    Telemetry,
    View
  }

  @typedoc "A pause that holds, or held."
  @type pause :: %{at: DateTime.t(), by: String.t(), reason: String.t() | nil}

  @typedoc "A row, for people to look at."
  @type row :: %{
          action: String.t(),
          name: String.t(),
          profile: String.t() | nil,
          at: DateTime.t(),
          by: String.t(),
          reason: String.t() | nil
        }

  # Characters of `by:` and `reason:`.
  @max_text 1_000
  # Rows kept beside the pauses that hold.
  @max_rows 10_000

  @next_revision Values.raise_setting("operations")

  # Not a number, so a follower looks at its revisions whatever they are.
  @notify "select pg_notify('skillbook', 'operations')"

  def operations do
    failures = [text: ~w(name profile state)a, text?: [:tenant], number: [:failures]]
    output = {:breaker, [failures ++ [time?: ~w(since retry_at)a]]}
    [operation(:reset_breaker, "Resets the circuit breaker of a skill.", &reset/3, output)]
  end

  @doc "The declaration of an operation on an entry, for operators."
  @spec operation(atom(), String.t(), function(), Operation.shape() | {atom(), term()}) ::
          Operation.t()
  def operation(name, doc, run, output) do
    %Operation{
      name: name,
      doc: doc,
      subject: :name,
      caller: :operator,
      input: [reason: {{:text, @max_text}, "why; it is stored"}],
      output: output,
      run: run
    }
  end

  @doc "As `Skillbook.reset_breaker/3`."
  @spec reset(View.t(), String.t(), keyword()) ::
          {:ok, [CircuitBreaker.row()]} | {:error, Exception.t()}
  def reset(view, name, options) do
    with :ok <- validate(options),
         {:ok, entry} <- View.fetch(view, name),
         :ok <- check_handler(entry) do
      all? = operator?(view, options)
      target = target(Book.of!(view), view, entry.name, nil, options)
      target = if all?, do: target, else: %{target | only: view.profile.id}

      # Those of its own tenant, if it has one.
      target = %{target | tenant: target.tenant || Profile.home(view.profile)}

      rows =
        for row <- CircuitBreaker.list(target.book, view, all?),
            row.name == entry.name and target.tenant in [nil, row.tenant],
            do: row

      with {:ok, nil} <- change(target, "reset", fn _sql -> {:ok, nil} end) do
        CircuitBreaker.reset(target.book, target.name, target.only, target.tenant)
        {:ok, rows}
      end
    end
  end

  defp check_handler(%Entry{handler: nil, name: name}),
    do: {:error, %OperationError{kind: :no_handler, name: name}}

  defp check_handler(_entry), do: :ok

  @doc "Whether the caller may do it to entries of others."
  @spec operator?(View.t(), keyword()) :: boolean()
  def operator?(view, options),
    do: options[:operator] == true or Profile.unrestricted?(view.profile)

  @doc "The entry that an operation is about, and its arguments."
  @spec target(Book.t(), View.t(), String.t(), integer() | nil, keyword()) :: map()
  def target(book, view, name, record, options) do
    %{
      book: book,
      sql: Book.sql(book),
      name: name,
      record: record,
      profile: view.profile.id,
      # That of the entry; of a reset on a common entry, that of the operator.
      tenant: with(%Entry{} = entry <- View.find(view, name), do: Entry.tenant(entry)),
      # The profile whose breaker is reset.
      only: nil,
      at: DateTime.truncate(Clock.now(book), :second),
      by: Values.storable(options[:by]),
      reason: options[:reason] && Values.storable(options[:reason])
    }
  end

  @doc "Checks the options of an operation."
  @spec validate(keyword()) :: :ok | {:error, OptionError.t()}
  def validate(options) do
    text? = &(Options.text?(&1) and String.length(&1) <= @max_text)

    schema = [
      by: {"text of 1 to #{@max_text} characters", text?},
      reason: {"text of 1 to #{@max_text} characters or nil", &(is_nil(&1) or text?.(&1))},
      operator: {"a boolean", &is_boolean/1}
    ]

    with :ok <- Options.validate(options, "an operation", schema) do
      if options[:by],
        do: :ok,
        else: {:error, %OptionError{subject: "an operation", option: :by, problem: :missing}}
    end
  end

  # Writing

  @doc "Runs the function in a transaction that adds the row of the operation."
  @spec change(map(), String.t(), (SQL.t() | nil -> {:ok, term()} | {:error, term()})) ::
          {:ok, term()} | {:error, term()}
  def change(target, action, fun)

  # All changes wait for each other here, so they commit in the order of their revisions.
  def change(%{sql: nil} = target, action, fun) do
    with {:ok, value} <- fun.(nil), do: done(target, action, value)
  end

  def change(target, action, fun) do
    if SQL.in_transaction?(target.sql) do
      {:error, %OperationError{kind: :in_transaction, name: target.name}}
    else
      changed =
        SQL.transaction(target.sql, [@next_revision], fn sql, [%{rows: [[revision]]}] ->
          revision = Number.integer!(revision)

          with {:ok, value} <- fun.(sql),
               {:ok, _} <- insert(sql, revision, action, target),
               {:ok, _} <- prune(sql, target, revision),
               {:ok, _} <- notify(sql),
               do: {:ok, value}
        end)

      with {:ok, value} <- changed, do: done(target, action, value)
    end
  end

  defp insert(sql, revision, action, target) do
    insert = """
    insert into skillbook_operations
      (skill, record, revision, action, profile, at, made_by, reason, active, tenant)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
    """

    tenant = Tenants.to_column(target.tenant)

    active = if action == "pause", do: 1, else: 0
    values = [revision, action, target.only, target.at, target.by, target.reason, active, tenant]
    SQL.query(sql, insert, key(target) ++ values)
  end

  # The newest rows stay for as long as results of firings, and a pause as long as it holds.
  defp prune(sql, target, revision) do
    delete = "delete from skillbook_operations where active = 0 and (at < $1 or revision < $2)"
    before = DateTime.add(target.at, -target.book.schedules[:keep], :day)
    SQL.query(sql, delete, [before, revision - @max_rows])
  end

  defp notify(sql) do
    if SQL.dialect(sql) == :postgres, do: SQL.query(sql, @notify), else: {:ok, nil}
  end

  defp done(%{book: book} = target, action, value) do
    if target.sql, do: Follower.changed(book.name)
    metadata = %{book: book.name, profile: target.profile, skill: target.name, action: action}

    Telemetry.event(
      [:skillbook, :operation, :done],
      %{system_time: System.system_time()},
      metadata
    )

    {:ok, value}
  end

  # Reading

  @doc """
  Tells this node's processes about the operations after a revision, for the follower.
  """
  @spec follow(atom(), SQL.t(), non_neg_integer()) :: :ok | {:error, SQL.Error.t()}
  def follow(book, sql, last) do
    query = """
    select action, skill, profile, tenant from skillbook_operations
    where revision > $1 order by revision
    """

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, [last]) do
      {resets, schedules} = Enum.split_with(rows, &match?(["reset" | _], &1))

      for [_reset, skill, profile, tenant] <- resets,
          do: CircuitBreaker.forget(book, skill, profile, Tenants.from_column(tenant))

      if schedules != [], do: Part.all(Part.of(book), :schedules_changed, [book])
      # Pages show it to operators, whatever the profile of the schedule.
      for [_action, skill, _profile, tenant] <- rows,
          do: Runs.notify(book, skill, {nil, Tenants.from_column(tenant)})

      :ok
    end
  end

  @doc "The newest operations on the entries of the tenants that a profile reads."
  @spec list(SQL.t(), Profile.t(), pos_integer()) :: {:ok, [row()]} | {:error, SQL.Error.t()}
  def list(sql, profile, limit) do
    {readable, tenants} = Tenants.readable(profile, "tenant", 2)

    query = """
    select skill, action, profile, at, made_by, reason from skillbook_operations
    where #{readable} order by revision desc limit $1
    """

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, [limit | tenants]) do
      {:ok,
       for [name, action, profile | row] <- rows do
         Map.merge(pause(row), %{name: name, action: action, profile: profile})
       end}
    end
  end

  @doc "A pause from the columns of its row."
  @spec pause([String.t() | nil]) :: pause()
  def pause([at, by, reason]), do: %{at: Values.time(at), by: by, reason: reason}
  @doc "The columns `skill` and `record` of a target."
  @spec key(map()) :: [term()]
  def key(target), do: [target.name, target.record || 0]
end
