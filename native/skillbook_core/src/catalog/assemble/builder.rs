//! Builds the entry, the index and the diagnostics of one document.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::command;
use super::folders::{folder_name, Folders, Role};
use super::naming::{agrees, check_name, differs, name_missing, quote, Notes};
use crate::catalog::entry::{DomainIndex, Entry};
use crate::catalog::finding::Finding;
use crate::page::diagnostic::{Code, Diagnostic, Severity};
use crate::page::document::{strip_md, Document};
use crate::page::fields::Fields;
use crate::page::sections;
use crate::source::{Kind, Selection, Source, SourceKind, Trust};
use crate::text::line::command_name;

/// The actions that `get_skill` keeps for itself: `email.all` lists a whole domain.
const RESERVED: [&str; 2] = ["all", "help"];

/// The results of one document. `folder` is the role that it depended on, to know when it must be
/// built again.
#[derive(Debug)]
pub(super) struct Assembly {
    pub document: Arc<Document>,
    pub folder: Option<Role>,
    pub entry: Option<Arc<Entry>>,
    pub is_selected: bool,
    pub index: Option<Arc<DomainIndex>>,
    pub findings: Vec<Arc<Finding>>,
}

pub(super) struct Builder<'a> {
    pub source: &'a Arc<Source>,
    pub folders: Folders<'a>,
    /// The files of each skill, by folder.
    pub resources: FxHashMap<String, Vec<String>>,
    /// The index made of the current document, if it is one.
    pub index: Option<Arc<DomainIndex>>,
}

impl<'a> Builder<'a> {
    fn files(&self, document: &Document) -> &[String] {
        self.resources.get(document.folder()).map_or(&[], Vec::as_slice)
    }

    /// Whether the previous result is still valid: the role of the folder and the skill's files
    /// have not changed.
    pub fn is_same(&self, made: &Assembly, document: &Arc<Document>) -> bool {
        let has_files = |entry: &Entry| {
            !self.folders.is_empty() && document.is_skill_file() && entry.kind == Kind::Skill
        };
        let files = |entry: &Arc<Entry>| !has_files(entry) || entry.files == self.files(document);
        made.folder.as_ref() == self.folders.of(document) && made.entry.as_ref().is_none_or(files)
    }

    pub fn make(&mut self, document: &'a Arc<Document>) -> Assembly {
        let mut notes = document.diagnostics.clone();
        // Without readable fields there is no entry; the document's diagnostics say why.
        let entry = match document.fields() {
            None => None,
            Some(fields) if self.source.kind == SourceKind::Stored => {
                self.record(document, fields, &mut notes)
            }
            Some(fields) if self.source.kind.has_pages() => {
                self.of_code(document, fields, &mut notes)
            }
            Some(fields) if document.is_skill_file() => {
                self.skill_file(document, fields, &mut notes)
            }
            Some(fields) => self.other_file(document, fields, &mut notes),
        };
        let entry = entry.map(Arc::new);
        if let Some(entry) = &entry {
            self.check_text(entry, &mut notes);
            if entry.kind == Kind::Command {
                command::check(entry, &mut notes);
            }
        }
        // An entry that no glob selects is still built: `explain` must be able to say why it is
        // missing.
        let is_selected = entry.as_ref().is_some_and(|entry| self.selects(entry, &mut notes));
        let tenant = document.of_record().map_or(&self.source.tenant, |record| &record.tenant);
        let finding = |diagnostic: Diagnostic| {
            let diagnostic = document.locate(diagnostic);
            let (about, tenant) = (entry.iter().cloned().collect(), tenant.clone());
            Arc::new(Finding { diagnostic, about, tenant })
        };
        let findings = notes.into_iter().map(finding).collect();
        let folder = self.folders.of(document).cloned();
        Assembly {
            document: document.clone(),
            folder,
            entry,
            is_selected,
            index: self.index.take(),
            findings,
        }
    }

    /// Reports a page without a text, unless its command has a handler and declares its flags. It
    /// is an error if there is nothing else that could be of use: no handler, no file of the skill
    /// and no entry that it requires. A description alone is still found, so the entry stays.
    fn check_text(&self, entry: &Entry, notes: &mut Notes) {
        let fields = entry.fields();
        let runs = entry.handler().is_some();
        // The author of a server's page cannot change it here.
        let exempt = entry.kind == Kind::Note || self.source.kind == SourceKind::Remote;
        if exempt || !entry.document.is_blank() || runs && fields.flags.is_some() {
            return;
        }
        let severity = match runs || !entry.files.is_empty() || !fields.requires.is_empty() {
            true => Severity::Warning,
            false => Severity::Error,
        };
        let message = "expected text after the frontmatter, got none";
        let hint = "write the instructions below the frontmatter";
        notes.push(Diagnostic::new(Code::BodyMissing, severity, message).hint(hint));
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
                "{} matches globs of both `available` and `inline` of the source {}; `inline` wins",
                name(),
                source()
            );
            let hint = "let only one of them match it";
            notes.push(Diagnostic::new(Code::InlineWins, Severity::Warning, message).hint(hint));
        }
        let fields = entry.fields();
        // A source of low trust may hold files from strangers. Their text can be read, but must not
        // run code or start on a schedule.
        let lost = [
            ("handler", fields.handler.is_some() && entry.handler().is_none()),
            ("schedule", fields.schedule.is_some() && entry.schedule().is_none()),
        ];
        let (who, hint) = match fields.low_trust && self.source.trust > Trust::Low {
            true => ("the page".to_owned(), "remove the field `trust` when you have reviewed it"),
            false => (
                format!("the source {}", source()),
                "raise the source's trust if you control its texts",
            ),
        };
        for (field, _) in lost.iter().filter(|(_, lost)| *lost) {
            let message = format!("{who} has low trust, so the field `{field}` is not used");
            let diagnostic =
                Diagnostic::new(Code::UntrustedField, Severity::Warning, message).hint(hint);
            notes.push(entry.document.at_field(field, diagnostic));
        }
        true
    }

    /// Every record is an entry, and none is a command: text from the store can neither run nor
    /// replace a command of a file.
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
                "the name {} has the form of a command's, and a record cannot be a command; it \
                 is not used",
                quote(name)
            );
            let hint = "give it a name without a dot";
            notes.push(Diagnostic::new(Code::NameReserved, Severity::Error, message).hint(hint));
            return None;
        }
        let stored = document.of_record()?;
        if stored.kind == Kind::Skill && fields.description.is_none() {
            let message =
                "expected a description of the skill, got none; a model needs it to choose the \
                 skill";
            notes.push(Diagnostic::new(Code::DescriptionMissing, Severity::Warning, message));
        }
        let entry = match stored.kind {
            Kind::Note => self.note(document, fields),
            kind => self.entry(document, fields, name, kind),
        };
        // A record's trust is that of its author, which may be lower than that of the store.
        Some(Entry { trust: stored.trust.min(entry.trust), ..entry })
    }

    /// A page of code has no file, so its name cannot come from one.
    fn of_code(
        &self,
        document: &Arc<Document>,
        fields: &Fields,
        notes: &mut Notes,
    ) -> Option<Entry> {
        described(fields, notes)?;
        let Some(name) = &fields.name else {
            let message = "expected a name, got none; the page is not used";
            notes.push(Diagnostic::new(Code::NameMissing, Severity::Error, message));
            return None;
        };
        self.named(document, fields, name, notes)
    }

    fn skill_file(
        &mut self,
        document: &'a Arc<Document>,
        fields: &Fields,
        notes: &mut Notes,
    ) -> Option<Entry> {
        match self.folders.own(document) {
            Some(Role::Domain(domain)) => {
                let domain = domain.to_string();
                self.index(document, domain, fields, notes);
                None
            }
            Some(Role::Both(domain)) => {
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
        let index = DomainIndex {
            domain,
            labels: self.labels(fields),
            source: self.source.clone(),
            document: document.clone(),
        };
        self.index = Some(Arc::new(index));
    }

    fn skill(&self, document: &Arc<Document>, fields: &Fields, notes: &mut Notes) -> Option<Entry> {
        described(fields, notes)?;
        let files = self.files(document).to_vec();
        if let Some(command) = &fields.exported {
            return self
                .named(document, fields, command, notes)
                .map(|entry| Entry { files, ..entry });
        }
        let folder = folder_name(self.source, document);
        let name = match &fields.name {
            Some(name) => {
                if name != folder && !agrees(name, folder) {
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
        Some(Entry { files, ..self.entry(document, fields, name, Kind::Skill) })
    }

    fn other_file(
        &self,
        document: &'a Arc<Document>,
        fields: &Fields,
        notes: &mut Notes,
    ) -> Option<Entry> {
        // The closest `SKILL.md` upwards decides the possible kinds of this file.
        let domain = match self.folders.nearest(document.folder()).1 {
            Some(Role::Skill) => return None,
            Some(Role::Both(domain)) => {
                // Only pages with a command's name leave the skill; all other files are its
                // resources.
                let is_command =
                    fields.name.as_deref().is_some_and(|name| command_name(name).is_some());
                if !is_command {
                    return None;
                }
                Some(&**domain)
            }
            Some(Role::Domain(domain)) => Some(&**domain),
            Some(Role::Unknown) | None => None,
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

    /// A command, or a skill in a single file.
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
                // The name wins, with a warning.
                let place = format!("{own}/{action}.md");
                // The folders of the domains may be nested in others, if the source is a whole
                // project.
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
            None if name != stem && !agrees(name, stem) => {
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
        // A name without a dot is a skill's.
        let Some((domain, action)) = command_name(name) else {
            self.check_name(document, name, Kind::Skill, notes);
            return Some(self.entry(document, fields, name, Kind::Skill));
        };
        if RESERVED.contains(&action) {
            let message = format!(
                "the name {} cannot be used: the action `{action}` is reserved for get_skill",
                quote(name)
            );
            notes.push(
                Diagnostic::new(Code::NameReserved, Severity::Error, message)
                    .hint("give it another action"),
            );
            return None;
        }
        self.check_name(document, name, Kind::Command, notes);
        // In other entries the field belongs to another program.
        notes.extend(fields.flags.iter().flat_map(|flags| flags.diagnostics.iter().cloned()));
        let entry = self.entry(document, fields, name, Kind::Command);
        Some(Entry { domain: Some(domain.to_owned()), ..entry })
    }

    /// The name in a page of a server is made by its client, and its author cannot change it.
    fn check_name(&self, document: &Document, name: &str, kind: Kind, notes: &mut Notes) {
        if self.source.kind != SourceKind::Remote {
            check_name(document, name, kind, notes);
        }
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
            trust: fields.trust(self.source.trust),
            document: document.clone(),
            // Without a selection the entry is put into `unselected` later.
            selection: self.source.selects(name).unwrap_or(Selection::Available),
            files: Vec::new(),
            digest: Default::default(),
            embedded: Default::default(),
            kept: Default::default(),
        }
    }

    fn labels(&self, fields: &Fields) -> Vec<String> {
        // Labels add up, so that a source can restrict everything in it and a document cannot lift
        // that.
        let mut labels = [self.source.labels.as_slice(), fields.labels.as_slice()].concat();
        labels.sort();
        labels.dedup();
        labels
    }
}

/// Returns `None` and adds a diagnostic if there is no description. Without one nobody, and no
/// model, could know when to use the entry.
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

fn not_a_skill(message: &str) -> Diagnostic {
    Diagnostic::new(Code::NotASkill, Severity::Info, message)
}
