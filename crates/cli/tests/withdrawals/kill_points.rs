//! Servers that are killed at each step between scheduling and confirmation pay a withdrawal once.

use std::time::Duration;

use grid_batch_test_chain::Stop;

use crate::harness::WithdrawalHarness;

const STOP_LIMIT: Duration = Duration::from_secs(30);

/// Where the proxy stops the server before it is killed.
type KillPoint = fn(&WithdrawalHarness) -> Stop;

/// Schedules two withdrawals, kills the server at the kill point, starts it again, and asserts that
/// both are paid once, in order.
fn assert_paid_after_kill_at(harness: &WithdrawalHarness, kill_point: KillPoint) {
    let before = harness.serve();
    let stop = kill_point(harness);
    let ids = [1, 2].map(|amount| before.schedule(&harness.withdrawal_request(0, amount)));
    assert!(
        stop.wait(STOP_LIMIT),
        "the server never reached the kill point: {:?}",
        harness.proxy.log()
    );
    before.process.kill();
    stop.cut();

    let after = harness.serve();
    let withdrawals = after.wait_until_withdrawn(&ids);
    assert_eq!(harness.paid(0), [1, 2]);
    for (withdrawal, poll) in withdrawals.iter().zip(harness.polls(0)) {
        assert_eq!(withdrawal["withdrawal_id"], poll.id.as_str());
        let transactions = withdrawal["transactions"].as_array().unwrap();
        assert!(
            transactions.iter().any(|t| t["hash"] == poll.transaction_hash.as_str()),
            "{withdrawal}"
        );
        assert!(
            transactions.iter().all(|t| t["nonce"] == poll.nonce),
            "more than one nonce: {withdrawal}"
        );
    }
    assert_eq!(harness.nonce(0), 2);
}

/// A test with SQLite for each kill point.
macro_rules! kill_points {
    ($($name:ident: $kill_point:expr;)*) => {$(
        #[test]
        fn $name() {
            assert_paid_after_kill_at(&WithdrawalHarness::new(1), $kill_point);
        }
    )*};
}

kill_points! {
    killed_before_the_chain_id: |harness| harness.proxy.stop_before("eth_chainId", 1);
    killed_before_the_gas_price: |harness| harness.proxy.stop_before("eth_feeHistory", 1);
    killed_before_the_code_of_the_pool: |harness| harness.proxy.stop_before("eth_getCode", 1);
    killed_before_the_simulated_call: |harness| harness.proxy.stop_before("eth_call", 1);
    killed_before_the_gas_estimate: |harness| harness.proxy.stop_before("eth_estimateGas", 1);
    killed_before_the_balance: |harness| harness.proxy.stop_before("eth_getBalance", 1);
    killed_before_the_nonce: |harness| harness.proxy.stop_before("eth_getTransactionCount", 1);
    killed_after_the_nonce: |harness| harness.proxy.stop_after("eth_getTransactionCount", 1);
    killed_before_the_receipt: |harness| harness.proxy.stop_before("eth_getTransactionReceipt", 1);
    killed_after_the_receipt: |harness| harness.proxy.stop_after("eth_getTransactionReceipt", 1);
    killed_before_sending_the_second:
        |harness| harness.proxy.stop_before("eth_sendRawTransaction", 2);
    killed_after_sending_the_second:
        |harness| harness.proxy.stop_after("eth_sendRawTransaction", 2);
}

#[test]
fn killed_before_sending_on_postgres() {
    assert_paid_after_kill_at(&WithdrawalHarness::on_postgres(1), |harness| {
        harness.proxy.stop_before("eth_sendRawTransaction", 1)
    });
}

#[test]
fn killed_after_sending_to_hardhat() {
    assert_paid_after_kill_at(&WithdrawalHarness::on_hardhat(), |harness| {
        harness.proxy.stop_after("eth_sendRawTransaction", 1)
    });
}

#[test]
fn killed_after_scheduling() {
    let harness = WithdrawalHarness::new(1);
    let before = harness.serve();
    let id = before.schedule(&harness.withdrawal_request(0, 1));
    before.process.kill();
    harness.serve().wait_until_withdrawn(&[id]);
    assert_eq!(harness.paid(0), [1]);
}

#[test]
fn killed_between_mining_and_finality() {
    let harness = WithdrawalHarness::new(1);
    let confirmations = [("--evm-confirmations", "3")];
    let before = harness.serve_with(&confirmations);
    let id = before.schedule(&harness.withdrawal_request(0, 1));
    let withdrawal = before.wait_for_state(&id, "mined");
    assert!(
        withdrawal["withdrawal_id"].is_null() && withdrawal["fail_reason"].is_null(),
        "{withdrawal}"
    );
    before.process.kill();

    let after = harness.serve_with(&confirmations);
    assert_eq!(after.wait_for_state(&id, "mined")["transactions"], withdrawal["transactions"]);
    harness.anvil.mine(2).unwrap();
    after.wait_until_withdrawn(&[id]);
    assert_eq!(harness.paid(0), [1]);
}

#[test]
fn withdrawals_are_paid_once_after_repeated_kills() {
    let harness = WithdrawalHarness::new(2);
    let mut ids = Vec::new();
    for iteration in 0..6 {
        let server = harness.serve();
        for pool in 0..2 {
            ids.push(server.schedule(&harness.withdrawal_request(pool, 1 + iteration)));
        }
        let (method, nth) = [
            ("eth_sendRawTransaction", 1),
            ("eth_getTransactionReceipt", 2),
            ("eth_sendRawTransaction", 2),
        ][iteration as usize % 3];
        let stop = match iteration % 2 {
            0 => harness.proxy.stop_after(method, nth),
            _ => harness.proxy.stop_before(method, nth),
        };
        // It stops nowhere if all withdrawals are already paid.
        stop.wait(Duration::from_secs(2));
        server.process.kill();
        stop.cut();
    }
    harness.serve().wait_until_withdrawn(&ids);
    for pool in 0..2 {
        assert_eq!(harness.paid(pool), [1, 2, 3, 4, 5, 6]);
        assert_eq!(harness.nonce(pool), 6);
    }
}
