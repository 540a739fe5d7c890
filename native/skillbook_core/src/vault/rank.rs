//! Which documents have what a query asks for, the best first.

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};

/// So much is the sum of 1/n² without end: no document has a rank above 1.
const SUM: f64 = 1.644_934_066_85;
/// What occurrences in a text are worth beside those in titles.
const CONTENT: f64 = 0.4;
/// So many parts of one are told apart.
const PARTS: f64 = 10_000.0;

/// What a query asks for, with the packed rows of the index that have it; see [`super::Postings`] for their form.
#[derive(Debug)]
pub enum Unit<'a> {
    /// One term, or several that count as one: the documents of each row.
    Any(Vec<&'a [u8]>),
    /// Terms that follow each other: of each the rows, documents and places.
    Phrase(Vec<Vec<(&'a [u8], &'a [u8])>>),
}

/// What was found.
#[derive(Debug, PartialEq, Eq, Default)]
pub struct Found {
    /// Whether these documents have all that was asked for, and not only some.
    pub all: bool,
    /// How many there are.
    pub total: usize,
    /// Those above the last score that is shown, with their scores in parts of ten thousand, the best first.
    pub above: Vec<(u64, u64)>,
    /// The last score that is shown.
    pub score: u64,
    /// Those that have it, in no order.
    pub level: Vec<u64>,
}

/// The rank of a document by how often it has a term: occurrences count 1, 1/4, 1/9 and so on, those in titles first.
struct Ranks([f64; 256]);

impl Ranks {
    fn new() -> Ranks {
        let mut squares = [0.0; 256];
        for at in 1..256 {
            squares[at] = squares[at - 1] + 1.0 / (at * at) as f64;
        }
        Ranks(squares)
    }

    fn of(&self, titles: u32, contents: u32) -> f64 {
        let up_to = |count: u32| self.0[count.min(255) as usize];
        let in_titles = up_to(titles);
        (in_titles + CONTENT * (up_to(titles + contents) - in_titles)) / SUM
    }
}

/// The documents that have all units, or those that have some where none has all.
///
/// Each unit counts by how few of the `documents` that the reader sees have it, so all that enters a score is in the rows.
/// Where the reader looks `within` some documents alone, the others are left out, and `documents` are these.
pub fn rank(units: &[Unit<'_>], documents: usize, within: Option<&[u64]>, limit: usize) -> Found {
    let ranks = Ranks::new();
    let within: Option<FxHashSet<u64>> = within.map(|ids| ids.iter().copied().collect());
    let weighed: Vec<Vec<(u64, f64)>> = units
        .iter()
        .map(|unit| {
            let mut found = unit.found(&ranks);
            if let Some(within) = &within {
                found.retain(|(id, _)| within.contains(id));
            }
            let count = found.len() as f64;
            let weight = (1.0 + (documents as f64 - count + 0.5) / (count + 0.5)).ln();
            found.iter_mut().for_each(|(_, rank)| *rank *= weight);
            found
        })
        .collect();
    let all = of_all(&weighed);
    if all.is_empty() {
        best(of_any(&weighed), false, limit)
    } else {
        best(all, true, limit)
    }
}

impl Unit<'_> {
    fn found(&self, ranks: &Ranks) -> Vec<(u64, f64)> {
        match self {
            Unit::Any(rows) => {
                // Rows of one term have each document once.
                let mut counts: FxHashMap<u64, (u32, u32)> = FxHashMap::default();
                for (id, titles, contents) in rows.iter().flat_map(|row| documents(row)) {
                    let count = counts.entry(id).or_default();
                    *count = (count.0 + titles, count.1 + contents);
                }
                counts.into_iter().map(|(id, (titles, contents))| (id, ranks.of(titles, contents))).collect()
            }
            Unit::Phrase(words) => phrase(words, ranks),
        }
    }
}

/// The documents in which terms follow each other, with the mean of their ranks.
fn phrase(words: &[Vec<(&[u8], &[u8])>], ranks: &Ranks) -> Vec<(u64, f64)> {
    let mut begins: Option<FxHashMap<u64, (f64, Vec<u16>)>> = None;
    for (at, rows) in words.iter().enumerate() {
        let before = begins.take();
        let mut next = FxHashMap::default();
        for (row, packed) in rows {
            for ((id, titles, contents), places) in documents(row).zip(Places(packed)) {
                let at = at as u16;
                let mut starts = places.filter_map(|place| place.checked_sub(at));
                let rank = ranks.of(titles, contents);
                let (rank, starts) = match before.as_ref().map(|before| before.get(&id)) {
                    None => (rank, starts.collect()),
                    Some(None) => continue,
                    // Both are sorted.
                    Some(Some((sum, known))) => {
                        (sum + rank, starts.by_ref().filter(|start| known.binary_search(start).is_ok()).collect())
                    }
                };
                let starts: Vec<u16> = starts;
                if !starts.is_empty() {
                    next.insert(id, (rank, starts));
                }
            }
        }
        begins = Some(next);
    }
    let count = words.len() as f64;
    begins.unwrap_or_default().into_iter().map(|(id, (sum, _))| (id, sum / count)).collect()
}

fn documents(packed: &[u8]) -> impl Iterator<Item = (u64, u32, u32)> + '_ {
    packed.chunks_exact(7).map(|one| (id(one), one[5].into(), one[6].into()))
}

fn id(packed: &[u8]) -> u64 {
    packed.iter().take(5).fold(0, |id, byte| id << 8 | u64::from(*byte))
}

/// The places of each document of a row.
struct Places<'a>(&'a [u8]);

impl<'a> Iterator for Places<'a> {
    type Item = Box<dyn Iterator<Item = u16> + 'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let (head, rest) = self.0.split_at_checked(7)?;
        let count = usize::from(u16::from_be_bytes([head[5], head[6]]));
        let (places, rest) = rest.split_at_checked(2 * count)?;
        self.0 = rest;
        Some(Box::new(places.chunks_exact(2).map(|place| u16::from_be_bytes([place[0], place[1]]))))
    }
}

/// Those that all units have. Scores are added up in the order of the query, so that a query always gives the same.
fn of_all(weighed: &[Vec<(u64, f64)>]) -> Vec<(u64, f64)> {
    let Some(fewest) = (0..weighed.len()).min_by_key(|at| weighed[*at].len()) else {
        return Vec::new();
    };
    let mut sums: FxHashMap<u64, (usize, f64)> = weighed[fewest].iter().map(|(id, _)| (*id, (0, 0.0))).collect();
    for (id, score) in weighed.iter().flatten() {
        if let Some((count, sum)) = sums.get_mut(id) {
            *count += 1;
            *sum += score;
        }
    }
    sums.into_iter().filter(|(_, (count, _))| *count == weighed.len()).map(|(id, (_, sum))| (id, sum)).collect()
}

fn of_any(weighed: &[Vec<(u64, f64)>]) -> Vec<(u64, f64)> {
    let mut sums: FxHashMap<u64, f64> = FxHashMap::default();
    for (id, score) in weighed.iter().flatten() {
        *sums.entry(*id).or_default() += score;
    }
    sums.into_iter().collect()
}

fn best(scored: Vec<(u64, f64)>, all: bool, limit: usize) -> Found {
    let mut scored: Vec<(u64, u64)> =
        scored.into_iter().map(|(id, score)| (id, (score * PARTS).round() as u64)).collect();
    scored.sort_unstable_by_key(|(id, score)| (Reverse(*score), *id));
    let Some((_, score)) = scored.get(limit.min(scored.len()).saturating_sub(1)).copied() else {
        return Found { all, ..Found::default() };
    };
    let above = scored.partition_point(|(_, other)| *other > score);
    let end = scored.partition_point(|(_, other)| *other >= score);
    let level = scored[above..end].iter().map(|(id, _)| *id).collect();
    Found { all, total: scored.len(), above: scored[..above].to_vec(), score, level }
}

#[cfg(test)]
mod tests {
    use super::super::{postings, Document, Postings};
    use super::*;

    fn index(texts: &[(&str, &str)]) -> Vec<Postings> {
        let document = |(id, (title, text)): (u64, &(&str, &str))| Document {
            id,
            titles: vec![title.to_string()],
            content: text.to_string(),
        };
        postings(&(1..).zip(texts).map(document).collect::<Vec<_>>())
    }

    fn rows<'a>(index: &'a [Postings], term: &str) -> Vec<(&'a [u8], &'a [u8])> {
        index.iter().filter(|one| one.term == term).map(|one| (&one.documents[..], &one.places[..])).collect()
    }

    fn word<'a>(index: &'a [Postings], term: &str) -> Unit<'a> {
        Unit::Any(rows(index, term).into_iter().map(|(documents, _)| documents).collect())
    }

    fn ids(found: &Found) -> Vec<u64> {
        let mut level = found.level.clone();
        level.sort_unstable();
        found.above.iter().map(|(id, _)| *id).chain(level).collect()
    }

    #[test]
    fn titles_come_first_and_few_before_many() {
        let often = "budget ".repeat(500);
        let index = index(&[("a", &often), ("budget", "x"), ("c", "rare budget"), ("d", "budget budget")]);
        let found = rank(&[word(&index, "budget")], 4, None, 10);
        assert_eq!((ids(&found), found.total, found.all), (vec![2, 1, 4, 3], 4, true));
        // Two documents have the second score where only those of one are counted.
        let both = rank(&[word(&index, "rare"), word(&index, "budget")], 4, None, 10);
        assert_eq!((ids(&both), both.all), (vec![3], true));
        let some = rank(&[word(&index, "rare"), word(&index, "x")], 4, None, 10);
        assert_eq!((ids(&some), some.all, some.total), (vec![2, 3], false, 2));
    }

    #[test]
    fn what_is_level_at_the_limit_is_left_to_the_caller() {
        let index = index(&[("a", "x"), ("b", "x"), ("c", "x x")]);
        let found = rank(&[word(&index, "x")], 3, None, 2);
        assert_eq!((found.above.len(), found.above[0].0, found.total), (1, 3, 3));
        assert_eq!(ids(&found), [3, 1, 2]);
        let within = rank(&[word(&index, "x")], 2, Some(&[1, 2, 9]), 1);
        assert_eq!((ids(&within), within.total), (vec![1, 2], 2));
        assert_eq!(rank(&[word(&index, "y")], 3, None, 2), Found::default());
        assert_eq!(rank(&[], 3, None, 2), Found::default());
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
        let phrase = |words: &[&str]| {
            let found = rank(&[Unit::Phrase(words.iter().map(|word| rows(&index, word)).collect())], 6, None, 9);
            let mut ids = ids(&found);
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
            assert_eq!(phrase(words), expected, "{words:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_give_an_answer(rows in proptest::collection::vec(proptest::collection::vec(0u8..4, 0..40), 0..4), limit in 0usize..3) {
            let pairs: Vec<_> = rows.iter().map(|row| (&row[..], &row[..])).collect();
            let any = Unit::Any(rows.iter().map(|row| &row[..]).collect());
            let found = rank(&[any, Unit::Phrase(vec![pairs.clone(), pairs])], 3, None, limit);
            proptest::prop_assert!(found.above.len() + found.level.len() <= found.total);
        }
    }
}
