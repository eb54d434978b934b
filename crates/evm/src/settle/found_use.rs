use alloy_primitives::{Address, B256};
use grid_batch_core::Timestamp;
use grid_batch_withdrawals::NewSignedTransaction;

use crate::{
    node::{NodeClient, NodeError, TransactionDetails},
    pool::{PoolCall, read_call, withdrawal_id},
};

/// What a withdrawal pays, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Terms {
    pub(crate) pool: String,
    pub(crate) beneficiary: String,
    pub(crate) amount: String,
}

/// What the nodes show about a nonce that was used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundUse {
    pub(crate) nonce: u64,
    /// The transaction, and when it was mined.
    pub(crate) mined: Option<(B256, Timestamp)>,
    pub(crate) kind: UseKind,
}

/// What a transaction did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UseKind {
    /// It called a pool to make a withdrawal.
    Call { terms: Terms, succeeded: bool, signed: NewSignedTransaction },
    /// A pool made a withdrawal in it, but it is not a transaction as this server signs it.
    UnknownPayment,
    /// It only used the nonce, as the filler of a cancelled withdrawal does.
    Filler,
    /// It has nothing to do with the pools.
    Other,
    /// No node shows the transaction.
    NotShown,
}

impl FoundUse {
    pub(super) fn not_shown(nonce: u64) -> Self {
        Self { nonce, mined: None, kind: UseKind::NotShown }
    }

    /// What a transaction did. `None`: the node shows no receipt, or not its block.
    pub(super) async fn read(
        node: &NodeClient,
        details: &TransactionDetails,
        pools: &[Address],
    ) -> Result<Option<Self>, NodeError> {
        let hash = details.transaction.hash;
        let Some(receipt) = node.receipt(hash).await? else { return Ok(None) };
        let Some(block) = node.block(receipt.block.number).await? else { return Ok(None) };
        let makes_withdrawal =
            || pools.iter().any(|pool| withdrawal_id(*pool, &receipt.logs).is_some());
        let kind = match (call_of(details, pools), &details.signed) {
            (Some(terms), Some(signed)) => {
                UseKind::Call { terms, succeeded: receipt.succeeded, signed: signed.clone() }
            }
            _ if makes_withdrawal() => UseKind::UnknownPayment,
            _ if details.is_filler() => UseKind::Filler,
            _ => UseKind::Other,
        };
        Ok(Some(Self { nonce: details.transaction.nonce, mined: Some((hash, block.time)), kind }))
    }
}

/// The terms of a transaction that calls one of these pools to make a withdrawal.
fn call_of(details: &TransactionDetails, pools: &[Address]) -> Option<Terms> {
    let pool = details.to.filter(|to| pools.contains(to) && details.value.is_zero())?;
    let (amount, beneficiary) = read_call(&details.input)?;
    Some(Terms {
        pool: pool.to_string(),
        beneficiary: beneficiary.to_string(),
        amount: amount.to_string(),
    })
}

/// Whether a transaction makes exactly this call.
pub(super) fn makes_call(details: &TransactionDetails, call: &PoolCall) -> bool {
    details.to == Some(call.pool) && details.value.is_zero() && details.input == call.data
}
