//! Tenants: to whom a document belongs, and of whom a profile reads documents.
//!
//! ```
//! use skillbook_core::tenant::Tenant;
//!
//! let acme = Tenant::One("acme".into());
//! assert!(acme.reads(&Tenant::Common) && acme.reads(&acme));
//! assert!(!acme.reads(&Tenant::One("globex".into())));
//! assert!(!Tenant::Common.reads(&acme) && Tenant::All.reads(&acme));
//! ```

use std::sync::Arc;

/// The tenant of a document or of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Tenant {
    /// A document for all tenants; a profile that reads only such documents.
    #[default]
    Common,
    /// A document of one tenant; a profile that reads it, and those for all tenants.
    One(Arc<str>),
    /// A document whose tenant is not known; a profile that reads the documents of every tenant.
    All,
}

impl Tenant {
    /// Whether a profile of this tenant may read the documents of another.
    pub fn reads(&self, other: &Tenant) -> bool {
        match (self, other) {
            (Tenant::All, _) | (_, Tenant::Common) => true,
            (Tenant::One(own), Tenant::One(other)) => own == other,
            (_, Tenant::All) | (Tenant::Common, Tenant::One(_)) => false,
        }
    }

    /// The name of the one tenant; `None` for the others.
    pub fn name(&self) -> Option<&str> {
        match self {
            Tenant::One(name) => Some(name),
            Tenant::Common | Tenant::All => None,
        }
    }
}

impl From<Option<String>> for Tenant {
    /// Without a name, a document is common.
    fn from(name: Option<String>) -> Tenant {
        match name.filter(|name| !name.is_empty()) {
            Some(name) => Tenant::One(name.into()),
            None => Tenant::Common,
        }
    }
}
