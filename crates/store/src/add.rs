use std::collections::HashMap;

use diesel::{
    QueryableByName,
    sql_types::{Binary, Text},
};
use grid_batch_core::{AddOutcome, BatchConflict, HeaderId, NewBatch};

use crate::{
    Store, StoreError,
    connection::Connection,
    insert::{insert, keys},
    rows::batch_id,
    stamps::Stamps,
};

type Key<'a> = (&'a str, HeaderId);

impl Store {
    /// Stores lists of batches, all in one commit: each list whole, or, on a conflict, not at all.
    ///
    /// The batches of one service are queued in the order in which they stand here, after every
    /// one that was committed before.
    ///
    /// ```no_run
    /// # use grid_batch_core::NewBatch;
    /// # fn example(store: grid_batch_store::Store, list: &[NewBatch]) -> Result<(), Box<dyn std::error::Error>> {
    /// for additions in store.add(&[list])? {
    ///     println!("{} batches are safe", additions?.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn add(
        &self,
        lists: &[&[NewBatch]],
    ) -> Result<Vec<Result<Vec<AddOutcome>, BatchConflict>>, StoreError> {
        let all: Vec<&NewBatch> = lists.iter().copied().flatten().collect();
        if all.is_empty() {
            return Ok(lists.iter().map(|_| Ok(Vec::new())).collect());
        }
        let mut connection = self.pools.write()?;
        connection.transaction(|connection| {
            let mut stamps = Stamps::reserve(connection, &all, self.now())?;
            let stored = self.find_stored(connection, &all)?;
            let (answers, fresh) = decide(lists, &stored);
            insert(connection, &fresh, &mut stamps)?;
            stamps.give_back(connection)?;
            Ok(answers)
        })
    }

    /// Which of the batches are stored already, and with which bytes.
    fn find_stored(
        &self,
        connection: &mut Connection,
        batches: &[&NewBatch],
    ) -> Result<HashMap<(String, HeaderId), Vec<u8>>, StoreError> {
        let find = self
            .statement(
                "-- find_stored
                 select b.service_id, b.batch_id, p.serialized_batch
                 from {x}
                 join batches b on b.batch_id = x.batch_id and b.service_id = x.service_id
                 join batch_payloads p on p.batch_seq = b.seq",
            )
            .rows(keys(batches.iter().copied()));
        let rows: Vec<StoredRow> = connection.load(&find)?;
        rows.into_iter()
            .map(|row| Ok(((row.service_id, batch_id(&row.batch_id)?), row.serialized_batch)))
            .collect()
    }
}

/// Which lists conflict with nothing, and which of their batches are not stored yet.
fn decide<'a>(
    lists: &[&'a [NewBatch]],
    stored: &HashMap<(String, HeaderId), Vec<u8>>,
) -> (Vec<Result<Vec<AddOutcome>, BatchConflict>>, Vec<&'a NewBatch>) {
    let mut known: HashMap<Key<'_>, &[u8]> = stored
        .iter()
        .map(|((service, id), bytes)| ((service.as_str(), *id), bytes.as_slice()))
        .collect();
    let mut fresh = Vec::new();
    let answers = lists
        .iter()
        .map(|list| {
            let before = fresh.len();
            let answer = list
                .iter()
                .map(|batch| decide_one(batch, &mut known, &mut fresh))
                .collect::<Result<Vec<_>, _>>();
            if answer.is_err() {
                for batch in fresh.drain(before..) {
                    known.remove(&key(batch));
                }
            }
            answer
        })
        .collect();
    (answers, fresh)
}

fn decide_one<'a: 'k, 'k>(
    batch: &'a NewBatch,
    known: &mut HashMap<Key<'k>, &'k [u8]>,
    fresh: &mut Vec<&'a NewBatch>,
) -> Result<AddOutcome, BatchConflict> {
    match known.get(&key(batch)) {
        None => {
            known.insert(key(batch), &batch.serialized_batch);
            fresh.push(batch);
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
