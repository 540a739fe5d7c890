//! From the documents of one source to its entries and domain indexes.
//!
//! What a file means depends on the files around it: a `SKILL.md` with a name makes the other files of its folder
//! resources, one with a domain makes them that domain's commands. This module knows these rules and no others; which
//! of two entries of a name is used is for the [catalog](crate::catalog).

use std::cmp::Ordering;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::entry::{Entry, Index};
use crate::page::diagnostic::{Code, Diagnostic, Severity};
use crate::page::document::{strip_md, Document, SKILL_FILE};
use crate::page::fields::Fields;
use crate::page::sections;
use crate::source::{Kind, Selection, Source, SourceKind};
use crate::text::line::command_name;

/// The longest name that the Agent Skills format allows, in characters.
const NAME_LENGTH: usize = 64;

/// The words after a domain that `get_skill` keeps for itself.
const RESERVED: [&str; 2] = ["all", "help"];

/// A diagnostic and the entries it tells of: who may not see one of them may not see it either.
#[derive(Debug, Clone)]
pub struct Finding {
    /// What was found.
    pub diagnostic: Diagnostic,
    /// The entries it tells of; if there are none, it is for unrestricted views only.
    pub about: Vec<Arc<Entry>>,
}

impl Finding {
    /// A finding for unrestricted views only.
    pub fn trusted(diagnostic: Diagnostic) -> Arc<Finding> {
        Arc::new(Finding { diagnostic, about: Vec::new() })
    }
}

/// What one source holds.
#[derive(Debug, Clone, Default)]
pub struct Assembled {
    /// The entries by path; names may still occur twice.
    pub entries: Vec<Arc<Entry>>,
    /// The entries that no glob of the source selects, by path.
    pub unselected: Vec<Arc<Entry>>,
    /// The domain indexes by path.
    pub indexes: Vec<Arc<Index>>,
    /// What was found out.
    pub findings: Vec<Arc<Finding>>,
    made: Vec<Arc<Made>>,
}

/// Builds the entries of a source from its Markdown documents and the relative paths of all its files.
pub fn assemble(
    source: &Arc<Source>,
    documents: Vec<Arc<Document>>,
    files: Vec<String>,
) -> Assembled {
    assemble_again(source, documents, files, &Assembled::default())
}

/// The same when the source was assembled before: what a document gave then is taken over if the document is still the
/// same one and so is all around it that counts.
pub fn assemble_again(
    source: &Arc<Source>,
    mut documents: Vec<Arc<Document>>,
    files: Vec<String>,
    earlier: &Assembled,
) -> Assembled {
    documents.sort_by(|a, b| a.path.cmp(&b.path));
    let folders = folders(source, &documents);
    let mut builder = Builder { source, folders, resources: FxHashMap::default(), index: None };
    builder.resources = builder.all_resources(&documents, &files);
    let mut out = Assembled::default();
    out.entries.reserve(documents.len());
    out.made.reserve(documents.len());
    let mut earlier = earlier.made.as_slice();
    for document in &documents {
        let made =
            match made_of(document, &mut earlier).filter(|made| builder.is_same(made, document)) {
                Some(made) => Arc::clone(made),
                None => Arc::new(builder.make(document)),
            };
        out.add(made);
    }
    out
}

/// What the same document gave, of what is left of the earlier ones, which are by path too. Of several with one path, as
/// records of one name are, those behind one that is gone may be made anew.
fn made_of<'a>(document: &Arc<Document>, earlier: &mut &'a [Arc<Made>]) -> Option<&'a Arc<Made>> {
    while let [made, rest @ ..] = *earlier {
        // Most are the same, and of those no path is read.
        let is_it = Arc::ptr_eq(&made.document, document);
        let order = if is_it { Ordering::Equal } else { made.document.path.cmp(&document.path) };
        if order == Ordering::Greater {
            return None;
        }
        *earlier = rest;
        if order == Ordering::Equal {
            return is_it.then_some(made);
        }
    }
    None
}

/// What a record gives, whatever other records there are: its entry, if it is one, and what was
/// found out.
pub(crate) fn record(
    source: &Arc<Source>,
    document: &Arc<Document>,
) -> (Option<Arc<Entry>>, Vec<Arc<Finding>>) {
    let mut builder = Builder {
        source,
        folders: FxHashMap::default(),
        resources: FxHashMap::default(),
        index: None,
    };
    let made = builder.make(document);
    (made.entry.filter(|_| made.is_selected), made.findings)
}

/// What one document gave.
#[derive(Debug)]
struct Made {
    document: Arc<Document>,
    folder: Option<Folder>,
    entry: Option<Arc<Entry>>,
    is_selected: bool,
    index: Option<Arc<Index>>,
    findings: Vec<Arc<Finding>>,
}

impl Assembled {
    fn add(&mut self, made: Arc<Made>) {
        let entries = if made.is_selected { &mut self.entries } else { &mut self.unselected };
        entries.extend(made.entry.clone());
        self.indexes.extend(made.index.clone());
        self.findings.extend_from_slice(&made.findings);
        self.made.push(made);
    }
}

/// What the `SKILL.md` of a folder makes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Folder {
    Skill,
    Domain(Arc<str>),
    Both(Arc<str>),
    /// The `SKILL.md` cannot be used.
    Unknown,
}

fn folders<'a>(source: &Source, documents: &'a [Arc<Document>]) -> FxHashMap<&'a str, Folder> {
    // Records are in no folder.
    if source.kind == SourceKind::Stored {
        return FxHashMap::default();
    }
    let is_command = |document: &Document| {
        !document.is_skill_file()
            && document.fields.name.as_deref().is_some_and(|name| command_name(name).is_some())
    };
    let mut commands: Vec<_> =
        documents.iter().filter(|document| is_command(document)).map(|d| d.folder()).collect();
    commands.sort_unstable();
    let role = |document: &Document| match document.fields() {
        None => Folder::Unknown,
        Some(Fields { name: Some(_), domain: None, .. }) => Folder::Skill,
        Some(Fields { name: Some(_), domain: Some(domain), .. }) => {
            Folder::Both(domain.as_str().into())
        }
        Some(Fields { name: None, domain: Some(domain), .. }) => {
            Folder::Domain(domain.as_str().into())
        }
        Some(_) if commands.binary_search(&document.folder()).is_ok() => {
            Folder::Domain(folder_name(source, document).into())
        }
        Some(_) => Folder::Skill,
    };
    let skill_files = documents.iter().filter(|document| document.is_skill_file());
    skill_files.map(|document| (document.folder(), role(document))).collect()
}

/// The name of a document's folder; the source's own folder for those directly in it.
fn folder_name<'a>(source: &'a Source, document: &'a Document) -> &'a str {
    let folder =
        if document.folder().is_empty() { source.root.as_str() } else { document.folder() };
    folder.rsplit_once('/').map_or(folder, |(_, name)| name)
}

struct Builder<'a> {
    source: &'a Arc<Source>,
    folders: FxHashMap<&'a str, Folder>,
    /// The files of each skill, by its folder.
    resources: FxHashMap<String, Vec<String>>,
    /// The index that the document is which is looked at now.
    index: Option<Arc<Index>>,
}

/// What is said about a document while its entry is built.
type Notes = Vec<Diagnostic>;

impl<'a> Builder<'a> {
    /// What the `SKILL.md` makes of a document's folder that is its own, or the closest one upwards.
    fn folder(&self, document: &Document) -> Option<&Folder> {
        if self.folders.is_empty() {
            return None;
        }
        match document.is_skill_file() {
            true => self.folders.get(document.folder()),
            false => self.nearest(document.folder()).1,
        }
    }

    fn files(&self, document: &Document) -> &[String] {
        self.resources.get(document.folder()).map_or(&[], Vec::as_slice)
    }

    /// Whether it still counts what the same document gave before.
    fn is_same(&self, made: &Made, document: &Arc<Document>) -> bool {
        let has_files = |entry: &Entry| {
            !self.folders.is_empty() && document.is_skill_file() && entry.kind == Kind::Skill
        };
        let files = |entry: &Arc<Entry>| !has_files(entry) || entry.files == self.files(document);
        made.folder.as_ref() == self.folder(document) && made.entry.as_ref().is_none_or(files)
    }

    fn make(&mut self, document: &'a Arc<Document>) -> Made {
        let mut notes = document.diagnostics.clone();
        let entry = match document.fields() {
            None => None,
            Some(fields) if self.source.kind == SourceKind::Stored => {
                self.record(document, fields, &mut notes)
            }
            Some(fields) if document.is_skill_file() => {
                self.skill_file(document, fields, &mut notes)
            }
            Some(fields) => self.other_file(document, fields, &mut notes),
        };
        let entry = entry.map(Arc::new);
        let is_selected = entry.as_ref().is_some_and(|entry| self.selects(entry, &mut notes));
        let finding = |diagnostic: Diagnostic| {
            let diagnostic = diagnostic.in_file(document.path.as_str());
            Arc::new(Finding { diagnostic, about: entry.iter().cloned().collect() })
        };
        let findings = notes.into_iter().map(finding).collect();
        let folder = self.folder(document).cloned();
        Made {
            document: document.clone(),
            folder,
            entry,
            is_selected,
            index: self.index.take(),
            findings,
        }
    }

    fn selects(&self, entry: &Entry, notes: &mut Notes) -> bool {
        let (name, source) = (|| quote(&entry.name), || quote(&self.source.name));
        if self.source.selects(&entry.name).is_none() {
            let message =
                format!("{} matches no glob of the source {}, so it is not used", name(), source());
            notes.push(Diagnostic::new(Code::NotSelected, Severity::Info, message));
            return false;
        }
        if self.source.selects_twice(&entry.name) {
            let message = format!(
                "{} matches globs of both available and inline of the source {}; it is inline",
                name(),
                source()
            );
            let hint = "let only one of them match it";
            notes.push(Diagnostic::new(Code::InlineWins, Severity::Warning, message).hint(hint));
        }
        let fields = entry.fields();
        let lost = [
            ("handler", fields.handler.is_some() && entry.handler().is_none()),
            ("schedule", fields.schedule.is_some() && entry.schedule().is_none()),
        ];
        for (field, _) in lost.iter().filter(|(_, lost)| *lost) {
            let message = format!(
                "the source {} has low trust, so the field `{field}` is not used",
                source()
            );
            let diagnostic = Diagnostic::new(Code::UntrustedField, Severity::Warning, message)
                .hint("give the source more trust if its texts are the application's own choice");
            notes.push(entry.document.at_field(field, diagnostic));
        }
        true
    }

    /// Each record is an entry. None is a command, so that none ever runs or replaces one.
    fn record(
        &self,
        document: &Arc<Document>,
        fields: &Fields,
        notes: &mut Notes,
    ) -> Option<Entry> {
        let Some(name) = &fields.name else {
            let message = "expected a name, got none; the record is not used";
            notes.push(Diagnostic::new(Code::NameMissing, Severity::Error, message));
            return None;
        };
        if command_name(name).is_some() {
            let message = format!(
                "the name {} is a command's, and a record is none; it is not used",
                quote(name)
            );
            let hint = "give it a name without a dot";
            notes.push(Diagnostic::new(Code::NameReserved, Severity::Error, message).hint(hint));
            return None;
        }
        let stored = document.of_record()?;
        if stored.kind == Kind::Skill && fields.description.is_none() {
            let message =
                "expected a description of the skill, got none; nobody can know what it is for";
            notes.push(Diagnostic::new(Code::DescriptionMissing, Severity::Warning, message));
        }
        let entry = match stored.kind {
            Kind::Note => self.note(document, fields),
            kind => self.entry(document, fields, name, kind),
        };
        Some(Entry { trust: stored.trust, ..entry })
    }

    fn skill_file(
        &mut self,
        document: &'a Arc<Document>,
        fields: &Fields,
        notes: &mut Notes,
    ) -> Option<Entry> {
        match self.folders.get(document.folder()) {
            Some(Folder::Domain(domain)) => {
                let domain = domain.to_string();
                self.index(document, domain, fields, notes);
                None
            }
            Some(Folder::Both(domain)) => {
                let domain = domain.to_string();
                self.index(document, domain, fields, notes);
                self.skill(document, fields, notes)
            }
            _ if self.source.kind == SourceKind::Notes && fields.description.is_none() => {
                Some(self.note(document, fields))
            }
            _ => self.skill(document, fields, notes),
        }
    }

    fn index(
        &mut self,
        document: &Arc<Document>,
        domain: String,
        fields: &Fields,
        notes: &mut Notes,
    ) {
        if fields.description.is_none() && fields.name.is_none() {
            let message = format!("the index of the domain {} has no description", quote(&domain));
            let hint = "add a line to its frontmatter, like description: Send and read email";
            notes.push(
                Diagnostic::new(Code::DescriptionMissing, Severity::Warning, message).hint(hint),
            );
        }
        let index = Index {
            domain,
            labels: self.labels(fields),
            source: self.source.clone(),
            document: document.clone(),
        };
        self.index = Some(Arc::new(index));
    }

    fn skill(&self, document: &Arc<Document>, fields: &Fields, notes: &mut Notes) -> Option<Entry> {
        described(fields, notes)?;
        let folder = folder_name(self.source, document);
        let name = match &fields.name {
            Some(name) => {
                if name != folder {
                    let message = format!(
                        "the name {} differs from its folder's, {}",
                        quote(name),
                        quote(folder)
                    );
                    notes.push(differs(
                        document,
                        Kind::Skill,
                        message,
                        name,
                        folder,
                        format!("rename the folder to {}", quote(name)),
                    ));
                }
                name.as_str()
            }
            None => {
                notes.push(name_missing(document, folder));
                folder
            }
        };
        check_name(document, name, Kind::Skill, notes);
        let files = self.files(document).to_vec();
        Some(Entry { files, ..self.entry(document, fields, name, Kind::Skill) })
    }

    /// Whether a document in the folder of a skill that is a domain too is not one of the skill's own files: a command's
    /// page, which has labels of its own, or one that cannot be read, whose labels nobody knows.
    fn is_page(&self, document: &Document) -> bool {
        let both = matches!(self.nearest(document.folder()).1, Some(Folder::Both(_)));
        let name = document.fields().map(|fields| fields.name.as_deref());
        both && !document.is_skill_file()
            && name.is_none_or(|name| name.is_some_and(|name| command_name(name).is_some()))
    }

    /// The files of the skills' folders, sorted, without the pages of commands and those that belong to a skill or a domain
    /// further below.
    fn all_resources(
        &self,
        documents: &[Arc<Document>],
        files: &[String],
    ) -> FxHashMap<String, Vec<String>> {
        let has_both = self.folders.values().any(|role| matches!(role, Folder::Both(_)));
        let pages = documents.iter().filter(|document| has_both && self.is_page(document));
        let pages: FxHashSet<&str> = pages.map(|document| document.relative()).collect();
        let mut resources: FxHashMap<String, Vec<String>> = FxHashMap::default();
        for path in files {
            let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
            let (folder, role) = self.nearest(parent);
            let is_own_document = name == SKILL_FILE && parent == folder;
            if is_own_document
                || !matches!(role, Some(Folder::Skill | Folder::Both(_)))
                || pages.contains(path.as_str())
            {
                continue;
            }
            let below = path[folder.len()..].trim_start_matches('/').to_owned();
            match resources.get_mut(folder) {
                Some(files) => files.push(below),
                None => {
                    resources.insert(folder.to_owned(), vec![below]);
                }
            }
        }
        for files in resources.values_mut() {
            files.sort();
        }
        resources
    }

    /// The closest folder upwards that has a `SKILL.md`.
    fn nearest<'b>(&self, folder: &'b str) -> (&'b str, Option<&Folder>) {
        let mut folder = folder;
        loop {
            if let Some(role) = self.folders.get(folder) {
                return (folder, Some(role));
            }
            match folder.rsplit_once('/') {
                Some((parent, _)) => folder = parent,
                None if folder.is_empty() => return ("", None),
                None => folder = "",
            }
        }
    }

    fn other_file(
        &self,
        document: &'a Arc<Document>,
        fields: &Fields,
        notes: &mut Notes,
    ) -> Option<Entry> {
        let domain = match self.nearest(document.folder()).1 {
            Some(Folder::Skill) => return None,
            Some(Folder::Both(domain)) => {
                let is_command =
                    fields.name.as_deref().is_some_and(|name| command_name(name).is_some());
                if !is_command {
                    return None;
                }
                Some(&**domain)
            }
            Some(Folder::Domain(domain)) => Some(&**domain),
            Some(Folder::Unknown) | None => None,
        };
        if self.source.kind == SourceKind::Notes {
            if fields.name.is_none() || fields.description.is_none() {
                return Some(self.note(document, fields));
            }
        } else if document.stem().eq_ignore_ascii_case("readme") {
            notes.push(not_a_skill("a README is for people; it is not an entry"));
            return None;
        } else if fields.name.is_none() && fields.description.is_none() {
            notes.push(not_a_skill("it has no name and no description, so it is not an entry"));
            return None;
        }
        self.single_file(document, fields, domain, notes)
    }

    /// A command, or a skill that is one file.
    fn single_file(
        &self,
        document: &'a Arc<Document>,
        fields: &Fields,
        domain: Option<&str>,
        notes: &mut Notes,
    ) -> Option<Entry> {
        described(fields, notes)?;
        let stem = document.stem();
        let Some(name) = &fields.name else {
            let name = match domain {
                Some(domain) => format!("{domain}.{stem}"),
                None => stem.to_owned(),
            };
            notes.push(name_missing(document, &name));
            return self.named(document, fields, &name, notes);
        };
        match command_name(name) {
            Some((own, action)) => {
                let place = format!("{own}/{action}.md");
                // Above the folders of the domains there may be others, where a whole project is read.
                let folder = document.folder();
                let (first, last) = (folder.split('/').next(), folder.rsplit('/').next());
                let first = first.filter(|folder| !folder.is_empty());
                let expected = domain.or(first).map(|domain| format!("{domain}.{stem}"));
                let agrees = match (domain, &expected) {
                    (None, Some(_)) if last == Some(own) => stem == action,
                    (_, Some(expected)) => expected == name,
                    (_, None) => stem == name || stem == action,
                };
                if !agrees {
                    let expected = expected.unwrap_or_else(|| format!("{own}.{stem}"));
                    let message = format!(
                        "the name {} differs from its path's, {}",
                        quote(name),
                        quote(&expected)
                    );
                    let place = format!("move the file to `{place}`");
                    notes.push(differs(document, Kind::Command, message, name, &expected, place));
                }
            }
            None if name != stem => {
                let message =
                    format!("the name {} differs from its file's, {}", quote(name), quote(stem));
                let place = format!("rename the file to `{name}.md`");
                notes.push(differs(document, Kind::Skill, message, name, stem, place));
            }
            None => {}
        }
        self.named(document, fields, name, notes)
    }

    fn named(
        &self,
        document: &Arc<Document>,
        fields: &Fields,
        name: &str,
        notes: &mut Notes,
    ) -> Option<Entry> {
        let Some((domain, action)) = command_name(name) else {
            check_name(document, name, Kind::Skill, notes);
            return Some(self.entry(document, fields, name, Kind::Skill));
        };
        if RESERVED.contains(&action) {
            let message = format!(
                "the name {} cannot be used: get_skill keeps the action `{action}` for itself",
                quote(name)
            );
            notes.push(
                Diagnostic::new(Code::NameReserved, Severity::Error, message)
                    .hint("give it another action"),
            );
            return None;
        }
        check_name(document, name, Kind::Command, notes);
        let entry = self.entry(document, fields, name, Kind::Command);
        Some(Entry { domain: Some(domain.to_owned()), ..entry })
    }

    fn note(&self, document: &Arc<Document>, fields: &Fields) -> Entry {
        let heading = || {
            sections::headings(document.body())
                .find(|heading| heading.level == 1 && !heading.title.is_empty())
        };
        let title = fields.title.clone().unwrap_or_else(|| {
            heading().map_or_else(|| document.stem().to_owned(), |heading| heading.title.to_owned())
        });
        let name = fields.name.as_deref().unwrap_or_else(|| strip_md(document.relative()));
        Entry { title: Some(title), ..self.entry(document, fields, name, Kind::Note) }
    }

    fn entry(&self, document: &Arc<Document>, fields: &Fields, name: &str, kind: Kind) -> Entry {
        Entry {
            name: Arc::from(name),
            kind,
            domain: None,
            title: fields.title.clone(),
            labels: self.labels(fields),
            source: self.source.clone(),
            trust: self.source.trust,
            document: document.clone(),
            selection: self.source.selects(name).unwrap_or(Selection::Available),
            files: Vec::new(),
        }
    }

    fn labels(&self, fields: &Fields) -> Vec<String> {
        let mut labels = [self.source.labels.as_slice(), fields.labels.as_slice()].concat();
        labels.sort();
        labels.dedup();
        labels
    }
}

/// `None`, with a diagnostic, if there is no description: nobody could know what the entry is for.
pub(crate) fn described(fields: &Fields, notes: &mut Notes) -> Option<()> {
    if fields.description.is_some() {
        return Some(());
    }
    let message = match fields.present {
        true => "expected a description in the frontmatter; the file is not used",
        false => "expected frontmatter with a name and a description; the file is not used",
    };
    let hint = "begin the file with ---, name: …, description: …, ---, each on a line of its own";
    notes.push(Diagnostic::new(Code::DescriptionMissing, Severity::Error, message).hint(hint));
    None
}

fn name_missing(document: &Document, name: &str) -> Diagnostic {
    let message = format!("expected a name in the frontmatter; its path gives {}", quote(name));
    Diagnostic::new(Code::NameMissing, Severity::Warning, message)
        .hint(format!("add the line name: {name}"))
        .fix(document.name_fix(name))
}

/// `place` says how the file could be where its name fits.
fn differs(
    document: &Document,
    kind: Kind,
    message: String,
    name: &str,
    expected: &str,
    place: String,
) -> Diagnostic {
    let other = format!("write name: {expected}");
    let hint = match (odd(expected, kind), odd(name, kind)) {
        (None, Some(_)) => other,
        (Some(_), None) => place,
        _ => format!("{other}, or {place}"),
    };
    let diagnostic =
        Diagnostic::new(Code::NameDiffers, Severity::Warning, message + "; the name is used");
    document.at_field("name", diagnostic.hint(hint))
}

fn not_a_skill(message: &str) -> Diagnostic {
    Diagnostic::new(Code::NotASkill, Severity::Info, message)
}

fn check_name(document: &Document, name: &str, kind: Kind, notes: &mut Notes) {
    // Its hint is a name too, and another one would confuse.
    let differs = notes.iter().any(|note| note.code == Code::NameDiffers);
    let mut push = |code, message, hint: Option<String>| {
        let diagnostic = Diagnostic { hint, ..Diagnostic::new(code, Severity::Warning, message) };
        notes.push(document.at_field("name", diagnostic));
    };
    let length = name.chars().count();
    if length > NAME_LENGTH {
        let message = format!(
            "the name has {length} characters; other readers of skills accept at most {NAME_LENGTH}"
        );
        push(Code::NameTooLong, message, Some("shorten it".to_owned()));
    }
    if let Some(message) = odd(name, kind) {
        let plainer = plainer(name, kind).filter(|_| !differs);
        push(Code::NameCharacters, message, plainer.map(|name| format!("call it {name}")));
    }
}

/// What other readers of skills do not take in a name.
fn odd(name: &str, kind: Kind) -> Option<String> {
    let words = match kind {
        Kind::Command => "lowercase letters, digits, `-`, `_` and the dot",
        _ => "lowercase letters, digits and `-`",
    };
    if let Some(odd) = name.chars().find(|c| *c != '-' && !is_plain(*c, kind)) {
        return Some(format!("expected {words} in the name, got {odd:?} in {}", quote(name)));
    }
    let loose = |word: &str| word.starts_with('-') || word.ends_with('-') || word.contains("--");
    let found = name.split('.').any(loose);
    found.then(|| {
        format!("expected each `-` between two letters or digits of the name, got {}", quote(name))
    })
}

/// Whether the character may stand anywhere in a name: in a command's also dots and `_`.
fn is_plain(c: char, kind: Kind) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_') && kind == Kind::Command
}

/// The name in characters that others take; `None` if that would lose letters.
fn plainer(name: &str, kind: Kind) -> Option<String> {
    let lower = name.to_lowercase();
    let word = |word: &str| {
        let parts: Vec<&str> =
            word.split(|c| !is_plain(c, kind)).filter(|part| !part.is_empty()).collect();
        parts.join("-")
    };
    let words: Vec<String> = match kind {
        Kind::Command => lower.split('.').map(word).collect(),
        _ => vec![word(&lower)],
    };
    let whole =
        lower.is_ascii() && lower.len() <= NAME_LENGTH && words.iter().all(|word| !word.is_empty());
    whole.then(|| words.join("."))
}

/// A name between backticks, cut if it is unreasonably long.
fn quote(name: &str) -> String {
    match name.char_indices().nth(100) {
        Some((at, _)) => format!("`{}…`", &name[..at]),
        None => format!("`{name}`"),
    }
}
