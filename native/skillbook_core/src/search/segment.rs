//! An inverted index of some documents: all terms, and the documents that contain them.
//!
//! All terms are stored in one string, in order, so a prefix is a range and a lookup a binary
//! search. A posting takes eight bytes: the document, how often its body has the term and in which
//! parts, and the weighted occurrences in the other fields.
//!
//! A segment is built from earlier ones: documents that are the same object are not read again.
//! The [index](super::index) of a catalog has one segment or two.

use std::ops::Range;
use std::sync::{Arc, OnceLock, Weak};

use rustc_hash::FxHashMap;

use super::pairs::{Pairs, PAIR};
use super::parts::{part, Parts};
use super::stems::Stems;
use super::words::{fold, hyphenated, parts, pieces, stem, whole, words, LONGEST};
use crate::catalog::entry::Entry;
use crate::page::document::Document;
use crate::page::sections;

/// The shortest word of a name, in bytes, that may be several words written as one.
const LONG: usize = 7;

/// The average number of bytes of text per posting, to reserve memory.
const BYTES_FOR_A_TERM: usize = 12;

/// The most documents of a segment without a list of its terms' letters, which would be a sixth of
/// it: there is one for each tenant. Their letters are looked at in the text.
const FEW: usize = 256;

/// The weight of one occurrence in a field of the head, in sixths of one in the description.
/// [`scope`](super::scope) has the weights of names and bodies.
mod weight {
    pub const TITLE: u8 = 8;
    pub const TRIGGER: u8 = 8;
    pub const TAG: u8 = 6;
    pub const DESCRIPTION: u8 = 6;
    pub const HEADING: u8 = 2;
}
/// The occurrences in names of a term that is a whole name or alias.
const WHOLE_NAME: u8 = 2;
const WHOLE_ALIAS: u8 = 1;

/// How often a document has a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// The highest two bits count names, the others are weighted occurrences in the head. One byte
    /// for both keeps a posting at eight bytes.
    names_and_head: u8,
    /// Occurrences in the body.
    pub body: u8,
    /// The parts of the body that have the term.
    pub parts: Parts,
}

/// The bits of occurrences in the head.
const HEAD: u8 = 0b0011_1111;

impl Count {
    fn new(names: u8, head: u8) -> Count {
        Count { names_and_head: names.min(3) << 6 | head.min(HEAD), ..Count::default() }
    }

    /// Occurrences in the name and the aliases, at most 3.
    pub fn names(self) -> u8 {
        self.names_and_head >> 6
    }

    /// Weighted occurrences in the head, which is all fields but names and body.
    pub fn head(self) -> u8 {
        self.names_and_head & HEAD
    }

    fn add(&mut self, other: Count) {
        let sum = Count::new(self.names() + other.names(), self.head() + other.head());
        self.names_and_head = sum.names_and_head;
        self.body = self.body.saturating_add(other.body);
        self.parts |= other.parts;
    }
}

/// The number of words of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lengths {
    /// In its name, without aliases.
    pub name: u32,
    /// In its title, description, tags and trigger keywords.
    pub head: u32,
    /// In its body.
    pub body: u32,
}

/// An inverted index of some documents.
#[derive(Debug, Default)]
pub struct Segment {
    /// The documents, to recognise them in the next generation. Weak, so that an index does not
    /// keep the texts of removed documents.
    documents: Vec<Weak<Document>>,
    /// Their places by their addresses, made when a later generation is compared with this one.
    /// An address identifies a document only because the weak references keep it from being
    /// reused.
    by_address: OnceLock<FxHashMap<usize, u32>>,
    lengths: Vec<Lengths>,
    text: String,
    /// The end of each term in `text`. Four bytes are enough here and below: a segment with more
    /// would not fit in memory.
    ends: Vec<u32>,
    /// The end of each term's postings.
    posting_ends: Vec<u32>,
    places: Vec<u32>,
    counts: Vec<Count>,
    not_words: u32,
    /// A bit for each kind of character of each term, unless the documents are few.
    letters: Vec<u64>,
    /// The number of bytes of each word's stem.
    stems: Vec<u8>,
    /// The letters and numbers of long words in names, which may be several words written as one.
    long: Vec<(u64, u32)>,
}

/// The postings of a term: documents in order, and counts.
pub type Postings<'a> = (&'a [u32], &'a [Count]);

impl Segment {
    /// Builds the segment of these entries' documents. Postings of unchanged documents are copied
    /// from earlier segments.
    pub fn new(entries: &[&Entry], earlier: &[&Segment]) -> Segment {
        let mut terms = TermCounts::default();
        let mut lengths = vec![Lengths::default(); entries.len()];
        let mut stems: Vec<u8> = Vec::new();
        // The terms of the earlier segments in the new numbers, so that postings can be copied.
        let numbers: Vec<Vec<u32>> = earlier
            .iter()
            .map(|segment| {
                let number = |term| {
                    let number = terms.number(segment.term(term));
                    if number as usize == stems.len() {
                        stems.push(segment.stems[term as usize]);
                    }
                    number
                };
                (0..segment.term_count()).map(number).collect()
            })
            .collect();
        // 1. Find the documents that the earlier segments know. Each is used at most once.
        let mut moved: Vec<Vec<Option<u32>>> =
            earlier.iter().map(|segment| vec![None; segment.documents.len()]).collect();
        let mut unread = Vec::new();
        for (place, entry) in entries.iter().enumerate() {
            let known = earlier.iter().zip(&mut moved).find_map(|(segment, moved)| {
                let old = segment.place_of(&entry.document)? as usize;
                moved[old].is_none().then_some((segment, moved, old))
            });
            match known {
                Some((segment, moved, old)) => {
                    moved[old] = Some(place as u32);
                    lengths[place] = segment.lengths[old];
                }
                None => unread.push(place),
            }
        }
        // 2. Read the new documents into a list of postings. A vector that grows step by step
        // leaves as much garbage in the allocator. Reserved memory that is never touched costs
        // nothing.
        let bytes: usize = unread.iter().map(|place| entries[*place].document.text.len()).sum();
        let mut fresh = Vec::with_capacity(bytes / BYTES_FOR_A_TERM);
        for place in unread {
            lengths[place] = terms.read(place as u32, entries[place], &mut fresh);
        }
        // 3. The postings that stay, with the new numbers of their documents, then the new ones.
        // This is iterated twice, to count and to fill, instead of being stored.
        let copied = || {
            earlier.iter().zip(&numbers).zip(&moved).flat_map(|((segment, numbers), moved)| {
                (0..segment.term_count()).flat_map(move |term| {
                    let (places, counts) = segment.postings(term);
                    let copies = places
                        .iter()
                        .zip(counts)
                        .filter_map(|(old, count)| Some((moved[*old as usize]?, *count)));
                    copies.map(move |(place, count)| (numbers[term as usize], place, count))
                })
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
        let mut segment = Segment { lengths, ..Segment::default() };
        segment.documents = entries.iter().map(|entry| Arc::downgrade(&entry.document)).collect();
        let total = sizes.iter().sum();
        segment.places = vec![0; total];
        segment.counts = vec![Count::default(); total];
        // Vectors that grow would keep up to twice the memory that they need.
        let length = order.iter().map(|term| terms.list[*term as usize].len()).sum();
        segment.text = String::with_capacity(length);
        segment.ends = Vec::with_capacity(order.len());
        segment.posting_ends = Vec::with_capacity(order.len());
        let has_letters = entries.len() > FEW;
        segment.letters = Vec::with_capacity(if has_letters { order.len() } else { 0 });
        segment.stems = Vec::with_capacity(order.len());
        // From here on `sizes` holds the position of the next posting of each term.
        let mut at = 0;
        let stemmer = Stems::new();
        for term in &order {
            let text = &terms.list[*term as usize];
            let word = !text.starts_with([PAIR, ' ']);
            segment.not_words += u32::from(!word);
            if has_letters {
                segment.letters.push(letters(text));
            }
            segment.stems.push(match stems.get(*term as usize) {
                Some(length) => *length,
                // Words are at most 64 bytes long, and a stem adds at most one letter.
                None if word => stemmer.of(text).len() as u8,
                None => 0,
            });
            segment.text.push_str(text);
            segment.ends.push(segment.text.len() as u32);
            let size = std::mem::replace(&mut sizes[*term as usize], at);
            at += size;
            segment.posting_ends.push(at as u32);
        }
        for (term, place, count) in all() {
            let next = &mut sizes[term as usize];
            segment.places[*next] = place;
            segment.counts[*next] = count;
            *next += 1;
        }
        segment.sort_postings();
        let long = |term: &u32| {
            segment.term(*term).len() >= LONG
                && segment.postings(*term).1.iter().any(|count| count.names() > 0)
        };
        let terms = (segment.not_words..segment.term_count()).filter(long);
        segment.long = terms.map(|term| (segment.letters(term), term)).collect();
        segment
    }

    /// The place of a document.
    pub fn place_of(&self, document: &Arc<Document>) -> Option<u32> {
        let by_address = self.by_address.get_or_init(|| {
            (0..).zip(&self.documents).map(|(at, of)| (of.as_ptr() as usize, at)).collect()
        });
        by_address.get(&(Arc::as_ptr(document) as usize)).copied()
    }

    /// The number of documents.
    pub fn document_count(&self) -> usize {
        self.documents.len()
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

    /// The lengths of each document.
    pub fn lengths(&self) -> &[Lengths] {
        &self.lengths
    }

    /// The number of terms that are pairs of words or whole names. They come first.
    pub fn not_words(&self) -> u32 {
        self.not_words
    }

    /// The number of bytes of a word's stem.
    pub fn stem_length(&self, term: u32) -> usize {
        self.stems[term as usize].into()
    }

    /// The long words of names that may contain a text with these letters. A cheap filter, as
    /// [`may_be_within`](Segment::may_be_within).
    pub fn maybe_containing(&self, own: u64) -> impl Iterator<Item = u32> + '_ {
        let maybe = self.long.iter().filter(move |(letters, _)| own & !letters == 0);
        maybe.map(|(_, term)| *term)
    }

    /// The term with this number.
    pub fn term(&self, term: u32) -> &str {
        let start = before(&self.ends, term);
        &self.text[start..self.ends[term as usize] as usize]
    }

    fn range(&self, term: u32) -> Range<usize> {
        before(&self.posting_ends, term)..self.posting_ends[term as usize] as usize
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

    fn letters(&self, term: u32) -> u64 {
        match self.letters.get(term as usize) {
            Some(letters) => *letters,
            None => letters(self.term(term)),
        }
    }

    /// Whether a term may be within `limit` edits of a word with these letters. A cheap filter: it
    /// passes all of those, and few others.
    pub fn may_be_within(&self, term: u32, own: u64, limit: usize) -> bool {
        let other = self.letters(term);
        let few = |bits: u64| (0..limit).fold(bits, |bits, _| bits & bits.wrapping_sub(1)) == 0;
        few(own & !other) && few(other & !own)
    }
}

fn before(ends: &[u32], at: u32) -> usize {
    at.checked_sub(1).map_or(0, |at| ends[at as usize] as usize)
}

/// The first of some numbers that is not `before`, of numbers in order.
pub fn lower_bound(range: Range<u32>, before: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (range.start, range.end);
    while low < high {
        let middle = low + (high - low) / 2;
        match before(middle) {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}

/// A bit for each kind of character. One edit removes at most one kind and adds at most one.
pub fn letters(word: &str) -> u64 {
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
    pairs: Pairs,
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

    /// Appends the postings of a document, and returns its lengths.
    fn read(&mut self, place: u32, entry: &Entry, out: &mut Vec<(u32, u32, Count)>) -> Lengths {
        let fields = entry.fields();
        let mut lengths =
            Lengths { name: self.name(&entry.name, WHOLE_NAME), ..Lengths::default() };
        for alias in &fields.aliases {
            self.name(alias, WHOLE_ALIAS);
        }
        let tags = fields.tags.iter().map(|tag| (tag.as_str(), weight::TAG));
        let triggers = fields.triggers.iter().map(|trigger| (trigger.as_str(), weight::TRIGGER));
        let title = entry.title.as_deref().unwrap_or("");
        let texts = [(title, weight::TITLE), (entry.description(), weight::DESCRIPTION)];
        for (text, weight) in tags.chain(triggers).chain(texts) {
            lengths.head += self.identifiers(text, Count::new(0, weight));
        }
        for heading in sections::headings(entry.body()) {
            self.text(heading.title, |_| Count::new(0, weight::HEADING));
        }
        let body = |start| Count { body: 1, parts: part(start), ..Count::default() };
        lengths.body = self.text(entry.body(), body);
        for term in self.touched.drain(..) {
            out.push((term, place, std::mem::take(&mut self.counts[term as usize])));
        }
        lengths
    }

    fn name(&mut self, name: &str, count: u8) -> u32 {
        self.term(&whole(name), Count::new(count, 0));
        self.identifiers(name, Count::new(1, 0))
    }

    /// Adds words, their parts if a word is several written as one, and pairs of words that follow
    /// each other. Returns the number of words or parts.
    fn identifiers(&mut self, text: &str, count: Count) -> u32 {
        let (mut pairs, mut length) = (std::mem::take(&mut self.pairs), 0);
        pairs.end();
        for place in words(text) {
            self.hyphenated(text, &place, count);
            let word = &text[place];
            let parts = parts(word);
            if parts.len() > 1 {
                self.word(word, count);
            }
            for part in parts {
                self.word(part, count);
                if let Some(pair) = pairs.next(&self.folded) {
                    self.term(pair, count);
                }
                length += 1;
            }
        }
        self.pairs = pairs;
        length
    }

    /// Adds words, counted by their places, and returns their number.
    fn text(&mut self, text: &str, count: impl Fn(usize) -> Count) -> u32 {
        let mut length: u32 = 0;
        for place in words(text) {
            self.hyphenated(text, &place, count(place.start));
            self.word(&text[place.clone()], count(place.start));
            length = length.saturating_add(1);
        }
        length
    }

    fn hyphenated(&mut self, text: &str, place: &Range<usize>, count: Count) {
        if let Some(word) = hyphenated(text, place) {
            self.word(&word, count);
        }
    }

    /// Adds a word, and leaves its last term in `folded`.
    fn word(&mut self, word: &str, count: Count) {
        let mut folded = std::mem::take(&mut self.folded);
        folded.clear();
        for piece in pieces(word).filter(|piece| piece.len() <= LONGEST) {
            fold(&word[piece], &mut folded);
            stem(&mut folded);
            self.term(&folded, count);
        }
        self.folded = folded;
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
