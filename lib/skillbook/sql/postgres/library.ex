defmodule Skillbook.SQL.Postgres.Library do
  @moduledoc false
  # The native library of PostgreSQL (native/skillbook_postgres).

  use Skillbook.Support.NativeLibrary,
    app: :skillbook,
    crate: "skillbook_postgres",
    functions: [
      postgres_server(address, limits),
      postgres_connect(server, reference),
      postgres_query(session, reference, place, sql, params),
      postgres_query_all(session, reference, statements),
      postgres_batch(session, reference, place, sql),
      postgres_begin(session, reference, level, parts, waits, statements),
      postgres_commit(session, reference, level, statements),
      postgres_rollback(session, reference, level),
      postgres_listen(session, reference, channel, listens),
      postgres_usable(session),
      postgres_close(session)
    ]
end
