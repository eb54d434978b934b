//! The adapter with the simulated ledger and its faults.

use std::{sync::Arc, time::Duration};

use grid_batch_core::{
    BatchError, BatchResult, GlobalScopeId, ManualClock, ScopeId,
    batches::{
        LedgerStatus::{self, Committed, Invalid, NotReported, Pending},
        StatusReport,
    },
    evidence::Evidence,
    ledger::{Ledger, Outcome, SubmissionAnswer},
};
use grid_batch_http::HttpOptions;
use grid_batch_ledger_sim::{Fault, LedgerSim, LedgerSimBuilder, When};
use grid_batch_protocol::Batch;
use grid_batch_sawtooth::{Sawtooth, SawtoothOptions};
use tokio::runtime::Builder;

use crate::batches::{Nodes, SERVICE, batch, batch_of, sawtooth, submission, unresolved};

/// A simulated ledger, its clock, and an adapter for it.
struct TestLedger {
    ledger: LedgerSim,
    clock: Arc<ManualClock>,
    sawtooth: Sawtooth,
}

fn start_with(configure: impl FnOnce(LedgerSimBuilder) -> LedgerSimBuilder) -> TestLedger {
    let clock = Arc::new(ManualClock::default());
    let ledger = configure(LedgerSim::sawtooth().clock(clock.clone()).seed(1)).start().unwrap();
    let sawtooth = sawtooth().with_clock(clock.clone());
    TestLedger { ledger, clock, sawtooth }
}

fn start() -> TestLedger {
    start_with(|ledger| ledger)
}

/// A ledger that commits a batch 60 seconds after its submission.
fn start_slow() -> TestLedger {
    start_with(|ledger| ledger.pending_for(Duration::from_secs(60)))
}

impl TestLedger {
    /// Uses an adapter with a short request timeout.
    fn with_short_timeout(mut self) -> Self {
        let request_timeout = Duration::from_secs(3);
        let http = HttpOptions { request_timeout, ..HttpOptions::default() };
        self.sawtooth =
            Sawtooth::new(SawtoothOptions { http, ..SawtoothOptions::default() }, Nodes::none())
                .unwrap();
        self
    }

    async fn send(&self, batch: &Batch) -> SubmissionAnswer {
        self.sawtooth.send(&self.ledger.url(), &submission(batch)).await
    }

    async fn accept(&self, batch: &Batch) {
        let answer = self.send(batch).await;
        assert_eq!(answer.outcome, Outcome::Accepted, "{answer:?}");
    }

    /// Sends the batch like another client.
    async fn accept_elsewhere(&self, batch: &Batch) {
        let answer = sawtooth().send(&self.ledger.url(), &submission(batch)).await;
        assert_eq!(answer.outcome, Outcome::Accepted, "{answer:?}");
    }

    async fn statuses(&self, batches: &[Batch]) -> BatchResult<Vec<StatusReport>> {
        let reader = self.sawtooth.clone().with_nodes(Nodes::new([self.ledger.url()]));
        let ids: Vec<_> = batches.iter().map(|batch| batch.header_signature.clone()).collect();
        reader.statuses(SERVICE, &ids).await
    }

    async fn status(&self, batch: &Batch) -> LedgerStatus {
        self.statuses(std::slice::from_ref(batch)).await.unwrap().remove(0).status
    }

    async fn evidence(&self, batch: &Batch) -> Evidence {
        let reader = self.sawtooth.clone().with_nodes(Nodes::new([self.ledger.url()]));
        reader.find_evidence(&unresolved(&batch.header_signature)).await.unwrap().evidence
    }

    fn received(&self, batch: &Batch) -> usize {
        self.ledger.times_received(&batch.header_signature.parse().unwrap())
    }
}

#[tokio::test]
async fn repeated_batch_is_accepted_and_committed_once() {
    let test = start_slow();
    for _ in 0..3 {
        test.accept(&batch(1)).await;
        assert_eq!(test.status(&batch(1)).await, Pending);
    }
    test.clock.advance(Duration::from_secs(60));
    assert_eq!(test.status(&batch(1)).await, Committed);
    assert_eq!((test.received(&batch(1)), test.ledger.record().len()), (3, 1));
}

#[tokio::test]
async fn committed_batch_is_not_sent() {
    let test = start();
    test.accept(&batch(1)).await;
    let answer = test.send(&batch(1)).await;
    assert_eq!(answer.outcome, Outcome::Ambiguous);
    assert!(answer.message.unwrap().starts_with("not sent: "));
    assert_eq!(test.received(&batch(1)), 1);
}

#[tokio::test]
async fn batch_is_accepted_after_the_ledger_was_busy() {
    let test = start();
    test.ledger.inject(Fault::Busy, When::Next(1));
    let answer = test.send(&batch(1)).await;
    assert_eq!((answer.outcome, answer.status), (Outcome::Busy, Some(429)));
    assert_eq!(test.evidence(&batch(1)).await, Evidence::Absent);
    test.accept(&batch(1)).await;
}

#[tokio::test]
async fn ambiguous_submission_is_resolved_by_evidence() {
    let test = start().with_short_timeout();
    for (number, (fault, evidence)) in (1..).zip([
        (Fault::TimedOut, Evidence::Committed),
        (Fault::ResetAfter, Evidence::Committed),
        (Fault::LateAnswer(Duration::from_secs(60)), Evidence::Committed),
        (Fault::ResetBefore, Evidence::Absent),
    ]) {
        let batch = batch(number);
        test.ledger.inject(fault, When::Next(1));
        let answer = test.send(&batch).await;
        assert_eq!(answer.outcome, Outcome::Ambiguous, "{fault:?}");
        assert_eq!(test.evidence(&batch).await, evidence, "{fault:?}");
        let times = usize::from(evidence == Evidence::Committed);
        assert_eq!(test.received(&batch), times, "{fault:?}: sent once");
    }
    assert_eq!(test.ledger.record().len(), 3);
}

#[tokio::test]
async fn frozen_ledger_is_ambiguous_and_may_commit_later() {
    let test = start().with_short_timeout();
    let ids = [batch(1).header_signature.parse().unwrap()];
    test.sawtooth
        .clone()
        .with_nodes(Nodes::new([test.ledger.url()]))
        .ask_ahead(GlobalScopeId.service_id(), &ids)
        .await;
    test.ledger.freeze();
    assert_eq!(test.send(&batch(1)).await.outcome, Outcome::Ambiguous);
    let error = test.statuses(&[batch(1)]).await.unwrap_err();
    assert!(matches!(error, BatchError::Unavailable(_)), "{error}");

    test.ledger.thaw();
    while test.evidence(&batch(1)).await != Evidence::Committed {}
    assert_eq!(test.received(&batch(1)), 1);
}

#[tokio::test]
async fn invalid_batch_is_rejected_with_the_reason() {
    let test = start();
    let mut wrong = batch(1);
    wrong.transactions[0].payload.push(0);
    let answer = test.send(&wrong).await;
    assert_eq!((answer.outcome, answer.status), (Outcome::Rejected, Some(400)));
    assert!(answer.message.unwrap().starts_with("Submitted Batches Invalid (code 30): "));
}

#[tokio::test]
async fn too_long_batch_is_rejected() {
    let test = start();
    let mut long = batch(1);
    long.transactions[0].payload = vec![0; 10 << 20];
    let answer = test.send(&long).await;
    assert_eq!((answer.outcome, answer.status), (Outcome::Rejected, Some(413)));
}

#[tokio::test]
async fn wrong_url_is_refused() {
    let test = start();
    let url = format!("{}/elsewhere", test.ledger.url());
    let answer = test.sawtooth.send(&url, &submission(&batch(1))).await;
    assert_eq!((answer.outcome, answer.status), (Outcome::Refused, Some(404)));
}

#[tokio::test]
async fn batch_is_pending_then_committed() {
    let test = start_slow();
    assert_eq!(test.status(&batch(1)).await, NotReported);
    assert_eq!(test.evidence(&batch(1)).await, Evidence::Absent);
    test.accept(&batch(1)).await;
    assert_eq!(test.status(&batch(1)).await, Pending);
    assert_eq!(test.evidence(&batch(1)).await, Evidence::Present);
    test.clock.advance(Duration::from_secs(60));
    assert_eq!(test.status(&batch(1)).await, Committed);
    assert_eq!(test.evidence(&batch(1)).await, Evidence::Committed);
}

#[tokio::test]
async fn invalid_batch_has_one_receipt_and_is_forgotten() {
    let test = start_with(|ledger| ledger.refuse(|_| Some("no such name".to_owned())));
    test.accept(&batch(1)).await;
    let report = test.statuses(&[batch(1)]).await.unwrap().remove(0);
    assert_eq!(report.status, Invalid);
    assert_eq!(report.receipts.len(), 1, "{report:?}");
    assert_eq!(report.receipts[0].error_message, "no such name");
    assert_eq!(test.evidence(&batch(1)).await, Evidence::Present);

    test.clock.advance(Duration::from_secs(600));
    test.accept(&batch(2)).await;
    assert_eq!(test.evidence(&batch(1)).await, Evidence::Absent);
}

#[tokio::test]
async fn invalid_from_before_the_post_is_not_reported() {
    let test = start_with(|ledger| {
        ledger.pending_for(Duration::from_secs(60)).refuse(|_| Some("no such name".to_owned()))
    });
    test.accept_elsewhere(&batch(1)).await;
    test.clock.advance(Duration::from_secs(60));
    test.accept(&batch(1)).await;
    assert_eq!(test.status(&batch(1)).await, NotReported);
    assert_eq!(test.evidence(&batch(1)).await, Evidence::Absent);
    test.clock.advance(Duration::from_secs(60));
    assert_eq!(test.status(&batch(1)).await, Invalid);
    assert_eq!(test.evidence(&batch(1)).await, Evidence::Present);
}

#[tokio::test]
async fn batch_that_is_valid_at_last_is_committed() {
    let test = start_with(|ledger| {
        ledger.pending_for(Duration::from_secs(60)).refuse(|_| Some("no such name".to_owned()))
    });
    test.accept_elsewhere(&batch(1)).await;
    test.clock.advance(Duration::from_secs(60));
    test.ledger.refuse(|_| None);
    test.accept(&batch(1)).await;
    assert_eq!(test.status(&batch(1)).await, NotReported);
    test.clock.advance(Duration::from_secs(60));
    assert_eq!(test.status(&batch(1)).await, Committed);
}

#[tokio::test]
async fn restart_keeps_only_committed_batches() {
    let mut test = start_slow();
    test.accept(&batch(1)).await;
    test.clock.advance(Duration::from_secs(60));
    assert_eq!(test.status(&batch(1)).await, Committed);
    test.accept(&batch(2)).await;
    test.ledger.restart();
    // The connections of the first adapter were reset.
    test.sawtooth = sawtooth();
    assert_eq!(test.evidence(&batch(1)).await, Evidence::Committed);
    assert_eq!(test.evidence(&batch(2)).await, Evidence::Absent);
}

#[tokio::test]
async fn transactions_of_a_long_batch_are_asked_about_in_turn() {
    let test = start();
    let all: Vec<u32> = (0..50).collect();
    test.accept(&batch_of(&[49])).await;
    let long = batch_of(&all);
    test.accept(&long).await;
    let mut unresolved = unresolved(&long.header_signature);
    unresolved.transaction_ids =
        long.transactions.iter().map(|t| t.header_signature.parse().unwrap()).collect();
    let reader = test.sawtooth.clone().with_nodes(Nodes::new([test.ledger.url()]));
    let mut looks = 0;
    while reader.find_evidence(&unresolved).await.unwrap().evidence == Evidence::Present {
        looks += 1;
        test.clock.advance(Duration::from_secs(1));
    }
    assert_eq!(looks, 4, "20 in each look, and another look two seconds later");
}

#[tokio::test]
async fn hundred_statuses_are_read_at_once() {
    let test = start();
    let batches: Vec<Batch> = (0..100).map(batch).collect();
    for batch in &batches[..50] {
        test.accept(batch).await;
    }
    let reports = test.statuses(&batches).await.unwrap();
    let expected = batches.iter().enumerate().map(|(number, batch)| StatusReport {
        batch_id: batch.header_signature.clone(),
        status: if number < 50 { Committed } else { NotReported },
        receipts: Vec::new(),
    });
    assert_eq!(reports, expected.collect::<Vec<_>>());
}

#[tokio::test]
async fn status_fault_is_an_error_and_changes_nothing() {
    let test = start().with_short_timeout();
    test.accept(&batch(1)).await;
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
        test.ledger.inject(fault, When::Next(1));
        match test.statuses(&[batch(1), batch(2)]).await.unwrap_err() {
            BatchError::Unavailable(_) => assert!(unavailable, "{fault:?}"),
            BatchError::InvalidAnswer(_) => assert!(!unavailable, "{fault:?}"),
            other => panic!("{fault:?}: {other}"),
        }
        assert_eq!(test.status(&batch(1)).await, Committed, "{fault:?}");
    }
}

#[test]
fn adapter_is_usable_on_one_runtime_after_another() {
    let test = start();
    for number in 0..3 {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            test.accept(&batch(number)).await;
            assert_eq!(test.status(&batch(number)).await, Committed);
            assert_eq!(test.evidence(&batch(number)).await, Evidence::Committed);
        });
    }
    assert_eq!(test.ledger.record().len(), 3);
}
