//! Pages that run as they are written: their commands in order, names for the commands, and the
//! text after the last one.

use std::borrow::Cow;

use super::{too_large, Event, Machine, Unclosed};
use crate::text::error::Error;
use crate::text::MAX_TEXT;

/// A command of a page, and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedLine<'a> {
    /// The name from a comment `# name: NAME` before the command, unchanged.
    pub name: Option<&'a str>,
    /// The command.
    pub line: Cow<'a, str>,
}

/// The commands of a page, and the text after them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Steps<'a> {
    /// The commands of the closed blocks, in order.
    pub lines: Vec<NamedLine<'a>>,
    /// The text below the last command block.
    pub rest: String,
}

/// Extracts the commands of a page's closed blocks, their names, and the text below them.
///
/// ```
/// use skillbook_core::text::extract::steps;
///
/// let block = "```cmd\n# name: late\ntasks.search --overdue\n# all of them\ntasks.search\n```";
/// let page = format!("{block}\nSum it up.");
/// let found = steps(&page).unwrap();
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
        // Commands of a block that is cut off never run, so they are not steps.
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
