//! The answers of `get_skill`.

mod common;

use common::{all, doc, skills, source};
use skillbook_core::catalog::Catalog;
use skillbook_core::source::SourceKind;
use skillbook_core::view::help::Help;
use skillbook_core::view::View;

fn text(view: &View, path: &str) -> Option<String> {
    match view.help(path)? {
        Help::Text(text) => Some(text),
        Help::File { entry, file } => Some(format!("file {file} of {}", view.entry(entry)?.name)),
    }
}

fn example() -> View {
    all(skills(&[
        (
            "email/SKILL.md",
            "---\ndomain: email\ndescription: |\n  Send and\n  read mail\n---\n\nThe index\n",
        ),
        ("email/send.md", &doc("email.send", "aliases: [post]\n", "# Email.Send\n\nSends.\n")),
        ("email/read.md", &doc("email.read", "", "# Reading\n\nReads.\n")),
        ("calendar/list.md", &doc("calendar.list", "", "")),
        ("pdf/SKILL.md", &doc("pdf", "", "\nUse it.\n\n")),
        ("pdf/references/forms.md", ""),
        ("pdf/fill.py", ""),
    ]))
}

#[test]
fn lists_everything() {
    let expected = "\
Domains:

  calendar  calendar.list
  email     Send and read mail

Skills:

  pdf  About pdf

Go on with:

  get_skill: <domain>           the commands of a domain
  get_skill: <domain>.<action>  one command: its usage, flags and examples
  get_skill: <domain>.all       all commands of a domain
  get_skill: <skill>            a skill's instructions and files";
    assert_eq!(text(&example(), "").as_deref(), Some(expected));
    assert_eq!(text(&example(), "  ").as_deref(), Some(expected));
    assert_eq!(text(&all(skills(&[])), "").as_deref(), Some("There are no skills here."));
}

#[test]
fn pads_up_to_a_width() {
    let (wide, wider) = ("w".repeat(32), "x".repeat(33));
    let files = ["a", &wide, &wider].map(|name| (format!("{name}.md"), doc(name, "", "")));
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let top = all(skills(&files)).help_top_level();
    let column = |name: &str| {
        top.lines().find(|line| line.trim_start().starts_with(name)).unwrap().find("About")
    };
    assert_eq!([column("a "), column(&wide), column(&wider)], [Some(36), Some(36), Some(37)]);
}

#[test]
fn resolves_paths() {
    let all_of_email = "# email.read\n\n  # Reading\n\n  Reads.\n\n---\n\n# email.send\n\n  Sends.";
    let pdf = concat!(
        "  Use it.\n",
        "\n",
        "## Files\n",
        "\n",
        "Read one with `get_skill: pdf/<file>`:\n",
        "\n",
        "- fill.py\n",
        "- references/forms.md",
    );
    let email =
        "The index\n\n## Available Skills\n\n| Skill | Description |\n|-------|-------------|\n\
        | email.read | About email.read |\n| email.send | About email.send |";
    let rows = [
        ("email", Some(email)),
        (" email ", Some(email)),
        ("email.send", Some("# Email.Send\n\nSends.")),
        ("post", Some("# Email.Send\n\nSends.")),
        ("email.all", Some(all_of_email)),
        ("calendar.list", Some("# calendar.list\n\nAbout calendar.list")),
        ("calendar.all", Some("# calendar.list\n\n  About calendar.list")),
        ("pdf", Some(pdf)),
        ("pdf/fill.py", Some("file fill.py of pdf")),
        ("pdf/references/forms.md", Some("file references/forms.md of pdf")),
        ("pdf/SKILL.md", None),
        ("pdf/references", None),
        ("pdf/references/../fill.py", None),
        ("pdf/../email/send.md", None),
        ("pdf//etc/passwd", None),
        ("/pdf/fill.py", None),
        ("pdf.all", None),
        ("nothing", None),
        ("nothing.all", None),
        (".all", None),
    ];
    let view = example();
    for (path, expected) in rows {
        assert_eq!(text(&view, path).as_deref(), expected, "{path}");
    }
}

#[test]
fn a_skill_and_a_domain_of_one_name_come_together() {
    let send = doc("email.send", "", "");
    let index = "---\ndomain: email\ndescription: d\n---\nThe index of email.send\n- email.send\n";
    let apart = [
        ("email.md", &*doc("email", "", "The skill")),
        ("email/SKILL.md", index),
        ("email/send.md", &send),
    ];
    assert_eq!(
        text(&all(skills(&apart)), "email").as_deref(),
        Some("  The skill\n\n---\n\n  The index of email.send\n  - email.send")
    );
    let both = "---\nname: email\ndomain: email\ndescription: d\n---\nOne text\n";
    // A command's page is read under its own name, where its own labels count.
    let together = [("email/SKILL.md", both), ("email/send.md", &send), ("email/form.txt", "")];
    let view = all(skills(&together));
    assert_eq!(
        text(&view, "email").as_deref(),
        Some("  One text\n\n## Files\n\nRead one with `get_skill: email/<file>`:\n\n- form.txt")
    );
    assert_eq!(text(&view, "email/send.md"), None);
}

#[test]
fn lists_a_hundred_files_and_reads_all() {
    let paths: Vec<_> = (0..103).map(|number| format!("pdf/{number:03}.txt")).collect();
    let skill = doc("pdf", "", "x");
    let mut files = vec![("pdf/SKILL.md", skill.as_str())];
    files.extend(paths.iter().map(|path| (path.as_str(), "")));
    let view = all(skills(&files));
    let listed = text(&view, "pdf").unwrap();
    assert!(listed.ends_with("\n- 099.txt\n- and 3 more"), "{listed}");
    assert_eq!(text(&view, "pdf/102.txt").as_deref(), Some("file 102.txt of pdf"));
}

#[test]
fn notes_are_listed_by_description_or_title() {
    let files = [("a.md", "# The A\n\nText"), ("b.md", "---\ndescription: About b\n---\n")];
    let view = all(Catalog::build(1, vec![source("n", SourceKind::Notes, &[], &files)]));
    let expected = concat!(
        "Notes:\n",
        "\n",
        "  a  The A\n",
        "  b  About b\n",
        "\n",
        "Go on with:\n",
        "\n",
        "  get_skill: <note>             a note",
    );
    assert_eq!(view.help_top_level(), expected);
}
