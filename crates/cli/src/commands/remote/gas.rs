//! What a gas admin has, and what gas costs, in words.

use serde_json::Value;

use super::field;

/// The balance of a gas admin and the gas price, as a server tells them.
pub(in crate::commands) fn gas_text(gas: &Value) -> String {
    let balance = match gas["balance"]["value"].as_str() {
        Some(wei) => format!("the balance is {} ether", ether(wei)),
        None => format!("the balance is not known: {}", field(&gas["balance"], "error")),
    };
    let left = match gas["withdrawals_left"].as_u64() {
        Some(count) => format!(", for {count} withdrawals at the cap"),
        None => String::new(),
    };
    let price = match gas["gas_price_gwei"]["value"].as_str() {
        Some(price) => format!("the gas price is {price} gwei"),
        None => format!("the gas price is not known: {}", field(&gas["gas_price_gwei"], "error")),
    };
    format!("{balance}{left}; {price}, the cap {} gwei", field(gas, "maximum_gas_price_gwei"))
}

/// Wei in ether, without rounding.
pub(in crate::commands) fn ether(wei: &str) -> String {
    const PLACES: usize = 18;
    let digits = format!("{wei:0>width$}", width = PLACES + 1);
    let (whole, fraction) = digits.split_at(digits.len() - PLACES);
    match fraction.trim_end_matches('0') {
        "" => whole.to_owned(),
        fraction => format!("{whole}.{fraction}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wei_are_ether_without_rounding() {
        for (wei, text) in [
            ("0", "0"),
            ("1", "0.000000000000000001"),
            ("1500000000000000000", "1.5"),
            ("10000000000000000000000", "10000"),
        ] {
            assert_eq!(ether(wei), text);
        }
    }
}
