//! Time limits that come from Elixir.

use std::time::Duration;

/// A number of milliseconds, up to the longest time of a timer of the virtual machine.
pub fn limit(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds.min(u64::from(u32::MAX)))
}
