//! Compares what the server reports with the chain.

use std::collections::HashMap;

use grid_batch_local_chain::Poll;

use super::{
    WithdrawalReport, chain::DemoChain, client::WithdrawalView, plan::WithdrawalPlan,
    report::WithdrawalCounts, settings::MAXIMUM_GAS_PRICE_GWEI,
};
use crate::DemoError;

/// Identifies a withdrawal on the chain by its amount and beneficiary, which are unique.
type WithdrawalKey = (String, String);

pub(super) fn audit(
    chain: &DemoChain,
    plan: &WithdrawalPlan,
    withdrawals: &[WithdrawalView],
    counts: WithdrawalCounts,
) -> Result<WithdrawalReport, DemoError> {
    let polls = chain.polls()?;
    let mut polls_by_key: HashMap<WithdrawalKey, Vec<&Poll>> = HashMap::new();
    for poll in &polls {
        let key = (poll.amount.clone(), poll.beneficiary.clone());
        polls_by_key.entry(key).or_default().push(poll);
    }
    let polls_of = |withdrawal: &WithdrawalView| {
        let key = (withdrawal.amount.clone(), withdrawal.beneficiary.to_lowercase());
        polls_by_key.get(&key).map_or(&[][..], Vec::as_slice)
    };
    let matched: Vec<&[&Poll]> = withdrawals.iter().map(polls_of).collect();
    let count = |is_counted: fn(&WithdrawalView) -> bool| {
        withdrawals.iter().filter(|w| is_counted(w)).count()
    };
    let bids = polls.iter().map(|poll| chain.gas_bid(&poll.transaction_hash));
    let bids = bids.collect::<Result<Vec<u128>, DemoError>>()?;
    let maximum_bid = u128::from(MAXIMUM_GAS_PRICE_GWEI) * 1_000_000_000;
    Ok(WithdrawalReport {
        promised: withdrawals.len(),
        withdrawn: count(|w| w.withdrawal_id.is_some()),
        failed: count(|w| w.fail_reason.is_some()),
        lost: count(|w| w.withdrawal_id.is_some() == w.fail_reason.is_some())
            + plan.len().saturating_sub(withdrawals.len()),
        paid_twice: polls_by_key.values().filter(|polls| polls.len() > 1).count(),
        unpromised: polls.len() - matched.iter().map(|polls| polls.len()).sum::<usize>(),
        misreported: withdrawals.iter().zip(&matched).filter(|(w, polls)| !agree(w, polls)).count(),
        out_of_order: out_of_order(plan, &polls),
        bids_above_the_cap: bids.iter().filter(|bid| **bid > maximum_bid).count(),
        claims_refused: counts.claims_refused,
        kills: counts.kills,
        parked_seconds: round_to_tenths(counts.parked_for.as_secs_f64()),
        seconds: round_to_tenths(counts.time.as_secs_f64()),
    })
}

/// Whether the server's report of a withdrawal agrees with the chain.
fn agree(withdrawal: &WithdrawalView, polls: &[&Poll]) -> bool {
    match (&withdrawal.withdrawal_id, polls) {
        (Some(id), [poll]) => *id == poll.id,
        (None, []) => true,
        _ => false,
    }
}

/// The number of withdrawals that were made after a withdrawal of the same gas admin that was requested later.
fn out_of_order(plan: &WithdrawalPlan, polls: &[Poll]) -> usize {
    let position = |poll: &Poll| {
        plan.requests().iter().position(|request| request.amount.to_string() == poll.amount)
    };
    let mut by_sender: HashMap<&str, Vec<(u64, usize)>> = HashMap::new();
    for poll in polls {
        if let Some(position) = position(poll) {
            by_sender.entry(&poll.sender).or_default().push((poll.nonce, position));
        }
    }
    by_sender
        .into_values()
        .map(|mut by_nonce| {
            by_nonce.sort_unstable();
            by_nonce.windows(2).filter(|pair| pair[0].1 > pair[1].1).count()
        })
        .sum()
}

fn round_to_tenths(seconds: f64) -> f64 {
    (seconds * 10.0).round() / 10.0
}
