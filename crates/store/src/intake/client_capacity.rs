use std::collections::{BTreeMap, BTreeSet};

use grid_batch_core::Clock;
use grid_batch_core::batches::{BatchConflict, ClientId, NewBatch};

use crate::{
    missing::limit_of,
    sql::{
        Connection, Rows, Statement, Store, StoreError,
        open_counts::{OpenCount, OpenCounts},
        query::single_count,
    },
};

/// How much the clients of some batches may still add. Concurrent transactions do not see each other's batches, so a
/// client may exceed its limit by these.
pub(super) struct ClientCapacity<'a> {
    limit: u64,
    queues: &'a OpenCounts<ClientId>,
    clients: BTreeMap<ClientId, OpenCount>,
}

impl<'a> ClientCapacity<'a> {
    /// Counts the open batches of clients that are new or near their limit.
    pub(super) fn read(
        store: &'a Store,
        connection: &mut Connection,
        batches: &[&NewBatch],
    ) -> Result<Self, StoreError> {
        let (limit, queues) = (store.intake_limits.open_batches_of_client, &*store.client_queues);
        let mut new: BTreeMap<ClientId, u64> = BTreeMap::new();
        if limit != u64::MAX {
            let clients = batches.iter().filter_map(|batch| batch.client);
            clients.for_each(|client| *new.entry(client).or_default() += 1);
        }
        let now = store.clock().monotonic();
        let clients = queues.read(new, limit, now, |to_count| count_open(connection, to_count))?;
        Ok(Self { limit, queues, clients })
    }

    /// Whether a client may reach its limit.
    pub(super) fn may_be_full(&self, batches: usize) -> bool {
        let of_client = |it: &OpenCount| it.present().saturating_add(batches as u64) > self.limit;
        self.clients.values().any(of_client)
    }

    /// Counts a batch that will be stored, if the limit allows it.
    pub(super) fn take(
        &mut self,
        batch: &NewBatch,
        is_waited_for: bool,
    ) -> Result<(), BatchConflict> {
        let limit = limit_of(self.limit, is_waited_for);
        let Some(client) = self.of(batch) else { return Ok(()) };
        let open = client.present();
        if open >= limit {
            return Err(BatchConflict::QueueOfClientFull { open, limit: self.limit });
        }
        if let Some(client) = self.of(batch) {
            client.added += 1;
        }
        Ok(())
    }

    /// Reverts what [`take`](Self::take) counted.
    pub(super) fn give_back(&mut self, batch: &NewBatch) {
        if let Some(client) = self.of(batch) {
            client.added -= 1;
        }
    }

    /// Remembers what was added.
    pub(super) fn keep(self) {
        self.queues.keep(&self.clients);
    }

    fn of(&mut self, batch: &NewBatch) -> Option<&mut OpenCount> {
        batch.client.and_then(|client| self.clients.get_mut(&client))
    }
}

/// Records to which clients these batches belong.
pub(super) fn insert_client_batches<'b>(
    store: &Store,
    connection: &mut Connection,
    batches: impl Iterator<Item = (i64, &'b NewBatch)>,
) -> Result<(), StoreError> {
    if store.intake_limits.open_batches_of_client == u64::MAX {
        return Ok(());
    }
    let of_clients: Vec<(i64, String)> = batches
        .filter_map(|(seq, batch)| batch.client.map(|client| (seq, client.to_string())))
        .collect();
    if of_clients.is_empty() {
        return Ok(());
    }
    connection.execute_rows(
        "-- insert_client_batches
         insert into client_batches (batch_seq, client) select batch_seq, client from {x}",
        Rows::default()
            .long("batch_seq", of_clients.iter().map(|(seq, _)| *seq))
            .text("client", of_clients.iter().map(|(_, client)| client.as_str()))
            .in_chunks(),
    )
}

/// How many ended batches are forgotten with each count.
const MOST_FORGOTTEN: i64 = 5_000;

fn count_open(
    connection: &mut Connection,
    clients: &BTreeSet<ClientId>,
) -> Result<BTreeMap<ClientId, u64>, StoreError> {
    let mut counts = BTreeMap::new();
    for client in clients {
        let name = client.to_string();
        // It does not wait for another transaction that does the same.
        let lock = connection.dialect().locking("for update of c skip locked");
        let forget = Statement::new(format!(
            "-- forget_ended_of_client
             delete from client_batches where batch_seq in (
                 select c.batch_seq from client_batches c
                 where c.client = ? and not exists (
                     select 1 from batches b where b.seq = c.batch_seq and b.ended_at is null)
                 order by c.batch_seq limit ? {lock})"
        ));
        connection.execute(&forget.text(&name).long(MOST_FORGOTTEN))?;
        let statement = Statement::new(
            "-- count_open_of_client
             select count(*) as open from client_batches c join batches b on b.seq = c.batch_seq
             where c.client = ? and b.ended_at is null",
        )
        .text(&name);
        counts.insert(*client, single_count(&connection.load_column(&statement)?)?);
    }
    Ok(counts)
}
