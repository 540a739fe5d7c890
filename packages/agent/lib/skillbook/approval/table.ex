defmodule Skillbook.Approval.Table do
  @moduledoc false
  # The table of approvals, which makes each approved call run once on all nodes. A call is
  # claimed by changing its status from `pending` to `running`; the holder renews its lease until
  # the call has ended. A row whose lease has passed is `interrupted`, and never runs again.
  #
  # Everything that reads and then writes is one transaction; both databases serialize these.

  alias Skillbook.SQL.{OldRows, Tenants, Values}
  alias Skillbook.{Approval, Profile, Result, SQL}
  alias Skillbook.Support.{JSON, UntilError}

  @typedoc "A row: the approval, and the data that only a run needs."
  @type row :: %{
          approval: Approval.t(),
          hash: String.t(),
          rights: String.t(),
          assigns: String.t(),
          made_by: :agent | :user,
          run: String.t() | nil,
          # The calls that wait in its result.
          pending: [String.t()]
        }

  @type decision :: %{by: String.t(), reason: String.t() | nil}

  @columns ~w(ref profile tenant skill words status asked_at expires_at decided_at decided_by
              reason finished_at result_status result hash rights assigns made_by run)
  @select "select #{Enum.join(@columns, ", ")}, " <>
            "case when transcript is null then 0 else 1 end from skillbook_approvals"
  @pending "status = 'pending'"
  @running "status = 'running'"
  @open "status in ('pending', 'running')"

  # Characters stored of a result.
  @max_result 10_000
  # Bytes stored of a conversation.
  @max_transcript 4 * 1024 * 1024
  # Decided approvals kept of each profile.
  @max_decided 1_000

  @statuses Map.new(Approval.statuses(), &{Atom.to_string(&1), &1})
  @result_statuses Map.new(~w(ok error template help pending)a, &{Atom.to_string(&1), &1})

  @doc """
  Stores a call that waits; `:full` if the profile has `max` of them already, `:taken` if the
  reference is in use.
  """
  @spec insert(SQL.t(), map(), pos_integer()) ::
          :ok | {:error, :full | :taken | SQL.Error.t()}
  def insert(sql, call, max) do
    insert = """
    insert into skillbook_approvals
      (ref, profile, skill, hash, words, rights, assigns, made_by, status, asked_at, expires_at,
      tenant)
    values ($1, $2, $3, $4, $5, $6, $7, $8, 'pending', $9, $10, $11)
    on conflict (ref) do nothing
    """

    waiting = "select count(*) from skillbook_approvals where profile = $1 and #{@pending}"

    beyond = """
    delete from skillbook_approvals where profile = $1 and not (#{@open}) and id not in
      (select id from skillbook_approvals where profile = $1 and not (#{@open})
      order by id desc limit #{@max_decided})
    """

    values = [
      call.ref,
      call.profile,
      call.skill,
      call.hash,
      call.words,
      call.rights,
      call.assigns,
      Atom.to_string(call.made_by),
      call.asked_at,
      call.expires_at,
      Tenants.to_column(call.tenant)
    ]

    outcome =
      SQL.transaction(sql, fn sql ->
        with {:ok, %{rows: [[count]]}} when count < max <-
               SQL.query(sql, waiting, [call.profile]),
             {:ok, %{num_rows: 1}} <- SQL.query(sql, insert, values),
             {:ok, _} <- SQL.query(sql, beyond, [call.profile]) do
          {:ok, :ok}
        else
          {:ok, %{rows: [[_count]]}} -> {:error, :full}
          {:ok, %{num_rows: 0}} -> {:error, :taken}
          error -> error
        end
      end)

    with {:ok, :ok} <- outcome, do: :ok
  end

  @doc "For `Skillbook.Book.Pruner`: deletes calls that were decided or have expired."
  def prune(sql, before, place) do
    OldRows.walk(sql, before, place,
      table: "skillbook_approvals",
      key: ["expires_at", "id"],
      old: "expires_at",
      delete: "not (#{@open})"
    )
  end

  @doc """
  Marks pending calls whose time is over as expired, and running ones without a lease as
  interrupted. Returns the approvals that it changed.

  A lease that ends later than two leases from now was taken by a clock that was ahead, and counts
  as over: `finish/6` still stores the result of a run that goes on.
  """
  @spec sweep(SQL.t(), atom(), DateTime.t(), pos_integer()) ::
          {:ok, [Approval.t()]} | {:error, SQL.Error.t()}
  def sweep(sql, book, now, lease) do
    over =
      "(#{@pending} and expires_at <= $1) or " <>
        "(#{@running} and (lease_until < $2 or lease_until > $3))"

    # Leases go by the system's clock.
    clock = System.os_time(:millisecond)
    values = [now, clock, clock + 2 * lease]

    update = """
    update skillbook_approvals set lease_until = null, finished_at = $1,
      status = case when #{@pending} then 'expired' else 'interrupted' end
    where ref = $4 and (#{over})
    """

    # Most calls find none, and need no transaction.
    with {:ok, [_ | _] = refs} <- refs(sql, over, values) do
      SQL.transaction(sql, fn sql ->
        UntilError.reduce(refs, [], fn ref, changed ->
          with {:ok, %{num_rows: 1}} <- SQL.query(sql, update, values ++ [ref]),
               {:ok, row} <- fetch(sql, book, ref) do
            {:ok, [row.approval | changed]}
          else
            {:ok, %{num_rows: 0}} -> {:ok, changed}
            error -> error
          end
        end)
      end)
    end
  end

  defp refs(sql, over, values) do
    query = "select ref from skillbook_approvals where #{over} order by id limit 1000"

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, values),
         do: {:ok, Enum.map(rows, &hd/1)}
  end

  @doc "Claims a pending call for a run; `:taken` if it is not pending any more."
  @spec claim(SQL.t(), String.t(), String.t(), DateTime.t(), DateTime.t(), decision()) ::
          :ok | {:error, :taken | SQL.Error.t()}
  def claim(sql, ref, holder, lease_until, now, decision) do
    set = "status = 'running', holder = $5, lease_until = $6"
    decide(sql, ref, set, now, decision, [holder, unix_ms(lease_until)])
  end

  @doc "Denies a pending call; `:taken` if it is not pending any more."
  @spec deny(SQL.t(), String.t(), DateTime.t(), decision()) ::
          :ok | {:error, :taken | SQL.Error.t()}
  def deny(sql, ref, now, decision),
    do: decide(sql, ref, "status = 'denied', finished_at = $2", now, decision, [])

  defp decide(sql, ref, set, now, decision, more) do
    update = """
    update skillbook_approvals set decided_at = $2, decided_by = $3, reason = $4, #{set}
    where ref = $1 and #{@pending} and expires_at > $2
    """

    values = [
      ref,
      now,
      Values.storable(decision.by),
      decision.reason && Values.storable(decision.reason)
    ]

    # In a transaction, since only those are serialized.
    outcome =
      SQL.transaction(sql, fn sql ->
        case SQL.query(sql, update, values ++ more) do
          {:ok, %{num_rows: 1}} -> {:ok, :ok}
          {:ok, %{num_rows: 0}} -> {:error, :taken}
          error -> error
        end
      end)

    with {:ok, :ok} <- outcome, do: :ok
  end

  @doc "Renews the lease of a run; false if the holder has lost it."
  @spec renew(SQL.t(), String.t(), String.t(), DateTime.t()) ::
          {:ok, boolean()} | {:error, SQL.Error.t()}
  def renew(sql, ref, holder, lease_until),
    do: held(sql, "lease_until = $3", ref, holder, [unix_ms(lease_until)])

  @doc """
  Stores the result of a run; false if the holder has lost it. The result of a run whose lease
  passed while it went on is stored too, since no other run takes its place. The same result may
  be stored again, after an error that does not say whether it was.
  """
  @spec finish(SQL.t(), Approval.t(), String.t(), DateTime.t(), Approval.status(), Result.t()) ::
          {:ok, boolean()} | {:error, SQL.Error.t()}
  def finish(sql, approval, holder, now, status, result) do
    set = """
    status = $3, finished_at = $4, result_status = $5, result = $6, words = $7, lease_until = null
    """

    content = result.content |> String.slice(0, @max_result) |> Values.storable()
    pending = for %Approval{ref: ref} <- Map.get(result.metadata, :pending, []), do: ref
    words = words(approval.command, approval.flags, pending)
    values = [Atom.to_string(status), now, Atom.to_string(result.status), content, words]
    held(sql, set, approval.ref, holder, values, "status in ('running', 'interrupted', $3)")
  end

  @doc "The words of a call as JSON, with the references of the calls that wait in its result."
  @spec words(String.t(), map(), [String.t()]) :: String.t()
  def words(command, flags, pending \\ []) do
    more = if pending == [], do: %{}, else: %{pending: pending}
    JSON.encode(Map.merge(%{command: command, flags: flags}, more))
  end

  @doc "Ends a run whose process failed: nobody knows how far it came."
  @spec interrupt(SQL.t(), String.t(), String.t(), DateTime.t()) ::
          {:ok, boolean()} | {:error, SQL.Error.t()}
  def interrupt(sql, ref, holder, now) do
    set = "status = 'interrupted', finished_at = $3, lease_until = null"
    held(sql, set, ref, holder, [now])
  end

  @doc "Gives a claim back: the call has not run, and waits again."
  @spec release(SQL.t(), String.t(), String.t()) :: {:ok, boolean()} | {:error, SQL.Error.t()}
  def release(sql, ref, holder) do
    set = """
    status = 'pending', decided_at = null, decided_by = null, reason = null, lease_until = null
    """

    held(sql, set, ref, holder, [])
  end

  defp held(sql, set, ref, holder, values, status \\ @running) do
    update = "update skillbook_approvals set #{set} where ref = $1 and holder = $2 and #{status}"

    with {:ok, %{num_rows: count}} <- SQL.query(sql, update, [ref, holder] ++ values),
         do: {:ok, count == 1}
  end

  @doc "The row of a reference, or `:unknown`."
  @spec fetch(SQL.t(), atom(), String.t()) :: {:ok, row()} | {:error, :unknown | SQL.Error.t()}
  def fetch(sql, book, ref) do
    case SQL.query(sql, "#{@select} where ref = $1", [ref]) do
      {:ok, %{rows: [row]}} -> {:ok, row(row, book)}
      {:ok, %{rows: []}} -> {:error, :unknown}
      error -> error
    end
  end

  @doc """
  The approvals with one of the statuses of the tenants that a profile reads, newest first; with
  `:own` only those of the profile itself. Those after the one of a reference, unless it is `nil`.
  """
  @spec list(
          SQL.t(),
          atom(),
          :own | :all,
          Profile.t(),
          [Approval.status()],
          pos_integer(),
          String.t() | nil
        ) :: {:ok, [Approval.t()]} | {:error, SQL.Error.t()}
  def list(sql, book, whose, profile, statuses, limit, last) do
    # The names are those of `Skillbook.Approval.statuses/0`.
    these = Enum.map_join(statuses, ", ", &"'#{&1}'")
    {own, values} = if whose == :own, do: {"profile = $2", [profile.id]}, else: {"1 = 1", []}
    {readable, tenants} = Tenants.readable(profile, "tenant", 2 + length(values))
    values = [limit | values ++ tenants]

    place =
      if last,
        do: "id < (select id from skillbook_approvals where ref = $#{length(values) + 1})",
        else: "1 = 1"

    query =
      "#{@select} where status in (#{these}) and #{own} and #{readable} and #{place} " <>
        "order by id desc limit $1"

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, values ++ List.wrap(last)),
         do: {:ok, Enum.map(rows, &row(&1, book).approval)}
  end

  # Conversations

  @doc "Stores the conversation of an agent's run with calls that it asked for."
  @spec put_transcript(SQL.t(), [String.t()], String.t(), String.t()) ::
          :ok | {:error, :too_large | SQL.Error.t()}
  def put_transcript(_sql, _refs, _run, json) when byte_size(json) > @max_transcript,
    do: {:error, :too_large}

  # The first run that stores it is the one that made the call; the runs around it do not count.
  def put_transcript(sql, refs, run, json) do
    update = """
    update skillbook_approvals set run = $2, transcript = $3
    where ref = $1 and (run is null or run = $2)
    """

    UntilError.each(refs, &SQL.query(sql, update, [&1, run, json]))
  end

  @doc "Gives the other waiting calls of a run the conversation as it went on."
  @spec renew_transcript(SQL.t(), String.t(), String.t()) ::
          :ok | {:error, :too_large | SQL.Error.t()}
  def renew_transcript(_sql, _run, json) when byte_size(json) > @max_transcript,
    do: {:error, :too_large}

  def renew_transcript(sql, run, json) do
    update = "update skillbook_approvals set transcript = $2 where run = $1 and #{@pending}"
    with {:ok, _} <- SQL.query(sql, update, [run, json]), do: :ok
  end

  @doc "The conversation of a call, as JSON, or `nil`."
  @spec transcript(SQL.t(), String.t()) :: {:ok, String.t() | nil} | {:error, SQL.Error.t()}
  def transcript(sql, ref) do
    query = "select transcript from skillbook_approvals where ref = $1"

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, [ref]),
         do: {:ok, List.first(Enum.concat(rows))}
  end

  defp row(row, book) do
    [ref, profile, tenant, skill, words, status, asked, expires, decided, by, reason | row] = row
    [finished, result_status, result, hash, rights, assigns, made_by, run, resumable] = row
    {:ok, words} = JSON.decode(words)

    approval = %Approval{
      ref: ref,
      book: book,
      profile: profile,
      tenant: Tenants.from_column(tenant),
      name: skill,
      command: words["command"],
      flags: words["flags"],
      status: @statuses[status],
      asked_at: Values.time(asked),
      expires_at: Values.time(expires),
      decided_at: Values.time(decided),
      by: by,
      reason: reason,
      finished_at: Values.time(finished),
      result: result(result_status, result, skill, words["command"]),
      conversation: run,
      resumable: resumable == 1
    }

    made_by = if made_by == "user", do: :user, else: :agent

    %{
      approval: approval,
      hash: hash,
      rights: rights,
      assigns: assigns,
      made_by: made_by,
      run: run,
      pending: Map.get(words, "pending", [])
    }
  end

  defp result(nil, _content, _skill, _command), do: nil

  defp result(status, content, skill, command) do
    status = @result_statuses[status]
    %Result{status: status, content: content, name: skill, command: command}
  end

  defp unix_ms(time), do: DateTime.to_unix(time, :millisecond)
end
