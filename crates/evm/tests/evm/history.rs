//! Accounts that have sent earlier transactions, and nodes that report a wrong number of them.

use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::ledger::Outcome;
use grid_batch_test_chain::Fault;
use serde_json::json;

use crate::harness::{Harness, SEND};

const COUNT: &str = "eth_getTransactionCount";

/// Sends this many transactions of another program with the gas admin's key, in one block.
fn use_key_often(harness: &Harness, times: usize) {
    let admin = &harness.admin().address;
    for _ in 0..times {
        let transfer =
            json!([{"from": admin, "to": harness.beneficiary(), "value": "0x1", "gas": "0x5208"}]);
        harness.chain.rpc("eth_sendTransaction", transfer).unwrap();
    }
    harness.mine(1);
}

/// Asserts that the command that a parked withdrawal names starts at this nonce.
async fn assert_parked_until_start(harness: &Harness, start: u64) {
    let id = harness.schedule("1");
    let answer = harness.send(id).await;
    assert_eq!(answer.outcome, Outcome::Parked, "{answer:?}");
    let message = answer.message.unwrap();
    let command = format!("run `grid-batch nonce {} {start} start", harness.service_id());
    assert!(message.contains(&command), "{message}");
    assert_eq!(harness.store.nonces(id), []);
    harness.settle_elsewhere(start - 1);
    harness.accept(id).await;
    assert_eq!(harness.nonce(id).nonce, start);
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
}

#[tokio::test]
async fn long_history_of_a_new_database_needs_one_confirmation() {
    let harness = Harness::new();
    use_key_often(&harness, 1_000);
    assert_parked_until_start(&harness, 1_000).await;
    eprintln!("{} requests", harness.proxy.log().len());
}

/// The node has removed old states and transactions.
#[tokio::test]
async fn pruned_history_of_a_new_database_needs_one_confirmation() {
    let harness = Harness::new();
    use_key_often(&harness, 3);
    harness.proxy.set("eth_getTransactionByHash", Fault::Null);
    assert_parked_until_start(&harness, 3).await;
}

#[tokio::test]
async fn nothing_is_signed_for_a_count_that_no_transaction_explains() {
    let harness = Harness::new();
    let first = harness.send_withdrawal().await;
    harness.mine(1);
    assert_eq!(harness.status(first).await, LedgerStatus::Committed);
    let (id, sent) = (harness.schedule("2"), harness.proxy.calls(SEND));
    harness.proxy.set(COUNT, Fault::Result(json!("0x384")));
    let answer = harness.send(id).await;
    assert_eq!(answer.outcome, Outcome::Parked, "{answer:?}");
    let message = answer.message.unwrap();
    for part in
        ["shows 900 transactions", "knows of 1", "no node shows the transaction with nonce 899"]
    {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!((harness.store.nonces(id), harness.proxy.calls(SEND)), (vec![], sent));
    // The node reports the right count again.
    harness.proxy.clear();
    harness.accept(id).await;
    assert_eq!(harness.nonce(id).nonce, 1);
}
