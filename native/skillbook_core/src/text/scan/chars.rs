//! Characters that look like something else: blanks beyond ASCII, characters without width, and
//! dashes that word processors make of `--`.

/// The length of the blank at `at`, or 0. Models copy no-break and ideographic spaces from pages.
pub(super) fn blank_at(bytes: &[u8], at: usize) -> usize {
    match bytes[at..] {
        [b' ' | b'\t', ..] => 1,
        [0xC2, 0xA0, ..] => 2,
        [0xE1, 0x9A, 0x80, ..] | [0xE2, 0x80, 0x80..=0x8A | 0xA8 | 0xA9 | 0xAF, ..] => 3,
        [0xE2, 0x81, 0x9F, ..] | [0xE3, 0x80, 0x80, ..] => 3,
        _ => 0,
    }
}

/// The length of the character at `at`, if it has no width and no script needs it inside a word:
/// the soft hyphen, the zero-width space, direction marks, the word joiner, the byte order mark.
/// The zero-width joiner and non-joiner are left alone, since some scripts need them.
pub(super) fn invisible_at(bytes: &[u8], at: usize) -> usize {
    match bytes[at..] {
        [0xC2, 0xAD, ..] => 2,
        [0xE2, 0x80, 0x8B | 0x8E | 0x8F | 0xAA..=0xAE, ..] => 3,
        [0xE2, 0x81, 0xA0 | 0xA6..=0xA9, ..] | [0xEF, 0xBB, 0xBF, ..] => 3,
        _ => 0,
    }
}

/// How many bytes of blanks and characters without width a text begins with.
pub(in crate::text) fn blank(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        // The first byte nearly always decides.
        if matches!(bytes[at], b'!'..=b'~') {
            break;
        }
        match blank_at(bytes, at) + invisible_at(bytes, at) {
            0 => break,
            len => at += len,
        }
    }
    at
}

/// The length of dashes that stand for `--`: an en or em dash, or two dashes of any kind, before a
/// letter.
pub(super) fn dash(rest: &str) -> Option<usize> {
    let dash =
        |char: &char| matches!(char, '-' | '‐' | '‑' | '‒' | '–' | '—' | '―' | '−' | '﹣' | '－');
    let dashes: Vec<char> = rest.chars().take(3).take_while(dash).collect();
    let long = matches!(dashes[..], ['–' | '—' | '―'] | [_, _]) && dashes != ['-', '-'];
    let len = dashes.iter().map(|dash| dash.len_utf8()).sum();
    (long && rest[len..].starts_with(char::is_alphabetic)).then_some(len)
}
