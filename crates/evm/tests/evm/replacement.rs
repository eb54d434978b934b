use std::time::Duration;

use alloy_primitives::hex;
use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_evm::{EvmOptions, GasPrice};
use grid_batch_test_chain::Fault;
use grid_batch_withdrawals::WithdrawalId;
use serde_json::json;

use crate::harness::{Harness, RESEND_AFTER, SEND};

/// A withdrawal that has been pending too long, on a chain with a base fee of 10 gwei: its max fee is
/// 21 gwei, its tip 1 gwei.
async fn pending_too_long(set: impl FnOnce(&mut EvmOptions)) -> (Harness, WithdrawalId) {
    let harness = Harness::with_options(set);
    harness.proxy.require_bump(12);
    harness.proxy.keep_underpriced();
    harness.chain.set_base_fee(10).unwrap();
    let id = harness.send_withdrawal().await;
    harness.advance_clock(RESEND_AFTER + Duration::from_secs(1));
    assert_eq!(harness.evidence(id).await, Evidence::Repeatable);
    (harness, id)
}

/// The max fees and tips of a withdrawal's transactions, in wei.
fn fees(harness: &Harness, id: WithdrawalId) -> Vec<(u128, u128)> {
    let transactions = harness.nonce(id).transactions;
    transactions.iter().map(|it| (it.signed.max_fee, it.signed.tip)).collect()
}

#[tokio::test]
async fn pending_too_long_raises_both_fees_by_an_eighth() {
    let (harness, id) = pending_too_long(|_| {}).await;
    harness.chain.set_base_fee(11).unwrap();
    harness.accept(id).await;
    let first = (21_000_000_000, 1_000_000_000);
    assert_eq!(fees(&harness, id), [first, (23_625_000_000, 1_125_000_000)]);
    assert_eq!(harness.sent(), harness.hashes(id));
    let [first, second] = harness.proxy.sent().try_into().unwrap();
    assert_eq!((first.sender, first.nonce), (second.sender, second.nonce));
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
    assert_eq!(harness.polls().len(), 1);
}

#[tokio::test]
async fn fee_below_the_price_is_raised_to_it_at_once() {
    let harness = Harness::new();
    harness.proxy.require_bump(12);
    harness.proxy.keep_underpriced();
    harness.chain.set_base_fee(10).unwrap();
    let id = harness.send_withdrawal().await;
    harness.chain.set_base_fee(60).unwrap();
    harness.accept(id).await;
    assert_eq!(fees(&harness, id)[1], (121_000_000_000, 1_125_000_000));
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
}

#[tokio::test]
async fn same_bytes_are_sent_if_the_cap_forbids_a_raise() {
    let (harness, id) = pending_too_long(|options| options.cap = "23.6".parse().unwrap()).await;
    harness.accept(id).await;
    assert_eq!(fees(&harness, id).len(), 1);
    assert_eq!(harness.proxy.calls(SEND), 2);
    assert_eq!(harness.sent(), harness.hashes(id));
    // It was just sent, so it is not pending too long.
    assert_eq!(harness.evidence(id).await, Evidence::Present);
}

#[tokio::test]
async fn price_above_the_cap_neither_raises_nor_frees() {
    let (harness, id) = pending_too_long(|_| {}).await;
    harness.chain.set_base_fee(500).unwrap();
    harness.accept(id).await;
    assert_eq!(fees(&harness, id).len(), 1);
    harness.mine(1);
    assert_eq!(harness.receipt(&harness.hashes(id)[0]), json!(null));
    // At a lower price, the same transaction is mined.
    harness.chain.set_base_fee(10).unwrap();
    harness.accept(id).await;
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
    assert_eq!(harness.polls().len(), 1);
}

#[tokio::test]
async fn no_raise_exceeds_the_cap() {
    let (harness, id) = pending_too_long(|options| options.cap = "40".parse().unwrap()).await;
    for base_fee in 11..21 {
        harness.chain.set_base_fee(base_fee).unwrap();
        harness.accept(id).await;
        harness.advance_clock(RESEND_AFTER + Duration::from_secs(1));
    }
    let fees = fees(&harness, id);
    assert!(fees.len() > 3 && fees.len() < 11, "{fees:?}");
    assert!(fees.is_sorted() && fees.iter().all(|(fee, tip)| tip <= fee), "{fees:?}");
    assert!(fees.iter().all(|(fee, _)| *fee <= 40_000_000_000), "{fees:?}");
}

#[tokio::test]
async fn refused_as_underpriced_pays_more_next_time() {
    let harness = Harness::new();
    let id = harness.schedule("500");
    harness.proxy.set_next(SEND, 1, Fault::rpc_error("transaction underpriced"));
    assert_eq!(harness.outcome(id).await, Outcome::Parked);
    harness.accept(id).await;
    assert_eq!(fees(&harness, id).len(), 2);
}

/// Ganache has only these words for a transaction that it already has.
#[tokio::test]
async fn known_transaction_refused_as_underpriced_is_not_raised() {
    let (harness, id) = pending_too_long(|_| {}).await;
    harness.proxy.set(SEND, Fault::rpc_error("transaction underpriced"));
    for _ in 0..3 {
        harness.accept(id).await;
        harness.advance_clock(RESEND_AFTER + Duration::from_secs(1));
    }
    assert_eq!(fees(&harness, id).len(), 1);
}

#[tokio::test]
async fn stored_transaction_is_sent_without_a_price() {
    let (harness, id) = pending_too_long(|_| {}).await;
    harness.proxy.set("eth_feeHistory", Fault::status(503));
    harness.accept(id).await;
    assert_eq!(harness.sent(), harness.hashes(id));
    assert_eq!(fees(&harness, id).len(), 1);
}

#[tokio::test]
async fn receipt_of_either_transaction_counts() {
    for mined in [0, 1] {
        let (harness, id) = pending_too_long(|_| {}).await;
        harness.chain.set_base_fee(11).unwrap();
        harness.accept(id).await;
        let signed = harness.nonce(id).transactions;
        harness.chain.drop_transaction(&harness.hashes(id)[1]).unwrap();
        let raw = hex::encode_prefixed(&signed[mined].signed.bytes);
        harness.chain.rpc("eth_sendRawTransaction", json!([raw])).unwrap();
        harness.mine(1);
        assert_eq!(harness.status(id).await, LedgerStatus::Committed);
        assert_eq!(harness.polls()[0].transaction_hash, harness.hashes(id)[mined]);
    }
}

#[tokio::test]
async fn mined_transaction_is_not_raised() {
    let (harness, id) = pending_too_long(|_| {}).await;
    harness.mine(1);
    harness.accept(id).await;
    assert_eq!(fees(&harness, id).len(), 1);
    assert_eq!(harness.proxy.calls(SEND), 1);
}

#[tokio::test]
async fn raise_works_without_base_fees() {
    let harness = Harness::with(|chain| chain.hardfork = Some("berlin"), |_| {});
    harness.proxy.require_bump(12);
    let id = harness.schedule("500");
    harness.proxy.set_next(SEND, 1, Fault::rpc_error("transaction underpriced"));
    assert_eq!(harness.outcome(id).await, Outcome::Parked);
    harness.accept(id).await;
    let [(first, _), (second, _)] = fees(&harness, id).try_into().unwrap();
    assert_eq!(second, first + first.div_ceil(8));
    assert_eq!(harness.sent().last(), harness.hashes(id).last());
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
    assert_eq!(harness.polls().len(), 1);
}

#[tokio::test]
async fn unchanged_price_does_not_raise_the_bid() {
    let (harness, id) = pending_too_long(|_| {}).await;
    for _ in 0..5 {
        harness.accept(id).await;
        harness.advance_clock(RESEND_AFTER + Duration::from_secs(1));
    }
    assert_eq!(fees(&harness, id).len(), 1);
    assert_eq!(harness.proxy.calls(SEND), 6);
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
}

#[tokio::test]
async fn unaffordable_raise_sends_the_stored_transaction() {
    let (harness, id) = pending_too_long(|_| {}).await;
    let gas = harness.transaction(&harness.hashes(id)[0])["gas"].as_str().unwrap().to_owned();
    let gas = u128::from_str_radix(gas.trim_start_matches("0x"), 16).unwrap();
    // Just enough for the stored transaction.
    harness.chain.set_balance(&harness.admin().address, gas * 21_000_000_000).unwrap();
    harness.restart_chain();
    harness.chain.set_base_fee(11).unwrap();
    harness.accept(id).await;
    assert_eq!(fees(&harness, id).len(), 1);
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
}

#[tokio::test]
async fn bid_above_a_lowered_cap_parks_at_a_high_price() {
    let mut harness = Harness::with(|chain| chain.base_fee_gwei = Some(50), |_| {});
    let id = harness.send_withdrawal().await;
    harness.restart_chain();
    harness.restart_with(|options| options.cap = "40".parse().unwrap());
    harness.chain.set_base_fee(60).unwrap();
    let answer = harness.send(id).await;
    assert_eq!(answer.outcome, Outcome::Parked);
    let bid = GasPrice::from_wei(fees(&harness, id)[0].0);
    let reason = format!(
        "its transaction was signed before the cap was lowered: it pays up to {bid}, above the cap of 40 gwei, \
         and the node does not have it; it is sent again when the price is below the cap: the base fee is \
         60 gwei, not below the cap of 40 gwei; with the tip, the gas price is 61 gwei (source: node)"
    );
    assert_eq!(answer.message, Some(reason));
    harness.mine(1);
    assert_eq!(harness.polls(), []);
    harness.chain.set_base_fee(10).unwrap();
    harness.accept(id).await;
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
}

#[tokio::test]
async fn sent_above_a_lowered_cap_stays_pending_and_says_so() {
    let mut harness = Harness::with(|chain| chain.base_fee_gwei = Some(50), |_| {});
    let id = harness.send_withdrawal().await;
    harness.advance_clock(RESEND_AFTER + Duration::from_secs(1));
    harness.restart_with(|options| options.cap = "40".parse().unwrap());
    harness.chain.set_base_fee(60).unwrap();
    harness.accept(id).await;
    assert_eq!(harness.proxy.calls(SEND), 1);
    assert_eq!(harness.status(id).await, LedgerStatus::Pending);
    let bid = GasPrice::from_wei(fees(&harness, id)[0].0);
    let note = format!(
        "its transaction to be mined; it was sent before the cap was lowered: it pays up to {bid}, above the \
         cap of 40 gwei"
    );
    assert_eq!(harness.nonce(id).note, Some(note));
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
}

#[tokio::test]
async fn stored_transaction_is_sent_without_the_key() {
    let (mut harness, id) = pending_too_long(|_| {}).await;
    harness.restart_chain();
    harness.chain.set_base_fee(11).unwrap();
    harness.restart_with(|options| options.signers.clear());
    harness.accept(id).await;
    assert_eq!(fees(&harness, id).len(), 1);
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
}

#[tokio::test]
async fn higher_fee_that_needs_the_key_is_said() {
    let (mut harness, id) = pending_too_long(|_| {}).await;
    harness.chain.set_base_fee(150).unwrap();
    harness.restart_with(|options| options.signers.clear());
    let answer = harness.send(id).await;
    assert_eq!(answer.outcome, Outcome::Parked, "{answer:?}");
    let message = answer.message.unwrap();
    assert!(message.contains("151 gwei, and no key is configured"), "{message}");
    harness.chain.set_base_fee(1).unwrap();
    harness.accept(id).await;
}

/// A withdrawal that was sent two seconds ago, and whose fees are to be raised.
async fn sped_up(set: impl FnOnce(&mut EvmOptions)) -> (Harness, WithdrawalId) {
    let harness = Harness::with_options(set);
    harness.proxy.require_bump(12);
    harness.chain.set_base_fee(10).unwrap();
    let id = harness.send_withdrawal().await;
    harness.advance_clock(Duration::from_secs(1));
    assert_eq!(harness.status(id).await, LedgerStatus::Pending);
    assert_eq!(fees(&harness, id).len(), 1);
    harness.speed_up(id);
    harness.advance_clock(Duration::from_secs(1));
    (harness, id)
}

#[tokio::test]
async fn fees_are_raised_by_the_next_look_on_request() {
    for in_flight in [1, 16] {
        let (harness, id) = sped_up(|options| options.in_flight = in_flight).await;
        for _ in 0..2 {
            assert_eq!(harness.status(id).await, LedgerStatus::Pending);
        }
        let first = (21_000_000_000, 1_000_000_000);
        let raised = [first, (23_625_000_000, 1_125_000_000)];
        assert_eq!(fees(&harness, id), raised, "once for each request");
        assert_eq!(harness.sent(), harness.hashes(id));
        harness.mine(1);
        assert_eq!(harness.status(id).await, LedgerStatus::Committed);
        assert_eq!(harness.polls().len(), 1);
    }
}

#[tokio::test]
async fn request_for_fees_above_the_cap_raises_nothing() {
    let (harness, id) = sped_up(|options| options.cap = "23.6".parse().unwrap()).await;
    assert_eq!(harness.status(id).await, LedgerStatus::Pending);
    assert_eq!(fees(&harness, id).len(), 1);
    assert_eq!(harness.proxy.calls(SEND), 1);
}
