//! Schedules: a cron expression in a time zone, and the times at which it fires.
//!
//! ```
//! use skillbook_core::schedule::Schedule;
//!
//! let schedule = Schedule::parse("0 9 * * MON", "Europe/Berlin").unwrap();
//! let thursday = 1_790_000_000;
//! let next = schedule.next(thursday).unwrap();
//! assert_eq!(schedule.local(next).unwrap(), "2026-09-28 09:00 +02:00");
//! assert_eq!(schedule.describe(), "at 09:00 on Mondays, Europe/Berlin");
//! ```
//!
//! Nothing here reads a clock. Times are arguments, in seconds since 1970 in UTC.
//!
//! # Fields
//!
//! An expression has five fields, or six with the second first, separated by blanks. Without a
//! second it is 0.
//!
//! | field | values |
//! |---|---|
//! | second | 0 to 59 |
//! | minute | 0 to 59 |
//! | hour | 0 to 23 |
//! | day of month | 1 to 31, `L` for the last day |
//! | month | 1 to 12, `JAN` to `DEC` |
//! | day of week | 0 to 7 (0 and 7 are Sunday), `SUN` to `SAT` |
//!
//! As the day of week, `5L` is the last Friday of a month and `1#2` the second Monday.
//!
//! `*` is every value, `a-b` a range, `a,b` a list. `*/n`, `a-b/n` and `a/n` (from `a` on) are
//! every n-th value. In the two day fields `?` is the same as `*`. Case does not matter. These
//! names replace all fields: `@yearly` or `@annually`, `@monthly`, `@weekly`, `@daily` or
//! `@midnight`, `@hourly`.
//!
//! If one of the two day fields begins with `*` or `?`, a day must match both. Otherwise it must
//! match one of them: `0 0 13 * FRI` is every 13th and every Friday.
//!
//! # Daylight saving time
//!
//! If the second, the minute or the hour begins with `*`, the expression counts elapsed time: times
//! that the clocks skip do not fire, and times that occur twice fire twice. Any other expression
//! names times of day, and each fires once a day: a skipped time fires at the end of the gap
//! (several of one gap together), and a time that occurs twice fires the first time. These are the
//! rules of Debian's cron and of cronie, applied to six fields too.

mod cron;
mod describe;
mod error;
mod parse;
mod zone;

pub use cron::Cron;
pub use error::Error;
pub use zone::{Stretch, Zone};

use jiff_core::tz::Offset;
use jiff_core::Timestamp;

/// A cron expression in a time zone.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    cron: Cron,
    zone: Zone,
}

impl Schedule {
    /// A schedule for an expression in a zone.
    pub fn new(cron: Cron, zone: Zone) -> Schedule {
        Schedule { cron, zone }
    }

    /// Parses an expression and the name of a zone.
    pub fn parse(expression: &str, zone: &str) -> Result<Schedule, Error> {
        Ok(Schedule::new(Cron::parse(expression)?, Zone::named(zone)?))
    }

    /// The time zone.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// The next time at which it fires, later than `after`; `None` if there is none up to the year
    /// 9999.
    ///
    /// The search goes from one stretch of constant offset to the next, so that local times are
    /// unique within each.
    pub fn next(&self, after: i64) -> Option<i64> {
        let mut at = after.checked_add(1)?;
        loop {
            let stretch = self.zone.stretch(at)?;
            let mut from = at + stretch.offset;
            if let (Some(start), false) = (stretch.start, self.cron.real_time) {
                let skipped = start + stretch.offset_before;
                let shown = start + stretch.offset;
                // At the start of a stretch after a gap: run once if any time within the gap was
                // due.
                if at == start && self.cron.at_or_after(skipped)? < shown {
                    return Some(start);
                }
                // After the clocks go back, the local times up to `skipped` have fired already.
                from = from.max(skipped);
            }
            let found = self.cron.at_or_after(from)? - stretch.offset;
            match stretch.end {
                // The local time found lies after the change of the offset, where it may mean
                // another instant.
                Some(end) if found >= end => at = end,
                _ => return Some(found),
            }
        }
    }

    /// The times at which it fires after `after`, in order.
    pub fn upcoming(&self, after: i64) -> impl Iterator<Item = i64> + '_ {
        std::iter::successors(self.next(after), |at| self.next(*at))
    }

    /// A time as local time of the zone, with the offset from UTC; `None` outside of the years
    /// -9999 to 9999.
    pub fn local(&self, at: i64) -> Option<String> {
        let offset = self.zone.offset(at)?;
        let time = Offset::UTC.to_datetime(Timestamp::from_second(at.checked_add(offset)?).ok()?);
        let (date, time) = (time.date(), time.time());
        let seconds =
            if time.second() == 0 { String::new() } else { format!(":{:02}", time.second()) };
        let (sign, ahead) = if offset < 0 { ('-', -offset) } else { ('+', offset) };
        // A date has no other form in text than this one, of ISO 8601.
        Some(format!(
            "{date:?} {:02}:{:02}{seconds} {sign}{:02}:{:02}",
            time.hour(),
            time.minute(),
            ahead / 3600,
            ahead / 60 % 60
        ))
    }

    /// The schedule in English, on one line.
    pub fn describe(&self) -> String {
        format!("{}, {}", self.cron.describe(), self.zone.name())
    }
}
