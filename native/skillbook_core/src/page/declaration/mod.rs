//! Reads the flags that a command's page declares in its Flags section and its Usage line.
//!
//! Lint, checks before a run, tool definitions and grammars all use this reading. Only clear
//! statements count: a flag without any known phrase has just a name and a description, and a
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
mod phrase;
mod usage;

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use crate::page::sections;
use crate::text::fence;
use crate::text::line::push_line;
pub(crate) use list::word as flag_name;
use list::Item;
use phrase::Facts;
use usage::{Synopsis, UsageFlag};

/// The declared flags and arguments of a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Declaration {
    /// The flags, in the order of the page.
    pub flags: Vec<Flag>,
    /// Groups of alternative flags, shown in Usage as `(--a <x> | --b <y>)`.
    pub choices: Vec<Choice>,
    /// Whether the command takes words without a flag: Usage shows some, or Usage is not a clear
    /// synopsis.
    pub words: bool,
    /// Contradictions between Usage and the Flags section.
    pub contradictions: Vec<Contradiction>,
}

/// A declared flag.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// Whether it takes several values.
    pub several: bool,
    /// The words before the first flag that it takes.
    pub positional: Option<Positional>,
    /// The offset of its first name, with dashes, in the body, in bytes.
    pub offset: usize,
}

/// The words that a date may be, if the page allows them.
pub const DAYS: [&str; 3] = ["yesterday", "today", "tomorrow"];

/// The type of a flag's values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
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
        min: Option<i64>,
        /// The largest.
        max: Option<i64>,
    },
    /// A date as `YYYY-MM-DD`.
    Date {
        /// Whether `yesterday`, `today` and `tomorrow` are allowed too.
        words: bool,
    },
    /// One of these.
    OneOf(Vec<String>),
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
    /// The index of the flag.
    pub flag: usize,
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
}

impl Flag {
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

/// Reads the Flags section of a body and its Usage. Returns `None` without a section that lists a
/// flag.
pub fn read(body: &str) -> Option<Declaration> {
    let section = sections::section(body, "flags")?;
    let items = list::items(section);
    if items.is_empty() {
        return None;
    }
    let usage = sections::section(body, "usage");
    let unclear = || Synopsis { words: usage.is_some(), ..Synopsis::default() };
    let synopsis = usage.and_then(usage::synopsis).unwrap_or_else(unclear);
    Some(declare(body, items, &synopsis))
}

fn declare(body: &str, items: Vec<Item<'_>>, synopsis: &Synopsis<'_>) -> Declaration {
    let mut places: FxHashMap<String, usize> = FxHashMap::default();
    let mut flags: Vec<Flag> = Vec::with_capacity(items.len());
    let mut facts: Vec<Facts> = Vec::with_capacity(items.len());
    for item in items {
        let known = |name: &&str| places.contains_key(&*plain(name));
        let names: Vec<_> =
            item.names.iter().filter(|name| !known(name)).map(|name| (*name).to_owned()).collect();
        // If a flag is listed twice, the first line counts.
        let Some(first) = item.names.first().filter(|_| !names.is_empty()) else { continue };
        for name in &names {
            places.insert(plain(name).into_owned(), flags.len());
        }
        let mut description = String::new();
        push_line(&mut description, &item.text);
        facts.push(phrase::facts(&description, &item));
        flags.push(Flag {
            names,
            description,
            required: false,
            default: Vec::new(),
            kind: Type::Unknown,
            several: false,
            positional: None,
            offset: fence::offset(body, first) - 2,
        });
    }
    let place = |name: &str| places.get(&*plain(name)).copied();
    let mut shown: Vec<Option<&UsageFlag<'_>>> = vec![None; flags.len()];
    for flag in &synopsis.flags {
        if let Some(at) = place(flag.name) {
            shown[at].get_or_insert(flag);
        }
    }
    let marked = facts.iter().any(|facts| facts.required == Some(true));
    let placed = facts.iter().any(|facts| facts.positional.is_some());
    let mut contradictions = Vec::new();
    for (at, ((flag, facts), shown)) in flags.iter_mut().zip(facts).zip(shown).enumerate() {
        let words = facts.positional;
        let clashes = combine(flag, facts, shown, marked);
        flag.positional = match words {
            _ if synopsis.words => None,
            None if flag.required && !placed => Some(Positional::One),
            words => words.flatten(),
        };
        contradictions.extend(clashes.into_iter().map(|clash| Contradiction { flag: at, clash }));
    }
    let choice = |choice: &usage::Choice<'_>| {
        let names: Option<Vec<_>> =
            choice.names.iter().map(|name| Some(flags[place(name)?].name().to_owned())).collect();
        Some(Choice { names: names?, required: choice.required })
    };
    let choices = synopsis.choices.iter().filter_map(choice).collect();
    Declaration { flags, choices, words: synopsis.words, contradictions }
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
    if let Some(wrong) = flag.default.iter().find(|value| !flag.kind.takes(value)) {
        clashes.push(Clash::Default(wrong.clone()));
        flag.default.clear();
    }
    clashes
}

impl Type {
    /// Whether a text can be a value of this type.
    fn takes(&self, value: &str) -> bool {
        match self {
            Type::OneOf(values) => values.iter().any(|allowed| allowed == value),
            Type::Integer { min, max } => value.parse::<i64>().is_ok_and(|number| {
                min.is_none_or(|min| number >= min) && max.is_none_or(|max| number <= max)
            }),
            Type::Number { min, max } => value.parse::<f64>().is_ok_and(|number| {
                let above = min.is_none_or(|min| number >= min as f64);
                number.is_finite() && above && max.is_none_or(|max| number <= max as f64)
            }),
            Type::Text { max, line, empty } => {
                let length = value.chars().count() as u64;
                (*empty || !value.trim().is_empty())
                    && !(*line && value.contains(char::is_control))
                    && max.is_none_or(|max| length <= max)
            }
            Type::Date { words } => {
                *words && DAYS.contains(&value) || value.parse::<jiff::civil::Date>().is_ok()
            }
            Type::Unknown | Type::Value | Type::Switch => true,
        }
    }
}

#[cfg(test)]
mod tests;
