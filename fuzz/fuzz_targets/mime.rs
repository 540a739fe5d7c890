#![no_main]
//! Mails of any bytes: no panic, results within their limits, and every attachment can be read.

use libfuzzer_sys::fuzz_target;
use skillbook_connect::mime::parse::{parse, part, MAX_LIST, MAX_TEXT};

fuzz_target!(|raw: &[u8]| {
    let mail = parse(raw).expect("a short mail");
    for text in [&mail.text, &mail.html].into_iter().flatten() {
        assert!(text.len() <= MAX_TEXT && !text.contains('\r'));
    }
    assert!(mail.to.len() <= MAX_LIST && mail.references.len() <= MAX_LIST);
    for attachment in &mail.attachments {
        let content = part(raw, attachment.part).expect("an attachment");
        assert_eq!(content.len(), attachment.size);
    }
});
