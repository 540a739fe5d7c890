defmodule Skillbook.Scheduler.Firings do
  @moduledoc false
  # The table of firings. Its key, an entry's name, its number in the store (0 for one of a file) and a time, is what makes each
  # fire once, whichever nodes try; who holds a lease on a row runs it. All that reads and then writes is one transaction, and these take turns in both databases.

  alias Skillbook.{Firing, SQL}

  @typedoc """
  Who runs it: `lease` in milliseconds, and how many `attempts` there are at one whose node ends.
  """
  @type by :: %{
          holder: String.t(),
          node: String.t(),
          lease: pos_integer(),
          attempts: pos_integer()
        }
  @type refused :: :taken | :overlap

  @columns ~w(name record fire_at status profile node attempts started_at finished_at duration text)
  @running "status = 'running'"
  @key "name = $1 and record = $2 and fire_at = $3"
  @statuses Map.new(
              ~w(queued running ok template failed skipped missed)a,
              &{Atom.to_string(&1), &1}
            )

  @doc """
  Takes a firing: `:new` if there is no row of it yet, `:queued` if it was handed to a queue. It becomes `running`, or
  `queued` for `hand: true`. One that finds another of its name under way becomes `skipped`.
  """
  @spec claim(SQL.t(), Firing.t(), :new | :queued, by(), DateTime.t(), keyword()) ::
          :ok | {:error, refused() | SQL.Error.t()}
  def claim(sql, firing, from, by, now, options \\ []) do
    done =
      SQL.transaction(sql, fn sql ->
        with :ok <- free(sql, firing, from),
             {:ok, _} <- expire(sql, by, now, firing),
             {:ok, running} <- running?(sql, firing),
             {status, text, answer} = becomes(running, options[:hand]),
             {:ok, _} <- put(sql, firing, from, status, text, by, now, options[:profile] || ""),
             do: {:ok, answer}
      end)

    case done do
      {:ok, :ok} -> :ok
      {:ok, refused} -> {:error, refused}
      error -> error
    end
  end

  defp becomes(_running, true), do: {"queued", "", :ok}
  defp becomes(false, _hand), do: {"running", "", :ok}
  defp becomes(true, _hand), do: {"skipped", "The one before was still under way.", :overlap}

  defp free(sql, firing, from) do
    with {:ok, %{rows: rows}} <-
           SQL.query(
             sql,
             "select status from skillbook_firings where #{@key}",
             key(firing)
           ) do
      case {rows, from} do
        {[], :new} -> :ok
        {[["queued"]], :queued} -> :ok
        _ -> {:error, :taken}
      end
    end
  end

  defp running?(sql, firing) do
    with {:ok, %{rows: rows}} <-
           SQL.query(
             sql,
             "select 1 from skillbook_firings where name = $1 and record = $2 and #{@running}",
             entry(firing)
           ),
         do: {:ok, rows != []}
  end

  defp put(sql, firing, :new, status, text, by, now, profile) do
    SQL.query(
      sql,
      "insert into skillbook_firings (name, record, fire_at, status, profile, node, holder, attempts, lease_until, " <>
        "started_at, text) values ($1, $2, $3, $4, $5, $6, $7, 1, $8, $9, $10)",
      key(firing) ++ [status, profile, by.node, by.holder, until(now, by), now, text]
    )
  end

  defp put(sql, firing, :queued, status, text, by, now, profile) do
    SQL.query(
      sql,
      "update skillbook_firings set status = $4, profile = $5, node = $6, holder = $7, lease_until = $8, started_at = $9, " <>
        "text = $10 where #{@key}",
      key(firing) ++ [status, profile, by.node, by.holder, until(now, by), now, text]
    )
  end

  @doc """
  Keeps what the holder runs for one lease more: `:renewed`, `:lost` if it is another's by now or was reported as failed, or
  `:not_running`: over, or handed to a queue.
  """
  @spec renew(SQL.t(), Firing.t(), by(), DateTime.t()) ::
          {:ok, :renewed | :lost | :not_running} | {:error, SQL.Error.t()}
  def renew(sql, firing, by, now) do
    with {:ok, %{num_rows: 0}} <-
           SQL.query(
             sql,
             "update skillbook_firings set lease_until = $5 where #{@key} and holder = $4 and #{@running}",
             key(firing) ++ [by.holder, until(now, by)]
           ),
         {:ok, %{rows: [[count]]}} <-
           SQL.query(
             sql,
             "select count(*) from skillbook_firings where #{@key} and status <> 'queued' and (holder <> $4 or text = $5)",
             key(firing) ++ [by.holder, interrupted()]
           ) do
      {:ok, if(count == 0, do: :not_running, else: :lost)}
    else
      {:ok, %{num_rows: 1}} -> {:ok, :renewed}
      error -> error
    end
  end

  @doc "Writes down what became of it; whether the holder still had it."
  @spec finish(SQL.t(), Firing.t(), by(), DateTime.t(), map()) ::
          {:ok, boolean()} | {:error, SQL.Error.t()}
  def finish(sql, firing, by, now, result) do
    with {:ok, %{num_rows: count}} <-
           SQL.query(
             sql,
             "update skillbook_firings set status = $5, text = $6, duration = $7, finished_at = $8, lease_until = null " <>
               "where #{@key} and holder = $4 and status in ('running', 'queued')",
             key(firing) ++
               [by.holder, Atom.to_string(result.status), text(result), result.duration, now]
           ),
         do: {:ok, count == 1}
  end

  # PostgreSQL has no NUL in texts; what a command answered may hold any character.
  defp text(result), do: String.replace(result.text, "\0", "\uFFFD")

  @doc "Notes that a firing did not take place, unless there is a row of it."
  @spec missed(SQL.t(), Firing.t(), by(), DateTime.t(), String.t()) ::
          {:ok, boolean()} | {:error, SQL.Error.t()}
  def missed(sql, firing, by, now, text) do
    with {:ok, %{num_rows: count}} <-
           SQL.query(
             sql,
             "insert into skillbook_firings (name, record, fire_at, status, profile, node, holder, attempts, started_at, " <>
               "finished_at, text) values ($1, $2, $3, 'missed', '', $4, $5, 0, $6, $6, $7) " <>
               "on conflict (name, record, fire_at) do nothing",
             key(firing) ++ [by.node, by.holder, now, text]
           ),
         do: {:ok, count == 1}
  end

  @doc "Says of all whose lease is over and that are not tried again, or of those of an entry, that they failed; how many there were."
  @spec expire(SQL.t(), by(), DateTime.t(), Firing.t() | nil) ::
          {:ok, non_neg_integer()} | {:error, SQL.Error.t()}
  def expire(sql, by, now, firing \\ nil) do
    {more, params} =
      if firing, do: {"and name = $5 and record = $6", entry(firing)}, else: {"", []}

    with {:ok, %{num_rows: count}} <-
           SQL.query(
             sql,
             "update skillbook_firings set status = 'failed', finished_at = $2, lease_until = null, text = $3 " <>
               "where #{@running} and lease_until < $1 and attempts >= $4 #{more}",
             [ms(now), now, interrupted(), by.attempts] ++ params
           ),
         do: {:ok, count}
  end

  @doc "Takes over so many of which the lease is over and that are tried again, each with the number of this attempt."
  @spec take_over(SQL.t(), atom(), by(), DateTime.t(), pos_integer()) ::
          {:ok, [{Firing.t(), attempt :: pos_integer()}]} | {:error, SQL.Error.t()}
  def take_over(sql, book, by, now, count) do
    SQL.transaction(sql, fn sql ->
      with {:ok, %{rows: rows}} <-
             SQL.query(
               sql,
               "select name, record, fire_at, attempts from skillbook_firings where #{@running} and lease_until < $1 " <>
                 "and attempts < $2 order by fire_at, name, record limit $3",
               [ms(now), by.attempts, count]
             ) do
        firings =
          for [name, record, at, attempts] <- rows,
              do: {Firing.new(book, name, at, record(record)), attempts + 1}

        with :ok <- take(sql, Enum.map(firings, &elem(&1, 0)), by, now), do: {:ok, firings}
      end
    end)
  end

  defp take(sql, firings, by, now) do
    Enum.reduce_while(firings, :ok, fn firing, :ok ->
      case SQL.query(
             sql,
             "update skillbook_firings set node = $4, holder = $5, lease_until = $6, started_at = $7, " <>
               "attempts = attempts + 1 where #{@key}",
             key(firing) ++ [by.node, by.holder, until(now, by), now]
           ) do
        {:ok, _} -> {:cont, :ok}
        error -> {:halt, error}
      end
    end)
  end

  @doc "The last firing of each entry, whatever became of it: its name, its record and its time."
  @spec last(SQL.t()) ::
          {:ok, [{String.t(), pos_integer() | nil, DateTime.t()}]} | {:error, SQL.Error.t()}
  def last(sql) do
    with {:ok, %{rows: rows}} <-
           SQL.query(
             sql,
             "select name, record, max(fire_at) from skillbook_firings group by name, record"
           ),
         do: {:ok, for([name, record, at] <- rows, do: {name, record(record), time(at)})}
  end

  @doc "The last rows, the newest first: those of a profile, or of all for `nil`."
  @spec list(SQL.t(), String.t() | nil, pos_integer(), pos_integer()) ::
          {:ok, [map()]} | {:error, SQL.Error.t()}
  def list(sql, profile, limit, offset) do
    {where, params} = if profile, do: {"where profile = $3", [profile]}, else: {"", []}

    statement =
      "select #{Enum.join(@columns, ", ")} from skillbook_firings #{where} order by fire_at desc, name, record limit $1 offset $2"

    with {:ok, %{rows: rows}} <- SQL.query(sql, statement, [limit, offset] ++ params),
         do: {:ok, Enum.map(rows, &row/1)}
  end

  @doc "Drops what is older than a time and not under way, but for the last of each name, from which on it is seen what was missed."
  @spec prune(SQL.t(), DateTime.t()) :: {:ok, non_neg_integer()} | {:error, SQL.Error.t()}
  def prune(sql, before) do
    with {:ok, %{num_rows: count}} <-
           SQL.query(
             sql,
             "delete from skillbook_firings where fire_at < $1 and status <> 'running' and fire_at < " <>
               "(select max(f.fire_at) from skillbook_firings f where f.name = skillbook_firings.name " <>
               "and f.record = skillbook_firings.record)",
             [before]
           ),
         do: {:ok, count}
  end

  defp interrupted,
    do: "Its node ended, or lost the database, while it ran; a part of its work may be done."

  defp row([name, record, at, status, profile, node, attempts, started, finished, duration, text]) do
    %{
      name: name,
      record: record(record),
      at: time(at),
      status: @statuses[status],
      profile: profile,
      node: node,
      attempts: attempts,
      started_at: time(started),
      finished_at: finished && time(finished),
      duration: duration && Float.round(duration / 1000, 3),
      text: text
    }
  end

  defp time(text) do
    {:ok, time, 0} = DateTime.from_iso8601(text)
    time
  end

  defp record(0), do: nil
  defp record(record), do: record

  defp entry(firing), do: [firing.name, firing.record || 0]
  defp key(firing), do: entry(firing) ++ [firing.at]
  defp until(now, by), do: ms(now) + by.lease
  defp ms(time), do: DateTime.to_unix(time, :millisecond)
end
