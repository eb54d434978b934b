//! More than one node, and more than one runtime.

use std::{thread, time::Duration};

use grid_batch_core::{Evidence, LedgerStatus, Outcome, SubmissionSender};
use grid_batch_test_chain::{Fault, FaultProxy};
use tokio::runtime::Builder;

use crate::world::{RESEND_AFTER, SEND, World};

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
async fn one_node_that_shows_what_used_a_nonce_is_enough() {
    let mut world = World::new();
    let lagging = FaultProxy::start(world.chain.url()).unwrap();
    let id = world.waiting().await;
    let url = world.proxy.url().to_owned();
    // The one that lags knows nothing but what was before.
    lagging.set(FaultProxy::ANY, Fault::Stale);
    world.know_nodes(&[lagging.url(), NOBODY, &url]);
    assert_eq!(world.status(id).await, LedgerStatus::Pending);
    world.chain.drop_transaction(&world.hashes(id)[0]).unwrap();
    world.use_the_key_elsewhere();
    assert_eq!(world.status(id).await, LedgerStatus::NotReported);
    world.try_anew(id);
    assert_eq!(world.evidence(id).await, Evidence::Repeatable);
    world.accept(id).await;
}

#[tokio::test]
async fn what_one_node_has_forgotten_another_shows() {
    let mut world = World::new();
    let forgetful = FaultProxy::start(world.chain.url()).unwrap();
    let id = world.waiting().await;
    let url = world.proxy.url().to_owned();
    world.know_nodes(&[forgetful.url(), &url]);
    world.chain.drop_transaction(&world.hashes(id)[0]).unwrap();
    world.use_the_key_elsewhere();
    forgetful.set("eth_getBlockByNumber", Fault::answer("header not found"));
    assert_eq!(world.status(id).await, LedgerStatus::NotReported);
    assert!(world.nonce(id).foreign_hash.is_some());
    world.try_anew(id);
    assert_eq!(world.evidence(id).await, Evidence::Repeatable);
}

#[tokio::test]
async fn a_node_of_another_chain_shows_nothing_of_ours() {
    let mut world = World::new();
    let id = world.waiting().await;
    let other = World::with(|chain| chain.chain_id = Some(5), |_| {});
    other.use_the_key_elsewhere();
    let url = world.proxy.url().to_owned();
    world.know_nodes(&[other.proxy.url(), &url]);
    assert_eq!(world.status(id).await, LedgerStatus::Pending);
    assert_eq!(world.nonce(id).foreign_hash, None);
    // Nor does it where the others have forgotten.
    world.chain.drop_transaction(&world.hashes(id)[0]).unwrap();
    world.use_the_key_elsewhere();
    world.proxy.set("eth_getBlockByNumber", Fault::Null);
    assert_eq!(world.status(id).await, LedgerStatus::NotReported);
    assert_eq!(world.nonce(id).foreign_hash, None);
    world.know_nodes(&[other.proxy.url()]);
    let error = world.report(id).await.unwrap_err().to_string();
    assert!(error.contains("the node is of the chain 5, and not of 31337"), "{error}");
}

#[tokio::test]
async fn a_node_that_is_cut_off_and_answers_hides_no_other() {
    let mut world = World::new();
    let cut_off = World::new();
    let urls = [cut_off.proxy.url().to_owned(), world.proxy.url().to_owned()];
    world.know_nodes(&[&urls[0], &urls[1]]);
    let id = world.schedule("500");
    // It takes the transaction, and mines nothing.
    for url in &urls {
        world.pass(RESEND_AFTER + Duration::from_secs(1));
        let answer = world.evm.sender().send(url, &world.submission(id)).await;
        assert_eq!(answer.outcome, Outcome::Accepted, "{answer:?}");
        assert_eq!(world.status(id).await, LedgerStatus::Pending);
    }
    world.mine(1);
    assert_eq!(world.evidence(id).await, Evidence::Present);
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
    assert_eq!(world.polls().len(), 1);
}

#[tokio::test]
async fn what_is_final_at_one_node_is_not_waited_for_at_another() {
    let mut world = World::with_options(|options| options.confirmations = 3);
    let lagging = FaultProxy::start(world.chain.url()).unwrap();
    let id = world.waiting().await;
    world.mine(1);
    let url = world.proxy.url().to_owned();
    lagging.set(FaultProxy::ANY, Fault::Stale);
    world.know_nodes(&[lagging.url(), &url]);
    assert_eq!(world.status(id).await, LedgerStatus::Valid);
    world.mine(2);
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
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
