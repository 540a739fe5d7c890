defmodule Skillbook.SQL.Migrations.V17 do
  @moduledoc false
  # Adds the decisions of operators about the tools and skills of MCP servers: a row for each.
  #
  # `place` is the digest of the server's URL or command, which may have secrets in it. `item` is
  # `tool:NAME` or `skill:URI`, and `digest` that of all that was approved or refused. Each change
  # raises the setting `server_approvals`, by which nodes see it.

  import Skillbook.SQL.Migrations.Types, only: [text: 1]

  # Without `@behaviour`, like V1.
  def up(dialect) do
    text = text(dialect)

    [
      """
      create table skillbook_server_approvals (
        server #{text} not null,
        place #{text} not null,
        item #{text} not null,
        digest #{text} not null,
        decision #{text} not null,
        decided_by #{text} not null,
        decided_at #{text} not null,
        primary key (server, place, item)
      )
      """,
      "insert into skillbook_settings (key, value) values ('server_approvals', '0')"
    ]
  end

  def down(_dialect) do
    [
      "delete from skillbook_settings where key = 'server_approvals'",
      "drop table skillbook_server_approvals"
    ]
  end
end
