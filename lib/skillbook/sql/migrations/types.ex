defmodule Skillbook.SQL.Migrations.Types do
  @moduledoc false
  # Types of columns that the databases call differently, for the statements of migrations. They
  # are part of released migrations, and so never change.

  alias Skillbook.SQL

  @doc "A number that no other row has had. Models and people know ids, so none is used again."
  @spec id(SQL.dialect()) :: String.t()
  def id(:sqlite), do: "integer primary key autoincrement"
  def id(:postgres), do: "bigint generated always as identity primary key"

  @doc "Text, compared and sorted by bytes, independent of the server's locale."
  @spec text(SQL.dialect()) :: String.t()
  def text(:sqlite), do: "text"
  def text(:postgres), do: ~s(text collate "C")

  @spec blob(SQL.dialect()) :: String.t()
  def blob(:sqlite), do: "blob"
  def blob(:postgres), do: "bytea"
end
