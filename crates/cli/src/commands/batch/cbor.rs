//! CBOR (RFC 8949), as far as JSON values need it.

use serde_json::{Number, Value};

/// Encodes a JSON value.
pub(super) fn encode(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes, value);
    bytes
}

/// The kinds of items, the first three bits of each.
const UNSIGNED: u8 = 0 << 5;
const NEGATIVE: u8 = 1 << 5;
const TEXT: u8 = 3 << 5;
const ARRAY: u8 = 4 << 5;
const MAP: u8 = 5 << 5;
const FALSE: u8 = 0xf4;
const TRUE: u8 = 0xf5;
const NULL: u8 = 0xf6;
const DOUBLE: u8 = 0xfb;

fn write(bytes: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => bytes.push(NULL),
        Value::Bool(value) => bytes.push(if *value { TRUE } else { FALSE }),
        Value::Number(number) => write_number(bytes, number),
        Value::String(text) => write_text(bytes, text),
        Value::Array(values) => {
            write_head(bytes, ARRAY, values.len() as u64);
            values.iter().for_each(|value| write(bytes, value));
        }
        Value::Object(fields) => {
            write_head(bytes, MAP, fields.len() as u64);
            for (name, value) in fields {
                write_text(bytes, name);
                write(bytes, value);
            }
        }
    }
}

fn write_text(bytes: &mut Vec<u8>, text: &str) {
    write_head(bytes, TEXT, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}

fn write_number(bytes: &mut Vec<u8>, number: &Number) {
    if let Some(number) = number.as_u64() {
        write_head(bytes, UNSIGNED, number);
    } else if let Some(number) = number.as_i64() {
        // The number n is written as -1 - n.
        write_head(bytes, NEGATIVE, !number.cast_unsigned());
    } else {
        bytes.push(DOUBLE);
        bytes.extend_from_slice(&number.as_f64().unwrap_or(f64::NAN).to_be_bytes());
    }
}

/// Writes the kind of an item and its number or length, in as few bytes as possible.
fn write_head(bytes: &mut Vec<u8>, kind: u8, number: u64) {
    let [.., d, c, b, a] = number.to_be_bytes();
    match number {
        0..24 => bytes.push(kind | a),
        24..0x100 => bytes.extend_from_slice(&[kind | 24, a]),
        0x100..0x1_0000 => bytes.extend_from_slice(&[kind | 25, b, a]),
        0x1_0000..0x1_0000_0000 => bytes.extend_from_slice(&[kind | 26, d, c, b, a]),
        _ => {
            bytes.push(kind | 27);
            bytes.extend_from_slice(&number.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The bytes are those of RFC 8949, appendix A.
    #[test]
    fn values_are_encoded_as_the_standard_shows() {
        for (value, bytes) in [
            (json!(null), &[0xf6][..]),
            (json!(true), &[0xf5]),
            (json!(24), &[0x18, 0x18]),
            (json!(1_000), &[0x19, 0x03, 0xe8]),
            (json!(1_000_000), &[0x1a, 0x00, 0x0f, 0x42, 0x40]),
            (json!(1_000_000_000_000_u64), &[0x1b, 0, 0, 0, 0xe8, 0xd4, 0xa5, 0x10, 0x00]),
            (json!(-1), &[0x20]),
            (json!(-1_000), &[0x39, 0x03, 0xe7]),
            (json!(1.1), &[0xfb, 0x3f, 0xf1, 0x99, 0x99, 0x99, 0x99, 0x99, 0x9a]),
            (json!("IETF"), b"\x64IETF"),
            (json!([1, [2, 3]]), &[0x82, 0x01, 0x82, 0x02, 0x03]),
            (json!({"a": 1, "b": [2, 3]}), b"\xa2\x61a\x01\x61b\x82\x02\x03"),
        ] {
            assert_eq!(encode(&value), bytes, "{value}");
        }
    }
}
