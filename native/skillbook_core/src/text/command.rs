//! Reads a command's words as its name, flags and arguments.
//!
//! `--flag` begins a flag, and the words after it are its values, up to the next flag.
//! `--flag=value` works too. Words before the first flag and after a bare `--` are arguments.
//! Instead of flags, one JSON object may follow the name, as models trained on tool calls write.

use std::borrow::Cow;
use std::collections::HashMap;

use memchr::memchr;

use super::error::{Error, Kind};
use super::words::{self, Reference, Word};
use super::MAX_COMMAND;
use crate::json;
use crate::value::Value;

/// The built-in command that lists and shows skills.
pub const GET_SKILL: &str = "get_skill";

/// The value of a flag.
#[derive(Debug, Clone, PartialEq)]
pub enum FlagValue<'a> {
    /// No value: the flag is present.
    True,
    /// One word.
    One(Cow<'a, str>),
    /// Several words, or one flag given several times.
    Many(Vec<Cow<'a, str>>),
    /// A member of a JSON object.
    Json(Value),
}

/// A value that is replaced by the result of another command.
#[derive(Debug, Clone, PartialEq)]
pub struct Placeholder {
    /// The index of its flag; `None` for an argument.
    pub flag: Option<usize>,
    /// The index among the values of the flag, or among the arguments.
    pub index: usize,
    /// The command whose result it is.
    pub reference: Reference,
}

/// A parsed command.
#[derive(Debug, Clone, PartialEq)]
pub struct Command<'a> {
    /// The first word.
    pub name: Cow<'a, str>,
    /// The flags, in the order of their first occurrence.
    pub flags: Vec<(Cow<'a, str>, FlagValue<'a>)>,
    /// The words before the first flag and after a bare `--`.
    pub args: Vec<Cow<'a, str>>,
    /// The placeholders among the values: unquoted words, or the unquoted text after a flag's `=`.
    pub placeholders: Vec<Placeholder>,
    /// Whether the command asks for help, with `--help` or `-h` anywhere, or with a member `help`
    /// of the JSON object. Then nothing runs.
    pub help: bool,
}

impl<'a> Command<'a> {
    /// The value of a flag.
    pub fn flag(&self, name: &str) -> Option<&FlagValue<'a>> {
        self.flags.iter().find(|(flag, _)| flag == name).map(|(_, value)| value)
    }
}

/// Parses a command.
///
/// ```
/// use skillbook_core::text::command::{parse, FlagValue};
///
/// let command = parse("tasks.search --tags Q1 backend --overdue -- rest").unwrap();
/// assert_eq!(command.name, "tasks.search");
/// assert_eq!(command.flag("tags"), Some(&FlagValue::Many(vec!["Q1".into(), "backend".into()])));
/// assert_eq!(command.flag("overdue"), Some(&FlagValue::True));
/// assert_eq!(command.args, ["rest"]);
/// ```
pub fn parse(source: &str) -> Result<Command<'_>, Error> {
    // JSON comes first: its quotes and braces need no quoting for the command line.
    if let Some(command) = json_command(source) {
        return Ok(command);
    }
    let mut words = words::split(source)?;
    let [first, words @ ..] = words.as_mut_slice() else {
        return Err(Error::at(
            Kind::EmptyCommand,
            source,
            0..0,
            "expected a command, got none",
            "write a skill's name and its flags, for example: tasks.search --status todo",
        ));
    };
    if let Some(error) = not_a_name(source, first) {
        return Err(error);
    }
    let name = std::mem::take(&mut first.value);
    if let [word] = words {
        // Quoted as for a shell: name '{"a": 1}'.
        if let Some(members) = word.quoted.then(|| object(&word.value)).flatten() {
            return Ok(with_members(name, members));
        }
    }
    if let Some(word) = words.first().filter(|word| source[word.span.start..].starts_with('{')) {
        if let Some(error) = broken_json(source, word, words.len() > 1) {
            return Err(error);
        }
    }
    let mut command = Command {
        name,
        flags: Vec::new(),
        args: Vec::new(),
        placeholders: Vec::new(),
        help: false,
    };
    get_skill(&mut command);
    read_words(words, source, &mut command);
    Ok(command)
}

/// An error if the first word cannot be a name.
fn not_a_name(source: &str, first: &Word<'_>) -> Option<Error> {
    // The first character nearly always decides.
    if first.value.starts_with(|char: char| char.is_alphanumeric()) {
        return None;
    }
    let written = &source[first.span.clone()];
    let (what, hint) = if flag_name(first).is_some() || (!first.quoted && first.value == "--") {
        (
            "a flag",
            "put flags on their command's line, before the text of a heredoc; \
             a backslash at the end continues a line"
                .to_owned(),
        )
    } else if written.starts_with(['{', '[']) && first.quoted {
        (
            "JSON",
            format!(
                "write the name, then an object with the flags: {}",
                example_call(&first.value)
            ),
        )
    } else if written.starts_with('<')
        && written[1..].starts_with(|c: char| c == '/' || c == '|' || c.is_alphabetic())
    {
        ("a tag", "write the command alone, without tags: NAME --flag value".to_owned())
    } else if written.starts_with("```") || written.starts_with("~~~") {
        (
            "a fence",
            "close the block with a line that has only the fence, and write text after it"
                .to_owned(),
        )
    } else {
        return None;
    };
    let len = if what == "JSON" { 1 } else { written.len() };
    let span = first.span.start..first.span.start + len;
    Some(Error::at(
        Kind::MissingName,
        source,
        span,
        format!("expected a skill's name, got {what}"),
        hint,
    ))
}

/// The longest tool call that a hint repeats as a command.
const LONGEST_EXAMPLE: usize = 200;

/// A tool call in JSON, rewritten as a command; a general example for any other JSON.
fn example_call(json: &str) -> String {
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    let written = object(json).and_then(|members| {
        let get = |names: &[&str]| names.iter().find_map(|name| members.get(*name)).cloned();
        let called = get(&["name", "function", "tool", "command", "skill"])?;
        let inner = |name: &str| called.get(name).cloned();
        let arguments =
            get(&["arguments", "parameters", "args", "input"]).or_else(|| inner("arguments"));
        let name = text(&called).or_else(|| text(&inner("name")?))?;
        let arguments = arguments
            .map(|value| text(&value).unwrap_or_else(|| value.to_string()))
            .unwrap_or_default();
        let written = format!("{name} {arguments}");
        let one_line = written.len() <= LONGEST_EXAMPLE && !written.contains('\n');
        one_line.then(|| written.trim_end().to_owned())
    });
    written.unwrap_or_else(|| r#"tasks.create {"title": "Call Bob"}"#.to_owned())
}

/// An error if the text after the name was meant as a JSON object but cannot be read as one.
fn broken_json(source: &str, word: &Word<'_>, more: bool) -> Option<Error> {
    if !word.value[1..].trim_start().starts_with(['"', '}']) || !word.quoted {
        return None;
    }
    let parsed: Result<serde_json::Map<String, serde_json::Value>, _> =
        serde_json::from_str(&word.value);
    let problem = match parsed {
        Err(error) if error.line() > 1 => {
            format!("the JSON object that opens here cannot be read: {error}")
        }
        Err(error) => {
            let reason = error.to_string();
            let reason = reason.split(" at line ").next().unwrap_or_default();
            format!(
                "the JSON object that opens here cannot be read: {reason} at character {}",
                error.column()
            )
        }
        Ok(_) if more => "more text follows the JSON object that opens here".to_owned(),
        Ok(_) => return None,
    };
    let at = word.span.start;
    let hint = "write one JSON object and nothing after it, or write flags: --name value";
    Some(Error::at(Kind::InvalidJson, source, at..at + 1, problem, hint))
}

/// Reads `get_skill: PATH` and `get_skill:PATH` as `get_skill PATH`, also with a full-width colon.
fn get_skill(command: &mut Command<'_>) {
    let (name, path) = match command.name.find([':', '：']) {
        Some(at) => (&command.name[..at], command.name[at..].trim_start_matches([':', '：'])),
        None => (&*command.name, ""),
    };
    let is =
        |have: u8, want: u8| have.eq_ignore_ascii_case(&want) || (have == b'-' && want == b'_');
    if name.len() != GET_SKILL.len()
        || !name.bytes().zip(GET_SKILL.bytes()).all(|(have, want)| is(have, want))
    {
        return;
    }
    if !path.is_empty() {
        let path = path.to_owned();
        command.args.push(Cow::Owned(path));
    }
    command.name = Cow::Borrowed(GET_SKILL);
}

/// Reads the words after the name.
///
/// Values are taken out of the words one by one: moving whole words costs more than reading them.
fn read_words<'a>(words: &mut [Word<'a>], source: &str, command: &mut Command<'a>) {
    let mut flags = Flags { list: Vec::with_capacity(8), ..Flags::default() };
    let mut words = words.iter_mut();
    for word in words.by_ref() {
        let dashed = !word.quoted && word.value.starts_with('-');
        if dashed && word.value == "--" {
            break;
        }
        command.help |= dashed && word.value == "-h";
        match if dashed { flag_name(word) } else { None } {
            Some(end) => {
                command.help |= &word.value[2..end] == "help";
                flags.begin(part(&word.value, 2, end));
                // The value of `--flag` is in the next words, that of `--flag=` may be, and that of
                // `--flag=x` is here.
                if end == word.value.len() {
                    flags.awaits = Awaits::Anything;
                } else if end + 1 == word.value.len()
                    && source.as_bytes()[word.span.end - 1] == b'='
                {
                    flags.awaits = Awaits::Value;
                } else {
                    let value = part(&word.value, end + 1, word.value.len());
                    let written = source[word.span.clone()]
                        .split_once('=')
                        .map_or("", |(_, written)| written);
                    let reference = Reference::of(&value).filter(|_| value == written);
                    flags.add(value, reference);
                }
            }
            None if flags.list.is_empty() => argument(word, source, command),
            None => flags.word(word, source),
        }
    }
    // Words after `--` are arguments.
    flags.complete();
    words.for_each(|word| argument(word, source, command));
    command.flags = flags.list;
    command.placeholders.append(&mut flags.placeholders);
}

fn argument<'a>(word: &mut Word<'a>, source: &str, command: &mut Command<'a>) {
    if let Some(reference) = word.placeholder(source) {
        command.placeholders.push(Placeholder { flag: None, index: command.args.len(), reference });
    }
    command.args.push(std::mem::take(&mut word.value));
}

/// The flags so far. With many flags a map finds repeated ones, so that no input takes quadratic
/// time.
#[derive(Default)]
struct Flags<'a> {
    list: Vec<(Cow<'a, str>, FlagValue<'a>)>,
    current: usize,
    awaits: Awaits,
    placeholders: Vec<Placeholder>,
    places: HashMap<Cow<'a, str>, usize>,
}

/// The meaning that an equals sign would have in the next word.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Awaits {
    /// None: the last word was a value.
    #[default]
    Nothing,
    /// The last word was a flag's name: an equals sign may follow.
    Anything,
    /// The last word was an equals sign: the value follows, or it is empty.
    Value,
}

/// Up to this many flags, a search of the list is faster than a map.
const FEW: usize = 16;

impl<'a> Flags<'a> {
    fn begin(&mut self, name: Cow<'a, str>) {
        self.complete();
        let found = if self.list.len() < FEW {
            self.list.iter().position(|(flag, _)| *flag == name)
        } else {
            if self.places.is_empty() {
                self.places = self
                    .list
                    .iter()
                    .enumerate()
                    .map(|(at, (flag, _))| (flag.clone(), at))
                    .collect();
            }
            self.places.get(&name).copied()
        };
        // A flag given again adds its values to the first one.
        self.current = found.unwrap_or(self.list.len());
        if found.is_none() {
            if self.list.len() >= FEW {
                self.places.insert(name.clone(), self.current);
            }
            self.list.push((name, FlagValue::True));
        }
    }

    /// Ends a flag. After an equals sign without a value, the value is empty.
    fn complete(&mut self) {
        if self.awaits == Awaits::Value {
            self.add(Cow::Borrowed(""), None);
        }
    }

    /// Adds a word after a flag. Models put blanks around the equals sign: `--title = "x"`,
    /// `--title ="x"`.
    fn word(&mut self, word: &mut Word<'a>, source: &str) {
        if self.awaits == Awaits::Anything && !word.quoted && word.value.starts_with('=') {
            if word.value == "=" {
                self.awaits = Awaits::Value;
                return;
            }
            let written = &source[word.span.clone()];
            if written.starts_with("=\"") || written.starts_with("='") {
                word.value = Cow::Owned(word.value[1..].to_owned());
            }
        }
        let reference = word.placeholder(source);
        self.add(std::mem::take(&mut word.value), reference);
    }

    fn add(&mut self, value: Cow<'a, str>, reference: Option<Reference>) {
        self.awaits = Awaits::Nothing;
        let Some((_, have)) = self.list.get_mut(self.current) else { return };
        if let Some(reference) = reference {
            let index = match have {
                FlagValue::Many(values) => values.len(),
                FlagValue::One(_) => 1,
                FlagValue::True | FlagValue::Json(_) => 0,
            };
            self.placeholders.push(Placeholder { flag: Some(self.current), index, reference });
        }
        match have {
            FlagValue::Many(values) => values.push(value),
            FlagValue::One(first) => *have = FlagValue::Many(vec![std::mem::take(first), value]),
            FlagValue::True | FlagValue::Json(_) => *have = FlagValue::One(value),
        }
    }
}

/// Where the flag's name ends, if the word is a flag: two dashes and a letter, a digit or an
/// underscore, unquoted. So `--5` is a flag, and `-5` and `---` are values.
fn flag_name(word: &Word<'_>) -> Option<usize> {
    let rest = word.value.strip_prefix("--").filter(|_| !word.quoted)?;
    let first = rest.chars().next()?;
    (first.is_alphanumeric() || first == '_')
        .then(|| 2 + memchr(b'=', rest.as_bytes()).unwrap_or(rest.len()))
}

fn part<'a>(text: &Cow<'a, str>, start: usize, end: usize) -> Cow<'a, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[start..end]),
        Cow::Owned(text) => Cow::Owned(text[start..end].to_owned()),
    }
}

/// Reads a name and one JSON object, as models trained on tool calls write.
fn json_command(source: &str) -> Option<Command<'_>> {
    // The last character nearly always decides.
    let trimmed = source.trim_end();
    if !trimmed.ends_with('}') || source.len() > MAX_COMMAND {
        return None;
    }
    let source = &trimmed[words::command_start(trimmed)..];
    let (name, rest) = source.split_once([' ', '\t'])?;
    let rest = rest.trim_start();
    if !rest.starts_with('{') || name.starts_with(['"', '\'', '-', '#']) || name.contains('\n') {
        return None;
    }
    Some(with_members(Cow::Borrowed(name), object(rest)?))
}

fn object(text: &str) -> Option<serde_json::Map<String, serde_json::Value>> {
    if !text.starts_with('{') {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// A command whose flags are the members of an object.
fn with_members<'a>(
    name: Cow<'a, str>,
    members: serde_json::Map<String, serde_json::Value>,
) -> Command<'a> {
    // Models that fill in every parameter write false or null for the ones that they do not use.
    let help = members.get("help") == Some(&serde_json::Value::Bool(true));
    let flags =
        members.into_iter().map(|(name, value)| (Cow::Owned(name), from_json(value))).collect();
    let mut command = Command { name, flags, args: Vec::new(), placeholders: Vec::new(), help };
    get_skill(&mut command);
    command
}

fn from_json<'a>(value: serde_json::Value) -> FlagValue<'a> {
    match value {
        serde_json::Value::Bool(true) => FlagValue::True,
        serde_json::Value::String(text) => FlagValue::One(Cow::Owned(text)),
        other => FlagValue::Json(json::value(other)),
    }
}
