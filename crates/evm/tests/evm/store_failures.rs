//! A store that fails or is slow.

use std::{
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::ledger::{Ledger, Outcome};
use grid_batch_evm::{Evm, EvmOptions};
use grid_batch_nodes::NodePool;
use grid_batch_withdrawals::mocks::MockSigningStore;

use crate::harness::{Harness, SEND};

#[tokio::test]
async fn nothing_is_sent_if_the_store_fails() {
    let harness = Harness::new();
    let id = harness.schedule("500");
    for method in ["payment", "unsettled_nonces", "next_nonce", "assign_nonce"] {
        harness.store.fail_method(method);
        let answer = harness.send(id).await;
        assert_eq!(answer.outcome, Outcome::NotSent, "{method}");
        let message = answer.message.unwrap();
        assert!(message.starts_with("the signing store failed: "), "{message}");
    }
    assert_eq!(harness.store.nonces(id), []);
    assert_eq!(harness.proxy.calls(SEND), 0);
    harness.store.fail_method(None);
    harness.accept(id).await;
}

#[tokio::test]
async fn raise_is_not_sent_if_the_store_fails() {
    let harness = Harness::new();
    let id = harness.send_withdrawal().await;
    harness.chain.set_base_fee(60).unwrap();
    harness.store.fail_method("replace_transaction");
    assert_eq!(harness.outcome(id).await, Outcome::NotSent);
    assert_eq!(harness.proxy.calls(SEND), 1);
    assert_eq!(harness.nonce(id).transactions.len(), 1);
}

#[tokio::test]
async fn accepted_even_if_sending_cannot_be_recorded() {
    let harness = Harness::new();
    harness.store.fail_method("mark_sent");
    let id = harness.send_withdrawal().await;
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
}

#[tokio::test]
async fn final_result_is_not_reported_until_stored() {
    let harness = Harness::new();
    let id = harness.send_withdrawal().await;
    harness.mine(1);
    for method in ["payment", "note", "close_nonce"] {
        harness.store.fail_method(method);
        harness.report(id).await.unwrap_err();
    }
    harness.store.fail_method(None);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
}

#[tokio::test]
async fn slow_store_does_not_block_the_runtime() {
    let (resume, wait) = mpsc::channel();
    let wait = Mutex::new(wait);
    let mut store = MockSigningStore::new();
    store.expect_payment().returning(move |_, _| {
        wait.lock()
            .unwrap()
            .recv_timeout(Duration::from_secs(20))
            .expect("the runtime was blocked");
        Ok(None)
    });
    let options = EvmOptions::new(1, "200".parse().unwrap());
    let nodes = Arc::new(NodePool::default());
    let sender = Evm::new(options, Arc::new(store), nodes).unwrap();
    let harness = Harness::new();
    let submission = harness.submission(harness.schedule("500"));
    let (answer, ()) = tokio::join!(sender.send("http://nowhere", &submission), async {
        resume.send(()).unwrap();
    });
    assert_eq!(answer.outcome, Outcome::Rejected);
}
