defmodule Skillbook.SQL.Migrations.V24 do
  @moduledoc false
  # A number that each change of the counts of usage raises, so that a reader of sums sees whether
  # there is something new without making them.

  @behaviour Skillbook.SQL.Migrations

  @impl true
  def up(_dialect), do: ["insert into skillbook_settings (key, value) values ('usage', '0')"]

  @impl true
  def down(_dialect), do: ["delete from skillbook_settings where key = 'usage'"]
end
