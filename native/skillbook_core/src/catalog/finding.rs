//! A diagnostic and the entries that it is about.

use std::sync::Arc;

use super::entry::Entry;
use crate::page::diagnostic::Diagnostic;
use crate::tenant::Tenant;

/// A diagnostic and the entries that it is about. A reader sees it only if all of them are visible:
/// its text contains their names and paths.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The diagnostic.
    pub diagnostic: Diagnostic,
    /// The entries that it is about. If there are none (it is about a file that is no entry, say),
    /// only views with all grants and all names see it.
    pub about: Vec<Arc<Entry>>,
    /// Whose views see it.
    pub tenant: Tenant,
}

impl Finding {
    /// A finding that only views with all grants and all names see, of those that read the tenant.
    pub fn trusted(diagnostic: Diagnostic, tenant: &Tenant) -> Arc<Finding> {
        Arc::new(Finding { diagnostic, about: Vec::new(), tenant: tenant.clone() })
    }
}
