//! Asking the ledger for transactions that waiting batches depend on and that no stored batch has, or only
//! invalid ones.

use std::{fmt, sync::Arc, time::Duration};

use grid_batch_core::{
    BatchError, BatchResult, EndedDependents, HeaderId, InternalError, MissingTransactionStore,
    ServiceId, ShutdownHandle, TransactionAnswers, TransactionCheck,
};
use grid_batch_support::{RuntimeThread, Shutdown, catch_panic_async, shut_down_runtime};
use log::warn;
use tokio::{
    runtime::Runtime,
    time::{sleep, timeout},
};

use crate::{failure_log::FailureLog, runtime};

/// When a [`MissingTransactionMonitor`] asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingTransactionOptions {
    /// How often the store is asked which transactions are missing. A new one is asked about then.
    pub interval: Duration,
    /// The shortest time between two questions about one transaction.
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
            pause: Duration::from_secs(10),
            limit: 20,
            answer_limit: Duration::from_secs(30),
            hold_after,
        }
    }
}

/// Gets the services that have a batch to submit after an answer.
type ReadyListener = dyn Fn(&[ServiceId]) + Send;

/// Asks the ledger whether it has transactions that other clients have sent to it: batches may depend on them.
///
/// It has a thread of its own, so that no poll waits for it. A batch that misses a transaction for too long
/// is held. One that depends on an invalid batch ends when the ledger does not have the transaction.
pub struct MissingTransactionMonitor {
    store: Box<dyn MissingTransactionStore>,
    ledger: Arc<dyn TransactionCheck>,
    ready: Box<ReadyListener>,
    options: MissingTransactionOptions,
    failures: FailureLog,
}

impl MissingTransactionMonitor {
    /// A monitor that calls `ready` with the services that have a batch to submit after an answer.
    pub fn new(
        store: impl MissingTransactionStore + 'static,
        ledger: Arc<dyn TransactionCheck>,
        ready: impl Fn(&[ServiceId]) + Send + 'static,
        options: MissingTransactionOptions,
    ) -> Self {
        let failures = FailureLog::of("questions about missing transactions");
        Self { store: Box::new(store), ledger, ready: Box::new(ready), options, failures }
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
            let more = matches!(asked, Ok(true));
            match asked.map(drop).and(self.hold()) {
                Ok(()) => self.failures.succeeded(ALL),
                Err(error) => self.failures.failed(ALL, &error),
            }
            if more {
                continue;
            }
            runtime.block_on(async {
                tokio::select! {
                    biased;
                    () = shutdown.requested() => {}
                    () = sleep(self.options.interval) => {}
                }
            });
        }
    }

    /// Returns whether batches ended, so that there may be other ones to ask about which depend on them.
    fn ask(&self, runtime: &Runtime, shutdown: &Shutdown) -> BatchResult<bool> {
        let MissingTransactionOptions { pause, limit, .. } = self.options;
        let missing = self.store.missing_transactions(pause, limit)?;
        if missing.is_empty() {
            return Ok(false);
        }
        let TransactionAnswers { applied, absent } = runtime.block_on(async {
            tokio::select! {
                biased;
                () = shutdown.requested() => Ok(TransactionAnswers::default()),
                answers = self.look_up(&missing) => answers,
            }
        })?;
        if !applied.is_empty() {
            let services = self.store.found_at_ledger(&applied)?;
            (self.ready)(&services);
        }
        match absent.is_empty() {
            true => Ok(false),
            false => self.end(&absent),
        }
    }

    /// Ends what depends on transactions that the ledger does not have and that no batch can bring. Returns
    /// whether there was any.
    fn end(&self, absent: &[HeaderId]) -> BatchResult<bool> {
        let EndedDependents { ended, ready } = self.store.absent_at_ledger(absent)?;
        (self.ready)(&Vec::from_iter(ready));
        Ok(ended > 0)
    }

    async fn look_up(&self, missing: &[HeaderId]) -> BatchResult<TransactionAnswers> {
        let limit = self.options.answer_limit;
        let asking = async {
            let answer = timeout(limit, async { self.ledger.look_up(missing).await }).await;
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
