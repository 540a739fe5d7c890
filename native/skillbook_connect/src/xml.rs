//! XML of calendar servers, as a flat list of elements with their depths.
//!
//! Entities other than those of XML itself, document types and names without a declared prefix are
//! errors. There is no recursion, and depth, count and size have limits.

use quick_xml::events::Event;
use quick_xml::name::ResolveResult;
use quick_xml::{NsReader, XmlVersion};

/// The deepest nesting; answers of CalDAV need ten levels.
pub const MAX_DEPTH: usize = 32;
/// The most elements of an answer.
pub const MAX_ELEMENTS: usize = 200_000;
/// The longest name of a namespace in bytes. Each of its elements gets a copy.
pub const MAX_NAMESPACE: usize = 200;

/// An element.
#[derive(Debug, PartialEq, Eq)]
pub struct Element {
    /// 0 for the root.
    pub depth: usize,
    /// The namespace and the name: `DAV:href` of the namespace `DAV:`, with a blank between them.
    pub name: String,
    /// The text directly in it.
    pub text: String,
    /// Attributes by their local names.
    pub attributes: Vec<(String, String)>,
}

/// The elements in the order of their start tags; `None` if it is not well-formed or too large.
pub fn elements(xml: &[u8]) -> Option<Vec<Element>> {
    let text = std::str::from_utf8(xml).ok()?;
    let mut reader = NsReader::from_str(text);
    let mut elements: Vec<Element> = Vec::new();
    // The open elements, by their positions.
    let mut open: Vec<usize> = Vec::new();
    loop {
        let (namespace, event) = reader.read_resolved_event().ok()?;
        match event {
            Event::Start(ref tag) | Event::Empty(ref tag) => {
                if open.len() >= MAX_DEPTH || elements.len() >= MAX_ELEMENTS {
                    return None;
                }
                // One root.
                if open.is_empty() && !elements.is_empty() {
                    return None;
                }
                let namespace = match namespace {
                    ResolveResult::Bound(name) => name.into_inner(),
                    ResolveResult::Unbound => "",
                    ResolveResult::Unknown(_) => return None,
                };
                if namespace.len() > MAX_NAMESPACE {
                    return None;
                }
                let name = format!("{namespace} {}", tag.local_name().into_inner());
                let mut attributes = Vec::new();
                for attribute in tag.attributes() {
                    let attribute = attribute.ok()?;
                    let key = attribute.key.local_name().into_inner();
                    let value = attribute.normalized_value(XmlVersion::Implicit1_0).ok()?;
                    attributes.push((key.to_owned(), value.into_owned()));
                }
                elements.push(Element { depth: open.len(), name, text: String::new(), attributes });
                if matches!(event, Event::Start(_)) {
                    open.push(elements.len() - 1);
                }
            }
            Event::End(_) => {
                open.pop()?;
            }
            Event::Text(part) => {
                let part = part.xml10_content();
                match open.last() {
                    Some(&at) => elements[at].text.push_str(&part),
                    None if part.trim().is_empty() => {}
                    None => return None,
                }
            }
            Event::CData(part) => {
                let part = part.xml10_content();
                elements[*open.last()?].text.push_str(&part);
            }
            Event::GeneralRef(entity) => {
                let character = match entity.resolve_char_ref().ok()? {
                    Some(character) => character,
                    None => match &*entity {
                        "lt" => '<',
                        "gt" => '>',
                        "amp" => '&',
                        "apos" => '\'',
                        "quot" => '"',
                        _ => return None,
                    },
                };
                elements[*open.last()?].text.push(character);
            }
            Event::DocType(_) => return None,
            Event::Eof => return (open.is_empty() && !elements.is_empty()).then_some(elements),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(xml: &str) -> Option<Vec<(usize, String, String)>> {
        let found = elements(xml.as_bytes())?;
        Some(found.into_iter().map(|one| (one.depth, one.name, one.text)).collect())
    }

    #[test]
    fn an_answer() {
        let xml = r#"<?xml version="1.0"?>
            <a:multistatus xmlns:a="DAV:" xmlns="urn:c"><a:href>/x&amp;y&#65;</a:href>
            <prop name="n&lt;"/><![CDATA[<b>]]></a:multistatus>"#;
        let found = elements(xml.as_bytes()).unwrap();
        let names: Vec<_> = found.iter().map(|one| (one.depth, one.name.as_str())).collect();
        assert_eq!(names, [(0, "DAV: multistatus"), (1, "DAV: href"), (1, "urn:c prop")]);
        assert_eq!(found[1].text, "/x&yA");
        assert_eq!(found[0].text.trim(), "<b>");
        assert_eq!(found[2].attributes, [("name".to_owned(), "n<".to_owned())]);
    }

    #[test]
    fn what_is_refused() {
        for xml in [
            "",
            "text",
            "<a>",
            "</a>",
            "<a></b>",
            "<a/><b/>",
            "<a/>text",
            "<a>&nbsp;</a>",
            "<a>&#0;</a>",
            "<p:a/>",
            "<a b=c/>",
            "<a b='1' b='2'/>",
            "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
            "<!DOCTYPE a SYSTEM 'http://example.com/a.dtd'><a/>",
        ] {
            assert_eq!(names(xml), None, "{xml}");
        }
        assert_eq!(elements(b"<a>\xff</a>"), None);
    }

    #[test]
    fn limits() {
        let nested = |depth: usize| "<a>".repeat(depth) + &"</a>".repeat(depth);
        assert_eq!(names(&nested(MAX_DEPTH)).map(|all| all.len()), Some(MAX_DEPTH));
        assert_eq!(names(&nested(MAX_DEPTH + 1)), None);
        assert_eq!(names(&nested(1_000_000)), None);
        let many = |count: usize| format!("<a>{}</a>", "<b/>".repeat(count));
        assert!(names(&many(MAX_ELEMENTS - 1)).is_some());
        assert_eq!(names(&many(MAX_ELEMENTS)), None);
        // A long name of a namespace would be copied for each of its elements.
        let named = |length: usize| format!("<a xmlns='{}'><b/></a>", "n".repeat(length));
        assert_eq!(names(&named(MAX_NAMESPACE)).map(|all| all.len()), Some(2));
        assert_eq!(names(&named(MAX_NAMESPACE + 1)), None);
        let prefixed = named(MAX_NAMESPACE + 1).replace("xmlns", "xmlns:p").replace("<b", "<p:b");
        assert_eq!(names(&prefixed), None);
    }
}
