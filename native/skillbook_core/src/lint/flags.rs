//! The flags that a page tells of.

use crate::sections;
use crate::text::fence;

/// A flag of the Flags section.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Listed<'a> {
    /// Its names as written, without dashes.
    pub names: Vec<&'a str>,
    /// Where its first name begins in the body, in bytes.
    pub offset: usize,
    pub required: bool,
}

impl Listed<'_> {
    pub fn is(&self, name: &str) -> bool {
        self.names.iter().any(|own| same(own, name))
    }
}

/// Whether both are one flag: `due_before` is `due-before`.
pub(super) fn same(one: &str, other: &str) -> bool {
    let plain = |c: char| if c == '_' { '-' } else { c };
    one.chars().map(plain).eq(other.chars().map(plain))
}

/// The flags that the Flags section lists, a line or a table's row each; none if it is prose.
pub(super) fn listed(body: &str) -> Vec<Listed<'_>> {
    let Some(section) = sections::section(body, "flags") else { return Vec::new() };
    let mut all: Vec<Listed<'_>> = Vec::new();
    for line in section.lines() {
        let names = names(line);
        if let Some(first) = names.first() {
            all.push(Listed { offset: fence::offset(body, first) - 2, names, required: false });
        }
        // The mark may stand on a further line of the flag's description.
        if let Some(last) = all.last_mut() {
            last.required |= line.to_ascii_lowercase().contains("(required)");
        }
    }
    all
}

/// The names at the beginning of a line: `--to`, `- **--to**`, `| -t, --to <name> |`.
fn names(line: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = line.trim_start_matches([' ', '\t', '|', '*', '`', '+']);
    rest = rest.strip_prefix("- ").unwrap_or(rest).trim_start_matches([' ', '*', '`']);
    loop {
        let dashes = rest.len() - rest.trim_start_matches('-').len();
        let name = word(&rest[dashes..]);
        match dashes {
            2 if !name.is_empty() => names.push(name),
            1 if name.chars().count() == 1 => {}
            _ => return names,
        }
        rest = rest[dashes + name.len()..].trim_start_matches(['`', '*']);
        let after = rest.trim_start();
        let Some(next) = after.strip_prefix([',', '/']) else { return names };
        rest = next.trim_start_matches([' ', '`', '*']);
    }
}

/// The flags in a text that shows what may be written, each with its place.
pub(super) fn shown(text: &str) -> Vec<(usize, &str)> {
    let starts =
        text.match_indices("--").filter(|(at, _)| !text[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '-'));
    let flags = starts.map(|(at, _)| (at, word(&text[at + 2..])));
    flags.filter(|(_, name)| !name.is_empty()).collect()
}

/// A flag's name at the start of a text.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-')).unwrap_or(text.len());
    if text.starts_with('-') {
        ""
    } else {
        &text[..end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_lists_and_leaves_prose_alone() {
        type Flags<'a> = &'a [(&'a [&'a str], bool)];
        let rows: [(&str, Flags<'_>); 9] = [
            ("--to   Whom (required)\n--cc   Copies", &[(&["to"], true), (&["cc"], false)]),
            ("- `--to`: whom (Required)", &[(&["to"], true)]),
            ("* **--to**, **--for** whom", &[(&["to", "for"], false)]),
            ("| Flag | |\n|---|---|\n| `-t, --to <name>` | whom (required) |", &[(&["to"], true)]),
            ("--to / -t  whom\n    a name\n    (required)", &[(&["to"], true)]),
            ("--no-color  plain", &[(&["no-color"], false)]),
            ("It takes --to and --cc.", &[]),
            ("-- nothing\n--- nothing\n---", &[]),
            ("(required)\n\nAll are.", &[]),
        ];
        for (section, expected) in rows {
            let body = format!("## Flags\n\n{section}\n");
            let found = listed(&body);
            let found: Vec<_> = found.iter().map(|flag| (flag.names.as_slice(), flag.required)).collect();
            assert_eq!(found, expected, "{section}");
        }
        assert_eq!(listed("## Flags\n- --to x")[0].offset, 11);
    }

    #[test]
    fn reads_what_is_shown() {
        let rows: [(&str, &[(usize, &str)]); 4] = [
            ("a.b --to <a> [--cc <b>]", &[(4, "to"), (14, "cc")]),
            ("a.b (--x|--y-z=1)", &[(5, "x"), (9, "y-z")]),
            ("a.b -- --- a--b", &[]),
            ("a.b", &[]),
        ];
        for (text, expected) in rows {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn dashes_and_underscores_are_the_same() {
        assert!(same("due_before", "due-before"));
        assert!(!same("due", "due-before"));
    }
}
