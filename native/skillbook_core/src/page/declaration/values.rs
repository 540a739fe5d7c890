//! Which texts are values of a type, by the rules of the checks before a run.

use jiff_core::civil::Date;

use super::{Type, DAYS};

/// The longest e-mail address and the longest address of the web, in bytes.
const LONGEST_EMAIL: usize = 254;
const LONGEST_URL: usize = 2_048;

impl Type {
    /// Whether a text can be a value of this type.
    pub(super) fn takes(&self, value: &str) -> bool {
        match self {
            Type::OneOf(values) => values.iter().any(|allowed| allowed == value),
            Type::Integer { min, max } => value.parse::<i64>().is_ok_and(|number| {
                min.is_none_or(|min| number >= min) && max.is_none_or(|max| number <= max)
            }),
            Type::Number { min, max } => number(value).is_some_and(|number| {
                min.is_none_or(|min| number >= min) && max.is_none_or(|max| number <= max)
            }),
            Type::Text { max, line, empty } => {
                let length = value.chars().count() as u64;
                (*empty || !value.trim().is_empty())
                    && value.chars().all(|c| matches!(c, '\t' | '\n' | '\r') || !is_control(c))
                    && !(*line && value.contains(breaks))
                    && max.is_none_or(|max| length <= max)
            }
            Type::Date { words } => *words && DAYS.contains(&value) || date(value),
            Type::Datetime => datetime(value),
            Type::Email => email(value),
            Type::Url => url(value),
            Type::Switch => matches!(value, "true" | "false"),
            // Its schema says more.
            Type::Json(_) | Type::Unknown | Type::Value => true,
        }
    }

    /// Whether a description may call a flag of the other type by this one: text may be an address,
    /// and bounds may be left out, but not be others.
    pub(super) fn fits(&self, other: &Type) -> bool {
        let bound = |own: bool, same: bool| !own || same;
        match (self, other) {
            (Type::Unknown | Type::Value, _) => true,
            (Type::Text { max, .. }, Type::Text { max: other, .. }) => {
                bound(max.is_some(), max == other)
            }
            (Type::Text { max: None, .. }, Type::Email | Type::Url | Type::OneOf(_)) => true,
            (Type::Integer { min, max }, Type::Integer { min: low, max: high }) => {
                bound(min.is_some(), min == low) && bound(max.is_some(), max == high)
            }
            (Type::Integer { min, max }, Type::Number { min: low, max: high }) => {
                let same = |own: &Option<i64>, other: &Option<f64>| {
                    bound(own.is_some(), own.map(|own| own as f64) == *other)
                };
                same(min, low) && same(max, high)
            }
            (Type::Number { min, max }, Type::Number { min: low, max: high }) => {
                bound(min.is_some(), min == low) && bound(max.is_some(), max == high)
            }
            (Type::Date { words }, Type::Date { words: other }) => !words || *other,
            (Type::OneOf(values), Type::OneOf(others)) => {
                values.len() == others.len() && values.iter().all(|value| others.contains(value))
            }
            (own, other) => own == other,
        }
    }
}

/// A number as the handler's checks read it: digits, and a fraction or an exponent after them.
fn number(text: &str) -> Option<f64> {
    let digits = |byte: u8| byte.is_ascii_digit();
    let plain =
        text.bytes().all(|byte| digits(byte) || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E'));
    let first = text.trim_start_matches(['+', '-']).bytes().next().is_some_and(digits);
    let dots = text.match_indices('.').all(|(at, _)| {
        let after = text.as_bytes().get(at + 1).copied().is_some_and(digits);
        after && at > 0 && digits(text.as_bytes()[at - 1])
    });
    let number = text.parse::<f64>().ok().filter(|_| plain && first && dots)?;
    number.is_finite().then_some(number)
}

fn is_control(c: char) -> bool {
    c <= '\u{1F}' || c == '\u{7F}'
}

fn breaks(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Whether a text has a form, in which `0` is any digit.
fn has_form(text: &str, form: &str) -> bool {
    text.len() == form.len()
        && text.bytes().zip(form.bytes()).all(|(byte, like)| match like {
            b'0' => byte.is_ascii_digit(),
            like => byte == like,
        })
}

/// `2026-03-01`.
fn date(text: &str) -> bool {
    let day = || {
        let (year, month, day) = (text[..4].parse(), text[5..7].parse(), text[8..].parse());
        Date::new(year.ok()?, month.ok()?, day.ok()?).ok()
    };
    has_form(text, "0000-00-00") && day().is_some()
}

/// `10:00:00`, or without seconds, as in an offset.
fn clock(text: &str, form: &str) -> bool {
    has_form(text, form) && text[..2] < *"24" && text[3..].split(':').all(|part| part < "60")
}

/// `2026-03-01T10:00:00Z`, with an offset such as `+01:00`, and with a fraction of a second.
fn datetime(text: &str) -> bool {
    let Some((day, (time, rest))) =
        text.split_once('T').and_then(|(day, time)| Some((day, time.split_at_checked(8)?)))
    else {
        return false;
    };
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => {
            let zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
            if !(1..=6).contains(&(fraction.len() - zone.len())) {
                return false;
            }
            zone
        }
        None => rest,
    };
    let offset = zone.strip_prefix(['+', '-']);
    date(day)
        && clock(time, "00:00:00")
        && (zone == "Z" || offset.is_some_and(|offset| clock(offset, "00:00")))
}

/// One `@`, and a domain with at least one dot.
fn email(text: &str) -> bool {
    let part = |part: &str, dots: bool| {
        let refused = |c: char| {
            c.is_whitespace() || c.is_control() || "@<>()[],;:\"\\".contains(c) || c == '.' && !dots
        };
        !part.is_empty() && !part.contains(refused)
    };
    let Some((user, domain)) = text.split_once('@') else { return false };
    text.len() <= LONGEST_EMAIL
        && part(user, true)
        && domain.contains('.')
        && domain.split('.').all(|label| part(label, false))
}

/// `http` or `https`, a host, and no blanks.
fn url(text: &str) -> bool {
    let rest = ["http://", "https://"].iter().find_map(|scheme| {
        let start = text.get(..scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then(|| &text[scheme.len()..])
    });
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"<>\"\\^`{|}".contains(&byte);
    let Some(rest) = rest else { return false };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (name, port) = match host.split_once(']') {
        Some((address, port)) => (address, port),
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_host = match name.strip_prefix('[').filter(|_| host.contains(']')) {
        Some(address) => {
            !address.is_empty()
                && address.bytes().all(|byte| byte.is_ascii_hexdigit() || b":.".contains(&byte))
        }
        None => {
            !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._~%-".contains(&byte))
        }
    };
    let is_port = |port: &str| {
        (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit())
    };
    is_host
        && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
        && text.len() <= LONGEST_URL
        && text.bytes().all(plain)
}
