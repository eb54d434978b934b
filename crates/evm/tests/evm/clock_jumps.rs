//! The time of day is set forward or back while a transaction is pending.

use std::time::Duration;

use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::evidence::Evidence;
use grid_batch_core::{Clock, Timestamp};

use crate::harness::{Harness, RESEND_AFTER};

const HOUR: Duration = Duration::from_secs(60 * 60);
const SECOND: Duration = Duration::from_secs(1);

/// An hour before this time.
fn an_hour_before(time: Timestamp) -> Timestamp {
    Timestamp::from_micros(time.as_micros() - i64::try_from(HOUR.as_micros()).unwrap())
}

#[tokio::test]
async fn jump_forward_resends_nothing() {
    let harness = Harness::new();
    let id = harness.send_withdrawal().await;
    harness.chain.set_base_fee(60).unwrap();
    harness.clock.set(harness.clock.now().plus(HOUR));
    assert_eq!(harness.evidence(id).await, Evidence::Present);
    harness.advance_clock(RESEND_AFTER + SECOND);
    assert_eq!(harness.evidence(id).await, Evidence::Repeatable);
}

#[tokio::test]
async fn jump_back_does_not_delay_a_replacement() {
    let harness = Harness::new();
    let id = harness.send_withdrawal().await;
    harness.clock.set(an_hour_before(harness.clock.now()));
    harness.advance_clock(RESEND_AFTER + SECOND);
    assert_eq!(harness.evidence(id).await, Evidence::Repeatable);
    harness.chain.set_base_fee(5).unwrap();
    harness.accept(id).await;
    assert_eq!(harness.hashes(id).len(), 2);
}

#[tokio::test]
async fn jumps_at_every_stage_pay_once() {
    for forward in [true, false] {
        let harness = Harness::with_options(|options| options.confirmations = 3);
        let jump = || {
            let now = harness.clock.now();
            harness.clock.set(if forward { now.plus(HOUR) } else { an_hour_before(now) });
        };
        let id = harness.schedule("500");
        jump();
        harness.accept(id).await;
        jump();
        assert_eq!(harness.status(id).await, LedgerStatus::Pending);
        harness.mine(1);
        jump();
        assert_eq!(harness.status(id).await, LedgerStatus::Valid);
        harness.mine(2);
        jump();
        assert_eq!(harness.status(id).await, LedgerStatus::Committed);
        assert_eq!((harness.polls().len(), harness.sent().len()), (1, 1));
    }
}

#[tokio::test]
async fn earlier_process_counts_from_when_it_is_seen() {
    let mut harness = Harness::new();
    let id = harness.send_withdrawal().await;
    harness.clock.set(an_hour_before(harness.clock.now()));
    harness.restart_with(|_| {});
    assert_eq!(harness.evidence(id).await, Evidence::Present);
    harness.advance_clock(RESEND_AFTER + SECOND);
    assert_eq!(harness.evidence(id).await, Evidence::Repeatable);
}
