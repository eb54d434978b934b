use std::collections::HashMap;

use diesel::{
    QueryableByName,
    sql_types::{Binary, Text},
};
use grid_batch_core::{AddOutcome, BatchConflict, HeaderId, NewBatch};

use super::{
    CreatedAtAllocator,
    insert::{insert, new_batch_rows},
};
use crate::sql::{Connection, Statement, Store, StoreError, rows::batch_id};

type Key<'a> = (&'a str, HeaderId);

/// Adds lists of batches in one commit.
pub(crate) fn add(
    store: &Store,
    lists: &[&[NewBatch]],
) -> Result<Vec<Result<Vec<AddOutcome>, BatchConflict>>, StoreError> {
    let all: Vec<&NewBatch> = lists.iter().copied().flatten().collect();
    if all.is_empty() {
        return Ok(lists.iter().map(|_| Ok(Vec::new())).collect());
    }
    store.pools.write()?.transaction(|connection| {
        let mut created_at = CreatedAtAllocator::reserve(connection, &all, store.now())?;
        let stored = find_stored(connection, &all)?;
        let (outcomes, new) = decide(lists, &stored);
        insert(connection, &new, &mut created_at)?;
        created_at.release_unused(connection)?;
        Ok(outcomes)
    })
}

/// The bytes of those of these batches that are stored already.
fn find_stored(
    connection: &mut Connection,
    batches: &[&NewBatch],
) -> Result<HashMap<(String, HeaderId), Vec<u8>>, StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- find_stored
         select b.service_id, b.batch_id, p.serialized_batch
         from {x}
         join batches b on b.batch_id = x.batch_id and b.service_id = x.service_id
         join batch_payloads p on p.batch_seq = b.seq",
    )
    .rows(new_batch_rows(batches.iter().copied()));
    let rows: Vec<StoredRow> = connection.load(&statement)?;
    rows.into_iter()
        .map(|row| Ok(((row.service_id, batch_id(&row.batch_id)?), row.serialized_batch)))
        .collect()
}

/// The outcome of each list, and the batches to store.
fn decide<'a>(
    lists: &[&'a [NewBatch]],
    stored: &HashMap<(String, HeaderId), Vec<u8>>,
) -> (Vec<Result<Vec<AddOutcome>, BatchConflict>>, Vec<&'a NewBatch>) {
    let mut known: HashMap<Key<'_>, &[u8]> = stored
        .iter()
        .map(|((service, id), bytes)| ((service.as_str(), *id), bytes.as_slice()))
        .collect();
    let mut new = Vec::new();
    let outcomes = lists
        .iter()
        .map(|list| {
            let before = new.len();
            let outcome = list
                .iter()
                .map(|batch| decide_one(batch, &mut known, &mut new))
                .collect::<Result<Vec<_>, _>>();
            if outcome.is_err() {
                for batch in new.drain(before..) {
                    known.remove(&key(batch));
                }
            }
            outcome
        })
        .collect();
    (outcomes, new)
}

fn decide_one<'a: 'k, 'k>(
    batch: &'a NewBatch,
    known: &mut HashMap<Key<'k>, &'k [u8]>,
    new: &mut Vec<&'a NewBatch>,
) -> Result<AddOutcome, BatchConflict> {
    match known.get(&key(batch)) {
        None => {
            known.insert(key(batch), &batch.serialized_batch);
            new.push(batch);
            Ok(AddOutcome::Stored)
        }
        Some(bytes) if *bytes == batch.serialized_batch => Ok(AddOutcome::AlreadyStored),
        Some(_) => {
            Err(BatchConflict { service_id: batch.service_id.clone(), batch_id: batch.batch_id })
        }
    }
}

fn key(batch: &NewBatch) -> Key<'_> {
    (batch.service_id.as_str(), batch.batch_id)
}

#[derive(QueryableByName)]
struct StoredRow {
    #[diesel(sql_type = Text)]
    service_id: String,
    #[diesel(sql_type = Binary)]
    batch_id: Vec<u8>,
    #[diesel(sql_type = Binary)]
    serialized_batch: Vec<u8>,
}
