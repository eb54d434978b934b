//! Values as a person writes them on the command line.

use serde_json::Value;

/// An argument of a function. Arrays, `true`, `false` and texts in quotes are JSON; everything else is a text as it is.
pub(super) fn parse_argument(text: &str) -> Result<Value, &'static str> {
    match serde_json::from_str(text) {
        Ok(value @ (Value::Array(_) | Value::Bool(_) | Value::String(_))) => {
            if is_exact(&value) {
                Ok(value)
            } else {
                Err(
                    "write fractions and numbers of more than 64 bits in an array as texts, such as [\"5\"]",
                )
            }
        }
        _ => Ok(text.into()),
    }
}

/// Whether no number was rounded when it was read.
fn is_exact(value: &Value) -> bool {
    match value {
        Value::Array(values) => values.iter().all(is_exact),
        Value::Number(number) => !number.is_f64(),
        _ => true,
    }
}

/// An idempotency key that can be sent as a header.
pub(super) fn parse_key(text: &str) -> Result<String, &'static str> {
    const LONGEST: usize = 255;
    let is_shown = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    if (1..=LONGEST).contains(&text.len()) && text.bytes().all(is_shown) && text.trim() == text {
        Ok(text.to_owned())
    } else {
        Err("a key has 1 to 255 ASCII letters, digits, punctuation marks, and spaces between them")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arrays_and_booleans_are_json_and_others_texts() {
        let large = "1000000000000000000000";
        for (text, value) in [
            ("0xAb", json!("0xAb")),
            (large, json!(large)),
            ("-5", json!("-5")),
            ("true", json!(true)),
            ("\"true\"", json!("true")),
            ("[[\"0xab\"], [7, true]]", json!([["0xab"], [7, true]])),
            ("[half", json!("[half")),
            ("null", json!("null")),
            ("", json!("")),
        ] {
            assert_eq!(parse_argument(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn rounded_numbers_in_arrays_are_refused() {
        for text in ["[1000000000000000000000]", "[[1.5]]"] {
            assert!(parse_argument(text).is_err(), "{text}");
        }
    }

    #[test]
    fn keys_that_no_header_can_have_are_refused() {
        assert_eq!(parse_key("invoice 17"), Ok("invoice 17".to_owned()));
        for text in ["", " a", "a\n", "é", &"x".repeat(256)] {
            assert!(parse_key(text).is_err(), "{text:?}");
        }
    }
}
