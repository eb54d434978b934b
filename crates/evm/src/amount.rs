use alloy_primitives::U256;
use grid_batch_core::Excerpt;
use thiserror::Error;

/// Why a text is no amount.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AmountError {
    /// The text is not made of decimal digits.
    #[error(
        "the amount {value} is no whole number of the smallest unit: it has digits of 0-9 only"
    )]
    Digits {
        /// The beginning of the text.
        value: Excerpt,
    },
    /// The first of its digits is a zero that says nothing.
    #[error("the amount {value} begins with 0; it is written without leading zeros")]
    LeadingZero {
        /// The beginning of the text.
        value: Excerpt,
    },
    /// It is nothing.
    #[error("the amount is 0; there is nothing to pay")]
    Zero,
    /// It is more than the chain can count.
    #[error("the amount {value} has more than 256 bits")]
    TooLarge {
        /// The beginning of the text.
        value: Excerpt,
    },
}

/// Reads an amount: a whole number of the smallest unit, more than none.
pub(crate) fn parse_amount(text: &str) -> Result<U256, AmountError> {
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
        fn every_amount_is_its_own_text(limbs in any::<[u64; 4]>()) {
            let amount = U256::from_limbs(limbs);
            prop_assume!(amount > U256::ZERO);
            prop_assert_eq!(parse_amount(&amount.to_string()), Ok(amount));
        }

        #[test]
        fn any_text_is_that_amount_or_an_error(text in "[0-9]{0,90}|[-+0-9a-fx_.,e ]{0,8}|\\PC{0,8}") {
            match parse_amount(&text) {
                Ok(amount) => prop_assert_eq!(amount.to_string(), text),
                Err(error) => prop_assert!(error.to_string().contains("amount")),
            }
        }
    }

    #[test]
    fn an_error_names_the_value_and_the_rule() {
        for (text, expected) in [
            ("", "the amount \"\" is no whole number"),
            ("1.5", "the amount \"1.5\" is no whole number of the smallest unit"),
            ("-1", "the amount \"-1\" is no whole number"),
            ("+1", "the amount \"+1\" is no whole number"),
            ("1e18", "the amount \"1e18\" is no whole number"),
            ("1_000", "the amount \"1_000\" is no whole number"),
            ("0x10", "the amount \"0x10\" is no whole number"),
            ("١", "the amount \"١\" is no whole number"),
            ("007", "the amount \"007\" begins with 0"),
            ("00", "the amount \"00\" begins with 0"),
            ("0", "the amount is 0"),
        ] {
            let error = parse_amount(text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn the_largest_amount_has_256_bits() {
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
