//! Tests descriptions with the `examples` of entries: where search and the router lead their
//! requests, and which entries compete. Each type is what `Skillbook.Test` calls it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use super::search::{decimals, Meaning, Query};
use super::view::View;
use crate::catalog::entry::Entry;
use crate::search::explain::Pull;
use crate::search::vectors::Vectors;

/// An entry behind the tenth place is as good as lost.
pub const MAX_RANK: usize = 10;
/// How many entries are shown before the one in question.
pub const SHOWN: usize = 3;
/// A model is seldom shown more entries, and the router picks no more.
const ENOUGH: usize = 3;
/// Descriptions that are less alike have little in common but the words of their subject.
const LEAST_ALIKE: f32 = 0.3;
const LEAST_MEANING: f32 = 0.6;
/// The pairs that are looked at when only some are wanted.
const MAX_PAIRS: usize = 1_000;

/// A request in the `examples` of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The name of the entry.
    pub name: String,
    /// The request.
    pub request: String,
    /// Whether it should not lead to the entry.
    pub not: bool,
}

/// The requests of the entries that are tested.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The requests.
    pub asked: Vec<Asked>,
    /// How many entries are tested.
    pub entries: usize,
    /// The entries with examples that are not tested, since models do not see them.
    pub unlisted: Vec<String>,
}

/// An entry that a request leads to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ranked {
    /// The name of the entry.
    pub name: String,
    /// Its place, from 1.
    pub rank: usize,
    /// Its score.
    pub score: f64,
    /// Its similarity, if it has a vector.
    pub similarity: Option<f64>,
    /// The words of the request that find it, the strongest first.
    pub words: Vec<Pull>,
    /// The sentence of its description that is most similar.
    pub sentence: Option<String>,
}

/// Where a request leads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The name of the entry that has the request.
    pub name: String,
    /// The request.
    pub request: String,
    /// Whether it should not lead to the entry.
    pub not: bool,
    /// Whether it does as it should.
    pub passed: bool,
    /// Whether the router picks the entry.
    pub picked: bool,
    /// The place of the entry, from 1.
    pub rank: Option<usize>,
    /// The entries in question, if it does not come first.
    pub ranking: Vec<Ranked>,
}

/// Two entries that compete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// Their names.
    pub names: [String; 2],
    /// How alike their descriptions are, from 0 to 1.
    pub similarity: f64,
    /// The rarest words that both descriptions have.
    pub words: Vec<String>,
    /// How alike they are in meaning.
    pub meaning: Option<f64>,
    /// How many examples of each lead to the other before it.
    pub taken: [usize; 2],
}

/// How well a request led to its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// The place of the entry.
    pub rank: Option<usize>,
    /// Whether the router picks it.
    pub picked: bool,
}

/// The shares of the requests that should lead to their entry.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Shares {
    /// Of those that have it first.
    pub hit1: Option<f64>,
    /// Of those that have it among the first three.
    pub hit3: Option<f64>,
    /// Of those for which the router picks it.
    pub picked: Option<f64>,
}

impl Outcome {
    /// Its hit; `None` if it should not lead to its entry.
    pub fn hit(&self) -> Option<Hit> {
        (!self.not).then_some(Hit { rank: self.rank, picked: self.picked })
    }

    /// The names of its entry and of each that comes before it.
    pub fn led(&self) -> impl Iterator<Item = [&str; 2]> {
        let before = self.ranking.iter().filter(|other| !self.not && other.name != self.name);
        before.map(|other| [&*self.name, &*other.name])
    }
}

impl View {
    /// The requests of the listed entries, or of those with these names.
    pub fn examples(&self, only: Option<&[String]>) -> Plan {
        let is_wanted = wanted(only);
        let mut plan = Plan::default();
        for (id, entry) in self.entries().filter(|(_, entry)| is_wanted(&entry.name)) {
            match self.lists(id) {
                true => {
                    plan.entries += 1;
                    plan.asked.extend(asked(entry));
                }
                false if !entry.fields().examples.is_empty() => {
                    plan.unlisted.push(entry.name.to_string());
                }
                false => {}
            }
        }
        plan
    }

    /// The entries of the first `count` places for a request, and the one of this name if it is
    /// among the first [`MAX_RANK`]. They have no sentences.
    pub fn ranking(
        &self,
        request: &str,
        meaning: Option<Meaning>,
        name: Option<&str>,
        count: usize,
    ) -> Vec<Ranked> {
        let query = Query { limit: MAX_RANK, meaning, ..Query::new(request) };
        let named = |at, entry: &Entry| at < count || name == Some(&*entry.name);
        let found: Vec<_> = self
            .candidates(&query)
            .into_iter()
            .enumerate()
            .filter_map(|(at, candidate)| Some((at, candidate, self.entry(candidate.id)?)))
            .filter(|(at, _, entry)| named(*at, entry))
            .collect();
        let ids: Vec<_> = found.iter().map(|(_, candidate, _)| candidate.id).collect();
        let why = self.why(request, &ids);
        let mut ranking = Vec::with_capacity(found.len());
        for ((at, candidate, entry), words) in found.into_iter().zip(why) {
            ranking.push(Ranked {
                name: entry.name.to_string(),
                rank: at + 1,
                score: decimals(candidate.score, 3),
                similarity: candidate.scores().1,
                words,
                sentence: None,
            });
        }
        ranking
    }

    /// Where a request leads. The caller says whether the router picks the entry, and whether the
    /// router is on: then a conversation begins with the pages that it picks, whatever their order.
    pub fn outcome(
        &self,
        asked: Asked,
        meaning: Option<Meaning>,
        picked: bool,
        router: bool,
    ) -> Outcome {
        let Asked { name, request, not } = asked;
        let query = Query { limit: MAX_RANK, meaning, ..Query::new(&request) };
        let is_own = |id| self.entry(id).is_some_and(|entry| *entry.name == *name);
        let place = self.candidates(&query).iter().position(|found| is_own(found.id));
        let rank = place.map(|place| place + 1);
        let passed = match (not, router) {
            (true, _) => !picked,
            (false, true) => picked,
            (false, false) => rank.is_some_and(|rank| rank <= ENOUGH),
        };
        let is_shown = if not { picked } else { rank != Some(1) };
        let mut ranking = match is_shown {
            true => self.ranking(&request, meaning, Some(&name), SHOWN),
            false => Vec::new(),
        };
        // Those after its own do not take the request from it.
        ranking.retain(|other| rank.is_none_or(|rank| other.rank <= rank));
        Outcome { name, request, not, passed, picked, rank, ranking }
    }

    /// The pairs of entries that compete: those that take each other's examples first, then those
    /// whose descriptions are most alike. With `only`, one of each pair has one of these names.
    /// `led` are the names of entries, each with one that comes before it for an example.
    pub fn competitors(
        &self,
        led: &[[&str; 2]],
        vectors: Option<&Vectors>,
        only: Option<&[String]>,
    ) -> Vec<Pair> {
        let mut taken: BTreeMap<[&str; 2], usize> = BTreeMap::new();
        led.iter().for_each(|names| *taken.entry(*names).or_default() += 1);
        let names = |ids: [_; 2]| {
            let mut names = ids.map(|id| self.entry(id).map_or("", |entry| &*entry.name));
            names.sort_unstable();
            names
        };
        let rivals = self.rivals(LEAST_ALIKE, MAX_PAIRS).into_iter();
        let alike: BTreeMap<_, _> = rivals
            .map(|rivals| (names(rivals.pair), (decimals(rivals.similarity, 3), rivals.words)))
            .collect();
        let means = vectors.map(|vectors| self.alike(vectors, LEAST_MEANING, MAX_PAIRS));
        let meaning: BTreeMap<_, _> = means
            .into_iter()
            .flatten()
            .map(|(ids, cosine)| (names(ids), decimals(cosine, 3)))
            .collect();
        let sorted = |[one, other]: [_; 2]| if one < other { [one, other] } else { [other, one] };
        let all: BTreeSet<[&str; 2]> = taken
            .keys()
            .map(|names| sorted(*names))
            .chain(alike.keys().copied())
            .chain(meaning.keys().copied())
            .collect();
        let is_wanted = wanted(only);
        let is_wanted = |names: &[&str; 2]| names.iter().any(|name| is_wanted(name));
        let pair = |names @ [one, other]: [&str; 2]| {
            let (similarity, words) = alike.get(&names).cloned().unwrap_or_default();
            let count = |of| taken.get(&of).copied().unwrap_or_default();
            Pair {
                names: names.map(str::to_owned),
                similarity,
                words,
                meaning: meaning.get(&names).copied(),
                taken: [count([one, other]), count([other, one])],
            }
        };
        let mut pairs: Vec<Pair> = all.into_iter().filter(is_wanted).map(pair).collect();
        // Stable, so that equal ones stay in the order of their names.
        pairs.sort_by(|one, other| {
            let alike = |pair: &Pair| pair.similarity.max(pair.meaning.unwrap_or_default());
            let taken = |pair: &Pair| Reverse(pair.taken[0] + pair.taken[1]);
            taken(one).cmp(&taken(other)).then_with(|| alike(other).total_cmp(&alike(one)))
        });
        pairs
    }
}

/// Whether a name is one of these; any is without them.
fn wanted(only: Option<&[String]>) -> impl Fn(&str) -> bool + '_ {
    let only: Option<FxHashSet<&str>> =
        only.map(|names| names.iter().map(String::as_str).collect());
    move |name| only.as_ref().is_none_or(|only| only.contains(name))
}

fn asked(entry: &Entry) -> impl Iterator<Item = Asked> + '_ {
    // Those that should lead to the entry come first.
    [false, true].into_iter().flat_map(move |not| {
        let own = entry.fields().examples.iter().filter(move |example| example.not == not);
        own.map(move |example| Asked {
            name: entry.name.to_string(),
            request: example.text.clone(),
            not,
        })
    })
}

/// The shares of the requests that should lead to their entry; `None` without any.
pub fn shares(hits: &[Hit]) -> Shares {
    let share = |is_hit: fn(&Hit) -> bool| {
        let count = hits.iter().filter(|hit| is_hit(hit)).count();
        (!hits.is_empty()).then(|| count as f64 / hits.len() as f64)
    };
    Shares {
        hit1: share(|hit| hit.rank == Some(1)),
        hit3: share(|hit| hit.rank.is_some_and(|rank| rank <= ENOUGH)),
        picked: share(|hit| hit.picked),
    }
}
