//! Checks the requests of `examples`: whether search leads from each to its entry, and whether two
//! of them contradict each other.

use rustc_hash::FxHashMap;

use crate::catalog::entry::Entry;
use crate::catalog::EntryId;
use crate::page::diagnostic::{Code, Diagnostic, Severity};
use crate::page::fields::examples::{Example, EXAMPLES};
use crate::search::words::{stemmed, words};
use crate::view::search::Query;
use crate::view::View;

/// The number of entries before its own for which an example is lost: a model is seldom shown more.
const BEFORE: usize = 3;

/// The number of words that a message names for each of them.
const WORDS: usize = 3;

/// The longest part of an example in a message, in characters.
const EXCERPT: usize = 80;

/// Checks the examples of all entries that a view shows.
pub(super) fn examples(view: &View, found: &mut Vec<Diagnostic>) {
    let mut all: FxHashMap<String, Vec<(EntryId, &Entry, &Example)>> = FxHashMap::default();
    for (id, entry) in view.entries() {
        for example in &entry.fields().examples {
            all.entry(key(&example.text)).or_default().push((id, &**entry, example));
            if !example.not && view.lists(id) {
                found.extend(lost(view, id, entry, example));
            }
        }
    }
    // In the order of the entries, since that of a map is random.
    for (id, entry) in view.entries() {
        let mut own: Vec<&Example> = Vec::new();
        for example in &entry.fields().examples {
            let same = all.get(&key(&example.text)).map_or(&[][..], Vec::as_slice);
            found.extend(ambiguous(id, entry, example, &own, same));
            own.push(example);
        }
    }
}

/// The words of a request, however it is written.
fn key(text: &str) -> String {
    words(text).map(|place| stemmed(&text[place]) + " ").collect()
}

fn lost(view: &View, id: EntryId, entry: &Entry, example: &Example) -> Option<Diagnostic> {
    let hits = view.search(&Query { limit: BEFORE, ..Query::new(&example.text) });
    let before: Vec<EntryId> = hits.iter().map(|hit| hit.id).collect();
    if before.len() < BEFORE || before.contains(&id) {
        return None;
    }
    let pulls = view.why(&example.text, &before);
    let named = before.iter().zip(pulls).filter_map(|(other, pulls)| {
        let words: Vec<_> = pulls.into_iter().take(WORDS).map(|pull| pull.word).collect();
        let name = &view.entry(*other)?.name;
        Some(if words.is_empty() {
            format!("`{name}`")
        } else {
            format!("`{name}` ({})", words.join(", "))
        })
    });
    let message = format!(
        "expected `{}` among the first {BEFORE} for its example \"{}\", got {}",
        entry.name,
        excerpt(&example.text),
        named.collect::<Vec<_>>().join(", ")
    );
    let hint = match &view.why(&example.text, &[id])[..] {
        [own] if own.is_empty() => {
            "no word of the request leads here; say in the description what people ask for, in \
             their words"
        }
        _ => {
            "say in the description what people ask for, in their words, or say less in the others"
        }
    };
    let diagnostic = Diagnostic::new(Code::ExamplesLost, Severity::Info, message).hint(hint);
    Some(at(entry, example, diagnostic))
}

/// The finding for an example that is written elsewhere too. `own` are those above it on its page.
fn ambiguous(
    id: EntryId,
    entry: &Entry,
    example: &Example,
    own: &[&Example],
    same: &[(EntryId, &Entry, &Example)],
) -> Option<Diagnostic> {
    let text = excerpt(&example.text);
    let wanted = key(&example.text);
    let (message, hint) = match own.iter().find(|above| key(&above.text) == wanted) {
        Some(above) if above.not != example.not => (
            format!(
                "the example \"{text}\" is also written {} `not`",
                if above.not { "after" } else { "without" }
            ),
            "keep one of them",
        ),
        Some(_) => (format!("the example \"{text}\" is written twice"), "keep one of them"),
        None if example.not => return None,
        None => {
            let (_, other, _) =
                same.iter().find(|(other, _, example)| *other != id && !example.not)?;
            let message = format!("the example \"{text}\" is also one of `{}`", other.name);
            (message, "keep it where it belongs; in the other it may be after `not`")
        }
    };
    let diagnostic = Diagnostic::new(Code::ExampleAmbiguous, Severity::Warning, message).hint(hint);
    Some(at(entry, example, diagnostic))
}

fn excerpt(text: &str) -> String {
    match text.chars().count() > EXCERPT {
        true => text.chars().take(EXCERPT).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

fn at(entry: &Entry, example: &Example, diagnostic: Diagnostic) -> Diagnostic {
    let document = &entry.document;
    document.locate(document.at_item(EXAMPLES, &example.text, diagnostic))
}
