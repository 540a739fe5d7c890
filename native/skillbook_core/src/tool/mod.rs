//! Commands and skills as tools, for models with native tool calls.
//!
//! ```
//! # use std::sync::Arc;
//! # use skillbook_core::catalog::{assemble::assemble, Catalog};
//! # use skillbook_core::page::document::Document;
//! # use skillbook_core::source::Source;
//! # use skillbook_core::view::{CachedCatalog, Profile, View};
//! use skillbook_core::tool::{Offer, Shape};
//!
//! # let source = Arc::new(Source { root: "/skills".into(), ..Source::default() });
//! # let page = b"---\nname: mail.send\ndescription: Sends it\n---\n## Flags\n\n--to  Whom\n";
//! # let document = Arc::new(Document::parse("/skills", "mail/send.md", page));
//! # let catalog = Catalog::build(1, vec![assemble(&source, vec![document], vec![])]);
//! # let catalog = Arc::new(CachedCatalog::new(catalog));
//! # let view = View::new(catalog, &Profile::unrestricted()).unwrap();
//! let names = view.tool_names(None).unwrap();
//! let tools = view.offered(&names, Offer::default());
//! let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
//! assert_eq!(names, ["get_skill", "mail__send"]);
//! let definition = Shape::Anthropic.of(&tools[1]);
//! assert!(definition["input_schema"]["properties"]["to"].is_object());
//! ```

mod name;
mod schema;
mod shape;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{json, Map, Value as Json};

use crate::catalog::entry::Entry;
use crate::glob::{BadGlob, Globs};
use crate::hidden::visible;
use crate::page::declaration::Declaration;
use crate::source::Kind;
use crate::text::line::push_line;
use crate::view::View;

pub use name::{from, is_hashed, valid};
pub use shape::Shape;

/// The tools that are no entries: one that reads, and one that runs any command.
const GET_SKILL: &str = "get_skill";
const RUN_COMMAND: &str = "run_command";
/// The command that runs others, for a profile that must delegate.
const DISPATCH: &str = "agent.dispatch";
/// OpenAI's limits, the lowest of all vendors.
pub const MOST_TOOLS: usize = 128;
const LONGEST_DESCRIPTION: usize = 1024;

/// A JSON object.
pub type Object = Map<String, Json>;

/// A tool, before it is written in the format of a vendor.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// The name for the model.
    pub name: String,
    /// A title for people.
    pub title: Option<String>,
    /// The text for the model, at most 1,024 characters.
    pub description: String,
    /// The arguments as JSON Schema, draft 2020-12.
    pub schema: Object,
    /// Other names of its properties, for vendors that do not allow their own.
    pub renamed: Vec<(String, String)>,
    /// Whether it only reads.
    pub reads: bool,
    /// The name of its entry; `None` for `get_skill` and `run_command`.
    pub entry: Option<String>,
}

/// How tools are offered.
#[derive(Debug, Clone, Copy, Default)]
pub struct Offer {
    /// How many entries are no tools for lack of room.
    pub left_out: usize,
    /// Whether `run_command` is among them.
    pub run_command: bool,
    /// Whether the profile delegates commands with side effects.
    pub delegates: bool,
}

impl View {
    /// The names of the commands and skills that may be tools, sorted; with globs, of those that
    /// match one.
    pub fn tool_names(&self, globs: Option<&[String]>) -> Result<Vec<Arc<str>>, BadGlob> {
        let globs = globs.map(Globs::new).transpose()?;
        let is_wanted = |entry: &Entry| {
            entry.kind != Kind::Note
                && &*entry.name != GET_SKILL
                && globs.as_ref().is_none_or(|globs| globs.matches(&entry.name))
        };
        let wanted = self.listed().filter(|(_, entry)| is_wanted(entry));
        Ok(wanted.map(|(_, entry)| entry.name.clone()).collect())
    }

    /// At most `limit` of these names, in their order: those that are proactive for the profile,
    /// then `near`, then the first ones.
    pub fn nearest_tools<'a>(
        &self,
        names: Vec<&'a str>,
        near: &[String],
        limit: usize,
    ) -> Vec<&'a str> {
        if names.len() <= limit {
            return names;
        }
        let known: BTreeSet<&str> = names.iter().copied().collect();
        let proactive = self.proactive().filter_map(|id| Some(&*self.entry(id)?.name));
        let first = proactive.chain(near.iter().map(String::as_str));
        let mut stay = BTreeSet::new();
        for name in first.filter(|name| known.contains(name)).chain(names.iter().copied()) {
            if stay.len() == limit {
                break;
            }
            stay.insert(name);
        }
        let kept = names.iter().copied().filter(|name| stay.contains(name));
        kept.collect()
    }

    /// The tools of these entries, after those that are no entries.
    pub fn offered<N: AsRef<str>>(&self, names: &[N], offer: Offer) -> Vec<Tool> {
        let found = names.iter().filter_map(|name| self.entry(self.find(name.as_ref())?));
        let entries: Vec<&Entry> = found.map(|entry| &**entry).collect();
        let dispatch = entries.iter().find(|entry| &*entry.name == DISPATCH);
        let dispatch = dispatch.map(|entry| self.tool_name(entry));
        let mut tools = vec![get_skill(offer.left_out)];
        tools.extend(offer.run_command.then(run_command));
        tools.extend(entries.into_iter().map(|entry| {
            let delegated = match offer.delegates {
                true => delegated(entry, dispatch.as_deref()),
                false => String::new(),
            };
            self.tool(entry, &delegated)
        }));
        tools
    }

    fn tool(&self, entry: &Entry, delegated: &str) -> Tool {
        let declaration = entry.declaration();
        let closed = entry.fields().strict || entry.handler().is_some();
        Tool {
            name: self.tool_name(entry),
            title: entry.title.as_deref().map(|title| visible(title).into_owned()),
            description: visible(&description(entry, declaration, delegated)).into_owned(),
            schema: schema::object(declaration, closed),
            renamed: declaration.map(schema::renamed).unwrap_or_default(),
            reads: entry.reads(),
            entry: Some(entry.name.to_string()),
        }
    }
}

fn get_skill(left_out: usize) -> Tool {
    let mut description = "Read about commands and skills: without a path the list of all, with a \
                           path a domain, the page of a command or the instructions of a skill."
        .to_owned();
    if left_out > 0 {
        description.push_str(&format!(" {left_out} more are no tools for lack of room."));
    }
    let path = "DOMAIN, DOMAIN.ACTION, DOMAIN.all, SKILL or SKILL/FILE";
    own(GET_SKILL, description, "path", path, json!({"additionalProperties": false}), true)
}

fn run_command() -> Tool {
    let description =
        "Run a command that is no tool of its own, written as its page shows: name and flags.";
    let command = "One command, for example: domain.action --title \"Several words\"";
    let more = json!({"required": ["command"], "additionalProperties": false});
    own(RUN_COMMAND, description.to_owned(), "command", command, more, false)
}

/// A tool with one text as its argument.
fn own(
    name: &str,
    description: String,
    argument: &str,
    about: &str,
    more: Json,
    reads: bool,
) -> Tool {
    let text = json!({"type": "string", "description": about});
    let schema = json!({"type": "object", "properties": {argument: text}});
    let schema = [schema, more].into_iter().filter_map(|part| match part {
        Json::Object(members) => Some(members),
        _ => None,
    });
    Tool {
        name: name.to_owned(),
        title: None,
        description,
        schema: schema.flatten().collect(),
        renamed: Vec::new(),
        reads,
        entry: None,
    }
}

fn description(entry: &Entry, declaration: Option<&Declaration>, delegated: &str) -> String {
    let mut text = String::new();
    push_line(&mut text, entry.description());
    // Without declared flags, only the usage line describes the arguments.
    let usage = entry.fields().usage.as_deref().filter(|_| entry.kind == Kind::Command);
    if let (Some(usage), None) = (usage, declaration) {
        push_sentence(&mut text, "Usage: ");
        push_line(&mut text, usage);
    }
    for choice in declaration.map_or(&[][..], |declaration| &declaration.choices) {
        let names: Vec<_> = choice.names.iter().map(|name| schema::property_name(name)).collect();
        let many = if choice.required { "Exactly" } else { "At most" };
        push_sentence(&mut text, &format!("{many} one of {} is given.", names.join(", ")));
    }
    if delegated.is_empty() {
        return truncated(&text, LONGEST_DESCRIPTION);
    }
    let room = LONGEST_DESCRIPTION.saturating_sub(delegated.chars().count() + 1);
    let mut text = truncated(&text, room.max(1));
    push_sentence(&mut text, delegated);
    truncated(&text, LONGEST_DESCRIPTION)
}

/// Tells a profile that delegates how to have a command run. A tool says what the rule about side
/// effects says in the prompt.
fn delegated(entry: &Entry, dispatch: Option<&str>) -> String {
    if &*entry.name == DISPATCH || entry.reads() {
        return String::new();
    }
    match dispatch {
        None => "It does not run here. Tell the user what needs to be done.".to_owned(),
        Some(tool) => {
            let name = Json::from(&*entry.name);
            format!(
                "Only agents may run it. Call {tool} with {{\"mission\": \"WHAT TO DO\", \
                 \"skills\": [{name}]}}."
            )
        }
    }
}

fn push_sentence(text: &mut String, sentence: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(sentence);
}

fn truncated(text: &str, most: usize) -> String {
    match text.chars().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests;
