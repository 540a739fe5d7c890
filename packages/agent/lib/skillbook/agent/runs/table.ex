defmodule Skillbook.Agent.Runs.Table do
  @moduledoc false
  # The tables of durable runs. A run belongs to the holder of its lease, a process, whose book
  # renews it; every write of a run is refused to anybody else. So a run is continued by one
  # process, and one that has lost it writes nothing and calls nothing any more.

  alias Skillbook.Agent.Run
  alias Skillbook.SQL
  alias Skillbook.SQL.{OldRows, Tenants, Values}

  @type lease :: %{holder: String.t(), until: integer()}
  @typedoc "The turn and the number of a call."
  @type place :: {pos_integer(), pos_integer()}

  @columns ~w(ref run conversation profile tenant title status turns continued started_at ended_at
              answer reason)
  @select "select #{Enum.join(@columns, ", ")}, lease_until from skillbook_agent_runs"
  @own "exists (select 1 from skillbook_agent_runs where ref = $1 and holder = $2 and " <>
         "status = 'running')"
  # Runs whose lease has passed, or ends later than any that a clock in time has given.
  @over "status = 'running' and (lease_until < $1 or lease_until > $2)"

  @statuses Map.new(
              ~w(running stopped failed done cut_off empty pending max_turns max_time max_tokens
                 max_cost over_budget refused invalid_output stuck error)a,
              &{Atom.to_string(&1), &1}
            )

  # Bytes stored of a conversation, and of a result's whole text.
  @max_transcript 4 * 1024 * 1024
  @max_text 1024 * 1024
  # Characters of an answer.
  @max_answer 100_000

  @doc """
  Stores the start of a run; `{:busy, ref}` if one of its conversation has not ended. The texts of
  the earlier ones are not needed any more.
  """
  @spec insert(SQL.t(), map()) ::
          :ok | {:error, SQL.Error.t() | :too_large | {:busy, String.t()}}
  def insert(_sql, %{transcript: json}) when byte_size(json) > @max_transcript,
    do: {:error, :too_large}

  def insert(sql, %{conversation: nil} = run), do: insert_row(sql, run)

  # In a transaction, since only those are serialized.
  def insert(sql, %{conversation: conversation, profile: profile} = run) do
    earlier = """
    update skillbook_agent_runs set transcript = null
    where conversation = $1 and profile = $2 and status <> 'running' and status <> 'failed'
    """

    outcome =
      SQL.transaction(SQL.of_parts(sql, [{:conversation, conversation}]), fn sql ->
        with {:ok, nil} <- unended(sql, conversation, profile),
             {:ok, _} <- SQL.query(sql, earlier, [conversation, profile]),
             :ok <- insert_row(sql, run) do
          {:ok, :ok}
        else
          {:ok, ref} -> {:error, {:busy, ref}}
          error -> error
        end
      end)

    with {:ok, :ok} <- outcome, do: :ok
  end

  # The run of a conversation that has not ended, or `nil`.
  defp unended(sql, conversation, profile) do
    query =
      "select ref from skillbook_agent_runs where conversation = $1 and profile = $2 and " <>
        "status = 'running' order by id limit 1"

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, [conversation, profile]),
         do: {:ok, rows |> List.first([nil]) |> hd()}
  end

  defp insert_row(sql, run) do
    insert = """
    insert into skillbook_agent_runs
      (ref, run, conversation, profile, tenant, title, rights, assigns, options, state,
      transcript, status, turns, continued, holder, lease_until, started_at)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'running', 0, 0, $12, $13, $14)
    """

    values = [
      run.ref,
      run.run,
      run.conversation,
      run.profile,
      Tenants.to_column(run.tenant),
      Values.storable(run.title),
      run.rights,
      run.assigns,
      run.options,
      run.state,
      run.transcript,
      run.lease.holder,
      run.lease.until,
      run.started_at
    ]

    with {:ok, _} <- SQL.query(sql, insert, values), do: :ok
  end

  @doc "Stores the state of a run after an answer of its model; `:lost` if it is another's."
  @spec put(SQL.t(), String.t(), String.t(), map()) ::
          :ok | {:error, :lost | :too_large | SQL.Error.t()}
  def put(_sql, _ref, _holder, %{transcript: json}) when byte_size(json) > @max_transcript,
    do: {:error, :too_large}

  def put(sql, ref, holder, run) do
    update = """
    update skillbook_agent_runs set state = $3, transcript = $4, turns = $5
    where ref = $1 and holder = $2 and status = 'running'
    """

    # Those of earlier turns are in the conversation.
    earlier = "delete from skillbook_agent_calls where ref = $1 and turn < $2"
    values = [ref, holder, run.state, run.transcript, run.turns]

    change(sql, ref, [{update, values}, {earlier, [ref, run.turns]}])
  end

  # Writers of other runs do not wait for it. The first statement changes one row.
  defp change(sql, ref, statements) do
    sql = SQL.of_parts(sql, [{:agent_run, ref}])

    outcome =
      SQL.transaction(sql, statements, fn _sql, [changed | _others] ->
        with :ok <- one({:ok, changed}), do: {:ok, :ok}
      end)

    with {:ok, :ok} <- outcome, do: :ok
  end

  defp one({:ok, %{num_rows: 1}}), do: :ok
  defp one({:ok, _none}), do: {:error, :lost}
  defp one(error), do: error

  # Calls

  @doc "Stores that a call begins."
  @spec begin(SQL.t(), String.t(), String.t(), place(), String.t()) ::
          :ok | {:error, :lost | SQL.Error.t()}
  def begin(sql, ref, holder, {turn, number}, name) do
    insert = """
    insert into skillbook_agent_calls (ref, turn, number, name)
    select $1, $3, $4, $5 where #{@own}
    """

    change(sql, ref, [{insert, [ref, holder, turn, number, name]}])
  end

  @doc "Stores the result of a call."
  @spec finish_call(SQL.t(), String.t(), String.t(), place(), map()) ::
          :ok | {:error, :lost | SQL.Error.t()}
  def finish_call(sql, ref, holder, {turn, number}, result) do
    insert = """
    insert into skillbook_agent_calls (ref, turn, number, status, content, text, fields)
    select $1, $3, $4, $5, $6, $7, $8 where #{@own}
    on conflict (ref, turn, number) do update set status = excluded.status,
      content = excluded.content, text = excluded.text, fields = excluded.fields
    """

    text = if result.text != nil and byte_size(result.text) <= @max_text, do: result.text
    content = Values.storable(result.content)
    values = [result.status, content, text && Values.storable(text), result.fields]
    change(sql, ref, [{insert, [ref, holder, turn, number] ++ values}])
  end

  @doc "The calls of a turn by their numbers."
  @spec calls(SQL.t(), String.t(), non_neg_integer()) ::
          {:ok, %{pos_integer() => map()}} | {:error, SQL.Error.t()}
  def calls(sql, ref, turn) do
    query = """
    select number, name, status, content, text, fields from skillbook_agent_calls
    where ref = $1 and turn = $2
    """

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, [ref, turn]) do
      {:ok,
       Map.new(rows, fn [number, name, status, content, text, fields] ->
         {number, %{name: name, status: status, content: content, text: text, fields: fields}}
       end)}
    end
  end

  # The end

  @doc """
  Stores how a run ended. The conversation stays for a `Skillbook.Conversation`.

  The same end may be stored twice, since the answer of the first time may be lost.
  """
  @spec finish(SQL.t(), String.t(), String.t(), map()) :: :ok | {:error, :lost | SQL.Error.t()}
  def finish(sql, ref, holder, ended) do
    update = """
    update skillbook_agent_runs set status = $3, ended_at = $4, answer = $5, reason = $6,
      turns = $7, state = null, transcript = $8, lease_until = null
    where ref = $1 and holder = $2 and status in ('running', $3)
    """

    values = [
      ref,
      holder,
      Atom.to_string(ended.status),
      ended.at,
      ended.text |> String.slice(0, @max_answer) |> Values.storable(),
      ended.reason && Values.storable(ended.reason),
      ended.turns,
      ended.transcript
    ]

    calls = "delete from skillbook_agent_calls where ref = $1"

    change(sql, ref, [{update, values}, {calls, [ref]}])
  end

  @doc "Gives a run up, whose state stays, so that somebody may continue it."
  @spec fail(SQL.t(), String.t(), String.t(), DateTime.t(), String.t()) ::
          :ok | {:error, :lost | SQL.Error.t()}
  def fail(sql, ref, holder, now, reason) do
    update = """
    update skillbook_agent_runs set status = 'failed', ended_at = $3, reason = $4, holder = null,
      lease_until = null
    where ref = $1 and holder = $2 and status = 'running'
    """

    change(sql, ref, [{update, [ref, holder, now, Values.storable(reason)]}])
  end

  @doc "Ends a run, whoever holds it; `:ended` if it has ended."
  @spec stop(SQL.t(), String.t(), DateTime.t()) :: :ok | {:error, :ended | SQL.Error.t()}
  def stop(sql, ref, now), do: stop(sql, "ref = $2", [ref], now)

  @doc "The same for the run of a conversation."
  @spec stop_conversation(SQL.t(), String.t(), String.t(), DateTime.t()) ::
          :ok | {:error, :ended | SQL.Error.t()}
  def stop_conversation(sql, conversation, profile, now),
    do: stop(sql, "conversation = $2 and profile = $3", [conversation, profile], now)

  defp stop(sql, which, values, now) do
    update = """
    update skillbook_agent_runs set status = 'stopped', ended_at = $1, holder = null,
      lease_until = null, state = null,
      transcript = case when conversation is null then null else transcript end
    where #{which} and status in ('running', 'failed')
    """

    case SQL.query(sql, update, [now | values]) do
      {:ok, %{num_rows: 0}} -> {:error, :ended}
      {:ok, _} -> :ok
      error -> error
    end
  end

  # Leases

  @doc "Renews the leases of holders."
  @spec renew(SQL.t(), [String.t()], integer()) :: :ok | {:error, SQL.Error.t()}
  def renew(sql, holders, until) do
    {these, values} = Values.texts(sql, "holder", holders, 2)
    update = "update skillbook_agent_runs set lease_until = $1 where status = 'running' and "

    # Other writers do not wait for it.
    renewed =
      SQL.transaction(
        SQL.of_parts(sql, [:agent_leases]),
        &SQL.query(&1, update <> these, [until | values])
      )

    with {:ok, _} <- renewed, do: :ok
  end

  @doc """
  Gives back the runs of holders. A run that ends with its book may be continued any number of
  times.
  """
  @spec release(SQL.t(), [String.t()], :stopping | :gone) :: :ok | {:error, SQL.Error.t()}
  def release(sql, holders, why) do
    counted = if why == :stopping, do: "continued - 1", else: "continued"
    {these, values} = Values.texts(sql, "holder", holders, 1)

    update = """
    update skillbook_agent_runs set holder = null, lease_until = 0, continued = #{counted}
    where status = 'running' and #{these}
    """

    with {:ok, _} <- SQL.query(sql, update, values), do: :ok
  end

  @doc "The references of runs that wait for somebody to continue them, the oldest first."
  @spec interrupted(SQL.t(), {integer(), integer()}, pos_integer()) ::
          {:ok, [String.t()]} | {:error, SQL.Error.t()}
  def interrupted(sql, {from, to}, limit) do
    query = "select ref from skillbook_agent_runs where #{@over} order by id limit $3"

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, [from, to, limit]),
         do: {:ok, Enum.map(rows, &hd/1)}
  end

  @doc "Takes a run that nobody holds; with `:any` also one that was given up."
  @spec claim(SQL.t(), String.t(), lease(), {integer(), integer()}, :any | :interrupted) ::
          :ok | {:error, :lost | SQL.Error.t()}
  def claim(sql, ref, lease, {from, to}, which) do
    failed = if which == :any, do: " or status = 'failed'", else: ""

    update = """
    update skillbook_agent_runs set status = 'running', holder = $4, lease_until = $5,
      continued = continued + 1, ended_at = null, reason = null
    where ref = $3 and ((#{@over})#{failed})
    """

    # In a transaction, since only those are serialized.
    outcome =
      SQL.transaction(sql, fn sql ->
        with :ok <- one(SQL.query(sql, update, [from, to, ref, lease.holder, lease.until])),
             do: {:ok, :ok}
      end)

    with {:ok, :ok} <- outcome, do: :ok
  end

  # Reading

  @doc "The data with which a run is continued."
  @spec load(SQL.t(), String.t()) :: {:ok, map()} | {:error, :unknown | SQL.Error.t()}
  def load(sql, ref) do
    query = """
    select run, conversation, profile, rights, assigns, options, state, transcript, continued
    from skillbook_agent_runs where ref = $1
    """

    keys = ~w(run conversation profile rights assigns options state transcript continued)a

    case SQL.query(sql, query, [ref]) do
      {:ok, %{rows: [row]}} -> {:ok, Map.new(Enum.zip(keys, row))}
      {:ok, %{rows: []}} -> {:error, :unknown}
      error -> error
    end
  end

  @doc "The newest run of a conversation and its stored messages, or `nil`."
  @spec of_conversation(SQL.t(), atom(), String.t(), String.t(), {integer(), integer()}) ::
          {:ok, {Run.t(), String.t() | nil} | nil} | {:error, SQL.Error.t()}
  def of_conversation(sql, book, conversation, profile, times) do
    query =
      "select #{Enum.join(@columns, ", ")}, lease_until, transcript from skillbook_agent_runs " <>
        "where conversation = $1 and profile = $2 order by id desc limit 1"

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, [conversation, profile]) do
      case rows do
        [row] ->
          {row, [transcript]} = Enum.split(row, -1)
          {:ok, {run(row, book, times), transcript}}

        [] ->
          {:ok, nil}
      end
    end
  end

  @doc "The conversation that a run of a profile is a turn of, or `nil`."
  @spec conversation(SQL.t(), String.t(), String.t()) ::
          {:ok, String.t() | nil} | {:error, SQL.Error.t()}
  def conversation(sql, run, profile) do
    query =
      "select conversation from skillbook_agent_runs where profile = $1 and run = $2 " <>
        "order by id desc limit 1"

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, [profile, run]),
         do: {:ok, rows |> List.first([nil]) |> hd()}
  end

  @doc "A run, of those that a profile reads."
  @spec fetch(SQL.t(), atom(), String.t(), {String.t(), [SQL.param()]}, {integer(), integer()}) ::
          {:ok, Run.t()} | {:error, :unknown | SQL.Error.t()}
  def fetch(sql, book, ref, {which, values}, times) do
    case SQL.query(
           sql,
           "#{@select} where #{which} and ref = $#{length(values) + 1}",
           values ++ [ref]
         ) do
      {:ok, %{rows: [row]}} -> {:ok, run(row, book, times)}
      {:ok, %{rows: []}} -> {:error, :unknown}
      error -> error
    end
  end

  @doc "The newest runs, or those before one."
  @spec list(
          SQL.t(),
          atom(),
          {String.t(), [SQL.param()]},
          pos_integer(),
          String.t() | nil,
          {integer(), integer()}
        ) :: {:ok, [Run.t()]} | {:error, SQL.Error.t()}
  def list(sql, book, {which, values}, limit, last, times) do
    count = length(values)

    place =
      if last,
        do: " and id < (select id from skillbook_agent_runs where ref = $#{count + 2})",
        else: ""

    query = "#{@select} where #{which}#{place} order by id desc limit $#{count + 1}"

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, values ++ [limit | List.wrap(last)]),
         do: {:ok, Enum.map(rows, &run(&1, book, times))}
  end

  defp run(row, book, {from, to}) do
    [ref, run, conversation, profile, tenant, title, status, turns, continued | row] = row
    [started, ended, answer, reason, lease] = row
    status = @statuses[status]
    over? = status == :running and (lease == nil or lease < from or lease > to)

    %Run{
      ref: ref,
      book: book,
      run: run,
      conversation: conversation,
      profile: profile,
      tenant: Tenants.from_column(tenant),
      title: title,
      status: if(over?, do: :interrupted, else: status),
      turns: turns,
      continued: max(continued, 0),
      started_at: Values.time(started),
      ended_at: Values.time(ended),
      text: answer,
      reason: reason
    }
  end

  @doc "For `Skillbook.Book.Pruner`: deletes old runs, also those that nobody has continued."
  def prune(sql, before, place) do
    OldRows.walk(sql, before, place,
      table: "skillbook_agent_runs",
      key: ["started_at", "id"],
      old: "started_at",
      delete: "(status <> 'running' or lease_until < #{DateTime.to_unix(before, :millisecond)})"
    )
  end
end
