//! The changes since a prompt was made, for a conversation that keeps its first prompt.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalog::changes::Changes;
use crate::catalog::entry::Entry;
use crate::hidden::reveal;
use crate::prompt::foreign::push_line;
use crate::prompt::notes::title;
use crate::view::domain::DomainView;
use crate::view::View;

/// The maximum number of lines in each part.
const LINES: usize = 20;

/// A name and its description.
type Line<'a> = (&'a str, String);

impl View {
    /// Describes the entries that are new, changed or removed since an older view of the same
    /// profile; `""` if there are none. Only entries that models may see count. A domain counts as
    /// changed if its index changes; its commands count by themselves.
    pub fn news_since(&self, old: &View) -> String {
        let listed = |view: &View| {
            view.listed().map(|(_, entry)| entry.clone()).collect::<Vec<Arc<Entry>>>()
        };
        let (before, after) = (listed(old), listed(self));
        let entries = Changes::between(&before, &after);
        let [mut added, mut changed, mut removed] =
            [(self, &entries.added), (self, &entries.changed), (old, &entries.removed)].map(
                |(view, entries)| {
                    entries.iter().map(|entry| line(view, entry)).collect::<Vec<Line>>()
                },
            );

        let (before, after) = (old.announced_domains(), self.announced_domains());
        for (name, index) in &after {
            match before.get(name) {
                // A domain without an index appears through its commands.
                None if index.is_some() => added.push((name, self.described(name))),
                Some(known) if known != index => changed.push((name, self.described(name))),
                _ => {}
            }
        }
        let gone =
            before.iter().filter(|(name, index)| index.is_some() && !after.contains_key(*name));
        removed.extend(gone.map(|(name, _)| (*name, String::new())));

        let mut out = String::new();
        for (heading, mut lines, described) in
            [("New:", added, true), ("Changed:", changed, true), ("Removed:", removed, false)]
        {
            if lines.is_empty() {
                continue;
            }
            lines.sort();
            out.push_str(if out.is_empty() {
                "# Changes in the list of `get_skill`\n\n"
            } else {
                "\n"
            });
            out.push_str(heading);
            out.push_str("\n\n");
            for (name, about) in lines.iter().take(LINES) {
                push(&mut out, name, if described { about } else { "" });
            }
            if lines.len() > LINES {
                out.push_str(&format!("- and {} more\n", lines.len() - LINES));
            }
        }
        reveal(&mut out, 0);
        out
    }

    /// The domains that models may see, each with the description and the text of its index.
    fn announced_domains(&self) -> BTreeMap<&str, Option<[String; 2]>> {
        let index = |domain: &DomainView| {
            let index = domain.index()?;
            let description = index.fields().description.clone().unwrap_or_default();
            let written = !index.document.body().trim().is_empty();
            Some([description, if written { domain.body() } else { String::new() }])
        };
        self.domains()
            .filter(DomainView::is_listed)
            .map(|domain| (domain.name(), index(&domain)))
            .collect()
    }

    fn described(&self, domain: &str) -> String {
        self.domain(domain).map(|domain| domain.description()).unwrap_or_default()
    }
}

fn line<'a>(view: &View, entry: &'a Entry) -> Line<'a> {
    let about = match entry.description() {
        "" => title(entry),
        description => description,
    };
    (view.listed_name(entry), about.to_owned())
}

fn push(out: &mut String, name: &str, about: &str) {
    out.push_str("- ");
    push_line(out, name);
    if !about.is_empty() && about != name {
        out.push_str(": ");
        push_line(out, about);
    }
    out.push('\n');
}
