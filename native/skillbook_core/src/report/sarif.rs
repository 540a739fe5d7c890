//! Diagnostics as a log in the Static Analysis Results Interchange Format (SARIF) 2.1.0.
//!
//! Columns are counted in UTF-16 code units, because many readers ignore `columnKind`. Fixes
//! replace regions of text; for a region of bytes the format requires base64.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

use hmac_sha256::Hash;
use serde_json::{json, Value};

use super::codes::explain;
use super::relative;
use crate::page::diagnostic::{Code, Diagnostic, Fix, Severity};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// The project has no address of its own for its documentation.
const URI: &str = "urn:skillbook:diagnostic:";

/// The log. Paths below the folder are relative to it.
pub(super) fn log(
    diagnostics: &[Diagnostic],
    folder: &str,
    read: impl Fn(&str) -> Option<Vec<u8>>,
) -> Value {
    let codes: BTreeSet<&str> = diagnostics.iter().map(|found| found.code.as_str()).collect();
    let codes: Vec<Code> = codes
        .into_iter()
        .filter_map(|name| Code::ALL.iter().copied().find(|code| code.as_str() == name))
        .collect();
    let mut texts: HashMap<&str, String> = HashMap::new();
    let mut results = Vec::new();
    let mut counts: HashMap<String, usize> = HashMap::new();
    for found in diagnostics {
        let path = found.path.as_deref().unwrap_or_default();
        let text = texts.entry(path).or_insert_with(|| {
            read(path).and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
        });
        let uri = uri(path, folder);
        // Readers recognise a finding of an earlier run by the hash of its line, which stays the
        // same when other lines change. Equal ones are numbered.
        let hash = hash(found.code, &uri, line(text, found.line.unwrap_or(1)).trim());
        let count = counts.entry(hash.clone()).and_modify(|count| *count += 1).or_insert(1);
        let index = codes.iter().position(|code| *code == found.code);
        let mut result = json!({
            "ruleId": found.code.as_str(),
            "ruleIndex": index,
            "level": match found.severity {
                Severity::Info => "note",
                severity => severity.as_str(),
            },
            "message": {"text": message(found)},
            "locations": [{
                "physicalLocation": {
                    "artifactLocation": {"uri": uri},
                    "region": region(found, text),
                },
            }],
            "partialFingerprints": {"primaryLocationLineHash": format!("{hash}:{count}")},
        });
        if let Some(fix) = &found.fix {
            result["fixes"] = json!([self::fix(found, fix, &uri, text)]);
        }
        results.push(result);
    }
    let driver = json!({
        "name": "skillbook",
        "version": env!("CARGO_PKG_VERSION"),
        "rules": codes.into_iter().map(rule).collect::<Value>(),
    });
    let run = json!({
        "tool": {"driver": driver},
        "columnKind": "utf16CodeUnits",
        "results": results,
    });
    json!({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})
}

fn rule(code: Code) -> Value {
    let (problem, solution) = explain(code).unwrap_or_default();
    let plain = |markdown: &str| markdown.replace('`', "");
    json!({
        "id": code.as_str(),
        "shortDescription": {"text": code.as_str().replace('_', " ")},
        "fullDescription": {"text": format!("{}.", plain(&problem))},
        "help": {
            "text": format!("{}. {}.", plain(&problem), plain(&solution)),
            "markdown": format!("{problem}.\n\n**Solution:** {solution}."),
        },
        "helpUri": format!("{URI}{}", code.as_str()),
    })
}

fn hash(code: Code, uri: &str, line: &str) -> String {
    let text = [code.as_str(), uri, line].join("\0");
    Hash::hash(text.as_bytes()).iter().take(8).fold(String::new(), |mut hash, byte| {
        let _ = write!(hash, "{byte:02x}");
        hash
    })
}

fn message(found: &Diagnostic) -> String {
    match &found.hint {
        Some(hint) => format!("{}\nHint: {hint}", found.message),
        None => found.message.clone(),
    }
}

fn uri(path: &str, folder: &str) -> String {
    let relative = relative(path, folder);
    let mut uri = if relative == path { "file://".to_owned() } else { String::new() };
    for byte in relative.bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => uri.push(byte.into()),
            _ if byte.is_ascii_alphanumeric() => uri.push(byte.into()),
            _ => drop(write!(uri, "%{byte:02X}")),
        }
    }
    uri
}

/// From the column, or the first one, to the end of the line.
fn region(found: &Diagnostic, text: &str) -> Value {
    let number = found.line.unwrap_or(1);
    let line = line(text, number).trim_end_matches('\r');
    let before = found.column.unwrap_or(1) as usize - 1;
    let end = line.char_indices().nth(before).map_or(line.len(), |(at, _)| at);
    let start = units(&line[..end]) + 1;
    json!({
        "startLine": number,
        "startColumn": start,
        "endLine": number,
        "endColumn": start.max(units(line) + 1),
    })
}

fn line(text: &str, number: u32) -> &str {
    text.split('\n').nth((number as usize).saturating_sub(1)).unwrap_or_default()
}

fn fix(found: &Diagnostic, fix: &Fix, uri: &str, text: &str) -> Value {
    let (start_line, start_column) = place(text, fix.range.start);
    let (end_line, end_column) = place(text, fix.range.end);
    json!({
        "description": {"text": found.hint.as_deref().unwrap_or("write the value as it was read")},
        "artifactChanges": [{
            "artifactLocation": {"uri": uri},
            "replacements": [{
                "deletedRegion": {
                    "startLine": start_line,
                    "startColumn": start_column,
                    "endLine": end_line,
                    "endColumn": end_column,
                },
                "insertedContent": {"text": fix.replacement},
            }],
        }],
    })
}

/// The line and column of a byte offset.
fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.rsplit('\n').next().unwrap_or_default();
    (before.matches('\n').count() + 1, units(line) + 1)
}

/// The number of UTF-16 code units. The byte order mark is not counted.
fn units(text: &str) -> usize {
    text.strip_prefix('\u{FEFF}').unwrap_or(text).encode_utf16().count()
}
