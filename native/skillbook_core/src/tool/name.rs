//! Names of tools, which all vendors limit to `^[a-zA-Z0-9_-]{1,64}$`, and Gemini to those that
//! begin with a letter or `_`.
//!
//! Dots become `__`, which can be converted back. Other names lose the other characters and end
//! with a part of their hash; such a name is looked up in the view. It depends only on the name of
//! its entry, so it reveals no other entry and does not change on reloads.
//!
//! A page may set the name with `tool`. It is used if it is an alias of the entry in the view, so a
//! tool and a command of the same name are the same, and no two entries share a name.

use hmac_sha256::Hash;

use super::{GET_SKILL, RUN_COMMAND};
use crate::catalog::entry::Entry;
use crate::source::Trust;
use crate::view::View;

const LONGEST: usize = 64;
const HASH: usize = 16;

impl View {
    /// The name of an entry's tool: the one that its page sets, or [`from`] of its name.
    pub fn tool_name(&self, entry: &Entry) -> String {
        let tool = entry.fields().tool.as_deref();
        let is_own = |tool: &&str| {
            entry.trust > Trust::Low
                && entry.fields().aliases.iter().any(|alias| alias == tool)
                && tool.len() <= LONGEST
                && !tool.contains('.')
                && is_plain(tool)
                && self
                    .find(tool)
                    .and_then(|id| self.entry(id))
                    .is_some_and(|found| found.name == entry.name)
        };
        tool.filter(is_own).map_or_else(|| from(&entry.name), str::to_owned)
    }

    /// The name of the entry of a tool, or a name for the error if there is none.
    pub fn tool_entry(&self, tool: &str) -> String {
        // Models also use the names of entries, which they read in the prompt.
        if tool.len() > LONGEST {
            return tool.to_owned();
        }
        let dotted = tool.replace("__", ".");
        if from(&dotted) == tool {
            return dotted;
        }
        let hashed = match is_hashed(tool) {
            true => self.entries().find(|(_, entry)| from(&entry.name) == tool),
            false => None,
        };
        hashed.map_or_else(|| tool.to_owned(), |(_, entry)| entry.name.to_string())
    }
}

/// The name of the tool for the name of an entry.
///
/// ```
/// use skillbook_core::tool::from;
/// assert_eq!(from("tasks.search"), "tasks__search");
/// assert_eq!(from("notes/dinner plans"), "notes_dinner_plans-ead3dab56d289268");
/// ```
pub fn from(name: &str) -> String {
    let tool = name.replace('.', "__");
    if is_plain(name) && tool.len() <= LONGEST {
        return tool;
    }
    let hash: String = Hash::hash(name.as_bytes())
        .iter()
        .take(HASH / 2)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let mut plain = plain(name);
    plain.truncate(LONGEST - HASH - 1);
    format!("{plain}-{hash}")
}

/// Makes a name that vendors accept of one that a model invented.
///
/// ```
/// use skillbook_core::tool::valid;
/// assert_eq!(["tasks.find", "", "9 lives"].map(valid), ["tasks_find", "_", "_9_lives"]);
/// ```
pub fn valid(name: &str) -> String {
    let mut plain = plain(name);
    plain.truncate(LONGEST);
    plain
}

/// The start of a name, with `_` for each run of other characters; ASCII only.
fn plain(name: &str) -> String {
    let mut out = String::new();
    let mut is_run = false;
    for character in name.chars() {
        if out.len() == LONGEST {
            break;
        }
        let is_kept = character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
        if is_kept {
            out.push(character);
        } else if !is_run {
            out.push('_');
        }
        is_run = !is_kept;
    }
    if !out.starts_with(starts) {
        out.insert(0, '_');
    }
    out
}

fn starts(character: char) -> bool {
    character.is_ascii_alphabetic() || character == '_'
}

/// Whether [`from`] only replaces the dots of a name. `a_.b` and `a._b` would both be `a___b`.
fn is_plain(name: &str) -> bool {
    let is_allowed =
        |character: char| character.is_ascii_alphanumeric() || "_.-".contains(character);
    name.starts_with(starts)
        && name.chars().all(is_allowed)
        && ![GET_SKILL, RUN_COMMAND].contains(&name)
        && !["__", "..", "_.", "._"].iter().any(|pair| name.contains(pair))
        && !name.ends_with('.')
        && !is_hashed(name)
}

/// Whether a name ends as those with a part of a hash do. Its entry has to be searched.
pub fn is_hashed(name: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    name.rsplit_once('-').is_some_and(|(_, end)| end.len() == HASH && end.bytes().all(is_digit))
}
