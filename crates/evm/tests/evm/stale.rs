//! A node that lags behind, or stands behind others that do.

use grid_batch_core::{Evidence, LedgerStatus, Outcome};
use grid_batch_test_chain::Fault;
use grid_batch_withdrawals::NonceOutcome;

use crate::world::World;

const BLOCK: &str = "eth_getBlockByNumber";
const BY_HASH: &str = "eth_getTransactionByHash";
const COUNT: &str = "eth_getTransactionCount";
const RECEIPT: &str = "eth_getTransactionReceipt";

#[tokio::test]
async fn an_old_count_gives_no_nonce_twice() {
    let world = World::new();
    world.proxy.set(COUNT, Fault::Stale);
    let first = world.waiting().await;
    world.mine(1);
    let second = world.waiting().await;
    world.mine(1);
    assert_eq!([world.nonce(first).nonce, world.nonce(second).nonce], [0, 1]);
    assert_eq!(world.polls().len(), 2);
}

#[tokio::test]
async fn by_an_old_count_nothing_is_final() {
    let world = World::new();
    world.proxy.set(COUNT, Fault::Stale);
    let id = world.waiting().await;
    world.mine(1);
    assert_eq!(world.status(id).await, LedgerStatus::Pending);
    assert_eq!(world.evidence(id).await, Evidence::Present);
    world.proxy.clear();
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
}

#[tokio::test]
async fn a_receipt_that_lags_behind_is_waited_for() {
    let world = World::new();
    let id = world.waiting().await;
    world.proxy.set(RECEIPT, Fault::Null);
    world.mine(1);
    assert_eq!(world.status(id).await, LedgerStatus::Pending);
    assert_eq!(world.evidence(id).await, Evidence::Present);
    assert_eq!(world.nonce(id).note, None);
    world.proxy.clear();
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
}

#[tokio::test]
async fn where_nothing_but_the_count_is_known_nothing_is_sent_under_another_nonce() {
    let world = World::new();
    let id = world.waiting().await;
    world.mine(1);
    for method in [RECEIPT, BY_HASH, BLOCK] {
        world.proxy.set(method, Fault::Null);
    }
    assert_eq!(world.status(id).await, LedgerStatus::NotReported);
    let note = "nonce 0 is used, and no receipt of ours is shown yet".to_owned();
    assert_eq!(world.nonce(id).note, Some(note));
    assert_eq!(world.evidence(id).await, Evidence::Inconclusive);
    assert_eq!(world.outcome(id).await, Outcome::Ambiguous);
    world.proxy.clear();
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
    let withdrawal_id = "1".to_owned();
    assert_eq!(world.nonce(id).outcome, Some(NonceOutcome::Withdrawn { withdrawal_id }));
}

#[tokio::test]
async fn what_an_index_that_lags_behind_does_not_show_is_found_in_its_block() {
    let world = World::with_options(|options| options.confirmations = 2);
    let id = world.waiting().await;
    world.mine(5);
    world.proxy.set(RECEIPT, Fault::Null);
    world.proxy.set(BY_HASH, Fault::Null);
    assert_eq!(world.status(id).await, LedgerStatus::Pending);
    assert_eq!((world.nonce(id).note, world.nonce(id).foreign_hash), (None, None));
    // Not even a person's word gives it another nonce.
    world.try_anew(id);
    assert_eq!(world.evidence(id).await, Evidence::Inconclusive);
    assert_eq!(world.outcome(id).await, Outcome::Ambiguous);
    world.proxy.clear();
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
    assert_eq!(world.polls().len(), 1);
}

#[tokio::test]
async fn a_refusal_in_a_block_that_is_gone_is_none() {
    let world = World::with_options(|options| options.confirmations = 2);
    let id = world.waiting().await;
    world.give_pool_to(5);
    world.mine(1);
    world.proxy.set(RECEIPT, Fault::Stale);
    assert_eq!(world.status(id).await, LedgerStatus::Valid);
    world.chain.reorg(1).unwrap();
    world.give_pool_to(0);
    assert_eq!(world.evidence(id).await, Evidence::Repeatable);
    world.accept(id).await;
    world.mine(3);
    assert_eq!(world.status(id).await, LedgerStatus::Valid);
    assert_eq!(world.nonce(id).outcome, None);
    world.proxy.clear();
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
    assert_eq!(world.polls().len(), 1);
}

#[tokio::test]
async fn a_success_in_a_block_that_is_gone_is_none() {
    let world = World::with_options(|options| options.confirmations = 2);
    let id = world.waiting().await;
    world.mine(1);
    world.proxy.set(RECEIPT, Fault::Stale);
    assert_eq!(world.status(id).await, LedgerStatus::Valid);
    world.chain.reorg(1).unwrap();
    world.give_pool_to(5);
    world.accept(id).await;
    world.mine(3);
    assert_eq!(world.polls(), []);
    assert_eq!(world.status(id).await, LedgerStatus::Valid);
    world.proxy.clear();
    assert_eq!(world.status(id).await, LedgerStatus::Invalid);
}

#[tokio::test]
async fn a_receipt_of_a_block_that_is_gone_ends_nothing() {
    let world = World::with_options(|options| options.confirmations = 2);
    let id = world.waiting().await;
    world.mine(1);
    world.proxy.set(RECEIPT, Fault::Stale);
    assert_eq!(world.status(id).await, LedgerStatus::Valid);
    world.chain.reorg(1).unwrap();
    world.mine(5);
    assert_eq!(world.status(id).await, LedgerStatus::NotReported);
    assert_eq!(world.nonce(id).outcome, None);
    assert_eq!(world.evidence(id).await, Evidence::Repeatable);
}

#[tokio::test]
async fn not_even_an_old_receipt_and_an_old_count_together_end_anything() {
    let world = World::with_options(|options| options.confirmations = 2);
    let id = world.waiting().await;
    world.mine(1);
    world.proxy.set(RECEIPT, Fault::Stale);
    world.proxy.set(COUNT, Fault::Stale);
    assert_eq!(world.status(id).await, LedgerStatus::Valid);
    world.chain.reorg(1).unwrap();
    world.mine(5);
    assert_eq!(world.status(id).await, LedgerStatus::Valid);
    assert_eq!(world.nonce(id).outcome, None);
    world.proxy.clear();
    assert_eq!(world.evidence(id).await, Evidence::Repeatable);
}

#[tokio::test]
async fn a_node_that_fails_while_it_is_asked_says_nothing_of_the_withdrawal() {
    let world = World::new();
    let id = world.waiting().await;
    world.mine(1);
    for method in [COUNT, RECEIPT, BLOCK] {
        for fault in
            [Fault::status(429), Fault::NotForwarded, Fault::answer("no"), Fault::LostAnswer]
        {
            world.proxy.set(method, fault);
            world.report(id).await.unwrap_err();
            world.proxy.clear();
        }
    }
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
}
