//! Nonces below the next one that the node does not show.

use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::ledger::Outcome;
use grid_batch_evm::EvmOptions;

use crate::harness::{Harness, SEND};

/// An account whose nonces below this one are stored, but none of which is on the chain.
fn with_gap_below(nonce: u64, set: impl FnOnce(&mut EvmOptions)) -> Harness {
    let harness = Harness::with_options(set);
    harness.settle_elsewhere(nonce - 1);
    harness
}

#[tokio::test]
async fn gap_up_to_the_limit_is_filled() {
    let harness = with_gap_below(64, |_| {});
    let id = harness.send_withdrawal().await;
    assert_eq!(harness.nonce(id).nonce, 64);
    assert_eq!(harness.follow(id, 4).await, LedgerStatus::Committed);
}

#[tokio::test]
async fn longer_gap_is_parked_with_what_to_do() {
    let mut harness = with_gap_below(65, |_| {});
    let id = harness.schedule("500");
    let answer = harness.send(id).await;
    assert_eq!(answer.outcome, Outcome::Parked, "{answer:?}");
    let message = answer.message.unwrap();
    for part in ["the nonces 0 to 64", "the lowest is 0", "set evm.longest_gap to 65"] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!((harness.store.nonces(id), harness.proxy.calls(SEND)), (vec![], 0));
    harness.restart_with(|options| options.longest_gap = 65);
    harness.accept(id).await;
    assert_eq!(harness.follow(id, 4).await, LedgerStatus::Committed);
}

#[tokio::test]
async fn signed_withdrawal_above_a_long_gap_is_parked() {
    let mut harness = with_gap_below(65, |options| options.longest_gap = 65);
    let id = harness.send_withdrawal().await;
    harness.restart_chain();
    harness.restart_with(|options| options.longest_gap = 64);
    let sent = harness.proxy.calls(SEND);
    let answer = harness.send(id).await;
    assert_eq!(answer.outcome, Outcome::Parked, "{answer:?}");
    assert!(answer.message.unwrap().contains("the nonces 0 to 64"));
    assert_eq!(harness.proxy.calls(SEND), sent);
}

/// A wrong node made the server sign with a nonce that is far too high.
#[tokio::test]
async fn gap_below_a_signed_withdrawal_is_filled_after_a_decision() {
    let mut harness = with_gap_below(200, |options| options.longest_gap = 200);
    let id = harness.schedule("500");
    harness.outcome(id).await;
    assert_eq!(harness.nonce(id).nonce, 200);
    harness.restart_chain();
    harness.restart_with(|options| options.longest_gap = 64);
    let answer = harness.send(id).await;
    assert_eq!(answer.outcome, Outcome::Parked, "{answer:?}");
    assert!(answer.message.unwrap().contains("0-199 fill"));
    harness.store.decide_fill(&harness.service_id(), 0..199);
    let mut left = Vec::new();
    for _ in 0..6 {
        let answer = harness.send(id).await;
        harness.mine(1);
        left.extend(answer.message);
        if answer.outcome == Outcome::Accepted {
            break;
        }
    }
    assert!(left[0].contains("136 more nonces below 200 to be filled"), "{left:?}");
    assert_eq!(harness.follow(id, 4).await, LedgerStatus::Committed);
    assert_eq!(harness.polls().len(), 1);
}
