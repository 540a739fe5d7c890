//! The strict check of any file: no panic, and positions inside the text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skillbook_core::lint::spec::check;

fuzz_target!(|bytes: &[u8]| {
    one(bytes);
    one(&[b"---\nname: a\ndescription: d\n", bytes, b"\n---\n"].concat());
});

fn one(bytes: &[u8]) {
    let lines = bytes.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count() + 1;
    for found in check("a", bytes) {
        assert!(found.line.is_none_or(|line| (1..=lines).contains(&(line as usize))), "{found:?}");
    }
}
