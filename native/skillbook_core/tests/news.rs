//! What is told of two generations.

mod common;

use std::sync::Arc;

use common::{doc, skills, source, view};
use skillbook_core::catalog::Catalog;
use skillbook_core::entry::SourceKind;
use skillbook_core::view::View;

fn of(files: &[(&str, String)], grants: &[&str]) -> View {
    let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    view(&Arc::new(skills(&files)), "p", grants, None)
}

const HIDDEN: &str = "disable-model-invocation: true\n";
const LABELED: &str = "visibility_labels: [red]\n";

#[test]
fn tells_what_is_new() {
    let open = [("a.md", doc("a", "", "1")), ("b.md", doc("b", "", "1"))];
    let title = "# Changes of what `get_skill` lists\n\n";
    type Row<'a> = (&'a str, &'a [&'a str], &'a [(&'a str, String)], &'a str);
    let rows: [Row; 8] = [
        ("the same", &[], &open, ""),
        ("nothing left", &[], &[], "Gone:\n\n- a\n- b\n"),
        (
            "one of each",
            &[],
            &[("a.md", "---\nname: a\ndescription: >\n  Two\n  lines\n---\n".to_owned()), ("c.md", doc("c", "", ""))],
            "New:\n\n- c: About c\n\nChanged:\n\n- a: Two lines\n\nGone:\n\n- b\n",
        ),
        ("a new body", &[], &[open[0].clone(), ("b.md", doc("b", "", "2"))], "Changed:\n\n- b: About b\n"),
        ("no longer shown", &[], &[open[0].clone(), ("b.md", doc("b", LABELED, "1"))], "Gone:\n\n- b\n"),
        ("no longer told of", &[], &[open[0].clone(), ("b.md", doc("b", HIDDEN, "1"))], "Gone:\n\n- b\n"),
        ("not shown", &[], &[open[0].clone(), open[1].clone(), ("c.md", doc("c", LABELED, ""))], ""),
        (
            "shown",
            &["red"],
            &[open[0].clone(), open[1].clone(), ("c.md", doc("c", LABELED, ""))],
            "New:\n\n- c: About c\n",
        ),
    ];
    for (what, grants, files, expected) in rows {
        let text = of(files, grants).news_since(&of(&open, grants));
        let expected = if expected.is_empty() { String::new() } else { format!("{title}{expected}") };
        assert_eq!(text, expected, "{what}");
    }
}

#[test]
fn each_part_is_short() {
    let files = |count: usize| -> Vec<(String, String)> {
        (0..count).map(|at| (format!("s{at:02}.md"), doc(&format!("s{at:02}"), "", ""))).collect()
    };
    let of = |files: &[(String, String)]| {
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.clone())).collect();
        of(&files, &[])
    };
    let lines =
        |count: usize| of(&files(count)).news_since(&of(&[])).lines().skip(4).map(String::from).collect::<Vec<_>>();
    assert_eq!((lines(20).len(), lines(20)[19].as_str()), (20, "- s19: About s19"));
    assert_eq!((lines(23).len(), lines(23)[20].as_str()), (21, "- and 3 more"));
}

#[test]
fn a_note_is_told_by_its_title() {
    let notes = |files: &[(&str, &str)]| {
        view(&Arc::new(Catalog::build(1, vec![source("n", SourceKind::Notes, &[], files)])), "p", &[], None)
    };
    let text = notes(&[("a.md", "# Shopping\n"), ("b.md", "# b\n")]).news_since(&notes(&[]));
    assert!(text.ends_with("New:\n\n- a: Shopping\n- b\n"), "{text}");
}
