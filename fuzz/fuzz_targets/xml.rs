#![no_main]
//! XML of any bytes: no panic, results within their limits, and not more text than the document.

use libfuzzer_sys::fuzz_target;
use skillbook_connect::xml::{elements, MAX_DEPTH, MAX_ELEMENTS, MAX_NAMESPACE};

fuzz_target!(|xml: &[u8]| {
    let Some(elements) = elements(xml) else { return };
    assert!(elements.len() <= MAX_ELEMENTS && elements[0].depth == 0);
    let mut before = 0;
    let mut size = 0;
    for (at, element) in elements.iter().enumerate() {
        // A child of an open element, and only one root.
        assert!(element.depth < MAX_DEPTH && element.depth <= before + 1);
        assert!((element.depth == 0) == (at == 0));
        before = element.depth;
        let (namespace, name) = element.name.rsplit_once(' ').expect("a blank");
        assert!(namespace.len() <= MAX_NAMESPACE);
        size += name.len() + element.text.len();
        size +=
            element.attributes.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
    }
    assert!(size <= xml.len());
});
