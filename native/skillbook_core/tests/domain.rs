//! The table of skills in a domain's index, as a view renders it.

mod common;

use common::{doc, skills, view};
use proptest::prelude::*;

const HEAD: &str = "| Skill | Description |\n|-------|-------------|\n";
const READ: &str = "| email.read | About email.read |\n";
const SEND: &str = "| email.send | About email.send |\n";

/// The index for a reader who may see `email.read`, `email.send` and `diary`, but not `email.drop`,
/// and is not shown `email.debug`.
fn rendered(page: &str, grants: &[&str]) -> String {
    let index = format!("---\ndomain: email\ndescription: Mail\n---\n{page}");
    let files = [
        ("email/SKILL.md", index.as_str()),
        ("email/read.md", &doc("email.read", "aliases: [mail]\n", "")),
        ("email/send.md", &doc("email.send", "", "")),
        ("email/drop.md", &doc("email.drop", "visibility_labels: [x]\n", "")),
        ("email/debug.md", &doc("email.debug", "disable-model-invocation: true\n", "")),
        ("diary/SKILL.md", &doc("diary", "", "")),
    ];
    view(&common::cached(skills(&files)), "p", grants, None).domain("email").unwrap().body()
}

#[test]
fn renders_rows_of_listed_commands() {
    let full = format!("{HEAD}{READ}{SEND}");
    let rows = [
        (
            "under its heading",
            "## Available Skills\n\n## Notes\n",
            format!("## Available Skills\n\n{full}\n## Notes\n"),
        ),
        (
            "two blanks",
            "##  Available Skills\n\nEnd",
            format!("##  Available Skills\n\nEnd\n\n{full}"),
        ),
        ("indented", "   ## available skills ##\n", format!("   ## available skills ##\n\n{full}")),
        (
            "at the end",
            "# A\n\n## Available Skills",
            format!("# A\n\n## Available Skills\n\n{full}"),
        ),
        (
            "another depth",
            "# Available Skills\n\n## More\n",
            format!("# Available Skills\n\n## More\n\n{full}"),
        ),
        (
            "four blanks",
            "    ## Available Skills\n",
            format!("    ## Available Skills\n\n## Available Skills\n\n{full}"),
        ),
        ("no heading", "# Email\n\n\n", format!("# Email\n\n## Available Skills\n\n{full}\n\n")),
        (
            "in code",
            "```\n## Available Skills\n| a |\n```\n",
            format!("```\n## Available Skills\n| a |\n```\n\n## Available Skills\n\n{full}"),
        ),
        (
            "code in it",
            "## Available Skills\n~~~~\n| a |\n~~~\n# No\n~~~~\n| mail |\n\nEnd\n",
            format!(
                "## Available Skills\n~~~~\n| a |\n~~~\n# No\n~~~~\n{HEAD}| mail \
                 |\n{SEND}\nEnd\n"
            ),
        ),
        (
            "the author's words",
            "## Available Skills\n| A | B | C |\n|:-|-|-:|\n| `email.send` | x | y |\n| mail | z |",
            concat!(
                "## Available Skills\n",
                "| A | B | C |\n",
                "|:-|-|-:|\n",
                "| `email.send` | x | y |\n",
                "| mail | z |\n",
            )
            .to_owned(),
        ),
        (
            "stale rows",
            concat!(
                "## Available Skills\n",
                "| A |\n",
                "|-|\n",
                "| email.gone | x |\n",
                "| other.thing |\n",
                "| text |\n",
                "\n",
                "| b |\n",
            ),
            format!("## Available Skills\n| A |\n|-|\n{READ}{SEND}\n| b |\n"),
        ),
        (
            "an empty table before it",
            "- email.read\n- email.send\n## Available Skills\n| \n\n| mail | x",
            format!("- email.read\n- email.send\n## Available Skills\n\n{HEAD}| mail | x\n"),
        ),
        (
            "only stale rows",
            "- email.read\n- email.send\n## Available Skills\n| A |\n|-|\n| email.gone | x |\n",
            "- email.read\n- email.send\n## Available Skills\n".to_owned(),
        ),
        (
            "hidden rows",
            "## Available Skills\n| A |\n|-|\n| email.drop | x |\n| email.debug | x |\n",
            format!("## Available Skills\n| A |\n|-|\n{READ}{SEND}"),
        ),
        (
            "rows that name a hidden entry",
            "## Available Skills\n| email.drop |\n|-|\n| email.send | As email.drop |\n",
            format!("## Available Skills\n{HEAD}{SEND}{READ}"),
        ),
        (
            "entries of other domains",
            "## Available Skills\n| [diary](../diary) | D |\n",
            format!("## Available Skills\n{HEAD}| [diary](../diary) | D |\n{READ}{SEND}"),
        ),
        (
            "a table without a heading",
            "| A |\n|-|\n| b |\n\n| A |\n|-|\n| email.gone |\n| email.send |\n",
            format!("| A |\n|-|\n| b |\n\n| A |\n|-|\n| email.send |\n{READ}"),
        ),
        (
            "an open block",
            "# A\n~~~~ x\nemail.read\n",
            format!("# A\n~~~~ x\nemail.read\n~~~~\n\n## Available Skills\n\n{full}"),
        ),
        (
            "a block that begins with a hidden entry",
            "``` email.drop\nx\n``` \n## Available Skills\n",
            format!("```\nx\n``` \n## Available Skills\n\n{full}"),
        ),
        (
            "a list",
            "# Email\n\n- email.read: read\n### `email.send`\n",
            "# Email\n\n- email.read: read\n### `email.send`\n".to_owned(),
        ),
        (
            "a part of them",
            "- `email.read`\n- `email.send --to x`\n\nemail.drop",
            format!(
                "- `email.read`\n- `email.send --to x`\n\n## Available \
                 Skills\n\n{HEAD}{SEND}\n"
            ),
        ),
        (
            "listed elsewhere",
            "## Available Skills\n\n| A |\n|-|\n| email.read | r |\n\n## More\n\n### email.send\n",
            concat!(
                "## Available Skills\n",
                "\n",
                "| A |\n",
                "|-|\n",
                "| email.read | r |\n",
                "\n",
                "## More\n",
                "\n",
                "### email.send\n",
            )
            .to_owned(),
        ),
        (
            "other lines",
            "Not email.drop, nor\nemail.gone\n- email.read\n- email.send\n",
            "email.gone\n- email.read\n- email.send\n".to_owned(),
        ),
    ];
    for (what, page, expected) in rows {
        assert_eq!(rendered(page, &[]), expected, "{what}");
    }
    let all = format!("{HEAD}| email.drop | About email.drop |\n{READ}{SEND}");
    assert_eq!(rendered("## Available Skills\n", &["x"]), format!("## Available Skills\n\n{all}"));
    assert_eq!(rendered("", &["x"]), format!("# email\n\nMail\n\n{all}"));
}

#[test]
fn no_cell_breaks_out_of_the_table() {
    for (description, cell) in [
        ("a|b", "a\\|b"),
        ("a\\|b", "a\\\\\\|b"),
        ("C:\\x", "C:\\\\x"),
        ("two\n\n  lines\r\n  more", "two lines more"),
        (" x ", "x"),
        ("line\u{2028}separator", "line separator"),
    ] {
        let command = format!(
            "---\nname: w.a\ndescription: {}\n---\n",
            serde_json::to_string(description).unwrap()
        );
        let files =
            [("w/SKILL.md", "---\ndomain: w\ndescription: d\n---\n# W\n"), ("w/a.md", &command)];
        let body = common::all(skills(&files)).domain("w").unwrap().body();
        assert_eq!(body, format!("# W\n\n## Available Skills\n\n{HEAD}| w.a | {cell} |\n"));
    }
}

fn page() -> impl Strategy<Value = String> {
    let pieces = [
        "## Available Skills",
        "##  available skills ##",
        "   ## Available Skills",
        "    ",
        "# ",
        "- ",
        "* ",
        "| ",
        "|-|-|",
        " | ",
        "\n",
        "\n",
        "\n",
        "\r\n",
        "\n\n",
        "```",
        "~~~~",
        "`",
        "**",
        "[",
        "](",
        "\\",
        "\\|",
        "email.read",
        "email.send",
        "email.drop",
        "email.debug",
        "email.gone",
        "mail",
        "diary",
        "é",
        "--to x",
        "Text.",
        "---",
    ];
    let line = proptest::collection::vec(proptest::sample::select(pieces.to_vec()), 0..40)
        .prop_map(|pieces| pieces.concat());
    prop_oneof![4 => line, 1 => any::<String>()]
}

proptest! {
    #[test]
    fn rendering_again_changes_nothing(page in page()) {
        let once = rendered(&page, &[]);
        prop_assert_eq!(&rendered(&once, &[]), &once);
        let mut words = once
            .split(|char: char| !char.is_alphanumeric() && !"_-.".contains(char))
            .map(|word| word.trim_matches('.'));
        prop_assert!(!words.any(|word| word == "email.drop" || word == "email.debug"), "{}", once);
        let named = |name: &str| once.contains(name);
        prop_assert!(named("email.read") || named("mail"), "{}", once);
        prop_assert!(named("email.send"), "{}", once);
    }

    #[test]
    fn a_hidden_row_is_as_a_row_of_nothing(page in page()) {
        // A name in a text is a word if nothing has that name.
        let rows: String = page
            .lines()
            .filter(|line| line.starts_with('|'))
            .map(|line| format!("{line}\n"))
            .collect();
        let row = |name: &str| {
            format!("## Available Skills\n| A |\n|-|\n| {name} | x |\n{rows}| {name} |\n")
        };
        let without = |text: &str| text.replace("email.drop", "email.read");
        let [hidden, gone] = ["email.drop", "email.gone"]
            .map(|name| rendered(&without(&row("NAME")).replace("NAME", name), &[]));
        prop_assert_eq!(hidden, gone);
    }
}
