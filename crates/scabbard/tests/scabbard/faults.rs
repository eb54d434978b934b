use std::time::Duration;

use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::ledger::{Ledger, Outcome};
use grid_batch_ledger_sim::{Fault, When};

use crate::{
    batches::{batch, scope, submission},
    test_ledger::TestLedger,
};

#[tokio::test]
async fn batch_is_sent_and_committed() {
    let ledger = TestLedger::new();
    assert_eq!(ledger.send(1).await, Outcome::Accepted);
    assert_eq!(ledger.status(1).await, LedgerStatus::Committed);
    assert_eq!(ledger.status(2).await, LedgerStatus::NotReported);
}

#[tokio::test]
async fn submission_fault_has_its_outcome() {
    let late = Fault::LateAnswer(Duration::from_secs(60));
    for (fault, outcome, status) in [
        (Fault::Busy, Outcome::Busy, LedgerStatus::NotReported),
        (Fault::Unauthorized, Outcome::Refused, LedgerStatus::NotReported),
        (Fault::ResetBefore, Outcome::Ambiguous, LedgerStatus::NotReported),
        (Fault::ResetAfter, Outcome::Ambiguous, LedgerStatus::Committed),
        (late, Outcome::Ambiguous, LedgerStatus::Committed),
        (Fault::Invalid, Outcome::Accepted, LedgerStatus::Invalid),
        (Fault::DroppedValid, Outcome::Accepted, LedgerStatus::Valid),
    ] {
        let ledger = TestLedger::new();
        assert_eq!(ledger.send_with_fault(fault, 1).await, outcome, "{fault:?}");
        assert_eq!(ledger.status(1).await, status, "{fault:?}");
        let received = ledger.sim.times_received(&batch(1).header_signature.parse().unwrap());
        assert!(received <= 1, "{fault:?}");
    }
}

#[tokio::test]
async fn unknown_service_is_refused() {
    let ledger = TestLedger::new();
    let parts = submission(1, 1).into_parts();
    let elsewhere = grid_batch_core::ledger::Submission::new(
        parts.0,
        scope().to_string().replace("gsAA", "gsZZ").parse().unwrap(),
        parts.2,
    );
    let sent = ledger.scabbard.send(&ledger.sim.url(), &elsewhere).await;
    assert_eq!((sent.outcome, sent.status), (Outcome::Refused, Some(404)));
}

#[tokio::test]
async fn status_fault_is_an_error_and_changes_nothing() {
    for fault in [
        Fault::Unauthorized,
        Fault::StatusesFail,
        Fault::LateStatuses(Duration::from_secs(60)),
        Fault::StatusesReset,
        Fault::StatusesBroken,
        Fault::StatusesTruncated,
        Fault::StatusesNotJson,
        Fault::StatusesWrongTyped,
        Fault::StatusesHuge,
        Fault::StatusesOfOthers,
    ] {
        let ledger = TestLedger::new();
        ledger.send(1).await;
        ledger.sim.inject(fault, When::Next(1));
        assert!(ledger.statuses([1]).await.is_err(), "{fault:?}");
        assert_eq!(ledger.status(1).await, LedgerStatus::Committed, "{fault:?}");
    }
}

#[tokio::test]
async fn invalid_batch_has_a_receipt_with_the_reason() {
    let ledger =
        TestLedger::with(|ledger| ledger.refuse(|_| Some("no such contract".to_owned())), []);
    ledger.send(1).await;
    let report = ledger.statuses([1]).await.unwrap().remove(0);
    assert_eq!(report.status, LedgerStatus::Invalid);
    assert_eq!(report.receipts[0].error_message, "no such contract");
}

#[tokio::test]
async fn node_remembers_the_last_hundred_batches() {
    let ledger = TestLedger::new();
    for number in 0..120 {
        assert_eq!(ledger.send(number).await, Outcome::Accepted);
    }
    let reports = ledger.statuses(0..120).await.unwrap();
    let count = |status| reports.iter().filter(|report| report.status == status).count();
    assert_eq!([LedgerStatus::Committed, LedgerStatus::NotReported].map(count), [100, 20]);
}
