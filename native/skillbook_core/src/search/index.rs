//! The inverted index of a catalog: all terms, and the documents that contain them.
//!
//! All terms are stored in one string, in order, so a prefix is a range and a lookup a binary
//! search. A posting takes eight bytes: the document, how often its body has the term and in which
//! parts, and the weighted occurrences in the other fields.
//!
//! An index is built from the one before: documents that are the same object are not read again.
//! That makes the index after a small change about as cheap as copying it.

use std::ops::Range;
use std::sync::{Arc, Weak};

use rustc_hash::FxHashMap;

use super::parts::{part, Parts};
use super::words::{fold, parts, stem, whole, words, LONGEST};
use crate::catalog::entry::Entry;
use crate::page::document::Document;
use crate::page::sections;

/// The average number of bytes of text per posting, to reserve memory.
const BYTES_FOR_A_TERM: usize = 12;

/// The weight of one occurrence in a field, in halves. [`scope`](super::scope) has the weight in
/// the body.
mod weight {
    pub const NAME: u8 = 12;
    pub const WHOLE_NAME: u8 = 2;
    pub const WHOLE_ALIAS: u8 = 1;
    pub const TITLE: u8 = 8;
    pub const TRIGGER: u8 = 8;
    pub const TAG: u8 = 6;
    pub const DESCRIPTION: u8 = 6;
    pub const HEADING: u8 = 2;
}

/// How often a document has a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Weighted occurrences in all fields but the body, in halves.
    pub head: u8,
    /// Occurrences in the body.
    pub body: u8,
    /// The parts of the body that have the term.
    pub parts: Parts,
}

impl Count {
    fn head(head: u8) -> Count {
        Count { head, ..Count::default() }
    }

    fn add(&mut self, other: Count) {
        self.head = self.head.saturating_add(other.head);
        self.body = self.body.saturating_add(other.body);
        self.parts |= other.parts;
    }
}

/// The inverted index of a catalog.
#[derive(Debug, Default)]
pub struct Index {
    /// The documents, to recognise them in the next generation. Weak, so that an index does not
    /// keep the texts of removed documents.
    documents: Vec<Weak<Document>>,
    /// The number of words of each body.
    lengths: Vec<u32>,
    text: String,
    /// The end of each term in `text`.
    ends: Vec<usize>,
    /// The end of each term's postings.
    posting_ends: Vec<usize>,
    places: Vec<u32>,
    counts: Vec<Count>,
    /// The number of terms that are whole names. They come first.
    whole_names: u32,
    /// A bit for each kind of character of each term.
    letters: Vec<u64>,
}

/// The postings of a term: documents in order, and counts.
pub type Postings<'a> = (&'a [u32], &'a [Count]);

impl Index {
    /// Builds the index of these entries. Postings of unchanged documents are copied from the
    /// earlier index.
    pub fn new(entries: &[Arc<Entry>], earlier: &Index) -> Index {
        let mut terms = TermCounts::default();
        let mut lengths = vec![0; entries.len()];
        // Terms of the earlier index keep their numbers, so its postings can be copied.
        for term in 0..earlier.term_count() {
            terms.number(earlier.term(term));
        }
        let mut moved = vec![None; earlier.documents.len()];
        let mut unread = Vec::new();
        // An address identifies a document only because the weak references keep it from being
        // reused.
        // 1. Find the documents that the earlier index knows. Each is used at most once.
        let known: FxHashMap<*const Document, usize> = earlier
            .documents
            .iter()
            .enumerate()
            .map(|(old, document)| (document.as_ptr(), old))
            .collect();
        for (place, entry) in entries.iter().enumerate() {
            match known
                .get(&Arc::as_ptr(&entry.document))
                .copied()
                .filter(|old| moved[*old].is_none())
            {
                Some(old) => {
                    moved[old] = Some(place as u32);
                    lengths[place] = earlier.lengths[old];
                }
                None => unread.push(place),
            }
        }
        // A vector that grows step by step leaves as much garbage in the allocator. Reserved memory
        // that is never touched costs nothing.
        // 2. Read the new documents into a list of postings.
        let bytes: usize = unread.iter().map(|place| entries[*place].document.text.len()).sum();
        let mut fresh = Vec::with_capacity(bytes / BYTES_FOR_A_TERM);
        for place in unread {
            lengths[place] = terms.read(place as u32, &entries[place], &mut fresh);
        }
        // 3. The postings that stay, with the new numbers of their documents, then the new ones.
        // This is iterated twice, to count and to fill, instead of being stored.
        let copied = || {
            (0..earlier.term_count()).flat_map(|term| {
                let (places, counts) = earlier.postings(term);
                let copies = places
                    .iter()
                    .zip(counts)
                    .filter_map(|(old, count)| Some((moved[*old as usize]?, *count)));
                copies.map(move |(place, count)| (term, place, count))
            })
        };
        let all = || copied().chain(fresh.iter().copied());

        // 4. Count the postings of each term. Terms without any belong to removed documents and are
        // dropped.
        let mut sizes = vec![0usize; terms.list.len()];
        all().for_each(|(term, ..)| sizes[term as usize] += 1);
        let mut order: Vec<u32> =
            (0..sizes.len() as u32).filter(|term| sizes[*term as usize] > 0).collect();
        order.sort_unstable_by_key(|term| &terms.list[*term as usize]);

        // 5. Lay out terms and postings in order, and fill them (a counting sort by term).
        let mut index = Index { lengths, ..Index::default() };
        index.documents = entries.iter().map(|entry| Arc::downgrade(&entry.document)).collect();
        let total = sizes.iter().sum();
        index.places = vec![0; total];
        index.counts = vec![Count::default(); total];
        // From here on `sizes` holds the position of the next posting of each term.
        let mut at = 0;
        for term in &order {
            let text = &terms.list[*term as usize];
            index.whole_names += u32::from(text.starts_with(' '));
            index.letters.push(letters(text));
            index.text.push_str(text);
            index.ends.push(index.text.len());
            let size = std::mem::replace(&mut sizes[*term as usize], at);
            at += size;
            index.posting_ends.push(at);
        }
        for (term, place, count) in all() {
            let next = &mut sizes[term as usize];
            index.places[*next] = place;
            index.counts[*next] = count;
            *next += 1;
        }
        index.sort_postings();
        index
    }

    /// Postings of new documents were appended after those that were copied.
    fn sort_postings(&mut self) {
        let mut pairs: Vec<(u32, Count)> = Vec::new();
        for term in 0..self.term_count() {
            let range = self.range(term);
            let places = &self.places[range.clone()];
            if places.is_sorted() {
                continue;
            }
            pairs.clear();
            pairs.extend(places.iter().copied().zip(self.counts[range.clone()].iter().copied()));
            pairs.sort_unstable_by_key(|(place, _)| *place);
            for (at, (place, count)) in range.zip(&pairs) {
                self.places[at] = *place;
                self.counts[at] = *count;
            }
        }
    }

    /// The number of terms. They are numbered in order.
    pub fn term_count(&self) -> u32 {
        self.ends.len() as u32
    }

    /// The number of words of each document's body.
    pub fn lengths(&self) -> &[u32] {
        &self.lengths
    }

    /// The term with this number.
    pub fn term(&self, term: u32) -> &str {
        let start = before(&self.ends, term);
        &self.text[start..self.ends[term as usize]]
    }

    fn range(&self, term: u32) -> Range<usize> {
        before(&self.posting_ends, term)..self.posting_ends[term as usize]
    }

    /// The postings of a term.
    pub fn postings(&self, term: u32) -> Postings<'_> {
        let range = self.range(term);
        (&self.places[range.clone()], &self.counts[range])
    }

    /// How often a document has a term.
    pub fn count(&self, term: u32, place: u32) -> Option<Count> {
        let (places, counts) = self.postings(term);
        Some(counts[places.binary_search(&place).ok()?])
    }

    /// The number of a term.
    pub fn find(&self, term: &str) -> Option<u32> {
        let at = self.lower_bound(0, |other| other < term);
        (at < self.term_count() && self.term(at) == term).then_some(at)
    }

    /// The numbers of the words with a prefix.
    pub fn prefixed(&self, prefix: &str) -> Range<u32> {
        let start = self.lower_bound(self.whole_names, |other| other < prefix);
        let end = self.lower_bound(start, |other| other.starts_with(prefix));
        start..end
    }

    /// The numbers of words that may be within `limit` edits of a word. A cheap filter: it passes
    /// all of those, and few others.
    pub fn maybe_within(&self, word: &str, limit: usize) -> impl Iterator<Item = u32> + '_ {
        let own = letters(word);
        let few =
            move |bits: u64| (0..limit).fold(bits, |bits, _| bits & bits.wrapping_sub(1)) == 0;
        let range = self.whole_names as usize..self.letters.len();
        let far = move |other: &u64| !few(own & !other) || !few(other & !own);
        let close = self.letters[range].iter().enumerate().filter(move |(_, other)| !far(other));
        close.map(|(at, _)| at as u32 + self.whole_names)
    }

    fn lower_bound(&self, from: u32, before: impl Fn(&str) -> bool) -> u32 {
        let (mut low, mut high) = (from, self.term_count());
        while low < high {
            let middle = low + (high - low) / 2;
            match before(self.term(middle)) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }
}

fn before(ends: &[usize], at: u32) -> usize {
    at.checked_sub(1).map_or(0, |at| ends[at as usize])
}

/// A bit for each kind of character. One edit removes at most one kind and adds at most one.
fn letters(word: &str) -> u64 {
    word.chars().fold(0, |bits, c| {
        bits | 1
            << match c {
                'a'..='z' => c as u32 - 'a' as u32,
                '0'..='9' => 26 + c as u32 - '0' as u32,
                _ => 36 + c as u32 % 28,
            }
    })
}

/// The terms by number, and the counts of the document that is being read.
#[derive(Default)]
struct TermCounts {
    numbers: FxHashMap<Arc<str>, u32>,
    list: Vec<Arc<str>>,
    counts: Vec<Count>,
    touched: Vec<u32>,
    folded: String,
}

impl TermCounts {
    fn number(&mut self, term: &str) -> u32 {
        if let Some(number) = self.numbers.get(term) {
            return *number;
        }
        let number = self.list.len() as u32;
        let term: Arc<str> = Arc::from(term);
        self.numbers.insert(term.clone(), number);
        self.list.push(term);
        self.counts.push(Count::default());
        number
    }

    /// Appends the postings of a document, and returns the number of words of its body.
    fn read(&mut self, place: u32, entry: &Entry, out: &mut Vec<(u32, u32, Count)>) -> u32 {
        let fields = entry.fields();
        self.name(&entry.name, weight::WHOLE_NAME);
        for alias in &fields.aliases {
            self.name(alias, weight::WHOLE_ALIAS);
        }
        for (texts, weight) in [(&fields.tags, weight::TAG), (&fields.triggers, weight::TRIGGER)] {
            texts.iter().for_each(|text| self.identifiers(text, Count::head(weight)));
        }
        self.identifiers(entry.title.as_deref().unwrap_or(""), Count::head(weight::TITLE));
        self.text(entry.description(), Count::head(weight::DESCRIPTION));
        for heading in sections::headings(entry.body()) {
            self.text(heading.title, Count::head(weight::HEADING));
        }
        let length = self.body(entry.body());
        for term in self.touched.drain(..) {
            out.push((term, place, std::mem::take(&mut self.counts[term as usize])));
        }
        length
    }

    fn name(&mut self, name: &str, weight: u8) {
        self.identifiers(name, Count::head(weight::NAME));
        self.term(&whole(name), Count::head(weight));
    }

    /// Adds words and, if a word is several written in one, their parts.
    fn identifiers(&mut self, text: &str, count: Count) {
        for place in words(text) {
            let word = &text[place];
            self.word(word, count);
            let parts = parts(word);
            if parts.len() > 1 {
                parts.into_iter().for_each(|part| self.word(part, count));
            }
        }
    }

    fn text(&mut self, text: &str, count: Count) {
        words(text).for_each(|place| self.word(&text[place], count));
    }

    fn body(&mut self, text: &str) -> u32 {
        let mut length: u32 = 0;
        for place in words(text) {
            self.word(&text[place.clone()], Count { head: 0, body: 1, parts: part(place.start) });
            length = length.saturating_add(1);
        }
        length
    }

    fn word(&mut self, word: &str, count: Count) {
        if word.len() <= LONGEST {
            let mut folded = std::mem::take(&mut self.folded);
            fold(word, &mut folded);
            stem(&mut folded);
            self.term(&folded, count);
            self.folded = folded;
        }
    }

    fn term(&mut self, term: &str, count: Count) {
        if term.is_empty() {
            return;
        }
        let number = self.number(term);
        let counted = &mut self.counts[number as usize];
        if *counted == Count::default() {
            self.touched.push(number);
        }
        counted.add(count);
    }
}
