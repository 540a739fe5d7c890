//! `Skillbook.Tools`: commands and skills as tools of models.

use std::collections::HashMap;

use rustler::{Encoder, Env, Error, NifMap, NifResult, ResourceArc, Term};
use skillbook_bridge::twin;
use skillbook_core::tool::{self, Offer, Shape, Tool};

use crate::encode;
use crate::json::read_object;
use crate::view::ViewResource;

mod atoms {
    rustler::atoms! { ok, error, nil }
}

/// How deep the schema of a tool may nest: as deep as those of pages, inside of the tool's.
const DEEPEST: usize = 128;

/// The fields of a `%Skillbook.Tool{}`.
#[derive(NifMap)]
struct ToolTerm<'a> {
    name: String,
    title: Option<String>,
    description: String,
    schema: Term<'a>,
    renamed: HashMap<String, String>,
    reads: bool,
    entry: Option<String>,
}

/// The names of the commands and skills that may be tools, `{:ok, names}`, or
/// `{:error, {glob, reason}}`.
#[rustler::nif(schedule = "DirtyCpu")]
fn tools_names(
    env: Env<'_>,
    view: ResourceArc<ViewResource>,
    globs: Option<Vec<String>>,
) -> Term<'_> {
    match view.core().tool_names(globs.as_deref()) {
        Ok(names) => {
            let names: Vec<&str> = names.iter().map(|name| &**name).collect();
            (atoms::ok(), names).encode(env)
        }
        Err(bad) => (atoms::error(), (bad.glob, bad.message)).encode(env),
    }
}

/// At most `limit` of these names.
#[rustler::nif(schedule = "DirtyCpu")]
fn tools_nearest(
    view: ResourceArc<ViewResource>,
    names: Vec<&str>,
    near: Vec<String>,
    limit: usize,
) -> Vec<&str> {
    view.core().nearest_tools(names, &near, limit)
}

/// The tools of these entries, as maps, or their definitions in a shape.
#[rustler::nif(schedule = "DirtyCpu")]
fn tools_offered<'a>(
    env: Env<'a>,
    view: ResourceArc<ViewResource>,
    names: Vec<&str>,
    left_out: usize,
    run_command: bool,
    delegates: bool,
    shape: Term<'a>,
) -> NifResult<Vec<Term<'a>>> {
    let shape = if atoms::nil() == shape { None } else { Some(read_shape(shape)?) };
    let term = |tool: Tool| {
        let map = ToolTerm {
            name: tool.name,
            title: tool.title,
            description: tool.description,
            schema: encode::json(env, &tool.schema.into())?,
            renamed: tool.renamed.into_iter().collect(),
            reads: tool.reads,
            entry: tool.entry,
        };
        Ok(map.encode(env))
    };
    let offer = Offer { left_out, run_command, delegates };
    let tools = view.core().offered(&names, offer).into_iter();
    match shape {
        Some(shape) => tools.map(|tool| encode::json(env, &shape.of(&tool))).collect(),
        None => tools.map(term).collect(),
    }
}

fn read_shape(shape: Term) -> NifResult<Shape> {
    let shape = shape.atom_to_string()?;
    Shape::ALL.into_iter().find(|one| one.as_str() == shape).ok_or(Error::BadArg)
}

/// The definitions of tools in the format of a vendor.
#[rustler::nif(schedule = "DirtyCpu")]
fn tools_shaped<'a>(
    env: Env<'a>,
    tools: Vec<ToolTerm<'a>>,
    shape: Term<'a>,
) -> NifResult<Vec<Term<'a>>> {
    let shape = read_shape(shape)?;
    let definition = |tool: ToolTerm<'a>| {
        let tool = Tool {
            name: tool.name,
            title: tool.title,
            description: tool.description,
            schema: read_object(tool.schema, DEEPEST).ok_or(Error::BadArg)?,
            renamed: tool.renamed.into_iter().collect(),
            reads: tool.reads,
            entry: tool.entry,
        };
        encode::json(env, &shape.of(&tool))
    };
    tools.into_iter().map(definition).collect()
}

/// The name of the tool of an entry.
#[rustler::nif]
fn tool_name(view: ResourceArc<ViewResource>, name: &str) -> String {
    let view = view.core();
    match view.find_named(name).and_then(|id| view.entry(id)) {
        Some(entry) => view.tool_name(entry),
        None => tool::from(name),
    }
}

#[rustler::nif(schedule = "DirtyCpu")]
fn tool_from(name: &str) -> String {
    tool::from(name)
}

#[rustler::nif]
fn tool_valid(name: &str) -> String {
    tool::valid(name)
}

twin! {
    /// The name of the entry of a tool, or a name for the error.
    "DirtyCpu" fn tool_entry_now | tool_entry_dirty(
        env, view: ResourceArc<ViewResource>, name: &'a str
    )
    if view.is_small() || !tool::is_hashed(name)
    => Ok(view.core().tool_entry(name).encode(env))
}
