//! Fields that say how a skill runs: effects, limits, schedule, and its own tool.

use super::place::at_part;
use super::FieldReader;
use crate::page::diagnostic::{Code, Diagnostic, Severity};
use crate::schedule::{self, Cron, Zone};
use crate::source::Effects;
use crate::value::Value;

/// The longest `timeout`, in milliseconds. A reply waits for its commands, so no command should
/// take longer.
const LONGEST_TIMEOUT: u32 = 60 * 60 * 1000;
/// The longest tool name that all vendors of models accept.
const TOOL_NAME_LENGTH: usize = 64;
/// The largest `max_running`.
const MOST_RUNNING: i64 = 1_000_000;

impl FieldReader<'_> {
    pub(super) fn effects(&mut self) -> Option<Effects> {
        match self.data.get("effects")? {
            Value::Str(text) if text == "read" => Some(Effects::Read),
            Value::Str(text) if text == "write" => Some(Effects::Write),
            value => {
                self.unless_null("effects", "`read` or `write`", value);
                None
            }
        }
    }

    /// The schedule and its time zone. With an unknown zone neither is used: in UTC the schedule
    /// would run at the wrong time.
    pub(super) fn schedule(&mut self) -> (Option<String>, Option<String>) {
        let (schedule, timezone) = (self.text("schedule"), self.text("timezone"));
        let cron = schedule.as_deref().map_or(Ok(()), |text| Cron::parse(text).map(drop));
        let zone = timezone.as_deref().map_or(Ok(()), |text| Zone::named(text).map(drop));
        let lost = match schedule {
            Some(_) => {
                "the field is not used, and neither is `schedule`, which would run at the \
                 wrong time"
            }
            None => "the field is not used",
        };
        // A wrong schedule does not make the zone wrong, so a valid zone is kept either way.
        let used = cron.is_ok() && zone.is_ok();
        self.wrong_schedule("schedule", &schedule, cron.err(), "the field is not used");
        let known = zone.is_ok();
        self.wrong_schedule("timezone", &timezone, zone.err(), lost);
        (schedule.filter(|_| used), timezone.filter(|_| known))
    }

    fn wrong_schedule(
        &mut self,
        key: &str,
        text: &Option<String>,
        error: Option<schedule::Error>,
        lost: &str,
    ) {
        if let (Some(text), Some(error)) = (text, error) {
            let diagnostic = Diagnostic::new(
                Code::ScheduleInvalid,
                Severity::Warning,
                format!("`{key}`: {error}; {lost}"),
            )
            .hint(error.hint());
            let block = if self.columns.contains(&key) { "" } else { self.block };
            self.diagnostics.push(at_part(block, key, text, error.span().start, diagnostic));
        }
    }

    pub(super) fn timeout(&mut self) -> Option<u32> {
        let value = self.data.get("timeout")?;
        let milliseconds = match value.typed() {
            Value::Int(seconds) => Some(*seconds as f64 * 1000.0),
            Value::Float(seconds) => Some(seconds * 1000.0),
            Value::Str(text) => duration(text),
            _ => None,
        };
        let allowed =
            |milliseconds: &f64| (1.0..=f64::from(LONGEST_TIMEOUT)).contains(milliseconds);
        let read = milliseconds.filter(allowed).map(|milliseconds| milliseconds as u32);
        if read.is_none() {
            self.unless_null(
                "timeout",
                "seconds, or a duration such as 500ms, 30s or 5m, of at most 1h",
                value,
            );
        }
        read
    }

    pub(super) fn max_running(&mut self) -> Option<u32> {
        let value = self.data.get("max_running")?;
        match value.typed() {
            Value::Int(count @ 1..=MOST_RUNNING) => Some(*count as u32),
            _ => {
                self.unless_null("max_running", "a number from 1 to 1000000", value);
                None
            }
        }
    }

    /// Checks `tool`, the name of the entry's tool definition.
    ///
    /// It must have a form that all vendors accept, and must not look like the generated name of
    /// another entry. It must also be an alias, so that a tool and a command of the same name are
    /// the same entry.
    pub(super) fn check_tool(&mut self, aliases: &[String]) {
        match self.data.get("tool") {
            Some(Value::Str(tool)) if tool_name(tool) && aliases.contains(tool) => {}
            Some(Value::Str(tool)) if tool_name(tool) => {
                let message = format!(
                    "expected `tool` among the aliases, got \"{tool}\"; the field is not used"
                );
                let diagnostic = Diagnostic::new(Code::FieldIgnored, Severity::Warning, message)
                    .hint(format!("also write aliases: [{tool}]"));
                self.push("tool", diagnostic);
            }
            Some(value) => {
                let expected =
                    "up to 64 letters, digits, `-` and single `_`, other than get_skill,";
                self.unless_null("tool", expected, value);
            }
            None => {}
        }
    }
}

/// Whether a page may choose this name for its tool. Generated names have `__` for a dot, or end in
/// a hash.
fn tool_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let hash = |hash: &str| {
        hash.len() == 16 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    (1..=TOOL_NAME_LENGTH).contains(&name.len())
        && name.bytes().all(plain)
        && !name.contains("__")
        && !name.rsplit_once('-').is_some_and(|(_, end)| hash(end))
        && name != "get_skill"
}

/// Reads a number with the unit `ms`, `s`, `m` or `h`, or without one for seconds. Returns
/// milliseconds.
fn duration(text: &str) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let unit = match text[end..].to_ascii_lowercase().as_str() {
        "ms" => 1.0,
        "" | "s" => 1000.0,
        "m" => 60.0 * 1000.0,
        "h" => 60.0 * 60.0 * 1000.0,
        _ => return None,
    };
    let number = text[..end].trim().parse::<f64>().ok()?;
    Some(number * unit)
}
