defmodule Skillbook.SQL.Transaction do
  @moduledoc false
  # The protocol of a transaction: what its function may return, and what becomes of what it did. For connections that keep in
  # the process dictionary which transaction a process is in, as `{connection, level}`; level 0 is the outermost.

  @type outcome :: {:ok, term()} | {:error, term()}

  @doc "Runs `fun` with the handle in a transaction that was begun."
  @spec run(
          key :: term(),
          {connection :: term(), level :: non_neg_integer()},
          (() -> outcome()),
          commit :: (() -> :ok | {:error, term()}),
          rollback :: (() -> term())
        ) :: outcome()
  def run(key, {connection, level} = inside, fun, commit, rollback) do
    Process.put(key, inside)

    try do
      outcome!(fun.())
    catch
      kind, reason ->
        rollback.()
        :erlang.raise(kind, reason, __STACKTRACE__)
    else
      {:ok, _value} = done ->
        with {:error, _reason} = failed <- commit.() do
          # A commit that a deferred foreign key refuses leaves the transaction open.
          rollback.()
          failed
        else
          :ok -> done
        end

      {:error, _reason} = failed ->
        rollback.()
        failed
    after
      if level == 0, do: Process.delete(key), else: Process.put(key, {connection, level - 1})
    end
  end

  @doc "What the function of a transaction returned; raises `ArgumentError` for anything else than it may."
  @spec outcome!(term()) :: outcome()
  def outcome!({:ok, _value} = done), do: done
  def outcome!({:error, _reason} = failed), do: failed

  def outcome!(other) do
    raise ArgumentError,
          "expected the function of a transaction to return {:ok, value} or {:error, reason}, got: " <>
            inspect(other)
  end
end
