//! Somebody else uses the gas admin's key.

use alloy_primitives::hex;
use grid_batch_core::{Evidence, LedgerStatus, Outcome, ScopeId};
use grid_batch_test_chain::Fault;
use grid_batch_withdrawals::{NonceOutcome, SigningStore, WithdrawalId};
use serde_json::json;

use crate::world::{SEND, World};

/// A withdrawal whose nonce was used by a transaction that was not signed here.
async fn one_whose_nonce_is_gone(confirmations: u64) -> (World, WithdrawalId) {
    let world = World::with_options(|options| options.confirmations = confirmations);
    let id = world.waiting().await;
    world.chain.drop_transaction(&world.hashes(id)[0]).unwrap();
    world.use_the_key_elsewhere();
    (world, id)
}

#[tokio::test]
async fn the_next_nonce_is_the_chains_where_others_have_used_the_key_before() {
    let world = World::new();
    world.use_the_key_elsewhere();
    let first = world.waiting().await;
    assert_eq!(world.nonce(first).nonce, 1);
    world.mine(1);
    world.use_the_key_elsewhere();
    let second = world.waiting().await;
    assert_eq!(world.nonce(second).nonce, 3);
    world.mine(1);
    assert_eq!(world.polls().len(), 2);
}

#[tokio::test]
async fn a_nonce_that_was_used_elsewhere_is_never_replaced_by_itself() {
    let (world, id) = one_whose_nonce_is_gone(1).await;
    for _ in 0..5 {
        assert_eq!(world.status(id).await, LedgerStatus::NotReported);
        assert_eq!(world.evidence(id).await, Evidence::Inconclusive);
        assert_eq!(world.outcome(id).await, Outcome::Ambiguous);
        world.mine(10);
    }
    let open = world.nonce(id);
    let foreign_hash = hex::encode_prefixed(open.foreign_hash.unwrap());
    assert_eq!(world.transaction(&foreign_hash)["value"], "0x1");
    let note = format!(
        "nonce 0 of 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266 was used by {foreign_hash}, which was not \
         signed here"
    );
    assert_eq!((open.note, open.outcome), (Some(note), None));
    assert_eq!(world.polls(), []);
}

#[tokio::test]
async fn a_person_has_it_tried_anew_and_it_takes_another_nonce_when_the_loss_is_final() {
    let (world, id) = one_whose_nonce_is_gone(3).await;
    assert_eq!(world.status(id).await, LedgerStatus::NotReported);
    world.try_anew(id);
    for _ in 0..2 {
        assert_eq!(world.outcome(id).await, Outcome::Ambiguous);
        assert_eq!(world.evidence(id).await, Evidence::Inconclusive);
        assert_eq!(world.nonce(id).nonce, 0);
        world.mine(1);
    }
    assert_eq!(world.evidence(id).await, Evidence::Repeatable);
    world.accept(id).await;
    world.mine(3);
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
    let outcome: Vec<_> =
        world.store.nonces(id).into_iter().map(|it| (it.nonce, it.outcome)).collect();
    let made = NonceOutcome::Withdrawn { withdrawal_id: "1".to_owned() };
    assert_eq!(outcome, [(0, Some(NonceOutcome::UsedElsewhere)), (1, Some(made))]);
    assert_eq!(world.polls().len(), 1);
}

#[tokio::test]
async fn what_is_tried_anew_keeps_a_nonce_that_is_not_lost() {
    let world = World::new();
    let id = world.waiting().await;
    world.try_anew(id);
    world.accept(id).await;
    assert_eq!(world.sent(), world.hashes(id));
    world.mine(1);
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
    assert_eq!(world.polls().len(), 1);
}

#[tokio::test]
async fn a_node_that_fails_proves_no_loss() {
    let (world, id) = one_whose_nonce_is_gone(1).await;
    assert_eq!(world.status(id).await, LedgerStatus::NotReported);
    world.try_anew(id);
    for (method, fault) in [
        ("eth_getTransactionReceipt", Fault::status(500)),
        ("eth_getTransactionByHash", Fault::status(503)),
        ("eth_getBlockByNumber", Fault::answer("header not found")),
    ] {
        world.proxy.set(method, fault);
        let outcome = world.outcome(id).await;
        assert!(matches!(outcome, Outcome::NotSent | Outcome::Busy), "{method}: {outcome}");
        assert_eq!(world.nonce(id).outcome, None);
        world.proxy.clear();
    }
    assert_eq!(world.proxy.calls(SEND), 1);
    world.accept(id).await;
}

#[tokio::test]
async fn without_the_transaction_that_used_it_no_nonce_is_lost() {
    let (world, id) = one_whose_nonce_is_gone(1).await;
    world.mine(5);
    world.proxy.set("eth_getBlockByNumber", Fault::Null);
    assert_eq!(world.status(id).await, LedgerStatus::NotReported);
    world.try_anew(id);
    world.proxy.clear();
    assert_eq!(world.evidence(id).await, Evidence::Inconclusive);
    assert_eq!(world.outcome(id).await, Outcome::Ambiguous);
    assert_eq!(world.nonce(id).foreign_hash, None);
    // Seen at the next look.
    assert_eq!(world.status(id).await, LedgerStatus::NotReported);
    assert_eq!(world.evidence(id).await, Evidence::Repeatable);
    world.accept(id).await;
}

#[tokio::test]
async fn a_transaction_with_another_nonce_proves_no_loss() {
    let (world, id) = one_whose_nonce_is_gone(1).await;
    world.use_the_key_elsewhere();
    let block = world.chain.rpc("eth_getBlockByNumber", json!(["latest", false])).unwrap();
    let hash = hex::decode_to_array(block["transactions"][0].as_str().unwrap()).unwrap();
    world.store.record_foreign_use(world.scope().service_id(), 0, &hash).unwrap();
    world.try_anew(id);
    assert_eq!(world.evidence(id).await, Evidence::Inconclusive);
    assert_eq!(world.outcome(id).await, Outcome::Ambiguous);
    assert_eq!(world.nonce(id).outcome, None);
}

#[tokio::test]
async fn what_used_it_long_ago_is_found_all_the_same() {
    let (world, id) = one_whose_nonce_is_gone(3).await;
    let foreign_hash = world.chain.rpc("eth_getBlockByNumber", json!(["latest", false])).unwrap();
    world.mine(77);
    assert_eq!(world.status(id).await, LedgerStatus::NotReported);
    let found = hex::encode_prefixed(world.nonce(id).foreign_hash.unwrap());
    assert_eq!(foreign_hash["transactions"], json!([found]));
}

#[tokio::test]
async fn what_used_it_and_vanished_proves_no_loss() {
    let (world, id) = one_whose_nonce_is_gone(3).await;
    assert_eq!(world.status(id).await, LedgerStatus::NotReported);
    let first = world.nonce(id).foreign_hash.unwrap();
    world.chain.reorg(1).unwrap();
    world.try_anew(id);
    world.accept(id).await;
    assert_eq!(world.nonce(id).nonce, 0);
    // Another one of somebody else's takes its place, and is seen.
    world.chain.drop_transaction(&world.hashes(id)[0]).unwrap();
    world.use_the_key_elsewhere_for(2);
    world.mine(2);
    assert_eq!(world.evidence(id).await, Evidence::Inconclusive);
    assert_eq!(world.status(id).await, LedgerStatus::NotReported);
    assert_ne!(world.nonce(id).foreign_hash.unwrap(), first);
    assert_eq!(world.evidence(id).await, Evidence::Repeatable);
}

#[tokio::test]
async fn what_a_person_has_found_invalid_is_not_paid_when_the_other_vanishes() {
    let (world, id) = one_whose_nonce_is_gone(3).await;
    assert_eq!(world.status(id).await, LedgerStatus::NotReported);
    world.store.decide_invalid(id);
    world.chain.reorg(1).unwrap();
    let next = world.waiting().await;
    world.mine(3);
    assert_eq!(world.status(next).await, LedgerStatus::Committed);
    assert_eq!((world.nonce(next).nonce, world.polls().len()), (1, 1));
}
