//! A simulated ledger, an adapter for it, and a clock that both go by.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{FutureExt, StreamExt};
use grid_batch_core::{
    AttemptId, BatchResult, BatchState, BatchStatusReader, Evidence, EvidenceReader,
    LedgerEventStream, LedgerEvents, LedgerStatus, ManualClock, Outcome, StatusReport,
    SubmissionSender, Timestamp, UnresolvedBatch,
};
use grid_batch_http::HttpOptions;
use grid_batch_ledger_sim::{Fault, LedgerSim, LedgerSimBuilder, Verdict, When};
use grid_batch_scabbard::{Scabbard, ScabbardOptions};

use crate::{
    batches::{SERVICE, id, scope, submission, token, transaction_id},
    nodes::Nodes,
};

pub struct World {
    pub ledger: LedgerSim,
    pub scabbard: Scabbard,
    clock: Arc<ManualClock>,
    /// The last attempt at each batch.
    attempts: Mutex<HashMap<u32, u32>>,
}

impl World {
    pub fn new() -> Self {
        Self::with(|ledger| ledger, [])
    }

    /// A ledger like this; and other addresses, of which the adapter believes that they are nodes.
    pub fn with(
        set: impl FnOnce(LedgerSimBuilder) -> LedgerSimBuilder,
        others: impl IntoIterator<Item = String>,
    ) -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000)));
        let builder = LedgerSim::scabbard([scope()]).clock(clock.clone()).seed(1);
        let ledger = set(builder).start().unwrap();
        let urls = [ledger.url()].into_iter().chain(others);
        let http = HttpOptions {
            request_timeout: Duration::from_millis(500),
            max_response_bytes: 1_000_000,
            ..HttpOptions::default()
        };
        let options = ScabbardOptions { http, clock: clock.clone(), ..ScabbardOptions::default() };
        let scabbard = Scabbard::new(&token(), Nodes::at(urls), options).unwrap();
        Self { ledger, scabbard, clock, attempts: Mutex::default() }
    }

    /// Sends a batch for the first time.
    pub async fn send(&self, number: u32) -> Outcome {
        self.send_again(number, 1).await
    }

    pub async fn send_again(&self, number: u32, attempt: u32) -> Outcome {
        self.attempts.lock().unwrap().insert(number, attempt);
        let sender = self.scabbard.sender();
        sender.send(&self.ledger.url(), &submission(number, attempt)).await.outcome
    }

    /// Sends a batch, and something goes wrong with that.
    pub async fn send_into(&self, fault: Fault, number: u32) -> Outcome {
        self.ledger.inject(fault, When::Next(1));
        self.send(number).await
    }

    pub async fn statuses(
        &self,
        numbers: impl IntoIterator<Item = u32>,
    ) -> BatchResult<Vec<StatusReport>> {
        let ids: Vec<_> = numbers.into_iter().map(id).collect();
        self.scabbard.status_reader().get_batch_statuses(SERVICE, &ids).await
    }

    pub async fn status(&self, number: u32) -> LedgerStatus {
        self.statuses([number]).await.unwrap().remove(0).status
    }

    pub async fn evidence(&self, number: u32) -> Evidence {
        self.scabbard.evidence_reader().find_evidence(&self.doubt(number)).await.unwrap()
    }

    /// The doubt about a batch at the attempt that was last made.
    pub fn doubt(&self, number: u32) -> UnresolvedBatch {
        let attempt = self.attempts.lock().unwrap().get(&number).copied().unwrap_or(1);
        UnresolvedBatch {
            service_id: SERVICE.parse().unwrap(),
            batch_id: id(number).parse().unwrap(),
            transaction_ids: vec![transaction_id(number).parse().unwrap()],
            attempt_id: AttemptId { attempt, epoch: 1 },
            state: BatchState::InDoubt,
            submitted_at: Timestamp::default(),
            since: Timestamp::default(),
            held: false,
        }
    }

    /// Looks for evidence now, and again after this many seconds.
    pub async fn evidence_after(&self, number: u32, seconds: u64) -> Evidence {
        self.evidence(number).await;
        self.pass(seconds);
        self.evidence(number).await
    }

    pub async fn listen(&self) -> LedgerEventStream {
        self.scabbard.events().subscribe(SERVICE).await.unwrap()
    }

    /// Restarts the ledger, and gets over the connections that end with that.
    pub async fn restart(&self) {
        self.ledger.restart();
        while self.statuses([0]).await.is_err() {}
    }

    pub fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// How often batches were applied.
    pub fn applied(&self) -> usize {
        let record = self.ledger.record();
        record.iter().filter(|entry| entry.verdict == Verdict::Applied).count()
    }
}

/// The transaction of the next event.
pub async fn next(events: &mut LedgerEventStream) -> String {
    events.next().await.unwrap().unwrap().transaction_id.unwrap()
}

/// Takes all that has come, without waiting for more.
pub fn catch_up(events: &mut LedgerEventStream) {
    while let Some(event) = events.next().now_or_never() {
        event.unwrap().unwrap();
    }
}

/// Waits until the stream has broken, and ended.
pub async fn broken(events: &mut LedgerEventStream) {
    while events.next().await.is_some_and(|event| event.is_ok()) {}
    assert!(events.next().await.is_none());
}
