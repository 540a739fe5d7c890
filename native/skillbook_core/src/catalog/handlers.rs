//! Handlers that the program cannot run, as far as its caller knows.
//!
//! A handler is a module of the program around the core, which the core cannot look up. Its caller
//! does, before a generation is published, and hands over the names with a problem. A command
//! with such a handler stays an entry, but no list for models has it, and each view has a
//! diagnostic for it.

use std::collections::BTreeMap;

use super::entry::Entry;

/// Names of handlers, as they are written in frontmatter, with their problems.
pub type HandlerProblems = BTreeMap<String, HandlerProblem>;

/// The reason why a handler cannot run, or was not looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandlerProblem {
    /// There is no module of this name.
    Missing {
        /// The name of a similar handler.
        close: Option<String>,
    },
    /// The module has no function for running a command.
    NotAHandler,
    /// The program around the core does not have the application of the module, so it cannot know.
    Unchecked,
}

/// The problem that keeps an entry from running.
pub(crate) fn broken<'a>(
    problems: &'a HandlerProblems,
    entry: &Entry,
) -> Option<&'a HandlerProblem> {
    problem(problems, entry).filter(|problem| **problem != HandlerProblem::Unchecked)
}

/// The problem of an entry's handler.
pub(crate) fn problem<'a>(
    problems: &'a HandlerProblems,
    entry: &Entry,
) -> Option<&'a HandlerProblem> {
    // Most programs have all handlers, and then no entry has to be read.
    if problems.is_empty() {
        return None;
    }
    problems.get(entry.handler()?)
}
