defmodule Skillbook.SQL.Migrations.Ecto do
  @moduledoc """
  Skillbook's tables as part of a migration of the application, for a store of `Skillbook.SQL.Ecto`.

      defmodule MyApp.Repo.Migrations.AddSkillbook do
        use Ecto.Migration

        def up, do: Skillbook.SQL.Migrations.Ecto.up()
        def down, do: Skillbook.SQL.Migrations.Ecto.down()
      end

  A version of Skillbook that brings more tables needs one more migration of the application. To have them differ from
  each other, each says its version: `up(version: 2)` runs the migrations up to 2 that the database does not have, and
  `down(version: 2)` takes back those from 2 on.

  Both run at once, on the repo of the migration that calls them; what that migration itself says Ecto runs at its end, or
  at its `flush()`. In a migration with `@disable_ddl_transaction` they run in a transaction of
  their own.
  """

  alias Skillbook.SQL
  alias Skillbook.SQL.Migrations

  @doc """
  Makes the tables, up to the newest version.

  ## Options

    * `:version` - the last version to run, a number from 1
  """
  @spec up(version: pos_integer()) :: :ok
  def up(options \\ []), do: done(Migrations.run(sql(), Migrations.list(version!(options))))

  @doc """
  Takes the tables away, with all they hold.

  ## Options

    * `:version` - the first version to take back, a number from 1. Default: 1
  """
  @spec down(version: pos_integer()) :: :ok
  def down(options \\ []), do: done(Migrations.undo(sql(), version!(options) || 1))

  defp done({:ok, _versions}), do: :ok
  defp done({:error, error}), do: raise(error)

  # Ecto is the application's: it is not there when this is compiled.
  defp sql, do: SQL.Ecto.over(apply(Ecto.Migration, :repo, []))

  defp version!([]), do: nil
  defp version!(version: version) when is_integer(version) and version > 0, do: version

  defp version!(options),
    do:
      raise(
        ArgumentError,
        "expected version: a number from 1, or no option, got: #{inspect(options)}"
      )
end
