//! Transactions that a node refuses for as long as nothing changes.

use grid_batch_test_chain::Fault;
use grid_batch_test_support::{process::run, wait::wait_until};
use serde_json::{Value, json};

use crate::harness::{WithdrawalHarness, WithdrawalServer};

const SEND: &str = "eth_sendRawTransaction";
const NODE_CAP: &str = "tx fee (2.00 ether) exceeds the configured cap (1.00 ether)";

#[track_caller]
fn assert_waits_for(withdrawal: &Value, words: &str) {
    let waits_for = withdrawal["waits_for"].as_str().unwrap();
    assert!(waits_for.contains(words), "{withdrawal}");
}

/// A withdrawal that was signed, that the node has dropped, and that no block has room for any more. The
/// next one of its gas admin waits behind it.
fn signed_and_too_large(harness: &WithdrawalHarness, server: &WithdrawalServer) -> [String; 2] {
    harness.anvil.stop_mining().unwrap();
    let ids = [1, 2].map(|amount| server.schedule(&harness.withdrawal_request(0, amount)));
    let pending = server.wait_for_state(&ids[0], "pending");
    let hash = pending["transactions"][0]["hash"].as_str().unwrap();
    harness.anvil.drop_transaction(hash).unwrap();
    harness.anvil.set_block_gas_limit(30_000).unwrap();
    ids
}

fn assert_held_and_cancelled(harness: &WithdrawalHarness, words: &str) {
    let server = harness.serve();
    let ids = signed_and_too_large(harness, &server);
    let before = harness.proxy.log().len();
    let held = server.wait_for_state(&ids[0], "held");
    assert_waits_for(&held, words);
    assert_waits_for(&server.withdrawal(&ids[1]), "1 earlier withdrawal");
    assert_eq!(server.get("/health").json()["status"], "degraded");
    let calls = harness.proxy.log().split_off(before);
    let sends = calls.iter().filter(|method| *method == SEND).count();
    eprintln!("{sends} transactions and {} calls until it is held", calls.len());
    assert!(sends <= 20, "{sends} transactions were sent until it was held");

    // The cancellation is a plain transfer, for which a block has room.
    let response =
        server.post(&format!("/withdrawals/{}/cancel", ids[0]), &json!({ "reason": "a test" }));
    assert_eq!(response.status, 202, "{response:?}");
    harness.anvil.start_mining().unwrap();
    let failed = server.wait_for_state(&ids[0], "failed");
    assert!(failed["fail_reason"].as_str().unwrap().contains("cancelled"), "{failed}");
    assert_eq!((harness.nonce(0), harness.paid(0)), (1, vec![]));
}

#[test]
fn payment_above_the_block_limit_is_held_and_cancelled() {
    assert_held_and_cancelled(&WithdrawalHarness::new(1), "tx.gas_limit > env.block.gas_limit");
}

#[test]
fn payment_refused_by_hardhat_is_held_and_cancelled() {
    assert_held_and_cancelled(&WithdrawalHarness::on_hardhat(), "exceeds block gas limit of 30000");
}

#[test]
fn withdrawals_behind_a_cancelled_refused_one_are_paid() {
    let harness = WithdrawalHarness::new(1);
    let server = harness.serve();
    let [refused, next] = signed_and_too_large(&harness, &server);
    server.wait_for_state(&refused, "parked");
    server.post(&format!("/withdrawals/{refused}/cancel"), &json!({ "reason": "a test" }));
    wait_until("the filler is sent", || {
        server.withdrawal(&refused)["transactions"][1]["sent_at"].is_string()
    });
    harness.anvil.set_block_gas_limit(30_000_000).unwrap();
    harness.anvil.start_mining().unwrap();
    server.wait_until_withdrawn(&[next]);
    assert_eq!(server.withdrawal(&refused)["state"], "failed");
    assert_eq!((harness.nonce(0), harness.paid(0)), (2, vec![2]));
}

#[test]
fn payment_continues_by_itself_when_the_node_accepts_it() {
    let harness = WithdrawalHarness::new(1);
    harness.proxy.set_next(SEND, 3, Fault::rpc_error(NODE_CAP));
    let server = harness.serve();
    let ids = [1, 2].map(|amount| server.schedule(&harness.withdrawal_request(0, amount)));
    server.wait_until_withdrawn(&ids);
    assert_eq!((harness.nonce(0), harness.paid(0)), (2, vec![1, 2]));
}

#[test]
fn held_refused_payment_continues_after_a_retry() {
    let harness = WithdrawalHarness::new(1);
    harness.proxy.set(SEND, Fault::rpc_error(NODE_CAP));
    let server = harness.serve();
    let id = server.schedule(&harness.withdrawal_request(0, 1));
    let parked = server.wait_for_state(&id, "parked");
    assert_waits_for(&parked, NODE_CAP);
    let held = server.wait_for_state(&id, "held");
    assert_waits_for(&held, NODE_CAP);
    harness.proxy.clear();
    let output = run(harness.command_with(&["retry", "--all", "--reason", "a test"]));
    assert_eq!(output.exit_code, Some(0), "{output:?}");
    server.wait_until_withdrawn(&[id]);
    assert_eq!((harness.nonce(0), harness.paid(0)), (1, vec![1]));
}

#[test]
fn payment_refused_by_besu_is_held_with_its_words() {
    const WORDS: &str = "Transaction gas limit exceeds block gas limit";
    let harness = WithdrawalHarness::new(1);
    harness.proxy.set(SEND, Fault::RpcError { code: -32_005, message: WORDS.to_owned() });
    let server = harness.serve();
    let id = server.schedule(&harness.withdrawal_request(0, 1));
    let held = server.wait_for_state(&id, "held");
    assert_waits_for(&held, WORDS);
    let sends = harness.proxy.log().iter().filter(|method| *method == SEND).count();
    assert!(sends <= 20, "{sends} transactions were sent until it was held");
}

#[test]
fn refused_payment_decided_invalid_is_not_paid_later() {
    let harness = WithdrawalHarness::new(1);
    harness.proxy.set(SEND, Fault::rpc_error(NODE_CAP));
    let server = harness.serve();
    let ids = [1, 2].map(|amount| server.schedule(&harness.withdrawal_request(0, amount)));
    server.wait_for_state(&ids[0], "held");
    let held = run(harness.command_with(&["held", "--json"])).stdout;
    let held: Value = serde_json::from_str(&held).unwrap();
    let batch = &held["batches"][0];
    let text = |name: &str| batch[name].as_str().unwrap().to_owned();
    let attempt = batch["attempts"].to_string();
    let (service, id) = (text("service_id"), text("id"));
    harness.proxy.clear();
    let decide = ["decide", &service, &id, "invalid", "--attempt", &attempt, "--reason", "a test"];
    let output = run(harness.command_with(&decide));
    assert_eq!(output.exit_code, Some(0), "{output:?}");
    // The next one fills the nonce before it is paid itself.
    server.wait_until_withdrawn(&ids[1..]);
    assert_eq!(server.withdrawal(&ids[0])["state"], "failed");
    assert_eq!((harness.nonce(0), harness.paid(0)), (2, vec![2]));
}
