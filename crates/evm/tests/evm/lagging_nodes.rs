//! A node that lags behind, or several nodes behind one URL, one of which lags.

use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_test_chain::Fault;
use grid_batch_withdrawals::NonceOutcome;

use crate::harness::Harness;

const BLOCK: &str = "eth_getBlockByNumber";
const BY_HASH: &str = "eth_getTransactionByHash";
const COUNT: &str = "eth_getTransactionCount";
const RECEIPT: &str = "eth_getTransactionReceipt";

#[tokio::test]
async fn outdated_count_assigns_no_nonce_twice() {
    let harness = Harness::new();
    harness.proxy.set(COUNT, Fault::Stale);
    let first = harness.send_withdrawal().await;
    harness.mine(1);
    let second = harness.send_withdrawal().await;
    harness.mine(1);
    assert_eq!([harness.nonce(first).nonce, harness.nonce(second).nonce], [0, 1]);
    assert_eq!(harness.polls().len(), 2);
}

#[tokio::test]
async fn outdated_count_makes_nothing_final() {
    let harness = Harness::new();
    harness.proxy.set(COUNT, Fault::Stale);
    let id = harness.send_withdrawal().await;
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Pending);
    assert_eq!(harness.evidence(id).await, Evidence::Present);
    harness.proxy.clear();
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
}

#[tokio::test]
async fn late_receipt_is_waited_for() {
    let harness = Harness::new();
    let id = harness.send_withdrawal().await;
    harness.proxy.set(RECEIPT, Fault::Null);
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Pending);
    assert_eq!(harness.evidence(id).await, Evidence::Present);
    assert_eq!(harness.nonce(id).note, None);
    harness.proxy.clear();
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
}

#[tokio::test]
async fn count_alone_assigns_no_other_nonce() {
    let harness = Harness::new();
    let id = harness.send_withdrawal().await;
    harness.mine(1);
    for method in [RECEIPT, BY_HASH, BLOCK] {
        harness.proxy.set(method, Fault::Null);
    }
    assert_eq!(harness.status(id).await, LedgerStatus::NotReported);
    let note = "nonce 0 is used, but no node shows a receipt of its transaction".to_owned();
    assert_eq!(harness.nonce(id).note, Some(note));
    assert_eq!(harness.evidence(id).await, Evidence::Inconclusive);
    assert_eq!(harness.outcome(id).await, Outcome::Ambiguous);
    harness.proxy.clear();
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
    let withdrawal_id = "1".to_owned();
    assert_eq!(harness.nonce(id).outcome, Some(NonceOutcome::Withdrawn { withdrawal_id }));
}

#[tokio::test]
async fn transaction_missing_in_the_index_is_found_in_its_block() {
    let harness = Harness::with_options(|options| options.confirmations = 2);
    let id = harness.send_withdrawal().await;
    harness.mine(5);
    harness.proxy.set(RECEIPT, Fault::Null);
    harness.proxy.set(BY_HASH, Fault::Null);
    assert_eq!(harness.status(id).await, LedgerStatus::Pending);
    assert_eq!((harness.nonce(id).note, harness.nonce(id).foreign_hash), (None, None));
    // Not even an operator's retry assigns another nonce.
    harness.retry(id);
    assert_eq!(harness.evidence(id).await, Evidence::Inconclusive);
    assert_eq!(harness.outcome(id).await, Outcome::Ambiguous);
    harness.proxy.clear();
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
    assert_eq!(harness.polls().len(), 1);
}

#[tokio::test]
async fn revert_in_a_dropped_block_does_not_count() {
    let harness = Harness::with_options(|options| options.confirmations = 2);
    let id = harness.send_withdrawal().await;
    harness.set_pool_owner(5);
    harness.mine(1);
    harness.proxy.set(RECEIPT, Fault::Stale);
    assert_eq!(harness.status(id).await, LedgerStatus::Valid);
    harness.chain.reorg(1).unwrap();
    harness.set_pool_owner(0);
    assert_eq!(harness.evidence(id).await, Evidence::Repeatable);
    harness.accept(id).await;
    harness.mine(3);
    assert_eq!(harness.status(id).await, LedgerStatus::Valid);
    assert_eq!(harness.nonce(id).outcome, None);
    harness.proxy.clear();
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
    assert_eq!(harness.polls().len(), 1);
}

#[tokio::test]
async fn success_in_a_dropped_block_does_not_count() {
    let harness = Harness::with_options(|options| options.confirmations = 2);
    let id = harness.send_withdrawal().await;
    harness.mine(1);
    harness.proxy.set(RECEIPT, Fault::Stale);
    assert_eq!(harness.status(id).await, LedgerStatus::Valid);
    harness.chain.reorg(1).unwrap();
    harness.set_pool_owner(5);
    harness.accept(id).await;
    harness.mine(3);
    assert_eq!(harness.polls(), []);
    assert_eq!(harness.status(id).await, LedgerStatus::Valid);
    harness.proxy.clear();
    assert_eq!(harness.status(id).await, LedgerStatus::Invalid);
}

#[tokio::test]
async fn receipt_of_a_dropped_block_ends_nothing() {
    let harness = Harness::with_options(|options| options.confirmations = 2);
    let id = harness.send_withdrawal().await;
    harness.mine(1);
    harness.proxy.set(RECEIPT, Fault::Stale);
    assert_eq!(harness.status(id).await, LedgerStatus::Valid);
    harness.chain.reorg(1).unwrap();
    harness.mine(5);
    assert_eq!(harness.status(id).await, LedgerStatus::NotReported);
    assert_eq!(harness.nonce(id).outcome, None);
    assert_eq!(harness.evidence(id).await, Evidence::Repeatable);
}

#[tokio::test]
async fn outdated_receipt_and_count_end_nothing() {
    let harness = Harness::with_options(|options| options.confirmations = 2);
    let id = harness.send_withdrawal().await;
    harness.mine(1);
    harness.proxy.set(RECEIPT, Fault::Stale);
    harness.proxy.set(COUNT, Fault::Stale);
    assert_eq!(harness.status(id).await, LedgerStatus::Valid);
    harness.chain.reorg(1).unwrap();
    harness.mine(5);
    assert_eq!(harness.status(id).await, LedgerStatus::Valid);
    assert_eq!(harness.nonce(id).outcome, None);
    harness.proxy.clear();
    assert_eq!(harness.evidence(id).await, Evidence::Repeatable);
}

#[tokio::test]
async fn failing_node_reports_no_status() {
    let harness = Harness::new();
    let id = harness.send_withdrawal().await;
    harness.mine(1);
    for method in [COUNT, RECEIPT, BLOCK] {
        for fault in
            [Fault::status(429), Fault::NotForwarded, Fault::rpc_error("no"), Fault::LostAnswer]
        {
            harness.proxy.set(method, fault);
            harness.report(id).await.unwrap_err();
            harness.proxy.clear();
        }
    }
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
}
