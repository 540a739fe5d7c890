//! The command language: blocks in a model's reply, commands in a block, words in a command.
//!
//! ```
//! use skillbook_core::text::{command, extract};
//!
//! let reply = "Let me look.\n\n```cmd\ntasks.search --status todo blocked --overdue\n```\n";
//! let found = extract::extract(reply, extract::Unclosed::Hold).unwrap();
//! assert_eq!(found.text(), "Let me look.");
//!
//! let command = command::parse(&found.commands[0]).unwrap();
//! assert_eq!(command.name, "tasks.search");
//! assert_eq!(command.flag("overdue"), Some(&command::FlagValue::True));
//! ```
//!
//! [`extract`] finds the commands in a text, whole or chunk by chunk. [`words`] splits one command
//! into words. [`command`] reads the words as a name, flags and arguments. `scan` is the state
//! machine below the first two: they share it, so they always agree on where a command ends.
//!
//! Nothing here expands, substitutes or runs anything. `docs/commands.md` describes the language
//! for authors.

pub mod command;
pub mod error;
pub mod extract;
pub(crate) mod fence;
pub mod line;
mod scan;
pub mod words;

/// The maximum size of a text: 16 MiB.
pub const MAX_TEXT: usize = 16 << 20;
/// The maximum size of a command: 1 MiB.
pub const MAX_COMMAND: usize = 1 << 20;
/// The maximum number of commands in a block.
pub const MAX_COMMANDS: usize = 10_000;
/// The maximum number of words in a command.
pub const MAX_WORDS: usize = 10_000;
