//! Several transactions of a gas admin are in flight; the withdrawals still end in order, each paid once.

use std::time::{Duration, Instant};

use grid_batch_test_chain::Stop;
use grid_batch_test_support::wait::wait_until;
use serde_json::json;

use crate::harness::{WithdrawalHarness, WithdrawalServer};

/// How many withdrawals a test schedules: more than may be in flight.
const COUNT: u64 = 20;

fn schedule(server: &WithdrawalServer, harness: &WithdrawalHarness, count: u64) -> Vec<String> {
    (1..=count).map(|amount| server.schedule(&harness.withdrawal_request(0, amount))).collect()
}

/// Asserts that the pool has made these payments once, in order, and used no other nonce.
fn assert_paid_once(harness: &WithdrawalHarness, count: u64) {
    assert_eq!(harness.paid(0), (1..=count).collect::<Vec<_>>());
    assert_eq!(harness.nonce(0), count);
}

/// The hash of the only transaction of a withdrawal.
fn hash_of(server: &WithdrawalServer, id: &str) -> String {
    let transactions = server.withdrawal(id)["transactions"].as_array().unwrap().clone();
    assert_eq!(transactions.len(), 1, "{transactions:?}");
    transactions[0]["hash"].as_str().unwrap().to_owned()
}

fn resume(harness: &WithdrawalHarness) {
    harness.anvil.start_mining().unwrap();
    harness.anvil.mine(1).unwrap();
}

#[test]
fn withdrawals_are_sent_before_their_turn_in_order() {
    let harness = WithdrawalHarness::new(1);
    harness.anvil.stop_mining().unwrap();
    let server = harness.serve();
    let ids = schedule(&server, &harness, 5);
    for (nonce, id) in ids.iter().enumerate() {
        let withdrawal = server.wait_for_state(id, "pending");
        assert_eq!(withdrawal["transactions"][0]["nonce"], nonce, "{withdrawal}");
    }
    let waits_for = server.withdrawal(&ids[2])["waits_for"].as_str().unwrap().to_owned();
    assert_eq!(
        waits_for,
        "its transaction is sent; it waits for 2 earlier withdrawals of its gas admin"
    );
    resume(&harness);
    server.wait_until_withdrawn(&ids);
    assert_paid_once(&harness, 5);
}

#[test]
fn number_in_flight_is_limited() {
    let harness = WithdrawalHarness::new(1);
    harness.anvil.stop_mining().unwrap();
    let server = harness.serve_with(&[("--evm-in-flight", "3")]);
    let ids = schedule(&server, &harness, 6);
    server.wait_for_state(&ids[2], "pending");
    let looks = harness.proxy.calls("eth_getTransactionCount");
    wait_until("the server looks again", || {
        harness.proxy.calls("eth_getTransactionCount") > looks + 4
    });
    for id in &ids[3..] {
        assert_eq!(server.withdrawal(id)["state"], "scheduled");
    }
    resume(&harness);
    server.wait_until_withdrawn(&ids);
    assert_paid_once(&harness, 6);
}

#[test]
fn dropped_transaction_in_the_middle_is_sent_again() {
    let harness = WithdrawalHarness::new(1);
    harness.anvil.stop_mining().unwrap();
    let server = harness.serve();
    let ids = schedule(&server, &harness, 5);
    ids.iter().for_each(|id| drop(server.wait_for_state(id, "pending")));
    let dropped = hash_of(&server, &ids[2]);
    harness.anvil.drop_transaction(&dropped).unwrap();
    resume(&harness);
    server.wait_until_withdrawn(&ids);
    assert_eq!(hash_of(&server, &ids[2]), dropped, "it was signed again");
    assert_paid_once(&harness, 5);
}

#[test]
fn restarted_node_gets_all_transactions_again() {
    let harness = WithdrawalHarness::new(1);
    harness.anvil.stop_mining().unwrap();
    let server = harness.serve();
    let ids = schedule(&server, &harness, COUNT);
    server.wait_for_state(&ids[15], "pending");
    harness.anvil.restart().unwrap();
    resume(&harness);
    server.wait_until_withdrawn(&ids);
    assert_paid_once(&harness, COUNT);
}

#[test]
fn refused_withdrawal_behind_others_fails_at_its_turn() {
    let harness = WithdrawalHarness::new(1);
    harness.anvil.stop_mining().unwrap();
    let server = harness.serve();
    let ids = schedule(&server, &harness, 3);
    ids.iter().for_each(|id| drop(server.wait_for_state(id, "pending")));
    harness.set_pool_owner(0, 5);
    harness.anvil.mine(1).unwrap();
    for (nonce, id) in ids.iter().enumerate() {
        let withdrawal = server.wait_for_state(id, "failed");
        assert!(withdrawal["fail_reason"].as_str().unwrap().contains("not the owner"));
        assert_eq!(withdrawal["transactions"][0]["nonce"], nonce);
    }
    assert_eq!((harness.nonce(0), harness.paid(0)), (3, vec![]));
    harness.set_pool_owner(0, 0);
    harness.anvil.start_mining().unwrap();
    for id in &ids {
        assert_eq!(
            server.post(&format!("/withdrawals/{id}/retry"), &json!({ "reason": "a test" })).status,
            200
        );
    }
    server.wait_until_withdrawn(&ids);
    assert_eq!((harness.nonce(0), harness.paid(0)), (6, vec![1, 2, 3]));
}

#[test]
fn withdrawal_in_flight_is_cancelled_by_a_filler() {
    let harness = WithdrawalHarness::new(1);
    harness.anvil.stop_mining().unwrap();
    let server = harness.serve_with(&[("--evm-resend-after", "30s")]);
    let ids = schedule(&server, &harness, 3);
    ids.iter().for_each(|id| drop(server.wait_for_state(id, "pending")));
    // The node has lost it, so it is not mined before it is its turn.
    harness.anvil.drop_transaction(&hash_of(&server, &ids[1])).unwrap();
    assert_eq!(
        server
            .post(&format!("/withdrawals/{}/cancel", ids[1]), &json!({ "reason": "a test" }))
            .status,
        202
    );
    resume(&harness);
    let cancelled = server.wait_for_state(&ids[1], "failed");
    assert_eq!(cancelled["transactions"][1]["cancels"], true, "{cancelled}");
    server.wait_until_withdrawn(&[ids[0].clone(), ids[2].clone()]);
    assert_eq!((harness.nonce(0), harness.paid(0)), (3, vec![1, 3]));
}

#[test]
fn reorganization_of_all_in_flight_pays_each_once() {
    let harness = WithdrawalHarness::new(1);
    harness.anvil.stop_mining().unwrap();
    let server = harness.serve_with(&[("--evm-confirmations", "4")]);
    let ids = schedule(&server, &harness, COUNT);
    server.wait_for_state(&ids[15], "pending");
    harness.anvil.mine(2).unwrap();
    server.wait_for_state(&ids[0], "mined");
    // The chain drops all sixteen.
    harness.anvil.reorg(2).unwrap();
    assert!(harness.paid(0).is_empty());
    harness.anvil.start_mining().unwrap();
    wait_until("all are paid", || {
        harness.anvil.mine(1).unwrap();
        server.withdrawal(&ids[COUNT as usize - 1])["state"] == "withdrawn"
    });
    server.wait_until_withdrawn(&ids);
    assert_paid_once(&harness, COUNT);
}

#[test]
fn fee_spike_reprices_all_in_flight_at_once() {
    let harness = WithdrawalHarness::new(1);
    harness.anvil.stop_mining().unwrap();
    harness.anvil.set_base_fee(5).unwrap();
    let server = harness.serve_with(&[("--evm-resend-after", "10m")]);
    let ids = schedule(&server, &harness, 16);
    server.wait_for_state(&ids[15], "pending");
    // A block in which none of them is mined.
    harness.anvil.set_base_fee(50).unwrap();
    harness.anvil.mine(1).unwrap();
    let risen = Instant::now();
    assert_eq!(harness.nonce(0), 0);
    wait_until("all are sent with higher fees", || harness.proxy.sent().len() >= 32);
    eprintln!("all are sent with higher fees after {:?}", risen.elapsed());
    let nonces: Vec<u64> = harness.proxy.sent()[16..].iter().map(|sent| sent.nonce).collect();
    assert_eq!(nonces, (0..16).collect::<Vec<_>>());
    harness.anvil.mine(1).unwrap();
    assert_eq!(harness.nonce(0), 16, "one block has all of them");
    server.wait_until_withdrawn(&ids);
    assert_paid_once(&harness, 16);
}

/// Where the proxy stops the server before it is killed.
type KillPoint = fn(&WithdrawalHarness) -> Stop;

/// Kills a server at the kill point while many are in flight, starts it again, and asserts that each is
/// paid once, in order.
fn assert_paid_after_kill_at(harness: &WithdrawalHarness, kill_point: KillPoint) {
    let before = harness.serve();
    let stop = kill_point(harness);
    let ids = schedule(&before, harness, COUNT);
    assert!(stop.wait(Duration::from_secs(30)), "never reached: {:?}", harness.proxy.log());
    before.process.kill();
    stop.cut();
    harness.serve().wait_until_withdrawn(&ids);
    assert_paid_once(harness, COUNT);
}

/// A test with SQLite for each kill point.
macro_rules! kill_points {
    ($($name:ident: $method:literal $nth:literal $stop:ident;)*) => {$(
        #[test]
        fn $name() {
            assert_paid_after_kill_at(&WithdrawalHarness::new(1), |harness| {
                harness.proxy.$stop($method, $nth)
            });
        }
    )*};
}

kill_points! {
    killed_before_the_estimates_of_many: "eth_estimateGas" 5 stop_before;
    killed_before_sending_the_first_of_many: "eth_sendRawTransaction" 2 stop_before;
    killed_while_sending_many: "eth_sendRawTransaction" 9 stop_before;
    killed_after_sending_one_of_many: "eth_sendRawTransaction" 9 stop_after;
    killed_after_sending_many: "eth_sendRawTransaction" 16 stop_after;
    killed_before_the_receipts_of_many: "eth_getTransactionReceipt" 6 stop_before;
    killed_after_the_receipts_of_many: "eth_getTransactionReceipt" 12 stop_after;
}

#[test]
fn killed_while_sending_many_on_postgres() {
    assert_paid_after_kill_at(&WithdrawalHarness::on_postgres(1), |harness| {
        harness.proxy.stop_before("eth_sendRawTransaction", 9)
    });
}

#[test]
fn instance_paused_while_it_signs_ahead_signs_nothing() {
    let harness = WithdrawalHarness::on_postgres(1);
    let paused = harness.serve_with(&[("--claims-name", "paused")]);
    let stop = harness.proxy.stop_before("eth_estimateGas", 4);
    let ids = schedule(&paused, &harness, COUNT);
    assert!(stop.wait(Duration::from_secs(30)));
    paused.process.signal("STOP");
    let other = harness.serve_with(&[("--claims-name", "other")]);
    other.wait_until_withdrawn(&ids);
    let sent = harness.proxy.sent().len();
    // The paused instance gets its answers, and must not sign.
    stop.release();
    paused.process.signal("CONT");
    let last = other.schedule(&harness.withdrawal_request(0, COUNT + 1));
    other.wait_until_withdrawn(&[last]);
    paused.process.signal("TERM");
    paused.process.wait();
    assert_eq!(harness.proxy.sent().len(), sent + 1, "only the last withdrawal was sent");
    assert_paid_once(&harness, COUNT + 1);
}
