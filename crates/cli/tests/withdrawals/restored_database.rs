//! A database that went back: a restored backup does not know the last payments.

use std::time::Duration;

use grid_batch_test_chain::Fault;
use grid_batch_test_support::{process::run, wait::wait_until};
use serde_json::{Value, json};

use crate::harness::{DatabaseCopy, WithdrawalHarness, WithdrawalServer};

const STOP_LIMIT: Duration = Duration::from_secs(30);

/// Schedules withdrawals of which nothing is signed, and copies the database.
fn copy_with_scheduled(
    harness: &WithdrawalHarness,
    requests: &[Value],
) -> (DatabaseCopy, Vec<String>) {
    harness.proxy.set("eth_chainId", Fault::status(503));
    let server = harness.serve();
    let ids = requests.iter().map(|request| server.schedule(request)).collect();
    server.process.kill();
    harness.proxy.clear();
    (harness.copy_database(), ids)
}

/// Lets a server pay the withdrawals, and kills it.
fn pay(harness: &WithdrawalHarness, ids: &[String]) {
    let server = harness.serve();
    server.wait_until_withdrawn(ids);
    server.process.kill();
}

/// Asserts that the chain has one payment for each withdrawal, with the id that the server reports.
fn assert_paid_once(harness: &WithdrawalHarness, pool: usize, withdrawals: &[Value]) {
    let mut paid: Vec<_> = harness
        .polls(pool)
        .into_iter()
        .map(|poll| (poll.id, poll.amount, poll.beneficiary))
        .collect();
    let text = |value: &Value| value.as_str().unwrap().to_lowercase();
    let mut reported: Vec<_> = withdrawals
        .iter()
        .map(|w| (text(&w["withdrawal_id"]), text(&w["amount"]), text(&w["beneficiary"])))
        .collect();
    paid.sort();
    reported.sort();
    assert_eq!(paid, reported);
}

fn is_adopted(withdrawal: &Value) -> bool {
    withdrawal["transactions"].as_array().unwrap().iter().any(|it| it["adopted"] == true)
}

/// The server's log has no warning about another program.
fn assert_no_misleading_warning(server: &WithdrawalServer) {
    let log = server.process.stderr();
    assert!(!log.contains("another program"), "{log}");
}

#[test]
fn payments_after_the_copy_are_adopted() {
    let harness = WithdrawalHarness::new(2);
    let requests: Vec<Value> = (1..=4)
        .flat_map(|amount| [0, 1].map(|pool| (pool, amount)))
        .map(|(pool, amount)| harness.withdrawal_request(pool, amount))
        .collect();
    let (copy, ids) = copy_with_scheduled(&harness, &requests);
    pay(&harness, &ids);

    harness.restore_database(&copy);
    let server = harness.serve();
    let withdrawals = server.wait_until_withdrawn(&ids);
    for pool in [0, 1] {
        let of_pool: Vec<Value> = withdrawals.iter().skip(pool).step_by(2).cloned().collect();
        assert_paid_once(&harness, pool, &of_pool);
        assert_eq!((harness.paid(pool), harness.nonce(pool)), (vec![1, 2, 3, 4], 4));
    }
    assert!(withdrawals.iter().all(is_adopted), "{withdrawals:?}");
    assert_no_misleading_warning(&server);
    let next = server.schedule(&harness.withdrawal_request(0, 9));
    server.wait_until_withdrawn(&[next]);
    assert_eq!(harness.paid(0), [1, 2, 3, 4, 9]);
}

#[test]
fn some_payments_after_the_copy_are_adopted() {
    let harness = WithdrawalHarness::new(1);
    let requests: Vec<Value> = (1..=6).map(|n| harness.withdrawal_request(0, n)).collect();
    let (copy, ids) = copy_with_scheduled(&harness, &requests);
    let stop = harness.proxy.stop_before("eth_sendRawTransaction", 4);
    let server = harness.serve();
    assert!(stop.wait(STOP_LIMIT));
    server.process.kill();
    stop.cut();
    assert_eq!(harness.paid(0), [1, 2, 3]);

    harness.restore_database(&copy);
    let server = harness.serve();
    let withdrawals = server.wait_until_withdrawn(&ids);
    assert_paid_once(&harness, 0, &withdrawals);
    assert_eq!(harness.paid(0), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn equal_withdrawals_are_each_paid_once() {
    let harness = WithdrawalHarness::new(1);
    let requests = vec![harness.withdrawal_request(0, 5); 4];
    let (copy, ids) = copy_with_scheduled(&harness, &requests);
    let stop = harness.proxy.stop_before("eth_sendRawTransaction", 3);
    // The third and the fourth are not sent.
    let server = harness.serve_with(&[("--evm-in-flight", "1")]);
    assert!(stop.wait(STOP_LIMIT));
    server.process.kill();
    stop.cut();

    harness.restore_database(&copy);
    let withdrawals = harness.serve().wait_until_withdrawn(&ids);
    assert_paid_once(&harness, 0, &withdrawals);
    assert_eq!(withdrawals.iter().filter(|it| is_adopted(it)).count(), 2);
}

#[test]
fn copy_between_signing_and_sending() {
    let harness = WithdrawalHarness::new(1);
    let stop = harness.proxy.stop_before("eth_sendRawTransaction", 2);
    let server = harness.serve();
    let ids: Vec<String> =
        (1..=4).map(|n| server.schedule(&harness.withdrawal_request(0, n))).collect();
    assert!(stop.wait(STOP_LIMIT));
    server.process.kill();
    stop.cut();
    let copy = harness.copy_database();
    pay(&harness, &ids);

    harness.restore_database(&copy);
    let withdrawals = harness.serve().wait_until_withdrawn(&ids);
    assert_paid_once(&harness, 0, &withdrawals);
    assert_eq!((harness.paid(0), harness.nonce(0)), (vec![1, 2, 3, 4], 4));
}

#[test]
fn copy_before_a_replacement_that_was_mined() {
    let harness = WithdrawalHarness::new(1);
    harness.anvil.stop_mining().unwrap();
    let server = harness.serve();
    let ids: Vec<String> =
        (1..=2).map(|n| server.schedule(&harness.withdrawal_request(0, n))).collect();
    server.wait_for_state(&ids[0], "pending");
    server.process.kill();
    let copy = harness.copy_database();

    harness.anvil.set_base_fee(100).unwrap();
    let server = harness.serve();
    wait_until("the payment is replaced", || {
        server.withdrawal(&ids[0])["transactions"].as_array().unwrap().len() > 1
    });
    // The second one may be mined with it.
    wait_until("the replacement is mined", || {
        harness.anvil.mine(1).unwrap();
        harness.paid(0).first() == Some(&1)
    });
    harness.anvil.start_mining().unwrap();
    server.wait_until_withdrawn(&ids);
    server.process.kill();

    harness.restore_database(&copy);
    let withdrawals = harness.serve().wait_until_withdrawn(&ids);
    assert_paid_once(&harness, 0, &withdrawals);
    assert_eq!((harness.paid(0), harness.nonce(0)), (vec![1, 2], 2));
    assert!(is_adopted(&withdrawals[0]), "{withdrawals:?}");
}

#[test]
fn refused_withdrawal_stays_refused() {
    let harness = WithdrawalHarness::new(1);
    let requests: Vec<Value> = (1..=3).map(|n| harness.withdrawal_request(0, n)).collect();
    let (copy, ids) = copy_with_scheduled(&harness, &requests);
    harness.anvil.stop_mining().unwrap();
    let server = harness.serve();
    server.wait_for_state(&ids[0], "pending");
    harness.set_pool_owner(0, 5);
    harness.anvil.mine(1).unwrap();
    server.wait_for_state(&ids[0], "failed");
    harness.set_pool_owner(0, 0);
    harness.anvil.start_mining().unwrap();
    server.wait_for_state(&ids[2], "withdrawn");
    server.process.kill();
    assert!(!harness.paid(0).contains(&1));
    let before = harness.paid(0);

    harness.restore_database(&copy);
    let server = harness.serve();
    server.wait_for_state(&ids[0], "failed");
    server.wait_for_state(&ids[2], "withdrawn");
    assert_eq!(harness.paid(0), before);
}

#[test]
fn cancellation_after_the_copy_holds_the_gas_admin() {
    let harness = WithdrawalHarness::new(1);
    let requests: Vec<Value> = (1..=2).map(|n| harness.withdrawal_request(0, n)).collect();
    let (copy, ids) = copy_with_scheduled(&harness, &requests);
    harness.anvil.stop_mining().unwrap();
    let server = harness.serve();
    server.wait_for_state(&ids[0], "pending");
    assert_eq!(
        server
            .post(&format!("/withdrawals/{}/cancel", ids[0]), &json!({ "reason": "a test" }))
            .status,
        202
    );
    wait_until("the filler is sent", || {
        let transactions = server.withdrawal(&ids[0])["transactions"].clone();
        transactions
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it["cancels"] == true && it["sent_at"].is_string())
    });
    harness.anvil.start_mining().unwrap();
    server.wait_for_state(&ids[0], "failed");
    server.wait_until_withdrawn(&ids[1..]);
    server.process.kill();

    harness.restore_database(&copy);
    let server = harness.serve();
    let held = server.wait_for_state(&ids[0], "held");
    let waits_for = held["waits_for"].as_str().unwrap();
    assert!(waits_for.contains("nonce 0") && waits_for.contains("grid-batch nonce"), "{held}");
    let listed = run(harness.command_with(&["held"]));
    assert!(listed.stdout.contains("nonce 0"), "{listed:?}");
    assert_eq!(
        server
            .post(&format!("/withdrawals/{}/cancel", ids[0]), &json!({ "reason": "a test" }))
            .status,
        202
    );
    let service = held["gas_admin"].as_str().unwrap();
    let decided =
        run(harness.command_with(&["nonce", service, "0", "elsewhere", "--reason", "a test"]));
    assert_eq!(decided.exit_code, Some(0), "{decided:?}");
    server.wait_for_state(&ids[0], "failed");
    server.wait_until_withdrawn(&ids[1..]);
    assert_eq!(harness.paid(0), [2]);
}
