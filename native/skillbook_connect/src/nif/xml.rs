use rustler::{Binary, Encoder, Env, Term};

use super::net::atoms;
use crate::xml;

/// `{:ok, [{depth, name, text, attributes}]}`, or `:error`.
#[rustler::nif(schedule = "DirtyCpu")]
fn xml_elements<'a>(env: Env<'a>, xml: Binary) -> Term<'a> {
    match xml::elements(xml.as_slice()) {
        Some(elements) => {
            let elements: Vec<_> = elements
                .into_iter()
                .map(|one| (one.depth, one.name, one.text, one.attributes).encode(env))
                .collect();
            (atoms::ok(), elements).encode(env)
        }
        None => atoms::error().encode(env),
    }
}
