//! When events make the server ask about withdrawals.

use std::time::Duration;

use futures_util::StreamExt;
use grid_batch_core::ledger::{Ledger, LedgerEventStream};
use tokio::time::timeout;

use crate::harness::Harness;

/// Much longer than an event takes.
const LIMIT: Duration = Duration::from_secs(30);

async fn subscribe(harness: &Harness) -> LedgerEventStream {
    harness.evm.events(harness.service_id().as_str()).await.unwrap()
}

async fn next(events: &mut LedgerEventStream) {
    let event = timeout(LIMIT, events.next()).await.unwrap();
    assert_eq!(event.unwrap().unwrap().transaction_id, None);
}

#[tokio::test]
async fn new_block_is_an_event_at_a_node_that_is_asked() {
    let harness = Harness::new();
    let mut events = subscribe(&harness).await;
    // The first one is the latest block.
    next(&mut events).await;
    harness.mine(1);
    next(&mut events).await;
    assert!(harness.proxy.calls("eth_blockNumber") >= 2);
}

#[tokio::test]
async fn new_block_is_an_event_at_a_node_with_websockets() {
    let mut harness = Harness::new();
    let url = harness.chain.url().to_owned();
    harness.use_nodes(&[&url]);
    let mut events = subscribe(&harness).await;
    let waiting = tokio::spawn(async move {
        next(&mut events).await;
    });
    while !waiting.is_finished() {
        harness.mine(1);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    waiting.await.unwrap();
}

#[tokio::test]
async fn accepted_withdrawal_is_an_event() {
    let harness = Harness::new();
    let mut events = subscribe(&harness).await;
    next(&mut events).await;
    harness.send_withdrawal().await;
    next(&mut events).await;
}
