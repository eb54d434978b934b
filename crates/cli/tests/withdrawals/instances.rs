//! Several instances over one database; they claim gas admins.

use crate::harness::WithdrawalHarness;

#[test]
fn withdrawals_are_paid_once_after_an_instance_is_killed() {
    let harness = WithdrawalHarness::on_postgres(3);
    let first = harness.serve_with(&[("--claims-name", "first")]);
    let second = harness.serve_with(&[("--claims-name", "second"), ("--claims-share", "true")]);
    let mut ids = Vec::new();
    for amount in 1..=12 {
        for pool in 0..3 {
            let server = if amount % 2 == 0 { &first } else { &second };
            ids.push(server.schedule(&harness.withdrawal_request(pool, amount)));
        }
    }
    second.wait_for_state(&ids[8], "withdrawn");
    first.process.kill();
    second.wait_until_withdrawn(&ids);
    for pool in 0..3 {
        assert_eq!(harness.paid(pool), (1..=12).collect::<Vec<_>>());
        assert_eq!(harness.nonce(pool), 12);
    }
}

#[test]
fn instance_paused_past_its_expiries_sends_nothing() {
    let harness = WithdrawalHarness::on_postgres(1);
    let paused = harness.serve_with(&[("--claims-name", "paused")]);
    let stop = harness.proxy.stop_before("eth_getTransactionCount", 1);
    let ids = [1, 2].map(|amount| paused.schedule(&harness.withdrawal_request(0, amount)));
    assert!(stop.wait(std::time::Duration::from_secs(30)));
    paused.process.signal("STOP");
    let other = harness.serve_with(&[("--claims-name", "other")]);
    other.wait_until_withdrawn(&ids);
    // The paused instance gets its answer, and must not sign.
    stop.release();
    paused.process.signal("CONT");
    let third = other.schedule(&harness.withdrawal_request(0, 3));
    other.wait_until_withdrawn(&[third]);
    paused.process.signal("TERM");
    paused.process.wait();
    assert_eq!((harness.paid(0), harness.nonce(0)), (vec![1, 2, 3], 3));
}
