defmodule Skillbook.Run.DatabaseTest do
  # Failures of the database: the model reads plain sentences, the log has the details.
  use Skillbook.SkillsCase, async: true

  import ExUnit.CaptureLog
  import Skillbook.Eventually

  alias Skillbook.{HandlerError, SQL}

  @moduletag :tmp_dir

  @plain "failed: its database does not work. It may have done part of its work: check before " <>
           "you try again, or tell the user."

  # Every built-in command that uses the database, with a line that passes its checks.
  @commands [
    "tasks.create --title Milk",
    "tasks.get T-1",
    "tasks.search --query milk",
    "tasks.update T-1 --title Tea",
    "tasks.delete T-1",
    "memory.save --content Milk",
    "memory.search --query milk",
    "skills.create --title Milk --name milk --description Milk --content Milk",
    "skills.update --name milk --description Tea",
    "skills.delete --name milk",
    "skills.history --name milk",
    "skills.list",
    "skills.read --name milk",
    "notes.add --title Milk --content Milk",
    "notes.list",
    "workflow.run --name workflows.daily_digest"
  ]

  defp start(folder, options \\ []) do
    name = :"database_#{System.unique_integer([:positive])}"
    store = Path.join(folder, "a.db")
    start_supervised!({Skillbook, [name: name, store: store, builtins: true] ++ options})
    name
  end

  defp run(book, line),
    do: hd(Skillbook.run(Skillbook.view(book), "```cmd\n#{line}\n```").results)

  defp drop_tables(sql) do
    tables =
      SQL.query!(
        sql,
        "select name from sqlite_master where type = 'table' and name like 'skillbook_%'"
      )

    for [table] <- tables.rows, do: SQL.query!(sql, "drop table if exists #{table}")
  end

  test "no statement and no table reaches the model, whichever command runs", context do
    folder = context.tmp_dir
    book = start(folder)

    log =
      capture_log(fn ->
        drop_tables(Skillbook.Book.sql(Skillbook.Book.fetch!(book)))

        failed =
          for line <- @commands, result = run(book, line), result.status == :error do
            refute result.content =~ ~r/skillbook_|select|insert|update |delete |table/i
            refute Skillbook.Support.JSON.encode(result.error) =~ ~r/skillbook_|select|insert/i
            {result.name, result.content}
          end

        for name <-
              ~w(tasks.create tasks.get tasks.search memory.save memory.search skills.create),
            do: assert({name, "`#{name}` #{@plain}"} in failed)
      end)

    assert log =~
             ~r/skill tasks.get failed in the database: no such table: skillbook_\w+\n  in: sel/
  end

  test "a full disk, a busy database and others are sentences for the model", context do
    folder = context.tmp_dir
    book = start(folder)
    sql = Skillbook.Book.sql(Skillbook.Book.fetch!(book))

    SQL.query!(sql, """
    create trigger full before insert on skillbook_tasks
    begin select raise(abort, 'database or disk is full'); end
    """)

    log =
      capture_log(fn ->
        result = run(book, "tasks.create --title Milk")
        assert result.content == "`tasks.create` #{@plain}"
        assert %HandlerError{kind: :database, reason: %SQL.Error{}} = result.error
      end)

    assert log =~ "skill tasks.create failed in the database: database or disk is full\n  in: ins"

    for {kind, text} <- [
          {:busy, "`tasks.get` failed: the database was busy. Try again, or tell the user."},
          {:other, "`tasks.get` #{@plain}"},
          {:lost, "`tasks.get` #{@plain}"},
          {:moved, "`tasks.get` #{@plain}"}
        ] do
      reason = %SQL.Error{kind: kind, message: "no", sql: "select 1"}
      error = %HandlerError{kind: :database, name: "tasks.get", reason: reason}
      assert Exception.message(error) == text
    end

    error = %HandlerError{kind: :unrecorded, name: "mail.send"}

    assert Exception.message(error) ==
             "`mail.send` was not run: it could not be noted in the database before. Try " <>
               "again, or tell the user."
  end

  test "a deleted database file fails writes at once and is logged", context do
    folder = context.tmp_dir
    path = Path.join(folder, "a.db")
    book = start(folder)
    assert run(book, "tasks.create --title Milk").status == :ok
    sql = Skillbook.Book.sql(Skillbook.Book.fetch!(book))

    text =
      "the database's file #{path} was deleted or replaced while it was open, so nothing is " <>
        "written; put the file back, or restart to open the one that is there"

    for {change, back} <- [
          {fn -> File.rename!(path, path <> ".old") end,
           fn -> File.rename!(path <> ".old", path) end},
          {fn ->
             File.rename!(path, path <> ".old")
             File.write!(path, "")
           end, fn -> File.rename!(path <> ".old", path) end}
        ] do
      change.()

      log =
        capture_log(fn ->
          assert eventually(fn -> :sys.get_state(sql.server).moved end)
          assert run(book, "tasks.create --title Tea").content == "`tasks.create` #{@plain}"

          assert {:error, %SQL.Error{kind: :moved, message: ^text, sql: nil}} =
                   SQL.transaction(sql, fn _ -> flunk("must not begin") end)

          # Reads go on.
          assert run(book, "tasks.search").content =~ "Milk"
        end)

      assert log =~ "[error] " <> text
      # Logged once, and once for the failed command.
      assert length(String.split(log, text)) == 3

      back.()
      assert run(book, "tasks.search").content =~ "Milk"
      assert run(book, "tasks.create --title Tea").status == :ok

      log =
        capture_log(fn -> assert eventually(fn -> not :sys.get_state(sql.server).moved end) end)

      assert log =~ "the database's file is back; writes"
    end
  end
end
