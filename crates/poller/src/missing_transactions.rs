//! Asking the ledger for transactions that waiting batches depend on and that no stored batch has, or only
//! invalid ones.

use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use grid_batch_core::{
    BatchError, BatchResult, EndedDependents, InternalError, ItemId, Ledger, LookupLag,
    MissingTransactionStore, ServiceId, TransactionAnswers,
};
use grid_batch_support::{RuntimeThread, Shutdown, catch_panic_async, shut_down_runtime};
use log::warn;
use tokio::{
    runtime::Runtime,
    time::{sleep, timeout},
};

use crate::{ShutdownHandle, failure_log::FailureLog, runtime};

/// When a [`MissingTransactionMonitor`] asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingTransactionOptions {
    /// How often the store is asked which transactions to look for. A new one is looked for then.
    pub interval: Duration,
    /// The time between the first two questions about one transaction; later ones are longer.
    pub pause: Duration,
    /// The greatest number of transactions to ask about at each interval.
    pub limit: usize,
    /// The time limit of the questions of one interval.
    pub answer_limit: Duration,
    /// How long a batch may miss a transaction before it is held.
    pub hold_after: Duration,
}

impl MissingTransactionOptions {
    /// Usual times, and this limit for how long a batch may miss a transaction.
    pub fn hold_after(hold_after: Duration) -> Self {
        Self {
            interval: Duration::from_secs(1),
            pause: Duration::from_secs(2),
            limit: 128,
            answer_limit: Duration::from_secs(30),
            hold_after,
        }
    }
}

/// The number of questions to a ledger that did not answer the last ones.
const LIMIT_WITHOUT_ANSWER: usize = 4;

/// The progress of the questions about missing transactions. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct LookupProgress(Arc<Mutex<LookupReport>>);

/// What a [`LookupProgress`] knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LookupReport {
    /// For how many transactions the ledger was not asked yet.
    pub lag: LookupLag,
    /// Since when the ledger has answered nothing.
    pub unanswered_since: Option<Instant>,
}

impl LookupProgress {
    /// The present state.
    pub fn read(&self) -> LookupReport {
        *self.lock()
    }

    fn answered(&self) {
        self.lock().unanswered_since = None;
    }

    fn failed(&self) {
        self.lock().unanswered_since.get_or_insert_with(Instant::now);
    }

    fn lock(&self) -> MutexGuard<'_, LookupReport> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When to ask next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextRound {
    /// Batches ended, and the batches that depend on them may lead to more questions.
    AtOnce,
    /// There may be more to ask about than one round has.
    Soon,
    /// Nothing is left.
    AfterInterval,
}

/// Gets the services that have a batch to submit after an answer.
type ReadyListener = dyn Fn(&[ServiceId]) + Send;

/// Asks the ledger whether it has transactions that other clients have sent to it: batches may depend on them.
///
/// It has a thread of its own, so that no poll waits for it. A batch that misses a transaction for too long
/// is held. One that depends on an invalid batch ends when the ledger does not have the transaction.
pub struct MissingTransactionMonitor {
    store: Box<dyn MissingTransactionStore>,
    ledger: Arc<dyn Ledger>,
    ready: Box<ReadyListener>,
    options: MissingTransactionOptions,
    progress: LookupProgress,
    failures: FailureLog,
}

impl MissingTransactionMonitor {
    /// A monitor that calls `ready` with the services that have a batch to submit after an answer.
    pub fn new(
        store: impl MissingTransactionStore + 'static,
        ledger: Arc<dyn Ledger>,
        ready: impl Fn(&[ServiceId]) + Send + 'static,
        options: MissingTransactionOptions,
    ) -> Self {
        let failures = FailureLog::of("questions about missing transactions");
        let progress = LookupProgress::default();
        Self { store: Box::new(store), ledger, ready: Box::new(ready), options, progress, failures }
    }

    /// How its questions go on.
    pub fn progress(&self) -> LookupProgress {
        self.progress.clone()
    }

    /// Starts the monitor.
    pub fn run(mut self) -> Result<RunningMissingTransactionMonitor, InternalError> {
        let shutdown = Shutdown::new();
        let thread_shutdown = shutdown.clone();
        let runtime = || runtime::for_requests(1);
        let thread = RuntimeThread::start("dependencies", runtime, move |runtime| {
            self.work_until(&runtime, &thread_shutdown);
            shut_down_runtime(runtime);
        })?;
        Ok(RunningMissingTransactionMonitor { thread: Some(thread), shutdown })
    }

    fn work_until(&mut self, runtime: &Runtime, shutdown: &Shutdown) {
        while !shutdown.is_requested() {
            // A ledger that does not answer must not keep batches from being held.
            let asked = self.ask(runtime, shutdown);
            let next = *asked.as_ref().unwrap_or(&NextRound::AfterInterval);
            match asked.map(drop).and(self.hold()).and(self.read_lag()) {
                Ok(()) => self.failures.succeeded(ALL),
                Err(error) => self.failures.failed(ALL, &error),
            }
            let interval = match next {
                NextRound::AtOnce => continue,
                NextRound::Soon => self.options.interval / 4,
                NextRound::AfterInterval => self.options.interval,
            };
            runtime.block_on(async {
                tokio::select! {
                    biased;
                    () = shutdown.requested() => {}
                    () = sleep(interval) => {}
                }
            });
        }
    }

    fn ask(&self, runtime: &Runtime, shutdown: &Shutdown) -> BatchResult<NextRound> {
        let MissingTransactionOptions { pause, limit, .. } = self.options;
        let limit = match self.progress.read().unanswered_since {
            None => limit,
            Some(_) => limit.min(LIMIT_WITHOUT_ANSWER),
        };
        let missing = self.store.missing_transactions(pause, limit)?;
        if missing.is_empty() {
            self.progress.answered();
            return Ok(NextRound::AfterInterval);
        }
        let answers = runtime.block_on(async {
            tokio::select! {
                biased;
                () = shutdown.requested() => None,
                answers = self.look_up(&missing) => Some(answers),
            }
        });
        let Some(answers) = answers else { return Ok(NextRound::AfterInterval) };
        match &answers {
            Ok(_) => self.progress.answered(),
            Err(_) => self.progress.failed(),
        }
        self.repeat_unanswered(&missing, answers.as_ref().ok())?;
        let TransactionAnswers { applied, absent } = answers?;
        if !applied.is_empty() {
            let services = self.store.found_at_ledger(&applied)?;
            (self.ready)(&services);
        }
        if !absent.is_empty() && self.end(&absent)? {
            return Ok(NextRound::AtOnce);
        }
        match missing.len() < limit && applied.is_empty() {
            true => Ok(NextRound::AfterInterval),
            false => Ok(NextRound::Soon),
        }
    }

    /// The transactions without an answer are looked for again soon.
    fn repeat_unanswered(
        &self,
        asked: &[ItemId],
        answers: Option<&TransactionAnswers>,
    ) -> BatchResult<()> {
        let answered: HashSet<&ItemId> =
            answers.iter().flat_map(|it| it.applied.iter().chain(&it.absent)).collect();
        let unanswered: Vec<ItemId> =
            asked.iter().filter(|id| !answered.contains(id)).copied().collect();
        match unanswered.is_empty() {
            true => Ok(()),
            false => self.store.look_up_again(&unanswered, self.options.pause),
        }
    }

    fn read_lag(&self) -> BatchResult<()> {
        let lag = self.store.lookup_lag()?;
        self.progress.lock().lag = lag;
        Ok(())
    }

    /// Ends what depends on transactions that the ledger does not have and that no batch can bring. Returns
    /// whether there was any.
    fn end(&self, absent: &[ItemId]) -> BatchResult<bool> {
        let EndedDependents { ended, ready } = self.store.absent_at_ledger(absent)?;
        (self.ready)(&Vec::from_iter(ready));
        Ok(ended > 0)
    }

    async fn look_up(&self, missing: &[ItemId]) -> BatchResult<TransactionAnswers> {
        let limit = self.options.answer_limit;
        let asking = async {
            let answer =
                timeout(limit, async { self.ledger.look_up_transactions(missing).await }).await;
            let timed_out = |_| format!("no answer within {limit:?}");
            answer.map_err(timed_out).map_err(BatchError::Unavailable)?
        };
        match catch_panic_async(asking).await {
            Ok(answers) => answers,
            Err(panic) => Err(panic.into()),
        }
    }

    fn hold(&self) -> BatchResult<()> {
        let batches = self.store.hold_missing(self.options.hold_after)?;
        if batches > 0 {
            warn!(batches; "batches are held, because transactions that they depend on have not arrived");
        }
        Ok(())
    }
}

/// Failures are not told apart by services.
const ALL: &str = "all";

/// The handle of a running monitor. Dropping it requests a shutdown and does not wait for it.
pub struct RunningMissingTransactionMonitor {
    /// `None` once the thread has been joined.
    thread: Option<RuntimeThread<()>>,
    shutdown: Shutdown,
}

impl ShutdownHandle for RunningMissingTransactionMonitor {
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

impl Drop for RunningMissingTransactionMonitor {
    fn drop(&mut self) {
        self.shutdown.request();
    }
}

impl fmt::Debug for MissingTransactionMonitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MissingTransactionMonitor")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RunningMissingTransactionMonitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningMissingTransactionMonitor").finish_non_exhaustive()
    }
}
