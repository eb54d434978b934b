//! Gives batches a position in the order of their services when nothing is missing any more.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Text},
};
use grid_batch_core::{ItemId, ServiceId, Timestamp};

use super::{
    IncompleteBatch, Positioned, PositionedBatch,
    changed::insert_changed,
    dependencies::{self, Dependent, Finding, Missing},
    evaluate::{EndReason, evaluate_with},
    index, lengths, missing, waiting,
};
use crate::sql::{Connection, Rows, Scheduler, Statement, StoreError};

/// What became of batches that missed transactions.
#[derive(Debug, Default)]
pub(crate) struct GivenPositions {
    /// Those that have a position now.
    pub(crate) positioned: Vec<Positioned>,
    /// Those that are not to be sent.
    pub(crate) ending: Vec<(IncompleteBatch, EndReason)>,
    /// Those that miss something still.
    pub(crate) missing: Vec<(IncompleteBatch, Vec<Missing>)>,
}

/// Evaluates waiting batches without a position, of locked services. Those that miss nothing any more
/// come after all others of their service. The ledger does not have the transactions in `absent`, which they
/// miss.
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
            Some(Finding::Missing(ids)) => result.missing.push((key, ids)),
            Some(Finding::Invalid(invalid)) => {
                result.ending.push((key, EndReason::Dependency(invalid)));
            }
            finding => {
                findings.extend(finding.map(|finding| (batch.seq, finding)));
                ready.push(batch);
            }
        }
    }
    write_missing(connection, &result.missing, &ready, now)?;
    result.positioned = insert(connection, scheduler, ready, findings, locked, now)?;
    Ok(result)
}

/// Records what is missing now.
fn write_missing(
    connection: &mut Connection,
    still: &[(IncompleteBatch, Vec<Missing>)],
    ready: &[PositionedBatch],
    now: Timestamp,
) -> Result<(), StoreError> {
    let rows = still.iter().map(|((seq, _), ids)| (*seq, ids.as_slice()));
    let nothing = ready.iter().map(|batch| (batch.seq, &[][..]));
    missing::remove_others(connection, &rows.chain(nothing).collect::<Vec<_>>())?;
    let rows: Vec<(&IncompleteBatch, &[Missing])> =
        still.iter().map(|(batch, ids)| (batch, ids.as_slice())).collect();
    missing::insert(connection, &rows, &HashMap::new(), now)
}

/// Inserts batches at the end of the order of their services.
fn insert(
    connection: &mut Connection,
    scheduler: &Scheduler,
    batches: Vec<PositionedBatch>,
    findings: HashMap<i64, Finding>,
    locked: &BTreeSet<ServiceId>,
    now: Timestamp,
) -> Result<Vec<Positioned>, StoreError> {
    if batches.is_empty() {
        return Ok(Vec::new());
    }
    let batches = with_positions(connection, batches, now)?;
    let lengths = lengths::load_with_new(connection, &batches)?;
    index::insert(connection, &batches, &lengths)?;
    let evaluation = evaluate_with(connection, &batches, locked, findings, &lengths)?;
    waiting::write_positions(connection, &batches, &evaluation.blockers)?;
    let seqs = || batches.iter().map(|batch| batch.seq);
    missing::end_holds(connection, seqs())?;
    let missed = missing::find_missed(connection, seqs())?;
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
    let statement = Statement::new(
        connection.dialect(),
        "-- reserve_positions
         update services set last_created_at = case
             when services.last_created_at + x.count > x.now + x.count - 1
             then services.last_created_at + x.count
             else x.now + x.count - 1 end
         from {x} where services.service_id = x.service_id
         returning services.service_id, services.last_created_at",
    )
    .rows(
        Rows::default()
            .text("service_id", counts.keys().copied())
            .long("count", counts.values().copied())
            .long("now", counts.values().map(|_| now.as_micros())),
    );
    let rows: Vec<ReservedRow> = connection.load(&statement)?;
    let mut next: HashMap<String, i64> = rows
        .into_iter()
        .map(|row| {
            let count = counts.get(row.service_id.as_str()).copied().unwrap_or(0);
            (row.service_id, row.last_created_at - count + 1)
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

#[derive(QueryableByName)]
struct ReservedRow {
    #[diesel(sql_type = Text)]
    service_id: String,
    #[diesel(sql_type = BigInt)]
    last_created_at: i64,
}
