//! What becomes of batches that missed a transaction.

use std::collections::BTreeSet;

use grid_batch_core::{ItemId, ServiceId, Timestamp};

use super::{Unsendable, end_unsendable, fill, free::evaluate_answered};
use crate::{
    scheduling::{
        GivenPositions, IncompleteBatch, Missing, Positioned, end_holds, give_positions,
        load_positions, remove_missing,
    },
    sql::{Connection, Scheduler, StoreError},
};

/// What became of batches that missed transactions.
#[derive(Debug, Default)]
pub(crate) struct EvaluatedIncomplete {
    /// The services that may have got a next batch.
    pub(crate) ready: BTreeSet<ServiceId>,
    /// The batches that miss something still.
    pub(crate) missing: Vec<IncompleteBatch>,
    /// Those of them of which an invalid batch has a transaction: the ledger has not answered about it.
    pub(crate) unanswered: BTreeSet<i64>,
    /// How many ended.
    pub(crate) ended: usize,
}

/// Evaluates batches of locked services that missed transactions. The ledger does not have those in `absent`:
/// batches end that depend on one which only invalid batches have.
pub(crate) fn evaluate_incomplete(
    connection: &mut Connection,
    scheduler: &Scheduler,
    batches: &[IncompleteBatch],
    absent: &[ItemId],
    locked: &BTreeSet<ServiceId>,
    now: Timestamp,
) -> Result<EvaluatedIncomplete, StoreError> {
    let positions = load_positions(connection, batches.iter().map(|(seq, _)| *seq))?;
    let position = |batch: &IncompleteBatch| positions.get(&batch.0).copied();
    let unpositioned = batches.iter().filter(|it| position(it) == Some(None)).cloned().collect();
    let with_position =
        |batch: &IncompleteBatch| Some((batch.0, batch.1.clone(), position(batch)??));
    let positioned: Vec<Positioned> = batches.iter().filter_map(with_position).collect();
    let others = batches.iter().filter(|it| position(it).is_none());
    remove_missing(connection, others.map(|(seq, _)| *seq))?;
    let mut evaluated =
        evaluate_unpositioned(connection, scheduler, unpositioned, absent, locked, now)?;
    evaluate_positioned(connection, scheduler, &positioned, absent, locked, now, &mut evaluated)?;
    let services: BTreeSet<ServiceId> =
        batches.iter().map(|(_, service_id)| service_id.clone()).collect();
    evaluated.ready = fill(connection, scheduler, &services, now)?;
    if evaluated.ended > 0 {
        // The ends have filled lanes before.
        evaluated.ready.extend(services);
    }
    Ok(evaluated)
}

fn evaluate_unpositioned(
    connection: &mut Connection,
    scheduler: &Scheduler,
    batches: Vec<IncompleteBatch>,
    absent: &[ItemId],
    locked: &BTreeSet<ServiceId>,
    now: Timestamp,
) -> Result<EvaluatedIncomplete, StoreError> {
    if batches.is_empty() {
        return Ok(EvaluatedIncomplete::default());
    }
    let GivenPositions { ending, missing, .. } =
        give_positions(connection, scheduler, &batches, absent, locked, now)?;
    let ending: Vec<Unsendable> =
        ending.into_iter().map(|((seq, _), reason)| (seq, reason)).collect();
    end_holds(connection, ending.iter().map(|(seq, _)| *seq))?;
    let unanswered = missing.iter().filter(|(_, missing)| is_unanswered(missing));
    Ok(EvaluatedIncomplete {
        unanswered: unanswered.map(|((seq, _), _)| *seq).collect(),
        missing: missing.iter().map(|(batch, _)| batch.clone()).collect(),
        ended: end_unsendable(connection, scheduler, &ending, now)?,
        ready: BTreeSet::new(),
    })
}

/// Evaluates batches that have their positions, and miss a transaction of a batch that ended as invalid.
fn evaluate_positioned(
    connection: &mut Connection,
    scheduler: &Scheduler,
    batches: &[Positioned],
    absent: &[ItemId],
    locked: &BTreeSet<ServiceId>,
    now: Timestamp,
    evaluated: &mut EvaluatedIncomplete,
) -> Result<(), StoreError> {
    if batches.is_empty() {
        return Ok(());
    }
    let evaluation = evaluate_answered(connection, scheduler, batches, absent, locked, now)?;
    let (still, settled): (Vec<&Positioned>, Vec<&Positioned>) =
        batches.iter().partition(|(seq, ..)| evaluation.missing.contains_key(seq));
    remove_missing(connection, settled.iter().map(|(seq, ..)| *seq))?;
    end_holds(connection, settled.iter().map(|(seq, ..)| *seq))?;
    evaluated.missing.extend(still.iter().map(|(seq, service_id, _)| (*seq, service_id.clone())));
    evaluated.unanswered.extend(still.iter().map(|(seq, ..)| *seq));
    let ending: Vec<Unsendable> = evaluation.ending.into_iter().collect();
    evaluated.ended += end_unsendable(connection, scheduler, &ending, now)?;
    Ok(())
}

fn is_unanswered(missing: &[Missing]) -> bool {
    missing.iter().any(|missing| missing.invalid_seq.is_some())
}
