defmodule Skillbook.Connections.Renewal do
  @moduledoc false
  # Renews the token of a connection, once on all nodes: the node with the lease of its row asks
  # the vendor, and the others wait for the row. The lease of a killed node ends.
  #
  # A new token is stored before it is used. A node that is killed between the vendor's answer and
  # the write loses the answer: with a vendor that gives a new refresh token each time, the
  # connection must be made again. The write is tried until the lease ends.

  require Logger

  alias Skillbook.Connections.{Account, Cipher, Discovery, OAuth, Table}
  alias Skillbook.Support.JSON
  alias Skillbook.{ConnectionError, SQL}

  @typedoc "A token in use, with its version, and the end of its life in milliseconds (Unix)."
  @type token :: %{
          access: (() -> String.t()),
          version: pos_integer(),
          expires_at: integer(),
          lasts: pos_integer()
        }

  # Milliseconds. The lease is longer than the request and some tries to write its answer, and
  # shorter than the renewal, which may wait for the lease of a killed node.
  @request 8_000
  @lease 15_000
  @limit 25_000
  # Tries of a request that failed for now, and the first pause.
  @tries 3
  @pause 250

  @doc "The time that a renewal may take, in milliseconds."
  @spec limit() :: pos_integer()
  def limit, do: @limit

  @soft 120_000
  @hard 20_000

  @doc """
  The milliseconds before the end of a token at which it is renewed in the background (`:soft`),
  and at which callers wait for it (`:hard`): a part of its life, if that is short.
  """
  @spec margin(:soft | :hard, pos_integer()) :: pos_integer()
  def margin(:soft, lasts), do: min(@soft, div(lasts, 4))
  def margin(:hard, lasts), do: min(@hard, div(lasts, 10))

  @doc """
  Returns a token that lasts for longer than a margin, and has another version than `refused`;
  renews the kept one if it does not.
  """
  @spec run(SQL.t(), Account.t(), pos_integer() | nil, :soft | :hard, keyword()) ::
          {:ok, token()} | {:error, ConnectionError.t()}
  def run(sql, account, refused, margin, options \\ []) do
    now = System.monotonic_time(:millisecond)

    run = %{
      sql: sql,
      account: account,
      keys: options[:keys] || [],
      refused: refused,
      margin: margin,
      holder: OAuth.state(),
      deadline: now + @limit,
      lease: options[:lease] || @lease,
      on_revoked: options[:on_revoked] || fn -> :ok end
    }

    with {:ok, keys} <- Cipher.keys(run.keys) |> or_error(run, :key),
         do: step(%{run | keys: keys})
  end

  defp step(run) do
    with {:ok, row} <- row(run),
         {:ok, secret} <- opened(run, row) do
      left = row.expires_at - System.os_time(:millisecond)

      cond do
        row.version != run.refused and left > margin(run.margin, secret.().lasts) ->
          {:ok, token(row, secret)}

        secret.().refresh == nil ->
          {:error, error(run, :revoked)}

        true ->
          renew(run, row, secret)
      end
    end
  end

  defp row(run) do
    case Table.get(run.sql, key(run)) do
      {:ok, %{status: :connected} = row} -> {:ok, row}
      {:ok, %{status: :revoked}} -> {:error, error(run, :revoked)}
      {:ok, nil} -> {:error, error(run, :none)}
      {:error, error} -> {:error, store_error(run, error)}
    end
  end

  defp opened(run, row) do
    with {:ok, secret} <- run.keys |> open(row) |> or_error(run, :key) do
      if Discovery.of?(secret.().oauth, run.account),
        do: {:ok, secret},
        else: {:error, error(run, :none)}
    end
  end

  @typedoc "The tokens of a row, the life of the first, and the endpoints of a server's sign-in."
  @type opened ::
          (() -> %{
                   access: String.t(),
                   refresh: String.t() | nil,
                   lasts: pos_integer(),
                   oauth: Discovery.t() | nil
                 })

  @doc "The tokens of a row."
  @spec open([Cipher.key(), ...], Table.row()) :: {:ok, opened()} | {:error, String.t()}
  def open(keys, row) when is_list(keys) do
    with {:ok, text} <- Cipher.decrypt(keys, row.key_id, place(row), row.secret) do
      case JSON.decode(text.()) do
        {:ok, %{"access" => access, "refresh" => refresh, "lasts" => lasts} = kept} ->
          oauth = Discovery.decode(kept["oauth"])
          {:ok, fn -> %{access: access, refresh: refresh, lasts: lasts, oauth: oauth} end}

        _other ->
          {:error, "it has no token; connect again"}
      end
    end
  end

  defp token(row, secret) do
    %{
      access: fn -> secret.().access end,
      version: row.version,
      expires_at: row.expires_at,
      lasts: secret.().lasts
    }
  end

  defp renew(run, row, secret) do
    now = System.os_time(:millisecond)

    case Table.take_lease(run.sql, key(run), row.version, run.holder, now, run.lease) do
      {:ok, true} ->
        with {:error, error} <- leased(run, row, secret), do: kept(run, row, secret, error)

      # Another node renews it.
      {:ok, false} ->
        if works?(run, row),
          do: {:ok, token(row, secret)},
          else: wait(run, fn -> step(run) end)

      {:error, error} ->
        {:error, store_error(run, error)}
    end
  end

  # A crash in the adapter of HTTP leaves no lease behind, for which others would wait.
  defp leased(run, row, secret) do
    request(run, row, secret, 1)
  catch
    kind, reason ->
      _ = Table.release_lease(run.sql, key(run), run.holder)
      :erlang.raise(kind, reason, __STACKTRACE__)
  end

  # A token that still works is used after a failure that may pass.
  defp kept(run, row, secret, error) do
    if error.kind in [:unavailable, :store, :timeout, :refused] and works?(run, row),
      do: {:ok, token(row, secret)},
      else: {:error, error}
  end

  # For a second more, so that the vendor sees it in time.
  defp works?(run, row) do
    row.version != run.refused and row.expires_at > System.os_time(:millisecond) + 1_000
  end

  # Another node renews it, or was killed while it did.
  defp wait(run, next) do
    if System.monotonic_time(:millisecond) < run.deadline do
      Process.sleep(50 + :rand.uniform(100))
      next.()
    else
      {:error, error(run, :timeout)}
    end
  end

  defp request(run, row, secret, number) do
    account = %{run.account | oauth: secret.().oauth}

    case OAuth.refresh(account, fn -> secret.().refresh end, @request) do
      {:ok, grant} ->
        store(run, row, secret, grant)

      {:error, {:unavailable, reason, retry_after}} ->
        pause = retry_after || @pause * Integer.pow(2, number - 1) + :rand.uniform(@pause)

        if number < @tries and pause <= 2_000 and renewed_lease?(run, row) do
          Process.sleep(pause)
          request(run, row, secret, number + 1)
        else
          released(run, error(run, :unavailable, reason))
        end

      {:error, {:invalid_grant, _reason}} ->
        revoked(run, row)

      {:error, {:secret, reason}} ->
        released(run, error(run, :secret, reason))

      {:error, failure} ->
        released(run, error(run, :refused, OAuth.text(failure)))
    end
  end

  # The next request again has the whole lease.
  defp renewed_lease?(run, row) do
    now = System.os_time(:millisecond)

    with {:ok, true} <- Table.release_lease(run.sql, key(run), run.holder),
         {:ok, true} <-
           Table.take_lease(run.sql, key(run), row.version, run.holder, now, run.lease),
         do: true,
         else: (_ -> false)
  end

  defp released(run, error) do
    _ = Table.release_lease(run.sql, key(run), run.holder)
    {:error, error}
  end

  defp store(run, row, secret, grant) do
    rotated? = grant.refresh != nil and grant.refresh.() != secret.().refresh
    refresh = grant.refresh || fn -> secret.().refresh end
    new = %{access: grant.access, refresh: refresh, oauth: secret.().oauth}
    new = seal(run.keys, place(row), new, grant.lasts)
    until = System.monotonic_time(:millisecond) + run.lease - @request
    token = %{access: grant.access, expires_at: new.expires_at, lasts: grant.lasts}
    token = Map.put(token, :version, row.version + 1)

    case write(run, row, new, until) do
      {:ok, true} ->
        {:ok, token}

      # The lease ended before the write, or the person disconnected: the row decides.
      {:ok, false} ->
        wait(run, fn -> step(run) end)

      # The kept refresh token still works, so the new access token needs no write.
      {:error, _error} when not rotated? ->
        {:ok, token}

      {:error, error} ->
        Logger.error(
          "the connection #{row.account} of the profile #{inspect(row.profile)} has a new " <>
            "token that could not be stored; it may have to be made again"
        )

        {:error, store_error(run, error)}
    end
  end

  defp write(run, row, new, until) do
    now = DateTime.utc_now()

    case Table.renew(run.sql, key(run), row.version, run.holder, new, now) do
      {:ok, stored?} ->
        {:ok, stored?}

      {:error, error} ->
        if System.monotonic_time(:millisecond) < until do
          Process.sleep(100)
          write(run, row, new, until)
        else
          {:error, error}
        end
    end
  end

  # The vendor knows the refresh token no more. If another node has renewed it meanwhile, the row
  # has another version, and stays.
  defp revoked(run, row) do
    withdrawn = fn
      %{version: version, status: :connected} = kept when version == row.version ->
        sealed = seal(run.keys, place(row), %{access: fn -> "" end, refresh: nil}, 0)
        {:ok, Map.merge(kept, %{sealed | expires_at: 0}) |> Map.put(:status, :revoked)}

      _other ->
        {:error, :changed}
    end

    case Table.put(run.sql, key(run), DateTime.utc_now(), withdrawn) do
      {:ok, _row} ->
        run.on_revoked.()
        {:error, error(run, :revoked)}

      {:error, :changed} ->
        wait(run, fn -> step(run) end)

      {:error, error} ->
        {:error, store_error(run, error)}
    end
  end

  @doc "The encrypted tokens of a row, with the end of the access token."
  @spec seal([Cipher.key(), ...], Cipher.place(), map(), non_neg_integer()) :: %{
          key_id: String.t(),
          secret: binary(),
          expires_at: integer()
        }
  def seal(keys, place, tokens, lasts) do
    refresh = if tokens.refresh, do: tokens.refresh.()
    text = %{access: tokens.access.(), refresh: refresh, lasts: lasts}
    oauth = Discovery.encode(tokens[:oauth])
    text = JSON.encode(if oauth, do: Map.put(text, :oauth, oauth), else: text)
    {id, secret} = Cipher.encrypt(keys, place, text)
    %{key_id: id, secret: secret, expires_at: System.os_time(:millisecond) + lasts}
  end

  @doc "The place that a row's secret belongs to."
  @spec place(%{
          required(:profile) => String.t(),
          required(:account) => String.t(),
          optional(atom()) => term()
        }) :: Cipher.place()
  def place(row), do: ["connection", row.profile, row.account]

  defp key(run), do: {run.account.profile, to_string(run.account.name)}

  defp or_error({:ok, value}, _run, _kind), do: {:ok, value}
  defp or_error({:error, reason}, run, kind), do: {:error, error(run, kind, reason)}

  defp store_error(run, error), do: error(run, :store, Exception.message(error))

  defp error(run, kind, reason \\ nil),
    do: ConnectionError.new(run.account, kind, reason)
end
