use alloy_primitives::{Address, B256};
use grid_batch_core::Timestamp;
use grid_batch_withdrawals::{NewSignedTransaction, Terms};

use crate::{
    action::Action,
    node::{NodeClient, NodeError, TransactionDetails},
    pool::{read_call, withdrawal_id},
};

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
    /// It may be a withdrawal or a call of this server.
    Own {
        terms: Terms,
        /// The terms if it is no withdrawal.
        as_call: Terms,
        succeeded: bool,
        signed: NewSignedTransaction,
        /// Whether a pool made a withdrawal in it although it does not call the pool for one.
        pays_otherwise: bool,
    },
    /// A pool made a withdrawal in it, but it is not a transaction as this server signs it.
    UnknownPayment,
    /// It only used the nonce, as the filler of a cancelled withdrawal does.
    Filler,
    /// It is not a transaction as this server signs it.
    Other,
    /// No node shows the transaction.
    NotShown,
}

impl UseKind {
    /// Whether a pool made a withdrawal, or was called for one.
    pub(super) fn concerns_pools(&self) -> bool {
        match self {
            Self::Own { terms, pays_otherwise, .. } => {
                *pays_otherwise || matches!(terms, Terms::Withdrawal { .. })
            }
            Self::UnknownPayment => true,
            Self::Filler | Self::Other | Self::NotShown => false,
        }
    }
}

impl FoundUse {
    /// Treats it as a call, because such a call is stored.
    pub(super) fn treat_as_call(&mut self) {
        if let UseKind::Own { terms, as_call, pays_otherwise, .. } = &mut self.kind {
            *terms = as_call.clone();
            *pays_otherwise = false;
        }
    }

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
        let withdrawal = withdrawal_of(details, pools);
        let kind = match &details.signed {
            _ if details.is_filler() => UseKind::Filler,
            Some(signed) => {
                let as_call = call_of(details);
                UseKind::Own {
                    pays_otherwise: withdrawal.is_none() && makes_withdrawal(),
                    terms: withdrawal.unwrap_or_else(|| as_call.clone()),
                    as_call,
                    succeeded: receipt.succeeded,
                    signed: signed.clone(),
                }
            }
            None if makes_withdrawal() => UseKind::UnknownPayment,
            None => UseKind::Other,
        };
        Ok(Some(Self { nonce: details.transaction.nonce, mined: Some((hash, block.time)), kind }))
    }
}

/// The terms of a transaction that calls one of these pools to make a withdrawal.
fn withdrawal_of(details: &TransactionDetails, pools: &[Address]) -> Option<Terms> {
    let Action { to, value, data } = &details.action;
    let pool = to.to().filter(|to| pools.contains(to) && value.is_zero())?;
    let (amount, beneficiary) = read_call(data)?;
    Some(Terms::Withdrawal {
        pool: pool.to_string(),
        beneficiary: beneficiary.to_string(),
        amount: amount.to_string(),
    })
}

/// The terms of any other transaction.
fn call_of(details: &TransactionDetails) -> Terms {
    let Action { to, value, data } = &details.action;
    Terms::Call {
        to: to.to().map(|to| to.to_string()),
        value: value.to_string(),
        data: data.to_string(),
    }
}
