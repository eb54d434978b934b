use alloy_primitives::U256;
use grid_batch_core::Excerpt;
use thiserror::Error;

/// Why a text is not a valid amount.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AmountError {
    /// The text is not made of decimal digits.
    #[error(
        "the amount {value} is not a whole number of the smallest unit; use the digits 0-9 only"
    )]
    Digits {
        /// The beginning of the text.
        value: Excerpt,
    },
    /// It has a leading zero.
    #[error("the amount {value} has a leading zero; remove it")]
    LeadingZero {
        /// The beginning of the text.
        value: Excerpt,
    },
    /// It is zero.
    #[error("the amount is 0; it must be at least 1")]
    Zero,
    /// It does not fit into 256 bits.
    #[error("the amount {value} has more than 256 bits")]
    TooLarge {
        /// The beginning of the text.
        value: Excerpt,
    },
}

/// Parses an amount: a whole number of the smallest unit, at least 1.
pub fn parse_amount(text: &str) -> Result<U256, AmountError> {
    let value = || Excerpt::of(text);
    if text == "0" {
        return Err(AmountError::Zero);
    }
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(AmountError::Digits { value: value() });
    }
    if text.starts_with('0') {
        return Err(AmountError::LeadingZero { value: value() });
    }
    U256::from_str_radix(text, 10).map_err(|_| AmountError::TooLarge { value: value() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn amount_round_trips(limbs in any::<[u64; 4]>()) {
            let amount = U256::from_limbs(limbs);
            prop_assume!(amount > U256::ZERO);
            prop_assert_eq!(parse_amount(&amount.to_string()), Ok(amount));
        }

        #[test]
        fn any_text_is_an_amount_or_an_error(text in "[0-9]{0,90}|[-+0-9a-fx_.,e ]{0,8}|\\PC{0,8}") {
            match parse_amount(&text) {
                Ok(amount) => prop_assert_eq!(amount.to_string(), text),
                Err(error) => prop_assert!(error.to_string().contains("amount")),
            }
        }
    }

    #[test]
    fn error_names_the_value_and_the_rule() {
        for (text, expected) in [
            ("", "the amount \"\" is not a whole number"),
            ("1.5", "the amount \"1.5\" is not a whole number of the smallest unit"),
            ("-1", "the amount \"-1\" is not a whole number"),
            ("+1", "the amount \"+1\" is not a whole number"),
            ("1e18", "the amount \"1e18\" is not a whole number"),
            ("1_000", "the amount \"1_000\" is not a whole number"),
            ("0x10", "the amount \"0x10\" is not a whole number"),
            ("١", "the amount \"١\" is not a whole number"),
            ("007", "the amount \"007\" has a leading zero"),
            ("00", "the amount \"00\" has a leading zero"),
            ("0", "the amount is 0"),
        ] {
            let error = parse_amount(text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn largest_amount_has_256_bits() {
        let largest = U256::MAX.to_string();
        assert_eq!(parse_amount(&largest), Ok(U256::MAX));
        let larger = format!("{}6", &largest[..largest.len() - 1]);
        for text in [larger, "9".repeat(10_000)] {
            let error = parse_amount(&text).unwrap_err();
            assert!(matches!(error, AmountError::TooLarge { .. }), "{error}");
            assert!(error.to_string().len() < 100, "{error}");
        }
    }
}
