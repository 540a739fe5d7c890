//! PDF, page by page.

use pdf_extract::{output_doc_page, Document, PlainTextOutput};

use crate::output::{Output, MAX_TEXT};

/// The most pages.
const MAX_PAGES: usize = 5000;

pub fn text(document: &[u8]) -> Result<String, String> {
    let mut pdf =
        Document::load_mem(document).map_err(|error| format!("the file is damaged: {error}"))?;
    if pdf.is_encrypted() && pdf.decrypt("").is_err() {
        return Err("it is encrypted; save it without a password".to_owned());
    }
    let pages = pdf.get_pages();
    if pages.len() > MAX_PAGES {
        return Err(format!("it has {} pages, and at most {MAX_PAGES} are read", pages.len()));
    }
    let mut out = Output::default();
    for number in pages.keys() {
        let mut page = String::new();
        let result = output_doc_page(&pdf, &mut PlainTextOutput::new(&mut page), *number);
        if let Err(error) = result {
            return Err(format!("the page {number} cannot be read: {error}"));
        }
        if page.len() > MAX_TEXT {
            return Err(format!("it has more than {MAX_TEXT} bytes of text"));
        }
        for line in page.lines() {
            match line.trim_end() {
                "" => out.line(2),
                line => {
                    out.add(line)?;
                    out.line(1);
                }
            }
        }
        out.line(2);
    }
    out.finish()
}
