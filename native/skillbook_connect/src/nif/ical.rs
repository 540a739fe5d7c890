use std::time::Duration;

use rustler::{Encoder, Env, Term};

use super::net::atoms;
use crate::ical;

/// `{:ok, dates, cut}`, or `:error` if the rule cannot be read. The time is in milliseconds.
#[rustler::nif(schedule = "DirtyCpu")]
fn ical_dates<'a>(
    env: Env<'a>,
    rule: &str,
    start: i64,
    from: i64,
    to: i64,
    limit: usize,
    time: u64,
) -> Term<'a> {
    match ical::dates(rule, start, from, to, limit, Duration::from_millis(time)) {
        Some(found) => (atoms::ok(), found.dates, found.cut).encode(env),
        None => atoms::error().encode(env),
    }
}
