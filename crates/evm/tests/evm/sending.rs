use std::time::Duration;

use grid_batch_core::{Evidence, LedgerStatus, Outcome, SubmissionSender};
use grid_batch_http::HttpOptions;
use grid_batch_test_chain::{Fault, Stop};
use grid_batch_withdrawals::{NonceOutcome, WithdrawalId};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use crate::world::{RESEND_AFTER, SEND, World};

fn number(hex: &Value) -> u64 {
    u64::from_str_radix(&hex.as_str().unwrap()[2..], 16).unwrap()
}

/// The stop, when it holds its call.
async fn held(stop: Stop) -> Stop {
    let wait = move || {
        assert!(stop.wait(Duration::from_secs(20)), "the call did not come");
        stop
    };
    spawn_blocking(wait).await.unwrap()
}

/// Begins to send, and is dropped when the node is about to hear of the transaction.
async fn is_dropped_before_sending(world: &World, id: WithdrawalId) -> Stop {
    let stop = world.proxy.stop_before(SEND, 1);
    tokio::select! {
        answer = world.send(id) => panic!("{answer:?}"),
        stop = held(stop) => stop,
    }
}

/// Is mined, with the first id of the pool, by exactly one transaction.
async fn assert_withdrawn_once(world: &World, id: WithdrawalId) {
    world.mine(1);
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
    let withdrawal_id = "1".to_owned();
    assert_eq!(world.nonce(id).outcome, Some(NonceOutcome::Withdrawn { withdrawal_id }));
    assert_eq!(world.polls().len(), 1);
}

#[tokio::test]
async fn a_withdrawal_is_made_by_the_pools_own_account_of_it() {
    let world = World::new();
    let id = world.waiting().await;
    assert_eq!(world.status(id).await, LedgerStatus::Pending);
    assert_withdrawn_once(&world, id).await;
    let poll = &world.polls()[0];
    assert_eq!((poll.amount.as_str(), poll.beneficiary.as_str()), ("500", world.beneficiary()));
    assert_eq!((&poll.sender, poll.nonce), (&world.admin().address, 0));
    assert_eq!(world.hashes(id), [&*poll.transaction_hash]);
}

#[tokio::test]
async fn a_withdrawal_may_take_a_quarter_more_gas_than_it_seems_to_need() {
    let world = World::new();
    let id = world.waiting().await;
    let sent = world.transaction(&world.hashes(id)[0]);
    world.chain.drop_transaction(&world.hashes(id)[0]).unwrap();
    let call = json!([{"from": sent["from"], "to": sent["to"], "data": sent["input"]}]);
    let estimate = number(&world.chain.rpc("eth_estimateGas", call).unwrap());
    assert_eq!(number(&sent["gas"]), estimate + estimate / 4);
}

#[tokio::test]
async fn nonce_and_bytes_are_stored_before_anybody_hears_of_them() {
    let world = World::new();
    let id = world.schedule("500");
    is_dropped_before_sending(&world, id).await.cut();
    let open = world.nonce(id);
    assert_eq!((open.nonce, open.outcome), (0, None));
    assert_eq!((open.transactions.len(), open.transactions[0].sent_at), (1, None));
    assert_eq!(world.proxy.sent(), []);
    // As after a crash: it is looked at, and sent for the first time.
    assert_eq!(world.evidence(id).await, Evidence::Repeatable);
    world.accept(id).await;
    assert_eq!(world.sent(), world.hashes(id));
    assert_withdrawn_once(&world, id).await;
}

#[tokio::test]
async fn a_sending_that_nobody_waits_for_any_more_is_gone_on_with() {
    let world = World::new();
    let id = world.schedule("500");
    for method in ["eth_chainId", "eth_feeHistory", "eth_call", "eth_getTransactionCount"] {
        let stop = world.proxy.stop_before(method, 1);
        tokio::select! {
            answer = world.send(id) => panic!("{answer:?}"),
            stop = held(stop) => stop.release(),
        }
        assert_eq!(world.store.nonces(id), []);
        assert_eq!(world.evidence(id).await, Evidence::Repeatable);
    }
    world.accept(id).await;
    assert_withdrawn_once(&world, id).await;
}

#[tokio::test]
async fn what_was_sent_by_one_who_was_dropped_meanwhile_is_the_same_again() {
    let world = World::new();
    let id = world.schedule("500");
    is_dropped_before_sending(&world, id).await.release();
    world.accept(id).await;
    assert_eq!(world.sent(), world.hashes(id));
    assert_withdrawn_once(&world, id).await;
}

#[tokio::test]
async fn a_lost_answer_is_unknown_and_the_receipt_is_found() {
    let world = World::new();
    world.proxy.set_next(SEND, 1, Fault::LostAnswer);
    let id = world.schedule("500");
    assert_eq!(world.outcome(id).await, Outcome::Ambiguous);
    assert_withdrawn_once(&world, id).await;
}

#[tokio::test]
async fn a_late_answer_is_unknown() {
    let request_timeout = Duration::from_millis(500);
    let world = World::with_options(|options| {
        options.http = HttpOptions { request_timeout, ..HttpOptions::default() };
    });
    world.proxy.set_next(SEND, 1, Fault::Slow(Duration::from_secs(600)));
    let id = world.schedule("500");
    assert_eq!(world.outcome(id).await, Outcome::Ambiguous);
    assert_withdrawn_once(&world, id).await;
}

#[tokio::test]
async fn what_a_node_says_of_a_transaction_has_its_outcome() {
    let world = World::new();
    let id = world.schedule("500");
    for (fault, outcome) in [
        (Fault::answer("already known"), Outcome::Accepted),
        (Fault::answer("transaction already imported"), Outcome::Accepted),
        (Fault::answer("replacement transaction underpriced"), Outcome::Accepted),
        (Fault::answer("max fee per gas less than block base fee"), Outcome::Parked),
        (Fault::answer("insufficient funds for gas * price + value"), Outcome::Parked),
        (Fault::answer("txpool is full"), Outcome::Busy),
        (Fault::answer("nonce too high"), Outcome::Busy),
        (Fault::answer("nonce too low"), Outcome::Ambiguous),
        (Fault::answer("the moon is full"), Outcome::Ambiguous),
        (Fault::Null, Outcome::Ambiguous),
        (Fault::status(429), Outcome::Ambiguous),
        (Fault::status(502), Outcome::Ambiguous),
        (Fault::status(503), Outcome::Ambiguous),
        (Fault::NotForwarded, Outcome::Ambiguous),
    ] {
        world.proxy.set_next(SEND, 1, fault.clone());
        let answer = world.send(id).await;
        assert_eq!(answer.outcome, outcome, "{fault:?}: {answer:?}");
        let open = world.nonce(id);
        assert_eq!(open.outcome, None);
        let last = open.transactions.last().unwrap();
        assert!(last.sent_at.is_some() && last.last_error.is_some(), "{last:?}");
        assert!(answer.message.is_none() || answer.message == last.last_error, "{answer:?}");
    }
    world.accept(id).await;
    assert_withdrawn_once(&world, id).await;
}

#[tokio::test]
async fn a_dropped_transaction_is_sent_again_byte_by_byte() {
    let world = World::new();
    let id = world.waiting().await;
    assert_eq!(world.evidence(id).await, Evidence::Present);
    world.chain.drop_transaction(&world.hashes(id)[0]).unwrap();
    assert_eq!(world.status(id).await, LedgerStatus::NotReported);
    assert_eq!(world.evidence(id).await, Evidence::Repeatable);
    world.accept(id).await;
    assert_eq!(world.sent(), world.hashes(id));
    assert_withdrawn_once(&world, id).await;
}

#[tokio::test]
async fn a_node_that_forgets_what_waited_when_it_restarts_is_told_again() {
    let world = World::new();
    let id = world.waiting().await;
    world.restart_chain();
    assert_eq!(world.evidence(id).await, Evidence::Repeatable);
    world.accept(id).await;
    assert_eq!(world.sent(), world.hashes(id));
    assert_withdrawn_once(&world, id).await;
}

#[tokio::test]
async fn what_waits_too_long_is_to_be_sent_again() {
    let world = World::new();
    let id = world.waiting().await;
    world.pass(RESEND_AFTER);
    assert_eq!(world.evidence(id).await, Evidence::Present);
    world.pass(Duration::from_micros(1));
    assert_eq!(world.evidence(id).await, Evidence::Repeatable);
}

#[tokio::test]
async fn a_late_submitter_signs_nothing() {
    let world = World::new();
    let id = world.schedule("500");
    let late = world.submission(id);
    world.store.hand_over(id);
    let answer = world.evm.sender().send(world.proxy.url(), &late).await;
    assert_eq!(answer.outcome, Outcome::Ambiguous);
    assert_eq!(world.store.nonces(id), []);
    assert_eq!(world.proxy.calls(SEND), 0);
}

#[tokio::test]
async fn two_that_send_the_same_at_once_send_the_same_bytes() {
    let world = World::new();
    let id = world.schedule("500");
    let submission = world.submission(id);
    let sender = world.evm.sender();
    let [one, other] = [(); 2].map(|()| sender.send(world.proxy.url(), &submission));
    tokio::join!(one, other);
    world.accept(id).await;
    assert_eq!(world.sent(), world.hashes(id));
    assert_withdrawn_once(&world, id).await;
}

#[tokio::test]
async fn withdrawals_follow_each_other_in_the_order_of_their_nonces() {
    let world = World::new();
    for nonce in 0..3 {
        let id = world.waiting().await;
        assert_eq!(world.nonce(id).nonce, nonce);
    }
    world.mine(1);
    let nonces: Vec<_> = world.polls().iter().map(|poll| poll.nonce).collect();
    assert_eq!(nonces, [0, 1, 2]);
}

#[tokio::test]
async fn what_is_sent_again_follows_those_with_lower_nonces() {
    let world = World::new();
    let (first, second) = (world.waiting().await, world.waiting().await);
    world.restart_chain();
    world.accept(second).await;
    let both = [world.hashes(first), world.hashes(second)].concat();
    assert_eq!(world.sent()[2..], both);
    world.mine(1);
    assert_eq!(world.polls().len(), 2);
}

#[tokio::test]
async fn what_has_ended_is_not_sent() {
    let world = World::new();
    let id = world.waiting().await;
    world.mine(1);
    assert_eq!(world.status(id).await, LedgerStatus::Committed);
    assert_eq!(world.outcome(id).await, Outcome::Accepted);
    assert_eq!(world.evidence(id).await, Evidence::Committed);
    assert_eq!(world.proxy.calls(SEND), 1);
}
