//! The prompt's exact text.

mod common;

use common::{all, doc, skills, source};
use skillbook_core::catalog::Catalog;
use skillbook_core::entry::SourceKind;
use skillbook_core::prompt::Section;

const RULES: &str = r#"# Commands

You act by writing commands. Each stands on a line of its own, in a fenced block marked `cmd`:

```cmd
domain.action --title "Several words" --to ann bob --urgent
```

- A block may hold several commands, one a line. They run in this order, and their results come back to you.
- Quote a value that has blanks in it: `--title "Several words"`.
- Several values of a flag follow each other: `--to ann bob`.
- A flag without a value is true: `--urgent`.
- Write long text as a heredoc: `--body <<EOF`, the lines of the text, then a line with only `EOF`.
- What stands outside such blocks is your reply to the user.
- Look up what you do not know: `get_skill` lists everything, `get_skill: NAME` shows one of them, and so does
  `NAME --help`.
- Use only commands and flags that exist. Do not invent any: if nothing fits, say so.
"#;

const REST: &str = r#"
## Domains

`get_skill: NAME` lists a domain's commands, `get_skill: NAME.all` shows them whole.

  email  Send and read mail
  tasks  tasks.list

## Skills

Read a skill with `get_skill: NAME` before you do what it describes.

- pdf: About pdf

## Quick reference

  email.send --to ADDR

## Notes

### Shopping

- Bread

### Dinner

Vegetarian.

## Also available

Not shown here; `get_skill: NAME` reads one of them.

- diary: My diary
- ops
"#;

fn catalog() -> Catalog {
    let hidden = "include_in_prompt: false\n";
    let files = [
        ("email/SKILL.md", "---\ndomain: email\ndescription: >\n  Send and\n  read mail\n---\n".to_owned()),
        ("email/send.md", doc("email.send", "", "## Usage\n\nemail.send  --to ADDR\n")),
        ("email/read.md", doc("email.read", hidden, "## Usage\n\nemail.read\n")),
        ("tasks/list.md", doc("tasks.list", "", "No usage")),
        ("ops/SKILL.md", "---\ndomain: ops\ndescription: d\ninclude_in_prompt: false\n---\n".to_owned()),
        ("ops/run.md", doc("ops.run", hidden, "## Usage\n\nops.run\n")),
        ("pdf.md", doc("pdf", "", "")),
        ("diary.md", doc("diary", "include_in_prompt: false\ntitle: My diary\n", "")),
    ];
    let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let notes = [("a.md", "# Shopping\n\n- Bread\n"), ("b.md", "---\ntitle: Dinner\n---\nVegetarian.\n")];
    let sources = [source("s", SourceKind::Skills, &[], &files), source("n", SourceKind::Notes, &[], &notes)];
    Catalog::build(1, sources.into())
}

#[test]
fn the_whole_prompt() {
    assert_eq!(&**all(catalog()).prompt(), format!("{RULES}{REST}"));
}

#[test]
fn some_sections() {
    let view = all(catalog());
    let sections: Vec<_> = REST.trim_start().split("\n\n## ").map(|part| part.trim_start_matches("## ")).collect();
    for (section, expected) in Section::ALL[1..].iter().zip(&sections) {
        let text = view.prompt_of(&[*section]);
        assert_eq!(text.trim_end(), format!("## {}", expected.trim_end()), "{section:?}");
    }
    assert_eq!(view.prompt_of(&[Section::Rules]), RULES);
    assert_eq!(view.prompt_of(&[]), "");
    let two = [Section::QuickReference, Section::Rules];
    assert_eq!(view.prompt_of(&two), format!("{RULES}\n## Quick reference\n\n  email.send --to ADDR\n"));
}

#[test]
fn empty_sections_are_left_out() {
    let view = all(skills(&[("pdf.md", &doc("pdf", "", ""))]));
    let headings = view.prompt().lines().filter(|line| line.starts_with("## ")).collect::<Vec<_>>().join(",");
    assert_eq!(headings, "## Skills");
    assert_eq!(&**all(skills(&[])).prompt(), "");
}

#[test]
fn the_quick_reference_takes_from_each_domain() {
    let command =
        |name: &str| (format!("{}.md", name.replace('.', "/")), doc(name, "", &format!("## Usage\n{name}\n")));
    let mut files: Vec<_> = (0..25).map(|number| command(&format!("a.x{number:02}"))).collect();
    files.extend(["b.one", "c.one"].map(command));
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let text = all(skills(&files)).prompt_of(&[Section::QuickReference]);
    let lines: Vec<_> = text.lines().skip(2).map(str::trim).collect();
    assert_eq!(lines.len(), 21);
    assert_eq!(
        (lines[17], lines[18], lines[19], lines[20]),
        ("a.x17", "b.one", "c.one", "and 7 more, which `get_skill: DOMAIN` lists")
    );
    let twenty = all(skills(&files[..20])).prompt_of(&[Section::QuickReference]);
    assert_eq!((twenty.lines().count(), twenty.contains("more")), (22, false));
}
