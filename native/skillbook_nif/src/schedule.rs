//! `Skillbook.Schedule`: cron expressions and their next runs. `Skillbook.TimeZones`: the offsets
//! of zones.

use rustler::{Encoder, Env, ResourceArc, Term};
use skillbook_core::schedule::{Cron, Error, Schedule, Zone};

use crate::encode;

mod atoms {
    rustler::atoms! { ok, error, expression, timezone }
}

/// A parsed schedule.
pub struct ScheduleResource(Schedule);

#[rustler::resource_impl]
impl rustler::Resource for ScheduleResource {}

/// `{:ok, schedule, timezone}`, with the zone's name in the database's spelling, or `{:error,
/// {part, expected, got, hint}}`.
#[rustler::nif(schedule = "DirtyCpu")]
fn schedule_parse<'a>(env: Env<'a>, expression: &str, timezone: &str) -> Term<'a> {
    let wrong = |part: rustler::Atom, error: Error| {
        (atoms::error(), (part, error.expected(), error.got(), error.hint())).encode(env)
    };
    let cron = match Cron::parse(expression) {
        Ok(cron) => cron,
        Err(error) => return wrong(atoms::expression(), error),
    };
    match Zone::named(timezone) {
        Ok(zone) => {
            let schedule = Schedule::new(cron, zone);
            let name = schedule.zone().name().to_owned();
            (atoms::ok(), ResourceArc::new(ScheduleResource(schedule)), name).encode(env)
        }
        Err(error) => wrong(atoms::timezone(), error),
    }
}

/// Up to `count` runs after a time, in Unix seconds.
#[rustler::nif(schedule = "DirtyCpu")]
fn schedule_upcoming(
    schedule: ResourceArc<ScheduleResource>,
    after: i64,
    count: usize,
) -> Vec<i64> {
    schedule.0.upcoming(after).take(count).collect()
}

/// The next run after a time, or `nil`.
#[rustler::nif]
fn schedule_next<'a>(
    env: Env<'a>,
    schedule: ResourceArc<ScheduleResource>,
    after: i64,
) -> Term<'a> {
    encode::option(env, &schedule.0.next(after))
}

/// A time in the schedule's zone, or `nil` if it is out of range.
#[rustler::nif]
fn schedule_local<'a>(env: Env<'a>, schedule: ResourceArc<ScheduleResource>, at: i64) -> Term<'a> {
    encode::option(env, &schedule.0.local(at))
}

/// The schedule in words, on one line.
#[rustler::nif]
fn schedule_describe(schedule: ResourceArc<ScheduleResource>) -> String {
    schedule.0.describe()
}

/// `{:ok, {name, offset, abbreviation, start, end}}` for the stretch of constant offset that
/// contains a time, with the zone's name in the database's spelling; `start` and `end` may be
/// `nil`. `{:ok, nil}` if the time is out of range, and `{:error, {expected, got, hint}}` for an
/// unknown zone. Its error looks through all names of zones.
#[rustler::nif(schedule = "DirtyCpu")]
fn zone_stretch<'a>(env: Env<'a>, name: &str, at: i64) -> Term<'a> {
    let zone = match Zone::named(name) {
        Ok(zone) => zone,
        Err(error) => {
            let reason = (error.expected(), error.got(), error.hint());
            return (atoms::error(), reason).encode(env);
        }
    };
    let Some((stretch, abbreviation)) = zone.stretch(at).zip(zone.abbreviation(at)) else {
        return (atoms::ok(), rustler::types::atom::nil()).encode(env);
    };
    let start = encode::option(env, &stretch.start);
    let end = encode::option(env, &stretch.end);
    (atoms::ok(), (zone.name(), stretch.offset, abbreviation, start, end)).encode(env)
}
