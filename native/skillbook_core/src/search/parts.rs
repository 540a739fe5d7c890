//! The parts of a body by which the index says where a word is.

/// The bytes of a part. A search reads only the parts that have a word. The words of one snippet
/// begin in at most two parts, next to each other.
pub const PART: usize = 512;
/// A bit for each part; what is behind the last of them is not searched.
pub type Parts = u16;

/// The part in which a word begins.
pub fn part(start: usize) -> Parts {
    Parts::try_from(start / PART)
        .ok()
        .and_then(|part| (1 as Parts).checked_shl(part.into()))
        .unwrap_or(0)
}
