//! Repairs blocks that YAML refuses although a person would understand them.
//!
//! ```text
//! description: Use when: the user asks     ->  description: "Use when: the user asks"
//! tags: [@work, home]                      ->  tags: ["@work", home]
//! ```
//!
//! The block is cut into entries, each with its lines. An entry that the library can read alone
//! stays unchanged. In any other entry the value, or each item of a list, is put in quotes on one
//! line. The entry's other lines become empty, so that later lines keep their numbers. The library
//! must read the result as a whole, otherwise nothing is repaired.
//!
//! Blocks with more than a hundred such lines are not repaired. Nor are ambiguous ones: a list or
//! mapping in brackets that is never closed, an entry indented below an entry with a value, and the
//! lines of a block scalar.

use super::yaml::{self, Failure, Loaded};
use super::{ErrorKind, BLOCK_LINE};
use crate::page::diagnostic::{Code, Diagnostic, Fix, Severity};
use crate::value::Value;
use memchr::memmem;
use std::collections::HashMap;
use std::ops::Range;

/// The longest block that is repaired, in bytes. Repair reads parts of the block again and again,
/// and a longer block is hardly frontmatter with a slip.
const MAX_BROKEN: usize = 16 * 1024;

/// The number of lines that are repaired. More of them are hardly slips.
const MAX_REPAIRED: usize = 100;

/// How deep entries are searched inside entries.
const DEPTH: usize = 8;

/// The longest part of a repaired line that a diagnostic shows, in characters.
const EXCERPT: usize = 160;

/// Repairs and reads a block. Returns a diagnostic for every repaired line.
pub(super) fn repair(block: &str, failure: &Failure) -> Option<(Loaded, Vec<Diagnostic>)> {
    // A block whose only fields are `key:value` is a scalar to YAML.
    let may_repair = matches!(failure.kind, ErrorKind::Invalid | ErrorKind::NotMapping);
    if !may_repair || block.len() > MAX_BROKEN {
        return None;
    }
    // Each of these lines would be repaired, and one with a control character.
    let tabs = memmem::find_iter(block.as_bytes(), "\n\t").take(MAX_REPAIRED + 1).count();
    if tabs + usize::from(block.starts_with('\t')) > MAX_REPAIRED {
        return None;
    }
    let unprintable = |line: &&str| yaml::unprintable(line).is_some();
    if block.split('\n').filter(unprintable).nth(MAX_REPAIRED).is_some() {
        return None;
    }
    let lines =
        block.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line).to_owned()).collect();
    let mut repair = Repair { block, lines, repaired: Vec::new(), places: HashMap::new() };
    repair.drop_unprintable();
    let all = 0..repair.lines.len();
    // Control characters may have been the only mistake.
    let is_mended = !repair.repaired.is_empty() && repair.read(all.clone()).is_ok();
    if !(is_mended || repair.entries(all, 0)) || repair.is_full() {
        return None;
    }
    let loaded = yaml::load(&repair.lines.join("\n")).ok()?;
    let fixes = repair.fixes();
    let diagnostic = |mend: &RepairedLine| {
        // The last fix that begins at this line or before it.
        let at = fixes.partition_point(|(lines, _)| lines.start <= mend.line);
        let fix = at.checked_sub(1).map(|at| &fixes[at]);
        let fix = fix.filter(|(lines, _)| lines.contains(&mend.line));
        mend.diagnostic(&repair.lines).fix(fix.map(|(_, fix)| fix.clone()))
    };
    let diagnostics = repair.repaired.iter().map(diagnostic).collect();
    Some((loaded, diagnostics))
}

/// A line that was changed.
struct RepairedLine {
    line: usize,
    /// The last line that was joined to it.
    last: usize,
    /// In characters, from 1.
    column: usize,
    why: String,
}

impl RepairedLine {
    fn diagnostic(&self, lines: &[String]) -> Diagnostic {
        // A line of tabs and blanks becomes empty.
        let line = Some(lines[self.line].trim())
            .filter(|line| !line.is_empty())
            .unwrap_or("an empty line");
        let shown: String = line.chars().take(EXCERPT).collect();
        let more = if shown.len() < line.len() { "…" } else { "" };
        Diagnostic::new(
            Code::FrontmatterRepaired,
            Severity::Warning,
            format!("{}; read as: {shown}{more}", self.why),
        )
        .at((self.line + BLOCK_LINE) as u32, self.column as u32)
        .hint("write the line like this")
    }
}

struct Repair<'a> {
    block: &'a str,
    lines: Vec<String>,
    repaired: Vec<RepairedLine>,
    /// For each repaired line its place in `repaired`.
    places: HashMap<usize, usize>,
}

/// The form of a line that begins an entry, with an offset in the line.
enum Entry {
    /// `key: value`: the value begins here, or the line ends.
    Pair(usize),
    /// `key:value`: a blank is missing here.
    Glued(usize),
    /// `- value`: the value begins here, or the line ends.
    Item(usize),
}

impl Repair<'_> {
    /// Whether more lines were repaired than may be.
    fn is_full(&self) -> bool {
        self.repaired.len() > MAX_REPAIRED
    }

    /// Removes control characters. They have no meaning in text, and YAML refuses a document with
    /// one anywhere.
    fn drop_unprintable(&mut self) {
        for (number, line) in self.lines.iter_mut().enumerate() {
            let Some(at) = yaml::unprintable(line) else { continue };
            let column = line[..at].chars().count() + 1;
            line.retain(|character| !yaml::is_unprintable(character));
            self.places.insert(number, self.repaired.len());
            self.repaired.push(RepairedLine {
                line: number,
                last: number,
                column,
                why: "a control character is not allowed in YAML".into(),
            });
        }
    }

    /// Checks whether the library can read these lines alone, as entries. An anchor may be defined
    /// elsewhere in the block.
    fn read(&self, lines: Range<usize>) -> Result<(), String> {
        match yaml::value(&self.lines[lines].join("\n")) {
            Ok(Loaded { data: Value::Map(_) | Value::List(_), .. }) => Ok(()),
            Ok(_) => Err("expected a space after the colon".into()),
            Err(Failure { unknown_anchor: Some(name), .. })
                if self.block.contains(&format!("&{name}")) =>
            {
                Ok(())
            }
            Err(failure) => Err(failure.message),
        }
    }

    /// Repairs the entries of these lines. Returns false if that is not possible.
    fn entries(&mut self, lines: Range<usize>, depth: usize) -> bool {
        if self.is_full() {
            return false;
        }
        let Some(first) = lines.clone().find(|&line| significant(&self.lines[line])) else {
            self.indent_with_blanks(lines);
            return true;
        };
        if depth == DEPTH || entry(&self.lines[first]).is_none() {
            return false;
        }
        let level = indent(&self.lines[first]);
        // Entries at a smaller indentation also begin a new one: the author may have indented the
        // first.
        let begins =
            |line: &String| significant(line) && indent(line) <= level && entry(line).is_some();
        let mut starts: Vec<usize> =
            lines.clone().filter(|&line| begins(&self.lines[line])).collect();
        starts.push(lines.end);
        starts.windows(2).all(|pair| !self.is_full() && self.mend(pair[0]..pair[1], depth))
    }

    /// Repairs one entry, if it needs repair.
    ///
    /// The changes are tried from the smallest to the largest: blanks for tabs, a blank after the
    /// colon, the entries inside this one, and at last quotes around the whole value.
    fn mend(&mut self, lines: Range<usize>, depth: usize) -> bool {
        let Err(why) = self.read(lines.clone()) else { return true };
        self.indent_with_blanks(lines.clone());
        if self.read(lines.clone()).is_ok() {
            return true;
        }
        let first = lines.start;
        let value_at = match entry(&self.lines[first]) {
            Some(Entry::Glued(at)) => {
                self.lines[first].insert(at, ' ');
                self.record(first, at, "expected a space after the colon".into());
                if self.read(lines.clone()).is_ok() {
                    return true;
                }
                at + 1
            }
            Some(Entry::Item(at))
                if matches!(entry(&self.lines[first][at..]), Some(Entry::Pair(_))) =>
            {
                return self.item_mapping(lines, depth);
            }
            Some(Entry::Pair(at) | Entry::Item(at)) => at,
            None => return false,
        };
        let below = first + 1..lines.end;
        let opens_entries = |line: &String| significant(line) && entry_below(line);
        if self.lines[first][value_at..].is_empty() {
            let child = below.clone().find(|&line| significant(&self.lines[line]));
            if child.is_some_and(|line| opens_entries(&self.lines[line])) {
                return self.entries(below, depth + 1) && self.read(lines).is_ok();
            }
        // A value and entries below it contradict each other. Quotes would hide the entries.
        } else if below.clone().any(|line| opens_entries(&self.lines[line])) {
            return false;
        }
        // Text on the following lines belongs to the value if it is indented, or if it can only be
        // a sentence.
        let wrapped = |line: &String| {
            !significant(line) || indent(line) > indent(&self.lines[first]) || is_sentence(line)
        };
        if !below.clone().all(|line| wrapped(&self.lines[line])) {
            return false;
        }
        // Comments are not part of the value and stay on their lines.
        let rest: Vec<usize> = below.filter(|&line| significant(&self.lines[line])).collect();
        let pieces = rest.iter().map(|&line| self.lines[line].trim());
        let text = [self.lines[first][value_at..].trim_end()]
            .into_iter()
            .chain(pieces)
            .collect::<Vec<_>>()
            .join(" ");
        let text = text.trim();
        if text.is_empty()
            || is_block_scalar(&self.lines[first][value_at..])
            || is_open_collection(text)
        {
            return false;
        }
        // A message about the first character is more helpful than the library's, which names the
        // place where parsing stopped.
        let (mended, why) = match list(text) {
            Some(list) => (list, why),
            None => (quote(unwrapped(text)), reserved(text).unwrap_or(why)),
        };
        self.lines[first].truncate(value_at);
        if !self.lines[first].ends_with(' ') {
            self.lines[first].push(' ');
        }
        let column_at = self.lines[first].len();
        self.lines[first].push_str(&mended);
        let last = rest.last().copied().unwrap_or(first);
        for line in rest {
            self.lines[line].clear();
        }
        self.record(first, column_at, why);
        if let Some(place) = self.places.get(&first) {
            let mend = &mut self.repaired[*place];
            mend.last = mend.last.max(last);
        }
        self.read(lines).is_ok()
    }

    /// Repairs an item that is a mapping. Its entries have the indentation of the first one, after
    /// the dash, so the dash is replaced by a blank meanwhile.
    fn item_mapping(&mut self, lines: Range<usize>, depth: usize) -> bool {
        let dash = indent(&self.lines[lines.start]);
        self.lines[lines.start].replace_range(dash..dash + 1, " ");
        let mended = self.entries(lines.clone(), depth + 1);
        self.lines[lines.start].replace_range(dash..dash + 1, "-");
        mended && self.read(lines).is_ok()
    }

    fn indent_with_blanks(&mut self, lines: Range<usize>) {
        for line in lines {
            if self.is_full() {
                return;
            }
            let text = &self.lines[line];
            let white = text.len() - text.trim_start_matches([' ', '\t']).len();
            if text[..white].contains('\t') {
                let blanks = if white == text.len() {
                    String::new()
                } else {
                    text[..white].replace('\t', "  ")
                };
                self.lines[line].replace_range(..white, &blanks);
                self.record(line, 0, "a line may not be indented with a tab".into());
            }
        }
    }

    /// Records a change to a line. Only the first change to a line is reported.
    fn record(&mut self, line: usize, at: usize, why: String) {
        if !self.places.contains_key(&line) {
            let column = self.lines[line][..at].chars().count() + 1;
            self.places.insert(line, self.repaired.len());
            self.repaired.push(RepairedLine { line, last: line, column, why });
        }
    }

    /// The repaired lines as fixes. Repairs that share lines are one fix, since neither is right
    /// alone.
    fn fixes(&self) -> Vec<(Range<usize>, Fix)> {
        let mut spans: Vec<Range<usize>> =
            self.repaired.iter().map(|mend| mend.line..mend.last + 1).collect();
        spans.sort_by_key(|span| (span.start, span.end));
        let mut joined: Vec<Range<usize>> = Vec::new();
        for span in spans {
            match joined.last_mut().filter(|last| span.start < last.end) {
                Some(last) => last.end = last.end.max(span.end),
                None => joined.push(span),
            }
        }
        let mut lines = self.block.split('\n').enumerate();
        let mut start = 0;
        joined
            .into_iter()
            .map(|span| (span.clone(), self.fix(span, &mut lines, &mut start)))
            .collect()
    }

    /// The fix of some lines. `rest` has the block's lines that no earlier fix has read, and the
    /// first of them begins at `start`.
    fn fix<'b>(
        &self,
        lines: Range<usize>,
        rest: &mut impl Iterator<Item = (usize, &'b str)>,
        start: &mut usize,
    ) -> Fix {
        let mut range = 0..0;
        let mut text = Vec::new();
        let mut end_of_line = "\n";
        for (number, line) in rest {
            let bare = line.strip_suffix('\r').unwrap_or(line);
            if number == lines.start {
                range.start = *start;
                end_of_line = if bare.len() < line.len() { "\r\n" } else { "\n" };
            }
            // A line that was joined to the one above is removed. One that was empty before stays.
            if number >= lines.start && (!self.lines[number].is_empty() || bare.trim().is_empty()) {
                text.push(self.lines[number].as_str());
            }
            range.end = *start + bare.len();
            *start += line.len() + 1;
            if number + 1 == lines.end {
                break;
            }
        }
        Fix { range, replacement: text.join(end_of_line) }
    }
}

fn significant(line: &str) -> bool {
    let text = line.trim_start_matches([' ', '\t']);
    !text.is_empty() && !text.starts_with('#')
}

/// The indentation of a line. A tab counts as two blanks, which replace it.
fn indent(line: &str) -> usize {
    line.bytes()
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .map(|byte| if byte == b'\t' { 2 } else { 1 })
        .sum()
}

fn entry(line: &str) -> Option<Entry> {
    let text = line.trim_start_matches([' ', '\t']);
    let start = line.len() - text.len();
    let value = |at: usize| {
        start + at + (text[at..].len() - text[at..].trim_start_matches([' ', '\t']).len())
    };
    if text == "-" || text.starts_with("- ") {
        return Some(Entry::Item(value(1)));
    }
    let end = key_end(text)?;
    match &text.as_bytes()[end..] {
        [b':'] | [b':', b' ' | b'\t', ..] => Some(Entry::Pair(value(end + 1))),
        // `https://…` and `10:30` are not entries.
        [b':', b'/', b'/', ..] => None,
        [b':', ..] if text.starts_with(|first: char| first.is_ascii_alphabetic()) => {
            Some(Entry::Glued(start + end + 1))
        }
        _ => None,
    }
}

/// Where a key ends, unquoted or quoted.
fn key_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let end = match *bytes.first()? {
        quote @ (b'"' | b'\'') => 2 + memchr::memchr(quote, &bytes[1..])?,
        _ => text.find(|character: char| {
            !(character.is_alphanumeric() || matches!(character, '_' | '-' | '.'))
        })?,
    };
    (end > 0).then_some(end)
}

/// Whether a line below a key is an entry rather than a line of text. A sentence may contain `Note:
/// `, but the names of fields begin with a lowercase letter.
fn entry_below(line: &str) -> bool {
    let small = line.trim_start_matches([' ', '\t']).starts_with(char::is_lowercase);
    match entry(line) {
        Some(Entry::Item(_)) => true,
        Some(Entry::Pair(_)) => small,
        Some(Entry::Glued(_)) | None => false,
    }
}

/// Whether a line without indentation can only be a continuation of the text above it.
fn is_sentence(line: &str) -> bool {
    line.starts_with(char::is_alphanumeric) && !line.contains(": ") && !line.ends_with(':')
}

/// A message about the first character of a text. The library has one only for some characters.
fn reserved(text: &str) -> Option<String> {
    let first = text.chars().next()?;
    match first {
        '@' | '`' | ',' | '%' | '&' | '*' | '!' | '|' | '>' | ']' | '}' => {
            Some(format!("an unquoted value may not begin with `{first}`"))
        }
        '-' | '?' if text[1..].starts_with(' ') => {
            Some(format!("an unquoted value may not begin with `{first}`"))
        }
        '[' => Some("a value that begins with `[` must be a list".into()),
        '{' => Some("a value that begins with `{` must be a mapping".into()),
        '"' | '\'' if text[1..].contains(first) && !text.ends_with(first) => {
            Some("nothing may follow the quote that closes a value".into())
        }
        '\'' if text.len() > 1 && text.ends_with('\'') => {
            Some("a single quote inside single quotes must be doubled".into())
        }
        '"' if text[1..].strip_suffix('"').is_some_and(|inner| inner.contains('"')) => {
            Some("a double quote inside double quotes needs a backslash".into())
        }
        _ => None,
    }
}

/// Whether a value is the header of a block scalar, whose text is on the lines below.
fn is_block_scalar(value: &str) -> bool {
    let indicators = value.strip_prefix(['|', '>']);
    indicators
        .is_some_and(|rest| rest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-')))
}

/// Whether the brackets of a list or mapping do not match.
fn is_open_collection(text: &str) -> bool {
    let count = |wanted: [char; 2]| text.matches(wanted).count();
    text.starts_with(['[', '{']) && count(['[', '{']) != count([']', '}'])
}

/// A list in brackets, with quotes around the items that need them.
fn list(text: &str) -> Option<String> {
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    if inner.contains(['[', ']', '{', '}', '"', '\'']) {
        return None;
    }
    let items =
        inner.split(',').map(str::trim).map(|item| match yaml::value(&format!("[{item}]")) {
            Ok(_) => item.to_owned(),
            Err(_) => quote(item),
        });
    Some(format!("[{}]", items.collect::<Vec<_>>().join(", ")))
}

/// The text without the quotes that were meant to surround it: around all of it, even with more of
/// them inside, or one that is never closed.
fn unwrapped(text: &str) -> &str {
    let Some(quote) = text.chars().next().filter(|first| matches!(first, '"' | '\'')) else {
        return text;
    };
    let rest = &text[1..];
    let Some(inner) = rest.strip_suffix(quote) else {
        return if rest.contains(quote) { text } else { rest };
    };
    // In `"a" and "b"` the second quote ends a word, so the outer ones are not a pair. In `"an "a"
    // in it"` it begins a word, and in `'it's'` it is inside one.
    let ends_a_word = inner.find(quote).is_some_and(|at| {
        let spaced = |character: Option<char>| {
            character.is_none_or(|character| !character.is_alphanumeric())
        };
        !inner[..at].ends_with(' ') && spaced(inner[at + 1..].chars().next())
    });
    if ends_a_word {
        text
    } else {
        inner
    }
}

/// Quotes a line of text: with double quotes if nothing needs an escape, otherwise with single
/// ones, which have no escapes.
fn quote(text: &str) -> String {
    if text.contains(['"', '\\']) {
        format!("'{}'", text.replace('\'', "''"))
    } else {
        format!("\"{text}\"")
    }
}
