use std::fmt::Display;

use super::{
    answer::{self, SendResult},
    attempt::SendAttempt,
};
use crate::action::Action;

/// The gas of a plain transfer.
pub(super) const TRANSFER_GAS: u64 = 21_000;

impl SendAttempt<'_> {
    /// The gas limit of a payment; rejects it if a block has too little gas.
    pub(super) async fn gas_limit(&self, estimate: u64) -> SendResult<u64> {
        let limit = self.context.block_gas_limit(&self.node).await;
        payment_gas_limit(estimate, limit)
            .ok_or_else(|| answer::rejected(too_large(estimate, limit.unwrap_or_default())))
    }

    /// The gas limit that a call demands; rejects the call if it is too high for a block.
    pub(super) async fn check_own_gas_limit(&self, own: u64) -> SendResult<u64> {
        match self.context.block_gas_limit(&self.node).await {
            Some(limit) if own > limit => Err(answer::rejected(format_args!(
                "its gas limit is {own}, and a block has at most {limit}"
            ))),
            _ => Ok(own),
        }
    }

    /// The gas limit, without a margin, of a payment that a node has refused because of its gas limit. `None`: the
    /// payment cannot be made on this chain now.
    pub(super) async fn gas_limit_after_refusal(&self, estimate: u64) -> Option<u64> {
        let limit = self.context.read_block_gas_limit(&self.node).await;
        limit.is_none_or(|limit| estimate <= limit).then_some(estimate)
    }

    /// The gas limit of a filler. If the chain charges clearly more than usual for a plain transfer, for example
    /// because its data is stored on another chain, the node's estimate is used.
    pub(super) async fn filler_gas_limit(&self) -> u64 {
        let filler = Action::filler(self.admin);
        let estimate = self.node.estimate_gas(self.admin, &filler).await;
        match estimate {
            Ok(gas) if gas > TRANSFER_GAS + TRANSFER_GAS / 20 => gas,
            _ => TRANSFER_GAS,
        }
    }
}

/// The gas limit of a payment: a quarter above the estimate, because earlier transactions in the same block may raise
/// its gas use, but at most the limit of a block. `None`: a block has too little gas.
pub(crate) fn payment_gas_limit(estimate: u64, block_limit: Option<u64>) -> Option<u64> {
    let block_limit = block_limit.unwrap_or(u64::MAX);
    (estimate <= block_limit).then(|| estimate.saturating_add(estimate / 4).min(block_limit))
}

fn too_large(estimate: u64, limit: u64) -> impl Display {
    format!("it needs {estimate} gas, and a block has at most {limit}")
}
