//! Packs documents into a run, and merges runs.

use rustc_hash::{FxHashMap, FxHashSet};

use super::chunks;
use super::{form_of, ids, postings, push, push_ids, BlockReader, Packed, Posting, Stems, FORM};
use crate::search::vectors::Digest;
use crate::search::words;

/// The number of words of a document that are indexed.
const MAX_WORDS: usize = 60_000;
/// The gap between the places of two texts, so that no phrase reaches from one into the other.
const GAP: u64 = 8;
/// The size of a block in bytes: it ends with the term that reaches it. Smaller blocks mean more
/// rows, larger ones more bytes read for each term of a query.
const BLOCK: usize = 4_000;
/// The maximum count of a term in a document. A higher one would not change a score.
const MAX_COUNT: usize = 255;

/// A document to index.
#[derive(Debug, Clone, Default)]
pub struct SearchDocument {
    /// Its number in the index.
    pub id: u64,
    /// The texts that count as titles: name, title, and aliases.
    pub titles: Vec<String>,
    /// Its text.
    pub content: String,
    /// Additional terms, for filters.
    pub fields: Vec<String>,
}

/// Some terms of a run with their postings. The format is described in [the module](super).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Block {
    /// The first term: a stem, or U+E000 and a word as written, or a field of a document.
    pub first: String,
    /// The terms with their documents and counts.
    pub documents: Vec<u8>,
    /// The places of the terms, in the same order.
    pub places: Vec<u8>,
}

/// Documents that were indexed together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Run {
    /// The lowest and the highest id.
    pub range: (u64, u64),
    /// The number of documents.
    pub count: usize,
    /// The packed ids.
    pub ids: Vec<u8>,
    /// The packed digests of the documents' texts.
    pub digests: Vec<u8>,
    /// The terms.
    pub blocks: Vec<Block>,
}

impl Run {
    fn new(numbers: &[u64], digests: Vec<u8>, blocks: Vec<Block>) -> Run {
        let mut packed = Vec::new();
        push_ids(numbers.iter().copied(), &mut packed);
        let range = (numbers.first().copied().unwrap_or(0), numbers.last().copied().unwrap_or(0));
        Run { range, count: numbers.len(), ids: packed, digests, blocks }
    }

    /// The size of the blocks in bytes.
    pub fn size(&self) -> usize {
        self.blocks.iter().map(|block| block.documents.len() + block.places.len()).sum()
    }
}

/// Packs documents into a run. If several have one id, the last counts.
pub fn pack(documents: &[SearchDocument]) -> Run {
    // Ids must ascend, because postings store differences.
    let by_id: FxHashMap<u64, &SearchDocument> =
        documents.iter().map(|document| (document.id, document)).collect();
    let mut order: Vec<_> = by_id.into_values().collect();
    order.sort_unstable_by_key(|document| document.id);
    let mut index = RunBuilder { stems: Stems::new(), ..RunBuilder::default() };
    order.iter().for_each(|document| index.add(document));
    let numbers: Vec<u64> = order.iter().map(|document| document.id).collect();
    let mut digests = Vec::new();
    for document in order {
        let own = chunks::digests(&document.titles, &document.content);
        push_digests(own.as_flattened(), &mut digests);
    }
    Run::new(&numbers, digests, index.blocks())
}

/// Appends the digests of one document, given one after the other.
fn push_digests(digests: &[u8], out: &mut Vec<u8>) {
    push((digests.len() / size_of::<Digest>()) as u64, out);
    out.extend(digests);
}

/// The documents of a run with their digests. Runs of earlier versions have none.
pub fn digests<'a>(
    ids: &'a [u8],
    digests: &'a [u8],
) -> impl Iterator<Item = (u64, &'a [Digest])> + 'a {
    let mut packed = Packed(digests);
    super::ids(ids).map(move |id| {
        let count = packed.number().and_then(|count| count.checked_mul(size_of::<Digest>() as u64));
        let digests = count.and_then(|count| packed.bytes(count)).unwrap_or_default();
        (id, digests.as_chunks().0)
    })
}

impl Default for Stems {
    fn default() -> Stems {
        Stems::new()
    }
}

#[derive(Default)]
struct RunBuilder {
    stems: Stems,
    /// The terms of each form: its stem and itself.
    known: FxHashMap<String, [u32; 2]>,
    numbers: FxHashMap<String, u32>,
    terms: Vec<Term>,
    /// For the current document, one number per word: the term in the upper half, then the place,
    /// and a bit for titles. Sorting these groups the occurrences of a term.
    found: [Vec<u64>; 2],
    places: Vec<u8>,
}

#[derive(Default)]
struct Term {
    text: String,
    last: u64,
    documents: Vec<u8>,
    places: Vec<u8>,
}

impl RunBuilder {
    fn add(&mut self, document: &SearchDocument) {
        let titles = document.titles.iter().map(|text| (text.as_str(), 1));
        let mut found = std::mem::take(&mut self.found);
        let (mut form, mut at, mut left) = (String::new(), 0u64, MAX_WORDS);
        for (text, in_titles) in titles.chain([(document.content.as_str(), 0)]) {
            for place in words::words(text) {
                if left == 0 {
                    break;
                }
                if form_of(&text[place], &mut form) {
                    for (found, term) in found.iter_mut().zip(self.form(&form)) {
                        found.push(u64::from(term) << 32 | at << 1 | in_titles);
                    }
                    at += 1;
                    left -= 1;
                }
            }
            // After each title and before the text.
            at += GAP;
        }
        // Stems first, which have places for phrases; then the words as written, which have none.
        for (found, with_places) in found.iter_mut().zip([true, false]) {
            found.sort_unstable();
            for group in found.chunk_by(|one, other| one >> 32 == other >> 32) {
                let in_titles = group.iter().filter(|word| **word & 1 == 1).count();
                let counts = [in_titles, group.len() - in_titles];
                let places = group
                    .iter()
                    .filter(|_| with_places)
                    .map(|word| (word & u64::from(u32::MAX)) >> 1);
                self.push((group[0] >> 32) as usize, document.id, counts, places);
            }
            found.clear();
        }
        self.found = found;
        let mut fields: Vec<_> = document.fields.iter().collect();
        fields.sort_unstable();
        fields.dedup();
        for field in fields {
            let term = self.number(field);
            self.push(term as usize, document.id, [0, 1], std::iter::empty());
        }
    }

    fn push(
        &mut self,
        term: usize,
        id: u64,
        [titles, contents]: [usize; 2],
        places: impl Iterator<Item = u64>,
    ) {
        let term = &mut self.terms[term];
        self.places.clear();
        push_ids(places, &mut self.places);
        let count = |count: usize| count.min(MAX_COUNT) as u64;
        let posting =
            Posting { id, titles: count(titles), contents: count(contents), places: &self.places };
        posting.push(term.last, &mut term.documents, &mut term.places);
        term.last = id;
    }

    fn form(&mut self, form: &str) -> [u32; 2] {
        // Stemming costs more than a lookup, and most words repeat.
        if let Some(terms) = self.known.get(form) {
            return *terms;
        }
        let stem = self.stems.of(form);
        let terms = [self.number(&stem), self.number(&format!("{FORM}{form}"))];
        self.known.insert(form.to_owned(), terms);
        terms
    }

    fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.terms.len() as u32;
        self.numbers.insert(text.to_owned(), number);
        self.terms.push(Term { text: text.to_owned(), ..Term::default() });
        number
    }

    fn blocks(mut self) -> Vec<Block> {
        self.terms.sort_unstable_by(|one, other| one.text.cmp(&other.text));
        let mut blocks = BlockWriter::default();
        self.terms
            .iter()
            .for_each(|term| blocks.add(term.text.as_bytes(), &term.documents, &term.places));
        blocks.finish()
    }
}

/// Cuts terms, which come in order, into blocks.
#[derive(Default)]
struct BlockWriter {
    blocks: Vec<Block>,
    block: Block,
    last: Vec<u8>,
}

impl BlockWriter {
    fn add(&mut self, term: &[u8], documents: &[u8], places: &[u8]) {
        if self.block.documents.is_empty() {
            // Only malformed rows have terms that are not UTF-8.
            self.block.first = String::from_utf8_lossy(term).into_owned();
            self.last.clear();
        }
        // Front coding: neighbouring terms share long prefixes.
        let shared = self.last.iter().zip(term).take_while(|(one, other)| one == other).count();
        let out = &mut self.block.documents;
        push(shared as u64, out);
        for bytes in [&term[shared..], documents] {
            push(bytes.len() as u64, out);
            out.extend(bytes);
        }
        push(places.len() as u64, &mut self.block.places);
        self.block.places.extend(places);
        self.last.clear();
        self.last.extend(term);
        if self.block.documents.len() + self.block.places.len() >= BLOCK {
            self.blocks.push(std::mem::take(&mut self.block));
        }
    }

    fn finish(mut self) -> Vec<Block> {
        if !self.block.documents.is_empty() {
            self.blocks.push(self.block);
        }
        self.blocks
    }
}

/// A run as it is stored.
#[derive(Debug, Clone, Default)]
pub struct StoredRun<'a> {
    /// The packed ids of all its documents.
    pub ids: &'a [u8],
    /// The packed digests of their texts.
    pub digests: &'a [u8],
    /// The packed ids of the removed ones.
    pub gone: &'a [u8],
    /// The two columns of its blocks, in order.
    pub blocks: Vec<(&'a [u8], &'a [u8])>,
    /// New ids: the old ids are positions in this list. If it is empty, ids stay.
    pub numbers: &'a [u64],
}

impl StoredRun<'_> {
    fn number(&self, id: u64) -> Option<u64> {
        match self.numbers {
            [] => Some(id),
            numbers => numbers.get(usize::try_from(id).ok()?).copied(),
        }
    }
}

/// Merges runs into one and drops removed documents. No document may be left in two runs.
///
/// Merging a single run with new ids copies it under other numbers. So documents can be packed,
/// which takes long, before a transaction has assigned their ids.
pub fn merge(runs: &[StoredRun<'_>]) -> Run {
    let gone: Vec<FxHashSet<u64>> = runs.iter().map(|run| ids(run.gone).collect()).collect();
    // The documents that remain, under their new numbers.
    let left = runs.iter().zip(&gone).flat_map(|(run, gone)| {
        digests(run.ids, run.digests)
            .filter(|(id, _)| !gone.contains(id))
            .filter_map(|(id, digests)| Some((run.number(id)?, digests)))
    });
    let mut left: Vec<(u64, &[Digest])> = left.collect();
    left.sort_unstable_by_key(|(id, _)| *id);
    left.dedup_by_key(|(id, _)| *id);
    let mut packed = Vec::new();
    left.iter().for_each(|(_, digests)| push_digests(digests.as_flattened(), &mut packed));
    let numbers: Vec<u64> = left.iter().map(|(id, _)| *id).collect();

    let mut cursors: Vec<Cursor> = runs.iter().map(Cursor::new).collect();
    let mut blocks = BlockWriter::default();
    let (mut documents, mut places, mut all) = (Vec::new(), Vec::new(), Vec::new());
    // A merge of sorted runs: the smallest term of all cursors, with the postings of every run that
    // has it.
    while let Some(term) = cursors
        .iter()
        .filter(|cursor| cursor.found.is_some())
        .map(|cursor| &cursor.terms.term)
        .min()
    {
        let term = term.clone();
        all.clear();
        for ((cursor, gone), run) in cursors.iter_mut().zip(&gone).zip(runs) {
            // Malformed rows may have a term twice or out of order.
            while let Some((documents, places)) = cursor.found.filter(|_| cursor.terms.term <= term)
            {
                let left =
                    postings(documents, places).filter(|posting| !gone.contains(&posting.id));
                all.extend(left.filter_map(|posting| {
                    Some(Posting { id: run.number(posting.id)?, ..posting })
                }));
                cursor.advance();
            }
        }
        // Runs may have overlapping ids, and new numbers need not keep the order.
        all.sort_unstable_by_key(|posting| posting.id);
        documents.clear();
        places.clear();
        let mut before = 0;
        for posting in &all {
            posting.push(before, &mut documents, &mut places);
            before = posting.id;
        }
        // A term whose documents are all gone is dropped.
        if !all.is_empty() {
            blocks.add(&term, &documents, &places);
        }
    }
    Run::new(&numbers, packed, blocks.finish())
}

/// The position of the merge in one run.
struct Cursor<'a> {
    blocks: std::vec::IntoIter<(&'a [u8], &'a [u8])>,
    terms: BlockReader<'a>,
    found: Option<(&'a [u8], &'a [u8])>,
}

impl<'a> Cursor<'a> {
    fn new(run: &StoredRun<'a>) -> Cursor<'a> {
        let mut cursor = Cursor {
            blocks: run.blocks.clone().into_iter(),
            terms: BlockReader::new(&[], &[]),
            found: None,
        };
        cursor.advance();
        cursor
    }

    fn advance(&mut self) {
        self.found = self.terms.next();
        while self.found.is_none() {
            let Some((documents, places)) = self.blocks.next() else { return };
            self.terms = BlockReader::new(documents, places);
            self.found = self.terms.next();
        }
    }
}

/// Adds documents to those that are gone from a run. Returns the packed ids and how many of these
/// documents were still in the run.
pub fn without(packed: &[u8], gone: &[u8], these: &[u64]) -> (Vec<u8>, usize) {
    let mut all: Vec<u64> = ids(gone).collect();
    let before: FxHashSet<u64> = all.iter().copied().collect();
    let these: FxHashSet<u64> = these.iter().copied().collect();
    all.extend(ids(packed).filter(|id| these.contains(id) && !before.contains(id)));
    let count = all.len() - before.len().min(all.len());
    all.sort_unstable();
    let mut out = Vec::new();
    push_ids(all.into_iter(), &mut out);
    (out, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(id: u64, titles: &[&str], content: &str) -> SearchDocument {
        let titles = titles.iter().map(|title| title.to_string()).collect();
        SearchDocument { id, titles, content: content.to_owned(), fields: Vec::new() }
    }

    /// The documents of a term: id, occurrences in titles and text, places.
    type Listed = Vec<(u64, u64, u64, Vec<u64>)>;

    fn list(run: &Run) -> Vec<(String, Listed)> {
        let mut out = Vec::new();
        for block in &run.blocks {
            let mut terms = BlockReader::new(&block.documents, &block.places);
            let mut first = true;
            while let Some((documents, places)) = terms.next() {
                let term = String::from_utf8(terms.term.clone()).unwrap();
                assert!(!first || term == block.first);
                first = false;
                let found = postings(documents, places);
                let row =
                    |one: Posting| (one.id, one.titles, one.contents, ids(one.places).collect());
                out.push((term, found.map(row).collect()));
            }
        }
        out
    }

    fn find(run: &Run, term: &str) -> Listed {
        list(run)
            .into_iter()
            .find(|(other, _)| other == term)
            .unwrap_or_else(|| panic!("no {term:?}"))
            .1
    }

    fn stored<'a>(run: &'a Run, gone: &'a [u8]) -> StoredRun<'a> {
        let blocks =
            run.blocks.iter().map(|block| (&block.documents[..], &block.places[..])).collect();
        StoredRun { ids: &run.ids, digests: &run.digests, gone, blocks, numbers: &[] }
    }

    #[test]
    fn a_term_has_its_documents_with_counts_and_places() {
        let mut last = document(7, &[], "plan");
        last.fields = vec!["\u{E001}tag".into(), "\u{E001}tag".into()];
        let run = pack(&[
            document(0x01_0203_0405, &[], "x"),
            last,
            document(1, &["Plans"], "a plan, planning"),
        ]);
        // There is a gap of eight places after the title.
        assert_eq!(find(&run, "plan"), [(1, 1, 2, vec![0, 10, 11]), (7, 0, 1, vec![8 - 8])]);
        assert_eq!(find(&run, "x"), [(0x01_0203_0405, 0, 1, vec![0])]);
        assert_eq!(find(&run, "\u{E000}plan"), [(1, 0, 1, vec![]), (7, 0, 1, vec![])]);
        assert_eq!(find(&run, "\u{E001}tag"), [(7, 0, 1, vec![])]);
        assert_eq!((run.range, run.count), ((1, 0x01_0203_0405), 3));
        assert_eq!(ids(&run.ids).collect::<Vec<_>>(), [1, 7, 0x01_0203_0405]);
        let terms: Vec<_> = list(&run).into_iter().map(|(term, _)| term).collect();
        let forms = [
            "\u{E000}a",
            "\u{E000}plan",
            "\u{E000}planning",
            "\u{E000}plans",
            "\u{E000}x",
            "\u{E001}tag",
        ];
        assert_eq!(terms, [&["a", "plan", "x"][..], &forms].concat());
    }

    #[test]
    fn counts_and_words_have_limits() {
        let many = "a ".repeat(70_000) + "end";
        let run = pack(&[document(1, &["b"], &many)]);
        let a = find(&run, "a");
        assert_eq!((a[0].1, a[0].2, a[0].3.len()), (0, 255, MAX_WORDS - 1));
        assert!(list(&run).iter().all(|(term, _)| term != "end"));
        let long = "x".repeat(words::LONGEST + 1);
        assert!(pack(&[document(1, &[], &long)]).blocks.is_empty());
        assert!(pack(&[document(1, &[], " \u{345} ")]).blocks.is_empty());
        assert_eq!(
            pack(&[document(1, &[], "a"), document(1, &[], "b")]),
            pack(&[document(1, &[], "b")])
        );
    }

    #[test]
    fn long_runs_are_cut_into_blocks() {
        let text: String = (0..5_000).map(|number| format!("word{number} ")).collect();
        let run = pack(&[document(1, &[], &text)]);
        assert!(run.blocks.len() > 10);
        assert!(run.blocks.windows(2).all(|pair| pair[0].first < pair[1].first));
        assert_eq!(list(&run).len(), 10_000);
    }

    #[test]
    fn removed_documents_are_counted_once() {
        let run = pack(&[document(1, &[], "a"), document(5, &[], "a b"), document(9, &[], "b")]);
        let (gone, count) = without(&run.ids, &[], &[5, 6]);
        assert_eq!((ids(&gone).collect::<Vec<_>>(), count), (vec![5], 1));
        let (gone, count) = without(&run.ids, &gone, &[5, 1]);
        assert_eq!((ids(&gone).collect::<Vec<_>>(), count), (vec![1, 5], 1));
        assert_eq!(merge(&[stored(&run, &gone)]), pack(&[document(9, &[], "b")]));
    }

    #[test]
    fn documents_may_be_numbered_later() {
        let texts = ["a b", "b", "a"];
        let packed = |numbers: &[u64]| {
            let document = |(text, id): (&&str, &u64)| document(*id, &["t"], text);
            pack(&texts.iter().zip(numbers).map(document).collect::<Vec<_>>())
        };
        let first = packed(&[0, 1, 2]);
        let numbers = [70, 9, 500];
        assert_eq!(
            merge(&[StoredRun { numbers: &numbers, ..stored(&first, &[]) }]),
            packed(&numbers)
        );
    }

    proptest::proptest! {
        #[test]
        fn merging_equals_packing_all_documents(
            texts in proptest::collection::vec("([a-c]{1,2}s?|[ .é\u{301}]){0,20}", 0..7),
            kept_in in proptest::collection::vec(0..4u8, 7),
        ) {
            // Each document is in one of three runs, or removed from the first.
            let documents: Vec<_> =
                (0..).zip(&texts).map(|(id, text)| document(id, &["as b"], text)).collect();
            let part = |number: u8| -> Vec<SearchDocument> {
                let chosen = documents
                    .iter()
                    .zip(&kept_in)
                    .filter(|(_, run)| **run == number || (number == 0 && **run == 3));
                chosen.map(|(document, _)| document.clone()).collect()
            };
            let runs: Vec<Run> = (0..3).map(|number| pack(&part(number))).collect();
            let these: Vec<u64> =
                (0..).zip(&kept_in).filter(|(_, run)| **run == 3).map(|(id, _)| id).collect();
            let (gone, _) = without(&runs[0].ids, &[], &these);
            let all = [stored(&runs[0], &gone), stored(&runs[1], &[]), stored(&runs[2], &[])];
            let left: Vec<_> = documents
                .iter()
                .filter(|document| !these.contains(&document.id))
                .cloned()
                .collect();
            proptest::prop_assert_eq!(merge(&all), pack(&left));
        }

        #[test]
        fn bytes_that_nobody_packed_are_merged_to_something(
            bytes in proptest::collection::vec(proptest::collection::vec(0u8..9, 0..40), 0..4),
        ) {
            let blocks = bytes.iter().map(|bytes| (&bytes[..], &bytes[..])).collect();
            let digests = bytes.first().map(Vec::as_slice).unwrap_or_default();
            let ids = &[3, 1];
            let run = merge(&[StoredRun { ids, digests, gone: &[3], blocks, numbers: &[] }]);
            proptest::prop_assert_eq!(run.count, 1);
            proptest::prop_assert_eq!(super::digests(&run.ids, &run.digests).count(), 1);
        }
    }
}
