//! The part of CSS that hides text: which text of an element a reader sees.
//!
//! Style sheets in `style` elements count with selectors of names, classes, ids and attributes;
//! rules with other selectors, and those for some screens only, are left out.

use std::collections::HashMap;

use cssparser::color::{parse_hash_color, parse_named_color};
use cssparser::{Parser, Token};

use super::dom::{Dom, Element, Id};

/// The most rules of all style sheets, and the most comparisons of rules with elements.
const MAX_RULES: usize = 5000;
const MAX_COMPARISONS: usize = 5_000_000;
/// The most parts of a selector.
const MAX_COMPOUNDS: usize = 16;
/// The most declarations of one rule or element that are read.
const MAX_DECLARATIONS: usize = 100;

type Rgb = (u8, u8, u8);

/// How the text of an element looks; `None` is unknown.
#[derive(Clone, Debug)]
pub struct Look {
    hidden: bool,
    invisible: bool,
    font: f32,
    color: Option<Rgb>,
    /// Whether the color is transparent.
    clear: bool,
    background: Option<Rgb>,
}

/// Text below this size, in CSS pixels, cannot be read.
const LEAST_FONT: f32 = 3.0;
/// Colors closer than this in each channel look the same.
const LEAST_CONTRAST: u8 = 16;
/// Elements moved by more than this are outside of the page.
const FAR: f32 = 500.0;

impl Look {
    /// That of a page without styles.
    pub fn page() -> Look {
        Look {
            hidden: false,
            invisible: false,
            font: 16.0,
            color: Some((0, 0, 0)),
            clear: false,
            background: Some((255, 255, 255)),
        }
    }

    /// Whether text with this look can be read.
    pub fn is_visible(&self) -> bool {
        !self.hidden
            && !self.invisible
            && !self.clear
            && self.font >= LEAST_FONT
            && !self.blends_in()
    }

    /// Whether nothing in the element can be seen, whatever its own look is.
    pub fn hides_all(&self) -> bool {
        self.hidden
    }

    fn blends_in(&self) -> bool {
        let (Some(color), Some(ground)) = (self.color, self.background) else { return false };
        let near = |one: u8, other: u8| one.abs_diff(other) < LEAST_CONTRAST;
        near(color.0, ground.0) && near(color.1, ground.1) && near(color.2, ground.2)
    }
}

/// A declaration that matters.
#[derive(Clone, Copy, Debug)]
enum Value {
    Display(bool),
    Visible(bool),
    Opacity(f32),
    /// Of the parent's size, and in pixels.
    Font(f32, f32),
    Color(Option<Rgb>),
    Clear,
    /// Transparent colors keep the parent's.
    Background(Option<Rgb>),
    Clips(bool),
    /// One of the two sizes of the box.
    Size(bool, f32),
    Placed(bool),
    /// Moved, if it is placed.
    Offset(f32),
    Moved(f32),
    Cut,
    CutIfPlaced,
}

#[derive(Clone, Copy, Debug)]
struct Declaration {
    value: Value,
    important: bool,
}

/// The rules of all style sheets, by a name that the last part of a selector asks for.
#[derive(Default)]
pub struct Sheets {
    rules: Vec<Rule>,
    by_key: HashMap<String, Vec<usize>>,
    left: usize,
}

struct Rule {
    selector: Vec<Compound>,
    weight: (usize, usize, usize),
    declarations: Vec<Declaration>,
}

/// A part of a selector without blanks, and whether the element that it describes is the parent
/// of the next part's.
#[derive(Clone, Debug, Default)]
struct Compound {
    name: Option<String>,
    id: Option<String>,
    classes: Vec<String>,
    attributes: Vec<(String, Option<String>)>,
    is_parent: bool,
}

impl Sheets {
    pub fn new() -> Sheets {
        Sheets { left: MAX_COMPARISONS, ..Sheets::default() }
    }

    /// Adds the text of a `style` element.
    pub fn add(&mut self, css: &str) {
        rules(&mut Parser::new(css), self, false);
    }

    fn add_rule(&mut self, selector: Vec<Compound>, declarations: Vec<Declaration>) {
        let Some(last) = selector.last() else { return };
        if self.rules.len() >= MAX_RULES {
            return;
        }
        let key = match last {
            Compound { id: Some(id), .. } => format!("#{id}"),
            Compound { classes, .. } if !classes.is_empty() => format!(".{}", classes[0]),
            Compound { name: Some(name), .. } => name.clone(),
            _ => "*".to_owned(),
        };
        self.by_key.entry(key).or_default().push(self.rules.len());
        let weight = selector.iter().fold((0, 0, 0), |(ids, classes, names), part| {
            (
                ids + usize::from(part.id.is_some()),
                classes + part.classes.len() + part.attributes.len(),
                names + usize::from(part.name.is_some()),
            )
        });
        self.rules.push(Rule { selector, weight, declarations });
    }

    /// The look of an element within one of another look.
    pub fn look(&mut self, dom: &Dom, id: Id, element: &Element, within: &Look) -> Look {
        let mut found = self.matching(dom, id, element);
        found.sort_by_key(|&rule| (self.rules[rule].weight, rule));
        let own = element.attribute("style").map(|css| declarations(&mut Parser::new(css)));
        let own = own.unwrap_or_default();
        let ruled = found.iter().flat_map(|&rule| &self.rules[rule].declarations);
        let ordered = attributes(element)
            .into_iter()
            .chain(ruled.clone().filter(|one| !one.important).map(|one| one.value))
            .chain(own.iter().filter(|one| !one.important).map(|one| one.value))
            .chain(ruled.filter(|one| one.important).map(|one| one.value))
            .chain(own.iter().filter(|one| one.important).map(|one| one.value));
        computed(ordered, within)
    }

    fn matching(&mut self, dom: &Dom, id: Id, element: &Element) -> Vec<usize> {
        if self.rules.is_empty() {
            return Vec::new();
        }
        let mut keys = vec!["*".to_owned(), element.name.local.to_string()];
        keys.extend(element.attribute("id").map(|id| format!("#{id}")));
        let classes = element.attribute("class").unwrap_or_default();
        keys.extend(classes.split_ascii_whitespace().take(32).map(|class| format!(".{class}")));
        keys.sort_unstable();
        keys.dedup();
        let mut found = Vec::new();
        for rule in keys.iter().filter_map(|key| self.by_key.get(key)).flatten() {
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            if self.matches(dom, id, &self.rules[*rule].selector) {
                found.push(*rule);
            }
        }
        found
    }

    /// Walks from the element up, with all parts of the selector that may describe its place.
    fn matches(&self, dom: &Dom, id: Id, selector: &[Compound]) -> bool {
        let (last, place) = (selector.last(), selector.len().saturating_sub(1));
        if !dom.element(id).zip(last).is_some_and(|(element, last)| last.describes(element)) {
            return false;
        }
        // Bit n: the parts from n on describe the way up to here.
        let (mut any, mut parents) = (0_u32, 1_u32 << place);
        let mut above = dom.nodes[id].parent;
        while any | parents != 0 {
            if (any | parents) & 1 != 0 {
                return true;
            }
            let Some(parent) = above else { return false };
            let Some(element) = dom.element(parent) else { return false };
            let mut next = 0;
            for (place, part) in selector.iter().enumerate().rev().skip(1) {
                let after = 1 << (place + 1);
                let may = parents & after != 0 || !part.is_parent && any & after != 0;
                if may && part.describes(element) {
                    next |= 1 << place;
                }
            }
            any |= parents;
            parents = next;
            above = dom.nodes[parent].parent;
        }
        false
    }
}

impl Compound {
    fn describes(&self, element: &Element) -> bool {
        let is = |name: &str, value: &str| element.attribute(name) == Some(value);
        let has_class = |class: &String| {
            let classes = element.attribute("class").unwrap_or_default();
            classes.split_ascii_whitespace().any(|one| one == class)
        };
        self.name.as_ref().is_none_or(|name| *element.name.local == **name)
            && self.id.as_ref().is_none_or(|id| is("id", id))
            && self.classes.iter().all(has_class)
            && self.attributes.iter().all(|(name, value)| match value {
                Some(value) => is(name, value),
                None => element.attribute(name).is_some(),
            })
    }

    fn is_empty(&self) -> bool {
        self.name.is_none()
            && self.id.is_none()
            && self.classes.is_empty()
            && self.attributes.is_empty()
    }
}

/// Reads the rules of a style sheet, or of a block for all screens in it.
fn rules(parser: &mut Parser, sheets: &mut Sheets, inside: bool) {
    loop {
        let start = parser.position();
        let mut at = None;
        // Up to the block of a rule.
        loop {
            match parser.next_including_whitespace_and_comments() {
                Ok(Token::CurlyBracketBlock) => break,
                Ok(Token::AtKeyword(name)) if at.is_none() => at = Some(name.to_ascii_lowercase()),
                // The end of a rule without a block. Its text is no selector.
                Ok(Token::Semicolon) if at.is_some() => break at = Some(String::new()),
                Ok(_) => {}
                Err(_) => return,
            }
        }
        let prelude = parser.slice_from(start).trim_end_matches('{').trim();
        let prelude = prelude.trim_start_matches("<!--").trim_start_matches("-->").trim_start();
        match at.as_deref() {
            None => {
                let block = parser.parse_nested_block(|parser| {
                    Ok::<_, cssparser::ParseError<()>>(declarations(parser))
                });
                for selector in selectors(prelude) {
                    sheets.add_rule(selector, block.clone().unwrap_or_default());
                }
            }
            Some("media") if !inside && for_all_screens(prelude) => {
                let _ = parser.parse_nested_block(|parser| {
                    rules(parser, sheets, true);
                    Ok::<_, cssparser::ParseError<()>>(())
                });
            }
            Some("") => {}
            Some(_) => {
                let _ = parser.parse_nested_block(|_| Ok::<_, cssparser::ParseError<()>>(()));
            }
        }
    }
}

fn for_all_screens(prelude: &str) -> bool {
    let media = prelude.to_ascii_lowercase();
    let media = media.trim_start_matches("@media").trim();
    media.split(',').any(|one| matches!(one.trim(), "" | "all" | "screen" | "only screen"))
}

/// The selectors of a rule that can be read.
fn selectors(prelude: &str) -> Vec<Vec<Compound>> {
    let mut parser = Parser::new(prelude);
    let mut found = Vec::new();
    let mut selector = Vec::new();
    let mut part = Compound::default();
    // Whether a blank came before, and whether the selector has something else.
    let (mut blank, mut unknown) = (false, false);
    loop {
        let token = parser.next_including_whitespace().cloned();
        let combines = matches!(
            token,
            Err(_) | Ok(Token::Comma | Token::WhiteSpace(_) | Token::Delim('>' | '+' | '~'))
        );
        if !combines && blank && !part.is_empty() {
            selector.push(std::mem::take(&mut part));
        }
        if !matches!(token, Ok(Token::WhiteSpace(_))) {
            blank = false;
        }
        match token {
            Ok(Token::WhiteSpace(_)) => blank = true,
            Ok(Token::Delim('>')) => {
                part.is_parent = true;
                selector.push(std::mem::take(&mut part));
            }
            Ok(Token::Delim('*')) => {}
            Ok(Token::Ident(name)) => part.name = Some(name.to_ascii_lowercase()),
            Ok(Token::IDHash(id) | Token::Hash(id)) => part.id = Some(id.to_string()),
            Ok(Token::Delim('.')) => match parser.next_including_whitespace() {
                Ok(Token::Ident(class)) => part.classes.push(class.to_string()),
                _ => unknown = true,
            },
            Ok(Token::SquareBracketBlock) => match attribute(&mut parser) {
                Some(attribute) => part.attributes.push(attribute),
                None => unknown = true,
            },
            Ok(Token::Comma) | Err(_) => {
                selector.push(std::mem::take(&mut part));
                let whole = std::mem::take(&mut selector);
                let known = !std::mem::take(&mut unknown) && whole.len() <= MAX_COMPOUNDS;
                if known && whole.last().is_some_and(|last| !last.is_parent) {
                    found.push(whole);
                }
                if token.is_err() {
                    return found;
                }
            }
            Ok(_) => unknown = true,
        }
    }
}

/// `name` or `name=value`.
fn attribute(parser: &mut Parser) -> Option<(String, Option<String>)> {
    parser
        .parse_nested_block(|parser| {
            let name = parser.expect_ident()?.to_ascii_lowercase();
            if parser.is_exhausted() {
                return Ok::<_, cssparser::ParseError<()>>((name, None));
            }
            parser.expect_delim('=')?;
            Ok((name, Some(parser.expect_ident_or_string()?.to_string())))
        })
        .ok()
}

/// A token of a declaration's value; functions with the tokens of their arguments.
#[derive(Clone, Debug)]
enum Word {
    Name(String),
    Hash(String),
    Number(f32, String),
    Percent(f32),
    Function(String, Vec<Word>),
    Url,
    Other,
}

/// The declarations of a block that matter.
fn declarations(parser: &mut Parser) -> Vec<Declaration> {
    let mut found = Vec::new();
    while found.len() < MAX_DECLARATIONS && !parser.is_exhausted() {
        let name = match parser.next() {
            Ok(Token::Ident(name)) => Some(name.to_ascii_lowercase()),
            Ok(Token::Semicolon) => continue,
            Ok(_) => None,
            Err(_) => break,
        };
        let colon = name.is_some() && matches!(parser.next(), Ok(Token::Colon));
        let (mut words, mut important) = (Vec::new(), false);
        loop {
            match word(parser) {
                Some(Word::Name(name)) if name == ";" => break,
                Some(Word::Name(name)) if name == "important" => important = true,
                Some(word) if words.len() < 32 => words.push(word),
                Some(_) => {}
                None => break,
            }
        }
        if let (Some(name), true) = (name, colon) {
            found.extend(values(&name, &words).map(|value| Declaration { value, important }));
        }
    }
    found
}

/// The next token; the end of a declaration is the name `;`.
fn word(parser: &mut Parser) -> Option<Word> {
    let token = parser.next().ok()?.clone();
    Some(match token {
        Token::Function(name) => {
            let inner = parser.parse_nested_block(|parser| {
                let mut words = Vec::new();
                while let Ok(token) = parser.next() {
                    if words.len() < 16 {
                        words.push(plain(token));
                    }
                }
                Ok::<_, cssparser::ParseError<()>>(words)
            });
            Word::Function(name.to_ascii_lowercase(), inner.unwrap_or_default())
        }
        token => plain(&token),
    })
}

fn plain(token: &Token) -> Word {
    match token {
        Token::Semicolon => Word::Name(";".to_owned()),
        Token::Ident(name) => Word::Name(name.to_ascii_lowercase()),
        Token::Hash(value) | Token::IDHash(value) => Word::Hash(value.to_string()),
        Token::Number { value, .. } => Word::Number(*value, String::new()),
        Token::Dimension { value, unit, .. } => Word::Number(*value, unit.to_ascii_lowercase()),
        Token::Percentage { unit_value, .. } => Word::Percent(*unit_value),
        Token::UnquotedUrl(_) => Word::Url,
        _ => Word::Other,
    }
}

/// The meaning of a declaration.
fn values(name: &str, words: &[Word]) -> impl Iterator<Item = Value> {
    let first = words.first();
    let is = |wanted: &str| matches!(first, Some(Word::Name(name)) if name == wanted);
    let length = || first.and_then(pixels);
    let value = match name {
        "display" => Some(Value::Display(!is("none"))),
        "visibility" if !is("inherit") => Some(Value::Visible(!is("hidden") && !is("collapse"))),
        "opacity" => match first {
            Some(Word::Number(share, _) | Word::Percent(share)) => Some(Value::Opacity(*share)),
            _ => None,
        },
        "font-size" => first.and_then(font),
        "font" => words.iter().find_map(|word| match word {
            // A number without a unit is the weight.
            Word::Number(number, unit) if unit.is_empty() && *number != 0.0 => None,
            Word::Number(..) | Word::Percent(_) => font(word),
            _ => None,
        }),
        "color" if first.is_some_and(is_transparent) => Some(Value::Clear),
        "color" if !is("inherit") => Some(Value::Color(first.and_then(color).flatten())),
        "background" | "background-color" | "background-image" => background(words),
        "overflow" | "overflow-x" | "overflow-y" => {
            Some(Value::Clips(is("hidden") || is("clip") || is("scroll") || is("auto")))
        }
        "height" | "max-height" => Some(Value::Size(true, length().unwrap_or(f32::MAX))),
        "width" | "max-width" => Some(Value::Size(false, length().unwrap_or(f32::MAX))),
        "position" => Some(Value::Placed(is("absolute") || is("fixed") || is("relative"))),
        "left" | "top" | "right" | "bottom" => length().map(Value::Offset),
        "text-indent" | "margin-left" | "margin-top" | "margin-right" => length().map(Value::Moved),
        "margin" => words.iter().filter_map(pixels).min_by(f32::total_cmp).map(Value::Moved),
        "clip" => match first {
            Some(Word::Function(name, sides)) if name == "rect" => sides
                .iter()
                .filter_map(pixels)
                .all(|side| side <= 1.0)
                .then_some(Value::CutIfPlaced),
            _ => None,
        },
        "clip-path" => match first {
            Some(Word::Function(name, sides)) => match (name.as_str(), sides.first()) {
                ("inset", Some(Word::Percent(share))) if *share >= 0.5 => Some(Value::Cut),
                ("circle" | "ellipse", Some(Word::Number(size, _))) if *size <= 0.0 => {
                    Some(Value::Cut)
                }
                _ => None,
            },
            _ => None,
        },
        "transform" => words.iter().find_map(|word| match word {
            Word::Function(name, by) if name.starts_with("scale") => match by.first() {
                Some(Word::Number(factor, _)) if factor.abs() < 0.05 => Some(Value::Cut),
                _ => None,
            },
            Word::Function(name, by) if name.starts_with("translate") => {
                by.iter().filter_map(pixels).min_by(f32::total_cmp).map(Value::Moved)
            }
            _ => None,
        }),
        _ => None,
    };
    value.into_iter()
}

/// A length in CSS pixels. Shares of an unknown whole have none.
fn pixels(word: &Word) -> Option<f32> {
    match word {
        Word::Number(number, unit) => match unit.as_str() {
            "" | "px" => Some(*number),
            "pt" => Some(number * 4.0 / 3.0),
            "em" | "rem" | "ch" | "pc" => Some(number * 16.0),
            "ex" => Some(number * 8.0),
            "cm" => Some(number * 37.8),
            "mm" => Some(number * 3.78),
            "in" => Some(number * 96.0),
            // Of a window of 1000 pixels.
            "vw" | "vh" | "vmin" | "vmax" => Some(number * 10.0),
            _ => None,
        },
        Word::Percent(0.0) => Some(0.0),
        // Of the window.
        Word::Percent(share) if share.abs() >= 1.0 => Some(share * 1000.0),
        _ => None,
    }
}

fn font(word: &Word) -> Option<Value> {
    match word {
        Word::Percent(share) => Some(Value::Font(*share, 0.0)),
        Word::Number(number, unit) if unit == "em" => Some(Value::Font(*number, 0.0)),
        Word::Name(name) => match name.as_str() {
            "inherit" => Some(Value::Font(1.0, 0.0)),
            "smaller" => Some(Value::Font(0.8, 0.0)),
            "larger" => Some(Value::Font(1.2, 0.0)),
            _ => Some(Value::Font(0.0, 16.0)),
        },
        word => pixels(word).map(|size| Value::Font(0.0, size)),
    }
}

/// A color: `Some(None)` is one that cannot be compared, `None` is no color.
fn color(word: &Word) -> Option<Option<Rgb>> {
    match word {
        Word::Hash(value) => {
            let (red, green, blue, _) = parse_hash_color(value.as_bytes()).ok()?;
            Some(Some((red, green, blue)))
        }
        Word::Name(name) => parse_named_color(name).ok().map(Some),
        Word::Function(name, parts) if name == "rgb" || name == "rgba" => {
            let mut channels = parts.iter().filter_map(|part| match part {
                Word::Number(number, _) => Some(*number),
                Word::Percent(share) => Some(share * 255.0),
                _ => None,
            });
            let mut channel = || channels.next().map(|value| value.clamp(0.0, 255.0) as u8);
            Some(Some((channel()?, channel()?, channel()?)))
        }
        Word::Function(name, _) if name.starts_with("hsl") || name == "var" => Some(None),
        _ => None,
    }
}

/// Whether a color cannot be seen at all.
fn is_transparent(word: &Word) -> bool {
    match word {
        Word::Name(name) => name == "transparent",
        Word::Hash(value) => {
            parse_hash_color(value.as_bytes()).is_ok_and(|(_, _, _, alpha)| alpha < 0.05)
        }
        Word::Function(name, parts) if name == "rgba" || name == "rgb" => {
            let mut numbers = parts.iter().filter(|part| !matches!(part, Word::Other));
            match numbers.clone().count() {
                4 => matches!(
                    numbers.next_back(),
                    Some(Word::Number(alpha, _) | Word::Percent(alpha)) if *alpha < 0.05
                ),
                _ => false,
            }
        }
        _ => false,
    }
}

fn background(words: &[Word]) -> Option<Value> {
    let image = words.iter().any(|word| {
        matches!(word, Word::Url)
            || matches!(word, Word::Function(name, _) if !name.starts_with("rgb"))
    });
    if image {
        return Some(Value::Background(None));
    }
    let word = words.iter().find(|word| color(word).is_some())?;
    (!is_transparent(word)).then(|| Value::Background(color(word).flatten()))
}

/// Declarations in the form of attributes.
fn attributes(element: &Element) -> Vec<Value> {
    let mut values = Vec::new();
    let name = element.html();
    if name == "a" && element.attribute("href").is_some() {
        values.push(Value::Color(Some((0, 0, 238))));
    }
    for (attribute, value) in &element.attributes {
        match &**attribute {
            "hidden" => values.push(Value::Display(false)),
            "bgcolor" => values.extend(legacy(value).map(|color| Value::Background(Some(color)))),
            "background" => values.push(Value::Background(None)),
            "color" if name == "font" => {
                values.extend(legacy(value).map(|color| Value::Color(Some(color))));
            }
            "text" if name == "body" => {
                values.extend(legacy(value).map(|color| Value::Color(Some(color))));
            }
            _ => {}
        }
    }
    let is_open = element.attribute("open").is_some();
    let is_hidden_input = name == "input" && element.attribute("type") == Some("hidden");
    if name == "dialog" && !is_open || is_hidden_input {
        values.push(Value::Display(false));
    }
    values
}

/// A color of an attribute, where `#` may be missing.
fn legacy(value: &str) -> Option<Rgb> {
    let value = value.trim();
    let digits = value.strip_prefix('#').unwrap_or(value);
    let hash =
        parse_hash_color(digits.as_bytes()).ok().map(|(red, green, blue, _)| (red, green, blue));
    parse_named_color(&value.to_ascii_lowercase()).ok().or(hash)
}

/// The look that declarations give, the last one of a kind counts.
fn computed(values: impl Iterator<Item = Value>, within: &Look) -> Look {
    let mut look = within.clone();
    let (mut displayed, mut opacity, mut clips) = (true, 1.0, false);
    let (mut height, mut width) = (f32::MAX, f32::MAX);
    let (mut placed, mut offset, mut moved) = (false, 0.0_f32, 0.0_f32);
    let (mut cut, mut cut_if_placed) = (false, false);
    for value in values {
        match value {
            Value::Display(shown) => displayed = shown,
            Value::Visible(visible) => look.invisible = !visible,
            Value::Opacity(share) => opacity = share,
            Value::Font(share, size) => look.font = within.font * share + size,
            Value::Color(color) => (look.color, look.clear) = (color, false),
            Value::Clear => look.clear = true,
            Value::Background(color) => look.background = color,
            Value::Clips(hidden) => clips = hidden,
            Value::Size(true, size) => height = size,
            Value::Size(false, size) => width = size,
            Value::Placed(yes) => placed = yes,
            Value::Offset(by) => offset = if by.abs() > offset.abs() { by } else { offset },
            Value::Moved(by) => moved = moved.min(by),
            Value::Cut => cut = true,
            Value::CutIfPlaced => cut_if_placed = true,
        }
    }
    let outside = placed && (offset <= -FAR || offset >= 5.0 * FAR) || moved <= -FAR;
    look.hidden |= !displayed
        || opacity < 0.05
        || clips && (height < LEAST_FONT || width < LEAST_FONT)
        || outside
        || cut
        || cut_if_placed && placed;
    look
}
