use std::{collections::BTreeMap, fmt, sync::Arc};

use grid_batch_core::{
    AfterInvalid, BatchFits, BatchResult, BatchState, Clock, DeclaredAccess, ItemId, LaneCounts,
    Round, RoundStore, SchedulingRules, ServiceId, ServiceShare, StoredBatch, SystemClock,
    TakenBatch,
};
use log::warn;

use crate::{Dependency, Next, OpenBatch, schedule};

/// How many services are read at once while looking for ready ones.
const SERVICES_PER_READ: usize = 100;

/// How many open batches of a service are read at first, beyond those that may have lanes.
const BATCHES_PER_SERVICE: usize = 100;

/// A store of open batches: those that are neither committed nor invalid.
///
/// It is the smallest interface of a store that a [`BatchQueue`](crate::BatchQueue) needs:
/// [`StrategyRoundStore`] turns it into a [`RoundStore`]. A store that can apply the strategies to its tables
/// implements `RoundStore` itself.
pub trait OpenBatchStore: Send {
    /// Up to `limit` services with an open batch, in the order of their ids, from the one after
    /// `after`.
    fn services(&self, after: Option<&ServiceId>, limit: usize) -> BatchResult<Vec<ServiceId>>;

    /// Up to `limit` open batches of a service. Batches that were tried before come first, then new
    /// ones, the oldest first, so that no earlier batch is missing.
    ///
    /// With the policy [`AfterInvalid::Halt`], an invalid batch about which no operator has decided yet comes
    /// with those that were tried: it stops others.
    fn open_batches(&self, service_id: &ServiceId, limit: usize) -> BatchResult<Vec<StoredBatch>>;

    /// What the batch declares. Without it, `Parallel` lets no batch overtake another one, and no batch
    /// depends on another one.
    fn declared_access(&self, _batch: &StoredBatch) -> BatchResult<DeclaredAccess> {
        Ok(DeclaredAccess::everything())
    }

    /// What is known of a transaction that a batch declares as a dependency.
    fn dependency(&self, _transaction_id: &ItemId) -> BatchResult<Dependency> {
        Ok(Dependency::Applied)
    }

    /// How many bytes the batch has. A round has only as many as fit into memory.
    fn batch_length(&self, batch: &StoredBatch) -> BatchResult<usize>;

    /// Records durably that the batch is with a submitter, and returns it with its bytes.
    ///
    /// `None`: the batch has changed since `batch` was read, and nothing was recorded.
    fn mark_submitted(&self, batch: &StoredBatch) -> BatchResult<Option<TakenBatch>>;

    /// Reverts [`mark_submitted`](Self::mark_submitted) for batches that were certainly not sent.
    fn unmark(&self, batches: &[TakenBatch]) -> BatchResult<()>;
}

/// A [`RoundStore`] that applies the strategies ([`schedule`]) to an [`OpenBatchStore`]: one batch of a
/// service at a time, unless other rules are given.
pub struct StrategyRoundStore<T> {
    store: T,
    rules: Arc<SchedulingRules>,
    clock: Arc<dyn Clock>,
}

impl<T: OpenBatchStore> StrategyRoundStore<T> {
    /// Applies the serial strategy to this store, at the time of the system clock.
    pub fn new(store: T) -> Self {
        Self { store, rules: Arc::default(), clock: Arc::new(SystemClock) }
    }

    /// Sets the clock. It must be the one that the store uses for delays.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Sets the strategies of the services.
    ///
    /// The ledger must do what a strategy relies on: for `Parallel` it refuses access outside of what
    /// transactions declare, for `Pipeline` it applies batches in the order in which they were sent.
    #[must_use]
    pub fn with_rules(self, rules: Arc<SchedulingRules>) -> Self {
        Self { rules, ..self }
    }

    /// The store.
    pub fn store(&self) -> &T {
        &self.store
    }

    /// The batches of a service that may be submitted now, in order.
    fn next_batches(&self, service_id: &ServiceId) -> BatchResult<Vec<StoredBatch>> {
        let scheduling = self.rules.of(service_id);
        let batches = self.read(service_id)?;
        let access: Vec<DeclaredAccess> = if self.rules.uses_declared_access {
            batches
                .iter()
                .map(|batch| self.store.declared_access(batch))
                .collect::<Result<_, _>>()?
        } else {
            vec![DeclaredAccess::everything(); batches.len()]
        };
        let mut dependencies: BTreeMap<ItemId, Dependency> = BTreeMap::new();
        for id in access.iter().flat_map(DeclaredAccess::dependencies) {
            if !dependencies.contains_key(id) {
                dependencies.insert(*id, self.store.dependency(id)?);
            }
        }
        let halts = |batch: &StoredBatch| {
            batch.progress.state == BatchState::Invalid
                && scheduling.after_invalid == AfterInvalid::Halt
        };
        let open = batches.iter().zip(&access).map(|(batch, access)| OpenBatch {
            batch,
            position: Some(batch.created_at),
            access,
            halts: halts(batch),
        });
        let open: Vec<OpenBatch<'_>> =
            open.filter(|it| it.halts || !it.batch.progress.state.is_terminal()).collect();
        let known = |id| dependencies.get(&id).copied().unwrap_or(Dependency::Missing);
        let next = schedule(scheduling, &open, &known, self.clock.now());
        let submit = next.iter().zip(&open).filter(|(next, _)| **next == Next::Submit);
        let mut submit: Vec<StoredBatch> = submit.map(|(_, open)| open.batch.clone()).collect();
        submit.sort_by_key(|batch| (batch.created_at, batch.batch_id));
        Ok(submit)
    }

    /// All batches of a service that were tried, and new ones behind them.
    fn read(&self, service_id: &ServiceId) -> BatchResult<Vec<StoredBatch>> {
        let lanes = self.rules.of(service_id).rule().room(LaneCounts::default());
        let mut limit = lanes.saturating_add(BATCHES_PER_SERVICE);
        loop {
            let batches = self.store.open_batches(service_id, limit)?;
            let is_new = |batch: &StoredBatch| batch.progress.state == BatchState::New;
            if batches.len() < limit || batches.last().is_some_and(is_new) {
                return Ok(batches);
            }
            limit = limit.saturating_mul(2);
        }
    }

    /// Adds the next batches of the service to the round, as far as they fit.
    fn take(
        &self,
        ServiceShare { service_id, batches }: &ServiceShare,
        fits: &mut BatchFits<'_>,
        round: &mut Round,
    ) -> BatchResult<()> {
        for batch in self.next_batches(service_id)?.iter().take(*batches) {
            if !fits(self.store.batch_length(batch)?) {
                round.left.push(service_id.clone());
                break;
            }
            round.batches.extend(self.store.mark_submitted(batch)?);
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
                if ready.len() < limit && !self.next_batches(&service)?.is_empty() {
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
        for share in shares {
            match self.take(share, fits, &mut round) {
                Ok(()) => {}
                Err(error) if round.batches.is_empty() => return Err(error),
                Err(error) => {
                    warn!(
                        service:% = share.service_id, taken = round.batches.len(), error:% = error;
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
        f.debug_struct("StrategyRoundStore")
            .field("rules", &self.rules)
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}
