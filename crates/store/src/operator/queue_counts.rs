use grid_batch_core::ServiceId;
use grid_batch_core::batches::BatchState;
use grid_batch_core::queries::{FullQueue, QueueCounts};

use super::pauses::paused_since;
use crate::{
    halts::first_halt,
    sql::{Connection, Statement, Store, StoreError, query::single_count, rows::in_states},
};

impl Store {
    /// How many batches are open, and which queues are full. The cost grows with the number of services and of batches
    /// that miss a transaction.
    pub fn queue_counts(&self) -> Result<QueueCounts, StoreError> {
        let limit = self.intake_limits.open_batches;
        let mut connection = self.pools.read()?;
        let connection = &mut *connection;
        let (open, full_queues) = count_open(connection, limit)?;
        let fullest = match full_queues {
            0 => None,
            _ => find_fullest(self, connection, limit)?,
        };
        let fullest =
            fullest.map(|(service_id, open)| read_full(connection, &service_id, open, limit));
        Ok(QueueCounts {
            open: open.unsigned_abs(),
            incomplete: count_incomplete(connection)?,
            full: full_queues.unsigned_abs(),
            fullest: fullest.transpose()?,
            unreadable: self.unreadable.shown(),
        })
    }
}

/// The numbers of open batches and of full queues.
fn count_open(connection: &mut Connection, limit: u64) -> Result<(i64, i64), StoreError> {
    let statement = Statement::new(
        "-- count_open_of_services
         select cast(coalesce(sum(r.open), 0) as bigint) as open,
             count(case when r.open >= ? then 1 end) as full_queues
         from (
             select s.added - cast(sum(l.ended) as bigint) as open
             from services s join lanes l on l.service_id = s.service_id
             where s.service_id > '' and l.service_id > ''
             group by s.service_id, s.added) as r",
    )
    .long(at_most_i64(limit));
    let rows: Vec<(i64, i64)> = connection.load_tuples(&statement)?;
    Ok(rows.into_iter().next().unwrap_or_default())
}

/// The service with the most open batches, if it has reached its limit.
fn find_fullest(
    store: &Store,
    connection: &mut Connection,
    limit: u64,
) -> Result<Option<(ServiceId, u64)>, StoreError> {
    let statement = Statement::new(
        "-- find_fullest_queues
         select s.service_id, s.added - cast(sum(l.ended) as bigint) as open
         from services s join lanes l on l.service_id = s.service_id
         where s.service_id > '' and l.service_id > ''
         group by s.service_id, s.added
         having s.added - sum(l.ended) >= ?
         order by open desc, s.service_id desc
         limit ?",
    )
    .long(at_most_i64(limit))
    .long(at_most_i64(1 + store.unreadable.count() as u64));
    let rows: Vec<(String, i64)> = connection.load_tuples(&statement)?;
    let readable =
        |(name, open): (String, i64)| Some((store.unreadable.read(&name)?, open.unsigned_abs()));
    Ok(rows.into_iter().find_map(readable))
}

fn at_most_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn count_incomplete(connection: &mut Connection) -> Result<u64, StoreError> {
    let statement = Statement::new(
        "-- count_incomplete
         select count(*) as count from waiting_batches w
         where w.service_id > '' and w.position is null",
    );
    single_count(&connection.load_column(&statement)?)
}

fn read_full(
    connection: &mut Connection,
    service_id: &ServiceId,
    open: u64,
    limit: u64,
) -> Result<FullQueue, StoreError> {
    let delayed = in_states("s", |state| state == BatchState::Delayed);
    let statement = Statement::new(format!(
            "-- count_full_queue
             select
                 (select count(*) from waiting_batches w
                  where w.service_id = ? and w.position is null) as incomplete,
                 (select count(*) from waiting_holds h where h.batch_seq > 0 and (
                     select w.service_id from waiting_batches w where w.batch_seq = h.batch_seq
                 ) = ?) + (select count(*) from lanes s
                  where s.service_id = ? and s.busy and s.held_at is not null) as held,
                 (select count(*) from lanes s
                  where s.service_id = ? and s.busy and s.held_at is null and {delayed}) as delayed"
        ))
    .text(service_id.as_str())
    .text(service_id.as_str())
    .text(service_id.as_str())
    .text(service_id.as_str());
    let rows: Vec<(i64, i64, i64)> = connection.load_tuples(&statement)?;
    let (incomplete, held, delayed) = rows.into_iter().next().unwrap_or_default();
    let (signers, most_of_signer) = match incomplete {
        0 => (0, 0),
        _ => count_signers(connection)?,
    };
    Ok(FullQueue {
        service_id: service_id.clone(),
        open,
        limit,
        incomplete: incomplete.unsigned_abs(),
        signers,
        most_of_signer,
        held: held.unsigned_abs(),
        delayed: delayed.unsigned_abs(),
        paused: paused_since(connection, service_id)?.is_some(),
        halted: first_halt(connection, service_id)?.is_some(),
    })
}

/// The number of signers whose batches miss transactions, and the maximum number of missing transactions of one signer.
fn count_signers(connection: &mut Connection) -> Result<(u64, u64), StoreError> {
    let statement = Statement::new(
        "-- count_signers_that_miss
         select count(*) as signers, coalesce(max(r.missing), 0) as most from (
             select count(*) as missing from missing_transactions m
             where m.found_at is null and m.signer >= ? group by m.signer) as r",
    )
    .bytes(&[]);
    let rows: Vec<(i64, i64)> = connection.load_tuples(&statement)?;
    let counts = rows.first().map(|(signers, most)| (signers.unsigned_abs(), most.unsigned_abs()));
    Ok(counts.unwrap_or_default())
}
