//! Finds the sections of a Markdown body by their headings, as in a manual page: Usage, Flags,
//! Behavior, Examples.
//!
//! Headings are ATX headings (`## Usage`) outside of fenced code blocks. This is not a Markdown
//! parser: headings underlined with `===`, and headings in quotes and lists, are ordinary text.

/// A heading and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heading<'a> {
    /// 1 for `#` up to 6 for `######`.
    pub level: u8,
    /// The text without the `#` marks.
    pub title: &'a str,
    /// The offset of its line, in bytes.
    pub start: usize,
    /// The offset of the next line.
    pub end: usize,
}

/// A line of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// The offset of the line, in bytes.
    pub start: usize,
    /// The offset of the next line.
    pub end: usize,
    /// The line with its line end, without up to three leading spaces, which Markdown ignores.
    pub text: &'a str,
    /// Its position relative to fenced code.
    pub code: Code<'a>,
}

/// The position of a line relative to fenced code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code<'a> {
    /// Outside of code.
    Outside,
    /// The line opens a block, with this fence.
    Opens(&'a str),
    /// Between two fences.
    Inside,
    /// The line closes the block.
    Closes,
}

/// Iterates over the lines of a body.
pub(crate) fn lines(body: &str) -> Lines<'_> {
    Lines { body, at: 0, fences: Fences::default() }
}

/// The iterator of [`lines`].
#[derive(Debug, Clone)]
pub(crate) struct Lines<'a> {
    body: &'a str,
    at: usize,
    fences: Fences,
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        let start = self.at;
        let bytes = &self.body.as_bytes()[start..];
        if bytes.is_empty() {
            return None;
        }
        let end = start + memchr::memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1);
        self.at = end;
        let indent = bytes.iter().take(4).take_while(|byte| **byte == b' ').count();
        let text = &self.body[start + if indent < 4 { indent } else { 0 }..end];
        let was_open = self.fences.open.is_some();
        let code = match (self.fences.is_code(text), self.fences.open) {
            (false, _) => Code::Outside,
            (true, None) => Code::Closes,
            (true, Some((_, length))) if !was_open => Code::Opens(&text[..length]),
            (true, Some(_)) => Code::Inside,
        };
        Some(Line { start, end, text, code })
    }
}

/// Appends a text, its first line as it is and the others indented by two spaces. An open code
/// block is closed.
///
/// Text of a document is indented wherever lines of ours come before or after it, so that no line
/// of it can be taken for one of them.
///
/// ```
/// let mut out = String::from("Notes:\n  ");
/// skillbook_core::page::sections::push_indented(&mut out, "Dogs\n\n## Notes\n```\nbark");
/// assert_eq!(out, "Notes:\n  Dogs\n\n  ## Notes\n  ```\n  bark\n  ```");
/// ```
pub fn push_indented(out: &mut String, text: &str) {
    let mut open = None;
    for (at, line) in lines(text).enumerate() {
        let whole = &text[line.start..line.end];
        let content = whole.strip_suffix('\n').unwrap_or(whole);
        let content = content.strip_suffix('\r').unwrap_or(content);
        // White space of Unicode may be a hidden character, which is shown by its code.
        if at > 0 && !content.bytes().all(|byte| matches!(byte, b' ' | b'\t')) {
            out.push_str(INDENT);
        }
        out.push_str(whole);
        match line.code {
            Code::Opens(fence) => open = Some(fence),
            Code::Closes => open = None,
            Code::Inside | Code::Outside => {}
        }
    }
    if let Some(fence) = open {
        if !out.ends_with('\n') {
            out.push('\n');
        }
        out.push_str(INDENT);
        out.push_str(fence);
    }
}

/// The indentation of [`push_indented`].
pub const INDENT: &str = "  ";

/// Iterates over the headings of a body.
pub fn headings(body: &str) -> Headings<'_> {
    Headings(lines(body))
}

/// The iterator of [`headings`].
#[derive(Debug, Clone)]
pub struct Headings<'a>(Lines<'a>);

/// Tracks fenced code blocks line by line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fences {
    open: Option<(u8, usize)>,
}

impl Fences {
    /// Takes the next line, without leading blanks. Returns whether it is a fence or is between two
    /// fences.
    pub(crate) fn is_code(&mut self, line: &str) -> bool {
        // Most lines begin with a letter.
        if !matches!(line.as_bytes().first(), Some(b'`' | b'~')) {
            return self.open.is_some();
        }
        match (self.open, fence(line)) {
            (None, Some(opened)) => self.open = Some(opened),
            (Some((mark, length)), Some((other, other_length))) => {
                // CommonMark: a closing fence has the same character, at least the same length, and
                // no info string.
                if mark == other && other_length >= length && line[other_length..].trim().is_empty()
                {
                    self.open = None;
                }
            }
            (open, None) => return open.is_some(),
        }
        true
    }
}

impl<'a> Iterator for Headings<'a> {
    type Item = Heading<'a>;

    fn next(&mut self) -> Option<Heading<'a>> {
        self.0.find_map(|Line { start, end, text, code }| {
            let (level, title) = heading(text).filter(|_| code == Code::Outside)?;
            Some(Heading { level, title, start, end })
        })
    }
}

/// Whether a heading has this title, in any case. `Behaviour` is `Behavior`.
pub fn is_titled(heading: &str, title: &str) -> bool {
    let american = |text| match str::eq_ignore_ascii_case(text, "behaviour") {
        true => "behavior",
        false => text,
    };
    american(heading).eq_ignore_ascii_case(american(title))
}

/// The text under the first heading with this title, in any case, up to the next heading of the
/// same or a higher level. The title `Behavior` also finds `Behaviour`.
///
/// ```
/// use skillbook_core::page::sections::section;
/// let body = "# email.send\n\n## Usage\n\nemail.send --to ADDR\n\n## Flags\n";
/// assert_eq!(section(body, "usage"), Some("\nemail.send --to ADDR\n\n"));
/// ```
pub fn section<'a>(body: &'a str, title: &str) -> Option<&'a str> {
    headings(body).find(|heading| is_titled(heading.title, title)).map(|found| under(body, &found))
}

/// The text under a heading, up to the next one of the same or a higher level.
pub(crate) fn under<'a>(body: &'a str, heading: &Heading<'_>) -> &'a str {
    let below = &body[heading.end..];
    let next = headings(below).find(|next| next.level <= heading.level);
    &below[..next.map_or(below.len(), |next| next.start)]
}

/// The first line of the Usage section (`Usage`, `usage` or `USAGE`), without fences and the marks
/// of inline code.
pub fn usage(body: &str) -> Option<&str> {
    // Each load asks this of every document, and most do not contain the word.
    if !["Usage", "usage", "USAGE"]
        .iter()
        .any(|word| memchr::memmem::find(body.as_bytes(), word.as_bytes()).is_some())
    {
        return None;
    }
    section(body, "usage").and_then(first_line)
}

/// The first line of a section that is no heading, without fences and the marks of inline code.
pub(crate) fn first_line(section: &str) -> Option<&str> {
    let mut lines = section.lines().map(str::trim);
    let line =
        lines.find(|line| !line.is_empty() && fence(line).is_none() && !line.starts_with('#'))?;
    let inner = line.strip_prefix('`').and_then(|line| line.strip_suffix('`'));
    Some(inner.filter(|inner| !inner.contains('`')).unwrap_or(line))
}

/// The character and the length of the fence that a line opens or closes.
fn fence(line: &str) -> Option<(u8, usize)> {
    let mark = *line.as_bytes().first()?;
    let length = line.bytes().take_while(|byte| *byte == mark).count();
    // CommonMark, section 4.5: an info string after backticks contains no backtick. With one, the
    // line is inline code.
    let inline = mark == b'`' && line[length..].contains('`');
    (matches!(mark, b'`' | b'~') && length >= 3 && !inline).then_some((mark, length))
}

fn heading(line: &str) -> Option<(u8, &str)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let rest = &line[level..];
    if level == 0 || level > 6 || !(rest.trim().is_empty() || rest.starts_with([' ', '\t'])) {
        return None;
    }
    let title = rest.trim();
    let bare = title.trim_end_matches('#');
    // Only after a blank is a run of `#` a closing one: `C#` is a title.
    let title =
        if bare.is_empty() || bare.ends_with([' ', '\t']) { bare.trim_end() } else { title };
    Some((level as u8, title))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn titles(body: &str) -> Vec<(u8, &str)> {
        headings(body).map(|heading| (heading.level, heading.title)).collect()
    }

    #[test]
    fn finds_headings() {
        let rows: &[(&str, &[(u8, &str)])] = &[
            ("", &[]),
            ("# One", &[(1, "One")]),
            ("#One", &[]),
            ("   ## Two ##\r\ntext", &[(2, "Two")]),
            ("    # code", &[]),
            ("####### seven", &[]),
            ("# C#\n", &[(1, "C#")]),
            ("#\n", &[(1, "")]),
            ("```\n# in\n```\n# out", &[(1, "out")]),
            ("```\n# in\n~~~\n# still in", &[]),
            ("````\n```\n# in\n````\n# out", &[(1, "out")]),
            ("~~~ cmd\n# in\n~~~ no\n# in\n~~~~\n# out", &[(1, "out")]),
            ("```code``` text\n# out", &[(1, "out")]),
        ];
        for (body, expected) in rows {
            assert_eq!(titles(body), *expected, "{body:?}");
        }
    }

    #[test]
    fn cuts_sections() {
        let body = "# a\nintro\n## Usage\none\n### Note\ntwo\n## Flags\nthree\n# b\nfour\n";
        assert_eq!(section(body, "Usage"), Some("one\n### Note\ntwo\n"));
        assert_eq!(section(body, "FLAGS"), Some("three\n"));
        assert_eq!(section(body, "b"), Some("four\n"));
        assert_eq!(section(body, "Examples"), None);
        for (heading, title) in [("Behaviour", "behavior"), ("BEHAVIOR", "behaviour")] {
            assert_eq!(section(&format!("## {heading}\nx"), title), Some("x"), "{heading}");
        }
    }

    #[test]
    fn reads_the_first_usage_line() {
        let rows = [
            ("## Usage\n\nmail.send --to A\nmore", Some("mail.send --to A")),
            ("## Usage\n```cmd\nmail.send --to A\n```", Some("mail.send --to A")),
            ("## usage\n`mail.send --to A`\n", Some("mail.send --to A")),
            ("## Usage\n`mail.send` or `mail.read`\n", Some("`mail.send` or `mail.read`")),
            ("## Usage\n\n## Flags\nx", None),
            ("# Usage\n## Flags\nx", Some("x")),
            ("none", None),
        ];
        for (body, expected) in rows {
            assert_eq!(usage(body), expected, "{body:?}");
        }
    }
}
