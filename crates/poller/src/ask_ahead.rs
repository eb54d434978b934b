//! Asking about the next batches of a service while the present ones are under way.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_core::batches::BatchState;
use grid_batch_core::events::{Recorded, RecordedSubscriber};
use grid_batch_core::evidence::LedgerQuestionStore;
use grid_batch_core::ledger::Ledger;
use grid_batch_core::polling::PollPace;
use grid_batch_core::{Clock, ItemId, ServiceId, SystemClock};
use grid_batch_nodes::{NodePool, RequestEnd, RequestLimits};
use grid_batch_support::{BlockingPool, GroupPause, Job, Jobs, Shutdown, catch_panic_async, lock};
use grid_batch_work::{Work, WorkTable};
use log::debug;
use tokio::{
    sync::Notify,
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::{
    per_service_queue::{PerServiceQueue, ServiceJob},
    questions,
};

/// Requests that the ledger be asked about the next batches of a service. Clones belong to the same
/// [`NextBatchMonitor`].
#[derive(Debug, Clone, Default)]
pub struct NextBatchRequests {
    table: WorkTable,
    wake_up: Arc<Notify>,
}

impl NextBatchRequests {
    /// Reports that a batch of the service was stored. It may wait behind another one.
    pub fn stored(&self, service_id: &ServiceId) {
        self.request(&mut self.table.lock(), service_id);
    }

    /// Reports that a ledger has accepted a batch of the service. Another one may wait behind it.
    pub fn accepted(&self, service_id: &ServiceId) {
        let mut work = self.table.lock();
        questions::accepted(&mut work, service_id);
        self.request(&mut work, service_id);
    }

    /// Takes the requested services for which `is_ready` is true.
    fn take(&self, is_ready: impl Fn(&str) -> bool) -> Vec<ServiceId> {
        questions::take(&mut self.table.lock(), is_ready)
    }

    fn asked(&self, service_id: &ServiceId, batches: usize) {
        questions::asked(&mut self.table.lock(), service_id, batches, SystemClock.monotonic());
    }

    fn request(&self, work: &mut Work, service_id: &ServiceId) {
        if questions::request(work, service_id, SystemClock.monotonic()) {
            self.wake_up.notify_one();
        }
    }
}

impl RecordedSubscriber for NextBatchRequests {
    fn recorded(&self, entry: Recorded<'_>) {
        match entry {
            Recorded::Change { change, state: BatchState::Pending, .. }
                if change.event.ends_submission() =>
            {
                self.accepted(&change.service_id);
            }
            Recorded::Stored(services) | Recorded::Submittable(services) => {
                services.iter().for_each(|service_id| self.stored(service_id));
            }
            _ => {}
        }
    }
}

/// Asks the ledger about the next batches of each service that [`NextBatchRequests`] names. Each service has one
/// question at a time; the next one is asked when half of the batches in the last one were accepted.
///
/// It is a separate job, so that polls do not wait for it. A failed question is not repeated. A node that does not
/// answer gets only a few questions, so that those to other nodes do not wait.
pub struct NextBatchMonitor {
    store: Arc<Mutex<dyn LedgerQuestionStore>>,
    ledger: Arc<dyn Ledger>,
    requests: NextBatchRequests,
    concurrency: usize,
    nodes: NodePool,
}

/// A node that takes longer to answer a question is treated as one that does not answer.
const SLOW_AFTER: Duration = Duration::from_secs(1);

/// Nodes that do not answer are asked again after pauses from one second to a quarter of this time.
const PACE: PollPace =
    PollPace { interval: Duration::from_secs(1), longest: Duration::from_mins(1) };

impl NextBatchMonitor {
    /// A monitor with at most `concurrency` questions at a time.
    pub fn new(
        store: impl LedgerQuestionStore + 'static,
        ledger: Arc<dyn Ledger>,
        concurrency: usize,
    ) -> Self {
        let requests = NextBatchRequests::default();
        let concurrency = concurrency.max(1);
        let store = Arc::new(Mutex::new(store));
        Self { store, ledger, requests, concurrency, nodes: NodePool::default() }
    }

    /// Sets the nodes that are asked about services.
    #[must_use]
    pub fn with_nodes(self, nodes: NodePool) -> Self {
        Self { nodes, ..self }
    }

    /// Sets the table that holds the requests. Other components may share it.
    #[must_use]
    pub fn with_table(mut self, table: WorkTable) -> Self {
        self.requests.table = table;
        self
    }

    /// The requests, which may be used before the monitor runs.
    pub fn requests(&self) -> NextBatchRequests {
        self.requests.clone()
    }

    /// Starts the monitor.
    pub fn run(self, jobs: &Jobs) -> Job {
        let (shutdown, blocking) = (Shutdown::new(), jobs.blocking().clone());
        let requested = shutdown.clone();
        jobs.spawn_until("ask-ahead", shutdown, async move {
            self.ask_until(&requested, &blocking).await;
        })
    }

    async fn ask_until(&self, shutdown: &Shutdown, blocking: &BlockingPool) {
        let mut questions = Questions::new(self.limits());
        while !shutdown.is_requested() {
            let read_pause = questions.read_pause.wait();
            let pause_end = if read_pause.is_zero() {
                // A shutdown need not wait for a database that does not answer, because questions may be lost.
                tokio::select! {
                    biased;
                    () = shutdown.requested() => break,
                    () = self.start_questions(blocking, &mut questions) => {}
                }
                questions.limits.next_pause_end()
            } else {
                Some(read_pause)
            };
            tokio::select! {
                biased;
                () = shutdown.requested() => {}
                () = questions.ended() => {}
                () = self.requests.wake_up.notified() => {}
                () = sleep(pause_end.unwrap_or_default()), if pause_end.is_some() => {}
            }
        }
        questions.tasks.shutdown().await;
    }

    fn limits(&self) -> RequestLimits {
        let limits = RequestLimits::new(self.nodes.clone(), PACE);
        limits.set_connections(self.concurrency);
        limits
    }

    async fn start_questions(&self, blocking: &BlockingPool, questions: &mut Questions) {
        let ready = self.requests.take(|service| !questions.queue.is_in_flight(service));
        for service in ready {
            if !questions.queue.is_busy(service.as_str()) {
                questions.queue.push(service);
            }
        }
        loop {
            let started = questions.start_next(self.concurrency);
            if started.is_empty() {
                return;
            }
            let read_at = std::time::Instant::now();
            let mut batches = self.next_batches(blocking, &started).await;
            questions.read_pause.ended(read_at, started.len(), self.requests.table.ledger_time());
            for service in started {
                match batches.remove(&service) {
                    Some(next) => {
                        self.requests.asked(&service, next.len());
                        questions.start(&self.ledger, service, next);
                    }
                    None => questions.queue.dropped(service.as_str()),
                }
            }
        }
    }

    async fn next_batches(
        &self,
        blocking: &BlockingPool,
        services: &[ServiceId],
    ) -> HashMap<ServiceId, Vec<ItemId>> {
        let (store, services) = (Arc::clone(&self.store), services.to_vec());
        let next = blocking.ask(move || lock(&store).next_batches(&services)).await;
        let next = next.unwrap_or_else(|error| {
            debug!(error:%; "cannot read the next batches; the sender asks about them itself");
            Vec::new()
        });
        let mut by_service: HashMap<ServiceId, Vec<ItemId>> = HashMap::new();
        for (service, batch_id) in next {
            by_service.entry(service).or_default().push(batch_id);
        }
        by_service
    }
}

/// The waiting questions and those in flight.
struct Questions {
    tasks: JoinSet<(ServiceId, RequestEnd)>,
    read_pause: GroupPause,
    queue: PerServiceQueue<ServiceId>,
    limits: RequestLimits,
}

impl ServiceJob for ServiceId {
    fn service(&self) -> &str {
        self.as_str()
    }
}

impl Questions {
    fn new(limits: RequestLimits) -> Self {
        let queue = PerServiceQueue::new(Duration::ZERO, limits.clone());
        Self { tasks: JoinSet::new(), read_pause: GroupPause::LONG, queue, limits }
    }

    /// Takes the services about which a question may start now.
    fn start_next(&mut self, concurrency: usize) -> Vec<ServiceId> {
        let mut services = Vec::new();
        while self.queue.in_flight() < concurrency
            && let Some(service) = self.queue.start_next(Instant::now())
        {
            services.push(service);
        }
        services
    }

    fn start(&mut self, ledger: &Arc<dyn Ledger>, service: ServiceId, batch_ids: Vec<ItemId>) {
        let ledger = Arc::clone(ledger);
        let ask = async move {
            let started = Instant::now();
            let asking = async { ledger.ask_ahead(&service, &batch_ids).await };
            if let Err(panic) = catch_panic_async(asking).await {
                debug!(service:%, error = panic.message(); "a question about the next batches panicked");
            }
            let end = if started.elapsed() < SLOW_AFTER {
                RequestEnd::Answered
            } else {
                RequestEnd::NotAnswered
            };
            (service, end)
        };
        self.tasks.spawn(ask);
    }

    /// Waits until a question has ended.
    async fn ended(&mut self) {
        match self.tasks.join_next().await {
            Some(Ok((service, end))) => self.queue.ended(service.as_str(), end),
            Some(Err(_)) => {}
            None => std::future::pending().await,
        }
    }
}

impl fmt::Debug for NextBatchMonitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextBatchMonitor").field("requests", &self.requests).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::batches::{Change, Event, LedgerStatus};
    use grid_batch_core::ledger::Outcome;

    use super::*;

    #[test]
    fn stored_and_accepted_batches_request_questions() {
        let requests = NextBatchRequests::default();
        let services: [ServiceId; 1] = ["circuit::service".parse().unwrap()];
        let is_requested = |entry: Recorded<'_>| {
            requests.recorded(entry);
            !requests.take(|_| true).is_empty()
        };
        assert!(is_requested(Recorded::Stored(&services)));
        assert!(is_requested(Recorded::Submittable(&services)));
        assert!(!is_requested(Recorded::Freed(&services)));
        for (event, expected) in [
            (Event::Outcome { attempt: 1, outcome: Outcome::Accepted }, true),
            (Event::status(LedgerStatus::Pending), false),
        ] {
            let change = &Change::new(services[0].clone(), ItemId::from_bytes([1; 64]), event);
            let state = BatchState::Pending;
            let entry = Recorded::Change { change, state, next_waits: false };
            assert_eq!(is_requested(entry), expected, "{event:?}");
        }
    }
}
