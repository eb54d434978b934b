//! What `grid-batch explain` says about a transaction that waits.

use grid_batch_test_chain::Fault;
use grid_batch_test_support::wait::{wait_for, wait_until};
use serde_json::{Value, json};

use super::commands::client;
use crate::harness::{WithdrawalHarness, WithdrawalServer};

const RECIPIENT: &str = "0x00000000000000000000000000000000beef0009";

/// Sends a transfer with these further fields, and returns its id.
fn send(server: &WithdrawalServer, more: Value) -> String {
    let mut body = more;
    body["account"] = "admin0".into();
    body["to"] = RECIPIENT.into();
    let answer = server.post("/v1/transactions", &body);
    assert_eq!(answer.status, 202, "{answer:?}");
    answer.json()["id"].as_str().unwrap().to_owned()
}

fn wait_for_state(server: &WithdrawalServer, id: &str, state: &str) {
    let path = format!("/v1/transactions/{id}");
    wait_until(&format!("{id} is {state}"), || server.get(&path).json()["state"] == state);
}

/// Waits until the explanation, in one line, has all of these texts.
#[track_caller]
fn assert_explained(server: &WithdrawalServer, id: &str, texts: &[&str]) {
    let mut last = String::new();
    let is_explained = || {
        let explained = client(server, &["explain", id]);
        assert_eq!(explained.exit_code, Some(0), "{explained:?}");
        last = explained.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        texts.iter().all(|text| last.contains(text)).then_some(())
    };
    wait_for(&format!("the explanation of {id} has {texts:?}"), is_explained);
    assert!(!last.contains("withdrawal"), "it is a transaction: {last}");
}

fn explained_json(server: &WithdrawalServer, id: &str) -> Value {
    server.get(&format!("/v1/batches/{id}/explain")).json()
}

#[test]
fn own_price_limit_deadline_and_place_are_told() {
    let harness = WithdrawalHarness::new(1);
    let server = harness.serve_calls(&[("--pools-gas-admin", "")]);
    let limits = json!({"maximum_gas_price": "0.000000001", "deadline": "2100-01-01T00:00:00Z"});
    let id = send(&server, limits.clone());
    let cancel = format!("grid-batch transaction cancel {} --reason TEXT it fails", &id[..12]);
    assert_explained(
        &server,
        &id,
        &[
            "The transaction is parked: the base fee is",
            "not below the cap of 0.000000001 gwei",
            "It fails if it is not signed before 2100-01-01T00:00:00.000000Z.",
            "Ends parked: the opening of the gate",
            &cancel,
        ],
    );
    let behind = send(&server, limits);
    let place = "The transaction is scheduled: 1 earlier transaction of its account.";
    assert_explained(&server, &behind, &[place, "not below the cap of 0.000000001 gwei", &cancel]);

    // It is submitting while the gate is asked again.
    let explained = wait_for("the explained transaction is parked", || {
        let explained = explained_json(&server, &id);
        (explained["transaction"]["state"] == "parked").then_some(explained)
    });
    let transaction = &explained["transaction"];
    assert_eq!(transaction["id"], json!(id));
    assert_eq!(transaction["deadline"], "2100-01-01T00:00:00.000000Z");
    assert!(explained["withdrawal"].is_null(), "{explained}");
    assert_eq!(explained["actions"][0]["transaction_id"], json!(id));
    assert_explained(&server, "admin0", &["has 2 open batches", &cancel]);
}

#[test]
fn end_is_told_with_its_reason() {
    let harness = WithdrawalHarness::new(1);
    harness.anvil.set_base_fee(300).unwrap();
    let server = harness.serve_calls(&[]);
    let id = send(&server, json!({}));
    wait_for_state(&server, &id, "parked");
    let cancelled =
        client(&server, &["transaction", "cancel", &id[..12], "--reason", "a test", "--json"]);
    assert!(!cancelled.stdout.contains("withdrawal"), "{cancelled:?}");
    wait_for_state(&server, &id, "failed");
    let retry =
        format!("grid-batch transaction retry {} --reason TEXT schedule it again", &id[..12]);
    let reason = "The transaction has failed: cancelled before anything was signed.";
    assert_explained(&server, &id, &[reason, &retry]);
    harness.anvil.set_base_fee(10).unwrap();
    client(&server, &["transaction", "retry", &id, "--reason", "a test"]);
    wait_for_state(&server, &id, "executed");
    assert_explained(&server, &id, &["The transaction is executed."]);
    // The batch of the first try is explained by itself.
    let first = format!("{id}{:096x}", 1);
    assert!(explained_json(&server, &first)["transaction"].is_null());
}

#[test]
fn missing_funds_are_told() {
    let harness = WithdrawalHarness::new(1);
    let admin = &harness.anvil.accounts()[0].address;
    harness.anvil.set_balance(admin, 1_000).unwrap();
    let server = harness.serve_calls(&[]);
    let id = send(&server, json!({}));
    assert_explained(
        &server,
        &id,
        &["The transaction is parked:", "coins of the chain; its transaction may cost"],
    );
}

#[test]
fn unavailable_price_is_told() {
    let harness = WithdrawalHarness::new(1);
    harness.proxy.set("eth_feeHistory", Fault::status(502));
    harness.proxy.set("eth_gasPrice", Fault::status(502));
    let server = harness.serve_calls(&[]);
    let id = send(&server, json!({}));
    assert_explained(&server, &id, &["the gas price is unavailable"]);
}

#[test]
fn unavailable_signer_is_told() {
    let harness = WithdrawalHarness::new(1);
    let signer =
        format!("admin0=remote:{}@http://127.0.0.1:1", harness.anvil.accounts()[0].address);
    let server = harness.serve_calls(&[("--gas-admins-key", signer.as_str())]);
    let id = send(&server, json!({}));
    assert_explained(&server, &id, &["The transaction is parked:", "signer"]);
}

#[test]
fn missing_nonces_are_told() {
    let harness = WithdrawalHarness::new(1);
    let admin = &harness.anvil.accounts()[0].address;
    harness.anvil.rpc("anvil_setNonce", json!([admin, "0x64"])).unwrap();
    let server = harness.serve_calls(&[]);
    let id = send(&server, json!({}));
    wait_for("the missing nonce is told", || {
        let explained = explained_json(&server, &id)["text"].to_string();
        explained.contains("no node shows the transaction with nonce 99").then_some(())
    });
}

/// Operators stop a transaction by its batch, and decide about it by itself.
#[test]
fn verbs_of_batches_apply_to_a_transaction() {
    let harness = WithdrawalHarness::new(1);
    harness.anvil.set_base_fee(300).unwrap();
    let server = harness.serve_calls(&[]);
    let id = send(&server, json!({}));
    wait_for_state(&server, &id, "parked");
    let act = |arguments: &[&str]| client(&server, &[arguments, &["--reason", "a test"]].concat());
    let refused = act(&["decide", &id, "invalid", "--attempt", "1"]);
    assert!(refused.exit_code == Some(1), "{refused:?}");
    wait_until("the hold is stored", || act(&["hold", &id]).exit_code == Some(0));
    wait_for_state(&server, &id, "held");
    let release = format!("grid-batch release {} --reason TEXT end the hold", &id[..12]);
    assert_explained(&server, &id, &["The transaction is held:", &release]);
    harness.anvil.set_base_fee(10).unwrap();
    let released = act(&["release", &id]);
    assert_eq!(released.exit_code, Some(0), "{released:?}");
    wait_for_state(&server, &id, "executed");
}
