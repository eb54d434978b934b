//! A simulated ledger and an adapter for it, with one clock.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{FutureExt, StreamExt};
use grid_batch_core::batches::{BatchState, LedgerStatus, StatusReport};
use grid_batch_core::evidence::{Evidence, EvidenceReport, UnresolvedBatch};
use grid_batch_core::ledger::{AttemptId, Ledger, LedgerEventStream, Outcome};
use grid_batch_core::{BatchResult, Clock, ManualClock, PeerService, Timestamp};
use grid_batch_http::HttpOptions;
use grid_batch_ledger_sim::{
    ExecutionResult, Fault, LedgerSim, LedgerSimBuilder, RequestKind, When,
};
use grid_batch_scabbard::{NewBatchRules, Scabbard, ScabbardOptions};

use crate::{
    batches::{SERVICE, id, scope, submission, token, transaction_id},
    memory_history::MemoryHistory,
    nodes::Nodes,
};

pub struct TestLedger {
    pub sim: LedgerSim,
    pub scabbard: Scabbard,
    clock: Arc<ManualClock>,
    /// The last attempt at each batch.
    attempts: Mutex<HashMap<u32, u32>>,
}

impl TestLedger {
    pub fn new() -> Self {
        Self::with(|ledger| ledger, [])
    }

    /// A ledger with this configuration; the adapter also queries the `others` as its nodes.
    pub fn with(
        configure: impl FnOnce(LedgerSimBuilder) -> LedgerSimBuilder,
        others: impl IntoIterator<Item = String>,
    ) -> Self {
        Self::with_peers(configure, others, |_, _| Vec::new())
    }

    /// The same, with the peers that are returned for the ledger and its clock.
    pub fn with_peers(
        configure: impl FnOnce(LedgerSimBuilder) -> LedgerSimBuilder,
        others: impl IntoIterator<Item = String>,
        peers: impl FnOnce(&LedgerSim, Arc<ManualClock>) -> Vec<PeerService>,
    ) -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000)));
        let builder = LedgerSim::scabbard([scope()]).clock(clock.clone()).seed(1);
        let sim = configure(builder).start().unwrap();
        let urls = [sim.url()].into_iter().chain(others);
        let http = HttpOptions {
            request_timeout: Duration::from_secs(2),
            max_response_bytes: 1_000_000,
            ..HttpOptions::default()
        };
        let peers = peers(&sim, clock.clone());
        let options =
            ScabbardOptions { http, peers, clock: clock.clone(), ..ScabbardOptions::default() };
        let scabbard = Scabbard::new(&token(), Nodes::at(urls), options).unwrap();
        Self { sim, scabbard, clock, attempts: Mutex::default() }
    }

    /// The same, with an adapter that uses this history of the service.
    pub fn with_service_history(self, history: &Arc<MemoryHistory>) -> Self {
        self.with_rules(history, NewBatchRules::default())
    }

    pub fn with_rules(self, history: &Arc<MemoryHistory>, rules: NewBatchRules) -> Self {
        let scabbard =
            self.scabbard.with_commit_history(Arc::<MemoryHistory>::clone(history), rules);
        Self { scabbard, ..self }
    }

    /// The same ledger and store, with a newly started adapter.
    pub fn with_new_adapter(self, history: &Arc<MemoryHistory>) -> Self {
        let options = ScabbardOptions { clock: self.clock.clone(), ..ScabbardOptions::default() };
        let nodes = Nodes::at([self.sim.url()]);
        let scabbard = Scabbard::new(&token(), nodes, options).unwrap();
        Self { scabbard, ..self }.with_service_history(history)
    }

    /// Sends a batch like another client of the ledger.
    pub async fn send_past_the_adapter(&self, number: u32) {
        let other =
            Scabbard::new(&token(), Nodes::at([self.sim.url()]), ScabbardOptions::default());
        let sent = other.unwrap().send(&self.sim.url(), &submission(number, 1)).await;
        assert_eq!(sent.outcome, Outcome::Accepted);
    }

    /// The number of POSTs of a batch.
    pub fn times_received(&self, number: u32) -> usize {
        self.sim.times_received(&id(number).parse().unwrap())
    }

    /// The number of status requests about a batch.
    pub fn questions(&self, number: u32) -> usize {
        let id = id(number).parse().unwrap();
        let requests = self.sim.requests();
        let about = requests.iter().filter(|request| request.batch_ids.contains(&id));
        about.filter(|request| request.kind == RequestKind::Statuses).count()
    }

    /// Sends a batch for the first time.
    pub async fn send(&self, number: u32) -> Outcome {
        self.send_again(number, 1).await
    }

    pub async fn send_again(&self, number: u32, attempt: u32) -> Outcome {
        self.attempts.lock().unwrap().insert(number, attempt);
        let sender = &self.scabbard;
        sender.send(&self.sim.url(), &submission(number, attempt)).await.outcome
    }

    /// Ends an attempt, as at its time limit, while the node is still asked whether it has the batch.
    pub async fn end_before_the_post(&self, number: u32, attempt: u32) {
        let received = self.times_received(number);
        assert_eq!(self.send_again(number, attempt).now_or_never(), None);
        assert_eq!(self.times_received(number), received);
    }

    /// Sends a batch with this fault.
    pub async fn send_with_fault(&self, fault: Fault, number: u32) -> Outcome {
        self.sim.inject(fault, When::Next(1));
        self.send(number).await
    }

    pub async fn statuses(
        &self,
        numbers: impl IntoIterator<Item = u32>,
    ) -> BatchResult<Vec<StatusReport>> {
        let ids: Vec<_> = numbers.into_iter().map(id).collect();
        self.scabbard.statuses(SERVICE, &ids).await
    }

    pub async fn status(&self, number: u32) -> LedgerStatus {
        self.statuses([number]).await.unwrap().remove(0).status
    }

    pub async fn evidence(&self, number: u32) -> Evidence {
        self.report(number).await.evidence
    }

    pub async fn report(&self, number: u32) -> EvidenceReport {
        self.try_report(number).await.unwrap()
    }

    pub async fn try_report(&self, number: u32) -> BatchResult<EvidenceReport> {
        let reader = &self.scabbard;
        reader.find_evidence(&self.unresolved(number)).await
    }

    /// The unresolved batch at its last attempt.
    pub fn unresolved(&self, number: u32) -> UnresolvedBatch {
        let attempt = self.attempts.lock().unwrap().get(&number).copied().unwrap_or(1);
        UnresolvedBatch {
            transaction_ids: vec![transaction_id(number).parse().unwrap()],
            ..UnresolvedBatch::new(
                SERVICE.parse().unwrap(),
                id(number).parse().unwrap(),
                AttemptId { attempt, epoch: 1 },
                BatchState::InDoubt,
            )
        }
    }

    /// The evidence about a batch with the transactions of these batches.
    pub async fn evidence_with_transactions(&self, number: u32, of: &[u32]) -> Evidence {
        let transaction_ids = of.iter().map(|of| transaction_id(*of).parse().unwrap()).collect();
        let batch = UnresolvedBatch { transaction_ids, ..self.unresolved(number) };
        self.scabbard.find_evidence(&batch).await.unwrap().evidence
    }

    /// Searches for evidence twice, this many seconds apart, and returns the second result.
    pub async fn evidence_after(&self, number: u32, seconds: u64) -> Evidence {
        self.evidence(number).await;
        self.advance(seconds);
        self.evidence(number).await
    }

    pub async fn subscribe(&self) -> LedgerEventStream {
        let events = self.scabbard.events(SERVICE).await.unwrap();
        // This is longer than a POST waits for the replay.
        self.advance(1);
        events
    }

    /// Restarts the ledger, and makes a request so that reset connections are not used later.
    pub async fn restart(&self) {
        self.sim.restart();
        while self.statuses([0]).await.is_err() {}
    }

    /// Moves the time of day by this many seconds, while no time elapses.
    pub fn jump(&self, seconds: i64) {
        let micros = self.clock.now().as_micros() + seconds * 1_000_000;
        self.clock.set(Timestamp::from_micros(micros));
    }

    pub fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// The number of times that batches were applied.
    pub fn applied_count(&self) -> usize {
        let record = self.sim.record();
        record.iter().filter(|entry| entry.result == ExecutionResult::Applied).count()
    }
}

/// Reads all events in the background, as the poller does.
pub fn read_in_background(mut events: LedgerEventStream) {
    tokio::spawn(async move { while events.next().await.is_some_and(|event| event.is_ok()) {} });
}

/// The transaction of the next event.
pub async fn next(events: &mut LedgerEventStream) -> String {
    events.next().await.unwrap().unwrap().transaction_id.unwrap()
}

/// Processes all received events, without waiting for more.
pub fn catch_up(events: &mut LedgerEventStream) {
    while let Some(event) = events.next().now_or_never() {
        event.unwrap().unwrap();
    }
}

/// Waits until the stream has ended with an error.
pub async fn wait_until_broken(events: &mut LedgerEventStream) {
    while events.next().await.is_some_and(|event| event.is_ok()) {}
    assert!(events.next().await.is_none());
}
