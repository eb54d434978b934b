//! Nonces with which nothing may be sent any more, before those that wait.

use grid_batch_core::{LedgerStatus, Outcome};
use grid_batch_evm::EvmOptions;
use grid_batch_test_chain::Fault;
use grid_batch_withdrawals::WithdrawalId;
use serde_json::{Value, json};

use crate::world::{SEND, World};

/// A withdrawal whose nonce, 1, follows one that somebody else used, which the chain has forgotten.
async fn behind_a_gap(set: impl FnOnce(&mut EvmOptions)) -> (World, WithdrawalId) {
    let world = World::with_options(set);
    world.use_the_key_elsewhere();
    let id = world.waiting().await;
    assert_eq!(world.nonce(id).nonce, 1);
    world.chain.drop_transaction(&world.hashes(id)[0]).unwrap();
    world.chain.reorg(1).unwrap();
    (world, id)
}

/// The transactions that fill the gap: what they pay at most, in gwei.
fn fillers(world: &World) -> Vec<u128> {
    let fillers = world.store.fillers();
    fillers.iter().for_each(|it| assert_eq!((it.nonce, it.is_filler), (0, true)));
    fillers.iter().map(|it| it.max_fee / 1_000_000_000).collect()
}

#[tokio::test]
async fn a_refusal_that_the_chain_forgets_leaves_no_gap() {
    let world = World::with_options(|options| options.confirmations = 2);
    let refused = world.waiting().await;
    world.give_pool_to(5);
    world.mine(3);
    assert_eq!(world.status(refused).await, LedgerStatus::Invalid);
    world.chain.reorg(3).unwrap();
    world.give_pool_to(0);
    let next = world.waiting().await;
    assert_eq!(world.nonce(next).nonce, 1);
    assert_eq!(world.follow(next, 4).await, LedgerStatus::Committed);
    // What filled it is kept with the nonce, and the refused one was not paid after all.
    assert!(world.nonce(refused).transactions[1].signed.is_filler);
    assert_eq!(world.polls().len(), 1);
}

#[tokio::test]
async fn what_somebody_else_sent_and_the_chain_forgets_leaves_no_gap() {
    let (world, id) = behind_a_gap(|_| {}).await;
    assert_eq!(world.follow(id, 4).await, LedgerStatus::Committed);
    assert_eq!(fillers(&world).len(), 1);
    let receipt = world.receipt(&world.sent()[1]);
    assert_eq!(receipt["to"].as_str(), Some(&*world.admin().address.to_lowercase()));
}

#[tokio::test]
async fn a_payment_that_a_person_found_invalid_is_never_sent_again() {
    let world = World::new();
    let failed = world.waiting().await;
    world.restart_chain();
    world.store.decide_invalid(failed);
    let next = world.waiting().await;
    assert_eq!(world.follow(next, 4).await, LedgerStatus::Committed);
    assert_eq!(world.polls().len(), 1);
    assert_eq!(world.receipt(&world.hashes(failed)[0]), Value::Null);
}

#[tokio::test]
async fn a_withdrawal_whose_nonce_was_filled_can_be_tried_anew() {
    let world = World::new();
    let failed = world.waiting().await;
    world.restart_chain();
    world.store.decide_invalid(failed);
    let next = world.waiting().await;
    assert_eq!(world.follow(next, 1).await, LedgerStatus::Committed);
    // What filled its nonce is found first, and written down.
    world.try_anew(failed);
    world.accept(failed).await;
    assert_eq!(world.status(failed).await, LedgerStatus::Invalid);
    world.try_anew(failed);
    world.accept(failed).await;
    assert_eq!(world.follow(failed, 1).await, LedgerStatus::Committed);
    assert_eq!(world.polls().len(), 2);
}

#[tokio::test]
async fn what_stands_behind_a_gap_can_be_cancelled() {
    let (world, id) = behind_a_gap(|_| {}).await;
    world.cancel(id);
    assert_eq!(world.follow(id, 4).await, LedgerStatus::Invalid);
    assert_eq!(world.polls(), []);
}

#[tokio::test]
async fn a_cheap_cancellation_that_the_chain_forgets_leaves_no_gap() {
    let mut world =
        World::with(|chain| chain.base_fee_gwei = Some(50), |options| options.confirmations = 2);
    let id = world.waiting().await;
    world.restart_chain();
    world.chain.set_base_fee(10).unwrap();
    world.restart_with(|options| options.cap = "40".parse().unwrap());
    world.cancel(id);
    world.accept(id).await;
    world.mine(3);
    assert_eq!(world.status(id).await, LedgerStatus::Invalid);
    world.chain.reorg(3).unwrap();
    let next = world.schedule("7");
    world.send(next).await;
    assert_eq!(world.follow(next, 6).await, LedgerStatus::Committed);
    assert_eq!(world.nonce(id).transactions.len(), 2);
    assert_eq!(world.polls().len(), 1);
}

#[tokio::test]
async fn a_filler_that_would_not_be_taken_any_more_is_outbid() {
    let (world, id) = behind_a_gap(|_| {}).await;
    world.chain.set_base_fee(10).unwrap();
    world.accept(id).await;
    world.chain.set_base_fee(60).unwrap();
    world.accept(id).await;
    assert_eq!(fillers(&world), [21, 121]);
    world.accept(id).await;
    assert_eq!(fillers(&world), [21, 121]);
    world.mine(1);
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
}

#[tokio::test]
async fn no_gap_is_filled_above_the_cap_or_without_a_price_or_a_key() {
    let (mut world, id) = behind_a_gap(|_| {}).await;
    world.chain.set_base_fee(500).unwrap();
    world.outcome(id).await;
    world.chain.set_base_fee(1).unwrap();
    world.proxy.set("eth_feeHistory", Fault::status(503));
    world.outcome(id).await;
    world.proxy.clear();
    world.restart_with(|options| options.keys.clear());
    world.outcome(id).await;
    assert_eq!(fillers(&world), []);
    // What has no gap before it is sent all the same, each time.
    assert_eq!(world.proxy.calls(SEND), 4);
}

#[tokio::test]
async fn a_gap_that_the_store_does_not_fill_is_filled_later() {
    let (world, id) = behind_a_gap(|_| {}).await;
    world.store.fail("fill_nonce");
    assert_eq!(world.outcome(id).await, Outcome::NotSent);
    world.store.fail(None);
    assert_eq!(world.follow(id, 2).await, LedgerStatus::Committed);
}

#[tokio::test]
async fn a_node_that_is_far_behind_is_not_sent_the_whole_history() {
    let world = World::new();
    let count_to = |count: &str| {
        world.chain.rpc("anvil_setNonce", json!([world.admin().address, count])).unwrap();
    };
    count_to("0x64");
    assert_eq!(world.nonce(world.waiting().await).nonce, 100);
    count_to("0x0");
    let (id, before) = (world.schedule("7"), world.proxy.calls(SEND));
    assert_eq!(world.outcome(id).await, Outcome::Accepted);
    assert_eq!(world.proxy.calls(SEND) - before, 64 + 1);
    let filled: Vec<u64> = world.store.fillers().iter().map(|it| it.nonce).collect();
    assert_eq!(filled, Vec::from_iter(37..100));
}
