//! HTML parsed into an arena.

use std::borrow::Cow;
use std::cell::{Cell, Ref, RefCell};
use std::sync::OnceLock;

use html5ever::interface::{ElementFlags, NodeOrText, QuirksMode, Tracer, TreeSink};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts};
use html5ever::{ns, Attribute, LocalName, QualName, TokenizerResult};

use super::{MAX_DEPTH, MAX_NODES};

/// A node's place in the arena. The document is 0.
pub type Id = usize;

/// The most attributes of an element that are kept.
const MAX_ATTRIBUTES: usize = 64;

pub struct Dom {
    pub nodes: Vec<Node>,
    /// Whether there are more nodes than are kept.
    pub cut: bool,
}

#[derive(Default)]
pub struct Node {
    pub parent: Option<Id>,
    pub first_child: Option<Id>,
    pub last_child: Option<Id>,
    pub previous: Option<Id>,
    pub next: Option<Id>,
    pub data: Data,
}

#[derive(Default)]
pub enum Data {
    /// The document, and the content of a `template`.
    #[default]
    Fragment,
    Element(Element),
    Text(StrTendril),
    Comment(StrTendril),
}

pub struct Element {
    pub name: QualName,
    pub attributes: Vec<(LocalName, StrTendril)>,
}

impl Element {
    /// The name of an HTML element; that of others is empty.
    pub fn html(&self) -> &str {
        if self.name.ns == ns!(html) {
            &self.name.local
        } else {
            ""
        }
    }

    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(local, _)| &**local == name).map(|(_, value)| &**value)
    }
}

impl Dom {
    pub fn element(&self, id: Id) -> Option<&Element> {
        match self.nodes.get(id)?.data {
            Data::Element(ref element) => Some(element),
            _ => None,
        }
    }

    /// The next node of a walk through a tree from its root, parents before their children;
    /// `inside` is whether to enter the node. `left` is called for each node that the walk leaves.
    pub fn next(&self, id: Id, inside: bool, mut left: impl FnMut(Id)) -> Option<Id> {
        let node = self.nodes.get(id)?;
        if let (true, Some(child)) = (inside, node.first_child) {
            return Some(child);
        }
        let mut id = id;
        loop {
            left(id);
            let node = self.nodes.get(id)?;
            match (node.next, node.parent) {
                (Some(next), _) => return Some(next),
                (None, Some(parent)) => id = parent,
                (None, None) => return None,
            }
        }
    }
}

/// Parses HTML as a browser without scripts does.
pub fn parse(html: &str) -> Dom {
    let options = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
    let builder = TreeBuilder::new(Sink::new(), options);
    let limited =
        Limited { builder, tags: Cell::new(0), full: Cell::new(false), idle: Cell::new(false) };
    let tokenizer = Tokenizer::new(limited, TokenizerOpts::default());
    let input = BufferQueue::default();
    let mut meter = Meter::default();
    let mut rest = html;
    while !rest.is_empty() && !meter.is_over() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE).max(1));
        rest = after;
        input.push_back(StrTendril::from_slice(piece));
        tokenizer.sink.idle.set(true);
        // The tokenizer stops after scripts and declarations of a character set.
        while !matches!(tokenizer.feed(&input), TokenizerResult::Done) {}
        meter.add(piece, tokenizer.sink.idle.get());
    }
    if !rest.is_empty() {
        tokenizer.sink.builder.sink.cut.set(true);
    }
    tokenizer.end();
    let sink = tokenizer.sink.builder.sink;
    Dom { nodes: sink.nodes.into_inner(), cut: sink.cut.get() }
}

/// The number of bytes that the tokenizer gets at a time.
const PIECE: usize = 4096;
/// The most comparisons of attributes: a second, or 30,000 attributes of one tag.
const MAX_COMPARED: usize = 500_000_000;
/// The most attributes of a tag that is longer than a piece, if its quotes are where a simple
/// reader sees them: a millisecond.
const MAX_COUNTED: usize = 1000;

/// Estimates the work of the tokenizer, which compares each attribute of a tag with all before it.
/// There are at most as many as blanks and slashes since the last token. Of those in long values
/// and comments there may be many, so the limit for them is high, and another one is for names of
/// attributes. Scripts can mislead it, so it counts only while there are no tokens.
#[derive(Default)]
struct Meter {
    attributes: usize,
    compared: usize,
    place: Place,
    counted: usize,
    has_many: bool,
}

/// A place in a page, by its brackets and quotes.
#[derive(Clone, Copy, Default)]
enum Place {
    #[default]
    Text,
    /// After `<`.
    Opened,
    /// In the name of a tag or of an attribute.
    Name,
    /// Before the name of an attribute.
    Blank,
    /// Before a value.
    Equals,
    Unquoted,
    Quoted(u8),
    /// In a comment or in a closing tag.
    Other,
}

impl Place {
    /// The place after one more byte.
    fn after(self, byte: u8) -> Place {
        let is_blank = byte.is_ascii_whitespace();
        match (self, byte) {
            (Place::Text, b'<') | (Place::Opened, b'<') => Place::Opened,
            (Place::Text, _) => Place::Text,
            (Place::Opened, b'!' | b'?' | b'/') => Place::Other,
            (Place::Opened, _) if byte.is_ascii_alphabetic() => Place::Name,
            (Place::Opened, _) => Place::Text,
            (Place::Quoted(quote), _) if byte == quote => Place::Blank,
            (Place::Quoted(_), _) => self,
            (_, b'>') => Place::Text,
            (Place::Other, _) => Place::Other,
            (Place::Equals, b'"' | b'\'') => Place::Quoted(byte),
            (Place::Equals, _) if is_blank => Place::Equals,
            (Place::Unquoted, _) if is_blank => Place::Blank,
            (Place::Equals | Place::Unquoted, _) => Place::Unquoted,
            (Place::Name | Place::Blank, b'=') => Place::Equals,
            (Place::Name | Place::Blank, _) if is_blank || byte == b'/' => Place::Blank,
            (Place::Name | Place::Blank, _) => Place::Name,
        }
    }
}

impl Meter {
    fn add(&mut self, piece: &str, idle: bool) {
        let ends = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'/';
        let more = piece.as_bytes().iter().filter(|byte| ends(byte)).count();
        self.attributes = if idle { self.attributes + more } else { more };
        self.compared = self.compared.saturating_add(self.attributes.saturating_mul(more));
        if !idle {
            self.counted = 0;
        }
        for &byte in piece.as_bytes() {
            let next = self.place.after(byte);
            match (self.place, next) {
                (Place::Opened, Place::Name) => self.counted = 0,
                (Place::Blank, Place::Name) => self.counted += 1,
                _ => {}
            }
            self.place = next;
        }
        self.has_many = idle && self.counted > MAX_COUNTED;
    }

    fn is_over(&self) -> bool {
        self.compared > MAX_COMPARED || self.has_many
    }
}

/// Passes tokens on to the builder of the tree, within limits. The builder has none, and the time
/// for a token grows with the number of open elements.
struct Limited {
    builder: TreeBuilder<Id, Sink>,
    tags: Cell<usize>,
    /// Whether too many elements are open.
    full: Cell<bool>,
    /// Whether no token but errors came since this was set.
    idle: Cell<bool>,
}

/// The number of tags between two checks, because a check visits all open elements.
const CHECK: usize = 32;

impl TokenSink for Limited {
    type Handle = Id;

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<Id> {
        // Errors are reported within tags, too.
        if !matches!(token, Token::ParseError(_)) {
            self.idle.set(false);
        }
        if self.builder.sink.nodes.borrow().len() >= MAX_NODES {
            self.builder.sink.cut.set(true);
            if !matches!(token, Token::EOFToken) {
                return TokenSinkResult::Continue;
            }
        }
        if let Token::TagToken(tag) = &token {
            let tags = self.tags.get() + 1;
            self.tags.set(tags);
            if tags.is_multiple_of(CHECK) {
                let open = Open(Cell::new(0));
                self.builder.trace_handles(&open);
                self.full.set(open.0.get() > MAX_DEPTH);
            }
            if self.full.get() && tag.kind == TagKind::StartTag && !closes_itself(tag) {
                return TokenSinkResult::Continue;
            }
        }
        self.builder.process_token(token, line)
    }

    fn end(&self) {
        self.builder.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.builder.adjusted_current_node_present_but_not_in_html_namespace()
    }
}

/// Elements that have no elements in them.
fn closes_itself(tag: &Tag) -> bool {
    matches!(
        &*tag.name,
        "area"
            | "br"
            | "col"
            | "hr"
            | "img"
            | "input"
            | "link"
            | "meta"
            | "wbr"
            | "script"
            | "style"
            | "textarea"
            | "title"
            | "xmp"
            | "iframe"
            | "noembed"
            | "noframes"
    )
}

/// Counts the open elements and the formatting elements that would be opened again.
struct Open(Cell<usize>);

impl Tracer for Open {
    type Handle = Id;

    fn trace_handle(&self, _node: &Id) {
        self.0.set(self.0.get() + 1);
    }
}

struct Sink {
    nodes: RefCell<Vec<Node>>,
    cut: Cell<bool>,
}

impl Sink {
    fn new() -> Sink {
        Sink { nodes: RefCell::new(vec![Node::default()]), cut: Cell::new(false) }
    }

    fn add(&self, data: Data) -> Id {
        let mut nodes = self.nodes.borrow_mut();
        nodes.push(Node { data, ..Node::default() });
        nodes.len() - 1
    }

    /// Puts a node before a sibling, or at the end of its parent.
    fn link(&self, id: Id, parent: Id, before: Option<Id>) {
        self.unlink(id);
        let mut nodes = self.nodes.borrow_mut();
        let previous = match before {
            Some(before) => nodes[before].previous.replace(id),
            None => nodes[parent].last_child.replace(id),
        };
        match previous {
            Some(previous) => nodes[previous].next = Some(id),
            None => nodes[parent].first_child = Some(id),
        }
        let node = &mut nodes[id];
        (node.parent, node.previous, node.next) = (Some(parent), previous, before);
    }

    fn unlink(&self, id: Id) {
        let mut nodes = self.nodes.borrow_mut();
        let node = &mut nodes[id];
        let (parent, previous, next) = (node.parent.take(), node.previous.take(), node.next.take());
        let Some(parent) = parent else { return };
        match previous {
            Some(previous) => nodes[previous].next = next,
            None => nodes[parent].first_child = next,
        }
        match next {
            Some(next) => nodes[next].previous = previous,
            None => nodes[parent].last_child = previous,
        }
    }

    fn put(&self, child: NodeOrText<Id>, parent: Id, before: Option<Id>) {
        let text = match child {
            NodeOrText::AppendNode(id) => return self.link(id, parent, before),
            NodeOrText::AppendText(text) => text,
        };
        let neighbour = {
            let nodes = self.nodes.borrow();
            before.map_or(nodes[parent].last_child, |before| nodes[before].previous)
        };
        if let Some(neighbour) = neighbour {
            if let Data::Text(beginning) = &mut self.nodes.borrow_mut()[neighbour].data {
                beginning.push_tendril(&text);
                return;
            }
        }
        let id = self.add(Data::Text(text));
        self.link(id, parent, before);
    }
}

impl TreeSink for Sink {
    type Handle = Id;
    type Output = Self;
    type ElemName<'a> = Ref<'a, QualName>;

    fn finish(self) -> Self {
        self
    }

    fn parse_error(&self, _message: Cow<'static, str>) {}

    fn get_document(&self) -> Id {
        0
    }

    fn elem_name<'a>(&'a self, id: &'a Id) -> Ref<'a, QualName> {
        // The builder asks for names of elements only.
        static NONE: OnceLock<QualName> = OnceLock::new();
        Ref::map(self.nodes.borrow(), |nodes| match &nodes[*id].data {
            Data::Element(element) => &element.name,
            _ => NONE.get_or_init(|| QualName::new(None, ns!(), "".into())),
        })
    }

    fn create_element(&self, name: QualName, attributes: Vec<Attribute>, _: ElementFlags) -> Id {
        let attributes = attributes.into_iter().take(MAX_ATTRIBUTES);
        let attributes = attributes.map(|one| (one.name.local, one.value)).collect();
        self.add(Data::Element(Element { name, attributes }))
    }

    fn create_comment(&self, text: StrTendril) -> Id {
        self.add(Data::Comment(text))
    }

    fn create_pi(&self, _target: StrTendril, data: StrTendril) -> Id {
        self.add(Data::Comment(data))
    }

    fn append(&self, parent: &Id, child: NodeOrText<Id>) {
        self.put(child, *parent, None);
    }

    fn append_before_sibling(&self, sibling: &Id, child: NodeOrText<Id>) {
        let parent = self.nodes.borrow()[*sibling].parent;
        if let Some(parent) = parent {
            self.put(child, parent, Some(*sibling));
        }
    }

    fn append_based_on_parent_node(&self, element: &Id, previous: &Id, child: NodeOrText<Id>) {
        let has_parent = self.nodes.borrow()[*element].parent.is_some();
        if has_parent {
            self.append_before_sibling(element, child);
        } else {
            self.append(previous, child);
        }
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    /// The content of a template is never shown, so it stays with its element.
    fn get_template_contents(&self, template: &Id) -> Id {
        *template
    }

    fn same_node(&self, one: &Id, other: &Id) -> bool {
        one == other
    }

    fn set_quirks_mode(&self, _mode: QuirksMode) {}

    fn add_attrs_if_missing(&self, id: &Id, attributes: Vec<Attribute>) {
        if let Data::Element(element) = &mut self.nodes.borrow_mut()[*id].data {
            for one in attributes {
                if element.attributes.len() < MAX_ATTRIBUTES
                    && element.attributes.iter().all(|(name, _)| *name != one.name.local)
                {
                    element.attributes.push((one.name.local, one.value));
                }
            }
        }
    }

    fn remove_from_parent(&self, id: &Id) {
        self.unlink(*id);
    }

    fn reparent_children(&self, id: &Id, new_parent: &Id) {
        loop {
            let child = self.nodes.borrow()[*id].first_child;
            match child {
                Some(child) => self.link(child, *new_parent, None),
                None => break,
            }
        }
    }
}
