//! Numbers and bytes as clients write them.

use alloy_primitives::{U256, hex};
use grid_batch_core::Excerpt;

/// A number of up to 256 bits in decimal digits.
pub(super) fn parse_number(text: &str) -> Result<U256, String> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        let shown = Excerpt::of(text);
        return Err(format!("{shown} is not a whole number; use the digits 0-9 only"));
    }
    U256::from_str_radix(text, 10)
        .map_err(|_| format!("{} has more than 256 bits", Excerpt::of(text)))
}

/// Bytes: `0x` and two hex digits for each.
pub(super) fn parse_bytes(text: &str) -> Result<Vec<u8>, String> {
    let form = || {
        let shown = Excerpt::of(text);
        format!("{shown} is not data; data is 0x and two hex digits for each byte")
    };
    let digits = text.strip_prefix("0x").ok_or_else(form)?;
    // The decoder accepts a prefix of its own.
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(form());
    }
    hex::decode(digits).map_err(|_| form())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn number_round_trips(limbs in any::<[u64; 4]>(), zeros in 0..4_usize) {
            let number = U256::from_limbs(limbs);
            prop_assert_eq!(parse_number(&format!("{}{number}", "0".repeat(zeros))), Ok(number));
        }

        #[test]
        fn bytes_round_trip(bytes in any::<Vec<u8>>()) {
            let text = hex::encode_prefixed(&bytes);
            prop_assert_eq!(parse_bytes(&text), Ok(bytes.clone()));
            prop_assert_eq!(parse_bytes(&text.to_uppercase().replace('X', "x")), Ok(bytes));
        }

        #[test]
        fn any_text_is_parsed_or_refused(text in "[0-9a-fx_.+-]{0,90}|\\PC{0,8}") {
            if let Ok(number) = parse_number(&text) {
                let digits = number.to_string();
                prop_assert!(text.ends_with(&digits));
            }
            if let Ok(bytes) = parse_bytes(&text) {
                prop_assert_eq!(hex::encode_prefixed(bytes), text.to_lowercase());
            }
        }
    }

    #[test]
    fn other_numbers_are_refused() {
        for text in ["", "-1", "+1", "1.0", "1e3", "1_000", "0x10", " 1", "1 ether", "١"] {
            assert!(parse_number(text).unwrap_err().contains("use the digits 0-9 only"), "{text}");
        }
        let largest = U256::MAX.to_string();
        for text in [format!("{}6", &largest[..largest.len() - 1]), "9".repeat(10_000)] {
            let error = parse_number(&text).unwrap_err();
            assert!(error.ends_with("has more than 256 bits") && error.len() < 100, "{error}");
        }
    }

    #[test]
    fn other_data_is_refused() {
        for text in ["", "00", "0x0", "0x0x00", "0X00", "0xzz", "0x 00", "0xé"] {
            assert!(parse_bytes(text).unwrap_err().contains("0x and two hex digits"), "{text}");
        }
    }
}
