//! A gas admin makes withdrawals faster than a plain loop that sends one, waits for its receipt, and sends
//! the next: twice as fast on an idle machine, and by this factor on a busy one.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use grid_batch_test_chain::Poll;
use grid_batch_test_support::wait::wait_until;
use serde_json::{Value, json};

use crate::harness::{USUAL_PACE, WithdrawalHarness, WithdrawalServer};

const FACTOR: f64 = 1.4;

/// How often usual libraries ask for a receipt.
const RECEIPT_INTERVAL: Duration = Duration::from_millis(100);

/// The input of the call that makes a payment of the first pool, as the server sends it.
fn input_of(harness: &WithdrawalHarness, Poll { transaction_hash, .. }: &Poll) -> Value {
    let found = harness.anvil.rpc("eth_getTransactionByHash", json!([transaction_hash]));
    found.unwrap()["input"].clone()
}

/// Pays from the second pool until it is stopped, and returns the payments in a second.
fn pay_in_a_plain_loop(harness: &WithdrawalHarness, input: &Value, stop: &AtomicBool) -> f64 {
    let (from, to) = (&harness.anvil.accounts()[1].address, harness.pools[1].address());
    let (started, mut payments) = (Instant::now(), 0);
    let call = |method: &str, params| harness.anvil.rpc(method, params).unwrap();
    while !stop.load(Ordering::Relaxed) {
        call("eth_getTransactionCount", json!([from, "latest"]));
        call("eth_feeHistory", json!(["0x4", "latest", [50]]));
        let payment = json!({"from": from, "to": to, "input": input});
        call("eth_estimateGas", json!([payment]));
        let hash = call("eth_sendTransaction", json!([payment]));
        loop {
            thread::sleep(RECEIPT_INTERVAL);
            if !call("eth_getTransactionReceipt", json!([hash])).is_null() {
                break;
            }
        }
        payments += 1;
    }
    f64::from(payments) / started.elapsed().as_secs_f64()
}

/// How many transactions of the pipelining loop are sent and not mined: as many as `evm.in_flight` allows.
const WINDOW: u64 = 16;

/// Pays from the third pool until it is stopped, without waiting for one payment before it sends the next.
fn pay_in_a_pipelining_loop(harness: &WithdrawalHarness, input: &Value, stop: &AtomicBool) {
    let (from, to) = (&harness.anvil.accounts()[2].address, harness.pools[2].address());
    let call = |method: &str, params| harness.anvil.rpc(method, params).unwrap();
    let mut nonce = harness.nonce(2);
    while !stop.load(Ordering::Relaxed) {
        if nonce - harness.nonce(2) >= WINDOW {
            thread::sleep(RECEIPT_INTERVAL);
            continue;
        }
        call("eth_feeHistory", json!(["0x4", "latest", [50]]));
        let payment = json!({"from": from, "to": to, "input": input});
        call("eth_estimateGas", json!([payment]));
        let payment =
            json!({"from": from, "to": to, "input": input, "nonce": format!("{nonce:#x}")});
        call("eth_sendTransaction", json!([payment]));
        nonce += 1;
    }
}

/// Makes this many withdrawals from the first pool, and returns how many in a second.
fn make_withdrawals(server: &WithdrawalServer, harness: &WithdrawalHarness, count: u32) -> f64 {
    let first = harness.polls(0).len() as u64 + 1;
    let amounts = first..first + u64::from(count);
    let started = Instant::now();
    let ids: Vec<String> =
        amounts.map(|amount| server.schedule(&harness.withdrawal_request(0, amount))).collect();
    server.wait_until_withdrawn(&ids);
    f64::from(count) / started.elapsed().as_secs_f64()
}

/// Both rates, measured at the same time.
fn compare(harness: &WithdrawalHarness, server: &WithdrawalServer, count: u32) -> (f64, f64) {
    let input = input_of(harness, &harness.polls(0)[0]);
    let stop = AtomicBool::new(false);
    let before = harness.proxy.log().len();
    let (rate, plain) = thread::scope(|scope| {
        let plain = scope.spawn(|| pay_in_a_plain_loop(harness, &input, &stop));
        let rate = make_withdrawals(server, harness, count);
        stop.store(true, Ordering::Relaxed);
        (rate, plain.join().unwrap())
    });
    let calls = (harness.proxy.log().len() - before) as f64 / f64::from(count);
    eprintln!(
        "{rate:.1} withdrawals/s with {calls:.1} calls of the node each, plain loop {plain:.1}/s"
    );
    (rate, plain)
}

/// Asserts that the first pool has made all payments once, in order.
fn assert_paid_once(harness: &WithdrawalHarness, count: u64) {
    assert_eq!(harness.paid(0), (1..=count).collect::<Vec<_>>());
    assert_eq!(harness.nonce(0), count);
}

#[test]
fn faster_than_a_plain_loop_on_instant_blocks() {
    let harness = WithdrawalHarness::new(2);
    let server = harness.serve_with(USUAL_PACE);
    make_withdrawals(&server, &harness, 1);
    let (rate, plain) = compare(&harness, &server, 100);
    assert!(rate >= FACTOR * plain, "{rate:.1}/s, plain loop {plain:.1}/s");
    assert_paid_once(&harness, 101);
}

#[test]
fn faster_than_a_plain_loop_on_timed_blocks() {
    let harness = WithdrawalHarness::new(2);
    harness.anvil.rpc("evm_setAutomine", json!([false])).unwrap();
    harness.anvil.rpc("evm_setIntervalMining", json!([1])).unwrap();
    let flags = [USUAL_PACE, &[("--evm-confirmations", "3")]].concat();
    let server = harness.serve_with(&flags);
    make_withdrawals(&server, &harness, 1);
    let (rate, plain) = compare(&harness, &server, 40);
    assert!(rate >= FACTOR * plain, "{rate:.1}/s, plain loop {plain:.1}/s");
    assert_paid_once(&harness, 41);
}

/// Prints how many payments of each loop and of a server are mined in a second, over this many blocks with this many
/// seconds between them. Without seconds, each payment makes a block.
fn measure_rates(seconds: Option<u64>, blocks: u64) {
    let harness = WithdrawalHarness::new(3);
    let server = harness.serve_with(&[USUAL_PACE, &[("--evm-confirmations", "3")]].concat());
    server.schedule(&harness.withdrawal_request(0, 1));
    wait_until("the first payment is mined", || harness.nonce(0) == 1);
    if let Some(seconds) = seconds {
        harness.anvil.rpc("evm_setAutomine", json!([false])).unwrap();
        harness.anvil.rpc("evm_setIntervalMining", json!([seconds])).unwrap();
    }
    let measured = Duration::from_secs(seconds.unwrap_or(1) * blocks);
    let queue = seconds.map_or(1_000, |_| 2 * WINDOW * blocks);
    (2..queue).for_each(|amount| drop(server.schedule(&harness.withdrawal_request(0, amount))));
    let input = input_of(&harness, &harness.polls(0)[0]);
    let stop = AtomicBool::new(false);
    let nonces = || [0, 1, 2].map(|admin| harness.nonce(admin));
    let rates = thread::scope(|scope| {
        scope.spawn(|| pay_in_a_plain_loop(&harness, &input, &stop));
        scope.spawn(|| pay_in_a_pipelining_loop(&harness, &input, &stop));
        // The first block is not full.
        let full = nonces();
        wait_until("each has begun", || nonces().iter().zip(full).all(|(now, it)| *now > it));
        let (started, before) = (Instant::now(), nonces());
        thread::sleep(measured);
        let (elapsed, after) = (started.elapsed().as_secs_f64(), nonces());
        stop.store(true, Ordering::Relaxed);
        [0, 1, 2].map(|admin| (after[admin] - before[admin]) as f64 / elapsed)
    });
    let [server, plain, pipelining] = rates;
    let blocks = seconds.map_or("instant".to_owned(), |seconds| format!("{seconds} s"));
    eprintln!(
        "{blocks}: plain loop {plain:.2}/s, pipelining loop {pipelining:.2}/s, server {server:.2}/s"
    );
}

#[test]
#[ignore = "a measurement, for docs/performance.md"]
fn rates_at_usual_block_times() {
    measure_rates(None, 15);
    thread::scope(|scope| {
        for (seconds, blocks) in [(1, 30), (2, 20), (12, 8)] {
            scope.spawn(move || measure_rates(Some(seconds), blocks));
        }
    });
}
