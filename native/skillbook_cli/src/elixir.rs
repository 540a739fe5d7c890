//! Hands a line over to the Elixir command line, which has all commands.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable with the path of the Elixir command line.
const VARIABLE: &str = "SKILLBOOK_ELIXIR";
/// The variable that keeps the Elixir command line from handing the line back.
const NATIVE: &str = "SKILLBOOK_NATIVE";

/// The script of the Elixir command line: that of the variable, or of the checkout in which this
/// program was built.
fn script() -> Option<PathBuf> {
    match env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        Some(path) => Some(path.into()),
        None => Some(checkout()?.join("bin/skillbook")),
    }
}

/// Whether a line can be handed over.
pub fn is_there() -> bool {
    // The script that sets the variable has handed the line over itself.
    script().is_some() && env::var_os(NATIVE).is_none_or(|native| native != "0")
}

/// The project that the script belongs to.
pub fn project() -> Option<PathBuf> {
    let script = script()?.canonicalize().ok()?;
    Some(script.parent()?.parent()?.to_owned()).filter(|root| is_project(root))
}

fn checkout() -> Option<PathBuf> {
    let program = env::current_exe().ok()?.canonicalize().ok()?;
    program.ancestors().find(|folder| is_project(folder)).map(Path::to_owned)
}

fn is_project(folder: &Path) -> bool {
    folder.join("bin/skillbook").is_file() && folder.join("packages/cli/mix.exs").is_file()
}

/// Replaces this process by the Elixir command line. Returns only if that is not possible, with the
/// message.
pub fn run(wanted: &str, args: impl Iterator<Item = OsString>) -> String {
    let needs = format!("{wanted} needs Elixir, which this program alone does not have");
    let script = script().filter(|_| is_there());
    let Some(script) = script else {
        let advice = "Run bin/skillbook of a checkout of the project, or set";
        return format!("{needs}.\n{advice} {VARIABLE} to its path");
    };
    let error = Command::new(&script).args(args).env(NATIVE, "0").exec();
    format!("{needs}, and {} cannot be run: {error}", script.display())
}
