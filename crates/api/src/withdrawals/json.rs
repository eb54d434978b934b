use std::fmt::Display;

use grid_batch_core::{BatchState, Hex, Timestamp};
use grid_batch_withdrawals::{NonceOutcome, SignedTransaction, WithdrawalDetails};
use serde::Serialize;

use crate::{
    time::rfc3339,
    withdrawals::{standing::Standing, waiting::waits_for},
};

/// A withdrawal as clients are told of it.
#[derive(Debug, Serialize)]
pub(crate) struct WithdrawalJson {
    id: String,
    kind: &'static str,
    pool: String,
    beneficiary: String,
    amount: String,
    gas_admin: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reward_id: Option<String>,
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
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancelled_at: Option<String>,
    ended_at: Option<String>,
    link: String,
}

/// A transaction that was signed for it, with its fees a unit of gas.
#[derive(Debug, Serialize)]
struct TransactionJson {
    hash: String,
    nonce: u64,
    max_fee_gwei: String,
    tip_gwei: String,
    cancels: bool,
    signed_at: String,
    sent_at: Option<String>,
    last_error: Option<String>,
}

impl WithdrawalJson {
    pub(crate) fn of(story: WithdrawalDetails, link: String) -> Self {
        let state = Standing::of(&story).as_str();
        let waits_for = waits_for(&story);
        let withdrawal_id = withdrawal_id(&story);
        let WithdrawalDetails { withdrawal, batch, nonce, .. } = story;
        let signed = nonce.map_or_else(Vec::new, |nonce| nonce.transactions);
        Self {
            id: withdrawal.id.to_string(),
            kind: withdrawal.kind.as_str(),
            pool: withdrawal.pool,
            beneficiary: withdrawal.beneficiary,
            amount: withdrawal.amount,
            gas_admin: withdrawal.service_id.to_string(),
            reward_id: text(withdrawal.reward_id),
            state,
            waits_for,
            withdrawal_id,
            fail_reason: story.fail_reason,
            generation: story.generation,
            attempts: batch.progress.attempts,
            transactions: signed.into_iter().map(TransactionJson::of).collect(),
            created_at: rfc3339(story.created_at),
            cancelled_at: time(story.cancelled_at),
            ended_at: time(batch.ended_at),
            link,
        }
    }
}

impl TransactionJson {
    fn of(transaction: SignedTransaction) -> Self {
        let SignedTransaction { signed, signed_at, sent_at, last_error } = transaction;
        Self {
            hash: format!("0x{}", Hex(&signed.hash)),
            nonce: signed.nonce,
            max_fee_gwei: gwei(signed.max_fee),
            tip_gwei: gwei(signed.tip),
            cancels: signed.is_filler,
            signed_at: rfc3339(signed_at),
            sent_at: time(sent_at),
            last_error,
        }
    }
}

/// The pool's own id, once the withdrawal is made for good.
fn withdrawal_id(story: &WithdrawalDetails) -> Option<String> {
    match &story.nonce.as_ref()?.outcome {
        Some(NonceOutcome::Withdrawn { withdrawal_id })
            if story.batch.progress.state == BatchState::Committed =>
        {
            Some(withdrawal_id.clone())
        }
        _ => None,
    }
}

fn time(time: Option<Timestamp>) -> Option<String> {
    time.map(rfc3339)
}

fn text(value: Option<impl Display>) -> Option<String> {
    value.map(|value| value.to_string())
}

/// So many wei in gwei, to the last digit.
fn gwei(wei: u128) -> String {
    const GWEI: u128 = 1_000_000_000;
    match (wei / GWEI, wei % GWEI) {
        (whole, 0) => whole.to_string(),
        (whole, rest) => format!("{whole}.{rest:09}").trim_end_matches('0').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fees_are_told_in_gwei_to_the_last_wei() {
        for (wei, text) in [
            (0, "0"),
            (1, "0.000000001"),
            (10_000_000_000, "10"),
            (30_500_000_000, "30.5"),
            (u128::MAX, "340282366920938463463374607431.768211455"),
        ] {
            assert_eq!(gwei(wei), text);
        }
    }
}
