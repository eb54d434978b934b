//! Asking the ledger for transactions that waiting batches depend on and that no stored batch has, or only
//! invalid ones.

use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use grid_batch_core::{
    BatchError, BatchResult, EndedDependents, ItemId, Ledger, LookupLag, MissingTransactionStore,
    ServiceId, TransactionAnswers,
};
use grid_batch_support::{BlockingPool, Job, Jobs, Shutdown, catch_panic_async, lock};
use log::warn;
use tokio::{
    select,
    time::{sleep, timeout},
};

use crate::failure_log::FailureLog;

/// When a [`MissingTransactionMonitor`] asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingTransactionOptions {
    /// How often the store is asked which transactions to look for. A new one is looked for then.
    pub interval: Duration,
    /// The time between the first two questions about one transaction; later ones are longer.
    pub pause: Duration,
    /// Limit on the number of transactions to ask about at each interval.
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
type ReadyListener = dyn Fn(&[ServiceId]) + Send + Sync;

/// Asks the ledger whether it has transactions that other clients have sent to it: batches may depend on them.
///
/// It is a job of its own, so that no poll waits for it. A batch that misses a transaction for too long
/// is held. One that depends on an invalid batch ends when the ledger does not have the transaction.
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

    /// How its questions go on.
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
        // A ledger that does not answer must not keep batches from being held.
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

    /// Has a thread that may block use the store.
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

    /// Ends what depends on transactions that the ledger does not have and that no batch can bring. Returns
    /// whether there was any.
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

/// Failures are not told apart by services.
const ALL: &str = "all";

/// Those of these transactions that were not answered. They are looked for again soon.
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
