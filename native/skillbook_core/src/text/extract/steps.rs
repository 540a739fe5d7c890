//! Texts that run as they are written: a page's commands in order, and their names.

use std::borrow::Cow;

use super::{too_large, Event, Machine, Unclosed};
use crate::text::error::Error;
use crate::text::MAX_TEXT;

/// A command of a text that is run as it is written, and the name that a comment gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedLine<'a> {
    /// What a comment `# name: NAME` right before the command says, as it is written.
    pub name: Option<&'a str>,
    /// The command.
    pub line: Cow<'a, str>,
}

/// A text that is run as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Steps<'a> {
    /// The commands of its closed blocks, in order.
    pub lines: Vec<NamedLine<'a>>,
    /// What stands below the last of them.
    pub rest: String,
}

/// The commands of a text's closed blocks, with the names that comments give them, and the text below them.
///
/// ```
/// use skillbook_core::text::extract::steps;
///
/// let found = steps("```cmd\n# name: late\ntasks.search --overdue\n# all of them\ntasks.search\n```\nSum it up.").unwrap();
/// assert_eq!(found.lines[0].name, Some("late"));
/// assert_eq!(found.lines[0].line, "tasks.search --overdue");
/// assert_eq!(found.lines[1].name, None);
/// assert_eq!(found.rest, "Sum it up.");
/// ```
pub fn steps(text: &str) -> Result<Steps<'_>, Error> {
    if text.len() > MAX_TEXT {
        return Err(too_large(text.len()));
    }
    let mut steps = Steps::default();
    let mut closed = 0;
    let mut name = None;
    Machine::new(Unclosed::Hold).run(text, true, &mut |event| match event {
        Event::Comment(comment) => name = step_name(comment).or(name),
        Event::Command(line) => steps.lines.push(NamedLine { name: name.take(), line }),
        Event::Closed => {
            if steps.lines.len() > closed {
                steps.rest.clear();
            }
            closed = steps.lines.len();
            name = None;
        }
        Event::Cut => steps.lines.truncate(closed),
        Event::Text(piece) => steps.rest.push_str(&piece),
        Event::Hidden(_) => {}
    })?;
    if steps.lines.is_empty() {
        steps.rest.clear();
    }
    Ok(steps)
}

fn step_name(comment: &str) -> Option<&str> {
    let rest = comment.trim_start_matches('#').trim_start();
    let (key, name) = rest.split_once(':')?;
    key.eq_ignore_ascii_case("name").then(|| name.trim())
}
