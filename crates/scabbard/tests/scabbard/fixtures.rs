//! Answers as genuine nodes give them, with ids that are made up.

use std::{fs, path::Path};

use crate::batches::made_up;

/// The bytes of an answer on the wire.
pub fn fixture(name: &str) -> Vec<u8> {
    let file = format!("tests/fixtures/{name}.http");
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let (head, body) = text.split_once("\n\n").unwrap();
    format!("{}\r\n\r\n{body}", head.replace('\n', "\r\n")).into_bytes()
}

/// The batch that the fixtures are about.
pub fn fixture_batch() -> String {
    made_up(0xb1)
}

/// Its transaction.
pub fn fixture_transaction() -> String {
    made_up(0x71)
}
