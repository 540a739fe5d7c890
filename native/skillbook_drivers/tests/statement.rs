//! Where statements end, and how each is classified: a row for each side of a rule.

use proptest::prelude::*;
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::{Batch, Connection};
use skillbook_drivers::statement::{all, may_read, one, Dialect, Kind};
use Dialect::{Postgres, Sqlite};

const BOTH: &[Dialect] = &[Sqlite, Postgres];
const TRANSACTION: &str =
    "transactions are begun and ended by the transaction function, not by statements";
const ATTACH: &str = "`attach`, `detach` and `vacuum` would affect only one of several connections";
const TEMPORARY: &str =
    "temporary tables, views and triggers would exist in only one of several connections";

fn texts(sql: &str, dialect: Dialect) -> Vec<String> {
    all(sql, dialect).unwrap().into_iter().map(|statement| statement.text().to_owned()).collect()
}

#[track_caller]
fn error(sql: &str, dialect: Dialect, given: usize) -> String {
    let text = one(sql, dialect, given).map_or_else(|error| error.to_string(), |_| String::new());
    text.strip_suffix(&format!("\n  in: {}", sql.trim())).unwrap_or(&text).to_owned()
}

#[test]
fn a_text_is_cut_where_a_statement_ends() {
    let rows: &[(&str, &[Dialect], &[&str])] = &[
        ("", BOTH, &[]),
        (" ; -- a; b\n /* ; */ ;;", BOTH, &[]),
        ("select 1", BOTH, &["select 1"]),
        (" select 1 ; select 2 -- end; \n", BOTH, &["select 1", "select 2"]),
        ("select ';' ; select 'it''s;'", BOTH, &["select ';'", "select 'it''s;'"]),
        ("select \";\"\"\" ; select 1", BOTH, &["select \";\"\"\"", "select 1"]),
        ("select '\\'; select 1", BOTH, &["select '\\'", "select 1"]),
        ("select 1 -- ;\n+ 1; select /* ; */ 2", BOTH, &["select 1 -- ;\n+ 1", "select /* ; */ 2"]),
        ("select 'open; x", BOTH, &["select 'open; x"]),
        ("select \"open; x", BOTH, &["select \"open; x"]),
        ("select 1 /* open; x", BOTH, &["select 1"]),
        ("select e ';' ; x", BOTH, &["select e ';'", "x"]),
        ("select (1; x", BOTH, &["select (1", "x"]),
        // SQLite.
        ("select `;`; select [;]; select [a'b]; x", &[Sqlite], &["select `;`", "select [;]",
            "select [a'b]", "x"]),
        ("select [open; x", &[Sqlite], &["select [open; x"]),
        ("select /* /* */ 1; x", &[Sqlite], &["select /* /* */ 1", "x"]),
        ("select E'\\'; x", &[Sqlite], &["select E'\\'", "x"]),
        ("select 1 -- a\r; x", &[Sqlite], &["select 1"]),
        ("select x'00';select 1", &[Sqlite], &["select x'00'", "select 1"]),
        (
            "create trigger a after insert on t begin select case when 1 then 2 end; select 2; \
             end; select 1",
            &[Sqlite],
            &["create trigger a after insert on t begin select case when 1 then 2 end; select 2; \
               end", "select 1"],
        ),
        ("create table trigger (x); y; x", &[Sqlite], &["create table trigger (x)", "y", "x"]),
        // PostgreSQL.
        ("select a[1]; select `; x", &[Postgres], &["select a[1]", "select `", "x"]),
        ("select /* /* */ ; */ 1; x", &[Postgres], &["select /* /* */ ; */ 1", "x"]),
        ("select E'\\';'; select e'\\\\'; x", &[Postgres], &["select E'\\';'", "select e'\\\\'",
            "x"]),
        ("select E'a''\\';'; x", &[Postgres], &["select E'a''\\';'", "x"]),
        ("select E'a'\n'\\'; x'; y", &[Postgres], &["select E'a'\n'\\'; x'", "y"]),
        ("select E'a' -- b'\n -- c\n '\\'; x'; y", &[Postgres], &[
            "select E'a' -- b'\n -- c\n '\\'; x'", "y"]),
        ("select E'a' '\\'; x", &[Postgres], &["select E'a' '\\'", "x"]),
        ("select fooe'\\'; x", &[Postgres], &["select fooe'\\'", "x"]),
        ("select 1e'\\';'; x", &[Postgres], &["select 1e'\\';'", "x"]),
        ("select $$;$$; select $a$ $$;$$ $a$; x", &[Postgres], &["select $$;$$",
            "select $a$ $$;$$ $a$", "x"]),
        ("select $a$ $b$a$; x", &[Postgres], &["select $a$ $b$a$", "x"]),
        ("select a$1 from é$b$c; x", &[Postgres], &["select a$1 from é$b$c", "x"]),
        ("select 1$$;$$; x", &[Postgres], &["select 1$$;$$", "x"]),
        ("select $a; x; $; y", &[Postgres], &["select $a", "x", "$", "y"]),
        ("select $a$ open; x", &[Postgres], &["select $a$ open; x"]),
        ("select 1 -- a\r; x", &[Postgres], &["select 1", "x"]),
        (
            "create or replace rule r as on insert to t do also (select 1; select 2); x",
            &[Postgres],
            &["create or replace rule r as on insert to t do also (select 1; select 2)", "x"],
        ),
        (
            "create function f() returns int begin atomic select case when a.end then 1 end; \
             return 2; end; x",
            &[Postgres],
            &["create function f() returns int begin atomic select case when a.end then 1 end; \
               return 2; end", "x"],
        ),
        (
            "create view v as select * from begin atomic; x",
            &[Postgres],
            &["create view v as select * from begin atomic", "x"],
        ),
    ];
    for (sql, dialects, expected) in rows {
        for dialect in *dialects {
            assert_eq!(texts(sql, *dialect), *expected, "{sql} {dialect:?}");
        }
    }
}

#[test]
fn a_query_is_one_statement() {
    for dialect in BOTH {
        for (sql, text) in [
            ("", "expected a statement, got only whitespace or comments"),
            (" -- x", "expected a statement, got only whitespace or comments"),
            ("a; b", "expected one statement, got several; send them one by one"),
            ("a\0", "expected a statement without NUL characters"),
            ("a; -- b", ""),
        ] {
            assert_eq!(error(sql, *dialect, 0), text, "{sql}");
        }
        let error = all("a\0", *dialect).unwrap_err();
        assert_eq!(error.to_string(), "expected a statement without NUL characters\n  in: a\0");
    }
}

#[test]
fn placeholders_and_parameters_fit() {
    let named = |name: &str| format!("expected placeholders $1, $2 and so on, got `{name}`");
    let missing =
        |number| format!("expected every placeholder up to the highest, ${number} is missing");
    for (sql, dialects, given, text) in [
        ("select $1, $2", BOTH, 2, String::new()),
        ("select '$1', \"$2\", a$4 -- $5", BOTH, 0, String::new()),
        ("select $2, $1, $2", BOTH, 2, String::new()),
        ("select $$ $3 $$, $1e'$2'", &[Postgres], 1, String::new()),
        ("select $1::text, $1é", &[Postgres], 1, String::new()),
        ("select [$1], `$2`", &[Sqlite], 0, String::new()),
        ("select $1", BOTH, 0, "expected 1 parameter, for $1, got 0".into()),
        ("select $1", BOTH, 2, "expected 1 parameter, for $1, got 2".into()),
        ("select $1, $2", BOTH, 1, "expected 2 parameters, for $1 to $2, got 1".into()),
        (
            "select 1",
            BOTH,
            1,
            "expected no parameters, because the statement has no placeholder, got 1".into(),
        ),
        ("select $2", BOTH, 2, missing(1)),
        ("select $1, $3", BOTH, 3, missing(2)),
        ("select $0", BOTH, 0, named("$0")),
        ("select $01", BOTH, 1, named("$01")),
        ("select $99999999999999999999", BOTH, 1, named("$99999999999999999999")),
        ("select $1::int", &[Sqlite], 1, named("$1::int")),
        ("select $1é", &[Sqlite], 1, named("$1é")),
        ("select $a(;')", &[Sqlite], 1, named("$a(;')")),
        (
            "select $::(;')",
            &[Sqlite],
            1,
            "expected one statement, got several; send them one by one".into(),
        ),
        ("select ?", &[Sqlite], 1, named("?")),
        ("select ?1", &[Sqlite], 1, named("?1")),
        ("select :a", &[Sqlite], 1, named(":a")),
        ("select @a", &[Sqlite], 1, named("@a")),
        ("select a ? b, @ -1, x :: int, b @> c, #- d", &[Postgres], 0, String::new()),
    ] {
        for dialect in dialects {
            assert_eq!(error(sql, *dialect, given), text, "{sql} {dialect:?}");
        }
    }
    let batch = all("select 1; select $1", Postgres).unwrap_err();
    assert_eq!(batch.to_string(), "expected 1 parameter, for $1, got 0\n  in: select $1");
}

#[test]
fn other_drivers_of_sqlite_get_question_marks() {
    for (sql, given, expected) in [
        ("select 1", 0, "select 1"),
        (" select $2 || $1 || $2;", 2, "select ?2 || ?1 || ?2"),
        ("select '$1', \"$1\", $1 -- $2", 1, "select '$1', \"$1\", ?1"),
        ("select /* $2 */ $1, a$2", 1, "select /* $2 */ ?1, a$2"),
        (
            "values ($1,$2),($3,$10),($4,$5,$6,$7,$8,$9)",
            10,
            "values (?1,?2),(?3,?10),(?4,?5,?6,?7,?8,?9)",
        ),
    ] {
        assert_eq!(one(sql, Sqlite, given).unwrap().with_question_marks(), expected, "{sql}");
    }
}

#[test]
fn session_changes_are_refused() {
    let session = |word: &str| format!("`{word}` would affect only one of several connections");
    let pragma = |name: &str| {
        format!("`pragma {name}` with a value would affect only one of several connections")
    };
    let mut rows = Vec::new();
    for word in [
        "BEGIN",
        "begin immediate",
        "commit",
        "end",
        "rollback",
        "rollback to a",
        "savepoint a",
        "release a",
    ] {
        rows.push((word.to_owned(), BOTH, TRANSACTION.to_owned()));
        rows.push((format!("/* a */ {word};"), BOTH, TRANSACTION.to_owned()));
    }
    for sql in ["abort", "start transaction", "prepare transaction 'a'", "commit prepared 'a'"] {
        rows.push((sql.to_owned(), &[Postgres], TRANSACTION.to_owned()));
    }
    for word in
        "set reset discard listen unlisten load prepare execute deallocate declare fetch move \
         close copy"
            .split(' ')
    {
        rows.push((format!("{word} a"), &[Postgres], session(word)));
        rows.push((format!("{word} a"), &[Sqlite], String::new()));
    }
    for (sql, dialects, text) in [
        ("copy t to program 'cat'", &[Postgres][..], session("copy")),
        ("COPY (select 1) to stdout", &[Postgres], session("copy")),
        ("set local role a", &[Postgres], session("set")),
        ("explain analyze execute a", &[Postgres], session("execute")),
        (
            "explain (analyze, format text) declare a cursor for select 1",
            &[Postgres],
            session("declare"),
        ),
        ("create temp table a (x int)", BOTH, TEMPORARY.to_owned()),
        ("create temporary view a as select 1", BOTH, TEMPORARY.to_owned()),
        ("create local temporary table a ()", &[Postgres], TEMPORARY.to_owned()),
        ("create or replace temp view a as select 1", &[Postgres], TEMPORARY.to_owned()),
        ("create table pg_temp.a (x int)", &[Postgres], TEMPORARY.to_owned()),
        (
            "create function \"pg_temp\".f() returns int language sql as ''",
            &[Postgres],
            TEMPORARY.to_owned(),
        ),
        ("explain analyze create temp table a as select 1", &[Postgres], TEMPORARY.to_owned()),
        ("select 1 into temp a", &[Postgres], TEMPORARY.to_owned()),
        (
            "with b as (select 1) select * into temporary table a from b",
            &[Postgres],
            TEMPORARY.to_owned(),
        ),
        ("select 1 into pg_temp.a", &[Postgres], TEMPORARY.to_owned()),
        ("create table temp.a (x)", &[Sqlite], TEMPORARY.to_owned()),
        ("create table if not exists 'Temp' . a (x)", &[Sqlite], TEMPORARY.to_owned()),
        ("create virtual table [temp].a using fts5 (x)", &[Sqlite], TEMPORARY.to_owned()),
        (
            "create temp trigger a after insert on t begin select 1; end",
            &[Sqlite],
            TEMPORARY.to_owned(),
        ),
        ("attach 'a' as b", &[Sqlite], ATTACH.to_owned()),
        ("detach b", &[Sqlite], ATTACH.to_owned()),
        ("vacuum", &[Sqlite], ATTACH.to_owned()),
        ("explain vacuum", &[Sqlite], ATTACH.to_owned()),
        ("pragma foreign_keys = off", &[Sqlite], pragma("foreign_keys")),
        ("pragma main.Synchronous(off)", &[Sqlite], pragma("Synchronous")),
        ("explain query plan pragma foreign_keys = off", &[Sqlite], pragma("foreign_keys")),
        // Not refused.
        ("select 'begin'", BOTH, String::new()),
        ("end_of(1)", BOTH, String::new()),
        ("update t set x = 1", BOTH, String::new()),
        ("create table temp (a int)", BOTH, String::new()),
        ("create table a as select temp.x from temp", BOTH, String::new()),
        ("insert into temp values (1)", BOTH, String::new()),
        (
            "merge into temp using a on true when matched then do nothing",
            &[Postgres],
            String::new(),
        ),
        ("select 1 into a", &[Postgres], String::new()),
        ("notify a", &[Postgres], String::new()),
        ("vacuum", &[Postgres], String::new()),
        ("pragma foreign_keys", &[Sqlite], String::new()),
        ("pragma table_info(a)", &[Sqlite], String::new()),
        ("pragma main.table_info = 'a'", &[Sqlite], String::new()),
        ("set a", &[Sqlite], String::new()),
    ] {
        rows.push((sql.to_owned(), dialects, text));
    }
    for (sql, dialects, text) in &rows {
        for dialect in *dialects {
            assert_eq!(error(sql, *dialect, 0), *text, "{sql} {dialect:?}");
            // Then none of the batch's statements has run.
            let batch = all(&format!("select 1; {sql}"), *dialect)
                .map_or_else(|error| error.to_string(), |_| String::new());
            let statement = sql.trim_end_matches(';').trim_start_matches("/* a */ ");
            let expected =
                if text.is_empty() { String::new() } else { format!("{text}\n  in: {statement}") };
            assert_eq!(batch, expected, "{sql} {dialect:?}");
        }
    }
}

#[test]
fn kinds_of_statements() {
    use Kind::{Other, Read, Rows};
    let rows: &[(&str, &[Dialect], Kind)] = &[
        ("select 1", BOTH, Read),
        ("values (1)", BOTH, Read),
        ("-- a\n SELECT 1", BOTH, Read),
        ("explain select 1", BOTH, Read),
        ("explain insert into t values (1)", BOTH, Read),
        ("select replace(x, 'a', 'b'), 'insert' from \"update\"", BOTH, Read),
        ("with a as (select 1) select * from a", BOTH, Read),
        ("with a as (select 1) insert into t select * from a", BOTH, Rows),
        ("with a as (select 1) update t set x = 1", BOTH, Rows),
        ("with a as (select 1) delete from t", BOTH, Rows),
        ("insert into t values (1)", BOTH, Rows),
        ("update t set x = 1", BOTH, Rows),
        ("delete from t", BOTH, Rows),
        ("create table t (x)", BOTH, Other),
        ("drop table t", BOTH, Other),
        ("analyze", BOTH, Other),
        ("'a'", BOTH, Other),
        ("explain", BOTH, Other),
        // SQLite.
        ("pragma table_info(a)", &[Sqlite], Read),
        ("with a as (select replace(x, 'a', 'b') from t) select * from a", &[Sqlite], Read),
        ("with a as (select 1) replace into t select * from a", &[Sqlite], Rows),
        ("replace into t values (1)", &[Sqlite], Rows),
        ("explain query plan delete from t", &[Sqlite], Read),
        ("explain analyze", &[Sqlite], Read),
        ("show x", &[Sqlite], Other),
        // PostgreSQL.
        ("((select 1) union (select 2))", &[Postgres], Read),
        ("table t", &[Postgres], Read),
        ("show x", &[Postgres], Read),
        ("select t.update from t", &[Postgres], Read),
        ("explain (analyze) select 1", &[Postgres], Read),
        ("explain analyze verbose select 1", &[Postgres], Read),
        ("explain (verbose, format json) delete from t", &[Postgres], Read),
        ("explain (select 1)", &[Postgres], Read),
        ("explain analyze delete from t", &[Postgres], Rows),
        ("explain (verbose, analyze true) insert into t values (1)", &[Postgres], Rows),
        ("explain analyze create table a as select 1", &[Postgres], Other),
        ("with a as (delete from t returning *) select * from a", &[Postgres], Rows),
        (
            "with a as (select 1) merge into t using a on true when matched then delete",
            &[Postgres],
            Rows,
        ),
        ("merge into t using a on true when matched then delete", &[Postgres], Rows),
        ("select * from t for update", &[Postgres], Rows),
        ("select * from t for no key update", &[Postgres], Rows),
        ("select * from t for share", &[Postgres], Rows),
        ("select 1 into t", &[Postgres], Other),
        ("replace into t values (1)", &[Postgres], Other),
        ("do $$ begin end $$", &[Postgres], Other),
        ("call f()", &[Postgres], Other),
        ("notify a", &[Postgres], Other),
    ];
    for (sql, dialects, kind) in rows {
        for dialect in *dialects {
            assert_eq!(one(sql, *dialect, 0).unwrap().kind(), *kind, "{sql} {dialect:?}");
        }
    }
}

#[test]
fn the_first_word_decides_about_reading() {
    for (sql, expected) in [
        ("-- a\n /* b /* c */ */ ( SELECT 1)", true),
        ("with a as (delete from t returning *) select * from a", true),
        ("explain analyze delete from t", true),
        ("insert into t values (1)", false),
        ("'select'", false),
        ("", false),
    ] {
        assert_eq!(may_read(sql), expected, "{sql}");
    }
}

/// The content of strings, names and comments.
fn inner() -> impl Strategy<Value = String> {
    let pieces = vec![
        ";", "'", "\"", "`", "[", "]", "$", "$$", "$1", "$a$", "/*", "*/", "--", "\n", "\r", "\\",
        "end", "begin", "e'", "é", " ", "(", "?",
    ];
    proptest::collection::vec(proptest::sample::select(pieces), 0..6)
        .prop_map(|pieces| pieces.concat())
}

/// Wraps such a text in a value, a name or a comment.
fn quoted(dialect: Dialect) -> impl Strategy<Value = String> {
    let styles = if dialect == Sqlite { 0..7usize } else { 0..8usize };
    (styles, inner(), inner()).prop_map(move |(style, text, more)| match (style, dialect) {
        (0, _) => format!("'{}'", text.replace('\'', "''")),
        (1, _) => format!("1 as \"a{}\"", text.replace('"', "\"\"")),
        (2, _) => format!("1 --{}\n", text.replace(['\n', '\r'], " ")),
        (3, _) => format!("/*{}*/ 1", text.replace(['*', '/'], " ")),
        (4, Sqlite) => format!("1 as [a{}]", text.replace(']', "")),
        (5, Sqlite) => format!("1 as `a{}`", text.replace('`', "``")),
        (_, Sqlite) => format!("/*{}*/ 1", text.replace("*/", "").replace('*', "")),
        (4, _) => format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")),
        (5, _) => {
            let escaped = |text: &str| text.replace('\\', "\\\\").replace('\'', "''");
            format!("e'{}' -- '\n '{}'", escaped(&text), escaped(&more))
        }
        (6, _) => format!("$b${}$b$", text),
        (_, _) => format!("/* /*{}*/ ; */ 1", text.replace(['*', '/'], " ")),
    })
}

fn statements(dialect: Dialect) -> impl Strategy<Value = Vec<String>> {
    let values = proptest::collection::vec(quoted(dialect), 1..4);
    let statement = values.prop_map(|values| format!("select {}, 1 as z", values.join(", ")));
    proptest::collection::vec(statement, 1..4)
}

proptest! {
    #[test]
    fn nothing_quoted_hides_an_end(
        sqlite in statements(Sqlite),
        postgres in statements(Postgres),
    ) {
        for (dialect, expected) in [(Sqlite, &sqlite), (Postgres, &postgres)] {
            prop_assert_eq!(&texts(&expected.join(";"), dialect), expected);
        }
        // SQLite agrees.
        let (connection, text) = (Connection::open_in_memory().unwrap(), sqlite.join(";"));
        let mut batch = Batch::new(&connection, &text);
        let mut count = 0;
        while let Some(statement) =
            batch.next().map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?
        {
            drop(statement);
            count += 1;
        }
        prop_assert_eq!(count, sqlite.len());
    }

    #[test]
    fn splitting_a_statement_again_gives_the_same(
        text in prop_oneof![
            proptest::collection::vec(inner(), 0..8).prop_map(|texts| texts.concat()),
            any::<String>(),
        ],
    ) {
        for dialect in BOTH {
            let _ = (one(&text, *dialect, 0), may_read(&text));
            for statement in all(&text, *dialect).unwrap_or_default() {
                let again = all(statement.text(), *dialect).unwrap();
                prop_assert_eq!(again.as_slice(), std::slice::from_ref(&statement));
                prop_assert!(text.contains(statement.text()));
            }
        }
    }
}
