//! A store that went back, as after restoring a backup, and does not know the last transactions.

use alloy_primitives::hex;
use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::{Ledger, Outcome};
use grid_batch_test_chain::{Fault, FaultProxy};
use grid_batch_withdrawals::{NonceOutcome, WithdrawalId};
use serde_json::json;

use crate::{
    harness::{Harness, RESEND_AFTER, SEND},
    memory_store::StoreState,
};

/// Withdrawals that are scheduled but not signed, and a copy of the store.
fn scheduled<const N: usize>(
    harness: &Harness,
    amounts: [&str; N],
) -> ([WithdrawalId; N], StoreState) {
    let ids = amounts.map(|amount| harness.schedule(amount));
    (ids, harness.store.copy())
}

/// Processes a withdrawal until it has ended.
async fn pay(harness: &Harness, id: WithdrawalId) {
    harness.accept(id).await;
    harness.mine(3);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
}

/// Signs for a withdrawal while the asked node does not show the only pending transaction, which another node still
/// has.
async fn sign_beside_pending(harness: &Harness, id: WithdrawalId) {
    let pending = harness.proxy.sent().remove(0);
    harness.chain.drop_transaction(&pending.hash).unwrap();
    harness.proxy.set(SEND, Fault::rpc_error("replacement transaction underpriced"));
    harness.accept(id).await;
    harness.proxy.clear();
    harness.chain.rpc("eth_sendRawTransaction", json!([pending.raw])).unwrap();
}

/// Asserts that the withdrawals are reported as made by these transactions of the pool, in order.
async fn assert_made(harness: &Harness, ids: &[WithdrawalId], polls: &[usize]) {
    for (id, poll) in ids.iter().zip(polls) {
        assert_eq!(harness.status(*id).await, LedgerStatus::Committed);
        let withdrawal_id = harness.polls()[*poll].id.clone();
        let outcome = harness.nonce(*id).outcome;
        assert_eq!(outcome, Some(NonceOutcome::Withdrawn { withdrawal_id }));
    }
}

fn is_adopted(harness: &Harness, id: WithdrawalId) -> bool {
    harness.nonce(id).transactions.iter().any(|it| it.adopted)
}

#[tokio::test]
async fn payments_that_are_not_stored_are_adopted() {
    let harness = Harness::with_options(|options| options.confirmations = 3);
    let (ids, copy) = scheduled(&harness, ["1", "2", "3"]);
    pay(&harness, ids[0]).await;
    pay(&harness, ids[1]).await;
    let sent = harness.proxy.calls(SEND);

    harness.store.restore(&copy);
    assert_eq!(harness.evidence(ids[0]).await, Evidence::Repeatable);
    for id in &ids[..2] {
        harness.accept(*id).await;
        assert!(is_adopted(&harness, *id));
    }
    assert_eq!(harness.proxy.calls(SEND), sent);
    assert_made(&harness, &ids[..2], &[0, 1]).await;
    pay(&harness, ids[2]).await;
    assert_eq!(harness.polls().len(), 3);
    let signed = &harness.nonce(ids[0]).transactions[0].signed;
    assert_eq!(hex::encode_prefixed(signed.hash), harness.polls()[0].transaction_hash);
}

#[tokio::test]
async fn gas_price_above_the_cap_delays_no_adoption() {
    let harness = Harness::new();
    let (ids, copy) = scheduled(&harness, ["1"]);
    pay(&harness, ids[0]).await;
    harness.store.restore(&copy);
    harness.chain.set_base_fee(900).unwrap();
    harness.accept(ids[0]).await;
    assert_made(&harness, &ids, &[0]).await;
}

#[tokio::test]
async fn adopted_payment_is_sent_again_after_a_reorg() {
    let harness = Harness::with_options(|options| options.confirmations = 2);
    let (ids, copy) = scheduled(&harness, ["1"]);
    harness.accept(ids[0]).await;
    harness.mine(2);
    harness.store.restore(&copy);
    harness.accept(ids[0]).await;
    harness.chain.reorg(2).unwrap();
    assert_eq!(harness.status(ids[0]).await, LedgerStatus::NotReported);
    harness.accept(ids[0]).await;
    harness.mine(3);
    assert_made(&harness, &ids, &[0]).await;
    assert_eq!(harness.polls().len(), 1);
}

#[tokio::test]
async fn equal_withdrawals_are_adopted_in_order() {
    let harness = Harness::new();
    let (ids, copy) = scheduled(&harness, ["5", "5", "5"]);
    pay(&harness, ids[0]).await;
    pay(&harness, ids[1]).await;
    harness.store.restore(&copy);
    harness.accept(ids[0]).await;
    harness.accept(ids[1]).await;
    assert_made(&harness, &ids[..2], &[0, 1]).await;
    pay(&harness, ids[2]).await;
    assert_eq!(harness.polls().len(), 3);
}

#[tokio::test]
async fn refused_withdrawal_fails_again() {
    let harness = Harness::new();
    let (ids, copy) = scheduled(&harness, ["1", "2"]);
    harness.accept(ids[0]).await;
    harness.set_pool_owner(1);
    harness.mine(1);
    harness.set_pool_owner(0);
    assert_eq!(harness.status(ids[0]).await, LedgerStatus::Invalid);
    harness.store.restore(&copy);
    harness.accept(ids[0]).await;
    assert_eq!(harness.status(ids[0]).await, LedgerStatus::Invalid);
    pay(&harness, ids[1]).await;
    assert_eq!(harness.polls().len(), 1);
}

#[tokio::test]
async fn refused_and_then_made_counts_as_made() {
    let harness = Harness::new();
    let (ids, copy) = scheduled(&harness, ["1"]);
    harness.accept(ids[0]).await;
    harness.set_pool_owner(1);
    harness.mine(1);
    harness.set_pool_owner(0);
    assert_eq!(harness.status(ids[0]).await, LedgerStatus::Invalid);
    harness.retry(ids[0]);
    pay_in_second_generation(&harness, ids[0]).await;
    harness.store.restore(&copy);
    harness.accept(ids[0]).await;
    assert_made(&harness, &ids, &[0]).await;
    assert_eq!(harness.polls().len(), 1);
}

async fn pay_in_second_generation(harness: &Harness, id: WithdrawalId) {
    harness.accept(id).await;
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
}

#[tokio::test]
async fn replacement_that_is_not_stored_is_adopted() {
    let harness = Harness::new();
    let id = harness.send_withdrawal().await;
    let copy = harness.store.copy();
    harness.chain.set_base_fee(60).unwrap();
    harness.advance_clock(RESEND_AFTER * 2);
    harness.accept(id).await;
    harness.mine(1);
    assert_eq!(harness.hashes(id).len(), 2);

    harness.store.restore(&copy);
    assert_eq!(harness.status(id).await, LedgerStatus::Pending);
    assert!(is_adopted(&harness, id));
    assert_made(&harness, &[id], &[0]).await;
    assert_eq!(harness.polls().len(), 1);
}

#[tokio::test]
async fn pending_payment_of_another_withdrawal_wins() {
    for in_flight in [1, 16] {
        pending_payment_wins(in_flight).await;
    }
}

async fn pending_payment_wins(in_flight: usize) {
    let harness = Harness::with_options(|options| options.in_flight = in_flight);
    let (ids, copy) = scheduled(&harness, ["1", "2"]);
    harness.accept(ids[0]).await;
    // The chain still has the payment of the first as pending, and the second one is next.
    harness.store.restore(&copy);
    sign_beside_pending(&harness, ids[1]).await;
    assert_eq!(harness.nonce(ids[1]).nonce, 0);
    harness.mine(1);

    assert_eq!(harness.status(ids[1]).await, LedgerStatus::NotReported);
    assert_eq!(harness.store.nonces(ids[1]), []);
    assert_eq!(harness.evidence(ids[1]).await, Evidence::Repeatable);
    pay(&harness, ids[1]).await;
    assert_eq!(harness.nonce(ids[1]).nonce, 1);
    harness.accept(ids[0]).await;
    assert_made(&harness, &ids, &[0, 1]).await;
    assert_eq!(harness.polls().len(), 2);
}

/// The payment of a later withdrawal has the nonce that the first one would get.
#[tokio::test]
async fn nothing_is_signed_ahead_for_one_that_may_be_paid() {
    let harness = Harness::with_options(|options| options.in_flight = 16);
    let (ids, copy) = scheduled(&harness, ["1", "2", "3"]);
    harness.accept(ids[1]).await;
    let old = harness.proxy.sent().remove(0);
    harness.store.restore(&copy);
    // The node has lost its pending transactions.
    harness.chain.drop_transaction(&old.hash).unwrap();
    harness.accept(ids[0]).await;
    assert_eq!(harness.status(ids[0]).await, LedgerStatus::Pending);
    // Another node has kept the old one, and it is mined.
    let new = harness.hashes(ids[0]).remove(0);
    harness.chain.drop_transaction(&new).unwrap();
    harness.chain.rpc("eth_sendRawTransaction", json!([old.raw])).unwrap();
    harness.mine(1);

    assert_eq!(harness.status(ids[0]).await, LedgerStatus::NotReported);
    assert_eq!(harness.evidence(ids[0]).await, Evidence::Repeatable);
    pay(&harness, ids[0]).await;
    assert_eq!(harness.outcome(ids[1]).await, Outcome::Committed);
    assert_made(&harness, &ids[..2], &[1, 0]).await;
    pay(&harness, ids[2]).await;
    assert_eq!(harness.polls().len(), 3);
}

#[tokio::test]
async fn payment_is_not_repeated_by_a_retry() {
    let harness = Harness::new();
    let (ids, copy) = scheduled(&harness, ["1", "2"]);
    harness.accept(ids[0]).await;
    harness.store.restore(&copy);
    sign_beside_pending(&harness, ids[1]).await;
    // The operator decides before any node has shown the transaction.
    harness.store.decide_invalid(ids[1]);
    harness.mine(1);
    harness.accept(ids[0]).await;
    assert_made(&harness, &ids[..1], &[0]).await;
    harness.retry(ids[1]);
    pay(&harness, ids[1]).await;
    assert_eq!(harness.polls().len(), 2);
}

#[tokio::test]
async fn cancelled_withdrawal_without_a_nonce_is_adopted() {
    let harness = Harness::new();
    let (ids, copy) = scheduled(&harness, ["1", "2"]);
    pay(&harness, ids[0]).await;
    harness.store.restore(&copy);
    harness.cancel(ids[0]);
    harness.cancel(ids[1]);
    harness.accept(ids[0]).await;
    assert_made(&harness, &ids[..1], &[0]).await;
    assert_eq!(harness.outcome(ids[1]).await, Outcome::Rejected);
}

#[tokio::test]
async fn filler_of_a_cancelled_withdrawal_is_adopted() {
    let harness = Harness::new();
    let id = harness.send_withdrawal().await;
    harness.cancel(id);
    let copy = harness.store.copy();
    harness.accept(id).await;
    harness.mine(1);
    harness.store.restore(&copy);
    assert_eq!(harness.status(id).await, LedgerStatus::Pending);
    assert!(harness.failure_reason(id).await.contains("cancelled"));
    assert_eq!(harness.polls(), []);
}

/// A withdrawal whose cancellation is no longer stored, and a second one.
async fn with_unknown_filler() -> (Harness, [WithdrawalId; 2]) {
    let harness = Harness::new();
    let (ids, copy) = scheduled(&harness, ["1", "2"]);
    harness.accept(ids[0]).await;
    harness.cancel(ids[0]);
    harness.accept(ids[0]).await;
    harness.mine(1);
    harness.store.restore(&copy);
    (harness, ids)
}

#[tokio::test]
async fn unknown_filler_is_undecided() {
    let (harness, ids) = with_unknown_filler().await;
    let sent = harness.proxy.calls(SEND);
    for _ in 0..2 {
        let answer = harness.send(ids[0]).await;
        assert_eq!(answer.outcome, Outcome::Ambiguous, "{answer:?}");
        let reason = answer.message.unwrap();
        let hash = harness.sent().pop().unwrap();
        for part in ["nonce 0", &hash, "cancelled", "grid-batch nonce eip155:31337:0x"] {
            assert!(reason.contains(part), "{reason}");
        }
        assert_eq!(harness.evidence(ids[0]).await, Evidence::Inconclusive);
    }
    assert_eq!(harness.proxy.calls(SEND), sent);
    harness.store.decide_elsewhere(&harness.service_id(), 0);
    assert_eq!(harness.evidence(ids[0]).await, Evidence::Repeatable);
    pay(&harness, ids[0]).await;
    assert_eq!(harness.nonce(ids[0]).nonce, 1);
}

/// Nothing is stored about the nonce, because the count may be wrong.
#[tokio::test]
async fn transaction_that_no_node_shows_parks() {
    let harness = Harness::new();
    let (ids, copy) = scheduled(&harness, ["1", "2"]);
    pay(&harness, ids[0]).await;
    harness.store.restore(&copy);
    harness.proxy.set("eth_getLogs", Fault::rpc_error("pruned"));
    harness.proxy.set("eth_getTransactionByHash", Fault::Null);
    let sent = harness.proxy.calls(SEND);
    assert_eq!(harness.outcome(ids[0]).await, Outcome::Parked);
    assert_eq!((harness.store.nonces(ids[0]), harness.proxy.calls(SEND)), (vec![], sent));
    // A node shows it, so it is decided.
    harness.proxy.clear();
    harness.accept(ids[0]).await;
    assert_made(&harness, &ids[..1], &[0]).await;
    assert_eq!(harness.polls().len(), 1);
}

#[tokio::test]
async fn old_state_is_not_needed_for_payments() {
    let mut harness = Harness::new();
    let (ids, copy) = scheduled(&harness, ["1", "2"]);
    pay(&harness, ids[0]).await;
    harness.store.restore(&copy);
    // A node without events first, and one that has them.
    let forgetful = FaultProxy::start(harness.chain.url()).unwrap();
    forgetful.set("eth_getLogs", Fault::rpc_error("pruned"));
    let url = harness.proxy.url().to_owned();
    harness.use_nodes(&[forgetful.url(), &url]);
    let answer = harness.evm.send(forgetful.url(), &harness.submission(ids[0])).await;
    assert_eq!(answer.outcome, Outcome::Accepted, "{answer:?}");
    assert_made(&harness, &ids[..1], &[0]).await;
}

#[tokio::test]
async fn failing_node_decides_nothing() {
    let harness = Harness::new();
    let (ids, copy) = scheduled(&harness, ["1"]);
    pay(&harness, ids[0]).await;
    for method in ["eth_getLogs", "eth_getTransactionByHash", "eth_getTransactionReceipt"] {
        harness.store.restore(&copy);
        harness.proxy.set(method, Fault::status(500));
        assert_eq!(harness.outcome(ids[0]).await, Outcome::NotSent, "{method}");
        harness.proxy.clear();
        harness.accept(ids[0]).await;
    }
    assert_made(&harness, &ids, &[0]).await;
    assert_eq!(harness.polls().len(), 1);
}

#[tokio::test]
async fn request_after_the_payment_is_not_adopted() {
    let harness = Harness::new();
    let (ids, _) = scheduled(&harness, ["1"]);
    pay(&harness, ids[0]).await;
    // The withdrawal is lost, and one with the same terms is requested much later.
    harness.store.restore(&StoreState::default());
    harness.clock.set(std::time::SystemTime::now().into());
    harness.advance_clock(RESEND_AFTER * 10);
    let id = harness.schedule("1");
    let answer = harness.send(id).await;
    assert_eq!(answer.outcome, Outcome::Ambiguous, "{answer:?}");
    assert!(answer.message.unwrap().contains("scheduled later"));
}

#[tokio::test]
async fn payment_of_a_lost_withdrawal_is_elsewhere() {
    let harness = Harness::new();
    let (ids, _) = scheduled(&harness, ["1"]);
    pay(&harness, ids[0]).await;
    harness.store.restore(&StoreState::default());
    let id = harness.schedule("2");
    pay(&harness, id).await;
    assert_eq!((harness.nonce(id).nonce, harness.polls().len()), (1, 2));
}

#[tokio::test]
async fn payment_on_a_chain_without_base_fees_is_adopted() {
    let harness = Harness::with(|chain| chain.hardfork = Some("berlin"), |_| {});
    let (ids, copy) = scheduled(&harness, ["1"]);
    pay(&harness, ids[0]).await;
    harness.store.restore(&copy);
    harness.accept(ids[0]).await;
    assert_made(&harness, &ids, &[0]).await;
    assert_eq!(harness.polls().len(), 1);
}
