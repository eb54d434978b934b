//! A store, a ledger and events that tests can hold up, and wait for.

use std::{
    collections::BTreeMap,
    future::ready,
    pin::Pin,
    sync::{Arc, Condvar, Mutex},
    time::{Duration, Instant},
};

use grid_batch_core::{
    AttemptId, BatchError, BatchId, BatchResult, BatchState, BatchStatusReader, BatchUpdater,
    Clock, Event, LedgerStatus, ManualClock, PendingBatchStore, PollPace, Progress, Resolution,
    StatusReport, Timestamp, UnresolvedBatch, UnresolvedBatchStore, transition,
};
use grid_batch_poller::{Backoff, MonitorOptions, PollingMonitorBuilder, RunningPollingMonitor};
use tokio::sync::Semaphore;

type Fault = Box<dyn FnMut(&str) -> BatchResult<()> + Send>;
type Answer = Box<dyn Fn(&str, &[String]) -> Answering + Send + Sync>;
pub type Answering = Pin<Box<dyn Future<Output = BatchResult<Vec<StatusReport>>> + Send>>;
pub type Builder = PollingMonitorBuilder<Pending, StatusReport>;
pub type Running = RunningPollingMonitor<Pending, StatusReport>;

pub const SECOND: Duration = Duration::from_secs(1);
pub const HOUR: Duration = Duration::from_hours(1);

/// A value that can be waited for.
pub struct Watched<T>(Mutex<T>, Condvar);

impl<T: Default> Default for Watched<T> {
    fn default() -> Self {
        Self(Mutex::default(), Condvar::new())
    }
}

impl<T> Watched<T> {
    pub fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = change(&mut self.0.lock().unwrap());
        self.1.notify_all();
        result
    }

    /// Waits until this holds; fails the test when it does not in a time that is long for anything.
    #[track_caller]
    pub fn wait_until(&self, holds: impl Fn(&T) -> bool) {
        let value = self.0.lock().unwrap();
        let waited = self.1.wait_timeout_while(value, Duration::from_secs(30), |v| !holds(v));
        assert!(!waited.unwrap().1.timed_out(), "what is waited for does not happen");
    }
}

impl<T: Clone> Watched<T> {
    pub fn get(&self) -> T {
        self.0.lock().unwrap().clone()
    }
}

/// A batch as the store keeps it.
#[derive(Debug, Clone)]
pub struct Row {
    pub service: String,
    pub id: String,
    pub submitted_at: Timestamp,
    pub checked_at: Option<Timestamp>,
    pub progress: Progress,
    pub held: bool,
}

/// What the store was told, and which doubts it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    Update(Vec<(String, Vec<(String, LedgerStatus)>)>),
    Checked(Vec<String>),
    Doubts(String, Vec<String>),
    Settle(Vec<(String, Resolution)>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    pub service: String,
    pub id: String,
}

impl BatchId for Pending {
    fn get_id(&self) -> &str {
        &self.id
    }

    fn get_service_id(&self) -> &str {
        &self.service
    }
}

/// A store in memory that goes by core's rules. Clones share everything.
#[derive(Clone)]
pub struct Store(Arc<Shared>);

pub struct Shared {
    pub clock: Arc<ManualClock>,
    pub rows: Watched<Vec<Row>>,
    pub calls: Watched<Vec<Call>>,
    /// The paces it was asked at.
    pub paces: Watched<Vec<PollPace>>,
    /// Says whether a call with this name fails.
    fault: Mutex<Fault>,
}

impl std::ops::Deref for Store {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Store {
    pub fn new() -> Self {
        let now = Timestamp::from_micros(1_000_000_000_000);
        Self(Arc::new(Shared {
            clock: Arc::new(ManualClock::at(now)),
            rows: Watched::default(),
            calls: Watched::default(),
            paces: Watched::default(),
            fault: Mutex::new(Box::new(|_| Ok(()))),
        }))
    }

    /// Batches of these services, pending for a minute, the earlier the longer.
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
    pub fn wait_for_verdicts(&self, count: usize) {
        self.wait_for_calls(|calls| resolutions(calls).len() >= count);
    }

    /// Lets minutes pass until this holds.
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

    fn note(&self, call: Call) {
        self.calls.change(|calls| calls.push(call));
    }

    fn event(&self, id: &str, event: Event) {
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
        rows.into_iter().map(|Row { service, id, .. }| Pending { service, id }).collect()
    }
}

fn resolutions(calls: &[Call]) -> Vec<Resolution> {
    let settled = calls.iter().filter_map(|call| match call {
        Call::Settle(resolutions) => Some(resolutions.clone()),
        _ => None,
    });
    settled.flatten().map(|(_, resolution)| resolution).collect()
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
    ) -> BatchResult<Vec<Pending>> {
        self.paces.change(|paces| paces.push(pace));
        self.try_call("due")?;
        let is_due = |row: &Row| pace.next_check(row.submitted_at, row.checked_at) <= now;
        Ok(self.pending(is_due, limit))
    }

    fn get_pending_batch_ids_of(
        &self,
        services: &[String],
        limit: usize,
    ) -> BatchResult<Vec<Pending>> {
        self.try_call("of")?;
        Ok(self.pending(|row| services.contains(&row.service), limit))
    }

    fn mark_checked(&self, batches: &[Pending]) -> BatchResult<()> {
        self.try_call("checked")?;
        batches
            .iter()
            .for_each(|batch| self.event(&batch.id, Event::status(LedgerStatus::NotReported)));
        self.note(Call::Checked(batches.iter().map(|batch| batch.id.clone()).collect()));
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
        let mut noted = Vec::new();
        for (service, reports) in groups {
            for report in reports {
                self.event(&report.batch_id, Event::status(report.status));
            }
            let pairs = reports.iter().map(|report| (report.batch_id.clone(), report.status));
            noted.push((service.clone(), pairs.collect()));
        }
        self.note(Call::Update(noted));
    }
}

impl UnresolvedBatchStore for Store {
    fn get_unresolved_batches(
        &self,
        service: &str,
        ids: &[String],
    ) -> BatchResult<Vec<UnresolvedBatch>> {
        self.note(Call::Doubts(service.to_owned(), ids.to_vec()));
        self.try_call("doubts")?;
        let mut rows = self.rows.get();
        rows.retain(|row| ids.contains(&row.id) && row.progress.state.awaits_poller());
        let doubt = |row: Row| UnresolvedBatch {
            service_id: row.service.parse().unwrap(),
            batch_id: row.id.parse().unwrap(),
            transaction_ids: vec![row.id.parse().unwrap()],
            attempt_id: AttemptId { attempt: row.progress.attempts, epoch: 1 },
            state: row.progress.state,
            submitted_at: row.submitted_at,
            since: row.submitted_at,
            held: row.held,
        };
        Ok(rows.into_iter().map(doubt).collect())
    }

    fn resolve(&self, resolutions: &[(UnresolvedBatch, Resolution)]) -> BatchResult<()> {
        self.try_call("settle")?;
        for (doubt, resolution) in resolutions {
            let id = doubt.batch_id.to_string();
            match resolution {
                Resolution::Evidence(evidence) => {
                    let attempt = doubt.attempt_id.attempt;
                    self.event(&id, Event::Evidence { attempt, evidence: *evidence });
                }
                Resolution::Hold(_) => self.rows.change(|rows| {
                    rows.iter_mut().find(|row| row.id == id).unwrap().held = true;
                }),
            }
        }
        let pair = |(doubt, resolution): &(UnresolvedBatch, Resolution)| {
            (doubt.batch_id.to_string(), resolution.clone())
        };
        self.note(Call::Settle(resolutions.iter().map(pair).collect()));
        Ok(())
    }
}

/// A question that arrived at the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    pub service: String,
    pub ids: Vec<String>,
    pub at: Instant,
}

/// A ledger that answers what a function says.
pub struct Ledger {
    pub connections: usize,
    pub asked: Watched<Vec<Asked>>,
    /// How many questions are under way, and how many were at most.
    pub at_once: Watched<(usize, usize)>,
    answer: Answer,
}

impl Ledger {
    pub fn new(answer: impl Fn(&str, &[String]) -> Answering + Send + Sync + 'static) -> Self {
        let (asked, at_once) = (Watched::default(), Watched::default());
        Self { connections: 100, asked, at_once, answer: Box::new(answer) }
    }

    /// It says this of every batch.
    pub fn saying(status: LedgerStatus) -> Self {
        Self::new(move |_, ids| answer(all(ids, status)))
    }

    /// It says this of every batch, of so many questions as it is let.
    pub fn behind(gate: &Arc<Semaphore>, status: LedgerStatus) -> Self {
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

    /// Waits until it was asked so often in all.
    #[track_caller]
    pub fn wait_for(&self, count: usize) {
        self.asked.wait_until(|asked| asked.len() >= count);
    }

    /// One more is under way.
    pub fn begin(&self) {
        self.at_once.change(|(now, most)| {
            *now += 1;
            *most = (*most).max(*now);
        });
    }

    pub fn end(&self) {
        self.at_once.change(|(now, _)| *now -= 1);
    }

    /// How often it was asked for each service.
    pub fn tally(&self) -> BTreeMap<String, usize> {
        let mut tally = BTreeMap::new();
        for asked in self.asked.get() {
            *tally.entry(asked.service).or_default() += 1;
        }
        tally
    }
}

impl BatchStatusReader for Ledger {
    type Status = StatusReport;

    fn get_batch_statuses<'a>(&'a self, service: &'a str, ids: &'a [String]) -> BoxAnswer<'a> {
        let asked = Asked { service: service.to_owned(), ids: ids.to_vec(), at: Instant::now() };
        self.asked.change(|all| all.push(asked));
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

pub type BoxAnswer<'a> = Pin<Box<dyn Future<Output = BatchResult<Vec<StatusReport>>> + Send + 'a>>;

/// In this state at the first attempt.
pub fn first_attempt(state: BatchState) -> Progress {
    Progress { state, attempts: 1, commit_proven: false }
}

/// The id of a batch: ids sort as their numbers do.
pub fn batch(number: usize) -> String {
    format!("{number:0128x}")
}

pub fn report(id: &str, status: LedgerStatus) -> StatusReport {
    StatusReport { batch_id: id.to_owned(), status, receipts: Vec::new() }
}

pub fn all(ids: &[String], status: LedgerStatus) -> Vec<StatusReport> {
    ids.iter().map(|id| report(id, status)).collect()
}

pub fn answer(reports: Vec<StatusReport>) -> Answering {
    Box::pin(ready(Ok(reports)))
}

pub fn unavailable() -> BatchError {
    BatchError::Unavailable("as the test wishes".to_owned())
}

/// Waits for what cannot be watched.
#[track_caller]
pub fn until(holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < SECOND * 30, "what is waited for does not happen");
        std::thread::yield_now();
    }
}

/// Options that make no test wait, except for what it does itself.
pub fn options() -> MonitorOptions {
    MonitorOptions {
        poll_interval: Duration::from_millis(2),
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

/// Options with which the monitor looks once, and then only where it must.
pub fn patient() -> MonitorOptions {
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
