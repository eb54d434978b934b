use std::{fmt, str::FromStr};

use grid_batch_core::Excerpt;
use grid_batch_withdrawals::in_unit;
use thiserror::Error;

const WEI_OF_GWEI: u128 = 1_000_000_000;
const FRACTION_DIGITS: usize = 9;

/// The price of a unit of gas. Its text is in gwei.
///
/// ```
/// use grid_batch_evm::GasPrice;
///
/// let cap: GasPrice = "200.5".parse()?;
/// assert_eq!(cap.wei(), 200_500_000_000);
/// assert_eq!(cap.to_string(), "200.5 gwei");
/// assert!("1e3".parse::<GasPrice>().is_err());
/// # Ok::<(), grid_batch_evm::GasPriceError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GasPrice(u128);

/// Why a text is not a gas price.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GasPriceError {
    /// The text is not a decimal number, or not a whole number of wei.
    #[error(
        "{value} is not a price in gwei; use digits, and at most {FRACTION_DIGITS} after a '.'"
    )]
    Form {
        /// The beginning of the text.
        value: Excerpt,
    },
    /// It is higher than any real price.
    #[error("a gas price of {value} gwei is too high; the maximum is {WEI_OF_GWEI} gwei")]
    TooHigh {
        /// The beginning of the text.
        value: Excerpt,
    },
}

impl GasPrice {
    /// The highest price that can be parsed.
    const HIGHEST: Self = Self(WEI_OF_GWEI * WEI_OF_GWEI);

    /// A price in wei.
    pub const fn from_wei(wei: u128) -> Self {
        Self(wei)
    }

    /// The price in wei.
    pub const fn wei(self) -> u128 {
        self.0
    }
}

impl FromStr for GasPrice {
    type Err = GasPriceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let form = || GasPriceError::Form { value: Excerpt::of(text) };
        let too_high = || GasPriceError::TooHigh { value: Excerpt::of(text) };
        let (whole, fraction) = match text.split_once('.') {
            Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
            Some(_) => return Err(form()),
            None => (text, ""),
        };
        if whole.is_empty() || fraction.len() > FRACTION_DIGITS || !is_digits(whole, fraction) {
            return Err(form());
        }
        // It has only digits, so the one possible error is an overflow.
        let wei: u128 =
            format!("{whole}{fraction:0<FRACTION_DIGITS$}").parse().map_err(|_| too_high())?;
        Some(Self(wei)).filter(|price| *price <= Self::HIGHEST).ok_or_else(too_high)
    }
}

fn is_digits(whole: &str, fraction: &str) -> bool {
    whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit())
}

impl fmt::Display for GasPrice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} gwei", in_unit(self.0, FRACTION_DIGITS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn price_round_trips(wei in 0..=GasPrice::HIGHEST.0) {
            let price = GasPrice::from_wei(wei);
            let shown = price.to_string();
            prop_assert_eq!(shown.strip_suffix(" gwei").unwrap().parse(), Ok(price));
        }

        #[test]
        fn any_text_is_a_price_or_an_error(text in "[0-9.]{0,24}|\\PC{0,8}") {
            if let Ok(price) = text.parse::<GasPrice>() {
                prop_assert!(price <= GasPrice::HIGHEST && i64::try_from(price.wei()).is_ok());
            }
        }
    }

    #[test]
    fn price_text_is_in_gwei() {
        for (text, wei, shown) in [
            ("200", 200_000_000_000, "200 gwei"),
            ("0.5", 500_000_000, "0.5 gwei"),
            ("0.000000001", 1, "0.000000001 gwei"),
            ("201.250", 201_250_000_000, "201.25 gwei"),
            ("0", 0, "0 gwei"),
            ("1000000000", GasPrice::HIGHEST.0, "1000000000 gwei"),
        ] {
            let price: GasPrice = text.parse().unwrap();
            assert_eq!((price.wei(), price.to_string().as_str()), (wei, shown));
        }
        assert_eq!(GasPrice::from_wei(u128::MAX).to_string().len(), 45);
    }

    #[test]
    fn invalid_price_is_refused() {
        for text in
            ["", ".", "1.", ".5", "1.0000000001", "-1", "+1", "1e3", "1,5", "1.2.3", "200 gwei"]
        {
            let error = text.parse::<GasPrice>().unwrap_err();
            assert!(matches!(error, GasPriceError::Form { .. }), "{text}: {error}");
        }
        for text in ["1000000000.000000001", "1000000001", &"9".repeat(99)] {
            let error = text.parse::<GasPrice>().unwrap_err();
            assert!(error.to_string().ends_with("the maximum is 1000000000 gwei"), "{error}");
        }
    }
}
