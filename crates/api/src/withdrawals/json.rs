use grid_batch_core::batches::BatchState;
use grid_batch_core::{Hex, Timestamp};
use grid_batch_withdrawals::{
    FinalTransaction, NonceOutcome, SignedTransaction, WithdrawalDetails, WithdrawalEnd,
    WithdrawalId, WithdrawalState, in_unit,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{http::Links, withdrawals::waits_for::waits_for};

/// A withdrawal in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WithdrawalJson {
    id: String,
    kind: &'static str,
    pool: String,
    beneficiary: String,
    amount: String,
    gas_admin: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reward_id: Option<String>,
    /// The key of the request that scheduled it.
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<String>,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_for: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    withdrawal_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fail_reason: Option<String>,
    generation: u32,
    attempts: u32,
    transactions: Vec<TransactionJson>,
    /// The transaction of the withdrawal that is final: it has paid, has failed or has cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    final_transaction: Option<FinalTransactionJson>,
    /// What the chain shows and what an operator decided, if they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    correction: Option<String>,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancelled_at: Option<String>,
    ended_at: Option<String>,
    link: String,
}

/// A transaction that was signed for a withdrawal. Fees are per unit of gas.
#[derive(Debug, Serialize, ToSchema)]
struct TransactionJson {
    hash: String,
    nonce: u64,
    max_fee_gwei: String,
    tip_gwei: String,
    cancels: bool,
    signed_at: String,
    sent_at: Option<String>,
    last_error: Option<String>,
    adopted: bool,
}

/// A transaction that is final, and what it cost.
#[derive(Debug, Serialize, ToSchema)]
struct FinalTransactionJson {
    hash: String,
    block: u64,
    gas_used: Option<u64>,
    /// The price that it paid for a unit of gas.
    gas_price_gwei: Option<String>,
    /// What its gas cost, in wei.
    fee: Option<String>,
    /// What its gas cost, in the chain's coins.
    fee_ether: Option<String>,
}

/// The path of a withdrawal.
pub(crate) fn withdrawal_path(id: &WithdrawalId) -> String {
    format!("/withdrawals/{id}")
}

impl WithdrawalJson {
    pub(crate) fn new(details: WithdrawalDetails, links: &Links<'_>) -> Self {
        let link = links.path(&withdrawal_path(&details.withdrawal.id));
        let state = WithdrawalState::of(&details).as_str();
        let waits_for = waits_for(&details);
        let withdrawal_id = final_withdrawal_id(&details);
        let correction = correction(&details);
        let fail_reason = fail_reason(&details);
        let WithdrawalDetails { withdrawal, batch, nonce, .. } = details;
        let final_transaction = nonce.as_ref().and_then(|nonce| nonce.final_transaction);
        let transactions = nonce.map_or_else(Vec::new, |nonce| nonce.transactions);
        Self {
            id: withdrawal.id.to_string(),
            kind: withdrawal.kind.as_str(),
            pool: withdrawal.pool,
            beneficiary: withdrawal.beneficiary,
            amount: withdrawal.amount,
            gas_admin: withdrawal.service_id.to_string(),
            reward_id: withdrawal.reward_id.map(|id| id.to_string()),
            idempotency_key: withdrawal.idempotency_key,
            state,
            waits_for,
            withdrawal_id,
            fail_reason,
            generation: details.generation,
            attempts: batch.progress.attempts,
            transactions: transactions.into_iter().map(TransactionJson::new).collect(),
            final_transaction: final_transaction.map(FinalTransactionJson::new),
            correction,
            created_at: details.created_at.rfc3339_micros(),
            cancelled_at: details.cancelled_at.map(Timestamp::rfc3339_micros),
            ended_at: batch.ended_at.map(Timestamp::rfc3339_micros),
            link,
        }
    }
}

impl TransactionJson {
    fn new(transaction: SignedTransaction) -> Self {
        let SignedTransaction { signed, signed_at, sent_at, last_error, adopted } = transaction;
        Self {
            hash: format!("0x{}", Hex(&signed.hash)),
            nonce: signed.nonce,
            max_fee_gwei: gwei(signed.max_fee),
            tip_gwei: gwei(signed.tip),
            cancels: signed.is_filler,
            signed_at: signed_at.rfc3339_micros(),
            sent_at: sent_at.map(Timestamp::rfc3339_micros),
            last_error,
            adopted,
        }
    }
}

impl FinalTransactionJson {
    fn new(transaction: FinalTransaction) -> Self {
        let FinalTransaction { hash, block, gas_used, gas_price } = transaction;
        let fee = gas_used.zip(gas_price).map(|(gas, price)| price.saturating_mul(gas.into()));
        Self {
            hash: format!("0x{}", Hex(&hash)),
            block,
            gas_used,
            gas_price_gwei: gas_price.map(gwei),
            fee: fee.map(|fee| fee.to_string()),
            fee_ether: fee.map(ether),
        }
    }
}

/// Why it failed. If an operator decided that it was not made, this is the note about its transaction.
fn fail_reason(details: &WithdrawalDetails) -> Option<String> {
    match WithdrawalState::of(details) {
        WithdrawalState::Failed => {
            let note = details.nonce.as_ref().and_then(|nonce| nonce.note.clone());
            details.fail_reason.clone().or(note)
        }
        _ => None,
    }
}

/// What the chain shows, and what an operator decided, if the chain made a withdrawal that was decided as not made.
fn correction(details: &WithdrawalDetails) -> Option<String> {
    let is_corrected = details.end == Some(WithdrawalEnd::Withdrawn)
        && details.batch.progress.state == BatchState::Invalid;
    is_corrected.then(|| {
        let note = details.nonce.as_ref().and_then(|nonce| nonce.note.as_deref());
        let decided = details.fail_reason.as_deref().unwrap_or("it was not made");
        format!("{}; an operator had decided: {decided}", note.unwrap_or("it was made"))
    })
}

/// The id that the pool gave to the withdrawal. Until the withdrawal is committed, a reorganization
/// of the chain can still change it.
fn final_withdrawal_id(details: &WithdrawalDetails) -> Option<String> {
    match &details.nonce.as_ref()?.outcome {
        Some(NonceOutcome::Withdrawn { withdrawal_id })
            if details.end == Some(WithdrawalEnd::Withdrawn) =>
        {
            Some(withdrawal_id.clone())
        }
        _ => None,
    }
}

/// Formats wei in gwei, without rounding.
fn gwei(wei: u128) -> String {
    in_unit(wei, 9)
}

/// Formats wei in the chain's coins, without rounding.
fn ether(wei: u128) -> String {
    in_unit(wei, 18)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fees_are_formatted_in_gwei_without_rounding() {
        for (wei, text) in [
            (0, "0"),
            (1, "0.000000001"),
            (10_000_000_000, "10"),
            (30_500_000_000, "30.5"),
            (u128::MAX, "340282366920938463463374607431.768211455"),
        ] {
            assert_eq!(gwei(wei), text);
        }
        assert_eq!(ether(21_000_000_000_001), "0.000021000000000001");
    }
}
