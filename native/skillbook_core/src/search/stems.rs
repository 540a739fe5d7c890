//! The stem of a word: what its English forms have in common.

use rust_stemmers::{Algorithm, Stemmer};

/// Snowball's English stemmer.
pub struct Stems(Stemmer);

impl Stems {
    pub fn new() -> Stems {
        Stems(Stemmer::create(Algorithm::English))
    }

    /// The stem of a form. Forms with letters beyond a to z are their own stems.
    pub fn of(&self, form: &str) -> String {
        // The stemmer is made for English words; digits and other letters confuse it.
        if form.bytes().all(|byte| byte.is_ascii_lowercase()) {
            self.0.stem(form).into_owned()
        } else {
            form.to_owned()
        }
    }
}
