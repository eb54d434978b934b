//! Nodes that report that a pool refuses a withdrawal, but are not up to date or do not agree.

use std::time::Duration;

use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::ledger::{Ledger, Outcome, SubmissionAnswer};
use grid_batch_evm::EvmOptions;
use grid_batch_test_chain::{Anvil, AnvilOptions, Fault, FaultProxy, Mining};
use grid_batch_withdrawals::WithdrawalId;
use serde_json::json;

use crate::harness::{Harness, RESEND_AFTER};

const HEAD: &str = "eth_getBlockByNumber";
const UNREACHABLE: &str = "http://127.0.0.1:9";

/// Makes the node behave like one that was just started and has no state yet.
fn lose_state(node: &FaultProxy) {
    node.set("eth_getCode", Fault::Result(json!("0x")));
    node.set("eth_call", Fault::RpcError { code: 3, message: "execution reverted".to_owned() });
}

fn start_syncing(node: &FaultProxy) {
    let progress = json!({"currentBlock": "0x5", "highestBlock": "0x384"});
    node.set("eth_syncing", Fault::Result(progress));
}

/// The attempt ended like this, and nothing was signed.
#[track_caller]
fn assert_ended(
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
}

#[tokio::test]
async fn syncing_node_fails_no_withdrawal() {
    let harness = Harness::new();
    lose_state(&harness.proxy);
    start_syncing(&harness.proxy);
    let ids: Vec<WithdrawalId> = (0..10).map(|_| harness.schedule("500")).collect();
    for id in &ids {
        let answer = harness.send(*id).await;
        let reason = "is syncing: block 5 of 900; not final until a node that is up to date says so: \
                      there is no contract at the pool";
        assert_ended(&harness, *id, &answer, Outcome::PoolParked, reason);
    }
    harness.proxy.clear();
    for id in ids {
        harness.accept(id).await;
    }
}

#[tokio::test]
async fn node_behind_a_stored_block_fails_no_withdrawal() {
    let mut harness = Harness::new();
    let paid = harness.send_withdrawal().await;
    harness.mine(5);
    assert_eq!(harness.status(paid).await, LedgerStatus::Committed);
    // Another node of the same chain has only the first blocks. The process has forgotten everything.
    let options = AnvilOptions { mining: Mining::Manual, ..AnvilOptions::default() };
    let fresh = Anvil::start(&options).unwrap();
    fresh.mine(1).unwrap();
    harness.use_nodes(&[fresh.url()]);
    let id = harness.schedule("500");
    let answer = harness.evm.send(fresh.url(), &harness.submission(id)).await;
    let reason = "is at block 1, 1 behind block 2, which was seen before; not final";
    assert_ended(&harness, id, &answer, Outcome::PoolParked, reason);
}

#[tokio::test]
async fn node_with_only_the_first_block_fails_no_withdrawal() {
    let mut harness = Harness::new();
    let options = AnvilOptions { mining: Mining::Manual, ..AnvilOptions::default() };
    let fresh = Anvil::start(&options).unwrap();
    harness.use_nodes(&[fresh.url()]);
    let id = harness.schedule("500");
    let send = async || harness.evm.send(fresh.url(), &harness.submission(id)).await;
    let reason = "has only the first block of the chain; not final";
    assert_ended(&harness, id, &send().await, Outcome::PoolParked, reason);
    // The chain has begun, but has no such pool.
    fresh.mine(1).unwrap();
    let reason = "not final until a later block than 1 shows the same: there is no contract";
    assert_ended(&harness, id, &send().await, Outcome::PoolParked, reason);
    fresh.mine(1).unwrap();
    let reason = "there is no contract at the pool";
    assert_ended(&harness, id, &send().await, Outcome::Rejected, reason);
}

#[tokio::test]
async fn other_node_is_used_while_one_is_syncing() {
    let mut harness = Harness::new();
    let syncing = FaultProxy::start(harness.chain.url()).unwrap();
    lose_state(&syncing);
    start_syncing(&syncing);
    let url = harness.proxy.url().to_owned();
    harness.use_nodes(&[syncing.url(), &url]);
    let id = harness.schedule("500");
    let answer = harness.evm.send(syncing.url(), &harness.submission(id)).await;
    let reason = "is syncing: block 5 of 900; another node is used";
    assert_ended(&harness, id, &answer, Outcome::NotSent, reason);
    harness.accept(id).await;
}

#[tokio::test]
async fn nodes_that_disagree_fail_no_withdrawal() {
    let mut harness = Harness::new();
    let other = FaultProxy::start(harness.chain.url()).unwrap();
    lose_state(&harness.proxy);
    let url = harness.proxy.url().to_owned();
    harness.use_nodes(&[&url, other.url()]);
    let id = harness.schedule("500");
    let answer = harness.send(id).await;
    let reason = "the nodes disagree: ";
    assert_ended(&harness, id, &answer, Outcome::PoolParked, reason);
    assert!(answer.message.unwrap().ends_with("accepts it; only this pool is parked"));
    harness.proxy.clear();
    harness.accept(id).await;
}

#[tokio::test]
async fn node_behind_another_fails_no_withdrawal() {
    let mut harness = Harness::new();
    let ahead = FaultProxy::start(harness.chain.url()).unwrap();
    harness.mine(5);
    // One node lags. The other one does not have the pool either, but one node is not enough.
    lose_state(&harness.proxy);
    lose_state(&ahead);
    let hash = format!("0x{}", "33".repeat(32));
    let head = json!({
        "number": "0x3", "hash": hash, "parentHash": hash, "timestamp": "0x6553f100", "transactions": [],
    });
    harness.proxy.set(HEAD, Fault::Result(head));
    harness.restart_with(|options: &mut EvmOptions| options.agreeing_nodes = 2);
    let url = harness.proxy.url().to_owned();
    harness.use_nodes(&[&url, ahead.url()]);
    let id = harness.schedule("500");
    let answer = harness.send(id).await;
    let reason = "is at block 3, 3 behind block 6, which was seen before; not final until 2 nodes";
    assert_ended(&harness, id, &answer, Outcome::PoolParked, reason);
}

#[tokio::test]
async fn unreachable_node_is_waited_for_if_it_is_needed() {
    let mut harness = Harness::new();
    harness.set_pool_owner(5);
    let id = harness.schedule("500");
    let url = harness.proxy.url().to_owned();
    harness.restart_with(|options: &mut EvmOptions| options.agreeing_nodes = 2);
    harness.use_nodes(&[&url, UNREACHABLE]);
    let answer = harness.send(id).await;
    assert_ended(
        &harness,
        id,
        &answer,
        Outcome::PoolParked,
        "http://127.0.0.1:9 does not answer: ",
    );
    harness.restart_with(|options: &mut EvmOptions| options.agreeing_nodes = 1);
    harness.use_nodes(&[&url, UNREACHABLE]);
    let answer = harness.refuse(id).await;
    let reason = "the pool refuses the withdrawal: not the owner";
    assert_ended(&harness, id, &answer, Outcome::Rejected, reason);
}

#[tokio::test]
async fn old_block_counts_only_without_a_limit() {
    // The clock of the adapter is an hour ahead of the chain's.
    let hour = Duration::from_secs(60 * 60);
    let genesis_time = Some(1_700_000_000 - hour.as_secs());
    let mut harness = Harness::with(|chain| chain.genesis_time = genesis_time, |_| {});
    harness.set_pool_owner(5);
    let limit = |limit| move |options: &mut EvmOptions| options.head_age_limit = limit;
    harness.restart_with(limit(Some(hour / 2)));
    let id = harness.schedule("500");
    let answer = harness.send(id).await;
    let reason = "has not had a block after block 1 for ";
    assert_ended(&harness, id, &answer, Outcome::PoolParked, reason);
    harness.restart_with(limit(None));
    let answer = harness.refuse(id).await;
    assert_ended(&harness, id, &answer, Outcome::Rejected, "not the owner");
}

#[tokio::test]
async fn wrong_answer_of_a_moment_fails_no_withdrawal() {
    let harness = Harness::new();
    let ids = [harness.schedule("500"), harness.schedule("600")];
    for id in ids {
        // The wrong answers are about different withdrawals, with blocks between them.
        lose_state(&harness.proxy);
        let reason = "shows the same: there is no contract";
        assert_ended(&harness, id, &harness.send(id).await, Outcome::PoolParked, reason);
        harness.mine(1);
    }
    harness.proxy.clear();
    harness.accept(ids[1]).await;
}

#[tokio::test]
async fn refusal_without_blocks_counts_after_a_while() {
    let harness = Harness::new();
    harness.set_pool_owner(5);
    let id = harness.schedule("500");
    for outcome in [Outcome::PoolParked, Outcome::PoolParked, Outcome::Rejected] {
        assert_ended(&harness, id, &harness.send(id).await, outcome, "not the owner");
        harness.advance_clock(RESEND_AFTER / 2);
    }
}

#[tokio::test]
async fn missing_code_of_a_pool_that_has_paid_never_fails() {
    let harness = Harness::new();
    let paid = harness.send_withdrawal().await;
    harness.mine(1);
    assert_eq!(harness.status(paid).await, LedgerStatus::Committed);
    lose_state(&harness.proxy);
    let id = harness.schedule("500");
    for _ in 0..3 {
        let answer = harness.send(id).await;
        assert_eq!(answer.outcome, Outcome::PoolParked, "{answer:?}");
        assert!(answer.message.unwrap().contains("which has paid before"));
        harness.mine(1);
        harness.advance_clock(RESEND_AFTER);
    }
    harness.proxy.clear();
    harness.accept(id).await;
}
