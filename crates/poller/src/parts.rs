use std::sync::Arc;

use grid_batch_core::ledger::Ledger;
use grid_batch_core::polling::{BatchId, BatchStatus};
use grid_batch_core::{BatchResult, Clock};
use grid_batch_nodes::{NodePool, RequestLimits};
use grid_batch_support::{Jobs, catch_panic};
use log::warn;

use crate::{
    MonitorCounters, MonitorOptions, PollTrigger,
    evidence_search::{EvidenceSearch, InconclusivePolicyFn},
    ledger_requests::SharedStatusReader,
    poller_store::PollerStore,
};

/// The parts of a polling monitor that outlive one run.
pub(crate) struct PollerParts<I, T> {
    pub(crate) store: PollerStore<I, T>,
    pub(crate) status_reader: SharedStatusReader<T>,
    pub(crate) evidence_reader: Option<Arc<dyn Ledger>>,
    pub(crate) inconclusive_policy: InconclusivePolicyFn,
    pub(crate) nodes: NodePool,
    pub(crate) options: MonitorOptions,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) trigger: PollTrigger,
    /// `None`: each run has a runtime of its own.
    pub(crate) jobs: Option<Jobs>,
}

impl<I, T> PollerParts<I, T> {
    pub(crate) fn counters(&self) -> &MonitorCounters {
        &self.store.counters
    }

    pub(crate) fn limits(&self) -> RequestLimits {
        RequestLimits::new(self.nodes.clone(), self.options.pace())
    }

    pub(crate) fn evidence_search(&self, limits: RequestLimits) -> EvidenceSearch {
        let (policy, clock) = (Arc::clone(&self.inconclusive_policy), Arc::clone(&self.clock));
        let (options, counters) = (self.options.clone(), self.counters().clone());
        EvidenceSearch::new(policy, options, clock, counters, limits, self.trigger.table().clone())
    }

    pub(crate) fn pending_batches_of(&mut self, services: &[String]) -> BatchResult<Vec<I>>
    where
        I: BatchId,
        T: BatchStatus,
    {
        self.store.pending_batches_of(services, self.options.batch_limit)
    }

    /// Limit on the number of requests in flight.
    pub(crate) fn connections(&self) -> usize
    where
        T: BatchStatus,
    {
        let connections = catch_panic(|| Ok(self.status_reader.available_connections()));
        self.counters().count_panic(connections).unwrap_or_else(|error| {
            warn!(error:% = error; "the status reader failed to report its connections");
            0
        })
    }
}
