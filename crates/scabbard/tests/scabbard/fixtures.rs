//! Responses of real nodes, with other ids.

use std::{fs, path::Path};

use crate::batches::arbitrary_id;

/// The bytes of a response.
pub fn fixture(name: &str) -> Vec<u8> {
    let file = format!("tests/fixtures/{name}.http");
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let (head, body) = text.split_once("\n\n").unwrap();
    format!("{}\r\n\r\n{body}", head.replace('\n', "\r\n")).into_bytes()
}

/// The batch in the fixtures.
pub fn fixture_batch() -> String {
    arbitrary_id(0xb1)
}

/// The transaction of that batch.
pub fn fixture_transaction() -> String {
    arbitrary_id(0x71)
}
