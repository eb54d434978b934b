//! What the service says, beside what the chain has.

use std::collections::HashMap;

use grid_batch_test_chain::Poll;

use crate::demo::{
    DemoError,
    withdrawals::{
        Counted, chain::Chain, client::Told, plan::Plan, report::WithdrawalReport,
        settings::CAP_GWEI,
    },
};

/// By what a withdrawal is known on the chain: no two have the same amount and beneficiary.
type Known = (String, String);

pub(super) fn audit(
    chain: &Chain,
    plan: &Plan,
    told: &[Told],
    counted: Counted,
) -> Result<WithdrawalReport, DemoError> {
    let polls = chain.polls()?;
    let mut made: HashMap<Known, Vec<&Poll>> = HashMap::new();
    for poll in &polls {
        made.entry((poll.amount.clone(), poll.beneficiary.clone())).or_default().push(poll);
    }
    let of = |told: &Told| {
        let known = (told.amount.clone(), told.beneficiary.to_lowercase());
        made.get(&known).map_or(&[][..], Vec::as_slice)
    };
    let promised: Vec<&[&Poll]> = told.iter().map(of).collect();
    let count = |is_so: fn(&Told) -> bool| told.iter().filter(|told| is_so(told)).count();
    let bids = polls.iter().map(|poll| chain.bid_of(&poll.transaction_hash));
    let bids = bids.collect::<Result<Vec<u128>, DemoError>>()?;
    Ok(WithdrawalReport {
        promised: told.len(),
        withdrawn: count(|told| told.withdrawal_id.is_some()),
        failed: count(|told| told.fail_reason.is_some()),
        lost: count(|told| told.withdrawal_id.is_some() == told.fail_reason.is_some())
            + plan.len().saturating_sub(told.len()),
        paid_twice: made.values().filter(|polls| polls.len() > 1).count(),
        unpromised: polls.len() - promised.iter().map(|polls| polls.len()).sum::<usize>(),
        misreported: told.iter().zip(&promised).filter(|(told, polls)| !agree(told, polls)).count(),
        out_of_order: out_of_order(plan, &polls),
        bids_above_the_cap: bids
            .iter()
            .filter(|bid| **bid > u128::from(CAP_GWEI) * 1_000_000_000)
            .count(),
        claims_refused: counted.claims_refused,
        kills: counted.kills,
        parked_seconds: tenths(counted.parked_for.as_secs_f64()),
        seconds: tenths(counted.time.as_secs_f64()),
    })
}

/// Whether the service says of a withdrawal what the chain has of it.
fn agree(told: &Told, polls: &[&Poll]) -> bool {
    match (&told.withdrawal_id, polls) {
        (Some(id), [poll]) => *id == poll.id,
        (None, []) => true,
        _ => false,
    }
}

/// How many withdrawals were made after one of the same gas admin that was asked for later.
fn out_of_order(plan: &Plan, polls: &[Poll]) -> usize {
    let place = |poll: &Poll| {
        plan.orders().iter().position(|order| order.amount.to_string() == poll.amount)
    };
    let mut by_sender: HashMap<&str, Vec<(u64, usize)>> = HashMap::new();
    for poll in polls {
        if let Some(place) = place(poll) {
            by_sender.entry(&poll.sender).or_default().push((poll.nonce, place));
        }
    }
    by_sender
        .into_values()
        .map(|mut made| {
            made.sort_unstable();
            made.windows(2).filter(|pair| pair[0].1 > pair[1].1).count()
        })
        .sum()
}

fn tenths(seconds: f64) -> f64 {
    (seconds * 10.0).round() / 10.0
}
