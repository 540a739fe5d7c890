//! The dates of a repeating event, by its rule of iCalendar (RFC 5545, section 3.3.10).
//!
//! Times are those of the event's own clock, in seconds since 1970 without an offset: a rule means
//! the time of day, also where clocks change. Zones are none of this module's business.

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

/// The most periods without a date that are looked at. It is the limit of the library.
const MAX_PERIODS: i64 = 100_000;

/// The last second that a date may have: the end of the year 9999.
const LAST: i64 = 253_402_300_799;

const DAY: i64 = 86_400;

/// The dates of a series.
#[derive(Debug, PartialEq, Eq)]
pub struct Dates {
    /// In order, within the range.
    pub dates: Vec<i64>,
    /// Whether a limit was reached before the end of the range.
    pub cut: bool,
    /// The steps that were taken.
    pub steps: i64,
}

/// The dates of a rule from `from` on and before `to`, at most `limit` of them, and those that are
/// found in `steps`. `None` if the rule cannot be read, or lists more than 1,440 times of a day.
///
/// A date is a step, and a period of the rule in which dates are looked for is one or several, by
/// the work that it takes. So the same rule ends at the same date on every machine. Steps are
/// counted between two dates, and no search for the next date looks at more than 100,000 periods.
pub fn dates(
    rule: &str,
    start: i64,
    from: i64,
    to: i64,
    limit: usize,
    steps: i64,
) -> Option<Dates> {
    if rule.len() > MAX_RULE || !rule.bytes().all(|byte| byte.is_ascii_graphic()) {
        return None;
    }
    let rule: RRule<Unvalidated> = rule.parse().ok()?;
    if times(&rule) > MAX_TIMES {
        return None;
    }
    let mut found = Dates { dates: Vec::new(), cut: false, steps: 0 };
    let until = rule.get_until().map(DateTime::timestamp);
    if until.is_some_and(|until| until < from) {
        // It must be valid nevertheless.
        return rule.build(local(start)?).ok().map(|_| found);
    }
    let mut last = ahead(&rule, start, from);
    let count = rule.get_count().map_or(usize::MAX, |count| count as usize);
    let periods = Periods::of(&rule);
    // The last date is looked at here, so that the library ends only if it finds no more.
    let to = until.map_or(to, |until| to.min(until.saturating_add(1)));
    let rule = if until.is_some() { rule.until(local(LAST)?) } else { rule };
    let mut dates = rule.build(local(last)?).ok()?.limit().into_iter();
    for number in 0.. {
        let date = if number == count { None } else { dates.next() };
        let at = date.map(|date| date.timestamp());
        if number < count {
            found.steps += 1 + periods.steps(at.unwrap_or(LAST) - last);
        }
        let Some(at) = at.filter(|at| *at < to) else { break };
        if number >= MAX_DATES || found.dates.len() >= limit || found.steps > steps {
            found.cut = true;
            break;
        }
        if at >= from {
            found.dates.push(at);
        }
        last = at;
    }
    Some(found)
}

/// The periods of a rule.
struct Periods {
    /// The seconds from one to the next.
    seconds: i64,
    /// How many a day has that is looked at; another day is one.
    daily: Option<i64>,
    /// The steps of one, by the time that the library takes.
    steps: i64,
}

impl Periods {
    fn of(rule: &RRule<Unvalidated>) -> Self {
        // Of these, the library goes through all hours, minutes or seconds in between.
        let times = [rule.get_by_hour(), rule.get_by_minute(), rule.get_by_second()];
        let often = if times.iter().all(|list| list.is_empty()) { 1 } else { 20 };
        let (unit, steps) = match rule.get_freq() {
            Frequency::Yearly => (365 * DAY, 8),
            Frequency::Monthly => (30 * DAY, 2),
            Frequency::Weekly => (7 * DAY, 1),
            Frequency::Daily => (DAY, 1),
            Frequency::Hourly => (3_600, often),
            Frequency::Minutely => (60, often),
            Frequency::Secondly => (1, often),
        };
        let daily = (unit < DAY).then_some(DAY / unit);
        Self { seconds: unit * i64::from(rule.get_interval().max(1)), daily, steps }
    }

    /// The steps of the periods in a number of seconds without a date.
    fn steps(&self, seconds: i64) -> i64 {
        let all = seconds / self.seconds;
        let days = self.daily.map_or(all, |daily| all.min(seconds / DAY + daily));
        days.clamp(0, MAX_PERIODS) * self.steps
    }
}

/// A later start with the same dates from `from` on, so that an old series costs as much as a new
/// one. Dates that are counted, or picked out of a period, are found from the first one on.
fn ahead(rule: &RRule<Unvalidated>, start: i64, from: i64) -> i64 {
    let unit: i64 = match rule.get_freq() {
        Frequency::Weekly => 7 * DAY,
        Frequency::Daily => DAY,
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

    // Monday, 2 March 2026, 9:00.
    const START: i64 = 1_772_442_000;

    /// Without a limit of steps.
    fn dates(rule: &str, start: i64, from: i64, to: i64, limit: usize) -> Option<Dates> {
        super::dates(rule, start, from, to, limit, i64::MAX)
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

    /// The same on every machine: what a rule costs, and the dates that are found in fewer steps.
    #[test]
    fn a_search_ends_with_its_steps() {
        let never = "BYMONTH=2;BYMONTHDAY=30";
        for (rule, days, steps) in [
            ("FREQ=DAILY", 10, 11 + 10),
            ("FREQ=DAILY;COUNT=3", 10, 3 + 2),
            ("FREQ=DAILY;UNTIL=20260304T090000Z", 10, 4 + 3),
            ("FREQ=WEEKLY", 70, 11 + 10),
            ("FREQ=MONTHLY", 31, 2 + 2),
            ("FREQ=YEARLY", 365, 2 + 8),
            ("FREQ=HOURLY;INTERVAL=12", 1, 3 + 2),
            ("FREQ=MINUTELY;BYHOUR=9", 1, 61 + 59 * 20 + 1_381 * 20),
            // Days without a date are one period each, of which one may be gone through whole.
            ("FREQ=SECONDLY;BYMONTHDAY=1", 29, 1 + 29 + DAY),
            (&format!("FREQ=DAILY;{never}"), 1, 1 + MAX_PERIODS),
            (&format!("FREQ=DAILY;UNTIL=20270101T000000Z;{never}"), 1, 1 + MAX_PERIODS),
            (&format!("FREQ=MINUTELY;{never}"), 1, 1 + MAX_PERIODS),
            (&format!("FREQ=YEARLY;{never}"), 1, 1 + 7_979 * 8),
        ] {
            let found = dates(rule, START, START, START + days * DAY, MAX_DATES).unwrap();
            assert_eq!((found.steps, found.cut), (steps, false), "{rule}");
        }
        let found = |steps| super::dates("FREQ=DAILY", START, START, i64::MAX, 99, steps).unwrap();
        for steps in 0..20 {
            let dates = (0..).map(|n| START + n * DAY).take((steps as usize).div_ceil(2)).collect();
            let taken = steps + 1 + steps % 2;
            assert_eq!(found(steps), Dates { dates, cut: true, steps: taken }, "{steps}");
        }
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
