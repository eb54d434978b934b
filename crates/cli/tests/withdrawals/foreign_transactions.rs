//! Another program uses a gas admin's key, or seems to.

use std::time::Instant;

use grid_batch_test_chain::Fault;
use grid_batch_test_support::{process::run, wait::wait_until};
use serde_json::{Value, json};

use crate::harness::{WithdrawalHarness, WithdrawalServer};

/// Mines an empty transfer with the first nonce and a higher fee, as another program with the key would,
/// and returns its hash. It may be the filler of a cancellation that is not stored.
fn use_the_first_nonce(harness: &WithdrawalHarness) -> String {
    use_the_first_nonce_with_value(harness, "0x0")
}

fn use_the_first_nonce_with_value(harness: &WithdrawalHarness, value: &str) -> String {
    let admin = &harness.anvil.accounts()[0].address;
    let foreign = json!({
        "from": admin, "to": admin, "value": value, "nonce": "0x0", "gas": "0x5208",
        "maxFeePerGas": "0x2540be400", "maxPriorityFeePerGas": "0x2540be400",
    });
    let hash = harness.anvil.rpc("eth_sendTransaction", json!([foreign])).unwrap();
    harness.anvil.mine(1).unwrap();
    hash.as_str().unwrap().to_owned()
}

/// Decides, as the operator, that a held withdrawal is invalid.
pub fn decide_invalid(harness: &WithdrawalHarness, server: &WithdrawalServer, held: &Value) {
    let (id, service) = (held["id"].as_str().unwrap(), held["gas_admin"].as_str().unwrap());
    let listed = run(harness.command_with(&["held", "--service", service, "--json"]));
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let of_withdrawal = |batch: &&Value| batch["id"].as_str().unwrap().starts_with(id);
    let batch = listed["batches"].as_array().unwrap().iter().find(of_withdrawal).unwrap();
    let attempt = batch["attempts"].to_string();
    let decide = ["decide", service, id, "invalid", "--attempt", &attempt, "--reason", "a test"];
    let decided = run(harness.command_with(&decide));
    assert_eq!(decided.exit_code, Some(0), "{decided:?}");
    assert!(server.wait_for_state(id, "failed")["fail_reason"].is_string());
}

fn retry(server: &WithdrawalServer, id: &str) {
    assert_eq!(
        server.post(&format!("/withdrawals/{id}/retry"), &json!({ "reason": "a test" })).status,
        200
    );
}

/// A server whose first withdrawal is sent and not mined.
fn start_with_pending_withdrawal() -> (WithdrawalHarness, WithdrawalServer, String) {
    start_with(&[])
}

/// The same with these flags of the server.
fn start_with(flags: &[(&str, &str)]) -> (WithdrawalHarness, WithdrawalServer, String) {
    let harness = WithdrawalHarness::new(1);
    harness.anvil.stop_mining().unwrap();
    let server = harness.serve_with(flags);
    let id = server.schedule(&harness.withdrawal_request(0, 1));
    server.wait_for_state(&id, "pending");
    (harness, server, id)
}

/// The payment cannot happen with that nonce, so no operator is needed.
#[test]
fn withdrawal_is_signed_again_when_its_nonce_is_used_elsewhere() {
    let (harness, server, id) = start_with_pending_withdrawal();
    let (used_at, before) = (Instant::now(), harness.proxy.log().len());
    use_the_first_nonce_with_value(&harness, "0x1");
    harness.anvil.start_mining().unwrap();
    server.wait_until_withdrawn(&[id]);
    eprintln!("{} requests, {:?}", harness.proxy.log().len() - before, used_at.elapsed());
    assert_eq!((harness.paid(0), harness.nonce(0)), (vec![1], 2));
}

/// The withdrawals behind it are mined, and a cancellation ends it.
#[test]
fn withdrawals_behind_a_held_one_are_shown_as_mined() {
    let (harness, server, id) = start_with_pending_withdrawal();
    let behind = server.schedule(&harness.withdrawal_request(0, 2));
    server.wait_for_state(&behind, "pending");
    use_the_first_nonce(&harness);
    server.wait_for_state(&id, "held");
    let mined = server.wait_for_state(&behind, "mined");
    assert!(mined["waits_for"].as_str().unwrap().starts_with("withdrawn in block"), "{mined}");
    assert_eq!(
        server.post(&format!("/withdrawals/{id}/cancel"), &json!({ "reason": "a test" })).status,
        202
    );
    harness.anvil.start_mining().unwrap();
    server.wait_for_state(&id, "failed");
    server.wait_until_withdrawn(&[behind]);
    assert_eq!((harness.paid(0), harness.nonce(0)), (vec![2], 2));
}

#[test]
fn withdrawal_is_held_when_an_empty_transfer_used_its_nonce() {
    let (harness, server, id) = start_with_pending_withdrawal();
    use_the_first_nonce(&harness);
    let withdrawal = server.wait_for_state(&id, "held");
    assert!(withdrawal["waits_for"].as_str().unwrap().contains("nonce 0"), "{withdrawal}");
    assert!(
        withdrawal["fail_reason"].is_null() && withdrawal["withdrawal_id"].is_null(),
        "{withdrawal}"
    );
    assert_eq!((harness.paid(0), harness.nonce(0)), (vec![], 1));

    decide_invalid(&harness, &server, &withdrawal);
    retry(&server, &id);
    harness.anvil.start_mining().unwrap();
    server.wait_until_withdrawn(&[id]);
    assert_eq!((harness.paid(0), harness.nonce(0)), (vec![1], 2));
}

/// Not only when the withdrawal is quiet, or at the end of a pause between two searches.
#[test]
fn used_nonce_is_held_after_hold_after_with_the_hash() {
    let flags = [
        ("--testing-quiet-after", "10m"),
        ("--testing-longest-interval", "10m"),
        ("--evm-resend-after", "10m"),
    ];
    let (harness, server, id) = start_with(&flags);
    let foreign = use_the_first_nonce(&harness);
    let used_at = Instant::now();
    let withdrawal = server.wait_for_state(&id, "held");
    eprintln!("held after {:?}", used_at.elapsed());
    let waits_for = withdrawal["waits_for"].as_str().unwrap();
    assert_eq!(waits_for.matches(&foreign).count(), 1, "{waits_for}");
}

#[test]
fn late_receipts_are_no_evidence_of_absence() {
    let (harness, server, id) = start_with_pending_withdrawal();
    let late = ["eth_getTransactionReceipt", "eth_getTransactionByHash"];
    late.iter().for_each(|method| harness.proxy.set(method, Fault::Null));
    harness.anvil.mine(1).unwrap();
    wait_until("the withdrawal is searched in blocks", || {
        harness.proxy.calls("eth_getBlockByNumber") > 0 || server.withdrawal(&id)["state"] == "held"
    });
    harness.proxy.clear();
    harness.anvil.start_mining().unwrap();
    server.wait_until_withdrawn(&[id]);
    assert_eq!((harness.paid(0), harness.nonce(0)), (vec![1], 1));
}

#[test]
fn decided_withdrawal_stays_failed_after_a_reorg() {
    let (harness, server, id) = start_with_pending_withdrawal();
    use_the_first_nonce(&harness);
    decide_invalid(&harness, &server, &server.wait_for_state(&id, "held"));
    assert_eq!(harness.paid(0), [0; 0]);

    harness.anvil.reorg(1).unwrap();
    harness.anvil.start_mining().unwrap();
    let next = server.schedule(&harness.withdrawal_request(0, 2));
    server.wait_until_withdrawn(&[next]);
    assert_eq!(harness.paid(0), [2]);
    assert_eq!(server.withdrawal(&id)["state"], "failed");
}
