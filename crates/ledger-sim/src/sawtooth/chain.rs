use std::{
    collections::{HashMap, HashSet, VecDeque},
    io,
    sync::Arc,
    time::Duration,
};

use grid_batch_core::{GlobalScopeId, ItemId, ScopeId, Timestamp};
use grid_batch_protocol::{Batch, Message, VerifiedBatch};

use super::{
    execution_order::{PooledBatch, put_back, take_in_any_order, take_in_order},
    queue_limit::QueueLimit,
    shared_chain::{ChainNode, SharedChain},
};
use crate::{
    ExecutionResult, Fault, Record, StateValues,
    common_state::{CommonState, LedgerSettings},
    events::CommitEvent,
    state::{BatchAccess, is_executed},
};

/// How long the validator keeps an invalid batch after it was last asked about it. It removes older batches when
/// another batch is invalid.
const INVALID_KEPT_FOR: Duration = Duration::from_secs(600);
/// How long a batch waits for its dependencies.
const INCOMPLETE_KEPT_FOR: Duration = Duration::from_secs(20 * 60);
/// How many times an invalid transaction is listed: each attempt to put it into a block adds it again.
const INVALID_REPETITIONS: usize = 3;

/// The validator's committed, waiting and invalid batches.
#[derive(Debug)]
pub(super) struct Chain {
    committed: HashMap<ItemId, Arc<[u8]>>,
    /// The ids of the committed batches, the newest last.
    order: Vec<ItemId>,
    /// The committed transactions, which others may depend on, with their batches.
    applied: HashMap<ItemId, ItemId>,
    pool: VecDeque<PooledBatch>,
    /// Batches with a transaction that was committed with another batch. The validator drops them and
    /// reports them as pending.
    dropped: HashSet<ItemId>,
    limit: QueueLimit,
    incomplete: Vec<IncompleteBatch>,
    invalid: HashMap<ItemId, InvalidBatch>,
    /// Batches that stay pending and are never executed.
    stuck: HashSet<ItemId>,
    node: ChainNode,
    /// The values that the committed batches have written.
    values: StateValues,
    /// The interval of the last block, counted from the start of time.
    last_interval: Option<i64>,
    most_waiting: usize,
}

/// A batch that depends on transactions that were not received.
#[derive(Debug)]
struct IncompleteBatch {
    batch: VerifiedBatch,
    since: Timestamp,
}

#[derive(Debug)]
struct InvalidBatch {
    transactions: Vec<InvalidTransaction>,
    last_use: Timestamp,
}

/// Why a batch is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InvalidTransaction {
    pub(super) id: ItemId,
    pub(super) message: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BatchStatus {
    Committed,
    Invalid(Vec<InvalidTransaction>),
    Pending,
    Unknown,
}

impl Chain {
    /// Restores the block store. Nothing else survives a restart.
    pub(super) fn from_record(record: &Record, chain: &SharedChain, lag: Duration) -> Self {
        let applied = || record.entries().iter().filter(|e| e.result == ExecutionResult::Applied);
        let mut values = StateValues::default();
        for bytes in applied().filter_map(|entry| entry.batch.as_deref()) {
            apply_values(&mut values, bytes);
        }
        Self {
            committed: applied()
                .filter_map(|entry| Some((entry.batch_id, entry.batch.clone()?)))
                .collect(),
            order: applied().filter(|e| e.batch.is_some()).map(|e| e.batch_id).collect(),
            applied: applied()
                .flat_map(|entry| entry.transaction_ids.iter().map(|id| (*id, entry.batch_id)))
                .collect(),
            pool: VecDeque::new(),
            dropped: HashSet::new(),
            limit: QueueLimit::new(),
            incomplete: Vec::new(),
            invalid: HashMap::new(),
            stuck: HashSet::new(),
            node: chain.join(lag),
            values,
            last_interval: None,
            most_waiting: 0,
        }
    }

    pub(super) fn restart(&mut self) {
        self.pool.clear();
        self.dropped.clear();
        self.limit = QueueLimit::new();
        self.incomplete.clear();
        self.invalid.clear();
        self.stuck.clear();
    }

    pub(super) fn is_idle(&self) -> bool {
        self.pool.is_empty() && self.node.count_peers() == 0
    }

    /// The addresses of the other nodes.
    pub(super) fn peers(&self) -> Vec<String> {
        let count = self.node.count_peers();
        (0..count).map(|number| format!("tcp://validator-{number}:8800")).collect()
    }

    pub(super) fn most_waiting(&self) -> usize {
        self.most_waiting
    }

    pub(super) fn values(&self) -> &StateValues {
        &self.values
    }

    /// The bytes of a committed batch.
    pub(super) fn committed(&self, id: &ItemId) -> Option<&[u8]> {
        self.committed.get(id).map(AsRef::as_ref)
    }

    /// The committed batches with their bytes, the newest first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = (&ItemId, &[u8])> {
        self.order.iter().rev().filter_map(|id| Some((id, self.committed(id)?)))
    }

    /// The bytes of the batch with which a transaction was committed.
    pub(super) fn batch_of_transaction(&self, id: &ItemId) -> Option<&[u8]> {
        self.committed(self.applied.get(id)?)
    }

    /// The status of a batch, in the order in which the validator checks.
    pub(super) fn status(&mut self, id: &ItemId, now: Timestamp) -> BatchStatus {
        if self.committed.contains_key(id) {
            BatchStatus::Committed
        } else if let Some(invalid) = self.invalid.get_mut(id) {
            invalid.last_use = now;
            BatchStatus::Invalid(invalid.transactions.clone())
        } else if self.is_pooled(id) || self.dropped.contains(id) {
            BatchStatus::Pending
        } else {
            BatchStatus::Unknown
        }
    }

    pub(super) fn is_full(&self, settings: &LedgerSettings) -> bool {
        settings.back_pressure && self.pool.len() >= self.limit.get()
    }

    /// Accepts a batch. Does nothing if it is committed or waiting already.
    pub(super) fn accept(
        &mut self,
        batch: VerifiedBatch,
        settings: &LedgerSettings,
        now: Timestamp,
    ) {
        let id = batch.id();
        let is_incomplete = self.incomplete.iter().any(|other| other.batch.id() == id);
        if self.committed.contains_key(&id) || self.is_pooled(&id) || is_incomplete {
            return;
        }
        self.incomplete.push(IncompleteBatch { batch, since: now });
        while let Some(ready) = self.incomplete.iter().position(|i| self.is_complete(&i.batch)) {
            let batch = self.incomplete.remove(ready).batch;
            let due = now.plus(settings.pending_for).plus(settings.valid_for);
            self.pool.push_back(PooledBatch::new(batch, due));
            self.most_waiting = self.most_waiting.max(self.pool.len());
        }
    }

    /// Applies the blocks of other nodes and publishes the blocks that are due.
    pub(super) fn advance(&mut self, common: &mut CommonState, now: Timestamp) -> io::Result<()> {
        self.incomplete.retain(|incomplete| now.since(incomplete.since) < INCOMPLETE_KEPT_FOR);
        self.apply_blocks_of_others(common, now)?;
        while !common.is_stopped()
            && self.pool.front().is_some_and(|first| first.due <= now)
            && self.begin_interval(common.settings.block_interval, now)
        {
            self.publish_block(common, now)?;
        }
        Ok(())
    }

    /// Whether there was no block yet in this interval.
    fn begin_interval(&mut self, length: Duration, now: Timestamp) -> bool {
        let Ok(length @ 1..) = i64::try_from(length.as_micros()) else { return true };
        let interval = Some(now.as_micros().div_euclid(length));
        let is_new = self.last_interval != interval;
        self.last_interval = interval;
        is_new
    }

    fn apply_blocks_of_others(
        &mut self,
        common: &mut CommonState,
        now: Timestamp,
    ) -> io::Result<()> {
        while let Some((batch, due)) = self.node.next_due(now) {
            self.pool.retain(|pooled| pooled.batch.id() != batch.id());
            self.apply(&batch, due, common)?;
            publish(ids_of(&batch).collect(), common);
        }
        Ok(())
    }

    fn publish_block(&mut self, common: &mut CommonState, now: Timestamp) -> io::Result<()> {
        let waiting = self.pool.len();
        let due = if common.settings.keeps_order {
            take_in_order(&mut self.pool, now)
        } else {
            take_in_any_order(&mut self.pool, now, &mut common.order_random)
        };
        let mut due = due.into_iter();
        let mut executed = Vec::new();
        let mut block = Vec::new();
        let result = loop {
            if executed.len() == common.settings.block_size {
                break Ok(());
            }
            let Some(next) = due.as_slice().first() else { break Ok(()) };
            if common.faults.occurs(Fault::NoProcessor) {
                common.stopped.send_replace(true);
                break Ok(());
            }
            match self.execute(&next.1, common) {
                Ok(true) => block.extend(ids_of(&next.1.batch)),
                Ok(false) => {}
                Err(error) => break Err(error),
            }
            executed.extend(due.next());
        };
        put_back(&mut self.pool, due);
        if result.is_ok() {
            self.limit.update(waiting, executed.len());
        }
        publish(block, common);
        result
    }

    /// Executes a batch. Returns whether it is committed.
    fn execute(&mut self, pooled: &PooledBatch, common: &mut CommonState) -> io::Result<bool> {
        let PooledBatch { batch, due, .. } = pooled;
        if self.node.has_published(batch.id()) {
            // Another node has published the batch. This one applies it with that node's block.
            return Ok(false);
        }
        if common.faults.occurs(Fault::StaysPending) {
            self.stuck.insert(batch.id());
            return Ok(false);
        }
        if ids_of(batch).any(|id| self.is_applied(id)) {
            self.dropped.insert(batch.id());
            return Ok(false);
        }
        let service_id = GlobalScopeId.service_id();
        let message = if let Some(message) = self.why_invalid(pooled) {
            common.record_result(ExecutionResult::Invalid, service_id, batch, *due, None)?;
            message
        } else if let Some(message) = self.why_refused(batch, common) {
            common.record_refused(service_id, batch, *due)?;
            message
        } else {
            return Ok(self.node.publish(batch, *due) && self.apply(batch, *due, common)?);
        };
        self.remember_invalid(batch, &message, *due);
        Ok(false)
    }

    /// The reason why a rule or a fault makes the batch invalid, regardless of its content.
    fn why_refused(&self, batch: &VerifiedBatch, common: &mut CommonState) -> Option<String> {
        self.missing_predecessor(batch, common).or_else(|| common.execute(batch))
    }

    /// The reason why the batch is invalid by its content.
    fn why_invalid(&self, pooled: &PooledBatch) -> Option<String> {
        let batch = &pooled.batch;
        if !self.depends_only_on(batch, |id| self.applied.contains_key(id)) {
            return Some(String::new());
        }
        if !is_executed(batch) {
            return None;
        }
        if self.node.has_unapplied(|other| {
            is_executed(other) && BatchAccess::of_verified(other).conflicts_with(pooled.access())
        }) {
            return Some("this node has not applied what the batch reads".to_owned());
        }
        let decoded = Batch::decode(batch.bytes()).map_err(|error| error.to_string());
        decoded.and_then(|batch| self.values.changes_by(&batch)).err()
    }

    /// Commits a batch. Returns `true`.
    fn apply(
        &mut self,
        batch: &VerifiedBatch,
        time: Timestamp,
        common: &mut CommonState,
    ) -> io::Result<bool> {
        let bytes: Arc<[u8]> = batch.bytes().into();
        apply_values(&mut self.values, &bytes);
        let service_id = GlobalScopeId.service_id();
        let kept = Some(bytes.clone());
        common.record_result(ExecutionResult::Applied, service_id, batch, time, kept)?;
        self.applied.extend(ids_of(batch).map(|id| (id, batch.id())));
        if self.committed.insert(batch.id(), bytes).is_none() {
            self.order.push(batch.id());
        }
        Ok(true)
    }

    /// The reason why the batch is invalid at a node that has not applied the batch that it needs.
    fn missing_predecessor(&self, batch: &VerifiedBatch, common: &CommonState) -> Option<String> {
        let needed = common.predecessor.as_ref().and_then(|rule| rule(batch))?;
        let is_missing = !self.committed.contains_key(&needed);
        is_missing.then(|| format!("this node has not applied the batch {needed}"))
    }

    /// Adds an entry to a batch that was invalid before.
    fn remember_invalid(&mut self, batch: &VerifiedBatch, message: &str, now: Timestamp) {
        let new = || InvalidBatch { transactions: Vec::new(), last_use: now };
        if !self.invalid.contains_key(&batch.id()) {
            self.invalid.retain(|_, invalid| now.since(invalid.last_use) < INVALID_KEPT_FOR);
        }
        let invalid = self.invalid.entry(batch.id()).or_insert_with(new);
        invalid.last_use = now;
        let first = batch.transactions().iter().take(1).map(|transaction| InvalidTransaction {
            id: transaction.id(),
            message: message.to_owned(),
        });
        invalid.transactions.extend(first.cycle().take(INVALID_REPETITIONS));
    }

    /// Whether the chain has the transaction, applied by this node or not.
    fn is_applied(&self, transaction_id: ItemId) -> bool {
        self.applied.contains_key(&transaction_id)
            || self.node.has_published_transaction(transaction_id)
    }

    fn is_pooled(&self, id: &ItemId) -> bool {
        self.stuck.contains(id) || self.pool.iter().any(|pooled| pooled.batch.id() == *id)
    }

    fn is_complete(&self, batch: &VerifiedBatch) -> bool {
        let pooled = |id: &ItemId| {
            self.pool.iter().any(|p| p.batch.transactions().iter().any(|t| t.id() == *id))
        };
        self.depends_only_on(batch, |id| self.applied.contains_key(id) || pooled(id))
    }

    /// Whether each dependency of a batch is available or an earlier transaction of the batch.
    fn depends_only_on(
        &self,
        batch: &VerifiedBatch,
        is_available: impl Fn(&ItemId) -> bool,
    ) -> bool {
        let mut own = HashSet::new();
        batch.transactions().iter().all(|transaction| {
            let is_met = |id: &ItemId| own.contains(id) || is_available(id);
            let all_are_met = transaction.dependencies().iter().all(is_met);
            own.insert(transaction.id());
            all_are_met
        })
    }
}

fn ids_of(batch: &VerifiedBatch) -> impl Iterator<Item = ItemId> {
    batch.transactions().iter().map(|transaction| transaction.id())
}

/// Applies a batch that was found valid.
fn apply_values(values: &mut StateValues, bytes: &[u8]) {
    let applied = Batch::decode(bytes).map_err(|e| e.to_string()).and_then(|it| values.apply(&it));
    if let Err(error) = applied {
        log::error!("the simulated ledger cannot apply a batch that it has found valid: {error}");
    }
}

/// Publishes the event of a block, unless it is empty.
fn publish(transaction_ids: Vec<ItemId>, common: &mut CommonState) {
    if !transaction_ids.is_empty() {
        let service_id = GlobalScopeId.service_id().clone();
        common.events.publish(CommitEvent { service_id, transaction_ids });
    }
}
