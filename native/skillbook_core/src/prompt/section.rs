//! The sections of a prompt, and the formats that combine them.
//!
//! # Adding a section
//!
//! 1. Add a variant to [`Section`], at its place in `ALL` and in the formats that have it.
//! 2. Write its text piece by piece into the `Plan` (`plan.rs`), so that it can be truncated and
//!    each entry in it be found.
//! 3. Add its name to `Skillbook.Prompt` and a row to `docs/prompt.md`, and pin its exact text in
//!    `tests/prompt.rs`.

/// The sections of a prompt, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// The rules for commands.
    Rules,
    /// The rules for tools, for a model that calls commands as tools.
    ToolRules,
    /// The domains with their descriptions.
    Domains,
    /// All commands with their descriptions.
    Commands,
    /// The skills without a domain, with their descriptions.
    Skills,
    /// The skills with their descriptions and tags.
    SkillList,
    /// The skills with the paths of their files, as XML.
    AvailableSkills,
    /// The usage lines of commands.
    QuickReference,
    /// The entries that sources select as inline, in full, as XML.
    InlineSkills,
    /// The notes in full, under their titles.
    Notes,
    /// The notes in full, as a list.
    NotesList,
    /// The skills, with their names in bold.
    SkillCatalog,
    /// The entries named in the options, in full.
    PreloadedSkills,
    /// The names and titles of entries that can be read but are not in the prompt.
    Other,
    /// The titles of notes and skills that can be read but are not in the prompt, on one line.
    OtherNotes,
}

impl Section {
    /// All sections.
    pub const ALL: [Section; 15] = [
        Section::Rules,
        Section::ToolRules,
        Section::Domains,
        Section::Commands,
        Section::Skills,
        Section::SkillList,
        Section::AvailableSkills,
        Section::QuickReference,
        Section::InlineSkills,
        Section::Notes,
        Section::NotesList,
        Section::SkillCatalog,
        Section::PreloadedSkills,
        Section::Other,
        Section::OtherNotes,
    ];

    /// Whether its pieces are the whole texts of entries.
    pub(super) fn has_whole_texts(self) -> bool {
        let whole = [Section::InlineSkills, Section::Notes, Section::NotesList];
        self == Section::PreloadedSkills || whole.contains(&self)
    }

    /// The name in options.
    pub fn as_str(self) -> &'static str {
        match self {
            Section::Rules => "rules",
            Section::ToolRules => "tool_rules",
            Section::Domains => "domains",
            Section::Commands => "commands",
            Section::Skills => "skills",
            Section::SkillList => "skill_list",
            Section::AvailableSkills => "available_skills",
            Section::QuickReference => "quick_reference",
            Section::InlineSkills => "inline_skills",
            Section::Notes => "notes",
            Section::NotesList => "notes_list",
            Section::SkillCatalog => "skill_catalog",
            Section::PreloadedSkills => "preloaded_skills",
            Section::Other => "other",
            Section::OtherNotes => "other_notes",
        }
    }
}

/// A combination of sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Commands, skills and notes, with the rules of the command language.
    #[default]
    Default,
    /// The same with the rules for tools, and without usage lines.
    Tools,
    /// Skills with the paths of their files, for models that read files.
    Xml,
    /// Notes and skills.
    Notes,
    /// Skills, one per line.
    List,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 5] =
        [Format::Default, Format::Tools, Format::Xml, Format::Notes, Format::List];

    /// The name in options.
    pub fn as_str(self) -> &'static str {
        match self {
            Format::Default => "default",
            Format::Tools => "tools",
            Format::Xml => "xml",
            Format::Notes => "notes",
            Format::List => "list",
        }
    }

    /// Its sections.
    pub fn sections(self) -> &'static [Section] {
        match self {
            Format::Default => &[
                Section::Rules,
                Section::Domains,
                Section::Skills,
                Section::QuickReference,
                Section::InlineSkills,
                Section::Notes,
                Section::PreloadedSkills,
                Section::Other,
            ],
            Format::Tools => &[
                Section::ToolRules,
                Section::Domains,
                Section::Skills,
                Section::InlineSkills,
                Section::Notes,
                Section::PreloadedSkills,
                Section::Other,
            ],
            Format::Xml => {
                &[Section::AvailableSkills, Section::InlineSkills, Section::PreloadedSkills]
            }
            Format::Notes => &[
                Section::InlineSkills,
                Section::NotesList,
                Section::SkillCatalog,
                Section::PreloadedSkills,
                Section::OtherNotes,
            ],
            Format::List => &[Section::SkillList, Section::InlineSkills, Section::PreloadedSkills],
        }
    }
}
