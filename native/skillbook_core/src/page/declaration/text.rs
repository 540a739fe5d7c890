//! Writes the flags of the frontmatter as text, for readers of pages that do not describe them.

use super::{Flag, Type, DAYS};
use crate::text::line::push_line;

/// A line of usage: `mail.send --to <to> [--mode <html|plain>]`.
pub fn usage(name: &str, flags: &[Flag]) -> String {
    let mut out = name.to_owned();
    for flag in flags {
        let value = match &flag.kind {
            Type::Switch => None,
            Type::OneOf(words) => Some(words.join("|")),
            Type::Integer { .. } | Type::Number { .. } => Some("n".to_owned()),
            Type::Date { .. } => Some("YYYY-MM-DD".to_owned()),
            Type::Json(_) => Some("json".to_owned()),
            _ => Some(flag.name().to_owned()),
        };
        let several = if flag.several { "..." } else { "" };
        let value = value.map(|value| format!(" <{value}>{several}")).unwrap_or_default();
        let (open, close) = if flag.required { ("", "") } else { ("[", "]") };
        out.push(' ');
        push_line(&mut out, &format!("{open}--{}{value}{close}", flag.name()));
    }
    out
}

/// The lines of a Flags section.
pub fn section(flags: &[Flag]) -> String {
    let width = flags.iter().map(|flag| flag.name().chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for flag in flags {
        let (described, facts) = (flag.description.trim(), facts(flag));
        out.push_str(&format!("--{:width$}  ", flag.name()));
        match (described, facts.as_str()) {
            ("", text) | (text, "") => push_line(&mut out, text),
            _ => push_line(&mut out, &format!("{described} ({facts})")),
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    out
}

/// The type of a flag and its other facts.
fn facts(flag: &Flag) -> String {
    let mut facts = Vec::new();
    match &flag.kind {
        Type::OneOf(words) => facts.push(format!("one of {}", words.join(", "))),
        Type::Integer { min, max } => facts.push(range("integer", *min, *max)),
        Type::Number { min, max } => facts.push(range("number", *min, *max)),
        Type::Date { words: false } => facts.push("YYYY-MM-DD".to_owned()),
        Type::Date { words: true } => facts.push(format!("YYYY-MM-DD or {}", DAYS.join(", "))),
        Type::Datetime => facts.push("ISO 8601 time with an offset".to_owned()),
        Type::Email => facts.push("e-mail address".to_owned()),
        Type::Url => facts.push("URL".to_owned()),
        Type::Switch => facts.push("switch without a value".to_owned()),
        Type::Text { max, line, .. } => {
            if let Some(max) = max {
                facts.push(format!("at most {max} characters"));
            }
            if *line {
                facts.push("one line".to_owned());
            }
        }
        Type::Json(structure) => facts.push(format!("JSON: {structure}")),
        Type::Unknown | Type::Value => {}
    }
    if let Some(pattern) = &flag.pattern {
        facts.push(format!("matches {}", pattern.as_str()));
    }
    if flag.several {
        facts.push("repeatable".to_owned());
    }
    if flag.required {
        facts.push("required".to_owned());
    }
    if !flag.default.is_empty() {
        facts.push(format!("default: {}", flag.default.join(", ")));
    }
    facts.join(", ")
}

fn range<T: std::fmt::Display>(kind: &str, min: Option<T>, max: Option<T>) -> String {
    match (min, max) {
        (Some(min), Some(max)) => format!("{kind} from {min} to {max}"),
        (Some(min), None) => format!("{kind} from {min} on"),
        (None, Some(max)) => format!("{kind} up to {max}"),
        (None, None) => kind.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::document::Document;

    /// A flag in frontmatter; its usage and its line.
    const ROWS: [(&str, &str, &str); 14] = [
        ("a: text", "[--a <a>]", "--a"),
        ("a: {required: true, description: A name}", "--a <a>", "--a  A name (required)"),
        ("a: {type: integer, min: 1, max: 9}", "[--a <n>]", "--a  integer from 1 to 9"),
        ("a: {type: integer, default: 2}", "[--a <n>]", "--a  integer, default: 2"),
        ("a: {type: integer, min: 1}", "[--a <n>]", "--a  integer from 1 on"),
        ("a: {type: number, max: 0.5}", "[--a <n>]", "--a  number up to 0.5"),
        ("a: {values: [x, y], description: Which?}", "[--a <x|y>]", "--a  Which? (one of x, y)"),
        ("a: {values: [x], repeatable: true}", "[--a <x>...]", "--a  one of x, repeatable"),
        ("a: boolean", "[--a]", "--a  switch without a value"),
        ("a: date", "[--a <YYYY-MM-DD>]", "--a  YYYY-MM-DD"),
        ("a: {type: email, required: true}", "--a <a>", "--a  e-mail address, required"),
        ("a: {type: url, description: \"Two\\n lines\"}", "[--a <a>]", "--a  Two lines (URL)"),
        ("a: {max_length: 9, line: true}", "[--a <a>]", "--a  at most 9 characters, one line"),
        ("a: {pattern: '[A-Z]+'}", "[--a <a>]", "--a  matches [A-Z]+"),
    ];

    #[test]
    fn flags_of_the_frontmatter_are_shown() {
        for (flag, shown, line) in ROWS {
            let page = format!("---\nname: b.c\ndescription: D\nflags:\n  {flag}\n---\nText\n");
            let document = Document::parse("/s", "b/c.md", page.as_bytes());
            let flags = &document.fields().unwrap().flags.as_ref().unwrap().flags;
            assert_eq!(usage("b.c", flags), format!("b.c {shown}"), "{flag}");
            assert_eq!(section(flags).trim_end(), line, "{flag}");
            assert_eq!(document.fields().unwrap().usage, Some(usage("b.c", flags)));
        }
    }
}
