use std::collections::{BTreeMap, HashMap};

use grid_batch_core::batches::{BatchLabel, BatchState, DeclaredAccess, NewBatch};
use grid_batch_core::events::EventKind;
use grid_batch_core::{ItemId, Timestamp};

use super::{CreatedAtAllocator, client_capacity::insert_client_batches};
use crate::{
    batch::fill,
    events::{NewEvent, insert_events},
    scheduling::{PositionedBatch, add_waiting},
    service_history::insert_declared_new,
    sql::{Connection, Rows, Statement, Store, StoreError},
};

/// Inserts new batches at the end of the queues of their services, and returns their `seq`.
pub(crate) fn insert(
    store: &Store,
    connection: &mut Connection,
    batches: &[&NewBatch],
    created_at: &mut CreatedAtAllocator<'_>,
) -> Result<Vec<i64>, StoreError> {
    let inserted = insert_dated(store, connection, batches, created_at)?;
    Ok(inserted.into_iter().map(|(seq, _)| seq).collect())
}

/// Inserts new batches at the end of the queues of their services, and returns the `seq` and the
/// `created_at` of each.
pub(crate) fn insert_dated(
    store: &Store,
    connection: &mut Connection,
    batches: &[&NewBatch],
    created_at: &mut CreatedAtAllocator<'_>,
) -> Result<Vec<(i64, Timestamp)>, StoreError> {
    let inserted = insert_rows(store, connection, batches, created_at, false)?;
    connection.execute(&install_first_heads(&inserted))?;
    Ok(inserted.iter().map(|batch| (batch.seq, batch.created_at)).collect())
}

/// Inserts new batches, each at its position in the order of its service. Those that can be under way now
/// become next.
pub(super) fn insert_scheduled(
    store: &Store,
    connection: &mut Connection,
    batches: &[&NewBatch],
    created_at: &mut CreatedAtAllocator<'_>,
) -> Result<(), StoreError> {
    let scheduler = &store.scheduler;
    if !scheduler.keeps_positions() {
        return insert(store, connection, batches, created_at).map(drop);
    }
    let inserted = insert_rows(store, connection, batches, created_at, true)?;
    let positioned: Vec<PositionedBatch> = inserted.iter().map(InsertedBatch::positioned).collect();
    let signers = inserted
        .iter()
        .filter_map(|it| Some((it.seq, it.batch.signer?)))
        .collect::<HashMap<_, _>>();
    let now = store.now();
    add_waiting(connection, scheduler, &positioned, &signers, now)?;
    let services = positioned.into_iter().map(|batch| batch.service_id).collect();
    fill(connection, scheduler, &services, now).map(drop)
}

fn insert_rows<'a>(
    store: &Store,
    connection: &mut Connection,
    batches: &[&'a NewBatch],
    created_at: &mut CreatedAtAllocator<'_>,
    with_access: bool,
) -> Result<Vec<InsertedBatch<'a>>, StoreError> {
    let dated: Vec<(&NewBatch, Timestamp)> =
        batches.iter().map(|batch| (*batch, created_at.next(batch.service_id.as_str()))).collect();
    created_at.open_services(connection)?;
    let traces: Vec<Option<String>> =
        batches.iter().map(|batch| batch.trace.as_ref().map(ToString::to_string)).collect();
    let rows: Vec<(i64, String, i64)> = connection.load_tuples(&insert_batches(&dated, &traces))?;
    let seqs: HashMap<(&str, i64), i64> =
        rows.iter().map(|(seq, service, at)| ((service.as_str(), *at), *seq)).collect();
    let inserted = dated
        .into_iter()
        .map(|(batch, created_at)| {
            let key = (batch.service_id.as_str(), created_at.as_micros());
            let seq = seqs.get(&key).copied();
            let seq =
                seq.ok_or_else(|| StoreError::corrupt("no row of a batch that was just inserted"))?;
            Ok(InsertedBatch { batch, created_at, seq })
        })
        .collect::<Result<Vec<_>, StoreError>>()?;
    let encode =
        |batch: &InsertedBatch<'_>| batch.batch.declared_access.as_ref().map(|it| it.encode());
    let access: Vec<Option<Vec<u8>>> =
        inserted.iter().map(|batch| encode(batch).filter(|_| with_access)).collect();
    let deadlines: Vec<Option<String>> =
        inserted.iter().map(|it| it.batch.deadline.map(|deadline| deadline.to_string())).collect();
    connection.execute(&insert_payloads(&inserted, &access, &deadlines))?;
    connection.execute(&insert_transactions(&inserted))?;
    insert_client_batches(store, connection, inserted.iter().map(|it| (it.seq, it.batch)))?;
    insert_declared_new(connection, inserted.iter().map(|it| (it.seq, it.batch)))?;
    let events: Vec<NewEvent> = inserted.iter().map(InsertedBatch::accepted).collect();
    insert_events(connection, store.scheduler.events(), &events, store.now())?;
    Ok(inserted)
}

/// The columns of labels and traces are left out if no batch of the group has one.
fn insert_batches<'a>(
    dated: &[(&'a NewBatch, Timestamp)],
    traces: &'a [Option<String>],
) -> Statement<'a> {
    let rows = new_batch_rows(dated.iter().map(|(batch, _)| *batch))
        .long("created_at", dated.iter().map(|(_, created_at)| created_at.as_micros()));
    let labels = || dated.iter().map(|(batch, _)| batch.label.as_ref().map(BatchLabel::as_str));
    if labels().flatten().next().is_none() && traces.iter().all(Option::is_none) {
        return Statement::new(
            "-- insert_batches
             insert into batches (service_id, batch_id, created_at)
             select service_id, batch_id, created_at from {x} where true
             order by service_id, created_at
             returning seq, service_id, created_at",
        )
        .rows(rows.in_chunks());
    }
    Statement::new(
        "-- insert_labelled_batches
         insert into batches (service_id, batch_id, created_at, label, trace)
         select service_id, batch_id, created_at, label, trace from {x} where true
         order by service_id, created_at
         returning seq, service_id, created_at",
    )
    .rows(
        rows.optional_text("label", labels())
            .optional_text("trace", traces.iter().map(Option::as_deref))
            .in_chunks(),
    )
}

/// The columns of deadlines are left out if no batch of the group has one.
fn insert_payloads<'a>(
    inserted: &[InsertedBatch<'a>],
    access: &'a [Option<Vec<u8>>],
    deadlines: &'a [Option<String>],
) -> Statement<'a> {
    let bytes = inserted.iter().map(|inserted| inserted.batch.serialized_batch.as_slice());
    let rows = Rows::default()
        .long("batch_seq", inserted.iter().map(|batch| batch.seq))
        .optional_bytes("declared_access", access.iter().map(|access| access.as_deref()))
        .bytes("serialized_batch", bytes);
    if deadlines.iter().all(Option::is_none) {
        return Statement::new(
            "-- insert_payloads
             insert into batch_payloads (batch_seq, declared_access, serialized_batch)
             select batch_seq, declared_access, serialized_batch from {x}",
        )
        .rows(rows.in_chunks());
    }
    Statement::new(
        "-- insert_payloads_with_deadlines
         insert into batch_payloads (batch_seq, declared_access, serialized_batch, deadline)
         select batch_seq, declared_access, serialized_batch, deadline from {x}",
    )
    .rows(rows.optional_text("deadline", deadlines.iter().map(Option::as_deref)).in_chunks())
}

fn insert_transactions<'a>(inserted: &[InsertedBatch<'a>]) -> Statement<'a> {
    let transactions: Vec<(i64, i32, &'a ItemId)> = inserted
        .iter()
        .flat_map(|inserted| {
            (0..)
                .zip(&inserted.batch.transaction_ids)
                .map(|(position, id)| (inserted.seq, position, id))
        })
        .collect();
    Statement::new(
        "-- insert_transactions
         insert into transactions (batch_seq, position, transaction_id)
         select batch_seq, position, transaction_id from {x}",
    )
    .rows(
        Rows::default()
            .long("batch_seq", transactions.iter().map(|row| row.0))
            .int("position", transactions.iter().map(|row| row.1))
            .bytes("transaction_id", transactions.iter().map(|row| row.2.as_bytes()))
            .in_chunks(),
    )
}

/// The first new batch of a service without an open batch becomes its head. If a pool is parked, withdrawals of other
/// pools get their lanes when they are stored. The lane is a value of each row, because with a constant PostgreSQL's
/// planner would read the first lane of every service when there are few.
fn install_first_heads<'a>(inserted: &[InsertedBatch<'a>]) -> Statement<'a> {
    let mut first: BTreeMap<&'a str, &InsertedBatch<'a>> = BTreeMap::new();
    for batch in inserted {
        first.entry(batch.batch.service_id.as_str()).or_insert(batch);
    }
    let heads = || first.values();
    Statement::new(
        "-- install_first_heads
         update lanes as s
         set batch_seq = x.batch_seq, batch_id = x.batch_id, created_at = x.created_at
         from {x}
         where s.service_id = x.service_id and s.lane = x.lane and s.batch_seq is null
             and (not s.by_pool or (
                 select count(*) from lanes o where o.service_id = s.service_id and o.busy) = 0)",
    )
    .rows(
        new_batch_rows(heads().map(|head| head.batch))
            .int("lane", heads().map(|_| 0))
            .long("batch_seq", heads().map(|head| head.seq))
            .long("created_at", heads().map(|head| head.created_at.as_micros()))
            .in_chunks(),
    )
}

pub(super) fn new_batch_rows<'a>(batches: impl Iterator<Item = &'a NewBatch> + Clone) -> Rows<'a> {
    Rows::default()
        .text("service_id", batches.clone().map(|batch| batch.service_id.as_str()))
        .bytes("batch_id", batches.map(|batch| batch.batch_id.as_bytes()))
}

struct InsertedBatch<'a> {
    batch: &'a NewBatch,
    created_at: Timestamp,
    seq: i64,
}

impl InsertedBatch<'_> {
    fn accepted(&self) -> NewEvent {
        NewEvent {
            batch_seq: self.seq,
            kind: EventKind::Accepted,
            state: BatchState::New,
            attempt: 0,
            detail: None,
        }
    }

    fn positioned(&self) -> PositionedBatch {
        let access = self.batch.declared_access.clone();
        PositionedBatch {
            seq: self.seq,
            service_id: self.batch.service_id.clone(),
            position: self.created_at.as_micros(),
            access: access.unwrap_or_else(DeclaredAccess::everything),
        }
    }
}
