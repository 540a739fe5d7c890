//! The store of vectors: its memory, its snapshots, and searches by meaning.

mod common;
#[path = "common/counting.rs"]
mod counting;

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;

use common::{cached, skills, view};
use counting::{ALONE, PEAK, USED};
use proptest::prelude::*;
use skillbook_core::search::embedded;
use skillbook_core::search::vectors::{Digest, Vectors, WrongSize};
use skillbook_core::view::search::{Meaning, Query};
use skillbook_core::view::View;

fn digest(number: usize) -> Digest {
    embedded::digest_of(&number.to_string())
}

fn unit(numbers: &[f32]) -> Vec<f32> {
    let length = numbers.iter().map(|number| number * number).sum::<f32>().sqrt();
    numbers.iter().map(|number| number / length).collect()
}

/// Vectors with these numbers, each different.
fn fill(vectors: &Vectors, numbers: std::ops::Range<usize>, size: usize) {
    let batch: Vec<_> = numbers
        .map(|number| {
            (digest(number), (0..size).map(|at| (number + at) as f32).collect::<Vec<_>>())
        })
        .collect();
    let batch: Vec<_> = batch.iter().map(|(digest, vector)| (*digest, vector.as_slice())).collect();
    vectors.put(&batch).unwrap();
}

#[test]
fn memory_is_at_most_a_tenth_more_than_the_vectors() {
    let _alone = ALONE.lock().unwrap();
    // Around the sizes at which a map or a list doubles, and in batches of all sizes.
    for (count, size, batch) in
        [(10_000, 384, 64), (7_200, 384, 1), (14_400, 384, 500), (2_000, 1536, 33)]
    {
        let before = USED.load(Relaxed);
        let vectors = Vectors::new();
        PEAK.store(USED.load(Relaxed), Relaxed);
        let mut peak_of_batch = 0;
        for start in (0..count).step_by(batch) {
            let end = (start + batch).min(count);
            // The batch itself, which the caller makes.
            peak_of_batch = peak_of_batch.max((end - start) * (size * 4 + 128));
            fill(&vectors, start..end, size);
        }
        let bytes = (count * size * 4) as f64;
        let used = (USED.load(Relaxed) - before) as f64 / bytes;
        let peak = (PEAK.load(Relaxed) - before - peak_of_batch) as f64 / bytes;
        assert_eq!(vectors.count(), count);
        assert!(used <= 1.1, "{count} of {size}: {used:.3} times the vectors");
        assert!(peak <= 1.1, "{count} of {size}: {peak:.3} times the vectors at the peak");
    }
}

#[test]
fn vectors_of_another_size_are_refused_as_a_whole() {
    let _alone = ALONE.lock().unwrap();
    let vectors = Vectors::new();
    fill(&vectors, 0..2, 3);
    let version = vectors.version();
    let refused = vectors.put(&[(digest(2), &[1.0, 0.0, 0.0]), (digest(3), &[1.0])]);
    assert_eq!(refused, Err(WrongSize { expected: 3, got: 1 }));
    assert_eq!((vectors.count(), vectors.version()), (2, version));
    vectors.clear();
    assert_eq!((vectors.count(), vectors.size()), (0, 0));
    fill(&vectors, 0..1, 1);
    assert_eq!((vectors.count(), vectors.size()), (1, 1));
}

#[derive(Debug, Clone)]
enum Change {
    Put(Vec<usize>),
    /// These are all texts, and whether vectors came after they were looked for.
    Follow(Vec<usize>, bool),
    /// Their vectors are in a database.
    Know(Vec<usize>),
    /// They are not.
    Lost(Vec<usize>),
    /// These are compared with a query.
    Map(Vec<usize>),
    /// Whether there is too little memory for any.
    Forget(bool),
    Clear,
}

fn change() -> impl Strategy<Value = Change> {
    let numbers = || proptest::collection::vec(0..40usize, 0..30);
    prop_oneof![
        4 => numbers().prop_map(Change::Put),
        2 => (numbers(), any::<bool>()).prop_map(|(all, late)| Change::Follow(all, late)),
        2 => numbers().prop_map(Change::Know),
        1 => numbers().prop_map(Change::Lost),
        1 => numbers().prop_map(Change::Map),
        2 => any::<bool>().prop_map(Change::Forget),
        1 => Just(Change::Clear),
    ]
}

proptest! {
    /// After any changes the store has the vectors of a plain map, and each state that a reader
    /// holds stays as it was.
    #[test]
    fn a_store_equals_a_map(changes in proptest::collection::vec(change(), 1..12)) {
        let _alone = ALONE.lock().unwrap();
        // Three rows to a block, so that blocks fill, are shared and become free.
        let size = 5_000;
        let vector = |number: usize| -> Vec<f32> {
            (0..size).map(|at| f32::from(at == number)).collect()
        };
        let all: Vec<Digest> = (0..40).map(digest).collect();
        let vectors = Vectors::new();
        // Those in memory, those of them that were used, and those in a database alone.
        let (mut expected, mut used) = (BTreeSet::new(), BTreeSet::new());
        let mut known: BTreeSet<usize> = BTreeSet::new();
        let mut states = Vec::new();
        let read = |mapped: &skillbook_core::search::vectors::Mapped| {
            // The similarity to a vector of all numbers shows which vector it is.
            let weights: Vec<f32> = (0..size).map(|at| at as f32 + 1.0).collect();
            let mut found = Vec::new();
            mapped.similarities(&weights, |_| true, |at, value| found.push((at, value)));
            found.sort_by_key(|(at, _)| *at);
            found
        };
        for change in changes {
            match change {
                Change::Put(numbers) => {
                    let batch: Vec<_> =
                        numbers.iter().map(|number| (all[*number], vector(*number))).collect();
                    let batch: Vec<_> =
                        batch.iter().map(|(digest, vector)| (*digest, &vector[..])).collect();
                    vectors.put(&batch).unwrap();
                    known.retain(|number| !numbers.contains(number));
                    used.extend(numbers.iter().filter(|number| !expected.contains(*number)));
                    expected.extend(numbers);
                }
                Change::Follow(numbers, late) => {
                    let version = vectors.version().wrapping_sub(late.into());
                    let texts = numbers.iter().map(|number| (&all[*number], *number));
                    let missing = vectors.follow(version, texts);
                    let without: BTreeSet<_> = numbers
                        .iter()
                        .filter(|number| !expected.contains(*number) && !known.contains(*number))
                        .copied()
                        .collect();
                    prop_assert_eq!(missing.len(), without.len());
                    let is_right = |(digest, number): &(&Digest, usize)| {
                        without.contains(number) && **digest == all[*number]
                    };
                    prop_assert!(missing.iter().all(is_right));
                    if !late {
                        expected.retain(|number| numbers.contains(number));
                        known.retain(|number| numbers.contains(number));
                    }
                }
                Change::Know(numbers) => {
                    vectors.know(numbers.iter().map(|number| all[*number]));
                    known.extend(numbers.iter().filter(|number| !expected.contains(*number)));
                }
                Change::Lost(numbers) => {
                    vectors.lost(numbers.iter().map(|number| all[*number]));
                    known.retain(|number| !numbers.contains(number));
                }
                Change::Map(numbers) => {
                    let mapped = vectors.map((0..).zip(numbers.iter().map(|number| &all[*number])));
                    prop_assert!(mapped.places().count() <= numbers.len());
                    used.extend(numbers.iter().filter(|number| expected.contains(*number)));
                }
                Change::Forget(all) => {
                    let bytes = if all { 0 } else { 40 * size * 4 };
                    if all {
                        known.extend(expected.iter().filter(|number| !used.contains(*number)));
                        expected.retain(|number| used.contains(number));
                        used.clear();
                    }
                    prop_assert_eq!(vectors.forget(bytes), expected.len());
                }
                Change::Clear => {
                    vectors.clear();
                    expected.clear();
                    known.clear();
                }
            }
            used.retain(|number| expected.contains(number));
            // Mapping all uses all, so this is done at some of the changes only.
            let mapped = match states.len() % 3 {
                0 => {
                    used.extend(&expected);
                    vectors.map((0..).zip(&all))
                }
                _ => vectors.map(std::iter::empty()),
            };
            let now: Vec<_> = if states.len() % 3 == 0 {
                expected.iter().map(|number| (*number as u32, *number as f32 + 1.0)).collect()
            } else {
                Vec::new()
            };
            prop_assert_eq!(read(&mapped), now.clone());
            let held = expected.clone();
            let absent: BTreeSet<Digest> =
                vectors.absent(all.iter().chain(&all)).into_iter().copied().collect();
            prop_assert_eq!(absent, known.iter().map(|number| all[*number]).collect());
            let expected: BTreeSet<usize> = expected.union(&known).copied().collect();
            prop_assert_eq!(vectors.count(), expected.len());
            prop_assert_eq!(mapped.version(), vectors.version());
            let missing: Vec<usize> = (0..40).filter(|number| !expected.contains(number)).collect();
            let twice = all.iter().zip(0..).chain(all.iter().zip(40..));
            let found = vectors.missing(twice).into_iter().map(|(_, number)| number);
            prop_assert_eq!(found.collect::<Vec<_>>(), missing);
            let having = vectors.having(all.iter());
            let digests: BTreeSet<Digest> = having.into_iter().copied().collect();
            prop_assert_eq!(digests, expected.iter().map(|number| all[*number]).collect());
            states.push((mapped, now, held));
        }
        for (mapped, then, _) in &states {
            prop_assert_eq!(&read(mapped), then);
        }
        for pair in states.windows(2) {
            // Equal versions mean equal contents.
            prop_assert!(pair[0].0.version() != pair[1].0.version() || pair[0].2 == pair[1].2);
        }
    }

    /// The lanes add up to the sum of products.
    #[test]
    fn similarities_are_dot_products(
        a in proptest::collection::vec(-1.0f32..1.0, 1..80),
        shift in 0..80usize,
    ) {
        let _alone = ALONE.lock().unwrap();
        let b: Vec<f32> = (0..a.len()).map(|at| a[(at + shift) % a.len()]).collect();
        let vectors = Vectors::new();
        vectors.put(&[(digest(0), &b)]).unwrap();
        let expected: f64 = a.iter().zip(&b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
        let mapped = vectors.map([(7, &digest(0))].into_iter());
        let mut found = Vec::new();
        mapped.similarities(&a, |_| true, |at, similarity| found.push((at, similarity)));
        prop_assert_eq!(found.len(), 1);
        prop_assert!(found[0].0 == 7 && (f64::from(found[0].1) - expected).abs() < 1e-5);
    }
}

// Searches. The vectors of these pages have two numbers: how much they are about weather, and
// about mail.

const PAGES: [(&str, &str, [f32; 2]); 6] = [
    ("forecast", "Tells how the sky will be", [1.0, 0.1]),
    ("umbrella", "Protects you from getting wet", [0.9, 0.2]),
    ("letters", "Sends a message to somebody", [0.1, 1.0]),
    ("postcards", "Writes greetings from a journey", [0.2, 0.9]),
    ("rain-check", "Moves an appointment to a later date", [0.3, 0.3]),
    ("rain", "Draws drops on a picture", [0.5, 0.4]),
];

fn pages() -> (View, Vectors) {
    let files: Vec<_> = PAGES
        .iter()
        .map(|(name, about, _)| {
            (
                format!("{name}/SKILL.md"),
                format!("---\nname: {name}\ndescription: {about}\n---\nText.\n"),
            )
        })
        .collect();
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let view = view(&cached(skills(&files)), "reader", &[], None);
    let vectors = Vectors::new();
    (view, vectors)
}

/// Gives these pages their vectors.
fn embed(view: &View, vectors: &Vectors, names: &[&str]) {
    for (name, _, vector) in PAGES.iter().filter(|(name, ..)| names.contains(name)) {
        let entry = view.entry(view.find(name).unwrap()).unwrap();
        vectors.put(&[(*embedded::digest(entry), &unit(vector))]).unwrap();
    }
}

fn names(view: &View, query: &Query) -> Vec<String> {
    let found = view.candidates(query);
    let hits = view.search(query);
    let pairs = hits.iter().map(|hit| (hit.id, hit.score)).collect::<Vec<_>>();
    assert_eq!(pairs, found.iter().map(|found| (found.id, found.score)).collect::<Vec<_>>());
    found.iter().map(|found| view.entry(found.id).unwrap().name.to_string()).collect()
}

const ALL: [&str; 6] = ["forecast", "umbrella", "letters", "postcards", "rain-check", "rain"];

#[test]
fn meaning_finds_entries_without_a_common_word() {
    let _alone = ALONE.lock().unwrap();
    let (view, vectors) = pages();
    let query = Query::new("will I stay dry outside tomorrow");
    assert_eq!(names(&view, &query), ["forecast"]);
    embed(&view, &vectors, &ALL);
    let weather = unit(&[1.0, 0.0]);
    let meaning = Some(Meaning { vector: &weather, vectors: &vectors });
    let found = names(&view, &Query { meaning, ..query });
    assert_eq!(found[..2], ["forecast", "umbrella"]);
    // Those of less than average similarity are no hits.
    assert!(!found.contains(&"letters".to_owned()), "{found:?}");
    assert_eq!(names(&view, &Query { meaning, limit: 1, ..query }), ["forecast"]);
    let candidates = view.candidates(&Query { meaning, ..query });
    assert!(candidates[0].similarity.unwrap() > 0.99 && candidates[0].words > 0.0);
    assert_eq!(candidates[1].words, 0.0);
}

#[test]
fn a_query_that_may_be_a_name_finds_the_name_first() {
    let _alone = ALONE.lock().unwrap();
    let (view, vectors) = pages();
    embed(&view, &vectors, &ALL);
    // The worst vector for each of them.
    for (text, vector, expected) in [
        ("letters", [1.0, 0.0], "letters"),
        ("leters", [1.0, 0.0], "letters"),
        ("lett", [1.0, 0.0], "letters"),
        ("postcard", [1.0, 0.0], "postcards"),
        ("forecast", [0.0, 1.0], "forecast"),
        ("umbrela", [0.0, 1.0], "umbrella"),
        ("rain check", [0.0, 1.0], "rain-check"),
        ("check rain", [0.0, 1.0], "rain-check"),
        ("rain-chek", [0.0, 1.0], "rain-check"),
        ("rain", [0.0, 1.0], "rain"),
    ] {
        let vector = unit(&vector);
        let meaning = Some(Meaning { vector: &vector, vectors: &vectors });
        assert_eq!(names(&view, &Query { meaning, ..Query::new(text) })[0], expected, "{text}");
    }
    // In a sentence the meaning decides.
    let mail = unit(&[0.0, 1.0]);
    let meaning = Some(Meaning { vector: &mail, vectors: &vectors });
    let query = Query { meaning, ..Query::new("say hello to grandma in rain or snow") };
    assert_eq!(names(&view, &query)[0], "letters");
}

#[test]
fn entries_without_a_vector_are_ranked_by_their_words() {
    let _alone = ALONE.lock().unwrap();
    let (view, vectors) = pages();
    let weather = unit(&[1.0, 0.0]);
    let meaning = Some(Meaning { vector: &weather, vectors: &vectors });
    let query = Query::new("protects me from getting wet on a journey");
    let by_words = names(&view, &query);
    assert_eq!(by_words[0], "umbrella");
    // Without any vector the order is that of words alone, and so is every score.
    let without = Query { meaning, ..query };
    assert_eq!(view.search(&without), view.search(&query));
    embed(&view, &vectors, &["forecast", "letters"]);
    assert_eq!(names(&view, &without)[0], "umbrella");
    assert_eq!(view.candidates(&without)[0].similarity, None);
    assert_eq!(view.embedded(&vectors), (2, 6));
    embed(&view, &vectors, &ALL);
    assert_eq!(view.embedded(&vectors), (6, 6));
    assert!(view.candidates(&without)[0].similarity.is_some());
}

#[test]
fn a_vector_that_cannot_be_compared_leaves_the_words() {
    let _alone = ALONE.lock().unwrap();
    let (view, vectors) = pages();
    embed(&view, &vectors, &ALL);
    let query = Query::new("sends a message");
    let by_words = view.search(&query);
    for vector in [&[][..], &[1.0], &[1.0, 0.0, 0.0]] {
        let meaning = Some(Meaning { vector, vectors: &vectors });
        assert_eq!(view.search(&Query { meaning, ..query }), by_words, "{vector:?}");
    }
    // Numbers that are not finite do no harm.
    let broken = [f32::NAN, f32::INFINITY];
    let meaning = Some(Meaning { vector: &broken, vectors: &vectors });
    assert_eq!(names(&view, &Query { meaning, ..query })[0], "letters");
}
