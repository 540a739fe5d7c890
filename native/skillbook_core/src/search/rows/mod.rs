//! The index of documents that a database keeps: their words as terms, packed for rows of a table, and the documents that
//! have the terms of a query. Where the rows are kept is not known here.
//!
//! Documents that were indexed together are a *run*. Its terms are sorted and cut into *blocks*, one row each, so that a
//! term is found by the first term of its block. A run never changes: a document that has gone is listed beside it, and
//! merging several runs leaves out what has gone from them.

mod pack;
mod rank;

use rust_stemmers::{Algorithm, Stemmer};

pub use pack::{merge, pack, without, Block, Run, SearchDocument, StoredRun};
pub use rank::{rank, BlockRow, Found, Limit, Unit};

use super::words;

/// The mark of the terms that are words as they are written; no word has it.
const FORM: char = '\u{E000}';

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
/// let words = skillbook_core::search::rows::words("Cafés, planning");
/// let stems: Vec<_> = words.iter().map(|word| word.stem.as_str()).collect();
/// assert_eq!(stems, ["cafe", "plan"]);
/// assert_eq!(words[1].form, "planning");
/// ```
pub fn words(text: &str) -> Vec<Word> {
    let stems = Stems::new();
    let mut form = String::new();
    words::words(text)
        .filter_map(|place| {
            form_of(&text[place], &mut form)
                .then(|| Word { form: form.clone(), stem: stems.of(&form) })
        })
        .collect()
}

/// Whether a word is one that is looked for; its form is then in `out`.
pub(super) fn form_of(word: &str, out: &mut String) -> bool {
    if word.len() > words::LONGEST {
        return false;
    }
    words::fold(word, out);
    !out.is_empty()
}

pub(super) struct Stems(Stemmer);

impl Stems {
    pub(super) fn new() -> Stems {
        Stems(Stemmer::create(Algorithm::English))
    }

    /// The stem of a form; one with other letters than a to z is its own.
    pub(super) fn of(&self, form: &str) -> String {
        if form.bytes().all(|byte| byte.is_ascii_lowercase()) {
            self.0.stem(form).into_owned()
        } else {
            form.to_owned()
        }
    }
}

/// Packed numbers and texts, read from the front. What was not packed here ends early and is no crash.
#[derive(Debug, Clone, Copy, Default)]
struct Packed<'a>(&'a [u8]);

impl<'a> Packed<'a> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for (at, byte) in self.0.iter().enumerate().take(9) {
            number |= u64::from(byte & 127) << (7 * at);
            if byte & 128 == 0 {
                self.0 = &self.0[at + 1..];
                return Some(number);
            }
        }
        None
    }

    fn bytes(&mut self, count: u64) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(bytes)
    }

    /// Bytes behind their count.
    fn counted(&mut self) -> Option<&'a [u8]> {
        let count = self.number()?;
        self.bytes(count)
    }
}

/// Seven bits a byte, the lowest first.
fn push(mut number: u64, out: &mut Vec<u8>) {
    while number > 127 {
        out.push(number as u8 | 128);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Rising numbers, each by how far it is from the one before.
fn push_ids(ids: impl Iterator<Item = u64>, out: &mut Vec<u8>) {
    let mut before = 0;
    for id in ids {
        push(id.wrapping_sub(before), out);
        before = id;
    }
}

/// What [`push_ids`] packed.
fn ids(packed: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let (mut packed, mut before) = (Packed(packed), 0u64);
    std::iter::from_fn(move || {
        before = before.wrapping_add(packed.number()?);
        Some(before)
    })
}

/// A document that has a term, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Posting<'a> {
    id: u64,
    titles: u64,
    contents: u64,
    places: &'a [u8],
}

impl Posting<'_> {
    fn push(&self, before: u64, documents: &mut Vec<u8>, places: &mut Vec<u8>) {
        push(self.id.wrapping_sub(before), documents);
        push(self.contents << 1 | u64::from(self.titles > 0), documents);
        if self.titles > 0 {
            push(self.titles, documents);
        }
        if !self.places.is_empty() {
            push(self.places.len() as u64, places);
            places.extend(self.places);
        }
    }
}

/// The postings of one term, with their places where these were read too.
fn postings<'a>(documents: &'a [u8], places: &'a [u8]) -> impl Iterator<Item = Posting<'a>> {
    let (mut documents, mut places, mut id) = (Packed(documents), Packed(places), 0u64);
    std::iter::from_fn(move || {
        id = id.wrapping_add(documents.number()?);
        let counts = documents.number()?;
        let titles = if counts & 1 == 1 { documents.number()? } else { 0 };
        Some(Posting {
            id,
            titles,
            contents: counts >> 1,
            places: places.counted().unwrap_or_default(),
        })
    })
}

/// The terms of a block, in their order.
struct BlockReader<'a> {
    term: Vec<u8>,
    documents: Packed<'a>,
    places: Packed<'a>,
}

impl<'a> BlockReader<'a> {
    fn new(documents: &'a [u8], places: &'a [u8]) -> BlockReader<'a> {
        BlockReader { term: Vec::new(), documents: Packed(documents), places: Packed(places) }
    }

    /// Goes on to the next term, which is then in `term`: what is packed of its documents and places.
    fn next(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let shared = usize::try_from(self.documents.number()?).ok()?;
        self.term.truncate(shared);
        self.term.extend(self.documents.counted()?);
        Some((self.documents.counted()?, self.places.counted().unwrap_or_default()))
    }
}
