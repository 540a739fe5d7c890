//! The terms of documents, packed for the table that keeps them.

use std::collections::HashMap;

use super::{form_of, Stems};
use crate::search::words;

/// So many words of a document are searched; places are 16 bits wide.
const MOST_WORDS: usize = 60_000;
/// So that no phrase goes from one part of a document into the next.
const GAP: usize = 8;
/// The mark of the terms that are words as they are written; no word has it.
const FORM: char = '\u{E000}';

/// What is searched of a document.
#[derive(Debug, Clone, Default)]
pub struct Document {
    /// The number by which the index knows it, below 2^40.
    pub id: u64,
    /// Its name, its title and what else it is called.
    pub titles: Vec<String>,
    /// Its text.
    pub content: String,
}

/// A term with the documents that have it, in the order in which they were given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Postings {
    /// A stem, or U+E000 and a word as it is written.
    pub term: String,
    /// Seven bytes a document: five of its id, one each for how often the term is in its titles and in its text, where
    /// 255 stands for more too.
    pub documents: Vec<u8>,
    /// Of stems, for each document: five bytes of its id, two with the count of its places, and two for each place.
    pub places: Vec<u8>,
}

/// The terms of documents, sorted.
pub fn postings(documents: &[Document]) -> Vec<Postings> {
    let mut index = Index { stems: Stems::new(), known: HashMap::new(), terms: HashMap::new(), postings: Vec::new() };
    for document in documents {
        index.add(document);
    }
    index.postings.sort_unstable_by(|one, other| one.term.cmp(&other.term));
    index.postings
}

struct Index {
    stems: Stems,
    /// The terms of a form: its stem and itself.
    known: HashMap<String, [u32; 2]>,
    terms: HashMap<String, u32>,
    postings: Vec<Postings>,
}

impl Index {
    fn add(&mut self, document: &Document) {
        let titles = document.titles.iter().map(|text| (text.as_str(), true));
        let mut found = Vec::new();
        let (mut form, mut at, mut left) = (String::new(), 0, MOST_WORDS);
        for (text, in_titles) in titles.chain([(document.content.as_str(), false)]) {
            for place in words::words(text) {
                if left == 0 {
                    break;
                }
                if form_of(&text[place], &mut form) {
                    let terms = self.terms(&form);
                    found.push((terms, in_titles, at));
                    at += 1;
                    left -= 1;
                }
            }
            at += GAP;
        }
        for (kind, with_places) in [(0, true), (1, false)] {
            found.sort_unstable_by_key(|(terms, _, at)| (terms[kind], *at));
            for group in found.chunk_by(|(one, ..), (other, ..)| one[kind] == other[kind]) {
                let postings = &mut self.postings[group[0].0[kind] as usize];
                let in_titles = group.iter().filter(|(_, in_titles, _)| *in_titles).count();
                let id = &document.id.to_be_bytes()[3..];
                postings.documents.extend(id);
                postings.documents.extend([byte(in_titles), byte(group.len() - in_titles)]);
                if with_places {
                    postings.places.extend(id);
                    postings.places.extend(short(group.len()));
                    postings.places.extend(group.iter().flat_map(|(.., at)| short(*at)));
                }
            }
        }
    }

    fn terms(&mut self, form: &str) -> [u32; 2] {
        if let Some(terms) = self.known.get(form) {
            return *terms;
        }
        let stem = self.stems.of(form);
        let terms = [self.term(stem), self.term(format!("{FORM}{form}"))];
        self.known.insert(form.to_owned(), terms);
        terms
    }

    fn term(&mut self, term: String) -> u32 {
        let next = self.postings.len() as u32;
        *self.terms.entry(term).or_insert_with_key(|term| {
            self.postings.push(Postings { term: term.clone(), ..Postings::default() });
            next
        })
    }
}

fn byte(count: usize) -> u8 {
    u8::try_from(count).unwrap_or(u8::MAX)
}

/// Counts and places are below 2^16, for there are no more words.
fn short(number: usize) -> [u8; 2] {
    u16::try_from(number).unwrap_or(u16::MAX).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(id: u64, titles: &[&str], content: &str) -> Document {
        Document { id, titles: titles.iter().map(|title| title.to_string()).collect(), content: content.to_owned() }
    }

    fn find<'a>(all: &'a [Postings], term: &str) -> &'a Postings {
        all.iter().find(|postings| postings.term == term).unwrap_or_else(|| panic!("no {term:?}"))
    }

    #[test]
    fn a_term_has_its_documents_with_counts_and_places() {
        let all = postings(&[
            document(1, &["Plans"], "a plan, planning"),
            document(0x01_0203_0405, &[], "x"),
            document(7, &[], "plan"),
        ]);
        let plan = find(&all, "plan");
        assert_eq!(plan.documents, [0, 0, 0, 0, 1, 1, 2, 0, 0, 0, 0, 7, 0, 1]);
        // Behind the title there is a gap of eight places.
        assert_eq!(plan.places, [0, 0, 0, 0, 1, 0, 3, 0, 0, 0, 10, 0, 11, 0, 0, 0, 0, 7, 0, 1, 0, 0]);
        assert_eq!(find(&all, "x").documents, [1, 2, 3, 4, 5, 0, 1]);
        let form = find(&all, "\u{E000}plan");
        assert_eq!(form.documents, [0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 7, 0, 1]);
        assert!(form.places.is_empty());
        let terms: Vec<_> = all.iter().map(|postings| postings.term.as_str()).collect();
        assert_eq!(
            terms,
            ["a", "plan", "x", "\u{E000}a", "\u{E000}plan", "\u{E000}planning", "\u{E000}plans", "\u{E000}x"]
        );
    }

    #[test]
    fn counts_and_words_have_limits() {
        let many = "a ".repeat(70_000) + "end";
        let all = postings(&[document(1, &["b"], &many)]);
        let a = find(&all, "a");
        assert_eq!(a.documents[5..], [0, 255]);
        assert_eq!(a.places[5..7], (MOST_WORDS as u16 - 1).to_be_bytes());
        assert!(all.iter().all(|postings| postings.term != "end"));
        let long = "x".repeat(words::LONGEST + 1);
        assert!(postings(&[document(1, &[], &long)]).is_empty());
        assert!(postings(&[document(1, &[], " \u{345} ")]).is_empty());
    }

    proptest::proptest! {
        #[test]
        fn documents_together_have_what_each_has_alone(texts in proptest::collection::vec("([a-c]{1,2}s?|[ .é\u{301}]){0,20}", 0..5)) {
            let documents: Vec<_> = (0..).zip(&texts).map(|(id, text)| document(id, &["as b"], text)).collect();
            let mut apart: std::collections::BTreeMap<String, Postings> = Default::default();
            for document in &documents {
                for one in postings(std::slice::from_ref(document)) {
                    let all = apart.entry(one.term.clone()).or_default();
                    all.term = one.term;
                    all.documents.extend(one.documents);
                    all.places.extend(one.places);
                }
            }
            proptest::prop_assert_eq!(postings(&documents), apart.into_values().collect::<Vec<_>>());
        }
    }
}
