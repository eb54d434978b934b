use grid_batch_core::{Evidence, LedgerStatus, Outcome};
use grid_batch_test_chain::Fault;
use grid_batch_withdrawals::NonceOutcome;
use serde_json::json;

use crate::world::{SEND, World};

#[tokio::test]
async fn what_is_cancelled_before_anything_is_signed_costs_no_nonce() {
    let world = World::new();
    let id = world.schedule("500");
    world.cancel(id);
    let answer = world.send(id).await;
    assert_eq!(answer.outcome, Outcome::Rejected);
    assert_eq!(answer.message.as_deref(), Some("cancelled before anything was signed"));
    assert_eq!(world.store.nonces(id), []);
}

#[tokio::test]
async fn a_cancellation_that_is_mined_uses_up_the_nonce_and_pays_nobody() {
    let world = World::with_options(|options| options.confirmations = 2);
    world.proxy.require_bump(12);
    let id = world.waiting().await;
    world.cancel(id);
    assert_eq!(world.evidence(id).await, Evidence::Repeatable);
    world.accept(id).await;
    assert_eq!(world.evidence(id).await, Evidence::Present);
    world.mine(1);
    assert_eq!(world.status(id).await, LedgerStatus::Valid);
    world.mine(1);
    let why = "cancelled in block 2, before the pool was asked";
    assert_eq!(world.why_invalid(id).await, why);
    let open = world.nonce(id);
    assert_eq!((open.nonce, open.outcome), (0, Some(NonceOutcome::Cancelled)));
    assert_eq!(world.polls(), []);
    // The next one is not held up.
    let next = world.waiting().await;
    assert_eq!(world.nonce(next).nonce, 1);
}

#[tokio::test]
async fn a_cancellation_that_comes_too_late_changes_nothing() {
    let world = World::with_options(|options| options.confirmations = 2);
    let id = world.waiting().await;
    world.mine(1);
    world.cancel(id);
    world.accept(id).await;
    assert_eq!(world.nonce(id).transactions.len(), 1);
    world.mine(1);
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
    assert_eq!(world.polls().len(), 1);
}

#[tokio::test]
async fn a_cancellation_that_loses_the_race_leaves_the_withdrawal_made() {
    let world = World::new();
    let id = world.waiting().await;
    world.cancel(id);
    // Whoever mines has not heard of the cancellation.
    world.proxy.set_next(SEND, 1, Fault::answer("already known"));
    world.accept(id).await;
    assert!(world.nonce(id).transactions[1].signed.is_filler);
    world.mine(1);
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
    let withdrawal_id = "1".to_owned();
    assert_eq!(world.nonce(id).outcome, Some(NonceOutcome::Withdrawn { withdrawal_id }));
}

#[tokio::test]
async fn a_cancellation_is_sent_again_and_never_what_it_cancels() {
    let world = World::new();
    let id = world.waiting().await;
    world.cancel(id);
    world.accept(id).await;
    let [_, cancelling] = world.hashes(id).try_into().unwrap();
    world.chain.drop_transaction(&cancelling).unwrap();
    assert_eq!(world.evidence(id).await, Evidence::Repeatable);
    world.accept(id).await;
    assert_eq!(world.sent().last(), Some(&cancelling));
    world.mine(1);
    world.why_invalid(id).await;
    assert_eq!(world.polls(), []);
}

#[tokio::test]
async fn where_the_cap_forbids_to_outbid_it_is_cancelled_at_the_cap() {
    let world = World::with_options(|options| options.cap = "22".parse().unwrap());
    world.proxy.require_bump(12);
    world.chain.set_base_fee(10).unwrap();
    let id = world.waiting().await;
    world.cancel(id);
    // The node has the other: this one waits behind it.
    world.accept(id).await;
    let cancelling = world.nonce(id).transactions[1].signed.clone();
    assert_eq!((cancelling.is_filler, cancelling.max_fee), (true, 22_000_000_000));
    assert_eq!(world.sent(), [world.hashes(id)[0].clone()]);
    // The node has lost the other: this one is taken.
    world.chain.drop_transaction(&world.hashes(id)[0]).unwrap();
    world.accept(id).await;
    world.mine(1);
    world.why_invalid(id).await;
    assert_eq!(world.polls(), []);
}

#[tokio::test]
async fn a_withdrawal_that_was_cancelled_can_be_tried_anew() {
    let world = World::new();
    let id = world.waiting().await;
    world.cancel(id);
    world.accept(id).await;
    world.mine(1);
    world.why_invalid(id).await;
    world.try_anew(id);
    world.accept(id).await;
    world.mine(1);
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
    assert_eq!(world.polls().len(), 1);
    let receipt = world.receipt(&world.polls()[0].transaction_hash);
    assert_eq!(receipt["status"], json!("0x1"));
}

#[tokio::test]
async fn a_cancellation_that_pays_less_under_a_lower_cap_is_gone_on_with() {
    let mut world = World::new();
    world.chain.set_base_fee(10).unwrap();
    let id = world.waiting().await;
    world.cancel(id);
    world.restart_with(|options| options.cap = "15".parse().unwrap());
    for _ in 0..2 {
        world.proxy.set_next(SEND, 1, Fault::answer("replacement transaction underpriced"));
        world.accept(id).await;
        assert_eq!(world.nonce(id).transactions.len(), 2);
    }
    world.chain.drop_transaction(&world.hashes(id)[0]).unwrap();
    world.accept(id).await;
    world.mine(1);
    world.why_invalid(id).await;
    assert_eq!(world.polls(), []);
}
