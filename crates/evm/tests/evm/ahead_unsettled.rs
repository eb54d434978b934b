//! Signing ahead after nonces whose withdrawals have ended in another way than by their transactions.

use grid_batch_core::batches::LedgerStatus;
use grid_batch_withdrawals::{NonceOutcome, WithdrawalId};

use crate::harness::Harness;

fn harness() -> Harness {
    Harness::with_options(|options| {
        options.in_flight = 4;
        options.confirmations = 3;
    })
}

/// A withdrawal with nonce 0 that an operator decided to be invalid. Its payment is pending.
async fn decided_invalid(harness: &Harness) -> WithdrawalId {
    let id = harness.send_withdrawal().await;
    harness.store.decide_invalid(id);
    id
}

/// Sends the first of three withdrawals, looks at it, and returns how many of the three are signed.
async fn count_signed(harness: &Harness) -> usize {
    let ids = ["1", "2", "3"].map(|amount| harness.schedule(amount));
    harness.accept(ids[0]).await;
    harness.status(ids[0]).await;
    ids.iter().filter(|id| !harness.store.nonces(**id).is_empty()).count()
}

#[tokio::test]
async fn final_payment_decided_invalid_is_closed() {
    let harness = harness();
    let failed = decided_invalid(&harness).await;
    harness.mine(3);
    assert_eq!(count_signed(&harness).await, 3);
    let outcome = harness.nonce(failed).outcome;
    let withdrawal_id = harness.polls()[0].id.clone();
    assert_eq!(outcome, Some(NonceOutcome::Withdrawn { withdrawal_id }));
}

#[tokio::test]
async fn refused_payment_decided_invalid_is_closed() {
    let harness = harness();
    let failed = decided_invalid(&harness).await;
    harness.set_pool_owner(1);
    harness.mine(3);
    harness.set_pool_owner(0);
    assert_eq!(count_signed(&harness).await, 3);
    assert_eq!(harness.nonce(failed).outcome, Some(NonceOutcome::Reverted));
}

#[tokio::test]
async fn payment_decided_invalid_is_not_closed_too_early() {
    let harness = harness();
    let failed = decided_invalid(&harness).await;
    harness.mine(2);
    assert_eq!(count_signed(&harness).await, 1);
    assert_eq!(harness.nonce(failed).outcome, None);
}

#[tokio::test]
async fn filled_nonce_does_not_end_signing_ahead() {
    let harness = harness();
    let failed = harness.send_withdrawal().await;
    harness.restart_chain();
    harness.store.decide_invalid(failed);
    let next = harness.send_withdrawal().await;
    assert_eq!(harness.follow(next, 4).await, LedgerStatus::Committed);
    assert_eq!(count_signed(&harness).await, 3);
    assert_eq!(harness.nonce(failed).outcome, Some(NonceOutcome::Cancelled));
}
