use std::collections::HashMap;

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Nullable, Text},
};
use grid_batch_core::{DltStatus, ServiceId};
use grid_batch_withdrawals::{ClosedNonce, NonceOutcome};

use super::{
    nonce_row::{OutcomeRow, outcome_columns},
    nonces::check_outcome,
    to_stored,
};
use crate::sql::{
    Connection, Rows, Statement, Store, StoreError, groups::LOCK_LIMIT, rows::storable,
};

/// Records the notes and the final outcomes of nonces. Another outcome than a stored one is refused,
/// and then nothing is recorded. Returns how many of them are payments of withdrawals that had ended as failed.
pub(crate) fn close_nonces(
    store: &Store,
    service_id: &ServiceId,
    closed: &[ClosedNonce],
) -> Result<u64, StoreError> {
    store.pools.write()?.transaction_with_lock_limit(LOCK_LIMIT, |connection| {
        let mut stored = lock_nonces(connection, service_id, closed)?;
        let mut open = Vec::with_capacity(closed.len());
        let (mut decided, mut paid) = (Vec::new(), 0);
        for closed in closed {
            let ClosedNonce { nonce, outcome, .. } = closed;
            let number = to_stored("nonce", *nonce)?;
            let (stored, is_failed) = stored.remove(&number).unzip();
            if check_outcome(service_id, *nonce, stored, outcome.as_ref())? {
                open.push(closed);
                match outcome.as_ref().filter(|_| is_failed == Some(true)) {
                    Some(NonceOutcome::Withdrawn { .. }) => decided.push(number),
                    Some(NonceOutcome::WithoutEvent) => paid += 1,
                    _ => {}
                }
            }
        }
        if open.is_empty() {
            return Ok(0);
        }
        write_closed(connection, service_id, &open)?;
        if !decided.is_empty() {
            correct_ends(connection, service_id, &decided)?;
        }
        Ok(paid + decided.len() as u64)
    })
}

/// The outcome of a nonce, and whether its withdrawal was reported as failed.
type LockedNonce = (OutcomeRow, bool);

fn lock_nonces(
    connection: &mut Connection,
    service_id: &ServiceId,
    closed: &[ClosedNonce],
) -> Result<HashMap<i64, LockedNonce>, StoreError> {
    let numbers = closed.iter().map(|it| to_stored("nonce", it.nonce));
    let numbers = numbers.collect::<Result<Vec<i64>, _>>()?;
    let dialect = connection.dialect();
    let lock = dialect.locking("for update of n");
    let statement = Statement::new(
        dialect,
        format!(
            "-- lock_nonces
             select n.nonce, n.outcome, n.pool_withdrawal_id, w.list_state
             from {{x}} join account_nonces n
                 on n.service_id = x.service_id and n.nonce = x.nonce
             left join withdrawals w on w.seq = n.withdrawal_seq
             order by n.service_id, n.nonce {lock}"
        ),
    )
    .rows(
        Rows::default()
            .text("service_id", closed.iter().map(|_| service_id.as_str()))
            .long("nonce", numbers),
    );
    let rows: Vec<LockedNonceRow> = connection.load(&statement)?;
    let locked = |LockedNonceRow { nonce, outcome, list_state }| {
        (nonce, (outcome, list_state.as_deref() == Some(DltStatus::Invalid.as_str())))
    };
    Ok(rows.into_iter().map(locked).collect())
}

fn write_closed(
    connection: &mut Connection,
    service_id: &ServiceId,
    closed: &[&ClosedNonce],
) -> Result<(), StoreError> {
    let numbers = closed.iter().map(|it| to_stored("nonce", it.nonce));
    let numbers = numbers.collect::<Result<Vec<i64>, _>>()?;
    let notes: Vec<_> = closed.iter().map(|it| storable(&it.note)).collect();
    let columns = |it: &&ClosedNonce| -> (Option<&'static str>, Option<String>) {
        let columns = it.outcome.as_ref().map(outcome_columns);
        let id = columns.and_then(|(_, id)| id).map(str::to_owned);
        (columns.map(|(outcome, _)| outcome), id)
    };
    let transactions = || closed.iter().map(|it| it.transaction.as_ref());
    let (outcomes, ids): (Vec<_>, Vec<_>) = closed.iter().map(columns).unzip();
    let statement = Statement::new(
        connection.dialect(),
        "-- close_nonces
         update account_nonces as n
         set outcome = x.outcome, pool_withdrawal_id = x.pool_withdrawal_id, note = x.note,
             mined_hash = x.mined_hash, block_number = x.block_number, gas_used = x.gas_used,
             gas_price = x.gas_price
         from {x} where n.service_id = x.service_id and n.nonce = x.nonce",
    )
    .rows(
        Rows::default()
            .text("service_id", closed.iter().map(|_| service_id.as_str()))
            .long("nonce", numbers)
            .optional_text("outcome", outcomes)
            .optional_text("pool_withdrawal_id", ids.iter().map(Option::as_deref))
            .optional_text("note", notes.iter().map(|note| Some(&**note)))
            .optional_bytes("mined_hash", transactions().map(|it| it.map(|it| &it.hash[..])))
            .optional_long("block_number", transactions().map(|it| stored(it?.block)))
            .optional_long("gas_used", transactions().map(|it| stored(it?.gas_used?)))
            .optional_long("gas_price", transactions().map(|it| stored(it?.gas_price?))),
    );
    connection.execute(&statement).map(drop)
}

/// A number of a final transaction; `None` if it is too large to be stored.
fn stored(number: impl TryInto<i64>) -> Option<i64> {
    number.try_into().ok()
}

/// Shows withdrawals as made that an operator decided as not made, if they were made with these nonces.
fn correct_ends(
    connection: &mut Connection,
    service_id: &ServiceId,
    nonces: &[i64],
) -> Result<(), StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- correct_ends
         update withdrawals as w set list_state = 'COMMITTED'
         from {x} join account_nonces n on n.service_id = x.service_id and n.nonce = x.nonce
         where w.seq = n.withdrawal_seq and w.list_state = 'INVALID'",
    )
    .rows(
        Rows::default()
            .text("service_id", nonces.iter().map(|_| service_id.as_str()))
            .long("nonce", nonces.iter().copied()),
    );
    connection.execute(&statement).map(drop)
}

#[derive(QueryableByName)]
struct LockedNonceRow {
    #[diesel(sql_type = BigInt)]
    nonce: i64,
    #[diesel(embed)]
    outcome: OutcomeRow,
    #[diesel(sql_type = Nullable<Text>)]
    list_state: Option<String>,
}
