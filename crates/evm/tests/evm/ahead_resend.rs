//! Transactions that were signed ahead and that the node has lost.

use std::time::Duration;

use grid_batch_test_chain::Fault;
use grid_batch_withdrawals::WithdrawalId;

use crate::harness::{Harness, RESEND_AFTER, SEND};

/// Three withdrawals that were sent; the node has lost the last two.
async fn lost() -> (Harness, Vec<WithdrawalId>) {
    let harness = Harness::with_options(|options| options.in_flight = 4);
    let ids: Vec<_> = ["1", "2", "3"].map(|amount| harness.schedule(amount)).into();
    harness.accept(ids[0]).await;
    harness.status(ids[0]).await;
    for id in &ids[1..] {
        harness.chain.drop_transaction(&harness.hashes(*id)[0]).unwrap();
    }
    (harness, ids)
}

/// The nonces that are sent again when they are due.
async fn sent_again(harness: &Harness, first: WithdrawalId) -> Vec<u64> {
    let before = harness.proxy.sent().len();
    harness.status(first).await;
    harness.advance_clock(RESEND_AFTER + Duration::from_secs(1));
    harness.status(first).await;
    harness.proxy.sent()[before..].iter().map(|sent| sent.nonce).collect()
}

#[tokio::test]
async fn held_withdrawal_and_those_behind_are_not_sent_again() {
    let (harness, ids) = lost().await;
    harness.store.hold(ids[2]);
    assert_eq!(sent_again(&harness, ids[0]).await, [1]);
    harness.store.hold(ids[1]);
    assert_eq!(sent_again(&harness, ids[0]).await, [0; 0]);
}

#[tokio::test]
async fn bid_above_a_lowered_cap_is_not_sent_again() {
    let (mut harness, ids) = lost().await;
    harness.restart_with(|options| options.cap = "1".parse().unwrap());
    assert_eq!(sent_again(&harness, ids[0]).await, [0; 0]);
    harness.restart_with(|options| options.cap = "200".parse().unwrap());
    assert_eq!(sent_again(&harness, ids[0]).await, [1, 2]);
}

#[tokio::test]
async fn error_of_the_node_is_stored_unless_it_has_the_transaction() {
    for (message, is_stored) in [("txpool is full", true), ("already known", false)] {
        let harness = Harness::with_options(|options| options.in_flight = 4);
        let [first, second] = ["1", "2"].map(|amount| harness.schedule(amount));
        harness.accept(first).await;
        harness.proxy.set(SEND, Fault::rpc_error(message));
        harness.status(first).await;
        let sent = harness.nonce(second).transactions.remove(0);
        assert!(sent.sent_at.is_some());
        assert_eq!(sent.last_error.is_some(), is_stored, "{message}: {:?}", sent.last_error);
    }
}
