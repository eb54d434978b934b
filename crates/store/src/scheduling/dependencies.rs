//! What the transactions mean that a batch depends on: another batch that must end first, a question to the
//! ledger, or that the batch cannot be submitted.

use std::collections::HashMap;

use grid_batch_core::{ItemId, ServiceId};

use super::{
    PositionedBatch,
    holders::{self, Holder, HolderState, Holders, Known},
};
use crate::sql::{Connection, StoreError};

/// What the dependencies of a batch mean for it. A batch without a finding has none that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finding {
    /// A batch with one of them is open.
    Waits {
        /// The other batch.
        blocker_seq: i64,
        /// Its service.
        service_id: ServiceId,
    },
    /// These are in no batch that can be submitted before it. The ledger is asked whether it has them.
    Missing(Vec<Missing>),
    /// One of them is only in batches that ended as invalid, and the ledger does not have it.
    Invalid(InvalidDependency),
    /// One of them is in an invalid batch, and an operator has ended what that one stops, up to a position.
    EndedWith {
        /// The invalid batch.
        blocker_seq: i64,
        /// The last position.
        until: i64,
    },
}

/// A transaction that a batch depends on and misses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Missing {
    /// The transaction.
    pub(crate) transaction_id: ItemId,
    /// A batch with it that ended as invalid. The ledger may have it from another batch.
    pub(crate) invalid_seq: Option<i64>,
}

/// A transaction of an invalid batch, on which another one depends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InvalidDependency {
    /// The transaction.
    pub(crate) transaction_id: ItemId,
    /// The number of the invalid batch.
    pub(crate) seq: i64,
    /// Its id, unless retention has removed it.
    pub(crate) batch_id: Option<ItemId>,
}

impl InvalidDependency {
    /// Why a batch that depends on it is invalid.
    pub(crate) fn reason(&self) -> String {
        let Self { transaction_id, batch_id, .. } = self;
        let name = batch_id.map_or_else(String::new, |id| format!(" {id:.12}"));
        format!(
            "it depends on the transaction {transaction_id}, whose batch{name} is invalid, and the ledger \
             does not have the transaction"
        )
    }
}

/// A batch whose dependencies are evaluated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dependent<'a> {
    pub(crate) seq: i64,
    pub(crate) service_id: &'a ServiceId,
    /// `None`: it has no position yet.
    pub(crate) position: Option<i64>,
    pub(crate) dependencies: &'a [ItemId],
}

impl<'a> Dependent<'a> {
    /// A batch that has its position already.
    pub(super) fn positioned(batch: &'a PositionedBatch) -> Self {
        Self { position: Some(batch.position), ..Self::new(batch) }
    }

    /// A batch that gets its position if nothing is missing.
    pub(super) fn new(batch: &'a PositionedBatch) -> Self {
        let dependencies = batch.access.dependencies();
        Self { seq: batch.seq, service_id: &batch.service_id, position: None, dependencies }
    }
}

/// What the dependencies of these batches mean, by the number of the batch. The ledger was asked about
/// those in `absent` while the batches missed them, and does not have them.
pub(crate) fn find(
    connection: &mut Connection,
    batches: &[Dependent<'_>],
    absent: &[ItemId],
) -> Result<HashMap<i64, Finding>, StoreError> {
    let judge = Judge {
        holders: holders::load(connection, batches)?,
        known: holders::load_known(connection, batches)?,
        absent,
        new: HashMap::new(),
    };
    let finding = |batch: &Dependent<'_>| Some((batch.seq, judge.all_of(batch)?));
    Ok(batches.iter().filter_map(finding).collect())
}

/// What the dependencies of new batches of one commit mean, which may depend on each other. They are in the
/// order of their positions.
pub(super) fn find_of_new(
    connection: &mut Connection,
    batches: &[PositionedBatch],
) -> Result<HashMap<i64, Finding>, StoreError> {
    let dependents: Vec<Dependent<'_>> = batches.iter().map(Dependent::new).collect();
    if dependents.iter().all(|batch| batch.dependencies.is_empty()) {
        return Ok(HashMap::new());
    }
    let mut judge = Judge {
        holders: holders::load(connection, &dependents)?,
        known: HashMap::new(),
        absent: &[],
        new: batches.iter().map(|batch| (batch.seq, None)).collect(),
    };
    let mut findings = HashMap::new();
    for (batch, dependent) in batches.iter().zip(&dependents) {
        match judge.all_of(dependent) {
            Some(finding @ Finding::Missing(_)) => {
                findings.insert(batch.seq, finding);
            }
            finding => {
                judge.new.insert(batch.seq, Some(batch.position));
                findings.extend(finding.map(|finding| (batch.seq, finding)));
            }
        }
    }
    Ok(findings)
}

/// What is known when batches are evaluated.
struct Judge<'a> {
    holders: Holders,
    known: HashMap<(i64, ItemId), Known>,
    /// The ledger does not have these.
    absent: &'a [ItemId],
    /// The positions of the batches that are being stored.
    new: HashMap<i64, Option<i64>>,
}

impl Judge<'_> {
    /// What the dependencies of a batch mean.
    ///
    /// What is invalid ends the batch, whatever else is missing; and it waits for no other batch as long as
    /// anything is missing.
    fn all_of(&self, batch: &Dependent<'_>) -> Option<Finding> {
        let mut missing = Vec::new();
        let mut waits = None;
        for id in batch.dependencies {
            match self.one(batch, *id) {
                Some(ended @ (Finding::Invalid(_) | Finding::EndedWith { .. })) => {
                    return Some(ended);
                }
                Some(Finding::Missing(ids)) => missing.extend(ids),
                Some(waiting) => waits = waits.or(Some(waiting)),
                None => {}
            }
        }
        match missing.is_empty() {
            true => waits,
            false => Some(Finding::Missing(missing)),
        }
    }

    fn one(&self, batch: &Dependent<'_>, transaction_id: ItemId) -> Option<Finding> {
        let known = self.known.get(&(batch.seq, transaction_id)).copied();
        let holders = self.holders.get(&transaction_id).map_or(&[][..], Vec::as_slice);
        let others: Vec<&Holder> = holders.iter().filter(|it| it.seq != batch.seq).collect();
        let is_committed = |holder: &&Holder| holder.state == HolderState::Committed;
        if known == Some(Known::Found) || others.iter().any(is_committed) {
            return None;
        }
        let invalid = latest_invalid(transaction_id, &others, known);
        let may_wait = |holder: &&&Holder| self.may_wait(batch, holder, invalid.is_some());
        if let Some(blocker) = others.iter().find(may_wait) {
            let service_id = blocker.service_id.clone();
            return Some(Finding::Waits { blocker_seq: blocker.seq, service_id });
        }
        if let Some(finding) = others.iter().find_map(|holder| batch.ended_with(holder)) {
            return Some(finding);
        }
        let is_open = others.iter().any(|holder| matches!(holder.state, HolderState::Open(_)));
        match invalid {
            // It had everything when it got its position.
            None if batch.position.is_some() => None,
            Some(invalid)
                if self.is_absent(transaction_id)
                    && known == Some(Known::Invalid(invalid.seq))
                    && !(is_open && batch.is_unpositioned()) =>
            {
                Some(Finding::Invalid(invalid))
            }
            invalid => {
                let invalid_seq = invalid.map(|invalid| invalid.seq);
                Some(Finding::Missing(vec![Missing { transaction_id, invalid_seq }]))
            }
        }
    }

    fn is_absent(&self, transaction_id: ItemId) -> bool {
        self.absent.contains(&transaction_id)
    }

    /// A batch waits only for what got its position before. Otherwise, two could wait for each other.
    ///
    /// If an invalid batch has the transaction, too, one that has it came again later, and may wait itself
    /// for the batch that depends on it.
    fn may_wait(&self, batch: &Dependent<'_>, holder: &Holder, came_again: bool) -> bool {
        let position = match holder.state {
            HolderState::Halted => return true,
            HolderState::Open(position) => self.new.get(&holder.seq).copied().unwrap_or(position),
            _ => None,
        };
        let in_order = came_again || holder.service_id == *batch.service_id;
        position
            .is_some_and(|position| !in_order || batch.position.is_none_or(|own| position < own))
    }
}

/// The latest invalid batch with a transaction, also if it is not stored any more.
fn latest_invalid(
    transaction_id: ItemId,
    others: &[&Holder],
    known: Option<Known>,
) -> Option<InvalidDependency> {
    let invalid = others.iter().filter(|holder| holder.state.is_invalid());
    match (invalid.max_by_key(|holder| holder.seq), known) {
        (Some(Holder { seq, batch_id, .. }), _) => {
            Some(InvalidDependency { transaction_id, seq: *seq, batch_id: Some(*batch_id) })
        }
        (None, Some(Known::Invalid(seq))) => {
            Some(InvalidDependency { transaction_id, seq, batch_id: None })
        }
        (None, _) => None,
    }
}

impl Dependent<'_> {
    fn is_unpositioned(&self) -> bool {
        self.position.is_none()
    }

    /// Whether it ends with what an invalid batch of its service stops, by an operator's decision.
    fn ended_with(&self, holder: &Holder) -> Option<Finding> {
        let HolderState::EndsFollowing(until) = holder.state else { return None };
        let follows = holder.service_id == *self.service_id
            && self.position.is_some_and(|position| position <= until);
        follows.then_some(Finding::EndedWith { blocker_seq: holder.seq, until })
    }
}
