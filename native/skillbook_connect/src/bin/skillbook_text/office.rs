//! Texts and slides, of the formats of Microsoft Office and OpenDocument.

use std::collections::HashMap;

use crate::archive::{Archive, Piece};
use crate::output::Output;

/// The most slides of a presentation.
const MAX_SLIDES: usize = 5000;
/// The most blanks and cells that one element of OpenDocument repeats.
const MAX_REPEATED: usize = 100;

/// A text document. Headings begin with `#`, cells are divided by ` | `. Deleted and hidden text
/// is left out.
pub fn docx(document: &[u8]) -> Result<String, String> {
    let mut archive = Archive::open(document)?;
    let mut out = Output::default();
    for name in ["word/document.xml", "word/footnotes.xml", "word/endnotes.xml"] {
        if name != "word/document.xml" && !archive.has(name) {
            continue;
        }
        let mut words = Words::default();
        archive.xml(name, |piece| words.piece(piece, &mut out))?;
        out.line(2);
    }
    out.finish()
}

/// The state of a text document's walk.
#[derive(Default)]
struct Words {
    /// Within `w:t`, and within the properties of a run.
    in_text: bool,
    in_properties: bool,
    /// The run is hidden.
    hidden: bool,
    /// Tables around, and cells before in the row.
    tables: usize,
    cells: usize,
    heading: usize,
    in_list: bool,
    /// A paragraph has ended in the cell.
    gap: bool,
}

impl Words {
    fn piece(&mut self, piece: Piece, out: &mut Output) -> Result<(), String> {
        match piece {
            Piece::Text(text) if self.in_text && !self.hidden => {
                let heading = std::mem::take(&mut self.heading);
                if heading > 0 {
                    out.add(&format!("{} ", "#".repeat(heading)))?;
                } else if std::mem::take(&mut self.in_list) {
                    out.add("- ")?;
                }
                if std::mem::take(&mut self.gap) {
                    out.add(" ")?;
                }
                out.add(text)
            }
            Piece::Text(_) => Ok(()),
            Piece::Start(name, attribute) => {
                match name {
                    "t" => self.in_text = true,
                    "r" => self.hidden = false,
                    "rPr" => self.in_properties = true,
                    "vanish" if self.in_properties => {
                        let off = attribute("val").is_some_and(|value| is_off(&value));
                        self.hidden |= !off;
                    }
                    "tab" if !self.in_properties && !self.hidden => out.add("\t")?,
                    "br" | "cr" if !self.hidden => out.line(1),
                    "pStyle" => {
                        let style = attribute("val").unwrap_or_default().to_lowercase();
                        let level = style.strip_prefix("heading").map(str::trim);
                        let level = level.and_then(|level| level.parse::<usize>().ok());
                        self.heading = match level {
                            Some(level) => level.clamp(1, 6),
                            None => usize::from(style == "title"),
                        };
                    }
                    "numPr" => self.in_list = true,
                    "tbl" => self.tables += 1,
                    "tr" => self.cells = 0,
                    "tc" => {
                        if self.cells > 0 {
                            out.add(" | ")?;
                        }
                        self.cells += 1;
                        self.gap = false;
                    }
                    _ => {}
                }
                Ok(())
            }
            Piece::End(name) => {
                match name {
                    "t" => self.in_text = false,
                    "r" => self.hidden = false,
                    "rPr" => self.in_properties = false,
                    "p" => {
                        (self.heading, self.in_list) = (0, false);
                        if self.tables == 0 {
                            out.line(2);
                        } else {
                            self.gap = true;
                        }
                    }
                    "tr" => out.line(1),
                    "tbl" => {
                        self.tables = self.tables.saturating_sub(1);
                        self.gap = false;
                        out.line(2);
                    }
                    _ => {}
                }
                Ok(())
            }
        }
    }
}

fn is_off(value: &str) -> bool {
    matches!(value, "0" | "false" | "off" | "none")
}

/// A presentation, each slide under a heading.
pub fn pptx(document: &[u8]) -> Result<String, String> {
    let mut archive = Archive::open(document)?;
    let mut out = Output::default();
    for (number, slide) in slides(&mut archive)?.iter().enumerate() {
        out.line(2);
        out.add(&format!("# Slide {}", number + 1))?;
        out.line(2);
        let mut in_text = false;
        archive.xml(slide, |piece| {
            match piece {
                Piece::Start("t", _) => in_text = true,
                Piece::End("t") => in_text = false,
                Piece::Start("br", _) | Piece::End("p" | "tr") => out.line(1),
                Piece::Start("tc", _) => out.line(1),
                Piece::Text(text) if in_text => out.add(text)?,
                _ => {}
            }
            Ok(())
        })?;
    }
    out.finish()
}

/// The files of the slides, in their order.
fn slides(archive: &mut Archive) -> Result<Vec<String>, String> {
    let mut targets = HashMap::new();
    archive.xml("ppt/_rels/presentation.xml.rels", |piece| {
        if let Piece::Start("Relationship", attribute) = piece {
            if let (Some(id), Some(target)) = (attribute("Id"), attribute("Target")) {
                targets.insert(id, target);
            }
        }
        Ok(())
    })?;
    let mut slides = Vec::new();
    archive.xml("ppt/presentation.xml", |piece| {
        if let Piece::Start("sldId", attribute) = piece {
            // The attributes `id` and `r:id` have the same local name, and only one is a key.
            let ids = [attribute("r:id"), attribute("id")];
            let target = ids.into_iter().flatten().find_map(|id| targets.get(&id));
            if let Some(target) = target {
                let target = target.trim_start_matches('/');
                let whole = target.starts_with("ppt/");
                slides.push(if whole { target.to_owned() } else { format!("ppt/{target}") });
            }
        }
        if slides.len() > MAX_SLIDES {
            return Err(format!("it has more than {MAX_SLIDES} slides"));
        }
        Ok(())
    })?;
    Ok(slides)
}

/// A text, table or presentation in OpenDocument's format.
pub fn open_document(document: &[u8]) -> Result<String, String> {
    let mut archive = Archive::open(document)?;
    let mut out = Output::default();
    let mut content = Content::default();
    archive.xml("content.xml", |piece| content.piece(piece, &mut out))?;
    out.finish()
}

#[derive(Default)]
struct Content {
    /// Paragraphs around, whose text is shown.
    paragraphs: usize,
    /// Elements around whose text is not shown: deleted text, comments and hidden text.
    left_out: usize,
    tables: usize,
    cells: usize,
    items: bool,
}

impl Content {
    fn piece(&mut self, piece: Piece, out: &mut Output) -> Result<(), String> {
        match piece {
            Piece::Text(text) if self.paragraphs > 0 && self.left_out == 0 => {
                if std::mem::take(&mut self.items) {
                    out.add("- ")?;
                }
                out.add(text)
            }
            Piece::Text(_) => Ok(()),
            Piece::Start(name, attribute) => {
                let count = |name: &str| {
                    let count = attribute(name).and_then(|count| count.parse::<usize>().ok());
                    count.unwrap_or(1).min(MAX_REPEATED)
                };
                match name {
                    "tracked-changes" | "annotation" | "hidden-text" | "hidden-paragraph" => {
                        self.left_out += 1;
                    }
                    "p" => self.paragraphs += 1,
                    "h" => {
                        self.paragraphs += 1;
                        let level = count("outline-level").clamp(1, 6);
                        out.add(&format!("{} ", "#".repeat(level)))?;
                    }
                    "s" => out.add(&" ".repeat(count("c")))?,
                    "tab" => out.add("\t")?,
                    "line-break" => out.line(1),
                    "list-item" => self.items = true,
                    "page" => {
                        out.line(2);
                        let name = attribute("name").unwrap_or_default();
                        out.add(&format!("# {name}"))?;
                        out.line(2);
                    }
                    "table" => {
                        self.tables += 1;
                        out.line(2);
                        if let Some(name) = attribute("name") {
                            out.add(&format!("# {name}"))?;
                            out.line(2);
                        }
                    }
                    "table-row" => self.cells = 0,
                    "table-cell" | "covered-table-cell" => {
                        if self.cells > 0 {
                            out.add(" | ")?;
                        }
                        self.cells += 1;
                    }
                    _ => {}
                }
                Ok(())
            }
            Piece::End(name) => {
                match name {
                    "tracked-changes" | "annotation" | "hidden-text" | "hidden-paragraph" => {
                        self.left_out = self.left_out.saturating_sub(1);
                    }
                    "p" | "h" => {
                        self.paragraphs = self.paragraphs.saturating_sub(1);
                        if self.tables == 0 {
                            out.line(2);
                        }
                    }
                    "list-item" => self.items = false,
                    "table-row" => out.line(1),
                    "table" => {
                        self.tables = self.tables.saturating_sub(1);
                        out.line(2);
                    }
                    _ => {}
                }
                Ok(())
            }
        }
    }
}
