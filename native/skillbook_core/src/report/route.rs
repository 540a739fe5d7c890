//! The stages of the router for a request, and what it picks.

use serde::{Deserialize, Serialize};

use super::ranking::{quoted, strongest};
use super::{json, Printed, Style, Terminal};
use crate::hidden::line;
use crate::search::explain::Pull;

/// The stages of the router for a request, and its picks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Route {
    /// The request.
    pub request: String,
    /// Whether there are picks.
    pub needed: bool,
    /// The least confidence of a pick.
    pub threshold: f64,
    /// The picks, the most confident first.
    pub picks: Vec<Pick>,
    /// The stages in their order.
    pub stages: Vec<Stage>,
}

/// An entry that is picked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as `Skillbook.Preflight.Pick` describes them")]
pub struct Pick {
    pub name: String,
    pub confidence: f64,
    pub reason: String,
    pub stage: String,
}

/// A stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Its name.
    pub stage: String,
    /// `ok`, `skipped`, `failed` or `timeout`.
    pub status: String,
    /// The time that it took, in microseconds.
    pub duration: u64,
    /// The reason why it failed.
    pub error: Option<String>,
    /// The entries that it considered, best first.
    pub candidates: Vec<Considered>,
}

/// An entry that a stage considered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as `Skillbook.Preflight` describes them")]
pub struct Considered {
    pub name: String,
    pub confidence: f64,
    pub reason: String,
    /// Only of a search.
    #[serde(flatten)]
    pub scored: Option<Scored>,
}

/// The score of an entry, and the reasons for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as `Skillbook.Test` describes them")]
pub struct Scored {
    pub score: f64,
    pub similarity: Option<f64>,
    pub words: Vec<Pull>,
    pub sentence: Option<String>,
}

/// The report as text or as JSON. It fails if a stage failed.
pub fn route(route: &Route, as_json: bool, terminal: Terminal) -> Printed {
    let text = match as_json {
        true => json(serde_json::to_value(route).unwrap_or_default()),
        false => text(route, terminal),
    };
    let failed = route.stages.iter().any(|stage| matches!(&*stage.status, "failed" | "timeout"));
    Printed { failed, ..Printed::text(text) }
}

fn text(route: &Route, terminal: Terminal) -> String {
    let mut text = String::new();
    for stage in &route.stages {
        text += &terminal.style(Style::Bright, &stage.stage);
        let took = format!("  {:.1} ms", stage.duration as f64 / 1000.0);
        text += &terminal.style(Style::Faint, &took);
        match (&*stage.status, &stage.error) {
            ("skipped", _) => text += "  not needed",
            (_, Some(error)) => {
                text += "  ";
                text += &terminal.style(Style::Red, &line(error));
            }
            _ if stage.candidates.is_empty() => text += "  nothing",
            _ => {}
        }
        text.push('\n');
        let width = stage.candidates.iter().map(|one| one.name.chars().count()).max().unwrap_or(0);
        for candidate in &stage.candidates {
            considered(&mut text, candidate, width);
        }
        text.push('\n');
    }
    let threshold = format!("{:.2}", route.threshold);
    if route.picks.is_empty() {
        let none = terminal.style(Style::Bright, "No skill needed");
        return format!("{text}{none}: none has a confidence of {threshold}");
    }
    text += &terminal.style(Style::Bright, "Picked");
    text += &format!(", from a confidence of {threshold} on");
    for Pick { name, confidence, stage, .. } in &route.picks {
        text += &format!("\n  {}  {confidence:.2}  {stage}", line(name));
    }
    text
}

fn considered(text: &mut String, candidate: &Considered, width: usize) {
    let Considered { name, confidence, reason, scored } = candidate;
    *text += &format!("  {}  {confidence:.2}  {}", line(&format!("{name:width$}")), line(reason));
    let Some(Scored { words, sentence, .. }) = scored else { return text.push('\n') };
    if let Some(words) = strongest(words) {
        *text += &format!(": {}", line(&words));
    }
    text.push('\n');
    if let Some(sentence) = sentence {
        *text += &format!("      {}\n", line(&quoted(sentence)));
    }
}
