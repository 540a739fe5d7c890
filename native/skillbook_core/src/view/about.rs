//! The bits that a view knows of each entry. Prompts and lists go through all entries several
//! times; reading the bits is one pass over an array, while the entries are scattered over memory.

use crate::catalog::entry::Entry;
use crate::source::{Kind, Selection};

/// The view shows the entry. A hidden entry has no bits set.
pub const SHOWN: u8 = 1;
/// The entry is mentioned to a model.
pub const LISTED: u8 = 1 << 1;
/// The entry is in the prompt.
pub const IN_PROMPT: u8 = 1 << 2;
/// The globs of its source put the whole text into the prompt.
pub const INLINE: u8 = 1 << 3;
/// The entry has a usage line.
pub const USAGE: u8 = 1 << 4;
pub const COMMAND: u8 = 1 << 5;
pub const SKILL: u8 = 1 << 6;
pub const NOTE: u8 = 1 << 7;

/// The bits of a shown entry.
pub fn of(entry: &Entry, listed: bool, in_prompt: bool) -> u8 {
    let kind = match entry.kind {
        Kind::Command => COMMAND,
        Kind::Skill => SKILL,
        Kind::Note => NOTE,
    };
    let fields = entry.fields();
    let more = [
        (listed, LISTED),
        (in_prompt, IN_PROMPT),
        (entry.selection == Selection::Inline, INLINE),
        (fields.usage.is_some(), USAGE),
    ];
    more.iter().filter(|(is, _)| *is).fold(SHOWN | kind, |bits, (_, bit)| bits | bit)
}
