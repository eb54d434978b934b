//! Schedules questions to the ledger about missing transactions. Signers take turns; for each signer, transactions that
//! the ledger has not been asked about yet come first.

use std::{collections::BTreeSet, time::Duration};

use grid_batch_core::evidence::LookupLag;
use grid_batch_core::{ItemId, Timestamp};
use grid_batch_support::{Backoff, lock};

use super::table::find_arrived;
use crate::{
    scheduling::insert_changed,
    sql::{
        Connection, Rows, Statement, Store, StoreError, result_row,
        rows::{batch_id, claimed_by, limit},
    },
};

result_row! {
    /// A transaction that batches of a signer miss.
    #[derive(Debug, Clone, PartialEq, Eq)]
    struct Lookup {
        service_id: String,
        signer: Vec<u8>,
        transaction_id: Vec<u8>,
        /// How often the ledger was asked.
        lookups: i64,
    }
}

/// The longest pause, as a multiple of the first one.
const LONGEST_PAUSE: u32 = 30;

/// Limit for counting transactions that the ledger has not been asked about yet.
const MOST_COUNTED: i64 = 100_000;

/// Records that the ledger is to be asked about these transactions, which these batches miss.
pub(super) fn insert(
    connection: &mut Connection,
    missed: &[(ItemId, i64)],
    now: Timestamp,
) -> Result<(), StoreError> {
    connection.execute_rows(
        "-- insert_lookups
         insert into transaction_lookups (service_id, signer, transaction_id, since)
         select distinct m.service_id, m.signer, m.transaction_id, x.since
         from {x} join missing_transactions m
             on m.transaction_id = x.transaction_id and m.batch_seq = x.batch_seq
         where m.found_at is null
         on conflict (service_id, signer, transaction_id) do nothing",
        missed_rows(missed).long("since", missed.iter().map(|_| now.as_micros())),
    )
}

/// Schedules an immediate question about those of these transactions that, since the last question, were only added by
/// an invalid batch.
pub(super) fn begin_again(
    connection: &mut Connection,
    missed: &[(ItemId, i64)],
) -> Result<(), StoreError> {
    connection.execute_rows(
        "-- begin_lookups_again
         update transaction_lookups set lookups = 0, next_lookup_at = 0
         where (service_id, signer, transaction_id) in (
             select m.service_id, m.signer, m.transaction_id
             from {x} join missing_transactions m
                 on m.transaction_id = x.transaction_id and m.batch_seq = x.batch_seq
             where m.found_at is null and m.invalid_seq is not null and m.asked_at = 0)",
        missed_rows(missed),
    )
}

fn missed_rows<'a>(missed: &'a [(ItemId, i64)]) -> Rows<'a> {
    Rows::default()
        .bytes("transaction_id", missed.iter().map(|(id, _)| id.as_bytes()))
        .long("batch_seq", missed.iter().map(|(_, seq)| *seq))
}

/// Up to `count` signers after `after` whose batches miss transactions, in order.
fn find_signers(
    connection: &mut Connection,
    after: Option<&[u8]>,
    count: usize,
) -> Result<Vec<Vec<u8>>, StoreError> {
    // Only one row is read for each signer.
    let first = match after {
        Some(_) => "l.signer > ?",
        None => "l.signer >= ?",
    };
    let statement = Statement::new(format!(
        "-- find_signers_to_look_up
         with recursive signers(signer) as (
             select (select l.signer from transaction_lookups l where {first}
                     order by l.signer, l.next_lookup_at limit 1)
             union all
             select (select l.signer from transaction_lookups l where l.signer > r.signer
                     order by l.signer, l.next_lookup_at limit 1)
             from signers r where r.signer is not null
         )
         select r.signer from signers r where r.signer is not null limit ?"
    ))
    .bytes(after.unwrap_or_default())
    .long(limit(count));
    let signers: Vec<Option<Vec<u8>>> = connection.load_column(&statement)?;
    Ok(signers.into_iter().flatten().collect())
}

/// Up to `count` due transactions of a signer, in services of an instance. Those that the ledger has not been asked
/// about yet come first.
fn find_due(
    connection: &mut Connection,
    signer: &[u8],
    instance: &str,
    now: Timestamp,
    count: usize,
) -> Result<Vec<Lookup>, StoreError> {
    let claimed = claimed_by("l");
    let statement = Statement::new(format!(
        "-- find_due_lookups
         select l.service_id, l.signer, l.transaction_id, l.lookups from transaction_lookups l
         where l.signer = ? and l.next_lookup_at <= ? and {claimed}
         order by l.signer, l.next_lookup_at limit ?"
    ))
    .bytes(signer)
    .long(now.as_micros())
    .text(/* claimant */ instance)
    .long(limit(count));
    connection.load(&statement)
}

/// Removes the lookups of transactions that no batch misses any more, and returns the others.
fn remove_unneeded(
    connection: &mut Connection,
    lookups: Vec<Lookup>,
) -> Result<Vec<Lookup>, StoreError> {
    let statement = Statement::new(
        "-- find_unneeded_lookups
         select x.number from {x}
         where (select count(*) from (
             select 1 from missing_transactions m
             where m.signer = x.signer and m.transaction_id = x.transaction_id
                 and m.found_at is null limit 1) as r) = 0",
    )
    .rows(lookup_rows(&lookups).long("number", (0..).take(lookups.len())));
    let unneeded: Vec<i64> = connection.load_column(&statement)?;
    let unneeded: BTreeSet<usize> =
        unneeded.into_iter().filter_map(|number| usize::try_from(number).ok()).collect();
    let (needed, unneeded): (Vec<_>, Vec<_>) =
        lookups.into_iter().enumerate().partition(|(number, _)| !unneeded.contains(number));
    let of = |lookups: Vec<(usize, Lookup)>| lookups.into_iter().map(|(_, it)| it).collect();
    let unneeded: Vec<Lookup> = of(unneeded);
    if !unneeded.is_empty() {
        // A batch that misses it may have been added meanwhile.
        connection.execute_rows(
            "-- remove_lookups
             delete from transaction_lookups
             where (service_id, signer, transaction_id) in (
                     select x.service_id, x.signer, x.transaction_id from {x})
                 and not exists (
                     select 1 from missing_transactions m
                     where m.signer = transaction_lookups.signer
                         and m.transaction_id = transaction_lookups.transaction_id
                         and m.found_at is null)",
            lookup_rows(&unneeded),
        )?;
    }
    Ok(of(needed))
}

/// Records that the ledger is asked about these transactions now. The pause until the next question doubles each time,
/// up to a limit.
fn mark_asked(
    connection: &mut Connection,
    lookups: &[Lookup],
    first_pause: Duration,
    now: Timestamp,
) -> Result<(), StoreError> {
    let pauses = Backoff { first: first_pause, longest: first_pause * LONGEST_PAUSE };
    let next = |lookup: &Lookup| {
        let earlier = u32::try_from(lookup.lookups).unwrap_or_default();
        now.plus(pauses.whole_delay(earlier)).as_micros()
    };
    connection.execute_rows(
        "-- mark_looked_up
         update transaction_lookups
         set lookups = transaction_lookups.lookups + 1, next_lookup_at = x.next_lookup_at
         from {x} where transaction_lookups.service_id = x.service_id
             and transaction_lookups.signer = x.signer
             and transaction_lookups.transaction_id = x.transaction_id",
        lookup_rows(lookups).long("next_lookup_at", lookups.iter().map(next)),
    )?;
    // Other batches do not need the time.
    connection.execute_rows(
        "-- mark_asked
         update missing_transactions set asked_at = x.asked_at
         from {x} where missing_transactions.transaction_id = x.transaction_id
             and missing_transactions.found_at is null
             and missing_transactions.invalid_seq is not null and missing_transactions.asked_at = 0",
        Rows::default()
            .bytes("transaction_id", lookups.iter().map(|it| it.transaction_id.as_slice()))
            .long("asked_at", lookups.iter().map(|_| now.as_micros())),
    )
}

/// Sets the time of the next question about these transactions, whatever their pauses.
fn set_next_lookup(
    connection: &mut Connection,
    transaction_ids: &[ItemId],
    at: Timestamp,
) -> Result<(), StoreError> {
    connection.execute_rows(
        "-- look_up_again
         update transaction_lookups set lookups = 1, next_lookup_at = x.next_lookup_at
         from {x} join missing_transactions m on m.transaction_id = x.transaction_id
         where m.found_at is null and transaction_lookups.service_id = m.service_id
             and transaction_lookups.signer = m.signer
             and transaction_lookups.transaction_id = m.transaction_id",
        Rows::default()
            .bytes("transaction_id", transaction_ids.iter().map(|id| id.as_bytes()))
            .long("next_lookup_at", transaction_ids.iter().map(|_| at.as_micros())),
    )
}

/// How many transactions the ledger has not been asked about yet, and for how long they have waited.
fn load_lag(connection: &mut Connection, now: Timestamp) -> Result<LookupLag, StoreError> {
    let statement = Statement::new(
        "-- load_lookup_lag
         select count(*) as waiting, min(r.since) as since from (
             select l.since from transaction_lookups l where l.lookups = 0 and l.since > 0
             order by l.since limit ?) as r",
    )
    .long(MOST_COUNTED);
    let rows: Vec<(i64, Option<i64>)> = connection.load_tuples(&statement)?;
    let lag = |(waiting, since): &(i64, Option<i64>)| LookupLag {
        waiting: waiting.unsigned_abs(),
        longest: since.map_or(Duration::ZERO, |since| now.since(Timestamp::from_micros(since))),
    };
    Ok(rows.first().map(lag).unwrap_or_default())
}

/// The transactions of lookups.
fn transaction_ids(lookups: &[Lookup]) -> Result<BTreeSet<ItemId>, StoreError> {
    lookups.iter().map(|it| batch_id(&it.transaction_id)).collect()
}

fn lookup_rows(lookups: &[Lookup]) -> Rows<'_> {
    Rows::default()
        .text("service_id", lookups.iter().map(|it| it.service_id.as_str()))
        .bytes("signer", lookups.iter().map(|it| it.signer.as_slice()))
        .bytes("transaction_id", lookups.iter().map(|it| it.transaction_id.as_slice()))
}

/// How many signers take turns in one round of lookups.
const MOST_SIGNERS: usize = 256;

/// Up to `count` missing transactions of the services of an instance about which the ledger is to be asked now. Signers
/// take turns. The transactions count as asked about from now on.
pub(super) fn missing_transactions(
    store: &Store,
    instance: &str,
    pause: Duration,
    count: usize,
) -> Result<Vec<ItemId>, StoreError> {
    let now = store.now();
    let due = due_lookups(store, instance, now, count)?;
    if due.is_empty() {
        return Ok(Vec::new());
    }
    store.pools.write()?.write_transaction(|connection| {
        let needed = remove_unneeded(connection, due.clone())?;
        mark_asked(connection, &needed, pause, now)?;
        let ids = transaction_ids(&needed)?;
        // A batch that was stored at the same moment by another commit did not see the batches that miss its
        // transactions.
        let arrived = find_arrived(connection, &ids)?;
        insert_changed(connection, &store.scheduler, arrived, now)?;
        Ok(ids.into_iter().collect())
    })
}

/// Up to `count` due lookups, taken from the signers in turn. The next call begins with another signer.
fn due_lookups(
    store: &Store,
    instance: &str,
    now: Timestamp,
    count: usize,
) -> Result<Vec<Lookup>, StoreError> {
    let mut connection = store.pools.read()?;
    let connection = &mut *connection;
    let mut last = lock(&store.last_signer);
    let mut signers = find_signers(connection, last.as_deref(), MOST_SIGNERS)?;
    if signers.len() < MOST_SIGNERS && last.is_some() {
        let first = find_signers(connection, None, MOST_SIGNERS - signers.len())?;
        signers.extend(first.into_iter().take_while(|it| Some(it) <= last.as_ref()));
    }
    let mut due = Vec::new();
    for signer in &signers {
        due.push(find_due(connection, signer, instance, now, count)?.into_iter());
    }
    let mut taken = Vec::new();
    loop {
        let before = taken.len();
        for (signer, due) in signers.iter().zip(&mut due) {
            if taken.len() == count {
                return Ok(taken);
            }
            if let Some(lookup) = due.next() {
                *last = Some(signer.clone());
                taken.push(lookup);
            }
        }
        if taken.len() == before {
            // None of these signers has another due lookup.
            *last = signers.pop();
            return Ok(taken);
        }
    }
}

/// Records that the ledger did not answer about these transactions: it is asked again after `pause`.
pub(super) fn look_up_again(
    store: &Store,
    ids: &[ItemId],
    pause: Duration,
) -> Result<(), StoreError> {
    let at = store.now().plus(pause);
    store.pools.write()?.write_transaction(|connection| set_next_lookup(connection, ids, at))
}

/// How many missing transactions the ledger has not been asked about yet.
pub(super) fn lookup_lag(store: &Store) -> Result<LookupLag, StoreError> {
    load_lag(&mut *store.pools.read()?, store.now())
}
