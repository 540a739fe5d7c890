//! Chooses between a normal and a dirty scheduler for calls whose duration depends on their input.
//!
//! Such a call is exported twice. `NAME_now` runs on a normal scheduler and returns `:busy` if the
//! call may take long; the module of stubs (`Skillbook.Support.NativeLibrary`) then calls
//! `NAME_dirty`. Using only the second would be simpler, but the switch to a dirty scheduler takes
//! milliseconds when all cores are busy, and most calls take microseconds.
//!
//! A normal scheduler expects a NIF to return within a millisecond. The limits below are chosen so
//! that the worst input of that size stays well within it.

use std::time::Instant;

use rustler::schedule::consume_timeslice;
use rustler::{Encoder, Env, Term};

mod atoms {
    rustler::atoms! { busy }
}

/// The maximum length of a text that is parsed. Hostile commands, JSON and replies take up to 0.06
/// microseconds per byte.
pub const BYTES: usize = 8 * 1024;

/// The maximum length of a text that is only copied.
pub const COPIED_BYTES: usize = 64 * 1024;

/// The maximum number of items to encode.
pub const ITEMS: usize = 64;

/// Texts up to this length take so few microseconds that their time is not measured: reading the
/// clock twice would add a tenth.
pub const SHORT: usize = 1024;

/// The limit for text in which every byte may be a hidden character.
pub const HIDDEN_BYTES: usize = 16 * 1024;

/// The limit for a name that is compared with [`ITEMS`] others.
pub const NAME_BYTES: usize = 64;

/// The limit for patterns that are compared with as many others.
pub const PATTERN_BYTES: usize = 1024;

/// Exports one expression as both functions.
///
/// - `if` takes a condition: whether the call is quick. It depends on the arguments alone.
/// - `text` takes the length of a text, which is quick up to [`BYTES`].
/// - `ready` takes an `Option`: a cached result, or one that was computed within limits.
///
/// The expression after `=>` does the work. The names are written out so that a search for either
/// of them leads here.
///
/// ```ignore
/// twin! {
///     /// The words of a line.
///     "DirtyCpu" fn tokenize_now | tokenize_dirty(env, line: Binary<'a>)
///     text line.len()
///     => split(env, line)
/// }
/// ```
#[macro_export]
macro_rules! twin {
    (
        $(#[$doc:meta])*
        $schedule:literal fn $now:ident | $dirty:ident($env:ident $($arguments:tt)*)
        if $quick:expr
        => $work:expr
    ) => {
        $crate::twin! {
            @both $(#[$doc])* $schedule fn $now | $dirty($env $($arguments)*)
            if $quick { $crate::twin::timed($env, || $work) } else { Ok($crate::twin::busy($env)) }
            => $work
        }
    };
    (
        $(#[$doc:meta])*
        $schedule:literal fn $now:ident | $dirty:ident($env:ident $($arguments:tt)*)
        text $bytes:expr
        => $work:expr
    ) => {
        $crate::twin! {
            @both $(#[$doc])* $schedule fn $now | $dirty($env $($arguments)*)
            match $bytes {
                // Too short to be worth measuring.
                0..=$crate::twin::SHORT => $work,
                0..=$crate::twin::BYTES => $crate::twin::timed($env, || $work),
                _ => Ok($crate::twin::busy($env)),
            }
            => $work
        }
    };
    (
        $(#[$doc:meta])*
        $schedule:literal fn $now:ident | $dirty:ident($env:ident $($arguments:tt)*)
        ready $ready:expr
        => $work:expr
    ) => {
        $crate::twin! {
            @both $(#[$doc])* $schedule fn $now | $dirty($env $($arguments)*)
            Ok($ready.unwrap_or_else(|| $crate::twin::busy($env)))
            => $work
        }
    };
    (
        @both $(#[$doc:meta])* $schedule:literal fn $now:ident | $dirty:ident(
            $env:ident $($arguments:tt)*
        )
        $quick:expr
        => $work:expr
    ) => {
        $(#[$doc])*
        #[rustler::nif]
        fn $now<'a>(
            env: rustler::Env<'a> $($arguments)*
        ) -> rustler::NifResult<rustler::Term<'a>> {
            let $env = env;
            $quick
        }

        #[rustler::nif(schedule = $schedule)]
        fn $dirty<'a>(
            env: rustler::Env<'a> $($arguments)*
        ) -> rustler::NifResult<rustler::Term<'a>> {
            let $env = env;
            $work
        }
    };
}

/// Runs quick work on a normal scheduler, and charges its time to the calling process.
#[inline]
pub fn timed<T>(env: Env<'_>, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let done = work();
    // In percent of a time slice of about a millisecond. Without this, a process that makes many
    // such calls would never be preempted.
    let used = (start.elapsed().as_micros() + 5) / 10;
    if used > 0 {
        consume_timeslice(env, used.min(100) as i32);
    }
    done
}

/// The reply that makes the module of stubs call the dirty variant.
#[inline]
pub fn busy(env: Env<'_>) -> Term<'_> {
    atoms::busy().encode(env)
}
