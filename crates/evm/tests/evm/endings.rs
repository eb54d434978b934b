use grid_batch_core::{Evidence, LedgerStatus, Outcome};
use grid_batch_test_chain::Pool;
use grid_batch_withdrawals::NonceOutcome;
use serde_json::json;

use crate::world::{SEND, World};

fn world_of_three_confirmations() -> World {
    World::with_options(|options| options.confirmations = 3)
}

fn made(withdrawal_id: &str) -> Option<NonceOutcome> {
    Some(NonceOutcome::Withdrawn { withdrawal_id: withdrawal_id.to_owned() })
}

/// From now on the pool is another contract.
fn replace_the_pool(world: &World, code: serde_json::Value) {
    world.chain.rpc("anvil_setCode", json!([world.pool.address(), code])).unwrap();
}

#[tokio::test]
async fn a_withdrawal_is_valid_until_it_is_deep_and_then_committed() {
    let world = world_of_three_confirmations();
    let id = world.waiting().await;
    for _ in 0..2 {
        world.mine(1);
        assert_eq!(world.status(id).await, LedgerStatus::Valid);
        assert_eq!(world.evidence(id).await, Evidence::Present);
        let open = world.nonce(id);
        let note = "mined in block 2, final with block 4".to_owned();
        assert_eq!((open.note, open.outcome), (Some(note), None));
    }
    world.mine(1);
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
    assert_eq!(world.nonce(id).outcome, made("1"));
}

#[tokio::test]
async fn each_withdrawal_has_the_id_that_the_pool_gave_it() {
    let world = World::new();
    let first = world.waiting().await;
    world.mine(1);
    let second = world.waiting().await;
    world.mine(1);
    for (id, withdrawal_id) in [(second, "2"), (first, "1")] {
        assert_eq!(world.status(id).await, LedgerStatus::Committed);
        assert_eq!(world.nonce(id).outcome, made(withdrawal_id));
    }
}

#[tokio::test]
async fn what_a_reorganisation_undoes_is_sent_again_byte_by_byte() {
    let world = world_of_three_confirmations();
    let id = world.waiting().await;
    world.mine(1);
    assert_eq!(world.status(id).await, LedgerStatus::Valid);
    world.chain.reorg(1).unwrap();
    assert_eq!(world.status(id).await, LedgerStatus::NotReported);
    assert_eq!(world.nonce(id).note, None);
    assert_eq!(world.evidence(id).await, Evidence::Repeatable);
    world.accept(id).await;
    world.mine(3);
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
    assert_eq!(world.sent(), world.hashes(id));
    assert_eq!(world.polls().len(), 1);
}

#[tokio::test]
async fn what_was_believed_and_undone_all_the_same_is_sent_before_the_next() {
    let world = World::new();
    let first = world.waiting().await;
    world.mine(1);
    assert_eq!(world.status(first).await, LedgerStatus::Committed);
    world.chain.reorg(1).unwrap();
    let second = world.waiting().await;
    assert_eq!(world.nonce(second).nonce, 1);
    world.mine(1);
    let hashes: Vec<_> = world.polls().into_iter().map(|poll| poll.transaction_hash).collect();
    assert_eq!(hashes, [world.hashes(first), world.hashes(second)].concat());
}

#[tokio::test]
async fn what_the_pool_refuses_when_it_is_mined_is_invalid_in_its_words() {
    let world = world_of_three_confirmations();
    let id = world.waiting().await;
    world.give_pool_to(1);
    world.mine(1);
    assert_eq!(world.status(id).await, LedgerStatus::Valid);
    world.mine(2);
    let why = "the pool refused the withdrawal in block 2: not the owner";
    assert_eq!(world.why_invalid(id).await, why);
    assert_eq!(world.nonce(id).outcome, Some(NonceOutcome::Reverted));
    // The same when it was written down, and the status was not.
    assert_eq!(world.why_invalid(id).await, why);
    assert_eq!(world.evidence(id).await, Evidence::Present);
    assert_eq!(world.outcome(id).await, Outcome::Rejected);
    assert_eq!(world.proxy.calls(SEND), 1);
}

#[tokio::test]
async fn what_is_refused_without_a_reason_is_invalid_too() {
    let world = World::new();
    let id = world.waiting().await;
    replace_the_pool(&world, json!("0x60006000fd"));
    world.mine(1);
    let why = "the pool refused the withdrawal in block 2: without a reason";
    assert_eq!(world.why_invalid(id).await, why);
}

#[tokio::test]
async fn a_refused_withdrawal_that_is_tried_anew_takes_another_nonce() {
    let world = World::new();
    let id = world.waiting().await;
    replace_the_pool(&world, json!("0x60006000fd"));
    world.mine(1);
    world.why_invalid(id).await;
    world.try_anew(id);
    assert_eq!(world.evidence(id).await, Evidence::Repeatable);
    assert_eq!(world.outcome(id).await, Outcome::Rejected);
    assert_eq!(world.nonce(id).nonce, 0, "the simulation costs none");
    let other = Pool::deploy(&world.chain, world.admin()).unwrap();
    let code = world.chain.rpc("eth_getCode", json!([other.address(), "latest"])).unwrap();
    replace_the_pool(&world, code);
    world.accept(id).await;
    world.mine(1);
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
    let outcome: Vec<_> =
        world.store.nonces(id).into_iter().map(|it| (it.nonce, it.outcome)).collect();
    assert_eq!(outcome, [(0, Some(NonceOutcome::Reverted)), (1, made("1"))]);
}

#[tokio::test]
async fn what_was_mined_without_a_word_of_the_pool_waits_for_a_person() {
    let world = World::new();
    let id = world.waiting().await;
    // It takes every call, and says nothing.
    replace_the_pool(&world, json!("0x00"));
    world.mine(1);
    for _ in 0..2 {
        assert_eq!(world.status(id).await, LedgerStatus::Valid);
        assert_eq!(world.evidence(id).await, Evidence::Present);
        let note = "mined in block 2, but the pool did not say WithdrawPollCreated".to_owned();
        assert_eq!(world.nonce(id).note, Some(note));
    }
    assert_eq!(world.nonce(id).outcome, None);
    assert_eq!(world.outcome(id).await, Outcome::Accepted);
    assert_eq!(world.proxy.calls(SEND), 1);
}

#[tokio::test]
async fn of_what_was_never_signed_nothing_is_known() {
    let world = World::new();
    let id = world.schedule("500");
    assert_eq!(world.status(id).await, LedgerStatus::NotReported);
    assert_eq!(world.evidence(id).await, Evidence::Repeatable);
}
