//! The flags of a command as its page declares them: what the Flags section lists, together with the Usage line.
//!
//! Lint, checks before a run, tool definitions and grammars all go by this one reading. Only what is plainly written
//! counts: of a flag whose text says nothing that is known here, there are the name and the description, and a section of
//! prose declares nothing.
//!
//! ```
//! use skillbook_core::page::declaration::{read, Type};
//!
//! let declared = read("## Flags\n\n--title  What to do (required)\n--limit  How many, from 1 to 100 (default: 20)\n").unwrap();
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

/// What a command takes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Declaration {
    /// Its flags, in their order.
    pub flags: Vec<Flag>,
    /// Flags of which one is to be given, as `(--a <x> | --b <y>)` in Usage shows them.
    pub choices: Vec<Choice>,
    /// Whether words of its own may stand without a flag: Usage shows some, or is no plain
    /// synopsis.
    pub words: bool,
    /// Where Usage and the Flags section contradict each other.
    pub contradictions: Vec<Contradiction>,
}

/// A flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// Its names without dashes as written, the first one being its own. One dash makes no flag, so short ones are none.
    pub names: Vec<String>,
    /// What the section says of it, on one line.
    pub description: String,
    /// Whether it must be given.
    pub required: bool,
    /// The values that it has if it is not given.
    pub default: Vec<String>,
    /// What its values are.
    pub kind: Type,
    /// Whether it may have several values.
    pub several: bool,
    /// Which words before the first flag stand for it.
    pub positional: Option<Positional>,
    /// Where its first name, with its dashes, begins in the body, in bytes.
    pub offset: usize,
}

/// The words that are days where a page allows them.
pub const DAYS: [&str; 3] = ["yesterday", "today", "tomorrow"];

/// What a flag's values are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Type {
    /// Nothing is said of it.
    #[default]
    Unknown,
    /// It has a value, or several, of which no more is said.
    Value,
    /// One text.
    Text {
        /// Its greatest length in characters.
        max: Option<u64>,
        /// Whether it is a single line.
        line: bool,
        /// Whether it may be empty or blank.
        empty: bool,
    },
    /// None: it is there or not.
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
    /// A day as `YYYY-MM-DD`.
    Date {
        /// Whether `yesterday`, `today` and `tomorrow` are days too.
        words: bool,
    },
    /// One of these.
    OneOf(Vec<String>),
}

/// How many words before the first flag a flag takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Positional {
    /// One.
    One,
    /// All that are left, as one text.
    All,
}

/// Flags that exclude each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Their own names.
    pub names: Vec<String>,
    /// Whether one of them must be given.
    pub required: bool,
}

/// What a page says of a flag in two ways.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// The flag's place among the flags.
    pub flag: usize,
    /// What is wrong.
    pub clash: Clash,
}

/// How two statements differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Clash {
    /// Usage shows it in brackets, the Flags section says that it is required.
    Optional,
    /// Usage shows it without brackets, the Flags section says that it may be left out.
    Required,
    /// Usage shows no value, the Flags section speaks of one.
    NoValue,
    /// Usage shows a value, and the Flags section calls it a switch.
    Value,
    /// A default that is none of the values allowed.
    Default(String),
}

impl Flag {
    /// Its own name.
    pub fn name(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }

    /// Whether this is one of its names; `due_before` is `due-before`.
    pub fn is(&self, name: &str) -> bool {
        self.names.iter().any(|own| plain(own) == plain(name))
    }
}

/// A name in the spelling in which it is compared.
fn plain(name: &str) -> Cow<'_, str> {
    match name.contains('_') {
        true => Cow::Owned(name.replace('_', "-")),
        false => Cow::Borrowed(name),
    }
}

/// Reads the Flags section of a body and its Usage; `None` if there is none, or it is prose and lists no flag.
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
    let mut said: Vec<Facts> = Vec::with_capacity(items.len());
    for item in items {
        let known = |name: &&str| places.contains_key(&*plain(name));
        let names: Vec<_> =
            item.names.iter().filter(|name| !known(name)).map(|name| (*name).to_owned()).collect();
        // What is listed twice is what the first line says.
        let Some(first) = item.names.first().filter(|_| !names.is_empty()) else { continue };
        for name in &names {
            places.insert(plain(name).into_owned(), flags.len());
        }
        let mut description = String::new();
        push_line(&mut description, &item.text);
        said.push(phrase::facts(&description, &item));
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
    let marked = said.iter().any(|said| said.required == Some(true));
    let placed = said.iter().any(|said| said.positional.is_some());
    let mut contradictions = Vec::new();
    for (at, ((flag, said), shown)) in flags.iter_mut().zip(said).zip(shown).enumerate() {
        let words = said.positional;
        let clashes = combine(flag, said, shown, marked);
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

/// Brings together what the section says and what Usage shows. Where they differ, the section's words count.
fn combine(
    flag: &mut Flag,
    said: Facts,
    shown: Option<&UsageFlag<'_>>,
    marked: bool,
) -> Vec<Clash> {
    let mut clashes = Vec::new();
    let has_default = !said.default.is_empty() || said.has_default;
    let free = said.required == Some(false) || has_default;
    flag.kind = said.kind;
    flag.several = said.several;
    flag.required = said.required == Some(true);
    if let Some(shown) = shown {
        match (said.required, shown.optional) {
            (Some(true), true) => clashes.push(Clash::Optional),
            (_, false) if free && said.required != Some(true) => clashes.push(Clash::Required),
            // Where some are marked as required, one that is not may be left out.
            (None, false) if marked => clashes.push(Clash::Required),
            (None, false) => flag.required = true,
            _ => {}
        }
        let silent = flag.kind == Type::Unknown;
        match &shown.value {
            // Who lists flags without brackets lists them without their values too.
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
        flag.default = said.default;
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
    /// Whether a text can be such a value, as far as that can be told here.
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
