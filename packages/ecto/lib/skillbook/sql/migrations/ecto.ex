defmodule Skillbook.SQL.Migrations.Ecto do
  @moduledoc """
  Creates Skillbook's tables in an Ecto migration of the application, for `Skillbook.SQL.Ecto`.

      defmodule MyApp.Repo.Migrations.AddSkillbook do
        use Ecto.Migration

        def up, do: Skillbook.SQL.Migrations.Ecto.up()
        def down, do: Skillbook.SQL.Migrations.Ecto.down()
      end

  ## Updates

  If a new version of Skillbook has more migrations, the application needs another migration. Then
  each states its version: `up(version: 2)` runs the pending migrations up to 2, and
  `down(version: 2)` undoes those from 2 on.

  ## Order

  `up/1` and `down/1` run immediately, on the repo of the calling migration. Ecto runs the other
  commands of that migration at its end or at `flush()`. In a migration with
  `@disable_ddl_transaction` they run in their own transaction.
  """

  alias Skillbook.SQL
  alias Skillbook.SQL.Migrations

  @doc """
  Runs the pending migrations of Skillbook.

  ## Options

    * `:version` - the last version to run, a number from 1. Default: the newest
  """
  @spec up(version: pos_integer()) :: :ok
  def up(options \\ []), do: done(Migrations.run(sql(), Migrations.list(version!(options))))

  @doc """
  Undoes migrations of Skillbook. The data in their tables is lost.

  ## Options

    * `:version` - the first version to undo, a number from 1. Default: 1, which drops all tables
  """
  @spec down(version: pos_integer()) :: :ok
  def down(options \\ []), do: done(Migrations.undo(sql(), version!(options) || 1))

  defp done({:ok, _versions}), do: :ok
  defp done({:error, error}), do: raise(error)

  # Called dynamically, because Ecto is not a dependency.
  defp sql, do: SQL.Ecto.over(apply(Ecto.Migration, :repo, []))

  defp version!([]), do: nil
  defp version!(version: version) when is_integer(version) and version > 0, do: version

  defp version!(options) do
    raise ArgumentError,
          "expected version: a number from 1, or no option, got: #{inspect(options)}"
  end
end
