//! Withdrawals that a pool rejects or that are cancelled.

use grid_batch_test_support::wait::wait_until;
use serde_json::json;

use crate::harness::WithdrawalHarness;

/// Changes the owner of a pool; the pool rejects withdrawals of all others.
fn set_owner(harness: &WithdrawalHarness, pool: usize, owner: usize) {
    harness.set_pool_owner(pool, owner);
}

#[test]
fn rejected_withdrawal_fails_and_is_retried_on_request() {
    assert_rejected_fails_and_is_retried(&WithdrawalHarness::new(1));
}

#[test]
fn rejected_withdrawal_on_hardhat_is_retried_on_request() {
    assert_rejected_fails_and_is_retried(&WithdrawalHarness::on_hardhat());
}

fn assert_rejected_fails_and_is_retried(harness: &WithdrawalHarness) {
    let server = harness.serve();
    set_owner(harness, 0, 5);
    let rejected = server.schedule(&harness.withdrawal_request(0, 1));
    let withdrawal = server.wait_for_state(&rejected, "failed");
    assert!(withdrawal["fail_reason"].as_str().unwrap().contains("not the owner"), "{withdrawal}");
    assert!(withdrawal["withdrawal_id"].is_null(), "{withdrawal}");
    assert_eq!(harness.nonce(0), 0, "a withdrawal that is known to fail uses no nonce");

    set_owner(harness, 0, 0);
    let next = server.schedule(&harness.withdrawal_request(0, 2));
    server.wait_until_withdrawn(&[next]);
    assert_eq!(
        server.withdrawal(&rejected),
        withdrawal,
        "a failed withdrawal was retried without a request"
    );

    let retried =
        server.post(&format!("/withdrawals/{rejected}/retry"), &json!({ "reason": "a test" }));
    assert_eq!(retried.status, 200, "{retried:?}");
    server.wait_until_withdrawn(std::slice::from_ref(&rejected));
    assert_eq!(harness.paid(0), [2, 1]);
    let again =
        server.post(&format!("/withdrawals/{rejected}/retry"), &json!({ "reason": "a test" }));
    assert_eq!(again.status, 409, "{again:?}");
}

#[test]
fn reverted_withdrawal_fails_and_uses_its_nonce() {
    let harness = WithdrawalHarness::new(1);
    harness.anvil.stop_mining().unwrap();
    let server = harness.serve();
    let id = server.schedule(&harness.withdrawal_request(0, 1));
    server.wait_for_state(&id, "pending");
    set_owner(&harness, 0, 5);
    harness.anvil.mine(1).unwrap();
    let withdrawal = server.wait_for_state(&id, "failed");
    assert!(withdrawal["fail_reason"].as_str().unwrap().contains("not the owner"), "{withdrawal}");
    assert_eq!((harness.nonce(0), harness.paid(0)), (1, vec![]));

    set_owner(&harness, 0, 0);
    harness.anvil.start_mining().unwrap();
    server.post(&format!("/withdrawals/{id}/retry"), &json!({ "reason": "a test" }));
    let withdrawal = server.wait_until_withdrawn(&[id]).remove(0);
    assert_eq!(harness.paid(0), [1]);
    assert_eq!(withdrawal["transactions"][0]["nonce"], 1, "{withdrawal}");
}

#[test]
fn scheduled_and_pending_withdrawals_can_be_cancelled() {
    assert_can_be_cancelled(&WithdrawalHarness::new(1));
}

#[test]
fn withdrawals_on_hardhat_can_be_cancelled() {
    assert_can_be_cancelled(&WithdrawalHarness::on_hardhat());
}

fn assert_can_be_cancelled(harness: &WithdrawalHarness) {
    harness.anvil.stop_mining().unwrap();
    // One that is signed ahead can be paid although a cancellation is requested.
    let server = harness.serve_with(&[("--evm-in-flight", "1")]);
    let ids = [1, 2, 3].map(|amount| server.schedule(&harness.withdrawal_request(0, amount)));
    server.wait_for_state(&ids[0], "pending");
    for id in &ids[..2] {
        let response =
            server.post(&format!("/withdrawals/{id}/cancel"), &json!({ "reason": "a test" }));
        assert_eq!(response.status, 202, "{response:?}");
    }
    wait_until("the filler is sent", || {
        let withdrawal = server.withdrawal(&ids[0]);
        withdrawal["state"] == "pending" && withdrawal["transactions"][1]["sent_at"].is_string()
    });
    harness.anvil.start_mining().unwrap();
    harness.anvil.mine(1).unwrap();
    for id in &ids[..2] {
        let withdrawal = server.wait_for_state(id, "failed");
        assert!(withdrawal["fail_reason"].as_str().unwrap().contains("cancelled"), "{withdrawal}");
    }
    server.wait_until_withdrawn(&ids[2..]);
    assert_eq!((harness.paid(0), harness.nonce(0)), (vec![3], 2));
}

#[test]
fn failed_withdrawal_blocks_no_other_after_a_reorg() {
    let harness = WithdrawalHarness::new(1);
    harness.anvil.stop_mining().unwrap();
    let server = harness.serve();
    let rejected = server.schedule(&harness.withdrawal_request(0, 1));
    server.wait_for_state(&rejected, "pending");
    set_owner(&harness, 0, 5);
    harness.anvil.mine(1).unwrap();
    server.wait_for_state(&rejected, "failed");

    harness.anvil.reorg(1).unwrap();
    set_owner(&harness, 0, 0);
    assert_eq!(harness.nonce(0), 0, "the reorganization removed the transaction");
    harness.anvil.start_mining().unwrap();
    let ids = [2, 3].map(|amount| server.schedule(&harness.withdrawal_request(0, amount)));
    server.wait_until_withdrawn(&ids);
    assert_eq!(harness.paid(0), [2, 3], "a withdrawal that was reported as failed was paid");
}
