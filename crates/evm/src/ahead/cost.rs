use alloy_primitives::U256;
use grid_batch_withdrawals::{AssignedNonce, NewSignedTransaction};

use crate::{price::Bid, send::gas_limit};

/// The most that the gas of a transaction with this bid may cost.
pub(super) fn cost(gas_limit: u64, bid: &Bid) -> U256 {
    // Cannot overflow: 64 and 128 bits have a product of at most 192 bits.
    U256::from(gas_limit) * U256::from(bid.max_fee)
}

/// The most that the gas of a nonce may cost: of one of its transactions.
pub(super) fn highest_cost(assigned: &AssignedNonce) -> U256 {
    let costs = assigned.transactions.iter().map(|transaction| cost_of(&transaction.signed));
    costs.max().unwrap_or_default()
}

fn cost_of(signed: &NewSignedTransaction) -> U256 {
    // What cannot be decoded cannot be sent either.
    U256::from(gas_limit(signed).unwrap_or_default()) * U256::from(signed.max_fee)
}
