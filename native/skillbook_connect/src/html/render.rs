//! The text of a page, in lines.

use std::collections::{HashMap, HashSet};

use super::dom::{Data, Dom, Element, Id};
use super::style::{Look, Sheets};
use super::{Text, MAX_TEXT};

/// The most quotes and lists around a line that are shown.
const MAX_INDENT: usize = 12;
/// The most bytes of an address and of the text of an image.
const MAX_ADDRESS: usize = 2000;
const MAX_IMAGE: usize = 300;

pub fn render(dom: &Dom) -> Text {
    let mut page = Page {
        out: Out::default(),
        tables: data_tables(dom),
        frames: Vec::new(),
        lists: Vec::new(),
        addresses: HashSet::new(),
        hidden: 0,
        cut: dom.cut,
    };
    let mut sheets = Sheets::new();
    let mut at = Some(0);
    while let Some(id) = at {
        if let (Some("style"), Some(css)) = (dom.element(id).map(Element::html), text_of(dom, id)) {
            sheets.add(css);
        }
        at = dom.next(id, true, |_| {});
    }
    let mut at = Some(0);
    while let Some(id) = at {
        if page.out.text.len() >= MAX_TEXT {
            page.cut = true;
            break;
        }
        let inside = page.enter(dom, id, &mut sheets);
        at = dom.next(id, inside, |left| page.leave(dom, left));
    }
    let mut text = page.out.text;
    text.truncate(text.trim_end().len());
    text.truncate(text.floor_char_boundary(MAX_TEXT));
    Text { text, hidden: page.hidden, cut: page.cut }
}

fn text_of(dom: &Dom, id: Id) -> Option<&str> {
    match &dom.nodes[dom.nodes[id].first_child?].data {
        Data::Text(text) => Some(text),
        _ => None,
    }
}

/// The tables with data: several rows and columns, and neither blocks nor tables in their cells.
/// Others arrange a page. The value is whether the table has data.
fn data_tables(dom: &Dom) -> HashSet<Id> {
    #[derive(Default)]
    struct Shape {
        rows: usize,
        cells: usize,
        columns: usize,
        blocks: bool,
    }
    let mut shapes: HashMap<Id, Shape> = HashMap::new();
    let mut open: Vec<Id> = Vec::new();
    let mut at = Some(0);
    while let Some(id) = at {
        if let Some(element) = dom.element(id) {
            let name = element.html();
            if let Some(shape) = open.last().and_then(|table| shapes.get_mut(table)) {
                match name {
                    "tr" => (shape.rows, shape.cells) = (shape.rows + 1, 0),
                    "td" | "th" => {
                        shape.cells += 1;
                        shape.columns = shape.columns.max(shape.cells);
                    }
                    "table" | "div" | "ul" | "ol" | "blockquote" | "pre" | "hr" | "h1" | "h2"
                    | "h3" | "h4" => shape.blocks = true,
                    _ => {}
                }
            }
            if name == "table" {
                open.push(id);
                shapes.insert(id, Shape::default());
            }
        }
        at = dom.next(id, true, |left| {
            if open.last() == Some(&left) {
                open.pop();
            }
        });
    }
    let has_data = |shape: &Shape| shape.rows > 1 && shape.columns > 1 && !shape.blocks;
    shapes.into_iter().filter(|(_, shape)| has_data(shape)).map(|(id, _)| id).collect()
}

/// An element that the walk is in.
struct Frame {
    id: Id,
    look: Look,
    /// The address of a link, and the place in the result where its text begins.
    link: Option<(String, usize)>,
}

struct Page {
    out: Out,
    tables: HashSet<Id>,
    frames: Vec<Frame>,
    /// The number of the next item of each list, if it has numbers.
    lists: Vec<Option<i64>>,
    addresses: HashSet<String>,
    hidden: usize,
    cut: bool,
}

impl Page {
    fn look(&self) -> Look {
        self.frames.last().map_or_else(Look::page, |frame| frame.look.clone())
    }

    /// Shows a node; whether to enter it.
    fn enter(&mut self, dom: &Dom, id: Id, sheets: &mut Sheets) -> bool {
        let element = match &dom.nodes[id].data {
            Data::Fragment => return true,
            Data::Text(text) => {
                let visible = self.frames.last().is_none_or(|frame| frame.look.is_visible());
                if visible {
                    self.hidden += self.out.text(text);
                } else {
                    self.hidden += shown(text);
                }
                return false;
            }
            Data::Comment(text) => {
                self.hidden += shown(text);
                return false;
            }
            Data::Element(element) => element,
        };
        let name = element.html();
        if matches!(name, "style" | "script" | "title" | "meta" | "link" | "base") {
            return false;
        }
        if matches!(name, "template" | "iframe" | "noembed" | "noframes" | "head" | "datalist") {
            // Texts in the head are none of the page's.
            if name != "head" {
                self.hidden += hidden_in(dom, id);
            }
            return false;
        }
        let look = sheets.look(dom, id, element, &self.look());
        if look.hides_all() {
            self.hidden += hidden_in(dom, id);
            return false;
        }
        let visible = look.is_visible();
        let mut frame = Frame { id, look, link: None };
        match name {
            "br" => self.out.line(1),
            "hr" => {
                self.out.line(1);
                self.out.text("----");
                self.out.line(1);
            }
            "img" if visible => self.image(element),
            "a" if visible => {
                frame.link = element
                    .attribute("href")
                    .and_then(address)
                    .map(|address| (address, self.out.text.len()));
            }
            "ul" | "ol" | "menu" => {
                self.out.line(if self.lists.is_empty() { 2 } else { 1 });
                let start = element.attribute("start").and_then(|start| start.parse().ok());
                self.lists.push((name == "ol").then(|| start.unwrap_or(1)));
            }
            "li" => self.item(element),
            "blockquote" => {
                self.out.line(2);
                self.out.quotes += 1;
            }
            "pre" | "textarea" | "listing" | "xmp" | "plaintext" => {
                self.out.line(2);
                self.out.kept += 1;
            }
            "table" if self.tables.contains(&id) => self.out.line(2),
            "tr" => self.out.line(1),
            "td" | "th" if self.in_data(dom, id) => {
                if has_cell_before(dom, id) {
                    self.out.divide();
                }
            }
            "option" => self.out.line(1),
            _ => self.out.line(lines_around(name)),
        }
        self.frames.push(frame);
        true
    }

    fn leave(&mut self, dom: &Dom, id: Id) {
        if self.frames.last().is_none_or(|frame| frame.id != id) {
            return;
        }
        let Some(frame) = self.frames.pop() else { return };
        let name = dom.element(id).map_or("", Element::html);
        if let Some((address, start)) = frame.link {
            self.link(address, start);
        }
        match name {
            "br" | "hr" | "img" | "a" => {}
            "ul" | "ol" | "menu" => {
                self.lists.pop();
                self.out.line(if self.lists.is_empty() { 2 } else { 1 });
            }
            "blockquote" => {
                self.out.line(2);
                self.out.quotes -= 1;
            }
            "pre" | "textarea" | "listing" | "xmp" | "plaintext" => {
                self.out.kept -= 1;
                self.out.line(2);
            }
            "table" if self.tables.contains(&id) => self.out.line(2),
            "li" | "tr" | "option" => self.out.line(1),
            "td" | "th" if self.in_data(dom, id) => {}
            _ => self.out.line(lines_around(name)),
        }
    }

    /// Whether a cell belongs to a table with data.
    fn in_data(&self, dom: &Dom, cell: Id) -> bool {
        let parents = std::iter::successors(dom.nodes[cell].parent, |&id| dom.nodes[id].parent);
        parents
            .take(4)
            .find(|&id| dom.element(id).is_some_and(|element| element.html() == "table"))
            .is_some_and(|table| self.tables.contains(&table))
    }

    fn image(&mut self, element: &Element) {
        let Some(words) = element.attribute("alt").map(str::trim) else { return };
        if words.is_empty() {
            return;
        }
        let cut = words.get(..words.floor_char_boundary(MAX_IMAGE)).unwrap_or(words);
        self.out.text("[image: ");
        self.hidden += self.out.text(cut);
        self.out.text("]");
    }

    fn item(&mut self, element: &Element) {
        self.out.line(1);
        let depth = self.lists.len().clamp(1, MAX_INDENT);
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                let value = element.attribute("value").and_then(|value| value.parse().ok());
                let this = value.unwrap_or(*number);
                *number = this.saturating_add(1);
                format!("{this}. ")
            }
            _ => "- ".to_owned(),
        };
        self.out.mark(&format!("{}{mark}", "  ".repeat(depth - 1)));
    }

    /// Adds the address of a link to its text.
    fn link(&mut self, address: String, start: usize) {
        let words = self.out.text.get(start..).unwrap_or_default().trim();
        if words.is_empty() {
            return;
        }
        let plain = |text: &str| {
            let text = text.trim_start_matches("mailto:").trim_start_matches("tel:");
            let text = text.trim_start_matches("https://").trim_start_matches("http://");
            text.trim_end_matches('/').to_lowercase()
        };
        let says_it = plain(words) == plain(&address);
        if self.addresses.insert(address.clone()) && !says_it {
            self.out.text(&format!(" ({address})"));
        }
    }
}

/// The address of a link, if it leads to a page, a mailbox or a telephone.
fn address(href: &str) -> Option<String> {
    // Browsers leave these out.
    let href: String = href.chars().filter(|char| !matches!(char, '\t' | '\n' | '\r')).collect();
    let href = href.trim();
    let scheme = href.split(':').next().unwrap_or_default().to_ascii_lowercase();
    if !matches!(scheme.as_str(), "http" | "https" | "mailto" | "tel") || href.len() > MAX_ADDRESS {
        return None;
    }
    // Blanks and control characters would end it.
    let address = href.chars().map(|char| match char {
        char if char.is_whitespace() || char.is_control() || is_unseen(char) => {
            char.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect()
        }
        char => char.to_string(),
    });
    Some(address.collect())
}

/// The number of line ends around an element: 2 leave an empty line.
fn lines_around(name: &str) -> usize {
    match name {
        "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "dl" | "figure" | "fieldset" => 2,
        "address" | "article" | "aside" | "body" | "caption" | "center" | "dd" | "details"
        | "dialog" | "dir" | "div" | "dt" | "figcaption" | "footer" | "form" | "header"
        | "hgroup" | "html" | "legend" | "main" | "nav" | "search" | "section" | "select"
        | "summary" | "table" | "tbody" | "td" | "tfoot" | "th" | "thead" => 1,
        _ => 0,
    }
}

fn has_cell_before(dom: &Dom, cell: Id) -> bool {
    std::iter::successors(dom.nodes[cell].previous, |&id| dom.nodes[id].previous)
        .take(20)
        .any(|id| dom.element(id).is_some_and(|one| matches!(one.html(), "td" | "th")))
}

/// The number of visible characters below a node that is not shown. Styles and scripts do not
/// count.
fn hidden_in(dom: &Dom, top: Id) -> usize {
    let mut count = 0;
    let mut at = dom.nodes[top].first_child;
    let mut done = at.is_none();
    while let (Some(id), false) = (at, done) {
        let inside = match &dom.nodes[id].data {
            Data::Text(text) | Data::Comment(text) => {
                count += shown(text);
                false
            }
            Data::Element(element) => !matches!(element.html(), "style" | "script" | "title"),
            Data::Fragment => true,
        };
        at = dom.next(id, inside, |left| done |= left == top);
    }
    count
}

/// The number of visible characters.
fn shown(text: &str) -> usize {
    text.chars().filter(|char| !char.is_whitespace() && !char.is_control()).count()
}

/// Characters without width that texts do not need.
fn is_unseen(char: char) -> bool {
    matches!(char,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Joins letters in some scripts, and pictures; without width elsewhere.
fn is_joiner(char: char) -> bool {
    matches!(char, '\u{200c}' | '\u{200d}')
}

/// The result.
#[derive(Default)]
struct Out {
    text: String,
    /// Line ends and a blank before the next text.
    lines: usize,
    blank: bool,
    /// The mark of a list's item at the beginning of the line.
    mark: Option<String>,
    /// The elements around that are quotes, and those that keep blanks.
    quotes: usize,
    kept: usize,
    last: Option<char>,
}

impl Out {
    fn line(&mut self, count: usize) {
        if count > 0 {
            self.lines = self.lines.max(count);
            self.blank = false;
        }
    }

    fn mark(&mut self, mark: &str) {
        self.mark = Some(mark.to_owned());
    }

    /// Divides two cells of a row.
    fn divide(&mut self) {
        if self.lines > 0 {
            self.start();
        }
        self.text.push_str(if self.text.ends_with(['\n', ' ']) { "| " } else { " | " });
        self.blank = false;
    }

    /// Adds text; the number of its characters that cannot be seen and are left out.
    fn text(&mut self, text: &str) -> usize {
        let mut left_out = 0;
        for char in text.chars() {
            if is_unseen(char) || is_joiner(char) && !self.last.is_some_and(joins) {
                left_out += 1;
            } else if self.kept > 0 && char == '\n' {
                self.lines += 1;
                self.blank = false;
                if self.lines > 2 {
                    self.start();
                }
            } else if self.kept > 0 && (char == ' ' || char == '\t') {
                self.start();
                self.text.push(char);
            } else if char.is_whitespace() || char.is_control() {
                self.blank = true;
            } else {
                self.start();
                self.text.push(char);
            }
            self.last = Some(char);
        }
        left_out
    }

    /// Ends lines before text, and begins the next one.
    fn start(&mut self) {
        let at_start = self.text.is_empty();
        if self.lines > 0 || at_start {
            let prefix = "> ".repeat(self.quotes.min(MAX_INDENT));
            let lines = if at_start { 0 } else { self.lines };
            for number in 0..lines {
                if number > 0 {
                    self.text.push_str(prefix.trim_end());
                }
                self.text.push('\n');
            }
            self.text.push_str(&prefix);
            self.text.push_str(&self.mark.take().unwrap_or_default());
        } else if self.blank {
            self.text.push(' ');
        }
        (self.lines, self.blank) = (0, false);
    }
}

/// Whether a joiner after this character belongs to it.
fn joins(char: char) -> bool {
    !char.is_ascii() && !char.is_whitespace() && !is_joiner(char) && char > '\u{300}'
}
