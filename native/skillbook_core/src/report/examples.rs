//! Where the examples of skills lead, and the skills that compete.

use serde::{Deserialize, Serialize};

use super::ranking::lines;
use super::{json, Style, Terminal};
use crate::hidden::line;
use crate::view::examples::{Outcome, Pair};

/// The requests that lead elsewhere and are printed; JSON has all.
const MAX_SHOWN: usize = 100;

/// A `%Skillbook.Test{}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as `Skillbook.Test` describes them")]
pub struct Tested {
    pub results: Vec<Outcome>,
    pub hit1: Option<f64>,
    pub hit3: Option<f64>,
    pub picked: Option<f64>,
    pub router: bool,
    pub pairs: Vec<Pair>,
    pub entries: usize,
    pub unlisted: Vec<String>,
    pub vectors: bool,
}

impl Tested {
    /// The report as JSON.
    pub fn json(&self) -> String {
        json(serde_json::to_value(self).unwrap_or_default())
    }

    /// The requests that lead elsewhere, the skills that compete, and a summary.
    pub fn text(&self, terminal: Terminal) -> String {
        let is_lost = |found: &&Outcome| !found.passed || (!found.not && found.rank != Some(1));
        let lost: Vec<&Outcome> = self.results.iter().filter(is_lost).collect();
        let (shown, rest) = lost.split_at(lost.len().min(MAX_SHOWN));
        let mut text = String::new();
        for of_one in shown.chunk_by(|one, other| one.name == other.name) {
            text += &terminal.style(Style::Bright, &line(&of_one[0].name));
            text.push('\n');
            of_one.iter().for_each(|found| self.request(&mut text, found, terminal));
            text.push('\n');
        }
        if !rest.is_empty() {
            let count = rest.len();
            text += &format!("{count} more requests lead elsewhere; --json has all of them\n\n");
        }
        if !self.pairs.is_empty() {
            text += &terminal.style(Style::Bright, "Skills that compete");
            text.push('\n');
            self.pairs.iter().for_each(|one| pair(&mut text, one));
            text.push('\n');
        }
        self.summary(&mut text);
        text
    }

    fn request(&self, text: &mut String, found: &Outcome, terminal: Terminal) {
        let place = |rank: usize| format!("in place {rank}");
        let (style, got) = match found {
            Outcome { not: true, .. } => (Style::Red, "picked".to_owned()),
            Outcome { rank: None, picked: false, .. } => (Style::Red, "not found".to_owned()),
            Outcome { rank: None, .. } => (Style::Yellow, "picked, not found".to_owned()),
            Outcome { passed: false, rank: Some(1), .. } => {
                (Style::Red, "first, not picked".to_owned())
            }
            Outcome { passed: false, rank: Some(rank), picked: false, .. } if self.router => {
                (Style::Red, place(*rank) + ", not picked")
            }
            Outcome { passed: false, rank: Some(rank), .. } => (Style::Red, place(*rank)),
            Outcome { rank: Some(rank), .. } => (Style::Yellow, place(*rank)),
        };
        let not = if found.not { "not: " } else { "" };
        let got = terminal.style(style, &got);
        *text += &format!("  {not}{}  {got}\n", line(&found.request));
        for one in lines(&found.ranking) {
            *text += &format!("  {}\n", line(&one));
        }
    }

    fn summary(&self, text: &mut String) {
        let entries = count(self.entries, "skill");
        if self.results.is_empty() {
            *text += &format!("None of {entries} has examples.");
        } else {
            let groups = self.results.chunk_by(|one, other| one.name == other.name);
            *text += &format!("{} of {entries} with examples", groups.count());
            let (unwanted, wanted): (Vec<&Outcome>, Vec<&Outcome>) =
                self.results.iter().partition(|found| found.not);
            let share = |share: f64| {
                let hits = (share * wanted.len() as f64).round();
                format!("{}% ({hits})", (share * 100.0).round())
            };
            if let (Some(hit1), Some(hit3), Some(picked)) = (self.hit1, self.hit3, self.picked) {
                *text += &format!(
                    "\n{}: first {}, among the first three {}, picked {}",
                    count(wanted.len(), "request"),
                    share(hit1),
                    share(hit3),
                    share(picked),
                );
            }
            if !unwanted.is_empty() {
                let picked = unwanted.iter().filter(|found| !found.passed).count();
                let requests = count(unwanted.len(), "request");
                *text += &format!("\n{requests} after `not`: {picked} picked");
            }
        }
        if !self.unlisted.is_empty() {
            let names = self.unlisted.join(", ");
            *text += &format!("\nNot tested, since models do not see them: {}", line(&names));
        }
    }
}

fn pair(text: &mut String, pair: &Pair) {
    let [one, other] = &pair.names;
    let [by_other, by_one] = pair.taken;
    *text += &format!("  {}\n", line(&format!("{one} and {other}")));
    if !pair.words.is_empty() {
        let words = pair.words.join(", ");
        *text += &format!("    alike by {:.2}: {}\n", pair.similarity, line(&words));
    }
    if let Some(meaning) = pair.meaning {
        *text += &format!("    alike in meaning by {meaning:.2}\n");
    }
    for (name, before, number) in [(one, other, by_other), (other, one, by_one)] {
        if number > 0 {
            let verb = if number == 1 { "leads" } else { "lead" };
            let examples = count(number, "example");
            let said = format!("{examples} of {name} {verb} to {before} before it");
            *text += &format!("    {}\n", line(&said));
        }
    }
}

fn count(number: usize, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}
