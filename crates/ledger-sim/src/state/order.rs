//! The order in which accepted batches are to be applied one by one.

use std::collections::{HashMap, HashSet};

use grid_batch_core::ItemId;
use grid_batch_protocol::{Batch, Message, TransactionHeader};

use super::BatchAccess;
use crate::{Entry, ExecutionResult};

/// An accepted batch, and its entries in the record.
#[derive(Debug)]
pub(super) struct AuditedBatch<'a> {
    pub(super) id: ItemId,
    pub(super) origin: Origin,
    pub(super) batch: &'a Batch,
    pub(super) access: BatchAccess,
    pub(super) transaction_ids: Vec<ItemId>,
    /// The transactions of other batches that it depends on.
    pub(super) dependencies: Vec<ItemId>,
    pub(super) findings: Findings,
}

/// Where a batch came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Accepted,
    /// It was accepted, and an operator has ended it as invalid.
    Ended,
    /// Another client has sent it to the ledger.
    OtherClient,
}

/// The result of a batch in the record.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Findings {
    /// The position of the first entry that says that it was applied, or of the last that it is invalid.
    pub(super) position: Option<usize>,
    pub(super) times_applied: usize,
    /// It was never applied, and by its last entry it was refused regardless of its content.
    pub(super) is_refused: bool,
}

impl<'a> AuditedBatch<'a> {
    /// `None` if its ids cannot be read.
    pub(super) fn new(
        batch: &'a Batch,
        origin: Origin,
        findings: &HashMap<ItemId, Findings>,
    ) -> Option<Self> {
        let id = batch.header_signature.parse().ok()?;
        let transactions = batch.transactions.iter();
        let transaction_ids: Vec<ItemId> =
            transactions.clone().filter_map(|it| it.header_signature.parse().ok()).collect();
        let headers = transactions.filter_map(|it| TransactionHeader::decode(&*it.header).ok());
        let dependencies = headers.flat_map(|header| header.dependencies);
        let dependencies = dependencies.filter_map(|text| text.parse().ok());
        Some(Self {
            id,
            origin,
            batch,
            access: BatchAccess::of_batch(batch).with_reads_of_the_ledger(),
            dependencies: dependencies.filter(|id| !transaction_ids.contains(id)).collect(),
            transaction_ids,
            findings: findings.get(&id).copied().unwrap_or_default(),
        })
    }

    /// Whether the ledger is expected to apply it. Batches of other clients may be lost, and an operator's decision is
    /// final.
    pub(super) fn may_apply(&self) -> bool {
        match self.origin {
            Origin::Accepted => true,
            Origin::Ended => false,
            Origin::OtherClient => self.findings.times_applied > 0,
        }
    }

    pub(super) fn result(&self) -> Option<ExecutionResult> {
        let result = match self.findings.times_applied {
            0 => ExecutionResult::Invalid,
            _ => ExecutionResult::Applied,
        };
        self.findings.position.map(|_| result)
    }
}

/// The result of each batch in a record.
pub(super) fn findings(record: &[Entry]) -> HashMap<ItemId, Findings> {
    let mut all: HashMap<ItemId, Findings> = HashMap::new();
    for (position, entry) in record.iter().enumerate() {
        let found = all.entry(entry.batch_id).or_default();
        match entry.result {
            ExecutionResult::Applied => {
                if found.times_applied == 0 {
                    *found = Findings { position: Some(position), ..Findings::default() };
                }
                found.times_applied += 1;
            }
            ExecutionResult::Invalid if found.times_applied == 0 => {
                found.position = Some(position);
                found.is_refused = entry.refused;
            }
            ExecutionResult::Invalid => {}
        }
    }
    all
}

/// A batch in the order in which they are to be applied.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ordered<'a> {
    pub(super) batch: &'a AuditedBatch<'a>,
    /// Its position is that of its execution, not of its acceptance.
    pub(super) is_late: bool,
}

/// The batches in the order in which they were accepted. A batch that depends on a batch that was accepted later,
/// directly or indirectly, has no position in that order until the other batch has arrived. It gets the position of its
/// execution, behind all batches that it conflicts with or depends on and that were executed before it. Batches of
/// other clients get their positions in the same way.
pub(super) fn serial_order<'a>(batches: &'a [AuditedBatch<'a>]) -> Vec<Ordered<'a>> {
    let appliers = appliers(batches);
    let (mut order, mut late) = (Vec::new(), Vec::new());
    let mut placed: HashSet<ItemId> = HashSet::new();
    let mut placed_batches: HashSet<ItemId> = HashSet::new();
    for batch in batches {
        // A transaction that was applied with a later batch than the first that had it.
        let came_later = |id: &ItemId| {
            batch.findings.times_applied > 0
                && appliers.get(id).is_some_and(|applier| !placed_batches.contains(applier))
        };
        let is_placed = |id: &ItemId| placed.contains(id) && !came_later(id);
        if batch.origin != Origin::OtherClient && batch.dependencies.iter().all(is_placed) {
            placed.extend(&batch.transaction_ids);
            placed_batches.insert(batch.id);
            order.push(Ordered { batch, is_late: false });
        } else {
            late.push(batch);
        }
    }
    late.sort_by_key(|batch| batch.findings.position.unwrap_or(usize::MAX));
    for batch in late {
        order.insert(place_of(batch, &order), Ordered { batch, is_late: true });
    }
    order
}

/// The accepted batch with which each transaction was applied.
fn appliers(batches: &[AuditedBatch<'_>]) -> HashMap<ItemId, ItemId> {
    let is_applied =
        |it: &&AuditedBatch<'_>| it.origin == Origin::Accepted && it.findings.times_applied > 0;
    let applied = batches.iter().filter(is_applied);
    applied.flat_map(|it| it.transaction_ids.iter().map(|id| (*id, it.id))).collect()
}

fn place_of(late: &AuditedBatch<'_>, order: &[Ordered<'_>]) -> usize {
    let Some(position) = late.findings.position else { return order.len() };
    let is_before = |Ordered { batch: other, .. }: &Ordered<'_>| {
        let was_executed_before = other.findings.position.is_some_and(|it| it < position);
        other.transaction_ids.iter().any(|id| late.dependencies.contains(id))
            || (was_executed_before && other.access.conflicts_with(&late.access))
    };
    order.iter().rposition(is_before).map_or(0, |last| last + 1)
}
