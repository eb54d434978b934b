//! Attempts that end before anything is signed.

use std::{sync::Arc, time::Duration};

use grid_batch_core::ledger::{AttemptId, Ledger, Outcome, Submission, SubmissionAnswer};
use grid_batch_http::HttpOptions;
use grid_batch_test_chain::{Fault, FaultProxy, Pool};
use grid_batch_withdrawals::WithdrawalId;
use serde_json::json;

use crate::harness::{Harness, SEND, key_of};

/// Asserts that the attempt ended like this, and nothing was signed or sent.
fn assert_not_signed(
    harness: &Harness,
    id: WithdrawalId,
    answer: &SubmissionAnswer,
    outcome: Outcome,
    reason: &str,
) {
    assert_eq!(answer.outcome, outcome, "{answer:?}");
    let message = answer.message.as_deref().unwrap();
    assert!(message.contains(reason), "{message}");
    assert_eq!(harness.store.nonces(id), []);
    assert_eq!(harness.proxy.calls(SEND), 0);
}

#[tokio::test]
async fn simulated_refusal_is_rejected_with_its_reason() {
    let harness = Harness::new();
    let pool = Pool::deploy(&harness.chain, &harness.chain.accounts()[1]).unwrap();
    let id = harness.schedule_at(pool.address(), "500");
    let answer = harness.refuse(id).await;
    let reason = "the pool refuses the withdrawal: not the owner";
    assert_not_signed(&harness, id, &answer, Outcome::Rejected, reason);
}

#[tokio::test]
async fn failed_gas_estimate_is_rejected() {
    let harness = Harness::new();
    harness
        .proxy
        .set("eth_estimateGas", Fault::rpc_error("gas required exceeds allowance (30000000)"));
    let id = harness.schedule("500");
    let answer = harness.refuse(id).await;
    let reason = "it needs more gas than allowed";
    assert_not_signed(&harness, id, &answer, Outcome::Rejected, reason);
}

#[tokio::test]
async fn pool_without_a_contract_is_rejected() {
    let harness = Harness::new();
    let empty_account = "0x00000000000000000000000000000000000000aa";
    let id = harness.schedule_at(empty_account, "500");
    let answer = harness.refuse(id).await;
    let reason = "there is no contract at the pool 0x00000000000000000000000000000000000000AA";
    assert_not_signed(&harness, id, &answer, Outcome::Rejected, reason);
}

#[tokio::test]
async fn invalid_amount_is_rejected() {
    let harness = Harness::new();
    let id = harness.schedule("0");
    let answer = harness.send(id).await;
    assert_not_signed(&harness, id, &answer, Outcome::Rejected, "the amount is 0");
}

#[tokio::test]
async fn node_of_another_chain_is_refused() {
    let harness = Harness::with(|chain| chain.chain_id = Some(1), |_| {});
    let id = harness.schedule("500");
    let answer = harness.send(id).await;
    let reason = "the node is on chain 1, expected chain 31337";
    assert_not_signed(&harness, id, &answer, Outcome::Refused, reason);
}

#[tokio::test]
async fn account_of_another_chain_is_refused() {
    let harness = Harness::with_options(|options| options.chain_id = 137);
    let id = harness.schedule("500");
    let answer = harness.send(id).await;
    assert_not_signed(&harness, id, &answer, Outcome::Refused, "is not on chain 137");
}

#[tokio::test]
async fn account_without_a_key_is_refused() {
    let mut harness = Harness::with_options(|options| options.signers.clear());
    let id = harness.schedule("500");
    let answer = harness.send(id).await;
    let reason =
        "no key is configured for the gas admin 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
    assert_not_signed(&harness, id, &answer, Outcome::Refused, reason);
    let key = key_of(harness.admin());
    harness.restart_with(|options| options.signers.push(Arc::new(key)));
    harness.accept(id).await;
}

#[tokio::test]
async fn batch_without_a_withdrawal_is_rejected() {
    let harness = Harness::new();
    let id = WithdrawalId::from_bytes([9; 16]);
    let batch = Submission::new(id.batch_id(1).to_string(), harness.service_id(), Vec::new());
    let batch = batch.with_attempt_id(AttemptId { attempt: 1, epoch: 1 });
    let answer = harness.evm.send(harness.proxy.url(), &batch).await;
    let reason = "no withdrawal or transaction belongs to this batch";
    assert_not_signed(&harness, id, &answer, Outcome::Rejected, reason);
}

#[tokio::test]
async fn batch_without_an_attempt_id_is_refused() {
    let harness = Harness::new();
    let id = harness.schedule("500");
    let batch = Submission::new(id.batch_id(1).to_string(), harness.service_id(), Vec::new());
    let answer = harness.evm.send(harness.proxy.url(), &batch).await;
    assert_not_signed(&harness, id, &answer, Outcome::Refused, "the batch has no attempt_id");
}

#[tokio::test]
async fn busy_node_reports_its_retry_after() {
    let harness = Harness::new();
    let pause = Duration::from_secs(7);
    for code in [429, 503] {
        for method in ["eth_chainId", "eth_call", "eth_getTransactionCount"] {
            let fault = Fault::Status { code, retry_after: Some(pause) };
            harness.proxy.set_next(method, 1, fault);
            let id = harness.schedule("500");
            let answer = harness.send(id).await;
            assert_not_signed(&harness, id, &answer, Outcome::Busy, "busy");
            assert_eq!((answer.status, answer.retry_after), (Some(code), Some(pause)));
            harness.proxy.clear();
        }
    }
}

#[tokio::test]
async fn failing_node_is_not_sent_before_signing() {
    let harness = Harness::new();
    let id = harness.schedule("500");
    for fault in [Fault::status(500), Fault::NotForwarded, Fault::Null, Fault::rpc_error("no")] {
        for method in ["eth_chainId", "eth_call", "eth_getTransactionCount"] {
            harness.proxy.set_next(method, 1, fault.clone());
            let answer = harness.send(id).await;
            assert_not_signed(&harness, id, &answer, Outcome::NotSent, "node");
            harness.proxy.clear();
        }
    }
    let unreachable = "http://127.0.0.1:9";
    let answer = harness.evm.send(unreachable, &harness.submission(id)).await;
    assert_not_signed(
        &harness,
        id,
        &answer,
        Outcome::NotSent,
        "the request was not sent to the node",
    );
    harness.accept(id).await;
}

#[tokio::test]
async fn unauthorized_is_refused() {
    let harness = Harness::new();
    harness.proxy.set(FaultProxy::ANY, Fault::status(401));
    let id = harness.schedule("500");
    let answer = harness.send(id).await;
    assert_not_signed(&harness, id, &answer, Outcome::Refused, "HTTP status 401");
}

#[tokio::test]
async fn slow_node_is_not_sent_before_signing() {
    let request_timeout = Duration::from_millis(500);
    let harness = Harness::with_options(|options| {
        options.http = HttpOptions { request_timeout, ..HttpOptions::default() };
    });
    harness.proxy.set("eth_getBalance", Fault::Slow(Duration::from_secs(600)));
    let id = harness.schedule("500");
    let answer = harness.send(id).await;
    assert_not_signed(&harness, id, &answer, Outcome::NotSent, "no complete response");
}

#[tokio::test]
async fn foreign_transaction_parks_until_it_is_final() {
    let harness = Harness::with_options(|options| options.confirmations = 3);
    harness.use_key_elsewhere();
    let id = harness.schedule("500");
    for _ in 0..2 {
        let answer = harness.send(id).await;
        let reason = "the gas admin has transactions that are not stored; waiting until they are \
                      final";
        assert_not_signed(&harness, id, &answer, Outcome::Parked, reason);
        harness.mine(1);
    }
    harness.accept(id).await;
    assert_eq!(harness.nonce(id).nonce, 1);
}

#[tokio::test]
async fn one_wrong_transaction_count_is_not_trusted() {
    let harness = Harness::new();
    let count_to = |count: &str| {
        harness.chain.rpc("anvil_setNonce", json!([harness.admin().address, count])).unwrap();
    };
    let id = harness.schedule("500");
    count_to("0x3e8");
    // Only the first response has the wrong count.
    let stop = harness.proxy.stop_after("eth_getTransactionCount", 1);
    let sending = async { harness.send(id).await };
    let repair = async {
        while !stop.wait(Duration::ZERO) {
            tokio::task::yield_now().await;
        }
        count_to("0x0");
        stop.release();
    };
    let (answer, ()) = tokio::join!(sending, repair);
    assert_not_signed(&harness, id, &answer, Outcome::Parked, "transactions that are not stored");
    harness.accept(id).await;
    assert_eq!(harness.nonce(id).nonce, 0);
}

/// A node may not have the state that contains the balance.
#[tokio::test]
async fn pending_count_of_a_node_without_balances_counts() {
    let mut harness = Harness::new();
    let other = FaultProxy::start(harness.chain.url()).unwrap();
    other.set("eth_getTransactionCount", Fault::Result(json!("0x2")));
    other.set("eth_getBalance", Fault::rpc_error("missing trie node"));
    let url = harness.proxy.url().to_owned();
    harness.use_nodes(&[&url, other.url()]);
    let id = harness.schedule("500");
    let answer = harness.send(id).await;
    let reason = "2 pending transactions of the gas admin";
    assert_not_signed(&harness, id, &answer, Outcome::Parked, reason);
}
