//! Evaluates batches that missed a transaction.

use std::collections::BTreeSet;

use grid_batch_core::batches::BatchState;
use grid_batch_core::events::EventKind;
use grid_batch_core::{ItemId, ServiceId, Timestamp};

use super::{IncompleteBatch, end_holds, remove_missing, table::mark_overdue};
use crate::{
    batch::{Unsendable, end_unsendable, evaluate_answered, fill},
    events::{NewEvent, insert_events},
    scheduling::{GivenPositions, Missing, Positioned, give_positions, load_positions},
    sql::{Connection, Rows, Scheduler, StoreError},
};

/// The result for batches that missed transactions.
#[derive(Debug, Default)]
pub(super) struct EvaluatedIncomplete {
    /// The services that may have got a next batch.
    pub(super) ready: BTreeSet<ServiceId>,
    /// The batches that still miss something.
    pub(super) missing: Vec<IncompleteBatch>,
    /// Those of `missing` that miss a transaction of an invalid batch about which the ledger has not answered.
    pub(super) unanswered: BTreeSet<i64>,
    /// How many ended.
    pub(super) ended: usize,
}

/// Evaluates batches of locked services that missed transactions. The ledger does not have those in `absent`: if only
/// invalid batches contain one of these, the batches that depend on it end.
pub(super) fn evaluate_incomplete(
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
        // The lanes were already filled when these batches ended.
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

/// Evaluates batches that have positions and miss a transaction of a batch that ended as invalid.
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

/// Evaluates batches of locked services that missed transactions. Those that no longer miss anything get positions,
/// unless they have them. Returns the services that got a next batch, and the batches that still miss something.
pub(crate) fn give_positions_if_complete(
    connection: &mut Connection,
    scheduler: &Scheduler,
    batches: &[IncompleteBatch],
    locked: &BTreeSet<ServiceId>,
    now: Timestamp,
) -> Result<(BTreeSet<ServiceId>, Vec<IncompleteBatch>), StoreError> {
    let evaluated = evaluate_incomplete(connection, scheduler, batches, &[], locked, now)?;
    Ok((evaluated.ready, evaluated.missing))
}

/// Holds batches of locked services that have missed transactions for too long, unless these have arrived. Returns
/// their number.
pub(super) fn hold_overdue(
    connection: &mut Connection,
    scheduler: &Scheduler,
    batches: &[IncompleteBatch],
    locked: &BTreeSet<ServiceId>,
    limit: &str,
    now: Timestamp,
) -> Result<usize, StoreError> {
    let EvaluatedIncomplete { missing, unanswered, .. } =
        evaluate_incomplete(connection, scheduler, batches, &[], locked, now)?;
    let advice = "release the batch to send it anyway, or decide that it is invalid";
    let begin = format!("a transaction that it depends on has not arrived within {limit}");
    let absent = format!("{begin}, and the ledger does not have it; {advice}");
    let no_answer = format!(
        "{begin}: the batch that has it is invalid, and the ledger did not answer whether \
         it has the transaction from another one; {advice}"
    );
    let reason = |seq: &i64| if unanswered.contains(seq) { &no_answer } else { &absent };
    // An operator's hold is kept.
    let held: Vec<(i64, String)> = connection.load_row_tuples(
        "-- hold_overdue
         insert into waiting_holds (batch_seq, held_at, held_reason, cause)
         select batch_seq, held_at, held_reason, 'MISSING_TRANSACTION' from {x} where true
         on conflict (batch_seq) do nothing
         returning batch_seq, held_reason",
        Rows::default()
            .long("batch_seq", missing.iter().map(|(seq, _)| *seq))
            .long("held_at", missing.iter().map(|_| now.as_micros()))
            .text("held_reason", missing.iter().map(|(seq, _)| reason(seq).as_str())),
    )?;
    let event = |(batch_seq, reason): (i64, String)| NewEvent {
        batch_seq,
        kind: EventKind::Held,
        state: BatchState::New,
        attempt: 0,
        detail: Some(reason),
    };
    let events: Vec<NewEvent> = held.into_iter().map(event).collect();
    insert_events(connection, scheduler.events(), &events, now)?;
    mark_overdue(connection, missing.iter().map(|(seq, _)| *seq))?;
    Ok(missing.len())
}
