//! The flags that are read from Flags and Usage sections.

use super::*;

/// `name kind several required =default: description` of each flag.
fn flags(body: &str) -> Vec<String> {
    let Some(declared) = read(body) else { return Vec::new() };
    let bound = |bound: &Option<i64>| bound.map_or(String::new(), |bound| bound.to_string());
    let real = |bound: &Option<f64>| bound.map_or(String::new(), |bound| bound.to_string());
    let line = |flag: &Flag| {
        let kind = match &flag.kind {
            Type::OneOf(values) => values.join("|"),
            Type::Integer { min, max } => format!("integer {}..{}", bound(min), bound(max)),
            Type::Number { min, max } => format!("number {}..{}", real(min), real(max)),
            Type::Text { max, line, empty } => {
                let (line, empty) =
                    (if *line { "line" } else { "text" }, if *empty { " empty" } else { "" });
                format!("{line} {}{empty}", max.map_or(String::new(), |max| max.to_string()))
            }
            Type::Date { words } => format!("date{}", if *words { " words" } else { "" }),
            other => format!("{other:?}").to_lowercase(),
        };
        let several = if flag.several { " several" } else { "" };
        let required = if flag.required { " required" } else { "" };
        let default = if flag.default.is_empty() {
            String::new()
        } else {
            format!(" ={}", flag.default.join(","))
        };
        format!("{} {}{several}{required}{default}", flag.names.join("/"), kind.trim())
    };
    declared.flags.iter().map(line).collect()
}

fn section(text: &str) -> Vec<String> {
    flags(&format!("## Flags\n\n{text}\n"))
}

#[test]
fn lists_in_the_usual_styles() {
    let rows: &[(&str, &[&str])] = &[
        ("--to   Whom (required)\n--cc   Copies", &["to unknown required", "cc unknown"]),
        ("- `--to`: whom (Required)", &["to unknown required"]),
        ("- `--to <name>` - whom (required)", &["to value required"]),
        ("* **--to**, **--for** whom", &["to/for unknown"]),
        ("- **`--to`** (required): whom", &["to unknown required"]),
        ("- `--to` (string, required) — whom", &["to text required"]),
        ("--limit N   How many", &["limit integer .."]),
        ("--file PATH...  Which", &["file value several"]),
        ("--a A list of things", &["a unknown"]),
        ("--a  ALL", &["a unknown"]),
        ("--sort {name,date}  By what", &["sort name|date"]),
        ("--sort <name|date>  By what", &["sort name|date"]),
        ("--sort=<name>  By what", &["sort value"]),
        ("--due YYYY-MM-DD  When", &["due date"]),
        ("-t, --to <name>  Whom", &["to value"]),
        ("--to / -t  whom\n    a name\n    (required)", &["to unknown required"]),
        ("--to  Whom\n\n(required)", &["to unknown"]),
        ("- --to  Whom\n  (required)\n- no flag (required)", &["to unknown required"]),
        (
            "### `--to`\n\nWhom. Required.\n\n### --cc\n\nCopies",
            &["to unknown required", "cc unknown"],
        ),
        ("--to\n    Whom (required)\n--cc\n    Copies", &["to unknown required", "cc unknown"]),
        ("```\n--to  Whom (required)\n```\n(required)", &["to unknown required"]),
        ("--no-color  plain", &["no-color unknown"]),
        (
            "--to  Whom\n--to  Whom else (required)\n--t_o  x\n--t-o  y",
            &["to unknown", "t_o unknown"],
        ),
        (
            "| Flag | Type | Required | Default | Description |\n|---|:-:|---|---|---|\n\
             | `--to` | string | yes | | Whom |\n\
             | `-n, --limit` | integer | no | `20` | How many, 1-50 |\n\
             | `--mode <a\\|b>` | | | - | How |",
            &["to text required", "limit integer 1..50 =20", "mode value"],
        ),
        ("| `--to <name>` | whom (required) |", &["to value required"]),
        ("| Flag | Values |\n|--|--|\n| --sort | name, date |", &["sort name|date"]),
        ("It takes --to and --cc.", &[]),
        ("-- nothing\n--- nothing\n---", &[]),
        ("(required)\n\nAll are.", &[]),
        ("-t  short ones are no flags here", &[]),
    ];
    for (text, expected) in rows {
        assert_eq!(section(text), *expected, "{text}");
    }
    assert_eq!(read("## Flags\n- --to x").unwrap().flags[0].offset, Some(11));
    assert_eq!(
        read("## Flags\n--to  Whom,\n  by  name").unwrap().flags[0].description,
        "Whom, by name"
    );
    assert_eq!(read("## Usage\n\na.b --to <a>\n"), None);
}

#[test]
fn reads_plain_phrases_and_no_others() {
    let rows = [
        ("One of: a, b, c (default: a)", "a|b|c =a"),
        ("How to sort. One of a, b or c.", "a|b|c"),
        ("How to sort, one of: `a b`, \"c\"", "a b|c"),
        ("Either a or b", "a|b"),
        ("Allowed values: a, b", "a|b"),
        ("(one of: a, b; required)", "a|b required"),
        ("(required, one of: a, b)", "a|b required"),
        ("One or more of: a, b (default: a, b)", "a|b several =a,b"),
        ("One of the lists that there are", "unknown"),
        ("One of: a, or whatever there is", "unknown"),
        ("One of: a", "unknown"),
        ("Sort by: a, b", "unknown"),
        ("It is one of a, b", "unknown"),
        ("How many, from 1 to 100 (default: 20)", "integer 1..100 =20"),
        ("How many, from 1 on", "integer 1.."),
        ("How many (1-100)", "integer 1..100"),
        ("How many (max: 1,000, default 5)", "integer ..1000 =5"),
        ("A whole number, between 1 and 5", "integer 1..5"),
        ("How many (integer)", "integer .."),
        ("How much (number, from 1 to 5)", "number 1..5"),
        ("From 0 on (number)", "number 0.."),
        ("How much (a number)", "number .."),
        ("Copies pages from 1 to 5 of it", "unknown"),
        ("At least 3 words", "unknown"),
        ("Due: YYYY-MM-DD", "date"),
        ("Due as YYYY-MM-DD.", "date"),
        ("Due: YYYY-MM-DD, yesterday, today or tomorrow", "date words"),
        ("Due: YYYY-MM-DD, or what you like", "unknown"),
        ("Such as YYYY-MM-DD-HH", "unknown"),
        ("Only those due (a switch, no value)", "switch"),
        ("Only those due (boolean flag)", "switch"),
        ("Title, one line of at most 1,000 characters (required)", "line 1000 required"),
        ("Title (one line, required)", "line required"),
        ("A title, one line", "line"),
        ("When, one line: minute, hour", "line"),
        ("What stands there; it may be empty (text)", "text  empty"),
        ("A word, one line of at most 5 characters (default: general)", "line 5"),
        ("A word, at most 5 characters (default: short)", "text 5 =short"),
        ("When: YYYY-MM-DD (default: today)", "date"),
        ("When: YYYY-MM-DD or today (default: today)", "date words =today"),
        ("When: YYYY-MM-DD (default: 2026-02-30)", "date"),
        ("A title (text)", "text"),
        ("At most 5 characters", "text 5"),
        ("One or more words", "unknown several"),
        ("Addresses, space-separated (required)", "unknown several required"),
        ("Addresses (repeatable, optional)", "unknown several"),
        ("**Required.** Whom", "unknown required"),
        ("Required if --to is missing", "unknown"),
        ("Whom (required if --to is missing)", "unknown"),
        ("The zone (default: the application's)", "unknown"),
        ("The zone (default: Europe/Berlin)", "unknown"),
        ("The zone (default: `Europe/Berlin`)", "unknown =Europe/Berlin"),
        ("Whom (defaults to me)", "unknown =me"),
        ("Whom. Defaults to me.", "unknown =me"),
        ("By what (default: due; with --query the best match)", "unknown =due"),
        ("A number (integer) or text (string)", "unknown"),
        ("A (unclosed, required", "unknown required"),
    ];
    let wrong = rows.iter().filter_map(|(text, expected)| {
        let found = section(&format!("--x  {text}"));
        (found != [format!("x {expected}")]).then_some((text, expected, found))
    });
    assert_eq!(wrong.collect::<Vec<_>>(), []);
}

#[test]
fn reads_natural_lines() {
    // Each rule, and a line beside it that looks alike and says something else.
    let rows = [
        // Switches.
        ("all", "Boolean", "switch"),
        ("all", "Show all of them (boolean)", "switch"),
        ("all", "Boolean: show all of them", "switch"),
        ("all", "true or false", "switch"),
        ("all", "Show all of them (true/false)", "switch"),
        ("all", "Show all of them, yes or no", "switch"),
        ("all", "Yes or no", "switch"),
        ("all", "A boolean expression", "unknown"),
        ("all", "Whether it is true or false that it rains", "unknown"),
        // Several values.
        ("tags", "Comma-separated", "unknown several"),
        ("tags", "Comma-separated tags", "unknown several"),
        ("tags", "Tags, comma separated", "unknown several"),
        ("tags", "Tags; repeatable", "unknown several"),
        ("tags", "A tag. Can be given several times.", "unknown several"),
        ("tags", "A tag, it may be used more than once", "unknown several"),
        ("tags", "A tag (can be specified multiple times)", "unknown several"),
        ("tags", "Tags, one or more words", "unknown several"),
        ("tags", "The file is comma-separated", "unknown"),
        ("tags", "It can be given to several people", "unknown"),
        ("tags", "Each can be used once", "unknown"),
        // Values.
        ("status", "open | closed", "open|closed"),
        ("state", "open|closed|all (default: open)", "open|closed|all =open"),
        ("x", "The state (open|closed)", "open|closed"),
        ("x", "The state: open | closed, required", "open|closed required"),
        ("status", "open or closed", "open|closed"),
        ("status", "Open or closed", "open|closed"),
        ("status", "Open, closed or all.", "open|closed|all"),
        ("x", "The new status: open or closed", "open|closed"),
        ("x", "`open` or `closed`", "open|closed"),
        ("x", "\"in work\" or \"done\"", "in work|done"),
        ("x", "open or closed (default: open)", "open|closed =open"),
        ("format", "(json or text)", "json|text"),
        ("place", "city or country", "unknown"),
        ("owner", "A user or group", "unknown"),
        ("to", "name or address", "unknown"),
        ("status", "open or a day in March", "unknown"),
        ("status", "Bob or Ann", "unknown"),
        ("place", "city or country (default: Berlin)", "unknown =Berlin"),
        ("x", "a | b c", "unknown"),
        // Numbers.
        ("rate", "A number between 0 and 1", "number 0..1"),
        ("rate", "Confidence, between 0 and 1", "number 0..1"),
        ("rate", "Tries, from 0 to 1", "integer 0..1"),
        ("rate", "A number from 0.5 to 2.5", "number 0.5..2.5"),
        ("rate", "How sure, between 0.5 and 1 (default: 0.75)", "number 0.5..1 =0.75"),
        ("rate", "A whole number, 0 or more", "integer .."),
        ("rate", "A whole number between 0 and 1", "integer 0..1"),
        ("rate", "A number", "number .."),
        ("rate", "The number on the door", "unknown"),
        ("n", "How many, between 1 and 100", "integer 1..100"),
        ("n", "Between 1 and 100", "integer 1..100"),
        ("n", "Between Berlin and Rome", "unknown"),
        ("n", "Between 100 and 1", "unknown"),
        ("n", "Items, at least 3", "integer 3.."),
        ("n", "At least 3", "integer 3.."),
        ("n", "At most 10 (default 5)", "integer ..10 =5"),
        ("n", "Up to 10, required", "integer ..10 required"),
        ("n", "At least 3 of them", "unknown"),
        ("n", "Maximum number", "integer .."),
        ("n", "Maximum number of hits (default: 10)", "integer .. =10"),
        ("n", "The maximum number of hits, at most 50", "integer ..50"),
        ("n", "Max. number of hits", "integer .."),
        ("n", "How many to show", "integer .."),
        ("n", "How many to show, or all", "integer .."),
        ("n", "How many to show or all", "unknown"),
        ("n", "The number that it has", "unknown"),
        // Addresses.
        ("to", "E-mail address", "email"),
        ("to", "An email address", "email"),
        ("to", "E-mail address of the recipient (required)", "email required"),
        ("to", "The recipient's e-mail address", "email"),
        ("to", "One or more e-mail addresses", "email several"),
        ("to", "Comma-separated email addresses", "email several"),
        ("to", "Whom to write (e-mail)", "email"),
        ("to", "E-mail address or name", "unknown"),
        ("to", "Not an e-mail address", "unknown"),
        ("to", "E-mail addresses or names", "unknown"),
        ("page", "URL", "url"),
        ("page", "The URL of the page", "url"),
        ("page", "One or more URLs", "url several"),
        ("page", "URL or path", "unknown"),
        ("page", "URL of the page or its path", "unknown"),
        ("page", "The NotebookLM URL", "unknown"),
        // Times.
        ("due", "ISO date", "date"),
        ("due", "When, an ISO 8601 date", "date"),
        ("due", "A date in ISO format", "date"),
        ("due", "ISO 8601 time with offset", "datetime"),
        ("due", "ISO 8601 date and time", "datetime"),
        ("due", "When (RFC 3339 timestamp)", "datetime"),
        ("due", "ISO 8601 time", "unknown"),
        ("due", "ISO country code", "unknown"),
        ("due", "YYYY-MM-DD, e.g. 2026-03-01", "date"),
        // Required and defaults.
        ("x", "Whom to write, required", "unknown required"),
        ("x", "Whom to write, optional", "unknown"),
        ("x", "What it is (REQUIRED!)", "unknown required"),
        ("x", "Required only with --to", "unknown"),
        ("x", "What to use, defaults to tea", "unknown =tea"),
        ("x", "What to use, default: tea", "unknown =tea"),
        ("x", "What to use (default tea)", "unknown =tea"),
        ("n", "How many, defaults to 20, at most 100", "integer ..100 =20"),
        ("n", "Optional, default: 3, from 1 to 9", "integer 1..9 =3"),
        ("x", "How to reach them, default: email", "unknown =email"),
        ("x", "A name (default: agent-1, agent-2 and so on)", "unknown"),
        ("x", "It defaults to what you wrote", "unknown"),
        // Examples are neither defaults nor all values.
        ("q", "What to look for, e.g. \"tea\"", "unknown"),
        ("q", "What to look for (e.g. \"tea\")", "unknown"),
        ("q", "What to look for, for example \"tea\" or \"coffee\"", "unknown"),
        ("q", "What to look for, such as \"tea\"", "unknown"),
        ("q", "What to look for (default: e.g. \"tea\")", "unknown"),
        ("q", "What to look for (default: tea, e.g. \"green tea\")", "unknown =tea"),
        ("status", "e.g. open or closed", "unknown"),
        ("status", "Such as open | closed", "unknown"),
        ("x", "A word such as tea, at most 9 characters", "text 9"),
        ("x", "A colour, e.g. red, green or blue, required", "unknown required"),
        ("x", "A word (e.g. tea, required)", "unknown required"),
        ("n", "How many, for example 5, from 1 to 9", "integer 1..9"),
    ];
    let wrong = rows.iter().filter_map(|(name, text, expected)| {
        let found = section(&format!("--{name}  {text}"));
        (found != [format!("{name} {expected}")]).then_some((name, text, expected, found))
    });
    assert_eq!(wrong.collect::<Vec<_>>(), []);
    assert!(rows.len() > 60);
    let table = "| Flag | Type | Description |\n|--|--|--|\n| --x | true/false | X |\n\
                 | --to | e-mail address | Y |\n| --s | a \\| b | Z |";
    assert_eq!(section(table), ["x switch", "to email", "s a|b"]);
}

#[test]
fn long_lines_take_time_in_proportion() {
    for part in ["default: a, ", "a, ", "a: ", "1 - b, ", "one of: a, ", "e.g. a, ", "a|", "'s "] {
        let body = format!("## Flags\n\n--x  {}\n", part.repeat(20_000));
        assert!(read(&body).is_some(), "{part}");
    }
}

#[test]
fn reads_usage() {
    let flags = "--to  Whom\n--cc  Copies\n--all  All of it\n";
    let rows: &[(&str, &[&str], bool)] = &[
        (
            "a.b --to <a> [--cc <b>] [--all]",
            &["to value required", "cc value", "all switch"],
            false,
        ),
        (
            "`a.b --to <a>... [--cc <b> [<b>...]]`",
            &["to value several required", "cc value several", "all unknown"],
            false,
        ),
        (
            "a.b --to A [--cc B ...] [--all]",
            &["to value required", "cc value several", "all switch"],
            false,
        ),
        (
            "a.b <id> [--to <n>] [--cc name|date]",
            &["to integer ..", "cc name|date", "all unknown"],
            true,
        ),
        (
            "a.b --to \"...\" \\\n  [--cc TEXT]",
            &["to value required", "cc value", "all unknown"],
            false,
        ),
        (
            "a.b --to <a>\n  [--cc TEXT]\nAnd more.",
            &["to value required", "cc value", "all unknown"],
            false,
        ),
        (
            "a.b --to <a> [--to <b>]",
            &["to value several required", "cc unknown", "all unknown"],
            false,
        ),
        ("a.b [OPTIONS]", &["to unknown", "cc unknown", "all unknown"], false),
        // Not plain: two forms, a bar outside of brackets, brackets that do not close, a value that
        // may be left out.
        ("a.b --to <a>\na.b --cc <a>", &["to unknown", "cc unknown", "all unknown"], true),
        ("a.b --to <a> | --cc <a>", &["to unknown", "cc unknown", "all unknown"], true),
        ("a.b [--to <a> [--cc <b>]", &["to unknown", "cc unknown", "all unknown"], true),
        ("a.b --to[=<a>] --cc <b>", &["to unknown", "cc unknown", "all unknown"], true),
        (
            "a.b --to --cc --all",
            &["to unknown required", "cc unknown required", "all unknown required"],
            false,
        ),
    ];
    for (usage, expected, words) in rows {
        let body = format!("## Usage\n\n{usage}\n\n## Flags\n\n{flags}");
        assert_eq!(self::flags(&body), *expected, "{usage}");
        assert_eq!(read(&body).unwrap().words, *words, "{usage}");
    }
}

#[test]
fn reads_what_words_stand_for() {
    let rows = [
        ("a.b", "--x  X (required)\n--y  Y\n--z  Z (required)", "x z"),
        ("a.b", "--x  X (required)\n--y  Y; it may also stand without the flag's name", "y"),
        (
            "a.b",
            "--x  X (required). Its words may stand without the flag's name.\n--y  Y (required)",
            "x..",
        ),
        ("a.b", "--x  X; it may stand without the flag (required)\n--y  Y (positional)", "x y"),
        ("a.b", "--x  X (required, by name)\n--y  Y (required)", ""),
        ("a.b", "--x  X; it may stand without the flag's name on Mondays", ""),
        ("a.b <file>", "--x  X (required)", ""),
        ("a.b <file>\na.b", "--x  X; it may also stand without the flag's name", ""),
    ];
    for (usage, flags, expected) in rows {
        let declared = read(&format!("## Usage\n\n{usage}\n\n## Flags\n\n{flags}\n")).unwrap();
        let taking = declared.flags.iter().filter_map(|flag| {
            let dots = if flag.positional? == Positional::All { ".." } else { "" };
            Some(format!("{}{dots}", flag.name()))
        });
        assert_eq!(taking.collect::<Vec<_>>().join(" "), expected, "{usage} {flags}");
    }
}

#[test]
fn reads_choices() {
    let choice = |names: &[&str], required| Choice {
        names: names.iter().map(|name| name.to_string()).collect(),
        required,
    };
    let rows = [
        ("a.b (--to <a> | --cc <b>)", vec![choice(&["to", "cc"], true)]),
        ("a.b [--to <a>|--cc <b>] --all", vec![choice(&["to", "cc"], false)]),
        ("a.b [(--to <a> | --cc <b>)]", vec![choice(&["to", "cc"], false)]),
        ("a.b (--to <a> --all | --cc <b>)", vec![]),
        ("a.b (--to <a> | <b>)", vec![]),
        ("a.b (--to <a> | --bcc <b>)", vec![]),
        ("a.b (--to <a>)", vec![]),
    ];
    for (usage, expected) in rows {
        let body =
            format!("## Usage\n\n{usage}\n\n## Flags\n\n--to  Whom\n--cc  Copies\n--all  All\n");
        let declared = read(&body).unwrap();
        assert_eq!(declared.choices, expected, "{usage}");
        assert_eq!(declared.flags[0].required, usage.contains("(--to <a>)"), "{usage}");
    }
}

#[test]
fn finds_contradictions() {
    let rows = [
        ("[--x <a>]", "X (required)", vec![Clash::Optional], "x value required"),
        ("--x <a>", "X (optional)", vec![Clash::Required], "x value"),
        ("--x <a>", "X (default: 5)", vec![Clash::Required], "x value =5"),
        ("--x <a>", "X\n--y  Y (required)", vec![Clash::Required], "x value"),
        ("[--x]", "One of: a, b", vec![Clash::NoValue], "x a|b"),
        ("[--x <a>]", "X (a switch)", vec![Clash::Value], "x switch"),
        ("[--x <a>]", "One of: a, b (default: c)", vec![Clash::Default("c".into())], "x a|b"),
        ("[--x <n>]", "X (default: many)", vec![Clash::Default("many".into())], "x integer .."),
        (
            "[--x <n>]",
            "X, from 1 to 9 (default: 10)",
            vec![Clash::Default("10".into())],
            "x integer 1..9",
        ),
        ("[--x <a>]", "One of: a, b (default: a)", vec![], "x a|b =a"),
        ("[--x <a>]", "One of: a, b (default: the first)", vec![], "x a|b"),
    ];
    for (usage, text, expected, flag) in rows {
        let body = format!("## Usage\n\na.b {usage}\n\n## Flags\n\n--x  {text}\n");
        let found: Vec<_> =
            read(&body).unwrap().contradictions.into_iter().map(|found| found.clash).collect();
        assert_eq!(found, expected, "{usage} {text}");
        assert_eq!(flags(&body)[0], flag, "{usage} {text}");
    }
}

#[test]
fn takes_the_days_and_times_that_a_run_takes() {
    let rows = [
        ("2026-03-01", true),
        ("0000-01-31", true),
        ("2028-02-29", true),
        ("2026-02-29", false),
        ("2026-13-01", false),
        ("2026-03-00", false),
        ("20260301", false),
        ("2026-W09-7", false),
        ("-2026-03-01", false),
        ("2026-03-01 ", false),
        ("2026-03-0é", false),
        ("2026-03-01T10:00:00Z", false),
        ("today", false),
    ];
    for (text, taken) in rows {
        assert_eq!(Type::Date { words: false }.takes(text), taken, "{text}");
    }
    let rows = [
        ("2026-03-01T10:00:00Z", true),
        ("2026-03-01T23:59:59.123456-23:59", true),
        ("9999-12-31T23:59:59+00:00", true),
        ("2026-02-29T10:00:00Z", false),
        ("2026-03-01T24:00:00Z", false),
        ("2026-03-01T10:60:00Z", false),
        ("2026-03-01T10:00:60Z", false),
        ("2026-03-01T10:00:00.Z", false),
        ("2026-03-01T10:00:00.1234567Z", false),
        ("2026-03-01T10:00:00", false),
        ("2026-03-01T10:00:00+01:60", false),
        ("2026-03-01T10:00:00+24:00", false),
        ("2026-03-01T10:00:0é", false),
        ("2026-03-01 10:00:00Z", false),
    ];
    for (text, taken) in rows {
        assert_eq!(Type::Datetime.takes(text), taken, "{text}");
    }
}

#[test]
fn the_pages_of_a_manual() {
    let body = "# tasks.search\n\n## Usage\n\ntasks.search [--query <text>] [--status <statuses>] \
                [--overdue] [--limit <n>]\n\n## Flags\n\n--query   Words\n\
                --status  One or more of: todo, done (default: todo)\n\
                --overdue  Due before today (a switch, no value)\n\
                --limit  How many to show, from 1 to 100 (default: 20)\n";
    assert_eq!(
        flags(body),
        [
            "query value",
            "status todo|done several =todo",
            "overdue switch",
            "limit integer 1..100 =20"
        ]
    );
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_stands_there_can_be_read(
            usage in "[-\\[\\](){}<>|=.… a-cA-C\"`]{0,60}",
            text in concat!(
                "[-\\[\\](){}<>|=:;.,…` \n#*a-cA-C0-9]{0,80}",
                "|(--a |one of|: |default|\\(|\\)|from |1| to |2|YYYY-MM-DD|, |or |\n){0,20}",
            ),
        ) {
            let body = format!("## Usage\n\na.b {usage}\n\n## Flags\n\n--x {text}\n");
            if let Some(declared) = read(&body) {
                for flag in &declared.flags {
                    prop_assert!(body[flag.offset.unwrap()..].starts_with("--"));
                    prop_assert!(flag.default.iter().all(|value| flag.takes(value)));
                    prop_assert!(flag.several || flag.default.len() < 2);
                }
                for choice in &declared.choices {
                    let known =
                        |name: &String| declared.flags.iter().any(|flag| flag.name() == name);
                    prop_assert!(choice.names.len() > 1 && choice.names.iter().all(known));
                }
            }
        }
    }
}
