//! Checks the text of a command's page: headings that are nearly those with a meaning or another
//! word for them, and placeholders that stand for nothing.

use std::borrow::Cow;

use super::naming::Notes;
use crate::catalog::entry::Entry;
use crate::page::declaration;
use crate::page::diagnostic::{Code, Diagnostic, Fix, Severity};
use crate::page::document::Document;
use crate::page::frontmatter::place;
use crate::page::sections::{self, headings, is_titled, Heading};
use crate::page::slip::{nearest, plain};
use crate::schedule::Cron;
use crate::text::extract::steps;
use crate::text::fence;

/// The headings that are read.
const HEADINGS: [&str; 5] = ["Usage", "Flags", "Behavior", "Examples", "Example"];

/// Other words for them, in letters and digits.
const WORDS: [(&str, &str); 24] = [
    ("args", "Flags"),
    ("argument", "Flags"),
    ("arguments", "Flags"),
    ("input", "Flags"),
    ("inputs", "Flags"),
    ("option", "Flags"),
    ("options", "Flags"),
    ("parameter", "Flags"),
    ("parameters", "Flags"),
    ("params", "Flags"),
    ("switches", "Flags"),
    ("howtouse", "Usage"),
    ("invocation", "Usage"),
    ("synopsis", "Usage"),
    ("syntax", "Usage"),
    ("actions", "Behavior"),
    ("instructions", "Behavior"),
    ("procedure", "Behavior"),
    ("process", "Behavior"),
    ("steps", "Behavior"),
    ("workflow", "Behavior"),
    ("exampleusage", "Examples"),
    ("samples", "Examples"),
    ("usageexamples", "Examples"),
];

/// Headings of a section that says when a command runs, in letters and digits.
const TIMED: [&str; 6] = ["cron", "runs", "schedule", "schedules", "timing", "whenitruns"];

/// The placeholders that every call has, in steps and in prose.
const BUILT_IN: [&str; 4] = ["today", "yesterday", "now", "user"];
/// The one that only steps have.
const LAST: &str = "last";

/// The most placeholders that a hint lists.
const LISTED: usize = 20;

pub(super) fn check(entry: &Entry, notes: &mut Notes) {
    let headings: Vec<_> = headings(entry.body()).collect();
    check_headings(entry, &headings, notes);
    check_schedule(entry, &headings, notes);
    // A handler gets its flags; nothing is filled into its page.
    if entry.fields().handler.is_none() && entry.body().contains('{') {
        check_placeholders(&entry.document, notes);
    }
}

/// Reports the headings that mean one of [`HEADINGS`], if the page does not have that one.
fn check_headings(entry: &Entry, headings: &[Heading<'_>], notes: &mut Notes) {
    let document = &entry.document;
    let body = document.body();
    let is_exact = |title: &str, known: &str| title.eq_ignore_ascii_case(known);
    let meant = |heading: &Heading<'_>| {
        let known = HEADINGS.iter().any(|known| is_exact(heading.title, known));
        let word = plain(heading.title).filter(|_| !known)?;
        nearest(&word, &HEADINGS).or_else(|| {
            let known = nearest(&word, &WORDS.map(|(word, _)| word))?;
            let (_, known) = WORDS.iter().find(|(word, _)| *word == known)?;
            would_be_read(entry, known, sections::under(body, heading)).then_some(*known)
        })
    };
    let slips: Vec<_> =
        headings.iter().filter_map(|heading| Some((heading, meant(heading)?))).collect();
    for (heading, known) in &slips {
        if headings.iter().any(|other| is_exact(other.title, known)) {
            continue;
        }
        let read = match is_titled(heading.title, known) {
            true => format!("read as `{known}`"),
            false => "its section has no effect".to_owned(),
        };
        let message =
            format!("expected the heading `{known}`, got `{}`; {read}", excerpt(heading.title));
        let at = document.body_range().start + fence::offset(body, heading.title);
        let alone = slips.iter().filter(|(_, other)| other == known).count() == 1;
        let fix = Fix { range: at..at + heading.title.len(), replacement: (*known).to_owned() };
        let marks = "#".repeat(heading.level.into());
        let diagnostic = Diagnostic::new(Code::HeadingMisspelt, Severity::Warning, message)
            .hint(format!("write {marks} {known}"))
            .fix(alone.then_some(fix));
        notes.push(at_heading(document, heading, diagnostic));
    }
}

/// Whether a section would have an effect under a known heading. Other words are ordinary titles
/// too, so only such a section shows that its author meant the known one.
fn would_be_read(entry: &Entry, known: &str, section: &str) -> bool {
    let fields = entry.fields();
    match known {
        "Flags" => fields.flags.is_none() && declaration::lists_flags(section),
        "Behavior" => {
            fields.handler.is_none() && steps(section).is_ok_and(|found| !found.lines.is_empty())
        }
        _ => section.lines().any(|line| {
            let line = line.trim_start_matches(|c: char| c == '`' || c.is_whitespace());
            line.split([' ', '\t', '`']).next() == Some(&*entry.name)
        }),
    }
}

/// Reports a section that says when the command runs, if the field `schedule` does not.
fn check_schedule(entry: &Entry, headings: &[Heading<'_>], notes: &mut Notes) {
    let (document, body) = (&entry.document, entry.body());
    let timed = headings.iter().find_map(|heading| {
        let is_timed = plain(heading.title).is_some_and(|word| TIMED.contains(&&*word));
        let line = sections::first_line(sections::under(body, heading)).filter(|_| is_timed)?;
        Cron::parse(line).is_ok().then_some((heading, line))
    });
    let timed = timed.filter(|_| document.data().get("schedule").is_none());
    if let Some((heading, line)) = timed {
        let message = format!(
            "expected the field `schedule`, got the heading `{}`; its section has no effect",
            excerpt(heading.title)
        );
        let diagnostic = Diagnostic::new(Code::HeadingMisspelt, Severity::Warning, message)
            .hint(format!("write schedule: {line} in the frontmatter"))
            .fix(document.added_field("schedule", line));
        notes.push(at_heading(document, heading, diagnostic));
    }
}

fn at_heading(document: &Document, heading: &Heading<'_>, diagnostic: Diagnostic) -> Diagnostic {
    let at = place(document.text.as_bytes(), document.body_range().start + heading.start);
    diagnostic.at(at.line, at.column)
}

fn excerpt(title: &str) -> String {
    title.chars().take(60).collect()
}

/// Reports the placeholders of a workflow's steps that no run could fill, and those of prose that
/// are nearly a flag.
fn check_placeholders(document: &Document, notes: &mut Notes) {
    let body = document.body();
    let declared = document.declaration().map_or(&[][..], |declared| &declared.flags);
    let flags: Vec<&str> =
        declared.iter().flat_map(|flag| flag.names.iter().map(String::as_str)).collect();
    let section = sections::section(body, "behavior").unwrap_or_default();
    let Ok(found) = steps(section) else { return };
    let mut push = |at: usize, diagnostic: Diagnostic| {
        let at = place(document.text.as_bytes(), document.body_range().start + at);
        notes.push(diagnostic.at(at.line, at.column));
    };
    if found.lines.is_empty() {
        for (at, name) in placeholders(body) {
            let known = flags.contains(&name) || BUILT_IN.contains(&name);
            let close = plain(name).filter(|_| !known).and_then(|name| nearest(&name, &flags));
            if let Some(close) = close {
                let message =
                    format!("expected {{{close}}}, got {{{name}}}, which is left as text");
                let hint = format!("write {{{close}}}, or {{{{{name}}} if it is meant as text");
                push(
                    at,
                    Diagnostic::new(Code::PlaceholderUnknown, Severity::Warning, message)
                        .hint(hint),
                );
            }
        }
        return;
    }
    let all: Vec<&str> = found.lines.iter().filter_map(|line| line.name).collect();
    let mut earlier: Vec<&str> = Vec::new();
    for (number, step) in (1u64..).zip(&found.lines) {
        for (at, name) in placeholders(&step.line) {
            let index = name.parse::<u64>().ok();
            let known = flags.contains(&name)
                || BUILT_IN.contains(&name)
                || earlier.contains(&name)
                || name == LAST && number > 1
                || index.is_some_and(|index| (1..number).contains(&index));
            if known {
                continue;
            }
            let (message, hint) = if name == LAST {
                (
                    format!("step 1 cannot use {{{LAST}}}: there is no step before it"),
                    "write the value, or a flag".to_owned(),
                )
            } else if index.is_some() || all.contains(&name) {
                (
                    format!(
                        "step {number} cannot use {{{name}}}: only earlier steps have a result"
                    ),
                    "put the step with the result first".to_owned(),
                )
            } else {
                let names: Vec<&str> = [&flags[..], &earlier[..], &BUILT_IN[..]].concat();
                (
                    format!(
                        "step {number} has the unknown placeholder {{{name}}}, so no call runs"
                    ),
                    suggestion(name, &names),
                )
            };
            let line = match &step.line {
                Cow::Borrowed(line) => fence::offset(body, line) + at,
                // The words of a line that is put together are in the page all the same.
                Cow::Owned(_) => {
                    let start = fence::offset(body, section);
                    start + section.find(&format!("{{{name}}}")).unwrap_or(0)
                }
            };
            push(
                line,
                Diagnostic::new(Code::PlaceholderUnknown, Severity::Error, message).hint(hint),
            );
        }
        earlier.extend(step.name);
    }
}

fn suggestion(name: &str, names: &[&str]) -> String {
    match plain(name).and_then(|name| nearest(&name, names)) {
        Some(close) => format!("did you mean {{{close}}}?"),
        None => {
            let listed: Vec<_> =
                names.iter().take(LISTED).map(|name| format!("{{{name}}}")).collect();
            format!(
                "known are {} and the numbers of earlier steps; for a brace, write {{{{",
                listed.join(", ")
            )
        }
    }
}

/// The names of the placeholders in a text, each with the offset of its brace. `{{` is a brace.
fn placeholders(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(open) = memchr::memchr(b'{', &text.as_bytes()[at..]).map(|open| at + open) {
        let rest = &text[open + 1..];
        at = open + 1;
        if rest.starts_with('{') {
            at += 1;
            continue;
        }
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let name = &rest[..end];
        if !name.is_empty() && !name.starts_with('-') && rest[end..].starts_with('}') {
            found.push((open, name));
            at += end;
        }
    }
    found
}
