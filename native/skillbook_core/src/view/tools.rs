//! Decides which tools an entry may use: those that its author asks for, within those that the
//! profile has.
//!
//! A tool is a name, or a name with an argument in parentheses: `Read`, `Bash(git:*)`, `Bash(git
//! add:*)`, `Read(docs/*)`, `mcp__github__*`. In both parts `*` matches any characters. An argument
//! that ends in `:*` matches a command line by its first words. `Bash(*)`, `Bash(:*)` and `Bash()`
//! are the same as `Bash`.
//!
//! Arguments are compared as text, and a wildcard is strict about it: it matches no argument in
//! which a shell would see more than one command (``; & | < > ` $`` or a line break), and none with
//! a path that leads upwards (`..`). A pattern that cannot be read matches nothing.

use std::fmt;

use super::view::View;
use crate::catalog::EntryId;
use crate::source::Trust;

impl View {
    /// The tools that an entry may use for a profile with these tools (`None` for all).
    ///
    /// These are the tools that both its `allowed-tools` and the profile allow. Of two patterns the
    /// narrower counts; two that overlap only in part allow nothing, since their intersection
    /// cannot be written as a pattern. Without `allowed-tools` the profile's tools apply. `None`
    /// means all tools. A hidden entry may use none.
    ///
    /// An entry of low trust cannot grant itself tools: if the profile does not list any, it has
    /// none.
    pub fn tools(&self, id: EntryId, profile: Option<&[String]>) -> Option<Vec<String>> {
        let Some(entry) = self.entry(id) else { return Some(Vec::new()) };
        let own = entry.fields().allowed_tools.as_deref();
        match (own, profile) {
            // A profile without a list allows everything, which a stranger's skill must not use.
            (_, None) if entry.trust <= Trust::Low => Some(Vec::new()),
            (own, None) => own.map(<[String]>::to_vec),
            (None, Some(profile)) => Some(profile.to_vec()),
            (Some(own), Some(profile)) => Some(both(own, profile)),
        }
    }
}

/// The tools that both lists allow, in the order of the first.
fn both(own: &[String], profile: &[String]) -> Vec<String> {
    // Unreadable patterns are dropped on both sides, so they allow nothing.
    let profile: Vec<Tool> = profile.iter().filter_map(|tool| Tool::read(tool)).collect();
    let mut out: Vec<String> = Vec::new();
    for tool in own.iter().filter_map(|tool| Tool::read(tool)) {
        for common in profile.iter().filter_map(|other| tool.common(*other)) {
            let common = common.to_string();
            if !out.contains(&common) {
                out.push(common);
            }
        }
    }
    out
}

/// Whether one of these tools (as returned by [`View::tools`]) allows `name` with this argument;
/// without an argument, whether it allows `name` with any.
///
/// ```
/// use skillbook_core::view::tools::allows;
/// let tools = ["Read".to_owned(), "Bash(git:*)".to_owned()];
/// assert!(allows(&tools, "Read", None) && allows(&tools, "Read", Some("a.txt")));
/// assert!(allows(&tools, "Bash", Some("git status")));
/// assert!(!allows(&tools, "Bash", None) && !allows(&tools, "Bash", Some("git status; rm x")));
/// ```
pub fn allows(tools: &[String], name: &str, argument: Option<&str>) -> bool {
    tools.iter().filter_map(|tool| Tool::read(tool)).any(|tool| tool.allows(name, argument))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tool<'a> {
    name: &'a str,
    argument: Argument<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Argument<'a> {
    Any,
    /// These words, and anything after them.
    Words(&'a str),
    /// A text in which `*` matches any characters.
    Text(&'a str),
}

impl<'a> Tool<'a> {
    fn read(text: &'a str) -> Option<Tool<'a>> {
        let (name, argument) = match text.trim().split_once('(') {
            None => (text.trim(), Argument::Any),
            Some((name, rest)) => (name, Argument::read(rest.strip_suffix(')')?.trim())?),
        };
        let readable = !name.is_empty() && !name.contains(|c: char| c == ')' || c.is_whitespace());
        readable.then_some(Tool { name, argument })
    }

    fn allows(self, name: &str, argument: Option<&str>) -> bool {
        star(self.name, name)
            && argument.map_or(self.argument == Argument::Any, |given| self.argument.allows(given))
    }

    /// The narrower of two tools, if the name and the argument of one contain those of the other.
    fn common(self, other: Tool<'a>) -> Option<Tool<'a>> {
        // Names and arguments are narrowed independently: `mcp__x__*(a)` and `mcp__x__read` give
        // `mcp__x__read(a)`.
        let name = match (star(other.name, self.name), star(self.name, other.name)) {
            (true, _) => self.name,
            (false, true) => other.name,
            (false, false) => return None,
        };
        let argument =
            match (self.argument.within(other.argument), other.argument.within(self.argument)) {
                (true, _) => self.argument,
                (false, true) => other.argument,
                (false, false) => return None,
            };
        Some(Tool { name, argument })
    }
}

impl<'a> Argument<'a> {
    fn read(text: &'a str) -> Option<Argument<'a>> {
        Some(match text.strip_suffix(":*").map(str::trim) {
            None if text.is_empty() || text == "*" => Argument::Any,
            None => Argument::Text(text),
            Some("") => Argument::Any,
            // `Bash(git *:*)` has no defined meaning.
            Some(words) if words.contains('*') => return None,
            Some(words) => Argument::Words(words),
        })
    }

    fn allows(self, given: &str) -> bool {
        match self {
            Argument::Any => true,
            Argument::Words(words) => is_plain(given) && begins_with(given, words),
            Argument::Text(text) if text.contains('*') => is_plain(given) && star(text, given),
            Argument::Text(text) => text == given,
        }
    }

    /// Whether the other one allows everything that this one allows. The pattern itself is matched
    /// as text: a `*` in it can only be matched by a `*` of the other, which then also matches
    /// everything it stands for.
    fn within(self, other: Argument) -> bool {
        match (self, other) {
            (_, Argument::Any) => true,
            (Argument::Any, _) => false,
            (Argument::Words(own), Argument::Words(words)) => begins_with(own, words),
            (Argument::Words(own), Argument::Text(text)) => {
                star(text, own) && star(text, &format!("{own} *"))
            }
            (Argument::Text(own), Argument::Words(words)) if own.contains('*') => {
                begins_with(own, words)
            }
            (Argument::Text(own), Argument::Text(text)) if own.contains('*') => star(text, own),
            (Argument::Text(own), other) => other.allows(own),
        }
    }
}

impl fmt::Display for Tool<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.argument {
            Argument::Any => f.write_str(self.name),
            Argument::Words(words) => write!(f, "{}({words}:*)", self.name),
            Argument::Text(text) => write!(f, "{}({text})", self.name),
        }
    }
}

fn begins_with(text: &str, words: &str) -> bool {
    text.strip_prefix(words).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Whether a wildcard may match the argument: a single command, and no path that leads upwards.
fn is_plain(argument: &str) -> bool {
    let ends_word = |c: char| c.is_whitespace() || matches!(c, '/' | '\\' | '"' | '\'' | '=' | ':');
    !argument.contains([';', '&', '|', '<', '>', '`', '$', '\n', '\r'])
        && argument.split(ends_word).all(|part| part != "..")
}

/// Whether a text matches a pattern in which only `*` is special.
fn star(pattern: &str, text: &str) -> bool {
    // Greedy matching of the parts between stars is enough, because only the last part must end the
    // text.
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(tools: &[&str]) -> Vec<String> {
        tools.iter().map(|tool| tool.to_string()).collect()
    }

    #[test]
    fn the_narrower_of_two_is_kept() {
        let rows: &[(&str, &str, Option<&str>)] = &[
            ("Read", "Read", Some("Read")),
            ("Read", "Write", None),
            ("Read", "read", None),
            ("Bash(git:*)", "Bash", Some("Bash(git:*)")),
            ("Bash( git :* )", "Bash(*)", Some("Bash(git:*)")),
            ("Bash(*)", "Bash(:*)", Some("Bash")),
            ("Bash()", "Bash(ls)", Some("Bash(ls)")),
            ("Bash(git:*)", "Bash(git add:*)", Some("Bash(git add:*)")),
            ("Bash(git:*)", "Bash(gitk:*)", None),
            ("Bash(git:*)", "Bash(git status)", Some("Bash(git status)")),
            ("Bash(git:*)", "Bash(git; ls)", None),
            ("Bash(git:*)", "Bash(git log *)", Some("Bash(git log *)")),
            ("Bash(git:*)", "Bash(git*)", Some("Bash(git:*)")),
            ("Bash(git:*)", "Bash(git *)", Some("Bash(git *)")),
            ("Bash(git:*)", "Bash(git* x)", None),
            ("Bash(git:*)", "Bash(*status)", None),
            ("Bash(git status)", "Bash(*status)", Some("Bash(git status)")),
            ("Bash(git status)", "Bash(git log)", None),
            ("Read(docs/*)", "Read(*)", Some("Read(docs/*)")),
            ("Read(docs/*)", "Read(docs/*.md)", Some("Read(docs/*.md)")),
            ("Read(docs/*)", "Read(docs/../x)", None),
            ("Read(*.md)", "Read(docs/*)", None),
            ("mcp__x__*", "mcp__x__read", Some("mcp__x__read")),
            ("mcp__x__*", "mcp__*", Some("mcp__x__*")),
            ("mcp__x__*", "mcp__y__read", None),
            ("mcp__x__*", "*_read", None),
            ("mcp__x__*(a)", "mcp__x__read", Some("mcp__x__read(a)")),
            ("*", "Bash(git:*)", Some("Bash(git:*)")),
            ("Bash(git", "Bash", None),
            ("Bash(git *:*)", "Bash", None),
            ("(git)", "*", None),
            ("a b", "*", None),
            ("", "*", None),
        ];
        for (a, b, expected) in rows {
            let expected: Vec<_> = expected.iter().map(|tool| tool.to_string()).collect();
            assert_eq!(both(&list(&[a]), &list(&[b])), expected, "{a} and {b}");
            assert_eq!(both(&list(&[b]), &list(&[a])), expected, "{b} and {a}");
        }
        let own = ["Bash(git:*)", "Read", "Read", "Write"];
        assert_eq!(
            both(&list(&own), &list(&["Read", "Bash", "Read(a)"])),
            list(&["Bash(git:*)", "Read", "Read(a)"])
        );
    }

    #[test]
    fn a_tool_with_an_argument_is_allowed_or_not() {
        let rows = [
            ("Read", "Read", None, true),
            ("Read", "Read", Some("anything; at all"), true),
            ("Read", "Write", None, false),
            ("Bash(git:*)", "Bash", None, false),
            ("Bash(git:*)", "Bash", Some("git"), true),
            ("Bash(git:*)", "Bash", Some("git log -p main..dev"), true),
            ("Bash(git:*)", "Bash", Some("gitk"), false),
            ("Bash(git:*)", "Bash", Some("git log; rm x"), false),
            ("Bash(git:*)", "Bash", Some("git log && rm x"), false),
            ("Bash(git:*)", "Bash", Some("git log | sh"), false),
            ("Bash(git:*)", "Bash", Some("git log $(rm x)"), false),
            ("Bash(git:*)", "Bash", Some("git log `rm x`"), false),
            ("Bash(git:*)", "Bash", Some("git log > x"), false),
            ("Bash(git:*)", "Bash", Some("git log\nrm x"), false),
            ("Bash(git:*)", "Bash", Some("git add ../x"), false),
            ("Bash(a; b)", "Bash", Some("a; b"), true),
            ("Read(docs/*)", "Read", Some("docs/a/b.md"), true),
            ("Read(docs/*)", "Read", Some("docs/../../secret"), false),
            ("Read(docs/*)", "Read", Some("src/a"), false),
            ("Read(docs/*)", "Read", Some(""), false),
            ("mcp__x__*", "mcp__x__read", None, true),
            ("mcp__x__*", "mcp__y__read", None, false),
            ("Bash(git", "Bash", Some("git"), false),
        ];
        for (tool, name, argument, expected) in rows {
            assert_eq!(
                allows(&list(&[tool]), name, argument),
                expected,
                "{tool}: {name} {argument:?}"
            );
        }
        assert!(!allows(&[], "Read", None));
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        let rows = [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("a*", "a", true),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("*ab*ab", "xabab", true),
            ("*ab*ab", "xab", false),
            ("a*b*c", "a.b.b.c", true),
            ("a**c", "abc", true),
            ("a?c", "abc", false),
        ];
        for (pattern, text, expected) in rows {
            assert_eq!(star(pattern, text), expected, "{pattern} {text}");
        }
    }
}
