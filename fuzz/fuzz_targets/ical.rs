#![no_main]
//! Rules of repetition of any text: no panic, and dates that ascend within the range.

use libfuzzer_sys::fuzz_target;
use skillbook_connect::ical::{dates, MAX_DATES};

const STEPS: i64 = 300_000;

fuzz_target!(|input: (i64, i64, i64, u16, &str)| {
    let (start, from, to, limit, rule) = input;
    let limit = usize::from(limit);
    // Any seconds, and those of the years that calendars have.
    for wrap in [i64::MAX, 100 * 365 * 86_400] {
        let [start, from, to] = [start, from, to].map(|seconds| seconds % wrap);
        let Some(found) = dates(rule, start, from, to, limit, STEPS) else { continue };
        assert!(found.cut || found.steps <= STEPS + 2_000_001);
        assert!(found.dates.len() <= limit.min(MAX_DATES));
        assert!(found.dates.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(found.dates.iter().all(|at| (from..to).contains(at)));
    }
});
