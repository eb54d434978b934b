//! A pool that has another gas admin than when its withdrawals were scheduled.

use std::process::Command;

use grid_batch_test_chain::Fault;
use grid_batch_test_support::{
    process::{ProcessOutput, run},
    wait::wait_until,
};
use serde_json::{Value, json};

use crate::harness::{WithdrawalHarness, WithdrawalServer};

/// A command with settings in which the second account is the gas admin of the first pool. The key of the
/// first account is gone.
fn with_another_gas_admin(harness: &WithdrawalHarness, arguments: &[&str]) -> Command {
    let mut command = harness.command_with(arguments);
    command
        .env("GRID_BATCH_GAS_ADMINS_KEY", "new=env:NEW_KEY")
        .env("GRID_BATCH_POOLS_GAS_ADMIN", format!("{}=new", harness.pools[0].address()))
        .env("NEW_KEY", &harness.anvil.accounts()[1].secret_key)
        .env_remove("KEY0");
    command
}

fn move_withdrawals(harness: &WithdrawalHarness, flags: &[&str]) -> ProcessOutput {
    run(with_another_gas_admin(
        harness,
        &[&["move-withdrawals", "--reason", "a test"], flags].concat(),
    ))
}

/// What the command reports of the first account.
fn report(harness: &WithdrawalHarness, flags: &[&str]) -> Value {
    let output = move_withdrawals(harness, &[&["--json"], flags].concat());
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    report["gas_admins"][0].clone()
}

fn scheduled(harness: &WithdrawalHarness, server: &WithdrawalServer, count: u64) -> Vec<String> {
    (1..=count).map(|amount| server.schedule(&harness.withdrawal_request(0, amount))).collect()
}

fn moves_with_its_pool(harness: &WithdrawalHarness) {
    harness.anvil.stop_mining().unwrap();
    // Only the first is signed before the kill.
    let server = harness.serve_with(&[("--evm-in-flight", "1")]);
    let ids = scheduled(harness, &server, 3);
    server.wait_for_state(&ids[0], "pending");
    server.process.kill();

    let server = WithdrawalServer::start(with_another_gas_admin(harness, &["serve"]));
    wait_until("the log names the command", || {
        server.process.stderr().contains("grid-batch move-withdrawals")
    });
    let plan = report(harness, &["--dry-run"]);
    assert_eq!((&plan["kept"]["signed"], &plan["moved"]), (&json!(1), &json!(false)), "{plan}");
    assert_eq!(plan["withdrawals"], json!(ids[1..]));
    let text = move_withdrawals(harness, &["--dry-run"]).stdout;
    assert!(text.contains("nothing changed: 2 can be moved"), "{text}");

    // The signed one ends by itself, without its key.
    harness.anvil.start_mining().unwrap();
    server.wait_until_withdrawn(&ids[..1]);
    wait_until("the next one says that there is no key", || {
        let waits_for = server.withdrawal(&ids[1])["waits_for"].to_string();
        waits_for.contains("no key is configured") && waits_for.contains("move-withdrawals")
    });
    harness.set_pool_owner(0, 1);
    wait_until("all are moved", || {
        // While the next one is being sent, nothing is moved.
        let output = move_withdrawals(harness, &[]);
        assert_eq!(output.exit_code, Some(0), "{output:?}");
        report(harness, &["--dry-run"]).is_null()
    });
    let withdrawn = server.wait_until_withdrawn(&ids);
    let gas_admin = harness.anvil.accounts()[1].address.to_lowercase();
    assert!(withdrawn[2]["gas_admin"].as_str().unwrap().ends_with(&gas_admin), "{withdrawn:?}");
    assert_eq!((harness.paid(0), harness.nonce(0), harness.nonce(1)), (vec![1, 2, 3], 1, 2));
}

#[test]
fn withdrawals_move_with_their_pool_on_sqlite() {
    moves_with_its_pool(&WithdrawalHarness::new(1));
}

#[test]
fn withdrawals_move_with_their_pool_on_postgres() {
    moves_with_its_pool(&WithdrawalHarness::on_postgres(1));
}

#[test]
fn payment_that_is_not_stored_is_found_before_a_move() {
    let harness = WithdrawalHarness::new(1);
    harness.proxy.set("eth_chainId", Fault::status(503));
    let server = harness.serve();
    let ids = scheduled(&harness, &server, 3);
    server.process.kill();
    harness.proxy.clear();
    let copy = harness.copy_database();
    let server = harness.serve();
    server.wait_until_withdrawn(&ids[..1]);
    server.wait_until_withdrawn(&ids[1..2]);
    server.process.kill();
    let paid = harness.paid(0);
    harness.restore_database(&copy);

    harness.set_pool_owner(0, 1);
    let report = report(&harness, &[]);
    assert_eq!(report["kept"]["signed"], json!(paid.len()), "{report}");
    let server = WithdrawalServer::start(with_another_gas_admin(&harness, &["serve"]));
    server.wait_until_withdrawn(&ids);
    assert_eq!(harness.paid(0), [1, 2, 3]);
}

#[test]
fn nothing_is_moved_while_a_node_does_not_answer() {
    let harness = WithdrawalHarness::new(1);
    harness.anvil.set_base_fee(300).unwrap();
    harness.anvil.stop_mining().unwrap();
    let server = harness.serve();
    let ids = scheduled(&harness, &server, 1);
    server.wait_for_state(&ids[0], "parked");
    server.process.kill();
    harness.proxy.set("eth_getTransactionCount", Fault::status(503));
    let output = move_withdrawals(&harness, &[]);
    assert_ne!(output.exit_code, Some(0), "{output:?}");
    harness.proxy.clear();
    assert_eq!(report(&harness, &["--dry-run"])["withdrawals"], json!(ids));
}

#[test]
fn removed_pool_with_open_withdrawals_is_named_at_the_start() {
    let harness = WithdrawalHarness::new(2);
    harness.proxy.set("eth_chainId", Fault::status(503));
    let server = harness.serve();
    server.schedule(&harness.withdrawal_request(1, 1));
    server.process.kill();
    let mut command = harness.command(&[]);
    command.env("GRID_BATCH_POOLS_GAS_ADMIN", format!("{}=admin0", harness.pools[0].address()));
    let server = WithdrawalServer::start(command);
    wait_until("the log names the pool", || {
        let log = server.process.stderr();
        let pool = harness.pools[1].address().to_lowercase();
        let warns =
            |line: &str| line.to_lowercase().contains(&pool) && line.contains("is not configured");
        log.lines().any(warns)
    });
}
