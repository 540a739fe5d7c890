//! What is searched of the documents of vaults: their words as terms of an index, and the part of a text that shows why
//! it was found. Where the index is kept is not known here.

mod postings;
mod rank;
mod snippet;

use rust_stemmers::{Algorithm, Stemmer};

pub use postings::{postings, Document, Postings};
pub use rank::{rank, Found, Unit};
pub use snippet::snippet;

use crate::search::words;

/// A word in the two ways in which it stands in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// As it is written, in small letters and without accents.
    pub form: String,
    /// What its forms have in common, by the English stemmer of Snowball.
    pub stem: String,
}

/// The words of a text.
///
/// ```
/// let words = skillbook_core::vault::words("Cafés, planning");
/// let stems: Vec<_> = words.iter().map(|word| word.stem.as_str()).collect();
/// assert_eq!(stems, ["cafe", "plan"]);
/// assert_eq!(words[1].form, "planning");
/// ```
pub fn words(text: &str) -> Vec<Word> {
    let stems = Stems::new();
    let mut form = String::new();
    words::words(text)
        .filter_map(|place| {
            form_of(&text[place], &mut form).then(|| Word { form: form.clone(), stem: stems.of(&form) })
        })
        .collect()
}

/// Whether a word is one that is looked for; its form is then in `out`.
fn form_of(word: &str, out: &mut String) -> bool {
    if word.len() > words::LONGEST {
        return false;
    }
    words::fold(word, out);
    !out.is_empty()
}

struct Stems(Stemmer);

impl Stems {
    fn new() -> Stems {
        Stems(Stemmer::create(Algorithm::English))
    }

    /// The stem of a form; one with other letters than a to z is its own.
    fn of(&self, form: &str) -> String {
        if form.bytes().all(|byte| byte.is_ascii_lowercase()) {
            self.0.stem(form).into_owned()
        } else {
            form.to_owned()
        }
    }
}
