//! A node that loses a batch. Evidence distinguishes a crash from a batch that stopped its node.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt;
use grid_batch_core::ManualClock;
use grid_batch_core::batches::BatchState;
use grid_batch_core::evidence::{Evidence, EvidenceReport, UnresolvedBatch};
use grid_batch_core::ledger::Ledger;
use grid_batch_http::HttpOptions;
use grid_batch_ledger_sim::{Fault, LedgerSim, When};
use grid_batch_sawtooth::{Sawtooth, SawtoothOptions};
use tokio::net::TcpListener;

use crate::batches::{Nodes, SERVICE, batch, submission, unresolved};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

const PENDING_FOR: Duration = Duration::from_secs(60);

/// A node that executes batches on request of the test.
struct TestNode {
    ledger: LedgerSim,
    clock: Arc<ManualClock>,
    sawtooth: Sawtooth,
}

impl TestNode {
    /// A node that has committed batch 2, and to which this adapter has sent batch 1.
    async fn with_batch() -> Self {
        let clock = Arc::new(ManualClock::default());
        let ledger = LedgerSim::sawtooth().clock(clock.clone()).pending_for(PENDING_FOR);
        let http = HttpOptions { request_timeout: REQUEST_TIMEOUT, ..HttpOptions::default() };
        let lost_after = Duration::from_millis(1);
        let options = SawtoothOptions { http, lost_after, ..SawtoothOptions::default() };
        let sawtooth = Sawtooth::new(options, Nodes::none()).unwrap();
        let test = Self { ledger: ledger.start().unwrap(), clock, sawtooth };
        assert_eq!(test.send(2).await, Some(202));
        test.execute();
        assert_eq!(test.send(1).await, Some(202));
        test
    }

    /// A node that was stopped by batch 1.
    async fn stopped_by_batch() -> Self {
        let test = Self::with_batch().await;
        test.ledger.inject(Fault::NoProcessor, When::Next(1));
        test.execute();
        test
    }

    fn execute(&self) {
        self.clock.advance(PENDING_FOR);
        self.ledger.record();
    }

    async fn send(&self, number: u32) -> Option<u16> {
        let submission = submission(&batch(number));
        self.sawtooth.send(&self.ledger.url(), &submission).await.status
    }

    /// Asks for the status of the batch. The test controls whether there is an answer.
    async fn ask_status(&self) -> bool {
        let reader = self.sawtooth.clone().with_nodes(Nodes::new([self.ledger.url()]));
        reader.statuses(SERVICE, &[batch(1).header_signature]).await.is_ok()
    }

    async fn evidence(&self, state: BatchState) -> EvidenceReport {
        let reader = self.sawtooth.clone().with_nodes(Nodes::new([self.ledger.url()]));
        let batch = UnresolvedBatch { state, ..unresolved(&batch(1).header_signature) };
        reader.find_evidence(&batch).await.unwrap()
    }
}

#[tokio::test]
async fn accepted_batch_is_lost_after_a_restart() {
    let test = TestNode::with_batch().await;
    assert_eq!(test.evidence(BatchState::Pending).await.evidence, Evidence::Present);
    test.ledger.restart();
    // A connection that was kept open was reset.
    let _ = test.ask_status().await;
    assert_eq!(test.evidence(BatchState::Pending).await.evidence, Evidence::Lost);
    assert_eq!(test.evidence(BatchState::Valid).await.evidence, Evidence::Lost);
    let in_doubt = test.evidence(BatchState::InDoubt).await;
    assert_eq!(in_doubt.evidence, Evidence::Absent, "it may still arrive");
}

#[tokio::test]
async fn accepted_batch_is_absent_without_an_outage() {
    let test = TestNode::with_batch().await;
    let other =
        UnresolvedBatch { state: BatchState::Pending, ..unresolved(&batch(3).header_signature) };
    let reader = test.sawtooth.clone().with_nodes(Nodes::new([test.ledger.url()]));
    assert_eq!(reader.find_evidence(&other).await.unwrap().evidence, Evidence::Absent);
}

#[tokio::test]
async fn warning_on_the_websocket_shows_a_crash() {
    let test = TestNode::with_batch().await;
    let mut events = test
        .sawtooth
        .clone()
        .with_nodes(Nodes::new([test.ledger.url()]))
        .events(SERVICE)
        .await
        .unwrap();
    assert!(events.next().await.unwrap().is_ok(), "the newest block");
    let waiting = tokio::spawn(async move { events.next().await });
    test.ledger.crash_validator(Duration::from_secs(300));
    // The REST API of the crashed validator hangs as well.
    for _ in 0..3 {
        assert!(!test.ask_status().await);
    }
    test.ledger.start_validator();
    assert_eq!(test.evidence(BatchState::Pending).await.evidence, Evidence::Lost);
    waiting.abort();
}

#[tokio::test]
async fn subscription_that_breaks_while_it_opens_shows_a_crash() {
    let test = TestNode::with_batch().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let crashing = format!("http://{}", listener.local_addr().unwrap());
    let closing = tokio::spawn(async move { drop(listener.accept().await.unwrap()) });
    assert!(
        test.sawtooth.clone().with_nodes(Nodes::new([crashing])).events(SERVICE).await.is_err()
    );
    closing.await.unwrap();
    // Another process has sent it, so it may have been at that node.
    let other =
        UnresolvedBatch { state: BatchState::Pending, ..unresolved(&batch(3).header_signature) };
    let reader = test.sawtooth.clone().with_nodes(Nodes::new([test.ledger.url()]));
    assert_eq!(reader.find_evidence(&other).await.unwrap().evidence, Evidence::Lost);
}

#[tokio::test]
async fn batch_under_which_a_node_hung_stopped_it() {
    let test = TestNode::stopped_by_batch().await;
    assert!(!test.ask_status().await);
    // While a node does not answer, the server only asks which ledger it belongs to.
    let url = test.ledger.url();
    for _ in 0..2 {
        assert!(test.sawtooth.identity(&url).await.is_err());
    }
    test.ledger.start_validator();
    let report = test.evidence(BatchState::Pending).await;
    assert_eq!(report.evidence, Evidence::StoppedNode);
    let detail = report.detail.unwrap();
    assert!(detail.starts_with(&format!("{url} accepted requests and answered none for ")));
}

#[tokio::test]
async fn attempt_after_a_hang_did_not_stop_the_node() {
    let test = TestNode::stopped_by_batch().await;
    for _ in 0..3 {
        assert!(!test.ask_status().await);
    }
    test.ledger.start_validator();
    test.ledger.inject(Fault::Busy, When::Next(1));
    assert_eq!(test.send(1).await, Some(429));
    assert_eq!(test.evidence(BatchState::Pending).await.evidence, Evidence::Absent);
}

#[tokio::test]
async fn batch_that_is_there_after_a_hang_is_present() {
    let test = TestNode::with_batch().await;
    test.ledger.freeze();
    for _ in 0..3 {
        assert!(!test.ask_status().await);
    }
    test.ledger.thaw();
    assert_eq!(test.evidence(BatchState::Pending).await.evidence, Evidence::Present);
}
