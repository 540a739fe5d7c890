//! Handlers that cannot run: the diagnostics of each view, and no offer to a model.

mod common;

use std::sync::Arc;

use common::{doc, source, view};
use skillbook_core::catalog::handlers::{HandlerProblem, HandlerProblems};
use skillbook_core::catalog::Catalog;
use skillbook_core::explain::explain;
use skillbook_core::prompt::Options;
use skillbook_core::source::SourceKind;
use skillbook_core::tenant::Tenant;
use skillbook_core::view::{CachedCatalog, View};

/// Two sources with commands, all with handlers. `Gone` and `Old` are missing.
fn catalog() -> Arc<CachedCatalog> {
    let page = |name: &str, handler: &str, labels: &str| {
        doc(name, &format!("handler: {handler}\n{labels}"), &format!("## Usage\n\n{name}\n"))
    };
    let other = "visibility_labels: [other]\n";
    let sources = [
        vec![
            ("m/ok.md", page("m.ok", "Fine", "")),
            ("m/gone.md", page("m.gone", "Gone", "")),
            ("m/secret.md", page("m.secret", "Fine", other)),
            ("m/taken.md", page("m.taken", "Fine", "")),
            ("m/else.md", page("m.else", "Elsewhere", "")),
        ],
        vec![
            ("m/secret.md", page("m.secret", "Gone", "")),
            ("m/taken.md", page("m.taken", "Old", other)),
        ],
    ];
    let assembled = ["s", "t"].into_iter().zip(&sources).map(|(name, files)| {
        let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        source(name, SourceKind::Skills, &[], &files)
    });
    let missing = |close: Option<&str>| HandlerProblem::Missing { close: close.map(str::to_owned) };
    let problems: HandlerProblems = [
        ("Gone", missing(Some("Fine"))),
        ("Old", HandlerProblem::NotAHandler),
        ("Elsewhere", HandlerProblem::Unchecked),
    ]
    .map(|(name, problem)| (name.to_owned(), problem))
    .into();
    common::cached(Catalog::build(1, assembled.collect()).with_handlers(Arc::new(problems)))
}

fn findings(view: &View) -> Vec<String> {
    let line = |found: &skillbook_core::page::diagnostic::Diagnostic| {
        let path = found.path.as_deref().unwrap_or_default();
        format!("{path} {} {}: {}", found.severity.as_str(), found.code.as_str(), found.message)
    };
    view.diagnostics().map(line).collect()
}

const GONE: &str = "error handler_missing: the handler `Gone` does not exist";

#[test]
fn each_view_has_the_problems_of_its_own_entries() {
    let catalog = catalog();
    // It does not see the labelled pages, so nothing is replaced for it.
    let guest = view(&catalog, "guest", &[], None);
    let expected = [
        "/s/m/else.md info handler_unchecked: the handler `Elsewhere` was not looked up: the code \
         of its application is not loaded"
            .to_owned(),
        format!("/s/m/gone.md {GONE}"),
        format!("/t/m/secret.md {GONE}"),
    ];
    assert_eq!(findings(&guest), expected);
    let other = view(&catalog, "other", &["other"], None);
    let expected = [
        expected[0].clone(),
        expected[1].clone(),
        "/s/m/secret.md error shadowed: `m.secret` is replaced by /t/m/secret.md from the source \
         `t`, whose handler does not exist"
            .to_owned(),
        "/s/m/taken.md error shadowed: `m.taken` is replaced by /t/m/taken.md from the source `t`, \
         whose handler does not exist"
            .to_owned(),
        format!("/t/m/secret.md {GONE}, and the page replaces a working one, /s/m/secret.md"),
        "/t/m/taken.md error handler_missing: the handler `Old` is a module without execute/2, \
         and the page replaces a working one, /s/m/taken.md"
            .to_owned(),
    ];
    assert_eq!(findings(&other), expected);
    let problems: Vec<_> = other.problems().map(|found| found.message.clone()).collect();
    let all = other.diagnostics().map(|found| found.message.clone());
    assert_eq!(problems, all.skip(1).collect::<Vec<_>>());
    let hints: Vec<_> = guest.diagnostics().map(|found| found.hint.as_deref().unwrap()).collect();
    assert_eq!(hints[1], "did you mean `Fine`?");
}

#[test]
fn models_are_not_offered_what_cannot_run() {
    let catalog = catalog();
    let rows: [(&[&str], &[&str]); 2] = [
        (&[], &["m.else", "m.ok", "m.taken"]),
        // Both replaced pages are broken for this reader.
        (&["other"], &["m.else", "m.ok"]),
    ];
    for (grants, expected) in rows {
        let view = view(&catalog, "p", grants, None);
        let listed: Vec<&str> = view.listed().map(|(_, entry)| &*entry.name).collect();
        assert_eq!(listed, expected);
        assert!(view.find("m.gone").is_some(), "it can be called");
        let prompt = view.prompt();
        for name in ["m.gone", "m.secret", "m.taken", "m.ok", "m.else"] {
            assert_eq!(prompt.contains(name), expected.contains(&name), "{name}");
        }
    }
    let view = view(&catalog, "p", &[], None);
    let file = &explain(&view, &Tenant::All, "m.gone", &Options::default()).files[0];
    assert_eq!(file.prompt.as_deref(), Some("nowhere: its handler does not exist"));
    assert_eq!(file.diagnostics[0].message, "the handler `Gone` does not exist");
}
