//! Shows a place in a line by carets below it, as compilers do.

use unicode_width::UnicodeWidthChar;

use crate::hidden::{class, find};

/// The number of characters of a long line that are shown before the place, and of the place and
/// after it.
const BEFORE: usize = 60;
const AFTER: usize = 40;

/// A line, or the part of a long line around a place, and the carets below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The line. Tabs become spaces, hidden characters U+FFFD, and an ellipsis marks omitted parts.
    pub text: String,
    /// Spaces, then a caret for each column of the place, at least one.
    pub caret: String,
}

/// The excerpt for the bytes `from` to `to` of a line. Both must be character boundaries.
///
/// ```
/// let excerpt = skillbook_core::excerpt::excerpt("見る | x", 7, 8);
/// assert_eq!((excerpt.text.as_str(), excerpt.caret.as_str()), ("見る | x", "     ^"));
/// ```
pub fn excerpt(line: &str, from: usize, to: usize) -> Excerpt {
    let mut hidden = find(line).map(|hidden| hidden.at).peekable();
    let mut shown = |(at, char): (usize, char)| {
        while hidden.next_if(|hidden| *hidden < at).is_some() {}
        match char {
            '\t' | '\r' | '\n' => ' ',
            _ if hidden.peek() == Some(&at) => '\u{FFFD}',
            _ => char,
        }
    };
    let mut before = Vec::new();
    let mut place = Vec::new();
    let mut after = Vec::new();
    for (at, char) in line.char_indices() {
        let (part, most) = match at {
            _ if at < from => (&mut before, usize::MAX),
            _ if at < to => (&mut place, AFTER + 1),
            _ => (&mut after, AFTER + 1),
        };
        if part.len() < most {
            part.push(shown((at, char)));
        } else if at >= to {
            break;
        }
    }
    // A character that only its neighbour keeps visible, such as a joiner between two emoji, is
    // left out with that neighbour.
    let leans = |char: &char| class(*char).is_some();
    let mut skipped = before.len().saturating_sub(BEFORE);
    if skipped > 0 {
        skipped += before[skipped..].iter().take_while(|char| leans(char)).count();
    }
    let cut = after.len() > AFTER || place.len() > AFTER;
    place.truncate(AFTER);

    let mut text = String::new();
    if skipped > 0 {
        text.push('…');
    }
    text.extend(&before[skipped..]);
    let indent = width(text.chars());
    text.extend(&place);
    if !cut || place.len() < AFTER {
        text.extend(after.iter().take(AFTER));
    }
    let mut text = text.trim_end();
    if cut {
        text = text.trim_end_matches(|char| leans(&char));
    }
    let mut text = text.to_owned();
    if cut {
        text.push('…');
    }
    let carets = width(place.iter().copied()).max(1);
    Excerpt { text, caret: format!("{}{}", " ".repeat(indent), "^".repeat(carets)) }
}

/// The excerpt for the character in a column, from 1.
///
/// ```
/// assert_eq!(skillbook_core::excerpt::at_column("a | b", 3).caret, "  ^");
/// ```
pub fn at_column(line: &str, column: usize) -> Excerpt {
    let end = (line.len(), "");
    let (from, rest) =
        line.char_indices().nth(column.saturating_sub(1)).map_or(end, |(at, _)| (at, &line[at..]));
    excerpt(line, from, from + rest.chars().next().map_or(0, char::len_utf8))
}

/// The width of the characters in columns of a terminal.
fn width(characters: impl Iterator<Item = char>) -> usize {
    characters.map(|char| char.width().unwrap_or(0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_under_the_place() {
        let long = "x".repeat(100);
        let rows = [
            ("a | b", "|", "a | b", "  ^"),
            ("\ta\t| b", "|", " a | b", "   ^"),
            ("ä e\u{301} | b", "|", "ä e\u{301} | b", "    ^"),
            ("⚡ 見 | b", "|", "⚡ 見 | b", "      ^"),
            ("a 見る b", "見る", "a 見る b", "  ^^^^"),
            ("a | b \r", "|", "a | b", "  ^"),
            (
                "\u{1B}[2J | \u{202E}b 👩\u{200D}💻",
                "|",
                "\u{FFFD}[2J | \u{FFFD}b 👩\u{200D}💻",
                "     ^",
            ),
        ];
        for (line, place, text, caret) in rows {
            let from = line.find(place).unwrap();
            let expected = Excerpt { text: text.to_owned(), caret: caret.to_owned() };
            assert_eq!(excerpt(line, from, from + place.len()), expected, "{line}");
        }
        let line = format!("{long}|{long}");
        let cut = excerpt(&line, 100, 101);
        assert_eq!(cut.text, format!("…{}|{}…", &long[..BEFORE], &long[..AFTER]));
        assert_eq!(cut.caret, format!("{}^", " ".repeat(BEFORE + 1)));
        assert_eq!(excerpt("ab", 2, 2).caret, "  ^");
        // Both ends fall into an emoji of several characters.
        let emoji = format!("👩\u{200D}💻{}|{}👩\u{200D}💻", &long[..59], &long[..38]);
        let at = emoji.find('|').unwrap();
        let cut = excerpt(&emoji, at, at + 1);
        assert_eq!(cut.text, format!("…💻{}|{}👩…", &long[..59], &long[..38]));
        assert_eq!(cut.caret, format!("{}^", " ".repeat(62)));
    }
}
