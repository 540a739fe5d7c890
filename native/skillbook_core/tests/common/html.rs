//! A strict reader of the HTML that Markdown becomes, for tests and the fuzzer.

use skillbook_core::markdown::TAGS;

/// Reads the HTML strictly: only known tags with known attributes, quoted and escaped, closed in
/// order, and children where they may be.
pub fn check(html: &str) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find(['<', '>', '&', '"', '\'']) {
        match rest.as_bytes()[at] {
            b'<' => {}
            b'&' => {
                let known = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
                let end = known.iter().find(|known| rest[at..].starts_with(**known));
                rest = &rest[at + end.ok_or("a bare &")?.len()..];
                continue;
            }
            other => return Err(format!("a bare {:?}", char::from(other))),
        }
        if ["table", "thead", "tbody", "tr", "ul", "ol"].contains(open.last().unwrap_or(&""))
            && !rest[..at].trim().is_empty()
        {
            return Err(format!("text in {open:?}"));
        }
        let end = rest[at..].find('>').ok_or("an open tag")? + at;
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            let last = open.pop();
            if last != Some(name) {
                return Err(format!("</{name}> closes {last:?}"));
            }
            continue;
        }
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        let (name, allowed) =
            TAGS.iter().find(|(known, _)| *known == name).ok_or(format!("<{name}>"))?;
        for attribute in attributes.split("\" ").filter(|text| !text.is_empty()) {
            let (key, value) = attribute.split_once("=\"").ok_or(attribute.to_owned())?;
            let value = value.trim_end_matches('"');
            if !allowed.contains(&key) || value.contains(['<', '"', '\'']) {
                return Err(format!("{name} {key}={value}"));
            }
            if key == "href" {
                let lower = value.to_ascii_lowercase();
                let starts = ["http:", "https:", "mailto:", "/files/", "/a%20b/"];
                if !starts.iter().any(|start| lower.starts_with(start)) {
                    return Err(value.to_owned());
                }
            }
        }
        let inside = open.last().copied().unwrap_or("");
        let fits = match *name {
            "li" => ["ul", "ol"].contains(&inside),
            "tr" => ["thead", "table"].contains(&inside),
            "th" | "td" => inside == "tr",
            "thead" => inside == "table",
            "a" => !open.contains(&"a"),
            "p" | "pre" | "ul" | "ol" | "blockquote" | "table" | "div" | "hr" => {
                !["p", "h2"].contains(&inside)
            }
            _ => true,
        };
        if !fits {
            return Err(format!("<{name}> in {open:?}"));
        }
        if !["br", "hr"].contains(name) {
            open.push(name);
        }
    }
    if open.is_empty() {
        Ok(())
    } else {
        Err(format!("open: {open:?}"))
    }
}
