//! Checks one page: its size, its name, its sections, and the commands in it.

use strsim::jaro_winkler;

use crate::catalog::assemble::{characters, has_blank};
use crate::catalog::entry::Entry;
use crate::lint::commands::{self, synopsis_flags, PageCommand, Part};
use crate::page::declaration::{Clash, Contradiction, Declaration, Flag};
use crate::page::diagnostic::{Code, Diagnostic, Severity};
use crate::page::document::Document;
use crate::page::frontmatter::place;
use crate::page::sections;
use crate::source::{Kind as EntryKind, SourceKind};
use crate::text::command::{self, Command, GET_SKILL};
use crate::text::error::Kind;
use crate::text::line::command_name;
use crate::view::View;

/// The advice of the Agent Skills format for the length of a text.
const LINES: usize = 500;
const TOKENS: usize = 5_000;

/// The average number of characters in a token of English.
const TOKEN: usize = 4;

/// The similarity above which one of two flags is probably a typo of the other.
const CLOSE: f64 = 0.9;

/// The most flags that a hint lists.
const NAMED: usize = 10;

/// A shorter description can hardly say when to use a skill.
const DESCRIPTION: usize = 20;

struct Page<'a> {
    document: &'a Document,
    found: &'a mut Vec<Diagnostic>,
}

/// Checks an entry's page.
pub(super) fn entry(view: &View, entry: &Entry, found: &mut Vec<Diagnostic>) {
    let mut page = Page { document: &entry.document, found };
    if entry.kind != EntryKind::Note {
        page.sizes(entry);
        page.name(entry);
    }
    if entry.kind == EntryKind::Command {
        page.command(view, entry);
    } else {
        commands(view, &entry.document, found);
    }
}

/// Checks the commands in the blocks of a page.
pub(super) fn commands(view: &View, document: &Document, found: &mut Vec<Diagnostic>) {
    let mut page = Page { document, found };
    for shown in commands::commands(document.body(), |_| false) {
        let runs = page.check_command(view, &shown);
        page.foreign_flags(view, &shown, runs.as_ref());
    }
}

impl Page<'_> {
    /// Loading says nothing about a name with blanks.
    fn name(&mut self, entry: &Entry) {
        if has_blank(&entry.name) && entry.source.kind != SourceKind::Remote {
            let odd = characters(self.document, &entry.name, entry.kind, true);
            odd.into_iter().for_each(|odd| self.push(odd));
        }
    }

    fn sizes(&mut self, entry: &Entry) {
        let body = entry.body();
        let described = entry.description().chars().count();
        if (1..DESCRIPTION).contains(&described) {
            let message =
                format!("the description has {described} characters; models choose skills by it");
            let hint = "say what it does and when to use it";
            let diagnostic =
                Diagnostic::new(Code::DescriptionShort, Severity::Info, message).hint(hint);
            self.push(self.document.at_field("description", diagnostic));
        }
        let (lines, tokens) = (body.trim_end().lines().count(), body.chars().count() / TOKEN);
        if lines > LINES || tokens > TOKENS {
            let message = format!(
                "the text has {lines} lines and about {tokens} tokens; the advice is at most \
                 {LINES} lines and {TOKENS} tokens"
            );
            let hint = match entry.kind {
                EntryKind::Skill => {
                    "move parts that are not always needed into other files of the skill's folder"
                }
                _ => "leave out parts that are not always needed",
            };
            self.push(Diagnostic::new(Code::BodyLong, Severity::Info, message).hint(hint));
        }
    }

    fn command(&mut self, view: &View, entry: &Entry) {
        let body = entry.body();
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let word = |word: &str| {
            word.starts_with(|c: char| c.is_ascii_lowercase()) && word.chars().all(plain)
        };
        if !entry.name.split_once('.').is_some_and(|(domain, action)| word(domain) && word(action))
        {
            let message = format!(
                "expected domain.action in lowercase letters, digits and `_`, each beginning with \
                 a letter, got `{}`",
                entry.name
            );
            let diagnostic = Diagnostic::new(Code::CommandName, Severity::Info, message);
            self.push(self.document.at_field("name", diagnostic));
        }
        // With flags in the frontmatter, readers get a Usage section that is made of them.
        let made = entry.fields().flags.is_some();
        if !body.trim().is_empty() && !made && sections::section(body, "usage").is_none() {
            let hint = format!("add a heading ## Usage and below it {} with its flags", entry.name);
            self.push(
                Diagnostic::new(
                    Code::UsageMissing,
                    Severity::Warning,
                    "expected a Usage section, got none",
                )
                .hint(hint),
            );
        }
        let known = |word: &str| {
            let domain = word.split_once('.').map_or("", |(domain, _)| domain);
            view.domain(domain).is_some() || view.find(word).is_some()
        };
        let in_page = commands::commands(body, known);
        let none = Declaration::default();
        let declared = entry.declaration().unwrap_or(&none);
        let listed = &declared.flags;
        let source = if declared.given { "`flags`" } else { "the Flags section" };
        let mut used = vec![false; listed.len()];
        let mut has_usage = false;
        for shown in &in_page {
            let runs = self.check_command(view, shown);
            if shown.part == Part::Other || shown.name() != &*entry.name {
                self.foreign_flags(view, shown, runs.as_ref());
                continue;
            }
            has_usage = true;
            let flags = match &runs {
                Some(command) => given(command, &shown.text),
                None => synopsis_flags(&shown.text),
            };
            self.flags(shown, &flags, declared, &mut used);
            if let Some(command) = runs.filter(|_| shown.part == Part::Examples) {
                self.required(shown, &command, listed);
            }
        }
        self.foreign(view, entry, &in_page);
        // Without Usage and examples every flag would be unused, and usage_missing says enough.
        for (flag, _) in listed.iter().zip(used).filter(|(_, used)| has_usage && !used) {
            let message = format!("neither Usage nor an example shows --{}", flag.name());
            let diagnostic =
                Diagnostic::new(Code::FlagUnused, Severity::Info, message).hint("show it in Usage");
            self.push_flag(flag.offset, diagnostic);
        }
        for flag in listed.iter().filter(|flag| !flag.understood) {
            let message = format!(
                "nothing but the name of --{} is understood, so any value of it is accepted",
                flag.name()
            );
            let hint = "say for example (required), (text), (a switch), (a number from 1 to 9), \
                        one of: a, b, one or more words, or declare it in `flags`";
            let diagnostic = Diagnostic::new(Code::FlagUntyped, Severity::Info, message).hint(hint);
            self.push_flag(flag.offset, diagnostic);
        }
        for contradiction in &declared.contradictions {
            self.contradiction(contradiction, source);
        }
    }

    /// `source` declares the flags: the section or the frontmatter.
    fn contradiction(&mut self, found: &Contradiction, source: &str) {
        let name = &found.name;
        let clash = |says: String, hint: &str| {
            let message = format!("{source} {says}");
            Diagnostic::new(Code::FlagContradiction, Severity::Warning, message).hint(hint)
        };
        let diagnostic = match &found.clash {
            Clash::Optional => clash(
                format!("requires --{name}, but Usage shows it in brackets"),
                "remove the brackets, or the mark (required)",
            ),
            Clash::Required => clash(
                format!("does not require --{name}, but Usage shows it without brackets"),
                "put it in brackets, or mark it (required)",
            ),
            Clash::NoValue => clash(
                format!("gives --{name} a value, but Usage shows it without one"),
                "show the value in Usage: --name <value>",
            ),
            Clash::Value => clash(
                format!("calls --{name} a switch, but Usage shows it with a value"),
                "show it without a value, or describe its values",
            ),
            Clash::Default(value) => {
                let message =
                    format!("the default {value} of --{name} is not one of the flag's values");
                Diagnostic::new(Code::FlagDefault, Severity::Warning, message)
                    .hint("correct the default or the values")
            }
            Clash::Undeclared => {
                let message = format!(
                    "the Flags section lists --{name}, but `flags` does not declare it, so it is \
                     refused"
                );
                Diagnostic::new(Code::FlagContradiction, Severity::Warning, message)
                    .hint("declare it there, or remove it here")
            }
            Clash::Described(part) => {
                let message = format!(
                    "the Flags section and `flags` differ about --{name}: {part}; `flags` counts"
                );
                Diagnostic::new(Code::FlagContradiction, Severity::Warning, message)
                    .hint("correct one of them; the section needs only a description")
            }
        };
        self.push_flag(found.offset, diagnostic);
    }

    /// Parses a command and looks up its name. Returns the command, or `None` for a synopsis or an
    /// error.
    fn check_command<'a>(
        &mut self,
        view: &View,
        shown: &'a PageCommand<'_>,
    ) -> Option<Command<'a>> {
        let meant = |name: &str, close: &[String]| {
            is_known(view, name) || command_name(name).is_some() || !close.is_empty()
        };
        let command = match shown.is_synopsis() {
            true => None,
            false => match command::parse(&shown.text) {
                Ok(command) => Some(command),
                Err(error) => {
                    let name = shown.name();
                    // As below: a block may contain commands for another program.
                    if error.kind() != Kind::MissingName && !meant(name, &close(view, name)) {
                        return None;
                    }
                    let at = place(self.document.text.as_bytes(), self.start() + shown.offset);
                    let (line, column) = (error.line() as u32 - 1, error.column() as u32);
                    let column = if line == 0 { at.column + column - 1 } else { column };
                    let diagnostic = Diagnostic::new(
                        Code::ExampleUnparsable,
                        Severity::Warning,
                        error.message(),
                    );
                    self.push(diagnostic.hint(error.hint()).at(at.line + line, column));
                    return None;
                }
            },
        };
        let name = command.as_ref().map_or(shown.name(), |command| &command.name).to_owned();
        if !is_known(view, &name) {
            let close = close(view, &name);
            // Blocks with commands of Windows are marked `cmd` too. Only report names that were
            // probably meant for us.
            if !meant(&name, &close) {
                return None;
            }
            let message = format!("there is no command `{name}`");
            let mut diagnostic = Diagnostic::new(Code::ExampleUnknown, Severity::Warning, message);
            if !close.is_empty() {
                diagnostic = diagnostic.hint(format!("did you mean {}?", close.join(" or ")));
            }
            self.push_at(shown.offset, diagnostic);
        }
        command
    }

    fn flags(
        &mut self,
        shown: &PageCommand<'_>,
        flags: &[(usize, &str)],
        declared: &Declaration,
        used: &mut [bool],
    ) {
        let listed = &declared.flags;
        for (at, name) in flags {
            match listed.iter().position(|flag| flag.is(name)) {
                Some(place) => used[place] = true,
                None if listed.is_empty() && !declared.given || *name == "help" => {}
                None => {
                    let message = match declared.given {
                        true => format!("`flags` does not declare --{name}"),
                        false => format!("the Flags section does not list --{name}"),
                    };
                    let diagnostic =
                        Diagnostic::new(Code::FlagUndocumented, Severity::Warning, message);
                    let close = close_flag(listed, name);
                    self.push_at(
                        shown.offset + at,
                        diagnostic.hint(match close {
                            Some(close) => format!("did you mean --{close}?"),
                            None => "list it there, or remove it here".to_owned(),
                        }),
                    );
                }
            }
        }
    }

    /// Reports flags that a command of another page does not have.
    fn foreign_flags(&mut self, view: &View, shown: &PageCommand<'_>, runs: Option<&Command<'_>>) {
        let own = |command: &&Command<'_>| view.entry(view.find(&command.name)?);
        let Some((command, entry)) = runs.and_then(|runs| Some((runs, own(&runs)?))) else {
            return;
        };
        let Some(declared) = entry.declaration().filter(|_| entry.kind == EntryKind::Command)
        else {
            return;
        };
        if declared.flags.is_empty() && !declared.given {
            return;
        }
        for (at, name) in given(command, &shown.text) {
            if name == "help" || declared.flags.iter().any(|flag| flag.is(name)) {
                continue;
            }
            let message = format!("`{}` has no flag --{name}", entry.name);
            let names = declared.flags.iter().map(|flag| format!("--{}", flag.name()));
            let names: Vec<_> = names.take(NAMED).collect();
            let hint = match (close_flag(&declared.flags, name), names.is_empty()) {
                (Some(close), _) => format!("did you mean --{close}?"),
                (None, false) => format!("it has {}", names.join(", ")),
                (None, true) => "it has none".to_owned(),
            };
            let diagnostic =
                Diagnostic::new(Code::ExampleFlagUnknown, Severity::Warning, message).hint(hint);
            self.push_at(shown.offset + at, diagnostic);
        }
    }

    /// Reports a section that shows commands of other pages only.
    fn foreign(&mut self, view: &View, entry: &Entry, in_page: &[PageCommand<'_>]) {
        let names = |name: &str| {
            name == &*entry.name || entry.fields().aliases.iter().any(|alias| alias == name)
        };
        for (part, title) in [(Part::Usage, "Usage"), (Part::Examples, "Examples")] {
            let mut shown = in_page.iter().filter(|shown| shown.part == part);
            let Some(first) = shown.clone().next() else { continue };
            // A name that is not known has a finding of its own.
            if shown.any(|shown| names(shown.name()) || !is_known(view, shown.name())) {
                continue;
            }
            let message = format!(
                "expected `{}` in {title}, got only other commands, such as `{}`",
                entry.name,
                first.name()
            );
            let diagnostic = Diagnostic::new(Code::ExampleForeign, Severity::Warning, message);
            let hint = format!("show {} here; others belong to their own pages", entry.name);
            self.push_at(first.offset, diagnostic.hint(hint));
        }
    }

    /// Reports required flags that an example leaves out. Each word without a flag may be the value
    /// of one.
    fn required(&mut self, shown: &PageCommand<'_>, command: &Command<'_>, listed: &[Flag]) {
        let given = |flag: &&Flag| command.flags.iter().any(|(name, _)| flag.is(name));
        let missing: Vec<_> = listed.iter().filter(|flag| flag.required && !given(flag)).collect();
        if missing.len() > command.args.len() && !command.help {
            let names: Vec<_> = missing.iter().map(|flag| format!("--{}", flag.name())).collect();
            let message =
                format!("the example leaves out {}, which the page requires", names.join(" and "));
            let diagnostic = Diagnostic::new(Code::ExampleFlagMissing, Severity::Warning, message);
            self.push_at(shown.offset, diagnostic.hint("add the missing flags"));
        }
    }

    /// The offset of the body in the file, in bytes.
    fn start(&self) -> usize {
        self.document.body_range().start
    }

    /// Adds a finding about a flag, at its line of the Flags section or at `flags`.
    fn push_flag(&mut self, offset: Option<usize>, diagnostic: Diagnostic) {
        match offset {
            Some(offset) => self.push_at(offset, diagnostic),
            None => self.push(self.document.at_field("flags", diagnostic)),
        }
    }

    fn push_at(&mut self, offset: usize, diagnostic: Diagnostic) {
        let at = place(self.document.text.as_bytes(), self.start() + offset);
        self.push(diagnostic.at(at.line, at.column));
    }

    fn push(&mut self, diagnostic: Diagnostic) {
        self.found.push(self.document.locate(diagnostic));
    }
}

/// The name of a declared flag of which another one is probably a typo.
fn close_flag<'a>(listed: &'a [Flag], name: &str) -> Option<&'a String> {
    listed.iter().flat_map(|flag| &flag.names).find(|own| jaro_winkler(own, name) > CLOSE)
}

fn is_known(view: &View, name: &str) -> bool {
    name == GET_SKILL || name.starts_with("get_skill:") || view.find(name).is_some()
}

/// Names similar to an unknown one, in backticks.
fn close(view: &View, name: &str) -> Vec<String> {
    view.suggest(name).into_iter().map(|name| format!("`{name}`")).collect()
}

/// The flags of a command, each with its offset in the text. Members of a JSON object have the
/// offset of the command.
fn given<'a>(command: &'a Command<'_>, text: &str) -> Vec<(usize, &'a str)> {
    let place = |name: &str| text.find(&format!("--{name}")).unwrap_or(0);
    command.flags.iter().map(|(name, _)| (place(name), &**name)).collect()
}
