use std::{cmp::Ordering, fmt, str::FromStr};

use grid_batch_core::Excerpt;
use thiserror::Error;

/// A whole number of any size: an amount, or a sum of amounts.
///
/// ```
/// use grid_batch_withdrawals::Amount;
///
/// let sum = "99".parse::<Amount>()?.plus(&"1".parse()?);
/// assert_eq!(sum.to_string(), "100");
/// assert_eq!(sum.minus(&"1".parse()?).unwrap().to_string(), "99");
/// # Ok::<(), grid_batch_withdrawals::NotAnAmountError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Amount {
    /// The values of the decimal digits, the lowest first, without trailing zeros.
    digits: Vec<u8>,
}

/// A text is not made of decimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{value} is not a whole number; use the digits 0-9 only")]
pub struct NotAnAmountError {
    /// The beginning of the text.
    pub value: Excerpt,
}

/// The number in a unit of ten to the power of `places`, without rounding.
///
/// ```
/// use grid_batch_withdrawals::in_unit;
///
/// assert_eq!(in_unit(30_500_000_000_u64, 9), "30.5"); // wei in gwei
/// assert_eq!(in_unit(1, 18), "0.000000000000000001");
/// ```
pub fn in_unit(number: impl fmt::Display, places: usize) -> String {
    let digits = format!("{:0>width$}", number.to_string(), width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    match fraction.trim_end_matches('0') {
        "" => whole.to_owned(),
        fraction => format!("{whole}.{fraction}"),
    }
}

impl Amount {
    /// The sum of both.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let (mut digits, mut carry) = (Vec::new(), 0);
        for position in 0..self.digits.len().max(other.digits.len()) {
            let sum = self.digit(position) + other.digit(position) + carry;
            digits.push(sum % 10);
            carry = sum / 10;
        }
        digits.push(carry);
        Self::of(digits)
    }

    /// The difference, unless `other` is larger.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Option<Self> {
        if self < other {
            return None;
        }
        let (mut digits, mut borrow) = (Vec::new(), 0);
        for position in 0..self.digits.len() {
            let (from, take) = (self.digit(position), other.digit(position) + borrow);
            borrow = u8::from(from < take);
            digits.push(from + 10 * borrow - take);
        }
        Some(Self::of(digits))
    }

    fn of(mut digits: Vec<u8>) -> Self {
        while digits.last() == Some(&0) {
            digits.pop();
        }
        Self { digits }
    }

    fn digit(&self, position: usize) -> u8 {
        self.digits.get(position).copied().unwrap_or(0)
    }
}

impl FromStr for Amount {
    type Err = NotAnAmountError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(NotAnAmountError { value: Excerpt::of(text) });
        }
        Ok(Self::of(text.bytes().rev().map(|byte| byte - b'0').collect()))
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.digits.is_empty() {
            return f.pad("0");
        }
        let text: String = self.digits.iter().rev().map(|digit| char::from(b'0' + digit)).collect();
        f.pad(&text)
    }
}

impl PartialOrd for Amount {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Amount {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_length = self.digits.len().cmp(&other.digits.len());
        by_length.then_with(|| self.digits.iter().rev().cmp(other.digits.iter().rev()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn amount(number: u128) -> Amount {
        number.to_string().parse().unwrap()
    }

    proptest! {
        #[test]
        fn sums_and_differences_are_those_of_numbers(a in 0..=u128::MAX / 2, b in 0..=u128::MAX / 2) {
            prop_assert_eq!(amount(a).plus(&amount(b)), amount(a + b));
            prop_assert_eq!(amount(a).minus(&amount(b)), a.checked_sub(b).map(amount));
            prop_assert_eq!(amount(a).cmp(&amount(b)), a.cmp(&b));
            prop_assert_eq!(amount(a).to_string(), a.to_string());
        }

        #[test]
        fn any_text_is_an_amount_or_an_error(text in "[0-9]{0,90}|\\PC{0,8}") {
            if let Ok(amount) = text.parse::<Amount>() {
                let trimmed = text.trim_start_matches('0');
                let expected = if trimmed.is_empty() { "0" } else { trimmed };
                prop_assert_eq!(amount.to_string(), expected);
            }
        }
    }

    #[test]
    fn largest_amounts_have_a_sum() {
        let largest: Amount = "9".repeat(78).parse().unwrap();
        assert_eq!(largest.plus(&largest).to_string(), format!("1{}8", "9".repeat(77)));
    }
}
