//! The files in an office document, which is a zip archive.

use std::io::{BufReader, Cursor, Read};

use quick_xml::events::Event;
use quick_xml::Reader;
use zip::ZipArchive;

/// The most files of an archive, and the most bytes that are unpacked, of all files together.
const MAX_FILES: usize = 10_000;
const MAX_UNPACKED: u64 = 128 << 20;
/// The deepest nesting of elements.
const MAX_DEPTH: usize = 1000;

pub struct Archive<'a> {
    zip: ZipArchive<Cursor<&'a [u8]>>,
    /// Bytes that may still be unpacked.
    left: u64,
}

/// A start or an end of an element, or text.
pub enum Piece<'a> {
    /// The local name, and a function that finds an attribute by its name or local name.
    Start(&'a str, &'a dyn Fn(&str) -> Option<String>),
    End(&'a str),
    Text(&'a str),
}

impl Archive<'_> {
    pub fn open(document: &[u8]) -> Result<Archive<'_>, String> {
        // An encrypted document is a file of another format.
        if document.starts_with(b"\xd0\xcf\x11\xe0") {
            return Err("it is encrypted, or of an old format; save it without a password as \
                        docx, xlsx or pptx"
                .to_owned());
        }
        let zip = ZipArchive::new(Cursor::new(document))
            .map_err(|_| "the file is damaged: it is not a zip archive".to_owned())?;
        if zip.len() > MAX_FILES {
            return Err(format!("it has {} files, and at most {MAX_FILES} are read", zip.len()));
        }
        Ok(Archive { zip, left: MAX_UNPACKED })
    }

    pub fn has(&self, name: &str) -> bool {
        self.zip.index_for_name(name).is_some()
    }

    /// Reads the XML of a file, piece by piece.
    pub fn xml(
        &mut self,
        name: &str,
        mut piece: impl FnMut(Piece) -> Result<(), String>,
    ) -> Result<(), String> {
        let damaged = |what: &str| format!("the file is damaged: {what} in {name}");
        let file = self.zip.by_name(name).map_err(|_| damaged("nothing can be read"))?;
        if file.encrypted() {
            return Err("it is encrypted; save it without a password".to_owned());
        }
        let limit = self.left;
        let mut xml = Reader::from_reader(BufReader::new(file.take(limit)));
        let (mut buffer, mut depth) = (Vec::new(), 0_usize);
        loop {
            buffer.clear();
            let event = xml.read_event_into(&mut buffer);
            match event.map_err(|_| damaged("no XML"))? {
                Event::Start(start) => {
                    depth += 1;
                    if depth > MAX_DEPTH {
                        return Err(damaged("too deep nesting"));
                    }
                    begin(&start, &mut piece)?;
                }
                Event::Empty(start) => {
                    begin(&start, &mut piece)?;
                    piece(Piece::End(start.local_name().as_ref()))?;
                }
                Event::End(end) => {
                    depth = depth.saturating_sub(1);
                    piece(Piece::End(end.local_name().as_ref()))?;
                }
                Event::Text(content) => piece(Piece::Text(&content))?,
                Event::CData(content) => piece(Piece::Text(&content))?,
                Event::GeneralRef(reference) => {
                    piece(Piece::Text(&character(&reference)))?;
                }
                Event::Eof => break,
                _ => {}
            }
        }
        let read = limit - xml.into_inner().into_inner().limit();
        self.left -= read;
        if self.left == 0 {
            return Err(format!("it unpacks to more than {MAX_UNPACKED} bytes"));
        }
        Ok(())
    }
}

fn begin(
    start: &quick_xml::events::BytesStart,
    piece: &mut impl FnMut(Piece) -> Result<(), String>,
) -> Result<(), String> {
    let attribute = |wanted: &str| {
        let mut all = start.attributes();
        let found = all.with_checks(false).flatten().take(100);
        let mut found = found
            .filter(|one| one.key.as_ref() == wanted || one.key.local_name().as_ref() == wanted);
        found.next().map(|one| one.value.into_owned())
    };
    piece(Piece::Start(start.local_name().as_ref(), &attribute))
}

/// The character of a reference. Others than XML's own have no meaning here.
fn character(name: &str) -> String {
    let number = name.strip_prefix('#');
    let code = match (number, number.and_then(|number| number.strip_prefix(['x', 'X']))) {
        (_, Some(hex)) => u32::from_str_radix(hex, 16).ok(),
        (Some(decimal), _) => decimal.parse().ok(),
        (None, _) => match name {
            "lt" => Some(60),
            "gt" => Some(62),
            "amp" => Some(38),
            "quot" => Some(34),
            "apos" => Some(39),
            _ => None,
        },
    };
    let char = code.and_then(char::from_u32).filter(|char| !char.is_control() || *char == '\n');
    char.unwrap_or('\u{fffd}').to_string()
}
