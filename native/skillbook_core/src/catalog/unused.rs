//! Diagnostics for entries and indexes that are not used.

use std::sync::Arc;

use super::entry::{Entry, Named};
use super::finding::Finding;
use super::names::Names;
use super::precedence::{called, chosen_index, owner, Why};
use crate::page::diagnostic::{Code, Diagnostic, Severity};
use crate::source::{SourceKind, Trust};
use crate::tenant::Tenant;

/// The diagnostic for an entry that is not used, and the entry that is used instead.
pub(crate) fn diagnose(entry: &Entry, why: Why, by: &Entry) -> Diagnostic {
    let name = &*entry.name;
    match why {
        // A record with this entry's title as its name, or the other way round.
        Why::Shadowed if entry.name != by.name => {
            let same = called(entry)
                .find(|text| called(by).any(|other| other == *text))
                .unwrap_or_default();
            replaced(name, entry, by, &format!(": both are called `{same}`"))
        }
        // Its name is an alias of the other entry.
        Why::Refused if entry.name != by.name => {
            refused(format!("`{name}` is an alias of {}", by.document.path), entry)
        }
        why => lost(name, entry, why, by),
    }
}

/// The diagnostic for an item that lost to another one of its name.
fn lost<T: Named>(name: &str, item: &T, why: Why, by: &T) -> Diagnostic {
    let path = by.document().path.as_str();
    match why {
        Why::Duplicate => {
            let same = by.document().text == item.document().text;
            let what =
                if same { "this is the same document as" } else { "the name is already taken by" };
            let message = match item.source().kind {
                SourceKind::Stored => {
                    format!("`{name}`: another record has this name too, and is used")
                }
                _ => format!("`{name}`: {what} {path}, which is used"),
            };
            let hint = if same { "remove one of them" } else { "give one of them another name" };
            Diagnostic::new(Code::DuplicateName, Severity::Warning, message)
                .hint(hint)
                .in_file(item.document().path.as_str())
        }
        Why::Shadowed => replaced(name, item, by, ""),
        Why::Refused => refused(format!("`{name}` is the name of {path}"), item),
    }
}

/// The diagnostic for a working entry that is not used, because one that cannot run took its place.
pub(crate) fn instead_of_working(mut found: Diagnostic, by: &Entry) -> Diagnostic {
    found.severity = Severity::Error;
    found.message.push_str(", whose handler does not exist");
    found.hint(format!("correct the handler in {}, or remove the page", by.document.path))
}

fn replaced<T: Named>(name: &str, item: &T, by: &T, reason: &str) -> Diagnostic {
    let place = format!("{} from the source `{}`", by.document().path, by.source().name);
    // With globs on both sources, somebody asked for both entries by name and gets one: a warning.
    let chosen = item.source().has_globs() && by.source().has_globs();
    let severity = if chosen { Severity::Warning } else { Severity::Info };
    Diagnostic::new(Code::Shadowed, severity, format!("`{name}` is replaced by {place}{reason}"))
        .in_file(item.document().path.as_str())
}

/// The diagnostic for an item that may not take another one's place.
fn refused<T: Named>(reason: String, item: &T) -> Diagnostic {
    let yields = item.trust() > Trust::Low;
    let (why, hint) = match item.trust() < item.source().trust {
        _ if yields => ("it says `replaces: false`".to_owned(), "give it another name"),
        true => ("it was imported with low trust".to_owned(), "give it another name"),
        false => (
            format!("the source `{}` has low trust", item.source().name),
            "give it another name, or give the source more trust",
        ),
    };
    let message = format!("{reason}, and {why}, so this one is not used");
    let diagnostic = Diagnostic::new(Code::ReplacementRefused, Severity::Warning, message);
    diagnostic.hint(hint).in_file(item.document().path.as_str())
}

/// Diagnostics for the indexes that are not used where all are seen.
pub(crate) fn diagnose_indexes(entries: &[Arc<Entry>], names: &Names) -> Vec<Arc<Finding>> {
    let mut found = Vec::new();
    for domain in &names.domains {
        let name = &domain.name;
        let used =
            chosen_index(domain, |_| true, |index, why, by| found.push(lost(name, index, why, by)));
        let Some(index) = used else { continue };
        let owner = owner(&names.priorities, domain, |id| names.uses(id))
            .filter(|_| index.trust() == Trust::Low);
        if let Some(owner) = owner {
            let reason = format!(
                "the domain `{name}` has commands of the source `{}`",
                entries[owner.0 as usize].source.name
            );
            found.push(refused(reason, index));
        } else if !domain.entries.iter().any(|id| names.uses(*id)) {
            let message =
                format!("the domain `{name}` has an index but no commands, so it is not listed");
            let diagnostic = Diagnostic::new(Code::DomainWithoutCommands, Severity::Info, message);
            found.push(diagnostic.in_file(index.document.path.as_str()));
        }
    }
    // The domains of an unrestricted view may have commands of several tenants.
    found.into_iter().map(|found| Finding::trusted(found, &Tenant::All)).collect()
}
