use std::{
    collections::{HashMap, HashSet, VecDeque},
    io,
    sync::Arc,
    time::Duration,
};

use grid_batch_core::{GlobalScopeId, HeaderId, ScopeId, Timestamp};
use grid_batch_protocol::VerifiedBatch;

use super::{
    queue_limit::QueueLimit,
    shared_chain::{ChainNode, SharedChain},
};
use crate::{
    ExecutionResult, Fault, Record,
    common_state::{CommonState, LedgerSettings},
    events::Event,
};

/// How long the validator keeps an invalid batch after it was last asked about it. It removes what is
/// older when another batch is invalid.
const INVALID_KEPT_FOR: Duration = Duration::from_secs(600);
/// How long a batch waits for its dependencies.
const INCOMPLETE_KEPT_FOR: Duration = Duration::from_secs(20 * 60);
/// How often an invalid transaction is listed: each attempt to put it into a block adds it again.
const INVALID_REPETITIONS: usize = 3;

/// The validator's committed, waiting and invalid batches.
#[derive(Debug)]
pub(super) struct Chain {
    committed: HashMap<HeaderId, Arc<[u8]>>,
    /// The committed transactions, which others may depend on, with their batches.
    applied: HashMap<HeaderId, HeaderId>,
    pool: VecDeque<PooledBatch>,
    /// Batches with a transaction that was committed with another batch. The validator drops them and
    /// reports them as pending.
    dropped: HashSet<HeaderId>,
    limit: QueueLimit,
    incomplete: Vec<IncompleteBatch>,
    invalid: HashMap<HeaderId, InvalidBatch>,
    /// Batches that stay pending and are never executed.
    stuck: HashSet<HeaderId>,
    node: ChainNode,
}

#[derive(Debug)]
struct PooledBatch {
    batch: VerifiedBatch,
    due: Timestamp,
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
    pub(super) id: HeaderId,
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
        Self {
            committed: applied()
                .filter_map(|entry| Some((entry.batch_id, entry.batch.clone()?)))
                .collect(),
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
        self.pool.is_empty() && !self.node.has_peers()
    }

    /// The bytes of a committed batch.
    pub(super) fn committed(&self, id: &HeaderId) -> Option<&[u8]> {
        self.committed.get(id).map(AsRef::as_ref)
    }

    /// The bytes of the batch with which a transaction was committed.
    pub(super) fn batch_of_transaction(&self, id: &HeaderId) -> Option<&[u8]> {
        self.committed(self.applied.get(id)?)
    }

    /// The status of a batch, in the order in which the validator checks.
    pub(super) fn status(&mut self, id: &HeaderId, now: Timestamp) -> BatchStatus {
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
            self.pool.push_back(PooledBatch { batch, due });
        }
    }

    /// Applies the blocks of other nodes and publishes the blocks that are due.
    pub(super) fn advance(&mut self, common: &mut CommonState, now: Timestamp) -> io::Result<()> {
        self.incomplete.retain(|incomplete| now.since(incomplete.since) < INCOMPLETE_KEPT_FOR);
        self.apply_blocks_of_others(common, now)?;
        while !common.is_stopped() && self.pool.front().is_some_and(|first| first.due <= now) {
            self.publish_block(common, now)?;
        }
        Ok(())
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
        let mut consumed = 0;
        let mut block = Vec::new();
        while consumed < common.settings.block_size
            && let Some(first) = self.pool.pop_front_if(|first| first.due <= now)
        {
            if common.faults.occurs(Fault::NoProcessor) {
                self.pool.push_front(first);
                common.stopped.send_replace(true);
                break;
            }
            match self.execute(&first, common) {
                Ok(true) => block.extend(ids_of(&first.batch)),
                Ok(false) => {}
                Err(error) => {
                    self.pool.push_front(first);
                    publish(block, common);
                    return Err(error);
                }
            }
            consumed += 1;
        }
        self.limit.update(waiting, consumed);
        publish(block, common);
        Ok(())
    }

    /// Executes a batch. Returns whether it is committed.
    fn execute(&mut self, pooled: &PooledBatch, common: &mut CommonState) -> io::Result<bool> {
        let PooledBatch { batch, due } = pooled;
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
        let dependencies_applied = self.depends_only_on(batch, |id| self.applied.contains_key(id));
        let invalid_reason = match dependencies_applied {
            false => Some(String::new()),
            true => self.missing_predecessor(batch, common).or_else(|| common.execute(batch)),
        };
        let Some(message) = invalid_reason else {
            return Ok(self.node.publish(batch, *due) && self.apply(batch, *due, common)?);
        };
        let service_id = GlobalScopeId.service_id();
        common.record_result(ExecutionResult::Invalid, service_id, batch, *due, None)?;
        self.remember_invalid(batch, &message, *due);
        Ok(false)
    }

    /// Commits a batch. Returns `true`.
    fn apply(
        &mut self,
        batch: &VerifiedBatch,
        time: Timestamp,
        common: &mut CommonState,
    ) -> io::Result<bool> {
        let bytes: Arc<[u8]> = batch.bytes().into();
        let service_id = GlobalScopeId.service_id();
        let kept = Some(bytes.clone());
        common.record_result(ExecutionResult::Applied, service_id, batch, time, kept)?;
        self.applied.extend(ids_of(batch).map(|id| (id, batch.id())));
        self.committed.insert(batch.id(), bytes);
        Ok(true)
    }

    /// Why the batch is invalid at a node that has not applied what it needs.
    fn missing_predecessor(&self, batch: &VerifiedBatch, common: &CommonState) -> Option<String> {
        let needed = common.predecessor.as_ref().and_then(|rule| rule(batch))?;
        let is_missing = !self.committed.contains_key(&needed);
        is_missing.then(|| format!("this node has not applied the batch {needed}"))
    }

    /// Adds to what is known of a batch that was invalid before.
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
    fn is_applied(&self, transaction_id: HeaderId) -> bool {
        self.applied.contains_key(&transaction_id)
            || self.node.has_published_transaction(transaction_id)
    }

    fn is_pooled(&self, id: &HeaderId) -> bool {
        self.stuck.contains(id) || self.pool.iter().any(|pooled| pooled.batch.id() == *id)
    }

    fn is_complete(&self, batch: &VerifiedBatch) -> bool {
        let pooled = |id: &HeaderId| {
            self.pool.iter().any(|p| p.batch.transactions().iter().any(|t| t.id() == *id))
        };
        self.depends_only_on(batch, |id| self.applied.contains_key(id) || pooled(id))
    }

    /// Whether each dependency of a batch is available or an earlier transaction of the batch.
    fn depends_only_on(
        &self,
        batch: &VerifiedBatch,
        is_available: impl Fn(&HeaderId) -> bool,
    ) -> bool {
        let mut own = HashSet::new();
        batch.transactions().iter().all(|transaction| {
            let is_met = |id: &HeaderId| own.contains(id) || is_available(id);
            let all_are_met = transaction.dependencies().iter().all(is_met);
            own.insert(transaction.id());
            all_are_met
        })
    }
}

fn ids_of(batch: &VerifiedBatch) -> impl Iterator<Item = HeaderId> {
    batch.transactions().iter().map(|transaction| transaction.id())
}

/// Publishes the event of a block, unless it is empty.
fn publish(transaction_ids: Vec<HeaderId>, common: &mut CommonState) {
    if !transaction_ids.is_empty() {
        let service_id = GlobalScopeId.service_id().clone();
        common.events.publish(Event { service_id, transaction_ids });
    }
}
