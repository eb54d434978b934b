use std::collections::{BTreeSet, HashMap, HashSet};

use grid_batch_core::{ItemId, NewBatch, SignerId, Timestamp};

use super::{
    IncompleteBatch, PositionedBatch,
    changed::insert_changed,
    dependencies::{self, Finding, Missing},
    evaluate::evaluate_with,
    index, lengths, missing, waiting,
};
use crate::sql::{Connection, Scheduler, StoreError};

/// Adds new batches of locked services, in the order of their positions, to the index and to those that wait.
/// Which of them become next is decided when the lanes are filled.
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
    let lengths = lengths::load_with_new(connection, &positioned)?;
    index::insert(connection, &positioned, &lengths)?;
    let locked = positioned.iter().map(|batch| batch.service_id.clone()).collect();
    let evaluation = evaluate_with(connection, &positioned, &locked, findings, &lengths)?;
    waiting::insert(connection, &positioned, &evaluation.blockers)?;
    waiting::insert_unpositioned(connection, incomplete.iter().map(|(batch, _)| *batch))?;
    let missing: Vec<(IncompleteBatch, &[Missing])> = incomplete
        .iter()
        .map(|(batch, ids)| ((batch.seq, batch.service_id.clone()), ids.as_slice()))
        .collect();
    let missing: Vec<_> = missing.iter().map(|(batch, ids)| (batch, *ids)).collect();
    missing::insert(connection, &missing, signers, now)?;
    let missed = missing::find_missed(connection, positioned.iter().map(|batch| batch.seq))?;
    let left: BTreeSet<i64> = evaluation.left_with_ending().chain(missed).collect();
    insert_changed(connection, scheduler, left, now)
}

/// What new batches miss that are not stored yet, by the number of each: transactions that no stored batch
/// can bring before it.
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
    let missing = |(seq, finding): (i64, Finding)| match finding {
        Finding::Missing(missing) => {
            let number = usize::try_from(-1 - seq).ok()?;
            Some((number, missing.into_iter().map(|it| it.transaction_id).collect()))
        }
        _ => None,
    };
    Ok(findings.into_iter().filter_map(missing).collect())
}

/// The batches that miss transactions, with these. Removes them from the findings.
fn take_missing<'a>(
    batches: &'a [PositionedBatch],
    findings: &mut HashMap<i64, Finding>,
) -> Vec<(&'a PositionedBatch, Vec<Missing>)> {
    let mut take = |batch: &'a PositionedBatch| match findings.remove(&batch.seq)? {
        Finding::Missing(ids) => Some((batch, ids)),
        finding => {
            findings.insert(batch.seq, finding);
            None
        }
    };
    batches.iter().filter_map(&mut take).collect()
}
