//! The output of the command line, to the letter.

use std::sync::Arc;

use skillbook_core::catalog::assemble::assemble;
use skillbook_core::catalog::Catalog;
use skillbook_core::page::diagnostic::{Code, Diagnostic, Fix, Severity};
use skillbook_core::page::document::Document;
use skillbook_core::report::entries::{list, Filter};
use skillbook_core::report::findings::{lint, loading, Format};
use skillbook_core::report::hits::hits;
use skillbook_core::report::{problems, Printed, Terminal};
use skillbook_core::source::Source;
use skillbook_core::view::search::Query;
use skillbook_core::view::{CachedCatalog, Profile, View};

const PLAIN: Terminal = Terminal { color: false, width: None };
const COLOR: Terminal = Terminal { color: true, width: None };

fn view(pages: &[(&str, &str)]) -> View {
    let source = Source { root: "/s".into(), name: "s".into(), ..Source::default() };
    let document = |(path, text): &(&str, &str)| {
        Arc::new(Document::parse("/s", path, format!("---\n{text}\n---\nText.\n").as_bytes()))
    };
    let documents = pages.iter().map(document).collect();
    let catalog = Catalog::build(1, vec![assemble(&Arc::new(source), documents, Vec::new())]);
    View::new(Arc::new(CachedCatalog::new(catalog)), &Profile::unrestricted()).unwrap()
}

fn mails() -> View {
    view(&[
        (
            "mail/send.md",
            "name: mail.send\ndescription: |\n  Sends a  message\n  to people\ntags: [post]",
        ),
        ("pdf.md", "name: pdf\ndescription: \"Works\\u001b with PDF\""),
    ])
}

fn said(output: &str, complaint: Option<&str>, failed: bool) -> Printed {
    Printed { output: output.into(), complaint: complaint.map(str::to_owned), failed }
}

#[test]
fn entries_are_a_table() {
    let view = mails();
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    type Row<'a> = (&'a [&'a str], &'a [&'a str], &'a [&'a str], Printed);
    let rows: [Row; 5] = [
        (
            &[],
            &[],
            &[],
            said(
                "mail.send  command  s  Sends a message to people\n\
                 pdf        skill    s  Works\\u{1B} with PDF\n",
                None,
                false,
            ),
        ),
        (
            &["POST", "people"],
            &[],
            &[],
            said("mail.send  command  s  Sends a message to people\n", None, false),
        ),
        (&["zebra"], &[], &[], said("", Some("no entry matches"), true)),
        (&[], &["t"], &[], said("", Some("no entry matches; the sources are s"), true)),
        (&[], &[], &["x"], said("", Some("no entry matches; the domains are mail"), true)),
    ];
    for (words, sources, domains, expected) in rows {
        let (words, sources, domains) = (texts(words), texts(sources), texts(domains));
        let (sources, domains) = (&sources, &domains);
        let filter = Filter { words: &words, sources, domains, ..Filter::default() };
        assert_eq!(list(&view, filter, false, PLAIN), expected, "{words:?}");
    }
    let empty = list(&self::view(&[]), Filter::default(), false, PLAIN);
    assert_eq!(empty, said("", Some("no skills found; name their folder with --dir"), false));
    let narrow = Terminal { color: true, width: Some(30) };
    assert_eq!(
        list(&view, Filter::default(), false, narrow).output.lines().next(),
        Some("\u{1B}[1mmail.send\u{1B}[0m  \u{1B}[2mcommand  s\u{1B}[0m  Sends a m…")
    );
    let words = texts(&["pdf"]);
    // A page after the last one is empty, whatever the filter.
    for (words, after, limit, expected) in [
        (&[][..], None, Some(1), "mail.send"),
        (&[], Some("mail.send"), Some(1), "pdf"),
        (&[], Some("mail.send!"), None, "pdf"),
        (&words[..], Some("a"), Some(1), "pdf"),
        (&[], Some("pdf"), Some(1), ""),
        (&words[..], Some("pdf"), None, ""),
    ] {
        let filter = Filter { words, after, limit, ..Filter::default() };
        let printed = list(&view, filter, false, PLAIN);
        assert_eq!(printed.output.split(' ').next(), Some(expected), "{filter:?}");
        assert_eq!((printed.complaint, printed.failed), (None, false), "{filter:?}");
        let page = list(&view, filter, true, PLAIN).output;
        assert_eq!(page.matches("\"name\"").count(), usize::from(!expected.is_empty()), "{page}");
    }
    let filter = Filter { words: &words, ..Filter::default() };
    assert_eq!(
        list(&view, filter, true, PLAIN).output,
        "[{\"aliases\":[],\"description\":\"Works\\u001b with PDF\",\"domain\":null,\
         \"kind\":\"skill\",\"labels\":[],\"name\":\"pdf\",\"path\":\"/s/pdf.md\",\"source\":\"s\",\
         \"tags\":[],\"title\":null,\"usage\":null}]\n"
    );
}

#[test]
fn hits_have_a_snippet() {
    let view = mails();
    let found = view.search(&Query::new("people"));
    let output = hits(&view, "people", &found, false, COLOR).output;
    let (first, second) = output.split_once('\n').unwrap();
    assert!(first.starts_with("\u{1B}[1mmail.send\u{1B}[0m  \u{1B}[2mcommand  "), "{first}");
    assert_eq!(second, "  Sends a message to \u{1B}[1mpeople\u{1B}[0m\n");
    let none = hits(&view, "mail.sned", &[], true, PLAIN);
    let complaint = "nothing found for `mail.sned`; similar names: mail.send";
    assert_eq!(none, said("[]\n", Some(complaint), true));
}

fn found(severity: Severity, line: u32, column: u32) -> Diagnostic {
    let found =
        Diagnostic::new(Code::FieldMended, severity, "expected a, got b").in_file("/s/a b.md");
    found.at(line, column).hint("write a")
}

#[test]
fn findings_have_excerpts() {
    let read = |path: &str| (path == "/s/a b.md").then(|| b"---\nx: b\xC3\xBC\n\xFF\n".to_vec());
    let mut fixable = found(Severity::Warning, 2, 4);
    fixable.fix = Some(Box::new(Fix { range: 7..8, replacement: "a".into() }));
    let text = |diagnostics: &[Diagnostic], terminal| {
        lint(diagnostics, "/s", Format::Text, terminal, read)
    };
    assert_eq!(text(&[], PLAIN), said("No problems found.\n", None, false));
    assert_eq!(
        text(&[fixable.clone(), found(Severity::Error, 3, 1), found(Severity::Info, 99, 1)], PLAIN),
        said(
            "a b.md:2:4: warning: expected a, got b [field_mended]\n  2 | x: bü\n    |    ^\n  \
             hint: write a\n  --fix corrects this\n\n\
             a b.md:3:1: error: expected a, got b [field_mended]\n  hint: write a\n\n\
             a b.md:99:1: info: expected a, got b [field_mended]\n  hint: write a\n\n\
             1 error, 1 warning, 1 info\n",
            None,
            true
        )
    );
    assert!(text(&[found(Severity::Info, 2, 1)], COLOR).output.starts_with(
        "\u{1B}[1ma b.md:2:1\u{1B}[0m: \u{1B}[36minfo\u{1B}[0m: expected a, got b \
         [field_mended]\n  \u{1B}[2m2 | \u{1B}[0mx: bü\n"
    ));
    assert!(!text(&[found(Severity::Info, 2, 1)], COLOR).failed);
    let json = lint(&[fixable.clone()], "/s", Format::Json, PLAIN, read).output;
    assert_eq!(
        json,
        "[{\"code\":\"field_mended\",\"column\":4,\"fix\":{\"length\":1,\"offset\":7,\
         \"text\":\"a\"},\"hint\":\"write a\",\"line\":2,\"message\":\"expected a, got b\",\
         \"path\":\"a b.md\",\"severity\":\"warning\"}]\n"
    );
    let valid = |_: &str| Some("---\nx: b😀c\n".as_bytes().to_vec());
    let sarif = lint(&[fixable], "/", Format::Sarif, PLAIN, valid).output;
    for part in [
        "\"artifactLocation\":{\"uri\":\"s/a%20b.md\"}",
        "\"region\":{\"endColumn\":8,\"endLine\":2,\"startColumn\":4,\"startLine\":2}",
        "\"message\":{\"text\":\"expected a, got b\\nHint: write a\"}",
        "\"deletedRegion\":{\"endColumn\":5,\"endLine\":2,\"startColumn\":4,\"startLine\":2}",
        "\"ruleId\":\"field_mended\",\"ruleIndex\":0",
        "\"version\":\"2.1.0\"",
    ] {
        assert!(sarif.contains(part), "{part}\n{sarif}");
    }
}

#[test]
fn findings_for_github_are_commands_of_its_workflows() {
    let rows = [
        (
            found(Severity::Warning, 2, 4).in_file("/s/a, 100%.md"),
            "::warning file=a%2C 100%25.md,line=2,col=4,title=field_mended::expected a, got b; \
             write a\n",
        ),
        (
            Diagnostic::new(Code::BodyMissing, Severity::Error, "a\n::b").in_file("/s/x.md"),
            "::error file=x.md,title=body_missing::a\\n::b\n",
        ),
        (
            Diagnostic::new(Code::BodyLong, Severity::Info, "100% long"),
            "::notice title=body_long::100%25 long\n",
        ),
    ];
    for (one, expected) in rows {
        let printed = lint(&[one], "/s", Format::Github, PLAIN, |_| None);
        assert_eq!(printed.output, expected);
    }
    assert_eq!(lint(&[], "/s", Format::Github, PLAIN, |_| None), Printed::default());
}

#[test]
fn problems_are_the_first_three() {
    let row = |severity, line| found(severity, line, 1);
    let list: Vec<_> = [Severity::Warning, Severity::Info, Severity::Warning, Severity::Error]
        .into_iter()
        .zip(1..)
        .map(|(severity, line)| row(severity, line))
        .chain([row(Severity::Warning, 9)])
        .collect();
    assert_eq!(
        problems(&list).as_deref(),
        Some(
            "skillbook: 4 problems in the skills; `list --diagnostics` shows them all\n  \
             /s/a b.md:4:1: error: expected a, got b [field_mended]\n  \
             /s/a b.md:1:1: warning: expected a, got b [field_mended]\n  \
             /s/a b.md:3:1: warning: expected a, got b [field_mended]\n"
        )
    );
    assert_eq!(problems(&[row(Severity::Info, 1)]), None);
    let printed = loading(&[row(Severity::Warning, 1)], false);
    let text = "/s/a b.md:1:1: warning: expected a, got b [field_mended]\n  hint: write a\n";
    assert_eq!(printed, said(text, None, false));
    assert!(loading(&[row(Severity::Error, 1)], true).failed);
}
