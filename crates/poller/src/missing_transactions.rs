//! Asks the ledger for missing transactions: waiting batches depend on them, and they are in no stored batch or only in
//! invalid ones.

use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use grid_batch_core::evidence::{
    EndedDependents, LookupLag, MissingTransactionStore, TransactionAnswers,
};
use grid_batch_core::ledger::Ledger;
use grid_batch_core::{BatchError, BatchResult, ItemId, ServiceId};
use grid_batch_support::{BlockingPool, Job, Jobs, Shutdown, catch_panic_async, lock};
use log::warn;
use tokio::{
    select,
    time::{sleep, timeout},
};

use crate::failure_log::FailureLog;

/// The times and limits of a [`MissingTransactionMonitor`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingTransactionOptions {
    /// How often the store is asked which transactions to look up. New ones are looked up then.
    pub interval: Duration,
    /// The time between the first two questions about one transaction; later ones are longer.
    pub pause: Duration,
    /// Limit on the number of transactions that are looked up at each interval.
    pub limit: usize,
    /// The time limit of the questions of one interval.
    pub answer_limit: Duration,
    /// How long a transaction may be missing before the batch is held.
    pub hold_after: Duration,
}

impl MissingTransactionOptions {
    /// Default options with this `hold_after`.
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

/// Limit on the number of questions while the ledger has not answered the last ones.
const LIMIT_WITHOUT_ANSWER: usize = 4;

/// The progress of the questions about missing transactions. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct LookupProgress(Arc<Mutex<LookupReport>>);

/// What a [`LookupProgress`] knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LookupReport {
    /// How many transactions the ledger has not been asked about yet.
    pub lag: LookupLag,
    /// Since when the ledger has not answered.
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
    /// Batches ended, and the batches that depend on them may require more questions.
    AtOnce,
    /// There may be more questions than fit into one round.
    Soon,
    /// Nothing is left.
    AfterInterval,
}

/// Called with the services that have a batch to submit after an answer.
type ReadyListener = dyn Fn(&[ServiceId]) + Send + Sync;

/// Asks the ledger whether it has missing transactions, which other clients may have sent to it.
///
/// It is a separate job, so that polls do not wait for it. A batch whose transaction is missing for too long is held. A
/// batch that depends on an invalid batch ends if the ledger does not have the transaction.
pub struct MissingTransactionMonitor {
    store: Arc<Mutex<dyn MissingTransactionStore>>,
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
        ready: impl Fn(&[ServiceId]) + Send + Sync + 'static,
        options: MissingTransactionOptions,
    ) -> Self {
        let failures = FailureLog::of("questions about missing transactions");
        let progress = LookupProgress::default();
        let (store, ready) = (Arc::new(Mutex::new(store)), Box::new(ready));
        Self { store, ledger, ready, options, progress, failures }
    }

    /// The progress of its questions.
    pub fn progress(&self) -> LookupProgress {
        self.progress.clone()
    }

    /// Starts the monitor.
    pub fn run(mut self, jobs: &Jobs) -> Job {
        let (blocking, shutdown) = (jobs.blocking().clone(), Shutdown::new());
        let requested = shutdown.clone();
        jobs.spawn_until("dependencies", shutdown, async move {
            while !requested.is_requested() {
                let pause = self.work(&blocking, &requested).await;
                select! {
                    biased;
                    () = requested.requested() => {}
                    () = sleep(pause) => {}
                }
            }
        })
    }

    /// Asks once, and returns the pause until the next time.
    async fn work(&mut self, blocking: &BlockingPool, shutdown: &Shutdown) -> Duration {
        // Batches must be held even if the ledger does not answer.
        let asked = self.ask(blocking, shutdown).await;
        let next = *asked.as_ref().unwrap_or(&NextRound::AfterInterval);
        let (held, read) = (self.hold(blocking).await, self.read_lag(blocking).await);
        match asked.map(drop).and(held).and(read) {
            Ok(()) => self.failures.succeeded(ALL),
            Err(error) => self.failures.failed(ALL, &error),
        }
        match next {
            NextRound::AtOnce => Duration::ZERO,
            NextRound::Soon => self.options.interval / 4,
            NextRound::AfterInterval => self.options.interval,
        }
    }

    async fn ask(
        &mut self,
        blocking: &BlockingPool,
        shutdown: &Shutdown,
    ) -> BatchResult<NextRound> {
        let MissingTransactionOptions { pause, limit, .. } = self.options;
        let limit = match self.progress.read().unanswered_since {
            None => limit,
            Some(_) => limit.min(LIMIT_WITHOUT_ANSWER),
        };
        let missing = self.stored(blocking, move |store| store.missing_transactions(pause, limit));
        let missing = missing.await?;
        if missing.is_empty() {
            self.progress.answered();
            return Ok(NextRound::AfterInterval);
        }
        let answers = select! {
            biased;
            () = shutdown.requested() => return Ok(NextRound::AfterInterval),
            answers = self.look_up(&missing) => answers,
        };
        match &answers {
            Ok(_) => self.progress.answered(),
            Err(_) => self.progress.failed(),
        }
        let unanswered = without_answer(&missing, answers.as_ref().ok());
        if !unanswered.is_empty() {
            self.stored(blocking, move |store| store.look_up_again(&unanswered, pause)).await?;
        }
        let TransactionAnswers { applied, absent } = answers?;
        let found = !applied.is_empty();
        if found {
            let services = self.stored(blocking, move |store| store.found_at_ledger(&applied));
            (self.ready)(&services.await?);
        }
        if !absent.is_empty() && self.end(blocking, absent).await? {
            return Ok(NextRound::AtOnce);
        }
        if missing.len() < limit && !found {
            Ok(NextRound::AfterInterval)
        } else {
            Ok(NextRound::Soon)
        }
    }

    /// Calls the store on a thread that may block.
    async fn stored<T: Send + 'static>(
        &self,
        blocking: &BlockingPool,
        work: impl FnOnce(&dyn MissingTransactionStore) -> BatchResult<T> + Send + 'static,
    ) -> BatchResult<T> {
        let store = Arc::clone(&self.store);
        blocking.ask(move || work(&*lock(&store))).await
    }

    async fn read_lag(&mut self, blocking: &BlockingPool) -> BatchResult<()> {
        let lag = self.stored(blocking, |store| store.lookup_lag()).await?;
        self.progress.lock().lag = lag;
        Ok(())
    }

    /// Ends the batches that depend on transactions that the ledger does not have and no batch can provide. Returns
    /// whether there were any.
    async fn end(&mut self, blocking: &BlockingPool, absent: Vec<ItemId>) -> BatchResult<bool> {
        let ended = self.stored(blocking, move |store| store.absent_at_ledger(&absent));
        let EndedDependents { ended, ready } = ended.await?;
        (self.ready)(&Vec::from_iter(ready));
        Ok(ended > 0)
    }

    async fn look_up(&mut self, missing: &[ItemId]) -> BatchResult<TransactionAnswers> {
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

    async fn hold(&mut self, blocking: &BlockingPool) -> BatchResult<()> {
        let hold_after = self.options.hold_after;
        let batches = self.stored(blocking, move |store| store.hold_missing(hold_after)).await?;
        if batches > 0 {
            warn!(batches; "batches are held, because transactions that they depend on have not arrived");
        }
        Ok(())
    }
}

/// Failures are logged for all services together.
const ALL: &str = "all";

/// Those of these transactions without an answer. They are looked up again soon.
fn without_answer(asked: &[ItemId], answers: Option<&TransactionAnswers>) -> Vec<ItemId> {
    let answered: HashSet<&ItemId> =
        answers.iter().flat_map(|it| it.applied.iter().chain(&it.absent)).collect();
    asked.iter().filter(|id| !answered.contains(id)).copied().collect()
}

impl fmt::Debug for MissingTransactionMonitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MissingTransactionMonitor")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
