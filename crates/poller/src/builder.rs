use std::{fmt, sync::Arc};

use grid_batch_core::evidence::LedgerQuestionStore;
use grid_batch_core::ledger::Ledger;
use grid_batch_core::polling::{BatchId, BatchStatus, BatchUpdater, PendingBatchStore};
use grid_batch_core::{Clock, ServiceId, SystemClock};
use grid_batch_nodes::NodePool;
use grid_batch_support::Jobs;
use thiserror::Error;

use crate::{
    BatchStatusReader, InconclusivePolicy, MonitorCounters, MonitorOptions, MonitorOptionsError,
    PollTrigger, RunnablePollingMonitor,
    evidence_search::InconclusivePolicyFn,
    ledger_requests::SharedStatusReader,
    parts::PollerParts,
    poller_store::{AllPending, PollerStore},
};

/// Builds a polling monitor.
///
/// A store, a reader and an updater are required. Without evidence, batches that are in doubt and
/// not reported by the ledger stay in doubt.
pub struct PollingMonitorBuilder<I, T> {
    store: Option<Box<dyn PendingBatchStore<Id = I>>>,
    updater: Option<Box<dyn BatchUpdater<Status = T>>>,
    status_reader: Option<SharedStatusReader<T>>,
    unresolved: Option<Box<dyn LedgerQuestionStore>>,
    evidence_reader: Option<Arc<dyn Ledger>>,
    inconclusive_policy: InconclusivePolicyFn,
    nodes: NodePool,
    options: MonitorOptions,
    clock: Arc<dyn Clock>,
    trigger: PollTrigger,
    jobs: Option<Jobs>,
}

/// Why a polling monitor cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MonitorBuildError {
    /// A required component is missing.
    #[error("the polling monitor has no {part}")]
    Missing {
        /// The part.
        part: &'static str,
    },
    /// The options are invalid.
    #[error(transparent)]
    Options(#[from] MonitorOptionsError),
}

impl<I, T> PollingMonitorBuilder<I, T>
where
    I: BatchId + 'static,
    T: BatchStatus + PartialEq + Send + 'static,
{
    /// A builder with default options and no components.
    pub fn new() -> Self {
        Self {
            store: None,
            updater: None,
            status_reader: None,
            unresolved: None,
            evidence_reader: None,
            inconclusive_policy: Arc::new(|_| InconclusivePolicy::Hold),
            nodes: NodePool::default(),
            options: MonitorOptions::default(),
            clock: Arc::new(SystemClock),
            trigger: PollTrigger::new(),
            jobs: None,
        }
    }

    /// Sets the store of pending batches. Like the updater and the store of unresolved batches, it is
    /// called on the monitor's own thread and may block.
    #[must_use]
    pub fn with_store(mut self, store: impl PendingBatchStore<Id = I> + 'static) -> Self {
        self.store = Some(Box::new(store));
        self
    }

    /// Sets the reader of statuses. Its `available_connections` limit the requests in flight, including those for
    /// evidence. It must not block the thread that polls its futures.
    #[must_use]
    pub fn with_reader(mut self, reader: Arc<dyn BatchStatusReader<Status = T> + Sync>) -> Self {
        self.status_reader = Some(reader);
        self
    }

    /// Sets the updater, which writes statuses.
    #[must_use]
    pub fn with_updater(mut self, updater: impl BatchUpdater<Status = T> + 'static) -> Self {
        self.updater = Some(Box::new(updater));
        self
    }

    /// Sets the reader that searches for evidence about unresolved batches, and the store for the resolutions.
    #[must_use]
    pub fn with_evidence(
        mut self,
        store: impl LedgerQuestionStore + 'static,
        reader: Arc<dyn Ledger>,
    ) -> Self {
        self.unresolved = Some(Box::new(store));
        self.evidence_reader = Some(reader);
        self
    }

    /// Sets what happens to a service's batches when evidence stays inconclusive. By default they are
    /// held.
    #[must_use]
    pub fn with_inconclusive_policy(
        mut self,
        policy: impl Fn(&ServiceId) -> InconclusivePolicy + Send + Sync + 'static,
    ) -> Self {
        self.inconclusive_policy = Arc::new(policy);
        self
    }

    /// Sets the nodes that are asked about services. A node that does not answer then gets only a few requests, so that
    /// connections remain free for the services of other nodes.
    #[must_use]
    pub fn with_nodes(mut self, nodes: NodePool) -> Self {
        self.nodes = nodes;
        self
    }

    /// Sets the trigger, which makes the monitor poll a service now.
    #[must_use]
    pub fn with_trigger(mut self, trigger: PollTrigger) -> Self {
        self.trigger = trigger;
        self
    }

    /// Sends requests on the runtime of these jobs instead of on a separate one.
    #[must_use]
    pub fn with_jobs(mut self, jobs: &Jobs) -> Self {
        self.jobs = Some(jobs.clone());
        self
    }

    /// Sets the options.
    #[must_use]
    pub fn with_options(mut self, options: MonitorOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the clock. It must be the one that the store uses.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Builds the monitor, ready to run.
    pub fn build(self) -> Result<RunnablePollingMonitor<I, T>, MonitorBuildError> {
        self.options.check()?;
        let missing = |part| MonitorBuildError::Missing { part };
        Ok(RunnablePollingMonitor(PollerParts {
            store: PollerStore {
                pending: self.store.ok_or(missing("store"))?,
                updater: self.updater.ok_or(missing("updater"))?,
                unresolved: self.unresolved,
                counters: MonitorCounters::default(),
                all: AllPending::default(),
            },
            status_reader: self.status_reader.ok_or(missing("reader"))?,
            evidence_reader: self.evidence_reader,
            inconclusive_policy: self.inconclusive_policy,
            nodes: self.nodes,
            options: self.options,
            clock: self.clock,
            trigger: self.trigger,
            jobs: self.jobs,
        }))
    }
}

impl<I, T> Default for PollingMonitorBuilder<I, T>
where
    I: BatchId + 'static,
    T: BatchStatus + PartialEq + Send + 'static,
{
    fn default() -> Self {
        Self::new()
    }
}

impl<I, T> fmt::Debug for PollingMonitorBuilder<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PollingMonitorBuilder")
            .field("options", &self.options)
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}
