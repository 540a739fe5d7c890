//! The texts of a document that an embedding model reads: pieces of about a thousand bytes, which
//! begin at headings where possible, each below the document's titles.
//!
//! Models read a few hundred words and make one vector of them. A long text would become the
//! average of its subjects, near to none of them.

use crate::search::embedded::digest_of;
use crate::search::vectors::Digest;

/// The length of a piece in bytes, and of the titles above it.
const BYTES: usize = 1_000;
/// A heading begins a new piece after so many bytes, so that short sections share one.
const SHORT: usize = 300;
/// The maximum number of pieces of a document. The rest of its text has no vector.
const MAX_CHUNKS: usize = 16;

/// The texts of a document, in their order. A document without a word may have none.
///
/// ```
/// use skillbook_core::search::rows::chunks;
///
/// let chunks = chunks(&["Tea".to_owned()], "Green tea,\nbrewed short.\n");
/// assert_eq!(chunks, ["Tea\nGreen tea,\nbrewed short."]);
/// ```
pub fn chunks(titles: &[String], content: &str) -> Vec<String> {
    let mut different: Vec<&str> = Vec::new();
    for title in titles.iter().map(|title| title.trim()) {
        if !title.is_empty() && !different.contains(&title) {
            different.push(title);
        }
    }
    let titles = different.join(", ");
    let head = &titles[..floor(&titles, BYTES)];
    let mut texts: Vec<String> = pieces(content)
        .take(MAX_CHUNKS)
        .map(|piece| if head.is_empty() { piece.to_owned() } else { format!("{head}\n{piece}") })
        .collect();
    if texts.is_empty() && !head.is_empty() {
        texts.push(head.to_owned());
    }
    texts
}

/// The digests of [`chunks`].
pub(super) fn digests(titles: &[String], content: &str) -> Vec<Digest> {
    chunks(titles, content).iter().map(|text| digest_of(text)).collect()
}

/// The pieces of a text, without blank ones.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    let pieces = std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, after) = rest.split_at(end(rest));
        rest = after;
        Some(piece.trim())
    });
    pieces.filter(|piece| !piece.is_empty())
}

/// The end of the first piece of a text that is not empty.
fn end(text: &str) -> usize {
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        let is_heading = line.trim_start_matches('#').starts_with(' ') && line.starts_with('#');
        if end > 0 && (end + line.len() > BYTES || is_heading && end >= SHORT) {
            return end;
        }
        end += line.len();
        if end > BYTES {
            // One line, which ends between two words if it has any.
            let most = floor(text, BYTES);
            let blank = text[..most].rfind(char::is_whitespace).filter(|at| *at > 0);
            return blank.unwrap_or(most);
        }
    }
    end
}

/// The largest place between two characters up to a number of bytes.
fn floor(text: &str, bytes: usize) -> usize {
    (0..=bytes.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(titles: &[&str], content: &str) -> Vec<String> {
        let titles: Vec<_> = titles.iter().map(|title| title.to_string()).collect();
        chunks(&titles, content)
    }

    #[test]
    fn pieces_begin_at_headings_and_lines() {
        let line = |mark: char| format!("{}\n", mark.to_string().repeat(399));
        let [a, b, c] = ['a', 'b', 'c'].map(line);
        let rows: [(&[&str], String, &[&str]); 8] = [
            (&[], String::new(), &[]),
            (&["T", " T ", "", "U"], " \n".into(), &["T, U"]),
            (&["T"], "short\n".into(), &["T\nshort"]),
            (&[], "# A\n\na\n\n# B\n\nb".into(), &["# A\n\na\n\n# B\n\nb"]),
            // A section of some length is a piece of its own.
            (&["T"], format!("{a}# B\n{b}"), &["T\n[a]", "T\n# B\n[b]"]),
            (&[], format!("{a}#hash\n"), &["[a]\n#hash"]),
            // Lines up to the size of a piece stay together.
            (&[], format!("{a}{b}{c}"), &["[a]\n[b]", "[c]"]),
            (&[], format!("{} {}", "x".repeat(998), "y".repeat(5)), &["[x]", "yyyyy"]),
        ];
        for (titles, content, expected) in rows {
            let short = |text: String| {
                ["a", "b", "c", "x"].iter().fold(text, |text, mark| {
                    [998, 399].iter().fold(text, |text, count| {
                        text.replace(&mark.repeat(*count), &format!("[{mark}]"))
                    })
                })
            };
            let found: Vec<_> = of(titles, &content).into_iter().map(short).collect();
            assert_eq!(found, expected, "{content:?}");
        }
    }

    #[test]
    fn a_long_text_has_sixteen_pieces() {
        assert_eq!(of(&["T"], &"word ".repeat(10_000)).len(), MAX_CHUNKS);
        assert_eq!(of(&["é".repeat(800).as_str()], "")[0].len(), BYTES);
    }

    proptest! {
        #[test]
        fn pieces_have_all_of_the_text_and_a_limited_size(
            text in "([a-c]{1,90}|[# \n]|é|日|\u{85}){0,400}",
        ) {
            let found: Vec<_> = pieces(&text).collect();
            let solid =
                |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(solid(&found.concat()), solid(&text));
            prop_assert!(found.iter().all(|piece| piece.len() <= BYTES && !piece.is_empty()));
        }
    }
}
