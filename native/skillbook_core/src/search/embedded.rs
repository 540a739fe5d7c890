//! The text of an entry that an embedding model reads, and its digest.
//!
//! It says what the entry is for: its name in words, title, description, tags and trigger keywords.
//! The body is left out. Models read a few hundred words and make one vector of them, so a long
//! body would hide the description in it.

use hmac_sha256::Hash;

use super::vectors::Digest;
use super::words::{folded, parts, words};
use crate::catalog::entry::Entry;

/// The maximum length of a text in bytes. Models read less.
const MAX_BYTES: usize = 4 * 1024;

/// The text that stands for an entry.
pub fn text(entry: &Entry) -> String {
    let fields = entry.fields();
    let name = spelled_out(&entry.name);
    let mut text = name.clone();
    let title = entry.title.as_deref().map(str::trim).unwrap_or_default();
    if folded(&spelled_out(title)) != folded(&name) {
        join(&mut text, ". ", title);
    }
    join(&mut text, ": ", entry.description().trim());
    join(&mut text, ". ", &[fields.tags.as_slice(), &fields.triggers].concat().join(", "));
    let end = (0..=MAX_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.truncate(end.unwrap_or(0));
    text
}

/// The digest of [`text`]. Computed on first use and kept with the entry.
pub fn digest(entry: &Entry) -> &Digest {
    entry.embedded.get_or_init(|| digest_of(&text(entry)))
}

/// The digest of a text that is embedded.
pub fn digest_of(text: &str) -> Digest {
    let mut digest = Digest::default();
    let whole = Hash::hash(text.as_bytes());
    digest.iter_mut().zip(&whole).for_each(|(to, from)| *to = *from);
    digest
}

/// Whether an embedding model reads the entry. Entries that are not searched are left out.
pub fn wanted(entry: &Entry) -> bool {
    !entry.fields().hidden_from_model
}

/// The digest of an entry's text, if an embedding model reads it.
pub fn wanted_digest(entry: &Entry) -> Option<&Digest> {
    wanted(entry).then(|| digest(entry))
}

fn join(text: &mut String, between: &str, more: &str) {
    if !more.is_empty() {
        if !text.is_empty() {
            text.push_str(between);
        }
        text.push_str(more);
    }
}

/// The words of a name: `email.sendAll` is `email send All`.
fn spelled_out(name: &str) -> String {
    let words = words(name).flat_map(|place| parts(&name[place]));
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_spelled_out() {
        for (name, expected) in [
            ("email.sendAll", "email send All"),
            ("calendar_event", "calendar event"),
            ("HTTPServer", "HTTP Server"),
            ("Grüße-an.alle", "Grüße an alle"),
            ("..", ""),
            ("", ""),
        ] {
            assert_eq!(spelled_out(name), expected, "{name:?}");
        }
    }

    #[test]
    fn digests_are_those_of_sha_256() {
        // The first half of the published digests of FIPS 180-4.
        for (text, expected) in [
            ("abc", 0xba78_16bf_8f01_cfea_4141_40de_5dae_2223_u128),
            ("", 0xe3b0_c442_98fc_1c14_9afb_f4c8_996f_b924),
        ] {
            assert_eq!(u128::from_be_bytes(digest_of(text)), expected, "{text:?}");
        }
    }
}
