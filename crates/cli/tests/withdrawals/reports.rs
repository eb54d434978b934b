//! What is reported about withdrawals that are paid, or that may be paid.

use grid_batch_test_support::process::run;
use serde_json::{Value, json};

use crate::foreign_transactions::decide_invalid;
use crate::harness::{WithdrawalHarness, WithdrawalServer};

/// Runs a command of an operator.
fn operate(harness: &WithdrawalHarness, arguments: &[&str]) -> String {
    let output = run(harness.command_with(arguments));
    assert_eq!(output.exit_code, Some(0), "{output:?}");
    output.stdout
}

fn hex(number: &Value) -> u64 {
    u64::from_str_radix(number.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

/// A server whose first withdrawal is sent and not mined.
fn start(harness: &WithdrawalHarness) -> (WithdrawalServer, String) {
    harness.anvil.stop_mining().unwrap();
    let server = harness.serve_with(&[("--testing-balance-interval", "200ms")]);
    let id = server.schedule(&harness.withdrawal_request(0, 1));
    server.wait_for_state(&id, "pending");
    (server, id)
}

#[test]
fn paying_transaction_is_reported_with_what_it_cost() {
    let harness = WithdrawalHarness::new(1);
    let server = harness.serve();
    let id = server.schedule(&harness.withdrawal_request(0, 1));
    let paid = server.wait_for_state(&id, "withdrawn");
    let transaction = &paid["final_transaction"];
    assert_eq!(transaction["hash"], paid["transactions"][0]["hash"], "{paid}");
    let receipt = harness.anvil.rpc("eth_getTransactionReceipt", json!([transaction["hash"]]));
    let receipt = receipt.unwrap();
    assert_eq!(transaction["block"], hex(&receipt["blockNumber"]));
    assert_eq!(transaction["gas_used"], hex(&receipt["gasUsed"]));
    let fee = hex(&receipt["gasUsed"]) * hex(&receipt["effectiveGasPrice"]);
    assert_eq!(transaction["fee"], fee.to_string());
    let ether: f64 = transaction["fee_ether"].as_str().unwrap().parse().unwrap();
    assert!((ether * 1e18 - fee as f64).abs() < 1e9, "{transaction}");
}

#[test]
fn payment_without_the_event_does_not_hold_up_others() {
    let harness = WithdrawalHarness::new(1);
    let pool = harness.pools[0].address().to_owned();
    let code = harness.anvil.rpc("eth_getCode", json!([pool, "latest"])).unwrap();
    let (server, id) = start(&harness);
    // It accepts every call and emits nothing.
    harness.anvil.rpc("anvil_setCode", json!([pool, "0x00"])).unwrap();
    harness.anvil.mine(1).unwrap();
    harness.anvil.rpc("anvil_setCode", json!([pool, code])).unwrap();
    harness.anvil.start_mining().unwrap();
    let next = server.schedule(&harness.withdrawal_request(0, 2));
    server.wait_until_withdrawn(&[next]);

    let held = server.wait_for_state(&id, "held");
    let service = held["gas_admin"].as_str().unwrap();
    let waits_for = held["waits_for"].as_str().unwrap();
    assert!(waits_for.contains("did not emit WithdrawPollCreated"), "{waits_for}");
    assert!(waits_for.contains(&format!("grid-batch nonce {service} 0 elsewhere")), "{waits_for}");
    let listed = server.get("/withdrawals?state=held").json();
    assert_eq!(listed["data"][0]["id"], json!(id), "{listed}");
    assert_eq!(server.get("/v1/gas-admins").json()["data"][0]["queue"]["held"], 1);
    let retry = format!("/withdrawals/{id}/retry");
    assert_eq!(server.post(&retry, &json!({ "reason": "a test" })).status, 409);
    assert!(operate(&harness, &["nonce"]).starts_with(&format!("{service} 0 mined in block")));

    let elsewhere = format!("/v1/services/{}/nonces/elsewhere", service.replace(':', "%3A"));
    let decided = server.post(&elsewhere, &json!({ "first": 0, "last": 0, "reason": "no event" }));
    assert_eq!(decided.status, 200, "{decided:?}");
    assert_eq!(operate(&harness, &["nonce"]), "");
    assert!(server.wait_for_state(&id, "failed")["fail_reason"].is_string());
    assert_eq!(server.post(&retry, &json!({ "reason": "a test" })).status, 200);
    server.wait_until_withdrawn(&[id]);
    assert_eq!(harness.paid(0), [2, 1]);
}

#[test]
fn withdrawal_that_is_decided_invalid_and_paid_is_withdrawn() {
    let harness = WithdrawalHarness::new(1);
    let (server, id) = start(&harness);
    operate(&harness, &["hold", &id, "--reason", "it is not to be paid"]);
    let held = server.wait_for_state(&id, "held");
    decide_invalid(&harness, &server, &held);
    harness.anvil.start_mining().unwrap();
    harness.anvil.mine(2).unwrap();
    let paid = server.wait_for_state(&id, "withdrawn");
    assert!(paid["withdrawal_id"].is_string() && paid["final_transaction"].is_object(), "{paid}");
    let correction = paid["correction"].as_str().unwrap();
    assert!(correction.contains("an operator had decided"), "{correction}");
    assert_eq!(server.get("/withdrawals?state=withdrawn").json()["data"][0]["id"], json!(id));
    assert_eq!(
        server.post(&format!("/withdrawals/{id}/retry"), &json!({ "reason": "a test" })).status,
        409
    );
    assert_eq!(harness.paid(0), [1]);
}
