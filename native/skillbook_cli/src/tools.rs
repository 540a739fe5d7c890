//! `skillbook tools`.

use skillbook_core::report;
use skillbook_core::tool::{Offer, Shape, MOST_TOOLS};

use crate::arguments::Options;
use crate::output::{put, usage_error};
use crate::read::view;
use crate::Ended;

pub fn run(options: &Options, standalone: bool) -> Result<u8, Ended> {
    if let Some(arg) = options.args.first() {
        let message = format!("`tools` takes no argument, got: {arg}");
        return Ok(usage_error(&message, "tools --help"));
    }
    let view = view(options, standalone)?;
    let globs = options.get("names").map(|_| options.texts("names"));
    let names = match view.tool_names(globs.as_deref()) {
        Ok(names) => names,
        Err(bad) => {
            let message = format!("--names expects globs ({}), got: {}", bad.message, bad.glob);
            return Ok(usage_error(&message, "tools --help"));
        }
    };
    let all: Vec<&str> = names.iter().map(|name| &**name).collect();
    // `get_skill` is one of them.
    let limit = options.number("limit").unwrap_or(MOST_TOOLS) - 1;
    let stay = view.nearest_tools(all, &[], limit);
    let left_out = names.len() - stay.len();
    let shape = options.get("shape").unwrap_or_default();
    let shape = Shape::ALL.into_iter().find(|one| one.as_str() == shape).unwrap_or_default();
    let tools = view.offered(&stay, Offer { left_out, ..Offer::default() });
    put(&report::json(tools.iter().map(|tool| shape.of(tool)).collect()))?;
    Ok(0)
}
