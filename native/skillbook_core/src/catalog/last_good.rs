//! Keeps the last good version of a document that an edit has broken.
//!
//! Editors save half-finished files, and a reload must not drop a skill that is in use because of
//! one. The last good version stays until the file can be read again or is deleted.

use super::assemble::described;
use crate::page::diagnostic::{Code, Diagnostic, Severity};
use crate::page::document::Document;
use crate::page::fields::restrictions::is_mentioned;

/// Returns the last good version, with the diagnostics of the new one, if the new one cannot be
/// used: it is empty or unreadable, or needs a description and has none. `again` is the new
/// content, or the reason why there is none; `bytes` are the bytes that were read.
///
/// An edit that touches a restriction, such as `visibility_labels`, may be meant to hide the
/// document. Then the old version does not stay, even if the new one has other errors.
///
/// ```
/// use skillbook_core::page::document::Document;
/// use skillbook_core::catalog::last_good::keep;
///
/// let good = Document::parse("/skills", "a.md", b"---\nname: a\ndescription: About a\n---\nText");
/// let half = b"---\nname: a\ndescr";
/// let kept = keep(&good, Ok(&Document::parse("/skills", "a.md", half)), half, true).unwrap();
/// assert_eq!(kept.body(), "Text");
/// let codes: Vec<_> = kept.diagnostics.iter().map(|found| found.code.as_str()).collect();
/// assert_eq!(codes, ["frontmatter_unclosed", "kept_last_good"]);
/// ```
pub fn keep(
    good: &Document,
    again: Result<&Document, &Diagnostic>,
    bytes: &[u8],
    needs_description: bool,
) -> Option<Document> {
    // Without a document there are no fields, so only the reason can be reported.
    let mut diagnostics = match again {
        Err(diagnostic) => vec![diagnostic.clone()],
        Ok(document) => broken(good, document, bytes, needs_description)?,
    };
    // Closed when in doubt: showing a document that somebody is hiding is worse than losing it
    // until its next save.
    if touches_restrictions(&good.text, bytes) {
        return None;
    }
    let message = "the version before this edit stays in use, because this one cannot be used";
    let hint = "fix the file, or delete it to remove the entry";
    diagnostics.push(Diagnostic::new(Code::KeptLastGood, Severity::Warning, message).hint(hint));
    for diagnostic in &mut diagnostics {
        diagnostic.path = Some(good.path.clone());
    }
    let mut kept = good.clone();
    kept.diagnostics = diagnostics;
    Some(kept)
}

/// The diagnostics of a new version that is broken. `None` if it can be used, or if the old version
/// must not replace it because a restriction that cannot be read hides it.
fn broken(
    good: &Document,
    new: &Document,
    bytes: &[u8],
    needs_description: bool,
) -> Option<Vec<Diagnostic>> {
    let mut diagnostics = new.diagnostics.clone();
    if bytes.trim_ascii().is_empty() {
        let message = "expected a document, got an empty file";
        diagnostics.push(Diagnostic::new(Code::DocumentEmpty, Severity::Error, message));
        return Some(diagnostics);
    }
    let Some(fields) = new.fields() else {
        // An error in a restriction hides the document on purpose, and the old version must not
        // undo that.
        let hides = |code| matches!(code, Code::LabelsInvalid | Code::RestrictionInvalid);
        let hidden = diagnostics.iter().any(|diagnostic| hides(diagnostic.code));
        return (!hidden).then_some(diagnostics);
    };
    // An index needs no description, so a missing one does not break it.
    let index = new.is_skill_file() && fields.name.is_none() && fields.domain.is_some();
    let had = good.fields().is_some_and(|fields| fields.description.is_some());
    let gone = needs_description && !index && had && described(fields, &mut diagnostics).is_none();
    gone.then_some(diagnostics)
}

/// Whether the new bytes mention a restriction in a way that the old text does not.
fn touches_restrictions(old: &str, new: &[u8]) -> bool {
    // UTF-16 text has a zero byte beside each ASCII letter, and its restrictions count too.
    let plain: Vec<u8> = new.iter().copied().filter(|byte| *byte != 0).collect();
    let new = String::from_utf8_lossy(&plain);
    // Lines that the old text has do not count, even if they mention a restriction, as in an
    // example.
    let known = statements(old);
    statements(&new).iter().any(|statement| !known.contains(statement))
}

/// Each line that looks like a restriction, with the lines that continue its value: those up to
/// the next key or the end of the block.
fn statements(text: &str) -> Vec<Vec<&str>> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let goes_on = |line: &&&str| {
        let key = |c: char| c.is_alphanumeric() || matches!(c, '_' | '"' | '\'');
        !line.starts_with(key) && !line.starts_with("---")
    };
    let statement = |at: usize| {
        let rest =
            lines[at + 1..].iter().take_while(goes_on).copied().filter(|line| !line.is_empty());
        std::iter::once(lines[at]).chain(rest).collect()
    };
    (0..lines.len()).filter(|at| is_mentioned(lines[*at])).map(statement).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "---\nname: a\ndescription: d\nvisibility_labels: [x]\n---\nGood\n";

    fn codes(good: &str, new: &[u8], needs_description: bool) -> Option<Vec<&'static str>> {
        let good = Document::parse("/s", "a.md", good.as_bytes());
        let again = Document::parse("/s", "a.md", new);
        let kept = keep(&good, Ok(&again), new, needs_description)?;
        assert_eq!(kept.text, good.text);
        assert!(kept
            .diagnostics
            .iter()
            .all(|diagnostic| diagnostic.path.as_deref() == Some("/s/a.md")));
        Some(kept.diagnostics.iter().map(|diagnostic| diagnostic.code.as_str()).collect())
    }

    #[test]
    fn keeps_the_last_good_version() {
        let rows: &[(&[u8], bool, Option<&str>)] = &[
            (b"---\nname: a\ndescription: e\n---\n", true, None),
            (b"---\nname: a\n", true, Some("frontmatter_unclosed")),
            (b"---\n- a\n---\n", true, Some("frontmatter_invalid")),
            (b"---\nname: a\ndescription: [\n---\n", true, Some("frontmatter_invalid")),
            (b"---\nname: \xff\n---\n", true, Some("invalid_utf8")),
            (b"", true, Some("document_empty")),
            (b" \n\n", false, Some("document_empty")),
            (b"---\nname: a\n---\nText\n", true, Some("description_missing")),
            (b"Text\n", true, Some("description_missing")),
            (b"---\nname: a\n---\nText\n", false, None),
            (b"Text\n", false, None),
        ];
        for (new, needs_description, reason) in rows {
            let expected = reason.map(|reason| vec![reason, "kept_last_good"]);
            assert_eq!(
                codes(GOOD, new, *needs_description),
                expected,
                "{:?}",
                String::from_utf8_lossy(new)
            );
        }
    }

    #[test]
    fn keeps_nothing_that_the_edit_may_have_meant_to_hide() {
        let utf16: Vec<u8> =
            "---\nvisibility_labels: [y]\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let list =
            "---\nname: a\ndescription: d\nvisibility_labels:\n- x\nvisibility: 1\n---\nGood\n";
        let rows: &[(&str, &[u8], bool)] = &[
            (GOOD, b"---\nvisibility_labels: [x]\n", true),
            (GOOD, b"---\nvisibility_labels: [x]  \r\n", true),
            (GOOD, b"---\nvisibility_labels: [x, y]\n", false),
            (GOOD, b"---\nVisibility_Labels: [x, y]\n", false),
            (GOOD, b"---\nname: a\n", true),
            (GOOD, b"---\nvisibility_labels: {x: y}\ndescription: d\n---\n", false),
            (GOOD, b"---\nvisibility_labels: [[x]]\ndescription: d\n---\n", false),
            (GOOD, b"---\nvisibility_labels: [y]\n---\n\xff", false),
            (GOOD, &utf16, false),
            (list, b"---\nvisibility_labels:\n- x\nname: a\n", true),
            (list, b"---\nvisibility_labels:\n- x\n- y\nname: a\n", false),
            (list, b"---\nvisibility_labels:\n\n  - x\nname: a\n", false),
            (list, b"---\nname: a\nvisibility_labels:\n- x", true),
        ];
        for (good, new, kept) in rows {
            assert_eq!(
                codes(good, new, true).is_some(),
                *kept,
                "{:?}",
                String::from_utf8_lossy(new)
            );
        }
    }

    #[test]
    fn keeps_an_index_for_its_own_reasons() {
        let good = Document::parse("/s", "a/SKILL.md", b"---\nname: a\ndescription: d\n---\n");
        let rows: &[(&str, bool)] = &[
            ("---\ndomain: a\n---\n", false),
            ("---\nname: a\ndomain: a\n---\n", true),
            ("---\ntags: [a]\n---\n", true),
        ];
        for (new, kept) in rows {
            let again = Document::parse("/s", "a/SKILL.md", new.as_bytes());
            assert_eq!(keep(&good, Ok(&again), new.as_bytes(), true).is_some(), *kept, "{new:?}");
        }
    }

    #[test]
    fn keeps_it_when_there_is_no_document_at_all() {
        let good = Document::parse("/s", "a.md", GOOD.as_bytes());
        let large =
            Diagnostic::new(Code::FileTooLarge, Severity::Error, "too large").in_file("/s/a.md");
        let kept = keep(&good, Err(&large), b"xxx", true).expect("it is kept");
        assert_eq!(kept.diagnostics[0], large);
        assert_eq!(
            kept.diagnostics[1].message,
            "the version before this edit stays in use, because this one cannot be used"
        );
        assert!(keep(&good, Err(&large), b"visibility_labels: [y]", true).is_none());
    }
}
