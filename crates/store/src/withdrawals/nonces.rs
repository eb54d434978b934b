use diesel::{
    QueryableByName,
    sql_types::{BigInt, Nullable},
};
use grid_batch_core::{Hex, ServiceId, Timestamp};
use grid_batch_withdrawals::NonceOutcome;

use super::{
    nonce_row::{OutcomeRow, outcome_columns},
    payment::StoredPayment,
    rows::whole,
    to_stored,
};
use crate::sql::{
    Connection, Rows, Statement, Store, StoreError, error::SigningError, groups::LOCK_LIMIT,
    rows::storable,
};

/// The nonce after the highest one of the account.
pub(crate) fn next_nonce(store: &Store, service_id: &ServiceId) -> Result<Option<u64>, StoreError> {
    let highest = highest_nonce(&mut *store.pools.read()?, service_id)?;
    Ok(highest.map(|highest| highest + 1))
}

pub(super) fn highest_nonce(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<Option<u64>, StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- highest_nonce
         select max(n.nonce) as nonce from account_nonces n where n.service_id = ?",
    )
    .text(service_id.as_str());
    let rows: Vec<HighestRow> = connection.load(&statement)?;
    rows.first().and_then(|row| row.nonce).map(whole).transpose()
}

/// A nonce to insert.
pub(super) struct NewNonce {
    pub(super) nonce: u64,
    /// The `seq` and the generation of its withdrawal, if it has one.
    pub(super) owner: Option<(i64, u32)>,
}

/// Inserts a nonce, of this withdrawal or of none.
pub(super) fn insert_nonce(
    connection: &mut Connection,
    service_id: &ServiceId,
    nonce: u64,
    payment: Option<&StoredPayment>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let owner = payment.map(|stored| (stored.withdrawal_seq, stored.payment.generation));
    insert_nonces(connection, service_id, &[NewNonce { nonce, owner }], now)
}

pub(super) fn insert_nonces(
    connection: &mut Connection,
    service_id: &ServiceId,
    nonces: &[NewNonce],
    now: Timestamp,
) -> Result<(), StoreError> {
    let numbers = nonces.iter().map(|it| to_stored("nonce", it.nonce));
    let numbers = numbers.collect::<Result<Vec<i64>, _>>()?;
    let owners = || nonces.iter().map(|it| it.owner);
    let statement = Statement::new(
        connection.dialect(),
        "-- insert_nonce
         insert into account_nonces
             (service_id, nonce, withdrawal_seq, generation, assigned_at)
         select service_id, nonce, withdrawal_seq, generation, assigned_at from {x}",
    )
    .rows(
        Rows::default()
            .text("service_id", nonces.iter().map(|_| service_id.as_str()))
            .long("nonce", numbers)
            .optional_long("withdrawal_seq", owners().map(|owner| owner.map(|(seq, _)| seq)))
            .optional_long("generation", owners().map(|owner| owner.map(|(_, it)| it.into())))
            .long("assigned_at", nonces.iter().map(|_| now.as_micros())),
    );
    connection.execute(&statement).map(drop)
}

/// Records that transactions were sent, and the node's error, if any.
pub(crate) fn mark_sent(
    store: &Store,
    sent: &[([u8; 32], Option<String>)],
) -> Result<(), StoreError> {
    let errors: Vec<_> = sent.iter().map(|(_, error)| error.as_deref().map(storable)).collect();
    let now = store.now().as_micros();
    let statement = store
        .statement(
            "-- mark_sent
             update signed_transactions as k
             set sent_at = x.sent_at, last_error = x.last_error
             from {x} where k.hash = x.hash",
        )
        .rows(
            Rows::default()
                .bytes("hash", sent.iter().map(|(hash, _)| &hash[..]))
                .long("sent_at", sent.iter().map(|_| now))
                .optional_text("last_error", errors.iter().map(Option::as_deref)),
        );
    let marked = store.pools.write()?.execute(&statement)?;
    match sent {
        [(hash, _)] if marked == 0 => {
            Err(SigningError::UnknownTransaction { hash: Hex(hash).to_string() }.into())
        }
        _ => Ok(()),
    }
}

/// Records a note about an open nonce. The same note again is not written.
pub(crate) fn note(
    store: &Store,
    service_id: &ServiceId,
    nonce: u64,
    note: Option<&str>,
) -> Result<(), StoreError> {
    let note = note.map(storable);
    let statement = store
        .statement(
            "-- note
             update account_nonces as n set note = x.note from {x}
             where n.service_id = x.service_id and n.nonce = x.nonce
                 and n.outcome is null and n.note is distinct from x.note",
        )
        .rows(
            Rows::default()
                .text("service_id", [service_id.as_str()])
                .long("nonce", [to_stored("nonce", nonce)?])
                .optional_text("note", [note.as_deref()]),
        );
    store.pools.write()?.execute(&statement).map(drop)
}

/// Records the hash of a transaction with an open nonce that was not signed here.
pub(crate) fn record_foreign_use(
    store: &Store,
    service_id: &ServiceId,
    nonce: u64,
    hash: &[u8; 32],
) -> Result<(), StoreError> {
    let statement = store
        .statement(
            "-- record_foreign_use
             update account_nonces as n set foreign_hash = x.foreign_hash from {x}
             where n.service_id = x.service_id and n.nonce = x.nonce
                 and n.outcome is null and n.foreign_hash is distinct from x.foreign_hash",
        )
        .rows(
            Rows::default()
                .text("service_id", [service_id.as_str()])
                .long("nonce", [to_stored("nonce", nonce)?])
                .bytes("foreign_hash", [&hash[..]]),
        );
    store.pools.write()?.execute(&statement).map(drop)
}

/// Records the final outcome of a nonce. Another outcome than the stored one is refused.
pub(crate) fn close_nonce(
    store: &Store,
    service_id: &ServiceId,
    nonce: u64,
    outcome: &NonceOutcome,
) -> Result<(), StoreError> {
    let number = to_stored("nonce", nonce)?;
    store.pools.write()?.transaction_with_lock_limit(LOCK_LIMIT, |connection| {
        let stored = lock_nonce(connection, service_id, number)?;
        match check_outcome(service_id, nonce, stored, Some(outcome))? {
            true => write_outcome(connection, service_id, number, outcome),
            false => Ok(()),
        }
    })
}

/// Whether the nonce is still open. Another outcome than the stored one is an error, and so is a nonce
/// that is not stored.
pub(super) fn check_outcome(
    service_id: &ServiceId,
    nonce: u64,
    stored: Option<OutcomeRow>,
    given: Option<&NonceOutcome>,
) -> Result<bool, StoreError> {
    let service = || service_id.clone();
    let Some(row) = stored else {
        return Err(SigningError::UnassignedNonce { service_id: service(), nonce }.into());
    };
    match (row.read()?, given) {
        (None, _) => Ok(true),
        (Some(stored), Some(given)) if stored != *given => {
            let (service_id, given) = (service(), given.clone());
            Err(SigningError::OutcomeConflict { service_id, nonce, stored, given }.into())
        }
        (Some(_), _) => Ok(false),
    }
}

fn lock_nonce(
    connection: &mut Connection,
    service_id: &ServiceId,
    nonce: i64,
) -> Result<Option<OutcomeRow>, StoreError> {
    let dialect = connection.dialect();
    let lock = dialect.locking("for update of n");
    let statement = Statement::new(
        dialect,
        format!(
            "-- lock_nonce
             select n.outcome, n.pool_withdrawal_id from account_nonces n
             where n.service_id = ? and n.nonce = ? {lock}"
        ),
    )
    .text(service_id.as_str())
    .long(nonce);
    let rows: Vec<OutcomeRow> = connection.load(&statement)?;
    Ok(rows.into_iter().next())
}

fn write_outcome(
    connection: &mut Connection,
    service_id: &ServiceId,
    nonce: i64,
    outcome: &NonceOutcome,
) -> Result<(), StoreError> {
    let (outcome, pool_withdrawal_id) = outcome_columns(outcome);
    let statement = Statement::new(
        connection.dialect(),
        "-- close_nonce
         update account_nonces as n
         set outcome = x.outcome, pool_withdrawal_id = x.pool_withdrawal_id
         from {x} where n.service_id = x.service_id and n.nonce = x.nonce",
    )
    .rows(
        Rows::default()
            .text("service_id", [service_id.as_str()])
            .long("nonce", [nonce])
            .text("outcome", [outcome])
            .optional_text("pool_withdrawal_id", [pool_withdrawal_id]),
    );
    connection.execute(&statement).map(drop)
}

#[derive(QueryableByName)]
struct HighestRow {
    #[diesel(sql_type = Nullable<BigInt>)]
    nonce: Option<i64>,
}
