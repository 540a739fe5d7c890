//! Reads a Usage section as a synopsis: `mail.send --to <name>... [--cc <name>] (--body <text> |
//! --file <path>)`.
//!
//! The marks are those of manual pages: brackets for optional parts, parentheses with bars for
//! alternatives, dots for repetition. Anything unclear makes the whole section unread, rather than
//! half of it.

use super::list::{value, word};

/// The limits of a synopsis that is read: nested brackets, and flags.
const DEEPEST: usize = 8;
const MOST: usize = 256;

/// A Usage section that is a single synopsis.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Synopsis<'a> {
    pub flags: Vec<UsageFlag<'a>>,
    pub choices: Vec<Choice<'a>>,
    /// Whether it shows a word without a flag.
    pub words: bool,
}

/// A flag in a synopsis.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UsageFlag<'a> {
    pub name: &'a str,
    pub optional: bool,
    pub value: Option<&'a str>,
    pub several: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Choice<'a> {
    pub names: Vec<&'a str>,
    pub required: bool,
}

/// An open bracket.
struct Group {
    mark: char,
    /// How many flags come before it.
    first: usize,
    bars: usize,
    /// Whether it contains anything except flags and their values.
    other: bool,
}

/// Reads a Usage section; `None` if it shows several forms or is not a synopsis.
pub(super) fn synopsis(section: &str) -> Option<Synopsis<'_>> {
    let mut lines =
        section.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("```"));
    let first = bare(lines.next()?);
    let name = first.split([' ', '\t']).next()?;
    let mut reader = SynopsisParser::default();
    reader.line(first[name.len()..].trim_end_matches('\\'))?;
    for line in lines {
        let line = bare(line);
        if line.split([' ', '\t']).next() == Some(name) {
            return None;
        }
        // The synopsis continues on lines that cannot begin a sentence.
        if !line.starts_with("--") && !line.starts_with(['[', '(']) {
            break;
        }
        reader.line(line.trim_end_matches('\\'))?;
    }
    reader.groups.is_empty().then_some(reader.found)
}

/// A line without the marks of inline code around it.
fn bare(line: &str) -> &str {
    let inner = line.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
    inner.filter(|inner| !inner.contains('`')).unwrap_or(line)
}

#[derive(Default)]
struct SynopsisParser<'a> {
    found: Synopsis<'a>,
    groups: Vec<Group>,
}

impl<'a> SynopsisParser<'a> {
    fn line(&mut self, line: &'a str) -> Option<()> {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            rest = match first {
                '[' | '(' => self.open(first, rest)?,
                ']' | ')' => self.close(first, rest)?,
                '|' => {
                    // Outside of brackets it is unclear which parts a bar separates.
                    self.groups.last_mut()?.bars += 1;
                    &rest[1..]
                }
                '-' => self.flag(rest)?,
                _ => self.word(rest)?,
            }
            .trim_start();
        }
        Some(())
    }

    fn open(&mut self, mark: char, rest: &'a str) -> Option<&'a str> {
        if self.groups.len() == DEEPEST {
            return None;
        }
        self.groups.push(Group { mark, first: self.found.flags.len(), bars: 0, other: false });
        Some(&rest[1..])
    }

    fn close(&mut self, mark: char, rest: &'a str) -> Option<&'a str> {
        let group = self.groups.pop()?;
        if (group.mark == '[') != (mark == ']') {
            return None;
        }
        let outer = self.groups.iter().any(|outer| outer.mark == '[' || outer.bars > 0);
        let inside = &mut self.found.flags[group.first..];
        if group.bars > 0 && !group.other && inside.len() == group.bars + 1 {
            let names = inside.iter().map(|flag| flag.name).collect();
            self.found.choices.push(Choice { names, required: group.mark == '(' && !outer });
        }
        for flag in inside {
            flag.optional |= group.mark == '[' || group.bars > 0;
        }
        Some(&rest[1..])
    }

    fn flag(&mut self, rest: &'a str) -> Option<&'a str> {
        let name = rest.strip_prefix("--").map(word).filter(|name| !name.is_empty())?;
        let mut shown = UsageFlag { name, optional: false, value: None, several: false };
        let mut rest = &rest[2 + name.len()..];
        loop {
            if shown.value.is_some() && rest.trim_start().starts_with('[') {
                break;
            }
            let (text, after) = usage_value(rest)?;
            let Some(text) = text else { break };
            shown.several |= shown.value.is_some() || text.ends_with("...") || text.ends_with('…');
            shown.value.get_or_insert(text);
            rest = after;
        }
        // `--to <name> [<name>...]`
        if let Some(inside) = rest.trim_start().strip_prefix('[').filter(|_| shown.value.is_some())
        {
            let (inside, after) = inside.split_once(']')?;
            if !inside.contains(['-', '[', '(', '|']) {
                shown.several = true;
                rest = after;
            }
        }
        if let Some(dots) = ["...", "…"].iter().find(|dots| rest.trim_start().starts_with(**dots))
        {
            shown.several = true;
            rest = &rest.trim_start()[dots.len()..];
        }
        match self.found.flags.iter().position(|earlier| earlier.name == name) {
            // `--to <a> [--to <b>]`
            Some(earlier) => self.found.flags[earlier].several = true,
            None if self.found.flags.len() == MOST => return None,
            None => self.found.flags.push(shown),
        }
        Some(rest)
    }

    fn word(&mut self, rest: &'a str) -> Option<&'a str> {
        let end = match rest.as_bytes().first()? {
            b'<' => rest.find('>')? + 1,
            b'{' => rest.find('}')? + 1,
            _ => rest.find([' ', '\t', ']', ')', '|', '[', '(']).unwrap_or(rest.len()),
        };
        if let Some(group) = self.groups.last_mut() {
            group.other = true;
        }
        // `[OPTIONS]` stands for flags.
        self.found.words |=
            !matches!(&rest[..end], "..." | "…" | "OPTIONS" | "options" | "FLAGS" | "flags");
        Some(&rest[end..])
    }
}

/// Reads the placeholder of a flag's value: `<a>`, `A`, `a|b`, `"..."`, or a word in lowercase.
/// Returns `None` if it is unclear whether there is a value: after `--flag[`, or for brackets with
/// only a value.
fn usage_value(rest: &str) -> Option<(Option<&str>, &str)> {
    let start = rest.trim_start_matches([' ', '\t', '=']);
    let inside = start.strip_prefix('[').map(str::trim_start);
    if inside.is_some_and(|inside| inside.starts_with(['<', '=']) || rest.starts_with('[')) {
        return None;
    }
    match value(rest) {
        (Some(text), after) => Some((Some(text), after)),
        (None, _) => {
            let stop = ['[', ']', '(', ')', '|', '-'];
            if start.is_empty()
                || start.starts_with(stop)
                || start.starts_with("...")
                || start.starts_with('…')
            {
                return Some((None, rest));
            }
            let end = match start.strip_prefix('"') {
                Some(quoted) => quoted.find('"')? + 2,
                None => start.find([' ', '\t', ']', ')', '[', '(']).unwrap_or(start.len()),
            };
            Some((Some(&start[..end]), &start[end..]))
        }
    }
}
