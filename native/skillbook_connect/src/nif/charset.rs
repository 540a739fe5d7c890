use rustler::Binary;

/// Text of bytes in a character set.
#[rustler::nif(schedule = "DirtyCpu")]
fn decode(bytes: Binary, charset: &str) -> String {
    crate::charset::decode(bytes.as_slice(), charset)
}
