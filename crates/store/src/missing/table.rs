//! The table of transactions that batches depend on but that have not arrived.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use grid_batch_core::batches::SignerId;
use grid_batch_core::{ItemId, ServiceId, Timestamp};

use super::lookups;
use crate::{
    scheduling::Missing,
    sql::{
        Connection, Rows, Statement, StoreError,
        rows::{batch_id, limit, same_transaction, service_id},
    },
};

/// A batch that misses transactions, and its service. Usually it has no position.
pub(crate) type IncompleteBatch = (i64, ServiceId);

/// Records the transactions that batches miss, and that the ledger is to be asked about them. The signers of batches
/// that were recorded before are known.
pub(crate) fn insert(
    connection: &mut Connection,
    batches: &[(&IncompleteBatch, &[Missing])],
    signers: &HashMap<i64, SignerId>,
    now: Timestamp,
) -> Result<(), StoreError> {
    if batches.is_empty() {
        return Ok(());
    }
    let rows =
        || batches.iter().flat_map(|(batch, missing)| missing.iter().map(move |it| (*batch, it)));
    let signer = |seq: i64| signers.get(&seq).map_or(&[][..], |signer| &signer.as_bytes()[..]);
    // An answer from before the end of the batch with the transaction does not count, because that batch may have been
    // applied since.
    connection.execute_rows(
        "-- insert_missing_transactions
         insert into missing_transactions
             (transaction_id, batch_seq, service_id, since, invalid_seq, signer)
         select x.transaction_id, x.batch_seq, x.service_id, x.since, x.invalid_seq,
             case when length(x.signer) > 0 then x.signer else coalesce(
                 (select m.signer from missing_transactions m
                  where m.batch_seq = x.batch_seq limit 1), x.signer) end
         from {x} where true
         on conflict (transaction_id, batch_seq) do update
         set invalid_seq = excluded.invalid_seq, asked_at = 0
         where missing_transactions.found_at is null
             and coalesce(missing_transactions.invalid_seq, 0) < coalesce(excluded.invalid_seq, 0)",
        Rows::default()
            .bytes("transaction_id", rows().map(|(_, it)| it.transaction_id.as_bytes()))
            .long("batch_seq", rows().map(|(batch, _)| batch.0))
            .text("service_id", rows().map(|(batch, _)| batch.1.as_str()))
            .long("since", rows().map(|_| now.as_micros()))
            .optional_long("invalid_seq", rows().map(|(_, it)| it.invalid_seq))
            .bytes("signer", rows().map(|(batch, _)| signer(batch.0))),
    )?;
    let missed: Vec<(ItemId, i64)> =
        rows().map(|(batch, it)| (it.transaction_id, batch.0)).collect();
    lookups::insert(connection, &missed, now)?;
    if rows().any(|(_, it)| it.invalid_seq.is_some()) {
        lookups::begin_again(connection, &missed)?;
    }
    Ok(())
}

/// For each signer, the number of missing transactions on which its batches depend, counted once for each batch.
pub(crate) fn count_of_signers(
    connection: &mut Connection,
    signers: &BTreeSet<SignerId>,
) -> Result<BTreeMap<SignerId, u64>, StoreError> {
    if signers.is_empty() {
        return Ok(BTreeMap::new());
    }
    let signers: Vec<SignerId> = signers.iter().copied().collect();
    let rows: Vec<(i64, i64)> = connection.load_row_tuples(
        "-- count_missing_of_signers
         select x.number, (
             select count(*) from missing_transactions m
             where m.signer = x.signer and m.found_at is null) as count
         from {x}",
        Rows::default()
            .long("number", (0..).take(signers.len()))
            .bytes("signer", signers.iter().map(|signer| &signer.as_bytes()[..])),
    )?;
    let count = |(number, count): (i64, i64)| {
        let signer = usize::try_from(number).ok().and_then(|number| signers.get(number));
        Some((*signer?, count.unsigned_abs()))
    };
    Ok(rows.into_iter().filter_map(count).collect())
}

/// Those of these transactions that open batches miss.
pub(crate) fn find_waited_for(
    connection: &mut Connection,
    transaction_ids: &BTreeSet<ItemId>,
) -> Result<BTreeSet<ItemId>, StoreError> {
    let statement = Statement::new(
        "-- find_waited_for
         select x.transaction_id from {x}
         where (select count(*) from (
             select 1 from missing_transactions m
             where m.transaction_id = x.transaction_id and m.found_at is null limit 1) as r) > 0",
    )
    .rows(Rows::default().bytes("transaction_id", transaction_ids.iter().map(|id| id.as_bytes())));
    let ids: Vec<Vec<u8>> = connection.load_column(&statement)?;
    ids.iter().map(|id| batch_id(id)).collect()
}

/// Records that these batches miss only the transactions that `still` has for them.
pub(crate) fn remove_others(
    connection: &mut Connection,
    batches: &[(i64, &[Missing])],
) -> Result<(), StoreError> {
    type Batch<'b> = (i64, &'b [Missing]);
    let (whole, partly): (Vec<Batch<'_>>, Vec<Batch<'_>>) =
        batches.iter().partition(|(_, still)| still.is_empty());
    remove(connection, whole.iter().map(|(seq, _)| *seq))?;
    for (seq, still) in partly {
        remove_except(connection, seq, still)?;
    }
    Ok(())
}

/// Removes the missing transactions of batches that no longer miss anything or have ended. Transactions that were found
/// are kept.
pub(crate) fn remove(
    connection: &mut Connection,
    seqs: impl IntoIterator<Item = i64>,
) -> Result<(), StoreError> {
    connection.execute_rows(
        "-- remove_missing_transactions
         delete from missing_transactions
         where batch_seq in (select x.batch_seq from {x}) and found_at is null",
        Rows::default().long("batch_seq", seqs),
    )
}

fn remove_except(
    connection: &mut Connection,
    seq: i64,
    still: &[Missing],
) -> Result<(), StoreError> {
    let statement = Statement::new(
        "-- find_missing_of
         select m.transaction_id from missing_transactions m
         where m.batch_seq = ? and m.found_at is null",
    )
    .long(seq);
    let missed: Vec<Vec<u8>> = connection.load_column(&statement)?;
    let still: BTreeSet<&[u8]> = still.iter().map(|it| it.transaction_id.as_bytes()).collect();
    let arrived = || missed.iter().map(Vec::as_slice).filter(|id| !still.contains(id));
    connection.execute_rows(
        "-- remove_arrived_transactions
         delete from missing_transactions where (transaction_id, batch_seq) in (
             select x.transaction_id, x.batch_seq from {x})",
        Rows::default()
            .bytes("transaction_id", arrived())
            .long("batch_seq", arrived().map(|_| seq)),
    )
}

/// Those of these batches that contain a transaction that other batches miss.
pub(crate) fn find_missed(
    connection: &mut Connection,
    seqs: impl IntoIterator<Item = i64>,
) -> Result<BTreeSet<i64>, StoreError> {
    // Usually nothing is missing, and no transaction is looked up.
    let statement = Statement::new(
        "-- find_missed_batches
         select x.batch_seq from {x}
         where (select count(*) from (
                 select 1 from missing_transactions m where m.found_at is null limit 1) as r) > 0
             and exists (
                 select 1 from transactions t
                 join missing_transactions m on m.transaction_id = t.transaction_id
                 where t.batch_seq = x.batch_seq and m.found_at is null)",
    )
    .rows(Rows::default().long("batch_seq", seqs));
    Ok(connection.load_column(&statement)?.into_iter().collect())
}

/// The batches with these transactions for which others may wait, because they are committed or have positions.
pub(crate) fn find_arrived(
    connection: &mut Connection,
    transaction_ids: &BTreeSet<ItemId>,
) -> Result<BTreeSet<i64>, StoreError> {
    let same = same_transaction("x");
    let statement = Statement::new(format!(
        "-- find_arrived_batches
         select b.seq as batch_seq
         from {{x}} join transactions t on {same} join batches b on b.seq = t.batch_seq
         where b.dlt_status = 'COMMITTED' or b.ended_at is null and coalesce(
             (select w.position from waiting_batches w where w.batch_seq = b.seq),
             (select s.position from lanes s
              where s.service_id = b.service_id and s.batch_seq = b.seq)) is not null"
    ))
    .rows(Rows::default().bytes("transaction_id", transaction_ids.iter().map(|id| id.as_bytes())));
    Ok(connection.load_column(&statement)?.into_iter().collect())
}

/// Up to `count` batches without a position that miss a transaction of this one. If this one is invalid, batches that
/// were evaluated since a batch with the transaction ended as invalid are left out.
pub(crate) fn find_missing_dependents(
    connection: &mut Connection,
    seq: i64,
    count: usize,
) -> Result<Vec<IncompleteBatch>, StoreError> {
    let statement = Statement::new(
        "-- find_missing_dependents
         select m.batch_seq, m.service_id
         from transactions t join batches b on b.seq = t.batch_seq
         join missing_transactions m on m.transaction_id = t.transaction_id
         join waiting_batches w on w.batch_seq = m.batch_seq
         where t.batch_seq = ? and m.found_at is null and w.position is null
             and (m.invalid_seq is null or b.dlt_status is null or b.dlt_status <> 'INVALID')
         limit ?",
    )
    .long(seq)
    .long(limit(count));
    load_incomplete(connection, &statement)
}

/// Up to `count` batches that miss this transaction.
pub(crate) fn find_that_miss(
    connection: &mut Connection,
    transaction_id: &ItemId,
    count: usize,
) -> Result<Vec<IncompleteBatch>, StoreError> {
    let statement = Statement::new(
        "-- find_batches_that_miss
         select m.batch_seq, m.service_id from missing_transactions m
         where m.transaction_id = ? and m.found_at is null limit ?",
    )
    .bytes(transaction_id.as_bytes())
    .long(limit(count));
    load_incomplete(connection, &statement)
}

/// Up to `count` batches after `after` that miss this transaction and end if the ledger does not have it. The ledger
/// was asked after an invalid batch became the only one with it.
pub(crate) fn find_that_ask(
    connection: &mut Connection,
    transaction_id: &ItemId,
    after: i64,
    count: usize,
) -> Result<Vec<IncompleteBatch>, StoreError> {
    let statement = Statement::new(
        "-- find_batches_that_ask
         select m.batch_seq, m.service_id from missing_transactions m
         where m.transaction_id = ? and m.batch_seq > ? and m.found_at is null
             and m.invalid_seq is not null and m.asked_at > 0
         order by m.transaction_id, m.batch_seq limit ?",
    )
    .bytes(transaction_id.as_bytes())
    .long(after)
    .long(limit(count));
    load_incomplete(connection, &statement)
}

/// Up to `count` batches that have missed a transaction since before a time and are not held for this reason.
pub(crate) fn find_overdue(
    connection: &mut Connection,
    before: Timestamp,
    count: usize,
) -> Result<Vec<IncompleteBatch>, StoreError> {
    let statement = Statement::new(
        "-- find_overdue_batches
         select m.batch_seq, m.service_id from missing_transactions m
         where m.found_at is null and not m.overdue and m.since <= ? order by m.since limit ?",
    )
    .long(before.as_micros())
    .long(limit(count));
    load_incomplete(connection, &statement)
}

fn load_incomplete(
    connection: &mut Connection,
    statement: &Statement<'_>,
) -> Result<Vec<IncompleteBatch>, StoreError> {
    let rows: Vec<(i64, String)> = connection.load_tuples(statement)?;
    let incomplete: BTreeSet<IncompleteBatch> = rows
        .iter()
        .map(|(seq, service)| Ok((*seq, service_id(service)?)))
        .collect::<Result<_, StoreError>>()?;
    Ok(incomplete.into_iter().collect())
}

/// Records, for these batches, that the ledger has these transactions.
pub(crate) fn mark_found(
    connection: &mut Connection,
    found: &[(i64, ItemId)],
    now: Timestamp,
) -> Result<(), StoreError> {
    connection.execute_rows(
        "-- mark_found_transactions
         update missing_transactions set found_at = x.found_at
         from {x}
         where missing_transactions.transaction_id = x.transaction_id
             and missing_transactions.batch_seq = x.batch_seq",
        Rows::default()
            .long("found_at", found.iter().map(|_| now.as_micros()))
            .bytes("transaction_id", found.iter().map(|(_, id)| id.as_bytes()))
            .long("batch_seq", found.iter().map(|(seq, _)| *seq)),
    )
}

/// Releases a batch from its missing transactions for an operator. Returns whether it was held because of them.
pub(crate) fn release_overdue(
    connection: &mut Connection,
    seq: i64,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let statement = Statement::new(
        "-- release_overdue
         update missing_transactions set found_at = ?
         where batch_seq = ? and found_at is null and (
             select count(*) from missing_transactions o
             where o.batch_seq = ? and o.overdue) > 0",
    )
    .long(now.as_micros())
    .long(seq)
    .long(seq);
    Ok(connection.execute(&statement)? > 0)
}

/// Records that batches are held because they miss transactions.
pub(crate) fn mark_overdue(
    connection: &mut Connection,
    seqs: impl IntoIterator<Item = i64>,
) -> Result<(), StoreError> {
    connection.execute_rows(
        "-- mark_overdue
         update missing_transactions set overdue = true
         where batch_seq in (select x.batch_seq from {x}) and found_at is null",
        Rows::default().long("batch_seq", seqs),
    )
}

/// Ends the holds of batches that no longer miss anything, unless an operator holds them.
pub(crate) fn end_holds(
    connection: &mut Connection,
    seqs: impl IntoIterator<Item = i64>,
) -> Result<(), StoreError> {
    connection.execute_rows(
        "-- end_holds_of_arrived
         delete from waiting_holds
         where batch_seq in (select x.batch_seq from {x}) and cause = 'MISSING_TRANSACTION'",
        Rows::default().long("batch_seq", seqs),
    )
}
