//! `Skillbook.Support.Diff`: unified diffs.

use skillbook_core::diff;

#[rustler::nif(schedule = "DirtyCpu")]
fn diff_unified(from: &str, to: &str) -> String {
    diff::unified(from, to)
}
