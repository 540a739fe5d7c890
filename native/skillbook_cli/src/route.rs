//! `skillbook route`, by words.

use std::time::{Duration, Instant};

use skillbook_core::report::route::{self, Considered, Pick, Route, Scored, Stage};
use skillbook_core::search::explain::Pull;
use skillbook_core::view::pick::{self, Found, Retrieved};
use skillbook_core::view::View;

use crate::arguments::Options;
use crate::output::{printed, terminal, usage_error};
use crate::read::view;
use crate::Ended;

pub fn run(options: &Options, standalone: bool) -> Result<u8, Ended> {
    if options.args.iter().all(|word| word.trim().is_empty()) {
        let message = "`route` expects a request, such as \"Is it going to rain tomorrow?\"";
        return Ok(usage_error(message, "route --help"));
    }
    let view = view(options, standalone)?;
    let report = report(&view, options.args.join(" "));
    Ok(printed(&route::route(&report, options.is_json(), terminal(options)))?)
}

fn report(view: &View, request: String) -> Route {
    let text = pick::request(&request);
    let considered = |found: Found, scored| Considered {
        name: view.entry(found.id).map_or_else(String::new, |entry| entry.name.to_string()),
        confidence: found.confidence,
        reason: found.reason,
        scored,
    };
    let (took, triggered) = timed(|| view.triggered(text));
    let keywords = triggered.iter().map(|one| considered(one.into(), None)).collect();
    let keywords = stage("keywords", took, keywords);
    let (took, retrieved) = timed(|| view.retrieve(text, None));
    let ids: Vec<_> = retrieved.iter().map(|one| one.found.id).collect();
    let words = view.why(&request, &ids).into_iter();
    let scored = |(one, words): (Retrieved, Vec<Pull>)| {
        let Retrieved { found, score, similarity, .. } = one;
        considered(found, Some(Scored { score, similarity, words, sentence: None }))
    };
    let stages = vec![
        keywords,
        stage("retrieval", took, retrieved.into_iter().zip(words).map(scored).collect()),
    ];
    let picks = picks_of(&stages);
    Route { needed: !picks.is_empty(), threshold: pick::THRESHOLD, picks, stages, request }
}

fn timed<T>(find: impl FnOnce() -> T) -> (Duration, T) {
    let began = Instant::now();
    let found = find();
    (began.elapsed(), found)
}

fn stage(name: &str, took: Duration, candidates: Vec<Considered>) -> Stage {
    let duration = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    Stage { stage: name.to_owned(), status: "ok".to_owned(), duration, error: None, candidates }
}

fn picks_of(stages: &[Stage]) -> Vec<Pick> {
    let found: Vec<(&Stage, &Considered)> = stages
        .iter()
        .flat_map(|stage| stage.candidates.iter().map(move |one| (stage, one)))
        .collect();
    let named: Vec<_> = found.iter().map(|(_, one)| (&*one.name, one.confidence)).collect();
    let pick = |place: usize| {
        let (stage, one) = found[place];
        Pick {
            name: one.name.clone(),
            confidence: one.confidence,
            reason: one.reason.clone(),
            stage: stage.stage.clone(),
        }
    };
    pick::picks(&named, pick::THRESHOLD, pick::MAX).into_iter().map(pick).collect()
}
