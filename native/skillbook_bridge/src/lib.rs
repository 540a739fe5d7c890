//! The part of the bridge to Elixir that all native libraries share.
//!
//! A library is a crate of its own for each ability, so that a book loads only what it uses. Each
//! begins with [`library!`], and its functions decode terms, call plain Rust and encode the result.
//!
//! - [`encode`]: terms, made without copies
//! - [`twin`](mod@twin): calls on a normal or on a dirty scheduler
//! - [`time`]: time limits
//! - [`runtime`], a feature: a tokio runtime, and replies by message
//!
//! Each library has its own copy of this crate, with a runtime of its own. A resource belongs to
//! the library that made it, so libraries exchange only terms.
//!
//! # Where work runs
//!
//! A NIF blocks the scheduler that calls it, so every function has one of four places:
//!
//! - A normal scheduler, for calls of a few microseconds. A call that takes longer for some inputs
//!   is exported twice, see [`twin`](mod@twin).
//! - A dirty CPU scheduler, for work that grows with its input.
//! - A dirty IO scheduler, for files and SQLite. Several of these wait without occupying a core.
//! - A thread of its own, which replies by message: the tokio runtime for sockets ([`runtime`]),
//!   a thread per book for watching folders.
//!
//! # Adding a function
//!
//! 1. Do the work in a plain crate or module, with its tests.
//! 2. Add a `#[rustler::nif]` to the file of its topic, which decodes, calls and encodes. It
//!    registers itself. Use `schedule = "DirtyCpu"` if the work grows with its input, `"DirtyIo"`
//!    for files and databases, and `twin!` if it is usually quick, with rows in
//!    `packages/cli/test/house/natives_test.exs`.
//! 3. Add it to the list of the library's module in Elixir, such as `Skillbook.Native`, and the
//!    public function to the Elixir module of the topic. Errors are structs, or tuples from which
//!    that module makes its exception, and never debug texts.
//!
//! # Panics and locks
//!
//! Rustler turns a panic into an Erlang error, which is why the release profile unwinds. A mutex
//! that a panic has poisoned is used anyway: each module says why its state is still consistent.
#![deny(missing_docs)]

pub mod encode;
#[cfg(feature = "runtime")]
pub mod runtime;
pub mod time;
pub mod twin;

/// Makes the crate a library of the Elixir module with this name, and exports `loaded?/0`, whose
/// stub in Elixir answers false.
#[macro_export]
macro_rules! library {
    ($module:literal) => {
        #[rustler::nif(name = "loaded?")]
        fn loaded() -> bool {
            true
        }

        rustler::init!($module);
    };
}
