//! Text of bytes in any character set that mails and web pages use.

use encodify::utf7::MAIL;
use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// Decodes bytes in a character set. The result is text, whatever the bytes are: a mark at the
/// beginning decides first, then valid UTF-8, then the name. Bytes of an unknown set are read as
/// windows-1252, and each byte that its set does not have becomes U+FFFD.
///
/// Mails often name a wrong set, and texts in other sets are hardly ever valid UTF-8 by accident.
/// Only sets whose texts consist of ASCII bytes are taken by their name first.
pub fn decode(bytes: &[u8], charset: &str) -> String {
    decode_checked(bytes, charset).0
}

/// Like [`decode`], and whether all bytes are in the set.
pub fn decode_checked(bytes: &[u8], charset: &str) -> (String, bool) {
    if is_utf7(charset) {
        return (MAIL.decode_lossy(bytes), MAIL.decode(bytes).is_ok());
    }
    let named = Encoding::for_label_no_replacement(charset.trim().as_bytes());
    let ascii_escapes = named.is_some_and(|set| !set.is_ascii_compatible());
    let (text, _, replaced) = match named {
        Some(set) if ascii_escapes => set.decode(bytes),
        _ if simdutf8::basic::from_utf8(bytes).is_ok() => UTF_8.decode(bytes),
        Some(set) => set.decode(bytes),
        None => WINDOWS_1252.decode(bytes),
    };
    (text.into_owned(), !replaced)
}

/// Whether a name is that of a character set.
pub fn known(charset: &str) -> bool {
    Encoding::for_label_no_replacement(charset.trim().as_bytes()).is_some() || is_utf7(charset)
}

/// The web has no such set, but old mails do.
fn is_utf7(charset: &str) -> bool {
    charset.trim().eq_ignore_ascii_case("utf-7")
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn decodes() {
        let rows: [(&[u8], &str, &str); 15] = [
            (b"plain", "us-ascii", "plain"),
            ("grüße".as_bytes(), "utf-8", "grüße"),
            (b"gr\xfc\xdfe", "iso-8859-1", "grüße"),
            (b"gr\xfc\xdfe", "ISO-8859-15", "grüße"),
            (b"gr\xfc\xdfe", " Windows-1252 ", "grüße"),
            (b"\xcf\xf0\xe8", "windows-1251", "При"),
            (b"\x82\xb1", "shift_jis", "こ"),
            // Escapes are ASCII bytes, and so valid UTF-8.
            (b"\x1b$B$3\x1b(B", "iso-2022-jp", "こ"),
            (b"gr+APwA3w-e", "UTF-7", "grüße"),
            // A mark at the beginning.
            (b"\xff\xfea\0", "utf-8", "a"),
            (b"\xef\xbb\xbfa", "iso-8859-1", "a"),
            // A wrong name, an unknown name, none.
            ("grüße".as_bytes(), "iso-8859-1", "grüße"),
            (b"gr\xfc\xdfe", "x-unknown", "grüße"),
            (b"gr\xfc\xdfe", "", "grüße"),
            // A byte that the set does not have.
            (b"a\xffb", "utf-8", "a\u{fffd}b"),
        ];
        for (bytes, charset, text) in rows {
            assert_eq!(decode(bytes, charset), text, "{bytes:?} as {charset:?}");
        }
    }
}
