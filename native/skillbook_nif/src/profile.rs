//! Decodes profiles and lists of names.

use rustler::{Atom, NifResult, Term};
use skillbook_core::tenant::Tenant;
use skillbook_core::view::Profile;

mod atoms {
    rustler::atoms! { all }
}

/// A profile from its id and those that it acts for, its tenant, its grants, its lists of globs
/// and its services.
pub fn profile(
    mut ids: Vec<String>,
    tenant: Term,
    grants: Term,
    skills: Vec<Vec<String>>,
    services: Vec<String>,
) -> NifResult<Profile> {
    let others = ids.split_off(1.min(ids.len()));
    let id = ids.pop().ok_or(rustler::Error::BadArg)?;
    let tenant = self::tenant(tenant)?;
    Ok(Profile { id, others, tenant, grants: list_or_all(grants)?, skills, services })
}

/// `nil`, a name, or `:all`.
pub fn tenant(term: Term) -> NifResult<Tenant> {
    match term.decode::<Atom>() {
        Ok(atom) if atom == atoms::all() => Ok(Tenant::All),
        _ => term.decode::<Option<String>>().map(Tenant::from),
    }
}

/// `:all` becomes `None`.
pub fn list_or_all(term: Term) -> NifResult<Option<Vec<String>>> {
    match term.decode::<Atom>() {
        Ok(atom) if atom == atoms::all() => Ok(None),
        _ => term.decode().map(Some),
    }
}
