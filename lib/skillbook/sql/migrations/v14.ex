defmodule Skillbook.SQL.Migrations.V14 do
  @moduledoc false
  # Adds the connections of profiles to accounts at vendors, and the sign-ins that have begun.
  #
  # `secret` and `verifier` are encrypted by the application's key, whose id is `key_id`. Each new
  # token raises `version`. Each change of a status or of scopes raises the setting `connections`
  # and stamps it on its row as `revision`, so that nodes read only changed rows. `holder` is the
  # node that renews the token. Times in bigint are milliseconds.

  import Skillbook.SQL.Migrations.Types, only: [blob: 1, text: 1]

  # Without `@behaviour`, like V1.
  def up(dialect) do
    {text, blob} = {text(dialect), blob(dialect)}

    [
      """
      create table skillbook_connections (
        profile #{text} not null,
        account #{text} not null,
        status #{text} not null,
        identity #{text},
        scopes #{text} not null,
        key_id #{text} not null,
        secret #{blob} not null,
        expires_at bigint not null,
        version bigint not null,
        revision bigint not null,
        holder #{text},
        lease_until bigint,
        connected_at #{text} not null,
        renewed_at #{text} not null,
        primary key (profile, account)
      )
      """,
      "create index skillbook_connections_revision_index on skillbook_connections (revision)",
      """
      create table skillbook_sign_ins (
        state #{text} primary key,
        profile #{text} not null,
        account #{text} not null,
        scopes #{text} not null,
        redirect #{text} not null,
        key_id #{text} not null,
        verifier #{blob} not null,
        expires_at bigint not null
      )
      """,
      "create index skillbook_sign_ins_profile_index on skillbook_sign_ins (profile, expires_at)",
      "insert into skillbook_settings (key, value) values ('connections', '0')"
    ]
  end

  def down(_dialect) do
    [
      "delete from skillbook_settings where key = 'connections'",
      "drop table skillbook_sign_ins",
      "drop table skillbook_connections"
    ]
  end
end
