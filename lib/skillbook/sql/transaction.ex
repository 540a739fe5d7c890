defmodule Skillbook.SQL.Transaction do
  @moduledoc false
  # Commits or rolls back a transaction by the result of its function.
  #
  # For connections that store the calling process's transaction in the process dictionary, as
  # `{connection, level}`; level 0 is the outermost.

  @type outcome :: {:ok, term()} | {:error, term()}

  @doc "Runs `fun` in a transaction that has begun, then commits or rolls back."
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
          # If a deferred foreign key fails the commit, the transaction is still open.
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

  @doc "Checks the result of a transaction's function; raises `ArgumentError` for others."
  @spec outcome!(term()) :: outcome()
  def outcome!({:ok, _value} = done), do: done
  def outcome!({:error, _reason} = failed), do: failed

  def outcome!(other) do
    raise ArgumentError,
          "expected the function of a transaction to return {:ok, value} or {:error, reason}, " <>
            "got: " <> inspect(other)
  end
end
