//! The commands that read a book: `list`, `get`, `search`, `explain` and `prompt`.

use std::path::Path;

use skillbook_core::explain::explain;
use skillbook_core::hidden::reveal;
use skillbook_core::prompt::{self, Format, Limit, Section};
use skillbook_core::report::entries::{list, Filter};
use skillbook_core::report::findings::loading;
use skillbook_core::report::hits::hits;
use skillbook_core::report::{problems, safe};
use skillbook_core::source::Kind;
use skillbook_core::tenant::Tenant;
use skillbook_core::view::help::Help;
use skillbook_core::view::search::Query;
use skillbook_core::view::{Profile, View};
use skillbook_files::resource;

use crate::arguments::Options;
use crate::book::{self, expand, Book, Origin};
use crate::output::{complain, note, printed, put, terminal, usage_error};
use crate::Ended;

/// How many entries near to the messages are looked for.
const MAX_NEAREST: usize = 100;
/// How many of the user's last messages say what a conversation is about, and the characters of
/// each that count.
const MAX_INPUTS: usize = 4;
const MAX_INPUT: usize = 2_000;
/// How many names an ambiguous spelling is said to mean, and how many of its characters are shown.
const MAX_CANDIDATES: usize = 20;
const MAX_SHOWN: usize = 100;

type Status = Result<u8, Ended>;

fn book(options: &Options, standalone: bool) -> Result<Book, Ended> {
    let mut origins = book::builtins(options);
    origins.extend(book::folders(options, &[]));
    load(options, &origins, standalone)
}

/// The book of these sources, if the profile of the line is one.
pub fn load(options: &Options, origins: &[Origin], standalone: bool) -> Result<Book, Ended> {
    let wrong = |expected: &str, option: &str, got: &str| {
        let message =
            format!("expected {expected} as the option :{option} of a profile, got: {got}");
        Err(Ended::Start(message))
    };
    if options.get("profile") == Some("") {
        return wrong("text", "id", "\"\"");
    }
    let grants = options.all("grant").collect::<Vec<_>>();
    if grants.contains(&"") {
        let grants: Vec<String> = grants.into_iter().map(quoted).collect();
        return wrong(":all or a list of texts", "grants", &format!("[{}]", grants.join(", ")));
    }
    Book::load(origins, standalone).map_err(Ended::handler)
}

/// The view of the profile. The problems of loading are for `list` and `lint`.
pub fn view(options: &Options, standalone: bool) -> Result<View, Ended> {
    Ok(book(options, standalone)?.view(&book::profile(options)))
}

pub fn run_list(options: &Options, standalone: bool) -> Status {
    let (sources, domains) = (options.texts("source"), options.texts("domain"));
    let json = options.is_json();
    if options.is_on("diagnostics", false) {
        let is_page = ["limit", "after"].iter().any(|name| options.get(name).is_some());
        if is_page || !(sources.is_empty() && domains.is_empty() && options.args.is_empty()) {
            let message = "--diagnostics takes no words or filters";
            return Ok(usage_error(message, "list --help"));
        }
        let view = book(options, standalone)?.view(&Profile::unrestricted());
        let found: Vec<_> = view.diagnostics().cloned().collect();
        return Ok(printed(&loading(&found, json))?);
    }
    let book = book(options, standalone)?;
    let diagnostics =
        book.view(&Profile::unrestricted()).diagnostics().cloned().collect::<Vec<_>>();
    if let Some(text) = problems(&diagnostics) {
        note(text.trim_end());
    }
    let (limit, after) = (options.number("limit"), options.get("after"));
    let filter =
        Filter { words: &options.args, sources: &sources, domains: &domains, after, limit };
    Ok(printed(&list(&book.view(&book::profile(options)), filter, json, terminal(options)))?)
}

pub fn run_get(options: &Options, standalone: bool) -> Status {
    if let Some(other) = options.args.get(1) {
        let message = format!("`get` takes one path, got also: {other}");
        return Ok(usage_error(&message, "get --help"));
    }
    let path = options.args.first().map_or("", String::as_str);
    let view = view(options, standalone)?;
    let found = help(&view, path).ok_or(()).or_else(|()| match &view.spelled(path)[..] {
        [] => Err(unknown(path, &view.suggest_path(path))),
        [name] => help(&view, name).ok_or_else(|| unknown(name, &view.suggest_path(name))),
        names => Err(ambiguous(path, names)),
    });
    match found {
        Ok(text) => put(&safe(&text))?,
        Err(message) => {
            complain(&message);
            return Ok(1);
        }
    }
    Ok(0)
}

fn help(view: &View, path: &str) -> Option<String> {
    match view.help(path)? {
        Help::Text(text) => Some(text),
        Help::File { entry, file } => {
            let mut text = resource::read(&view.entry(entry)?.document.path, &file);
            reveal(&mut text, 0);
            Some(text)
        }
    }
}

fn unknown(name: &str, suggestions: &[&str]) -> String {
    let offer = match suggestions {
        [] => ".".to_owned(),
        names => format!("; did you mean {}?", either(names)),
    };
    format!("unknown skill {}{offer} To list all skills, write: skillbook get", quoted(name))
}

fn ambiguous(name: &str, names: &[&str]) -> String {
    let names = &names[..names.len().min(MAX_CANDIDATES)];
    format!("{} can mean {}. Write one of these names", quoted(name), either(names))
}

fn either(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [name] => (*name).to_owned(),
        [others @ .., last] => format!("{} or {last}", others.join(", ")),
    }
}

/// The start of a text in quotes.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars().take(MAX_SHOWN) {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\n' => out += "\\n",
            '\t' => out += "\\t",
            '\r' => out += "\\r",
            character => out.push(character),
        }
    }
    out.replace("#{", "\\#{") + "\""
}

pub fn run_search(options: &Options, standalone: bool) -> Status {
    if options.args.iter().all(|word| word.trim().is_empty()) {
        return Ok(usage_error("`search` expects words to search for", "search --help"));
    }
    let view = view(options, standalone)?;
    let (text, tags) = (options.args.join(" "), options.texts("tag"));
    let kinds = [Kind::Command, Kind::Skill, Kind::Note];
    let query = Query {
        limit: options.number("limit").unwrap_or(10),
        kind: options
            .get("kind")
            .and_then(|name| kinds.into_iter().find(|one| one.as_str() == name)),
        tags: &tags,
        ..Query::new(&text)
    };
    let found = view.search(&query);
    let json = options.is_json();
    Ok(printed(&hits(&view, &text, &found, json, terminal(options)))?)
}

pub fn run_explain(options: &Options, standalone: bool) -> Status {
    let name = match &options.args[..] {
        [name] if !name.is_empty() => name,
        [_, other, ..] => {
            let message = format!("`explain` takes one name, got also: {other}");
            return Ok(usage_error(&message, "explain --help"));
        }
        _ => return Ok(usage_error("`explain` expects a name or a path", "explain --help")),
    };
    if let Some(status) = contradiction(options, "explain") {
        return Ok(status);
    }
    let view = view(options, standalone)?;
    // An existing path with a slash is a path; anything else is a name.
    let name = match name.contains('/') && Path::new(name).exists() {
        true => expand(name),
        false => name.clone(),
    };
    let explanation = explain(&view, &Tenant::All, &name, &prompt_options(options, &view));
    put(&safe(&explanation.text(&name, &view.profile().id)))?;
    Ok(explanation.files.is_empty().into())
}

pub fn run_prompt(options: &Options, standalone: bool) -> Status {
    if let Some(arg) = options.args.first() {
        let message = format!("`prompt` takes no argument, got: {arg}");
        return Ok(usage_error(&message, "prompt --help"));
    }
    if let Some(status) = contradiction(options, "prompt") {
        return Ok(status);
    }
    let view = view(options, standalone)?;
    put(&safe(&view.prompt_with(&prompt_options(options, &view))))?;
    Ok(0)
}

fn contradiction(options: &Options, command: &str) -> Option<u8> {
    let both = options.get("format").is_some() && options.get("section").is_some();
    both.then(|| {
        usage_error("--section and --format exclude each other", &format!("{command} --help"))
    })
}

fn prompt_options(options: &Options, view: &View) -> prompt::Options {
    let format = options.get("format").unwrap_or("default");
    let format = Format::ALL.into_iter().find(|one| one.as_str() == format).unwrap_or_default();
    let mut made = prompt::Options::of(format);
    let wanted = |section: &Section| options.all("section").any(|name| name == section.as_str());
    if options.get("section").is_some() {
        made.sections = Section::ALL.into_iter().filter(wanted).collect();
    }
    let limit = Limit { chars: options.number("max-chars"), tokens: options.number("max-tokens") };
    made.limit = limit;
    let topic = topic(&options.all("message").collect::<Vec<_>>());
    // Messages only count for a prompt that has to be cut.
    if limit != Limit::default() && !topic.is_empty() {
        let whole = prompt::Options { limit: Limit::default(), ..made.clone() };
        if view.prompt_with(&whole) != view.prompt_with(&made) {
            let query = Query { limit: MAX_NEAREST, ..Query::new(&topic) };
            let names =
                view.candidates(&query).into_iter().filter_map(|found| view.entry(found.id));
            made.nearest = names.map(|entry| entry.name.to_string()).collect();
        }
    }
    made
}

/// The last messages of the user. The newest comes first, since a search may ignore the end of a
/// long text.
fn topic(messages: &[&str]) -> String {
    let inputs = messages.iter().rev().take(MAX_INPUTS);
    let inputs = inputs.map(|text| text.chars().take(MAX_INPUT).collect::<String>());
    inputs.collect::<Vec<_>>().join("\n").trim().to_owned()
}
