use super::*;
use crate::catalog::assemble::assemble;
use crate::catalog::Catalog;
use crate::page::document::Document;
use crate::source::Source;
use crate::view::{CachedCatalog, Profile};

fn view(pages: &[(&str, &str)]) -> View {
    let source = Arc::new(Source { root: "/s".into(), ..Source::default() });
    let document =
        |(path, text): &(&str, &str)| Arc::new(Document::parse("/s", path, text.as_bytes()));
    let assembled = assemble(&source, pages.iter().map(document).collect(), vec![]);
    let catalog = Catalog::build(1, vec![assembled]);
    View::new(Arc::new(CachedCatalog::new(catalog)), &Profile::unrestricted()).unwrap()
}

fn page(name: &str, more: &str) -> String {
    format!("---\nname: {name}\ndescription: Does it\n{more}---\n")
}

fn tool(schema: Json) -> Tool {
    let Json::Object(schema) = schema else { panic!("an object") };
    let (name, description) = ("x".to_owned(), "X".to_owned());
    let (title, renamed, reads, entry) = (None, Vec::new(), false, None);
    Tool { name, title, description, schema, renamed, reads, entry }
}

#[test]
fn names_lead_back_to_their_entries() {
    let own = "tool: write_note\naliases: [write_note]\n";
    let pages = [
        page("mail.send", ""),
        page("a_.b", ""),
        page("a._b", ""),
        page("9 lives", ""),
        page("x.make", own),
        // Not an alias, so it is not used.
        page("x.other", "tool: other_note\n"),
    ];
    let paths = ["1.md", "2.md", "3.md", "4.md", "5.md", "6.md"];
    let pages: Vec<_> = paths.into_iter().zip(pages.iter().map(String::as_str)).collect();
    let view = view(&pages);
    let found: Vec<_> =
        view.entries().map(|(_, entry)| (entry.name.to_string(), view.tool_name(entry))).collect();
    assert_eq!(found.len(), paths.len());
    for (name, tool) in &found {
        assert!(tool.len() <= 64 && !tool.contains('.'), "{tool}");
        let entry = view.find(&view.tool_entry(tool)).and_then(|id| view.entry(id)).unwrap();
        assert_eq!(&*entry.name, name);
    }
    let named = |name: &str| found.iter().find(|(own, _)| own == name).unwrap().1.clone();
    assert_eq!((named("x.make"), named("x.other")), ("write_note".into(), "x__other".into()));
    assert_eq!(view.tool_entry("unheard_of"), "unheard_of");
    assert_eq!(view.tool_entry("nobody-0123456789abcdef"), "nobody-0123456789abcdef");
}

#[test]
fn too_many_tools_are_cut() {
    let pages = ["a", "b", "c", "d"].map(|name| page(name, "proactive_for_profile_ids: [none]\n"));
    let paths = ["a.md", "b.md", "c.md", "d.md"];
    let pages: Vec<_> = paths.into_iter().zip(pages.iter().map(String::as_str)).collect();
    let view = view(&pages);
    let all = view.tool_names(None).unwrap();
    let near = |near: &str, limit| {
        let near: Vec<String> = near.split_whitespace().map(str::to_owned).collect();
        view.nearest_tools(all.iter().map(|name| &**name).collect(), &near, limit).join(" ")
    };
    for (wanted, limit, expected) in
        [("", 4, "a b c d"), ("", 2, "a b"), ("d", 2, "a d"), ("d gone c", 2, "c d"), ("d", 0, "")]
    {
        assert_eq!(near(wanted, limit), expected, "{wanted} {limit}");
    }
    let globs = |globs: &[&str]| {
        let globs: Vec<String> = globs.iter().map(|&glob| glob.to_owned()).collect();
        view.tool_names(Some(&globs)).map(|names| names.join(" ")).map_err(|bad| bad.glob)
    };
    assert_eq!(globs(&["[bd]"]), Ok("b d".to_owned()));
    assert_eq!(globs(&["a", "["]), Err("[".to_owned()));
    let offer = Offer { left_out: 2, run_command: true, delegates: false };
    let tools = view.offered(&["a", "gone", "b"], offer);
    let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["get_skill", "run_command", "a", "b"]);
    assert!(tools[0].description.ends_with(" 2 more are no tools for lack of room."));
}

#[test]
fn descriptions_are_cut_before_the_rule_about_delegation() {
    let long = "words ".repeat(300);
    let text = format!("---\nname: a\ndescription: {long}\nhandler: X\n---\n");
    let view = view(&[("a.md", &text)]);
    let of = |delegates| {
        let offer = Offer { delegates, ..Offer::default() };
        view.offered(&["a"], offer)[1].description.clone()
    };
    let (plain, delegated) = (of(false), of(true));
    assert_eq!((plain.chars().count(), delegated.chars().count()), (1024, 1024));
    assert!(plain.ends_with('…'));
    assert!(delegated.ends_with("… It does not run here. Tell the user what needs to be done."));
}

#[test]
fn a_schema_of_strangers_is_bounded() {
    let parts: Vec<Json> = (0..20_000).map(|_| json!({"$ref": "#/properties/a"})).collect();
    let more: Vec<Json> = (0..20_000).map(|_| json!({"type": "object"})).collect();
    let schema = json!({
        "type": "object",
        "allOf": parts,
        "properties": {"a": {"anyOf": more, "properties": {"b": true}}},
    });
    let definition = Shape::Anthropic.of(&tool(schema));
    let properties = &definition["input_schema"]["properties"];
    assert_eq!((&properties["b"], properties["a"].is_object()), (&json!({}), true));
}

#[test]
fn odd_schemas_have_a_definition_in_each_shape() {
    let rows = [
        json!({"type": "object", "properties": {"a": true, "b": false, "c": {"items": true}}}),
        json!({"type": "object", "properties": {"a": {"enum": [1, null, {"b": 2}], "type": []}}}),
        json!({"type": "object", "properties": {"a": {"anyOf": [true, 7], "default": [2, "x"]}}}),
        json!({"type": "object", "properties": {"a": {"type": ["null"], "minimum": "x"}}}),
        json!({"type": "object", "properties": {"a": {"format": 7, "pattern": {}, "enum": "x"}}}),
        json!({"type": "object", "properties": [], "required": "a", "allOf": 7, "anyOf": [null]}),
    ];
    for schema in rows {
        for shape in Shape::ALL {
            let definition = shape.of(&tool(schema.clone()));
            let named = definition.get("function").unwrap_or(&definition);
            assert_eq!(named["name"], "x", "{} {schema}", shape.as_str());
        }
    }
}
