use rustler::{Encoder, Env, Term};

use super::net::atoms;
use crate::ical;

/// `{:ok, dates, cut, steps}`, or `:error` if the rule cannot be read.
#[rustler::nif(schedule = "DirtyCpu")]
fn ical_dates<'a>(
    env: Env<'a>,
    rule: &str,
    start: i64,
    from: i64,
    to: i64,
    limit: usize,
    steps: i64,
) -> Term<'a> {
    match ical::dates(rule, start, from, to, limit, steps) {
        Some(found) => (atoms::ok(), found.dates, found.cut, found.steps).encode(env),
        None => atoms::error().encode(env),
    }
}
