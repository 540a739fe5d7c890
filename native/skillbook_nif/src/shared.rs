//! Memory that Rust and the virtual machine share: texts behind binaries, and terms that are built
//! once and copied.

use std::ops::Range;
use std::sync::Arc;

use rustler::env::OwnedEnv;
use rustler::sys::ErlNifTerm;
use rustler::{Env, Resource, ResourceArc, Term};

/// A text that binaries refer to. It lives as long as the last of them.
pub struct TextResource(Arc<str>);

#[rustler::resource_impl]
impl Resource for TextResource {}

impl TextResource {
    pub fn new(text: Arc<str>) -> ResourceArc<TextResource> {
        ResourceArc::new(TextResource(text))
    }
}

/// A part of the text as a binary, without a copy.
pub fn binary<'a>(env: Env<'a>, text: &ResourceArc<TextResource>, range: Range<usize>) -> Term<'a> {
    text.make_binary(env, |text| &text.0.as_bytes()[range]).to_term(env)
}

/// A term in an environment of its own, which never changes after it is built.
pub struct FrozenTerm {
    env: OwnedEnv,
    term: ErlNifTerm,
}

// SAFETY: the term's memory belongs to `env` and moves with it. OwnedEnv itself is Send.
unsafe impl Send for FrozenTerm {}
// SAFETY: after `new`, the environment is only read, by enif_make_copy, which accepts a source from
// any environment and does not change it. Several threads may read an unchanging term at once.
unsafe impl Sync for FrozenTerm {}

impl FrozenTerm {
    pub fn new(build: impl FnOnce(Env<'_>) -> Term<'_>) -> FrozenTerm {
        let env = OwnedEnv::new();
        // The raw term outlives the closure; it is valid as long as `env` is not cleared.
        let term = env.run(|env| build(env).as_c_arg());
        FrozenTerm { env, term }
    }

    /// Copies the term for the caller. Binaries over 64 bytes are shared instead of copied.
    pub fn copy<'a>(&self, env: Env<'a>) -> Term<'a> {
        self.env.run(|own| {
            // SAFETY: `new` made the term in this environment, which is neither cleared nor freed
            // before `self` is.
            let term = unsafe { Term::new(own, self.term) };
            term.in_env(env)
        })
    }
}
