//! Somebody else uses the gas admin's key.

use grid_batch_core::{Evidence, LedgerStatus, Outcome, Spent, WithdrawalId};
use grid_batch_test_chain::Fault;

use crate::world::{SEND, World};

/// A withdrawal whose nonce was used by a transaction that was not signed here.
async fn one_whose_nonce_is_gone(confirmations: u64) -> (World, WithdrawalId) {
    let world = World::with_options(|options| options.confirmations = confirmations);
    let id = world.waiting().await;
    world.chain.drop_transaction(&world.hashes(id)[0]).unwrap();
    world.use_the_key_elsewhere();
    (world, id)
}

#[tokio::test]
async fn the_next_nonce_is_the_chains_where_others_have_used_the_key_before() {
    let world = World::new();
    world.use_the_key_elsewhere();
    let first = world.waiting().await;
    assert_eq!(world.nonce(first).nonce, 1);
    world.mine(1);
    world.use_the_key_elsewhere();
    let second = world.waiting().await;
    assert_eq!(world.nonce(second).nonce, 3);
    world.mine(1);
    assert_eq!(world.polls().len(), 2);
}

#[tokio::test]
async fn a_nonce_that_was_used_elsewhere_is_never_replaced_by_itself() {
    let (world, id) = one_whose_nonce_is_gone(1).await;
    for _ in 0..5 {
        assert_eq!(world.status(id).await, LedgerStatus::Unknown);
        assert_eq!(world.evidence(id).await, Evidence::Inconclusive);
        assert_eq!(world.outcome(id).await, Outcome::Unknown);
        world.mine(10);
    }
    let open = world.nonce(id);
    let note = "nonce 0 of 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266 was used by a transaction \
                that was not signed here";
    assert_eq!((open.note.as_deref(), open.spent), (Some(note), None));
    assert_eq!(world.polls(), []);
}

#[tokio::test]
async fn a_person_has_it_tried_anew_and_it_takes_another_nonce_when_the_loss_is_final() {
    let (world, id) = one_whose_nonce_is_gone(3).await;
    world.try_anew(id);
    for _ in 0..2 {
        assert_eq!(world.outcome(id).await, Outcome::Unknown);
        assert_eq!(world.evidence(id).await, Evidence::Inconclusive);
        assert_eq!(world.nonce(id).nonce, 0);
        world.mine(1);
    }
    assert_eq!(world.evidence(id).await, Evidence::Repeatable);
    world.accept(id).await;
    world.mine(3);
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
    let spent: Vec<_> = world.store.nonces(id).into_iter().map(|it| (it.nonce, it.spent)).collect();
    let made = Spent::Withdrawn { withdrawal_id: "1".to_owned() };
    assert_eq!(spent, [(0, Some(Spent::Elsewhere)), (1, Some(made))]);
    assert_eq!(world.polls().len(), 1);
}

#[tokio::test]
async fn what_is_tried_anew_keeps_a_nonce_that_is_not_lost() {
    let world = World::new();
    let id = world.waiting().await;
    world.try_anew(id);
    world.accept(id).await;
    assert_eq!(world.sent(), world.hashes(id));
    world.mine(1);
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
    assert_eq!(world.polls().len(), 1);
}

#[tokio::test]
async fn a_node_that_knows_the_transaction_or_fails_proves_no_loss() {
    let (world, id) = one_whose_nonce_is_gone(1).await;
    world.try_anew(id);
    for (method, fault) in [
        ("eth_getTransactionReceipt", Fault::status(500)),
        ("eth_getTransactionByHash", Fault::status(503)),
        ("eth_blockNumber", Fault::answer("header not found")),
    ] {
        world.proxy.set(method, fault);
        let outcome = world.outcome(id).await;
        assert!(matches!(outcome, Outcome::NotSent | Outcome::Busy), "{method}: {outcome}");
        assert_eq!(world.nonce(id).spent, None);
        world.proxy.clear();
    }
    assert_eq!(world.proxy.calls(SEND), 1);
    world.accept(id).await;
}
