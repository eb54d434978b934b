//! Evidence from a replay that shows all transactions of a service.

use std::time::Duration;

use grid_batch_core::evidence::{Evidence, UnresolvedBatch};
use grid_batch_core::ledger::{AttemptId, Ledger, Outcome};
use grid_batch_ledger_sim::Fault;

use crate::test_ledger::{TestLedger, read_in_background};

const SECOND: Duration = Duration::from_secs(1);
const LOST: u32 = 1_000;

/// A ledger that has committed this many batches and has accepted one more, which it lost in a restart.
async fn lost_after(count: u32) -> TestLedger {
    let ledger = TestLedger::with(|ledger| ledger.pending_for(SECOND), []);
    for number in 0..count {
        assert_eq!(ledger.send(number).await, Outcome::Accepted);
        ledger.advance(1);
    }
    assert_eq!(ledger.send(LOST).await, Outcome::Accepted);
    ledger.restart().await;
    ledger
}

#[tokio::test]
async fn batch_that_is_not_in_the_whole_replay_is_lost() {
    let ledger = lost_after(63).await;
    assert_eq!(ledger.evidence_after(LOST, 60).await, Evidence::Inconclusive);
    read_in_background(ledger.subscribe().await);
    assert_eq!(ledger.evidence(LOST).await, Evidence::Lost);

    ledger.send_again(LOST, 2).await;
    ledger.advance(1);
    assert_eq!(ledger.evidence(LOST).await, Evidence::Committed);
    assert_eq!(ledger.applied_count(), 64);
}

#[tokio::test]
async fn batch_that_is_not_in_a_page_of_the_replay_may_be_applied() {
    let ledger = lost_after(64).await;
    read_in_background(ledger.subscribe().await);
    let report = ledger.report(LOST).await;
    assert_eq!(report.evidence, Evidence::Inconclusive);
    ledger.advance(3_600);
    assert_eq!(ledger.evidence(LOST).await, Evidence::Inconclusive);
    let detail = report.detail.unwrap();
    assert!(detail.contains("the replay of its events is not whole"), "{detail}");
}

#[tokio::test]
async fn replay_of_a_stream_that_is_not_read_proves_nothing() {
    let ledger = lost_after(1).await;
    let _unread = ledger.subscribe().await;
    assert_eq!(ledger.evidence_after(LOST, 60).await, Evidence::Inconclusive);
}

#[tokio::test]
async fn commit_before_the_restart_is_in_the_replay() {
    let ledger = TestLedger::new();
    assert_eq!(ledger.send_with_fault(Fault::ResetAfter, 1).await, Outcome::Ambiguous);
    ledger.restart().await;
    assert_eq!(ledger.evidence_after(1, 60).await, Evidence::Inconclusive);
    read_in_background(ledger.subscribe().await);
    assert_eq!(ledger.evidence(1).await, Evidence::Committed);
}

#[tokio::test]
async fn commit_after_the_replay_is_heard() {
    let ledger = TestLedger::with(|ledger| ledger.pending_for(SECOND * 120), []);
    ledger.send_with_fault(Fault::ResetAfter, 1).await;
    read_in_background(ledger.subscribe().await);
    assert_eq!(ledger.evidence_after(1, 60).await, Evidence::Present);
    ledger.advance(60);
    assert_eq!(ledger.evidence(1).await, Evidence::Committed);
}

/// The other process may be paused and send the batch when it resumes.
#[tokio::test]
async fn whole_replay_proves_nothing_of_another_process() {
    let ledger = lost_after(1).await;
    read_in_background(ledger.subscribe().await);
    let reader = &ledger.scabbard;
    let elsewhere = UnresolvedBatch {
        attempt_id: AttemptId { attempt: 3, epoch: 2 },
        ..ledger.unresolved(LOST)
    };
    for _ in 0..2 {
        let report = reader.find_evidence(&elsewhere).await.unwrap();
        assert_eq!(report.evidence, Evidence::Inconclusive);
        let detail = report.detail.unwrap();
        assert!(detail.contains("this process has not sent it"), "{detail}");
        ledger.advance(3_600);
    }
}

#[tokio::test]
async fn each_restart_is_survived_by_a_new_watch() {
    let ledger = lost_after(1).await;
    for attempt in 2..5 {
        read_in_background(ledger.subscribe().await);
        assert_eq!(ledger.evidence_after(LOST, 60).await, Evidence::Lost, "{attempt}");
        assert_eq!(ledger.send_again(LOST, attempt).await, Outcome::Accepted);
        ledger.restart().await;
    }
    read_in_background(ledger.subscribe().await);
    assert_eq!(ledger.evidence_after(LOST, 60).await, Evidence::Lost);
    ledger.send_again(LOST, 5).await;
    ledger.advance(1);
    assert_eq!(ledger.evidence(LOST).await, Evidence::Committed);
    assert_eq!(ledger.applied_count(), 2);
}
