//! What is new since a prompt was made, for a model that keeps the prompt.

use std::sync::Arc;

use crate::changes::Changes;
use crate::entry::{push_line, Entry};
use crate::prompt::notes::title;
use crate::view::View;

/// How many lines each part has.
const LINES: usize = 20;

impl View {
    /// What a model is told of now and was not told of through an older view of the same profile, what differs, and what
    /// is gone; `""` if all is the same.
    pub fn news_since(&self, old: &View) -> String {
        let listed = |view: &View| view.listed().map(|(_, entry)| entry.clone()).collect::<Vec<Arc<Entry>>>();
        let (old, new) = (listed(old), listed(self));
        let changes = Changes::between(&old, &new);
        let mut out = String::new();
        for (heading, entries, described) in
            [("New:", &changes.added, true), ("Changed:", &changes.changed, true), ("Gone:", &changes.removed, false)]
        {
            if entries.is_empty() {
                continue;
            }
            out.push_str(if out.is_empty() { "# Changes of what `get_skill` lists\n\n" } else { "\n" });
            out.push_str(heading);
            out.push_str("\n\n");
            for entry in entries.iter().take(LINES) {
                push_entry(&mut out, entry, described);
            }
            if entries.len() > LINES {
                out.push_str(&format!("- and {} more\n", entries.len() - LINES));
            }
        }
        out
    }
}

fn push_entry(out: &mut String, entry: &Entry, described: bool) {
    out.push_str("- ");
    push_line(out, &entry.name);
    let about = match entry.description() {
        "" => title(entry),
        description => description,
    };
    if described && about != &*entry.name {
        out.push_str(": ");
        push_line(out, about);
    }
    out.push('\n');
}
