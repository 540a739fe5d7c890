defmodule Skillbook.Store.PostgresTest do
  use Skillbook.StoreConformance, start: &__MODULE__.start_store/1

  def start_store(_context), do: {Skillbook.SQL.Postgres, url: Skillbook.PostgresCase.database()}
end
