use std::collections::{BTreeSet, HashMap};

use grid_batch_core::{ItemId, ServiceId};

use super::{
    Blocker, PositionedBatch, conflicts,
    dependencies::{self, Dependent, Finding, InvalidDependency, Missing},
    lengths::{self, ServiceLengths},
};
use crate::sql::{Connection, StoreError};

/// What batches that have a position wait for.
#[derive(Debug, Default)]
pub(crate) struct Evaluation {
    /// The batch that must end first, by the number of the one that waits. A batch that is not in it is
    /// free.
    pub(crate) blockers: HashMap<i64, Blocker>,
    /// The batches that are not to be sent, because of their blockers, which have ended.
    pub(crate) ending: HashMap<i64, EndReason>,
    /// What batches miss that had everything when they got their positions: a batch that they depend on has
    /// ended as invalid, and the ledger is asked whether it has the transaction from another one.
    pub(crate) missing: HashMap<i64, Vec<Missing>>,
    /// Blockers of services that are not locked, which may have ended meanwhile: the job looks at them.
    pub(crate) left: BTreeSet<i64>,
}

/// Why a batch ends without being sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EndReason {
    /// It depends on a transaction of an invalid batch, which the ledger does not have.
    Dependency(InvalidDependency),
    /// An operator decided that what an invalid batch stops ends, up to this position.
    Halt {
        /// The last position.
        until: i64,
    },
}

/// Finds what batches of locked services wait for now. The ledger does not have the transactions in `absent`,
/// which they miss.
pub(crate) fn evaluate(
    connection: &mut Connection,
    batches: &[PositionedBatch],
    locked: &BTreeSet<ServiceId>,
    absent: &[ItemId],
) -> Result<Evaluation, StoreError> {
    if batches.is_empty() {
        return Ok(Evaluation::default());
    }
    let dependents: Vec<Dependent<'_>> = batches.iter().map(Dependent::positioned).collect();
    let findings = dependencies::find(connection, &dependents, absent)?;
    let lengths = lengths::load(connection, batches.iter().map(|batch| &batch.service_id))?;
    evaluate_with(connection, batches, locked, findings, &lengths)
}

/// Finds what batches wait for whose dependencies are known. Dependencies come first.
pub(super) fn evaluate_with(
    connection: &mut Connection,
    batches: &[PositionedBatch],
    locked: &BTreeSet<ServiceId>,
    findings: HashMap<i64, Finding>,
    lengths: &ServiceLengths,
) -> Result<Evaluation, StoreError> {
    let mut evaluation = Evaluation::default();
    for (seq, finding) in findings {
        evaluation.add_finding(seq, finding, locked);
    }
    let is_independent = |batch: &&PositionedBatch| !evaluation.blockers.contains_key(&batch.seq);
    let independent: Vec<PositionedBatch> =
        batches.iter().filter(is_independent).cloned().collect();
    let conflicts = conflicts::find(connection, batches, &independent, lengths)?;
    for batch in &independent {
        if let Some(blocker) = conflicts.get(&batch.seq) {
            evaluation.add_conflict(batch, *blocker);
        }
    }
    Ok(evaluation)
}

impl Evaluation {
    /// The batches because of which others end.
    pub(crate) fn blockers_of_ending(&self) -> impl Iterator<Item = i64> {
        self.ending.keys().filter_map(|seq| Some(self.blockers.get(seq)?.seq))
    }

    /// What the job looks at, if it is also to end the batches that end.
    pub(super) fn left_with_ending(&self) -> impl Iterator<Item = i64> {
        self.left.iter().copied().chain(self.blockers_of_ending())
    }

    fn add_finding(&mut self, seq: i64, finding: Finding, locked: &BTreeSet<ServiceId>) {
        let blocker = match finding {
            Finding::Waits { blocker_seq, service_id } => {
                if !locked.contains(&service_id) {
                    self.left.insert(blocker_seq);
                }
                blocker_seq
            }
            Finding::Invalid(invalid) => {
                let blocker = invalid.seq;
                self.ending.insert(seq, EndReason::Dependency(invalid));
                blocker
            }
            Finding::EndedWith { blocker_seq, until } => {
                self.ending.insert(seq, EndReason::Halt { until });
                blocker_seq
            }
            // Until the ledger has answered, it is its own blocker: nothing frees it, and the end of the
            // invalid batch does not find it again.
            Finding::Missing(missing) => {
                self.missing.insert(seq, missing);
                seq
            }
        };
        self.blockers.insert(seq, Blocker::dependency(blocker));
    }

    fn add_conflict(&mut self, batch: &PositionedBatch, blocker: Blocker) {
        if let Some(until) = blocker.ends_until.filter(|until| batch.position <= *until) {
            self.ending.insert(batch.seq, EndReason::Halt { until });
        }
        self.blockers.insert(batch.seq, blocker);
    }
}
