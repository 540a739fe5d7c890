//! The flags in a text that shows what may be written.

use crate::page::declaration::flag_name;

/// The flags of a synopsis, each with its place.
pub(super) fn shown(text: &str) -> Vec<(usize, &str)> {
    let starts = text
        .match_indices("--")
        .filter(|(at, _)| !text[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '-'));
    let flags = starts.map(|(at, _)| (at, flag_name(&text[at + 2..])));
    flags.filter(|(_, name)| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
