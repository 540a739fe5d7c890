//! The flags that a command's page declares: in its frontmatter ([`Given`]), or in its Flags
//! section and its Usage line. If the frontmatter declares flags, the section only describes them.
//!
//! Lint, checks before a run, tool definitions and grammars all use this reading. In text only
//! clear statements count: a flag without any known phrase has just a name and a description, and a
//! section of prose declares nothing. A wrong guess would refuse correct commands; a missing one
//! only leaves a check out.
//!
//! ```
//! use skillbook_core::page::declaration::{read, Type};
//!
//! let page = "## Flags\n\n\
//!     --title  What to do (required)\n\
//!     --limit  How many, from 1 to 100 (default: 20)\n";
//! let declared = read(page).unwrap();
//! assert!(declared.flags[0].required);
//! assert_eq!(declared.flags[1].kind, Type::Integer { min: Some(1), max: Some(100) });
//! assert_eq!(declared.flags[1].default, ["20"]);
//! assert_eq!(read("## Flags\n\nIt takes --title.\n"), None);
//! ```

mod list;
mod pattern;
mod phrase;
pub(crate) mod schema;
pub(crate) mod text;
mod usage;
mod values;

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use crate::page::diagnostic::Diagnostic;
use crate::page::sections;
use crate::schema::Schema;
use crate::text::fence;
use crate::text::line::push_line;
pub(crate) use list::word as flag_name;
use list::Item;
pub use pattern::{Pattern, PatternError, LONGEST_VALUE};
use phrase::Facts;
use usage::{Synopsis, UsageFlag};

/// The declared flags and arguments of a command.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Declaration {
    /// The flags, in the order of the page.
    pub flags: Vec<Flag>,
    /// Whether the frontmatter declares them.
    pub given: bool,
    /// The schema of all arguments, in `input_schema` of the frontmatter.
    pub schema: Option<Schema>,
    /// The first mistake in `flags` of the frontmatter. With one the command does not run.
    pub error: Option<String>,
    /// Groups of alternative flags, shown in Usage as `(--a <x> | --b <y>)`.
    pub choices: Vec<Choice>,
    /// Whether the command takes words without a flag: Usage shows some, or Usage is not a clear
    /// synopsis.
    pub words: bool,
    /// Contradictions between Usage, the Flags section and the frontmatter.
    pub contradictions: Vec<Contradiction>,
}

/// The flags in the frontmatter of a page, before the rest of the page is read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Given {
    /// The flags, in their order.
    pub flags: Vec<Flag>,
    /// Whether one of them says which words before the first flag it takes.
    pub placed: bool,
    /// The schema whose properties they are.
    pub schema: Option<Schema>,
    /// The first mistake.
    pub error: Option<String>,
    /// The findings, for a command.
    pub diagnostics: Vec<Diagnostic>,
}

/// A declared flag.
#[derive(Debug, Clone, PartialEq)]
pub struct Flag {
    /// Its names without dashes, unchanged; the first is the main one. Names with a single dash are
    /// left out, since the command language has none.
    pub names: Vec<String>,
    /// Its text in the section, on one line.
    pub description: String,
    /// Whether it is required.
    pub required: bool,
    /// Its default values.
    pub default: Vec<String>,
    /// The type of its values.
    pub kind: Type,
    /// The pattern of its texts.
    pub pattern: Option<Pattern>,
    /// The schema of its value.
    pub schema: Option<Schema>,
    /// The name of its property in the schema of all arguments.
    pub property: Option<String>,
    /// Whether it takes several values.
    pub several: bool,
    /// The words before the first flag that it takes.
    pub positional: Option<Positional>,
    /// The offset of its first name, with dashes, in the body, in bytes; `None` if the Flags
    /// section does not list it.
    pub offset: Option<usize>,
    /// Whether its text says anything about its values, or whether it is required.
    pub understood: bool,
}

/// The words that a date may be, if the page allows them.
pub const DAYS: [&str; 3] = ["yesterday", "today", "tomorrow"];

/// The type of a flag's values.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Type {
    /// The page does not say whether it has a value.
    #[default]
    Unknown,
    /// One or more values of any form.
    Value,
    /// One text.
    Text {
        /// The maximum length in characters.
        max: Option<u64>,
        /// Whether it must be a single line.
        line: bool,
        /// Whether it may be empty or blank.
        empty: bool,
    },
    /// No value: the flag is present or absent.
    Switch,
    /// A whole number.
    Integer {
        /// The smallest.
        min: Option<i64>,
        /// The largest.
        max: Option<i64>,
    },
    /// A number.
    Number {
        /// The smallest.
        min: Option<f64>,
        /// The largest.
        max: Option<f64>,
    },
    /// A date as `YYYY-MM-DD`.
    Date {
        /// Whether `yesterday`, `today` and `tomorrow` are allowed too.
        words: bool,
    },
    /// A date, a time and an offset from UTC in ISO 8601.
    Datetime,
    /// An e-mail address.
    Email,
    /// An address of the web, with `http` or `https`.
    Url,
    /// One of these.
    OneOf(Vec<String>),
    /// A value in JSON, with its structure in short: `list of {name: text}`.
    Json(String),
}

/// The number of words before the first flag that a flag takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Positional {
    /// One.
    One,
    /// All remaining ones, as one text.
    All,
}

/// Flags that exclude each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Their main names.
    pub names: Vec<String>,
    /// Whether one of them is required.
    pub required: bool,
}

/// Two contradicting statements about a flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// The main name of the flag.
    pub name: String,
    /// Its offset in the body, as in [`Flag::offset`].
    pub offset: Option<usize>,
    /// The contradiction.
    pub clash: Clash,
}

/// The kind of a contradiction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Clash {
    /// Usage shows the flag in brackets, but the Flags section requires it.
    Optional,
    /// Usage shows the flag without brackets, but the Flags section makes it optional.
    Required,
    /// Usage shows no value, but the Flags section describes one.
    NoValue,
    /// Usage shows a value, but the Flags section calls the flag a switch.
    Value,
    /// A default that is not one of the allowed values.
    Default(String),
    /// The Flags section lists the flag, but the frontmatter declares no such flag.
    Undeclared,
    /// The Flags section says something else than the frontmatter about the flag: whether it is
    /// required, its type, default or number of values.
    Described(&'static str),
}

impl Flag {
    /// A flag without a type.
    pub(crate) fn named(name: &str) -> Flag {
        Flag {
            names: vec![name.to_owned()],
            description: String::new(),
            required: false,
            default: Vec::new(),
            kind: Type::Unknown,
            pattern: None,
            schema: None,
            property: None,
            several: false,
            positional: None,
            offset: None,
            understood: true,
        }
    }

    /// Whether a text can be one of its values.
    pub(crate) fn takes(&self, value: &str) -> bool {
        if let Some(schema) = &self.schema {
            return schema::takes(schema, value);
        }
        self.kind.takes(value) && self.pattern.as_ref().is_none_or(|pattern| pattern.matches(value))
    }

    /// Its main name.
    pub fn name(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }

    /// Whether this is one of its names. `due_before` and `due-before` are the same.
    pub fn is(&self, name: &str) -> bool {
        self.names.iter().any(|own| plain(own) == plain(name))
    }
}

/// The spelling of a name for comparisons.
fn plain(name: &str) -> Cow<'_, str> {
    match name.contains('_') {
        true => Cow::Owned(name.replace('_', "-")),
        false => Cow::Borrowed(name),
    }
}

/// Whether a section lists a flag.
pub(crate) fn lists_flags(section: &str) -> bool {
    !list::items(section).is_empty()
}

/// Reads the Flags section of a body and its Usage. Returns `None` without a section that lists a
/// flag.
pub fn read(body: &str) -> Option<Declaration> {
    read_with(None, body)
}

/// As [`read`], with the flags of the frontmatter. With these, the section only adds descriptions.
pub fn read_with(given: Option<&Given>, body: &str) -> Option<Declaration> {
    let section = sections::section(body, "flags");
    let items = section.map(list::items).unwrap_or_default();
    if items.is_empty() && given.is_none() {
        return None;
    }
    let usage = sections::section(body, "usage");
    // Only the words of a clear synopsis are more exact than the frontmatter.
    let unclear = || Synopsis { words: usage.is_some() && given.is_none(), ..Synopsis::default() };
    let synopsis = usage.and_then(usage::synopsis).unwrap_or_else(unclear);
    Some(declare(given, body, items, &synopsis))
}

/// The places of the flags by their names.
#[derive(Default)]
struct Places(FxHashMap<String, usize>);

impl Places {
    fn find(&self, name: &str) -> Option<usize> {
        self.0.get(&*plain(name)).copied()
    }

    fn add(&mut self, names: &[String], at: usize) {
        for name in names {
            self.0.insert(plain(name).into_owned(), at);
        }
    }
}

fn declare(
    given: Option<&Given>,
    body: &str,
    items: Vec<Item<'_>>,
    synopsis: &Synopsis<'_>,
) -> Declaration {
    let mut places = Places::default();
    let mut flags: Vec<Flag> = given.map(|given| given.flags.clone()).unwrap_or_default();
    for (at, flag) in flags.iter().enumerate() {
        places.add(&flag.names, at);
    }
    let mut facts: Vec<Facts> = flags.iter().map(|_| Facts::default()).collect();
    let mut contradictions = Vec::new();
    for item in items {
        let mut description = String::new();
        push_line(&mut description, &item.text);
        let found = phrase::facts(&description, &item);
        let offset = |name: &&str| fence::offset(body, name) - 2;
        if given.is_some() {
            let known = item.names.iter().find_map(|name| places.find(name));
            match (known, item.names.first()) {
                (Some(at), Some(first)) => {
                    let flag = &mut flags[at];
                    flag.offset = flag.offset.or(Some(offset(first)));
                    if flag.description.is_empty() {
                        flag.description = description;
                    }
                    facts[at] = found;
                }
                (None, Some(first)) => contradictions.push(Contradiction {
                    name: (*first).to_owned(),
                    offset: Some(offset(first)),
                    clash: Clash::Undeclared,
                }),
                (_, None) => {}
            }
            continue;
        }
        let known = |name: &&str| places.find(name).is_some();
        let names: Vec<_> =
            item.names.iter().filter(|name| !known(name)).map(|name| (*name).to_owned()).collect();
        // If a flag is listed twice, the first line counts.
        let Some(first) = item.names.first().filter(|_| !names.is_empty()) else { continue };
        places.add(&names, flags.len());
        let understood = found != Facts::default();
        facts.push(found);
        flags.push(Flag {
            names,
            description,
            offset: Some(offset(first)),
            understood,
            ..Flag::named("")
        });
    }
    let mut shown: Vec<Option<&UsageFlag<'_>>> = vec![None; flags.len()];
    for flag in &synopsis.flags {
        if let Some(at) = places.find(flag.name) {
            shown[at].get_or_insert(flag);
        }
    }
    let placed = match given {
        Some(given) => given.placed,
        None => facts.iter().any(|facts| facts.positional.is_some()),
    };
    let words = synopsis.words && !(given.is_some() && placed);
    let marked = facts.iter().any(|facts| facts.required == Some(true));
    for ((flag, facts), shown) in flags.iter_mut().zip(facts).zip(shown) {
        let (clashes, positional) = match given {
            Some(_) => (compare(flag, &facts, shown), Some(flag.positional)),
            None => {
                let positional = facts.positional;
                flag.understood |= shown.is_some();
                (combine(flag, facts, shown, marked), positional)
            }
        };
        flag.positional = match positional {
            _ if words => None,
            None | Some(None) if flag.required && !placed => Some(Positional::One),
            positional => positional.flatten(),
        };
        let contradiction =
            |clash| Contradiction { name: flag.name().to_owned(), offset: flag.offset, clash };
        contradictions.extend(clashes.into_iter().map(contradiction));
    }
    let choice = |choice: &usage::Choice<'_>| {
        let name = |name: &&str| Some(flags[places.find(name)?].name().to_owned());
        let names: Option<Vec<_>> = choice.names.iter().map(name).collect();
        Some(Choice { names: names?, required: choice.required })
    };
    let choices = synopsis.choices.iter().filter_map(choice).collect();
    let error = given.and_then(|given| given.error.clone());
    let schema = given.and_then(|given| given.schema.clone());
    Declaration { flags, given: given.is_some(), schema, error, choices, words, contradictions }
}

/// Compares a flag of the frontmatter with the facts of the section and with Usage.
fn compare(flag: &Flag, facts: &Facts, shown: Option<&UsageFlag<'_>>) -> Vec<Clash> {
    let mut clashes = Vec::new();
    let rows = [
        ("whether it is required", facts.required.is_some_and(|fact| fact != flag.required)),
        ("its type", !facts.kind.fits(&flag.kind)),
        ("its default", !facts.default.is_empty() && facts.default != flag.default),
        ("how many values it takes", facts.several && !flag.several),
    ];
    clashes.extend(rows.into_iter().filter(|(_, wrong)| *wrong).map(|row| Clash::Described(row.0)));
    let Some(shown) = shown else { return clashes };
    match (flag.required, shown.optional) {
        (true, true) => clashes.push(Clash::Optional),
        (false, false) => clashes.push(Clash::Required),
        _ => {}
    }
    match (&shown.value, flag.kind == Type::Switch) {
        (None, false) => clashes.push(Clash::NoValue),
        (Some(_), true) => clashes.push(Clash::Value),
        _ => {}
    }
    clashes
}

/// Combines the facts of the section with Usage. Where they differ, the section counts, because
/// prose is more exact than brackets, and the difference is returned.
fn combine(
    flag: &mut Flag,
    facts: Facts,
    shown: Option<&UsageFlag<'_>>,
    marked: bool,
) -> Vec<Clash> {
    let mut clashes = Vec::new();
    let has_default = !facts.default.is_empty() || facts.has_default;
    let free = facts.required == Some(false) || has_default;
    flag.kind = facts.kind;
    flag.several = facts.several;
    flag.required = facts.required == Some(true);
    if let Some(shown) = shown {
        match (facts.required, shown.optional) {
            (Some(true), true) => clashes.push(Clash::Optional),
            (_, false) if free && facts.required != Some(true) => clashes.push(Clash::Required),
            // If some flags are marked as required, an unmarked one is optional.
            (None, false) if marked => clashes.push(Clash::Required),
            (None, false) => flag.required = true,
            _ => {}
        }
        let silent = flag.kind == Type::Unknown;
        match &shown.value {
            // Authors who leave out brackets leave out values too. Only in brackets does a missing
            // value mean a switch.
            None if silent && !flag.several && shown.optional => flag.kind = Type::Switch,
            None if silent => {}
            None if flag.kind != Type::Switch => clashes.push(Clash::NoValue),
            Some(_) if flag.kind == Type::Switch => clashes.push(Clash::Value),
            Some(value) => {
                if let (Type::Unknown | Type::Value, Some(kind)) =
                    (&flag.kind, phrase::placeholder(value))
                {
                    flag.kind = kind;
                }
                flag.several |= shown.several && flag.kind != Type::Switch;
            }
            None => {}
        }
    }
    if flag.kind == Type::Switch {
        flag.several = false;
    } else {
        flag.default = facts.default;
    }
    if !flag.several && flag.default.len() > 1 {
        flag.default.clear();
    }
    if let Some(wrong) = flag.default.iter().find(|value| !flag.takes(value)) {
        clashes.push(Clash::Default(wrong.clone()));
        flag.default.clear();
    }
    clashes
}

#[cfg(test)]
mod tests;
