//! Compares a written word with the known ones, so that a slip such as `shedule` is reported
//! instead of being read as something else.

/// The longest word that is compared, in letters and digits.
const LONGEST: usize = 40;

/// The letters and digits of a word, in lower case; `None` if it has none or too many.
///
/// ```
/// use skillbook_core::page::slip::plain;
///
/// assert_eq!(plain("Trigger-Keywords").as_deref(), Some("triggerkeywords"));
/// assert_eq!(plain("--"), None);
/// ```
pub fn plain(word: &str) -> Option<String> {
    let letters = word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase);
    let plain: String = letters.take(LONGEST + 1).collect();
    (1..=LONGEST).contains(&plain.chars().count()).then_some(plain)
}

/// The edits between a [`plain`] word and a known one, if they are at most `limit`. Swapped
/// neighbours are one edit.
pub(crate) fn edits(plain: &str, known: &str, limit: usize) -> Option<usize> {
    let length = known.bytes().filter(u8::is_ascii_alphanumeric).count();
    // The lengths rule out most words without a comparison.
    if plain.chars().count().abs_diff(length) > limit {
        return None;
    }
    // So do the kinds of letters: one edit adds at most one and removes at most one.
    let (kinds, known_kinds) = (kinds(plain), kinds(known));
    let few = |kinds: u64| kinds.count_ones() as usize <= limit;
    if !few(kinds & !known_kinds) || !few(known_kinds & !kinds) {
        return None;
    }
    let known: String = known.chars().filter(|c| c.is_alphanumeric()).collect();
    let known = known.to_lowercase();
    Some(strsim::osa_distance(plain, &known)).filter(|edits| *edits <= limit)
}

/// A bit for each kind of letter and digit of a word.
fn kinds(word: &str) -> u64 {
    let letters = word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase);
    letters.fold(0, |bits, c| bits | 1 << (c as u32 % 64))
}

/// The known word that a [`plain`] one is, or is with one slip, or with two if it is longer than
/// five letters and begins with the same one. A word of three letters has no slips: too many others
/// are near it.
///
/// ```
/// use skillbook_core::page::slip::nearest;
///
/// assert_eq!(nearest("shedule", &["title", "schedule"]), Some("schedule"));
/// assert_eq!(nearest("flgas", &["flags"]), Some("flags"));
/// assert_eq!(nearest("flask", &["flags"]), None);
/// ```
pub fn nearest<'a>(plain: &str, known: &[&'a str]) -> Option<&'a str> {
    let near = |known: &&'a str| {
        let limit = match known.bytes().filter(u8::is_ascii_alphanumeric).count() {
            0..=3 => 0,
            4..=5 => 1,
            _ => 2,
        };
        let first = |word: &str| word.chars().next().map(|c| c.to_ascii_lowercase());
        let found = edits(plain, known, limit)?;
        (found < 2 || first(plain) == first(known)).then_some((found, *known))
    };
    known.iter().filter_map(near).min_by_key(|(edits, _)| *edits).map(|(_, known)| known)
}
