//! Sheets of Excel, as lines of cells divided by commas.

use std::io::Cursor;

use calamine::{DataRef, Reader, SheetVisible, Xlsx};

use crate::output::Output;

/// The most empty cells between two others. The format has 16,384 columns.
const MAX_GAP: u32 = 1000;

pub fn text(document: &[u8]) -> Result<String, String> {
    // Finds encrypted files and wrong formats, with their errors.
    crate::archive::Archive::open(document)?;
    let damaged = |error: calamine::XlsxError| format!("the file is damaged: {error}");
    let mut book = Xlsx::new(Cursor::new(document)).map_err(damaged)?;
    let sheets: Vec<(String, bool)> = book
        .sheets_metadata()
        .iter()
        .map(|sheet| (sheet.name.clone(), sheet.visible == SheetVisible::Visible))
        .collect();
    let mut out = Output::default();
    for (name, visible) in sheets {
        out.line(2);
        out.add(&format!("# {name}{}", if visible { "" } else { " (hidden)" }))?;
        out.line(2);
        let Ok(mut cells) = book.worksheet_cells_reader(&name) else {
            // A chart.
            continue;
        };
        let (mut row, mut column) = (None, 0);
        while let Some(cell) = cells.next_cell().map_err(damaged)? {
            let ((at_row, at_column), value) = (cell.get_position(), value(cell.get_value()));
            if value.is_empty() {
                continue;
            }
            if row != Some(at_row) {
                out.line(1);
                (row, column) = (Some(at_row), 0);
            }
            let gap = at_column.saturating_sub(column).min(MAX_GAP);
            out.add(&",".repeat(gap as usize))?;
            out.add(&quoted(&value))?;
            column = at_column;
        }
    }
    out.finish()
}

fn value(value: &DataRef) -> String {
    match value {
        DataRef::Empty => String::new(),
        DataRef::Int(number) => number.to_string(),
        DataRef::Float(number) => number.to_string(),
        DataRef::String(text) => text.clone(),
        DataRef::SharedString(text) => (*text).to_owned(),
        DataRef::Bool(yes) => yes.to_string(),
        DataRef::DateTime(time) => {
            let (year, month, day, hour, minute, second, _) = time.to_ymd_hms_milli();
            match (hour, minute, second) {
                (0, 0, 0) => format!("{year:04}-{month:02}-{day:02}"),
                _ => format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"),
            }
        }
        DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => text.clone(),
        DataRef::Error(error) => error.to_string(),
        #[allow(unreachable_patterns)]
        other => format!("{other:?}"),
    }
}

/// A cell of CSV.
fn quoted(value: &str) -> String {
    if value.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", value.replace('"', "\"\""))
    } else {
        value.to_owned()
    }
}
