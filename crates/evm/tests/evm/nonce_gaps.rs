//! Nonces below the next one that the node does not show.

use grid_batch_core::{LedgerStatus, Outcome};
use grid_batch_evm::EvmOptions;

use crate::harness::{Harness, SEND};

/// An account whose nonces below this one are stored, and none of them is on the chain.
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
