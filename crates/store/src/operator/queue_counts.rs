use diesel::{QueryableByName, sql_types::BigInt};
use grid_batch_core::{BatchState, ServiceId};

use super::{list::depths, pauses::paused_since};
use crate::{
    scheduling::first_halt,
    sql::{Connection, Statement, Store, StoreError, rows::in_states},
};

/// How many batches are open, and which queues are full.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Open batches of all services, whatever they wait for.
    pub open: u64,
    /// Open batches that miss a transaction.
    pub incomplete: u64,
    /// Services that have as many open batches as they may have.
    pub full: u64,
    /// The one of them with most.
    pub fullest: Option<FullQueue>,
    /// The services that this process has met whose names cannot be read. Their batches are not counted, and wait.
    pub unreadable: Vec<String>,
}

/// A service that has as many open batches as it may have, and what fills its queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullQueue {
    /// The service.
    pub service_id: ServiceId,
    /// The number of its open batches.
    pub open: u64,
    /// How many it may have.
    pub limit: u64,
    /// Those that miss a transaction.
    pub incomplete: u64,
    /// How many signers have batches that miss a transaction.
    pub signers: u64,
    /// The number of missing transactions of the one with most.
    pub most_of_signer: u64,
    /// Those that are held.
    pub held: u64,
    /// Those that are delayed after an attempt that failed, or by a gate.
    pub delayed: u64,
    /// Whether an operator has paused the service, or all.
    pub paused: bool,
    /// Whether an invalid batch stops others.
    pub halted: bool,
}

pub(crate) fn queue_counts(store: &Store) -> Result<QueueCounts, StoreError> {
    let limit = store.intake_limits.open_batches;
    let depths = depths(store, None, usize::MAX)?;
    let full = || depths.iter().filter(|depth| depth.open >= limit);
    let mut connection = store.pools.read()?;
    let connection = &mut *connection;
    let fullest = full().max_by_key(|depth| depth.open);
    let fullest = fullest.map(|depth| read_full(connection, &depth.service_id, depth.open, limit));
    Ok(QueueCounts {
        open: depths.iter().map(|depth| depth.open).sum(),
        incomplete: count_incomplete(connection)?,
        full: full().count() as u64,
        fullest: fullest.transpose()?,
        unreadable: store.unreadable.shown(),
    })
}

fn count_incomplete(connection: &mut Connection) -> Result<u64, StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- count_incomplete
         select count(*) as count from waiting_batches w
         where w.service_id > '' and w.position is null",
    );
    let rows: Vec<CountRow> = connection.load(&statement)?;
    Ok(rows.first().map_or(0, |row| row.count.unsigned_abs()))
}

fn read_full(
    connection: &mut Connection,
    service_id: &ServiceId,
    open: u64,
    limit: u64,
) -> Result<FullQueue, StoreError> {
    let delayed = in_states("s", |state| state == BatchState::Delayed);
    let statement = Statement::new(
        connection.dialect(),
        format!(
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
        ),
    )
    .text(service_id.as_str())
    .text(service_id.as_str())
    .text(service_id.as_str())
    .text(service_id.as_str());
    let rows: Vec<FullRow> = connection.load(&statement)?;
    let row = rows.into_iter().next().unwrap_or_default();
    let (signers, most_of_signer) = match row.incomplete {
        0 => (0, 0),
        _ => count_signers(connection)?,
    };
    Ok(FullQueue {
        service_id: service_id.clone(),
        open,
        limit,
        incomplete: row.incomplete.unsigned_abs(),
        signers,
        most_of_signer,
        held: row.held.unsigned_abs(),
        delayed: row.delayed.unsigned_abs(),
        paused: paused_since(connection, service_id)?.is_some(),
        halted: first_halt(connection, service_id)?.is_some(),
    })
}

/// How many signers have batches that miss transactions, and the greatest number of these of one signer.
fn count_signers(connection: &mut Connection) -> Result<(u64, u64), StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- count_signers_that_miss
         select count(*) as signers, coalesce(max(r.missing), 0) as most from (
             select count(*) as missing from missing_transactions m
             where m.found_at is null and m.signer >= ? group by m.signer) as r",
    )
    .bytes(&[]);
    let rows: Vec<SignersRow> = connection.load(&statement)?;
    let count = |row: &SignersRow| (row.signers.unsigned_abs(), row.most.unsigned_abs());
    Ok(rows.first().map_or((0, 0), count))
}

#[derive(QueryableByName)]
struct CountRow {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

#[derive(QueryableByName, Default)]
struct FullRow {
    #[diesel(sql_type = BigInt)]
    incomplete: i64,
    #[diesel(sql_type = BigInt)]
    held: i64,
    #[diesel(sql_type = BigInt)]
    delayed: i64,
}

#[derive(QueryableByName)]
struct SignersRow {
    #[diesel(sql_type = BigInt)]
    signers: i64,
    #[diesel(sql_type = BigInt)]
    most: i64,
}
