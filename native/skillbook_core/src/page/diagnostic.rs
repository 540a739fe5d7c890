//! Diagnostics: findings about documents, with a place, a hint and sometimes a fix.
//!
//! No document, field or line is dropped or changed without one. `docs/diagnostics.md` explains
//! every code; a test below compares the page with [`Code::ALL`].
//!
//! # Adding a code
//!
//! 1. Add a line to `codes!` below, and a row to a table of `docs/diagnostics.md`.
//! 2. Call [`Diagnostic::new`] where the problem is found, with a place and a hint. A fix belongs
//!    there only if there is one right answer.
//! 3. While a source is assembled, a finding names the entries that it is about
//!    (`catalog/finding.rs`), and only a reader who sees all of them sees it. A finding that
//!    depends on which entries are used is made for each view, in `view/relations.rs`.
//! 4. Add a row to the tests beside the place where it is found.

use std::collections::HashMap;
use std::fmt::{self, Display, Formatter};
use std::ops::Range;

use crate::hidden;

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The document, or a part of it, is not used.
    Error,
    /// It is used, but changed, or in a way that its author may not expect.
    Warning,
    /// Worth knowing; nothing is wrong.
    Info,
}

impl Severity {
    /// `error`, `warning` or `info`.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        }
    }
}

/// Declares [`Code`] with the name of each code and a list of all of them.
macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// The kind of a diagnostic. The names are stable: configuration and tools may refer to
        /// them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code { $($(#[$doc])* $variant,)* }

        impl Code {
            /// All codes.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            /// The code's stable name, in snake case.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }
        }
    };
}

codes! {
    /// Frontmatter that is not valid YAML, repaired because its meaning is clear.
    FrontmatterRepaired = "frontmatter_repaired",
    /// Frontmatter that cannot be read.
    FrontmatterInvalid = "frontmatter_invalid",
    /// The frontmatter's opening `---` has no closing one.
    FrontmatterUnclosed = "frontmatter_unclosed",
    /// A YAML tag of a value. It is left out.
    FrontmatterTag = "frontmatter_tag",
    /// A key that occurs twice. The last one is used.
    DuplicateKey = "duplicate_key",
    /// A document whose bytes are not UTF-8.
    InvalidUtf8 = "invalid_utf8",
    /// A document that an edit left empty.
    DocumentEmpty = "document_empty",
    /// A file that its last edit broke. The previous version is used.
    KeptLastGood = "kept_last_good",
    /// A file or folder that an ignore file excludes.
    Ignored = "ignored",
    /// A line of an ignore file that cannot be read.
    IgnoreInvalid = "ignore_invalid",
    /// A file or folder that cannot be read.
    Unreadable = "unreadable",
    /// A file that exceeds the size limit of documents.
    FileTooLarge = "file_too_large",
    /// A source that exceeds the limit of files. It is not used at all.
    TooManyFiles = "too_many_files",
    /// A folder that exceeds the limit of nesting. It is not searched.
    TooDeep = "too_deep",
    /// A symbolic link whose target does not exist, or that leads back to itself.
    BrokenLink = "broken_link",
    /// A symbolic link that leaves the source's root.
    EscapingLink = "escaping_link",
    /// A source whose folder does not exist.
    SourceMissing = "source_missing",
    /// A source that is not trusted. It is not read.
    SourceUntrusted = "source_untrusted",
    /// A server that is a source and cannot be used. Its last entries stay.
    ServerUnavailable = "server_unavailable",
    /// A tool or skill of a server that breaks a rule. It is not used.
    ServerEntryRefused = "server_entry_refused",
    /// A tool or skill of a server that nobody has approved as it is now. It is not used.
    ServerEntryUnapproved = "server_entry_unapproved",
    /// A document without a description.
    DescriptionMissing = "description_missing",
    /// A document without a name. The name comes from its path.
    NameMissing = "name_missing",
    /// A name that differs from the name of its path.
    NameDiffers = "name_differs",
    /// A name longer than other readers of skills accept.
    NameTooLong = "name_too_long",
    /// A name with characters that other readers of skills refuse.
    NameCharacters = "name_characters",
    /// A command whose action is a reserved word of the command language.
    NameReserved = "name_reserved",
    /// A description longer than other readers of skills accept.
    DescriptionTooLong = "description_too_long",
    /// A `compatibility` longer than other readers of skills accept.
    CompatibilityTooLong = "compatibility_too_long",
    /// A field with a value of the wrong type. It is not used.
    FieldIgnored = "field_ignored",
    /// A field with a value of the wrong type, converted because its meaning is clear.
    FieldMended = "field_mended",
    /// A key that is nearly the name of a field, or another word for it. It has no effect.
    FieldMisspelt = "field_misspelt",
    /// A `schedule` or a `timezone` that is not valid. It is not used.
    ScheduleInvalid = "schedule_invalid",
    /// Visibility labels that cannot be read, occur twice or are misspelt. The document is not
    /// used, because the wrong reader might see it.
    LabelsInvalid = "labels_invalid",
    /// Another restriction that cannot be read, occurs twice or is misspelt. The document is not
    /// used.
    RestrictionInvalid = "restriction_invalid",
    /// `flags` that cannot be read. The command does not run.
    FlagsInvalid = "flags_invalid",
    /// A Markdown file in a source of skills that is neither a skill nor part of one.
    NotASkill = "not_a_skill",
    /// A name that occurs twice in one source.
    DuplicateName = "duplicate_name",
    /// An entry that a later source replaces.
    Shadowed = "shadowed",
    /// An entry or an index of a source of low trust that would replace one of another source.
    ReplacementRefused = "replacement_refused",
    /// A field that a source of low trust may not use.
    UntrustedField = "untrusted_field",
    /// An alias that is the name or an alias of another entry.
    AliasTaken = "alias_taken",
    /// A command whose handler does not exist. It cannot run, and models do not see it.
    HandlerMissing = "handler_missing",
    /// A command whose handler cannot be looked up here, since its application is not loaded.
    HandlerUnchecked = "handler_unchecked",
    /// A `requires` that names no entry.
    RequiresMissing = "requires_missing",
    /// Entries that require each other in a cycle.
    RequiresCycle = "requires_cycle",
    /// A link in a skill's body to a file that does not exist.
    ReferenceMissing = "reference_missing",
    /// An entry that no glob of its source selects.
    NotSelected = "not_selected",
    /// A glob of a source that matches no entry.
    GlobUnmatched = "glob_unmatched",
    /// An entry that both the `available` and the `inline` globs of its source select.
    InlineWins = "inline_wins",
    /// The index of a domain that has no commands.
    DomainWithoutCommands = "domain_without_commands",
    /// A command's name that is not two lowercase words.
    CommandName = "command_name",
    /// A skill or a command without text.
    BodyMissing = "body_missing",
    /// A text that is too long for a model to read well at once.
    BodyLong = "body_long",
    /// A description that is too short to choose a skill by.
    DescriptionShort = "description_short",
    /// A command's page without a Usage section.
    UsageMissing = "usage_missing",
    /// A skill that does not run for a while, because its handler failed several times in a row.
    OutOfService = "out_of_service",
    /// A heading of a command's page that is nearly Usage, Flags, Behavior or Examples, or another
    /// word for one of them.
    HeadingMisspelt = "heading_misspelt",
    /// A placeholder in a command's page that stands for nothing.
    PlaceholderUnknown = "placeholder_unknown",
    /// A command in a page that cannot be parsed.
    ExampleUnparsable = "example_unparsable",
    /// A command in a page that does not exist.
    ExampleUnknown = "example_unknown",
    /// Usage or Examples that show other commands and not the page's own.
    ExampleForeign = "example_foreign",
    /// A flag in a page that the named command does not have.
    ExampleFlagUnknown = "example_flag_unknown",
    /// An example without a required flag.
    ExampleFlagMissing = "example_flag_missing",
    /// A flag in Usage or Examples that the Flags section does not list.
    FlagUndocumented = "flag_undocumented",
    /// A flag in the Flags section that neither Usage nor an example shows.
    FlagUnused = "flag_unused",
    /// A flag that Usage and the Flags section describe differently.
    FlagContradiction = "flag_contradiction",
    /// A line of the Flags section of which nothing but the name was understood.
    FlagUntyped = "flag_untyped",
    /// A default that is not one of the flag's values.
    FlagDefault = "flag_default",
    /// A request in `examples` for which other entries come before its own.
    ExamplesLost = "examples_lost",
    /// A request in `examples` that another entry has too, or that is written with and without
    /// `not`.
    ExampleAmbiguous = "example_ambiguous",
    /// A file of evaluations that cannot be read, or an evaluation of it. It does not run.
    EvaluationInvalid = "evaluation_invalid",
    /// A field of an evaluation in another program's format that is not supported.
    EvaluationUnsupported = "evaluation_unsupported",
    /// Characters that readers cannot see, or that change how other text is shown.
    HiddenCharacters = "hidden_characters",
    /// A violation of the Agent Skills format.
    SpecViolation = "spec_violation",
}

/// A change to a file that resolves a diagnostic and changes no value. Only findings with a single
/// right form have one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    /// The byte range to replace.
    pub range: Range<usize>,
    /// The new text.
    pub replacement: String,
}

/// Applies fixes, in any order.
///
/// Of two that overlap, only the one that begins first is applied, and of two equal ones only one.
/// The others may be found again in the new text.
///
/// ```
/// use skillbook_core::page::diagnostic::{apply, Fix};
///
/// let fix = |range, replacement: &str| Fix { range, replacement: replacement.into() };
/// assert_eq!(apply("one two", &[fix(4..7, "three"), fix(0..0, "zero ")]), "zero one three");
/// ```
pub fn apply(text: &str, fixes: &[Fix]) -> String {
    apply_counted(text, fixes).0
}

/// The same, with the number of fixes that were applied.
pub fn apply_counted(text: &str, fixes: &[Fix]) -> (String, usize) {
    let mut fixes: Vec<&Fix> = fixes.iter().collect();
    fixes.sort_by_key(|fix| (fix.range.start, fix.range.end));
    fixes.dedup();
    let mut out = String::with_capacity(text.len());
    let (mut done, mut count) = (0, 0);
    for fix in fixes {
        let between = text.get(done..fix.range.start);
        // `between` is `None` if the fix overlaps the one before, or begins inside a character.
        if let (Some(between), true) = (between, text.is_char_boundary(fix.range.end)) {
            out.push_str(between);
            out.push_str(&fix.replacement);
            done = fix.range.end;
            count += 1;
        }
    }
    out.push_str(&text[done..]);
    (out, count)
}

/// One finding, at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The kind of finding.
    pub code: Code,
    /// Its severity.
    pub severity: Severity,
    /// The file's path in its source; `None` for text without a file.
    pub path: Option<String>,
    /// The line in the file, from 1; `None` for the file as a whole.
    pub line: Option<u32>,
    /// The column in characters, from 1.
    pub column: Option<u32>,
    /// The message: the expected form and the actual one.
    pub message: String,
    /// A suggestion: the form to write instead.
    pub hint: Option<String>,
    /// The fix. Boxed, because few diagnostics have one.
    pub fix: Option<Box<Fix>>,
}

impl Diagnostic {
    /// A diagnostic without a place; add it with [`Diagnostic::at`] and [`Diagnostic::in_file`].
    /// Its message is put on one line, with hidden characters made visible.
    pub fn new(code: Code, severity: Severity, message: impl Into<String>) -> Self {
        Diagnostic {
            code,
            severity,
            path: None,
            line: None,
            column: None,
            message: hidden::line(&message.into()).into_owned(),
            hint: None,
            fix: None,
        }
    }

    /// The sort key: path, line and code.
    pub(crate) fn place(&self) -> (Option<&str>, Option<u32>, Code) {
        (self.path.as_deref(), self.line, self.code)
    }

    /// Adds the line and the column, both from 1.
    pub fn at(mut self, line: u32, column: u32) -> Self {
        self.line = Some(line);
        self.column = Some(column);
        self
    }

    /// Adds the file.
    pub fn in_file(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Adds a suggestion.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hidden::line(&hint.into()).into_owned());
        self
    }

    /// Adds the fix, if there is one.
    pub fn fix(mut self, fix: Option<Fix>) -> Self {
        self.fix = fix.map(Box::new);
        self
    }
}

/// The form for logs and terminals: a line, and a second one with the hint. Paths may have line
/// breaks and hidden characters, and texts may quote documents, so both are shown on one line.
impl Display for Diagnostic {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let numbers = [self.line, self.column].into_iter().flatten();
        let numbers = numbers.map(|number| number.to_string());
        let path = self.path.as_deref().map(|path| hidden::line(path).into_owned());
        let place: Vec<String> = path.into_iter().chain(numbers).collect();
        if !place.is_empty() {
            write!(f, "{}: ", place.join(":"))?;
        }
        let message = hidden::line(&self.message);
        write!(f, "{}: {message} [{}]", self.severity.as_str(), self.code.as_str())?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {}", hidden::line(hint)),
            None => Ok(()),
        }
    }
}

/// How many diagnostics of one code a file may have. A further one says how many more there are.
pub const MAX_PER_CODE: usize = 20;

/// Leaves at most [`MAX_PER_CODE`] diagnostics of each code and file, the first ones, and a count
/// of the others. The count has the place of the first diagnostic that was left out.
///
/// ```
/// use skillbook_core::page::diagnostic::{limit, Code, Diagnostic, Severity, MAX_PER_CODE};
///
/// let tab = |line| Diagnostic::new(Code::FieldMended, Severity::Warning, "a tab").at(line, 1);
/// let mut found: Vec<_> = (1..=25).map(tab).collect();
/// limit(&mut found);
/// assert_eq!(found.len(), MAX_PER_CODE + 1);
/// assert_eq!(found[20].message, "5 more of this code in this file");
/// assert_eq!(found[20].line, Some(21));
/// ```
pub fn limit(diagnostics: &mut Vec<Diagnostic>) {
    if diagnostics.len() <= MAX_PER_CODE {
        return;
    }
    let mut counts: HashMap<(Option<String>, Code), (usize, usize)> = HashMap::new();
    let mut left: Vec<Diagnostic> = Vec::with_capacity(diagnostics.len().min(4 * MAX_PER_CODE));
    for diagnostic in diagnostics.drain(..) {
        let (count, place) = counts.entry((diagnostic.path.clone(), diagnostic.code)).or_default();
        *count += 1;
        match *count - 1 {
            0..MAX_PER_CODE => left.push(diagnostic),
            MAX_PER_CODE => {
                *place = left.len();
                left.push(diagnostic);
            }
            _ => left[*place].severity = left[*place].severity.min(diagnostic.severity),
        }
    }
    for (count, place) in counts.into_values().filter(|(count, _)| *count > MAX_PER_CODE) {
        let rest = &mut left[place];
        rest.message = format!("{} more of this code in this file", count - MAX_PER_CODE);
        rest.hint = None;
        rest.fix = None;
    }
    *diagnostics = left;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_documented_and_no_other() {
        let page = include_str!("../../../../docs/diagnostics.md");
        let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
        let mut documented: Vec<&str> = rows.map(|(code, _)| code).collect();
        let mut codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
        documented.sort_unstable();
        codes.sort_unstable();
        assert_eq!(documented, codes);
    }

    #[test]
    fn applies_fixes() {
        let fix =
            |range: Range<usize>, replacement: &str| Fix { range, replacement: replacement.into() };
        let rows = [
            ("none", vec![], "abcdef"),
            ("in any order", vec![fix(4..5, "E"), fix(0..1, "A")], "AbcdEf"),
            ("the same twice", vec![fix(1..1, "-"), fix(1..1, "-")], "a-bcdef"),
            ("overlapping", vec![fix(1..4, "X"), fix(3..5, "Y")], "aXef"),
            ("side by side", vec![fix(1..3, "X"), fix(3..5, "Y")], "aXYf"),
            ("outside", vec![fix(7..9, "X")], "abcdef"),
            ("at the end", vec![fix(6..6, "g")], "abcdefg"),
        ];
        for (case, fixes, expected) in rows {
            assert_eq!(apply("abcdef", &fixes), expected, "{case}");
        }
        assert_eq!(apply("é", &[fix(0..1, "e")]), "é", "inside a character");
    }
}
