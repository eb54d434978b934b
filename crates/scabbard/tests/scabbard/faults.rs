use std::time::Duration;

use grid_batch_core::{LedgerStatus, Outcome, SubmissionSender};
use grid_batch_ledger_sim::{Fault, When};

use crate::{
    batches::{batch, scope, submission},
    world::World,
};

#[tokio::test]
async fn a_batch_is_sent_and_committed() {
    let world = World::new();
    assert_eq!(world.send(1).await, Outcome::Accepted);
    assert_eq!(world.status(1).await, LedgerStatus::Committed);
    assert_eq!(world.status(2).await, LedgerStatus::NotReported);
}

#[tokio::test]
async fn every_fault_of_a_submission_has_its_outcome() {
    let late = Fault::LateAnswer(Duration::from_secs(60));
    for (fault, outcome, becomes) in [
        (Fault::Busy, Outcome::Busy, LedgerStatus::NotReported),
        (Fault::Unauthorized, Outcome::Refused, LedgerStatus::NotReported),
        (Fault::ResetBefore, Outcome::Ambiguous, LedgerStatus::NotReported),
        (Fault::ResetAfter, Outcome::Ambiguous, LedgerStatus::Committed),
        (late, Outcome::Ambiguous, LedgerStatus::Committed),
        (Fault::Invalid, Outcome::Accepted, LedgerStatus::Invalid),
        (Fault::DroppedValid, Outcome::Accepted, LedgerStatus::Valid),
    ] {
        let world = World::new();
        assert_eq!(world.send_into(fault, 1).await, outcome, "{fault:?}");
        assert_eq!(world.status(1).await, becomes, "{fault:?}");
        let received = world.ledger.times_received(&batch(1).header_signature.parse().unwrap());
        assert!(received <= 1, "{fault:?}");
    }
}

#[tokio::test]
async fn a_service_that_is_not_there_refuses() {
    let world = World::new();
    let elsewhere = submission(1, 1).into_parts();
    let elsewhere = grid_batch_core::Submission::new(
        elsewhere.0,
        scope().to_string().replace("gsAA", "gsZZ").parse().unwrap(),
        elsewhere.2,
    );
    let sent = world.scabbard.sender().send(&world.ledger.url(), &elsewhere).await;
    assert_eq!((sent.outcome, sent.status), (Outcome::Refused, Some(404)));
}

#[tokio::test]
async fn a_question_that_goes_wrong_is_an_error_and_loses_nothing() {
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
        let world = World::new();
        world.send(1).await;
        world.ledger.inject(fault, When::Next(1));
        assert!(world.statuses([1]).await.is_err(), "{fault:?}");
        assert_eq!(world.status(1).await, LedgerStatus::Committed, "{fault:?}");
    }
}

#[tokio::test]
async fn an_invalid_batch_says_why() {
    let world = World::with(|ledger| ledger.refuse(|_| Some("no such contract".to_owned())), []);
    world.send(1).await;
    let told = world.statuses([1]).await.unwrap().remove(0);
    assert_eq!(told.status, LedgerStatus::Invalid);
    assert_eq!(told.receipts[0].error_message, "no such contract");
}

#[tokio::test]
async fn of_more_than_a_hundred_batches_a_node_remembers_the_last() {
    let world = World::new();
    for number in 0..120 {
        assert_eq!(world.send(number).await, Outcome::Accepted);
    }
    let reports = world.statuses(0..120).await.unwrap();
    let count = |status| reports.iter().filter(|report| report.status == status).count();
    assert_eq!([LedgerStatus::Committed, LedgerStatus::NotReported].map(count), [100, 20]);
}
