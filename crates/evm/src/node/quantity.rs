use alloy_primitives::U256;
use grid_batch_core::Excerpt;
use serde::{Deserialize, Deserializer, de::Error};

/// A number in a node's response: `0x` and hex digits. It must fit into `T`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quantity<T>(pub(super) T);

impl<'de, T: TryFrom<U256>> Deserialize<'de> for Quantity<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        read(&text).and_then(|number| T::try_from(number).ok()).map(Self).ok_or_else(|| {
            D::Error::custom(format!(
                "{} is not a number of 0x and hex digits with at most {} bits",
                Excerpt::of(&text),
                8 * size_of::<T>()
            ))
        })
    }
}

fn read(text: &str) -> Option<U256> {
    let digits = text.strip_prefix("0x").filter(|digits| !digits.is_empty())?;
    // `from_str_radix` would accept `_` between digits.
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(())?;
    U256::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, from_value, json};

    fn quantity<T: TryFrom<U256>>(value: Value) -> Result<T, String> {
        from_value::<Quantity<T>>(value).map(|Quantity(n)| n).map_err(|error| error.to_string())
    }

    proptest! {
        #[test]
        fn numbers_are_read(number in any::<u128>(), limbs in any::<[u64; 4]>()) {
            prop_assert_eq!(quantity(json!(format!("{number:#x}"))), Ok(number));
            prop_assert_eq!(quantity(json!(format!("{number:#X}").replace("0X", "0x"))), Ok(number));
            let large = U256::from_limbs(limbs);
            prop_assert_eq!(quantity(json!(format!("{large:#x}"))), Ok(large));
        }

        #[test]
        fn any_text_is_a_number_or_an_error(text in "0x[0-9a-fg_]{0,70}|\\PC{0,8}") {
            let _ = quantity::<u64>(json!(text));
        }
    }

    #[test]
    fn invalid_or_too_large_numbers_are_errors() {
        for value in [
            json!(""),
            json!("0x"),
            json!("10"),
            json!("0X10"),
            json!("-0x1"),
            json!("0x-1"),
            json!("0x+1"),
            json!("0x1_0"),
            json!("0x1g"),
            json!(" 0x1"),
            json!("0x10000000000000000"),
            json!(16),
            json!(null),
            json!(["0x10"]),
        ] {
            assert!(quantity::<u64>(value.clone()).is_err(), "{value}");
        }
        let error = quantity::<u64>(json!("0x10000000000000000")).unwrap_err();
        assert!(error.contains("\"0x10000000000000000\" is not a number"), "{error}");
        assert!(error.contains("at most 64 bits"), "{error}");
        assert!(quantity::<u128>(json!(format!("0x1{}", "0".repeat(32)))).is_err());
        assert!(quantity::<U256>(json!(format!("0x1{}", "0".repeat(64)))).is_err());
    }
}
