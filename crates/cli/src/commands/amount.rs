//! Amounts as a person writes them.

use std::error::Error;

/// The units of the chain's coin, and how many digits each has after the point.
const UNITS: [(&str, usize); 3] = [("ether", 18), ("gwei", 9), ("wei", 0)];

/// An amount in the smallest unit of a currency: from digits, or a number with a unit such as `1.5ether`.
pub(crate) fn parse(text: &str) -> Result<String, Box<dyn Error + Send + Sync>> {
    let unit = UNITS.iter().find_map(|(unit, places)| Some((text.strip_suffix(unit)?, *places)));
    let (number, places) = unit.unwrap_or((text, 0));
    let number = number.trim_end();
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
    if whole.is_empty() || number.ends_with('.') || !is_number(whole) || !is_number(fraction) {
        return Err(
            "write a number of the smallest unit, or a number with a unit, such as 1.5ether or 30gwei".into()
        );
    }
    if fraction.len() > places {
        return Err(format!(
            "an amount in this unit has at most {places} digits after the point; in ether, write such as 1.5ether"
        )
        .into());
    }
    let digits = format!("{whole}{fraction:0<places$}");
    let significant = digits.trim_start_matches('0');
    Ok(if significant.is_empty() { "0" } else { significant }.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_multiplied_without_rounding() {
        for (text, amount) in [
            ("1500", "1500"),
            ("1500wei", "1500"),
            ("1.5ether", "1500000000000000000"),
            ("0.000000000000000001 ether", "1"),
            ("30gwei", "30000000000"),
            ("000", "0"),
        ] {
            assert_eq!(parse(text).unwrap(), amount, "{text}");
        }
    }

    #[test]
    fn invalid_amounts_are_refused() {
        for text in
            ["", "ether", "1.5", "1.", ".5ether", "-1", "1e18", "1,5ether", "1.0000000001gwei"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
