//! Takes the text out of a document: `skillbook_text KIND`, with the kind `pdf`, `docx`, `xlsx`,
//! `pptx`, `odt`, `ods` or `odp`. Standard input is the number of bytes, as 4 bytes with the
//! highest first, and the document. Standard output is its text, with the status 0, or the reason
//! why it cannot be read, with the status 1.
//!
//! A program of its own, because parsers of such files are large, may panic or overflow their
//! stack, and need memory that a file decides. Its limits are set before it reads anything; the
//! caller has a limit of time, too.

mod archive;
mod office;
mod output;
mod pdf;
mod sheet;

use std::io::{Read, Write};
use std::panic::catch_unwind;
use std::process::ExitCode;

use rustix::process::{setrlimit, Resource, Rlimit};

/// The most memory, in bytes, and the most time of a processor, in seconds.
const MAX_MEMORY: u64 = 1 << 30;
const MAX_SECONDS: u64 = 60;
/// The most bytes of a document.
const MAX_BYTES: usize = 64 << 20;

fn main() -> ExitCode {
    let result = limit().and_then(|()| read()).and_then(|(kind, document)| {
        // The message of a panic is no use to the reader.
        std::panic::set_hook(Box::new(|_| {}));
        catch_unwind(|| text(&kind, &document))
            .unwrap_or_else(|_| Err("the file is damaged".to_owned()))
    });
    let (output, status) = match result {
        Ok(text) => (text, ExitCode::SUCCESS),
        Err(reason) => (reason, ExitCode::FAILURE),
    };
    match std::io::stdout().write_all(output.as_bytes()) {
        Ok(()) => status,
        Err(_) => ExitCode::FAILURE,
    }
}

fn limit() -> Result<(), String> {
    for (resource, most) in [
        (Resource::As, MAX_MEMORY),
        (Resource::Cpu, MAX_SECONDS),
        (Resource::Core, 0),
        (Resource::Fsize, 0),
    ] {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })
            .map_err(|error| format!("a limit cannot be set: {error}"))?;
    }
    Ok(())
}

fn read() -> Result<(String, Vec<u8>), String> {
    let kind = std::env::args().nth(1).unwrap_or_default();
    let mut input = std::io::stdin().lock();
    let mut size = [0; 4];
    input.read_exact(&mut size).map_err(|_| "the document is missing".to_owned())?;
    let size = u32::from_be_bytes(size) as usize;
    if size > MAX_BYTES {
        return Err(format!("it has {size} bytes, and at most {MAX_BYTES} are read"));
    }
    let mut document = vec![0; size];
    input.read_exact(&mut document).map_err(|_| "the end of the document is missing".to_owned())?;
    Ok((kind, document))
}

fn text(kind: &str, document: &[u8]) -> Result<String, String> {
    match kind {
        "pdf" => pdf::text(document),
        "docx" => office::docx(document),
        "pptx" => office::pptx(document),
        "xlsx" => sheet::text(document),
        "odt" | "ods" | "odp" => office::open_document(document),
        _ => Err(format!(
            "expected pdf, docx, xlsx, pptx, odt, ods or odp as the kind of document, got: {kind:?}"
        )),
    }
}
