//! Finds what batches wait for: new ones when they are stored, and others when something has changed. A batch that
//! no longer misses anything gets its position in the order of its service.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use grid_batch_core::batches::{NewBatch, SignerId};
use grid_batch_core::{ItemId, ServiceId, Timestamp};

use super::{
    Blocker, Positioned, PositionedBatch, conflicts,
    dependencies::{self, DependencyState, Dependent, InvalidDependency, Missing},
    index::{self, ServiceLengths},
    insert_changed, waiting,
};
use crate::{
    missing::{IncompleteBatch, end_holds, find_missed, insert_missing, remove_others},
    sql::{Connection, Rows, Scheduler, StoreError},
};

/// What batches that have a position wait for.
#[derive(Debug, Default)]
pub(crate) struct Evaluation {
    /// The batch that must end first, by the number of the waiting batch. A batch that is not in the map is free.
    pub(crate) blockers: HashMap<i64, Blocker>,
    /// The batches that must not be sent because of their blockers, which have ended.
    pub(crate) ending: HashMap<i64, EndReason>,
    /// What batches miss although they missed nothing when they got their positions: a batch that they depend on has
    /// ended as invalid, and the ledger is asked whether it has the transaction from another batch.
    pub(crate) missing: HashMap<i64, Vec<Missing>>,
    /// Blockers of services that are not locked. They may have ended meanwhile, so they are left to the job.
    pub(crate) left: BTreeSet<i64>,
}

/// Why a batch ends without being sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EndReason {
    /// It depends on a transaction of an invalid batch, which the ledger does not have.
    Dependency(InvalidDependency),
    /// An operator has decided that the batches that an invalid batch stops end, up to this position.
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
    let lengths = index::load_lengths(connection, batches.iter().map(|batch| &batch.service_id))?;
    evaluate_with(connection, batches, locked, findings, &lengths)
}

/// Finds what batches with known dependencies wait for. Dependencies come first.
pub(super) fn evaluate_with(
    connection: &mut Connection,
    batches: &[PositionedBatch],
    locked: &BTreeSet<ServiceId>,
    findings: HashMap<i64, DependencyState>,
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
    /// The batches that make others end.
    pub(crate) fn blockers_of_ending(&self) -> impl Iterator<Item = i64> {
        self.ending.keys().filter_map(|seq| Some(self.blockers.get(seq)?.seq))
    }

    /// The batches that are left to the job, if the job must also end the batches in `ending`.
    pub(super) fn left_with_ending(&self) -> impl Iterator<Item = i64> {
        self.left.iter().copied().chain(self.blockers_of_ending())
    }

    fn add_finding(&mut self, seq: i64, finding: DependencyState, locked: &BTreeSet<ServiceId>) {
        let blocker = match finding {
            DependencyState::Waits { blocker_seq, service_id } => {
                if !locked.contains(&service_id) {
                    self.left.insert(blocker_seq);
                }
                blocker_seq
            }
            DependencyState::Invalid(invalid) => {
                let blocker = invalid.seq;
                self.ending.insert(seq, EndReason::Dependency(invalid));
                blocker
            }
            DependencyState::EndedWith { blocker_seq, until } => {
                self.ending.insert(seq, EndReason::Halt { until });
                blocker_seq
            }
            // Until the ledger has answered, the batch is its own blocker, so that nothing frees it and the end of the
            // invalid batch does not find it again.
            DependencyState::Missing(missing) => {
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

/// Adds new batches of locked services, in the order of their positions, to the index and to the waiting batches. Which
/// of them become next is decided when the lanes are filled.
///
/// A batch that misses a transaction gets its position later.
pub(crate) fn add_waiting(
    connection: &mut Connection,
    scheduler: &Scheduler,
    batches: &[PositionedBatch],
    signers: &HashMap<i64, SignerId>,
    now: Timestamp,
) -> Result<(), StoreError> {
    if batches.is_empty() {
        return Ok(());
    }
    let mut findings = dependencies::find_of_new(connection, batches)?;
    let incomplete = take_missing(batches, &mut findings);
    let incomplete_seqs: HashSet<i64> = incomplete.iter().map(|(batch, _)| batch.seq).collect();
    let has_position = |batch: &&PositionedBatch| !incomplete_seqs.contains(&batch.seq);
    let positioned: Vec<PositionedBatch> = batches.iter().filter(has_position).cloned().collect();
    let lengths = index::load_lengths_with_new(connection, &positioned)?;
    index::insert_addresses(connection, &positioned, &lengths)?;
    let locked = positioned.iter().map(|batch| batch.service_id.clone()).collect();
    let evaluation = evaluate_with(connection, &positioned, &locked, findings, &lengths)?;
    waiting::insert(connection, &positioned, &evaluation.blockers)?;
    waiting::insert_unpositioned(connection, incomplete.iter().map(|(batch, _)| *batch))?;
    let missing: Vec<(IncompleteBatch, &[Missing])> = incomplete
        .iter()
        .map(|(batch, ids)| ((batch.seq, batch.service_id.clone()), ids.as_slice()))
        .collect();
    let missing: Vec<_> = missing.iter().map(|(batch, ids)| (batch, *ids)).collect();
    insert_missing(connection, &missing, signers, now)?;
    let missed = find_missed(connection, positioned.iter().map(|batch| batch.seq))?;
    let left: BTreeSet<i64> = evaluation.left_with_ending().chain(missed).collect();
    insert_changed(connection, scheduler, left, now)
}

/// The transactions that new batches, which are not stored yet, miss because no stored batch can provide them, by the
/// number of the batch.
pub(crate) fn find_missing_of_new(
    connection: &mut Connection,
    batches: &[&NewBatch],
) -> Result<HashMap<usize, Vec<ItemId>>, StoreError> {
    // A number that no stored batch has.
    let dependent = |(seq, batch): (i64, &&NewBatch)| {
        let access = batch.declared_access.clone()?;
        let has_dependencies = !access.dependencies().is_empty();
        let service_id = batch.service_id.clone();
        has_dependencies.then_some(PositionedBatch {
            seq: -1 - seq,
            service_id,
            position: 0,
            access,
        })
    };
    let dependents: Vec<PositionedBatch> = (0_i64..).zip(batches).filter_map(dependent).collect();
    let findings = dependencies::find_of_new(connection, &dependents)?;
    let missing = |(seq, finding): (i64, DependencyState)| match finding {
        DependencyState::Missing(missing) => {
            let number = usize::try_from(-1 - seq).ok()?;
            Some((number, missing.into_iter().map(|it| it.transaction_id).collect()))
        }
        _ => None,
    };
    Ok(findings.into_iter().filter_map(missing).collect())
}

/// Removes the batches that miss transactions from the states, and returns them with these transactions.
fn take_missing<'a>(
    batches: &'a [PositionedBatch],
    findings: &mut HashMap<i64, DependencyState>,
) -> Vec<(&'a PositionedBatch, Vec<Missing>)> {
    let mut take = |batch: &'a PositionedBatch| match findings.remove(&batch.seq)? {
        DependencyState::Missing(ids) => Some((batch, ids)),
        finding => {
            findings.insert(batch.seq, finding);
            None
        }
    };
    batches.iter().filter_map(&mut take).collect()
}

/// The result for batches that missed transactions.
#[derive(Debug, Default)]
pub(crate) struct GivenPositions {
    /// Those that have a position now.
    pub(crate) positioned: Vec<Positioned>,
    /// Those that must not be sent.
    pub(crate) ending: Vec<(IncompleteBatch, EndReason)>,
    /// Those that still miss something.
    pub(crate) missing: Vec<(IncompleteBatch, Vec<Missing>)>,
}

/// Evaluates waiting batches of locked services without a position. Those that no longer miss anything get positions
/// after all others of their service. The ledger does not have the transactions in `absent`, which they miss.
pub(crate) fn give_positions(
    connection: &mut Connection,
    scheduler: &Scheduler,
    batches: &[IncompleteBatch],
    absent: &[ItemId],
    locked: &BTreeSet<ServiceId>,
    now: Timestamp,
) -> Result<GivenPositions, StoreError> {
    let unpositioned = waiting::still_unpositioned(connection, batches)?;
    let batches: Vec<Positioned> =
        unpositioned.into_iter().map(|(seq, service_id)| (seq, service_id, 0)).collect();
    let declared = index::find_declared(connection, &batches)?;
    let dependents: Vec<Dependent<'_>> = declared.iter().map(Dependent::new).collect();
    let mut findings = dependencies::find(connection, &dependents, absent)?;
    let mut result = GivenPositions::default();
    let mut ready = Vec::new();
    for batch in declared {
        let key = (batch.seq, batch.service_id.clone());
        match findings.remove(&batch.seq) {
            Some(DependencyState::Missing(ids)) => result.missing.push((key, ids)),
            Some(DependencyState::Invalid(invalid)) => {
                result.ending.push((key, EndReason::Dependency(invalid)));
            }
            finding => {
                findings.extend(finding.map(|finding| (batch.seq, finding)));
                ready.push(batch);
            }
        }
    }
    write_missing(connection, &result.missing, &ready, now)?;
    result.positioned = insert_at_end(connection, scheduler, ready, findings, locked, now)?;
    Ok(result)
}

/// Records the transactions that are missing now.
fn write_missing(
    connection: &mut Connection,
    still: &[(IncompleteBatch, Vec<Missing>)],
    ready: &[PositionedBatch],
    now: Timestamp,
) -> Result<(), StoreError> {
    let rows = still.iter().map(|((seq, _), ids)| (*seq, ids.as_slice()));
    let nothing = ready.iter().map(|batch| (batch.seq, &[][..]));
    remove_others(connection, &rows.chain(nothing).collect::<Vec<_>>())?;
    let rows: Vec<(&IncompleteBatch, &[Missing])> =
        still.iter().map(|(batch, ids)| (batch, ids.as_slice())).collect();
    insert_missing(connection, &rows, &HashMap::new(), now)
}

/// Inserts batches at the end of the order of their services.
fn insert_at_end(
    connection: &mut Connection,
    scheduler: &Scheduler,
    batches: Vec<PositionedBatch>,
    findings: HashMap<i64, DependencyState>,
    locked: &BTreeSet<ServiceId>,
    now: Timestamp,
) -> Result<Vec<Positioned>, StoreError> {
    if batches.is_empty() {
        return Ok(Vec::new());
    }
    let batches = with_positions(connection, batches, now)?;
    let lengths = index::load_lengths_with_new(connection, &batches)?;
    index::insert_addresses(connection, &batches, &lengths)?;
    let evaluation = evaluate_with(connection, &batches, locked, findings, &lengths)?;
    waiting::write_positions(connection, &batches, &evaluation.blockers)?;
    let seqs = || batches.iter().map(|batch| batch.seq);
    end_holds(connection, seqs())?;
    let missed = find_missed(connection, seqs())?;
    let left: BTreeSet<i64> = evaluation.left_with_ending().chain(missed).collect();
    insert_changed(connection, scheduler, left, now)?;
    Ok(batches.into_iter().map(|batch| (batch.seq, batch.service_id, batch.position)).collect())
}

/// Gives batches positions after all others of their services, as if they were stored now.
fn with_positions(
    connection: &mut Connection,
    batches: Vec<PositionedBatch>,
    now: Timestamp,
) -> Result<Vec<PositionedBatch>, StoreError> {
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    for batch in &batches {
        *counts.entry(batch.service_id.as_str()).or_default() += 1;
    }
    let rows: Vec<(String, i64)> = connection.load_row_tuples(
        "-- reserve_positions
         update services set last_created_at = case
             when services.last_created_at + x.count > x.now + x.count - 1
             then services.last_created_at + x.count
             else x.now + x.count - 1 end
         from {x} where services.service_id = x.service_id
         returning services.service_id, services.last_created_at",
        Rows::default()
            .text("service_id", counts.keys().copied())
            .long("count", counts.values().copied())
            .long("now", counts.values().map(|_| now.as_micros())),
    )?;
    let mut next: HashMap<String, i64> = rows
        .into_iter()
        .map(|(service, last_created_at)| {
            let count = counts.get(service.as_str()).copied().unwrap_or(0);
            (service, last_created_at - count + 1)
        })
        .collect();
    batches
        .into_iter()
        .map(|batch| {
            let next = next.get_mut(batch.service_id.as_str());
            let next = next.ok_or_else(|| StoreError::corrupt("a batch without a service"))?;
            let position = std::mem::replace(next, *next + 1);
            Ok(PositionedBatch { position, ..batch })
        })
        .collect()
}
