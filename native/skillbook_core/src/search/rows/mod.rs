//! An index of documents that is stored in a database: packs their terms into rows, and finds the
//! documents that match a query. This module packs and unpacks bytes; Elixir reads and writes the
//! rows.
//!
//! Documents that are indexed together form a *run*. Its terms are sorted and cut into *blocks* of
//! about 4 kB, one row each. A query reads only the blocks whose first terms enclose its terms. A
//! run never changes: removed documents are listed beside it as *gone*, and merging several runs
//! drops them.
//!
//! # Format of a block
//!
//! Numbers are varints: seven bits a byte, the lowest first, the high bit set on all but the last.
//! Ascending ids and places are stored as differences. A block has two columns, so that a query
//! without phrases does not read places.
//!
//! `documents` holds for each term:
//!
//! ```text
//! shared    number of bytes shared with the term before (0 for the first of a block)
//! rest      length, then the other bytes of the term
//! postings  length, then for each document:
//!             id       difference to the id before
//!             counts   occurrences in the text * 2, plus 1 if it occurs in titles
//!             titles   occurrences in titles, only if counts is odd
//! ```
//!
//! `places` holds for each term its length, then for each document the length and the differences
//! of the places where the term occurs. Only stems have places.
//!
//! # Format of the digests
//!
//! A run also has the digests of the texts that stand for its documents in searches by meaning
//! ([`chunks`]): for each document, in the order of the ids, their number as a varint, then 16
//! bytes for each. They are stored with the run, so a search compares exactly the documents whose
//! words it reads, and never vectors of a text that a document had before.
//!
//! The bytes come from a database that others may have written to. Reading them never panics and
//! never loops: malformed bytes end early.
//!
//! # Example
//!
//! ```
//! use skillbook_core::search::rows::{pack, rank, BlockRow, Clause, Limit, SearchDocument};
//!
//! let document = |id, content: &str| SearchDocument {
//!     id,
//!     content: content.to_owned(),
//!     ..SearchDocument::default()
//! };
//! let run = pack(&[document(7, "plans for May"), document(9, "notes")]);
//!
//! let term = || ("plan".to_owned(), "plan".to_owned());
//! let rows: Vec<_> = run
//!     .blocks
//!     .iter()
//!     .map(|block| BlockRow { range: 0, gone: &[], documents: &block.documents, places: &[] })
//!     .collect();
//! let clauses = [Clause::With(vec![vec![term()]])];
//! let found = rank(&clauses, &[], &rows, run.count, None, Limit::Newest(10));
//! assert_eq!((found.total, found.hits[0].0), (1, 7));
//! ```

mod chunks;
mod pack;
mod rank;
mod similar;

pub use chunks::chunks;
pub use pack::{digests, merge, pack, without, Block, Run, SearchDocument, StoredRun};
pub use rank::{rank, Alternative, BlockRow, Clause, Found, Limit, Meaning, Range};
pub use similar::{similar, RunDigests};

use super::function_words::{language, languages_of_form};
use super::stems::Stems;
use super::words;

/// The first character of terms that are words as written. It is for private use, so no word has
/// it.
const FORM: char = '\u{E000}';

/// A word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// As written, in lower case and without accents.
    pub form: String,
    /// Its stem, by Snowball's English stemmer.
    pub stem: String,
    /// Whether it says nothing about a subject, in the language of the text.
    pub function: bool,
}

/// The words of each part of a text. The whole text decides on its language.
///
/// ```
/// let words = skillbook_core::search::rows::words(&["The Cafés,", "planning"]);
/// let stems: Vec<_> = words.iter().flatten().map(|word| word.stem.as_str()).collect();
/// assert_eq!(stems, ["the", "cafe", "plan"]);
/// assert_eq!(words[1][0].form, "planning");
/// assert!(words[0][0].function && !words[0][1].function);
/// ```
pub fn words(parts: &[impl AsRef<str>]) -> Vec<Vec<Word>> {
    let stems = Stems::new();
    let mut form = String::new();
    let mut parts: Vec<Vec<Word>> = parts
        .iter()
        .map(|part| {
            let places = words::words(part.as_ref());
            let word = |place: std::ops::Range<usize>| {
                form_of(&part.as_ref()[place], &mut form).then(|| Word {
                    form: form.clone(),
                    stem: stems.of(&form),
                    function: false,
                })
            };
            places.filter_map(word).collect()
        })
        .collect();
    let terms: Vec<String> =
        parts.iter().flatten().map(|word| words::stemmed(&word.form)).collect();
    let language = language(terms.iter().map(String::as_str));
    for word in parts.iter_mut().flatten() {
        word.function = languages_of_form(&word.form) & language != 0;
    }
    parts
}

/// Folds a word into `out`. Returns false if it is empty or too long to be searched.
pub(super) fn form_of(word: &str, out: &mut String) -> bool {
    if word.len() > words::LONGEST {
        return false;
    }
    words::fold(word, out);
    !out.is_empty()
}

/// A reader of packed bytes. Malformed bytes end early.
#[derive(Debug, Clone, Copy, Default)]
struct Packed<'a>(&'a [u8]);

impl<'a> Packed<'a> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        // Nine bytes hold 63 bits. Longer numbers were not written here.
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

    /// Bytes with their length in front.
    fn counted(&mut self) -> Option<&'a [u8]> {
        let count = self.number()?;
        self.bytes(count)
    }
}

/// Appends a varint.
fn push(mut number: u64, out: &mut Vec<u8>) {
    while number > 127 {
        out.push(number as u8 | 128);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends ascending numbers as differences.
fn push_ids(ids: impl Iterator<Item = u64>, out: &mut Vec<u8>) {
    let mut before = 0;
    for id in ids {
        push(id.wrapping_sub(before), out);
        before = id;
    }
}

/// Reads the numbers of [`push_ids`].
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

/// The postings of a term, with places if those were read.
fn postings<'a>(documents: &'a [u8], places: &'a [u8]) -> impl Iterator<Item = Posting<'a>> {
    let (mut documents, mut places, mut id) = (Packed(documents), Packed(places), 0u64);
    std::iter::from_fn(move || {
        id = id.wrapping_add(documents.number()?);
        // The lowest bit says whether a count for titles follows: most words are not in titles, and
        // this saves them a byte.
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

/// Reads the terms of a block in order.
struct BlockReader<'a> {
    term: Vec<u8>,
    documents: Packed<'a>,
    places: Packed<'a>,
}

impl<'a> BlockReader<'a> {
    fn new(documents: &'a [u8], places: &'a [u8]) -> BlockReader<'a> {
        BlockReader { term: Vec::new(), documents: Packed(documents), places: Packed(places) }
    }

    /// Advances to the next term, which is then in `term`. Returns its packed postings and places.
    fn next(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let shared = usize::try_from(self.documents.number()?).ok()?;
        // A malformed length beyond the term before truncates nothing, and gives a wrong but
        // harmless term.
        self.term.truncate(shared);
        self.term.extend(self.documents.counted()?);
        Some((self.documents.counted()?, self.places.counted().unwrap_or_default()))
    }
}
