defmodule Skillbook.Scheduler.Firings do
  @moduledoc false
  # The table of firings, which makes each firing run once on all nodes. The node that holds the
  # lease of a row runs it. Everything that reads and then writes is one transaction; both
  # databases serialize these.
  #
  # The key is the entry's name, its number in the store (0 for a file) and the time. The number
  # is needed because each view decides which of several entries of a name it uses. So all of them
  # with a schedule are jobs, and may fire at the same time. Readers never get the number, since
  # it counts hidden entries too.

  alias Skillbook.Scheduler.Operations
  alias Skillbook.SQL.{GroupCommit, OldRows, Tenants, Values}
  alias Skillbook.Support.UntilError
  alias Skillbook.{Firing, Profile, SQL}

  @typedoc """
  The process that runs firings: its unique `holder`, its `node`, the `lease` in milliseconds, and
  how many `attempts` a firing gets if its node dies.
  """
  @type by :: %{
          holder: String.t(),
          node: String.t(),
          lease: pos_integer(),
          attempts: pos_integer()
        }
  @type refused :: :taken | :overlap | :paused

  @columns ~w(name record fire_at status profile node attempts started_at finished_at) ++
             ~w(duration text)
  @running "status = 'running'"
  @key "name = $1 and record = $2 and fire_at = $3"
  @found "select status, holder, lease_until from skillbook_firings where #{@key}"
  @running_of "select 1 from skillbook_firings where name = $1 and record = $2 and #{@running}"
  @interrupted "Its node died or lost the database while it ran; a part of its work may be done."
  @statuses Map.new(
              ~w(queued running ok template pending failed interrupted skipped missed)a,
              &{Atom.to_string(&1), &1}
            )

  @doc """
  Claims a firing that has no row yet (`:new`), or that was dispatched to a queue (`:queued`).
  A new one of a paused schedule is refused and leaves no row, unless somebody asked for it
  (`:asked`).

  Its status becomes `running`, or `queued` with `dispatch: true`. If another firing of the entry
  is running it becomes `skipped`. `:profile` is the id of the profile that may see the result,
  and its tenant. `:attempts` are the times of earlier attempts to make this claim whose result is
  unknown. `:writer` is a `Skillbook.SQL.GroupCommit` that commits it with those of other firings.
  """
  @spec claim(SQL.t(), Firing.t(), :new | :asked | :queued, by(), DateTime.t(), keyword()) ::
          :ok | {:error, refused() | SQL.Error.t()}
  def claim(sql, firing, from, by, now, options \\ []) do
    own = for at <- options[:attempts] || [], do: [by.holder, lease_until(at, by)]

    outcome =
      transaction(sql, options[:writer], read(firing), fn sql, [found, paused, running] ->
        with :ok <- check_free(found.rows, own, from),
             :ok <- check_paused(paused.rows, from),
             {:ok, running} <- running?(sql, firing, running.rows, by, now),
             {status, text, outcome} = claimed_status(running, options[:dispatch]),
             {:ok, _} <- write(sql, firing, from, status, text, by, now, options[:profile]),
             do: {:ok, outcome}
      end)

    case outcome do
      {:ok, :ok} -> :ok
      {:ok, refused} -> {:error, refused}
      {:error, {:claimed, "skipped"}} -> {:error, :overlap}
      {:error, {:claimed, _status}} -> :ok
      error -> error
    end
  end

  defp claimed_status(_running, true), do: {"queued", "", :ok}
  defp claimed_status(false, _dispatch), do: {"running", "", :ok}

  defp claimed_status(true, _dispatch),
    do: {"skipped", "The firing before it was still running.", :overlap}

  # All firings of a database are one part of it.
  defp transaction(sql, nil, statements, fun), do: SQL.transaction(sql, statements, fun)

  defp transaction(sql, writer, statements, fun) do
    [result] = GroupCommit.run(writer, sql, [{statements, fun}], [:firings])
    result
  end

  # The firing, the pause of its entry, and the firing of its entry that runs.
  defp read(firing) do
    [
      {@found, key(firing)},
      {"select 1 where #{Operations.paused("$1", "$2")}", entry(firing)},
      {@running_of, entry(firing)}
    ]
  end

  # The holder and the end of the lease identify a claim.
  defp check_free(rows, own, from) do
    case {rows, from} do
      {[], from} when from in [:new, :asked] -> :ok
      {[[status | claim]], from} -> check_claim(status, claim in own, from)
      _ -> {:error, :taken}
    end
  end

  defp check_claim(status, true, _from), do: {:error, {:claimed, status}}
  defp check_claim("queued", false, :queued), do: :ok
  defp check_claim(_status, false, _from), do: {:error, :taken}

  defp check_paused([_paused], :new), do: {:error, :paused}
  defp check_paused(_rows, _begun), do: :ok

  defp running?(_sql, _firing, [], _by, _now), do: {:ok, false}

  # Its lease may have passed.
  defp running?(sql, firing, [_ | _], by, now) do
    with {:ok, _} <- expire(sql, by, now, firing),
         {:ok, %{rows: rows}} <- SQL.query(sql, @running_of, entry(firing)),
         do: {:ok, rows != []}
  end

  defp write(sql, firing, :queued, status, text, by, now, profile) do
    update = """
    update skillbook_firings set status = $4, profile = $5, node = $6, holder = $7,
      lease_until = $8, started_at = $9, text = $10, tenant = $11 where #{@key}
    """

    {profile, tenant} = owner(profile)
    values = [status, profile, by.node, by.holder, lease_until(now, by), now, text, tenant]
    SQL.query(sql, update, key(firing) ++ values)
  end

  defp write(sql, firing, _new, status, text, by, now, profile) do
    insert = """
    insert into skillbook_firings
      (name, record, fire_at, status, profile, node, holder, attempts,
       lease_until, started_at, text, tenant)
    values ($1, $2, $3, $4, $5, $6, $7, 1, $8, $9, $10, $11)
    """

    {profile, tenant} = owner(profile)
    values = [status, profile, by.node, by.holder, lease_until(now, by), now, text, tenant]
    SQL.query(sql, insert, key(firing) ++ values)
  end

  defp owner(nil), do: {"", ""}
  defp owner({id, tenant}), do: {id, Tenants.to_column(tenant)}

  @doc """
  Renews the lease of a firing.

  Returns `:lost` if another node has it or it was stored as interrupted, and `:not_running` if it
  is finished or queued.
  """
  @spec renew(SQL.t(), Firing.t(), by(), DateTime.t()) ::
          {:ok, :renewed | :lost | :not_running} | {:error, SQL.Error.t()}
  def renew(sql, firing, by, now) do
    update =
      "update skillbook_firings set lease_until = $5 " <>
        "where #{@key} and holder = $4 and #{@running}"

    lost =
      "select count(*) from skillbook_firings " <>
        "where #{@key} and status <> 'queued' and (holder <> $4 or text = $5)"

    with {:ok, %{num_rows: 0}} <-
           SQL.query(sql, update, key(firing) ++ [by.holder, lease_until(now, by)]),
         {:ok, %{rows: [[count]]}} <-
           SQL.query(sql, lost, key(firing) ++ [by.holder, @interrupted]) do
      {:ok, if(count == 0, do: :not_running, else: :lost)}
    else
      {:ok, %{num_rows: 1}} -> {:ok, :renewed}
      error -> error
    end
  end

  @doc """
  Stores the result of a firing; returns false if the holder has lost it. The same result may be
  stored again, after an error that does not say whether it was. The writer is that of `claim/6`.
  """
  @spec finish(SQL.t(), Firing.t(), by(), DateTime.t(), map(), GenServer.server() | nil) ::
          {:ok, boolean()} | {:error, SQL.Error.t()}
  def finish(sql, firing, by, now, result, writer \\ nil) do
    update = """
    update skillbook_firings
    set status = $5, text = $6, duration = $7, finished_at = $8, lease_until = null
    where #{@key} and holder = $4 and
      (status in ('running', 'queued') or status = $5 and text = $6)
    """

    values = [by.holder, Atom.to_string(result.status), result.text, result.duration, now]

    statements = [{update, key(firing) ++ values}]

    transaction(sql, writer, statements, fn _sql, [%{num_rows: count}] -> {:ok, count == 1} end)
  end

  @doc "Stores a firing as missed, unless it has a row."
  @spec missed(SQL.t(), Firing.t(), by(), DateTime.t(), String.t()) ::
          {:ok, boolean()} | {:error, SQL.Error.t()}
  def missed(sql, firing, by, now, text) do
    insert = """
    insert into skillbook_firings
      (name, record, fire_at, status, profile, node, holder, attempts,
       started_at, finished_at, text)
    values ($1, $2, $3, 'missed', '', $4, $5, 0, $6, $6, $7)
    on conflict (name, record, fire_at) do nothing
    """

    with {:ok, %{num_rows: count}} <-
           SQL.query(sql, insert, key(firing) ++ [by.node, by.holder, now, text]),
         do: {:ok, count == 1}
  end

  @doc """
  Marks firings with an expired lease and no attempts left as failed, and returns their number.
  Those of a paused schedule have none left.

  With a firing, only those of its entry.
  """
  @spec expire(SQL.t(), by(), DateTime.t(), Firing.t() | nil) ::
          {:ok, non_neg_integer()} | {:error, SQL.Error.t()}
  def expire(sql, by, now, firing \\ nil) do
    {condition, params} =
      if firing, do: {"and name = $5 and record = $6", entry(firing)}, else: {"", []}

    update = """
    update skillbook_firings
    set status = 'failed', finished_at = $2, lease_until = null, text = $3
    where #{@running} and lease_until < $1 and (attempts >= $4 or #{paused()}) #{condition}
    """

    values = [unix_ms(now), now, @interrupted, by.attempts] ++ params
    with {:ok, %{num_rows: count}} <- SQL.query(sql, update, values), do: {:ok, count}
  end

  @doc """
  Takes over up to `count` firings with an expired lease and attempts left.

  Returns each with the number of its new attempt.
  """
  @spec take_over(SQL.t(), atom(), by(), DateTime.t(), pos_integer()) ::
          {:ok, [{Firing.t(), attempt :: pos_integer()}]} | {:error, SQL.Error.t()}
  def take_over(sql, book, by, now, count) do
    query = """
    select name, record, fire_at, attempts from skillbook_firings
    where #{@running} and lease_until < $1 and attempts < $2 and not #{paused()}
    order by fire_at, name, record limit $3
    """

    SQL.transaction(sql, fn sql ->
      with {:ok, %{rows: rows}} <- SQL.query(sql, query, [unix_ms(now), by.attempts, count]) do
        firings =
          for [name, record, at, attempts] <- rows,
              do: {Firing.new(book, name, at, record(record)), attempts + 1}

        with :ok <- take(sql, Enum.map(firings, &elem(&1, 0)), by, now), do: {:ok, firings}
      end
    end)
  end

  defp take(sql, firings, by, now) do
    update = """
    update skillbook_firings
    set node = $4, holder = $5, lease_until = $6, started_at = $7, attempts = attempts + 1
    where #{@key}
    """

    values = [by.node, by.holder, lease_until(now, by), now]
    UntilError.each(firings, &SQL.query(sql, update, key(&1) ++ values))
  end

  @typedoc "The lease of a firing: its holder, and its end in milliseconds."
  @type lease :: {Firing.t(), holder :: String.t(), until :: integer()}

  @doc """
  The leases that end later than a lease from now. The clock of their holder is ahead, or was when
  it renewed them.
  """
  @spec ahead(SQL.t(), atom(), by(), DateTime.t()) :: {:ok, [lease()]} | {:error, SQL.Error.t()}
  def ahead(sql, book, by, now) do
    query = """
    select name, record, fire_at, holder, lease_until from skillbook_firings
    where #{@running} and lease_until > $1
    """

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, [lease_until(now, by)]) do
      {:ok,
       for [name, record, at, holder, until] <- rows do
         {Firing.new(book, name, at, record(record)), holder, until}
       end}
    end
  end

  @doc "Ends leases that were not renewed since they were read."
  @spec end_leases(SQL.t(), [lease()]) :: :ok | {:error, SQL.Error.t()}
  def end_leases(sql, leases) do
    update = """
    update skillbook_firings set lease_until = 0
    where #{@key} and holder = $4 and lease_until = $5 and #{@running}
    """

    UntilError.each(leases, fn {firing, holder, until} ->
      SQL.query(sql, update, key(firing) ++ [holder, until])
    end)
  end

  @doc "The name, record and time of the last firing of each entry, whatever its status."
  @spec last(SQL.t()) ::
          {:ok, [{String.t(), pos_integer() | nil, DateTime.t()}]} | {:error, SQL.Error.t()}
  def last(sql) do
    query = "select name, record, max(fire_at) from skillbook_firings group by name, record"

    with {:ok, %{rows: rows}} <- SQL.query(sql, query),
         do: {:ok, for([name, record, at] <- rows, do: {name, record(record), Values.time(at)})}
  end

  @doc """
  Lists the firings that a profile reads, the newest first: its own, or those of all profiles of
  its tenants if it is unrestricted. Those after a firing of the list, unless it is `nil`.
  """
  @spec list(SQL.t(), Profile.t(), pos_integer(), map() | nil) ::
          {:ok, [map()]} | {:error, SQL.Error.t()}
  def list(sql, profile, limit, last) do
    {place, params} =
      if last do
        place = "fire_at <= $2 and (fire_at < $2 or name > $3 or name = $3 and record > $4)"
        {place, [last.at, last.name, last.record || 0]}
      else
        {"1 = 1", []}
      end

    {own, params} =
      if Profile.unrestricted?(profile),
        do: {"1 = 1", params},
        else: {"profile = $#{length(params) + 2}", params ++ [profile.id]}

    {readable, tenants} = Tenants.readable(profile, "tenant", length(params) + 2)
    params = params ++ tenants

    query =
      "select #{Enum.join(@columns, ", ")} from skillbook_firings " <>
        "where #{place} and #{own} and #{readable} " <>
        "order by fire_at desc, name, record limit $1"

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, [limit | params]),
         do: {:ok, Enum.map(rows, &row/1)}
  end

  @doc """
  For `Skillbook.Book.Pruner`: deletes firings that are not running.

  The last firing of each entry stays: firings missed since are counted from it.
  """
  def prune(sql, before, place) do
    OldRows.walk(sql, before, place,
      table: "skillbook_firings",
      key: ["fire_at", "name", "record"],
      old: "fire_at",
      delete:
        "status <> 'running' and fire_at < (select max(f.fire_at) from skillbook_firings f " <>
          "where f.name = skillbook_firings.name and f.record = skillbook_firings.record)"
    )
  end

  defp row([name, record, at, status, profile, node, attempts | rest]) do
    [started, finished, duration, text] = rest

    %{
      name: name,
      record: record(record),
      at: Values.time(at),
      status: @statuses[status],
      profile: profile,
      node: node,
      attempts: attempts,
      started_at: Values.time(started),
      finished_at: Values.time(finished),
      duration: duration && Float.round(duration / 1000, 3),
      text: text
    }
  end

  defp record(0), do: nil
  defp record(record), do: record

  defp paused, do: Operations.paused("skillbook_firings.name", "skillbook_firings.record")
  defp entry(firing), do: [firing.name, firing.record || 0]
  defp key(firing), do: entry(firing) ++ [firing.at]
  defp lease_until(now, by), do: unix_ms(now) + by.lease
  defp unix_ms(time), do: DateTime.to_unix(time, :millisecond)
end
