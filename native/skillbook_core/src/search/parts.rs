//! The parts of a body by which the index remembers where a word occurs, so that a snippet can be
//! found without reading the whole body.

/// The size of a part in bytes. It is at least the length of a snippet, so the words of a snippet
/// start in at most two adjacent parts.
pub const PART: usize = 512;
/// A bit for each part. Text beyond the last part is searched, but gives no snippet.
pub type Parts = u16;

/// The part in which a word starts.
pub fn part(start: usize) -> Parts {
    Parts::try_from(start / PART)
        .ok()
        .and_then(|part| (1 as Parts).checked_shl(part.into()))
        .unwrap_or(0)
}
