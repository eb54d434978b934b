//! A store that fails, or takes its time.

use std::{
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

use grid_batch_core::{LedgerStatus, Outcome, SubmissionSender, mocks::MockStatusUrlResolver};
use grid_batch_evm::{Evm, EvmOptions};
use grid_batch_withdrawals::mocks::MockSigningStore;

use crate::world::{SEND, World};

#[tokio::test]
async fn nothing_is_sent_that_the_store_did_not_keep() {
    let world = World::new();
    let id = world.schedule("500");
    for method in ["payment", "next_nonce", "assign_nonce"] {
        world.store.fail(method);
        let answer = world.send(id).await;
        assert_eq!(answer.outcome, Outcome::NotSent, "{method}");
        let message = answer.message.unwrap();
        assert!(message.starts_with("the store: "), "{message}");
    }
    assert_eq!(world.store.nonces(id), []);
    assert_eq!(world.proxy.calls(SEND), 0);
    world.store.fail(None);
    world.accept(id).await;
}

#[tokio::test]
async fn a_raise_that_the_store_did_not_keep_is_not_sent() {
    let world = World::new();
    let id = world.waiting().await;
    world.chain.set_base_fee(60).unwrap();
    world.store.fail("replace_transaction");
    assert_eq!(world.outcome(id).await, Outcome::NotSent);
    assert_eq!(world.proxy.calls(SEND), 1);
    assert_eq!(world.nonce(id).transactions.len(), 1);
}

#[tokio::test]
async fn what_was_sent_is_accepted_though_that_cannot_be_noted() {
    let world = World::new();
    world.store.fail("mark_sent");
    let id = world.waiting().await;
    world.mine(1);
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
}

#[tokio::test]
async fn an_ending_that_cannot_be_written_down_is_not_told() {
    let world = World::new();
    let id = world.waiting().await;
    world.mine(1);
    for method in ["payment", "note", "spend"] {
        world.store.fail(method);
        world.report(id).await.unwrap_err();
    }
    world.store.fail(None);
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
}

#[tokio::test]
async fn a_slow_store_holds_up_nobody_else() {
    let (go_on, wait) = mpsc::channel();
    let wait = Mutex::new(wait);
    let mut store = MockSigningStore::new();
    store.expect_payment().returning(move |_, _| {
        wait.lock().unwrap().recv_timeout(Duration::from_secs(20)).expect("nobody else went on");
        Ok(None)
    });
    let options = EvmOptions::new(1, "200".parse().unwrap());
    let nodes = Arc::new(MockStatusUrlResolver::new());
    let sender = Evm::new(options, Arc::new(store), nodes).unwrap().sender();
    let world = World::new();
    let submission = world.submission(world.schedule("500"));
    let (answer, ()) = tokio::join!(sender.send("http://nowhere", &submission), async {
        go_on.send(()).unwrap();
    });
    assert_eq!(answer.outcome, Outcome::Rejected);
}
