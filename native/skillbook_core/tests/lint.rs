//! The findings of lint: a row for each side of a rule.

mod common;

use common::{all, doc, skills, view};
use skillbook_core::hidden::find;
use skillbook_core::lint::lint;
use skillbook_core::page::diagnostic::{Code, Diagnostic};

/// `code line:column message; hint` for each finding in the file.
fn found(files: &[(&str, &str)], path: &str) -> Vec<String> {
    listing(&lint(&all(skills(files))), path)
}

fn listing(found: &[Diagnostic], path: &str) -> Vec<String> {
    let own = found
        .iter()
        .filter(|diagnostic| diagnostic.path.as_deref() == Some(&*format!("/s/{path}")));
    own.map(|diagnostic| {
        let place = match (diagnostic.line, diagnostic.column) {
            (Some(line), Some(column)) => format!(" {line}:{column}"),
            _ => String::new(),
        };
        let hint = diagnostic.hint.as_ref().map_or(String::new(), |hint| format!("; {hint}"));
        format!("{}{place} {}{hint}", diagnostic.code.as_str(), diagnostic.message)
    })
    .collect()
}

const READ: &str = concat!(
    "---\n",
    "name: mail.read\n",
    "description: Reads one message by its id\n",
    "---\n",
    "## Usage\n",
    "\n",
    "mail.read --id <id>\n",
);

/// A command `mail.send` whose body begins on line 6.
fn send(body: &str) -> Vec<String> {
    let text =
        format!("---\nname: mail.send\ndescription: Sends a message to people\n---\n\n{body}");
    found(&[("mail/read.md", READ), ("mail/send.md", &text)], "mail/send.md")
}

#[test]
fn names_with_blanks() {
    let rows: &[(&str, &str, &[&str])] = &[
        ("home-automation/SKILL.md", "Home Automation", &["'H' call it home-automation"]),
        ("home automation/SKILL.md", "home automation", &["' ' call it home-automation"]),
        ("home-automation/SKILL.md", "home-automation", &[]),
    ];
    for (path, name, expected) in rows {
        let text =
            format!("---\nname: {name}\ndescription: Turns lights on and off\n---\nDo it.\n");
        let catalog = skills(&[(path, &text)]);
        assert_eq!(catalog.findings().len(), 0, "loading says nothing of {name}");
        let told: Vec<_> = found(&[(path, &text)], path)
            .into_iter()
            .filter(|line| line.starts_with("name_characters"))
            .collect();
        let wanted: Vec<_> = expected
            .iter()
            .map(|expected| {
                let (odd, hint) = expected.split_at(3);
                format!(
                "name_characters 2:1 expected lowercase letters, digits and `-` in the name, got \
                 {odd} in `{name}`;{hint}"
            )
            })
            .collect();
        assert_eq!(told, wanted);
    }
}

#[test]
fn pages_of_commands() {
    let rows: &[(&str, &str, &[&str])] = &[
        (
            "a clean page",
            concat!(
                "## Usage\n",
                "\n",
                "mail.send --to <a>\n",
                "\n",
                "## Flags\n",
                "\n",
                "--to  Whom (required)\n",
                "\n",
                "## Examples\n",
                "\n",
                "mail.send --to a\n",
            ),
            &[],
        ),
        (
            "no usage",
            "Sends.\n",
            &["usage_missing expected a Usage section, got none; add a heading ## Usage and below \
               it mail.send with its flags"],
        ),
        (
            "an example that cannot be read",
            "## Usage\n\nmail.send\n\n## Examples\n\nmail.send --to \"a\n\nmail.send\n",
            &["example_unparsable 12:16 the double quote that opens here is never closed; \
               close the value with \", and write \\\" for a quote inside it; for a long text \
               use a heredoc: --flag <<EOF, the text, a line EOF"],
        ),
        (
            "in a block",
            "## Usage\n\nmail.send\n## Notes\n```cmd\nmail.send | wc\n```\n",
            &["example_unparsable 11:11 `|` is not supported: this is not a shell; \
               write one command per line, and use {1} as a value for the result of the first; \
               quote it (\"|\") if it is part of a value"],
        ),
        (
            "an unknown command",
            "## Usage\n\nmail.sned --to <a>\n",
            &["example_unknown 8:1 there is no command `mail.sned`; did you mean `mail.send` \
               or `mail.read`?"],
        ),
        (
            "an unknown command in a block, with no name close to it",
            "## Usage\n\nmail.send\n\n## Behavior\n\n```cmd\nxyzzy.plugh\n```\n",
            &["example_unknown 13:1 there is no command `xyzzy.plugh`"],
        ),
        ("other domains are text", "## Usage\n\nmail.send\n\nnode.js is no command\n", &[]),
        (
            "get_skill and other commands",
            "## Usage\nmail.send\n```cmd\nget_skill: mail\nmail.read --id 1\n```\n",
            &[],
        ),
        (
            "flags that are not listed",
            concat!(
                "## Usage\n",
                "mail.send --to <a> [--cc <b>]\n",
                "## Flags\n",
                "--to  Whom\n",
                "## Examples\n",
                "mail.send --to a --bcc b --help\n",
            ),
            &[
                "flag_undocumented 7:21 the Flags section does not list --cc; list it there, \
                 or remove it here",
                "flag_undocumented 11:18 the Flags section does not list --bcc; list it there, \
                 or remove it here",
            ],
        ),
        (
            "flags of another command",
            concat!(
                "## Usage\n",
                "mail.send\n",
                "## Flags\n",
                "--to  Whom (text)\n",
                "## Examples\n",
                "mail.send --to a\n",
                "mail.read --id 1\n",
            ),
            &[],
        ),
        (
            "spelled in two ways",
            "## Usage\nmail.send --reply_to <a>\n## Flags\n--reply-to  Where\n",
            &[],
        ),
        (
            "flags in prose",
            concat!(
                "## Usage\n",
                "mail.send --to <a>\n",
                "## Flags\n",
                "It takes --cc (required).\n",
                "## Examples\n",
                "mail.send\n",
            ),
            &[],
        ),
        (
            "a flag that nothing shows",
            "## Usage\nmail.send [OPTIONS]\n## Flags\n--to  Whom (text)\n",
            &["flag_unused 9:1 neither Usage nor an example shows --to; show it in Usage"],
        ),
        (
            "a flag of which nothing is understood",
            concat!(
                "## Usage\n",
                "mail.send [OPTIONS] [--shown]\n",
                "## Flags\n",
                "--to  Whom\n",
                "--cc <b>  Copies\n",
                "--day  Which (default: the first one)\n",
                "--name  One of the others, please\n",
                "--shown  Shown above\n",
                "## Examples\n",
                "mail.send --to a --cc b --day c --name d\n",
            ),
            &[
                "flag_untyped 9:1 nothing but the name of --to is understood, so any value of it \
                 is accepted; say for example (required), (text), (a switch), (a number from 1 to \
                 9), one of: a, b, one or more words, or declare it in `flags`",
                "flag_untyped 12:1 nothing but the name of --name is understood, so any value of \
                 it is accepted; say for example (required), (text), (a switch), (a number from 1 \
                 to 9), one of: a, b, one or more words, or declare it in `flags`",
            ],
        ),
        (
            "a required flag is missing",
            concat!(
                "## Usage\n",
                "mail.send --to <a> --body <b>\n",
                "## Flags\n",
                "--to  Whom (required)\n",
                "--body  What (required)\n",
                "## Examples\n",
                "mail.send\n",
            ),
            &["example_flag_missing 12:1 the example leaves out --to and --body, which the page \
               requires; add the missing flags"],
        ),
        (
            "contradictions",
            concat!(
                "## Usage\n",
                "mail.send [--to <a>] --cc <b> [--mode] [--all <x>]\n",
                "## Flags\n",
                "--to  Whom (required)\n",
                "--cc  Copies\n",
                "--mode  One of: a, b (default: c)\n",
                "--all  All (a switch)\n",
            ),
            &[
                "flag_contradiction 9:1 the Flags section requires --to, but Usage shows it in \
                 brackets; remove the brackets, or the mark (required)",
                "flag_contradiction 10:1 the Flags section does not require --cc, but Usage shows \
                 it without brackets; put it in brackets, or mark it (required)",
                "flag_contradiction 11:1 the Flags section gives --mode a value, but Usage shows \
                 it without one; show the value in Usage: --name <value>",
                "flag_default 11:1 the default c of --mode is not one of the flag's values; \
                 correct the default or the values",
                "flag_contradiction 12:1 the Flags section calls --all a switch, but Usage shows \
                 it with a value; show it without a value, or describe its values",
            ],
        ),
        (
            "a word stands for it",
            concat!(
                "## Usage\n",
                "mail.send --to <a>\n",
                "## Flags\n",
                "--to  Whom (required)\n",
                "## Examples\n",
                "mail.send a\n",
                "mail.send --help\n",
                "mail.send {\"to\": \"a\"}\n",
            ),
            &[],
        ),
    ];
    for (case, body, expected) in rows {
        let found = send(body);
        assert_eq!(found, *expected, "{case}");
    }
}

#[test]
fn flags_of_the_frontmatter() {
    let page = |flags: &str, body: &str| {
        let head = "---\nname: mail.send\ndescription: Sends a message to people\n";
        let text = format!("{head}flags: {flags}\n---\n{body}");
        found(&[("mail/read.md", READ), ("mail/send.md", &text)], "mail/send.md")
    };
    let usage = "## Usage\nmail.send --to <a> [--all]\n";
    let rows: [(&str, &str, &str, &[&str]); 6] = [
        ("alike", "{to: {required: true}, all: boolean}", "## Flags\n--to  A\n--all  B\n", &[]),
        ("more exact", "{to: {type: email, required: true}, all: boolean}",
         "## Flags\n--to  Whom (text, required)\n", &[]),
        ("not declared", "{to: {required: true}, all: boolean}", "## Flags\n--cc  Copies\n",
         &["flag_contradiction 9:1 the Flags section lists --cc, but `flags` does not declare it, \
            so it is refused; declare it there, or remove it here"]),
        ("otherwise described", "{to: {required: true}, all: boolean}",
         "## Flags\n--to  Whom (integer, optional, default: 5, repeatable)\n",
         &["flag_contradiction 9:1 the Flags section and `flags` differ about --to: whether it is \
            required; `flags` counts; correct one of them; the section needs only a description",
           "flag_contradiction 9:1 the Flags section and `flags` differ about --to: its type; \
            `flags` counts; correct one of them; the section needs only a description",
           "flag_contradiction 9:1 the Flags section and `flags` differ about --to: its default; \
            `flags` counts; correct one of them; the section needs only a description",
           "flag_contradiction 9:1 the Flags section and `flags` differ about --to: how many \
            values it takes; `flags` counts; correct one of them; the section needs only a \
            description"]),
        ("Usage", "{to: boolean, all: {required: true}}", "",
         &["flag_contradiction 4:1 `flags` does not require --to, but Usage shows it without \
            brackets; put it in brackets, or mark it (required)",
           "flag_contradiction 4:1 `flags` calls --to a switch, but Usage shows it with a value; \
            show it without a value, or describe its values",
           "flag_contradiction 4:1 `flags` requires --all, but Usage shows it in brackets; remove \
            the brackets, or the mark (required)",
           "flag_contradiction 4:1 `flags` gives --all a value, but Usage shows it without one; \
            show the value in Usage: --name <value>"]),
        ("other flags", "{to: {required: true}}", "",
         &["flag_undocumented 7:21 `flags` does not declare --all; list it there, or remove it \
            here"]),
    ];
    for (case, flags, section, expected) in rows {
        assert_eq!(page(flags, &format!("{usage}{section}")), expected, "{case}");
    }
}

#[test]
fn names_of_commands() {
    let rows = [
        ("mail.send", true),
        ("mail.send_2", true),
        ("mail.send-now", false),
        ("mail.2send", false),
        ("mail.send.now", false),
        ("Mail.send", false),
    ];
    for (name, good) in rows {
        let text = doc(name, "", "## Usage\n\nx\n").replace("About", "What is to be known about");
        let expected = format!(
            "command_name 2:1 expected domain.action in lowercase letters, digits and `_`, \
             each beginning with a letter, got `{name}`"
        );
        let expected = if good { vec![] } else { vec![expected] };
        assert_eq!(found(&[("a.md", &text)], "a.md"), expected, "{name}");
    }
}

#[test]
fn sizes() {
    let lines = |count: usize| "x\n".repeat(count);
    let rows = [
        ("short enough", "Says what it is for, in short.", lines(500), vec![]),
        (
            "many lines",
            "Says what it is for, in short.",
            lines(501),
            vec![
                "body_long the text has 501 lines and about 250 tokens; the advice is at most 500 \
                 lines and 5000 tokens; move parts that are not always needed into other files of \
                 the skill's folder",
            ],
        ),
        (
            "long lines",
            "Says what it is for, in short.",
            "x".repeat(20_004),
            vec![
                "body_long the text has 1 lines and about 5001 tokens; the advice is at most 500 \
                 lines and 5000 tokens; move parts that are not always needed into other files of \
                 the skill's folder",
            ],
        ),
        ("20 characters", "Twenty characters it", lines(1), vec![]),
        (
            "19 characters",
            "Nineteen characters",
            lines(1),
            vec![
                "description_short 3:1 the description has 19 characters; models choose skills by \
                 it; say what it does and when to use it",
            ],
        ),
    ];
    for (case, description, body, expected) in rows {
        let text = format!("---\nname: a\ndescription: {description}\n---\n{body}");
        assert_eq!(found(&[("a/SKILL.md", &text)], "a/SKILL.md"), expected, "{case}");
    }
}

#[test]
fn blocks_in_skills_and_indexes() {
    let unknown = |line| {
        vec![format!(
            "example_unknown {line}:1 there is no command `mail.red`; did you mean `mail.read`?"
        )]
    };
    let index = "---\ndomain: mail\ndescription: All about mail\n---\n\n```cmd\nmail.red\n```\n";
    let skill = concat!(
        "---\n",
        "name: post\n",
        "description: How to answer letters\n",
        "---\n",
        "```cmd\n",
        "mail.red\n",
        "```\n",
        "mail.red is here text\n",
    );
    let files = [("mail/read.md", READ), ("mail/SKILL.md", index), ("post/SKILL.md", skill)];
    assert_eq!(found(&files, "mail/SKILL.md"), unknown(7));
    assert_eq!(found(&files, "post/SKILL.md"), unknown(6));
}

#[test]
fn examples_that_lead_elsewhere() {
    let page = |name: &str, about: &str, more: &str| {
        let text = format!(
            "---\nname: {name}\ndescription: {about} for everybody\n{more}---\nText of {name}.\n"
        );
        (format!("{name}/SKILL.md"), text)
    };
    let others = |count: usize| {
        (0..count).map(|at| page(&format!("rain{at}"), "Tells about rain tomorrow", "")).collect()
    };
    let own = |about: &str, examples: &str, others: Vec<(String, String)>| {
        let files: Vec<_> = [page("sky", about, examples)].into_iter().chain(others).collect();
        let files: Vec<_> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        found(&files, "sky/SKILL.md")
    };
    let lost = "examples_lost 5:5 expected `sky` among the first 3 for its example \"Will it rain \
                tomorrow?\", got `rain0` (tomorrow, rain), `rain1` (tomorrow, rain), `rain2` \
                (tomorrow, rain); ";
    let foreign = "no word of the request leads here; say in the description what people ask for, \
                   in their words";
    let weak =
        "say in the description what people ask for, in their words, or say less in the others";
    let example = "examples:\n  - Will it rain tomorrow?\n";
    let rows = [
        ("nothing in common", own("Watches the clouds", example, others(3)), vec![(lost, foreign)]),
        ("too little", own("Watches the rain", example, others(3)), vec![(lost, weak)]),
        ("two before it", own("Watches the clouds", example, others(2)), vec![]),
        ("it is first", own("Will it rain tomorrow", example, others(3)), vec![]),
        (
            "not wanted",
            own("Watches the clouds", "examples:\n  - not: Will it rain tomorrow?\n", others(3)),
            vec![],
        ),
        (
            "hidden from models",
            own(
                "Watches the clouds",
                &format!("{example}disable-model-invocation: true\n"),
                others(3),
            ),
            vec![],
        ),
    ];
    for (case, found, expected) in rows {
        let expected: Vec<_> =
            expected.into_iter().map(|(message, hint)| format!("{message}{hint}")).collect();
        assert_eq!(found, expected, "{case}");
    }
}

#[test]
fn examples_that_contradict_each_other() {
    let found = |own: &str, other: &str| {
        let page = |name: &str, examples: &str| {
            format!(
                "---\nname: {name}\ndescription: Something about {name} and more\nexamples:\n\
                 {examples}\n---\nText.\n"
            )
        };
        let (own, other) = (page("rain", own), page("snow", other));
        found(&[("rain/SKILL.md", &own), ("snow/SKILL.md", &other)], "rain/SKILL.md")
    };
    let ambiguous = |place: &str, text: &str| vec![format!("example_ambiguous {place} {text}")];
    let keep = "; keep one of them";
    let rows = [
        ("one", "- About rain", "- About snow", vec![]),
        (
            "both, in other letters",
            "- About rain\n- not: about RAINS?",
            "- About snow",
            ambiguous(
                "6:8",
                &format!("the example \"about RAINS?\" is also written without `not`{keep}"),
            ),
        ),
        (
            "the other way round",
            "- not: About rain\n- About rain!",
            "- About snow",
            ambiguous(
                "6:3",
                &format!("the example \"About rain!\" is also written after `not`{keep}"),
            ),
        ),
        (
            "twice",
            "- About rain\n- about  rain",
            "- About snow",
            ambiguous("6:3", &format!("the example \"about  rain\" is written twice{keep}")),
        ),
        (
            "of another entry",
            "- About rain",
            "- about rain",
            ambiguous(
                "5:3",
                "the example \"About rain\" is also one of `snow`; keep it where it belongs; in \
                 the other it may be after `not`",
            ),
        ),
        ("not of another entry", "- About rain", "- not: about rain", vec![]),
        ("not of both", "- not: About", "- not: about", vec![]),
    ];
    for (case, own, other, expected) in rows {
        assert_eq!(found(own, other), expected, "{case}");
    }
    let long = "é".repeat(81);
    assert_eq!(
        found(&format!("- {long}\n- {long}"), "- x"),
        ambiguous("5:3", &format!("the example \"{}…\" is written twice{keep}", "é".repeat(80)))
    );
}

#[test]
fn hidden_pages_are_not_checked() {
    let labelled = READ.replace("---\n## Usage", "visibility_labels: [own]\n---\n## Usage");
    let send = concat!(
        "---\n",
        "name: mail.send\n",
        "description: Sends a message to people\n",
        "---\n",
        "## Usage\n",
        "\n",
        "mail.send\n",
        "mail.read --id 1\n",
    );
    let catalog = common::cached(skills(&[
        ("mail/read.md", &labelled.replace("--id <id>", "\"")),
        ("mail/send.md", send),
    ]));
    let (guest, owner) =
        (view(&catalog, "guest", &[], None), view(&catalog, "owner", &["own"], None));

    assert_eq!(
        listing(&lint(&guest), "mail/send.md"),
        ["example_unknown 8:1 there is no command `mail.read`; did you mean `mail.send`?"]
    );
    assert_eq!(listing(&lint(&guest), "mail/read.md"), [""; 0]);
    assert_eq!(listing(&lint(&owner), "mail/send.md"), [""; 0]);
    assert_eq!(listing(&lint(&owner), "mail/read.md").len(), 1);
}

#[test]
fn blocks_of_another_command_line_are_left_alone() {
    let rows: [(&str, &[&str]); 6] = [
        ("dir /s *.log", &[]),
        ("dir | findstr x", &[]),
        ("copy \"a b", &[]),
        (
            "mail.red --id 1",
            &["example_unknown 6:1 there is no command `mail.red`; did you mean `mail.read`?"],
        ),
        ("zq.zq", &["example_unknown 6:1 there is no command `zq.zq`"]),
        (
            "--id 1",
            &["example_unparsable 6:1 expected a skill's name, got a flag; \
               put flags on their command's line, before the text of a heredoc; \
               a backslash at the end continues a line"],
        ),
    ];
    for (line, expected) in rows {
        let text = format!(
            "---\nname: post\ndescription: How to answer letters\n---\n```cmd\n{line}\n```\n"
        );
        let found = found(&[("mail/read.md", READ), ("post/SKILL.md", &text)], "post/SKILL.md");
        assert_eq!(found, *expected, "{line}");
    }
}

/// The findings about hidden characters, each with its severity.
fn hidden(text: &str) -> Vec<String> {
    let found = lint(&all(skills(&[("mail/SKILL.md", text)])));
    let hidden = found.iter().filter(|one| one.code == Code::HiddenCharacters);
    let line = |one: &Diagnostic| {
        let place = (one.line.unwrap(), one.column.unwrap());
        format!("{}:{} {} {}", place.0, place.1, one.severity.as_str(), one.message)
    };
    hidden.map(line).collect()
}

#[test]
fn hidden_characters() {
    let head = "---\nname: mail\ndescription: Sends a message to people\n---\n";
    let rows: &[(&str, &[&str])] = &[
        ("Plain é 日本 👩\u{200D}💻 ❤\u{FE0F}\r\n", &[]),
        ("a\u{200B}b", &["5:2 warning a hidden character: U+200B ZERO WIDTH SPACE"]),
        ("é\n日\u{1B}[2J", &["6:2 warning a hidden character: U+001B ESCAPE"]),
        ("a\u{202E}b", &["5:2 error a hidden character: U+202E RIGHT-TO-LEFT OVERRIDE"]),
        (
            "a\u{AD}\u{AD} b\u{2028}",
            &[
                "5:2 warning 2 hidden characters: U+00AD SOFT HYPHEN, U+00AD SOFT HYPHEN",
                "5:6 warning a hidden character: U+2028 LINE SEPARATOR",
            ],
        ),
        (
            "\u{E0061}\u{E0062}\u{E0063}\u{E0064}",
            &["5:1 error 4 hidden characters: U+E0061 TAG CHARACTER, U+E0062 TAG CHARACTER, \
             U+E0063 TAG CHARACTER, …"],
        ),
    ];
    for (body, expected) in rows {
        assert_eq!(hidden(&format!("{head}{body}")), *expected, "{body:?}");
    }
    // A byte order mark is hidden only within a text.
    let mark = "a hidden character: U+FEFF ZERO WIDTH NO-BREAK SPACE";
    assert_eq!(hidden(&format!("\u{FEFF}{head}a\u{FEFF}")), [format!("5:2 warning {mark}")]);
    // Escapes of YAML.
    assert_eq!(
        hidden("---\nname: mail\ndescription: \"Sends \\u202E mail\"\n---\nText\n"),
        ["3:1 error a hidden character: U+202E RIGHT-TO-LEFT OVERRIDE"]
    );
    // At most 19 places, then a count.
    let many = hidden(&format!("{head}{}", "a\u{200B}".repeat(100)));
    assert_eq!(
        (many.len(), &*many[19]),
        (20, "5:40 warning 81 more hidden characters from here on")
    );
}

#[test]
fn messages_quote_no_hidden_characters_and_no_lines() {
    let text = "---\nname: \"a\\u202E\\e\\nerror: x\"\ndescription: Sends a message to people\n\
                handler: \"\\a\"\nschedule: \"\\u200B\\nx\"\nrequires: [\"\\e\"]\n---\nText\n";
    let restricted = "---\nname: b\ndescription: d\n\"visibility_label\\e\\n\": [x]\n---\n";
    let view = all(skills(&[("mail/SKILL.md", text), ("b/SKILL.md", restricted)]));
    let found = lint(&view);
    let all: Vec<_> = found.iter().chain(view.diagnostics()).collect();
    assert!(all.len() > 3, "{all:?}");
    for diagnostic in all {
        for text in [Some(&diagnostic.message), diagnostic.hint.as_ref()].into_iter().flatten() {
            assert_eq!((find(text).count(), text.contains('\n')), (0, false), "{text:?}");
        }
    }
}
