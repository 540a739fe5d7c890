//! `Skillbook.Support.Diff`: unified diffs. The clock is passed in: the core does not read it.

use std::time::Instant;

use skillbook_core::diff;

#[rustler::nif(schedule = "DirtyCpu")]
fn diff_unified(from: &str, to: &str) -> String {
    diff::unified(from, to, Instant::now())
}
