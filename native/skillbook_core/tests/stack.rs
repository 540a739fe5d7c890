//! Nested texts of strangers on stacks as small as those of the virtual machine's schedulers: one
//! that overflows would end the virtual machine.

use std::sync::Arc;

use serde_json::Value;
use skillbook_core::catalog::assemble::assemble;
use skillbook_core::catalog::Catalog;
use skillbook_core::lint::{lint, spec};
use skillbook_core::markdown::html;
use skillbook_core::page::document::Document;
use skillbook_core::page::frontmatter;
use skillbook_core::page::references::find;
use skillbook_core::page::sections::headings;
use skillbook_core::schema::Schema;
use skillbook_core::source::Source;
use skillbook_core::text::command;
use skillbook_core::text::extract::{Extractor, Unclosed};
use skillbook_core::view::search::Query;
use skillbook_core::view::{CachedCatalog, Profile, View};

/// Dirty schedulers have 320 KiB. Without optimisation frames are larger, and `bin/skillbook` gives
/// all schedulers 8 MiB. A part is used when a function is called.
const STACK: usize = if cfg!(debug_assertions) { 4 << 20 } else { 256 << 10 };
const BYTES: usize = 40_000;

const NESTS: [(&str, &str); 22] = [
    ("[", "]"),
    ("{a: ", "}"),
    (r#"{"a":"#, "}"),
    (r#"{"not":"#, "}"),
    (r#"{"items":"#, "}"),
    (r#"{"allOf":["#, "]}"),
    ("- ", ""),
    ("? ", ""),
    ("&a [", "]"),
    ("> ", ""),
    ("1. ", ""),
    ("* ", ""),
    ("**_", "_**"),
    ("[![", "](a)](b)"),
    ("(", ")"),
    ("\"", ""),
    ("<a>", "</a>"),
    ("`", ""),
    ("$(", ")"),
    ("--a {\"b\":", "}"),
    ("(a OR ", ")"),
    ("#", ""),
];

fn read(text: &str) {
    let _ = frontmatter::parse(&format!("---\n{text}\n---\n"));
    let _ = html(text, "/files/");
    let _ = find(text, 0);
    let _ = headings(text);
    let _ = command::parse(&format!("a.b {text}"));
    let mut extractor = Extractor::new(Unclosed::Run);
    let _ = extractor.feed(format!("```cmd\na.b {text}\n```\n{text}").as_bytes());
    if let Ok(schema) = serde_json::from_str::<Value>(text)
        .map_err(drop)
        .and_then(|json| Schema::new(json.clone()).map(|schema| (schema, json)).map_err(drop))
    {
        let _ = schema.0.check(&schema.1);
    }

    let source = Arc::new(Source { name: "s".into(), root: "/s".into(), ..Source::default() });
    let pages = [
        text.to_owned(),
        format!("---\nname: a.b\ndescription: D\nflags:\n  - {text}\n---\n{text}"),
        format!("---\nname: a.c\ndescription: D\ninput_schema: '{text}'\n---\n# Usage\n\n{text}\n"),
        format!(
            "---\nname: a.d\ndescription: D\n---\n# Usage\n\na.d {text}\n\n# Flags\n\n--x {text}\n"
        ),
    ];
    let mut documents = Vec::new();
    for (page, number) in pages.iter().zip(0..) {
        let path = format!("a/{number}.md");
        let _ = spec::check("a", page.as_bytes());
        documents.push(Arc::new(Document::parse(&source.root, &path, page.as_bytes())));
    }
    let paths = (0..4).map(|number| format!("a/{number}.md")).collect();
    let catalog = Catalog::build(1, vec![assemble(&source, documents, paths)]);
    let catalog = Arc::new(CachedCatalog::new(catalog));
    let view = View::new(catalog, &Profile::unrestricted()).expect("no globs");
    let _ = view.prompt();
    let _ = view.search(&Query::new(text));
    let _ = view.suggest(text);
    let _ = lint(&view);
    for (id, _) in view.entries() {
        let _ = view.tools(id, None);
    }
}

#[test]
fn nested_texts_need_little_stack() {
    for (open, close) in NESTS {
        let times = BYTES / (open.len() + close.len());
        for text in [open.repeat(times), open.repeat(times) + &close.repeat(times)] {
            let name = format!("{open}{close}");
            let thread = std::thread::Builder::new().stack_size(STACK).name(name);
            thread.spawn(move || read(&text)).expect("a thread").join().expect("no panic");
        }
    }
}
