//! Reads the arguments as the Elixir command line does, which uses the rules of its `OptionParser`.
//!
//! Commands and options that only Elixir has are recognised, so that the whole line can be handed
//! over (`elixir`). A line that is wrong in any case is refused here.

use std::path::Path;

use strsim::jaro;

use crate::help;

/// The type of an option.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    /// No value; `--no-NAME` says no.
    Switch,
    /// Any text.
    Text,
    /// A whole number between these, or from the first one on.
    Number(i128, Option<i128>),
    /// One of these words.
    OneOf(&'static [&'static str]),
}

type Switches = &'static [(&'static str, Kind)];

const GLOBALS: Switches = &[
    ("dir", Kind::Text),
    ("mcp", Kind::Text),
    ("vault", Kind::Text),
    ("db", Kind::Text),
    ("profile", Kind::Text),
    ("grant", Kind::Text),
    ("color", Kind::OneOf(&["auto", "always", "never"])),
    ("builtins", Kind::Switch),
    ("pack", Kind::Text),
    ("help", Kind::Switch),
    ("version", Kind::Switch),
];

const PROMPT: Switches = &[
    ("format", Kind::OneOf(&["default", "tools", "xml", "notes", "list"])),
    (
        "section",
        Kind::OneOf(&[
            "rules",
            "tool_rules",
            "domains",
            "commands",
            "skills",
            "skill_list",
            "available_skills",
            "quick_reference",
            "inline_skills",
            "notes",
            "notes_list",
            "skill_catalog",
            "preloaded_skills",
            "other",
            "other_notes",
        ]),
    ),
    ("max-tokens", Kind::Number(0, None)),
    ("max-chars", Kind::Number(0, None)),
    ("message", Kind::Text),
];

/// `--format json` means `--json`, as in `lint`.
const JSON_FORMAT: (&str, Kind) = ("format", Kind::OneOf(&["text", "json"]));

/// The folders of skills of a line without `--dir`. Those of other programs come first, so that
/// `skills` replaces their entries.
pub const FOLDERS: [&str; 3] = [".claude/skills", ".agents/skills", "skills"];

fn is_dir(dir: &str) -> bool {
    Path::new(dir).is_dir()
}

/// The commands that run here, with their options besides the global ones.
const NATIVE: &[(&str, Switches)] = &[
    (
        "lint",
        &[
            ("format", Kind::OneOf(&["text", "json", "sarif", "github"])),
            ("json", Kind::Switch),
            ("fix", Kind::Switch),
            ("strict", Kind::Switch),
        ],
    ),
    (
        "list",
        &[
            ("source", Kind::Text),
            ("domain", Kind::Text),
            ("limit", Kind::Number(1, Some(1000))),
            ("after", Kind::Text),
            ("json", Kind::Switch),
            JSON_FORMAT,
            ("diagnostics", Kind::Switch),
        ],
    ),
    ("get", &[]),
    (
        "search",
        &[
            ("embedder", Kind::Text),
            ("embedder-model", Kind::Text),
            ("embedder-key-env", Kind::Text),
            ("limit", Kind::Number(1, Some(1000))),
            ("kind", Kind::OneOf(&["command", "skill", "note"])),
            ("tag", Kind::Text),
            ("remote", Kind::Text),
            ("remotes", Kind::Switch),
            ("to", Kind::Text),
            ("json", Kind::Switch),
            JSON_FORMAT,
        ],
    ),
    ("explain", PROMPT),
    ("prompt", PROMPT),
    (
        "test",
        &[
            ("embedder", Kind::Text),
            ("embedder-model", Kind::Text),
            ("embedder-key-env", Kind::Text),
            ("min-hit1", Kind::Number(0, Some(100))),
            ("min-hit3", Kind::Number(0, Some(100))),
            ("min-picked", Kind::Number(0, Some(100))),
            ("preflight", Kind::Switch),
            ("pairs", Kind::Number(0, Some(1000))),
            ("only", Kind::OneOf(&["examples", "evaluations"])),
            ("json", Kind::Switch),
            JSON_FORMAT,
            ("api", Kind::Text),
            ("url", Kind::Text),
            ("model", Kind::Text),
            ("key-env", Kind::Text),
            ("cacert", Kind::Text),
            ("judge-model", Kind::Text),
            ("record", Kind::Switch),
            ("compare", Kind::Text),
            ("before", Kind::Text),
            ("repeat", Kind::Number(1, Some(100))),
            ("jobs", Kind::Number(1, Some(100))),
            ("prompt-price", Kind::Text),
            ("reply-price", Kind::Text),
        ],
    ),
    (
        "tools",
        &[
            (
                "shape",
                Kind::OneOf(&[
                    "openai",
                    "openai_strict",
                    "openai_responses",
                    "anthropic",
                    "gemini",
                    "mcp",
                    "llama",
                ]),
            ),
            ("names", Kind::Text),
            ("limit", Kind::Number(1, None)),
        ],
    ),
    (
        "route",
        &[
            ("embedder", Kind::Text),
            ("embedder-model", Kind::Text),
            ("embedder-key-env", Kind::Text),
            ("api", Kind::Text),
            ("url", Kind::Text),
            ("model", Kind::Text),
            ("key-env", Kind::Text),
            ("cacert", Kind::Text),
            ("json", Kind::Switch),
            JSON_FORMAT,
        ],
    ),
    ("completions", &[]),
];

/// Options that only Elixir has.
const OF_ELIXIR: &[&str] = &[
    "mcp",
    "vault",
    "db",
    "pack",
    "embedder",
    "embedder-model",
    "embedder-key-env",
    "remote",
    "remotes",
    "api",
    "url",
    "model",
    "key-env",
    "cacert",
    "judge-model",
    "record",
    "compare",
    "before",
    "prompt-price",
    "reply-price",
];

/// The meaning of a line.
#[derive(Debug, PartialEq)]
pub enum Parsed {
    /// The help of a command, or of all.
    Help(Option<String>),
    /// The version.
    Version,
    /// A command that runs here.
    Run(Options),
    /// Something that only Elixir has: the command or option.
    Elixir(String),
    /// A mistake, and the arguments that print its help.
    Wrong(String, String),
}

/// The options of a command.
#[derive(Debug, Default, PartialEq)]
pub struct Options {
    pub command: &'static str,
    pub args: Vec<String>,
    given: Vec<(&'static str, String)>,
}

impl Options {
    /// The last value of an option.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut given = self.given.iter().rev();
        given.find(|(given, _)| *given == name).map(|(_, value)| value.as_str())
    }

    /// All values of an option.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let given = self.given.iter().filter(move |(given, _)| *given == name);
        given.map(|(_, value)| value.as_str())
    }

    /// The same as texts of their own.
    pub fn texts(&self, name: &str) -> Vec<String> {
        self.all(name).map(str::to_owned).collect()
    }

    /// Whether a switch is on.
    pub fn is_on(&self, name: &str, default: bool) -> bool {
        self.get(name).map_or(default, |value| value == "true")
    }

    /// Whether the output is JSON.
    pub fn is_json(&self) -> bool {
        self.is_on("json", false) || self.get("format") == Some("json")
    }

    /// A number, which was checked.
    pub fn number(&self, name: &str) -> Option<usize> {
        // A number beyond the largest one is as good as that.
        self.get(name).map(|value| value.parse().unwrap_or(usize::MAX))
    }

    /// The folders of skills; by default those of [`FOLDERS`] that exist.
    pub fn dirs(&self) -> Vec<String> {
        match self.names_dirs() {
            true => self.texts("dir"),
            false => FOLDERS.map(str::to_owned).into_iter().filter(|dir| is_dir(dir)).collect(),
        }
    }

    /// Whether the line names its folders of skills.
    pub fn names_dirs(&self) -> bool {
        self.get("dir").is_some()
    }
}

/// Reads the arguments.
pub fn parse(argv: &[String]) -> Parsed {
    let (before, rest, invalid) = split(argv, GLOBALS, false);
    if let Some(invalid) = invalid {
        return Parsed::Wrong(invalid.message(GLOBALS), "--help".into());
    }
    let is_on = |given: &[(&str, String)], name: &str| {
        given.iter().rev().find(|(given, _)| *given == name).is_some_and(|(_, on)| on == "true")
    };
    if is_on(&before, "version") {
        return Parsed::Version;
    }
    if is_on(&before, "help") {
        return topic(&rest);
    }
    let Some((name, rest)) = rest.split_first() else { return Parsed::Help(None) };
    if name == "help" {
        return topic(rest);
    }
    if help::command(name).is_none() {
        return unknown(name);
    }
    let Some((command, own)) = NATIVE.iter().find(|(known, _)| known == name) else {
        let options = rest.iter().take_while(|word| *word != "--");
        return match options.into_iter().any(|word| word == "--help" || word == "-h") {
            true => Parsed::Help(Some(name.clone())),
            false => Parsed::Elixir(format!("`{name}`")),
        };
    };
    let switches: Vec<(&'static str, Kind)> = GLOBALS.iter().chain(*own).copied().collect();
    let (given, args, invalid) = split(rest, &switches, true);
    if is_on(&given, "help") {
        return Parsed::Help(Some(name.clone()));
    }
    let wrong = |message| Parsed::Wrong(message, format!("{name} --help"));
    if let Some(invalid) = invalid {
        return wrong(invalid.message(&switches));
    }
    let given: Vec<_> = before.into_iter().chain(given).collect();
    if let Some(message) = given.iter().find_map(|(name, value)| refused(name, value, &switches)) {
        return wrong(message);
    }
    // Options of the command line that are given as `--no-remotes` or the like ask for nothing.
    let of_elixir = given.iter().find(|(name, value)| OF_ELIXIR.contains(name) && value != "false");
    if let Some((name, _)) = of_elixir {
        return Parsed::Elixir(format!("`--{name}`"));
    }
    let options = Options { command, args, given };
    let wrong_dir = options.all("dir").find(|dir| !Path::new(dir).is_dir()).map(str::to_owned);
    match wrong_dir {
        Some(dir) => {
            let problem = match Path::new(&dir).exists() {
                true => "is a file",
                false => "does not exist",
            };
            wrong(format!("--dir expects a folder, got: {dir}, which {problem}"))
        }
        None => Parsed::Run(options),
    }
}

fn topic(words: &[String]) -> Parsed {
    match words.first().map(String::as_str) {
        None | Some("help" | "--help" | "-h") => Parsed::Help(None),
        Some(name) if help::command(name).is_some() => Parsed::Help(Some(name.to_owned())),
        Some(name) => unknown(name),
    }
}

fn unknown(name: &str) -> Parsed {
    let names: Vec<&str> = help::commands().map(|(name, _)| name).collect();
    let close = match help::meant(name) {
        Some(text) => format!("; {text}"),
        None => suggestion(name, names.iter().map(|name| (*name).to_owned())),
    };
    let names = names.join(", ");
    Parsed::Wrong(
        format!("unknown command `{name}`{close}\nThe commands are {names}."),
        "--help".into(),
    )
}

/// An option that is unknown or has a wrong value.
struct Invalid {
    /// As it is written.
    option: String,
    value: Option<String>,
}

impl Invalid {
    fn message(&self, switches: &[(&'static str, Kind)]) -> String {
        let Invalid { option, value } = self;
        let name = option.trim_start_matches('-');
        let name = name.strip_prefix("no-").unwrap_or(name);
        let value = value.as_deref();
        match (kind(name, switches), value) {
            (None, _) => {
                let known = switches.iter().map(|(name, _)| format!("--{name}"));
                format!("unknown option `{option}`{}", suggestion(option, known))
            }
            (Some(Kind::Switch), value) => {
                format!("{option} takes no value, got: {}", value.unwrap_or_default())
            }
            (_, None) => format!("{option} expects a value"),
            (Some(kind), Some(value)) => {
                format!("{option} expects {}, got: {value}", expected(kind))
            }
        }
    }
}

fn kind(name: &str, switches: &[(&'static str, Kind)]) -> Option<Kind> {
    switches.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
}

fn expected(kind: Kind) -> String {
    match kind {
        Kind::Switch => "no value".to_owned(),
        Kind::Text => "a value".to_owned(),
        Kind::Number(min, None) => format!("a whole number from {min}"),
        Kind::Number(min, Some(max)) => format!("a whole number from {min} to {max}"),
        Kind::OneOf(words) => format!("one of {}", words.join(", ")),
    }
}

/// The words that an option takes, if it takes some words only. The global options have no command.
pub fn words(command: &str, option: &str) -> Option<&'static [&'static str]> {
    let own = NATIVE.iter().find(|(name, _)| *name == command).map_or(GLOBALS, |(_, own)| own);
    match kind(option, own) {
        Some(Kind::OneOf(words)) => Some(words),
        _ => None,
    }
}

/// The message about a value that has the right type and is not allowed.
fn refused(name: &str, value: &str, switches: &[(&'static str, Kind)]) -> Option<String> {
    let kind = kind(name, switches)?;
    let is_allowed = match kind {
        Kind::Switch | Kind::Text => true,
        Kind::OneOf(words) => words.contains(&value),
        Kind::Number(min, max) => {
            let number: i128 = value.parse().unwrap_or(i128::MAX);
            number >= min && max.is_none_or(|max| number <= max)
        }
    };
    (!is_allowed).then(|| format!("--{name} expects {}, got: {value}", expected(kind)))
}

type Given = Vec<(&'static str, String)>;

/// The options, the other words, and the first invalid option. Without `all` the first other word
/// ends the options.
fn split(
    argv: &[String],
    switches: &[(&'static str, Kind)],
    all: bool,
) -> (Given, Vec<String>, Option<Invalid>) {
    let (mut given, mut words, mut invalid): (Given, Vec<String>, _) = (vec![], vec![], None);
    // Words that stand for several options are put back in parts.
    let mut rest: Vec<String> = argv.iter().rev().cloned().collect();
    while let Some(word) = rest.pop() {
        if word == "--" {
            break;
        }
        let is_option = word.starts_with('-') && word != "-" && !word.starts_with("- ");
        if !is_option || is_negative(&word) {
            words.push(word);
            if all {
                continue;
            }
            break;
        }
        let (option, mut value) = match word.split_once('=') {
            Some((option, value)) => (option.to_owned(), Some(value.to_owned())),
            None => (word, None),
        };
        let Some(name) = option.strip_prefix("--") else {
            match &option[1..] {
                letter @ ("h" | "V") if value.as_deref().is_none_or(is_boolean) => {
                    let name = if letter == "h" { "help" } else { "version" };
                    given.push((name, value.unwrap_or_else(|| "true".to_owned())));
                }
                letters if letters.chars().count() > 1 && !letters.contains(['-', '_']) => {
                    rest.extend(letters.chars().rev().map(|letter| format!("-{letter}")));
                }
                _ => drop(invalid.get_or_insert(Invalid { option, value: None })),
            }
            continue;
        };
        let known = |name: &str| switches.iter().find(|(known, _)| *known == name).copied();
        let negated = name.strip_prefix("no-").and_then(known);
        let (switch, is_no) = match (negated, known(name)) {
            (Some((name, Kind::Switch)), _) => ((name, Kind::Switch), true),
            (_, Some(switch)) => (switch, false),
            _ => {
                invalid.get_or_insert(Invalid { option, value: None });
                continue;
            }
        };
        let (name, kind) = switch;
        let has_value = |rest: &[String]| {
            rest.last().is_some_and(|next| {
                !next.starts_with('-') || next == "-" || next.starts_with("- ") || is_negative(next)
            })
        };
        if kind != Kind::Switch && value.is_none() && has_value(&rest) {
            value = rest.pop();
        }
        let value = match (kind, value, is_no) {
            (Kind::Switch, None, is_no) => Ok((!is_no).to_string()),
            (Kind::Switch, Some(value), false) if is_boolean(&value) => Ok(value),
            (Kind::Switch, value, _) | (_, value @ None, _) => Err(value),
            (Kind::Number(..), Some(value), _) if !is_whole(&value) => Err(Some(value)),
            (_, Some(value), _) => Ok(value),
        };
        match value {
            Ok(value) => given.push((name, value)),
            Err(value) => drop(invalid.get_or_insert(Invalid { option, value })),
        }
    }
    rest.reverse();
    words.extend(rest);
    (given, words, invalid)
}

fn is_boolean(text: &str) -> bool {
    text == "true" || text == "false"
}

fn is_whole(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a word is a negative number, which is no option.
fn is_negative(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|number| {
        number.starts_with(|first: char| first.is_ascii_digit()) && number.parse::<f64>().is_ok()
    })
}

/// A longer word is not a mistyped name.
const MAX_BYTES: usize = 40;
/// The similarity of words with the same letters in another order, a common typing error.
const SAME_LETTERS: f64 = 0.9;
/// The similarity from which a word is suggested.
const CLOSE: f64 = 0.8;

/// `; did you mean X?` for the known word that is closest to the given one.
fn suggestion(given: &str, known: impl Iterator<Item = String>) -> String {
    let key = |word: &str| word.to_lowercase().replace('_', "-");
    let letters = |word: &str| {
        let mut letters: Vec<char> = word.chars().collect();
        letters.sort_unstable();
        letters
    };
    let given_key = key(given);
    let closeness = |other: &str| {
        let (other, close) = (key(other), jaro(&given_key, &key(other)));
        match letters(&given_key) == letters(&other) {
            true => close.max(SAME_LETTERS),
            false => close,
        }
    };
    let mut best: Option<(f64, String)> = None;
    for name in known.filter(|_| given.len() <= MAX_BYTES) {
        let close = closeness(&name);
        if close >= CLOSE && best.as_ref().is_none_or(|(best, _)| close > *best) {
            best = Some((close, name));
        }
    }
    best.map_or_else(String::new, |(_, name)| format!("; did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Parsed {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_read() {
        for (line, command, args, given) in [
            ("list", "list", "", ""),
            ("list a --json b", "list", "a b", "json=true"),
            ("list -- --json", "list", "--json", ""),
            (
                "--profile x list --profile=y -5 --no-json",
                "list",
                "-5",
                "profile=x profile=y json=false",
            ),
            (
                "--no-builtins search --limit 7 --json=false x",
                "search",
                "x",
                "builtins=false limit=7 json=false",
            ),
            ("explain - --max-chars 0", "explain", "-", "max-chars=0"),
        ] {
            let Parsed::Run(options) = parsed(line) else { panic!("{line}") };
            let found: Vec<String> =
                options.given.iter().map(|(name, value)| format!("{name}={value}")).collect();
            assert_eq!(
                (options.command, options.args.join(" "), found.join(" ")),
                (command, args.to_owned(), given.to_owned()),
                "{line}"
            );
        }
    }

    #[test]
    fn mistakes_have_a_message() {
        for (line, message, help) in [
            ("--dri x list", "unknown option `--dri`; did you mean `--dir`?", "--help"),
            ("list --jsn", "unknown option `--jsn`; did you mean `--json`?", "list --help"),
            ("list --json=x", "--json takes no value, got: x", "list --help"),
            ("list --no-json=x", "--no-json takes no value, got: x", "list --help"),
            ("search --limit", "--limit expects a value", "search --help"),
            ("search --limit --json", "--limit expects a value", "search --help"),
            (
                "search --limit x",
                "--limit expects a whole number from 1 to 1000, got: x",
                "search --help",
            ),
            (
                "search --limit 99999999999999999999",
                "--limit expects a whole number from 1 to 1000, got: 99999999999999999999",
                "search --help",
            ),
            (
                "prompt --max-chars -1",
                "--max-chars expects a whole number from 0, got: -1",
                "prompt --help",
            ),
            ("list -q", "unknown option `-q`", "list --help"),
            (
                "list --color red",
                "--color expects one of auto, always, never, got: red",
                "list --help",
            ),
            (
                "--dir Cargo.toml list",
                "--dir expects a folder, got: Cargo.toml, which is a file",
                "list --help",
            ),
            (
                "--dir no list",
                "--dir expects a folder, got: no, which does not exist",
                "list --help",
            ),
        ] {
            assert_eq!(parsed(line), Parsed::Wrong(message.into(), help.into()), "{line}");
        }
        let Parsed::Wrong(message, _) = parsed("lst") else { panic!() };
        assert!(message.starts_with(
            "unknown command `lst`; did you mean `list`?\nThe commands are run, shell, "
        ));
        assert!(message.ends_with(", completions, help."));
        for (line, advice) in [
            ("completion", "did you mean `completions`?"),
            ("ls", "did you mean `list`?"),
            ("create", "did you mean `new`?"),
        ] {
            let Parsed::Wrong(message, _) = parsed(line) else { panic!("{line}") };
            let start = format!("unknown command `{line}`; {advice}\nThe commands are run, ");
            assert!(message.starts_with(&start), "{message}");
        }
    }

    #[test]
    fn the_script_builds_this_program_for_its_commands() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bin/skillbook");
        let script = std::fs::read_to_string(path).unwrap();
        let rule =
            script.split_once("\nruns_alone() {\n").unwrap().1.split_once("\n}\n").unwrap().0;
        let words: Vec<&str> = rule.split([' ', ')', '\n']).collect();
        for (name, _) in NATIVE {
            assert!(words.contains(name), "{name}");
        }
        for name in OF_ELIXIR {
            let option = format!("--{name}");
            let is_start =
                |word: &&str| word.strip_suffix('*').is_some_and(|s| option.starts_with(s));
            assert!(words.iter().any(is_start), "{option}");
        }
    }

    #[test]
    fn help_comes_first_and_elixir_gets_the_rest() {
        for (line, expected) in [
            ("", Parsed::Help(None)),
            ("help", Parsed::Help(None)),
            ("--help --version", Parsed::Version),
            ("-V", Parsed::Version),
            ("-h lint", Parsed::Help(Some("lint".into()))),
            ("help serve", Parsed::Help(Some("serve".into()))),
            ("serve --port 1 -h", Parsed::Help(Some("serve".into()))),
            ("list --jsn --help", Parsed::Help(Some("list".into()))),
            ("serve -- -h", Parsed::Elixir("`serve`".into())),
            ("--db x list", Parsed::Elixir("`--db`".into())),
            ("search x --no-remotes --vault y", Parsed::Elixir("`--vault`".into())),
        ] {
            assert_eq!(parsed(line), expected, "{line}");
        }
    }
}
