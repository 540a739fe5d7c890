//! The difference between two lists of entries, and between two generations.
//!
//! ```
//! use skillbook_core::catalog::{changes::Changes, Catalog};
//!
//! let (old, new) = (Catalog::build(1, vec![]), Catalog::build(2, vec![]));
//! assert!(Changes::between_generations(&old, &new).is_empty());
//! ```

use std::cmp::Ordering;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::catalog::Catalog;
use super::entry::Entry;

/// The difference between two lists of entries. Each part is in the order of names.
#[derive(Debug, Default)]
pub struct Changes<'a> {
    /// New entries.
    pub added: Vec<&'a Arc<Entry>>,
    /// Entries that have changed, in their new version.
    pub changed: Vec<&'a Arc<Entry>>,
    /// Entries that are gone, in their old version.
    pub removed: Vec<&'a Arc<Entry>>,
}

impl<'a> Changes<'a> {
    /// Compares two generations: the entries that are used where all are seen, and under `changed`
    /// also the names whose unused entries differ. Another profile may use those.
    pub fn between_generations(old: &'a Catalog, new: &'a Catalog) -> Changes<'a> {
        // The choice of an unrestricted view comes first, because only its entries can be called
        // added or removed.
        let mut changes = Changes::between(old.used(), new.used());
        let mut known: FxHashSet<&str> = [&changes.added, &changes.changed, &changes.removed]
            .iter()
            .flat_map(|entries| entries.iter().map(|entry| &*entry.name))
            .collect();
        // An entry that is replaced for us may be the one that another profile uses. Its name
        // counts as changed, unless it is listed already.
        let all = Changes::between(old.entries(), new.entries());
        let count = changes.changed.len();
        let differ = [all.added, all.changed, all.removed].into_iter().flatten();
        changes.changed.extend(differ.filter(|entry| known.insert(&entry.name)));
        if changes.changed.len() > count {
            changes.changed.sort_by(|a, b| a.name.cmp(&b.name));
        }
        changes
    }

    /// Compares two lists in the order of their names. Several entries of one name are compared in
    /// their order.
    pub fn between(
        old: impl IntoIterator<Item = &'a Arc<Entry>>,
        new: impl IntoIterator<Item = &'a Arc<Entry>>,
    ) -> Changes<'a> {
        let (mut old, mut new) = (old.into_iter().peekable(), new.into_iter().peekable());
        let mut changes = Changes::default();
        loop {
            let order = match (old.peek(), new.peek()) {
                (None, None) => return changes,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                // Most entries are identical; then no name needs to be read.
                (Some(before), Some(after)) if Arc::ptr_eq(before, after) => Ordering::Equal,
                (Some(before), Some(after)) => before.name.cmp(&after.name),
            };
            match order {
                Ordering::Less => changes.removed.extend(old.next()),
                Ordering::Greater => changes.added.extend(new.next()),
                Ordering::Equal => {
                    if let (Some(before), Some(after)) = (old.next(), new.next()) {
                        if !same(before, after) {
                            changes.changed.push(after);
                        }
                    }
                }
            }
        }
    }

    /// Whether there is no difference.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }
}

/// Whether two entries of one name are the same for every reader.
fn same(a: &Arc<Entry>, b: &Arc<Entry>) -> bool {
    // Most are one object. Reading it takes longer than all else, since it is not in the cache.
    if Arc::ptr_eq(a, b) {
        return true;
    }
    // A file that was read again is another object, so texts are compared too.
    let documents = Arc::ptr_eq(&a.document, &b.document) || a.document.is_same(&b.document);
    let rest = |entry: &Entry| (entry.kind, entry.selection, entry.trust);
    documents
        && rest(a) == rest(b)
        && a.labels == b.labels
        && a.files == b.files
        && a.tenant() == b.tenant()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::assemble::assemble;
    use crate::catalog::Catalog;
    use crate::page::document::Document;
    use crate::source::Source;

    fn catalog(labels: &[&str], files: &[(&str, &str)]) -> Catalog {
        let labels = labels.iter().map(|label| label.to_string()).collect();
        let source = Arc::new(Source { root: "/s".into(), labels, ..Source::default() });
        let document = |(path, body): &(&str, &str)| {
            let name = path.trim_end_matches("/SKILL.md");
            let text = format!("---\nname: {name}\ndescription: d\n---\n{body}");
            Arc::new(Document::parse("/s", path, text.as_bytes()))
        };
        let documents =
            files.iter().filter(|(path, _)| path.ends_with(".md")).map(document).collect();
        let files = files.iter().map(|(path, _)| path.to_string()).collect();
        Catalog::build(1, vec![assemble(&source, documents, files)])
    }

    fn names<'a>(entries: &[&'a Arc<Entry>]) -> Vec<&'a str> {
        entries.iter().map(|entry| &*entry.name).collect()
    }

    #[test]
    fn lists_the_differences() {
        let old = catalog(&[], &[("a/SKILL.md", "1"), ("b/SKILL.md", "1"), ("c/SKILL.md", "1")]);
        type Row<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], [&'a [&'a str]; 3]);
        let rows: [Row; 6] = [
            (
                &[],
                &[("a/SKILL.md", "1"), ("b/SKILL.md", "1"), ("c/SKILL.md", "1")],
                [&[], &[], &[]],
            ),
            (
                &[],
                &[("a/SKILL.md", "1"), ("b/SKILL.md", "2"), ("c/SKILL.md", "1")],
                [&[], &["b"], &[]],
            ),
            (&[], &[("b/SKILL.md", "1")], [&[], &[], &["a", "c"]]),
            (
                &[],
                &[("aa/SKILL.md", "1"), ("b/SKILL.md", "1"), ("d/SKILL.md", "1")],
                [&["aa", "d"], &[], &["a", "c"]],
            ),
            (
                &[],
                &[("a/SKILL.md", "1"), ("a/x.txt", ""), ("b/SKILL.md", "1"), ("c/SKILL.md", "1")],
                [&[], &["a"], &[]],
            ),
            (&["l"], &[("a/SKILL.md", "1"), ("b/SKILL.md", "1")], [&[], &["a", "b"], &["c"]]),
        ];
        for (labels, files, [added, changed, removed]) in rows {
            let new = catalog(labels, files);
            let changes = Changes::between(old.entries(), new.entries());
            assert_eq!(names(&changes.added), added, "{files:?}");
            assert_eq!(names(&changes.changed), changed, "{files:?}");
            assert_eq!(names(&changes.removed), removed, "{files:?}");
            assert_eq!(changes.is_empty(), added.len() + changed.len() + removed.len() == 0);
        }
    }
}
