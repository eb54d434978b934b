//! The balance of a gas admin and the price of gas, in words.

use grid_batch_withdrawals::in_unit;
use serde_json::Value;

use super::field;

/// The balance of a gas admin and the gas price, as a server reports them.
pub(in crate::commands) fn gas_text(gas: &Value) -> String {
    let balance = match gas["balance"]["value"].as_str() {
        Some(wei) => format!("the balance is {} ether", in_unit(wei, 18)),
        None => format!("the balance is not known: {}", field(&gas["balance"], "error")),
    };
    // Without pools, the account makes no withdrawals.
    let has_pools = gas["pools"].as_array().is_some_and(|pools| !pools.is_empty());
    let left = match gas["withdrawals_left"].as_u64() {
        Some(count) if has_pools => format!(", for {count} withdrawals at the cap"),
        _ => String::new(),
    };
    let price = match gas["gas_price_gwei"]["value"].as_str() {
        Some(price) => format!("the gas price is {price} gwei"),
        None => format!("the gas price is not known: {}", field(&gas["gas_price_gwei"], "error")),
    };
    format!("{balance}{left}; {price}, the cap {} gwei", field(gas, "maximum_gas_price_gwei"))
}
