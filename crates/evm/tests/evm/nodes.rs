//! More than one node, and more than one runtime.

use std::{thread, time::Duration};

use grid_batch_core::{Evidence, LedgerStatus, Outcome};
use grid_batch_test_chain::{Fault, FaultProxy};
use tokio::runtime::Builder;

use crate::world::{SEND, World};

const NOBODY: &str = "http://127.0.0.1:9";

#[tokio::test]
async fn where_a_node_cannot_be_asked_the_next_one_is() {
    let mut world = World::new();
    let id = world.waiting().await;
    let url = world.proxy.url().to_owned();
    world.know_nodes(&[NOBODY, &url]);
    assert_eq!(world.status(id).await, LedgerStatus::Pending);
    assert_eq!(world.evidence(id).await, Evidence::Present);
    world.mine(1);
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
}

#[tokio::test]
async fn where_no_node_can_be_asked_the_first_says_why() {
    let mut world = World::new();
    let id = world.waiting().await;
    let url = world.proxy.url().to_owned();
    world.proxy.set(FaultProxy::ANY, Fault::status(429));
    world.know_nodes(&[&url, NOBODY]);
    let error = world.report(id).await.unwrap_err().to_string();
    assert!(error.contains("429"), "{error}");
    world.know_nodes(&[]);
    let error = world.report(id).await.unwrap_err().to_string();
    assert!(error.contains("there is no node to ask about the service eip155:31337:0x"), "{error}");
}

#[tokio::test]
async fn a_nonce_is_lost_only_where_every_node_says_so() {
    let mut world = World::new();
    let lagging = FaultProxy::start(world.chain.url()).unwrap();
    let id = world.waiting().await;
    let url = world.proxy.url().to_owned();
    // The one that lags knows nothing but what was before.
    lagging.set(FaultProxy::ANY, Fault::Stale);
    world.know_nodes(&[lagging.url(), &url]);
    assert_eq!(world.status(id).await, LedgerStatus::Pending);
    world.know_nodes(&[&url, lagging.url()]);
    world.chain.drop_transaction(&world.hashes(id)[0]).unwrap();
    world.use_the_key_elsewhere();
    world.try_anew(id);
    assert_eq!(world.evidence(id).await, Evidence::Inconclusive);
    assert_eq!(world.outcome(id).await, Outcome::Unknown);
    assert_eq!(world.nonce(id).spent, None);
    lagging.clear();
    assert_eq!(world.evidence(id).await, Evidence::Repeatable);
    world.accept(id).await;
}

#[tokio::test]
async fn a_node_of_another_chain_proves_no_loss() {
    let mut world = World::new();
    let id = world.waiting().await;
    world.chain.drop_transaction(&world.hashes(id)[0]).unwrap();
    world.use_the_key_elsewhere();
    world.try_anew(id);
    let other = World::with(|chain| chain.chain_id = Some(5), |_| {});
    other.use_the_key_elsewhere();
    let url = world.proxy.url().to_owned();
    world.know_nodes(&[&url, other.proxy.url()]);
    assert_eq!(world.outcome(id).await, Outcome::Unknown);
    assert_eq!(world.nonce(id).spent, None);
}

#[test]
fn the_end_of_what_asks_does_not_break_what_is_being_sent() {
    let runtime = || Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (before, asking, sending) = (runtime(), runtime(), runtime());
    let world = World::new();
    let id = before.block_on(world.waiting());
    // Connections end with the runtime that opened them: from here on there is none.
    drop(before);
    assert_eq!(asking.block_on(world.status(id)), LedgerStatus::Pending);
    world.mine(1);
    let next = world.schedule("500");
    let stop = world.proxy.stop_before(SEND, 1);
    let answer = thread::scope(|scope| {
        let sent = scope.spawn(|| sending.block_on(world.send(next)));
        assert!(stop.wait(Duration::from_secs(20)));
        drop(asking);
        stop.release();
        sent.join().unwrap()
    });
    assert_eq!(answer.outcome, Outcome::Accepted, "{answer:?}");
}

#[tokio::test]
async fn the_key_is_shown_to_nobody() {
    let world = World::new();
    let id = world.waiting().await;
    let evm = &world.evm;
    let shown = format!(
        "{evm:?} {:?} {:?} {:?} {:?}",
        evm.sender(),
        evm.status_reader(),
        evm.evidence_reader(),
        world.store.nonces(id),
    );
    let secret = &world.admin().secret_key[2..18];
    assert!(!shown.to_lowercase().contains(secret), "{shown}");
}
