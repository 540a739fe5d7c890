use crate::html::Text;

/// The text of HTML as a reader sees it.
#[rustler::nif(schedule = "DirtyCpu")]
fn html_text(html: &str) -> Text {
    crate::html::text(html)
}

/// HTML of a text in Markdown.
#[rustler::nif(schedule = "DirtyCpu")]
fn markdown_html(markdown: &str) -> String {
    crate::html::markdown::html(markdown)
}
