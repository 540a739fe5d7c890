//! One file as it was written: its text and the fields of its frontmatter, whatever other files say; or a record of a
//! database, whose columns are its fields.
//!
//! A [`Document`] depends on its bytes and its path only, so a reload keeps those whose bytes did not change. What a
//! catalog makes of it is an [`Entry`](crate::catalog::entry::Entry).

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::page::declaration::{self, Declaration};
use crate::page::diagnostic::{apply, Code, Diagnostic, Fix, Severity};
use crate::page::record::{makes_skill, Record, Stored};
use crate::page::references::{self, Reference};
use crate::page::{frontmatter, sections};
use crate::schedule::{self, Cron, Zone};
use crate::source::{Effects, Kind};
use crate::value::Value;

/// The longest description and the longest `compatibility` that the Agent Skills format allows, in characters.
const DESCRIPTION_LENGTH: usize = 1024;
const COMPATIBILITY_LENGTH: usize = 500;

/// The longest `timeout`, in milliseconds: what runs longer is no command that a reply waits for.
const LONGEST_TIMEOUT: u32 = 60 * 60 * 1000;
/// The longest name of a tool that all vendors take.
const TOOL_NAME_LENGTH: usize = 64;
/// The largest `max_running`.
const MOST_RUNNING: i64 = 1_000_000;

/// The name of the file that makes a folder a skill or a domain.
pub const SKILL_FILE: &str = "SKILL.md";

/// A file's text and fields.
#[derive(Debug, Clone)]
pub struct Document {
    /// The file's full path; a record's is made of its name.
    pub path: String,
    /// The whole text.
    pub text: Arc<str>,
    /// What was found out about the text; an error says why there are no fields.
    pub diagnostics: Vec<Diagnostic>,
    /// Where a `SKILL.md` refers to files beside it.
    pub references: Vec<Reference>,
    relative: usize,
    body: Range<usize>,
    usable: bool,
    stored: Option<Stored>,
    pub(crate) fields: Fields,
    declaration: OnceLock<Option<Declaration>>,
}

/// The fields of a frontmatter, each with the type its meaning asks for.
#[derive(Debug, Clone, Default)]
pub struct Fields {
    /// Whether there was frontmatter at all.
    pub present: bool,
    /// `name`, with runs of blanks made one.
    pub name: Option<String>,
    /// `domain`, which makes a `SKILL.md` the index of that domain.
    pub domain: Option<String>,
    /// `title`.
    pub title: Option<String>,
    /// `description`.
    pub description: Option<String>,
    /// `handler`, as written.
    pub handler: Option<String>,
    /// `tags`.
    pub tags: Vec<String>,
    /// `visibility_labels`.
    pub labels: Vec<String>,
    /// `aliases`.
    pub aliases: Vec<String>,
    /// `requires`: the names of other skills.
    pub requires: Vec<String>,
    /// `effects`.
    pub effects: Option<Effects>,
    /// `timeout`: how long its handler may take, in milliseconds.
    pub timeout: Option<u32>,
    /// `max_running`: how many calls of its handler may run at a time.
    pub max_running: Option<u32>,
    /// `strict`: whether flags are checked against the page also if there is no handler that gets
    /// them.
    pub strict: bool,
    /// `allowed-tools`.
    pub allowed_tools: Vec<String>,
    /// `schedule`, as written, if it can be read and its time zone too.
    pub schedule: Option<String>,
    /// `timezone`, as written, if there is such a zone.
    pub timezone: Option<String>,
    /// `include_in_prompt`, else `include_in_prompt_default`, else true.
    pub include_in_prompt: bool,
    /// `proactive_for_profile_ids`.
    pub proactive_for: Vec<String>,
    /// `exclude_from_prompt_profile_ids`.
    pub excluded_for: Vec<String>,
    /// `disable-model-invocation`: only people and programs name this skill, a model is not told of it.
    pub hidden_from_model: bool,
    /// `user-invocable`: whether people may name it.
    pub user_invocable: bool,
    /// `trigger_keywords`: words that speak for this skill.
    pub triggers: Vec<String>,
    /// `license`.
    pub license: Option<String>,
    /// `compatibility`.
    pub compatibility: Option<String>,
    /// `metadata`: texts by key, as the Agent Skills format has them.
    pub metadata: Vec<(String, String)>,
    /// The first line of the body's Usage section.
    pub usage: Option<String>,
    /// The frontmatter as written; always a mapping.
    pub data: Value,
}

impl Document {
    /// Reads the file at `relative` (with `/` between folders) below `root`.
    pub fn parse(root: &str, relative: &str, bytes: &[u8]) -> Document {
        let mut document = Document::empty(root, relative);
        match simdutf8::compat::from_utf8(bytes) {
            Ok(text) => document.read(text),
            Err(error) => {
                let line =
                    memchr::memchr_iter(b'\n', &bytes[..error.valid_up_to()]).count() as u32 + 1;
                let message =
                    format!("expected UTF-8, got the byte 0x{:02x}", bytes[error.valid_up_to()]);
                let diagnostic = Diagnostic::new(Code::InvalidUtf8, Severity::Error, message)
                    .hint("save the file as UTF-8")
                    .in_file(document.path.as_str());
                document.diagnostics.push(Diagnostic { line: Some(line), ..diagnostic });
            }
        }
        document
    }

    /// Makes one of a record. Its path is that of a file with the record's name in `root`; a name that cannot stand there
    /// is none, and gives a document without one.
    ///
    /// ```
    /// use skillbook_core::page::document::Document;
    /// use skillbook_core::page::record::{Origin, Record};
    ///
    /// let record = Record {
    ///     id: 1,
    ///     name: "milk".into(),
    ///     is_skill: false,
    ///     title: "Milk".into(),
    ///     description: String::new(),
    ///     content: "---\nhandler: Milk\n---\nTwo litres".into(),
    ///     tags: vec!["shopping".into()],
    ///     labels: Vec::new(),
    ///     include_in_prompt: true,
    ///     proactive_for: Vec::new(),
    ///     excluded_for: Vec::new(),
    ///     origin: Origin::User,
    ///     version: 1,
    ///     schedule: Some("0 8 * * 1".into()),
    ///     timezone: None,
    ///     writers: vec![Some("anna".into())],
    /// };
    /// let document = Document::stored("store", &record);
    /// let fields = document.fields().unwrap();
    /// assert_eq!((document.path.as_str(), document.body()), ("store/milk.md", "Two litres"));
    /// assert_eq!((fields.tags.as_slice(), &fields.handler), (["shopping".to_owned()].as_slice(), &None));
    /// ```
    pub fn stored(root: &str, record: &Record) -> Document {
        let name = record.name.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut document = Document::empty(root, &format!("{name}.md"));
        document.text = record.content.clone();
        let text = &*record.content;
        let own = frontmatter::parse(text)
            .map_err(|error| document.diagnostics.push(error.to_diagnostic()));
        let own = own.ok();
        let written = |key: &str| own.as_ref().and_then(|own| own.data.get(key)?.plain());
        document.body = own.as_ref().map_or(0, |own| own.body_offset)..text.len();
        let is_skill = record.is_skill || own.as_ref().is_some_and(makes_skill);
        let description = match record.description.trim() {
            "" => written("description").unwrap_or_default(),
            description => description.to_owned(),
        };
        let data = record.data(&description);
        document.diagnostics.extend(own.map(|own| own.diagnostics).unwrap_or_default());
        // The columns stand on no line of the text.
        let mut reader = Reader { data: &data, block: "", diagnostics: &mut document.diagnostics };
        if let Some(fields) = reader.fields(true, &text[document.body.clone()]) {
            document.fields = Fields { data, ..fields };
            document.usable = true;
        }
        let kind = if is_skill { Kind::Skill } else { Kind::Note };
        document.stored = Some(Stored {
            id: record.id,
            writers: record.writers.clone(),
            kind,
            trust: record.origin.trust(),
        });
        document.name_diagnostics();
        document
    }

    fn empty(root: &str, relative: &str) -> Document {
        Document {
            path: format!("{root}/{relative}"),
            text: Arc::from(""),
            diagnostics: Vec::new(),
            references: Vec::new(),
            relative: root.len() + 1,
            body: 0..0,
            usable: false,
            stored: None,
            fields: Fields::default(),
            declaration: OnceLock::new(),
        }
    }

    fn name_diagnostics(&mut self) {
        for diagnostic in &mut self.diagnostics {
            diagnostic.path = Some(self.path.clone());
        }
    }

    fn read(&mut self, text: &str) {
        self.text = Arc::from(text);
        self.body = text.len()..text.len();
        match frontmatter::parse(text) {
            Ok(parsed) => {
                self.body = parsed.body_offset..text.len();
                self.diagnostics = parsed.diagnostics;
                let block = &text[..parsed.body_offset];
                let mut reader =
                    Reader { data: &parsed.data, block, diagnostics: &mut self.diagnostics };
                if let Some(fields) = reader.fields(parsed.present, parsed.body) {
                    self.fields = Fields { data: parsed.data, ..fields };
                    self.usable = true;
                }
            }
            Err(error) => self.diagnostics.push(error.to_diagnostic()),
        }
        if self.usable && self.is_skill_file() {
            self.references = references::find(text, self.body.start);
        }
        self.name_diagnostics();
    }

    /// The line of a name, put on top of the frontmatter: if it then reads the same with that name.
    pub(crate) fn name_fix(&self, name: &str) -> Option<Fix> {
        let open = self.text.find('\n').filter(|_| self.fields.present)? + 1;
        let fix = Fix {
            range: open..open,
            replacement: pair("name", &Value::Str(name.to_owned()), self.end_of_line()),
        };
        let mended =
            Document::parse("", "", apply(&self.text, std::slice::from_ref(&fix)).as_bytes());
        let same = without(&mended.fields()?.data, "name") == without(&self.fields.data, "name");
        (same
            && mended.fields.name.as_deref() == Some(name)
            && mended.diagnostics.len() == self.diagnostics.len())
        .then_some(fix)
    }

    fn end_of_line(&self) -> &'static str {
        let first = self.text.find('\n').map_or("", |at| &self.text[..at]);
        if first.ends_with('\r') {
            "\r\n"
        } else {
            "\n"
        }
    }

    /// The path below the source's root.
    pub fn relative(&self) -> &str {
        &self.path[self.relative..]
    }

    /// The folder below the source's root, `""` for the root itself.
    pub fn folder(&self) -> &str {
        self.relative().rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    /// The file's name.
    pub fn file_name(&self) -> &str {
        self.path.rsplit_once('/').map_or(self.path.as_str(), |(_, name)| name)
    }

    /// The file's name without `.md`.
    pub fn stem(&self) -> &str {
        strip_md(self.file_name())
    }

    /// The text after the frontmatter.
    pub fn body(&self) -> &str {
        &self.text[self.body.clone()]
    }

    /// The flags that the page declares, read when they are first asked for; `None` if it lists none.
    pub fn declaration(&self) -> Option<&Declaration> {
        self.declaration.get_or_init(|| declaration::read(self.body())).as_ref()
    }

    /// A diagnostic at the line that a field is written on.
    pub fn at_field(&self, key: &str, diagnostic: Diagnostic) -> Diagnostic {
        at_key(&self.text[..self.body.start], key, diagnostic)
    }

    /// Where the body stands in the text.
    pub fn body_range(&self) -> Range<usize> {
        self.body.clone()
    }

    /// The frontmatter's fields; `None` if the document cannot be used.
    pub fn fields(&self) -> Option<&Fields> {
        self.usable.then_some(&self.fields)
    }

    /// What only a record's document has.
    pub fn of_record(&self) -> Option<&Stored> {
        self.stored.as_ref()
    }

    /// Whether both say the same of the same place, be they read at different times.
    pub fn is_same(&self, other: &Document) -> bool {
        // A file's fields are in its text; a record's are not.
        let columns = || {
            self.stored == other.stored
                && (self.stored.is_none() || self.fields.data == other.fields.data)
        };
        self.path == other.path && self.text == other.text && columns()
    }

    /// Whether this is a `SKILL.md`.
    pub fn is_skill_file(&self) -> bool {
        self.stored.is_none()
            && self.path.strip_suffix(SKILL_FILE).is_some_and(|folder| folder.ends_with('/'))
    }

    /// Whether this file makes its folder a skill's: the other files in it are the skill's resources, never entries.
    pub fn claims_folder(&self) -> bool {
        self.is_skill_file() && self.fields.name.is_some() && self.fields.domain.is_none()
    }
}

/// A path without the `.md` at its end, in any case.
pub fn strip_md(path: &str) -> &str {
    match path.len().checked_sub(3) {
        Some(at) if path.is_char_boundary(at) && path[at..].eq_ignore_ascii_case(".md") => {
            &path[..at]
        }
        _ => path,
    }
}

/// A line or several of frontmatter.
fn pair(key: &str, value: &Value, end_of_line: &str) -> String {
    let written = frontmatter::write(&[(key.to_owned(), value.clone())], "");
    let lines = written.trim_start_matches("---\n").trim_end_matches("---\n");
    lines.replace('\n', end_of_line)
}

/// A mapping's pairs but one.
fn without<'a>(data: &'a Value, key: &str) -> Vec<&'a (String, Value)> {
    match data {
        Value::Map(pairs) => pairs.iter().filter(|(other, _)| other != key).collect(),
        _ => Vec::new(),
    }
}

/// Reads fields of the types we need from whatever was written.
struct Reader<'a> {
    data: &'a Value,
    block: &'a str,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl Reader<'_> {
    /// `None` if the labels cannot be read: such a document must not be shown to anybody.
    fn fields(&mut self, present: bool, body: &str) -> Option<Fields> {
        let labels = self.labels()?;
        let (schedule, timezone) = self.schedule();
        let aliases = self.list("aliases");
        self.check_tool(&aliases);
        Some(Fields {
            present,
            labels,
            name: self
                .text("name")
                .map(|name| name.split_whitespace().collect::<Vec<_>>().join(" ")),
            domain: self.text("domain"),
            title: self.text("title"),
            description: self.bounded("description", DESCRIPTION_LENGTH, Code::DescriptionTooLong),
            handler: self.text("handler"),
            tags: self.list("tags"),
            aliases,
            requires: self.list("requires"),
            effects: self.effects(),
            timeout: self.timeout(),
            max_running: self.max_running(),
            strict: self.flag("strict").unwrap_or(false),
            allowed_tools: self.allowed_tools(),
            schedule,
            timezone,
            include_in_prompt: self
                .flag("include_in_prompt")
                .or_else(|| self.flag("include_in_prompt_default"))
                .unwrap_or(true),
            proactive_for: self.list("proactive_for_profile_ids"),
            excluded_for: self.list("exclude_from_prompt_profile_ids"),
            hidden_from_model: self.flag("disable-model-invocation").unwrap_or(false),
            user_invocable: self.flag("user-invocable").unwrap_or(true),
            triggers: self.list("trigger_keywords"),
            license: self.text("license"),
            compatibility: self.bounded(
                "compatibility",
                COMPATIBILITY_LENGTH,
                Code::CompatibilityTooLong,
            ),
            metadata: self.metadata(),
            usage: sections::usage(body).map(str::to_owned),
            data: Value::Null,
        })
    }

    /// Text that is not blank; a number or a boolean was meant as text.
    fn text(&mut self, key: &'static str) -> Option<String> {
        let value = self.data.get(key)?;
        if let Value::Str(text) = value {
            let text = text.trim();
            return (!text.is_empty()).then(|| text.to_owned());
        }
        match value.plain() {
            Some(text) => {
                let message = format!(
                    "expected text for `{key}`, got {}; read as \"{text}\"",
                    describe(value)
                );
                self.mended(key, message, Some(Value::Str(text.clone())));
                Some(text)
            }
            None => {
                self.unless_null(key, "text", value);
                None
            }
        }
    }

    /// Text that other readers take up to a length.
    fn bounded(&mut self, key: &'static str, longest: usize, code: Code) -> Option<String> {
        let text = self.text(key)?;
        // A character has at least one byte, so that most texts need no counting.
        let length = if text.len() > longest { text.chars().count() } else { 0 };
        if length > longest {
            let message = format!(
                "`{key}` has {length} characters; other readers of skills take up to {longest}"
            );
            self.push(key, Diagnostic::new(code, Severity::Warning, message).hint("shorten it"));
        }
        Some(text)
    }

    fn list(&mut self, key: &'static str) -> Vec<String> {
        match self.data.get(key) {
            None => Vec::new(),
            Some(Value::List(items)) => {
                let texts: Vec<_> = items.iter().filter_map(Value::plain).collect();
                if texts.len() < items.len() {
                    let message =
                        format!("expected a list of texts for `{key}`, got other values in it; they are left out");
                    self.mended(key, message, None);
                }
                texts
            }
            Some(value) => match value.plain() {
                Some(text) => {
                    let items = split(&text);
                    let message = format!(
                        "expected a list for `{key}`, got {}; read as [{}]",
                        describe(value),
                        items.join(", ")
                    );
                    let list = items.iter().cloned().map(Value::Str).collect();
                    self.mended(key, message, Some(Value::List(list)));
                    items
                }
                None => {
                    self.unless_null(key, "a list of texts", value);
                    Vec::new()
                }
            },
        }
    }

    /// The Agent Skills format allows one text here, so that needs no diagnostic.
    fn allowed_tools(&mut self) -> Vec<String> {
        match self.data.get("allowed-tools") {
            Some(Value::Str(text)) => split_tools(text),
            _ => self.list("allowed-tools"),
        }
    }

    /// Numbers and booleans are read as texts without a diagnostic: `version: 1.0` is what everybody writes.
    fn metadata(&mut self) -> Vec<(String, String)> {
        let key = "metadata";
        match self.data.get(key) {
            None => Vec::new(),
            Some(Value::Map(pairs)) => {
                for (name, value) in pairs
                    .iter()
                    .filter(|(_, value)| matches!(value, Value::List(_) | Value::Map(_)))
                {
                    let name = name.chars().take(60).collect::<String>();
                    let got = describe(value);
                    self.mended(
                        key,
                        format!(
                            "expected texts in `{key}`, got {got} for \"{name}\"; it is left out"
                        ),
                        None,
                    );
                }
                let text = |key: &str, value: &Value| match value {
                    Value::Float(number) => Some(self.spelled(key, *number)),
                    value => value.plain(),
                };
                pairs
                    .iter()
                    .filter_map(|(key, value)| Some((key.clone(), text(key, value)?)))
                    .collect()
            }
            Some(value) => {
                self.unless_null(key, "a mapping of texts", value);
                Vec::new()
            }
        }
    }

    /// A number as it is written, since 1.10 is another version than 1.1; in a mapping on one line only the number counts.
    fn spelled(&self, key: &str, number: f64) -> String {
        let written = self.block.lines().find_map(|line| {
            let value = line.trim_start().strip_prefix(key)?.trim_start().strip_prefix(':')?;
            value.split_whitespace().next().filter(|text| text.parse() == Ok(number))
        });
        written.map_or_else(|| format!("{number:?}"), str::to_owned)
    }

    fn labels(&mut self) -> Option<Vec<String>> {
        let key = "visibility_labels";
        let readable = match self.data.get(key) {
            Some(Value::List(items)) => items.iter().all(|item| item.plain().is_some()),
            Some(Value::Map(_)) => false,
            _ => true,
        };
        if readable {
            return Some(self.list(key));
        }
        let message =
            "expected a list of texts for `visibility_labels`; the document is not used, \
                       for it could be shown to the wrong reader";
        let hint = "write it like visibility_labels: [private, family]";
        let diagnostic = Diagnostic::new(Code::LabelsInvalid, Severity::Error, message).hint(hint);
        self.push(key, diagnostic);
        None
    }

    fn flag(&mut self, key: &'static str) -> Option<bool> {
        let value = self.data.get(key)?;
        if let Value::Bool(flag) = value {
            return Some(*flag);
        }
        let meant = value.plain().and_then(|text| match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Some(true),
            "false" | "no" | "off" | "0" => Some(false),
            _ => None,
        });
        match meant {
            Some(flag) => {
                let message = format!(
                    "expected true or false for `{key}`, got {}; read as {flag}",
                    describe(value)
                );
                self.mended(key, message, Some(Value::Bool(flag)));
            }
            None => self.unless_null(key, "true or false", value),
        }
        meant
    }

    fn effects(&mut self) -> Option<Effects> {
        match self.data.get("effects")? {
            Value::Str(text) if text == "read" => Some(Effects::Read),
            Value::Str(text) if text == "write" => Some(Effects::Write),
            value => {
                self.unless_null("effects", "`read` or `write`", value);
                None
            }
        }
    }

    /// The schedule and its time zone. In another zone than was meant it would run at the wrong time.
    fn schedule(&mut self) -> (Option<String>, Option<String>) {
        let (schedule, timezone) = (self.text("schedule"), self.text("timezone"));
        let cron = schedule.as_deref().map_or(Ok(()), |text| Cron::parse(text).map(drop));
        let zone = timezone.as_deref().map_or(Ok(()), |text| Zone::named(text).map(drop));
        let lost = match schedule {
            Some(_) => "the field is not used, nor is `schedule`, which would run at another time",
            None => "the field is not used",
        };
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
            self.diagnostics.push(at_part(self.block, key, text, error.span().start, diagnostic));
        }
    }

    fn timeout(&mut self) -> Option<u32> {
        let value = self.data.get("timeout")?;
        let milliseconds = match value {
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

    fn max_running(&mut self) -> Option<u32> {
        match self.data.get("max_running")? {
            Value::Int(count @ 1..=MOST_RUNNING) => Some(*count as u32),
            value => {
                self.unless_null("max_running", "a number from 1 to 1000000", value);
                None
            }
        }
    }

    /// The name of its tool, which those who define tools read: it has the form that all vendors take, is no other entry's
    /// usual name, and is an alias, so that tool and command of one name are the same.
    fn check_tool(&mut self, aliases: &[String]) {
        match self.data.get("tool") {
            Some(Value::Str(tool)) if tool_name(tool) && aliases.contains(tool) => {}
            Some(Value::Str(tool)) if tool_name(tool) => {
                let message = format!(
                    "expected `tool` among the aliases, got \"{tool}\"; the field is not used"
                );
                let diagnostic = Diagnostic::new(Code::FieldIgnored, Severity::Warning, message)
                    .hint(format!("write besides: aliases: [{tool}]"));
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

    /// `meant` is the value to write instead, where none of what was written is lost with it.
    fn mended(&mut self, key: &str, message: String, meant: Option<Value>) {
        let fix = meant.and_then(|meant| self.line_fix(key, &meant));
        self.push(key, Diagnostic::new(Code::FieldMended, Severity::Warning, message).fix(fix));
    }

    /// The key's line written anew: if it alone holds the value, so that all else reads the same.
    fn line_fix(&self, key: &str, meant: &Value) -> Option<Fix> {
        let start = line_of(self.block, key)?.1;
        let line = self.block[start..].split('\n').next()?;
        let bare = line.strip_suffix('\r').unwrap_or(line);
        if bare.contains('#') {
            return None;
        }
        let end_of_line = if bare.len() < line.len() { "\r\n" } else { "\n" };
        let replacement = pair(key, meant, end_of_line).trim_end().to_owned();
        let fix = Fix { range: start..start + bare.len(), replacement };
        let mended = apply(self.block, std::slice::from_ref(&fix));
        let read = frontmatter::parse(&mended).ok()?.data;
        (read.get(key) == Some(meant) && without(&read, key) == without(self.data, key))
            .then_some(fix)
    }

    /// A key without a value says nothing, and that is no mistake.
    fn unless_null(&mut self, key: &str, expected: &str, value: &Value) {
        if *value != Value::Null {
            let message = format!(
                "expected {expected} for `{key}`, got {}; the field is not used",
                describe(value)
            );
            self.push(key, Diagnostic::new(Code::FieldIgnored, Severity::Warning, message));
        }
    }

    fn push(&mut self, key: &str, diagnostic: Diagnostic) {
        self.diagnostics.push(at_key(self.block, key, diagnostic));
    }
}

/// Whether a page may choose this as its tool's name. Those that are made of entries' names have `__` for a dot, or end in a
/// hash.
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

/// The line of a frontmatter that begins with the key, from 1, and its offset.
fn line_of(block: &str, key: &str) -> Option<(u32, usize)> {
    let mut start = 0;
    for (number, line) in block.split_inclusive('\n').enumerate() {
        if line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with(':')) {
            return Some((number as u32 + 1, start));
        }
        start += line.len();
    }
    None
}

/// The diagnostic at the line of a frontmatter that has the key.
fn at_key(block: &str, key: &str, diagnostic: Diagnostic) -> Diagnostic {
    match line_of(block, key) {
        Some((line, _)) => diagnostic.at(line, 1),
        None => diagnostic,
    }
}

/// The diagnostic at a part of the key's value, given by its first byte, if the value stands on the line as it was read.
fn at_part(block: &str, key: &str, value: &str, part: usize, diagnostic: Diagnostic) -> Diagnostic {
    let column = line_of(block, key).and_then(|(_, start)| {
        let line = block[start..].split('\n').next()?;
        let colon = line.find(':')?;
        let before = &line[..colon + line[colon..].find(value)? + part];
        Some(before.chars().count() as u32 + 1)
    });
    let placed = at_key(block, key, diagnostic);
    Diagnostic { column: column.or(placed.column), ..placed }
}

fn describe(value: &Value) -> String {
    match value {
        Value::Null => "nothing".into(),
        Value::Bool(value) => format!("the boolean {value}"),
        Value::Int(value) => format!("the number {value}"),
        Value::Float(value) => format!("the number {value}"),
        Value::Str(text) => format!("the text \"{}\"", text.chars().take(60).collect::<String>()),
        Value::List(_) => "a list".into(),
        Value::Map(_) => "a mapping".into(),
    }
}

/// A number with `ms`, `s`, `m` or `h` behind it, or with nothing for seconds, in milliseconds.
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

/// By commas if there is one, so that items may hold blanks; else by blanks.
fn split(text: &str) -> Vec<String> {
    let clean = |item: &str| item.trim().to_owned();
    let items: Vec<_> = match text.contains(',') {
        true => text.split(',').map(clean).collect(),
        false => text.split_whitespace().map(clean).collect(),
    };
    items.into_iter().filter(|item| !item.is_empty()).collect()
}

/// By commas and blanks, but not inside parentheses: `Bash(git add:*) Read`.
fn split_tools(text: &str) -> Vec<String> {
    let mut depth = 0usize;
    let between = |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => return depth == 0 && (c == ',' || c.is_whitespace()),
        }
        false
    };
    text.split(between).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Document {
        Document::parse("/r", "a/b.md", text.as_bytes())
    }

    fn field<T>(yaml: &str, get: impl Fn(&Fields) -> T) -> (T, Vec<&'static str>) {
        let document = document(&format!("---\n{yaml}\n---\n"));
        let codes =
            document.diagnostics.iter().map(|diagnostic| diagnostic.code.as_str()).collect();
        (get(document.fields().expect(yaml)), codes)
    }

    #[test]
    fn knows_its_path() {
        let document = document("x");
        assert_eq!(document.relative(), "a/b.md");
        assert_eq!((document.folder(), document.file_name(), document.stem()), ("a", "b.md", "b"));
        assert_eq!(Document::parse("/r", "B.MD", b"").folder(), "");
        assert_eq!(strip_md("é.Md"), "é");
        assert_eq!(strip_md("md"), "md");
    }

    #[test]
    fn reads_texts() {
        let some = |text: &str| Some(text.to_owned());
        let rows = [
            ("title: A B", some("A B"), vec![]),
            ("title: '  '", None, vec![]),
            ("title:", None, vec![]),
            ("title: 12", some("12"), vec!["field_mended"]),
            ("title: true", some("true"), vec!["field_mended"]),
            ("title: [a]", None, vec!["field_ignored"]),
            ("title: {a: b}", None, vec!["field_ignored"]),
        ];
        for (yaml, expected, codes) in rows {
            assert_eq!(field(yaml, |fields| fields.title.clone()), (expected, codes), "{yaml}");
        }
        assert_eq!(field("name: \"a\\n  b\"", |fields| fields.name.clone()), (some("a b"), vec![]));
    }

    #[test]
    fn reads_lists() {
        let rows: [(&str, &[&str], &[&str]); 7] = [
            ("tags: [a, b c]", &["a", "b c"], &[]),
            ("tags: a, b c,", &["a", "b c"], &["field_mended"]),
            ("tags: a b", &["a", "b"], &["field_mended"]),
            ("tags: [a, 1]", &["a", "1"], &[]),
            ("tags: [a, [b]]", &["a"], &["field_mended"]),
            ("tags: {a: b}", &[], &["field_ignored"]),
            ("tags:", &[], &[]),
        ];
        for (yaml, expected, codes) in rows {
            let (list, found) = field(yaml, |fields| fields.tags.clone());
            assert_eq!(
                (list.as_slice(), found.as_slice()),
                (expected.map_str().as_slice(), codes),
                "{yaml}"
            );
        }
    }

    trait MapStr {
        fn map_str(&self) -> Vec<String>;
    }

    impl MapStr for &[&str] {
        fn map_str(&self) -> Vec<String> {
            self.iter().map(|item| item.to_string()).collect()
        }
    }

    #[test]
    fn reads_tools_as_text_or_list() {
        let rows: [(&str, &[&str], &[&str]); 4] = [
            ("allowed-tools: Bash(git add:*) Read", &["Bash(git add:*)", "Read"], &[]),
            ("allowed-tools: \"Read, Write(a, b)\"", &["Read", "Write(a, b)"], &[]),
            ("allowed-tools: [Read]", &["Read"], &[]),
            ("allowed-tools: 3", &["3"], &["field_mended"]),
        ];
        for (yaml, expected, codes) in rows {
            let (list, found) = field(yaml, |fields| fields.allowed_tools.clone());
            assert_eq!(
                (list.as_slice(), found.as_slice()),
                (expected.map_str().as_slice(), codes),
                "{yaml}"
            );
        }
    }

    #[test]
    fn reads_flags_and_effects() {
        let rows = [
            ("x: 1", true, vec![]),
            ("include_in_prompt: false", false, vec![]),
            ("include_in_prompt: 'no'", false, vec!["field_mended"]),
            ("include_in_prompt: maybe", true, vec!["field_ignored"]),
            ("include_in_prompt_default: false", false, vec![]),
            ("include_in_prompt: true\ninclude_in_prompt_default: false", true, vec![]),
        ];
        for (yaml, expected, codes) in rows {
            assert_eq!(field(yaml, |fields| fields.include_in_prompt), (expected, codes), "{yaml}");
        }
        assert_eq!(field("effects: read", |fields| fields.effects), (Some(Effects::Read), vec![]));
        assert_eq!(
            field("effects: write", |fields| fields.effects),
            (Some(Effects::Write), vec![])
        );
        assert_eq!(field("effects: both", |fields| fields.effects), (None, vec!["field_ignored"]));
    }

    #[test]
    fn reads_limits() {
        let ignored = || vec!["field_ignored"];
        let rows = [
            ("30", Some(30_000), vec![]),
            ("0.25", Some(250), vec![]),
            ("'30'", Some(30_000), vec![]),
            ("500ms", Some(500), vec![]),
            ("90 s", Some(90_000), vec![]),
            ("1.5m", Some(90_000), vec![]),
            ("5M", Some(300_000), vec![]),
            ("1h", Some(3_600_000), vec![]),
            ("3600", Some(3_600_000), vec![]),
            ("3601", None, ignored()),
            ("2h", None, ignored()),
            ("1ms", Some(1), vec![]),
            ("0.5ms", None, ignored()),
            ("0", None, ignored()),
            ("-5", None, ignored()),
            (".inf", None, ignored()),
            (".nan", None, ignored()),
            ("5 minutes", None, ignored()),
            ("1h30m", None, ignored()),
            ("soon", None, ignored()),
            ("m", None, ignored()),
            ("''", None, ignored()),
            ("true", None, ignored()),
            ("[5]", None, ignored()),
            ("", None, vec![]),
        ];
        for (yaml, expected, codes) in rows {
            let read = field(&format!("timeout: {yaml}"), |fields| fields.timeout);
            assert_eq!(read, (expected, codes), "{yaml}");
        }
        let rows = [
            ("1", Some(1), vec![]),
            ("1000000", Some(1_000_000), vec![]),
            ("1000001", None, ignored()),
            ("0", None, ignored()),
            ("'2'", None, ignored()),
            ("2.0", None, ignored()),
            ("", None, vec![]),
        ];
        for (yaml, expected, codes) in rows {
            let read = field(&format!("max_running: {yaml}"), |fields| fields.max_running);
            assert_eq!(read, (expected, codes), "{yaml}");
        }
        assert_eq!(
            document("---\ntimeout: soon\n---\n").diagnostics[0].message,
            "expected seconds, or a duration such as 500ms, 30s or 5m, of at most 1h for `timeout`, got the text \"soon\"; \
             the field is not used"
        );
    }

    #[test]
    fn says_which_names_of_tools_are_not_used() {
        let form = |got: &str| {
            format!(
                "expected up to 64 letters, digits, `-` and single `_`, other than get_skill, for `tool`, got {got}; \
                 the field is not used"
            )
        };
        let long = "a".repeat(65);
        let rows = [
            ("tool: get_note\naliases: [get_note]".to_owned(), None),
            ("tool: Get-Note2\naliases: [other, Get-Note2]".to_owned(), None),
            (format!("tool: {0}\naliases: [{0}]", &long[1..]), None),
            ("tool:".to_owned(), None),
            (
                "tool: get_note\naliases: [note]".to_owned(),
                Some(
                    "expected `tool` among the aliases, got \"get_note\"; the field is not used"
                        .to_owned(),
                ),
            ),
            ("tool: get.note\naliases: [get.note]".to_owned(), Some(form("the text \"get.note\""))),
            (
                "tool: get__note\naliases: [get__note]".to_owned(),
                Some(form("the text \"get__note\"")),
            ),
            (
                "tool: get_skill\naliases: [get_skill]".to_owned(),
                Some(form("the text \"get_skill\"")),
            ),
            (
                "tool: a-0123456789abcdef\naliases: [a-0123456789abcdef]".to_owned(),
                Some(form("the text \"a-0123456789abcdef\"")),
            ),
            (
                format!("tool: {long}\naliases: [{long}]"),
                Some(form(&format!("the text \"{}\"", &long[..60]))),
            ),
            ("tool: ''".to_owned(), Some(form("the text \"\""))),
            ("tool: 7".to_owned(), Some(form("the number 7"))),
            ("tool: [get_note]\naliases: [get_note]".to_owned(), Some(form("a list"))),
        ];
        for (yaml, expected) in rows {
            let found = document(&format!("---\n{yaml}\n---\n")).diagnostics;
            assert_eq!(found.first().map(|one| one.message.clone()), expected, "{yaml}");
        }
        let hint = document("---\ntool: get_note\n---\n").diagnostics[0].hint.clone();
        assert_eq!(hint.as_deref(), Some("write besides: aliases: [get_note]"));
    }

    #[test]
    fn reads_schedules() {
        let some = |text: Option<&str>| text.map(str::to_owned);
        type Row<'a> = (&'a str, Option<&'a str>, Option<&'a str>, &'a [&'a str]);
        let rows: [Row; 8] = [
            ("schedule: 0 9 * * 1", Some("0 9 * * 1"), None, &[]),
            (
                "schedule: '@daily'\ntimezone: Europe/Berlin",
                Some("@daily"),
                Some("Europe/Berlin"),
                &[],
            ),
            ("timezone: Europe/Berlin", None, Some("Europe/Berlin"), &[]),
            ("schedule:", None, None, &[]),
            ("schedule: daily\ntimezone: UTC", None, Some("UTC"), &["schedule_invalid"]),
            ("schedule: '@daily'\ntimezone: Berlin", None, None, &["schedule_invalid"]),
            (
                "schedule: daily\ntimezone: Berlin",
                None,
                None,
                &["schedule_invalid", "schedule_invalid"],
            ),
            ("schedule: [5]", None, None, &["field_ignored"]),
        ];
        for (yaml, schedule, timezone, codes) in rows {
            let (read, found) =
                field(yaml, |fields| (fields.schedule.clone(), fields.timezone.clone()));
            let expected = (some(schedule), some(timezone));
            assert_eq!((read, found.as_slice()), (expected, codes), "{yaml}");
        }
    }

    #[test]
    fn says_what_is_wrong_with_a_schedule_and_where() {
        let lost = "the field is not used";
        let number = "write a number such as 0, a list (1,3), a range (1-3), a step (*/2) or *";
        let hour =
            format!("`schedule`: expected a number from 0 to 23 in the hour, got \"25\"; {lost}");
        let zone = "`timezone`: expected the name of a time zone, got \"Berlin\"";
        let rows = [
            ("schedule: 0 25 * * 1", hour.clone(), number, (2, 13)),
            ("schedule:  \"0 25 * * 1\"", hour.clone(), number, (2, 15)),
            ("a: b\nschedule: |\n  0 25 * * 1", hour, number, (3, 1)),
            ("timezone: Berlin", format!("{zone}; {lost}"), "write Europe/Berlin", (2, 11)),
            (
                "timezone: Berlin\nschedule: 0 9 * * 1",
                format!("{zone}; {lost}, nor is `schedule`, which would run at another time"),
                "write Europe/Berlin",
                (2, 11),
            ),
            (
                "schedule: 0 0 30 feb ?",
                format!("`schedule`: expected a day that exists, got \"30 feb ?\"; {lost}"),
                "no year has such a day; write another day of month, month or day of week",
                (2, 15),
            ),
        ];
        for (yaml, message, hint, (line, column)) in rows {
            let document = document(&format!("---\n{yaml}\n---\n"));
            let expected =
                Diagnostic::new(Code::ScheduleInvalid, Severity::Warning, message).hint(hint);
            assert_eq!(
                document.diagnostics,
                [expected.at(line, column).in_file("/r/a/b.md")],
                "{yaml}"
            );
        }
    }

    #[test]
    fn reads_metadata() {
        type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [&'a str]);
        let rows: [Row; 8] = [
            (
                "version: 9.9\nmetadata:\n  version: 1.10 # beta\n  other: 2.0",
                &[("version", "1.10"), ("other", "2.0")],
                &[],
            ),
            ("metadata: {version: 1.0}", &[("version", "1.0")], &[]),
            (
                "metadata: {author: Ann, version: 1.5, beta: true}",
                &[("author", "Ann"), ("version", "1.5"), ("beta", "true")],
                &[],
            ),
            (
                "metadata: {a: [b], c: {d: e}, f: g}",
                &[("f", "g")],
                &["field_mended", "field_mended"],
            ),
            ("metadata: {a: }", &[], &[]),
            ("metadata:", &[], &[]),
            ("metadata: text", &[], &["field_ignored"]),
            ("x: y", &[], &[]),
        ];
        for (yaml, expected, codes) in rows {
            let (found, got) = field(yaml, |fields| fields.metadata.clone());
            let found: Vec<_> =
                found.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
            assert_eq!((found.as_slice(), got.as_slice()), (expected, codes), "{yaml}");
        }
        let wrong = document("---\nmetadata:\n  a: [b]\n---\n");
        assert_eq!(
            wrong.diagnostics[0].message,
            "expected texts in `metadata`, got a list for \"a\"; it is left out"
        );
    }

    #[test]
    fn long_texts_are_reported_in_characters() {
        let rows = [
            ("description", 1024, None),
            (
                "description",
                1025,
                Some("`description` has 1025 characters; other readers of skills take up to 1024"),
            ),
            ("compatibility", 500, None),
            (
                "compatibility",
                501,
                Some("`compatibility` has 501 characters; other readers of skills take up to 500"),
            ),
        ];
        for (key, length, expected) in rows {
            let found = document(&format!("---\n{key}: {}\n---\n", "é".repeat(length)));
            let messages =
                found.diagnostics.first().map(|found| (found.message.as_str(), found.line));
            assert_eq!(messages, expected.map(|message| (message, Some(2))), "{key} {length}");
        }
    }

    #[test]
    fn unreadable_labels_hide_the_document() {
        for yaml in ["{a: b}", "[[a]]", "[a, null]", "['']"] {
            let document = document(&format!("---\nname: a\nvisibility_labels: {yaml}\n---\n"));
            assert!(document.fields().is_none(), "{yaml}");
            assert_eq!(
                (document.diagnostics[0].code, document.diagnostics[0].line),
                (Code::LabelsInvalid, Some(3))
            );
        }
        let rows: [(&str, &[&str]); 4] =
            [("", &[]), ("[]", &[]), ("[a, 1]", &["a", "1"]), ("a b", &["a", "b"])];
        for (yaml, expected) in rows {
            let (labels, _) =
                field(&format!("visibility_labels: {yaml}"), |fields| fields.labels.clone());
            assert_eq!(labels, expected.map_str(), "{yaml}");
        }
    }

    #[test]
    fn says_what_is_wrong_and_where() {
        let wrong = document("---\nname: a\ntags: {a: b}\n---\n");
        assert_eq!(
            wrong.diagnostics,
            [Diagnostic::new(
                Code::FieldIgnored,
                Severity::Warning,
                "expected a list of texts for `tags`, got a mapping; the field is not used"
            )
            .at(3, 1)
            .in_file("/r/a/b.md")]
        );
        let bytes = Document::parse("/r", "a.md", b"one\n\xff");
        assert_eq!(bytes.diagnostics[0].message, "expected UTF-8, got the byte 0xff");
        assert_eq!((bytes.diagnostics[0].line, bytes.fields().is_none()), (Some(2), true));
    }
}
