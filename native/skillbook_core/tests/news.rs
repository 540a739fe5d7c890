//! The text for a model about the differences between two generations.

mod common;

use common::{doc, skills, source, view};
use skillbook_core::catalog::Catalog;
use skillbook_core::source::SourceKind;
use skillbook_core::view::View;

fn of(files: &[(&str, String)], grants: &[&str]) -> View {
    let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    view(&common::cached(skills(&files)), "p", grants, None)
}

const HIDDEN: &str = "disable-model-invocation: true\n";
const LABELED: &str = "visibility_labels: [red]\n";

#[test]
fn lists_new_entries() {
    let open = [("a.md", doc("a", "", "1")), ("b.md", doc("b", "", "1"))];
    let title = "# Changes in the list of `get_skill`\n\n";
    type Row<'a> = (&'a str, &'a [&'a str], &'a [(&'a str, String)], &'a str);
    let rows: [Row; 8] = [
        ("the same", &[], &open, ""),
        ("nothing left", &[], &[], "Removed:\n\n- a\n- b\n"),
        (
            "one of each",
            &[],
            &[
                ("a.md", "---\nname: a\ndescription: >\n  Two\n  lines\n---\n".to_owned()),
                ("c.md", doc("c", "", "")),
            ],
            "New:\n\n- c: About c\n\nChanged:\n\n- a: Two lines\n\nRemoved:\n\n- b\n",
        ),
        (
            "a new body",
            &[],
            &[open[0].clone(), ("b.md", doc("b", "", "2"))],
            "Changed:\n\n- b: About b\n",
        ),
        (
            "no longer shown",
            &[],
            &[open[0].clone(), ("b.md", doc("b", LABELED, "1"))],
            "Removed:\n\n- b\n",
        ),
        (
            "no longer told of",
            &[],
            &[open[0].clone(), ("b.md", doc("b", HIDDEN, "1"))],
            "Removed:\n\n- b\n",
        ),
        (
            "not shown",
            &[],
            &[open[0].clone(), open[1].clone(), ("c.md", doc("c", LABELED, ""))],
            "",
        ),
        (
            "shown",
            &["red"],
            &[open[0].clone(), open[1].clone(), ("c.md", doc("c", LABELED, ""))],
            "New:\n\n- c: About c\n",
        ),
    ];
    for (what, grants, files, expected) in rows {
        let text = of(files, grants).news_since(&of(&open, grants));
        let expected =
            if expected.is_empty() { String::new() } else { format!("{title}{expected}") };
        assert_eq!(text, expected, "{what}");
    }
}

#[test]
fn mentions_changed_indexes() {
    let send = || ("mail/send.md", doc("mail.send", "", ""));
    let find = |more: &str| ("mail/find.md", doc("mail.find", more, ""));
    let index =
        |more: &str, body: &str| ("mail/SKILL.md", format!("---\ndomain: mail\n{more}---\n{body}"));
    let described = || index("description: Mail\n", "");
    type Row<'a> = (&'a str, Vec<(&'a str, String)>, Vec<(&'a str, String)>, &'a str);
    let rows: [Row; 12] = [
        ("the same", vec![send(), described()], vec![send(), described()], ""),
        (
            "another description",
            vec![send(), described()],
            vec![send(), index("description: >\n  All\n  mail\n", "")],
            "Changed:\n\n- mail: All mail\n",
        ),
        (
            "a first description",
            vec![send()],
            vec![send(), described()],
            "Changed:\n\n- mail: Mail\n",
        ),
        (
            "no description",
            vec![send(), described()],
            vec![send()],
            "Changed:\n\n- mail: mail.send\n",
        ),
        (
            "another text",
            vec![send(), index("description: Mail\n", "One\n")],
            vec![send(), index("description: Mail\n", "Two\n")],
            "Changed:\n\n- mail: Mail\n",
        ),
        (
            "a row that is not shown",
            vec![send(), find(LABELED), index("description: Mail\n", "# Mail\n")],
            vec![
                send(),
                find(LABELED),
                index("description: Mail\n", "# Mail\n| mail.find | x |\n"),
            ],
            "",
        ),
        (
            "a new domain",
            vec![],
            vec![send(), described()],
            "New:\n\n- mail: Mail\n- mail.send: About mail.send\n",
        ),
        (
            "a new domain without index",
            vec![],
            vec![send()],
            "New:\n\n- mail.send: About mail.send\n",
        ),
        ("a domain less", vec![send(), described()], vec![], "Removed:\n\n- mail\n- mail.send\n"),
        (
            "another command alone",
            vec![send(), described()],
            vec![send(), find(""), described()],
            "New:\n\n- mail.find: About mail.find\n",
        ),
        (
            "an index that is not shown",
            vec![send(), index(LABELED, "One\n")],
            vec![send(), index(LABELED, "Two\n")],
            "",
        ),
        (
            "an index that is not told of",
            vec![send(), described()],
            vec![send(), index("description: Mail\ndisable-model-invocation: true\n", "")],
            "Removed:\n\n- mail\n",
        ),
    ];
    for (what, old, new, expected) in rows {
        let text = of(&new, &[]).news_since(&of(&old, &[]));
        assert_eq!(
            text.trim_start_matches("# Changes in the list of `get_skill`\n\n"),
            expected,
            "{what}"
        );
    }
}

#[test]
fn each_part_is_short() {
    let files = |count: usize| -> Vec<(String, String)> {
        (0..count).map(|at| (format!("s{at:02}.md"), doc(&format!("s{at:02}"), "", ""))).collect()
    };
    let of = |files: &[(String, String)]| {
        let files: Vec<_> =
            files.iter().map(|(path, text)| (path.as_str(), text.clone())).collect();
        of(&files, &[])
    };
    let lines = |count: usize| {
        of(&files(count)).news_since(&of(&[])).lines().skip(4).map(String::from).collect::<Vec<_>>()
    };
    assert_eq!((lines(20).len(), lines(20)[19].as_str()), (20, "- s19: About s19"));
    assert_eq!((lines(23).len(), lines(23)[20].as_str()), (21, "- and 3 more"));
}

#[test]
fn a_note_is_listed_by_its_title() {
    let notes = |files: &[(&str, &str)]| {
        view(
            &common::cached(Catalog::build(1, vec![source("n", SourceKind::Notes, &[], files)])),
            "p",
            &[],
            None,
        )
    };
    let text = notes(&[("a.md", "# Shopping\n"), ("b.md", "# b\n")]).news_since(&notes(&[]));
    assert!(text.ends_with("New:\n\n- a: Shopping\n- b\n"), "{text}");
}
