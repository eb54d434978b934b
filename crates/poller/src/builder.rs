use std::{fmt, sync::Arc};

use grid_batch_core::{
    BatchId, BatchStatus, BatchStatusReader, BatchUpdater, Clock, EvidenceReader,
    PendingBatchStore, ServiceId, SystemClock, UnresolvedBatchStore,
};
use thiserror::Error;

use crate::{
    EventFollower, MonitorCounters, MonitorOptions, MonitorOptionsError, PollTrigger,
    RunnablePollingMonitor, Undecided,
    inquest::Policy,
    inquiry::{Detective, Reader},
    parts::Parts,
    records::Records,
};

/// Puts a polling monitor together.
///
/// It needs a store, a reader and an updater. Without evidence, what is in doubt stays in doubt.
pub struct PollingMonitorBuilder<I, T> {
    store: Option<Box<dyn PendingBatchStore<Id = I>>>,
    updater: Option<Box<dyn BatchUpdater<Status = T>>>,
    reader: Option<Reader<T>>,
    doubts: Option<Box<dyn UnresolvedBatchStore>>,
    detective: Option<Detective>,
    policy: Policy,
    options: MonitorOptions,
    clock: Arc<dyn Clock>,
    trigger: PollTrigger,
    events: Vec<EventFollower>,
}

/// Why a polling monitor cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MonitorBuildError {
    /// A part is missing.
    #[error("the polling monitor has no {part}")]
    Missing {
        /// Which.
        part: &'static str,
    },
    /// The options cannot be used.
    #[error(transparent)]
    Options(#[from] MonitorOptionsError),
}

impl<I, T> PollingMonitorBuilder<I, T>
where
    I: BatchId + 'static,
    T: BatchStatus + PartialEq + Send + 'static,
{
    /// A builder that has nothing but the default options.
    pub fn new() -> Self {
        Self {
            store: None,
            updater: None,
            reader: None,
            doubts: None,
            detective: None,
            policy: Arc::new(|_| Undecided::Hold),
            options: MonitorOptions::default(),
            clock: Arc::new(SystemClock),
            trigger: PollTrigger::new(),
            events: Vec::new(),
        }
    }

    /// Asks this which batches are pending. It is called on a thread of its own and may block, as
    /// may the updater and the store of doubts.
    #[must_use]
    pub fn with_store(mut self, store: impl PendingBatchStore<Id = I> + 'static) -> Self {
        self.store = Some(Box::new(store));
        self
    }

    /// Asks this for the statuses of batches, with at most so many questions under way as it has
    /// connections, those for evidence included. It must not block the thread it is polled on.
    #[must_use]
    pub fn with_reader(mut self, reader: Arc<dyn BatchStatusReader<Status = T> + Sync>) -> Self {
        self.reader = Some(reader);
        self
    }

    /// Writes statuses with this.
    #[must_use]
    pub fn with_updater(mut self, updater: impl BatchUpdater<Status = T> + 'static) -> Self {
        self.updater = Some(Box::new(updater));
        self
    }

    /// Looks for evidence about what is in doubt, and writes what that comes to.
    #[must_use]
    pub fn with_evidence(
        mut self,
        doubts: impl UnresolvedBatchStore + 'static,
        reader: Arc<dyn EvidenceReader + Sync>,
    ) -> Self {
        self.doubts = Some(Box::new(doubts));
        self.detective = Some(reader);
        self
    }

    /// Asks this what becomes of a service's batches of which nothing can be proved. Without it they
    /// are held.
    #[must_use]
    pub fn with_undecided(
        mut self,
        policy: impl Fn(&ServiceId) -> Undecided + Send + Sync + 'static,
    ) -> Self {
        self.policy = Arc::new(policy);
        self
    }

    /// Polls at once what this triggers.
    #[must_use]
    pub fn with_trigger(mut self, trigger: PollTrigger) -> Self {
        self.trigger = trigger;
        self
    }

    /// Polls less often while all these events are live. To be called once for each event monitor.
    #[must_use]
    pub fn with_events(mut self, follower: EventFollower) -> Self {
        self.events.push(follower);
        self
    }

    /// Works by these options.
    #[must_use]
    pub fn with_options(mut self, options: MonitorOptions) -> Self {
        self.options = options;
        self
    }

    /// Takes the time from here: that of the store.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The monitor, ready to run.
    pub fn build(self) -> Result<RunnablePollingMonitor<I, T>, MonitorBuildError> {
        self.options.check()?;
        let missing = |part| MonitorBuildError::Missing { part };
        Ok(RunnablePollingMonitor(Parts {
            records: Records {
                store: self.store.ok_or(missing("store"))?,
                updater: self.updater.ok_or(missing("updater"))?,
                doubts: self.doubts,
                counters: MonitorCounters::default(),
            },
            reader: self.reader.ok_or(missing("reader"))?,
            detective: self.detective,
            policy: self.policy,
            options: self.options,
            clock: self.clock,
            trigger: self.trigger,
            events: self.events,
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
