//! The parts of a prompt, and which of them belong together.

/// The parts of a prompt, in the order in which they stand in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// How commands are written.
    Rules,
    /// The domains with their descriptions.
    Domains,
    /// All commands with their descriptions.
    Commands,
    /// The skills that belong to no domain, with their descriptions.
    Skills,
    /// The skills with their descriptions and tags.
    SkillList,
    /// The skills with the places of their files, as XML.
    AvailableSkills,
    /// The usage lines of commands.
    QuickReference,
    /// What sources select inline, whole, as XML.
    InlineSkills,
    /// The notes, whole, under their titles.
    Notes,
    /// The notes, whole, as a list.
    NotesList,
    /// The skills, their names in bold.
    SkillCatalog,
    /// The entries that the options name, whole.
    PreloadedSkills,
    /// The names and titles of what can be read but is not in the prompt.
    Other,
    /// The titles of the notes and skills that can be read but are not in the prompt, on one line.
    OtherNotes,
}

impl Section {
    /// All of them.
    pub const ALL: [Section; 14] = [
        Section::Rules,
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

    /// The name in options.
    pub fn as_str(self) -> &'static str {
        match self {
            Section::Rules => "rules",
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

/// Sections that make a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Commands, skills and notes, with the rules of the command language.
    #[default]
    Default,
    /// Skills with the places of their files, for models that read files.
    Xml,
    /// Notes and skills.
    Notes,
    /// Skills, a line each.
    List,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 4] = [Format::Default, Format::Xml, Format::Notes, Format::List];

    /// The name in options.
    pub fn as_str(self) -> &'static str {
        match self {
            Format::Default => "default",
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
