//! Standard output and standard error.

use std::env;
use std::io::{self, ErrorKind, IsTerminal, Write};

use skillbook_core::report::{safe, Printed, Terminal};

use crate::arguments::Options;

/// Standard output, as the texts need to know it.
pub fn terminal(options: &Options) -> Terminal {
    let width = width();
    let set = |name: &str| env::var(name).unwrap_or_default();
    let color = match options.get("color") {
        Some("always") => true,
        Some("never") => false,
        _ => width.is_some() && set("NO_COLOR").is_empty() && set("TERM") != "dumb",
    };
    Terminal { color, width }
}

/// The width of the terminal; `None` without one. A terminal may report a width of 0.
fn width() -> Option<usize> {
    const DEFAULT: usize = 80;
    let columns = match env::var("SKILLBOOK_COLUMNS") {
        Ok(columns) if columns.is_empty() => return None,
        Ok(columns) => columns.parse().unwrap_or(DEFAULT),
        Err(_) if !io::stdout().is_terminal() => return None,
        Err(_) => rustix::termios::tcgetwinsize(io::stdout()).map_or(0, |size| size.ws_col.into()),
    };
    Some(if columns == 0 { DEFAULT } else { columns })
}

/// The reason why a line ends early: standard output cannot be written.
pub struct Stopped(io::Error);

impl Stopped {
    /// The exit status. A closed pipe, as in `skillbook list | head`, is not an error.
    pub fn status(self) -> u8 {
        if self.0.kind() == ErrorKind::BrokenPipe {
            return 0;
        }
        complain(&format!("cannot write standard output: {}", reason(&self.0)));
        1
    }
}

/// Writes to standard output.
pub fn write(text: &str) -> Result<(), Stopped> {
    let mut output = io::stdout().lock();
    output.write_all(text.as_bytes()).and_then(|()| output.flush()).map_err(Stopped)
}

/// Writes a text and a line break to standard output.
pub fn put(text: &str) -> Result<(), Stopped> {
    write(&format!("{text}\n"))
}

/// Writes a report; returns the exit status.
pub fn printed(printed: &Printed) -> Result<u8, Stopped> {
    write(&printed.output)?;
    if let Some(complaint) = &printed.complaint {
        complain(complaint);
    }
    Ok(printed.failed.into())
}

/// Writes a message about the run itself to standard error.
pub fn complain(message: &str) {
    note(&format!("skillbook: {message}"));
}

/// Writes lines to standard error.
pub fn note(text: &str) {
    // There is nowhere to report a failure to.
    let _ = writeln!(io::stderr(), "{}", safe(text));
}

/// Writes a message about wrong usage, and returns its exit status.
pub fn usage_error(message: &str, help: &str) -> u8 {
    complain(&format!("{message}\nSee: skillbook {help}"));
    2
}

/// The reason of an error of the system, without its number.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}
