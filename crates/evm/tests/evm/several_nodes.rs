//! Several nodes and several runtimes.

use std::{thread, time::Duration};

use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::{Ledger, Outcome};
use grid_batch_test_chain::{Fault, FaultProxy};
use grid_batch_withdrawals::WithdrawalId;
use serde_json::json;
use tokio::runtime::Builder;

use crate::harness::{Harness, RESEND_AFTER, SEND};

const UNREACHABLE: &str = "http://127.0.0.1:9";

#[tokio::test]
async fn unreachable_node_is_skipped() {
    let mut harness = Harness::new();
    let id = harness.send_withdrawal().await;
    let url = harness.proxy.url().to_owned();
    harness.use_nodes(&[UNREACHABLE, &url]);
    assert_eq!(harness.status(id).await, LedgerStatus::Pending);
    assert_eq!(harness.evidence(id).await, Evidence::Present);
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
}

#[tokio::test]
async fn first_error_is_reported_if_all_nodes_fail() {
    let mut harness = Harness::new();
    let id = harness.send_withdrawal().await;
    let url = harness.proxy.url().to_owned();
    harness.proxy.set(FaultProxy::ANY, Fault::status(429));
    harness.use_nodes(&[&url, UNREACHABLE]);
    let error = harness.report(id).await.unwrap_err().to_string();
    assert!(error.contains("429"), "{error}");
    harness.use_nodes(&[]);
    let error = harness.report(id).await.unwrap_err().to_string();
    assert!(error.contains("no node is configured for service eip155:31337:0x"), "{error}");
}

#[tokio::test]
async fn one_node_that_shows_foreign_use_is_enough() {
    let mut harness = Harness::new();
    let lagging = FaultProxy::start(harness.chain.url()).unwrap();
    let id = harness.send_withdrawal().await;
    let url = harness.proxy.url().to_owned();
    // The lagging node repeats its first responses.
    lagging.set(FaultProxy::ANY, Fault::Stale);
    harness.use_nodes(&[lagging.url(), UNREACHABLE, &url]);
    assert_eq!(harness.status(id).await, LedgerStatus::Pending);
    harness.chain.drop_transaction(&harness.hashes(id)[0]).unwrap();
    harness.use_key_elsewhere();
    assert_eq!(harness.status(id).await, LedgerStatus::NotReported);
    harness.retry(id);
    assert_eq!(harness.evidence(id).await, Evidence::Repeatable);
    harness.accept(id).await;
}

#[tokio::test]
async fn pruned_state_is_read_from_another_node() {
    let mut harness = Harness::new();
    let forgetful = FaultProxy::start(harness.chain.url()).unwrap();
    let id = harness.send_withdrawal().await;
    let url = harness.proxy.url().to_owned();
    harness.use_nodes(&[forgetful.url(), &url]);
    harness.chain.drop_transaction(&harness.hashes(id)[0]).unwrap();
    harness.use_key_elsewhere();
    forgetful.set("eth_getBlockByNumber", Fault::rpc_error("header not found"));
    assert_eq!(harness.status(id).await, LedgerStatus::NotReported);
    assert!(harness.nonce(id).foreign_hash.is_some());
    harness.retry(id);
    assert_eq!(harness.evidence(id).await, Evidence::Repeatable);
}

#[tokio::test]
async fn node_of_another_chain_is_ignored() {
    let mut harness = Harness::new();
    let id = harness.send_withdrawal().await;
    let other = Harness::with(|chain| chain.chain_id = Some(5), |_| {});
    other.use_key_elsewhere();
    let url = harness.proxy.url().to_owned();
    harness.use_nodes(&[other.proxy.url(), &url]);
    assert_eq!(harness.status(id).await, LedgerStatus::Pending);
    assert_eq!(harness.nonce(id).foreign_hash, None);
    // The result is the same if the other nodes have removed the state.
    harness.chain.drop_transaction(&harness.hashes(id)[0]).unwrap();
    harness.use_key_elsewhere();
    harness.proxy.set("eth_getBlockByNumber", Fault::Null);
    assert_eq!(harness.status(id).await, LedgerStatus::NotReported);
    assert_eq!(harness.nonce(id).foreign_hash, None);
    harness.use_nodes(&[other.proxy.url()]);
    let error = harness.report(id).await.unwrap_err().to_string();
    assert!(error.contains("the node is on chain 5, expected chain 31337"), "{error}");
}

#[tokio::test]
async fn isolated_node_does_not_hide_a_mined_transaction() {
    let mut harness = Harness::new();
    let cut_off = Harness::new();
    let urls = [cut_off.proxy.url().to_owned(), harness.proxy.url().to_owned()];
    harness.use_nodes(&[&urls[0], &urls[1]]);
    let id = harness.schedule("500");
    // The isolated node accepts the transaction and mines nothing.
    for url in &urls {
        harness.advance_clock(RESEND_AFTER + Duration::from_secs(1));
        let answer = harness.evm.send(url, &harness.submission(id)).await;
        assert_eq!(answer.outcome, Outcome::Accepted, "{answer:?}");
        assert_eq!(harness.status(id).await, LedgerStatus::Pending);
    }
    harness.mine(1);
    assert_eq!(harness.evidence(id).await, Evidence::Present);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
    assert_eq!(harness.polls().len(), 1);
}

#[tokio::test]
async fn final_at_one_node_is_enough() {
    let mut harness = Harness::with_options(|options| options.confirmations = 3);
    let lagging = FaultProxy::start(harness.chain.url()).unwrap();
    let id = harness.send_withdrawal().await;
    harness.mine(1);
    let url = harness.proxy.url().to_owned();
    lagging.set(FaultProxy::ANY, Fault::Stale);
    harness.use_nodes(&[lagging.url(), &url]);
    assert_eq!(harness.status(id).await, LedgerStatus::Valid);
    harness.mine(2);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
}

/// Two nodes with the same chain id and pool but different blocks. The withdrawal was sent to both, and the first one
/// refuses it.
async fn two_branches() -> (Harness, Harness, WithdrawalId) {
    let (mut harness, branch) = (Harness::new(), Harness::new());
    harness.mine(1);
    let urls = [branch.proxy.url().to_owned(), harness.proxy.url().to_owned()];
    harness.use_nodes(&[&urls[0], &urls[1]]);
    let id = harness.schedule("500");
    for url in &urls {
        harness.advance_clock(RESEND_AFTER + Duration::from_secs(1));
        let answer = harness.evm.send(url, &harness.submission(id)).await;
        assert_eq!(answer.outcome, Outcome::Accepted, "{answer:?}");
    }
    branch.set_pool_owner(5);
    branch.mine(1);
    (harness, branch, id)
}

#[tokio::test]
async fn failure_on_another_branch_is_not_final() {
    let (harness, _branch, id) = two_branches().await;
    assert_eq!(harness.status(id).await, LedgerStatus::Valid);
    let note = harness.nonce(id).note.unwrap();
    assert!(note.starts_with("the nodes disagree about block 2: "), "{note}");
    assert_eq!(harness.nonce(id).outcome, None);
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
    assert_eq!(harness.polls().len(), 1);
}

#[tokio::test]
async fn most_nodes_decide_about_a_block() {
    let (mut harness, branch, id) = two_branches().await;
    let second = FaultProxy::start(harness.chain.url()).unwrap();
    let urls = [branch.proxy.url().to_owned(), harness.proxy.url().to_owned()];
    harness.use_nodes(&[&urls[0], &urls[1], second.url()]);
    harness.mine(1);
    branch.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
    assert_eq!(harness.polls().len(), 1);
}

#[tokio::test]
async fn hung_node_is_asked_about_a_block_only_now_and_then() {
    let mut harness = Harness::new();
    let hung = FaultProxy::start(harness.chain.url()).unwrap();
    hung.set("eth_getBlockByNumber", Fault::NotForwarded);
    let url = harness.proxy.url().to_owned();
    harness.use_nodes(&[&url, hung.url()]);
    for _ in 0..3 {
        let id = harness.send_withdrawal().await;
        harness.mine(1);
        assert_eq!(harness.status(id).await, LedgerStatus::Committed);
    }
    assert_eq!(hung.calls("eth_getBlockByNumber"), 1);
}

#[test]
fn shutdown_of_the_reader_does_not_break_sending() {
    let runtime = || Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (before, asking, sending) = (runtime(), runtime(), runtime());
    let harness = Harness::new();
    let id = before.block_on(harness.send_withdrawal());
    // Connections close with the runtime that opened them, so none is left now.
    drop(before);
    assert_eq!(asking.block_on(harness.status(id)), LedgerStatus::Pending);
    harness.mine(1);
    let next = harness.schedule("500");
    let stop = harness.proxy.stop_before(SEND, 1);
    let answer = thread::scope(|scope| {
        let sent = scope.spawn(|| sending.block_on(harness.send(next)));
        assert!(stop.wait(Duration::from_secs(20)));
        drop(asking);
        stop.release();
        sent.join().unwrap()
    });
    assert_eq!(answer.outcome, Outcome::Accepted, "{answer:?}");
}

#[tokio::test]
async fn debug_never_shows_the_key() {
    let harness = Harness::new();
    let id = harness.send_withdrawal().await;
    let shown = format!("{:?} {:?}", harness.evm, harness.store.nonces(id));
    let secret = &harness.admin().secret_key[2..18];
    assert!(!shown.to_lowercase().contains(secret), "{shown}");
}

#[tokio::test]
async fn unknown_transaction_pending_at_another_node_counts() {
    let mut harness = Harness::new();
    let forgetful = FaultProxy::start(harness.chain.url()).unwrap();
    forgetful.set("eth_getTransactionCount", Fault::Result(json!("0x0")));
    let url = harness.proxy.url().to_owned();
    harness.use_nodes(&[forgetful.url(), &url]);
    let copy = harness.store.copy();
    harness.send_withdrawal().await;
    harness.store.restore(&copy);
    let id = harness.schedule("7");
    let answer = harness.evm.send(forgetful.url(), &harness.submission(id)).await;
    assert_eq!(answer.outcome, Outcome::Parked, "{answer:?}");
    let message = answer.message.unwrap();
    assert!(message.contains("use up nonce 0"), "{message}");
    assert_eq!(harness.store.nonces(id), []);
    // A node that does not answer does not stop the others.
    harness.proxy.set("eth_getTransactionCount", Fault::status(503));
    harness.restart_chain();
    let answer = harness.evm.send(forgetful.url(), &harness.submission(id)).await;
    assert_eq!(answer.outcome, Outcome::Accepted, "{answer:?}");
}
