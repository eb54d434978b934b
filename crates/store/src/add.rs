use std::collections::{BTreeMap, HashMap};

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Binary, Text},
};
use grid_batch_core::{HeaderId, NewBatch, ServiceId, Timestamp};
use thiserror::Error;

use crate::{
    Store, StoreError,
    connection::Connection,
    rows::batch_id,
    statement::{Rows, Statement},
};

/// What became of a batch that was handed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addition {
    /// It is stored, and waits its turn.
    Stored,
    /// It was stored before: nothing changed.
    Again,
}

/// A batch was handed in that is stored already, with other bytes.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the service {service_id} has the batch {batch_id} already, with other bytes")]
pub struct Conflict {
    /// The service that orders it.
    pub service_id: ServiceId,
    /// Its id.
    pub batch_id: HeaderId,
}

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
    ) -> Result<Vec<Result<Vec<Addition>, Conflict>>, StoreError> {
        let all: Vec<&NewBatch> = lists.iter().copied().flatten().collect();
        if all.is_empty() {
            return Ok(lists.iter().map(|_| Ok(Vec::new())).collect());
        }
        let mut connection = self.pools.write()?;
        connection.transaction(|connection| {
            let mut stamps = self.reserve_stamps(connection, &all)?;
            let stored = self.find_stored(connection, &all)?;
            let (answers, fresh) = decide(lists, stored);
            let placed = fresh.iter().map(|batch| Placed::take(batch, &mut stamps)).collect();
            self.insert(connection, placed)?;
            self.return_stamps(connection, &stamps)?;
            Ok(answers)
        })
    }

    /// Locks the services to the end of the transaction, in one order for all who do so, and
    /// counts the batches in.
    fn reserve_stamps<'a>(
        &self,
        connection: &mut Connection,
        batches: &[&'a NewBatch],
    ) -> Result<Stamps<'a>, StoreError> {
        let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
        for batch in batches {
            *counts.entry(batch.service_id.as_str()).or_default() += 1;
        }
        let now = self.now().as_micros();
        let reserve = self
            .statement(
                "-- reserve_stamps
                 insert into services (service_id, last_created_at, added)
                 select service_id, last_created_at, added from {x} where true order by service_id
                 on conflict (service_id) do update set
                     last_created_at = case
                         when services.last_created_at + excluded.added > excluded.last_created_at
                         then services.last_created_at + excluded.added
                         else excluded.last_created_at
                     end,
                     added = services.added + excluded.added
                 returning service_id, last_created_at, added",
            )
            .rows(
                Rows::default()
                    .text("service_id", counts.keys().copied())
                    .long("last_created_at", counts.values().map(|count| now + count - 1))
                    .long("added", counts.values().copied()),
            );
        let reserved: Vec<ReservedRow> = connection.load(&reserve)?;
        let last: HashMap<&str, &ReservedRow> =
            reserved.iter().map(|row| (row.service_id.as_str(), row)).collect();
        let mut stamps = Stamps::default();
        for (service, count) in counts {
            let row = last
                .get(service)
                .ok_or_else(|| StoreError::corrupt(format!("no row for the service {service}")))?;
            if row.added == count {
                stamps.new_services.push(service);
            }
            stamps.left.insert(service, (row.last_created_at - count + 1, count));
        }
        self.make_lanes(connection, &stamps.new_services)?;
        Ok(stamps)
    }

    fn make_lanes(&self, connection: &mut Connection, services: &[&str]) -> Result<(), StoreError> {
        for sql in [
            "-- make_claims
             insert into service_id_claims (service_id) select service_id from {x} where true
             on conflict do nothing",
            "-- make_lanes
             insert into batch_statuses (service_id, lane) select service_id, 0 from {x} where true
             on conflict do nothing",
        ] {
            let services = Rows::default().text("service_id", services.iter().copied());
            connection.execute(&self.statement(sql).rows(services))?;
        }
        Ok(())
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

    fn insert(
        &self,
        connection: &mut Connection,
        mut placed: Vec<Placed<'_>>,
    ) -> Result<(), StoreError> {
        let insert = self
            .statement(
                "-- insert_batches
                 insert into batches (service_id, batch_id, created_at)
                 select service_id, batch_id, created_at from {x} where true
                 order by service_id, created_at
                 returning seq, service_id, created_at",
            )
            .rows(
                keys(placed.iter().map(|placed| placed.batch))
                    .long("created_at", placed.iter().map(|placed| placed.created_at.as_micros())),
            );
        let rows: Vec<InsertedRow> = connection.load(&insert)?;
        let seqs: HashMap<(&str, i64), i64> =
            rows.iter().map(|row| ((row.service_id.as_str(), row.created_at), row.seq)).collect();
        for placed in &mut placed {
            let at = (placed.batch.service_id.as_str(), placed.created_at.as_micros());
            placed.seq = *seqs
                .get(&at)
                .ok_or_else(|| StoreError::corrupt("no row for a batch just inserted"))?;
        }
        connection.execute(&self.insert_payloads(&placed))?;
        connection.execute(&self.insert_transactions(&placed))?;
        connection.execute(&self.install_first_heads(&placed))?;
        Ok(())
    }

    fn insert_payloads<'a>(&self, placed: &[Placed<'a>]) -> Statement<'a> {
        self.statement(
            "-- insert_payloads
             insert into batch_payloads (batch_seq, serialized_batch)
             select batch_seq, serialized_batch from {x}",
        )
        .rows(
            Rows::default().long("batch_seq", placed.iter().map(|placed| placed.seq)).bytes(
                "serialized_batch",
                placed.iter().map(|placed| placed.batch.serialized_batch.as_slice()),
            ),
        )
    }

    fn insert_transactions<'a>(&self, placed: &[Placed<'a>]) -> Statement<'a> {
        let transactions: Vec<(i64, i32, &'a HeaderId)> = placed
            .iter()
            .flat_map(|placed| {
                (0..)
                    .zip(&placed.batch.transaction_ids)
                    .map(|(position, id)| (placed.seq, position, id))
            })
            .collect();
        self.statement(
            "-- insert_transactions
             insert into transactions (batch_seq, position, transaction_id)
             select batch_seq, position, transaction_id from {x}",
        )
        .rows(
            Rows::default()
                .long("batch_seq", transactions.iter().map(|row| row.0))
                .int("position", transactions.iter().map(|row| row.1))
                .bytes("transaction_id", transactions.iter().map(|row| &row.2.as_bytes()[..])),
        )
    }

    /// Where a service had no open batch, the first of the new ones becomes its head.
    fn install_first_heads<'a>(&self, placed: &[Placed<'a>]) -> Statement<'a> {
        let mut first: BTreeMap<&'a str, &Placed<'a>> = BTreeMap::new();
        for placed in placed {
            first.entry(placed.batch.service_id.as_str()).or_insert(placed);
        }
        let heads = || first.values();
        self.statement(
            "-- install_first_heads
             update batch_statuses as s
             set batch_seq = x.batch_seq, batch_id = x.batch_id, created_at = x.created_at
             from {x}
             where s.service_id = x.service_id and s.lane = 0 and s.batch_seq is null",
        )
        .rows(
            keys(heads().map(|head| head.batch))
                .long("batch_seq", heads().map(|head| head.seq))
                .long("created_at", heads().map(|head| head.created_at.as_micros())),
        )
    }

    /// Counts out what was counted in and not stored.
    fn return_stamps(
        &self,
        connection: &mut Connection,
        stamps: &Stamps<'_>,
    ) -> Result<(), StoreError> {
        let left: Vec<(&str, i64)> = stamps
            .left
            .iter()
            .filter(|(_, (_, count))| *count > 0)
            .map(|(service, (_, count))| (*service, *count))
            .collect();
        let statement = self
            .statement(
                "-- return_stamps
                 update services as s set added = s.added - x.count
                 from {x} where s.service_id = x.service_id",
            )
            .rows(
                Rows::default()
                    .text("service_id", left.iter().map(|row| row.0))
                    .long("count", left.iter().map(|row| row.1)),
            );
        connection.execute(&statement).map(drop)
    }
}

/// Which lists conflict with nothing, and which of their batches are not stored yet.
fn decide<'a>(
    lists: &[&'a [NewBatch]],
    stored: HashMap<(String, HeaderId), Vec<u8>>,
) -> (Vec<Result<Vec<Addition>, Conflict>>, Vec<&'a NewBatch>) {
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
) -> Result<Addition, Conflict> {
    match known.get(&key(batch)) {
        None => {
            known.insert(key(batch), &batch.serialized_batch);
            fresh.push(batch);
            Ok(Addition::Stored)
        }
        Some(bytes) if *bytes == batch.serialized_batch => Ok(Addition::Again),
        Some(_) => Err(Conflict { service_id: batch.service_id.clone(), batch_id: batch.batch_id }),
    }
}

fn key(batch: &NewBatch) -> Key<'_> {
    (batch.service_id.as_str(), batch.batch_id)
}

fn keys<'a>(batches: impl Iterator<Item = &'a NewBatch> + Clone) -> Rows<'a> {
    Rows::default()
        .text("service_id", batches.clone().map(|batch| batch.service_id.as_str()))
        .bytes("batch_id", batches.map(|batch| &batch.batch_id.as_bytes()[..]))
}

/// The stamps that were reserved: for each service the next one, and how many are left.
#[derive(Default)]
struct Stamps<'a> {
    left: BTreeMap<&'a str, (i64, i64)>,
    new_services: Vec<&'a str>,
}

/// A batch with its place in the order of its service.
struct Placed<'a> {
    batch: &'a NewBatch,
    created_at: Timestamp,
    seq: i64,
}

impl<'a> Placed<'a> {
    fn take(batch: &'a NewBatch, stamps: &mut Stamps<'_>) -> Self {
        let (next, left) = stamps
            .left
            .get_mut(batch.service_id.as_str())
            .expect("stamps are reserved for the service of every batch");
        let created_at = Timestamp::from_micros(*next);
        *next += 1;
        *left -= 1;
        Self { batch, created_at, seq: 0 }
    }
}

#[derive(QueryableByName)]
struct ReservedRow {
    #[diesel(sql_type = Text)]
    service_id: String,
    #[diesel(sql_type = BigInt)]
    last_created_at: i64,
    #[diesel(sql_type = BigInt)]
    added: i64,
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

#[derive(QueryableByName)]
struct InsertedRow {
    #[diesel(sql_type = BigInt)]
    seq: i64,
    #[diesel(sql_type = Text)]
    service_id: String,
    #[diesel(sql_type = BigInt)]
    created_at: i64,
}
