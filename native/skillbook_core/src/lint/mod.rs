//! Advice for authors beyond the diagnostics of loading: commands in pages that do not run,
//! undocumented flags, hidden characters, texts that are too long for models.
//!
//! Lint reads through a view, so it reports nothing about hidden entries, and a command that the
//! view hides does not exist. It runs on request, not at load.
//!
//! ```
//! use std::sync::Arc;
//! use skillbook_core::catalog::{assemble::assemble, Catalog};
//! use skillbook_core::{lint, page::document::Document, source::Source};
//! use skillbook_core::view::{CachedCatalog, Profile, View};
//!
//! let source = Arc::new(Source { root: "/s".into(), ..Source::default() });
//! let page = b"---\nname: mail.send\ndescription: Sends a message to people\n---\n\
//!     ## Usage\n\nmail.sned --to <name>\n";
//! let document = Arc::new(Document::parse("/s", "mail/send.md", page));
//! let catalog = Catalog::build(1, vec![assemble(&source, vec![document], vec![])]);
//! let view = View::new(Arc::new(CachedCatalog::new(catalog)), &Profile::unrestricted()).unwrap();
//!
//! let found = lint::lint(&view);
//! assert_eq!(found[0].message, "there is no command `mail.sned`");
//! assert_eq!(found[0].hint.as_deref(), Some("did you mean `mail.send`?"));
//! ```

mod commands;
mod examples;
mod hidden;
mod page;
pub mod spec;

use crate::page::diagnostic::{limit, Diagnostic};
use crate::view::View;

/// Checks the pages that a view shows. The findings are sorted by path and line.
pub fn lint(view: &View) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (_, entry) in view.entries() {
        page::entry(view, entry, &mut found);
        hidden::document(&entry.document, &mut found);
    }
    for domain in view.domains() {
        // A document that is both a skill and an index was checked as a skill above.
        if let Some(index) = domain.index().filter(|index| index.fields().name.is_none()) {
            page::commands(view, &index.document, &mut found);
            hidden::document(&index.document, &mut found);
        }
    }
    examples::examples(view, &mut found);
    found.sort_by_cached_key(|diagnostic| {
        (diagnostic.path.clone(), diagnostic.line, diagnostic.column, diagnostic.code)
    });
    limit(&mut found);
    found
}
