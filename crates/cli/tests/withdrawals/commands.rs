//! The commands of withdrawals that a running server carries out.

use grid_batch_test_support::{
    process::{ProcessOutput, run},
    wait::wait_for,
};
use serde_json::{Value, json};

use crate::{
    GRID_BATCH,
    harness::{WithdrawalHarness, WithdrawalServer},
};

/// Runs a command as a client, which has no configuration of the server.
pub(crate) fn client(server: &WithdrawalServer, arguments: &[&str]) -> ProcessOutput {
    let url = format!("http://{}", server.address);
    run(GRID_BATCH.command([arguments, &["--url", &url]].concat()))
}

pub(crate) fn json_of(output: &ProcessOutput) -> Value {
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// The arguments that request a withdrawal of this amount.
fn request<'a>(harness: &'a WithdrawalHarness, amount: &'a str) -> [&'a str; 8] {
    let beneficiary = "0x00000000000000000000000000000000beef0007";
    let pool = harness.pools[0].address();
    ["withdrawal", "request", "--pool", pool, "--beneficiary", beneficiary, "--amount", amount]
}

fn json_args<'a>(arguments: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [arguments, more].concat()
}

#[test]
fn withdrawal_is_requested_waited_for_and_shown() {
    let harness = WithdrawalHarness::new(1);
    let server = harness.serve();
    let arguments = json_args(&request(&harness, "7gwei"), &["--idempotency-key", "invoice 17"]);
    let paid = client(&server, &json_args(&arguments, &["--wait"]));
    assert_eq!(paid.exit_code, Some(0), "{paid:?}");
    let (id, state) = paid.stdout.trim().split_once(' ').unwrap();
    assert_eq!((id.len(), state), (32, "withdrawn"));
    assert_eq!(harness.paid(0), [7_000_000_000]);
    let again = client(&server, &json_args(&arguments, &["--json"]));
    assert_eq!(json_of(&again)["id"], id, "the key marks a repetition");

    let listed = client(&server, &["withdrawal", "list", "--pool", harness.pools[0].address()]);
    let row = listed.stdout.lines().nth(1).unwrap_or_default();
    let pool = harness.pools[0].address();
    let row_has_pool = row.to_lowercase().contains(&pool.to_lowercase());
    assert!(row.starts_with(&id[..12]) && row_has_pool, "{listed:?}");
    assert!(row.contains("7000000000") && row.ends_with("withdrawn"), "{listed:?}");
    let none = client(&server, &["withdrawal", "list", "--state", "open"]);
    assert_eq!(none.stdout, "No withdrawal matches.\n");
    for name in [id, &id[..12]] {
        let shown = client(&server, &["withdrawal", "show", name]);
        assert!(shown.stdout.contains(id) && shown.stdout.contains("sent as"), "{shown:?}");
        let shown = client(&server, &["withdrawal", "show", name, "--json"]);
        assert_eq!(json_of(&shown)["withdrawals"][0]["amount"], "7000000000", "{shown:?}");
    }
}

#[test]
fn longer_lists_are_read_in_pages() {
    let harness = WithdrawalHarness::new(1);
    harness.anvil.set_base_fee(300).unwrap();
    let server = harness.serve();
    let ids: Vec<String> =
        (1..4).map(|amount| server.schedule(&harness.withdrawal_request(0, amount))).collect();
    let list = |limit: &str| client(&server, &["withdrawal", "list", "--json", "--limit", limit]);
    let listed = json_of(&list("3"));
    let listed = listed["withdrawals"].as_array().unwrap().iter().map(|it| it["id"].clone());
    assert_eq!(
        listed.rev().collect::<Vec<_>>(),
        ids.iter().map(|id| json!(id)).collect::<Vec<_>>()
    );
    let part = client(&server, &["withdrawal", "list", "--limit", "2"]);
    assert!(part.stdout.ends_with("There are more; --limit is 2.\n"), "{part:?}");
}

#[test]
fn failed_withdrawals_are_retried_and_cancelled() {
    let harness = WithdrawalHarness::new(1);
    let server = harness.serve();
    harness.set_pool_owner(0, 5);
    let failed = client(&server, &json_args(&request(&harness, "1"), &["--wait", "--json"]));
    assert_eq!(failed.exit_code, Some(1), "{failed:?}");
    let id = json_of(&failed)["id"].as_str().unwrap().to_owned();
    let late = client(&server, &["withdrawal", "cancel", &id, "--reason", "a test"]);
    assert!(late.exit_code == Some(1) && late.stderr.contains("failed"), "{late:?}");

    let filters = ["withdrawal", "retry", "--failed-with", "not the owner", "--reason", "a test"];
    let listed = client(&server, &json_args(&filters, &["--dry-run"]));
    assert!(listed.stdout.contains(&id) && listed.stdout.contains("nothing changed"), "{listed:?}");
    assert_eq!(server.withdrawal(&id)["state"], "failed", "a dry run changes nothing");
    let retried = client(&server, &json_args(&filters, &["--json"]));
    let document = json_of(&retried);
    assert_eq!(document["withdrawals"][0]["id"], json!(id), "{document}");
    assert_eq!(document["retried"], true, "{document}");
    server.wait_for_state(&id, "failed");

    let named = client(&server, &["withdrawal", "retry", &id[..12], "--reason", "a test"]);
    assert!(named.stdout.starts_with(&id) && named.exit_code == Some(0), "{named:?}");
}

#[test]
fn wait_ends_after_its_time_and_a_withdrawal_is_cancelled() {
    let harness = WithdrawalHarness::new(1);
    harness.anvil.set_base_fee(300).unwrap();
    let server = harness.serve();
    let waiting = ["--idempotency-key", "parked", "--wait", "--timeout", "1s"];
    let arguments = json_args(&request(&harness, "1"), &waiting);
    // It is tried again and again, and is with the submitter meanwhile: then a repetition waits for the same one.
    let parked = wait_for("the withdrawal is parked", || {
        let output = client(&server, &arguments);
        assert_eq!(output.exit_code, Some(3), "{output:?}");
        output.stdout.contains("parked: the base fee").then_some(output)
    });
    let id = parked.stdout.split_once(' ').unwrap().0.to_owned();
    let cancelled = client(&server, &["withdrawal", "cancel", &id, "--json", "--reason", "a test"]);
    assert_eq!(cancelled.exit_code, Some(0), "{cancelled:?}");
    assert!(json_of(&cancelled)["withdrawals"][0]["cancelled_at"].is_string(), "{cancelled:?}");
    server.wait_for_state(&id, "failed");
}

#[test]
fn refused_request_has_its_own_exit_code() {
    let harness = WithdrawalHarness::new(1);
    let server = harness.serve();
    let wrong = client(&server, &request(&harness, "1.5"));
    assert_eq!(wrong.exit_code, Some(2), "{wrong:?}");
    let refused = client(&server, &request(&harness, "0"));
    assert_eq!(refused.exit_code, Some(1), "{refused:?}");
    let gone = json_args(&request(&harness, "1"), &["--url", "http://127.0.0.1:1"]);
    let gone = run(GRID_BATCH.command(&gone));
    assert_eq!(gone.exit_code, Some(4), "{gone:?}");
    assert!(gone.stderr.contains("--idempotency-key"), "a repetition pays once: {gone:?}");
}

#[test]
fn parked_gas_admin_is_explained_by_its_name() {
    let harness = WithdrawalHarness::new(1);
    harness.anvil.set_base_fee(300).unwrap();
    let server = harness
        .serve_with(&[("--testing-balance-interval", "100ms"), ("--evm-gate-interval", "1m")]);
    let id = server.schedule(&harness.withdrawal_request(0, 1));
    server.wait_for_state(&id, "parked");
    let address = &harness.anvil.accounts()[0].address;
    for name in ["admin0", address, &format!("eip155:31337:{}", address.to_lowercase())] {
        for command in ["explain", "show"] {
            let told = client(&server, &[command, name]);
            assert!(
                told.exit_code == Some(0) && told.stdout.contains("not below the cap"),
                "{told:?}"
            );
            assert!(told.stdout.contains("ether, for "), "the balance: {told:?}");
        }
        let told = client(&server, &["explain", "--service", name, &id]);
        assert!(told.exit_code == Some(0) && told.stdout.contains("not below the cap"), "{told:?}");
    }
    let top = client(&server, &["top", "--once"]);
    assert!(top.stdout.contains("parked: the base fee is 300 gwei"), "{top:?}");
    assert!(!top.stdout.contains("running"), "{top:?}");
    let services = client(&server, &["services"]);
    assert!(services.stdout.contains("parked: the base fee is 300 gwei"), "{services:?}");

    let listed = client(&server, &["gas-admins"]);
    let row = listed.stdout.lines().nth(1).unwrap_or_default();
    assert!(row.starts_with("admin0") && row.contains(" 10000 "), "{listed:?}");
    let listed = json_of(&client(&server, &["gas-admins", "--json"]));
    let wei = &listed["gas_admins"][0]["balance"]["value"];
    assert!(
        wei.as_str().unwrap().starts_with("9999") || wei == "10000000000000000000000",
        "{listed}"
    );
    let unknown = client(&server, &["explain", "unknown"]);
    assert!(unknown.exit_code == Some(1) && unknown.stderr.contains("unknown"), "{unknown:?}");
}

/// The events of a withdrawal, as the feed has them.
fn events_of(server: &WithdrawalServer, id: &str) -> Vec<Value> {
    let page = server.get("/v1/events?after=oldest&limit=1000").json();
    let events = page["data"].as_array().unwrap().clone();
    events.into_iter().filter(|event| event["withdrawal"]["id"] == id).collect()
}

#[test]
fn events_name_the_withdrawal_and_its_transaction() {
    let harness = WithdrawalHarness::new(1);
    harness.anvil.set_base_fee(300).unwrap();
    let server = harness.serve();
    let id = server.schedule(&harness.withdrawal_request(0, 5));
    server.wait_for_state(&id, "parked");
    let pool = &server.withdrawal(&id)["pool"];
    let waiting = events_of(&server, &id);
    assert!(!waiting.is_empty(), "{waiting:?}");
    for event in &waiting {
        let withdrawal = &event["withdrawal"];
        assert_eq!((&withdrawal["pool"], &withdrawal["amount"]), (pool, &json!("5")), "{event}");
        assert!(withdrawal["transaction_hash"].is_null(), "{event}");
    }
    harness.anvil.set_base_fee(10).unwrap();
    let paid = server.wait_until_withdrawn(std::slice::from_ref(&id)).remove(0);
    let hash = &paid["transactions"][0]["hash"];
    let last = events_of(&server, &id).pop().unwrap();
    assert_eq!(
        (&last["state"], &last["withdrawal"]["transaction_hash"]),
        (&json!("committed"), hash)
    );
}
