//! Broken pages beside right ones: each says its mistake at load or in lint, at its place, and the
//! right one says nothing. A fix makes the right one of the broken.

mod common;

use common::{all, skills};
use skillbook_core::lint::lint;
use skillbook_core::page::diagnostic::{apply, Diagnostic, Fix};
use skillbook_core::view::View;

const READ: &str = "---\nname: mail.read\ndescription: Reads one message by its id\n---\n\
    ## Usage\n\nmail.read --id <id>\n\n## Flags\n\n--id  The message (required)\n";

const PATH: &str = "mail/send.md";

fn of(text: &str) -> View {
    all(skills(&[("mail/read.md", READ), (PATH, text)]))
}

fn lines<'a>(found: impl Iterator<Item = &'a Diagnostic>) -> Vec<String> {
    let own = found.filter(|one| one.path.as_deref() == Some("/s/mail/send.md"));
    own.map(|one| {
        let place = match (one.line, one.column) {
            (Some(line), Some(column)) => format!("{line}:{column} "),
            _ => String::new(),
        };
        let (code, message) = (one.code.as_str(), &one.message);
        let hint = one.hint.as_deref().unwrap_or_default();
        format!("{place}{} {code} {message}; {hint}", one.severity.as_str())
    })
    .collect()
}

/// The findings of loading, and those of lint.
fn found(text: &str) -> (Vec<String>, Vec<String>) {
    let view = of(text);
    let loaded = lines(view.diagnostics());
    (loaded, lines(lint(&view).iter()))
}

/// Checks that a page has one finding and its twin none. With `fixes`, the fix makes the twin.
fn check(broken: &str, right: &str, loaded: &[&str], linted: &[&str], fixes: bool) {
    let (load, advice) = found(broken);
    assert_eq!((&load, &advice), (&own(loaded), &own(linted)), "{broken}");
    assert_eq!(found(right), (vec![], vec![]), "{right}");
    let view = of(broken);
    let fix: Vec<Fix> = view.diagnostics().filter_map(|one| one.fix.as_deref().cloned()).collect();
    assert_eq!(apply(broken, &fix), if fixes { right } else { broken });
}

fn own(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

const USAGE: &str = "## Usage\n\nmail.send --to <a>\n\n## Flags\n\n--to  Whom (required)\n";

/// A command whose fourth line is `line`.
fn with_line(line: &str) -> String {
    format!("---\nname: mail.send\ndescription: Sends a message to people\n{line}\n---\n{USAGE}")
}

/// A command whose body begins on line 5.
fn with_body(body: &str) -> String {
    format!("---\nname: mail.send\ndescription: Sends a message to people\n---\n{body}")
}

#[test]
fn keys() {
    let rows = [
        ("shedule: 0 9 * * 1", "schedule: 0 9 * * 1"),
        ("schedul: 0 9 * * 1", "schedule: 0 9 * * 1"),
        ("shcedule: 0 9 * * 1", "schedule: 0 9 * * 1"),
        ("Schedule: 0 9 * * 1", "schedule: 0 9 * * 1"),
        ("cron: 0 9 * * 1", "schedule: 0 9 * * 1"),
        ("time_zone: Europe/Berlin", "timezone: Europe/Berlin"),
        ("timezome: Europe/Berlin", "timezone: Europe/Berlin"),
        ("tz: Europe/Berlin", "timezone: Europe/Berlin"),
        ("efects: write", "effects: write"),
        ("effect: write", "effects: write"),
        ("side_effects: write", "effects: write"),
        ("handeler: MyApp.Send", "handler: MyApp.Send"),
        ("licence: MIT", "license: MIT"),
        ("tag: [mail]", "tags: [mail]"),
        ("alias: [post]", "aliases: [post]"),
        ("titel: Send", "title: Send"),
        ("time-out: 5m", "timeout: 5m"),
        ("time_limit: 5m", "timeout: 5m"),
        ("maxRunning: 2", "max_running: 2"),
        ("max-running: 2", "max_running: 2"),
        ("run-as: anna", "run_as: anna"),
        ("on-error: continue", "on_error: continue"),
        ("onerror: continue", "on_error: continue"),
        ("require: [mail.read]", "requires: [mail.read]"),
        ("triggerKeywords: [post]", "trigger_keywords: [post]"),
        ("trigger_keyword: [post]", "trigger_keywords: [post]"),
        ("example: [Write to Ann]", "examples: [Write to Ann]"),
        ("compatability: Linux", "compatibility: Linux"),
        ("meta-data: {a: b}", "metadata: {a: b}"),
        ("replace: false", "replaces: false"),
        ("stict: true", "strict: true"),
        ("trsut: low", "trust: low"),
        ("conection: mail", "connection: mail"),
        ("vesion: 1.0", "version: 1.0"),
    ];
    for (broken, right) in rows {
        let key = |line: &str| line.split_once(':').unwrap().0.to_owned();
        let (key, field) = (key(broken), key(right));
        let expected = format!(
            "4:1 warning field_misspelt expected the field `{field}`, got `{key}`, which has no \
             effect; write {field}, or another name if it is a field of your own"
        );
        check(&with_line(broken), &with_line(right), &[&expected], &[], true);
    }
}

#[test]
fn keys_that_are_their_authors_own() {
    let keys = "argument-hint arguments model effort context agent hooks paths shell when_to_use \
        mode tools color skills mcpServers memory background globs alwaysApply applyTo trigger \
        triggers category displayName priority risk bundle homepage emoji os always primaryEnv \
        command-dispatch command-tool install icon status summary keywords language type id slug \
        date created updated author version source dependencies interface policy description_de \
        title-en x-version my_title game script collection authors versions required runs tabs \
        names titles input inputs outputs parameters";
    for key in keys.split_whitespace() {
        assert_eq!(found(&with_line(&format!("{key}: x"))), (vec![], vec![]), "{key}");
    }
    // Both are there: the other one is the author's own.
    let both = with_line("schedule: 0 9 * * 1\nscheduled: x\nshedule: x");
    assert_eq!(found(&both), (vec![], vec![]));
}

#[test]
fn a_key_in_two_slips_or_without_a_line_is_not_renamed() {
    for line in ["shedule: 0 9 * * 1\nschedul: 0 9 * * 2", "\"shedule\": 0 9 * * 1"] {
        let view = of(&with_line(line));
        let found: Vec<_> = view.diagnostics().collect();
        assert_eq!(found.len(), line.lines().count(), "{line}");
        assert!(found.iter().all(|one| one.fix.is_none()), "{line}");
    }
}

#[test]
fn a_misspelt_name_and_description() {
    let text = |name: &str, description: &str| {
        format!("---\n{name}: mail.send\n{description}: Sends a message to people\n---\n{USAGE}")
    };
    let slip = |line: u32, field: &str, key: &str| {
        format!(
            "{line}:1 warning field_misspelt expected the field `{field}`, got `{key}`, which has \
             no effect; write {field}, or another name if it is a field of your own"
        )
    };
    let missing = "warning name_missing expected a name in the frontmatter; its path says `send`; \
        add the line name: send";
    let (broken, right) = (text("nmae", "description"), text("name", "description"));
    let (loaded, _) = found(&broken);
    assert_eq!(loaded, [missing.to_owned(), slip(2, "name", "nmae")]);
    let fixes: Vec<Fix> =
        of(&broken).diagnostics().filter_map(|one| one.fix.as_deref().cloned()).collect();
    assert_eq!(apply(&broken, &fixes), right);

    let (loaded, _) = found(&text("name", "desciption"));
    let unused = "error description_missing expected a description in the frontmatter; the file \
        is not used; begin the file with ---, name: …, description: …, ---, each on a line of its \
        own";
    assert_eq!(loaded, [unused.to_owned(), slip(3, "description", "desciption")]);
}

#[test]
fn headings() {
    let flags = "\n\nmail.send --to <a>\n\n";
    let rows = [
        ("Flag", "Flags"),
        ("Flgas", "Flags"),
        ("FLAG", "Flags"),
        ("Flags:", "Flags"),
        ("**Flags**", "Flags"),
        ("Useage", "Usage"),
        ("Usgae", "Usage"),
        ("Exampels", "Examples"),
        ("Examples:", "Examples"),
        ("Behavoir", "Behavior"),
        ("Behaviors", "Behavior"),
        ("Behavour", "Behavior"),
    ];
    for (slip, known) in rows {
        let body = |title: &str| match known {
            "Usage" => format!("## {title}{flags}## Flags\n\n--to  Whom (required)\n"),
            "Flags" => format!("## {title}\n\n--to  Whom (required)\n\n## Usage{flags}"),
            _ => format!("## {title}\n\nText.\n\n{USAGE}"),
        };
        let expected = format!(
            "5:1 warning heading_misspelt expected the heading `{known}`, got `{slip}`; its \
             section has no effect; write ## {known}"
        );
        let (broken, right) = (with_body(&body(slip)), with_body(&body(known)));
        assert_eq!(found(&broken).0, [expected], "{slip}");
        assert_eq!(found(&right), (vec![], vec![]), "{known}");
        let fix: Vec<Fix> =
            of(&broken).diagnostics().filter_map(|one| one.fix.as_deref().cloned()).collect();
        assert_eq!(apply(&broken, &fix), right);
    }
    let british = |title: &str| with_body(&format!("{USAGE}\n### {title}\n\nText.\n"));
    let expected = "13:1 warning heading_misspelt expected the heading `Behavior`, got \
        `Behaviour`; read as `Behavior`; write ### Behavior";
    check(&british("Behaviour"), &british("Behavior"), &[expected], &[], true);
}

#[test]
fn headings_in_other_words() {
    let usage = "\n\nmail.send --to <a>\n";
    let flags = "\n\n--to  Whom (required)\n";
    let steps = "\n\n```cmd\nmail.read --id 1\n```\n\nSum it up.\n";
    let example = "\n\n`mail.send --to Ann`\n";
    let rows = [
        ("Flags", flags, &["Arguments", "Parameters", "Options", "Args", "Paramters", "INPUT"][..]),
        ("Usage", usage, &["Synopsis", "Syntax", "How to use"]),
        ("Behavior", steps, &["Steps", "Procedure", "Workflow", "Instructions"]),
        ("Examples", example, &["Usage examples", "Samples"]),
    ];
    for (known, section, words) in rows {
        let others: Vec<_> = rows
            .iter()
            .filter(|(other, ..)| *other != known)
            .map(|(other, section, _)| format!("\n## {other}{section}"))
            .collect();
        for word in words {
            let page = |title: &str| with_body(&format!("## {title}{section}{}", others.concat()));
            let expected = format!(
                "5:1 warning heading_misspelt expected the heading `{known}`, got `{word}`; its \
                 section has no effect; write ## {known}"
            );
            let (broken, right) = (page(word), page(known));
            assert_eq!(found(&broken).0, [expected], "{word}");
            assert_eq!(found(&right), (vec![], vec![]), "{known}");
            let fix: Vec<Fix> =
                of(&broken).diagnostics().filter_map(|one| one.fix.as_deref().cloned()).collect();
            assert_eq!(apply(&broken, &fix), right);
        }
    }
    // Only a section that would be read there, and only of a page that lacks it.
    for (title, section) in [
        ("Options", "\n\nCall first, or write.\n"),
        ("Options", flags),
        ("Steps", "\n\n1. Read it.\n2. Answer.\n"),
        ("Syntax", "\n\nMarkdown.\n"),
        ("Samples", "\n\nIn the folder.\n"),
    ] {
        let page = with_body(&format!("{USAGE}\n## {title}{section}"));
        assert_eq!(found(&page), (vec![], vec![]), "{title}{section}");
    }
    // Two of them: only their author knows which one is right.
    let two = with_body(&format!("## Options{flags}\n## Arguments{flags}\n## Usage{usage}"));
    assert_eq!(found(&two).0.len(), 2);
    assert!(of(&two).diagnostics().all(|one| one.fix.is_none()));
}

#[test]
fn a_schedule_below_a_heading() {
    for (title, cron) in [("Schedule", "0 9 * * 1"), ("When it runs", "@daily")] {
        let page = |line: &str| {
            let text = format!("{USAGE}\n## {title}\n\n`{cron}`\n");
            format!(
                "---\n{line}name: mail.send\ndescription: Sends a message to people\n---\n{text}"
            )
        };
        let expected = format!(
            "13:1 warning heading_misspelt expected the field `schedule`, got the heading \
             `{title}`; its section has no effect; write schedule: {cron} in the frontmatter"
        );
        let quoted = if cron.starts_with('@') { format!("'{cron}'") } else { cron.to_owned() };
        let right = page(&format!("schedule: {quoted}\n"));
        check(&page(""), &right, &[&expected], &[], true);
    }
    for text in ["Mondays, if there is time.", "at 9"] {
        let page = with_body(&format!("{USAGE}\n## Schedule\n\n{text}\n"));
        assert_eq!(found(&page), (vec![], vec![]), "{text}");
    }
}

#[test]
fn headings_that_are_no_slips() {
    for title in ["Flask", "Save", "Notes", "Flags and limits", "Behind the scenes", "Samples"] {
        let page = with_body(&format!("{USAGE}\n## {title}\n\nText.\n"));
        assert_eq!(found(&page), (vec![], vec![]), "{title}");
    }
    // The right one is there too, or the page is not a command's.
    let both = with_body(&format!("{USAGE}\n## Flag\n\nText.\n"));
    assert_eq!(found(&both), (vec![], vec![]));
    let skill =
        "---\nname: flags\ndescription: How to hoist flags on ships\n---\n## Flag\n\nHoist it.\n";
    let view = all(skills(&[("flags/SKILL.md", skill)]));
    assert_eq!((view.diagnostics().count(), lint(&view)), (0, vec![]));
}

#[test]
fn placeholders() {
    let workflow = |steps: &str| {
        with_body(&format!("{USAGE}\n## Behavior\n\n```cmd\n{steps}\n```\n\nSum it up.\n"))
    };
    let known = "known are {to}, {today}, {yesterday}, {now}, {user} and the numbers of earlier \
        steps; for a brace, write {{";
    let unknown = |name: &str, hint: &str| {
        format!(
            "16:16 error placeholder_unknown step 1 has the unknown placeholder {{{name}}}, so \
            no call runs; {hint}"
        )
    };
    let rows = [
        ("mail.read --id {ot}", "mail.read --id {to}", unknown("ot", known)),
        ("mail.read --id {subject}", "mail.read --id {{subject}", unknown("subject", known)),
        (
            "mail.read --id {toady}",
            "mail.read --id {today}",
            unknown("toady", "did you mean {today}?"),
        ),
        (
            "mail.read --id {1}",
            "mail.read --id 1",
            "16:16 error placeholder_unknown step 1 cannot use {1}: only earlier steps have a \
             result; put the step with the result first"
                .to_owned(),
        ),
        (
            "mail.read --id {last}",
            "mail.read --id last",
            "16:16 error placeholder_unknown step 1 cannot use {last}: there is no step before it; \
             write the value, or a flag"
                .to_owned(),
        ),
        (
            "# name: one\nmail.read --id 1\nmail.read --id {noe}",
            "# name: one\nmail.read --id 1\nmail.read --id {one}",
            "18:16 error placeholder_unknown step 2 has the unknown placeholder {noe}, so no call \
             runs; known are {to}, {one}, {today}, {yesterday}, {now}, {user} and the numbers of \
             earlier steps; for a brace, write {{"
                .to_owned(),
        ),
        (
            "mail.read --id {two}\n# name: two\nmail.read --id 1",
            "# name: two\nmail.read --id 1\nmail.read --id {two}",
            "16:16 error placeholder_unknown step 1 cannot use {two}: only earlier steps have a \
             result; put the step with the result first"
                .to_owned(),
        ),
        (
            "mail.read --id \"a {userr}\"",
            "mail.read --id \"a {user} {1x\"",
            "16:19 error placeholder_unknown step 1 has the unknown placeholder {userr}, so no \
             call runs; did you mean {user}?"
                .to_owned(),
        ),
    ];
    for (broken, right, expected) in rows {
        check(&workflow(broken), &workflow(right), &[&expected], &[], false);
    }
    let prose = |text: &str| {
        format!(
            "---\nname: mail.send\ndescription: Sends a message to people\nflags:\n  \
             subject: {{type: text}}\n---\n{text}\n"
        )
    };
    let expected = "7:13 warning placeholder_unknown expected {subject}, got {subjct}, which is \
        left as text; write {subject}, or {{subjct} if it is meant as text";
    for right in ["Write about {subject}.", "Write about {name} {{subjct} {today}."] {
        check(&prose("Write about {subjct}."), &prose(right), &[expected], &[], false);
    }
}

#[test]
fn commands_in_pages() {
    let block = |line: &str| with_body(&format!("{USAGE}\n## Notes\n\n```cmd\n{line}\n```\n"));
    let rows = [
        (
            block("mail.raed --id 1"),
            block("mail.read --id 1"),
            "16:1 warning example_unknown there is no command `mail.raed`; did you mean \
             `mail.read` or `mail.send`?",
        ),
        (
            block("mail.read --di 1"),
            block("mail.read --id 1"),
            "16:11 warning example_flag_unknown `mail.read` has no flag --di; it has --id",
        ),
        (
            block("mail.read --id 1 --idd 1"),
            block("mail.read --id 1 --help"),
            "16:18 warning example_flag_unknown `mail.read` has no flag --idd; did you mean --id?",
        ),
        (
            block("mail.read --id 'a"),
            block("mail.read --id 'a'"),
            "16:16 warning example_unparsable the single quote that opens here is never closed; \
             close the value with ', or put a value with an apostrophe in \"…\"; for a long text \
             use a heredoc: --flag <<EOF, the text, a line EOF",
        ),
        (
            with_body(&format!("{USAGE}\n## Examples\n\nmail.read --id 1\n")),
            with_body(&format!("{USAGE}\n## Examples\n\nmail.read --id 1\nmail.send --to a\n")),
            "15:1 warning example_foreign expected `mail.send` in Examples, got only other \
             commands, such as `mail.read`; show mail.send here; others belong to their own pages",
        ),
        (
            with_body("## Usage\n\nmail.read --id <id>\n"),
            with_body("## Usage\n\nmail.send --id <id>\n"),
            "7:1 warning example_foreign expected `mail.send` in Usage, got only other commands, \
             such as `mail.read`; show mail.send here; others belong to their own pages",
        ),
        (
            with_body(&format!("{USAGE}\n## Examples\n\nmail.send --too a --to b\n")),
            with_body(&format!("{USAGE}\n## Examples\n\nmail.send --to b\n")),
            "15:11 warning flag_undocumented the Flags section does not list --too; did you mean \
             --to?",
        ),
        (
            with_body(&format!("{USAGE}\n## Examples\n\nmail.send\n")),
            with_body(&format!("{USAGE}\n## Examples\n\nmail.send --to b\n")),
            "15:1 warning example_flag_missing the example leaves out --to, which the page \
             requires; add the missing flags",
        ),
    ];
    for (broken, right, expected) in rows {
        check(&broken, &right, &[], &[expected], false);
    }
    let empty = "error body_missing expected text after the frontmatter, got none; write the \
        instructions below the frontmatter";
    check(&with_body(""), &with_body(USAGE), &[empty], &[], false);
}
