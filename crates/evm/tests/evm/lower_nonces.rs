//! Withdrawals with lower nonces than one whose first nonce was used by a foreign transaction.

use std::mem;

use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::ledger::Outcome;
use grid_batch_evm::PoolRules;
use grid_batch_test_chain::Pool;
use grid_batch_withdrawals::WithdrawalId;
use serde_json::json;

use crate::harness::Harness;

/// Two withdrawals with the nonces 0 and 1. The node has lost both, and a foreign transaction used nonce 0.
async fn with_used_nonce(harness: &Harness, ids: [WithdrawalId; 2]) {
    harness.accept(ids[0]).await;
    assert_eq!(harness.status(ids[0]).await, LedgerStatus::Pending);
    for id in ids.iter().rev() {
        harness.chain.drop_transaction(&harness.hashes(*id)[0]).unwrap();
    }
    let (from, to) = (&harness.admin().address, harness.beneficiary());
    let foreign =
        json!([{"from": from, "to": to, "value": "0x1", "gas": "0x5208", "nonce": "0x0"}]);
    harness.chain.rpc("eth_sendTransaction", foreign).unwrap();
    harness.mine(1);
    assert_eq!(harness.status(ids[0]).await, LedgerStatus::NotReported);
}

/// Two withdrawals of the same pool.
async fn of_one_pool() -> (Harness, [WithdrawalId; 2]) {
    let harness = Harness::with_options(|options| options.in_flight = 4);
    let ids = ["1", "2"].map(|amount| harness.schedule(amount));
    with_used_nonce(&harness, ids).await;
    (harness, ids)
}

/// Makes the node lose the last two transactions that it received.
fn lose_last_two(harness: &Harness) {
    for sent in harness.proxy.sent().iter().rev().take(2) {
        harness.chain.drop_transaction(&sent.hash).unwrap();
    }
}

/// Sends a withdrawal that waits for one with a lower nonce. Neither is sent, and no nonce is assigned.
async fn assert_waits(harness: &Harness, id: WithdrawalId, reason: &str) {
    let before = (harness.proxy.sent().len(), harness.store.nonces(id).len());
    let answer = harness.send(id).await;
    assert_eq!(answer.outcome, Outcome::Parked, "{answer:?}");
    assert!(answer.message.as_ref().unwrap().contains(reason), "{answer:?}");
    assert_eq!((harness.proxy.sent().len(), harness.store.nonces(id).len()), before);
}

async fn assert_paid_last(harness: &Harness, id: WithdrawalId, payments: usize) {
    harness.accept(id).await;
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
    assert_eq!(harness.store.nonces(id).last().unwrap().nonce, 2);
    assert_eq!(harness.polls().len(), payments);
}

#[tokio::test]
async fn held_withdrawal_with_a_lower_nonce_is_not_sent() {
    let (harness, ids) = of_one_pool().await;
    harness.store.hold(ids[1]);
    assert_waits(&harness, ids[0], "has the lower nonce 1 and is held").await;
    harness.store.release(ids[1]);
    assert_paid_last(&harness, ids[0], 2).await;
}

/// The hold begins after the other withdrawal got its nonce.
#[tokio::test]
async fn held_withdrawal_is_not_sent_before_one_that_is_sent_again() {
    let (harness, ids) = of_one_pool().await;
    harness.accept(ids[0]).await;
    lose_last_two(&harness);
    harness.store.hold(ids[1]);
    assert_waits(&harness, ids[0], "has the lower nonce 1 and is held").await;
    harness.store.release(ids[1]);
    assert_paid_last(&harness, ids[0], 2).await;
}

#[tokio::test]
async fn cancelled_withdrawal_with_a_lower_nonce_is_not_paid() {
    let (harness, ids) = of_one_pool().await;
    harness.cancel(ids[1]);
    assert_paid_last(&harness, ids[0], 1).await;
    let [_, filler] = harness.nonce(ids[1]).transactions.try_into().unwrap();
    assert!(filler.signed.is_filler && filler.sent_at.is_some(), "{filler:?}");
}

#[tokio::test]
async fn cancelled_withdrawal_is_not_paid_while_the_signer_is_gone() {
    let (mut harness, ids) = of_one_pool().await;
    harness.accept(ids[0]).await;
    lose_last_two(&harness);
    harness.cancel(ids[1]);
    let mut signers = Vec::new();
    harness.restart_with(|options| signers = mem::take(&mut options.signers));
    let sent = harness.proxy.sent().len();
    assert_eq!(harness.outcome(ids[0]).await, Outcome::Refused);
    assert_eq!(harness.proxy.sent().len(), sent);
    harness.restart_with(|options| options.signers = signers);
    assert_paid_last(&harness, ids[0], 1).await;
}

#[tokio::test]
async fn bid_above_a_lowered_cap_is_not_sent_with_a_lower_nonce() {
    let mut harness = Harness::with_options(|options| options.in_flight = 4);
    let other = Pool::deploy(&harness.chain, &harness.chain.accounts()[0]).unwrap();
    let pools = [harness.pool.address(), other.address()].map(|pool| pool.parse().unwrap());
    let scope = harness.scope();
    harness.restart_with(|options| {
        options.rules = PoolRules::new(pools.map(|pool| (pool, scope.clone())));
    });
    let ids = [harness.schedule("1"), harness.schedule_at(other.address(), "2")];
    with_used_nonce(&harness, ids).await;
    harness.restart_with(|options| options.pool_caps = vec![(pools[1], "1".parse().unwrap())]);
    assert_waits(&harness, ids[0], "was signed before the cap was lowered").await;
    harness.restart_with(|options| options.pool_caps.clear());
    assert_paid_last(&harness, ids[0], 1).await;
}
