//! The inverted index of a catalog, in one segment or two.
//!
//! Most documents of a generation are those of the one before, and most that a tenant reads are
//! those of all tenants. Their segment is shared, and a second one has the rest. Together they
//! answer as one segment would: a term has one number, postings name the places of entries in the
//! catalog, and equal answers come in the same order.
//!
//! When the rest grows, or much of the shared segment is gone, both become one.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use super::segment::{letters, lower_bound, Segment};
pub use super::segment::{Count, Lengths};
use crate::catalog::entry::Entry;

/// The documents that the second segment may have in any case, and the part of the first that it
/// may have besides.
const FEW: usize = 256;
const PART: usize = 8;
/// The place of a document that is not in the catalog, and the term that a segment lacks.
const NONE: u32 = u32::MAX;
/// The bit of an origin that says that the document is in the second segment.
const OVER: u32 = 1 << 31;

/// The inverted index of a catalog.
#[derive(Debug, Default)]
pub struct Index {
    main: Layer,
    over: Layer,
    /// Each term of the second segment in the first: its number there, or `NONE`.
    in_main: Vec<u32>,
    /// The same the other way round, in order.
    in_over: Vec<(u32, u32)>,
    /// The terms that only the second segment has, in order. They are numbered after the first's.
    fresh: Vec<u32>,
    fresh_not_words: u32,
    /// By the places of entries.
    lengths: Vec<Lengths>,
    /// The document of each entry: its place in its segment, with the bit `OVER`.
    origins: Vec<u32>,
}

/// A segment, and the place of each of its documents in the catalog.
#[derive(Debug, Default)]
struct Layer {
    segment: Arc<Segment>,
    places: Vec<u32>,
}

impl Layer {
    fn postings(&self, term: Option<u32>) -> impl Iterator<Item = (u32, Count)> + '_ {
        let (places, counts) = term.map_or((&[][..], &[][..]), |term| self.segment.postings(term));
        let known =
            places.iter().map(|place| self.places[*place as usize]).zip(counts.iter().copied());
        known.filter(|(place, _)| *place != NONE)
    }
}

impl Index {
    /// Builds the index of these entries from that of the generation before, or from that of a
    /// catalog that has a part of them.
    pub fn new(entries: &[Arc<Entry>], earlier: Option<&Index>, base: Option<&Index>) -> Index {
        let shared = [earlier, base].into_iter().flatten().find_map(|from| {
            let main = Index::places_in(&from.main.segment, entries);
            let rest = entries.len() - main.iter().filter(|place| **place != NONE).count();
            let there = entries.len() - rest;
            let gone = main.len() - there;
            let few = rest <= FEW || rest <= there / PART;
            (there > 0 && few && gone <= FEW.max(there))
                .then_some((from.main.segment.clone(), main))
        });
        let refs: Vec<&Entry> = entries.iter().map(|entry| &**entry).collect();
        let Some((segment, places)) = shared else {
            let known = [earlier, base].into_iter().flatten();
            let known: Vec<&Segment> =
                known.flat_map(|index| [&*index.main.segment, &*index.over.segment]).collect();
            let segment = Arc::new(Segment::new(&refs, &known));
            let places = (0..entries.len() as u32).collect();
            return Index::of(Layer { segment, places }, Layer::default(), None, entries.len());
        };
        let mut covered = vec![false; entries.len()];
        places.iter().filter(|place| **place != NONE).for_each(|at| covered[*at as usize] = true);
        let rest: Vec<u32> =
            (0..entries.len() as u32).filter(|place| !covered[*place as usize]).collect();
        let documents: Vec<&Entry> = rest.iter().map(|place| refs[*place as usize]).collect();
        let known: Vec<&Segment> =
            [earlier, base].into_iter().flatten().map(|index| &*index.over.segment).collect();
        let over = Layer { segment: Arc::new(Segment::new(&documents, &known)), places: rest };
        // Its terms were mostly looked up before.
        let before = earlier.filter(|earlier| Arc::ptr_eq(&earlier.main.segment, &segment));
        Index::of(Layer { segment, places }, over, before, entries.len())
    }

    /// The place of each document of a segment among entries. Of two entries of one document the
    /// first has it.
    fn places_in(segment: &Segment, entries: &[Arc<Entry>]) -> Vec<u32> {
        let mut places = vec![NONE; segment.document_count()];
        for (place, entry) in (0..).zip(entries) {
            if let Some(at) = segment.place_of(&entry.document) {
                let at = &mut places[at as usize];
                *at = if *at == NONE { place } else { *at };
            }
        }
        places
    }

    fn of(main: Layer, over: Layer, before: Option<&Index>, count: usize) -> Index {
        let mut index = Index { main, over, ..Index::default() };
        index.lengths = vec![Lengths::default(); count];
        index.origins = vec![NONE; count];
        for (layer, bit) in [(&index.main, 0), (&index.over, OVER)] {
            for (at, place) in (0..).zip(&layer.places).filter(|(_, place)| **place != NONE) {
                index.lengths[*place as usize] = layer.segment.lengths()[at as usize];
                index.origins[*place as usize] = at | bit;
            }
        }
        index.join_terms(before);
        index
    }

    /// Numbers the terms of the second segment. Both have theirs in the same order.
    fn join_terms(&mut self, before: Option<&Index>) {
        let (main, over) = (&self.main.segment, &self.over.segment);
        let (mut from, mut known) = (0, 0);
        for term in 0..over.term_count() {
            let text = over.term(term);
            // Of the index before, whose terms are in the same order too.
            let carried = before.and_then(|before| {
                let old = &before.over.segment;
                known =
                    lower_bound(known..old.term_count().min(known + 8), |at| old.term(at) < text);
                let is_it = known < old.term_count() && old.term(known) == text;
                is_it.then(|| before.in_main[known as usize])
            });
            let number = carried.unwrap_or_else(|| {
                from = lower_bound(from..main.term_count(), |at| main.term(at) < text);
                match from < main.term_count() && main.term(from) == text {
                    true => from,
                    false => NONE,
                }
            });
            self.in_main.push(number);
            match number {
                NONE => {
                    self.fresh.push(term);
                    self.fresh_not_words += u32::from(term < over.not_words());
                }
                number => self.in_over.push((number, term)),
            }
        }
    }

    /// The number of terms. Those of the first segment come first, and each segment's are in order.
    pub fn term_count(&self) -> u32 {
        self.main.segment.term_count() + self.fresh.len() as u32
    }

    /// The order of two terms by their texts.
    pub fn order(&self, one: u32, other: u32) -> Ordering {
        let main = self.main.segment.term_count();
        match (one < main) == (other < main) {
            true => one.cmp(&other),
            false => self.term(one).cmp(self.term(other)),
        }
    }

    /// The lengths of each entry's document.
    pub fn lengths(&self) -> &[Lengths] {
        &self.lengths
    }

    /// The segment of a term, and its number there.
    fn of_term(&self, term: u32) -> (&Segment, u32) {
        match term.checked_sub(self.main.segment.term_count()) {
            None => (&self.main.segment, term),
            Some(fresh) => (&self.over.segment, self.fresh[fresh as usize]),
        }
    }

    /// The number of a term in each segment that has it.
    fn numbers(&self, term: u32) -> [Option<u32>; 2] {
        match term.checked_sub(self.main.segment.term_count()) {
            None => {
                let over = self.in_over.binary_search_by_key(&term, |(main, _)| *main);
                [Some(term), over.ok().map(|at| self.in_over[at].1)]
            }
            Some(fresh) => [None, Some(self.fresh[fresh as usize])],
        }
    }

    /// The number of a term that the second segment has.
    fn number_of(&self, over: u32) -> u32 {
        match self.in_main[over as usize] {
            NONE => {
                // It is among them, so there is no other case.
                let fresh = self.fresh.binary_search(&over).unwrap_or_else(|at| at);
                self.main.segment.term_count() + fresh as u32
            }
            number => number,
        }
    }

    /// The number of bytes of a word's stem.
    pub fn stem_length(&self, term: u32) -> usize {
        let (segment, term) = self.of_term(term);
        segment.stem_length(term)
    }

    /// The long words of names that may contain a text. A cheap filter, as
    /// [`maybe_within`](Index::maybe_within).
    pub fn maybe_containing(&self, text: &str) -> Vec<u32> {
        let own = letters(text);
        let over = self.over.segment.maybe_containing(own).map(|term| self.number_of(term));
        let mut found: Vec<u32> = self.main.segment.maybe_containing(own).chain(over).collect();
        found.sort_unstable_by(|one, other| self.order(*one, *other));
        found.dedup();
        found
    }

    /// The term with this number.
    pub fn term(&self, term: u32) -> &str {
        let (segment, term) = self.of_term(term);
        segment.term(term)
    }

    /// The postings of a term: places of entries, and counts.
    pub fn postings(&self, term: u32) -> impl Iterator<Item = (u32, Count)> + '_ {
        let [main, over] = self.numbers(term);
        self.main.postings(main).chain(self.over.postings(over))
    }

    /// How often an entry's document has a term.
    pub fn count(&self, term: u32, place: u32) -> Option<Count> {
        let origin = *self.origins.get(place as usize)?;
        let [main, over] = self.numbers(term);
        match origin & OVER {
            _ if origin == NONE => None,
            0 => self.main.segment.count(main?, origin),
            _ => self.over.segment.count(over?, origin & !OVER),
        }
    }

    /// The number of a term.
    pub fn find(&self, term: &str) -> Option<u32> {
        let is = |at: &u32| *at < self.term_count() && self.term(*at) == term;
        let main = self.main.segment.term_count();
        let first = |range: Range<u32>| lower_bound(range, |at| self.term(at) < term);
        Some(first(0..main))
            .filter(|at| *at < main && is(at))
            .or_else(|| Some(first(main..self.term_count())).filter(is))
    }

    /// The numbers of the words with a prefix, in two ranges.
    pub fn prefixed(&self, prefix: &str) -> [Range<u32>; 2] {
        let main = &self.main.segment;
        let words = [
            main.not_words()..main.term_count(),
            main.term_count() + self.fresh_not_words..self.term_count(),
        ];
        words.map(|words| {
            let start = lower_bound(words.clone(), |at| self.term(at) < prefix);
            start..lower_bound(start..words.end, |at| self.term(at).starts_with(prefix))
        })
    }

    /// The numbers of words that may be within `limit` edits of a word. A cheap filter: it passes
    /// all of those, and few others.
    pub fn maybe_within(&self, word: &str, limit: usize) -> impl Iterator<Item = u32> + '_ {
        let own = letters(word);
        let main = &self.main.segment;
        let words = (main.not_words()..main.term_count())
            .chain(main.term_count() + self.fresh_not_words..self.term_count());
        words.filter(move |term| {
            let (segment, term) = self.of_term(*term);
            segment.may_be_within(term, own, limit)
        })
    }
}
