//! The results of a search.

use serde_json::json;

use super::{Printed, Style, Terminal};
use crate::hidden::line;
use crate::view::search::{decimals, Hit};
use crate::view::View;

/// A hit as people read it.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The name of the entry, or the path of a note.
    pub name: String,
    /// The kind of the entry, or the title of a note.
    pub more: String,
    /// The score.
    pub score: f64,
    /// The part that matches.
    pub snippet: String,
    /// The words in it that match, as start and length in bytes.
    pub highlights: Vec<(usize, usize)>,
}

/// Entries that a search found, best first, as text or as JSON. Without any, similar names.
pub fn hits(view: &View, query: &str, hits: &[Hit], as_json: bool, terminal: Terminal) -> Printed {
    let printed = match (as_json, hits) {
        (true, _) => {
            let fields = hits.iter().filter_map(|hit| fields(view, hit)).collect();
            Printed::text(super::json(fields))
        }
        (false, []) => Printed::default(),
        (false, hits) => {
            let rows: Vec<Row> = hits.iter().filter_map(|hit| row(view, hit)).collect();
            Printed::text(text(&rows, terminal))
        }
    };
    if !hits.is_empty() {
        return printed;
    }
    let similar = match view.suggest(query).join(", ") {
        none if none.is_empty() => none,
        names => format!("; similar names: {names}"),
    };
    printed.failing(format!("nothing found for `{query}`{similar}"))
}

/// The hits as text, two lines for each.
pub fn text(rows: &[Row], terminal: Terminal) -> String {
    let text = |row: &Row| {
        let (snippet, highlights) = &unmarked(&row.snippet, &row.highlights);
        let (mut shown, mut done) = (String::new(), 0);
        for (start, length) in highlights {
            shown += &line(&snippet[done..*start]);
            shown += &terminal.style(Style::Bright, &line(&snippet[*start..start + length]));
            done = start + length;
        }
        shown += &line(&snippet[done..]);
        let name = line(&row.name);
        let more = format!("{}  {:.3}", line(&row.more), row.score);
        let (name, more) =
            (terminal.style(Style::Bright, &name), terminal.style(Style::Faint, &more));
        format!("{name}  {more}\n  {shown}")
    };
    rows.iter().map(text).collect::<Vec<_>>().join("\n")
}

/// A part of a page without the marks of Markdown: those of headings, of code and of strong text,
/// and the targets of links. The highlights move with the text.
fn unmarked(text: &str, highlights: &[(usize, usize)]) -> (String, Vec<(usize, usize)>) {
    let mut out = String::with_capacity(text.len());
    // The offset in `out` of each byte.
    let mut places = Vec::with_capacity(text.len() + 1);
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let mark = mark(&text[..at], &text[at..]);
        let length = if mark > 0 { mark } else { c.len_utf8() };
        for place in 0..length {
            places.push(out.len() + if mark > 0 { 0 } else { place });
        }
        if mark == 0 {
            out.push(c);
        }
        at += length;
    }
    places.push(out.len());
    let moved = |(start, length): &(usize, usize)| {
        let (start, end) = (places[*start], places[start + length]);
        (end > start).then_some((start, end - start))
    };
    let highlights = highlights.iter().filter_map(moved).collect();
    (out, highlights)
}

/// The length of the mark that a text begins with, if it is one.
fn mark(before: &str, text: &str) -> usize {
    let hashes = text.bytes().take_while(|byte| *byte == b'#').count();
    let starts = before.is_empty() || before.ends_with([' ', '\u{2026}']);
    let is_link = |text: &str| text.find("](").is_some_and(|end| !text[..end].contains(['[', ']']));
    match text.as_bytes()[0] {
        b'#' if starts && hashes <= 6 && text[hashes..].starts_with(' ') => hashes + 1,
        b'`' => text.bytes().take_while(|byte| *byte == b'`').count(),
        b'*' if text.starts_with("**") => 2,
        b'[' if is_link(&text[1..]) => 1,
        b']' if text.starts_with("](") => {
            text.find(')').map_or(0, |end| if text[..end].contains(' ') { 0 } else { end + 1 })
        }
        _ => 0,
    }
}

fn fields(view: &View, hit: &Hit) -> Option<serde_json::Value> {
    let entry = view.entry(hit.id)?;
    Some(json!({
        "name": &*entry.name,
        "kind": entry.kind.as_str(),
        "title": entry.title,
        "description": entry.description(),
        "score": decimals(hit.score, 3),
        "snippet": hit.snippet.text,
        "highlights": hit.snippet.highlights,
    }))
}

fn row(view: &View, hit: &Hit) -> Option<Row> {
    let entry = view.entry(hit.id)?;
    Some(Row {
        name: entry.name.to_string(),
        more: entry.kind.as_str().to_owned(),
        score: decimals(hit.score, 3),
        snippet: hit.snippet.text.clone(),
        highlights: hit.snippet.highlights.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::unmarked;

    #[test]
    fn marks_are_left_out() {
        let rows: [(&str, &str, &str); 8] = [
            ("# notes.add ## Usage `add`", "notes.add Usage add", "Usage"),
            ("\u{2026}a **bold** plan", "\u{2026}a bold plan", "plan"),
            ("see [the docs](https://x.y/z) now", "see the docs now", "now"),
            ("a.b [--query <text>] [--x]", "a.b [--query <text>] [--x]", "text"),
            ("C# and #1 of 2 * 3", "C# and #1 of 2 * 3", "of"),
            ("a ](b c) d", "a ](b c) d", "d"),
            ("``` é ``` é", " é  é", "é"),
            ("[a", "[a", "a"),
        ];
        for (text, expected, word) in rows {
            let highlight = (text.rfind(word).unwrap(), word.len());
            let moved = (expected.rfind(word).unwrap(), word.len());
            assert_eq!(unmarked(text, &[highlight]), (expected.to_owned(), vec![moved]), "{text}");
        }
    }
}
