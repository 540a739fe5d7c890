defmodule Skillbook.SQL.Migrations.V15 do
  @moduledoc false
  # Adds the tokens of the web, and the sessions of browsers with the links that begin them.
  #
  # `hash` is the SHA-256 of the secret, in hexadecimal: the secret itself is stored nowhere.
  # Scopes are words with spaces between them. Times are in seconds since 1970. A session that
  # began with a token has its id, and ends with it.

  import Skillbook.SQL.Migrations.Types, only: [text: 1]

  # Without `@behaviour`, like V1.
  def up(dialect) do
    text = text(dialect)

    [
      """
      create table skillbook_tokens (
        id #{text} primary key,
        hash #{text} not null,
        profile #{text} not null,
        operator bigint not null,
        scopes #{text} not null,
        label #{text},
        created_at bigint not null,
        expires_at bigint,
        used_at bigint
      )
      """,
      "create unique index skillbook_tokens_hash_index on skillbook_tokens (hash)",
      """
      create table skillbook_sessions (
        hash #{text} primary key,
        kind #{text} not null,
        profile #{text} not null,
        operator bigint not null,
        token #{text},
        created_at bigint not null,
        used_at bigint not null,
        expires_at bigint not null
      )
      """,
      "create index skillbook_sessions_profile_index on skillbook_sessions (profile, used_at)"
    ]
  end

  def down(_dialect), do: ["drop table skillbook_sessions", "drop table skillbook_tokens"]
end
