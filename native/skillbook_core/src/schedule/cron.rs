//! A parsed cron expression: its days of a month, its times of day, and the next time without
//! regard to zones.

use jiff_core::civil::Date;
use jiff_core::tz::Offset;
use jiff_core::Timestamp;

/// A cron expression as sets of values. Different spellings of the same times are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cron {
    pub(super) seconds: u64,
    pub(super) minutes: u64,
    pub(super) hours: u32,
    /// Bit 0 is the first day.
    pub(super) days: u32,
    pub(super) last_day: bool,
    /// Bit 1 is January.
    pub(super) months: u16,
    /// Bit 0 is Sunday.
    pub(super) weekdays: u8,
    /// The weekdays that count as the first to fifth of a month (`1#2`).
    pub(super) nth_weekdays: [u8; 5],
    /// The weekdays that count as the last of a month (`5L`).
    pub(super) last_weekdays: u8,
    /// Whether a day must match both day fields, not just one.
    pub(super) both_days: bool,
    /// Whether it counts elapsed time rather than naming times of day.
    pub(super) real_time: bool,
}

pub(super) const EVERY_DAY: u32 = u32::MAX >> 1;
pub(super) const EVERY_WEEKDAY: u8 = 0x7f;
/// The days 1, 8, 15, 22 and 29.
const WEEKLY: u32 = 1 | 1 << 7 | 1 << 14 | 1 << 21 | 1 << 28;
const DAY: i64 = 24 * 60 * 60;
/// The Gregorian calendar repeats after this many years, with weekdays.
const CYCLE: i16 = 400;

impl Cron {
    /// Whether it allows any day at all.
    pub(super) fn fires(&self) -> bool {
        // 30 February never comes, and 29 February on a Monday is rare. One cycle of the calendar
        // has every combination of date and weekday.
        (2000..2000 + CYCLE).any(|year| {
            let mut months = (1..=12).filter_map(|month| Date::new(year, month, 1).ok());
            months.any(|first| self.days_of(first) != 0)
        })
    }

    /// The days that it allows in the month of a date.
    pub(super) fn days_of(&self, date: Date) -> u32 {
        if self.months >> date.month() & 1 == 0 {
            return 0;
        }
        let length = date.days_in_month() as u32;
        let month = EVERY_DAY >> (31 - length);
        let first = date.first_of_month().weekday().to_sunday_zero_offset() as u32;

        let mut by_day = self.days;
        if self.last_day {
            by_day |= 1 << (length - 1);
        }
        let mut by_weekday = 0;
        for weekday in 0..7 {
            let has = |set: u8| set >> weekday & 1 == 1;
            let all = WEEKLY << ((weekday + 7 - first) % 7) & month;
            if has(self.weekdays) {
                by_weekday |= all;
            }
            if has(self.last_weekdays) {
                by_weekday |= 1 << all.ilog2();
            }
            for (nth, _) in self.nth_weekdays.iter().enumerate().filter(|(_, set)| has(**set)) {
                // The fifth may be after the last bit.
                by_weekday |=
                    1u32.checked_shl(all.trailing_zeros() + 7 * nth as u32).unwrap_or(0) & month;
            }
        }
        month & if self.both_days { by_day & by_weekday } else { by_day | by_weekday }
    }

    /// The first allowed time at or after another, in seconds since 1970 without a zone.
    pub(super) fn at_or_after(&self, local: i64) -> Option<i64> {
        let from = Offset::UTC.to_datetime(Timestamp::from_second(local).ok()?);
        let mut date = from.date();
        let mut time = local.rem_euclid(DAY) as u32;
        loop {
            let days = self.days_of(date) >> (date.day() - 1) << (date.day() - 1);
            let today = days >> (date.day() - 1) & 1 == 1;
            if let Some(second) = today.then(|| self.time(time)).flatten() {
                return Some(midnight(date)? + i64::from(second));
            }
            // Clears today's bit: no time of today is left.
            let later = if today { days & (days - 1) } else { days };
            date = match later {
                0 => date.last_of_month().tomorrow().ok()?,
                later => {
                    Date::new(date.year(), date.month(), later.trailing_zeros() as i8 + 1).ok()?
                }
            };
            time = 0;
        }
    }

    /// The first allowed time of day at or after another, in seconds.
    fn time(&self, from: u32) -> Option<u32> {
        let (hour, minute, second) = (from / 3600, from / 60 % 60, from % 60);
        let hours = u64::from(self.hours);
        let of = |hour: u32, minute: u32, second: u32| hour * 3600 + minute * 60 + second;
        if hours >> hour & 1 == 1 {
            if self.minutes >> minute & 1 == 1 {
                if let Some(second) = bit(self.seconds, second) {
                    return Some(of(hour, minute, second));
                }
            }
            if let Some(minute) = bit(self.minutes, minute + 1) {
                return Some(of(hour, minute, self.seconds.trailing_zeros()));
            }
        }
        let hour = bit(hours, hour + 1)?;
        Some(of(hour, self.minutes.trailing_zeros(), self.seconds.trailing_zeros()))
    }
}

fn midnight(date: Date) -> Option<i64> {
    Some(date.at(0, 0, 0, 0).to_timestamp(Offset::UTC).ok()?.as_second())
}

/// The lowest bit that is set, at or after an index.
fn bit(set: u64, from: u32) -> Option<u32> {
    let rest = set.checked_shr(from)?;
    (rest != 0).then(|| from + rest.trailing_zeros())
}
