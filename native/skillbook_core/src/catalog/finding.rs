//! A diagnostic and the entries that it is about.

use std::sync::Arc;

use super::entry::Entry;
use crate::page::diagnostic::Diagnostic;

/// A diagnostic and the entries it tells of: who may not see one of them may not see it either.
#[derive(Debug, Clone)]
pub struct Finding {
    /// What was found.
    pub diagnostic: Diagnostic,
    /// The entries it tells of; if there are none, it is for unrestricted views only.
    pub about: Vec<Arc<Entry>>,
}

impl Finding {
    /// A finding for unrestricted views only.
    pub fn trusted(diagnostic: Diagnostic) -> Arc<Finding> {
        Arc::new(Finding { diagnostic, about: Vec::new() })
    }
}
