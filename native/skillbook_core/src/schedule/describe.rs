//! Describes cron expressions in English: "at 09:00 on Mondays", "every 5 minutes of hours 9 to
//! 17".

use super::cron::{Cron, EVERY_DAY, EVERY_WEEKDAY};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// From Monday on: "Friday to Sunday" is more common than a range across Saturday and Sunday.
const WEEKDAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const NTH: [&str; 5] = ["first", "second", "third", "fourth", "fifth"];

/// Up to this many times of day are listed. More are described by hours, minutes and seconds.
const TIMES: u32 = 6;

/// A field of the time of day: its values, the number of possible values, and its unit.
type Part = (u64, u32, &'static str);

impl Cron {
    pub(super) fn describe(&self) -> String {
        let times = self.times();
        let days = match self.allowed_days() {
            None if !times.contains("every") => "every day".into(),
            None => String::new(),
            Some(days) => days,
        };
        let months = match self.months >> 1 {
            0xfff => String::new(),
            months => format!(
                "in {}",
                list(runs(u64::from(months), |month| MONTHS[month as usize].to_owned()))
            ),
        };
        [times, days, months]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn times(&self) -> String {
        let hours = u64::from(self.hours);
        if self.seconds.is_power_of_two()
            && self.hours.count_ones() * self.minutes.count_ones() <= TIMES
        {
            let seconds = match self.seconds.trailing_zeros() {
                0 => String::new(),
                second => format!(":{second:02}"),
            };
            let of_hour = |hour| bits(self.minutes).map(move |minute| (hour, minute));
            let times = bits(hours)
                .flat_map(of_hour)
                .map(|(hour, minute)| format!("{hour:02}:{minute:02}{seconds}"));
            return format!("at {}", list(times.collect()));
        }
        let parts: [Part; 3] =
            [(self.seconds, 60, "second"), (self.minutes, 60, "minute"), (hours, 24, "hour")];
        // The smallest unit that varies. A second or minute of 0 is left out.
        let first = match (self.seconds, self.minutes) {
            (1, 1) if regular(&parts[2]) => 2,
            (1, _) => 1,
            _ => 0,
        };
        let (part, larger) = (&parts[first], &parts[first + 1..]);
        let (set, _, unit) = part;
        let out = match (every(part), regular(part)) {
            (true, _) => format!("every {unit}"),
            (_, true) => format!("every {} {unit}s", step(*set)),
            _ => format!("at {}", values(part)),
        };
        // Larger units are named up to the last one that leaves out values. A list of values also
        // needs its next larger unit.
        let leaves_out = (0..larger.len()).rev().find(|at| !every(&larger[*at]));
        let named = match leaves_out {
            None if regular(part) => 0,
            None => 1,
            Some(last) => (last + 2).min(larger.len()),
        };
        let of = |part: &Part| {
            if every(part) {
                format!(" of every {}", part.2)
            } else {
                format!(" of {}", values(part))
            }
        };
        out + &larger[..named].iter().map(of).collect::<String>()
    }

    /// The days of month and week; `None` for all days.
    fn allowed_days(&self) -> Option<String> {
        let by_day = match (self.days, self.last_day) {
            (EVERY_DAY, _) => None,
            (0, false) => Some("on no day of the month".to_owned()),
            (0, true) => Some("on the last day of the month".into()),
            (days, last) => {
                let written = list(runs(u64::from(days), |day| (day + 1).to_string()));
                let unit = if days.is_power_of_two() { "day" } else { "days" };
                let last = if last { " and the last day" } else { "" };
                Some(format!("on {unit} {written}{last} of the month"))
            }
        };
        let by_weekday =
            if self.weekdays == EVERY_WEEKDAY { None } else { Some(self.allowed_weekdays()) };
        match (by_day, by_weekday) {
            (Some(by_day), Some(by_weekday)) if self.both_days => {
                Some(format!("{by_day}, but only {by_weekday}"))
            }
            (Some(by_day), Some(by_weekday)) => Some(format!("{by_day} and also {by_weekday}")),
            (by_day, by_weekday) if self.both_days => by_day.or(by_weekday),
            _ => None,
        }
    }

    fn allowed_weekdays(&self) -> String {
        // Sunday moves to the end.
        let from_monday = |set: u8| u64::from(set >> 1 | set << 6 & 0x40);
        let name = |weekday: u32| WEEKDAYS[weekday as usize];
        let mut parts = Vec::new();
        if self.weekdays != 0 {
            parts.push(format!(
                "on {}",
                list(runs(from_monday(self.weekdays), |day| format!("{}s", name(day))))
            ));
        }
        let nth = self.nth_weekdays.iter().copied().zip(NTH).chain([(self.last_weekdays, "last")]);
        for (set, which) in nth {
            for day in bits(from_monday(set)) {
                parts.push(format!("on the {which} {} of the month", name(day)));
            }
        }
        list(parts)
    }
}

/// Whether a field has all values.
fn every((set, size, _): &Part) -> bool {
    set.count_ones() == *size
}

/// Whether the values have the same distance all around, from 0 on: 0, 15, 30 and 45.
fn regular(part: &Part) -> bool {
    let (set, size, _) = part;
    let step = step(*set);
    set.count_ones() > 1
        && *set & 1 == 1
        && size % step == 0
        && (0..*size).all(|value| (value % step == 0) == (set >> value & 1 == 1))
}

/// The distance of the first two values; 1 if there are fewer.
fn step(set: u64) -> u32 {
    let mut values = bits(set);
    values.next().zip(values.next()).map_or(1, |(first, second)| second - first)
}

/// `minute 5`, `hours 9 to 17`.
fn values((set, _, unit): &Part) -> String {
    let written = list(runs(*set, |value| value.to_string()));
    if set.is_power_of_two() {
        format!("{unit} {written}")
    } else {
        format!("{unit}s {written}")
    }
}

fn bits(set: u64) -> impl Iterator<Item = u32> {
    (0..64).filter(move |bit| set >> bit & 1 == 1)
}

/// The values as texts. Three or more in a row become a range.
fn runs(set: u64, name: impl Fn(u32) -> String) -> Vec<String> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(first) = bits(set >> at).next().map(|bit| bit + at) {
        let length = (!(set >> first)).trailing_zeros();
        let last = first + length - 1;
        match length {
            1 => out.push(name(first)),
            2 => out.extend([name(first), name(last)]),
            _ => out.push(format!("{} to {}", name(first), name(last))),
        }
        at = last + 1;
    }
    out
}

/// `a`, `a and b`, `a, b and c`.
fn list(items: Vec<String>) -> String {
    match items.as_slice() {
        [] => String::new(),
        [item] => item.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
