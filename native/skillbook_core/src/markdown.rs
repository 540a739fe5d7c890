//! Markdown of strangers as HTML with a fixed set of tags, for pages that people look at.
//!
//! The writer emits only the tags and attributes of [`TAGS`], each closed where it belongs, so its
//! output needs no sanitiser. HTML in the text is shown as it is written, and so are hidden
//! characters, by their codes. `html` of pulldown-cmark passes both on, and has no limit of its
//! output.

use std::fmt::Write as _;

use pulldown_cmark::{Alignment, CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use crate::hidden;

/// All tags of the output with their attributes.
pub const TAGS: [(&str, &[&str]); 26] = [
    ("a", &["href", "rel"]),
    ("blockquote", &[]),
    ("br", &[]),
    ("code", &["class"]),
    ("del", &[]),
    ("div", &["class", "tabindex"]),
    ("em", &[]),
    ("h2", &[]),
    ("h3", &[]),
    ("h4", &[]),
    ("h5", &[]),
    ("h6", &[]),
    ("hr", &[]),
    ("li", &[]),
    ("ol", &["start"]),
    ("p", &[]),
    ("pre", &["tabindex"]),
    ("span", &["class"]),
    ("strong", &[]),
    ("table", &[]),
    ("tbody", &[]),
    ("td", &["class"]),
    ("th", &["class", "scope"]),
    ("thead", &[]),
    ("tr", &[]),
    ("ul", &[]),
];

/// The most bytes of a text that are shown.
pub const MAX_TEXT: usize = 1 << 20;
/// The most bytes of HTML. Tables and references can make a short text very long.
pub const MAX_HTML: usize = 8 << 20;
/// The deepest nesting of quotes, lists, tables and emphasis; deeper ones are shown without it.
pub const MAX_DEPTH: usize = 32;
const MAX_LANGUAGE: usize = 32;

/// HTML of a text, and whether it is the whole text.
///
/// `files` is the address of a folder, with a `/` at its end: relative links lead there, and
/// without it they are only text. A link leads to http, https or mailto, and images are links.
/// Headings begin with `h2`, below the title of the page.
///
/// ```
/// use skillbook_core::markdown::html;
/// let (shown, whole) = html("# Hi\n<b>*there*</b>", "");
/// assert_eq!(shown, "<h2>Hi</h2>\n<p>&lt;b&gt;<em>there</em>&lt;/b&gt;</p>\n");
/// assert!(whole);
/// ```
pub fn html(text: &str, files: &str) -> (String, bool) {
    let visible = hidden::visible(text);
    let shown = beginning(&visible, MAX_TEXT);
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = Writer {
        out: String::with_capacity(shown.len() + shown.len() / 4),
        open: Vec::new(),
        depth: 0,
        images: 0,
        links: 0,
        alignments: Vec::new(),
        column: 0,
        in_head: false,
        files,
    };
    let mut whole = shown.len() == visible.len();
    for event in Parser::new_ext(shown, options) {
        writer.event(event);
        if writer.out.len() > MAX_HTML {
            whole = false;
            break;
        }
    }
    writer.close_all();
    (writer.out, whole)
}

fn beginning(text: &str, max: usize) -> &str {
    let mut end = max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

struct Writer<'a> {
    out: String,
    /// The end of each open element; nothing for those that are not shown.
    open: Vec<&'static str>,
    /// The number of open elements that are shown.
    depth: usize,
    images: usize,
    /// Open links that are shown. Links do not nest, so an image in one is only its text.
    links: usize,
    alignments: Vec<Alignment>,
    column: usize,
    in_head: bool,
    files: &'a str,
}

impl Writer<'_> {
    fn event(&mut self, event: Event) {
        match event {
            Event::Start(tag) => drop(self.start(tag)),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => escape(&mut self.out, &text),
            Event::Html(text) | Event::InlineHtml(text) => escape(&mut self.out, &text),
            Event::Code(text) => {
                self.out.push_str("<code>");
                escape(&mut self.out, &text);
                self.out.push_str("</code>");
            }
            Event::SoftBreak => self.out.push('\n'),
            Event::HardBreak => self.out.push_str("<br>\n"),
            Event::Rule => self.out.push_str("<hr>\n"),
            Event::TaskListMarker(done) => {
                self.out.push_str(if done { "\u{2611} " } else { "\u{2610} " });
            }
            // Not among the options; the text is shown.
            Event::InlineMath(text) | Event::DisplayMath(text) => escape(&mut self.out, &text),
            Event::FootnoteReference(text) => escape(&mut self.out, &text),
        }
    }

    fn start(&mut self, tag: Tag) -> bool {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.open("<p>", "</p>\n", 1),
            Tag::Heading { level, .. } => {
                let (start, end) = match level as usize {
                    1 => ("<h2>", "</h2>\n"),
                    2 => ("<h3>", "</h3>\n"),
                    3 => ("<h4>", "</h4>\n"),
                    4 => ("<h5>", "</h5>\n"),
                    _ => ("<h6>", "</h6>\n"),
                };
                self.open(start, end, 1)
            }
            Tag::BlockQuote(_) => self.open("<blockquote>\n", "</blockquote>\n", 1),
            Tag::CodeBlock(kind) => self.start_code(&kind),
            // With room for its items, as a table for its rows and cells.
            Tag::List(None) => self.open("<ul>\n", "</ul>\n", 2),
            Tag::List(Some(1)) => self.open("<ol>\n", "</ol>\n", 2),
            Tag::List(Some(first)) => {
                let shown = self.open("", "</ol>\n", 2);
                if shown {
                    // Browsers take numbers of 32 bits.
                    let _ = writeln!(self.out, "<ol start=\"{}\">", first.min(999_999_999));
                }
                shown
            }
            Tag::Item => self.open_child("<li>", "</li>\n"),
            Tag::Table(alignments) => {
                self.alignments = alignments;
                self.open("<div class=\"scroll\" tabindex=\"0\"><table>\n", "</table></div>\n", 3)
            }
            Tag::TableHead => {
                self.column = 0;
                self.in_head = true;
                self.open_child("<thead><tr>", "</tr></thead>\n")
            }
            Tag::TableRow => {
                self.column = 0;
                self.open_child("<tr>", "</tr>\n")
            }
            Tag::TableCell => self.start_cell(),
            Tag::Emphasis => self.open("<em>", "</em>", 1),
            Tag::Strong => self.open("<strong>", "</strong>", 1),
            Tag::Strikethrough => self.open("<del>", "</del>", 1),
            Tag::Link { dest_url, link_type, .. } => {
                let email = matches!(link_type, pulldown_cmark::LinkType::Email);
                self.start_link(&dest_url, email, "")
            }
            Tag::Image { dest_url, .. } => {
                self.images += 1;
                self.start_link(&dest_url, false, "<span class=\"image\">Image</span> ")
            }
            // Not among the options; their texts are shown.
            Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => self.skip(),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        if tag == TagEnd::Image {
            self.images = self.images.saturating_sub(1);
        }
        let end = self.open.pop().unwrap_or_default();
        self.close(end);
        match tag {
            TagEnd::TableHead => self.in_head = false,
            TagEnd::TableCell => self.column += 1,
            _ => {}
        }
    }

    /// Opens an element if there is room for it and the levels that it needs.
    fn open(&mut self, start: &str, end: &'static str, levels: usize) -> bool {
        if self.depth + levels > MAX_DEPTH {
            return self.skip();
        }
        self.out.push_str(start);
        self.open.push(end);
        self.depth += 1;
        true
    }

    /// Opens a part of a list or a table, if that is shown.
    fn open_child(&mut self, start: &str, end: &'static str) -> bool {
        match self.open.last() {
            Some(&"") => self.skip(),
            _ => self.open(start, end, 1),
        }
    }

    fn skip(&mut self) -> bool {
        self.open.push("");
        false
    }

    fn close(&mut self, end: &'static str) {
        if end.is_empty() {
            return;
        }
        self.out.push_str(end);
        self.depth -= 1;
        if end == LINK_END {
            self.links -= 1;
        }
    }

    fn close_all(&mut self) {
        while let Some(end) = self.open.pop() {
            self.close(end);
        }
    }

    fn start_code(&mut self, kind: &CodeBlockKind) -> bool {
        let language = match kind {
            CodeBlockKind::Fenced(info) => language(info),
            CodeBlockKind::Indented => "",
        };
        if language.is_empty() {
            return self.open("<pre tabindex=\"0\"><code>", CODE_END, 1);
        }
        if !self.open("<pre tabindex=\"0\"><code class=\"language-", CODE_END, 1) {
            return false;
        }
        self.out.push_str(language);
        self.out.push_str("\">");
        true
    }

    fn start_cell(&mut self) -> bool {
        let class = match self.alignments.get(self.column) {
            Some(Alignment::Center) => " class=\"center\"",
            Some(Alignment::Right) => " class=\"right\"",
            _ => "",
        };
        let (start, end) =
            if self.in_head { ("<th scope=\"col\"", "</th>") } else { ("<td", "</td>") };
        if !self.open_child(start, end) {
            return false;
        }
        self.out.push_str(class);
        self.out.push('>');
        true
    }

    fn start_link(&mut self, address: &str, email: bool, before: &str) -> bool {
        let address = match email {
            true => Some(encoded(&format!("mailto:{address}"))),
            false => allowed(address, self.files),
        };
        let room = self.links == 0 && self.depth < MAX_DEPTH;
        match address {
            Some(address) if room => {
                self.out.push_str("<a href=\"");
                escape(&mut self.out, &address);
                self.out.push_str("\" rel=\"noreferrer nofollow\">");
                self.out.push_str(before);
                self.links += 1;
                self.open("", LINK_END, 1)
            }
            _ => self.skip(),
        }
    }
}

const LINK_END: &str = "</a>";
const CODE_END: &str = "</code></pre>\n";

/// The first word of a fence's info string, if it looks like the name of a language.
fn language(info: &str) -> &str {
    let word = info.split([' ', '\t', ',', '{']).next().unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"+-_.#".contains(&byte);
    match word.len() <= MAX_LANGUAGE && word.bytes().all(plain) {
        true => word,
        false => "",
    }
}

/// The address that a link may have, or nothing.
fn allowed(address: &str, files: &str) -> Option<String> {
    let address = encoded(address.trim());
    let end = address.find([':', '/', '?', '#']).unwrap_or(address.len());
    if address[end..].starts_with(':') {
        let scheme = &address[..end];
        let known =
            ["http", "https", "mailto"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
        return known.then_some(address);
    }
    let path = address.strip_prefix("./").unwrap_or(&address);
    // Of a file: neither another place of this page, nor of the server.
    let below = !files.is_empty()
        && !path.is_empty()
        && path.split(['?', '#']).next().is_some_and(|path| {
            !path.is_empty() && path.split('/').all(|part| !part.is_empty() && !is_dots(part))
        });
    below.then(|| format!("{files}{path}"))
}

/// Whether a browser reads this part of a path as `.` or `..`.
fn is_dots(part: &str) -> bool {
    matches!(part.replace("%2e", ".").replace("%2E", ".").as_str(), "." | "..")
}

/// The address with everything encoded that a URL cannot have. So a browser drops no character.
fn encoded(address: &str) -> String {
    let mut out = String::with_capacity(address.len());
    for byte in address.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~!*();:@&=+$,/?#[]%".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

fn escape(out: &mut String, text: &str) {
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escaped = match byte {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            b'\'' => "&#39;",
            _ => continue,
        };
        out.push_str(&text[from..at]);
        out.push_str(escaped);
        from = at + 1;
    }
    out.push_str(&text[from..]);
}
