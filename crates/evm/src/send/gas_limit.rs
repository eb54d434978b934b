use std::fmt::Display;

use super::{
    answer::{self, SendResult},
    attempt::SendAttempt,
};

/// The gas of a plain transfer.
const TRANSFER_GAS: u64 = 21_000;

impl SendAttempt<'_> {
    /// The gas limit of a payment, or a rejection if a block has too little.
    pub(super) async fn gas_limit(&self, estimate: u64) -> SendResult<u64> {
        let limit = self.context.block_gas_limit(&self.node).await;
        payment_gas_limit(estimate, limit)
            .ok_or_else(|| answer::rejected(too_large(estimate, limit.unwrap_or_default())))
    }

    /// The gas limit of a payment that a node has refused because of its gas limit. The margin is left
    /// out. `None`: it cannot be made on this chain now.
    pub(super) async fn gas_limit_after_refusal(&self, estimate: u64) -> Option<u64> {
        let limit = self.context.read_block_gas_limit(&self.node).await;
        limit.is_none_or(|limit| estimate <= limit).then_some(estimate)
    }

    /// The gas limit of a filler. On a chain that charges a plain transfer with clearly more than usual,
    /// such as for the place of its data on another chain, the node's estimate counts.
    pub(super) async fn filler_gas_limit(&self) -> u64 {
        let estimate = self.node.estimate_gas(self.admin, self.admin, &[].into()).await;
        match estimate {
            Ok(gas) if gas > TRANSFER_GAS + TRANSFER_GAS / 20 => gas,
            _ => TRANSFER_GAS,
        }
    }
}

/// The gas limit of a payment: a quarter above the estimate, because transactions before it in the same
/// block can raise what it needs, and at most that of a block. `None`: a block has too little.
pub(crate) fn payment_gas_limit(estimate: u64, block_limit: Option<u64>) -> Option<u64> {
    let block_limit = block_limit.unwrap_or(u64::MAX);
    (estimate <= block_limit).then(|| estimate.saturating_add(estimate / 4).min(block_limit))
}

fn too_large(estimate: u64, limit: u64) -> impl Display {
    format!("the withdrawal needs {estimate} gas, and a block has at most {limit}")
}
