use std::collections::{BTreeSet, HashMap, HashSet};

use grid_batch_core::{ItemId, ServiceId};
use sha2::{Digest, Sha256};

use crate::sql::{Connection, Rows, Statement, Store, StoreError, rows::batch_id as header_id};

type TransactionKey = [u8; 16];

/// Records transactions that a service has applied.
pub(super) fn add_applied(
    store: &Store,
    service_id: &ServiceId,
    transactions: &[ItemId],
) -> Result<(), StoreError> {
    let keys = transactions.iter().map(|id| transaction_key(service_id.as_str(), id));
    let keys: BTreeSet<TransactionKey> = keys.collect();
    store.pools.write()?.write_transaction(|connection| insert_keys(connection, keys))
}

/// Records the transactions of committed batches that are to be removed, if their service has a history. `committed`
/// contains the `seq` and the service of each batch. Must be called in the transaction that removes the batches, before
/// they are removed.
pub(crate) fn keep_past_transactions(
    connection: &mut Connection,
    committed: &HashMap<i64, String>,
) -> Result<(), StoreError> {
    if committed.is_empty() {
        return Ok(());
    }
    let services: BTreeSet<&str> = committed.values().map(String::as_str).collect();
    let statement = Statement::new(
        "-- services_with_history
         select h.service_id from {x} join service_histories h on h.service_id = x.service_id",
    )
    .rows(Rows::default().text("service_id", services));
    let services: HashSet<String> = connection.load_column(&statement)?.into_iter().collect();
    let kept = committed.iter().filter(|(_, service)| services.contains(service.as_str()));
    let seqs: BTreeSet<i64> = kept.map(|(seq, _)| *seq).collect();
    if seqs.is_empty() {
        return Ok(());
    }
    let rows: Vec<(i64, Vec<u8>)> = connection.load_row_tuples(
        "-- transactions_to_keep
         select t.batch_seq, t.transaction_id from {x} join transactions t on t.batch_seq = x.seq",
        Rows::default().long("seq", seqs),
    )?;
    let key = |(batch_seq, transaction_id): &(i64, Vec<u8>)| {
        let service = committed.get(batch_seq).map_or("", String::as_str);
        Ok(transaction_key(service, &header_id(transaction_id)?))
    };
    let keys = rows.iter().map(key).collect::<Result<_, StoreError>>()?;
    insert_keys(connection, keys)
}

fn insert_keys(
    connection: &mut Connection,
    keys: BTreeSet<TransactionKey>,
) -> Result<(), StoreError> {
    if keys.is_empty() {
        return Ok(());
    }
    connection.execute_rows(
        "-- insert_past_transactions
         insert into past_transactions (transaction_key) select transaction_key from {x} where true
         on conflict (transaction_key) do nothing",
        Rows::default().bytes("transaction_key", keys.iter().map(|key| &key[..])).in_chunks(),
    )
}

/// Those of these transactions that were applied with batches that are not stored.
pub(crate) fn find_past_transactions<'a>(
    connection: &mut Connection,
    transactions: impl Iterator<Item = (&'a str, ItemId)>,
) -> Result<HashSet<(&'a str, ItemId)>, StoreError> {
    let keyed = transactions.map(|(service, id)| (transaction_key(service, &id), (service, id)));
    let by_key: HashMap<TransactionKey, (&str, ItemId)> = keyed.collect();
    let statement = Statement::new(
        "-- find_past_transactions
         select p.transaction_key from {x}
         join past_transactions p on p.transaction_key = x.transaction_key",
    )
    .rows(Rows::default().bytes("transaction_key", by_key.keys().map(|key| &key[..])).in_chunks());
    let keys: Vec<Vec<u8>> = connection.load_column(&statement)?;
    Ok(keys.iter().filter_map(|key| by_key.get(key.as_slice()).copied()).collect())
}

/// A key of 16 bytes for a transaction of a service. It is part of a hash, because a client can create transactions
/// whose ids have many bytes in common, by signing them with the same nonce.
fn transaction_key(service_id: &str, transaction: &ItemId) -> TransactionKey {
    let hash = Sha256::new().chain_update(transaction.as_bytes()).chain_update(service_id);
    let hash: [u8; 32] = hash.finalize().into();
    std::array::from_fn(|at| hash[at])
}
