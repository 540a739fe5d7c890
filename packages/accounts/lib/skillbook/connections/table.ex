defmodule Skillbook.Connections.Table do
  @moduledoc false
  # The tables of connections and of sign-ins. Secrets come and go encrypted.
  #
  # A change of a status or of scopes is a transaction that first raises the setting
  # `connections`, so such changes commit in the order of their revisions. A new token changes
  # only its row.

  alias Skillbook.{Profile, SQL}
  alias Skillbook.SQL.{Tenants, Values}
  alias Skillbook.Support.Number

  @type key :: {profile :: String.t(), account :: String.t()}

  @type row :: %{
          profile: String.t(),
          account: String.t(),
          tenant: String.t() | nil,
          status: :connected | :revoked,
          identity: String.t() | nil,
          scopes: [String.t()],
          key_id: String.t(),
          secret: binary(),
          expires_at: non_neg_integer(),
          version: pos_integer(),
          connected_at: DateTime.t(),
          renewed_at: DateTime.t()
        }

  @typedoc "A row without its secret."
  @type fact ::
          {key(), :connected | :revoked, [String.t()], String.t() | nil, pos_integer(),
           tenant :: String.t() | nil}

  @columns "profile, account, tenant, status, identity, scopes, key_id, secret, expires_at, " <>
             "version, connected_at, renewed_at"
  @key "profile = $1 and account = $2"

  # A limit that is none.
  @all 9_223_372_036_854_775_807

  @next_revision Values.raise_setting("connections")

  # Not a number, so a follower looks at its revisions whatever they are.
  @notify "select pg_notify('skillbook', 'connections')"

  @doc "The row of a profile and an account, or `nil`."
  @spec get(SQL.t(), key()) :: {:ok, row() | nil} | {:error, SQL.Error.t()}
  def get(sql, {profile, account}) do
    query = "select #{@columns} from skillbook_connections where #{@key}"

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, [profile, account]),
         do: {:ok, rows |> Enum.map(&row/1) |> List.first()}
  end

  @doc "All rows, or those of a profile, in the order of profiles and accounts."
  @spec list(SQL.t(), String.t() | nil) :: {:ok, [row()]} | {:error, SQL.Error.t()}
  def list(sql, profile) do
    {where, params} = if profile, do: {"where profile = $1", [profile]}, else: {"", []}

    query = "select #{@columns} from skillbook_connections #{where} order by profile, account"
    with {:ok, %{rows: rows}} <- SQL.query(sql, query, params), do: {:ok, Enum.map(rows, &row/1)}
  end

  @doc """
  The rows of an account that a reader may see, of all profiles or of one, in the order of
  profiles: those after a profile, at most so many; `nil` for all.
  """
  @spec page(
          SQL.t(),
          String.t(),
          String.t() | nil,
          Profile.t(),
          String.t() | nil,
          pos_integer() | nil
        ) :: {:ok, [row()]} | {:error, SQL.Error.t()}
  def page(sql, account, profile, reader, last, limit) do
    {tenants, values} = Tenants.readable(reader, "tenant", 4)
    only = if profile, do: "profile = $3", else: "$3 = ''"

    query =
      "select #{@columns} from skillbook_connections where account = $1 and profile > $2 " <>
        "and #{only} and #{tenants} order by profile limit $#{4 + length(values)}"

    params = [account, last || "", profile || ""] ++ values ++ [limit || @all]
    with {:ok, %{rows: rows}} <- SQL.query(sql, query, params), do: {:ok, Enum.map(rows, &row/1)}
  end

  @doc "The rows of an account that are connected and were renewed last, of all profiles."
  @spec latest(SQL.t(), String.t(), pos_integer()) :: {:ok, [row()]} | {:error, SQL.Error.t()}
  def latest(sql, account, limit) do
    query =
      "select #{@columns} from skillbook_connections where account = $1 and " <>
        "status = 'connected' order by renewed_at desc, profile limit $2"

    with {:ok, %{rows: rows}} <- SQL.query(sql, query, [account, limit]),
         do: {:ok, Enum.map(rows, &row/1)}
  end

  @doc "The revision of the last change, the rows that changed after `last`, and their number."
  @spec changes(SQL.t(), integer()) ::
          {:ok, non_neg_integer(), [fact()], non_neg_integer()} | {:error, SQL.Error.t()}
  def changes(sql, last) do
    revision = "select value from skillbook_settings where key = 'connections'"

    facts =
      "select profile, account, status, scopes, identity, version, tenant " <>
        "from skillbook_connections where revision > $1"

    # The revision is read first, so no row up to it is missed.
    with {:ok, %{rows: [[revision]]}} <- SQL.query(sql, revision),
         {:ok, %{rows: rows}} <- SQL.query(sql, facts, [last]),
         {:ok, %{rows: [[count]]}} <-
           SQL.query(sql, "select count(*) from skillbook_connections") do
      {:ok, Number.integer!(revision), Enum.map(rows, &fact/1), count}
    end
  end

  defp fact([profile, account, status, scopes, identity, version, tenant]) do
    tenant = Tenants.from_column(tenant)
    {{profile, account}, status(status), String.split(scopes), identity, version, tenant}
  end

  @doc """
  Writes the row that `fun` makes of the kept one, or of `nil`, with the next version.
  """
  @spec put(SQL.t(), key(), DateTime.t(), (row() | nil -> {:ok, map()} | {:error, reason})) ::
          {:ok, row()} | {:error, reason | SQL.Error.t()}
        when reason: term()
  def put(sql, {profile, account} = key, now, fun) do
    change(sql, fn sql, revision ->
      with {:ok, kept} <- get(sql, key),
           {:ok, new} <- fun.(kept),
           {:ok, _} <- delete_row(sql, key) do
        insert =
          "insert into skillbook_connections (#{@columns}, revision) " <>
            "values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"

        version = if kept, do: kept.version + 1, else: 1

        values = [
          profile,
          account,
          Tenants.to_column(new.tenant),
          Atom.to_string(new.status),
          new.identity,
          Enum.join(new.scopes, " "),
          new.key_id,
          {:blob, new.secret},
          new.expires_at,
          version,
          if(new.status == :revoked, do: kept.connected_at, else: now),
          now,
          revision
        ]

        with {:ok, _} <- SQL.query(sql, insert, values), do: get(sql, key)
      end
    end)
  end

  @doc "Deletes the row; returns false if there was none."
  @spec delete(SQL.t(), key()) :: {:ok, boolean()} | {:error, SQL.Error.t()}
  def delete(sql, key), do: change(sql, fn sql, _revision -> delete_row(sql, key) end)

  defp delete_row(sql, {profile, account}) do
    delete = "delete from skillbook_connections where #{@key}"

    with {:ok, %{num_rows: count}} <- SQL.query(sql, delete, [profile, account]),
         do: {:ok, count == 1}
  end

  defp change(sql, fun) do
    SQL.transaction(sql, [@next_revision], fn sql, [%{rows: [[revision]]}] ->
      with {:ok, value} <- fun.(sql, Number.integer!(revision)),
           {:ok, _} <- notify(sql),
           do: {:ok, value}
    end)
  end

  defp notify(sql) do
    if SQL.dialect(sql) == :postgres, do: SQL.query(sql, @notify), else: {:ok, nil}
  end

  # Renewal

  @doc """
  Takes the lease to renew a token of this version. False if another holder has it, or the version
  is another one. A lease that ends later than two leases from now was taken by a clock that was
  ahead, and counts as over.
  """
  @spec take_lease(SQL.t(), key(), pos_integer(), String.t(), integer(), pos_integer()) ::
          {:ok, boolean()} | {:error, SQL.Error.t()}
  def take_lease(sql, {profile, account}, version, holder, now, lease) do
    update =
      "update skillbook_connections set holder = $4, lease_until = $5 " <>
        "where #{@key} and version = $3 and " <>
        "(holder is null or lease_until < $6 or lease_until > $7)"

    times = [now + lease, now, now + 2 * lease]
    one(SQL.query(sql, update, [profile, account, version, holder | times]))
  end

  @doc "Gives the lease back."
  @spec release_lease(SQL.t(), key(), String.t()) :: {:ok, boolean()} | {:error, SQL.Error.t()}
  def release_lease(sql, {profile, account}, holder) do
    update =
      "update skillbook_connections set holder = null, lease_until = null " <>
        "where #{@key} and holder = $3"

    one(SQL.query(sql, update, [profile, account, holder]))
  end

  @doc "Stores a renewed token, and ends the lease. False if the holder has lost it."
  @spec renew(SQL.t(), key(), pos_integer(), String.t(), map(), DateTime.t()) ::
          {:ok, boolean()} | {:error, SQL.Error.t()}
  def renew(sql, {profile, account}, version, holder, new, now) do
    update =
      "update skillbook_connections set key_id = $5, secret = $6, expires_at = $7, " <>
        "version = version + 1, holder = null, lease_until = null, renewed_at = $8 " <>
        "where #{@key} and version = $3 and holder = $4"

    values = [new.key_id, {:blob, new.secret}, new.expires_at, now]
    one(SQL.query(sql, update, [profile, account, version, holder | values]))
  end

  @doc "Replaces a secret by the same one with another key. False if the row has changed since."
  @spec encrypt_again(SQL.t(), row(), String.t(), binary()) ::
          {:ok, boolean()} | {:error, SQL.Error.t()}
  def encrypt_again(sql, row, key_id, secret) do
    update =
      "update skillbook_connections set key_id = $4, secret = $5 " <>
        "where #{@key} and version = $3 and key_id = $6"

    values = [row.profile, row.account, row.version, key_id, {:blob, secret}, row.key_id]
    one(SQL.query(sql, update, values))
  end

  defp one({:ok, %{num_rows: count}}), do: {:ok, count == 1}
  defp one(error), do: error

  # Sign-ins

  # Sign-ins of a profile that may wait at once; the oldest go first.
  @most_waiting 20

  @doc "Stores a sign-in, and deletes expired ones and those over the limit of a profile."
  @spec put_sign_in(SQL.t(), map(), integer()) :: :ok | {:error, SQL.Error.t()}
  def put_sign_in(sql, sign_in, now) do
    insert =
      "insert into skillbook_sign_ins (state, profile, account, scopes, redirect, key_id, " <>
        "verifier, expires_at) values ($1, $2, $3, $4, $5, $6, $7, $8)"

    expired = "delete from skillbook_sign_ins where expires_at < $1"

    over =
      "delete from skillbook_sign_ins where profile = $1 and state not in (select state from " <>
        "skillbook_sign_ins where profile = $1 order by expires_at desc, state limit $2)"

    values = [
      sign_in.state,
      sign_in.profile,
      sign_in.account,
      Enum.join(sign_in.scopes, " "),
      sign_in.redirect,
      sign_in.key_id,
      {:blob, sign_in.verifier},
      sign_in.expires_at
    ]

    stored =
      SQL.transaction(sql, fn sql ->
        SQL.query_all(sql, [
          {expired, [now]},
          {insert, values},
          {over, [sign_in.profile, @most_waiting]}
        ])
      end)

    with {:ok, _} <- stored, do: :ok
  end

  @doc """
  Takes the sign-in of a state of a profile, which only the first caller gets; `nil` if it is
  unknown, of another profile, taken or expired.
  """
  @spec take_sign_in(SQL.t(), String.t(), String.t(), integer()) ::
          {:ok, map() | nil} | {:error, SQL.Error.t()}
  def take_sign_in(sql, state, profile, now) do
    delete =
      "delete from skillbook_sign_ins where state = $1 and profile = $2 " <>
        "returning account, scopes, redirect, key_id, verifier, expires_at"

    with {:ok, %{rows: rows}} <- SQL.query(sql, delete, [state, profile]) do
      case rows do
        [[account, scopes, redirect, key_id, verifier, expires_at]] when expires_at >= now ->
          {:ok,
           %{
             account: account,
             scopes: String.split(scopes),
             redirect: redirect,
             key_id: key_id,
             verifier: verifier
           }}

        _none_or_expired ->
          {:ok, nil}
      end
    end
  end

  # Rows

  defp row([profile, account, tenant, status, identity, scopes, key_id, secret | rest]) do
    [expires_at, version, connected_at, renewed_at] = rest

    %{
      profile: profile,
      account: account,
      tenant: Tenants.from_column(tenant),
      status: status(status),
      identity: identity,
      scopes: String.split(scopes),
      key_id: key_id,
      secret: secret,
      expires_at: expires_at,
      version: version,
      connected_at: Values.time(connected_at),
      renewed_at: Values.time(renewed_at)
    }
  end

  defp status("connected"), do: :connected
  # A status of a later version cannot be read, so the connection cannot be used.
  defp status(_other), do: :revoked
end
