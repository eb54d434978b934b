//! Another program uses the gas admin's key.

use alloy_primitives::hex;
use grid_batch_core::ScopeId;
use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_test_chain::{Fault, FaultProxy};
use grid_batch_withdrawals::{NonceOutcome, SigningStore, WithdrawalId};
use serde_json::json;

use crate::harness::{Harness, SEND};

/// A withdrawal whose nonce was used by a foreign transaction.
async fn with_foreign_use(confirmations: u64) -> (Harness, WithdrawalId) {
    let harness = Harness::with_options(|options| options.confirmations = confirmations);
    let id = harness.send_withdrawal().await;
    harness.chain.drop_transaction(&harness.hashes(id)[0]).unwrap();
    harness.use_key_elsewhere();
    (harness, id)
}

/// The same with one confirmation and three nodes, two of which must agree. The two returned nodes do not show the
/// foreign transaction.
async fn with_foreign_use_at_one_node() -> (Harness, WithdrawalId, [FaultProxy; 2]) {
    let (mut harness, id) = with_foreign_use(1).await;
    harness.restart_with(|options| options.agreeing_nodes = 2);
    let others = [(); 2].map(|()| FaultProxy::start(harness.chain.url()).unwrap());
    let url = harness.proxy.url().to_owned();
    harness.use_nodes(&[&url, others[0].url(), others[1].url()]);
    for other in &others {
        other.set("eth_getTransactionByHash", Fault::Null);
    }
    (harness, id, others)
}

#[tokio::test]
async fn next_nonce_follows_foreign_transactions() {
    let harness = Harness::new();
    harness.use_key_elsewhere();
    let first = harness.send_withdrawal().await;
    assert_eq!(harness.nonce(first).nonce, 1);
    harness.mine(1);
    harness.use_key_elsewhere();
    let second = harness.send_withdrawal().await;
    assert_eq!(harness.nonce(second).nonce, 3);
    harness.mine(1);
    assert_eq!(harness.polls().len(), 2);
}

#[tokio::test]
async fn nonce_is_kept_until_its_foreign_use_is_final() {
    let (harness, id) = with_foreign_use(3).await;
    for _ in 0..2 {
        assert_eq!(harness.status(id).await, LedgerStatus::NotReported);
        assert_eq!(harness.evidence(id).await, Evidence::Inconclusive);
        assert_eq!(harness.outcome(id).await, Outcome::Ambiguous);
        harness.mine(1);
    }
    let assigned = harness.nonce(id);
    let foreign_hash = hex::encode_prefixed(assigned.foreign_hash.unwrap());
    assert_eq!(harness.transaction(&foreign_hash)["value"], "0x1");
    let note = format!(
        "nonce 0 of 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266 was used by {foreign_hash}, which was not \
         signed by this server"
    );
    assert_eq!((assigned.note, assigned.outcome), (Some(note), None));
    assert_eq!(harness.polls(), []);
}

#[tokio::test]
async fn final_foreign_use_assigns_another_nonce() {
    let (harness, id) = with_foreign_use(3).await;
    assert_eq!(harness.status(id).await, LedgerStatus::NotReported);
    harness.mine(2);
    assert_eq!(harness.evidence(id).await, Evidence::Repeatable);
    assert_paid_with_second_nonce(&harness, id).await;
}

async fn assert_paid_with_second_nonce(harness: &Harness, id: WithdrawalId) {
    harness.accept(id).await;
    harness.mine(3);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
    let outcome: Vec<_> =
        harness.store.nonces(id).into_iter().map(|it| (it.nonce, it.outcome)).collect();
    let withdrawn = NonceOutcome::Withdrawn { withdrawal_id: "1".to_owned() };
    assert_eq!(outcome, [(0, Some(NonceOutcome::UsedElsewhere)), (1, Some(withdrawn))]);
    assert_eq!(harness.polls().len(), 1);
}

#[tokio::test]
async fn cancelled_withdrawal_ends_after_final_foreign_use() {
    let (harness, id) = with_foreign_use(1).await;
    assert_eq!(harness.status(id).await, LedgerStatus::NotReported);
    harness.cancel(id);
    assert_eq!(harness.evidence(id).await, Evidence::Repeatable);
    let answer = harness.send(id).await;
    assert_eq!(answer.outcome, Outcome::Rejected, "{answer:?}");
    assert!(answer.message.unwrap().contains("its nonce 0 was used by another transaction"));
    assert_eq!(
        (harness.nonce(id).outcome, harness.polls()),
        (Some(NonceOutcome::UsedElsewhere), vec![])
    );
}

/// An empty transfer may be the filler of a cancellation that is missing in the store.
#[tokio::test]
async fn empty_transfer_decides_nothing() {
    let harness = Harness::new();
    let id = harness.send_withdrawal().await;
    harness.chain.drop_transaction(&harness.hashes(id)[0]).unwrap();
    let admin = &harness.admin().address;
    let empty = json!([{"from": admin, "to": admin, "value": "0x0", "gas": "0x5208"}]);
    harness.chain.rpc("eth_sendTransaction", empty).unwrap();
    harness.mine(3);
    assert_eq!(harness.status(id).await, LedgerStatus::NotReported);
    assert_eq!(harness.evidence(id).await, Evidence::Inconclusive);
    assert_eq!(harness.outcome(id).await, Outcome::Ambiguous);
    // An operator decides and retries.
    harness.retry(id);
    assert_paid_with_second_nonce(&harness, id).await;
}

/// More than half of the nodes must show it.
#[tokio::test]
async fn one_node_of_three_does_not_assign_another_nonce() {
    let (harness, id, others) = with_foreign_use_at_one_node().await;
    assert_eq!(harness.status(id).await, LedgerStatus::NotReported);
    assert_eq!(harness.evidence(id).await, Evidence::Inconclusive);
    assert_eq!(harness.outcome(id).await, Outcome::Ambiguous);
    others[0].clear();
    assert_eq!(harness.evidence(id).await, Evidence::Repeatable);
    harness.accept(id).await;
}

/// Nodes that are not used because they do not confirm the chain count as not showing it.
#[tokio::test]
async fn the_only_node_that_is_used_does_not_assign_another_nonce() {
    let (mut harness, id) = with_foreign_use(1).await;
    harness.restart_with(|options| options.agreeing_nodes = 2);
    assert_eq!(harness.status(id).await, LedgerStatus::NotReported);
    assert_eq!(harness.evidence(id).await, Evidence::Inconclusive);
    assert_eq!(harness.outcome(id).await, Outcome::Ambiguous);
    // This also applies to a retry, which many withdrawals may get at once.
    harness.retry(id);
    assert_eq!(harness.outcome(id).await, Outcome::Ambiguous);
    harness.restart_with(|options| options.agreeing_nodes = 1);
    harness.accept(id).await;
}

/// A retry would get another nonce, and the first payment could still be mined.
#[tokio::test]
async fn one_node_does_not_close_the_nonce_of_an_ended_withdrawal() {
    let (harness, id, others) = with_foreign_use_at_one_node().await;
    harness.store.decide_invalid(id);
    let next = harness.schedule("2");
    assert_ne!(harness.outcome(next).await, Outcome::Accepted);
    assert_eq!(harness.nonce(id).outcome, None);
    others[0].clear();
    harness.accept(next).await;
    assert_eq!(harness.nonce(id).outcome, Some(NonceOutcome::UsedElsewhere));
}

/// Their transactions are mined, whatever happens to the first one.
#[tokio::test]
async fn those_behind_a_used_nonce_are_followed() {
    let harness = Harness::with_options(|options| options.in_flight = 16);
    let ids = ["1", "2", "3"].map(|amount| harness.schedule(amount));
    harness.accept(ids[0]).await;
    assert_eq!(harness.status(ids[0]).await, LedgerStatus::Pending);
    let foreign = json!([{
        "from": harness.admin().address, "to": harness.beneficiary(), "value": "0x1", "gas": "0x5208",
        "nonce": "0x0", "maxFeePerGas": "0x2540be400", "maxPriorityFeePerGas": "0x2540be400",
    }]);
    harness.chain.rpc("eth_sendTransaction", foreign).unwrap();
    harness.mine(1);
    harness.store.hold(ids[0]);
    assert_eq!(harness.status(ids[0]).await, LedgerStatus::NotReported);
    for id in &ids[1..] {
        let outcome = harness.nonce(*id).outcome;
        assert!(matches!(outcome, Some(NonceOutcome::Withdrawn { .. })), "{outcome:?}");
    }
    assert_eq!(harness.store.nonces(ids[0]).len(), 1);
    // The first one is paid with a nonce after theirs.
    harness.accept(ids[0]).await;
    harness.mine(1);
    assert_eq!(harness.status(ids[0]).await, LedgerStatus::Committed);
    assert_eq!(harness.store.nonces(ids[0]).last().unwrap().nonce, 3);
    assert_eq!(harness.polls().len(), 3);
}

#[tokio::test]
async fn retry_keeps_an_open_nonce() {
    let harness = Harness::new();
    let id = harness.send_withdrawal().await;
    harness.retry(id);
    harness.accept(id).await;
    assert_eq!(harness.sent(), harness.hashes(id));
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
    assert_eq!(harness.polls().len(), 1);
}

#[tokio::test]
async fn failing_node_proves_no_foreign_use() {
    let (harness, id) = with_foreign_use(1).await;
    assert_eq!(harness.status(id).await, LedgerStatus::NotReported);
    harness.retry(id);
    for (method, fault) in [
        ("eth_getTransactionReceipt", Fault::status(500)),
        ("eth_getTransactionByHash", Fault::status(503)),
        ("eth_getBlockByNumber", Fault::rpc_error("header not found")),
    ] {
        harness.proxy.set(method, fault);
        let outcome = harness.outcome(id).await;
        assert!(matches!(outcome, Outcome::NotSent | Outcome::Busy), "{method}: {outcome}");
        assert_eq!(harness.nonce(id).outcome, None);
        harness.proxy.clear();
    }
    assert_eq!(harness.proxy.calls(SEND), 1);
    harness.accept(id).await;
}

#[tokio::test]
async fn foreign_use_needs_the_foreign_transaction() {
    let (harness, id) = with_foreign_use(1).await;
    harness.mine(5);
    harness.proxy.set("eth_getBlockByNumber", Fault::Null);
    assert_eq!(harness.status(id).await, LedgerStatus::NotReported);
    harness.proxy.clear();
    assert_eq!(harness.evidence(id).await, Evidence::Inconclusive);
    assert_eq!(harness.outcome(id).await, Outcome::Ambiguous);
    assert_eq!(harness.nonce(id).foreign_hash, None);
    // The next status request finds it.
    assert_eq!(harness.status(id).await, LedgerStatus::NotReported);
    assert_eq!(harness.evidence(id).await, Evidence::Repeatable);
    harness.accept(id).await;
}

#[tokio::test]
async fn transaction_with_another_nonce_is_no_foreign_use() {
    let (harness, id) = with_foreign_use(1).await;
    harness.use_key_elsewhere();
    let block = harness.chain.rpc("eth_getBlockByNumber", json!(["latest", false])).unwrap();
    let hash = hex::decode_to_array(block["transactions"][0].as_str().unwrap()).unwrap();
    harness.store.record_foreign_use(harness.scope().service_id(), 0, &hash).unwrap();
    harness.retry(id);
    assert_eq!(harness.evidence(id).await, Evidence::Inconclusive);
    assert_eq!(harness.outcome(id).await, Outcome::Ambiguous);
    assert_eq!(harness.nonce(id).outcome, None);
}

#[tokio::test]
async fn old_foreign_transaction_is_found() {
    let (harness, id) = with_foreign_use(3).await;
    let foreign_hash = harness.chain.rpc("eth_getBlockByNumber", json!(["latest", false])).unwrap();
    harness.mine(77);
    assert_eq!(harness.status(id).await, LedgerStatus::NotReported);
    let found = hex::encode_prefixed(harness.nonce(id).foreign_hash.unwrap());
    assert_eq!(foreign_hash["transactions"], json!([found]));
}

#[tokio::test]
async fn dropped_foreign_transaction_proves_nothing() {
    let (harness, id) = with_foreign_use(3).await;
    assert_eq!(harness.status(id).await, LedgerStatus::NotReported);
    let first = harness.nonce(id).foreign_hash.unwrap();
    harness.chain.reorg(1).unwrap();
    harness.retry(id);
    harness.accept(id).await;
    assert_eq!(harness.nonce(id).nonce, 0);
    // Another foreign transaction replaces it and is found.
    harness.chain.drop_transaction(&harness.hashes(id)[0]).unwrap();
    harness.use_key_elsewhere_with_value(2);
    harness.mine(2);
    assert_eq!(harness.evidence(id).await, Evidence::Inconclusive);
    assert_eq!(harness.status(id).await, LedgerStatus::NotReported);
    assert_ne!(harness.nonce(id).foreign_hash.unwrap(), first);
    assert_eq!(harness.evidence(id).await, Evidence::Repeatable);
}

#[tokio::test]
async fn decided_invalid_is_not_paid_after_a_reorg() {
    let (harness, id) = with_foreign_use(3).await;
    assert_eq!(harness.status(id).await, LedgerStatus::NotReported);
    harness.store.decide_invalid(id);
    harness.chain.reorg(1).unwrap();
    let next = harness.send_withdrawal().await;
    harness.mine(3);
    assert_eq!(harness.status(next).await, LedgerStatus::Committed);
    assert_eq!((harness.nonce(next).nonce, harness.polls().len()), (1, 1));
}
