//! The dates of a repeating event, by its rule of iCalendar (RFC 5545, section 3.3.10).
//!
//! Times are those of the event's own clock, in seconds since 1970 without an offset: a rule means
//! the time of day, also where clocks change. Zones are none of this module's business.

use std::time::{Duration, Instant};

use chrono::{DateTime, NaiveDateTime, TimeZone};
use rrule::{Frequency, RRule, Tz, Unvalidated};

/// The most dates that are looked at, from the first one of the series on. A series with more is
/// cut: it fires every day for 50 years, or is a trap.
pub const MAX_DATES: usize = 20_000;

/// The longest rule in bytes.
const MAX_RULE: usize = 1_000;

/// The most times of a day that a rule lists. All dates of a year are made at once, and each second
/// of each day would take a gigabyte.
const MAX_TIMES: usize = 1_440;

/// The dates of a series.
#[derive(Debug, PartialEq, Eq)]
pub struct Dates {
    /// In order, within the range.
    pub dates: Vec<i64>,
    /// Whether the limit was reached before the end of the range.
    pub cut: bool,
}

/// The dates of a rule from `from` on and before `to`, at most `limit` of them, and those that are
/// found within `time`. `None` if the rule cannot be read, or lists more than 1,440 times of a day.
///
/// The time is looked at between two dates. A rule that never fires ends by itself, in at most some
/// tenths of a second.
pub fn dates(
    rule: &str,
    start: i64,
    from: i64,
    to: i64,
    limit: usize,
    time: Duration,
) -> Option<Dates> {
    if rule.len() > MAX_RULE || !rule.bytes().all(|byte| byte.is_ascii_graphic()) {
        return None;
    }
    let rule: RRule<Unvalidated> = rule.parse().ok()?;
    if times(&rule) > MAX_TIMES {
        return None;
    }
    let mut found = Dates { dates: Vec::new(), cut: false };
    let began = Instant::now();
    if rule.get_until().is_some_and(|until| until.timestamp() < from) {
        // It must be valid nevertheless.
        return rule.build(local(start)?).ok().map(|_| found);
    }
    let set = rule.clone().build(local(ahead(&rule, start, from))?).ok()?.limit();
    for (count, date) in set.into_iter().enumerate() {
        let at = date.timestamp();
        if at >= to {
            return Some(found);
        }
        if count >= MAX_DATES || found.dates.len() >= limit || began.elapsed() >= time {
            found.cut = true;
            return Some(found);
        }
        if at >= from {
            found.dates.push(at);
        }
    }
    Some(found)
}

/// A later start with the same dates from `from` on, so that an old series costs as much as a new
/// one. Dates that are counted, or picked out of a period, are found from the first one on.
fn ahead(rule: &RRule<Unvalidated>, start: i64, from: i64) -> i64 {
    let unit: i64 = match rule.get_freq() {
        Frequency::Weekly => 7 * 86_400,
        Frequency::Daily => 86_400,
        Frequency::Hourly => 3_600,
        Frequency::Minutely => 60,
        Frequency::Secondly => 1,
        Frequency::Yearly | Frequency::Monthly => return start,
    };
    if rule.get_count().is_some() {
        return start;
    }
    let step = unit * i64::from(rule.get_interval().max(1));
    // One period before, of which the first dates may be those of the one before it.
    start.saturating_add(((from.saturating_sub(start)) / step - 1).max(0) * step)
}

/// The number of times of a day. Rules that fire more often than daily go through them one by one.
fn times(rule: &RRule<Unvalidated>) -> usize {
    match rule.get_freq() {
        Frequency::Yearly | Frequency::Monthly | Frequency::Weekly | Frequency::Daily => {
            [rule.get_by_hour(), rule.get_by_minute(), rule.get_by_second()]
                .iter()
                .map(|list| list.len().max(1))
                .product()
        }
        Frequency::Hourly | Frequency::Minutely | Frequency::Secondly => 1,
    }
}

/// A local time, written as one of UTC, where no clock changes.
fn local(seconds: i64) -> Option<DateTime<Tz>> {
    let naive: NaiveDateTime = DateTime::from_timestamp(seconds, 0)?.naive_utc();
    Tz::UTC.from_local_datetime(&naive).single()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;
    // Monday, 2 March 2026, 9:00.
    const START: i64 = 1_772_442_000;

    /// Without a limit of time.
    fn dates(rule: &str, start: i64, from: i64, to: i64, limit: usize) -> Option<Dates> {
        super::dates(rule, start, from, to, limit, Duration::MAX)
    }

    fn days(rule: &str, to: i64) -> Option<Vec<i64>> {
        let dates = dates(rule, START, START, START + to * DAY, 100)?.dates;
        Some(dates.iter().map(|at| (at - START) / DAY).collect())
    }

    #[test]
    fn rules() {
        for (rule, expected) in [
            ("FREQ=DAILY;COUNT=3", vec![0, 1, 2]),
            ("FREQ=DAILY;INTERVAL=10", vec![0, 10, 20]),
            ("FREQ=WEEKLY;BYDAY=MO,TH", vec![0, 3, 7, 10, 14, 17, 21, 24, 28]),
            ("FREQ=WEEKLY;UNTIL=20260316T090000Z", vec![0, 7, 14]),
            ("FREQ=WEEKLY;UNTIL=20260316T085959Z", vec![0, 7]),
            ("FREQ=MONTHLY;BYDAY=-1FR", vec![25]),
            ("FREQ=MONTHLY;BYMONTHDAY=-1", vec![29]),
            ("FREQ=YEARLY;BYMONTH=4;BYDAY=1MO", vec![]),
        ] {
            assert_eq!(days(rule, 30), Some(expected), "{rule}");
        }
    }

    #[test]
    fn what_is_no_rule() {
        for rule in ["", "FREQ=NEVER", "FREQ=DAILY;COUNT=x", "FREQ=DAILY\nCOUNT=1", "RRULE", "é"] {
            assert_eq!(dates(rule, START, START, START + DAY, 10), None, "{rule}");
        }
        assert_eq!(dates(&format!("FREQ=DAILY;BYDAY={}", "MO,".repeat(999)), 0, 0, DAY, 1), None);
    }

    /// Times of a day are multiplied by the days of the period.
    #[test]
    fn rules_list_a_limited_number_of_times() {
        let list = |count: u32| (0..count).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        let days = "BYDAY=MO,TU,WE,TH,FR,SA,SU";
        let count = |rule: &str| Some(dates(rule, START, START, i64::MAX, 5)?.dates.len());
        for often in ["YEARLY", "MONTHLY", "WEEKLY", "DAILY"] {
            let minutes = format!("FREQ={often};{days};BYHOUR={};BYMINUTE={}", list(24), list(60));
            assert_eq!(count(&minutes), Some(5), "{minutes}");
            assert_eq!(count(&format!("{minutes};BYSECOND=0,1")), None, "{often}");
            assert_eq!(count(&format!("{minutes};BYSECOND={}", list(60))), None, "{often}");
        }
        let seconds = format!("FREQ=SECONDLY;BYHOUR={};BYMINUTE={}", list(24), list(60));
        assert_eq!(count(&format!("{seconds};BYSECOND={}", list(60))), Some(5));
    }

    /// Rules that fire every second, never, or long after their start end soon.
    #[test]
    fn hostile_rules_end() {
        let began = std::time::Instant::now();
        for rule in [
            "FREQ=SECONDLY",
            "FREQ=SECONDLY;UNTIL=99991231T235959Z",
            "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30",
            "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
            "FREQ=DAILY;COUNT=4294967295",
            "FREQ=YEARLY;INTERVAL=65535",
            "FREQ=YEARLY;BYHOUR=0,1,2,3,4,5,6,7,8,9,10,11,12;BYMINUTE=0,1,2,3,4,5;BYSECOND=0,1,2",
        ] {
            let far = START + 10_000 * 365 * DAY;
            if let Some(found) = dates(rule, START, far - 1, far, 10) {
                assert!(found.dates.len() <= 10, "{rule}");
            }
            if let Some(found) = dates(rule, START, START, far, 10) {
                assert!(found.dates.len() <= 10, "{rule}");
            }
        }
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }

    /// A series of two hundred years costs as much as one of this week, and has the same dates.
    #[test]
    fn old_series_have_their_dates() {
        let rules = [
            "FREQ=DAILY;INTERVAL=3",
            "FREQ=DAILY;BYMONTH=3,4;BYHOUR=9,17",
            "FREQ=WEEKLY;INTERVAL=2;BYDAY=SU,MO,WE",
            "FREQ=WEEKLY;INTERVAL=3;WKST=SU;BYDAY=SU,MO",
            "FREQ=WEEKLY;BYDAY=MO,TU,WE;BYSETPOS=2",
            "FREQ=HOURLY;INTERVAL=7",
            "FREQ=MINUTELY;INTERVAL=97;BYDAY=MO",
            "FREQ=DAILY;UNTIL=20260501T000000Z",
            "FREQ=MONTHLY;BYDAY=-1FR",
            "FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU",
        ];
        for rule in rules {
            // Few enough dates to be counted from the first one on.
            for from in (0..60).map(|n| START + n * 5 * DAY + n * 1_234) {
                let to = from + 20 * DAY;
                let all = dates(rule, START, START, to, MAX_DATES).unwrap();
                assert!(!all.cut, "{rule}");
                let all: Vec<i64> = all.dates.into_iter().filter(|at| *at >= from).collect();
                assert_eq!(dates(rule, START, from, to, MAX_DATES).unwrap().dates, all, "{rule}");
            }
        }
        let old = START - 200 * 365 * DAY;
        for rule in ["FREQ=DAILY", "FREQ=WEEKLY;BYDAY=MO", "FREQ=HOURLY;BYHOUR=9"] {
            let found = dates(rule, old, START, START + 7 * DAY, 100).unwrap();
            assert!(!found.cut && !found.dates.is_empty(), "{rule}");
        }
    }

    #[test]
    fn a_search_ends_with_its_time() {
        let found = super::dates("FREQ=DAILY", START, START, i64::MAX, 9, Duration::ZERO).unwrap();
        assert_eq!(found, Dates { dates: vec![], cut: true });
    }

    #[test]
    fn times_outside_of_all_calendars() {
        for start in [i64::MIN, i64::MAX, -1 << 50, 1 << 50] {
            assert_eq!(dates("FREQ=DAILY", start, i64::MIN, i64::MAX, 10), None);
        }
        // The last day that exists.
        let last = DateTime::<chrono::Utc>::MAX_UTC.timestamp();
        let _ = dates("FREQ=DAILY", last, i64::MIN, i64::MAX, 10);
        let _ = dates("FREQ=YEARLY", 253_402_300_799, i64::MIN, i64::MAX, 10);
    }
}
