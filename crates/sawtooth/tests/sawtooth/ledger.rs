//! The adapter and the simulated ledger, which misbehaves.

use std::{sync::Arc, time::Duration};

use grid_batch_core::{
    BatchError, BatchResult, BatchStatusReader, Evidence, EvidenceReader,
    LedgerStatus::{self, Committed, Invalid, NotReported, Pending},
    ManualClock, Outcome, StatusReport, SubmissionAnswer, SubmissionSender,
};
use grid_batch_http::HttpOptions;
use grid_batch_ledger_sim::{Fault, LedgerSim, LedgerSimBuilder, When};
use grid_batch_protocol::Batch;
use grid_batch_sawtooth::{Sawtooth, SawtoothOptions};
use tokio::runtime::Builder;

use crate::batches::{Nodes, SERVICE, batch, doubt, sawtooth, submission};

/// A ledger, and the adapter that speaks to it.
struct Scene {
    ledger: LedgerSim,
    clock: Arc<ManualClock>,
    sawtooth: Sawtooth,
}

fn scene(set: impl FnOnce(LedgerSimBuilder) -> LedgerSimBuilder) -> Scene {
    let clock = Arc::new(ManualClock::default());
    let ledger = set(LedgerSim::sawtooth().clock(clock.clone()).seed(1)).start().unwrap();
    Scene { ledger, clock, sawtooth: sawtooth() }
}

fn plain() -> Scene {
    scene(|ledger| ledger)
}

/// One that does not commit before it is told.
fn slow() -> Scene {
    scene(|ledger| ledger.pending_for(Duration::from_secs(60)))
}

impl Scene {
    /// Does not wait long for an answer.
    fn impatient(mut self) -> Self {
        let request_limit = Duration::from_secs(1);
        let http = HttpOptions { request_limit, ..HttpOptions::default() };
        self.sawtooth =
            Sawtooth::new(SawtoothOptions { http, ..SawtoothOptions::default() }).unwrap();
        self
    }

    async fn send(&self, batch: &Batch) -> SubmissionAnswer {
        self.sawtooth.sender().send(&self.ledger.url(), &submission(batch)).await
    }

    async fn accept(&self, batch: &Batch) {
        let answer = self.send(batch).await;
        assert_eq!(answer.outcome, Outcome::Accepted, "{answer:?}");
    }

    async fn statuses(&self, batches: &[Batch]) -> BatchResult<Vec<StatusReport>> {
        let reader = self.sawtooth.status_reader(Nodes::new([self.ledger.url()]));
        let ids: Vec<_> = batches.iter().map(|batch| batch.header_signature.clone()).collect();
        reader.get_batch_statuses(SERVICE, &ids).await
    }

    async fn status(&self, batch: &Batch) -> LedgerStatus {
        self.statuses(std::slice::from_ref(batch)).await.unwrap().remove(0).status
    }

    async fn evidence(&self, batch: &Batch) -> Evidence {
        let reader = self.sawtooth.evidence_reader(Nodes::new([self.ledger.url()]));
        reader.find_evidence(&doubt(&batch.header_signature)).await.unwrap()
    }

    fn received(&self, batch: &Batch) -> usize {
        self.ledger.times_received(&batch.header_signature.parse().unwrap())
    }
}

#[tokio::test]
async fn a_batch_is_accepted_and_committed_once_however_often_it_is_sent() {
    let scene = plain();
    for _ in 0..3 {
        scene.accept(&batch(1)).await;
        assert_eq!(scene.status(&batch(1)).await, Committed);
    }
    assert_eq!((scene.received(&batch(1)), scene.ledger.record().len()), (3, 1));
}

#[tokio::test]
async fn a_busy_ledger_takes_it_later() {
    let scene = plain();
    scene.ledger.inject(Fault::Busy, When::Next(1));
    let answer = scene.send(&batch(1)).await;
    assert_eq!((answer.outcome, answer.status), (Outcome::Busy, Some(429)));
    assert_eq!(scene.evidence(&batch(1)).await, Evidence::Absent);
    scene.accept(&batch(1)).await;
}

#[tokio::test]
async fn what_may_have_been_accepted_is_in_doubt_and_evidence_tells() {
    let scene = plain().impatient();
    for (number, (fault, evidence)) in (1..).zip([
        (Fault::TimedOut, Evidence::Committed),
        (Fault::ResetAfter, Evidence::Committed),
        (Fault::LateAnswer(Duration::from_secs(60)), Evidence::Committed),
        (Fault::ResetBefore, Evidence::Absent),
    ]) {
        let batch = batch(number);
        scene.ledger.inject(fault, When::Next(1));
        let answer = scene.send(&batch).await;
        assert_eq!(answer.outcome, Outcome::Ambiguous, "{fault:?}");
        assert_eq!(scene.evidence(&batch).await, evidence, "{fault:?}");
        let times = usize::from(evidence == Evidence::Committed);
        assert_eq!(scene.received(&batch), times, "{fault:?}: sent once");
    }
    assert_eq!(scene.ledger.record().len(), 3);
}

#[tokio::test]
async fn a_ledger_that_is_frozen_leaves_it_in_doubt_and_may_take_it_later() {
    let scene = plain().impatient();
    scene.ledger.freeze();
    assert_eq!(scene.send(&batch(1)).await.outcome, Outcome::Ambiguous);
    let error = scene.statuses(&[batch(1)]).await.unwrap_err();
    assert!(matches!(error, BatchError::Unavailable(_)), "{error}");

    scene.ledger.thaw();
    while scene.evidence(&batch(1)).await != Evidence::Committed {}
    assert_eq!(scene.received(&batch(1)), 1);
}

#[tokio::test]
async fn a_batch_that_is_wrong_is_rejected_with_the_ledgers_reason() {
    let scene = plain();
    let mut wrong = batch(1);
    wrong.transactions[0].payload.push(0);
    let answer = scene.send(&wrong).await;
    assert_eq!((answer.outcome, answer.status), (Outcome::Rejected, Some(400)));
    assert!(answer.message.unwrap().starts_with("Submitted Batches Invalid (code 30): "));
}

#[tokio::test]
async fn a_batch_that_is_too_long_is_rejected() {
    let scene = plain();
    let mut long = batch(1);
    long.transactions[0].payload = vec![0; 10 << 20];
    let answer = scene.send(&long).await;
    assert_eq!((answer.outcome, answer.status), (Outcome::Rejected, Some(413)));
}

#[tokio::test]
async fn a_wrong_address_is_refused() {
    let scene = plain();
    let url = format!("{}/elsewhere", scene.ledger.url());
    let answer = scene.sawtooth.sender().send(&url, &submission(&batch(1))).await;
    assert_eq!((answer.outcome, answer.status), (Outcome::Refused, Some(404)));
}

#[tokio::test]
async fn a_batch_is_pending_then_committed() {
    let scene = slow();
    assert_eq!(scene.status(&batch(1)).await, NotReported);
    assert_eq!(scene.evidence(&batch(1)).await, Evidence::Absent);
    scene.accept(&batch(1)).await;
    assert_eq!(scene.status(&batch(1)).await, Pending);
    assert_eq!(scene.evidence(&batch(1)).await, Evidence::Present);
    scene.clock.advance(Duration::from_secs(60));
    assert_eq!(scene.status(&batch(1)).await, Committed);
    assert_eq!(scene.evidence(&batch(1)).await, Evidence::Committed);
}

#[tokio::test]
async fn an_invalid_batch_has_one_receipt_though_it_is_named_thrice_and_is_forgotten_later() {
    let scene = scene(|ledger| ledger.refuse(|_| Some("no such name".to_owned())));
    scene.accept(&batch(1)).await;
    let report = scene.statuses(&[batch(1)]).await.unwrap().remove(0);
    assert_eq!(report.status, Invalid);
    assert_eq!(report.receipts.len(), 1, "{report:?}");
    assert_eq!(report.receipts[0].error_message, "no such name");
    assert_eq!(scene.evidence(&batch(1)).await, Evidence::Present);

    scene.clock.advance(Duration::from_secs(600));
    assert_eq!(scene.evidence(&batch(1)).await, Evidence::Absent);
}

#[tokio::test]
async fn a_restart_forgets_all_but_what_is_committed() {
    let mut scene = slow();
    scene.accept(&batch(1)).await;
    scene.clock.advance(Duration::from_secs(60));
    assert_eq!(scene.status(&batch(1)).await, Committed);
    scene.accept(&batch(2)).await;
    scene.ledger.restart();
    // The other has connections that were reset.
    scene.sawtooth = sawtooth();
    assert_eq!(scene.evidence(&batch(1)).await, Evidence::Committed);
    assert_eq!(scene.evidence(&batch(2)).await, Evidence::Absent);
}

#[tokio::test]
async fn a_hundred_are_asked_for_at_once() {
    let scene = plain();
    let batches: Vec<Batch> = (0..100).map(batch).collect();
    for batch in &batches[..50] {
        scene.accept(batch).await;
    }
    let reports = scene.statuses(&batches).await.unwrap();
    let expected = batches.iter().enumerate().map(|(number, batch)| StatusReport {
        batch_id: batch.header_signature.clone(),
        status: if number < 50 { Committed } else { NotReported },
        receipts: Vec::new(),
    });
    assert_eq!(reports, expected.collect::<Vec<_>>());
}

#[tokio::test]
async fn whatever_is_wrong_with_statuses_is_an_error_and_loses_nothing() {
    let scene = plain().impatient();
    scene.accept(&batch(1)).await;
    for (fault, unavailable) in [
        (Fault::StatusesFail, true),
        (Fault::StatusesReset, true),
        (Fault::StatusesBroken, true),
        (Fault::LateStatuses(Duration::from_secs(60)), true),
        (Fault::StatusesTruncated, false),
        (Fault::StatusesNotJson, false),
        (Fault::StatusesWrongTyped, false),
        (Fault::StatusesHuge, false),
        (Fault::StatusesOfOthers, false),
    ] {
        scene.ledger.inject(fault, When::Next(1));
        match scene.statuses(&[batch(1), batch(2)]).await.unwrap_err() {
            BatchError::Unavailable(_) => assert!(unavailable, "{fault:?}"),
            BatchError::InvalidAnswer(_) => assert!(!unavailable, "{fault:?}"),
            other => panic!("{fault:?}: {other}"),
        }
        assert_eq!(scene.status(&batch(1)).await, Committed, "{fault:?}");
    }
}

#[test]
fn its_parts_are_used_on_one_runtime_after_another() {
    let scene = plain();
    for number in 0..3 {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            scene.accept(&batch(number)).await;
            assert_eq!(scene.status(&batch(number)).await, Committed);
            assert_eq!(scene.evidence(&batch(number)).await, Evidence::Committed);
        });
    }
    assert_eq!(scene.ledger.record().len(), 3);
}
