//! What ends a sending before anything is signed.

use std::time::Duration;

use grid_batch_core::{AttemptId, Outcome, Submission, SubmissionAnswer, SubmissionSender};
use grid_batch_http::HttpOptions;
use grid_batch_test_chain::{Fault, FaultProxy, Pool};
use grid_batch_withdrawals::WithdrawalId;
use serde_json::json;

use crate::world::{SEND, World, key_of};

/// It ended like this, and nothing was signed or sent.
fn assert_ended(
    world: &World,
    id: WithdrawalId,
    answer: &SubmissionAnswer,
    outcome: Outcome,
    why: &str,
) {
    assert_eq!(answer.outcome, outcome, "{answer:?}");
    let message = answer.message.as_deref().unwrap();
    assert!(message.contains(why), "{message}");
    assert_eq!(world.store.nonces(id), []);
    assert_eq!(world.proxy.calls(SEND), 0);
}

#[tokio::test]
async fn what_the_pool_would_refuse_is_rejected_in_its_words() {
    let world = World::new();
    let pool = Pool::deploy(&world.chain, &world.chain.accounts()[1]).unwrap();
    let id = world.schedule_at(pool.address(), "500");
    let answer = world.send(id).await;
    let why = "the pool refuses the withdrawal: not the owner";
    assert_ended(&world, id, &answer, Outcome::Rejected, why);
}

#[tokio::test]
async fn what_only_the_estimate_of_the_gas_shows_is_rejected_too() {
    let world = World::new();
    world.proxy.set("eth_estimateGas", Fault::answer("gas required exceeds allowance (30000000)"));
    let id = world.schedule("500");
    let answer = world.send(id).await;
    let why = "it takes more gas than is allowed";
    assert_ended(&world, id, &answer, Outcome::Rejected, why);
}

#[tokio::test]
async fn a_pool_without_code_is_rejected() {
    let world = World::new();
    let nobody = "0x00000000000000000000000000000000000000aa";
    let id = world.schedule_at(nobody, "500");
    let answer = world.send(id).await;
    let why = "there is no pool at 0x00000000000000000000000000000000000000AA";
    assert_ended(&world, id, &answer, Outcome::Rejected, why);
}

#[tokio::test]
async fn what_is_no_amount_is_rejected() {
    let world = World::new();
    let id = world.schedule("0");
    let answer = world.send(id).await;
    assert_ended(&world, id, &answer, Outcome::Rejected, "the amount is 0");
}

#[tokio::test]
async fn a_node_of_another_chain_is_refused() {
    let world = World::with(|chain| chain.chain_id = Some(1), |_| {});
    let id = world.schedule("500");
    let answer = world.send(id).await;
    let why = "the node is of chain 1, and not of chain 31337";
    assert_ended(&world, id, &answer, Outcome::Refused, why);
}

#[tokio::test]
async fn an_account_of_another_chain_is_refused() {
    let world = World::with_options(|options| options.chain_id = 137);
    let id = world.schedule("500");
    let answer = world.send(id).await;
    assert_ended(&world, id, &answer, Outcome::Refused, "is not of chain 137");
}

#[tokio::test]
async fn an_account_whose_key_is_not_there_is_refused_until_it_is() {
    let mut world = World::with_options(|options| options.keys.clear());
    let id = world.schedule("500");
    let answer = world.send(id).await;
    let why = "there is no key of the gas admin 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
    assert_ended(&world, id, &answer, Outcome::Refused, why);
    let key = key_of(world.admin());
    world.restart_with(|options| options.keys.push(key));
    world.accept(id).await;
}

#[tokio::test]
async fn a_batch_of_no_withdrawal_is_rejected() {
    let world = World::new();
    let id = WithdrawalId::from_bytes([9; 16]);
    let batch = Submission::new(id.batch_id(1).to_string(), world.scope(), Vec::new());
    let batch = batch.with_attempt_id(AttemptId { attempt: 1, epoch: 1 });
    let answer = world.evm.sender().send(world.proxy.url(), &batch).await;
    let why = "no withdrawal belongs to this batch";
    assert_ended(&world, id, &answer, Outcome::Rejected, why);
}

#[tokio::test]
async fn a_batch_without_a_ticket_is_refused() {
    let world = World::new();
    let id = world.schedule("500");
    let batch = Submission::new(id.batch_id(1).to_string(), world.scope(), Vec::new());
    let answer = world.evm.sender().send(world.proxy.url(), &batch).await;
    assert_ended(&world, id, &answer, Outcome::Refused, "the batch has no attempt_id");
}

#[tokio::test]
async fn a_busy_node_is_busy_as_long_as_it_says() {
    let world = World::new();
    let pause = Duration::from_secs(7);
    for code in [429, 503] {
        for method in ["eth_chainId", "eth_call", "eth_getTransactionCount"] {
            let fault = Fault::Status { code, retry_after: Some(pause) };
            world.proxy.set_next(method, 1, fault);
            let id = world.schedule("500");
            let answer = world.send(id).await;
            assert_ended(&world, id, &answer, Outcome::Busy, "busy");
            assert_eq!((answer.status, answer.retry_after), (Some(code), Some(pause)));
            world.proxy.clear();
        }
    }
}

#[tokio::test]
async fn a_node_that_fails_or_is_not_there_was_sent_nothing() {
    let world = World::new();
    let id = world.schedule("500");
    for fault in [Fault::status(500), Fault::NotForwarded, Fault::Null, Fault::answer("no")] {
        for method in ["eth_chainId", "eth_call", "eth_getTransactionCount"] {
            world.proxy.set_next(method, 1, fault.clone());
            let answer = world.send(id).await;
            assert_ended(&world, id, &answer, Outcome::NotSent, "node");
            world.proxy.clear();
        }
    }
    let nobody = "http://127.0.0.1:9";
    let answer = world.evm.sender().send(nobody, &world.submission(id)).await;
    assert_ended(&world, id, &answer, Outcome::NotSent, "the node was not asked");
    world.accept(id).await;
}

#[tokio::test]
async fn a_node_that_lets_nobody_in_is_refused() {
    let world = World::new();
    world.proxy.set(FaultProxy::ANY, Fault::status(401));
    let id = world.schedule("500");
    let answer = world.send(id).await;
    assert_ended(&world, id, &answer, Outcome::Refused, "HTTP status 401");
}

#[tokio::test]
async fn a_node_that_is_too_slow_was_sent_nothing() {
    let request_timeout = Duration::from_millis(500);
    let world = World::with_options(|options| {
        options.http = HttpOptions { request_timeout, ..HttpOptions::default() };
    });
    world.proxy.set("eth_getBalance", Fault::Slow(Duration::from_secs(600)));
    let id = world.schedule("500");
    let answer = world.send(id).await;
    assert_ended(&world, id, &answer, Outcome::NotSent, "no whole answer");
}

#[tokio::test]
async fn what_somebody_else_sent_is_waited_for_until_it_is_final() {
    let world = World::with_options(|options| options.confirmations = 3);
    world.use_the_key_elsewhere();
    let id = world.schedule("500");
    for _ in 0..2 {
        let answer = world.send(id).await;
        let why = "the gas admin's key was used elsewhere; waiting until that is final";
        assert_ended(&world, id, &answer, Outcome::Parked, why);
        world.mine(1);
    }
    world.accept(id).await;
    assert_eq!(world.nonce(id).nonce, 1);
}

#[tokio::test]
async fn one_absurd_count_does_not_end_the_account() {
    let world = World::new();
    let count_to = |count: &str| {
        world.chain.rpc("anvil_setNonce", json!([world.admin().address, count])).unwrap();
    };
    let id = world.schedule("500");
    count_to("0x3e8");
    // It is answered once, and then never again.
    let stop = world.proxy.stop_after("eth_getTransactionCount", 1);
    let sending = async { world.send(id).await };
    let healing = async {
        while !stop.wait(Duration::ZERO) {
            tokio::task::yield_now().await;
        }
        count_to("0x0");
        stop.release();
    };
    let (answer, ()) = tokio::join!(sending, healing);
    assert_ended(&world, id, &answer, Outcome::Parked, "used elsewhere");
    world.accept(id).await;
    assert_eq!(world.nonce(id).nonce, 0);
}
