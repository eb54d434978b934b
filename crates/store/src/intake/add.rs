use std::collections::{BTreeMap, HashMap, HashSet};

use grid_batch_core::batches::{
    AddOutcome, BatchConflict, IntakeStore, NewBatch, SignerId, TransactionConflict,
};
use grid_batch_core::{BatchResult, ItemId, ServiceId};

use super::{
    CreatedAtAllocator,
    capacity::{Capacity, record_new_services},
    client_capacity::ClientCapacity,
    insert::{insert_scheduled, new_batch_rows},
};
use crate::{
    batch::end_past_batches,
    missing::{MissingCapacity, WaitedFor},
    service_history::find_past_transactions,
    sql::{
        Connection, Rows, Store, StoreError,
        groups::{GroupItem, commit_group},
        rows::{batch_id, same_transaction},
    },
};

/// A service, and a batch or a transaction of it.
type Key<'a> = (&'a str, ItemId);

impl IntakeStore for Store {
    /// Stores lists of batches in one commit. Each list is stored as a whole or, on a conflict, not at all.
    ///
    /// The batches of one service are queued in the given order, after all batches that were stored before.
    ///
    /// If another transaction keeps a row of a service locked, the lists of other services are stored in
    /// commits of their own, and those of this one are refused with
    /// [`BatchConflict::ServiceLocked`].
    ///
    /// ```no_run
    /// # use grid_batch_core::batches::{IntakeStore, NewBatch};
    /// # fn example(store: grid_batch_store::Store, list: &[NewBatch]) -> Result<(), Box<dyn std::error::Error>> {
    /// for outcomes in store.add(&[list])? {
    ///     println!("{} batches are stored", outcomes?.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    fn add(
        &self,
        lists: &[&[NewBatch]],
    ) -> BatchResult<Vec<Result<Vec<AddOutcome>, BatchConflict>>> {
        if lists.iter().all(|list| list.is_empty()) {
            return Ok(lists.iter().map(|_| Ok(Vec::new())).collect());
        }
        let added =
            commit_group(self, lists, |connection, lists| add_lists(self, connection, lists));
        let outcomes = added.without_locked()?;
        let outcome = |(list, outcome): (&&[NewBatch], Option<_>)| match (outcome, list.first()) {
            (Some(outcome), _) => outcome,
            (None, None) => Ok(Vec::new()),
            (None, Some(batch)) => {
                Err(BatchConflict::ServiceLocked { service_id: batch.service_id.clone() })
            }
        };
        Ok(lists.iter().zip(outcomes).map(outcome).collect())
    }
}

/// Adds lists of batches. Must be called in a transaction.
pub(super) fn add_lists(
    store: &Store,
    connection: &mut Connection,
    lists: &[&[NewBatch]],
) -> Result<Vec<Result<Vec<AddOutcome>, BatchConflict>>, StoreError> {
    let all: Vec<&NewBatch> = lists.iter().copied().flatten().collect();
    let mut created_at = CreatedAtAllocator::reserve(connection, &all, store.now())?;
    let stored = find_stored(connection, &all)?;
    let bytes = stored.iter().map(|((service, id), bytes)| ((service.as_str(), *id), &**bytes));
    let bytes = bytes.collect();
    let holders = find_transaction_holders(connection, &all)?;
    let past = find_past(store, connection, &all)?;
    let mut limits = Limits::read(store, connection, &all, &created_at)?;
    let (outcomes, NewBatches { all: new, past }) =
        decide(lists, KnownBatches { bytes, holders, past }, &mut limits);
    limits.keep();
    insert_scheduled(store, connection, &new, &mut created_at)?;
    record_openers(connection, &new, &created_at)?;
    end_past_batches(store, connection, &past)?;
    created_at.release_unused(connection)?;
    created_at.remove_unused_services(connection)?;
    Ok(outcomes)
}

impl GroupItem for &[NewBatch] {
    fn services(&self) -> impl Iterator<Item = &ServiceId> {
        self.iter().map(|batch| &batch.service_id)
    }
}

/// Records who opened each service that gets its first batch.
fn record_openers(
    connection: &mut Connection,
    new: &[&NewBatch],
    created_at: &CreatedAtAllocator<'_>,
) -> Result<(), StoreError> {
    let added: HashMap<&str, u64> = created_at.added_before().collect();
    let mut openers: BTreeMap<&str, SignerId> = BTreeMap::new();
    for batch in new {
        let service = batch.service_id.as_str();
        if let (Some(0), Some(signer)) = (added.get(service), batch.signer) {
            openers.entry(service).or_insert(signer);
        }
    }
    record_new_services(connection, &openers)
}

/// The bytes of those of these batches that are stored already.
fn find_stored(
    connection: &mut Connection,
    batches: &[&NewBatch],
) -> Result<HashMap<(String, ItemId), Vec<u8>>, StoreError> {
    let rows: Vec<(String, Vec<u8>, Vec<u8>)> = connection.load_row_tuples(
        "-- find_stored
         select b.service_id, b.batch_id, p.serialized_batch
         from {x}
         join batches b on b.batch_id = x.batch_id and b.service_id = x.service_id
         join batch_payloads p on p.batch_seq = b.seq",
        new_batch_rows(batches.iter().copied()).in_chunks(),
    )?;
    rows.into_iter()
        .map(|(service_id, id, bytes)| Ok(((service_id, batch_id(&id)?), bytes)))
        .collect()
}

/// The open or committed batches that contain a transaction of these batches, by service and transaction. The locks of
/// the services ensure that this remains true until the end of the transaction.
fn find_transaction_holders<'a>(
    connection: &mut Connection,
    batches: &[&'a NewBatch],
) -> Result<HashMap<Key<'a>, ItemId>, StoreError> {
    let transactions: Vec<Key<'a>> = batches.iter().flat_map(|batch| transactions(batch)).collect();
    let same = same_transaction("x");
    let rows: Vec<(i64, Vec<u8>)> = connection.load_row_tuples(
        format!(
            "-- find_transaction_holders
             select x.number, b.batch_id
             from {{x}}
             join transactions t on {same}
             join batches b on b.seq = t.batch_seq
             where b.service_id = x.service_id
                 and (b.dlt_status is null or b.dlt_status = 'COMMITTED')"
        ),
        Rows::default()
            .long("number", (0..).take(transactions.len()))
            .text("service_id", transactions.iter().map(|(service_id, _)| *service_id))
            .bytes("transaction_id", transactions.iter().map(|(_, id)| id.as_bytes())),
    )?;
    rows.into_iter()
        .map(|(number, id)| {
            let transaction = usize::try_from(number).ok().and_then(|n| transactions.get(n));
            let transaction = transaction
                .ok_or_else(|| StoreError::corrupt("a transaction that was not asked for"))?;
            Ok((*transaction, batch_id(&id)?))
        })
        .collect()
}

/// The past transactions of these batches.
fn find_past<'a>(
    store: &Store,
    connection: &mut Connection,
    batches: &[&'a NewBatch],
) -> Result<HashSet<Key<'a>>, StoreError> {
    if store.refuses_past_transactions() {
        let transactions = batches.iter().flat_map(|batch| transactions(batch));
        find_past_transactions(connection, transactions)
    } else {
        Ok(HashSet::new())
    }
}

fn transactions(batch: &NewBatch) -> impl Iterator<Item = Key<'_>> {
    batch.transaction_ids.iter().map(|id| (batch.service_id.as_str(), *id))
}

/// How much may still be added.
struct Limits<'a> {
    services: Capacity<'a>,
    clients: ClientCapacity<'a>,
    missing: MissingCapacity<'a>,
    waited_for: WaitedFor,
}

impl<'a> Limits<'a> {
    fn read(
        store: &'a Store,
        connection: &mut Connection,
        batches: &[&'a NewBatch],
        created_at: &CreatedAtAllocator<'a>,
    ) -> Result<Self, StoreError> {
        let services = Capacity::read(connection, batches, created_at, store.intake_limits)?;
        let clients = ClientCapacity::read(store, connection, batches)?;
        let missing = MissingCapacity::read(store, connection, batches)?;
        let count = batches.len();
        let may_be_full =
            services.may_be_full(count) || clients.may_be_full(count) || missing.may_be_full();
        let waited_for = if may_be_full {
            WaitedFor::read(store, connection, batches)?
        } else {
            WaitedFor::default()
        };
        Ok(Self { services, clients, missing, waited_for })
    }

    /// Counts a batch that will be stored, if the limits allow it.
    fn take(&mut self, batch: &'a NewBatch) -> Result<(), BatchConflict> {
        let is_waited_for = self.waited_for.contains(batch);
        self.missing.take(batch, is_waited_for)?;
        let taken = self.clients.take(batch, is_waited_for).and_then(|()| {
            let of_service = self.services.take(batch, is_waited_for);
            of_service.inspect_err(|_| self.clients.give_back(batch))
        });
        taken.inspect_err(|_| self.missing.give_back(batch))
    }

    /// Reverts what [`take`](Self::take) counted for the latest batch.
    fn give_back(&mut self, batch: &'a NewBatch) {
        self.services.give_back(batch);
        self.clients.give_back(batch);
        self.missing.give_back(batch);
    }

    /// Remembers what was added.
    fn keep(self) {
        self.clients.keep();
        self.missing.keep();
    }
}

/// The outcome of each list, and the batches to store.
fn decide<'k, 'a: 'k>(
    lists: &[&'a [NewBatch]],
    mut known: KnownBatches<'k>,
    limits: &mut Limits<'a>,
) -> (Vec<Result<Vec<AddOutcome>, BatchConflict>>, NewBatches<'a>) {
    let mut new = Vec::new();
    let outcomes = lists
        .iter()
        .map(|list| {
            let before = new.len();
            let outcome = list
                .iter()
                .map(|batch| {
                    let outcome = known.check(batch)?;
                    if outcome == AddOutcome::Stored {
                        limits.take(batch)?;
                        known.insert(batch);
                        new.push(batch);
                    }
                    Ok(outcome)
                })
                .collect::<Result<Vec<_>, _>>();
            if outcome.is_err() {
                for batch in new.drain(before..).rev() {
                    known.remove(batch);
                    limits.give_back(batch);
                }
            }
            outcome
        })
        .collect();
    let past = new.iter().copied().filter(|batch| known.is_past(batch)).collect();
    (outcomes, NewBatches { all: new, past })
}

/// The batches to store.
struct NewBatches<'a> {
    all: Vec<&'a NewBatch>,
    /// The batches that end as committed at once.
    past: Vec<&'a NewBatch>,
}

/// The batches that are stored or will be stored.
struct KnownBatches<'k> {
    bytes: HashMap<Key<'k>, &'k [u8]>,
    /// The batch that has each transaction.
    holders: HashMap<Key<'k>, ItemId>,
    /// Past transactions.
    past: HashSet<Key<'k>>,
}

impl<'k> KnownBatches<'k> {
    /// Checks whether a batch is stored already or can be stored.
    fn check(&self, batch: &NewBatch) -> Result<AddOutcome, BatchConflict> {
        match self.bytes.get(&key(batch)) {
            Some(bytes) if *bytes == batch.serialized_batch => {
                return Ok(AddOutcome::AlreadyStored);
            }
            Some(_) => {
                return Err(BatchConflict::OtherBytes {
                    service_id: batch.service_id.clone(),
                    batch_id: batch.batch_id,
                });
            }
            None => {}
        }
        for transaction in transactions(batch) {
            if let Some(other_batch_id) = self.holders.get(&transaction) {
                let conflict = TransactionConflict {
                    service_id: batch.service_id.clone(),
                    batch_id: batch.batch_id,
                    transaction_id: transaction.1,
                    other_batch_id: *other_batch_id,
                };
                return Err(Box::new(conflict).into());
            }
        }
        match self.past_transactions_of(batch).next() {
            Some(transaction_id) if !self.is_past(batch) => Err(BatchConflict::AppliedBefore {
                service_id: batch.service_id.clone(),
                batch_id: batch.batch_id,
                transaction_id: Box::new(transaction_id),
            }),
            _ => Ok(AddOutcome::Stored),
        }
    }

    /// Whether all transactions of the batch are past transactions.
    fn is_past(&self, batch: &NewBatch) -> bool {
        let all = batch.transaction_ids.len();
        all > 0 && self.past_transactions_of(batch).count() == all
    }

    fn past_transactions_of(&self, batch: &NewBatch) -> impl Iterator<Item = ItemId> {
        let past = transactions(batch).filter(|transaction| self.past.contains(transaction));
        past.map(|(_, id)| id)
    }

    fn insert(&mut self, batch: &'k NewBatch) {
        self.bytes.insert(key(batch), &batch.serialized_batch);
        self.holders.extend(transactions(batch).map(|key| (key, batch.batch_id)));
    }

    /// Removes a batch that was inserted here but will not be stored.
    fn remove(&mut self, batch: &'k NewBatch) {
        self.bytes.remove(&key(batch));
        for transaction in transactions(batch) {
            self.holders.remove(&transaction);
        }
    }
}

fn key(batch: &NewBatch) -> Key<'_> {
    (batch.service_id.as_str(), batch.batch_id)
}
