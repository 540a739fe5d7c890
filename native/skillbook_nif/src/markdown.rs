//! `Skillbook.Web.Markdown`: documents as HTML.

use skillbook_core::markdown::html;

/// The HTML, and whether it is that of the whole text.
#[rustler::nif(schedule = "DirtyCpu")]
fn markdown_html(text: &str, files: &str) -> (String, bool) {
    html(text, files)
}
