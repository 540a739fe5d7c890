//! Scores the documents in the database that match a query, from the rows that the caller has read.
//! For the entries of a catalog, with an index in memory, see `search/rank.rs`.

use std::cmp::Reverse;

use rustc_hash::FxHashSet;

use super::{ids, postings, BlockReader};
use crate::search::scope::rarity;

/// The limit of 1 + 1/4 + 1/9 + … (π²/6). Dividing by it keeps ranks below 1.
const SUM: f64 = 1.644_934_066_85;
/// The weight of an occurrence in the text, relative to titles.
const CONTENT: f64 = 0.4;
/// The weight of words beside meaning: how much of a cosine they are worth in a document that has
/// all of them in its titles many times.
const WORDS: f64 = 0.1;
/// The lowest similarity of a document that is found only by meaning. For most models, texts that
/// have nothing in common are less similar.
const LEAST: f64 = 0.2;
/// The maximum number of clauses in a query that may be a title. Documents with all of them in
/// their titles come first.
const TITLE_CLAUSES: usize = 3;
/// Similarities are summed in millionths, so that the order of documents does not matter.
const UNIT: f64 = 1e6;
/// The resolution of scores: parts of ten thousand.
const PARTS: f64 = 10_000.0;

/// The first and the last term of a range, which are equal for a single term.
pub type Range = (String, String);

/// One way to match a clause: a range of terms, or several ranges for terms in a row (a phrase).
pub type Alternative = Vec<Range>;

/// A part of a query. Where a document matches several alternatives, the one with the higher rank
/// counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Clause {
    /// Matches documents with one of the alternatives.
    With(Vec<Alternative>),
    /// Leaves out documents with one of the alternatives.
    Without(Vec<Alternative>),
}

impl Clause {
    fn alternatives(&self) -> &[Alternative] {
        let (Clause::With(alternatives) | Clause::Without(alternatives)) = self;
        alternatives
    }

    /// The ranges, in order.
    pub fn ranges(&self) -> impl Iterator<Item = &Range> {
        self.alternatives().iter().flatten()
    }
}

/// A block that may have terms of a range.
#[derive(Debug, Clone, Copy)]
pub struct BlockRow<'a> {
    /// The number of the range, counted over all clauses and then the filters.
    pub range: usize,
    /// The packed ids of the documents that are gone from its run.
    pub gone: &'a [u8],
    /// As in [`super::Block`].
    pub documents: &'a [u8],
    /// As in [`super::Block`]; only phrases need it.
    pub places: &'a [u8],
}

/// The number of hits to return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// This many, and all others with the same score as the last. The caller decides which of those
    /// come first.
    Level(usize),
    /// This many. Of equal scores, the highest ids come first; these are the newest.
    Newest(usize),
}

/// A search by meaning beside that by words.
#[derive(Debug, Clone, Copy)]
pub struct Meaning<'a> {
    /// The similarity of each document that the reader may see and that has one, by ascending id.
    pub similar: &'a [(u64, f32)],
    /// Whether documents that the clauses do not match are found too. The others are only sorted.
    pub extends: bool,
}

/// The result of a query.
#[derive(Debug, PartialEq, Eq, Default)]
pub struct Found {
    /// Whether the documents match all clauses, or only some. It does not count those that are
    /// found only by meaning.
    pub all: bool,
    /// The number of documents that are found only by meaning.
    pub by_meaning: usize,
    /// The number of documents that match.
    pub total: usize,
    /// The best documents and their scores, in parts of ten thousand.
    pub hits: Vec<(u64, u64)>,
}

/// The rank of a document by occurrences of a term, which count 1, 1/4, 1/9 and so on, those in
/// titles first. A word in the title always beats any number of words in the text.
struct Ranks([f64; 256]);

impl Ranks {
    fn new() -> Ranks {
        let mut squares = [0.0; 256];
        for at in 1..256 {
            squares[at] = squares[at - 1] + 1.0 / (at * at) as f64;
        }
        Ranks(squares)
    }

    fn of(&self, titles: u64, contents: u64) -> f64 {
        let up_to = |count: u64| self.0[count.min(255) as usize];
        let in_titles = up_to(titles);
        (in_titles + CONTENT * (up_to(titles.saturating_add(contents)) - in_titles)) / SUM
    }
}

/// A document with a term of a range: id, counts in titles and text, places.
type Occurrence<'a> = (u64, u64, u64, &'a [u8]);
/// Documents with scores, by ascending id.
type Scored = Vec<(u64, f64)>;

/// Returns the documents that match all clauses or, if there are none, those that match some.
/// Without a clause that matches, the documents that pass the filters. Documents that a clause
/// leaves out are in neither.
///
/// A clause weighs more if fewer of the `documents` that the reader may see match it. Everything
/// that enters a score is in the rows that the caller chose by the reader's rights, so hidden
/// documents cannot affect it. Documents that are left out or do not pass the filters are not
/// counted either.
///
/// With a meaning, scores are similarities, from -1 to 1, plus 1 and a small part for the words.
/// Documents without a vector are between the average and the best, by their words. Found are the
/// documents that match, and those that are at least as near to the best as to the average. If no
/// document that passes has a vector, the words decide alone.
pub fn rank(
    clauses: &[Clause],
    filters: &[Range],
    rows: &[BlockRow<'_>],
    documents: usize,
    meaning: Option<Meaning<'_>>,
    limit: Limit,
) -> Found {
    let ranks = Ranks::new();
    // The caller numbers rows by range: first those of the clauses, then the filters.
    let ranges: Vec<_> = clauses.iter().flat_map(Clause::ranges).chain(filters).collect();
    let mut found: Vec<Vec<Occurrence>> = vec![Vec::new(); ranges.len()];
    for row in rows {
        if let (Some(range), Some(found)) = (ranges.get(row.range), found.get_mut(row.range)) {
            read(row, range, found);
        }
    }
    for found in &mut found {
        if !found.is_sorted_by_key(|(id, ..)| *id) {
            found.sort_unstable_by_key(|(id, ..)| *id);
        }
    }
    let passed = found.split_off(ranges.len() - filters.len());
    let mut found = found.into_iter();
    let (mut weighed, mut without) = (Vec::new(), Vec::new());
    for clause in clauses {
        let scored = matches(clause.alternatives(), &mut found, &ranks);
        match clause {
            Clause::With(_) => weighed.push(scored),
            Clause::Without(_) => without.extend(scored.iter().map(|(id, _)| *id)),
        }
    }
    without.sort_unstable();
    without.dedup();
    let left = |id: &u64| without.binary_search(id).is_err();
    // The documents that pass all filters. From here on nothing else exists.
    let mut within =
        passed.iter().map(|found| passing(found)).reduce(|one, other| both(&one, &other));
    if let (Some(within), false) = (&mut within, without.is_empty()) {
        within.retain(left);
    }
    let documents =
        within.as_ref().map_or(documents.saturating_sub(without.len()), |within| within.len());
    if weighed.is_empty() {
        return best(
            within.unwrap_or_default().into_iter().map(|id| (id, 0.0)).collect(),
            true,
            0,
            limit,
        );
    }
    let mut similar = meaning.map_or_else(Vec::new, |meaning| meaning.similar.to_vec());
    similar.retain(|(id, _)| {
        within.as_ref().map_or_else(|| left(id), |within| within.binary_search(id).is_ok())
    });
    let titled = if similar.is_empty() { Vec::new() } else { with_titles(&weighed) };
    let mut sum = 0.0;
    for scored in &mut weighed {
        // Such documents must not count for the rarity either.
        if let Some(within) = &within {
            scored.retain(|(id, _)| within.binary_search(id).is_ok());
        } else if !without.is_empty() {
            scored.retain(|(id, _)| left(id));
        }
        let weight = rarity(documents as f64, scored.len() as f64);
        scored.iter_mut().for_each(|(_, rank)| *rank *= weight);
        sum += weight;
    }
    // Documents with only some of the words are a fallback, never mixed in.
    let all = of_all(&weighed);
    let is_all = !all.is_empty();
    let any = if is_all && similar.is_empty() { Vec::new() } else { of_any(&weighed) };
    let Some(meaning) = meaning.filter(|_| !similar.is_empty()) else {
        return best(if is_all { all } else { any }, is_all, 0, limit);
    };
    let matching = ids_of(if is_all { &all } else { &any });
    let any: Scored = any.into_iter().map(|(id, score)| (id, score / sum)).collect();
    let mixed = mix(&any, &similar, |id| matching.binary_search(&id).is_ok(), meaning.extends);
    let by_meaning = mixed.len() - matching.len();
    let first = |id: &u64| f64::from(u8::from(titled.binary_search(id).is_ok()));
    // A similarity and the part of words are less than three together.
    let scored = mixed.into_iter().map(|(id, score)| (id, score + 3.0 * first(&id))).collect();
    best(scored, is_all, by_meaning, limit)
}

/// The documents that have all clauses in their titles, if the query is short enough to be one.
fn with_titles(scored: &[Scored]) -> Vec<u64> {
    if scored.len() > TITLE_CLAUSES {
        return Vec::new();
    }
    // Any number of words in the text count less than one in a title.
    let in_titles = |scored: &Scored| -> Vec<u64> {
        scored.iter().filter(|(_, rank)| *rank > CONTENT).map(|(id, _)| *id).collect()
    };
    scored.iter().map(in_titles).reduce(|one, other| both(&one, &other)).unwrap_or_default()
}

/// Adds the scores of words, from 0 to 1, to similarities. Both lists are sorted by id, and so is
/// the result.
fn mix(
    words: &[(u64, f64)],
    similar: &[(u64, f32)],
    matches: impl Fn(u64) -> bool,
    extends: bool,
) -> Scored {
    let (mut sum, mut highest) = (0i64, f64::MIN);
    for (_, similarity) in similar {
        sum += (f64::from(*similarity) * UNIT).round() as i64;
        highest = highest.max(f64::from(*similarity));
    }
    let average = sum as f64 / UNIT / similar.len().max(1) as f64;
    // The average is rounded, so it may be above all of them.
    let least = LEAST.max(highest.min((average + highest) / 2.0));
    let most = words.iter().filter(|(id, _)| matches(*id)).map(|(_, words)| *words);
    let most = most.fold(0.0, f64::max);
    let mut ids: Vec<u64> =
        words.iter().map(|(id, _)| *id).chain(similar.iter().map(|(id, _)| *id)).collect();
    ids.sort_unstable();
    ids.dedup();
    let score = |id: u64| -> Option<f64> {
        let words = words.binary_search_by_key(&id, |(id, _)| *id).map_or(0.0, |at| words[at].1);
        let own = similar.binary_search_by_key(&id, |(id, _)| *id).ok();
        let own = own.map(|at| f64::from(similar[at].1));
        let is_found = matches(id) || extends && own.is_some_and(|own| own >= least);
        let similarity = own.unwrap_or(average + (highest - average) * (words / most).min(1.0));
        is_found.then_some(1.0 + similarity + WORDS * words)
    };
    ids.into_iter().filter_map(|id| Some((id, score(id)?))).collect()
}

/// Appends the occurrences of a range in a block.
fn read<'a>(row: &BlockRow<'a>, (first, last): &Range, out: &mut Vec<Occurrence<'a>>) {
    let gone: FxHashSet<u64> = ids(row.gone).collect();
    let mut terms = BlockReader::new(row.documents, row.places);
    while let Some((documents, places)) = terms.next() {
        if terms.term.as_slice() > last.as_bytes() {
            return;
        }
        if terms.term.as_slice() >= first.as_bytes() {
            let left = postings(documents, places).filter(|posting| !gone.contains(&posting.id));
            out.extend(
                left.map(|posting| (posting.id, posting.titles, posting.contents, posting.places)),
            );
        }
    }
}

fn ids_of(scored: &[(u64, f64)]) -> Vec<u64> {
    scored.iter().map(|(id, _)| *id).collect()
}

fn passing(found: &[Occurrence]) -> Vec<u64> {
    let mut ids: Vec<u64> = found.iter().map(|(id, ..)| *id).collect();
    ids.dedup();
    ids
}

/// The numbers in both of two ascending lists.
fn both(one: &[u64], other: &[u64]) -> Vec<u64> {
    let (few, many) = if one.len() < other.len() { (one, other) } else { (other, one) };
    few.iter().copied().filter(|id| many.binary_search(id).is_ok()).collect()
}

/// The documents that match one of the alternatives, whose occurrences come next.
fn matches<'a>(
    alternatives: &[Alternative],
    found: &mut impl Iterator<Item = Vec<Occurrence<'a>>>,
    ranks: &Ranks,
) -> Scored {
    let scored = alternatives.iter().map(|alternative| match alternative.len() {
        1 => found.next().map(|found| terms(&found, ranks)).unwrap_or_default(),
        count => phrase(&found.by_ref().take(count).collect::<Vec<_>>(), ranks),
    });
    // The higher rank of a document stays: it sorts first, and the others are removed as
    // duplicates.
    scored
        .reduce(|mut all, more| {
            all.extend(more);
            all.sort_unstable_by(|(one, rank), (other, than)| {
                one.cmp(other).then(than.total_cmp(rank))
            });
            all.dedup_by_key(|(id, _)| *id);
            all
        })
        .unwrap_or_default()
}

/// The documents with terms of a range. Their occurrences are added up.
fn terms(found: &[Occurrence], ranks: &Ranks) -> Scored {
    let groups = found.chunk_by(|(one, ..), (other, ..)| one == other);
    let sum = |group: &[Occurrence], part: fn(&Occurrence) -> u64| {
        group.iter().map(part).fold(0, u64::saturating_add)
    };
    groups
        .map(|group| (group[0].0, ranks.of(sum(group, |one| one.1), sum(group, |one| one.2))))
        .collect()
}

/// The documents with the terms in a row, with the mean of their ranks.
fn phrase(words: &[Vec<Occurrence>], ranks: &Ranks) -> Scored {
    let mut begins: Option<Vec<(u64, f64, Vec<u64>)>> = None;
    for (at, found) in words.iter().enumerate() {
        let at = at as u64;
        // The place where the phrase would begin, if this is its word number `at`. Places of all
        // words that agree are phrases.
        let starts = |places: &[u8]| {
            ids(places).filter_map(|place| place.checked_sub(at)).collect::<Vec<u64>>()
        };
        let next = found.iter().filter_map(|(id, titles, contents, places)| {
            let rank = ranks.of(*titles, *contents);
            let (rank, starts) = match &begins {
                None => (rank, starts(places)),
                Some(begins) => {
                    let (_, sum, known) =
                        &begins[begins.binary_search_by_key(id, |(id, ..)| *id).ok()?];
                    (sum + rank, both(&starts(places), known))
                }
            };
            (!starts.is_empty()).then_some((*id, rank, starts))
        });
        begins = Some(next.collect());
    }
    let count = words.len() as f64;
    begins.unwrap_or_default().into_iter().map(|(id, sum, _)| (id, sum / count)).collect()
}

/// The documents that match all clauses. Scores are added in the order of the query: floating-point
/// addition is not associative, and the same query must give the same scores.
fn of_all(weighed: &[Scored]) -> Scored {
    // Only documents of the rarest clause can match all of them.
    let Some(fewest) = weighed.iter().min_by_key(|scored| scored.len()) else {
        return Vec::new();
    };
    let score = |id: u64| -> Option<f64> {
        let of =
            |scored: &Scored| Some(scored[scored.binary_search_by_key(&id, |(id, _)| *id).ok()?].1);
        weighed.iter().map(of).sum()
    };
    fewest.iter().filter_map(|(id, _)| Some((*id, score(*id)?))).collect()
}

fn of_any(weighed: &[Scored]) -> Scored {
    let mut all: Scored = weighed.iter().flatten().copied().collect();
    // A stable sort, for the same reason.
    all.sort_by_key(|(id, _)| *id);
    let groups = all.chunk_by(|(one, _), (other, _)| one == other);
    groups.map(|group| (group[0].0, group.iter().map(|(_, score)| score).sum())).collect()
}

fn best(scored: Scored, all: bool, by_meaning: usize, limit: Limit) -> Found {
    let total = scored.len();
    let mut hits: Vec<(u64, u64)> =
        scored.into_iter().map(|(id, score)| (id, (score * PARTS).round() as u64)).collect();
    let (Limit::Level(count) | Limit::Newest(count)) = limit;
    if let Some(last) = count.checked_sub(1).filter(|last| *last < total) {
        let (_, (_, score), _) =
            // Everything at least as good as the last hit; ties are for the caller or the ids to
            // decide.
            hits.select_nth_unstable_by_key(last, |(_, score)| Reverse(*score));
        let score = *score;
        hits.retain(|(_, other)| *other >= score);
    }
    if let Limit::Newest(count) = limit {
        hits.sort_unstable_by_key(|(id, score)| (Reverse(*score), Reverse(*id)));
        hits.truncate(count);
    } else {
        hits.sort_unstable_by_key(|(id, score)| (Reverse(*score), *id));
    }
    Found { all, by_meaning, total, hits }
}

#[cfg(test)]
mod tests {
    use super::super::{pack, Run, SearchDocument};
    use super::*;

    fn index(texts: &[(&str, &str)]) -> Run {
        let document = |(id, (title, text)): (u64, &(&str, &str))| SearchDocument {
            id,
            titles: vec![title.to_string()],
            content: text.to_string(),
            fields: vec![format!("in {title}")],
        };
        pack(&(1..).zip(texts).map(document).collect::<Vec<_>>())
    }

    fn term(term: &str) -> (String, String) {
        (term.to_owned(), term.to_owned())
    }

    fn word(text: &str) -> Clause {
        Clause::With(vec![vec![term(text)]])
    }

    fn phrase(words: &[&str]) -> Alternative {
        words.iter().map(|word| term(word)).collect()
    }

    fn found(
        index: &Run,
        gone: &[u8],
        clauses: &[Clause],
        filters: &[&str],
        documents: usize,
        limit: usize,
    ) -> Found {
        let filters: Vec<_> = filters.iter().map(|filter| term(filter)).collect();
        let ranges = clauses.iter().flat_map(Clause::ranges).chain(&filters).count();
        let rows = (0..ranges).flat_map(|range| {
            let row = move |(documents, places)| BlockRow { range, gone, documents, places };
            index.blocks.iter().map(|block| (&block.documents[..], &block.places[..])).map(row)
        });
        rank(clauses, &filters, &rows.collect::<Vec<_>>(), documents, None, Limit::Level(limit))
    }

    fn ids(found: &Found) -> Vec<u64> {
        found.hits.iter().map(|(id, _)| *id).collect()
    }

    #[test]
    fn titles_come_first_and_few_before_many() {
        let often = "budget ".repeat(500);
        let index =
            index(&[("a", &often), ("budget", "x"), ("c", "rare budget"), ("d", "budget budget")]);
        let found = |clauses: &[Clause]| found(&index, &[], clauses, &[], 4, 10);
        let one = found(&[word("budget")]);
        assert_eq!((ids(&one), one.total, one.all), (vec![2, 1, 4, 3], 4, true));
        // Two documents have the second score, where only those of one clause are counted.
        let both = found(&[word("rare"), word("budget")]);
        assert_eq!((ids(&both), both.all), (vec![3], true));
        let some = found(&[word("rare"), word("x")]);
        assert_eq!((ids(&some), some.all, some.total), (vec![2, 3], false, 2));
    }

    /// The hits of a search by words and meaning, without scores.
    fn with_meaning(
        clauses: &[Clause],
        filters: &[&str],
        similar: &[(u64, f32)],
        extends: bool,
    ) -> (Vec<u64>, bool, usize) {
        let index = index(&[
            ("tea", "green tea"),
            ("cups", "for tea and milk"),
            ("milk", "white"),
            ("rain", "wet"),
            ("snow", "cold"),
        ]);
        let filters: Vec<_> = filters.iter().map(|filter| term(filter)).collect();
        let ranges = clauses.iter().flat_map(Clause::ranges).chain(&filters).count();
        let rows = (0..ranges).flat_map(|range| {
            let blocks = index.blocks.iter();
            let row = move |(documents, places)| BlockRow { range, gone: &[], documents, places };
            blocks.map(|block| (&block.documents[..], &block.places[..])).map(row)
        });
        let rows: Vec<_> = rows.collect();
        let meaning = Some(Meaning { similar, extends });
        let found = rank(clauses, &filters, &rows, 5, meaning, Limit::Level(9));
        assert_eq!(found.total, found.hits.len());
        (ids(&found), found.all, found.by_meaning)
    }

    #[test]
    fn meaning_sorts_and_extends() {
        let similar = [(1, 0.1), (2, 0.2), (3, 0.7), (4, 0.6), (5, -0.5)];
        let both =
            |clauses: &[Clause], similar: &[(u64, f32)]| with_meaning(clauses, &[], similar, true);
        let tea = || word("tea");
        // A title of a short query comes first, then meaning. At least as near to the best (0.7) as
        // to the average (0.22) are the third and the fourth.
        assert_eq!(both(&[tea()], &similar), (vec![1, 3, 4, 2], true, 2));
        // Otherwise words add a small part, here to the second.
        let few = [(2, 0.58), (4, 0.6), (5, 0.0)];
        assert_eq!(both(&[word("milk"), word("and")], &few), (vec![2, 4], true, 1));
        // Documents with some of the words are found if none has all.
        let some = [word("white"), word("for"), word("no")];
        // Those without a vector are between the average and the best, by their words.
        assert_eq!(both(&some, &[(4, 0.9), (5, 0.1)]), (vec![2, 3, 4], false, 1));
        // Without a vector that passes, words decide alone.
        assert_eq!(both(&[tea()], &[]), (vec![1, 2], true, 0));
        assert_eq!(both(&[tea(), Clause::Without(vec![vec![term("wet")]])], &[(4, 0.9)]).0, [1, 2]);
        // Only sorted.
        assert_eq!(with_meaning(&[word("milk")], &[], &similar, false), (vec![3, 2], true, 0));
        let titles = [word("and"), word("for"), tea(), word("milk")];
        assert_eq!(with_meaning(&titles, &[], &similar, false), (vec![2], true, 0));
    }

    #[test]
    fn meaning_brings_back_nothing_that_is_left_out() {
        let similar = [(1, 0.9), (2, 0.8), (3, 0.85), (4, 0.8), (5, -0.9)];
        let without = |text: &str| Clause::Without(vec![vec![term(text)]]);
        let rows: [(&[Clause], &[&str], &[u64]); 5] = [
            (&[word("nowhere")], &[], &[1, 3, 2, 4]),
            (&[word("nowhere"), without("tea")], &[], &[3, 4]),
            (&[word("nowhere")], &["in milk"], &[3]),
            (&[word("nowhere"), without("white")], &["in milk"], &[]),
            (&[word("nowhere")], &["in snow"], &[]),
        ];
        for (clauses, filters, expected) in rows {
            let (mut found, ..) = with_meaning(clauses, filters, &similar, true);
            let mut expected = expected.to_vec();
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected);
        }
        // A text that has little in common with the query is not found, even if it is the nearest.
        assert_eq!(with_meaning(&[word("nowhere")], &[], &[(1, 0.19)], true).0, [0; 0]);
        assert_eq!(with_meaning(&[word("nowhere")], &[], &[(1, 0.21)], true).0, [1]);
    }

    proptest::proptest! {
        /// Documents that are left out or do not pass change neither scores nor order.
        #[test]
        fn left_out_documents_do_not_count_for_meaning(
            others in proptest::collection::vec(-1.0f32..1.0, 2),
            own in proptest::collection::vec(-1.0f32..1.0, 3),
            filtered: bool,
        ) {
            let index = index(&[
                ("a", "tea"), ("b", "tea x"), ("a", "tea milk"), ("b", "x"), ("a", "milk"),
            ]);
            let clauses = match filtered {
                true => vec![word("tea")],
                false => vec![word("tea"), Clause::Without(vec![vec![term("x")]])],
            };
            let filters = if filtered { vec![term("in a")] } else { Vec::new() };
            let found = |others: &[f32]| {
                let blocks = (0..3).flat_map(|range| index.blocks.iter().map(move |block| BlockRow {
                    range, gone: &[], documents: &block.documents, places: &block.places,
                }));
                let mut similar = vec![(1, own[0]), (3, own[1]), (5, own[2])];
                similar.extend([2, 4].into_iter().zip(others.iter().copied()));
                similar.sort_by_key(|(id, _)| *id);
                let meaning = Some(Meaning { similar: &similar, extends: true });
                let rows: Vec<_> = blocks.collect();
                rank(&clauses, &filters, &rows, 5, meaning, Limit::Level(9))
            };
            proptest::prop_assert_eq!(found(&others), found(&[]));
        }
    }

    #[test]
    fn ties_at_the_limit_are_left_to_the_caller() {
        let index = index(&[("a", "x"), ("b", "x"), ("c", "x x")]);
        let two = found(&index, &[], &[word("x")], &[], 3, 2);
        assert_eq!((ids(&two), two.total), (vec![3, 1, 2], 3));
        assert!(two.hits[0].1 > two.hits[1].1 && two.hits[1].1 == two.hits[2].1);
        assert_eq!(ids(&found(&index, &[], &[word("x")], &[], 3, 1)), [3]);
        let blocks = index.blocks.iter();
        let rows: Vec<_> = blocks
            .map(|block| BlockRow { range: 0, gone: &[], documents: &block.documents, places: &[] })
            .collect();
        let newest = rank(&[word("x")], &[], &rows, 3, None, Limit::Newest(2));
        assert_eq!((ids(&newest), newest.total), (vec![3, 2], 3));
        assert_eq!(found(&index, &[], &[word("y")], &[], 3, 2), Found::default());
        assert_eq!(ids(&found(&index, &[2], &[word("x")], &[], 2, 9)), [3, 1]);
    }

    #[test]
    fn filters_leave_out_and_are_not_counted() {
        let index = index(&[("a", "x"), ("b", "x y"), ("a", "y y x")]);
        let within = found(&index, &[], &[word("y")], &["in a"], 9, 5);
        assert_eq!((ids(&within), within.total), (vec![3], 1));
        // The score is the same as if the others had never been there.
        let alone = super::tests::index(&[("a", "x"), ("z", "z"), ("a", "y y x")]);
        assert_eq!(within.hits, found(&alone, &[2], &[word("y")], &[], 2, 5).hits);
        let listed = found(&index, &[], &[], &["in a"], 9, 5);
        assert_eq!((listed.hits, listed.total, listed.all), (vec![(1, 0), (3, 0)], 2, true));
        assert_eq!(found(&index, &[], &[word("y")], &["in a", "in b"], 9, 5), Found::default());
    }

    #[test]
    fn of_two_ways_to_look_for_a_word_the_better_one_counts() {
        let index = index(&[("a", "plan plan"), ("b", "planet plan"), ("c", "plans")]);
        let prefix = ("\u{E000}plan".to_owned(), "\u{E000}plan\u{10FFFF}".to_owned());
        let either = Clause::With(vec![vec![term("plan")], vec![prefix.clone()]]);
        let last = found(&index, &[], &[either], &[], 3, 9);
        assert_eq!(ids(&last), [1, 2, 3]);
        assert_eq!(last.hits[0].1, last.hits[1].1);
        let both = found(&index, &[], &[Clause::With(vec![vec![prefix]])], &[], 3, 9);
        assert_eq!(both.hits, last.hits);
    }

    #[test]
    fn documents_that_are_left_out_do_not_exist() {
        let index = index(&[
            ("a", "plan draft"),
            ("a", "plan may"),
            ("b", "plan plan budget"),
            ("b", "old plan for may"),
        ]);
        let without = |alternatives| Clause::Without(alternatives);
        let drafts = || without(vec![vec![term("draft")]]);
        let old = || without(vec![phrase(&["old", "plan"]), phrase(&["none"])]);
        for (clauses, filters, expected, all) in [
            (vec![word("plan"), drafts()], &[][..], &[3, 2, 4][..], true),
            (vec![drafts(), word("plan"), old()], &[], &[3, 2], true),
            (vec![word("may"), word("draft"), old()], &[], &[1, 2], false),
            (vec![word("plan"), without(vec![vec![term("plan")]])], &[], &[], false),
            (vec![word("plan"), drafts()], &["in a"], &[2], true),
            (vec![drafts()], &["in a"], &[2], true),
            (vec![drafts()], &[], &[], true),
            (vec![word("plan"), without(vec![])], &[], &[3, 1, 2, 4], true),
        ] {
            let found = found(&index, &[], &clauses, filters, 4, 9);
            assert_eq!((ids(&found), found.all), (expected.to_vec(), all), "{clauses:?}");
        }
        // The scores are the same as if the others had never been there.
        let alone = found(&index, &[1], &[word("plan"), word("may")], &[], 3, 9);
        let left = found(&index, &[], &[word("plan"), drafts(), word("may")], &[], 4, 9);
        assert_eq!((alone.hits.len(), &alone.hits), (2, &left.hits));
    }

    #[test]
    fn one_of_several_words_or_phrases_is_enough() {
        let index = index(&[("a", "old plan"), ("b", "plan old"), ("c", "budget"), ("d", "may")]);
        let either = |alternatives: &[&[&str]]| {
            let clause = Clause::With(alternatives.iter().map(|words| phrase(words)).collect());
            let mut ids = ids(&found(&index, &[], &[clause], &[], 4, 9));
            ids.sort_unstable();
            ids
        };
        for (alternatives, expected) in [
            (&[&["budget"][..], &["may"]][..], &[3, 4][..]),
            (&[&["budget"], &["old", "plan"]], &[1, 3]),
            (&[&["old", "plan"], &["none"]], &[1]),
            (&[&["plan"], &["old", "plan"]], &[1, 2]),
            (&[&["none"], &["never"]], &[]),
        ] {
            assert_eq!(either(alternatives), expected, "{alternatives:?}");
        }
    }

    #[test]
    fn words_of_a_phrase_follow_each_other() {
        let index = index(&[
            ("one two", "x"),
            ("x", "two one two"),
            ("x", "one x two"),
            ("one", "two"),
            ("x", "one one two"),
            ("x", "two"),
        ]);
        let found = |words: &[&str]| {
            let clauses = [Clause::With(vec![phrase(words)])];
            let mut ids = ids(&found(&index, &[], &clauses, &[], 6, 9));
            ids.sort_unstable();
            ids
        };
        for (words, expected) in [
            (&["one", "two"][..], &[1, 2, 5][..]),
            (&["two", "one"], &[2]),
            (&["one", "one"], &[5]),
            (&["one", "one", "two"], &[5]),
            (&["one", "none"], &[]),
        ] {
            assert_eq!(found(words), expected, "{words:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_give_an_answer(
            rows in proptest::collection::vec(proptest::collection::vec(0u8..9, 0..40), 0..6),
            limit in 0usize..3,
        ) {
            let wide = || (String::new(), "\u{10FFFF}".to_owned());
            let both = || vec![vec![wide()], vec![wide(), wide()]];
            let clauses = [Clause::With(both()), Clause::Without(both()), Clause::With(vec![])];
            let row = |(range, bytes): (usize, &Vec<u8>)| (range, bytes.clone());
            let owned: Vec<_> = rows.iter().enumerate().map(row).collect();
            let rows: Vec<_> = owned
                .iter()
                .map(|(range, bytes)| BlockRow {
                    range: *range,
                    gone: &[2],
                    documents: bytes,
                    places: bytes,
                })
                .collect();
            let found = rank(&clauses, &[], &rows, 3, None, Limit::Level(limit));
            proptest::prop_assert!(found.hits.len() <= found.total);
        }
    }
}
