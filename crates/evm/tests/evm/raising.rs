use std::time::Duration;

use alloy_primitives::hex;
use grid_batch_core::{Evidence, LedgerStatus, Outcome};
use grid_batch_evm::EvmOptions;
use grid_batch_test_chain::Fault;
use grid_batch_withdrawals::WithdrawalId;
use serde_json::json;

use crate::world::{RESEND_AFTER, SEND, World};

/// A withdrawal that has waited at the node for too long, on a chain with a base fee of 10 gwei: it
/// pays 21 gwei at most, and one of them as tip.
async fn one_that_waits(set: impl FnOnce(&mut EvmOptions)) -> (World, WithdrawalId) {
    let world = World::with_options(set);
    world.proxy.require_bump(12);
    world.proxy.keep_underpriced();
    world.chain.set_base_fee(10).unwrap();
    let id = world.waiting().await;
    world.pass(RESEND_AFTER + Duration::from_secs(1));
    assert_eq!(world.evidence(id).await, Evidence::Repeatable);
    (world, id)
}

/// What the transactions of a withdrawal pay, in wei: at most, and as tip.
fn fees(world: &World, id: WithdrawalId) -> Vec<(u128, u128)> {
    let transactions = world.nonce(id).transactions;
    transactions.iter().map(|it| (it.signed.max_fee, it.signed.tip)).collect()
}

#[tokio::test]
async fn what_waits_too_long_pays_an_eighth_more_of_both_with_the_same_nonce() {
    let (world, id) = one_that_waits(|_| {}).await;
    world.chain.set_base_fee(11).unwrap();
    world.accept(id).await;
    let first = (21_000_000_000, 1_000_000_000);
    assert_eq!(fees(&world, id), [first, (23_625_000_000, 1_125_000_000)]);
    assert_eq!(world.sent(), world.hashes(id));
    let [first, second] = world.proxy.sent().try_into().unwrap();
    assert_eq!((first.sender, first.nonce), (second.sender, second.nonce));
    world.mine(1);
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
    assert_eq!(world.polls().len(), 1);
}

#[tokio::test]
async fn what_would_not_be_taken_any_more_pays_todays_price_at_once() {
    let world = World::new();
    world.proxy.require_bump(12);
    world.proxy.keep_underpriced();
    world.chain.set_base_fee(10).unwrap();
    let id = world.waiting().await;
    world.chain.set_base_fee(60).unwrap();
    world.accept(id).await;
    assert_eq!(fees(&world, id)[1], (121_000_000_000, 1_125_000_000));
    world.mine(1);
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
}

#[tokio::test]
async fn a_cap_that_forbids_the_raise_leaves_the_same_bytes_to_be_sent() {
    let (world, id) = one_that_waits(|options| options.cap = "23.6".parse().unwrap()).await;
    world.accept(id).await;
    assert_eq!(fees(&world, id).len(), 1);
    assert_eq!(world.proxy.calls(SEND), 2);
    assert_eq!(world.sent(), world.hashes(id));
    // It has just been sent: it waits for its next turn.
    assert_eq!(world.evidence(id).await, Evidence::Present);
}

#[tokio::test]
async fn a_price_above_the_cap_neither_raises_nor_frees_the_nonce() {
    let (world, id) = one_that_waits(|_| {}).await;
    world.chain.set_base_fee(500).unwrap();
    world.accept(id).await;
    assert_eq!(fees(&world, id).len(), 1);
    world.mine(1);
    assert_eq!(world.receipt(&world.hashes(id)[0]), json!(null));
    // When the price is down again, it is as good as any.
    world.chain.set_base_fee(10).unwrap();
    world.accept(id).await;
    world.mine(1);
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
    assert_eq!(world.polls().len(), 1);
}

#[tokio::test]
async fn no_raise_goes_above_the_cap_however_long_it_takes() {
    let (world, id) = one_that_waits(|options| options.cap = "40".parse().unwrap()).await;
    for base_fee in 11..21 {
        world.chain.set_base_fee(base_fee).unwrap();
        world.accept(id).await;
        world.pass(RESEND_AFTER + Duration::from_secs(1));
    }
    let fees = fees(&world, id);
    assert!(fees.len() > 3 && fees.len() < 11, "{fees:?}");
    assert!(fees.is_sorted() && fees.iter().all(|(fee, tip)| tip <= fee), "{fees:?}");
    assert!(fees.iter().all(|(fee, _)| *fee <= 40_000_000_000), "{fees:?}");
}

#[tokio::test]
async fn what_was_refused_as_too_cheap_pays_more_the_next_time() {
    let world = World::new();
    let id = world.schedule("500");
    world.proxy.set_next(SEND, 1, Fault::answer("transaction underpriced"));
    assert_eq!(world.outcome(id).await, Outcome::Parked);
    world.accept(id).await;
    assert_eq!(fees(&world, id).len(), 2);
}

#[tokio::test]
async fn without_any_price_what_is_there_is_sent() {
    let (world, id) = one_that_waits(|_| {}).await;
    world.proxy.set("eth_feeHistory", Fault::status(503));
    world.accept(id).await;
    assert_eq!(world.sent(), world.hashes(id));
    assert_eq!(fees(&world, id).len(), 1);
}

#[tokio::test]
async fn the_receipt_of_either_counts() {
    for mined in [0, 1] {
        let (world, id) = one_that_waits(|_| {}).await;
        world.chain.set_base_fee(11).unwrap();
        world.accept(id).await;
        let signed = world.nonce(id).transactions;
        world.chain.drop_transaction(&world.hashes(id)[1]).unwrap();
        let raw = hex::encode_prefixed(&signed[mined].signed.bytes);
        world.chain.rpc("eth_sendRawTransaction", json!([raw])).unwrap();
        world.mine(1);
        assert_eq!(world.status(id).await, LedgerStatus::Committed);
        assert_eq!(world.polls()[0].transaction_hash, world.hashes(id)[mined]);
    }
}

#[tokio::test]
async fn what_is_mined_meanwhile_is_not_raised() {
    let (world, id) = one_that_waits(|_| {}).await;
    world.mine(1);
    world.accept(id).await;
    assert_eq!(fees(&world, id).len(), 1);
    assert_eq!(world.proxy.calls(SEND), 1);
}

#[tokio::test]
async fn a_chain_without_base_fees_has_its_one_price_raised() {
    let world = World::with(|chain| chain.legacy = true, |_| {});
    world.proxy.require_bump(12);
    let id = world.schedule("500");
    world.proxy.set_next(SEND, 1, Fault::answer("transaction underpriced"));
    assert_eq!(world.outcome(id).await, Outcome::Parked);
    world.accept(id).await;
    let [(first, _), (second, _)] = fees(&world, id).try_into().unwrap();
    assert_eq!(second, first + first.div_ceil(8));
    assert_eq!(world.sent().last(), world.hashes(id).last());
    world.mine(1);
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
    assert_eq!(world.polls().len(), 1);
}

#[tokio::test]
async fn a_chain_that_stands_still_does_not_drive_the_bid_up() {
    let (world, id) = one_that_waits(|_| {}).await;
    for _ in 0..5 {
        world.accept(id).await;
        world.pass(RESEND_AFTER + Duration::from_secs(1));
    }
    assert_eq!(fees(&world, id).len(), 1);
    assert_eq!(world.proxy.calls(SEND), 6);
    world.mine(1);
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
}

#[tokio::test]
async fn a_raise_that_cannot_be_paid_does_not_stand_before_what_can() {
    let (world, id) = one_that_waits(|_| {}).await;
    let gas = world.transaction(&world.hashes(id)[0])["gas"].as_str().unwrap().to_owned();
    let gas = u128::from_str_radix(gas.trim_start_matches("0x"), 16).unwrap();
    // Just enough for what is signed.
    world.chain.set_balance(&world.admin().address, gas * 21_000_000_000).unwrap();
    world.restart_chain();
    world.chain.set_base_fee(11).unwrap();
    world.accept(id).await;
    assert_eq!(fees(&world, id).len(), 1);
    world.mine(1);
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
}

#[tokio::test]
async fn nothing_that_bids_more_than_a_lower_cap_is_sent_while_gas_is_too_dear() {
    let mut world = World::with(|chain| chain.base_fee_gwei = Some(50), |_| {});
    let id = world.waiting().await;
    world.restart_chain();
    world.restart_with(|options| options.cap = "40".parse().unwrap());
    world.chain.set_base_fee(60).unwrap();
    let answer = world.send(id).await;
    assert_eq!(answer.outcome, Outcome::Parked);
    let why = "the gas price is 61 gwei, not below the cap of 40 gwei (by the node)";
    assert_eq!(answer.message.as_deref(), Some(why));
    world.mine(1);
    assert_eq!(world.polls(), []);
    world.chain.set_base_fee(10).unwrap();
    world.accept(id).await;
    world.mine(1);
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
}

#[tokio::test]
async fn without_the_key_what_is_signed_is_sent_again() {
    let (mut world, id) = one_that_waits(|_| {}).await;
    world.restart_chain();
    world.chain.set_base_fee(11).unwrap();
    world.restart_with(|options| options.keys.clear());
    world.accept(id).await;
    assert_eq!(fees(&world, id).len(), 1);
    world.mine(1);
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
}
