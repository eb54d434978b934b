use grid_batch_core::Hex;
use grid_batch_core::batches::BatchState;
use grid_batch_withdrawals::{
    FinalTransaction, NonceOutcome, SignedTransaction, WithdrawalDetails, WithdrawalEnd,
    WithdrawalState, in_unit,
};

use crate::{
    http::{Links, Time, WithdrawalStateName, json_types},
    withdrawals::{Queued, QueuedJson, WithdrawalContext, waits_for::waits_for},
};

json_types! {
    /// A withdrawal in an answer.
    pub(crate) struct WithdrawalJson(details: &WithdrawalDetails, links: &Links<'_>) {
        id: String = details.withdrawal.id.to_string(),
        kind: &'static str = details.withdrawal.kind.as_str(),
        pool: String = details.withdrawal.pool.clone(),
        beneficiary: String = details.withdrawal.beneficiary.clone(),
        amount: String = details.withdrawal.amount.clone(),
        gas_admin: String = details.withdrawal.service_id.to_string(),
        #[serde(skip_serializing_if = "Option::is_none")]
        reward_id: Option<String> = details.withdrawal.reward_id.map(|id| id.to_string()),
        /// The key of the request that scheduled it.
        #[serde(skip_serializing_if = "Option::is_none")]
        idempotency_key: Option<String> = details.withdrawal.idempotency_key.clone(),
        state: WithdrawalStateName = WithdrawalStateName(WithdrawalState::of(details)),
        #[serde(skip_serializing_if = "Option::is_none")]
        waits_for: Option<String> = waits_for(details),
        #[serde(skip_serializing_if = "Option::is_none")]
        withdrawal_id: Option<String> = final_withdrawal_id(details),
        #[serde(skip_serializing_if = "Option::is_none")]
        fail_reason: Option<String> = fail_reason(details),
        generation: u32 = details.generation,
        attempts: u32 = details.batch.progress.attempts,
        transactions: Vec<TransactionJson> = signed_transactions(details),
        /// The transaction of the withdrawal that is final: it has paid, has failed or has cancelled.
        #[serde(skip_serializing_if = "Option::is_none")]
        final_transaction: Option<FinalTransactionJson> =
            final_transaction(details).map(FinalTransactionJson::new),
        /// What the chain shows and what an operator decided, if they differ.
        #[serde(skip_serializing_if = "Option::is_none")]
        correction: Option<String> = correction(details),
        created_at: Time = Time(details.created_at),
        #[serde(skip_serializing_if = "Option::is_none")]
        cancelled_at: Option<Time> = details.cancelled_at.map(Time),
        ended_at: Option<Time> = details.batch.ended_at.map(Time),
        link: String = links.path(&Queued::Withdrawal.path(&details.withdrawal.id)),
    }

    /// A transaction that was signed for a withdrawal, or for a transaction of an account. Fees are per unit of gas.
    pub(crate) struct TransactionJson(transaction: &SignedTransaction) {
        hash: String = format!("0x{}", Hex(&transaction.signed.hash)),
        nonce: u64 = transaction.signed.nonce,
        max_fee_gwei: String = gwei(transaction.signed.max_fee),
        tip_gwei: String = gwei(transaction.signed.tip),
        cancels: bool = transaction.signed.is_filler,
        signed_at: Time = Time(transaction.signed_at),
        sent_at: Option<Time> = transaction.sent_at.map(Time),
        last_error: Option<String> = transaction.last_error.clone(),
        adopted: bool = transaction.adopted,
    }

    /// A transaction that is final, and what it cost.
    pub(crate) struct FinalTransactionJson(transaction: &FinalTransaction) {
        hash: String = format!("0x{}", Hex(&transaction.hash)),
        block: u64 = transaction.block,
        gas_used: Option<u64> = transaction.gas_used,
        /// The price that it paid for a unit of gas.
        gas_price_gwei: Option<String> = transaction.gas_price.map(gwei),
        /// What its gas cost, in wei.
        fee: Option<String> = fee(transaction).map(|fee| fee.to_string()),
        /// What its gas cost, in the chain's coins.
        fee_ether: Option<String> = fee(transaction).map(ether),
    }
}

impl QueuedJson for WithdrawalJson {
    const KIND: Queued = Queued::Withdrawal;

    fn of(
        details: &WithdrawalDetails,
        _context: &WithdrawalContext,
        links: &Links<'_>,
    ) -> Option<Self> {
        details.withdrawal.call.is_none().then(|| Self::new(details, links))
    }
}

/// What was signed with its last nonce.
pub(crate) fn signed_transactions(details: &WithdrawalDetails) -> Vec<TransactionJson> {
    let transactions = details.nonce.iter().flat_map(|nonce| &nonce.transactions);
    transactions.map(TransactionJson::new).collect()
}

fn final_transaction(details: &WithdrawalDetails) -> Option<&FinalTransaction> {
    details.nonce.as_ref()?.final_transaction.as_ref()
}

fn fee(FinalTransaction { gas_used, gas_price, .. }: &FinalTransaction) -> Option<u128> {
    gas_used.zip(*gas_price).map(|(gas, price)| price.saturating_mul(gas.into()))
}

/// Why it failed. If an operator decided that it was not made, this is the note about its transaction.
pub(crate) fn fail_reason(details: &WithdrawalDetails) -> Option<String> {
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
pub(crate) fn gwei(wei: u128) -> String {
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
