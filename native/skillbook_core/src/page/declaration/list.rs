//! Reads the items of a Flags section. A flag may have its own line, list item, table row or
//! heading:
//!
//! ```text
//! --to <name>  Whom to write (required)
//! - **--to** <name>: Whom to write
//! | `--to` | required | Whom to write |
//! ### --to
//! ```

use crate::page::sections::Fences;

/// The entry of one flag.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Item<'a> {
    /// Its names without dashes, as slices of the section.
    pub names: Vec<&'a str>,
    /// The placeholder of its value: `<name>`, `N`.
    pub value: Option<&'a str>,
    pub text: String,
    /// The cells of table columns with these titles.
    pub required: Option<&'a str>,
    pub default: Option<&'a str>,
    pub kind: Option<&'a str>,
    pub values: Option<&'a str>,
}

/// Whether a line without a flag belongs to the flag above.
#[derive(PartialEq, Eq)]
enum Open {
    /// Yes.
    Any,
    /// If it is indented.
    Indented,
    No,
}

/// The flags that a section lists. Empty for prose.
pub(super) fn items(section: &str) -> Vec<Item<'_>> {
    let mut all: Vec<Item<'_>> = Vec::new();
    let mut fences = Fences::default();
    let mut open = Open::No;
    let mut table: Vec<&str> = Vec::new();
    let mut above: Vec<&str> = Vec::new();
    for line in section.lines() {
        let bare = line.trim();
        if fences.is_code(bare) && bare.starts_with(['`', '~']) {
            open = Open::No;
            continue;
        }
        if bare.starts_with('|') {
            let cells = cells(bare);
            // The row of dashes below the titles: the row above it has the titles.
            if cells
                .iter()
                .all(|cell| cell.contains('-') && cell.trim_matches(['-', ':']).is_empty())
            {
                table = std::mem::take(&mut above);
            } else if let Some(item) = row(&cells, &table) {
                all.push(item);
            } else {
                above = cells;
            }
            open = Open::No;
            continue;
        }
        table.clear();
        let (names, rest) = names(line);
        if !names.is_empty() {
            let (value, text) = head(rest);
            let listed = bare.starts_with(['-', '*', '+', '#'])
                && !bare.starts_with("--")
                && !bare.starts_with("**");
            open = if listed || text.is_empty() { Open::Any } else { Open::Indented };
            all.push(Item { names, value, text: text.to_owned(), ..Item::default() });
            continue;
        }
        let Some(last) = all.last_mut() else { continue };
        if bare.is_empty() {
            // The text of a heading may come after a blank line.
            open = match open {
                Open::Any if last.text.is_empty() => Open::Any,
                Open::No => Open::No,
                _ => Open::Indented,
            };
            continue;
        }
        let indented = line.starts_with([' ', '\t']);
        if (open == Open::Any && !bare.starts_with(['#', '-', '*', '+']))
            || (open != Open::No && indented)
        {
            last.text.push(' ');
            last.text.push_str(bare);
        } else {
            open = Open::No;
        }
    }
    all
}

/// The names at the beginning of a line, and the rest of it: `--to`, `- **--to**`, `-t, --to
/// <name>`, `### --to`.
fn names(line: &str) -> (Vec<&str>, &str) {
    let mut names = Vec::new();
    let mut rest = line.trim_start_matches([' ', '\t', '|', '*', '`', '+', '#', '[']);
    rest = rest.strip_prefix("- ").unwrap_or(rest).trim_start_matches([' ', '*', '`']);
    loop {
        let dashes = rest.len() - rest.trim_start_matches('-').len();
        let name = word(&rest[dashes..]);
        match dashes {
            2 if !name.is_empty() => names.push(name),
            1 if name.chars().count() == 1 => {}
            _ => return (names, rest),
        }
        rest = rest[dashes + name.len()..].trim_start_matches(['`', '*']);
        let after = rest.trim_start();
        let Some(next) = after.strip_prefix([',', '/']) else { return (names, rest) };
        rest = next.trim_start_matches([' ', '`', '*']);
    }
}

/// The name of a flag at the start of a text; empty without one.
pub(crate) fn word(text: &str) -> &str {
    let end =
        text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-')).unwrap_or(text.len());
    if text.starts_with('-') {
        ""
    } else {
        &text[..end]
    }
}

/// The placeholder of the value after a name, and the text after it.
fn head(rest: &str) -> (Option<&str>, &str) {
    let (value, rest) = value(rest);
    let rest = rest.trim_start_matches(['`', '*', ']']).trim_start_matches([' ', '\t', '*']);
    let separated =
        [":", "- ", "– ", "— ", "=> ", "→ "].iter().find_map(|mark| rest.strip_prefix(mark));
    (value, separated.unwrap_or(rest).trim_start_matches(['*', ' ', '\t']).trim_end())
}

/// `<name>`, `{a,b}` or a word in capitals at the start of a text, with the dots of a repetition.
pub(super) fn value(rest: &str) -> (Option<&str>, &str) {
    let start = rest.trim_start_matches([' ', '\t', '=']);
    // After two spaces the description begins.
    let close = rest.starts_with('=') || !rest.starts_with('\t') && !rest.starts_with("  ");
    let end = match start.as_bytes().first() {
        Some(b'<') => start.find('>').map(|at| at + 1),
        Some(b'{') => start.find('}').map(|at| at + 1),
        Some(b'A'..=b'Z') if close => capitals(start),
        _ => None,
    };
    let Some(end) = end else { return (None, rest) };
    let dots = ["...", "…", " ...", " …"].iter().find(|dots| start[end..].starts_with(**dots));
    let end = end + dots.map_or(0, |dots| dots.len());
    (Some(&start[..end]), &start[end..])
}

/// The length of a word in capitals, unless a sentence begins with it.
fn capitals(text: &str) -> Option<usize> {
    let end = text
        .find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_' || c == '-'));
    let end = end.unwrap_or(text.len());
    let after = &text[end..];
    let closed = after.is_empty()
        || after.starts_with(['`', '*', ':', '\t', ']', '.', '…', ','])
        || after.starts_with("  ");
    (closed && !after.starts_with(". ")).then_some(end)
}

/// The cells of a table's row; `\|` and a `|` in inline code belong to a cell.
fn cells(line: &str) -> Vec<&str> {
    let line = line.strip_prefix('|').unwrap_or(line);
    let line = line.strip_suffix('|').filter(|rest| !rest.ends_with('\\')).unwrap_or(line);
    let (mut cells, mut start, mut code, mut escaped) = (Vec::new(), 0, false, false);
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b'`' => code = !code,
            b'|' if !code && !escaped => {
                cells.push(line[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        escaped = byte == b'\\' && !escaped;
    }
    cells.push(line[start..].trim());
    cells
}

/// A row whose first cell names a flag.
fn row<'a>(cells: &[&'a str], titles: &[&str]) -> Option<Item<'a>> {
    let (first, others) = cells.split_first()?;
    let (names, rest) = names(first);
    if names.is_empty() {
        return None;
    }
    let (value, text) = head(rest);
    let mut item = Item { names, value, text: text.to_owned(), ..Item::default() };
    for (at, cell) in others.iter().enumerate() {
        let title = titles
            .get(at + 1)
            .map_or(String::new(), |title| title.trim_matches(['*', '`']).to_lowercase());
        match title.as_str() {
            "required" | "required?" => item.required = Some(cell),
            "default" | "default value" => item.default = Some(cell),
            "type" => item.kind = Some(cell),
            "values" | "allowed values" | "possible values" | "choices" | "options" => {
                item.values = Some(cell)
            }
            _ => {
                item.text.push(' ');
                item.text.push_str(cell);
            }
        }
    }
    Some(item)
}
