use std::{fmt, sync::Arc};

use grid_batch_core::{
    BatchFits, BatchResult, Clock, Round, RoundStore, ServiceId, ServiceShare, StoredBatch,
    SystemClock, TakenBatch,
};
use log::warn;

use crate::{Choice, choose};

/// How many services are read at once while looking for ready ones.
const SERVICES_PER_READ: usize = 100;

/// How many open batches of a service are read. The strategy needs those that were tried before and
/// the oldest new one.
const BATCHES_PER_SERVICE: usize = 100;

/// A store of open batches: those that are neither committed nor invalid.
///
/// It is the smallest interface of a store that a [`BatchQueue`](crate::BatchQueue) needs:
/// [`StrategyRoundStore`] turns it into a [`RoundStore`]. A store that can apply the strategy in one
/// query implements `RoundStore` itself.
pub trait OpenBatchStore: Send {
    /// Up to `limit` services with an open batch, in the order of their ids, from the one after
    /// `after`.
    fn services(&self, after: Option<&ServiceId>, limit: usize) -> BatchResult<Vec<ServiceId>>;

    /// Up to `limit` open batches of a service. Batches that were tried before come first, then new
    /// ones, the oldest first, so that the limit never hides a batch in flight.
    fn open_batches(&self, service_id: &ServiceId, limit: usize) -> BatchResult<Vec<StoredBatch>>;

    /// How many bytes the batch has. A round has only as many as fit into memory.
    fn batch_length(&self, batch: &StoredBatch) -> BatchResult<usize>;

    /// Records durably that the batch is with a submitter, and returns it with its bytes.
    ///
    /// `None`: the batch has changed since `batch` was read, and nothing was recorded.
    fn mark_submitted(&self, batch: &StoredBatch) -> BatchResult<Option<TakenBatch>>;

    /// Reverts [`mark_submitted`](Self::mark_submitted) for batches that were certainly not sent.
    fn unmark(&self, batches: &[TakenBatch]) -> BatchResult<()>;
}

/// A [`RoundStore`] that applies the one-round serial strategy ([`choose`]) to an
/// [`OpenBatchStore`].
pub struct StrategyRoundStore<T> {
    store: T,
    clock: Arc<dyn Clock>,
}

impl<T: OpenBatchStore> StrategyRoundStore<T> {
    /// Applies the strategy to this store, at the time of the system clock.
    pub fn new(store: T) -> Self {
        Self { store, clock: Arc::new(SystemClock) }
    }

    /// Sets the clock. It must be the one that the store uses for delays.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// The store.
    pub fn store(&self) -> &T {
        &self.store
    }

    /// The batch of a service that may be submitted now.
    fn next_batch(&self, service_id: &ServiceId) -> BatchResult<Option<StoredBatch>> {
        let batches = self.store.open_batches(service_id, BATCHES_PER_SERVICE)?;
        match choose(&batches, self.clock.now()) {
            Choice::Take(batch) => Ok(Some(batch.clone())),
            Choice::Wait(_) => Ok(None),
        }
    }

    /// Adds the next batch of the service to the round, if there is one and it fits.
    fn take(
        &self,
        service_id: &ServiceId,
        fits: &mut BatchFits<'_>,
        round: &mut Round,
    ) -> BatchResult<()> {
        let Some(batch) = self.next_batch(service_id)? else { return Ok(()) };
        match fits(self.store.batch_length(&batch)?) {
            true => round.batches.extend(self.store.mark_submitted(&batch)?),
            false => round.left.push(service_id.clone()),
        }
        Ok(())
    }
}

impl<T: OpenBatchStore> RoundStore for StrategyRoundStore<T> {
    fn ready_services(
        &self,
        after: Option<&ServiceId>,
        limit: usize,
    ) -> BatchResult<Vec<ServiceId>> {
        let mut ready = Vec::new();
        let mut after = after.cloned();
        while ready.len() < limit {
            let services = self.store.services(after.as_ref(), SERVICES_PER_READ)?;
            let is_end = services.len() < SERVICES_PER_READ;
            after = services.last().cloned();
            for service in services {
                if ready.len() < limit && self.next_batch(&service)?.is_some() {
                    ready.push(service);
                }
            }
            if is_end {
                break;
            }
        }
        Ok(ready)
    }

    /// If the store fails after a batch was marked, the round ends with the batches before it.
    fn take_round(&self, shares: &[ServiceShare], fits: &mut BatchFits<'_>) -> BatchResult<Round> {
        let mut round = Round::default();
        for ServiceShare { service_id: service, .. } in shares {
            match self.take(service, fits, &mut round) {
                Ok(()) => {}
                Err(error) if round.batches.is_empty() => return Err(error),
                Err(error) => {
                    warn!(
                        service:% = service, taken = round.batches.len(), error:% = error;
                        "the store failed within a round; the rest is taken later"
                    );
                    break;
                }
            }
        }
        Ok(round)
    }

    fn give_back(&self, batches: &[TakenBatch]) -> BatchResult<()> {
        self.store.unmark(batches)
    }
}

impl<T> fmt::Debug for StrategyRoundStore<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StrategyRoundStore").field("clock", &self.clock).finish_non_exhaustive()
    }
}
