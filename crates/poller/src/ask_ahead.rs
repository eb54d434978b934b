//! Asking about the next batch of a service while the present one is under way.

use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use grid_batch_core::{
    AskAhead, AskAheadRequests, HeaderId, InternalError, NextBatchStore, ServiceId, ShutdownHandle,
};
use grid_batch_support::{RuntimeThread, Shutdown, catch_panic_async, shut_down_runtime};
use log::debug;
use tokio::{runtime::Runtime, sync::Notify, task::JoinSet};

use crate::runtime;

/// Requests questions about the next batch of a service. Clones request them from the same
/// [`NextBatchMonitor`].
#[derive(Debug, Clone, Default)]
pub struct NextBatchRequests(Arc<RequestState>);

#[derive(Debug, Default)]
struct RequestState {
    services: Mutex<HashSet<ServiceId>>,
    wake_up: Notify,
}

impl NextBatchRequests {
    /// Takes up to `limit` requested services that are not `busy`.
    fn take(&self, limit: usize, busy: &HashSet<ServiceId>) -> Vec<ServiceId> {
        let mut services = self.services();
        let taken: Vec<_> = services.difference(busy).take(limit).cloned().collect();
        services.retain(|service| !taken.contains(service));
        taken
    }

    fn services(&self) -> MutexGuard<'_, HashSet<ServiceId>> {
        self.0.services.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AskAheadRequests for NextBatchRequests {
    fn request(&self, service_id: &ServiceId) {
        self.services().insert(service_id.clone());
        self.0.wake_up.notify_one();
    }
}

/// Asks the ledger about the next batch of each service that its [`NextBatchRequests`] names, one
/// question of a service at a time.
///
/// It has a thread of its own, so that no poll waits for it. A question that fails is not repeated.
pub struct NextBatchMonitor {
    store: Box<dyn NextBatchStore>,
    ledger: Arc<dyn AskAhead>,
    requests: NextBatchRequests,
    concurrency: usize,
}

impl NextBatchMonitor {
    /// A monitor with at most `concurrency` questions at a time.
    pub fn new(
        store: impl NextBatchStore + 'static,
        ledger: Arc<dyn AskAhead>,
        concurrency: usize,
    ) -> Self {
        let requests = NextBatchRequests::default();
        Self { store: Box::new(store), ledger, requests, concurrency: concurrency.max(1) }
    }

    /// The requests, which may be used before the monitor runs.
    pub fn requests(&self) -> NextBatchRequests {
        self.requests.clone()
    }

    /// Starts the monitor.
    pub fn run(self) -> Result<RunningNextBatchMonitor, InternalError> {
        let shutdown = Shutdown::new();
        let thread_shutdown = shutdown.clone();
        let runtime = || runtime::for_requests(1);
        let thread = RuntimeThread::start("ask-ahead", runtime, move |runtime| {
            self.ask_until(&runtime, &thread_shutdown);
            shut_down_runtime(runtime);
        })?;
        Ok(RunningNextBatchMonitor { thread: Some(thread), shutdown })
    }

    fn ask_until(&self, runtime: &Runtime, shutdown: &Shutdown) {
        let mut questions = Questions::default();
        while !shutdown.is_requested() {
            self.start_questions(runtime, &mut questions);
            runtime.block_on(async {
                tokio::select! {
                    biased;
                    () = shutdown.requested() => {}
                    () = questions.ended() => {}
                    () = self.requests.0.wake_up.notified() => {}
                }
            });
        }
        runtime.block_on(questions.tasks.shutdown());
    }

    fn start_questions(&self, runtime: &Runtime, questions: &mut Questions) {
        loop {
            let free = self.concurrency.saturating_sub(questions.tasks.len());
            let services = self.requests.take(free, &questions.services);
            if services.is_empty() {
                return;
            }
            for (service, batch_id) in self.next_batches(&services) {
                questions.start(runtime, &self.ledger, service, batch_id);
            }
        }
    }

    fn next_batches(&self, services: &[ServiceId]) -> Vec<(ServiceId, HeaderId)> {
        self.store.next_batches(services).unwrap_or_else(|error| {
            debug!(error:%; "cannot read the next batches; the sender asks about them itself");
            Vec::new()
        })
    }
}

/// The questions under way.
#[derive(Default)]
struct Questions {
    tasks: JoinSet<ServiceId>,
    services: HashSet<ServiceId>,
}

impl Questions {
    fn start(
        &mut self,
        runtime: &Runtime,
        ledger: &Arc<dyn AskAhead>,
        service: ServiceId,
        batch_id: HeaderId,
    ) {
        self.services.insert(service.clone());
        let ledger = Arc::clone(ledger);
        let ask = async move {
            let batch_ids = [batch_id];
            let asking = async { ledger.ask_ahead(&service, &batch_ids).await };
            if let Err(panic) = catch_panic_async(asking).await {
                debug!(service:%, error = panic.message(); "a question about the next batch panicked");
            }
            service
        };
        self.tasks.spawn_on(ask, runtime.handle());
    }

    /// Waits until a question has ended.
    async fn ended(&mut self) {
        match self.tasks.join_next().await {
            Some(Ok(service)) => drop(self.services.remove(&service)),
            Some(Err(_)) => {}
            None => std::future::pending().await,
        }
    }
}

/// The handle of a running monitor. Dropping it requests a shutdown and does not wait for it.
pub struct RunningNextBatchMonitor {
    /// `None` once the thread has been joined.
    thread: Option<RuntimeThread<()>>,
    shutdown: Shutdown,
}

impl ShutdownHandle for RunningNextBatchMonitor {
    fn signal_shutdown(&mut self) -> Result<(), InternalError> {
        self.shutdown.request();
        Ok(())
    }

    /// Requests the shutdown if nothing has yet, and waits until the monitor has ended.
    fn wait_for_shutdown(mut self) -> Result<(), InternalError> {
        self.shutdown.request();
        self.thread.take().map_or(Ok(()), RuntimeThread::join)
    }
}

impl Drop for RunningNextBatchMonitor {
    fn drop(&mut self) {
        self.shutdown.request();
    }
}

impl fmt::Debug for NextBatchMonitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextBatchMonitor").field("requests", &self.requests).finish_non_exhaustive()
    }
}

impl fmt::Debug for RunningNextBatchMonitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningNextBatchMonitor").finish_non_exhaustive()
    }
}
