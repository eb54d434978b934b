//! Failed withdrawals that are retried together.

use grid_batch_test_support::process::run;
use serde_json::{Value, json};

use crate::harness::{WithdrawalHarness, WithdrawalServer};

/// Withdrawals of these amounts that the pool has refused.
fn fail(harness: &WithdrawalHarness, server: &WithdrawalServer, amounts: &[u64]) -> Vec<String> {
    harness.set_pool_owner(0, 5);
    let ids: Vec<String> = amounts
        .iter()
        .map(|amount| server.schedule(&harness.withdrawal_request(0, *amount)))
        .collect();
    for id in &ids {
        server.wait_for_state(id, "failed");
    }
    harness.set_pool_owner(0, 0);
    ids
}

/// The ids that `retry-withdrawals` prints.
fn retry(harness: &WithdrawalHarness, arguments: &[&str]) -> (Value, Vec<String>) {
    let output = run(harness.command_with(
        &[&["retry-withdrawals", "--json", "--reason", "a test"], arguments].concat(),
    ));
    assert_eq!(output.exit_code, Some(0), "{output:?}");
    let document: Value = serde_json::from_str(&output.stdout).unwrap();
    let withdrawals = document["withdrawals"].as_array().unwrap().iter();
    let ids = withdrawals.map(|failed| failed["id"].as_str().unwrap().to_owned()).collect();
    (document, ids)
}

fn assert_retried_by_the_command(harness: &WithdrawalHarness) {
    let server = harness.serve();
    let ids = fail(harness, &server, &[1, 2, 3]);
    let (found, listed) = retry(harness, &["--failed-with", "not the owner", "--dry-run"]);
    assert_eq!((&found["retried"], &found["has_more"]), (&json!(false), &json!(false)));
    assert_eq!(listed, ids);
    for id in &ids {
        assert_eq!(server.withdrawal(id)["state"], "failed", "a dry run changes nothing");
    }
    let filters = ["--failed-with", "not the owner", "--since", "1h", "--limit", "2"];
    let (found, retried) = retry(harness, &filters);
    assert_eq!((&found["retried"], &found["has_more"]), (&json!(true), &json!(true)));
    assert_eq!(retried, ids[..2]);
    assert_eq!(retry(harness, &filters).1, ids[2..]);
    assert_eq!(retry(harness, &filters).1, [""; 0]);
    server.wait_until_withdrawn(&ids);
    assert_eq!(harness.paid(0), [1, 2, 3]);
}

#[test]
fn command_retries_failed_withdrawals_on_sqlite() {
    assert_retried_by_the_command(&WithdrawalHarness::new(1));
}

#[test]
fn command_retries_failed_withdrawals_on_postgres() {
    assert_retried_by_the_command(&WithdrawalHarness::on_postgres(1));
}

#[test]
fn command_keeps_the_limit_of_a_day() {
    let harness = WithdrawalHarness::new(1);
    let server = harness.serve();
    let ids = fail(&harness, &server, &[4, 5, 6]);
    let limit = format!("{}=10", harness.pools[0].address());
    let arguments = ["--all", "--pools-maximum-payments-per-day", &limit];
    let (document, retried) = retry(&harness, &arguments);
    assert_eq!(retried, ids[..2]);
    assert_eq!(document["refused"][0]["id"], json!(ids[2]), "{document}");
    let reason = document["refused"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("pools.*.maximum_payments_per_day"), "{reason}");
    server.wait_until_withdrawn(&ids[..2]);
    assert_eq!(harness.paid(0), [4, 5]);
}

#[test]
fn dry_runs_and_runs_agree_about_the_limit_of_a_day() {
    let harness = WithdrawalHarness::new(1);
    let server = harness.serve();
    let ids = fail(&harness, &server, &[4, 9, 5, 6]);
    server.process.kill();
    harness.anvil.stop_mining().unwrap();
    let limit = format!("{}=10", harness.pools[0].address());
    let server = harness.serve_with(&[("--pools-maximum-payments-per-day", &limit)]);
    let (listed, _) =
        retry(&harness, &["--all", "--dry-run", "--pools-maximum-payments-per-day", &limit]);
    let post = |dry_run: bool| {
        let body =
            json!({"reason": "a test", "reason_contains": "not the owner", "dry_run": dry_run});
        server.post("/withdrawals/retry", &body).json()
    };
    let (found, retried) = (post(true), post(false));
    assert_eq!(found, retried);
    assert_eq!((&found["refused_count"], &found["has_more"]), (&json!(2), &json!(false)));
    let ids_in = |document: &Value, list: &str| -> Vec<String> {
        let entries = document[list].as_array().unwrap().iter();
        entries.map(|entry| entry["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids_in(&found, "data"), [ids[0].clone(), ids[2].clone()]);
    assert_eq!(ids_in(&found, "refused"), [ids[1].clone(), ids[3].clone()]);
    assert_eq!(ids_in(&listed, "withdrawals"), ids_in(&found, "data"));
    assert_eq!(listed["refused"], found["refused"]);
}

#[test]
fn command_does_not_retry_without_knowing_the_limits() {
    let harness = WithdrawalHarness::new(1);
    let server = harness.serve();
    let ids = fail(&harness, &server, &[4]);
    let database =
        harness.database_only(&["retry-withdrawals", "--all", "--dry-run", "--reason", "a test"]);
    let listed = run(database);
    assert_eq!(listed.exit_code, Some(0), "{listed:?}");
    assert!(listed.stdout.contains("payment limits of the pools are not known"), "{listed:?}");
    let refused = run(harness.database_only(&["retry-withdrawals", "--all", "--reason", "a test"]));
    assert_eq!(refused.exit_code, Some(78), "{refused:?}");
    assert!(refused.stderr.contains("--config"), "{refused:?}");
    assert_eq!(server.withdrawal(&ids[0])["state"], "failed");
}

#[test]
fn command_needs_a_filter() {
    let harness = WithdrawalHarness::new(1);
    let output = run(harness.command_with(&["retry-withdrawals", "--reason", "a test"]));
    assert_eq!(output.exit_code, Some(2), "{output:?}");
}

#[test]
fn request_retries_failed_withdrawals() {
    let harness = WithdrawalHarness::new(1);
    let server = harness.serve();
    let ids = fail(&harness, &server, &[1, 2]);
    let body = json!({
        "reason": "a test",
        "pool": harness.pools[0].address(),
        "reason_contains": "not the owner",
    });
    let response = server.post("/withdrawals/retry", &body);
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.json()["data"].as_array().unwrap().len(), 2, "{response:?}");
    server.wait_until_withdrawn(&ids);
    assert_eq!(harness.paid(0), [1, 2]);
}

#[test]
fn wrong_limit_stops_only_what_schedules() {
    let harness = WithdrawalHarness::new(1);
    let run_with_wrong_limit = |arguments: &[&str]| {
        let pool = format!("0x{}=10", "ab".repeat(20));
        let mut command = harness.command_with(arguments);
        command.env("GRID_BATCH_POOLS_MAXIMUM_PAYMENT", pool);
        run(command)
    };
    for arguments in [["migrate"].as_slice(), &["pause", "--all", "--reason", "a test"]] {
        let output = run_with_wrong_limit(arguments);
        assert_eq!(output.exit_code, Some(0), "{output:?}");
    }
    let output = run_with_wrong_limit(&["retry-withdrawals", "--all", "--reason", "a test"]);
    assert_eq!(output.exit_code, Some(78), "{output:?}");
    assert!(output.stderr.contains("pools.*.maximum_payment"), "{output:?}");
}
