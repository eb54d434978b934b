//! Withdrawals that are signed ahead while nodes show different states.

use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::ledger::{Ledger, Outcome, SubmissionAnswer};
use grid_batch_test_chain::{Fault, FaultProxy};
use grid_batch_withdrawals::WithdrawalId;
use serde_json::json;

use crate::harness::{Harness, SEND};

fn harness() -> Harness {
    Harness::with_options(|options| {
        options.in_flight = 16;
        options.longest_gap = 1;
    })
}

/// Four withdrawals that were sent together and are pending.
async fn send_four(harness: &Harness) -> [WithdrawalId; 4] {
    let ids = ["1", "2", "3", "4"].map(|amount| harness.schedule(amount));
    harness.accept(ids[0]).await;
    assert_eq!(harness.status(ids[0]).await, LedgerStatus::Pending);
    assert_eq!(harness.nonce(ids[3]).nonce, 3);
    ids
}

/// Adds a node, in front of the harness's node, that has none of its blocks.
fn add_lagging_node(harness: &mut Harness) -> Harness {
    let (lagging, url) = (Harness::new(), harness.proxy.url().to_owned());
    harness.use_nodes(&[lagging.proxy.url(), &url]);
    lagging
}

async fn send_to(harness: &Harness, node: &Harness, id: WithdrawalId) -> SubmissionAnswer {
    harness.evm.send(node.proxy.url(), &harness.submission(id)).await
}

#[tokio::test]
async fn payment_that_another_node_has_mined_is_accepted() {
    let mut harness = harness();
    let ids = send_four(&harness).await;
    harness.mine(1);
    let lagging = add_lagging_node(&mut harness);
    for id in &ids[1..] {
        let answer = send_to(&harness, &lagging, *id).await;
        assert_eq!(answer.outcome, Outcome::Accepted, "{answer:?}");
    }
    assert_eq!(lagging.proxy.calls(SEND), 0);
}

#[tokio::test]
async fn node_that_is_behind_another_is_not_used() {
    let mut harness = harness();
    let ids = send_four(&harness).await;
    harness.chain.drop_transaction(&harness.hashes(ids[3])[0]).unwrap();
    harness.mine(1);
    let lagging = add_lagging_node(&mut harness);
    let answer = send_to(&harness, &lagging, ids[3]).await;
    assert_eq!(answer.outcome, Outcome::NotSent, "{answer:?}");
    assert!(answer.message.unwrap().contains("lags behind"));
    assert_eq!(lagging.proxy.calls(SEND), 0);
    harness.accept(ids[3]).await;
    harness.mine(1);
    assert_eq!(harness.polls().len(), 4);
}

#[tokio::test]
async fn hung_other_node_delays_no_lost_transaction() {
    let mut harness = harness();
    let ids = send_four(&harness).await;
    harness.chain.drop_transaction(&harness.hashes(ids[3])[0]).unwrap();
    harness.mine(1);
    let hung = FaultProxy::start(harness.chain.url()).unwrap();
    hung.set(FaultProxy::ANY, Fault::NotForwarded);
    let url = harness.proxy.url().to_owned();
    harness.use_nodes(&[&url, hung.url()]);
    harness.accept(ids[3]).await;
    harness.mine(1);
    assert_eq!(harness.polls().len(), 4);
}

#[tokio::test]
async fn unknown_transaction_at_another_node_ends_signing_ahead() {
    let mut harness = harness();
    let ids = ["1", "2"].map(|amount| harness.schedule(amount));
    let other = FaultProxy::start(harness.chain.url()).unwrap();
    let url = harness.proxy.url().to_owned();
    harness.use_nodes(&[&url, other.url()]);
    harness.accept(ids[0]).await;
    other.set("eth_getTransactionCount", Fault::Result(json!("0x2")));
    assert_eq!(harness.status(ids[0]).await, LedgerStatus::Pending);
    assert_eq!(harness.store.nonces(ids[1]), []);
    other.clear();
    harness.status(ids[0]).await;
    assert_eq!(harness.nonce(ids[1]).nonce, 1);
}
