use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_test_chain::Fault;
use grid_batch_withdrawals::NonceOutcome;
use serde_json::json;

use crate::harness::{Harness, SEND};

#[tokio::test]
async fn cancelled_before_signing_uses_no_nonce() {
    let harness = Harness::new();
    let id = harness.schedule("500");
    harness.cancel(id);
    let answer = harness.send(id).await;
    assert_eq!(answer.outcome, Outcome::Rejected);
    assert_eq!(answer.message.as_deref(), Some("cancelled before anything was signed"));
    assert_eq!(harness.store.nonces(id), []);
}

#[tokio::test]
async fn mined_cancellation_uses_the_nonce_and_pays_nothing() {
    let harness = Harness::with_options(|options| options.confirmations = 2);
    harness.proxy.require_bump(12);
    let id = harness.send_withdrawal().await;
    harness.cancel(id);
    assert_eq!(harness.evidence(id).await, Evidence::Repeatable);
    harness.accept(id).await;
    assert_eq!(harness.evidence(id).await, Evidence::Present);
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Valid);
    harness.mine(1);
    let reason = "cancelled in block 2; the pool was not called";
    assert_eq!(harness.failure_reason(id).await, reason);
    let assigned = harness.nonce(id);
    assert_eq!((assigned.nonce, assigned.outcome), (0, Some(NonceOutcome::Cancelled)));
    assert_eq!(harness.polls(), []);
    // The next withdrawal is not blocked.
    let next = harness.send_withdrawal().await;
    assert_eq!(harness.nonce(next).nonce, 1);
}

#[tokio::test]
async fn late_cancellation_changes_nothing() {
    let harness = Harness::with_options(|options| options.confirmations = 2);
    let id = harness.send_withdrawal().await;
    harness.mine(1);
    harness.cancel(id);
    harness.accept(id).await;
    assert_eq!(harness.nonce(id).transactions.len(), 1);
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
    assert_eq!(harness.polls().len(), 1);
}

#[tokio::test]
async fn cancellation_that_loses_the_race_is_committed() {
    let harness = Harness::new();
    let id = harness.send_withdrawal().await;
    harness.cancel(id);
    // The block producer does not have the cancellation.
    harness.proxy.set_next(SEND, 1, Fault::rpc_error("already known"));
    harness.accept(id).await;
    assert!(harness.nonce(id).transactions[1].signed.is_filler);
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
    let withdrawal_id = "1".to_owned();
    assert_eq!(harness.nonce(id).outcome, Some(NonceOutcome::Withdrawn { withdrawal_id }));
}

#[tokio::test]
async fn cancellation_is_sent_again_and_not_the_payment() {
    let harness = Harness::new();
    let id = harness.send_withdrawal().await;
    harness.cancel(id);
    harness.accept(id).await;
    let [_, cancellation] = harness.hashes(id).try_into().unwrap();
    harness.chain.drop_transaction(&cancellation).unwrap();
    assert_eq!(harness.evidence(id).await, Evidence::Repeatable);
    harness.accept(id).await;
    assert_eq!(harness.sent().last(), Some(&cancellation));
    harness.mine(1);
    harness.failure_reason(id).await;
    assert_eq!(harness.polls(), []);
}

#[tokio::test]
async fn cancellation_bids_the_cap_if_it_cannot_outbid() {
    let harness = Harness::with_options(|options| options.cap = "22".parse().unwrap());
    harness.proxy.require_bump(12);
    harness.chain.set_base_fee(10).unwrap();
    let id = harness.send_withdrawal().await;
    harness.cancel(id);
    // The node has the payment and keeps it.
    harness.accept(id).await;
    let filler = harness.nonce(id).transactions[1].signed.clone();
    assert_eq!((filler.is_filler, filler.max_fee), (true, 22_000_000_000));
    assert_eq!(harness.sent(), [harness.hashes(id)[0].clone()]);
    // The node has lost the payment and takes the cancellation.
    harness.chain.drop_transaction(&harness.hashes(id)[0]).unwrap();
    harness.accept(id).await;
    harness.mine(1);
    harness.failure_reason(id).await;
    assert_eq!(harness.polls(), []);
}

#[tokio::test]
async fn cancelled_withdrawal_can_be_retried() {
    let harness = Harness::new();
    let id = harness.send_withdrawal().await;
    harness.cancel(id);
    harness.accept(id).await;
    harness.mine(1);
    harness.failure_reason(id).await;
    harness.retry(id);
    harness.accept(id).await;
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
    assert_eq!(harness.polls().len(), 1);
    let receipt = harness.receipt(&harness.polls()[0].transaction_hash);
    assert_eq!(receipt["status"], json!("0x1"));
}

#[tokio::test]
async fn cancellation_under_a_lower_cap_is_sent_again() {
    let mut harness = Harness::new();
    harness.chain.set_base_fee(10).unwrap();
    let id = harness.send_withdrawal().await;
    harness.cancel(id);
    harness.restart_with(|options| options.cap = "15".parse().unwrap());
    for _ in 0..2 {
        harness.proxy.set_next(SEND, 1, Fault::rpc_error("replacement transaction underpriced"));
        harness.accept(id).await;
        assert_eq!(harness.nonce(id).transactions.len(), 2);
    }
    harness.chain.drop_transaction(&harness.hashes(id)[0]).unwrap();
    harness.accept(id).await;
    harness.mine(1);
    harness.failure_reason(id).await;
    assert_eq!(harness.polls(), []);
}
