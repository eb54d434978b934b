//! Transactions that a node refuses, and the consequence of each refusal.

use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::ledger::{Ledger, Outcome, SubmissionAnswer};
use grid_batch_test_chain::{Fault, FaultProxy};
use grid_batch_withdrawals::WithdrawalId;
use serde_json::json;

use crate::harness::{Harness, SEND};

fn number(hex: &serde_json::Value) -> u64 {
    u64::from_str_radix(&hex.as_str().unwrap()[2..], 16).unwrap()
}

/// A withdrawal that was signed but is on no node, and the gas that it needs.
async fn signed_and_dropped(harness: &Harness) -> (WithdrawalId, u64) {
    let id = harness.send_withdrawal().await;
    let hash = harness.hashes(id).remove(0);
    let sent = harness.transaction(&hash);
    harness.chain.drop_transaction(&hash).unwrap();
    let call = json!([{"from": sent["from"], "to": sent["to"], "data": sent["input"]}]);
    let estimate = number(&harness.chain.rpc("eth_estimateGas", call).unwrap());
    (id, estimate)
}

/// The gas limit of the last transaction that was sent.
fn last_gas_limit(harness: &Harness, id: WithdrawalId) -> u64 {
    number(&harness.transaction(harness.hashes(id).last().unwrap())["gas"])
}

fn assert_refused(answer: &SubmissionAnswer, words: &str) {
    assert_eq!(answer.outcome, Outcome::RefusedBatch, "{answer:?}");
    let message = answer.message.as_deref().unwrap();
    assert!(message.contains(words), "{message}");
}

async fn assert_paid_once(harness: &Harness, id: WithdrawalId) {
    harness.mine(1);
    assert_eq!(harness.status(id).await, LedgerStatus::Committed);
    assert_eq!(harness.polls().len(), 1);
}

#[tokio::test]
async fn lasting_refusal_has_the_words_of_the_node() {
    for words in [
        "exceeds block gas limit",
        "tx.gas_limit > env.block.gas_limit",
        "intrinsic gas too low",
        "tx fee (2.00 ether) exceeds the configured cap (1.00 ether)",
        "transaction type not supported",
        "oversized data",
    ] {
        let harness = Harness::new();
        let id = harness.schedule("500");
        harness.proxy.set_next(SEND, 2, Fault::rpc_error(words));
        for _ in 0..2 {
            assert_refused(&harness.send(id).await, words);
        }
        harness.accept(id).await;
        assert_paid_once(&harness, id).await;
    }
}

#[tokio::test]
async fn node_cap_sends_the_same_bytes_again() {
    let harness = Harness::new();
    let id = harness.schedule("500");
    let words = "tx fee (2.00 ether) exceeds the configured cap (1.00 ether)";
    harness.proxy.set_next(SEND, 2, Fault::rpc_error(words));
    for _ in 0..2 {
        assert_refused(&harness.send(id).await, "more than the node is configured to send");
    }
    harness.accept(id).await;
    assert_eq!(harness.hashes(id).len(), 1);
    assert_eq!(harness.sent(), harness.hashes(id));
}

#[tokio::test]
async fn gas_limit_is_at_most_that_of_a_block() {
    let (_, estimate) = signed_and_dropped(&Harness::new()).await;
    let harness = Harness::new();
    harness.chain.set_block_gas_limit(estimate + 10).unwrap();
    let id = harness.send_withdrawal().await;
    assert_eq!(last_gas_limit(&harness, id), estimate + 10);
    assert_paid_once(&harness, id).await;
}

#[tokio::test]
async fn withdrawal_too_large_for_a_block_is_rejected() {
    let harness = Harness::new();
    harness.chain.set_block_gas_limit(30_000).unwrap();
    let id = harness.schedule("500");
    let answer = harness.refuse(id).await;
    assert_eq!(answer.outcome, Outcome::Rejected, "{answer:?}");
    assert!(answer.message.as_deref().unwrap().contains("more gas than allowed"), "{answer:?}");
    assert_eq!(harness.store.nonces(id), []);
    assert_eq!(harness.proxy.calls(SEND), 0);
}

#[tokio::test]
async fn lower_block_limit_signs_less_gas_with_the_same_nonce() {
    let harness = Harness::new();
    let (id, estimate) = signed_and_dropped(&harness).await;
    harness.chain.set_block_gas_limit(estimate + 10).unwrap();
    let words = "tx.gas_limit > env.block.gas_limit";
    assert_refused(&harness.send(id).await, words);
    harness.accept(id).await;
    assert_eq!(harness.nonce(id).transactions.len(), 2);
    assert_eq!(last_gas_limit(&harness, id), estimate);
    assert_paid_once(&harness, id).await;
}

#[tokio::test]
async fn refused_withdrawal_is_cancelled_with_21_000_gas() {
    let harness = Harness::new();
    let (id, _) = signed_and_dropped(&harness).await;
    harness.chain.set_block_gas_limit(30_000).unwrap();
    for _ in 0..2 {
        assert_refused(&harness.send(id).await, "its gas limit is above that of a block");
    }
    harness.cancel(id);
    harness.accept(id).await;
    assert_eq!(last_gas_limit(&harness, id), 21_000);
    harness.mine(1);
    assert!(harness.failure_reason(id).await.contains("cancelled"));
    // The next one is not blocked.
    harness.chain.set_block_gas_limit(30_000_000).unwrap();
    let next = harness.send_withdrawal().await;
    assert_eq!(harness.nonce(next).nonce, 1);
    assert_paid_once(&harness, next).await;
}

#[tokio::test]
async fn unsupported_type_is_signed_with_one_price() {
    let harness = Harness::new();
    let id = harness.schedule("500");
    let words = "transaction type not supported";
    harness.proxy.set_next(SEND, 1, Fault::rpc_error(words));
    assert_refused(&harness.send(id).await, words);
    harness.accept(id).await;
    let type_of = |id| harness.transaction(harness.hashes(id).last().unwrap())["type"].clone();
    assert_eq!((harness.nonce(id).transactions.len(), type_of(id)), (2, json!("0x0")));
    assert_paid_once(&harness, id).await;
    let next = harness.send_withdrawal().await;
    assert_eq!((harness.nonce(next).transactions.len(), type_of(next)), (1, json!("0x0")));
}

#[tokio::test]
async fn another_node_accepts_what_one_refuses() {
    let mut harness = Harness::new();
    let (proxy, node) = (harness.proxy.url().to_owned(), harness.chain.url().to_owned());
    harness.use_nodes(&[&proxy, &node]);
    harness.proxy.set(SEND, Fault::rpc_error("exceeds the configured cap"));
    let id = harness.schedule("500");
    harness.accept(id).await;
    assert_paid_once(&harness, id).await;
}

/// Only a refusal of every node is certain.
#[tokio::test]
async fn other_answer_of_another_node_is_no_refusal() {
    for fault in [
        Fault::rpc_error("nonce too low"),
        Fault::rpc_error("replacement transaction underpriced"),
        Fault::rpc_error("the moon is full"),
        Fault::status(503),
        Fault::Null,
        Fault::LostAnswer,
    ] {
        let mut harness = Harness::new();
        let other = FaultProxy::start(harness.chain.url()).unwrap();
        let url = harness.proxy.url().to_owned();
        harness.use_nodes(&[&url, other.url()]);
        harness.proxy.set(SEND, Fault::rpc_error("exceeds the configured cap"));
        other.set(SEND, fault.clone());
        let id = harness.schedule("500");
        assert_eq!(harness.outcome(id).await, Outcome::Ambiguous, "{fault:?}");
        harness.proxy.clear();
        if fault != Fault::LostAnswer {
            harness.accept(id).await;
        }
        assert_paid_once(&harness, id).await;
    }
}

#[tokio::test]
async fn refusal_of_every_node_is_certain() {
    let mut harness = Harness::new();
    let url = harness.proxy.url().to_owned();
    harness.use_nodes(&[&url, "http://127.0.0.1:9"]);
    harness.proxy.set(SEND, Fault::rpc_error("exceeds the configured cap"));
    let id = harness.schedule("500");
    assert_refused(&harness.send(id).await, "more than the node is configured to send");
}

/// It was accepted before by a node that has forgotten it or refuses it now.
#[tokio::test]
async fn refused_transaction_that_a_node_shows_is_accepted() {
    let mut harness = Harness::new();
    let cut_off = Harness::new();
    let id = harness.send_withdrawal().await;
    harness.use_nodes(&[cut_off.proxy.url(), harness.proxy.url().to_owned().as_str()]);
    for proxy in [&cut_off.proxy, &harness.proxy] {
        proxy.set(SEND, Fault::rpc_error("exceeds the configured cap"));
    }
    let answer = harness.evm.send(cut_off.proxy.url(), &harness.submission(id)).await;
    assert_eq!(answer.outcome, Outcome::Accepted, "{answer:?}");
    assert_paid_once(&harness, id).await;
}

#[tokio::test]
async fn refused_replacement_leaves_the_pending_payment() {
    let harness = Harness::new();
    let id = harness.send_withdrawal().await;
    harness.cancel(id);
    harness.proxy.set_next(SEND, 1, Fault::rpc_error("oversized data"));
    harness.accept(id).await;
    assert_eq!(harness.status(id).await, LedgerStatus::Pending);
    assert_paid_once(&harness, id).await;
}

#[tokio::test]
async fn unknown_words_about_a_transaction_it_has_are_no_refusal() {
    let harness = Harness::new();
    let id = harness.send_withdrawal().await;
    harness.proxy.set_next(SEND, 1, Fault::rpc_error("the moon is full"));
    harness.accept(id).await;
    assert_paid_once(&harness, id).await;
}

#[tokio::test]
async fn fee_refused_by_the_node_names_base_fee_and_cap() {
    let harness = Harness::with_options(|options| options.cap = "3".parse().unwrap());
    let (id, _) = signed_and_dropped(&harness).await;
    harness.chain.set_base_fee(60).unwrap();
    let answer = harness.send(id).await;
    assert_eq!(answer.outcome, Outcome::Parked);
    let expected = "the base fee is 60 gwei, not below the cap of 3 gwei; with the tip, the gas price is \
                    61 gwei (source: node)";
    assert_eq!(answer.message.as_deref(), Some(expected));
}

#[tokio::test]
async fn pending_note_names_a_price_above_its_fee() {
    let harness = Harness::with_options(|options| options.cap = "22".parse().unwrap());
    harness.proxy.keep_underpriced();
    harness.chain.set_base_fee(10).unwrap();
    let id = harness.send_withdrawal().await;
    assert_eq!(harness.status(id).await, LedgerStatus::Pending);
    assert_eq!(harness.nonce(id).note, None);
    harness.chain.set_base_fee(60).unwrap();
    harness.accept(id).await;
    harness.status(id).await;
    let expected = "its transaction to be mined; the gas price is 61 gwei, above the 22 gwei that it pays \
                    at most";
    assert_eq!(harness.nonce(id).note.as_deref(), Some(expected));
    // The price falls, so the note is removed when it is next sent.
    harness.chain.set_base_fee(10).unwrap();
    harness.accept(id).await;
    harness.status(id).await;
    assert_eq!(harness.nonce(id).note, None);
}
