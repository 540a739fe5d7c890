//! Shows a place in a line by carets below it, as compilers do.

use unicode_width::UnicodeWidthChar;

/// The number of characters of a long line that are shown before the place, and of the place and
/// after it.
const BEFORE: usize = 60;
const AFTER: usize = 40;

/// A line, or the part of a long line around a place, and the carets below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The line. Tabs and other control characters become spaces, and an ellipsis marks omitted
    /// parts.
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
    let before: Vec<char> = line[..from].chars().collect();
    let place: Vec<char> = line[from..to].chars().take(AFTER).collect();
    let after: Vec<char> = line[to..].chars().take(AFTER + 1).collect();
    let skipped = before.len().saturating_sub(BEFORE);
    let cut = after.len() > AFTER || place.len() < line[from..to].chars().take(AFTER + 1).count();
    let shown = |char: &char| if char.is_control() { ' ' } else { *char };

    let mut text = String::new();
    if skipped > 0 {
        text.push('…');
    }
    text.extend(before[skipped..].iter().map(shown));
    let indent = width(text.chars());
    text.extend(place.iter().map(shown));
    if !cut || place.len() < AFTER {
        text.extend(after.iter().take(AFTER).map(shown));
    }
    let mut text = text.trim_end().to_owned();
    if cut {
        text.push('…');
    }
    let carets = width(place.iter().map(shown)).max(1);
    Excerpt { text, caret: format!("{}{}", " ".repeat(indent), "^".repeat(carets)) }
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
    }
}
