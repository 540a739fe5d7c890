//! Which words of a request an entry is found by, and which entries are described alike.

mod common;

use common::{all, skills, view};
use proptest::prelude::*;
use skillbook_core::catalog::EntryId;
use skillbook_core::search::embedded;
use skillbook_core::search::vectors::Vectors;
use skillbook_core::view::search::Query;
use skillbook_core::view::View;

fn page(name: &str, description: &str, more: &str) -> (String, String) {
    let text = format!("---\nname: {name}\ndescription: {description}\n{more}---\n# {name}\n");
    (format!("{name}/SKILL.md"), text)
}

fn catalog(pages: &[(String, String)]) -> View {
    let files: Vec<_> = pages.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    all(skills(&files))
}

fn weather() -> Vec<(String, String)> {
    vec![
        page("rain", "Forecasts rain, wind", ""),
        page("snow", "Forecasts snow, ice", "examples: [zebra]\n"),
        page("poems", "Writes poems, songs, forecasts", "trigger_keywords: [verse]\n"),
        page("secret", "Rain for people only", "disable-model-invocation: true\n"),
    ]
}

fn id(view: &View, name: &str) -> EntryId {
    view.find(name).expect(name)
}

/// The words of a request that find an entry, the strongest first.
fn words(view: &View, request: &str, name: &str) -> Vec<String> {
    let pulls = view.why(request, &[id(view, name)]).remove(0);
    assert!(pulls.iter().all(|pull| pull.part > 0.0), "{pulls:?}");
    assert!(pulls.is_sorted_by(|one, other| one.part >= other.part), "{pulls:?}");
    pulls.into_iter().map(|pull| pull.word).collect()
}

#[test]
fn names_the_words_that_find_an_entry() {
    let view = catalog(&weather());
    let rows: [(&str, &str, &[&str]); 9] = [
        ("zebra Rain?", "rain", &["Rain"]),
        ("zebra Rain?", "snow", &[]),
        // A rare word pulls more than a common one.
        ("zebra forecasts, wind", "rain", &["wind", "forecasts"]),
        // As it is written in the request, once, in any form.
        ("Poem, poems or POEMS", "poems", &["Poem"]),
        ("a verse please", "poems", &["verse"]),
        // A slip counts for the word that is meant.
        ("forcasts zebra", "snow", &["forcasts"]),
        // Models do not see this one, so search does not find it.
        ("people", "secret", &[]),
        // `examples` are not read.
        ("zebra", "snow", &[]),
        ("", "rain", &[]),
    ];
    for (request, name, expected) in rows {
        assert_eq!(words(&view, request, name), expected, "{request} {name}");
    }
    let both = view.why("snow rain", &[id(&view, "snow"), id(&view, "rain")]);
    let both: Vec<Vec<&str>> =
        both.iter().map(|own| own.iter().map(|pull| &*pull.word).collect()).collect();
    assert_eq!(both, [["snow"], ["rain"]]);
    assert_eq!(view.why("rain", &[]), [[]; 0]);
    assert_eq!(view.why("rain", &[EntryId(99)]), [[]]);
}

#[test]
fn a_part_is_what_the_score_loses_without_the_word() {
    let view = catalog(&weather());
    let score = |request: &str| {
        let hits = view.search(&Query::new(request));
        hits.iter().find(|hit| hit.id == id(&view, "rain")).map_or(0.0, |hit| hit.score)
    };
    let pulls = view.why("wind and rain zebra", &[id(&view, "rain")]).remove(0);
    assert!(pulls.len() >= 2, "{pulls:?}");
    for pull in pulls {
        let lost =
            score("wind and rain zebra") - score(&"wind and rain zebra".replace(&pull.word, ""));
        assert!((pull.part - f64::from(lost)).abs() < 0.002, "{pull:?} {lost}");
    }
}

#[test]
fn finds_the_pairs_that_are_described_alike() {
    let pairs = |pages: &[(String, String)], least: f32, limit: usize| {
        let view = catalog(pages);
        let name = |id: EntryId| view.entry(id).unwrap().name.to_string();
        let found = view.rivals(least, limit);
        assert!(found.is_sorted_by(|one, other| one.similarity >= other.similarity));
        found
            .into_iter()
            .map(|rivals| (rivals.pair.map(name), rivals.similarity, rivals.words))
            .collect::<Vec<_>>()
    };
    let found = pairs(&weather(), 0.0, 10);
    assert_eq!(found[0].0, ["rain", "snow"]);
    assert_eq!(found[0].2, ["forecasts"]);
    // Each pair once, and none with an entry that models do not see.
    assert_eq!(found.len(), 3);
    assert!(found[0].1 > found[1].1, "{found:?}");
    assert_eq!(pairs(&weather(), 0.0, 1).len(), 1);
    assert_eq!(pairs(&weather(), found[0].1, 10).len(), 1);

    // The same words are as alike as can be, in any form and order; the body does not count.
    let twins = [
        page("a", "Sends letters to friends", ""),
        page("b", "to FRIEND send letter", ""),
        page("c", "Something else", ""),
    ];
    let found = pairs(&twins, 0.01, 10);
    assert_eq!(found.len(), 1);
    // Without function words.
    assert_eq!(found[0].2, ["sends", "letters", "friends"]);
    assert!(found[0].1 > 0.4, "{found:?}");
    assert_eq!(pairs(&[], 0.0, 10), []);
    assert_eq!(pairs(&[page("a", "x", "")], 0.0, 10), []);
}

#[test]
fn a_word_of_many_entries_leads_to_no_rival() {
    // 300 entries share a word, two of them a rare one as well.
    let about = |at: usize| if at < 2 { "common rare".to_owned() } else { format!("common w{at}") };
    let pages: Vec<_> = (0..300).map(|at| page(&format!("n{at}"), &about(at), "")).collect();
    let view = catalog(&pages);
    let found = view.rivals(0.0, 10);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].words, ["rare", "common"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The pairs are those of comparing each entry with each other one.
    #[test]
    fn no_close_pair_is_missed(
        texts in proptest::collection::vec(proptest::collection::vec("q[k-p]{1,2}", 1..6), 2..9),
    ) {
        let pages: Vec<_> = texts
            .iter()
            .enumerate()
            .map(|(at, words)| page(&format!("{at}"), &words.join(" "), ""))
            .collect();
        let view = catalog(&pages);
        let least = 0.05;
        let found: Vec<_> = view.rivals(least, 100).iter().map(|found| found.pair).collect();
        for pair in view.rivals(0.0, 100) {
            prop_assert_eq!(found.contains(&pair.pair), pair.similarity >= least);
        }
        let shares = |one: usize, other: usize| texts[one].iter().any(|w| texts[other].contains(w));
        let sharing = (0..texts.len())
            .flat_map(|one| (one + 1..texts.len()).map(move |other| (one, other)))
            .filter(|(one, other)| shares(*one, *other))
            .count();
        prop_assert!(view.rivals(0.0, 100).len() >= sharing);
    }
}

#[test]
fn a_hidden_entry_explains_nothing() {
    let mut pages = weather();
    let open = catalog(&pages);
    pages.push(page("hidden", "Forecasts rain, hail", "visibility_labels: [own]\n"));
    let files: Vec<_> = pages.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let guest = view(&common::cached(skills(&files)), "guest", &[], None);
    let everything = |view: &View| {
        let name = |id: EntryId| view.entry(id).map(|entry| entry.name.to_string());
        let rivals: Vec<_> = view
            .rivals(0.0, 10)
            .into_iter()
            .map(|found| (found.pair.map(name), found.similarity, found.words))
            .collect();
        (view.why("forecasts of hail, rain", &[id(view, "rain")]), rivals)
    };
    assert_eq!(everything(&guest), everything(&open));
}

/// A store with a vector for each entry, of its angle.
fn vectors(view: &View, angles: &[(&str, f32)]) -> Vectors {
    let vectors = Vectors::new();
    for (name, angle) in angles {
        let entry = view.entry(id(view, name)).unwrap();
        vectors.put(&[(*embedded::digest(entry), &[angle.cos(), angle.sin()])]).unwrap();
    }
    vectors
}

#[test]
fn finds_the_pairs_whose_vectors_are_alike() {
    let view = catalog(&weather());
    let angles = [("rain", 0.0), ("snow", 0.1), ("poems", 1.0), ("secret", 0.0)];
    let vectors = vectors(&view, &angles);
    let pairs = |least: f32, limit: usize| {
        let name = |id: EntryId| view.entry(id).unwrap().name.to_string();
        let found = view.alike(&vectors, least, limit);
        found.into_iter().map(|(pair, cosine)| (pair.map(name), cosine)).collect::<Vec<_>>()
    };
    let rounded = |angle: f32| (angle.cos() * 1000.0).round() / 1000.0;
    let pair = |one: &str, other: &str| [one.to_owned(), other.to_owned()];
    let all = [
        (pair("rain", "snow"), rounded(0.1)),
        (pair("poems", "snow"), rounded(0.9)),
        (pair("poems", "rain"), rounded(1.0)),
    ];
    for (least, limit, expected) in
        [(0.0, 10, &all[..]), (0.6, 10, &all[..2]), (0.0, 1, &all[..1]), (0.999, 10, &[])]
    {
        assert_eq!(pairs(least, limit), expected, "{least} {limit}");
    }
    assert_eq!(view.alike(&Vectors::new(), 0.0, 10), []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// The best pairs are those of comparing each entry with each other one, whatever is dropped on
    /// the way. A hidden entry changes nothing.
    #[test]
    fn no_alike_pair_is_missed(
        angles in proptest::collection::vec(0..3000u32, 2..12),
        limit in 1..6usize,
    ) {
        let names: Vec<_> = (0..angles.len()).map(|at| format!("n{at:02}")).collect();
        let about = |name: &String| page(name, &format!("About {name}"), "");
        let pages: Vec<_> = names.iter().map(about).collect();
        let mut more = pages.clone();
        more.push(page("hidden", "About n", "visibility_labels: [own]\n"));
        let files: Vec<_> =
            more.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let whole = common::cached(skills(&files));
        let (guest, owner) =
            (view(&whole, "guest", &[], None), view(&whole, "owner", &["own"], None));
        let angle = |at: usize| angles[at] as f32 / 1000.0;
        let own: Vec<_> =
            names.iter().enumerate().map(|(at, name)| (name.as_str(), angle(at))).collect();
        let vectors = vectors(&owner, &[own.as_slice(), &[("hidden", angle(0))]].concat());

        let mut expected: Vec<i32> = (0..angles.len())
            .flat_map(|one| (one + 1..angles.len()).map(move |other| (one, other)))
            .map(|(one, other)| ((angle(one) - angle(other)).cos() * 1000.0).round() as i32)
            .collect();
        expected.sort_unstable_by_key(|cosine| -cosine);
        expected.truncate(limit);
        let found = guest.alike(&vectors, -1.0, limit);
        let cosines: Vec<_> =
            found.iter().map(|(_, cosine)| (cosine * 1000.0).round() as i32).collect();
        prop_assert_eq!(cosines.len(), expected.len());
        for (one, other) in cosines.iter().zip(&expected) {
            prop_assert!((one - other).abs() <= 1, "{:?} {:?}", cosines, expected);
        }
        prop_assert!(found.iter().flat_map(|(pair, _)| pair).all(|id| guest.shows(*id)));
    }
}
