defmodule Skillbook.SQL.Native do
  @moduledoc false
  # The native library of databases (native/skillbook_sql): SQLite, PostgreSQL, and the check of
  # statements for drivers in Elixir.

  use Skillbook.Support.NativeLibrary,
    app: :skillbook,
    crate: "skillbook_sql",
    twins: [
      sql_statements(sql, dialect, params)
    ],
    functions: [
      sql_open(path, patience_ms),
      sql_close(database),
      sql_read(database, sql, params),
      sql_query(database, epoch, inside, sql, params),
      sql_query_all(database, epoch, statements),
      sql_batch(database, epoch, inside, sql),
      sql_begin(database, epoch, level, statements),
      sql_commit(database, epoch, level),
      sql_rollback(database, epoch, level),
      sql_abandon(database),
      sql_check(database),
      postgres_server(address, limits),
      postgres_connect(server, reference),
      postgres_may_read(sql),
      postgres_writers(),
      postgres_query(session, reference, place, sql, params),
      postgres_query_all(session, reference, statements),
      postgres_batch(session, reference, place, sql),
      postgres_begin(session, reference, level, statements),
      postgres_commit(session, reference, level),
      postgres_rollback(session, reference, level),
      postgres_listen(session, reference, channel, listens),
      postgres_usable(session),
      postgres_close(session)
    ]
end
