//! Fields that say how a skill runs: effects, approval, limits, schedule, and its own tool.

use super::place::{at_key, at_part};
use super::typed::describe;
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
/// The field that makes each call wait for an approval, and keys that probably mean it.
const APPROVAL: &str = "approval";
const APPROVAL_MEANT: [&str; 6] = [
    "approvals",
    "approvalrequired",
    "requireapproval",
    "requiresapproval",
    "needapproval",
    "needsapproval",
];
/// The longest key that may mean it, in bytes.
const APPROVAL_KEY: usize = 32;

/// The calls of an entry that need an approval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Approval {
    /// None of them.
    #[default]
    None,
    /// Each of them.
    Required,
    /// Those with any of these flags, without their dashes.
    Flags(Vec<String>),
}

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

    /// Whether the text is trusted less than its source. The field can only lower the trust, so
    /// every other value is read as `low` too.
    pub(super) fn low_trust(&mut self) -> bool {
        match self.data.get("trust") {
            None | Some(Value::Null) => false,
            Some(Value::Str(text)) if text == "low" => true,
            Some(value) => {
                let got = describe(value);
                let message = format!("expected `low` for `trust`, got {got}; read as `low`");
                self.mended("trust", message, Some(Value::Str("low".to_owned())));
                true
            }
        }
    }

    /// Which calls need an approval.
    ///
    /// Only `none`, or no such field, means that none does, and only a list of flags that those
    /// with one of these do. Everything else is read as `required`, so that a slip opens nothing:
    /// other values, a key that differs from `approval` by one letter or its form, a second one,
    /// and one in `metadata` or inside of a text.
    pub(super) fn approval(&mut self) -> Approval {
        let Some(value) = self.data.get(APPROVAL) else {
            return match self.approval_key() {
                true => Approval::Required,
                false => Approval::None,
            };
        };
        let read = match value {
            Value::Str(text) if text == "required" => return Approval::Required,
            Value::Str(text) if text == "none" => Some(Approval::None),
            value => approval_flags(value).map(Approval::Flags),
        };
        match read {
            Some(approval) if mentions(self.block) < 2 => return approval,
            Some(_) => self.approval_slip(APPROVAL, "once, got it more than once"),
            None => {
                let message = format!(
                    "expected `required`, `none` or a list of flags such as `[--to]` for \
                     `approval`, got {}; read as `required`",
                    describe(value)
                );
                self.mended(APPROVAL, message, Some(Value::Str("required".to_owned())));
            }
        }
        Approval::Required
    }

    /// Whether a key or a line of the frontmatter looks like `approval`, which it does not have.
    fn approval_key(&mut self) -> bool {
        let Value::Map(pairs) = self.data else { return false };
        if let Some((key, _)) = pairs.iter().find(|(key, _)| means_approval(key)) {
            let key = key.clone();
            self.approval_slip(&key, &format!("got `{key}`"));
            return true;
        }
        let inner = self.data.get("metadata");
        let in_metadata = matches!(inner, Some(Value::Map(pairs))
            if pairs.iter().any(|(key, _)| means_approval(key)));
        // A key at the start of a line is not a field if a repair made it part of a text.
        let starts = |line: &str| {
            !line.starts_with([' ', '\t'])
                && line.split_once(':').is_some_and(|(key, _)| means_approval(key))
        };
        let lost = in_metadata || self.block.lines().any(starts);
        if lost {
            self.approval_slip(APPROVAL, "as a field, got it inside of another value");
        }
        lost
    }

    fn approval_slip(&mut self, key: &str, got: &str) {
        let comma = if got.starts_with("got") { ", " } else { " " };
        let message = format!("expected `approval`{comma}{got}; read as `approval: required`");
        let diagnostic = Diagnostic::new(Code::FieldMended, Severity::Warning, message)
            .hint("write approval: required, or approval: none");
        self.diagnostics.push(at_key(self.block, key, diagnostic));
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

/// The flags in a list such as `[--to, --cc]`; `None` for anything else.
fn approval_flags(value: &Value) -> Option<Vec<String>> {
    let Value::List(items) = value else { return None };
    let mut flags = Vec::new();
    for item in items {
        let Value::Str(text) = item else { return None };
        flags.push(text.strip_prefix("--").filter(|name| !name.is_empty())?.to_owned());
    }
    (!flags.is_empty()).then_some(flags)
}

/// How often a text has `approval` as a key.
fn mentions(block: &str) -> usize {
    let lower = block.to_ascii_lowercase();
    let is_key = |(at, word): (usize, &str)| {
        let rest = lower[at + word.len()..].trim_start_matches(['"', '\'', ' ', '\t']);
        rest.starts_with(':')
    };
    lower.match_indices(APPROVAL).filter(|found| is_key(*found)).count()
}

/// Whether a key is `approval`, differs from it by one letter, or has another of its forms.
pub(super) fn means_approval(key: &str) -> bool {
    if key.len() > APPROVAL_KEY {
        return false;
    }
    let plain = || key.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase);
    // All of them begin or end alike, and one slip leaves one of both ends. Comparing each key with
    // all of them would take longer than reading all fields.
    if !plain().take(3).eq("app".chars()) && !plain().rev().take(3).eq("lav".chars()) {
        return false;
    }
    let plain: String = plain().collect();
    APPROVAL_MEANT.contains(&plain.as_str()) || strsim::osa_distance(&plain, APPROVAL) <= 1
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
