use std::{
    collections::{HashMap, HashSet, VecDeque},
    io,
    sync::Arc,
    time::Duration,
};

use grid_batch_core::{GlobalScopeId, HeaderId, ScopeId, Timestamp};
use grid_batch_protocol::VerifiedBatch;

use super::queue_limit::QueueLimit;
use crate::{
    Record, Verdict,
    common::{Common, Settings},
    events::Event,
};

/// How long the validator remembers that a batch is invalid.
const INVALID_KEPT_FOR: Duration = Duration::from_secs(600);
/// How long a batch waits for what it depends on.
const INCOMPLETE_KEPT_FOR: Duration = Duration::from_secs(20 * 60);
/// How often an invalid transaction is named: each attempt to put it into a block adds it again.
const INVALID_NAMED: usize = 3;

/// The validator: what is committed, what waits, and what was found invalid.
#[derive(Debug)]
pub(super) struct Chain {
    committed: HashMap<HeaderId, Arc<[u8]>>,
    /// The transactions that are committed: what others may depend on.
    applied: HashSet<HeaderId>,
    pool: VecDeque<Pooled>,
    limit: QueueLimit,
    incomplete: Vec<Incomplete>,
    invalid: HashMap<HeaderId, Invalid>,
}

#[derive(Debug)]
struct Pooled {
    batch: VerifiedBatch,
    due: Timestamp,
}

/// A batch that depends on transactions that nobody has sent.
#[derive(Debug)]
struct Incomplete {
    batch: VerifiedBatch,
    since: Timestamp,
}

#[derive(Debug)]
struct Invalid {
    transactions: Vec<InvalidTransaction>,
    since: Timestamp,
}

/// Why a batch is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InvalidTransaction {
    pub(super) id: HeaderId,
    pub(super) message: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Status {
    Committed,
    Invalid(Vec<InvalidTransaction>),
    Pending,
    Unknown,
}

impl Chain {
    /// The block store survives everything, and it alone.
    pub(super) fn from_record(record: &Record) -> Self {
        let applied = || record.entries().iter().filter(|e| e.verdict == Verdict::Applied);
        Self {
            committed: applied()
                .filter_map(|entry| Some((entry.batch_id, entry.batch.clone()?)))
                .collect(),
            applied: applied().flat_map(|entry| entry.transaction_ids.iter().copied()).collect(),
            pool: VecDeque::new(),
            limit: QueueLimit::new(),
            incomplete: Vec::new(),
            invalid: HashMap::new(),
        }
    }

    pub(super) fn forget(&mut self) {
        self.pool.clear();
        self.limit = QueueLimit::new();
        self.incomplete.clear();
        self.invalid.clear();
    }

    pub(super) fn is_idle(&self) -> bool {
        self.pool.is_empty()
    }

    /// The bytes of a batch that is in a block.
    pub(super) fn committed(&self, id: &HeaderId) -> Option<&[u8]> {
        self.committed.get(id).map(AsRef::as_ref)
    }

    /// What is known of a batch, in the order in which the validator looks.
    pub(super) fn status(&self, id: &HeaderId) -> Status {
        if self.committed.contains_key(id) {
            Status::Committed
        } else if let Some(invalid) = self.invalid.get(id) {
            Status::Invalid(invalid.transactions.clone())
        } else if self.is_pooled(id) {
            Status::Pending
        } else {
            Status::Unknown
        }
    }

    pub(super) fn is_full(&self, settings: &Settings) -> bool {
        settings.back_pressure && self.pool.len() >= self.limit.get()
    }

    /// Takes a batch, unless it is there already or waits for others.
    pub(super) fn accept(&mut self, batch: VerifiedBatch, settings: &Settings, now: Timestamp) {
        let id = batch.id();
        let is_incomplete = self.incomplete.iter().any(|other| other.batch.id() == id);
        if self.committed.contains_key(&id) || self.is_pooled(&id) || is_incomplete {
            return;
        }
        self.incomplete.push(Incomplete { batch, since: now });
        while let Some(ready) = self.incomplete.iter().position(|i| self.is_complete(&i.batch)) {
            let batch = self.incomplete.remove(ready).batch;
            let due = now.plus(settings.pending_for).plus(settings.valid_for);
            self.pool.push_back(Pooled { batch, due });
        }
    }

    /// Publishes the blocks that are due.
    pub(super) fn advance(&mut self, common: &mut Common, now: Timestamp) -> io::Result<()> {
        self.invalid.retain(|_, invalid| now.since(invalid.since) < INVALID_KEPT_FOR);
        self.incomplete.retain(|incomplete| now.since(incomplete.since) < INCOMPLETE_KEPT_FOR);
        while self.pool.front().is_some_and(|first| first.due <= now) {
            self.publish_block(common, now)?;
        }
        Ok(())
    }

    fn publish_block(&mut self, common: &mut Common, now: Timestamp) -> io::Result<()> {
        let waiting = self.pool.len();
        let mut consumed = 0;
        let mut block = Vec::new();
        while consumed < common.settings.block_size
            && let Some(first) = self.pool.pop_front_if(|first| first.due <= now)
        {
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

    /// Executes a batch: whether it is committed.
    fn execute(&mut self, pooled: &Pooled, common: &mut Common) -> io::Result<bool> {
        let Pooled { batch, due } = pooled;
        let service_id = GlobalScopeId.service_id();
        let orphaned = || !self.depends_only_on(batch, |id| self.applied.contains(id));
        let refused = if orphaned() { Some(String::new()) } else { common.execute(batch) };
        let Some(message) = refused else {
            let bytes: Arc<[u8]> = batch.bytes().into();
            common.note(Verdict::Applied, service_id, batch, *due, Some(bytes.clone()))?;
            self.applied.extend(ids_of(batch));
            self.committed.insert(batch.id(), bytes);
            return Ok(true);
        };
        common.note(Verdict::Invalid, service_id, batch, *due, None)?;
        self.remember_invalid(batch, &message, *due);
        Ok(false)
    }

    fn remember_invalid(&mut self, batch: &VerifiedBatch, message: &str, since: Timestamp) {
        let invalid = self
            .invalid
            .entry(batch.id())
            .or_insert_with(|| Invalid { transactions: Vec::new(), since });
        let named = batch.transactions().iter().take(1).map(|transaction| InvalidTransaction {
            id: transaction.id(),
            message: message.to_owned(),
        });
        invalid.transactions.extend(named.cycle().take(INVALID_NAMED));
    }

    fn is_pooled(&self, id: &HeaderId) -> bool {
        self.pool.iter().any(|pooled| pooled.batch.id() == *id)
    }

    fn is_complete(&self, batch: &VerifiedBatch) -> bool {
        let pooled = |id: &HeaderId| {
            self.pool.iter().any(|p| p.batch.transactions().iter().any(|t| t.id() == *id))
        };
        self.depends_only_on(batch, |id| self.applied.contains(id) || pooled(id))
    }

    /// Whether all that a batch depends on is in the batch itself, or is of this kind.
    fn depends_only_on(&self, batch: &VerifiedBatch, is_there: impl Fn(&HeaderId) -> bool) -> bool {
        let mut own = HashSet::new();
        batch.transactions().iter().all(|transaction| {
            let met = |id: &HeaderId| own.contains(id) || is_there(id);
            let all_met = transaction.dependencies().iter().all(met);
            own.insert(transaction.id());
            all_met
        })
    }
}

fn ids_of(batch: &VerifiedBatch) -> impl Iterator<Item = HeaderId> {
    batch.transactions().iter().map(|transaction| transaction.id())
}

/// Tells of a block, unless nothing is in it.
fn publish(transaction_ids: Vec<HeaderId>, common: &mut Common) {
    if !transaction_ids.is_empty() {
        let service_id = GlobalScopeId.service_id().clone();
        common.events.publish(Event { service_id, transaction_ids });
    }
}
