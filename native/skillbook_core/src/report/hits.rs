//! The results of a search.

use serde_json::json;

use super::{Printed, Style, Terminal};
use crate::hidden::line;
use crate::view::search::Hit;
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
        let (snippet, mut shown, mut done) = (&row.snippet, String::new(), 0);
        for (start, length) in &row.highlights {
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

/// A 32-bit score as a 64-bit one that prints without extra digits.
pub fn score(hit: &Hit) -> f64 {
    (f64::from(hit.score) * 1e3).round() / 1e3
}

fn fields(view: &View, hit: &Hit) -> Option<serde_json::Value> {
    let entry = view.entry(hit.id)?;
    Some(json!({
        "name": &*entry.name,
        "kind": entry.kind.as_str(),
        "title": entry.title,
        "description": entry.description(),
        "score": score(hit),
        "snippet": hit.snippet.text,
        "highlights": hit.snippet.highlights,
    }))
}

fn row(view: &View, hit: &Hit) -> Option<Row> {
    let entry = view.entry(hit.id)?;
    Some(Row {
        name: entry.name.to_string(),
        more: entry.kind.as_str().to_owned(),
        score: score(hit),
        snippet: hit.snippet.text.clone(),
        highlights: hit.snippet.highlights.clone(),
    })
}
