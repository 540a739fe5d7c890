//! What runs on a normal scheduler, and what on a dirty one.
//!
//! A call whose time depends on its input, or on what was computed before, is exported twice: `NAME_now` runs on a normal
//! scheduler and answers `:busy` if it might take long, then `Skillbook.Native` calls `NAME_dirty`. Always the second would
//! be simpler, but changing over to a dirty scheduler takes milliseconds where all cores are busy.

use std::time::Instant;

use rustler::schedule::consume_timeslice;
use rustler::{Encoder, Env, Term};

mod atoms {
    rustler::atoms! { busy }
}

/// The most bytes of text that are read, and the most items that are encoded, well within a millisecond.
pub const BYTES: usize = 64 * 1024;
pub const ITEMS: usize = 64;

/// The most bytes of text that take so few microseconds that none of them counts: asking for the time twice would be a
/// tenth of them.
pub const SHORT: usize = 1024;

/// The same for YAML: hostile one takes up to a microsecond a byte, far more than other text does.
pub const YAML_BYTES: usize = 4 * 1024;

/// The same for JSON, of which every second byte may become a term.
pub const JSON_BYTES: usize = 8 * 1024;

/// The same for a name that is compared with [`ITEMS`] others.
pub const NAME_BYTES: usize = 64;

/// The same for patterns that are compared with as many others.
pub const PATTERN_BYTES: usize = 1024;

/// Exports one piece of work as both functions.
///
/// `if` says when it is quick enough for a normal scheduler; it decides on the arguments alone. `text` takes the length
/// of a text instead, which may have [`BYTES`], and `kept` an `Option` of a result that exists already or that an
/// attempt within limits gave. What follows `=>` does the work. The names are written out, so that a search for either
/// finds the place.
///
/// ```ignore
/// twin! {
///     /// The words of a line.
///     "DirtyCpu" fn tokenize_now | tokenize_dirty(env, line: Binary<'a>)
///     text line.len()
///     => split(env, line)
/// }
/// ```
macro_rules! twin {
    (
        $(#[$doc:meta])*
        $schedule:literal fn $now:ident | $dirty:ident($env:ident $($arguments:tt)*)
        if $quick:expr
        => $work:expr
    ) => {
        twin! {
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
        twin! {
            @both $(#[$doc])* $schedule fn $now | $dirty($env $($arguments)*)
            match $bytes {
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
        kept $kept:expr
        => $work:expr
    ) => {
        twin! {
            @both $(#[$doc])* $schedule fn $now | $dirty($env $($arguments)*)
            Ok($kept.unwrap_or_else(|| $crate::twin::busy($env)))
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
        fn $now<'a>(env: rustler::Env<'a> $($arguments)*) -> rustler::NifResult<rustler::Term<'a>> {
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

pub(crate) use twin;

/// Does quick work, and takes the time that it took from the calling process's turn.
pub fn timed<T>(env: Env<'_>, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let done = work();
    // Percent of the millisecond that a process runs before it is another's turn; else a call counts as next to nothing.
    let used = (start.elapsed().as_micros() + 5) / 10;
    if used > 0 {
        consume_timeslice(env, used.min(100) as i32);
    }
    done
}

/// Tells the caller to call the dirty namesake.
pub fn busy(env: Env<'_>) -> Term<'_> {
    atoms::busy().encode(env)
}
