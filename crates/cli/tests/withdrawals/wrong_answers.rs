//! A node that answers wrongly for a while fails no withdrawal.

use grid_batch_test_chain::{Fault, FaultProxy};
use grid_batch_test_support::wait::wait_until;
use serde_json::{Value, json};

use crate::harness::{WithdrawalHarness, WithdrawalServer};

const CODE: &str = "eth_getCode";
const CALL: &str = "eth_call";

fn revert() -> Fault {
    Fault::RpcError { code: 3, message: "execution reverted".to_owned() }
}

fn schedule(
    server: &WithdrawalServer,
    harness: &WithdrawalHarness,
    amounts: &[u64],
) -> Vec<String> {
    amounts.iter().map(|amount| server.schedule(&harness.withdrawal_request(0, *amount))).collect()
}

/// Waits until the first withdrawal is parked, and was simulated this many times more. Returns what it
/// waits for.
fn wait_until_tried_again(
    server: &WithdrawalServer,
    proxy: &FaultProxy,
    id: &str,
    method: &str,
    times: usize,
) -> String {
    let parked = server.wait_for_state(id, "parked");
    let calls = proxy.calls(method);
    wait_until("it is tried again", || proxy.calls(method) >= calls + times);
    let Value::String(waits_for) = &parked["waits_for"] else { panic!("{parked}") };
    waits_for.clone()
}

#[test]
fn missing_code_of_a_pool_that_has_paid_fails_nothing() {
    let harness = WithdrawalHarness::new(1);
    let server = harness.serve();
    server.wait_until_withdrawn(&schedule(&server, &harness, &[1]));
    harness.proxy.set(CODE, Fault::Result(json!("0x")));
    let ids = schedule(&server, &harness, &(2..12).collect::<Vec<_>>());
    // Longer than the time after which a refusal counts.
    let waits_for = wait_until_tried_again(&server, &harness.proxy, &ids[0], CODE, 12);
    assert!(waits_for.contains("has paid before"), "{waits_for}");
    server.wait_for_state(&ids[0], "parked");
    harness.proxy.clear();
    server.wait_until_withdrawn(&ids);
    assert_eq!(harness.paid(0), (1..12).collect::<Vec<_>>());
}

#[test]
fn revert_that_no_later_block_confirms_fails_nothing() {
    let harness = WithdrawalHarness::new(1);
    // Without blocks, a refusal counts after this time.
    let server = harness.serve_with(&[("--evm-resend-after", "10m")]);
    harness.proxy.set(CALL, revert());
    let ids = schedule(&server, &harness, &(1..11).collect::<Vec<_>>());
    let waits_for = wait_until_tried_again(&server, &harness.proxy, &ids[0], CALL, 6);
    assert!(waits_for.contains("the pool refuses the withdrawal"), "{waits_for}");
    assert!(waits_for.contains("not final until a later block"), "{waits_for}");
    harness.proxy.clear();
    server.wait_until_withdrawn(&ids);
    assert_eq!(harness.paid(0), (1..11).collect::<Vec<_>>());
}

#[test]
fn revert_that_a_later_block_confirms_fails_the_withdrawal() {
    let harness = WithdrawalHarness::new(1);
    let server = harness.serve_with(&[("--evm-resend-after", "10m")]);
    harness.proxy.set(CALL, revert());
    let ids = schedule(&server, &harness, &[1]);
    server.wait_for_state(&ids[0], "parked");
    harness.anvil.mine(1).unwrap();
    let failed = server.wait_for_state(&ids[0], "failed");
    assert!(failed["fail_reason"].as_str().unwrap().contains("the pool refuses"), "{failed}");
    assert_eq!(harness.nonce(0), 0);
}
