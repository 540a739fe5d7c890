//! A command's name, flags and arguments.

use std::borrow::Cow;
use std::collections::HashMap;

use memchr::memchr;

use super::error::{Error, Kind};
use super::words::{self, Word};
use super::MAX_COMMAND;
use crate::json;
use crate::value::Value;

/// The built-in command that answers questions about skills.
pub const GET_SKILL: &str = "get_skill";

/// What follows a flag.
#[derive(Debug, Clone, PartialEq)]
pub enum FlagValue<'a> {
    /// Nothing: the flag is there.
    True,
    /// One word.
    One(Cow<'a, str>),
    /// Several words, or the flag several times.
    Many(Vec<Cow<'a, str>>),
    /// A member of a JSON object.
    Json(Value),
}

/// A command as it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Command<'a> {
    /// The first word.
    pub name: Cow<'a, str>,
    /// The flags in the order of their first occurrence.
    pub flags: Vec<(Cow<'a, str>, FlagValue<'a>)>,
    /// The words before the first flag and after a bare `--`.
    pub args: Vec<Cow<'a, str>>,
    /// Whether `--help`, as a flag or a member of the JSON object, or `-h` stands anywhere on the line: nothing is run then.
    pub help: bool,
}

impl<'a> Command<'a> {
    /// The value of a flag.
    pub fn flag(&self, name: &str) -> Option<&FlagValue<'a>> {
        self.flags.iter().find(|(flag, _)| flag == name).map(|(_, value)| value)
    }
}

/// Reads a command.
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
    if let Some(command) = json_command(source) {
        return Ok(command);
    }
    let mut words = words::split(source)?.into_iter();
    let Some(first) = words.next() else {
        return Err(Error::at(
            Kind::EmptyCommand,
            source,
            0..0,
            "a command was expected, and there is none",
            "write a skill's name and its flags, as in: tasks.search --status todo",
        ));
    };
    if flag_name(&first).is_some() || (!first.quoted && first.value == "--") {
        return Err(Error::at(
            Kind::MissingName,
            source,
            first.span.clone(),
            "a skill's name was expected, and a flag came",
            "put the flags on the line of their command, before the text of a heredoc; a backslash at its end continues a line",
        ));
    }
    if let Some(open) = unclosed_json(&source[first.span.end..]) {
        let at = first.span.end + open;
        return Err(Error::at(
            Kind::UnclosedJson,
            source,
            at..at + 1,
            "the JSON object that opens here is not closed on this line",
            "write the whole object on the command's line, or write flags: --name value",
        ));
    }
    let mut command = Command { name: first.value, flags: Vec::new(), args: Vec::new(), help: false };
    get_skill(&mut command);
    read(words, &mut command);
    Ok(command)
}

/// `get_skill: PATH` and `get_skill:PATH` are `get_skill PATH`.
fn get_skill(command: &mut Command<'_>) {
    let Some(path) = command.name.strip_prefix(GET_SKILL).and_then(|rest| rest.strip_prefix(':')) else {
        return;
    };
    if !path.is_empty() {
        let path = path.to_owned();
        command.args.push(Cow::Owned(path));
    }
    command.name = Cow::Borrowed(GET_SKILL);
}

fn read<'a>(mut words: impl Iterator<Item = Word<'a>>, command: &mut Command<'a>) {
    let mut flags = Flags { list: Vec::with_capacity(8), ..Flags::default() };
    for word in words.by_ref() {
        let dashed = !word.quoted && word.value.starts_with('-');
        if dashed && word.value == "--" {
            break;
        }
        command.help |= dashed && word.value == "-h";
        match if dashed { flag_name(&word) } else { None } {
            Some(len) => {
                let (name, value) = split_flag(word.value, len);
                command.help |= name == "help";
                flags.begin(name);
                if let Some(value) = value {
                    flags.add(value);
                }
            }
            None if flags.list.is_empty() => command.args.push(word.value),
            None => flags.add(word.value),
        }
    }
    command.args.extend(words.map(|word| word.value));
    command.flags = flags.list;
}

/// The flags so far. Where there are many, a map finds the earlier one, so that no input makes this slow.
#[derive(Default)]
struct Flags<'a> {
    list: Vec<(Cow<'a, str>, FlagValue<'a>)>,
    current: usize,
    places: HashMap<Cow<'a, str>, usize>,
}

const FEW: usize = 16;

impl<'a> Flags<'a> {
    fn begin(&mut self, name: Cow<'a, str>) {
        let found = if self.list.len() < FEW {
            self.list.iter().position(|(flag, _)| *flag == name)
        } else {
            if self.places.is_empty() {
                self.places = self.list.iter().enumerate().map(|(at, (flag, _))| (flag.clone(), at)).collect();
            }
            self.places.get(&name).copied()
        };
        self.current = found.unwrap_or(self.list.len());
        if found.is_none() {
            if self.list.len() >= FEW {
                self.places.insert(name.clone(), self.current);
            }
            self.list.push((name, FlagValue::True));
        }
    }

    fn add(&mut self, value: Cow<'a, str>) {
        let Some((_, have)) = self.list.get_mut(self.current) else { return };
        match have {
            FlagValue::Many(values) => values.push(value),
            FlagValue::One(first) => *have = FlagValue::Many(vec![std::mem::take(first), value]),
            FlagValue::True | FlagValue::Json(_) => *have = FlagValue::One(value),
        }
    }
}

/// The length of the name if the word is a flag: two dashes and a letter, a digit or an underscore, unquoted.
fn flag_name(word: &Word<'_>) -> Option<usize> {
    let rest = word.value.strip_prefix("--").filter(|_| !word.quoted)?;
    let first = rest.chars().next()?;
    (first.is_alphanumeric() || first == '_').then(|| memchr(b'=', rest.as_bytes()).unwrap_or(rest.len()))
}

/// `--name` or `--name=value`.
fn split_flag(word: Cow<'_, str>, len: usize) -> (Cow<'_, str>, Option<Cow<'_, str>>) {
    let end = 2 + len;
    match word {
        Cow::Borrowed(word) => (Cow::Borrowed(&word[2..end]), word.get(end + 1..).map(Cow::Borrowed)),
        Cow::Owned(word) => {
            (Cow::Owned(word[2..end].to_owned()), word.get(end + 1..).map(|value| Cow::Owned(value.to_owned())))
        }
    }
}

/// A name and one JSON object, which is how models write that were trained on tool calls.
fn json_command(source: &str) -> Option<Command<'_>> {
    if source.len() > MAX_COMMAND {
        return None;
    }
    let source = source[words::start(source)..].trim_end();
    let (name, rest) = source.split_once([' ', '\t'])?;
    let rest = rest.trim_start();
    if !rest.starts_with('{') || !rest.ends_with('}') || name.starts_with(['"', '\'', '-', '#']) || name.contains('\n')
    {
        return None;
    }
    let members: serde_json::Map<String, serde_json::Value> = serde_json::from_str(rest).ok()?;
    // As `--help`. Models that fill in every parameter write false or null for those that they do not mean.
    let help = members.get("help").is_some_and(|value| !value.is_null() && *value != false);
    let flags = members.into_iter().map(|(name, value)| (Cow::Owned(name), from_json(value))).collect();
    let mut command = Command { name: Cow::Borrowed(name), flags, args: Vec::new(), help };
    get_skill(&mut command);
    Some(command)
}

/// Where a JSON object opens that goes on in the next line, as models print them. As words it would run the command
/// without what was meant.
fn unclosed_json(rest: &str) -> Option<usize> {
    let object = rest.trim_start();
    if !object.starts_with('{') {
        return None;
    }
    let first = serde_json::Deserializer::from_str(object).into_iter::<serde::de::IgnoredAny>().next();
    let open = matches!(first, Some(Err(error)) if error.is_eof());
    open.then(|| rest.len() - object.len())
}

fn from_json<'a>(value: serde_json::Value) -> FlagValue<'a> {
    match value {
        serde_json::Value::Bool(true) => FlagValue::True,
        serde_json::Value::String(text) => FlagValue::One(Cow::Owned(text)),
        other => FlagValue::Json(json::value(other)),
    }
}
