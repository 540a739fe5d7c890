//! The peer of `bench/store.exs`: prepared statements of the same drivers on one connection, with
//! nothing around them.
//!
//! Run as `peer DATABASE WRITES READS`, where DATABASE is a file or a URL. Prints the seconds for
//! writes and for reads. The table `bench` must exist.

use std::error::Error;
use std::time::Instant;

const WRITE: &str = "insert into bench (id, title) values ($1, $2)";
const READ: &str = "select id, title from bench where id = $1";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [database, writes, reads] = &arguments[..] else {
        return Err("usage: peer DATABASE WRITES READS".into());
    };
    let (writes, reads) = (writes.parse()?, reads.parse()?);
    match database.starts_with("postgres") {
        true => tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?
            .block_on(server(database, writes, reads)),
        false => file(database, writes, reads),
    }
}

fn title(id: i64) -> String {
    format!("title number {id}")
}

fn file(path: &str, writes: i64, reads: i64) -> Result<(), Box<dyn Error>> {
    let connection = rusqlite::Connection::open(path)?;
    connection.execute_batch("pragma foreign_keys = on; pragma synchronous = full")?;
    let mut write = connection.prepare(WRITE)?;
    let started = Instant::now();
    for id in 1..=writes {
        write.execute((id, title(id)))?;
    }
    println!("{}", started.elapsed().as_secs_f64());
    let mut read = connection.prepare(READ)?;
    let started = Instant::now();
    for at in 0..reads {
        let found: (i64, String) =
            read.query_row([at % writes + 1], |row| Ok((row.get(0)?, row.get(1)?)))?;
        assert_eq!(found.0, at % writes + 1);
    }
    println!("{}", started.elapsed().as_secs_f64());
    Ok(())
}

async fn server(url: &str, writes: i64, reads: i64) -> Result<(), Box<dyn Error>> {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    let write = client.prepare(WRITE).await?;
    let started = Instant::now();
    for id in 1..=writes {
        client.execute(&write, &[&id, &title(id)]).await?;
    }
    println!("{}", started.elapsed().as_secs_f64());
    let read = client.prepare(READ).await?;
    let started = Instant::now();
    for at in 0..reads {
        let found = client.query_one(&read, &[&(at % writes + 1)]).await?;
        assert_eq!(found.get::<_, i64>(0), at % writes + 1);
    }
    println!("{}", started.elapsed().as_secs_f64());
    Ok(())
}
