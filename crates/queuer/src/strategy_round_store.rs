use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex},
};

use grid_batch_core::batches::{BatchState, DeclaredAccess, StoredBatch};
use grid_batch_core::queue::{
    AfterInvalid, BatchFits, LaneCounts, Round, RoundStore, SchedulingRules, ServiceShare,
    Strategy, TakenBatch,
};
use grid_batch_core::{BatchResult, Clock, ItemId, ServiceId, SystemClock, Timestamp};
use grid_batch_support::{BoundedMap, lock};
use log::warn;

use crate::{Dependency, Next, OpenBatch, schedule};

/// How many services are read at once when searching for ready ones.
const SERVICES_PER_READ: usize = 100;

/// How many open batches of a service are read at first, in addition to those that may have lanes.
const BATCHES_PER_SERVICE: usize = 100;

/// For how many batches it is remembered that a warning was logged.
const MOST_LEFT_OPEN: usize = 1_000;

/// A store of open batches: those that are neither committed nor invalid.
///
/// It is the smallest interface of a store that a [`BatchQueue`](crate::BatchQueue) needs:
/// [`StrategyRoundStore`] turns it into a [`RoundStore`]. A store that can apply the strategies to its tables
/// implements `RoundStore` itself.
pub trait OpenBatchStore: Send {
    /// Up to `limit` services with an open batch after `after`, in the order of their ids.
    fn services(&self, after: Option<&ServiceId>, limit: usize) -> BatchResult<Vec<ServiceId>>;

    /// Up to `limit` open batches of a service. Batches that were tried come first, then new ones from the oldest on,
    /// so that no earlier batch is missing.
    ///
    /// With the policy [`AfterInvalid::Halt`], an invalid batch about which no operator has decided yet is returned
    /// with those that were tried, because it stops others.
    fn open_batches(&self, service_id: &ServiceId, limit: usize) -> BatchResult<Vec<StoredBatch>>;

    /// What the batch declares. By default, batches declare no dependencies, and `Parallel` lets no batch overtake
    /// another one.
    fn declared_access(&self, _batch: &StoredBatch) -> BatchResult<DeclaredAccess> {
        Ok(DeclaredAccess::everything())
    }

    /// What is known about a transaction that a batch declares as a dependency.
    fn dependency(&self, _transaction_id: &ItemId) -> BatchResult<Dependency> {
        Ok(Dependency::Applied)
    }

    /// The size of the batch in bytes. A round only takes batches that fit into memory.
    fn batch_length(&self, batch: &StoredBatch) -> BatchResult<usize>;

    /// Ends a batch that was never sent as invalid, because it depends on this transaction, which was not applied
    /// ([`Dependency::Invalid`]). Returns whether the batch has ended.
    ///
    /// The default implementation does nothing and returns `false`. Then a warning is logged, and the batch is never
    /// sent.
    fn end_as_invalid(&self, _batch: &StoredBatch, _transaction_id: &ItemId) -> BatchResult<bool> {
        Ok(false)
    }

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
    /// The batches that the store did not end as invalid.
    left_open: Mutex<BoundedMap<ItemId, ()>>,
}

/// Batches of a service as they were read, what each declares, and what is known about the transactions that they
/// depend on.
struct ReadBatches {
    batches: Vec<StoredBatch>,
    access: Vec<DeclaredAccess>,
    dependencies: BTreeMap<ItemId, Dependency>,
}

impl<T: OpenBatchStore> StrategyRoundStore<T> {
    /// Applies the serial strategy to this store, using the system clock.
    pub fn new(store: T) -> Self {
        let left_open = Mutex::new(BoundedMap::new(MOST_LEFT_OPEN));
        Self { store, rules: Arc::default(), clock: Arc::new(SystemClock), left_open }
    }

    /// Sets the clock. It must be the one that the store uses for delays.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Sets the strategies of the services.
    ///
    /// The ledger must guarantee what a strategy relies on. For `Parallel`, it must refuse access to anything that
    /// transactions do not declare. For `Pipeline`, it must apply batches in the order in which they were sent.
    #[must_use]
    pub fn with_rules(self, rules: Arc<SchedulingRules>) -> Self {
        Self { rules, ..self }
    }

    /// The store.
    pub fn store(&self) -> &T {
        &self.store
    }

    /// Calls `tell` with each open batch of a service that was read and what happens next to it, or why it waits.
    ///
    /// A batch that was never sent and depends on a later batch of its service, or on a missing transaction, has no
    /// position: it is sent after the batch that it depends on, and others do not wait for it.
    pub fn explain(
        &self,
        service_id: &ServiceId,
        mut tell: impl FnMut(&StoredBatch, Next<'_>),
    ) -> BatchResult<()> {
        let scheduling = self.rules.of(service_id);
        let read = self.read(service_id)?;
        let halts = |batch: &StoredBatch| {
            batch.progress.state == BatchState::Invalid
                && scheduling.after_invalid == AfterInvalid::Halt
        };
        let open = read.batches.iter().zip(&read.access).map(|(batch, access)| OpenBatch {
            batch,
            position: read.position(batch, access),
            access,
            halts: halts(batch),
        });
        let open: Vec<OpenBatch<'_>> =
            open.filter(|it| it.halts || !it.batch.progress.state.is_terminal()).collect();
        let next = schedule(scheduling, &open, &|id| read.dependency(&id), self.clock.now());
        open.iter().zip(next).for_each(|(open, next)| tell(open.batch, next));
        Ok(())
    }

    /// The batches of a service that may be submitted now, in order. Ends those that cannot be applied first.
    fn next_batches(&self, service_id: &ServiceId) -> BatchResult<Vec<StoredBatch>> {
        let mut ended = BTreeSet::new();
        loop {
            let (mut submit, mut invalid) = (Vec::new(), Vec::new());
            self.explain(service_id, |batch, next| match next {
                Next::Submit => submit.push(batch.clone()),
                Next::EndAsInvalid(id) => invalid.push((batch.clone(), id)),
                Next::Wait(_) => {}
            })?;
            let mut has_changed = false;
            for (batch, transaction_id) in &invalid {
                has_changed |=
                    self.end_as_invalid(batch, transaction_id)? && ended.insert(batch.batch_id);
            }
            if !has_changed {
                submit.sort_by_key(|batch| (batch.created_at, batch.batch_id));
                return Ok(submit);
            }
        }
    }

    fn end_as_invalid(&self, batch: &StoredBatch, transaction_id: &ItemId) -> BatchResult<bool> {
        let has_ended = self.store.end_as_invalid(batch, transaction_id)?;
        let mut left_open = lock(&self.left_open);
        if !has_ended && !left_open.contains(&batch.batch_id) {
            left_open.set(&batch.batch_id, ());
            warn!(
                service:% = batch.service_id, batch_id:% = batch.batch_id,
                transaction_id:% = transaction_id;
                "a batch depends on a transaction that was not applied, and its store has not ended it: it is not sent"
            );
        }
        Ok(has_ended)
    }

    /// Reads all batches of a service that were tried, and new ones after them, including those that they depend on.
    fn read(&self, service_id: &ServiceId) -> BatchResult<ReadBatches> {
        let lanes = self.rules.of(service_id).rule().room(LaneCounts::default());
        let mut limit = lanes.saturating_add(BATCHES_PER_SERVICE);
        loop {
            let batches = self.store.open_batches(service_id, limit)?;
            let is_all = batches.len() < limit;
            let is_new = |batch: &StoredBatch| batch.progress.state == BatchState::New;
            if is_all || batches.last().is_some_and(is_new) {
                let read = self.read_declared(batches)?;
                if is_all || read.has_all_dependencies() {
                    return Ok(read);
                }
            }
            limit = limit.saturating_mul(2);
        }
    }

    fn read_declared(&self, batches: Vec<StoredBatch>) -> BatchResult<ReadBatches> {
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
        Ok(ReadBatches { batches, access, dependencies })
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

impl ReadBatches {
    fn dependency(&self, transaction_id: &ItemId) -> Dependency {
        self.dependencies.get(transaction_id).copied().unwrap_or(Dependency::Missing)
    }

    fn find(&self, batch_id: ItemId) -> Option<&StoredBatch> {
        self.batches.iter().find(|batch| batch.batch_id == batch_id)
    }

    /// Whether the batches that others depend on were read. Batches of other services are never read.
    fn has_all_dependencies(&self) -> bool {
        self.dependencies.values().all(|dependency| match dependency {
            Dependency::Open(batch_id) => self.find(*batch_id).is_some(),
            _ => true,
        })
    }

    /// The position of a batch in the order of its service.
    fn position(&self, batch: &StoredBatch, access: &DeclaredAccess) -> Option<Timestamp> {
        let comes_first = |transaction_id: &ItemId| match self.dependency(transaction_id) {
            Dependency::Missing => false,
            Dependency::Open(other) => {
                self.find(other).is_none_or(|other| other.created_at < batch.created_at)
            }
            Dependency::Applied | Dependency::Unanswered | Dependency::Invalid => true,
        };
        let is_in_order = batch.progress.state != BatchState::New
            || access.dependencies().iter().all(comes_first);
        is_in_order.then_some(batch.created_at)
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
