//! Decodes profiles and lists of names.

use rustler::{Atom, NifResult, Term};
use skillbook_core::view::Profile;

mod atoms {
    rustler::atoms! { all }
}

/// A profile from its id and those that it acts for, its grants, its lists of globs and its
/// services.
pub fn profile(
    mut ids: Vec<String>,
    grants: Term,
    skills: Vec<Vec<String>>,
    services: Vec<String>,
) -> NifResult<Profile> {
    let others = ids.split_off(1.min(ids.len()));
    let id = ids.pop().ok_or(rustler::Error::BadArg)?;
    Ok(Profile { id, others, grants: list_or_all(grants)?, skills, services })
}

/// `:all` becomes `None`.
pub fn list_or_all(term: Term) -> NifResult<Option<Vec<String>>> {
    match term.decode::<Atom>() {
        Ok(atom) if atom == atoms::all() => Ok(None),
        _ => term.decode().map(Some),
    }
}
