//! A store and a ledger that tests can block, fail and wait for.

use std::{
    collections::BTreeMap,
    future::ready,
    pin::Pin,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use grid_batch_core::batches::{
    BatchState, Event, LedgerStatus, Progress, StatusReport, transition,
};
use grid_batch_core::evidence::{LedgerQuestionStore, Resolution, UnresolvedBatch};
use grid_batch_core::ledger::AttemptId;
use grid_batch_core::polling::{BatchId, BatchUpdater, PendingBatchStore, PollPace};
use grid_batch_core::{BatchError, BatchResult, Clock, ManualClock, Timestamp};
use grid_batch_poller::{
    Backoff, BatchStatusReader, MonitorOptions, PollingMonitorBuilder, RunningPollingMonitor,
};
pub use grid_batch_test_support::watched::WatchedValue;
use tokio::sync::Semaphore;

type Fault = Box<dyn FnMut(&str) -> BatchResult<()> + Send>;
type Answer = Box<dyn Fn(&str, &[String]) -> AnswerFuture + Send + Sync>;
pub type AnswerFuture = Pin<Box<dyn Future<Output = BatchResult<Vec<StatusReport>>> + Send>>;
pub type Builder = PollingMonitorBuilder<Pending, StatusReport>;
pub type Running = RunningPollingMonitor<Pending, StatusReport>;

pub const SECOND: Duration = Duration::from_secs(1);
pub const HOUR: Duration = Duration::from_hours(1);

/// A row of the store.
#[derive(Debug, Clone)]
pub struct Row {
    pub service: String,
    pub id: String,
    pub submitted_at: Timestamp,
    pub checked_at: Option<Timestamp>,
    pub progress: Progress,
    pub held: bool,
}

/// A call of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    Update(Vec<(String, Vec<(String, LedgerStatus)>)>),
    Checked(Vec<String>),
    ReadUnresolved(String, Vec<String>),
    Resolve(Vec<(String, Resolution)>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    pub service: String,
    pub id: String,
    pub held: bool,
}

impl BatchId for Pending {
    fn get_id(&self) -> &str {
        &self.id
    }

    fn get_service_id(&self) -> &str {
        &self.service
    }

    fn is_held(&self) -> bool {
        self.held
    }
}

/// A store in memory that applies core's `transition`. Clones share its state.
#[derive(Clone)]
pub struct Store(Arc<StoreState>);

pub struct StoreState {
    pub clock: Arc<ManualClock>,
    pub rows: WatchedValue<Vec<Row>>,
    pub calls: WatchedValue<Vec<Call>>,
    /// The pace of each read of due batches.
    pub reads_at: WatchedValue<Vec<PollPace>>,
    /// Decides whether a call with this name fails.
    fault: Mutex<Fault>,
}

impl std::ops::Deref for Store {
    type Target = StoreState;

    fn deref(&self) -> &StoreState {
        &self.0
    }
}

impl Store {
    pub fn new() -> Self {
        let now = Timestamp::from_micros(1_000_000_000_000);
        Self(Arc::new(StoreState {
            clock: Arc::new(ManualClock::at(now)),
            rows: WatchedValue::default(),
            calls: WatchedValue::default(),
            reads_at: WatchedValue::default(),
            fault: Mutex::new(Box::new(|_| Ok(()))),
        }))
    }

    /// One pending batch for each of these services, all submitted about a minute ago, in this order.
    pub fn with(services: &[&str]) -> Self {
        let store = Self::new();
        for (number, service) in services.iter().enumerate() {
            let age = SECOND * 60 - Duration::from_micros(number as u64);
            store.add(service, number, BatchState::Pending, age);
        }
        store
    }

    pub fn add(&self, service: &str, number: usize, state: BatchState, age: Duration) {
        let now = self.clock.now().as_micros();
        let row = Row {
            service: service.to_owned(),
            id: batch(number),
            submitted_at: Timestamp::from_micros(now - age.as_micros() as i64),
            checked_at: None,
            progress: first_attempt(state),
            held: false,
        };
        self.rows.change(|rows| rows.push(row));
    }

    pub fn fail(&self, fault: impl FnMut(&str) -> BatchResult<()> + Send + 'static) {
        *self.fault.lock().unwrap() = Box::new(fault);
    }

    pub fn state(&self, number: usize) -> BatchState {
        let id = batch(number);
        self.rows.change(|rows| rows.iter().find(|row| row.id == id).unwrap().progress.state)
    }

    #[track_caller]
    pub fn wait_for_state(&self, number: usize, state: BatchState) {
        let id = batch(number);
        self.rows.wait_until(|rows| rows.iter().any(|r| r.id == id && r.progress.state == state));
    }

    #[track_caller]
    pub fn wait_for_calls(&self, holds: impl Fn(&[Call]) -> bool) {
        self.calls.wait_until(|calls| holds(calls));
    }

    /// The resolutions that were written, in order.
    pub fn resolutions(&self) -> Vec<Resolution> {
        resolutions(&self.calls.get())
    }

    #[track_caller]
    pub fn wait_for_resolutions(&self, count: usize) {
        self.wait_for_calls(|calls| resolutions(calls).len() >= count);
    }

    /// Advances the clock by minutes until `holds` is true.
    #[track_caller]
    pub fn pass_time_until(&self, holds: impl Fn() -> bool) {
        until(|| {
            self.clock.advance(SECOND * 60);
            holds()
        });
    }

    fn try_call(&self, name: &str) -> BatchResult<()> {
        let mut fault = self.fault.lock().unwrap_or_else(|poison| poison.into_inner());
        fault(name)
    }

    fn record(&self, call: Call) {
        self.calls.change(|calls| calls.push(call));
    }

    fn apply_event(&self, id: &str, event: Event) {
        let now = self.clock.now();
        self.rows.change(|rows| {
            let row = rows.iter_mut().find(|row| row.id == id).unwrap();
            row.progress = transition(row.progress, event).unwrap_or(row.progress);
            row.checked_at = Some(now);
        });
    }

    fn pending(&self, chosen: impl Fn(&Row) -> bool, limit: usize) -> Vec<Pending> {
        let mut rows = self.rows.get();
        rows.retain(|row| row.progress.state.awaits_poller() && chosen(row));
        rows.sort_by_key(|row| (row.checked_at, row.submitted_at));
        rows.truncate(limit);
        let pending = |Row { service, id, held, .. }| Pending { service, id, held };
        rows.into_iter().map(pending).collect()
    }
}

fn resolutions(calls: &[Call]) -> Vec<Resolution> {
    let resolved = calls.iter().filter_map(|call| match call {
        Call::Resolve(resolutions) => Some(resolutions.clone()),
        _ => None,
    });
    resolved.flatten().map(|(_, resolution)| resolution).collect()
}

impl PendingBatchStore for Store {
    type Id = Pending;

    fn get_pending_batch_ids(&self, limit: usize) -> BatchResult<Vec<Pending>> {
        Ok(self.pending(|_| true, limit))
    }

    fn get_due_batch_ids(
        &self,
        now: Timestamp,
        pace: PollPace,
        limit: usize,
    ) -> BatchResult<Option<Vec<Pending>>> {
        self.reads_at.change(|paces| paces.push(pace));
        self.try_call("due")?;
        let is_due = |row: &Row| pace.next_check(row.submitted_at, row.checked_at) <= now;
        Ok(Some(self.pending(is_due, limit)))
    }

    fn get_pending_batch_ids_of(
        &self,
        services: &[String],
        limit: usize,
    ) -> BatchResult<Option<Vec<Pending>>> {
        self.try_call("of")?;
        Ok(Some(self.pending(|row| services.contains(&row.service), limit)))
    }

    fn mark_checked(&self, batches: &[Pending]) -> BatchResult<()> {
        self.try_call("checked")?;
        batches.iter().for_each(|batch| {
            self.apply_event(&batch.id, Event::status(LedgerStatus::NotReported))
        });
        self.record(Call::Checked(batches.iter().map(|batch| batch.id.clone()).collect()));
        Ok(())
    }
}

impl BatchUpdater for Store {
    type Status = StatusReport;

    fn update_batch_statuses(&self, service: &str, reports: &[StatusReport]) -> BatchResult<()> {
        self.try_call(&format!("update {service}"))?;
        self.apply(&[(service.to_owned(), reports.to_vec())]);
        Ok(())
    }

    fn update_groups(&self, groups: &[(String, Vec<StatusReport>)]) -> BatchResult<()> {
        self.try_call("groups")?;
        self.apply(groups);
        Ok(())
    }
}

impl Store {
    fn apply(&self, groups: &[(String, Vec<StatusReport>)]) {
        let mut updates = Vec::new();
        for (service, reports) in groups {
            for report in reports {
                self.apply_event(&report.batch_id, Event::status(report.status));
            }
            let pairs = reports.iter().map(|report| (report.batch_id.clone(), report.status));
            updates.push((service.clone(), pairs.collect()));
        }
        self.record(Call::Update(updates));
    }
}

impl LedgerQuestionStore for Store {
    fn get_unresolved_batches(
        &self,
        service: &str,
        ids: &[String],
    ) -> BatchResult<Vec<UnresolvedBatch>> {
        self.record(Call::ReadUnresolved(service.to_owned(), ids.to_vec()));
        self.try_call("unresolved")?;
        let mut rows = self.rows.get();
        rows.retain(|row| ids.contains(&row.id) && row.progress.state.awaits_poller());
        let unresolved = |row: Row| UnresolvedBatch {
            transaction_ids: vec![row.id.parse().unwrap()],
            submitted_at: row.submitted_at,
            since: row.submitted_at,
            held: row.held,
            earlier_may_arrive: row.progress.earlier_may_arrive,
            invalid_reported: row.progress.invalid_reported,
            ..UnresolvedBatch::new(
                row.service.parse().unwrap(),
                row.id.parse().unwrap(),
                AttemptId { attempt: row.progress.attempts, epoch: 1 },
                row.progress.state,
            )
        };
        Ok(rows.into_iter().map(unresolved).collect())
    }

    fn resolve(&self, resolutions: &[(UnresolvedBatch, Resolution)]) -> BatchResult<()> {
        self.try_call("resolve")?;
        for (batch, resolution) in resolutions {
            let id = batch.batch_id.to_string();
            match resolution {
                Resolution::Evidence(evidence) => {
                    let attempt = batch.attempt_id.attempt;
                    self.apply_event(&id, Event::Evidence { attempt, evidence: *evidence });
                }
                Resolution::Invalid(evidence, _) => {
                    let (attempt, evidence) = (batch.attempt_id.attempt, *evidence);
                    self.apply_event(&id, Event::Evidence { attempt, evidence });
                }
                Resolution::EarlierCannotArrive => {
                    let attempt = batch.attempt_id.attempt;
                    self.apply_event(&id, Event::EarlierCannotArrive { attempt });
                }
                Resolution::Hold(_) | Resolution::HoldUntilDecision(_) => {
                    self.rows.change(|rows| {
                        rows.iter_mut().find(|row| row.id == id).unwrap().held = true;
                    })
                }
            }
        }
        let pair = |(batch, resolution): &(UnresolvedBatch, Resolution)| {
            (batch.batch_id.to_string(), resolution.clone())
        };
        self.record(Call::Resolve(resolutions.iter().map(pair).collect()));
        Ok(())
    }
}

/// A status request that the ledger received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub service: String,
    pub ids: Vec<String>,
    pub at: Instant,
}

/// A ledger whose answers are computed by a function.
pub struct Ledger {
    pub connections: usize,
    pub requests: WatchedValue<Vec<Request>>,
    /// The number of requests in flight now, and its maximum so far.
    pub in_flight: WatchedValue<(usize, usize)>,
    answer: Answer,
}

impl Ledger {
    pub fn new(answer: impl Fn(&str, &[String]) -> AnswerFuture + Send + Sync + 'static) -> Self {
        let (requests, in_flight) = (WatchedValue::default(), WatchedValue::default());
        Self { connections: 100, requests, in_flight, answer: Box::new(answer) }
    }

    /// A ledger that reports this status for every batch.
    pub fn reporting(status: LedgerStatus) -> Self {
        Self::new(move |_, ids| answer(all(ids, status)))
    }

    /// The same, but each answer waits for a permit of the gate.
    pub fn gated(gate: &Arc<Semaphore>, status: LedgerStatus) -> Self {
        let gate = Arc::clone(gate);
        Self::new(move |_, ids| {
            let (gate, reports) = (Arc::clone(&gate), all(ids, status));
            Box::pin(async move {
                gate.acquire().await.unwrap().forget();
                Ok(reports)
            })
        })
    }

    pub fn with_connections(self, connections: usize) -> Self {
        Self { connections, ..self }
    }

    /// Waits for this many requests in total.
    #[track_caller]
    pub fn wait_for(&self, count: usize) {
        self.requests.wait_until(|requests| requests.len() >= count);
    }

    /// Counts a request that starts.
    pub fn begin(&self) {
        self.in_flight.change(|(now, most)| {
            *now += 1;
            *most = (*most).max(*now);
        });
    }

    pub fn end(&self) {
        self.in_flight.change(|(now, _)| *now -= 1);
    }

    /// The number of requests for each service.
    pub fn requests_by_service(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for request in self.requests.get() {
            *counts.entry(request.service).or_default() += 1;
        }
        counts
    }
}

impl BatchStatusReader for Ledger {
    type Status = StatusReport;

    fn get_batch_statuses<'a>(
        &'a self,
        service: &'a str,
        ids: &'a [String],
    ) -> BorrowedAnswerFuture<'a> {
        let request =
            Request { service: service.to_owned(), ids: ids.to_vec(), at: Instant::now() };
        self.requests.change(|all| all.push(request));
        let answer = (self.answer)(service, ids);
        Box::pin(async move {
            self.begin();
            let answer = answer.await;
            self.end();
            answer
        })
    }

    fn available_connections(&self) -> usize {
        self.connections
    }
}

pub type BorrowedAnswerFuture<'a> =
    Pin<Box<dyn Future<Output = BatchResult<Vec<StatusReport>>> + Send + 'a>>;

/// Progress in this state at the first attempt.
pub fn first_attempt(state: BatchState) -> Progress {
    Progress { state, attempts: 1, ..Progress::NEW }
}

/// The id of a batch. The order of ids is that of their numbers.
pub fn batch(number: usize) -> String {
    format!("{number:0128x}")
}

pub fn report(id: &str, status: LedgerStatus) -> StatusReport {
    StatusReport { batch_id: id.to_owned(), status, receipts: Vec::new() }
}

pub fn all(ids: &[String], status: LedgerStatus) -> Vec<StatusReport> {
    ids.iter().map(|id| report(id, status)).collect()
}

pub fn answer(reports: Vec<StatusReport>) -> AnswerFuture {
    Box::pin(ready(Ok(reports)))
}

pub fn unavailable() -> BatchError {
    BatchError::Unavailable("injected by the test".to_owned())
}

/// Waits for a condition that is not `WatchedValue`.
#[track_caller]
pub fn until(holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < SECOND * 30, "the condition did not become true in time");
        std::thread::yield_now();
    }
}

/// Options with short delays and long limits.
pub fn options() -> MonitorOptions {
    MonitorOptions {
        poll_interval: Duration::from_millis(2),
        shortest_interval: Some(Duration::from_millis(10)),
        requests_per_second: 1_000_000_000,
        trigger_gap: Duration::ZERO,
        answer_limit: HOUR,
        drain_limit: HOUR,
        store_backoff: Backoff {
            first: Duration::from_millis(1),
            longest: Duration::from_millis(4),
        },
        seed: Some(1),
        ..MonitorOptions::default()
    }
}

/// Options with which the monitor polls once, and then only when it is triggered.
pub fn hourly() -> MonitorOptions {
    MonitorOptions { poll_interval: HOUR, longest_interval: HOUR, ..options() }
}

/// A builder of a monitor without evidence.
pub fn builder(store: &Store, ledger: &Arc<Ledger>) -> Builder {
    let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(&store.clock);
    Builder::new()
        .with_store(store.clone())
        .with_updater(store.clone())
        .with_reader(Arc::<Ledger>::clone(ledger))
        .with_clock(clock)
        .with_options(options())
}

pub fn run(builder: Builder) -> Running {
    builder.build().unwrap().run().unwrap()
}
