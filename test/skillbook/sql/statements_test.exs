defmodule Skillbook.SQL.StatementsTest do
  use ExUnit.Case, async: true

  alias Skillbook.SQL.Statements

  defp texts(text, dialect) do
    {:ok, statements} = Statements.all(text, dialect)
    for {statement, _refusal} <- statements, do: statement.text
  end

  test "a text is cut where a statement ends, and nowhere else" do
    for {text, dialects, statements} <- [
          {"", [:sqlite, :postgres], []},
          {" ;; -- a; b\n /* ; */ ;", [:sqlite, :postgres], []},
          {"select 1", [:sqlite, :postgres], ["select 1"]},
          {"select 1; select 2;", [:sqlite, :postgres], ["select 1", "select 2"]},
          {"select ';' ; select 'it''s;'", [:sqlite, :postgres], ["select ';'", "select 'it''s;'"]},
          {~s(select ";" ; select 1), [:sqlite, :postgres], [~s(select ";"), "select 1"]},
          {"select `;` ; select [;]", [:sqlite], ["select `;`", "select [;]"]},
          {"select a[1]; select 2", [:postgres], ["select a[1]", "select 2"]},
          {"select 1 -- ;\n+ 1; select /* ; */ 2", [:sqlite, :postgres],
           ["select 1 -- ;\n+ 1", "select /* ; */ 2"]},
          {"select /* /* */ ; */ 1; select 2", [:postgres], ["select /* /* */ ; */ 1", "select 2"]},
          {"select /* /* */ 1; select 2", [:sqlite], ["select /* /* */ 1", "select 2"]},
          {"select E'\\';'; select 1", [:postgres], ["select E'\\';'", "select 1"]},
          {"select '\\'; select 1", [:sqlite, :postgres], ["select '\\'", "select 1"]},
          {"select $$;$$; select $a$ $$;$$ $a$", [:postgres], ["select $$;$$", "select $a$ $$;$$ $a$"]},
          {"select 'open; select 1", [:sqlite, :postgres], ["select 'open; select 1"]},
          {"select /* open; select 1", [:sqlite, :postgres], ["select /* open; select 1"]},
          {"create trigger a after insert on t begin select case when 1 then 2 end; select 2; end; select 1",
           [:sqlite],
           [
             "create trigger a after insert on t begin select case when 1 then 2 end; select 2; end",
             "select 1"
           ]},
          {"create temp trigger a after insert on t begin select 1; end; select 1", [:sqlite],
           ["create temp trigger a after insert on t begin select 1; end", "select 1"]}
        ],
        dialect <- dialects do
      assert {text, dialect, texts(text, dialect)} == {text, dialect, statements}
    end
  end

  test "placeholders are written as the driver takes them, outside strings, names and comments" do
    for {text, count, sqlite} <- [
          {"select $2 || $1 || $2", 2, "select ?2 || ?1 || ?2"},
          {"select '$1', \"$1\", $1 -- $2", 1, "select '$1', \"$1\", ?1 -- $2"},
          {"select /* $2 */ $1::text", 1, "select /* $2 */ ?1::text"},
          {"select a$2, $1", 1, "select a$2, ?1"},
          {"select $1é", 1, "select ?1é"},
          {"values ($1,$2),($3,$10),($4,$5,$6,$7,$8,$9)", 10, "values (?1,?2),(?3,?10),(?4,?5,?6,?7,?8,?9)"}
        ] do
      assert {:ok, %{text: ^sqlite}} = Statements.one(text, :sqlite, count)
      assert {:ok, %{text: ^text}} = Statements.one(text, :postgres, count)
    end
  end

  test "what a query cannot be" do
    for {text, params, kind, message} <- [
          {"", 0, :syntax, "expected a statement, got only blanks or comments"},
          {"select 1; select 2", 0, :syntax, "expected one statement, got several; send them one by one"},
          {"select \0", 0, :syntax, "expected a statement as text, got one with a NUL character in it"},
          {"select 1", 1, :params, "expected no parameters, because the statement has no placeholder, got 1"},
          {"select $1", 2, :params, "expected 1 parameter, for $1, got 2"},
          {"select $1, $2", 0, :params, "expected 2 parameters, for $1 to $2, got 0"},
          {"select $99999999999999999999", 1, :params,
           "expected 99999999999999999999 parameters, for $1 to $99999999999999999999, got 1"},
          {"select $2", 2, :params,
           "expected every placeholder up to the highest in the statement, $1 is not there"},
          {"/* a */ BEGIN", 0, :refused,
           "a transaction is begun and ended by the transaction function, not by a statement"},
          {"rollback to a", 0, :refused,
           "a transaction is begun and ended by the transaction function, not by a statement"},
          {"attach 'a' as b", 0, :refused,
           "`attach`, `detach` and `vacuum` would change one connection of several"},
          {"set role a", 0, :refused, "`set` would change one connection of several"},
          {"create temp table a (b)", 0, :refused,
           "temporary tables, views and triggers would exist in one connection of several"},
          {"pragma foreign_keys = off", 0, :refused,
           "`pragma foreign_keys` with a value would change one connection of several"}
        ] do
      assert {:error, error} = Statements.one(text, :sqlite, params)
      assert {error.kind, error.message} == {kind, "#{message}\n  in: #{String.trim(text)}"}
    end

    for text <- ["pragma foreign_keys", "pragma table_info(a)", "pragma main.table_info('a')", "end_of(1)"] do
      assert {:ok, _} = Statements.one(text, :sqlite, 0)
    end
  end

  test "what a text is cut into is cut no further" do
    pieces =
      ["'", "\"", "`", "[", "]", "$", "$$", "$1", "$a$", "/*", "*/", "--", "\n"] ++
        [";", "e'", "\\", "end", "é", " "]

    for seed <- 1..500, dialect <- [:sqlite, :postgres] do
      :rand.seed(:exsss, {seed, 1, 2})
      text = Enum.map_join(1..20, fn _ -> Enum.random(pieces) end)

      for statement <- texts(text, dialect),
          do: assert({text, texts(statement, dialect)} == {text, [statement]})
    end
  end
end
