defmodule Skillbook.SQL.Native do
  @moduledoc false
  # The native library of SQLite (native/skillbook_sql), and of the check of statements for all
  # databases.

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
      sql_commit(database, epoch, level, statements),
      sql_rollback(database, epoch, level),
      sql_abandon(database),
      sql_check(database),
      postgres_may_read(sql),
      postgres_writers()
    ]
end
