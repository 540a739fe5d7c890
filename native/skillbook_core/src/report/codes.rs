//! The problem and the solution behind each code of a diagnostic, from the tables of its page in
//! the docs: `| code | severity | problem | solution | fix |`.

use crate::page::diagnostic::Code;

const PAGE: &str = include_str!("../../../../docs/diagnostics.md");

/// The problem and the solution of a code, as Markdown without links.
///
/// ```
/// use skillbook_core::page::diagnostic::Code;
/// use skillbook_core::report::codes::explain;
///
/// let (problem, solution) = explain(Code::DuplicateKey).unwrap();
/// assert_eq!(problem, "A key occurs twice; the last one is used");
/// assert_eq!(solution, "Keep one of them");
/// ```
pub fn explain(code: Code) -> Option<(String, String)> {
    let start = format!("| `{}` |", code.as_str());
    let row = PAGE.lines().find_map(|line| line.strip_prefix(&start))?;
    let mut cells = row.split(" | ").skip(1);
    Some((unlinked(cells.next()?), unlinked(cells.next()?)))
}

/// The links are relative to the page.
fn unlinked(markdown: &str) -> String {
    let mut text = String::with_capacity(markdown.len());
    let mut rest = markdown;
    while let Some((before, link)) = rest.split_once('[') {
        let parts = link
            .split_once("](")
            .and_then(|(words, address)| address.split_once(')').map(|(_, after)| (words, after)));
        text.push_str(before);
        match parts.filter(|(words, _)| !words.contains(']')) {
            Some((words, after)) => {
                text.push_str(words);
                rest = after;
            }
            None => {
                text.push('[');
                rest = link;
            }
        }
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_problem_and_a_solution() {
        for code in Code::ALL {
            let explained = explain(*code);
            let (problem, solution) = explained.unwrap_or_else(|| panic!("{}", code.as_str()));
            for text in [problem, solution] {
                assert!(text.len() > 3 && !text.contains("]("), "{}: {text}", code.as_str());
            }
        }
    }

    #[test]
    fn links_become_their_words() {
        assert_eq!(unlinked("a [b](c.md) [d] `[e]` [f](g#h)"), "a b [d] `[e]` f");
    }
}
