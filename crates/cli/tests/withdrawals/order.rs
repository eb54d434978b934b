//! Each gas admin pays the oldest withdrawal first, and no gas admin waits for another.

use std::time::{Duration, Instant};

use crate::harness::{WithdrawalHarness, WithdrawalServer};

fn schedule(
    server: &WithdrawalServer,
    harness: &WithdrawalHarness,
    pool: usize,
    amounts: std::ops::RangeInclusive<u64>,
) -> Vec<String> {
    amounts.map(|amount| server.schedule(&harness.withdrawal_request(pool, amount))).collect()
}

#[test]
fn gas_admin_can_have_one_pending_withdrawal() {
    let harness = WithdrawalHarness::new(1);
    harness.anvil.stop_mining().unwrap();
    let server = harness.serve_with(&[("--evm-in-flight", "1")]);
    let ids = schedule(&server, &harness, 0, 1..=3);
    server.wait_for_state(&ids[0], "pending");
    for id in &ids[1..] {
        let withdrawal = server.withdrawal(id);
        assert_eq!(withdrawal["state"], "scheduled", "{withdrawal}");
        assert_eq!(withdrawal["transactions"], serde_json::json!([]));
    }
    harness.anvil.start_mining().unwrap();
    harness.anvil.mine(1).unwrap();
    server.wait_until_withdrawn(&ids);
}

/// The time until ten withdrawals of the second pool are paid.
fn time_ten(server: &WithdrawalServer, harness: &WithdrawalHarness, first: u64) -> Duration {
    let started = Instant::now();
    let ids = schedule(server, harness, 1, first..=first + 9);
    server.wait_until_withdrawn(&ids);
    started.elapsed()
}

#[test]
fn busy_and_parked_pools_do_not_slow_others() {
    let harness = WithdrawalHarness::new(3);
    let low_cap = format!("{}=0.5", harness.pools[0].address());
    let server = harness.serve_with(&[("--pools-maximum-gas-price", &low_cap)]);
    time_ten(&server, &harness, 1);
    let alone = time_ten(&server, &harness, 11);

    // The first pool is parked, the third is busy.
    let parked = schedule(&server, &harness, 0, 1..=100);
    server.wait_for_state(&parked[0], "parked");
    let busy = schedule(&server, &harness, 2, 1..=100);
    let with_others = time_ten(&server, &harness, 21);

    let ratio = with_others.as_secs_f64() / alone.as_secs_f64();
    eprintln!("ten withdrawals take {ratio:.2} times as long with 200 of other pools as alone");
    assert_ne!(
        server.withdrawal(&busy[99])["state"],
        "withdrawn",
        "the third pool had already paid all"
    );
    assert!(ratio < 3.0, "{with_others:?} with others, {alone:?} alone");
}
