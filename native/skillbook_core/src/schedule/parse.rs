//! Parses cron expressions. Expressions that never fire are errors.

use std::ops::{Range, RangeInclusive};

use super::cron::Cron;
use super::Error;

/// The longest expression, in bytes. One that lists every minute is shorter.
const LONGEST: usize = 500;

const NICKNAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

const HOW_TO_WRITE: &str =
    "write minute, hour, day of month, month and day of week, such as 0 9 * * 1, or a name such \
     as @daily";

/// The rules of one of the six fields.
struct Field {
    name: &'static str,
    values: RangeInclusive<u32>,
    /// The names of the values, from the smallest on.
    names: &'static [&'static str],
    days: Days,
}

/// The signs for days in a field: `L`, `#` and `?`.
#[derive(PartialEq)]
enum Days {
    None,
    Month,
    Week,
}

const FIELDS: [Field; 6] = [
    Field { name: "second", values: 0..=59, names: &[], days: Days::None },
    Field { name: "minute", values: 0..=59, names: &[], days: Days::None },
    Field { name: "hour", values: 0..=23, names: &[], days: Days::None },
    Field { name: "day of month", values: 1..=31, names: &[], days: Days::Month },
    Field {
        name: "month",
        values: 1..=12,
        names: &[
            "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
        ],
        days: Days::None,
    },
    Field {
        name: "day of week",
        values: 0..=7,
        names: &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
        days: Days::Week,
    },
];

/// The values of a field.
#[derive(Default)]
struct Values {
    bits: u64,
    last: bool,
    nth: [u8; 5],
    last_weekdays: u8,
}

impl Cron {
    /// Parses five or six fields or an `@` name. An expression that never fires is an error.
    pub fn parse(text: &str) -> Result<Cron, Error> {
        cron(text)
    }
}

fn cron(text: &str) -> Result<Cron, Error> {
    let trimmed = text.trim_end();
    let whole = || trimmed.len() - trimmed.trim_start().len()..trimmed.len();
    if text.len() > LONGEST {
        return Err(Error::new(
            format!("at most {LONGEST} bytes"),
            text,
            whole(),
            "write ranges and steps, such as 0-30/5",
        ));
    }
    let words = words(text);
    if let [(word, at)] = words.as_slice() {
        let named =
            |name: &str| NICKNAMES.iter().find(|(nickname, _)| nickname.eq_ignore_ascii_case(name));
        if let Some((_, fields)) = named(word) {
            return cron(fields);
        }
        if word.starts_with('@') {
            let names = "one of @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually";
            return Err(Error::new(names, text, *at..at + word.len(), HOW_TO_WRITE));
        }
        let hint = named(&format!("@{word}")).map(|(name, _)| format!("write {name}"));
        return Err(wrong_count(text, whole(), hint.as_deref().unwrap_or(HOW_TO_WRITE)));
    }
    let fields = match words.len() {
        5 => &FIELDS[1..],
        6 => &FIELDS[..],
        7 => return Err(wrong_count(text, whole(), "leave out the year")),
        _ => return Err(wrong_count(text, whole(), HOW_TO_WRITE)),
    };

    let mut read = Vec::with_capacity(FIELDS.len());
    for (field, (word, at)) in fields.iter().zip(&words) {
        read.push(field.read(text, word, *at)?);
    }
    if read.len() < FIELDS.len() {
        read.insert(0, Values { bits: 1, ..Values::default() });
    }
    let [second, minute, hour, day, month, weekday] = read.try_into().unwrap_or_default();
    // Cron's rule looks at the first character of a field: `*/2` counts as `*`.
    let open = |from_end: usize| {
        words.iter().rev().nth(from_end).is_some_and(|(word, _)| word.starts_with(['*', '?']))
    };
    let cron = Cron {
        seconds: second.bits,
        minutes: minute.bits,
        hours: hour.bits as u32,
        days: (day.bits >> 1) as u32,
        last_day: day.last,
        months: month.bits as u16,
        weekdays: weekdays(weekday.bits),
        nth_weekdays: weekday.nth,
        last_weekdays: weekday.last_weekdays,
        both_days: open(0) || open(2),
        real_time: open(3) || open(4) || open(5),
    };
    if !cron.fires() {
        let start = words[words.len() - 3].1;
        let hint = "no year has such a day; write another day of month, month or day of week";
        return Err(Error::new("a day that exists", text, start..whole().end, hint));
    }
    Ok(cron)
}

fn wrong_count(text: &str, span: Range<usize>, hint: &str) -> Error {
    Error::new("five fields, or six with the second first", text, span, hint)
}

/// The words of a text with their offsets.
fn words(text: &str) -> Vec<(&str, usize)> {
    text.split_whitespace()
        .map(|word| (word, word.as_ptr() as usize - text.as_ptr() as usize))
        .collect()
}

/// The weekdays as bits 0 to 6. Sunday has two numbers, 0 and 7.
fn weekdays(bits: u64) -> u8 {
    (bits | bits >> 7) as u8 & 0x7f
}

impl Field {
    fn read(&self, text: &str, word: &str, at: usize) -> Result<Values, Error> {
        let mut values = Values::default();
        if word == "?" && self.days != Days::None {
            values.bits = self.every();
            return Ok(values);
        }
        let mut start = at;
        for item in word.split(',') {
            self.item(text, item, start, &mut values)?;
            start += item.len() + 1;
        }
        Ok(values)
    }

    fn item(&self, text: &str, item: &str, at: usize, values: &mut Values) -> Result<(), Error> {
        match (&self.days, item.split_once('#'), item.strip_suffix(['L', 'l'])) {
            (Days::Month, _, Some("")) => values.last = true,
            (Days::Week, Some((day, nth)), _) => {
                let day = self.value(text, day, at)?;
                let start = at + item.len() - nth.len();
                let nth = match nth.parse() {
                    Ok(nth @ 1..=5) => nth,
                    _ => {
                        let expected = format!("a number from 1 to 5 after # in the {}", self.name);
                        let hint = "write for example 1#2 for the second Monday";
                        return Err(Error::new(expected, text, start..start + nth.len(), hint));
                    }
                };
                let set: &mut u8 = &mut values.nth[nth - 1_usize];
                *set |= weekdays(1 << day);
            }
            (Days::Week, None, Some(day)) if !day.is_empty() => {
                values.last_weekdays |= weekdays(1 << self.value(text, day, at)?);
            }
            _ => values.bits |= self.range(text, item, at)?,
        }
        Ok(())
    }

    /// Reads a value, a range or `*`, with or without a step.
    fn range(&self, text: &str, item: &str, at: usize) -> Result<u64, Error> {
        let (base, step) = match item.split_once('/') {
            Some((base, step)) => (base, Some(self.step(text, step, at + base.len() + 1)?)),
            None => (item, None),
        };
        let (first, last) = match (base, base.split_once('-')) {
            ("*", _) => return Ok(stepped(self.every(), step)),
            (_, Some((first, last))) => {
                let start = at + first.len() + 1;
                let (first, last) = (self.value(text, first, at)?, self.value(text, last, start)?);
                // A range may end on Sunday as 0: FRI-SUN.
                let last =
                    if self.days == Days::Week && first > last && last == 0 { 7 } else { last };
                if first > last {
                    return Err(self.backwards(text, base, at, first, last));
                }
                (first, last)
            }
            (_, None) => {
                let value = self.value(text, base, at)?;
                (value, if step.is_some() { *self.values.end() } else { value })
            }
        };
        Ok(stepped((1 << (last + 1)) - (1 << first), step))
    }

    fn value(&self, text: &str, written: &str, at: usize) -> Result<u32, Error> {
        let name =
            |written: &str| self.names.iter().position(|name| name.eq_ignore_ascii_case(written));
        if let Some(place) = name(written) {
            return Ok(self.values.start() + place as u32);
        }
        let digits = !written.is_empty() && written.bytes().all(|byte| byte.is_ascii_digit());
        match written.parse() {
            Ok(number) if digits && self.values.contains(&number) => return Ok(number),
            _ => {}
        }
        let (least, most) = self.values.clone().into_inner();
        let named = match self.names {
            [first, .., last] => format!(" or a name from {first} to {last}"),
            _ => String::new(),
        };
        let expected = format!("a number from {least} to {most}{named} in the {}", self.name);
        // `Monday` is a common mistake for `MON`.
        let short = written.get(..3).filter(|short| name(short).is_some());
        let signs = written.to_ascii_uppercase();
        let hint = if let Some(short) = short {
            format!("write {}", short.to_ascii_uppercase())
        } else if written.contains(':') {
            "write the minute and the hour as two fields, such as 0 9".into()
        } else if signs.contains('W') {
            "W is not supported; write days of the week, such as 1-5 in the last field".into()
        } else if signs.contains(['L', '#']) {
            "write L alone as the day of month, 5L or 1#2 as the day of week".into()
        } else if written.contains('?') {
            "write ? alone, as the day of month or the day of week".into()
        } else {
            format!(
                "write a number such as {}, a list (1,3), a range (1-3), a step (*/2) or *",
                least
            )
        };
        Err(Error::new(expected, text, at..at + written.len(), hint))
    }

    fn step(&self, text: &str, written: &str, at: usize) -> Result<u32, Error> {
        let most = self.last() - self.values.start();
        let digits = written.bytes().all(|byte| byte.is_ascii_digit());
        match written.parse() {
            Ok(step) if digits && (1..=most).contains(&step) => Ok(step),
            _ => {
                let expected = format!("a step from 1 to {most} in the {}", self.name);
                let hint =
                    "a step counts within its field: */15 in the minutes is 0, 15, 30 and 45";
                Err(Error::new(expected, text, at..at + written.len(), hint))
            }
        }
    }

    fn backwards(&self, text: &str, base: &str, at: usize, first: u32, last: u32) -> Error {
        let most = self.last();
        let part =
            |from: u32, to: u32| if from == to { from.to_string() } else { format!("{from}-{to}") };
        let expected = format!("the smaller value first in a range in the {}", self.name);
        let hint = format!("write {},{}", part(first, most), part(*self.values.start(), last));
        Error::new(expected, text, at..at + base.len(), hint)
    }

    fn every(&self) -> u64 {
        (1 << (self.last() + 1)) - (1 << self.values.start())
    }

    /// The last value, except Sunday's second number.
    fn last(&self) -> u32 {
        if self.days == Days::Week {
            6
        } else {
            *self.values.end()
        }
    }
}

/// Every n-th of the values, from the smallest on.
fn stepped(bits: u64, step: Option<u32>) -> u64 {
    let first = bits.trailing_zeros();
    (first..64).step_by(step.unwrap_or(1) as usize).map(|value| bits & 1 << value).sum()
}
