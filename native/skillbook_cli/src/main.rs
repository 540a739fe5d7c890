//! The command line of Skillbook as a program of its own. It runs the commands that only read
//! folders, in milliseconds, and hands every other line over to the Elixir command line.
//!
//! Both print the same: the texts come from [`skillbook_core::report`] and from the files in
//! `help`, and `packages/cli/test/skillbook/cli/native_test.exs` compares them.
//!
//! # Adding a command
//!
//! A command that Elixir has too, and that needs only folders: add its options to `arguments`, a
//! function to `read`, its name to [`run`], and lines with it to the comparison.

mod arguments;
mod book;
mod completions;
mod elixir;
mod examples;
mod help;
mod lint;
mod output;
mod read;
mod route;
mod tools;

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use arguments::{parse, Options, Parsed};
use output::{complain, put, usage_error, Stopped};

/// The reason why a command did not end by itself.
enum Ended {
    /// Standard output cannot be written.
    Stopped(Stopped),
    /// It needs something that only Elixir has.
    Elixir(String),
    /// The book cannot start, for this reason.
    Start(String),
}

impl Ended {
    /// Only Elixir can look up a handler of this name.
    fn handler(name: String) -> Ended {
        Ended::Elixir(format!("the handler `{name}`"))
    }
}

impl From<Stopped> for Ended {
    fn from(stopped: Stopped) -> Ended {
        Ended::Stopped(stopped)
    }
}

fn main() -> ExitCode {
    let given: Vec<OsString> = env::args_os().skip(1).collect();
    let texts = given.iter().map(|arg| arg.to_str().map(str::to_owned));
    let status = match texts.collect::<Option<Vec<String>>>() {
        Some(args) => run(&args),
        None => Err(Ended::Elixir("an argument that is not UTF-8".to_owned())),
    };
    ExitCode::from(match status {
        Ok(status) => status,
        Err(Ended::Stopped(stopped)) => stopped.status(),
        Err(Ended::Elixir(wanted)) => hand_over(&wanted),
        Err(Ended::Start(reason)) => {
            complain(&format!("cannot start: {reason}"));
            3
        }
    })
}

fn run(args: &[String]) -> Result<u8, Ended> {
    match parse(args) {
        Parsed::Help(None) => put(help::overview().trim_end())?,
        Parsed::Help(Some(name)) => put(help::command(&name).unwrap_or_default().trim_end())?,
        Parsed::Version => put(concat!("skillbook ", env!("CARGO_PKG_VERSION")))?,
        Parsed::Wrong(message, help) => return Ok(usage_error(&message, &help)),
        Parsed::Elixir(wanted) => return Ok(hand_over(&wanted)),
        Parsed::Run(options) => return run_command(&options),
    }
    Ok(0)
}

fn run_command(options: &Options) -> Result<u8, Ended> {
    let standalone = !elixir::is_there();
    let run = match options.command {
        "completions" => return completions::run(options),
        "lint" => lint::run,
        "list" => read::run_list,
        "get" => read::run_get,
        "search" => read::run_search,
        "explain" => read::run_explain,
        "route" => route::run,
        "test" => examples::run,
        "tools" => tools::run,
        _ => read::run_prompt,
    };
    // Entries of the store and of accounts are no files. Lint is about files.
    if let Some(found) = of_elixir().filter(|_| options.command != "lint") {
        return Ok(hand_over(&found));
    }
    run(options, standalone)
}

/// Something in the current folder, or in the environment, that brings more entries.
fn of_elixir() -> Option<String> {
    let files = [".skillbook/skillbook.db", ".skillbook/connections.json"];
    let file = files.into_iter().find(|path| Path::new(path).exists());
    let variables =
        ["SKILLBOOK_CONNECTIONS", "SKILLBOOK_HUBSPOT_TOKEN", "SKILLBOOK_GOOGLE_CLIENT_ID"];
    let is_set = |name: &&str| env::var_os(name).is_some_and(|value| !value.is_empty());
    file.or_else(|| variables.into_iter().find(is_set)).map(|name| format!("`{name}`"))
}

fn hand_over(wanted: &str) -> u8 {
    complain(&elixir::run(wanted, env::args_os().skip(1)));
    3
}

/// The current folder, as the paths of diagnostics are written.
fn current_folder() -> String {
    env::current_dir().map_or_else(|_| String::new(), |path| path.to_string_lossy().into_owned())
}
