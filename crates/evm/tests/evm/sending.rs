use std::time::Duration;

use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::{Ledger, Outcome};
use grid_batch_http::HttpOptions;
use grid_batch_test_chain::{Fault, Stop};
use grid_batch_withdrawals::{NonceOutcome, WithdrawalId};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use crate::harness::{Harness, RESEND_AFTER, SEND};

fn number(hex: &Value) -> u64 {
    u64::from_str_radix(&hex.as_str().unwrap()[2..], 16).unwrap()
}

/// Waits until the stop blocks its call.
async fn held(stop: Stop) -> Stop {
    let wait = move || {
        assert!(stop.wait(Duration::from_secs(20)), "the call did not arrive");
        stop
    };
    spawn_blocking(wait).await.unwrap()
}

/// Starts an attempt and drops it just before the transaction reaches the node.
async fn drop_before_sending(harness: &Harness, id: WithdrawalId) -> Stop {
    let stop = harness.proxy.stop_before(SEND, 1);
    tokio::select! {
        answer = harness.send(id) => panic!("{answer:?}"),
        stop = held(stop) => stop,
    }
}

/// Asserts that the withdrawal is mined by exactly one transaction, with the pool's first id.
async fn assert_withdrawn_once(harness: &Harness, id: WithdrawalId) {
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
    let withdrawal_id = "1".to_owned();
    assert_eq!(harness.nonce(id).outcome, Some(NonceOutcome::Withdrawn { withdrawal_id }));
    assert_eq!(harness.polls().len(), 1);
}

#[tokio::test]
async fn withdrawal_is_made_once() {
    let harness = Harness::new();
    let id = harness.send_withdrawal().await;
    assert_eq!(harness.status(id).await, LedgerStatus::Pending);
    assert_withdrawn_once(&harness, id).await;
    let poll = &harness.polls()[0];
    assert_eq!((poll.amount.as_str(), poll.beneficiary.as_str()), ("500", harness.beneficiary()));
    assert_eq!((&poll.sender, poll.nonce), (&harness.admin().address, 0));
    assert_eq!(harness.hashes(id), [&*poll.transaction_hash]);
}

#[tokio::test]
async fn gas_limit_is_a_quarter_above_the_estimate() {
    let harness = Harness::new();
    let id = harness.send_withdrawal().await;
    let sent = harness.transaction(&harness.hashes(id)[0]);
    harness.chain.drop_transaction(&harness.hashes(id)[0]).unwrap();
    let call = json!([{"from": sent["from"], "to": sent["to"], "data": sent["input"]}]);
    let estimate = number(&harness.chain.rpc("eth_estimateGas", call).unwrap());
    assert_eq!(number(&sent["gas"]), estimate + estimate / 4);
}

#[tokio::test]
async fn nonce_and_bytes_are_stored_before_sending() {
    let harness = Harness::new();
    let id = harness.schedule("500");
    drop_before_sending(&harness, id).await.cut();
    let assigned = harness.nonce(id);
    assert_eq!((assigned.nonce, assigned.outcome), (0, None));
    assert_eq!((assigned.transactions.len(), assigned.transactions[0].sent_at), (1, None));
    assert_eq!(harness.proxy.sent(), []);
    // It is sent for the first time, as after a crash.
    assert_eq!(harness.evidence(id).await, Evidence::Repeatable);
    harness.accept(id).await;
    assert_eq!(harness.sent(), harness.hashes(id));
    assert_withdrawn_once(&harness, id).await;
}

#[tokio::test]
async fn dropped_attempt_is_continued_by_the_next() {
    let harness = Harness::new();
    let id = harness.schedule("500");
    for method in ["eth_chainId", "eth_feeHistory", "eth_call", "eth_getTransactionCount"] {
        let stop = harness.proxy.stop_before(method, 1);
        tokio::select! {
            answer = harness.send(id) => panic!("{answer:?}"),
            stop = held(stop) => stop.release(),
        }
        assert_eq!(harness.store.nonces(id), []);
        assert_eq!(harness.evidence(id).await, Evidence::Repeatable);
    }
    harness.accept(id).await;
    assert_withdrawn_once(&harness, id).await;
}

#[tokio::test]
async fn dropped_attempt_sends_the_same_bytes() {
    let harness = Harness::new();
    let id = harness.schedule("500");
    drop_before_sending(&harness, id).await.release();
    harness.accept(id).await;
    assert_eq!(harness.sent(), harness.hashes(id));
    assert_withdrawn_once(&harness, id).await;
}

#[tokio::test]
async fn lost_response_is_ambiguous_and_receipt_is_found() {
    let harness = Harness::new();
    harness.proxy.set_next(SEND, 1, Fault::LostAnswer);
    let id = harness.schedule("500");
    assert_eq!(harness.outcome(id).await, Outcome::Ambiguous);
    assert_withdrawn_once(&harness, id).await;
}

#[tokio::test]
async fn late_response_is_ambiguous() {
    let request_timeout = Duration::from_secs(3);
    let harness = Harness::with_options(|options| {
        options.http = HttpOptions { request_timeout, ..HttpOptions::default() };
    });
    harness.proxy.set_next(SEND, 1, Fault::Slow(Duration::from_secs(600)));
    let id = harness.schedule("500");
    assert_eq!(harness.outcome(id).await, Outcome::Ambiguous);
    assert_withdrawn_once(&harness, id).await;
}

/// An error with the code that Besu uses for most refusals, and other nodes use when they are busy.
fn limit_exceeded(message: &str) -> Fault {
    Fault::RpcError { code: -32_005, message: message.to_owned() }
}

#[tokio::test]
async fn each_node_response_has_its_outcome() {
    let harness = Harness::new();
    let id = harness.schedule("500");
    for (fault, outcome) in [
        (Fault::rpc_error("already known"), Outcome::Accepted),
        (Fault::rpc_error("transaction already imported"), Outcome::Accepted),
        (Fault::rpc_error("replacement transaction underpriced"), Outcome::Accepted),
        (Fault::rpc_error("max fee per gas less than block base fee"), Outcome::Parked),
        (Fault::rpc_error("insufficient funds for gas * price + value"), Outcome::Parked),
        (Fault::rpc_error("txpool is full"), Outcome::Busy),
        (Fault::rpc_error("nonce too high"), Outcome::Busy),
        (Fault::rpc_error("nonce too low"), Outcome::Ambiguous),
        (Fault::rpc_error("internal error"), Outcome::Busy),
        (Fault::rpc_error("the moon is full"), Outcome::Refused),
        (limit_exceeded("Nonce too high"), Outcome::Busy),
        (limit_exceeded("Upfront cost exceeds account balance"), Outcome::Parked),
        (Fault::Null, Outcome::Ambiguous),
        (Fault::status(429), Outcome::Ambiguous),
        (Fault::status(502), Outcome::Ambiguous),
        (Fault::status(503), Outcome::Ambiguous),
        (Fault::NotForwarded, Outcome::Ambiguous),
    ] {
        harness.proxy.set_next(SEND, 1, fault.clone());
        let answer = harness.send(id).await;
        assert_eq!(answer.outcome, outcome, "{fault:?}: {answer:?}");
        let assigned = harness.nonce(id);
        assert_eq!(assigned.outcome, None);
        let last = assigned.transactions.last().unwrap();
        assert!(last.sent_at.is_some() && last.last_error.is_some(), "{last:?}");
        assert!(answer.message.is_none() || answer.message == last.last_error, "{answer:?}");
    }
    harness.accept(id).await;
    assert_withdrawn_once(&harness, id).await;
}

#[tokio::test]
async fn dropped_transaction_is_sent_again_unchanged() {
    let harness = Harness::new();
    let id = harness.send_withdrawal().await;
    assert_eq!(harness.evidence(id).await, Evidence::Present);
    harness.chain.drop_transaction(&harness.hashes(id)[0]).unwrap();
    assert_eq!(harness.status(id).await, LedgerStatus::NotReported);
    assert_eq!(harness.evidence(id).await, Evidence::Repeatable);
    harness.accept(id).await;
    assert_eq!(harness.sent(), harness.hashes(id));
    assert_withdrawn_once(&harness, id).await;
}

#[tokio::test]
async fn transaction_is_sent_again_after_a_node_restart() {
    let harness = Harness::new();
    let id = harness.send_withdrawal().await;
    harness.restart_chain();
    assert_eq!(harness.evidence(id).await, Evidence::Repeatable);
    harness.accept(id).await;
    assert_eq!(harness.sent(), harness.hashes(id));
    assert_withdrawn_once(&harness, id).await;
}

#[tokio::test]
async fn pending_too_long_is_repeatable() {
    let harness = Harness::new();
    let id = harness.send_withdrawal().await;
    harness.advance_clock(RESEND_AFTER);
    assert_eq!(harness.evidence(id).await, Evidence::Present);
    harness.advance_clock(Duration::from_micros(1));
    assert_eq!(harness.evidence(id).await, Evidence::Repeatable);
}

#[tokio::test]
async fn outdated_attempt_signs_nothing() {
    let harness = Harness::new();
    let id = harness.schedule("500");
    let late = harness.submission(id);
    harness.store.start_attempt(id);
    let answer = harness.evm.send(harness.proxy.url(), &late).await;
    assert_eq!(answer.outcome, Outcome::Ambiguous);
    assert_eq!(harness.store.nonces(id), []);
    assert_eq!(harness.proxy.calls(SEND), 0);
}

#[tokio::test]
async fn concurrent_attempts_send_the_same_bytes() {
    let harness = Harness::new();
    let id = harness.schedule("500");
    let submission = harness.submission(id);
    let sender = &harness.evm;
    let [one, other] = [(); 2].map(|()| sender.send(harness.proxy.url(), &submission));
    tokio::join!(one, other);
    harness.accept(id).await;
    assert_eq!(harness.sent(), harness.hashes(id));
    assert_withdrawn_once(&harness, id).await;
}

#[tokio::test]
async fn withdrawals_are_ordered_by_their_nonces() {
    let harness = Harness::new();
    for nonce in 0..3 {
        let id = harness.send_withdrawal().await;
        assert_eq!(harness.nonce(id).nonce, nonce);
    }
    harness.mine(1);
    let nonces: Vec<_> = harness.polls().iter().map(|poll| poll.nonce).collect();
    assert_eq!(nonces, [0, 1, 2]);
}

#[tokio::test]
async fn lower_nonces_are_sent_first() {
    let harness = Harness::new();
    let (first, second) = (harness.send_withdrawal().await, harness.send_withdrawal().await);
    harness.restart_chain();
    harness.accept(second).await;
    let both = [harness.hashes(first), harness.hashes(second)].concat();
    assert_eq!(harness.sent()[2..], both);
    harness.mine(1);
    assert_eq!(harness.polls().len(), 2);
}

#[tokio::test]
async fn ended_withdrawal_is_not_sent() {
    let harness = Harness::new();
    let id = harness.send_withdrawal().await;
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
    assert_eq!(harness.outcome(id).await, Outcome::Committed);
    assert_eq!(harness.evidence(id).await, Evidence::Committed);
    assert_eq!(harness.proxy.calls(SEND), 1);
}
