//! SQLite through the driver: statements, values and errors, row by row.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use skillbook_drivers::sqlite::{Sqlite, SqliteConnection};
use skillbook_drivers::{Connection, Constraint, Database, Driver, Error, ErrorKind, Value};

const PATIENCE: Duration = Duration::from_millis(30);

fn memory() -> SqliteConnection {
    Sqlite::new(":memory:", PATIENCE).open_writer().unwrap()
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn file(folder: &tempfile::TempDir) -> Sqlite {
    Sqlite::new(folder.path().join("a.db").to_str().unwrap(), PATIENCE)
}

fn ints(values: &[i64]) -> Vec<Value> {
    values.iter().copied().map(Value::Int).collect()
}

fn one(connection: &mut SqliteConnection, sql: &str) -> Value {
    connection.query(sql, &[]).unwrap().rows.remove(0).remove(0)
}

#[track_caller]
fn check_error(result: Result<impl std::fmt::Debug, Error>, kind: ErrorKind, text: &str) {
    let error = result.unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (kind, text));
}

#[test]
fn placeholders_take_the_parameter_of_their_number() {
    for (sql, params, row) in [
        ("select 1", &[][..], &[1][..]),
        ("select $1", &[10], &[10]),
        ("select $2, $1", &[10, 20], &[20, 10]),
        ("select $2, $1, $2, $1", &[10, 20], &[20, 10, 20, 10]),
        ("select $3, $1 where $2 = 20", &[10, 20, 30], &[30, 10]),
        (
            "select $10, $9, $8, $7, $6, $5, $4, $3, $2, $1",
            &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
            &[10, 9, 8, 7, 6, 5, 4, 3, 2, 1],
        ),
    ] {
        let mut connection = memory();
        // Twice: the second time the statement is already prepared.
        for _ in 0..2 {
            assert_eq!(connection.query(sql, &ints(params)).unwrap().rows, [ints(row)], "{sql}");
        }
    }
}

#[test]
fn a_prepared_statement_keeps_no_parameter() {
    let mut connection = memory();
    for value in [Value::Text("a".into()), Value::Null, Value::Blob(vec![0, 1]), Value::Float(0.5)]
    {
        assert_eq!(
            connection.query("select $1", std::slice::from_ref(&value)).unwrap().rows,
            [[value]]
        );
    }
}

#[test]
fn parameters_that_do_not_fit_are_refused() {
    for (sql, given, text) in [
        ("select 1", 1, "expected no parameters, because the statement has no placeholder, got 1"),
        ("select $1", 0, "expected 1 parameter, for $1, got 0"),
        ("select $1", 2, "expected 1 parameter, for $1, got 2"),
        ("select $2, $1", 1, "expected 2 parameters, for $1 to $2, got 1"),
        ("select $2", 2, "expected every placeholder up to the highest, $1 is missing"),
        ("select $3, $1", 3, "expected every placeholder up to the highest, $2 is missing"),
        ("select $999999999", 1, "expected 999999999 parameters, for $1 to $999999999, got 1"),
        ("select ?", 1, "expected placeholders $1, $2 and so on, got `?`"),
        ("select ?1", 1, "expected placeholders $1, $2 and so on, got `?1`"),
        ("select :a", 1, "expected placeholders $1, $2 and so on, got `:a`"),
        ("select @a", 1, "expected placeholders $1, $2 and so on, got `@a`"),
        ("select $a", 1, "expected placeholders $1, $2 and so on, got `$a`"),
        ("select $0", 1, "expected placeholders $1, $2 and so on, got `$0`"),
        ("select $01", 1, "expected placeholders $1, $2 and so on, got `$01`"),
        ("select $1::int", 1, "expected placeholders $1, $2 and so on, got `$1::int`"),
        (
            "select $99999999999999999999",
            1,
            "expected placeholders $1, $2 and so on, got `$99999999999999999999`",
        ),
    ] {
        let result = memory().query(sql, &vec![Value::Null; given]);
        check_error(result, ErrorKind::Params, &format!("{text}\n  in: {sql}"));
    }
}

#[test]
fn statements_that_cannot_run_say_why() {
    use ErrorKind::*;
    let refused = "transactions are begun and ended by the transaction function, not by statements";
    let attach = "`attach`, `detach` and `vacuum` would affect only one of several connections";
    let temporary =
        "temporary tables, views and triggers would exist in only one of several connections";
    for (sql, kind, text) in [
        ("", Syntax, "expected a statement, got only whitespace or comments"),
        (
            " -- nothing\n/* at all */ ;",
            Syntax,
            "expected a statement, got only whitespace or comments",
        ),
        ("select 1; select 2", Syntax, "expected one statement, got several; send them one by one"),
        ("select 1\0; drop table t", Syntax, "expected a statement without NUL characters"),
        ("selec 1", Syntax, "near \"selec\": syntax error"),
        ("select absent from t", Syntax, "no such column: absent"),
        (
            "select \"text\"",
            Syntax,
            "no such column: \"text\" - should this be a string literal in single-quotes?",
        ),
        ("select * from missing", NoSuchTable, "no such table: missing"),
        (
            "insert into t values (1, 1)",
            Constraint(skillbook_drivers::Constraint::Unique),
            "UNIQUE constraint failed: t.id",
        ),
        (
            "insert into t values (2, null)",
            Constraint(skillbook_drivers::Constraint::NotNull),
            "NOT NULL constraint failed: t.x",
        ),
        (
            "insert into t values (2, 0)",
            Constraint(skillbook_drivers::Constraint::Check),
            "CHECK constraint failed: x > 0",
        ),
        (
            "insert into u values (2)",
            Constraint(skillbook_drivers::Constraint::ForeignKey),
            "FOREIGN KEY constraint failed",
        ),
        ("delete from t", Constraint(skillbook_drivers::Constraint::Other), "t is kept"),
        ("select abs(-9223372036854775808)", Other, "integer overflow"),
        (
            "select 9e999 as huge",
            Other,
            "expected a finite number in column `huge`, got an infinite one",
        ),
        ("begin", Refused, refused),
        ("begin immediate", Refused, refused),
        ("commit", Refused, refused),
        ("end", Refused, refused),
        ("rollback", Refused, refused),
        ("savepoint a", Refused, refused),
        ("release a", Refused, refused),
        ("attach ':memory:' as other", Refused, attach),
        ("detach main", Refused, attach),
        ("vacuum", Refused, attach),
        ("create temp table x (y)", Refused, temporary),
        ("create temp view x as select 1", Refused, temporary),
        ("create temp trigger x after insert on t begin select 1; end", Refused, temporary),
        (
            "pragma foreign_keys = off",
            Refused,
            "`pragma foreign_keys` with a value would affect only one of several connections",
        ),
        (
            "pragma main.synchronous(off)",
            Refused,
            "`pragma synchronous` with a value would affect only one of several connections",
        ),
    ] {
        let mut connection = memory();
        connection
            .execute_batch(
                "create table t (id integer primary key, x integer not null check (x > 0));
                 create table u (t integer references t (id));
                 create trigger kept before delete on t begin select raise(abort, 't is kept'); end;
                 insert into t values (1, 1)",
            )
            .unwrap();
        let shown = format!("{text}\n  in: {}", sql.trim());
        check_error(connection.query(sql, &[]), kind, &shown);
        // A failed statement leaves no trace in the connection.
        assert_eq!(one(&mut connection, "select count(*) from t"), Value::Int(1));
        assert!(!connection.in_transaction());
    }
}

#[test]
fn a_long_statement_is_cut_in_the_text_only() {
    let sql = format!("selec '{}'", "ü".repeat(600));
    let error = memory().query(&sql, &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("near \"selec\": syntax error\n  in: selec '{}…", "ü".repeat(493))
    );
    assert_eq!(error.sql(), Some(sql.as_str()));
}

#[test]
fn pragmas_that_ask_are_answered() {
    let folder = folder();
    let mut connection = file(&folder).open_writer().unwrap();
    connection.execute_batch("create table t (id integer primary key)").unwrap();
    for (sql, answer) in [
        ("pragma journal_mode", Value::Text("wal".into())),
        ("pragma synchronous", Value::Int(2)),
        ("pragma foreign_keys", Value::Int(1)),
        ("pragma trusted_schema", Value::Int(0)),
        ("pragma busy_timeout", Value::Int(30)),
        ("select name from pragma_table_info('t')", Value::Text("id".into())),
        ("pragma integrity_check(1)", Value::Text("ok".into())),
    ] {
        assert_eq!(one(&mut connection, sql), answer, "{sql}");
    }
}

#[test]
fn values_are_read_as_they_are_stored() {
    for (sql, value) in [
        ("select null", Value::Null),
        ("select -9223372036854775807 - 1", Value::Int(i64::MIN)),
        ("select 0.5", Value::Float(0.5)),
        ("select ''", Value::Text(String::new())),
        ("select 'ü'", Value::Text("ü".into())),
        ("select char(0) || 'a'", Value::Text("\0a".into())),
        ("select x''", Value::Blob(vec![])),
        ("select x'00ff'", Value::Blob(vec![0, 255])),
        ("select cast(x'ff' as text)", Value::Blob(vec![255])),
    ] {
        assert_eq!(one(&mut memory(), sql), value, "{sql}");
    }
}

#[test]
fn full_text_search_is_there_and_follows_its_table() {
    let mut connection = memory();
    connection
        .execute_batch(
            "create table note (id integer primary key, body text);
             create virtual table found using fts5 (body, content = 'note', content_rowid = 'id');
             create trigger added after insert on note begin \
             insert into found (rowid, body) values (new.id, new.body); end",
        )
        .unwrap();
    for body in ["milk and bread", "the milky way"] {
        assert_eq!(
            connection
                .query("insert into note (body) values ($1)", &[Value::Text(body.into())])
                .unwrap()
                .count,
            1
        );
    }
    let found = connection
        .query("select rowid from found where found match $1", &[Value::Text("milk".into())]);
    assert_eq!(found.unwrap().rows, [ints(&[1])]);
    // FTS5's own tables can only be written by FTS5.
    let error = connection.query("delete from found_data", &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "table found_data may not be modified\n  in: delete from found_data"
    );
}

#[test]
fn read_runs_only_reading_statements() {
    let folder = folder();
    let driver = file(&folder);
    let mut writer = driver.open_writer().unwrap();
    let mut reader = driver.open_reader().unwrap().unwrap();
    writer.execute_batch("create table t (id integer primary key)").unwrap();
    for (sql, reads) in [
        ("select * from t", true),
        ("with x as (select 1) select * from x", true),
        ("values (1)", true),
        ("pragma synchronous", true),
        ("explain select 1", true),
        ("insert into t values (1)", false),
        ("insert into t values (1) returning id", false),
        ("with x as (select 1) insert into t select * from x", false),
        ("update t set id = 1", false),
        ("delete from t", false),
        ("create table u (id integer)", false),
        ("drop table t", false),
        ("analyze", false),
    ] {
        assert_eq!(reader.read(sql, &[]).unwrap().is_some(), reads, "{sql}");
        assert_eq!(one(&mut writer, "select count(*) from t"), Value::Int(0), "{sql}");
    }
    // Even a statement that is run on it directly cannot write.
    let sql = "insert into t values (1)";
    check_error(
        reader.query(sql, &[]),
        ErrorKind::ReadOnly,
        &format!("attempt to write a readonly database\n  in: {sql}"),
    );
}

#[test]
fn a_database_in_memory_has_one_connection() {
    assert!(Sqlite::new(":memory:", PATIENCE).open_reader().unwrap().is_none());
}

#[test]
fn files_that_cannot_be_opened_say_why() {
    let folder = folder();
    let root = folder.path().to_str().unwrap();
    fs::write(folder.path().join("text"), "This is not a database. ".repeat(100)).unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    for (name, kind, text) in [
        ("sub", ErrorKind::CannotOpen, "expected a file, it is a folder".to_owned()),
        ("text", ErrorKind::Corrupt, "file is not a database".to_owned()),
        (
            "text/a.db",
            ErrorKind::CannotOpen,
            format!("cannot create the folder {root}/text: File exists (os error 17)"),
        ),
    ] {
        let path = format!("{root}/{name}");
        let opened = Sqlite::new(&path, PATIENCE).open_writer().map(|_| ());
        check_error(opened, kind, &format!("cannot open the database {path}: {text}"));
    }
}

#[test]
fn the_folder_is_made_and_a_name_is_never_a_uri() {
    let folder = folder();
    for name in ["new/folder/a.db", "file:a.db?mode=memory", "ü 🌍.db"] {
        let path = folder.path().join(name);
        let driver = Sqlite::new(path.to_str().unwrap(), PATIENCE);
        driver.open_writer().unwrap().execute_batch("create table t (id integer)").unwrap();
        assert!(path.is_file(), "{name}");
        assert_eq!(
            one(&mut driver.open_writer().unwrap(), "select count(*) from t"),
            Value::Int(0)
        );
    }
}

#[test]
fn another_writer_makes_it_busy() {
    let folder = folder();
    let (mut first, mut second) =
        (file(&folder).open_writer().unwrap(), file(&folder).open_writer().unwrap());
    first.execute_batch("create table t (id integer)").unwrap();
    first.begin(0).unwrap();
    let text = "another process has held the database for more than 30 ms; try again";
    check_error(second.begin(0), ErrorKind::Busy, text);
    let sql = "insert into t values (1)";
    check_error(second.query(sql, &[]), ErrorKind::Busy, &format!("{text}\n  in: {sql}"));
    assert_eq!(one(&mut second, "select count(*) from t"), Value::Int(0));
    first.commit(0).unwrap();
    second.begin(0).unwrap();
}

#[test]
fn levels_take_back_their_own_part() {
    let mut connection = memory();
    connection.execute_batch("create table t (id integer)").unwrap();
    let add = |connection: &mut SqliteConnection, id| {
        connection.query("insert into t values ($1)", &[Value::Int(id)]).unwrap()
    };
    connection.begin(0).unwrap();
    add(&mut connection, 1);
    connection.begin(1).unwrap();
    add(&mut connection, 2);
    connection.begin(2).unwrap();
    add(&mut connection, 3);
    connection.rollback(2).unwrap();
    connection.commit(1).unwrap();
    connection.begin(1).unwrap();
    add(&mut connection, 4);
    connection.rollback(1).unwrap();
    connection.commit(0).unwrap();
    assert_eq!(connection.query("select id from t", &[]).unwrap().rows, [ints(&[1]), ints(&[2])]);
    assert!(connection.rollback(0).is_ok());
}

#[test]
fn an_interrupt_stops_the_statement_until_it_is_cleared() {
    let counting = |limit| {
        format!(
            "with recursive n (i) as (select 1 union all select i + 1 from n limit {limit}) \
                 select count(*) from n"
        )
    };
    let mut connection = memory();
    connection.interrupt().set();
    let endless = counting(-1);
    check_error(
        connection.query(&endless, &[]),
        ErrorKind::Other,
        &format!("interrupted\n  in: {endless}"),
    );
    connection.interrupt().clear();
    assert_eq!(one(&mut connection, &counting(9999)), Value::Int(9999));
}

fn database(folder: &tempfile::TempDir) -> Database<Sqlite> {
    let database = Database::open(file(folder)).unwrap();
    database
        .write(0, |connection| connection.execute_batch("create table t (id integer primary key)"))
        .unwrap();
    database
}

fn rows(database: &Database<Sqlite>) -> Vec<Vec<Value>> {
    database.read(|reader| reader.read("select id from t", &[])).unwrap().unwrap().rows
}

#[test]
fn an_abandoned_writer_is_rolled_back_and_late_calls_do_nothing() {
    let folder = folder();
    let database = database(&folder);
    let add = |connection: &mut SqliteConnection| connection.query("insert into t values (1)", &[]);
    database.write(0, |connection| connection.begin(0)).unwrap();
    database.write_inside(0, add).unwrap();
    assert_eq!(database.abandon(), 1);
    assert_eq!(rows(&database), Vec::<Vec<Value>>::new());
    check_error(
        database.write(0, |connection| connection.begin(0)),
        ErrorKind::Closed,
        "the database is closed",
    );
    check_error(database.write(0, add), ErrorKind::Closed, "the database is closed");
    database.write(1, add).unwrap();
    assert_eq!(rows(&database), [ints(&[1])]);
}

#[test]
fn a_transaction_that_the_engine_ended_takes_no_more_writes() {
    let folder = folder();
    let database = database(&folder);
    let add =
        |sql: &'static str| move |connection: &mut SqliteConnection| connection.query(sql, &[]);
    database.write(0, |connection| connection.begin(0)).unwrap();
    database.write_inside(0, add("insert into t values (1)")).unwrap();
    database.write_inside(0, add("insert or rollback into t values (1)")).unwrap_err();
    let text = "this transaction was already rolled back by an earlier error; begin a new one";
    check_error(database.write_inside(0, add("insert into t values (2)")), ErrorKind::Closed, text);
    check_error(
        database.write_inside(0, |connection| connection.commit(0)),
        ErrorKind::Closed,
        text,
    );
    database.write(0, |connection| connection.rollback(0)).unwrap();
    assert_eq!(rows(&database), Vec::<Vec<Value>>::new());
}

#[test]
fn a_closed_database_answers_so_and_has_lost_nothing() {
    let folder = folder();
    let database = database(&folder);
    database.write(0, |connection| connection.query("insert into t values (1)", &[])).unwrap();
    assert_eq!(rows(&database), [ints(&[1])]);
    // A reader that is in use when the database closes finishes its work.
    let found = database.read(|reader| {
        database.close();
        reader.read("select id from t", &[])
    });
    assert_eq!(found.unwrap().unwrap().rows, [ints(&[1])]);
    check_error(
        database.read(|reader| reader.read("select 1", &[])),
        ErrorKind::Closed,
        "the database is closed",
    );
    check_error(
        database.write(0, |connection| connection.begin(0)),
        ErrorKind::Closed,
        "the database is closed",
    );
    // All connections are closed: the last one has removed the log.
    let left: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["a.db"]);
    assert_eq!(one(&mut file(&folder).open_writer().unwrap(), "select id from t"), Value::Int(1));
}

#[test]
fn constraints_have_names() {
    for (constraint, name) in [
        (Constraint::Unique, "unique"),
        (Constraint::ForeignKey, "foreign_key"),
        (Constraint::NotNull, "not_null"),
        (Constraint::Check, "check"),
        (Constraint::Other, "other"),
    ] {
        assert_eq!(constraint.as_str(), name);
        assert_eq!(ErrorKind::Constraint(constraint).as_str(), "constraint");
    }
}

fn log(path: &Path) -> PathBuf {
    path.with_extension("db-wal")
}

type Change = fn(&Path);

/// Changes to the file of an open database, and whether it exists afterwards.
const CHANGES: [(&str, Change, bool); 8] = [
    ("deleted", |path| fs::remove_file(path).unwrap(), false),
    ("moved", |path| fs::rename(path, path.with_extension("old")).unwrap(), false),
    (
        "replaced by another database",
        |path| {
            let other = path.with_extension("new");
            fs::copy(path, &other).unwrap();
            fs::rename(other, path).unwrap();
        },
        false,
    ),
    ("deleted with its folder", |path| fs::remove_dir_all(path.parent().unwrap()).unwrap(), false),
    ("its log deleted", |path| fs::remove_file(log(path)).unwrap(), false),
    (
        "its log replaced by a copy",
        |path| {
            let other = path.with_extension("new");
            fs::copy(log(path), &other).unwrap();
            fs::rename(other, log(path)).unwrap();
        },
        false,
    ),
    (
        "moved and put back",
        |path| {
            fs::rename(path, path.with_extension("old")).unwrap();
            fs::rename(path.with_extension("old"), path).unwrap();
        },
        true,
    ),
    (
        "written by another process",
        |path| fs::OpenOptions::new().append(true).open(path).map(drop).unwrap(),
        true,
    ),
];

type Write = fn(&mut SqliteConnection, &dyn Fn()) -> Result<(), Error>;

/// The ways to write, each with the changes of the file in the middle of it.
const WRITES: [(&str, Write); 5] = [
    ("a statement", |writer, change| {
        change();
        writer.query("insert into t values (2)", &[]).map(drop)
    }),
    ("a statement with rows", |writer, change| {
        change();
        writer.query("insert into t values (2) returning x", &[]).map(drop)
    }),
    ("a batch", |writer, change| {
        change();
        writer.execute_batch("create table u (x); insert into t values (2)")
    }),
    ("a transaction", |writer, change| {
        change();
        writer.begin(0)
    }),
    ("a commit", |writer, change| {
        writer.begin(0)?;
        writer.query("insert into t values (2)", &[])?;
        change();
        writer.commit(0)
    }),
];

#[test]
fn no_write_to_a_deleted_file_is_acknowledged() {
    for (change_name, change, remains) in CHANGES {
        for (write_name, write) in WRITES {
            let name = format!("{write_name}, {change_name}");
            let folder = folder();
            let path = folder.path().join("sub/a.db");
            let driver = Sqlite::new(path.to_str().unwrap(), PATIENCE);
            let mut writer = driver.open_writer().unwrap();
            writer.execute_batch("create table t (x); insert into t values (1)").unwrap();
            let mut reader = driver.open_reader().unwrap().unwrap();

            let result = write(&mut writer, &|| change(&path));
            if remains {
                assert_eq!(result, Ok(()), "{name}");
                assert_eq!(driver.check(), Ok(()), "{name}");
                assert!(driver.open_reader().unwrap().is_some(), "{name}");
                continue;
            }
            let text = format!(
                "the database's file {} was deleted or replaced while it was open, so nothing is \
                 written; put the file back, or restart to open the one that is there",
                if change_name.starts_with("its log") { log(&path) } else { path.clone() }
                    .display()
            );
            for result in [result, driver.check()] {
                let error = result.expect_err(&name);
                assert_eq!((error.kind(), error.to_string()), (ErrorKind::Moved, text.clone()));
            }
            // Open connections still read their rows; a new one would read another file.
            assert_eq!(one(&mut reader, "select x from t where x = 1"), Value::Int(1), "{name}");
            assert_eq!(one(&mut writer, "select x from t where x = 1"), Value::Int(1), "{name}");
            assert!(driver.open_reader().unwrap().is_none(), "{name}");
            if change_name == "deleted" {
                assert!(!path.exists(), "{name}: a new file was made");
            }
        }
    }
}

#[test]
fn a_database_in_memory_has_no_file_to_lose() {
    let driver = Sqlite::new(":memory:", PATIENCE);
    driver.open_writer().unwrap().execute_batch("create table t (x)").unwrap();
    assert_eq!(driver.check(), Ok(()));
}
