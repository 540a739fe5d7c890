//! A diagnostic and the entries that it is about.

use std::sync::Arc;

use super::entry::Entry;
use crate::page::diagnostic::Diagnostic;

/// A diagnostic and the entries that it is about. A reader sees it only if all of them are visible:
/// its text contains their names and paths.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The diagnostic.
    pub diagnostic: Diagnostic,
    /// The entries that it is about. If there are none (it is about a file that is no entry, say),
    /// only unrestricted views see it.
    pub about: Vec<Arc<Entry>>,
}

impl Finding {
    /// A finding that only unrestricted views see.
    pub fn trusted(diagnostic: Diagnostic) -> Arc<Finding> {
        Arc::new(Finding { diagnostic, about: Vec::new() })
    }
}
