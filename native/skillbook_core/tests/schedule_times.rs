//! The times of schedules: compared with another implementation, with a search through every
//! minute, and over a year.

use std::collections::{BTreeSet, BinaryHeap};

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::Timestamp;
use proptest::prelude::*;
use skillbook_core::schedule::{Cron, Schedule, Zone};

fn seconds(text: &str) -> i64 {
    let format = if text.len() > "2027-03-28 02:00 +01:00".len() {
        "%Y-%m-%d %H:%M:%S %:z"
    } else {
        "%Y-%m-%d %H:%M %:z"
    };
    Timestamp::strptime(format, text).expect(text).as_second()
}

/// The table was made by cronsim, which follows Debian's cron. It has no times at clock changes for
/// six fields that name clock times: there cronsim counts elapsed time, while here the seconds
/// field changes no rule.
#[test]
fn fires_when_another_implementation_does() {
    let table = include_str!("fixtures/schedule.txt");
    let differs = table.lines().filter(|line| !line.starts_with('#')).filter_map(|row| {
        let columns: Vec<&str> = row.split(" | ").collect();
        let [expression, zone, after, runs] = columns.as_slice() else { panic!("{row}") };
        let schedule = Schedule::parse(expression, zone).expect(row);
        let found =
            schedule.upcoming(seconds(after)).take(10).map(|at| schedule.local(at).unwrap());
        let found = found.collect::<Vec<_>>().join(", ");
        (found != *runs)
            .then(|| format!("{expression} in {zone} after {after}\n   {found}\n   {runs}"))
    });
    assert_eq!(differs.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn at_the_change_of_the_clocks() {
    // Several times in one gap are one run. Seconds do not make a schedule count elapsed time, `*`
    // seconds do.
    let rows = [
        (
            "0,30 2 * * *",
            "2027-03-28 00:00 +01:00",
            "2027-03-28 03:00 +02:00, 2027-03-29 02:00 +02:00",
        ),
        (
            "0 2,3 * * *",
            "2027-03-28 00:00 +01:00",
            "2027-03-28 03:00 +02:00, 2027-03-29 02:00 +02:00",
        ),
        (
            "30 30 2 * * *",
            "2027-03-28 00:00 +01:00",
            "2027-03-28 03:00 +02:00, 2027-03-29 02:30:30 +02:00",
        ),
        (
            "30 30 2 * * *",
            "2026-10-25 00:00 +02:00",
            "2026-10-25 02:30:30 +02:00, 2026-10-26 02:30:30 +01:00",
        ),
        (
            "*/30 30 2 * * *",
            "2026-10-25 02:30 +02:00",
            "2026-10-25 02:30:30 +02:00, 2026-10-25 02:30 +01:00",
        ),
        (
            "*/30 30 2 * * *",
            "2027-03-28 00:00 +01:00",
            "2027-03-29 02:30 +02:00, 2027-03-29 02:30:30 +02:00",
        ),
        // Clock times: a step from a value on. Elapsed time: a step from `*` on.
        (
            "0 0/2 * * *",
            "2026-10-25 01:00 +02:00",
            "2026-10-25 02:00 +02:00, 2026-10-25 04:00 +01:00",
        ),
        (
            "0 */2 * * *",
            "2026-10-25 01:00 +02:00",
            "2026-10-25 02:00 +02:00, 2026-10-25 02:00 +01:00",
        ),
        // Starting within the hour that occurs twice.
        (
            "30 2 * * *",
            "2026-10-25 02:40 +02:00",
            "2026-10-26 02:30 +01:00, 2026-10-27 02:30 +01:00",
        ),
        (
            "30 2 * * *",
            "2026-10-25 02:10 +01:00",
            "2026-10-26 02:30 +01:00, 2026-10-27 02:30 +01:00",
        ),
    ];
    for (expression, after, runs) in rows {
        let schedule = Schedule::parse(expression, "Europe/Berlin").expect(expression);
        let next = schedule.upcoming(seconds(after)).take(2).map(|at| schedule.local(at).unwrap());
        assert_eq!(next.collect::<Vec<_>>().join(", "), runs, "{expression} after {after}");
    }
    // A day that a zone skipped, and a change that leads from one day into the next.
    let rows = [
        ("0 9 30 12 *", "Pacific/Apia", "2011-12-29 00:00 -10:00", "2011-12-31 00:00 +14:00"),
        ("30 23 * * 6", "America/Nuuk", "2027-03-27 00:00 -02:00", "2027-03-28 00:00 -01:00"),
    ];
    for (expression, zone, after, run) in rows {
        let schedule = Schedule::parse(expression, zone).expect(expression);
        let next = schedule.next(seconds(after)).and_then(|at| schedule.local(at));
        assert_eq!(next.as_deref(), Some(run), "{expression} in {zone}");
    }
}

#[test]
fn ends_with_the_calendar() {
    let schedule = Schedule::parse("@yearly", "UTC").unwrap();
    assert_eq!(
        schedule.next(seconds("9998-12-31 23:59 +00:00")),
        Some(seconds("9999-01-01 00:00 +00:00"))
    );
    assert_eq!(schedule.next(seconds("9999-01-01 00:00 +00:00")), None);
    assert_eq!((schedule.next(i64::MAX), schedule.next(i64::MIN)), (None, None));
    assert_eq!((schedule.local(i64::MAX), schedule.local(i64::MIN)), (None, None));
}

/// A field with its values, computed without the parser.
#[derive(Debug, Clone)]
struct Field {
    text: String,
    values: BTreeSet<i64>,
}

fn field(first: i64, last: i64) -> impl Strategy<Value = Field> {
    let pick = move |text: String, fits: &dyn Fn(i64) -> bool| Field {
        text,
        values: (first..=last).filter(|value| fits(*value)).collect(),
    };
    let value = move || first..=last;
    prop_oneof![
        2 => Just(pick("*".into(), &|_| true)),
        1 => (1..=last - first).prop_map(move |step| {
            pick(format!("*/{step}"), &|value| (value - first) % step == 0)
        }),
        2 => value().prop_map(move |one| pick(one.to_string(), &|value| value == one)),
        2 => (value(), value()).prop_map(move |(a, b)| {
            pick(format!("{a},{b}"), &|value| value == a || value == b)
        }),
        1 => (value(), value()).prop_map(move |(a, b)| {
            let (a, b) = (a.min(b), a.max(b));
            pick(format!("{a}-{b}"), &|value| (a..=b).contains(&value))
        }),
        1 => (value(), value(), 1..=last - first).prop_map(move |(a, b, step)| {
            let (a, b) = (a.min(b), a.max(b));
            pick(format!("{a}-{b}/{step}"), &|value| {
                (a..=b).contains(&value) && (value - a) % step == 0
            })
        }),
    ]
}

/// A weekday as it is written, and which one of the month counts: all (0), the n-th, or the last
/// (6).
fn weekday() -> impl Strategy<Value = (Field, i64)> {
    let which = (0..=6_i64, 1..=6_i64).prop_map(|(day, which)| {
        let text = if which == 6 { format!("{day}L") } else { format!("{day}#{which}") };
        (Field { text, values: [day].into() }, which)
    });
    prop_oneof![4 => field(0, 6).prop_map(|field| (field, 0)), 1 => which]
}

fn day() -> impl Strategy<Value = Field> {
    // 32 stands for the last day.
    prop_oneof![4 => field(1, 31), 1 => Just(Field { text: "L".into(), values: [32].into() })]
}

#[derive(Debug, Clone)]
struct Written {
    second: Option<Field>,
    minute: Field,
    hour: Field,
    day: Field,
    month: Field,
    weekday: (Field, i64),
}

impl Written {
    fn text(&self) -> String {
        let fields = [&self.minute, &self.hour, &self.day, &self.month, &self.weekday.0];
        let fields = self.second.iter().chain(fields).map(|field| field.text.as_str());
        fields.collect::<Vec<_>>().join(" ")
    }

    fn real_time(&self) -> bool {
        let second = self.second.as_ref().is_some_and(|field| field.text.starts_with('*'));
        second || self.minute.text.starts_with('*') || self.hour.text.starts_with('*')
    }

    fn fits(&self, at: DateTime) -> bool {
        let has = |field: &Field, value: i8| field.values.contains(&i64::from(value));
        let last = at.date().last_of_month().day();
        let day = has(&self.day, at.day()) || (self.day.values.contains(&32) && at.day() == last);
        let (weekdays, which) = &self.weekday;
        let counts = match which {
            0 => true,
            6 => at.day() + 7 > last,
            nth => i64::from((at.day() - 1) / 7 + 1) == *nth,
        };
        let weekday = has(weekdays, at.weekday().to_sunday_zero_offset()) && counts;
        let both = self.day.text.starts_with('*') || weekdays.text.starts_with('*');
        (if both { day && weekday } else { day || weekday })
            && self.second.as_ref().map_or(at.second() == 0, |field| has(field, at.second()))
            && has(&self.minute, at.minute())
            && has(&self.hour, at.hour())
            && has(&self.month, at.month())
    }
}

fn written() -> impl Strategy<Value = Written> {
    (prop::option::of(field(0, 59)), field(0, 59), field(0, 23), day(), field(1, 12), weekday())
        .prop_map(|(second, minute, hour, day, month, weekday)| Written {
            second,
            minute,
            hour,
            day,
            month,
            weekday,
        })
}

/// All times from `after` to `end` by definition: every clock time, or every instant, is checked.
fn by_hand(written: &Written, zone: &TimeZone, after: i64, end: i64) -> Vec<i64> {
    let unit = if written.second.is_some() { 1 } else { 60 };
    let instant = |at: i64| Timestamp::from_second(at).unwrap();
    let clock = |at: i64| TimeZone::UTC.to_datetime(instant(at));
    let fires: BTreeSet<i64> = if written.real_time() {
        (after..=end)
            .step_by(unit)
            .filter(|at| written.fits(zone.to_datetime(instant(*at))))
            .collect()
    } else {
        // More than the clocks change by in any zone.
        let most = 3 * 60 * 60;
        let local = |at: i64| at + i64::from(zone.to_offset(instant(at)).seconds());
        let clocks = (local(after) - most..=local(end) + most)
            .step_by(unit)
            .filter(|at| written.fits(clock(*at)));
        clocks
            .map(|at| {
                let shown = (at..).step_by(unit).map(|at| zone.to_ambiguous_timestamp(clock(at)));
                let mut real =
                    shown.skip_while(|shown| matches!(shown.offset(), AmbiguousOffset::Gap { .. }));
                real.next().unwrap().earlier().unwrap().as_second()
            })
            .collect()
    };
    fires.into_iter().filter(|at| *at > after && *at <= end).collect()
}

const ZONES: [&str; 9] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "America/Sao_Paulo",
    "Africa/Cairo",
    "America/Nuuk",
    "Antarctica/Troll",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn fires_at_each_time_that_fits_and_no_other(
        written in written(),
        zone in prop::sample::select(&ZONES[..]),
        from in 2016..2030_i16,
        change in 0..3_usize,
        before in 1..2000_i64,
    ) {
        let clocks = TimeZoneDatabase::bundled().get(zone).unwrap();
        let start = jiff::civil::date(from, 1, 1).to_zoned(clocks.clone()).unwrap().timestamp();
        let change = clocks
            .following(start)
            .nth(change)
            .map_or(start, |change| change.timestamp())
            .as_second();
        // Seconds are checked for some hours, minutes for some days.
        let (after, end) = match written.second {
            Some(_) => (change - before, change + 4000),
            None => (change - 60 * before, change + 60 * 3000),
        };
        match Schedule::parse(&written.text(), zone) {
            Ok(schedule) => {
                let found: Vec<i64> =
                    schedule.upcoming(after).take_while(|at| *at <= end).collect();
                prop_assert_eq!(
                    found,
                    by_hand(&written, &clocks, after, end),
                    "{}",
                    written.text()
                );
            }
            Err(error) => {
                prop_assert_eq!(error.expected(), "a day that exists", "{}", written.text())
            }
        }
    }

    #[test]
    fn takes_any_text(
        text in prop_oneof![
            ".{0,60}",
            "[-0-9*,/#?LWa-jl-yA-Z@ ]{0,30}",
            "([-0-9*,/#L]{1,4} ){5,6}",
        ],
    ) {
        let zone = Zone::named(&text);
        prop_assert!(zone.is_ok() || zone.is_err_and(|error| error.span() == (0..text.len())));
        match Cron::parse(&text) {
            Ok(cron) => {
                let schedule = Schedule::new(cron, Zone::named("Europe/Berlin").unwrap());
                prop_assert!(schedule.next(0).unwrap() > 0);
                prop_assert!(schedule.describe().ends_with(", Europe/Berlin"));
            }
            Err(error) => prop_assert!(text.get(error.span()).is_some()),
        }
    }
}

#[test]
fn a_year_of_a_thousand_schedules() {
    let kinds = [
        ("30 2 * * *", 365),
        ("0 9 * * 1-5", 261),
        ("@weekly", 52),
        ("0 0 L * *", 12),
        ("15 */6 * * *", 1460),
    ];
    let (start, end) = (seconds("2027-01-01 12:00 +00:00"), seconds("2028-01-01 12:00 +00:00"));
    let made: Vec<(Schedule, i64)> = (0..1000)
        .map(|number| {
            let (expression, times) = kinds[number % kinds.len()];
            (Schedule::parse(expression, ZONES[number % ZONES.len()]).unwrap(), times)
        })
        .collect();
    let mut counts = vec![0; made.len()];
    let first =
        |number: usize| made[number].0.next(start).map(|at| (std::cmp::Reverse(at), number));
    let mut due: BinaryHeap<_> = (0..made.len()).filter_map(first).collect();
    let mut now = start;
    while let Some((std::cmp::Reverse(at), number)) = due.pop().filter(|(at, _)| at.0 <= end) {
        assert!(at >= now, "{at} after {now}");
        now = at;
        counts[number] += 1;
        due.extend(made[number].0.next(at).map(|at| (std::cmp::Reverse(at), number)));
    }
    for ((schedule, times), count) in made.iter().zip(counts) {
        // A year begins and ends at other instants in another zone; hours are skipped and repeated.
        assert!((times - 1..=times + 1).contains(&count), "{} {count}", schedule.describe());
    }
}
