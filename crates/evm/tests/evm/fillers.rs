//! Nonces below those of pending withdrawals that no payment may use any more.

use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::ledger::Outcome;
use grid_batch_evm::EvmOptions;
use grid_batch_test_chain::Fault;
use grid_batch_withdrawals::WithdrawalId;
use serde_json::{Value, json};

use crate::harness::{Harness, SEND};

/// A withdrawal with nonce 1, after a foreign transaction with nonce 0 that the chain has dropped.
async fn after_a_gap(set: impl FnOnce(&mut EvmOptions)) -> (Harness, WithdrawalId) {
    let harness = Harness::with_options(set);
    harness.use_key_elsewhere();
    let id = harness.send_withdrawal().await;
    assert_eq!(harness.nonce(id).nonce, 1);
    harness.chain.drop_transaction(&harness.hashes(id)[0]).unwrap();
    harness.chain.reorg(1).unwrap();
    (harness, id)
}

/// The max fees of the fillers of nonce 0, in gwei.
fn fillers(harness: &Harness) -> Vec<u128> {
    let fillers = harness.store.fillers();
    fillers.iter().for_each(|it| assert_eq!((it.nonce, it.is_filler), (0, true)));
    fillers.iter().map(|it| it.max_fee / 1_000_000_000).collect()
}

#[tokio::test]
async fn reverted_payment_dropped_by_a_reorg_leaves_no_gap() {
    let harness = Harness::with_options(|options| options.confirmations = 2);
    let refused = harness.send_withdrawal().await;
    harness.set_pool_owner(5);
    harness.mine(3);
    assert_eq!(harness.status(refused).await, LedgerStatus::Invalid);
    harness.chain.reorg(3).unwrap();
    harness.set_pool_owner(0);
    let next = harness.send_withdrawal().await;
    assert_eq!(harness.nonce(next).nonce, 1);
    assert_eq!(harness.follow(next, 4).await, LedgerStatus::Committed);
    // The filler is stored with the nonce, and the reverted payment paid nothing.
    assert!(harness.nonce(refused).transactions[1].signed.is_filler);
    assert_eq!(harness.polls().len(), 1);
}

#[tokio::test]
async fn dropped_foreign_transaction_leaves_no_gap() {
    let (harness, id) = after_a_gap(|_| {}).await;
    assert_eq!(harness.follow(id, 4).await, LedgerStatus::Committed);
    assert_eq!(fillers(&harness).len(), 1);
    let receipt = harness.receipt(&harness.sent()[1]);
    assert_eq!(receipt["to"].as_str(), Some(&*harness.admin().address.to_lowercase()));
}

#[tokio::test]
async fn payment_decided_invalid_is_never_sent_again() {
    let harness = Harness::new();
    let failed = harness.send_withdrawal().await;
    harness.restart_chain();
    harness.store.decide_invalid(failed);
    let next = harness.send_withdrawal().await;
    assert_eq!(harness.follow(next, 4).await, LedgerStatus::Committed);
    assert_eq!(harness.polls().len(), 1);
    assert_eq!(harness.receipt(&harness.hashes(failed)[0]), Value::Null);
}

#[tokio::test]
async fn withdrawal_with_a_filled_nonce_can_be_retried() {
    let harness = Harness::new();
    let failed = harness.send_withdrawal().await;
    harness.restart_chain();
    harness.store.decide_invalid(failed);
    let next = harness.send_withdrawal().await;
    assert_eq!(harness.follow(next, 1).await, LedgerStatus::Committed);
    // The filler is found first, and its outcome is stored.
    harness.retry(failed);
    harness.accept(failed).await;
    assert_eq!(harness.status(failed).await, LedgerStatus::Invalid);
    harness.retry(failed);
    harness.accept(failed).await;
    assert_eq!(harness.follow(failed, 1).await, LedgerStatus::Committed);
    assert_eq!(harness.polls().len(), 2);
}

#[tokio::test]
async fn withdrawal_after_a_gap_can_be_cancelled() {
    let (harness, id) = after_a_gap(|_| {}).await;
    harness.cancel(id);
    assert_eq!(harness.follow(id, 4).await, LedgerStatus::Invalid);
    assert_eq!(harness.polls(), []);
}

#[tokio::test]
async fn dropped_cheap_cancellation_leaves_no_gap() {
    let mut harness =
        Harness::with(|chain| chain.base_fee_gwei = Some(50), |options| options.confirmations = 2);
    let id = harness.send_withdrawal().await;
    harness.restart_chain();
    harness.chain.set_base_fee(10).unwrap();
    harness.restart_with(|options| options.cap = "40".parse().unwrap());
    harness.cancel(id);
    harness.accept(id).await;
    harness.mine(3);
    assert_eq!(harness.status(id).await, LedgerStatus::Invalid);
    harness.chain.reorg(3).unwrap();
    let next = harness.schedule("7");
    harness.send(next).await;
    assert_eq!(harness.follow(next, 6).await, LedgerStatus::Committed);
    assert_eq!(harness.nonce(id).transactions.len(), 2);
    assert_eq!(harness.polls().len(), 1);
}

#[tokio::test]
async fn filler_with_a_too_low_fee_is_outbid() {
    let (harness, id) = after_a_gap(|_| {}).await;
    harness.chain.set_base_fee(10).unwrap();
    harness.accept(id).await;
    harness.chain.set_base_fee(60).unwrap();
    harness.accept(id).await;
    assert_eq!(fillers(&harness), [21, 121]);
    harness.accept(id).await;
    assert_eq!(fillers(&harness), [21, 121]);
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
}

#[tokio::test]
async fn gap_is_not_filled_without_cap_price_or_key() {
    let (mut harness, id) = after_a_gap(|_| {}).await;
    harness.chain.set_base_fee(500).unwrap();
    harness.outcome(id).await;
    harness.chain.set_base_fee(1).unwrap();
    harness.proxy.set("eth_feeHistory", Fault::status(503));
    harness.outcome(id).await;
    harness.proxy.clear();
    harness.restart_with(|options| options.signers.clear());
    harness.outcome(id).await;
    assert_eq!(fillers(&harness), []);
    // The withdrawal itself is sent each time.
    assert_eq!(harness.proxy.calls(SEND), 4);
}

#[tokio::test]
async fn gap_is_filled_after_a_store_failure() {
    let (harness, id) = after_a_gap(|_| {}).await;
    harness.store.fail_method("fill_nonce");
    assert_eq!(harness.outcome(id).await, Outcome::NotSent);
    harness.store.fail_method(None);
    assert_eq!(harness.follow(id, 2).await, LedgerStatus::Committed);
}

#[tokio::test]
async fn only_64_lower_nonces_are_sent_at_once() {
    let harness = Harness::with_options(|options| options.longest_gap = 101);
    let count_to = |count: &str| {
        harness.chain.rpc("anvil_setNonce", json!([harness.admin().address, count])).unwrap();
    };
    count_to("0x64");
    harness.settle_elsewhere(99);
    assert_eq!(harness.nonce(harness.send_withdrawal().await).nonce, 100);
    count_to("0x0");
    let (id, before) = (harness.schedule("7"), harness.proxy.calls(SEND));
    assert_eq!(harness.outcome(id).await, Outcome::Accepted);
    assert_eq!(harness.proxy.calls(SEND) - before, 64 + 1);
    let mut filled: Vec<u64> = harness.store.fillers().iter().map(|it| it.nonce).collect();
    filled.sort();
    // The lowest ones, because the others cannot be mined before them.
    assert_eq!(filled, Vec::from_iter(0..64));
}
