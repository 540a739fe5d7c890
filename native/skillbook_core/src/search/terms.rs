//! Turns the words of a query into terms of the index: the word itself, other forms of it, similar
//! words, words that contain it, words that begin with it, and words of similar spelling.
//!
//! A term counts only if a listed entry has it. Otherwise a query would be answered differently
//! because of a hidden entry. That is decided before anything else about the term, so the time of
//! an answer does not tell of it either.

use super::function_words::{language, languages};
use super::index::{Count, Index};
use super::pairs::Pairs;
use super::scope::Scope;
use super::stems::Stems;
use super::words::{folded, hyphenated, parts, pieces, stemmed, whole, words, LONGEST};

/// The maximum length of a query, in bytes and in different words. Requests are sentences, and what
/// comes after so many words adds nothing.
const BYTES: usize = 2048;
const WORDS: usize = 32;
/// The maximum number of names in a query.
const NAMES: usize = 16;

/// The maximum number of terms that one word may expand to, for each reason.
const EXPANDED: usize = 32;
/// The maximum number of words that are corrected. A correction reads all terms of the index.
const CORRECTED: usize = 4;

/// The weights of terms that are not the word itself, relative to it: another form of the word, a
/// word with the same beginning, a compound with the word in it, a word that continues it, and a
/// correction.
const FORM: f32 = 0.8;
const SIMILAR: f32 = 0.35;
const COMPOUND: f32 = 0.9;
const LONGER: f32 = 0.4;
const ONLY_LONGER: f32 = 0.8;
const MISSPELT: f32 = 0.7;
/// The part of a word that the index has only as two words, or only in part.
const PART: f32 = 0.8;

/// The letters that similar words have in common, and that parts of compounds have at least.
const SIMILAR_LETTERS: usize = 4;
const PART_LETTERS: usize = 3;
/// The letters of a part if the rest of the word is unknown.
const ONLY_PART_LETTERS: usize = 5;

/// The weight of function words beside others, and the number of other words from which on they do
/// not count: names may have function words, and sentences have many.
const FUNCTION: f32 = 0.1;
const SENTENCE: usize = 5;
/// The weight of each further occurrence of a word in the query.
const AGAIN: f32 = 0.3;

/// A word of a query.
#[derive(Debug)]
pub struct Word {
    /// The terms that it stands for, with their weights.
    pub terms: Vec<(u32, f32)>,
    /// Long words and repeated ones weigh more, and function words less.
    pub weight: f32,
    /// Whether it says nothing about a subject, and the query has words that do.
    pub function: bool,
}

/// The terms that a query searches for.
#[derive(Debug)]
pub struct QueryTerms {
    /// Its words. A word that matches nothing has no terms.
    pub words: Vec<Word>,
    /// Pairs of words that follow each other.
    pub pairs: Vec<u32>,
    /// Names in the query, as they were written. An entry with one of these names scores higher.
    pub names: Vec<u32>,
    /// The whole query as a name.
    pub name: Option<u32>,
}

/// A folded word of the query.
#[derive(Debug)]
struct QueryWord {
    folded: String,
    /// Its term, and its stem.
    term: String,
    stem: String,
    /// The term of the joined word that it is a part of: `sendemail` for `send`.
    joined: Option<u32>,
    count: u16,
}

/// Looks up terms of an index among the entries of a scope.
struct Finder<'a> {
    index: &'a Index,
    scope: &'a Scope,
    stems: Stems,
    corrections: usize,
}

impl QueryTerms {
    /// The terms of a query among the entries of a scope.
    pub fn new(index: &Index, scope: &Scope, text: &str) -> QueryTerms {
        let text = cut(text);
        let mut finder = Finder { index, scope, stems: Stems::new(), corrections: CORRECTED };
        let chunks = text.split_whitespace();
        let mut names: Vec<u32> =
            chunks.clone().filter_map(|chunk| finder.find(&whole(chunk))).take(NAMES).collect();
        names.sort_unstable_by(|one, other| index.order(*one, *other));
        names.dedup();
        // `email.send` is a name and two words.
        let mut query_words: Vec<QueryWord> =
            chunks.flat_map(|chunk| finder.words_of(chunk)).collect();
        let mut pairs = Pairs::default();
        let mut pairs: Vec<u32> = query_words
            .iter()
            .filter_map(|word| finder.find(pairs.next(&word.term)?))
            .take(WORDS)
            .collect();
        pairs.sort_unstable_by(|one, other| index.order(*one, *other));
        pairs.dedup();
        // Of a repeated word the last stays, because the last word may be a prefix.
        let mut at = 0;
        while at < query_words.len().min(2 * WORDS) {
            let (before, after) = query_words.split_at_mut(at + 1);
            let word = &before[at];
            match after.iter_mut().find(|later| later.stem == word.stem) {
                Some(later) => {
                    later.count = later.count.saturating_add(word.count);
                    query_words.remove(at);
                }
                None => at += 1,
            }
        }
        let whole_query = finder.find(&whole(text));
        let language = language(query_words.iter().map(|word| word.term.as_str()));
        let function = |word: &QueryWord| languages(&word.term) & language != 0;
        let last = query_words.len().saturating_sub(1);
        let others = query_words.iter().filter(|word| !function(word)).count();
        query_words.truncate(WORDS);
        let mut words = Vec::with_capacity(query_words.len());
        for (at, word) in query_words.iter().enumerate() {
            if function(word) && others > 0 {
                if others >= SENTENCE {
                    continue;
                }
                let terms = finder.find(&word.term).map(|term| (term, 1.0)).into_iter().collect();
                words.push(Word { terms, weight: FUNCTION, function: true });
            } else {
                finder.expand(word, at == last, &mut words);
            }
        }
        QueryTerms { words, pairs, names, name: whole_query }
    }

    /// How far the whole query names an entry: 2 by its name, 1 by an alias, else 0.
    pub fn named(&self, index: &Index, place: u32) -> u8 {
        self.name.and_then(|term| index.count(term, place)).map_or(0, |count| count.names())
    }
}

fn cut(text: &str) -> &str {
    let end = (0..=BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

impl Finder<'_> {
    fn find(&self, term: &str) -> Option<u32> {
        self.index.find(term).filter(|term| self.scope.has(*term))
    }

    /// The words with a prefix that an entry has.
    fn had_prefixed(&self, prefix: &str) -> impl Iterator<Item = u32> + '_ {
        self.index.prefixed(prefix).into_iter().flat_map(|range| self.scope.had(range))
    }

    /// The words of a part of the query without spaces.
    fn words_of(&self, chunk: &str) -> Vec<QueryWord> {
        let mut found: Vec<QueryWord> = Vec::new();
        let mut joined = None;
        for place in words(chunk) {
            let word = &chunk[place.clone()];
            // "what's" and "don't" are function words with an ending.
            if let (Some(_), true) = (found.last(), chunk[..place.start].ends_with(['\'', '’'])) {
                match word {
                    "s" | "m" | "d" | "ll" | "re" | "ve" => continue,
                    "t" => {
                        found.pop();
                        continue;
                    }
                    _ => {}
                }
            }
            let parts = parts(word);
            if let Some(word) = hyphenated(chunk, &place) {
                joined = self.find(&stemmed(&word));
            } else if parts.len() > 1 {
                joined = self.find(&stemmed(word));
            }
            let short = parts.into_iter().flat_map(|part| pieces(part).map(|piece| &part[piece]));
            for part in short.filter(|piece| piece.len() <= LONGEST) {
                let term = stemmed(part);
                if !term.is_empty() {
                    let (folded, stem) = (folded(part), self.stems.of(&term));
                    found.push(QueryWord { folded, term, stem, joined, count: 1 });
                }
            }
            if !chunk[place.end..].starts_with('-') {
                joined = None;
            }
        }
        found
    }

    /// Appends a word of the query with its terms; or its parts, if the index has only those.
    fn expand(&mut self, word: &QueryWord, last: bool, out: &mut Vec<Word>) {
        let letters = word.stem.chars().count().min(12);
        let weight =
            (letters as f32 / 5.0).sqrt() * (1.0 + AGAIN * f32::from(word.count.min(10) - 1));
        let exact = self.find(&word.term);
        let mut terms: Vec<(u32, f32)> =
            exact.into_iter().chain(word.joined).map(|term| (term, 1.0)).collect();
        let mut alike = Vec::new();
        self.similar(word, &mut alike);
        let known = !terms.is_empty() || alike.iter().any(|(_, share)| *share == FORM);
        // Prefixes: for the word that may still be typed, and for words that match nothing.
        let before = terms.len();
        if last || !known {
            let share = if exact.is_some() { LONGER } else { ONLY_LONGER };
            self.longer(word, share, exact, &mut terms);
        }
        // Only the beginning of words that exist: then words that are merely alike are not meant.
        let begun = !known && terms.len() > before;
        if !begun {
            terms.extend(alike);
        }
        self.compounds(word, &mut terms);
        // Similar spellings only if there is nothing better: a query for a rare word must not be
        // answered with common ones.
        if !known && !begun && self.corrections > 0 {
            let corrected = self.misspelt(&word.folded, &word.term);
            self.corrections -= 1;
            if corrected.is_empty() && terms.is_empty() {
                let parts = self.split(&word.folded);
                if !parts.is_empty() {
                    out.extend(parts.into_iter().map(|(term, share)| Word {
                        terms: vec![(term, share)],
                        weight,
                        function: false,
                    }));
                    return;
                }
            }
            terms.extend(corrected);
        }
        // A term counts once, for the best reason.
        terms.sort_unstable_by(|(one, share), (other, than)| {
            self.index.order(*one, *other).then(than.total_cmp(share))
        });
        terms.dedup_by_key(|(term, _)| *term);
        out.push(Word { terms, weight, function: false });
    }

    /// Other forms of the word, and words with the same beginning: `translation` for `translate`.
    fn similar(&self, word: &QueryWord, out: &mut Vec<(u32, f32)>) {
        let stem = word.stem.as_str();
        let letters = stem.chars().count();
        if letters < 3 {
            return;
        }
        // Forms may differ in the last letter of the stem: `query` and `queries` have `queri`.
        let start = prefix_of(stem, SIMILAR_LETTERS.min(letters - 1));
        let mut found = Vec::new();
        for term in self.had_prefixed(start) {
            let length = self.index.stem_length(term);
            let other = self.index.term(term);
            let common = common(stem, other).min(length);
            let longer = length.max(stem.len());
            if length == stem.len() && common + 1 >= length && self.stems.of(other) == stem {
                found.push((FORM, term));
            } else if 2 * common >= longer && stem[..common].chars().count() >= SIMILAR_LETTERS {
                found.push((SIMILAR * common as f32 / longer as f32, term));
            }
        }
        found.sort_unstable_by(|(one, term), (other, than)| {
            other.total_cmp(one).then(self.index.order(*term, *than))
        });
        out.extend(found.into_iter().take(EXPANDED).map(|(share, term)| (term, share)));
    }

    /// Words of names that are several words written as one: `airqualityforecast` for `quality`.
    fn compounds(&self, word: &QueryWord, out: &mut Vec<(u32, f32)>) {
        let stem = word.stem.as_str();
        if stem.chars().count() < SIMILAR_LETTERS {
            return;
        }
        let named = |term: &u32| {
            let named = |(place, count): (u32, Count)| count.names() > 0 && self.scope.lists(place);
            self.index.postings(*term).any(named)
        };
        let terms = self.index.maybe_containing(stem).into_iter();
        let terms = terms.filter(|term| self.scope.has(*term));
        let found = terms.filter(named).filter_map(|term| {
            let compound = self.index.term(term);
            let at = compound.find(stem)?;
            // Beside it, another word begins or ends. "Rate" is not a part of "generate".
            let known =
                |part: &str| part.chars().count() >= PART_LETTERS && self.find(part).is_some();
            let (before, after) = (&compound[..at], &compound[at + stem.len()..]);
            let beside = before.char_indices().any(|(at, _)| known(&before[at..]))
                || after.char_indices().any(|(at, c)| known(&after[..at + c.len_utf8()]));
            beside.then_some((term, COMPOUND * stem.len() as f32 / compound.len() as f32))
        });
        out.extend(found.take(EXPANDED));
    }

    /// Words that begin with the word.
    fn longer(&self, word: &QueryWord, share: f32, exact: Option<u32>, out: &mut Vec<(u32, f32)>) {
        let folded = word.folded.as_str();
        // The terms that add the fewest letters are the most likely, so the limit cuts the others.
        let terms = self.had_prefixed(folded);
        let mut longer: Vec<u32> = terms.filter(|term| Some(*term) != exact).collect();
        let length = |term: u32| self.index.term(term).len();
        longer.sort_unstable_by(|one, other| {
            length(*one).cmp(&length(*other)).then_with(|| self.index.order(*one, *other))
        });
        out.extend(
            longer.into_iter().take(EXPANDED).map(|term| {
                (term, share * folded.len() as f32 / self.index.term(term).len() as f32)
            }),
        );
    }

    /// The words that a word is made of: the fewest known ones or, if some of it is unknown, a long
    /// one at its beginning or end.
    fn split(&self, word: &str) -> Vec<(u32, f32)> {
        let ends: Vec<usize> = word.char_indices().map(|(at, _)| at).chain([word.len()]).collect();
        let letters = ends.len() - 1;
        let part = |from: usize, to: usize| self.find(&stemmed(&word[ends[from]..ends[to]]));
        // The fewest parts up to each letter, with the last of them.
        let mut best: Vec<Option<(usize, usize, u32)>> = vec![None; letters + 1];
        for to in PART_LETTERS..=letters {
            for from in 0..=to - PART_LETTERS {
                let before = match from {
                    0 => 0,
                    _ => match best[from] {
                        Some((parts, ..)) => parts,
                        None => continue,
                    },
                };
                if best[to].is_none_or(|(parts, ..)| before + 1 < parts) {
                    if let Some(term) = part(from, to) {
                        best[to] = Some((before + 1, from, term));
                    }
                }
            }
        }
        let (mut parts, mut at) = (Vec::new(), letters);
        while let Some((_, from, term)) = best[at] {
            parts.push((term, PART));
            at = from;
        }
        if !parts.is_empty() {
            return parts;
        }
        let ends = (ONLY_PART_LETTERS..letters).rev().find_map(|count| {
            let found = part(0, count).or_else(|| part(letters - count, letters))?;
            Some((found, PART * count as f32 / letters as f32))
        });
        ends.into_iter().collect()
    }

    /// The terms with the fewest edits: at most one for words of four to seven letters, two for
    /// longer ones.
    fn misspelt(&self, folded: &str, word: &str) -> Vec<(u32, f32)> {
        let length = word.chars().count();
        let limit = match folded.chars().count() {
            0..=3 => return Vec::new(),
            4..=7 => 1,
            _ => 2,
        };
        let distance = |term: u32| {
            let other = self.index.term(term);
            // Bytes are letters only in ASCII, so the quick test is for ASCII alone.
            let near = match word.is_ascii() && other.is_ascii() {
                true => {
                    other.len().abs_diff(length) <= limit
                        && near(word.as_bytes(), other.as_bytes(), limit)
                }
                false => other.chars().count().abs_diff(length) <= limit,
            };
            let distance = near
                .then(|| strsim::osa_distance(word, other))
                .filter(|distance| *distance <= limit)?;
            Some((distance, term))
        };
        let terms = self.index.maybe_within(word, limit).filter(|term| self.scope.has(*term));
        let mut close: Vec<_> = terms.filter_map(distance).collect();
        close.sort_unstable_by(|(near, one), (far, other)| {
            near.cmp(far).then_with(|| self.index.order(*one, *other))
        });
        let fewest = close.first().map_or(0, |(distance, _)| *distance);
        let best = close.into_iter().take_while(|(distance, _)| *distance == fewest).take(EXPANDED);
        best.map(|(distance, term)| (term, MISSPELT / distance as f32)).collect()
    }
}

/// The first letters of a word.
fn prefix_of(word: &str, letters: usize) -> &str {
    word.char_indices().nth(letters).map_or(word, |(at, _)| &word[..at])
}

/// The number of bytes of the letters with which both words begin.
fn common(one: &str, other: &str) -> usize {
    let same = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    (0..=same).rev().find(|at| one.is_char_boundary(*at)).unwrap_or(0)
}

/// Whether all but `limit` letters of a word occur near their position in another one. That is
/// necessary for being within `limit` edits, and ten times as fast to check.
fn near(word: &[u8], other: &[u8], limit: usize) -> bool {
    let astray = |(at, byte): &(usize, &u8)| {
        let around = at.saturating_sub(limit)..(at + limit + 1).min(other.len());
        !other.get(around).is_some_and(|around| around.contains(byte))
    };
    word.iter().enumerate().filter(astray).nth(limit).is_none()
}

#[cfg(test)]
mod tests {
    use super::near;

    proptest::proptest! {
        #[test]
        fn near_accepts_all_words_within_the_limit(
            word in "[a-c]{1,8}",
            other in "[a-c]{1,8}",
            limit in 1..3usize,
        ) {
            let within = strsim::osa_distance(&word, &other) <= limit;
            proptest::prop_assert!(!within || near(word.as_bytes(), other.as_bytes(), limit));
        }
    }
}
