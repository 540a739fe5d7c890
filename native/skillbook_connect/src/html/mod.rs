//! Web pages and HTML mails as text, and Markdown as HTML.
//!
//! [`text`] shows what a reader would see. It is parsed as browsers do, with html5ever, into an
//! arena; nothing here recurses.

mod dom;
pub mod markdown;
mod render;
mod style;
#[cfg(test)]
mod tests;

/// The text of HTML, and the number of its visible characters that a reader would not see: in
/// hidden elements, in comments, or characters without width. Blanks, styles and scripts do not
/// count. `cut` is whether the end is missing, because it has more than `MAX_NODES` elements and
/// texts, or more than `MAX_TEXT` bytes of text.
#[derive(Debug, PartialEq)]
#[cfg_attr(feature = "nif", derive(rustler::NifMap))]
pub struct Text {
    pub text: String,
    pub hidden: usize,
    pub cut: bool,
}

/// The most elements and texts that are read, and the most bytes of the result.
pub const MAX_NODES: usize = 400_000;
pub const MAX_TEXT: usize = 8 << 20;
/// The deepest nesting. Elements below are read as siblings, as browsers do.
pub const MAX_DEPTH: usize = 512;

/// Text that a reader of HTML would see, in lines.
///
/// Links are followed by their address in parentheses, once each. Cells of tables are divided by
/// ` | `. Quotes begin with `> `, items of lists with `- ` or a number. Images are shown by their
/// alternative text.
pub fn text(html: &str) -> Text {
    let dom = dom::parse(html);
    render::render(&dom)
}
